/*-------------------------------------------------------------------------
 *
 * catalog_verify.c
 *	  Rows of cdc_bridge.verify_request, verify_table and verify_difference.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "catalog/catalog_heap.h"
#include "catalog/catalog_verify.h"
#include "compat/pg_compat.h"
#include "util/util_name.h"

static const char *const state_names[] = {
	[CATALOG_VERIFY_QUEUED] = "queued",
	[CATALOG_VERIFY_RUNNING] = "running",
	[CATALOG_VERIFY_DONE] = "done",
	[CATALOG_VERIFY_SKIPPED] = "skipped",
	[CATALOG_VERIFY_FAILED] = "failed",
	[CATALOG_VERIFY_CANCELLED] = "cancelled"
};

const char *
catalog_verify_state_name(CatalogVerifyState state)
{
	return state_names[state];
}

static CatalogVerifyState
get_state(HeapTuple tuple, TupleDesc desc, int attnum)
{
	return (CatalogVerifyState) catalog_get_word(tuple, desc, attnum, state_names, lengthof(state_names));
}

static bool
state_is_open(CatalogVerifyState state)
{
	return state == CATALOG_VERIFY_QUEUED || state == CATALOG_VERIFY_RUNNING;
}

/* Scan keys for the leading columns of the primary keys here: pipeline, request, table. */
static void
begin_scan(CatalogScan *scan, CatalogRelation which, LOCKMODE mode,
		   int32 pipeline_id, const int64 *request, const int32 *table_id)
{
	ScanKeyData keys[3];
	int			n = 0;

	ScanKeyInit(&keys[n++], 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(pipeline_id));
	if (request != NULL)
		ScanKeyInit(&keys[n++], 2, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(*request));
	if (table_id != NULL)
		ScanKeyInit(&keys[n++], 3, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(*table_id));
	catalog_scan_begin_keys(scan, which, mode, NULL, n, keys);
}

static void
delete_rows(CatalogRelation which, int32 pipeline_id, const int64 *request, const int32 *table_id)
{
	CatalogScan scan;
	HeapTuple	tuple;

	begin_scan(&scan, which, RowExclusiveLock, pipeline_id, request, table_id);
	while (HeapTupleIsValid(tuple = catalog_scan_next(&scan)))
	{
		CHECK_FOR_INTERRUPTS();
		catalog_tuple_delete(scan.rel, tuple);
	}
	catalog_scan_end(&scan);
}

/* ---- requests ---- */

static CatalogVerify *
verify_from_tuple(HeapTuple tuple, TupleDesc desc)
{
	CatalogVerify *verify = palloc0(sizeof(CatalogVerify));

	verify->pipeline_id = catalog_get_int32(tuple, desc, Anum_verify_request_pipeline_id);
	verify->request = catalog_get_int64(tuple, desc, Anum_verify_request_request);
	verify->tables = catalog_get_list(tuple, desc, Anum_verify_request_tables);
	verify->mode = catalog_get_text(tuple, desc, Anum_verify_request_mode);
	verify->state = get_state(tuple, desc, Anum_verify_request_state);
	verify->requested_by = catalog_get_oid(tuple, desc, Anum_verify_request_requested_by);
	verify->requested_at = catalog_get_time(tuple, desc, Anum_verify_request_requested_at);
	verify->started_at = catalog_get_time(tuple, desc, Anum_verify_request_started_at);
	verify->finished_at = catalog_get_time(tuple, desc, Anum_verify_request_finished_at);
	verify->attempts = catalog_get_int32(tuple, desc, Anum_verify_request_attempts);
	catalog_get_error(tuple, desc, Anum_verify_request_last_error, &verify->last_error);
	return verify;
}

