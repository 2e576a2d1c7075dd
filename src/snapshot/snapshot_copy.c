/*-------------------------------------------------------------------------
 *
 * snapshot_copy.c
 *	  Copies tables chunk by chunk, while the stream applies their changes.
 *
 * NOTES
 *	  One chunk: read one page in key order into memory, with no transaction
 *	  open here and no lock there; then, in one transaction:
 *
 *	  1. take the table's ShareLock, which keeps the stream off this table;
 *	  2. with snapshots taken from now on, check that the table is still in
 *	     SNAPSHOT, of the same generation, and that this chunk is the next one;
 *	  3. write every row whose key is neither in the target nor in
 *	     snapshot_deleted: those that are there the stream brought, or removed,
 *	     and the stream is newer or the same;
 *	  4. write the chunk's ledger row, commit.
 *
 *	  A snapshot taken before the lock would miss what the stream committed while
 *	  we waited, and bring a removed row back.
 *
 *	  The memory of a chunk is bounded: reading stops after CHUNK_MAX_BYTES, the
 *	  last complete row then bounds the chunk, and the next page's LIMIT is what
 *	  fitted. A single row is taken whatever its size.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "catalog/catalog_lock.h"
#include "chunk/chunk.h"
#include "heap/heap_row.h"
#include "mysql/mysql_text.h"
#include "snapshot/snapshot.h"
#include "util/util_arena.h"
#include "util/util_wait.h"

/* Most bytes of row text that one chunk holds. */
#define CHUNK_MAX_BYTES (16 * 1024 * 1024)

/* The first page of a table; later ones adapt to what rows turn out to be. */
#define CHUNK_FIRST_BYTES (4 * 1024 * 1024)

/* How soon the source is asked again whether it shows what lies before a table's join position. */
#define JOIN_POLL_MS 50

/* One row in memory: lengths of its values, then the values with a NUL after each. */
typedef struct ChunkRow
{
	const char **values;		/* NULL: SQL NULL */
	uint32	   *lengths;
} ChunkRow;

/* A page that was read. */
typedef struct Chunk
{
	MemoryContext cxt;
	ChunkRow   *rows;
	int			nrows;
	int64		bytes;
	bool		is_last;		/* nothing behind it */
} Chunk;

/* The table that is being copied. */
typedef struct CopyTable
{
	MemoryContext cxt;
	int32		table_id;
	int32		generation;
	Oid			target;
	char	   *source_schema;
	char	   *source_table;
	CdcTableDef *def;
	int		   *key;			/* columns of the key, in its order */
	int			nkey;
	int32		chunk_no;		/* of the newest chunk in the ledger; 0: none */
	ChunkKey   *after;			/* its upper key; NULL: none */
	int64		rows_total;
	uint64		limit;			/* of the next page */
	bool		all_read;		/* the newest chunk was the last one */
} CopyTable;

struct SnapshotCopy
{
	MemoryContext cxt;
	MemoryContext step_cxt;		/* reset at each step */
	MemoryContext session_cxt;	/* the session's; a failed one goes with it */
	int32		pipeline_id;
	char	   *pipeline_name;
	const MysqlEndpoint *endpoint;
	char	   *identity;
	uint64		max_rows;
	SchemaTypeOptions types;
	SnapshotPublish publish;
	void	   *publish_arg;
	MysqlSession *session;
	MysqlServerInfo *info;
	CopyTable  *table;			/* NULL: to be chosen */
	bool		reading;		/* the source is being asked */
	int64		row_no;			/* in the chunk, for error contexts; 0: none */
	HeapRow    *row;			/* open while a chunk is written */
	CdcArena	arena;
};

