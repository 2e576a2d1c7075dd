/*-------------------------------------------------------------------------
 *
 * heap_target.c
 *	  A target relation open for writing by the executor's simple calls.
 *
 * NOTES
 *	  One EState per open target, its per-tuple memory reset after every row, so
 *	  that a transaction of any length needs the memory of one row. Every write
 *	  has its own after-trigger query level (AFTER ROW triggers fire before the
 *	  next row) and ends with CommandCounterIncrement, because a stream may touch
 *	  the same key again at once.
 *
 *	  Which rights rows are written with: the simple calls check none, but
 *	  triggers, defaults, check constraints and index expressions of the table
 *	  run inside them. These belong to the table's owner, so they run as the
 *	  table's owner, who must not get at anything of the pipeline's: the switch
 *	  is a security-restricted operation. Opening a target runs some of it too
 *	  (defaults and index expressions are planned), and so does bringing a value
 *	  into a domain (schema_datum.c). What would run after the switch was
 *	  undone (deferred triggers) is refused instead.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relation.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "rewrite/rewriteHandler.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"

#include "compat/pg_compat.h"
#include "heap/heap_partition.h"
#include "heap/heap_private.h"
#include "heap/heap_sql.h"

/* Would a trigger with that tgenabled fire in this session? */
bool
heap_trigger_fires(char tgenabled)
{
	switch (tgenabled)
	{
		case TRIGGER_FIRES_ALWAYS:
			return true;
		case TRIGGER_FIRES_ON_REPLICA:
			return SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA;
		case TRIGGER_FIRES_ON_ORIGIN:
			return SessionReplicationRole != SESSION_REPLICATION_ROLE_REPLICA;
		default:
			return false;
	}
}

const char *
heap_tier_name(HeapTier tier)
{
	switch (tier)
	{
		case HEAP_TIER_LEAN:
			return "lean";
		case HEAP_TIER_EXECUTOR:
			return "executor";
		case HEAP_TIER_SQL:
			break;
	}
	return "sql";
}

/* Refuse what is no table of a user's that outlives a crash. */
static void
check_kind(Relation rel)
{
	const char *name = RelationGetRelationName(rel);

	if (rel->rd_rel->relkind != RELKIND_RELATION && rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE &&
		rel->rd_rel->relkind != RELKIND_FOREIGN_TABLE && rel->rd_rel->relkind != RELKIND_VIEW)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" cannot be the target of a source table", name),
				 errdetail("Tables, partitioned and foreign ones too, and views can be targets."),
				 errhint("Rename or drop it, or choose another target schema.")));
	/* such triggers cannot be enabled for the role that replicas have, and PostgreSQL takes the row for written */
	if (rel->rd_rel->relkind == RELKIND_VIEW && rel->trigdesc != NULL &&
		(rel->trigdesc->trig_insert_instead_row || rel->trigdesc->trig_update_instead_row ||
		 rel->trigdesc->trig_delete_instead_row))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("view \"%s\" cannot be the target of a source table", name),
				 errdetail("It has INSTEAD OF triggers, which do not fire with session_replication_role = replica."),
				 errhint("Use a view that PostgreSQL can update by itself, or a table.")));
	if (rel->rd_rel->relkind == RELKIND_RELATION && rel->rd_tableam != GetHeapamTableAmRoutine())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" cannot be the target of a source table", name),
				 errdetail("Its access method is not heap.")));
	if (rel->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("unlogged table \"%s\" cannot be the target of a source table", name),
				 errdetail("A crash would empty it, and the position behind its rows would stay."),
				 errhint("Run ALTER TABLE %s SET LOGGED.",
						 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)), name))));
	if (rel->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("temporary table \"%s\" cannot be the target of a source table", name),
				 errdetail("It ends with the session that made it."),
				 errhint("Drop it, or choose another target schema.")));
	if (RelationGetNamespace(rel) == PG_CATALOG_NAMESPACE)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("table \"%s\" cannot be the target of a source table", name),
				 errdetail("It is a system catalog."),
				 errhint("Choose another target schema.")));
}

