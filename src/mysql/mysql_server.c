/*-------------------------------------------------------------------------
 *
 * mysql_server.c
 *	  Questions to a MySQL-family server: who is it, where does its log stand,
 *	  which tables does it have.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "mysql/mysql_server.h"
#include "util/util_arena.h"
#include "util/util_error.h"
#include "util/util_gtid.h"
#include "util/util_helper_table.h"
#include "util/util_pattern.h"

/* Schemas that are the server's own. */
static const char *const system_schemas[] = {
	"mysql", "information_schema", "performance_schema", "sys", NULL
};

/* A value of a row that must be there. */
static const char *
row_value(const MysqlRow *row, int field)
{
	return field < row->nfields && row->values[field] != NULL ? row->values[field] : "";
}

static int
parse_version(const char *text)
{
	int			major = 0;
	int			minor = 0;
	int			patch = 0;

	(void) sscanf(text, "%d.%d.%d", &major, &minor, &patch);
	return major * 10000 + minor * 100 + patch;
}

static void
throw_no_binlog(MysqlSession *session)
{
	ereport(ERROR,
			(errcode(CDC_ERRCODE_SOURCE_SETTING),
			 errmsg("source server \"%s\" does not write a binary log", mysql_session_server_name(session)),
			 errhint("Set log_bin and server_id on the source and restart it.")));
}

MysqlServerInfo *
mysql_server_info(MysqlSession *session)
{
	MysqlServerInfo *info = palloc0(sizeof(MysqlServerInfo));
	MysqlRow	row;

	info->version_text = pstrdup(mysql_session_version(session));
	info->version = parse_version(info->version_text);
	info->flavor = strstr(info->version_text, "MariaDB") != NULL ? MYSQL_FLAVOR_MARIADB : MYSQL_FLAVOR_MYSQL;
	if (info->flavor == MYSQL_FLAVOR_MARIADB)
		mysql_session_query(session,
							"SELECT @@global.server_id, @@global.lower_case_table_names, @@global.gtid_domain_id");
	else
		mysql_session_query(session,
							"SELECT @@global.server_id, @@global.lower_case_table_names, "
							"@@global.server_uuid, @@global.gtid_mode");
	if (!mysql_session_fetch(session, &row))
		ereport(ERROR,
				(errcode(ERRCODE_FDW_ERROR),
				 errmsg("source server \"%s\" does not say who it is", mysql_session_server_name(session))));
	info->server_id = (uint32) strtoul(row_value(&row, 0), NULL, 10);
	info->lower_case_table_names = atoi(row_value(&row, 1));
	if (info->flavor == MYSQL_FLAVOR_MARIADB)
	{
		info->gtid_on = true;
		info->identity = psprintf("mariadb:%u:%s", info->server_id, row_value(&row, 2));
	}
	else
	{
		info->server_uuid = pstrdup(row_value(&row, 2));
		info->gtid_on = pg_strcasecmp(row_value(&row, 3), "ON") == 0;
		info->identity = info->server_uuid;
	}
	mysql_session_drain(session);
	return info;
}

static void
set_position(CdcPosition *position, const char *file, const char *offset)
{
	memset(position, 0, sizeof(*position));
	snprintf(position->file, sizeof(position->file), "%s", file);
	position->offset = strtoull(offset, NULL, 10);
}

void
mysql_server_log_position(MysqlSession *session, const MysqlServerInfo *info, CdcPosition *position)
{
	MysqlRow	row;

	/* MySQL 8.2 brought the new name and 8.4 took the old one away; MariaDB keeps the old one */
	if (info->flavor == MYSQL_FLAVOR_MYSQL && info->version >= 80200)
		mysql_session_query(session, "SHOW BINARY LOG STATUS");
	else
		mysql_session_query(session, "SHOW MASTER STATUS");
	if (!mysql_session_fetch(session, &row))
		throw_no_binlog(session);
	set_position(position, row_value(&row, 0), row_value(&row, 1));
	mysql_session_drain(session);
}

/* @@gtid_executed is printed with line feeds between uuids. */
static char *
without_line_feeds(char *text)
{
	char	   *out = text;

	for (const char *p = text; *p; p++)
	{
		if (*p != '\n' && *p != '\r')
			*out++ = *p;
	}
	*out = '\0';
	return text;
}

/*
 * A consistent snapshot of MariaDB knows the exact log position that it shows,
 * which no SHOW MASTER STATUS before or after it does.
 */
