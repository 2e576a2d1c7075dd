/*-------------------------------------------------------------------------
 *
 * verify_chunk.c
 *	  Phase PAGES: a table's chunks, in the order of the source's key.
 *
 * NOTES
 *	  How a table's chunks are compared is chosen once, when its target is first
 *	  looked at:
 *
 *	  SUMS		the source counts the rows of a chunk and adds up a number of each
 *				(mysql_sum.h); the same is done here over the same range of keys. All
 *				compared columns have to print alike on both sides, and the key's have
 *				to be in the same order on both.
 *	  COLUMNS	otherwise, when at least the key and most of the other columns print
 *				alike: the rows of a chunk are read with their keys and with the
 *				columns that do not (float, json, ...), which are compared one by one;
 *				the rest goes into the sum, of the rows here that have those keys.
 *	  ROWS		otherwise: all rows are read.
 *
 *	  A chunk that differs is cut into parts, and a part that differs is read row
 *	  by row, because two sums say nothing but that something is not equal: usually
 *	  a row that is on its way. Only rows become suspects (verify_settle.c), so sums never
 *	  make a difference where there is none; that they hide one takes 64 bits that
 *	  come out equal by chance.
 *
 *	  level CHUNK: sum -> equal: next chunk; else level PART
 *	  level PART:  sum -> equal: next part, at the chunk's end level CHUNK; else level ROWS
 *	  level ROWS:  pages of rows, at the part's end level PART
 *
 *	  With SUMS, keys that only the target has are found by the range of each page
 *	  that is read; otherwise by a scan of the whole target afterwards.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "mysql/mysql_sum.h"
#include "util/util_wait.h"
#include "verify/verify_private.h"

/*
 * The first chunk has so many rows; later ones have twice as many while their
 * sum takes little time there, and fewer when it takes long: the source is silent
 * meanwhile, and rows may be large.
 */
#define CHUNK_FIRST_ROWS 1000
#define SUM_SOON_MS 500
#define SUM_LONG_MS 5000

/* A chunk that differs is cut into so many parts, unless they would be smaller than that. */
#define PARTS 16
#define PART_MIN_ROWS 250

/* Rows more than the source's that are looked at here before a chunk counts as different. */
#define MORE_ROWS 100000

const char *
verify_method_name(VerifyMethod method)
{
	switch (method)
	{
		case VERIFY_METHOD_OPEN:
			break;
		case VERIFY_METHOD_COUNT:
			return "count";
		case VERIFY_METHOD_SUMS:
			return "sums";
		case VERIFY_METHOD_COLUMNS:
			return "columns";
		case VERIFY_METHOD_ROWS:
			return "rows";
		case VERIFY_METHOD_MULTISET:
			return "multiset";
	}
	return NULL;
}

/* ------------------------------------------------------------------ the method */

/* Which columns are in the sums, and what is to be read beside them? */
static VerifyMethod
method_of(VerifyWork *work, const VerifyTarget *target)
{
	int			summed = 0;
	int			others = 0;
	bool		keys_summed = true;

	if (target->transform != NULL)
	{
		/* rows are computed here */
		memset(work->in_page, true, sizeof(bool) * work->def->ncolumns);
		return VERIFY_METHOD_ROWS;
	}
	for (int i = 0; i < target->table->ncolumns; i++)
	{
		bool		is_key = work->def->columns[i].key_part != 0;

		work->in_sum[i] = schema_sum_has(target->sum, i);
		work->in_page[i] = is_key || (!work->in_sum[i] && target->table->columns[i].attnum > 0);
		keys_summed = keys_summed && (!is_key || work->in_sum[i]);
		if (!is_key && work->in_sum[i])
			summed++;
		if (!is_key && work->in_page[i])
			others++;
	}
	if (target->sql != NULL || !keys_summed)
		return VERIFY_METHOD_ROWS;
	if (others == 0 && verify_range_is_ordered(work, target))
		return VERIFY_METHOD_SUMS;
	return summed > others ? VERIFY_METHOD_COLUMNS : VERIFY_METHOD_ROWS;
}

static void
set_chunk_rows(VerifyWork *work, uint64 rows)
{
	work->sum_rows[VERIFY_LEVEL_CHUNK] = rows;
	work->sum_rows[VERIFY_LEVEL_PART] = Max(rows / PARTS, PART_MIN_ROWS);
}

