/*-------------------------------------------------------------------------
 *
 * catalog_pipeline.c
 *	  Rows of cdc_bridge.pipeline and cdc_bridge.pipeline_state.
 *
 * NOTES
 *	  The definition is dumped, the state is not. So a pipeline without a state
 *	  row is one that was restored from a dump: it counts as stopped, and its
 *	  first start makes what is missing and forgets which tables it had, so that
 *	  it begins with a new snapshot. A state row that names another database
 *	  came with a copy of the database's files: the pipeline counts as stopped,
 *	  and goes on from its position when it is started.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "catalog/pg_collation.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "catalog/catalog_export.h"
#include "catalog/catalog_heap.h"
#include "catalog/catalog_shadow.h"
#include "catalog/catalog_verify.h"
#include "compat/pg_compat.h"
#include "util/util_name.h"

static const char *const state_names[] = {
	[CATALOG_PIPELINE_STOPPED] = "stopped",
	[CATALOG_PIPELINE_STARTING] = "starting",
	[CATALOG_PIPELINE_SNAPSHOT] = "snapshot",
	[CATALOG_PIPELINE_STREAMING] = "streaming",
	[CATALOG_PIPELINE_RETRYING] = "retrying",
	[CATALOG_PIPELINE_FAILED] = "failed"
};

const char *
catalog_pipeline_state_name(CatalogPipelineState state)
{
	return state_names[state];
}

static CatalogPipelineState
get_state(HeapTuple tuple, TupleDesc desc, int attnum)
{
	return (CatalogPipelineState) catalog_get_word(tuple, desc, attnum, state_names, lengthof(state_names));
}

/* Fill in what pipeline_state says, or that it says nothing. */
static void
read_state(CatalogPipeline *pipeline)
{
	CatalogScan scan;
	HeapTuple	tuple;

	pipeline->enabled = false;
	pipeline->state = CATALOG_PIPELINE_STOPPED;

	catalog_scan_begin(&scan, CATALOG_REL_PIPELINE_STATE, AccessShareLock, 1, &pipeline->id);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
	{
		TupleDesc	desc = RelationGetDescr(scan.rel);

		if (catalog_get_oid(tuple, desc, Anum_pipeline_state_database) == MyDatabaseId)
		{
			pipeline->enabled = catalog_get_bool(tuple, desc, Anum_pipeline_state_enabled);
			pipeline->state = get_state(tuple, desc, Anum_pipeline_state_state);
		}
		catalog_get_error(tuple, desc, Anum_pipeline_state_last_error, &pipeline->last_error);
		pipeline->last_error.position = catalog_get_text(tuple, desc, Anum_pipeline_state_last_error_position);
		pipeline->last_error.at = catalog_get_time(tuple, desc, Anum_pipeline_state_last_error_at);
		pipeline->tables_asked = catalog_get_int32(tuple, desc, Anum_pipeline_state_tables_asked);
		pipeline->tables_done = catalog_get_int32(tuple, desc, Anum_pipeline_state_tables_done);
		pipeline->failed_transaction = catalog_get_text(tuple, desc, Anum_pipeline_state_failed_transaction);
		pipeline->server_start = catalog_get_time(tuple, desc, Anum_pipeline_state_server_start);
		pipeline->fingerprint = catalog_get_text(tuple, desc, Anum_pipeline_state_fingerprint);
	}
	catalog_scan_end(&scan);
}

static uint64
add_text(uint64 hash, const char *text)
{
	return hash_combine64(hash, text == NULL ? 0 : hash_bytes_extended((const unsigned char *) text,
																	   (int) strlen(text), 1));
}

/* What a worker reads once, when it starts. The patterns are not part of it: they are read once in a pipeline's life. */
static uint64
make_stamp(const CatalogPipeline *pipeline)
{
	uint64		hash = hash_combine64(pipeline->owner, (uint64) catalog_skip_last(pipeline->id));

	hash = add_text(hash, pipeline->source);
	hash = add_text(hash, pipeline->sink);
	hash = add_text(hash, pipeline->target_schema);
	if (pipeline->options != (Datum) 0)
		hash = hash_combine64(hash, hash_bytes_extended((const unsigned char *) VARDATA_ANY(DatumGetPointer(pipeline->options)),
														(int) VARSIZE_ANY_EXHDR(DatumGetPointer(pipeline->options)), 1));
	return hash != 0 ? hash : 1;
}

