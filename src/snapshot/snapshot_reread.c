/*-------------------------------------------------------------------------
 *
 * snapshot_reread.c
 *	  Reads rows again that the stream changed in part before they were there.
 *
 * NOTES
 *	  The stream has listed their keys, with the last such change of each
 *	  (apply_reread.c). For some of them at a time:
 *
 *	  1. wait until the source shows these changes: a mark of the start mark's kind
 *	     contains them;
 *	  2. read the rows in one SELECT, then where the log ends: the entry's mark;
 *	  3. in one transaction, under the table's ShareLock, write every row whose
 *	     entry is still the one that was read for (else a later change in part has
 *	     come, which the row may not show), and note the mark in the entry. A row
 *	     that is not there any more was removed by a change that is still to come,
 *	     or the key is another one now: its key stays noted as one without a row.
 *
 *	  A row that does not fit becomes a dead letter, if the pipeline wants that; its
 *	  entry is dealt with as if it was written.
 *
 *	  A table is handed over when no entry is left to be read and the stream has
 *	  passed all their marks. Only one worker reads for a table, the one that has
 *	  its plan's lock.
 *
 *	  One key: change in part at 10 (row not there: listed at 10) -- mark shows 10
 *	  -- SELECT (sees up to 14) -- log ends at 15 -- row written, mark 15 -- the
 *	  stream's changes 11 to 15 set columns to what they are -- 15 passed.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "lib/stringinfo.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "catalog/catalog_lock.h"
#include "heap/heap_part.h"
#include "mysql/mysql_text.h"
#include "snapshot/snapshot_copy.h"
#include "util/util_subtransaction.h"
#include "util/util_wait.h"

/* Keys that are asked for at a time, and the most text of their rows that is kept. */
#define KEYS_AT_ONCE 100
#define BYTES_MAX (8 * 1024 * 1024)

/* What was read for some entries. */
typedef struct Answer
{
	CopyTable  *table;
	List	   *entries;		/* of CatalogReread */
	List	   *rows;			/* of MysqlRow */
	bool		is_whole;		/* an entry without a row has none at the source */
	CdcPosition seen;			/* end of the log afterwards */
} Answer;

static bool
is_copying(const CatalogTable *table)
{
	return (table->state == CATALOG_TABLE_SNAPSHOT && table->chunks_allowed) || table->state == CATALOG_TABLE_CATCHUP;
}

/* A table with rows to be read again where nobody does; its plan is locked then. NULL: none. */
static CopyTable *
choose_table(SnapshotCopy *copy, List **entries)
{
	CopyTable  *chosen = NULL;
	ListCell   *lc;

	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	MemoryContextSwitchTo(copy->step_cxt);
	foreach(lc, catalog_table_list(copy->pipeline_id))
	{
		CatalogTable *table = lfirst(lc);

		if (!is_copying(table) || table->definition == (Datum) 0 || snapshot_is_put_off(copy, table->table_id))
			continue;
		*entries = catalog_reread_list(copy->pipeline_id, table->table_id, KEYS_AT_ONCE);
		if (*entries == NIL || !catalog_try_lock_plan(copy->pipeline_id, table->table_id))
			continue;
		chosen = snapshot_make_table(table);
		snapshot_check_server(copy);
		break;
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(copy->step_cxt);
	return chosen;
}

/* Does the source show the changes that the entries were made for? */
static bool
source_shows(SnapshotCopy *copy, List *entries)
{
	CdcPosition newest = {0};
	StringInfoData gtids;
	CdcPosition mark;
	char	   *mark_gtids;
	ListCell   *lc;

	initStringInfo(&gtids);
	foreach(lc, entries)
	{
		const CatalogReread *entry = lfirst(lc);
		int			order;

		if (!cdc_position_is_known(&newest) ||
			(cdc_position_compare(&entry->at, &newest, &order) && order > 0))
			newest = entry->at;
		if (entry->gtid != NULL && entry->gtid[0] != '\0')
			appendStringInfo(&gtids, "%s%s", gtids.len > 0 ? "," : "", entry->gtid);
	}
	/* it is where a transaction starts, and has to be behind that one */
	newest.offset++;
	return mysql_server_shows(copy->session, copy->info, &newest, gtids.data, &mark, &mark_gtids);
}

static char *
make_query(const SnapshotCopy *copy, const CdcTableDef *def, List *entries)
{
	StringInfoData sql;
	ListCell   *lc;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	for (uint32 i = 0; i < def->ncolumns; i++)
		appendStringInfo(&sql, "%s%s", i > 0 ? ", " : "", mysql_text_expression(&def->columns[i], copy->info->flavor));
	appendStringInfo(&sql, " FROM %s.%s WHERE ", mysql_quote_identifier(def->schema), mysql_quote_identifier(def->name));
	foreach(lc, entries)
		appendStringInfo(&sql, "%s(%s)", lc == list_head(entries) ? "" : " OR ", ((CatalogReread *) lfirst(lc))->condition);
	return sql.data;
}

/* Read the rows, then where the log ends. */
static void
read_rows(SnapshotCopy *copy, Answer *answer)
{
	const CdcTableDef *def = answer->table->def;
	Size		bytes = 0;
	MysqlRow	row;

	mysql_session_query(copy->session, make_query(copy, def, answer->entries));
	answer->is_whole = true;
	while (mysql_session_fetch(copy->session, &row))
	{
		MysqlRow   *kept;

		if (row.nfields != (int) def->ncolumns || list_length(answer->rows) == list_length(answer->entries))
			ereport(ERROR,
					(errcode(ERRCODE_PROTOCOL_VIOLATION),
					 errmsg("the source sent other rows of table \"%s.%s\" than were asked for",
							def->schema, def->name)));
		if (bytes >= BYTES_MAX)
		{
			mysql_session_drain(copy->session);
			answer->is_whole = false;
			break;
		}
		kept = palloc(sizeof(MysqlRow));
		bytes += mysql_row_copy(CurrentMemoryContext, &row, kept);
		answer->rows = lappend(answer->rows, kept);
	}
	mysql_server_log_position(copy->session, copy->info, &answer->seen);
}

/* The entry that a key's bytes belong to; NULL: none. */
static CatalogReread *
find_entry(List *entries, const bytea *key)
{
	ListCell   *lc;

	foreach(lc, entries)
	{
		CatalogReread *entry = lfirst(lc);

		if (VARSIZE_ANY_EXHDR(entry->key) == VARSIZE_ANY_EXHDR(key) &&
			memcmp(VARDATA_ANY(entry->key), VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key)) == 0)
			return entry;
	}
	return NULL;
}