void
catalog_verify_insert(CatalogVerify *verify)
{
	Datum		values[Natts_verify_request] = {0};
	bool		nulls[Natts_verify_request];
	Relation	rel;

	verify->request = catalog_next_id("verify_request_seq");
	verify->state = CATALOG_VERIFY_QUEUED;
	verify->requested_at = GetCurrentTimestamp();

	memset(nulls, true, sizeof(nulls));
	values[Anum_verify_request_pipeline_id - 1] = Int32GetDatum(verify->pipeline_id);
	nulls[Anum_verify_request_pipeline_id - 1] = false;
	values[Anum_verify_request_request - 1] = Int64GetDatum(verify->request);
	nulls[Anum_verify_request_request - 1] = false;
	if (verify->tables != NIL)
	{
		values[Anum_verify_request_tables - 1] = util_text_array(verify->tables);
		nulls[Anum_verify_request_tables - 1] = false;
	}
	catalog_set_text(values, nulls, Anum_verify_request_mode, verify->mode);
	catalog_set_text(values, nulls, Anum_verify_request_state, state_names[verify->state]);
	values[Anum_verify_request_requested_by - 1] = ObjectIdGetDatum(verify->requested_by);
	nulls[Anum_verify_request_requested_by - 1] = false;
	values[Anum_verify_request_requested_at - 1] = TimestampTzGetDatum(verify->requested_at);
	nulls[Anum_verify_request_requested_at - 1] = false;
	values[Anum_verify_request_attempts - 1] = Int32GetDatum(0);
	nulls[Anum_verify_request_attempts - 1] = false;

	rel = table_open(catalog_relation_oid(CATALOG_REL_VERIFY_REQUEST), RowExclusiveLock);
	catalog_tuple_insert(rel, values, nulls);
	table_close(rel, NoLock);
}

List *
catalog_verify_list(int32 pipeline_id)
{
	CatalogScan scan;
	HeapTuple	tuple;
	List	   *result = NIL;

	catalog_scan_begin_ordered(&scan, CATALOG_REL_VERIFY_REQUEST, AccessShareLock, 1, &pipeline_id);
	while (HeapTupleIsValid(tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection)))
		result = lappend(result, verify_from_tuple(tuple, RelationGetDescr(scan.rel)));
	catalog_scan_end(&scan);
	return result;
}

CatalogVerify *
catalog_verify_by_number(int64 request)
{
	CatalogScan scan;
	ScanKeyData key;
	HeapTuple	tuple;
	CatalogVerify *result = NULL;

	ScanKeyInit(&key, Anum_verify_request_request, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(request));
	catalog_scan_begin_keys(&scan, CATALOG_REL_VERIFY_REQUEST, AccessShareLock, "verify_request_request_key", 1, &key);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
		result = verify_from_tuple(tuple, RelationGetDescr(scan.rel));
	catalog_scan_end(&scan);
	return result;
}

CatalogVerify *
catalog_verify_open(int32 pipeline_id)
{
	ListCell   *lc;

	foreach(lc, catalog_verify_list(pipeline_id))
	{
		CatalogVerify *verify = lfirst(lc);

		if (state_is_open(verify->state))
			return verify;
	}
	return NULL;
}

/* Write the columns of a request for which replaces is set; false when it is gone or finished. */
static bool
update_open(int32 pipeline_id, int64 request, Datum *values, bool *nulls, bool *replaces, bool count_attempt)
{
	CatalogScan scan;
	HeapTuple	tuple;
	bool		is_due;

	catalog_lock_state(pipeline_id);
	begin_scan(&scan, CATALOG_REL_VERIFY_REQUEST, RowExclusiveLock, pipeline_id, &request, NULL);
	tuple = catalog_scan_next(&scan);
	is_due = HeapTupleIsValid(tuple) &&
		state_is_open(get_state(tuple, RelationGetDescr(scan.rel), Anum_verify_request_state));
	if (is_due)
	{
		TupleDesc	desc = RelationGetDescr(scan.rel);

		if (count_attempt)
		{
			values[Anum_verify_request_attempts - 1] =
				Int32GetDatum(catalog_get_int32(tuple, desc, Anum_verify_request_attempts) + 1);
			replaces[Anum_verify_request_attempts - 1] = true;
			if (catalog_get_time(tuple, desc, Anum_verify_request_started_at) == 0)
			{
				values[Anum_verify_request_started_at - 1] = TimestampTzGetDatum(GetCurrentTimestamp());
				replaces[Anum_verify_request_started_at - 1] = true;
			}
		}
		catalog_tuple_update(scan.rel, tuple, values, nulls, replaces);
	}
	catalog_scan_end(&scan);
	return is_due;
}

