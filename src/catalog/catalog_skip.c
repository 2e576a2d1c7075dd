/*-------------------------------------------------------------------------
 *
 * catalog_skip.c
 *	  Rows of cdc_bridge.skipped_transaction: source transactions that somebody
 *	  asked to pass over.
 *
 * NOTES
 *	  A request waits until its transaction comes. That it has is written
 *	  together with the position behind the transaction, so a crash loses both
 *	  or none. The row stays: it tells what is missing here, and by whose wish.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "catalog/catalog_heap.h"

static CatalogSkip *
skip_from_tuple(HeapTuple tuple, TupleDesc desc)
{
	CatalogSkip *skip = palloc0(sizeof(CatalogSkip));
	char	   *position = catalog_get_text(tuple, desc, Anum_skipped_transaction_position);

	skip->pipeline_id = catalog_get_int32(tuple, desc, Anum_skipped_transaction_pipeline_id);
	skip->skip_id = catalog_get_int32(tuple, desc, Anum_skipped_transaction_skip_id);
	if (position != NULL && !cdc_position_parse(position, &skip->position))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("invalid position in cdc_bridge.skipped_transaction")));
	skip->gtid = catalog_get_text(tuple, desc, Anum_skipped_transaction_gtid);
	return skip;
}

static bool
is_done(HeapTuple tuple, TupleDesc desc)
{
	return catalog_get_time(tuple, desc, Anum_skipped_transaction_skipped_at) != 0;
}

List *
catalog_skip_list(int32 pipeline_id)
{
	CatalogScan scan;
	HeapTuple	tuple;
	List	   *result = NIL;

	catalog_scan_begin(&scan, CATALOG_REL_SKIPPED_TRANSACTION, AccessShareLock, 1, &pipeline_id);
	while (HeapTupleIsValid(tuple = catalog_scan_next(&scan)))
	{
		if (!is_done(tuple, RelationGetDescr(scan.rel)))
			result = lappend(result, skip_from_tuple(tuple, RelationGetDescr(scan.rel)));
	}
	catalog_scan_end(&scan);
	return result;
}

int64
catalog_skip_count(int32 pipeline_id)
{
	CatalogScan scan;
	HeapTuple	tuple;
	int64		count = 0;

	catalog_scan_begin(&scan, CATALOG_REL_SKIPPED_TRANSACTION, AccessShareLock, 1, &pipeline_id);
	while (HeapTupleIsValid(tuple = catalog_scan_next(&scan)))
		count += is_done(tuple, RelationGetDescr(scan.rel)) ? 1 : 0;
	catalog_scan_end(&scan);
	return count;
}

int32
catalog_skip_last(int32 pipeline_id)
{
	return catalog_last_id(CATALOG_REL_SKIPPED_TRANSACTION, Anum_skipped_transaction_skip_id, pipeline_id);
}

/* Do two requests mean the same transaction, as far as their words tell? */
static bool
is_same(const CatalogSkip *a, const CatalogSkip *b)
{
	if (a->gtid != NULL || b->gtid != NULL)
		return a->gtid != NULL && b->gtid != NULL && strcmp(a->gtid, b->gtid) == 0;
	return a->position.offset == b->position.offset && strcmp(a->position.file, b->position.file) == 0;
}

bool
catalog_skip_add(CatalogSkip *skip)
{
	Datum		values[Natts_skipped_transaction] = {0};
	bool		nulls[Natts_skipped_transaction] = {0};
	char		text[CDC_POSITION_TEXT_MAX];
	Relation	rel;
	ListCell   *lc;

	catalog_lock_state(skip->pipeline_id);
	foreach(lc, catalog_skip_list(skip->pipeline_id))
	{
		if (is_same(lfirst(lc), skip))
			return false;
	}

	skip->skip_id = catalog_skip_last(skip->pipeline_id) + 1;
	cdc_position_format(&skip->position, text);
	values[Anum_skipped_transaction_pipeline_id - 1] = Int32GetDatum(skip->pipeline_id);
	values[Anum_skipped_transaction_skip_id - 1] = Int32GetDatum(skip->skip_id);
	catalog_set_text(values, nulls, Anum_skipped_transaction_position, text[0] != '\0' ? text : NULL);
	catalog_set_text(values, nulls, Anum_skipped_transaction_gtid, skip->gtid);
	values[Anum_skipped_transaction_requested_by - 1] = ObjectIdGetDatum(GetUserId());
	values[Anum_skipped_transaction_requested_at - 1] = TimestampTzGetDatum(GetCurrentTimestamp());
	for (int i = Anum_skipped_transaction_skipped_at; i <= Natts_skipped_transaction; i++)
		nulls[i - 1] = true;

	rel = table_open(catalog_relation_oid(CATALOG_REL_SKIPPED_TRANSACTION), RowExclusiveLock);
	catalog_tuple_insert(rel, values, nulls);
	table_close(rel, NoLock);
	return true;
}

void
catalog_skip_set_done(int32 pipeline_id, int32 skip_id, const CdcPosition *position, int64 changes)
{
	int32		keys[] = {pipeline_id, skip_id};
	Datum		values[Natts_skipped_transaction] = {0};
	bool		nulls[Natts_skipped_transaction] = {0};
	bool		replaces[Natts_skipped_transaction] = {0};
	char		text[CDC_POSITION_TEXT_MAX];
	CatalogScan scan;
	HeapTuple	tuple;

	cdc_position_format(position, text);
	values[Anum_skipped_transaction_skipped_at - 1] = TimestampTzGetDatum(GetCurrentTimestamp());
	catalog_set_text(values, nulls, Anum_skipped_transaction_skipped_position, text);
	values[Anum_skipped_transaction_skipped_changes - 1] = Int64GetDatum(changes);
	for (int i = Anum_skipped_transaction_skipped_at; i <= Natts_skipped_transaction; i++)
		replaces[i - 1] = true;

	catalog_scan_begin(&scan, CATALOG_REL_SKIPPED_TRANSACTION, RowExclusiveLock, 2, keys);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
		catalog_tuple_update(scan.rel, tuple, values, nulls, replaces);
	catalog_scan_end(&scan);
}

void
catalog_skip_remove(int32 pipeline_id, int32 skip_id)
{
	int32		keys[] = {pipeline_id, skip_id};

	catalog_delete_rows(CATALOG_REL_SKIPPED_TRANSACTION, 2, keys);
}
