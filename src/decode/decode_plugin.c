/*-------------------------------------------------------------------------
 *
 * decode_plugin.c
 *	  The callbacks of the output plugin: what the server decodes -> records.
 *
 * NOTES
 *	  What comes in is in commit order, but for transactions that are streamed
 *	  while they run. BEGIN, and STREAM_START of a block, are handed on with the
 *	  first thing that is shipped: a transaction of which nothing is shipped makes
 *	  no record, but the client is told that the server is alive.
 *
 *	  Every callback runs inside a transaction that the server begins for the
 *	  decoded one, and undoes at its end. Settings that decide how values look
 *	  are pinned in it, so that the same row always gives the same text, whoever
 *	  reads; the server takes them back with the transaction.
 *
 *	  Values are never written into errors or the log.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/partition.h"
#include "commands/dbcommands.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "decode/decode_private.h"
#include "util/util_error.h"

/* So many changes that are not shipped, and the client hears that the server is alive. */
#define SKIPPED_MAX 100

#define UNIX_TO_POSTGRES_US ((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

PGDLLEXPORT void _PG_output_plugin_init(OutputPluginCallbacks *cb);

/* What the next context that is started does with its records. */
static DecodeEmit next_emit;
static DecodeMeet next_meet;
static DecodeKeep next_keep;
static const DecodeFollow *next_follow;
static DecodeNote next_note;
static void *next_arg;

void
decode_take(DecodeEmit emit, DecodeMeet meet, void *arg)
{
	next_emit = emit;
	next_meet = meet;
	next_arg = arg;
}

void
decode_letters_use(DecodeKeep keep)
{
	next_keep = keep;
}

void
decode_shipped_use(const DecodeFollow *follow)
{
	next_follow = follow;
}

void
decode_statements_use(DecodeNote note)
{
	next_note = note;
}

static int64
unix_us(TimestampTz time)
{
	return time + UNIX_TO_POSTGRES_US;
}

/* ------------------------------------------------------ start and end */

/* The name of the database, and whether the publications exist: what has to be looked up in the catalogs of today. */
static void
look_up_names(DecodeState *state)
{
	MemoryContext old_context = CurrentMemoryContext;
	bool		own_transaction = !IsTransactionState();
	char	   *database;

	if (own_transaction)
		StartTransactionCommand();
	decode_publications_check(state->options.publications);
	decode_route_init(state);
	database = get_database_name(MyDatabaseId);
	state->options.format_options.database = MemoryContextStrdup(state->context, database != NULL ? database : "");
	if (own_transaction)
		CommitTransactionCommand();
	MemoryContextSwitchTo(old_context);
	if (state->options.format_options.server_name == NULL)
		state->options.format_options.server_name = state->options.format_options.database;
}

static void
startup_cb(LogicalDecodingContext *ctx, OutputPluginOptions *plugin_options, bool is_init)
{
	DecodeState *state;
	MemoryContext context;
	MemoryContext old_context;
	DecodeEmit	taker = next_emit;

	next_emit = NULL;
	plugin_options->output_type = OUTPUT_PLUGIN_TEXTUAL_OUTPUT;
	if (GetDatabaseEncoding() != PG_UTF8)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("output plugin \"cdc_bridge\" needs a database with encoding UTF8"),
				 errdetail("The database's encoding is %s.", GetDatabaseEncodingName())));

	context = AllocSetContextCreate(ctx->context, "cdc decode", ALLOCSET_DEFAULT_SIZES);
	old_context = MemoryContextSwitchTo(context);
	state = palloc0(sizeof(DecodeState));
	state->ctx = ctx;
	state->context = context;
	state->change_context = AllocSetContextCreate(context, "cdc decoded change", ALLOCSET_DEFAULT_SIZES);
	state->emit = taker != NULL ? taker : decode_text_emit;
	state->emit_arg = taker != NULL ? next_arg : state;
	state->meet = taker != NULL ? next_meet : NULL;
	state->keep = taker != NULL ? next_keep : NULL;
	state->follow = taker != NULL ? next_follow : NULL;
	state->note = taker != NULL ? next_note : NULL;
	next_keep = NULL;
	next_follow = NULL;
	next_note = NULL;
	ctx->output_plugin_private = state;

	/* a slot that is being made has no options yet: they are those of none given, and nothing is handed on */
	decode_options_read(&state->options, ctx->output_plugin_options);
	if (!is_init)
		look_up_names(state);
	ctx->streaming &= state->options.streaming;
	decode_text_init(state);
	decode_relations_init(state);
	if (!is_init)
	{
		decode_copy_attach(state);
		decode_stops_attach(state);
		decode_change_rules_attach(state);
	}
	decode_place_leave();
	MemoryContextSwitchTo(old_context);
}

