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

#include "core/table_def.h"

typedef struct SchemaTypeOptions
{
	bool tinyint1_as_boolean; /* tinyint(1) -> boolean instead of smallint */
} SchemaTypeOptions;

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
	Oid domain;         /* the target's type when that is a domain */
	void *domain_cache; /* kept by domain_check */
	Oid encoding;       /* conversion function from UTF-8; invalid when none is needed */
	MemoryContext cxt;  /* where what is kept lives */
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
 * range and typmod itself. Throws a class 22 error (no value in it) when the
 * value has no form in the target type: zero dates, NUL bytes or invalid bytes
 * in text, \u0000 in jsonb, out of range.
 */
extern Datum schema_cell_to_datum(SchemaColumn *column, const CdcCell *cell, bool *isnull);

#endif /* CDC_SCHEMA_TYPE_MAP_H */
