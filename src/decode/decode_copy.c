/*-------------------------------------------------------------------------
 *
 * decode_copy.c
 *	  Which changes the stream leaves to the initial copy: see decode_copy.h.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/transam.h"
#include "access/xact.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "decode/decode_private.h"
#include "util/util_wait.h"

/* What a chunk saw, of transactions of the top level. */
typedef struct CopySnapshot
{
	TransactionId xmin;			/* all before it have ended */
	TransactionId xmax;			/* it and all behind it had not begun or not ended */
	int			nxip;
	TransactionId *xip;			/* between them, not ended */
} CopySnapshot;

typedef struct DecodeCopied
{
	MemoryContext context;		/* of all this */
	bool		is_row;			/* only the row of the key "upper" */
	Datum	   *lower;			/* NULL: from the beginning; else behind it */
	Datum	   *upper;			/* NULL: to the end; else up to it */
	CopySnapshot snapshot;
	XLogRecPtr	lsn;
} DecodeCopied;

static DecodeCopy *next_copy;

DecodeCopy *
decode_copy_create(XLogRecPtr skip_until)
{
	DecodeCopy *copy = palloc0(sizeof(DecodeCopy));
	HASHCTL		ctl = {
		.keysize = sizeof(Oid),
		.entrysize = sizeof(DecodeCopyTable)
	};

	copy->context = ctl.hcxt = AllocSetContextCreate(CurrentMemoryContext, "cdc copy", ALLOCSET_DEFAULT_SIZES);
	copy->tables = hash_create("cdc copied tables", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	copy->skip_until = skip_until;
	return copy;
}

void
decode_copy_use(DecodeCopy *copy)
{
	next_copy = copy;
}

/* For a decoding context that starts. */
void
decode_copy_attach(DecodeState *state)
{
	state->copy = next_copy;
	next_copy = NULL;
	if (state->copy != NULL)
		state->copy->state = state;
}

/* ---- tables ---- */

DecodeCopyTable *
decode_copy_add_table(DecodeCopy *copy, Oid relid, int table_id, const char *schema, const char *name)
{
	bool		found;
	DecodeCopyTable *table = hash_search(copy->tables, &relid, HASH_ENTER, &found);

	Assert(!found);
	memset(table, 0, sizeof(*table));
	table->relid = relid;
	table->table_id = table_id;
	table->schema = MemoryContextStrdup(copy->context, schema);
	table->name = MemoryContextStrdup(copy->context, name);
	return table;
}

static void
free_key(Datum *key)
{
	/* one piece, see copy_key */
	if (key != NULL)
		pfree(key);
}

void
decode_copy_begin_anew(DecodeCopy *copy, DecodeCopyTable *table)
{
	ListCell   *lc;

	foreach(lc, table->chunks)
		MemoryContextDelete(((DecodeCopied *) lfirst(lc))->context);
	list_free(table->chunks);
	table->chunks = NIL;
	foreach(lc, table->again)
		free_key(lfirst(lc));
	list_free(table->again);
	table->again = NIL;
	free_key(table->bound);
	table->bound = NULL;
	if (table->signature != NULL)
		pfree(table->signature);
	table->signature = NULL;
	table->complete = false;
	table->has_passed = false;
}

void
decode_copy_forget_table(DecodeCopy *copy, DecodeCopyTable *table)
{
	decode_copy_begin_anew(copy, table);
	pfree(table->schema);
	pfree(table->name);
	(void) hash_search(copy->tables, &table->relid, HASH_REMOVE, NULL);
}

void
decode_copy_passed(DecodeCopy *copy, DecodeCopyTable *table, XLogRecPtr lsn)
{
	while (table->chunks != NIL)
	{
		DecodeCopied *first = linitial(table->chunks);

		if (first->lsn > lsn)
			return;
		table->chunks = list_delete_first(table->chunks);
		table->has_passed = true;
		MemoryContextDelete(first->context);
	}
}

void
decode_copy_anew_record(const DecodeState *state, const DecodeCopyTable *table, const CdcOutTable *published, XLogRecPtr lsn, CdcRecord *record)
{
	CdcOutTable *out = palloc0(sizeof(CdcOutTable));

	decode_route_name(state, table->schema, table->name, &out->schema, &out->name);
	out->relid = table->relid;
	out->version = decode_relation_new_version();
	out->identity = REPLICA_IDENTITY_NOTHING;
	memset(record, 0, sizeof(*record));
	record->kind = CDC_RECORD_TRUNCATE;
	record->of_copy = true;
	record->lsn = lsn;
	record->now_us = decode_now_us();
	record->table = out;
	if (published != NULL && published->relid != table->relid)
	{
		record->root_schema = published->schema;
		record->root_name = published->name;
	}
}

/* ---- keys ---- */

/* What old rows are told apart by: columns of an index, none when there is no such index. In the current memory context. */
DecodeKey *
decode_key_make(Relation relation)
{
	DecodeKey  *key = palloc0(sizeof(DecodeKey));
	Oid			indexid = relation->rd_rel->relreplident == REPLICA_IDENTITY_FULL ? cdc_primary_key_index(relation) :
		RelationGetReplicaIndex(relation);
	StringInfoData signature;
	Relation	index;

	initStringInfo(&signature);
	appendStringInfo(&signature, "%s", quote_qualified_identifier(get_namespace_name(RelationGetNamespace(relation)),
																   RelationGetRelationName(relation)));
	index = OidIsValid(indexid) ? RelationIdGetRelation(indexid) : NULL;
	if (RelationIsValid(index))
	{
		key->indexid = indexid;
		key->n = IndexRelationGetNumberOfKeyAttributes(index);
		key->columns = palloc0(sizeof(DecodeKeyColumn) * key->n);
		for (int i = 0; i < key->n; i++)
		{
			DecodeKeyColumn *column = &key->columns[i];
			int			attnum = index->rd_index->indkey.values[i];
			Form_pg_attribute att = TupleDescAttr(RelationGetDescr(relation), attnum - 1);

			column->attno = attnum - 1;
			column->typid = att->atttypid;
			column->typlen = att->attlen;
			column->typbyval = att->attbyval;
			column->collation = index->rd_indcollation[i];
			column->opfamily = index->rd_opfamily[i];
			column->opcintype = index->rd_opcintype[i];
			column->descending = (index->rd_indoption[i] & INDOPTION_DESC) != 0;
			fmgr_info_copy(&column->compare, index_getprocinfo(index, i + 1, BTORDER_PROC), CurrentMemoryContext);
			appendStringInfo(&signature, " %d:%u:%u:%u%s", attnum, column->typid, column->collation, column->opfamily,
							 column->descending ? ":desc" : "");
		}
		RelationClose(index);
	}
	key->signature = signature.data;
	return key;
}

/* In the order of the index. */
int
decode_key_compare(const DecodeKey *key, const Datum *a, const Datum *b)
{
	for (int i = 0; i < key->n; i++)
	{
		const DecodeKeyColumn *column = &key->columns[i];
		int32		c = DatumGetInt32(FunctionCall2Coll(unconstify(FmgrInfo *, &column->compare), column->collation, a[i], b[i]));

		if (c != 0)
			return column->descending ? -c : c;
	}
	return 0;
}

/* A copy of a key, in one piece of memory: values that are not passed by value follow the array. */
static Datum *
copy_key(const DecodeKey *key, const Datum *values, MemoryContext context)
{
	Size		size = MAXALIGN(sizeof(Datum) * Max(key->n, 1));
	Datum	   *plain = palloc(sizeof(Datum) * Max(key->n, 1));
	Datum	   *result;
	char	   *next;

	for (int i = 0; i < key->n; i++)
	{
		const DecodeKeyColumn *column = &key->columns[i];

		plain[i] = column->typlen == -1 ? PointerGetDatum(PG_DETOAST_DATUM(values[i])) : values[i];
		if (!column->typbyval)
			size += MAXALIGN(datumGetSize(plain[i], false, column->typlen));
	}
	result = MemoryContextAlloc(context, size);
	next = (char *) result + MAXALIGN(sizeof(Datum) * Max(key->n, 1));
	for (int i = 0; i < key->n; i++)
	{
		const DecodeKeyColumn *column = &key->columns[i];

		result[i] = plain[i];
		if (!column->typbyval)
		{
			Size		len = datumGetSize(plain[i], false, column->typlen);

			memcpy(next, DatumGetPointer(plain[i]), len);
			result[i] = PointerGetDatum(next);
			next += MAXALIGN(len);
		}
	}
	pfree(plain);
	return result;
}

/*
 * The key's values in a row of the log; what an update did not touch may only be in the old row. A key without columns needs no
 * row. In the current memory context.
 */
static Datum *
row_key(const DecodeKey *key, const DecodeRow *row, const DecodeRow *old)
{
	Datum	   *values = palloc(sizeof(Datum) * Max(key->n, 1));

	for (int i = 0; i < key->n; i++)
	{
		int			attno = key->columns[i].attno;
		const DecodeRow *from = row != NULL && row->unchanged != NULL && row->unchanged[attno] && old != NULL ? old : row;

		if (from == NULL || from->nulls[attno] || (from->unchanged != NULL && from->unchanged[attno]))
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("the key of a change is not in the log")));
		values[i] = from->values[attno];
	}
	return values;
}

