/*-------------------------------------------------------------------------
 *
 * api_dead_letter.c
 *	  cdc_replay_dead_letters, cdc_discard_dead_letters and the functions behind
 *	  cdc_dead_letters and cdc_dead_letter_requests.
 *
 * NOTES
 *	  The first two only write a request; the pipeline's ingest worker does it
 *	  after the commit. A letter holds values of rows: it is shown to those who may
 *	  act for the pipeline's owner, not to whoever may watch. A request holds none.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "api/api.h"
#include "api/api_row.h"
#include "catalog/catalog_dead_letter.h"
#include "pipeline/shmem.h"

PG_FUNCTION_INFO_V1(cdc_replay_dead_letters);
PG_FUNCTION_INFO_V1(cdc_discard_dead_letters);
PG_FUNCTION_INFO_V1(cdc_stat_dead_letter);
PG_FUNCTION_INFO_V1(cdc_stat_dead_letter_request);

/* More numbers than that are better told by tables. */
#define IDS_MAX 10000

static int64
ask(FunctionCallInfo fcinfo, const char *function, bool discards)
{
	CatalogLetterRequest request = {.discards = discards};
	CatalogPipeline *pipeline;
	ListCell   *lc;

	PreventCommandIfReadOnly(function);
	pipeline = api_lock_pipeline(fcinfo);
	request.pipeline_id = pipeline->id;
	request.tables = api_list_arg(fcinfo, 1, TEXTOID, "tables");
	request.ids = api_list_arg(fcinfo, 2, INT8OID, "ids");
	if (list_length(request.ids) > IDS_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("more than %d numbers of dead letters are given", IDS_MAX),
				 errhint("Name tables instead, or ask several times.")));
	request.reason = discards ? api_text_arg(fcinfo, 3) : NULL;
	if (discards && request.reason == NULL)
		request.reason = psprintf("given up by %s", GetUserNameFromId(GetUserId(), false));
	request.requested_by = GetUserId();
	foreach(lc, request.tables)
		api_check_table_pattern(lfirst(lc), false);
	catalog_letter_request_insert(&request);
	if (!pipeline->enabled || pipeline->state == CATALOG_PIPELINE_FAILED)
		ereport(NOTICE,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("request " INT64_FORMAT " waits until pipeline \"%s\" runs", request.request, pipeline->name),
				 errhint("Start it with cdc_start_pipeline().")));
	if (shmem_is_available())
		shmem_wake_at_commit();
	return request.request;
}

Datum
cdc_replay_dead_letters(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(ask(fcinfo, "cdc_replay_dead_letters()", false));
}

Datum
cdc_discard_dead_letters(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(ask(fcinfo, "cdc_discard_dead_letters()", true));
}

/* ---- views ---- */

typedef struct LetterRows
{
	ReturnSetInfo *rsinfo;
	const CatalogPipeline *pipeline;
} LetterRows;

static void
put_letter(void *arg, const CatalogDeadLetter *letter)
{
	const LetterRows *rows = arg;
	Row			row = {0};

	put_text(&row, rows->pipeline->name);
	put_int64(&row, letter->id);
	put_text(&row, letter->source_schema);
	put_text(&row, letter->source_table);
	put_text(&row, catalog_letter_state_name(letter->state));
	put_position(&row, &letter->position);
	put_text(&row, letter->gtid);
	put_datum(&row, Int64GetDatum(letter->action), letter->action == 0);
	put_text(&row, letter->operation);
	put_datum(&row, letter->before, letter->before == (Datum) 0);
	put_datum(&row, letter->after, letter->after == (Datum) 0);
	put_error(&row, &letter->shown_error);
	put_time(&row, letter->changed_at);
	put_time(&row, letter->created_at);
	put_int32(&row, letter->attempts);
	put_time(&row, letter->last_attempt_at);
	put_time(&row, letter->settled_at);
	put_text(&row, letter->reason);
	put_datum(&row, Int64GetDatum(letter->request), letter->request == 0);
	put_row(rows->rsinfo, &row);
}

static void
put_letters(ReturnSetInfo *rsinfo, const CatalogPipeline *pipeline)
{
	LetterRows	rows = {rsinfo, pipeline};

	if (has_privs_of_role(GetUserId(), pipeline->owner))
		catalog_dead_letter_each(pipeline->id, put_letter, &rows);
}

Datum
cdc_stat_dead_letter(PG_FUNCTION_ARGS)
{
	return put_pipelines(fcinfo, put_letters);
}

static void
put_requests(ReturnSetInfo *rsinfo, const CatalogPipeline *pipeline)
{
	ListCell   *lc;

	foreach(lc, catalog_letter_request_list(pipeline->id))
	{
		const CatalogLetterRequest *request = lfirst(lc);
		Row			row = {0};

		put_text(&row, pipeline->name);
		put_int64(&row, request->request);
		put_text(&row, request->discards ? "discard" : "replay");
		put_list(&row, request->tables, request->tables != NIL);
		put_list(&row, request->ids, request->ids != NIL);
		put_text(&row, request->reason);
		put_text(&row, catalog_letter_request_state_name(request->state));
		put_int64(&row, request->settled);
		put_int64(&row, request->failed);
		put_int64(&row, request->left_alone);
		put_datum(&row, ObjectIdGetDatum(request->requested_by), false);
		put_time(&row, request->requested_at);
		put_time(&row, request->started_at);
		put_time(&row, request->finished_at);
		put_row(rsinfo, &row);
	}
}

Datum
cdc_stat_dead_letter_request(PG_FUNCTION_ARGS)
{
	return put_pipelines(fcinfo, put_requests);
}
