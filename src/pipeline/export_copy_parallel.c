/*-------------------------------------------------------------------------
 *
 * export_copy_parallel.c
 *	  A chunk of the initial copy of an outgoing pipeline that several processes
 *	  read.
 *
 * NOTES
 *	  They are the server's own parallel workers: they have this process's
 *	  snapshot, role and settings, are in its group of locks, and their errors are
 *	  thrown here. What the chunk is stays as it was: one range of keys, one snapshot,
 *	  one row of the ledger, written when all of it is in the sink.
 *
 *	  decode/ cuts the chunk into ranges. Workers take these in their order, as they
 *	  are free, until none is left or this process says that it is enough: so what was
 *	  read is always the first n ranges, and the chunk ends where the n-th does. Rows
 *	  become the sink's bytes there, and come through a queue for each worker,
 *	  in pieces; here they are only written. The order of rows within a chunk does not
 *	  matter, no two have the same key. A row that is longer than a piece comes in several, and
 *	  nobody else's in between. Queues are all the memory that it takes.
 *
 *	  The pipeline as this process knows it is handed on, not read again: it may have
 *	  been altered since.
 *
 *	  A chunk counts when every worker has said that it is done, and when together
 *	  they have read as many ranges as were taken.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "foreign/foreign.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "commands/defrem.h"
#include "port/atomics.h"
#include "storage/proc.h"
#include "storage/shm_mq.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "pipeline/export_copy_parallel.h"
#include "pipeline/export_plugin.h"
#include "pipeline/export_rights.h"
#include "util/util_arena.h"
#include "util/util_error.h"
#include "util/util_wait.h"

/* To start processes takes milliseconds, on a busy machine ten and more: what one alone does in less than this is left to it. */
#define WORTH_US 40000

/* A chunk has at most so many times the rows of the one before it. */
#define GROW_MAX 4

/* So many times what one process alone reads at a time is each worker's part of a chunk: to start them must not be most of the work. */
#define PART_FACTOR 4

/* Ranges for each worker: the last ones to be read end at about the same time, and "enough" is heeded soon. */
#define RANGES_PER_WORKER 8

#define PIECE_SIZE (64 * 1024)
#define QUEUE_SIZE (4 * PIECE_SIZE)

/* How long a wait for rows lasts at most: how soon a wish that this process may leave is seen. */
#define WAIT_MS 100

enum
{
	KEY_SHARED = 1,
	KEY_TEXTS,
	KEY_QUEUES
};

typedef struct Shared
{
	Oid			relid;
	Oid			owner;
	XLogRecPtr	lsn;
	uint32		nranges;
	pg_atomic_uint32 next;		/* range to be taken next; may pass nranges */
	pg_atomic_uint32 enough;	/* 1: take no more */
} Shared;

/* Stands before the bytes of each message. */
typedef struct Piece
{
	uint32		rows;			/* that end in it */
	uint32		ranges;			/* that were read to their end */
	bool		more;			/* the next message of this worker goes on in the middle of a row */
	bool		done;			/* it was the worker's last one */
} Piece;

/* ---- how much ---- */

static int	spread(void *arg, Oid relid, const DecodeChunk *chunk, const List *bounds, uint64 entries, uint64 *rows);

static bool
is_worth_while(const ExportCopyRate *rate, uint64 rows)
{
	return rows > 1 && (double) rate->took_us / (double) rate->rows * (double) rows >= WORTH_US;
}

bool
export_copy_parallel_plan(ExportCopyParallel *parallel, const ExportCopyRate *rate, DecodeChunkShare *share)
{
	double		rows;

	if (parallel->workers < 2 || rate->rows == 0)
		return false;
	rows = (double) rate->rows * parallel->max_ms * 1000 / (double) Max(rate->took_us, 1);
	rows = Min(rows, (double) rate->rows * GROW_MAX);
	rows = Min(rows, (double) parallel->max_rows * parallel->workers * PART_FACTOR);
	rows = Min(rows, (double) parallel->max_bytes * parallel->workers * PART_FACTOR * (double) rate->rows / (double) Max(rate->bytes, 1));
	if (!is_worth_while(rate, (uint64) rows))
		return false;
	parallel->rate = *rate;
	share->entries = (uint64) rows;
	share->ranges = parallel->workers * RANGES_PER_WORKER;
	share->spread = spread;
	share->arg = parallel;
	return true;
}

