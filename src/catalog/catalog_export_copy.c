/*-------------------------------------------------------------------------
 *
 * catalog_export_copy.c
 *	  Rows of cdc_bridge.export_table and cdc_bridge.export_chunk.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/pg_lsn.h"

#include "catalog/catalog_export_copy.h"
#include "catalog/catalog_heap.h"
#include "util/util_name.h"
#include "util/util_pattern.h"

static const char *const state_names[] = {
	[CATALOG_EXPORT_SNAPSHOT] = "snapshot",
	[CATALOG_EXPORT_STREAMING] = "streaming",
	[CATALOG_EXPORT_STOPPED] = "stopped",
	[CATALOG_EXPORT_REMOVED] = "removed"
};

static const char *const kind_names[] = {
	[CATALOG_EXPORT_RANGE] = "range",
	[CATALOG_EXPORT_ROW] = "row",
	[CATALOG_EXPORT_ANEW] = "anew",
	[CATALOG_EXPORT_GONE] = "gone",
	[CATALOG_EXPORT_LETTERS] = "letters"
};

const char *
catalog_export_table_state_name(CatalogExportTableState state)
{
	return state_names[state];
}

static void
set_list(Datum *values, bool *nulls, int attnum, const List *list)
{
	nulls[attnum - 1] = list == NIL;
	values[attnum - 1] = list == NIL ? (Datum) 0 : util_text_array(list);
}

/* ---- tables ---- */

static CatalogExportTable *
table_from_tuple(HeapTuple tuple, TupleDesc desc)
{
	CatalogExportTable *table = palloc0(sizeof(CatalogExportTable));

	table->pipeline_id = catalog_get_int32(tuple, desc, Anum_export_table_pipeline_id);
	table->table_id = catalog_get_int32(tuple, desc, Anum_export_table_table_id);
	table->relid = catalog_get_oid(tuple, desc, Anum_export_table_relid);
	table->schema = catalog_get_text(tuple, desc, Anum_export_table_table_schema);
	table->name = catalog_get_text(tuple, desc, Anum_export_table_table_name);
	table->state = (CatalogExportTableState) catalog_get_word(tuple, desc, Anum_export_table_state, state_names, lengthof(state_names));
	table->signature = catalog_get_text(tuple, desc, Anum_export_table_signature);
	table->last_key = catalog_get_list(tuple, desc, Anum_export_table_last_key);
	table->rows_copied = catalog_get_int64(tuple, desc, Anum_export_table_rows_copied);
	table->chunks = catalog_get_int32(tuple, desc, Anum_export_table_chunks);
	table->copies_asked = catalog_get_int32(tuple, desc, Anum_export_table_copies_asked);
	table->copies_begun = catalog_get_int32(tuple, desc, Anum_export_table_copies_begun);
	table->started_at = catalog_get_time(tuple, desc, Anum_export_table_started_at);
	table->finished_at = catalog_get_time(tuple, desc, Anum_export_table_finished_at);
	table->stop_end_lsn = (XLogRecPtr) catalog_get_int64(tuple, desc, Anum_export_table_stop_end_lsn);
	table->stop_lsn = (XLogRecPtr) catalog_get_int64(tuple, desc, Anum_export_table_stop_lsn);
	catalog_get_error(tuple, desc, Anum_export_table_last_error, &table->stop_error);
	table->stopped_at = catalog_get_time(tuple, desc, Anum_export_table_stopped_at);
	return table;
}

static void
fill_stop(XLogRecPtr end_lsn, XLogRecPtr lsn, const UtilErrorInfo *error, TimestampTz at, Datum *values, bool *nulls)
{
	values[Anum_export_table_stop_end_lsn - 1] = Int64GetDatum((int64) end_lsn);
	values[Anum_export_table_stop_lsn - 1] = Int64GetDatum((int64) lsn);
	values[Anum_export_table_stopped_at - 1] = TimestampTzGetDatum(at);
	nulls[Anum_export_table_stop_end_lsn - 1] = nulls[Anum_export_table_stop_lsn - 1] = nulls[Anum_export_table_stopped_at - 1] = error == NULL;
	catalog_set_error(values, nulls, Anum_export_table_last_error, error);
}

