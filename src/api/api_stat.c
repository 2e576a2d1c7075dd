/*-------------------------------------------------------------------------
 *
 * api_stat.c
 *	  The functions behind pg_stat_cdc_pipeline, pg_stat_cdc_table,
 *	  pg_stat_cdc_snapshot, pg_stat_cdc_index, cdc_dead_letters, cdc_schema_history,
 *	  cdc_prepared_transactions and cdc_bridge.position.
 *
 * NOTES
 *	  Each row joins what stands in tables (definition, state, durable position)
 *	  with what workers show in shared memory (pids, counters, times). A role
 *	  sees its own pipelines, a member of pg_monitor all.
 *
 *	  Lag is a bound that never flatters. The worker notes when the source last
 *	  had nothing more to give (after a start not before it has read what the log
 *	  held then), and the commit time of the newest transaction that is durable
 *	  here; a change that is not applied here was committed after
 *	  both (source clocks apart). So lag is the time since the later of the two;
 *	  and 0 when the worker looked just now, nothing arrived since, and all that
 *	  arrived is durable. The worker shows the first event after a silence before
 *	  it works on it; and when it does not come to look, nobody knows what waits.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "api/api.h"
#include "api/api_row.h"
#include "catalog/catalog_history.h"
#include "pipeline/shmem.h"

PG_FUNCTION_INFO_V1(cdc_stat_pipeline);
PG_FUNCTION_INFO_V1(cdc_stat_table);
PG_FUNCTION_INFO_V1(cdc_stat_index);
PG_FUNCTION_INFO_V1(cdc_stat_position);
PG_FUNCTION_INFO_V1(cdc_reset_stats);
PG_FUNCTION_INFO_V1(cdc_stat_schema_history);
PG_FUNCTION_INFO_V1(cdc_stat_prepared);

/* A worker with nothing to do looks every second: one that has not looked for so long does something else. */
#define CAUGHT_UP_MS 3000

#define BAR_WIDTH 20

static void
put_progress_of_transaction(Row *row, const ApplyProgress *progress)
{
	bool		is_none = !cdc_position_is_known(&progress->start);
	char		start[CDC_POSITION_TEXT_MAX];

	if (!is_none)
		cdc_position_format(&progress->start, start);
	put_text(row, is_none ? NULL : start);
	put_time(row, is_none ? 0 : progress->since);
	put_datum(row, Int64GetDatum(progress->changes), is_none);
	put_datum(row, Int64GetDatum(progress->bytes), is_none);
}

Datum
put_pipelines(FunctionCallInfo fcinfo, RowsOfPipeline put)
{
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);
	foreach(lc, catalog_pipeline_list())
	{
		if (api_may_see(lfirst(lc)))
			put((ReturnSetInfo *) fcinfo->resultinfo, lfirst(lc));
	}
	return (Datum) 0;
}

