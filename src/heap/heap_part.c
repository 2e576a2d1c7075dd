/*-------------------------------------------------------------------------
 *
 * heap_part.c
 *	  A source table's part of rows that several source tables fill.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"

#include "heap/heap_part.h"
#include "transform/transform_kind.h"
#include "util/util_name.h"

/* ---------------------------------------------------------------------- names of parts */

/* List of char *. */
static List *
read_parts(Datum value, bool isnull)
{
	List	   *parts = NIL;
	Datum	   *elements;
	bool	   *nulls;
	int			count = 0;

	if (!isnull)
		deconstruct_array(DatumGetArrayTypeP(value), TEXTOID, -1, false, TYPALIGN_INT, &elements, &nulls, &count);
	for (int i = 0; i < count; i++)
	{
		if (!nulls[i])
			parts = lappend(parts, TextDatumGetCString(elements[i]));
	}
	return parts;
}

static Datum
make_parts(const List *parts)
{
	Datum	   *elements = palloc(sizeof(Datum) * Max(list_length(parts), 1));
	int			count = 0;
	const ListCell *lc;

	foreach(lc, parts)
		elements[count++] = CStringGetTextDatum(lfirst(lc));
	return PointerGetDatum(construct_array(elements, count, TEXTOID, -1, false, TYPALIGN_INT));
}

static bool
has_name(const List *names, const char *name)
{
	const ListCell *lc;

	foreach(lc, names)
	{
		if (strcmp(lfirst(lc), name) == 0)
			return true;
	}
	return false;
}

static List *
without(const List *names, const char *name)
{
	List	   *result = NIL;
	const ListCell *lc;

	foreach(lc, names)
	{
		if (strcmp(lfirst(lc), name) != 0)
			result = lappend(result, lfirst(lc));
	}
	return result;
}

static int
compare_names(const ListCell *a, const ListCell *b)
{
	return strcmp(lfirst(a), lfirst(b));
}

bool
heap_part_is_in(Datum parts, const char *part)
{
	return has_name(read_parts(parts, false), part);
}

/* ------------------------------------------------------------------------------- rows */

static const TransformTable *
table_of(const HeapRow *row)
{
	return row->transform != NULL && row->transform->table->parts >= 0 ? row->transform->table : NULL;
}

bool
heap_part_is_used(const HeapRow *row)
{
	return table_of(row) != NULL;
}

/* The attribute that has the names. */
static int
parts_attribute(const TransformTable *table)
{
	return table->attnums[table->parts] - 1;
}

/* The parts of the row that was read last. */
static List *
stored_parts(const HeapRow *row)
{
	const TupleTableSlot *stored = row->target->stored;
	int			att = parts_attribute(table_of(row));

	return read_parts(stored->tts_values[att], stored->tts_isnull[att]);
}

bool
heap_part_is_there(HeapRow *row)
{
	return heap_target_read(row->target) && has_name(stored_parts(row), transform_kind_part(table_of(row)));
}

/* Lock the row with search's key and read its parts; false when there is none. It can be updated or deleted then. */
static bool
find_parts(HeapRow *row, List **parts)
{
	/* locked first, so that nobody changes it between reading and writing; reading lets go of it */
	if (!heap_target_find(row->target) || !heap_target_read(row->target))
		return false;
	*parts = stored_parts(row);
	return heap_target_find(row->target);
}

bool
heap_part_put(HeapRow *row)
{
	HeapTarget *target = row->target;
	const TransformTable *table = table_of(row);
	const char *part = transform_kind_part(table);
	int			att = parts_attribute(table);
	List	   *parts;
	bool		was_there;

	if (!find_parts(row, &parts))
	{
		heap_target_insert(target);
		return false;
	}
	was_there = has_name(parts, part);
	if (!was_there)
	{
		parts = lappend(parts, pstrdup(part));
		list_sort(parts, compare_names);
	}
	target->slot->tts_values[att] = make_parts(parts);
	target->slot->tts_isnull[att] = false;
	heap_target_update(target);
	return was_there;
}