bool
catalog_verify_set_state(int32 pipeline_id, int64 request, CatalogVerifyState state, const UtilErrorInfo *error)
{
	Datum		values[Natts_verify_request] = {0};
	bool		nulls[Natts_verify_request] = {0};
	bool		replaces[Natts_verify_request] = {0};

	catalog_set_text(values, nulls, Anum_verify_request_state, state_names[state]);
	replaces[Anum_verify_request_state - 1] = true;
	if (!state_is_open(state))
	{
		values[Anum_verify_request_finished_at - 1] = TimestampTzGetDatum(GetCurrentTimestamp());
		replaces[Anum_verify_request_finished_at - 1] = true;
	}
	if (error != NULL)
	{
		catalog_set_error(values, nulls, Anum_verify_request_last_error, error);
		for (int i = 0; i < 4; i++)
			replaces[Anum_verify_request_last_error - 1 + i] = true;
	}
	return update_open(pipeline_id, request, values, nulls, replaces, state == CATALOG_VERIFY_RUNNING);
}

void
catalog_verify_forget_attempts(int32 pipeline_id, int64 request)
{
	Datum		values[Natts_verify_request] = {0};
	bool		nulls[Natts_verify_request] = {0};
	bool		replaces[Natts_verify_request] = {0};

	values[Anum_verify_request_attempts - 1] = Int32GetDatum(1);
	replaces[Anum_verify_request_attempts - 1] = true;
	(void) update_open(pipeline_id, request, values, nulls, replaces, false);
}

void
catalog_verify_prune(int32 pipeline_id)
{
	List	   *requests = catalog_verify_list(pipeline_id);
	int			newer = 0;

	catalog_lock_state(pipeline_id);
	for (int i = list_length(requests) - 1; i >= 0; i--)
	{
		const CatalogVerify *verify = list_nth(requests, i);

		if (state_is_open(verify->state) || ++newer <= CATALOG_VERIFY_KEPT)
			continue;
		delete_rows(CATALOG_REL_VERIFY_DIFFERENCE, pipeline_id, &verify->request, NULL);
		delete_rows(CATALOG_REL_VERIFY_TABLE, pipeline_id, &verify->request, NULL);
		delete_rows(CATALOG_REL_VERIFY_REQUEST, pipeline_id, &verify->request, NULL);
	}
}

/* The caller holds the pipeline's lock. */
void
catalog_verify_delete(int32 pipeline_id)
{
	delete_rows(CATALOG_REL_VERIFY_DIFFERENCE, pipeline_id, NULL, NULL);
	delete_rows(CATALOG_REL_VERIFY_TABLE, pipeline_id, NULL, NULL);
	delete_rows(CATALOG_REL_VERIFY_REQUEST, pipeline_id, NULL, NULL);
}

/* ---- tables of a request ---- */

