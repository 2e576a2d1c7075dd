/*-------------------------------------------------------------------------
 *
 * snapshot_keyless.c
 *	  Copies tables that have no key.
 *
 * NOTES
 *	  Without a key a row cannot be told from its equals, so what a copy has seen
 *	  and what the stream brings must not overlap by a single change: the copy
 *	  needs an exact mark M. It is read in one transaction of the source that shows
 *	  just what was committed before M, and the stream applies the changes of
 *	  transactions that start at or after M (the table's join position), and no others.
 *
 *	  1. The ingest worker holds still between two source transactions, at P. What
 *	     a former attempt left in the target is removed.
 *	  2. The snapshot is opened at M (mysql_server_exact_mark), not before P: while
 *	     the table had no mark all its changes were passed over, so all of them
 *	     must be in the copy. M is committed as the join position.
 *	  3. The ingest worker goes on. From now on the table is a multiset of rows that
 *	     both sides add to: rows of the copy, and rows of the stream. A row that the
 *	     stream takes away and that is not there yet is noted (a debt).
 *	  4. All rows are read and written in one transaction here, of any size in
 *	     bounded memory. At its end, under the table's lock, the debts are paid: as
 *	     many rows are deleted again. The table is CATCHUP, with M as its high mark.
 *
 *	  The copy is one statement at the source, of any length, and the source keeps
 *	  the table's definition locked for it: an ALTER TABLE would wait for its end, and
 *	  all who come after that would wait with it. So a look from another connection
 *	  tells from time to time whether somebody waits. Then the copy gives way, and
 *	  is tried again later.
 *
 *	  Adding and taking away in any order comes to the same, so the table has
 *	  at the end what the source has. What fails in between leaves nothing of the
 *	  copy; what the stream has brought meanwhile is removed with it, and all
 *	  begins anew with another mark.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "catalog/catalog_lock.h"
#include "compat/pg_compat.h"
#include "heap/heap_bulk.h"
#include "heap/heap_match.h"
#include "mysql/mysql_text.h"
#include "snapshot/snapshot_copy.h"
#include "snapshot/snapshot_private.h"
#include "util/util_wait.h"

/* So many debts are paid in one scan of the table. */
#define DEBTS_AT_ONCE 100000

/* How often, and how long apart, the source is asked for a snapshot that is not before the stream. */
#define MARK_ATTEMPTS 100
#define MARK_POLL_MS 20

/* Rows between two looks at the limit of rows per second, at most. */
#define THROTTLE_ROWS 1000

/* How often it is looked whether somebody waits at the source for the end of our statement. */
#define PROBE_MS 2000
#define PROBE_ROWS 16			/* between two looks at the clock */

