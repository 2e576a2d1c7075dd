/*-------------------------------------------------------------------------
 *
 * export_copy.c
 *	  The initial copy of an outgoing pipeline's tables, as a part of its export
 *	  worker.
 *
 * NOTES
 *	  decode/ knows which changes the stream leaves to the copy, and reads chunks
 *	  (decode_copy.h). Here is decided when the next chunk is read, and written
 *	  down what was.
 *
 *	  Exactly once: chunks have numbers, and the sink keeps the number of the last
 *	  one beside its position, so the two come together or not at all. What a chunk
 *	  was is a row of cdc_bridge.export_chunk, durable before the sink is flushed.
 *	  After a restart rows with a higher number than the sink's are deleted, as if
 *	  those chunks had never been, and the stream comes again from
 *	  where it was when they had not been. A row stays until the sink has the chunk
 *	  and the stream has passed it, both for good: then nothing that its snapshot saw
 *	  comes again, and what it means is added to the table's row of
 *	  cdc_bridge.export_table.
 *
 *	  That a copy begins anew takes a number as well: it counts only together with
 *	  the TRUNCATE that says so to the receiver.
 *
 *	  The stream waits while a chunk is read, and goes on at least four times
 *	  as long before the next one, unless it has caught up.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "catalog/catalog_dead_letter.h"
#include "catalog/catalog_export_copy.h"
#include "decode/decode_copy.h"
#include "pipeline/export_copy.h"
#include "pipeline/export_copy_parallel.h"
#include "pipeline/export_transaction.h"
#include "util/util_error.h"
#include "util/util_wait.h"

/* About the longest time that a chunk of a table with a key takes. */
#define CHUNK_MAX_MS 500

/* How much longer the stream goes on than the last chunk took. */
#define STREAM_SHARE 4

/* How long the stream may wait for transactions that it has decoded and nobody else sees yet; then it goes on first. */
#define SETTLE_MS 100

/* After an attempt in vain: until the next one. */
#define RETRY_MS 50

/* When the sink cannot be flushed now. */
#define AGAIN_MS 5

/* So many chunks that the stream has not passed, and it goes on first. */
#define CHUNKS_AHEAD_MAX 256

/* How often the chunks that count for good are added up. */
#define FOLD_MS 500

typedef struct CopyTable
{
	CatalogExportTable row;		/* as it stands in the catalog; last_key and signature in key_cxt */
	MemoryContext key_cxt;
	int32		copies_begun;	/* with what the chunks tell */
	DecodeCopyTable *stream;	/* NULL: everything of it is shipped */
	ExportCopyRate rate;
} CopyTable;

typedef struct CopyChunk
{
	MemoryContext cxt;			/* of all this */
	CatalogExportChunk row;
	CopyTable  *table;			/* NULL: of one that the pipeline has no more */
} CopyChunk;

struct ExportCopy
{
	Worker	   *worker;
	MemoryContext cxt;
	CdcSink    *sink;
	DecodeCopy *decode;
	List	   *tables;			/* CopyTable * */
	List	   *chunks;			/* CopyChunk *, by number: the rows of export_chunk */
	int			nstreams;		/* tables that have one */
	int32		last_chunk;
	XLogRecPtr	written;		/* end of the last transaction that wrote such a row; Invalid: they are durable */
	CdcSinkPosition durable;
	bool		has_standbys;	/* that may take this server's place: what they lack does not count */
	ExportCopyParallel parallel;	/* with how much a process reads at a time */
	ExportLetters *letters;
	int			next;			/* table to begin the search with */
	TimestampTz chunk_ended_at;
	int64		chunk_took_us;
	TimestampTz retry_at;
	TimestampTz folded_at;
};

/* ---- catalog ---- */

static CopyTable *
add_table(ExportCopy *copy, const CatalogExportTable *row)
{
	MemoryContext old = MemoryContextSwitchTo(copy->cxt);
	CopyTable  *table = palloc0(sizeof(CopyTable));

	table->row = *row;
	table->row.schema = pstrdup(row->schema);
	table->row.name = pstrdup(row->name);
	table->key_cxt = AllocSetContextCreate(copy->cxt, "cdc last copied key", ALLOCSET_SMALL_SIZES);
	table->copies_begun = row->copies_begun;
	copy->tables = lappend(copy->tables, table);
	MemoryContextSwitchTo(old);
	return table;
}

