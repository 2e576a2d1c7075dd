/*-------------------------------------------------------------------------
 *
 * heap_lean.c
 *	  Writing many rows of one target at once, with the least work for each.
 *
 * NOTES
 *	  Look-ups go through one index scan that is kept open from begin to end,
 *	  inserts are collected and written page by page (table_multi_insert), role
 *	  and snapshot are switched once. What is left per row is what the heap and its
 *	  indexes need.
 *
 *	  The scan's snapshot was taken at the beginning. A row that another session
 *	  changed since is noticed by the table access method when it is written
 *	  (TM_Updated, TM_Deleted); that one row then goes the executor's way, which
 *	  waits, looks again and locks. A row that another session inserted under a
 *	  key of ours ends as a violation of the key, as it does there.
 *
 *	  Index scans allocate as they go, in the current context, what they keep to
 *	  their end; so everything that touches the scan runs in the target's memory.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/xact.h"
#include "catalog/pg_trigger.h"
#include "executor/executor.h"
#include "executor/nodeModifyTable.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "utils/datum.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat/pg_compat.h"
#include "heap/heap_key.h"
#include "heap/heap_lean.h"
#include "heap/heap_partition.h"

/* Rows that are collected before they are written, by number and size. */
#define QUEUE_ROWS 1000
#define QUEUE_BYTES 65536

/* Fewer rows than that are written one by one: multi_insert has a price of its own. */
#define QUEUE_WORTH 8

struct HeapLean
{
	bool		is_complete;	/* a row that the caller filled needs nothing more */
	Bitmapset  *unique_columns; /* of unique and exclusion constraints other than the key */
	UtilRoleSwitch sw;
	bool		started;		/* takes part in the batch */
	IndexScanDesc scan;			/* NULL: no look-up yet */
	CommandId	cid;
	TupleTableSlot *slot;		/* for the row of an update */
	TupleTableSlot **queue;
	int			nslots;			/* slots that were made */
	int			queued;			/* rows in them */
	Size		bytes;
};

/* ------------------------------------------------------------------ what is possible */

/* Does a row trigger fire, at once or later? */
static bool
row_trigger_fires(const HeapTarget *target)
{
	const TriggerDesc *triggers = target->rel->trigdesc;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];

		if (TRIGGER_FOR_ROW(trigger->tgtype) && heap_trigger_fires(trigger->tgenabled))
			return true;
	}
	return false;
}

bool
heap_lean_is_possible(const HeapTarget *target)
{
	const ResultRelInfo *rri = target->result_rel;

	if (row_trigger_fires(target))
		return false;
	for (int i = 0; i < rri->ri_NumIndices; i++)
	{
		if (!rri->ri_IndexRelationDescs[i]->rd_index->indimmediate)
			return false;
	}
	return true;
}

/* Columns of the target's unique and exclusion constraints, its key left out. Numbers are offset as in a RTE. */
static Bitmapset *
find_unique_columns(const HeapTarget *target)
{
	const ResultRelInfo *rri = target->result_rel;
	Bitmapset  *columns = NULL;

	for (int i = 0; i < rri->ri_NumIndices; i++)
	{
		const Form_pg_index form = rri->ri_IndexRelationDescs[i]->rd_index;
		IndexInfo  *info = rri->ri_IndexRelationInfo[i];

		if ((!form->indisunique && !form->indisexclusion) || form->indexrelid == target->key_index)
			continue;
		for (int j = 0; j < form->indnkeyatts; j++)
		{
			if (form->indkey.values[j] != 0)
				columns = bms_add_member(columns, form->indkey.values[j] - FirstLowInvalidHeapAttributeNumber);
		}
		pull_varattnos((Node *) info->ii_Expressions, 1, &columns);
		pull_varattnos((Node *) info->ii_Predicate, 1, &columns);
	}
	return columns;
}

/* Is a row that has all columns given ready to be written? */
static bool
given_is_complete(const HeapTarget *target)
{
	TupleDesc	desc = RelationGetDescr(target->rel);

	if (target->rel->rd_rel->relispartition)
		return false;
	if (desc->constr != NULL && (desc->constr->num_check > 0 || desc->constr->has_generated_stored))
		return false;
	for (int i = 0; i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped && target->given != NULL && !target->given[i])
			return false;
	}
	return true;
}