/* Is what the catalog has still the entry that we read for? */
static bool
is_unchanged(const CatalogReread *entry)
{
	const CatalogReread *now = catalog_reread_find(entry->pipeline_id, entry->table_id, entry->key);

	return now != NULL && !now->is_read && now->at.offset == entry->at.offset &&
		strcmp(now->at.file, entry->at.file) == 0 &&
		strcmp(now->gtid ? now->gtid : "", entry->gtid ? entry->gtid : "") == 0;
}

/* An entry is dealt with. */
static void
put_done(const Answer *answer, CatalogReread *entry)
{
	entry->is_read = true;
	entry->at = answer->seen;
	entry->gtid = NULL;
	catalog_reread_put(entry);
}

/* Write one row, when its entry is unchanged; the entry is dealt with then. */
static void
write_row(SnapshotCopy *copy, Answer *answer, HeapRow *row, const MysqlRow *values)
{
	HeapTarget *target = row->target;
	CatalogReread done;
	CatalogReread *entry;
	bool		is_in = snapshot_fill_row(copy, answer->table, row, values->values, values->lengths);

	heap_row_search_new(row);
	entry = find_entry(answer->entries, chunk_key_bytes(target, target->search));
	if (entry == NULL)
		return;					/* equal to the source, but not the same key */
	answer->entries = list_delete_ptr(answer->entries, entry);
	if (!is_unchanged(entry))
		return;
	/* a row that a filter leaves out stays listed as gone: it was taken away when it was listed */
	if (is_in)
	{
		if (heap_part_is_used(row))
			(void) heap_part_put(row);
		else if (heap_target_find(target))
			heap_target_update(target);
		else
			heap_target_insert(target);
		catalog_deleted_remove(entry->pipeline_id, entry->table_id, entry->key);
	}
	/* the entry itself stays: should this be undone, it is looked at again */
	done = *entry;
	put_done(answer, &done);
}

static int64
write_rows(SnapshotCopy *copy, Answer *answer, List *rows)
{
	MemoryContext row_cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc snapshot row", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;
	HeapRow    *row = heap_row_open(answer->table->target, answer->table->def, &copy->types);
	int64		replaced;
	ListCell   *lc;

	old = MemoryContextSwitchTo(row_cxt);
	foreach(lc, rows)
	{
		util_check_interrupts();
		MemoryContextReset(row_cxt);
		write_row(copy, answer, row, lfirst(lc));
	}
	MemoryContextSwitchTo(old);
	replaced = heap_row_take_replaced(row);
	heap_row_close(row);
	MemoryContextDelete(row_cxt);
	return replaced;
}

/* ----------------------------------------------------- rows that do not fit */

/* Rows that are tried together. */
typedef struct Try
{
	SnapshotCopy *copy;
	Answer	   *answer;
	List	   *rows;			/* of MysqlRow */
	int64		replaced;
	bytea	   *key;			/* of the first one; NULL: it cannot be read */
} Try;

static void
try_rows(void *arg)
{
	Try		   *try = arg;

	try->replaced = write_rows(try->copy, try->answer, try->rows);
}

static void
find_key(void *arg)
{
	Try		   *try = arg;
	const CopyTable *table = try->answer->table;
	HeapRow    *row = heap_row_open(table->target, table->def, &try->copy->types);

	if (snapshot_letter_search(try->copy, table, row, linitial(try->rows)))
		try->key = chunk_key_bytes(row->target, row->target->search);
	heap_row_close(row);
}

