/*-------------------------------------------------------------------------
 *
 * apply_row.c
 *	  One change -> the row of the target, in a batch or at once.
 *
 * NOTES
 *	  What is told here of writing at once holds for batches too (apply_batch.c),
 *	  which only do it later and for many rows.
 *
 *	  While a table is being copied (SNAPSHOT, CATCHUP) every change is "the row
 *	  is now so" or "the row is gone", whatever is there: chunks bring rows in
 *	  any order beside the stream. A key that the stream removed or left goes
 *	  into snapshot_deleted, so that a chunk that was read before cannot bring
 *	  the row back; a key that the stream wrote leaves it. That holds too for a
 *	  key that the target never had, and for one that the same transaction made.
 *
 *	  A change that tells only a part of a row that is not there yet makes the copy
 *	  read it again (apply_reread.c).
 *
 *	  Afterwards (STREAMING) the row that a change speaks of ought to be there or
 *	  not; if it is not so, somebody else wrote to the target. The change is
 *	  carried out all the same, and counted as a conflict.
 *
 *	  A change of the key is a delete and an insert, in this order, so that no
 *	  unique index sees both.
 *
 *	  Where the target has parts of rows (heap_part.h), "the row is there" is "its
 *	  part of the row is there".
 *
 *	  A filter (option transforms) is part of what "the row" is: one that it
 *	  leaves out is no row. So an update that takes a row out of what the filter
 *	  lets through removes it, by the key it had; one that brings it in puts it,
 *	  whether or not there was one. While chunks are open the key of a row that is
 *	  removed so is noted, because a chunk may have been read when the row still
 *	  passed. That a change then finds no row to update or delete is what the
 *	  filter is for, and no conflict. An insert that is left out is nothing: its key
 *	  had no row before, and if it ever had one, that is noted already.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/snapmgr.h"

#include "apply/apply_private.h"
#include "chunk/chunk.h"
#include "heap/heap_part.h"

/* Cell of a declared column out of one of the change's images. */
void
apply_row_read_cell(Apply *apply, const ApplyTable *table, const CdcChange *change,
		  const CdcField *image, int column, CdcCell *cell)
{
	int			from = table->match[column];
	const CdcField *field = &image[from];
	CdcError	err;

	if (field->state == CDC_FIELD_ABSENT)
		apply_image_throw_absent(table, column);
	if (change->cell(&change->table->columns[from], field, &apply->arena, cell, &err) != CDC_OK)
		heap_row_bad_cell(&table->def->columns[column], &err);
}

/* How much of the row after a change the change tells. */
typedef enum RowTold
{
	ROW_TOLD,					/* all of it */
	ROW_FILLED,					/* the rest is known */
	ROW_MISSING					/* the rest is in the row that is there */
} RowTold;

/* The row after the change -> row->fresh. */
static RowTold
fill_new(Apply *apply, ApplyTable *table, const CdcChange *change)
{
	HeapRow    *row = table->row;
	RowTold		told = ROW_TOLD;

	heap_row_begin(row);
	for (int i = 0; i < row->table->ncolumns; i++)
	{
		CdcFieldState state;
		CdcCell		cell;

		if (row->table->columns[i].attnum <= 0)
			continue;
		state = change->after[table->match[i]].state;
		if (state == CDC_FIELD_ABSENT || state == CDC_FIELD_PARTIAL)
		{
			told = Max(told, apply_image_fill(apply, table, change, i) ? ROW_FILLED : ROW_MISSING);
			continue;
		}
		apply_row_read_cell(apply, table, change, change->after, i, &cell);
		heap_row_set(row, i, &cell);
	}
	return told;
}

/* The whole row before the change -> target->search, where there is no key; false: a filter left it out. */
static bool
fill_old_row(Apply *apply, const ApplyTable *table, const CdcChange *change)
{
	HeapRow    *row = table->row;

	heap_row_begin_old(row);
	for (int i = 0; i < row->table->ncolumns; i++)
	{
		CdcCell		cell;

		if (row->table->columns[i].attnum <= 0)
			continue;
		apply_row_read_cell(apply, table, change, change->before, i, &cell);
		heap_row_set_old(row, i, &cell);
	}
	return heap_row_make_old(row);
}

/* The key before the change -> target->search. */
static void
fill_old_key(Apply *apply, const ApplyTable *table, const CdcChange *change)
{
	HeapRow    *row = table->row;

	heap_row_begin_old(row);
	for (int i = 0; i < row->table->nkey; i++)
	{
		CdcCell		cell;

		apply_row_read_cell(apply, table, change, change->before, row->table->key[i], &cell);
		heap_row_set_old(row, row->table->key[i], &cell);
	}
	heap_row_make_old_key(row);
}

