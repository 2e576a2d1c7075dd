/*-------------------------------------------------------------------------
 *
 * apply_prepared.c
 *	  XA transactions: their changes are kept from the PREPARE to the end.
 *
 * NOTES
 *	  The log has the changes of an XA transaction where it was prepared. They
 *	  count only from its XA COMMIT on, which may come hours later, behind any
 *	  number of restarts, or never. So while one comes in, its changes are held:
 *
 *	  BEGIN (is_xa) -> changes -> held in memory -> PIECE_SIZE: a piece in
 *	    cdc_bridge.prepared_change
 *	    PREPARE      the rest becomes a piece, and a row in prepared_transaction
 *	                 names them; durable with the position behind it
 *	    COMMIT       it was one phase: applied at once
 *	    ROLLBACK     forgotten
 *	  XA COMMIT      the pieces are read and applied as one source transaction
 *	                 that starts at the XA COMMIT, and go in the same PostgreSQL
 *	                 transaction
 *	  XA ROLLBACK    the pieces go
 *
 *	  Memory is that of one piece or one change, whichever is larger, whatever the
 *	  size of the transaction.
 *
 *	  Changes are held for every table that the pipeline knows, whatever its state:
 *	  one that is stopped now may be copied anew before the XA COMMIT. Which tables
 *	  were known then is told by the highest number of them; what the transaction
 *	  changed besides is told by name, so that a table that joins later knows
 *	  whether it misses anything.
 *
 *	  No other transaction changes a row between PREPARE and XA COMMIT: the source
 *	  holds its lock.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "apply/apply_private.h"
#include "binlog/change_store.h"
#include "util/util_arena.h"
#include "util/util_name.h"
#include "util/util_wait.h"

/* Kept changes are cut into pieces of this size. */
#define PIECE_SIZE (256 * 1024)

/* Names of changed tables that are noted, at most. */
#define NAMES_MAX 1000

struct ApplyHold
{
	MemoryContext cxt;			/* reset when a transaction begins */
	BinlogChangeWriter writer;
	CdcBuf		bytes;			/* not yet a piece */
	int32		prepared_id;	/* of its pieces; 0: there are none yet */
	int32		pieces;
	int64		changes;
	int64		size;
	List	   *names;			/* of all tables that it changes, "schema.table" */
	bool		too_many_names;
};

void
apply_hold_init(Apply *apply)
{
	apply->hold = palloc0(sizeof(ApplyHold));
	apply->hold->cxt = AllocSetContextCreate(apply->cxt, "cdc apply held changes", ALLOCSET_DEFAULT_SIZES);
}

void
apply_hold_begin(Apply *apply)
{
	ApplyHold  *hold = apply->hold;
	MemoryContext cxt = hold->cxt;

	MemoryContextReset(cxt);
	memset(hold, 0, sizeof(ApplyHold));
	hold->cxt = cxt;
	binlog_change_writer_init(&hold->writer);
	cdc_buf_init(&hold->bytes, util_context_allocator(cxt), 0);
	apply->holding = true;
}

/* Forget it; memory only. */
void
apply_hold_end(Apply *apply)
{
	apply->holding = false;
	MemoryContextReset(apply->hold->cxt);
}

/* ------------------------------------------------------------------------ holding */

/* The server's name for a table, as a list of names shows it. */
static char *
full_name(const char *schema, const char *name)
{
	char	   *text = psprintf("%s.%s", schema, name);

	return pg_any_to_server(text, (int) strlen(text), PG_UTF8);
}

/* What is passed over because somebody asked for it: nothing is held, and which tables it changes is not known. */
void
apply_hold_nothing(Apply *apply)
{
	apply_hold_begin(apply);
	apply->hold->too_many_names = true;
}

void
apply_hold_note_table(Apply *apply, const char *schema, const char *name)
{
	ApplyHold  *hold = apply->hold;
	MemoryContext old = MemoryContextSwitchTo(hold->cxt);
	char	   *text = full_name(schema, name);
	ListCell   *lc;

	foreach(lc, hold->names)
	{
		if (strcmp(lfirst(lc), text) == 0)
			break;
	}
	if (lc == NULL && list_length(hold->names) == NAMES_MAX)
		hold->too_many_names = true;
	else if (lc == NULL)
		hold->names = lappend(hold->names, text);
	MemoryContextSwitchTo(old);
}

