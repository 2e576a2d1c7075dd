/*-------------------------------------------------------------------------
 *
 * apply_history.c
 *	  What is written down of changes of source tables, and wishes that follow
 *	  from them.
 *
 * NOTES
 *	  Both are collected and written by the commit that carries the position
 *	  behind the statement: so they are there once, and only if that is. They need
 *	  the pipeline's state lock, which is taken last.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "apply/apply_private.h"

static char *
copy_text(const char *text)
{
	return text != NULL ? pstrdup(text) : NULL;
}

void
apply_history_add(Apply *apply, const CdcEvent *event, const CatalogSchemaChange *change)
{
	MemoryContext old = MemoryContextSwitchTo(apply->wishes_cxt);
	CatalogSchemaChange *copy = palloc(sizeof(CatalogSchemaChange));
	ListCell   *lc;

	*copy = *change;
	copy->pipeline_id = apply->pipeline_id;
	copy->source_schema = pstrdup(change->source_schema);
	copy->source_table = pstrdup(change->source_table);
	copy->position = apply->in_txn ? apply->txn_start : event->start;
	copy->gtid = apply->in_txn ? apply->txn_gtid : event->gtid;
	copy->source_time_us = event->source_time_us;
	copy->statement = copy_text(change->statement);
	copy->commands = NIL;
	foreach(lc, change->commands)
		copy->commands = lappend(copy->commands, pstrdup(lfirst(lc)));
	if (change->error != NULL)
		copy->error = util_error_info_make(change->error->sqlstate, copy_text(change->error->message),
										   copy_text(change->error->detail), copy_text(change->error->hint));
	apply->history = lappend(apply->history, copy);
	MemoryContextSwitchTo(old);
	apply->moved = true;
}

void
apply_wish_tables(Apply *apply, bool soon)
{
	apply->tables_wanted = true;
	apply->tables_wanted_soon |= soon;
	apply->commit_due |= soon;
	apply->moved = true;
}

void
apply_wish_resync(Apply *apply, const ApplyTable *table)
{
	MemoryContext old = MemoryContextSwitchTo(apply->wishes_cxt);

	apply->copies_wanted = lappend_int(apply->copies_wanted, table->table_id);
	MemoryContextSwitchTo(old);
	apply_wish_tables(apply, true);
}

void
apply_wish_copy(Apply *apply, ApplyTable *table)
{
	apply_wish_resync(apply, table);
	table->awaits_copy = true;
}

void
apply_wish_kept_rows(Apply *apply, const ApplyTable *table)
{
	MemoryContext old = MemoryContextSwitchTo(apply->wishes_cxt);

	apply->keepers = lappend_int(apply->keepers, table->table_id);
	MemoryContextSwitchTo(old);
	apply->moved = true;
}

/* Write all of it into the open transaction, which is about to be committed. */
void
apply_wishes_write(Apply *apply)
{
	ListCell   *lc;

	foreach(lc, apply->history)
		catalog_history_insert(lfirst(lc), apply->rules.max_rows);
	foreach(lc, apply->keepers)
		catalog_table_set_keeps_rows(apply->pipeline_id, lfirst_int(lc), true);
	if (!apply->tables_wanted)
		return;
	catalog_pipeline_ask_tables(apply->pipeline_id);
	foreach(lc, apply->copies_wanted)
		(void) catalog_table_ask_resync(apply->pipeline_id, lfirst_int(lc));
}

/* They are durable, or what they came from was undone and comes again. */
void
apply_wishes_forget(Apply *apply, bool committed)
{
	if (committed && apply->tables_wanted)
	{
		apply->join_wanted |= apply->tables_wanted_soon;
		if (apply->gathered_since == 0)
			apply->gathered_since = GetCurrentTimestamp();
	}
	apply->history = NIL;
	apply->copies_wanted = NIL;
	apply->keepers = NIL;
	apply->tables_wanted = apply->tables_wanted_soon = false;
	MemoryContextReset(apply->wishes_cxt);
}

/* How long tables that are made one after the other are waited for, so that they join together. */
#define GATHER_MS 1000

bool
apply_gathering_is_over(const Apply *apply, bool is_idle)
{
	return apply->gathered_since != 0 &&
		(is_idle || TimestampDifferenceExceeds(apply->gathered_since, GetCurrentTimestamp(), GATHER_MS));
}

void
apply_gathered(Apply *apply)
{
	apply->gathered_since = 0;
}
