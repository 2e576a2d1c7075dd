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

/* Find the row with that key (Datums in index order); false when there is none. Locks nothing. */
extern bool heap_lean_find(HeapTarget *target, const Datum *key);

/*
 * Queue a row with that key; the tuple belongs to the target from here on.
 * is_complete: it was given back by heap_lean_update.
 */
extern void heap_lean_insert(HeapTarget *target, const Datum *key, HeapTuple tuple, bool is_complete);

/*
 * Act on the row that heap_lean_find found by that key. When somebody else changed
 * it in this moment it is looked for again; one that is gone then is inserted
 * by an update, and nothing to a delete. Tuples belong to the target.
 *
 * An update that changes a column of a unique or exclusion constraint other than
 * the key only deletes, and gives back the row to be inserted after all updates;
 * else it returns NULL.
 */
extern HeapTuple heap_lean_update(HeapTarget *target, const Datum *key, HeapTuple tuple);
extern void heap_lean_delete(HeapTarget *target, const Datum *key);

#endif							/* CDC_HEAP_LEAN_H */
