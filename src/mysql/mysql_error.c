/*-------------------------------------------------------------------------
 *
 * mysql_error.c
 *	  Errors of server and client library -> ereport.
 *
 * NOTES
 *	  One place decides the SQLSTATE, because the pipeline manager decides by
 *	  it whether to try again. Numbers below 2000 and from 3000 on are the
 *	  server's, 2000 to 2999 and 5000 to 5999 the client library's.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "mysql/mysql_error.h"
#include "util/util_error.h"

/* What is thrown; strings in CurrentMemoryContext. */
typedef struct Report
{
	int			sqlstate;
	const char *message;
	const char *hint;			/* or NULL */
} Report;

bool
mysql_error_is_connection_loss(unsigned int code)
{
	switch (code)
	{
		case 1053:				/* server shutdown in progress */
		case 1077:				/* normal shutdown */
		case 1079:				/* shutdown complete */
		case 1927:				/* MariaDB: connection was killed */
		case 3169:				/* MySQL: session was killed */
		case 4031:				/* MySQL: disconnected for inactivity */
		case MYSQL_THREAD_END_OF_STREAM:
		case MYSQL_THREAD_OUT_OF_MEMORY:
		case MYSQL_THREAD_GAVE_UP:
			return true;
		default:
			return (code >= 2000 && code <= 2999) || (code >= 5000 && code <= 5999);
	}
}

static bool
mentions(const MysqlThreadError *error, const char *text)
{
	return strstr(error->text, text) != NULL;
}

/* Errors by which a server refuses a login for good. */
static bool
is_login_refusal(unsigned int code)
{
	switch (code)
	{
		case 1044:				/* no access to the database */
		case MYSQL_ERR_ACCESS_DENIED:
		case 1130:				/* host is not allowed */
		case 1251:				/* client does not support the protocol */
		case 1524:				/* plugin is not loaded */
		case 1698:				/* access denied, MariaDB */
		case 1820:				/* password must be changed */
		case 1862:				/* password expired */
		case 2049:				/* old authentication */
		case MYSQL_ERR_NO_PLUGIN:
		case 2061:				/* plugin says no */
		case MYSQL_ERR_PLUGIN_NOT_ALLOWED:
		case 3118:				/* account is locked */
		case 3955:				/* account blocked after failed logins */
		case 4151:				/* MariaDB: account is locked */
			return true;
		default:
			return false;
	}
}

/* The library could not get through caching_sha2_password because we keep the key from it. */
static bool
is_key_refusal(const MysqlErrorSite *site, const MysqlThreadError *error)
{
	if (!site->key_was_refused)
		return false;
	return error->code == 2000 || error->code == 2061 || error->code == MYSQL_ERR_NO_PLUGIN ||
		error->code == 5014 || mentions(error, "caching_sha2") || mentions(error, "public key");
}

/*
 * The client library has no such plugin to log in. libmariadb (3.3.20) may leave
 * its text beside the number of what the server said to that, "access denied".
 */
static bool
is_plugin_missing(const MysqlThreadError *error)
{
	return !mentions(error, "caching_sha2") &&
		(error->code == MYSQL_ERR_NO_PLUGIN ||
		 (error->code == MYSQL_ERR_ACCESS_DENIED && mentions(error, "could not be loaded")));
}

static void
report_connect(const MysqlErrorSite *site, const MysqlThreadError *error, Report *report)
{
	report->sqlstate = ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION;
	report->message = psprintf("could not connect to source server \"%s\"", site->server_name);
	if (is_plugin_missing(error))
	{
		report->sqlstate = ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION;
		report->hint = "The client library of this server has no such way to log in. Install a libmariadb that has it (PARSEC: 3.4 and later), "
			"or give the account another one with ALTER USER on the source: ed25519 on MariaDB, caching_sha2_password on MySQL.";
	}
	else if (error->code == MYSQL_ERR_PLUGIN_NOT_ALLOWED)
	{
		report->sqlstate = ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION;
		report->hint = "This way to log in is not taken, because it may show the password to whoever answers. "
			"Give the account another one with ALTER USER on the source: ed25519 on MariaDB, caching_sha2_password on MySQL.";
	}
	else if (is_key_refusal(site, error))
	{
		report->sqlstate = ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION;
		report->hint = "The user logs in by caching_sha2_password, which needs TLS (sslmode \"require\"), "
			"the server's key in a file (server_public_key), or get_server_public_key \"true\".";
	}
	else if (is_login_refusal(error->code))
	{
		report->sqlstate = ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION;
		report->hint = "Check username and password of the user mapping, and the account on the source.";
	}
	else if (error->code == 1040 || error->code == 1203 || error->code == 1226)
		report->sqlstate = ERRCODE_TOO_MANY_CONNECTIONS;
	else if (error->code == 2026)
		report->hint = "TLS could not be set up: check sslmode and ssl_ca of the server's options, and the source's certificate.";
	else if (error->code == MYSQL_THREAD_OUT_OF_MEMORY)
		report->sqlstate = ERRCODE_OUT_OF_MEMORY;
	else
		report->hint = "Check host and port of the server's options, that the source runs, and what it listens on.";
}