static bool
is_key(const TransformTable *table, int column)
{
	for (int i = 0; i < table->nkey; i++)
	{
		if (table->key[i] == column)
			return true;
	}
	return false;
}

/* Is it a column that the part has for itself, and that the target takes? */
static bool
is_own(const TransformTable *table, int column)
{
	return column < table->nprojected && table->attnums[column] > 0 && !is_key(table, column);
}

/* The row that was read, without the part. */
static void
set_rest(const TransformTable *table, HeapTarget *target, const List *parts)
{
	int			att = parts_attribute(table);

	heap_set_row(target->slot, target->stored->tts_values, target->stored->tts_isnull);
	for (int i = 0; i < table->nprojected; i++)
	{
		if (is_own(table, i))
			target->slot->tts_isnull[table->attnums[i] - 1] = true;
	}
	target->slot->tts_values[att] = make_parts(parts);
	target->slot->tts_isnull[att] = false;
}

bool
heap_part_remove(HeapRow *row)
{
	HeapTarget *target = row->target;
	const TransformTable *table = table_of(row);
	const char *part = transform_kind_part(table);
	int			natts = RelationGetDescr(target->rel)->natts;
	Datum	   *values;
	bool	   *isnull;
	List	   *parts;

	if (!find_parts(row, &parts) || !has_name(parts, part))
		return false;
	parts = without(parts, part);
	if (parts == NIL)
	{
		heap_target_delete(target);
		return true;
	}
	/* the row that the change brings stands in the slot, when its key is another one */
	values = palloc(sizeof(Datum) * natts);
	isnull = palloc(sizeof(bool) * natts);
	memcpy(values, target->slot->tts_values, sizeof(Datum) * natts);
	memcpy(isnull, target->slot->tts_isnull, sizeof(bool) * natts);
	set_rest(table, target, parts);
	heap_target_update(target);
	heap_set_row(target->slot, values, isnull);
	pfree(values);
	pfree(isnull);
	return true;
}

/* ----------------------------------------------------------------------- what is own */

static Datum
make_own(const char *part, const List *columns)
{
	StringInfoData json;
	const ListCell *lc;

	initStringInfo(&json);
	appendStringInfoString(&json, "{\"part\": ");
	escape_json(&json, part);
	appendStringInfoString(&json, ", \"columns\": [");
	foreach(lc, columns)
	{
		appendStringInfoString(&json, foreach_current_index(lc) > 0 ? ", " : "");
		escape_json(&json, lfirst(lc));
	}
	appendStringInfoString(&json, "]}");
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(json.data));
}

Datum
heap_part_own(const HeapRow *row)
{
	const TransformTable *table = table_of(row);
	List	   *columns = NIL;

	for (int i = 0; i < table->nprojected; i++)
	{
		if (is_own(table, i))
			columns = lappend(columns, table->transform->columns[i].name);
	}
	return make_own(transform_kind_part(table), columns);
}

static JsonbValue *
member(Datum own_rows, const char *name)
{
	return getKeyJsonValueFromContainer(&DatumGetJsonbP(own_rows)->root, name, (int) strlen(name), NULL);
}

/* Columns that say where rows are from have texts; a list has no other meaning. */
bool
heap_part_is(Datum own_rows)
{
	JsonbValue *columns = own_rows != (Datum) 0 ? member(own_rows, "columns") : NULL;

	return columns != NULL && columns->type == jbvBinary;
}

static char *
name_of(Datum own_rows)
{
	JsonbValue *part = member(own_rows, "part");

	return pnstrdup(part->val.string.val, part->val.string.len);
}

static List *
columns_of(Datum own_rows)
{
	JsonbContainer *array = member(own_rows, "columns")->val.binary.data;
	List	   *names = NIL;

	for (uint32 i = 0; i < JsonContainerSize(array); i++)
	{
		JsonbValue *name = getIthJsonbValueFromContainer(array, i);

		names = lappend(names, pnstrdup(name->val.string.val, name->val.string.len));
	}
	return names;
}

