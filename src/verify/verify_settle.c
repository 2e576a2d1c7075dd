/*-------------------------------------------------------------------------
 *
 * verify_settle.c
 *	  Rows that differ for now: is the stream just behind, or is it a difference?
 *
 * NOTES
 *	  A chunk is compared with what is here a moment later, while both sides
 *	  change. So a row that differs is only a suspect. Suspects are settled
 *	  together, in rounds:
 *
 *	  READ	wait until the source shows all that was applied here when the target
 *			was last looked at (it logs a transaction before it makes it visible);
 *			read the rows there; then read where the log ends: the mark.
 *	  WAIT	until the durable position has passed the mark.
 *	  LOOK	at the rows here, with a snapshot of now; then note the position.
 *
 *	  A row that is equal in LOOK is settled, and so is one that neither side has.
 *	  One that differs is a difference when the target's row is the very same
 *	  version as in the round before (same xmin, same place): the stream has
 *	  passed everything between the two LOOKs and did not touch it, the read
 *	  between them saw the source at a point between them, so no change is under
 *	  way that could explain it. All three "between"s are needed: without the mark
 *	  the stream may not have come to the change yet, without the wait in READ the
 *	  source may not show a change that is applied here, without the version the
 *	  row may have been changed and changed back.
 *
 *	  A row that is missing has no version here: it may come and go between two
 *	  LOOKs. It has to be missing in ABSENT_ROUNDS rounds in a row in which the
 *	  source always gave the same row. So it is with a row that is read by SQL: it has to
 *	  be the same in as many rounds.
 *
 *	  After ROUNDS_MAX rounds the row is reported as unsettled: it changes all the
 *	  time. It never becomes a difference by that.
 *
 *	  Time line of a change that was in flight:
 *	    source: v2 ----------- READ v2, mark ------------------------
 *	    target: v1 -- chunk: v2 is not v1, suspect --- v2 -- LOOK: equal
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "heap/heap_row.h"
#include "util/util_wait.h"
#include "verify/verify_private.h"

/* Suspects that are settled together. */
#define SUSPECTS_MAX 2000
#define SUSPECT_BYTES_MAX (8 * 1024 * 1024)

/* Rounds in a row in which a row has to be missing. */
#define ABSENT_ROUNDS 6

/* After so many a row is unsettled. */
#define ROUNDS_MAX 60

/* Looks at a source that does not show yet what it logged, until the round counts for nothing. */
#define SHOW_TRIES 200

#define NAP_MS 25

void
verify_suspect_add(Verify *verify, VerifyTarget *target, const MysqlRow *row)
{
	VerifyWork *work = verify->work;
	MemoryContext old = MemoryContextSwitchTo(work->suspect_cxt);
	VerifySuspect *suspect;

	if (work->suspects == NULL)
	{
		work->max_suspects = SUSPECTS_MAX;
		work->suspects = palloc(sizeof(VerifySuspect) * work->max_suspects);
	}
	else if (work->nsuspects == work->max_suspects)
	{
		work->max_suspects *= 2;
		work->suspects = repalloc_huge(work->suspects, sizeof(VerifySuspect) * work->max_suspects);
	}
	suspect = &work->suspects[work->nsuspects];
	memset(suspect, 0, sizeof(VerifySuspect));
	if (row != NULL)
	{
		suspect->condition = verify_source_condition(verify, row);
		suspect->key = verify_target_key_taken(target);
	}
	else
	{
		suspect->condition = verify_target_condition(verify, target);
		suspect->key = verify_target_key_slot(target);
		suspect->from_scan = true;
	}
	suspect->row_bytes = row != NULL ? 0 : work->row_bytes;
	for (int i = 0; row != NULL && i < (int) work->def->ncolumns; i++)
		suspect->row_bytes += row->values[i] != NULL ? row->lengths[i] : 0;
	/* of some rows only a part was read */
	suspect->row_bytes = Max(suspect->row_bytes, work->def->avg_row_length);
	work->nsuspects++;
	work->suspect_bytes += strlen(suspect->condition) * 2 + 100;
	MemoryContextSwitchTo(old);
}

bool
verify_suspects_full(const VerifyWork *work)
{
	return work->nsuspects >= SUSPECTS_MAX || work->suspect_bytes >= SUSPECT_BYTES_MAX;
}

bool
verify_stream_passed(Verify *verify, const CdcPosition *mark)
{
	CatalogPosition *durable;
	bool		passed;
	int			order;

	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	durable = catalog_position_load(verify->pipeline_id, true);
	/* the mark stands in the log of the server that we read from */
	if (durable != NULL && strcmp(durable->identity, verify->identity) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("pipeline \"%s\" went on at another server while its tables were compared", verify->pipeline_name),
				 errdetail("The comparison began on server \"%s\"; the pipeline follows server \"%s\".",
						   verify->identity, durable->identity)));
	passed = durable != NULL && cdc_position_is_known(&durable->position) &&
		cdc_position_compare(&durable->position, mark, &order) && order >= 0;
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(verify->step_cxt);

	if (!passed)
		(void) util_wait(PGINVALID_SOCKET, NAP_MS, UTIL_WAIT_VERIFY);
	return passed;
}

