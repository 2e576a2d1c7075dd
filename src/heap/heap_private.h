/*-------------------------------------------------------------------------
 *
 * heap_private.h
 *	  What the files of heap/ share among themselves only.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_HEAP_PRIVATE_H
#define CDC_HEAP_PRIVATE_H

#include "postgres.h"
#include "access/genam.h"
#include "access/skey.h"
#include "executor/executor.h"

#include "heap/heap_target.h"
#include "util/util_role.h"

/* The lean tier's part of a target, see heap_lean.c. */
typedef struct HeapLean HeapLean;

/* Routing to the leaves of a partitioned target, see heap_partition.h. */
typedef struct HeapPartitions HeapPartitions;

/* The SQL tier's part of a target, see heap_sql.c. */
typedef struct HeapSql HeapSql;

/* What callers of heap/ have no business with. */
typedef struct HeapTargetState
{
	HeapTarget	base;
	EPQState	epq;
	Relation	index;			/* primary key index, open; NULL in the SQL tier, and without a key */
	ScanKey		keys;			/* equality on each key column; argument filled per look-up */
	ExprState **defaults;		/* per attribute that the caller does not give; NULL: null */
	HeapLean   *lean;			/* NULL: not used yet */
	HeapPartitions *partitions; /* NULL: not partitioned, or written by SQL */
	HeapSql    *sql;			/* NULL: not used yet */
} HeapTargetState;

/* Would a trigger with that tgenabled fire in this session? */
extern bool heap_trigger_fires(char tgenabled);

/* Complete target->slot: on an insert with defaults, on an update with what "found" holds. */
extern void heap_fill_rest(HeapTargetState *state, bool is_update);

/* Find the row with search's key in a plain table, seen with a snapshot taken now, into "found", which holds its page. */
extern bool heap_target_see(HeapTarget *target);

/* Open a leaf of a partitioned target, with the rights that the parent has. */
extern HeapTarget *heap_target_open_leaf(Oid relid, const HeapTarget *parent);

/* Delete one row of the target, between heap_lean_begin and _end; false when another session changed it. */
extern bool heap_lean_delete_tuple(HeapTarget *target, ItemPointer tid);

/* Can rows of the target be written by the lean tier? */
extern bool heap_lean_is_possible(const HeapTarget *target);

#endif							/* CDC_HEAP_PRIVATE_H */
