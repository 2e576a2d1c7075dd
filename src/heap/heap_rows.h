/*-------------------------------------------------------------------------
 *
 * heap_rows.h
 *	  Rows of a target found by other columns than its key.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_HEAP_ROWS_H
#define CDC_HEAP_ROWS_H

#include "postgres.h"
#include "utils/tuplestore.h"

#include "heap/heap_target.h"

/*
 * Rows in which each of n attributes (by number) equals a value, not NULL; as
 * tuples of the target's row type. What this transaction wrote counts. The store
 * goes to disk when it is large; the caller ends it (tuplestore_end).
 */
extern Tuplestorestate *heap_rows_equal(HeapTarget *target, int n, const AttrNumber *attnums, const Datum *values);

#endif							/* CDC_HEAP_ROWS_H */
