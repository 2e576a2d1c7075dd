/*-------------------------------------------------------------------------
 *
 * apply_soft.c
 *	  Targets that keep what the source deletes, with a mark (option transforms,
 *	  "target": "soft_delete").
 *
 * NOTES
 *	  A row with the mark counts as none: an insert that meets one writes over it,
 *	  which takes the mark away, and a second delete leaves it as it is, with the
 *	  time of the first. So what is told in apply_row.c holds for "the row is there
 *	  and has no mark".
 *
 *	  While the table is being copied a key that is deleted is noted as in any
 *	  other target, and a row that chunks have not brought yet is not made up from
 *	  the delete's image: it is not here, as those that were deleted before the
 *	  copy are not.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "apply/apply_private.h"

/* Attributes of the target that mark a row; false: it is no such target. */
static bool
marks_of(const ApplyTable *table, AttrNumber *deleted, AttrNumber *deleted_at)
{
	const TransformTable *transform = table->row->transform != NULL ? table->row->transform->table : NULL;

	if (transform == NULL || transform->deleted < 0)
		return false;
	*deleted = transform->attnums[transform->deleted];
	*deleted_at = transform->attnums[transform->deleted_at];
	return true;
}

bool
apply_soft_is_used(const ApplyTable *table)
{
	AttrNumber	deleted;
	AttrNumber	deleted_at;

	return marks_of(table, &deleted, &deleted_at);
}

bool
apply_soft_is_marked(ApplyTable *table)
{
	HeapTarget *target = table->row->target;
	AttrNumber	deleted;
	AttrNumber	deleted_at;
	TupleTableSlot *stored;

	if (!marks_of(table, &deleted, &deleted_at) || !heap_target_read(target))
		return false;
	stored = target->stored;
	return !stored->tts_isnull[deleted - 1] && DatumGetBool(stored->tts_values[deleted - 1]);
}

bool
apply_soft_mark(Apply *apply, ApplyTable *table)
{
	HeapTarget *target = table->row->target;
	int			natts = RelationGetDescr(target->rel)->natts;
	Datum	   *values = palloc(sizeof(Datum) * natts);
	bool	   *isnull = palloc(sizeof(bool) * natts);
	AttrNumber	deleted = 0;
	AttrNumber	deleted_at = 0;

	/* locked first, so that nobody changes it between reading and writing */
	if (!heap_target_find(target) || apply_soft_is_marked(table) || !heap_target_find(target))
		return false;
	(void) marks_of(table, &deleted, &deleted_at);

	/* the row that the change brings stands in the slot, when its key is another one */
	memcpy(values, target->slot->tts_values, sizeof(Datum) * natts);
	memcpy(isnull, target->slot->tts_isnull, sizeof(bool) * natts);
	heap_set_row(target->slot, target->stored->tts_values, target->stored->tts_isnull);
	target->slot->tts_values[deleted - 1] = BoolGetDatum(true);
	target->slot->tts_isnull[deleted - 1] = false;
	target->slot->tts_values[deleted_at - 1] =
		TimestampTzGetDatum(apply->txn_time != 0 ? apply->txn_time : GetCurrentTimestamp());
	target->slot->tts_isnull[deleted_at - 1] = false;
	heap_target_update(target);
	heap_set_row(target->slot, values, isnull);
	pfree(values);
	pfree(isnull);
	return true;
}
