/*-------------------------------------------------------------------------
 *
 * snapshot_join.c
 *	  Tables join a stream that is running, or begin anew in it.
 *
 * NOTES
 *	  Two halves. The ingest worker, between two source transactions and with
 *	  nothing open, looks for tables that want to join and writes them down with
 *	  the durable position as their join position J (snapshot_join): from J on
 *	  the stream applies their changes. Nobody waits there for the source to
 *	  show anything.
 *
 *	  J is where the log was read up to, and the log moves before the engine does:
 *	  a SELECT may not see yet what lies before J. So the snapshot worker asks for
 *	  start marks until one contains everything before J, and only then allows
 *	  chunks to be read (snapshot_join_allow). What is not in that mark comes
 *	  after J, in the stream.
 *
 *	  The same goes for definitions: a statement that stands before J in the log
 *	  may not show in information_schema yet when the definition is read. It is
 *	  read again when chunks are allowed, and must be the same. Statements after J
 *	  stop the table when they come in the stream.
 *
 *	  A table that a look finds new is perhaps one of ours, which got its name in a
 *	  statement that the stream has not come to: it would be followed twice. So it
 *	  joins when the stream has passed where the log ended at that look, unless the
 *	  list names it.
 *
 *	  Nor does anybody wait there for a table that is locked at the source: all the
 *	  others would wait with it. It is put off: its row tells that it is locked and
 *	  that a copy is still wanted, and it is tried again every few seconds. One that
 *	  was to be copied anew goes on as it was until then; one that is new is
 *	  stopped, without a definition.
 *
 *	  XA transactions that were prepared before J and are not ended: their changes
 *	  stand before J, so only a chunk can bring them. See the mark that is read
 *	  when chunks are allowed, and apply/ for what it is compared with.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "catalog/catalog_lock.h"
#include "catalog/catalog_shadow.h"
#include "heap/heap_hint.h"
#include "heap/heap_part.h"
#include "heap/heap_row.h"
#include "snapshot/snapshot_private.h"
#include "transform/transform_kind.h"
#include "transform/transform_rule.h"
#include "transform/transform_table.h"
#include "util/util_lock.h"
#include "util/util_name.h"
#include "util/util_pattern.h"
#include "util/util_wait.h"

/* ------------------------------------------------------------- the ingest worker */

/* Is a table still to be copied anew, because it was put off? */
static bool
any_wants(int32 pipeline_id)
{
	ListCell   *lc;

	foreach(lc, catalog_table_list(pipeline_id))
	{
		if (((CatalogTable *) lfirst(lc))->resync_wanted)
			return true;
	}
	return false;
}

/*
 * What wants to be taken up; false when nothing does. The number of the newest
 * wish is read before the list that it concerns.
 */
static bool
read_wishes(int32 pipeline_id, bool again, CatalogPipeline **pipeline, int32 *asked, List **known, List **left)
{
	MemoryContext cxt = CurrentMemoryContext;
	bool		due;

	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	MemoryContextSwitchTo(cxt);
	*pipeline = catalog_pipeline_by_id(pipeline_id);
	due = *pipeline != NULL &&
		((*pipeline)->tables_asked != (*pipeline)->tables_done || (again && any_wants(pipeline_id)));
	if (due)
	{
		*asked = (*pipeline)->tables_asked;
		*pipeline = catalog_pipeline_by_id(pipeline_id);
		due = *pipeline != NULL;
		*known = catalog_table_list(pipeline_id);
		*left = catalog_table_list_left(pipeline_id);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(cxt);
	return due;
}

/* Tables that the list no longer means leave too: it may have been changed while they joined. */
static List *
without_unwanted(const CatalogPipeline *pipeline, List *known, List **left)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, known)
	{
		CatalogTable *table = lfirst(lc);

		if (util_patterns_match(pipeline->tables, util_name_to_source(table->source_schema),
								 util_name_to_source(table->source_table), NULL))
			result = lappend(result, table);
		else
			*left = lappend(*left, table);
	}
	return result;
}

