/*-------------------------------------------------------------------------
 *
 * catalog_table.c
 *	  Rows of cdc_bridge.pipeline_table and cdc_bridge.table_state.
 *
 * NOTES
 *	  A table's state goes SNAPSHOT -> CATCHUP -> STREAMING, and from each of
 *	  them to STOPPED. Each step is one function here that looks, under the
 *	  pipeline's state lock, whether the table is still where the step begins.
 *
 *	  A dump has pipeline_table and not table_state, which would be wrong in
 *	  another database. Whether a table's rows can be gone on with must not be
 *	  lost with it: pipeline_table.complete says it, and every function that
 *	  makes a table STREAMING, or takes it out of that, writes it as well.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "utils/builtins.h"

#include "catalog/catalog_dead_letter.h"
#include "catalog/catalog_heap.h"
#include "compat/pg_compat.h"

static const char *const state_names[] = {
	[CATALOG_TABLE_SNAPSHOT] = "snapshot",
	[CATALOG_TABLE_CATCHUP] = "catchup",
	[CATALOG_TABLE_STREAMING] = "streaming",
	[CATALOG_TABLE_STOPPED] = "stopped"
};

/* A change to a table's state row, being made. */
typedef struct StateUpdate
{
	CatalogScan scan;
	HeapTuple	tuple;			/* NULL: the row is gone */
	Datum		values[Natts_table_state];
	bool		nulls[Natts_table_state];
	bool		replaces[Natts_table_state];
} StateUpdate;

const char *
catalog_table_state_name(CatalogTableState state)
{
	return state_names[state];
}

static CatalogTableState
get_state(HeapTuple tuple, TupleDesc desc, int attnum)
{
	return (CatalogTableState) catalog_get_word(tuple, desc, attnum, state_names, lengthof(state_names));
}

static CatalogTable *
table_from_tuple(HeapTuple tuple, TupleDesc desc)
{
	CatalogTable *table = palloc0(sizeof(CatalogTable));

	table->pipeline_id = catalog_get_int32(tuple, desc, Anum_pipeline_table_pipeline_id);
	table->table_id = catalog_get_int32(tuple, desc, Anum_pipeline_table_table_id);
	table->source_schema = catalog_get_text(tuple, desc, Anum_pipeline_table_source_schema);
	table->source_table = catalog_get_text(tuple, desc, Anum_pipeline_table_source_table);
	table->target_schema = catalog_get_text(tuple, desc, Anum_pipeline_table_target_schema);
	table->target_table = catalog_get_text(tuple, desc, Anum_pipeline_table_target_table);
	table->complete = catalog_get_bool(tuple, desc, Anum_pipeline_table_complete);
	table->made = catalog_get_bool(tuple, desc, Anum_pipeline_table_made);
	table->state = CATALOG_TABLE_STOPPED;
	return table;
}

static void
read_state(CatalogTable *table, HeapTuple tuple, TupleDesc desc)
{
	table->state = get_state(tuple, desc, Anum_table_state_state);
	table->generation = catalog_get_int32(tuple, desc, Anum_table_state_generation);
	table->target = catalog_get_oid(tuple, desc, Anum_table_state_target);
	table->definition = catalog_get_varlena(tuple, desc, Anum_table_state_definition);
	catalog_get_position(tuple, desc, Anum_table_state_high_file, &table->high_mark);
	catalog_get_position(tuple, desc, Anum_table_state_stop_file, &table->stop_position);
	table->row_estimate = catalog_get_int64(tuple, desc, Anum_table_state_row_estimate);
	table->rows_copied = catalog_get_int64(tuple, desc, Anum_table_state_rows_copied);
	table->chunks = catalog_get_int32(tuple, desc, Anum_table_state_chunks);
	catalog_get_error(tuple, desc, Anum_table_state_last_error, &table->last_error);
	table->last_error.at = catalog_get_time(tuple, desc, Anum_table_state_last_error_at);
	table->snapshot_started_at = catalog_get_time(tuple, desc, Anum_table_state_snapshot_started_at);
	table->snapshot_finished_at = catalog_get_time(tuple, desc, Anum_table_state_snapshot_finished_at);
	table->resync_wanted = catalog_get_bool(tuple, desc, Anum_table_state_resync_wanted);
	table->keeps_rows = catalog_get_bool(tuple, desc, Anum_table_state_keeps_rows);
	table->swap_into = catalog_get_oid(tuple, desc, Anum_table_state_swap_into);
	catalog_get_position(tuple, desc, Anum_table_state_join_file, &table->join_position);
	table->join_gtids = catalog_get_text(tuple, desc, Anum_table_state_join_gtids);
	table->chunks_allowed = catalog_get_bool(tuple, desc, Anum_table_state_chunks_allowed);
	catalog_get_position(tuple, desc, Anum_table_state_mark_file, &table->mark);
	table->mark_gtids = catalog_get_text(tuple, desc, Anum_table_state_mark_gtids);
	table->own_rows = catalog_get_varlena(tuple, desc, Anum_table_state_own_rows);
}

