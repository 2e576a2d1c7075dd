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
 *	  prefix of them.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "catalog/catalog_lock.h"
#include "heap/heap_row.h"
#include "snapshot/snapshot.h"

/* Has the durable position passed a table's high mark? File numbers are compared as numbers. */
static bool
mark_is_passed(const CatalogTable *table, const CdcPosition *durable)
{
	int			order;

	return cdc_position_is_known(&table->high_mark) &&
		cdc_position_is_known(durable) &&
		cdc_position_compare(durable, &table->high_mark, &order) && order >= 0;
}

int
snapshot_hand_over(int32 pipeline_id, const CdcPosition *durable, int *pending)
{
	MemoryContext caller = CurrentMemoryContext;
	List	   *tables;
	List	   *ready = NIL;
	ListCell   *lc;
	int			done = 0;

	*pending = 0;
	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());

	tables = catalog_table_list(pipeline_id);
	foreach(lc, tables)
	{
		CatalogTable *table = lfirst(lc);

		if (table->state != CATALOG_TABLE_SNAPSHOT && table->state != CATALOG_TABLE_CATCHUP)
			continue;
		(*pending)++;
		if (table->state == CATALOG_TABLE_CATCHUP && mark_is_passed(table, durable))
		{
			/* nobody writes a chunk any more; taken all the same, before the state's own lock */
			catalog_lock_table(pipeline_id, table->table_id, RowExclusiveLock);
			ready = lappend(ready, table);
		}
	}

	foreach(lc, ready)
	{
		CatalogTable *table = lfirst(lc);

		if (catalog_table_set_streaming(pipeline_id, table->table_id))
		{
			done++;
			(*pending)--;
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
