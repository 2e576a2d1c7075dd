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
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/pg_lsn.h"

#include "catalog/catalog_dead_letter.h"
#include "catalog/catalog_heap.h"
#include "util/util_name.h"

static const char *const state_names[] = {
	[CATALOG_LETTER_WAITING] = "waiting",
	[CATALOG_LETTER_FAILED] = "failed",
	[CATALOG_LETTER_REPLAYED] = "replayed",
	[CATALOG_LETTER_SUPERSEDED] = "superseded",
	[CATALOG_LETTER_DISCARDED] = "discarded"
};

const char *
catalog_letter_state_name(CatalogLetterState state)
{
	return state_names[state];
}

static CatalogLetterState
get_state(HeapTuple tuple, TupleDesc desc)
{
	return (CatalogLetterState) catalog_get_word(tuple, desc, Anum_dead_letter_state, state_names, lengthof(state_names));
}

static bool
is_open(HeapTuple tuple, TupleDesc desc)
{
	CatalogLetterState state = get_state(tuple, desc);

	return state == CATALOG_LETTER_WAITING || state == CATALOG_LETTER_FAILED;
}

/* Is it open, and not just being shipped again? */
static bool
is_free(HeapTuple tuple, TupleDesc desc)
{
	return is_open(tuple, desc) && catalog_get_int32(tuple, desc, Anum_dead_letter_chunk_no) == 0;
}

static bytea *
get_key(HeapTuple tuple, TupleDesc desc, int attnum)
{
	Datum		value = catalog_get_varlena(tuple, desc, attnum);

	return value == (Datum) 0 ? NULL : DatumGetByteaP(value);
}

static void
set_datum(Datum *values, bool *nulls, int attnum, Datum value)
{
	values[attnum - 1] = value;
	nulls[attnum - 1] = value == (Datum) 0;
}

void
catalog_dead_letter_insert(const CatalogDeadLetter *letter)
{
	Datum		values[Natts_dead_letter] = {0};
	bool		nulls[Natts_dead_letter] = {0};
	Datum		now = TimestampTzGetDatum(GetCurrentTimestamp());
	Relation	rel;

	for (int i = 0; i < Natts_dead_letter; i++)
		nulls[i] = true;
	nulls[Anum_dead_letter_pipeline_id - 1] = nulls[Anum_dead_letter_id - 1] = nulls[Anum_dead_letter_table_id - 1] = false;
	values[Anum_dead_letter_pipeline_id - 1] = Int32GetDatum(letter->pipeline_id);
	values[Anum_dead_letter_id - 1] = Int64GetDatum(catalog_next_id("dead_letter_id_seq"));
	values[Anum_dead_letter_table_id - 1] = Int32GetDatum(letter->table_id);
	catalog_set_text(values, nulls, Anum_dead_letter_source_schema, letter->source_schema);
	catalog_set_text(values, nulls, Anum_dead_letter_source_table, letter->source_table);
	catalog_set_text(values, nulls, Anum_dead_letter_state, state_names[CATALOG_LETTER_WAITING]);
	catalog_set_position(values, nulls, Anum_dead_letter_file, &letter->position);
	catalog_set_text(values, nulls, Anum_dead_letter_gtid, letter->gtid);
	set_datum(values, nulls, Anum_dead_letter_action, Int64GetDatum(letter->action));
	catalog_set_text(values, nulls, Anum_dead_letter_operation, letter->operation);
	set_datum(values, nulls, Anum_dead_letter_before, letter->before);
	set_datum(values, nulls, Anum_dead_letter_after, letter->after);
	catalog_set_error(values, nulls, Anum_dead_letter_error, &letter->error);
	set_datum(values, nulls, Anum_dead_letter_changed_at, TimestampTzGetDatum(letter->changed_at));
	set_datum(values, nulls, Anum_dead_letter_created_at, now);
	set_datum(values, nulls, Anum_dead_letter_attempts, Int32GetDatum(1));
	set_datum(values, nulls, Anum_dead_letter_last_attempt_at, now);
	set_datum(values, nulls, Anum_dead_letter_old_key, PointerGetDatum(letter->old_key));
	set_datum(values, nulls, Anum_dead_letter_new_key, PointerGetDatum(letter->new_key));
	set_datum(values, nulls, Anum_dead_letter_chunk_no, Int32GetDatum(letter->chunk_no));
	set_datum(values, nulls, Anum_dead_letter_shape, PointerGetDatum(letter->shape));

	rel = table_open(catalog_relation_oid(CATALOG_REL_DEAD_LETTER), RowExclusiveLock);
	catalog_tuple_insert(rel, values, nulls);
	table_close(rel, NoLock);
}

