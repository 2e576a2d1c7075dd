/*-------------------------------------------------------------------------
 *
 * mysql_options.c
 *	  Options of a cdc_mysql SERVER and USER MAPPING.
 *
 * NOTES
 *	  The tables drive validation and cdc_list_options; mysql_endpoint_load
 *	  reads them back when somebody connects. There are no fallback credentials:
 *	  without a user mapping nobody connects.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <arpa/inet.h>

#include "access/htup_details.h"
#include "access/reloptions.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_user_mapping.h"
#include "commands/defrem.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

#include "mysql/mysql_options.h"

/* Longest password line that is read from a file. */
#define PASSWORD_MAX 1024

#define PORT_MAX 65535

static const char *const sslmode_values[] = {"disable", "require", "verify-ca", "verify-full", NULL};

static const UtilOption server_option_list[] = {
	{.name = "host", .type = UTIL_OPTION_TEXT, .default_text = "localhost",
	.description = "host name or address of the server, or a list of them: \"db1,db2\"; always TCP"},
	{.name = "port", .type = UTIL_OPTION_TEXT, .default_text = "3306",
	.description = "TCP port of the server: one for all hosts, or a list with one for each"},
	{.name = "socket", .type = UTIL_OPTION_TEXT, .superuser_only = true,
	.description = "Unix-domain socket of the server, instead of host and port"},
	{.name = "sslmode", .type = UTIL_OPTION_ENUM, .values = sslmode_values,
	.description = "TLS; without it require, but disable for loopback addresses and sockets"},
	{.name = "ssl_ca", .type = UTIL_OPTION_TEXT, .superuser_only = true,
	.description = "file with the certificates of trusted authorities"},
	{.name = "ssl_cert", .type = UTIL_OPTION_TEXT, .superuser_only = true,
	.description = "file with the client's certificate"},
	{.name = "ssl_key", .type = UTIL_OPTION_TEXT, .superuser_only = true,
	.description = "file with the client's private key"},
	{.name = "server_public_key", .type = UTIL_OPTION_TEXT, .superuser_only = true,
	.description = "file with the server's RSA public key, for caching_sha2_password without TLS"},
	{.name = "get_server_public_key", .type = UTIL_OPTION_BOOL, .default_text = "false",
	.description = "take the RSA key that the server sends without TLS, although anybody on the way could replace it"},
	{.name = "connect_timeout", .type = UTIL_OPTION_INT, .default_text = "10", .min = 1, .max = 300, .unit = "s",
	.description = "how long connecting and login may take"},
	{.name = "query_timeout", .type = UTIL_OPTION_INT, .default_text = "60", .min = 0, .max = 86400, .unit = "s",
	.description = "how long the server may be silent while an answer or its next row is awaited; 0 waits for ever"},
	{.name = "failover_delay", .type = UTIL_OPTION_INT, .default_text = "5", .min = 0, .max = 86400, .unit = "s",
	.description = "how long the server that is followed may be gone before another one of the hosts is followed"},
	{.name = "heartbeat_interval", .type = UTIL_OPTION_INT, .default_text = "1000", .min = 100, .max = 60000, .unit = "ms",
	.description = "how often an idle server says that it is there; five missing ones end the connection"},
	{.name = "server_id", .type = UTIL_OPTION_INT, .default_text = "0", .min = 0, .max = INT_MAX,
	.description = "server_id of the reading connection; 0 derives one that is unique per pipeline"},
};

const UtilOptionTable mysql_server_options = {
	.kind = "server",
	.subject = "cdc_mysql",
	.options = server_option_list,
	.count = lengthof(server_option_list)
};

static const UtilOption user_mapping_option_list[] = {
	{.name = "username", .type = UTIL_OPTION_TEXT,
	.description = "user on the server"},
	{.name = "password", .type = UTIL_OPTION_TEXT, .secret = true,
	.description = "password of that user"},
	{.name = "password_file", .type = UTIL_OPTION_TEXT, .superuser_only = true,
	.description = "file on the database server whose first line is the password; keeps it out of dumps"},
};

const UtilOptionTable mysql_user_mapping_options = {
	.kind = "user mapping",
	.subject = "cdc_mysql",
	.options = user_mapping_option_list,
	.count = lengthof(user_mapping_option_list)
};

/* Value of an option in a list of DefElem, or NULL. */
static const char *
find_option(List *options, const char *name)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *def = lfirst_node(DefElem, lc);

		if (strcmp(def->defname, name) == 0)
			return defGetString(def);
	}
	return NULL;
}

