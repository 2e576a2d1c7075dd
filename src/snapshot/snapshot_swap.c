/*-------------------------------------------------------------------------
 *
 * snapshot_swap.c
 *	  A table that is copied anew: its shadow, and putting it in place.
 *
 * NOTES
 *	  While a table is copied anew its rows stay readable, and old. Stream and
 *	  chunks write to a shadow that stands beside it, with the same columns at the
 *	  same places (as for CLUSTER), the primary key, the defaults, generated
 *	  columns and check constraints. When the stream has passed the high mark, the
 *	  two change their files: the table keeps its OID, and so do its indexes,
 *	  which are built anew, views, grants, foreign keys and triggers. Catalog row
 *	  and swap are committed together.
 *
 *	  What the shadow does not have are row triggers and the bounds of a partition:
 *	  a table with triggers that would fire, or a partition, is refused, because
 *	  its rows would not be what they are elsewhere.
 *
 *	  The swap needs the table for itself. It waits for that a moment only, since
 *	  whoever comes later waits behind us, and comes back later; meanwhile the
 *	  stream goes on, into the shadow.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/multixact.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_trigger.h"
#include "commands/cluster.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "catalog/catalog_export_copy.h"
#include "catalog/catalog_lock.h"
#include "catalog/catalog_history.h"
#include "catalog/catalog_shadow.h"
#include "compat/pg_compat.h"
#include "heap/heap_row.h"
#include "snapshot/snapshot_private.h"
#include "transform/transform_table.h"
#include "util/util_lock.h"
#include "util/util_role.h"
#include "util/util_spi.h"

/* ------------------------------------------------------------ making the shadow */

/* What would not happen to rows that come by way of a shadow: row triggers that fire, and a partition's bounds. */
static void
refuse_unfit(Relation rel)
{
	if (rel->rd_rel->relkind != RELKIND_RELATION)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" cannot be copied anew beside its rows", RelationGetRelationName(rel)),
				 errdetail("It is not a plain table, so that nothing can be put in its place."),
				 errhint("Empty the table, then use cdc_resync_table().")));
	if (rel->rd_rel->relispartition)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" cannot be copied anew beside its rows", RelationGetRelationName(rel)),
				 errdetail("It is a partition, and its bounds would not be checked for the rows of a copy that is put in its place."),
				 errhint("Empty the table with TRUNCATE, or detach it, then use cdc_resync_table().")));
	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		const Trigger *trigger = &rel->trigdesc->triggers[i];
		bool		fires = trigger->tgenabled == TRIGGER_FIRES_ALWAYS ||
			trigger->tgenabled == (SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA
								   ? TRIGGER_FIRES_ON_REPLICA : TRIGGER_FIRES_ON_ORIGIN);

		if (fires && TRIGGER_FOR_ROW(trigger->tgtype))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("table \"%s\" cannot be copied anew beside its rows", RelationGetRelationName(rel)),
					 errdetail("Its row trigger \"%s\" would not fire for the rows of a copy that is put in the table's place.",
							   trigger->tgname),
					 errhint("Empty the table with TRUNCATE, or disable the trigger, then use cdc_resync_table().")));
	}
}

/* Defaults and generation expressions, as they stand in the table. */
static void
copy_defaults(Relation rel, Relation shadow)
{
	TupleDesc	desc = RelationGetDescr(rel);

	for (int i = 0; desc->constr != NULL && i < desc->constr->num_defval; i++)
	{
		const AttrDefault *def = &desc->constr->defval[i];

		cdc_store_attr_default(shadow, def->adnum, stringToNode(def->adbin));
	}
	CommandCounterIncrement();
}

/* An identity column has its sequence at the table; the shadow takes numbers from there. */
static void
replace_identity(Relation rel, Oid shadow, const char *shadow_name, const char *table_name)
{
	TupleDesc	desc = RelationGetDescr(rel);
	Relation	attributes = table_open(AttributeRelationId, RowExclusiveLock);

	for (int i = 0; i < desc->natts; i++)
	{
		const FormData_pg_attribute *att = TupleDescAttr(desc, i);
		HeapTuple	tuple;

		if (att->attisdropped || att->attidentity == '\0')
			continue;
		tuple = SearchSysCacheCopyAttNum(shadow, att->attnum);
		((Form_pg_attribute) GETSTRUCT(tuple))->attidentity = '\0';
		CatalogTupleUpdate(attributes, &tuple->t_self, tuple);
		CommandCounterIncrement();
		util_spi_run(psprintf("ALTER TABLE %s ALTER COLUMN %s SET DEFAULT nextval(pg_get_serial_sequence(%s, %s)::regclass)",
							  shadow_name, quote_identifier(NameStr(att->attname)),
							  quote_literal_cstr(table_name), quote_literal_cstr(NameStr(att->attname))));
	}
	table_close(attributes, RowExclusiveLock);
}