static CatalogDeadLetter *
letter_from_tuple(HeapTuple tuple, TupleDesc desc)
{
	CatalogDeadLetter *letter = palloc0(sizeof(CatalogDeadLetter));

	letter->pipeline_id = catalog_get_int32(tuple, desc, Anum_dead_letter_pipeline_id);
	letter->id = catalog_get_int64(tuple, desc, Anum_dead_letter_id);
	letter->table_id = catalog_get_int32(tuple, desc, Anum_dead_letter_table_id);
	letter->source_schema = catalog_get_text(tuple, desc, Anum_dead_letter_source_schema);
	letter->source_table = catalog_get_text(tuple, desc, Anum_dead_letter_source_table);
	letter->state = get_state(tuple, desc);
	catalog_get_position(tuple, desc, Anum_dead_letter_file, &letter->position);
	letter->gtid = catalog_get_text(tuple, desc, Anum_dead_letter_gtid);
	letter->action = catalog_get_int64(tuple, desc, Anum_dead_letter_action);
	letter->operation = catalog_get_text(tuple, desc, Anum_dead_letter_operation);
	letter->before = catalog_get_varlena(tuple, desc, Anum_dead_letter_before);
	letter->after = catalog_get_varlena(tuple, desc, Anum_dead_letter_after);
	catalog_get_error(tuple, desc, Anum_dead_letter_error, &letter->shown_error);
	letter->changed_at = catalog_get_time(tuple, desc, Anum_dead_letter_changed_at);
	letter->created_at = catalog_get_time(tuple, desc, Anum_dead_letter_created_at);
	letter->attempts = catalog_get_int32(tuple, desc, Anum_dead_letter_attempts);
	letter->last_attempt_at = catalog_get_time(tuple, desc, Anum_dead_letter_last_attempt_at);
	letter->settled_at = catalog_get_time(tuple, desc, Anum_dead_letter_settled_at);
	letter->reason = catalog_get_text(tuple, desc, Anum_dead_letter_reason);
	letter->request = catalog_get_int64(tuple, desc, Anum_dead_letter_request);
	letter->newer = catalog_get_list(tuple, desc, Anum_dead_letter_newer);
	letter->old_key = get_key(tuple, desc, Anum_dead_letter_old_key);
	letter->new_key = get_key(tuple, desc, Anum_dead_letter_new_key);
	letter->chunk_no = catalog_get_int32(tuple, desc, Anum_dead_letter_chunk_no);
	letter->shape = get_key(tuple, desc, Anum_dead_letter_shape);
	return letter;
}

/* ------------------------------------------------------------------------- scans */

/* Letters of a pipeline above a number, in their order. */
static void
begin_above(CatalogScan *scan, LOCKMODE mode, int32 pipeline_id, int64 after_id)
{
	ScanKeyData keys[2];

	ScanKeyInit(&keys[0], Anum_dead_letter_pipeline_id, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(pipeline_id));
	ScanKeyInit(&keys[1], Anum_dead_letter_id, BTGreaterStrategyNumber, F_INT8GT, Int64GetDatum(after_id));
	catalog_scan_begin_ordered_keys(scan, CATALOG_REL_DEAD_LETTER, mode, 2, keys);
}

/* Letters of one table: all, or those with a key. */
static void
begin_table(CatalogScan *scan, LOCKMODE mode, int32 pipeline_id, int32 table_id, AttrNumber which, const bytea *key)
{
	ScanKeyData keys[3];

	ScanKeyInit(&keys[0], Anum_dead_letter_pipeline_id, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(pipeline_id));
	ScanKeyInit(&keys[1], Anum_dead_letter_table_id, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(table_id));
	if (key != NULL)
		ScanKeyInit(&keys[2], which, BTEqualStrategyNumber, F_BYTEAEQ, PointerGetDatum(key));
	catalog_scan_begin_keys(scan, CATALOG_REL_DEAD_LETTER, mode,
							which == Anum_dead_letter_old_key ? "dead_letter_old_key" : "dead_letter_new_key",
							key != NULL ? 3 : 2, keys);
}

