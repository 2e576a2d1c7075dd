/*-------------------------------------------------------------------------
 *
 * apply_image.c
 *	  Row images that do not tell the whole row, made whole.
 *
 * NOTES
 *	  With binlog_row_image = MINIMAL, NOBLOB or FULL_NODUP, which every session
 *	  may choose for itself, an image leaves columns out; with
 *	  binlog_row_value_options = PARTIAL_JSON it gives a document as differences to
 *	  the one before. So a change is completed before it is taken in, and all that
 *	  comes after (batches, tiers, conflicts) knows whole rows only. Column by
 *	  column, the first that is known:
 *
 *	  INSERT	what the column has in a row that is inserted without it: what the
 *				server computes it logs, so it is the declared default
 *				(schema_default.c).
 *	  UPDATE	the column's value in the image before; else the one in the row that
 *				is there: in the batch, or in the target. A difference is applied to
 *				that value.
 *
 *	  An image that leaves a column out of a row without a key never does it for
 *	  lack of change: both servers then log the whole row before.
 *
 *	  What MariaDB computes and does not log is asked for (apply_generated.c).
 *
 *	  What cannot be known so is an error, which stops the table or makes a dead
 *	  letter: a row that ought to be there and is not (nobody can tell its other
 *	  columns), a default that information_schema does not print exactly,
 *	  and an UPDATE of MariaDB's that may stand for REPLACE, see apply_image_check.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "apply/apply_private.h"
#include "binlog/json_diff.h"
#include "heap/heap_part.h"

#define HINT_FULL \
	"Run SET GLOBAL binlog_row_image = FULL on the source and reconnect its clients. " APPLY_HINT_ANEW

void
apply_image_throw_absent(const ApplyTable *table, int column)
{
	ereport(ERROR,
			(errcode(CDC_ERRCODE_UNSUPPORTED_EVENT),
			 errmsg("row event of source table \"%s.%s\" is not complete", table->schema, table->name),
			 errdetail("Column \"%s\" is not in the row image, and its value cannot be known.",
					   table->def->columns[column].name),
			 errhint("%s", table->def->columns[column].is_generated ? APPLY_HINT_GENERATED : HINT_FULL)));
}

static void
throw_missing(const ApplyTable *table, int column)
{
	ereport(ERROR,
			(errcode(CDC_ERRCODE_ROW_MISSING),
			 errmsg("a row of source table \"%s.%s\" is changed in part, and the target does not have it",
					table->schema, table->name),
			 errdetail("Column \"%s\" is not in the row image, so the row cannot be made from it. Somebody else wrote to the target, or a change of the row could not be applied before.",
					   table->def->columns[column].name),
			 errhint(APPLY_HINT_ANEW)));
}

static inline const CdcField *
field_of(const ApplyTable *table, const CdcField *image, int column)
{
	return &image[table->match[column]];
}

static inline bool
is_whole(const CdcField *field)
{
	return field->state == CDC_FIELD_VALUE || field->state == CDC_FIELD_NULL;
}

/* A difference of length 0 says that the document stayed as it was. */
static inline bool
is_unchanged(const CdcField *field)
{
	return field->state == CDC_FIELD_ABSENT || field->len == 0;
}

/* ---------------------------------------------------------------- inserted rows */

static void
fill_default(Apply *apply, ApplyTable *table, int column)
{
	CdcCell		cell;

	if ((table->def->known & CDC_KNOWS_DEFAULTS) == 0)
		ereport(ERROR,
				(errcode(CDC_ERRCODE_UNSUPPORTED_EVENT),
				 errmsg("row event of source table \"%s.%s\" is not complete", table->schema, table->name),
				 errdetail("Column \"%s\" is not in the row image, and defaults of the table were altered since its definition was read.",
						   table->def->columns[column].name),
				 errhint(HINT_FULL)));
	/* should the default be altered while the table is copied: which one this was cannot be told then */
	if (apply_table_is_copying(table) && !table->noted_defaults)
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		catalog_deleted_note_defaults(apply->pipeline_id, table->table_id);
		PopActiveSnapshot();
		table->noted_defaults = true;
	}
	if (!schema_default_cell(&table->def->columns[column], &apply->arena, &cell))
		apply_image_throw_absent(table, column);
	heap_row_set(table->row, column, &cell);
}

