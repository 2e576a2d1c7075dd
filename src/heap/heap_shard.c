/*-------------------------------------------------------------------------
 *
 * heap_shard.c
 *	  A source table's own rows in a target that several source tables share.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "executor/spi.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"

#include "catalog/catalog_lock.h"
#include "heap/heap_part.h"
#include "heap/heap_shard.h"
#include "transform/transform_kind.h"
#include "util/util_name.h"
#include "util/util_role.h"
#include "util/util_spi.h"

/* ---------------------------------------------------------------- which rows they are */

static _Noreturn void
throw_untold(const CdcTableDef *def)
{
	StringInfoData key;

	initStringInfo(&key);
	for (uint32 part = 1; part <= def->nkey; part++)
	{
		for (uint32 i = 0; i < def->ncolumns; i++)
		{
			if (def->columns[i].key_part == part)
				appendStringInfo(&key, ", \"%s\"", util_name_of_source(def->columns[i].name));
		}
	}
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("the key of source table \"%s.%s\" does not tell its rows from those of others in the same target",
					util_name_of_source(def->schema), util_name_of_source(def->name)),
			 errdetail("Its route has \"merge\", so the target's key needs a column that says where a row is from."),
			 def->nkey == 0
			 ? errhint("Give the source's table a primary key.")
			 : errhint("Set the option \"transforms\", for example to [{\"tables\": \"%s.*\", \"projection\": \"cdc_schema AS shard, *\", \"key\": [\"shard\"%s]}], then use cdc_resync_table().",
					   util_name_of_source(def->schema), key.data)));
}

bool
heap_shard_tells(const Transform *transform, int column)
{
	int			attnum = -1;

	if (transform->columns[column].is_mutable || transform_tells_change(transform, column))
		return false;
	while ((attnum = bms_next_member(transform->columns[column].uses, attnum)) >= 0)
	{
		if (attnum <= transform->nsource)
			return false;
	}
	return true;
}

void
heap_shard_check_key(const CdcTableDef *def, const TransformTable *table)
{
	if (table != NULL && table->parts >= 0)
		return;
	for (int i = 0; table != NULL && i < table->nkey; i++)
	{
		if (heap_shard_tells(table->transform, table->key[i]))
			return;
	}
	throw_untold(def);
}

static void
append_member(StringInfo json, const HeapRow *row, int column)
{
	const TransformTable *table = row->transform->table;
	Oid			typid = TupleDescAttr(RelationGetDescr(row->target->rel), table->attnums[column] - 1)->atttypid;
	Oid			output;
	bool		is_varlena;
	bool		isnull;
	Datum		value = transform_value(row->transform->state, 0, column, &isnull);

	if (isnull)
		throw_untold(table->def);
	getTypeOutputInfo(typid, &output, &is_varlena);
	appendStringInfoString(json, json->len > 1 ? ", " : "");
	escape_json(json, table->transform->columns[column].name);
	appendStringInfoString(json, ": ");
	escape_json(json, OidOutputFunctionCall(output, value));
}

Datum
heap_shard_own_rows(HeapRow *row)
{
	const TransformRule *rule;
	StringInfoData json;
	UtilRoleSwitch sw;

	if (row->transform == NULL)
		throw_untold(row->table->def);
	if (heap_part_is_used(row))
		return heap_part_own(row);
	rule = row->transform->table->transform->rule;
	if (rule->kind != TRANSFORM_MIRROR)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("target of kind \"%s\" cannot be shared by several source tables", transform_kind_name(rule->kind)),
				 errdetail("Member %d of option \"%s\" asks for the kind, and a route for the sharing.", rule->number, TRANSFORM_OPTION),
				 errhint("Give each source table a target of its own, and read them together through a view.")));
	initStringInfo(&json);
	appendStringInfoChar(&json, '{');
	heap_row_begin(row);
	util_role_switch_begin(row->transform->run_as, &sw);
	for (int i = 0; i < row->transform->table->nkey; i++)
	{
		if (heap_shard_tells(row->transform->table->transform, row->transform->table->key[i]))
			append_member(&json, row, row->transform->table->key[i]);
	}
	util_role_switch_end(&sw);
	if (json.len == 1)
		throw_untold(row->transform->table->def);
	appendStringInfoChar(&json, '}');
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(json.data));
}

