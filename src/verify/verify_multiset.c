/*-------------------------------------------------------------------------
 *
 * verify_multiset.c
 *	  Phase MULTISET: tables without a key.
 *
 * NOTES
 *	  Such a table is a multiset of rows: for each distinct row both sides have to have
 *	  it equally often. Nothing finds a row but reading the table, so the whole of
 *	  it is read each time, in one statement of the source and with one snapshot here.
 *
 *	  1. Where all columns print alike, and the table is not large, both servers count
 *		 the rows and add up a number of each (mysql_sum.h). Equal: that was all.
 *	  2. All rows of both sides are read, the source's through the type map, and a
 *		 64-bit hash of each is kept (verify_keys.c). Hashes that are not equally often on
 *		 both sides are candidates; most are changes on their way.
 *	  3. Rounds, as in verify_settle.c: wait until the source shows what was applied
 *		 at the last look; read it; read the log's end; wait until the stream has passed that; look
 *		 here. Only the candidates are counted. One that is equally often on both sides is settled.
 *		 One that is not is a difference after ROUNDS rounds in a row in which both
 *		 sides had it as often as in the round before and the rows here were the
 *		 same versions. A row that comes and goes all the time would have to be met at
 *		 the same moment each time; after ROUNDS_MAX rounds it is unsettled.
 *
 *	  Candidates beyond what memory holds are settled in further lots of rounds.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "common/hashfn.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "mysql/mysql_sum.h"
#include "util/util_wait.h"
#include "verify/verify_private.h"

/* Text of rows that is turned into hashes in one transaction. */
#define PAGE_BYTES (8 * 1024 * 1024)

/* Larger tables are not added up in one statement. */
#define SUM_MAX_BLOCKS (256 * 1024 * 1024 / BLCKSZ)
#define SUM_MAX_ROWS 5000000

/* Rounds in a row with the same counts that make a difference; rounds after which a candidate is unsettled. */
#define ROUNDS 5
#define ROUNDS_MAX 30

/* A row that is not equally often on both sides, for now. */
typedef struct Candidate
{
	uint64		hash;
	int64		source;			/* how often, in this round */
	int64		target;
	uint64		versions;		/* sum over the versions here */
	ItemPointerData tid;		/* of one of them */
	int64		source_before;
	int64		target_before;
	uint64		versions_before;
	int			confirmed;
	bool		is_settled;
} Candidate;

typedef enum MultisetStep
{
	MULTISET_SUM,				/* sum of the source: -> WAIT */
	MULTISET_READ,				/* rows of the source, some at a time: -> WAIT */
	MULTISET_WAIT,				/* the stream has to pass what was read: -> LOOK */
	MULTISET_LOOK				/* all rows here: -> READ, end */
} MultisetStep;

struct VerifyMultiset
{
	MemoryContext cxt;
	MultisetStep step;
	bool		by_sum;			/* it is the sums that are compared now */
	bool		is_reading;		/* the source's rows are on their way */
	int64		rows;
	uint64		sum;
	int64		rows_here;
	uint64		sum_here;
	MemoryContext lot_cxt;
	Candidate  *candidates;		/* by hash; NULL: hashes are still collected */
	int			ncandidates;
	int			rounds;
};

/* ------------------------------------------------------------------------- begin */

/* Will the source have added up the table soon? Meanwhile it is silent, for which there is a limit. */
static bool
is_small(const VerifyWork *work, const VerifyTarget *target)
{
	uint64		blocks = 0;

	for (int i = 0; i < target->nleaves; i++)
		blocks += RelationGetNumberOfBlocks(target->leaves[i].rel);
	return blocks <= SUM_MAX_BLOCKS && work->def->row_estimate <= SUM_MAX_ROWS;
}

