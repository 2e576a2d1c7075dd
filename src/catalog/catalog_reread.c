/*-------------------------------------------------------------------------
 *
 * catalog_reread.c
 *	  Rows of cdc_bridge.snapshot_reread: keys of which a copy has to read the row
 *	  again.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"

#include "catalog/catalog_heap.h"

static void
init_table_keys(ScanKey keys, int32 pipeline_id, int32 table_id)
{
	ScanKeyInit(&keys[0], Anum_snapshot_reread_pipeline_id, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(pipeline_id));
	ScanKeyInit(&keys[1], Anum_snapshot_reread_table_id, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(table_id));
}

/* Begin a scan for the one row; returns it or NULL. The caller ends the scan. */
static HeapTuple
find(CatalogScan *scan, LOCKMODE mode, int32 pipeline_id, int32 table_id, bytea *key)
{
	ScanKeyData keys[3];

	init_table_keys(keys, pipeline_id, table_id);
	ScanKeyInit(&keys[2], Anum_snapshot_reread_key, BTEqualStrategyNumber, F_BYTEAEQ,
				PointerGetDatum(key));
	catalog_scan_begin_keys(scan, CATALOG_REL_SNAPSHOT_REREAD, mode, NULL, 3, keys);
	return catalog_scan_next(scan);
}

static CatalogReread *
make_entry(HeapTuple tuple, TupleDesc desc)
{
	CatalogReread *entry = palloc0(sizeof(CatalogReread));

	entry->pipeline_id = catalog_get_int32(tuple, desc, Anum_snapshot_reread_pipeline_id);
	entry->table_id = catalog_get_int32(tuple, desc, Anum_snapshot_reread_table_id);
	entry->key = (bytea *) DatumGetPointer(catalog_get_varlena(tuple, desc, Anum_snapshot_reread_key));
	entry->condition = catalog_get_text(tuple, desc, Anum_snapshot_reread_condition);
	entry->is_read = catalog_get_bool(tuple, desc, Anum_snapshot_reread_is_read);
	catalog_get_position(tuple, desc, Anum_snapshot_reread_file, &entry->at);
	entry->gtid = catalog_get_text(tuple, desc, Anum_snapshot_reread_gtid);
	return entry;
}

bool
catalog_reread_any(int32 pipeline_id, int32 table_id)
{
	int32		keys[] = {pipeline_id, table_id};
	CatalogScan scan;
	bool		found;

	catalog_scan_begin(&scan, CATALOG_REL_SNAPSHOT_REREAD, AccessShareLock, 2, keys);
	found = HeapTupleIsValid(catalog_scan_next(&scan));
	catalog_scan_end(&scan);
	return found;
}

CatalogReread *
catalog_reread_find(int32 pipeline_id, int32 table_id, bytea *key)
{
	CatalogScan scan;
	HeapTuple	tuple = find(&scan, AccessShareLock, pipeline_id, table_id, key);
	CatalogReread *entry = NULL;

	if (HeapTupleIsValid(tuple))
		entry = make_entry(tuple, RelationGetDescr(scan.rel));
	catalog_scan_end(&scan);
	return entry;
}

void
catalog_reread_put(const CatalogReread *entry)
{
	CatalogScan scan;
	HeapTuple	tuple;
	Datum		values[Natts_snapshot_reread] = {0};
	bool		nulls[Natts_snapshot_reread] = {0};

	tuple = find(&scan, RowExclusiveLock, entry->pipeline_id, entry->table_id, entry->key);
	if (HeapTupleIsValid(tuple))
		catalog_tuple_delete(scan.rel, tuple);
	values[Anum_snapshot_reread_pipeline_id - 1] = Int32GetDatum(entry->pipeline_id);
	values[Anum_snapshot_reread_table_id - 1] = Int32GetDatum(entry->table_id);
	values[Anum_snapshot_reread_key - 1] = PointerGetDatum(entry->key);
	values[Anum_snapshot_reread_condition - 1] = CStringGetTextDatum(entry->condition);
	values[Anum_snapshot_reread_is_read - 1] = BoolGetDatum(entry->is_read);
	catalog_set_position(values, nulls, Anum_snapshot_reread_file, &entry->at);
	catalog_set_text(values, nulls, Anum_snapshot_reread_gtid, entry->gtid);
	catalog_tuple_insert(scan.rel, values, nulls);
	catalog_scan_end(&scan);
}

void
catalog_reread_remove(int32 pipeline_id, int32 table_id, bytea *key, bool unread_only)
{
	CatalogScan scan;
	HeapTuple	tuple = find(&scan, RowExclusiveLock, pipeline_id, table_id, key);

	if (HeapTupleIsValid(tuple) &&
		!(unread_only && catalog_get_bool(tuple, RelationGetDescr(scan.rel), Anum_snapshot_reread_is_read)))
		catalog_tuple_delete(scan.rel, tuple);
	catalog_scan_end(&scan);
}

/* Begin a scan over those that are read, or are not. */
static void
begin_state(CatalogScan *scan, int32 pipeline_id, int32 table_id, bool is_read)
{
	ScanKeyData keys[3];

	init_table_keys(keys, pipeline_id, table_id);
	ScanKeyInit(&keys[2], Anum_snapshot_reread_is_read, BTEqualStrategyNumber, F_BOOLEQ, BoolGetDatum(is_read));
	catalog_scan_begin_keys(scan, CATALOG_REL_SNAPSHOT_REREAD, AccessShareLock, "snapshot_reread_state_idx", 3, keys);
}

List *
catalog_reread_list(int32 pipeline_id, int32 table_id, int max)
{
	CatalogScan scan;
	HeapTuple	tuple;
	List	   *result = NIL;

	begin_state(&scan, pipeline_id, table_id, false);
	while (list_length(result) < max && HeapTupleIsValid(tuple = catalog_scan_next(&scan)))
		result = lappend(result, make_entry(tuple, RelationGetDescr(scan.rel)));
	catalog_scan_end(&scan);
	return result;
}

bool
catalog_reread_is_settled(int32 pipeline_id, int32 table_id, const CdcPosition *durable)
{
	CatalogScan scan;
	HeapTuple	tuple;
	bool		settled;

	begin_state(&scan, pipeline_id, table_id, false);
	settled = !HeapTupleIsValid(catalog_scan_next(&scan));
	catalog_scan_end(&scan);
	if (!settled)
		return false;

	begin_state(&scan, pipeline_id, table_id, true);
	while (settled && HeapTupleIsValid(tuple = catalog_scan_next(&scan)))
	{
		CdcPosition seen;
		int			order;

		catalog_get_position(tuple, RelationGetDescr(scan.rel), Anum_snapshot_reread_file, &seen);
		settled = cdc_position_compare(durable, &seen, &order) && order >= 0;
	}
	catalog_scan_end(&scan);
	return settled;
}