static void
shutdown_cb(LogicalDecodingContext *ctx)
{
	DecodeState *state = ctx->output_plugin_private;

	if (state != NULL)
		MemoryContextDelete(state->context);
	ctx->output_plugin_private = NULL;
}

static bool
filter_by_origin_cb(LogicalDecodingContext *ctx, RepOriginId origin)
{
	DecodeState *state = ctx->output_plugin_private;

	return origin != InvalidRepOriginId && !state->options.foreign_origins;
}

/* ------------------------------------------------------- transactions */

int64
decode_now_us(void)
{
	return unix_us(GetCurrentTimestamp());
}

void
decode_pin_settings(void)
{
	static const struct
	{
		const char *name;
		const char *value;
	}			settings[] = {
		{"DateStyle", "ISO, YMD"},
		{"IntervalStyle", "iso_8601"},
		{"TimeZone", "UTC"},
		{"extra_float_digits", "1"},
		{"bytea_output", "hex"},
		{"search_path", "pg_catalog"},
	};

	for (int i = 0; i < (int) lengthof(settings); i++)
	{
		const char *now = GetConfigOption(settings[i].name, true, false);

		if (now == NULL || strcmp(now, settings[i].value) != 0)
			(void) set_config_option(settings[i].name, settings[i].value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
	}
}

static DecodeTxn *
open_txn(DecodeState *state, ReorderBufferTXN *txn)
{
	DecodeTxn  *own = txn->output_plugin_private;

	if (own == NULL)
	{
		own = MemoryContextAllocZero(state->context, sizeof(DecodeTxn));
		own->out.xid = txn->xid;
		if (txn->gid != NULL)
			own->out.gid = MemoryContextStrdup(state->context, txn->gid);
		if (txn->origin_id != InvalidRepOriginId)
		{
			char	   *name = NULL;

			if (replorigin_by_oid(txn->origin_id, true, &name) && name != NULL)
				own->out.origin = MemoryContextStrdup(state->context, name);
		}
		txn->output_plugin_private = own;
	}
	return own;
}

static void
close_txn(ReorderBufferTXN *txn)
{
	DecodeTxn  *own = txn->output_plugin_private;

	if (own == NULL)
		return;
	for (uint32 i = 0; i < own->out.ncounts; i++)
	{
		pfree(unconstify(char *, own->counts[i].schema));
		pfree(unconstify(char *, own->counts[i].name));
	}
	if (own->counts != NULL)
	{
		pfree(own->counts);
		pfree(own->count_relids);
	}
	if (own->out.gid != NULL)
		pfree(unconstify(char *, own->out.gid));
	if (own->out.origin != NULL)
		pfree(unconstify(char *, own->out.origin));
	pfree(own);
	txn->output_plugin_private = NULL;
}

static void
set_end(DecodeTxn *own, XLogRecPtr lsn, XLogRecPtr end_lsn, TimestampTz time)
{
	own->out.commit_lsn = lsn;
	own->out.end_lsn = end_lsn;
	own->out.time_us = unix_us(time);
}

/* Hand a record on, in the memory context of the change. */
static void
emit(DecodeState *state, const CdcRecord *record)
{
	MemoryContext old_context = MemoryContextSwitchTo(state->change_context);

	decode_place_now.in_receiver = true;
	state->emit(state->emit_arg, record);
	decode_place_now.in_receiver = false;
	MemoryContextSwitchTo(old_context);
}

static void
emit_mark(DecodeState *state, CdcRecordKind kind, const DecodeTxn *own, XLogRecPtr lsn, TransactionId xid)
{
	CdcRecord	record = {
		.kind = kind,
		.txn = &own->out,
		.lsn = lsn,
		.xid = xid,
		.now_us = state->now_us
	};

	emit(state, &record);
}

/* The same, when it stands alone. */
static void
emit_mark_alone(DecodeState *state, CdcRecordKind kind, const DecodeTxn *own, XLogRecPtr lsn, TransactionId xid)
{
	emit_mark(state, kind, own, lsn, xid);
	MemoryContextReset(state->change_context);
}

/* Before the first record of a transaction, or of a streamed block of it. */
static DecodeTxn *
ensure_begun(DecodeState *state, ReorderBufferTXN *txn)
{
	DecodeTxn  *own = open_txn(state, txn);

	if (state->in_block)
	{
		if (!state->block_begun)
			emit_mark(state, CDC_RECORD_STREAM_START, own, state->ctx->write_location, 0);
		state->block_begun = true;
	}
	else if (!own->begun)
		emit_mark(state, own->is_prepared ? CDC_RECORD_BEGIN_PREPARE : CDC_RECORD_BEGIN, own, own->out.commit_lsn, 0);
	own->begun = true;
	return own;
}

static void
start(DecodeState *state)
{
	state->now_us = unix_us(GetCurrentTimestamp());
	decode_pin_settings();
}

static void
begin_cb(LogicalDecodingContext *ctx, ReorderBufferTXN *txn)
{
	DecodeState *state = ctx->output_plugin_private;

	start(state);
	set_end(open_txn(state, txn), txn->final_lsn, txn->end_lsn, txn->xact_time.commit_time);
}

/* Tell what the transaction comes to, if anything of it was handed on, and forget it. */
static void
finish_txn(LogicalDecodingContext *ctx, ReorderBufferTXN *txn, CdcRecordKind kind, XLogRecPtr lsn)
{
	DecodeState *state = ctx->output_plugin_private;
	DecodeTxn  *own = txn->output_plugin_private;
	bool		begun = own != NULL && own->begun;

	OutputPluginUpdateProgress(ctx, !begun);
	if (begun)
		emit_mark_alone(state, kind, own, lsn, 0);
	close_txn(txn);
}

static void
commit_cb(LogicalDecodingContext *ctx, ReorderBufferTXN *txn, XLogRecPtr commit_lsn)
{
	finish_txn(ctx, txn, CDC_RECORD_COMMIT, commit_lsn);
	decode_copy_committed(ctx->output_plugin_private, txn->xid);
}

static void
begin_prepare_cb(LogicalDecodingContext *ctx, ReorderBufferTXN *txn)
{
	DecodeState *state = ctx->output_plugin_private;

	start(state);
	open_txn(state, txn)->is_prepared = true;
	set_end(open_txn(state, txn), txn->final_lsn, txn->end_lsn, txn->xact_time.prepare_time);
}

static void
prepare_cb(LogicalDecodingContext *ctx, ReorderBufferTXN *txn, XLogRecPtr prepare_lsn)
{
	finish_txn(ctx, txn, CDC_RECORD_PREPARE, prepare_lsn);
}

/* The end of a prepared transaction, whose changes went long ago: it is always told, as nobody knows whether there were any. */
static void
finish_prepared(LogicalDecodingContext *ctx, ReorderBufferTXN *txn, CdcRecordKind kind, XLogRecPtr lsn, TimestampTz time)
{
	DecodeState *state = ctx->output_plugin_private;
	DecodeTxn  *own;

	state->now_us = unix_us(GetCurrentTimestamp());
	own = MemoryContextAllocZero(state->context, sizeof(DecodeTxn));
	own->out.xid = txn->xid;
	if (txn->gid != NULL)
		own->out.gid = MemoryContextStrdup(state->context, txn->gid);
	set_end(own, lsn, txn->end_lsn, time);
	close_txn(txn);
	txn->output_plugin_private = own;
	OutputPluginUpdateProgress(ctx, false);
	emit_mark_alone(state, kind, own, lsn, 0);
	close_txn(txn);
}

static void
commit_prepared_cb(LogicalDecodingContext *ctx, ReorderBufferTXN *txn, XLogRecPtr commit_lsn)
{
	finish_prepared(ctx, txn, CDC_RECORD_COMMIT_PREPARED, commit_lsn, txn->xact_time.commit_time);
}

static void
rollback_prepared_cb(LogicalDecodingContext *ctx, ReorderBufferTXN *txn, XLogRecPtr prepare_end_lsn, TimestampTz prepare_time)
{
	finish_prepared(ctx, txn, CDC_RECORD_ROLLBACK_PREPARED, txn->final_lsn, txn->xact_time.commit_time);
}

/* ------------------------------------------------------------ streaming */

static void
stream_start_cb(LogicalDecodingContext *ctx, ReorderBufferTXN *txn)
{
	DecodeState *state = ctx->output_plugin_private;

	start(state);
	open_txn(state, txn)->out.is_streamed = true;
	state->in_block = true;
	state->block_begun = false;
}

static void
stream_stop_cb(LogicalDecodingContext *ctx, ReorderBufferTXN *txn)
{
	DecodeState *state = ctx->output_plugin_private;

	if (state->block_begun)
		emit_mark_alone(state, CDC_RECORD_STREAM_STOP, txn->output_plugin_private, ctx->write_location, 0);
	state->in_block = false;
	state->block_begun = false;
}

/* All of a transaction, or what one subtransaction of it brought, did not happen. */
static void
stream_abort_cb(LogicalDecodingContext *ctx, ReorderBufferTXN *txn, XLogRecPtr abort_lsn)
{
	DecodeState *state = ctx->output_plugin_private;
	ReorderBufferTXN *top = txn->toptxn != NULL ? txn->toptxn : txn;
	DecodeTxn  *own = top->output_plugin_private;

	state->now_us = unix_us(GetCurrentTimestamp());
	if (own != NULL && own->begun)
		emit_mark_alone(state, CDC_RECORD_STREAM_ABORT, own, abort_lsn, txn->xid);
	if (top == txn)
		close_txn(txn);
}

/* All of a transaction that was streamed did happen, or may. */
static void
finish_streamed(LogicalDecodingContext *ctx, ReorderBufferTXN *txn, CdcRecordKind kind, XLogRecPtr lsn, TimestampTz time)
{
	DecodeState *state = ctx->output_plugin_private;

	state->now_us = unix_us(GetCurrentTimestamp());
	set_end(open_txn(state, txn), lsn, txn->end_lsn, time);
	finish_txn(ctx, txn, kind, lsn);
}

static void
stream_commit_cb(LogicalDecodingContext *ctx, ReorderBufferTXN *txn, XLogRecPtr commit_lsn)
{
	finish_streamed(ctx, txn, CDC_RECORD_STREAM_COMMIT, commit_lsn, txn->xact_time.commit_time);
}

static void
stream_prepare_cb(LogicalDecodingContext *ctx, ReorderBufferTXN *txn, XLogRecPtr prepare_lsn)
{
	finish_streamed(ctx, txn, CDC_RECORD_STREAM_PREPARE, prepare_lsn, txn->xact_time.prepare_time);
}

/* -------------------------------------------------------------- changes */

/* A change is not shipped. A client that hears nothing for long takes the server for dead. */
static void
skip(LogicalDecodingContext *ctx)
{
	DecodeState *state = ctx->output_plugin_private;

	if (++state->skipped < SKIPPED_MAX)
		return;
	state->skipped = 0;
	OutputPluginUpdateProgress(ctx, false);
}

/* The place of a change among those of its table, counting it; 0 where that cannot be told. */
static uint64
count_change(DecodeState *state, DecodeTxn *own, DecodeRelation *entry)
{
	CdcOutTxn  *out = &own->out;
	int			at = entry->count_index;

	own->out.nchanges++;
	/* what a rolled back subtransaction brought would be counted too */
	if (out->is_streamed)
		return 0;
	if (at < 0 || at >= (int) out->ncounts || own->count_relids[at] != entry->publish_as)
	{
		for (at = 0; at < (int) out->ncounts && own->count_relids[at] != entry->publish_as; at++)
			;
		entry->count_index = at;
	}
	if (at == (int) out->ncounts)
	{
		MemoryContext old_context = MemoryContextSwitchTo(state->context);

		if (out->ncounts == own->counts_max)
		{
			own->counts_max = Max(8, own->counts_max * 2);
			own->counts = own->counts == NULL ? palloc(sizeof(CdcOutCount) * own->counts_max)
				: repalloc_huge(own->counts, sizeof(CdcOutCount) * own->counts_max);
			own->count_relids = own->count_relids == NULL ? palloc(sizeof(Oid) * own->counts_max)
				: repalloc_huge(own->count_relids, sizeof(Oid) * own->counts_max);
			out->counts = own->counts;
		}
		own->counts[at].schema = pstrdup(entry->table->schema);
		own->counts[at].name = pstrdup(entry->table->name);
		own->counts[at].count = 0;
		own->count_relids[at] = entry->publish_as;
		out->ncounts++;
		MemoryContextSwitchTo(old_context);
	}
	return ++own->counts[at].count;
}

/* Which row was changed is not in the log, and the receiver cannot know. */
static void
warn_of_identity(DecodeRelation *entry, Relation relation)
{
	const char *name;

	if (entry->warned)
		return;
	entry->warned = true;
	name = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(relation)), RelationGetRelationName(relation));
	ereport(WARNING,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("updates and deletes of table %s do not say which row they mean", name),
			 errdetail("The table has no replica identity: no primary key, or none that is one."),
			 errhint("Give it a primary key, or use ALTER TABLE %s REPLICA IDENTITY FULL.", name)));
}

