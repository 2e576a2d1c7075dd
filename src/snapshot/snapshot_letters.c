/*-------------------------------------------------------------------------
 *
 * snapshot_letters.c
 *	  A page of the copy with rows that do not fit: the others are written, these
 *	  are kept as dead letters.
 *
 * NOTES
 *	  The bad rows are found by writing pieces of the page in subtransactions that
 *	  are always undone: a piece that fails is halved, one that does not is
 *	  followed by one of twice its size. So a bad row costs about twice the logarithm of the
 *	  page's size, a page of bad rows one subtransaction for each, and nothing of
 *	  these is left in the transaction, which then writes the good rows at once.
 *
 *	  Rows may fit one by one and not together (a unique constraint that the
 *	  source does not have). Then that last step fails, and the page is written once more with the
 *	  pieces that fit kept: the first of such rows wins.
 *
 *	  Letters, rows and the chunk's row in the ledger are committed together, so a
 *	  page that is read again after a crash finds none of them, and one that is
 *	  done is not read again.
 *
 *	  A row whose key the stream has written or removed already is no loss: it
 *	  becomes no letter.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "catalog/catalog_dead_letter.h"
#include "heap/heap_bulk.h"
#include "heap/heap_image.h"
#include "mysql/mysql_text.h"
#include "snapshot/snapshot_copy.h"
#include "util/util_subtransaction.h"

/* Rows of the page that are tried together. */
typedef struct Piece
{
	SnapshotCopy *copy;
	const CopyNotes *notes;
	int64		from;
	int64		to;
	int64		replaced;
	bool		is_known;		/* the stream has decided about the key of row "from" */
} Piece;

static void
try_piece(void *arg)
{
	Piece	   *piece = arg;

	piece->replaced = snapshot_insert_rows(piece->copy, piece->notes, piece->from, piece->to, NULL);
}

/* A column of a row; false: it cannot be read. */
static bool
read_cell(SnapshotCopy *copy, const CopyTable *table, const MysqlRow *row, uint32 column, CdcCell *cell)
{
	CdcError	err;

	return mysql_text_to_cell(&table->def->columns[column], row->values[column], row->lengths[column], &copy->arena, cell, &err) == CDC_OK;
}

bool
snapshot_letter_search(SnapshotCopy *copy, const CopyTable *table, HeapRow *row, const MysqlRow *values)
{
	heap_row_begin(row);
	cdc_arena_reset(&copy->arena);
	for (uint32 i = 1; i <= table->def->nkey; i++)
	{
		int			column = cdc_table_def_key_column(table->def, i);
		CdcCell		cell;

		if (!read_cell(copy, table, values, column, &cell))
			return false;
		heap_row_set(row, column, &cell);
	}
	heap_row_make_key(row);
	heap_row_search_new(row);
	return true;
}

/* Look for the key of row "from" in what the stream did. */
static void
look_for_key(void *arg)
{
	Piece	   *piece = arg;
	SnapshotCopy *copy = piece->copy;
	const CopyTable *table = copy->page->chunk->table;
	HeapRow    *row = heap_row_open(table->target, table->def, &copy->types);

	heap_bulk_begin(row->target);
	if (!snapshot_letter_search(copy, table, row, &copy->page->rows[piece->from]))
		return;
	piece->is_known = (!piece->notes->overwrite && snapshot_row_is_there(row)) ||
		(piece->notes->any_deleted &&
		 catalog_deleted_exists(copy->pipeline_id, table->table_id, chunk_key_bytes(row->target, row->target->search)));
	heap_bulk_end(row->target);
	heap_row_close(row);
}

static Datum
row_image(SnapshotCopy *copy, const CopyTable *table, const MysqlRow *row)
{
	const CdcTableDef *def = table->def;
	HeapImage	image;

	heap_image_begin(&image);
	for (uint32 i = 0; i < def->ncolumns; i++)
	{
		CdcCell		cell;

		if (read_cell(copy, table, row, i, &cell))
			heap_image_cell(&image, &def->columns[i], &cell);
		else
			heap_image_raw(&image, &def->columns[i], row->values[i], row->lengths[i]);
	}
	return heap_image_end(&image);
}