/* The rest of a pipeline whose own row was read. */
static void
read_rest(CatalogPipeline *pipeline)
{
	read_state(pipeline);
	pipeline->stamp = make_stamp(pipeline);
}

static CatalogPipeline *
pipeline_from_tuple(HeapTuple tuple, TupleDesc desc)
{
	CatalogPipeline *pipeline = palloc0(sizeof(CatalogPipeline));

	pipeline->id = catalog_get_int32(tuple, desc, Anum_pipeline_id);
	pipeline->name = catalog_get_text(tuple, desc, Anum_pipeline_name);
	pipeline->owner = catalog_get_oid(tuple, desc, Anum_pipeline_owner);
	pipeline->source = catalog_get_text(tuple, desc, Anum_pipeline_source);
	pipeline->sink = catalog_get_text(tuple, desc, Anum_pipeline_sink);
	pipeline->tables = catalog_get_list(tuple, desc, Anum_pipeline_tables);
	pipeline->target_schema = catalog_get_text(tuple, desc, Anum_pipeline_target_schema);
	pipeline->options = catalog_get_varlena(tuple, desc, Anum_pipeline_options);
	return pipeline;
}

CatalogPipeline *
catalog_pipeline_by_id(int32 pipeline_id)
{
	CatalogScan scan;
	HeapTuple	tuple;
	CatalogPipeline *pipeline = NULL;

	catalog_scan_begin(&scan, CATALOG_REL_PIPELINE, AccessShareLock, 1, &pipeline_id);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
		pipeline = pipeline_from_tuple(tuple, RelationGetDescr(scan.rel));
	catalog_scan_end(&scan);
	if (pipeline != NULL)
		read_rest(pipeline);
	return pipeline;
}

CatalogPipeline *
catalog_pipeline_by_name(const char *name)
{
	CatalogScan scan;
	ScanKeyData key;
	HeapTuple	tuple;
	CatalogPipeline *pipeline = NULL;

	/* not ScanKeyInit: the column has the database's collation, and so must the key */
	ScanKeyEntryInitialize(&key, 0, Anum_pipeline_name, BTEqualStrategyNumber, InvalidOid,
						   DEFAULT_COLLATION_OID, F_TEXTEQ, CStringGetTextDatum(name));
	catalog_scan_begin_keys(&scan, CATALOG_REL_PIPELINE, AccessShareLock, "pipeline_name_key", 1, &key);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
		pipeline = pipeline_from_tuple(tuple, RelationGetDescr(scan.rel));
	catalog_scan_end(&scan);
	if (pipeline != NULL)
		read_rest(pipeline);
	return pipeline;
}

/* All pipelines of this database, by number. */
List *
catalog_pipeline_list(void)
{
	CatalogScan scan;
	HeapTuple	tuple;
	List	   *result = NIL;
	ListCell   *lc;

	catalog_scan_begin_ordered(&scan, CATALOG_REL_PIPELINE, AccessShareLock, 0, NULL);
	while (HeapTupleIsValid(tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection)))
		result = lappend(result, pipeline_from_tuple(tuple, RelationGetDescr(scan.rel)));
	catalog_scan_end(&scan);

	foreach(lc, result)
		read_rest(lfirst(lc));
	return result;
}

