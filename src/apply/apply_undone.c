/*-------------------------------------------------------------------------
 *
 * apply_undone.c
 *	  Changes that stand in the log and never took effect.
 *
 * NOTES
 *	  Two kinds. A source transaction may be rolled back as a whole: the log
 *	  says ROLLBACK, or breaks off inside it. And ROLLBACK TO SAVEPOINT undoes
 *	  what came after the savepoint; the servers take that out of the log
 *	  again, but MariaDB does not when the transaction also wrote to a table of an
 *	  engine without transactions (10.11 and 11.8; MySQL 9.7 always does).
 *
 *	  Either is told after the changes, when they may have been applied. Then
 *	  everything is undone and comes again, and this file knows what to pass over
 *	  the second time:
 *
 *	  changes -> ROLLBACK                  noted, rewind -> passed over as a whole
 *	  changes -> SAVEPOINT -> changes -> ROLLBACK TO -> changes -> COMMIT
 *	           1             2                        3
 *	                                       noted, nothing more is applied to the
 *	                                       end, which rewinds -> part 2 passed over
 *
 *	  Parts are numbered by the SAVEPOINTs and ROLLBACK TOs between them, not by
 *	  changes: which of these come here depends on the state of tables. So a
 *	  transaction with any number of ROLLBACK TOs is read twice, not more often.
 *
 *	  Rows of tables whose engine has no transactions are not undone by the
 *	  source. Both servers log them in a group of their own, ahead of the
 *	  transaction, so they are not met here; if one is, its table stops.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "apply/apply_private.h"

/* Savepoint names have at most 64 characters. */
#define NAME_MAX_BYTES 260

/* Parts from .. to of a transaction. */
typedef struct UndoneParts
{
	uint64		from;
	uint64		to;
} UndoneParts;

/* A transaction of which something is passed over. */
typedef struct UndoneTransaction
{
	CdcPosition start;
	bool		whole;
	int			nparts;
	int			maxparts;
	UndoneParts *parts;			/* ascending, apart from each other */
} UndoneTransaction;

typedef struct Savepoint
{
	char		name[NAME_MAX_BYTES];	/* folded */
	uint64		part;			/* the first one behind it */
} Savepoint;

struct ApplyUndone
{
	MemoryContext cxt;			/* savepoints of the transaction that comes in */
	List	   *known;			/* of UndoneTransaction, in Apply.cxt */
	UndoneTransaction *current; /* the one that comes in; NULL: nothing is known of it */
	uint64		part;
	uint64		last_applied;	/* newest part of which something was applied; 0: none */
	HTAB	   *savepoints;		/* NULL: none yet */
	bool		again;			/* it has to come again from its start */
};

void
apply_undone_init(Apply *apply)
{
	apply->undone = palloc0(sizeof(ApplyUndone));
	apply->undone->cxt = AllocSetContextCreate(apply->cxt, "cdc apply savepoints", ALLOCSET_SMALL_SIZES);
}

/* Nothing is coming in any more. */
void
apply_undone_reset(Apply *apply)
{
	ApplyUndone *undone = apply->undone;

	if (undone->savepoints != NULL)
		MemoryContextReset(undone->cxt);
	undone->savepoints = NULL;
	undone->current = NULL;
	undone->part = 1;
	undone->last_applied = 0;
	undone->again = false;
}

/* A source transaction begins. Returns whether all of it is to be passed over. */
bool
apply_undone_begin(Apply *apply)
{
	ApplyUndone *undone = apply->undone;
	ListCell   *lc;

	apply_undone_reset(apply);
	foreach(lc, undone->known)
	{
		UndoneTransaction *known = lfirst(lc);

		if (known->start.offset == apply->txn_start.offset && strcmp(known->start.file, apply->txn_start.file) == 0)
			undone->current = known;
	}
	return undone->current != NULL && undone->current->whole;
}

/* What is known of the undone parts around a part; NULL: it counts. */
static const UndoneParts *
parts_around(const UndoneTransaction *transaction, uint64 part)
{
	int			low = 0;
	int			high = transaction != NULL ? transaction->nparts : 0;

	while (low < high)
	{
		int			middle = (low + high) / 2;
		const UndoneParts *parts = &transaction->parts[middle];

		if (part < parts->from)
			high = middle;
		else if (part > parts->to)
			low = middle + 1;
		else
			return parts;
	}
	return NULL;
}

/* Does a change that comes now not count? */
bool
apply_undone_passes_over(const Apply *apply)
{
	const ApplyUndone *undone = apply->undone;

	return undone->again || parts_around(undone->current, undone->part) != NULL;
}

void
apply_undone_applied(Apply *apply)
{
	apply->undone->last_applied = apply->undone->part;
}

bool
apply_undone_comes_again(const Apply *apply)
{
	return apply->undone->again;
}

