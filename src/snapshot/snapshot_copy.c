/*-------------------------------------------------------------------------
 *
 * snapshot_copy.c
 *	  Copies tables chunk by chunk, while the stream applies their changes.
 *
 * NOTES
 *	  One page of a chunk is read into memory, with no transaction open here and
 *	  no lock there (snapshot_plan.c, snapshot_read.c); then, in one transaction:
 *
 *	  1. take the table's ShareLock, which keeps the stream off this table, but
 *	     not the other workers that copy it;
 *	  2. with snapshots taken from now on, check that the chunk is open and ours
 *	     in the ledger, which it is only while its copy goes on;
 *	  3. write every row whose key is neither in the target nor in
 *	     snapshot_deleted: those that are there the stream brought, or removed,
 *	     and the stream is newer or the same;
 *	  4. mark the chunk as done, commit.
 *
 *	  A snapshot taken before the lock would miss what the stream committed while
 *	  we waited, and bring a removed row back.
 *
 *	  Two look-ups for each row cost more than the row. As long as the stream has
 *	  not written to the table, which it notes the first time, under the lock that
 *	  excludes us, there is nothing to be found: chunks have no key in common, and
 *	  the target was empty. Should somebody else have written the key, its unique
 *	  index says so, and the page is written again with look-ups.
 *
 *	  A row that does not fit stops its table; with option on_error "dead_letter" its page is
 *	  written again without it (snapshot_letters.c).
 *
 *	  A target that had rows when the copy began (on_existing "append") is told
 *	  from rows of the stream by notes: see catalog_deleted_keep_all. There the
 *	  source's row overwrites what is in the target, unless the stream touched it.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "catalog/catalog_lock.h"
#include "catalog/catalog_shadow.h"
#include "heap/heap_bulk.h"
#include "heap/heap_part.h"
#include "heap/heap_sql.h"
#include "mysql/mysql_text.h"
#include "snapshot/snapshot_copy.h"
#include "snapshot/snapshot_private.h"
#include "transform/transform_rule.h"
#include "util/util_arena.h"
#include "util/util_error.h"
#include "util/util_wait.h"

/*
 * So long an answer may lie here unread while we write: the source keeps the statement, and the table's lock, until it
 * has sent all of it, and an ALTER TABLE there would wait, with everybody behind it.
 */
#define PATIENCE_MS 5000

SnapshotCopy *
snapshot_create(const CatalogPipeline *pipeline, const MysqlEndpoint *endpoint, int worker,
				const char *identity, uint64 max_rows, const SnapshotHooks *hooks)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc snapshot", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	SnapshotCopy *copy = palloc0(sizeof(SnapshotCopy));

	copy->cxt = cxt;
	copy->step_cxt = AllocSetContextCreate(cxt, "cdc snapshot step", ALLOCSET_DEFAULT_SIZES);
	copy->session_cxt = AllocSetContextCreate(cxt, "cdc snapshot session", ALLOCSET_DEFAULT_SIZES);
	copy->pipeline_id = pipeline->id;
	copy->pipeline_name = pstrdup(pipeline->name);
	copy->worker = worker;
	copy->endpoint = endpoint;
	copy->identity = pstrdup(identity);
	copy->max_rows = max_rows;
	copy->hooks = *hooks;
	copy->stop_pipeline = catalog_pipeline_on_error(pipeline) == CATALOG_ON_ERROR_STOP;
	copy->keep_dead_letters = catalog_pipeline_on_error(pipeline) == CATALOG_ON_ERROR_DEAD_LETTER;
	transform_options_read(pipeline, &copy->types);
	cdc_arena_init(&copy->arena,
				   util_context_allocator(AllocSetContextCreate(cxt, "cdc snapshot values",
																ALLOCSET_DEFAULT_SIZES)), 0);
	MemoryContextSwitchTo(old);
	catalog_lock_snapshot_worker(pipeline->id, worker);
	return copy;
}

/* The lock of the worker's number stays to the end of the process. */
void
snapshot_destroy(SnapshotCopy *copy)
{
	mysql_session_close(copy->session);
	MemoryContextDelete(copy->cxt);
}

/*
 * The stream may go on at another server than before. Then what is copied begins anew, as another generation of its table;
 * so it is enough to look before work on a generation that is new here. In a transaction.
 */
