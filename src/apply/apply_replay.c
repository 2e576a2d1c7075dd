/*-------------------------------------------------------------------------
 *
 * apply_replay.c
 *	  Dead letters applied again, or given up, because somebody asked for it.
 *
 * NOTES
 *	  The ingest worker does it, between two source transactions: it alone writes
 *	  the rows of tables that stream, so a letter has its place in the order of all changes. A request is worked on
 *	  some letters at a time, with the stream going on in between, in the order of
 *	  the letters' numbers, which for a table is that of its changes. Letters of
 *	  tables that are stopped or being copied are left alone.
 *
 *	  A letter becomes a change of the table's definition as it is now, whose
 *	  fields are the values in its images, and goes the way of all changes (apply_row)
 *	  in a subtransaction of its own. What a later change has made moot of it (apply_superseded.c) is not done:
 *
 *	  UPDATE that left the key	old key moot		row written, as an insert
 *	  						new key moot		row removed, as a delete
 *	  columns set since		count as not told: they keep what the row has
 *	  row of a copy			written when no row has its key
 *
 *	  What became of it is written in the same transaction, with how far the request is.
 *	  A worker that ends meanwhile has done nothing of that; if that happens again
 *	  and again at one place, the request is given up.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "apply/apply_private.h"
#include "catalog/catalog_dead_letter.h"
#include "heap/heap_image.h"
#include "util/util_subtransaction.h"
#include "util/util_wait.h"

/* Most letters of one transaction that are tried, resp. looked at; each that is tried takes a subtransaction. */
#define TRIED_MAX 50
#define SEEN_MAX 2000

/* ------------------------------------------------------------- letters -> changes */

/* A letter that is being tried. */
typedef struct Replay
{
	Apply	   *apply;
	ApplyTable *table;
	const CatalogDeadLetter *letter;
	CdcChange	change;
	bool		is_there;		/* a row of a copy whose key has a row already */
} Replay;

/* Does an image lack columns that the target wants, or have one as a difference? */
static bool
lacks_columns(const ApplyTable *table, const CdcField *image)
{
	for (uint32 i = 0; i < table->def->ncolumns; i++)
	{
		if (!table->def->columns[i].is_generated && image[i].state != CDC_FIELD_VALUE && image[i].state != CDC_FIELD_NULL)
			return true;
	}
	return false;
}

/* Only the key columns of an image. */
static CdcField *
key_fields(const ApplyTable *table, const CdcField *image)
{
	CdcField   *fields = palloc0(sizeof(CdcField) * Max(table->def->ncolumns, 1));

	for (uint32 i = 0; i < table->def->ncolumns; i++)
	{
		if (table->def->columns[i].key_part > 0)
			fields[i] = image[i];
	}
	return fields;
}

/* An update that left its key, of which a half is moot: only the other one is done. */
static void
take_half(Replay *replay)
{
	const CatalogDeadLetter *letter = replay->letter;
	CdcChange  *change = &replay->change;
	bytea	   *old_key;
	bytea	   *new_key;

	apply_letter_keys(replay->apply, replay->table, change, &old_key, &new_key);
	if (old_key == NULL || (letter->old_key != NULL && letter->new_key != NULL))
		return;
	if (letter->new_key == NULL)
	{
		change->op = CDC_DELETE;
		change->after = NULL;
		return;
	}
	if (lacks_columns(replay->table, change->after))
		ereport(ERROR,
				(errcode(CDC_ERRCODE_ROW_MISSING),
				 errmsg("the dead letter tells only a part of its row, and the row that it was made of has changed since"),
				 errhint(APPLY_HINT_ANEW)));
	change->op = CDC_INSERT;
	change->before = NULL;
}