/* ------------------------------------------------------------------- a verdict */

/* Count a difference, and keep its key. */
static void
report(Verify *verify, VerifyTarget *target, const VerifySuspect *suspect, const char *kind, List *columns, int64 rows)
{
	CatalogVerifyTable *result = &verify->work->result;
	CatalogVerifyDifference difference = {
		.pipeline_id = result->pipeline_id,
		.request = result->request,
		.table_id = result->table_id,
		.kind = kind,
		.columns = columns,
		.rows = rows,
	};

	if (verify->work->listed >= VERIFY_DIFFERENCES_KEPT)
		return;
	difference.number = ++verify->work->listed;
	difference.key = verify_target_key_text(target, suspect->key);
	catalog_verify_difference_insert(&difference);
}

/*
 * What does this round say about a suspect? is_taken: the source's row is the
 * one that was taken into target->values; row is its text.
 */
static void
judge(Verify *verify, VerifyTarget *target, VerifySuspect *suspect, const MysqlRow *row)
{
	VerifyWork *work = verify->work;
	CatalogVerifyTable *result = &work->result;
	int			nfound = verify_target_find(target, suspect->key);
	bool		found = nfound > 0;
	uint64		hash = row != NULL ? verify_source_row_hash(work, row) : 0;
	bool		is_null;
	TransactionId xmin = InvalidTransactionId;
	uint64		target_hash = 0;
	bool		same_version;
	bool		has_version = found && target->sql == NULL;

	if (row != NULL && suspect->from_scan)
		suspect->is_settled = true;		/* it came to the source while the table was read */
	else if (row != NULL && found)
		suspect->is_settled = nfound == 1 && verify_target_is_equal(target);
	else
		suspect->is_settled = row == NULL && !found;
	if (suspect->is_settled)
		return;

	if (found && !has_version)
		target_hash = verify_target_hash_slot_row(target);
	if (has_version)
		xmin = DatumGetTransactionId(slot_getsysattr(target->stored, MinTransactionIdAttributeNumber, &is_null));
	same_version = suspect->target_known && work->is_sure && suspect->target_found == found &&
		suspect->target_hash == target_hash &&
		(!has_version || (suspect->target_xmin == xmin && ItemPointerEquals(&suspect->target_tid, &target->stored->tts_tid)));
	if (same_version && (has_version || (suspect->source_known && suspect->source_hash == hash)))
		suspect->confirmed++;
	else
		suspect->confirmed = 0;
	suspect->target_known = suspect->source_known = true;
	suspect->target_found = found;
	suspect->target_xmin = xmin;
	suspect->target_hash = target_hash;
	if (has_version)
		suspect->target_tid = target->stored->tts_tid;
	suspect->source_hash = hash;
	suspect->rounds++;

	if (suspect->confirmed >= (has_version ? 1 : ABSENT_ROUNDS))
	{
		suspect->is_settled = true;
		if (nfound > 1)
		{
			int64		more = row != NULL ? nfound - 1 : nfound;

			result->extra += more;
			report(verify, target, suspect, "extra", NIL, more);
		}
		else if (found && row != NULL)
		{
			result->different++;
			report(verify, target, suspect, "different", verify_target_differing(target), 1);
		}
		else if (found)
		{
			result->extra++;
			report(verify, target, suspect, "extra", NIL, 1);
		}
		else
		{
			result->missing++;
			report(verify, target, suspect, "missing", NIL, 1);
		}
	}
	else if (suspect->rounds >= ROUNDS_MAX)
	{
		suspect->is_settled = true;
		result->unsettled++;
	}
}

/* By SQL: fetch the rows of all suspects that were asked for. */
static void
fetch_suspects(const VerifyWork *work, VerifyTarget *target)
{
	Datum	  **keys = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Datum *) * work->nsuspects);
	int			n = 0;

	for (int i = 0; i < work->nsuspects; i++)
	{
		if (work->suspects[i].was_asked)
			keys[n++] = work->suspects[i].key;
	}
	verify_sql_fetch(target, keys, n);
}

