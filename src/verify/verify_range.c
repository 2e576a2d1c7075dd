/*-------------------------------------------------------------------------
 *
 * verify_range.c
 *	  Ranges of the target's primary key, between two keys of the source.
 *
 * NOTES
 *	  Only where both sides have the same order: numbers, dates and times, bits and
 *	  binary strings (schema_sum_is_ordered), with an index of just the source's
 *	  key columns in their order. Each row here is in one range, whatever its key
 *	  is, so rows that only the target has are met too.
 *
 *	  In a partitioned target a range is looked for in one leaf after the other.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "commands/defrem.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "compat/pg_compat.h"
#include "heap/heap_row.h"
#include "mysql/mysql_text.h"
#include "util/util_wait.h"
#include "verify/verify_private.h"

/* Keys that one step looks through. */
#define EXTRAS_STEP 20000

/* Scan keys of a range; members point into it, so it is not moved. */
typedef struct RangeKeys
{
	int			n;
	ScanKeyData keys[2];
	ScanKeyData members[2][INDEX_MAX_KEYS];
} RangeKeys;

bool
verify_range_is_ordered(const VerifyWork *work, const VerifyTarget *target)
{
	if (target->nkey != work->nkey)
		return false;
	for (int i = 0; i < target->nkey; i++)
	{
		Oid			opclass;

		if (target->key_columns[i] != work->key[i] || !schema_sum_is_ordered(target->sum, work->key[i]))
			return false;
		if ((target->index->rd_indoption[i] & INDOPTION_DESC) != 0)
			return false;
		opclass = GetDefaultOpClass(target->index->rd_opcintype[i], BTREE_AM_OID);
		if (!OidIsValid(opclass) || get_opclass_family(opclass) != target->index->rd_opfamily[i])
			return false;
	}
	return true;
}

/* The values here of a key of the source, in the target's memory. */
static Datum *
key_values(Verify *verify, VerifyTarget *target, const ChunkKey *key)
{
	Datum	   *values = palloc(sizeof(Datum) * target->nkey);

	cdc_arena_reset(&verify->arena);
	for (int i = 0; i < target->nkey; i++)
	{
		SchemaColumn *column = &target->table->columns[target->key_columns[i]];
		char	   *text = key->values[i];
		uint32		len = key->lengths[i];
		CdcCell		cell;
		CdcError	err = {0};
		bool		isnull;

		/* mysql_key_value_expression gives binary strings in hex digits */
		if (column->def->type == CDC_TYPE_BINARY || column->def->type == CDC_TYPE_VARBINARY ||
			column->def->type == CDC_TYPE_BLOB)
		{
			text = palloc(len / 2 + 1);
			len = (uint32) hex_decode(key->values[i], key->lengths[i], text);
		}
		if (mysql_text_to_cell(column->def, text, len, &verify->arena, &cell, &err) != CDC_OK)
			heap_row_bad_cell(column->def, &err);
		verify->current = column->def;
		values[i] = schema_cell_to_datum(column, &cell, &isnull);
		verify->current = NULL;
	}
	return values;
}

/* Add "key > values" resp. "key <= values" of the whole key. */
static void
add_bound(RangeKeys *keys, const VerifyTarget *target, const Datum *values, StrategyNumber strategy)
{
	Relation	index = target->index;
	ScanKey		members = keys->members[keys->n];
	ScanKey		key = &keys->keys[keys->n++];

	for (int i = 0; i < target->nkey; i++)
	{
		Oid			type = index->rd_opcintype[i];
		Oid			family = index->rd_opfamily[i];
		Oid			proc = target->nkey == 1
			? get_opcode(get_opfamily_member(family, type, type, strategy))
			: get_opfamily_proc(family, type, type, BTORDER_PROC);

		if (!OidIsValid(proc))
			elog(ERROR, "missing support for type %u in operator family %u", type, family);
		ScanKeyEntryInitialize(target->nkey == 1 ? key : &members[i], target->nkey == 1 ? 0 : SK_ROW_MEMBER,
							   i + 1, strategy, InvalidOid, index->rd_indcollation[i], proc, values[i]);
	}
	if (target->nkey == 1)
		return;
	members[target->nkey - 1].sk_flags |= SK_ROW_END;
	memset(key, 0, sizeof(*key));
	key->sk_flags = SK_ROW_HEADER;
	key->sk_attno = 1;
	key->sk_strategy = strategy;
	key->sk_argument = PointerGetDatum(members);
}

/* Values may be NULL: then the range has no such end. */
static RangeKeys *
make_keys(const VerifyTarget *target, const Datum *lower, const Datum *upper)
{
	RangeKeys  *keys = palloc0(sizeof(RangeKeys));

	if (lower != NULL)
		add_bound(keys, target, lower, BTGreaterStrategyNumber);
	if (upper != NULL)
		add_bound(keys, target, upper, BTLessEqualStrategyNumber);
	return keys;
}