static void
choose_method(Verify *verify)
{
	VerifyWork *work = verify->work;
	VerifyTarget *target;
	MemoryContext old;

	if (!verify_begin_step(verify))
		return;
	target = verify_target_open(verify);
	old = MemoryContextSwitchTo(work->cxt);
	work->in_sum = palloc0(sizeof(bool) * Max(work->def->ncolumns, 1));
	work->in_page = palloc0(sizeof(bool) * Max(work->def->ncolumns, 1));
	work->method = method_of(work, target);
	for (int level = 0; level < VERIFY_LEVELS; level++)
		work->ranges[level].cxt = AllocSetContextCreate(work->cxt, "cdc verify range", ALLOCSET_SMALL_SIZES);
	if (work->method == VERIFY_METHOD_ROWS)
	{
		work->level = VERIFY_LEVEL_ROWS;
		work->ranges[VERIFY_LEVEL_ROWS].is_final = work->ranges[VERIFY_LEVEL_PART].is_final = true;
	}
	else
	{
		work->number = mysql_sum_expression(work->def, work->in_sum);
		set_chunk_rows(work, Min(verify->max_rows, CHUNK_FIRST_ROWS));
	}
	if (work->method == VERIFY_METHOD_SUMS)
		work->extras.cxt = AllocSetContextCreate(work->cxt, "cdc verify extras", ALLOCSET_DEFAULT_SIZES);
	else if (!work->is_sample)
		work->keys = verify_keys_create(work->cxt);
	MemoryContextSwitchTo(old);
	work->result.method = verify_method_name(work->method);
	verify_target_close(target);
	verify_end_step(verify);
}

/* ---------------------------------------------------------------------- ranges */

/* All up to that key (NULL: to the level's end) is compared: go on behind it. */
static void
move_on(VerifyWork *work, const ChunkKey *to)
{
	if (to == NULL)
		return;
	MemoryContextReset(work->after_cxt);
	work->after = verify_copy_key(work->after_cxt, to);
}

/* A range of the level is done; is_final: nothing of the level's own range is behind it. */
static void
end_range(VerifyWork *work, const ChunkKey *to, bool is_final)
{
	move_on(work, to);
	while (is_final && work->level > VERIFY_LEVEL_CHUNK)
	{
		is_final = work->ranges[work->level].is_final;
		work->level--;
	}
	if (is_final)
		work->phase = work->is_sample ? VERIFY_PHASE_COUNT
			: work->keys != NULL ? VERIFY_PHASE_SCAN : VERIFY_PHASE_END;
}

/* The range up to that key differs: look at it more closely. */
static void
go_down(VerifyWork *work, const ChunkKey *to, bool is_final, int64 rows)
{
	bool		skip_parts = work->level == VERIFY_LEVEL_CHUNK && rows <= 2 * (int64) work->sum_rows[VERIFY_LEVEL_PART];

	for (int n = skip_parts ? 2 : 1; n > 0; n--)
	{
		VerifyRange *range = &work->ranges[++work->level];

		MemoryContextReset(range->cxt);
		range->end = to == NULL ? NULL : verify_copy_key(range->cxt, to);
		range->is_final = is_final;
		/* the range of the level between is this one */
		is_final = true;
	}
}

/* -------------------------------------------------------------- by sums */

/* The source's sum up to a key, and how large the next chunk should be. */
static void
sum_source(Verify *verify, const ChunkKey *to, int64 *rows, uint64 *sum)
{
	VerifyWork *work = verify->work;
	uint64		chunk_rows = work->sum_rows[VERIFY_LEVEL_CHUNK];
	TimestampTz began = GetCurrentTimestamp();
	long		took;

	verify_source_sum(verify, to, rows, sum);
	took = TimestampDifferenceMilliseconds(began, GetCurrentTimestamp());
	if (took > SUM_LONG_MS)
		set_chunk_rows(work, Max(chunk_rows / 4, 1));
	else if (took < SUM_SOON_MS && work->level == VERIFY_LEVEL_CHUNK)
		set_chunk_rows(work, Min(chunk_rows * 2, verify->max_rows));
}

