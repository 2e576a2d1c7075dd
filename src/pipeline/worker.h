/*-------------------------------------------------------------------------
 *
 * worker.h
 *	  What all workers of a pipeline have in common: birth, rights, death.
 *
 * NOTES
 *	  A worker is started by its database's manager, claims its place in shared
 *	  memory before it connects (so that a database that is being dropped never
 *	  sees it), connects as the pipeline's owner, pins its settings, takes the
 *	  pipeline's lock and sets up a replication origin of its own. An error ends
 *	  it: what happened is written to pipeline_state, when to try again to
 *	  shared memory, and the manager starts a new one.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_WORKER_H
#define CDC_WORKER_H

#include "postgres.h"
#include "foreign/foreign.h"
#include "postmaster/bgworker.h"

#include "catalog/catalog.h"
#include "mysql/mysql_options.h"
#include "pipeline/shmem_slots.h"

typedef struct Worker
{
	ShmemWorkerKind kind;
	int			number;			/* of workers of one kind: 1, 2, ... */
	ShmemWorker *place;
	Oid			database;
	int32		pipeline_id;
	Oid			owner;
	ShmemPipeline *slot;
	MemoryContext cxt;			/* lives as long as the worker */
	CatalogPipeline *pipeline;
	ForeignServer *server;		/* the source, or the sink */
	MysqlEndpoint *endpoint;	/* of the source; NULL in an export worker */

	bool		fails_pipeline; /* an error that stays is the pipeline's, although the stream could go on */

	/* where the source transaction starts that is being worked on, or NULL; asked when an error ends the worker */
	const CdcPosition *(*transaction) (void *arg);
	void	   *transaction_arg;
} Worker;

typedef void (*WorkerRun) (Worker *worker);

/*
 * Ask the postmaster for a worker; false when there is no free slot (max_worker_processes).
 * The handle is palloc'd in CurrentMemoryContext.
 */
extern bool worker_register(const CatalogPipeline *pipeline, int place, BackgroundWorkerHandle **handle);

/* What stands at a place of a pipeline. */
extern ShmemWorkerKind worker_kind(int place);

/* Settings that no role or database default may change under a worker or a manager. */
extern void worker_pin_settings(void);

/* Body of a worker's main function: everything above, then run. Does not return. */
extern _Noreturn void worker_main(ShmemWorkerKind kind, WorkerRun run);

/*
 * Interrupts, configuration reload and the wish that this process may leave:
 * call it in every loop, between two steps of the work. May end the process.
 */
extern void worker_check_interrupts(void);

/* Where the stream is durable, read in a transaction of its own; lives as long as the worker. NULL: it has not begun. */
extern CatalogPosition *worker_position(const Worker *worker);

/* Say where such a wish is noted. */
extern void worker_watch_leave(const TimestampTz *at);

/* Give the worker's replication origin back, when its work is done; it writes nothing afterwards. */
extern void worker_drop_origin(Worker *worker);

/* Time of the next attempt after "failures" failures in a row (1, 2, ...), with jitter. */
extern TimestampTz worker_retry_at(UtilErrorClass error_class, int failures, TimestampTz now);

/*
 * Write a failure to pipeline_state, in a transaction of its own. An ingest
 * worker's decides the pipeline's state; a snapshot worker's is only shown,
 * because the stream goes on without it. transaction is the start of the source
 * transaction that it happened in, or NULL.
 */
extern void worker_write_failure(int32 pipeline_id, ShmemWorkerKind kind, bool retry, const UtilErrorInfo *info,
								 const CdcPosition *position, const CdcPosition *transaction);

/* End what this process has to do with a hold: the ingest worker goes on, resp. holds still no longer. */
extern void worker_release_hold(Worker *w);

/* Main functions, started by the postmaster by name. */
extern PGDLLEXPORT void cdc_launcher_main(Datum arg);
extern PGDLLEXPORT void cdc_manager_main(Datum arg);
extern PGDLLEXPORT void cdc_ingest_main(Datum arg);
extern PGDLLEXPORT void cdc_snapshot_main(Datum arg);
extern PGDLLEXPORT void cdc_maintenance_main(Datum arg);
extern PGDLLEXPORT void cdc_export_main(Datum arg);

/* launcher.c: register the launcher; called by _PG_init. */
extern void launcher_register(void);

/* utility_hook.c: workers leave a database before it is dropped, renamed or copied; called by _PG_init. */
extern void utility_hook_install(void);

#endif							/* CDC_WORKER_H */
