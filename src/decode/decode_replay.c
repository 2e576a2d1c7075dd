/*-------------------------------------------------------------------------
 *
 * decode_replay.c
 *	  Dead letters of an outgoing pipeline -> records, once more.
 *
 * NOTES
 *	  The images of a letter have the values of a row as texts. They are read by
 *	  the types that the columns have now, and go through filter and projection as
 *	  these are now. Nothing is guessed: a value whose column is gone, and a key that is
 *	  another one than the letter was made under, are errors of the letter.
 *
 *	  What a later change has made moot of it is not shipped:
 *
 *	  UPDATE that left the key	old key moot		the row as it became, as an insert
 *								new key moot		a delete of the row that was
 *	  columns told since		count as not touched, in an update
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xact.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "decode/decode_private.h"
#include "decode/decode_replay.h"
#include "util/util_error.h"
#include "util/util_name.h"

typedef struct Replay
{
	const DecodeOldLetter *letter;
	Relation	relation;
	DecodeRelation *entry;
	DecodeKey  *key;
	DecodeRow  *old;
	DecodeRow  *new;
	CdcOutOp	op;
} Replay;

#define HINT_ANEW "Let cdc_resync_table() ship the table anew, or give the letter up with cdc_discard_dead_letters()."

static char *
table_text(const Replay *replay)
{
	return quote_qualified_identifier(get_namespace_name(RelationGetNamespace(replay->relation)), RelationGetRelationName(replay->relation));
}

/* ---- images -> rows ---- */

static int
column_of(const Replay *replay, const char *name)
{
	TupleDesc	desc = RelationGetDescr(replay->relation);

	for (int i = 0; i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped && strcmp(NameStr(TupleDescAttr(desc, i)->attname), name) == 0)
			return i;
	}
	ereport(ERROR,
			(errcode(CDC_ERRCODE_TABLE_CHANGED),
			 errmsg("the dead letter has a column \"%s\", and table %s has none", name, table_text(replay)),
			 errhint(HINT_ANEW)));
}

static void
set_value(DecodeRow *row, Form_pg_attribute att, int at, const JsonbValue *value)
{
	Oid			input;
	Oid			param;

	if (value->type != jbvString)
		return;
	getTypeInputInfo(att->atttypid, &input, &param);
	row->values[at] = OidInputFunctionCall(input, pnstrdup(value->val.string.val, value->val.string.len), param, att->atttypmod);
	row->nulls[at] = false;
}

/* Read an image; told: attribute numbers, from 1, of what it has. */
static DecodeRow *
read_image(const Replay *replay, Datum image, Bitmapset **told)
{
	TupleDesc	desc = RelationGetDescr(replay->relation);
	int			n = Max(desc->natts, 1);
	DecodeRow  *row = palloc0(sizeof(DecodeRow));
	JsonbIterator *it = JsonbIteratorInit(&DatumGetJsonbP(image)->root);
	JsonbIteratorToken token;
	JsonbValue	value;

	row->values = palloc0(sizeof(Datum) * n);
	row->nulls = palloc(sizeof(bool) * n);
	memset(row->nulls, true, sizeof(bool) * n);
	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		int			at;

		if (token != WJB_KEY)
			continue;
		at = column_of(replay, pnstrdup(value.val.string.val, value.val.string.len));
		(void) JsonbIteratorNext(&it, &value, true);
		set_value(row, TupleDescAttr(desc, at), at, &value);
		*told = bms_add_member(*told, at + 1);
	}
	return row;
}

static int
last_of(const Bitmapset *set)
{
	int			last = -1;

	for (int i = -1; (i = bms_next_member(set, i)) >= 0;)
		last = i;
	return last;
}

static bool
is_in_key(const DecodeKey *key, int at)
{
	for (int i = 0; i < key->n; i++)
	{
		if (key->columns[i].attno == at)
			return true;
	}
	return false;
}

