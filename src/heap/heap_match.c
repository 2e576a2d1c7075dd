/*-------------------------------------------------------------------------
 *
 * heap_match.c
 *	  Rows of a target without a key: told apart by all they hold.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tableam.h"
#include "common/hashfn.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "heap/heap_lean.h"
#include "heap/heap_match.h"
#include "heap/heap_private.h"
#include "util/util_wait.h"

typedef struct MatchEntry
{
	const HeapMatchRow *row;
	uint32		hash;
	char		status;
} MatchEntry;

static uint32 hash_row(const HeapMatch *match, const HeapMatchRow *row);
static bool same_row(const HeapMatch *match, const HeapMatchRow *a, const HeapMatchRow *b);

#define SH_PREFIX match
#define SH_ELEMENT_TYPE MatchEntry
#define SH_KEY_TYPE const HeapMatchRow *
#define SH_KEY row
#define SH_HASH_KEY(tb, k) hash_row((tb)->private_data, k)
#define SH_EQUAL(tb, a, b) same_row((tb)->private_data, a, b)
#define SH_STORE_HASH
#define SH_GET_HASH(tb, entry) (entry)->hash
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

#define ROWS_FIRST 256

struct HeapMatch
{
	HeapTarget *target;
	MemoryContext cxt;			/* rows and hash: reset when they were written */
	match_hash *by_image;		/* NULL: empty */
	HeapMatchRow **rows;
	int			nrows;
	int			maxrows;
};

static bool
counts(const HeapMatch *match, int i)
{
	return match->target->given == NULL || match->target->given[i];
}

static uint32
hash_row(const HeapMatch *match, const HeapMatchRow *row)
{
	TupleDesc	desc = RelationGetDescr(match->target->rel);
	uint32		hash = 0;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!counts(match, i))
			continue;
		hash = hash_combine(hash, row->nulls[i] ? 0 : datum_image_hash(row->values[i], att->attbyval, att->attlen));
	}
	return hash;
}

static bool
same_row(const HeapMatch *match, const HeapMatchRow *a, const HeapMatchRow *b)
{
	TupleDesc	desc = RelationGetDescr(match->target->rel);

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!counts(match, i))
			continue;
		if (a->nulls[i] != b->nulls[i])
			return false;
		if (!a->nulls[i] && !datum_image_eq(a->values[i], b->values[i], att->attbyval, att->attlen))
			return false;
	}
	return true;
}

HeapMatch *
heap_match_create(HeapTarget *target)
{
	MemoryContext parent = target->estate->es_query_cxt;
	HeapMatch  *match = MemoryContextAllocZero(parent, sizeof(HeapMatch));

	match->target = target;
	match->cxt = AllocSetContextCreate(parent, "cdc match", ALLOCSET_DEFAULT_SIZES);
	return match;
}

/* A row of its own memory, from the values of a slot. */
static HeapMatchRow *
make_row(HeapMatch *match, TupleTableSlot *slot)
{
	TupleDesc	desc = RelationGetDescr(match->target->rel);
	HeapMatchRow *row = palloc(sizeof(HeapMatchRow));

	row->tuple = heap_form_tuple(desc, slot->tts_values, slot->tts_isnull);
	row->values = palloc(sizeof(Datum) * desc->natts);
	row->nulls = palloc(sizeof(bool) * desc->natts);
	heap_deform_tuple(row->tuple, desc, row->values, row->nulls);
	row->net = 0;

	if (match->nrows == match->maxrows)
	{
		match->maxrows *= 2;
		match->rows = repalloc_huge(match->rows, sizeof(HeapMatchRow *) * match->maxrows);
	}
	match->rows[match->nrows++] = row;
	return row;
}

void
heap_match_add(HeapMatch *match, TupleTableSlot *slot, int64 net)
{
	MemoryContext old = MemoryContextSwitchTo(match->cxt);
	HeapMatchRow probe = {.values = slot->tts_values,.nulls = slot->tts_isnull};
	MatchEntry *entry;
	bool		found;

	if (match->by_image == NULL)
	{
		match->by_image = match_create(match->cxt, ROWS_FIRST, match);
		match->maxrows = ROWS_FIRST;
		match->rows = palloc(sizeof(HeapMatchRow *) * match->maxrows);
	}
	entry = match_insert(match->by_image, &probe, &found);
	if (!found)
		entry->row = make_row(match, slot);
	unconstify(HeapMatchRow *, entry->row)->net += net;
	MemoryContextSwitchTo(old);
}

int
heap_match_count(const HeapMatch *match)
{
	return match->nrows;
}

HeapMatchRow *
heap_match_row(HeapMatch *match, int i)
{
	return match->rows[i];
}

/* Rows that are to go, duplicates counted. */
static int64
count_surplus(const HeapMatch *match)
{
	int64		surplus = 0;

	for (int i = 0; i < match->nrows; i++)
		surplus += Max(-match->rows[i]->net, 0);
	return surplus;
}

/* What a walk for the rows that are too many carries along. */
typedef struct Surplus
{
	HeapMatch  *match;
	int64		left;
} Surplus;

static HeapMatchVerdict
is_too_many(TupleTableSlot *slot, void *arg)
{
	Surplus    *surplus = arg;
	HeapMatchRow probe;
	MatchEntry *entry;

	if (surplus->left == 0)
		return HEAP_MATCH_STOP;
	slot_getallattrs(slot);
	probe.values = slot->tts_values;
	probe.nulls = slot->tts_isnull;
	entry = match_lookup(surplus->match->by_image, &probe);
	if (entry == NULL || entry->row->net >= 0)
		return HEAP_MATCH_KEEP;
	unconstify(HeapMatchRow *, entry->row)->net++;
	surplus->left--;
	return HEAP_MATCH_DELETE;
}

/*
 * Walk the whole target, between heap_lean_begin and _end. A row that another session
 * changes in this moment is no longer the one that was meant, and stays: then
 * one of its equals is missing, as it would be had that session been first.
 */
static void
walk(HeapTarget *target, HeapMatchDecide decide, void *arg)
{
	TupleTableSlot *slot = target->found;
	TableScanDesc scan = table_beginscan(target->rel, GetActiveSnapshot(), 0, NULL);
	HeapMatchVerdict verdict = HEAP_MATCH_KEEP;

	while (verdict != HEAP_MATCH_STOP && table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		util_check_interrupts();
		verdict = decide(slot, arg);
		if (verdict == HEAP_MATCH_DELETE)
			(void) heap_lean_delete_tuple(target, &slot->tts_tid);
	}
	ExecClearTuple(slot);
	table_endscan(scan);
}

void
heap_match_scan(HeapTarget *target, HeapMatchDecide decide, void *arg)
{
	heap_lean_begin(target);
	walk(target, decide, arg);
	heap_lean_end(target);
}

void
heap_match_write(HeapMatch *match)
{
	Surplus		surplus = {.match = match,.left = count_surplus(match)};

	heap_lean_begin(match->target);
	if (surplus.left > 0)
		walk(match->target, is_too_many, &surplus);
	for (int i = 0; i < match->nrows; i++)
	{
		HeapMatchRow *row = match->rows[i];

		for (; row->net > 0; row->net--)
		{
			util_check_interrupts();
			heap_lean_insert(match->target, NULL, heap_copytuple(row->tuple), false);
		}
	}
	heap_lean_end(match->target);
}

void
heap_match_reset(HeapMatch *match)
{
	MemoryContextReset(match->cxt);
	match->by_image = NULL;
	match->rows = NULL;
	match->nrows = match->maxrows = 0;
}