/* ---- what workers are told ---- */

static void
put_text(StringInfo buf, const char *text)
{
	appendBinaryStringInfo(buf, text, (int) strlen(text) + 1);
}

static void
put_number(StringInfo buf, int number)
{
	appendBinaryStringInfo(buf, (char *) &number, sizeof(number));
}

static void
put_texts(StringInfo buf, const List *texts)
{
	ListCell   *lc;

	put_number(buf, list_length(texts));
	foreach(lc, texts)
		put_text(buf, lfirst(lc));
}

static const char *
get_text(StringInfo buf)
{
	const char *text = buf->data + buf->cursor;

	buf->cursor += (int) strlen(text) + 1;
	return text;
}

static int
get_number(StringInfo buf)
{
	int			number;

	memcpy(&number, buf->data + buf->cursor, sizeof(number));
	buf->cursor += (int) sizeof(number);
	return number;
}

static List *
get_texts(StringInfo buf)
{
	List	   *texts = NIL;

	for (int n = get_number(buf); n > 0; n--)
		texts = lappend(texts, unconstify(char *, get_text(buf)));
	return texts;
}

static void
put_pipeline(StringInfo buf, const CatalogPipeline *pipeline)
{
	Jsonb	   *options = pipeline->options == (Datum) 0 ? NULL : DatumGetJsonbP(pipeline->options);

	put_number(buf, pipeline->id);
	put_text(buf, pipeline->name);
	put_text(buf, pipeline->sink);
	put_texts(buf, pipeline->tables);
	put_number(buf, options == NULL ? 0 : (int) VARSIZE(options));
	if (options != NULL)
		appendBinaryStringInfo(buf, (char *) options, (int) VARSIZE(options));
}

static CatalogPipeline *
get_pipeline(StringInfo buf, Oid owner)
{
	CatalogPipeline *pipeline = palloc0(sizeof(CatalogPipeline));
	int			size;

	pipeline->owner = owner;
	pipeline->id = get_number(buf);
	pipeline->name = unconstify(char *, get_text(buf));
	pipeline->sink = unconstify(char *, get_text(buf));
	pipeline->tables = get_texts(buf);
	size = get_number(buf);
	if (size > 0)
	{
		void	   *options = palloc(size);

		memcpy(options, buf->data + buf->cursor, size);
		buf->cursor += size;
		pipeline->options = PointerGetDatum(options);
	}
	return pipeline;
}

static void
put_server(StringInfo buf, const ForeignServer *server)
{
	ListCell   *lc;

	put_text(buf, server->servername);
	put_number(buf, list_length(server->options));
	foreach(lc, server->options)
	{
		DefElem    *def = lfirst_node(DefElem, lc);

		put_text(buf, def->defname);
		put_text(buf, defGetString(def));
	}
}

static void
get_server(StringInfo buf, CdcSinkTarget *target)
{
	target->server_name = get_text(buf);
	for (int n = get_number(buf); n > 0; n--)
	{
		char	   *name = unconstify(char *, get_text(buf));
		char	   *value = unconstify(char *, get_text(buf));

		target->options = lappend(target->options, makeDefElem(name, (Node *) makeString(value), -1));
	}
}

/* ---- workers ---- */

typedef struct Sender
{
	shm_mq_handle *queue;
	CdcSinkPreparer *preparer;
	const CatalogPipeline *pipeline;
	CdcBuf		out;
	Piece		piece;			/* with what "out" has */
} Sender;

