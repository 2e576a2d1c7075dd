/*-------------------------------------------------------------------------
 *
 * apply.c
 *	  Source transactions -> PostgreSQL transactions.
 *
 * NOTES
 *	  In: events in stream order. Out: rows, and in the same transaction one
 *	  position row. Two transactions are told apart throughout: the source's
 *	  ("txn") and ours ("open"). A source transaction never spans two of ours;
 *	  the position row always names the end of a whole source transaction.
 *
 *	  closed --first change--> open --COMMIT of the source--> open, due?
 *	    open --apply_flush-------------------> closed, position durable
 *	    open --a table has to stop-----------> undone, stop recorded, REWIND
 *	    open --source transaction is undone--> undone, its start noted, REWIND
 *
 *	  A rewind forgets everything since the durable position; the caller opens
 *	  the source there again and the same events come once more. What was
 *	  learned (a table's stop position, a transaction to pass over) makes the
 *	  second round go differently, so each rewind happens once. A crash between
 *	  undoing and recording only means that it is found out again.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "apply/apply_private.h"
#include "catalog/catalog_lock.h"
#include "catalog/catalog_shadow.h"
#include "transform/transform_rule.h"
#include "util/util_arena.h"

/* A position that moved without changes is written this often. */
#define IDLE_FLUSH_MS 1000

/* GTIDs of transactions that were not ours are written at the latest when there are so many. */
#define MAX_PENDING_GTIDS 10000

#define GTIDS_FIRST 64

/* How far a source transaction is, is told each time that so much of it has come. */
#define TELL_CHANGES 1000
#define TELL_BYTES (1024 * 1024)

static int
int_option(const CatalogPipeline *pipeline, const char *name)
{
	return util_option_int(&catalog_pipeline_options, name, catalog_pipeline_option(pipeline, name));
}

static const char *
word_option(const CatalogPipeline *pipeline, const char *name)
{
	return util_option_text(&catalog_pipeline_options, name, catalog_pipeline_option(pipeline, name));
}

Apply *
apply_create(const CatalogPipeline *pipeline, CatalogPositionLog *log,
			 const MysqlEndpoint *endpoint, ApplyPublish publish, ApplyTell tell, void *arg)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc apply", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(cxt);
	Apply	   *apply = palloc0(sizeof(Apply));

	apply->cxt = cxt;
	apply->change_cxt = AllocSetContextCreate(cxt, "cdc apply change", ALLOCSET_DEFAULT_SIZES);
	cdc_arena_init(&apply->arena,
				   util_context_allocator(AllocSetContextCreate(cxt, "cdc apply values",
																ALLOCSET_DEFAULT_SIZES)), 0);
	apply->pipeline_id = pipeline->id;
	apply->pipeline_name = pstrdup(pipeline->name);
	apply->log = log;
	apply->endpoint = endpoint;
	apply->publish = publish;
	apply->tell = tell;
	apply->caller = arg;
	apply->max_rows = int_option(pipeline, "batch_max_rows");
	apply->max_bytes = (int64) int_option(pipeline, "batch_max_kb") * 1024;
	apply->max_ms = int_option(pipeline, "batch_max_ms");
	apply->collapse = strcmp(word_option(pipeline, "collapse"), "auto") == 0;
	apply->keep_dead_letters = catalog_pipeline_on_error(pipeline) == CATALOG_ON_ERROR_DEAD_LETTER;
	apply->letters_max_days = int_option(pipeline, "dead_letter_max_days");
	apply->letters_max_rows = int_option(pipeline, "dead_letter_max_rows");
	apply->letters_counted = -1;
	apply->stop_pipeline = catalog_pipeline_on_error(pipeline) == CATALOG_ON_ERROR_STOP;
	transform_options_read(pipeline, &apply->types);
	catalog_change_rules_read(pipeline, &apply->rules);
	apply->streamed = catalog_position_log_current(log)->position;
	apply->flushed_at = GetCurrentTimestamp();
	apply->maxgtids = GTIDS_FIRST;
	apply->gtids = palloc(sizeof(CdcGtid) * apply->maxgtids);

	apply->online_change_follows = strcmp(word_option(pipeline, "online_schema_change"), "follow") == 0;
	apply->wishes_cxt = AllocSetContextCreate(cxt, "cdc apply wishes", ALLOCSET_SMALL_SIZES);
	apply->code_cxt = AllocSetContextCreate(cxt, "cdc apply stored code", ALLOCSET_SMALL_SIZES);
	apply->shape_cxt = AllocSetContextCreate(cxt, "cdc apply shape", ALLOCSET_SMALL_SIZES);
	apply->cascade_cxt = AllocSetContextCreate(cxt, "cdc apply cascades", ALLOCSET_SMALL_SIZES);
	apply->make_cascades = strcmp(word_option(pipeline, "cascades"), "synthesise") == 0;
	apply_tables_init(apply);
	apply_hold_init(apply);
	apply_undone_init(apply);
	MemoryContextSwitchTo(apply->change_cxt);
	apply_tables_load(apply);
	apply_skips_load(apply);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(apply->change_cxt);
	return apply;
}

