/*-------------------------------------------------------------------------
 *
 * shmem.c
 *	  Shared memory: who runs, who is to be woken, and the statistics.
 *
 * NOTES
 *	  SQL functions only change catalog rows; what they want from the workers
 *	  is carried out by a transaction callback after commit, so that a rollback
 *	  leaves nothing behind.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/guc.h"
#include "utils/hsearch.h"

#include "compat/pg_compat.h"
#include "pipeline/shmem.h"
#include "pipeline/shmem_slots.h"
#include "util/util_wait.h"

/* How long stop_workers waits, and how often it looks. */
#define STOP_TIMEOUT_MS 30000
#define STOP_POLL_MS 20

/* How long a worker has to leave by itself. */
#define LEAVE_MS 1000

/* Databases that get a slot at a time. */
#define MAX_DATABASES 256

typedef struct TableStatKey
{
	Oid			database;
	int32		pipeline_id;
	int32		table_id;
} TableStatKey;

typedef struct TableStatEntry
{
	TableStatKey key;
	ShmemTableStat stat;
} TableStatEntry;

int			shmem_max_pipelines = 64;
int			shmem_max_tables = 10000;
bool		shmem_autostart = true;
Shmem	   *shmem = NULL;

static HTAB *table_stats = NULL;
static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

/* What the current transaction owes at its end. */
static bool wake_pending = false;
static Oid	blocked_database = InvalidOid;
static bool blocked_pipelines = false;
static bool callback_registered = false;

static void at_transaction_end(XactEvent event, void *arg);

bool
shmem_is_available(void)
{
	return shmem != NULL;
}

static Size
slots_size(void)
{
	Size		size = MAXALIGN(sizeof(Shmem));

	size = add_size(size, MAXALIGN(mul_size(MAX_DATABASES, sizeof(ShmemDatabase))));
	size = add_size(size, MAXALIGN(mul_size(shmem_max_pipelines, sizeof(ShmemPipeline))));
	return size;
}

static void
request_shmem(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();

	RequestAddinShmemSpace(slots_size());
	RequestAddinShmemSpace(hash_estimate_size(shmem_max_tables, sizeof(TableStatEntry)));
	RequestNamedLWLockTranche("cdc_bridge", 1);
}

static void
startup_shmem(void)
{
	bool		found;
	HASHCTL		ctl = {0};

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);

	shmem = ShmemInitStruct("cdc_bridge", slots_size(), &found);
	if (!found)
	{
		char	   *next = (char *) shmem + MAXALIGN(sizeof(Shmem));

		memset(shmem, 0, slots_size());
		shmem->lock = &(GetNamedLWLockTranche("cdc_bridge"))->lock;
		shmem->max_databases = MAX_DATABASES;
		shmem->max_pipelines = shmem_max_pipelines;
		shmem->databases = (ShmemDatabase *) next;
		next += MAXALIGN(MAX_DATABASES * sizeof(ShmemDatabase));
		shmem->pipelines = (ShmemPipeline *) next;
	}

	ctl.keysize = sizeof(TableStatKey);
	ctl.entrysize = sizeof(TableStatEntry);
	table_stats = ShmemInitHash("cdc_bridge tables", shmem_max_tables, shmem_max_tables,
								&ctl, HASH_ELEM | HASH_BLOBS);

	LWLockRelease(AddinShmemInitLock);
}

