/*-------------------------------------------------------------------------
 *
 * decode_copy_read.c
 *	  Chunks of the initial copy: rows in the order of their key -> records.
 *
 * NOTES
 *	  First the lock, then the snapshot: what empties or rewrites a table does not
 *	  heed older snapshots. Whoever has a stronger lock is not waited for, as the
 *	  stream would wait too.
 *
 *	  Rows come straight from the key's index, or from the table when it has no
 *	  key, without SQL: no plan can go wrong, and the order is that of the index by
 *	  definition. Rights are looked at as for the stream, when the relation is met.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "decode/decode_private.h"

/* An index may be too new for a snapshot: rows that it does not have were changed while it was built. */
static bool
index_is_usable(Relation index)
{
	return !index->rd_index->indcheckxmin ||
		TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data), TransactionXmin);
}

/* ---- rows ---- */

List *
decode_key_texts(const DecodeKey *key, const Datum *values)
{
	List	   *texts = NIL;

	for (int i = 0; i < key->n; i++)
	{
		Oid			output;
		bool		is_varlena;

		getTypeOutputInfo(key->columns[i].typid, &output, &is_varlena);
		texts = lappend(texts, OidOutputFunctionCall(output, values[i]));
	}
	return texts;
}

static void
get_row_key(const DecodeKey *key, const DecodeRow *row, Datum *values)
{
	for (int i = 0; i < key->n; i++)
		values[i] = row->values[key->columns[i].attno];
}

/* A row on its way to a record. */
typedef struct CopiedRow
{
	const DecodeChunkReader *reader;
	const DecodeRow *row;
	bool		passes;
	CdcCell    *cells;
} CopiedRow;

/* UtilStep */
static void
make_cells(void *arg)
{
	CopiedRow  *copied = arg;
	DecodeRelation *entry = copied->reader->entry;
	CdcOutOp	op = CDC_OUT_READ;

	copied->passes = decode_filter_passes(entry, NULL, copied->row, &op);
	if (copied->passes)
		copied->cells = decode_change_cells(entry, copied->row, false, op, NULL);
}

static void
hand_on(DecodeChunkReader *reader, const CopiedRow *copied)
{
	CdcRecord	record = {.kind = CDC_RECORD_CHANGE,.op = CDC_OUT_READ,.of_copy = true};

	record.lsn = reader->chunk->lsn;
	record.now_us = decode_now_us();
	record.table = reader->entry->table;
	record.after = copied->cells;
	decode_place_now.in_receiver = true;
	reader->enough = !reader->row(reader->arg, &record);
	decode_place_now.in_receiver = false;
	reader->chunk->rows++;
	if (decode_letter_follows(reader->state, RelationGetRelid(reader->relation)))
		decode_letter_shipped(reader->state, reader->entry, reader->relation, CDC_OUT_READ, NULL, copied->row, InvalidXLogRecPtr);
}

/* One row, in reader->slot. */
static void
take_row(DecodeChunkReader *reader)
{
	MemoryContext old_context = MemoryContextSwitchTo(reader->row_context);
	bool		is_ours;
	HeapTuple	tuple = ExecFetchSlotHeapTuple(reader->slot, false, &is_ours);
	DecodeRow  *row = decode_row_open(reader->relation, tuple);
	CopiedRow	copied = {.reader = reader,.row = row};
	ErrorData  *edata;
	Datum		key[INDEX_MAX_KEYS];

	CHECK_FOR_INTERRUPTS();
	get_row_key(reader->key, row, key);
	if (reader->upper != NULL && decode_key_compare(reader->key, key, reader->upper) > 0)
		reader->enough = true;
	else if ((edata = decode_letter_try(reader->state, reader->entry, make_cells, &copied)) != NULL)
	{
		DecodeLetter letter = {.op = CDC_OUT_READ,.lsn = reader->chunk->lsn,.error = edata};

		reader->enough = !decode_letter_keep(reader->state, reader->entry, reader->relation, NULL, row, &letter);
	}
	else if (copied.passes)
		hand_on(reader, &copied);
	MemoryContextSwitchTo(old_context);
	/* where to go on: a table without a key is read to its end */
	if (reader->enough && reader->key->n > 0 && reader->chunk->last_key == NIL)
		reader->chunk->last_key = decode_key_texts(reader->key, key);
	MemoryContextReset(reader->row_context);
}

static void
set_scan_key(ScanKey scan_key, const DecodeKey *key, int i, StrategyNumber strategy, Datum value)
{
	const DecodeKeyColumn *column = &key->columns[i];
	Oid			operator = get_opfamily_member(column->opfamily, column->opcintype, column->opcintype, strategy);

	if (!OidIsValid(operator))
		elog(ERROR, "operator %d of family %u for type %u is missing", strategy, column->opfamily, column->opcintype);
	ScanKeyEntryInitialize(scan_key, 0, (AttrNumber) (i + 1), strategy, InvalidOid, column->collation, get_opcode(operator), value);
}

/*
 * A scan of rows of which the first "equal" columns of the key have those values, and the next one comes behind, if there is
 * "behind". keys_only: of the index alone, with its entries as they are.
 */
IndexScanDesc
decode_chunk_scan(const DecodeChunkReader *reader, Relation index, const Datum *values, int equal, bool behind, bool keys_only)
{
	const DecodeKey *key = reader->key;
	ScanKeyData scan_keys[INDEX_MAX_KEYS];
	IndexScanDesc scan;
	int			n = 0;

	for (; n < equal; n++)
		set_scan_key(&scan_keys[n], key, n, BTEqualStrategyNumber, values[n]);
	if (behind)
	{
		set_scan_key(&scan_keys[n], key, n, key->columns[n].descending ? BTLessStrategyNumber : BTGreaterStrategyNumber, values[n]);
		n++;
	}
	scan = cdc_index_beginscan(reader->relation, index, GetActiveSnapshot(), n);
	scan->xs_want_itup = keys_only;
	index_rescan(scan, scan_keys, n, NULL, 0);
	return scan;
}

