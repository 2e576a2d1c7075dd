/*-------------------------------------------------------------------------
 *
 * heap_target.h
 *	  A target relation open for writing, and writing row by row.
 *
 * NOTES
 *	  Opened and closed inside one transaction. The functions here go through the
 *	  executor's simple calls: BEFORE and AFTER ROW triggers (as
 *	  session_replication_role says), constraints, generated columns and all
 *	  indexes are honoured, one row at a time. heap_lean.h writes many rows at
 *	  once where nothing of that is asked for.
 *	  Rights are checked at opening, because these calls check nothing: the
 *	  pipeline's owner needs SELECT, INSERT, UPDATE and DELETE. When another
 *	  role owns the table, the owner must be able to SET ROLE to it, and rows are
 *	  written as that role in a security-restricted operation; relations with deferrable triggers
 *	  are refused then. Refused too, with what to do: row-level security that
 *	  would apply, a missing or unusable primary key index. Rows of a
 *	  partitioned table go to its leaves.
 *
 *	  Everything lives in a memory context of the current transaction: after an
 *	  abort there is nothing to close and nothing that may be touched.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_HEAP_TARGET_H
#define CDC_HEAP_TARGET_H

#include "postgres.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

/* How rows of a target are written, decided when it is opened. */
typedef enum HeapTier
{
	HEAP_TIER_LEAN,				/* many rows at a time by heap_lean.h, nothing of the executor's in between */
	HEAP_TIER_EXECUTOR,			/* row by row, by the functions here: triggers, deferrable constraints */
	HEAP_TIER_SQL				/* by statements, see heap_sql.h: foreign tables, views */
} HeapTier;

/* "lean", "executor", "sql" */
extern const char *heap_tier_name(HeapTier tier);

typedef struct HeapTarget
{
	HeapTier	tier;
	Relation	rel;
	Oid			key_index;		/* primary key index; InvalidOid in the SQL tier */
	int			nkey;			/* 0: keyless */
	AttrNumber *key_attnums;	/* in index order */
	EState	   *estate;
	ResultRelInfo *result_rel;
	TupleTableSlot *slot;		/* virtual: the caller fills values of the new row here */
	TupleTableSlot *search;		/* virtual: the caller fills the key columns here */
	TupleTableSlot *found;		/* row found by heap_target_find; NULL in a partitioned table, whose leaves have one each */
	TupleTableSlot *stored;		/* virtual: what heap_target_read has read; NULL: nothing yet */
	Oid			write_as;		/* role that rows are written as; InvalidOid: the current one */
	bool	   *given;			/* per attribute: the caller fills it (heap_target_set_given); NULL: all */
	void	   *key_bytes;		/* cache of chunk_key_bytes, in the EState's memory */
} HeapTarget;

/*
 * Opens with RowExclusiveLock, kept to the end of the transaction. keyless: the
 * source table has no key, rows are told apart by all they hold (heap_match.h).
 */
extern HeapTarget *heap_target_open(Oid relid, bool keyless);
extern void heap_target_close(HeapTarget *target);

/* Targets of the SQL tier have no index to tell their key: say which attributes it has. */
extern void heap_target_set_key(HeapTarget *target, int nkey, const AttrNumber *attnums);

/*
 * Say which attributes the caller fills (natts flags, copied). The others get
 * their default when a row is inserted and keep their value when it is updated.
 */
extern void heap_target_set_given(HeapTarget *target, const bool *given);

/* Begin a new row in slot resp. a key in search: all columns null. */
extern void heap_target_clear(TupleTableSlot *slot);

/* Throw when slot has a null in a column that the caller gives and that is NOT NULL. */
extern void heap_target_check_not_null(const HeapTarget *target);

/* Find and lock (for update) the row with search's key; false when there is none. */
extern bool heap_target_find(HeapTarget *target);

/* Is there a row with search's key, seen with a snapshot taken now? Locks nothing. */
extern bool heap_target_exists(HeapTarget *target);

/*
 * Read the row with search's key, seen with a snapshot taken now, into "stored", in the memory of the caller; false when
 * there is none. Locks nothing.
 */
extern bool heap_target_read(HeapTarget *target);

/* The slot for that, made when first asked for; a value, and all of a row, in the memory of the caller. */
extern TupleTableSlot *heap_target_stored(HeapTarget *target);
extern Datum heap_own_value(Datum value, Form_pg_attribute att);
extern void heap_own_row(TupleTableSlot *from, TupleTableSlot *to);

/* Make a row of values in a virtual slot, which are not copied. */
extern void heap_set_row(TupleTableSlot *to, const Datum *values, const bool *isnull);

/* Write slot; update and delete act on "found". What was written is visible to the next look-up. */
extern void heap_target_insert(HeapTarget *target);
extern void heap_target_update(HeapTarget *target);
extern void heap_target_delete(HeapTarget *target);

/* Does the relation hold any row? */
extern bool heap_target_has_rows(HeapTarget *target);

#endif							/* CDC_HEAP_TARGET_H */