static void
copy_checks(Oid relid, const char *shadow_name)
{
	MemoryContext cxt = CurrentMemoryContext;
	List	   *statements = NIL;
	ListCell   *lc;

	util_spi_run(psprintf("SELECT pg_catalog.quote_ident(conname), pg_catalog.pg_get_constraintdef(oid) "
						  "FROM pg_catalog.pg_constraint WHERE conrelid = %u AND contype = 'c' ORDER BY conname", relid));
	for (uint64 i = 0; i < SPI_processed; i++)
		statements = lappend(statements,
							 psprintf("ALTER TABLE %s ADD CONSTRAINT %s %s", shadow_name,
									  SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1),
									  SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 2)));
	foreach(lc, statements)
		util_spi_run(lfirst(lc));
	MemoryContextSwitchTo(cxt);
}

static void
add_key_column(IndexStmt *stmt, const char *name)
{
	IndexElem  *elem = makeNode(IndexElem);

	elem->name = pstrdup(name);
	elem->ordering = SORTBY_DEFAULT;
	elem->nulls_ordering = SORTBY_NULLS_DEFAULT;
	stmt->indexParams = lappend(stmt->indexParams, elem);
}

/*
 * The same primary key; where the rows that are there cannot have it, the source's. No rights are asked for: that the table's
 * owner may make indexes there was seen when he made this one.
 */
static void
make_key(Relation rel, Oid shadow, const CdcTableDef *def)
{
	IndexStmt  *stmt = makeNode(IndexStmt);
	List	   *indexes = RelationGetIndexList(rel);
	List	   *columns = NIL;
	ListCell   *lc;

	foreach(lc, indexes)
	{
		HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(lc)));
		Form_pg_index index;

		if (!HeapTupleIsValid(tuple))
			elog(ERROR, "cache lookup failed for index %u", lfirst_oid(lc));
		index = (Form_pg_index) GETSTRUCT(tuple);
		for (int i = 0; index->indisprimary && i < index->indnkeyatts; i++)
			add_key_column(stmt, NameStr(TupleDescAttr(RelationGetDescr(rel), index->indkey.values[i] - 1)->attname));
		ReleaseSysCache(tuple);
	}
	for (uint32 part = 1; stmt->indexParams == NIL && def != NULL && part <= def->nkey; part++)
		columns = lappend(columns, schema_column_name(def->columns[cdc_table_def_key_column(def, part)].name));
	foreach(lc, columns)
		add_key_column(stmt, lfirst(lc));
	if (stmt->indexParams == NIL)
		return;					/* a target may have none */
	stmt->relation = makeRangeVar(get_namespace_name(RelationGetNamespace(rel)), get_rel_name(shadow), -1);
	stmt->accessMethod = "btree";
	stmt->unique = stmt->primary = stmt->isconstraint = stmt->transformed = true;
	cdc_define_index(shadow, stmt);
	CommandCounterIncrement();
}

