/*-------------------------------------------------------------------------
 *
 * snapshot_put_off.c
 *	  Tables that a snapshot worker could not have, and when it tries them again.
 *
 * NOTES
 *	  Somebody has locked the table at the source (LOCK TABLES, an ALTER TABLE that
 *	  waits or is at its end, FLUSH TABLES behind a long statement), or what a
 *	  table without a key needs is not to be had. Our statements wait a second for
 *	  a lock, not more; then the table's row says what is in the way, the worker
 *	  turns to other tables, and comes back after a pause that doubles up to a limit.
 *
 *	  Each worker keeps its own list. What it tells of a table is removed by the one
 *	  that could have it, or when the table is complete (catalog_table_set_catchup).
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "snapshot/snapshot_copy.h"

/* Pause before a table is tried again. */
#define PAUSE_MS 1000
#define PAUSE_DOUBLINGS 4

typedef struct CopyPutOff
{
	int32		table_id;
	int			times;
	bool		told;			/* its row has the reason */
	TimestampTz until;
} CopyPutOff;

static CopyPutOff *
find(const SnapshotCopy *copy, int32 table_id)
{
	ListCell   *lc;

	foreach(lc, copy->put_offs)
	{
		CopyPutOff *entry = lfirst(lc);

		if (entry->table_id == table_id)
			return entry;
	}
	return NULL;
}

/* Write the reason at the table, or (NULL) take it away. */
static void
tell(SnapshotCopy *copy, int32 table_id, const UtilErrorInfo *error)
{
	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	catalog_table_set_notice(copy->pipeline_id, table_id, error);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(copy->step_cxt);
}

void
snapshot_put_off(SnapshotCopy *copy, const CopyTable *table, const UtilErrorInfo *error)
{
	CopyPutOff *entry = find(copy, table->table_id);

	if (entry == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(copy->cxt);

		entry = palloc0(sizeof(CopyPutOff));
		entry->table_id = table->table_id;
		copy->put_offs = lappend(copy->put_offs, entry);
		MemoryContextSwitchTo(old);
	}
	entry->until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
											   PAUSE_MS << Min(entry->times, PAUSE_DOUBLINGS));
	entry->times++;
	if (error == NULL)
		return;
	tell(copy, table->table_id, error);
	if (!entry->told)
		ereport(LOG,
				(errcode(error->sqlstate),
				 errmsg("copy of source table \"%s.%s\" of pipeline \"%s\" waits: %s",
						table->source_schema, table->source_table, copy->pipeline_name, error->message),
				 error->detail ? errdetail("%s", error->detail) : 0,
				 error->hint ? errhint("%s", error->hint) : 0));
	entry->told = true;
}

bool
snapshot_is_put_off(const SnapshotCopy *copy, int32 table_id)
{
	const CopyPutOff *entry = find(copy, table_id);

	return entry != NULL && entry->until > GetCurrentTimestamp();
}

void
snapshot_forget_put_off(SnapshotCopy *copy, int32 table_id)
{
	CopyPutOff *entry = find(copy, table_id);

	if (entry == NULL)
		return;
	if (entry->told)
		tell(copy, table_id, NULL);
	copy->put_offs = list_delete_ptr(copy->put_offs, entry);
	pfree(entry);
}

bool
snapshot_any_put_off(SnapshotCopy *copy)
{
	ListCell   *lc;

	if (copy->put_offs == NIL)
		return false;

	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	foreach(lc, copy->put_offs)
	{
		CopyPutOff *entry = lfirst(lc);
		const CatalogTable *now = catalog_table_by_id(copy->pipeline_id, entry->table_id);

		/* somebody else has copied it, or it has left */
		if (now != NULL && now->state == CATALOG_TABLE_SNAPSHOT)
			continue;
		copy->put_offs = foreach_delete_current(copy->put_offs, lc);
		pfree(entry);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(copy->step_cxt);
	return copy->put_offs != NIL;
}