static void
insert_state_row(int32 pipeline_id, bool enabled)
{
	Datum		values[Natts_pipeline_state] = {0};
	bool		nulls[Natts_pipeline_state];
	Relation	rel;

	memset(nulls, true, sizeof(nulls));
	values[Anum_pipeline_state_id - 1] = Int32GetDatum(pipeline_id);
	values[Anum_pipeline_state_database - 1] = ObjectIdGetDatum(MyDatabaseId);
	values[Anum_pipeline_state_enabled - 1] = BoolGetDatum(enabled);
	values[Anum_pipeline_state_state - 1] =
		CStringGetTextDatum(state_names[enabled ? CATALOG_PIPELINE_STARTING : CATALOG_PIPELINE_STOPPED]);
	for (int i = Anum_pipeline_state_id; i <= Anum_pipeline_state_state; i++)
		nulls[i - 1] = false;
	values[Anum_pipeline_state_tables_asked - 1] = Int32GetDatum(0);
	nulls[Anum_pipeline_state_tables_asked - 1] = false;
	values[Anum_pipeline_state_tables_done - 1] = Int32GetDatum(0);
	nulls[Anum_pipeline_state_tables_done - 1] = false;
	values[Anum_pipeline_state_last_left - 1] = Int32GetDatum(0);
	nulls[Anum_pipeline_state_last_left - 1] = false;

	if (enabled)
	{
		values[Anum_pipeline_state_server_start - 1] = TimestampTzGetDatum(PgStartTime);
		nulls[Anum_pipeline_state_server_start - 1] = false;
	}

	rel = table_open(catalog_relation_oid(CATALOG_REL_PIPELINE_STATE), RowExclusiveLock);
	catalog_tuple_insert(rel, values, nulls);
	table_close(rel, NoLock);
}

/*
 * Write a new pipeline, stopped, with its state row and its position tables.
 * Returns its number; the one in *pipeline is ignored. A name that is taken is
 * the caller's to notice; the unique index catches two at a time.
 */
int32
catalog_pipeline_insert(const CatalogPipeline *pipeline)
{
	Datum		values[Natts_pipeline] = {0};
	bool		nulls[Natts_pipeline] = {0};
	int32		id = (int32) catalog_next_id("pipeline_id_seq");
	Relation	rel;

	values[Anum_pipeline_id - 1] = Int32GetDatum(id);
	catalog_set_text(values, nulls, Anum_pipeline_name, pipeline->name);
	values[Anum_pipeline_owner - 1] = ObjectIdGetDatum(pipeline->owner);
	catalog_set_text(values, nulls, Anum_pipeline_source, pipeline->source);
	catalog_set_text(values, nulls, Anum_pipeline_sink, pipeline->sink);
	values[Anum_pipeline_tables - 1] = util_text_array(pipeline->tables);
	catalog_set_text(values, nulls, Anum_pipeline_target_schema, pipeline->target_schema);
	values[Anum_pipeline_options - 1] = pipeline->options;
	nulls[Anum_pipeline_options - 1] = pipeline->options == (Datum) 0;
	values[Anum_pipeline_created_at - 1] = TimestampTzGetDatum(GetCurrentTimestamp());

	rel = table_open(catalog_relation_oid(CATALOG_REL_PIPELINE), RowExclusiveLock);
	catalog_tuple_insert(rel, values, nulls);
	table_close(rel, NoLock);

	insert_state_row(id, false);
	if (pipeline->source != NULL)
		catalog_position_create(id);
	else
		catalog_schema_triggers_set();
	return id;
}

/* Drop the relations that new copies of tables go into. */
static void
drop_shadows(int32 pipeline_id)
{
	List	   *tables = list_concat(catalog_table_list(pipeline_id), catalog_table_list_left(pipeline_id));
	ListCell   *lc;

	foreach(lc, tables)
	{
		const CatalogTable *table = lfirst(lc);

		if (OidIsValid(table->swap_into))
			catalog_shadow_drop(table->target);
	}
}

CatalogPipeline *
catalog_pipeline_for_update(int32 pipeline_id)
{
	catalog_lock_state(pipeline_id);
	return catalog_pipeline_by_id(pipeline_id);
}