/* ------------------------------------------------- the open PostgreSQL transaction */

/* Forget what belonged to the transaction that just ended. */
static void
forget_open(Apply *apply)
{
	ListCell   *lc;

	foreach(lc, apply->open_tables)
	{
		ApplyTable *table = lfirst(lc);

		table->row = NULL;
		table->batch = table->inserts = NULL;
		table->any_deleted = table->any_reread = table->noted_defaults = table->keeps_rows = false;
	}
	list_free(apply->open_tables);
	apply->open_tables = NIL;

	foreach(lc, apply->dirty)
	{
		ApplyTable *table = lfirst(lc);

		memset(&table->delta, 0, sizeof(table->delta));
		table->in_dirty = false;
	}
	list_free(apply->dirty);
	apply->dirty = NIL;

	memset(&apply->pending, 0, sizeof(apply->pending));
	apply->open = false;
	apply->commit_due = false;
	apply->txns_open = 0;
	apply->rows = 0;
	apply->bytes = 0;
	apply->unwritten_rows = 0;
	apply->unwritten_bytes = 0;
}

void
apply_begin(Apply *apply)
{
	if (apply->open)
		return;
	heap_transaction_begin();
	MemoryContextSwitchTo(apply->change_cxt);
	apply->open = true;
	apply->open_no++;
	apply->opened_at = GetCurrentTimestamp();
}

/* What events have told of tables that a statement had left open. */
static void
write_learned(Apply *apply)
{
	ListCell   *lc;

	foreach(lc, apply->open_tables)
	{
		ApplyTable *table = lfirst(lc);

		if (table->def_learned)
			catalog_table_set_definition(apply->pipeline_id, table->table_id, schema_def_to_jsonb(table->def));
		table->def_learned = false;
	}
}

void
apply_commit(Apply *apply)
{
	MemoryContext caller = CurrentMemoryContext;
	ListCell   *lc;

	if (!apply->open)
		heap_transaction_begin();
	MemoryContextSwitchTo(apply->change_cxt);

	foreach(lc, apply->open_tables)
	{
		ApplyTable *table = lfirst(lc);

		Assert(apply->unwritten_rows == 0);
		heap_row_close(table->row);
		table->row = NULL;
		table->batch = NULL;
	}
	PushActiveSnapshot(GetTransactionSnapshot());
	write_learned(apply);
	catalog_position_log_append(apply->log, &apply->streamed, apply->gtids, apply->ngtids);
	apply_wishes_write(apply);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(caller);

	apply->ngtids = 0;
	apply->moved = false;
	apply->flushed_at = GetCurrentTimestamp();
	apply_undone_prune(apply);
	apply_careful_committed(apply);
	apply_dead_letters_committed(apply);
	apply_wishes_forget(apply, true);

	apply->stats.transactions += apply->pending.transactions;
	apply->stats.changes += apply->pending.changes;
	apply->stats.bytes += apply->pending.bytes;
	apply->stats.flushes++;
	if (apply->pending.source_time_us != 0)
		apply->stats.source_time_us = apply->pending.source_time_us;
	foreach(lc, apply->dirty)
	{
		ApplyTable *table = lfirst(lc);

		if (apply->publish != NULL)
			apply->publish(apply->caller, table->table_id, &table->delta);
	}
	forget_open(apply);
	pgstat_report_stat(false);

	if (apply->reload_wanted)
		apply_tables_load(apply);
}

/* Undo what is open; the stream stands at the durable position again. */
static void
undo(Apply *apply)
{
	AbortOutOfAnyTransaction();
	MemoryContextSwitchTo(apply->change_cxt);
	forget_open(apply);

	apply->in_txn = false;
	apply->passing_over = false;
	apply->skipping = NULL;
	apply->txn_changes = 0;
	apply_hold_end(apply);
	apply_undone_reset(apply);
	apply_wishes_forget(apply, false);
	apply->ngtids = 0;
	apply->moved = false;
	apply->letters_open = 0;
}