static CatalogVerifyTable *
table_from_tuple(HeapTuple tuple, TupleDesc desc)
{
	CatalogVerifyTable *table = palloc0(sizeof(CatalogVerifyTable));

	table->pipeline_id = catalog_get_int32(tuple, desc, Anum_verify_table_pipeline_id);
	table->request = catalog_get_int64(tuple, desc, Anum_verify_table_request);
	table->table_id = catalog_get_int32(tuple, desc, Anum_verify_table_table_id);
	table->source_schema = catalog_get_text(tuple, desc, Anum_verify_table_source_schema);
	table->source_table = catalog_get_text(tuple, desc, Anum_verify_table_source_table);
	table->target_schema = catalog_get_text(tuple, desc, Anum_verify_table_target_schema);
	table->target_table = catalog_get_text(tuple, desc, Anum_verify_table_target_table);
	table->state = get_state(tuple, desc, Anum_verify_table_state);
	table->reason = catalog_get_text(tuple, desc, Anum_verify_table_reason);
	table->rows_source = catalog_get_int64(tuple, desc, Anum_verify_table_rows_source);
	table->rows_target = catalog_get_int64(tuple, desc, Anum_verify_table_rows_target);
	table->missing = catalog_get_int64(tuple, desc, Anum_verify_table_missing);
	table->extra = catalog_get_int64(tuple, desc, Anum_verify_table_extra);
	table->different = catalog_get_int64(tuple, desc, Anum_verify_table_different);
	table->unsettled = catalog_get_int64(tuple, desc, Anum_verify_table_unsettled);
	table->chunks = catalog_get_int32(tuple, desc, Anum_verify_table_chunks);
	table->chunks_by_sum = catalog_get_int32(tuple, desc, Anum_verify_table_chunks_by_sum);
	table->rows_read = catalog_get_int64(tuple, desc, Anum_verify_table_rows_read);
	table->method = catalog_get_text(tuple, desc, Anum_verify_table_method);
	catalog_get_position(tuple, desc, Anum_verify_table_position_file, &table->position);
	table->started_at = catalog_get_time(tuple, desc, Anum_verify_table_started_at);
	table->finished_at = catalog_get_time(tuple, desc, Anum_verify_table_finished_at);
	return table;
}

List *
catalog_verify_tables(int32 pipeline_id, int64 request)
{
	CatalogScan scan;
	HeapTuple	tuple;
	List	   *result = NIL;

	begin_scan(&scan, CATALOG_REL_VERIFY_TABLE, AccessShareLock, pipeline_id, &request, NULL);
	while (HeapTupleIsValid(tuple = catalog_scan_next(&scan)))
		result = lappend(result, table_from_tuple(tuple, RelationGetDescr(scan.rel)));
	catalog_scan_end(&scan);
	return result;
}

static void
fill_table(const CatalogVerifyTable *table, Datum *values, bool *nulls)
{
	values[Anum_verify_table_pipeline_id - 1] = Int32GetDatum(table->pipeline_id);
	values[Anum_verify_table_request - 1] = Int64GetDatum(table->request);
	values[Anum_verify_table_table_id - 1] = Int32GetDatum(table->table_id);
	catalog_set_text(values, nulls, Anum_verify_table_source_schema, table->source_schema);
	catalog_set_text(values, nulls, Anum_verify_table_source_table, table->source_table);
	catalog_set_text(values, nulls, Anum_verify_table_target_schema, table->target_schema);
	catalog_set_text(values, nulls, Anum_verify_table_target_table, table->target_table);
	catalog_set_text(values, nulls, Anum_verify_table_state, state_names[table->state]);
	catalog_set_text(values, nulls, Anum_verify_table_reason, table->reason);
	values[Anum_verify_table_rows_source - 1] = Int64GetDatum(table->rows_source);
	values[Anum_verify_table_rows_target - 1] = Int64GetDatum(table->rows_target);
	values[Anum_verify_table_missing - 1] = Int64GetDatum(table->missing);
	values[Anum_verify_table_extra - 1] = Int64GetDatum(table->extra);
	values[Anum_verify_table_different - 1] = Int64GetDatum(table->different);
	values[Anum_verify_table_unsettled - 1] = Int64GetDatum(table->unsettled);
	values[Anum_verify_table_chunks - 1] = Int32GetDatum(table->chunks);
	values[Anum_verify_table_chunks_by_sum - 1] = Int32GetDatum(table->chunks_by_sum);
	values[Anum_verify_table_rows_read - 1] = Int64GetDatum(table->rows_read);
	catalog_set_text(values, nulls, Anum_verify_table_method, table->method);
	catalog_set_position(values, nulls, Anum_verify_table_position_file, &table->position);
	values[Anum_verify_table_started_at - 1] = TimestampTzGetDatum(table->started_at);
	nulls[Anum_verify_table_started_at - 1] = table->started_at == 0;
	values[Anum_verify_table_finished_at - 1] = TimestampTzGetDatum(table->finished_at);
	nulls[Anum_verify_table_finished_at - 1] = table->finished_at == 0;
}