/* Microseconds since 1970 as a timestamp; 0 stays 0. */
static TimestampTz
time_from_unix_us(int64 us)
{
	if (us == 0)
		return 0;
	return us - (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;
}

/* See NOTES. */
static void
put_lag(Row *row, const ShmemPipelineStat *stat, TimestampTz now)
{
	TimestampTz sure = Max(stat->caught_up_at, time_from_unix_us(stat->source_time_us));
	Interval   *lag;
	bool		is_caught_up = stat->ingest_pid != 0 && stat->caught_up_at != 0 &&
		!TimestampDifferenceExceeds(stat->caught_up_at, now, CAUGHT_UP_MS) &&
		stat->caught_up_at >= stat->last_event_at &&
		strcmp(stat->durable.file, stat->streamed.file) == 0 &&
		stat->durable.offset == stat->streamed.offset;

	if (sure == 0)
	{
		put_null(row);
		return;
	}
	lag = palloc0(sizeof(Interval));
	if (!is_caught_up)
		lag->time = Max(now - sure, 0);
	put_datum(row, IntervalPGetDatum(lag), false);
}

/*
 * The target's name as it is now: rows go by its OID, wherever somebody moves
 * it. A table that is gone keeps the name that it had.
 */
static void
put_target(Row *row, const CatalogTable *table)
{
	/* while it is copied anew "target" is what the copy goes into */
	Oid			relid = OidIsValid(table->swap_into) ? table->swap_into : table->target;
	char	   *schema = get_namespace_name(get_rel_namespace(relid));
	char	   *name = get_rel_name(relid);
	bool		exists = schema != NULL && name != NULL;

	put_text(row, exists ? schema : table->target_schema);
	put_text(row, exists ? name : table->target_table);
}

static void
put_table_counts(Row *row, int32 pipeline_id)
{
	List	   *tables = catalog_table_list(pipeline_id);
	int			by_state[CATALOG_TABLE_STOPPED + 1] = {0};
	ListCell   *lc;

	foreach(lc, tables)
		by_state[((CatalogTable *) lfirst(lc))->state]++;
	put_int32(row, list_length(tables));
	put_int32(row, by_state[CATALOG_TABLE_SNAPSHOT] + by_state[CATALOG_TABLE_CATCHUP]);
	put_int32(row, by_state[CATALOG_TABLE_STREAMING]);
	put_int32(row, by_state[CATALOG_TABLE_STOPPED]);
}

static void
put_pipeline(ReturnSetInfo *rsinfo, const CatalogPipeline *pipeline)
{
	const CatalogPosition *durable = catalog_position_load(pipeline->id, false);
	ShmemPipelineStat stat;
	Row			row = {0};

	(void) shmem_pipeline_stat(pipeline->id, &stat);

	put_text(&row, pipeline->name);
	put_int32(&row, pipeline->id);
	put_datum(&row, ObjectIdGetDatum(pipeline->owner), false);
	put_text(&row, pipeline->source);
	put_text(&row, api_pipeline_is_waiting(pipeline) ? API_STATE_WAITING : catalog_pipeline_state_name(pipeline->state));
	put_pid(&row, stat.ingest_pid);
	put_int32(&row, stat.snapshot_workers);
	put_table_counts(&row, pipeline->id);
	put_lag(&row, &stat, GetCurrentTimestamp());
	put_position(&row, durable != NULL ? &durable->position : stat.ingest_pid != 0 ? &stat.durable : NULL);
	put_text(&row, durable != NULL ? durable->gtids : NULL);
	put_position(&row, stat.ingest_pid != 0 ? &stat.streamed : NULL);
	put_progress_of_transaction(&row, &stat.progress);
	put_time(&row, time_from_unix_us(stat.source_time_us));
	put_time(&row, stat.last_event_at);
	put_int64(&row, stat.transactions);
	put_int64(&row, stat.changes);
	put_int64(&row, stat.bytes);
	put_int64(&row, stat.flushes);
	put_int64(&row, catalog_skip_count(pipeline->id));
	put_time(&row, stat.stats_reset);
	put_int32(&row, stat.failures);
	put_time(&row, stat.retry_at);
	put_time(&row, stat.started_at);
	put_error(&row, &pipeline->last_error);
	put_text(&row, pipeline->last_error.position);
	put_time(&row, pipeline->last_error.at);
	put_row(rsinfo, &row);
}

Datum
cdc_stat_pipeline(PG_FUNCTION_ARGS)
{
	return put_pipelines(fcinfo, put_pipeline);
}

/* How far a table's copy is, in tenths of a percent; -1 when nobody can tell. */
static int
snapshot_permille(const CatalogTable *table, int64 rows_copied)
{
	if (table->snapshot_finished_at != 0)
		return 1000;
	if (table->row_estimate <= 0)
		return -1;
	/* the estimate may be too low: complete is only what is complete */
	return (int) Min((double) rows_copied * 1000.0 / (double) table->row_estimate, 999.0);
}

static void
put_progress(Row *row, const CatalogTable *table, int32 chunks, int64 rows_copied)
{
	int			permille = snapshot_permille(table, rows_copied);
	char		bar[BAR_WIDTH + 3];

	put_int32(row, chunks);
	put_datum(row, Int64GetDatum(table->row_estimate), table->row_estimate <= 0);
	if (permille < 0)
		put_null(row);
	else
		put_datum(row, DirectFunctionCall3(numeric_in, CStringGetDatum(psprintf("%d.%d", permille / 10, permille % 10)),
										   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1)), false);

	bar[0] = '[';
	for (int i = 0; i < BAR_WIDTH; i++)
		bar[i + 1] = permille > 0 && i < permille * BAR_WIDTH / 1000 ? '#' : '.';
	bar[BAR_WIDTH + 1] = ']';
	bar[BAR_WIDTH + 2] = '\0';
	put_text(row, bar);

	put_time(row, table->snapshot_started_at);
	put_time(row, table->snapshot_finished_at);
}

