/*-------------------------------------------------------------------------
 *
 * catalog_chunk.c
 *	  Rows of cdc_bridge.snapshot_chunk: the ledger of a snapshot.
 *
 * NOTES
 *	  Every chunk carries the sum of rows up to itself, so that the newest one
 *	  says how far the snapshot is and the ledger is never read as a whole.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "catalog/catalog_heap.h"
#include "compat/pg_compat.h"

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

/* Add a chunk to the ledger. Chunks of a table come one after the other, in order. */
void
catalog_chunk_insert(const CatalogChunk *chunk)
{
	Datum		values[Natts_snapshot_chunk] = {0};
	bool		nulls[Natts_snapshot_chunk] = {0};
	int64		rows_before;
	Relation	rel;

	(void) catalog_chunk_last(chunk->pipeline_id, chunk->table_id, chunk->generation, &rows_before);

	values[Anum_snapshot_chunk_pipeline_id - 1] = Int32GetDatum(chunk->pipeline_id);
	values[Anum_snapshot_chunk_table_id - 1] = Int32GetDatum(chunk->table_id);
	values[Anum_snapshot_chunk_generation - 1] = Int32GetDatum(chunk->generation);
	values[Anum_snapshot_chunk_chunk_no - 1] = Int32GetDatum(chunk->chunk_no);
	values[Anum_snapshot_chunk_upper_key - 1] = key_to_array(chunk->nkey, chunk->upper);
	values[Anum_snapshot_chunk_rows - 1] = Int64GetDatum(chunk->rows);
	values[Anum_snapshot_chunk_bytes - 1] = Int64GetDatum(chunk->bytes);
	values[Anum_snapshot_chunk_rows_total - 1] = Int64GetDatum(rows_before + chunk->rows);

	rel = table_open(catalog_relation_oid(CATALOG_REL_SNAPSHOT_CHUNK), RowExclusiveLock);
	catalog_tuple_insert(rel, values, nulls);
	table_close(rel, NoLock);
}

CatalogChunk *
catalog_chunk_last(int32 pipeline_id, int32 table_id, int32 generation, int64 *rows_total)
{
	int32		keys[] = {pipeline_id, table_id, generation};
	CatalogScan scan;
	HeapTuple	tuple;
	CatalogChunk *chunk = NULL;

	*rows_total = 0;
	catalog_scan_begin_ordered(&scan, CATALOG_REL_SNAPSHOT_CHUNK, AccessShareLock, 3, keys);
	tuple = catalog_scan_next_ordered(&scan, BackwardScanDirection);
	if (HeapTupleIsValid(tuple))
	{
		TupleDesc	desc = RelationGetDescr(scan.rel);

		chunk = palloc0(sizeof(CatalogChunk));
		chunk->pipeline_id = pipeline_id;
		chunk->table_id = table_id;
		chunk->generation = generation;
		chunk->chunk_no = catalog_get_int32(tuple, desc, Anum_snapshot_chunk_chunk_no);
		key_from_array(catalog_get_varlena(tuple, desc, Anum_snapshot_chunk_upper_key), &chunk->nkey, &chunk->upper);
		chunk->rows = catalog_get_int64(tuple, desc, Anum_snapshot_chunk_rows);
		chunk->bytes = catalog_get_int64(tuple, desc, Anum_snapshot_chunk_bytes);
		*rows_total = catalog_get_int64(tuple, desc, Anum_snapshot_chunk_rows_total);
	}
	catalog_scan_end(&scan);
	return chunk;
}
