/*-------------------------------------------------------------------------
 *
 * snapshot_index.c
 *	  Unique and secondary indexes of targets, once their tables stream.
 *
 * NOTES
 *	  snapshot_index_plan writes down, when a target is made, what becomes of
 *	  each index of the source (cdc_bridge.target_index). When a table is
 *	  STREAMING, snapshot_index_step builds one index after the other while the
 *	  stream goes on: CREATE INDEX CONCURRENTLY, run as a client would run it,
 *	  at top level outside a transaction block. It commits in between, so nothing
 *	  here may live in a transaction's memory or keep a snapshot registered.
 *
 *	  WANTED -> BUILDING -> BUILT | FAILED, and LEFT_OUT from the beginning.
 *
 *	  A build that is interrupted or fails leaves an index behind that is not
 *	  valid, costs time with every write and, when it is unique, still keeps
 *	  rows out. Its name was committed as BUILDING before it came into being; so
 *	  whoever finds a row in that state looks for an invalid index of that
 *	  name on that target, drops it, and begins anew. After an error that is
 *	  done at once, before the row becomes FAILED: a failed index never stands
 *	  in the way of the stream.
 *
 *	  No lock_timeout: a concurrent build waits for older transactions, which
 *	  may be long ones, and its own lock holds up nobody who reads or writes.
 *	  Errors that may pass (deadlock, a lock that was not to be had) end the worker,
 *	  which is started again later; every other one is the index's own.
 *
 *	  The build runs as the target's owner. That is nearly always the pipeline's
 *	  owner, who this process is connected as; else it is SET ROLE, because a
 *	  security-restricted operation cannot reach over several transactions. No
 *	  code of the owner's runs: there are no expressions and predicates in
 *	  these indexes, and what PostgreSQL does on its own it restricts itself.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "catalog/catalog_lock.h"
#include "compat/pg_compat.h"
#include "heap/heap_row.h"
#include "schema/table.h"
#include "snapshot/snapshot.h"
#include "transform/transform_index.h"
#include "util/util_name.h"

/* So many names are tried before it is given up. */
#define MAX_NAME_ATTEMPTS 100

struct SnapshotIndexer
{
	const CatalogPipeline *pipeline;
	SchemaTypeOptions types;
	MemoryContext cxt;
	MemoryContext step_cxt;		/* one step; outlives transactions */
	List	   *queue;			/* of CatalogIndex, in cxt: to be looked at */
	bool		has_lock;		/* nobody else builds for this pipeline */
};

/* What is to be done for one index. */
typedef enum ActionKind
{
	ACTION_NONE,				/* it is there, or not wanted any more */
	ACTION_DROP,				/* an invalid one is in the way */
	ACTION_CREATE
} ActionKind;

typedef struct Action
{
	ActionKind	kind;
	char	   *sql;
	char	   *role;			/* run as that role; NULL: as the current one */
} Action;

/* ------------------------------------------------------------------------ plan */

void
snapshot_index_plan(const CatalogPipeline *pipeline, const CatalogTable *table, const CdcTableDef *def,
					const SchemaTypeOptions *types, bool made)
{
	Relation	rel = relation_open(table->target, AccessShareLock);
	bool		none = transform_index_is_none(pipeline);

	catalog_index_delete(table->pipeline_id, table->table_id);
	for (uint32 i = 0; i < def->nindexes; i++)
	{
		CdcIndexDef index = def->indexes[i];
		CatalogIndex *row;

		/* what is unique in one table need not be in all that share the target */
		index.is_unique &= table->own_rows == (Datum) 0;
		row = transform_index_row(def, &index, types, rel, made, none);

		row->pipeline_id = table->pipeline_id;
		row->table_id = table->table_id;
		row->index_no = (int32) i + 1;
		catalog_index_insert(row);
	}
	relation_close(rel, NoLock);
}

/* ------------------------------------------------------------- what is to be done */

