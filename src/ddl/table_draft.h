/*-------------------------------------------------------------------------
 *
 * table_draft.h
 *	  A table's definition while a statement is read into it; used inside
 *	  ddl/ only.
 *
 * NOTES
 *	  The servers read all clauses of ALTER TABLE against the table as it was:
 *	  columns that are dropped, changed or renamed go by their old names, whatever
 *	  the order of the clauses, and only keys and AFTER go by the new ones. So the
 *	  clauses are first collected in a draft, and carried out in the servers' order
 *	  when the text is at its end:
 *
 *	  table_change.c, table_create.c	the clauses, one by one
 *	  table_column.c					a column with its attributes
 *	  table_type.c						its type
 *	  table_default.c					its default, in the server's own form
 *	  table_index.c, table_foreign.c	indexes and foreign keys
 *	  table_draft.c						what the collected clauses come to
 *
 *	  Everything lives in the caller's arena. What is not understood clears "certain".
 *	  A failed allocation sets nomem in the parser and is asked for at the end.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_DDL_TABLE_DRAFT_H
#define CDC_DDL_TABLE_DRAFT_H

#include "core/table_def.h"
#include "ddl/parser.h"

/* sql_mode bits that change what a type or a default means. */
#define DDL_MODE_REAL_AS_FLOAT		UINT64_C(0x1)
#define DDL_MODE_MARIADB_ORACLE		UINT64_C(0x200)
#define DDL_MODE_MYSQL_TRUNCATE		(UINT64_C(1) << 32) /* TIME_TRUNCATE_FRACTIONAL */
#define DDL_MODE_MARIADB_ROUND		(UINT64_C(1) << 34) /* TIME_ROUND_FRACTIONAL */

/* More than any server lets a table have; what goes beyond is not read. */
#define DDL_MAX_COLUMNS 5000
#define DDL_MAX_INDEXES 512

/* A default as the text has it. */
typedef enum DdlValueKind
{
	DDL_VALUE_NONE = 0,			/* no DEFAULT */
	DDL_VALUE_NULL,
	DDL_VALUE_NUMBER,			/* text: [-]digits[.digits][e[-]digits] */
	DDL_VALUE_STRING,			/* text, len; may hold NUL bytes */
	DDL_VALUE_BYTES,			/* x'41', 0x41, b'101': text, len are the bytes */
	DDL_VALUE_BOOLEAN,			/* number "1" or "0" */
	DDL_VALUE_NOW,				/* digits */
	DDL_VALUE_EXPRESSION,		/* text */
	DDL_VALUE_UNKNOWN			/* the text does not decide it */
} DdlValueKind;

typedef struct DdlValue
{
	DdlValueKind kind;
	bool		in_parentheses; /* MySQL prints even a literal as an expression then */
	const char *text;
	size_t		len;
	int			digits;
} DdlValue;

/* Does a column, or an index, have a place of its own? */
typedef enum DdlPlace
{
	DDL_PLACE_NONE = 0,
	DDL_PLACE_FIRST,
	DDL_PLACE_AFTER
} DdlPlace;

typedef struct DdlColumn
{
	CdcColumnDef def;
	DdlValue	value;			/* its default */
	int			origin;			/* index in the table before, or -1 */
	uint32_t	width;			/* of INT(5), FLOAT(5,2); 0 when there is none */
	uint32_t	decimals;		/* of FLOAT(5,2) */
	bool		zerofill;
	bool		compressed;		/* MariaDB */
	bool		names_charset;	/* in the text: the table's default does not count */
	const char *charset;		/* its name, or NULL */
	const char *old_name;		/* MODIFY and CHANGE: the column's name before, else NULL */
	bool		is_primary;		/* PRIMARY KEY among its attributes */
	bool		is_unique;		/* UNIQUE among them */
	bool		conditional;	/* IF EXISTS, IF NOT EXISTS */
	DdlPlace	place;
	const char *after;
	uint32_t	first_index;	/* of those that its attributes ask for */
	uint32_t	last_index;		/* behind them */
} DdlColumn;

typedef enum DdlActionKind
{
	DDL_ACTION_DROP,
	DDL_ACTION_RENAME,			/* new_name */
	DDL_ACTION_DEFAULT,			/* value */
	DDL_ACTION_VISIBLE			/* visible */
} DdlActionKind;

/* What is done to a column of the table before, by its old name. */
typedef struct DdlAction
{
	DdlActionKind kind;
	const char *name;
	const char *new_name;
	DdlValue	value;
	bool		visible;
	bool		if_exists;
} DdlAction;

typedef struct DdlIndex
{
	CdcIndexDef def;
	CdcIndexPart *parts;		/* as def.parts, to be changed */
	bool		is_primary;
	bool		is_new;			/* by this statement: its parts go by the columns' new names */
	bool		is_gone;
	bool		is_for_foreign; /* made for a foreign key, as long as no other index serves it */
	bool		overlaps;		/* MariaDB: ends with a period */
} DdlIndex;

