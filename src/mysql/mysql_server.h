/*-------------------------------------------------------------------------
 *
 * mysql_server.h
 *	  Questions to a MySQL-family server: who is it, where does its log stand,
 *	  which tables does it have.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_MYSQL_SERVER_H
#define CDC_MYSQL_SERVER_H

#include "postgres.h"
#include "nodes/pg_list.h"

#include "core/table_def.h"
#include "mysql/mysql_session.h"

typedef enum MysqlFlavor
{
	MYSQL_FLAVOR_MYSQL,
	MYSQL_FLAVOR_MARIADB
} MysqlFlavor;

typedef struct MysqlServerInfo
{
	MysqlFlavor flavor;
	const char *version_text;
	int			version;		/* 10000 * major + 100 * minor + patch, e.g. 90704 and 101119 */
	uint32		server_id;
	const char *server_uuid;	/* MySQL; NULL on MariaDB */
	bool		gtid_on;		/* MySQL: gtid_mode is ON; MariaDB: always */
	int			lower_case_table_names;

	/*
	 * What identifies the server in a position row: the uuid, or
	 * "mariadb:<server_id>:<gtid_domain_id>".
	 */
	const char *identity;
} MysqlServerInfo;

extern MysqlServerInfo *mysql_server_info(MysqlSession *session);

/*
 * Connect to the server with that identity, whichever host of the endpoint it is at. Throws an error of class 08 when it
 * is not to be had. mysql_hosts.c.
 */
extern MysqlSession *mysql_server_open(const MysqlEndpoint *endpoint, const char *identity, MysqlServerInfo **info);

/* Where the log ends now. An upper mark only: the log moves before the engine (never a start mark). */
extern void mysql_server_log_position(MysqlSession *session, const MysqlServerInfo *info, CdcPosition *position);

/*
 * Start mark: everything below it is visible to any later SELECT, and the
 * stream that starts from it brings all the rest. MySQL with GTIDs: *gtids is
 * @@gtid_executed and the position stays unknown; MySQL without:
 * performance_schema.log_status; MariaDB: binlog_snapshot_* of a consistent
 * snapshot, *gtids its GTID position.
 */
extern void mysql_server_start_mark(MysqlSession *session, const MysqlServerInfo *info,
									CdcPosition *position, char **gtids);

/*
 * Is everything that the log holds before a place of the stream visible to any later SELECT? The
 * place is a position and, with GTIDs, the whole set of those before it. *mark and *mark_gtids become
 * the start mark that tells so.
 */
extern bool mysql_server_shows(MysqlSession *session, const MysqlServerInfo *info,
							   const CdcPosition *position, const char *gtids,
							   CdcPosition *mark, char **mark_gtids);

/* mysql, information_schema, performance_schema, sys: never followed. */
extern bool mysql_schema_is_system(const char *schema);

/*
 * Base tables that the patterns mean (List of char *,
 * see util_patterns_match), as a List of CdcTableDef with only schema and
 * name filled, sorted. System schemas never match, nor do tables that tools make for a while (util_helper_table.h) by a wildcard.
 */
extern List *mysql_server_list_tables(MysqlSession *session, List *patterns);

typedef enum MysqlReadable
{
	MYSQL_READABLE,				/* the whole table */
	MYSQL_NOT_READABLE,			/* not all of its columns; *why is what the server said */
	MYSQL_NO_TABLE,
	MYSQL_TABLE_LOCKED			/* longer than lock_wait_timeout: not known */
} MysqlReadable;

/* May the user read all of a table? information_schema just leaves out what he may not. */
extern MysqlReadable mysql_server_table_readable(MysqlSession *session, const char *schema, const char *name,
												 char **why);

/* "GRANT SELECT ON `s`.`t` TO 'u'@'h';" */
extern char *mysql_server_grant_select(MysqlSession *session, const char *schema, const char *name);

/*
 * From now on statements of the session wait for a table that somebody has locked (LOCK TABLES, the end of an ALTER
 * TABLE) at most 1 s, the least that MySQL knows, and fail with ERRCODE_LOCK_NOT_AVAILABLE then. Or wait again as the
 * server's default says.
 */
extern void mysql_server_limit_lock_wait(MysqlSession *session, bool limit);

/*
 * Full declared definition from information_schema, in CurrentMemoryContext; NULL
 * when there is no such base table; throws CDC_ERRCODE_SOURCE_SETTING when the
 * user may not read the table as a whole, ERRCODE_LOCK_NOT_AVAILABLE when the table is locked and the session's wait
 * is limited (mysql_server_limit_lock_wait). The key is the primary key, else the first
 * unique key (by index order) whose columns are all NOT NULL, as the servers choose it.
 */
extern CdcTableDef *mysql_server_describe(MysqlSession *session, const MysqlServerInfo *info,
										  const char *schema, const char *name);

/* The same, for who must not wait: throws ERRCODE_LOCK_NOT_AVAILABLE when the table is locked for more than 1 s. */
extern CdcTableDef *mysql_server_describe_soon(MysqlSession *session, const MysqlServerInfo *info,
											   const char *schema, const char *name);

/*
 * Part of mysql_server_describe, mysql_indexes.c: read the table's indexes into a definition that has its columns, and
 * choose the key among them.
 */
extern void mysql_server_read_indexes(MysqlSession *session, const MysqlServerInfo *info, CdcTableDef *def);

/* mysql_foreign_keys.c: are row changes that foreign keys make in the binary log? And, as above, the foreign keys that make some. */
extern bool mysql_server_logs_cascades(MysqlSession *session, const MysqlServerInfo *info);
extern void mysql_server_read_foreign_keys(MysqlSession *session, const MysqlServerInfo *info, CdcTableDef *def);

/* A trigger, or a stored function or procedure. */
typedef struct MysqlStoredCode
{
	bool		is_trigger;
	char	   *schema;			/* of the trigger's table, or the routine */
	char	   *name;			/* the trigger's table, or the routine */
	char	   *body;			/* NULL: the user may not see it, or all together are too large */
	size_t		len;
} MysqlStoredCode;

/* All that the user may see of them; List of MysqlStoredCode in CurrentMemoryContext. */
extern List *mysql_server_stored_code(MysqlSession *session);

/*
 * Open a transaction on the session that shows the table exactly as it was at *mark in the log, and leave it open.
 * MariaDB tells that of itself. MySQL does not: the table is locked against writing (LOCK TABLES, by a connection of
 * its own, which waits at most 1 s for a READ and 1 s for a WRITE lock) for the moment between reading the log's end
 * and opening the snapshot. Throws ERRCODE_LOCK_NOT_AVAILABLE when neither is to be had.
 */
extern void mysql_server_exact_mark(MysqlSession *session, const MysqlServerInfo *info, const MysqlEndpoint *endpoint,
									const CdcTableDef *def, CdcPosition *mark);

#endif							/* CDC_MYSQL_SERVER_H */
