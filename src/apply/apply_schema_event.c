/*-------------------------------------------------------------------------
 *
 * apply_schema_event.c
 *	  A row event shows a table in another shape than the one that is known.
 *
 * NOTES
 *	  No statement told it: it was kept out of the log, or not understood, or the
 *	  definition is newer than the stream. The event's description is the truth about its
 *	  rows, and names tell its columns from each other; but not what became of the rows
 *	  that were there. So the source is asked for the table as it is now.
 *
 *	  event = the source's present shape    the target follows; what went and what came are
 *	      two columns, unless one got another name, which cannot be told: then the rows are
 *	      copied anew. So are they when a column came: they have the default that came with
 *	      it, and the source tells only the one that it has now (a tool that has just put
 *	      another table in the place of this one has filled it with that)
 *	  event = some shape in between         more is to come, which may have happened
 *	      in any way: the table is copied anew, from where the stream is past that
 *
 *	  In the middle of a source transaction, everything is undone first, and the target
 *	  follows when the transaction begins the second time: what its event said is
 *	  kept for that (Apply.shape).
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "apply/apply_private.h"
#include "util/util_arena.h"
#include "util/util_error.h"

/* The source's table as it is now, in the arena; NULL when it is not there, or may not be read. */
static CdcTableDef *
ask_source(Apply *apply, const ApplyTable *table)
{
	MemoryContext cxt = CurrentMemoryContext;
	CdcTableDef *volatile def = NULL;
	CdcTableDef *copy;

	apply_open_session(apply);
	PG_TRY();
	{
		def = mysql_server_describe_soon(apply->session, apply->server, table->schema, table->name);
		mysql_server_limit_lock_wait(apply->session, true);
	}
	PG_CATCH();
	{
		if (geterrcode() != CDC_ERRCODE_SOURCE_SETTING)
			PG_RE_THROW();
		MemoryContextSwitchTo(cxt);
		FlushErrorState();
	}
	PG_END_TRY();
	if (def == NULL)
		return NULL;
	copy = cdc_table_def_copy(def, &apply->arena);
	if (copy == NULL)
		util_throw_out_of_memory();
	return copy;
}

/* Is an event's description that of a definition? The event's stays as it is. */
static bool
is_shape_of(Apply *apply, const CdcTableDef *event, const CdcTableDef *def)
{
	CdcTableDef *copy = cdc_table_def_copy(event, &apply->arena);
	char	   *why;
	bool		lacks_metadata;

	if (copy == NULL)
		util_throw_out_of_memory();
	return schema_match_event(def, copy, &why, &lacks_metadata) != NULL;
}

/* Nothing of the source transaction is applied. Has the table's changes count afterwards? */
static void
follow(Apply *apply, ApplyTable *table, const CdcTableDef *event)
{
	ApplySchemaChange change = {
		.table = table,
		.at = apply->txn_start,
		.gtid = apply->txn_gtid,
		.defaults_known = table->was_replaced,
	};
	CdcTableDef *now;
	int		   *origin;

	if (apply_table_is_copying(table))
	{
		apply_schema_copy_anew(apply, &change, pstrdup("its rows have another shape"));
		return;
	}
	now = ask_source(apply, table);
	if (now == NULL || !is_shape_of(apply, event, now))
	{
		apply_schema_copy_anew(apply, &change,
							   pstrdup("its rows have a shape that is neither the one that was known nor the source's present one"));
		return;
	}
	origin = palloc(sizeof(int) * Max(now->ncolumns, 1));
	if (!schema_evolve_origins(table->def, now, origin))
		change.copy = pstrdup("columns went and others came, and one may have got another name");
	change.after = now;
	change.origin = origin;
	(void) apply_schema_carry_out(apply, &change);
	table->was_replaced = false;
	if (apply->open)
		apply_commit(apply);
}

/* The same for the source transaction that has begun. What came before it is settled first. */
static ApplyResult
follow_in_transaction(Apply *apply, ApplyTable *table, const CdcTableDef *event)
{
	if (apply_write_batches(apply) == APPLY_REWIND)
		return APPLY_REWIND;
	follow(apply, table, event);
	apply->txns_open = 1;		/* the commits in there were not its end */
	return APPLY_OK;
}

ApplyResult
apply_schema_event(Apply *apply, ApplyTable *table, CdcTableDef *event, bool *applies)
{
	char	   *why;
	bool		lacks_metadata;
	MemoryContext old;
	CdcArena	arena;

	*applies = true;
	if (table->def == NULL || apply_table_try_match(table, event, &why, &lacks_metadata) || lacks_metadata ||
		apply->rules.mode == CATALOG_MODE_EXCEPTION || schema_event_is_vague(table->def, event))
		return APPLY_OK;		/* what does not fit is thrown by who comes next */

	/* what is kept of an XA transaction is read in one transaction here */
	if (apply->txn_changes > 0 || apply->in_statement || apply->holding)
	{
		MemoryContextReset(apply->shape_cxt);
		old = MemoryContextSwitchTo(apply->shape_cxt);
		cdc_arena_init(&arena, util_context_allocator(apply->shape_cxt), 0);
		apply->shape = cdc_table_def_copy(event, &arena);
		MemoryContextSwitchTo(old);
		if (apply->shape == NULL)
			util_throw_out_of_memory();
		apply->shape_at = apply->txn_start;
		return apply_rewind(apply);
	}
	if (follow_in_transaction(apply, table, event) == APPLY_REWIND)
		return APPLY_REWIND;
	*applies = !apply_table_is_stopped(table, &apply->txn_start) && !apply_table_joins_later(table, &apply->txn_start);
	return APPLY_OK;
}

ApplyResult
apply_schema_txn_begin(Apply *apply)
{
	CdcTableDef *event = apply->shape;
	ApplyTable *table;
	int			order;

	if (event == NULL ||
		(cdc_position_compare(&apply->txn_start, &apply->shape_at, &order) && order < 0))
		return APPLY_OK;
	table = apply_table_find(apply, event->schema, event->name);
	/* at another place in the log it was found elsewhere meanwhile, and will be found out again */
	if (cdc_position_compare(&apply->txn_start, &apply->shape_at, &order) && order == 0 &&
		table != NULL && table->def != NULL && !apply_table_is_stopped(table, &apply->txn_start) &&
		!apply_table_joins_later(table, &apply->txn_start) &&
		follow_in_transaction(apply, table, event) == APPLY_REWIND)
		return APPLY_REWIND;
	apply->shape = NULL;
	return APPLY_OK;
}
