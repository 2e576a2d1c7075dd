/*-------------------------------------------------------------------------
 *
 * snapshot_worker.c
 *	  Copies the tables of a pipeline chunk by chunk, builds the indexes of those
 *	  that stream, then exits.
 *
 * NOTES
 *	  Several of them run beside the ingest worker, which asked for them; the
 *	  ledger in cdc_bridge.snapshot_chunk shares the work out, and lets a new one
 *	  go on where another died. One with nothing to do leaves, although others may
 *	  be copying still: should one of these die, the same number comes back for
 *	  what it left.
 *
 *	  max_rows_per_second is one bucket for all of them, in shared memory: the
 *	  time at which the next row may be written. Each takes the time of its rows
 *	  out of it, and waits until its turn has come; so what others do meanwhile
 *	  does not matter, and what a worker that died had taken is only lost time.
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
#include "util/util_wait.h"

/* How long the ingest worker is given to come to the end of a source transaction. */
#define HOLD_MS 10000
#define HOLD_NAP_MS 20

/* How soon it is tried again what had to wait: tables that are locked, or have joined and do not show at the source yet. */
#define WAIT_NAP_MS 50

typedef struct SnapshotWork
{
	Worker	   *worker;
	int			rate;			/* rows per second; 0: no limit */
	int			holder;			/* process that holds still for us; 0: none */
} SnapshotWork;

static void
publish_table(void *arg, int32 table_id, int64 values_replaced, int64 dead_letters)
{
	const Worker *worker = ((SnapshotWork *) arg)->worker;
	ShmemTableStat stat = {.values_replaced = values_replaced,.dead_letters = dead_letters};

	shmem_table_stat_add(worker->pipeline_id, table_id, &stat);
}

/* Take the time that so many rows need at that rate out of the bucket; returns when the turn has come. */
static TimestampTz
reserve(Worker *worker, int64 rows, int rate, TimestampTz now)
{
	TimestampTz turn;

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	turn = Max(worker->slot->snapshot_rows_at, now);
	worker->slot->snapshot_rows_at = turn + rows * USECS_PER_SEC / rate;
	LWLockRelease(shmem->lock);
	return turn;
}

static void
throttle(void *arg, int64 rows)
{
	SnapshotWork *snapshot = arg;
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz turn;

	if (snapshot->rate == 0)
		return;
	turn = reserve(snapshot->worker, rows, snapshot->rate, now);
	while (now < turn)
	{
		worker_check_interrupts();
		(void) util_wait(PGINVALID_SOCKET, TimestampDifferenceMilliseconds(now, turn) + 1, UTIL_WAIT_SNAPSHOT);
		now = GetCurrentTimestamp();
	}
}

/* See SnapshotHooks. One holds at a time: who comes second is told no. */
static bool
hold(void *arg, CdcPosition *at)
{
	SnapshotWork *snapshot = arg;
	ShmemPipeline *slot = snapshot->worker->slot;
	TimestampTz start = GetCurrentTimestamp();

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	if (slot->hold_pid != 0)
	{
		LWLockRelease(shmem->lock);
		return false;
	}
	slot->hold_pid = MyProcPid;
	slot->hold_latch = MyLatch;
	snapshot->holder = 0;
	if (slot->workers[SHMEM_INGEST].latch != NULL)
		SetLatch(slot->workers[SHMEM_INGEST].latch);
	LWLockRelease(shmem->lock);

	while (snapshot->holder == 0 && !TimestampDifferenceExceeds(start, GetCurrentTimestamp(), HOLD_MS))
	{
		worker_check_interrupts();
		(void) util_wait(PGINVALID_SOCKET, HOLD_NAP_MS, UTIL_WAIT_SNAPSHOT);
		LWLockAcquire(shmem->lock, LW_SHARED);
		snapshot->holder = slot->held_by;
		*at = slot->durable;
		LWLockRelease(shmem->lock);
	}
	if (snapshot->holder == 0)
		worker_release_hold(snapshot->worker);
	return snapshot->holder != 0;
}

/* Does the process that held still when hold() returned still do so? Another one may have taken its place. */
static bool
still_held(void *arg)
{
	const SnapshotWork *snapshot = arg;
	bool		result;

	LWLockAcquire(shmem->lock, LW_SHARED);
	result = snapshot->worker->slot->held_by == snapshot->holder;
	LWLockRelease(shmem->lock);
	return result;
}

static void
release(void *arg)
{
	worker_release_hold(((SnapshotWork *) arg)->worker);
}

static void
ask_join(void *arg)
{
	ShmemPipeline *slot = ((SnapshotWork *) arg)->worker->slot;

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	slot->join_wanted = true;
	if (slot->workers[SHMEM_INGEST].latch != NULL)
		SetLatch(slot->workers[SHMEM_INGEST].latch);
	LWLockRelease(shmem->lock);
}

static void
fail(void *arg)
{
	((SnapshotWork *) arg)->worker->fails_pipeline = true;
}

static int
option_int(const Worker *worker, const char *name)
{
	return util_option_int(&catalog_pipeline_options, name, catalog_pipeline_option(worker->pipeline, name));
}

static uint32
read_wishes(const Worker *worker)
{
	uint32		wishes;

	LWLockAcquire(shmem->lock, LW_SHARED);
	wishes = worker->slot->snapshot_wishes;
	LWLockRelease(shmem->lock);
	return wishes;
}

static void
snapshot_run(Worker *worker)
{
	SnapshotWork snapshot = {.worker = worker,.rate = option_int(worker, "max_rows_per_second")};
	SnapshotHooks hooks = {.arg = &snapshot,.publish = publish_table,.throttle = throttle,.fail = fail,
	.hold = hold,.still_held = still_held,.release = release,.join = ask_join};
	uint64		max_rows = option_int(worker, "snapshot_chunk_rows");
	CatalogPosition *position = worker_position(worker);
	SnapshotCopy *copy;
	SnapshotIndexer *indexer;
	SnapshotProgress progress;
	uint32		wishes;

	if (position == NULL)
		return;					/* the ingest worker will ask again */

	/* no chunk waits for more than a second's rows */
	if (snapshot.rate > 0)
		max_rows = Min(max_rows, (uint64) snapshot.rate);

	pgstat_report_activity(STATE_RUNNING, psprintf("snapshot of pipeline %s", worker->pipeline->name));
	copy = snapshot_create(worker->pipeline, worker->endpoint, worker->number, position->identity, max_rows, &hooks);
	indexer = snapshot_index_create(worker->pipeline);
	for (;;)
	{
		wishes = read_wishes(worker);	/* before the look: a later wish counts */
		progress = snapshot_step(copy);
		if (progress != SNAPSHOT_DID_SOMETHING && !snapshot_index_step(indexer))
		{
			if (progress == SNAPSHOT_HAS_NOTHING)
				break;
			(void) util_wait(PGINVALID_SOCKET, WAIT_NAP_MS, UTIL_WAIT_SOURCE_READ);
		}
		worker_check_interrupts();
		worker->place->failures = 0;
	}
	snapshot_destroy(copy);
	if (worker->number > 1)
		worker_drop_origin(worker);		/* there are few of them in a server */

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	worker->place->wishes_done = wishes;
	LWLockRelease(shmem->lock);
}

void
cdc_snapshot_main(Datum arg)
{
	worker_main(SHMEM_SNAPSHOT, snapshot_run);
}