/* Was it locked at the source the last time that it was tried? */
static bool
was_put_off(const CatalogTable *table)
{
	return table->resync_wanted && table->last_error.sqlstate != NULL &&
		strcmp(table->last_error.sqlstate, unpack_sql_state(ERRCODE_LOCK_NOT_AVAILABLE)) == 0;
}

/* A table that a look at the source found new, or gone, and where the source's log ended then. */
typedef struct SeenTable
{
	char	   *schema;
	char	   *name;
	bool		again;			/* also by the look that is under way */
	CdcPosition log_end;
} SeenTable;

static List *seen_tables = NIL; /* of SeenTable, in TopMemoryContext */

static SeenTable *
find_seen(const char *schema, const char *name)
{
	ListCell   *lc;

	foreach(lc, seen_tables)
	{
		SeenTable  *seen = lfirst(lc);

		if (strcmp(seen->schema, schema) == 0 && strcmp(seen->name, name) == 0)
			return seen;
	}
	return NULL;
}

static void
forget_seen(const char *schema, const char *name)
{
	SeenTable  *seen = find_seen(schema, name);

	if (seen == NULL)
		return;
	seen_tables = list_delete_ptr(seen_tables, seen);
	pfree(seen->schema);
	pfree(seen->name);
	pfree(seen);
}

/* What a whole look did not meet has come back, or gone. */
static void
forget_unseen(void)
{
	List	   *before = list_copy(seen_tables);
	ListCell   *lc;

	foreach(lc, before)
	{
		SeenTable  *seen = lfirst(lc);

		if (!seen->again)
			forget_seen(seen->schema, seen->name);
		else
			seen->again = false;
	}
}

/* Where the source's log ends; asked for once in a look. */
static const CdcPosition *
log_end(SnapshotPrepare *p, MysqlSession *session)
{
	if (!cdc_position_is_known(&p->log_end))
		mysql_server_log_position(session, p->info, &p->log_end);
	return &p->log_end;
}

/* Where the stream has to have come to before a table counts as new, or gone: what became of it may stand before that. */
static const CdcPosition *
note_seen(SnapshotPrepare *p, MysqlSession *session, const char *schema, const char *name)
{
	SeenTable  *seen = find_seen(schema, name);
	MemoryContext old;

	if (seen != NULL)
	{
		seen->again = true;
		return &seen->log_end;
	}
	old = MemoryContextSwitchTo(TopMemoryContext);
	seen = palloc0(sizeof(SeenTable));
	seen->schema = pstrdup(schema);
	seen->name = pstrdup(name);
	seen->again = true;
	seen_tables = lappend(seen_tables, seen);
	MemoryContextSwitchTo(old);
	seen->log_end = *log_end(p, session);
	return &seen->log_end;
}

static bool
is_passed(const CatalogPosition *durable, const CdcPosition *position)
{
	int			order;

	return cdc_position_compare(&durable->position, position, &order) ? order >= 0 : true;
}

bool
snapshot_join_is_early(SnapshotPrepare *p, MysqlSession *session, const char *schema, const char *name)
{
	const CdcPosition *until = note_seen(p, session, schema, name);

	if (is_passed(p->durable, until))
	{
		forget_seen(schema, name);
		return false;
	}
	*p->awaited = *until;
	p->more_later = true;
	return true;
}

/*
 * A table that is to be copied anew becomes a candidate. One that the source does not have is left for later while
 * the stream has not come to where that was seen, which is awaited: it may have been dropped or renamed before that.
 */