void
apply_abandon(Apply *apply)
{
	AbortOutOfAnyTransaction();
	MemoryContextSwitchTo(apply->change_cxt);
	forget_open(apply);
}

/* Second half of a rewind, in the transaction that also records why. */
static void
reload_position(Apply *apply)
{
	catalog_position_log_reload(apply->log);
	apply->streamed = catalog_position_log_current(apply->log)->position;
}

/* ----------------------------------------------------------------- stopping tables */

ApplyStop *
apply_stop_make(ApplyTable *table, int sqlstate, char *message, const char *detail, const char *hint)
{
	ApplyStop  *stop = palloc0(sizeof(ApplyStop));

	stop->table = table;
	stop->error = util_error_info_make(sqlstate, message, detail ? pstrdup(detail) : NULL, pstrdup(hint ? hint : APPLY_HINT_ANEW));
	return stop;
}

ApplyStop *
apply_stop_for(ApplyTable *table, UtilErrorInfo *error)
{
	ApplyStop  *stop = palloc0(sizeof(ApplyStop));

	stop->table = table;
	stop->error = error;
	return stop;
}

const char *
apply_what_target_holds(const ApplyTable *table)
{
	switch (table->state)
	{
		case CATALOG_TABLE_SNAPSHOT:
		case CATALOG_TABLE_CATCHUP:
			return "The copy was not complete; the target does not show the source's table as it was at any one time.";
		case CATALOG_TABLE_STREAMING:
			return "The target holds everything before it.";
		case CATALOG_TABLE_STOPPED:
			break;
	}
	return "The table was stopped already, later in the log.";
}

/*
 * Option on_error is "stop": no table stops alone. Nothing of the source transaction is applied, and none of our
 * transactions is open; the worker ends, and the next one meets the same again, unless it was mended.
 */
static _Noreturn void
stop_pipeline(Apply *apply, const ApplyStop *stop, const CdcPosition *at)
{
	const UtilErrorInfo *error = stop->error;

	apply->failed_at = *at;
	error_context_stack = NULL; /* the stop's own context says more */
	ereport(ERROR,
			(errcode(error->sqlstate),
			 errmsg("source table \"%s.%s\" cannot be followed: %s", stop->table->schema, stop->table->name, error->message),
			 error->detail ? errdetail("%s", error->detail) : 0,
			 errhint("Mend the cause, then let the pipeline go on before this change with cdc_start_pipeline(); its option \"on_error\" is \"stop\"."),
			 error->context ? errcontext("%s", error->context) : 0));
}

/*
 * Record stops in a transaction of their own. A table that is stopped already
 * keeps its first error; when this stop comes earlier in the stream than that
 * one, it counts from here on as long as this process lives (and is found again
 * after it).
 */