/* Write what is held in memory into the open transaction. */
static void
write_pieces(Apply *apply)
{
	ApplyHold  *hold = apply->hold;

	apply_begin(apply);
	PushActiveSnapshot(GetTransactionSnapshot());
	if (hold->prepared_id == 0)
		hold->prepared_id = catalog_prepared_next_id(apply->pipeline_id);
	for (size_t at = 0; at < hold->bytes.len; at += PIECE_SIZE)
	{
		util_check_interrupts();
		catalog_prepared_add_piece(apply->pipeline_id, hold->prepared_id, ++hold->pieces, hold->bytes.data + at,
								   Min(hold->bytes.len - at, PIECE_SIZE));
	}
	PopActiveSnapshot();
	/* one large change must not keep its memory */
	cdc_buf_free(&hold->bytes);
}

void
apply_hold_change(Apply *apply, const CdcChange *change)
{
	ApplyHold  *hold = apply->hold;
	size_t		before = hold->bytes.len;

	binlog_change_write(&hold->writer, change, &hold->bytes);
	if (hold->bytes.status == CDC_NOMEM)
		util_throw_out_of_memory();
	if (hold->bytes.status != CDC_OK)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("change of source table \"%s.%s\" is too large to be kept",
						change->table->schema, change->table->name)));
	hold->changes++;
	hold->size += hold->bytes.len - before;
	apply->rows++;
	apply->bytes += change->bytes;
	if (hold->bytes.len >= PIECE_SIZE)
		write_pieces(apply);
}

/* Highest number of a table that is known here. */
static int32
last_table_id(const Apply *apply)
{
	int32		last = 0;
	ListCell   *lc;

	foreach(lc, apply->tables)
		last = Max(last, ((const ApplyTable *) lfirst(lc))->table_id);
	return last;
}

void
apply_hold_prepared(Apply *apply, const CdcEvent *event)
{
	ApplyHold  *hold = apply->hold;
	CatalogPrepared prepared = {
		.pipeline_id = apply->pipeline_id,
		.xid = event->xid,
		.position = apply->txn_start,
		.source_tables = hold->names,
		.has_tables = !hold->too_many_names,
		.last_table_id = last_table_id(apply),
		.changes = hold->changes,
		.bytes = hold->size,
	};

	write_pieces(apply);
	prepared.prepared_id = hold->prepared_id;
	prepared.pieces = hold->pieces;
	if (event->source_time_us != 0)
		prepared.prepared_at = event->source_time_us -
			(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;
	PushActiveSnapshot(GetTransactionSnapshot());
	catalog_prepared_insert(&prepared);
	PopActiveSnapshot();
	apply_hold_end(apply);
}

/* It is not going to be committed, or somebody asked to pass it over: what was written of it goes. */
void
apply_hold_forget(Apply *apply)
{
	ApplyHold  *hold = apply->hold;

	if (hold->pieces > 0)
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		catalog_prepared_delete_pieces(apply->pipeline_id, hold->prepared_id);
		PopActiveSnapshot();
	}
	apply_hold_end(apply);
}

/* ----------------------------------------------------------------------- applying */

/* What is read of kept changes, and where it lives. */
typedef struct Replay
{
	MemoryContext cxt;
	MemoryContext piece_cxt;
	BinlogChangeReader *reader;
	int64		changes;
} Replay;

static void
replay_begin(Apply *apply, Replay *replay)
{
	replay->cxt = AllocSetContextCreate(apply->cxt, "cdc apply kept changes", ALLOCSET_DEFAULT_SIZES);
	replay->piece_cxt = AllocSetContextCreate(replay->cxt, "cdc apply piece", ALLOCSET_DEFAULT_SIZES);
	replay->reader = binlog_change_reader_create(util_context_allocator(replay->cxt), 0);
	replay->changes = 0;
	if (replay->reader == NULL)
		util_throw_out_of_memory();
}

/* Somebody wrote to cdc_bridge.prepared_change; trying again does not help. */
static void
throw_damaged(Apply *apply, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_EXCEPTION),
			 errmsg("kept changes of an XA transaction of pipeline \"%s\" are damaged", apply->pipeline_name),
			 errdetail("%s", detail),
			 errhint("Use cdc_skip_transaction() to go on without them, and then cdc_resync_table() for the tables that it changed.")));
}