/* What is known of the transaction that comes in, to be added to. */
static UndoneTransaction *
current_transaction(Apply *apply)
{
	ApplyUndone *undone = apply->undone;

	if (undone->current == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(apply->cxt);

		undone->current = palloc0(sizeof(UndoneTransaction));
		undone->current->start = apply->txn_start;
		undone->known = lappend(undone->known, undone->current);
		MemoryContextSwitchTo(old);
	}
	return undone->current;
}

void
apply_undone_whole(Apply *apply)
{
	current_transaction(apply)->whole = true;
}

/*
 * Add parts that end with the newest one. Where they are not known already, no
 * later ones are; what lies in them is swallowed.
 */
static void
add_parts(Apply *apply, uint64 from, uint64 to)
{
	UndoneTransaction *transaction = current_transaction(apply);
	const UndoneParts *around = parts_around(transaction, to);

	if (around != NULL && around->from <= from)
		return;
	while (transaction->nparts > 0 && transaction->parts[transaction->nparts - 1].from >= from)
		transaction->nparts--;
	if (transaction->nparts > 0 && transaction->parts[transaction->nparts - 1].to >= from)
	{
		UndoneParts *last = &transaction->parts[transaction->nparts - 1];

		last->to = Max(last->to, to);
		return;
	}
	if (transaction->nparts == transaction->maxparts)
	{
		transaction->maxparts = Max(transaction->maxparts * 2, 8);
		transaction->parts = transaction->parts == NULL
			? MemoryContextAlloc(apply->cxt, sizeof(UndoneParts) * transaction->maxparts)
			: repalloc_huge(transaction->parts, sizeof(UndoneParts) * transaction->maxparts);
	}
	transaction->parts[transaction->nparts].from = from;
	transaction->parts[transaction->nparts].to = to;
	transaction->nparts++;
}

/* Names of savepoints do not differ by case; false for one that cannot be ours. */
static bool
fold_name(const char *name, char *folded)
{
	if (name[0] == '\0' || strlen(name) >= NAME_MAX_BYTES)
		return false;
	memset(folded, 0, NAME_MAX_BYTES);
	for (int i = 0; name[i] != '\0'; i++)
		folded[i] = name[i] >= 'A' && name[i] <= 'Z' ? name[i] - 'A' + 'a' : name[i];
	return true;
}

void
apply_savepoint(Apply *apply, const char *name)
{
	ApplyUndone *undone = apply->undone;
	char		folded[NAME_MAX_BYTES];
	Savepoint  *savepoint;

	undone->part++;
	if (!fold_name(name, folded))
		return;
	if (undone->savepoints == NULL)
	{
		HASHCTL		ctl = {.keysize = NAME_MAX_BYTES,.entrysize = sizeof(Savepoint),.hcxt = undone->cxt};

		undone->savepoints = hash_create("cdc apply savepoints", 16, &ctl, HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
	}
	savepoint = hash_search(undone->savepoints, folded, HASH_ENTER, NULL);
	savepoint->part = undone->part;
}

/*
 * ROLLBACK TO SAVEPOINT. Returns false when there is no such savepoint: letters
 * beyond ASCII are the same to the server in more ways than we know.
 */
bool
apply_rollback_to(Apply *apply, const char *name)
{
	ApplyUndone *undone = apply->undone;
	char		folded[NAME_MAX_BYTES];
	Savepoint  *savepoint = NULL;

	if (undone->savepoints != NULL && fold_name(name, folded))
		savepoint = hash_search(undone->savepoints, folded, HASH_FIND, NULL);
	if (savepoint == NULL && undone->last_applied != 0)
		return false;
	if (savepoint != NULL)
	{
		/* those that were applied have to go; the others will come again too */
		if (undone->last_applied >= savepoint->part)
			undone->again = true;
		add_parts(apply, savepoint->part, undone->part);
	}
	undone->part++;
	return true;
}

/* Drop what lies behind us for good. */
void
apply_undone_prune(Apply *apply)
{
	ListCell   *lc;

	foreach(lc, apply->undone->known)
	{
		UndoneTransaction *known = lfirst(lc);
		int			order;

		if (!cdc_position_compare(&known->start, &apply->streamed, &order) || order < 0)
		{
			apply->undone->known = foreach_delete_current(apply->undone->known, lc);
			if (known->parts != NULL)
				pfree(known->parts);
			pfree(known);
		}
	}
}

/* What was believed of the open transaction is not so. */
void
apply_undone_forget(Apply *apply)
{
	ListCell   *lc;

	foreach(lc, apply->undone->known)
	{
		UndoneTransaction *known = lfirst(lc);

		if (known->parts != NULL)
			pfree(known->parts);
		pfree(known);
	}
	list_free(apply->undone->known);
	apply->undone->known = NIL;
	apply->undone->current = NULL;
}