static void
send_message(Sender *sender, const Piece *piece, const char *data, size_t len)
{
	shm_mq_iovec iov[2] = {{.data = (const char *) piece,.len = sizeof(Piece)}, {.data = data,.len = len}};

	if (shm_mq_sendv(sender->queue, iov, 2, false, true) != SHM_MQ_SUCCESS)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the worker of pipeline \"%s\" has left", sender->pipeline->name)));
}

static void
send_out(Sender *sender)
{
	static const Piece middle = {.more = true};
	size_t		at = 0;

	for (; sender->out.len - at > PIECE_SIZE; at += PIECE_SIZE)
		send_message(sender, &middle, sender->out.data + at, PIECE_SIZE);
	send_message(sender, &sender->piece, sender->out.data + at, sender->out.len - at);
	memset(&sender->piece, 0, sizeof(Piece));
	sink_empty_buffer(&sender->out);
}

/* DecodeChunkRow */
static bool
send_row(void *arg, const CdcRecord *record)
{
	Sender	   *sender = arg;

	/* somebody may have to be waited for who is gone */
	util_check_interrupts();
	cdc_sink_prepare(sender->preparer, record, &sender->out);
	sender->piece.rows++;
	if (sender->out.len >= PIECE_SIZE)
		send_out(sender);
	return true;
}

/* DecodeMeet */
static void
meet(void *arg, Relation relation, const Bitmapset *columns)
{
	export_rights_check(NULL, InvalidXLogRecPtr, arg, relation, columns);
}

static void
read_ranges(Sender *sender, Shared *shared, DecodeRanges *ranges, List *bounds)
{
	uint32		i;

	while (pg_atomic_read_u32(&shared->enough) == 0 && (i = pg_atomic_fetch_add_u32(&shared->next, 1)) < shared->nranges)
	{
		decode_ranges_read(ranges, list_nth(bounds, (int) i), list_nth(bounds, (int) i + 1));
		sender->piece.ranges++;
	}
}

/* What is thrown here is thrown once more in the leader, who cannot know whose words it has: so it goes without values of rows. */
static _Noreturn void
throw_without_values(MemoryContext cxt)
{
	UtilErrorInfo *info = util_error_info_of_data(cxt);

	ereport(ERROR,
			(errcode(info->sqlstate),
			 errmsg_internal("%s", info->message),
			 info->detail ? errdetail_internal("%s", info->detail) : 0,
			 info->hint ? errhint("%s", info->hint) : 0));
}

void
cdc_export_copy_main(dsm_segment *segment, shm_toc *toc)
{
	Shared	   *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	StringInfoData texts = {.data = shm_toc_lookup(toc, KEY_TEXTS, false)};
	shm_mq	   *queue = (shm_mq *) ((char *) shm_toc_lookup(toc, KEY_QUEUES, false) + (Size) ParallelWorkerNumber * QUEUE_SIZE);
	CatalogPipeline *pipeline = get_pipeline(&texts, shared->owner);
	CdcSinkTarget target = {.pipeline = pipeline};
	Sender		sender = {.pipeline = pipeline};
	DecodeChunk chunk = {.lsn = shared->lsn};
	const char *wrapper = get_text(&texts);
	List	   *bounds = NIL;
	MemoryContext cxt = CurrentMemoryContext;

	shm_mq_set_sender(queue, MyProc);
	sender.queue = shm_mq_attach(queue, segment, NULL);
	get_server(&texts, &target);
	chunk.signature = unconstify(char *, get_text(&texts));
	for (uint32 i = 0; i <= shared->nranges; i++)
		bounds = lappend(bounds, get_texts(&texts));
	sender.preparer = cdc_sink_preparer(wrapper, &target);
	cdc_buf_init(&sender.out, util_context_allocator(CurrentMemoryContext), 0);

	PG_TRY();
	{
		DecodeRanges *ranges = decode_ranges_open(export_plugin_options(pipeline), meet, pipeline, shared->relid, &chunk, send_row, &sender);

		read_ranges(&sender, shared, ranges, bounds);
		decode_ranges_close(ranges);
	}
	PG_CATCH();
	{
		throw_without_values(cxt);
	}
	PG_END_TRY();
	sender.piece.done = true;
	send_out(&sender);
	shm_mq_detach(sender.queue);
}