/* Check rights and row-level security, and decide as whom rows are written. */
static Oid
check_rights(Relation rel)
{
	Oid			me = GetUserId();
	Oid			owner = rel->rd_rel->relowner;
	Oid			write_as = InvalidOid;
	static const AclMode modes[] = {ACL_SELECT, ACL_INSERT, ACL_UPDATE, ACL_DELETE};

	/* first, because what gives this often gives the other rights too */
	if (owner != me)
	{
		if (!cdc_role_can_set_role(me, owner))
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("role \"%s\" cannot SET ROLE to \"%s\"",
							GetUserNameFromId(me, false), GetUserNameFromId(owner, false)),
					 errdetail("Rows of table \"%s\" are written as its owner, because the table's triggers and expressions belong to that role.",
							   RelationGetRelationName(rel)),
					 superuser_arg(owner)
					 ? errhint("Run ALTER TABLE %s OWNER TO %s.",
							   quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
														  RelationGetRelationName(rel)),
							   quote_identifier(GetUserNameFromId(me, false)))
					 : errhint("Run GRANT %s TO %s, or make the pipeline's owner the owner of the table.",
							   quote_identifier(GetUserNameFromId(owner, false)),
							   quote_identifier(GetUserNameFromId(me, false)))));
		write_as = owner;
	}

	for (int i = 0; i < (int) lengthof(modes); i++)
	{
		if (pg_class_aclcheck(RelationGetRelid(rel), me, modes[i]) != ACLCHECK_OK)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("permission denied for table %s", RelationGetRelationName(rel)),
					 errhint("Run GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %s.",
							 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
														RelationGetRelationName(rel)),
							 quote_identifier(GetUserNameFromId(me, false)))));
	}

	if (OidIsValid(write_as))
	{
		for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
		{
			const Trigger *trigger = &rel->trigdesc->triggers[i];

			if (trigger->tgdeferrable && heap_trigger_fires(trigger->tgenabled))
				ereport(ERROR,
						(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						 errmsg("table \"%s\" has the deferrable trigger \"%s\"",
								RelationGetRelationName(rel), trigger->tgname),
						 errdetail("Its owner is not the pipeline's owner, and a deferred trigger would run as the pipeline's owner."),
						 errhint("Make the trigger not deferrable, or make the pipeline's owner the owner of the table.")));
		}
	}

	if (check_enable_rls(RelationGetRelid(rel), OidIsValid(write_as) ? write_as : me, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("row-level security applies to table \"%s\"", RelationGetRelationName(rel)),
				 errdetail("Rows are written without looking at policies."),
				 errhint("Use ALTER TABLE ... NO FORCE ROW LEVEL SECURITY, or a table that has none.")));
	return write_as;
}

/* Open the primary key's index, which has to be a valid, immediate b-tree. */
static Relation
open_key_index(Relation rel)
{
	List	   *indexes = RelationGetIndexList(rel);
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Relation	index = index_open(lfirst_oid(lc), RowExclusiveLock);

		if (index->rd_index->indisprimary)
		{
			if (index->rd_rel->relam != BTREE_AM_OID || !index->rd_index->indimmediate ||
				!index->rd_index->indisvalid || !index->rd_index->indisready)
				ereport(ERROR,
						(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						 errmsg("primary key of table \"%s\" cannot be used", RelationGetRelationName(rel)),
						 errdetail("It must be a valid b-tree index and not deferrable.")));
			list_free(indexes);
			return index;
		}
		index_close(index, NoLock);
	}

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("table \"%s\" has no primary key", RelationGetRelationName(rel)),
			 errhint("Use ALTER TABLE ... ADD PRIMARY KEY with the columns of the source table's key.")));
	return NULL;				/* keep compiler quiet */
}

/*
 * Range table with the one relation. All columns count as updated: triggers
 * "UPDATE OF column" fire as for a statement that names them all, and generated
 * columns are computed anew.
 */
static void
init_range_table(EState *estate, Relation rel)
{
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	TupleDesc	desc = RelationGetDescr(rel);
	Bitmapset  *updated = NULL;
	Bitmapset  *generated = NULL;

	rte->rtekind = RTE_RELATION;
	rte->relid = RelationGetRelid(rel);
	rte->relkind = rel->rd_rel->relkind;
	rte->rellockmode = AccessShareLock;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped)
			continue;
		if (att->attgenerated)
			generated = bms_add_member(generated, i + 1 - FirstLowInvalidHeapAttributeNumber);
		else
			updated = bms_add_member(updated, i + 1 - FirstLowInvalidHeapAttributeNumber);
	}
	cdc_init_range_table(estate, rte, updated, generated);
}

