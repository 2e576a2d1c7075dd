/*-------------------------------------------------------------------------
 *
 * export_slot.c
 *	  Replication slots of outgoing pipelines, when no worker reads them.
 *
 * NOTES
 *	  A slot cannot be dropped together with its pipeline, because a ROLLBACK
 *	  would not bring it back. So the manager drops it when it sees that the
 *	  pipeline is gone.
 *
 *	  A slot holds back the log as long as nothing is confirmed to it, and a
 *	  server whose disk is full serves nobody. Beyond slot_max_mb the slot is given
 *	  up: the pipeline fails, and says how much it had.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "replication/slot.h"
#include "utils/memutils.h"

#include "catalog/catalog_export.h"
#include "decode/decode_reader.h"
#include "pipeline/export_slot.h"
#include "pipeline/worker.h"
#include "util/util_error.h"

/* Names of slots that have the form of ours. */
static List *
slots_of_ours(void)
{
	List	   *names = NIL;
	char		name[NAMEDATALEN];

	for (int i = 0; i < max_replication_slots; i++)
	{
		const ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];
		bool		is_used;

		LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
		is_used = slot->in_use && slot->data.database == MyDatabaseId;
		if (is_used)
			snprintf(name, sizeof(name), "%s", NameStr(slot->data.name));
		LWLockRelease(ReplicationSlotControlLock);
		if (is_used && catalog_export_slot_pipeline(MyDatabaseId, name) != 0)
			names = lappend(names, pstrdup(name));
	}
	return names;
}

static const CatalogPipeline *
find(const List *pipelines, int32 id)
{
	ListCell   *lc;

	foreach(lc, pipelines)
	{
		const CatalogPipeline *pipeline = lfirst(lc);

		if (pipeline->id == id && pipeline->sink != NULL)
			return pipeline;
	}
	return NULL;
}

/* The process that reads the slot, when it is the pipeline's worker, has to leave it. */
static void
ask_reader_to_leave(int32 pipeline_id)
{
	ShmemPipeline *slot;

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	slot = shmem_pipeline_slot(MyDatabaseId, pipeline_id, false);
	if (slot != NULL)
		shmem_ask_to_leave(slot->workers[SHMEM_INGEST].pid, slot->workers[SHMEM_INGEST].latch,
						   &slot->workers[SHMEM_INGEST].leave_at);
	LWLockRelease(shmem->lock);
}

/* The pipeline fails before its slot goes: a worker that is started meanwhile finds a slot, or the failure. */
static void
give_up(const CatalogPipeline *pipeline, uint64 held_mb, int max_mb)
{
	UtilErrorInfo info = {
		.sqlstate = CDC_ERRCODE_POSITION_LOST,
		.message = psprintf("the replication slot of pipeline \"%s\" was given up", pipeline->name),
		.detail = psprintf("It held back " UINT64_FORMAT " MB of the write-ahead log, and the pipeline's option \"slot_max_mb\" is %d.",
						   held_mb, max_mb),
		.hint = pstrdup("What was committed since then is not in the sink. Drop the pipeline and make it anew, and begin with an empty sink or another name."),
	};

	ereport(WARNING,
			(errcode(info.sqlstate),
			 errmsg("%s", info.message),
			 errdetail("%s", info.detail),
			 errhint("%s", info.hint)));
	worker_write_failure(pipeline->id, SHMEM_INGEST, false, &info, NULL, NULL);
}

static ExportSlotsNeed
look_after(const char *name, const CatalogPipeline *pipeline)
{
	DecodeSlot	slot;
	TimeLineID	timeline;
	uint64		held_mb;
	int			max_mb;

	decode_slot_look(name, &slot);
	if (!slot.exists)
		return EXPORT_SLOTS_NOTHING;
	if (pipeline == NULL)
		return decode_slot_drop(name) ? EXPORT_SLOTS_NOTHING : EXPORT_SLOTS_SOON;

	max_mb = catalog_export_int(pipeline, "slot_max_mb");
	if (max_mb == 0 || XLogRecPtrIsInvalid(slot.restart_lsn))
		return EXPORT_SLOTS_NOTHING;
	held_mb = (decode_log_end(&timeline) - slot.restart_lsn) / (1024 * 1024);
	if (held_mb <= (uint64) max_mb)
		return EXPORT_SLOTS_WATCH;
	if (slot.active_pid != 0)
	{
		ask_reader_to_leave(pipeline->id);
		return EXPORT_SLOTS_SOON;
	}
	give_up(pipeline, held_mb, max_mb);
	return decode_slot_drop(name) ? EXPORT_SLOTS_NOTHING : EXPORT_SLOTS_SOON;
}

ExportSlotsNeed
export_slots_look_after(const List *pipelines)
{
	MemoryContext keep = CurrentMemoryContext;
	ExportSlotsNeed need = EXPORT_SLOTS_NOTHING;
	List	   *names = slots_of_ours();
	ListCell   *lc;

	foreach(lc, names)
	{
		const char *name = lfirst(lc);

		need = Max(need, look_after(name, find(pipelines, catalog_export_slot_pipeline(MyDatabaseId, name))));
		MemoryContextSwitchTo(keep);
	}
	return need;
}