static void
add_known(SnapshotPrepare *p, MysqlSession *session, const CatalogTable *table)
{
	SnapshotCandidate *c = palloc0(sizeof(SnapshotCandidate));
	bool		is_missing;

	c->is_known = true;
	c->table = *table;
	if (table->keeps_rows)
	{
		c->error = util_error_info_make(CDC_ERRCODE_TABLE_CHANGED,
									   psprintf("source table \"%s.%s\" is not copied anew by itself", table->source_schema, table->source_table),
									   pstrdup("The target keeps rows that a statement of the source removed, as the option \"schema_changes\" has it, and a new copy would not have them."),
									   pstrdup("Save the rows that you want to keep, then use cdc_resync_table()."));
		p->candidates = lappend(p->candidates, c);
		return;
	}
	snapshot_describe(p, session, util_name_to_source(table->source_schema), util_name_to_source(table->source_table), c);
	is_missing = c->def == NULL && c->error == NULL;
	if (is_missing)
	{
		const CdcPosition *until = note_seen(p, session, table->source_schema, table->source_table);

		if (!is_passed(p->durable, until))
		{
			*p->awaited = *until;
			return;
		}
	}
	forget_seen(table->source_schema, table->source_table);
	if (is_missing)
		c->error = util_error_info_make(CDC_ERRCODE_TABLE_CHANGED,
									   psprintf("source table \"%s.%s\" does not exist",
												table->source_schema, table->source_table),
									   pstrdup("It was to be copied anew, and the source has no such table that the user may read."),
									   pstrdup("Let it leave the pipeline with cdc_remove_table(), or use cdc_resync_table() when it is there again."));
	p->candidates = lappend(p->candidates, c);
}

/* Who was put off longest ago comes first, after those that were not: only a few locked tables are waited for. */
static int
compare_put_off(const ListCell *a, const ListCell *b)
{
	const CatalogTable *ta = lfirst(a);
	const CatalogTable *tb = lfirst(b);
	TimestampTz at = was_put_off(ta) ? ta->last_error.at : 0;
	TimestampTz bt = was_put_off(tb) ? tb->last_error.at : 0;

	return at < bt ? -1 : at > bt ? 1 : 0;
}

/* Does a copy begin anew because the table's shape changed? Nothing of it counts meanwhile. */
static bool
begins_anew(const CatalogTable *table)
{
	return table->state == CATALOG_TABLE_SNAPSHOT && table->resync_wanted && !table->chunks_allowed;
}

/*
 * Is it too early for a table that begins anew? The stream has to come to where the log ended when it was first looked at
 * (its high mark, as long as it has no place in the stream), so that it does not meet changes of shape again that the
 * definition has. That place is awaited.
 */
static bool
is_too_early(SnapshotPrepare *p, MysqlSession *session, CatalogTable *table)
{
	if (!begins_anew(table))
		return false;
	if (!cdc_position_is_known(&table->high_mark))
	{
		table->high_mark = *log_end(p, session);
		p->marked = lappend(p->marked, table);
	}
	if (is_passed(p->durable, &table->high_mark))
		return false;
	*p->awaited = table->high_mark;
	return true;
}

/* All talk with the source: which tables, and how they look. */
static void
ask_source(SnapshotPrepare *p, const MysqlEndpoint *endpoint, List *known)
{
	MysqlSession *session = mysql_server_open(endpoint, p->durable->identity, &p->info);
	List	   *in_turn = list_copy(known);
	ListCell   *lc;

	list_sort(in_turn, compare_put_off);
	foreach(lc, in_turn)
	{
		CatalogTable *table = lfirst(lc);

		if (table->resync_wanted && !is_too_early(p, session, table))
			add_known(p, session, table);
	}
	snapshot_read_tables(p, session, known);
	if (!p->more)
		forget_unseen();
	mysql_session_close(session);
}

/* Has the target no primary key, although the source has one? The rows that it has could not be given it, see snapshot_fit.c. */
static bool
lacks_key(const SnapshotPrepare *p, const SnapshotCandidate *c, Oid relid)
{
	Relation	rel;
	bool		result;

	if (c->def->nkey == 0 || p->rules.mode == CATALOG_MODE_LENIENT || transform_table_rule(c->def, &p->options) != NULL)
		return false;
	rel = relation_open(relid, AccessShareLock);
	list_free(RelationGetIndexList(rel));
	result = rel->rd_rel->relkind == RELKIND_RELATION && !OidIsValid(rel->rd_pkindex);
	relation_close(rel, NoLock);
	return result;
}