/* Indexes that are not built yet, of tables that stream. */
static List *
read_due(int32 pipeline_id)
{
	List	   *indexes = catalog_index_list(pipeline_id);
	List	   *tables = NIL;
	List	   *due = NIL;
	ListCell   *table = NULL;
	ListCell   *lc;

	foreach(lc, indexes)
	{
		CatalogIndex *index = lfirst(lc);

		if (index->state != CATALOG_INDEX_WANTED && index->state != CATALOG_INDEX_BUILDING)
			continue;
		if (tables == NIL)
		{
			tables = catalog_table_list(pipeline_id);
			table = list_head(tables);
		}
		while (table != NULL && ((CatalogTable *) lfirst(table))->table_id < index->table_id)
			table = lnext(tables, table);
		if (table == NULL)
			break;
		if (((CatalogTable *) lfirst(table))->table_id == index->table_id &&
			((CatalogTable *) lfirst(table))->state == CATALOG_TABLE_STREAMING)
			due = lappend(due, index);
	}
	return due;
}

bool
snapshot_index_is_due(int32 pipeline_id)
{
	MemoryContext caller = CurrentMemoryContext;
	bool		result;

	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	result = read_due(pipeline_id) != NIL;
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(caller);
	return result;
}

/* Fill the queue; false when nothing is due. */
static bool
fill_queue(SnapshotIndexer *ix)
{
	List	   *due;
	ListCell   *lc;

	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	due = read_due(ix->pipeline->id);
	MemoryContextSwitchTo(ix->cxt);
	foreach(lc, due)
	{
		CatalogIndex *index = palloc0(sizeof(CatalogIndex));

		index->table_id = ((CatalogIndex *) lfirst(lc))->table_id;
		index->index_no = ((CatalogIndex *) lfirst(lc))->index_no;
		ix->queue = lappend(ix->queue, index);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(ix->step_cxt);
	return ix->queue != NIL;
}

/* The invalid index of that name on the relation; InvalidOid when there is none. */
static Oid
find_invalid(Relation rel, const char *name)
{
	Oid			oid = name == NULL ? InvalidOid : get_relname_relid(name, RelationGetNamespace(rel));
	Relation	index;
	bool		is_ours;

	if (!OidIsValid(oid) || !list_member_oid(RelationGetIndexList(rel), oid))
		return InvalidOid;
	index = index_open(oid, AccessShareLock);
	is_ours = !index->rd_index->indisvalid;
	index_close(index, AccessShareLock);
	return is_ours ? oid : InvalidOid;
}

static char *
drop_statement(Relation rel, const char *name)
{
	return psprintf("DROP INDEX CONCURRENTLY %s",
					quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)), name));
}

/* A name that nothing else in the target's schema has. */
static char *
choose_name(Relation rel, const SchemaIndex *index)
{
	for (int attempt = 0; attempt < MAX_NAME_ATTEMPTS; attempt++)
	{
		char	   *name = schema_index_name(RelationGetRelationName(rel), index->name, attempt);

		if (!OidIsValid(get_relname_relid(name, RelationGetNamespace(rel))))
			return name;
	}
	ereport(ERROR,
			(errcode(ERRCODE_DUPLICATE_TABLE),
			 errmsg("no name is free for index \"%s\" of table \"%s\"", index->name, RelationGetRelationName(rel))));
}

/* Role that the build has to run as; NULL: the current one. Throws when that cannot be. */
static char *
choose_role(Relation rel)
{
	Oid			owner = rel->rd_rel->relowner;

	if (owner == GetUserId())
		return NULL;
	if (!cdc_role_can_set_role(GetUserId(), owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("role \"%s\" cannot SET ROLE to \"%s\"",
						GetUserNameFromId(GetUserId(), false), GetUserNameFromId(owner, false)),
				 errdetail("Indexes of table \"%s\" are built as its owner.", RelationGetRelationName(rel)),
				 errhint("Run GRANT %s TO %s, or make the pipeline's owner the owner of the table.",
						 quote_identifier(GetUserNameFromId(owner, false)),
						 quote_identifier(GetUserNameFromId(GetUserId(), false)))));
	return GetUserNameFromId(owner, false);
}

/* The index of that name: names stay when the source's other indexes come and go. */
static const CdcIndexDef *
find_definition(const CdcTableDef *def, const CatalogIndex *index)
{
	char	   *name = util_name_to_source(index->source_index);

	for (uint32 i = 0; i < def->nindexes; i++)
	{
		if (strcmp(def->indexes[i].name, name) == 0)
			return &def->indexes[i];
	}
	elog(ERROR, "definition of table %d has no index \"%s\"", index->table_id, index->source_index);
}

