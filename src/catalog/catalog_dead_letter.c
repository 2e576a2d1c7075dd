/*-------------------------------------------------------------------------
 *
 * catalog_dead_letter.c
 *	  Rows of cdc_bridge.dead_letter: changes that could not be applied.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "utils/builtins.h"

#include "catalog/catalog_heap.h"

void
catalog_dead_letter_insert(const CatalogDeadLetter *letter)
{
	Datum		values[Natts_dead_letter] = {0};
	bool		nulls[Natts_dead_letter] = {0};
	bool		is_known = cdc_position_is_known(&letter->position);
	char		gtid[CDC_GTID_TEXT_MAX];
	Relation	rel;

	cdc_gtid_format(&letter->gtid, gtid);
	values[Anum_dead_letter_pipeline_id - 1] = Int32GetDatum(letter->pipeline_id);
	values[Anum_dead_letter_id - 1] = Int64GetDatum(catalog_next_id("dead_letter_id_seq"));
	values[Anum_dead_letter_table_id - 1] = Int32GetDatum(letter->table_id);
	nulls[Anum_dead_letter_file - 1] = nulls[Anum_dead_letter_offset - 1] = !is_known;
	if (is_known)
	{
		values[Anum_dead_letter_file - 1] = CStringGetTextDatum(letter->position.file);
		values[Anum_dead_letter_offset - 1] = Int64GetDatum((int64) letter->position.offset);
	}
	nulls[Anum_dead_letter_gtid - 1] = gtid[0] == '\0';
	values[Anum_dead_letter_gtid - 1] = CStringGetTextDatum(gtid);
	values[Anum_dead_letter_action - 1] = Int64GetDatum(letter->action);
	values[Anum_dead_letter_operation - 1] = CStringGetTextDatum(letter->operation);
	values[Anum_dead_letter_before - 1] = letter->before;
	nulls[Anum_dead_letter_before - 1] = letter->before == (Datum) 0;
	values[Anum_dead_letter_after - 1] = letter->after;
	nulls[Anum_dead_letter_after - 1] = letter->after == (Datum) 0;
	catalog_set_error(values, nulls, Anum_dead_letter_error, &letter->error);
	values[Anum_dead_letter_created_at - 1] = TimestampTzGetDatum(GetCurrentTimestamp());

	rel = table_open(catalog_relation_oid(CATALOG_REL_DEAD_LETTER), RowExclusiveLock);
	catalog_tuple_insert(rel, values, nulls);
	table_close(rel, NoLock);
}

List *
catalog_dead_letter_list(int32 pipeline_id)
{
	CatalogScan scan;
	HeapTuple	tuple;
	List	   *result = NIL;

	catalog_scan_begin(&scan, CATALOG_REL_DEAD_LETTER, AccessShareLock, 1, &pipeline_id);
	while (HeapTupleIsValid(tuple = catalog_scan_next(&scan)))
	{
		TupleDesc	desc = RelationGetDescr(scan.rel);
		CatalogDeadLetter *letter = palloc0(sizeof(CatalogDeadLetter));

		letter->pipeline_id = pipeline_id;
		letter->id = catalog_get_int64(tuple, desc, Anum_dead_letter_id);
		letter->table_id = catalog_get_int32(tuple, desc, Anum_dead_letter_table_id);
		catalog_get_position(tuple, desc, Anum_dead_letter_file, &letter->position);
		letter->gtid_text = catalog_get_text(tuple, desc, Anum_dead_letter_gtid);
		letter->action = catalog_get_int64(tuple, desc, Anum_dead_letter_action);
		letter->operation = catalog_get_text(tuple, desc, Anum_dead_letter_operation);
		letter->before = catalog_get_varlena(tuple, desc, Anum_dead_letter_before);
		letter->after = catalog_get_varlena(tuple, desc, Anum_dead_letter_after);
		catalog_get_error(tuple, desc, Anum_dead_letter_error, &letter->shown_error);
		letter->created_at = catalog_get_time(tuple, desc, Anum_dead_letter_created_at);
		result = lappend(result, letter);
	}
	catalog_scan_end(&scan);
	return result;
}
