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
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "catalog/catalog_dead_letter.h"
#include "catalog/catalog_export.h"
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

struct ExportLetters
{
	const Worker *worker;
	MemoryContext context;		/* of those that wait */
	List	   *waiting;		/* CatalogDeadLetter * */
	MemoryContext copied_context;
	List	   *copied;			/* the same, of the chunk that is read */
	TimeLineID	timeline;
	int64		count;			/* in the table, about */
	int			max_days;
	int			max_rows;
};

ExportLetters *
export_letters_open(const Worker *worker, XLogRecPtr start, TimeLineID timeline)
{
	ExportLetters *letters = palloc0(sizeof(ExportLetters));

	letters->worker = worker;
	letters->context = AllocSetContextCreate(CurrentMemoryContext, "cdc dead letters", ALLOCSET_DEFAULT_SIZES);
	letters->copied_context = AllocSetContextCreate(CurrentMemoryContext, "cdc dead letters of a chunk", ALLOCSET_DEFAULT_SIZES);
	letters->timeline = timeline;
	letters->max_days = catalog_export_int(worker->pipeline, "dead_letter_max_days");
	letters->max_rows = catalog_export_int(worker->pipeline, "dead_letter_max_rows");
	export_transaction_begin(true);
	catalog_dead_letter_delete_from(worker->pipeline_id, start);
	letters->count = catalog_dead_letter_count(worker->pipeline_id);
	export_transaction_end(true, worker->cxt);
	return catalog_pipeline_on_error(worker->pipeline) == CATALOG_ON_ERROR_DEAD_LETTER ? letters : NULL;
}

static Datum
copy_image(Datum image)
{
	return image == (Datum) 0 ? (Datum) 0 : datumCopy(image, false, -1);
}

bool
export_letters_keep(ExportLetters *letters, const DecodeLetter *from)
{
	static const char *const operations[] = {
		[CDC_OUT_INSERT] = "insert",[CDC_OUT_UPDATE] = "update",[CDC_OUT_DELETE] = "delete",[CDC_OUT_READ] = "snapshot"
	};
	bool		is_copied = from->op == CDC_OUT_READ;
	MemoryContext context = is_copied ? letters->copied_context : letters->context;
	MemoryContext old_context;
	CatalogDeadLetter *letter;

	if (MemoryContextMemAllocated(context, true) > KEPT_MAX_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many changes of one transaction would become dead letters"),
				 errdetail("They have more than %d MB; the last one is of table \"%s.%s\".", KEPT_MAX_BYTES / 1024 / 1024, from->schema, from->name)));
	old_context = MemoryContextSwitchTo(context);
	letter = palloc0(sizeof(CatalogDeadLetter));
	letter->pipeline_id = letters->worker->pipeline_id;
	letter->source_schema = pstrdup(from->schema);
	letter->source_table = pstrdup(from->name);
	export_log_place(from->lsn, letters->timeline, &letter->position);
	if (!is_copied)
		letter->gtid = psprintf("%X/%X", LSN_FORMAT_ARGS(from->commit_lsn));
	letter->action = from->action;
	letter->operation = operations[from->op];
	letter->before = copy_image(from->before);
	letter->after = copy_image(from->after);
	letter->error = *util_error_info(from->error);
	letter->changed_at = from->time_us == 0 ? 0 : from->time_us - EXPORT_UNIX_TO_POSTGRES_US;
	if (is_copied)
		letters->copied = lappend(letters->copied, letter);
	else
		letters->waiting = lappend(letters->waiting, letter);
	MemoryContextSwitchTo(old_context);
	return !is_copied || MemoryContextMemAllocated(context, true) < CHUNK_MAX_BYTES;
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

/* Write down those of a list, which goes with its context. In the open transaction. */
static void
write_list(ExportLetters *letters, List **list, MemoryContext context)
{
	ListCell   *lc;

	foreach(lc, *list)
		catalog_dead_letter_insert(lfirst(lc));
	letters->count += list_length(*list);
	CommandCounterIncrement();
	prune(letters);
	*list = NIL;
	MemoryContextReset(context);
}

XLogRecPtr
export_letters_write(ExportLetters *letters)
{
	if (letters == NULL || letters->waiting == NIL)
		return InvalidXLogRecPtr;
	export_transaction_begin(true);
	write_list(letters, &letters->waiting, letters->context);
	export_transaction_end(true, letters->worker->cxt);
	return XactLastCommitEnd;
}

void
export_letters_write_copied(ExportLetters *letters, int32 chunk_no)
{
	ListCell   *lc;

	if (letters == NULL || letters->copied == NIL)
		return;
	foreach(lc, letters->copied)
		((CatalogDeadLetter *) lfirst(lc))->action = chunk_no;
	write_list(letters, &letters->copied, letters->copied_context);
}
