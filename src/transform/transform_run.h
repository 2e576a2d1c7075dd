/*-------------------------------------------------------------------------
 *
 * transform_run.h
 *	  The transform of a source table over rows of an open target: cells have
 *	  become a row of the source's type, and the target's row is computed.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_TRANSFORM_RUN_H
#define CDC_TRANSFORM_RUN_H

#include "postgres.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "transform/transform_table.h"

/* What is known of the change that a row comes from. */
typedef struct TransformOrigin
{
	const char *operation;		/* "insert", "update", "delete"; "copy": it was there before */
	TimestampTz commit_time;	/* 0: not known */
	const char *position;		/* NULL: none */
} TransformOrigin;

typedef struct TransformRun
{
	TransformTable *table;
	SchemaTable *source;		/* source columns -> attributes of the row; 0: not wanted */
	TransformState *state;
	Oid			run_as;			/* role that expressions are run as; InvalidOid: the current one */
	Datum		metadata[TRANSFORM_METAS];
	bool		has_metadata[TRANSFORM_METAS];
	int			computing;		/* column that is being computed, for error contexts; -1: the filter */
	bool		tells_change;	/* the projection has something of the change */
} TransformRun;

/*
 * Compile a rule for a table and its target, in the EState's memory. Throws what cannot be. run_as: the target's owner,
 * when that is not the current role.
 */
extern TransformRun *transform_run_open(Relation rel, EState *estate, const CdcTableDef *def, const TransformRule *rule,
										const SchemaTypeOptions *options, Oid run_as);

/* Say where rows come from, before they begin. */
extern void transform_run_set_origin(TransformRun *run, const TransformOrigin *origin);

/* A row begins in that slot: all columns null. There are two rows at a time: that after a change (0), that before it (1). */
extern void transform_run_begin(TransformRun *run, int which, TupleTableSlot *row);

/*
 * Compute the target's row from it. False: the filter leaves it out, and only its key is there. Values are in the memory
 * of the caller, who has an active snapshot.
 */
extern bool transform_run_make(TransformRun *run, int which, TupleTableSlot *to);

/* The key alone. */
extern void transform_run_make_key(TransformRun *run, int which, TupleTableSlot *to);

#endif							/* CDC_TRANSFORM_RUN_H */