/* Within the transaction of decide(): the relation is open, the row is due. Changes *index, and its row. */
static void
decide_for(SnapshotIndexer *ix, CatalogIndex *index, const CatalogTable *table, Relation rel, Action *action)
{
	CdcTableDef *def = schema_def_from_jsonb(table->definition);
	CdcIndexDef from = *find_definition(def, index);
	SchemaIndex *wanted;
	char	   *there;

	from.is_unique = index->is_unique;	/* see snapshot_index_plan */
	wanted = transform_index_translate(def, &from, &ix->types);
	if (wanted->reason != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" cannot be built", index->source_index),
				 errdetail("This was not so when the table was made: %s.", wanted->reason)));

	action->role = choose_role(rel);
	there = schema_index_find(wanted, rel);
	if (OidIsValid(find_invalid(rel, index->target_index)))
	{
		action->kind = ACTION_DROP;
		action->sql = drop_statement(rel, index->target_index);
		return;
	}
	if (there != NULL)
	{
		index->target_index = there;
		index->state = CATALOG_INDEX_BUILT;
		(void) catalog_index_set_state(index, NULL);
		return;
	}
	index->target_index = choose_name(rel, wanted);
	index->statement = schema_index_statement(wanted, get_namespace_name(RelationGetNamespace(rel)),
											  RelationGetRelationName(rel), index->target_index);
	index->state = CATALOG_INDEX_BUILDING;
	action->kind = ACTION_CREATE;
	action->sql = index->statement;
	(void) catalog_index_set_state(index, NULL);
}

/*
 * Look what is to be done for an index, and write it down, in a transaction of
 * its own. Results in step_cxt. *index may become NULL: its row is gone.
 */
static void
decide(SnapshotIndexer *ix, CatalogIndex **index, Action *action)
{
	int32		table_id = (*index)->table_id;
	int32		index_no = (*index)->index_no;
	CatalogTable *table;
	CatalogIndex *now;
	Relation	rel;

	memset(action, 0, sizeof(*action));
	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	MemoryContextSwitchTo(ix->step_cxt);
	table = catalog_table_by_id(ix->pipeline->id, table_id);
	now = catalog_index_by_no(ix->pipeline->id, table_id, index_no);
	if (now != NULL)
		*index = now;
	if (now != NULL && table != NULL && table->state == CATALOG_TABLE_STREAMING &&
		(now->state == CATALOG_INDEX_WANTED || now->state == CATALOG_INDEX_BUILDING))
	{
		rel = try_relation_open(table->target, AccessShareLock);
		if (rel == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_TABLE),
					 errmsg("target table does not exist"),
					 errdetail("It was dropped or made anew after the pipeline had started with it.")));
		decide_for(ix, now, table, rel, action);
		relation_close(rel, NoLock);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(ix->step_cxt);
}

/* --------------------------------------------------------------------- doing it */

/* SET ROLE for what follows; "none" goes back to the role that this process is connected as. */
static void
set_role(SnapshotIndexer *ix, const char *role)
{
	StartTransactionCommand();
	SetConfigOption("role", role, PGC_SUSET, PGC_S_SESSION);
	CommitTransactionCommand();
	MemoryContextSwitchTo(ix->step_cxt);
}

/*
 * Run a statement that commits by itself, as a client's is run. The parse tree
 * and all that hangs on it are in step_cxt.
 */
static void
run_alone(SnapshotIndexer *ix, const char *sql, const char *role)
{
	RawStmt    *raw;
	PlannedStmt *statement;

	pgstat_report_activity(STATE_RUNNING, sql);
	if (role != NULL)
		set_role(ix, role);
	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	MemoryContextSwitchTo(ix->step_cxt);

	raw = linitial_node(RawStmt, pg_parse_query(sql));
	statement = makeNode(PlannedStmt);
	statement->commandType = CMD_UTILITY;
	statement->canSetTag = true;
	statement->utilityStmt = raw->stmt;
	statement->stmt_location = raw->stmt_location;
	statement->stmt_len = raw->stmt_len;
	ProcessUtility(statement, sql, false, PROCESS_UTILITY_TOPLEVEL, NULL, NULL, None_Receiver, NULL);

	if (ActiveSnapshotSet())
		PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(ix->step_cxt);
	if (role != NULL)
		set_role(ix, "none");
}

