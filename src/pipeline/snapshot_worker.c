/*-------------------------------------------------------------------------
 *
 * snapshot_worker.c
 *	  Copies the tables of a pipeline chunk by chunk, builds the indexes of those
 *	  that stream, then exits.
 *
 * NOTES
 *	  Runs beside the ingest worker, which asked for it; the ledger in
 *	  cdc_bridge.snapshot_chunk lets a new one go on where this one died.
 *
 *	  The wish for this worker is taken back before the last look for work, not
 *	  after it: what comes up later is wished for again by whoever brought it up.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "pipeline/worker.h"
#include "snapshot/snapshot.h"

static void
publish_table(void *arg, int32 table_id, int64 values_replaced)
{
	Worker	   *worker = arg;
	ShmemTableStat stat = {.values_replaced = values_replaced};

	shmem_table_stat_add(worker->pipeline_id, table_id, &stat);
}

static void
set_wanted(Worker *worker, bool wanted)
{
	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	worker->slot->snapshot_wanted = wanted;
	LWLockRelease(shmem->lock);
}

static void
snapshot_run(Worker *worker)
{
	CatalogPosition *position;
	SnapshotCopy *copy;
	SnapshotIndexer *indexer;
	bool		last_look = false;
	MemoryContext old;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	old = MemoryContextSwitchTo(worker->cxt);
	position = catalog_position_load(worker->pipeline_id, true);
	MemoryContextSwitchTo(old);
	PopActiveSnapshot();
	CommitTransactionCommand();
	if (position == NULL)
		return;					/* the ingest worker has not begun; it will ask again */

	MemoryContextSwitchTo(worker->cxt);
	pgstat_report_activity(STATE_RUNNING, psprintf("snapshot of pipeline %s", worker->pipeline->name));
	copy = snapshot_create(worker->pipeline, worker->endpoint, position->identity, publish_table, worker);
	indexer = snapshot_index_create(worker->pipeline);
	for (;;)
	{
		worker_check_interrupts();
		if (snapshot_step(copy) || snapshot_index_step(indexer))
		{
			worker->slot->workers[SHMEM_SNAPSHOT].failures = 0;
			if (last_look)
				set_wanted(worker, true);
			last_look = false;
			continue;
		}
		if (last_look)
			break;
		set_wanted(worker, false);
		last_look = true;
	}
	snapshot_destroy(copy);
}

void
cdc_snapshot_main(Datum arg)
{
	worker_main(SHMEM_SNAPSHOT, snapshot_run);
}
