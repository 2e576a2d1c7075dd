/*-------------------------------------------------------------------------
 *
 * verify.c
 *	  Requests, their tables, and the phases that each table goes through.
 *
 * NOTES
 *	  A request and each of its tables have a row in the catalog. What was found
 *	  is written as it is found, how far a table is not: a worker that takes over
 *	  begins the table anew that was under way, and forgets what had been found
 *	  in it. Finished tables stay finished.
 *
 *	  PAGES: chunks of the source in key order, by sums and by rows (verify_chunk.c),
 *	  each in one transaction with one snapshot. SCAN, unless the chunks did that: the
 *	  target's pages in ranges, each with a snapshot of its own, so that none grows
 *	  old; PICK: the same for the rows whose key the source did not show. COUNT: both
 *	  sides counted.
 *	  Rows that differ become suspects (verify_settle.c).
 *
 *	  An error that is the table's own fails the table, and the others go on.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "heap/heap_row.h"
#include "transform/transform_rule.h"
#include "util/util_arena.h"
#include "util/util_pattern.h"
#include "util/util_wait.h"
#include "verify/verify_private.h"

/* The first page of a table; later ones adapt to what rows turn out to be. */
#define PAGE_FIRST_BYTES (2 * 1024 * 1024)

/* Pages of the target that are scanned at a time. */
#define SCAN_BLOCKS 1024

/* A table is given up when workers began so often with it. */
#define ATTEMPTS_MAX 10

/* How often a table's counters are written. */
#define SAVE_INTERVAL_MS 1000

/* Rounds of counting: so many with the same difference make it one, after so many it is unsettled. */
#define COUNT_SAME 3
#define COUNT_ROUNDS_MAX 30
#define COUNT_SHOW_TRIES 200
#define NAP_MS 25

Verify *
verify_create(const CatalogPipeline *pipeline, const MysqlEndpoint *endpoint, const char *identity)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc verify", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	Verify	   *verify = palloc0(sizeof(Verify));

	verify->cxt = cxt;
	verify->step_cxt = AllocSetContextCreate(cxt, "cdc verify step", ALLOCSET_DEFAULT_SIZES);
	verify->session_cxt = AllocSetContextCreate(cxt, "cdc verify session", ALLOCSET_DEFAULT_SIZES);
	verify->pipeline_id = pipeline->id;
	verify->pipeline_name = pstrdup(pipeline->name);
	verify->endpoint = endpoint;
	verify->identity = pstrdup(identity);
	verify->max_rows = util_option_int(&catalog_pipeline_options, "snapshot_chunk_rows",
									   catalog_pipeline_option(pipeline, "snapshot_chunk_rows"));
	verify->sample_percent = (int) util_option_int(&catalog_pipeline_options, "verify_sample_percent",
												   catalog_pipeline_option(pipeline, "verify_sample_percent"));
	transform_options_read(pipeline, &verify->types);
	cdc_arena_init(&verify->arena,
				   util_context_allocator(AllocSetContextCreate(cxt, "cdc verify values",
																ALLOCSET_DEFAULT_SIZES)), 0);
	MemoryContextSwitchTo(old);
	return verify;
}

static void
forget_work(Verify *verify)
{
	if (verify->work == NULL)
		return;
	if (verify_multiset_is_reading(verify->work))
	{
		/* rows that nobody wants any more may be many */
		mysql_session_close(verify->session);
		verify->session = NULL;
	}
	if (verify->work->keys != NULL)
		verify_keys_destroy(verify->work->keys);
	MemoryContextDelete(verify->work->cxt);
	verify->work = NULL;
}

void
verify_destroy(Verify *verify)
{
	forget_work(verify);
	mysql_session_close(verify->session);
	MemoryContextDelete(verify->cxt);
}

/* ------------------------------------------------------------ choosing a table */