static HeapLean *
lean_of(HeapTargetState *state)
{
	HeapTarget *target = &state->base;
	HeapLean   *lean = state->lean;
	MemoryContext old;

	if (lean != NULL)
		return lean;

	old = MemoryContextSwitchTo(target->estate->es_query_cxt);
	lean = palloc0(sizeof(HeapLean));
	lean->is_complete = given_is_complete(target);
	lean->unique_columns = find_unique_columns(target);
	lean->slot = ExecInitExtraTupleSlot(target->estate, RelationGetDescr(target->rel), &TTSOpsHeapTuple);
	lean->queue = palloc0(sizeof(TupleTableSlot *) * QUEUE_ROWS);
	MemoryContextSwitchTo(old);
	state->lean = lean;
	return lean;
}

/* --------------------------------------------------------------------- begin and end */

/* Make ready for a batch: a target itself, or a leaf when its first row comes. */
static HeapLean *
start(HeapTarget *target)
{
	HeapLean   *lean = lean_of((HeapTargetState *) target);

	if (!lean->started)
	{
		lean->cid = GetCurrentCommandId(true);
		target->estate->es_output_cid = lean->cid;
		lean->started = true;
	}
	return lean;
}

void
heap_lean_begin(HeapTarget *target)
{
	HeapLean   *lean = lean_of((HeapTargetState *) target);

	Assert(target->tier == HEAP_TIER_LEAN);
	PushActiveSnapshot(GetLatestSnapshot());
	util_role_switch_begin(target->write_as, &lean->sw);
	(void) start(target);
}

/* Index entries of a row that was written. */
static void
insert_index_entries(HeapTarget *target, TupleTableSlot *slot)
{
	if (target->result_rel->ri_NumIndices > 0)
		cdc_insert_index_tuples(target->result_rel, slot, target->estate, false, false);
	ResetPerTupleExprContext(target->estate);
}

static void
write_queue(HeapTarget *target, HeapLean *lean)
{
	MemoryContext old;

	if (lean->queued == 0)
		return;

	old = MemoryContextSwitchTo(GetPerTupleMemoryContext(target->estate));
	if (lean->queued >= QUEUE_WORTH)
		table_multi_insert(target->rel, lean->queue, lean->queued, lean->cid, 0, NULL);
	else
	{
		for (int i = 0; i < lean->queued; i++)
			table_tuple_insert(target->rel, lean->queue[i], lean->cid, 0, NULL);
	}
	ResetPerTupleExprContext(target->estate);

	for (int i = 0; i < lean->queued; i++)
	{
		insert_index_entries(target, lean->queue[i]);
		ExecClearTuple(lean->queue[i]);
	}
	MemoryContextSwitchTo(old);
	lean->queued = 0;
	lean->bytes = 0;
}

/* End the batch for a target itself or a leaf. */
static void
finish(HeapTarget *target)
{
	HeapLean   *lean = lean_of((HeapTargetState *) target);

	if (!lean->started)
		return;
	write_queue(target, lean);
	if (lean->scan != NULL)
		index_endscan(lean->scan);
	lean->scan = NULL;
	if (target->found != NULL)
		ExecClearTuple(target->found);
	ExecClearTuple(lean->slot);
	lean->started = false;
}

void
heap_lean_end(HeapTarget *target)
{
	HeapTargetState *state = (HeapTargetState *) target;

	if (state->partitions != NULL)
	{
		ListCell   *lc;

		foreach(lc, heap_partition_leaves(state))
			finish(lfirst(lc));
	}
	finish(target);
	util_role_switch_end(&state->lean->sw);
	PopActiveSnapshot();
	CommandCounterIncrement();
}

/* The target that holds, or will hold, the row with a key: the target itself or the leaf. */
static HeapTarget *
holder(HeapTarget *target, const Datum *key)
{
	HeapTargetState *state = (HeapTargetState *) target;
	HeapTarget *leaf;

	if (state->partitions == NULL)
		return target;
	leaf = heap_partition_of_key(state, key);
	(void) start(leaf);
	return leaf;
}

