/*-------------------------------------------------------------------------
 *
 * apply_letter_shape.c
 *	  A table that has dead letters changes its columns: the letters follow.
 *
 * NOTES
 *	  A letter is turned back into a row of the definition that its table has when it
 *	  is replayed, by the names of the columns. So it has to be now what its row would
 *	  be if it had been there at the change: columns get their new names, what was
 *	  dropped counts no more, also when another column of its name comes later, and columns
 *	  that come have the default of then, in both images: it may be another one when the letter is replayed.
 *
 *	  Where the target keeps a column that the source drops (schema_changes
 *	  "lenient"), nobody can write it any more. A letter that has something for it
 *	  cannot be replayed, so that this is not lost in silence.
 *
 *	  Letters are found by the key, or in a table without one by the whole row, as these were
 *	  when they were made. A change of these has the table copied anew.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/lsyscache.h"

#include "apply/apply_private.h"
#include "catalog/catalog_dead_letter.h"
#include "heap/heap_image.h"
#include "util/util_arena.h"
#include "util/util_name.h"

/* Are rows told from each other by something else afterwards: by another key or, where there is none, by other columns? */
static bool
rows_are_told_otherwise(const SchemaEvolve *evolve)
{
	const CdcTableDef *after = evolve->after;
	uint32		kept = 0;

	if (schema_key_differs(evolve))
		return true;
	for (uint32 i = 0; i < after->ncolumns; i++)
	{
		if (after->nkey > 0 && after->columns[i].key_part == 0)
			continue;
		if (evolve->origin[i] < 0 || schema_type_differs(&evolve->before->columns[evolve->origin[i]], &after->columns[i]))
			return true;
		kept++;
	}
	return after->nkey == 0 && kept < evolve->before->ncolumns;
}

/*
 * Dead letters name their rows by the key, or the columns, as these were when they were made: a later change of such a row would
 * not be known for one, and a replay could bring an older row back over it. A new copy has the rows without letters.
 */
const char *
apply_letters_want_copy(const Apply *apply, const ApplySchemaChange *change)
{
	return rows_are_told_otherwise(&change->evolve) && catalog_dead_letter_is_any_open(apply->pipeline_id, change->table->table_id)
		? "it has dead letters, which are found by the columns that it had" : NULL;
}

/* Is each column afterwards the one of its name before, and none is gone? */
static bool
names_stay(const SchemaEvolve *evolve)
{
	if (evolve->before->ncolumns != evolve->after->ncolumns)
		return false;
	for (uint32 i = 0; i < evolve->after->ncolumns; i++)
	{
		if (evolve->origin[i] < 0 || strcmp(evolve->before->columns[evolve->origin[i]].name, evolve->after->columns[i].name) != 0)
			return false;
	}
	return true;
}

typedef struct Reshape
{
	const SchemaEvolve *evolve;
	bool	   *keeps;			/* per column of "before": the target keeps what the source dropped */
} Reshape;

static List *
renamed(const Reshape *reshape, const List *names)
{
	const SchemaEvolve *evolve = reshape->evolve;
	List	   *result = NIL;

	for (uint32 i = 0; i < evolve->after->ncolumns; i++)
	{
		if (evolve->origin[i] >= 0 && util_name_in(names, evolve->before->columns[evolve->origin[i]].name))
			result = lappend(result, unconstify(char *, evolve->after->columns[i].name));
	}
	return result;
}

static Datum
reshaped(const Reshape *reshape, Datum image)
{
	const SchemaEvolve *evolve = reshape->evolve;
	CdcArena	arena;

	if (image == (Datum) 0)
		return image;
	cdc_arena_init(&arena, util_context_allocator(CurrentMemoryContext), 0);	/* goes with the letter */
	return heap_image_reshape(image, evolve->before, evolve->after, evolve->origin, reshape->keeps,
							  evolve->is_told && evolve->defaults_known, &arena);
}

static bool
reshape_letter(void *arg, CatalogDeadLetter *letter)
{
	const Reshape *reshape = arg;

	letter->before = reshaped(reshape, letter->before);
	letter->after = reshaped(reshape, letter->after);
	letter->newer = renamed(reshape, letter->newer);
	return true;
}

/* The target has the new shape. In the open transaction. */
void
apply_letters_reshape(Apply *apply, const ApplySchemaChange *change)
{
	const SchemaEvolve *evolve = &change->evolve;
	const ApplyTable *table = change->table;
	Reshape		reshape = {.evolve = evolve};

	if (names_stay(evolve))
		return;
	reshape.keeps = palloc0(sizeof(bool) * Max(evolve->before->ncolumns, 1));
	for (uint32 i = 0; i < evolve->before->ncolumns; i++)
	{
		const char *name = evolve->before->columns[i].name;

		/* where the name has passed to another column the target has that one, unless it keeps everything */
		reshape.keeps[i] = get_attnum(table->target, util_name_of_source(name)) != InvalidAttrNumber &&
			(cdc_table_def_column(evolve->after, name) < 0 || apply->rules.mode != CATALOG_MODE_EVOLVE);
	}
	catalog_dead_letter_edit_table(apply->pipeline_id, table->table_id, reshape_letter, &reshape);
}