/* --------------------------------------------------------------- documents in parts */

static void
set_document(Apply *apply, const ApplyTable *table, int column, const CdcField *diff,
			 const char *text, size_t len)
{
	CdcCell		cell = {.kind = CDC_CELL_TEXT};
	CdcError	err;
	CdcBuf		out;

	cdc_buf_init(&out, apply->arena.allocator, MaxAllocSize);
	if (binlog_json_diff_apply(diff->data, diff->len, text, len, &apply->arena, &out, &err) != CDC_OK)
		heap_row_bad_cell(&table->def->columns[column], &err);
	cell.v.data = out.data;
	cell.len = (uint32) out.len;
	heap_row_set(table->row, column, &cell);
	cdc_buf_free(&out);
}

/* The document is in the image before. */
static void
fill_from_document(Apply *apply, const ApplyTable *table, const CdcChange *change, int column,
				   const CdcField *before, const CdcField *diff)
{
	CdcCell		cell;
	CdcError	err;

	if (change->cell(&change->table->columns[table->match[column]], before, &apply->arena, &cell, &err) != CDC_OK)
		heap_row_bad_cell(&table->def->columns[column], &err);
	if (cell.kind != CDC_CELL_TEXT)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("could not read the value of column \"%s\"", table->def->columns[column].name),
				 errdetail("It is a difference to a document that is not there.")));
	set_document(apply, table, column, diff, cell.v.data, cell.len);
}

/* The document is in the target, as json, jsonb or text. */
static void
fill_from_stored(Apply *apply, const ApplyTable *table, int column, Datum stored, const CdcField *diff)
{
	const SchemaColumn *to = &table->row->table->columns[column];
	Oid			output;
	bool		is_varlena;
	char	   *text;

	getTypeOutputInfo(to->typid, &output, &is_varlena);
	text = OidOutputFunctionCall(output, stored);	/* UTF-8: no pipeline is without */
	set_document(apply, table, column, diff, text, strlen(text));
}

/* -------------------------------------------------------------------- updated rows */

/* Has the image after a key, the same as before? */
static bool
repeats_key(const ApplyTable *table, const CdcChange *change)
{
	for (uint32 i = 0; i < table->def->ncolumns; i++)
	{
		const CdcField *before = field_of(table, change->before, i);
		const CdcField *after = field_of(table, change->after, i);

		if (table->def->columns[i].key_part != 0 &&
			(!is_whole(before) || !is_whole(after) || before->len != after->len ||
			 (before->len > 0 && memcmp(before->data, after->data, before->len) != 0)))
			return false;
	}
	return table->def->nkey > 0;
}

/* Does binlog_row_image = NOBLOB leave out columns of that type? */
static bool
is_blob(CdcType type)
{
	return type == CDC_TYPE_TEXT || type == CDC_TYPE_BLOB || type == CDC_TYPE_JSON || type == CDC_TYPE_GEOMETRY ||
		type == CDC_TYPE_VECTOR;
}

/*
 * MariaDB logs a REPLACE that finds its row as an UPDATE whose image after has
 * what the statement gave, although the columns that it did not give went back to
 * their defaults: that UPDATE does not tell the row. (MySQL logs all columns
 * then.) What tells it from others is the key, which is among what was given and
 * did not change; it shares that with INSERT ... ON DUPLICATE KEY UPDATE. With
 * NOBLOB the key is in every image, and a REPLACE that leaves out a document or
 * text cannot be told from an update that did not change it: the server's own
 * replicas keep the old one too.
 */