/* Does a request want that table? */
static bool
is_wanted(const CatalogVerify *request, const CatalogTable *table)
{
	ListCell   *lc;

	if (request->tables == NIL)
		return true;
	foreach(lc, request->tables)
	{
		if (util_pattern_match(lfirst(lc), table->source_schema, table->source_table))
			return true;
	}
	return false;
}

/* Write a row for each table that a request wants; in a transaction. */
static List *
list_tables(Verify *verify, const CatalogVerify *request)
{
	ListCell   *lc;

	foreach(lc, catalog_table_list(verify->pipeline_id))
	{
		const CatalogTable *from = lfirst(lc);
		CatalogVerifyTable table = {
			.pipeline_id = verify->pipeline_id,
			.request = request->request,
			.table_id = from->table_id,
			.source_schema = from->source_schema,
			.source_table = from->source_table,
			.target_schema = from->target_schema,
			.target_table = from->target_table,
			.state = CATALOG_VERIFY_QUEUED,
		};

		if (is_wanted(request, from))
			catalog_verify_table_insert(&table);
	}
	return catalog_verify_tables(verify->pipeline_id, request->request);
}

/* Why a table cannot be compared; NULL when it can. */
static char *
why_not(const CatalogTable *table)
{
	if (table == NULL)
		return pstrdup("The table has left the pipeline.");
	if (table->state != CATALOG_TABLE_STREAMING)
		return psprintf("The table's state is \"%s\"; only tables that stream are compared.",
						catalog_table_state_name(table->state));
	if (table->definition == (Datum) 0)
		return pstrdup("The definition of the source table is not known.");
	return NULL;
}