/*
 * Read the tables of a pipeline, or (nkeys 2) the one table, by table_id. Both
 * relations are walked side by side in the order of their primary keys. A
 * table without a state row came from a dump: it counts as stopped.
 */
static List *
read_tables(int nkeys, const int32 *keys)
{
	CatalogScan scan;
	HeapTuple	tuple;
	List	   *result = NIL;
	ListCell   *lc;

	catalog_scan_begin_ordered(&scan, CATALOG_REL_PIPELINE_TABLE, AccessShareLock, nkeys, keys);
	while (HeapTupleIsValid(tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection)))
		result = lappend(result, table_from_tuple(tuple, RelationGetDescr(scan.rel)));
	catalog_scan_end(&scan);

	lc = list_head(result);
	catalog_scan_begin_ordered(&scan, CATALOG_REL_TABLE_STATE, AccessShareLock, nkeys, keys);
	while (lc != NULL && HeapTupleIsValid(tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection)))
	{
		TupleDesc	desc = RelationGetDescr(scan.rel);
		int32		table_id = catalog_get_int32(tuple, desc, Anum_table_state_table_id);

		while (lc != NULL && ((CatalogTable *) lfirst(lc))->table_id < table_id)
			lc = lnext(result, lc);
		if (lc != NULL && ((CatalogTable *) lfirst(lc))->table_id == table_id)
			read_state(lfirst(lc), tuple, desc);
	}
	catalog_scan_end(&scan);
	return result;
}

List *
catalog_table_list(int32 pipeline_id)
{
	return read_tables(1, &pipeline_id);
}

CatalogTable *
catalog_table_by_id(int32 pipeline_id, int32 table_id)
{
	int32		keys[] = {pipeline_id, table_id};
	List	   *tables = read_tables(2, keys);

	return tables == NIL ? NULL : linitial(tables);
}

List *
catalog_table_list_left(int32 pipeline_id)
{
	List	   *tables = catalog_table_list(pipeline_id);
	ListCell   *lc = list_head(tables);
	List	   *result = NIL;
	CatalogScan scan;
	HeapTuple	tuple;

	catalog_scan_begin_ordered(&scan, CATALOG_REL_TABLE_STATE, AccessShareLock, 1, &pipeline_id);
	while (HeapTupleIsValid(tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection)))
	{
		TupleDesc	desc = RelationGetDescr(scan.rel);
		int32		table_id = catalog_get_int32(tuple, desc, Anum_table_state_table_id);
		CatalogTable *table;

		while (lc != NULL && ((CatalogTable *) lfirst(lc))->table_id < table_id)
			lc = lnext(tables, lc);
		if (lc != NULL && ((CatalogTable *) lfirst(lc))->table_id == table_id)
			continue;
		table = palloc0(sizeof(CatalogTable));
		table->pipeline_id = pipeline_id;
		table->table_id = table_id;
		table->target = catalog_get_oid(tuple, desc, Anum_table_state_target);
		table->swap_into = catalog_get_oid(tuple, desc, Anum_table_state_swap_into);
		result = lappend(result, table);
	}
	catalog_scan_end(&scan);
	return result;
}

/* Highest number of a table that has left for good. */
static int32
last_left(int32 pipeline_id)
{
	CatalogScan scan;
	HeapTuple	tuple;
	int32		result = 0;

	catalog_scan_begin(&scan, CATALOG_REL_PIPELINE_STATE, AccessShareLock, 1, &pipeline_id);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
		result = catalog_get_int32(tuple, RelationGetDescr(scan.rel), Anum_pipeline_state_last_left);
	catalog_scan_end(&scan);
	return result;
}

static void
note_left(int32 pipeline_id, int32 table_id)
{
	CatalogScan scan;
	HeapTuple	tuple;
	Datum		values[Natts_pipeline_state] = {0};
	bool		nulls[Natts_pipeline_state] = {0};
	bool		replaces[Natts_pipeline_state] = {0};

	catalog_scan_begin(&scan, CATALOG_REL_PIPELINE_STATE, RowExclusiveLock, 1, &pipeline_id);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple) &&
		catalog_get_int32(tuple, RelationGetDescr(scan.rel), Anum_pipeline_state_last_left) < table_id)
	{
		values[Anum_pipeline_state_last_left - 1] = Int32GetDatum(table_id);
		replaces[Anum_pipeline_state_last_left - 1] = true;
		catalog_tuple_update(scan.rel, tuple, values, nulls, replaces);
	}
	catalog_scan_end(&scan);
}