SnapshotCopy *
snapshot_create(const CatalogPipeline *pipeline, const MysqlEndpoint *endpoint, const char *identity,
				SnapshotPublish publish, void *publish_arg)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc snapshot", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	SnapshotCopy *copy = palloc0(sizeof(SnapshotCopy));

	copy->cxt = cxt;
	copy->step_cxt = AllocSetContextCreate(cxt, "cdc snapshot step", ALLOCSET_DEFAULT_SIZES);
	copy->session_cxt = AllocSetContextCreate(cxt, "cdc snapshot session", ALLOCSET_DEFAULT_SIZES);
	copy->pipeline_id = pipeline->id;
	copy->pipeline_name = pstrdup(pipeline->name);
	copy->endpoint = endpoint;
	copy->identity = pstrdup(identity);
	copy->max_rows = util_option_int(&catalog_pipeline_options, "snapshot_chunk_rows",
									 catalog_pipeline_option(pipeline, "snapshot_chunk_rows"));
	schema_options_read(pipeline, &copy->types);
	copy->publish = publish;
	copy->publish_arg = publish_arg;
	cdc_arena_init(&copy->arena,
				   util_context_allocator(AllocSetContextCreate(cxt, "cdc snapshot values",
																ALLOCSET_DEFAULT_SIZES)), 0);
	MemoryContextSwitchTo(old);
	return copy;
}

void
snapshot_destroy(SnapshotCopy *copy)
{
	mysql_session_close(copy->session);
	MemoryContextDelete(copy->cxt);
}

/* Connect if there is no connection; it must be the server that the stream reads from. */
static void
open_session(SnapshotCopy *copy)
{
	MemoryContext old;

	if (copy->session != NULL)
		return;

	MemoryContextReset(copy->session_cxt);
	old = MemoryContextSwitchTo(copy->session_cxt);
	copy->session = mysql_session_open(copy->endpoint);
	copy->info = mysql_server_info(copy->session);
	MemoryContextSwitchTo(old);

	if (strcmp(copy->info->identity, copy->identity) != 0)
		ereport(ERROR,
				(errcode(CDC_ERRCODE_SOURCE_REPLACED),
				 errmsg("another source server answers for pipeline \"%s\"", copy->pipeline_name),
				 errdetail("The pipeline began on server \"%s\"; this one is \"%s\".",
						   copy->identity, copy->info->identity),
				 errhint("Let the server's address lead to the former server again, or use cdc_drop_pipeline() and cdc_start_pipeline() to begin anew.")));
}

/* ------------------------------------------------------------ choosing a table */

static ChunkKey *
copy_key(int nkey, char *const *values, const uint32 *lengths)
{
	ChunkKey   *key = palloc0(sizeof(ChunkKey));

	key->nkey = nkey;
	key->values = palloc(sizeof(char *) * nkey);
	key->lengths = palloc(sizeof(uint32) * nkey);
	for (int i = 0; i < nkey; i++)
	{
		key->lengths[i] = lengths ? lengths[i] : (uint32) strlen(values[i]);
		key->values[i] = pnstrdup(values[i], key->lengths[i]);
	}
	return key;
}

static void
forget_table(SnapshotCopy *copy)
{
	if (copy->table != NULL)
		MemoryContextDelete(copy->table->cxt);
	copy->table = NULL;
}

/* Rows that fit into the first page, by the source's own estimate. */
static uint64
first_limit(const SnapshotCopy *copy, const CdcTableDef *def)
{
	uint64		rows = CHUNK_FIRST_BYTES / Max(def->avg_row_length, 1);

	return Max(Min(rows, copy->max_rows), Min(copy->max_rows, 100));
}

/* What a table's declared definition says about copying it; copy->table is set. Throws when there is none. */
static void
take_definition(SnapshotCopy *copy, Datum definition)
{
	CopyTable  *table = copy->table;

	if (definition == (Datum) 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("definition of source table \"%s.%s\" is missing",
						table->source_schema, table->source_table),
				 errdetail("The table's row in cdc_bridge.table_state has none."),
				 errhint("Use cdc_resync_table() to copy the table anew.")));

	table->def = schema_def_from_jsonb(definition);
	table->nkey = (int) table->def->nkey;
	table->key = palloc0(sizeof(int) * Max(table->nkey, 1));
	for (uint32 i = 0; i < table->def->ncolumns; i++)
	{
		uint16		part = table->def->columns[i].key_part;

		if (part >= 1 && part <= table->nkey)
			table->key[part - 1] = (int) i;
	}
	table->limit = first_limit(copy, table->def);
}