/* Begin with a table; in a transaction. */
static void
begin_table(Verify *verify, const CatalogVerifyTable *row, const CatalogTable *table, const char *mode)
{
	MemoryContext cxt = AllocSetContextCreate(verify->cxt, "cdc verify table", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	VerifyWork *work = palloc0(sizeof(VerifyWork));
	bool		is_count = strcmp(mode, "count") == 0;
	const TransformRule *rule;

	work->cxt = cxt;
	work->result.pipeline_id = row->pipeline_id;
	work->result.request = row->request;
	work->result.table_id = row->table_id;
	work->result.source_schema = pstrdup(row->source_schema);
	work->result.source_table = pstrdup(row->source_table);
	work->result.target_schema = pstrdup(row->target_schema);
	work->result.target_table = pstrdup(row->target_table);
	work->result.state = CATALOG_VERIFY_RUNNING;
	work->result.started_at = work->saved_at = GetCurrentTimestamp();
	work->is_sample = strcmp(mode, "sample") == 0;

	work->generation = table->generation;
	work->target = table->target;
	work->is_merged = table->own_rows != (Datum) 0;
	work->def = schema_def_from_jsonb(table->definition);
	work->definition = datumCopy(table->definition, false, -1);
	work->nkey = (int) work->def->nkey;
	/* a sample ends with counting, and the source cannot count what passes a filter */
	rule = transform_table_rule(work->def, &verify->types);
	if (rule != NULL && rule->filter != NULL)
		work->is_sample = false;
	/* without a key there are no chunks to choose from */
	if (work->nkey == 0 && work->is_sample)
	{
		work->is_sample = false;
		is_count = true;
	}
	work->key = palloc0(sizeof(int) * Max(work->nkey, 1));
	for (uint32 i = 0; i < work->def->ncolumns; i++)
	{
		uint16		part = work->def->columns[i].key_part;

		if (part >= 1 && part <= work->nkey)
			work->key[part - 1] = (int) i;
	}
	work->source_name = psprintf("%s.%s", mysql_quote_identifier(work->def->schema),
								 mysql_quote_identifier(work->def->name));

	work->after_cxt = AllocSetContextCreate(cxt, "cdc verify key", ALLOCSET_DEFAULT_SIZES);
	work->suspect_cxt = AllocSetContextCreate(cxt, "cdc verify suspects", ALLOCSET_DEFAULT_SIZES);
	work->round_cxt = AllocSetContextCreate(cxt, "cdc verify round", ALLOCSET_DEFAULT_SIZES);
	work->scan_cxt = AllocSetContextCreate(cxt, "cdc verify scan", ALLOCSET_SMALL_SIZES);
	work->limit = Max(Min(PAGE_FIRST_BYTES / Max(work->def->avg_row_length, 1), verify->max_rows),
					  Min(verify->max_rows, 100));
	work->phase = is_count ? VERIFY_PHASE_COUNT : work->nkey == 0 ? VERIFY_PHASE_MULTISET : VERIFY_PHASE_PAGES;
	work->method = is_count ? VERIFY_METHOD_COUNT : work->nkey == 0 ? VERIFY_METHOD_MULTISET : VERIFY_METHOD_OPEN;
	work->result.method = verify_method_name(work->method);
	work->count_source_before = -1;
	MemoryContextSwitchTo(old);

	verify->work = work;
	catalog_verify_differences_delete(row->pipeline_id, row->request, row->table_id);
	catalog_verify_table_update(&work->result);
}

/*
 * A request that workers began with so often without finishing a table: the table
 * that was under way has failed, and the others go on. In a transaction.
 */
static void
give_up_table(Verify *verify, const CatalogVerify *request)
{
	ListCell   *lc;

	foreach(lc, catalog_verify_tables(verify->pipeline_id, request->request))
	{
		CatalogVerifyTable *row = lfirst(lc);

		if (row->state != CATALOG_VERIFY_RUNNING)
			continue;
		row->state = CATALOG_VERIFY_FAILED;
		row->reason = psprintf("Workers began with the table %d times and ended with an error each time; the server's log says which.",
							   request->attempts);
		row->finished_at = GetCurrentTimestamp();
		catalog_verify_table_update(row);
	}
	catalog_verify_forget_attempts(verify->pipeline_id, request->request);
}

/* Begin with a request in this process; false when it ended meanwhile. In a transaction. */
static bool
take_up(Verify *verify, const CatalogVerify *request)
{
	if (request->attempts >= ATTEMPTS_MAX)
		give_up_table(verify, request);
	verify->request = request->request;
	return catalog_verify_set_state(verify->pipeline_id, request->request, CATALOG_VERIFY_RUNNING, NULL);
}

/* Take up the next table of a request, or end the request; in a transaction. */
static void
next_table(Verify *verify, const CatalogVerify *request)
{
	List	   *rows = catalog_verify_tables(verify->pipeline_id, request->request);
	ListCell   *lc;

	if (rows == NIL)
		rows = list_tables(verify, request);
	foreach(lc, rows)
	{
		CatalogVerifyTable *row = lfirst(lc);
		CatalogTable *table;
		char	   *why;

		if (row->state != CATALOG_VERIFY_QUEUED && row->state != CATALOG_VERIFY_RUNNING)
			continue;
		table = catalog_table_by_id(verify->pipeline_id, row->table_id);
		why = why_not(table);
		if (why == NULL)
		{
			begin_table(verify, row, table, request->mode);
			return;
		}
		row->state = CATALOG_VERIFY_SKIPPED;
		row->reason = why;
		row->finished_at = GetCurrentTimestamp();
		catalog_verify_table_update(row);
	}

	(void) catalog_verify_set_state(verify->pipeline_id, request->request, CATALOG_VERIFY_DONE, NULL);
	catalog_verify_prune(verify->pipeline_id);
	verify->request = 0;
}

/*
 * Find something to do; false when no request is open. verify->work may still be
 * NULL: then ask again. The connection comes first: a source that cannot be
 * reached is nothing that a request could be given up for.
 */
static bool
choose(Verify *verify)
{
	CatalogVerify *request;

	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	request = catalog_verify_open(verify->pipeline_id);
	if (request != NULL && verify->session != NULL &&
		(request->request == verify->request || take_up(verify, request)))
		next_table(verify, request);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(verify->step_cxt);
	pgstat_report_stat(false);

	if (request != NULL)
		verify_source_open(verify);
	return request != NULL;
}

/* --------------------------------------------------------------- ending a table */

/* Write down how a table ended, and go on to the next. */
static void
end_table(Verify *verify, CatalogVerifyState state, const char *reason)
{
	VerifyWork *work = verify->work;
	CatalogVerifyTable *result = &work->result;

	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	result->state = state;
	result->reason = reason != NULL ? MemoryContextStrdup(work->cxt, reason) : NULL;
	result->finished_at = GetCurrentTimestamp();
	if (state == CATALOG_VERIFY_DONE)
	{
		CatalogPosition *position = catalog_position_load(verify->pipeline_id, true);

		if (position != NULL)
			result->position = position->position;
	}
	catalog_verify_table_update(result);
	catalog_verify_forget_attempts(verify->pipeline_id, result->request);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(verify->step_cxt);

	ereport(LOG,
			(errmsg("verification of table \"%s.%s\" is %s", result->source_schema, result->source_table,
					catalog_verify_state_name(state)),
			 reason != NULL ? errdetail("%s", reason)
			 : errdetail(INT64_FORMAT " rows are missing, " INT64_FORMAT " extra, " INT64_FORMAT " different, " INT64_FORMAT " unsettled.",
						 result->missing, result->extra, result->different, result->unsettled),
			 errhidecontext(true)));
	forget_work(verify);
}

bool
verify_still_valid(Verify *verify, char **why)
{
	const VerifyWork *work = verify->work;
	CatalogVerify *request = catalog_verify_by_number(work->result.request);
	CatalogTable *table;

	*why = NULL;
	if (request == NULL || request->state != CATALOG_VERIFY_RUNNING)
		return false;
	table = catalog_table_by_id(verify->pipeline_id, work->result.table_id);
	*why = why_not(table);
	if (*why == NULL && (table->generation != work->generation || table->target != work->target))
		*why = pstrdup("The table was begun anew while it was compared.");
	/* rows are read by the definition: what it is not true of may look different */
	if (*why == NULL && !DatumGetBool(DirectFunctionCall2(jsonb_eq, table->definition, work->definition)))
		*why = pstrdup("The table changed its shape while it was compared.");
	return *why == NULL;
}

void
verify_leave_table(Verify *verify, const char *why)
{
	if (why != NULL)
		end_table(verify, CATALOG_VERIFY_SKIPPED, why);
	else
	{
		verify->request = 0;
		forget_work(verify);
	}
}

/* ------------------------------------------------------------ steps on a table */

bool
verify_begin_step(Verify *verify)
{
	char	   *why;

	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	if (verify_still_valid(verify, &why))
		return true;
	if (why != NULL)
		why = MemoryContextStrdup(verify->step_cxt, why);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(verify->step_cxt);
	verify_leave_table(verify, why);
	return false;
}

void
verify_end_step(Verify *verify)
{
	VerifyWork *work = verify->work;
	TimestampTz now = GetCurrentTimestamp();

	if (TimestampDifferenceExceeds(work->saved_at, now, SAVE_INTERVAL_MS))
	{
		catalog_verify_table_update(&work->result);
		work->saved_at = now;
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(verify->step_cxt);
	pgstat_report_stat(false);
}

/* What the target has and the source did not show: the next lot of it, or the end. */
static void
next_candidates(VerifyWork *work)
{
	if (work->candidates != NULL)
		pfree(work->candidates);
	work->phase = verify_keys_only_target(work->keys, work->cxt, &work->candidates, &work->ncandidates)
		? VERIFY_PHASE_PICK : VERIFY_PHASE_END;
	work->scan_leaf = InvalidOid;
	work->next_block = 0;
	work->scan_after = NULL;
}

static bool
is_candidate(const VerifyWork *work, uint64 hash)
{
	int			low = 0;
	int			high = work->ncandidates;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		if (work->candidates[middle] < hash)
			low = middle + 1;
		else
			high = middle;
	}
	return low < work->ncandidates && work->candidates[low] == hash;
}

/* The table that is to be scanned on; NULL when all were. Partitions come in the order of their OIDs. */
static VerifyLeaf *
leaf_to_scan(VerifyWork *work, VerifyTarget *target)
{
	for (int i = 0; i < target->nleaves; i++)
	{
		VerifyLeaf *leaf = &target->leaves[i];
		Oid			relid = RelationGetRelid(leaf->rel);

		if (relid < work->scan_leaf)
			continue;
		if (relid > work->scan_leaf)
			work->next_block = 0;
		work->scan_leaf = relid;
		if (work->next_block < RelationGetNumberOfBlocks(leaf->rel))
			return leaf;
	}
	return NULL;
}

/* A row, or a key, of the target that a scan has met. */
static void
scan_row(Verify *verify, VerifyTarget *target)
{
	VerifyWork *work = verify->work;
	uint64		hash = verify_target_hash_slot(target);

	if (work->phase == VERIFY_PHASE_SCAN)
	{
		verify_keys_add(work->keys, VERIFY_TARGET, hash);
		work->result.rows_target++;
	}
	else if (is_candidate(work, hash))
		verify_suspect_add(verify, target, NULL);
}

/* Scan the next range of a table's pages. */
static void
scan_range(Verify *verify, VerifyTarget *target, VerifyLeaf *leaf)
{
	VerifyWork *work = verify->work;
	BlockNumber nblocks = RelationGetNumberOfBlocks(leaf->rel);
	BlockNumber last = Min(nblocks - work->next_block, SCAN_BLOCKS) + work->next_block - 1;
	MemoryContext row_cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc verify row", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;
	ItemPointerData min_tid;
	ItemPointerData max_tid;
	TableScanDesc scan;

	ItemPointerSet(&min_tid, work->next_block, FirstOffsetNumber);
	ItemPointerSet(&max_tid, last, MaxOffsetNumber);
	scan = table_beginscan_tidrange(leaf->rel, GetActiveSnapshot(), &min_tid, &max_tid);
	old = MemoryContextSwitchTo(row_cxt);
	while (table_scan_getnextslot_tidrange(scan, ForwardScanDirection, leaf->slot))
	{
		util_check_interrupts();
		MemoryContextReset(row_cxt);
		verify_target_show(target, leaf);
		if (verify_target_is_own(target))
			scan_row(verify, target);
	}
	MemoryContextSwitchTo(old);
	ExecClearTuple(leaf->slot);
	table_endscan(scan);
	MemoryContextDelete(row_cxt);
	work->next_block = last + 1;
}

/* A key of the target that was met by SQL. */
static void
scan_key(VerifyTarget *target, void *arg)
{
	Verify	   *verify = arg;

	scan_row(verify, target);
	MemoryContextReset(verify->work->scan_cxt);
	MemoryContextSwitchTo(verify->work->scan_cxt);
	verify->work->scan_after = verify_target_key_slot(target);
}

/* Scan some more; false when all was. */
static bool
scan_some(Verify *verify, VerifyTarget *target)
{
	VerifyLeaf *leaf;

	if (target->sql != NULL)
		return !verify_sql_scan(target, verify->work->scan_after, scan_key, verify);
	leaf = leaf_to_scan(verify->work, target);
	if (leaf != NULL)
		scan_range(verify, target, leaf);
	return leaf != NULL;
}

static void
step_scan(Verify *verify)
{
	VerifyTarget *target;
	bool		more;

	if (!verify_begin_step(verify))
		return;
	target = verify_target_open(verify);
	more = scan_some(verify, target);
	verify_target_close(target);
	verify_end_step(verify);
	if (!more)
		next_candidates(verify->work);
}

/* Count the rows of a target that are the table's own. */
static void
count_own(Verify *verify)
{
	VerifyTarget *target = verify_target_open(verify);

	for (int i = 0; i < target->nleaves; i++)
	{
		VerifyLeaf *leaf = &target->leaves[i];
		TableScanDesc scan = table_beginscan(leaf->rel, GetActiveSnapshot(), 0, NULL);

		while (table_scan_getnextslot(scan, ForwardScanDirection, leaf->slot))
		{
			util_check_interrupts();
			verify_target_show(target, leaf);
			verify->work->count_target += verify_target_is_own(target) ? 1 : 0;
		}
		ExecClearTuple(leaf->slot);
		table_endscan(scan);
	}
	verify_target_close(target);
}

/* Count the target's rows, by one snapshot. */
static void
count_target(Verify *verify)
{
	VerifyWork *work = verify->work;
	const TransformRule *rule = transform_table_rule(work->def, &verify->types);
	Relation	rel;
	List	   *leaves = NIL;
	MemoryContext old;
	ListCell   *lc;

	if (!verify_begin_step(verify))
		return;
	work->count_target = 0;
	rel = verify_target_open_relation(verify);
	if (rule != NULL && rule->filter != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("rows of table \"%s\" cannot be compared by their number", RelationGetRelationName(rel)),
				 errdetail("Option \"transforms\" has a filter for its source table, which would have to be counted under it."),
				 errhint("Use mode \"full\".")));
	if (work->is_merged || (rule != NULL && rule->kind == TRANSFORM_SOFT_DELETE))
		count_own(verify);
	else if (verify_sql_is_needed(rel))
		work->count_target = verify_sql_count(rel);
	else
		leaves = verify_target_open_leaves(rel);
	foreach(lc, leaves)
	{
		Relation	leaf = lfirst(lc);
		TupleTableSlot *slot = table_slot_create(leaf, NULL);
		TableScanDesc scan = table_beginscan(leaf, GetActiveSnapshot(), 0, NULL);

		while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
		{
			util_check_interrupts();
			work->count_target++;
		}
		ExecDropSingleTupleTableSlot(slot);
		table_endscan(scan);
		relation_close(leaf, AccessShareLock);
	}
	relation_close(rel, AccessShareLock);

	MemoryContextReset(work->round_cxt);
	old = MemoryContextSwitchTo(work->round_cxt);
	work->looked_at = catalog_position_load(verify->pipeline_id, true);
	MemoryContextSwitchTo(old);
	verify_end_step(verify);
}