/* Likewise after heap_lean_find, with the tuple brought into the leaf's order. */
static HeapTarget *
holder_of_found(HeapTarget *target, HeapTuple *tuple)
{
	HeapTargetState *state = (HeapTargetState *) target;

	if (state->partitions == NULL)
		return target;
	if (tuple != NULL)
		*tuple = heap_partition_convert_tuple(state, *tuple);
	return heap_partition_last(state);
}

/* --------------------------------------------------------------------------- look-up */

bool
heap_lean_find(HeapTarget *target, const Datum *key)
{
	HeapTarget *where = holder(target, key);
	HeapTargetState *state = (HeapTargetState *) where;
	HeapLean   *lean = state->lean;
	MemoryContext old = MemoryContextSwitchTo(where->estate->es_query_cxt);
	bool		found;

	for (int i = 0; i < where->nkey; i++)
		state->keys[i].sk_argument = key[i];
	if (lean->scan == NULL)
		lean->scan = cdc_index_beginscan(where->rel, state->index, GetActiveSnapshot(), where->nkey);
	index_rescan(lean->scan, state->keys, where->nkey, NULL, 0);
	found = index_getnext_slot(lean->scan, ForwardScanDirection, where->found);
	MemoryContextSwitchTo(old);
	return found;
}

/* ---------------------------------------------------------------------------- writing */

/* Put a tuple's values into target->slot. */
static void
store_values(HeapTarget *target, HeapTuple tuple)
{
	TupleTableSlot *slot = target->slot;

	ExecClearTuple(slot);
	heap_deform_tuple(tuple, RelationGetDescr(target->rel), slot->tts_values, slot->tts_isnull);
	ExecStoreVirtualTuple(slot);
}

/*
 * Do for a row what only the target's definition asks for. Returns the tuple to
 * write: the given one, or a new one in its place, in the caller's memory.
 */
static HeapTuple
complete_tuple(HeapTargetState *state, HeapTuple tuple, bool is_update)
{
	HeapTarget *target = &state->base;
	ResultRelInfo *rri = target->result_rel;
	TupleConstr *constr = RelationGetDescr(target->rel)->constr;
	HeapTuple	result;

	if (state->lean->is_complete)
		return tuple;

	store_values(target, tuple);
	heap_fill_rest(state, is_update);
	if (constr != NULL && constr->has_generated_stored)
		ExecComputeStoredGenerated(rri, target->estate, target->slot, is_update ? CMD_UPDATE : CMD_INSERT);
	if (constr != NULL)
		ExecConstraints(rri, target->slot, target->estate);
	if (target->rel->rd_rel->relispartition)
		ExecPartitionCheck(rri, target->slot, target->estate, true);
	result = ExecCopySlotHeapTuple(target->slot);
	ExecClearTuple(target->slot);
	ResetPerTupleExprContext(target->estate);
	heap_freetuple(tuple);
	return result;
}

/* Queue a row that is complete. */
static void
queue_tuple(HeapTarget *target, HeapLean *lean, HeapTuple tuple)
{
	if (lean->queued == lean->nslots)
	{
		MemoryContext old = MemoryContextSwitchTo(target->estate->es_query_cxt);

		lean->queue[lean->nslots++] = ExecInitExtraTupleSlot(target->estate, RelationGetDescr(target->rel),
															 &TTSOpsHeapTuple);
		MemoryContextSwitchTo(old);
	}
	ExecStoreHeapTuple(tuple, lean->queue[lean->queued++], true);
	lean->bytes += tuple->t_len;
	if (lean->queued == QUEUE_ROWS || lean->bytes >= QUEUE_BYTES)
		write_queue(target, lean);
}

void
heap_lean_insert(HeapTarget *target, const Datum *key, HeapTuple tuple, bool is_complete)
{
	HeapTarget *where = holder(target, key);
	HeapTargetState *state = (HeapTargetState *) where;

	if (!is_complete)
	{
		if (where != target)
			tuple = heap_partition_convert_tuple((HeapTargetState *) target, tuple);
		tuple = complete_tuple(state, tuple, false);
	}
	queue_tuple(where, state->lean, tuple);
}

