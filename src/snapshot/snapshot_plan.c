/*-------------------------------------------------------------------------
 *
 * snapshot_plan.c
 *	  Cuts tables into chunks and shares them out among the snapshot workers.
 *
 * NOTES
 *	  The ledger (cdc_bridge.snapshot_chunk) is a table's plan. At any time its
 *	  rows are all of the table's keys, and none twice: chunks that are done or
 *	  open, and the rest. A worker that needs work cuts the next chunk off the
 *	  rest: it asks the source for the key that so many rows end at, and writes the
 *	  chunk as open and its own, while it holds the plan's lock. That is all that
 *	  workers of one table do one after the other. Chunks that are done become
 *	  one row with their neighbours, see snapshot_fold.c.
 *
 *	  "All keys" are those up to the last one that there was when the plan was
 *	  begun. Rows behind it came after the start mark, and the stream brings them;
 *	  so a copy ends, however fast rows are added at the end of the table.
 *
 *	  A chunk belongs to a worker's number, and each worker holds its number's
 *	  lock as long as it lives. So a chunk whose worker does not live can be taken
 *	  over by any other, and a worker that comes back finds its own.
 *
 *	  Which table: the one that the worker is at, as long as it has a rest, so
 *	  that the source reads on where it just was. Then tables where nobody is, the
 *	  largest first, then the others. Tables that are to be looked at stand in a
 *	  queue that is made anew only when it is empty, so that ten thousand small
 *	  tables are not listed ten thousand times.
 *
 *	  A table is complete when it has neither rest nor open chunk. Whoever sees
 *	  that reads the high mark under the plan's lock: all chunks have been read by
 *	  then.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "catalog/catalog_lock.h"
#include "snapshot/snapshot_copy.h"
#include "util/util_wait.h"

/* The first chunks of a table, by the source's estimate of a row; later ones go by what rows turn out to be. */
#define CHUNK_FIRST_BYTES (4 * 1024 * 1024)

/* A table to look at. */
typedef struct QueueEntry
{
	int32		table_id;
	int64		row_estimate;
	bool		put_off;		/* somebody else was there: not before the others */
} QueueEntry;

/* What can be done for a table. */
typedef enum PlanStep
{
	PLAN_NOTHING,				/* others are at it, or it is not being copied any more */
	PLAN_TAKE,					/* an open chunk of ours, or of nobody that lives */
	PLAN_FINISH,				/* it is complete */
	PLAN_CUT					/* it has a rest */
} PlanStep;

/* ------------------------------------------------------------- tables in memory */

/* Rows that fit into the first chunks, by the source's own estimate. */
static uint64
first_limit(const SnapshotCopy *copy, const CdcTableDef *def)
{
	uint64		rows = CHUNK_FIRST_BYTES / Max(def->avg_row_length, 1);

	return Max(Min(rows, copy->max_rows), Min(copy->max_rows, 100));
}

/* Take in what a table's declared definition says about copying it. Throws when there is none. */
static void
take_definition(SnapshotCopy *copy, CopyTable *table, Datum definition)
{
	if (definition == (Datum) 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("definition of source table \"%s.%s\" is missing",
						table->source_schema, table->source_table),
				 errdetail("The table's row in cdc_bridge.table_state has none."),
				 errhint("Use cdc_resync_table() to copy the table anew.")));

	table->def = schema_def_from_jsonb(definition);
	table->nkey = (int) table->def->nkey;
	table->key = palloc0(sizeof(int) * Max(table->nkey, 1));
	for (uint32 i = 0; i < table->def->ncolumns; i++)
	{
		uint16		part = table->def->columns[i].key_part;

		if (part >= 1 && part <= table->nkey)
			table->key[part - 1] = (int) i;
	}
	table->limit = first_limit(copy, table->def);
}

