/*-------------------------------------------------------------------------
 *
 * api_wait.c
 *	  cdc_wait_for_pipeline: wait until a pipeline has reached a state.
 *
 * NOTES
 *	  A procedure, because it ends its transaction between two looks: while it
 *	  waits it holds neither a snapshot nor a lock, so nothing is kept from being
 *	  cleaned up and the workers' progress can be seen. That is only possible
 *	  outside a transaction block.
 *
 *	  A pipeline that fails, stops or is dropped cannot reach the state any more:
 *	  that is an error at once.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/spi.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "api/api.h"
#include "pipeline/shmem.h"
#include "util/util_wait.h"

PG_FUNCTION_INFO_V1(cdc_wait_for_pipeline);

/* Time between two looks. */
#define LOOK_INTERVAL_MS 100

/* Stopped tables that the warning names. */
#define TABLES_NAMED 20

static CatalogPipelineState
state_arg(const char *text)
{
	StringInfoData names;

	initStringInfo(&names);
	for (int i = CATALOG_PIPELINE_STOPPED; i <= CATALOG_PIPELINE_FAILED; i++)
	{
		const char *name = catalog_pipeline_state_name(i);

		if (strcmp(name, text) == 0)
			return i;
		appendStringInfo(&names, "%s%s", i > 0 ? ", " : "", name);
	}
	if (strcmp(text, API_STATE_WAITING) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("state \"%s\" cannot be waited for", text),
				 errdetail("A pipeline has it when the server starts with cdc_bridge.autostart off, and keeps it until it is started."),
				 errhint("States that can be waited for are: %s.", names.data)));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unrecognized pipeline state \"%s\"", text),
			 errhint("Valid states are: %s.", names.data)));
}

/* Is it there? "snapshot" is also passed by being further; "stopped" takes the workers' leave. */
static bool
is_reached(const CatalogPipeline *pipeline, CatalogPipelineState wanted)
{
	ShmemPipelineStat stat;

	if (api_pipeline_is_waiting(pipeline))
		return false;
	switch (wanted)
	{
		case CATALOG_PIPELINE_SNAPSHOT:
			return pipeline->state == CATALOG_PIPELINE_SNAPSHOT ||
				pipeline->state == CATALOG_PIPELINE_STREAMING;
		case CATALOG_PIPELINE_STOPPED:
			return pipeline->state == CATALOG_PIPELINE_STOPPED &&
				(!shmem_pipeline_stat(pipeline->id, &stat) ||
				 (stat.ingest_pid == 0 && stat.snapshot_workers == 0 && stat.maintenance_pid == 0));
		default:
			return pipeline->state == wanted;
	}
}

/* States that are left by a command only, so waiting for another one is in vain. */
static void
check_can_still_reach(const CatalogPipeline *pipeline, CatalogPipelineState wanted)
{
	if (wanted == CATALOG_PIPELINE_STOPPED)
		return;
	if (pipeline->state == CATALOG_PIPELINE_FAILED)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pipeline \"%s\" has failed", pipeline->name),
				 pipeline->last_error.message == NULL ? 0 :
				 pipeline->last_error.detail == NULL ? errdetail("%s", pipeline->last_error.message) :
				 errdetail("%s: %s", pipeline->last_error.message, pipeline->last_error.detail),
				 pipeline->last_error.hint != NULL ? errhint("%s", pipeline->last_error.hint) : 0));
	if (api_pipeline_is_waiting(pipeline))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pipeline \"%s\" is waiting to be started", pipeline->name),
				 errdetail("cdc_bridge.autostart is off, and the server was started since the pipeline ran."),
				 errhint("Start it with cdc_start_pipeline().")));
	if (!pipeline->enabled)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pipeline \"%s\" is stopped", pipeline->name),
				 errhint("Start it with cdc_start_pipeline().")));
}

static _Noreturn void
throw_timeout(const CatalogPipeline *pipeline, CatalogPipelineState wanted)
{
	ereport(ERROR,
			(errcode(ERRCODE_QUERY_CANCELED),
			 errmsg("pipeline \"%s\" did not reach state \"%s\" in time",
					pipeline->name, catalog_pipeline_state_name(wanted)),
			 pipeline->last_error.message != NULL
			 ? errdetail("Its state is \"%s\"; its last error was: %s",
						 catalog_pipeline_state_name(pipeline->state), pipeline->last_error.message)
			 : errdetail("Its state is \"%s\".", catalog_pipeline_state_name(pipeline->state)),
			 pipeline->last_error.hint != NULL ? errhint("%s", pipeline->last_error.hint)
			 : pipeline->sink != NULL ? errhint("pg_stat_cdc_export shows how far it is.")
			 : errhint("pg_stat_cdc_pipeline and pg_stat_cdc_snapshot show how far it is.")));
}