/* Where a table that is copied anew goes to: table.target is the table that it went to until now. */
static void
anew_target(const SnapshotPrepare *p, SnapshotCandidate *c)
{
	Oid			relid = c->table.target;
	HeapRow    *row;
	bool		has_rows;

	c->table.swap_into = InvalidOid;
	if (!OidIsValid(relid) || !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
	{
		if (heap_part_is(c->table.own_rows))
		{
			/* as the options say now */
			c->is_merged = transform_kind_shares(p->routes, &p->options, c->table.source_schema, c->table.source_table);
			c->table.own_rows = (Datum) 0;
		}
		snapshot_make_target(p, c);
		return;
	}

	if (c->is_merged)
	{
		snapshot_merge_anew(p, c, relid);
		return;
	}
	snapshot_fit_target(p, c, relid);
	c->key_waits = lacks_key(p, c, relid);
	if (c->key_waits)
	{
		c->table.swap_into = relid;
		snapshot_make_shadow(p, c);
		heap_row_close(heap_row_open(c->table.target, c->def, &p->options));
		return;
	}
	/* opening checks rights, key and columns */
	row = heap_row_open(relid, c->def, &p->options);
	has_rows = heap_target_has_rows(row->target);
	heap_row_close(row);
	if (has_rows && c->def->nkey == 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s.%s\" cannot be copied anew beside its rows", c->table.target_schema, c->table.target_table),
				 errdetail("The source table has no key."),
				 errhint("Empty it with TRUNCATE, then use cdc_resync_table().")));
	if (has_rows)
	{
		c->table.swap_into = relid;
		snapshot_make_shadow(p, c);
	}
}

/*
 * Under its lock: is the table still to be copied anew? Takes over where it goes,
 * and removes the shadow of a copy that is given up.
 */
static bool
take_known(const SnapshotPrepare *p, SnapshotCandidate *c)
{
	CatalogTable *now = catalog_table_by_id(c->table.pipeline_id, c->table.table_id);

	if (now == NULL || !now->resync_wanted)
		return false;
	c->table.generation = now->generation;
	c->table.target = now->target;
	c->before = now->definition;
	c->was_copying = begins_anew(now);
	c->table.own_rows = c->own_before = now->own_rows;
	c->is_merged = now->own_rows != (Datum) 0 ||
		(c->def != NULL && transform_table_kind(c->def, &p->options) == TRANSFORM_PARTIAL);
	if (OidIsValid(now->swap_into))
	{
		catalog_shadow_drop(now->target);
		c->table.target = now->swap_into;
		c->lost_shadow = true;
	}
	return true;
}

/* Is it still to be copied anew? It stays as it is. */
static bool
still_wants(const SnapshotCandidate *c)
{
	const CatalogTable *now = catalog_table_by_id(c->table.pipeline_id, c->table.table_id);

	return now != NULL && now->resync_wanted;
}

/* Was it put off whenever it was tried, so that it joins only now, as the pipeline's options say? */
static bool
is_first_time(const CatalogTable *table)
{
	return was_put_off(table) && !OidIsValid(table->target) && table->definition == (Datum) 0;
}

/* False when others use the target that is to be altered: the table is put off. */
static bool
try_target(SnapshotPrepare *p, SnapshotCandidate *c, Oid before)
{
	char	   *pids;

	if (snapshot_try_target(p, c, c->is_known ? anew_target : snapshot_make_target))
		return true;
	pids = util_lock_holders(before);
	c->table.target = before;
	c->put_off = true;
	c->error = util_error_info_make(ERRCODE_LOCK_NOT_AVAILABLE,
								   psprintf("target of source table \"%s.%s\" waits to be altered", c->table.source_schema, c->table.source_table),
								   psprintf("%s%s. The table is tried again every %d s; the others go on.",
											pids != NULL ? "Sessions that use it: " : "Other sessions use it", pids != NULL ? pids : "",
											SNAPSHOT_RETRY_SECONDS),
								   pstrdup("Look at these in pg_stat_activity, and end transactions that are left open."));
	return false;
}