/* Equality keys for look-ups by the primary key index; arguments are filled later. */
static ScanKey
make_scan_keys(Relation index, int nkey)
{
	ScanKey		keys = palloc0(sizeof(ScanKeyData) * nkey);

	for (int i = 0; i < nkey; i++)
	{
		Oid			opfamily = index->rd_opfamily[i];
		Oid			type = index->rd_opcintype[i];
		Oid			op = get_opfamily_member(opfamily, type, type, BTEqualStrategyNumber);

		if (!OidIsValid(op))
			elog(ERROR, "missing equality operator for type %u in operator family %u", type, opfamily);
		ScanKeyEntryInitialize(&keys[i], 0, i + 1, BTEqualStrategyNumber, InvalidOid,
							   index->rd_indcollation[i], get_opcode(op), (Datum) 0);
	}
	return keys;
}

/* The target's rows are found by that index. */
static void
take_key(HeapTargetState *state, Relation index)
{
	HeapTarget *target = &state->base;

	state->index = index;
	target->key_index = RelationGetRelid(index);
	target->nkey = IndexRelationGetNumberOfKeyAttributes(index);
	target->key_attnums = palloc(sizeof(AttrNumber) * target->nkey);
	for (int i = 0; i < target->nkey; i++)
		target->key_attnums[i] = index->rd_index->indkey.values[i];
	state->keys = make_scan_keys(index, target->nkey);
}

/* Make the state of a relation that was opened and checked. */
static HeapTarget *
open_checked(Relation rel, Oid write_as, bool keyless)
{
	HeapTargetState *state;
	HeapTarget *target;
	EState	   *estate;
	MemoryContext old;
	UtilRoleSwitch sw;
	bool		is_partitioned = rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;

	old = MemoryContextSwitchTo(TopTransactionContext);
	estate = CreateExecutorState();
	MemoryContextSwitchTo(estate->es_query_cxt);

	state = palloc0(sizeof(HeapTargetState));
	target = &state->base;
	target->rel = rel;
	target->estate = estate;
	target->write_as = write_as;

	/* expressions and predicates of indexes are simplified when they are first looked at, by calling their functions */
	util_role_switch_begin(target->write_as, &sw);
	if (!keyless)
		take_key(state, open_key_index(rel));

	init_range_table(estate, rel);
	target->result_rel = makeNode(ResultRelInfo);
	InitResultRelInfo(target->result_rel, rel, 1, NULL, 0);
	estate->es_output_cid = GetCurrentCommandId(true);
	ExecOpenIndices(target->result_rel, false);

	target->slot = ExecInitExtraTupleSlot(estate, RelationGetDescr(rel), &TTSOpsVirtual);
	target->search = ExecInitExtraTupleSlot(estate, RelationGetDescr(rel), &TTSOpsVirtual);
	if (!is_partitioned)
		target->found = table_slot_create(rel, &estate->es_tupleTable);

	cdc_epq_init(&state->epq, estate);

	MemoryContextSwitchTo(old);
	target->tier = heap_lean_is_possible(target) ? HEAP_TIER_LEAN : HEAP_TIER_EXECUTOR;
	if (is_partitioned)
		state->partitions = heap_partition_open(state);
	util_role_switch_end(&sw);
	return target;
}

/*
 * Open relation relid for writing. Throws when it cannot be a target, with what
 * to do; returns a target that lives until heap_target_close or the end of the
 * transaction.
 */
/* Is SQL the only way into the relation? */
static bool
needs_sql(Relation rel)
{
	List	   *leaves;
	ListCell   *lc;

	if (rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		return rel->rd_rel->relkind != RELKIND_RELATION;

	leaves = find_all_inheritors(RelationGetRelid(rel), AccessShareLock, NULL);
	foreach(lc, leaves)
	{
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_FOREIGN_TABLE)
			return true;
	}
	return false;
}

