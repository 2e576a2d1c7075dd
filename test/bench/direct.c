/*-------------------------------------------------------------------------
 *
 * direct.c
 *	  The plain loop that applying changes is compared with.
 *
 * NOTES
 *	  For measuring only; never installed. A procedure that applies a list of
 *	  changes to a table as directly as PostgreSQL lets a module do it:
 *
 *	  create procedure bench_direct(target regclass, changes regclass,
 *	      batch int, inout seconds float8) as '.../direct' language c
 *
 *	  "changes" is a table with a "char" column (i, u, d) and then the columns of
 *	  the target, of which the first one, a bigint, is the primary key; its
 *	  physical order is the order of the changes. It is read into memory first,
 *	  which is not measured. Then for each batch of changes, in a transaction of
 *	  its own: sort by key (stable), look each key up in one index scan that
 *	  stays open, table_tuple_update or table_tuple_delete, index entries where
 *	  an update was not HOT; runs of inserts by table_multi_insert.
 *
 *	  Nothing is checked that the extension has to check: no triggers,
 *	  constraints, rights; a key that is not found is an error.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat/pg_compat.h"

PG_MODULE_MAGIC;

#define MULTI_INSERT_ROWS 1000

typedef struct Change
{
	int64		key;
	int			seq;			/* order among changes of the same key */
	char		op;
	HeapTuple	row;
} Change;

/* The target, open for one batch. */
typedef struct Target
{
	Relation	rel;
	Relation	index;
	EState	   *estate;
	ResultRelInfo *result;
	IndexScanDesc scan;
	TupleTableSlot *found;
	TupleTableSlot *row;
	TupleTableSlot **pending;	/* inserts that are not written yet */
	int			npending;
	CommandId	cid;
} Target;

static int
compare_changes(const void *a, const void *b)
{
	const Change *x = a;
	const Change *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->seq - y->seq;
}

/* All changes of the table, as rows of the target, in the current context. */
static Change *
read_changes(Oid changes_relid, Oid target_relid, int *count)
{
	Relation	rel = table_open(changes_relid, AccessShareLock);
	Relation	target = table_open(target_relid, AccessShareLock);
	TupleDesc	desc = RelationGetDescr(target);
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	TableScanDesc scan;
	int			capacity = 1024;
	Change	   *changes = palloc(sizeof(Change) * capacity);

	if (RelationGetDescr(rel)->natts != desc->natts + 1 || TupleDescAttr(desc, 0)->atttypid != INT8OID)
		elog(ERROR, "the changes do not fit the target");
	*count = 0;
	scan = table_beginscan_strat(rel, GetActiveSnapshot(), 0, NULL, true, false);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		Change	   *change;

		if (*count == capacity)
		{
			capacity *= 2;
			changes = repalloc_huge(changes, sizeof(Change) * capacity);
		}
		slot_getallattrs(slot);
		change = &changes[*count];
		change->op = DatumGetChar(slot->tts_values[0]);
		change->key = DatumGetInt64(slot->tts_values[1]);
		change->seq = (*count)++;
		change->row = heap_form_tuple(desc, slot->tts_values + 1, slot->tts_isnull + 1);
		change->row->t_tableOid = target_relid;
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	table_close(target, NoLock);
	table_close(rel, NoLock);
	return changes;
}

static void
target_open(Target *target, Oid relid)
{
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	ScanKeyData key;

	target->rel = table_open(relid, RowExclusiveLock);
	/* its only index */
	target->index = index_open(linitial_oid(RelationGetIndexList(target->rel)), RowExclusiveLock);
	target->estate = CreateExecutorState();
	MemoryContextSwitchTo(target->estate->es_query_cxt);

	rte->rtekind = RTE_RELATION;
	rte->relid = relid;
	rte->relkind = RELKIND_RELATION;
	rte->rellockmode = AccessShareLock;
	cdc_init_range_table(target->estate, rte, NULL, NULL);
	target->result = makeNode(ResultRelInfo);
	InitResultRelInfo(target->result, target->rel, 1, NULL, 0);
	ExecOpenIndices(target->result, false);

	target->found = table_slot_create(target->rel, &target->estate->es_tupleTable);
	target->row = ExecInitExtraTupleSlot(target->estate, RelationGetDescr(target->rel), &TTSOpsHeapTuple);
	target->pending = palloc0(sizeof(TupleTableSlot *) * MULTI_INSERT_ROWS);
	target->npending = 0;
	target->cid = GetCurrentCommandId(true);
	target->scan = cdc_index_beginscan(target->rel, target->index, GetActiveSnapshot(), 1);
	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(0));
	index_rescan(target->scan, &key, 1, NULL, 0);
}

static void
insert_index_entries(Target *target, TupleTableSlot *slot, bool is_update, bool only_summarizing)
{
	cdc_insert_index_tuples(target->result, slot, target->estate, is_update, only_summarizing);
	ResetPerTupleExprContext(target->estate);
}