/* The next element of a list that commas separate, without blanks around it, palloc'd; moves *list behind it, to NULL at the end. */
static char *
next_element(const char **list)
{
	const char *start = *list + strspn(*list, " \t");
	const char *end = start + strcspn(start, ",");

	*list = *end == ',' ? end + 1 : NULL;
	while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	return pnstrdup(start, end - start);
}

/* Number of a port; 0 when it is none. */
static int
parse_port(const char *text)
{
	size_t		len = strlen(text);

	if (len == 0 || len > 5 || strspn(text, "0123456789") != len || atoi(text) > PORT_MAX)
		return 0;
	return atoi(text);
}

static _Noreturn void
throw_bad_list(const char *name, const char *value, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
			 errmsg("invalid value for option \"%s\" of cdc_mysql server: \"%s\"", name, value),
			 errhint("%s", hint)));
}

/* The options "host" and "port" as hosts; throws when they are no lists, or of different lengths. */
static MysqlHost *
parse_hosts(const char *host, const char *port, int *nhosts)
{
	List	   *names = NIL;
	List	   *ports = NIL;
	MysqlHost  *hosts;

	for (const char *rest = host; rest != NULL;)
	{
		names = lappend(names, next_element(&rest));
		if (((char *) llast(names))[0] == '\0')
			throw_bad_list("host", host, "The value must be a host name or an address, or a list of them, separated by commas.");
	}
	for (const char *rest = port; rest != NULL;)
	{
		ports = lappend_int(ports, parse_port(next_element(&rest)));
		if (llast_int(ports) == 0)
			throw_bad_list("port", port, "Valid values are whole numbers from 1 to 65535, or a list of them, separated by commas, with one for each host.");
	}
	if (list_length(ports) != 1 && list_length(ports) != list_length(names))
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("option \"port\" of cdc_mysql server has another number of elements than \"host\""),
				 errdetail("Number of hosts: %d. Number of ports: %d.", list_length(names), list_length(ports)),
				 errhint("Give one port for all hosts, or one for each.")));

	*nhosts = list_length(names);
	hosts = palloc0(sizeof(MysqlHost) * *nhosts);
	for (int i = 0; i < *nhosts; i++)
	{
		hosts[i].name = list_nth(names, i);
		hosts[i].port = list_nth_int(ports, list_length(ports) == 1 ? 0 : i);
	}
	return hosts;
}

static const char *
server_text(List *options, const char *name)
{
	return util_option_text(&mysql_server_options, name, find_option(options, name));
}

static int
server_int(List *options, const char *name)
{
	return util_option_int(&mysql_server_options, name, find_option(options, name));
}

/* Options of the role's user mapping, else of PUBLIC's; throws when there is none. */
static List *
load_user_mapping(Oid serverid, Oid userid, const char *server_name)
{
	HeapTuple	tuple;
	Datum		datum;
	bool		isnull;
	List	   *options = NIL;

	tuple = SearchSysCache2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(userid), ObjectIdGetDatum(serverid));
	if (!HeapTupleIsValid(tuple))
		tuple = SearchSysCache2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(InvalidOid), ObjectIdGetDatum(serverid));
	if (!HeapTupleIsValid(tuple))
	{
		const char *role = GetUserNameFromId(userid, false);

		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("user mapping not found for user \"%s\", server \"%s\"", role, server_name),
				 errhint("Use CREATE USER MAPPING FOR %s SERVER %s OPTIONS (username '...', password '...').",
						 quote_identifier(role), quote_identifier(server_name))));
	}
	datum = SysCacheGetAttr(USERMAPPINGUSERSERVER, tuple, Anum_pg_user_mapping_umoptions, &isnull);
	if (!isnull)
		options = untransformRelOptions(datum);
	ReleaseSysCache(tuple);
	return options;
}

/* First line of the file, without its end. */
static char *
read_password_file(const char *path, const char *server_name)
{
	FILE	   *file = AllocateFile(path, "r");
	char		line[PASSWORD_MAX + 2];
	char	   *password;
	bool		got;
	size_t		len;

	if (file == NULL)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open password file \"%s\" of server \"%s\": %m", path, server_name)));
	got = fgets(line, sizeof(line), file) != NULL;
	if (!got && ferror(file))
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read password file \"%s\" of server \"%s\": %m", path, server_name)));
	FreeFile(file);
	if (!got)
		line[0] = '\0';
	len = strcspn(line, "\r\n");
	if (len > PASSWORD_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("first line of password file \"%s\" of server \"%s\" is too long", path, server_name)));
	password = pnstrdup(line, len);
	explicit_bzero(line, sizeof(line));
	return password;
}

