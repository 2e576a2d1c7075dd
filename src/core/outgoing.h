/*-------------------------------------------------------------------------
 *
 * outgoing.h
 *	  What leaves PostgreSQL: transactions, changes and what stands between
 *	  them, as decode/ hands them to formats and sinks.
 *
 * NOTES
 *	  The unit is a record. A transaction that is decoded at its commit gives
 *	  BEGIN (CHANGE | TRUNCATE | MESSAGE | SCHEMA)* COMMIT. One that is decoded at its
 *	  PREPARE gives BEGIN_PREPARE ... PREPARE, and later, alone, COMMIT_PREPARED
 *	  or ROLLBACK_PREPARED. One that is streamed while it runs gives blocks of
 *	  STREAM_START ... STREAM_STOP, between the blocks of others, and later
 *	  STREAM_COMMIT, STREAM_PREPARE or STREAM_ABORT; an abort may mean only what
 *	  the subtransaction "xid" brought. A transaction of which nothing is shipped
 *	  gives no record. A MESSAGE that is not transactional stands by itself.
 *	  Between transactions there may be rows of an initial copy: a CHANGE with op
 *	  READ each, and a TRUNCATE where one begins anew; and dead letters that are
 *	  shipped again, changes with any op in no transaction (of_copy too).
 *
 *	  Values are the same cells as on the way in (cell.h), of the kinds NULL,
 *	  INT, UINT, FLOAT, DOUBLE, TEXT, BYTES, BOOL, DAYS, MICROS, LIST, UNCHANGED
 *	  and ABSENT. Tables have a definition of their own: CdcTableDef is what the
 *	  MySQL family tells of a table (its type names, collations, wire types), and
 *	  this is what PostgreSQL tells.
 *
 *	  Texts are UTF-8. All of it belongs to who made the record and lives until
 *	  the function that got it returns; a table's definition lives longer, but a
 *	  receiver that keeps something of it has to copy it.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CORE_OUTGOING_H
#define CDC_CORE_OUTGOING_H

#include "core/cell.h"

/* What a column's values are; domains count as what they are over. */
typedef enum CdcOutType
{
	CDC_OUT_OTHER = 0,			/* TEXT: as the type's output function writes it */
	CDC_OUT_BOOL,				/* BOOL */
	CDC_OUT_INT2,				/* INT */
	CDC_OUT_INT4,				/* INT */
	CDC_OUT_INT8,				/* INT */
	CDC_OUT_OID,				/* UINT */
	CDC_OUT_FLOAT4,				/* FLOAT */
	CDC_OUT_FLOAT8,				/* DOUBLE */
	CDC_OUT_NUMERIC,			/* TEXT: digits, or NaN, Infinity, -Infinity; money too */
	CDC_OUT_TEXT,				/* TEXT: text, varchar, char(n), name */
	CDC_OUT_BYTES,				/* BYTES */
	CDC_OUT_BIT,				/* TEXT: zeros and ones */
	CDC_OUT_DATE,				/* DAYS */
	CDC_OUT_TIME,				/* MICROS, up to 24:00:00 */
	CDC_OUT_TIMETZ,				/* TEXT: hh:mm:ss.ffffff+hh:mm */
	CDC_OUT_TIMESTAMP,			/* MICROS */
	CDC_OUT_TIMESTAMPTZ,		/* MICROS */
	CDC_OUT_INTERVAL,			/* TEXT: ISO 8601, P1Y2M3DT4H5M6S */
	CDC_OUT_UUID,				/* TEXT */
	CDC_OUT_JSON,				/* TEXT; jsonb too */
	CDC_OUT_XML,				/* TEXT */
	CDC_OUT_ENUM				/* TEXT: the label */
} CdcOutType;

typedef struct CdcOutColumn
{
	const char *name;
	CdcOutType	type;			/* of the elements when is_list */
	bool		is_list;		/* values are LIST */
	bool		nullable;
	uint16_t	key_part;		/* 1-based position in the key; 0 when not in it */
	int			precision;		/* numeric(p, s); -1 unknown */
	int			scale;			/* numeric: -1 unknown */
	const char *type_text;		/* as PostgreSQL writes it: "numeric(10,2)", "shop.mood[]" */
} CdcOutColumn;

typedef struct CdcOutTable
{
	const char *schema;
	const char *name;
	uint32_t	relid;			/* of the table that is named here: the root of a partition shipped under its root */
	uint64_t	version;		/* another one for each definition that this process made */
	uint32_t	ncolumns;		/* those that are shipped */
	const CdcOutColumn *columns;
	uint32_t	nkey;			/* columns in the key; 0 when there is none */
	const uint32_t *key;		/* their indexes, in the key's order */
	uint32_t	npartition;		/* columns that say in which partition of a sink a row belongs; 0: the key says it */
	const uint32_t *partition;	/* their indexes; they are made of the key, so all records of a row get the same */
	char		identity;		/* replica identity: 'd', 'i', 'f' or 'n' (none usable) */
} CdcOutTable;

typedef struct CdcOutCount
{
	const char *schema;
	const char *name;
	uint64_t	count;
} CdcOutCount;