/* ---- what chunks saw ---- */

static void
parse_snapshot(const char *text, CopySnapshot *snapshot)
{
	char	   *end;
	int			room = 1;

	snapshot->xmin = (TransactionId) strtou64(text, &end, 10);
	snapshot->xmax = (TransactionId) strtou64(end + 1, &end, 10);
	for (const char *p = end; *p != '\0'; p++)
		room += *p == ',';
	snapshot->xip = palloc(sizeof(TransactionId) * room);
	snapshot->nxip = 0;
	while (*end != '\0' && end[1] != '\0')
		snapshot->xip[snapshot->nxip++] = (TransactionId) strtou64(end + 1, &end, 10);
}

/* Has it seen that transaction, which has committed? */
static bool
sees(const DecodeCopied *chunk, TransactionId xid)
{
	const CopySnapshot *snapshot = &chunk->snapshot;

	if (TransactionIdPrecedes(xid, snapshot->xmin))
		return true;
	if (TransactionIdFollowsOrEquals(xid, snapshot->xmax))
		return false;
	for (int i = 0; i < snapshot->nxip; i++)
	{
		if (snapshot->xip[i] == xid)
			return false;
	}
	return true;
}

static bool
all_see(const DecodeCopyTable *table, TransactionId xid)
{
	ListCell   *lc;

	/* a chunk that the stream has passed has not seen what comes now */
	if (table->has_passed)
		return false;
	foreach(lc, table->chunks)
	{
		if (!sees(lfirst(lc), xid))
			return false;
	}
	return true;
}

