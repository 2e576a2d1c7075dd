/*-------------------------------------------------------------------------
 *
 * decode_letter.c
 *	  Changes, and rows of a copy, whose expressions throw: handed to whoever
 *	  keeps them, so that all others go on; and what is shipped later of the rows
 *	  that they are of.
 *
 * NOTES
 *	  Only where somebody keeps them and users' expressions are run is a
 *	  subtransaction spent on each. Only for tables that have letters are keys
 *	  looked at: these are of the relation's own columns, before any transform, and
 *	  say which columns of which types they are, so that another key is never taken for one.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "decode/decode_private.h"
#include "heap/heap_image.h"
#include "util/util_error.h"

/* Is an error about the row, so that the others go on without it? */
static bool
is_of_row(int sqlstate)
{
	return util_error_class(sqlstate) == UTIL_ERROR_DATA && ERRCODE_TO_CATEGORY(sqlstate) != ERRCODE_TO_CATEGORY(ERRCODE_INTERNAL_ERROR);
}

ErrorData *
decode_letter_try(const DecodeState *state, const DecodeRelation *entry, UtilStep step, void *arg)
{
	ErrorData  *edata = NULL;

	if (decode_letter_is_wanted(state, entry))
		edata = util_subtransaction(step, arg, true);
	else
		step(arg);
	if (edata != NULL && !is_of_row(edata->sqlerrcode))
		ReThrowError(edata);
	return edata;
}

bool
decode_letter_keep(const DecodeState *state, DecodeRelation *entry, Relation relation, const DecodeRow *old, const DecodeRow *new,
				   DecodeLetter *letter)
{
	letter->relid = RelationGetRelid(relation);
	decode_transform_name(entry, &letter->schema, &letter->name);
	if (old != NULL)
		letter->before = decode_transform_image(entry, old, true);
	if (new != NULL)
		letter->after = decode_transform_image(entry, new, false);
	letter->shape = decode_letter_shape(relation, 0);
	decode_letter_keys(decode_relation_key(entry, relation), relation, letter->op, old, new, &letter->old_key, &letter->new_key);
	return state->keep(state->emit_arg, letter);
}

/* ---- columns ---- */

bytea *
decode_letter_shape(Relation relation, int n)
{
	TupleDesc	desc = RelationGetDescr(relation);
	HeapImageKey *digest = heap_image_key_begin();
	uint16		count = (uint16) (n == 0 ? desc->natts : Min(n, desc->natts));
	bytea	   *names;
	bytea	   *result;
	Size		len;

	for (int i = 0; i < count; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		const char *name = att->attisdropped ? "" : NameStr(att->attname);

		heap_image_key_add_bytes(digest, name, strlen(name) + 1);
	}
	names = heap_image_key_end(digest);
	len = VARSIZE(names) - VARHDRSZ;
	result = palloc(VARHDRSZ + len + sizeof(count));
	SET_VARSIZE(result, VARHDRSZ + len + sizeof(count));
	memcpy(VARDATA(result), VARDATA(names), len);
	memcpy(VARDATA(result) + len, &count, sizeof(count));
	return result;
}

int
decode_letter_shape_columns(const bytea *shape)
{
	uint16		count;

	memcpy(&count, VARDATA_ANY(shape) + VARSIZE_ANY_EXHDR(shape) - sizeof(count), sizeof(count));
	return count;
}

/* ---- keys ---- */

/* One column of a key: what it is, and its value as text. */
static void
add_column(HeapImageKey *digest, Form_pg_attribute att, Datum value, bool isnull)
{
	char	   *what = psprintf("%s:%u:%d", NameStr(att->attname), att->atttypid, att->atttypmod);
	Oid			output;
	bool		is_varlena;
	char	   *text;

	heap_image_key_add_bytes(digest, what, strlen(what) + 1);
	if (isnull)
	{
		heap_image_key_add_bytes(digest, "", 1);
		return;
	}
	getTypeOutputInfo(att->atttypid, &output, &is_varlena);
	text = psprintf("=%s", OidOutputFunctionCall(output, value));
	heap_image_key_add_bytes(digest, text, strlen(text) + 1);
}

/* The key of a row, where that is not known of the other row; NULL: nobody knows it. Without a key it is the whole row. */
static bytea *
key_of(const DecodeKey *key, Relation relation, const DecodeRow *row, const DecodeRow *other)
{
	TupleDesc	desc = RelationGetDescr(relation);
	int			n = key->n > 0 ? key->n : desc->natts;
	HeapImageKey *digest;

	if (row == NULL)
		return NULL;
	digest = heap_image_key_begin();
	for (int i = 0; i < n; i++)
	{
		int			attno = key->n > 0 ? key->columns[i].attno : i;
		const DecodeRow *from = row->unchanged != NULL && row->unchanged[attno] ? other : row;

		if (TupleDescAttr(desc, attno)->attisdropped)
			continue;
		if (from == NULL)
		{
			(void) heap_image_key_end(digest);
			return NULL;
		}
		add_column(digest, TupleDescAttr(desc, attno), from->values[attno], from->nulls[attno]);
	}
	return heap_image_key_end(digest);
}

void
decode_letter_keys(const DecodeKey *key, Relation relation, CdcOutOp op, const DecodeRow *old, const DecodeRow *new,
				   bytea **old_key, bytea **new_key)
{
	*old_key = *new_key = NULL;
	if (op != CDC_OUT_DELETE)
		*new_key = key_of(key, relation, new, old);
	if (op == CDC_OUT_DELETE || op == CDC_OUT_UPDATE)
		*old_key = key_of(key, relation, old != NULL || op == CDC_OUT_UPDATE ? old : new, NULL);
	if (*old_key != NULL && *new_key != NULL && memcmp(VARDATA(*old_key), VARDATA(*new_key), VARSIZE(*old_key) - VARHDRSZ) == 0)
		*old_key = NULL;
}

/* ---- what is shipped later ---- */

void
decode_letter_shipped(const DecodeState *state, DecodeRelation *entry, Relation relation, CdcOutOp op, const DecodeRow *old,
					  const DecodeRow *new, XLogRecPtr txn_end)
{
	const DecodeKey *key = decode_relation_key(entry, relation);
	TupleDesc	desc = RelationGetDescr(relation);
	DecodeShipped shipped = {.relid = RelationGetRelid(relation),.has_key = key->n > 0,.txn_end = txn_end};

	decode_letter_keys(key, relation, op, old, new, &shipped.old_key, &shipped.new_key);
	for (int i = 0; op == CDC_OUT_UPDATE && decode_row_lacks(entry, new) && i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped && !new->unchanged[i])
			shipped.told = lappend(shipped.told, NameStr(TupleDescAttr(desc, i)->attname));
	}
	state->follow->shipped(state->emit_arg, &shipped);
}

void
decode_letter_emptied(const DecodeState *state, Oid relid, XLogRecPtr txn_end)
{
	DecodeShipped shipped = {.relid = relid,.all = true,.txn_end = txn_end};

	state->follow->shipped(state->emit_arg, &shipped);
}