/*
 * GRANT statement for what the server says is missing. 1227 reads "... you need
 * (at least one of) the REPLICATION SLAVE privilege(s) for this operation", 1142
 * "SELECT command denied to user 'u'@'h' for table `db`.`t`".
 */
static const char *
grant_hint(const MysqlErrorSite *site, const MysqlThreadError *error)
{
	const char *account = site->account ? site->account : site->username;
	const char *start = strstr(error->text, "(at least one of) the ");
	const char *end = start ? strstr(start, " privilege(s)") : NULL;

	if (start != NULL && end != NULL)
	{
		char	   *privileges;
		char	   *comma;

		start += strlen("(at least one of) the ");
		privileges = pnstrdup(start, end - start);
		/* any one of the list will do; the dynamic privilege at the end is the narrow one */
		comma = strrchr(privileges, ',');
		if (comma != NULL)
			privileges = comma + 1 + strspn(comma + 1, " ");
		return psprintf("Run on the source: GRANT %s ON *.* TO %s;", privileges, account);
	}
	start = strstr(error->text, " command denied to user ");
	if (start != NULL)
	{
		char	   *privilege = pnstrdup(error->text, start - error->text);
		const char *table = strstr(error->text, " for table ");

		if (table == NULL)
			return psprintf("Run on the source: GRANT %s ON *.* TO %s;", privilege, account);
		table += strlen(" for table ");
		if (table[0] == '`')
			return psprintf("Run on the source: GRANT %s ON %s TO %s;", privilege, table, account);
		/* without the schema there is no statement to paste */
		return psprintf("On the source, user %s needs %s on table %s.", account, privilege, table);
	}
	return psprintf("Run on the source: GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO %s;", account);
}

static void
report_no_privilege(const MysqlErrorSite *site, const MysqlThreadError *error, Report *report)
{
	report->sqlstate = CDC_ERRCODE_SOURCE_SETTING;
	report->message = psprintf("user \"%s\" lacks a privilege on source server \"%s\"",
							   site->username, site->server_name);
	report->hint = grant_hint(site, error);
}

static void
report_connection_loss(const MysqlErrorSite *site, const MysqlThreadError *error, Report *report)
{
	report->sqlstate = error->code == MYSQL_THREAD_OUT_OF_MEMORY
		? ERRCODE_OUT_OF_MEMORY : ERRCODE_CONNECTION_FAILURE;
	report->message = psprintf("lost connection to source server \"%s\"", site->server_name);
}

static void
report_query(const MysqlErrorSite *site, const MysqlThreadError *error, Report *report)
{
	report->sqlstate = ERRCODE_FDW_ERROR;
	report->message = psprintf("could not query source server \"%s\"", site->server_name);
	switch (error->code)
	{
		case 1044:
		case MYSQL_ERR_ACCESS_DENIED:
		case 1142:				/* no privilege on the table */
		case 1143:				/* no privilege on the column */
		case 1227:				/* no such global privilege */
		case 1370:				/* no privilege on the routine */
			report_no_privilege(site, error, report);
			break;
		case 1049:
			report->sqlstate = ERRCODE_FDW_SCHEMA_NOT_FOUND;
			break;
		case 1146:
			report->sqlstate = ERRCODE_FDW_TABLE_NOT_FOUND;
			break;
		case 1054:
			report->sqlstate = ERRCODE_FDW_COLUMN_NAME_NOT_FOUND;
			break;
		case 1205:				/* lock wait time-out */
			report->sqlstate = ERRCODE_LOCK_NOT_AVAILABLE;
			break;
		case 1213:				/* deadlock */
			report->sqlstate = ERRCODE_T_R_DEADLOCK_DETECTED;
			break;
		case 1412:				/* table definition changed since the snapshot was opened: read again */
			report->sqlstate = ERRCODE_T_R_SERIALIZATION_FAILURE;
			break;
		default:
			break;
	}
}

static const char *
start_anew_hint(void)
{
	return "If the position was set with cdc_set_position(), set another one. "
		"Else stop the pipeline and use cdc_set_position() with anew => true: all tables are copied anew beside their rows.";
}

/* Could the server make nothing of what stands at the position? Then it stood in another log. */
static bool
is_no_position(const MysqlErrorSite *site, const MysqlThreadError *error)
{
	return site->position_is_unproven && !mentions(error, "memory") &&
		(mentions(error, "log event") || mentions(error, "max_allowed_packet") ||
		 mentions(error, "in the middle of event") || mentions(error, "crc check") ||
		 mentions(error, "the first event '"));
}