/* The table in memory; sets copy->at. */
static CopyTable *
open_table(SnapshotCopy *copy, const CatalogTable *from)
{
	MemoryContext cxt;
	MemoryContext old;
	CopyTable  *table;
	ListCell   *lc;

	foreach(lc, copy->tables)
	{
		table = lfirst(lc);
		if (table->table_id == from->table_id && table->generation == from->generation)
		{
			copy->at = table;
			return table;
		}
	}

	cxt = AllocSetContextCreate(copy->cxt, "cdc snapshot table", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(copy->cxt);
	table = MemoryContextAllocZero(cxt, sizeof(CopyTable));
	table->cxt = cxt;
	copy->tables = lappend(copy->tables, table);
	MemoryContextSwitchTo(cxt);
	table->table_id = from->table_id;
	table->generation = from->generation;
	table->target = from->target;
	table->source_schema = pstrdup(from->source_schema);
	table->source_table = pstrdup(from->source_table);
	table->own_rows = from->own_rows == (Datum) 0 ? (Datum) 0 : PointerGetDatum(PG_DETOAST_DATUM_COPY(from->own_rows));
	copy->at = table;
	take_definition(copy, table, from->definition);
	MemoryContextSwitchTo(copy->step_cxt);
	snapshot_check_server(copy);
	MemoryContextSwitchTo(old);
	return table;
}

/* Forget the tables that nothing in memory belongs to. */
static void
forget_tables(SnapshotCopy *copy)
{
	ListCell   *lc;

	copy->at = NULL;
	foreach(lc, copy->tables)
	{
		CopyTable  *table = lfirst(lc);

		if (table == copy->current ||
			(copy->reading != NULL && copy->reading->table == table) ||
			(copy->page != NULL && copy->page->chunk->table == table))
			continue;
		copy->tables = foreach_delete_current(copy->tables, lc);
		MemoryContextDelete(table->cxt);
	}
}

/* --------------------------------------------------------------- chunks in memory */

static ChunkKey *
make_key(int nkey, const char *const *values, const uint32 *lengths)
{
	ChunkKey   *key = palloc0(sizeof(ChunkKey));

	key->nkey = nkey;
	key->values = palloc(sizeof(char *) * nkey);
	key->lengths = palloc(sizeof(uint32) * nkey);
	for (int i = 0; i < nkey; i++)
	{
		key->lengths[i] = lengths ? lengths[i] : (uint32) strlen(values[i]);
		key->values[i] = pnstrdup(values[i], key->lengths[i]);
	}
	return key;
}

/* A key from the ledger; NULL stays NULL. */
static ChunkKey *
ledger_key(const CopyTable *table, char **values)
{
	return values == NULL ? NULL : make_key(table->nkey, (const char *const *) values, NULL);
}

/* Refuse keys that are not of this table: a key of another length, or with a NULL in it. */
static void
check_ledger_key(const CopyTable *table, int nkey, char **values)
{
	bool		fits = values == NULL || nkey == table->nkey;

	for (int i = 0; values != NULL && i < nkey; i++)
		fits &= values[i] != NULL;
	if (!fits)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("a key of source table \"%s.%s\" in cdc_bridge.snapshot_chunk has not the form of its key",
						table->source_schema, table->source_table)));
}