/* Apply the changes that a piece completes. The memory of a change is reset for each. */
static ApplyResult
replay_bytes(Apply *apply, Replay *replay, const char *data, size_t len)
{
	if (binlog_change_reader_feed(replay->reader, data, len) != CDC_OK)
		util_throw_out_of_memory();
	for (;;)
	{
		CdcChange	change;
		CdcError	err = {0};
		CdcStatus	status = binlog_change_reader_next(replay->reader, &change, &err);

		if (status == CDC_END)
			return APPLY_OK;
		if (status != CDC_OK)
			throw_damaged(apply, psprintf("They cannot be read: %s.", err.text));
		util_check_interrupts();
		MemoryContextReset(apply->change_cxt);
		cdc_arena_reset(&apply->arena);
		replay->changes++;
		apply_count_read(apply, &change);
		if (apply_change(apply, &change) == APPLY_REWIND)
			return APPLY_REWIND;
	}
}

static ApplyResult
replay_pieces(Apply *apply, Replay *replay, int32 prepared_id, int32 pieces)
{
	ApplyResult result = APPLY_OK;

	for (int32 piece_no = 1; piece_no <= pieces && result == APPLY_OK; piece_no++)
	{
		MemoryContext old = MemoryContextSwitchTo(replay->piece_cxt);
		bytea	   *piece;

		apply_begin(apply);
		MemoryContextSwitchTo(replay->piece_cxt);
		PushActiveSnapshot(GetTransactionSnapshot());
		piece = catalog_prepared_piece(apply->pipeline_id, prepared_id, piece_no);
		PopActiveSnapshot();
		MemoryContextSwitchTo(old);
		if (piece == NULL)
			break;				/* told by the count */
		result = replay_bytes(apply, replay, VARDATA_ANY(piece), VARSIZE_ANY_EXHDR(piece));
		MemoryContextReset(replay->piece_cxt);
	}
	return result;
}

/* Were all of them there? What is missing must not be missing in silence. */
static void
replay_check(Apply *apply, const Replay *replay, int64 changes)
{
	if (replay->changes != changes || binlog_change_reader_left(replay->reader) != 0)
		throw_damaged(apply, psprintf("There are " INT64_FORMAT " of " INT64_FORMAT ".", replay->changes, changes));
}

/* One phase: what was held takes effect now, in the transaction that is coming in. */
ApplyResult
apply_hold_release(Apply *apply)
{
	ApplyHold  *hold = apply->hold;
	int32		prepared_id = hold->prepared_id;
	int32		pieces = hold->pieces;
	Replay		replay;
	ApplyResult result;

	apply->holding = false;
	apply_count_anew(apply);
	replay_begin(apply, &replay);
	result = replay_pieces(apply, &replay, prepared_id, pieces);
	if (result == APPLY_OK && hold->bytes.len > 0)
		result = replay_bytes(apply, &replay, hold->bytes.data, hold->bytes.len);
	if (result == APPLY_OK)
	{
		replay_check(apply, &replay, hold->changes);
		if (pieces > 0)
			apply_hold_forget(apply);
		apply_hold_end(apply);
	}
	MemoryContextDelete(replay.cxt);
	return result;
}

ApplyResult
apply_prepared_commit(Apply *apply, const CdcEvent *event, const CatalogPrepared *prepared)
{
	CatalogPrepared kept = *prepared;	/* its numbers; what it points to goes with the first change */
	CdcPosition start = event->start;
	Replay		replay;
	ApplyResult result;

	apply_begin(apply);
	if (apply_txn_begin(apply, &start, &event->gtid, event->source_time_us) == APPLY_REWIND)
		return APPLY_REWIND;
	apply_begin(apply);			/* a change of shape may have been committed */
	apply->txn_is_xa = true;
	replay_begin(apply, &replay);
	result = replay_pieces(apply, &replay, kept.prepared_id, kept.pieces);
	if (result == APPLY_OK)
	{
		replay_check(apply, &replay, kept.changes);
		PushActiveSnapshot(GetTransactionSnapshot());
		catalog_prepared_delete(&kept);
		PopActiveSnapshot();
		apply_txn_end(apply);
	}
	MemoryContextDelete(replay.cxt);
	return result;
}

bool
apply_prepared_covers(const CatalogPrepared *prepared, const ApplyTable *table)
{
	char	   *name;

	if (table->table_id <= prepared->last_table_id)
		return true;
	if (!prepared->has_tables)
		return false;
	name = full_name(table->schema, table->name);
	return !util_name_in(prepared->source_tables, name);
}
