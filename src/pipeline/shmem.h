/*-------------------------------------------------------------------------
 *
 * shmem.h
 *	  Shared memory: who runs, who is to be woken, and the statistics.
 *
 * NOTES
 *	  Everything here is lost at a restart of the server; what must last stands
 *	  in cdc_bridge.* tables. One LWLock guards the arrays; counters of a slot
 *	  are written by its worker alone and read without it.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SHMEM_H
#define CDC_SHMEM_H

#include "postgres.h"
#include "access/xlogdefs.h"
#include "port/atomics.h"
#include "storage/latch.h"
#include "utils/timestamp.h"

#include "apply/apply.h"
#include "core/position.h"
#include "heap/heap_target.h"

extern int	shmem_max_pipelines;	/* GUC cdc_bridge.max_pipelines */
extern int	shmem_max_tables;		/* GUC cdc_bridge.max_tables */
extern bool shmem_autostart;	/* GUC cdc_bridge.autostart */

/* May a pipeline run that was last allowed to under the server that started then? */
extern bool shmem_may_run(TimestampTz server_start);

/* Is the library loaded by shared_preload_libraries, so that there is shared memory? */
extern bool shmem_is_available(void);

/* Called by _PG_init while shared_preload_libraries is processed. */
extern void shmem_init(void);

/* Positions in this server's log that an export worker has come to, and what it alone counts. */
typedef struct ShmemExport
{
	XLogRecPtr	decoded_lsn;	/* read up to here */
	XLogRecPtr	durable_lsn;	/* the sink has all of it */
	XLogRecPtr	confirmed_lsn;	/* the slot may forget what lies before */
	int64		parallel_chunks;	/* of copies, that more than one process read */
} ShmemExport;

/* Statistics of one running pipeline, as they are shown. */
typedef struct ShmemPipelineStat
{
	Oid			database;
	int32		pipeline_id;
	Oid			owner;
	int			ingest_pid;		/* 0: not running */
	int			snapshot_workers;	/* that run */
	int			maintenance_pid;	/* 0: not running */
	TimestampTz started_at;		/* of the ingest worker */
	TimestampTz retry_at;		/* next attempt; 0 none planned */
	int			failures;		/* in a row */
	int64		transactions;
	int64		changes;
	int64		bytes;
	int64		flushes;
	TimestampTz stats_reset;	/* 0: never */
	int64		source_time_us; /* commit time at the source of the newest durable transaction; 0 none */
	TimestampTz last_event_at;	/* when the source last said anything */
	TimestampTz caught_up_at;	/* when the stream last had nothing more to read; 0 never */
	CdcPosition durable;
	CdcPosition streamed;
	ApplyProgress progress;		/* of the source transaction that is coming in */
	ShmemExport export;
} ShmemPipelineStat;

typedef struct ShmemTableStat
{
	int64		inserts;
	int64		updates;
	int64		deletes;
	int64		conflicts;
	int64		values_replaced;
	int64		dead_letters;
	int64		letters_lost;
	bool		tier_is_known;	/* the stream has written rows: the two below are told */
	HeapTier	tier;
	bool		collapsed;
	TimestampTz last_change_at;
} ShmemTableStat;

/* Copies, for SQL functions; false resp. zeros when the pipeline has no slot. */
extern bool shmem_pipeline_stat(int32 pipeline_id, ShmemPipelineStat *stat);
extern void shmem_table_stat(int32 pipeline_id, int32 table_id, ShmemTableStat *stat);

/* Tables with counters in the whole server now. */
extern int	shmem_count_tables(void);

/* Set the counters of a pipeline of this database, and of its tables, to zero; at once. */
extern void shmem_reset_stats(int32 pipeline_id);

/*
 * For SQL functions: at commit of this transaction wake whoever looks after
 * this database's pipelines (nothing at rollback). Cheap to call repeatedly.
 */
extern void shmem_wake_at_commit(void);

/*
 * Ask the workers of a pipeline in this database to leave, wait until they
 * have, and keep new ones out to the end of the transaction. Throws when one
 * has not left after 30 s.
 */
extern void shmem_stop_pipeline(int32 pipeline_id);

#endif							/* CDC_SHMEM_H */