/* The state of a relation that is written by SQL. */
static HeapTarget *
open_for_sql(Relation rel, Oid write_as)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);
	EState	   *estate = CreateExecutorState();
	HeapTarget *target;

	MemoryContextSwitchTo(estate->es_query_cxt);
	target = palloc0(sizeof(HeapTargetState));
	target->tier = HEAP_TIER_SQL;
	target->rel = rel;
	target->estate = estate;
	target->write_as = write_as;
	target->slot = ExecInitExtraTupleSlot(estate, RelationGetDescr(rel), &TTSOpsVirtual);
	target->search = ExecInitExtraTupleSlot(estate, RelationGetDescr(rel), &TTSOpsVirtual);
	MemoryContextSwitchTo(old);
	return target;
}

void
heap_target_set_key(HeapTarget *target, int nkey, const AttrNumber *attnums)
{
	target->nkey = nkey;
	target->key_attnums = MemoryContextAlloc(target->estate->es_query_cxt, sizeof(AttrNumber) * nkey);
	memcpy(target->key_attnums, attnums, sizeof(AttrNumber) * nkey);
}

/* Without a key rows can be found by a scan only, so there is one way to write. */
static void
check_keyless(const HeapTarget *target)
{
	if (target->tier == HEAP_TIER_LEAN && target->rel->rd_rel->relkind == RELKIND_RELATION)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("table \"%s\" cannot be the target of a source table without a key",
					RelationGetRelationName(target->rel)),
			 errdetail("Such a target must be a plain table without row triggers that fire and without deferrable constraints."),
			 errhint("Give the source table a primary key, or make the target a plain table.")));
}

HeapTarget *
heap_target_open(Oid relid, bool keyless)
{
	HeapTarget *target;
	Relation	rel = OidIsValid(relid) ? try_relation_open(relid, RowExclusiveLock) : NULL;

	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("target table does not exist"),
				 errdetail("It was dropped or made anew after the pipeline had started with it.")));

	check_kind(rel);
	target = needs_sql(rel) ? open_for_sql(rel, check_rights(rel)) : open_checked(rel, check_rights(rel), keyless);
	if (keyless)
		check_keyless(target);
	return target;
}

HeapTarget *
heap_target_open_leaf(Oid relid, const HeapTarget *parent)
{
	Relation	rel = relation_open(relid, RowExclusiveLock);
	HeapTarget *leaf;

	check_kind(rel);
	if (rel->rd_rel->relowner != parent->rel->rd_rel->relowner)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("partition \"%s\" belongs to another role than table \"%s\"",
						RelationGetRelationName(rel), RelationGetRelationName(parent->rel)),
				 errhint("Give both the same owner with ALTER TABLE ... OWNER TO.")));
	leaf = open_checked(rel, parent->write_as, false);
	if (leaf->tier != parent->tier && parent->tier == HEAP_TIER_LEAN)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("partition \"%s\" has row triggers or deferrable constraints of its own",
						RelationGetRelationName(rel)),
				 errhint("Give them to the partitioned table \"%s\" instead.", RelationGetRelationName(parent->rel))));
	return leaf;
}

/* Close everything but the relation's lock. */
void
heap_target_close(HeapTarget *target)
{
	HeapTargetState *state = (HeapTargetState *) target;
	Relation	rel = target->rel;
	Relation	index = state->index;
	EState	   *estate = target->estate;

	if (state->partitions != NULL)
		heap_partition_close(state->partitions);
	if (target->tier != HEAP_TIER_SQL)
	{
		EvalPlanQualEnd(&state->epq);
		ExecCloseIndices(target->result_rel);
		ExecCloseResultRelations(estate);	/* also what triggers made it open */
	}
	ExecResetTupleTable(estate->es_tupleTable, false);
	FreeExecutorState(estate);	/* frees target too */
	if (index != NULL)
		index_close(index, NoLock);
	table_close(rel, NoLock);
}

