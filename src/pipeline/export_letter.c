/*-------------------------------------------------------------------------
 *
 * export_letter.c
 *	  Dead letters of an outgoing pipeline: changes that could not be shipped,
 *	  and are kept.
 *
 * NOTES
 *	  A letter is made while its transaction is decoded, when nothing can be
 *	  written. So it waits in memory, and is written, durable, before the sink is
 *	  flushed or the slot hears of anything behind it. When the worker dies in
 *	  between, the transaction is decoded once more: letters of transactions that
 *	  come again are removed at the start, as they come again too.
 *
 *	  Later changes of the same rows that are shipped make letters moot
 *	  (catalog_dead_letter.h). That waits, and is written, together with the
 *	  letters, in the order in which it came. Only tables with open letters are
 *	  followed, and of these only keys that a bitmap knows.
 *
 *	  Letters of a copy's chunk are written together with its row in the ledger,
 *	  and have its number as action: what becomes of the chunk becomes of them.
 *
 *	  In the table a letter's position is that of the change, as the file of the
 *	  log and the place in it, and the commit's LSN stands where a source in the
 *	  MySQL family has a GTID.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/datum.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "catalog/catalog_dead_letter.h"
#include "catalog/catalog_export.h"
#include "catalog/catalog_export_copy.h"
#include "compat/pg_compat.h"
#include "pipeline/export_letter.h"
#include "pipeline/export_place.h"
#include "pipeline/export_transaction.h"
#include "util/util_error.h"

/* Letters of one transaction wait in memory: more than this is more than single rows that do not fit. */
#define KEPT_MAX_BYTES (32 * 1024 * 1024)

/* A chunk of a copy ends with more than this. */
#define CHUNK_MAX_BYTES (8 * 1024 * 1024)

/* So many old ones are removed when others are written. */
#define PRUNE_MAX 10000

/* A letter, or what makes letters moot. */
typedef struct LetterItem
{
	CatalogDeadLetter *letter;	/* NULL: the latter */
	int32		table_id;
	bytea	   *key;			/* NULL: all of the table */
	bool		is_row;			/* the key is a whole row, of which one has gone */
	List	   *told;			/* columns, char *; NIL: all */
	XLogRecPtr	txn_end;		/* Invalid: a row of a copy */
} LetterItem;

typedef struct Queue
{
	MemoryContext context;		/* of all this */
	List	   *items;			/* LetterItem *, as they came */
	HTAB	   *moot;			/* MootKey: letters with it that came before are moot; NULL: none */
} Queue;

typedef struct MootKey
{
	int32		table_id;
	char		digest[CATALOG_LETTER_KEY_LEN];
} MootKey;

struct ExportLetters
{
	const Worker *worker;
	Queue		waiting;
	Queue		copied;			/* of the chunk that is read */
	MemoryContext context;		/* of the rest */
	List	   *tables;			/* that have open letters, as OIDs; some may have none any more */
	uint8	   *bits;			/* their keys */
	TimeLineID	timeline;
	int64		count;			/* in the table, about */
	int			max_days;
	int			max_rows;
};

static void
open_queue(Queue *queue)
{
	queue->context = AllocSetContextCreate(CurrentMemoryContext, "cdc dead letters", ALLOCSET_DEFAULT_SIZES);
}

static void
empty_queue(Queue *queue)
{
	queue->items = NIL;
	queue->moot = NULL;
	MemoryContextReset(queue->context);
}

/* CatalogLetterKey */
static void
add_key(void *arg, int32 table_id, const bytea *key)
{
	ExportLetters *letters = arg;

	catalog_letter_bits_add(letters->bits, table_id, key);
}

/* A table has letters from now on. */
static void
add_table(ExportLetters *letters, Oid relid)
{
	MemoryContext old_context = MemoryContextSwitchTo(letters->context);

	letters->tables = list_append_unique_oid(letters->tables, relid);
	MemoryContextSwitchTo(old_context);
}

/* Which tables have open letters, with which keys? Those that the pipeline means no longer are given up. In the open transaction. */
static void
look_at_tables(ExportLetters *letters)
{
	const Worker *worker = letters->worker;
	ListCell   *lc;

	foreach(lc, catalog_dead_letter_tables(worker->pipeline_id))
	{
		Oid			relid = lfirst_oid(lc);
		int64		last = 0;

		if (catalog_export_means(worker->pipeline->tables, relid))
		{
			add_table(letters, relid);
			(void) catalog_dead_letter_keys(worker->pipeline_id, (int32) relid, &last, add_key, letters);
		}
		else
			(void) catalog_dead_letter_supersede_table(worker->pipeline_id, (int32) relid, "its table is no longer one of the pipeline, or is gone");
	}
}