static bool
any_sees(const DecodeCopyTable *table, TransactionId xid)
{
	ListCell   *lc;

	foreach(lc, table->chunks)
	{
		if (sees(lfirst(lc), xid))
			return true;
	}
	return false;
}

static bool
covers(const DecodeCopied *chunk, const DecodeKey *key, const Datum *values)
{
	if (chunk->is_row)
		return decode_key_compare(key, values, chunk->upper) == 0;
	return (chunk->lower == NULL || decode_key_compare(key, values, chunk->lower) > 0) &&
		(chunk->upper == NULL || decode_key_compare(key, values, chunk->upper) <= 0);
}

/* Is it for the stream to tell what that transaction did to the key? */
static bool
is_for_stream(const DecodeCopyTable *table, const DecodeKey *key, const Datum *values, TransactionId xid)
{
	ListCell   *lc;

	if (!table->complete && (table->bound == NULL || decode_key_compare(key, values, table->bound) > 0))
		return false;
	foreach(lc, table->again)
	{
		if (decode_key_compare(key, values, lfirst(lc)) == 0)
			return false;
	}
	/* the newest chunk that has the key */
	for (int i = list_length(table->chunks) - 1; i >= 0; i--)
	{
		const DecodeCopied *chunk = list_nth(table->chunks, i);

		if (covers(chunk, key, values))
			return !sees(chunk, xid);
	}
	return true;
}

