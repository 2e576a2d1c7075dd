/*-------------------------------------------------------------------------
 *
 * catalog_history.h
 *	  Changes of source tables' shapes: their kinds, what a pipeline's options
 *	  want done about each, and the rows of cdc_bridge.schema_history.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CATALOG_HISTORY_H
#define CDC_CATALOG_HISTORY_H

#include "postgres.h"
#include "access/xlogdefs.h"

#include "catalog/catalog.h"

/* What a change is, in the words of options and history: see catalog_history.c. */
typedef enum CatalogChangeKind
{
	CATALOG_CHANGE_ADD_COLUMN,
	CATALOG_CHANGE_DROP_COLUMN,
	CATALOG_CHANGE_RENAME_COLUMN,
	CATALOG_CHANGE_ALTER_TYPE,
	CATALOG_CHANGE_ALTER_DEFAULT,
	CATALOG_CHANGE_ALTER_NULLABILITY,
	CATALOG_CHANGE_ALTER_KEY,
	CATALOG_CHANGE_ALTER_COMMENT,
	CATALOG_CHANGE_INDEX,
	CATALOG_CHANGE_CREATE_TABLE,
	CATALOG_CHANGE_DROP_TABLE,
	CATALOG_CHANGE_RENAME_TABLE,
	CATALOG_CHANGE_TRUNCATE_TABLE
} CatalogChangeKind;

#define CATALOG_CHANGE_KINDS (CATALOG_CHANGE_TRUNCATE_TABLE + 1)

/* One of them in a set. */
#define CATALOG_CHANGE_BIT(kind) (UINT32_C(1) << (kind))

/* Option schema_changes. */
typedef enum CatalogChangeMode
{
	CATALOG_MODE_EVOLVE,		/* the target follows; what cannot be carried out stops the table */
	CATALOG_MODE_TRY_EVOLVE,	/* ... is noted, and the table goes on as LENIENT would, if it can */
	CATALOG_MODE_LENIENT,		/* nothing that the target holds is lost */
	CATALOG_MODE_IGNORE,		/* the target stays as it is */
	CATALOG_MODE_EXCEPTION		/* the table stops */
} CatalogChangeMode;

typedef struct CatalogChangeRules
{
	CatalogChangeMode mode;
	bool		is_default;		/* nothing was said: of merged tables, what they drop stays */
	uint32		ignored;		/* kinds that are left out by schema_changes_include and _exclude */
	int			max_rows;		/* of the history */
} CatalogChangeRules;

extern void catalog_change_rules_read(const CatalogPipeline *pipeline, CatalogChangeRules *rules);

/* What is to be done about a change of that kind. */
extern CatalogChangeMode catalog_change_mode(const CatalogChangeRules *rules, CatalogChangeKind kind);

/* Check the words of an option; throws at the first that is no kind. */
extern void catalog_change_kinds_check(const char *option, List *words);

typedef enum CatalogChangeResult
{
	CATALOG_CHANGE_APPLIED,
	CATALOG_CHANGE_IGNORED,		/* as the options want it, or because the target has it already */
	CATALOG_CHANGE_FAILED,		/* could not be carried out, and the table goes on without it */
	CATALOG_CHANGE_STOPPED		/* the table stops */
} CatalogChangeResult;

typedef struct CatalogSchemaChange
{
	int32		pipeline_id;
	int32		change_no;		/* given by _insert */
	int32		table_id;
	char	   *source_schema;
	char	   *source_table;
	CdcPosition position;		/* of the statement, or of the transaction that showed the change */
	CdcGtid		gtid;			/* for _insert */
	char	   *gtid_text;		/* from _list, or for _insert in place of gtid; NULL: none */
	int64		source_time_us; /* for _insert: microseconds since 1970; 0: not told */
	TimestampTz source_time;	/* from _list; 0: not told */
	uint32		kinds;			/* CATALOG_CHANGE_BIT */
	List	   *kind_names;		/* from _list */
	const char *statement;		/* in the database's encoding; NULL: rows showed it */
	List	   *commands;		/* of char *: what was run here */
	CatalogChangeResult result; /* for _insert */
	char	   *result_name;	/* from _list */
	const UtilErrorInfo *error; /* for _insert: why not; NULL: applied */
	CatalogError shown_error;	/* from _list */
	TimestampTz created_at;
} CatalogSchemaChange;

/* Write one down, and remove the oldest beyond max_rows. Takes the state's lock. */
extern void catalog_history_insert(CatalogSchemaChange *change, int max_rows);
extern List *catalog_history_list(int32 pipeline_id);	/* by number */

/*
 * Remove those of an outgoing pipeline whose transaction commits at that place in the log or later, but for those that stopped a table: their
 * statements do not come again. Takes the state's lock.
 */
extern void catalog_history_delete_from(int32 pipeline_id, XLogRecPtr commit_lsn);

#endif							/* CDC_CATALOG_HISTORY_H */