/* Both sides were counted, the source before and after: what does that say? True when it says something. */
static bool
judge_count(VerifyWork *work)
{
	CatalogVerifyTable *result = &work->result;
	int64		low = Min(work->count_source_before, work->count_source);
	int64		high = Max(work->count_source_before, work->count_source);
	int64		missing = Max(work->count_source - work->count_target, 0);
	int64		extra = Max(work->count_target - work->count_source, 0);
	bool		is_equal = work->count_target >= low && work->count_target <= high;

	work->count_same = low == high ? work->count_same + 1 : 0;
	work->count_rounds++;
	if (!is_equal && work->count_same < COUNT_SAME && work->count_rounds < COUNT_ROUNDS_MAX)
		return false;

	result->rows_target = work->count_target;
	if (!work->is_sample)
		result->rows_source = work->count_source;
	if (is_equal)
		return true;
	if (work->count_same >= COUNT_SAME)
	{
		/* rows that the sample found are among them */
		result->missing = Max(result->missing, missing);
		result->extra = Max(result->extra, extra);
	}
	else
		result->unsettled += missing + extra;
	return true;
}

/* One half of a round of counting: the source, then, when the stream has passed that, the target. */
static void
step_count(Verify *verify)
{
	VerifyWork *work = verify->work;

	if (work->nsuspects > 0)
	{
		(void) verify_settle_step(verify);
		return;
	}
	if (work->count_waits)
	{
		if (!verify_stream_passed(verify, &work->mark))
			return;
		work->count_waits = false;
		count_target(verify);
		return;
	}

	if (work->looked_at != NULL && work->tries < COUNT_SHOW_TRIES &&
		!verify_source_shows(verify, work->looked_at))
	{
		work->tries++;
		(void) util_wait(PGINVALID_SOCKET, NAP_MS, UTIL_WAIT_VERIFY);
		return;
	}
	work->tries = 0;
	work->count_source = verify_source_count(verify);
	if (work->looked_at != NULL && judge_count(work))
	{
		work->phase = VERIFY_PHASE_END;
		return;
	}
	work->count_source_before = work->count_source;
	mysql_server_log_position(verify->session, verify->info, &work->mark);
	work->count_waits = true;
}