static void
say_built(const SnapshotIndexer *ix, const CatalogIndex *index)
{
	ereport(LOG,
			(errmsg("index \"%s\" of pipeline \"%s\" is built", index->target_index, ix->pipeline->name)));
}

static void
write_state(SnapshotIndexer *ix, CatalogIndex *index, CatalogTargetIndexState state, const UtilErrorInfo *error)
{
	index->pipeline_id = ix->pipeline->id;
	index->state = state;
	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	(void) catalog_index_set_state(index, error);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(ix->step_cxt);
}

/* Bring one index to its end. Throws. */
static void
build(SnapshotIndexer *ix, CatalogIndex **index)
{
	Action		action;

	for (;;)
	{
		decide(ix, index, &action);
		if (action.kind == ACTION_NONE)
			return;
		run_alone(ix, action.sql, action.role);
		if (action.kind == ACTION_CREATE)
			break;
	}
	write_state(ix, *index, CATALOG_INDEX_BUILT, NULL);
	say_built(ix, *index);
}

/* Will it pass by itself? */
static bool
may_pass(int sqlstate)
{
	return sqlstate == ERRCODE_LOCK_NOT_AVAILABLE ||
		ERRCODE_TO_CATEGORY(sqlstate) == ERRCODE_TRANSACTION_ROLLBACK;
}

