/*-------------------------------------------------------------------------
 *
 * table_change.h
 *	  What a statement makes of a table's definition.
 *
 * NOTES
 *	  ddl_table_change takes the definition before ALTER TABLE, CREATE INDEX or
 *	  DROP INDEX and gives the one behind it; ddl_table_create gives what CREATE
 *	  TABLE makes. What comes out is what mysql_server_describe would read from
 *	  the server after the statement (core/table_def.h), as far as the text tells:
 *
 *	  - a column's collation is 0 when the text does not decide it (63 is
 *	    binary); the table's default, which counts then, is not in the definition;
 *	  - a default that the text does not decide is the expression "?", which
 *	    nobody can translate: a literal of a TIMESTAMP, whose time zone is the
 *	    session's, and text behind an introducer of another character set;
 *	  - an expression as default stands as it was written, not as the server
 *	    prints it, except those that schema/ translates;
 *	  - how large a TEXT is behind CONVERT TO CHARACTER SET: the server makes it
 *	    larger when its characters take more bytes;
 *	  - estimates stay as they were; a new table has no engine unless it is named;
 *	  - of foreign keys and the indexes that were made for them only those are known
 *	    that do something, see core/table_def.h.
 *
 *	  Text that is not understood is no error: "certain" is false then and the
 *	  rest is the best guess. A statement that names another table than "before" is
 *	  read all the same, the caller knows which table it is about.
 *
 *	  The two servers read executable comments, and print types and defaults, in
 *	  different ways: the dialect says which server it was.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_DDL_TABLE_CHANGE_H
#define CDC_DDL_TABLE_CHANGE_H

#include "core/arena.h"
#include "core/table_def.h"
#include "ddl/lexer.h"

/* What ALTER TABLE, CREATE INDEX or DROP INDEX makes of a table. All of it lives in the arena. */
typedef struct DdlTableChange
{
	CdcTableDef *after;			/* name and schema as before; see rename_table */
	const int  *origin;			/* per column of "after": its index in "before", or -1: the statement added it */
	bool		certain;		/* all that concerns columns, key and defaults was understood */
	bool		moves_rows;		/* rows come or go without events: DROP PARTITION, IMPORT TABLESPACE, ALTER IGNORE, ... */
	bool		computes_anew;	/* a generated column may have got another expression */
	bool		changes_indexes;
	bool		changes_comment;	/* of the table */
	bool		changes_key;	/* other columns, another order, or a primary key where there was none */
	const char *convert_charset;	/* CONVERT TO or DEFAULT CHARACTER SET: its name, "" for the server's default; else NULL */
	const char *rename_schema;	/* RENAME TO, else NULL */
	const char *rename_table;
} DdlTableChange;

/* "before" is not changed, nor pointed into. Only CDC_OK or CDC_NOMEM. */
extern CdcStatus ddl_table_change(const char *text, size_t len, const char *default_schema, uint64_t sql_mode,
								  DdlDialect dialect, const CdcTableDef *before, CdcArena *arena,
								  DdlTableChange *out);

/* What CREATE TABLE makes. */
typedef struct DdlTableCreate
{
	CdcTableDef *def;			/* NULL: by LIKE, or AS SELECT, or the text is no CREATE TABLE */
	const char *like_schema;	/* LIKE, else NULL */
	const char *like_table;
	bool		as_select;
	bool		if_not_exists;
	bool		or_replace;
	bool		temporary;
	bool		certain;		/* as above */
} DdlTableCreate;

/* Only CDC_OK or CDC_NOMEM. */
extern CdcStatus ddl_table_create(const char *text, size_t len, const char *default_schema, uint64_t sql_mode,
								  DdlDialect dialect, CdcArena *arena, DdlTableCreate *out);

#endif							/* CDC_DDL_TABLE_CHANGE_H */