void
apply_note_key(Apply *apply, ApplyTable *table, bytea *key, bool exists, CatalogReread *entry)
{
	if (exists)
	{
		catalog_deleted_remove(apply->pipeline_id, table->table_id, key);
		/* one that was read again keeps its mark, see apply_reread.c */
		if (table->any_reread)
			catalog_reread_remove(apply->pipeline_id, table->table_id, key, true);
		return;
	}
	catalog_deleted_add(apply->pipeline_id, table->table_id, key);
	table->any_deleted = true;
	if (entry != NULL)
		apply_reread_note(table, entry, key);
	else if (table->any_reread)
		catalog_reread_remove(apply->pipeline_id, table->table_id, key, false);
}

/* A change is older than the row under search's key, which stays. */
static void
pass_over(Apply *apply, ApplyTable *table)
{
	table->delta.conflicts++;
	if (apply_table_is_copying(table) && table->any_deleted)
		apply_note_key(apply, table, chunk_key_bytes(table->row->target, table->row->target->search), true, NULL);
}

/* Make the row of slot be there. expect_row: it should be there already. */
static void
put_row(Apply *apply, ApplyTable *table, bool expect_row)
{
	HeapTarget *target = table->row->target;
	bool		is_marked;
	bool		found;

	heap_row_search_new(table->row);
	is_marked = apply_soft_is_marked(table);
	if (heap_part_is_used(table->row))
		found = heap_part_put(table->row);
	else
	{
		found = heap_target_find(target);
		if (found && heap_row_wants_version(table->row))
		{
			if (heap_row_is_outrun(table->row, target->slot))
			{
				pass_over(apply, table);
				return;
			}
			found = heap_target_find(target);	/* looking has let go of it */
		}
		if (found)
			heap_target_update(target);
		else
			heap_target_insert(target);
	}

	if (!apply_table_is_copying(table))
		table->delta.conflicts += apply_is_conflict(table, expect_row, found && !is_marked);
	else if (table->any_deleted)
		apply_note_key(apply, table, chunk_key_bytes(target, target->search), true, NULL);
}

/* Make the row with search's key be gone, or marked as gone; entry: it is to be read again. */
static void
remove_row(Apply *apply, ApplyTable *table, CatalogReread *entry)
{
	HeapTarget *target = table->row->target;
	bool		found;

	if (entry == NULL && apply_soft_is_used(table))
		found = apply_soft_mark(apply, table);
	else if (heap_part_is_used(table->row))
		found = heap_part_remove(table->row);
	else
	{
		found = heap_target_find(target);
		if (found && entry == NULL && heap_row_wants_version(table->row))
		{
			if (heap_row_is_outrun(table->row, target->search))
			{
				pass_over(apply, table);
				return;
			}
			found = heap_target_find(target);
		}
		if (found)
			heap_target_delete(target);
	}

	if (!apply_table_is_copying(table))
		table->delta.conflicts += apply_is_conflict(table, true, found);
	else
		apply_note_key(apply, table, chunk_key_bytes(target, target->search), false, entry);
}

/* The change tells only a part of its row, and the rest cannot be known here. */
static void
reread_row(Apply *apply, ApplyTable *table, const CdcChange *change)
{
	CatalogReread *entry = apply_reread_make(apply, table, change);

	if (table->batch != NULL)
	{
		apply_batch_reread(table, entry);
		return;
	}
	if (!heap_row_same_key(table->row))
		remove_row(apply, table, NULL);
	heap_row_search_new(table->row);
	remove_row(apply, table, entry);
}

/* Write one change at once. */
static void
write_change(Apply *apply, ApplyTable *table, CdcChangeOp op)
{
	switch (op)
	{
		case CDC_INSERT:
			put_row(apply, table, false);
			break;

		case CDC_UPDATE:
			if (heap_row_same_key(table->row))
				put_row(apply, table, true);
			else
			{
				remove_row(apply, table, NULL);
				put_row(apply, table, false);
			}
			break;

		case CDC_DELETE:
			remove_row(apply, table, NULL);
			break;
	}
}

/* Take in the change that stands in the target's slots. */
static void
take_slots(Apply *apply, ApplyTable *table, CdcChangeOp op)
{
	if (table->batch != NULL)
	{
		if (op != CDC_DELETE)
			heap_target_check_not_null(table->row->target);
		apply_batch_add(table, op);
	}
	else
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		write_change(apply, table, op);
		PopActiveSnapshot();
	}
}