/* Can nobody stand between us and that host? */
static bool
host_is_loopback(const char *host)
{
	struct in_addr v4;
	struct in6_addr v6;

	if (pg_strcasecmp(host, "localhost") == 0)
		return true;
	if (inet_pton(AF_INET, host, &v4) == 1)
		return (ntohl(v4.s_addr) >> 24) == 127;
	if (inet_pton(AF_INET6, host, &v6) == 1)
		return IN6_IS_ADDR_LOOPBACK(&v6);
	return false;
}

static MysqlSslMode
sslmode_from_text(const char *text, bool is_local)
{
	if (text == NULL)
		return is_local ? MYSQL_SSL_DISABLE : MYSQL_SSL_REQUIRE;
	if (strcmp(text, "disable") == 0)
		return MYSQL_SSL_DISABLE;
	if (strcmp(text, "verify-ca") == 0)
		return MYSQL_SSL_VERIFY_CA;
	if (strcmp(text, "verify-full") == 0)
		return MYSQL_SSL_VERIFY_FULL;
	return MYSQL_SSL_REQUIRE;
}

/* Each host has its own default of sslmode. */
static void
load_hosts(MysqlEndpoint *endpoint, List *options)
{
	const char *sslmode = find_option(options, "sslmode");

	if (endpoint->socket != NULL)
	{
		endpoint->hosts = palloc0(sizeof(MysqlHost));
		endpoint->nhosts = 1;
	}
	else
		endpoint->hosts = parse_hosts(server_text(options, "host"), server_text(options, "port"), &endpoint->nhosts);
	for (int i = 0; i < endpoint->nhosts; i++)
	{
		MysqlHost  *host = &endpoint->hosts[i];

		host->is_local = host->name == NULL || host_is_loopback(host->name);
		host->sslmode = sslmode_from_text(sslmode, host->is_local);
	}
}

void
mysql_server_options_check(List *options)
{
	int			nhosts;

	(void) parse_hosts(server_text(options, "host"), server_text(options, "port"), &nhosts);
}

char *
mysql_host_text(const MysqlEndpoint *endpoint, int host)
{
	const MysqlHost *h = &endpoint->hosts[host];

	return h->name == NULL ? psprintf("socket \"%s\"", endpoint->socket) : psprintf("host \"%s\", port %d", h->name, h->port);
}

/*
 * Make the endpoint of a server for a role. The password file, when there is
 * one, is read now and wins over an option "password".
 */
MysqlEndpoint *
mysql_endpoint_load(Oid serverid, Oid userid)
{
	ForeignServer *server = GetForeignServer(serverid);
	MysqlEndpoint *endpoint = palloc0(sizeof(MysqlEndpoint));
	List	   *mapping = load_user_mapping(serverid, userid, server->servername);
	const char *password_file = find_option(mapping, "password_file");

	endpoint->server_name = pstrdup(server->servername);
	endpoint->socket = server_text(server->options, "socket");
	load_hosts(endpoint, server->options);
	endpoint->ssl_ca = server_text(server->options, "ssl_ca");
	endpoint->ssl_cert = server_text(server->options, "ssl_cert");
	endpoint->ssl_key = server_text(server->options, "ssl_key");
	endpoint->server_public_key = server_text(server->options, "server_public_key");
	endpoint->get_server_public_key = util_option_bool(&mysql_server_options, "get_server_public_key",
													   find_option(server->options, "get_server_public_key"));
	endpoint->connect_timeout = server_int(server->options, "connect_timeout");
	endpoint->query_timeout = server_int(server->options, "query_timeout");
	endpoint->heartbeat_interval = server_int(server->options, "heartbeat_interval");
	endpoint->failover_delay = server_int(server->options, "failover_delay");
	endpoint->server_id = (uint32) server_int(server->options, "server_id");

	endpoint->username = find_option(mapping, "username");
	if (endpoint->username == NULL || endpoint->username[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_FDW_OPTION_NAME_NOT_FOUND),
				 errmsg("user mapping for server \"%s\" has no username", server->servername),
				 errhint("Use ALTER USER MAPPING ... SERVER %s OPTIONS (ADD username '...').",
						 quote_identifier(server->servername))));
	endpoint->password = find_option(mapping, "password");
	if (password_file != NULL)
		endpoint->password = read_password_file(password_file, server->servername);
	if (endpoint->hosts[0].sslmode == MYSQL_SSL_VERIFY_CA && endpoint->ssl_ca == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_OPTION_NAME_NOT_FOUND),
				 errmsg("server \"%s\" has sslmode \"verify-ca\" but no ssl_ca", server->servername),
				 errhint("Use ALTER SERVER %s OPTIONS (ADD ssl_ca '...') to name the file with the trusted certificates.",
						 quote_identifier(server->servername))));
	return endpoint;
}
