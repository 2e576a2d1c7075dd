/*-------------------------------------------------------------------------
 *
 * snapshot_read.c
 *	  Reads the rows of a chunk from the source into memory.
 *
 * NOTES
 *	  A chunk is one SELECT. The query is sent before the page read last is
 *	  written, so the source works, and the session's ring fills, meanwhile.
 *
 *	  The memory of a page is bounded: after PAGE_MAX_BYTES the chunk is cut
 *	  behind the last complete row, and what is left of it is another chunk, of
 *	  which the rest of the same answer is the page (or pages). A single row is
 *	  taken whatever its size. A chunk that has grown to twice what was planned is
 *	  cut in the same way, and asked for anew; so an answer has an end whatever the
 *	  source says.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "mysql/mysql_server.h"
#include "snapshot/snapshot_copy.h"
#include "util/util_error.h"

/* Most bytes of row text in a page, and what chunks are planned to have. */
#define PAGE_MAX_BYTES (16 * 1024 * 1024)
#define PAGE_GOOD_BYTES (6 * 1024 * 1024)

/* Most rows of a chunk where rows do not fit: each takes a while, and the stream cannot write to the table meanwhile. */
#define LETTERS_ROWS 1000

/* Rows that a page has room for at first. */
#define PAGE_FIRST_ROWS 1024

void
snapshot_read_send(SnapshotCopy *copy)
{
	const CopyChunk *chunk = copy->reading;
	const CopyTable *table = chunk->table;

	copy->at = chunk->table;
	snapshot_open_session(copy);
	copy->rows_asked = 2 * table->limit;
	copy->rows_seen = 0;
	mysql_session_query(copy->session,
						chunk_range_query(table->def, table->key, table->nkey, copy->info->flavor,
										  NULL, chunk->lower, chunk->upper, copy->rows_asked));
	copy->sent = true;
}

static CopyPage *
make_page(SnapshotCopy *copy, CopyChunk *chunk)
{
	MemoryContext cxt = AllocSetContextCreate(copy->cxt, "cdc snapshot page", ALLOCSET_DEFAULT_SIZES);
	CopyPage   *page = MemoryContextAllocZero(cxt, sizeof(CopyPage));

	page->cxt = cxt;
	page->chunk = chunk;
	page->allocated = PAGE_FIRST_ROWS;
	page->rows = MemoryContextAlloc(cxt, sizeof(MysqlRow) * page->allocated);
	return page;
}

void
snapshot_page_free(CopyPage *page)
{
	if (page == NULL)
		return;
	snapshot_chunk_free(page->chunk);
	MemoryContextDelete(page->cxt);
}

/* Copy a row of the session's into the page. */
static void
keep_row(CopyPage *page, const MysqlRow *row)
{
	if (page->nrows == page->allocated)
	{
		page->allocated *= 2;
		page->rows = repalloc_huge(page->rows, sizeof(MysqlRow) * page->allocated);
	}
	page->bytes += mysql_row_copy(page->cxt, row, &page->rows[page->nrows++]);
}

/* Fill the page with what comes; true when the answer is at its end. */
static bool
fill_page(SnapshotCopy *copy, CopyPage *page)
{
	const CopyTable *table = page->chunk->table;
	int			nfields = (int) table->def->ncolumns + table->nkey;
	MysqlRow	row;

	mysql_session_let_go(copy->session);
	while (page->bytes < PAGE_MAX_BYTES)
	{
		if (!mysql_session_fetch(copy->session, &row))
			return true;
		if (row.nfields != nfields)
			ereport(ERROR,
					(errcode(CDC_ERRCODE_TABLE_CHANGED),
					 errmsg("source table \"%s.%s\" has other columns than before",
							table->source_schema, table->source_table)));
		if (copy->rows_seen == copy->rows_asked)
			ereport(ERROR,
					(errcode(ERRCODE_PROTOCOL_VIOLATION),
					 errmsg("the source sent more rows of table \"%s.%s\" than were asked for",
							table->source_schema, table->source_table)));
		copy->rows_seen++;
		keep_row(page, &row);
	}
	return false;
}

/* Plan the next chunks by what the rows of this page have. */
static void
adapt_limit(const SnapshotCopy *copy, CopyTable *table, const CopyPage *page)
{
	uint64		rows;

	if (page->nrows == 0)
		return;
	rows = (uint64) (PAGE_GOOD_BYTES / Max(page->bytes / page->nrows, 1));
	/* a page of few rows says little: no jumps upwards */
	table->limit = Max(Min(Min(rows, table->limit * 2), copy->max_rows), 1);
	if (table->has_letters)
		table->limit = Min(table->limit, LETTERS_ROWS);
}