Datum
heap_part_union(Datum own_rows, Datum other)
{
	List	   *columns = columns_of(own_rows);
	ListCell   *lc;

	foreach(lc, columns_of(other))
	{
		if (!has_name(columns, lfirst(lc)))
			columns = lappend(columns, lfirst(lc));
	}
	return make_own(name_of(own_rows), columns);
}

static _Noreturn void
throw_other(const HeapRow *row, char *detail)
{
	const CdcTableDef *def = row->table->def;

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("source table \"%s.%s\" has its place in target \"%s\" by other options", util_name_of_source(def->schema),
					util_name_of_source(def->name), RelationGetRelationName(row->target->rel)),
			 errdetail_internal("%s", detail),
			 errhint("Use cdc_resync_table().")));
}

void
heap_part_check(const HeapRow *row, Datum own_rows)
{
	const TransformTable *table = table_of(row);
	List	   *columns;

	if (table == NULL && heap_part_is(own_rows))
		throw_other(row, psprintf("It has a part of the rows there, called \"%s\", and option \"%s\" says now that its rows are whole.",
								  name_of(own_rows), TRANSFORM_OPTION));
	if (table == NULL)
		return;
	if (!heap_part_is(own_rows))
		throw_other(row, psprintf("Its rows there are whole, and option \"%s\" says now that they are parts.", TRANSFORM_OPTION));
	if (strcmp(name_of(own_rows), transform_kind_part(table)) != 0)
		throw_other(row, psprintf("Its part of the rows is called \"%s\" there, and \"%s\" now.", name_of(own_rows), transform_kind_part(table)));
	columns = columns_of(own_rows);
	for (int i = 0; i < table->nprojected; i++)
	{
		if (is_own(table, i) && !has_name(columns, table->transform->columns[i].name))
			throw_other(row, psprintf("Column \"%s\" was not one of its own.", table->transform->columns[i].name));
	}
}

char *
heap_part_clash(Datum a, Datum b)
{
	List	   *columns;
	ListCell   *lc;

	if (!heap_part_is(a) || !heap_part_is(b))
		return pstrdup("One of them fills its part of the rows there, the other one has rows of its own.");
	if (strcmp(name_of(a), name_of(b)) == 0)
		return psprintf("The part of both is called \"%s\".", name_of(a));
	columns = columns_of(a);
	foreach(lc, columns_of(b))
	{
		if (has_name(columns, lfirst(lc)))
			return psprintf("Both fill column \"%s\".", (char *) lfirst(lc));
	}
	return NULL;
}

/* ------------------------------------------------------------------------- statements */

char *
heap_part_condition(Datum own_rows)
{
	return psprintf("%s @> ARRAY[%s]::pg_catalog.text[]", TRANSFORM_PARTS, quote_literal_cstr(name_of(own_rows)));
}

char *
heap_part_clear_statements(Oid relid, const char *relation, Datum own_rows)
{
	const char *part = quote_literal_cstr(name_of(own_rows));
	const char *condition = heap_part_condition(own_rows);
	StringInfoData sql;
	ListCell   *lc;

	initStringInfo(&sql);
	appendStringInfo(&sql, "DELETE FROM %s WHERE %s AND pg_catalog.array_remove(%s, %s) = '{}'; UPDATE %s SET ", relation, condition,
					 TRANSFORM_PARTS, part, relation);
	foreach(lc, columns_of(own_rows))
	{
		/* it may have been dropped */
		if (get_attnum(relid, lfirst(lc)) > 0)
			appendStringInfo(&sql, "%s = NULL, ", quote_identifier(lfirst(lc)));
	}
	appendStringInfo(&sql, "%s = pg_catalog.array_remove(%s, %s) WHERE %s", TRANSFORM_PARTS, TRANSFORM_PARTS, part, condition);
	return sql.data;
}
