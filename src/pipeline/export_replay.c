/*-------------------------------------------------------------------------
 *
 * export_replay.c
 *	  Dead letters of an outgoing pipeline that are shipped again, or given up,
 *	  because somebody asked for it.
 *
 * NOTES
 *	  The export worker does it, between two transactions of the stream: so what is
 *	  shipped again has its place among all that leaves, behind everything that was
 *	  decoded, and never over a newer change of its row, as that has made the letter
 *	  moot (export_letter.c). decode_replay.c makes the record.
 *
 *	  Exactly once: what one step ships is a chunk, as those of copies are
 *	  (export_copy.c), and the sink keeps its number beside its position. A letter has the
 *	  number, durable, before the sink is flushed. After that it is settled, with how
 *	  far the request is; the next step waits for this. At a start letters of chunks that
 *	  the sink has are settled, and all others are open again.
 *
 *	  Letters of tables that are stopped or being copied are left alone.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/pg_lsn.h"
#include "utils/snapmgr.h"

#include "catalog/catalog_dead_letter.h"
#include "decode/decode_replay.h"
#include "heap/heap_row.h"
#include "compat/pg_compat.h"
#include "pipeline/export_place.h"
#include "pipeline/export_replay.h"
#include "pipeline/export_transaction.h"
#include "util/util_error.h"
#include "util/util_subtransaction.h"

/* Most letters of one step that are tried, resp. looked at, and about how much is written. */
#define TRIED_MAX 500
#define SEEN_MAX 5000
#define BYTES_MAX (8 * 1024 * 1024)

/* How long a table that somebody has locked is waited for, until its letters are looked at once more. */
#define BUSY_MS 100

struct ExportReplay
{
	Worker	   *worker;
	ExportCopy *copy;
	ExportLetters *letters;
	CdcSink    *sink;
	bool		due;			/* a request may be open */
	int64		begun;			/* the request that this process has taken up; 0: none */
	MemoryContext sent_context; /* of the following */
	List	   *sent;			/* CatalogDeadLetter *, of the chunk that the sink has not got for good */
	int32		chunk_no;		/* of it; 0: there is none */
	CatalogLetterRequest *request;	/* how far it is with these */
	TimestampTz retry_at;		/* a table was locked */
	Oid			looked_at;		/* the table that was looked at last, in this step */
	bool		streams;		/* and whether it is neither being copied nor stopped */
};

/* ---- letters that the sink has ---- */

/* In the open transaction. */
static void
settle_sent(const ExportReplay *replay, const CatalogDeadLetter *letter)
{
	const char *reason = psprintf("dead letter " INT64_FORMAT ", a later change of its row, was shipped", letter->id);

	if (letter->old_key != NULL)
		(void) catalog_dead_letter_supersede(letter->pipeline_id, letter->table_id, letter->old_key, NIL, letter->id, reason);
	if (letter->new_key != NULL)
		(void) catalog_dead_letter_supersede(letter->pipeline_id, letter->table_id, letter->new_key, NIL, letter->id, reason);
	catalog_dead_letter_settle(letter, CATALOG_LETTER_REPLAYED, NULL, letter->request, NULL);
	CommandCounterIncrement();
}

/* A letter was settled at a start: the request that it was shipped for counts it. */
static void
count_settled(const ExportReplay *replay, const CatalogDeadLetter *letter)
{
	CatalogLetterRequest *request = catalog_letter_request_open(replay->worker->pipeline_id);

	if (request == NULL || request->request != letter->request)
		return;
	request->settled++;
	catalog_letter_request_update(request);
	CommandCounterIncrement();
}

ExportReplay *
export_replay_open(Worker *worker, ExportCopy *copy, ExportLetters *letters, CdcSink *sink, int32 durable_chunk)
{
	ExportReplay *replay = palloc0(sizeof(ExportReplay));
	ListCell   *lc;

	replay->worker = worker;
	replay->copy = copy;
	replay->letters = letters;
	replay->sink = sink;
	replay->due = true;
	replay->sent_context = AllocSetContextCreate(CurrentMemoryContext, "cdc letters shipped again", ALLOCSET_DEFAULT_SIZES);
	export_transaction_begin(true);
	foreach(lc, catalog_dead_letter_in_chunks(worker->pipeline_id))
	{
		const CatalogDeadLetter *letter = lfirst(lc);

		if (letter->chunk_no > durable_chunk)
		{
			catalog_dead_letter_set_chunk(letter->pipeline_id, letter->id, 0, letter->request);
			CommandCounterIncrement();
			continue;
		}
		settle_sent(replay, letter);
		count_settled(replay, letter);
	}
	export_transaction_end(true, worker->cxt);
	return replay;
}