static void
put_table(ReturnSetInfo *rsinfo, const CatalogPipeline *pipeline, const CatalogTable *table)
{
	ShmemTableStat stat;
	int32		chunks = table->chunks;
	int64		rows_copied = table->rows_copied;
	char		stop[CDC_POSITION_TEXT_MAX];
	bool		has_stop = table->state == CATALOG_TABLE_STOPPED && cdc_position_is_known(&table->stop_position);
	Row			row = {0};

	shmem_table_stat(pipeline->id, table->table_id, &stat);
	if (table->state == CATALOG_TABLE_SNAPSHOT)
		catalog_chunk_sum(pipeline->id, table->table_id, table->generation, &chunks, &rows_copied);
	if (has_stop)
		cdc_position_format(&table->stop_position, stop);

	put_text(&row, pipeline->name);
	put_text(&row, table->source_schema);
	put_text(&row, table->source_table);
	put_target(&row, table);
	put_text(&row, catalog_table_state_name(table->state));
	put_int64(&row, stat.inserts);
	put_int64(&row, stat.updates);
	put_int64(&row, stat.deletes);
	put_int64(&row, stat.conflicts);
	put_int64(&row, stat.values_replaced);
	put_int64(&row, stat.dead_letters);
	put_int64(&row, stat.letters_lost);
	put_text(&row, stat.tier_is_known ? heap_tier_name(stat.tier) : NULL);
	put_datum(&row, BoolGetDatum(stat.collapsed), !stat.tier_is_known);
	put_int64(&row, rows_copied);
	put_time(&row, stat.last_change_at);
	put_text(&row, has_stop ? stop : NULL);
	put_error(&row, &table->last_error);
	put_time(&row, table->last_error.at);
	put_progress(&row, table, chunks, rows_copied);
	put_row(rsinfo, &row);
}

static void
put_tables(ReturnSetInfo *rsinfo, const CatalogPipeline *pipeline)
{
	ListCell   *lc;

	foreach(lc, catalog_table_list(pipeline->id))
	{
		CHECK_FOR_INTERRUPTS();
		put_table(rsinfo, pipeline, lfirst(lc));
	}
}

Datum
cdc_stat_table(PG_FUNCTION_ARGS)
{
	return put_pipelines(fcinfo, put_tables);
}

/* What was built may have been dropped since, or renamed, which nobody tells us. */
static bool
index_is_there(const CatalogTable *table, const CatalogIndex *index)
{
	Oid			relid;

	if (index->target_index == NULL)
		return false;
	relid = get_relname_relid(index->target_index, get_rel_namespace(table->target));
	return OidIsValid(relid) && IndexGetRelation(relid, true) == table->target;
}

static void
put_index(ReturnSetInfo *rsinfo, const CatalogPipeline *pipeline, const CatalogTable *table, const CatalogIndex *index)
{
	Row			row = {0};

	put_text(&row, pipeline->name);
	put_text(&row, table->source_schema);
	put_text(&row, table->source_table);
	put_text(&row, index->source_index);
	put_target(&row, table);
	put_text(&row, index->target_index);
	put_datum(&row, BoolGetDatum(index->is_unique), false);
	put_text(&row, index->state == CATALOG_INDEX_BUILT && !index_is_there(table, index)
			 ? "dropped" : catalog_index_state_name(index->state));
	put_text(&row, index->reason);
	put_text(&row, index->statement);
	put_time(&row, index->started_at);
	put_time(&row, index->finished_at);
	put_error(&row, &index->last_error);
	put_row(rsinfo, &row);
}

