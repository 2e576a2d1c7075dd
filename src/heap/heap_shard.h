/*-------------------------------------------------------------------------
 *
 * heap_shard.h
 *	  A source table's own rows in a target that several source tables share.
 *
 * NOTES
 *	  What tells them apart are columns of the target's key that say where a row
 *	  is from and nothing of the row: metadata, or constants. Their values for one
 *	  table are its "own rows": an object of names and texts, kept with the
 *	  table's state. Keys of different tables never meet then. Of a table that
 *	  fills a part of rows it is the part and its columns (heap_part.h).
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_HEAP_SHARD_H
#define CDC_HEAP_SHARD_H

#include "postgres.h"

#include "heap/heap_row.h"
#include "transform/transform_merge.h"

/* Own rows of the table that a row is open for, as jsonb. Throws when its key does not tell them. */
extern Datum heap_shard_own_rows(HeapRow *row);

/* Does a column of a projection say where a row is from, and nothing of the row? */
extern bool heap_shard_tells(const Transform *transform, int column);

/* Throws when the key of a table that is to share its target does not tell its rows. table: what is made of it; NULL: it stays as it is. */
extern void heap_shard_check_key(const CdcTableDef *def, const TransformTable *table);

/* Can rows of the one be told from those of the other? Neither has a part of rows. */
extern bool heap_shard_differs(Datum a, Datum b);

/* Are some in the target? */
extern bool heap_shard_has_rows(Oid relid, Datum own_rows);

/* Delete them, or its part of them; returns the statement. Throws when that is not allowed. In a transaction with an active snapshot. */
extern char *heap_shard_empty(Oid relid, Datum own_rows);

/*
 * Make room in a target for the rows of one more table, see transform/transform_merge.h. Takes the AccessExclusiveLock if there
 * is something to be done. Returns the statement; NULL when there was nothing. The type of a key column changes only with
 * may_change_key.
 */
extern char *heap_shard_fit(Oid relid, const CdcTableDef *def, const SchemaTypeOptions *options, int how, bool may_change_key);

/* Another source table that has the target. */
typedef struct HeapShardOther
{
	const CdcTableDef *def;
	SchemaTypeOptions options;
} HeapShardOther;

/*
 * Take away the columns that a table no longer gives to its target, as the source dropped them, and none of the others (List of HeapShardOther)
 * gives. origin: per column of after its index in before, or -1. Returns the statement; NULL when there was nothing.
 */
extern char *heap_shard_drop(Oid relid, const CdcTableDef *before, const CdcTableDef *after, const int *origin, const SchemaTypeOptions *options,
							 const List *others);

#endif							/* CDC_HEAP_SHARD_H */