typedef struct DdlForeign
{
	CdcForeignKeyDef def;		/* with actions that do nothing too */
	const char **columns;		/* as def.columns, to be changed */
	bool		is_new;
	bool		is_gone;
} DdlForeign;

typedef struct DdlDraft
{
	DdlParser	p;
	DdlStatement statement;		/* what ddl_read_table wants */
	DdlDialect	dialect;
	uint64_t	sql_mode;
	const CdcTableDef *before;	/* NULL: CREATE TABLE */
	DdlColumn  *columns;		/* that the text defines, in its order */
	uint32_t	ncolumns;
	uint32_t	columns_allocated;
	DdlAction  *actions;
	uint32_t	nactions;
	uint32_t	actions_allocated;
	DdlIndex   *indexes;		/* the primary key too */
	uint32_t	nindexes;
	uint32_t	indexes_allocated;
	DdlForeign *foreign;
	uint32_t	nforeign;
	uint32_t	foreign_allocated;
	const char *engine;			/* named by the text, else NULL */
	const char *comment;		/* of the table; "" is none */
	const char *convert_charset;
	bool		default_is_binary;	/* the table's character set is binary */
	bool		converts;		/* CONVERT TO: columns that are there, too */
	const char *row_end;		/* GENERATED ALWAYS AS ROW END */
	const char *period[2];		/* columns of an application's period, which are NOT NULL */
	bool		adds_versioning;
	bool		drops_versioning;
	bool		certain;
	bool		moves_rows;
	bool		computes_anew;	/* MODIFY or CHANGE gives a generated column an expression */
	bool		changes_indexes;
	bool		changes_comment;
} DdlDraft;

/* in table_draft.c */
extern bool ddl_draft_begin(DdlDraft *d, const char *text, size_t len, const char *default_schema,
							uint64_t sql_mode, DdlDialect dialect, const CdcTableDef *before, CdcArena *arena);
extern CdcTableDef *ddl_draft_finish(DdlDraft *d, const char *schema, const char *name, const int **origin);
extern bool ddl_grow(DdlDraft *d, void **items, uint32_t n, uint32_t *allocated, size_t size);
extern bool ddl_name_equals(const char *a, const char *b);
extern int	ddl_find_column(const CdcColumnDef *columns, uint32_t ncolumns, const char *name);
extern bool ddl_next_is(const DdlDraft *d, const char *keyword);
extern const char *ddl_read_name(DdlDraft *d);
extern const char *ddl_read_column_name(DdlDraft *d);
extern uint32_t ddl_read_size(DdlDraft *d, bool *given);

/* in table_type.c */
extern bool ddl_read_type(DdlDraft *d, DdlColumn *column);
extern void ddl_finish_type(DdlDraft *d, DdlColumn *column);
extern void ddl_become_binary(DdlDraft *d, DdlColumn *column);
extern void ddl_set_charset(DdlDraft *d, DdlColumn *column, const char *charset);

/* in table_column.c */
extern void ddl_read_column(DdlDraft *d, const char *name, const char *old_name, bool conditional);

/* in table_default.c */
extern const char *ddl_read_text(DdlDraft *d, size_t *len);
extern void ddl_read_default(DdlDraft *d, DdlValue *value);
extern bool ddl_read_now(DdlDraft *d, int *digits);
extern void ddl_set_default(DdlDraft *d, CdcColumnDef *column, const DdlValue *value);

/* in table_default_time.c: false when the text is no such value */
extern bool ddl_format_time(const DdlDraft *d, const CdcColumnDef *column, const DdlValue *value, char *out,
							size_t size);

/* in table_index.c */
extern bool ddl_at_index(const DdlDraft *d);
extern void ddl_read_index(DdlDraft *d, const char *constraint, bool names_table);
extern void ddl_add_column_index(DdlDraft *d, const char *column, bool primary);
extern void ddl_add_foreign_index(DdlDraft *d, const char *name, const char *const *columns, uint32_t ncolumns);
extern DdlIndex *ddl_find_index(const DdlDraft *d, const char *name);
extern DdlIndex *ddl_find_primary(const DdlDraft *d);
extern bool ddl_take_indexes(DdlDraft *d);
extern void ddl_finish_indexes(DdlDraft *d, CdcTableDef *def, const int *origin);

/* in table_foreign.c */
extern void ddl_read_foreign(DdlDraft *d, const char *constraint);
extern void ddl_read_column_references(DdlDraft *d, const char *column);
extern DdlForeign *ddl_find_foreign(const DdlDraft *d, const char *name);
extern bool ddl_take_foreign(DdlDraft *d);
extern void ddl_finish_foreign(DdlDraft *d, CdcTableDef *def, const int *origin);

/* in table_create.c */
extern void ddl_read_element(DdlDraft *d);
extern bool ddl_read_table_option(DdlDraft *d);

#endif							/* CDC_DDL_TABLE_DRAFT_H */