/* Take up the first table in SNAPSHOT, where the ledger says; false when there is none. */
static bool
choose_table(SnapshotCopy *copy)
{
	ListCell   *lc;

	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());

	foreach(lc, catalog_table_list(copy->pipeline_id))
	{
		const CatalogTable *from = lfirst(lc);
		MemoryContext cxt;
		MemoryContext old;
		CatalogChunk *last;
		CopyTable  *table;

		/* one that joined a running stream may have to wait, see snapshot_join.c */
		if (from->state != CATALOG_TABLE_SNAPSHOT || !from->chunks_allowed)
			continue;

		cxt = AllocSetContextCreate(copy->cxt, "cdc snapshot table", ALLOCSET_DEFAULT_SIZES);
		old = MemoryContextSwitchTo(cxt);
		table = palloc0(sizeof(CopyTable));
		table->cxt = cxt;
		copy->table = table;
		table->table_id = from->table_id;
		table->generation = from->generation;
		table->target = from->target;
		table->source_schema = pstrdup(from->source_schema);
		table->source_table = pstrdup(from->source_table);
		take_definition(copy, from->definition);

		last = catalog_chunk_last(copy->pipeline_id, table->table_id, table->generation, &table->rows_total);
		if (last != NULL)
		{
			table->chunk_no = last->chunk_no;
			table->after = copy_key(last->nkey, last->upper, NULL);
		}
		MemoryContextSwitchTo(old);
		break;
	}

	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(copy->step_cxt);
	return copy->table != NULL;
}

/* ------------------------------------------------------------- reading a chunk */

/* Copy a row of the session's into the chunk. */
static void
keep_row(Chunk *chunk, const MysqlRow *row)
{
	ChunkRow   *to = &chunk->rows[chunk->nrows++];
	Size		size = (sizeof(char *) + sizeof(uint32)) * row->nfields;
	char	   *p;

	for (int i = 0; i < row->nfields; i++)
	{
		if (row->values[i] != NULL)
			size += row->lengths[i] + 1;
	}

	p = MemoryContextAllocHuge(chunk->cxt, size);
	to->values = (const char **) p;
	p += sizeof(char *) * row->nfields;
	to->lengths = (uint32 *) p;
	p += sizeof(uint32) * row->nfields;
	for (int i = 0; i < row->nfields; i++)
	{
		to->values[i] = NULL;
		to->lengths[i] = row->lengths[i];
		if (row->values[i] != NULL)
		{
			memcpy(p, row->values[i], row->lengths[i]);
			p[row->lengths[i]] = '\0';
			to->values[i] = p;
			p += row->lengths[i] + 1;
		}
	}
	chunk->bytes += size;
}

/* Read the next page of the table. Adapts the limit of the page after it. */
static Chunk *
read_chunk(SnapshotCopy *copy)
{
	CopyTable  *table = copy->table;
	Chunk	   *chunk = palloc0(sizeof(Chunk));
	int			nfields = (int) table->def->ncolumns + table->nkey;
	bool		cut = false;
	MysqlRow	row;

	chunk->cxt = copy->step_cxt;
	chunk->rows = MemoryContextAllocHuge(chunk->cxt, sizeof(ChunkRow) * table->limit);

	mysql_session_query(copy->session,
						chunk_page_query(table->def, table->key, table->nkey, copy->info->flavor,
										 table->after, table->limit));
	while (mysql_session_fetch(copy->session, &row))
	{
		if (row.nfields != nfields)
		{
			mysql_session_drain(copy->session);
			ereport(ERROR,
					(errcode(CDC_ERRCODE_TABLE_CHANGED),
					 errmsg("source table \"%s.%s\" has other columns than before",
							table->source_schema, table->source_table)));
		}
		if ((uint64) chunk->nrows == table->limit)
			ereport(ERROR,
					(errcode(ERRCODE_PROTOCOL_VIOLATION),
					 errmsg("the source sent more rows of table \"%s.%s\" than were asked for",
							table->source_schema, table->source_table)));

		keep_row(chunk, &row);
		if (chunk->bytes >= CHUNK_MAX_BYTES && (uint64) chunk->nrows < table->limit)
		{
			cut = true;
			break;
		}
	}
	if (cut)
		mysql_session_drain(copy->session);

	chunk->is_last = !cut && (uint64) chunk->nrows < table->limit;
	if (cut)
		table->limit = chunk->nrows;
	else if (chunk->bytes < CHUNK_MAX_BYTES / 4)
		table->limit = Min(table->limit * 2, copy->max_rows);
	return chunk;
}