void
snapshot_check_server(SnapshotCopy *copy)
{
	const CatalogPosition *position = catalog_position_load(copy->pipeline_id, true);
	MemoryContext old;

	if (position == NULL || strcmp(position->identity, copy->identity) == 0)
		return;
	snapshot_close_session(copy);
	old = MemoryContextSwitchTo(copy->cxt);
	copy->identity = pstrdup(position->identity);
	MemoryContextSwitchTo(old);
}

/* Connect if there is no connection; it must be the server that the stream reads from. */
void
snapshot_open_session(SnapshotCopy *copy)
{
	MemoryContext old;

	if (copy->session != NULL)
		return;

	MemoryContextReset(copy->session_cxt);
	old = MemoryContextSwitchTo(copy->session_cxt);
	copy->session = mysql_server_open(copy->endpoint, copy->identity, &copy->info);
	MemoryContextSwitchTo(old);
	mysql_server_limit_lock_wait(copy->session, true);
	mysql_session_set_patience(copy->session, PATIENCE_MS);
}

void
snapshot_close_session(SnapshotCopy *copy)
{
	mysql_session_close(copy->session);
	copy->session = NULL;
	copy->sent = false;
}

bool
snapshot_table_is_due(const SnapshotCopy *copy, const CopyTable *table)
{
	const CatalogTable *now = catalog_table_by_id(copy->pipeline_id, table->table_id);

	return now != NULL && now->generation == table->generation &&
		(now->state == CATALOG_TABLE_SNAPSHOT || (copy->rereading && now->state == CATALOG_TABLE_CATCHUP));
}

CopyTable *
snapshot_make_table(const CatalogTable *from)
{
	CopyTable  *table = palloc0(sizeof(CopyTable));

	table->cxt = CurrentMemoryContext;
	table->table_id = from->table_id;
	table->generation = from->generation;
	table->target = from->target;
	table->source_schema = from->source_schema;
	table->source_table = from->source_table;
	table->def = schema_def_from_jsonb(from->definition);
	table->own_rows = from->own_rows;
	table->nkey = (int) table->def->nkey;
	return table;
}

/* -------------------------------------------------------------- writing a page */

/* Frame of the error context while rows are written; never shows a value. */
static void
copy_error_context(void *arg)
{
	SnapshotCopy *copy = arg;
	const CopyTable *table = copy->page->chunk->table;

	if (copy->row != NULL && copy->row->current != NULL)
		errcontext("snapshot of pipeline \"%s\", table \"%s.%s\", column \"%s\", chunk %d, row " INT64_FORMAT,
				   copy->pipeline_name, table->source_schema, table->source_table,
				   copy->row->current->name, copy->page->chunk->chunk_no, copy->row_no);
	else
		errcontext("snapshot of pipeline \"%s\", table \"%s.%s\", chunk %d, row " INT64_FORMAT,
				   copy->pipeline_name, table->source_schema, table->source_table,
				   copy->page->chunk->chunk_no, copy->row_no);
}

bool
snapshot_fill_row(SnapshotCopy *copy, const CopyTable *table, HeapRow *row,
				  const char *const *values, const uint32 *lengths)
{
	const CdcTableDef *def = table->def;

	cdc_arena_reset(&copy->arena);
	if (heap_row_wants_origin(row))
	{
		TransformOrigin origin = {.operation = "copy"};

		heap_row_set_origin(row, &origin);
	}
	heap_row_begin(row);
	for (uint32 i = 0; i < def->ncolumns; i++)
	{
		CdcCell		cell;
		CdcError	err;

		if (row->table->columns[i].attnum <= 0)
			continue;
		if (mysql_text_to_cell(&def->columns[i], values[i], lengths[i],
							   &copy->arena, &cell, &err) != CDC_OK)
			heap_row_bad_cell(&def->columns[i], &err);
		heap_row_set(row, i, &cell);
	}
	return heap_row_make(row);
}

/*
 * Rows that overwrite older ones, or fill parts of them, are written one by one, or (SQL tier) by
 * statements that put them; all others as many at a time as the target allows.
 */
static void
rows_begin(HeapTarget *target, const CopyNotes *notes)
{
	if (!notes->one_by_one)
		heap_bulk_begin(target);
	else if (target->tier == HEAP_TIER_SQL)
		heap_sql_begin(target);
}