/* Highest table_id that a pipeline has used; 0 when it had no tables yet. */
static int32
last_table_id(int32 pipeline_id)
{
	StaticAssertStmt((int) Anum_pipeline_table_table_id == (int) Anum_table_state_table_id, "same column");
	return Max(last_left(pipeline_id),
			   Max(catalog_last_id(CATALOG_REL_PIPELINE_TABLE, Anum_pipeline_table_table_id, pipeline_id),
				   catalog_last_id(CATALOG_REL_TABLE_STATE, Anum_table_state_table_id, pipeline_id)));
}

static void
insert_table_row(const CatalogTable *table)
{
	Datum		values[Natts_pipeline_table] = {0};
	bool		nulls[Natts_pipeline_table] = {0};
	Relation	rel;

	values[Anum_pipeline_table_pipeline_id - 1] = Int32GetDatum(table->pipeline_id);
	values[Anum_pipeline_table_table_id - 1] = Int32GetDatum(table->table_id);
	catalog_set_text(values, nulls, Anum_pipeline_table_source_schema, table->source_schema);
	catalog_set_text(values, nulls, Anum_pipeline_table_source_table, table->source_table);
	catalog_set_text(values, nulls, Anum_pipeline_table_target_schema, table->target_schema);
	catalog_set_text(values, nulls, Anum_pipeline_table_target_table, table->target_table);
	values[Anum_pipeline_table_complete - 1] = BoolGetDatum(table->state == CATALOG_TABLE_STREAMING);
	values[Anum_pipeline_table_made - 1] = BoolGetDatum(table->made);

	rel = table_open(catalog_relation_oid(CATALOG_REL_PIPELINE_TABLE), RowExclusiveLock);
	catalog_tuple_insert(rel, values, nulls);
	table_close(rel, NoLock);
}

/* Note what a dump is to say of the table's rows. No-op for a table that has left. The caller holds the state lock. */
static void
note_complete(int32 pipeline_id, int32 table_id, bool complete)
{
	int32		keys[] = {pipeline_id, table_id};
	Datum		values[Natts_pipeline_table] = {0};
	bool		nulls[Natts_pipeline_table] = {0};
	bool		replaces[Natts_pipeline_table] = {0};
	CatalogScan scan;
	HeapTuple	tuple;

	catalog_scan_begin(&scan, CATALOG_REL_PIPELINE_TABLE, RowExclusiveLock, 2, keys);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple) &&
		catalog_get_bool(tuple, RelationGetDescr(scan.rel), Anum_pipeline_table_complete) != complete)
	{
		values[Anum_pipeline_table_complete - 1] = BoolGetDatum(complete);
		replaces[Anum_pipeline_table_complete - 1] = true;
		catalog_tuple_update(scan.rel, tuple, values, nulls, replaces);
	}
	catalog_scan_end(&scan);
}

void
catalog_table_set_names(const CatalogTable *table)
{
	static const int attnums[] = {Anum_pipeline_table_source_schema, Anum_pipeline_table_source_table,
	Anum_pipeline_table_target_schema, Anum_pipeline_table_target_table};
	int32		keys[] = {table->pipeline_id, table->table_id};
	Datum		values[Natts_pipeline_table] = {0};
	bool		nulls[Natts_pipeline_table] = {0};
	bool		replaces[Natts_pipeline_table] = {0};
	CatalogScan scan;
	HeapTuple	tuple;

	catalog_lock_state(table->pipeline_id);
	catalog_set_text(values, nulls, Anum_pipeline_table_source_schema, table->source_schema);
	catalog_set_text(values, nulls, Anum_pipeline_table_source_table, table->source_table);
	catalog_set_text(values, nulls, Anum_pipeline_table_target_schema, table->target_schema);
	catalog_set_text(values, nulls, Anum_pipeline_table_target_table, table->target_table);
	for (int i = 0; i < (int) lengthof(attnums); i++)
		replaces[attnums[i] - 1] = true;
	values[Anum_pipeline_table_made - 1] = BoolGetDatum(table->made);
	replaces[Anum_pipeline_table_made - 1] = true;
	catalog_scan_begin(&scan, CATALOG_REL_PIPELINE_TABLE, RowExclusiveLock, 2, keys);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
		catalog_tuple_update(scan.rel, tuple, values, nulls, replaces);
	catalog_scan_end(&scan);
}