void
snapshot_make_shadow(const SnapshotPrepare *p, SnapshotCandidate *c)
{
	Oid			relid = c->table.swap_into;
	Relation	rel = table_open(relid, RowExclusiveLock);
	char	   *schema = get_namespace_name(RelationGetNamespace(rel));
	char	   *name = psprintf("cdc_resync_%u", relid);
	char	   *shadow_name = psprintf("%s", quote_qualified_identifier(schema, name));
	char	   *table_name = psprintf("%s", quote_qualified_identifier(schema, RelationGetRelationName(rel)));
	Oid			me = GetUserId();
	UtilRoleSwitch sw;
	Oid			shadow;
	Relation	shadow_rel;

	refuse_unfit(rel);

	/* what is made belongs to the table's owner, as do the expressions in it */
	util_role_switch_begin(rel->rd_rel->relowner, &sw);

	shadow = make_new_heap(relid, rel->rd_rel->reltablespace, rel->rd_rel->relam,
						   rel->rd_rel->relpersistence, RowExclusiveLock);
	RenameRelationInternal(shadow, name, true, false);
	CommandCounterIncrement();
	shadow_rel = table_open(shadow, AccessExclusiveLock);
	copy_defaults(rel, shadow_rel);
	table_close(shadow_rel, NoLock);

	SPI_connect();
	replace_identity(rel, shadow, shadow_name, table_name);
	copy_checks(relid, shadow_name);
	if (rel->rd_rel->relowner != me)
		util_spi_run(psprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %s", shadow_name,
							  quote_identifier(GetUserNameFromId(me, false))));
	SPI_finish();
	make_key(rel, shadow, c->key_waits ? c->def : NULL);

	util_role_switch_end(&sw);
	catalog_shadow_depend(shadow, relid);
	table_close(rel, NoLock);
	c->table.target = shadow;
}

/* ------------------------------------------------------------------- the swap */

/* Do rows of the one lie as rows of the other? The table may have been altered while it was copied. */
static bool
same_layout(Relation a, Relation b)
{
	TupleDesc	da = RelationGetDescr(a);
	TupleDesc	db = RelationGetDescr(b);

	if (da->natts != db->natts || a->rd_rel->relam != b->rd_rel->relam ||
		a->rd_rel->relpersistence != b->rd_rel->relpersistence)
		return false;
	for (int i = 0; i < da->natts; i++)
	{
		const FormData_pg_attribute *aa = TupleDescAttr(da, i);
		const FormData_pg_attribute *ab = TupleDescAttr(db, i);

		if (aa->attisdropped != ab->attisdropped || aa->attlen != ab->attlen || aa->attalign != ab->attalign ||
			aa->attbyval != ab->attbyval)
			return false;
		if (!aa->attisdropped &&
			(aa->atttypid != ab->atttypid || aa->atttypmod != ab->atttypmod || aa->attcollation != ab->attcollation ||
			 aa->attgenerated != ab->attgenerated || (aa->attnotnull && !ab->attnotnull) ||
			 strcmp(NameStr(aa->attname), NameStr(ab->attname)) != 0))
			return false;
	}
	return true;
}

/* Has the table no CHECK constraint but those that the rows of the shadow were checked by? */
static bool
same_checks(Oid relid, Oid shadow)
{
	bool		same;

	SPI_connect();
	util_spi_run(psprintf("SELECT conname, pg_catalog.pg_get_constraintdef(oid) FROM pg_catalog.pg_constraint WHERE conrelid = %u AND contype = 'c' "
						  "EXCEPT SELECT conname, pg_catalog.pg_get_constraintdef(oid) FROM pg_catalog.pg_constraint WHERE conrelid = %u AND contype = 'c'",
						  relid, shadow));
	same = SPI_processed == 0;
	SPI_finish();
	return same;
}

/* Stop a table whose shadow cannot be put in place; the shadow goes. In the open transaction, under the table's lock. */
static void
give_up(const CatalogTable *table, const UtilErrorInfo *error)
{
	catalog_shadow_drop(table->target);
	catalog_table_set_stopped(table->pipeline_id, table->table_id, NULL, error);
	catalog_table_end_shadow(table->pipeline_id, table->table_id);
	ereport(LOG,
			(errcode(error->sqlstate),
			 errmsg("source table \"%s.%s\" is stopped: %s",
					table->source_schema, table->source_table, error->message),
			 error->detail ? errdetail("%s", error->detail) : 0,
			 error->hint ? errhint("%s", error->hint) : 0));
}

/* Do the source's rows come with that column: one of its own or, under a transform (NULL: none), one of the projection? */
static bool
is_written(const CdcTableDef *def, const TransformTable *transform, const char *name)
{
	for (int i = 0; transform != NULL && i < transform->transform->ncolumns; i++)
	{
		if (strcmp(transform->transform->columns[i].name, name) == 0)
			return true;
	}
	if (transform != NULL)
		return false;
	for (uint32 i = 0; i < def->ncolumns; i++)
	{
		if (strcmp(schema_column_name(def->columns[i].name), name) == 0)
			return true;
	}
	return false;
}