static void
find_target(SnapshotPrepare *p, SnapshotCandidate *c, List *taken)
{
	Oid			before = c->table.target;

	if (c->error == NULL)
		c->error = snapshot_refuse_early(p, c, taken);
	if (c->error == NULL && !try_target(p, c, before))
		return;
	if (c->error == NULL)
		return;
	c->table.state = CATALOG_TABLE_STOPPED;
	c->table.swap_into = InvalidOid;
	if (c->is_known)
	{
		c->table.target = before;
		if (ERRCODE_TO_CATEGORY(c->error->sqlstate) == ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION)
			c->error->hint = pstrdup("The rows that are there do not fit the table's present shape. Empty the target with TRUNCATE, then use cdc_resync_table().");
		else if (c->error->hint == NULL && (c->error->hint = heap_ddl_hint(before, c->error->sqlstate)) == NULL)
			c->error->hint = pstrdup("Mend the cause, then use cdc_resync_table().");
	}
}

/* What the catalog gets to know of a candidate. */
static void
write_candidate(const SnapshotPrepare *p, SnapshotCandidate *c, const CatalogPosition *durable, int32 asked)
{
	CatalogTable *table = &c->table;
	char		position[CDC_POSITION_TEXT_MAX];

	if (c->def != NULL)
	{
		table->definition = schema_def_to_jsonb(c->def);
		table->row_estimate = c->def->row_estimate > PG_INT64_MAX ? PG_INT64_MAX : (int64) c->def->row_estimate;
	}
	/* above all that were before: wishes are counted */
	table->generation = Max(table->generation, asked) + 1;
	table->join_position = durable->position;
	table->join_gtids = durable->gtids;
	if (c->def != NULL && c->def->nkey == 0 && table->state == CATALOG_TABLE_SNAPSHOT)
	{
		/* joins at the mark of its copy */
		memset(&table->join_position, 0, sizeof(table->join_position));
		table->join_gtids = NULL;
	}
	memset(&table->high_mark, 0, sizeof(table->high_mark));
	memset(&table->stop_position, 0, sizeof(table->stop_position));
	if (c->is_known)
	{
		catalog_table_begin_anew(table, c->error);
		catalog_table_set_names(table);
	}
	else
		catalog_table_insert(table, c->error);

	if (c->error != NULL)
	{
		snapshot_log_stopped(p, c);
		return;
	}
	/* a table that keeps its place keeps its indexes, and the plan of those to come */
	if (c->is_first || c->made)
		snapshot_index_plan(p->pipeline, table, c->def, &p->options, c->made);
	if (c->keeps_rows)
		catalog_deleted_keep_all(table->pipeline_id, table->table_id);
	snapshot_fit_note(p, c, &durable->position);
	if (cdc_position_is_known(&table->join_position))
		cdc_position_format(&table->join_position, position);
	else
		snprintf(position, sizeof(position), "the mark of its copy");
	ereport(LOG,
			(!c->is_first
			 ? errmsg("source table \"%s.%s\" of pipeline \"%s\" is copied anew from %s on",
					  table->source_schema, table->source_table, p->pipeline->name, position)
			 : errmsg("source table \"%s.%s\" joins pipeline \"%s\" at %s",
					  table->source_schema, table->source_table, p->pipeline->name, position)));
}

/* It is locked at the source: one that is known stays as it is, another is stopped until it can be had. */
static void
write_put_off(const SnapshotPrepare *p, SnapshotCandidate *c, int32 asked)
{
	CatalogTable *table = &c->table;

	if (!c->is_known)
	{
		table->state = CATALOG_TABLE_STOPPED;
		table->target = InvalidOid;
		table->generation = Max(table->generation, asked) + 1;
		catalog_table_insert(table, c->error);
	}
	if (c->lost_shadow)
	{
		/* its former copy was given up already */
		catalog_table_copy_anew(table->pipeline_id, table->table_id);
		catalog_table_end_shadow(table->pipeline_id, table->table_id);
	}
	catalog_table_put_off(table->pipeline_id, table->table_id, c->error);
	if (!c->is_known || !was_put_off(table))
		ereport(LOG,
				(errcode(c->error->sqlstate),
				 errmsg("source table \"%s.%s\" of pipeline \"%s\" cannot join yet: it is locked",
						table->source_schema, table->source_table, p->pipeline->name),
				 errdetail("%s", c->error->detail),
				 errhint("%s", c->error->hint)));
}