static void
work_step(Verify *verify)
{
	VerifyWork *work = verify->work;

	if (work->settle != VERIFY_SETTLE_IDLE || verify_suspects_full(work))
	{
		(void) verify_settle_step(verify);
		return;
	}
	switch (work->phase)
	{
		case VERIFY_PHASE_PAGES:
			verify_chunk_step(verify);
			break;
		case VERIFY_PHASE_SCAN:
		case VERIFY_PHASE_PICK:
			step_scan(verify);
			break;
		case VERIFY_PHASE_COUNT:
			step_count(verify);
			break;
		case VERIFY_PHASE_MULTISET:
			verify_multiset_step(verify);
			break;
		case VERIFY_PHASE_END:
			if (!verify_settle_step(verify))
				end_table(verify, CATALOG_VERIFY_DONE, NULL);
			break;
	}
}

/* Frame of the error context; never shows a value. */
static void
verify_error_context(void *arg)
{
	const Verify *verify = arg;

	if (verify->work == NULL)
		errcontext("verification of pipeline \"%s\"", verify->pipeline_name);
	else if (verify->current != NULL)
		errcontext("verification of pipeline \"%s\", table \"%s.%s\", column \"%s\"", verify->pipeline_name,
				   verify->work->result.source_schema, verify->work->result.source_table, verify->current->name);
	else
		errcontext("verification of pipeline \"%s\", table \"%s.%s\"", verify->pipeline_name,
				   verify->work->result.source_schema, verify->work->result.source_table);
}