/* The copy of a table begins anew: the receiver forgets its rows. In the change's memory context. */
static void
ship_anew(DecodeState *state, ReorderBufferTXN *txn, DecodeCopyTable *table, const CdcOutTable *published, ReorderBufferChange *change)
{
	DecodeTxn  *own = ensure_begun(state, txn);
	CdcRecord	record;

	decode_copy_anew_record(state, table, published, change->lsn, &record);
	record.txn = &own->out;
	record.xid = change->txn->xid;
	record.order = ++own->out.nchanges;
	emit(state, &record);
	if (decode_letter_follows(state, table->relid))
		decode_letter_emptied(state, table->relid, txn->end_lsn);
	decode_copy_begin_anew(state->copy, table);
	table->begins_anew = true;
	table->to_tell = false;
}

/* Has the initial copy, if there is one, left the change to the stream? In the change's memory context. */
static bool
is_left_to_stream(DecodeState *state, ReorderBufferTXN *txn, DecodeRelation *entry, Relation relation, ReorderBufferChange *change,
				  const DecodeRow *old, const DecodeRow *new, CdcOutOp *op)
{
	DecodeCopyTable *table;

	if (state->copy == NULL)
		return true;
	switch (decode_copy_change(state, txn, entry, relation, old, new, op, &table))
	{
		case DECODE_COPY_PASS:
			return true;
		case DECODE_COPY_DROP:
			break;
		case DECODE_COPY_ANEW:
			ship_anew(state, txn, table, entry->table, change);
			break;
		case DECODE_COPY_SUCCEEDS:
			ship_anew(state, txn, table, NULL, change);
			return true;
	}
	return false;
}

