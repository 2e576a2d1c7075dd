/*-------------------------------------------------------------------------
 *
 * catalog_letter_request.c
 *	  Rows of cdc_bridge.dead_letter_request: dead letters that are to be applied
 *	  again, or given up.
 *
 * NOTES
 *	  Written by SQL functions, carried out by the ingest or export worker, in the order of
 *	  their numbers. How far one is stands in its row, in the transaction of the
 *	  letters themselves; so after a crash the next worker goes on there.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "utils/builtins.h"

#include "catalog/catalog_dead_letter.h"
#include "catalog/catalog_heap.h"
#include "util/util_name.h"
#include "util/util_pattern.h"

/* Workers that may end with a request at the same place. */
#define ATTEMPTS_MAX 5

static const char *const state_names[] = {
	[CATALOG_LETTER_REQUEST_QUEUED] = "queued",
	[CATALOG_LETTER_REQUEST_RUNNING] = "running",
	[CATALOG_LETTER_REQUEST_DONE] = "done",
	[CATALOG_LETTER_REQUEST_FAILED] = "failed"
};

static const char *const kind_names[] = {"replay", "discard"};

const char *
catalog_letter_request_state_name(CatalogLetterRequestState state)
{
	return state_names[state];
}

static bool
is_open(const CatalogLetterRequest *request)
{
	return request->state == CATALOG_LETTER_REQUEST_QUEUED || request->state == CATALOG_LETTER_REQUEST_RUNNING;
}

static CatalogLetterRequest *
request_from_tuple(HeapTuple tuple, TupleDesc desc)
{
	CatalogLetterRequest *request = palloc0(sizeof(CatalogLetterRequest));

	request->pipeline_id = catalog_get_int32(tuple, desc, Anum_dead_letter_request_pipeline_id);
	request->request = catalog_get_int64(tuple, desc, Anum_dead_letter_request_request);
	request->discards = catalog_get_word(tuple, desc, Anum_dead_letter_request_kind, kind_names, lengthof(kind_names)) == 1;
	request->tables = catalog_get_list(tuple, desc, Anum_dead_letter_request_tables);
	request->ids = catalog_get_list(tuple, desc, Anum_dead_letter_request_ids);
	request->reason = catalog_get_text(tuple, desc, Anum_dead_letter_request_reason);
	request->state = (CatalogLetterRequestState) catalog_get_word(tuple, desc, Anum_dead_letter_request_state, state_names, lengthof(state_names));
	request->requested_by = catalog_get_oid(tuple, desc, Anum_dead_letter_request_requested_by);
	request->requested_at = catalog_get_time(tuple, desc, Anum_dead_letter_request_requested_at);
	request->started_at = catalog_get_time(tuple, desc, Anum_dead_letter_request_started_at);
	request->finished_at = catalog_get_time(tuple, desc, Anum_dead_letter_request_finished_at);
	request->last_id = catalog_get_int64(tuple, desc, Anum_dead_letter_request_last_id);
	request->attempts = catalog_get_int32(tuple, desc, Anum_dead_letter_request_attempts);
	request->settled = catalog_get_int64(tuple, desc, Anum_dead_letter_request_settled);
	request->failed = catalog_get_int64(tuple, desc, Anum_dead_letter_request_failed);
	request->left_alone = catalog_get_int64(tuple, desc, Anum_dead_letter_request_left_alone);
	return request;
}

static void
fill(const CatalogLetterRequest *request, Datum *values, bool *nulls)
{
	values[Anum_dead_letter_request_pipeline_id - 1] = Int32GetDatum(request->pipeline_id);
	values[Anum_dead_letter_request_request - 1] = Int64GetDatum(request->request);
	catalog_set_text(values, nulls, Anum_dead_letter_request_kind, kind_names[request->discards]);
	nulls[Anum_dead_letter_request_tables - 1] = request->tables == NIL;
	values[Anum_dead_letter_request_tables - 1] = util_text_array(request->tables);
	nulls[Anum_dead_letter_request_ids - 1] = request->ids == NIL;
	values[Anum_dead_letter_request_ids - 1] = util_text_array(request->ids);
	catalog_set_text(values, nulls, Anum_dead_letter_request_reason, request->reason);
	catalog_set_text(values, nulls, Anum_dead_letter_request_state, state_names[request->state]);
	values[Anum_dead_letter_request_requested_by - 1] = ObjectIdGetDatum(request->requested_by);
	values[Anum_dead_letter_request_requested_at - 1] = TimestampTzGetDatum(request->requested_at);
	nulls[Anum_dead_letter_request_started_at - 1] = request->started_at == 0;
	values[Anum_dead_letter_request_started_at - 1] = TimestampTzGetDatum(request->started_at);
	nulls[Anum_dead_letter_request_finished_at - 1] = request->finished_at == 0;
	values[Anum_dead_letter_request_finished_at - 1] = TimestampTzGetDatum(request->finished_at);
	values[Anum_dead_letter_request_last_id - 1] = Int64GetDatum(request->last_id);
	values[Anum_dead_letter_request_attempts - 1] = Int32GetDatum(request->attempts);
	values[Anum_dead_letter_request_settled - 1] = Int64GetDatum(request->settled);
	values[Anum_dead_letter_request_failed - 1] = Int64GetDatum(request->failed);
	values[Anum_dead_letter_request_left_alone - 1] = Int64GetDatum(request->left_alone);
}