/* NULL when it cannot be read. */
static bytea *
row_key(SnapshotCopy *copy, const CopyTable *table, const MysqlRow *row)
{
	const CdcTableDef *def = table->def;
	CdcCell		cells[INDEX_MAX_KEYS];
	HeapImageKey *key;

	/* its target has such a key, so there are no more */
	for (uint32 i = 0; i < def->nkey; i++)
	{
		if (!read_cell(copy, table, row, cdc_table_def_key_column(def, i + 1), &cells[i]))
			return NULL;
	}
	key = heap_image_key_begin();
	for (uint32 i = 0; i < def->nkey; i++)
		heap_image_key_add(key, &def->columns[cdc_table_def_key_column(def, i + 1)], &cells[i]);
	return heap_image_key_end(key);
}

void
snapshot_letter_write(SnapshotCopy *copy, const CopyTable *table, const MysqlRow *row, const ErrorData *edata)
{
	CatalogDeadLetter letter = {
		.pipeline_id = copy->pipeline_id,
		.table_id = table->table_id,
		.source_schema = table->source_schema,
		.source_table = table->source_table,
		.operation = "snapshot",
		.error = *util_error_info_with_values(edata),
	};

	cdc_arena_reset(&copy->arena);
	letter.after = row_image(copy, table, row);
	letter.new_key = row_key(copy, table, row);
	catalog_dead_letter_insert(&letter);
}

/* Row "from" of the piece does not fit. True when it became a letter. */
static bool
keep_row(Piece *piece, const ErrorData *edata)
{
	piece->is_known = false;
	if (piece->notes->look_up)
		(void) util_subtransaction(look_for_key, piece, false);	/* a key that cannot be read is not known */
	if (piece->is_known)
		return false;
	snapshot_letter_write(piece->copy, piece->copy->page->chunk->table, &piece->copy->page->rows[piece->from], edata);
	return true;
}

void
snapshot_letter_say(const SnapshotCopy *copy, const CopyTable *table, const ErrorData *edata, char *detail)
{
	const UtilErrorInfo *info = util_error_info(edata);

	ereport(LOG,
			(errcode(info->sqlstate),
			 errmsg("rows of source table \"%s.%s\" of pipeline \"%s\" that are being copied become dead letters: %s",
					table->source_schema, table->source_table, copy->pipeline_name, info->message),
			 errdetail_internal("%s", detail),
			 errhint("See the view cdc_dead_letters.")));
}

/* Go through the page in pieces; rows that do not fit become letters, and their bits are set. Returns what a policy changed. */
static int64
go_through(SnapshotCopy *copy, const CopyNotes *notes, bool keep, uint8 *left_out, int64 *letters)
{
	MemoryContext piece_cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc snapshot piece", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(piece_cxt);
	int64		nrows = copy->page->nrows;
	int64		size = Max(nrows / 2, 1);
	int64		replaced = 0;
	Piece		piece = {.copy = copy,.notes = notes};

	while (piece.from < nrows)
	{
		ErrorData  *edata;

		MemoryContextReset(piece_cxt);
		piece.to = Min(piece.from + size, nrows);
		edata = util_subtransaction(try_piece, &piece, keep);
		copy->row = NULL;
		if (edata == NULL)
		{
			replaced += piece.replaced;
			piece.from = piece.to;
			size *= 2;
			continue;
		}
		if (!heap_error_is_tables_own(edata->sqlerrcode))
			ReThrowError(edata);
		size = Max((piece.to - piece.from) / 2, 1);
		if (piece.to - piece.from > 1)
			continue;
		left_out[piece.from / 8] |= 1 << piece.from % 8;
		if (keep_row(&piece, edata) && (*letters)++ == 0)
			snapshot_letter_say(copy, copy->page->chunk->table, edata,
								psprintf("It is chunk %d; the error is that of its first one.", copy->page->chunk->chunk_no));
		piece.from++;
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(piece_cxt);
	return replaced;
}

int64
snapshot_insert_fitting(SnapshotCopy *copy, const CopyNotes *notes, int64 *letters)
{
	const CopyPage *page = copy->page;
	const CopyTable *table = page->chunk->table;
	uint8	   *left_out = palloc0(page->nrows / 8 + 1);
	bool		keep = page->way == COPY_KEEP;
	int64		replaced;

	/* what is wrong with the target as a whole stops the table */
	copy->opening = true;
	heap_row_close(heap_row_open(table->target, table->def, &copy->types));
	copy->opening = false;

	replaced = go_through(copy, notes, keep, left_out, letters);
	return keep ? replaced : snapshot_insert_rows(copy, notes, 0, page->nrows, left_out);
}
