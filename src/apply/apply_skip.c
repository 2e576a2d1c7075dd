/*-------------------------------------------------------------------------
 *
 * apply_skip.c
 *	  Source transactions that somebody asked to pass over.
 *
 * NOTES
 *	  Requests are read once, when the worker starts; a new one makes the
 *	  worker start anew. A request is told by where its transaction starts or by
 *	  its GTID. It is marked as done in the PostgreSQL transaction that carries
 *	  the position behind the source transaction, and stays in memory until the
 *	  worker ends: when that is undone, the source transaction comes again.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "apply/apply_private.h"

void
apply_skips_load(Apply *apply)
{
	MemoryContext caller = CurrentMemoryContext;
	List	   *skips;
	ListCell   *lc;

	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	skips = catalog_skip_list(apply->pipeline_id);
	MemoryContextSwitchTo(apply->cxt);
	foreach(lc, skips)
	{
		const CatalogSkip *from = lfirst(lc);
		CatalogSkip *skip = palloc(sizeof(CatalogSkip));

		*skip = *from;
		skip->gtid = from->gtid != NULL ? pstrdup(from->gtid) : NULL;
		apply->skips = lappend(apply->skips, skip);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(caller);
}

CatalogSkip *
apply_skip_find(Apply *apply, const CdcPosition *start, const CdcGtid *gtid)
{
	char		name[CDC_GTID_TEXT_MAX];
	ListCell   *lc;

	cdc_gtid_format(gtid, name);
	foreach(lc, apply->skips)
	{
		CatalogSkip *skip = lfirst(lc);

		if (skip->gtid != NULL ? strcmp(skip->gtid, name) == 0
			: skip->position.offset == start->offset && strcmp(skip->position.file, start->file) == 0)
			return skip;
	}
	return NULL;
}

void
apply_skip_done(Apply *apply, CatalogSkip *skip, const CdcPosition *start, int64 changes)
{
	char		position[CDC_POSITION_TEXT_MAX];

	cdc_position_format(start, position);
	apply_begin(apply);
	PushActiveSnapshot(GetTransactionSnapshot());
	catalog_skip_set_done(apply->pipeline_id, skip->skip_id, start, changes);
	PopActiveSnapshot();
	ereport(LOG,
			(errmsg("source transaction at %s is passed over by pipeline \"%s\"", position, apply->pipeline_name),
			 errdetail_plural("It has " INT64_FORMAT " row change.", "It has " INT64_FORMAT " row changes.",
							  (unsigned long) changes, changes),
			 errhint("What it changed is missing in the target tables.")));
}