void
export_replay_after_flush(ExportReplay *replay, int32 durable_chunk)
{
	ListCell   *lc;

	if (replay->chunk_no == 0 || replay->chunk_no > durable_chunk)
		return;
	export_transaction_begin(true);
	foreach(lc, replay->sent)
		settle_sent(replay, lfirst(lc));
	catalog_letter_request_worked(replay->request, replay->worker->pipeline->name);
	export_transaction_end(true, replay->worker->cxt);
	replay->sent = NIL;
	replay->chunk_no = 0;
	replay->request = NULL;
	MemoryContextReset(replay->sent_context);
}

/* ---- one letter ---- */

/* On its way to a record. */
typedef struct Attempt
{
	DecodeCopy *copy;
	DecodeOldLetter old;
	DecodeReplayResult result;
	CdcRecord	record;
} Attempt;

/* UtilStep */
static void
make_record(void *arg)
{
	Attempt    *attempt = arg;

	attempt->result = decode_replay(attempt->copy, &attempt->old, &attempt->record);
}

static CdcOutOp
op_of(const CatalogDeadLetter *letter)
{
	if (strcmp(letter->operation, "update") == 0)
		return CDC_OUT_UPDATE;
	if (strcmp(letter->operation, "delete") == 0)
		return CDC_OUT_DELETE;
	return strcmp(letter->operation, "insert") == 0 ? CDC_OUT_INSERT : CDC_OUT_READ;
}

static void
fill_attempt(Attempt *attempt, const CatalogDeadLetter *letter)
{
	attempt->old.relid = (Oid) letter->table_id;
	attempt->old.op = op_of(letter);
	attempt->old.before = letter->before;
	attempt->old.after = letter->after;
	attempt->old.newer = letter->newer;
	attempt->old.old_key = letter->old_key;
	attempt->old.new_key = letter->new_key;
	attempt->old.shape = letter->shape;
	attempt->old.lsn = export_log_lsn(&letter->position);
	if (letter->gtid != NULL)
		attempt->old.commit_lsn = DatumGetLSN(DirectFunctionCall1(pg_lsn_in, CStringGetDatum(letter->gtid)));
	if (letter->changed_at != 0)
		attempt->old.time_us = letter->changed_at + EXPORT_UNIX_TO_POSTGRES_US;
}

/* The sink gets it, and the letter its chunk. */
static void
ship(ExportReplay *replay, const CatalogDeadLetter *letter, const CatalogLetterRequest *request, const CdcRecord *record, XLogRecPtr position)
{
	MemoryContext old_context;
	CatalogDeadLetter *sent;

	if (replay->chunk_no == 0)
		replay->chunk_no = export_copy_add_letters(replay->copy, position);
	cdc_sink_write(replay->sink, record);
	catalog_dead_letter_set_chunk(letter->pipeline_id, letter->id, replay->chunk_no, request->request);
	old_context = MemoryContextSwitchTo(replay->sent_context);
	sent = palloc0(sizeof(CatalogDeadLetter));
	sent->pipeline_id = letter->pipeline_id;
	sent->id = letter->id;
	sent->table_id = letter->table_id;
	sent->request = request->request;
	if (letter->old_key != NULL)
		sent->old_key = (bytea *) PG_DETOAST_DATUM_COPY(PointerGetDatum(letter->old_key));
	if (letter->new_key != NULL)
		sent->new_key = (bytea *) PG_DETOAST_DATUM_COPY(PointerGetDatum(letter->new_key));
	replay->sent = lappend(replay->sent, sent);
	MemoryContextSwitchTo(old_context);
}

/* False: its table is locked by somebody, so it is to be tried later. */
static bool
try_letter(ExportReplay *replay, const CatalogDeadLetter *letter, CatalogLetterRequest *request, XLogRecPtr position)
{
	Attempt		attempt = {.copy = export_copy_decode(replay->copy)};
	ErrorData  *edata;

	if (replay->looked_at != (Oid) letter->table_id)
	{
		replay->looked_at = (Oid) letter->table_id;
		replay->streams = export_copy_streams(replay->copy, replay->looked_at);
	}
	if (!replay->streams)
	{
		request->left_alone++;
		return true;
	}
	fill_attempt(&attempt, letter);
	edata = util_subtransaction(make_record, &attempt, true);
	if (edata != NULL)
	{
		if (!heap_error_is_tables_own(edata->sqlerrcode) && util_error_class(edata->sqlerrcode) != UTIL_ERROR_CONFIGURATION)
			ReThrowError(edata);
		catalog_dead_letter_settle(letter, CATALOG_LETTER_FAILED, NULL, request->request, util_error_info_with_values(edata));
		request->failed++;
		return true;
	}
	switch (attempt.result)
	{
		case DECODE_REPLAY_MADE:
			ship(replay, letter, request, &attempt.record, position);
			request->settled++;
			break;
		case DECODE_REPLAY_NOTHING:
			catalog_dead_letter_settle(letter, CATALOG_LETTER_REPLAYED, "the pipeline's options ship nothing of it", request->request, NULL);
			request->settled++;
			break;
		case DECODE_REPLAY_BUSY:
			return false;
		case DECODE_REPLAY_GONE:
			request->left_alone++;
			break;
	}
	return true;
}

