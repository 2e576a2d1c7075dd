/*-------------------------------------------------------------------------
 *
 * table_def.h
 *	  Definition of a source table: what a server says of it at start
 *	  (information_schema) or beside a row (TABLE_MAP metadata).
 *
 * NOTES
 *	  Names and labels are UTF-8. A field that the origin of the definition
 *	  cannot know is 0 or NULL; "known" says which facts are there. A
 *	  definition from the binary log lacks defaults, comments, generated and
 *	  auto_increment, and shows MariaDB's JSON as LONGTEXT, UUID and INET as
 *	  BINARY, tinyint(1) as TINYINT: it is compared with the declared one by
 *	  schema/, which knows what may differ.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CORE_TABLE_DEF_H
#define CDC_CORE_TABLE_DEF_H

#include "core/arena.h"
#include "core/cell.h"

/* Logical type of a source column, one per type name of the MySQL family. */
typedef enum CdcType
{
	CDC_TYPE_UNKNOWN = 0,
	CDC_TYPE_TINYINT,
	CDC_TYPE_SMALLINT,
	CDC_TYPE_MEDIUMINT,
	CDC_TYPE_INT,
	CDC_TYPE_BIGINT,
	CDC_TYPE_FLOAT,
	CDC_TYPE_DOUBLE,
	CDC_TYPE_DECIMAL,			/* precision, scale */
	CDC_TYPE_BIT,				/* length = bits */
	CDC_TYPE_YEAR,
	CDC_TYPE_DATE,
	CDC_TYPE_TIME,				/* scale = fraction digits */
	CDC_TYPE_DATETIME,			/* scale = fraction digits */
	CDC_TYPE_TIMESTAMP,			/* scale = fraction digits */
	CDC_TYPE_CHAR,				/* length = characters (declared) or bytes (binary log) */
	CDC_TYPE_VARCHAR,			/* length = characters (declared) or bytes (binary log) */
	CDC_TYPE_TEXT,				/* tiny to long */
	CDC_TYPE_BINARY,			/* length = bytes */
	CDC_TYPE_VARBINARY,			/* length = bytes */
	CDC_TYPE_BLOB,				/* tiny to long */
	CDC_TYPE_ENUM,				/* labels */
	CDC_TYPE_SET,				/* labels */
	CDC_TYPE_JSON,
	CDC_TYPE_GEOMETRY,
	CDC_TYPE_VECTOR,			/* length = dimensions */
	CDC_TYPE_UUID,
	CDC_TYPE_INET4,
	CDC_TYPE_INET6
} CdcType;

typedef struct CdcLabel
{
	const char *data;
	uint32_t	len;
} CdcLabel;

typedef struct CdcColumnDef
{
	const char *name;			/* NULL when the origin does not tell */
	CdcType		type;
	bool		is_unsigned;
	bool		nullable;
	bool		visible;
	bool		is_boolean;		/* declared tinyint(1); display width is not in the binary log */
	bool		is_generated;	/* VIRTUAL or STORED */
	bool		auto_increment;
	uint32_t	length;			/* see CdcType */
	uint8_t		precision;		/* DECIMAL: digits */
	uint8_t		scale;			/* DECIMAL: digits after the point; temporal types: fraction digits */
	uint16_t	collation;		/* id of the server's collation; 63 is binary; 0 when there is none */
	uint32_t	nlabels;		/* ENUM and SET */
	const CdcLabel *labels;
	uint16_t	key_part;		/* 1-based position in the key; 0 when not in it */
	uint16_t	key_prefix;		/* characters when the key holds a prefix only; 0 whole */
	const char *type_text;		/* declared column type, "int(10) unsigned"; NULL from the binary log */
	const char *default_text;	/* declared default as the server prints it; NULL when there is none */
	bool		default_is_expr;	/* default_text is an expression, not a literal */
	const char *comment;		/* declared comment or NULL */
	bool		left_out;		/* the target has no such column, and is to have none */

	/* How the binary log writes it; 0 in a declared definition. */
	uint8_t		wire_type;		/* MYSQL_TYPE_*, ENUM and SET already told from STRING */
	uint16_t	wire_meta;		/* type's metadata, see facts in binlog/table_map.c */
} CdcColumnDef;

/* One part of an index: a column, or the beginning of one, or an expression. */
typedef struct CdcIndexPart
{
	const char *column;			/* NULL for an expression */
	const char *expression;		/* as the server prints it; NULL for a column */
	uint32_t	prefix;			/* characters (bytes of a binary column) when only so many count; 0 whole */
	bool		descending;
} CdcIndexPart;