static CopyChunk *
make_chunk(SnapshotCopy *copy, CopyTable *table, const CatalogChunk *from)
{
	MemoryContext cxt = AllocSetContextCreate(copy->cxt, "cdc snapshot chunk", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	CopyChunk  *chunk = palloc0(sizeof(CopyChunk));

	chunk->cxt = cxt;
	chunk->table = table;
	chunk->chunk_no = from->chunk_no;
	chunk->lower = ledger_key(table, from->lower);
	chunk->upper = ledger_key(table, from->upper);
	MemoryContextSwitchTo(old);
	return chunk;
}

void
snapshot_chunk_free(CopyChunk *chunk)
{
	if (chunk != NULL)
		MemoryContextDelete(chunk->cxt);
}

/* ------------------------------------------------------------------- the plan's lock */

static void
lock_plan(SnapshotCopy *copy, CopyTable *table)
{
	Assert(copy->planning == NULL);
	catalog_lock_plan(copy->pipeline_id, table->table_id);
	copy->planning = table;
}

void
snapshot_plan_unlock(SnapshotCopy *copy)
{
	if (copy->planning != NULL)
		catalog_unlock_plan(copy->pipeline_id, copy->planning->table_id);
	copy->planning = NULL;
}

/*
 * Begin a transaction that changes the plan of a table. The table's lock keeps a
 * stop of the table, which empties the ledger, from coming in between. Returns
 * whether the table is still being copied.
 */
static bool
begin_change(SnapshotCopy *copy, CopyTable *table)
{
	heap_transaction_begin();
	catalog_lock_table(copy->pipeline_id, table->table_id, ShareLock);
	PushActiveSnapshot(GetTransactionSnapshot());
	return snapshot_table_is_due(copy, table);
}

static void
begin_look(void)
{
	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
}

static void
end_transaction(SnapshotCopy *copy)
{
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(copy->step_cxt);
}

/* ---------------------------------------------------------------------- cutting */

/* The rest of a table; NULL when it has none. A plan that has not begun is all rest. In a transaction. */
static CatalogChunk *
read_rest(SnapshotCopy *copy, const CopyTable *table, bool *is_new)
{
	CatalogChunk *rest;

	*is_new = catalog_chunk_last_no(copy->pipeline_id, table->table_id, table->generation) < 0;
	if (!*is_new)
		return catalog_chunk_by_no(copy->pipeline_id, table->table_id, table->generation, 0);

	rest = palloc0(sizeof(CatalogChunk));
	rest->pipeline_id = copy->pipeline_id;
	rest->table_id = table->table_id;
	rest->generation = table->generation;
	rest->nkey = table->nkey;
	rest->state = CATALOG_CHUNK_REST;
	return rest;
}

/* Ask the source for a key; NULL when it has none. */
static char **
ask_key(SnapshotCopy *copy, const CopyTable *table, const char *query)
{
	char	  **key = NULL;
	MysqlRow	row;

	snapshot_open_session(copy);
	copy->asking = true;
	mysql_session_query(copy->session, query);
	while (mysql_session_fetch(copy->session, &row))
	{
		if (row.nfields != table->nkey || key != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_PROTOCOL_VIOLATION),
					 errmsg("the source sent more rows of table \"%s.%s\" than were asked for",
							table->source_schema, table->source_table)));
		key = palloc0(sizeof(char *) * table->nkey);
		for (int i = 0; i < table->nkey; i++)
		{
			if (row.values[i] == NULL)
				ereport(ERROR,
						(errcode(ERRCODE_PROTOCOL_VIOLATION),
						 errmsg("the source sent a NULL in the key of table \"%s.%s\"",
								table->source_schema, table->source_table)));
			key[i] = pnstrdup(row.values[i], row.lengths[i]);
		}
	}
	copy->asking = false;
	return key;
}

/* The last key of the table, where its plan ends; NULL: the table is empty. */
static char **
ask_last(SnapshotCopy *copy, const CopyTable *table)
{
	snapshot_open_session(copy);
	return ask_key(copy, table, chunk_last_query(table->def, table->key, table->nkey, copy->info->flavor));
}

/* Where the next chunk of the rest ends; what the rest ends at when it is no longer than a chunk. */
static char **
ask_bound(SnapshotCopy *copy, const CopyTable *table, const CatalogChunk *rest)
{
	char	  **key;

	snapshot_open_session(copy);
	key = ask_key(copy, table,
				  chunk_bound_query(table->def, table->key, table->nkey, copy->info->flavor,
									ledger_key(table, rest->lower), ledger_key(table, rest->upper), table->limit));
	return key != NULL ? key : rest->upper;
}

static bool
is_same_key(const CopyTable *table, char **a, char **b)
{
	for (int i = 0; i < table->nkey && a != b; i++)
	{
		if (a == NULL || b == NULL || strcmp(a[i], b[i]) != 0)
			return false;
	}
	return true;
}