static void
record_stops(Apply *apply, List *stops, const CdcPosition *at, bool reload)
{
	ListCell   *lc;
	char		position[CDC_POSITION_TEXT_MAX];
	ErrorContextCallback *frames = error_context_stack;

	if (apply->stop_pipeline && stops != NIL)
		stop_pipeline(apply, linitial(stops), at);

	heap_transaction_begin();
	MemoryContextSwitchTo(apply->change_cxt);
	PushActiveSnapshot(GetTransactionSnapshot());
	if (reload)
		reload_position(apply);
	/* keeps a chunk from being written while the rows go that it is compared with; see the order of locks */
	foreach(lc, stops)
	{
		const ApplyStop *stop = lfirst(lc);

		catalog_lock_table(apply->pipeline_id, stop->table->table_id, RowExclusiveLock);
	}
	foreach(lc, stops)
	{
		const ApplyStop *stop = lfirst(lc);

		catalog_shadow_name_table(apply->pipeline_id, stop->table->table_id, stop->error);
		catalog_table_set_stopped(apply->pipeline_id, stop->table->table_id, at, stop->error);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(apply->change_cxt);

	cdc_position_format(at, position);
	error_context_stack = NULL; /* the stop's own context says more */
	foreach(lc, stops)
	{
		const ApplyStop *stop = lfirst(lc);
		const UtilErrorInfo *error = stop->error;

		stop->table->state = CATALOG_TABLE_STOPPED;
		apply->stop_count++;
		stop->table->stop_position = *at;
		ereport(LOG,
				(errcode(error->sqlstate),
				 errmsg("source table \"%s.%s\" of pipeline \"%s\" is stopped at %s: %s",
						stop->table->schema, stop->table->name, apply->pipeline_name, position, error->message),
				 error->detail ? errdetail("%s", error->detail) : 0,
				 error->hint ? errhint("%s", error->hint) : 0,
				 error->context ? errcontext("%s", error->context) : 0));
	}
	error_context_stack = frames;
}

ApplyResult
apply_stop(Apply *apply, List *stops, const CdcPosition *position)
{
	CdcPosition at = *position; /* may lie in what is reset now */

	if (apply->in_txn && apply->txn_changes > 0)
	{
		undo(apply);
		record_stops(apply, stops, &at, true);
		return APPLY_REWIND;
	}

	if (apply->open)
		apply_commit(apply);	/* only whole transactions are in it */
	record_stops(apply, stops, &at, false);
	return APPLY_OK;
}

/* Stop a table for an error that was caught while one of its changes was applied. */
static ApplyResult
stop_for_error(Apply *apply, ApplyTable *table, const ErrorData *edata)
{
	CdcPosition at = apply->txn_start;
	ApplyStop  *stop;

	undo(apply);

	stop = palloc0(sizeof(ApplyStop));
	stop->table = table;
	stop->error = util_error_info(edata);
	if (stop->error->hint == NULL)
		stop->error->hint = pstrdup("Mend the cause. " APPLY_HINT_ANEW);

	record_stops(apply, list_make1(stop), &at, true);
	return APPLY_REWIND;
}

/* Undo everything and let it come again. */
ApplyResult
apply_rewind(Apply *apply)
{
	CdcPosition at = apply->txn_start;

	undo(apply);
	record_stops(apply, NIL, &at, true);
	return APPLY_REWIND;
}

/*
 * Catch what a table's write or change threw, in the memory of the change.
 * Errors that are not the table's own are thrown on.
 */
static ErrorData *
catch_table_error(Apply *apply)
{
	ErrorData  *edata;

	MemoryContextSwitchTo(apply->change_cxt);
	edata = CopyErrorData();
	if (!heap_error_is_tables_own(edata->sqlerrcode))
		PG_RE_THROW();
	FlushErrorState();
	return edata;
}

/* ------------------------------------------------------------------------- batches */

static ApplyResult
on_failed_batch(Apply *apply, ApplyTable *table, const ErrorData *edata)
{
	/* a table without a key is written in batches always; this one holds a single source transaction */
	if (apply->careful)
		return stop_for_error(apply, table, edata);

	if (edata->sqlerrcode == ERRCODE_UNIQUE_VIOLATION)
		table->look_first = true;
	ereport(LOG,
			(errcode(edata->sqlerrcode),
			 errmsg("batch of table \"%s.%s\" of pipeline \"%s\" failed, its changes come again one by one: %s",
					table->schema, table->name, apply->pipeline_name, util_error_info(edata)->message)));
	apply_careful_begin(apply);
	return apply_rewind(apply);
}

/*
 * Write what the tables' batches hold. Which change is to blame when that fails
 * is found out in careful mode.
 */
ApplyResult
apply_write_batches(Apply *apply)
{
	volatile ApplyResult result = APPLY_OK;

	if (apply->unwritten_rows == 0)
		return APPLY_OK;

	apply->writing = true;
	PG_TRY();
	{
		ListCell   *lc;

		foreach(lc, apply->open_tables)
		{
			ApplyTable *table = lfirst(lc);

			apply->current = table;
			if (table->batch != NULL)
				apply_batch_write(apply, table);
		}
		apply->current = NULL;
		apply->writing = false;
		apply->unwritten_rows = 0;
		apply->unwritten_bytes = 0;
	}
	PG_CATCH();
	{
		ErrorData  *edata = catch_table_error(apply);
		ApplyTable *table = unconstify(ApplyTable *, apply->current);

		apply->current = NULL;
		apply->writing = false;
		result = on_failed_batch(apply, table, edata);
	}
	PG_END_TRY();
	return result;
}

/* ------------------------------------------------------------------------- changes */

static void
apply_error_context(void *arg)
{
	const Apply *apply = arg;
	const ApplyTable *table = apply->current;
	char		position[CDC_POSITION_TEXT_MAX];

	cdc_position_format(apply->in_txn ? &apply->txn_start : &apply->streamed, position);
	if (table == NULL)
		errcontext("pipeline \"%s\", source transaction at %s", apply->pipeline_name, position);
	else if (table->row != NULL && table->row->current != NULL)
		errcontext("pipeline \"%s\", source transaction at %s, change " INT64_FORMAT ", table \"%s.%s\", column \"%s\"",
				   apply->pipeline_name, position, apply->txn_action, table->schema, table->name,
				   table->row->current->name);
	else
		errcontext("pipeline \"%s\", source transaction at %s, change " INT64_FORMAT ", table \"%s.%s\"",
				   apply->pipeline_name, position, apply->txn_action, table->schema, table->name);
}

/* The table of a change, when its changes count now; else NULL. */
static ApplyTable *
wanted_table(Apply *apply, const CdcChange *change)
{
	ApplyTable *table = apply->last_table;

	/* the definition may be another one at the same place; then its user field is unset */
	if (change->table != apply->last_def || table == NULL || table->match_stamp == 0 ||
		(uintptr_t) change->table->user != table->match_stamp)
	{
		table = apply_table_find(apply, change->table->schema, change->table->name);
		apply->last_def = change->table;
		apply->last_table = table;
	}
	if (table != NULL && table->def != NULL && table->def->nkey == 0 && apply_table_is_copying(table))
		apply_table_check_mark(apply, table);
	if (table == NULL || apply_table_is_stopped(table, &apply->txn_start) ||
		apply_table_joins_later(table, &apply->txn_start))
		return NULL;
	return table;
}

/* A change cannot be applied: it becomes a suspect, which is guarded when it comes again, or stops its table. */
static ApplyResult
on_failed_change(Apply *apply, ApplyTable *table, const ErrorData *edata)
{
	/* it is the table that is at fault when not even its description fits */
	if (!apply->keep_dead_letters || table->row == NULL ||
		(apply->careful && apply_is_suspect(apply)))	/* guarded, and not even the letter could be written */
		return stop_for_error(apply, table, edata);
	apply_suspect_add(apply);
	apply_careful_begin(apply);
	return apply_rewind(apply);
}

/* Apply a change to its open table, now that its description is known. */
static void
apply_to_open(Apply *apply, ApplyTable *table, const CdcChange *change)
{
	CdcChange	current;

	if (table->row_end >= 0)
	{
		current = *change;
		if (!apply_versioned_change(apply, table, &current))
			return;
		change = &current;
	}
	if (apply->guard_left > 0)
		apply->guard_left--;
	if (apply_keyless_is_careful(apply, table))
		apply_keyless_change(apply, table, change);
	else if (apply->careful && table->batch == NULL && apply_is_suspect(apply))
	{
		if (!apply_guarded(apply, table, change))
			return;
	}
	else if (heap_row_needs_snapshot(table->row) || table->batch == NULL)
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		apply_row(apply, table, change);
		PopActiveSnapshot();
	}
	else
		apply_row(apply, table, change);
	apply_letters_supersede(apply, table, change, PG_INT64_MAX);
}