void
shmem_init(void)
{
	DefineCustomIntVariable("cdc_bridge.max_pipelines",
							"Largest number of pipelines with statistics and workers in the whole server.",
							NULL,
							&shmem_max_pipelines, 64, 1, 10000,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("cdc_bridge.max_tables",
							"Largest number of tables with statistics in the whole server.",
							"Tables beyond it are mirrored all the same, but their counters stay at zero.",
							&shmem_max_tables, 10000, 100, 1000000,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);

	DefineCustomBoolVariable("cdc_bridge.autostart",
							 "Pipelines that ran before go on by themselves after a start of the server.",
							 "When off, each of them waits for cdc_start_pipeline().",
							 &shmem_autostart, true,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shmem;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_shmem;
}

bool
shmem_may_run(TimestampTz server_start)
{
	return shmem_autostart || server_start == PgStartTime;
}

ShmemDatabase *
shmem_database_slot(Oid database, bool create)
{
	ShmemDatabase *unused = NULL;

	for (int i = 0; i < shmem->max_databases; i++)
	{
		ShmemDatabase *slot = &shmem->databases[i];

		if (slot->database == database)
			return slot;
		if (unused == NULL && !OidIsValid(slot->database))
			unused = slot;
	}

	if (!create || unused == NULL)
		return NULL;
	memset(unused, 0, sizeof(*unused));
	unused->database = database;
	return unused;
}

static bool
has_workers(const ShmemPipeline *slot)
{
	for (int place = 0; place < SHMEM_WORKER_PLACES; place++)
	{
		if (slot->workers[place].pid != 0)
			return true;
	}
	return false;
}

/*
 * With create, a slot whose pipeline has no worker may be taken over when all
 * are in use: its counters start anew when that pipeline runs again.
 */
ShmemPipeline *
shmem_pipeline_slot(Oid database, int32 pipeline_id, bool create)
{
	ShmemPipeline *unused = NULL;
	ShmemPipeline *idle = NULL;

	for (int i = 0; i < shmem->max_pipelines; i++)
	{
		ShmemPipeline *slot = &shmem->pipelines[i];

		if (slot->database == database && slot->pipeline_id == pipeline_id)
			return slot;
		if (!OidIsValid(slot->database))
		{
			if (unused == NULL)
				unused = slot;
		}
		else if (idle == NULL && slot->blocked_by == 0 && !has_workers(slot))
			idle = slot;
	}

	if (!create)
		return NULL;
	if (unused == NULL)
		unused = idle;
	if (unused == NULL)
		return NULL;
	memset(unused, 0, sizeof(*unused));
	unused->database = database;
	unused->pipeline_id = pipeline_id;
	return unused;
}

void
shmem_wake_database(Oid database)
{
	ShmemDatabase *slot;

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	slot = shmem_database_slot(database, true);
	if (slot != NULL)
	{
		slot->wanted = true;
		slot->woken = true;
		slot->retry_at = 0;
		if (slot->manager_pid != 0 && slot->manager_latch != NULL)
			SetLatch(slot->manager_latch);
		else if (shmem->launcher_latch != NULL)
			SetLatch(shmem->launcher_latch);
	}
	LWLockRelease(shmem->lock);

	if (slot == NULL)
		ereport(WARNING,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many databases with cdc_bridge pipelines"),
				 errdetail("At most %d databases can have running pipelines at a time.", MAX_DATABASES)));
}

void
shmem_wake_launcher(void)
{
	LWLockAcquire(shmem->lock, LW_SHARED);
	if (shmem->launcher_latch != NULL)
		SetLatch(shmem->launcher_latch);
	LWLockRelease(shmem->lock);
}

static void
need_callback(void)
{
	if (!callback_registered)
	{
		RegisterXactCallback(at_transaction_end, NULL);
		callback_registered = true;
	}
}

void
shmem_wake_at_commit(void)
{
	if (!shmem_is_available())
		return;
	need_callback();
	wake_pending = true;
}

/* Carry out what the transaction owes: let workers in again, wake them. */
static void
at_transaction_end(XactEvent event, void *arg)
{
	bool		wake = wake_pending;
	Oid			blocked = blocked_database;
	bool		unblock = blocked_pipelines;

	/* nothing would wake the workers at COMMIT PREPARED, nor keep them out until then */
	if (event == XACT_EVENT_PRE_PREPARE && (wake || unblock || OidIsValid(blocked)))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot PREPARE a transaction that changes pipelines of cdc_bridge"),
				 errhint("Use COMMIT, or change the pipelines in a transaction of their own.")));
	if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT)
		return;

	wake_pending = false;
	blocked_database = InvalidOid;
	blocked_pipelines = false;

	if (unblock)
	{
		LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
		for (int i = 0; i < shmem->max_pipelines; i++)
		{
			if (shmem->pipelines[i].blocked_by == MyProcPid)
				shmem->pipelines[i].blocked_by = 0;
		}
		LWLockRelease(shmem->lock);
		shmem_wake_database(MyDatabaseId);
	}
	if (OidIsValid(blocked))
	{
		ShmemDatabase *slot;

		LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
		slot = shmem_database_slot(blocked, false);
		if (slot != NULL && slot->blocked_by == MyProcPid)
			slot->blocked_by = 0;
		LWLockRelease(shmem->lock);

		/* whether it still exists, and under which name, is for the launcher to see */
		shmem_wake_database(blocked);
	}
	if (wake && event == XACT_EVENT_COMMIT)
		shmem_wake_database(MyDatabaseId);
}