/* Does the source table still look as it did? NULL when it does, else what changed. */
static char *
what_changed(SnapshotCopy *copy)
{
	CopyTable  *table = copy->table;
	CdcTableDef *now = mysql_server_describe(copy->session, copy->info, table->def->schema, table->def->name);

	if (now == NULL)
		return pstrdup("The table is no longer there.");
	if (now->ncolumns != table->def->ncolumns)
		return psprintf("It had %u columns and has %u now.", table->def->ncolumns, now->ncolumns);
	for (uint32 i = 0; i < now->ncolumns; i++)
	{
		const CdcColumnDef *a = &table->def->columns[i];
		const CdcColumnDef *b = &now->columns[i];

		if (strcmp(a->name, b->name) != 0)
			return psprintf("Column %u was \"%s\" and is \"%s\" now.", i + 1, a->name, b->name);
		if (a->type != b->type || a->key_part != b->key_part ||
			strcmp(a->type_text ? a->type_text : "", b->type_text ? b->type_text : "") != 0)
			return psprintf("The definition of column \"%s\" changed.", a->name);
	}
	return NULL;
}

/*
 * Read a chunk; a query that the server refuses is an error of the table when
 * the table's definition is no longer the one that we know.
 */
static Chunk *
read_chunk_checked(SnapshotCopy *copy)
{
	CopyTable  *table = copy->table;
	Chunk	   *volatile chunk = NULL;

	PG_TRY();
	{
		chunk = read_chunk(copy);
	}
	PG_CATCH();
	{
		ErrorData  *edata;
		char	   *why;

		MemoryContextSwitchTo(copy->step_cxt);
		edata = CopyErrorData();
		FlushErrorState();

		/* asking is possible only after a query that the server refused */
		switch (mysql_session_last_errno(copy->session))
		{
			case 1054:			/* unknown column */
			case 1146:			/* no such table */
			case 1412:			/* table definition has changed */
				why = what_changed(copy);
				break;
			default:
				why = NULL;
		}
		if (why != NULL)
			ereport(ERROR,
					(errcode(CDC_ERRCODE_TABLE_CHANGED),
					 errmsg("source table \"%s.%s\" changed while it was copied",
							table->source_schema, table->source_table),
					 errdetail("%s", why)));
		ReThrowError(edata);
	}
	PG_END_TRY();
	return chunk;
}

/* ------------------------------------------------------------- writing a chunk */

/* Frame of the error context while rows are written; never shows a value. */
static void
copy_error_context(void *arg)
{
	SnapshotCopy *copy = arg;
	const CopyTable *table = copy->table;

	if (copy->row != NULL && copy->row->current != NULL)
		errcontext("snapshot of pipeline \"%s\", table \"%s.%s\", column \"%s\", chunk %d, row " INT64_FORMAT,
				   copy->pipeline_name, table->source_schema, table->source_table,
				   copy->row->current->name, table->chunk_no + 1, copy->row_no);
	else
		errcontext("snapshot of pipeline \"%s\", table \"%s.%s\", chunk %d, row " INT64_FORMAT,
				   copy->pipeline_name, table->source_schema, table->source_table,
				   table->chunk_no + 1, copy->row_no);
}

/* Turn a row's text into the target's slot. */
static void
fill_row(SnapshotCopy *copy, HeapRow *row, const ChunkRow *from)
{
	const CdcTableDef *def = copy->table->def;

	cdc_arena_reset(&copy->arena);
	heap_target_clear(row->target->slot);
	for (uint32 i = 0; i < def->ncolumns; i++)
	{
		CdcCell		cell;
		CdcError	err = {0};

		if (row->table->columns[i].attnum <= 0)
			continue;
		if (mysql_text_to_cell(&def->columns[i], from->values[i], from->lengths[i],
							   &copy->arena, &cell, &err) != CDC_OK)
			heap_row_bad_cell(&def->columns[i], &err);
		heap_row_set(row, i, &cell);
	}
	heap_row_search_new(row);
}