static void
make_change(Replay *replay)
{
	const CatalogDeadLetter *letter = replay->letter;
	ApplyTable *table = replay->table;
	CdcChange  *change = &replay->change;

	change->op = strcmp(letter->operation, "update") == 0 ? CDC_UPDATE :
		strcmp(letter->operation, "delete") == 0 ? CDC_DELETE : CDC_INSERT;
	change->table = table->def;
	change->cell = heap_image_to_cell;
	change->cascades_logged = true;
	/* MariaDB's images may stand for a REPLACE that they do not tell; it names all its transactions, in its own way */
	change->by_mariadb = letter->gtid != NULL && strchr(letter->gtid, ':') == NULL;
	if (letter->before != (Datum) 0)
		change->before = heap_image_fields(letter->before, table->def, letter->newer);
	if (letter->after != (Datum) 0)
		change->after = heap_image_fields(letter->after, table->def, letter->newer);
	if (change->op == CDC_INSERT && letter->newer != NIL)
	{
		/* a row is there: somebody else made it, and the source has changed parts of it since */
		change->before = key_fields(table, heap_image_fields(letter->after, table->def, NIL));
		change->op = CDC_UPDATE;
	}
	if (change->op == CDC_UPDATE && table->def->nkey > 0)
		take_half(replay);
}

/* Inside the subtransaction: all that is opened here goes with it. */
static void
replay_letter(void *arg)
{
	Replay	   *replay = arg;
	Apply	   *apply = replay->apply;
	ApplyTable *table = replay->table;
	int64		conflicts = table->delta.conflicts;

	make_change(replay);
	apply_table_lock_target(table);
	table->row = heap_row_open(table->target, table->def, &apply->types);
	table->batch = table->row->target->nkey == 0 ? apply_batch_create(table->row->target) : NULL;
	PushActiveSnapshot(GetTransactionSnapshot());
	if (strcmp(replay->letter->operation, "snapshot") == 0 && replay->change.op == CDC_INSERT)
		replay->is_there = !apply_row_if_absent(apply, table, &replay->change);
	else
		apply_row(apply, table, &replay->change);
	if (table->batch != NULL)
		apply_batch_write(apply, table);
	/* the letter of a row like it may have to be replayed first, which nobody can find by its values */
	if (table->batch != NULL && replay->change.op == CDC_DELETE && table->delta.conflicts > conflicts)
		ereport(ERROR,
				(errcode(CDC_ERRCODE_ROW_MISSING),
				 errmsg("the row that the dead letter deletes is not there"),
				 errhint("Replay the dead letters before it, or use cdc_discard_dead_letters() to give it up.")));
	PopActiveSnapshot();
	heap_row_close(table->row);
}

/* ---------------------------------------------------------------------- one letter */

static ApplyTable *
find_table(const Apply *apply, int32 table_id)
{
	ListCell   *lc;

	foreach(lc, apply->tables)
	{
		ApplyTable *table = lfirst(lc);

		if (table->table_id == table_id)
			return table;
	}
	return NULL;
}

/* Columns of a letter's fields are those of the declared definition. */
static int *
identity(const ApplyTable *table)
{
	int		   *match = palloc(sizeof(int) * Max(table->def->ncolumns, 1));

	for (uint32 i = 0; i < table->def->ncolumns; i++)
		match[i] = (int) i;
	return match;
}

static void
settle(Apply *apply, const CatalogDeadLetter *letter, const CatalogLetterRequest *request,
	   CatalogLetterState state, const char *reason, const UtilErrorInfo *error)
{
	PushActiveSnapshot(GetTransactionSnapshot());
	catalog_dead_letter_settle(letter, state, reason, request->request, error);
	PopActiveSnapshot();
}