static void
compare_sums(Verify *verify)
{
	VerifyWork *work = verify->work;
	CatalogVerifyTable *result = &work->result;
	ChunkKey   *end = work->ranges[work->level].end;
	ChunkKey   *bound = verify_source_bound(verify, end, work->sum_rows[work->level]);
	ChunkKey   *to = bound != NULL ? bound : end;
	VerifyTarget *target;
	int64		rows;
	int64		rows_here;
	uint64		sum;
	uint64		sum_here;

	sum_source(verify, to, &rows, &sum);
	if (!verify_begin_step(verify))
		return;
	target = verify_target_open(verify);
	verify_range_sum(verify, target, work->after, to, rows + MORE_ROWS, &rows_here, &sum_here);
	verify_target_close(target);
	if (rows == rows_here && sum == sum_here)
	{
		result->rows_source += rows;
		result->rows_target += rows;
		result->chunks++;
		result->chunks_by_sum++;
		end_range(work, to, bound == NULL);
	}
	else
		go_down(work, to, bound == NULL, Max(rows, rows_here));
	verify_end_step(verify);
}

/* ------------------------------------------------------ by sums and some columns */

/*
 * Compare what was read of the rows of a page with the rows here, note which
 * differ, and add those here up. False when not all of them are here.
 */
static bool
compare_columns(Verify *verify, VerifyTarget *target, const VerifyPage *page, uint64 *sum, bool *differs)
{
	VerifyWork *work = verify->work;
	MemoryContext row_cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc verify row", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(row_cxt);
	bool		all = true;

	*sum = 0;
	for (int i = 0; i < page->nrows; i++)
	{
		util_check_interrupts();
		MemoryContextReset(row_cxt);
		(void) verify_target_take(verify, target, &page->rows[i], work->in_page);
		/* also those of a chunk that differs: its parts do not add them again */
		if (work->keys != NULL && work->level == VERIFY_LEVEL_CHUNK)
			verify_keys_add(work->keys, VERIFY_SOURCE, verify_target_hash_taken(target));
		if (!verify_target_find_taken(target))
		{
			all = false;
			continue;
		}
		differs[i] = !verify_target_is_equal(target);
		*sum += schema_sum_row(target->sum, work->in_sum, target->slot->tts_values, target->slot->tts_isnull);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(row_cxt);
	return all;
}

/* Rows that are equal but for the columns that were read. */
static void
suspect_columns(Verify *verify, VerifyTarget *target, const VerifyPage *page, const bool *differs)
{
	for (int i = 0; i < page->nrows; i++)
	{
		if (!differs[i])
			continue;
		(void) verify_target_take(verify, target, &page->rows[i], verify->work->in_page);
		verify_suspect_add(verify, target, &page->rows[i]);
	}
}

static void
compare_sums_and_columns(Verify *verify)
{
	VerifyWork *work = verify->work;
	CatalogVerifyTable *result = &work->result;
	ChunkKey   *end = work->ranges[work->level].end;
	VerifyPage *page = verify_source_page(verify, end, work->in_page, work->sum_rows[work->level]);
	ChunkKey   *to = page->is_last ? end : page->last;
	bool	   *differs = palloc0(sizeof(bool) * Max(page->nrows, 1));
	VerifyTarget *target;
	int64		rows;
	uint64		sum;
	uint64		sum_here;
	bool		is_equal;

	sum_source(verify, to, &rows, &sum);
	if (!verify_begin_step(verify))
		return;
	target = verify_target_open(verify);
	is_equal = compare_columns(verify, target, page, &sum_here, differs) && rows == page->nrows && sum == sum_here;
	/* otherwise they are met again, row by row */
	if (is_equal)
		suspect_columns(verify, target, page, differs);
	verify_target_close(target);
	if (is_equal)
	{
		result->rows_source += rows;
		if (work->keys == NULL)
			result->rows_target += rows;
		result->chunks++;
		result->chunks_by_sum++;
		end_range(work, to, page->is_last);
	}
	else
		go_down(work, to, page->is_last, Max(rows, page->nrows));
	verify_end_step(verify);
}

/* ------------------------------------------------------------------ row by row */

static int
compare_hashes(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y ? 1 : 0;
}

/* The page's range is to be looked through for keys that it did not show. */
static void
begin_extras(VerifyWork *work, const VerifyPage *page, const ChunkKey *to, uint64 *shown)
{
	VerifyExtras *extras = &work->extras;

	qsort(shown, page->nrows, sizeof(uint64), compare_hashes);
	extras->lower = work->after == NULL ? NULL : verify_copy_key(extras->cxt, work->after);
	extras->upper = to == NULL ? NULL : verify_copy_key(extras->cxt, to);
	extras->is_final = page->is_last;
	extras->nshown = page->nrows;
	extras->leaf = InvalidOid;
	extras->from = NULL;
	extras->shown = shown;
}

/* By SQL: fetch the rows here that have the keys of a page. */
static void
fetch_page(Verify *verify, VerifyTarget *target, const VerifyPage *page)
{
	Datum	  **keys = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Datum *) * Max(page->nrows, 1));

	for (int i = 0; i < page->nrows; i++)
	{
		util_check_interrupts();
		(void) verify_target_take(verify, target, &page->rows[i], verify->work->in_page);
		keys[i] = verify_target_key_taken(target);
	}
	verify_sql_fetch(target, keys, page->nrows);
}

