/*-------------------------------------------------------------------------
 *
 * statement.h
 *	  What a statement in the binary log does, and to which tables.
 *
 * NOTES
 *	  No parser of the whole grammar: a lexer that knows the servers' comments
 *	  (executable ones are read as part of the text), quotes and sql_mode, and
 *	  enough of each verb to find the tables it names. What it cannot tell for
 *	  certain it says so ("certain" is false), and the caller is careful.
 *	  Never fails on unknown text.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_DDL_STATEMENT_H
#define CDC_DDL_STATEMENT_H

#include "core/arena.h"

/* sql_mode bits that change how text is read, as both servers number them. */
#define DDL_MODE_ANSI_QUOTES			UINT64_C(0x4)
#define DDL_MODE_NO_BACKSLASH_ESCAPES	UINT64_C(0x100000)

/* STRICT_TRANS_TABLES and STRICT_ALL_TABLES: values that do not fit are refused. */
#define DDL_MODE_STRICT					UINT64_C(0x600000)

typedef enum DdlKind
{
	DDL_EMPTY = 0,				/* only comments */
	DDL_BEGIN,
	DDL_COMMIT,
	DDL_ROLLBACK,
	DDL_SAVEPOINT,
	DDL_RELEASE_SAVEPOINT,
	DDL_ROLLBACK_TO,
	DDL_XA_START,
	DDL_XA_END,
	DDL_XA_PREPARE,
	DDL_XA_COMMIT,
	DDL_XA_ROLLBACK,
	DDL_HARMLESS,				/* cannot change rows or shape of a table: GRANT, CREATE VIEW, ANALYZE TABLE, ... */
	DDL_CREATE_TABLE,
	DDL_ALTER_TABLE,
	DDL_DROP_TABLE,
	DDL_RENAME_TABLE,
	DDL_TRUNCATE_TABLE,
	DDL_INDEX,					/* CREATE INDEX, DROP INDEX */
	DDL_DROP_SCHEMA,			/* tables[0].schema is the schema, name is "" */
	DDL_DML,					/* INSERT, UPDATE, DELETE, REPLACE, LOAD DATA, ...: rows that were not logged as rows */
	DDL_UNKNOWN
} DdlKind;

typedef struct DdlTableName
{
	const char *schema;			/* default schema filled in; "" when there is none */
	const char *name;
} DdlTableName;

typedef struct DdlStatement
{
	DdlKind		kind;
	const char *verb;			/* for messages: "ALTER TABLE", "INSERT", ... */
	bool		certain;		/* "tables" are all tables that the statement acts on */
	bool		changes_shape;	/* ALTER and INDEX: false only when every clause is known to leave columns and key alone */
	bool		changes_default;	/* ALTER: a column's default, which changes no shape */
	bool		renames;		/* ALTER: RENAME TO; tables[1] is the new name */
	bool		moves_rows;		/* ALTER: rows come or go without being logged: partitions, tablespaces */
	bool		removes_rows;	/* ... they only go */
	bool		changes_cascades;	/* ALTER: a foreign key that does something to rows is added, or any is dropped */
	bool		is_temporary;	/* CREATE or DROP TEMPORARY TABLE */
	bool		if_not_exists;	/* CREATE TABLE IF NOT EXISTS: a no-op on a table that exists */
	bool		or_replace;		/* CREATE OR REPLACE TABLE */
	uint32_t	ntables;
	const DdlTableName *tables;
	const char *savepoint;		/* SAVEPOINT and ROLLBACK TO: its name; else "" */
	const char *xid;			/* XA COMMIT and XA ROLLBACK: the text behind; else "" */
} DdlStatement;

/* Only CDC_OK or CDC_NOMEM. Results live in the arena. */
extern CdcStatus ddl_statement_read(const char *text, size_t len, const char *default_schema,
									uint64_t sql_mode, CdcArena *arena, DdlStatement *out);

/*
 * Does an identifier equal to name (ASCII case folded when fold is set) occur
 * anywhere in the text, quoted or not, also inside string literals?
 */
extern bool ddl_statement_mentions(const char *text, size_t len, uint64_t sql_mode,
								   const char *name, bool fold);

/* The same without string literals: where names can stand only as names. */
extern bool ddl_statement_names(const char *text, size_t len, uint64_t sql_mode,
								const char *name, bool fold);

#endif							/* CDC_DDL_STATEMENT_H */