/* Would that tuple in place of "found" change a column of a unique or exclusion constraint other than the key? */
static bool
changes_unique(HeapTarget *target, HeapTuple tuple)
{
	HeapLean   *lean = ((HeapTargetState *) target)->lean;
	TupleDesc	desc = RelationGetDescr(target->rel);
	int			i = -1;

	while ((i = bms_next_member(lean->unique_columns, i)) >= 0)
	{
		AttrNumber	attnum = i + FirstLowInvalidHeapAttributeNumber;
		Form_pg_attribute att;
		Datum		before;
		Datum		after;
		bool		before_null;
		bool		after_null;

		if (attnum <= 0)
			return true;		/* an expression over the whole row, or a system column */
		att = TupleDescAttr(desc, attnum - 1);
		if (target->given != NULL && !target->given[attnum - 1])
		{
			if (att->attgenerated)
				return true;
			continue;			/* keeps its value */
		}
		before = slot_getattr(target->found, attnum, &before_null);
		after = heap_getattr(tuple, attnum, desc, &after_null);
		if (before_null != after_null ||
			(!before_null && !datum_image_eq(before, after, att->attbyval, att->attlen)))
			return true;
	}
	return false;
}

/* Another session was quicker: write this row as the executor does, which waits and looks again. */
static void
write_slowly(HeapTarget *target, const Datum *key, HeapTuple tuple)
{
	ExecClearTuple(target->found);
	heap_key_search(target, key);
	if (tuple != NULL)
		store_values(target, tuple);
	if (!heap_target_find(target))
	{
		if (tuple != NULL)
			heap_target_insert(target);
	}
	else if (tuple != NULL)
		heap_target_update(target);
	else
		heap_target_delete(target);
}

bool
heap_lean_delete_tuple(HeapTarget *target, ItemPointer tid)
{
	TM_FailureData failure;

	CheckCmdReplicaIdentity(target->rel, CMD_DELETE);
	return table_tuple_delete(target->rel, tid, ((HeapTargetState *) target)->lean->cid,
							  GetActiveSnapshot(), InvalidSnapshot, true, &failure, false) == TM_Ok;
}

/* Replace "found" in its place. */
static void
update_found(HeapTarget *target, const Datum *key, HeapTuple tuple)
{
	HeapLean   *lean = ((HeapTargetState *) target)->lean;
	ItemPointerData tid = target->found->tts_tid;
	bool		update_indexes;
	bool		only_summarizing;
	bool		done;
	MemoryContext old;

	CheckCmdReplicaIdentity(target->rel, CMD_UPDATE);
	ExecStoreHeapTuple(tuple, lean->slot, false);
	old = MemoryContextSwitchTo(GetPerTupleMemoryContext(target->estate));
	done = cdc_table_tuple_update(target->rel, &tid, lean->slot, lean->cid, GetActiveSnapshot(),
								  &update_indexes, &only_summarizing) == TM_Ok;
	if (done && update_indexes && target->result_rel->ri_NumIndices > 0)
		cdc_insert_index_tuples(target->result_rel, lean->slot, target->estate, true, only_summarizing);
	MemoryContextSwitchTo(old);
	if (!done)
		write_slowly(target, key, tuple);
	ResetPerTupleExprContext(target->estate);
	ExecClearTuple(lean->slot);
}

HeapTuple
heap_lean_update(HeapTarget *target, const Datum *key, HeapTuple tuple)
{
	HeapTarget *where = holder_of_found(target, &tuple);
	bool		takes_apart = changes_unique(where, tuple);

	tuple = complete_tuple((HeapTargetState *) where, tuple, true);
	if (!takes_apart)
		update_found(where, key, tuple);
	else if (heap_lean_delete_tuple(where, &where->found->tts_tid))
		return tuple;
	else
		write_slowly(where, key, tuple);
	heap_freetuple(tuple);
	return NULL;
}

void
heap_lean_delete(HeapTarget *target, const Datum *key)
{
	HeapTarget *where = holder_of_found(target, NULL);

	if (!heap_lean_delete_tuple(where, &where->found->tts_tid))
		write_slowly(where, key, NULL);
}