/*
 * Apply one change of a table, opening what is not open yet. An error that is
 * the table's own is dealt with and rewinds; others are thrown.
 */
static ApplyResult
try_change(Apply *apply, ApplyTable *table, const CdcChange *change)
{
	volatile ApplyResult result = APPLY_OK;

	if (!apply_table_matches(table, change->table))
	{
		bool		applies;

		result = apply_schema_event(apply, table, change->table, &applies);
		if (result == APPLY_REWIND || !applies)
			return result;
	}
	apply->current = table;
	PG_TRY();
	{
		apply_begin(apply);
		apply_table_match(table, change->table);
		apply_table_open(apply, table);
		apply_to_open(apply, table, change);
	}
	PG_CATCH();
	{
		result = on_failed_change(apply, table, catch_table_error(apply));
	}
	PG_END_TRY();
	apply->current = NULL;
	return result;
}

/* What the foreign keys of other tables do because of a change. Errors are the child's. */
static ApplyResult
try_cascade(Apply *apply, const CdcChange *change)
{
	volatile ApplyResult result = APPLY_OK;

	PG_TRY();
	{
		result = apply_cascade(apply, change);
	}
	PG_CATCH();
	{
		ErrorData  *edata = catch_table_error(apply);

		result = stop_for_error(apply, unconstify(ApplyTable *, apply->current), edata);
	}
	PG_END_TRY();
	apply->current = NULL;
	return result;
}

