/*-------------------------------------------------------------------------
 *
 * decode_copy_range.c
 *	  A chunk of the initial copy that several processes read: the one that has the
 *	  pipeline cuts it into ranges of the key, others read these.
 *
 * NOTES
 *	  Ranges are cut by entries of the key's index, without a look at the table:
 *	  where they end need not be the key of a row that the snapshot sees. All
 *	  that matters is that one begins where the one before it ends.
 *
 *	  Those who read know only what the plugin's options say: they ask no
 *	  stream, so a DecodeState without a decoding context does.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/itup.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_proc.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "decode/decode_private.h"

struct DecodeRanges
{
	DecodeChunkReader reader;
	Relation	index;
	MemoryContext range_context;
};

/* ---- cut ---- */

/*
 * Functions of types may do what only a process with the whole transaction may; and an index may keep another type than its column has. Rows
 * whose expressions throw need subtransactions, which are not for several processes.
 */
static bool
can_spread(const DecodeChunkReader *reader, Relation index)
{
	const DecodeRelation *entry = reader->entry;

	if (decode_letter_is_wanted(reader->state, entry) || decode_letter_follows(reader->state, RelationGetRelid(reader->relation)))
		return false;
	for (int i = 0; i < reader->key->n; i++)
	{
		const DecodeKeyColumn *column = &reader->key->columns[i];

		if (TupleDescAttr(RelationGetDescr(index), i)->atttypid != column->typid || func_parallel(column->compare.fn_oid) != PROPARALLEL_SAFE)
			return false;
	}
	for (uint32 i = 0; i < entry->table->ncolumns; i++)
	{
		if (func_parallel(entry->columns[i].output.fn_oid) != PROPARALLEL_SAFE)
			return false;
	}
	return decode_transform_is_parallel_safe(entry);
}

typedef struct Cut
{
	const DecodeChunkShare *share;
	uint64		step;			/* entries of a range */
	uint64		entries;		/* met */
	List	   *bounds;
} Cut;

static bool
is_full(const Cut *cut)
{
	return cut->entries >= cut->step * (uint64) cut->share->ranges;
}

static void
walk(const DecodeChunkReader *reader, Relation index, const Datum *values, int equal, bool behind, Cut *cut)
{
	IndexScanDesc scan = decode_chunk_scan(reader, index, values, equal, behind, true);

	while (!is_full(cut) && index_getnext_tid(scan, ForwardScanDirection) != NULL)
	{
		Datum		key[INDEX_MAX_KEYS];
		bool		is_null = false;

		CHECK_FOR_INTERRUPTS();
		if (++cut->entries % cut->step != 0)
			continue;
		for (int i = 0; i < reader->key->n; i++)
		{
			key[i] = index_getattr(scan->xs_itup, i + 1, scan->xs_itupdesc, &is_null);
			if (is_null)
				elog(ERROR, "column %d of key index %u is null", i + 1, RelationGetRelid(index));
		}
		cut->bounds = lappend(cut->bounds, decode_key_texts(reader->key, key));
	}
	index_endscan(scan);
}

bool
decode_chunk_spread(DecodeChunkReader *reader, Relation index, const Datum *bound, const DecodeChunkShare *share)
{
	Cut			cut = {.share = share,.step = Max(share->entries / (uint64) share->ranges, 1)};
	uint64		rows = 0;
	int			done;

	if (!can_spread(reader, index))
		return false;
	cut.bounds = list_make1(bound == NULL ? NIL : decode_key_texts(reader->key, bound));
	if (bound == NULL)
		walk(reader, index, NULL, 0, false, &cut);
	else
	{
		for (int equal = reader->key->n - 1; equal >= 0 && !is_full(&cut); equal--)
			walk(reader, index, bound, equal, true, &cut);
	}
	if (!is_full(&cut))
		cut.bounds = lappend(cut.bounds, NIL);
	decode_place_now.in_others = true;
	done = share->spread(share->arg, RelationGetRelid(reader->relation), reader->chunk, cut.bounds, cut.entries, &rows);
	decode_place_now.in_others = false;
	if (done == 0)
		return false;
	reader->chunk->rows = rows;
	reader->chunk->last_key = list_nth(cut.bounds, done);
	return true;
}

/* ---- read ---- */

DecodeRanges *
decode_ranges_open(List *options, DecodeMeet meet, void *meet_arg, Oid relid, DecodeChunk *chunk, DecodeChunkRow row, void *arg)
{
	DecodeRanges *ranges = palloc0(sizeof(DecodeRanges));
	DecodeChunkReader *reader = &ranges->reader;
	DecodeState state = {.context = CurrentMemoryContext,.meet = meet,.emit_arg = meet_arg};

	decode_options_read(&state.options, options);
	reader->row = row;
	reader->arg = arg;
	reader->chunk = chunk;
	reader->relation = table_open(relid, AccessShareLock);
	reader->entry = decode_relation_look(&state, reader->relation);
	reader->key = decode_key_make(reader->relation);
	if (reader->entry->actions == 0 || strcmp(reader->key->signature, chunk->signature) != 0)
		elog(ERROR, "table %u is another one than that of the chunk", relid);
	reader->row_context = AllocSetContextCreate(CurrentMemoryContext, "cdc copied row", ALLOCSET_DEFAULT_SIZES);
	reader->slot = table_slot_create(reader->relation, NULL);
	ranges->index = index_open(reader->key->indexid, AccessShareLock);
	ranges->range_context = AllocSetContextCreate(CurrentMemoryContext, "cdc copied range", ALLOCSET_SMALL_SIZES);
	return ranges;
}

void
decode_ranges_read(DecodeRanges *ranges, List *lower, List *upper)
{
	DecodeChunkReader *reader = &ranges->reader;
	MemoryContext old_context = MemoryContextSwitchTo(ranges->range_context);
	const Datum *bound = lower == NIL ? NULL : decode_key_from_texts(reader->key, lower);

	reader->upper = upper == NIL ? NULL : decode_key_from_texts(reader->key, upper);
	reader->enough = false;
	/* where a row is the last one of the range, the key after it is not asked for */
	decode_chunk_read_by_key(reader, ranges->index, bound);
	reader->chunk->last_key = NIL;
	MemoryContextSwitchTo(old_context);
	MemoryContextReset(ranges->range_context);
}

void
decode_ranges_close(DecodeRanges *ranges)
{
	ExecDropSingleTupleTableSlot(ranges->reader.slot);
	index_close(ranges->index, NoLock);
	table_close(ranges->reader.relation, NoLock);
}