static void
begin(Verify *verify)
{
	VerifyWork *work = verify->work;
	VerifyMultiset *multiset;
	VerifyTarget *target;
	MemoryContext old;
	bool		all_summed = true;

	if (!verify_begin_step(verify))
		return;
	target = verify_target_open(verify);
	old = MemoryContextSwitchTo(work->cxt);
	multiset = palloc0(sizeof(VerifyMultiset));
	multiset->cxt = AllocSetContextCreate(work->cxt, "cdc verify multiset", ALLOCSET_DEFAULT_SIZES);
	multiset->lot_cxt = AllocSetContextCreate(multiset->cxt, "cdc verify candidates", ALLOCSET_DEFAULT_SIZES);
	work->in_sum = palloc0(sizeof(bool) * Max(work->def->ncolumns, 1));
	all_summed = target->sum != NULL;	/* not under a transform */
	for (int i = 0; all_summed && i < target->table->ncolumns; i++)
	{
		work->in_sum[i] = schema_sum_has(target->sum, i);
		all_summed = all_summed && (work->in_sum[i] || target->table->columns[i].attnum <= 0);
	}
	multiset->by_sum = all_summed && target->table->ncolumns > 0 && is_small(work, target);
	if (multiset->by_sum)
		work->number = mysql_sum_expression(work->def, work->in_sum);
	multiset->step = multiset->by_sum ? MULTISET_SUM : MULTISET_READ;
	work->keys = verify_keys_create(work->cxt);
	MemoryContextSwitchTo(old);
	verify_target_close(target);
	verify_end_step(verify);
	work->multiset = multiset;
}

bool
verify_multiset_is_reading(const VerifyWork *work)
{
	return work->multiset != NULL && work->multiset->is_reading;
}

static Candidate *
find_candidate(VerifyMultiset *multiset, uint64 hash)
{
	int			low = 0;
	int			high = multiset->ncandidates;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		if (multiset->candidates[middle].hash < hash)
			low = middle + 1;
		else
			high = middle;
	}
	return low < multiset->ncandidates && multiset->candidates[low].hash == hash ? &multiset->candidates[low] : NULL;
}

/* -------------------------------------------------------------------- the source */

/* What was read is in the log before that place. */
static void
end_reading(Verify *verify)
{
	mysql_server_log_position(verify->session, verify->info, &verify->work->mark);
	verify->work->multiset->step = MULTISET_WAIT;
}

static void
sum_source(Verify *verify)
{
	VerifyMultiset *multiset = verify->work->multiset;

	verify_source_sum(verify, NULL, &multiset->rows, &multiset->sum);
	end_reading(verify);
}

/* Count the rows of a page. */
static void
count_page(Verify *verify, const VerifyPage *page)
{
	VerifyWork *work = verify->work;
	VerifyMultiset *multiset = work->multiset;
	VerifyTarget *target;
	MemoryContext row_cxt;
	MemoryContext old;

	if (!verify_begin_step(verify))
		return;
	target = verify_target_open(verify);
	row_cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc verify row", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(row_cxt);
	for (int i = 0; i < page->nrows; i++)
	{
		uint64		hash;
		Candidate  *candidate;

		util_check_interrupts();
		MemoryContextReset(row_cxt);
		if (!verify_target_take(verify, target, &page->rows[i], NULL))
			continue;
		multiset->rows++;
		hash = verify_target_hash_taken_row(target);
		if (multiset->candidates == NULL)
			verify_keys_add(work->keys, VERIFY_SOURCE, hash);
		else if ((candidate = find_candidate(multiset, hash)) != NULL)
			candidate->source++;
	}
	work->result.rows_read += page->nrows;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(row_cxt);
	verify_target_close(target);
	verify_end_step(verify);
}

/* Some more of the source's rows. */
static void
read_source(Verify *verify)
{
	VerifyMultiset *multiset = verify->work->multiset;
	VerifyPage *page;

	if (!multiset->is_reading)
	{
		multiset->rows = 0;
		multiset->is_reading = true;
		verify_source_all_begin(verify);
	}
	page = verify_source_all_page(verify, PAGE_BYTES);
	multiset->is_reading = !page->is_last;
	count_page(verify, page);
	if (verify->work != NULL && page->is_last)
		end_reading(verify);
}

/* -------------------------------------------------------------------------- here */