static void
set_last_key(CopyTable *table, const char *signature, const List *last_key)
{
	MemoryContext cxt = AllocSetContextCreate(MemoryContextGetParent(table->key_cxt), "cdc last copied key", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	List	   *copied = NIL;
	ListCell   *lc;

	foreach(lc, last_key)
		copied = lappend(copied, pstrdup(lfirst(lc)));
	table->row.signature = signature == NULL ? NULL : pstrdup(signature);
	table->row.last_key = copied;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(table->key_cxt);
	table->key_cxt = cxt;
}

static CopyTable *
table_by_id(ExportCopy *copy, int32 table_id)
{
	ListCell   *lc;

	foreach(lc, copy->tables)
	{
		CopyTable  *table = lfirst(lc);

		if (table->row.table_id == table_id)
			return table;
	}
	return NULL;
}

/* Keep a copy of a chunk's row. */
static void
remember_chunk(ExportCopy *copy, CopyTable *table, const CatalogExportChunk *row)
{
	MemoryContext cxt = AllocSetContextCreate(copy->cxt, "cdc copied chunk", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	CopyChunk  *chunk = palloc0(sizeof(CopyChunk));
	ListCell   *lc;

	chunk->cxt = cxt;
	chunk->table = table;
	chunk->row = *row;
	chunk->row.signature = row->signature == NULL ? NULL : pstrdup(row->signature);
	chunk->row.snapshot = row->snapshot == NULL ? NULL : pstrdup(row->snapshot);
	chunk->row.last_key = NIL;
	foreach(lc, row->last_key)
		chunk->row.last_key = lappend(chunk->row.last_key, pstrdup(lfirst(lc)));
	MemoryContextSwitchTo(copy->cxt);
	copy->chunks = lappend(copy->chunks, chunk);
	MemoryContextSwitchTo(old);
}

/* Write a chunk's row, with the next number, in the open transaction. */
static void
write_chunk(ExportCopy *copy, CopyTable *table, CatalogExportChunk *row)
{
	row->pipeline_id = copy->worker->pipeline_id;
	row->table_id = table == NULL ? 0 : table->row.table_id;
	row->chunk_no = ++copy->last_chunk;
	catalog_export_chunk_insert(row);
	remember_chunk(copy, table, row);
}

/* ---- tables ---- */

static void
watch_table(ExportCopy *copy, CopyTable *table)
{
	if (table->stream != NULL)
		return;
	table->stream = decode_copy_add_table(copy->decode, table->row.relid, table->row.table_id, table->row.schema, table->row.name);
	copy->nstreams++;
}

static void
unwatch_table(ExportCopy *copy, CopyTable *table)
{
	if (table->stream == NULL)
		return;
	decode_copy_forget_table(copy->decode, table->stream);
	table->stream = NULL;
	copy->nstreams--;
}

/* Tell the receiver that what it has of a table does not count any more. In the open transaction. */
static void
write_anew(ExportCopy *copy, CopyTable *table)
{
	CdcRecord	record;

	decode_copy_anew_now(copy->decode, table->stream, &record);
	cdc_sink_write(copy->sink, &record);
	table->stream->to_tell = false;
}

/* That a copy begins anew, or that its table is gone, takes a number. In the open transaction; the receiver was told. */
static void
note_special(ExportCopy *copy, CopyTable *table, CatalogExportChunkKind kind)
{
	CatalogExportChunk row = {.kind = kind,.lsn = GetXLogInsertRecPtr(),.copies_begun = Max(table->copies_begun, table->row.copies_asked)};

	decode_copy_begin_anew(copy->decode, table->stream);
	table->stream->begins_anew = false;
	table->stream->gone = kind == CATALOG_EXPORT_GONE;
	table->copies_begun = row.copies_begun;
	write_chunk(copy, table, &row);
	export_letters_write_waiting(copy->letters);
	(void) catalog_dead_letter_supersede_table(copy->worker->pipeline_id, (int32) table->row.relid,
											   kind == CATALOG_EXPORT_GONE ? "its table is gone" : "its table is copied anew");
}

/* Is that list the same as the one under which all tables are known? */
static bool
same_patterns(const List *a, const List *b)
{
	const ListCell *la;
	const ListCell *lb;

	if (list_length(a) != list_length(b))
		return false;
	forboth(la, a, lb, b)
	{
		if (strcmp(lfirst(la), lfirst(lb)) != 0)
			return false;
	}
	return true;
}

static void
add_known(ExportCopy *copy, List *known, Oid relid, bool was_meant)
{
	CatalogExportTable row = {.pipeline_id = copy->worker->pipeline_id,.relid = relid,.started_at = GetCurrentTimestamp()};
	ListCell   *lc;

	foreach(lc, known)
	{
		CatalogExportTable *old = lfirst(lc);

		if (old->relid != relid)
			continue;
		/* it comes back: what the receiver has of it is old */
		if (old->state == CATALOG_EXPORT_REMOVED)
			catalog_export_table_ask(copy->worker->pipeline_id, relid);
		return;
	}
	row.name = get_rel_name(relid);
	if (was_meant || row.name == NULL)
		return;
	row.schema = get_namespace_name(get_rel_namespace(relid));
	catalog_export_table_insert(&row);
}

/*
 * The patterns are others than those under which all tables are known: tables that join are to be copied. One that the
 * former ones meant too, and that is not known, was made later: all its rows came by the stream.
 */
static void
match_tables(ExportCopy *copy, const CatalogExport *state)
{
	const CatalogPipeline *pipeline = copy->worker->pipeline;
	List	   *known = catalog_export_table_list(pipeline->id);
	List	   *relids = NIL;
	ListCell   *lc;

	/* a pipeline that ships changes only has no copies but those that are asked for */
	if (strcmp(util_option_text(&catalog_export_options, "snapshot", catalog_pipeline_option(pipeline, "snapshot")), "never") != 0)
		relids = catalog_export_relations(pipeline->tables);
	foreach(lc, relids)
		add_known(copy, known, lfirst_oid(lc), state->tables != NIL && catalog_export_means(state->tables, lfirst_oid(lc)));
	foreach(lc, known)
	{
		CatalogExportTable *row = lfirst(lc);

		if (row->state == CATALOG_EXPORT_REMOVED || catalog_export_means(pipeline->tables, row->relid))
			continue;
		row->state = CATALOG_EXPORT_REMOVED;
		catalog_export_table_update(row);
	}
	catalog_export_set_tables(pipeline->id, pipeline->tables);
}

/* ---- at the start ---- */

static void
check_last_chunk(const ExportCopy *copy, const CatalogExport *state, int32 known)
{
	if (!copy->sink->keeps_position || (copy->durable.chunk >= state->last_chunk && copy->durable.chunk <= known))
		return;
	ereport(ERROR,
			(errcode(CDC_ERRCODE_POSITION_LOST),
			 errmsg("the sink of pipeline \"%s\" has other chunks of its tables than were written", copy->worker->pipeline->name),
			 errdetail("It has %d, and the pipeline knows of at least %d and at most %d.", copy->durable.chunk, state->last_chunk, known),
			 errhint("Sink and database are of different times. Put back what was there, or drop the pipeline and make it anew.")));
}

/* Read what is known, without the chunks that the sink has not got. In the open transaction. */
static void
load(ExportCopy *copy, const CatalogExport *state)
{
	List	   *chunks = catalog_export_chunk_list(copy->worker->pipeline_id);
	int32		known = chunks == NIL ? state->last_chunk : ((CatalogExportChunk *) llast(chunks))->chunk_no;
	ListCell   *lc;

	check_last_chunk(copy, state, known);
	catalog_dead_letter_delete_copied(copy->worker->pipeline_id, copy->durable.chunk);
	foreach(lc, catalog_export_table_list(copy->worker->pipeline_id))
	{
		const CatalogExportTable *row = lfirst(lc);

		/* changes of a stopped one are left out, so nothing is copied; what it got stays */
		if (row->state != CATALOG_EXPORT_REMOVED && row->state != CATALOG_EXPORT_STOPPED)
			set_last_key(add_table(copy, row), row->signature, row->last_key);
	}
	foreach(lc, chunks)
	{
		const CatalogExportChunk *row = lfirst(lc);

		if (row->chunk_no > copy->durable.chunk)
			catalog_export_chunk_delete(row->pipeline_id, row->chunk_no);
		else
			remember_chunk(copy, table_by_id(copy, row->table_id), row);
	}
}

/* Let the decoding know what is copied of a table. False: with a key or name that it has no longer. In the open transaction. */
static bool
restore_table(ExportCopy *copy, CopyTable *table)
{
	bool		fits = true;
	ListCell   *lc;

	if (table->row.signature != NULL)
	{
		DecodeChunk folded = {.signature = table->row.signature,.last_key = table->row.last_key};

		fits = decode_chunk_take(copy->decode, table->stream, &folded, false);
	}
	foreach(lc, copy->chunks)
	{
		CopyChunk  *chunk = lfirst(lc);
		DecodeChunk taken = {.signature = chunk->row.signature,.last_key = chunk->row.last_key,.snapshot = chunk->row.snapshot,.lsn = chunk->row.lsn};

		if (chunk->table != table)
			continue;
		switch (chunk->row.kind)
		{
			case CATALOG_EXPORT_RANGE:
			case CATALOG_EXPORT_ROW:
				fits = fits && decode_chunk_take(copy->decode, table->stream, &taken, chunk->row.kind == CATALOG_EXPORT_ROW);
				break;
			case CATALOG_EXPORT_ANEW:
			case CATALOG_EXPORT_GONE:
				decode_copy_begin_anew(copy->decode, table->stream);
				table->stream->gone = chunk->row.kind == CATALOG_EXPORT_GONE;
				table->copies_begun = chunk->row.copies_begun;
				fits = true;
				break;
			case CATALOG_EXPORT_LETTERS:
				break;
		}
	}
	return fits;
}

static bool
has_chunks(const ExportCopy *copy, const CopyTable *table)
{
	ListCell   *lc;

	foreach(lc, copy->chunks)
	{
		if (((CopyChunk *) lfirst(lc))->table == table)
			return true;
	}
	return false;
}

static void
restore(ExportCopy *copy)
{
	ListCell   *lc;

	foreach(lc, copy->tables)
	{
		CopyTable  *table = lfirst(lc);

		if (table->row.state == CATALOG_EXPORT_STREAMING && !has_chunks(copy, table))
		{
			/* one that is no more need not be known */
			if (get_rel_name(table->row.relid) == NULL)
				catalog_export_table_delete(table->row.pipeline_id, table->row.table_id);
			continue;
		}
		watch_table(copy, table);
		if (restore_table(copy, table) && table->copies_begun >= table->row.copies_asked)
			continue;
		/* how it is shipped is known when the decoding has started: see note_anew */
		decode_copy_begin_anew(copy->decode, table->stream);
		table->stream->begins_anew = table->stream->to_tell = true;
	}
}

ExportCopy *
export_copy_open(Worker *worker, const CatalogExport *state, CdcSink *sink, const CdcSinkPosition *durable)
{
	ExportCopy *copy = palloc0(sizeof(ExportCopy));
	bool		matched = same_patterns(state->tables, worker->pipeline->tables);

	copy->worker = worker;
	copy->cxt = CurrentMemoryContext;
	copy->sink = sink;
	copy->durable = *durable;
	copy->last_chunk = durable->chunk;
	copy->parallel.worker = worker;
	copy->parallel.sink = sink;
	copy->parallel.workers = catalog_export_int(worker->pipeline, "snapshot_workers");
	copy->parallel.max_bytes = (uint64) catalog_export_int(worker->pipeline, "snapshot_chunk_kb") * 1024;
	copy->parallel.max_rows = (uint64) catalog_export_int(worker->pipeline, "snapshot_chunk_rows");
	copy->parallel.max_ms = CHUNK_MAX_MS;
	copy->has_standbys = catalog_export_bool(worker->pipeline, "failover");
	copy->decode = decode_copy_create(durable->lsn);
	decode_copy_note_running(copy->decode);

	/* a table of which the stream has nothing to tell must be visible before it is looked for */
	while (!matched && !decode_copy_is_settled(copy->decode, SETTLE_MS))
		worker_check_interrupts();

	/* whatever is asked for from now on is taken up by the next worker */
	worker->slot->join_wanted = false;
	export_transaction_begin(true);
	if (!matched)
		match_tables(copy, state);
	load(copy, state);
	catalog_pipeline_set_tables_done(worker->pipeline_id, worker->pipeline->tables_asked);
	export_transaction_end(true, copy->cxt);

	export_transaction_begin(true);
	restore(copy);
	export_transaction_end(false, copy->cxt);
	copy->written = XactLastCommitEnd;
	decode_copy_use(copy->decode);
	return copy;
}

void
export_copy_use_letters(ExportCopy *copy, ExportLetters *letters)
{
	copy->letters = letters;
}

bool
export_copy_is_busy(const ExportCopy *copy)
{
	return copy->nstreams > 0 || copy->chunks != NIL;
}

bool
export_copy_is_done(const ExportCopy *copy)
{
	ListCell   *lc;

	foreach(lc, copy->chunks)
	{
		if (((CopyChunk *) lfirst(lc))->row.kind != CATALOG_EXPORT_LETTERS)
			return false;
	}
	return copy->nstreams == 0;
}

int32
export_copy_add_letters(ExportCopy *copy, XLogRecPtr position)
{
	CatalogExportChunk row = {.kind = CATALOG_EXPORT_LETTERS,.lsn = position};

	write_chunk(copy, NULL, &row);
	return copy->last_chunk;
}

bool
export_copy_streams(const ExportCopy *copy, Oid relid)
{
	ListCell   *lc;

	foreach(lc, copy->tables)
	{
		const CopyTable *table = lfirst(lc);

		if (table->row.relid == relid && table->stream != NULL)
			return false;
	}
	foreach(lc, catalog_export_table_list(copy->worker->pipeline_id))
	{
		const CatalogExportTable *row = lfirst(lc);

		if (row->relid == relid && row->state != CATALOG_EXPORT_STREAMING)
			return false;
	}
	return true;
}

DecodeCopy *
export_copy_decode(ExportCopy *copy)
{
	return copy->decode;
}

/* ---- chunks ---- */

typedef struct ChunkWriter
{
	ExportCopy *copy;
	uint64		rows;
	uint64		bytes_before;
	TimestampTz began_at;
} ChunkWriter;

/* DecodeChunkRow */
static bool
write_row(void *arg, const CdcRecord *record)
{
	ChunkWriter *writer = arg;
	ExportCopy *copy = writer->copy;

	worker_check_interrupts();
	cdc_sink_write(copy->sink, record);
	writer->rows++;
	return writer->rows < copy->parallel.max_rows && copy->sink->bytes - writer->bytes_before < copy->parallel.max_bytes &&
		!TimestampDifferenceExceeds(writer->began_at, GetCurrentTimestamp(), CHUNK_MAX_MS);
}

/* Read the next chunk of a table into the sink; false when that is not possible now. */
static bool
copy_chunk(ExportCopy *copy, CopyTable *table)
{
	ChunkWriter writer = {.copy = copy,.bytes_before = copy->sink->bytes,.began_at = GetCurrentTimestamp()};
	bool		is_row = table->stream->again != NIL;
	CatalogExportChunk row = {.kind = is_row ? CATALOG_EXPORT_ROW : CATALOG_EXPORT_RANGE};
	DecodeChunkShare share;
	bool		is_shared = !is_row && export_copy_parallel_plan(&copy->parallel, &table->rate, &share);
	DecodeChunk chunk;
	DecodeChunkResult result;

	export_transaction_begin(false);
	result = decode_chunk_read(copy->decode, table->stream, write_row, &writer, is_shared ? &share : NULL, &chunk);
	/* whoever writes a row that may be stored apart has one */
	PushActiveSnapshot(GetTransactionSnapshot());
	switch (result)
	{
		case DECODE_CHUNK_BUSY:
			break;
		case DECODE_CHUNK_READ:
			if (!decode_chunk_take(copy->decode, table->stream, &chunk, is_row))
				elog(ERROR, "the key of table %u changed under a lock", table->row.relid);
			row.signature = chunk.signature;
			row.last_key = chunk.last_key;
			row.snapshot = chunk.snapshot;
			row.lsn = chunk.lsn;
			row.rows = (int64) chunk.rows;
			write_chunk(copy, table, &row);
			export_letters_write_copied(copy->letters, row.chunk_no);
			break;
		case DECODE_CHUNK_CHANGED:
			write_anew(copy, table);
			note_special(copy, table, CATALOG_EXPORT_ANEW);
			break;
		case DECODE_CHUNK_GONE:
			/* half a table is of no use to anybody */
			if (table->stream->signature != NULL)
				write_anew(copy, table);
			note_special(copy, table, CATALOG_EXPORT_GONE);
			break;
	}
	export_transaction_end(false, copy->cxt);
	if (result == DECODE_CHUNK_BUSY)
		return false;
	copy->written = XactLastCommitEnd;
	copy->chunk_ended_at = GetCurrentTimestamp();
	copy->chunk_took_us = copy->chunk_ended_at - writer.began_at;
	if (result == DECODE_CHUNK_READ && !is_row)
		table->rate = (ExportCopyRate) {.rows = chunk.rows,.bytes = copy->sink->bytes - writer.bytes_before,.took_us = copy->chunk_took_us};
	return true;
}

/* The stream has made copies begin anew, or the start of the worker has. */
static void
note_anew(ExportCopy *copy)
{
	ListCell   *lc;

	foreach(lc, copy->tables)
	{
		CopyTable  *table = lfirst(lc);

		if (table->stream == NULL || !table->stream->begins_anew)
			continue;
		export_transaction_begin(true);
		if (table->stream->to_tell)
			write_anew(copy, table);
		note_special(copy, table, CATALOG_EXPORT_ANEW);
		export_transaction_end(false, copy->cxt);
		copy->written = XactLastCommitEnd;
	}
}

/* Of rows that have to be read once more: one each. False when one cannot be read now. */
static bool
copy_again(ExportCopy *copy)
{
	ListCell   *lc;

	foreach(lc, copy->tables)
	{
		CopyTable  *table = lfirst(lc);

		while (table->stream != NULL && table->stream->again != NIL)
		{
			if (!decode_copy_is_settled(copy->decode, SETTLE_MS) || !copy_chunk(copy, table))
				return false;
		}
	}
	return true;
}

/* ---- chunks that count for good ---- */

/* Does a chunk count for good: has the sink got it, and has the stream passed it? */
static bool
counts_for_good(const ExportCopy *copy, const CopyChunk *chunk)
{
	return chunk->row.chunk_no <= copy->durable.chunk && chunk->row.lsn <= copy->durable.lsn;
}

/* Add a chunk to its table. */
static void
fold(ExportCopy *copy, const CopyChunk *chunk)
{
	CopyTable  *table = chunk->table;
	CatalogExportTable *row = &table->row;

	switch (chunk->row.kind)
	{
		case CATALOG_EXPORT_RANGE:
			set_last_key(table, chunk->row.signature, chunk->row.last_key);
			row->rows_copied += chunk->row.rows;
			row->chunks++;
			if (chunk->row.last_key == NIL)
			{
				row->state = CATALOG_EXPORT_STREAMING;
				row->finished_at = GetCurrentTimestamp();
			}
			break;
		case CATALOG_EXPORT_ROW:
			row->rows_copied += chunk->row.rows;
			break;
		case CATALOG_EXPORT_ANEW:
			set_last_key(table, NULL, NIL);
			row->state = CATALOG_EXPORT_SNAPSHOT;
			row->rows_copied = 0;
			row->chunks = 0;
			row->copies_begun = chunk->row.copies_begun;
			row->started_at = GetCurrentTimestamp();
			row->finished_at = 0;
			break;
		case CATALOG_EXPORT_GONE:
			unwatch_table(copy, table);
			break;
		case CATALOG_EXPORT_LETTERS:
			break;
	}
}

/* Write a table's row after that. */
static void
write_table(ExportCopy *copy, CopyTable *table)
{
	if (table->stream == NULL)
	{
		catalog_export_table_delete(table->row.pipeline_id, table->row.table_id);
		copy->tables = list_delete_ptr(copy->tables, table);
		return;
	}
	if (strcmp(table->row.schema, table->stream->schema) != 0 || strcmp(table->row.name, table->stream->name) != 0)
	{
		table->row.schema = MemoryContextStrdup(copy->cxt, table->stream->schema);
		table->row.name = MemoryContextStrdup(copy->cxt, table->stream->name);
	}
	catalog_export_table_update(&table->row);
	if (table->row.state == CATALOG_EXPORT_STREAMING && table->stream->complete && table->stream->chunks == NIL)
		unwatch_table(copy, table);
}

/* Now and then, or when there is nothing else: add up what counts for good. */
static void
fold_chunks(ExportCopy *copy)
{
	List	   *touched = NIL;
	ListCell   *lc;

	if (copy->chunks == NIL || !counts_for_good(copy, linitial(copy->chunks)) ||
		(!counts_for_good(copy, llast(copy->chunks)) && !TimestampDifferenceExceeds(copy->folded_at, GetCurrentTimestamp(), FOLD_MS)))
		return;
	export_transaction_begin(true);
	while (copy->chunks != NIL && counts_for_good(copy, linitial(copy->chunks)))
	{
		CopyChunk  *chunk = linitial(copy->chunks);

		if (chunk->table != NULL)
		{
			if (chunk->table->stream != NULL)
				decode_copy_passed(copy->decode, chunk->table->stream, copy->durable.lsn);
			fold(copy, chunk);
			touched = list_append_unique_ptr(touched, chunk->table);
		}
		catalog_export_chunk_delete(chunk->row.pipeline_id, chunk->row.chunk_no);
		if (list_length(copy->chunks) == 1 || !counts_for_good(copy, lsecond(copy->chunks)))
			catalog_export_set_last_chunk(chunk->row.pipeline_id, chunk->row.chunk_no);
		MemoryContextSwitchTo(copy->cxt);
		copy->chunks = list_delete_first(copy->chunks);
		MemoryContextDelete(chunk->cxt);
	}
	foreach(lc, touched)
		write_table(copy, lfirst(lc));
	export_transaction_end(false, copy->cxt);
	copy->folded_at = GetCurrentTimestamp();
}

/* ---- steps ---- */

bool
export_copy_step(ExportCopy *copy, XLogRecPtr position, bool has_more)
{
	TimestampTz now = GetCurrentTimestamp();
	int			n;
	ListCell   *lc;

	if (!export_copy_is_busy(copy))
		return false;
	note_anew(copy);
	fold_chunks(copy);
	foreach(lc, copy->tables)
	{
		CopyTable  *table = lfirst(lc);

		if (table->stream != NULL)
			decode_copy_passed(copy->decode, table->stream, position);
	}
	if (now < copy->retry_at || list_length(copy->chunks) >= CHUNKS_AHEAD_MAX ||
		(has_more && now < copy->chunk_ended_at + copy->chunk_took_us * STREAM_SHARE))
		return false;

	n = list_length(copy->tables);
	for (int i = 0; i < n; i++)
	{
		CopyTable  *table = list_nth(copy->tables, (copy->next + i) % n);

		if (table->stream == NULL || table->stream->complete || table->stream->gone)
			continue;
		if (!decode_copy_is_settled(copy->decode, SETTLE_MS))
			break;
		if (!copy_chunk(copy, table))
			continue;
		copy->next = (copy->next + i) % n;
		return true;
	}
	copy->retry_at = GetCurrentTimestamp() + RETRY_MS * INT64CONST(1000);
	return false;
}

/* ---- flushes ---- */

bool
export_copy_wants_flush(const ExportCopy *copy, XLogRecPtr position)
{
	ListCell   *lc;

	foreach(lc, copy->chunks)
	{
		const CopyChunk *chunk = lfirst(lc);

		if (!counts_for_good(copy, chunk))
			return chunk->row.lsn <= position;
	}
	return false;
}

bool
export_copy_before_flush(ExportCopy *copy, XLogRecPtr decoded, CdcSinkPosition *position)
{
	bool		ready;

	note_anew(copy);
	ready = copy_again(copy);
	if (!XLogRecPtrIsInvalid(copy->written))
		XLogFlush(copy->written);
	/* what standbys with a copy of the slot do not have is not decoded either */
	if (!ready || (copy->has_standbys && copy->written > decoded))
	{
		(void) util_wait(PGINVALID_SOCKET, AGAIN_MS, UTIL_WAIT_SNAPSHOT);
		return false;
	}
	copy->written = InvalidXLogRecPtr;
	position->chunk = copy->last_chunk;
	return true;
}

void
export_copy_wrote(ExportCopy *copy, XLogRecPtr end)
{
	copy->written = Max(copy->written, end);
}

void
export_copy_after_flush(ExportCopy *copy, const CdcSinkPosition *durable)
{
	copy->durable = *durable;
	fold_chunks(copy);
}
