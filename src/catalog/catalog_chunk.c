/*-------------------------------------------------------------------------
 *
 * catalog_chunk.c
 *	  Rows of cdc_bridge.snapshot_chunk: the ledger of a snapshot.
 *
 * NOTES
 *	  The rows of a table are its plan: chunks that are done or open, and the
 *	  rest, which is not cut yet. Together they are always all of the table's keys,
 *	  and none twice. They are few, however large the table is: see
 *	  snapshot_fold.c. Chunks of a state are found by an index of their own.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"

#include "catalog/catalog_heap.h"
#include "compat/pg_compat.h"

static const char *const state_names[] = {
	[CATALOG_CHUNK_REST] = "rest",
	[CATALOG_CHUNK_OPEN] = "open",
	[CATALOG_CHUNK_DONE] = "done"
};

static Datum
key_to_array(int nkey, char **key)
{
	Datum	   *elems = palloc(sizeof(Datum) * Max(nkey, 1));

	for (int i = 0; i < nkey; i++)
		elems[i] = CStringGetTextDatum(key[i]);
	return PointerGetDatum(construct_array(elems, nkey, TEXTOID, -1, false, TYPALIGN_INT));
}

static void
key_from_array(Datum array, int *nkey, char ***key)
{
	Datum	   *elems;
	bool	   *nulls;

	deconstruct_array(DatumGetArrayTypeP(array), TEXTOID, -1, false, TYPALIGN_INT, &elems, &nulls, nkey);
	*key = palloc0(sizeof(char *) * Max(*nkey, 1));
	for (int i = 0; i < *nkey; i++)
	{
		if (!nulls[i])
			(*key)[i] = TextDatumGetCString(elems[i]);
	}
}

static CatalogChunkState
get_state(HeapTuple tuple, TupleDesc desc, int attnum)
{
	return (CatalogChunkState) catalog_get_word(tuple, desc, attnum, state_names, lengthof(state_names));
}

static void
fill(const CatalogChunk *chunk, Datum *values, bool *nulls)
{
	values[Anum_snapshot_chunk_pipeline_id - 1] = Int32GetDatum(chunk->pipeline_id);
	values[Anum_snapshot_chunk_table_id - 1] = Int32GetDatum(chunk->table_id);
	values[Anum_snapshot_chunk_generation - 1] = Int32GetDatum(chunk->generation);
	values[Anum_snapshot_chunk_chunk_no - 1] = Int32GetDatum(chunk->chunk_no);
	nulls[Anum_snapshot_chunk_lower_key - 1] = chunk->lower == NULL;
	if (chunk->lower != NULL)
		values[Anum_snapshot_chunk_lower_key - 1] = key_to_array(chunk->nkey, chunk->lower);
	nulls[Anum_snapshot_chunk_upper_key - 1] = chunk->upper == NULL;
	if (chunk->upper != NULL)
		values[Anum_snapshot_chunk_upper_key - 1] = key_to_array(chunk->nkey, chunk->upper);
	values[Anum_snapshot_chunk_state - 1] = CStringGetTextDatum(state_names[chunk->state]);
	values[Anum_snapshot_chunk_worker - 1] = Int32GetDatum(chunk->worker);
	values[Anum_snapshot_chunk_rows - 1] = Int64GetDatum(chunk->rows);
	values[Anum_snapshot_chunk_bytes - 1] = Int64GetDatum(chunk->bytes);
	values[Anum_snapshot_chunk_chunks - 1] = Int32GetDatum(chunk->chunks);
}

static CatalogChunk *
chunk_from_tuple(HeapTuple tuple, TupleDesc desc)
{
	CatalogChunk *chunk = palloc0(sizeof(CatalogChunk));
	Datum		lower = catalog_get_varlena(tuple, desc, Anum_snapshot_chunk_lower_key);
	Datum		upper = catalog_get_varlena(tuple, desc, Anum_snapshot_chunk_upper_key);

	chunk->pipeline_id = catalog_get_int32(tuple, desc, Anum_snapshot_chunk_pipeline_id);
	chunk->table_id = catalog_get_int32(tuple, desc, Anum_snapshot_chunk_table_id);
	chunk->generation = catalog_get_int32(tuple, desc, Anum_snapshot_chunk_generation);
	chunk->chunk_no = catalog_get_int32(tuple, desc, Anum_snapshot_chunk_chunk_no);
	if (lower != (Datum) 0)
		key_from_array(lower, &chunk->nkey, &chunk->lower);
	if (upper != (Datum) 0)
		key_from_array(upper, &chunk->nkey, &chunk->upper);
	chunk->state = get_state(tuple, desc, Anum_snapshot_chunk_state);
	chunk->worker = catalog_get_int32(tuple, desc, Anum_snapshot_chunk_worker);
	chunk->rows = catalog_get_int64(tuple, desc, Anum_snapshot_chunk_rows);
	chunk->bytes = catalog_get_int64(tuple, desc, Anum_snapshot_chunk_bytes);
	chunk->chunks = catalog_get_int32(tuple, desc, Anum_snapshot_chunk_chunks);
	return chunk;
}

void
catalog_chunk_insert(const CatalogChunk *chunk)
{
	Datum		values[Natts_snapshot_chunk] = {0};
	bool		nulls[Natts_snapshot_chunk] = {0};
	Relation	rel;

	fill(chunk, values, nulls);
	rel = table_open(catalog_relation_oid(CATALOG_REL_SNAPSHOT_CHUNK), RowExclusiveLock);
	catalog_tuple_insert(rel, values, nulls);
	table_close(rel, NoLock);
}

/* Write a chunk that was read before. The caller has seen to it that nobody else does. */
void
catalog_chunk_update(const CatalogChunk *chunk)
{
	int32		keys[] = {chunk->pipeline_id, chunk->table_id, chunk->generation, chunk->chunk_no};
	Datum		values[Natts_snapshot_chunk] = {0};
	bool		nulls[Natts_snapshot_chunk] = {0};
	bool		replaces[Natts_snapshot_chunk] = {0};
	CatalogScan scan;
	HeapTuple	tuple;

	fill(chunk, values, nulls);
	for (int i = Anum_snapshot_chunk_lower_key; i <= Natts_snapshot_chunk; i++)
		replaces[i - 1] = true;

	catalog_scan_begin(&scan, CATALOG_REL_SNAPSHOT_CHUNK, RowExclusiveLock, lengthof(keys), keys);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
		catalog_tuple_update(scan.rel, tuple, values, nulls, replaces);
	catalog_scan_end(&scan);
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "chunk %d of table %d is missing in cdc_bridge.snapshot_chunk", chunk->chunk_no, chunk->table_id);
}

