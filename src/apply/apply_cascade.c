/*-------------------------------------------------------------------------
 *
 * apply_cascade.c
 *	  What foreign keys do to child rows at the source, where the log does not
 *	  have it.
 *
 * NOTES
 *	  ON DELETE and ON UPDATE CASCADE and SET NULL may be done below the binary
 *	  log (mysql_foreign_keys.c tells which servers do that). Then the change of
 *	  the parent says it all, and the child's changes are made here:
 *
 *	  change of a parent -> old and new value of what is referred to
 *	    -> batches are written, so that the child's target is as it was before
 *	    -> rows of the target with the old value
 *	    -> for each a delete or an update, by the same way as one of the log
 *	    -> the same for the children of that child
 *
 *	  A parent need not be mirrored: its changes are read all the same. A change
 *	  whose flags say that checks were off, or that the server logs what foreign
 *	  keys do, makes none.
 *
 *	  While the child is being copied its target lacks rows. The value is given by
 *	  the parent, so all that is needed is that no chunk comes later with a row
 *	  from before: everything is undone, the stream waits until the last chunk is
 *	  written, and the change comes again. Rows in the target that are newer than
 *	  the change and have the value too are deleted then, and come again with
 *	  their own changes, which follow in the log.
 *
 *	  The children of such a child cannot be told: its rows, which name them, may
 *	  have been gone when their chunk was read. They stop.
 *
 *	  Rows of the child that did not fit are in dead letters, see apply_cascade_letter.c.
 *
 *	  Equal has to mean equal byte by byte; a foreign key over texts that compare
 *	  in another way is refused when the table joins (schema_table.c).
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "apply/apply_private.h"
#include "heap/heap_image.h"
#include "heap/heap_rows.h"
#include "util/util_wait.h"

/* One foreign key of a child. */
typedef struct ApplyCascade
{
	ApplyTable *child;
	const CdcForeignKeyDef *key;
	bool		is_made;		/* what it does is not logged, and done here; else only statements are of interest */
	int			columns[INDEX_MAX_KEYS];	/* of the child's definition */
} ApplyCascade;

/* Values of the columns that a foreign key refers to, as the child's target has them. */
typedef struct ParentValues
{
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
} ParentValues;

/* ---------------------------------------------------------------------- who refers to whom */

static int
column_number(const CdcTableDef *def, const char *name)
{
	for (uint32 i = 0; i < def->ncolumns; i++)
	{
		if (def->columns[i].name != NULL && pg_strcasecmp(def->columns[i].name, name) == 0)
			return (int) i;
	}
	return -1;
}

static void
add_cascade(Apply *apply, ApplyTable *child, const CdcForeignKeyDef *key)
{
	ApplyCascade *cascade = palloc0(sizeof(ApplyCascade));

	cascade->child = child;
	cascade->key = key;
	cascade->is_made = apply->make_cascades && (child->def->known & CDC_FOREIGN_UNLOGGED);
	apply->any_cascade_made |= cascade->is_made;
	for (uint32 i = 0; i < key->ncolumns; i++)
	{
		if (i == INDEX_MAX_KEYS || (cascade->columns[i] = column_number(child->def, key->columns[i])) < 0)
			elog(ERROR, "foreign key \"%s\" does not fit its table", key->name);
	}
	apply->cascades = lappend(apply->cascades, cascade);
}

/* The tables were read anew. */
void
apply_cascades_load(Apply *apply)
{
	MemoryContext old;
	ListCell   *lc;

	MemoryContextReset(apply->cascade_cxt);
	old = MemoryContextSwitchTo(apply->cascade_cxt);
	apply->cascades = NIL;
	apply->any_cascade_made = false;
	foreach(lc, apply->tables)
	{
		ApplyTable *table = lfirst(lc);

		for (uint32 i = 0; table->def != NULL && i < table->def->nforeign; i++)
			add_cascade(apply, table, &table->def->foreign_keys[i]);
	}
	MemoryContextSwitchTo(old);
}