/* ---- the process that has the pipeline ---- */

typedef struct Receiver
{
	ExportCopyParallel *parallel;
	Shared	   *shared;
	int			n;				/* workers */
	shm_mq_handle *queues[CATALOG_MAX_SNAPSHOT_WORKERS];	/* NULL: it has said that it is done, or is gone */
	int			ndone;
	int			nbusy;			/* that read something */
	bool		has_read[CATALOG_MAX_SNAPSHOT_WORKERS];
	uint32		ranges;
	uint64		rows;
	uint64		bytes_before;
	TimestampTz began_at;		/* first piece; 0: none yet */
} Receiver;

/* The next message of a worker; false: it has sent none, or is gone. */
static bool
receive_message(Receiver *receiver, int i, bool wait, Piece *piece)
{
	Size		len;
	void	   *data;

	switch (shm_mq_receive(receiver->queues[i], &len, &data, !wait))
	{
		case SHM_MQ_WOULD_BLOCK:
			return false;
		case SHM_MQ_DETACHED:
			receiver->queues[i] = NULL;
			return false;
		case SHM_MQ_SUCCESS:
			break;
	}
	if (len < sizeof(Piece))
		elog(ERROR, "a piece of a chunk has %zu bytes", len);
	memcpy(piece, data, sizeof(Piece));
	if (len > sizeof(Piece))
		cdc_sink_write_prepared(receiver->parallel->sink, (char *) data + sizeof(Piece), len - sizeof(Piece));
	return true;
}

/* False: there was nothing of that worker. */
static bool
receive_piece(Receiver *receiver, int i)
{
	Piece		piece;

	if (!receive_message(receiver, i, false, &piece))
		return false;
	while (piece.more)
	{
		if (!receive_message(receiver, i, true, &piece))
			return false;
	}
	receiver->rows += piece.rows;
	receiver->ranges += piece.ranges;
	if (piece.ranges > 0 && !receiver->has_read[i])
	{
		receiver->has_read[i] = true;
		receiver->nbusy++;
	}
	if (piece.done)
	{
		receiver->ndone++;
		receiver->queues[i] = NULL;
	}
	if (receiver->began_at == 0)
		receiver->began_at = GetCurrentTimestamp();
	return true;
}

static bool
is_enough(const Receiver *receiver)
{
	const ExportCopyParallel *parallel = receiver->parallel;

	return parallel->sink->bytes - receiver->bytes_before >= parallel->max_bytes * parallel->workers * PART_FACTOR ||
		(receiver->began_at != 0 && TimestampDifferenceExceeds(receiver->began_at, GetCurrentTimestamp(), parallel->max_ms));
}

static void
receive_all(Receiver *receiver)
{
	for (;;)
	{
		bool		any = false;
		bool		open = false;

		worker_check_interrupts();
		for (int i = 0; i < receiver->n; i++)
		{
			if (receiver->queues[i] != NULL)
				any |= receive_piece(receiver, i);
			open |= receiver->queues[i] != NULL;
		}
		if (!open)
			return;
		if (is_enough(receiver))
			pg_atomic_write_u32(&receiver->shared->enough, 1);
		if (!any)
			(void) util_wait(PGINVALID_SOCKET, WAIT_MS, UTIL_WAIT_SNAPSHOT);
	}
}

static void
describe_chunk(StringInfo texts, const ExportCopyParallel *parallel, const DecodeChunk *chunk, const List *bounds)
{
	ListCell   *lc;

	initStringInfo(texts);
	put_pipeline(texts, parallel->worker->pipeline);
	put_text(texts, parallel->sink->ops->wrapper);
	put_server(texts, parallel->worker->server);
	put_text(texts, chunk->signature);
	foreach(lc, bounds)
		put_texts(texts, lfirst(lc));
}