/* The worker's account of a table that is not stopped. */
static void
fill_table(const CatalogExportTable *table, Datum *values, bool *nulls)
{
	values[Anum_export_table_pipeline_id - 1] = Int32GetDatum(table->pipeline_id);
	values[Anum_export_table_table_id - 1] = Int32GetDatum(table->table_id);
	values[Anum_export_table_relid - 1] = ObjectIdGetDatum(table->relid);
	catalog_set_text(values, nulls, Anum_export_table_table_schema, table->schema);
	catalog_set_text(values, nulls, Anum_export_table_table_name, table->name);
	catalog_set_text(values, nulls, Anum_export_table_state, state_names[table->state]);
	catalog_set_text(values, nulls, Anum_export_table_signature, table->signature);
	set_list(values, nulls, Anum_export_table_last_key, table->last_key);
	values[Anum_export_table_rows_copied - 1] = Int64GetDatum(table->rows_copied);
	values[Anum_export_table_chunks - 1] = Int32GetDatum(table->chunks);
	values[Anum_export_table_copies_asked - 1] = Int32GetDatum(table->copies_asked);
	values[Anum_export_table_copies_begun - 1] = Int32GetDatum(table->copies_begun);
	values[Anum_export_table_started_at - 1] = TimestampTzGetDatum(table->started_at);
	values[Anum_export_table_finished_at - 1] = TimestampTzGetDatum(table->finished_at);
	nulls[Anum_export_table_finished_at - 1] = table->finished_at == 0;
	fill_stop(0, 0, NULL, 0, values, nulls);
}

List *
catalog_export_table_list(int32 pipeline_id)
{
	CatalogScan scan;
	HeapTuple	tuple;
	List	   *result = NIL;

	catalog_scan_begin_ordered(&scan, CATALOG_REL_EXPORT_TABLE, AccessShareLock, 1, &pipeline_id);
	while (HeapTupleIsValid(tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection)))
		result = lappend(result, table_from_tuple(tuple, RelationGetDescr(scan.rel)));
	catalog_scan_end(&scan);
	return result;
}

void
catalog_export_table_insert(CatalogExportTable *table)
{
	Datum		values[Natts_export_table] = {0};
	bool		nulls[Natts_export_table] = {0};
	Relation	rel;

	table->table_id = catalog_last_id(CATALOG_REL_EXPORT_TABLE, Anum_export_table_table_id, table->pipeline_id) + 1;
	fill_table(table, values, nulls);
	rel = table_open(catalog_relation_oid(CATALOG_REL_EXPORT_TABLE), RowExclusiveLock);
	catalog_tuple_insert(rel, values, nulls);
	table_close(rel, NoLock);
}

void
catalog_export_table_update(const CatalogExportTable *table)
{
	int32		keys[] = {table->pipeline_id, table->table_id};
	Datum		values[Natts_export_table] = {0};
	bool		nulls[Natts_export_table] = {0};
	bool		replaces[Natts_export_table];
	CatalogScan scan;
	HeapTuple	tuple;

	fill_table(table, values, nulls);
	memset(replaces, true, sizeof(replaces));
	/* wishes are written by others, who lock the pipeline's state too (catalog_pipeline_ask_tables) */
	catalog_lock_state(table->pipeline_id);
	catalog_scan_begin(&scan, CATALOG_REL_EXPORT_TABLE, RowExclusiveLock, lengthof(keys), keys);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
	{
		replaces[Anum_export_table_copies_asked - 1] = false;
		if (catalog_get_int32(tuple, RelationGetDescr(scan.rel), Anum_export_table_copies_asked) > table->copies_begun)
			replaces[Anum_export_table_state - 1] = false;
		catalog_tuple_update(scan.rel, tuple, values, nulls, replaces);
	}
	catalog_scan_end(&scan);
}

void
catalog_export_table_delete(int32 pipeline_id, int32 table_id)
{
	int32		keys[] = {pipeline_id, table_id};

	catalog_delete_rows(CATALOG_REL_EXPORT_TABLE, lengthof(keys), keys);
}