typedef struct CdcOutTxn
{
	uint32_t	xid;			/* of the top level */
	uint64_t	commit_lsn;		/* where its commit (or prepare) record begins; 0 while it runs */
	uint64_t	end_lsn;		/* behind that record; 0 while it runs */
	int64_t		time_us;		/* of commit or prepare, microseconds since 1970; 0 while it runs */
	const char *gid;			/* of a prepared transaction, or NULL */
	const char *origin;			/* name of the replication origin it came by, or NULL */
	bool		is_streamed;
	uint64_t	nchanges;		/* shipped so far */
	uint32_t	ncounts;		/* how many of which table; not of a streamed transaction */
	const CdcOutCount *counts;
} CdcOutTxn;

typedef enum CdcRecordKind
{
	CDC_RECORD_BEGIN = 1,
	CDC_RECORD_CHANGE,
	CDC_RECORD_TRUNCATE,		/* one table; a statement with several gives several */
	CDC_RECORD_MESSAGE,			/* pg_logical_emit_message */
	CDC_RECORD_SCHEMA,			/* a table is another one from here on; rows behind it have that form */
	CDC_RECORD_COMMIT,
	CDC_RECORD_BEGIN_PREPARE,
	CDC_RECORD_PREPARE,
	CDC_RECORD_COMMIT_PREPARED,
	CDC_RECORD_ROLLBACK_PREPARED,
	CDC_RECORD_STREAM_START,
	CDC_RECORD_STREAM_STOP,
	CDC_RECORD_STREAM_ABORT,
	CDC_RECORD_STREAM_COMMIT,
	CDC_RECORD_STREAM_PREPARE
} CdcRecordKind;

typedef enum CdcOutOp
{
	CDC_OUT_INSERT = 1,
	CDC_OUT_UPDATE,
	CDC_OUT_DELETE,
	CDC_OUT_READ				/* a row that was there before: of an initial copy, in no transaction */
} CdcOutOp;

typedef enum CdcOutSchemaOp
{
	CDC_OUT_CREATE = 1,			/* also: it has got a name that is shipped */
	CDC_OUT_ALTER,
	CDC_OUT_DROP				/* also: it has got a name that is not shipped, or is not logged any more */
} CdcOutSchemaOp;

/* What a definition tells of a column beyond what its values need. */
typedef struct CdcOutColumnInfo
{
	const char *default_text;	/* expression; NULL: none */
	bool		is_generated;
	char		identity;		/* 'a' always, 'd' by default, or NUL */
	uint32_t	nlabels;		/* of an enum, in its order */
	const char *const *labels;
	CdcCell		existing;		/* what rows from before the column have in it; ABSENT: there are none, or each has its own */
} CdcOutColumnInfo;

/* The record's table is the definition from here on; for DROP it has names only. */
typedef struct CdcOutSchemaChange
{
	CdcOutSchemaOp op;
	const char *command;		/* command tag of the statement: "ALTER TABLE" */
	const CdcOutColumnInfo *columns;	/* as many as the table has; NULL for DROP */
	const char *old_schema;		/* CREATE, ALTER: name before this; NULL: the same */
	const char *old_name;
	const char *new_schema;		/* DROP: the name that it has now and that is not shipped; NULL: none */
	const char *new_name;
	const char *old_column;		/* a column that was renamed, and its new name; NULL: none */
	const char *new_column;
	bool		rewritten;		/* rows were written anew, maybe with other values, and are not shipped for that */
} CdcOutSchemaChange;

typedef struct CdcRecord
{
	CdcRecordKind kind;
	const CdcOutTxn *txn;		/* NULL for a MESSAGE that is not transactional, and for what belongs to an initial copy */
	uint64_t	lsn;			/* of the record in the log that it was made of */
	int64_t		now_us;			/* when it was decoded, microseconds since 1970 */
	uint32_t	xid;			/* CHANGE, TRUNCATE, MESSAGE, SCHEMA, STREAM_ABORT: the (sub)transaction itself */
	bool		of_copy;		/* CHANGE: READ, or a dead letter that is shipped again; TRUNCATE: nobody did that, the copy of the table begins anew */
	uint64_t	order;			/* CHANGE, TRUNCATE, MESSAGE, SCHEMA: 1-based place in the transaction */
	uint64_t	table_order;	/* CHANGE, TRUNCATE: among those of its table; 0 in a streamed transaction */

	const CdcOutTable *table;	/* CHANGE, TRUNCATE, SCHEMA */
	CdcOutOp	op;				/* CHANGE */
	const CdcCell *before;		/* CHANGE: ncolumns cells; NULL when the log has no old row */
	const CdcCell *after;		/* CHANGE: ncolumns cells; NULL for DELETE */

	bool		cascade;		/* TRUNCATE */
	bool		restart_identity;	/* TRUNCATE */
	const char *root_schema;	/* TRUNCATE of one partition alone whose rows are shipped under another name: that name; else NULL */
	const char *root_name;

	bool		transactional;	/* MESSAGE */
	const char *prefix;			/* MESSAGE */
	const char *content;		/* MESSAGE: any bytes */
	size_t		content_len;

	const CdcOutSchemaChange *schema_change;	/* SCHEMA */
} CdcRecord;

#endif							/* CDC_CORE_OUTGOING_H */
