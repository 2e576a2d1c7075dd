/*-------------------------------------------------------------------------
 *
 * catalog_lock.c
 *	  Heavyweight locks of pipelines, their tables and their states.
 *
 * NOTES
 *	  The tag of an advisory lock has a class in its fourth field; SQL functions
 *	  use 1 and 2. The locks are kept under the user lock method: under the
 *	  standard one an aborted transaction would give up a session's locks too,
 *	  and a worker rolls transactions back in its normal course.
 *
 *	  Order: pipeline, then plan, then merge, then target, then table, then state; so nobody waits in a circle.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/lock.h"

#include "catalog/catalog_heap.h"
#include "catalog/catalog_lock.h"

/* Classes of our tags (LOCKTAG's fourth field), shown as objsubid in pg_locks. */
typedef enum LockClass
{
	LOCK_CLASS_PIPELINE = 0xCDC0,
	LOCK_CLASS_TABLE = 0xCDC1,
	LOCK_CLASS_STATE = 0xCDC2,
	LOCK_CLASS_INDEXES = 0xCDC3,
	LOCK_CLASS_PLAN = 0xCDC4,
	LOCK_CLASS_SNAPSHOT_WORKER = 0xCDC5,
	LOCK_CLASS_MERGE = 0xCDC6,
	LOCK_CLASS_TARGET = 0xCDC7
} LockClass;

/* number: of a table or a worker. */
static void
acquire(int32 pipeline_id, int32 number, LockClass class, LOCKMODE mode, bool session)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) pipeline_id, (uint32) number, class);
	(void) LockAcquire(&tag, mode, session, false);
}

void
catalog_lock_table(int32 pipeline_id, int32 table_id, LOCKMODE mode)
{
	acquire(pipeline_id, table_id, LOCK_CLASS_TABLE, mode, false);
}

void
catalog_lock_pipeline(int32 pipeline_id, LOCKMODE mode, bool session)
{
	acquire(pipeline_id, 0, LOCK_CLASS_PIPELINE, mode, session);
}

void
catalog_lock_merge(void)
{
	acquire(0, 0, LOCK_CLASS_MERGE, ExclusiveLock, false);
}

void
catalog_lock_target(Oid relid)
{
	acquire((int32) relid, 0, LOCK_CLASS_TARGET, ExclusiveLock, false);
}

void
catalog_lock_state(int32 pipeline_id)
{
	acquire(pipeline_id, 0, LOCK_CLASS_STATE, ExclusiveLock, false);
}

bool
catalog_lock_indexes(int32 pipeline_id)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) pipeline_id, 0, LOCK_CLASS_INDEXES);
	return LockAcquire(&tag, ExclusiveLock, true, true) != LOCKACQUIRE_NOT_AVAIL;
}

void
catalog_lock_plan(int32 pipeline_id, int32 table_id)
{
	acquire(pipeline_id, table_id, LOCK_CLASS_PLAN, ExclusiveLock, true);
}

bool
catalog_try_lock_plan(int32 pipeline_id, int32 table_id)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) pipeline_id, (uint32) table_id, LOCK_CLASS_PLAN);
	return LockAcquire(&tag, ExclusiveLock, true, true) != LOCKACQUIRE_NOT_AVAIL;
}

void
catalog_unlock_plan(int32 pipeline_id, int32 table_id)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) pipeline_id, (uint32) table_id, LOCK_CLASS_PLAN);
	(void) LockRelease(&tag, ExclusiveLock, true);
}

void
catalog_lock_snapshot_worker(int32 pipeline_id, int32 number)
{
	acquire(pipeline_id, number, LOCK_CLASS_SNAPSHOT_WORKER, ExclusiveLock, true);
}

bool
catalog_snapshot_worker_lives(int32 pipeline_id, int32 number)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) pipeline_id, (uint32) number, LOCK_CLASS_SNAPSHOT_WORKER);
	if (LockAcquire(&tag, ShareLock, true, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	(void) LockRelease(&tag, ShareLock, true);
	return false;
}