static ParallelContext *
launch(ExportCopyParallel *parallel, Oid relid, const DecodeChunk *chunk, const List *bounds, Receiver *receiver)
{
	ParallelContext *context = CreateParallelContext("cdc_bridge", "cdc_export_copy_main", parallel->workers);
	StringInfoData texts;
	char	   *queues;
	void	   *copied;

	describe_chunk(&texts, parallel, chunk, bounds);
	shm_toc_estimate_chunk(&context->estimator, sizeof(Shared));
	shm_toc_estimate_chunk(&context->estimator, texts.len);
	shm_toc_estimate_chunk(&context->estimator, (Size) QUEUE_SIZE * parallel->workers);
	shm_toc_estimate_keys(&context->estimator, 3);
	InitializeParallelDSM(context);
	if (context->seg == NULL)
		return context;

	receiver->shared = shm_toc_allocate(context->toc, sizeof(Shared));
	receiver->shared->relid = relid;
	receiver->shared->owner = parallel->worker->pipeline->owner;
	receiver->shared->lsn = chunk->lsn;
	receiver->shared->nranges = (uint32) list_length(bounds) - 1;
	pg_atomic_init_u32(&receiver->shared->next, 0);
	pg_atomic_init_u32(&receiver->shared->enough, 0);
	shm_toc_insert(context->toc, KEY_SHARED, receiver->shared);
	copied = shm_toc_allocate(context->toc, texts.len);
	memcpy(copied, texts.data, texts.len);
	shm_toc_insert(context->toc, KEY_TEXTS, copied);
	queues = shm_toc_allocate(context->toc, (Size) QUEUE_SIZE * parallel->workers);
	for (int i = 0; i < parallel->workers; i++)
		shm_mq_set_receiver(shm_mq_create(queues + (Size) i * QUEUE_SIZE, QUEUE_SIZE), MyProc);
	shm_toc_insert(context->toc, KEY_QUEUES, queues);

	LaunchParallelWorkers(context);
	for (int i = 0; i < context->nworkers_launched; i++)
		receiver->queues[i] = shm_mq_attach((shm_mq *) (queues + (Size) i * QUEUE_SIZE), context->seg, context->worker[i].bgwhandle);
	receiver->n = context->nworkers_launched;
	return context;
}

static void
count_chunk(ExportCopyParallel *parallel)
{
	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	parallel->worker->slot->export.parallel_chunks++;
	LWLockRelease(shmem->lock);
}

/* DecodeChunkSpread */
static int
spread(void *arg, Oid relid, const DecodeChunk *chunk, const List *bounds, uint64 entries, uint64 *rows)
{
	ExportCopyParallel *parallel = arg;
	Receiver	receiver = {.parallel = parallel,.bytes_before = parallel->sink->bytes};
	ParallelContext *context;
	uint32		taken = 0;

	/* the rest of a table may be small */
	if (list_length(bounds) < 3 || !is_worth_while(&parallel->rate, entries))
		return 0;
	EnterParallelMode();
	context = launch(parallel, relid, chunk, bounds, &receiver);
	if (receiver.n > 0)
	{
		receive_all(&receiver);
		/* throws what a worker has thrown, and when one did not come to life */
		WaitForParallelWorkersToFinish(context);
		taken = Min(pg_atomic_read_u32(&receiver.shared->next), receiver.shared->nranges);
		if (receiver.ndone != receiver.n || receiver.ranges != taken)
			ereport(ERROR,
					(errcode(ERRCODE_INTERNAL_ERROR),
					 errmsg("a chunk of table %u was not read to its end", relid),
					 errdetail_internal("%d of %d workers are done, with %u of %u ranges.", receiver.ndone, receiver.n, receiver.ranges, taken)));
	}
	DestroyParallelContext(context);
	ExitParallelMode();
	if (receiver.nbusy > 1)
		count_chunk(parallel);
	*rows = receiver.rows;
	return (int) taken;
}