/* A change on its way to a record. */
typedef struct Attempt
{
	DecodeRelation *entry;
	const DecodeRow *old;
	const DecodeRow *new;
	CdcOutOp	op;
	const CdcOutTxn *txn;
	bool		passes;
	CdcCell    *before;
	CdcCell    *after;
} Attempt;

/* UtilStep */
static void
look_at_filter(void *arg)
{
	Attempt    *attempt = arg;

	attempt->passes = decode_filter_passes(attempt->entry, attempt->old, attempt->new, &attempt->op);
}

/* UtilStep */
static void
make_cells(void *arg)
{
	Attempt    *attempt = arg;

	if (attempt->old != NULL && attempt->op != CDC_OUT_INSERT)
		attempt->before = decode_change_cells(attempt->entry, attempt->old, true, attempt->op, attempt->txn);
	if (attempt->new != NULL && attempt->op != CDC_OUT_DELETE)
		attempt->after = decode_change_cells(attempt->entry, attempt->new, false, attempt->op, attempt->txn);
}

/* In a subtransaction: false when it threw, and the change was handed to who keeps it. */
static pg_noinline bool
try_step(DecodeState *state, ReorderBufferTXN *txn, Relation relation, ReorderBufferChange *change, Attempt *attempt, UtilStep step)
{
	DecodeLetter letter = {.op = attempt->op,.lsn = change->lsn,.txn_end = txn->end_lsn};
	DecodeTxn  *own;
	ErrorData  *edata;

	edata = decode_letter_try(state, attempt->entry, step, attempt);
	if (edata == NULL)
		return true;
	own = open_txn(state, txn);
	letter.commit_lsn = own->out.commit_lsn;
	letter.time_us = own->out.time_us;
	letter.action = (int64) (own->out.nchanges + ++own->kept);
	letter.error = edata;
	(void) decode_letter_keep(state, attempt->entry, relation, attempt->old, attempt->new, &letter);
	return false;
}