/* Does it do something here when that table changes? */
static bool
refers_to(const ApplyCascade *cascade, const char *schema, const char *name)
{
	return cascade->is_made && strcmp(cascade->key->parent_table, name) == 0 && strcmp(cascade->key->parent_schema, schema) == 0;
}

bool
apply_is_parent(const Apply *apply, const char *schema, const char *name)
{
	ListCell   *lc;

	if (!apply->any_cascade_made)
		return false;

	foreach(lc, apply->cascades)
	{
		if (refers_to(lfirst(lc), schema, name))
			return true;
	}
	return false;
}

/* Names are of a statement's text. */
List *
apply_children_of(Apply *apply, const char *schema, const char *name)
{
	int			(*compare) (const char *, const char *) = apply->fold_names ? pg_strcasecmp : strcmp;
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, apply->cascades)
	{
		const ApplyCascade *cascade = lfirst(lc);

		if (compare(cascade->key->parent_table, name) == 0 &&
			(schema[0] == '\0' || compare(cascade->key->parent_schema, schema) == 0))
			result = list_append_unique_ptr(result, cascade->child);
	}
	return result;
}

/* The option says that such tables are not to be followed: stop those that joined under another one. Outside a transaction. */
void
apply_refuse_cascades(Apply *apply)
{
	List	   *stops = NIL;
	ListCell   *lc;

	foreach(lc, apply->tables)
	{
		ApplyTable *table = lfirst(lc);

		if (apply->types.refuse_cascades && table->state != CATALOG_TABLE_STOPPED &&
			table->def != NULL && table->def->nforeign > 0 && (table->def->known & CDC_FOREIGN_UNLOGGED))
			stops = lappend(stops,
							apply_stop_make(table, CDC_ERRCODE_UNSUPPORTED_EVENT,
											psprintf("foreign key \"%s\" changes rows of source table \"%s.%s\"",
													 table->def->foreign_keys[0].name, table->schema, table->name),
											"The server does not log that, and option \"cascades\" is \"refuse\".",
											"Set option \"cascades\" with cdc_alter_pipeline(), then use cdc_resync_table()."));
	}
	if (stops != NIL && cdc_position_is_known(&apply->streamed))
		(void) apply_stop(apply, stops, &apply->streamed);
}

/* ------------------------------------------------------------------------- waiting for copies */

static void
stop_descendants(Apply *apply, const ApplyTable *parent, List **stops, List **seen)
{
	ListCell   *lc;
	char		position[CDC_POSITION_TEXT_MAX];

	check_stack_depth();
	cdc_position_format(&apply->txn_start, position);
	foreach(lc, apply->cascades)
	{
		ApplyTable *child = ((ApplyCascade *) lfirst(lc))->child;

		if (!refers_to(lfirst(lc), parent->schema, parent->name) || list_member_ptr(*seen, child) ||
			apply_table_is_stopped(child, &apply->txn_start) || apply_table_joins_later(child, &apply->txn_start))
			continue;
		*seen = lappend(*seen, child);
		*stops = lappend(*stops,
						 apply_stop_make(child, CDC_ERRCODE_UNSUPPORTED_EVENT,
										 psprintf("rows of source table \"%s.%s\" were changed by foreign keys through table \"%s.%s\" at %s",
												  child->schema, child->name, parent->schema, parent->name, position),
										 "The server does not log that, and the other table was being copied, so which rows these are is not known.",
										 "Use cdc_resync_table() when the other table streams."));
		stop_descendants(apply, child, stops, seen);
	}
}

/* The child's chunks have to be there first: undo, and come again then. */
static ApplyResult
wait_for_copy(Apply *apply, ApplyTable *child)
{
	MemoryContext old = MemoryContextSwitchTo(apply->cxt);

	apply->awaited = list_append_unique_int(apply->awaited, child->table_id);
	MemoryContextSwitchTo(old);
	return apply_rewind(apply);
}