/* ---- the stream ---- */

static DecodeCopyTable *
find_table(DecodeState *state, ReorderBufferTXN *txn, Oid relid)
{
	DecodeCopy *copy = state->copy;

	if (copy == NULL || txn->end_lsn <= copy->skip_until)
		return NULL;
	return hash_search(copy->tables, &relid, HASH_FIND, NULL);
}

/* Another table that has been copied, in part or whole, under the name that the relation is shipped under now. */
static DecodeCopyTable *
find_predecessor(const DecodeState *state, Relation relation)
{
	const DecodeCopy *copy = state->copy;
	const char *schema;
	const char *name;
	const char *other_schema;
	const char *other_name;
	HASH_SEQ_STATUS scan;
	DecodeCopyTable *table;

	decode_route_name(state, get_namespace_name(RelationGetNamespace(relation)), RelationGetRelationName(relation), &schema, &name);
	hash_seq_init(&scan, copy->tables);
	while ((table = hash_seq_search(&scan)) != NULL)
	{
		if ((table->signature == NULL && !table->to_tell) || table->relid == RelationGetRelid(relation))
			continue;
		decode_route_name(state, table->schema, table->name, &other_schema, &other_name);
		if (strcmp(other_name, name) == 0 && strcmp(other_schema, schema) == 0)
		{
			hash_seq_term(&scan);
			return table;
		}
	}
	return NULL;
}

/* A change of a table that is not copied. */
static DecodeCopyVerdict
pass(DecodeState *state, ReorderBufferTXN *txn, DecodeRelation *entry, Relation relation, DecodeCopyTable **found)
{
	if (entry->name_is_free || txn->end_lsn <= state->copy->skip_until)
		return DECODE_COPY_PASS;
	*found = find_predecessor(state, relation);
	if (*found != NULL)
		return DECODE_COPY_SUCCEEDS;
	entry->name_is_free = true;
	return DECODE_COPY_PASS;
}

/*
 * What becomes of a change; *op may become another one. In the change's memory
 * context. With ANEW and SUCCEEDS the caller tells the receiver of *found, and then
 * calls decode_copy_begin_anew.
 */
const DecodeKey *
decode_relation_key(DecodeRelation *entry, Relation relation)
{
	if (entry->key == NULL)
	{
		MemoryContext old_context = MemoryContextSwitchTo(entry->context);

		entry->key = decode_key_make(relation);
		MemoryContextSwitchTo(old_context);
	}
	return entry->key;
}

