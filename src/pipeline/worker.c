/*-------------------------------------------------------------------------
 *
 * worker.c
 *	  What all workers of a pipeline have in common: birth, rights, death.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/xact.h"
#include "catalog/pg_foreign_server.h"
#include "common/pg_prng.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "replication/origin.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "catalog/catalog_lock.h"
#include "compat/pg_compat.h"
#include "pipeline/worker.h"
#include "util/util_fingerprint.h"
#include "util/util_wait.h"

/* A worker that ran this long was healthy: its failures are forgotten. */
#define HEALTHY_MS 60000

/* A worker that died sooner than this without a report may be in a crash loop. */
#define SUSPICIOUS_MS 10000

/* First and longest delay before the next attempt. */
#define RETRY_FIRST_MS 500
#define RETRY_MAX_MS 30000

static const char *const kind_names[] = {
	[SHMEM_INGEST] = "ingest",
	[SHMEM_SNAPSHOT] = "snapshot",
	[SHMEM_MAINTENANCE] = "maintenance",
};

static const char *const kind_functions[] = {
	[SHMEM_INGEST] = "cdc_ingest_main",
	[SHMEM_SNAPSHOT] = "cdc_snapshot_main",
	[SHMEM_MAINTENANCE] = "cdc_maintenance_main",
};

/* What a worker is told by the manager, in bgw_extra. */
typedef struct WorkerOrder
{
	Oid			database;
	int32		pipeline_id;
	Oid			owner;
	int			place;
} WorkerOrder;

StaticAssertDecl(sizeof(WorkerOrder) <= BGW_EXTRALEN, "WorkerOrder fits into bgw_extra");

ShmemWorkerKind
worker_kind(int place)
{
	return (ShmemWorkerKind) Min(place, SHMEM_SNAPSHOT);
}

bool
worker_register(const CatalogPipeline *pipeline, int place, BackgroundWorkerHandle **handle)
{
	BackgroundWorker worker = {0};
	ShmemWorkerKind kind = worker_kind(place);
	bool		exports = pipeline->sink != NULL;
	const char *name = exports ? "export" : kind_names[kind];
	WorkerOrder order = {.database = MyDatabaseId,.pipeline_id = pipeline->id,.owner = pipeline->owner,.place = place};

	snprintf(worker.bgw_name, BGW_MAXLEN, "cdc_bridge %s worker for pipeline %d", name, pipeline->id);
	snprintf(worker.bgw_type, BGW_MAXLEN, "cdc_bridge %s worker", name);
	snprintf(worker.bgw_library_name, BGW_MAXLEN, "cdc_bridge");
	snprintf(worker.bgw_function_name, BGW_MAXLEN, "%s", exports ? "cdc_export_main" : kind_functions[kind]);
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_notify_pid = MyProcPid;
	memcpy(worker.bgw_extra, &order, sizeof(order));
	return RegisterDynamicBackgroundWorker(&worker, handle);
}

CatalogPosition *
worker_position(const Worker *worker)
{
	CatalogPosition *position;
	MemoryContext old;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	old = MemoryContextSwitchTo(worker->cxt);
	position = catalog_position_load(worker->pipeline_id, true);
	MemoryContextSwitchTo(old);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(worker->cxt);
	return position;
}

/*
 * Delays double from half a second to half a minute; what somebody has to mend
 * starts at two seconds. Up to a quarter more, so that many pipelines of one
 * source do not come back in step.
 */
TimestampTz
worker_retry_at(UtilErrorClass error_class, int failures, TimestampTz now)
{
	double		delay = RETRY_FIRST_MS * (error_class == UTIL_ERROR_TRANSIENT ? 1.0 : 4.0);

	delay *= pow(2.0, Min(failures - 1, 10));
	delay = Min(delay, (double) RETRY_MAX_MS);
	delay *= 1.0 + 0.25 * pg_prng_double(&pg_global_prng_state);
	return now + (TimestampTz) (delay * 1000.0);
}

/* Where somebody notes that this process shall leave; set when its place was claimed. */
static const TimestampTz *leave_at = NULL;

void
worker_watch_leave(const TimestampTz *at)
{
	leave_at = at;
}