void
shmem_ask_to_leave(int pid, Latch *latch, TimestampTz *leave_at)
{
	TimestampTz now = GetCurrentTimestamp();

	if (pid == 0)
		return;
	if (*leave_at == 0)
		*leave_at = now;
	if (TimestampDifferenceExceeds(*leave_at, now, LEAVE_MS))
		kill(pid, SIGTERM);
	else if (latch != NULL)
		SetLatch(latch);
}

/* Ask the workers in question to leave; returns how many there are. Caller holds the lock. */
static int
dismiss_workers(Oid database, int32 pipeline_id)
{
	int			n = 0;

	for (int i = 0; i < shmem->max_pipelines; i++)
	{
		ShmemPipeline *slot = &shmem->pipelines[i];

		if (slot->database != database || (pipeline_id != 0 && slot->pipeline_id != pipeline_id))
			continue;
		for (int k = 0; k < SHMEM_WORKER_PLACES; k++)
		{
			ShmemWorker *place = &slot->workers[k];

			shmem_ask_to_leave(place->pid, place->latch, &place->leave_at);
			n += place->pid != 0;
		}
	}

	if (pipeline_id == 0)
	{
		ShmemDatabase *slot = shmem_database_slot(database, false);

		if (slot != NULL && slot->manager_pid != 0)
		{
			shmem_ask_to_leave(slot->manager_pid, slot->manager_latch, &slot->manager_leave_at);
			n++;
		}
	}
	return n;
}

/* Stop workers of a database and wait until they are gone; see shmem_stop_pipeline and shmem_block_database. */
static void
stop_workers(Oid database, int32 pipeline_id)
{
	int			waited_ms = 0;

	for (;;)
	{
		int			n;

		LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
		n = dismiss_workers(database, pipeline_id);
		LWLockRelease(shmem->lock);

		if (n == 0)
			return;
		if (waited_ms >= STOP_TIMEOUT_MS)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("cdc_bridge workers did not stop in time"),
					 errdetail_plural("%d worker is still running after %d seconds.",
									  "%d workers are still running after %d seconds.",
									  n, n, STOP_TIMEOUT_MS / 1000),
					 errhint("Look for backend_type \"cdc_bridge ...\" in pg_stat_activity and try again.")));
		(void) util_wait(PGINVALID_SOCKET, STOP_POLL_MS, UTIL_WAIT_PIPELINE);
		waited_ms += STOP_POLL_MS;
	}
}

void
shmem_stop_pipeline(int32 pipeline_id)
{
	ShmemPipeline *slot;

	if (!shmem_is_available())
		return;

	/* to its manager the pipeline looks as if it should run until we commit */
	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	slot = shmem_pipeline_slot(MyDatabaseId, pipeline_id, true);
	if (slot != NULL && slot->blocked_by == 0)	/* else somebody else does so already */
		slot->blocked_by = MyProcPid;
	LWLockRelease(shmem->lock);

	need_callback();
	blocked_pipelines = true;
	stop_workers(MyDatabaseId, pipeline_id);
}

void
shmem_block_database(Oid database)
{
	ShmemDatabase *slot;

	if (!shmem_is_available())
		return;

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	slot = shmem_database_slot(database, true);
	if (slot != NULL)
		slot->blocked_by = MyProcPid;
	LWLockRelease(shmem->lock);

	if (slot != NULL)
	{
		need_callback();
		blocked_database = database;
	}
	stop_workers(database, 0);
}