void
catalog_letter_request_insert(CatalogLetterRequest *request)
{
	Datum		values[Natts_dead_letter_request] = {0};
	bool		nulls[Natts_dead_letter_request] = {0};
	Relation	rel;

	request->request = catalog_next_id("dead_letter_request_seq");
	request->state = CATALOG_LETTER_REQUEST_QUEUED;
	request->requested_at = GetCurrentTimestamp();
	fill(request, values, nulls);
	rel = table_open(catalog_relation_oid(CATALOG_REL_DEAD_LETTER_REQUEST), RowExclusiveLock);
	catalog_tuple_insert(rel, values, nulls);
	table_close(rel, NoLock);
}

List *
catalog_letter_request_list(int32 pipeline_id)
{
	CatalogScan scan;
	HeapTuple	tuple;
	List	   *result = NIL;

	catalog_scan_begin_ordered(&scan, CATALOG_REL_DEAD_LETTER_REQUEST, AccessShareLock, 1, &pipeline_id);
	while (HeapTupleIsValid(tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection)))
		result = lappend(result, request_from_tuple(tuple, RelationGetDescr(scan.rel)));
	catalog_scan_end(&scan);
	return result;
}

CatalogLetterRequest *
catalog_letter_request_open(int32 pipeline_id)
{
	ListCell   *lc;

	foreach(lc, catalog_letter_request_list(pipeline_id))
	{
		if (is_open(lfirst(lc)))
			return lfirst(lc);
	}
	return NULL;
}

/* Write the row of a request, or (NULL) delete it. */
static void
put(int32 pipeline_id, int64 number, const CatalogLetterRequest *request)
{
	Datum		values[Natts_dead_letter_request] = {0};
	bool		nulls[Natts_dead_letter_request] = {0};
	bool		replaces[Natts_dead_letter_request] = {0};
	CatalogScan scan;
	HeapTuple	tuple;

	catalog_scan_begin(&scan, CATALOG_REL_DEAD_LETTER_REQUEST, RowExclusiveLock, 1, &pipeline_id);
	while (HeapTupleIsValid(tuple = catalog_scan_next(&scan)))
	{
		if (catalog_get_int64(tuple, RelationGetDescr(scan.rel), Anum_dead_letter_request_request) == number)
			break;
	}
	if (HeapTupleIsValid(tuple) && request == NULL)
		catalog_tuple_delete(scan.rel, tuple);
	else if (HeapTupleIsValid(tuple))
	{
		fill(request, values, nulls);
		for (int i = Anum_dead_letter_request_state; i <= Natts_dead_letter_request; i++)
			replaces[i - 1] = true;
		catalog_tuple_update(scan.rel, tuple, values, nulls, replaces);
	}
	catalog_scan_end(&scan);
}

void
catalog_letter_request_update(const CatalogLetterRequest *request)
{
	List	   *all;
	int			newer = 0;

	put(request->pipeline_id, request->request, request);
	if (is_open(request))
		return;
	all = catalog_letter_request_list(request->pipeline_id);
	for (int i = list_length(all) - 1; i >= 0; i--)
	{
		const CatalogLetterRequest *other = list_nth(all, i);

		if (!is_open(other) && ++newer > CATALOG_LETTER_REQUESTS_KEPT)
			put(other->pipeline_id, other->request, NULL);
	}
}

/* ---- work ---- */

bool
catalog_letter_request_means(const CatalogLetterRequest *request, const CatalogDeadLetter *letter)
{
	ListCell   *lc;
	bool		fits = request->ids == NIL;

	foreach(lc, request->ids)
		fits |= strtoll(lfirst(lc), NULL, 10) == letter->id;
	if (!fits || request->tables == NIL)
		return fits;
	foreach(lc, request->tables)
	{
		if (util_pattern_match(lfirst(lc), letter->source_schema, letter->source_table))
			return true;
	}
	return false;
}

void
catalog_letter_request_take_up(CatalogLetterRequest *request)
{
	if (request->state == CATALOG_LETTER_REQUEST_QUEUED)
		request->started_at = GetCurrentTimestamp();
	request->state = ++request->attempts > ATTEMPTS_MAX ? CATALOG_LETTER_REQUEST_FAILED : CATALOG_LETTER_REQUEST_RUNNING;
}

static void
say_end(const CatalogLetterRequest *request, const char *pipeline)
{
	if (request->state == CATALOG_LETTER_REQUEST_FAILED)
		ereport(LOG,
				(errmsg("request " INT64_FORMAT " of pipeline \"%s\" to replay dead letters is given up", request->request, pipeline),
				 errdetail("Workers ended with it %d times at the same place, before the dead letter after " INT64_FORMAT ".",
						   ATTEMPTS_MAX, request->last_id)));
	else if (request->state == CATALOG_LETTER_REQUEST_DONE)
		ereport(LOG,
				(errmsg("request " INT64_FORMAT " of pipeline \"%s\": " INT64_FORMAT " dead letters were %s, " INT64_FORMAT
						" failed again, " INT64_FORMAT " were left alone", request->request, pipeline,
						request->settled, request->discards ? "discarded" : "replayed", request->failed, request->left_alone)));
}

void
catalog_letter_request_worked(CatalogLetterRequest *request, const char *pipeline)
{
	if (!is_open(request))
		request->finished_at = GetCurrentTimestamp();
	catalog_letter_request_update(request);
	say_end(request, pipeline);
}