void
worker_check_interrupts(void)
{
	util_check_interrupts();
	if (leave_at != NULL && *(const volatile TimestampTz *) leave_at != 0)
		proc_exit(0);
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

/* Wake the manager of the worker's database. Caller holds the lock. */
static void
wake_manager(Oid database)
{
	ShmemDatabase *slot = shmem_database_slot(database, false);

	if (slot != NULL && slot->manager_latch != NULL)
		SetLatch(slot->manager_latch);
}

/*
 * Take the worker's place in shared memory. Ends the process quietly when
 * somebody else has it, the database is blocked or the place is gone.
 */
static void
claim_slot(Worker *w, int index)
{
	ShmemPipeline *slot;
	ShmemDatabase *database;
	bool		claimed = false;

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	database = shmem_database_slot(w->database, false);
	slot = shmem_pipeline_slot(w->database, w->pipeline_id, false);
	if (slot != NULL && slot->workers[index].pid == 0 && slot->blocked_by == 0 &&
		(database == NULL || database->blocked_by == 0))
	{
		ShmemWorker *place = &slot->workers[index];

		w->place = place;
		place->pid = MyProcPid;
		place->latch = MyLatch;
		place->leave_at = 0;
		place->started_at = GetCurrentTimestamp();
		place->retry_at = 0;
		place->stamp = 0;
		claimed = true;
	}
	LWLockRelease(shmem->lock);

	if (!claimed)
		proc_exit(0);
	w->slot = slot;
	worker_watch_leave(&w->place->leave_at);
}

/* Give the place back. A death that nobody reported delays the next start when it came early. */
void
worker_release_hold(Worker *w)
{
	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	if (w->slot->held_by == MyProcPid)
		w->slot->held_by = 0;
	if (w->slot->hold_pid == MyProcPid)
	{
		w->slot->hold_pid = 0;
		w->slot->hold_latch = NULL;
		if (w->slot->workers[SHMEM_INGEST].latch != NULL)
			SetLatch(w->slot->workers[SHMEM_INGEST].latch);
	}
	LWLockRelease(shmem->lock);
}

static void
release_slot(int code, Datum arg)
{
	Worker	   *w = (Worker *) DatumGetPointer(arg);
	ShmemWorker *place = w->place;
	TimestampTz now = GetCurrentTimestamp();

	worker_release_hold(w);
	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	if (place->pid == MyProcPid)
	{
		if (code != 0 && place->retry_at == 0 &&
			!TimestampDifferenceExceeds(place->started_at, now, SUSPICIOUS_MS))
		{
			place->failures++;
			place->retry_at = worker_retry_at(UTIL_ERROR_TRANSIENT, place->failures, now);
		}
		place->pid = 0;
		place->latch = NULL;
		place->leave_at = 0;
	}
	wake_manager(w->database);
	LWLockRelease(shmem->lock);
}

void
worker_pin_settings(void)
{
	static const struct
	{
		const char *name;
		const char *value;
	}			settings[] = {
		{"search_path", "pg_catalog, pg_temp"},
		{"synchronous_commit", "off"},	/* position and rows are lost or kept together */
		{"session_replication_role", "replica"},
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_read_only", "off"},
		{"role", "none"},		/* rows are written as the pipeline's owner, whoever that is in sessions */
		{"statement_timeout", "0"},
		{"lock_timeout", "0"},
		{"idle_in_transaction_session_timeout", "0"},
#ifdef CDC_HAS_TRANSACTION_TIMEOUT
		{"transaction_timeout", "0"},	/* a source transaction takes what it takes */
#endif
		{"row_security", "off"},
		{"check_function_bodies", "off"},
	};

	for (size_t i = 0; i < lengthof(settings); i++)
		SetConfigOption(settings[i].name, settings[i].value, PGC_SUSET, PGC_S_OVERRIDE);
}

static void
origin_name(const Worker *w, char *name)
{
	snprintf(name, NAMEDATALEN, "cdc_%u_%d_%d", w->database, w->pipeline_id, (int) w->kind + w->number);
}

/*
 * Mark what this process writes with an origin of its own. Its LSN is never
 * set: progress stands in the position log, because an origin would also move
 * with a transaction that is rolled back (PostgreSQL 16 and later). The server
 * has room for few origins: workers that can be done without leave it to others.
 */
static void
set_up_origin(Worker *w)
{
	char		name[NAMEDATALEN];
	RepOriginId origin;

	origin_name(w, name);
	if (w->number > 1 && !catalog_origin_has_room(name))
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("pipeline \"%s\" copies with fewer workers than it was given", w->pipeline->name),
				 errdetail("There is no free replication origin for snapshot worker %d.", w->number),
				 errhint("Increase \"%s\".", CDC_ORIGIN_LIMIT_SETTING)));
	origin = replorigin_by_name(name, true);
	if (origin == InvalidRepOriginId)
		origin = replorigin_create(name);
	cdc_replorigin_session_setup(origin);
	replorigin_session_origin = origin;
	replorigin_session_origin_lsn = InvalidXLogRecPtr;
}

