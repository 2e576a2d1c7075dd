/*-------------------------------------------------------------------------
 *
 * apply_superseded.c
 *	  Dead letters that later changes make moot.
 *
 * NOTES
 *	  A letter must never bring an older row back over a newer one. So each open
 *	  letter names its keys, and a change of such a key that is applied notes, in
 *	  its own transaction, that the letter has nothing more to say of it. A change that tells only a part
 *	  of its row (binlog_row_image = MINIMAL) takes these columns from the letter.
 *
 *	  Which keys have letters is known by a bitmap of their hashes: a change of a
 *	  table without letters costs one comparison, one of another table a SHA-256 of
 *	  its key, and only a hit looks into the catalog. The bitmap has one size,
 *	  however many letters there are, and only gains bits: those of letters that are settled, or of a transaction
 *	  that was undone, cost a look that finds nothing.
 *
 *	  A table without a key is a multiset of rows, and the "key" of a letter that inserts one
 *	  is the whole row, as the target would have it. When the stream takes away a row that is not there, that
 *	  was the row of a letter: one for each. A letter that deletes one has none (apply_keyless.c).
 *
 *	  Snapshot workers write letters too. They hold their table's lock meanwhile,
 *	  which the stream takes when it opens a table that is being copied, and
 *	  looks for new ones then.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "apply/apply_private.h"
#include "catalog/catalog_dead_letter.h"
#include "chunk/chunk.h"
#include "heap/heap_image.h"
#include "util/util_subtransaction.h"

static void
add_key(void *arg, int32 table_id, const bytea *key)
{
	Apply	   *apply = arg;

	if (apply->letter_bits == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(apply->cxt);

		apply->letter_bits = catalog_letter_bits_make();
		MemoryContextSwitchTo(old);
	}
	catalog_letter_bits_add(apply->letter_bits, table_id, key);
}

static bool
may_have_letter(const Apply *apply, int32 table_id, const bytea *key)
{
	/* there are letters without a key, too */
	return apply->letter_bits != NULL && catalog_letter_bits_may_have(apply->letter_bits, table_id, key);
}

/* The table is opened: read which keys have letters, as far as that is not known yet. */
void
apply_letters_look(Apply *apply, ApplyTable *table)
{
	if (table->letters_known)
		return;
	if (catalog_dead_letter_keys(apply->pipeline_id, table->table_id, &table->last_letter, add_key, apply) > 0)
		table->has_letters = true;
	/* chunks of it may bring more */
	table->letters_known = !apply_table_is_copying(table);
}

void
apply_letter_added(Apply *apply, ApplyTable *table, const bytea *old_key, const bytea *new_key)
{
	if (old_key != NULL)
		add_key(apply, table->table_id, old_key);
	if (new_key != NULL)
		add_key(apply, table->table_id, new_key);
	table->has_letters |= old_key != NULL || new_key != NULL;
}

/* --------------------------------------------------------------------------- keys */

/* Column of the event that a key column of the declared definition is; -1: not there. */
static int
event_column(const ApplyTable *table, const CdcChange *change, int part)
{
	int			i = cdc_table_def_key_column(table->def, (uint32) part);

	return i >= 0 && table->match[i] < (int) change->table->ncolumns ? table->match[i] : -1;
}

static const CdcColumnDef *
key_column(const ApplyTable *table, int part)
{
	int			i = cdc_table_def_key_column(table->def, (uint32) part);

	return i >= 0 ? &table->def->columns[i] : NULL;
}

/* The key in an image; what that leaves out stands in the other one. NULL when it cannot be read. */
static bytea *
key_of(Apply *apply, const ApplyTable *table, const CdcChange *change, const CdcField *image, const CdcField *other)
{
	CdcCell		cells[INDEX_MAX_KEYS];
	int			nkey = (int) table->def->nkey;
	HeapImageKey *key;

	if (image == NULL || nkey == 0 || nkey > INDEX_MAX_KEYS || table->match == NULL)
		return NULL;
	for (int i = 0; i < nkey; i++)
	{
		int			column = event_column(table, change, i + 1);
		const CdcField *field;
		CdcError	err;

		if (column < 0)
			return NULL;
		field = &image[column];
		if (field->state == CDC_FIELD_ABSENT && other != NULL)
			field = &other[column];
		if (field->state != CDC_FIELD_VALUE ||
			change->cell(&change->table->columns[column], field, &apply->arena, &cells[i], &err) != CDC_OK)
			return NULL;
	}
	key = heap_image_key_begin();
	for (int i = 0; i < nkey; i++)
		heap_image_key_add(key, key_column(table, i + 1), &cells[i]);
	return heap_image_key_end(key);
}

static bool
is_equal(const bytea *a, const bytea *b)
{
	return a != NULL && b != NULL && memcmp(VARDATA(a), VARDATA(b), CATALOG_LETTER_KEY_LEN) == 0;
}

