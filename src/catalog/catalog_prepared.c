/*-------------------------------------------------------------------------
 *
 * catalog_prepared.c
 *	  Rows of cdc_bridge.prepared_transaction and prepared_change: XA
 *	  transactions that wait for their end, and what they changed.
 *
 * NOTES
 *	  Rows are written together with the position behind the PREPARE, and go
 *	  together with the position behind the XA COMMIT or XA ROLLBACK. So an XA
 *	  COMMIT without a row belongs to a PREPARE that this pipeline never saw.
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
#include "util/util_name.h"

int32
catalog_prepared_next_id(int32 pipeline_id)
{
	return catalog_last_id(CATALOG_REL_PREPARED_TRANSACTION, Anum_prepared_transaction_prepared_id, pipeline_id) + 1;
}

static CatalogPrepared *
read_prepared(HeapTuple tuple, TupleDesc desc)
{
	CatalogPrepared *prepared = palloc0(sizeof(CatalogPrepared));
	char	   *position = catalog_get_text(tuple, desc, Anum_prepared_transaction_position);

	prepared->pipeline_id = catalog_get_int32(tuple, desc, Anum_prepared_transaction_pipeline_id);
	prepared->prepared_id = catalog_get_int32(tuple, desc, Anum_prepared_transaction_prepared_id);
	prepared->xid = catalog_get_text(tuple, desc, Anum_prepared_transaction_xid);
	if (position != NULL)
		(void) cdc_position_parse(position, &prepared->position);
	prepared->prepared_at = catalog_get_time(tuple, desc, Anum_prepared_transaction_prepared_at);
	prepared->source_tables = catalog_get_list(tuple, desc, Anum_prepared_transaction_source_tables);
	prepared->has_tables = !heap_attisnull(tuple, Anum_prepared_transaction_source_tables, desc);
	prepared->last_table_id = catalog_get_int32(tuple, desc, Anum_prepared_transaction_last_table_id);
	prepared->changes = catalog_get_int64(tuple, desc, Anum_prepared_transaction_changes);
	prepared->bytes = catalog_get_int64(tuple, desc, Anum_prepared_transaction_bytes);
	prepared->pieces = catalog_get_int32(tuple, desc, Anum_prepared_transaction_pieces);
	return prepared;
}

CatalogPrepared *
catalog_prepared_find(int32 pipeline_id, const char *xid)
{
	CatalogPrepared *prepared = NULL;
	CatalogScan scan;
	HeapTuple	tuple;
	ScanKeyData keys[2];

	ScanKeyInit(&keys[0], Anum_prepared_transaction_pipeline_id, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(pipeline_id));
	/* the column has collation "C", as ScanKeyInit has it */
	ScanKeyInit(&keys[1], Anum_prepared_transaction_xid, BTEqualStrategyNumber, F_TEXTEQ,
				CStringGetTextDatum(xid));
	catalog_scan_begin_keys(&scan, CATALOG_REL_PREPARED_TRANSACTION, AccessShareLock, "prepared_transaction_xid_key",
							2, keys);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
		prepared = read_prepared(tuple, RelationGetDescr(scan.rel));
	catalog_scan_end(&scan);
	return prepared;
}

List *
catalog_prepared_list(int32 pipeline_id)
{
	CatalogScan scan;
	HeapTuple	tuple;
	List	   *result = NIL;

	catalog_scan_begin_ordered(&scan, CATALOG_REL_PREPARED_TRANSACTION, AccessShareLock, 1, &pipeline_id);
	while (HeapTupleIsValid(tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection)))
		result = lappend(result, read_prepared(tuple, RelationGetDescr(scan.rel)));
	catalog_scan_end(&scan);
	return result;
}