/* Write the state of a table. One that begins with a snapshot has begun it now. */
void
catalog_table_insert_state(const CatalogTable *table, const UtilErrorInfo *error)
{
	Datum		values[Natts_table_state] = {0};
	bool		nulls[Natts_table_state] = {0};
	Datum		now = TimestampTzGetDatum(GetCurrentTimestamp());
	Relation	rel;

	catalog_lock_state(table->pipeline_id);
	values[Anum_table_state_pipeline_id - 1] = Int32GetDatum(table->pipeline_id);
	values[Anum_table_state_table_id - 1] = Int32GetDatum(table->table_id);
	catalog_set_text(values, nulls, Anum_table_state_state, state_names[table->state]);
	values[Anum_table_state_generation - 1] = Int32GetDatum(table->generation);
	values[Anum_table_state_target - 1] = ObjectIdGetDatum(table->target);
	values[Anum_table_state_definition - 1] = table->definition;
	nulls[Anum_table_state_definition - 1] = table->definition == (Datum) 0;
	catalog_set_position(values, nulls, Anum_table_state_high_file, &table->high_mark);
	catalog_set_position(values, nulls, Anum_table_state_stop_file, &table->stop_position);
	values[Anum_table_state_row_estimate - 1] = Int64GetDatum(table->row_estimate);
	values[Anum_table_state_rows_copied - 1] = Int64GetDatum(table->rows_copied);
	values[Anum_table_state_chunks - 1] = Int32GetDatum(table->chunks);
	catalog_set_error(values, nulls, Anum_table_state_last_error, error);
	values[Anum_table_state_last_error_at - 1] = now;
	nulls[Anum_table_state_last_error_at - 1] = error == NULL;
	values[Anum_table_state_snapshot_started_at - 1] = now;
	nulls[Anum_table_state_snapshot_started_at - 1] = table->state != CATALOG_TABLE_SNAPSHOT;
	nulls[Anum_table_state_snapshot_finished_at - 1] = true;
	values[Anum_table_state_resync_wanted - 1] = BoolGetDatum(false);
	values[Anum_table_state_swap_into - 1] = ObjectIdGetDatum(table->swap_into);
	catalog_set_position(values, nulls, Anum_table_state_join_file, &table->join_position);
	catalog_set_text(values, nulls, Anum_table_state_join_gtids, table->join_gtids);
	values[Anum_table_state_chunks_allowed - 1] = BoolGetDatum(table->chunks_allowed);
	for (int i = Anum_table_state_mark_file; i <= Anum_table_state_mark_gtids; i++)
		nulls[i - 1] = true;
	values[Anum_table_state_keeps_rows - 1] = BoolGetDatum(false);
	values[Anum_table_state_own_rows - 1] = table->own_rows;
	nulls[Anum_table_state_own_rows - 1] = table->own_rows == (Datum) 0;

	rel = table_open(catalog_relation_oid(CATALOG_REL_TABLE_STATE), RowExclusiveLock);
	catalog_tuple_insert(rel, values, nulls);
	table_close(rel, NoLock);
	note_complete(table->pipeline_id, table->table_id, table->state == CATALOG_TABLE_STREAMING);
}

/* Write a new table of a pipeline with its state, giving it its number. */
void
catalog_table_insert(CatalogTable *table, const UtilErrorInfo *error)
{
	catalog_lock_state(table->pipeline_id);
	table->table_id = last_table_id(table->pipeline_id) + 1;
	insert_table_row(table);
	catalog_table_insert_state(table, error);
}

/* Lock the state and find the table's row; update->tuple is NULL when there is none. */
static void
state_update_begin(StateUpdate *update, int32 pipeline_id, int32 table_id)
{
	int32		keys[] = {pipeline_id, table_id};

	memset(update, 0, sizeof(*update));
	catalog_lock_state(pipeline_id);
	catalog_scan_begin(&update->scan, CATALOG_REL_TABLE_STATE, RowExclusiveLock, 2, keys);
	update->tuple = catalog_scan_next(&update->scan);
}

static bool
state_update_is_in(const StateUpdate *update, CatalogTableState state)
{
	return HeapTupleIsValid(update->tuple) &&
		get_state(update->tuple, RelationGetDescr(update->scan.rel), Anum_table_state_state) == state;
}

static void
state_update_set(StateUpdate *update, int attnum, Datum value)
{
	update->values[attnum - 1] = value;
	update->replaces[attnum - 1] = true;
}

static void
state_update_set_position(StateUpdate *update, int file_attnum, const CdcPosition *position)
{
	catalog_set_position(update->values, update->nulls, file_attnum, position);
	update->replaces[file_attnum - 1] = update->replaces[file_attnum] = true;
}

/* The error, with the time; NULL: none. */
static void
state_update_set_error(StateUpdate *update, const UtilErrorInfo *error)
{
	catalog_set_error(update->values, update->nulls, Anum_table_state_last_error, error);
	for (int i = Anum_table_state_last_error; i < Anum_table_state_last_error_at; i++)
		update->replaces[i - 1] = true;
	state_update_set(update, Anum_table_state_last_error_at, TimestampTzGetDatum(GetCurrentTimestamp()));
	update->nulls[Anum_table_state_last_error_at - 1] = error == NULL;
}

/* Write the row when write is set; close. */
static void
state_update_end(StateUpdate *update, bool write)
{
	if (write)
		catalog_tuple_update(update->scan.rel, update->tuple, update->values, update->nulls, update->replaces);
	catalog_scan_end(&update->scan);
}

