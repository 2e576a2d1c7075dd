/*-------------------------------------------------------------------------
 *
 * source_check.c
 *	  Can a MySQL-family server be followed?
 *
 * NOTES
 *	  One function per topic, each adding one line or more. A setting is read
 *	  from SHOW GLOBAL VARIABLES, so one that a version does not know is just
 *	  missing. Privileges are found out by trying where that is possible without
 *	  harm, else from SHOW GRANTS. Everything wrong is reported at once.
 *
 *	  "error" means that changes would be missing or wrong; "warning" that
 *	  something will not work in a case that may come (an outage, a failover).
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/memutils.h"

#include "source/source_check.h"
#include "util/util_error.h"

/* Names of tables that a line lists before it only counts. */
#define LISTED_TABLES 5
/* With more tables than this, a check tries none of them. */
#define CHECKED_TABLES 100
#define SECONDS_PER_DAY 86400

typedef struct Variable
{
	char	   *name;
	char	   *value;
} Variable;

/* A line and the words that follow 'source server "shop"' when it is thrown. */
typedef struct CheckLine
{
	CdcCheckLine line;			/* first: callers see only this */
	const char *problem;
} CheckLine;

typedef struct CheckState
{
	const SourceCheck *check;
	MysqlSession *session;
	const MysqlServerInfo *info;
	bool		is_mariadb;
	List	   *variables;		/* of Variable */
	List	   *grants;			/* lines of SHOW GRANTS, char * */
	List	   *lines;			/* of CheckLine */
	bool		is_replica;
	bool		replica_unknown;	/* no privilege to ask */
} CheckState;

static const char *const variable_names[] = {
	"log_bin", "binlog_format", "binlog_row_image", "binlog_row_metadata", "binlog_row_value_options",
	"gtid_mode", "enforce_gtid_consistency", "gtid_strict_mode", "server_id",
	"sync_binlog", "binlog_expire_logs_seconds", "expire_logs_days", "max_binlog_total_size", "log_replica_updates", "log_slave_updates",
	"replica_preserve_commit_order", "replica_parallel_workers",
	"innodb_native_foreign_keys", "mysql56_temporal_format", "wsrep_on",
};

static void
add_line(CheckState *state, const char *name, const char *status, const char *detail,
		 const char *hint, const char *problem)
{
	CheckLine  *line = palloc0(sizeof(CheckLine));

	line->line.check = name;
	line->line.status = status;
	line->line.detail = detail;
	line->line.hint = hint;
	line->problem = problem;
	state->lines = lappend(state->lines, line);
}

static void
add_ok(CheckState *state, const char *name, const char *detail)
{
	add_line(state, name, "ok", detail, NULL, NULL);
}

static void
add_warning(CheckState *state, const char *name, const char *detail, const char *hint)
{
	add_line(state, name, "warning", detail, hint, NULL);
}

static void
add_error(CheckState *state, const char *name, const char *detail, const char *hint, const char *problem)
{
	add_line(state, name, "error", detail, hint, problem);
}