/* Write the next chunk into the plan; false when the table is no longer being copied. */
static bool
write_cut(SnapshotCopy *copy, CopyTable *table, CatalogChunk *rest, bool is_new, char **upper,
		  CatalogChunk *chunk)
{
	bool		due = begin_change(copy, table);
	bool		is_last = is_same_key(table, upper, rest->upper);

	*chunk = *rest;
	if (due)
	{
		chunk->chunk_no = Max(catalog_chunk_last_no(copy->pipeline_id, table->table_id, table->generation), 0) + 1;
		chunk->upper = upper;
		chunk->state = CATALOG_CHUNK_OPEN;
		chunk->worker = copy->worker;
		catalog_chunk_insert(chunk);

		rest->lower = upper;
		if (!is_last && is_new)
			catalog_chunk_insert(rest);
		else if (!is_last)
			catalog_chunk_update(rest);
		else if (!is_new)
			catalog_chunk_delete(rest);
		snapshot_fold_done(copy, table);
	}
	end_transaction(copy);
	return due;
}

/* The plan of an empty table: one chunk, which is done. */
static void
write_empty(SnapshotCopy *copy, CopyTable *table, CatalogChunk *plan)
{
	if (begin_change(copy, table))
	{
		plan->chunk_no = 1;
		plan->state = CATALOG_CHUNK_DONE;
		plan->worker = copy->worker;
		plan->chunks = 1;
		catalog_chunk_insert(plan);
	}
	end_transaction(copy);
}

/* Cut the next chunk off the rest of a table, for us; false when there is no rest, or the table is empty. */
static bool
cut_next(SnapshotCopy *copy, CopyTable *table)
{
	CatalogChunk *rest;
	CatalogChunk chunk;
	bool		is_new;
	bool		done = false;

	copy->at = table;
	lock_plan(copy, table);

	begin_look();
	MemoryContextSwitchTo(copy->step_cxt);
	rest = snapshot_table_is_due(copy, table) ? read_rest(copy, table, &is_new) : NULL;
	end_transaction(copy);
	if (rest != NULL)
	{
		check_ledger_key(table, rest->nkey, rest->lower);
		check_ledger_key(table, rest->nkey, rest->upper);
		if (is_new)
			rest->upper = ask_last(copy, table);
		if (rest->upper != NULL)
			done = write_cut(copy, table, rest, is_new, ask_bound(copy, table, rest), &chunk);
		else
			write_empty(copy, table, rest);
	}
	snapshot_plan_unlock(copy);

	if (done)
		copy->reading = make_chunk(copy, table, &chunk);
	copy->current = done ? table : NULL;
	return done;
}

/* Take an open chunk that is ours, or whose worker does not live; false when it is neither any more. */
static bool
take_open(SnapshotCopy *copy, CopyTable *table, int32 chunk_no)
{
	CatalogChunk *chunk = NULL;
	bool		done = false;

	copy->at = table;
	lock_plan(copy, table);
	if (begin_change(copy, table))
	{
		MemoryContextSwitchTo(copy->step_cxt);
		chunk = catalog_chunk_by_no(copy->pipeline_id, table->table_id, table->generation, chunk_no);
		done = chunk != NULL && chunk->state == CATALOG_CHUNK_OPEN &&
			(chunk->worker == copy->worker || !catalog_snapshot_worker_lives(copy->pipeline_id, chunk->worker));
		if (done)
		{
			check_ledger_key(table, chunk->nkey, chunk->lower);
			check_ledger_key(table, chunk->nkey, chunk->upper);
		}
		if (done && chunk->worker != copy->worker)
		{
			chunk->worker = copy->worker;
			catalog_chunk_update(chunk);
		}
	}
	end_transaction(copy);
	snapshot_plan_unlock(copy);

	if (done)
	{
		copy->reading = make_chunk(copy, table, chunk);
		copy->current = table;
	}
	return done;
}