static void
put_indexes(ReturnSetInfo *rsinfo, const CatalogPipeline *pipeline)
{
	List	   *tables = catalog_table_list(pipeline->id);
	ListCell   *table = list_head(tables);
	ListCell   *lc;

	/* both lists are in the order of table_id */
	foreach(lc, catalog_index_list(pipeline->id))
	{
		const CatalogIndex *index = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		while (table != NULL && ((CatalogTable *) lfirst(table))->table_id < index->table_id)
			table = lnext(tables, table);
		if (table != NULL && ((CatalogTable *) lfirst(table))->table_id == index->table_id)
			put_index(rsinfo, pipeline, lfirst(table), index);
	}
}

Datum
cdc_stat_index(PG_FUNCTION_ARGS)
{
	return put_pipelines(fcinfo, put_indexes);
}

static void
put_positions(ReturnSetInfo *rsinfo, const CatalogPipeline *pipeline)
{
	const CatalogPosition *position = catalog_position_load(pipeline->id, false);
	Row			row = {0};

	if (position == NULL)
		return;
	put_text(&row, pipeline->name);
	put_int32(&row, pipeline->id);
	put_text(&row, position->identity);
	put_position(&row, &position->position);
	put_text(&row, position->gtids);
	put_time(&row, position->committed_at);
	put_time(&row, position->position.born == 0 ? 0 : time_t_to_timestamptz((pg_time_t) position->position.born));
	put_row(rsinfo, &row);
}

Datum
cdc_stat_position(PG_FUNCTION_ARGS)
{
	return put_pipelines(fcinfo, put_positions);
}

/* Counters live in shared memory: they are set to zero at once, whether or not the transaction commits. */
Datum
cdc_reset_stats(PG_FUNCTION_ARGS)
{
	ListCell   *lc;

	if (!PG_ARGISNULL(0))
	{
		char	   *name = api_name_arg(fcinfo);
		CatalogPipeline *pipeline = catalog_pipeline_by_name(name);

		if (pipeline == NULL)
			api_no_pipeline(name, NULL);
		api_check_owner(pipeline);
		shmem_reset_stats(pipeline->id);
		PG_RETURN_VOID();
	}
	foreach(lc, catalog_pipeline_list())
	{
		const CatalogPipeline *pipeline = lfirst(lc);

		if (has_privs_of_role(GetUserId(), pipeline->owner))
			shmem_reset_stats(pipeline->id);
	}
	PG_RETURN_VOID();
}

/* Statements may hold values (defaults), so this too is for those who may act for the owner. */
static void
put_schema_history(ReturnSetInfo *rsinfo, const CatalogPipeline *pipeline)
{
	ListCell   *lc;

	if (!has_privs_of_role(GetUserId(), pipeline->owner))
		return;
	foreach(lc, catalog_history_list(pipeline->id))
	{
		const CatalogSchemaChange *change = lfirst(lc);
		Row			row = {0};

		CHECK_FOR_INTERRUPTS();
		put_text(&row, pipeline->name);
		put_int32(&row, change->change_no);
		put_text(&row, change->source_schema);
		put_text(&row, change->source_table);
		put_position(&row, &change->position);
		put_text(&row, change->gtid_text);
		put_time(&row, change->source_time);
		put_list(&row, change->kind_names, true);
		put_text(&row, change->statement);
		put_list(&row, change->commands, true);
		put_text(&row, change->result_name);
		put_error(&row, &change->shown_error);
		put_time(&row, change->created_at);
		put_row(rsinfo, &row);
	}
}

Datum
cdc_stat_schema_history(PG_FUNCTION_ARGS)
{
	return put_pipelines(fcinfo, put_schema_history);
}

/* Prepared XA transactions: what is kept of them holds values, how much it is does not. */
static void
put_prepared(ReturnSetInfo *rsinfo, const CatalogPipeline *pipeline)
{
	ListCell   *lc;

	foreach(lc, catalog_prepared_list(pipeline->id))
	{
		const CatalogPrepared *prepared = lfirst(lc);
		Row			row = {0};

		put_text(&row, pipeline->name);
		put_text(&row, prepared->xid);
		put_position(&row, &prepared->position);
		put_time(&row, prepared->prepared_at);
		put_list(&row, prepared->source_tables, prepared->has_tables);
		put_int64(&row, prepared->changes);
		put_int64(&row, prepared->bytes);
		put_row(rsinfo, &row);
	}
}

Datum
cdc_stat_prepared(PG_FUNCTION_ARGS)
{
	return put_pipelines(fcinfo, put_prepared);
}
