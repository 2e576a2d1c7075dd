/*-------------------------------------------------------------------------
 *
 * type_map.h
 *	  Source types <-> PostgreSQL types, and cells -> Datums: the one table.
 *
 * NOTES
 *	  A value reads the same whichever way it came: snapshot, stream and checks
 *	  all end in schema_cell_to_datum. docs/types.md lists what stands here.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SCHEMA_TYPE_MAP_H
#define CDC_SCHEMA_TYPE_MAP_H

#include "postgres.h"
#include "access/attnum.h"
#include "access/tupdesc.h"
#include "fmgr.h"
#include "nodes/pg_list.h"

#include "core/table_def.h"

/* What becomes of a value that has no form in the target's type. */
typedef enum SchemaPolicy
{
	SCHEMA_POLICY_ERROR,    /* it stops the table */
	SCHEMA_POLICY_NULL,     /* NULL */
	SCHEMA_POLICY_EPOCH,    /* 1970-01-01 */
	SCHEMA_POLICY_INFINITY, /* -infinity */
	SCHEMA_POLICY_STRIP,    /* without it */
	SCHEMA_POLICY_REPLACE   /* U+FFFD in its place */
} SchemaPolicy;

/* All zero: each is an error. */
typedef struct SchemaPolicies
{
	SchemaPolicy
	    zero_date; /* dates that the calendar does not have: ERROR, NULL, EPOCH, INFINITY */
	SchemaPolicy nul_bytes;     /* NUL in text, \u0000 in jsonb: ERROR, STRIP, REPLACE */
	SchemaPolicy invalid_bytes; /* not valid in the column's character set: ERROR, REPLACE */
} SchemaPolicies;

typedef struct SchemaOverride SchemaOverride;

typedef struct SchemaTypeOptions
{
	bool tinyint1_as_boolean; /* tinyint(1) -> boolean instead of smallint */
	bool refuse_cascades;     /* a table that foreign keys change unseen is not supported */
	bool make_cascades;       /* what they do is done here, so it has to be known exactly */
	List *overrides;          /* of SchemaOverride, most specific first: see schema_override.c */
	SchemaPolicies policies;
	List *transforms;   /* of TransformRule, see transform/transform_rule.h */
	const char *server; /* name of the source's SERVER */
} SchemaTypeOptions;

/*
 * Option column_types, the text of a JSON object (NULL: none); throws at the first bad member. _read needs no transaction,
 * _check looks up the types too.
 */
extern List *schema_overrides_read(const char *json);
extern void schema_overrides_check(const char *json);

struct CatalogPipeline;

/* The options of a pipeline that concern types and values. */
extern void schema_options_read(const struct CatalogPipeline *pipeline, SchemaTypeOptions *options);

/*
 * PostgreSQL type of a source column as SQL text ("numeric(20)"), palloc'd;
 * extension types (geometry, vector) are schema-qualified and used only when the
 * extension is there. NULL with *why set (palloc'd, one line) when nothing here
 * can hold the column (unknown type, unsupported character set).
 */
extern char *schema_type_sql(const CdcColumnDef *column, const SchemaTypeOptions *options,
                             char **why);

typedef struct SchemaColumn SchemaColumn;
typedef Datum (*SchemaConvert)(SchemaColumn *column, const CdcCell *cell);

/* How one source column becomes one column of the target relation. */
struct SchemaColumn
{
	const CdcColumnDef *def; /* declared */
	AttrNumber attnum;       /* in the target */
	Oid typid;               /* base type when the target's is a domain */
	int32 typmod;
	Oid typioparam;
	FmgrInfo input; /* the target type's input function */
	SchemaConvert convert;
	Oid domain;              /* the target's type when that is a domain */
	void *domain_cache;      /* kept by domain_check */
	Oid run_as;              /* role whose code the target's type may be; invalid: the current one's or PostgreSQL's */
	Oid encoding;            /* conversion function from UTF-8; invalid when none is needed */
	MemoryContext cxt;       /* where what is kept lives */
	SchemaPolicies policies; /* a key column has none */

	/* of the value that was converted last */
	bool replaced;  /* a policy changed it */
	bool made_null; /* ... to NULL */
};

/*
 * Prepare a column for a target attribute. Throws
 * ERRCODE_DATATYPE_MISMATCH with a hint when values of the source type cannot
 * go into the target's type. Any target type of the map's is served directly;
 * text and varchar take every type in its text form. FmgrInfo lives in cxt.
 */
extern void schema_column_init(SchemaColumn *column, const CdcColumnDef *def,
                               Form_pg_attribute attribute, MemoryContext cxt);

/*
 * Value of a cell for that column, in CurrentMemoryContext. Checks encoding,
 * range and typmod itself. A value that has no form in the target type (zero
 * dates, NUL bytes or invalid bytes in text, \u0000 in jsonb) becomes what the
 * column's policies say, and column->replaced tells; without a policy, or out
 * of range, it throws a class 22 error (no value in it).
 */
extern Datum schema_cell_to_datum(SchemaColumn *column, const CdcCell *cell, bool *isnull);

/*
 * What a row that was inserted without that column has in it, by the column's
 * declared definition: its default, NULL, or the zero of its type. False when
 * that cannot be known. The cell may point into the definition or the arena.
 */
extern bool schema_default_cell(const CdcColumnDef *column, CdcArena *arena, CdcCell *cell);

/*
 * Text form of a cell (docs/types.md), for people: *len bytes, not always
 * terminated. Not for cells of kind TEXT, BYTES, BIT, GEOMETRY, VECTOR or NULL.
 */
extern const char *schema_cell_text(const CdcColumnDef *column, const CdcCell *cell, uint32 *len);

#endif /* CDC_SCHEMA_TYPE_MAP_H */
