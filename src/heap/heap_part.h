/*-------------------------------------------------------------------------
 *
 * heap_part.h
 *	  A source table's part of rows that several source tables fill (option
 *	  transforms, "target": "partial").
 *
 * NOTES
 *	  A row's column cdc_parts has the names of the parts that it has: "the row is
 *	  there", for one source table, is "its part is there". The row goes when its
 *	  last part does.
 *
 *	  Who writes holds the target's lock (catalog_lock_target) to the end of the
 *	  transaction: so of two tables that bring the same new key one inserts the
 *	  row and the other finds it.
 *
 *	  What is a table's own is kept with its state, in place of the "own rows" of
 *	  heap_shard.h: {"part": name, "columns": [names]}.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_HEAP_PART_H
#define CDC_HEAP_PART_H

#include "postgres.h"

#include "heap/heap_row.h"

/* Does a row write a part only? */
extern bool heap_part_is_used(const HeapRow *row);

/* Has the row with search's key that part, seen with a snapshot taken now? Reads the row into target->stored. */
extern bool heap_part_is_there(HeapRow *row);

/* The same of a row that somebody else looks at: value of its column cdc_parts. */
extern bool heap_part_is_in(Datum parts, const char *part);

/* Put target->slot, whose key is in search, into the row that is there, or into a new one. Had it the part? */
extern bool heap_part_put(HeapRow *row);

/* Take the part from the row with search's key, and the row with its last part. Had it the part? */
extern bool heap_part_remove(HeapRow *row);

/* What is own, as jsonb. */
extern Datum heap_part_own(const HeapRow *row);

/* The same part, with the columns of both. */
extern Datum heap_part_union(Datum own_rows, Datum other);

/* Is that what it is? 0 is not. */
extern bool heap_part_is(Datum own_rows);

/* Throws when a row writes another part, or other columns, than what was known as own when its table got its place. */
extern void heap_part_check(const HeapRow *row, Datum own_rows);

/* Why two tables cannot have one target, as a sentence; NULL: they can. At least one of them has a part. */
extern char *heap_part_clash(Datum a, Datum b);

/* Rows that have the part: a condition. And: statements that take it from all rows of a relation. */
extern char *heap_part_condition(Datum own_rows);
extern char *heap_part_clear_statements(Oid relid, const char *relation, Datum own_rows);

#endif							/* CDC_HEAP_PART_H */