void
catalog_prepared_insert(const CatalogPrepared *prepared)
{
	CatalogPrepared *former = catalog_prepared_find(prepared->pipeline_id, prepared->xid);
	Datum		values[Natts_prepared_transaction];
	bool		nulls[Natts_prepared_transaction] = {0};
	char		text[CDC_POSITION_TEXT_MAX];
	Relation	rel;

	if (former != NULL)
		catalog_prepared_delete(former);
	cdc_position_format(&prepared->position, text);
	values[Anum_prepared_transaction_pipeline_id - 1] = Int32GetDatum(prepared->pipeline_id);
	values[Anum_prepared_transaction_prepared_id - 1] = Int32GetDatum(prepared->prepared_id);
	values[Anum_prepared_transaction_xid - 1] = CStringGetTextDatum(prepared->xid);
	catalog_set_text(values, nulls, Anum_prepared_transaction_position, text[0] != '\0' ? text : NULL);
	values[Anum_prepared_transaction_prepared_at - 1] = TimestampTzGetDatum(prepared->prepared_at);
	nulls[Anum_prepared_transaction_prepared_at - 1] = prepared->prepared_at == 0;
	values[Anum_prepared_transaction_source_tables - 1] = util_text_array(prepared->source_tables);
	nulls[Anum_prepared_transaction_source_tables - 1] = !prepared->has_tables;
	values[Anum_prepared_transaction_last_table_id - 1] = Int32GetDatum(prepared->last_table_id);
	values[Anum_prepared_transaction_changes - 1] = Int64GetDatum(prepared->changes);
	values[Anum_prepared_transaction_bytes - 1] = Int64GetDatum(prepared->bytes);
	values[Anum_prepared_transaction_pieces - 1] = Int32GetDatum(prepared->pieces);

	rel = table_open(catalog_relation_oid(CATALOG_REL_PREPARED_TRANSACTION), RowExclusiveLock);
	catalog_tuple_insert(rel, values, nulls);
	table_close(rel, NoLock);
}

void
catalog_prepared_delete(const CatalogPrepared *prepared)
{
	int32		keys[] = {prepared->pipeline_id, prepared->prepared_id};

	catalog_prepared_delete_pieces(prepared->pipeline_id, prepared->prepared_id);
	catalog_delete_rows(CATALOG_REL_PREPARED_TRANSACTION, 2, keys);
}

/* ------------------------------------------------------------------------- pieces */

void
catalog_prepared_add_piece(int32 pipeline_id, int32 prepared_id, int32 piece_no, const char *data, Size len)
{
	Datum		values[Natts_prepared_change];
	bool		nulls[Natts_prepared_change] = {0};
	bytea	   *piece = (bytea *) cstring_to_text_with_len(data, (int) len);
	Relation	rel;

	values[Anum_prepared_change_pipeline_id - 1] = Int32GetDatum(pipeline_id);
	values[Anum_prepared_change_prepared_id - 1] = Int32GetDatum(prepared_id);
	values[Anum_prepared_change_piece_no - 1] = Int32GetDatum(piece_no);
	values[Anum_prepared_change_data - 1] = PointerGetDatum(piece);
	rel = table_open(catalog_relation_oid(CATALOG_REL_PREPARED_CHANGE), RowExclusiveLock);
	catalog_tuple_insert(rel, values, nulls);
	table_close(rel, NoLock);
	pfree(piece);
}

bytea *
catalog_prepared_piece(int32 pipeline_id, int32 prepared_id, int32 piece_no)
{
	int32		keys[] = {pipeline_id, prepared_id, piece_no};
	CatalogScan scan;
	HeapTuple	tuple;
	bytea	   *piece = NULL;

	catalog_scan_begin(&scan, CATALOG_REL_PREPARED_CHANGE, AccessShareLock, 3, keys);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
		piece = (bytea *) DatumGetPointer(catalog_get_varlena(tuple, RelationGetDescr(scan.rel),
															  Anum_prepared_change_data));
	catalog_scan_end(&scan);
	return piece;
}

void
catalog_prepared_delete_pieces(int32 pipeline_id, int32 prepared_id)
{
	int32		keys[] = {pipeline_id, prepared_id};

	catalog_delete_rows(CATALOG_REL_PREPARED_CHANGE, 2, keys);
}