void
heap_target_set_given(HeapTarget *target, const bool *given)
{
	HeapTargetState *state = (HeapTargetState *) target;
	TupleDesc	desc = RelationGetDescr(target->rel);
	MemoryContext old = MemoryContextSwitchTo(target->estate->es_query_cxt);
	UtilRoleSwitch sw;

	util_role_switch_begin(target->write_as, &sw);	/* planning a default calls functions in it */
	target->given = palloc(sizeof(bool) * desc->natts);
	memcpy(target->given, given, sizeof(bool) * desc->natts);
	state->defaults = palloc0(sizeof(ExprState *) * desc->natts);

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		Expr	   *expr;

		if (given[i] || att->attisdropped || att->attgenerated || target->tier == HEAP_TIER_SQL)
			continue;
		expr = (Expr *) build_column_default(target->rel, i + 1);
		if (expr != NULL)
			state->defaults[i] = ExecInitExpr(expression_planner(expr), NULL);
	}
	util_role_switch_end(&sw);
	MemoryContextSwitchTo(old);
}

void
heap_target_clear(TupleTableSlot *slot)
{
	ExecStoreAllNullTuple(slot);
}

void
heap_target_check_not_null(const HeapTarget *target)
{
	TupleDesc	desc = RelationGetDescr(target->rel);

	if (desc->constr == NULL || !desc->constr->has_not_null)
		return;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attnotnull && target->slot->tts_isnull[i] && (target->given == NULL || target->given[i]))
			ereport(ERROR,
					(errcode(ERRCODE_NOT_NULL_VIOLATION),
					 errmsg("null value in column \"%s\" of relation \"%s\" violates not-null constraint",
							NameStr(att->attname), RelationGetRelationName(target->rel)),
					 errtablecol(target->rel, i + 1)));
	}
}

bool
heap_target_find(HeapTarget *target)
{
	HeapTargetState *state = (HeapTargetState *) target;

	if (target->tier == HEAP_TIER_SQL)
		return heap_sql_exists(target);
	if (state->partitions != NULL)
	{
		HeapTarget *leaf = heap_partition_of_slot(state, target->search);

		heap_partition_convert_slot(state, target->search, leaf->search);
		return heap_target_find(leaf);
	}
	ExecClearTuple(target->found);
	return RelationFindReplTupleByIndex(target->rel, target->key_index, LockTupleExclusive,
										target->search, target->found);
}

bool
heap_target_see(HeapTarget *target)
{
	HeapTargetState *state = (HeapTargetState *) target;
	IndexScanDesc scan;
	bool		found;

	ExecClearTuple(target->found);
	for (int i = 0; i < target->nkey; i++)
	{
		int			att = target->key_attnums[i] - 1;

		if (target->search->tts_isnull[att])
			return false;
		state->keys[i].sk_argument = target->search->tts_values[att];
	}

	PushActiveSnapshot(GetLatestSnapshot());
	scan = cdc_index_beginscan(target->rel, state->index, GetActiveSnapshot(), target->nkey);
	index_rescan(scan, state->keys, target->nkey, NULL, 0);
	found = index_getnext_slot(scan, ForwardScanDirection, target->found);
	index_endscan(scan);
	PopActiveSnapshot();
	return found;
}

bool
heap_target_exists(HeapTarget *target)
{
	HeapTargetState *state = (HeapTargetState *) target;
	bool		found;

	if (target->tier == HEAP_TIER_SQL)
		return heap_sql_exists(target);
	if (state->partitions != NULL)
	{
		HeapTarget *leaf = heap_partition_of_slot(state, target->search);

		heap_partition_convert_slot(state, target->search, leaf->search);
		return heap_target_exists(leaf);
	}
	found = heap_target_see(target);
	ExecClearTuple(target->found);
	return found;
}

/*
 * Complete slot with what the caller does not give: on an insert the defaults,
 * on an update the values of the row that is there.
 */
void
heap_fill_rest(HeapTargetState *state, bool is_update)
{
	HeapTarget *target = &state->base;
	TupleDesc	desc = RelationGetDescr(target->rel);
	ExprContext *econtext;

	if (target->given == NULL)
		return;

	if (is_update)
		slot_getallattrs(target->found);
	econtext = GetPerTupleExprContext(target->estate);

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (target->given[i] || att->attisdropped || att->attgenerated)
			continue;
		if (is_update)
		{
			target->slot->tts_values[i] = target->found->tts_values[i];
			target->slot->tts_isnull[i] = target->found->tts_isnull[i];
		}
		else if (state->defaults[i] != NULL)
			target->slot->tts_values[i] =
				ExecEvalExprSwitchContext(state->defaults[i], econtext, &target->slot->tts_isnull[i]);
	}
}