/* Under the lock: is the table still being copied, and is this chunk the next one? */
static bool
chunk_is_due(const SnapshotCopy *copy)
{
	const CopyTable *table = copy->table;
	CatalogTable *now = catalog_table_by_id(copy->pipeline_id, table->table_id);
	CatalogChunk *last;
	int64		rows_total;

	if (now == NULL || now->state != CATALOG_TABLE_SNAPSHOT || now->generation != table->generation)
		return false;
	last = catalog_chunk_last(copy->pipeline_id, table->table_id, table->generation, &rows_total);
	return (last != NULL ? last->chunk_no : 0) == table->chunk_no;
}

/* Returns how many values of the rows that were written a policy changed. */
static int64
insert_rows(SnapshotCopy *copy, const Chunk *chunk)
{
	CopyTable  *table = copy->table;
	bool		any_deleted = catalog_deleted_any(copy->pipeline_id, table->table_id);
	MemoryContext row_cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc snapshot row",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;
	HeapRow    *row;
	int64		replaced = 0;

	row = heap_row_open(table->target, table->def, &copy->types.policies);
	copy->row = row;
	old = MemoryContextSwitchTo(row_cxt);

	for (int i = 0; i < chunk->nrows; i++)
	{
		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(row_cxt);
		copy->row_no = i + 1;

		(void) heap_row_take_replaced(row);		/* of a row that was left out */
		fill_row(copy, row, &chunk->rows[i]);
		if (heap_target_exists(row->target))
			continue;
		if (any_deleted &&
			catalog_deleted_exists(copy->pipeline_id, table->table_id,
								   chunk_key_bytes(row->target, row->target->search)))
			continue;
		heap_target_insert(row->target);
		replaced += heap_row_take_replaced(row);
	}

	MemoryContextSwitchTo(old);
	copy->row = NULL;
	heap_row_close(row);
	MemoryContextDelete(row_cxt);
	return replaced;
}

