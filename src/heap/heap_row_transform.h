/*-------------------------------------------------------------------------
 *
 * heap_row_transform.h
 *	  A transform between the source's rows and an open target. Called by
 *	  heap_row.c alone.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_HEAP_ROW_TRANSFORM_H
#define CDC_HEAP_ROW_TRANSFORM_H

#include "postgres.h"

#include "heap/heap_row.h"
#include "transform/transform_table.h"

typedef struct HeapRowTransform
{
	TransformTable *table;
	TransformState *state;
	Datum		metadata[TRANSFORM_METAS];
	bool		has_metadata[TRANSFORM_METAS];
	int			computing;		/* column that is being computed, for error contexts; -1: the filter */
	bool		tells_change;	/* the projection has something of the change */
} HeapRowTransform;

/* Put a rule between a row and its target, which is open: row->table, row->fresh and row->old become the source's. */
extern void heap_row_transform_open(HeapRow *row, const CdcTableDef *def, const TransformRule *rule,
									const SchemaTypeOptions *options);

/* A source's row begins in one of the two slots (0: fresh, 1: old). */
extern void heap_row_transform_begin(HeapRow *row, int which);

extern void heap_row_transform_set_origin(HeapRow *row, const HeapRowOrigin *origin);

/* Fill the target's slot from that of the source; false: the filter leaves the row out, and only its key is filled. */
extern bool heap_row_transform_make(HeapRow *row, int which);

/* The key alone. */
extern void heap_row_transform_make_key(HeapRow *row, int which);

#endif							/* CDC_HEAP_ROW_TRANSFORM_H */
