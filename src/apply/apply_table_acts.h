/*-------------------------------------------------------------------------
 *
 * apply_table_acts.h
 *	  What statements do to tables as a whole: made by apply_table_statement.c,
 *	  carried out by apply_table_acts.c.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_APPLY_TABLE_ACTS_H
#define CDC_APPLY_TABLE_ACTS_H

#include "postgres.h"

#include "apply/apply_private.h"

typedef enum ApplyActWhat
{
	APPLY_ACT_NOTHING,			/* only told in the history */
	APPLY_ACT_TRUNCATE,			/* the target is emptied; a copy that is under way begins anew */
	APPLY_ACT_DROP,				/* the target is dropped, the table leaves */
	APPLY_ACT_LEAVE,			/* the table leaves, its target stays */
	APPLY_ACT_RENAME,			/* the table has another name at the source, and perhaps here */
	APPLY_ACT_COPY,				/* the table is copied anew beside its rows */
	APPLY_ACT_JOIN				/* one that is not ours yet joins */
} ApplyActWhat;

typedef struct ApplyAct
{
	ApplyActWhat what;
	ApplyTable *table;			/* ours; NULL: not yet */
	const char *schema;			/* how the history calls it, UTF-8 */
	const char *name;
	CatalogChangeKind kind;
	CatalogChangeMode mode;
	bool		copy;			/* copied anew besides */
	bool		keeps_rows;		/* the target keeps rows that the source's table has no more */

	/* RENAME, and LEAVE with target_moves */
	bool		target_moves;	/* LEAVE: another table gets the target's name */
	const char *new_schema;		/* at the source, UTF-8 */
	const char *new_table;
	char	   *target_schema;	/* in the database's encoding; NULL: the target keeps its name */
	char	   *target_table;

	/* what came of it */
	CatalogTable *now;
	List	   *commands;		/* of char * */
	CatalogChangeResult result;
	UtilErrorInfo *error;		/* why not, or why it was left out; NULL: nothing to tell */
} ApplyAct;

/*
 * Carry out the acts of a statement, what was before it being written; and note them. All is in the open transaction, which
 * the caller's position goes with. at: start of the statement, where tables stop.
 */
extern void apply_acts_run(Apply *apply, const CdcEvent *event, List *acts, const CdcPosition *at);

#endif							/* CDC_APPLY_TABLE_ACTS_H */
