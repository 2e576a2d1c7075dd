/*-------------------------------------------------------------------------
 *
 * manager.c
 *	  One per database with running pipelines: starts, stops and restarts their
 *	  workers.
 *
 * NOTES
 *	  The manager reads what should run from the catalog and what does run from
 *	  shared memory, and closes the gap. It holds no transaction while it waits.
 *	  It is woken by SQL functions at commit, by workers that end, and looks by
 *	  itself every ten seconds. With nothing that should run it exits; the
 *	  launcher starts a new one when it is needed.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "catalog/catalog.h"
#include "catalog/catalog_dead_letter.h"
#include "catalog/catalog_verify.h"
#include "compat/pg_compat.h"
#include "pipeline/budget.h"
#include "pipeline/export_slot.h"
#include "pipeline/worker.h"
#include "util/util_wait.h"

#define MANAGER_NAP_MS 10000

/* How soon to look again whether a worker that was asked to leave has left. */
#define LEAVE_NAP_MS 500

/* A worker that was asked for, until it has ended. */
typedef struct WorkerHandle
{
	int32		pipeline_id;
	int			place;
	BackgroundWorkerHandle *handle;
} WorkerHandle;

static List *workers = NIL;		/* of WorkerHandle *, in TopMemoryContext */

/* Take the database's place; quietly ends the process when it is taken or blocked. */
static void
claim_database(Oid database)
{
	ShmemDatabase *slot;
	bool		claimed = false;

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	slot = shmem_database_slot(database, false);
	if (slot != NULL && slot->manager_pid == 0 && slot->blocked_by == 0)
	{
		slot->manager_pid = MyProcPid;
		slot->manager_latch = MyLatch;
		slot->manager_leave_at = 0;
		claimed = true;
	}
	LWLockRelease(shmem->lock);
	if (!claimed)
		proc_exit(0);
	worker_watch_leave(&slot->manager_leave_at);
}

static void
manager_exit(int code, Datum arg)
{
	ShmemDatabase *slot;

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	slot = shmem_database_slot(DatumGetObjectId(arg), false);
	if (slot != NULL && slot->manager_pid == MyProcPid)
	{
		slot->manager_pid = 0;
		slot->manager_latch = NULL;
		slot->manager_leave_at = 0;
	}
	if (shmem->launcher_latch != NULL)
		SetLatch(shmem->launcher_latch);
	LWLockRelease(shmem->lock);
}

/*
 * Pipelines of this database, and the numbers of those that have an open request
 * of cdc_verify(); false when the extension is not there.
 */