bool
heap_shard_differs(Datum a, Datum b)
{
	Jsonb	   *first = DatumGetJsonbP(a);
	Jsonb	   *second = DatumGetJsonbP(b);
	JsonbIterator *it = JsonbIteratorInit(&first->root);
	JsonbIteratorToken token;
	JsonbValue	value;
	bool		differs = false;

	/* with other columns, one table's value may be what another takes from its rows */
	if (JB_ROOT_COUNT(first) != JB_ROOT_COUNT(second))
		return false;
	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		JsonbValue *other;

		if (token != WJB_KEY)
			continue;
		other = getKeyJsonValueFromContainer(&second->root, value.val.string.val, value.val.string.len, NULL);
		if (other == NULL)
			return false;
		(void) JsonbIteratorNext(&it, &value, true);
		differs |= value.val.string.len != other->val.string.len ||
			memcmp(value.val.string.val, other->val.string.val, value.val.string.len) != 0;
	}
	return differs;
}

static char *
condition(Datum own_rows)
{
	JsonbIterator *it = JsonbIteratorInit(&DatumGetJsonbP(own_rows)->root);
	JsonbIteratorToken token;
	JsonbValue	value;
	StringInfoData sql;

	if (heap_part_is(own_rows))
		return heap_part_condition(own_rows);
	initStringInfo(&sql);
	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
			appendStringInfo(&sql, "%s%s", sql.len > 0 ? " AND " : "",
							 quote_identifier(pnstrdup(value.val.string.val, value.val.string.len)));
		else if (token == WJB_VALUE)
			appendStringInfo(&sql, " = %s", quote_literal_cstr(pnstrdup(value.val.string.val, value.val.string.len)));
	}
	return sql.data;
}

/* ------------------------------------------------------------------------- statements */

/* Check that the relation may be written, and tell as whom. */
static Oid
writer_of(Oid relid)
{
	HeapTarget *target = heap_target_open(relid, false);
	Oid			write_as = target->write_as;

	heap_target_close(target);
	return write_as;
}

/* Run a statement as the target's owner; how many rows it concerned. */
static uint64
run(Oid relid, const char *sql)
{
	MemoryContext cxt = CurrentMemoryContext;
	UtilRoleSwitch sw;
	uint64		rows;

	util_role_switch_begin(writer_of(relid), &sw);
	SPI_connect();
	util_spi_run(sql);
	rows = SPI_processed;
	SPI_finish();
	util_role_switch_end(&sw);
	CommandCounterIncrement();
	MemoryContextSwitchTo(cxt);
	return rows;
}

/* The relation's name, with ONLY where tables may merely inherit from it. */
static char *
name_in(Oid relid)
{
	return psprintf("%s%s", get_rel_relkind(relid) == RELKIND_RELATION ? "ONLY " : "",
					quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)), get_rel_name(relid)));
}

bool
heap_shard_has_rows(Oid relid, Datum own_rows)
{
	return run(relid, psprintf("SELECT FROM %s WHERE %s LIMIT 1", name_in(relid), condition(own_rows))) > 0;
}

char *
heap_shard_empty(Oid relid, Datum own_rows)
{
	char	   *sql;

	if (heap_part_is(own_rows))
	{
		catalog_lock_target(relid);
		sql = heap_part_clear_statements(relid, name_in(relid), own_rows);
	}
	else
		sql = psprintf("DELETE FROM %s WHERE %s", name_in(relid), condition(own_rows));
	(void) run(relid, sql);
	return sql;
}

/* What would have to be done, as the relation is now. */
static char *
plan_fit(Oid relid, Oid write_as, const CdcTableDef *def, const SchemaTypeOptions *options, int how, bool *changes_key)
{
	Relation	rel = relation_open(relid, AccessShareLock);
	const TransformRule *rule = transform_table_rule(def, options);
	UtilRoleSwitch sw;
	char	   *sql;

	if (rule == NULL)
		throw_untold(def);
	util_role_switch_begin(write_as, &sw);
	sql = transform_merge_statement(transform_table_make(def, rule, options), rel, how, options, changes_key);
	util_role_switch_end(&sw);
	relation_close(rel, NoLock);
	return sql;
}

