/*-------------------------------------------------------------------------
 *
 * shmem_slots.h
 *	  The layout of shared memory, for the processes of pipeline/ alone.
 *
 * NOTES
 *	  A ShmemDatabase exists while a database has a manager, wants one, or is
 *	  kept free of workers for somebody who drops, renames or copies it. A
 *	  ShmemPipeline exists from a pipeline's first start until it is dropped, so
 *	  that counters outlive a stop. All fields are guarded by shmem->lock.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SHMEM_SLOTS_H
#define CDC_SHMEM_SLOTS_H

#include "postgres.h"
#include "storage/latch.h"
#include "storage/lwlock.h"

#include "catalog/catalog.h"
#include "pipeline/shmem.h"

typedef struct ShmemDatabase
{
	Oid			database;		/* InvalidOid: free */
	int			manager_pid;	/* 0: none */
	Latch	   *manager_latch;
	TimestampTz manager_leave_at;	/* when the manager was asked to leave; 0 not asked */
	bool		wanted;			/* a manager should look at this database */
	bool		woken;			/* something changed since the manager last looked */
	bool		looked;			/* the manager has read the catalog at least once */
	int			blocked_by;		/* pid of the backend that keeps workers out; 0 none */
	int			failures;		/* manager ended by itself without having been asked, in a row */
	TimestampTz retry_at;
} ShmemDatabase;

/*
 * The place of a worker in its pipeline. Snapshot workers are the last and have several: number n (1, 2, ...) has place
 * SHMEM_SNAPSHOT + n - 1.
 */
typedef enum ShmemWorkerKind
{
	SHMEM_INGEST,				/* of an outgoing pipeline the export worker */
	SHMEM_MAINTENANCE,			/* compares tables with their source */
	SHMEM_SNAPSHOT
} ShmemWorkerKind;

#define SHMEM_WORKER_PLACES (SHMEM_SNAPSHOT + CATALOG_MAX_SNAPSHOT_WORKERS)

typedef struct ShmemWorker
{
	int			pid;			/* 0: not running */
	Latch	   *latch;
	TimestampTz leave_at;		/* when it was asked to leave; 0 not asked */
	TimestampTz started_at;
	int			failures;		/* in a row */
	TimestampTz retry_at;		/* not before that; 0: at once */
	uint32		wishes_done;	/* snapshot: the newest of the pipeline's snapshot_wishes that it has nothing to do for */
	uint64		stamp;			/* of the definition that it has read; 0: not yet */
} ShmemWorker;

typedef struct ShmemPipeline
{
	Oid			database;		/* InvalidOid: free */
	int32		pipeline_id;
	Oid			owner;
	ShmemWorker workers[SHMEM_WORKER_PLACES];
	uint32		snapshot_wishes;	/* grows each time that there are tables to be copied */
	TimestampTz snapshot_rows_at;	/* when the next row may be written, see max_rows_per_second */
	int			hold_pid;		/* process that wants the ingest worker to hold still; 0: none */
	Latch	   *hold_latch;
	int			held_by;		/* ingest worker that does, at "durable"; 0: none */
	bool		join_wanted;	/* tables want to join, leave or be copied anew: for the ingest worker */
	bool		letters_wanted; /* a request that concerns dead letters is open: for the ingest worker */
	bool		verify_wanted;	/* a request of cdc_verify() is open; the manager reads it from the catalog */
	bool		state_wanted;	/* the ingest worker shall write the pipeline's state again */
	int			blocked_by;		/* pid of the backend that keeps workers out to the end of its transaction; 0 none */
	int64		transactions;
	int64		changes;
	int64		bytes;
	int64		flushes;
	TimestampTz stats_reset;	/* when the counters were set to zero by hand; 0: never */
	int64		source_time_us;
	TimestampTz last_event_at;
	TimestampTz caught_up_at;
	CdcPosition durable;
	CdcPosition streamed;
	ApplyProgress progress;
	ShmemExport export;			/* of an outgoing pipeline */
} ShmemPipeline;

typedef struct Shmem
{
	LWLock	   *lock;
	int			launcher_pid;
	Latch	   *launcher_latch;
	int			max_databases;
	int			max_pipelines;
	ShmemDatabase *databases;
	ShmemPipeline *pipelines;
} Shmem;

extern Shmem *shmem;

/* Slot of a database resp. pipeline; NULL when there is none (and none is free, with create). Caller holds the lock. */
extern ShmemDatabase *shmem_database_slot(Oid database, bool create);
extern ShmemPipeline *shmem_pipeline_slot(Oid database, int32 pipeline_id, bool create);

/*
 * Ask a worker to leave: it does so between two steps of its work. One that has
 * not within a second gets SIGTERM. Call it again until its pid is 0. Caller holds
 * the lock exclusively.
 */
extern void shmem_ask_to_leave(int pid, Latch *latch, TimestampTz *leave_at);

/* Mark a database as wanted and wake its manager, else the launcher. Takes the lock. */
extern void shmem_wake_database(Oid database);

/* Wake the launcher. Takes the lock. */
extern void shmem_wake_launcher(void);

/*
 * Keep workers out of a database until the current transaction ends; its
 * manager and workers are stopped and waited for.
 */
extern void shmem_block_database(Oid database);

/* Add to the counters of a table; last_change_at 0 leaves that as it is. Takes the lock of the table hash. */
extern void shmem_table_stat_add(int32 pipeline_id, int32 table_id, const ShmemTableStat *delta);

#endif							/* CDC_SHMEM_SLOTS_H */