DecodeCopyVerdict
decode_copy_change(DecodeState *state, ReorderBufferTXN *txn, DecodeRelation *entry, Relation relation,
				   const DecodeRow *old, const DecodeRow *new, CdcOutOp *op, DecodeCopyTable **found)
{
	DecodeCopyTable *table = *found = find_table(state, txn, RelationGetRelid(relation));
	TransactionId xid = txn->xid;
	bool		old_counts;
	bool		new_counts;
	Datum	   *old_key = NULL;
	Datum	   *new_key = NULL;

	if (table == NULL)
		return pass(state, txn, entry, relation, found);
	if (table->gone || table->signature == NULL)
		return DECODE_COPY_DROP;
	(void) decode_relation_key(entry, relation);
	if (strcmp(entry->key->signature, table->signature) != 0)
		return all_see(table, xid) ? DECODE_COPY_DROP : DECODE_COPY_ANEW;

	if (*op != CDC_OUT_DELETE)
		new_key = row_key(entry->key, new, old);
	if (*op != CDC_OUT_INSERT)
		old_key = row_key(entry->key, old != NULL ? old : new, NULL);
	old_counts = old_key != NULL && is_for_stream(table, entry->key, old_key, xid);
	new_counts = new_key != NULL && is_for_stream(table, entry->key, new_key, xid);
	if (*op == CDC_OUT_UPDATE && new_counts && !old_counts && decode_row_lacks(entry, new))
	{
		MemoryContext old_context = MemoryContextSwitchTo(state->copy->context);

		table->again = lappend(table->again, copy_key(entry->key, new_key, state->copy->context));
		MemoryContextSwitchTo(old_context);
		new_counts = false;
	}
	if (!old_counts && !new_counts)
		return DECODE_COPY_DROP;
	if (*op == CDC_OUT_UPDATE && old_counts != new_counts)
		*op = new_counts ? CDC_OUT_INSERT : CDC_OUT_DELETE;
	return DECODE_COPY_PASS;
}

/* Is the TRUNCATE of a relation shipped? anyway: the receiver hears of it by its root. */
bool
decode_copy_truncate(DecodeState *state, ReorderBufferTXN *txn, Relation relation, bool anyway)
{
	DecodeCopyTable *table = find_table(state, txn, RelationGetRelid(relation));

	if (table == NULL)
		return true;
	if (table->gone || table->signature == NULL)
		return false;
	if (!anyway && all_see(table, txn->xid))
		return false;
	if (any_sees(table, txn->xid))
	{
		decode_copy_begin_anew(state->copy, table);
		table->begins_anew = true;
	}
	return true;
}

/* ---- transactions that are decoded and not seen yet ---- */

static void
note_pending(DecodeCopy *copy, TransactionId xid)
{
	MemoryContext old_context = MemoryContextSwitchTo(copy->context);

	copy->pending = lappend_oid(copy->pending, xid);
	MemoryContextSwitchTo(old_context);
}

void
decode_copy_committed(DecodeState *state, TransactionId xid)
{
	if (state->copy != NULL && hash_get_num_entries(state->copy->tables) > 0 && TransactionIdIsInProgress(xid))
		note_pending(state->copy, xid);
}

static void
note_if_committed(DecodeCopy *copy, TransactionId xid)
{
	if (TransactionIdIsInProgress(xid) && TransactionIdDidCommit(xid))
		note_pending(copy, xid);
}

/*
 * A commit is written to the log, then noted in pg_xact, then the transaction
 * ends for others. In between the first two its process delays checkpoints: when those who do it now have come
 * further, pg_xact has all whose commits are in the log by now.
 */
void
decode_copy_note_running(DecodeCopy *copy)
{
	int			n;
	VirtualTransactionId *committing = GetVirtualXIDsDelayingChkpt(&n, DELAY_CHKPT_START);
	MemoryContext old_context = CurrentMemoryContext;
	TransactionId xid;
	TransactionId next;
	Snapshot	snapshot;

	while (n > 0 && HaveVirtualXIDsDelayingChkpt(committing, n, DELAY_CHKPT_START))
		(void) util_wait(PGINVALID_SOCKET, 1, UTIL_WAIT_SNAPSHOT);
	pfree(committing);

	StartTransactionCommand();
	snapshot = GetTransactionSnapshot();
	next = ReadNextTransactionId();
	for (uint32 i = 0; i < snapshot->xcnt; i++)
		note_if_committed(copy, snapshot->xip[i]);
	xid = snapshot->xmax;
	while (TransactionIdPrecedes(xid, next))
	{
		note_if_committed(copy, xid);
		TransactionIdAdvance(xid);
	}
	CommitTransactionCommand();
	MemoryContextSwitchTo(old_context);
}