static bool
read_pipelines(List **pipelines, List **verify_wanted, List **letters_wanted)
{
	MemoryContext keep = CurrentMemoryContext;
	ListCell   *lc;
	bool		installed;

	*pipelines = NIL;
	*verify_wanted = *letters_wanted = NIL;
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	installed = OidIsValid(get_extension_oid("cdc_bridge", true));
	if (installed)
	{
		MemoryContext old = MemoryContextSwitchTo(keep);

		*pipelines = catalog_pipeline_list();
		foreach(lc, *pipelines)
		{
			int32		id = ((CatalogPipeline *) lfirst(lc))->id;

			if (catalog_verify_open(id) != NULL)
				*verify_wanted = lappend_int(*verify_wanted, id);
			if (catalog_letter_request_open(id) != NULL)
				*letters_wanted = lappend_int(*letters_wanted, id);
		}
		MemoryContextSwitchTo(old);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(keep);
	return installed;
}

static void
reap_workers(void)
{
	ListCell   *lc;

	foreach(lc, workers)
	{
		WorkerHandle *h = lfirst(lc);
		pid_t		pid;

		if (GetBackgroundWorkerPid(h->handle, &pid) == BGWH_STOPPED)
		{
			workers = foreach_delete_current(workers, lc);
			pfree(h->handle);
			pfree(h);
		}
	}
}

static bool
worker_is_under_way(int32 pipeline_id, int place)
{
	ListCell   *lc;

	foreach(lc, workers)
	{
		WorkerHandle *h = lfirst(lc);

		if (h->pipeline_id == pipeline_id && h->place == place)
			return true;
	}
	return false;
}

/* Show a failure that kept a worker from starting, and plan the next attempt. */
static void
report_not_started(const CatalogPipeline *pipeline, int index, int sqlstate,
				   const char *message, const char *detail, const char *hint)
{
	UtilErrorInfo info = {
		.sqlstate = sqlstate,
		.message = unconstify(char *, message),
		.detail = unconstify(char *, detail),
		.hint = unconstify(char *, hint),
	};
	ShmemPipeline *slot;

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	slot = shmem_pipeline_slot(MyDatabaseId, pipeline->id, false);
	if (slot != NULL)
	{
		ShmemWorker *place = &slot->workers[index];

		place->failures++;
		place->retry_at = worker_retry_at(UTIL_ERROR_CONFIGURATION, place->failures,
										  GetCurrentTimestamp());
	}
	LWLockRelease(shmem->lock);

	worker_write_failure(pipeline->id, worker_kind(index), true, &info, NULL, NULL);
}

/* Could a worker connect as the owner? If not, say what is missing: a failed connection could not. */
static bool
owner_can_connect(const CatalogPipeline *pipeline)
{
	HeapTuple	tuple;
	bool		exists;
	bool		can_login = false;
	bool		can_connect = false;
	char	   *name = NULL;
	MemoryContext keep = CurrentMemoryContext;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(pipeline->owner));
	exists = HeapTupleIsValid(tuple);
	if (exists)
	{
		Form_pg_authid form = (Form_pg_authid) GETSTRUCT(tuple);

		can_login = form->rolcanlogin || !CDC_NEEDS_ROLE_LOGIN;
		can_connect = cdc_database_connect(MyDatabaseId, pipeline->owner);
		name = MemoryContextStrdup(keep, NameStr(form->rolname));
		ReleaseSysCache(tuple);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(keep);

	if (exists && can_login && can_connect)
		return true;

	if (!exists)
		report_not_started(pipeline, SHMEM_INGEST, ERRCODE_UNDEFINED_OBJECT,
						   psprintf("the owner of pipeline \"%s\" does not exist any more", pipeline->name),
						   psprintf("Its role had the OID %u.", pipeline->owner),
						   "Give it another owner with cdc_alter_pipeline(), as a superuser.");
	else if (!can_login)
		report_not_started(pipeline, SHMEM_INGEST, ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION,
						   psprintf("role \"%s\" is not permitted to log in", name),
						   "Workers connect as the pipeline's owner; before PostgreSQL 17 that role needs LOGIN.",
						   psprintf("Run ALTER ROLE \"%s\" LOGIN.", name));
	else
		report_not_started(pipeline, SHMEM_INGEST, ERRCODE_INSUFFICIENT_PRIVILEGE,
						   psprintf("role \"%s\" has no CONNECT privilege on this database", name),
						   "Workers connect as the pipeline's owner.",
						   psprintf("Run GRANT CONNECT ON DATABASE ... TO \"%s\".", name));
	return false;
}

/* There is no room for one more snapshot worker: fewer do it too. Said once; tried again now and then. */
static void
put_off_worker(const CatalogPipeline *pipeline, int index)
{
	TimestampTz now = GetCurrentTimestamp();
	ShmemPipeline *slot;
	bool		is_first = false;

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	slot = shmem_pipeline_slot(MyDatabaseId, pipeline->id, false);
	if (slot != NULL)
	{
		ShmemWorker *place = &slot->workers[index];

		is_first = place->failures++ == 0;
		place->retry_at = worker_retry_at(UTIL_ERROR_CONFIGURATION, place->failures, now);
	}
	LWLockRelease(shmem->lock);

	if (is_first)
		ereport(LOG,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("pipeline \"%s\" copies with fewer workers than it was given", pipeline->name),
				 errdetail("There is no free background worker slot for snapshot worker %d; max_worker_processes is %d.",
						   index - SHMEM_SNAPSHOT + 1, max_worker_processes)));
}

/* Is there a place for the states of the pipeline's origins? Without one a worker could only fail. */
static bool
origins_suffice(const CatalogPipeline *pipeline, int place)
{
	MemoryContext keep = CurrentMemoryContext;
	Budget		budget;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	budget_read(BUDGET_ORIGINS, pipeline->id, &budget);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(keep);

	if (!budget_is_short(&budget))
		return true;
	report_not_started(pipeline, place, ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
					   psprintf("too few replication origins for pipeline \"%s\"", pipeline->name),
					   budget_detail(&budget), budget_hint(&budget));
	return false;
}