void
worker_drop_origin(Worker *w)
{
	char		name[NAMEDATALEN];

	origin_name(w, name);
	replorigin_session_origin = InvalidRepOriginId;
	replorigin_session_reset();
	StartTransactionCommand();
	replorigin_drop_by_name(name, true, false);
	CommitTransactionCommand();
}

/* Remember under which server the pipeline runs, and say so when it is another one than before. */
static void
note_server(const CatalogPipeline *pipeline)
{
	const char *fingerprint = util_fingerprint();
	bool		is_new = pipeline->fingerprint == NULL || strcmp(pipeline->fingerprint, fingerprint) != 0;

	if (!is_new && pipeline->server_start == PgStartTime)
		return;
	/* two servers that write into one sink destroy it */
	if (is_new && pipeline->fingerprint != NULL && pipeline->sink != NULL &&
		!util_fingerprint_was_promoted(pipeline->fingerprint, fingerprint))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pipeline \"%s\" ran under another server", pipeline->name),
				 errdetail("It ran under %s; this is %s (system identifier, timeline, host, data directory).",
						   pipeline->fingerprint, fingerprint),
				 errhint("If the other one is gone for good: SELECT cdc_start_pipeline(%s, confirm_move => true). If this is a copy of it: SELECT cdc_drop_pipeline(%s).",
						 quote_literal_cstr(pipeline->name), quote_literal_cstr(pipeline->name))));
	if (is_new && pipeline->fingerprint != NULL)
		ereport(LOG,
				(errmsg("pipeline \"%s\" goes on under another server than before", pipeline->name),
				 errdetail("It ran under %s; this is %s (system identifier, timeline, host, data directory).",
						   pipeline->fingerprint, fingerprint),
				 errhint("To the source it is another replica; the pipeline of the other server may go on beside it.")));
	catalog_pipeline_set_server(pipeline->id, PgStartTime, fingerprint);
}

/* The server of the pipeline's source or sink. */
static ForeignServer *
load_server(const CatalogPipeline *pipeline)
{
	const char *name = pipeline->sink != NULL ? pipeline->sink : pipeline->source;
	ForeignServer *server = GetForeignServerByName(name, true);

	if (server == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("server \"%s\" does not exist", name),
				 errdetail("It was dropped or renamed after the pipeline was made."),
				 pipeline->sink != NULL ? errhint("Make it anew with CREATE SERVER %s, or rename it back.", quote_identifier(name)) :
				 errhint("Use CREATE SERVER %s FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host '...', port '...'), "
						 "or name another one with cdc_alter_pipeline() and \"source\".",
						 quote_identifier(name))));
	return server;
}

/* Read what the worker works on; ends the process quietly when there is nothing to do any more. */
static void
load_pipeline(Worker *w)
{
	MemoryContext old;
	ForeignServer *server;
	bool		exports;

	catalog_lock_pipeline(w->pipeline_id, ShareLock, true);

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());

	old = MemoryContextSwitchTo(w->cxt);
	w->pipeline = catalog_pipeline_by_id(w->pipeline_id);
	MemoryContextSwitchTo(old);
	if (w->pipeline == NULL || !w->pipeline->enabled || w->pipeline->owner != w->owner)
		proc_exit(0);			/* the manager starts another one when it should run, as who owns it now */
	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	w->slot->workers[w->kind].stamp = w->pipeline->stamp;
	LWLockRelease(shmem->lock);

	pgstat_report_appname(psprintf("cdc_bridge %s", w->pipeline->name));

	exports = w->pipeline->sink != NULL;
	old = MemoryContextSwitchTo(w->cxt);
	server = w->server = load_server(w->pipeline);
	MemoryContextSwitchTo(old);
	if (!cdc_foreign_server_usage(server->serverid, w->owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for foreign server \"%s\"", server->servername),
				 errhint("Run GRANT USAGE ON FOREIGN SERVER %s TO %s.",
						 quote_identifier(server->servername),
						 quote_identifier(GetUserNameFromId(w->owner, false)))));

	old = MemoryContextSwitchTo(w->cxt);
	if (!exports)
		w->endpoint = mysql_endpoint_load(server->serverid, w->owner);
	MemoryContextSwitchTo(old);

	/* the maintenance worker and the export worker write no row that could be told on */
	if (w->kind != SHMEM_MAINTENANCE && !exports)
		set_up_origin(w);
	if (w->kind == SHMEM_INGEST)
		note_server(w->pipeline);

	PopActiveSnapshot();
	CommitTransactionCommand();
}

