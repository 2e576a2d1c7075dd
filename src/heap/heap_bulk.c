/*-------------------------------------------------------------------------
 *
 * heap_bulk.c
 *	  Inserting many rows whose keys are all different, as a copy does.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "heap/heap_bulk.h"
#include "heap/heap_lean.h"
#include "heap/heap_sql.h"

void
heap_bulk_begin(HeapTarget *target)
{
	if (target->tier == HEAP_TIER_LEAN)
		heap_lean_begin(target);
	else if (target->tier == HEAP_TIER_SQL)
		heap_sql_begin(target);
}

/* Key columns of a slot, in index order. */
static void
read_key(const HeapTarget *target, const TupleTableSlot *slot, Datum *key)
{
	for (int i = 0; i < target->nkey; i++)
		key[i] = slot->tts_values[target->key_attnums[i] - 1];
}

bool
heap_bulk_exists(HeapTarget *target)
{
	Datum		key[INDEX_MAX_KEYS];

	switch (target->tier)
	{
		case HEAP_TIER_LEAN:
			read_key(target, target->search, key);
			return heap_lean_find(target, key);
		case HEAP_TIER_EXECUTOR:
			return heap_target_exists(target);
		case HEAP_TIER_SQL:
			break;
	}
	return false;
}

void
heap_bulk_insert(HeapTarget *target)
{
	Datum		key[INDEX_MAX_KEYS];
	MemoryContext old;
	HeapTuple	tuple;

	switch (target->tier)
	{
		case HEAP_TIER_LEAN:
			heap_target_check_not_null(target);
			read_key(target, target->slot, key);
			old = MemoryContextSwitchTo(target->estate->es_query_cxt);
			tuple = heap_form_tuple(RelationGetDescr(target->rel), target->slot->tts_values, target->slot->tts_isnull);
			heap_lean_insert(target, key, tuple, false);
			MemoryContextSwitchTo(old);
			break;
		case HEAP_TIER_EXECUTOR:
			heap_target_insert(target);
			break;
		case HEAP_TIER_SQL:
			heap_sql_put(target);
			break;
	}
}

void
heap_bulk_end(HeapTarget *target)
{
	if (target->tier == HEAP_TIER_LEAN)
		heap_lean_end(target);
	else if (target->tier == HEAP_TIER_SQL)
		heap_sql_end(target, true);
}
