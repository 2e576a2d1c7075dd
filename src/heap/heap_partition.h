/*-------------------------------------------------------------------------
 *
 * heap_partition.h
 *	  Partitioned targets: which leaf a row belongs to.
 *
 * NOTES
 *	  For heap/ alone: whoever writes to a target need not know that it is
 *	  partitioned. The primary key of a partitioned table holds all columns that
 *	  it is partitioned by, so the key alone says the leaf, and a row never moves
 *	  from one leaf to another while it keeps its key. Leaves are opened when the
 *	  first row goes there, as targets of their own; rows are brought into their
 *	  column order when that differs.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_HEAP_PARTITION_H
#define CDC_HEAP_PARTITION_H

#include "postgres.h"

#include "heap/heap_private.h"

/* Prepare routing for a partitioned target. */
extern HeapPartitions *heap_partition_open(HeapTargetState *parent);
extern void heap_partition_close(HeapPartitions *partitions);

/* Leaf of the row or key in slot, which is of the parent's row type. Throws (class 23) when there is none. */
extern HeapTarget *heap_partition_of_slot(HeapTargetState *parent, TupleTableSlot *slot);
extern HeapTarget *heap_partition_of_key(HeapTargetState *parent, const Datum *key);

/* The leaf that was found last. */
extern HeapTarget *heap_partition_last(const HeapTargetState *parent);

/* Bring a row into the order of the leaf found last. The slots are virtual; the tuple may be replaced. */
extern void heap_partition_convert_slot(const HeapTargetState *parent, TupleTableSlot *from, TupleTableSlot *to);
extern HeapTuple heap_partition_convert_tuple(const HeapTargetState *parent, HeapTuple tuple);

/* All leaves opened so far. */
extern List *heap_partition_leaves(const HeapTargetState *parent);

/* Does any leaf hold a row? */
extern bool heap_partition_has_rows(const HeapTarget *target);

#endif							/* CDC_HEAP_PARTITION_H */
