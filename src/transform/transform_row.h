/*-------------------------------------------------------------------------
 *
 * transform_row.h
 *	  A projection and a filter over rows of one type: compiled, and run for a
 *	  row in a slot.
 *
 * NOTES
 *	  transform_compile -> transform_coerce for each column -> transform_start
 *	  -> per row transform_passes, transform_value. Which way rows go does not
 *	  matter here.
 *
 *	  A compiled transform holds plans of functions as they were: it lives no
 *	  longer than the transaction (and the locks) that it was made in.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_TRANSFORM_ROW_H
#define CDC_TRANSFORM_ROW_H

#include "postgres.h"
#include "access/tupdesc.h"
#include "executor/tuptable.h"
#include "nodes/bitmapset.h"
#include "nodes/execnodes.h"

#include "transform/transform_rule.h"

/* What is known of a row besides its columns: attributes of the row type behind these. */
typedef enum TransformMeta
{
	TRANSFORM_SERVER,
	TRANSFORM_SCHEMA,
	TRANSFORM_TABLE,
	TRANSFORM_OPERATION,
	TRANSFORM_COMMIT_TIME,
	TRANSFORM_POSITION,
	TRANSFORM_METAS				/* how many there are */
} TransformMeta;

/* A column that the projection makes. */
typedef struct TransformColumn
{
	char	   *name;
	Node	   *expr;			/* over the row, with varno 1 */
	Oid			typid;
	int32		typmod;
	Oid			collation;
	AttrNumber	from;			/* it is that attribute of the row as it is; 0: computed */
	Bitmapset  *uses;			/* attributes of the row */
	bool		is_mutable;		/* may come out differently for the same row */
} TransformColumn;

typedef struct Transform
{
	const TransformRule *rule;
	TupleDesc	desc;			/* the row type: columns, then metadata */
	int			nsource;		/* columns in it */
	int			ncolumns;
	TransformColumn *columns;
	Node	   *filter;			/* NULL: all rows */
	Bitmapset  *filter_uses;
	bool		filter_is_mutable;
} Transform;

/* Initialise the attributes for metadata behind the columns of a row type. */
extern void transform_add_metadata(TupleDesc desc, int nsource);

/* Attribute of one of them. */
static inline AttrNumber
transform_meta_attnum(const Transform *transform, TransformMeta meta)
{
	return (AttrNumber) (transform->nsource + 1 + (int) meta);
}

extern const char *transform_meta_name(TransformMeta meta);

/*
 * Look up what a rule names, in CurrentMemoryContext and with the search_path that workers have. Throws what is wrong
 * with it, with the place in its text.
 */
extern Transform *transform_compile(const TransformRule *rule, TupleDesc desc, int nsource);

/* Index of the projection's column of that name; -1: none. */
extern int	transform_column(const Transform *transform, const char *name);

/* The column's expression as a value of that type, as INSERT would take it; false when it cannot be. */
extern bool transform_coerce(Transform *transform, int column, Oid typid, int32 typmod);

/* Ready to run, in an EState's memory. There are two rows at a time: that after a change (0) and that before it (1). */
typedef struct TransformState
{
	const Transform *transform;
	ExprState **exprs;			/* per column; NULL: it is an attribute of the row */
	bool	   *is_varlena;		/* per column */
	ExprState  *filter;
	ExprContext *econtext[2];
} TransformState;

extern TransformState *transform_start(const Transform *transform, EState *estate);

/* A new row begins: free what the former one left. */
extern void transform_begin(TransformState *state, int which, TupleTableSlot *slot);

/* Does the filter let the row through? A column's value; both in CurrentMemoryContext, under an active snapshot. */
extern bool transform_passes(TransformState *state, int which);
extern Datum transform_value(TransformState *state, int which, int column, bool *isnull);

#endif							/* CDC_TRANSFORM_ROW_H */
