/*-------------------------------------------------------------------------
 *
 * apply_batch.c
 *	  Changes of one table, collapsed to what they come to, and written at once.
 *
 * NOTES
 *	  A batch holds, for each key that changes named, whether a row had the key
 *	  before the batch (by what its first change says) and which row has it at the
 *	  end, if any. However often a hot key changes, it costs one write; without
 *	  that an old snapshot elsewhere, which keeps every dead version of the row in
 *	  the way, brings a stream of updates to a standstill.
 *
 *	  A change of the key is "the old key has no row" and "the new key has this
 *	  row". Written are first the deletes, then the updates, then the inserts; an
 *	  update that changes a column of another unique constraint is taken apart
 *	  into a delete and an insert, so that values that wander from row to row
 *	  always find their place free.
 *
 *	  While the table is being copied nothing cancels: every key that the batch
 *	  removed or left and that has no row at its end goes into snapshot_deleted,
 *	  also when the batch itself had made it, because a chunk that is read
 *	  already may hold it. And every row is looked for before it is written, because a chunk
 *	  may have brought it.
 *
 *	  Later an insert is believed to find no row. When one does, the violation
 *	  undoes the transaction, it is read again change by change (apply_careful.c),
 *	  and the table looks first from then on.
 *
 *	  A table without a key is a multiset of rows (heap_match.h): the batch holds
 *	  how many of each row come or go.
 *
 *	  A batch belongs to the open PostgreSQL transaction, in the memory of the
 *	  open target.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "access/xact.h"
#include "common/hashfn.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "apply/apply_private.h"
#include "chunk/chunk.h"
#include "heap/heap_key.h"
#include "heap/heap_lean.h"
#include "heap/heap_match.h"
#include "heap/heap_sql.h"
#include "util/util_wait.h"

/* What the batch comes to for one key. */
typedef struct BatchRow
{
	HeapTuple	tuple;			/* row that has the key at the end; NULL: none, or already written */
	CatalogReread *reread;		/* not NULL: a row has it, and the copy has to read it again; counts as none */
	bool		expected;		/* a row had the key before, says the first change */
	bool		exists;			/* a row has it at the end */
	bool		is_complete;	/* tuple was given back by heap_lean_update */
	Datum		key[FLEXIBLE_ARRAY_MEMBER];
} BatchRow;

typedef struct BatchEntry
{
	const Datum *key;
	BatchRow   *row;
	uint32		hash;
	char		status;
} BatchEntry;

#define SH_PREFIX batch
#define SH_ELEMENT_TYPE BatchEntry
#define SH_KEY_TYPE const Datum *
#define SH_KEY key
#define SH_HASH_KEY(tb, k) heap_key_hash((tb)->private_data, k)
#define SH_EQUAL(tb, a, b) heap_key_equal((tb)->private_data, a, b)
#define SH_STORE_HASH
#define SH_GET_HASH(tb, entry) (entry)->hash
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

struct ApplyBatch
{
	HeapMatch  *match;			/* a table without a key: all that is used of this */

	HeapKeyInfo *info;
	MemoryContext cxt;			/* rows: reset when the batch was written */
	batch_hash *by_key;			/* kept, with the size that it grew to */
	BatchRow  **rows;
	int			nrows;
	int			maxrows;
};

#define ROWS_FIRST 256

/* Memory for rows comes in such blocks. */
#define BLOCK_FIRST (64 * 1024)
#define BLOCK_MAX (1024 * 1024)

ApplyBatch *
apply_batch_create(HeapTarget *target)
{
	MemoryContext parent = target->estate->es_query_cxt;
	ApplyBatch *batch = MemoryContextAllocZero(parent, sizeof(ApplyBatch));

	if (target->nkey == 0)
	{
		batch->match = heap_match_create(target);
		return batch;
	}
	batch->info = heap_key_info(target);
	batch->cxt = GenerationContextCreate(parent, "cdc apply batch", 0, BLOCK_FIRST, BLOCK_MAX);
	batch->by_key = batch_create(parent, ROWS_FIRST, batch->info);
	batch->maxrows = ROWS_FIRST;
	batch->rows = MemoryContextAlloc(parent, sizeof(BatchRow *) * batch->maxrows);
	return batch;
}

/* ------------------------------------------------------------------------- collecting */

/* What the batch knows of a key; expected says it when this is its first change. */
static BatchRow *
find_row(ApplyBatch *batch, const Datum *key, bool expected)
{
	uint32		hash = heap_key_hash(batch->info, key);
	BatchEntry *entry;
	BatchRow   *row;
	bool		found;

	entry = batch_insert_hash(batch->by_key, key, hash, &found);
	if (found)
		return entry->row;

	row = palloc(offsetof(BatchRow, key) + sizeof(Datum) * batch->info->nparts);
	row->tuple = NULL;
	row->reread = NULL;
	row->expected = expected;
	row->exists = row->is_complete = false;
	heap_key_copy(batch->info, key, row->key);
	entry->key = row->key;
	entry->row = row;
	if (batch->nrows == batch->maxrows)
	{
		batch->maxrows *= 2;
		batch->rows = repalloc_huge(batch->rows, sizeof(BatchRow *) * batch->maxrows);
	}
	batch->rows[batch->nrows++] = row;
	return row;
}