void
apply_image_check(const ApplyTable *table, const CdcChange *change)
{
	if (!change->by_mariadb || change->op != CDC_UPDATE)
		return;
	for (uint32 i = 0; i < table->def->ncolumns; i++)
	{
		const CdcColumnDef *column = &table->def->columns[i];

		if (field_of(table, change->after, i)->state != CDC_FIELD_ABSENT)
			continue;
		/* FULL_NODUP gives the whole row before, and REPLACE whole */
		if (is_whole(field_of(table, change->before, i)))
			continue;
		if (!column->is_generated && !is_blob(column->type) && repeats_key(table, change))
			ereport(ERROR,
					(errcode(CDC_ERRCODE_UNSUPPORTED_EVENT),
					 errmsg("row event of source table \"%s.%s\" may stand for a REPLACE that it does not tell",
							table->schema, table->name),
					 errdetail("MariaDB logs REPLACE and INSERT ... ON DUPLICATE KEY UPDATE alike, as updates, and leaves out the columns that REPLACE set to their defaults. Column \"%s\" is not in the row image.",
							   column->name),
					 errhint(HINT_FULL)));
	}
}

/*
 * Fill a column of the new row that the image after does not give as a value.
 * False: only the row that is there tells it.
 */
bool
apply_image_fill(Apply *apply, ApplyTable *table, const CdcChange *change, int column)
{
	const CdcField *after = field_of(table, change->after, column);
	const CdcField *before;
	CdcCell		cell;
	CdcError	err;

	if (apply_generated_is_left_out(table, change, column))
		return false;
	if (change->before == NULL)
	{
		fill_default(apply, table, column);
		return true;
	}
	before = field_of(table, change->before, column);
	if (!is_whole(before))
	{
		/* a version of a row that becomes current again, see apply_versioned.c: there is no row to look at */
		if (change->op == CDC_INSERT)
			apply_image_throw_absent(table, column);
		return false;
	}
	if (!is_unchanged(after))
	{
		fill_from_document(apply, table, change, column, before, after);
		return true;
	}
	if (change->cell(&change->table->columns[table->match[column]], before, &apply->arena, &cell, &err) != CDC_OK)
		heap_row_bad_cell(&table->def->columns[column], &err);
	heap_row_set(table->row, column, &cell);
	return true;
}

/* Find the row before the change, by the key in target->search, into target->stored. */
static bool
find_stored(const ApplyTable *table)
{
	HeapTarget *target = table->row->target;

	if (table->batch != NULL)
	{
		switch (apply_batch_look(table))
		{
			case APPLY_BATCH_ROW:
				return true;
			case APPLY_BATCH_GONE:
				return false;
			case APPLY_BATCH_UNKNOWN:
				break;
		}
	}
	return heap_part_is_used(table->row) ? heap_part_is_there(table->row) : heap_target_read(target);
}

/* A column of the new row that the image leaves out, from the row that is there. */
static void
fill_missing(Apply *apply, const ApplyTable *table, const CdcChange *change, int column)
{
	TupleTableSlot *stored = table->row->target->stored;
	const CdcField *after = field_of(table, change->after, column);
	int			to = table->row->table->columns[column].attnum - 1;
	int			att = heap_row_held(table->row, column) - 1;

	if (is_unchanged(after))
	{
		table->row->fresh->tts_isnull[to] = stored->tts_isnull[att];
		table->row->fresh->tts_values[to] = stored->tts_values[att];
	}
	else if (!stored->tts_isnull[att])
		fill_from_stored(apply, table, column, stored->tts_values[att], after);
	else
		ereport(ERROR,
				(errcode(CDC_ERRCODE_ROW_MISSING),
				 errmsg("a document of source table \"%s.%s\" is changed in part, and the target does not have it",
						table->schema, table->name),
				 errdetail("Column \"%s\" is null in the target. Somebody else wrote to the target, or a policy put the null there.",
						   table->def->columns[column].name),
				 errhint("Run SET GLOBAL binlog_row_value_options = '' on the source and reconnect its clients. " APPLY_HINT_ANEW)));
}