/* The new row: what its image does not have was not touched, or is a column that came later. */
static void
read_new(Replay *replay)
{
	TupleDesc	desc = RelationGetDescr(replay->relation);
	Bitmapset  *told = NULL;
	int			last;

	replay->new = read_image(replay, replay->letter->after, &told);
	replay->new->unchanged = palloc0(sizeof(bool) * Max(desc->natts, 1));
	last = last_of(told);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		bool		is_newer = util_name_in(replay->letter->newer, NameStr(att->attname)) && !is_in_key(replay->key, i);

		if (att->attisdropped || (bms_is_member(i + 1, told) && !is_newer))
			continue;
		if (is_newer || (replay->letter->op == CDC_OUT_UPDATE && i + 1 < last))
		{
			replay->new->unchanged[i] = true;
			replay->new->nulls[i] = false;
		}
		else if (i + 1 > last && att->atthasmissing)
			replay->new->values[i] = getmissingattr(desc, i + 1, &replay->new->nulls[i]);
		else if (i + 1 < last && bms_is_member(i + 1, replay->entry->shipped))
			ereport(ERROR,
					(errcode(CDC_ERRCODE_TABLE_CHANGED),
					 errmsg("the dead letter does not have column \"%s\" of table %s", NameStr(att->attname), table_text(replay)),
					 errdetail("The column was not shipped when the letter was made."),
					 errhint(HINT_ANEW)));
	}
}

/* The old row, as far as it tells what old rows have to have now. */
static void
read_old(Replay *replay)
{
	Bitmapset  *told = NULL;
	bool		is_whole = true;

	replay->old = read_image(replay, replay->letter->before, &told);
	for (int i = 0; i < replay->entry->natts; i++)
	{
		if (replay->entry->in_identity[i] && !TupleDescAttr(RelationGetDescr(replay->relation), i)->attisdropped)
			is_whole &= bms_is_member(i + 1, told);
	}
	if (is_whole)
		return;
	if (replay->letter->old_key != NULL)
		ereport(ERROR,
				(errcode(CDC_ERRCODE_TABLE_CHANGED),
				 errmsg("the old row of the dead letter lacks columns of the replica identity of table %s", table_text(replay)),
				 errhint(HINT_ANEW)));
	replay->old = NULL;
}

/* ---- keys ---- */

static bool
is_other(const bytea *known, const bytea *now)
{
	return known != NULL && (now == NULL || memcmp(VARDATA_ANY(known), VARDATA_ANY(now), VARSIZE_ANY_EXHDR(known)) != 0);
}

/* An image has columns by name: these have to be the same columns still. */
static void
look_at_shape(const Replay *replay)
{
	const bytea *shape = replay->letter->shape;

	if (shape != NULL && is_other(shape, decode_letter_shape(replay->relation, decode_letter_shape_columns(shape))))
		ereport(ERROR,
				(errcode(CDC_ERRCODE_TABLE_CHANGED),
				 errmsg("columns of table %s were renamed or dropped since the dead letter was made", table_text(replay)),
				 errhint(HINT_ANEW)));
}

/* Is the key that later changes were looked for by still the one that the table has? And what is left of the letter by them? */
static void
look_at_keys(Replay *replay)
{
	const DecodeOldLetter *letter = replay->letter;
	const DecodeKey *key = replay->key;
	bytea	   *old_key;
	bytea	   *new_key;

	if (key->n == 0 && (replay->op == CDC_OUT_UPDATE || replay->op == CDC_OUT_DELETE))
		ereport(ERROR,
				(errcode(CDC_ERRCODE_NO_KEY),
				 errmsg("table %s has no key, so nothing says whether its row has changed since", table_text(replay)),
				 errhint(HINT_ANEW)));
	decode_letter_keys(key, replay->relation, replay->op, replay->old, replay->new, &old_key, &new_key);
	if (is_other(letter->old_key, old_key) || is_other(letter->new_key, new_key))
		ereport(ERROR,
				(errcode(CDC_ERRCODE_TABLE_CHANGED),
				 errmsg("the key of table %s, or the type of a part of it, is another one than when the dead letter was made", table_text(replay)),
				 errdetail("Later changes of its row cannot be told."),
				 errhint(HINT_ANEW)));
	if (replay->op != CDC_OUT_UPDATE || old_key == NULL)
		return;
	if (letter->new_key == NULL)
		replay->op = CDC_OUT_DELETE;
	else if (letter->old_key == NULL)
		replay->op = CDC_OUT_INSERT;
}

