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

static const char *const sslmode_values[] = {"disable", "require", "verify-ca", "verify-full", NULL};

static const UtilOption server_option_list[] = {
	{.name = "host", .type = UTIL_OPTION_TEXT, .default_text = "localhost",
	.description = "host name or address of the server; always TCP"},
	{.name = "port", .type = UTIL_OPTION_INT, .default_text = "3306", .min = 1, .max = 65535,
	.description = "TCP port of the server"},
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
	endpoint->host = server_text(server->options, "host");
	endpoint->port = server_int(server->options, "port");
	endpoint->socket = server_text(server->options, "socket");
	endpoint->is_local = endpoint->socket != NULL || host_is_loopback(endpoint->host);
	endpoint->sslmode = sslmode_from_text(find_option(server->options, "sslmode"), endpoint->is_local);
	endpoint->ssl_ca = server_text(server->options, "ssl_ca");
	endpoint->ssl_cert = server_text(server->options, "ssl_cert");
	endpoint->ssl_key = server_text(server->options, "ssl_key");
	endpoint->server_public_key = server_text(server->options, "server_public_key");
	endpoint->get_server_public_key = util_option_bool(&mysql_server_options, "get_server_public_key",
													   find_option(server->options, "get_server_public_key"));
	endpoint->connect_timeout = server_int(server->options, "connect_timeout");
	endpoint->query_timeout = server_int(server->options, "query_timeout");
	endpoint->heartbeat_interval = server_int(server->options, "heartbeat_interval");
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
	if (endpoint->sslmode == MYSQL_SSL_VERIFY_CA && endpoint->ssl_ca == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_OPTION_NAME_NOT_FOUND),
				 errmsg("server \"%s\" has sslmode \"verify-ca\" but no ssl_ca", server->servername),
				 errhint("Use ALTER SERVER %s OPTIONS (ADD ssl_ca '...') to name the file with the trusted certificates.",
						 quote_identifier(server->servername))));
	return endpoint;
}