bool
catalog_table_set_catchup(int32 pipeline_id, int32 table_id, int32 generation,
						  const CdcPosition *high_mark)
{
	StateUpdate update;
	int64		rows_copied;
	int32		chunks;
	bool		is_due;

	state_update_begin(&update, pipeline_id, table_id);
	is_due = state_update_is_in(&update, CATALOG_TABLE_SNAPSHOT) &&
		catalog_get_int32(update.tuple, RelationGetDescr(update.scan.rel),
						  Anum_table_state_generation) == generation;
	if (is_due)
	{
		/* the ledger will be emptied; what it comes to is worth keeping */
		catalog_chunk_sum(pipeline_id, table_id, generation, &chunks, &rows_copied);
		state_update_set(&update, Anum_table_state_state, CStringGetTextDatum(state_names[CATALOG_TABLE_CATCHUP]));
		state_update_set_position(&update, Anum_table_state_high_file, high_mark);
		state_update_set(&update, Anum_table_state_rows_copied, Int64GetDatum(rows_copied));
		state_update_set(&update, Anum_table_state_chunks, Int32GetDatum(chunks));
		state_update_set(&update, Anum_table_state_snapshot_finished_at,
						 TimestampTzGetDatum(GetCurrentTimestamp()));
		/* what the copy waited for; a new copy that is wanted meanwhile may wait still */
		if (!catalog_get_bool(update.tuple, RelationGetDescr(update.scan.rel), Anum_table_state_resync_wanted))
			state_update_set_error(&update, NULL);
	}
	state_update_end(&update, is_due);
	return is_due;
}

/* What only the snapshot needed: the ledger and the lists of keys. */
static void
delete_snapshot_rows(int32 pipeline_id, int32 table_id)
{
	int32		keys[] = {pipeline_id, table_id};

	catalog_delete_rows(CATALOG_REL_SNAPSHOT_DELETED, 2, keys);
	catalog_delete_rows(CATALOG_REL_SNAPSHOT_REREAD, 2, keys);
	catalog_delete_rows(CATALOG_REL_SNAPSHOT_CHUNK, 2, keys);
}

void
catalog_table_set_high_mark(int32 pipeline_id, int32 table_id, const CdcPosition *high_mark)
{
	StateUpdate update;
	bool		is_due;

	state_update_begin(&update, pipeline_id, table_id);
	is_due = state_update_is_in(&update, CATALOG_TABLE_SNAPSHOT);
	state_update_set_position(&update, Anum_table_state_high_file, high_mark);
	state_update_end(&update, is_due);
}

bool
catalog_table_set_streaming(int32 pipeline_id, int32 table_id)
{
	StateUpdate update;
	bool		is_due;

	state_update_begin(&update, pipeline_id, table_id);
	is_due = state_update_is_in(&update, CATALOG_TABLE_CATCHUP);
	if (is_due)
		state_update_set(&update, Anum_table_state_state, CStringGetTextDatum(state_names[CATALOG_TABLE_STREAMING]));
	state_update_end(&update, is_due);
	if (is_due)
	{
		delete_snapshot_rows(pipeline_id, table_id);
		note_complete(pipeline_id, table_id, true);
	}
	return is_due;
}

/*
 * Stop a table; a table that is stopped keeps its first error and position.
 * What its snapshot needed goes: no chunk of it is written any more, and changes
 * before its stop position, which may still be applied, do not look there. The
 * caller has locked the table, so that no chunk is being written.
 */
bool
catalog_table_set_stopped(int32 pipeline_id, int32 table_id, const CdcPosition *at, const UtilErrorInfo *error)
{
	StateUpdate update;
	bool		is_due;

	state_update_begin(&update, pipeline_id, table_id);
	is_due = HeapTupleIsValid(update.tuple) && !state_update_is_in(&update, CATALOG_TABLE_STOPPED);
	if (is_due && state_update_is_in(&update, CATALOG_TABLE_SNAPSHOT))
	{
		int32		generation = catalog_get_int32(update.tuple, RelationGetDescr(update.scan.rel),
												   Anum_table_state_generation);
		int64		rows_copied;
		int32		chunks;

		/* the ledger goes; how far the copy came is worth keeping */
		catalog_chunk_sum(pipeline_id, table_id, generation, &chunks, &rows_copied);
		if (chunks > 0)
		{
			state_update_set(&update, Anum_table_state_rows_copied, Int64GetDatum(rows_copied));
			state_update_set(&update, Anum_table_state_chunks, Int32GetDatum(chunks));
		}
	}
	if (is_due)
	{
		state_update_set(&update, Anum_table_state_state, CStringGetTextDatum(state_names[CATALOG_TABLE_STOPPED]));
		state_update_set_position(&update, Anum_table_state_stop_file, at);
		state_update_set_error(&update, error);
	}
	state_update_end(&update, is_due);
	if (is_due)
	{
		delete_snapshot_rows(pipeline_id, table_id);
		note_complete(pipeline_id, table_id, false);
	}
	return is_due;
}

