/*-------------------------------------------------------------------------
 *
 * heap_key.c
 *	  Keys of a target's rows as arrays of Datums: hash, equality, order.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_collation.h"
#include "common/hashfn.h"
#include "utils/datum.h"
#include "utils/rel.h"

#include "compat/pg_compat.h"
#include "heap/heap_key.h"
#include "heap/heap_private.h"

/* Is comparing by the index cheap: no collation, or bytes? */
static bool
order_is_cheap(Relation index, int nparts)
{
	for (int i = 0; i < nparts; i++)
	{
		Oid			collation = index->rd_indcollation[i];

		if (OidIsValid(collation) && collation != C_COLLATION_OID && !cdc_collation_is_c(collation))
			return false;
	}
	return true;
}

static SortSupport
make_order(Relation index, int nparts)
{
	SortSupport order = palloc0(sizeof(SortSupportData) * nparts);

	for (int i = 0; i < nparts; i++)
	{
		order[i].ssup_cxt = CurrentMemoryContext;
		order[i].ssup_collation = index->rd_indcollation[i];
		order[i].ssup_attno = i + 1;
		order[i].ssup_nulls_first = false;
		PrepareSortSupportFromIndexRel(index, BTLessStrategyNumber, &order[i]);
	}
	return order;
}

HeapKeyInfo *
heap_key_info(HeapTarget *target)
{
	HeapTargetState *state = (HeapTargetState *) target;
	TupleDesc	desc = RelationGetDescr(target->rel);
	MemoryContext old = MemoryContextSwitchTo(target->estate->es_query_cxt);
	HeapKeyInfo *info = palloc0(sizeof(HeapKeyInfo));

	info->nparts = target->nkey;
	info->parts = palloc(sizeof(HeapKeyPart) * target->nkey);
	for (int i = 0; i < target->nkey; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, target->key_attnums[i] - 1);

		info->parts[i].by_value = att->attbyval;
		info->parts[i].length = att->attlen;
	}
	if (state->index != NULL && order_is_cheap(state->index, target->nkey))
		info->order = make_order(state->index, target->nkey);
	MemoryContextSwitchTo(old);
	return info;
}

void
heap_key_read(const HeapTarget *target, const HeapKeyInfo *info, TupleTableSlot *slot, Datum *key)
{
	for (int i = 0; i < info->nparts; i++)
	{
		int			att = target->key_attnums[i] - 1;

		if (slot->tts_isnull[att])
			ereport(ERROR,
					(errcode(ERRCODE_NOT_NULL_VIOLATION),
					 errmsg("null value in the key of table \"%s\"", RelationGetRelationName(target->rel))));
		key[i] = slot->tts_values[att];
	}
}

void
heap_key_copy(const HeapKeyInfo *info, const Datum *key, Datum *copy)
{
	for (int i = 0; i < info->nparts; i++)
		copy[i] = info->parts[i].by_value ? key[i] : datumCopy(key[i], false, info->parts[i].length);
}

void
heap_key_search(HeapTarget *target, const Datum *key)
{
	heap_target_clear(target->search);
	for (int i = 0; i < target->nkey; i++)
	{
		int			att = target->key_attnums[i] - 1;

		target->search->tts_values[att] = key[i];
		target->search->tts_isnull[att] = false;
	}
}

uint32
heap_key_hash(const HeapKeyInfo *info, const Datum *key)
{
	uint32		hash = 0;

	for (int i = 0; i < info->nparts; i++)
	{
		uint32		part = info->parts[i].by_value
			? hash_combine(murmurhash32((uint32) (key[i] >> 32)), murmurhash32((uint32) key[i]))
			: datum_image_hash(key[i], false, info->parts[i].length);

		hash = hash_combine(hash, part);
	}
	return hash;
}

bool
heap_key_equal(const HeapKeyInfo *info, const Datum *a, const Datum *b)
{
	for (int i = 0; i < info->nparts; i++)
	{
		if (info->parts[i].by_value ? a[i] != b[i] : !datum_image_eq(a[i], b[i], false, info->parts[i].length))
			return false;
	}
	return true;
}

int
heap_key_compare(const HeapKeyInfo *info, const Datum *a, const Datum *b)
{
	for (int i = 0; i < info->nparts; i++)
	{
		int			result = ApplySortComparator(a[i], false, b[i], false, &info->order[i]);

		if (result != 0)
			return result;
	}
	return 0;
}
