/*-------------------------------------------------------------------------
 *
 * catalog_lock.h
 *	  Heavyweight locks of pipelines and their tables, on tags of our own.
 *
 * NOTES
 *	  They are advisory-lock tags of a class that SQL cannot reach, so the
 *	  deadlock detector sees them and nobody else's locks meet them.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CATALOG_LOCK_H
#define CDC_CATALOG_LOCK_H

#include "postgres.h"
#include "storage/lock.h"

/*
 * One table of a pipeline (not the relation): ShareLock for a chunk writer,
 * RowExclusiveLock for the stream; they exclude each other. Held to the end of
 * the transaction. Every look-up by its holder uses a snapshot taken afterwards.
 */
extern void catalog_lock_table(int32 pipeline_id, int32 table_id, LOCKMODE mode);

/*
 * Tables that come to a target that several share, of whichever pipelines: one at a time finds its place. To the end of the
 * transaction, and before the first look at who is there.
 */
extern void catalog_lock_merge(void);

/*
 * A target whose rows several source tables fill in parts: one writes at a time, to the end of its transaction. Taken before
 * the lock of the table that is written for.
 */
extern void catalog_lock_target(Oid relid);

/*
 * A whole pipeline: workers hold ShareLock for the session while they run; drop
 * and a new definition take AccessExclusiveLock in their transaction.
 */
extern void catalog_lock_pipeline(int32 pipeline_id, LOCKMODE mode, bool session);

/*
 * Who builds indexes of a pipeline's targets: one process at a time. False when
 * another one does; else held as long as the process lives.
 */
extern bool catalog_lock_indexes(int32 pipeline_id);

/*
 * The plan of a table's copy: whoever cuts chunks, takes over one or finishes the
 * table holds it, for the session, because the source is asked meanwhile. Taken before the table's own lock.
 */
extern void catalog_lock_plan(int32 pipeline_id, int32 table_id);
extern bool catalog_try_lock_plan(int32 pipeline_id, int32 table_id);	/* without waiting */
extern void catalog_unlock_plan(int32 pipeline_id, int32 table_id);

/*
 * A snapshot worker holds its number's lock as long as it lives; chunks that are
 * open under the number of one that does not live may be taken over. Nobody asks about himself.
 */
extern void catalog_lock_snapshot_worker(int32 pipeline_id, int32 number);
extern bool catalog_snapshot_worker_lives(int32 pipeline_id, int32 number);

#endif							/* CDC_CATALOG_LOCK_H */