void
catalog_table_set_definition(int32 pipeline_id, int32 table_id, Datum definition)
{
	StateUpdate update;
	bool		found;

	state_update_begin(&update, pipeline_id, table_id);
	found = HeapTupleIsValid(update.tuple);
	state_update_set(&update, Anum_table_state_definition, definition);
	state_update_end(&update, found);
}

void
catalog_table_set_own_rows(int32 pipeline_id, int32 table_id, Datum own_rows)
{
	StateUpdate update;
	bool		found;

	state_update_begin(&update, pipeline_id, table_id);
	found = HeapTupleIsValid(update.tuple);
	state_update_set(&update, Anum_table_state_own_rows, own_rows);
	state_update_end(&update, found);
}

void
catalog_table_leave(int32 pipeline_id, int32 table_id)
{
	int32		keys[] = {pipeline_id, table_id};

	catalog_lock_state(pipeline_id);
	catalog_delete_rows(CATALOG_REL_PIPELINE_TABLE, 2, keys);
}

void
catalog_table_forget(int32 pipeline_id, int32 table_id)
{
	int32		keys[] = {pipeline_id, table_id};

	catalog_lock_state(pipeline_id);
	delete_snapshot_rows(pipeline_id, table_id);
	catalog_delete_rows(CATALOG_REL_TARGET_INDEX, 2, keys);
	catalog_delete_rows(CATALOG_REL_TABLE_STATE, 2, keys);
	(void) catalog_dead_letter_supersede_table(pipeline_id, table_id, "the table has left the pipeline");
	note_left(pipeline_id, table_id);
}

bool
catalog_table_ask_resync(int32 pipeline_id, int32 table_id)
{
	StateUpdate update;
	bool		found;

	state_update_begin(&update, pipeline_id, table_id);
	found = HeapTupleIsValid(update.tuple);
	state_update_set(&update, Anum_table_state_resync_wanted, BoolGetDatum(true));
	state_update_end(&update, found);
	return found;
}

void
catalog_table_set_keeps_rows(int32 pipeline_id, int32 table_id, bool keeps_rows)
{
	StateUpdate update;

	state_update_begin(&update, pipeline_id, table_id);
	state_update_set(&update, Anum_table_state_keeps_rows, BoolGetDatum(keeps_rows));
	state_update_end(&update, HeapTupleIsValid(update.tuple));
}

void
catalog_table_copy_anew(int32 pipeline_id, int32 table_id)
{
	CdcPosition unknown = {0};
	StateUpdate update;
	bool		found;

	state_update_begin(&update, pipeline_id, table_id);
	found = HeapTupleIsValid(update.tuple) && !state_update_is_in(&update, CATALOG_TABLE_STOPPED);
	if (found)
	{
		int32		generation = catalog_get_int32(update.tuple, RelationGetDescr(update.scan.rel), Anum_table_state_generation);

		state_update_set(&update, Anum_table_state_state, CStringGetTextDatum(state_names[CATALOG_TABLE_SNAPSHOT]));
		state_update_set(&update, Anum_table_state_generation, Int32GetDatum(generation + 1));
		state_update_set(&update, Anum_table_state_chunks_allowed, BoolGetDatum(false));
		state_update_set(&update, Anum_table_state_resync_wanted, BoolGetDatum(true));
		state_update_set_position(&update, Anum_table_state_high_file, &unknown);
		for (int i = Anum_table_state_mark_file; i <= Anum_table_state_mark_gtids; i++)
			update.nulls[i - 1] = update.replaces[i - 1] = true;
		state_update_set_error(&update, NULL);
	}
	state_update_end(&update, found);
	if (!found)
		return;
	delete_snapshot_rows(pipeline_id, table_id);
	note_complete(pipeline_id, table_id, false);
}