/* Tables that will not be mirrored although the pipeline is well. */
static void
warn_of_stopped_tables(const CatalogPipeline *pipeline)
{
	StringInfoData list;
	int			n = 0;
	ListCell   *lc;

	initStringInfo(&list);
	foreach(lc, catalog_table_list(pipeline->id))
	{
		const CatalogTable *table = lfirst(lc);

		if (table->state != CATALOG_TABLE_STOPPED)
			continue;
		if (++n <= TABLES_NAMED)
			appendStringInfo(&list, "%s%s.%s: %s", n > 1 ? "\n" : "", table->source_schema, table->source_table,
							 table->last_error.message != NULL ? table->last_error.message : "no reason known");
		else if (n == TABLES_NAMED + 1)
			appendStringInfoString(&list, "\n...");
	}
	if (n > 0)
		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg_plural("%d table of pipeline \"%s\" is stopped",
							   "%d tables of pipeline \"%s\" are stopped", n, n, pipeline->name),
				 errdetail_internal("%s", list.data),
				 errhint("pg_stat_cdc_table shows what to do about each.")));
}

/* ---- any procedure that waits ---- */

void
api_wait_begin(FunctionCallInfo fcinfo, const char *procedure)
{
	bool		atomic = fcinfo->context == NULL || !IsA(fcinfo->context, CallContext) ||
		castNode(CallContext, fcinfo->context)->atomic;

	if (atomic)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("%s() cannot run inside a transaction block", procedure),
				 errdetail("It ends its transaction between two looks."),
				 errhint("Call it by itself: CALL %s(...), without BEGIN.", procedure)));

	/* SPI's procedure context outlives the transactions that end here */
	SPI_connect_ext(SPI_OPT_NONATOMIC);
}

void
api_wait_until(FunctionCallInfo fcinfo, int timeout_arg, ApiLook look, const void *what)
{
	MemoryContext cxt = CurrentMemoryContext;
	MemoryContext look_cxt = AllocSetContextCreate(cxt, "cdc wait", ALLOCSET_DEFAULT_SIZES);
	TimestampTz deadline = 0;
	bool		done = false;

	if (!PG_ARGISNULL(timeout_arg))
		deadline = DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
														   TimestampTzGetDatum(GetCurrentTimestamp()),
														   PG_GETARG_DATUM(timeout_arg)));
	while (!done)
	{
		MemoryContextReset(look_cxt);
		MemoryContextSwitchTo(look_cxt);
		done = look(what, deadline);
		MemoryContextSwitchTo(cxt);
		if (!done)
		{
			SPI_commit();
			MemoryContextSwitchTo(cxt);
			(void) util_wait(PGINVALID_SOCKET, LOOK_INTERVAL_MS, UTIL_WAIT_PIPELINE);
		}
	}
	SPI_finish();
}

/* ---- for a pipeline's state ---- */

typedef struct WantedState
{
	char	   *name;			/* of the pipeline */
	CatalogPipelineState state;
} WantedState;

/* One look: true when the state is reached; throws when it cannot be any more, or deadline has passed. */
static bool
look(const void *what, TimestampTz deadline)
{
	const WantedState *wanted = what;
	CatalogPipeline *pipeline = catalog_pipeline_by_name(wanted->name);

	if (pipeline == NULL || !api_may_see(pipeline))
		api_no_pipeline(wanted->name, NULL);
	if (is_reached(pipeline, wanted->state))
	{
		if (wanted->state == CATALOG_PIPELINE_SNAPSHOT || wanted->state == CATALOG_PIPELINE_STREAMING)
			warn_of_stopped_tables(pipeline);
		return true;
	}
	check_can_still_reach(pipeline, wanted->state);
	if (deadline != 0 && GetCurrentTimestamp() >= deadline)
		throw_timeout(pipeline, wanted->state);
	return false;
}

Datum
cdc_wait_for_pipeline(PG_FUNCTION_ARGS)
{
	WantedState wanted;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("pipeline name and state must not be null")));
	api_wait_begin(fcinfo, "cdc_wait_for_pipeline");
	wanted.name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	wanted.state = state_arg(text_to_cstring(PG_GETARG_TEXT_PP(1)));
	api_wait_until(fcinfo, 2, look, &wanted);
	PG_RETURN_VOID();
}