static void
rows_end(HeapTarget *target, const CopyNotes *notes)
{
	if (!notes->one_by_one)
		heap_bulk_end(target);
	else if (target->tier == HEAP_TIER_SQL)
		heap_sql_end(target, false);
}

static void
overwrite_row(HeapRow *row)
{
	HeapTarget *target = row->target;

	if (heap_part_is_used(row))
	{
		(void) heap_part_put(row);
		return;
	}
	if (heap_row_is_outrun(row, target->slot))
		return;					/* what is there is newer */
	if (target->tier == HEAP_TIER_SQL)
		heap_sql_put(target);
	else if (heap_target_find(target))
		heap_target_update(target);
	else
		heap_target_insert(target);
}

bool
snapshot_row_is_there(HeapRow *row)
{
	return heap_part_is_used(row) ? heap_part_is_there(row) : heap_bulk_exists(row->target);
}

/* Write a row where there may be one with its key; false when it was left out. */
static bool
merge_row(SnapshotCopy *copy, HeapRow *row, const CopyNotes *notes)
{
	const CopyTable *table = copy->page->chunk->table;

	heap_row_search_new(row);
	if (!notes->overwrite && snapshot_row_is_there(row))
		return false;
	if (notes->any_deleted &&
		catalog_deleted_exists(copy->pipeline_id, table->table_id,
							   chunk_key_bytes(row->target, row->target->search)))
		return false;
	if (notes->one_by_one)
		overwrite_row(row);
	else
		heap_bulk_insert(row->target);
	return true;
}

int64
snapshot_insert_rows(SnapshotCopy *copy, const CopyNotes *notes, int64 from, int64 to, const uint8 *left_out)
{
	const CopyPage *page = copy->page;
	const CopyTable *table = page->chunk->table;
	MemoryContext row_cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc snapshot row",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;
	HeapRow    *row;
	int64		replaced = 0;

	row = heap_row_open(table->target, table->def, &copy->types);
	heap_part_check(row, table->own_rows);
	copy->row = row;
	rows_begin(row->target, notes);
	old = MemoryContextSwitchTo(row_cxt);

	for (int64 i = from; i < to; i++)
	{
		util_check_interrupts();
		if (left_out != NULL && (left_out[i / 8] & 1 << i % 8) != 0)
			continue;
		MemoryContextReset(row_cxt);
		copy->row_no = i + 1;

		(void) heap_row_take_replaced(row);		/* of a row that was left out */
		if (!snapshot_fill_row(copy, table, row, page->rows[i].values, page->rows[i].lengths))
			continue;
		if (!notes->look_up)
			heap_bulk_insert(row->target);
		else if (!merge_row(copy, row, notes))
			continue;
		replaced += heap_row_take_replaced(row);
	}
	rows_end(row->target, notes);

	MemoryContextSwitchTo(old);
	copy->row = NULL;
	copy->row_no = 0;
	heap_row_close(row);
	MemoryContextDelete(row_cxt);
	return replaced;
}

/* Under the lock: what did the stream note about the table? */
static CopyNotes
read_notes(const SnapshotCopy *copy, const CopyTable *table)
{
	CopyNotes	notes;
	bool		stream;

	catalog_deleted_notes(copy->pipeline_id, table->table_id, &stream, &notes.overwrite);
	notes.one_by_one = notes.overwrite || heap_part_is(table->own_rows);
	notes.look_up = stream || notes.one_by_one || table->careful;
	notes.any_deleted = notes.look_up && catalog_deleted_any(copy->pipeline_id, table->table_id);
	return notes;
}

/*
 * Under the lock: the chunk in the ledger, when it is still to be written by us. What takes a table out of SNAPSHOT
 * or begins its copy anew removes its chunks in the same transaction, and a generation's numbers are its own: a chunk
 * that is open says that the table is still being copied, and by whom.
 */
static CatalogChunk *
chunk_to_write(const SnapshotCopy *copy, const CopyChunk *chunk)
{
	CatalogChunk *now = catalog_chunk_by_no(copy->pipeline_id, chunk->table->table_id, chunk->table->generation,
											chunk->chunk_no);

	return now != NULL && now->state == CATALOG_CHUNK_OPEN && now->worker == copy->worker ? now : NULL;
}

