/*-------------------------------------------------------------------------
 *
 * budget.c
 *	  What a pipeline takes of the server's limited numbers, and what is left.
 *
 * NOTES
 *	  A running pipeline has an ingest worker, and at least one snapshot worker while
 *	  tables are copied; each has a replication origin of its own, whose state takes a
 *	  place until the origin is dropped. An outgoing one has an export worker and a
 *	  replication slot. Its database has one manager.
 *
 *	  Places for background workers are counted by who is there: one that was asked
 *	  for and has not begun yet is not seen. So a shortage of them is told as a
 *	  warning, and refused only by the postmaster.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/tuplestore.h"

#include "catalog/catalog_export.h"
#include "compat/pg_compat.h"
#include "pipeline/budget.h"
#include "pipeline/shmem_slots.h"

/* Least workers of a pipeline that copies, each with an origin; further snapshot workers come when there is room. */
#define LEAST_WORKERS 2

/*
 * States of replication origins that are in use by others than the pipeline. The
 * function behind pg_replication_origin_status is for superusers; called by C it
 * asks nobody.
 */
static int
count_origins(int32 pipeline_id)
{
	LOCAL_FCINFO(fcinfo, 0);
	FmgrInfo	flinfo;
	ReturnSetInfo rsinfo = {.type = T_ReturnSetInfo};
	TupleTableSlot *slot;
	char	   *ours = psprintf("cdc_%u_%d_", MyDatabaseId, pipeline_id);
	int			count = 0;

	fmgr_info(F_PG_SHOW_REPLICATION_ORIGIN_STATUS, &flinfo);
	rsinfo.econtext = CreateStandaloneExprContext();
	rsinfo.allowedModes = SFRM_Materialize;
	InitFunctionCallInfoData(*fcinfo, &flinfo, 0, InvalidOid, NULL, (Node *) &rsinfo);
	(void) FunctionCallInvoke(fcinfo);

	slot = MakeSingleTupleTableSlot(rsinfo.setDesc, &TTSOpsMinimalTuple);
	while (tuplestore_gettupleslot(rsinfo.setResult, true, false, slot))
	{
		bool		isnull;
		Datum		name = slot_getattr(slot, 2, &isnull);

		if (isnull || strncmp(TextDatumGetCString(name), ours, strlen(ours)) != 0)
			count++;
	}
	ExecDropSingleTupleTableSlot(slot);
	tuplestore_end(rsinfo.setResult);
	FreeExprContext(rsinfo.econtext, true);
	return count;
}

int
budget_workers_of(const CatalogPipeline *pipeline)
{
	if (pipeline->sink != NULL)
		return 1;
	return 1 + util_option_int(&catalog_pipeline_options, "snapshot_workers",
							   catalog_pipeline_option(pipeline, "snapshot_workers"));
}

/* Pipelines that wait for a place do not use one yet: without them the hint would help the next one only. */
static int
plan_origins(int32 pipeline_id)
{
	int			count = 0;
	ListCell   *lc;

	foreach(lc, catalog_pipeline_list())
	{
		const CatalogPipeline *pipeline = lfirst(lc);

		if (pipeline->source != NULL && (pipeline->enabled || pipeline->id == pipeline_id))
			count += budget_workers_of(pipeline);
	}
	return count;
}

/* Workers of the pipeline, and the manager, that run now. */
static int
count_own_workers(int32 pipeline_id)
{
	ShmemPipeline *slot;
	ShmemDatabase *database;
	int			count = 0;

	LWLockAcquire(shmem->lock, LW_SHARED);
	slot = shmem_pipeline_slot(MyDatabaseId, pipeline_id, false);
	for (int i = 0; slot != NULL && i < SHMEM_WORKER_PLACES; i++)
		count += slot->workers[i].pid != 0;
	database = shmem_database_slot(MyDatabaseId, false);
	count += database != NULL && database->manager_pid != 0;
	LWLockRelease(shmem->lock);
	return count;
}

/* Pipelines with workers, others than this one. */
static int
count_pipelines(int32 pipeline_id)
{
	int			count = 0;

	LWLockAcquire(shmem->lock, LW_SHARED);
	for (int i = 0; i < shmem->max_pipelines; i++)
	{
		const ShmemPipeline *slot = &shmem->pipelines[i];

		if (!OidIsValid(slot->database) || (slot->database == MyDatabaseId && slot->pipeline_id == pipeline_id))
			continue;
		for (int j = 0; j < SHMEM_WORKER_PLACES; j++)
		{
			if (slot->workers[j].pid != 0)
			{
				count++;
				break;
			}
		}
	}
	LWLockRelease(shmem->lock);
	return count;
}

/* Replication slots of others than the pipeline. */
static int
count_slots(int32 pipeline_id)
{
	char	   *ours = catalog_export_slot_name(MyDatabaseId, pipeline_id);
	int			count = 0;

	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	for (int i = 0; i < max_replication_slots; i++)
	{
		const ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];

		count += slot->in_use && strcmp(NameStr(slot->data.name), ours) != 0;
	}
	LWLockRelease(ReplicationSlotControlLock);
	return count;
}

void
budget_read(BudgetKind kind, int32 pipeline_id, Budget *budget)
{
	const char *text;
	const CatalogPipeline *pipeline = catalog_pipeline_by_id(pipeline_id);
	bool		exports = pipeline != NULL && pipeline->sink != NULL;

	budget->planned = 0;
	switch (kind)
	{
		case BUDGET_WORKERS:
			budget->setting = "max_worker_processes";
			budget->limit = max_worker_processes;
			budget->used = Max(cdc_count_background_workers() - count_own_workers(pipeline_id), 0);
			budget->needed = 1 + (exports ? 1 : LEAST_WORKERS);	/* with the manager */
			break;
		case BUDGET_ORIGINS:
			text = GetConfigOption(CDC_ORIGIN_LIMIT_SETTING, true, false);
			budget->setting = CDC_ORIGIN_LIMIT_SETTING;
			budget->limit = text != NULL ? atoi(text) : 0;
			budget->used = count_origins(pipeline_id);
			budget->needed = exports ? 0 : LEAST_WORKERS;
			budget->planned = plan_origins(pipeline_id);
			break;
		case BUDGET_PIPELINES:
			budget->setting = "cdc_bridge.max_pipelines";
			budget->limit = shmem_max_pipelines;
			budget->used = count_pipelines(pipeline_id);
			budget->needed = 1;
			break;
		case BUDGET_SLOTS:
			budget->setting = "max_replication_slots";
			budget->limit = max_replication_slots;
			budget->used = count_slots(pipeline_id);
			budget->needed = exports ? 1 : 0;
			break;
	}
}

char *
budget_detail(const Budget *budget)
{
	return psprintf("%s is %d; others use %d, this pipeline needs %d.",
					budget->setting, budget->limit, budget->used, budget->needed);
}

/* With some room, because it takes a restart. */
char *
budget_hint(const Budget *budget)
{
	return psprintf("Run ALTER SYSTEM SET %s = %d and restart the server.",
					budget->setting, Max(Max(budget->limit, budget->planned), budget->used + budget->needed) + 8);
}