/* Start one worker of a pipeline. */
static void
start_worker(const CatalogPipeline *pipeline, int place)
{
	WorkerHandle *h;
	MemoryContext old;
	bool		started;

	if (!owner_can_connect(pipeline))
		return;
	/* further snapshot workers get along without a place when there is none */
	if (pipeline->source != NULL && (place == SHMEM_INGEST || place == SHMEM_SNAPSHOT) && !origins_suffice(pipeline, place))
		return;

	old = MemoryContextSwitchTo(TopMemoryContext);
	h = palloc0(sizeof(WorkerHandle));
	h->pipeline_id = pipeline->id;
	h->place = place;
	started = worker_register(pipeline, place, &h->handle);
	if (started)
		workers = lappend(workers, h);
	else
		pfree(h);
	MemoryContextSwitchTo(old);

	if (!started && place > SHMEM_SNAPSHOT)
		put_off_worker(pipeline, place);
	else if (!started)
		report_not_started(pipeline, place, ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
						   "no free background worker slot",
						   psprintf("max_worker_processes is %d, and all of them are in use.", max_worker_processes),
						   psprintf("Run ALTER SYSTEM SET max_worker_processes = %d and restart the server.",
									max_worker_processes + 8));
}

static int
snapshot_workers(const CatalogPipeline *pipeline)
{
	if (pipeline->sink != NULL)
		return 0;
	return util_option_int(&catalog_pipeline_options, "snapshot_workers",
						   catalog_pipeline_option(pipeline, "snapshot_workers"));
}

/*
 * Close the gap for one pipeline. Returns whether it should run; shortens *nap to
 * the next planned attempt.
 */
static bool
look_after_pipeline(const CatalogPipeline *pipeline, List *verify_wanted, List *letters_wanted, TimestampTz now, long *nap)
{
	bool		should_run = pipeline->enabled && pipeline->state != CATALOG_PIPELINE_FAILED &&
		shmem_may_run(pipeline->server_start);
	bool		start[SHMEM_WORKER_PLACES] = {false};
	int			places = SHMEM_SNAPSHOT + snapshot_workers(pipeline);
	bool		full = false;
	ShmemPipeline *slot;

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	slot = shmem_pipeline_slot(MyDatabaseId, pipeline->id, should_run);
	if (slot == NULL)
		full = should_run;
	else
	{
		slot->owner = pipeline->owner;
		slot->verify_wanted = list_member_int(verify_wanted, pipeline->id);
		for (int i = 0; i < SHMEM_WORKER_PLACES; i++)
		{
			ShmemWorker *place = &slot->workers[i];

			if (!should_run)
			{
				/* a failed pipeline's ingest worker ends by itself, unless it was a snapshot worker that failed */
				if (place->pid != 0)
				{
					shmem_ask_to_leave(place->pid, place->latch, &place->leave_at);
					*nap = Min(*nap, LEAVE_NAP_MS);
				}
				place->failures = 0;
				place->retry_at = 0;
				continue;
			}
			if (place->pid != 0 && i == SHMEM_INGEST && pipeline->tables_asked != pipeline->tables_done)
			{
				slot->join_wanted = true;
				if (place->latch != NULL)
					SetLatch(place->latch);
			}
			if (place->pid != 0 && i == SHMEM_INGEST && list_member_int(letters_wanted, pipeline->id))
			{
				slot->letters_wanted = true;
				if (place->latch != NULL)
					SetLatch(place->latch);
			}
			if (place->pid != 0 && i == SHMEM_INGEST && pipeline->state == CATALOG_PIPELINE_STARTING)
			{
				/* stopped and started in one transaction: the worker never left, and does not know */
				slot->state_wanted = true;
				if (place->latch != NULL)
					SetLatch(place->latch);
			}
			if (place->pid != 0 && (place->leave_at != 0 || (place->stamp != 0 && place->stamp != pipeline->stamp)))
			{
				/*
				 * Altered since it began: the next one reads what stands there now. Or it was stopped, and started again before
				 * this process had left.
				 */
				shmem_ask_to_leave(place->pid, place->latch, &place->leave_at);
				*nap = Min(*nap, LEAVE_NAP_MS);
			}
			if (place->pid != 0 || slot->blocked_by != 0 || worker_is_under_way(pipeline->id, i))
				continue;
			if (i >= SHMEM_SNAPSHOT &&
				(i >= places || place->wishes_done == slot->snapshot_wishes || slot->workers[SHMEM_INGEST].pid == 0))
				continue;
			if (i == SHMEM_MAINTENANCE &&
				(!slot->verify_wanted || slot->workers[SHMEM_INGEST].pid == 0))
				continue;
			if (place->retry_at > now)
				*nap = Min(*nap, TimestampDifferenceMilliseconds(now, place->retry_at) + 1);
			else
				start[i] = true;
		}
	}
	LWLockRelease(shmem->lock);

	for (int i = 0; i < SHMEM_WORKER_PLACES; i++)
	{
		if (start[i])
			start_worker(pipeline, i);
	}
	if (full)
		report_not_started(pipeline, SHMEM_INGEST, ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
						   "too many running pipelines",
						   psprintf("cdc_bridge.max_pipelines is %d.", shmem_max_pipelines),
						   psprintf("Run ALTER SYSTEM SET cdc_bridge.max_pipelines = %d and restart the server.",
									shmem_max_pipelines + 8));
	return should_run;
}