void
catalog_table_begin_anew(const CatalogTable *table, const UtilErrorInfo *error)
{
	StateUpdate update;
	Datum		now = TimestampTzGetDatum(GetCurrentTimestamp());
	bool		found;

	state_update_begin(&update, table->pipeline_id, table->table_id);
	found = HeapTupleIsValid(update.tuple);
	state_update_set(&update, Anum_table_state_state, CStringGetTextDatum(state_names[table->state]));
	state_update_set(&update, Anum_table_state_generation, Int32GetDatum(table->generation));
	state_update_set(&update, Anum_table_state_target, ObjectIdGetDatum(table->target));
	state_update_set(&update, Anum_table_state_definition, table->definition);
	update.nulls[Anum_table_state_definition - 1] = table->definition == (Datum) 0;
	state_update_set_position(&update, Anum_table_state_high_file, &table->high_mark);
	state_update_set_position(&update, Anum_table_state_stop_file, &table->stop_position);
	state_update_set(&update, Anum_table_state_row_estimate, Int64GetDatum(table->row_estimate));
	state_update_set(&update, Anum_table_state_rows_copied, Int64GetDatum(0));
	state_update_set(&update, Anum_table_state_chunks, Int32GetDatum(0));
	state_update_set_error(&update, error);
	state_update_set(&update, Anum_table_state_snapshot_started_at, now);
	update.nulls[Anum_table_state_snapshot_started_at - 1] = table->state != CATALOG_TABLE_SNAPSHOT;
	state_update_set(&update, Anum_table_state_snapshot_finished_at, now);
	update.nulls[Anum_table_state_snapshot_finished_at - 1] = true;
	state_update_set(&update, Anum_table_state_resync_wanted, BoolGetDatum(false));
	state_update_set(&update, Anum_table_state_swap_into, ObjectIdGetDatum(table->swap_into));
	state_update_set_position(&update, Anum_table_state_join_file, &table->join_position);
	catalog_set_text(update.values, update.nulls, Anum_table_state_join_gtids, table->join_gtids);
	update.replaces[Anum_table_state_join_gtids - 1] = true;
	state_update_set(&update, Anum_table_state_chunks_allowed, BoolGetDatum(false));
	for (int i = Anum_table_state_mark_file; i <= Anum_table_state_mark_gtids; i++)
		update.nulls[i - 1] = update.replaces[i - 1] = true;
	state_update_set(&update, Anum_table_state_own_rows, table->own_rows);
	update.nulls[Anum_table_state_own_rows - 1] = table->own_rows == (Datum) 0;
	state_update_end(&update, found);
	delete_snapshot_rows(table->pipeline_id, table->table_id);
	(void) catalog_dead_letter_supersede_table(table->pipeline_id, table->table_id, "the table was copied anew");
	note_complete(table->pipeline_id, table->table_id, table->state == CATALOG_TABLE_STREAMING);
}

static bool
chunks_are_allowed(const StateUpdate *update)
{
	return catalog_get_bool(update->tuple, RelationGetDescr(update->scan.rel), Anum_table_state_chunks_allowed);
}

bool
catalog_table_allow_chunks(int32 pipeline_id, int32 table_id, int32 generation,
						   const CdcPosition *mark, const char *mark_gtids, bool *xa_passed)
{
	StateUpdate update;
	bool		is_due;

	*xa_passed = false;
	state_update_begin(&update, pipeline_id, table_id);
	is_due = state_update_is_in(&update, CATALOG_TABLE_SNAPSHOT) &&
		catalog_get_int32(update.tuple, RelationGetDescr(update.scan.rel),
						  Anum_table_state_generation) == generation &&
		!chunks_are_allowed(&update);
	if (is_due && !cdc_position_is_known(mark) && mark_gtids == NULL)
	{
		CdcPosition passed;

		catalog_get_position(update.tuple, RelationGetDescr(update.scan.rel), Anum_table_state_mark_file, &passed);
		*xa_passed = cdc_position_is_known(&passed);
		is_due = !*xa_passed;
	}
	if (is_due)
	{
		state_update_set(&update, Anum_table_state_chunks_allowed, BoolGetDatum(true));
		state_update_set_position(&update, Anum_table_state_mark_file, mark);
		catalog_set_text(update.values, update.nulls, Anum_table_state_mark_gtids, mark_gtids);
		update.replaces[Anum_table_state_mark_gtids - 1] = true;
	}
	state_update_end(&update, is_due);
	return is_due;
}

bool
catalog_table_pass_xa(int32 pipeline_id, int32 table_id, const CdcPosition *at)
{
	StateUpdate update;
	bool		is_due;

	state_update_begin(&update, pipeline_id, table_id);
	is_due = state_update_is_in(&update, CATALOG_TABLE_SNAPSHOT) && !chunks_are_allowed(&update);
	state_update_set_position(&update, Anum_table_state_mark_file, at);
	state_update_end(&update, is_due);
	return is_due;
}

void
catalog_table_end_shadow(int32 pipeline_id, int32 table_id)
{
	StateUpdate update;
	bool		found;

	state_update_begin(&update, pipeline_id, table_id);
	found = HeapTupleIsValid(update.tuple);
	if (found)
	{
		state_update_set(&update, Anum_table_state_target,
						 ObjectIdGetDatum(catalog_get_oid(update.tuple, RelationGetDescr(update.scan.rel),
														  Anum_table_state_swap_into)));
		state_update_set(&update, Anum_table_state_swap_into, ObjectIdGetDatum(InvalidOid));
	}
	state_update_end(&update, found);
}

void
catalog_table_set_notice(int32 pipeline_id, int32 table_id, const UtilErrorInfo *error)
{
	StateUpdate update;
	bool		is_due;

	state_update_begin(&update, pipeline_id, table_id);
	is_due = HeapTupleIsValid(update.tuple) && !state_update_is_in(&update, CATALOG_TABLE_STOPPED);
	state_update_set_error(&update, error);
	state_update_end(&update, is_due);
}