typedef struct CdcIndexDef
{
	const char *name;
	const char *type_text;		/* declared: "BTREE", "HASH", "FULLTEXT", "SPATIAL", ... */
	bool		is_unique;
	bool		visible;		/* false: the server's planner passes it over (INVISIBLE, IGNORED) */
	uint32_t	nparts;
	const CdcIndexPart *parts;
} CdcIndexDef;

typedef enum CdcForeignAction
{
	CDC_FOREIGN_NOTHING = 0,	/* the parent's change is refused, or its value does not matter */
	CDC_FOREIGN_CASCADE,
	CDC_FOREIGN_SET_NULL
} CdcForeignAction;

/* A foreign key by which changes of the parent change rows of this table. Others are not listed. */
typedef struct CdcForeignKeyDef
{
	const char *name;
	const char *parent_schema;
	const char *parent_table;
	CdcForeignAction on_delete;
	CdcForeignAction on_update;
	bool		is_exact;		/* equal for the server is equal byte by byte: no column compares texts in another way */
	uint32_t	ncolumns;
	const char **columns;		/* of this table */
	const char **parent_columns;
} CdcForeignKeyDef;

typedef enum CdcTableKnown
{
	CDC_KNOWS_SIGN = 1 << 0,
	CDC_KNOWS_CHARSET = 1 << 1,
	CDC_KNOWS_NAMES = 1 << 2,
	CDC_KNOWS_LABELS = 1 << 3,
	CDC_KNOWS_KEY = 1 << 4,
	CDC_KNOWS_DECLARED = 1 << 5,	/* from information_schema: defaults, comments, ... */
	CDC_KNOWS_DEFAULTS = 1 << 6,	/* no default was altered since */
	CDC_FOREIGN_UNLOGGED = 1 << 7,	/* the server does not log what the table's foreign keys do */
	CDC_KEY_IS_PRIMARY = 1 << 8		/* declared: the key is a primary key, no unique index in its place */
} CdcTableKnown;

typedef struct CdcTableDef
{
	const char *schema;
	const char *name;
	uint32_t	known;			/* CdcTableKnown bits */
	uint32_t	ncolumns;
	CdcColumnDef *columns;
	uint32_t	nkey;			/* columns in the key; 0 when there is none */
	uint32_t	nindexes;		/* declared: all indexes but the primary key */
	const CdcIndexDef *indexes;
	uint32_t	nforeign;		/* declared, see CdcForeignKeyDef */
	const CdcForeignKeyDef *foreign_keys;
	const char *engine;			/* declared; NULL from the binary log */
	const char *comment;		/* declared; NULL from the binary log */
	const char *row_end;		/* declared: where a row's version ends, in a system-versioned table; NULL otherwise */
	uint64_t	row_estimate;	/* declared: the server's estimate */
	uint64_t	avg_row_length; /* declared: the server's estimate, bytes */
	uint64_t	table_id;		/* binary log only */
	void	   *user;			/* for whoever holds the definition; NULL when it is made */
} CdcTableDef;

/* Deep copy into the arena; "user" becomes NULL. NULL when out of memory. */
extern CdcTableDef *cdc_table_def_copy(const CdcTableDef *def, CdcArena *arena);

/* Index of the column of a name, and of the one that is a part of the key (from 1); -1: none. */
extern int	cdc_table_def_column(const CdcTableDef *def, const char *name);
extern int	cdc_table_def_key_column(const CdcTableDef *def, uint32_t part);

/* Are its values text, with a character set? */
extern bool cdc_type_is_text(CdcType type);

/* TINYINT to BIGINT; CHAR, VARCHAR and TEXT; BINARY, VARBINARY and BLOB. */
extern bool cdc_type_is_integer(CdcType type);
extern bool cdc_type_is_character(CdcType type);
extern bool cdc_type_is_binary(CdcType type);

/* Is it the same text? And: does "after" begin with all labels of "before", in their order (both ENUM, or both SET)? */
extern bool cdc_label_equal(const CdcLabel *a, const CdcLabel *b);
extern bool cdc_labels_only_come(const CdcColumnDef *before, const CdcColumnDef *after);

/* "bigint", "varchar", ...: for messages and tests. */
extern const char *cdc_type_name(CdcType type);

#endif							/* CDC_CORE_TABLE_DEF_H */
