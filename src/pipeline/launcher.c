/*-------------------------------------------------------------------------
 *
 * launcher.c
 *	  The one process that is always there: starts a manager in each database
 *	  that may need one.
 *
 * NOTES
 *	  Registered by shared_preload_libraries; connects to no database, reads
 *	  only pg_database. At its own start (also after a crash of the server) it
 *	  lets a manager look into each database, one after the other so that few
 *	  worker processes are needed at a time; later a database is looked at when
 *	  a SQL function in it woke us. A manager with nothing to do exits.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "compat/pg_compat.h"
#include "pipeline/worker.h"
#include "util/util_wait.h"

/* Longest wait between two looks at the slots. */
#define LAUNCHER_NAP_MS 10000

/* A manager that was asked for, until it has ended. */
typedef struct ManagerHandle
{
	Oid			database;
	BackgroundWorkerHandle *handle;
} ManagerHandle;

static List *managers = NIL;	/* of ManagerHandle *, in TopMemoryContext */

void
launcher_register(void)
{
	BackgroundWorker worker = {0};

	snprintf(worker.bgw_name, BGW_MAXLEN, "cdc_bridge launcher");
	snprintf(worker.bgw_type, BGW_MAXLEN, "cdc_bridge launcher");
	snprintf(worker.bgw_library_name, BGW_MAXLEN, "cdc_bridge");
	snprintf(worker.bgw_function_name, BGW_MAXLEN, "cdc_launcher_main");
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = 1;
	RegisterBackgroundWorker(&worker);
}

static void
launcher_exit(int code, Datum arg)
{
	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	if (shmem->launcher_pid == MyProcPid)
	{
		shmem->launcher_pid = 0;
		shmem->launcher_latch = NULL;
	}
	LWLockRelease(shmem->lock);
}

/*
 * OIDs of the databases that can have a manager: templates never do. With
 * only valid, says whether that one database can.
 */
static List *
connectable_databases(Oid only)
{
	List	   *result = NIL;
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;
	MemoryContext keep = CurrentMemoryContext;

	StartTransactionCommand();
	(void) GetTransactionSnapshot();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while (HeapTupleIsValid(tuple = heap_getnext(scan, ForwardScanDirection)))
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);
		MemoryContext old;

		if (!form->datallowconn || form->datistemplate ||
			(OidIsValid(only) && form->oid != only))
			continue;
		old = MemoryContextSwitchTo(keep);
		result = lappend_oid(result, form->oid);
		MemoryContextSwitchTo(old);
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();
	MemoryContextSwitchTo(keep);
	return result;
}

/* Forget handles of managers that have ended. */
static void
reap_managers(void)
{
	ListCell   *lc;

	foreach(lc, managers)
	{
		ManagerHandle *m = lfirst(lc);
		pid_t		pid;

		if (GetBackgroundWorkerPid(m->handle, &pid) == BGWH_STOPPED)
		{
			managers = foreach_delete_current(managers, lc);
			pfree(m->handle);
			pfree(m);
		}
	}
}

static bool
manager_is_under_way(Oid database)
{
	ListCell   *lc;

	foreach(lc, managers)
	{
		if (((ManagerHandle *) lfirst(lc))->database == database)
			return true;
	}
	return false;
}

/* Ask the postmaster for a manager; false when it has no free slot. */
static bool
start_manager(Oid database)
{
	BackgroundWorker worker = {0};
	ManagerHandle *m;
	MemoryContext old;

	snprintf(worker.bgw_name, BGW_MAXLEN, "cdc_bridge manager for database %u", database);
	snprintf(worker.bgw_type, BGW_MAXLEN, "cdc_bridge manager");
	snprintf(worker.bgw_library_name, BGW_MAXLEN, "cdc_bridge");
	snprintf(worker.bgw_function_name, BGW_MAXLEN, "cdc_manager_main");
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_notify_pid = MyProcPid;
	worker.bgw_main_arg = ObjectIdGetDatum(database);

	old = MemoryContextSwitchTo(TopMemoryContext);
	m = palloc0(sizeof(ManagerHandle));
	m->database = database;
	if (RegisterDynamicBackgroundWorker(&worker, &m->handle))
		managers = lappend(managers, m);
	else
	{
		pfree(m);
		m = NULL;
	}
	MemoryContextSwitchTo(old);
	return m != NULL;
}