/* Columns of a relation's primary key, quoted; NIL when it has none. */
static List *
key_columns(Relation rel)
{
	List	   *result = NIL;
	Relation	index;

	list_free(RelationGetIndexList(rel));
	if (!OidIsValid(rel->rd_pkindex))
		return NIL;
	index = index_open(rel->rd_pkindex, AccessShareLock);
	for (int i = 0; i < index->rd_index->indnkeyatts; i++)
		result = lappend(result, pstrdup(quote_identifier(NameStr(TupleDescAttr(RelationGetDescr(rel), index->rd_index->indkey.values[i] - 1)->attname))));
	index_close(index, AccessShareLock);
	return result;
}

/* "s.id = t.id AND ..." of a primary key; NULL when there is none. */
static char *
key_condition(Relation rel)
{
	StringInfoData sql;
	ListCell   *lc;

	initStringInfo(&sql);
	foreach(lc, key_columns(rel))
		appendStringInfo(&sql, "%ss.%s = t.%s", sql.len > 0 ? " AND " : "", (char *) lfirst(lc), (char *) lfirst(lc));
	return sql.len > 0 ? sql.data : NULL;
}

/* "id, part" of one; NULL when there is none. */
static char *
key_text(Relation rel)
{
	StringInfoData sql;
	ListCell   *lc;

	initStringInfo(&sql);
	foreach(lc, key_columns(rel))
		appendStringInfo(&sql, "%s%s", sql.len > 0 ? ", " : "", (char *) lfirst(lc));
	return sql.len > 0 ? sql.data : NULL;
}

/*
 * Rows that the new copy does not have are deleted ones, where these are kept (option transforms, "soft_delete"): they go
 * into it, with their mark or, when nobody saw them go, with one of now. As the table's owner.
 */
static void
carry_deleted(const TransformRule *rule, Relation rel, Relation shadow, const char *condition)
{
	TupleDesc	desc = RelationGetDescr(rel);
	const char *shadow_name = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(shadow)), RelationGetRelationName(shadow));
	StringInfoData names;
	StringInfoData values;
	UtilRoleSwitch sw;

	initStringInfo(&names);
	initStringInfo(&values);
	for (int i = 0; i < desc->natts; i++)
	{
		const FormData_pg_attribute *att = TupleDescAttr(desc, i);
		const char *name = quote_identifier(NameStr(att->attname));

		if (att->attisdropped || att->attgenerated != '\0')
			continue;
		appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", name);
		appendStringInfoString(&values, values.len > 0 ? ", " : "");
		if (strcmp(NameStr(att->attname), rule->deleted_column) == 0)
			appendStringInfoString(&values, "true");
		else if (strcmp(NameStr(att->attname), rule->deleted_at_column) == 0)
			appendStringInfo(&values, "COALESCE(t.%s, pg_catalog.now())", name);
		else
			appendStringInfo(&values, "t.%s", name);
	}
	util_role_switch_begin(rel->rd_rel->relowner != GetUserId() ? rel->rd_rel->relowner : InvalidOid, &sw);
	SPI_connect();
	util_spi_run(psprintf("INSERT INTO %s (%s) SELECT %s FROM ONLY %s t WHERE NOT EXISTS (SELECT FROM ONLY %s s WHERE %s)",
						  shadow_name, names.data, values.data,
						  quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)), RelationGetRelationName(rel)),
						  shadow_name, condition));
	SPI_finish();
	util_role_switch_end(&sw);
	CommandCounterIncrement();
}

/*
 * With schema_changes "lenient" nothing that the target holds is lost: columns that the source's rows have no more are carried over
 * from those that are replaced. As the table's owner.
 */