/* Compare the rows of a page with those here. */
static void
compare_rows(Verify *verify, VerifyTarget *target, const VerifyPage *page, uint64 *shown)
{
	VerifyWork *work = verify->work;
	MemoryContext row_cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc verify row", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;

	if (target->sql != NULL)
		fetch_page(verify, target, page);
	old = MemoryContextSwitchTo(row_cxt);
	for (int i = 0; i < page->nrows; i++)
	{
		int			found;
		bool		is_in;

		util_check_interrupts();
		MemoryContextReset(row_cxt);
		is_in = verify_target_take(verify, target, &page->rows[i], NULL);
		found = verify_target_find_taken(target);
		/* a row that a filter leaves out and that is here all the same is found now, and not once more */
		if (work->keys != NULL && (is_in || found > 0))
			verify_keys_add(work->keys, VERIFY_SOURCE, verify_target_hash_taken(target));
		if (shown != NULL)
			shown[i] = verify_target_hash_taken(target);
		if (is_in ? found != 1 || !verify_target_is_equal(target) : found != 0)
			verify_suspect_add(verify, target, &page->rows[i]);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(row_cxt);
	work->result.rows_source += page->nrows;
	work->result.rows_read += page->nrows;
	work->result.chunks++;
}

static void
read_rows(Verify *verify)
{
	VerifyWork *work = verify->work;
	ChunkKey   *end = work->ranges[VERIFY_LEVEL_ROWS].end;
	VerifyPage *page = verify_source_page(verify, end, NULL, work->limit);
	ChunkKey   *to = page->is_last ? end : page->last;
	uint64	   *shown = NULL;
	VerifyTarget *target;

	if (work->extras.cxt != NULL)
	{
		MemoryContextReset(work->extras.cxt);
		shown = MemoryContextAlloc(work->extras.cxt, sizeof(uint64) * Max(page->nrows, 1));
	}
	if (!verify_begin_step(verify))
		return;
	target = verify_target_open(verify);
	compare_rows(verify, target, page, shown);
	verify_target_close(target);
	if (shown != NULL)
		begin_extras(work, page, to, shown);
	else
		end_range(work, to, page->is_last);
	verify_end_step(verify);
}

/* Some more of the keys here in the range of the page that was read last. */
static void
look_for_extras(Verify *verify)
{
	VerifyWork *work = verify->work;
	VerifyExtras *extras = &work->extras;
	VerifyTarget *target;

	if (!verify_begin_step(verify))
		return;
	target = verify_target_open(verify);
	if (verify_range_extras(verify, target))
	{
		extras->shown = NULL;
		end_range(work, extras->upper, extras->is_final);
	}
	verify_target_close(target);
	verify_end_step(verify);
}

/* -------------------------------------------------------------------------- steps */

/* Pass over a chunk that the sample does not want: false when it wants it. */
static bool
skip_chunk(Verify *verify)
{
	VerifyWork *work = verify->work;
	bool		is_begin = work->method == VERIFY_METHOD_ROWS || work->level == VERIFY_LEVEL_CHUNK;
	ChunkKey   *bound;

	if (!work->is_sample || !is_begin || work->after == NULL ||
		pg_prng_double(&pg_global_prng_state) * 100.0 < verify->sample_percent)
		return false;
	bound = verify_source_bound(verify, NULL, work->method == VERIFY_METHOD_ROWS ? work->limit
								: work->sum_rows[VERIFY_LEVEL_CHUNK]);
	end_range(work, bound, bound == NULL);
	return true;
}

void
verify_chunk_step(Verify *verify)
{
	VerifyWork *work = verify->work;

	if (work->method == VERIFY_METHOD_OPEN)
		choose_method(verify);
	else if (work->extras.shown != NULL)
		look_for_extras(verify);
	else if (skip_chunk(verify))
		return;
	else if (work->level == VERIFY_LEVEL_ROWS)
		read_rows(verify);
	else if (work->method == VERIFY_METHOD_SUMS)
		compare_sums(verify);
	else
		compare_sums_and_columns(verify);
}
