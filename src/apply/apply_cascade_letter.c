/*-------------------------------------------------------------------------
 *
 * apply_cascade_letter.c
 *	  Foreign keys of the source and rows that are in dead letters.
 *
 * NOTES
 *	  What a foreign key does where the log has nothing of it is made from the rows of the
 *	  child's target (apply_cascade.c). The target does not have a row that did not
 *	  fit; the letter of that row says whether the foreign key has changed it:
 *
 *	  row inserted, or of a copy	ON DELETE CASCADE	the letter has nothing more to say
 *									... SET NULL		the columns are null in it
 *									... new values		copied anew
 *	  row updated					the target has an older one, which may have been changed instead: copied anew
 *	  row deleted					of a table without a key, whose target had one too many: as inserted
 *
 *	  "Copied anew" is only where a letter names the value that the parent had, or
 *	  leaves it out: the copy brings the rows as they are, and supersedes all letters.
 *	  A table without a key stops instead.
 *
 *	  All of it walks over the letters of the child, for each change of a parent, as
 *	  long as the child has some.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "apply/apply_private.h"
#include "catalog/catalog_dead_letter.h"
#include "heap/heap_image.h"
#include "util/util_arena.h"

typedef struct Walk
{
	Apply	   *apply;
	ApplyTable *child;
	const ApplyCascadeLetters *what;
	MemoryContext cxt;			/* of the result */
	bool		keeps_images;	/* other tables refer to the child */
	List	   *images;			/* of Datum *: rows that the foreign key changed, as they were */
	bool		is_unclear;		/* only a new copy tells what has become of a row */
} Walk;

typedef enum Naming
{
	NAMES_OTHER,
	NAMES_VALUE,				/* the row has the value that the parent had */
	NAMES_NOTHING				/* it is left out, or cannot be read */
} Naming;

/* Does a row image have the parent's former value? */
static Naming
names(Walk *walk, Datum image, const List *newer)
{
	ApplyTable *child = walk->child;
	HeapRow    *row = child->row;
	Naming		result = NAMES_VALUE;
	CdcArena	arena;

	if (image == (Datum) 0)
		return NAMES_OTHER;
	cdc_arena_init(&arena, util_context_allocator(CurrentMemoryContext), 0);	/* goes with the letter */
	heap_target_clear(row->target->search);
	for (uint32 i = 0; i < walk->what->ncolumns; i++)
	{
		int			column = walk->what->columns[i];
		const CdcColumnDef *def = &child->def->columns[column];
		AttrNumber	attnum = row->table->columns[column].attnum;
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(row->target->rel), attnum - 1);
		CdcField	field;
		CdcCell		cell;
		CdcError	err;

		if (!heap_image_field(image, def, newer, &field) ||
			heap_image_to_cell(def, &field, &arena, &cell, &err) != CDC_OK)
		{
			result = NAMES_NOTHING;
			continue;
		}
		if (cell.kind == CDC_CELL_NULL)
			return NAMES_OTHER;
		heap_row_set_old(row, column, &cell);
		if (row->target->search->tts_isnull[attnum - 1] ||
			!datumIsEqual(row->target->search->tts_values[attnum - 1], walk->what->values[i], att->attbyval, att->attlen))
			return NAMES_OTHER;
	}
	return result;
}

static Datum
keep_image(const Walk *walk, Datum image)
{
	MemoryContext old = MemoryContextSwitchTo(walk->cxt);
	Datum		copy = datumCopy(image, false, -1);

	MemoryContextSwitchTo(old);
	return copy;
}

static void
add_image(Walk *walk, Datum image)
{
	Datum		copy;
	MemoryContext old;

	if (!walk->keeps_images)
		return;
	copy = keep_image(walk, image);
	old = MemoryContextSwitchTo(walk->cxt);
	walk->images = lappend(walk->images, DatumGetPointer(copy));
	MemoryContextSwitchTo(old);
}

/* What the foreign key does to a row that a letter would bring, or take away. */
static bool
change_row(Walk *walk, CatalogDeadLetter *letter, Datum *image)
{
	Naming		naming = names(walk, *image, letter->newer);
	char		position[CDC_POSITION_TEXT_MAX];

	if (naming == NAMES_OTHER)
		return false;
	if (naming == NAMES_NOTHING || walk->what->has_new_values ||
		(walk->what->action == CDC_FOREIGN_SET_NULL && walk->child->def->nkey == 0))
	{
		walk->is_unclear = true;
		return false;
	}
	add_image(walk, *image);
	if (walk->what->action == CDC_FOREIGN_SET_NULL)
	{
		*image = heap_image_with_nulls(*image, walk->child->def, walk->what->ncolumns, walk->what->columns);
		return true;
	}
	cdc_position_format(&walk->apply->txn_start, position);
	letter->state = CATALOG_LETTER_SUPERSEDED;
	letter->reason = psprintf("a foreign key of the source deleted its row, in the source transaction at %s", position);
	return true;
}

static bool
look_at(void *arg, CatalogDeadLetter *letter)
{
	Walk	   *walk = arg;

	if (strcmp(letter->operation, "delete") == 0)
		return walk->child->def->nkey == 0 && change_row(walk, letter, &letter->before);
	if (strcmp(letter->operation, "update") != 0)
		return change_row(walk, letter, &letter->after);
	walk->is_unclear |= names(walk, letter->before, NIL) != NAMES_OTHER || names(walk, letter->after, letter->newer) != NAMES_OTHER;
	return false;
}

static void
want_copy(Apply *apply, ApplyTable *child)
{
	if (child->def->nkey == 0)
		ereport(ERROR,
				(errcode(CDC_ERRCODE_UNSUPPORTED_EVENT),
				 errmsg("a foreign key changed rows of source table \"%s.%s\" that are dead letters", child->schema, child->name),
				 errdetail("The server does not log what it did, and a table without a key cannot be copied anew beside its rows."),
				 errhint("Empty the target with TRUNCATE, then use cdc_resync_table().")));
	if (list_member_int(apply->copies_wanted, child->table_id))
		return;
	ereport(LOG,
			(errmsg("source table \"%s.%s\" of pipeline \"%s\" is copied anew because of its dead letters",
					child->schema, child->name, apply->pipeline_name),
			 errdetail("A foreign key changed rows of it that are dead letters, and the server does not log what it did.")));
	apply_wish_resync(apply, child);
}

List *
apply_cascade_letters(Apply *apply, ApplyTable *child, const ApplyCascadeLetters *what)
{
	Walk		walk = {.apply = apply,.child = child,.what = what,.cxt = CurrentMemoryContext};

	if (!child->has_letters)
		return NIL;
	walk.keeps_images = apply_is_parent(apply, child->schema, child->name);
	PushActiveSnapshot(GetTransactionSnapshot());
	catalog_dead_letter_edit_table(apply->pipeline_id, child->table_id, look_at, &walk);
	PopActiveSnapshot();
	if (walk.is_unclear)
		want_copy(apply, child);
	return walk.images;
}