/* Count a row that a scan has met. */
static void
count_row(VerifyWork *work, VerifyTarget *target)
{
	VerifyMultiset *multiset = work->multiset;
	Candidate  *candidate;
	uint64		hash;

	multiset->rows_here++;
	if (multiset->by_sum)
	{
		slot_getallattrs(target->slot);
		multiset->sum_here += schema_sum_row(target->sum, work->in_sum, target->slot->tts_values, target->slot->tts_isnull);
		return;
	}
	hash = verify_target_hash_slot_row(target);
	if (multiset->candidates == NULL)
		verify_keys_add(work->keys, VERIFY_TARGET, hash);
	else if ((candidate = find_candidate(multiset, hash)) != NULL)
	{
		bool		is_null;
		uint64		version[2];

		candidate->target++;
		candidate->tid = target->stored->tts_tid;
		version[0] = DatumGetTransactionId(slot_getsysattr(target->stored, MinTransactionIdAttributeNumber, &is_null));
		version[1] = ((uint64) ItemPointerGetBlockNumber(&candidate->tid) << 16) | ItemPointerGetOffsetNumber(&candidate->tid);
		candidate->versions += hash_bytes_extended((const unsigned char *) version, sizeof(version),
												   target->stored->tts_tableOid);
	}
}

static void
scan_target(Verify *verify, VerifyTarget *target)
{
	MemoryContext row_cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc verify row", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(row_cxt);

	for (int i = 0; i < target->nleaves; i++)
	{
		VerifyLeaf *leaf = &target->leaves[i];
		TableScanDesc scan;

		MemoryContextSwitchTo(old);
		scan = table_beginscan(leaf->rel, GetActiveSnapshot(), 0, NULL);
		MemoryContextSwitchTo(row_cxt);
		while (table_scan_getnextslot(scan, ForwardScanDirection, leaf->slot))
		{
			util_check_interrupts();
			MemoryContextReset(row_cxt);
			verify_target_show(target, leaf);
			count_row(verify->work, target);
		}
		ExecClearTuple(leaf->slot);
		table_endscan(scan);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(row_cxt);
}

/* Tell of a difference. */
static void
report(Verify *verify, const VerifyTarget *target, const Candidate *candidate)
{
	VerifyWork *work = verify->work;
	CatalogVerifyTable *result = &work->result;
	int64		rows = candidate->source - candidate->target;
	CatalogVerifyDifference difference = {
		.pipeline_id = result->pipeline_id,
		.request = result->request,
		.table_id = result->table_id,
		.kind = rows > 0 ? "missing" : "extra",
		.rows = rows > 0 ? rows : -rows,
	};

	if (rows > 0)
		result->missing += rows;
	else
		result->extra -= rows;
	if (work->listed >= VERIFY_DIFFERENCES_KEPT)
		return;
	difference.number = ++work->listed;
	difference.key = list_make1(psprintf("%08x%08x", (uint32) (candidate->hash >> 32), (uint32) candidate->hash));
	if (candidate->target > 0 && target->rel->rd_rel->relkind == RELKIND_RELATION)
		difference.key = lappend(difference.key, psprintf("(%u,%u)", ItemPointerGetBlockNumber(&candidate->tid),
														  ItemPointerGetOffsetNumber(&candidate->tid)));
	catalog_verify_difference_insert(&difference);
}

/* What does this round say? True when all candidates are settled. */
static bool
judge(Verify *verify, const VerifyTarget *target)
{
	VerifyWork *work = verify->work;
	VerifyMultiset *multiset = work->multiset;
	bool		all_settled = true;

	multiset->rounds++;
	for (int i = 0; i < multiset->ncandidates; i++)
	{
		Candidate  *candidate = &multiset->candidates[i];
		bool		is_same = work->is_sure && multiset->rounds > 1 &&
			candidate->source == candidate->source_before && candidate->target == candidate->target_before &&
			candidate->versions == candidate->versions_before;

		if (candidate->is_settled)
			continue;
		candidate->confirmed = is_same ? candidate->confirmed + 1 : 0;
		candidate->is_settled = true;
		if (candidate->source == candidate->target)
			continue;
		if (candidate->confirmed >= ROUNDS)
			report(verify, target, candidate);
		else if (multiset->rounds >= ROUNDS_MAX)
			work->result.unsettled += Max(candidate->source, candidate->target) - Min(candidate->source, candidate->target);
		else
		{
			candidate->is_settled = false;
			all_settled = false;
		}
	}
	return all_settled;
}

/* Counts of a round become those of the round before. */
static void
next_round(VerifyMultiset *multiset)
{
	for (int i = 0; i < multiset->ncandidates; i++)
	{
		Candidate  *candidate = &multiset->candidates[i];

		candidate->source_before = candidate->source;
		candidate->target_before = candidate->target;
		candidate->versions_before = candidate->versions;
		candidate->source = candidate->target = 0;
		candidate->versions = 0;
	}
}

/* The next lot of hashes that are not equally often on both sides; false when there is none. */
static bool
next_lot(VerifyWork *work)
{
	VerifyMultiset *multiset = work->multiset;
	uint64	   *hashes;
	int			n;

	MemoryContextReset(multiset->lot_cxt);
	multiset->candidates = NULL;
	multiset->ncandidates = 0;
	multiset->rounds = 0;
	if (!verify_keys_uneven(work->keys, multiset->lot_cxt, &hashes, &n))
		return false;
	multiset->candidates = MemoryContextAllocExtended(multiset->lot_cxt, sizeof(Candidate) * n, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (int i = 0; i < n; i++)
		multiset->candidates[i].hash = hashes[i];
	multiset->ncandidates = n;
	return true;
}

/* All was counted on both sides: what comes next? In the transaction of the look. */
static void
conclude(Verify *verify, const VerifyTarget *target)
{
	VerifyWork *work = verify->work;
	VerifyMultiset *multiset = work->multiset;
	bool		is_done;

	work->result.rows_source = multiset->rows;
	work->result.rows_target = multiset->rows_here;
	work->result.chunks++;
	if (multiset->by_sum)
	{
		is_done = multiset->rows == multiset->rows_here && multiset->sum == multiset->sum_here;
		work->result.chunks_by_sum += is_done;
		multiset->by_sum = false;
	}
	else if (multiset->candidates == NULL)
		is_done = !next_lot(work);
	else if (judge(verify, target))
		is_done = !next_lot(work);
	else
	{
		next_round(multiset);
		is_done = false;
	}
	multiset->step = MULTISET_READ;
	if (is_done)
		work->phase = VERIFY_PHASE_END;
}

/* LOOK: as in verify_settle.c, a table that stops meanwhile makes the look count for nothing. */
static void
look(Verify *verify)
{
	VerifyWork *work = verify->work;
	VerifyMultiset *multiset = work->multiset;
	CatalogPosition *position;
	VerifyTarget *target;
	char	   *why;

	if (!verify_begin_step(verify))
		return;
	multiset->rows_here = 0;
	multiset->sum_here = 0;
	target = verify_target_open(verify);
	scan_target(verify, target);
	MemoryContextReset(work->round_cxt);
	MemoryContextSwitchTo(work->round_cxt);
	position = catalog_position_load(verify->pipeline_id, true);
	MemoryContextSwitchTo(target->cxt);
	if (verify_still_valid(verify, &why))
	{
		work->looked_at = position;
		conclude(verify, target);
	}
	else
	{
		/* what is left to do: to leave the table, at the next step */
		multiset->step = MULTISET_READ;
	}
	verify_target_close(target);
	verify_end_step(verify);
}

void
verify_multiset_step(Verify *verify)
{
	VerifyWork *work = verify->work;

	if (work->multiset == NULL)
	{
		begin(verify);
		return;
	}
	switch (work->multiset->step)
	{
		case MULTISET_SUM:
			sum_source(verify);
			break;
		case MULTISET_READ:
			if (work->multiset->is_reading || verify_source_is_shown(verify))
				read_source(verify);
			break;
		case MULTISET_WAIT:
			if (verify_stream_passed(verify, &work->mark))
				work->multiset->step = MULTISET_LOOK;
			break;
		case MULTISET_LOOK:
			look(verify);
			break;
	}
}