/*
 * Run a step of a change, with care where changes that throw are kept, and users' expressions are run. Nearly always there is neither, and
 * then it costs next to nothing.
 */
static inline bool
run_step(DecodeState *state, ReorderBufferTXN *txn, Relation relation, ReorderBufferChange *change, Attempt *attempt, UtilStep step)
{
	if (decode_letter_is_wanted(state, attempt->entry))
		return try_step(state, txn, relation, change, attempt, step);
	step(attempt);
	return true;
}

/* In the change's memory context. */
static void
ship_change(DecodeState *state, ReorderBufferTXN *txn, DecodeRelation *entry, Relation relation, ReorderBufferChange *change, CdcOutOp op)
{
	HeapTuple	old_tuple = cdc_change_old_tuple(change);
	HeapTuple	new_tuple = cdc_change_new_tuple(change);
	DecodeRow  *old = old_tuple != NULL ? decode_row_open(relation, old_tuple) : NULL;
	DecodeRow  *new = new_tuple != NULL ? decode_row_open(relation, new_tuple) : NULL;
	Attempt		attempt = {.entry = entry,.old = old,.new = new,.op = op};
	CdcRecord	record = {.kind = CDC_RECORD_CHANGE};
	DecodeTxn  *own;

	if (new != NULL)
		decode_row_complete(entry, relation, new, old);
	if (!run_step(state, txn, relation, change, &attempt, look_at_filter))
		return;
	if (!attempt.passes ||
		!is_left_to_stream(state, txn, entry, relation, change, old, new, &attempt.op))
	{
		skip(state->ctx);
		return;
	}
	attempt.txn = &open_txn(state, txn)->out;
	if (!run_step(state, txn, relation, change, &attempt, make_cells))
		return;
	if (attempt.op != CDC_OUT_INSERT && !entry->has_identity)
		warn_of_identity(entry, relation);
	op = attempt.op;
	if (attempt.op == CDC_OUT_DELETE && attempt.before != NULL && decode_transform_marks_deletes(entry))
	{
		attempt.op = CDC_OUT_UPDATE;
		attempt.after = decode_transform_mark_deleted(entry, attempt.before, attempt.txn);
	}
	own = ensure_begun(state, txn);
	record.txn = &own->out;
	record.lsn = change->lsn;
	record.now_us = state->now_us;
	record.xid = change->txn->xid;
	record.table_order = count_change(state, own, entry);
	record.order = own->out.nchanges;
	record.table = entry->table;
	record.op = attempt.op;
	record.before = attempt.before;
	record.after = attempt.after;
	emit(state, &record);
	if (decode_letter_follows(state, RelationGetRelid(relation)))
		decode_letter_shipped(state, entry, relation, op, old, new, txn->end_lsn);
}

