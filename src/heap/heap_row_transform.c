/*-------------------------------------------------------------------------
 *
 * heap_row_transform.c
 *	  A transform between the source's rows and an open target.
 *
 * NOTES
 *	  Whose code it is: expressions are the pipeline's owner's, casts into the
 *	  target's types and domains may be the target's owner's. So all of it runs as
 *	  rows are written: as the target's owner, in a security-restricted operation,
 *	  when that is another role than the pipeline's (who may become that role
 *	  anyway). The other way round a table's owner could have his code run as the
 *	  pipeline's.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "heap/heap_row_transform.h"
#include "util/util_role.h"

static Datum
text_of_source(const char *utf8)
{
	return CStringGetTextDatum(pg_any_to_server(pstrdup(utf8), (int) strlen(utf8), PG_UTF8));
}

static void
set_given(HeapRow *row, const TransformTable *table)
{
	bool	   *given = palloc0(sizeof(bool) * Max(RelationGetDescr(row->target->rel)->natts, 1));

	for (int i = 0; i < table->transform->ncolumns; i++)
	{
		if (table->attnums[i] > 0)
			given[table->attnums[i] - 1] = true;
	}
	heap_target_set_given(row->target, given);
	pfree(given);
}

/* Which columns of the source may not become NULL by a policy, because the target is NOT NULL there. */
static bool *
find_not_null(const HeapRow *row, const TransformTable *table)
{
	TupleDesc	desc = RelationGetDescr(row->target->rel);
	bool	   *not_null = palloc0(sizeof(bool) * Max(table->transform->nsource, 1));

	for (int i = 0; i < table->transform->nsource; i++)
		not_null[i] = table->held[i] > 0 && TupleDescAttr(desc, table->held[i] - 1)->attnotnull;
	return not_null;
}

/* The target has no index to tell its key. */
static void
set_key(HeapRow *row, const TransformTable *table)
{
	AttrNumber	attnums[INDEX_MAX_KEYS];

	if (table->nkey > INDEX_MAX_KEYS)
		ereport(ERROR,
				(errcode(ERRCODE_TOO_MANY_COLUMNS),
				 errmsg("key of table \"%s\" has more than %d columns", RelationGetRelationName(row->target->rel),
						INDEX_MAX_KEYS)));
	for (int i = 0; i < table->nkey; i++)
		attnums[i] = table->attnums[table->key[i]];
	heap_target_set_key(row->target, table->nkey, attnums);
}

void
heap_row_transform_open(HeapRow *row, const CdcTableDef *def, const TransformRule *rule, const SchemaTypeOptions *options)
{
	HeapTarget *target = row->target;
	MemoryContext cxt = target->estate->es_query_cxt;
	MemoryContext old = MemoryContextSwitchTo(cxt);
	HeapRowTransform *own = palloc0(sizeof(HeapRowTransform));
	TransformTable *table;
	UtilRoleSwitch sw;

	/* literals are read and what is immutable is called now */
	util_role_switch_begin(target->write_as, &sw);
	own->table = table = transform_table_make(def, rule, options);
	transform_table_bind(table, target->rel);
	own->state = transform_start(table->transform, target->estate);
	util_role_switch_end(&sw);

	for (int i = 0; i < table->transform->ncolumns; i++)
		own->tells_change |= transform_tells_change(table->transform, i);
	own->metadata[TRANSFORM_SERVER] = CStringGetTextDatum(options->server);
	own->metadata[TRANSFORM_SCHEMA] = text_of_source(def->schema);
	own->metadata[TRANSFORM_TABLE] = text_of_source(def->name);
	own->has_metadata[TRANSFORM_SERVER] = own->has_metadata[TRANSFORM_SCHEMA] = own->has_metadata[TRANSFORM_TABLE] = true;

	row->transform = own;
	row->has_filter = table->transform->filter != NULL;
	row->needs_snapshot = true;
	row->table = schema_row_open(def, table->transform->desc, table->used, find_not_null(row, table), &options->policies,
								 target->rel->rd_rel->relowner, cxt);
	row->fresh = ExecInitExtraTupleSlot(target->estate, table->transform->desc, &TTSOpsVirtual);
	row->old = ExecInitExtraTupleSlot(target->estate, table->transform->desc, &TTSOpsVirtual);
	set_given(row, table);
	if (target->tier == HEAP_TIER_SQL)
		set_key(row, table);
	MemoryContextSwitchTo(old);
}

