/*-------------------------------------------------------------------------
 *
 * catalog_deleted.c
 *	  Rows of cdc_bridge.snapshot_deleted: keys that the stream removed.
 *
 * NOTES
 *	  Called per row while a table is being copied, so nothing is looked up by
 *	  name and nothing but the one index entry is touched.
 *
 *	  Keys are bytes to us. Whoever makes them keeps them short enough for an
 *	  index row (chunk_key_bytes: at most 1000 bytes).
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "utils/fmgroids.h"

#include "catalog/catalog_heap.h"

/* Begin a scan for the one row; returns it or NULL. The caller ends the scan. */
static HeapTuple
find(CatalogScan *scan, LOCKMODE mode, int32 pipeline_id, int32 table_id, bytea *key)
{
	ScanKeyData keys[3];

	ScanKeyInit(&keys[0], Anum_snapshot_deleted_pipeline_id, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(pipeline_id));
	ScanKeyInit(&keys[1], Anum_snapshot_deleted_table_id, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(table_id));
	ScanKeyInit(&keys[2], Anum_snapshot_deleted_key, BTEqualStrategyNumber, F_BYTEAEQ,
				PointerGetDatum(key));
	catalog_scan_begin_keys(scan, CATALOG_REL_SNAPSHOT_DELETED, mode, NULL, 3, keys);
	return catalog_scan_next(scan);
}

bool
catalog_deleted_exists(int32 pipeline_id, int32 table_id, bytea *key)
{
	CatalogScan scan;
	bool		found;

	found = HeapTupleIsValid(find(&scan, AccessShareLock, pipeline_id, table_id, key));
	catalog_scan_end(&scan);
	return found;
}

void
catalog_deleted_add(int32 pipeline_id, int32 table_id, bytea *key)
{
	CatalogScan scan;
	Datum		values[Natts_snapshot_deleted];
	bool		nulls[Natts_snapshot_deleted] = {0};

	if (!HeapTupleIsValid(find(&scan, RowExclusiveLock, pipeline_id, table_id, key)))
	{
		values[Anum_snapshot_deleted_pipeline_id - 1] = Int32GetDatum(pipeline_id);
		values[Anum_snapshot_deleted_table_id - 1] = Int32GetDatum(table_id);
		values[Anum_snapshot_deleted_key - 1] = PointerGetDatum(key);
		catalog_tuple_insert(scan.rel, values, nulls);
	}
	catalog_scan_end(&scan);
}

void
catalog_deleted_remove(int32 pipeline_id, int32 table_id, bytea *key)
{
	CatalogScan scan;
	HeapTuple	tuple;

	tuple = find(&scan, RowExclusiveLock, pipeline_id, table_id, key);
	if (HeapTupleIsValid(tuple))
		catalog_tuple_delete(scan.rel, tuple);
	catalog_scan_end(&scan);
}

bool
catalog_deleted_any(int32 pipeline_id, int32 table_id)
{
	int32		keys[] = {pipeline_id, table_id};
	CatalogScan scan;
	bool		found;

	catalog_scan_begin(&scan, CATALOG_REL_SNAPSHOT_DELETED, AccessShareLock, 2, keys);
	found = HeapTupleIsValid(catalog_scan_next(&scan));
	catalog_scan_end(&scan);
	return found;
}