static void
change_cb(LogicalDecodingContext *ctx, ReorderBufferTXN *txn, Relation relation, ReorderBufferChange *change)
{
	DecodeState *state = ctx->output_plugin_private;
	DecodeRelation *entry;
	MemoryContext old_context;
	CdcOutOp	op;
	int			action;

	CHECK_FOR_INTERRUPTS();
	if (state->stops != NULL && decode_stops_cover(state, RelationGetRelid(relation), txn->end_lsn, change->lsn))
	{
		skip(ctx);
		return;
	}
	decode_place_set(RelationGetRelid(relation), txn->xid, txn->end_lsn, change->lsn);
	entry = decode_relation_get(state, relation);
	switch (change->action)
	{
		case REORDER_BUFFER_CHANGE_INSERT:
			op = CDC_OUT_INSERT;
			action = DECODE_INSERT;
			break;
		case REORDER_BUFFER_CHANGE_UPDATE:
			op = CDC_OUT_UPDATE;
			action = DECODE_UPDATE;
			break;
		case REORDER_BUFFER_CHANGE_DELETE:
			op = CDC_OUT_DELETE;
			action = DECODE_DELETE;
			break;
		default:
			decode_place_leave();
			return;
	}
	if ((entry->actions & action) == 0)
	{
		decode_place_leave();
		skip(ctx);
		return;
	}
	old_context = MemoryContextSwitchTo(state->change_context);
	ship_change(state, txn, entry, relation, change, op);
	decode_place_leave();
	MemoryContextSwitchTo(old_context);
	MemoryContextReset(state->change_context);
}

