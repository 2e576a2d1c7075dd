/*-------------------------------------------------------------------------
 *
 * heap_bulk.h
 *	  Inserting many rows whose keys are all different, as a copy does.
 *
 * NOTES
 *	  begin (exists | insert)* end, whatever the target's tier is. The row stands
 *	  in target->slot and, for exists, its key in target->search. Rows become
 *	  visible to look-ups at the end.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_HEAP_BULK_H
#define CDC_HEAP_BULK_H

#include "postgres.h"

#include "heap/heap_target.h"

extern void heap_bulk_begin(HeapTarget *target);

/*
 * Is there a row with search's key, seen since the beginning? In the SQL tier
 * always false: there the insert itself leaves out rows that exist.
 */
extern bool heap_bulk_exists(HeapTarget *target);

/* The target keeps a copy of the row until it is written. */
extern void heap_bulk_insert(HeapTarget *target);
extern void heap_bulk_end(HeapTarget *target);

#endif							/* CDC_HEAP_BULK_H */