CopyChunk *
snapshot_plan_cut(SnapshotCopy *copy, CopyChunk *chunk, const char *const *values, const uint32 *lengths)
{
	CopyTable  *table = chunk->table;
	CatalogChunk *head = NULL;
	CatalogChunk tail;
	CopyChunk  *result = NULL;
	ChunkKey   *at;

	MemoryContextSwitchTo(chunk->cxt);
	at = make_key(table->nkey, values, lengths);
	MemoryContextSwitchTo(copy->step_cxt);

	lock_plan(copy, table);
	if (begin_change(copy, table))
		head = catalog_chunk_by_no(copy->pipeline_id, table->table_id, table->generation, chunk->chunk_no);
	if (head != NULL && head->state == CATALOG_CHUNK_OPEN && head->worker == copy->worker)
	{
		tail = *head;
		tail.nkey = table->nkey;
		tail.lower = at->values;
		tail.chunk_no = catalog_chunk_last_no(copy->pipeline_id, table->table_id, table->generation) + 1;
		catalog_chunk_insert(&tail);
		result = make_chunk(copy, table, &tail);

		head->nkey = table->nkey;
		head->upper = at->values;
		catalog_chunk_update(head);
		chunk->upper = at;
		snapshot_fold_done(copy, table);
	}
	end_transaction(copy);
	snapshot_plan_unlock(copy);
	return result;
}

/* -------------------------------------------------------------------- finishing */

/* Nothing to be cut, nothing open? In a transaction. */
static bool
is_complete(const SnapshotCopy *copy, const CopyTable *table)
{
	return catalog_chunk_last_no(copy->pipeline_id, table->table_id, table->generation) >= 0 &&
		catalog_chunk_by_no(copy->pipeline_id, table->table_id, table->generation, 0) == NULL &&
		catalog_chunk_list(copy->pipeline_id, table->table_id, table->generation, CATALOG_CHUNK_OPEN) == NIL;
}

static bool
look_whether_complete(SnapshotCopy *copy, const CopyTable *table)
{
	bool		result;

	begin_look();
	result = snapshot_table_is_due(copy, table) && is_complete(copy, table);
	end_transaction(copy);
	return result;
}

void
snapshot_plan_finish(SnapshotCopy *copy, CopyTable *table)
{
	CdcPosition mark;
	int32		chunks;
	int64		rows;
	bool		done = false;

	copy->at = table;
	if (!look_whether_complete(copy, table))
		return;

	lock_plan(copy, table);
	if (look_whether_complete(copy, table))
	{
		/* the answer of another query on this session would be lost */
		Assert(!copy->sent);
		snapshot_open_session(copy);
		copy->asking = true;
		snapshot_check_unchanged(copy, table);
		mysql_server_log_position(copy->session, copy->info, &mark);
		copy->asking = false;

		begin_look();
		catalog_chunk_sum(copy->pipeline_id, table->table_id, table->generation, &chunks, &rows);
		done = catalog_table_set_catchup(copy->pipeline_id, table->table_id, table->generation, &mark);
		end_transaction(copy);
	}
	snapshot_plan_unlock(copy);

	if (done)
		ereport(LOG,
				(errmsg("snapshot of table \"%s.%s\" is complete", table->source_schema, table->source_table),
				 errdetail("It read " INT64_FORMAT " rows in %d chunks; the stream has to pass %s:" UINT64_FORMAT ".",
						   rows, chunks, mark.file, (uint64) mark.offset)));
}

/* --------------------------------------------------------------- choosing a table */

static int
larger_first(const ListCell *a, const ListCell *b)
{
	const QueueEntry *x = lfirst(a);
	const QueueEntry *y = lfirst(b);

	return x->row_estimate == y->row_estimate ? (x->table_id > y->table_id) - (x->table_id < y->table_id)
		: x->row_estimate < y->row_estimate ? 1 : -1;
}

/* Put all tables that are being copied into the queue. */
static void
fill_queue(SnapshotCopy *copy)
{
	ListCell   *lc;

	begin_look();
	foreach(lc, catalog_table_list(copy->pipeline_id))
	{
		const CatalogTable *table = lfirst(lc);
		QueueEntry *entry;
		MemoryContext old;

		/* one that joined a running stream may have to wait, see snapshot_join.c */
		if (table->state != CATALOG_TABLE_SNAPSHOT || !table->chunks_allowed)
			continue;
		if (snapshot_is_put_off(copy, table->table_id))
			continue;
		old = MemoryContextSwitchTo(copy->cxt);
		entry = palloc0(sizeof(QueueEntry));
		entry->table_id = table->table_id;
		entry->row_estimate = table->row_estimate;
		copy->queue = lappend(copy->queue, entry);
		MemoryContextSwitchTo(old);
	}
	end_transaction(copy);
	list_sort(copy->queue, larger_first);
}