static void
carry_over(const CatalogTable *table, Relation rel, Relation shadow)
{
	CatalogPipeline *pipeline = catalog_pipeline_by_id(table->pipeline_id);
	const CdcTableDef *def = schema_def_from_jsonb(table->definition);
	TupleDesc	desc = RelationGetDescr(rel);
	char	   *condition = key_condition(rel);
	const TransformRule *rule;
	TransformTable *transform;
	SchemaTypeOptions options;
	CatalogChangeRules rules;
	StringInfoData sets;
	UtilRoleSwitch sw;

	if (pipeline == NULL || condition == NULL)
		return;
	transform_options_read(pipeline, &options);
	rule = transform_table_rule(def, &options);
	if (rule != NULL && rule->kind == TRANSFORM_SOFT_DELETE)
		carry_deleted(rule, rel, shadow, condition);
	catalog_change_rules_read(pipeline, &rules);
	if (rules.mode != CATALOG_MODE_LENIENT)
		return;
	transform = rule != NULL ? transform_table_make(def, rule, &options) : NULL;
	initStringInfo(&sets);
	for (int i = 0; i < desc->natts; i++)
	{
		const FormData_pg_attribute *att = TupleDescAttr(desc, i);
		const char *name = quote_identifier(NameStr(att->attname));

		if (att->attisdropped || att->attgenerated != '\0' || is_written(def, transform, NameStr(att->attname)))
			continue;
		appendStringInfo(&sets, "%s%s = t.%s", sets.len > 0 ? ", " : "", name, name);
	}
	if (sets.len == 0)
		return;
	util_role_switch_begin(rel->rd_rel->relowner != GetUserId() ? rel->rd_rel->relowner : InvalidOid, &sw);
	SPI_connect();
	util_spi_run(psprintf("UPDATE %s s SET %s FROM %s t WHERE %s",
						  quote_qualified_identifier(get_namespace_name(RelationGetNamespace(shadow)), RelationGetRelationName(shadow)),
						  sets.data,
						  quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)), RelationGetRelationName(rel)),
						  condition));
	SPI_finish();
	util_role_switch_end(&sw);
}

/* The key that waited for rows that have it. As the table's owner. */
static void
add_key(Oid relid, const char *columns)
{
	Relation	rel = table_open(relid, NoLock);
	char	   *name = pstrdup(quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)), RelationGetRelationName(rel)));
	Oid			owner = rel->rd_rel->relowner;
	UtilRoleSwitch sw;

	table_close(rel, NoLock);
	util_role_switch_begin(owner != GetUserId() ? owner : InvalidOid, &sw);
	SPI_connect();
	util_spi_run(psprintf("ALTER TABLE %s ADD PRIMARY KEY (%s)", name, columns));
	SPI_finish();
	util_role_switch_end(&sw);
}

/* Put the shadow in place; the lock on the table was got. */
static SnapshotSwapResult
swap(const CatalogTable *table)
{
	Relation	rel = try_relation_open(table->swap_into, NoLock);
	Relation	shadow = rel != NULL ? try_relation_open(table->target, AccessExclusiveLock) : NULL;
	bool		same = shadow != NULL && same_layout(rel, shadow) && same_checks(table->swap_into, table->target);
	TransactionId frozen_xid = shadow != NULL ? shadow->rd_rel->relfrozenxid : InvalidTransactionId;
	MultiXactId min_multi = shadow != NULL ? shadow->rd_rel->relminmxid : InvalidMultiXactId;
	bool		changed = shadow != NULL && !same;
	char	   *waiting_key = same && key_columns(rel) == NIL ? key_text(shadow) : NULL;

	if (same)
		carry_over(table, rel, shadow);
	/* what the swap opens of it without a lock of its own, because it expects a table that this transaction made */
	if (same && OidIsValid(shadow->rd_rel->reltoastrelid))
		LockRelationOid(shadow->rd_rel->reltoastrelid, AccessExclusiveLock);
	if (shadow != NULL)
		relation_close(shadow, NoLock);
	if (rel != NULL)
		relation_close(rel, NoLock);
	if (!same && !changed)
	{
		give_up(table, util_error_info_make(ERRCODE_UNDEFINED_TABLE,
										   psprintf("target table \"%s.%s\" was dropped while it was copied anew",
													table->target_schema, table->target_table),
										   NULL, pstrdup("Use cdc_resync_table() to make it again.")));
		return SNAPSHOT_SWAP_DONE;
	}
	if (changed)
	{
		catalog_pipeline_ask_tables(table->pipeline_id);
		catalog_table_ask_resync(table->pipeline_id, table->table_id);
		ereport(LOG,
				(errmsg("target table \"%s.%s\" was altered while it was copied anew; it is copied once more",
						table->target_schema, table->target_table)));
		return SNAPSHOT_SWAP_AGAIN;
	}

	finish_heap_swap(table->swap_into, table->target, false, false, true, true, frozen_xid, min_multi,
					 get_rel_persistence(table->swap_into));
	if (waiting_key != NULL)
		add_key(table->swap_into, waiting_key);
	/* the new rows came in another relation, which nobody ships */
	catalog_export_table_ask_all(table->swap_into);
	if (!catalog_table_set_streaming(table->pipeline_id, table->table_id))
		elog(ERROR, "table %d of pipeline %d is not in state \"catchup\"", table->table_id, table->pipeline_id);
	catalog_table_end_shadow(table->pipeline_id, table->table_id);
	catalog_table_set_notice(table->pipeline_id, table->table_id, NULL);
	ereport(LOG,
			(errmsg("new copy of table \"%s.%s\" is in place and handed over to the stream",
					table->source_schema, table->source_table)));
	return SNAPSHOT_SWAP_DONE;
}

