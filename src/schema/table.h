/*-------------------------------------------------------------------------
 *
 * table.h
 *	  A source table's definition: stored form, target DDL, mapping to the
 *	  target relation, comparison with what an event says.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SCHEMA_TABLE_H
#define CDC_SCHEMA_TABLE_H

#include "postgres.h"
#include "lib/stringinfo.h"
#include "utils/jsonb.h"
#include "utils/rel.h"

#include "schema/type_map.h"

/* Declared definition <-> jsonb, lossless for the declared facts. Results in CurrentMemoryContext. */
extern Datum schema_def_to_jsonb(const CdcTableDef *def);
extern CdcTableDef *schema_def_from_jsonb(Datum value);

/* Has the table of a stored definition no key? */
extern bool schema_def_is_keyless(Datum value);
extern bool schema_def_has_unlogged(Datum value); /* has it foreign keys that do what the source does not log? */

/*
 * Why a table cannot be mirrored: no usable key (prefix key parts, a key column
 * of a type that cannot be one; none, and an engine without transactions), a column without a PostgreSQL type,
 * names of columns that PostgreSQL has itself, or that would be the same here. Returns false and fills *sqlstate,
 * *detail and *hint (palloc'd); all bad columns at once.
 */
extern bool schema_def_is_supported(const CdcTableDef *def, const SchemaTypeOptions *options,
                                    int *sqlstate, char **detail, char **hint);

/*
 * What a column of the source (its name in UTF-8) is called in a target, in the database's encoding: the same, or cut and with a hash where
 * that has more than 63 bytes. Palloc'd, or the source's own text.
 */
extern char *schema_column_name(const char *source_name);

/*
 * Statements that make the target: CREATE TABLE with primary key (the source's key), NOT
 * NULL (unless a policy may make the value NULL), defaults that translate, identity for
 * AUTO_INCREMENT; COMMENT ON for table and columns. Names quoted and schema-qualified. List
 * of char *.
 */
extern List *schema_create_statements(const CdcTableDef *def, const char *target_schema,
                                      const char *target_table, const SchemaTypeOptions *options);

/* A column of a target that is not simply the source's. Strings in the database's encoding. */
typedef struct SchemaOutput
{
	const char *name;
	const char *type;         /* as SQL text */
	const CdcColumnDef *from; /* it is this column unchanged; NULL: something else */
	bool not_null;
} SchemaOutput;

/* The same for a target with these columns (List of SchemaOutput) and that key (List of char *, their names). */
extern List *schema_create_statements_for(const CdcTableDef *def, List *outputs, List *key,
                                          const char *target_schema, const char *target_table,
                                          const SchemaTypeOptions *options);

/* Is a column of a target that is made for that source column NOT NULL? */
extern bool schema_column_is_not_null(const CdcColumnDef *column, const SchemaTypeOptions *options);

/* What becomes of one index of the source on the target. */
typedef struct SchemaIndex
{
	const CdcIndexDef *def;
	char *name;   /* at the source, in the database's encoding */
	char *reason; /* why there is none here; NULL: it can be built */
	const CdcColumnDef **columns; /* def->nparts */
	bool is_spatial;
} SchemaIndex;

/* Translate an index; what has no counterpart comes out with a reason. def has to outlive the result. */
extern SchemaIndex *schema_index_translate(const CdcTableDef *def, const CdcIndexDef *index,
                                           const SchemaTypeOptions *options);

/* CREATE [UNIQUE] INDEX CONCURRENTLY; only without a reason. */
extern char *schema_index_statement(const SchemaIndex *index, const char *schema,
                                    const char *table, const char *name);

/* Name for an index, below 64 bytes; attempt 1, 2, ... give others, for when one is taken. */
extern char *schema_index_name(const char *table, const char *index, int attempt);

/* Name of an index of the relation that serves as the wanted one; NULL when there is none. */
extern char *schema_index_find(const SchemaIndex *index, Relation rel);

/* The open mapping of one source table to its target relation, or to a row type (schema_row_open). */
typedef struct SchemaTable
{
	const CdcTableDef *def; /* declared */
	Oid relid;    /* InvalidOid: a row type */
	int natts;    /* of the target's tuple descriptor */
	int ncolumns; /* source columns, in def's order */
	SchemaColumn *
	    columns; /* attnum is 0 where the target takes no value: generated source columns that the target generates itself, columns that are left out */
	int nkey;
	int *key; /* source column indexes in key order */
} SchemaTable;

/*
 * Map by name. Throws, with all reasons at once, when the target lacks a
 * column, has a NOT NULL column without default that the source lacks, a
 * column's type does not fit, or a key column's type may take two different
 * values for the same. Everything in cxt; def must outlive it.
 */
extern SchemaTable *schema_table_open(const CdcTableDef *def, Relation rel,
                                      const SchemaPolicies *policies, MemoryContext cxt);

/* What a mapping looks at. The target's attribute of that name; NULL when there is none. */
extern Form_pg_attribute schema_find_attribute(TupleDesc desc, const char *name);

/* Add sentences to reasons: attributes that are not given and need a value; a primary key that is not the source's. */
extern void schema_check_other_attributes(TupleDesc desc, const bool *given, StringInfo reasons);
extern void schema_check_primary_key(Relation rel, int nkey, const AttrNumber *key, StringInfo reasons);

/* Why a target's attribute cannot take every value of a source column as it is: a sentence; NULL when it can. */
extern char *schema_column_fault(const CdcColumnDef *column, Form_pg_attribute attribute);

/*
 * The row type of a source table by itself, with the types that a target would be made with, and some attributes more
 * that the caller initialises. Throws when a column has no type.
 */
extern TupleDesc schema_row_type(const CdcTableDef *def, const SchemaTypeOptions *options, int extra);

/*
 * Map a source table to that row type: columns that are not used have attnum 0. not_null: per column, a policy may
 * not make it NULL. run_as: whose code types of users are, if that is not the current role's.
 */
extern SchemaTable *schema_row_open(const CdcTableDef *def, TupleDesc desc, const bool *used, const bool *not_null,
                                    const SchemaPolicies *policies, Oid run_as, MemoryContext cxt);

/*
 * Compare the definition that an event carries with the declared one. On
 * success returns an array of def->ncolumns indexes into the event's columns
 * (in CurrentMemoryContext), and has set in the event's columns the types that
 * the binary log cannot tell (JSON, UUID, INET4, INET6, VECTOR of MariaDB). Hidden columns
 * of functional indexes and undeclared ones of system versioning in the event are
 * passed over. On a difference returns
 * NULL and *why (palloc'd, "column \"x\" was added"); when the event lacks the
 * metadata to compare (names, sign), NULL, *why and *lacks_metadata = true.
 */
extern int *schema_match_event(const CdcTableDef *def, CdcTableDef *event, char **why,
                               bool *lacks_metadata);

/* Has an event a column in a format of old servers that does not tell all about its values, where the declared one needs it? */
extern bool schema_event_is_vague(const CdcTableDef *def, const CdcTableDef *event);

/*
 * Take the character sets that a statement had left open (collation 0) from an event's columns of the same name; false
 * when there was nothing to learn.
 */
extern bool schema_learn_collations(CdcTableDef *def, const CdcTableDef *event);

/* Column of a matching event that tells where a row's version ends; -1 when the table is not system-versioned. */
extern int schema_event_row_end(const CdcTableDef *def, const CdcTableDef *event);

/* Does the engine have transactions, as far as is known? */
extern bool schema_has_transactions(const CdcTableDef *def);

#endif /* CDC_SCHEMA_TABLE_H */