/* All that is written, in one transaction: locks of tables, relations, then catalog rows. */
static void
write_down(SnapshotPrepare *p, List *known, List *left, const CatalogPosition *durable, int32 asked)
{
	MemoryContext cxt = CurrentMemoryContext;
	List	   *due = NIL;
	List	   *taken;
	ListCell   *lc;

	heap_transaction_begin();
	MemoryContextSwitchTo(cxt);
	snapshot_lock_merge(p);
	foreach(lc, p->candidates)
	{
		const SnapshotCandidate *c = lfirst(lc);

		if (heap_part_is(c->table.own_rows))
			catalog_lock_target(c->table.target);
	}
	foreach(lc, left)
		catalog_lock_table(p->pipeline->id, ((CatalogTable *) lfirst(lc))->table_id, RowExclusiveLock);
	foreach(lc, p->candidates)
	{
		SnapshotCandidate *c = lfirst(lc);

		if (c->is_known)
			catalog_lock_table(p->pipeline->id, c->table.table_id, RowExclusiveLock);
	}
	PushActiveSnapshot(GetTransactionSnapshot());

	foreach(lc, left)
	{
		const CatalogTable *table = lfirst(lc);

		if (OidIsValid(table->swap_into))
			catalog_shadow_drop(table->target);
	}
	taken = list_concat(snapshot_targets_of_others(p->pipeline), list_copy(known));
	snapshot_merge_begin_round(p, known);
	foreach(lc, p->candidates)
	{
		SnapshotCandidate *c = lfirst(lc);
		List	   *others = list_copy(taken);
		ListCell   *lc2;

		util_check_interrupts();
		if (c->put_off)
		{
			if (!c->is_known || still_wants(c))
				due = lappend(due, c);
			continue;
		}
		if (c->is_known && !take_known(p, c))
			continue;
		foreach(lc2, others)
		{
			const CatalogTable *other = lfirst(lc2);

			/* its own place, or one that never got there */
			if ((c->is_known && other->pipeline_id == p->pipeline->id && other->table_id == c->table.table_id) ||
				(other->state == CATALOG_TABLE_STOPPED && !OidIsValid(other->target)))
				others = foreach_delete_current(others, lc2);
		}
		c->is_first = !c->is_known || is_first_time(&c->table);
		/* one that never came to its target goes where the options say now */
		if (c->is_known && !OidIsValid(c->table.target))
			snapshot_find_place(p, c);
		c->table.state = c->is_first ? snapshot_start_state(&p->start) : CATALOG_TABLE_SNAPSHOT;
		find_target(p, c, others);
		c->had_turn = true;
		snapshot_merge_had_turn(p, c, known);
		if (!c->is_known)
			taken = lappend(taken, &c->table);
		due = lappend(due, c);
	}
	snapshot_merge_end_round(p);

	foreach(lc, p->marked)
	{
		const CatalogTable *table = lfirst(lc);

		catalog_table_set_high_mark(p->pipeline->id, table->table_id, &table->high_mark);
	}
	foreach(lc, left)
	{
		catalog_table_leave(p->pipeline->id, ((CatalogTable *) lfirst(lc))->table_id);
		catalog_table_forget(p->pipeline->id, ((CatalogTable *) lfirst(lc))->table_id);
	}
	foreach(lc, due)
	{
		SnapshotCandidate *c = lfirst(lc);

		if (c->put_off)
			write_put_off(p, c, asked);
		else
			write_candidate(p, c, durable, asked);
	}
	if (!p->more && !p->more_later)
		catalog_pipeline_set_tables_done(p->pipeline->id, asked);

	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(cxt);
}

