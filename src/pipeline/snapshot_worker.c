/*-------------------------------------------------------------------------
 *
 * snapshot_worker.c
 *	  Copies the tables of a pipeline chunk by chunk, then exits.
 *
 * NOTES
 *	  Runs beside the ingest worker, which asked for it; the ledger in
 *	  cdc_bridge.snapshot_chunk lets a new one go on where this one died.
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
snapshot_run(Worker *worker)
{
	CatalogPosition *position;
	SnapshotCopy *copy;
	MemoryContext old;
	bool		done;

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
	do
	{
		uint32		asked;

		LWLockAcquire(shmem->lock, LW_SHARED);
		asked = worker->slot->snapshot_asked;
		LWLockRelease(shmem->lock);
		while (snapshot_step(copy))
		{
			worker_check_interrupts();
			worker->slot->workers[SHMEM_SNAPSHOT].failures = 0;
		}
		/* a table that joined meanwhile is seen by another look */
		LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
		done = worker->slot->snapshot_asked == asked;
		if (done)
			worker->slot->snapshot_wanted = false;
		LWLockRelease(shmem->lock);
	} while (!done);
	snapshot_destroy(copy);
}

void
cdc_snapshot_main(Datum arg)
{
	worker_main(SHMEM_SNAPSHOT, snapshot_run);
}