/* What a dump was refused for, told by the text: every reason has the number 1236. */
static void
report_dump(const MysqlErrorSite *site, const MysqlThreadError *error, Report *report)
{
	report->sqlstate = ERRCODE_CONNECTION_FAILURE;
	report->message = psprintf("could not read the binary log of source server \"%s\"", site->server_name);
	if (error->code == 1227 || error->code == MYSQL_ERR_ACCESS_DENIED || error->code == 1142)
		report_no_privilege(site, error, report);
	else if (error->code != MYSQL_ERR_BINLOG && error->code != 4052)
		return;
	else if (mentions(error, "purged required binary logs") ||
			 mentions(error, "purged required gtids") ||
			 mentions(error, "Could not find first log file name") ||
			 mentions(error, "Could not find GTID state requested") ||
			 mentions(error, "even though a subsequent sequence number does exist") ||
			 mentions(error, "could not find next log"))
	{
		report->sqlstate = CDC_ERRCODE_POSITION_LOST;
		report->message = psprintf("source server \"%s\" no longer has the wanted position", site->server_name);
		report->hint = start_anew_hint();
	}
	else if (mentions(error, "more GTIDs than the") ||
			 mentions(error, "which is not in the master's binlog") ||
			 mentions(error, "than the binlog size") ||
			 mentions(error, "position > file size") ||
			 mentions(error, "impossible position") ||
			 mentions(error, "beyond the end") ||
			 is_no_position(site, error) ||
			 mentions(error, "truncated in the middle of event"))
	{
		report->sqlstate = CDC_ERRCODE_SOURCE_REPLACED;
		report->message = psprintf("source server \"%s\" does not have the log that was followed", site->server_name);
		report->hint = "If the position was set with cdc_set_position(), set another one. "
			"Else the server was replaced, reset or restored from an older copy: stop the pipeline and use cdc_set_position() with "
			"anew => true, and all tables are copied anew beside their rows.";
	}
	else if (mentions(error, "same server_uuid/server_id") || mentions(error, "same server_id"))
	{
		report->sqlstate = ERRCODE_OBJECT_IN_USE;
		report->message = psprintf("another replica of source server \"%s\" has our server_id", site->server_name);
		report->hint = "Set another server_id in the server's options, or on the other replica.";
	}
	else if (mentions(error, "GTID_MODE = OFF"))
	{
		report->sqlstate = CDC_ERRCODE_SOURCE_SETTING;
		report->message = psprintf("source server \"%s\" does not write GTIDs", site->server_name);
		report->hint = "Set gtid_mode = ON and enforce_gtid_consistency = ON on the source.";
	}
	else if (mentions(error, "Binary log is not open"))
	{
		report->sqlstate = CDC_ERRCODE_SOURCE_SETTING;
		report->message = psprintf("source server \"%s\" does not write a binary log", site->server_name);
		report->hint = "Set log_bin and server_id on the source and restart it.";
	}
	else if (mentions(error, "max_allowed_packet"))
	{
		report->sqlstate = CDC_ERRCODE_SOURCE_SETTING;
		report->hint = "Set replica_max_allowed_packet (MariaDB: slave_max_allowed_packet) and max_allowed_packet "
			"= 1073741824 on the source.";
	}
}

/*
 * Throw what the thread reported. The server's text never holds a password or a
 * conninfo; it may hold an account's name.
 */
void
mysql_error_throw(const MysqlErrorSite *site, const MysqlThreadError *error)
{
	Report		report = {0};
	char	   *text = pstrdup(error->text[0] ? error->text : "the client library gave no reason");
	size_t		text_len;
	const char *wanted = "";
	StringInfoData number;

	/* libmariadb (3.3.20) names the plugin from a buffer that it has written other things into, our answer to the greeting */
	if (error->code == MYSQL_ERR_PLUGIN_NOT_ALLOWED)
		text = pstrdup("the server asks for a way to log in that is not taken");
	text_len = strlen(text);
	/* a full stop of its own would stand before ours */
	if (text[text_len - 1] == '.')
		text[text_len - 1] = '\0';
	initStringInfo(&number);
	if (error->code >= 1000)
		appendStringInfo(&number, " (error %u)", error->code);

	if (site->stage == MYSQL_STAGE_CONNECT)
		report_connect(site, error, &report);
	else if (mysql_error_is_connection_loss(error->code))
		report_connection_loss(site, error, &report);
	else if (site->stage == MYSQL_STAGE_QUERY)
		report_query(site, error, &report);
	else
		report_dump(site, error, &report);

	if (site->position != NULL &&
		(report.sqlstate == CDC_ERRCODE_POSITION_LOST || report.sqlstate == CDC_ERRCODE_SOURCE_REPLACED))
		wanted = psprintf(" Wanted %s.", site->position);

	if (site->stage == MYSQL_STAGE_CONNECT)
		ereport(ERROR,
				(errcode(report.sqlstate),
				 errmsg_internal("%s", report.message),
				 errdetail("User \"%s\" at %s: %s%s.", site->username, site->target, text, number.data),
				 report.hint ? errhint("%s", report.hint) : 0));
	ereport(ERROR,
			(errcode(report.sqlstate),
			 errmsg_internal("%s", report.message),
			 errdetail("The server said: %s%s.%s", text, number.data, wanted),
			 report.hint ? errhint("%s", report.hint) : 0));
	pg_unreachable();
}
