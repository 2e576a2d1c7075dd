/*-------------------------------------------------------------------------
 *
 * catalog_export.c
 *	  Rows of cdc_bridge.export_state, and names of slots.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "utils/pg_lsn.h"

#include "catalog/catalog_export.h"
#include "catalog/catalog_heap.h"
#include "util/util_name.h"

static XLogRecPtr
get_lsn(HeapTuple tuple, TupleDesc desc, int attnum)
{
	return (XLogRecPtr) catalog_get_int64(tuple, desc, attnum);
}

CatalogExport *
catalog_export_load(int32 pipeline_id)
{
	CatalogScan scan;
	HeapTuple	tuple;
	CatalogExport *state = NULL;

	catalog_scan_begin(&scan, CATALOG_REL_EXPORT_STATE, AccessShareLock, 1, &pipeline_id);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
	{
		TupleDesc	desc = RelationGetDescr(scan.rel);

		state = palloc0(sizeof(CatalogExport));
		state->pipeline_id = pipeline_id;
		state->slot_name = catalog_get_text(tuple, desc, Anum_export_state_slot_name);
		state->system_identifier = catalog_get_text(tuple, desc, Anum_export_state_system_identifier);
		state->timeline = (TimeLineID) catalog_get_int32(tuple, desc, Anum_export_state_timeline);
		state->start_lsn = get_lsn(tuple, desc, Anum_export_state_start_lsn);
		state->confirmed_lsn = get_lsn(tuple, desc, Anum_export_state_confirmed_lsn);
		state->sink_lsn = get_lsn(tuple, desc, Anum_export_state_sink_lsn);
		state->is_begun = catalog_get_bool(tuple, desc, Anum_export_state_is_begun);
		state->created_at = catalog_get_time(tuple, desc, Anum_export_state_created_at);
		state->tables = catalog_get_list(tuple, desc, Anum_export_state_tables);
		state->last_chunk = catalog_get_int32(tuple, desc, Anum_export_state_last_chunk);
	}
	catalog_scan_end(&scan);
	return state;
}

void
catalog_export_insert(const CatalogExport *state)
{
	Datum		values[Natts_export_state] = {0};
	bool		nulls[Natts_export_state] = {0};
	Relation	rel;

	values[Anum_export_state_pipeline_id - 1] = Int32GetDatum(state->pipeline_id);
	catalog_set_text(values, nulls, Anum_export_state_slot_name, state->slot_name);
	catalog_set_text(values, nulls, Anum_export_state_system_identifier, state->system_identifier);
	values[Anum_export_state_timeline - 1] = Int32GetDatum((int32) state->timeline);
	values[Anum_export_state_start_lsn - 1] = LSNGetDatum(state->start_lsn);
	values[Anum_export_state_confirmed_lsn - 1] = LSNGetDatum(state->confirmed_lsn);
	values[Anum_export_state_sink_lsn - 1] = LSNGetDatum(state->sink_lsn);
	values[Anum_export_state_is_begun - 1] = BoolGetDatum(state->is_begun);
	values[Anum_export_state_created_at - 1] = TimestampTzGetDatum(state->created_at);
	nulls[Anum_export_state_tables - 1] = true;
	values[Anum_export_state_last_chunk - 1] = Int32GetDatum(0);

	rel = table_open(catalog_relation_oid(CATALOG_REL_EXPORT_STATE), RowExclusiveLock);
	catalog_tuple_insert(rel, values, nulls);
	table_close(rel, NoLock);
}

/* Change some columns of the pipeline's row. */
static void
update(int32 pipeline_id, Datum *values, bool *replaces)
{
	CatalogScan scan;
	HeapTuple	tuple;
	bool		nulls[Natts_export_state] = {0};

	catalog_scan_begin(&scan, CATALOG_REL_EXPORT_STATE, RowExclusiveLock, 1, &pipeline_id);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
		catalog_tuple_update(scan.rel, tuple, values, nulls, replaces);
	catalog_scan_end(&scan);
}

void
catalog_export_confirm(int32 pipeline_id, XLogRecPtr lsn, XLogRecPtr sink_lsn, TimeLineID timeline)
{
	Datum		values[Natts_export_state] = {0};
	bool		replaces[Natts_export_state] = {0};

	values[Anum_export_state_confirmed_lsn - 1] = LSNGetDatum(lsn);
	replaces[Anum_export_state_confirmed_lsn - 1] = true;
	values[Anum_export_state_sink_lsn - 1] = LSNGetDatum(sink_lsn);
	replaces[Anum_export_state_sink_lsn - 1] = true;
	values[Anum_export_state_timeline - 1] = Int32GetDatum((int32) timeline);
	replaces[Anum_export_state_timeline - 1] = true;
	update(pipeline_id, values, replaces);
}

void
catalog_export_set_begun(int32 pipeline_id)
{
	Datum		values[Natts_export_state] = {0};
	bool		replaces[Natts_export_state] = {0};

	values[Anum_export_state_is_begun - 1] = BoolGetDatum(true);
	replaces[Anum_export_state_is_begun - 1] = true;
	update(pipeline_id, values, replaces);
}

void
catalog_export_set_tables(int32 pipeline_id, const List *tables)
{
	Datum		values[Natts_export_state] = {0};
	bool		replaces[Natts_export_state] = {0};

	values[Anum_export_state_tables - 1] = util_text_array(tables);
	replaces[Anum_export_state_tables - 1] = true;
	update(pipeline_id, values, replaces);
}

void
catalog_export_set_last_chunk(int32 pipeline_id, int32 chunk_no)
{
	Datum		values[Natts_export_state] = {0};
	bool		replaces[Natts_export_state] = {0};

	values[Anum_export_state_last_chunk - 1] = Int32GetDatum(chunk_no);
	replaces[Anum_export_state_last_chunk - 1] = true;
	update(pipeline_id, values, replaces);
}

char *
catalog_export_slot_name(Oid database, int32 pipeline_id)
{
	return psprintf("cdc_%u_%d", database, pipeline_id);
}

int32
catalog_export_slot_pipeline(Oid database, const char *slot_name)
{
	int			number = 0;
	int			end = -1;
	char	   *prefix = psprintf("cdc_%u_", database);
	size_t		len = strlen(prefix);

	if (strncmp(slot_name, prefix, len) != 0 || slot_name[len] < '1' || slot_name[len] > '9' ||
		sscanf(slot_name + len, "%9d%n", &number, &end) != 1 || slot_name[len + end] != '\0')
		number = 0;
	pfree(prefix);
	return number;
}