static void
read_index(DecodeChunkReader *reader, Relation index, const Datum *values, int equal, bool behind)
{
	IndexScanDesc scan = decode_chunk_scan(reader, index, values, equal, behind, false);

	while (!reader->enough && index_getnext_slot(scan, ForwardScanDirection, reader->slot))
		take_row(reader);
	index_endscan(scan);
}

void
decode_chunk_read_by_key(DecodeChunkReader *reader, Relation index, const Datum *bound)
{
	if (bound == NULL)
	{
		read_index(reader, index, NULL, 0, false);
		return;
	}
	/* (a, b, c) behind (x, y, z): a = x, b = y, c behind z; then a = x, b behind y; then a behind x */
	for (int equal = reader->key->n - 1; equal >= 0 && !reader->enough; equal--)
		read_index(reader, index, bound, equal, true);
}

static void
read_all(DecodeChunkReader *reader)
{
	TableScanDesc scan = table_beginscan(reader->relation, GetActiveSnapshot(), 0, NULL);

	while (table_scan_getnextslot(scan, ForwardScanDirection, reader->slot))
		take_row(reader);
	table_endscan(scan);
}

/* The table is locked, and fits. False when its index cannot be used yet. */
static bool
read_rows(DecodeChunkReader *reader, const DecodeCopyTable *table, const DecodeChunkShare *share)
{
	Relation	index = OidIsValid(reader->key->indexid) ? index_open(reader->key->indexid, AccessShareLock) : NULL;
	bool		usable;

	PushActiveSnapshot(GetTransactionSnapshot());
	usable = index == NULL || index_is_usable(index);
	if (usable)
	{
		reader->chunk->snapshot = DatumGetCString(DirectFunctionCall1(pg_snapshot_out, DirectFunctionCall1(pg_current_snapshot, (Datum) 0)));
		reader->chunk->lsn = GetXLogInsertRecPtr();
		reader->slot = table_slot_create(reader->relation, NULL);
		if (index == NULL)
			read_all(reader);
		else if (table->again != NIL)
			read_index(reader, index, linitial(table->again), reader->key->n, false);
		else if (share == NULL || !decode_chunk_spread(reader, index, table->bound, share))
			decode_chunk_read_by_key(reader, index, table->bound);
		ExecDropSingleTupleTableSlot(reader->slot);
	}
	PopActiveSnapshot();
	if (index != NULL)
		index_close(index, NoLock);
	return usable;
}

DecodeChunkResult
decode_chunk_read(DecodeCopy *copy, DecodeCopyTable *table, DecodeChunkRow row, void *arg, const DecodeChunkShare *share,
				  DecodeChunk *chunk)
{
	DecodeChunkReader reader = {.state = copy->state,.row = row,.arg = arg,.chunk = chunk};
	DecodeChunkResult result = DECODE_CHUNK_GONE;

	memset(chunk, 0, sizeof(*chunk));
	if (!ConditionalLockRelationOid(table->relid, AccessShareLock))
		return DECODE_CHUNK_BUSY;
	reader.relation = try_relation_open(table->relid, NoLock);
	if (reader.relation == NULL)
		return DECODE_CHUNK_GONE;
	decode_pin_settings();
	decode_place_set(table->relid, InvalidTransactionId, InvalidXLogRecPtr, InvalidXLogRecPtr);
	if (reader.relation->rd_rel->relkind == RELKIND_RELATION && RelationNeedsWAL(reader.relation))
	{
		reader.entry = decode_relation_look(copy->state, reader.relation);
		if (reader.entry->actions != 0)
		{
			reader.key = decode_key_make(reader.relation);
			chunk->signature = reader.key->signature;
			result = DECODE_CHUNK_READ;
		}
	}
	if (result == DECODE_CHUNK_READ && table->signature != NULL && strcmp(table->signature, chunk->signature) != 0)
		result = DECODE_CHUNK_CHANGED;
	if (result == DECODE_CHUNK_READ)
	{
		reader.row_context = AllocSetContextCreate(CurrentMemoryContext, "cdc copied row", ALLOCSET_DEFAULT_SIZES);
		if (table->again != NIL)
			chunk->last_key = decode_key_texts(reader.key, linitial(table->again));
		if (!read_rows(&reader, table, share))
			result = DECODE_CHUNK_BUSY;
		MemoryContextDelete(reader.row_context);
	}
	decode_place_leave();
	relation_close(reader.relation, NoLock);
	return result;
}

void
decode_copy_anew_now(DecodeCopy *copy, DecodeCopyTable *table, CdcRecord *record)
{
	Relation	relation = RelationIdGetRelation(table->relid);
	const CdcOutTable *published = NULL;

	/* how it is shipped may be what throws */
	decode_place_set(table->relid, InvalidTransactionId, InvalidXLogRecPtr, InvalidXLogRecPtr);
	if (RelationIsValid(relation) && relation->rd_rel->relkind == RELKIND_RELATION)
	{
		const DecodeRelation *entry = decode_relation_look(copy->state, relation);

		published = entry->actions != 0 ? entry->table : NULL;
	}
	if (RelationIsValid(relation))
		RelationClose(relation);
	decode_copy_anew_record(copy->state, table, published, GetXLogInsertRecPtr(), record);
	decode_place_leave();
}
