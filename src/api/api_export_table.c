/*-------------------------------------------------------------------------
 *
 * api_export_table.c
 *	  The function behind pg_stat_cdc_export_table.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"

#include "api/api.h"
#include "catalog/catalog_export_copy.h"

PG_FUNCTION_INFO_V1(cdc_stat_export_table);

#define STAT_EXPORT_TABLE_COLUMNS 15

/* ... of which that many say why it is stopped. */
#define STOP_COLUMNS 6

/* What chunks that do not count for good yet add to their table. */
static void
add_chunks(CatalogExportTable *table, const List *chunks)
{
	const ListCell *lc;

	foreach(lc, chunks)
	{
		const CatalogExportChunk *chunk = lfirst(lc);

		if (chunk->table_id != table->table_id)
			continue;
		if (chunk->kind == CATALOG_EXPORT_ANEW)
			table->rows_copied = table->chunks = 0;
		table->rows_copied += chunk->rows;
		table->chunks += chunk->kind == CATALOG_EXPORT_RANGE;
	}
}

static void
put_stop(const CatalogExportTable *table, Datum *values, bool *nulls, int at)
{
	const char *texts[] = {table->stop_error.message, table->stop_error.sqlstate, table->stop_error.detail, table->stop_error.hint};
	bool		is_stopped = table->state == CATALOG_EXPORT_STOPPED;

	values[at] = LSNGetDatum(table->stop_lsn != 0 ? table->stop_lsn : table->stop_end_lsn);
	nulls[at++] = !is_stopped;
	for (int i = 0; i < (int) lengthof(texts); i++)
	{
		nulls[at] = !is_stopped || texts[i] == NULL;
		values[at] = nulls[at] ? (Datum) 0 : CStringGetTextDatum(texts[i]);
		at++;
	}
	values[at] = TimestampTzGetDatum(table->stopped_at);
	nulls[at] = !is_stopped;
}

static void
put_tables(ReturnSetInfo *rsinfo, const CatalogPipeline *pipeline)
{
	const List *chunks = catalog_export_chunk_list(pipeline->id);
	ListCell   *lc;

	foreach(lc, catalog_export_table_list(pipeline->id))
	{
		CatalogExportTable *table = lfirst(lc);
		Datum		values[STAT_EXPORT_TABLE_COLUMNS];
		bool		nulls[STAT_EXPORT_TABLE_COLUMNS] = {false};
		int			n = 0;

		if (table->state == CATALOG_EXPORT_REMOVED)
			continue;
		add_chunks(table, chunks);
		values[n++] = CStringGetTextDatum(pipeline->name);
		values[n++] = CStringGetTextDatum(table->schema);
		values[n++] = CStringGetTextDatum(table->name);
		values[n++] = ObjectIdGetDatum(table->relid);
		values[n++] = CStringGetTextDatum(catalog_export_table_state_name(table->state));
		values[n++] = Int64GetDatum(table->rows_copied);
		values[n++] = Int32GetDatum(table->chunks);
		values[n++] = TimestampTzGetDatum(table->started_at);
		nulls[n] = table->finished_at == 0;
		values[n++] = TimestampTzGetDatum(table->finished_at);
		put_stop(table, values, nulls, n);
		n += STOP_COLUMNS;
		Assert(n == STAT_EXPORT_TABLE_COLUMNS);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
}

Datum
cdc_stat_export_table(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);
	foreach(lc, api_visible_pipelines())
	{
		const CatalogPipeline *pipeline = lfirst(lc);

		if (pipeline->sink != NULL)
			put_tables(rsinfo, pipeline);
	}
	return (Datum) 0;
}
