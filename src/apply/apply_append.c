/*-------------------------------------------------------------------------
 *
 * apply_append.c
 *	  Targets that have a row for each change (option transforms,
 *	  "target": "append").
 *
 * NOTES
 *	  An insert and an update come to the row after them, a delete to the row
 *	  before it. An update that changes the key comes to two, "delete" of the old
 *	  row and "insert" of the new one, so that who groups by the key sees the old
 *	  one end. A filter is looked at for both rows of an update: one that takes a
 *	  row out is its "delete", one that brings it in its "insert".
 *
 *	  The target is one of a table without a key (transform_kind_use_key) to which
 *	  rows are only added. cdc_position and cdc_sequence tell the order of rows:
 *	  the number of the change in its transaction, as a dead letter keeps it too.
 *	  The two rows of a key that changes have one number, and "delete" sorts before
 *	  "insert".
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "apply/apply_private.h"

bool
apply_append_is_used(const ApplyTable *table)
{
	return table->row->transform != NULL && table->row->transform->table->sequence >= 0;
}

static bool
is_whole(const CdcField *field)
{
	return field->state == CDC_FIELD_VALUE || field->state == CDC_FIELD_NULL;
}

/* Does an update take the row to another key of the source? */
static bool
leaves_key(const ApplyTable *table, const CdcChange *change)
{
	for (uint32 i = 0; i < table->def->ncolumns; i++)
	{
		const CdcField *before = &change->before[table->match[i]];
		const CdcField *after = &change->after[table->match[i]];

		if (table->def->columns[i].key_part == 0 || !is_whole(before) || !is_whole(after))
			continue;
		if (before->state != after->state || before->len != after->len ||
			(before->len > 0 && memcmp(before->data, after->data, before->len) != 0))
			return true;
	}
	return false;
}

/* The row before a change, as the new row of the target. */
static void
fill_before(Apply *apply, ApplyTable *table, const CdcChange *change)
{
	HeapRow    *row = table->row;

	heap_row_begin(row);
	for (int i = 0; i < row->table->ncolumns; i++)
	{
		CdcCell		cell;

		if (row->table->columns[i].attnum <= 0)
			continue;
		apply_row_read_cell(apply, table, change, change->before, i, &cell);
		heap_row_set(row, i, &cell);
	}
}

/* Make one of the two rows of a change; false: the filter leaves it out. */
static bool
make_row(Apply *apply, ApplyTable *table, const CdcChange *change, bool is_before, const char *operation)
{
	apply_row_set_origin(apply, table, operation);
	if (is_before)
		fill_before(apply, table, change);
	else
		apply_row_fill(apply, table, change);
	return heap_row_make(table->row);
}

/* The row that was made goes into the target. */
static void
add_row(Apply *apply, ApplyTable *table)
{
	HeapTarget *target = table->row->target;
	const TransformTable *transform = table->row->transform->table;
	int			att = transform->attnums[transform->sequence] - 1;

	target->slot->tts_values[att] = Int64GetDatum(apply->txn_action);
	target->slot->tts_isnull[att] = false;
	heap_target_check_not_null(target);
	apply_batch_add(table, CDC_INSERT);
}

/* An update: was the row let through before, and is it now? */
static void
append_update(Apply *apply, ApplyTable *table, const CdcChange *change)
{
	bool		leaves = leaves_key(table, change);
	bool		was_in = true;

	if (leaves || table->row->has_filter)
	{
		was_in = make_row(apply, table, change, true, "delete");
		if (was_in && leaves)
			add_row(apply, table);
	}
	if (make_row(apply, table, change, false, was_in && !leaves ? "update" : "insert"))
		add_row(apply, table);
	else if (was_in && !leaves && make_row(apply, table, change, true, "delete"))
		add_row(apply, table);
}

void
apply_append(Apply *apply, ApplyTable *table, const CdcChange *change)
{
	switch (change->op)
	{
		case CDC_INSERT:
			if (make_row(apply, table, change, false, "insert"))
				add_row(apply, table);
			break;
		case CDC_UPDATE:
			append_update(apply, table, change);
			break;
		case CDC_DELETE:
			if (make_row(apply, table, change, true, "delete"))
				add_row(apply, table);
			break;
	}
}