CatalogDeadLetter *
catalog_dead_letter_next(int32 pipeline_id, int64 after_id)
{
	CatalogDeadLetter *result = NULL;
	CatalogScan scan;
	HeapTuple	tuple;

	begin_above(&scan, AccessShareLock, pipeline_id, after_id);
	while (result == NULL && HeapTupleIsValid(tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection)))
	{
		CHECK_FOR_INTERRUPTS();
		if (is_free(tuple, RelationGetDescr(scan.rel)))
			result = letter_from_tuple(tuple, RelationGetDescr(scan.rel));
	}
	catalog_scan_end(&scan);
	return result;
}

void
catalog_dead_letter_each(int32 pipeline_id, CatalogLetterLook look, void *arg)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc dead letter", ALLOCSET_DEFAULT_SIZES);
	CatalogScan scan;
	HeapTuple	tuple;

	begin_above(&scan, AccessShareLock, pipeline_id, 0);
	while (HeapTupleIsValid(tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection)))
	{
		MemoryContext old = MemoryContextSwitchTo(cxt);

		CHECK_FOR_INTERRUPTS();
		look(arg, letter_from_tuple(tuple, RelationGetDescr(scan.rel)));
		MemoryContextSwitchTo(old);
		MemoryContextReset(cxt);
	}
	catalog_scan_end(&scan);
	MemoryContextDelete(cxt);
}

List *
catalog_dead_letter_in_chunks(int32 pipeline_id)
{
	List	   *result = NIL;
	CatalogScan scan;
	HeapTuple	tuple;

	begin_above(&scan, AccessShareLock, pipeline_id, 0);
	while (HeapTupleIsValid(tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection)))
	{
		CHECK_FOR_INTERRUPTS();
		if (catalog_get_int32(tuple, RelationGetDescr(scan.rel), Anum_dead_letter_chunk_no) != 0)
			result = lappend(result, letter_from_tuple(tuple, RelationGetDescr(scan.rel)));
	}
	catalog_scan_end(&scan);
	return result;
}

List *
catalog_dead_letter_tables(int32 pipeline_id)
{
	List	   *result = NIL;
	CatalogScan scan;
	HeapTuple	tuple;

	begin_above(&scan, AccessShareLock, pipeline_id, 0);
	while (HeapTupleIsValid(tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection)))
	{
		CHECK_FOR_INTERRUPTS();
		if (is_open(tuple, RelationGetDescr(scan.rel)))
			result = list_append_unique_oid(result, (Oid) catalog_get_int32(tuple, RelationGetDescr(scan.rel), Anum_dead_letter_table_id));
	}
	catalog_scan_end(&scan);
	return result;
}

bool
catalog_dead_letter_is_any_open(int32 pipeline_id, int32 table_id)
{
	bool		found = false;
	CatalogScan scan;
	HeapTuple	tuple;

	begin_table(&scan, AccessShareLock, pipeline_id, table_id, Anum_dead_letter_new_key, NULL);
	while (!found && HeapTupleIsValid(tuple = catalog_scan_next(&scan)))
	{
		CHECK_FOR_INTERRUPTS();
		found = is_open(tuple, RelationGetDescr(scan.rel));
	}
	catalog_scan_end(&scan);
	return found;
}

