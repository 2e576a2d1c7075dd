/*-------------------------------------------------------------------------
 *
 * apply_careful.c
 *	  Careful mode: a stretch of the stream that failed comes again, change by
 *	  change.
 *
 * NOTES
 *	  A batch that cannot be written does not tell which change is to blame. So
 *	  its PostgreSQL transaction is undone, the source transactions in it come
 *	  again, each change is written by itself, and each source transaction is
 *	  committed by itself. The change that fails then is the one.
 *
 *	  Without dead letters its table stops. With them it is noted as a suspect,
 *	  all is undone once more, and when it comes again it runs in a
 *	  subtransaction: if it fails there, it is kept in cdc_bridge.dead_letter, in
 *	  the same PostgreSQL transaction as the changes around it. So a bad change
 *	  costs reading its source transaction again, and a good one costs nothing.
 *	  Where more than SUSPECTS_MAX are bad, every change of the stretch is taken
 *	  for a suspect: a subtransaction each is cheaper then than reading again.
 *
 *	  Careful mode ends when as many source transactions have ended as were
 *	  undone. In a flood of bad changes it would begin again at once, with all its
 *	  rewinds; so as long as every change is guarded and one of the last
 *	  GUARD_CHANGES became a dead letter, it goes on. Memory stays what it is: a
 *	  subtransaction that failed leaves nothing, one that did not four bytes until
 *	  its source transaction is committed.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "apply/apply_private.h"
#include "util/util_subtransaction.h"

#define SUSPECTS_MAX 8
#define GUARD_CHANGES 1000

typedef struct ApplySuspect
{
	CdcPosition start;			/* of its source transaction */
	int64		action;
} ApplySuspect;

void
apply_careful_begin(Apply *apply)
{
	/* in it each transaction is committed by itself, so the one that failed is still among those that are left */
	if (!apply->careful)
		apply->careful_left = apply->txns_open;
	apply->careful = true;
}

void
apply_careful_txn_done(Apply *apply)
{
	if (apply->careful)
		apply->careful_left--;
}

void
apply_careful_committed(Apply *apply)
{
	list_free_deep(apply->suspects);
	apply->suspects = NIL;
	if (apply->careful && apply->careful_left <= 0 && apply->guard_left <= 0)
	{
		apply->careful = false;
		apply->careful_left = 0;
		apply->all_suspect = false;
	}
}

void
apply_suspect_add(Apply *apply)
{
	MemoryContext old = MemoryContextSwitchTo(apply->cxt);
	ApplySuspect *suspect = palloc0(sizeof(ApplySuspect));

	suspect->start = apply->txn_start;
	suspect->action = apply->txn_action;
	apply->suspects = lappend(apply->suspects, suspect);
	MemoryContextSwitchTo(old);
	if (list_length(apply->suspects) > SUSPECTS_MAX)
		apply->all_suspect = true;
}

bool
apply_is_suspect(const Apply *apply)
{
	ListCell   *lc;

	if (apply->all_suspect)
		return true;
	foreach(lc, apply->suspects)
	{
		const ApplySuspect *suspect = lfirst(lc);

		if (suspect->action == apply->txn_action &&
			suspect->start.offset == apply->txn_start.offset &&
			strcmp(suspect->start.file, apply->txn_start.file) == 0)
			return true;
	}
	return false;
}

typedef struct Guarded
{
	Apply	   *apply;
	ApplyTable *table;
	const CdcChange *change;
} Guarded;

/*
 * The target is opened anew inside the subtransaction: what the executor holds
 * of it (pins, scans) goes with the subtransaction, and may not be touched after.
 */
static void
apply_in_subtransaction(void *arg)
{
	const Guarded *guarded = arg;
	Apply	   *apply = guarded->apply;
	ApplyTable *table = guarded->table;

	table->row = heap_row_open(table->target, table->def, &apply->types);
	table->batch = table->row->target->nkey == 0 ? apply_batch_create(table->row->target) : NULL;
	PushActiveSnapshot(GetTransactionSnapshot());
	apply_row(apply, table, guarded->change);
	if (table->batch != NULL)
		apply_batch_write(apply, table);
	PopActiveSnapshot();
	heap_row_close(table->row);
}

bool
apply_guarded(Apply *apply, ApplyTable *table, const CdcChange *change)
{
	HeapRow    *row = table->row;
	ApplyBatch *batch = table->batch;
	ApplyTableStats before = table->delta;
	Guarded		guarded = {apply, table, change};
	ErrorData  *edata = util_subtransaction(apply_in_subtransaction, &guarded, true);

	table->row = row;
	table->batch = batch;
	if (edata == NULL)
		return true;
	table->delta = before;
	if (!heap_error_is_tables_own(edata->sqlerrcode))
		ReThrowError(edata);
	apply_dead_letter(apply, table, change, edata);
	if (apply->all_suspect)
		apply->guard_left = GUARD_CHANGES;
	return false;
}