static bool
is_in_memory(const SnapshotCopy *copy, const CopyTable *table, int32 chunk_no)
{
	return (copy->reading != NULL && copy->reading->table == table && copy->reading->chunk_no == chunk_no) ||
		(copy->page != NULL && copy->page->chunk->table == table && copy->page->chunk->chunk_no == chunk_no);
}

/* What can be done for a table: see PlanStep. */
static PlanStep
look_at(SnapshotCopy *copy, int32 table_id, CopyTable **table, int32 *chunk_no, bool *has_others)
{
	PlanStep	step = PLAN_NOTHING;
	CatalogTable *from;

	*has_others = false;
	begin_look();
	from = catalog_table_by_id(copy->pipeline_id, table_id);
	if (from != NULL && from->state == CATALOG_TABLE_SNAPSHOT && from->chunks_allowed)
	{
		ListCell   *lc;
		bool		is_new;

		*table = open_table(copy, from);
		if (is_complete(copy, *table))
			step = PLAN_FINISH;
		else if (read_rest(copy, *table, &is_new) != NULL)
			step = PLAN_CUT;
		foreach(lc, catalog_chunk_list(copy->pipeline_id, table_id, from->generation, CATALOG_CHUNK_OPEN))
		{
			const CatalogChunk *chunk = lfirst(lc);

			if (is_in_memory(copy, *table, chunk->chunk_no))
				continue;
			if (chunk->worker != copy->worker && catalog_snapshot_worker_lives(copy->pipeline_id, chunk->worker))
			{
				*has_others = true;
				continue;
			}
			step = PLAN_TAKE;
			*chunk_no = chunk->chunk_no;
			break;
		}
	}
	end_transaction(copy);
	return step;
}

/* Take the first entry off the queue. */
static QueueEntry
pop_entry(SnapshotCopy *copy)
{
	QueueEntry *first = linitial(copy->queue);
	QueueEntry	result = *first;

	copy->queue = list_delete_first(copy->queue);
	pfree(first);
	return result;
}

static void
put_off(SnapshotCopy *copy, const QueueEntry *entry)
{
	MemoryContext old = MemoryContextSwitchTo(copy->cxt);
	QueueEntry *again = palloc(sizeof(QueueEntry));

	*again = *entry;
	again->put_off = true;
	copy->queue = lappend(copy->queue, again);
	MemoryContextSwitchTo(old);
}

bool
snapshot_plan_next(SnapshotCopy *copy, bool same_table)
{
	bool		filled = false;

	Assert(copy->reading == NULL && !copy->sent);
	if (copy->current != NULL && cut_next(copy, copy->current))
		return true;
	if (same_table)
		return false;

	for (;;)
	{
		QueueEntry	entry;
		CopyTable  *table = NULL;
		int32		chunk_no = 0;
		bool		has_others;

		util_check_interrupts();
		forget_tables(copy);
		if (copy->queue == NIL)
		{
			if (filled)
				return false;
			fill_queue(copy);
			filled = true;
			if (copy->queue == NIL)
				return false;
		}

		entry = pop_entry(copy);
		switch (look_at(copy, entry.table_id, &table, &chunk_no, &has_others))
		{
			case PLAN_NOTHING:
				break;
			case PLAN_TAKE:
				if (take_open(copy, table, chunk_no))
					return true;
				break;
			case PLAN_FINISH:
				snapshot_plan_finish(copy, table);
				break;
			case PLAN_CUT:
				if (has_others && !entry.put_off)
					put_off(copy, &entry);
				else if (cut_next(copy, table))
					return true;
				else
					snapshot_plan_finish(copy, table);	/* it may be empty */
				break;
		}
	}
}