bool
snapshot_join(int32 pipeline_id, const MysqlEndpoint *endpoint, const CatalogPosition *durable,
			  bool again, bool *put_off, CdcPosition *awaited, bool *more)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext cxt = AllocSetContextCreate(caller, "cdc snapshot join", ALLOCSET_DEFAULT_SIZES);
	SnapshotPrepare p = {0};
	CatalogPipeline *pipeline;
	List	   *known;
	List	   *left;
	int32		asked;
	bool		due;

	*more = false;
	MemoryContextSwitchTo(cxt);
	due = read_wishes(pipeline_id, again, &pipeline, &asked, &known, &left);
	if (due)
	{
		ListCell   *lc;

		p.pipeline = pipeline;
		p.is_joining = true;
		known = without_unwanted(pipeline, known, &left);
		transform_options_read(pipeline, &p.options);
		catalog_change_rules_read(pipeline, &p.rules);
		p.start = snapshot_start_read(pipeline);
		p.routes = transform_routes_read(pipeline);
		memset(awaited, 0, sizeof(*awaited));
		p.durable = durable;
		p.awaited = awaited;
		ask_source(&p, endpoint, known);
		write_down(&p, known, left, durable, asked);
		*more = p.more;
		*put_off = false;
		foreach(lc, p.candidates)
			*put_off |= ((SnapshotCandidate *) lfirst(lc))->put_off;
	}
	else if (again)
	{
		*put_off = false;		/* they have left */
		memset(awaited, 0, sizeof(*awaited));
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(cxt);
	return due;
}

/* ----------------------------------------------------------- the snapshot worker */