char *
heap_shard_fit(Oid relid, const CdcTableDef *def, const SchemaTypeOptions *options, int how, bool may_change_key)
{
	Oid			write_as = writer_of(relid);
	bool		changes_key;
	char	   *sql = plan_fit(relid, write_as, def, options, how, &changes_key);

	if (sql == NULL)
		return NULL;
	LockRelationOid(relid, AccessExclusiveLock);
	sql = plan_fit(relid, write_as, def, options, how, &changes_key);
	if (sql == NULL)
		return NULL;
	if (changes_key && !may_change_key)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the key of table \"%s\" cannot become wider while other source tables are copied into it", get_rel_name(relid)),
				 errdetail("It would be: %s.", sql),
				 errhint("When they stream, use cdc_resync_table().")));
	(void) run(relid, sql);
	return sql;
}

/* ------------------------------------------------------------- columns that all have dropped */

/* What a table gives to its target. Run as who writes it. */
static const Transform *
gives(const CdcTableDef *def, const SchemaTypeOptions *options)
{
	const TransformRule *rule = transform_table_rule(def, options);

	if (rule == NULL)
		throw_untold(def);
	return transform_table_make(def, rule, options)->transform;
}

static bool
has_column(const Transform *transform, const char *name)
{
	for (int i = 0; i < transform->ncolumns; i++)
	{
		if (strcmp(transform->columns[i].name, name) == 0)
			return true;
	}
	return false;
}

static bool
is_kept(const CdcTableDef *after, const int *origin, int column)
{
	for (uint32 i = 0; i < after->ncolumns; i++)
	{
		if (origin[i] == column)
			return true;
	}
	return false;
}

/* Names of columns that a table gave and does not give any more, since its source dropped them. */
static List *
dropped_names(const CdcTableDef *before, const CdcTableDef *after, const int *origin, const SchemaTypeOptions *options)
{
	const Transform *old = gives(before, options);
	const Transform *new = gives(after, options);
	List	   *names = NIL;

	for (int i = 0; i < old->ncolumns; i++)
	{
		const TransformColumn *column = &old->columns[i];

		if (column->from > 0 && column->from <= old->nsource && !is_kept(after, origin, column->from - 1) && !has_column(new, column->name))
			names = lappend(names, pstrdup(column->name));
	}
	return names;
}

static bool
others_give(const List *others, const char *name)
{
	const ListCell *lc;

	foreach(lc, others)
	{
		const HeapShardOther *other = lfirst(lc);

		if (has_column(gives(other->def, &other->options), name))
			return true;
	}
	return false;
}

/* The statement, as the relation is now. */
static char *
drop_statement(Oid relid, const List *names, const List *others)
{
	Relation	rel = relation_open(relid, AccessShareLock);
	Bitmapset  *key = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_PRIMARY_KEY);
	StringInfoData parts;
	const ListCell *lc;

	initStringInfo(&parts);
	foreach(lc, names)
	{
		Form_pg_attribute att = schema_find_attribute(RelationGetDescr(rel), lfirst(lc));

		if (att != NULL && !bms_is_member(att->attnum - FirstLowInvalidHeapAttributeNumber, key) && !others_give(others, lfirst(lc)))
			appendStringInfo(&parts, "%sDROP COLUMN %s", parts.len > 0 ? ", " : "", quote_identifier(lfirst(lc)));
	}
	relation_close(rel, NoLock);
	return parts.len == 0 ? NULL
		: psprintf("ALTER TABLE %s %s", quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)), get_rel_name(relid)), parts.data);
}

char *
heap_shard_drop(Oid relid, const CdcTableDef *before, const CdcTableDef *after, const int *origin, const SchemaTypeOptions *options,
				const List *others)
{
	UtilRoleSwitch sw;
	List	   *names;
	char	   *sql;

	util_role_switch_begin(writer_of(relid), &sw);
	names = dropped_names(before, after, origin, options);
	sql = names == NIL ? NULL : drop_statement(relid, names, others);
	util_role_switch_end(&sw);
	if (sql == NULL)
		return NULL;
	LockRelationOid(relid, AccessExclusiveLock);
	(void) run(relid, sql);
	return sql;
}
