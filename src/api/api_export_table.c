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

#include "api/api_row.h"
#include "catalog/catalog_export_copy.h"

PG_FUNCTION_INFO_V1(cdc_stat_export_table);

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
put_stop(Row *row, const CatalogExportTable *table)
{
	static const CatalogError none;
	bool		is_stopped = table->state == CATALOG_EXPORT_STOPPED;

	put_lsn(row, !is_stopped ? InvalidXLogRecPtr : table->stop_lsn != 0 ? table->stop_lsn : table->stop_end_lsn);
	put_error(row, is_stopped ? &table->stop_error : &none);
	put_time(row, is_stopped ? table->stopped_at : 0);
}

static void
put_tables(ReturnSetInfo *rsinfo, const CatalogPipeline *pipeline)
{
	const List *chunks = catalog_export_chunk_list(pipeline->id);
	ListCell   *lc;

	foreach(lc, catalog_export_table_list(pipeline->id))
	{
		CatalogExportTable *table = lfirst(lc);
		Row			row = {0};

		if (table->state == CATALOG_EXPORT_REMOVED)
			continue;
		add_chunks(table, chunks);
		put_text(&row, pipeline->name);
		put_text(&row, table->schema);
		put_text(&row, table->name);
		put_datum(&row, ObjectIdGetDatum(table->relid), false);
		put_text(&row, catalog_export_table_state_name(table->state));
		put_int64(&row, table->rows_copied);
		put_int32(&row, table->chunks);
		put_time(&row, table->started_at);
		put_time(&row, table->finished_at);
		put_stop(&row, table);
		put_row(rsinfo, &row);
	}
}

Datum
cdc_stat_export_table(PG_FUNCTION_ARGS)
{
	return put_pipelines(fcinfo, put_tables);
}