int64
catalog_dead_letter_keys(int32 pipeline_id, int32 table_id, int64 *last, CatalogLetterKey look, void *arg)
{
	bool		of_table = *last == 0;
	int64		count = 0;
	CatalogScan scan;
	HeapTuple	tuple;

	if (of_table)
		begin_table(&scan, AccessShareLock, pipeline_id, table_id, Anum_dead_letter_new_key, NULL);
	else
		begin_above(&scan, AccessShareLock, pipeline_id, *last);
	for (;;)
	{
		TupleDesc	desc = RelationGetDescr(scan.rel);
		bytea	   *key;

		tuple = of_table ? catalog_scan_next(&scan) : catalog_scan_next_ordered(&scan, ForwardScanDirection);
		if (!HeapTupleIsValid(tuple))
			break;
		CHECK_FOR_INTERRUPTS();
		if (catalog_get_int32(tuple, desc, Anum_dead_letter_table_id) != table_id)
			continue;
		*last = Max(*last, catalog_get_int64(tuple, desc, Anum_dead_letter_id));
		if (!is_open(tuple, desc))
			continue;
		count++;
		if ((key = get_key(tuple, desc, Anum_dead_letter_old_key)) != NULL)
		{
			look(arg, table_id, key);
			pfree(key);
		}
		if ((key = get_key(tuple, desc, Anum_dead_letter_new_key)) != NULL)
		{
			look(arg, table_id, key);
			pfree(key);
		}
	}
	catalog_scan_end(&scan);
	return count;
}

/* ----------------------------------------------------------------------- changes */

/* Columns of a letter that are to be written. */
typedef struct LetterUpdate
{
	Datum		values[Natts_dead_letter];
	bool		nulls[Natts_dead_letter];
	bool		replaces[Natts_dead_letter];
} LetterUpdate;

static void
update_set(LetterUpdate *update, int attnum, Datum value)
{
	set_datum(update->values, update->nulls, attnum, value);
	update->replaces[attnum - 1] = true;
}

static void
update_state(LetterUpdate *update, CatalogLetterState state, const char *reason)
{
	bool		settled = state != CATALOG_LETTER_WAITING && state != CATALOG_LETTER_FAILED;

	update_set(update, Anum_dead_letter_state, CStringGetTextDatum(state_names[state]));
	if (!settled)
		return;
	update_set(update, Anum_dead_letter_settled_at, TimestampTzGetDatum(GetCurrentTimestamp()));
	update_set(update, Anum_dead_letter_reason, reason != NULL ? CStringGetTextDatum(reason) : (Datum) 0);
	update_set(update, Anum_dead_letter_old_key, (Datum) 0);
	update_set(update, Anum_dead_letter_new_key, (Datum) 0);
	update_set(update, Anum_dead_letter_chunk_no, (Datum) 0);
}

void
catalog_dead_letter_settle(const CatalogDeadLetter *letter, CatalogLetterState state, const char *reason,
						   int64 request, const UtilErrorInfo *error)
{
	LetterUpdate update = {0};
	CatalogScan scan;
	HeapTuple	tuple;

	begin_above(&scan, RowExclusiveLock, letter->pipeline_id, letter->id - 1);
	tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection);
	if (HeapTupleIsValid(tuple) && catalog_get_int64(tuple, RelationGetDescr(scan.rel), Anum_dead_letter_id) == letter->id &&
		is_open(tuple, RelationGetDescr(scan.rel)))
	{
		update_state(&update, state, reason);
		update_set(&update, Anum_dead_letter_request, Int64GetDatum(request));
		if (state == CATALOG_LETTER_FAILED || state == CATALOG_LETTER_REPLAYED)
		{
			int32		attempts = catalog_get_int32(tuple, RelationGetDescr(scan.rel), Anum_dead_letter_attempts);

			update_set(&update, Anum_dead_letter_attempts, Int32GetDatum(attempts + 1));
			update_set(&update, Anum_dead_letter_last_attempt_at, TimestampTzGetDatum(GetCurrentTimestamp()));
		}
		if (error != NULL)
		{
			catalog_set_error(update.values, update.nulls, Anum_dead_letter_error, error);
			for (int i = 0; i < 4; i++)
				update.replaces[Anum_dead_letter_error - 1 + i] = true;
		}
		catalog_tuple_update(scan.rel, tuple, update.values, update.nulls, update.replaces);
	}
	catalog_scan_end(&scan);
}