/* ---- one request ---- */

/* Some letters of it, in the open transaction; it is done when there is none left. False: one has to wait. */
static bool
work(ExportReplay *replay, CatalogLetterRequest *request, XLogRecPtr position)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "cdc letter", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	uint64		bytes = replay->sink->bytes;
	bool		is_free = true;
	int			tried = 0;

	replay->looked_at = InvalidOid;

	for (int seen = 0; is_free && seen < SEEN_MAX && tried < TRIED_MAX && replay->sink->bytes - bytes < BYTES_MAX; seen++)
	{
		CatalogDeadLetter *letter;

		worker_check_interrupts();
		MemoryContextReset(context);
		letter = catalog_dead_letter_next(replay->worker->pipeline_id, request->last_id);
		if (letter == NULL)
		{
			request->state = CATALOG_LETTER_REQUEST_DONE;
			break;
		}
		if (catalog_letter_request_means(request, letter))
		{
			if (request->discards)
			{
				catalog_dead_letter_settle(letter, CATALOG_LETTER_DISCARDED, request->reason, request->request, NULL);
				request->settled++;
			}
			else
			{
				tried++;
				is_free = try_letter(replay, letter, request, position);
			}
			CommandCounterIncrement();
		}
		if (is_free)
			request->last_id = letter->id;
	}
	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(context);
	return is_free;
}

static CatalogLetterRequest *
copy_request(const CatalogLetterRequest *request)
{
	CatalogLetterRequest *copy = palloc(sizeof(CatalogLetterRequest));

	*copy = *request;
	copy->tables = copy->ids = NIL; /* what _update does not write */
	copy->reason = NULL;
	return copy;
}

/* In the open transaction. */
static void
go_on(ExportReplay *replay, CatalogLetterRequest *request, XLogRecPtr position)
{
	if (replay->begun != request->request)
	{
		replay->begun = request->request;
		catalog_letter_request_take_up(request);
		catalog_letter_request_worked(request, replay->worker->pipeline->name);
		return;
	}
	/* what is known of the stream's changes comes first */
	export_letters_write_waiting(replay->letters);
	if (!work(replay, request, position))
		replay->retry_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), BUSY_MS);
	request->attempts = 0;
	if (replay->chunk_no != 0)
	{
		MemoryContext old_context = MemoryContextSwitchTo(replay->sent_context);

		replay->request = copy_request(request);
		MemoryContextSwitchTo(old_context);
	}
	else
		catalog_letter_request_worked(request, replay->worker->pipeline->name);
}

/* Whoever has mended the options before he asked means these: a worker that still has others leaves it to the next one. */
static bool
is_up_to_date(const ExportReplay *replay)
{
	const CatalogPipeline *now = catalog_pipeline_by_id(replay->worker->pipeline_id);

	return now != NULL && now->stamp == replay->worker->pipeline->stamp;
}

bool
export_replay_is_due(const ExportReplay *replay)
{
	return replay->due && replay->retry_at == 0 && replay->chunk_no == 0;
}

bool
export_replay_step(ExportReplay *replay, XLogRecPtr position)
{
	CatalogLetterRequest *request;

	if (!replay->due && !replay->worker->slot->letters_wanted)
		return false;
	if (replay->chunk_no != 0 || (replay->retry_at != 0 && GetCurrentTimestamp() < replay->retry_at))
		return false;
	replay->worker->slot->letters_wanted = false;	/* before the look: a later wish counts */
	replay->retry_at = 0;
	export_transaction_begin(true);
	request = is_up_to_date(replay) ? catalog_letter_request_open(replay->worker->pipeline_id) : NULL;
	replay->due = request != NULL;
	if (request != NULL)
		go_on(replay, request, position);
	export_transaction_end(false, replay->worker->cxt);
	if (request != NULL)
		export_copy_wrote(replay->copy, XactLastCommitEnd);
	return replay->chunk_no != 0;
}