List *
snapshot_join_waiting(int32 pipeline_id)
{
	MemoryContext cxt = CurrentMemoryContext;
	List	   *result = NIL;
	ListCell   *lc;

	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	MemoryContextSwitchTo(cxt);
	foreach(lc, catalog_table_list(pipeline_id))
	{
		CatalogTable *table = lfirst(lc);

		/* one without a key gets a mark of its own, see snapshot_keyless.c; one that is to begin anew has no place yet */
		if (table->state == CATALOG_TABLE_SNAPSHOT && !table->chunks_allowed && !table->resync_wanted &&
			!(table->definition != (Datum) 0 && schema_def_is_keyless(table->definition)))
			result = lappend(result, table);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(cxt);
	return result;
}

/* Does the source table look as it was written down? Estimates and comments do not count. */
static bool
is_the_same(const CatalogTable *table, CdcTableDef *now)
{
	CdcTableDef *before = schema_def_from_jsonb(table->definition);

	if (now == NULL)
		return false;
	now->row_estimate = before->row_estimate;
	now->avg_row_length = before->avg_row_length;
	now->comment = before->comment;
	if (before->nkey == 0 && transform_kind_source_nkey(before) > 0)
		now->nkey = 0;
	for (uint32 i = 0; i < Min(now->ncolumns, before->ncolumns); i++)
	{
		now->columns[i].comment = before->columns[i].comment;
		now->columns[i].left_out = before->columns[i].left_out;
	}
	return DatumGetBool(DirectFunctionCall2(jsonb_eq, schema_def_to_jsonb(before), schema_def_to_jsonb(now)));
}

bool
snapshot_looks_the_same(MysqlSession *session, const MysqlServerInfo *info, const CatalogTable *table)
{
	return is_the_same(table, mysql_server_describe(session, info, util_name_to_source(table->source_schema),
													util_name_to_source(table->source_table)));
}

/* The same into *same, without waiting for a table that is locked; false when it is. */
static bool
look_soon(MysqlSession *session, const MysqlServerInfo *info, const CatalogTable *table, bool *same)
{
	MemoryContext cxt = CurrentMemoryContext;
	CdcTableDef *volatile now = NULL;
	volatile bool locked = false;

	PG_TRY();
	{
		now = mysql_server_describe_soon(session, info, util_name_to_source(table->source_schema),
										 util_name_to_source(table->source_table));
	}
	PG_CATCH();
	{
		if (geterrcode() != ERRCODE_LOCK_NOT_AVAILABLE)
			PG_RE_THROW();
		MemoryContextSwitchTo(cxt);
		FlushErrorState();
		locked = true;
	}
	PG_END_TRY();
	mysql_server_limit_lock_wait(session, true);	/* as the copy has it */
	if (!locked)
		*same = is_the_same(table, now);
	return !locked;
}

static void
stop_waiting(const CatalogTable *table, const UtilErrorInfo *error)
{
	catalog_table_set_stopped(table->pipeline_id, table->table_id, NULL, error);
	ereport(LOG,
			(errcode(error->sqlstate),
			 errmsg("source table \"%s.%s\" is stopped: %s",
					table->source_schema, table->source_table, error->message),
			 error->detail ? errdetail("%s", error->detail) : 0,
			 errhint("%s", error->hint)));
}

/* Does a table still wait as it was read? */
static bool
is_current(const CatalogTable *table)
{
	const CatalogTable *now = catalog_table_by_id(table->pipeline_id, table->table_id);

	return now != NULL && now->generation == table->generation && now->state == CATALOG_TABLE_SNAPSHOT && !now->resync_wanted;
}

static UtilErrorInfo *
changed_error(const CatalogTable *table)
{
	return util_error_info_make(CDC_ERRCODE_TABLE_CHANGED,
							   psprintf("source table \"%s.%s\" changed while it joined",
										table->source_schema, table->source_table),
							   pstrdup("Its definition is no longer the one that was read then."),
							   pstrdup("Use cdc_resync_table() to copy it anew."));
}

static UtilErrorInfo *
xa_error(const CatalogTable *table)
{
	return util_error_info_make(CDC_ERRCODE_UNSUPPORTED_EVENT,
							   psprintf("XA transactions were prepared before source table \"%s.%s\" joined",
										table->source_schema, table->source_table),
							   pstrdup("One was committed since, others are still prepared or cannot be listed; rows of the first may be missing in a copy."),
							   pstrdup("End the XA transactions (XA RECOVER on the source lists them) and give the source's user XA_RECOVER_ADMIN, then use cdc_resync_table()."));
}

bool
snapshot_join_allow(int32 pipeline_id, List *waiting, MysqlSession *session, const MysqlServerInfo *info, bool *anew)
{
	MemoryContext cxt = CurrentMemoryContext;
	List	   *shown = NIL;
	List	   *changed = NIL;
	CdcPosition mark;
	char	   *mark_gtids;
	ListCell   *lc;

	*anew = false;
	foreach(lc, waiting)
	{
		const CatalogTable *table = lfirst(lc);

		if (mysql_server_shows(session, info, &table->join_position, table->join_gtids, &mark, &mark_gtids))
			shown = lappend(shown, lfirst(lc));
	}
	if (shown == NIL)
		return false;

	foreach(lc, shown)
	{
		bool		same;

		if (!look_soon(session, info, lfirst(lc), &same))
			shown = foreach_delete_current(shown, lc);	/* later; the others need not wait for it */
		else if (!same)
			changed = lappend(changed, lfirst(lc));
	}
	if (shown == NIL)
		return false;
	memset(&mark, 0, sizeof(mark));
	mark_gtids = NULL;
	if (snapshot_await_prepared(session, NULL))
		mysql_server_start_mark(session, info, &mark, &mark_gtids);

	heap_transaction_begin();
	MemoryContextSwitchTo(cxt);
	foreach(lc, shown)
		catalog_lock_table(pipeline_id, ((CatalogTable *) lfirst(lc))->table_id, ShareLock);
	PushActiveSnapshot(GetTransactionSnapshot());
	foreach(lc, shown)
	{
		const CatalogTable *table = lfirst(lc);
		bool		xa_passed;

		if (list_member_ptr(changed, table) && snapshot_begin_anew(pipeline_id, table))
			*anew = true;
		else if (list_member_ptr(changed, table))
		{
			/* the stream may have met the change meanwhile */
			if (is_current(table))
				stop_waiting(table, changed_error(table));
		}
		else if (!catalog_table_allow_chunks(pipeline_id, table->table_id, table->generation,
											 &mark, mark_gtids, &xa_passed) && xa_passed)
			stop_waiting(table, xa_error(table));
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(cxt);
	return true;
}