void
catalog_export_table_stop(int32 pipeline_id, Oid relid, XLogRecPtr end_lsn, XLogRecPtr lsn, const UtilErrorInfo *error)
{
	CatalogExportTable table = {.pipeline_id = pipeline_id,.relid = relid};
	Datum		values[Natts_export_table] = {0};
	bool		nulls[Natts_export_table] = {0};
	bool		replaces[Natts_export_table] = {0};
	bool		is_known = false;
	CatalogScan scan;
	HeapTuple	tuple;
	ListCell   *lc;

	catalog_lock_state(pipeline_id);
	foreach(lc, catalog_export_table_list(pipeline_id))
	{
		const CatalogExportTable *row = lfirst(lc);

		if (row->relid != relid)
			continue;
		table = *row;
		is_known = true;
	}
	if (!is_known)
	{
		/* a table that is gone by now has no name */
		table.name = get_rel_name(relid);
		table.schema = table.name == NULL ? pstrdup("") : get_namespace_name(get_rel_namespace(relid));
		if (table.name == NULL)
			table.name = psprintf("%u", relid);
		table.started_at = GetCurrentTimestamp();
		table.state = CATALOG_EXPORT_STREAMING;
		catalog_export_table_insert(&table);
		CommandCounterIncrement();
	}
	table.state = CATALOG_EXPORT_STOPPED;
	table.copies_begun = table.copies_asked;
	fill_table(&table, values, nulls);
	fill_stop(end_lsn, lsn, error, GetCurrentTimestamp(), values, nulls);
	memset(replaces, true, sizeof(replaces));
	catalog_scan_begin(&scan, CATALOG_REL_EXPORT_TABLE, RowExclusiveLock, 2, (int32[]) {pipeline_id, table.table_id});
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
		catalog_tuple_update(scan.rel, tuple, values, nulls, replaces);
	catalog_scan_end(&scan);
}

/* Count a wish in the row of a table, which is there. */
static void
ask_again(const CatalogExportTable *table)
{
	int32		keys[] = {table->pipeline_id, table->table_id};
	Datum		values[Natts_export_table] = {0};
	bool		nulls[Natts_export_table] = {0};
	bool		replaces[Natts_export_table] = {0};
	CatalogScan scan;
	HeapTuple	tuple;

	values[Anum_export_table_copies_asked - 1] = Int32GetDatum(table->copies_asked + 1);
	replaces[Anum_export_table_copies_asked - 1] = true;
	values[Anum_export_table_state - 1] = CStringGetTextDatum(state_names[CATALOG_EXPORT_SNAPSHOT]);
	replaces[Anum_export_table_state - 1] = true;
	catalog_scan_begin(&scan, CATALOG_REL_EXPORT_TABLE, RowExclusiveLock, lengthof(keys), keys);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
		catalog_tuple_update(scan.rel, tuple, values, nulls, replaces);
	catalog_scan_end(&scan);
}

void
catalog_export_table_ask(int32 pipeline_id, Oid relid)
{
	CatalogExportTable table = {.pipeline_id = pipeline_id,.relid = relid,.copies_asked = 1};
	ListCell   *lc;

	foreach(lc, catalog_export_table_list(pipeline_id))
	{
		CatalogExportTable *known = lfirst(lc);

		if (known->relid == relid)
		{
			ask_again(known);
			return;
		}
	}
	table.name = get_rel_name(relid);
	if (table.name == NULL)
		return;
	table.schema = get_namespace_name(get_rel_namespace(relid));
	table.started_at = GetCurrentTimestamp();
	catalog_export_table_insert(&table);
}

static bool
takes_what_came_in(const CatalogPipeline *pipeline)
{
	const char *origin = catalog_pipeline_option(pipeline, "origin");

	return origin == NULL || strcmp(origin, "none") != 0;
}

void
catalog_export_table_ask_all(Oid relid)
{
	ListCell   *lc;

	foreach(lc, catalog_pipeline_list())
	{
		const CatalogPipeline *pipeline = lfirst(lc);

		if (pipeline->sink == NULL || !takes_what_came_in(pipeline) ||
			!catalog_export_means(pipeline->tables, relid))
			continue;
		/* first, as who asks by SQL does: it locks the pipeline's state */
		catalog_pipeline_ask_tables(pipeline->id);
		catalog_export_table_ask(pipeline->id, relid);
	}
}

/* ---- chunks ---- */

static CatalogExportChunk *
chunk_from_tuple(HeapTuple tuple, TupleDesc desc)
{
	CatalogExportChunk *chunk = palloc0(sizeof(CatalogExportChunk));
	Datum		snapshot = catalog_get_varlena(tuple, desc, Anum_export_chunk_snapshot);

	chunk->pipeline_id = catalog_get_int32(tuple, desc, Anum_export_chunk_pipeline_id);
	chunk->chunk_no = catalog_get_int32(tuple, desc, Anum_export_chunk_chunk_no);
	chunk->table_id = catalog_get_int32(tuple, desc, Anum_export_chunk_table_id);
	chunk->kind = (CatalogExportChunkKind) catalog_get_word(tuple, desc, Anum_export_chunk_kind, kind_names, lengthof(kind_names));
	chunk->signature = catalog_get_text(tuple, desc, Anum_export_chunk_signature);
	chunk->last_key = catalog_get_list(tuple, desc, Anum_export_chunk_last_key);
	if (snapshot != (Datum) 0)
		chunk->snapshot = DatumGetCString(DirectFunctionCall1(pg_snapshot_out, snapshot));
	chunk->lsn = (XLogRecPtr) catalog_get_int64(tuple, desc, Anum_export_chunk_lsn);
	chunk->rows = catalog_get_int64(tuple, desc, Anum_export_chunk_row_count);
	chunk->copies_begun = catalog_get_int32(tuple, desc, Anum_export_chunk_copies_begun);
	return chunk;
}