/* Write what of a definition can be changed. The caller has got *pipeline from catalog_pipeline_for_update. */
void
catalog_pipeline_update(const CatalogPipeline *pipeline)
{
	CatalogScan scan;
	HeapTuple	tuple;
	Datum		values[Natts_pipeline] = {0};
	bool		nulls[Natts_pipeline] = {0};
	bool		replaces[Natts_pipeline] = {0};
	static const int changed[] = {
		Anum_pipeline_owner, Anum_pipeline_source, Anum_pipeline_target_schema, Anum_pipeline_options,
	};

	catalog_scan_begin(&scan, CATALOG_REL_PIPELINE, RowExclusiveLock, 1, &pipeline->id);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
	{
		values[Anum_pipeline_owner - 1] = ObjectIdGetDatum(pipeline->owner);
		catalog_set_text(values, nulls, Anum_pipeline_source, pipeline->source);
		catalog_set_text(values, nulls, Anum_pipeline_target_schema, pipeline->target_schema);
		values[Anum_pipeline_options - 1] = pipeline->options;
		nulls[Anum_pipeline_options - 1] = pipeline->options == (Datum) 0;
		for (int i = 0; i < (int) lengthof(changed); i++)
			replaces[changed[i] - 1] = true;
		catalog_tuple_update(scan.rel, tuple, values, nulls, replaces);
	}
	catalog_scan_end(&scan);
	if (pipeline->sink != NULL)
		catalog_schema_triggers_set();
}

/* Remove every row and table that belongs to the pipeline. The caller holds the pipeline's lock. */
void
catalog_pipeline_delete(const CatalogPipeline *pipeline)
{
	int32		id = pipeline->id;

	drop_shadows(id);
	catalog_lock_state(id);
	catalog_delete_rows(CATALOG_REL_SKIPPED_TRANSACTION, 1, &id);
	catalog_delete_rows(CATALOG_REL_DEAD_LETTER, 1, &id);
	catalog_delete_rows(CATALOG_REL_SCHEMA_HISTORY, 1, &id);
	catalog_delete_rows(CATALOG_REL_DEAD_LETTER_REQUEST, 1, &id);
	catalog_delete_rows(CATALOG_REL_TARGET_INDEX, 1, &id);
	catalog_verify_delete(id);
	catalog_delete_rows(CATALOG_REL_PREPARED_CHANGE, 1, &id);
	catalog_delete_rows(CATALOG_REL_PREPARED_TRANSACTION, 1, &id);
	catalog_delete_rows(CATALOG_REL_SNAPSHOT_DELETED, 1, &id);
	catalog_delete_rows(CATALOG_REL_SNAPSHOT_REREAD, 1, &id);
	catalog_delete_rows(CATALOG_REL_SNAPSHOT_CHUNK, 1, &id);
	catalog_delete_rows(CATALOG_REL_TABLE_STATE, 1, &id);
	catalog_delete_rows(CATALOG_REL_PIPELINE_TABLE, 1, &id);
	catalog_delete_rows(CATALOG_REL_EXPORT_CHUNK, 1, &id);
	catalog_delete_rows(CATALOG_REL_EXPORT_TABLE, 1, &id);
	catalog_delete_rows(CATALOG_REL_EXPORT_STATE, 1, &id);
	catalog_delete_rows(CATALOG_REL_PIPELINE_STATE, 1, &id);
	catalog_delete_rows(CATALOG_REL_PIPELINE, 1, &id);
	if (pipeline->source != NULL)
		catalog_position_drop(id);
	else
		catalog_schema_triggers_set();
}

/*
 * Say that a pipeline should run, or should not. Enabling forgets the last
 * error, lets indexes that failed be tried again, claims the pipeline for this database, and completes one that came
 * from a dump (see NOTES).
 */