static void
mariadb_open_snapshot(MysqlSession *session, CdcPosition *position)
{
	MysqlRow	row;
	char	   *file = NULL;
	char	   *offset = NULL;

	mysql_session_execute(session, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
	mysql_session_query(session, "SHOW STATUS LIKE 'binlog\\_snapshot\\_%'");
	while (mysql_session_fetch(session, &row))
	{
		if (pg_strcasecmp(row_value(&row, 0), "binlog_snapshot_file") == 0)
			file = pstrdup(row_value(&row, 1));
		else if (pg_strcasecmp(row_value(&row, 0), "binlog_snapshot_position") == 0)
			offset = pstrdup(row_value(&row, 1));
	}
	if (file == NULL || file[0] == '\0' || offset == NULL)
		throw_no_binlog(session);
	set_position(position, file, offset);
}

static void
mariadb_start_mark(MysqlSession *session, CdcPosition *position, char **gtids)
{
	mariadb_open_snapshot(session, position);
	mysql_session_execute(session, "COMMIT");
	*gtids = mysql_session_scalar(session, psprintf("SELECT BINLOG_GTID_POS(%s, " UINT64_FORMAT ")",
													mysql_quote_literal(position->file, strlen(position->file)),
													(uint64) position->offset));
	if (*gtids == NULL)
		*gtids = pstrdup("");
}

/* LOCK TABLES in a mode; false: it was not to be had now. A missing privilege is told with the statement to run. */
static bool
try_lock(MysqlSession *locker, const CdcTableDef *def, const char *mode)
{
	MemoryContext cxt = CurrentMemoryContext;
	volatile bool done = false;

	PG_TRY();
	{
		mysql_session_execute(locker, psprintf("LOCK TABLES %s.%s %s", mysql_quote_identifier(def->schema),
											   mysql_quote_identifier(def->name), mode));
		done = true;
	}
	PG_CATCH();
	{
		unsigned int code = mysql_session_last_errno(locker);
		bool		forbidden = code == 1044 || code == 1142 || code == 1227;

		if (!forbidden && code != 1205 && code != 1290)	/* waited in vain; the server is read only */
			PG_RE_THROW();
		MemoryContextSwitchTo(cxt);
		FlushErrorState();
		if (forbidden)
			ereport(ERROR,
					(errcode(CDC_ERRCODE_SOURCE_SETTING),
					 errmsg("source table \"%s.%s\" has no key and cannot be locked for the moment in which its copy begins",
							def->schema, def->name),
					 errdetail("The user has no LOCK TABLES privilege."),
					 errhint("Run on the source: GRANT LOCK TABLES ON %s.* TO %s; or take the table out with cdc_remove_table().",
							 mysql_quote_identifier(def->schema), mysql_session_account(locker))));
	}
	PG_END_TRY();
	return done;
}

/*
 * Lock a table against writing. READ disturbs nobody who is not writing when it is had, but while it waits new writers
 * pass it, so where transactions overlap without a pause it never comes. WRITE makes new ones, and readers, queue behind it.
 */
static void
lock_against_writing(MysqlSession *locker, const CdcTableDef *def)
{
	if (try_lock(locker, def, "READ") || try_lock(locker, def, "WRITE"))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("source table \"%s.%s\" has no key and could not be locked for the moment in which its copy begins",
					def->schema, def->name),
			 errdetail("A transaction or a statement has used it for more than 1 s."),
			 errhint("It is tried again. See SHOW PROCESSLIST on the source for what uses the table for long, or add a primary key to it.")));
}

