/*-------------------------------------------------------------------------
 *
 * heap_lean.h
 *	  Writing many rows of one target at once, with the least work for each.
 *
 * NOTES
 *	  For targets of tier HEAP_TIER_LEAN: no row trigger fires and no constraint
 *	  is checked later than at once. Rows come as heap tuples of the target's row
 *	  type, with the columns filled that the target's caller gives; the caller
 *	  has checked their NOT NULL (heap_target_check_not_null). What the executor
 *	  would do besides is done here: defaults, generated columns, check and
 *	  partition constraints, all indexes.
 *
 *	  heap_lean_begin (find | insert | update | delete)* heap_lean_end. In
 *	  between every key may be written once only (an update that becomes delete
 *	  and insert counts once); what was written is visible to look-ups after the
 *	  end. The order of calls is the caller's: a row that leaves a unique value
 *	  has to go before the one that takes it comes.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_HEAP_LEAN_H
#define CDC_HEAP_LEAN_H

#include "postgres.h"
#include "access/htup.h"

#include "heap/heap_target.h"

extern void heap_lean_begin(HeapTarget *target);

/* Writes what is still queued, too. */
extern void heap_lean_end(HeapTarget *target);

/* Find the row with that key (Datums in index order) -> target->found; false when there is none. Locks nothing. */
extern bool heap_lean_find(HeapTarget *target, const Datum *key);

/* Queue a row; the tuple belongs to the target from here on. is_complete: it came out of heap_lean_take_out. */
extern void heap_lean_insert(HeapTarget *target, HeapTuple tuple, bool is_complete);

/* Would that tuple in place of "found" change a column of a unique or exclusion constraint other than the key? */
extern bool heap_lean_changes_unique(HeapTarget *target, HeapTuple tuple);

/*
 * Act on "found", which has the key given. When somebody else changed that row
 * in this moment the row is looked for again; one that is gone then is inserted
 * by an update, and nothing to a delete. Tuples belong to the target.
 */
extern void heap_lean_update(HeapTarget *target, const Datum *key, HeapTuple tuple);
extern void heap_lean_delete(HeapTarget *target, const Datum *key);

/*
 * First half of an update as delete and insert: "found" is deleted. Returns the
 * row to insert, completed by what "found" held, which is the caller's; NULL
 * when the update had to be done whole.
 */
extern HeapTuple heap_lean_take_out(HeapTarget *target, const Datum *key, HeapTuple tuple);

#endif							/* CDC_HEAP_LEAN_H */
