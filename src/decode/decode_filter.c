/*-------------------------------------------------------------------------
 *
 * decode_filter.c
 *	  Row filters of publications, and of option transforms.
 *
 * NOTES
 *	  A row passes when one of the filters holds that the publications have for
 *	  the action, or when a publication has none. Of an UPDATE both rows are
 *	  looked at, as far as the log has them: what moves out of the filter is a
 *	  delete for the receiver, what moves in an insert. The server sees to it that
 *	  filters for UPDATE and DELETE name only columns of the replica identity,
 *	  which old rows have.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tupdesc.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"

#include "decode/decode_private.h"

/* One of them has to hold; NULL when there are none. */
static ExprState *
prepare(List *filters, EState *estate)
{
	if (filters == NIL)
		return NULL;
	return ExecPrepareExpr(list_length(filters) > 1 ? makeBoolExpr(OR_EXPR, filters, -1) : linitial(filters), estate);
}

/* Where the columns of publish_as are in tuples of the relation, by name when it is another one. */
static AttrNumber *
match_columns(Relation publish_as, Relation relation)
{
	TupleDesc	desc = RelationGetDescr(publish_as);
	TupleDesc	own = RelationGetDescr(relation);
	AttrNumber *attnos = palloc(sizeof(AttrNumber) * Max(desc->natts, 1));

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		attnos[i] = -1;
		for (int k = 0; k < own->natts && !att->attisdropped; k++)
		{
			if (!TupleDescAttr(own, k)->attisdropped && strcmp(NameStr(TupleDescAttr(own, k)->attname), NameStr(att->attname)) == 0)
				attnos[i] = k;
		}
	}
	return attnos;
}

/* In the entry's memory context. */
void
decode_filter_init(DecodeRelation *entry, Relation publish_as, Relation relation, const DecodePublished *published)
{
	if (published->filters[0] == NIL && published->filters[1] == NIL && published->filters[2] == NIL)
		return;
	entry->estate = CreateExecutorState();
	entry->filter_insert = prepare(published->filters[0], entry->estate);
	entry->filter_update = prepare(published->filters[1], entry->estate);
	entry->filter_delete = prepare(published->filters[2], entry->estate);
	entry->slot = MakeSingleTupleTableSlot(CreateTupleDescCopyConstr(RelationGetDescr(publish_as)), &TTSOpsVirtual);
	entry->slot_attnos = match_columns(publish_as, relation);
}

static bool
holds(DecodeRelation *entry, ExprState *filter, const DecodeRow *row)
{
	TupleTableSlot *slot = entry->slot;
	ExprContext *econtext = GetPerTupleExprContext(entry->estate);
	Datum		result;
	bool		is_null;

	ExecClearTuple(slot);
	for (int i = 0; i < slot->tts_tupleDescriptor->natts; i++)
	{
		int			attno = entry->slot_attnos[i];

		/* a value that nobody knows is not one of the replica identity, so that no filter asks for it */
		slot->tts_isnull[i] = attno < 0 || row->nulls[attno] || (row->unchanged != NULL && row->unchanged[attno]);
		slot->tts_values[i] = slot->tts_isnull[i] ? (Datum) 0 : row->values[attno];
	}
	ExecStoreVirtualTuple(slot);
	ResetExprContext(econtext);
	econtext->ecxt_scantuple = slot;
	result = ExecEvalExprSwitchContext(filter, econtext, &is_null);
	ExecClearTuple(slot);
	return !is_null && DatumGetBool(result);
}

/* DecodeHolds: the publications' filters */
static bool
is_published(DecodeRelation *entry, CdcOutOp op, const DecodeRow *row)
{
	ExprState  *filter = op == CDC_OUT_UPDATE ? entry->filter_update : op == CDC_OUT_DELETE ? entry->filter_delete : entry->filter_insert;

	return filter == NULL || holds(entry, filter, row);
}

static bool
passes(DecodeRelation *entry, DecodeHolds condition, const DecodeRow *old, const DecodeRow *new, CdcOutOp *op)
{
	bool		old_in;
	bool		new_in;

	switch (*op)
	{
		case CDC_OUT_INSERT:
		case CDC_OUT_READ:
			return condition(entry, *op, new);
		case CDC_OUT_DELETE:
			/* without an old row nobody can tell, and a delete must not get lost */
			return old == NULL || condition(entry, *op, old);
		case CDC_OUT_UPDATE:
			break;
	}
	new_in = condition(entry, *op, new);
	old_in = old == NULL ? new_in : condition(entry, *op, old);
	if (old_in != new_in)
		*op = new_in ? CDC_OUT_INSERT : CDC_OUT_DELETE;
	return old_in || new_in;
}

/* An update that is an insert for the receiver needs the whole row. */
static void
check_whole_row(const DecodeRelation *entry, const DecodeRow *new)
{
	if (!decode_transform_lacks(entry, new))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("an update brings a row of table %s.%s into the filter of option \"%s\", and does not have the whole row",
					quote_identifier(entry->table->schema), quote_identifier(entry->table->name), TRANSFORM_OPTION),
			 errdetail("A large value that it did not touch is not in the log."),
			 errhint("Run ALTER TABLE ... REPLICA IDENTITY FULL.")));
}

bool
decode_filter_passes(DecodeRelation *entry, const DecodeRow *old, const DecodeRow *new, CdcOutOp *op)
{
	CdcOutOp	before;

	/* by far the most have neither */
	if (entry->estate == NULL)
		return true;
	if (!passes(entry, is_published, old, new, op))
		return false;
	if (entry->transform == NULL)
		return true;
	before = *op;
	if (!passes(entry, decode_transform_holds, old, new, op))
		return false;
	if (before == CDC_OUT_UPDATE && *op == CDC_OUT_INSERT)
		check_whole_row(entry, new);
	return true;
}