/* A table without a key that is to be copied and nobody copies; its plan is locked then. NULL: none. */
static CatalogTable *
choose_table(SnapshotCopy *copy)
{
	MemoryContext cxt = CurrentMemoryContext;
	CatalogTable *chosen = NULL;
	ListCell   *lc;

	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	MemoryContextSwitchTo(cxt);
	foreach(lc, catalog_table_list(copy->pipeline_id))
	{
		CatalogTable *table = lfirst(lc);

		if (table->state == CATALOG_TABLE_SNAPSHOT && !table->chunks_allowed && !table->resync_wanted &&
			table->definition != (Datum) 0 && schema_def_is_keyless(table->definition) &&
			!snapshot_is_put_off(copy, table->table_id) &&
			catalog_try_lock_plan(copy->pipeline_id, table->table_id))
		{
			chosen = table;
			snapshot_check_server(copy);
			break;
		}
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(cxt);
	return chosen;
}

/*
 * Begin from nothing: what the stream brought since a former attempt's mark goes. While the stream holds
 * still. False when the table is no longer to be copied, or is in use just now.
 */
static bool
begin_anew(SnapshotCopy *copy, const CatalogTable *from, CopyTable *table)
{
	bool		is_due;

	heap_transaction_begin();
	catalog_lock_table(copy->pipeline_id, table->table_id, ShareLock);
	PushActiveSnapshot(GetTransactionSnapshot());
	is_due = snapshot_table_is_due(copy, table) && copy->hooks.still_held(copy->hooks.arg);
	if (is_due && cdc_position_is_known(&from->join_position))
	{
		is_due = ConditionalLockRelationOid(table->target, AccessExclusiveLock);
		if (is_due)
		{
			Relation	rel = table_open(table->target, NoLock);

			cdc_truncate_relation(rel);
			table_close(rel, NoLock);
		}
	}
	if (is_due)
		catalog_table_restart_copy(copy->pipeline_id, table->table_id, ++table->generation);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(copy->step_cxt);
	return is_due;
}

/* Open the source's snapshot, not before the place where the stream stands; false when that fails for now. */
static bool
open_mark(SnapshotCopy *copy, const CopyTable *table, const CdcPosition *stream, CdcPosition *mark)
{
	int			order;

	for (int i = 0; i < MARK_ATTEMPTS; i++)
	{
		mysql_server_exact_mark(copy->session, copy->info, copy->endpoint, table->def, mark);
		if (!cdc_position_is_known(stream) ||
			(cdc_position_compare(mark, stream, &order) && order >= 0))
			return true;
		mysql_session_execute(copy->session, "ROLLBACK");
		(void) util_wait(PGINVALID_SOCKET, MARK_POLL_MS, UTIL_WAIT_SOURCE_READ);
	}
	return false;
}

/*
 * Commit the mark as the position from which the stream applies the table's changes. An ingest worker that began
 * after the one that holds still has ended may have passed over changes behind the mark. It looks the mark up
 * under the table's lock before it does (apply_table_check_mark): so either it sees this one, or it
 * was before us and we see that the holder is another.
 */
static bool
write_mark(SnapshotCopy *copy, const CopyTable *table, const CdcPosition *mark)
{
	bool		done;

	heap_transaction_begin();
	catalog_lock_table(copy->pipeline_id, table->table_id, ShareLock);
	PushActiveSnapshot(GetTransactionSnapshot());
	done = copy->hooks.still_held(copy->hooks.arg) &&
		catalog_table_set_join(copy->pipeline_id, table->table_id, table->generation, mark);
	if (done)
		catalog_table_set_notice(copy->pipeline_id, table->table_id, NULL);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(copy->step_cxt);
	return done;
}

/* Steps 1 to 3; false when it has to be tried again later. */
static bool
take_mark(SnapshotCopy *copy, const CatalogTable *from, CopyTable *table, CdcPosition *mark)
{
	CdcPosition stream;
	bool		done = false;

	if (!copy->hooks.hold(copy->hooks.arg, &stream))
		return false;
	copy->holding = true;		/* an error ends it, see give_up */
	if (begin_anew(copy, from, table))
	{
		copy->asking = true;
		copy->in_snapshot = true;
		done = open_mark(copy, table, &stream, mark);
		copy->changed = done && !snapshot_looks_the_same(copy->session, copy->info, from);
		if (copy->changed)
			ereport(ERROR,
					(errcode(CDC_ERRCODE_TABLE_CHANGED),
					 errmsg("source table \"%s.%s\" changed before it was copied",
							table->source_schema, table->source_table),
					 errhint("Make the target fit with ALTER TABLE, or drop it, then use cdc_resync_table().")));
		copy->asking = false;
		done = done && write_mark(copy, table, mark);
	}
	copy->holding = false;
	copy->hooks.release(copy->hooks.arg);
	return done;
}

/* ---------------------------------------------------------------------------- the rows */

static void
keyless_error_context(void *arg)
{
	SnapshotCopy *copy = arg;
	const CopyTable *table = copy->at;

	if (copy->row != NULL && copy->row->current != NULL)
		errcontext("snapshot of pipeline \"%s\", table \"%s.%s\", column \"%s\", row " INT64_FORMAT,
				   copy->pipeline_name, table->source_schema, table->source_table,
				   copy->row->current->name, copy->row_no);
	else
		errcontext("snapshot of pipeline \"%s\", table \"%s.%s\", row " INT64_FORMAT,
				   copy->pipeline_name, table->source_schema, table->source_table, copy->row_no);
}

/*
 * Does somebody wait for the end of our statement? Who wants the table for himself lets no new statement pass him, so
 * a short one from another connection waits too. Then it is ours that ends. The connection is made when first needed.
 */
static void
give_way(SnapshotCopy *copy, const CopyTable *table, MysqlSession **probe)
{
	MemoryContext old = MemoryContextSwitchTo(copy->step_cxt);
	char	   *why = NULL;

	copy->asking = true;
	if (*probe == NULL)
	{
		MysqlServerInfo *info;

		*probe = mysql_server_open(copy->endpoint, copy->identity, &info);
		mysql_server_limit_lock_wait(*probe, true);
	}
	if (mysql_server_table_readable(*probe, table->def->schema, table->def->name, &why) == MYSQL_TABLE_LOCKED)
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("copy of source table \"%s.%s\" has given way", table->source_schema, table->source_table),
				 errdetail("The table has no key, so its copy is one statement at the source; another one there (ALTER TABLE, LOCK TABLES, FLUSH TABLES) waited for its end. The copy is tried again."),
				 errhint("Leave the table alone while it is copied, or add a primary key to it.")));
	copy->asking = false;
	MemoryContextSwitchTo(old);
}