bool
shmem_pipeline_stat(int32 pipeline_id, ShmemPipelineStat *stat)
{
	ShmemPipeline *slot;

	memset(stat, 0, sizeof(*stat));
	if (!shmem_is_available())
		return false;

	LWLockAcquire(shmem->lock, LW_SHARED);
	slot = shmem_pipeline_slot(MyDatabaseId, pipeline_id, false);
	if (slot != NULL)
	{
		const ShmemWorker *ingest = &slot->workers[SHMEM_INGEST];

		stat->database = slot->database;
		stat->pipeline_id = slot->pipeline_id;
		stat->owner = slot->owner;
		stat->ingest_pid = ingest->pid;
		for (int place = SHMEM_SNAPSHOT; place < SHMEM_WORKER_PLACES; place++)
			stat->snapshot_workers += slot->workers[place].pid != 0;
		stat->maintenance_pid = slot->workers[SHMEM_MAINTENANCE].pid;
		stat->started_at = ingest->pid != 0 ? ingest->started_at : 0;
		stat->retry_at = ingest->pid != 0 ? 0 : ingest->retry_at;
		stat->failures = ingest->failures;
		stat->transactions = slot->transactions;
		stat->changes = slot->changes;
		stat->bytes = slot->bytes;
		stat->flushes = slot->flushes;
		stat->stats_reset = slot->stats_reset;
		stat->source_time_us = slot->source_time_us;
		stat->last_event_at = slot->last_event_at;
		stat->caught_up_at = slot->caught_up_at;
		stat->durable = slot->durable;
		stat->streamed = slot->streamed;
		if (ingest->pid != 0)
			stat->progress = slot->progress;
		stat->export = slot->export;
	}
	LWLockRelease(shmem->lock);
	return slot != NULL;
}

void
shmem_table_stat(int32 pipeline_id, int32 table_id, ShmemTableStat *stat)
{
	TableStatKey key = {.database = MyDatabaseId,.pipeline_id = pipeline_id,.table_id = table_id};
	TableStatEntry *entry;

	memset(stat, 0, sizeof(*stat));
	if (!shmem_is_available())
		return;

	LWLockAcquire(shmem->lock, LW_SHARED);
	entry = hash_search(table_stats, &key, HASH_FIND, NULL);
	if (entry != NULL)
		*stat = entry->stat;
	LWLockRelease(shmem->lock);
}

void
shmem_table_stat_add(int32 pipeline_id, int32 table_id, const ShmemTableStat *delta)
{
	TableStatKey key = {.database = MyDatabaseId,.pipeline_id = pipeline_id,.table_id = table_id};
	TableStatEntry *entry;
	bool		found;

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	entry = hash_search(table_stats, &key, HASH_ENTER_NULL, &found);
	if (entry != NULL)
	{
		if (!found)
			memset(&entry->stat, 0, sizeof(entry->stat));
		entry->stat.inserts += delta->inserts;
		entry->stat.updates += delta->updates;
		entry->stat.deletes += delta->deletes;
		entry->stat.conflicts += delta->conflicts;
		entry->stat.values_replaced += delta->values_replaced;
		entry->stat.dead_letters += delta->dead_letters;
		entry->stat.letters_lost += delta->letters_lost;
		if (delta->tier_is_known)
		{
			entry->stat.tier_is_known = true;
			entry->stat.tier = delta->tier;
			entry->stat.collapsed = delta->collapsed;
		}
		if (delta->last_change_at != 0)
			entry->stat.last_change_at = delta->last_change_at;
	}
	LWLockRelease(shmem->lock);
}

void
shmem_reset_stats(int32 pipeline_id)
{
	ShmemPipeline *slot;
	TableStatEntry *entry;
	HASH_SEQ_STATUS seq;

	if (!shmem_is_available())
		return;

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	slot = shmem_pipeline_slot(MyDatabaseId, pipeline_id, false);
	if (slot != NULL)
	{
		slot->transactions = 0;
		slot->changes = 0;
		slot->bytes = 0;
		slot->flushes = 0;
		slot->export.parallel_chunks = 0;
		slot->stats_reset = GetCurrentTimestamp();
	}
	hash_seq_init(&seq, table_stats);
	while ((entry = hash_seq_search(&seq)) != NULL)
	{
		if (entry->key.database == MyDatabaseId && entry->key.pipeline_id == pipeline_id)
			memset(&entry->stat, 0, sizeof(entry->stat));
	}
	LWLockRelease(shmem->lock);
}

int
shmem_count_tables(void)
{
	int			count;

	LWLockAcquire(shmem->lock, LW_SHARED);
	count = (int) hash_get_num_entries(table_stats);
	LWLockRelease(shmem->lock);
	return count;
}
