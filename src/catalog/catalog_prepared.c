/*-------------------------------------------------------------------------
 *
 * catalog_prepared.c
 *	  Rows of cdc_bridge.prepared_xid: XA transactions that wait for their end.
 *
 * NOTES
 *	  A row is written together with the position behind the PREPARE, and goes
 *	  together with the position behind the XA COMMIT or XA ROLLBACK. So an XA
 *	  COMMIT without a row belongs to a PREPARE that this pipeline never saw.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"

#include "catalog/catalog_heap.h"

/* Begin a scan for the one row; returns it or NULL. The caller ends the scan. */
static HeapTuple
find(CatalogScan *scan, int32 pipeline_id, const char *xid)
{
	ScanKeyData keys[2];

	ScanKeyInit(&keys[0], Anum_prepared_xid_pipeline_id, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(pipeline_id));
	/* the column has collation "C", as ScanKeyInit has it */
	ScanKeyInit(&keys[1], Anum_prepared_xid_xid, BTEqualStrategyNumber, F_TEXTEQ,
				CStringGetTextDatum(xid));
	catalog_scan_begin_keys(scan, CATALOG_REL_PREPARED_XID, RowExclusiveLock, NULL, 2, keys);
	return catalog_scan_next(scan);
}

/* Note that a transaction was prepared at a position; the position of one that is noted already is replaced. */
void
catalog_prepared_add(int32 pipeline_id, const char *xid, const CdcPosition *position)
{
	CatalogScan scan;
	HeapTuple	tuple;
	Datum		values[Natts_prepared_xid];
	bool		nulls[Natts_prepared_xid] = {0};
	char		text[CDC_POSITION_TEXT_MAX];

	tuple = find(&scan, pipeline_id, xid);
	if (HeapTupleIsValid(tuple))
		catalog_tuple_delete(scan.rel, tuple);
	cdc_position_format(position, text);
	values[Anum_prepared_xid_pipeline_id - 1] = Int32GetDatum(pipeline_id);
	values[Anum_prepared_xid_xid - 1] = CStringGetTextDatum(xid);
	values[Anum_prepared_xid_position - 1] = CStringGetTextDatum(text);
	catalog_tuple_insert(scan.rel, values, nulls);
	catalog_scan_end(&scan);
}

/* Where a prepared transaction began, as text; NULL when none is noted. */
char *
catalog_prepared_position(int32 pipeline_id, const char *xid)
{
	CatalogScan scan;
	HeapTuple	tuple = find(&scan, pipeline_id, xid);
	char	   *position = NULL;

	if (HeapTupleIsValid(tuple))
		position = catalog_get_text(tuple, RelationGetDescr(scan.rel), Anum_prepared_xid_position);
	catalog_scan_end(&scan);
	return position;
}

/* Forget a prepared transaction; false when none was noted. */
bool
catalog_prepared_remove(int32 pipeline_id, const char *xid)
{
	CatalogScan scan;
	HeapTuple	tuple = find(&scan, pipeline_id, xid);
	bool		found = HeapTupleIsValid(tuple);

	if (found)
		catalog_tuple_delete(scan.rel, tuple);
	catalog_scan_end(&scan);
	return found;
}