/*
 * A row does not fit. It becomes a letter, like one that a chunk brings: later changes of its key supersede it, and until then the
 * target lacks it. Its key stays noted as one without a row.
 */
static bool
keep_row(Try *try, const ErrorData *edata)
{
	CatalogReread *entry;
	CatalogReread done;
	ErrorData  *unreadable;

	try->key = NULL;
	unreadable = util_subtransaction(find_key, try, false);
	if (unreadable != NULL)
		ReThrowError(unreadable);
	if (try->key == NULL)
		ReThrowError(unconstify(ErrorData *, edata));
	entry = find_entry(try->answer->entries, try->key);
	if (entry == NULL)
		return false;
	try->answer->entries = list_delete_ptr(try->answer->entries, entry);
	if (!is_unchanged(entry))
		return false;
	snapshot_letter_write(try->copy, try->answer->table, linitial(try->rows), edata);
	done = *entry;
	put_done(try->answer, &done);
	return true;
}

/* Write rows together; when one does not fit, one by one. Returns what a policy changed. */
static int64
write_fitting(SnapshotCopy *copy, Answer *answer, int64 *letters)
{
	Try			try = {.copy = copy,.answer = answer,.rows = answer->rows};
	List	   *entries = list_copy(answer->entries);
	int64		replaced = 0;
	ErrorData  *edata;
	ListCell   *lc;

	/* what is wrong with the target as a whole stops the table */
	heap_row_close(heap_row_open(answer->table->target, answer->table->def, &copy->types));
	edata = util_subtransaction(try_rows, &try, true);
	if (edata == NULL)
		return try.replaced;
	if (!heap_error_is_tables_own(edata->sqlerrcode))
		ReThrowError(edata);
	answer->entries = entries;
	foreach(lc, answer->rows)
	{
		entries = list_copy(answer->entries);
		try.rows = list_make1(lfirst(lc));
		edata = util_subtransaction(try_rows, &try, true);
		if (edata == NULL)
		{
			replaced += try.replaced;
			continue;
		}
		if (!heap_error_is_tables_own(edata->sqlerrcode))
			ReThrowError(edata);
		answer->entries = entries;
		if (keep_row(&try, edata) && (*letters)++ == 0)
			snapshot_letter_say(copy, answer->table, edata, pstrdup("It is the first one of some that are read again."));
	}
	return replaced;
}

static void
reread_error_context(void *arg)
{
	const SnapshotCopy *copy = arg;

	errcontext("snapshot of pipeline \"%s\", table \"%s.%s\", rows that are read again",
			   copy->pipeline_name, copy->at->source_schema, copy->at->source_table);
}

static void
write_answer(SnapshotCopy *copy, Answer *answer)
{
	CopyTable  *table = answer->table;
	ErrorContextCallback frame = {.previous = error_context_stack,.callback = reread_error_context,.arg = copy};
	int64		replaced = 0;
	int64		letters = 0;
	ListCell   *lc;

	error_context_stack = &frame;
	heap_transaction_begin();
	if (heap_part_is(table->own_rows))
		catalog_lock_target(table->target);
	catalog_lock_table(copy->pipeline_id, table->table_id, ShareLock);
	PushActiveSnapshot(GetTransactionSnapshot());
	MemoryContextSwitchTo(copy->step_cxt);
	if (snapshot_table_is_due(copy, table))
	{
		replaced = copy->keep_dead_letters ? write_fitting(copy, answer, &letters) : write_rows(copy, answer, answer->rows);
		foreach(lc, answer->is_whole ? answer->entries : NIL)
		{
			const CatalogReread *entry = lfirst(lc);

			if (is_unchanged(entry))
				catalog_reread_remove(entry->pipeline_id, entry->table_id, entry->key, true);
		}
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	error_context_stack = frame.previous;
	MemoryContextSwitchTo(copy->step_cxt);
	pgstat_report_stat(false);
	if (replaced > 0 || letters > 0)
		copy->hooks.publish(copy->hooks.arg, table->table_id, replaced, letters);
}

bool
snapshot_reread_step(SnapshotCopy *copy, bool *waiting)
{
	Answer		answer = {0};
	bool		shows;

	*waiting = false;
	Assert(copy->planning == NULL && !copy->sent);
	answer.table = choose_table(copy, &answer.entries);
	if (answer.table == NULL)
		return false;
	copy->planning = copy->at = answer.table;
	copy->rereading = true;
	snapshot_open_session(copy);
	copy->asking = true;
	shows = source_shows(copy, answer.entries);
	if (shows)
		read_rows(copy, &answer);
	copy->asking = false;
	snapshot_forget_put_off(copy, answer.table->table_id);
	if (shows)
		write_answer(copy, &answer);
	copy->rereading = false;
	copy->at = NULL;
	snapshot_plan_unlock(copy);
	*waiting = true;
	return shows;
}