/* Was a table above that one truncated by the same statement? */
static bool
goes_with_its_root(Relation relation, int nrelations, Relation relations[])
{
	List	   *ancestors;

	if (!relation->rd_rel->relispartition)
		return false;
	ancestors = get_partition_ancestors(RelationGetRelid(relation));
	for (int i = 0; i < nrelations; i++)
	{
		if (list_member_oid(ancestors, RelationGetRelid(relations[i])))
			return true;
	}
	return false;
}

/*
 * A partition whose rows go under its root's name, and that is truncated alone,
 * has no name of its own there: it is told under its own, and of which it is a part.
 */
static void
ship_truncate(DecodeState *state, ReorderBufferTXN *txn, DecodeRelation *entry, Relation relation, ReorderBufferChange *change)
{
	CdcRecord	record = {.kind = CDC_RECORD_TRUNCATE};
	DecodeTxn  *own = ensure_begun(state, txn);
	CdcOutTable alone;

	record.txn = &own->out;
	record.lsn = change->lsn;
	record.now_us = state->now_us;
	record.xid = change->txn->xid;
	record.table_order = count_change(state, own, entry);
	record.order = own->out.nchanges;
	record.table = entry->table;
	record.cascade = change->data.truncate.cascade;
	record.restart_identity = change->data.truncate.restart_seqs;
	if (entry->publish_as != RelationGetRelid(relation))
	{
		alone = *entry->table;
		decode_route_name(state, get_namespace_name(RelationGetNamespace(relation)), RelationGetRelationName(relation), &alone.schema, &alone.name);
		alone.relid = RelationGetRelid(relation);
		record.table = &alone;
		record.root_schema = entry->table->schema;
		record.root_name = entry->table->name;
	}
	emit(state, &record);
}

static void
truncate_cb(LogicalDecodingContext *ctx, ReorderBufferTXN *txn, int nrelations, Relation relations[], ReorderBufferChange *change)
{
	DecodeState *state = ctx->output_plugin_private;
	MemoryContext old_context = MemoryContextSwitchTo(state->change_context);

	for (int i = 0; i < nrelations; i++)
	{
		DecodeRelation *entry;
		bool		by_root;

		if (decode_stops_cover(state, RelationGetRelid(relations[i]), txn->end_lsn, change->lsn))
			continue;
		decode_place_set(RelationGetRelid(relations[i]), txn->xid, txn->end_lsn, change->lsn);
		entry = decode_relation_get(state, relations[i]);
		by_root = entry->publish_as != RelationGetRelid(relations[i]) && goes_with_its_root(relations[i], nrelations, relations);
		if ((entry->actions & DECODE_TRUNCATE) == 0 || !decode_copy_truncate(state, txn, relations[i], by_root))
			continue;
		if (!by_root)
			ship_truncate(state, txn, entry, relations[i], change);
		if (decode_letter_follows(state, RelationGetRelid(relations[i])))
			decode_letter_emptied(state, RelationGetRelid(relations[i]), txn->end_lsn);
	}
	decode_place_leave();
	MemoryContextSwitchTo(old_context);
	MemoryContextReset(state->change_context);
}