ApplyBatchKey
apply_batch_look(const ApplyTable *table)
{
	ApplyBatch *batch = table->batch;
	HeapTarget *target = table->row->target;
	TupleTableSlot *held;
	Datum		key[INDEX_MAX_KEYS];
	BatchEntry *entry;

	heap_key_read(target, batch->info, target->search, key);
	entry = batch_lookup(batch->by_key, key);
	if (entry == NULL)
		return APPLY_BATCH_UNKNOWN;
	if (!entry->row->exists)
		return APPLY_BATCH_GONE;
	/* its tuple is freed when the key's next change is taken in, which this may be for */
	held = MakeSingleTupleTableSlot(RelationGetDescr(target->rel), &TTSOpsHeapTuple);
	ExecStoreHeapTuple(entry->row->tuple, held, false);
	heap_own_row(held, heap_target_stored(target));
	ExecDropSingleTupleTableSlot(held);
	return APPLY_BATCH_ROW;
}

static void
set_tuple(BatchRow *row, HeapTuple tuple)
{
	if (row->tuple != NULL)
		heap_freetuple(row->tuple);
	row->tuple = tuple;
	row->exists = tuple != NULL;
	row->reread = NULL;
}

void
apply_batch_reread(ApplyTable *table, const CatalogReread *entry)
{
	ApplyBatch *batch = table->batch;
	HeapTarget *target = table->row->target;
	MemoryContext old = MemoryContextSwitchTo(batch->cxt);
	CatalogReread *copy = palloc(sizeof(CatalogReread));
	Datum		key[INDEX_MAX_KEYS];
	BatchRow   *row;

	*copy = *entry;
	copy->condition = pstrdup(entry->condition);
	copy->gtid = entry->gtid ? pstrdup(entry->gtid) : NULL;
	if (!heap_row_same_key(table->row))
	{
		heap_key_read(target, batch->info, target->search, key);
		row = find_row(batch, key, true);
		set_tuple(row, NULL);
	}
	heap_key_read(target, batch->info, target->slot, key);
	row = find_row(batch, key, true);
	set_tuple(row, NULL);
	row->reread = copy;
	MemoryContextSwitchTo(old);
}

void
apply_batch_add(ApplyTable *table, CdcChangeOp op)
{
	ApplyBatch *batch = table->batch;
	HeapTarget *target = table->row->target;
	MemoryContext old;
	Datum		key[INDEX_MAX_KEYS];
	bool		same_key;

	if (batch->match != NULL)
	{
		if (op != CDC_INSERT)
			heap_match_add(batch->match, target->search, -1);
		if (op != CDC_DELETE)
			heap_match_add(batch->match, target->slot, 1);
		return;
	}

	old = MemoryContextSwitchTo(batch->cxt);
	same_key = op == CDC_UPDATE && heap_row_same_key(table->row);
	if (op == CDC_DELETE || (op == CDC_UPDATE && !same_key))
	{
		heap_key_read(target, batch->info, target->search, key);
		set_tuple(find_row(batch, key, true), NULL);
	}
	if (op != CDC_DELETE)
	{
		heap_key_read(target, batch->info, target->slot, key);
		set_tuple(find_row(batch, key, same_key),
				  heap_form_tuple(RelationGetDescr(target->rel), target->slot->tts_values,
								  target->slot->tts_isnull));
	}
	MemoryContextSwitchTo(old);
}

/* ---------------------------------------------------------------------------- writing */

static int
compare_rows(const void *a, const void *b, void *arg)
{
	return heap_key_compare(arg, (*(BatchRow *const *) a)->key, (*(BatchRow *const *) b)->key);
}

/* Keys that have no row at the end. look: a row may be there whatever the changes say. */
static void
write_deletes(ApplyTable *table, bool look)
{
	ApplyBatch *batch = table->batch;
	HeapTarget *target = table->row->target;

	for (int i = 0; i < batch->nrows; i++)
	{
		BatchRow   *row = batch->rows[i];
		bool		found;

		if (row->exists || !(row->expected || look))
			continue;
		util_check_interrupts();
		found = heap_lean_find(target, row->key);
		if (found)
			heap_lean_delete(target, row->key);
		table->delta.conflicts += !apply_table_is_copying(table) && apply_is_conflict(table, row->expected, found);
	}
}

/* Rows that are there; those that were not there are left for write_inserts. */
static void
write_updates(ApplyTable *table, bool look)
{
	ApplyBatch *batch = table->batch;
	HeapTarget *target = table->row->target;

	for (int i = 0; i < batch->nrows; i++)
	{
		BatchRow   *row = batch->rows[i];
		bool		found;

		if (!row->exists || !(row->expected || look))
			continue;
		util_check_interrupts();
		found = heap_lean_find(target, row->key);
		table->delta.conflicts += !apply_table_is_copying(table) && apply_is_conflict(table, row->expected, found);
		if (!found)
			continue;
		row->tuple = heap_lean_update(target, row->key, row->tuple);
		row->is_complete = true;
	}
}