/* What the row takes in memory beyond the change's own bytes. */
static void
account_for(Apply *apply, const TupleTableSlot *stored)
{
	TupleDesc	desc = stored->tts_tupleDescriptor;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!stored->tts_isnull[i] && !att->attbyval && att->attlen == -1)
			apply->unwritten_bytes += VARSIZE_ANY(DatumGetPointer(stored->tts_values[i]));
	}
}

/* Is a column of the new row to be had from the row that is there? */
static bool
is_missing(const ApplyTable *table, const CdcChange *change, int column)
{
	return table->row->table->columns[column].attnum > 0 && change->before != NULL &&
		!is_whole(field_of(table, change->after, column)) && !is_whole(field_of(table, change->before, column)) &&
		!apply_generated_is_left_out(table, change, column);
}

/*
 * A transform makes the target's row from the source's, and that cannot be gone back from where columns are left out or
 * computed. What a filter leaves out is not there to be looked at.
 */
static void
check_is_held(const ApplyTable *table, int column)
{
	if (heap_row_held(table->row, column) > 0 && !table->row->has_filter)
		return;
	ereport(ERROR,
			(errcode(CDC_ERRCODE_UNSUPPORTED_EVENT),
			 errmsg("row event of source table \"%s.%s\" is not complete", table->schema, table->name),
			 table->row->has_filter
			 ? errdetail("Column \"%s\" is not in the row image, and option \"transforms\" gives the table a filter, for which the whole row has to be known.",
						 table->def->columns[column].name)
			 : errdetail("Column \"%s\" is not in the row image, and option \"transforms\" makes something of it that the target does not have as it was.",
						 table->def->columns[column].name),
			 errhint(HINT_FULL)));
}

/*
 * Complete the new row with what the row that is there tells. "missing" is one of
 * the columns that it has to tell. False: it is not there yet.
 */
static bool
complete_from_stored(Apply *apply, ApplyTable *table, const CdcChange *change, int missing, bool has_diff)
{
	HeapTarget *target = table->row->target;
	bool		copying = apply_table_is_copying(table);

	if (target->nkey == 0)
		apply_image_throw_absent(table, missing);
	for (int i = 0; i < table->row->table->ncolumns; i++)
	{
		if (is_missing(table, change, i))
			check_is_held(table, i);
	}
	if (!find_stored(table))
	{
		if (copying)
			return false;
		throw_missing(table, missing);
	}
	if (copying && table->keeps_rows && !apply_reread_is_done(apply, table))
		return false;
	/*
	 * A chunk may have brought a later row of the key that the change leaves: what is taken from it would stand under the
	 * new key, and nothing that the stream brings later would set it right.
	 */
	if (copying && (has_diff || !heap_row_same_key(table->row)) && !apply_reread_is_exact(apply, table))
		return false;
	if (table->batch != NULL)
		account_for(apply, target->stored);
	for (int i = 0; i < table->row->table->ncolumns; i++)
	{
		if (is_missing(table, change, i))
			fill_missing(apply, table, change, i);
	}
	return true;
}

/*
 * Complete the new row in target->slot with what apply_image_fill did not know.
 * The key before the change stands in target->search. Throws when it cannot be;
 * while the table is being copied that is no error, but false.
 */
bool
apply_image_complete(Apply *apply, ApplyTable *table, const CdcChange *change)
{
	bool		has_diff = false;
	bool		left_out = false;
	int			missing = -1;

	for (int i = 0; i < table->row->table->ncolumns; i++)
	{
		left_out |= apply_generated_is_left_out(table, change, i);
		if (!is_missing(table, change, i))
			continue;
		missing = i;
		has_diff |= !is_unchanged(field_of(table, change->after, i));
	}
	Assert(missing >= 0 || left_out);
	if (missing >= 0 && !complete_from_stored(apply, table, change, missing, has_diff))
		return false;
	if (!left_out)
		return true;
	if (apply_table_is_copying(table) && table->row->target->nkey > 0)
		return false;
	apply_generated_read(apply, table, change);
	return true;
}