/* In the target's memory. */
static IndexScanDesc
begin_scan(const VerifyTarget *target, const VerifyLeaf *leaf, RangeKeys *keys)
{
	MemoryContext old = MemoryContextSwitchTo(target->cxt);
	IndexScanDesc scan = cdc_index_beginscan(leaf->rel, leaf->index, GetActiveSnapshot(), keys->n);

	index_rescan(scan, keys->keys, keys->n, NULL, 0);
	MemoryContextSwitchTo(old);
	return scan;
}

/* The next row of a scan becomes the target's row. */
static bool
next_row(VerifyTarget *target, VerifyLeaf *leaf, IndexScanDesc scan)
{
	/* the scan keeps things of its own between two rows */
	MemoryContext old = MemoryContextSwitchTo(target->cxt);
	bool		found = index_getnext_slot(scan, ForwardScanDirection, leaf->slot);

	MemoryContextSwitchTo(old);
	if (found)
		verify_target_show(target, leaf);
	return found;
}

void
verify_range_sum(Verify *verify, VerifyTarget *target, const ChunkKey *lower, const ChunkKey *upper,
				 int64 most, int64 *rows, uint64 *sum)
{
	const bool *in_sum = verify->work->in_sum;
	RangeKeys  *keys = make_keys(target, lower == NULL ? NULL : key_values(verify, target, lower),
								 upper == NULL ? NULL : key_values(verify, target, upper));
	MemoryContext row_cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc verify row", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(row_cxt);

	*rows = 0;
	*sum = 0;
	for (int i = 0; i < target->nleaves && *rows < most; i++)
	{
		VerifyLeaf *leaf = &target->leaves[i];
		IndexScanDesc scan = begin_scan(target, leaf, keys);

		while (*rows < most && next_row(target, leaf, scan))
		{
			util_check_interrupts();
			MemoryContextReset(row_cxt);
			slot_getallattrs(target->slot);
			*sum += schema_sum_row(target->sum, in_sum, target->slot->tts_values, target->slot->tts_isnull);
			(*rows)++;
		}
		index_endscan(scan);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(row_cxt);
}

static int
compare_hashes(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y ? 1 : 0;
}

/* Look through a leaf's keys, at most EXTRAS_STEP altogether; false when there are more. */
static bool
extras_of_leaf(Verify *verify, VerifyTarget *target, VerifyLeaf *leaf, RangeKeys *keys, int *looked, MemoryContext row_cxt)
{
	VerifyWork *work = verify->work;
	VerifyExtras *extras = &work->extras;
	IndexScanDesc scan = begin_scan(target, leaf, keys);
	bool		at_end = true;

	while (next_row(target, leaf, scan))
	{
		uint64		hash;

		util_check_interrupts();
		MemoryContextReset(row_cxt);
		hash = verify_target_hash_slot(target);
		work->result.rows_target++;
		if (extras->nshown == 0 ||
			bsearch(&hash, extras->shown, extras->nshown, sizeof(uint64), compare_hashes) == NULL)
			verify_suspect_add(verify, target, NULL);
		if (++*looked < EXTRAS_STEP && !verify_suspects_full(work))
			continue;

		MemoryContextSwitchTo(extras->cxt);
		extras->from = verify_target_key_slot(target);
		MemoryContextSwitchTo(row_cxt);
		at_end = false;
		break;
	}
	index_endscan(scan);
	return at_end;
}

bool
verify_range_extras(Verify *verify, VerifyTarget *target)
{
	VerifyExtras *extras = &verify->work->extras;
	Datum	   *lower = extras->lower == NULL ? NULL : key_values(verify, target, extras->lower);
	Datum	   *upper = extras->upper == NULL ? NULL : key_values(verify, target, extras->upper);
	MemoryContext row_cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc verify row", ALLOCSET_DEFAULT_SIZES);
	int			looked = 0;
	bool		at_end = true;

	for (int i = 0; i < target->nleaves && at_end; i++)
	{
		VerifyLeaf *leaf = &target->leaves[i];
		Oid			relid = RelationGetRelid(leaf->rel);
		RangeKeys  *keys;
		MemoryContext old;

		if (relid < extras->leaf)
			continue;
		if (relid > extras->leaf)
			extras->from = NULL;
		extras->leaf = relid;
		keys = make_keys(target, extras->from != NULL ? extras->from : lower, upper);
		old = MemoryContextSwitchTo(row_cxt);
		at_end = extras_of_leaf(verify, target, leaf, keys, &looked, row_cxt);
		MemoryContextSwitchTo(old);
	}
	MemoryContextDelete(row_cxt);
	return at_end;
}