void
catalog_pipeline_set_enabled(int32 pipeline_id, bool enabled)
{
	CatalogScan scan;
	HeapTuple	tuple;
	Datum		values[Natts_pipeline_state] = {0};
	bool		nulls[Natts_pipeline_state] = {0};
	bool		replaces[Natts_pipeline_state] = {0};
	bool		found;
	const CatalogPipeline *pipeline;

	catalog_lock_state(pipeline_id);
	catalog_scan_begin(&scan, CATALOG_REL_PIPELINE_STATE, RowExclusiveLock, 1, &pipeline_id);
	tuple = catalog_scan_next(&scan);
	found = HeapTupleIsValid(tuple);
	if (found)
	{
		values[Anum_pipeline_state_enabled - 1] = BoolGetDatum(enabled);
		replaces[Anum_pipeline_state_enabled - 1] = true;
		values[Anum_pipeline_state_state - 1] =
			CStringGetTextDatum(state_names[enabled ? CATALOG_PIPELINE_STARTING : CATALOG_PIPELINE_STOPPED]);
		replaces[Anum_pipeline_state_state - 1] = true;
		if (enabled)
		{
			values[Anum_pipeline_state_database - 1] = ObjectIdGetDatum(MyDatabaseId);
			replaces[Anum_pipeline_state_database - 1] = true;
			for (int i = Anum_pipeline_state_last_error; i <= Anum_pipeline_state_failed_transaction; i++)
				nulls[i - 1] = replaces[i - 1] = true;
			values[Anum_pipeline_state_server_start - 1] = TimestampTzGetDatum(PgStartTime);
			replaces[Anum_pipeline_state_server_start - 1] = true;
		}
		catalog_tuple_update(scan.rel, tuple, values, nulls, replaces);
	}
	catalog_scan_end(&scan);

	if (found && enabled)
		catalog_index_retry(pipeline_id);
	if (!found && enabled)
	{
		catalog_delete_rows(CATALOG_REL_TARGET_INDEX, 1, &pipeline_id);
		catalog_delete_rows(CATALOG_REL_TABLE_STATE, 1, &pipeline_id);
		catalog_delete_rows(CATALOG_REL_PIPELINE_TABLE, 1, &pipeline_id);
		insert_state_row(pipeline_id, true);
		pipeline = catalog_pipeline_by_id(pipeline_id);
		if (pipeline != NULL && pipeline->source != NULL)
			catalog_position_create(pipeline_id);
		else
			catalog_schema_triggers_set();
	}
}

/*
 * Write the state that a worker reached, and the error when there is one. A
 * pipeline that was stopped or dropped meanwhile stays as it is. One whose tables
 * are still to be looked at does not stream yet.
 */
void
catalog_pipeline_set_state(int32 pipeline_id, CatalogPipelineState state,
						   const UtilErrorInfo *error, const CdcPosition *error_position)
{
	CatalogScan scan;
	HeapTuple	tuple;
	Datum		values[Natts_pipeline_state] = {0};
	bool		nulls[Natts_pipeline_state] = {0};
	bool		replaces[Natts_pipeline_state] = {0};

	Assert(state != CATALOG_PIPELINE_STOPPED);

	catalog_lock_state(pipeline_id);
	catalog_scan_begin(&scan, CATALOG_REL_PIPELINE_STATE, RowExclusiveLock, 1, &pipeline_id);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple) &&
		catalog_get_bool(tuple, RelationGetDescr(scan.rel), Anum_pipeline_state_enabled) &&
		catalog_get_oid(tuple, RelationGetDescr(scan.rel), Anum_pipeline_state_database) == MyDatabaseId)
	{
		/* another of its workers has failed, and this one does not know yet */
		bool		stays_failed = (state == CATALOG_PIPELINE_STREAMING || state == CATALOG_PIPELINE_SNAPSHOT) &&
			catalog_get_word(tuple, RelationGetDescr(scan.rel), Anum_pipeline_state_state, state_names, lengthof(state_names)) == CATALOG_PIPELINE_FAILED;

		if (stays_failed)
			state = CATALOG_PIPELINE_FAILED;
		if (state == CATALOG_PIPELINE_STREAMING &&
			catalog_get_int32(tuple, RelationGetDescr(scan.rel), Anum_pipeline_state_tables_asked) !=
			catalog_get_int32(tuple, RelationGetDescr(scan.rel), Anum_pipeline_state_tables_done))
			state = CATALOG_PIPELINE_SNAPSHOT;
		values[Anum_pipeline_state_state - 1] = CStringGetTextDatum(state_names[state]);
		replaces[Anum_pipeline_state_state - 1] = true;
		if (error != NULL)
		{
			char		text[CDC_POSITION_TEXT_MAX];
			bool		has_position = error_position != NULL && cdc_position_is_known(error_position);

			catalog_set_error(values, nulls, Anum_pipeline_state_last_error, error);
			if (has_position)
				cdc_position_format(error_position, text);
			catalog_set_text(values, nulls, Anum_pipeline_state_last_error_position, has_position ? text : NULL);
			values[Anum_pipeline_state_last_error_at - 1] = TimestampTzGetDatum(GetCurrentTimestamp());
			for (int i = Anum_pipeline_state_last_error; i <= Anum_pipeline_state_last_error_at; i++)
				replaces[i - 1] = true;
		}
		catalog_tuple_update(scan.rel, tuple, values, nulls, replaces);
	}
	catalog_scan_end(&scan);
}