bool
apply_awaits_copy(Apply *apply)
{
	ListCell   *lc;

	if (apply->awaited == NIL)
		return false;
	apply_reload_tables(apply);
	foreach(lc, apply->tables)
	{
		const ApplyTable *table = lfirst(lc);

		if (table->state == CATALOG_TABLE_SNAPSHOT && list_member_int(apply->awaited, table->table_id))
			return true;
	}
	list_free(apply->awaited);
	apply->awaited = NIL;
	return false;
}

/* ----------------------------------------------------------------------------- a parent's values */

static void
throw_absent(const CdcChange *change, const char *column)
{
	ereport(ERROR,
			(errcode(CDC_ERRCODE_UNSUPPORTED_EVENT),
			 errmsg("row event of parent table \"%s.%s\" is not complete", change->table->schema, change->table->name),
			 errdetail("Column \"%s\", to which a foreign key refers, is not in the row image, and the server does not log what the foreign key does.",
					   column),
			 errhint("Run SET GLOBAL binlog_row_image = FULL on the source and reconnect its clients. " APPLY_HINT_ANEW)));
}

/* Column of the parent's description that the foreign key's column i refers to. */
static int
parent_column(const ApplyCascade *cascade, const CdcChange *change, uint32 i)
{
	int			column = column_number(change->table, cascade->key->parent_columns[i]);

	if (column < 0)
		ereport(ERROR,
				(errcode(CDC_ERRCODE_TABLE_CHANGED),
				 errmsg("parent table \"%s.%s\" changed its shape", change->table->schema, change->table->name),
				 errdetail("Column \"%s\", to which foreign key \"%s\" refers, is not there, or the log does not name columns.",
						   cascade->key->parent_columns[i], cascade->key->name),
				 errhint(APPLY_HINT_ANEW)));
	return column;
}

/* Does the change leave all that is referred to as it is? */
static bool
leaves_values(const ApplyCascade *cascade, const CdcChange *change)
{
	for (uint32 i = 0; i < cascade->key->ncolumns; i++)
	{
		int			column = parent_column(cascade, change, i);
		const CdcField *before = &change->before[column];
		const CdcField *after = &change->after[column];

		if (after->state == CDC_FIELD_ABSENT)
			continue;			/* a minimal image: not changed */
		if (before->state != after->state || before->len != after->len ||
			(before->len > 0 && memcmp(before->data, after->data, before->len) != 0))
			return false;
	}
	return true;
}

/* Values of an image as the child's target has them. What is absent after the change is as it was before. */
static void
read_values(Apply *apply, const ApplyCascade *cascade, const CdcChange *change, const CdcField *image,
			ParentValues *values)
{
	HeapRow    *row = cascade->child->row;

	heap_target_clear(row->target->search);
	for (uint32 i = 0; i < cascade->key->ncolumns; i++)
	{
		int			from = parent_column(cascade, change, i);
		int			to = cascade->columns[i];
		CdcColumnDef column = change->table->columns[from];
		const CdcField *field = &image[from];
		AttrNumber	attnum = row->table->columns[to].attnum;
		CdcCell		cell;
		CdcError	err;

		if (field->state == CDC_FIELD_ABSENT && image == change->after)
			field = &change->before[from];
		if (field->state == CDC_FIELD_ABSENT || field->state == CDC_FIELD_PARTIAL || attnum <= 0)
			throw_absent(change, cascade->key->parent_columns[i]);
		column.type = cascade->child->def->columns[to].type;	/* the log may know it as a plainer one */
		if (change->cell(&column, field, &apply->arena, &cell, &err) != CDC_OK)
			heap_row_bad_cell(&cascade->child->def->columns[to], &err);
		heap_row_set_old(row, to, &cell);
		values->values[i] = row->target->search->tts_values[attnum - 1];
		values->nulls[i] = row->target->search->tts_isnull[attnum - 1];
	}
}

