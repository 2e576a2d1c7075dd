/*-------------------------------------------------------------------------
 *
 * transform_run.c
 *	  The transform of a source table over rows of an open target.
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
#include "utils/builtins.h"

#include "transform/transform_run.h"
#include "util/util_name.h"
#include "util/util_role.h"

static Datum
text_of_source(const char *utf8)
{
	return CStringGetTextDatum(util_name_of_source(utf8));
}

/* Which columns of the source may not become NULL by a policy, because the target is NOT NULL there. */
static bool *
find_not_null(Relation rel, const TransformTable *table)
{
	bool	   *not_null = palloc0(sizeof(bool) * Max(table->transform->nsource, 1));

	for (int i = 0; i < table->transform->nsource; i++)
		not_null[i] = table->held[i] > 0 && TupleDescAttr(RelationGetDescr(rel), table->held[i] - 1)->attnotnull;
	return not_null;
}

static void
set_metadata(TransformRun *run, TransformMeta meta, bool has, Datum value)
{
	run->has_metadata[meta] = has;
	run->metadata[meta] = value;
}

TransformRun *
transform_run_open(Relation rel, EState *estate, const CdcTableDef *def, const TransformRule *rule,
				   const SchemaTypeOptions *options, Oid run_as)
{
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	TransformRun *run = palloc0(sizeof(TransformRun));
	TransformTable *table;
	UtilRoleSwitch sw;

	/* literals are read and what is immutable is called now */
	util_role_switch_begin(run_as, &sw);
	run->table = table = transform_table_make(def, rule, options);
	transform_table_bind(table, rel);
	run->state = transform_start(table->transform, estate);
	util_role_switch_end(&sw);

	run->run_as = run_as;
	run->source = schema_row_open(def, table->transform->desc, table->used, find_not_null(rel, table), &options->policies,
								  rel->rd_rel->relowner, estate->es_query_cxt);
	for (int i = 0; i < table->transform->ncolumns; i++)
		run->tells_change |= transform_tells_change(table->transform, i);
	set_metadata(run, TRANSFORM_SERVER, true, CStringGetTextDatum(options->server));
	set_metadata(run, TRANSFORM_SCHEMA, true, text_of_source(def->schema));
	set_metadata(run, TRANSFORM_TABLE, true, text_of_source(def->name));
	MemoryContextSwitchTo(old);
	return run;
}

void
transform_run_set_origin(TransformRun *run, const TransformOrigin *origin)
{
	set_metadata(run, TRANSFORM_OPERATION, true, CStringGetTextDatum(origin->operation));
	set_metadata(run, TRANSFORM_COMMIT_TIME, origin->commit_time != 0, TimestampTzGetDatum(origin->commit_time));
	set_metadata(run, TRANSFORM_POSITION, origin->position != NULL,
				 origin->position != NULL ? CStringGetTextDatum(origin->position) : (Datum) 0);
}

void
transform_run_begin(TransformRun *run, int which, TupleTableSlot *row)
{
	ExecStoreAllNullTuple(row);
	transform_begin(run->state, which, row);
	for (int i = 0; i < TRANSFORM_METAS; i++)
	{
		int			att = transform_meta_attnum(run->table->transform, i) - 1;

		row->tts_values[att] = run->metadata[i];
		row->tts_isnull[att] = !run->has_metadata[i];
	}
}

static void
put_value(TransformRun *run, int which, TupleTableSlot *to, int column)
{
	int			att = run->table->attnums[column] - 1;

	if (att < 0)
		return;
	run->computing = column;
	to->tts_values[att] = transform_value(run->state, which, column, &to->tts_isnull[att]);
}

static void
put_key(TransformRun *run, int which, TupleTableSlot *to)
{
	for (int i = 0; i < run->table->nkey; i++)
		put_value(run, which, to, run->table->key[i]);
}

/* Which expression it was; util_error.c knows the line by its beginning. */
static void
computing_cb(void *arg)
{
	const TransformRun *run = arg;

	if (run->computing < 0)
		errcontext("transform filter");
	else
		errcontext("transform column \"%s\"", run->table->transform->columns[run->computing].name);
}

/* What goes before and after expressions. */
static void
begin_computing(TransformRun *run, ErrorContextCallback *frame, UtilRoleSwitch *sw)
{
	frame->previous = error_context_stack;
	frame->callback = computing_cb;
	frame->arg = run;
	error_context_stack = frame;
	util_role_switch_begin(run->run_as, sw);
}

static void
end_computing(const ErrorContextCallback *frame, const UtilRoleSwitch *sw)
{
	util_role_switch_end(sw);
	error_context_stack = frame->previous;
}

bool
transform_run_make(TransformRun *run, int which, TupleTableSlot *to)
{
	ErrorContextCallback frame;
	UtilRoleSwitch sw;
	bool		passes;

	ExecStoreAllNullTuple(to);
	begin_computing(run, &frame, &sw);
	run->computing = -1;
	passes = transform_passes(run->state, which);
	if (passes)
	{
		for (int i = 0; i < run->table->transform->ncolumns; i++)
			put_value(run, which, to, i);
	}
	else
		put_key(run, which, to);
	end_computing(&frame, &sw);
	return passes;
}

void
transform_run_make_key(TransformRun *run, int which, TupleTableSlot *to)
{
	ErrorContextCallback frame;
	UtilRoleSwitch sw;

	ExecStoreAllNullTuple(to);
	begin_computing(run, &frame, &sw);
	put_key(run, which, to);
	end_computing(&frame, &sw);
}