/* Is that only that there is no room for one more snapshot worker? Fewer do it too. */
static bool
lacks_room(const Worker *w, int sqlstate)
{
	return w->number > 1 && sqlstate == ERRCODE_CONFIGURATION_LIMIT_EXCEEDED;
}

/* Write down why the worker ends, and when to try again. */
static void
report_failure(Worker *w, const ErrorData *edata)
{
	UtilErrorInfo *info = util_error_info(edata);
	UtilErrorClass error_class = util_error_class(info->sqlstate);
	ShmemWorker *place = w->place;
	TimestampTz now = GetCurrentTimestamp();
	const CdcPosition *transaction = NULL;

	/* a connection that is lost inside a transaction is not that transaction's fault */
	if (error_class == UTIL_ERROR_DATA && w->transaction != NULL)
		transaction = w->transaction(w->transaction_arg);

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	if (TimestampDifferenceExceeds(place->started_at, now, HEALTHY_MS))
		place->failures = 0;
	place->failures++;
	place->retry_at = worker_retry_at(error_class, place->failures, now);
	LWLockRelease(shmem->lock);

	if (lacks_room(w, info->sqlstate))
		return;
	worker_write_failure(w->pipeline_id, w->fails_pipeline && error_class == UTIL_ERROR_DATA ? SHMEM_INGEST : w->kind,
						 error_class == UTIL_ERROR_TRANSIENT || error_class == UTIL_ERROR_CONFIGURATION,
						 info, transaction != NULL ? transaction : &w->slot->durable, transaction);
}

void
worker_write_failure(int32 pipeline_id, ShmemWorkerKind kind, bool retry, const UtilErrorInfo *info,
					 const CdcPosition *position, const CdcPosition *transaction)
{
	CatalogPipelineState state = retry ? CATALOG_PIPELINE_RETRYING : CATALOG_PIPELINE_FAILED;
	CatalogPipeline *pipeline;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	pipeline = catalog_pipeline_by_id(pipeline_id);
	if (pipeline != NULL && pipeline->enabled)
	{
		catalog_pipeline_set_state(pipeline_id, kind == SHMEM_INGEST ? state : pipeline->state,
								   info, position);
		catalog_pipeline_set_failed_transaction(pipeline_id, transaction);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
}

/* To the server's log. */
static void
log_failure(const ErrorData *edata)
{
	const UtilErrorInfo *info = util_error_info(edata);

	ereport(LOG,
			(errcode(info->sqlstate),
			 errmsg("worker ends with an error: %s", info->message),
			 info->detail ? errdetail("%s", info->detail) : 0,
			 info->hint ? errhint("%s", info->hint) : 0,
			 info->context ? errcontext("%s", info->context) : 0));
}

void
worker_main(ShmemWorkerKind kind, WorkerRun run)
{
	Worker	   *w;
	WorkerOrder order;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	memcpy(&order, MyBgworkerEntry->bgw_extra, sizeof(order));
	w = MemoryContextAllocZero(TopMemoryContext, sizeof(Worker));
	w->kind = kind;
	w->number = order.place - (int) kind + 1;
	w->database = order.database;
	w->pipeline_id = order.pipeline_id;
	w->owner = order.owner;
	w->cxt = AllocSetContextCreate(TopMemoryContext, "cdc worker", ALLOCSET_DEFAULT_SIZES);

	claim_slot(w, order.place);
	before_shmem_exit(release_slot, PointerGetDatum(w));

	BackgroundWorkerInitializeConnectionByOid(w->database, w->owner, CDC_BYPASS_ROLELOGINCHECK);
	worker_pin_settings();

	PG_TRY();
	{
		load_pipeline(w);
		MemoryContextSwitchTo(w->cxt);
		run(w);
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		HOLD_INTERRUPTS();
		MemoryContextSwitchTo(TopMemoryContext);
		error_context_stack = NULL;
		edata = CopyErrorData();
		FlushErrorState();
		/* no room for one more worker is said once */
		if (!(lacks_room(w, edata->sqlerrcode) && w->place->failures > 0))
			log_failure(edata);
		AbortOutOfAnyTransaction();
		RESUME_INTERRUPTS();

		report_failure(w, edata);
		proc_exit(1);
	}
	PG_END_TRY();

	proc_exit(0);
}