/* Change one or more columns of a pipeline's state row, when it has one. */
static void
update_state(int32 pipeline_id, Datum *values, bool *nulls, bool *replaces)
{
	CatalogScan scan;
	HeapTuple	tuple;

	catalog_lock_state(pipeline_id);
	catalog_scan_begin(&scan, CATALOG_REL_PIPELINE_STATE, RowExclusiveLock, 1, &pipeline_id);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
		catalog_tuple_update(scan.rel, tuple, values, nulls, replaces);
	catalog_scan_end(&scan);
}

void
catalog_pipeline_ask_tables(int32 pipeline_id)
{
	CatalogScan scan;
	HeapTuple	tuple;
	Datum		values[Natts_pipeline_state] = {0};
	bool		nulls[Natts_pipeline_state] = {0};
	bool		replaces[Natts_pipeline_state] = {0};

	catalog_lock_state(pipeline_id);
	catalog_scan_begin(&scan, CATALOG_REL_PIPELINE_STATE, RowExclusiveLock, 1, &pipeline_id);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
	{
		TupleDesc	desc = RelationGetDescr(scan.rel);

		values[Anum_pipeline_state_tables_asked - 1] =
			Int32GetDatum(catalog_get_int32(tuple, desc, Anum_pipeline_state_tables_asked) + 1);
		replaces[Anum_pipeline_state_tables_asked - 1] = true;
		if (get_state(tuple, desc, Anum_pipeline_state_state) == CATALOG_PIPELINE_STREAMING)
		{
			values[Anum_pipeline_state_state - 1] = CStringGetTextDatum(state_names[CATALOG_PIPELINE_SNAPSHOT]);
			replaces[Anum_pipeline_state_state - 1] = true;
		}
		catalog_tuple_update(scan.rel, tuple, values, nulls, replaces);
	}
	catalog_scan_end(&scan);
}

void
catalog_pipeline_set_tables_done(int32 pipeline_id, int32 asked)
{
	Datum		values[Natts_pipeline_state] = {0};
	bool		nulls[Natts_pipeline_state] = {0};
	bool		replaces[Natts_pipeline_state] = {0};

	values[Anum_pipeline_state_tables_done - 1] = Int32GetDatum(asked);
	replaces[Anum_pipeline_state_tables_done - 1] = true;
	update_state(pipeline_id, values, nulls, replaces);
}

/* Write another list of tables; the caller has locked the state (catalog_pipeline_ask_tables). */
void
catalog_pipeline_set_tables(int32 pipeline_id, List *tables)
{
	CatalogScan scan;
	HeapTuple	tuple;
	Datum		values[Natts_pipeline] = {0};
	bool		nulls[Natts_pipeline] = {0};
	bool		replaces[Natts_pipeline] = {0};

	catalog_scan_begin(&scan, CATALOG_REL_PIPELINE, RowExclusiveLock, 1, &pipeline_id);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
	{
		values[Anum_pipeline_tables - 1] = util_text_array(tables);
		replaces[Anum_pipeline_tables - 1] = true;
		catalog_tuple_update(scan.rel, tuple, values, nulls, replaces);
	}
	catalog_scan_end(&scan);
}