/* The key that a change removes, and the one that it writes; an update that leaves the key has only the second. */
void
apply_letter_keys(Apply *apply, const ApplyTable *table, const CdcChange *change, bytea **old_key, bytea **new_key)
{
	*old_key = key_of(apply, table, change, change->before, NULL);
	*new_key = key_of(apply, table, change, change->after, change->before);
	if (is_equal(*old_key, *new_key))
		*old_key = NULL;
}

/* ----------------------------------------------------------------- changes applied */

/*
 * Columns that an update told, when these are not all (its images together lack some, or one is a difference); NIL: the
 * whole row is known by it.
 */
static List *
told_columns(const ApplyTable *table, const CdcChange *change)
{
	bool		is_whole = true;
	List	   *told = NIL;

	if (change->op != CDC_UPDATE)
		return NIL;
	for (uint32 i = 0; i < table->def->ncolumns; i++)
	{
		const CdcField *after = &change->after[table->match[i]];
		const CdcField *before = &change->before[table->match[i]];
		bool		is_told = after->state == CDC_FIELD_VALUE || after->state == CDC_FIELD_NULL;

		if (is_told)
			told = lappend(told, unconstify(char *, table->def->columns[i].name));
		else if (after->state != CDC_FIELD_ABSENT || (before->state != CDC_FIELD_VALUE && before->state != CDC_FIELD_NULL))
			is_whole = false;
	}
	return is_whole ? NIL : told;
}

static void
supersede(Apply *apply, ApplyTable *table, const bytea *key, const List *columns, int64 before_id)
{
	char		position[CDC_POSITION_TEXT_MAX];

	if (key == NULL || !may_have_letter(apply, table->table_id, key))
		return;
	cdc_position_format(&apply->txn_start, position);
	PushActiveSnapshot(GetTransactionSnapshot());
	(void) catalog_dead_letter_supersede(apply->pipeline_id, table->table_id, key, columns, before_id,
										 before_id == PG_INT64_MAX
										 ? psprintf("a later change of its row was applied, of the source transaction at %s", position)
										 : psprintf("dead letter " INT64_FORMAT ", a later change of its row, was applied", before_id));
	PopActiveSnapshot();
}

void
apply_letters_supersede(Apply *apply, ApplyTable *table, const CdcChange *change, int64 before_id)
{
	bytea	   *old_key;
	bytea	   *new_key;
	List	   *columns;

	if (!table->has_letters)
		return;
	apply_letter_keys(apply, table, change, &old_key, &new_key);
	if (old_key == NULL && new_key == NULL)
		return;
	columns = told_columns(table, change);
	/* what was told of a part of the old key's row is now a part of the new key's, which nobody has applied */
	if (columns == NIL || change->op == CDC_DELETE)
		supersede(apply, table, old_key, NIL, before_id);
	supersede(apply, table, new_key, columns, before_id);
}

/* ----------------------------------------------------------------- tables without a key */

static bytea *
row_digest(HeapTarget *target, TupleTableSlot *slot)
{
	bytea	   *bytes = chunk_key_bytes(target, slot);
	HeapImageKey *key = heap_image_key_begin();

	heap_image_key_add_bytes(key, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
	return heap_image_key_end(key);
}

typedef struct RowDigest
{
	Apply	   *apply;
	ApplyTable *table;
	const CdcChange *change;
	bytea	   *digest;
} RowDigest;

static void
compute_row_digest(void *arg)
{
	RowDigest  *row = arg;
	ApplyTable *table = row->table;

	table->row = heap_row_open(table->target, table->def, &row->apply->types);
	PushActiveSnapshot(GetTransactionSnapshot());
	if (apply_row_make(row->apply, table, row->change))
		row->digest = row_digest(table->row->target, table->row->target->slot);
	PopActiveSnapshot();
	heap_row_close(table->row);
}

bytea *
apply_letter_row(Apply *apply, ApplyTable *table, const CdcChange *change)
{
	RowDigest	row = {.apply = apply,.table = table,.change = change};
	HeapRow    *open = table->row;

	(void) util_subtransaction(compute_row_digest, &row, false);
	table->row = open;
	return row.digest;
}

int64
apply_letters_take_rows(Apply *apply, ApplyTable *table, HeapTuple tuple, int64 count)
{
	HeapTarget *target = table->row->target;
	char		position[CDC_POSITION_TEXT_MAX];
	bytea	   *digest;
	int64		taken;

	if (!table->has_letters)
		return 0;
	ExecForceStoreHeapTuple(tuple, target->search, false);
	digest = row_digest(target, target->search);
	if (!may_have_letter(apply, table->table_id, digest))
		return 0;
	cdc_position_format(&apply->txn_start, position);
	PushActiveSnapshot(GetTransactionSnapshot());
	taken = catalog_dead_letter_take_rows(apply->pipeline_id, table->table_id, digest, count,
										  psprintf("its row went again, at the latest in the source transaction at %s", position));
	PopActiveSnapshot();
	return taken;
}
