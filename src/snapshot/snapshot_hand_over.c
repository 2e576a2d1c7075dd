/*-------------------------------------------------------------------------
 *
 * snapshot_hand_over.c
 *	  From the initial copy to the plain stream.
 *
 * NOTES
 *	  A table's high mark was read after all of its chunks were read, so whatever
 *	  a chunk can have seen lies before it. Once the stream's durable position is
 *	  at or behind the mark, every change that a chunk may have seen early is
 *	  applied, and nothing in snapshot_deleted is needed any more. Both facts are
 *	  committed in this order in the same log of PostgreSQL, so a crash keeps a
 *	  prefix of them. Rows that were read again have marks of their own, which have to be
 *	  passed too (snapshot_reread.c). A table that was copied anew takes its place in the same moment.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "catalog/catalog_lock.h"
#include "catalog/catalog_shadow.h"
#include "heap/heap_row.h"
#include "snapshot/snapshot_private.h"

/* How soon a swap that others were in the way of is tried again, doubling up to a limit. */
#define SWAP_RETRY_MS 500
#define SWAP_RETRY_MAX_MS 30000

/* Has the durable position passed a table's high mark? File numbers are compared as numbers. */
static bool
mark_is_passed(const CatalogTable *table, const CdcPosition *durable)
{
	int			order;

	return cdc_position_is_known(&table->high_mark) &&
		cdc_position_is_known(durable) &&
		cdc_position_compare(durable, &table->high_mark, &order) && order >= 0;
}

/* When the swap of a table that others use is tried again. */
typedef struct SwapRetry
{
	int32		table_id;
	int			failures;
	TimestampTz not_before;
} SwapRetry;

static List *swap_retries = NIL;	/* of SwapRetry, in TopMemoryContext */

static SwapRetry *
find_retry(int32 table_id)
{
	ListCell   *lc;

	foreach(lc, swap_retries)
	{
		if (((SwapRetry *) lfirst(lc))->table_id == table_id)
			return lfirst(lc);
	}
	return NULL;
}

static void
plan_retry(int32 table_id)
{
	SwapRetry  *retry = find_retry(table_id);

	if (retry == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

		retry = palloc0(sizeof(SwapRetry));
		retry->table_id = table_id;
		swap_retries = lappend(swap_retries, retry);
		MemoryContextSwitchTo(old);
	}
	retry->not_before = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
													Min(SWAP_RETRY_MS << Min(retry->failures, 10), SWAP_RETRY_MAX_MS));
	retry->failures++;
}

static void
forget_retry(int32 table_id)
{
	SwapRetry  *retry = find_retry(table_id);

	if (retry != NULL)
	{
		swap_retries = list_delete_ptr(swap_retries, retry);
		pfree(retry);
	}
}

/* Put new copies in place; returns how many tables are done with. */
static int
swap_tables(List *tables)
{
	int			done = 0;
	ListCell   *lc;

	foreach(lc, tables)
	{
		const CatalogTable *table = lfirst(lc);
		const SwapRetry *retry = find_retry(table->table_id);

		if (retry != NULL && retry->not_before > GetCurrentTimestamp())
			continue;
		switch (snapshot_swap(table))
		{
			case SNAPSHOT_SWAP_DONE:
				done++;
				forget_retry(table->table_id);
				break;
			case SNAPSHOT_SWAP_AGAIN:
				forget_retry(table->table_id);
				break;
			case SNAPSHOT_SWAP_BLOCKED:
				plan_retry(table->table_id);
				break;
		}
	}
	return done;
}

/*
 * A table that stopped while it was copied anew: its shadow goes once nothing comes
 * any more that would be written to it.
 */
static bool
shadow_is_left_over(const CatalogTable *table, const CdcPosition *durable)
{
	int			order;

	if (!cdc_position_is_known(&table->stop_position))
		return true;
	return cdc_position_is_known(durable) &&
		cdc_position_compare(durable, &table->stop_position, &order) && order >= 0;
}

static void
drop_shadow(const CatalogTable *table)
{
	MemoryContext caller = CurrentMemoryContext;

	heap_transaction_begin();
	catalog_lock_table(table->pipeline_id, table->table_id, RowExclusiveLock);
	PushActiveSnapshot(GetTransactionSnapshot());
	catalog_shadow_drop(table->target);
	catalog_table_end_shadow(table->pipeline_id, table->table_id);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(caller);
}

/* Tables in CATCHUP without a shadow become STREAMING; returns how many did. */
static int
release_tables(List *tables)
{
	MemoryContext caller = CurrentMemoryContext;
	int			done = 0;
	ListCell   *lc;

	if (tables == NIL)
		return 0;
	heap_transaction_begin();
	/* nobody writes a chunk any more; taken all the same, before the state's own lock */
	foreach(lc, tables)
		catalog_lock_table(((CatalogTable *) lfirst(lc))->pipeline_id, ((CatalogTable *) lfirst(lc))->table_id,
						   RowExclusiveLock);
	PushActiveSnapshot(GetTransactionSnapshot());
	foreach(lc, tables)
	{
		CatalogTable *table = lfirst(lc);

		if (catalog_table_set_streaming(table->pipeline_id, table->table_id))
		{
			done++;
			ereport(LOG,
					(errmsg("table \"%s.%s\" is handed over from the snapshot to the stream",
							table->source_schema, table->source_table)));
		}
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(caller);
	return done;
}

/* Is there a row of the table to be read again? */
static bool
has_rereads(const CatalogTable *table)
{
	return catalog_reread_list(table->pipeline_id, table->table_id, 1) != NIL;
}

int
snapshot_hand_over(int32 pipeline_id, const CdcPosition *durable, int *pending, bool *left_over, bool *reread)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext cxt = AllocSetContextCreate(caller, "cdc hand-over", ALLOCSET_DEFAULT_SIZES);
	List	   *ready = NIL;
	List	   *to_swap = NIL;
	List	   *to_drop = NIL;
	ListCell   *lc;
	int			done;
	int			ndropped;

	*pending = 0;
	*left_over = *reread = false;
	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	MemoryContextSwitchTo(cxt);
	foreach(lc, catalog_table_list(pipeline_id))
	{
		CatalogTable *table = lfirst(lc);

		if (table->state == CATALOG_TABLE_STOPPED && OidIsValid(table->swap_into))
		{
			if (shadow_is_left_over(table, durable))
				to_drop = lappend(to_drop, table);
			else
				*left_over = true;
		}
		if (table->state != CATALOG_TABLE_SNAPSHOT && table->state != CATALOG_TABLE_CATCHUP)
			continue;
		(*pending)++;
		*reread |= has_rereads(table);
		if (table->state != CATALOG_TABLE_CATCHUP || !mark_is_passed(table, durable) ||
			!catalog_reread_is_settled(pipeline_id, table->table_id, durable))
			continue;
		if (!OidIsValid(table->swap_into))
			ready = lappend(ready, table);
		else if (!table->resync_wanted)
			to_swap = lappend(to_swap, table);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(cxt);

	done = release_tables(ready);
	done += swap_tables(to_swap);
	*pending -= done;
	foreach(lc, to_drop)
		drop_shadow(lfirst(lc));
	ndropped = list_length(to_drop);

	MemoryContextSwitchTo(caller);
	MemoryContextDelete(cxt);
	return done + ndropped;
}