void
catalog_pipeline_set_failed_transaction(int32 pipeline_id, const CdcPosition *start)
{
	Datum		values[Natts_pipeline_state] = {0};
	bool		nulls[Natts_pipeline_state] = {0};
	bool		replaces[Natts_pipeline_state] = {0};
	char		text[CDC_POSITION_TEXT_MAX];
	bool		is_known = start != NULL && cdc_position_is_known(start);

	if (is_known)
		cdc_position_format(start, text);
	catalog_set_text(values, nulls, Anum_pipeline_state_failed_transaction, is_known ? text : NULL);
	replaces[Anum_pipeline_state_failed_transaction - 1] = true;
	update_state(pipeline_id, values, nulls, replaces);
}

void
catalog_pipeline_set_server(int32 pipeline_id, TimestampTz server_start, const char *fingerprint)
{
	Datum		values[Natts_pipeline_state] = {0};
	bool		nulls[Natts_pipeline_state] = {0};
	bool		replaces[Natts_pipeline_state] = {0};

	values[Anum_pipeline_state_server_start - 1] = TimestampTzGetDatum(server_start);
	replaces[Anum_pipeline_state_server_start - 1] = true;
	if (fingerprint != NULL)
	{
		catalog_set_text(values, nulls, Anum_pipeline_state_fingerprint, fingerprint);
		replaces[Anum_pipeline_state_fingerprint - 1] = true;
	}
	update_state(pipeline_id, values, nulls, replaces);
}

void
catalog_pipeline_complete(int32 pipeline_id)
{
	CatalogScan scan;
	bool		found;

	catalog_lock_state(pipeline_id);
	catalog_scan_begin(&scan, CATALOG_REL_PIPELINE_STATE, AccessShareLock, 1, &pipeline_id);
	found = HeapTupleIsValid(catalog_scan_next(&scan));
	catalog_scan_end(&scan);
	if (!found)
		insert_state_row(pipeline_id, false);
	catalog_position_create(pipeline_id);
}

/* Write the snapshot mark, once, when the pipeline first runs. */
void
catalog_pipeline_set_snapshot_mark(int32 pipeline_id, const CdcPosition *position, const char *gtids)
{
	CatalogScan scan;
	HeapTuple	tuple;
	Datum		values[Natts_pipeline_state] = {0};
	bool		nulls[Natts_pipeline_state] = {0};
	bool		replaces[Natts_pipeline_state] = {0};

	catalog_lock_state(pipeline_id);
	catalog_scan_begin(&scan, CATALOG_REL_PIPELINE_STATE, RowExclusiveLock, 1, &pipeline_id);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
	{
		catalog_set_position(values, nulls, Anum_pipeline_state_snapshot_mark_file, position);
		catalog_set_text(values, nulls, Anum_pipeline_state_snapshot_mark_gtids, gtids);
		for (int i = Anum_pipeline_state_snapshot_mark_file; i <= Anum_pipeline_state_snapshot_mark_gtids; i++)
			replaces[i - 1] = true;
		catalog_tuple_update(scan.rel, tuple, values, nulls, replaces);
	}
	catalog_scan_end(&scan);
}

bool
catalog_pipeline_get_snapshot_mark(int32 pipeline_id, CdcPosition *position, char **gtids)
{
	CatalogScan scan;
	HeapTuple	tuple;

	memset(position, 0, sizeof(*position));
	*gtids = NULL;
	catalog_scan_begin(&scan, CATALOG_REL_PIPELINE_STATE, AccessShareLock, 1, &pipeline_id);
	tuple = catalog_scan_next(&scan);
	if (HeapTupleIsValid(tuple))
	{
		catalog_get_position(tuple, RelationGetDescr(scan.rel), Anum_pipeline_state_snapshot_mark_file, position);
		*gtids = catalog_get_text(tuple, RelationGetDescr(scan.rel), Anum_pipeline_state_snapshot_mark_gtids);
	}
	catalog_scan_end(&scan);
	return cdc_position_is_known(position) || *gtids != NULL;
}