/* Drop what a failed build left behind. */
static void
clear_away(SnapshotIndexer *ix, const CatalogIndex *index)
{
	CatalogTable *table;
	Relation	rel = NULL;
	char	   *sql = NULL;
	char	   *role = NULL;

	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	MemoryContextSwitchTo(ix->step_cxt);
	table = catalog_table_by_id(ix->pipeline->id, index->table_id);
	if (table != NULL)
		rel = try_relation_open(table->target, AccessShareLock);
	if (rel != NULL)
	{
		if (OidIsValid(find_invalid(rel, index->target_index)))
		{
			sql = drop_statement(rel, index->target_index);
			role = choose_role(rel);
		}
		relation_close(rel, NoLock);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(ix->step_cxt);
	if (sql != NULL)
		run_alone(ix, sql, role);
}

/*
 * The same without throwing, except what may pass: a failed index must come to
 * its end. Returns what went wrong, or NULL.
 */
static char *
try_clear_away(SnapshotIndexer *ix, const CatalogIndex *index)
{
	char	   *volatile why = NULL;

	PG_TRY();
	{
		clear_away(ix, index);
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(ix->step_cxt);
		edata = CopyErrorData();
		if (may_pass(edata->sqlerrcode))
			PG_RE_THROW();
		FlushErrorState();
		AbortOutOfAnyTransaction();
		MemoryContextSwitchTo(ix->step_cxt);
		set_role(ix, "none");
		why = psprintf("Index \"%s\", which the build left behind, could not be dropped: %s.",
					   index->target_index, edata->message);
	}
	PG_END_TRY();
	return why;
}

/* An index that cannot be built: its state says so, the table goes on without it. */
static void
give_up(SnapshotIndexer *ix, CatalogIndex *index, ErrorData *edata)
{
	UtilErrorInfo *info = util_error_info(edata);
	char	   *left;

	if (info->sqlstate == ERRCODE_UNIQUE_VIOLATION)
	{
		info->detail = "Two rows of the target have the same values in its columns, which the source does not allow: somebody else wrote to the table.";
		info->hint = "Remove the rows that the source does not have, then use cdc_stop_pipeline() and cdc_start_pipeline().";
	}
	if (info->hint == NULL)
		info->hint = "Mend the cause, then use cdc_stop_pipeline() and cdc_start_pipeline().";

	left = try_clear_away(ix, index);
	if (left != NULL)
		info->detail = info->detail != NULL ? psprintf("%s\n%s", info->detail, left) : left;
	else
		index->target_index = NULL; /* else the next attempt drops it */
	write_state(ix, index, CATALOG_INDEX_FAILED, info);
	ereport(LOG,
			(errcode(info->sqlstate),
			 errmsg("index \"%s\" of pipeline \"%s\" could not be built: %s",
					index->source_index ? index->source_index : "?", ix->pipeline->name, info->message),
			 info->detail ? errdetail("%s", info->detail) : 0,
			 errhint("%s", info->hint)));
}

SnapshotIndexer *
snapshot_index_create(const CatalogPipeline *pipeline)
{
	SnapshotIndexer *ix = palloc0(sizeof(SnapshotIndexer));

	ix->pipeline = pipeline;
	ix->cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc indexes", ALLOCSET_DEFAULT_SIZES);
	ix->step_cxt = AllocSetContextCreate(ix->cxt, "cdc index step", ALLOCSET_DEFAULT_SIZES);
	transform_options_read(pipeline, &ix->types);
	ix->has_lock = catalog_lock_indexes(pipeline->id);
	return ix;
}

bool
snapshot_index_step(SnapshotIndexer *ix)
{
	MemoryContext caller;
	CatalogIndex *volatile index = NULL;

	if (!ix->has_lock)
		return false;
	caller = MemoryContextSwitchTo(ix->step_cxt);
	MemoryContextReset(ix->step_cxt);
	if (ix->queue == NIL && !fill_queue(ix))
	{
		MemoryContextSwitchTo(caller);
		return false;
	}
	index = linitial(ix->queue);
	ix->queue = list_delete_first(ix->queue);

	PG_TRY();
	{
		CatalogIndex *now = index;

		SetConfigOption("lock_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);	/* see NOTES */
		build(ix, &now);
	}
	PG_CATCH();
	{
		ErrorData  *edata;
		CatalogIndex *row;

		MemoryContextSwitchTo(ix->step_cxt);
		edata = CopyErrorData();
		if (may_pass(edata->sqlerrcode))
			PG_RE_THROW();
		FlushErrorState();
		AbortOutOfAnyTransaction();
		MemoryContextSwitchTo(ix->step_cxt);
		set_role(ix, "none");

		heap_transaction_begin();
		PushActiveSnapshot(GetTransactionSnapshot());
		MemoryContextSwitchTo(ix->step_cxt);
		row = catalog_index_by_no(ix->pipeline->id, index->table_id, index->index_no);
		PopActiveSnapshot();
		CommitTransactionCommand();
		MemoryContextSwitchTo(ix->step_cxt);
		/* a name that somebody took between the look and the build: the next round finds another */
		if (row != NULL && edata->sqlerrcode == ERRCODE_DUPLICATE_TABLE && row->state == CATALOG_INDEX_BUILDING)
		{
			row->target_index = NULL;
			write_state(ix, row, CATALOG_INDEX_WANTED, NULL);
		}
		else if (row != NULL)
			give_up(ix, row, edata);
	}
	PG_END_TRY();

	pgstat_report_activity(STATE_IDLE, NULL);
	pgstat_report_stat(false);
	MemoryContextSwitchTo(caller);
	return true;
}

/* ------------------------------------------------------------------------- drop */

void
snapshot_index_drop_unfinished(int32 pipeline_id)
{
	ListCell   *lc;

	foreach(lc, catalog_index_list(pipeline_id))
	{
		const CatalogIndex *index = lfirst(lc);
		const CatalogTable *table;
		Relation	rel;
		Oid			oid;

		if (index->state != CATALOG_INDEX_BUILDING ||
			(table = catalog_table_by_id(pipeline_id, index->table_id)) == NULL ||
			(rel = try_relation_open(table->target, AccessShareLock)) == NULL)
			continue;
		oid = find_invalid(rel, index->target_index);
		if (OidIsValid(oid))
		{
			/* it is not worth waiting for readers of the table */
			if (ConditionalLockRelationOid(RelationGetRelid(rel), AccessExclusiveLock))
			{
				ObjectAddress address;

				relation_close(rel, NoLock);
				ObjectAddressSet(address, RelationRelationId, oid);
				performDeletion(&address, DROP_RESTRICT, PERFORM_DELETION_INTERNAL);
				continue;
			}
			ereport(WARNING,
					(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
					 errmsg("unfinished index \"%s\" is left on table \"%s\"",
							index->target_index, RelationGetRelationName(rel)),
					 errdetail("The table is in use."),
					 errhint("Run %s.", drop_statement(rel, index->target_index))));
		}
		relation_close(rel, NoLock);
	}
}