/* Write a chunk with its ledger row in one transaction; forgets the table when the chunk is not due. */
static void
write_chunk(SnapshotCopy *copy, const Chunk *chunk)
{
	CopyTable  *table = copy->table;
	const ChunkRow *last = &chunk->rows[chunk->nrows - 1];
	MemoryContext old = CurrentMemoryContext;
	ErrorContextCallback frame = {.previous = error_context_stack,.callback = copy_error_context,.arg = copy};
	ChunkKey   *upper;
	int64		replaced = 0;
	bool		due;

	old = MemoryContextSwitchTo(table->cxt);
	upper = copy_key(table->nkey, (char *const *) &last->values[table->def->ncolumns],
					 &last->lengths[table->def->ncolumns]);
	MemoryContextSwitchTo(old);

	error_context_stack = &frame;
	heap_transaction_begin();
	catalog_lock_table(copy->pipeline_id, table->table_id, ShareLock);

	/* every snapshot from here on is newer than the lock */
	PushActiveSnapshot(GetTransactionSnapshot());
	due = chunk_is_due(copy);
	if (due)
	{
		CatalogChunk ledger = {
			.pipeline_id = copy->pipeline_id,
			.table_id = table->table_id,
			.generation = table->generation,
			.chunk_no = table->chunk_no + 1,
			.nkey = upper->nkey,
			.upper = upper->values,
			.rows = chunk->nrows,
			.bytes = chunk->bytes,
		};

		replaced = insert_rows(copy, chunk);
		catalog_chunk_insert(&ledger);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	error_context_stack = frame.previous;
	MemoryContextSwitchTo(old);
	pgstat_report_stat(false);
	if (replaced > 0)
		copy->publish(copy->publish_arg, table->table_id, replaced);

	if (!due)
	{
		forget_table(copy);
		return;
	}
	if (table->after != NULL)
	{
		for (int i = 0; i < table->nkey; i++)
			pfree(table->after->values[i]);
		pfree(table->after->values);
		pfree(table->after->lengths);
		pfree(table->after);
	}
	table->after = upper;
	table->chunk_no++;
	table->rows_total += chunk->nrows;
	table->all_read = chunk->is_last;
}

/* All chunks were read and written: what the log holds now is the high mark. */
static void
finish_table(SnapshotCopy *copy)
{
	CopyTable  *table = copy->table;
	CdcPosition mark;
	bool		done;

	mysql_server_log_position(copy->session, copy->info, &mark);

	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	done = catalog_table_set_catchup(copy->pipeline_id, table->table_id, table->generation,
									 &mark, table->rows_total);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(copy->step_cxt);

	if (done)
		ereport(LOG,
				(errmsg("snapshot of table \"%s.%s\" is complete", table->source_schema, table->source_table),
				 errdetail("It read " INT64_FORMAT " rows in %d chunks; the stream has to pass %s:" UINT64_FORMAT ".",
						   table->rows_total, table->chunk_no, mark.file, (uint64) mark.offset)));
	forget_table(copy);
}

/* ------------------------------------------------------------------- one step */

/* Stop the current table for an error that is its own, in a transaction of its own. */
static void
stop_table(SnapshotCopy *copy, ErrorData *edata)
{
	CopyTable  *table = copy->table;
	UtilErrorInfo *info = util_error_info(edata);
	CatalogTable *now;
	bool		is_ours;

	/* "Key (id)=(5) already exists" and "Failing row contains ..." would show values */
	if (ERRCODE_TO_CATEGORY(info->sqlstate) == ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION)
		info->detail = NULL;
	if (info->hint == NULL)
		info->hint = "Mend the cause, then use cdc_resync_table() to copy the table anew.";

	heap_transaction_begin();
	catalog_lock_table(copy->pipeline_id, table->table_id, ShareLock);
	PushActiveSnapshot(GetTransactionSnapshot());
	/* it may have begun anew, or left, since */
	now = catalog_table_by_id(copy->pipeline_id, table->table_id);
	is_ours = now != NULL && now->generation == table->generation;
	if (is_ours)
		catalog_table_set_stopped(copy->pipeline_id, table->table_id, NULL, info);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(copy->step_cxt);

	if (is_ours)
		ereport(LOG,
				(errcode(info->sqlstate),
				 errmsg("source table \"%s.%s\" of pipeline \"%s\" is stopped: %s",
						table->source_schema, table->source_table, copy->pipeline_name, info->message),
				 info->detail ? errdetail("%s", info->detail) : 0,
				 errhint("%s", info->hint),
				 info->context ? errcontext("%s", info->context) : 0));
	forget_table(copy);
}

static void
copy_step(SnapshotCopy *copy)
{
	open_session(copy);
	if (!copy->table->all_read)
	{
		Chunk	   *chunk;

		copy->reading = true;
		chunk = read_chunk_checked(copy);
		copy->reading = false;
		if (chunk->nrows > 0)
		{
			write_chunk(copy, chunk);
			return;
		}
	}
	finish_table(copy);
}

/* No table can be copied now: some may wait for the source to show what lies before they joined. */
static bool
await_joined(SnapshotCopy *copy)
{
	List	   *waiting = snapshot_join_waiting(copy->pipeline_id);

	if (waiting == NIL)
		return false;
	open_session(copy);
	if (!snapshot_join_allow(copy->pipeline_id, waiting, copy->session, copy->info))
		(void) util_wait(PGINVALID_SOCKET, JOIN_POLL_MS, UTIL_WAIT_SOURCE_READ);
	return true;
}

bool
snapshot_step(SnapshotCopy *copy)
{
	MemoryContext caller = MemoryContextSwitchTo(copy->step_cxt);
	volatile bool found = true;

	MemoryContextReset(copy->step_cxt);
	PG_TRY();
	{
		if (copy->table != NULL || choose_table(copy))
			copy_step(copy);
		else
			found = await_joined(copy);
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(copy->step_cxt);
		edata = CopyErrorData();
		if (copy->table == NULL || !heap_error_is_tables_own(edata->sqlerrcode))
			PG_RE_THROW();
		/* a grant that is missing on the source can be mended without losing the table */
		if (copy->reading && edata->sqlerrcode == ERRCODE_INSUFFICIENT_PRIVILEGE)
			PG_RE_THROW();
		copy->reading = false;

		FlushErrorState();
		AbortOutOfAnyTransaction();
		MemoryContextSwitchTo(copy->step_cxt);
		copy->row = NULL;
		stop_table(copy, edata);
	}
	PG_END_TRY();

	MemoryContextSwitchTo(caller);
	return found;
}