/*
 * Write the page and mark its chunk as done, in one transaction. False when the
 * table is no longer being copied, or the chunk is not ours any more.
 */
static bool
write_page(SnapshotCopy *copy)
{
	const CopyPage *page = copy->page;
	CopyTable  *table = page->chunk->table;
	ErrorContextCallback frame = {.previous = error_context_stack,.callback = copy_error_context,.arg = copy};
	CatalogChunk *ledger;
	int64		replaced = 0;
	int64		letters = 0;

	copy->at = table;
	copy->writing = true;
	error_context_stack = &frame;
	heap_transaction_begin();
	if (heap_part_is(table->own_rows))
		catalog_lock_target(table->target);
	catalog_lock_table(copy->pipeline_id, table->table_id, ShareLock);

	/* every snapshot from here on is newer than the lock */
	PushActiveSnapshot(GetTransactionSnapshot());
	ledger = chunk_to_write(copy, page->chunk);
	if (ledger != NULL)
	{
		CopyNotes	notes = read_notes(copy, table);

		copy->unchecked = !notes.look_up;
		if (page->nrows > 0)
			replaced = page->way == COPY_PLAIN ? snapshot_insert_rows(copy, &notes, 0, page->nrows, NULL)
				: snapshot_insert_fitting(copy, &notes, &letters);
		ledger->state = CATALOG_CHUNK_DONE;
		ledger->rows = page->nrows;
		ledger->bytes = page->bytes;
		ledger->chunks = 1;
		catalog_chunk_update(ledger);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	error_context_stack = frame.previous;
	MemoryContextSwitchTo(copy->step_cxt);
	copy->writing = false;
	pgstat_report_stat(false);
	table->has_letters |= letters > 0;
	if (replaced > 0 || letters > 0)
		copy->hooks.publish(copy->hooks.arg, table->table_id, replaced, letters);
	return ledger != NULL;
}

/* ------------------------------------------------------------------- one step */

/* Give up all that is in memory; what is open in the ledger under our number is taken up again. */
static void
give_up(SnapshotCopy *copy)
{
	snapshot_plan_unlock(copy);
	if (copy->holding)
		copy->hooks.release(copy->hooks.arg);
	if (copy->sent || copy->asking || copy->in_snapshot)
		snapshot_close_session(copy);
	copy->holding = copy->in_snapshot = copy->rereading = false;
	copy->at = NULL;
	snapshot_chunk_free(copy->reading);
	snapshot_page_free(copy->page);
	copy->reading = NULL;
	copy->page = NULL;
	copy->current = NULL;
	copy->asking = copy->writing = copy->opening = false;
	copy->row = NULL;
	copy->row_no = 0;
	list_free_deep(copy->queue);
	copy->queue = NIL;
}

/* Option on_error is "stop": the chunk stays open in the ledger, and is written when the pipeline goes on. */
static _Noreturn void
stop_pipeline(SnapshotCopy *copy, const CopyTable *table, const UtilErrorInfo *info)
{
	copy->hooks.fail(copy->hooks.arg);
	ereport(ERROR,
			(errcode(info->sqlstate),
			 errmsg("source table \"%s.%s\" cannot be copied: %s", table->source_schema, table->source_table, info->message),
			 info->detail ? errdetail("%s", info->detail) : 0,
			 errhint("Mend the cause, then let the pipeline go on with cdc_start_pipeline(); its option \"on_error\" is \"stop\"."),
			 info->context ? errcontext("%s", info->context) : 0));
}

/* Has the source's table another shape than the copy believes? Asked after an error, with another connection. */
static bool
looks_changed(SnapshotCopy *copy, const CopyTable *table)
{
	volatile bool result = false;

	PG_TRY();
	{
		snapshot_close_session(copy);
		snapshot_open_session(copy);
		result = snapshot_has_changed(copy, table);
	}
	PG_CATCH();
	{
		/* the first error counts */
		MemoryContextSwitchTo(copy->step_cxt);
		FlushErrorState();
	}
	PG_END_TRY();
	return result;
}

/* Its source changed its shape: the copy begins anew by itself, if that is wanted. In a transaction of its own. */
static bool
begin_anew(SnapshotCopy *copy, const CopyTable *table)
{
	CatalogTable from = {.table_id = table->table_id,.generation = table->generation};
	bool		done;

	/* without a definition there is nothing that the source's could differ from */
	if (table->def == NULL)
		return false;
	/* values that made no sense may be those of another type by now */
	if (!copy->changed && !looks_changed(copy, table) && !copy->changed)
		return false;
	copy->changed = false;
	heap_transaction_begin();
	catalog_lock_table(copy->pipeline_id, table->table_id, ShareLock);
	PushActiveSnapshot(GetTransactionSnapshot());
	done = snapshot_begin_anew(copy->pipeline_id, &from);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(copy->step_cxt);
	if (!done)
		return false;
	ereport(LOG,
			(errmsg("source table \"%s.%s\" of pipeline \"%s\" is copied anew because of a change of its shape",
					table->source_schema, table->source_table, copy->pipeline_name),
			 errdetail("It changed while it was copied.")));
	copy->hooks.join(copy->hooks.arg);
	return true;
}

/* Stop a table for an error that is its own, in a transaction of its own; the first worker to do so says it. */
static void
stop_table(SnapshotCopy *copy, const CopyTable *table, ErrorData *edata)
{
	UtilErrorInfo *info = util_error_info(edata);
	bool		is_first = false;

	if (copy->stop_pipeline)
		stop_pipeline(copy, table, info);
	if (info->hint == NULL)
		info->hint = "Mend the cause, then use cdc_resync_table() to copy the table anew.";

	heap_transaction_begin();
	catalog_lock_table(copy->pipeline_id, table->table_id, ShareLock);
	PushActiveSnapshot(GetTransactionSnapshot());
	MemoryContextSwitchTo(copy->step_cxt);
	catalog_shadow_name_table(copy->pipeline_id, table->table_id, info);
	if (snapshot_table_is_due(copy, table))
		is_first = catalog_table_set_stopped(copy->pipeline_id, table->table_id, NULL, info);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(copy->step_cxt);

	if (is_first)
		ereport(LOG,
				(errcode(info->sqlstate),
				 errmsg("source table \"%s.%s\" of pipeline \"%s\" is stopped: %s",
						table->source_schema, table->source_table, copy->pipeline_name, info->message),
				 info->detail ? errdetail("%s", info->detail) : 0,
				 errhint("%s", info->hint),
				 info->context ? errcontext("%s", info->context) : 0));
}

/* Read a page if none is in memory, ask for the next one, write. */
static bool
copy_step(SnapshotCopy *copy)
{
	CopyTable  *table;
	bool		is_written;

	if (copy->page == NULL)
	{
		if (copy->reading == NULL && !snapshot_plan_next(copy, false))
			return false;
		copy->page = snapshot_read_page(copy);
	}

	/* from the same table only: what comes next elsewhere may be for somebody else by then */
	if (copy->reading != NULL || snapshot_plan_next(copy, true))
	{
		if (!copy->sent)
			snapshot_read_send(copy);
	}

	table = copy->page->chunk->table;
	snapshot_forget_put_off(copy, table->table_id);
	copy->hooks.throttle(copy->hooks.arg, copy->page->nrows);
	is_written = write_page(copy);
	snapshot_page_free(copy->page);
	copy->page = NULL;
	if (!is_written)
		give_up(copy);
	else if (copy->reading == NULL)
		snapshot_plan_finish(copy, table);
	return true;
}

/*
 * Inside PG_CATCH: the error, as it is to be told. One that the source answered a
 * query with is the table's own when the table's definition is no longer the one
 * that we know.
 */
static ErrorData *
catch_error(SnapshotCopy *copy)
{
	ErrorData  *volatile edata;

	MemoryContextSwitchTo(copy->step_cxt);
	edata = CopyErrorData();
	FlushErrorState();
	AbortOutOfAnyTransaction();
	MemoryContextSwitchTo(copy->step_cxt);

	if (copy->at == NULL || !copy->asking || copy->session == NULL)
		return edata;
	PG_TRY();
	{
		snapshot_explain_refusal(copy, copy->at);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(copy->step_cxt);
		edata = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	return edata;
}

/*
 * No table can be copied now: some may wait for the source to show what lies before they joined. True when it
 * does for one; *waiting: there are others.
 */
static bool
allow_joined(SnapshotCopy *copy, bool *waiting)
{
	List	   *tables = snapshot_join_waiting(copy->pipeline_id);
	bool		allowed;
	bool		anew;

	*waiting = tables != NIL;
	if (tables == NIL)
		return false;
	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	MemoryContextSwitchTo(copy->step_cxt);
	snapshot_check_server(copy);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(copy->step_cxt);
	snapshot_open_session(copy);
	allowed = snapshot_join_allow(copy->pipeline_id, tables, copy->session, copy->info, &anew);
	if (anew)
		copy->hooks.join(copy->hooks.arg);
	return allowed;
}

/* What there is to do, one step of it. */
static SnapshotProgress
any_step(SnapshotCopy *copy)
{
	bool		joined;
	bool		reread;

	if (copy_step(copy) || allow_joined(copy, &joined) || snapshot_keyless_step(copy) ||
		snapshot_reread_step(copy, &reread))
		return SNAPSHOT_DID_SOMETHING;
	return joined || reread || snapshot_any_put_off(copy) ? SNAPSHOT_WAITS : SNAPSHOT_HAS_NOTHING;
}

/* The table could not be had at the source, which may pass: it is tried again, and others go on meanwhile. */
static bool
is_to_be_put_off(const SnapshotCopy *copy, const ErrorData *edata)
{
	if (copy->at == NULL || !copy->asking)
		return false;
	/* a table without a key needs a privilege more */
	return edata->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE ||
		(edata->sqlerrcode == CDC_ERRCODE_SOURCE_SETTING && copy->at->nkey == 0);
}

/* What a table is put off for, in our words where the server's tell little. */
static UtilErrorInfo *
put_off_info(const SnapshotCopy *copy, ErrorData *edata)
{
	UtilErrorInfo *info = util_error_info(edata);

	if (edata->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE && copy->at->nkey > 0)
	{
		info->message = psprintf("source table \"%s.%s\" is locked", copy->at->source_schema, copy->at->source_table);
		info->detail = "Somebody has held it for more than a second. Its copy is tried again; others go on.";
		info->hint = "End the statement or the LOCK TABLES that holds it on the source.";
	}
	return info;
}

/* Inside PG_CATCH: what comes of an error. Throws it on when it is neither a table's own nor to be waited for. */
static void
handle_error(SnapshotCopy *copy)
{
	bool		gave_up = copy->asking && copy->session != NULL && mysql_session_gave_up(copy->session);
	ErrorData  *edata = catch_error(copy);

	if (copy->writing && copy->unchecked && edata->sqlerrcode == ERRCODE_UNIQUE_VIOLATION)
	{
		/* somebody else writes to the target: again, with a look at each row */
		copy->at->careful = true;
		copy->writing = false;
		copy->row = NULL;
		copy->row_no = 0;
	}
	else if (copy->writing && copy->keep_dead_letters && !copy->opening && copy->page->way != COPY_KEEP &&
			 heap_error_is_tables_own(edata->sqlerrcode))
	{
		copy->page->way++;
		copy->writing = false;
		copy->row = NULL;
		copy->row_no = 0;
	}
	else if (gave_up)
		give_up(copy);			/* what it had not sent yet is asked for anew */
	else if (is_to_be_put_off(copy, edata))
	{
		CopyTable	table = *copy->at;
		UtilErrorInfo *info = put_off_info(copy, edata);

		give_up(copy);
		snapshot_put_off(copy, &table, info);
	}
	else
	{
		/* a grant that is missing on the source can be mended without losing the table */
		if (copy->at == NULL || !heap_error_is_tables_own(edata->sqlerrcode) ||
			(copy->asking && edata->sqlerrcode == ERRCODE_INSUFFICIENT_PRIVILEGE))
			ReThrowError(edata);
		if (!begin_anew(copy, copy->at))
			stop_table(copy, copy->at, edata);
		give_up(copy);
	}
}

SnapshotProgress
snapshot_step(SnapshotCopy *copy)
{
	MemoryContext caller = MemoryContextSwitchTo(copy->step_cxt);
	ErrorContextCallback *context_stack = error_context_stack;
	volatile SnapshotProgress progress = SNAPSHOT_DID_SOMETHING;

	MemoryContextReset(copy->step_cxt);
	PG_TRY();
	{
		progress = any_step(copy);
	}
	PG_CATCH();
	{
		error_context_stack = context_stack;
		handle_error(copy);
	}
	PG_END_TRY();

	MemoryContextSwitchTo(caller);
	return progress;
}