/* Read and write all rows of the table; returns their number, and adds their size to *bytes. */
static int64
copy_rows(SnapshotCopy *copy, CopyTable *table, HeapRow *row, int64 *bytes)
{
	MemoryContext row_cxt = AllocSetContextCreate(copy->step_cxt, "cdc keyless row", ALLOCSET_DEFAULT_SIZES);
	TimestampTz probed = GetCurrentTimestamp();
	int			throttle_rows = Min(THROTTLE_ROWS, copy->max_rows);
	MysqlSession *probe = NULL;
	MemoryContext old;
	MysqlRow	from;
	int64		n = 0;

	copy->asking = true;
	mysql_session_query(copy->session, chunk_all_query(table->def, copy->info->flavor));
	old = MemoryContextSwitchTo(row_cxt);
	while (mysql_session_fetch(copy->session, &from))
	{
		util_check_interrupts();
		copy->asking = false;
		MemoryContextReset(row_cxt);
		copy->row_no = ++n;
		if (from.nfields != (int) table->def->ncolumns)
			ereport(ERROR,
					(errcode(CDC_ERRCODE_TABLE_CHANGED),
					 errmsg("source table \"%s.%s\" has other columns than before",
							table->source_schema, table->source_table)));
		for (int i = 0; i < from.nfields; i++)
			*bytes += from.lengths[i];
		if (snapshot_fill_row(copy, table, row, from.values, from.lengths))
			heap_bulk_insert(row->target);
		mysql_session_let_go(copy->session);
		if (n % throttle_rows == 0)
			copy->hooks.throttle(copy->hooks.arg, throttle_rows);
		if (n % PROBE_ROWS == 0 && TimestampDifferenceExceeds(probed, GetCurrentTimestamp(), PROBE_MS))
		{
			give_way(copy, table, &probe);
			probed = GetCurrentTimestamp();
		}
		copy->asking = true;
	}
	copy->asking = false;
	mysql_session_close(probe);
	/* and with it the source's transaction: what comes now may take its time */
	snapshot_close_session(copy);
	copy->row_no = 0;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(row_cxt);
	return n;
}

/* --------------------------------------------------------------------------- the debts */

typedef struct Debts
{
	HeapTarget *target;
	bytea	  **rows;			/* sorted; equal ones stand side by side */
	int		   *paid;			/* at the first of equal ones: how many of them are */
	int			n;
	int			unpaid;
	MemoryContext cxt;
} Debts;

static int
compare_bytes(const bytea *a, const bytea *b)
{
	Size		len_a = VARSIZE_ANY_EXHDR(a);
	Size		len_b = VARSIZE_ANY_EXHDR(b);
	int			result = memcmp(VARDATA_ANY(a), VARDATA_ANY(b), Min(len_a, len_b));

	return result != 0 ? result : len_a < len_b ? -1 : len_a > len_b;
}

static int
compare_debts(const void *a, const void *b)
{
	return compare_bytes(*(bytea *const *) a, *(bytea *const *) b);
}