/* ---- the record ---- */

static bool
is_shipped(const Replay *replay)
{
	static const int actions[] = {
		[CDC_OUT_INSERT] = DECODE_INSERT,[CDC_OUT_UPDATE] = DECODE_UPDATE,[CDC_OUT_DELETE] = DECODE_DELETE,[CDC_OUT_READ] = DECODE_ALL
	};

	return (replay->entry->actions & actions[replay->op]) != 0;
}

static DecodeReplayResult
make_record(Replay *replay, CdcRecord *record)
{
	const DecodeOldLetter *letter = replay->letter;
	CdcOutTxn	txn = {.commit_lsn = letter->commit_lsn,.time_us = letter->time_us};
	DecodeRelation *entry = replay->entry;

	if (!decode_filter_passes(entry, replay->op == CDC_OUT_INSERT || replay->op == CDC_OUT_READ ? NULL : replay->old, replay->new, &replay->op) ||
		!is_shipped(replay))
		return DECODE_REPLAY_NOTHING;
	if (letter->newer != NIL && replay->op != CDC_OUT_DELETE)
		replay->op = CDC_OUT_UPDATE;
	if (replay->op == CDC_OUT_INSERT && decode_row_lacks(entry, replay->new))
		ereport(ERROR,
				(errcode(CDC_ERRCODE_ROW_MISSING),
				 errmsg("the dead letter does not have the whole row of table %s, and the one that it was made of has changed since", table_text(replay)),
				 errhint(HINT_ANEW)));
	memset(record, 0, sizeof(*record));
	record->kind = CDC_RECORD_CHANGE;
	record->of_copy = true;
	record->lsn = letter->lsn;
	record->now_us = decode_now_us();
	record->table = entry->table;
	record->op = replay->op;
	if (replay->old != NULL && (replay->op == CDC_OUT_UPDATE || replay->op == CDC_OUT_DELETE))
		record->before = decode_change_cells(entry, replay->old, true, replay->op, &txn);
	if (replay->new != NULL && replay->op != CDC_OUT_DELETE)
		record->after = decode_change_cells(entry, replay->new, false, replay->op, &txn);
	if (record->op == CDC_OUT_DELETE && record->before != NULL && decode_transform_marks_deletes(entry))
	{
		record->op = CDC_OUT_UPDATE;
		record->after = decode_transform_mark_deleted(entry, record->before, &txn);
	}
	return DECODE_REPLAY_MADE;
}

static DecodeReplayResult
replay_table(Replay *replay, DecodeCopy *copy, CdcRecord *record)
{
	if (replay->relation->rd_rel->relkind != RELKIND_RELATION || !RelationNeedsWAL(replay->relation))
		return DECODE_REPLAY_GONE;
	replay->entry = decode_relation_look(copy->state, replay->relation);
	if (replay->entry->actions == 0)
		return DECODE_REPLAY_GONE;
	look_at_shape(replay);
	replay->key = decode_key_make(replay->relation);
	if (replay->letter->after != (Datum) 0)
		read_new(replay);
	if (replay->letter->before != (Datum) 0)
		read_old(replay);
	look_at_keys(replay);
	return make_record(replay, record);
}

DecodeReplayResult
decode_replay(DecodeCopy *copy, const DecodeOldLetter *letter, CdcRecord *record)
{
	Replay		replay = {.letter = letter,.op = letter->op};
	DecodeReplayResult result;

	if (!ConditionalLockRelationOid(letter->relid, AccessShareLock))
		return DECODE_REPLAY_BUSY;
	replay.relation = try_relation_open(letter->relid, NoLock);
	if (replay.relation == NULL)
		return DECODE_REPLAY_GONE;
	decode_pin_settings();
	result = replay_table(&replay, copy, record);
	relation_close(replay.relation, NoLock);
	return result;
}
