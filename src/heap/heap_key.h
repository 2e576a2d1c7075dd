/*-------------------------------------------------------------------------
 *
 * heap_key.h
 *	  Keys of a target's rows as arrays of Datums: hash, equality, order.
 *
 * NOTES
 *	  Keys are equal when their bytes are: that a key column's type shows no two
 *	  values of the source as one, and no one as two, was checked when the target
 *	  was opened (schema_table_open). The order is for locality alone; it is
 *	  the index's own where comparing is cheap, else there is none.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_HEAP_KEY_H
#define CDC_HEAP_KEY_H

#include "postgres.h"
#include "utils/sortsupport.h"

#include "heap/heap_target.h"

typedef struct HeapKeyPart
{
	bool		by_value;
	int16		length;			/* typlen */
} HeapKeyPart;

typedef struct HeapKeyInfo
{
	int			nparts;
	HeapKeyPart *parts;
	SortSupport order;			/* one per part; NULL: keys are not sorted */
} HeapKeyInfo;

/* Lives as long as the target. */
extern HeapKeyInfo *heap_key_info(HeapTarget *target);

/* Key of a slot of the target's row type; Datums point into the slot. A null in it is an error of class 23. */
extern void heap_key_read(const HeapTarget *target, const HeapKeyInfo *info, TupleTableSlot *slot, Datum *key);

/* Copy; what the Datums point to goes into CurrentMemoryContext. */
extern void heap_key_copy(const HeapKeyInfo *info, const Datum *key, Datum *copy);

/* Put a key into target->search, all else null. */
extern void heap_key_search(HeapTarget *target, const Datum *key);

extern uint32 heap_key_hash(const HeapKeyInfo *info, const Datum *key);
extern bool heap_key_equal(const HeapKeyInfo *info, const Datum *a, const Datum *b);
extern int	heap_key_compare(const HeapKeyInfo *info, const Datum *a, const Datum *b);

#endif							/* CDC_HEAP_KEY_H */
