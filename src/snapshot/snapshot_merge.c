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
 *	  Tables that exchange their names exchange what tells their rows, where that is the
 *	  name. They are copied anew in one round: each takes what another one of the
 *	  round had, whose rows go with that. Should that one stop, so does who took from it:
 *	  both would claim the same rows else.
 *
 *	  Tables come one after the other, also those of several pipelines
 *	  (catalog_lock_merge): each finds the layout that those before it left.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "heap/heap_part.h"
#include "heap/heap_shard.h"
#include "snapshot/snapshot_private.h"
#include "transform/transform_kind.h"
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

/* What keeps two tables from one target, as an error. */
static _Noreturn void
throw_clash(const SnapshotCandidate *c, const CatalogTable *other, char *clash)
{
	if (clash != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("source tables \"%s.%s\" and \"%s.%s\" cannot fill the same rows of target \"%s.%s\"",
						other->source_schema, other->source_table, c->table.source_schema, c->table.source_table,
						c->table.target_schema, c->table.target_table),
				 errdetail_internal("%s", clash),
				 errhint("Give each of them a \"part\" and names of columns of its own (AS in the projection) with the option \"transforms\", then use cdc_resync_table().")));
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("rows of source tables \"%s.%s\" and \"%s.%s\" could not be told apart in target \"%s.%s\"",
					other->source_schema, other->source_table, c->table.source_schema, c->table.source_table,
					c->table.target_schema, c->table.target_table),
			 errdetail("Their columns in the key that say where a row is from have the same values, or are not the same columns."),
			 errhint("Give cdc_server, cdc_schema or cdc_table to the key, as far as they differ, with the option \"transforms\", then use cdc_resync_table().")));
}

/*
 * What tells the candidate's rows. What another table of the round, which is still to have its turn, had until now is free: that one's
 * rows go, as they would then.
 */
Datum
snapshot_merge_own(const SnapshotPrepare *p, SnapshotCandidate *c, HeapRow *row, Oid relid)
{
	Datum		own_rows = heap_shard_own_rows(row);
	ListCell   *lc;

	foreach(lc, c->sharers)
	{
		CatalogTable *other = lfirst(lc);
		bool		is_part = heap_part_is(own_rows) || heap_part_is(other->own_rows);
		char	   *clash = is_part ? heap_part_clash(other->own_rows, own_rows) : NULL;

		if (is_part ? clash == NULL : heap_shard_differs(other->own_rows, own_rows))
			continue;
		if (!list_member_ptr(p->moving, other) || heap_part_is(own_rows) != heap_part_is(other->own_rows))
			throw_clash(c, other, clash);
		(void) heap_shard_empty(relid, other->own_rows);
		c->took_from = lappend(c->took_from, other);
	}
	return own_rows;
}

/* Rows that are there are whole, or have parts: what was one does not become the other. */
static void
check_kind(const SnapshotPrepare *p, const SnapshotCandidate *c, Oid relid)
{
	bool		is_part = transform_table_kind(c->def, &p->options) == TRANSFORM_PARTIAL;
	HeapTarget *target;
	bool		has_rows;

	if (heap_part_is(c->table.own_rows) == is_part)
		return;
	if (c->table.own_rows == (Datum) 0)
	{
		target = heap_target_open(relid, false);
		has_rows = heap_target_has_rows(target);
		heap_target_close(target);
		if (!has_rows)
			return;
	}
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("target table \"%s.%s\" has rows of another kind", c->table.target_schema, c->table.target_table),
			 is_part ? errdetail("Its rows are whole, and option \"%s\" says now that source table \"%s.%s\" fills a part of them.", TRANSFORM_OPTION,
								 c->table.source_schema, c->table.source_table)
			 : errdetail("Several source tables fill parts of its rows, and option \"%s\" says now that those of source table \"%s.%s\" are whole.",
						 TRANSFORM_OPTION, c->table.source_schema, c->table.source_table),
			 errhint("Drop the target, then use cdc_resync_table() for each table that goes there; or let the table leave with cdc_remove_table(), and join again with another target.")));
}

void
snapshot_merge_anew(const SnapshotPrepare *p, SnapshotCandidate *c, Oid relid)
{
	HeapRow    *row;
	Datum		own_rows;

	check_kind(p, c, relid);
	if (c->table.own_rows != (Datum) 0)
		(void) heap_shard_empty(relid, c->table.own_rows);
	snapshot_merge_fit(p, c, relid);
	row = heap_row_open(relid, c->def, &p->options);
	own_rows = snapshot_merge_own(p, c, row, relid);
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

/* ------------------------------------------------------------------- one round */

static CatalogTable *
known_row(const SnapshotCandidate *c, List *known)
{
	ListCell   *lc;

	foreach(lc, known)
	{
		CatalogTable *table = lfirst(lc);

		if (c->is_known && table->table_id == c->table.table_id)
			return table;
	}
	return NULL;
}

void
snapshot_merge_begin_round(SnapshotPrepare *p, List *known)
{
	ListCell   *lc;

	foreach(lc, p->candidates)
	{
		SnapshotCandidate *c = lfirst(lc);
		CatalogTable *table = known_row(c, known);

		if (table != NULL && table->own_rows != (Datum) 0 && c->error == NULL && !c->put_off)
			p->moving = lappend(p->moving, table);
	}
}

void
snapshot_merge_had_turn(SnapshotPrepare *p, const SnapshotCandidate *c, List *known)
{
	CatalogTable *table = known_row(c, known);

	if (table == NULL)
		return;
	p->moving = list_delete_ptr(p->moving, table);
	if (c->error == NULL && !c->put_off)
		table->own_rows = c->table.own_rows;
}

/* Is a table, by its row in the catalog, not copied anew after all? */
static bool
is_left(const SnapshotPrepare *p, const CatalogTable *table)
{
	ListCell   *lc;

	foreach(lc, p->candidates)
	{
		const SnapshotCandidate *c = lfirst(lc);

		if (c->is_known && c->table.table_id == table->table_id)
			return c->error != NULL || c->put_off || !c->had_turn;
	}
	return true;
}

static const CatalogTable *
took_from_left(const SnapshotPrepare *p, const SnapshotCandidate *c)
{
	ListCell   *lc;

	foreach(lc, c->took_from)
	{
		if (is_left(p, lfirst(lc)))
			return lfirst(lc);
	}
	return NULL;
}

void
snapshot_merge_end_round(SnapshotPrepare *p)
{
	bool		any = true;

	while (any)
	{
		ListCell   *lc;

		any = false;
		foreach(lc, p->candidates)
		{
			SnapshotCandidate *c = lfirst(lc);
			const CatalogTable *other = c->error == NULL ? took_from_left(p, c) : NULL;

			if (other == NULL)
				continue;
			c->error = util_error_info_make(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
											psprintf("source table \"%s.%s\" cannot take the rows of source table \"%s.%s\" in target \"%s.%s\"",
													 c->table.source_schema, c->table.source_table, other->source_schema, other->source_table,
													 c->table.target_schema, c->table.target_table),
											pstrdup("Both have other names now, which tell their rows from others, and the other table could not be copied anew."),
											pstrdup("Mend that table, then use cdc_resync_table() for both, in one transaction."));
			c->table.state = CATALOG_TABLE_STOPPED;
			c->table.own_rows = c->own_before;
			any = true;
		}
	}
}
