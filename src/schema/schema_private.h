/*-------------------------------------------------------------------------
 *
 * schema_private.h
 *	  What the files of schema/ share among themselves only.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SCHEMA_PRIVATE_H
#define CDC_SCHEMA_PRIVATE_H

#include "mb/pg_wchar.h"

#include "schema/type_map.h"

/* A name, comment or default of a definition (UTF-8) in the database's encoding. */
static inline char *
schema_server_string(const char *str)
{
	return pg_any_to_server(str, strlen(str), PG_UTF8);
}

/* schema_column_init without the throw: false and *why (palloc'd sentence) when the types do not fit. */
extern bool schema_column_prepare(SchemaColumn *column, const CdcColumnDef *def,
                                  Form_pg_attribute attribute, MemoryContext cxt, char **why);
extern bool schema_column_is_exact(const SchemaColumn *column, Form_pg_attribute attribute, char **why);

/* Type of a column of a target to be made: the user's choice (option column_types), else the map's. NULL and *why: none. */
extern char *schema_target_type_sql(const CdcTableDef *def, const CdcColumnDef *column,
                                    const SchemaTypeOptions *options, char **why);
extern bool schema_column_is_overridden(const CdcTableDef *def, const CdcColumnDef *column,
                                        const SchemaTypeOptions *options);

/* Look a type up as workers do, by its SQL text; InvalidOid when there is none of that name. */
extern Oid schema_read_type(const char *text, int32 *typmod);

/* Put the source's key into a table's mapping, in CurrentMemoryContext. */
struct SchemaTable;
extern void schema_collect_key(const CdcTableDef *def, struct SchemaTable *table);

/* Oid of a type that an installed extension owns; InvalidOid when there is none. */
extern Oid schema_extension_type(const char *extension, const char *type_name);

/* Declared type of a source column for messages: "int(10) unsigned". */
extern const char *schema_source_type(const CdcColumnDef *def);

/* Default clause of a column ("DEFAULT 1"), palloc'd; NULL when there is none or it has no translation. */
extern char *schema_default_clause(const CdcColumnDef *column, const SchemaTypeOptions *options);

/* Value of b'101', 0b101, x'41' or 0x41 as a number; false when the text is none of them or too long. */
extern bool schema_bits_literal(const char *text, uint64 *value);

/* schema_policy.c: can the column's values become NULL by the policy for zero dates? */
extern bool schema_zero_date_is_null(const CdcColumnDef *def, const SchemaPolicies *policies);

/* Which of the policies a column has; not_null: its target is NOT NULL. */
extern void schema_column_set_policies(SchemaColumn *column, const SchemaPolicies *policies,
                                       bool not_null);

/* What stands for a date that the calendar does not have; throws when the policy is to. */
extern Datum schema_replace_date(SchemaColumn *column);

/*
 * Text of a cell with NULs or invalid bytes as the policies want it, palloc'd and
 * terminated; throws when they want an error.
 */
extern const char *schema_mend_text(SchemaColumn *column, const CdcCell *cell, uint32 *len);

/* Treat \u0000 in JSON text in place; leaves it there when the policy is an error. */
extern void schema_mend_json(SchemaColumn *column, char *text);

/* Is year, month, day a day of the calendar? Year 0 is 1 BC. */
extern bool schema_is_real_date(int year, int month, int day);

/* Converters, schema_datum.c: each takes the cells that schema_type_map.c pairs with it. */
extern Datum schema_to_bool(SchemaColumn *column, const CdcCell *cell);
extern Datum schema_to_int2(SchemaColumn *column, const CdcCell *cell);
extern Datum schema_to_int4(SchemaColumn *column, const CdcCell *cell);
extern Datum schema_to_int8(SchemaColumn *column, const CdcCell *cell);
extern Datum schema_to_float4(SchemaColumn *column, const CdcCell *cell);
extern Datum schema_to_float8(SchemaColumn *column, const CdcCell *cell);
extern Datum schema_to_numeric(SchemaColumn *column, const CdcCell *cell);
extern Datum schema_to_bits(SchemaColumn *column, const CdcCell *cell);
extern Datum schema_to_date(SchemaColumn *column, const CdcCell *cell);
extern Datum schema_to_time(SchemaColumn *column, const CdcCell *cell);
extern Datum schema_to_interval(SchemaColumn *column, const CdcCell *cell);
extern Datum schema_to_timestamp(SchemaColumn *column, const CdcCell *cell);
extern Datum schema_to_text(SchemaColumn *column, const CdcCell *cell);
extern Datum schema_to_bytea(SchemaColumn *column, const CdcCell *cell);
extern Datum schema_to_uuid(SchemaColumn *column, const CdcCell *cell);
extern Datum schema_to_real_array(SchemaColumn *column, const CdcCell *cell);
extern Datum schema_to_input(SchemaColumn *column, const CdcCell *cell);

#endif /* CDC_SCHEMA_PRIVATE_H */