void
heap_row_transform_set_origin(HeapRow *row, const HeapRowOrigin *origin)
{
	HeapRowTransform *own = row->transform;

	own->has_metadata[TRANSFORM_OPERATION] = true;
	own->metadata[TRANSFORM_OPERATION] = CStringGetTextDatum(origin->operation);
	own->has_metadata[TRANSFORM_COMMIT_TIME] = origin->commit_time != 0;
	own->metadata[TRANSFORM_COMMIT_TIME] = TimestampTzGetDatum(origin->commit_time);
	own->has_metadata[TRANSFORM_POSITION] = origin->position != NULL;
	own->metadata[TRANSFORM_POSITION] = origin->position != NULL ? CStringGetTextDatum(origin->position) : (Datum) 0;
}

void
heap_row_transform_begin(HeapRow *row, int which)
{
	HeapRowTransform *own = row->transform;
	TupleTableSlot *slot = which == 0 ? row->fresh : row->old;

	transform_begin(own->state, which, slot);
	for (int i = 0; i < TRANSFORM_METAS; i++)
	{
		int			att = transform_meta_attnum(own->table->transform, i) - 1;

		slot->tts_values[att] = own->metadata[i];
		slot->tts_isnull[att] = !own->has_metadata[i];
	}
}

static void
put_value(HeapRow *row, int which, TupleTableSlot *to, int column)
{
	HeapRowTransform *own = row->transform;
	int			att = own->table->attnums[column] - 1;

	if (att < 0)
		return;
	own->computing = column;
	to->tts_values[att] = transform_value(own->state, which, column, &to->tts_isnull[att]);
}

static void
make_key(HeapRow *row, int which, TupleTableSlot *to)
{
	const TransformTable *table = row->transform->table;

	for (int i = 0; i < table->nkey; i++)
		put_value(row, which, to, table->key[i]);
}

/* Which expression it was; util_error.c knows the line by its beginning. */
static void
computing_cb(void *arg)
{
	const HeapRowTransform *own = arg;

	if (own->computing < 0)
		errcontext("transform filter");
	else
		errcontext("transform column \"%s\"", own->table->transform->columns[own->computing].name);
}

/* What goes before and after expressions. */
static void
begin_computing(HeapRow *row, ErrorContextCallback *frame, UtilRoleSwitch *sw)
{
	frame->previous = error_context_stack;
	frame->callback = computing_cb;
	frame->arg = row->transform;
	error_context_stack = frame;
	util_role_switch_begin(row->target->write_as, sw);
}

static void
end_computing(const ErrorContextCallback *frame, const UtilRoleSwitch *sw)
{
	util_role_switch_end(sw);
	error_context_stack = frame->previous;
}

bool
heap_row_transform_make(HeapRow *row, int which)
{
	HeapRowTransform *own = row->transform;
	TupleTableSlot *to = which == 0 ? row->target->slot : row->target->search;
	ErrorContextCallback frame;
	UtilRoleSwitch sw;
	bool		passes;

	heap_target_clear(to);
	begin_computing(row, &frame, &sw);
	own->computing = -1;
	passes = transform_passes(own->state, which);
	if (passes)
	{
		for (int i = 0; i < own->table->transform->ncolumns; i++)
			put_value(row, which, to, i);
	}
	else
		make_key(row, which, to);
	end_computing(&frame, &sw);
	return passes;
}

void
heap_row_transform_make_key(HeapRow *row, int which)
{
	TupleTableSlot *to = which == 0 ? row->target->slot : row->target->search;
	ErrorContextCallback frame;
	UtilRoleSwitch sw;

	heap_target_clear(to);
	begin_computing(row, &frame, &sw);
	make_key(row, which, to);
	end_computing(&frame, &sw);
}
