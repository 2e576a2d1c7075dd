/*-------------------------------------------------------------------------
 *
 * heap_row.h
 *	  Rows of one source table on their way into its target: cells -> slots.
 *
 * NOTES
 *	  What snapshot and stream have in common, so that a row reads the same
 *	  whichever way it came: the open target, the mapping of columns, and the
 *	  classification of errors. Lives as long as the transaction.
 *
 *	  begin, set for each column, make. Without a transform the cells go into the
 *	  target's slots at once; with one (option transforms) they go into rows of
 *	  the source's own type, and "make" computes the target's from them.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_HEAP_ROW_H
#define CDC_HEAP_ROW_H

#include "postgres.h"

#include "core/cell.h"
#include "core/table_def.h"
#include "heap/heap_target.h"
#include "schema/table.h"
#include "transform/transform_run.h"

typedef struct HeapRow
{
	HeapTarget *target;
	SchemaTable *table;			/* source columns -> attributes of fresh and old; 0: not wanted */
	TupleTableSlot *fresh;		/* where the cells of the new row go: target->slot, or a row of the source's */
	TupleTableSlot *old;		/* the same of the key or row that was: target->search, or ... */
	TransformRun *transform;	/* NULL: none */
	bool		has_filter;		/* not every row of the source is in the target */
	bool		needs_snapshot; /* turning values may run SQL */
	const CdcColumnDef *current;	/* column whose value is being turned, for error contexts; else NULL */
	int64		replaced;		/* values that a policy changed, see heap_row_take_replaced */
} HeapRow;

/*
 * Open the target of a source table. Throws when it cannot be written or when
 * columns or key do not fit. def has to outlive the result.
 */
extern HeapRow *heap_row_open(Oid relid, const CdcTableDef *def, const SchemaTypeOptions *options);
extern void heap_row_close(HeapRow *row);

/* Does somebody want to know where a row comes from? Then say it before the row begins. */
extern bool heap_row_wants_origin(const HeapRow *row);
extern void heap_row_set_origin(HeapRow *row, const TransformOrigin *origin);

/* Begin a new row, resp. the key or row that was: all columns null. */
extern void heap_row_begin(HeapRow *row);
extern void heap_row_begin_old(HeapRow *row);

/*
 * The new row is complete: make the target's in target->slot, resp. the row that was in target->search. False: a filter
 * leaves it out, and only its key is there. Values are in the memory of the caller.
 */
extern bool heap_row_make(HeapRow *row);
extern bool heap_row_make_old(HeapRow *row);

/* The key alone, of which all columns are set. */
extern void heap_row_make_key(HeapRow *row);
extern void heap_row_make_old_key(HeapRow *row);

/* Attribute of the target that has a source column as it is; 0: none. */
extern AttrNumber heap_row_held(const HeapRow *row, int column);

/* Put a cell into the new row, resp. a column of the key or row that was. */
extern void heap_row_set(HeapRow *row, int column, const CdcCell *cell);
extern void heap_row_set_old(HeapRow *row, int column, const CdcCell *cell);

/* Must a snapshot be active while values are turned? */
static inline bool
heap_row_needs_snapshot(const HeapRow *row)
{
	return row->needs_snapshot;
}

/*
 * Where the higher version stays (option transforms, "last_writer"), target->search has the whole row that was, and not its
 * key alone. Is the row that is there under search's key newer than the one in that slot?
 */
extern bool heap_row_wants_version(const HeapRow *row);
extern bool heap_row_is_outrun(HeapRow *row, const TupleTableSlot *than);

/* May changes be collapsed to the last one of each row? Not where a target keeps something of each. */
extern bool heap_row_may_collapse(const HeapRow *row);

/* How many values were changed by a policy since the last call. */
extern int64 heap_row_take_replaced(HeapRow *row);

/* Make the new row's key the one to search for. */
extern void heap_row_search_new(HeapRow *row);

/* Do the new row and the key in target->search have the same key, byte by byte? */
extern bool heap_row_same_key(const HeapRow *row);

/* ereport(ERROR) with a SQLSTATE of data for a value that a decoder could not turn into a cell. */
extern _Noreturn void heap_row_bad_cell(const CdcColumnDef *column, const CdcError *err);

/*
 * Is an error that came up while a row was written the table's own (its data,
 * its shape, its rights), so that the table stops and the others go on? Else it
 * may pass, or concerns all.
 */
extern bool heap_error_is_tables_own(int sqlstate);

/*
 * Begin a transaction as all writers of rows need it: READ COMMITTED, read-write.
 * Throws, with what is not a table's own error, when the role was dropped.
 */
extern void heap_transaction_begin(void);

#endif							/* CDC_HEAP_ROW_H */