/* ------------------------------------------------------------------------------ a child's rows */

static ApplyResult change_children(Apply *apply, ApplyTable *parent, const Datum *old_values, const bool *old_nulls,
								   const Datum *new_values, const bool *new_nulls);

/* The row that was -> target->search: its key, or all of it. */
static void
put_old(HeapRow *row, const TupleTableSlot *found)
{
	HeapTarget *target = row->target;

	heap_target_clear(target->search);
	if (target->nkey == 0)
	{
		for (int i = 0; i < row->table->ncolumns; i++)
		{
			int			att = row->table->columns[i].attnum - 1;

			if (att < 0)
				continue;
			target->search->tts_values[att] = found->tts_values[att];
			target->search->tts_isnull[att] = found->tts_isnull[att];
		}
		return;
	}
	for (int i = 0; i < target->nkey; i++)
	{
		int			att = target->key_attnums[i] - 1;

		target->search->tts_values[att] = found->tts_values[att];
		target->search->tts_isnull[att] = found->tts_isnull[att];
	}
}

/* The row as it is now -> target->slot; its foreign key is NULL when there are no new values. */
static void
put_new(const ApplyCascade *cascade, const TupleTableSlot *found, const ParentValues *values)
{
	HeapRow    *row = cascade->child->row;
	TupleTableSlot *slot = row->target->slot;

	heap_target_clear(slot);
	for (int i = 0; i < row->table->ncolumns; i++)
	{
		int			att = row->table->columns[i].attnum - 1;

		if (att < 0)
			continue;
		slot->tts_values[att] = found->tts_values[att];
		slot->tts_isnull[att] = found->tts_isnull[att];
	}
	for (uint32 i = 0; i < cascade->key->ncolumns; i++)
	{
		int			att = row->table->columns[cascade->columns[i]].attnum - 1;

		slot->tts_values[att] = values == NULL ? (Datum) 0 : values->values[i];
		slot->tts_isnull[att] = values == NULL || values->nulls[i];
	}
}

/* Change one row of the child, and the rows that refer to it. found is not touched. */
static ApplyResult
change_row(Apply *apply, const ApplyCascade *cascade, const TupleTableSlot *found, CdcForeignAction action,
		   const ParentValues *values)
{
	ApplyTable *child = cascade->child;
	HeapTarget *target = child->row->target;
	CdcChangeOp op = action == CDC_FOREIGN_CASCADE && values == NULL ? CDC_DELETE : CDC_UPDATE;
	int			natts = found->tts_tupleDescriptor->natts;
	Datum	   *new_values = NULL;
	bool	   *new_nulls = NULL;

	if (op == CDC_UPDATE)
	{
		put_new(cascade, found, action == CDC_FOREIGN_CASCADE ? values : NULL);
		new_values = palloc(sizeof(Datum) * natts);
		new_nulls = palloc(sizeof(bool) * natts);
		memcpy(new_values, target->slot->tts_values, sizeof(Datum) * natts);
		memcpy(new_nulls, target->slot->tts_isnull, sizeof(bool) * natts);
	}
	put_old(child->row, found);
	apply_row_in_slots(apply, child, op);
	apply->rows++;
	apply->pending.changes++;
	if (child->batch != NULL)
	{
		/* a row is as large as it is; what counts is that memory is bounded */
		apply->unwritten_rows++;
		apply->unwritten_bytes += 256;
		if (apply->unwritten_rows >= apply->max_rows || apply->unwritten_bytes >= apply->max_bytes)
		{
			if (apply_write_batches(apply) == APPLY_REWIND)
				return APPLY_REWIND;
			apply->current = child;
		}
	}
	return change_children(apply, child, found->tts_values, found->tts_isnull, new_values, new_nulls);
}

