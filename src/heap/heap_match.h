/*-------------------------------------------------------------------------
 *
 * heap_match.h
 *	  Rows of a target without a key: told apart by all they hold.
 *
 * NOTES
 *	  Such a table is a multiset of rows. Changes are added up per row image (an
 *	  update takes one away and adds one), and what they come to is written at
 *	  once: rows that are too many are looked for in one scan of the table,
 *	  however many they are, and as many of each are deleted as there are too many,
 *	  never more. Images are equal when the bytes of all columns are that the
 *	  source has; columns that only the target has do not count.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_HEAP_MATCH_H
#define CDC_HEAP_MATCH_H

#include "postgres.h"
#include "access/htup.h"

#include "heap/heap_target.h"

/* One row image and how many of it are to come (above 0) or to go (below). */
typedef struct HeapMatchRow
{
	HeapTuple	tuple;
	Datum	   *values;			/* of all attributes, pointing into tuple */
	bool	   *nulls;
	int64		net;
} HeapMatchRow;

typedef struct HeapMatch HeapMatch;

/* Lives as long as the target, which is of the lean tier and keyless. */
extern HeapMatch *heap_match_create(HeapTarget *target);

/* Add net rows like the one in slot, which is of the target's row type. */
extern void heap_match_add(HeapMatch *match, TupleTableSlot *slot, int64 net);

/* Rows that are held, in memory: "for" over them. */
extern int	heap_match_count(const HeapMatch *match);
extern HeapMatchRow *heap_match_row(HeapMatch *match, int i);

/*
 * Delete and insert. What could not be deleted, because it is not there, is left
 * in the rows' net (below 0); heap_match_reset then forgets all rows.
 */
extern void heap_match_write(HeapMatch *match);
extern void heap_match_reset(HeapMatch *match);

/*
 * Walk the whole target once and delete the rows that decide says; what other
 * sessions change in this moment is passed over. Deleted is visible afterwards.
 */
typedef enum HeapMatchVerdict
{
	HEAP_MATCH_KEEP,
	HEAP_MATCH_DELETE,
	HEAP_MATCH_STOP				/* keep, and all that follow too */
} HeapMatchVerdict;

typedef HeapMatchVerdict (*HeapMatchDecide) (TupleTableSlot *slot, void *arg);
extern void heap_match_scan(HeapTarget *target, HeapMatchDecide decide, void *arg);

#endif							/* CDC_HEAP_MATCH_H */
