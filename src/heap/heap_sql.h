/*-------------------------------------------------------------------------
 *
 * heap_sql.h
 *	  Targets that only SQL can write to: foreign tables, views, partitioned
 *	  tables with foreign leaves.
 *
 * NOTES
 *	  For heap/ and the batches of apply/. Rows are collected in two tuplestores,
 *	  keys that are to have no row and rows that are to be there, and written by
 *	  one DELETE, one UPDATE and one INSERT over them. All three look at what is
 *	  there, so doing it all again comes to the same: that makes a foreign
 *	  target exact although its server may have committed when we had not.
 *
 *	  Lives with its target: begin (gone | put)* end, any number of times.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_HEAP_SQL_H
#define CDC_HEAP_SQL_H

#include "postgres.h"
#include "access/htup.h"

#include "heap/heap_target.h"

extern void heap_sql_begin(HeapTarget *target);

/* The key in target->search shall have no row. */
extern void heap_sql_gone(HeapTarget *target);

/* The row in target->slot resp. tuple shall be there. */
extern void heap_sql_put(HeapTarget *target);
extern void heap_sql_put_tuple(HeapTarget *target, HeapTuple tuple);

/* Write. insert_only: rows whose key is there already are left as they are. */
extern void heap_sql_end(HeapTarget *target, bool insert_only);

/* Read the row with the key in target->search into "stored", see heap_target_read. */
extern bool heap_sql_read(HeapTarget *target);

/* Is there a row with the key in target->search? Is there any row? */
extern bool heap_sql_exists(HeapTarget *target);
extern bool heap_sql_has_rows(HeapTarget *target);

#endif							/* CDC_HEAP_SQL_H */