/* Stop workers and free slots of pipelines that do not exist any more; true while some still run. */
static bool
clear_dropped(List *pipelines, long *nap)
{
	bool		running = false;

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	for (int i = 0; i < shmem->max_pipelines; i++)
	{
		ShmemPipeline *slot = &shmem->pipelines[i];
		bool		exists = false;
		bool		alive = false;
		ListCell   *lc;

		if (slot->database != MyDatabaseId)
			continue;
		foreach(lc, pipelines)
			exists |= ((CatalogPipeline *) lfirst(lc))->id == slot->pipeline_id;
		for (int k = 0; k < SHMEM_WORKER_PLACES; k++)
		{
			ShmemWorker *place = &slot->workers[k];

			alive |= place->pid != 0;
			if (!exists && place->pid != 0)
			{
				shmem_ask_to_leave(place->pid, place->latch, &place->leave_at);
				*nap = Min(*nap, LEAVE_NAP_MS);
			}
		}
		running |= alive;
		if (!exists && !alive && slot->blocked_by == 0)
			slot->database = InvalidOid;
	}
	LWLockRelease(shmem->lock);
	return running;
}

/* One look at everything; returns how long to sleep, or ends the process when nothing is to do. */
static long
manage(void)
{
	List	   *pipelines;
	List	   *verify_wanted;
	List	   *letters_wanted;
	ListCell   *lc;
	bool		installed;
	bool		needed = false;
	long		nap = MANAGER_NAP_MS;
	ExportSlotsNeed slots;
	ShmemDatabase *slot;
	TimestampTz now = GetCurrentTimestamp();

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	slot = shmem_database_slot(MyDatabaseId, false);
	slot->woken = false;
	LWLockRelease(shmem->lock);

	reap_workers();
	installed = read_pipelines(&pipelines, &verify_wanted, &letters_wanted);
	foreach(lc, pipelines)
		needed |= look_after_pipeline(lfirst(lc), verify_wanted, letters_wanted, now, &nap);
	needed |= clear_dropped(pipelines, &nap);
	slots = export_slots_look_after(pipelines);
	needed |= slots != EXPORT_SLOTS_NOTHING;
	if (slots == EXPORT_SLOTS_SOON)
		nap = Min(nap, LEAVE_NAP_MS);

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	slot->looked = true;
	slot->failures = 0;
	slot->retry_at = 0;
	if (!installed || !needed)
	{
		if (!slot->woken)
		{
			slot->wanted = false;
			LWLockRelease(shmem->lock);
			proc_exit(0);
		}
		nap = 0;
	}
	LWLockRelease(shmem->lock);
	return nap;
}

void
cdc_manager_main(Datum arg)
{
	Oid			database = DatumGetObjectId(arg);
	MemoryContext loop_cxt;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	claim_database(database);
	before_shmem_exit(manager_exit, ObjectIdGetDatum(database));
	BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, 0);
	worker_pin_settings();

	loop_cxt = AllocSetContextCreate(TopMemoryContext, "cdc manager loop", ALLOCSET_DEFAULT_SIZES);
	for (;;)
	{
		long		nap;

		MemoryContextReset(loop_cxt);
		MemoryContextSwitchTo(loop_cxt);
		worker_check_interrupts();
		nap = manage();
		pgstat_report_activity(STATE_IDLE, NULL);
		(void) util_wait(PGINVALID_SOCKET, nap, UTIL_WAIT_MAIN);
	}
}
