/*-------------------------------------------------------------------------
 *
 * apply_keyless.c
 *	  Careful mode for tables without a key: which change does not fit, and what
 *	  is kept of it.
 *
 * NOTES
 *	  Such a table is a multiset of rows (heap_match.h), and its changes commute: each
 *	  takes one row away, or brings one, and an update is one of either. So a
 *	  letter of a row that could not be brought, or not be taken away, may be replayed whenever
 *	  it fits, whatever came in between: the target lacks that row, or has it
 *	  too much, until then. Only one thing has to be seen to: when the row of a letter
 *	  goes again at the source, the target has none to delete, and the letter goes
 *	  with it (apply_letters_take_rows).
 *
 *	  An update is split, so that the half that fits is done:
 *
 *	  row before	a delete; goes into the table's batch, which takes one walk over the target
 *	  row after		an insert (with the image before, for what the image after leaves out);
 *					written at once, by itself: that needs no look at the target
 *
 *	  A history (option transforms, "append") has a row for each change: there a change is not split, and
 *	  nothing is taken away.
 *
 *	  A delete fails when it is taken in, because its values have no form in the target's
 *	  types. Nothing of the row's own makes it fail when the batch is written: a target
 *	  with row triggers is refused for such a table.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/snapmgr.h"

#include "apply/apply_private.h"
#include "util/util_subtransaction.h"

bool
apply_keyless_is_careful(const Apply *apply, const ApplyTable *table)
{
	return apply->careful && apply->keep_dead_letters && table->row->target->nkey == 0;
}

/* Does it only bring rows? */
static bool
only_brings(const ApplyTable *table, const CdcChange *half)
{
	return half->op == CDC_INSERT || apply_append_is_used(table);
}

static void
take(Apply *apply, ApplyTable *table, const CdcChange *half)
{
	if (only_brings(table, half))
	{
		apply_batch_insert_now(apply, table, half);
		return;
	}
	PushActiveSnapshot(GetTransactionSnapshot());
	apply_row(apply, table, half);
	PopActiveSnapshot();
}

typedef struct Reading
{
	Apply	   *apply;
	ApplyTable *table;
	const CdcChange *half;
} Reading;

/* Are there rows of the target's types in it? Nothing is written. */
static void
read_half(void *arg)
{
	const Reading *reading = arg;
	ApplyTable *table = reading->table;

	table->row = heap_row_open(table->target, table->def, &reading->apply->types);
	table->batch = apply_batch_create(table->row->target);
	PushActiveSnapshot(GetTransactionSnapshot());
	apply_row(reading->apply, table, reading->half);
	PopActiveSnapshot();
	heap_row_close(table->row);
}

/* A delete that is suspected; false: it became a dead letter. */
static bool
take_delete(Apply *apply, ApplyTable *table, const CdcChange *half)
{
	Reading		reading = {.apply = apply,.table = table,.half = half};
	HeapRow    *row = table->row;
	ApplyBatch *batch = table->batch;
	ApplyTableStats before = table->delta;
	ErrorData  *edata = util_subtransaction(read_half, &reading, true);

	table->row = row;
	table->batch = batch;
	table->delta = before;
	if (edata == NULL)
	{
		take(apply, table, half);
		return true;
	}
	if (!heap_error_is_tables_own(edata->sqlerrcode))
		ReThrowError(edata);
	apply_dead_letter(apply, table, half, edata);
	return false;
}

static bool
take_half(Apply *apply, ApplyTable *table, const CdcChange *half)
{
	if (!apply_is_suspect(apply))
	{
		take(apply, table, half);
		return true;
	}
	return only_brings(table, half) ? apply_guarded(apply, table, half) : take_delete(apply, table, half);
}

void
apply_keyless_change(Apply *apply, ApplyTable *table, const CdcChange *change)
{
	ApplyTableStats before = table->delta;
	CdcChange	gone = *change;
	CdcChange	come = *change;
	bool		is_whole;

	if (change->op != CDC_UPDATE || apply_append_is_used(table))
	{
		(void) take_half(apply, table, change);
		return;
	}
	gone.op = CDC_DELETE;
	gone.after = NULL;
	come.op = CDC_INSERT;
	is_whole = take_half(apply, table, &gone);
	is_whole &= take_half(apply, table, &come);
	if (!is_whole)
		return;
	table->delta.inserts = before.inserts;
	table->delta.deletes = before.deletes;
	apply_table_count(apply, table, CDC_UPDATE);
}