void
catalog_dead_letter_set_chunk(int32 pipeline_id, int64 id, int32 chunk_no, int64 request)
{
	LetterUpdate update = {0};
	CatalogScan scan;
	HeapTuple	tuple;

	begin_above(&scan, RowExclusiveLock, pipeline_id, id - 1);
	tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection);
	if (HeapTupleIsValid(tuple) && catalog_get_int64(tuple, RelationGetDescr(scan.rel), Anum_dead_letter_id) == id)
	{
		update_set(&update, Anum_dead_letter_chunk_no, Int32GetDatum(chunk_no));
		update_set(&update, Anum_dead_letter_request, Int64GetDatum(request));
		catalog_tuple_update(scan.rel, tuple, update.values, update.nulls, update.replaces);
	}
	catalog_scan_end(&scan);
}

/* Is each column of a row image among these, but for what the source has dropped since? */
static bool
covers(const List *names, Datum image)
{
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	name;
	JsonbValue	value;

	if (image == (Datum) 0)
		return true;
	it = JsonbIteratorInit(&DatumGetJsonbP(image)->root);
	while ((token = JsonbIteratorNext(&it, &name, true)) != WJB_DONE)
	{
		if (token != WJB_KEY)
			continue;
		(void) JsonbIteratorNext(&it, &value, true);
		if (value.type == jbvBinary && getKeyJsonValueFromContainer(value.val.binary.data, "dropped", 7, NULL) != NULL)
			continue;
		if (!util_name_in(names, pnstrdup(name.val.string.val, name.val.string.len)))
			return false;
	}
	return true;
}

/* What is left of a letter when a change told columns (NIL: all) of the row that it would write. True when nothing is. */
static bool
take_columns(LetterUpdate *update, HeapTuple tuple, TupleDesc desc, const List *columns)
{
	List	   *newer;
	int			before;
	ListCell   *lc;

	if (columns == NIL)
		return true;
	newer = catalog_get_list(tuple, desc, Anum_dead_letter_newer);
	before = list_length(newer);
	foreach(lc, columns)
	{
		if (!util_name_in(newer, lfirst(lc)))
			newer = lappend(newer, lfirst(lc));
	}
	if (covers(newer, catalog_get_varlena(tuple, desc, Anum_dead_letter_after)))
		return true;
	if (list_length(newer) > before)
		update_set(update, Anum_dead_letter_newer, util_text_array(newer));
	return false;
}

static int
supersede_half(int32 pipeline_id, int32 table_id, AttrNumber half, const bytea *key, const List *columns,
			   int64 before_id, const char *reason)
{
	AttrNumber	other = half == Anum_dead_letter_old_key ? Anum_dead_letter_new_key : Anum_dead_letter_old_key;
	int			count = 0;
	CatalogScan scan;
	HeapTuple	tuple;

	begin_table(&scan, RowExclusiveLock, pipeline_id, table_id, half, key);
	while (HeapTupleIsValid(tuple = catalog_scan_next(&scan)))
	{
		TupleDesc	desc = RelationGetDescr(scan.rel);
		LetterUpdate update = {0};
		bool		other_is_null;
		bool		is_moot;

		CHECK_FOR_INTERRUPTS();
		if (!is_free(tuple, desc) ||
			(catalog_get_int64(tuple, desc, Anum_dead_letter_id) >= before_id &&
			 strcmp(catalog_get_text(tuple, desc, Anum_dead_letter_operation), "snapshot") != 0))
			continue;
		(void) heap_getattr(tuple, other, desc, &other_is_null);
		is_moot = half == Anum_dead_letter_old_key || take_columns(&update, tuple, desc, columns);
		if (is_moot)
			update_set(&update, half, (Datum) 0);
		if (is_moot && other_is_null)
		{
			update_state(&update, CATALOG_LETTER_SUPERSEDED, reason);
			count++;
		}
		if (is_moot || update.replaces[Anum_dead_letter_newer - 1])
			catalog_tuple_update(scan.rel, tuple, update.values, update.nulls, update.replaces);
	}
	catalog_scan_end(&scan);
	return count;
}

int
catalog_dead_letter_supersede(int32 pipeline_id, int32 table_id, const bytea *key, const List *columns,
							  int64 before_id, const char *reason)
{
	return supersede_half(pipeline_id, table_id, Anum_dead_letter_old_key, key, columns, before_id, reason) +
		supersede_half(pipeline_id, table_id, Anum_dead_letter_new_key, key, columns, before_id, reason);
}