bool
decode_copy_is_settled(DecodeCopy *copy, long wait_ms)
{
	while (copy->pending != NIL)
	{
		while (copy->pending != NIL && !TransactionIdIsInProgress((TransactionId) llast_oid(copy->pending)))
			copy->pending = list_delete_last(copy->pending);
		if (copy->pending == NIL)
			break;
		if (wait_ms-- <= 0)
			return false;
		(void) util_wait(PGINVALID_SOCKET, 1, UTIL_WAIT_SNAPSHOT);
	}
	return true;
}

/* ---- chunks ---- */

Datum *
decode_key_from_texts(const DecodeKey *key, List *texts)
{
	Datum	   *values = palloc(sizeof(Datum) * Max(key->n, 1));
	int			i = 0;
	ListCell   *lc;

	if (list_length(texts) != key->n)
		elog(ERROR, "a chunk has %d columns of a key of %d", list_length(texts), key->n);
	foreach(lc, texts)
	{
		Oid			input;
		Oid			param;
		Oid			typid = getBaseType(key->columns[i].typid);

		getTypeInputInfo(typid, &input, &param);
		values[i++] = OidInputFunctionCall(input, lfirst(lc), param, -1);
	}
	return values;
}

bool
decode_chunk_take(DecodeCopy *copy, DecodeCopyTable *table, const DecodeChunk *chunk, bool is_row)
{
	/* as the decoding does, without a lock: somebody may hold a stronger one, and the stream must not wait for him */
	Relation	relation = RelationIdGetRelation(table->relid);
	MemoryContext context;
	MemoryContext old_context;
	DecodeCopied *copied;
	DecodeKey  *key;
	bool		fits;

	if (!RelationIsValid(relation))
		return false;
	decode_pin_settings();
	key = decode_key_make(relation);
	fits = strcmp(key->signature, chunk->signature) == 0;
	if (fits)
	{
		Datum	   *upper = chunk->last_key == NIL ? NULL : decode_key_from_texts(key, chunk->last_key);

		context = AllocSetContextCreate(copy->context, "cdc copied chunk", ALLOCSET_SMALL_SIZES);
		old_context = MemoryContextSwitchTo(context);
		copied = palloc0(sizeof(DecodeCopied));
		copied->context = context;
		copied->is_row = is_row;
		copied->lower = is_row || table->bound == NULL ? NULL : copy_key(key, table->bound, context);
		copied->upper = upper == NULL ? NULL : copy_key(key, upper, context);
		copied->lsn = chunk->lsn;
		if (chunk->snapshot != NULL)
			parse_snapshot(chunk->snapshot, &copied->snapshot);
		MemoryContextSwitchTo(copy->context);
		if (table->signature == NULL)
		{
			table->signature = pstrdup(chunk->signature);
			pfree(table->schema);
			pfree(table->name);
			table->schema = get_namespace_name(RelationGetNamespace(relation));
			table->name = pstrdup(RelationGetRelationName(relation));
		}
		if (is_row)
		{
			for (int i = list_length(table->again) - 1; i >= 0; i--)
			{
				Datum	   *again = list_nth(table->again, i);

				if (decode_key_compare(key, again, upper) != 0)
					continue;
				table->again = list_delete_nth_cell(table->again, i);
				free_key(again);
			}
		}
		else
		{
			free_key(table->bound);
			table->bound = upper == NULL ? NULL : copy_key(key, upper, copy->context);
			table->complete = upper == NULL;
		}
		if (chunk->snapshot != NULL)
			table->chunks = lappend(table->chunks, copied);
		else
		{
			table->has_passed = true;
			MemoryContextDelete(context);
		}
		MemoryContextSwitchTo(old_context);
	}
	RelationClose(relation);
	return fits;
}