/* What a statement did to one table. In the memory context of changes. */
static void
ship_schema_change(DecodeState *state, ReorderBufferTXN *txn, XLogRecPtr lsn, const CdcSchemaItem *item, const List *items)
{
	CdcRecord	record = {.kind = CDC_RECORD_SCHEMA};
	DecodeStatement *statement = palloc0(sizeof(DecodeStatement));
	DecodeTxn  *own;

	statement->schema = item->schema;
	statement->name = item->name;
	statement->command = item->command;
	statement->kinds = item->kinds;
	statement->txn_end = txn->end_lsn;
	statement->lsn = lsn;
	if (state->note != NULL)
	{
		const CdcOutTxn *out = &open_txn(state, txn)->out;

		statement->commit_lsn = out->commit_lsn;
		statement->time_us = out->time_us;
	}
	decode_place_set(item->relid, txn->xid, txn->end_lsn, lsn);
	decode_place_now.statement = statement;
	if (!decode_schema_record(state, item, items, &record, statement))
		return;
	statement->is_shipped = decode_schema_is_wanted(state, item, &record);
	if (state->note != NULL)
		state->note(state->emit_arg, statement);
	if (!statement->is_shipped)
		return;
	own = ensure_begun(state, txn);
	record.txn = &own->out;
	record.lsn = lsn;
	record.now_us = state->now_us;
	record.xid = txn->xid;
	record.order = ++own->out.nchanges;
	emit(state, &record);
}

/* What a statement did to tables, by the message that it left; false: it is somebody else's message. */
static bool
ship_schema_changes(DecodeState *state, ReorderBufferTXN *txn, XLogRecPtr lsn, Size size, const char *content)
{
	MemoryContext old_context = MemoryContextSwitchTo(state->change_context);
	List	   *items;
	bool		is_ours = decode_schema_open(content, size, &items);
	ListCell   *lc;

	foreach(lc, is_ours && state->options.schema_changes ? items : NIL)
	{
		if (!decode_stops_cover(state, ((const CdcSchemaItem *) lfirst(lc))->relid, txn->end_lsn, lsn))
			ship_schema_change(state, txn, lsn, lfirst(lc), items);
	}
	decode_place_leave();
	MemoryContextSwitchTo(old_context);
	MemoryContextReset(state->change_context);
	return is_ours;
}

static void
message_cb(LogicalDecodingContext *ctx, ReorderBufferTXN *txn, XLogRecPtr lsn, bool transactional,
		   const char *prefix, Size size, const char *message)
{
	DecodeState *state = ctx->output_plugin_private;
	CdcRecord	record = {.kind = CDC_RECORD_MESSAGE};

	if (transactional && strcmp(prefix, CDC_SCHEMA_MESSAGE_PREFIX) == 0 && ship_schema_changes(state, txn, lsn, size, message))
		return;
	if (!state->options.messages)
	{
		skip(ctx);
		return;
	}
	if (transactional)
	{
		DecodeTxn  *own = ensure_begun(state, txn);

		record.txn = &own->out;
		record.xid = txn->xid;
		record.order = ++own->out.nchanges;
	}
	else
		state->now_us = unix_us(GetCurrentTimestamp());
	record.lsn = lsn;
	record.now_us = state->now_us;
	record.transactional = transactional;
	record.prefix = prefix;
	record.content = message;
	record.content_len = size;
	emit(state, &record);
	MemoryContextReset(state->change_context);
}

void
_PG_output_plugin_init(OutputPluginCallbacks *cb)
{
	cb->startup_cb = startup_cb;
	cb->begin_cb = begin_cb;
	cb->change_cb = change_cb;
	cb->truncate_cb = truncate_cb;
	cb->commit_cb = commit_cb;
	cb->message_cb = message_cb;
	cb->filter_by_origin_cb = filter_by_origin_cb;
	cb->shutdown_cb = shutdown_cb;

	cb->begin_prepare_cb = begin_prepare_cb;
	cb->prepare_cb = prepare_cb;
	cb->commit_prepared_cb = commit_prepared_cb;
	cb->rollback_prepared_cb = rollback_prepared_cb;

	/* which transaction a block belongs to is kept in state->in_block, all else is as outside of one */
	cb->stream_start_cb = stream_start_cb;
	cb->stream_stop_cb = stream_stop_cb;
	cb->stream_abort_cb = stream_abort_cb;
	cb->stream_prepare_cb = stream_prepare_cb;
	cb->stream_commit_cb = stream_commit_cb;
	cb->stream_change_cb = change_cb;
	cb->stream_message_cb = message_cb;
	cb->stream_truncate_cb = truncate_cb;
}
