/*-------------------------------------------------------------------------
 *
 * snapshot_merge.c
 *	  A table finds its place in a target that several source tables share.
 *
 * NOTES
 *	  Its rows lie among those of the others, and only a column of the key tells
 *	  them apart (heap_shard.h). So a new copy has no shadow that could take the
 *	  target's place: its own rows are deleted when it begins, and come again
 *	  chunk by chunk. Readers see them missing meanwhile, never twice.
 *
 *	  Tables come one after the other, also those of several pipelines
 *	  (catalog_lock_merge): each finds the layout that those before it left.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "heap/heap_shard.h"
#include "snapshot/snapshot_private.h"
#include "util/util_lock.h"

/* Does the copy of another table note keys of the target? They are written in the types that it has now. */
static bool
others_are_copied(const SnapshotCandidate *c)
{
	ListCell   *lc;

	foreach(lc, c->sharers)
	{
		const CatalogTable *other = lfirst(lc);

		/* one without a number has not begun */
		if (other->table_id > 0 && (other->state == CATALOG_TABLE_SNAPSHOT || other->state == CATALOG_TABLE_CATCHUP))
			return true;
	}
	return false;
}

void
snapshot_merge_fit(const SnapshotPrepare *p, SnapshotCandidate *c, Oid relid)
{
	char	   *sql;

	util_lock_wait_briefly();
	sql = heap_shard_fit(relid, c->def, &p->options, c->sharers != NIL ? TRANSFORM_MERGE_OR_TEXT : 0, !others_are_copied(c));
	util_lock_wait_long();
	if (sql != NULL)
		ereport(LOG,
				(errmsg("target \"%s.%s\" is altered for source table \"%s.%s\" of pipeline \"%s\"",
						c->table.target_schema, c->table.target_table, c->table.source_schema, c->table.source_table, p->pipeline->name),
				 errdetail("%s", sql)));
}

Datum
snapshot_merge_own(const SnapshotCandidate *c, HeapRow *row)
{
	Datum		own_rows = heap_shard_own_rows(row);
	ListCell   *lc;

	foreach(lc, c->sharers)
	{
		const CatalogTable *other = lfirst(lc);

		if (!heap_shard_differs(other->own_rows, own_rows))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("rows of source tables \"%s.%s\" and \"%s.%s\" could not be told apart in target \"%s.%s\"",
							other->source_schema, other->source_table, c->table.source_schema, c->table.source_table,
							c->table.target_schema, c->table.target_table),
					 errdetail("Their columns in the key that say where a row is from have the same values, or are not the same columns."),
					 errhint("Give cdc_server, cdc_schema or cdc_table to the key, as far as they differ, with the option \"transforms\", then use cdc_resync_table().")));
	}
	return own_rows;
}

void
snapshot_merge_anew(const SnapshotPrepare *p, SnapshotCandidate *c, Oid relid)
{
	HeapRow    *row;
	Datum		own_rows;

	(void) heap_shard_empty(relid, c->table.own_rows);
	snapshot_merge_fit(p, c, relid);
	row = heap_row_open(relid, c->def, &p->options);
	own_rows = snapshot_merge_own(c, row);
	heap_row_close(row);
	if (heap_shard_has_rows(relid, own_rows))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("target table \"%s.%s\" has rows of source table \"%s.%s\" already",
						c->table.target_schema, c->table.target_table, c->table.source_schema, c->table.source_table),
				 errdetail("They are not from this table, which was known by other values of the key until now."),
				 errhint("Delete them, then use cdc_resync_table().")));
	/* only now: when this fails, the rows that are there stay the old ones */
	c->table.own_rows = own_rows;
}
