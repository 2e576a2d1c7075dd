/*-------------------------------------------------------------------------
 *
 * apply_schema_merge.c
 *	  A source table that shares its target changes its shape.
 *
 * NOTES
 *	  The target has rows of other tables too, whose columns stay as they are. So
 *	  nothing is renamed or narrowed: the target only gets what it lacks
 *	  (transform/transform_merge.h). A column that all tables have dropped goes with
 *	  the last of them, where that is asked for. Where the server changed values of the table's own
 *	  rows, the table is copied anew, which replaces these rows alone.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/rel.h"

#include "apply/apply_private.h"
#include "catalog/catalog_lock.h"
#include "heap/heap_part.h"
#include "heap/heap_shard.h"
#include "schema/evolve.h"

/* Is a kind of change left out by the options? */
static bool
is_left_out(const SchemaPlan *plan, CatalogChangeKind kind)
{
	return catalog_change_mode(plan->evolve->rules, kind) == CATALOG_MODE_IGNORE;
}

static void
add_step(SchemaPlan *plan, CatalogChangeKind kind, int column, char *copy)
{
	SchemaStep *step = palloc0(sizeof(SchemaStep));

	step->kind = kind;
	step->column = column;
	/* rows are found by the key: that cannot be left out */
	step->ignored = kind != CATALOG_CHANGE_ALTER_KEY && is_left_out(plan, kind);
	step->copy = step->ignored ? NULL : copy;
	plan->steps = lappend(plan->steps, step);
	plan->kinds |= CATALOG_CHANGE_BIT(kind);
}

/* Is every value the same afterwards? */
static bool
only_widens(const CdcColumnDef *before, const CdcColumnDef *after)
{
	if (before->is_generated || after->is_generated || before->is_unsigned != after->is_unsigned)
		return false;
	if (cdc_type_is_integer(before->type) && cdc_type_is_integer(after->type))
		return after->type >= before->type && !before->is_boolean && !after->is_boolean;
	return before->type == after->type && before->type == CDC_TYPE_VARCHAR && after->length >= before->length &&
		before->collation == after->collation;
}

static void
plan_column(SchemaPlan *plan, const ApplySchemaChange *change, int i)
{
	CdcColumnDef *after = &change->after->columns[i];
	const CdcColumnDef *before = change->origin[i] >= 0 ? &change->table->def->columns[change->origin[i]] : NULL;

	after->left_out = before != NULL ? before->left_out : after->key_part == 0 && is_left_out(plan, CATALOG_CHANGE_ADD_COLUMN);
	if (before == NULL)
	{
		add_step(plan, CATALOG_CHANGE_ADD_COLUMN, i, change->defaults_known && after->nullable && after->default_text == NULL && !after->is_generated ? NULL
				 : "a column came that has a value in the rows that were there");
		return;
	}
	if (strcmp(before->name, after->name) != 0)
	{
		after->left_out |= after->key_part == 0 && is_left_out(plan, CATALOG_CHANGE_RENAME_COLUMN);
		add_step(plan, CATALOG_CHANGE_RENAME_COLUMN, i, "the values of a column that got another name are under the old one");
	}
	if (schema_type_differs(before, after))
		add_step(plan, CATALOG_CHANGE_ALTER_TYPE, i, only_widens(before, after) ? NULL : "values of a column may have been converted");
	if (before->nullable != after->nullable)
		add_step(plan, CATALOG_CHANGE_ALTER_NULLABILITY, i,
				 before->nullable && !change->is_strict ? "NULL may have become a value in a column" : NULL);
	if ((before->default_text == NULL) != (after->default_text == NULL) ||
		(after->default_text != NULL && strcmp(before->default_text, after->default_text) != 0))
		add_step(plan, CATALOG_CHANGE_ALTER_DEFAULT, i, NULL);
	if (before->key_part != after->key_part)
		add_step(plan, CATALOG_CHANGE_ALTER_KEY, i, "the key is another one");
}

SchemaPlan *
apply_schema_merge_plan(ApplySchemaChange *change, Relation rel)
{
	SchemaPlan *plan = palloc0(sizeof(SchemaPlan));

	plan->evolve = &change->evolve;
	plan->owner = rel->rd_rel->relowner;
	plan->name = pstrdup(RelationGetRelationName(rel));
	for (uint32 i = 0; i < change->table->def->ncolumns; i++)
	{
		bool		stays = false;

		for (uint32 k = 0; k < change->after->ncolumns && !stays; k++)
			stays = change->origin[k] == (int) i;
		if (!stays)
			add_step(plan, CATALOG_CHANGE_DROP_COLUMN, -1, NULL);
	}
	for (uint32 i = 0; i < change->after->ncolumns; i++)
		plan_column(plan, change, (int) i);
	return plan;
}