void
catalog_table_put_off(int32 pipeline_id, int32 table_id, const UtilErrorInfo *error)
{
	StateUpdate update;
	bool		found;

	state_update_begin(&update, pipeline_id, table_id);
	found = HeapTupleIsValid(update.tuple);
	state_update_set(&update, Anum_table_state_resync_wanted, BoolGetDatum(true));
	state_update_set_error(&update, error);
	state_update_end(&update, found);
}

void
catalog_table_restart_empty(int32 pipeline_id, int32 table_id, bool keyless)
{
	CdcPosition unknown = {0};
	StateUpdate update;
	bool		is_due;

	state_update_begin(&update, pipeline_id, table_id);
	is_due = state_update_is_in(&update, CATALOG_TABLE_SNAPSHOT) || state_update_is_in(&update, CATALOG_TABLE_CATCHUP);
	if (is_due)
	{
		int32		generation = catalog_get_int32(update.tuple, RelationGetDescr(update.scan.rel),
												   Anum_table_state_generation);

		state_update_set(&update, Anum_table_state_state, CStringGetTextDatum(state_names[CATALOG_TABLE_SNAPSHOT]));
		state_update_set(&update, Anum_table_state_generation, Int32GetDatum(generation + 1));
		state_update_set_position(&update, Anum_table_state_high_file, &unknown);
		state_update_set(&update, Anum_table_state_rows_copied, Int64GetDatum(0));
		state_update_set(&update, Anum_table_state_chunks, Int32GetDatum(0));
		update.nulls[Anum_table_state_snapshot_finished_at - 1] = true;
		update.replaces[Anum_table_state_snapshot_finished_at - 1] = true;
		if (keyless)
			state_update_set_position(&update, Anum_table_state_join_file, &unknown);
	}
	state_update_end(&update, is_due);
	if (is_due)
		delete_snapshot_rows(pipeline_id, table_id);
}

void
catalog_table_restart_copy(int32 pipeline_id, int32 table_id, int32 generation)
{
	StateUpdate update;
	bool		is_due;

	state_update_begin(&update, pipeline_id, table_id);
	is_due = state_update_is_in(&update, CATALOG_TABLE_SNAPSHOT);
	if (is_due)
	{
		CdcPosition unknown = {0};

		state_update_set(&update, Anum_table_state_generation, Int32GetDatum(generation));
		state_update_set_position(&update, Anum_table_state_join_file, &unknown);
	}
	state_update_end(&update, is_due);
	if (is_due)
		delete_snapshot_rows(pipeline_id, table_id);
}

bool
catalog_table_set_join(int32 pipeline_id, int32 table_id, int32 generation, const CdcPosition *join)
{
	StateUpdate update;
	bool		is_due;

	state_update_begin(&update, pipeline_id, table_id);
	is_due = state_update_is_in(&update, CATALOG_TABLE_SNAPSHOT) &&
		catalog_get_int32(update.tuple, RelationGetDescr(update.scan.rel), Anum_table_state_generation) == generation;
	if (is_due)
		state_update_set_position(&update, Anum_table_state_join_file, join);
	state_update_end(&update, is_due);
	return is_due;
}

void
catalog_table_leave_server(int32 pipeline_id, int32 table_id, bool anew, bool keyless)
{
	CdcPosition unknown = {0};
	StateUpdate update;
	bool		found;

	state_update_begin(&update, pipeline_id, table_id);
	found = HeapTupleIsValid(update.tuple);
	if (found)
	{
		TupleDesc	desc = RelationGetDescr(update.scan.rel);
		bool		is_copied = state_update_is_in(&update, CATALOG_TABLE_SNAPSHOT) ||
			state_update_is_in(&update, CATALOG_TABLE_CATCHUP);

		state_update_set_position(&update, Anum_table_state_high_file, &unknown);
		state_update_set_position(&update, Anum_table_state_stop_file, &unknown);
		state_update_set_position(&update, Anum_table_state_mark_file, &unknown);
		if (is_copied)
			state_update_set(&update, Anum_table_state_generation,
							 Int32GetDatum(catalog_get_int32(update.tuple, desc, Anum_table_state_generation) + 1));
		/* the copy of a table without a key begins anew by itself, and empties a target that has a join position */
		if (is_copied && keyless)
			state_update_set(&update, Anum_table_state_state, CStringGetTextDatum(state_names[CATALOG_TABLE_SNAPSHOT]));
		else
		{
			state_update_set_position(&update, Anum_table_state_join_file, &unknown);
			update.nulls[Anum_table_state_join_gtids - 1] = update.replaces[Anum_table_state_join_gtids - 1] = true;
		}
		if (anew && !(is_copied && keyless))
		{
			state_update_set(&update, Anum_table_state_resync_wanted, BoolGetDatum(true));
			state_update_set(&update, Anum_table_state_chunks_allowed, BoolGetDatum(false));
		}
	}
	state_update_end(&update, found);
}