int64
catalog_dead_letter_take_rows(int32 pipeline_id, int32 table_id, const bytea *key, int64 count, const char *reason)
{
	int64		taken = 0;
	CatalogScan scan;
	HeapTuple	tuple;

	begin_table(&scan, RowExclusiveLock, pipeline_id, table_id, Anum_dead_letter_new_key, key);
	while (taken < count && HeapTupleIsValid(tuple = catalog_scan_next(&scan)))
	{
		LetterUpdate update = {0};

		CHECK_FOR_INTERRUPTS();
		if (!is_free(tuple, RelationGetDescr(scan.rel)))
			continue;
		update_state(&update, CATALOG_LETTER_SUPERSEDED, reason);
		catalog_tuple_update(scan.rel, tuple, update.values, update.nulls, update.replaces);
		taken++;
	}
	catalog_scan_end(&scan);
	return taken;
}

void
catalog_dead_letter_edit_table(int32 pipeline_id, int32 table_id, CatalogLetterEdit edit, void *arg)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc dead letter", ALLOCSET_DEFAULT_SIZES);
	CatalogScan scan;
	HeapTuple	tuple;

	begin_table(&scan, RowExclusiveLock, pipeline_id, table_id, Anum_dead_letter_new_key, NULL);
	while (HeapTupleIsValid(tuple = catalog_scan_next(&scan)))
	{
		MemoryContext old = MemoryContextSwitchTo(cxt);
		CatalogDeadLetter *letter;

		CHECK_FOR_INTERRUPTS();
		if (is_open(tuple, RelationGetDescr(scan.rel)))
		{
			letter = letter_from_tuple(tuple, RelationGetDescr(scan.rel));
			if (edit(arg, letter))
			{
				LetterUpdate update = {0};

				update_set(&update, Anum_dead_letter_before, letter->before);
				update_set(&update, Anum_dead_letter_after, letter->after);
				update_set(&update, Anum_dead_letter_newer, letter->newer == NIL ? (Datum) 0 : util_text_array(letter->newer));
				if (letter->state == CATALOG_LETTER_SUPERSEDED)
					update_state(&update, letter->state, letter->reason);
				catalog_tuple_update(scan.rel, tuple, update.values, update.nulls, update.replaces);
			}
		}
		MemoryContextSwitchTo(old);
		MemoryContextReset(cxt);
	}
	catalog_scan_end(&scan);
	MemoryContextDelete(cxt);
}

void
catalog_dead_letter_set_names(int32 pipeline_id, int32 table_id, const char *schema, const char *name)
{
	CatalogScan scan;
	HeapTuple	tuple;

	begin_table(&scan, RowExclusiveLock, pipeline_id, table_id, Anum_dead_letter_new_key, NULL);
	while (HeapTupleIsValid(tuple = catalog_scan_next(&scan)))
	{
		LetterUpdate update = {0};

		CHECK_FOR_INTERRUPTS();
		if (!is_open(tuple, RelationGetDescr(scan.rel)))
			continue;
		update_set(&update, Anum_dead_letter_source_schema, CStringGetTextDatum(schema));
		update_set(&update, Anum_dead_letter_source_table, CStringGetTextDatum(name));
		catalog_tuple_update(scan.rel, tuple, update.values, update.nulls, update.replaces);
	}
	catalog_scan_end(&scan);
}

int64
catalog_dead_letter_supersede_table(int32 pipeline_id, int32 table_id, const char *reason)
{
	return catalog_dead_letter_take_rows(pipeline_id, table_id, NULL, PG_INT64_MAX, reason);
}

/* ----------------------------------------------------------------------- pruning */

int64
catalog_dead_letter_count(int32 pipeline_id)
{
	CatalogScan scan;
	int64		count = 0;

	catalog_scan_begin(&scan, CATALOG_REL_DEAD_LETTER, AccessShareLock, 1, &pipeline_id);
	while (HeapTupleIsValid(catalog_scan_next(&scan)))
	{
		CHECK_FOR_INTERRUPTS();
		count++;
	}
	catalog_scan_end(&scan);
	return count;
}