static void
write_inserts(ApplyTable *table)
{
	ApplyBatch *batch = table->batch;

	for (int i = 0; i < batch->nrows; i++)
	{
		BatchRow   *row = batch->rows[i];

		if (row->tuple == NULL)
			continue;
		util_check_interrupts();
		heap_lean_insert(table->row->target, row->key, row->tuple, row->is_complete);
		row->tuple = NULL;
	}
}

/* A target of the SQL tier: what is there is looked at by the statements. */
static void
write_by_sql(ApplyTable *table)
{
	ApplyBatch *batch = table->batch;
	HeapTarget *target = table->row->target;

	heap_sql_begin(target);
	for (int i = 0; i < batch->nrows; i++)
	{
		BatchRow   *row = batch->rows[i];

		if (row->exists)
			heap_sql_put_tuple(target, row->tuple);
		else
		{
			heap_key_search(target, row->key);
			heap_sql_gone(target);
		}
	}
	heap_sql_end(target, false);
}

/* While chunks are open: which keys they must not bring. */
static void
note_deleted(Apply *apply, ApplyTable *table)
{
	ApplyBatch *batch = table->batch;
	HeapTarget *target = table->row->target;
	MemoryContext row_cxt = AllocSetContextCreate(batch->cxt, "cdc apply key", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(row_cxt);

	for (int i = 0; i < batch->nrows; i++)
	{
		BatchRow   *row = batch->rows[i];

		if (row->exists && !table->any_deleted)
			continue;
		heap_key_search(target, row->key);
		apply_note_key(apply, table, chunk_key_bytes(target, target->search), row->exists, row->reread);
		MemoryContextReset(row_cxt);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(row_cxt);
}

/* So many rows that the copy has to take away again when it has brought them: one note for each, also of equal ones. */
static void
note_debt(Apply *apply, ApplyTable *table, const HeapMatchRow *row, int64 count)
{
	HeapTarget *target = table->row->target;
	uint64		transaction = U64FromFullTransactionId(GetTopFullTransactionId());
	bytea	   *key;

	ExecForceStoreHeapTuple(row->tuple, target->search, false);
	key = chunk_key_bytes(target, target->search);
	for (; count > 0; count--)
	{
		bytea	   *numbered = chunk_key_number(key, transaction, table->debts++);

		catalog_deleted_add(apply->pipeline_id, table->table_id, numbered);
		table->any_deleted = true;
		pfree(numbered);
	}
	pfree(key);
}

/*
 * A table without a key. Rows that should go and are not there: those of letters have
 * nothing more to say. As for the others, while the table is being copied the copy is going to
 * bring them, and is told to take them away again; afterwards somebody else took them.
 */
static void
write_match(Apply *apply, ApplyTable *table)
{
	HeapMatch  *match = table->batch->match;

	if (heap_match_count(match) == 0)
		return;
	heap_match_write(match);
	for (int i = 0; i < heap_match_count(match); i++)
	{
		const HeapMatchRow *row = heap_match_row(match, i);
		int64		count;

		if (row->net == 0)
			continue;
		count = -row->net - apply_letters_take_rows(apply, table, row->tuple, -row->net);
		if (apply_table_is_copying(table))
			note_debt(apply, table, row, count);
		else
			table->delta.conflicts += count;
	}
	heap_match_reset(match);
}

/*
 * What is inserted needs no look at the table, so it can be written by itself, which tells whether this row is the one
 * that does not fit. Rows that go stay in the table's batch: whether before or after that, as many are left.
 */
void
apply_batch_insert_now(Apply *apply, ApplyTable *table, const CdcChange *change)
{
	ApplyBatch *batch = table->batch;

	if (table->inserts == NULL)
		table->inserts = apply_batch_create(table->row->target);
	table->batch = table->inserts;
	PushActiveSnapshot(GetTransactionSnapshot());
	apply_row(apply, table, change);
	apply_batch_write(apply, table);
	PopActiveSnapshot();
	table->batch = batch;
}

void
apply_batch_write(Apply *apply, ApplyTable *table)
{
	ApplyBatch *batch = table->batch;
	HeapTarget *target = table->row->target;
	bool		copying = apply_table_is_copying(table);
	bool		look = copying || table->look_first;

	if (batch->match != NULL)
	{
		write_match(apply, table);
		return;
	}
	if (batch->nrows == 0)
		return;

	if (batch->info->order != NULL)
		qsort_arg(batch->rows, batch->nrows, sizeof(BatchRow *), compare_rows, batch->info);

	if (target->tier == HEAP_TIER_SQL)
		write_by_sql(table);
	else
	{
		heap_lean_begin(target);
		write_deletes(table, look);
		write_updates(table, look);
		write_inserts(table);
		heap_lean_end(target);
	}
	if (copying)
		note_deleted(apply, table);

	MemoryContextReset(batch->cxt);
	batch_reset(batch->by_key);
	batch->nrows = 0;
}