static void
flush_inserts(Target *target, BulkInsertState bulk)
{
	if (target->npending == 0)
		return;
	table_multi_insert(target->rel, target->pending, target->npending, target->cid, 0, bulk);
	for (int i = 0; i < target->npending; i++)
	{
		insert_index_entries(target, target->pending[i], false, false);
		ExecClearTuple(target->pending[i]);
	}
	target->npending = 0;
}

static void
add_insert(Target *target, BulkInsertState bulk, const Change *change)
{
	TupleTableSlot **slot = &target->pending[target->npending];

	if (*slot == NULL)
		*slot = ExecInitExtraTupleSlot(target->estate, RelationGetDescr(target->rel), &TTSOpsHeapTuple);
	ExecStoreHeapTuple(change->row, *slot, false);
	if (++target->npending == MULTI_INSERT_ROWS)
		flush_inserts(target, bulk);
}

/* Make what was done so far visible: the next change meets a key for the second time. */
static void
next_command(Target *target)
{
	CommandCounterIncrement();
	UpdateActiveSnapshotCommandId();
	target->cid = GetCurrentCommandId(true);
}

static void
change_row(Target *target, const Change *change)
{
	ScanKeyData key;
	TM_Result	result;
	TM_FailureData failure;
	bool		indexes = false;
	bool		only_summarizing = false;

	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(change->key));
	index_rescan(target->scan, &key, 1, NULL, 0);
	if (!index_getnext_slot(target->scan, ForwardScanDirection, target->found))
		elog(ERROR, "key " INT64_FORMAT " is not there", change->key);

	if (change->op == 'd')
		result = table_tuple_delete(target->rel, &target->found->tts_tid, target->cid, GetActiveSnapshot(),
									InvalidSnapshot, true, &failure, false);
	else
	{
		ExecStoreHeapTuple(change->row, target->row, false);
		result = cdc_table_tuple_update(target->rel, &target->found->tts_tid, target->row, target->cid,
										GetActiveSnapshot(), &indexes, &only_summarizing);
		if (result == TM_Ok && indexes)
			insert_index_entries(target, target->row, true, only_summarizing);
	}
	if (result != TM_Ok)
		elog(ERROR, "key " INT64_FORMAT ": result %d", change->key, (int) result);
}

static void
target_close(Target *target)
{
	EState	   *estate = target->estate;

	index_endscan(target->scan);
	ExecCloseIndices(target->result);
	ExecResetTupleTable(estate->es_tupleTable, false);
	index_close(target->index, NoLock);
	table_close(target->rel, NoLock);
	FreeExecutorState(estate);
}

static void
apply_batch(Oid relid, Change *changes, int count)
{
	MemoryContext caller = CurrentMemoryContext;
	BulkInsertState bulk = GetBulkInsertState();
	Target		target;

	qsort(changes, count, sizeof(Change), compare_changes);
	PushActiveSnapshot(GetTransactionSnapshot());
	target_open(&target, relid);
	for (int i = 0; i < count; i++)
	{
		if (i > 0 && changes[i].key == changes[i - 1].key)
		{
			flush_inserts(&target, bulk);
			next_command(&target);
		}
		if (changes[i].op == 'i')
			add_insert(&target, bulk, &changes[i]);
		else
			change_row(&target, &changes[i]);
		CHECK_FOR_INTERRUPTS();
	}
	flush_inserts(&target, bulk);
	FreeBulkInsertState(bulk);
	target_close(&target);
	PopActiveSnapshot();
	MemoryContextSwitchTo(caller);
}

PG_FUNCTION_INFO_V1(bench_direct);

Datum
bench_direct(PG_FUNCTION_ARGS)
{
	Oid			target = PG_GETARG_OID(0);
	Oid			changes_relid = PG_GETARG_OID(1);
	int			batch = PG_GETARG_INT32(2);
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "bench changes", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;
	Change	   *changes;
	int			count;
	instr_time	start;
	instr_time	end;
	TupleDesc	result_desc;
	Datum		seconds;
	bool		null = false;

	SPI_connect_ext(SPI_OPT_NONATOMIC);
	old = MemoryContextSwitchTo(context);
	changes = read_changes(changes_relid, target, &count);
	MemoryContextSwitchTo(old);
	SPI_commit();

	INSTR_TIME_SET_CURRENT(start);
	for (int i = 0; i < count; i += batch)
	{
		apply_batch(target, changes + i, Min(batch, count - i));
		SPI_commit();
	}
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	SPI_finish();
	MemoryContextDelete(context);

	if (get_call_result_type(fcinfo, NULL, &result_desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "the last argument must be INOUT");
	seconds = Float8GetDatum(INSTR_TIME_GET_DOUBLE(end));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(result_desc), &seconds, &null)));
}