void
catalog_dead_letter_delete_from(int32 pipeline_id, XLogRecPtr commit_lsn)
{
	CatalogScan scan;
	HeapTuple	tuple;

	begin_above(&scan, RowExclusiveLock, pipeline_id, 0);
	while (HeapTupleIsValid(tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection)))
	{
		char	   *place = catalog_get_text(tuple, RelationGetDescr(scan.rel), Anum_dead_letter_gtid);

		CHECK_FOR_INTERRUPTS();
		if (place != NULL && DatumGetLSN(DirectFunctionCall1(pg_lsn_in, CStringGetDatum(place))) >= commit_lsn)
			catalog_tuple_delete(scan.rel, tuple);
	}
	catalog_scan_end(&scan);
}

void
catalog_dead_letter_delete_copied(int32 pipeline_id, int32 chunk_no)
{
	CatalogScan scan;
	HeapTuple	tuple;

	begin_above(&scan, RowExclusiveLock, pipeline_id, 0);
	while (HeapTupleIsValid(tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection)))
	{
		TupleDesc	desc = RelationGetDescr(scan.rel);

		CHECK_FOR_INTERRUPTS();
		if (strcmp(catalog_get_text(tuple, desc, Anum_dead_letter_operation), "snapshot") == 0 &&
			catalog_get_int64(tuple, desc, Anum_dead_letter_action) > chunk_no)
			catalog_tuple_delete(scan.rel, tuple);
	}
	catalog_scan_end(&scan);
}

static void
note_loss(CatalogLetterPrune *prune, HeapTuple tuple, TupleDesc desc)
{
	int32		table_id = catalog_get_int32(tuple, desc, Anum_dead_letter_table_id);
	CatalogLetterLoss *loss;
	ListCell   *lc;

	prune->open++;
	foreach(lc, prune->losses)
	{
		loss = lfirst(lc);
		if (loss->table_id == table_id)
		{
			loss->count++;
			return;
		}
	}
	loss = palloc0(sizeof(CatalogLetterLoss));
	loss->table_id = table_id;
	loss->source_schema = catalog_get_text(tuple, desc, Anum_dead_letter_source_schema);
	loss->source_table = catalog_get_text(tuple, desc, Anum_dead_letter_source_table);
	loss->count = 1;
	prune->losses = lappend(prune->losses, loss);
}

/* Remove the oldest ones, those that were made before a time (0: whenever) and, with settled_only, that are settled; at most so many. */
static int64
remove_oldest(int32 pipeline_id, TimestampTz before, bool settled_only, int64 at_most, CatalogLetterPrune *prune)
{
	int64		count = 0;
	CatalogScan scan;
	HeapTuple	tuple;

	begin_above(&scan, RowExclusiveLock, pipeline_id, 0);
	while (count < at_most && HeapTupleIsValid(tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection)))
	{
		TupleDesc	desc = RelationGetDescr(scan.rel);
		bool		opened = is_open(tuple, desc);

		CHECK_FOR_INTERRUPTS();
		/* they are made in the order of their numbers, but for moments */
		if (before != 0 && catalog_get_time(tuple, desc, Anum_dead_letter_created_at) >= before)
			break;
		if (opened && settled_only)
			continue;
		if (opened)
			note_loss(prune, tuple, desc);
		else
			prune->settled++;
		catalog_tuple_delete(scan.rel, tuple);
		count++;
	}
	catalog_scan_end(&scan);
	return count;
}

void
catalog_dead_letter_prune(int32 pipeline_id, TimestampTz before, int64 excess, int64 at_most, CatalogLetterPrune *prune)
{
	int64		removed = before == 0 ? 0 : remove_oldest(pipeline_id, before, false, at_most, prune);
	int64		room = at_most - removed;

	excess = Max(excess - removed, 0);
	if (excess > 0 && room > 0)
	{
		int64		settled = remove_oldest(pipeline_id, 0, true, Min(excess, room), prune);

		removed += settled;
		excess -= settled;
		room -= settled;
	}
	if (excess > 0 && room > 0)
		removed += remove_oldest(pipeline_id, 0, false, Min(excess, room), prune);
	prune->more = removed == at_most;
}