/* Say who is in the way: in the table's row, and once in the log. */
static void
report_blockers(const CatalogTable *table)
{
	MemoryContext cxt = CurrentMemoryContext;
	UtilErrorInfo info = {.sqlstate = ERRCODE_LOCK_NOT_AVAILABLE};
	char	   *pids;

	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	pids = util_lock_holders(table->swap_into);
	info.message = psprintf("new copy of table \"%s.%s\" waits to be put in place",
							table->target_schema, table->target_table);
	info.detail = pids != NULL ? psprintf("Sessions that use the table: %s.", pids)
		: pstrdup("Other sessions use the table.");
	info.hint = pstrdup("It is tried again by itself. Look at these in pg_stat_activity, and end transactions that are left open.");
	if (table->last_error.detail == NULL || strcmp(table->last_error.detail, info.detail) != 0)
	{
		ereport(LOG,
				(errcode(info.sqlstate),
				 errmsg("%s", info.message),
				 errdetail("%s", info.detail)));
		catalog_table_set_notice(table->pipeline_id, table->table_id, &info);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(cxt);
}

/* An error of the table's own at the swap, such as a unique index that the new rows do not fit. */
static void
stop_for_error(const CatalogTable *table, ErrorData *edata)
{
	MemoryContext cxt = CurrentMemoryContext;
	UtilErrorInfo *info = util_error_info(edata);

	if (info->hint == NULL)
		info->hint = "Mend the cause, then use cdc_resync_table().";
	heap_transaction_begin();
	MemoryContextSwitchTo(cxt);
	catalog_lock_table(table->pipeline_id, table->table_id, RowExclusiveLock);
	PushActiveSnapshot(GetTransactionSnapshot());
	give_up(table, info);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(cxt);
}

SnapshotSwapResult
snapshot_swap(const CatalogTable *table)
{
	MemoryContext cxt = CurrentMemoryContext;
	volatile SnapshotSwapResult result = SNAPSHOT_SWAP_BLOCKED;

	PG_TRY();
	{
		heap_transaction_begin();
		MemoryContextSwitchTo(cxt);
		util_lock_wait_briefly();
		catalog_lock_table(table->pipeline_id, table->table_id, RowExclusiveLock);
		LockRelationOid(table->swap_into, AccessExclusiveLock);
		PushActiveSnapshot(GetTransactionSnapshot());
		result = swap(table);
		PopActiveSnapshot();
		CommitTransactionCommand();
		MemoryContextSwitchTo(cxt);
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(cxt);
		edata = CopyErrorData();
		result = SNAPSHOT_SWAP_BLOCKED;
		if (!util_lock_is_missed(edata->sqlerrcode))
		{
			if (!heap_error_is_tables_own(edata->sqlerrcode))
				PG_RE_THROW();
			result = SNAPSHOT_SWAP_DONE;
		}
		FlushErrorState();
		AbortOutOfAnyTransaction();
		MemoryContextSwitchTo(cxt);
		if (result == SNAPSHOT_SWAP_DONE)
			stop_for_error(table, edata);
	}
	PG_END_TRY();

	if (result == SNAPSHOT_SWAP_BLOCKED)
		report_blockers(table);
	return result;
}
