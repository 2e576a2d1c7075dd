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
 *	  Order: pipeline, then table, then state; so nobody waits in a circle.
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
	LOCK_CLASS_STATE = 0xCDC2
} LockClass;

static LockAcquireResult
acquire(int32 pipeline_id, int32 table_id, LockClass class, LOCKMODE mode, bool session, bool dont_wait)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) pipeline_id, (uint32) table_id, class);
	return LockAcquire(&tag, mode, session, dont_wait);
}

void
catalog_lock_table(int32 pipeline_id, int32 table_id, LOCKMODE mode)
{
	(void) acquire(pipeline_id, table_id, LOCK_CLASS_TABLE, mode, false, false);
}

void
catalog_lock_pipeline(int32 pipeline_id, LOCKMODE mode, bool session)
{
	(void) acquire(pipeline_id, 0, LOCK_CLASS_PIPELINE, mode, session, false);
}

bool
catalog_lock_pipeline_conditional(int32 pipeline_id, LOCKMODE mode)
{
	return acquire(pipeline_id, 0, LOCK_CLASS_PIPELINE, mode, false, true) != LOCKACQUIRE_NOT_AVAIL;
}

void
catalog_lock_state(int32 pipeline_id)
{
	(void) acquire(pipeline_id, 0, LOCK_CLASS_STATE, ExclusiveLock, false, false);
}