static ApplyResult
change_own(Apply *apply, const CdcChange *change)
{
	ApplyTable *table = wanted_table(apply, change);

	if (table == NULL)
		return APPLY_OK;
	if (try_change(apply, table, change) == APPLY_REWIND)
		return APPLY_REWIND;
	if (!apply_table_matches(table, change->table))
		return APPLY_OK;		/* it has another shape, and does not count any more */

	table->touched = apply->txn_no;
	apply->txn_changes++;
	apply->rows++;
	apply->bytes += change->bytes;
	apply->pending.changes++;
	apply->pending.bytes += change->bytes;
	if (table->batch == NULL)
		return APPLY_OK;

	/* one source transaction may be of any size: its batches are written as they fill */
	apply->unwritten_rows++;
	apply->unwritten_bytes += change->bytes;
	if (apply->unwritten_rows >= apply->max_rows || apply->unwritten_bytes >= apply->max_bytes)
		return apply_write_batches(apply);
	return APPLY_OK;
}

ApplyResult
apply_change(Apply *apply, const CdcChange *change)
{
	ApplyResult result = change_own(apply, change);

	if (result == APPLY_OK && apply->any_cascade_made && change->op != CDC_INSERT && !change->cascades_logged)
		result = try_cascade(apply, change);
	return result;
}

void
apply_count_read(Apply *apply, const CdcChange *change)
{
	ApplyProgress *now = &apply->progress;

	apply->txn_action++;
	now->changes++;
	now->bytes += change->bytes;
	if (now->changes - apply->told.changes < TELL_CHANGES && now->bytes - apply->told.bytes < TELL_BYTES)
		return;
	apply->told = *now;
	if (apply->tell != NULL)
		apply->tell(apply->caller);
}

static ApplyResult
on_change(Apply *apply, const CdcChange *change)
{
	apply_count_read(apply, change);
	if (apply->passing_over || apply_undone_passes_over(apply))
		return APPLY_OK;
	if (!apply->holding)
	{
		int64		before = apply->txn_changes;
		ApplyResult result = apply_change(apply, change);

		if (apply->txn_changes > before)
			apply_undone_applied(apply);
		return result;
	}
	if (apply_table_find(apply, change->table->schema, change->table->name) != NULL ||
		apply_is_parent(apply, change->table->schema, change->table->name))
	{
		apply_hold_change(apply, change);
		apply_undone_applied(apply);
	}
	return APPLY_OK;
}

/* ------------------------------------------------------------- source transactions */

/* The changes of the source transaction come from their beginning. */
void
apply_count_anew(Apply *apply)
{
	apply->txn_action = 0;
	apply->progress.changes = apply->progress.bytes = 0;
	apply->told = apply->progress;
}