/* What goes before and after each write. */
static void
begin_write(HeapTarget *target, UtilRoleSwitch *sw)
{
	PushActiveSnapshot(GetTransactionSnapshot());
	util_role_switch_begin(target->write_as, sw);
	target->estate->es_output_cid = GetCurrentCommandId(true);
	AfterTriggerBeginQuery();
}

static void
end_write(HeapTarget *target, UtilRoleSwitch *sw)
{
	AfterTriggerEndQuery(target->estate);
	util_role_switch_end(sw);
	PopActiveSnapshot();

	ExecClearTuple(target->found);
	ResetPerTupleExprContext(target->estate);
	CommandCounterIncrement();
}

/* One row of a target of the SQL tier. */
static void
write_by_sql(HeapTarget *target, CmdType operation)
{
	heap_sql_begin(target);
	if (operation == CMD_DELETE)
		heap_sql_gone(target);
	else
		heap_sql_put(target);
	heap_sql_end(target, operation == CMD_INSERT);
}

/* The leaf that a partitioned target's new row goes to, with the row in its slot. */
static HeapTarget *
leaf_of_new_row(HeapTargetState *state)
{
	HeapTarget *leaf = heap_partition_of_slot(state, state->base.slot);

	heap_partition_convert_slot(state, state->base.slot, leaf->slot);
	return leaf;
}

void
heap_target_insert(HeapTarget *target)
{
	HeapTargetState *state = (HeapTargetState *) target;
	UtilRoleSwitch sw;

	if (target->tier == HEAP_TIER_SQL)
	{
		write_by_sql(target, CMD_INSERT);
		return;
	}
	if (state->partitions != NULL)
	{
		heap_target_insert(leaf_of_new_row(state));
		return;
	}
	begin_write(target, &sw);
	heap_fill_rest(state, false);
	ExecSimpleRelationInsert(target->result_rel, target->estate, target->slot);
	end_write(target, &sw);
}

void
heap_target_update(HeapTarget *target)
{
	HeapTargetState *state = (HeapTargetState *) target;
	UtilRoleSwitch sw;

	if (target->tier == HEAP_TIER_SQL)
	{
		write_by_sql(target, CMD_UPDATE);
		return;
	}
	if (state->partitions != NULL)
	{
		heap_target_update(leaf_of_new_row(state));
		return;
	}
	begin_write(target, &sw);
	heap_fill_rest(state, true);
	EvalPlanQualSetSlot(&state->epq, target->slot);
	ExecSimpleRelationUpdate(target->result_rel, target->estate, &state->epq,
							 target->found, target->slot);
	end_write(target, &sw);
}

void
heap_target_delete(HeapTarget *target)
{
	HeapTargetState *state = (HeapTargetState *) target;
	UtilRoleSwitch sw;

	if (target->tier == HEAP_TIER_SQL)
	{
		write_by_sql(target, CMD_DELETE);
		return;
	}
	if (state->partitions != NULL)
	{
		heap_target_delete(heap_partition_last(state));
		return;
	}
	begin_write(target, &sw);
	EvalPlanQualSetSlot(&state->epq, target->found);
	ExecSimpleRelationDelete(target->result_rel, target->estate, &state->epq, target->found);
	end_write(target, &sw);
}

bool
heap_target_has_rows(HeapTarget *target)
{
	TableScanDesc scan;
	bool		found;

	if (target->tier == HEAP_TIER_SQL)
		return heap_sql_has_rows(target);
	if (target->rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		return heap_partition_has_rows(target);
	PushActiveSnapshot(GetLatestSnapshot());
	scan = table_beginscan(target->rel, GetActiveSnapshot(), 0, NULL);
	found = table_scan_getnextslot(scan, ForwardScanDirection, target->found);
	ExecClearTuple(target->found);
	table_endscan(scan);
	PopActiveSnapshot();
	return found;
}