/* Columns of a row in a dead letter that other tables refer to -> target->search. */
static void
read_referred(Apply *apply, const ApplyTable *parent, Datum image)
{
	ListCell   *lc;

	heap_target_clear(parent->row->target->search);
	foreach(lc, apply->cascades)
	{
		const ApplyCascade *cascade = lfirst(lc);

		for (uint32 i = 0; refers_to(cascade, parent->schema, parent->name) && i < cascade->key->ncolumns; i++)
		{
			int			column = column_number(parent->def, cascade->key->parent_columns[i]);
			CdcField	field;
			CdcCell		cell;
			CdcError	err;

			if (column < 0 || !heap_image_field(image, &parent->def->columns[column], NIL, &field) ||
				heap_image_to_cell(&parent->def->columns[column], &field, &apply->arena, &cell, &err) != CDC_OK)
				ereport(ERROR,
						(errcode(CDC_ERRCODE_UNSUPPORTED_EVENT),
						 errmsg("a foreign key changed a row of source table \"%s.%s\" that is a dead letter", parent->schema, parent->name),
						 errdetail("Column \"%s\", to which another table refers, cannot be read in it, and the server does not log what foreign keys do.",
								   cascade->key->parent_columns[i]),
						 errhint(APPLY_HINT_ANEW)));
			heap_row_set_old(parent->row, column, &cell);
		}
	}
}

/* Rows of the child that have the old value and are in dead letters, and the rows that refer to these. */
static ApplyResult
change_letters(Apply *apply, const ApplyCascade *cascade, CdcForeignAction action, const ParentValues *old_values,
			   const ParentValues *new_values)
{
	ApplyTable *child = cascade->child;
	ApplyCascadeLetters what = {
		.action = action,
		.has_new_values = action == CDC_FOREIGN_CASCADE && new_values != NULL,
		.ncolumns = cascade->key->ncolumns,
		.columns = cascade->columns,
		.values = old_values->values,
	};
	ListCell   *lc;

	foreach(lc, apply_cascade_letters(apply, child, &what))
	{
		int			natts = child->row->target->search->tts_tupleDescriptor->natts;
		Datum	   *values = palloc(sizeof(Datum) * natts);
		bool	   *nulls = palloc(sizeof(bool) * natts);
		bool	   *new_nulls = palloc(sizeof(bool) * natts);

		PushActiveSnapshot(GetTransactionSnapshot());
		read_referred(apply, child, PointerGetDatum(lfirst(lc)));
		PopActiveSnapshot();
		memcpy(values, child->row->target->search->tts_values, sizeof(Datum) * natts);
		memcpy(nulls, child->row->target->search->tts_isnull, sizeof(bool) * natts);
		memcpy(new_nulls, nulls, sizeof(bool) * natts);
		for (uint32 i = 0; i < what.ncolumns; i++)
			new_nulls[child->row->table->columns[cascade->columns[i]].attnum - 1] = true;
		if (change_children(apply, child, values, nulls, action == CDC_FOREIGN_SET_NULL ? values : NULL, new_nulls) == APPLY_REWIND)
			return APPLY_REWIND;
	}
	return APPLY_OK;
}