/* Is there a debt for the row in slot that is not paid yet? Then this row pays it. */
static HeapMatchVerdict
pay_with(TupleTableSlot *slot, void *arg)
{
	Debts	   *debts = arg;
	MemoryContext old = MemoryContextSwitchTo(debts->cxt);
	const bytea *row;
	int			low = 0;
	int			high = debts->n;
	HeapMatchVerdict verdict = HEAP_MATCH_KEEP;

	if (debts->unpaid == 0)
	{
		MemoryContextSwitchTo(old);
		return HEAP_MATCH_STOP;
	}
	row = chunk_key_bytes(debts->target, slot);
	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		if (compare_bytes(debts->rows[middle], row) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < debts->n && compare_bytes(debts->rows[low], row) == 0)
	{
		int			next = low + debts->paid[low];

		if (next < debts->n && compare_bytes(debts->rows[next], row) == 0)
		{
			debts->paid[low]++;
			debts->unpaid--;
			verdict = HEAP_MATCH_DELETE;
		}
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(debts->cxt);
	return verdict;
}

/*
 * Take away the rows that the stream could not take away because they were not
 * there yet. Under the table's lock, after the rows of the copy. What is not
 * there even now somebody else took away.
 */
static void
pay_debts(SnapshotCopy *copy, const CopyTable *table, HeapTarget *target)
{
	List	   *portion;

	while ((portion = catalog_deleted_take(copy->pipeline_id, table->table_id, DEBTS_AT_ONCE)) != NIL)
	{
		Debts		debts = {.target = target,.n = list_length(portion),.unpaid = list_length(portion)};

		debts.cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc debt", ALLOCSET_SMALL_SIZES);
		debts.rows = palloc(sizeof(bytea *) * debts.n);
		debts.paid = palloc0(sizeof(int) * debts.n);
		for (int i = 0; i < debts.n; i++)
			debts.rows[i] = chunk_key_unnumber(list_nth(portion, i));
		qsort(debts.rows, debts.n, sizeof(bytea *), compare_debts);
		heap_match_scan(target, pay_with, &debts);
		if (debts.unpaid > 0)
			ereport(LOG,
					(errmsg("%d rows of table \"%s.%s\" that the stream deletes are not there",
							debts.unpaid, table->source_schema, table->source_table),
					 errdetail("Somebody else writes to the target.")));
		for (int i = 0; i < debts.n; i++)
			pfree(debts.rows[i]);
		pfree(debts.rows);
		pfree(debts.paid);
		MemoryContextDelete(debts.cxt);
		list_free_deep(portion);
		CommandCounterIncrement();
	}
}

/* Step 4: all of it in one transaction. */
static void
copy_table(SnapshotCopy *copy, CopyTable *table, const CdcPosition *mark)
{
	ErrorContextCallback frame = {.previous = error_context_stack,.callback = keyless_error_context,.arg = copy};
	CatalogChunk ledger = {
		.pipeline_id = copy->pipeline_id,
		.table_id = table->table_id,
		.generation = table->generation,
		.chunk_no = 1,
		.state = CATALOG_CHUNK_DONE,
		.worker = copy->worker,
		.chunks = 1,
	};
	int64		replaced;
	bool		is_due;

	error_context_stack = &frame;
	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	MemoryContextSwitchTo(copy->step_cxt);
	copy->row = heap_row_open(table->target, table->def, &copy->types);
	heap_bulk_begin(copy->row->target);
	ledger.rows = copy_rows(copy, table, copy->row, &ledger.bytes);
	heap_bulk_end(copy->row->target);
	replaced = heap_row_take_replaced(copy->row);
	PopActiveSnapshot();

	/* every snapshot from here on is newer than the lock */
	catalog_lock_table(copy->pipeline_id, table->table_id, ShareLock);
	PushActiveSnapshot(GetTransactionSnapshot());
	is_due = snapshot_table_is_due(copy, table);
	if (is_due)
	{
		pay_debts(copy, table, copy->row->target);
		catalog_chunk_insert(&ledger);
		(void) catalog_table_set_catchup(copy->pipeline_id, table->table_id, table->generation, mark);
	}
	heap_row_close(copy->row);
	copy->row = NULL;
	PopActiveSnapshot();
	if (is_due)
		CommitTransactionCommand();
	else
		AbortCurrentTransaction();
	error_context_stack = frame.previous;
	MemoryContextSwitchTo(copy->step_cxt);
	pgstat_report_stat(false);

	if (!is_due)
		return;
	if (replaced > 0)
		copy->hooks.publish(copy->hooks.arg, table->table_id, replaced, 0);
	ereport(LOG,
			(errmsg("snapshot of table \"%s.%s\" is complete", table->source_schema, table->source_table),
			 errdetail("It has no key: " INT64_FORMAT " rows were copied as they were at %s:" UINT64_FORMAT ".",
					   ledger.rows, mark->file, (uint64) mark->offset)));
}

bool
snapshot_keyless_step(SnapshotCopy *copy)
{
	CatalogTable *from = choose_table(copy);
	CopyTable  *table;
	CdcPosition mark;

	if (from == NULL)
		return false;
	table = snapshot_make_table(from);
	copy->planning = table;		/* an error gives the lock up */
	copy->at = table;
	snapshot_open_session(copy);
	if (take_mark(copy, from, table, &mark))
	{
		copy_table(copy, table, &mark);
		snapshot_forget_put_off(copy, table->table_id);
	}
	else
	{
		/* each attempt holds up the stream for a moment: less and less often */
		snapshot_put_off(copy, table, NULL);
		snapshot_close_session(copy);
	}
	copy->in_snapshot = false;
	copy->at = NULL;
	snapshot_plan_unlock(copy);
	return true;
}