void
catalog_verify_table_insert(const CatalogVerifyTable *table)
{
	Datum		values[Natts_verify_table] = {0};
	bool		nulls[Natts_verify_table] = {0};
	Relation	rel;

	fill_table(table, values, nulls);
	rel = table_open(catalog_relation_oid(CATALOG_REL_VERIFY_TABLE), RowExclusiveLock);
	catalog_tuple_insert(rel, values, nulls);
	table_close(rel, NoLock);
}

void
catalog_verify_table_update(const CatalogVerifyTable *table)
{
	Datum		values[Natts_verify_table] = {0};
	bool		nulls[Natts_verify_table] = {0};
	bool		replaces[Natts_verify_table] = {0};
	CatalogScan scan;
	HeapTuple	tuple;

	fill_table(table, values, nulls);
	for (int i = Anum_verify_table_state; i <= Natts_verify_table; i++)
		replaces[i - 1] = true;
	begin_scan(&scan, CATALOG_REL_VERIFY_TABLE, RowExclusiveLock, table->pipeline_id, &table->request, &table->table_id);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
		catalog_tuple_update(scan.rel, tuple, values, nulls, replaces);
	catalog_scan_end(&scan);
}

/* ---- differences ---- */

void
catalog_verify_difference_insert(const CatalogVerifyDifference *difference)
{
	Datum		values[Natts_verify_difference] = {0};
	bool		nulls[Natts_verify_difference] = {0};
	Relation	rel;

	values[Anum_verify_difference_pipeline_id - 1] = Int32GetDatum(difference->pipeline_id);
	values[Anum_verify_difference_request - 1] = Int64GetDatum(difference->request);
	values[Anum_verify_difference_table_id - 1] = Int32GetDatum(difference->table_id);
	values[Anum_verify_difference_number - 1] = Int64GetDatum(difference->number);
	catalog_set_text(values, nulls, Anum_verify_difference_kind, difference->kind);
	values[Anum_verify_difference_key - 1] = util_text_array(difference->key);
	values[Anum_verify_difference_columns - 1] = util_text_array(difference->columns);
	nulls[Anum_verify_difference_columns - 1] = difference->columns == NIL;
	values[Anum_verify_difference_rows - 1] = Int64GetDatum(difference->rows);

	rel = table_open(catalog_relation_oid(CATALOG_REL_VERIFY_DIFFERENCE), RowExclusiveLock);
	catalog_tuple_insert(rel, values, nulls);
	table_close(rel, NoLock);
}

List *
catalog_verify_differences(int32 pipeline_id, int64 request)
{
	CatalogScan scan;
	HeapTuple	tuple;
	List	   *result = NIL;

	begin_scan(&scan, CATALOG_REL_VERIFY_DIFFERENCE, AccessShareLock, pipeline_id, &request, NULL);
	while (HeapTupleIsValid(tuple = catalog_scan_next(&scan)))
	{
		TupleDesc	desc = RelationGetDescr(scan.rel);
		CatalogVerifyDifference *difference = palloc0(sizeof(CatalogVerifyDifference));

		difference->pipeline_id = pipeline_id;
		difference->request = request;
		difference->table_id = catalog_get_int32(tuple, desc, Anum_verify_difference_table_id);
		difference->number = catalog_get_int64(tuple, desc, Anum_verify_difference_number);
		difference->rows = catalog_get_int64(tuple, desc, Anum_verify_difference_rows);
		difference->kind = catalog_get_text(tuple, desc, Anum_verify_difference_kind);
		difference->key = catalog_get_list(tuple, desc, Anum_verify_difference_key);
		difference->columns = catalog_get_list(tuple, desc, Anum_verify_difference_columns);
		result = lappend(result, difference);
	}
	catalog_scan_end(&scan);
	return result;
}

void
catalog_verify_differences_delete(int32 pipeline_id, int64 request, int32 table_id)
{
	delete_rows(CATALOG_REL_VERIFY_DIFFERENCE, pipeline_id, &request, &table_id);
}
