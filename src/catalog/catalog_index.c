/*-------------------------------------------------------------------------
 *
 * catalog_index.c
 *	  Rows of cdc_bridge.target_index: what becomes of a source table's indexes.
 *
 * NOTES
 *	  Planned when a target is made, worked off by the process that builds
 *	  (snapshot/), reset by cdc_start_pipeline: writers take the pipeline's state
 *	  lock first.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "utils/builtins.h"

#include "catalog/catalog_heap.h"
#include "compat/pg_compat.h"

static const char *const state_names[] = {
	[CATALOG_INDEX_WANTED] = "wanted",
	[CATALOG_INDEX_BUILDING] = "building",
	[CATALOG_INDEX_BUILT] = "built",
	[CATALOG_INDEX_LEFT_OUT] = "left_out",
	[CATALOG_INDEX_FAILED] = "failed"
};

const char *
catalog_index_state_name(CatalogTargetIndexState state)
{
	return state_names[state];
}

static CatalogTargetIndexState
get_state(HeapTuple tuple, TupleDesc desc, int attnum)
{
	return (CatalogTargetIndexState) catalog_get_word(tuple, desc, attnum, state_names, lengthof(state_names));
}

static CatalogIndex *
index_from_tuple(HeapTuple tuple, TupleDesc desc)
{
	CatalogIndex *index = palloc0(sizeof(CatalogIndex));

	index->pipeline_id = catalog_get_int32(tuple, desc, Anum_target_index_pipeline_id);
	index->table_id = catalog_get_int32(tuple, desc, Anum_target_index_table_id);
	index->index_no = catalog_get_int32(tuple, desc, Anum_target_index_index_no);
	index->source_index = catalog_get_text(tuple, desc, Anum_target_index_source_index);
	index->is_unique = catalog_get_bool(tuple, desc, Anum_target_index_is_unique);
	index->target_index = catalog_get_text(tuple, desc, Anum_target_index_target_index);
	index->statement = catalog_get_text(tuple, desc, Anum_target_index_statement);
	index->state = get_state(tuple, desc, Anum_target_index_state);
	index->reason = catalog_get_text(tuple, desc, Anum_target_index_reason);
	catalog_get_error(tuple, desc, Anum_target_index_last_error, &index->last_error);
	index->started_at = catalog_get_time(tuple, desc, Anum_target_index_started_at);
	index->finished_at = catalog_get_time(tuple, desc, Anum_target_index_finished_at);
	return index;
}

static List *
read_indexes(int nkeys, const int32 *keys)
{
	CatalogScan scan;
	HeapTuple	tuple;
	List	   *result = NIL;

	catalog_scan_begin_ordered(&scan, CATALOG_REL_TARGET_INDEX, AccessShareLock, nkeys, keys);
	while (HeapTupleIsValid(tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection)))
		result = lappend(result, index_from_tuple(tuple, RelationGetDescr(scan.rel)));
	catalog_scan_end(&scan);
	return result;
}

List *
catalog_index_list(int32 pipeline_id)
{
	return read_indexes(1, &pipeline_id);
}

List *
catalog_index_list_of(int32 pipeline_id, int32 table_id)
{
	int32		keys[] = {pipeline_id, table_id};

	return read_indexes(2, keys);
}

CatalogIndex *
catalog_index_by_no(int32 pipeline_id, int32 table_id, int32 index_no)
{
	int32		keys[] = {pipeline_id, table_id, index_no};
	List	   *indexes = read_indexes(3, keys);

	return indexes == NIL ? NULL : linitial(indexes);
}

void
catalog_index_insert(const CatalogIndex *index)
{
	Datum		values[Natts_target_index] = {0};
	bool		nulls[Natts_target_index] = {0};
	Relation	rel;

	catalog_lock_state(index->pipeline_id);
	values[Anum_target_index_pipeline_id - 1] = Int32GetDatum(index->pipeline_id);
	values[Anum_target_index_table_id - 1] = Int32GetDatum(index->table_id);
	values[Anum_target_index_index_no - 1] = Int32GetDatum(index->index_no);
	catalog_set_text(values, nulls, Anum_target_index_source_index, index->source_index);
	values[Anum_target_index_is_unique - 1] = BoolGetDatum(index->is_unique);
	catalog_set_text(values, nulls, Anum_target_index_target_index, index->target_index);
	catalog_set_text(values, nulls, Anum_target_index_statement, index->statement);
	catalog_set_text(values, nulls, Anum_target_index_state, state_names[index->state]);
	catalog_set_text(values, nulls, Anum_target_index_reason, index->reason);
	catalog_set_error(values, nulls, Anum_target_index_last_error, NULL);
	nulls[Anum_target_index_started_at - 1] = true;
	nulls[Anum_target_index_finished_at - 1] = true;

	rel = table_open(catalog_relation_oid(CATALOG_REL_TARGET_INDEX), RowExclusiveLock);
	catalog_tuple_insert(rel, values, nulls);
	table_close(rel, NoLock);
}

void
catalog_index_delete(int32 pipeline_id, int32 table_id)
{
	int32		keys[] = {pipeline_id, table_id};

	catalog_lock_state(pipeline_id);
	catalog_delete_rows(CATALOG_REL_TARGET_INDEX, 2, keys);
}

void
catalog_index_delete_one(const CatalogIndex *index)
{
	int32		keys[] = {index->pipeline_id, index->table_id, index->index_no};

	catalog_lock_state(index->pipeline_id);
	catalog_delete_rows(CATALOG_REL_TARGET_INDEX, 3, keys);
}

bool
catalog_index_set_state(const CatalogIndex *index, const UtilErrorInfo *error)
{
	int32		keys[] = {index->pipeline_id, index->table_id, index->index_no};
	Datum		values[Natts_target_index] = {0};
	bool		nulls[Natts_target_index] = {0};
	bool		replaces[Natts_target_index] = {0};
	Datum		now = TimestampTzGetDatum(GetCurrentTimestamp());
	bool		ended = index->state == CATALOG_INDEX_BUILT || index->state == CATALOG_INDEX_FAILED;
	CatalogScan scan;
	HeapTuple	tuple;
	bool		found;

	catalog_lock_state(index->pipeline_id);
	catalog_scan_begin(&scan, CATALOG_REL_TARGET_INDEX, RowExclusiveLock, 3, keys);
	tuple = catalog_scan_next(&scan);
	found = HeapTupleIsValid(tuple);
	if (found)
	{
		catalog_set_text(values, nulls, Anum_target_index_target_index, index->target_index);
		catalog_set_text(values, nulls, Anum_target_index_statement, index->statement);
		catalog_set_text(values, nulls, Anum_target_index_state, state_names[index->state]);
		catalog_set_error(values, nulls, Anum_target_index_last_error, error);
		for (int i = Anum_target_index_last_error; i <= Anum_target_index_last_error_hint; i++)
			replaces[i - 1] = true;
		replaces[Anum_target_index_target_index - 1] = true;
		replaces[Anum_target_index_statement - 1] = true;
		replaces[Anum_target_index_state - 1] = true;
		values[Anum_target_index_started_at - 1] = now;
		replaces[Anum_target_index_started_at - 1] = index->state == CATALOG_INDEX_BUILDING;
		values[Anum_target_index_finished_at - 1] = now;
		nulls[Anum_target_index_finished_at - 1] = !ended;
		replaces[Anum_target_index_finished_at - 1] = true;
		catalog_tuple_update(scan.rel, tuple, values, nulls, replaces);
	}
	catalog_scan_end(&scan);
	return found;
}

void
catalog_index_retry(int32 pipeline_id)
{
	ListCell   *lc;

	foreach(lc, catalog_index_list(pipeline_id))
	{
		CatalogIndex *index = lfirst(lc);

		if (index->state != CATALOG_INDEX_FAILED)
			continue;
		index->state = CATALOG_INDEX_WANTED;
		(void) catalog_index_set_state(index, NULL);
	}
}