/* Judge all suspects that were asked for in this round. */
static void
judge_all(Verify *verify, VerifyTarget *target)
{
	VerifyWork *work = verify->work;
	MemoryContext row_cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc verify row", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;

	if (target->sql != NULL)
		fetch_suspects(work, target);
	old = MemoryContextSwitchTo(row_cxt);
	for (int i = 0; i < work->nanswers; i++)
	{
		VerifyAnswer *answer = &work->answers[i];
		bool		is_in;

		util_check_interrupts();
		MemoryContextReset(row_cxt);
		is_in = verify_target_take(verify, target, &answer->row, NULL);
		/* a row whose key only the collation takes for one that we asked for is nobody's */
		for (int j = answer->first; j < answer->end; j++)
		{
			VerifySuspect *suspect = &work->suspects[j];

			if (!suspect->was_asked || !verify_target_same_key(target, suspect->key))
				continue;
			judge(verify, target, suspect, is_in ? &answer->row : NULL);
			suspect->was_asked = false;
		}
	}
	for (int j = 0; j < work->nsuspects; j++)
	{
		util_check_interrupts();
		MemoryContextReset(row_cxt);
		if (work->suspects[j].was_asked)
			judge(verify, target, &work->suspects[j], NULL);
		work->suspects[j].was_asked = false;
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(row_cxt);
}

/* ----------------------------------------------------------------------- rounds */

bool
verify_source_is_shown(Verify *verify)
{
	VerifyWork *work = verify->work;

	work->is_sure = true;
	if (work->looked_at != NULL && !verify_source_shows(verify, work->looked_at))
	{
		if (++work->tries < SHOW_TRIES)
		{
			(void) util_wait(PGINVALID_SOCKET, NAP_MS, UTIL_WAIT_VERIFY);
			return false;
		}
		work->is_sure = false;
	}
	work->tries = 0;
	return true;
}

/* READ: see NOTES. */
static void
settle_read(Verify *verify)
{
	VerifyWork *work = verify->work;

	if (!verify_source_is_shown(verify))
		return;
	verify_source_suspects(verify);
	mysql_server_log_position(verify->session, verify->info, &work->mark);
	work->settle = VERIFY_SETTLE_WAIT;
}

/*
 * LOOK: see NOTES. A table that stops leaves its rows as they were: that is
 * asked after the position was read, and makes this look count for nothing.
 */
static void
settle_look(Verify *verify)
{
	VerifyWork *work = verify->work;
	CatalogVerifyTable before = work->result;
	int64		listed_before = work->listed;
	MemoryContext old;
	char	   *why = NULL;		/* outlives the transaction */
	bool		valid;

	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	old = MemoryContextSwitchTo(verify->step_cxt);
	valid = verify_still_valid(verify, &why);
	MemoryContextSwitchTo(old);
	if (valid)
	{
		VerifyTarget *target = verify_target_open(verify);

		judge_all(verify, target);
		verify_target_close(target);

		work->answers = NULL;
		work->nanswers = 0;
		MemoryContextReset(work->round_cxt);
		old = MemoryContextSwitchTo(work->round_cxt);
		work->looked_at = catalog_position_load(verify->pipeline_id, true);
		MemoryContextSwitchTo(old);
		old = MemoryContextSwitchTo(verify->step_cxt);
		valid = verify_still_valid(verify, &why);
		MemoryContextSwitchTo(old);
	}
	PopActiveSnapshot();
	if (valid)
		CommitTransactionCommand();
	else
	{
		AbortCurrentTransaction();
		work->result = before;
		work->listed = listed_before;
	}
	MemoryContextSwitchTo(verify->step_cxt);

	if (valid)
		work->settle = VERIFY_SETTLE_READ;
	else
		verify_leave_table(verify, why);
}

/* Throw away what is settled; true when something is left. */
static bool
compact(VerifyWork *work)
{
	int			n = 0;

	for (int i = 0; i < work->nsuspects; i++)
	{
		if (!work->suspects[i].is_settled)
			work->suspects[n++] = work->suspects[i];
	}
	work->nsuspects = n;
	if (n > 0)
		return true;
	work->suspects = NULL;
	work->suspect_bytes = 0;
	MemoryContextReset(work->suspect_cxt);
	MemoryContextReset(work->round_cxt);
	work->answers = NULL;
	work->looked_at = NULL;
	work->settle = VERIFY_SETTLE_IDLE;
	return false;
}

bool
verify_settle_step(Verify *verify)
{
	VerifyWork *work = verify->work;

	switch (work->settle)
	{
		case VERIFY_SETTLE_IDLE:
			if (work->nsuspects == 0)
				return false;
			work->looked_at = NULL;
			work->tries = 0;
			work->settle = VERIFY_SETTLE_READ;
			return true;
		case VERIFY_SETTLE_READ:
			settle_read(verify);
			return true;
		case VERIFY_SETTLE_WAIT:
			if (verify_stream_passed(verify, &work->mark))
				work->settle = VERIFY_SETTLE_LOOK;
			return true;
		case VERIFY_SETTLE_LOOK:
			settle_look(verify);
			return verify->work != NULL ? compact(work) : true;
	}
	return false;
}