void
apply_row_in_slots(Apply *apply, ApplyTable *table, CdcChangeOp op)
{
	take_slots(apply, table, op);
	apply_table_count(apply, table, op);
}

/*
 * What a change comes to where a filter leaves out the row after it, or (a table without a key) the one before. Under a
 * key only the row after tells; what was before is in the target or not.
 */
static void
take_filtered(Apply *apply, ApplyTable *table, CdcChangeOp op, bool was_in, bool is_in)
{
	if (table->row->target->nkey == 0)
	{
		if (was_in || is_in)
			take_slots(apply, table, was_in ? CDC_DELETE : CDC_INSERT);
	}
	else if (op == CDC_UPDATE)
		take_slots(apply, table, CDC_DELETE);
}

/* Say where the row comes from, to expressions that want to know. */
void
apply_row_set_origin(Apply *apply, const ApplyTable *table, const char *operation)
{
	char		position[CDC_POSITION_TEXT_MAX];
	TransformOrigin origin = {
		.operation = operation,
		.commit_time = apply->txn_time,
		.position = position,
	};

	cdc_position_format(&apply->txn_start, position);
	heap_row_set_origin(table->row, &origin);
}

void
apply_row_fill(Apply *apply, ApplyTable *table, const CdcChange *change)
{
	RowTold		told = fill_new(apply, table, change);

	if (told != ROW_TOLD)
		apply_image_check(table, change);
	if (told == ROW_MISSING)
		(void) apply_image_complete(apply, table, change);	/* without a key it throws what is missing */
}

/* Apply one change to an open table: into its batch when it has one, else at once. */
void
apply_row(Apply *apply, ApplyTable *table, const CdcChange *change)
{
	static const char *const names[] = {[CDC_INSERT] = "insert", [CDC_UPDATE] = "update", [CDC_DELETE] = "delete"};
	HeapRow    *row = table->row;
	RowTold		told = ROW_TOLD;
	bool		was_in = change->op != CDC_INSERT;
	bool		is_in = change->op != CDC_DELETE;

	if (apply_append_is_used(table))
	{
		apply_append(apply, table, change);
		apply_table_count(apply, table, change->op);
		return;
	}
	if (heap_row_wants_origin(row))
		apply_row_set_origin(apply, table, names[change->op]);
	if (change->op != CDC_DELETE)
		told = fill_new(apply, table, change);
	if (change->op != CDC_INSERT && heap_row_wants_version(row))
		(void) fill_old_row(apply, table, change);
	else if (change->op != CDC_INSERT && row->target->nkey == 0)
		was_in = fill_old_row(apply, table, change);
	else if (change->op != CDC_INSERT)
		fill_old_key(apply, table, change);
	if (told != ROW_TOLD)
		apply_image_check(table, change);
	if (told == ROW_MISSING)
		heap_row_make_key(row);
	if (told == ROW_MISSING && change->op == CDC_INSERT)
		heap_row_search_new(row);	/* there is no other key before it */
	if (told == ROW_MISSING && !apply_image_complete(apply, table, change))
	{
		reread_row(apply, table, change);
		apply_table_count(apply, table, change->op);
		return;
	}
	if (change->op != CDC_DELETE)
		is_in = heap_row_make(row);

	if (is_in == (change->op != CDC_DELETE) && was_in == (change->op != CDC_INSERT))
		take_slots(apply, table, change->op);
	else
		take_filtered(apply, table, change->op, was_in, is_in);
	apply_table_count(apply, table, change->op);
}

bool
apply_row_make(Apply *apply, ApplyTable *table, const CdcChange *change)
{
	if (heap_row_wants_origin(table->row))
		apply_row_set_origin(apply, table, "insert");
	(void) fill_new(apply, table, change);
	return heap_row_make(table->row);
}

bool
apply_row_if_absent(Apply *apply, ApplyTable *table, const CdcChange *change)
{
	HeapRow    *row = table->row;
	bool		is_marked;

	if (heap_row_wants_origin(row))
		apply_row_set_origin(apply, table, "copy");
	(void) fill_new(apply, table, change);
	if (!heap_row_make(row))
		return true;
	heap_row_search_new(row);
	/* one that the new copy lacked has a mark since then; had the stream deleted it later, there would be nothing to replay */
	is_marked = row->target->nkey > 0 && apply_soft_is_marked(table);
	if (row->target->nkey > 0 && !is_marked && (heap_part_is_used(row) ? heap_part_is_there(row) : heap_target_find(row->target)))
		return false;
	apply_row_in_slots(apply, table, CDC_INSERT);
	return true;
}