/* An error that is the table's own: the table has failed, if it is still to be compared. */
static void
fail_table(Verify *verify, ErrorData *edata)
{
	UtilErrorInfo *info = util_error_info(edata);
	char	   *reason = info->message;

	if (info->detail != NULL)
		reason = psprintf("%s: %s", reason, info->detail);

	/* a target that was swapped, a request that was cancelled */
	if (!verify_begin_step(verify))
		return;
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(verify->step_cxt);
	end_table(verify, CATALOG_VERIFY_FAILED, reason);
}

bool
verify_step(Verify *verify)
{
	MemoryContext caller = MemoryContextSwitchTo(verify->step_cxt);
	ErrorContextCallback frame = {.previous = error_context_stack,.callback = verify_error_context,.arg = verify};
	volatile bool found = true;

	MemoryContextReset(verify->step_cxt);
	error_context_stack = &frame;
	PG_TRY();
	{
		if (verify->work != NULL)
			work_step(verify);
		else
			found = choose(verify);
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(verify->step_cxt);
		edata = CopyErrorData();
		if (verify->work == NULL || !heap_error_is_tables_own(edata->sqlerrcode))
			PG_RE_THROW();
		FlushErrorState();
		AbortOutOfAnyTransaction();
		MemoryContextSwitchTo(verify->step_cxt);
		verify->current = NULL;
		fail_table(verify, edata);
	}
	PG_END_TRY();

	error_context_stack = frame.previous;
	MemoryContextSwitchTo(caller);
	return found;
}