void
mysql_server_exact_mark(MysqlSession *session, const MysqlServerInfo *info, const MysqlEndpoint *endpoint,
						const CdcTableDef *def, CdcPosition *mark)
{
	MysqlSession *locker;
	MysqlServerInfo *locker_info;

	memset(mark, 0, sizeof(*mark));
	if (info->flavor == MYSQL_FLAVOR_MARIADB)
	{
		mariadb_open_snapshot(session, mark);
		return;
	}

	/*
	 * A transaction that wrote to the table holds its metadata lock until it is visible. START TRANSACTION would
	 * release a lock of the same session, hence another one, which is closed with its context after an error.
	 */
	locker = mysql_server_open(endpoint, info->identity, &locker_info);
	mysql_session_execute(locker, "SET SESSION lock_wait_timeout = 1");
	lock_against_writing(locker, def);
	mysql_server_log_position(locker, info, mark);
	mysql_session_execute(session, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
	mysql_session_close(locker);
}

void
mysql_server_start_mark(MysqlSession *session, const MysqlServerInfo *info,
						CdcPosition *position, char **gtids)
{
	MysqlRow	row;

	memset(position, 0, sizeof(*position));
	*gtids = NULL;
	if (info->flavor == MYSQL_FLAVOR_MARIADB)
	{
		mariadb_start_mark(session, position, gtids);
		return;
	}
	if (info->gtid_on)
	{
		*gtids = mysql_session_scalar(session, "SELECT @@global.gtid_executed");
		*gtids = *gtids ? without_line_feeds(*gtids) : pstrdup("");
		return;
	}
	mysql_session_query(session,
						"SELECT JSON_UNQUOTE(JSON_EXTRACT(LOCAL, '$.binary_log_file')), "
						"JSON_UNQUOTE(JSON_EXTRACT(LOCAL, '$.binary_log_position')) "
						"FROM performance_schema.log_status");
	if (!mysql_session_fetch(session, &row) || row_value(&row, 0)[0] == '\0')
		throw_no_binlog(session);
	set_position(position, row_value(&row, 0), row_value(&row, 1));
	mysql_session_drain(session);
}

/* Is every GTID of "part" in "whole"? MySQL only. */
static bool
gtids_contain(const char *whole, const char *part)
{
	const CdcAllocator *allocator = util_context_allocator(CurrentMemoryContext);
	CdcGtidSet *set = util_gtid_set_create(CDC_GTID_MYSQL, allocator);
	CdcBuf		before;
	CdcBuf		after;

	util_gtid_set_add_text(set, whole);
	cdc_buf_init(&before, allocator, 0);
	cdc_gtid_set_format(set, &before);
	util_gtid_set_add_text(set, part);
	cdc_buf_init(&after, allocator, 0);
	cdc_gtid_set_format(set, &after);
	if (before.status != CDC_OK || after.status != CDC_OK)
		util_throw_out_of_memory();
	return before.len == after.len && memcmp(before.data, after.data, before.len) == 0;
}

bool
mysql_server_shows(MysqlSession *session, const MysqlServerInfo *info,
				   const CdcPosition *position, const char *gtids,
				   CdcPosition *mark, char **mark_gtids)
{
	int			order;

	mysql_server_start_mark(session, info, mark, mark_gtids);
	if (cdc_position_is_known(mark))
		return cdc_position_compare(mark, position, &order) && order >= 0;
	return gtids_contain(*mark_gtids, gtids ? gtids : "");
}

bool
mysql_schema_is_system(const char *schema)
{
	for (int i = 0; system_schemas[i] != NULL; i++)
	{
		if (pg_strcasecmp(schema, system_schemas[i]) == 0)
			return true;
	}
	return false;
}

static int
compare_tables(const ListCell *a, const ListCell *b)
{
	const CdcTableDef *ta = lfirst(a);
	const CdcTableDef *tb = lfirst(b);
	int			cmp = strcmp(ta->schema, tb->schema);

	return cmp != 0 ? cmp : strcmp(ta->name, tb->name);
}

/* Is there a table of that name in a sorted list? */
static bool
list_has_table(List *tables, const char *schema, const char *name)
{
	int			low = 0;
	int			high = list_length(tables) - 1;

	while (low <= high)
	{
		int			middle = (low + high) / 2;
		const CdcTableDef *table = list_nth(tables, middle);
		int			order = strcmp(table->schema, schema);

		if (order == 0)
			order = strcmp(table->name, name);
		if (order == 0)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle - 1;
	}
	return false;
}

/* Tables that tools make for a while, of others in the list, are not meant unless a pattern names them. */
static List *
without_helpers(List *tables, List *patterns)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, tables)
	{
		const CdcTableDef *table = lfirst(lc);
		bool		is_helper = false;
		ListCell   *lc2;

		foreach(lc2, util_helper_table_bases(table->name))
			is_helper |= list_has_table(tables, table->schema, lfirst(lc2));
		if (!is_helper || util_patterns_name(patterns, table->schema, table->name))
			result = lappend(result, lfirst(lc));
	}
	return result;
}

List *
mysql_server_list_tables(MysqlSession *session, List *patterns)
{
	List	   *result = NIL;
	MysqlRow	row;

	mysql_session_query(session,
						"SELECT table_schema, table_name FROM information_schema.tables "
						"WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')");
	while (mysql_session_fetch(session, &row))
	{
		const char *schema = row_value(&row, 0);
		const char *name = row_value(&row, 1);
		CdcTableDef *def;

		if (mysql_schema_is_system(schema) || !util_patterns_match(patterns, schema, name, NULL))
			continue;
		def = palloc0(sizeof(CdcTableDef));
		def->schema = pstrdup(schema);
		def->name = pstrdup(name);
		result = lappend(result, def);
	}
	list_sort(result, compare_tables);
	return without_helpers(result, patterns);
}