ExportLetters *
export_letters_open(const Worker *worker, XLogRecPtr start, TimeLineID timeline)
{
	ExportLetters *letters = palloc0(sizeof(ExportLetters));

	letters->worker = worker;
	letters->context = CurrentMemoryContext;
	open_queue(&letters->waiting);
	open_queue(&letters->copied);
	letters->timeline = timeline;
	letters->max_days = catalog_export_int(worker->pipeline, "dead_letter_max_days");
	letters->max_rows = catalog_export_int(worker->pipeline, "dead_letter_max_rows");
	letters->bits = catalog_letter_bits_make();
	export_transaction_begin(true);
	catalog_dead_letter_delete_from(worker->pipeline_id, start);
	CommandCounterIncrement();
	look_at_tables(letters);
	letters->count = catalog_dead_letter_count(worker->pipeline_id);
	export_transaction_end(true, worker->cxt);
	return letters;
}

/* ---- what comes ---- */

static void
check_size(const Queue *queue, const char *schema, const char *name)
{
	if (MemoryContextMemAllocated(queue->context, true) > KEPT_MAX_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many changes of one transaction would become dead letters"),
				 errdetail("They have more than %d MB; the last one is of table \"%s.%s\".", KEPT_MAX_BYTES / 1024 / 1024, schema, name)));
}

static Datum
copy_image(Datum image)
{
	return image == (Datum) 0 ? (Datum) 0 : datumCopy(image, false, -1);
}

static bytea *
copy_key(const bytea *key)
{
	return key == NULL ? NULL : (bytea *) DatumGetPointer(datumCopy(PointerGetDatum(key), false, -1));
}

static MootKey
moot_key(int32 table_id, const bytea *key)
{
	MootKey		result = {.table_id = table_id};

	memcpy(result.digest, VARDATA_ANY(key), sizeof(result.digest));
	return result;
}

/* A letter came: what made former ones of its keys moot does not count for it. */
static void
note_key(ExportLetters *letters, Queue *queue, int32 table_id, const bytea *key)
{
	MootKey		moot;

	if (key == NULL)
		return;
	moot = moot_key(table_id, key);
	catalog_letter_bits_add(letters->bits, table_id, key);
	if (queue->moot != NULL)
		(void) hash_search(queue->moot, &moot, HASH_REMOVE, NULL);
}

bool
export_letters_keep(ExportLetters *letters, const DecodeLetter *from)
{
	static const char *const operations[] = {
		[CDC_OUT_INSERT] = "insert",[CDC_OUT_UPDATE] = "update",[CDC_OUT_DELETE] = "delete",[CDC_OUT_READ] = "snapshot"
	};
	bool		is_copied = from->op == CDC_OUT_READ;
	Queue	   *queue = is_copied ? &letters->copied : &letters->waiting;
	MemoryContext old_context;
	CatalogDeadLetter *letter;
	LetterItem	   *item;

	check_size(queue, from->schema, from->name);
	old_context = MemoryContextSwitchTo(queue->context);
	letter = palloc0(sizeof(CatalogDeadLetter));
	letter->pipeline_id = letters->worker->pipeline_id;
	letter->table_id = (int32) from->relid;
	letter->source_schema = pstrdup(from->schema);
	letter->source_table = pstrdup(from->name);
	export_log_place(from->lsn, letters->timeline, &letter->position);
	if (!is_copied)
		letter->gtid = psprintf("%X/%X", LSN_FORMAT_ARGS(from->commit_lsn));
	letter->action = from->action;
	letter->operation = operations[from->op];
	letter->before = copy_image(from->before);
	letter->after = copy_image(from->after);
	letter->old_key = copy_key(from->old_key);
	letter->new_key = copy_key(from->new_key);
	letter->shape = copy_key(from->shape);
	letter->error = *util_error_info(from->error);
	letter->changed_at = from->time_us == 0 ? 0 : from->time_us - EXPORT_UNIX_TO_POSTGRES_US;
	item = palloc0(sizeof(LetterItem));
	item->letter = letter;
	queue->items = lappend(queue->items, item);
	MemoryContextSwitchTo(old_context);
	note_key(letters, queue, letter->table_id, letter->old_key);
	note_key(letters, queue, letter->table_id, letter->new_key);
	add_table(letters, from->relid);
	return !is_copied || MemoryContextMemAllocated(queue->context, true) < CHUNK_MAX_BYTES;
}

bool
export_letters_follow(const ExportLetters *letters, Oid relid)
{
	return letters->tables != NIL && list_member_oid(letters->tables, relid);
}

static LetterItem *
add_moot(Queue *queue, Oid relid, XLogRecPtr txn_end)
{
	LetterItem	   *item = MemoryContextAllocZero(queue->context, sizeof(LetterItem));
	MemoryContext old_context = MemoryContextSwitchTo(queue->context);

	check_size(queue, "", "");
	item->table_id = (int32) relid;
	item->txn_end = txn_end;
	queue->items = lappend(queue->items, item);
	MemoryContextSwitchTo(old_context);
	return item;
}

