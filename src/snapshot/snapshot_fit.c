/*-------------------------------------------------------------------------
 *
 * snapshot_fit.c
 *	  A table whose source changed its shape is copied anew.
 *
 * NOTES
 *	  Chunks show the source as it is when they are read, the stream shows it as it
 *	  was. A change of shape between the two cannot be carried over into a copy
 *	  that is half way through: some of its chunks may have seen it. So the table goes
 *	  back to the state before its first chunk (snapshot_begin_anew), and nothing of
 *	  it counts until it has a place in the stream again. It gets that when the stream
 *	  has come to where the log ended when the change was noticed: so a stream that
 *	  is behind does not meet the same statements once more.
 *
 *	  The new copy is written beside the rows that are there, into a relation of
 *	  the same layout. So the target is brought into the table's present shape first; what
 *	  its rows have in columns that came or changed is replaced with them. A key that they
 *	  cannot have (it is made of a column that came) waits until then: only the new
 *	  copy has it.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"

#include "compat/pg_compat.h"
#include "snapshot/snapshot_private.h"
#include "transform/transform_index.h"
#include "util/util_lock.h"

static SchemaPlan *
make_plan(const SnapshotPrepare *p, const SnapshotCandidate *c, SchemaEvolve *evolve, Oid relid)
{
	SchemaPlan *plan;

	evolve->rel = relation_open(relid, AccessShareLock);
	evolve->rules = &p->rules;
	evolve->types = &p->options;
	/* what rows have does not matter, but there may be some */
	evolve->has_rows = true;
	/* but with "lenient" what columns hold that the source has no more is carried over by the key */
	evolve->key_may_wait = p->rules.mode != CATALOG_MODE_LENIENT;
	evolve->is_projected = !transform_lets_follow(evolve->before, evolve->after, evolve->origin, &p->options);
	plan = schema_evolve_plan(evolve);
	transform_index_steps(p->pipeline->id, c->table.table_id, evolve, evolve->rel, true, plan);
	relation_close(evolve->rel, AccessShareLock);
	evolve->rel = NULL;
	return plan;
}

/* Is there a column now that comes from that one? */
static bool
is_origin(const int *origin, uint32 n, int before)
{
	for (uint32 i = 0; i < n; i++)
	{
		if (origin[i] == before)
			return true;
	}
	return false;
}

/*
 * A column of the key that is gone, and one of its type that is new at the same place of the key: it has another name. A new column
 * could not be the key of the rows that are there until the copy takes their place; what they have in it does not matter.
 */
static void
match_key(const CdcTableDef *before, const CdcTableDef *after, int *origin)
{
	for (uint32 part = 1; part <= after->nkey; part++)
	{
		int			now = cdc_table_def_key_column(after, part);
		int			old = cdc_table_def_key_column(before, part);

		if (now >= 0 && old >= 0 && origin[now] < 0 && !is_origin(origin, after->ncolumns, old) &&
			after->columns[now].type == before->columns[old].type)
			origin[now] = old;
	}
}

/* A column that somebody took out of the target, or renamed there to keep what it holds, comes again with the new copy. */
static void
forget_missing(const SnapshotPrepare *p, const CdcTableDef *before, const CdcTableDef *after, Oid relid, int *origin)
{
	if (transform_table_rule(before, &p->options) != NULL)
		return;
	for (uint32 i = 0; i < after->ncolumns; i++)
	{
		if (origin[i] >= 0 && !before->columns[origin[i]].left_out &&
			get_attnum(relid, schema_column_name(before->columns[origin[i]].name)) == InvalidAttrNumber)
			origin[i] = -1;
	}
}

/* What was copied of a table without a key is of no use, and nothing can be copied beside it. */
static void
empty_target(Oid relid)
{
	Relation	rel;

	util_lock_wait_briefly();
	LockRelationOid(relid, AccessExclusiveLock);
	util_lock_wait_long();
	rel = relation_open(relid, NoLock);
	if (rel->rd_rel->relkind == RELKIND_RELATION)
		cdc_truncate_relation(rel);
	relation_close(rel, NoLock);
}

void
snapshot_fit_target(const SnapshotPrepare *p, SnapshotCandidate *c, Oid relid)
{
	SchemaEvolve *evolve = palloc0(sizeof(SchemaEvolve));
	int		   *origin = palloc(sizeof(int) * Max(c->def->ncolumns, 1));
	SchemaPlan *plan;

	c->plan = NULL;
	c->fit = NULL;
	if (c->before == (Datum) 0 || p->rules.mode == CATALOG_MODE_EXCEPTION)
		return;
	if (c->was_copying && schema_def_is_keyless(c->before))
		empty_target(relid);
	evolve->before = schema_def_from_jsonb(c->before);
	evolve->after = c->def;
	evolve->origin = origin;
	evolve->defaults_known = true;
	(void) schema_evolve_origins(evolve->before, evolve->after, origin);
	match_key(evolve->before, evolve->after, origin);
	forget_missing(p, evolve->before, evolve->after, relid, origin);
	plan = make_plan(p, c, evolve, relid);
	if (schema_evolve_has_commands(plan))
	{
		util_lock_wait_briefly();
		LockRelationOid(relid, AccessExclusiveLock);
		plan = make_plan(p, c, evolve, relid);
		schema_evolve_run(plan);
		util_lock_wait_long();
	}
	c->fit = evolve;
	if (!schema_evolve_is_empty(plan))
		c->plan = plan;
}

void
snapshot_fit_note(const SnapshotPrepare *p, const SnapshotCandidate *c, const CdcPosition *at)
{
	CatalogSchemaChange row = {
		.pipeline_id = p->pipeline->id,
		.table_id = c->table.table_id,
		.source_schema = c->table.source_schema,
		.source_table = c->table.source_table,
		.position = *at,
	};

	if (c->fit != NULL)
		(void) transform_index_write(p->pipeline->id, c->table.table_id, c->fit,
									 OidIsValid(c->table.swap_into) ? c->table.swap_into : c->table.target);
	if (c->plan == NULL)
		return;
	row.kinds = c->plan->kinds;
	row.commands = c->plan->commands;
	row.result = c->plan->failed != NULL ? CATALOG_CHANGE_FAILED : CATALOG_CHANGE_APPLIED;
	row.error = c->plan->failed;
	catalog_history_insert(&row, p->rules.max_rows);
}

bool
snapshot_begin_anew(int32 pipeline_id, const CatalogTable *table)
{
	CatalogPipeline *pipeline = catalog_pipeline_by_id(pipeline_id);
	CatalogTable *now = catalog_table_by_id(pipeline_id, table->table_id);
	CatalogChangeRules rules;

	if (pipeline == NULL || now == NULL || now->generation != table->generation ||
		(now->state != CATALOG_TABLE_SNAPSHOT && now->state != CATALOG_TABLE_CATCHUP))
		return false;
	catalog_change_rules_read(pipeline, &rules);
	if (rules.mode == CATALOG_MODE_EXCEPTION)
		return false;
	catalog_pipeline_ask_tables(pipeline_id);
	catalog_table_copy_anew(pipeline_id, table->table_id);
	return true;
}