/*
 * Start a manager for every database that wants one and can have one now;
 * forget databases that no longer exist. Returns how long to sleep at most.
 */
static long
look_after_databases(void)
{
	TimestampTz now = GetCurrentTimestamp();
	long		nap = LAUNCHER_NAP_MS;
	List	   *due = NIL;
	ListCell   *lc;

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	for (int i = 0; i < shmem->max_databases; i++)
	{
		ShmemDatabase *slot = &shmem->databases[i];

		if (!OidIsValid(slot->database) || slot->manager_pid != 0 || slot->blocked_by != 0)
			continue;
		if (!slot->wanted)
			slot->database = InvalidOid;	/* the manager had nothing to do */
		else if (manager_is_under_way(slot->database))
			continue;
		else if (slot->retry_at > now)
			nap = Min(nap, TimestampDifferenceMilliseconds(now, slot->retry_at) + 1);
		else
			due = lappend_oid(due, slot->database);
	}
	LWLockRelease(shmem->lock);

	foreach(lc, due)
	{
		Oid			database = lfirst_oid(lc);
		bool		exists = connectable_databases(database) != NIL;
		bool		started = exists && start_manager(database);
		ShmemDatabase *slot;

		LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
		slot = shmem_database_slot(database, false);
		if (slot != NULL && !exists && slot->manager_pid == 0)
			slot->database = InvalidOid;
		else if (slot != NULL)
		{
			/* a manager that comes to nothing delays the next one; a healthy one clears this */
			slot->failures++;
			slot->retry_at = worker_retry_at(UTIL_ERROR_TRANSIENT, slot->failures, now);
		}
		LWLockRelease(shmem->lock);

		if (exists && !started)
		{
			ereport(LOG,
					(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
					 errmsg("could not start the cdc_bridge manager of database %u", database),
					 errdetail("There is no free background worker slot."),
					 errhint("You might need to increase \"%s\".", "max_worker_processes")));
			nap = Min(nap, 1000);
		}
	}
	return nap;
}

/* Has the manager of that database looked at its catalog, or found nothing to do? */
static bool
probe_is_done(Oid database)
{
	ShmemDatabase *slot;
	bool		done;

	LWLockAcquire(shmem->lock, LW_SHARED);
	slot = shmem_database_slot(database, false);
	done = slot == NULL || slot->looked || !slot->wanted || slot->failures > 3;
	LWLockRelease(shmem->lock);
	return done;
}

void
cdc_launcher_main(Datum arg)
{
	List	   *to_probe;
	Oid			probing = InvalidOid;
	MemoryContext loop_cxt;
	bool		autostart;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	shmem->launcher_pid = MyProcPid;
	shmem->launcher_latch = MyLatch;
	LWLockRelease(shmem->lock);
	before_shmem_exit(launcher_exit, (Datum) 0);

	MemoryContextSwitchTo(TopMemoryContext);
	to_probe = connectable_databases(InvalidOid);
	autostart = shmem_autostart;
	loop_cxt = AllocSetContextCreate(TopMemoryContext, "cdc launcher loop", ALLOCSET_DEFAULT_SIZES);

	for (;;)
	{
		long		nap;

		MemoryContextReset(loop_cxt);
		MemoryContextSwitchTo(loop_cxt);
		worker_check_interrupts();

		if (shmem_autostart && !autostart)
		{
			/* switched on: what waits in any database may start now */
			MemoryContextSwitchTo(TopMemoryContext);
			list_free(to_probe);
			to_probe = connectable_databases(InvalidOid);
			MemoryContextSwitchTo(loop_cxt);
		}
		autostart = shmem_autostart;

		reap_managers();
		if (to_probe != NIL && (!OidIsValid(probing) || probe_is_done(probing)))
		{
			probing = linitial_oid(to_probe);
			to_probe = list_delete_first(to_probe);
			shmem_wake_database(probing);
			ResetLatch(MyLatch);
		}
		nap = look_after_databases();
		if (to_probe != NIL)
			nap = Min(nap, 100);

		pgstat_report_activity(STATE_IDLE, NULL);
		(void) util_wait(PGINVALID_SOCKET, nap, UTIL_WAIT_MAIN);
	}
}