void
catalog_chunk_delete(const CatalogChunk *chunk)
{
	int32		keys[] = {chunk->pipeline_id, chunk->table_id, chunk->generation, chunk->chunk_no};

	catalog_delete_rows(CATALOG_REL_SNAPSHOT_CHUNK, lengthof(keys), keys);
}

CatalogChunk *
catalog_chunk_by_no(int32 pipeline_id, int32 table_id, int32 generation, int32 chunk_no)
{
	int32		keys[] = {pipeline_id, table_id, generation, chunk_no};
	CatalogScan scan;
	HeapTuple	tuple;
	CatalogChunk *chunk = NULL;

	catalog_scan_begin(&scan, CATALOG_REL_SNAPSHOT_CHUNK, AccessShareLock, lengthof(keys), keys);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
		chunk = chunk_from_tuple(tuple, RelationGetDescr(scan.rel));
	catalog_scan_end(&scan);
	return chunk;
}

int32
catalog_chunk_last_no(int32 pipeline_id, int32 table_id, int32 generation)
{
	int32		keys[] = {pipeline_id, table_id, generation};
	CatalogScan scan;
	HeapTuple	tuple;
	int32		result = -1;

	catalog_scan_begin_ordered(&scan, CATALOG_REL_SNAPSHOT_CHUNK, AccessShareLock, lengthof(keys), keys);
	tuple = catalog_scan_next_ordered(&scan, BackwardScanDirection);
	if (HeapTupleIsValid(tuple))
		result = catalog_get_int32(tuple, RelationGetDescr(scan.rel), Anum_snapshot_chunk_chunk_no);
	catalog_scan_end(&scan);
	return result;
}

List *
catalog_chunk_list(int32 pipeline_id, int32 table_id, int32 generation, CatalogChunkState state)
{
	ScanKeyData keys[4];
	CatalogScan scan;
	HeapTuple	tuple;
	List	   *result = NIL;

	ScanKeyInit(&keys[0], Anum_snapshot_chunk_pipeline_id, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(pipeline_id));
	ScanKeyInit(&keys[1], Anum_snapshot_chunk_table_id, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(table_id));
	ScanKeyInit(&keys[2], Anum_snapshot_chunk_generation, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(generation));
	ScanKeyInit(&keys[3], Anum_snapshot_chunk_state, BTEqualStrategyNumber, F_TEXTEQ,
				CStringGetTextDatum(state_names[state]));
	catalog_scan_begin_keys(&scan, CATALOG_REL_SNAPSHOT_CHUNK, AccessShareLock, "snapshot_chunk_state_idx",
							lengthof(keys), keys);
	while (HeapTupleIsValid(tuple = catalog_scan_next(&scan)))
		result = lappend(result, chunk_from_tuple(tuple, RelationGetDescr(scan.rel)));
	catalog_scan_end(&scan);
	return result;
}

void
catalog_chunk_sum(int32 pipeline_id, int32 table_id, int32 generation, int32 *chunks, int64 *rows)
{
	int32		keys[] = {pipeline_id, table_id, generation};
	CatalogScan scan;
	HeapTuple	tuple;

	*chunks = 0;
	*rows = 0;
	catalog_scan_begin(&scan, CATALOG_REL_SNAPSHOT_CHUNK, AccessShareLock, lengthof(keys), keys);
	while (HeapTupleIsValid(tuple = catalog_scan_next(&scan)))
	{
		TupleDesc	desc = RelationGetDescr(scan.rel);

		CHECK_FOR_INTERRUPTS();
		if (get_state(tuple, desc, Anum_snapshot_chunk_state) == CATALOG_CHUNK_DONE)
		{
			*chunks += catalog_get_int32(tuple, desc, Anum_snapshot_chunk_chunks);
			*rows += catalog_get_int64(tuple, desc, Anum_snapshot_chunk_rows);
		}
	}
	catalog_scan_end(&scan);
}