/* Change all rows of the child that have the old value. */
static ApplyResult
change_rows(Apply *apply, const ApplyCascade *cascade, CdcForeignAction action, const ParentValues *old_values,
			const ParentValues *new_values)
{
	ApplyTable *child = cascade->child;
	HeapTarget *target = child->row->target;
	AttrNumber	attnums[INDEX_MAX_KEYS];
	MemoryContext cxt;
	MemoryContext caller;
	MemoryContext row_cxt;
	Tuplestorestate *store;
	TupleTableSlot *found;
	ApplyResult result = APPLY_OK;

	for (uint32 i = 0; i < cascade->key->ncolumns; i++)
	{
		if (old_values->nulls[i])
			return APPLY_OK;	/* nobody refers to it */
		attnums[i] = child->row->table->columns[cascade->columns[i]].attnum;
	}

	if (change_letters(apply, cascade, action, old_values, new_values) == APPLY_REWIND)
		return APPLY_REWIND;

	/* lives in the transaction's memory: whoever undoes it ends this too */
	cxt = AllocSetContextCreate(target->estate->es_query_cxt, "cdc apply cascade", ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(cxt);
	row_cxt = AllocSetContextCreate(cxt, "cdc apply cascade row", ALLOCSET_DEFAULT_SIZES);
	store = heap_rows_equal(target, (int) cascade->key->ncolumns, attnums, old_values->values);
	found = MakeSingleTupleTableSlot(RelationGetDescr(target->rel), &TTSOpsMinimalTuple);
	while (result == APPLY_OK && tuplestore_gettupleslot(store, true, false, found))
	{
		util_check_interrupts();
		slot_getallattrs(found);
		MemoryContextSwitchTo(row_cxt);
		result = change_row(apply, cascade, found, action, new_values);
		if (result == APPLY_OK)
			MemoryContextReset(row_cxt);
	}
	MemoryContextSwitchTo(caller);
	if (result == APPLY_REWIND)
		return result;			/* all of it is gone */
	ExecDropSingleTupleTableSlot(found);
	tuplestore_end(store);
	MemoryContextDelete(cxt);
	return result;
}

/* ------------------------------------------------------------------------------------- entries */

/* Rows that the copy has yet to read again (see apply_reread.c) would come as they were before. */
static void
refuse_rereads(Apply *apply, const ApplyTable *child)
{
	bool		any;

	apply_begin(apply);
	PushActiveSnapshot(GetTransactionSnapshot());
	any = catalog_reread_any(apply->pipeline_id, child->table_id);
	PopActiveSnapshot();
	if (any)
		ereport(ERROR,
				(errcode(CDC_ERRCODE_UNSUPPORTED_EVENT),
				 errmsg("rows of source table \"%s.%s\" were changed by foreign keys while others were to be read again",
						child->schema, child->name),
				 errdetail("The server does not log what foreign keys do, and partial row images of rows that were not copied yet have come before."),
				 errhint("Run SET GLOBAL binlog_row_image = FULL on the source and reconnect its clients. " APPLY_HINT_ANEW)));
}

/* Make the child ready to be changed at the transaction that is open; *is_ready is false when it is not concerned. */
static ApplyResult
begin_child(Apply *apply, const ApplyCascade *cascade, bool *is_ready)
{
	ApplyTable *child = cascade->child;

	*is_ready = false;
	if (apply_table_is_stopped(child, &apply->txn_start) || apply_table_joins_later(child, &apply->txn_start))
		return APPLY_OK;
	if (child->state != CATALOG_TABLE_STREAMING)
	{
		List	   *stops = NIL;
		List	   *seen = NIL;

		stop_descendants(apply, child, &stops, &seen);
		if (stops != NIL)
			return apply_stop(apply, stops, &apply->txn_start) == APPLY_REWIND ? APPLY_REWIND : apply_rewind(apply);
		if (child->state == CATALOG_TABLE_SNAPSHOT)
			return wait_for_copy(apply, child);
		apply->current = child;
		refuse_rereads(apply, child);
	}
	if (apply_write_batches(apply) == APPLY_REWIND)
		return APPLY_REWIND;
	apply_begin(apply);
	apply->current = child;
	apply_table_open(apply, child);
	child->touched = apply->txn_no;
	apply->txn_changes++;
	*is_ready = true;
	return APPLY_OK;
}

/* A row of a child, as its target has it, was deleted (no new values) or updated. */
static ApplyResult
change_children(Apply *apply, ApplyTable *parent, const Datum *old_values, const bool *old_nulls,
				const Datum *new_values, const bool *new_nulls)
{
	ListCell   *lc;

	check_stack_depth();
	foreach(lc, apply->cascades)
	{
		const ApplyCascade *cascade = lfirst(lc);
		CdcForeignAction action = new_values == NULL ? cascade->key->on_delete : cascade->key->on_update;
		ParentValues before = {0};
		ParentValues after = {0};
		bool		is_same = new_values != NULL;
		bool		is_ready;
		ApplyResult result;

		if (action == CDC_FOREIGN_NOTHING || !refers_to(cascade, parent->schema, parent->name))
			continue;
		for (uint32 i = 0; i < cascade->key->ncolumns; i++)
		{
			int			column = column_number(parent->def, cascade->key->parent_columns[i]);
			AttrNumber	attnum = column < 0 ? 0 : parent->row->table->columns[column].attnum;
			Form_pg_attribute att;

			if (attnum <= 0)
				elog(ERROR, "column that foreign key \"%s\" refers to is not there", cascade->key->name);
			att = TupleDescAttr(RelationGetDescr(parent->row->target->rel), attnum - 1);
			before.values[i] = old_values[attnum - 1];
			before.nulls[i] = old_nulls[attnum - 1];
			if (new_values == NULL)
				continue;
			after.values[i] = new_values[attnum - 1];
			after.nulls[i] = new_nulls[attnum - 1];
			is_same = is_same && before.nulls[i] == after.nulls[i] &&
				(before.nulls[i] || datumIsEqual(before.values[i], after.values[i], att->attbyval, att->attlen));
		}
		if (is_same)
			continue;
		result = begin_child(apply, cascade, &is_ready);
		if (result == APPLY_REWIND)
			return result;
		if (!is_ready)
			continue;
		for (uint32 i = 0; i < cascade->key->ncolumns; i++)
		{
			int			column = column_number(parent->def, cascade->key->parent_columns[i]);
			Oid			from = TupleDescAttr(RelationGetDescr(parent->row->target->rel),
											 parent->row->table->columns[column].attnum - 1)->atttypid;
			Oid			to = TupleDescAttr(RelationGetDescr(cascade->child->row->target->rel),
										   cascade->child->row->table->columns[cascade->columns[i]].attnum - 1)->atttypid;

			if (getBaseType(from) != getBaseType(to))
				ereport(ERROR,
						(errcode(ERRCODE_DATATYPE_MISMATCH),
						 errmsg("columns of foreign key \"%s\" have different types here", cascade->key->name),
						 errdetail("Rows of its table cannot be found by the values of its parent."),
						 errhint("Give both columns the same type. " APPLY_HINT_ANEW)));
		}
		if (change_rows(apply, cascade, action, &before, new_values == NULL ? NULL : &after) == APPLY_REWIND)
			return APPLY_REWIND;
	}
	return APPLY_OK;
}

/* A change of a parent came: change its children. apply->current says whose fault an error is. */
ApplyResult
apply_cascade(Apply *apply, const CdcChange *change)
{
	ListCell   *lc;

	foreach(lc, apply->cascades)
	{
		const ApplyCascade *cascade = lfirst(lc);
		CdcForeignAction action = change->op == CDC_DELETE ? cascade->key->on_delete : cascade->key->on_update;
		ParentValues before;
		ParentValues after;
		bool		is_ready;
		ApplyResult result;

		if (action == CDC_FOREIGN_NOTHING || !refers_to(cascade, change->table->schema, change->table->name))
			continue;
		apply->current = cascade->child;
		if (change->op == CDC_UPDATE && leaves_values(cascade, change))
			continue;
		result = begin_child(apply, cascade, &is_ready);
		if (result == APPLY_REWIND)
			return result;
		if (!is_ready)
			continue;
		PushActiveSnapshot(GetTransactionSnapshot());	/* turning values may run SQL */
		read_values(apply, cascade, change, change->before, &before);
		if (change->op == CDC_UPDATE)
			read_values(apply, cascade, change, change->after, &after);
		PopActiveSnapshot();
		result = change_rows(apply, cascade, action, &before, change->op == CDC_UPDATE ? &after : NULL);
		if (result == APPLY_REWIND)
			return result;
	}
	return APPLY_OK;
}