static CopyPage *
read_page(SnapshotCopy *copy)
{
	CopyChunk  *chunk = copy->reading;
	CopyTable  *table = chunk->table;
	CopyPage   *page;
	bool		at_end;

	if (!copy->sent)
		snapshot_read_send(copy);
	page = make_page(copy, chunk);
	at_end = fill_page(copy, page);
	adapt_limit(copy, table, page);

	if (at_end)
		copy->sent = false;
	if (at_end && copy->rows_seen < copy->rows_asked)
		copy->reading = NULL;
	else
	{
		const MysqlRow *last = &page->rows[page->nrows - 1];

		for (int i = 0; i < table->nkey; i++)
		{
			if (last->values[table->def->ncolumns + i] == NULL)
				ereport(ERROR,
						(errcode(ERRCODE_PROTOCOL_VIOLATION),
						 errmsg("the source sent a NULL in the key of table \"%s.%s\"",
								table->source_schema, table->source_table)));
		}

		/* NULL when the chunk is not ours any more: then the page will not be written either */
		copy->reading = snapshot_plan_cut(copy, chunk, last->values + table->def->ncolumns,
										  last->lengths + table->def->ncolumns);
		if (copy->reading == NULL && copy->sent)
			snapshot_close_session(copy);
	}
	return page;
}

static _Noreturn void
throw_gone(SnapshotCopy *copy, const CopyTable *table)
{
	/* the stream may have still to come to what became of it */
	copy->changed = true;
	ereport(ERROR,
			(errcode(CDC_ERRCODE_TABLE_CHANGED),
			 errmsg("source table \"%s.%s\" changed while it was copied",
					table->source_schema, table->source_table),
			 errdetail("The table is no longer there."),
			 errhint("Let it leave the pipeline with cdc_remove_table(), or use cdc_resync_table() when it is there again.")));
}

/*
 * Does the source table still look as it did, in all that decides how its rows are read? NULL when it does, else what
 * changed.
 */
static char *
what_changed(SnapshotCopy *copy, const CopyTable *table)
{
	CdcTableDef *now = mysql_server_describe(copy->session, copy->info, table->def->schema, table->def->name);

	if (now == NULL)
		throw_gone(copy, table);
	if (now->ncolumns != table->def->ncolumns)
		return psprintf("It had %u columns and has %u now.", table->def->ncolumns, now->ncolumns);
	for (uint32 i = 0; i < now->ncolumns; i++)
	{
		const CdcColumnDef *a = &table->def->columns[i];
		const CdcColumnDef *b = &now->columns[i];

		if (strcmp(a->name, b->name) != 0)
			return psprintf("Column %u was \"%s\" and is \"%s\" now.", i + 1, a->name, b->name);
		if (a->type != b->type || a->key_part != b->key_part || a->collation != b->collation ||
			strcmp(a->type_text ? a->type_text : "", b->type_text ? b->type_text : "") != 0)
			return psprintf("The definition of column \"%s\" changed.", a->name);
	}
	return NULL;
}

static void
throw_changed(SnapshotCopy *copy, const CopyTable *table, const char *why)
{
	copy->changed = true;
	ereport(ERROR,
			(errcode(CDC_ERRCODE_TABLE_CHANGED),
			 errmsg("source table \"%s.%s\" changed while it was copied",
					table->source_schema, table->source_table),
			 errdetail("%s", why),
			 errhint("Make the target fit with ALTER TABLE, or drop it, then use cdc_resync_table() to copy the table anew.")));
}

/* Throws when it is the table's own error. */
void
snapshot_explain_refusal(SnapshotCopy *copy, const CopyTable *table)
{
	char	   *why;

	switch (mysql_session_last_errno(copy->session))
	{
		case 1054:				/* unknown column */
		case 1146:				/* no such table */
		case 1412:				/* table definition has changed */
			why = what_changed(copy, table);
			break;
		default:
			why = NULL;
	}
	if (why != NULL)
		throw_changed(copy, table, why);
}

bool
snapshot_has_changed(SnapshotCopy *copy, const CopyTable *table)
{
	return what_changed(copy, table) != NULL;
}

/*
 * After the last chunk was read: throws when the table is another one than in the beginning. Chunks that were read after
 * the change would have been read by the wrong definition.
 */
void
snapshot_check_unchanged(SnapshotCopy *copy, const CopyTable *table)
{
	char	   *why = what_changed(copy, table);

	if (why != NULL)
		throw_changed(copy, table, why);
}

CopyPage *
snapshot_read_page(SnapshotCopy *copy)
{
	CopyPage   *page;

	copy->at = copy->reading->table;
	copy->asking = true;
	page = read_page(copy);
	copy->asking = false;
	return page;
}