/* All other source tables of the target, of whichever pipelines; false: what one of them has is not known. */
static bool
load_others(const ApplyTable *table, int32 pipeline_id, List **others)
{
	ListCell   *lc;
	ListCell   *lc2;

	*others = NIL;
	foreach(lc, catalog_pipeline_list())
	{
		const CatalogPipeline *pipeline = lfirst(lc);
		SchemaTypeOptions options = {0};
		bool		is_read = false;

		foreach(lc2, catalog_table_list(pipeline->id))
		{
			const CatalogTable *row = lfirst(lc2);
			HeapShardOther *other;

			if (row->target != table->target || (pipeline->id == pipeline_id && row->table_id == table->table_id))
				continue;
			if (row->definition == (Datum) 0)
				return false;
			if (!is_read)
				transform_options_read(pipeline, &options);
			is_read = true;
			other = palloc0(sizeof(HeapShardOther));
			other->def = schema_def_from_jsonb(row->definition);
			other->options = options;
			*others = lappend(*others, other);
		}
	}
	return true;
}

/* Is a column to go when no table has it any more? */
static bool
may_drop(const ApplySchemaChange *change)
{
	const CatalogChangeRules *rules = change->evolve.rules;

	/* of a part no other table fills the column */
	return rules->mode == CATALOG_MODE_EVOLVE && (!rules->is_default || change->table->is_part) &&
		catalog_change_mode(rules, CATALOG_CHANGE_DROP_COLUMN) == CATALOG_MODE_EVOLVE;
}

void
apply_schema_merge_fit(Apply *apply, const ApplySchemaChange *change, SchemaPlan *plan)
{
	const ApplyTable *table = change->table;
	int			how = TRANSFORM_MERGE_OR_TEXT;
	char	   *sql;
	List	   *others;

	if (is_left_out(plan, CATALOG_CHANGE_ALTER_TYPE))
		how |= TRANSFORM_MERGE_KEEP_TYPES;
	if (is_left_out(plan, CATALOG_CHANGE_ALTER_NULLABILITY))
		how |= TRANSFORM_MERGE_KEEP_NOT_NULL;
	sql = heap_shard_fit(table->target, change->after, &apply->types, how, false);
	if (sql != NULL)
		plan->commands = lappend(plan->commands, sql);
	if ((plan->kinds & CATALOG_CHANGE_BIT(CATALOG_CHANGE_DROP_COLUMN)) == 0 || !may_drop(change))
		return;
	/* of two tables that drop the same column at once, the second one sees that the first has */
	catalog_lock_merge();
	if (!load_others(table, apply->pipeline_id, &others))
		return;
	sql = heap_shard_drop(table->target, table->def, change->after, change->origin, &apply->types, others);
	if (sql != NULL)
		plan->commands = lappend(plan->commands, sql);
}

Datum
apply_schema_merge_own(Apply *apply, const ApplySchemaChange *change, HeapRow *row, bool is_copied_anew)
{
	const ApplyTable *table = change->table;
	Datum		own_rows = heap_shard_own_rows(row);
	ListCell   *lc;
	ListCell   *lc2;

	/* of two tables that get the same column at once, the second one sees that the first has it */
	catalog_lock_merge();
	foreach(lc, catalog_pipeline_list())
	{
		const CatalogPipeline *pipeline = lfirst(lc);

		foreach(lc2, catalog_table_list(pipeline->id))
		{
			const CatalogTable *other = lfirst(lc2);
			char	   *clash;

			if (other->target != table->target || (pipeline->id == apply->pipeline_id && other->table_id == table->table_id))
				continue;
			clash = heap_part_clash(other->own_rows, own_rows);
			if (clash != NULL)
				ereport(ERROR,
						(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						 errmsg("source tables \"%s.%s\" and \"%s.%s\" cannot fill the same rows of target \"%s\"", other->source_schema,
								other->source_table, table->shown_schema, table->shown_name, RelationGetRelationName(row->target->rel)),
						 errdetail_internal("%s", clash),
						 errhint("Give the column another name with AS in the projection of option \"transforms\", then use cdc_resync_table().")));
		}
	}
	/* what stands in columns that are not its own any more goes when the copy begins */
	return is_copied_anew ? heap_part_union(own_rows, table->own_rows) : own_rows;
}
