/*-------------------------------------------------------------------------
 *
 * snapshot_move.c
 *	  A pipeline goes on at another server than before, or from another point.
 *
 * NOTES
 *	  Which server, and from where, was found out by the source (source_choose.c).
 *	  Here it is written down, in one transaction: the position with the new
 *	  server's identity, and what else told of positions in the former log.
 *
 *	  Tables that stream have all that is applied, and the new server sends what
 *	  is not: they go on. A copy that is under way is tied to the server that its
 *	  chunks and marks came from. A chunk may even have seen there what the new
 *	  server never gets. So it begins anew, as another generation of its table,
 *	  which also refuses pages that are still in some worker's memory. A table
 *	  whose first copy it was keeps the rows that it has until the new copy takes
 *	  their place.
 *
 *	  A stopped table had a place from which on nothing is applied; from now on
 *	  nothing is.
 *
 *	  When what lies between is lost (copy_all), all tables are copied anew.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "catalog/catalog_lock.h"
#include "heap/heap_row.h"
#include "schema/table.h"
#include "snapshot/snapshot.h"

static bool
is_copied(const CatalogTable *table)
{
	return table->state == CATALOG_TABLE_SNAPSHOT || table->state == CATALOG_TABLE_CATCHUP;
}

/* Requests to pass over a transaction that were given by its place in the former log. */
static void
drop_skips(const CatalogPipeline *pipeline)
{
	ListCell   *lc;
	char		text[CDC_POSITION_TEXT_MAX];

	foreach(lc, catalog_skip_list(pipeline->id))
	{
		const CatalogSkip *skip = lfirst(lc);

		if (skip->gtid != NULL)
			continue;
		cdc_position_format(&skip->position, text);
		catalog_skip_remove(pipeline->id, skip->skip_id);
		ereport(LOG,
				(errmsg("pipeline \"%s\" will not pass over the source transaction that starts at %s", pipeline->name, text),
				 errdetail("That is a place in the log of the former server."),
				 errhint("Call cdc_skip_transaction() with its GTID.")));
	}
}

/* The mark that tells which XA transactions every chunk has seen; as a set of GTIDs it holds everywhere. */
static void
drop_mark(int32 pipeline_id)
{
	CdcPosition mark;
	char	   *gtids;

	if (!catalog_pipeline_get_snapshot_mark(pipeline_id, &mark, &gtids) || !cdc_position_is_known(&mark))
		return;
	memset(&mark, 0, sizeof(mark));
	catalog_pipeline_set_snapshot_mark(pipeline_id, &mark, NULL);
}

int
snapshot_move_write(const CatalogPipeline *pipeline, CatalogPositionLog *log, const CatalogMove *move)
{
	int			anew = 0;
	ListCell   *lc;

	/* only the ingest worker lets tables join or be handed over; workers that copy are excluded by the tables' locks */
	foreach(lc, catalog_table_list(pipeline->id))
		catalog_lock_table(pipeline->id, ((CatalogTable *) lfirst(lc))->table_id, RowExclusiveLock);
	foreach(lc, catalog_table_list(pipeline->id))
	{
		const CatalogTable *table = lfirst(lc);
		bool		keyless = table->definition != (Datum) 0 && schema_def_is_keyless(table->definition);
		bool		again = is_copied(table) || (move->copy_all && table->state == CATALOG_TABLE_STREAMING);

		anew += again;
		catalog_table_leave_server(pipeline->id, table->table_id, again, keyless);
	}
	drop_mark(pipeline->id);
	drop_skips(pipeline);
	catalog_pipeline_set_failed_transaction(pipeline->id, NULL);
	if (anew > 0)
		catalog_pipeline_ask_tables(pipeline->id);
	catalog_position_log_start(log, move->identity, move->kind, &move->position, move->gtids);
	return anew;
}

void
snapshot_move(const CatalogPipeline *pipeline, CatalogPositionLog *log, const CatalogMove *move)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext cxt = AllocSetContextCreate(caller, "cdc snapshot move", ALLOCSET_DEFAULT_SIZES);
	int			anew;

	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	MemoryContextSwitchTo(cxt);
	anew = snapshot_move_write(pipeline, log, move);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(cxt);

	ereport(LOG,
			(errmsg("pipeline \"%s\" goes on at server \"%s\", %s", pipeline->name, move->identity, move->target),
			 errdetail_internal("%s %d of its tables are copied anew.", move->reason, anew)));
}