ApplyResult
apply_txn_begin(Apply *apply, const CdcPosition *start, const CdcGtid *gtid, int64 source_time_us)
{
	if (apply->in_txn && apply->txn_changes > 0)
		elog(ERROR, "source transaction begins inside another one");

	apply->in_txn = true;
	apply->txn_no++;
	apply->txns_open++;
	apply->txn_start = *start;
	apply->txn_gtid = *gtid;
	apply->txn_time = source_time_us == 0 ? 0
		: source_time_us - (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;
	apply->txn_is_xa = false;
	apply->txn_changes = 0;
	apply->progress.since = GetCurrentTimestamp();
	apply_count_anew(apply);
	return apply_schema_txn_begin(apply);
}

static ApplyResult
on_begin(Apply *apply, const CdcEvent *event)
{
	if (apply_txn_begin(apply, &event->position, &event->gtid, event->source_time_us) == APPLY_REWIND)
		return APPLY_REWIND;
	apply->skipping = apply->skips == NIL ? NULL : apply_skip_find(apply, &event->position, &event->gtid);
	apply->passing_over = apply_undone_begin(apply) || apply->skipping != NULL;
	if (event->is_xa && !apply->passing_over)
		apply_hold_begin(apply);
	return APPLY_OK;
}

static void
add_gtid(Apply *apply, const CdcGtid *gtid)
{
	if (gtid->kind == CDC_GTID_NONE)
		return;
	if (apply->ngtids == apply->maxgtids)
	{
		apply->maxgtids *= 2;
		apply->gtids = repalloc(apply->gtids, sizeof(CdcGtid) * apply->maxgtids);
	}
	apply->gtids[apply->ngtids++] = *gtid;
}

/* The stream has come to position, with whole transactions. */
static void
advance(Apply *apply, const CdcPosition *position)
{
	int			order;

	if (!cdc_position_is_known(position))
		return;
	/* a heartbeat may be older than the event before it, or only tell when the file was born */
	if (cdc_position_is_known(&apply->streamed) &&
		cdc_position_compare(position, &apply->streamed, &order) &&
		(order < 0 || (order == 0 && (position->born == 0 || apply->streamed.born != 0))))
		return;
	apply->streamed = *position;
	apply->moved = true;
}

void
apply_txn_end(Apply *apply)
{
	apply->in_txn = false;
	apply->txn_changes = 0;
	apply_undone_reset(apply);
	apply_careful_txn_done(apply);
}

/* A source transaction ended and all of it counts. */
static void
finish_txn(Apply *apply, const CdcEvent *event, bool counts)
{
	if (apply->skipping != NULL)
		apply_skip_done(apply, apply->skipping, &apply->txn_start, apply->txn_action);
	apply->skipping = NULL;
	apply->passing_over = false;
	apply_txn_end(apply);
	advance(apply, &event->position);
	if (counts)
	{
		add_gtid(apply, &apply->txn_gtid);
		apply->moved = true;
		apply->pending.transactions++;
		if (event->source_time_us != 0)
			apply->pending.source_time_us = event->source_time_us;
	}
}

/* It was undone the first time it came, and now it counts: all the better that it can come again. */
static ApplyResult
rewind_passed_over(Apply *apply)
{
	apply_undone_forget(apply);
	return apply_rewind(apply);
}

static ApplyResult
on_commit(Apply *apply, const CdcEvent *event)
{
	if (apply->passing_over && apply->skipping == NULL)
		return rewind_passed_over(apply);
	if (apply_undone_comes_again(apply))
		return apply_rewind(apply);
	if (apply->holding && apply_hold_release(apply) == APPLY_REWIND)
		return APPLY_REWIND;
	finish_txn(apply, event, true);
	return APPLY_OK;
}

/*
 * The transaction never took effect. What was applied of it is undone, and it
 * will be passed over. Its GTID is not noted: one of a transaction that the log
 * breaks off in may be used again.
 */
static ApplyResult
on_rollback(Apply *apply, const CdcEvent *event)
{
	if (apply->txn_changes > 0)
	{
		List	   *stops = apply_stop_lasting(apply);

		if (stops != NIL)
			return apply_stop(apply, stops, &apply->txn_start);
		apply_undone_whole(apply);
		return apply_rewind(apply);
	}
	if (apply->holding)
		apply_hold_forget(apply);
	finish_txn(apply, event, false);
	return APPLY_OK;
}

/*
 * An XA transaction is prepared: it is noted, also when it changed nothing here,
 * so that its XA COMMIT is known to have lost nothing. One that somebody asked to
 * pass over is noted without its changes.
 */
static ApplyResult
on_prepare(Apply *apply, const CdcEvent *event)
{
	if (apply->passing_over && apply->skipping == NULL)
		return rewind_passed_over(apply);
	if (apply_undone_comes_again(apply))
		return apply_rewind(apply);
	if (apply->skipping != NULL)
		apply_hold_nothing(apply);
	apply_hold_prepared(apply, event);
	finish_txn(apply, event, true);
	return APPLY_OK;
}

/* A statement; outside a transaction it is one by itself. */
static ApplyResult
on_statement(Apply *apply, const CdcEvent *event)
{
	ApplyResult result = APPLY_OK;
	CatalogSkip *skip = NULL;

	if (!apply->in_txn)
	{
		apply->in_statement = true;
		apply->txn_start = event->start;
		skip = apply->skips == NIL ? NULL : apply_skip_find(apply, &event->start, &event->gtid);
	}
	if (skip != NULL)
		apply_skip_done(apply, skip, &event->start, apply_statement_passed_over(apply, event));
	else if (!apply->passing_over)
		result = apply_statement(apply, event);
	apply->in_statement = false;
	if (result == APPLY_OK && !apply->in_txn)
	{
		advance(apply, &event->position);
		add_gtid(apply, &event->gtid);
		apply->moved = true;
		apply->pending.transactions++;
		if (event->source_time_us != 0)
			apply->pending.source_time_us = event->source_time_us;
		if (apply->commit_due)
			apply_commit(apply);
	}
	apply->commit_due = false;
	return result;
}

/* Begin and end of what is done in the memory of one change, with an error context. */
static MemoryContext
enter(Apply *apply, ErrorContextCallback *frame)
{
	MemoryContext caller = MemoryContextSwitchTo(apply->change_cxt);

	MemoryContextReset(apply->change_cxt);
	cdc_arena_reset(&apply->arena);
	frame->previous = error_context_stack;
	frame->callback = apply_error_context;
	frame->arg = apply;
	error_context_stack = frame;
	return caller;
}

static void
leave(const ErrorContextCallback *frame, MemoryContext caller)
{
	error_context_stack = frame->previous;
	MemoryContextSwitchTo(caller);
}

ApplyResult
apply_event(Apply *apply, CdcEvent *event)
{
	ErrorContextCallback frame;
	MemoryContext caller = enter(apply, &frame);
	ApplyResult result = APPLY_OK;

	switch (event->kind)
	{
		case CDC_EVENT_BEGIN:
			result = on_begin(apply, event);
			break;
		case CDC_EVENT_CHANGE:
			result = on_change(apply, &event->change);
			break;
		case CDC_EVENT_STATEMENT:
			result = on_statement(apply, event);
			break;
		case CDC_EVENT_COMMIT:
			result = on_commit(apply, event);
			break;
		case CDC_EVENT_ROLLBACK:
			result = on_rollback(apply, event);
			break;
		case CDC_EVENT_PREPARE:
			result = on_prepare(apply, event);
			break;
		case CDC_EVENT_HEARTBEAT:
			if (!apply->in_txn)
				advance(apply, &event->position);
			break;
	}

	leave(&frame, caller);
	return result;
}

/* ------------------------------------------------------------------------ flushing */

bool
apply_flush_due(Apply *apply)
{
	TimestampTz now;

	if (apply->in_txn || (!apply->open && !apply->moved))
		return false;
	if (apply->careful || apply->commit_due || apply->join_wanted)
		return true;
	if (apply->rows >= apply->max_rows || apply->bytes >= apply->max_bytes ||
		apply->ngtids >= MAX_PENDING_GTIDS)
		return true;

	now = GetCurrentTimestamp();
	if (apply->open)
		return TimestampDifferenceExceeds(apply->opened_at, now, apply->max_ms);
	return TimestampDifferenceExceeds(apply->flushed_at, now, IDLE_FLUSH_MS);
}

/* Is the durable position still in a former file of the log? The server may remove that one at any time. */
static bool
has_left_file(const Apply *apply)
{
	return strcmp(apply_durable(apply)->position.file, apply->streamed.file) != 0;
}

ApplyResult
apply_flush(Apply *apply, bool force)
{
	ErrorContextCallback frame;
	MemoryContext caller;
	ApplyResult result;

	if (apply->in_txn)
		return APPLY_OK;
	if (!apply->open &&
		!(apply->moved &&
		  (force || has_left_file(apply) || apply->ngtids >= MAX_PENDING_GTIDS ||
		   TimestampDifferenceExceeds(apply->flushed_at, GetCurrentTimestamp(), IDLE_FLUSH_MS))))
		return APPLY_OK;

	caller = enter(apply, &frame);
	result = apply_write_batches(apply);
	if (result == APPLY_OK)
		apply_commit(apply);
	leave(&frame, caller);
	return result;
}

void
apply_reload_tables(Apply *apply)
{
	if (apply->open)
		apply->reload_wanted = true;
	else
		apply_tables_load(apply);
}

bool
apply_in_transaction(const Apply *apply)
{
	return apply->in_txn;
}

const CatalogPosition *
apply_durable(const Apply *apply)
{
	return catalog_position_log_current(apply->log);
}

const CdcPosition *
apply_streamed(const Apply *apply)
{
	return &apply->streamed;
}

void
apply_progress(const Apply *apply, ApplyProgress *progress)
{
	memset(progress, 0, sizeof(*progress));
	if (!apply->in_txn)
		return;
	*progress = apply->progress;
	progress->start = apply->txn_start;
}

bool
apply_take_join_wish(Apply *apply)
{
	bool		wanted = apply->join_wanted;

	apply->join_wanted = false;
	return wanted;
}

bool
apply_take_index_wish(Apply *apply)
{
	bool		wanted = apply->index_wanted;

	apply->index_wanted = false;
	return wanted;
}

const ApplyStats *
apply_stats(const Apply *apply)
{
	return &apply->stats;
}

const CdcPosition *
apply_open_transaction(const Apply *apply)
{
	if (cdc_position_is_known(&apply->failed_at))
		return &apply->failed_at;
	/* a batch holds changes of several transactions */
	return !apply->writing && (apply->in_txn || apply->in_statement) ? &apply->txn_start : NULL;
}