static void
read_variables(CheckState *state)
{
	StringInfoData sql;
	MysqlRow	row;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SHOW GLOBAL VARIABLES WHERE variable_name IN (");
	for (int i = 0; i < (int) lengthof(variable_names); i++)
		appendStringInfo(&sql, "%s'%s'", i ? ", " : "", variable_names[i]);
	appendStringInfoChar(&sql, ')');
	mysql_session_query(state->session, sql.data);
	while (mysql_session_fetch(state->session, &row))
	{
		Variable   *variable = palloc(sizeof(Variable));

		variable->name = pstrdup(row.values[0] ? row.values[0] : "");
		variable->value = pstrdup(row.values[1] ? row.values[1] : "");
		state->variables = lappend(state->variables, variable);
	}
}

/* Value of a variable, or NULL when the server does not know it. */
static const char *
variable_value(CheckState *state, const char *name)
{
	ListCell   *lc;

	foreach(lc, state->variables)
	{
		Variable   *variable = lfirst(lc);

		if (pg_strcasecmp(variable->name, name) == 0)
			return variable->value;
	}
	return NULL;
}

static bool
variable_is(CheckState *state, const char *name, const char *value)
{
	const char *now = variable_value(state, name);

	return now != NULL && pg_strcasecmp(now, value) == 0;
}

static bool
is_off(const char *value)
{
	return value != NULL && (pg_strcasecmp(value, "OFF") == 0 || strcmp(value, "0") == 0);
}

/*
 * Run a statement that the server may refuse for lack of privileges; false when
 * it did. first_fields, when not NULL, gets the first field of each row, as a List of char *.
 * No subtransaction is needed: nothing but the session is touched.
 */
static bool
try_statement(CheckState *state, const char *sql, List **first_fields)
{
	MemoryContext cxt = CurrentMemoryContext;
	volatile bool done = true;
	List	   *volatile fields = NIL;
	MysqlRow	row;

	PG_TRY();
	{
		mysql_session_query(state->session, sql);
		while (mysql_session_fetch(state->session, &row))
			fields = lappend(fields, pstrdup(row.nfields > 0 && row.values[0] != NULL ? row.values[0] : ""));
	}
	PG_CATCH();
	{
		if (geterrcode() != CDC_ERRCODE_SOURCE_SETTING)
			PG_RE_THROW();
		MemoryContextSwitchTo(cxt);
		FlushErrorState();
		done = false;
	}
	PG_END_TRY();
	if (first_fields != NULL)
		*first_fields = fields;
	return done;
}

static void
check_version(CheckState *state)
{
	const MysqlServerInfo *info = state->info;
	const char *family = state->is_mariadb ? "MariaDB" : "MySQL";
	int			minimum = state->is_mariadb ? 100500 : 80001;
	const char *detail = psprintf("%s %s, server_id %u, lower_case_table_names %d.",
								  family, info->version_text, info->server_id, info->lower_case_table_names);

	if (info->version < minimum)
		add_error(state, "version", detail,
				  psprintf("Row metadata needs %s or later.", state->is_mariadb ? "MariaDB 10.5" : "MySQL 8.0.1"),
				  "is too old");
	else
		add_ok(state, "version", detail);
}

static void
check_log_bin(CheckState *state)
{
	if (variable_is(state, "log_bin", "ON") || variable_is(state, "log_bin", "1"))
		add_ok(state, "log_bin", "The server writes a binary log.");
	else
		add_error(state, "log_bin", "The server's log_bin is \"OFF\".",
				  "Set log_bin and server_id in the source's configuration file and restart it.",
				  "does not write a binary log");
}

/* A setting that must have one value, and the statement that gives it. */
static void
check_required(CheckState *state, const char *name, const char *wanted, const char *statement, const char *problem)
{
	const char *value = variable_value(state, name);

	if (value == NULL)
		return;
	if (pg_strcasecmp(value, wanted) == 0)
		add_ok(state, name, psprintf("The server's %s is \"%s\".", name, value));
	else
		add_error(state, name,
				  psprintf("The server's %s is \"%s\". Sessions that are open keep the value until they reconnect; "
						   "the configuration file keeps it over a restart.", name, value),
				  statement, problem);
}

/* Images that leave columns out are completed, but not everything can be. */
static void
check_row_image(CheckState *state)
{
	const char *image = variable_value(state, "binlog_row_image");
	const char *options = variable_value(state, "binlog_row_value_options");
	bool		is_full = image == NULL || pg_strcasecmp(image, "FULL") == 0 || pg_strcasecmp(image, "FULL_NODUP") == 0;

	if (is_full && image != NULL)
		add_ok(state, "binlog_row_image", psprintf("The server's binlog_row_image is \"%s\".", image));
	else if (!is_full)
		add_warning(state, "binlog_row_image",
					psprintf("The server's binlog_row_image is \"%s\": what an image leaves out is taken from the target's row or the column's default. "
							 "A row that the target does not have stops its table%s, and a copy reads rows that change meanwhile twice.",
							 image,
							 state->is_mariadb
							 ? ", so do (with MINIMAL) REPLACE and INSERT ... ON DUPLICATE KEY UPDATE, and (with NOBLOB) a REPLACE that leaves out a blob is not told from an update"
							 : ""),
					"SET GLOBAL binlog_row_image = FULL;");
	if (options == NULL)
		return;
	if (options[0] == '\0' || is_full)
		add_ok(state, "binlog_row_value_options", psprintf("The server's binlog_row_value_options is \"%s\".", options));
	else
		add_warning(state, "binlog_row_value_options",
					psprintf("The server's binlog_row_value_options is \"%s\": without full row images, differences of JSON documents are applied to what the target has.", options),
					"SET GLOBAL binlog_row_value_options = '';");
}

static void
check_binlog_settings(CheckState *state)
{
	check_required(state, "binlog_format", "ROW", "SET GLOBAL binlog_format = ROW;",
				   "does not write row events");
	check_required(state, "binlog_row_metadata", "FULL", "SET GLOBAL binlog_row_metadata = FULL;",
				   "does not write full row metadata");
	check_row_image(state);
}

static void
check_gtids(CheckState *state)
{
	if (state->is_mariadb)
	{
		if (is_off(variable_value(state, "gtid_strict_mode")))
			add_warning(state, "gtid_strict_mode", "The server's gtid_strict_mode is \"OFF\": its GTIDs may be out of order.",
						"SET GLOBAL gtid_strict_mode = ON;");
		else
			add_ok(state, "gtid_strict_mode", "The server's gtid_strict_mode is \"ON\".");
	}
	else if (state->info->gtid_on)
		add_ok(state, "gtid_mode", "The server's gtid_mode is \"ON\".");
	else
	{
		add_warning(state, "gtid_mode",
					"Without GTIDs a pipeline follows by file and offset and cannot move to another server.",
					"Set enforce_gtid_consistency = ON and gtid_mode = ON in the source's configuration and restart it.");
		if (try_statement(state, "SELECT local FROM performance_schema.log_status", NULL))
			add_ok(state, "log_status", "The start mark of a snapshot can be read.");
		else
			add_error(state, "log_status",
					  "Without GTIDs the start mark of a snapshot is read from performance_schema.log_status.",
					  psprintf("GRANT BACKUP_ADMIN ON *.* TO %s; "
							   "GRANT SELECT ON performance_schema.log_status TO %s;",
							   mysql_session_account(state->session), mysql_session_account(state->session)),
					  "does not show its log status");
	}
}

/*
 * Has a replica that shows itself to the server the number that we would come with? MariaDB would throw one of the two out
 * whenever the other comes. Who may not ask does not get to know.
 */
static bool
server_id_is_taken(CheckState *state)
{
	bool		is_new = !state->is_mariadb && state->info->version >= 80022;
	List	   *ids;
	ListCell   *lc;

	(void) try_statement(state, is_new ? "SHOW REPLICAS" : "SHOW SLAVE HOSTS", &ids);
	foreach(lc, ids)
	{
		if (strtoul(lfirst(lc), NULL, 10) == state->check->our_server_id)
			return true;
	}
	return false;
}

static void
check_server_id(CheckState *state)
{
	if (state->info->server_id == 0)
		add_error(state, "server_id", "The server's server_id is 0.",
				  "Set server_id in the source's configuration to a number that no other server has.",
				  "has no server_id");
	else if (state->check->our_server_id == state->info->server_id)
		add_error(state, "server_id",
				  psprintf("The option server_id is %u, which is the source's own.", state->check->our_server_id),
				  "Set another server_id in the server's options, or none.",
				  "has the server_id that the pipeline wants to use");
	else if (server_id_is_taken(state))
		add_error(state, "server_id",
				  psprintf("The option server_id is %u, which another replica of the server has.", state->check->our_server_id),
				  "Set another server_id in the server's options, or none.",
				  "has a replica with the server_id that the pipeline wants to use");
	else
		add_ok(state, "server_id", psprintf("The server's server_id is %u.", state->info->server_id));
}

static void
check_retention(CheckState *state)
{
	const char *seconds_text = variable_value(state, "binlog_expire_logs_seconds");
	const char *days_text = variable_value(state, "expire_logs_days");
	const char *size_text = variable_value(state, "max_binlog_total_size");
	double		seconds = seconds_text ? strtod(seconds_text, NULL) : 0;

	if (seconds == 0 && days_text != NULL)
		seconds = strtod(days_text, NULL) * SECONDS_PER_DAY;
	if (seconds == 0)
		add_ok(state, "binlog_expire_logs_seconds", "Binary logs are not removed by age.");
	else if (seconds < SECONDS_PER_DAY)
		add_warning(state, "binlog_expire_logs_seconds",
					psprintf("Binary logs are removed after %.0f s; a longer outage loses the position.", seconds),
					"SET GLOBAL binlog_expire_logs_seconds = 604800;");
	else
		add_ok(state, "binlog_expire_logs_seconds",
			   psprintf("Binary logs are kept for %.1f days.", seconds / SECONDS_PER_DAY));

	/* MariaDB 11.4 and later; 0: no limit */
	if (size_text != NULL && strcmp(size_text, "0") != 0)
		add_warning(state, "max_binlog_total_size",
					psprintf("Binary logs are removed when all of them have more than %s bytes; an outage in which more is written loses the position.", size_text),
					"SET GLOBAL max_binlog_total_size = 0;");
}

/* A log that is not flushed at each commit may lack, after a crash of the machine, what the tables have. */
static void
check_sync(CheckState *state)
{
	const char *value = variable_value(state, "sync_binlog");

	if (value == NULL)
		return;
	if (strcmp(value, "1") == 0)
		add_ok(state, "sync_binlog", "The server's sync_binlog is 1.");
	else
		add_warning(state, "sync_binlog",
					psprintf("The server's sync_binlog is %s: after a crash its log may lack transactions that its tables have.", value),
					"SET GLOBAL sync_binlog = 1;");
}

static void
check_replica(CheckState *state)
{
	const char *name = variable_value(state, "log_replica_updates") ? "log_replica_updates" : "log_slave_updates";
	bool		is_new = !state->is_mariadb && state->info->version >= 80022;
	List	   *rows = NIL;

	if (!try_statement(state, is_new ? "SHOW REPLICA STATUS" : "SHOW SLAVE STATUS", &rows))
		state->replica_unknown = true;
	state->is_replica = rows != NIL;

	if (is_off(variable_value(state, name)))
	{
		if (state->is_replica)
			add_error(state, name, psprintf("The server is a replica and its %s is \"OFF\".", name),
					  psprintf("Set %s = ON in the source's configuration and restart it.", name),
					  "does not log what it replicates");
		else if (state->replica_unknown)
			add_warning(state, name,
						psprintf("The server's %s is \"OFF\": if it is a replica, nothing of what it replicates arrives.", name),
						psprintf("Set %s = ON in the source's configuration and restart it.", name));
	}
	else if (state->is_replica)
		add_ok(state, name, psprintf("The server is a replica and its %s is \"ON\".", name));
	if (state->replica_unknown && state->check->one_of_several)
		add_warning(state, "slave_monitor",
					"A pipeline cannot tell whether this server may take the place of another one later, or never.",
					psprintf("GRANT %s ON *.* TO %s;", state->is_mariadb ? "SLAVE MONITOR" : "REPLICATION CLIENT",
							 mysql_session_account(state->session)));

	if (state->is_replica && is_off(variable_value(state, "replica_preserve_commit_order")) &&
		!is_off(variable_value(state, "replica_parallel_workers")))
		add_warning(state, "replica_preserve_commit_order",
					"The replica applies in parallel without keeping the commit order: its GTIDs have gaps.",
					"SET PERSIST replica_preserve_commit_order = ON;");
}

/* Fields 0 and 1 are schema and table: is it one whose changes matter? */
static bool
row_is_wanted(CheckState *state, const MysqlRow *row)
{
	const char *schema = row->values[0] ? row->values[0] : "";
	const char *table = row->values[1] ? row->values[1] : "";

	if (mysql_schema_is_system(schema))
		return false;
	return state->check->want == NULL || state->check->want(state->check->arg, schema, table);
}

/* Names of the wanted tables that a query gives, "a.b, c.d and 7 more"; NULL when there are none. */
static char *
list_tables(CheckState *state, const char *sql)
{
	StringInfoData buf;
	int			count = 0;
	MysqlRow	row;

	initStringInfo(&buf);
	mysql_session_query(state->session, sql);
	while (mysql_session_fetch(state->session, &row))
	{
		if (!row_is_wanted(state, &row))
			continue;
		if (count++ < LISTED_TABLES)
			appendStringInfo(&buf, "%s\"%s.%s\"", count > 1 ? ", " : "", row.values[0], row.values[1]);
	}
	if (count > LISTED_TABLES)
		appendStringInfo(&buf, " and %d more", count - LISTED_TABLES);
	return count > 0 ? buf.data : NULL;
}

/* Names of the wanted base tables, of CdcTableDef; NIL when there are more than CHECKED_TABLES. */
static List *
tables_to_try(CheckState *state)
{
	List	   *result = NIL;
	MysqlRow	row;

	mysql_session_query(state->session,
						"SELECT table_schema, table_name FROM information_schema.tables "
						"WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') "
						"AND table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') "
						"ORDER BY 1, 2");
	while (mysql_session_fetch(state->session, &row))
	{
		CdcTableDef *def;

		if (!row_is_wanted(state, &row) || list_length(result) > CHECKED_TABLES)
			continue;
		def = palloc0(sizeof(CdcTableDef));
		def->schema = pstrdup(row.values[0]);
		def->name = pstrdup(row.values[1]);
		result = lappend(result, def);
	}
	return list_length(result) > CHECKED_TABLES ? NIL : result;
}

/* A user may have SELECT on some columns of a table only. Without a list of tables, that may be as it should. */
static void
check_readable(CheckState *state)
{
	StringInfoData names;
	StringInfoData grants;
	int			count = 0;
	ListCell   *lc;

	initStringInfo(&names);
	initStringInfo(&grants);
	/* a table that somebody has locked must not hold the check up */
	mysql_session_execute(state->session, "SET lock_wait_timeout = 1");
	foreach(lc, tables_to_try(state))
	{
		const CdcTableDef *def = lfirst(lc);
		char	   *why;

		if (mysql_server_table_readable(state->session, def->schema, def->name, &why) != MYSQL_NOT_READABLE)
			continue;
		if (count++ >= LISTED_TABLES)
			continue;
		appendStringInfo(&names, "%s\"%s.%s\"", count > 1 ? ", " : "", def->schema, def->name);
		appendStringInfo(&grants, "%s%s", count > 1 ? " " : "",
						 mysql_server_grant_select(state->session, def->schema, def->name));
	}
	if (count == 0)
		return;
	if (count > LISTED_TABLES)
		appendStringInfo(&names, " and %d more", count - LISTED_TABLES);
	if (state->check->want == NULL)
		add_warning(state, "select_tables", psprintf("The user may not read all of: %s.", names.data), grants.data);
	else
		add_error(state, "select_tables", psprintf("The user may not read all of: %s.", names.data), grants.data,
				  "does not let the user read tables");
}

static void
check_tables(CheckState *state)
{
	const char *native = variable_value(state, "innodb_native_foreign_keys");
	char	   *names;

	names = list_tables(state,
						"SELECT table_schema, table_name FROM information_schema.tables "
						"WHERE table_type = 'BASE TABLE' AND engine <> 'InnoDB' "
						"AND table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') "
						"ORDER BY 1, 2");
	if (names)
		add_warning(state, "engine", psprintf("Tables of other engines than InnoDB: %s.", names),
					"Such a table has no consistent snapshot; use ALTER TABLE ... ENGINE = InnoDB.");
	else
		add_ok(state, "engine", "All tables are InnoDB tables.");

	/* MySQL 9.6 and later log what a foreign key does to child rows, unless that is switched back */
	if (native != NULL && is_off(native))
	{
		add_ok(state, "foreign_keys", "The server logs the row changes of foreign keys.");
		return;
	}
	names = list_tables(state,
						"SELECT DISTINCT constraint_schema, table_name FROM information_schema.referential_constraints "
						"WHERE delete_rule IN ('CASCADE', 'SET NULL') OR update_rule IN ('CASCADE', 'SET NULL') "
						"ORDER BY 1, 2");
	if (names)
		add_warning(state, "foreign_keys",
					psprintf("The server does not log what ON DELETE or ON UPDATE does to rows of: %s.", names),
					native != NULL
					? "SET PERSIST_ONLY innodb_native_foreign_keys = OFF;"
					: "A pipeline does the same to the rows here; see its option \"cascades\".");
	else
		add_ok(state, "foreign_keys",
			   state->check->info->flavor == MYSQL_FLAVOR_MARIADB
			   ? "The server does not log what ON DELETE or ON UPDATE does to rows; the user sees no such foreign key in information_schema, which hides them from who may only read. cdc_check_pipeline() tells of a pipeline's tables."
			   : "No foreign key changes rows of other tables.");
}

static void
check_odd_settings(CheckState *state)
{
	if (is_off(variable_value(state, "mysql56_temporal_format")))
		add_warning(state, "mysql56_temporal_format",
					"The server makes columns in the old time format, whose fractions the binary log does not describe; "
					"tables with such columns have to be rebuilt.",
					"SET GLOBAL mysql56_temporal_format = ON;");
	if (variable_is(state, "wsrep_on", "ON"))
		add_warning(state, "wsrep_on", "The server is part of a Galera cluster: positions hold on this node only.", NULL);
}

/* Is the privilege among those of a line "GRANT a, b, c ON *.* TO ..."? */
static bool
grant_line_has(const char *line, const char *privilege, bool global_only)
{
	const char *on = strstr(line, " ON ");
	const char *found;

	if (strncmp(line, "GRANT ", 6) != 0 || on == NULL)
		return false;
	if (global_only && strncmp(on, " ON *.* ", 8) != 0)
		return false;
	found = strstr(line, "ALL PRIVILEGES");
	if (found != NULL && found < on)
		return true;
	found = strstr(line, privilege);
	return found != NULL && found < on;
}

static void
read_grants(CheckState *state)
{
	MysqlRow	row;

	mysql_session_query(state->session, "SHOW GRANTS");
	while (mysql_session_fetch(state->session, &row))
		state->grants = lappend(state->grants, pstrdup(row.values[0] ? row.values[0] : ""));
}

static bool
has_global_privilege(const CheckState *state, const char *privilege)
{
	ListCell   *lc;

	foreach(lc, state->grants)
	{
		if (grant_line_has(lfirst(lc), privilege, true))
			return true;
	}
	return false;
}

static void
check_privileges(CheckState *state)
{
	const char *account = mysql_session_account(state->session);
	bool		has_select = false;
	bool		has_slave = has_global_privilege(state, "REPLICATION SLAVE");
	bool		has_roles = false;
	bool		has_client;
	const char *status_statement;
	ListCell   *lc;

	foreach(lc, state->grants)
	{
		const char *line = lfirst(lc);

		has_select |= grant_line_has(line, "SELECT", false);
		has_roles |= strncmp(line, "GRANT ", 6) == 0 && strstr(line, " ON ") == NULL;
	}
	status_statement = !state->is_mariadb && state->info->version >= 80200
		? "SHOW BINARY LOG STATUS" : "SHOW MASTER STATUS";
	has_client = try_statement(state, status_statement, NULL);

	if (has_slave)
		add_ok(state, "replication_slave", "The user may read the binary log.");
	else if (has_roles)
		add_warning(state, "replication_slave", "The user has REPLICATION SLAVE, if at all, through a role.",
					psprintf("GRANT REPLICATION SLAVE ON *.* TO %s;", account));
	else
		add_error(state, "replication_slave", psprintf("User %s does not have REPLICATION SLAVE.", account),
				  psprintf("GRANT REPLICATION SLAVE ON *.* TO %s;", account),
				  "does not let the user read its binary log");
	if (has_client)
		add_ok(state, "replication_client", "The user may ask where the binary log stands.");
	else
		add_error(state, "replication_client", psprintf("User %s does not have REPLICATION CLIENT.", account),
				  psprintf("GRANT REPLICATION CLIENT ON *.* TO %s;", account),
				  "does not let the user ask where its binary log stands");
	if (has_select || has_roles)
		add_ok(state, "select", "The user may read tables.");
	else
		add_error(state, "select", psprintf("User %s has no SELECT privilege.", account),
				  psprintf("GRANT SELECT ON *.* TO %s;", account),
				  "does not let the user read tables");
}

/*
 * Prepared XA transactions, which a start waits for. MySQL lists them only for
 * who has a privilege; without it, it answers with an error of the resource
 * manager, so SHOW GRANTS has to tell.
 */
static void
check_xa_recover(CheckState *state)
{
	const char *account = mysql_session_account(state->session);

	if (state->is_mariadb)
		return;
	if (has_global_privilege(state, "XA_RECOVER_ADMIN"))
		add_ok(state, "xa_recover", "The user may list prepared XA transactions.");
	else
		add_warning(state, "xa_recover",
					"A start cannot wait for XA transactions that were prepared before it; when one is committed later, tables stop.",
					psprintf("GRANT XA_RECOVER_ADMIN ON *.* TO %s;", account));
}

/* A session that logs statements hides what triggers and routines do; see apply_stored_code.c. */
static void
check_stored_code(CheckState *state)
{
	const char *format = variable_value(state, "binlog_format");
	bool		is_row = format == NULL || pg_strcasecmp(format, "ROW") == 0;
	int			n = list_length(mysql_server_stored_code(state->session));
	const char *seen;

	seen = psprintf("The user sees %d triggers and stored routines%s.", n,
					has_global_privilege(state, "TRIGGER") ? "" : "; triggers are shown only to who has TRIGGER");
	if (n > 0 && !is_row)
		add_warning(state, "stored_code",
					psprintf("%s The server's binlog_format is \"%s\", so what they do may not be in its log; a statement that may have run them stops the tables that they name.", seen, format),
					"SET GLOBAL binlog_format = ROW;");
	else
		add_ok(state, "stored_code",
			   psprintf("%s What they do is in a log of rows. When a session logs statements nevertheless, tables that they name stop with them.", seen));
}

static void
init_state(CheckState *state, const SourceCheck *check)
{
	memset(state, 0, sizeof(*state));
	state->check = check;
	state->session = check->session;
	state->info = check->info;
	state->is_mariadb = check->info->flavor == MYSQL_FLAVOR_MARIADB;
	read_variables(state);
	read_grants(state);
}

/* Everything that may give an error. */
static void
check_essentials(CheckState *state)
{
	check_version(state);
	check_log_bin(state);
	check_binlog_settings(state);
	check_privileges(state);
	check_gtids(state);
	check_server_id(state);
	check_replica(state);
}

List *
source_check_run(const SourceCheck *check)
{
	CheckState	state;

	init_state(&state, check);
	check_essentials(&state);
	check_sync(&state);
	check_retention(&state);
	check_odd_settings(&state);
	check_xa_recover(&state);
	check_stored_code(&state);
	check_readable(&state);
	check_tables(&state);
	return state.lines;
}

/* A hint that is a statement ends with its semicolon. */
static bool
is_statement(const char *hint)
{
	return hint[0] != '\0' && hint[strlen(hint) - 1] == ';';
}

void
source_check_require(const SourceCheck *check)
{
	CheckState	state;
	ListCell   *lc;

	init_state(&state, check);
	check_essentials(&state);
	foreach(lc, state.lines)
	{
		CheckLine  *line = lfirst(lc);
		const char *hint = line->line.hint;

		if (strcmp(line->line.status, "error") != 0)
			continue;
		if (hint != NULL && is_statement(hint))
			hint = psprintf("Run on the source: %s", hint);
		ereport(ERROR,
				(errcode(CDC_ERRCODE_SOURCE_SETTING),
				 errmsg("source server \"%s\" %s", mysql_session_server_name(check->session), line->problem),
				 errdetail_internal("%s", line->line.detail),
				 hint ? errhint("%s", hint) : 0));
	}
}

CdcCheckLine *
source_check_line(const char *check, const char *status, const char *detail, const char *hint)
{
	CdcCheckLine *line = palloc0(sizeof(CdcCheckLine));

	line->check = check;
	line->status = status;
	line->detail = detail;
	line->hint = hint;
	return line;
}