static void
try_letter(Apply *apply, const CatalogDeadLetter *letter, CatalogLetterRequest *request)
{
	ApplyTable *table = find_table(apply, letter->table_id);
	Replay		replay = {.apply = apply,.table = table,.letter = letter};
	ApplyTableStats before;
	int		   *match;
	int			row_end;
	ErrorData  *edata;

	if (table == NULL || table->def == NULL || table->state != CATALOG_TABLE_STREAMING)
	{
		request->left_alone++;
		return;
	}
	PushActiveSnapshot(GetTransactionSnapshot());
	apply_letters_look(apply, table);
	PopActiveSnapshot();
	before = table->delta;
	match = table->match;
	row_end = table->row_end;
	table->match = identity(table);
	table->row_end = -1;
	apply->txn_action = letter->action;
	apply->txn_start = letter->position;
	apply->txn_time = letter->changed_at;
	apply->current = table;

	edata = util_subtransaction(replay_letter, &replay, true);
	table->row = NULL;
	table->batch = NULL;
	if (edata == NULL)
	{
		settle(apply, letter, request, replay.is_there ? CATALOG_LETTER_SUPERSEDED : CATALOG_LETTER_REPLAYED,
			   replay.is_there ? "the stream, or somebody else, has written a row with its key" : NULL, NULL);
		if (!replay.is_there)
			apply_letters_supersede(apply, table, &replay.change, letter->id);
		request->settled++;
	}
	else
	{
		table->delta = before;
		if (!heap_error_is_tables_own(edata->sqlerrcode))
			ReThrowError(edata);
		settle(apply, letter, request, CATALOG_LETTER_FAILED, NULL, util_error_info_with_values(edata));
		request->failed++;
	}
	apply->current = NULL;
	table->match = match;
	table->row_end = row_end;
}

/* --------------------------------------------------------------------- one request */

/* Some letters of the request, in the open transaction; it is done when there is none left. */
static void
work(Apply *apply, CatalogLetterRequest *request)
{
	MemoryContext letter_cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc apply letter", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(letter_cxt);
	int			tried = 0;

	for (int seen = 0; seen < SEEN_MAX && tried < TRIED_MAX; seen++)
	{
		CatalogDeadLetter *letter;

		util_check_interrupts();
		MemoryContextReset(letter_cxt);
		cdc_arena_reset(&apply->arena);
		PushActiveSnapshot(GetTransactionSnapshot());
		letter = catalog_dead_letter_next(apply->pipeline_id, request->last_id);
		PopActiveSnapshot();
		if (letter == NULL)
		{
			request->state = CATALOG_LETTER_REQUEST_DONE;
			break;
		}
		request->last_id = letter->id;
		if (!catalog_letter_request_means(request, letter))
			continue;
		if (request->discards)
		{
			settle(apply, letter, request, CATALOG_LETTER_DISCARDED, request->reason, NULL);
			request->settled++;
			continue;
		}
		tried++;
		try_letter(apply, letter, request);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(letter_cxt);
}

static bool
step(Apply *apply)
{
	CatalogLetterRequest *request;

	apply_begin(apply);
	PushActiveSnapshot(GetTransactionSnapshot());
	request = catalog_letter_request_open(apply->pipeline_id);
	PopActiveSnapshot();
	if (request == NULL)
	{
		apply_commit(apply);
		return false;
	}
	if (apply->replaying != request->request)
	{
		apply->replaying = request->request;
		catalog_letter_request_take_up(request);
	}
	else
	{
		work(apply, request);
		request->attempts = 0;
	}
	PushActiveSnapshot(GetTransactionSnapshot());
	catalog_letter_request_worked(request, apply->pipeline_name);
	PopActiveSnapshot();
	apply_commit(apply);
	return true;
}

bool
apply_replay_step(Apply *apply)
{
	MemoryContext caller = MemoryContextSwitchTo(apply->change_cxt);
	CdcPosition start = apply->txn_start;
	CdcGtid		gtid = apply->txn_gtid;
	TimestampTz time = apply->txn_time;
	bool		more;

	Assert(!apply->open && !apply->in_txn);
	/* a stretch that failed is gone through first: what is known of its bad changes goes with the next commit */
	if (apply->careful && apply->careful_left > 0)
	{
		MemoryContextSwitchTo(caller);
		return true;
	}
	MemoryContextReset(apply->change_cxt);
	memset(&apply->txn_gtid, 0, sizeof(apply->txn_gtid));
	more = step(apply);
	apply->txn_start = start;
	apply->txn_gtid = gtid;
	apply->txn_time = time;
	MemoryContextSwitchTo(caller);
	return more;
}