/* Is it new that letters with that key are moot? One that is told again and again waits once. */
static bool
is_news(Queue *queue, int32 table_id, const bytea *key)
{
	MootKey		moot = moot_key(table_id, key);
	HASHCTL		ctl = {.keysize = sizeof(MootKey),.entrysize = sizeof(MootKey),.hcxt = queue->context};
	bool		found;

	if (queue->moot == NULL)
		queue->moot = hash_create("cdc moot letters", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	(void) hash_search(queue->moot, &moot, HASH_ENTER, &found);
	return !found;
}

static void
add_moot_key(ExportLetters *letters, Queue *queue, const DecodeShipped *shipped, const bytea *key, const List *told)
{
	MemoryContext old_context;
	LetterItem	   *item;
	ListCell   *lc;

	if (key == NULL || !catalog_letter_bits_may_have(letters->bits, (int32) shipped->relid, key))
		return;
	if (shipped->has_key && told == NIL && !is_news(queue, (int32) shipped->relid, key))
		return;
	item = add_moot(queue, shipped->relid, shipped->txn_end);
	old_context = MemoryContextSwitchTo(queue->context);
	item->key = copy_key(key);
	item->is_row = !shipped->has_key;
	foreach(lc, told)
		item->told = lappend(item->told, pstrdup(lfirst(lc)));
	MemoryContextSwitchTo(old_context);
}

void
export_letters_shipped(ExportLetters *letters, const DecodeShipped *shipped)
{
	Queue	   *queue = XLogRecPtrIsInvalid(shipped->txn_end) ? &letters->copied : &letters->waiting;

	if (shipped->all)
	{
		(void) add_moot(queue, shipped->relid, shipped->txn_end);
		return;
	}
	add_moot_key(letters, queue, shipped, shipped->old_key, NIL);
	/* without a key a row that is written is one more */
	if (shipped->has_key)
		add_moot_key(letters, queue, shipped, shipped->new_key, shipped->told);
}

/* Remove what is too old, or too much. In the open transaction. */
static void
prune(ExportLetters *letters)
{
	CatalogLetterPrune removed = {0};
	TimestampTz before = letters->max_days == 0 ? 0 : GetCurrentTimestamp() - letters->max_days * USECS_PER_DAY;

	catalog_dead_letter_prune(letters->worker->pipeline_id, before, letters->max_rows == 0 ? 0 : letters->count - letters->max_rows,
							  PRUNE_MAX, &removed);
	letters->count -= removed.settled + removed.open;
	if (removed.open > 0)
		ereport(LOG,
				(errmsg("pipeline \"%s\" has removed " INT64_FORMAT " dead letters", letters->worker->pipeline->name, removed.open),
				 errdetail("They were older than \"dead_letter_max_days\", or more than \"dead_letter_max_rows\".")));
}

static void
write_moot(const ExportLetters *letters, const LetterItem *item)
{
	int32		pipeline_id = letters->worker->pipeline_id;
	const char *reason = XLogRecPtrIsInvalid(item->txn_end) ? "its row was copied later"
		: psprintf("a later change of its row was shipped, of the transaction that ends at %X/%X", LSN_FORMAT_ARGS(item->txn_end));

	if (item->key == NULL)
		(void) catalog_dead_letter_supersede_table(pipeline_id, item->table_id, "its table was emptied, or is copied anew");
	else if (item->is_row)
		(void) catalog_dead_letter_take_rows(pipeline_id, item->table_id, item->key, 1, reason);
	else
		(void) catalog_dead_letter_supersede(pipeline_id, item->table_id, item->key, item->told, PG_INT64_MAX, reason);
}

/* Write down what waits. In the open transaction. */
static void
write_queue(ExportLetters *letters, Queue *queue)
{
	ListCell   *lc;

	if (queue->items == NIL)
		return;
	foreach(lc, queue->items)
	{
		const LetterItem *item = lfirst(lc);

		if (item->letter == NULL)
			write_moot(letters, item);
		else
		{
			catalog_dead_letter_insert(item->letter);
			letters->count++;
		}
		CommandCounterIncrement();
	}
	prune(letters);
	empty_queue(queue);
}

XLogRecPtr
export_letters_write(ExportLetters *letters)
{
	if (letters->waiting.items == NIL)
		return InvalidXLogRecPtr;
	export_transaction_begin(true);
	write_queue(letters, &letters->waiting);
	export_transaction_end(true, letters->worker->cxt);
	return XactLastCommitEnd;
}

void
export_letters_write_waiting(ExportLetters *letters)
{
	write_queue(letters, &letters->waiting);
}

void
export_letters_write_copied(ExportLetters *letters, int32 chunk_no)
{
	ListCell   *lc;

	/* what the stream had before comes before */
	write_queue(letters, &letters->waiting);
	foreach(lc, letters->copied.items)
	{
		LetterItem	   *item = lfirst(lc);

		if (item->letter != NULL)
			item->letter->action = chunk_no;
	}
	write_queue(letters, &letters->copied);
}
