/*-------------------------------------------------------------------------
 *
 * heap_read.c
 *	  The row that a target has under a key, read whole.
 *
 * NOTES
 *	  For changes that do not tell all of a row. The row comes as values of the
 *	  reader's own: nothing of it points into a page or into storage that
 *	  another session could take away. Nothing is locked.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/tupconvert.h"
#include "executor/executor.h"
#include "utils/datum.h"
#include "utils/rel.h"

#include "compat/pg_compat.h"
#include "heap/heap_partition.h"
#include "heap/heap_private.h"
#include "heap/heap_sql.h"

Datum
heap_own_value(Datum value, Form_pg_attribute att)
{
	if (att->attbyval)
		return value;
	if (att->attlen == -1 && VARATT_IS_EXTERNAL(DatumGetPointer(value)))
		return PointerGetDatum(detoast_external_attr((struct varlena *) DatumGetPointer(value)));
	return datumCopy(value, false, att->attlen);
}

void
heap_own_row(TupleTableSlot *from, TupleTableSlot *to)
{
	TupleDesc	desc = to->tts_tupleDescriptor;

	slot_getallattrs(from);
	ExecClearTuple(to);
	for (int i = 0; i < desc->natts; i++)
	{
		to->tts_isnull[i] = from->tts_isnull[i];
		to->tts_values[i] = from->tts_isnull[i] ? (Datum) 0
			: heap_own_value(from->tts_values[i], TupleDescAttr(desc, i));
	}
	ExecStoreVirtualTuple(to);
}

void
heap_set_row(TupleTableSlot *to, const Datum *values, const bool *isnull)
{
	int			natts = to->tts_tupleDescriptor->natts;

	ExecClearTuple(to);
	memcpy(to->tts_values, values, sizeof(Datum) * natts);
	memcpy(to->tts_isnull, isnull, sizeof(bool) * natts);
	ExecStoreVirtualTuple(to);
}

TupleTableSlot *
heap_target_stored(HeapTarget *target)
{
	if (target->stored == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(target->estate->es_query_cxt);

		target->stored = ExecInitExtraTupleSlot(target->estate, RelationGetDescr(target->rel), &TTSOpsVirtual);
		MemoryContextSwitchTo(old);
	}
	return target->stored;
}

/* A leaf's row in the order of the partitioned table's columns. */
static void
convert_from_leaf(HeapTarget *target, HeapTarget *leaf)
{
	TupleTableSlot *to = heap_target_stored(target);
	TupleConversionMap *map = convert_tuples_by_name(RelationGetDescr(leaf->rel), RelationGetDescr(target->rel));

	if (map != NULL)
	{
		execute_attr_map_slot(map->attrMap, leaf->stored, to);
		free_conversion_map(map);
	}
	else
		ExecCopySlot(to, leaf->stored);
}

bool
heap_target_read(HeapTarget *target)
{
	HeapTargetState *state = (HeapTargetState *) target;
	bool		found;

	if (target->tier == HEAP_TIER_SQL)
		return heap_sql_read(target);
	if (state->partitions != NULL)
	{
		HeapTarget *leaf = heap_partition_of_slot(state, target->search);

		heap_partition_convert_slot(state, target->search, leaf->search);
		if (!heap_target_read(leaf))
			return false;
		convert_from_leaf(target, leaf);
		return true;
	}
	found = heap_target_see(target);
	if (found)
		heap_own_row(target->found, heap_target_stored(target));
	ExecClearTuple(target->found);
	return found;
}