List *
catalog_export_chunk_list(int32 pipeline_id)
{
	CatalogScan scan;
	HeapTuple	tuple;
	List	   *result = NIL;

	catalog_scan_begin_ordered(&scan, CATALOG_REL_EXPORT_CHUNK, AccessShareLock, 1, &pipeline_id);
	while (HeapTupleIsValid(tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection)))
		result = lappend(result, chunk_from_tuple(tuple, RelationGetDescr(scan.rel)));
	catalog_scan_end(&scan);
	return result;
}

void
catalog_export_chunk_insert(const CatalogExportChunk *chunk)
{
	Datum		values[Natts_export_chunk] = {0};
	bool		nulls[Natts_export_chunk] = {0};
	Relation	rel;

	values[Anum_export_chunk_pipeline_id - 1] = Int32GetDatum(chunk->pipeline_id);
	values[Anum_export_chunk_chunk_no - 1] = Int32GetDatum(chunk->chunk_no);
	values[Anum_export_chunk_table_id - 1] = Int32GetDatum(chunk->table_id);
	catalog_set_text(values, nulls, Anum_export_chunk_kind, kind_names[chunk->kind]);
	catalog_set_text(values, nulls, Anum_export_chunk_signature, chunk->signature);
	set_list(values, nulls, Anum_export_chunk_last_key, chunk->last_key);
	nulls[Anum_export_chunk_snapshot - 1] = chunk->snapshot == NULL;
	if (chunk->snapshot != NULL)
		values[Anum_export_chunk_snapshot - 1] = DirectFunctionCall1(pg_snapshot_in, CStringGetDatum(chunk->snapshot));
	values[Anum_export_chunk_lsn - 1] = LSNGetDatum(chunk->lsn);
	values[Anum_export_chunk_row_count - 1] = Int64GetDatum(chunk->rows);
	values[Anum_export_chunk_copies_begun - 1] = Int32GetDatum(chunk->copies_begun);
	rel = table_open(catalog_relation_oid(CATALOG_REL_EXPORT_CHUNK), RowExclusiveLock);
	catalog_tuple_insert(rel, values, nulls);
	table_close(rel, NoLock);
}

void
catalog_export_chunk_delete(int32 pipeline_id, int32 chunk_no)
{
	int32		keys[] = {pipeline_id, chunk_no};

	catalog_delete_rows(CATALOG_REL_EXPORT_CHUNK, lengthof(keys), keys);
}

/* ---- relations ---- */

bool
catalog_export_means(List *patterns, Oid relid)
{
	char	   *name = get_rel_name(relid);
	char	   *schema = name == NULL ? NULL : get_namespace_name(get_rel_namespace(relid));
	ListCell   *lc;

	if (schema == NULL || strcmp(schema, "cdc_bridge") == 0)
		return false;
	if (util_patterns_match(patterns, schema, name, NULL))
		return true;
	if (!get_rel_relispartition(relid))
		return false;
	foreach(lc, get_partition_ancestors(relid))
	{
		name = get_rel_name(lfirst_oid(lc));
		schema = name == NULL ? NULL : get_namespace_name(get_rel_namespace(lfirst_oid(lc)));
		if (schema != NULL && util_patterns_match(patterns, schema, name, NULL))
			return true;
	}
	return false;
}

List *
catalog_export_candidates(void)
{
	Relation	classes = table_open(RelationRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(classes, InvalidOid, false, NULL, 0, NULL);
	List	   *relids = NIL;
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		if (form->relkind == RELKIND_RELATION && form->relpersistence == RELPERSISTENCE_PERMANENT && form->oid >= FirstNormalObjectId)
			relids = lappend_oid(relids, form->oid);
	}
	systable_endscan(scan);
	table_close(classes, AccessShareLock);
	list_sort(relids, list_oid_cmp);
	return relids;
}

List *
catalog_export_relations(List *patterns)
{
	List	   *relids = NIL;
	ListCell   *lc;

	foreach(lc, catalog_export_candidates())
	{
		if (catalog_export_means(patterns, lfirst_oid(lc)))
			relids = lappend_oid(relids, lfirst_oid(lc));
	}
	return relids;
}
