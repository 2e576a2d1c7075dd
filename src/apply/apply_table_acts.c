/*-------------------------------------------------------------------------
 *
 * apply_table_acts.c
 *	  What statements do to tables as a whole: carried out here.
 *
 * NOTES
 *	  apply_table_statement.c reads a statement and makes a list of acts, one for
 *	  each table of ours that it means. Those that touch targets are carried out
 *	  together, in the transaction that carries the position behind the statement:
 *	  first the relations, then the catalog, in the order of locks. An act that
 *	  cannot be carried out stops its table (or, with "try_evolve", is noted), and
 *	  the others are tried again without it.
 *
 *	  A table that is copied anew, or joins, is only wished for here: the ingest
 *	  worker lets it join when the wish is durable (snapshot_join.c), before it
 *	  reads on.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "catalog/catalog_dead_letter.h"
#include "catalog/namespace.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "apply/apply_table_acts.h"
#include "catalog/catalog_lock.h"
#include "catalog/catalog_shadow.h"
#include "compat/pg_compat.h"
#include "heap/heap_empty.h"
#include "heap/heap_shard.h"
#include "util/util_name.h"
#include "util/util_role.h"
#include "util/util_spi.h"

/* What one try has at hand. */
typedef struct Try
{
	List	   *acts;
	ApplyAct   *current;		/* whose error it would be */
	TimestampTz time;			/* of the statement */
} Try;

/* The relation that users see: the one that a shadow will take the place of, or the target. */
static Oid
visible_target(const CatalogTable *table)
{
	Oid			relid = OidIsValid(table->swap_into) ? table->swap_into : table->target;

	return SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)) ? relid : InvalidOid;
}

/* Run a statement on a relation as its owner, and note it. */
static void
run_as_owner(ApplyAct *act, Oid relid, char *sql)
{
	Relation	rel = relation_open(relid, AccessExclusiveLock);
	Oid			owner = rel->rd_rel->relowner;
	UtilRoleSwitch sw;

	relation_close(rel, NoLock);
	if (owner != GetUserId() && !cdc_role_can_set_role(GetUserId(), owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("role \"%s\" cannot SET ROLE to \"%s\"",
						GetUserNameFromId(GetUserId(), false), GetUserNameFromId(owner, false)),
				 errdetail("The target belongs to that role, and has to follow the source: %s.", sql),
				 errhint("Make the pipeline's owner a member of it, then use cdc_resync_table().")));
	util_role_switch_begin(owner != GetUserId() ? owner : InvalidOid, &sw);
	SPI_connect();
	util_spi_run(sql);
	SPI_finish();
	util_role_switch_end(&sw);
	CommandCounterIncrement();
	act->commands = lappend(act->commands, sql);
}

static char *
qualified(Oid relid)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)), get_rel_name(relid));
}

/* ------------------------------------------------------------------- relations */

/* Where rows that the source deletes are kept, so are those of a table that it empties or drops. */
static bool
is_kind(const Apply *apply, const ApplyAct *act, TransformKind kind)
{
	return act->table->def != NULL && transform_table_kind(act->table->def, &apply->types) == kind;
}

static char *
mark_rows(Try *try, Apply *apply, const ApplyAct *act, Oid relid)
{
	return heap_empty_marking(relid, act->table->def, &apply->types, try->time);
}

static void
truncate_target(Try *try, Apply *apply, ApplyAct *act)
{
	const CatalogTable *now = act->now;

	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(now->target)) || act->table->def == NULL)
		return;
	if (now->own_rows != (Datum) 0)
		act->commands = lappend(act->commands, heap_shard_empty(now->target, now->own_rows));
	else if (is_kind(apply, act, TRANSFORM_SOFT_DELETE))
		act->commands = lappend(act->commands, mark_rows(try, apply, act, now->target));
	else if (is_kind(apply, act, TRANSFORM_APPEND))
		return;					/* what was, was */
	else
		act->commands = lappend(act->commands, heap_empty(now->target, act->table->def, &apply->types));
}

static void
drop_target(Try *try, Apply *apply, ApplyAct *act)
{
	Oid			relid = visible_target(act->now);

	if (!OidIsValid(relid))
		return;
	if (act->now->own_rows != (Datum) 0)
		act->commands = lappend(act->commands, heap_shard_empty(relid, act->now->own_rows));
	else if (is_kind(apply, act, TRANSFORM_SOFT_DELETE))
		act->commands = lappend(act->commands, mark_rows(try, apply, act, relid));
	else if (is_kind(apply, act, TRANSFORM_APPEND))
		return;
	else
		run_as_owner(act, relid, psprintf("DROP TABLE %s", qualified(relid)));
}

static bool
wants_name(const ApplyAct *act)
{
	/* a target that others share stays where it is */
	return (act->what == APPLY_ACT_RENAME || (act->what == APPLY_ACT_LEAVE && act->target_moves)) && act->target_table != NULL &&
		act->now->own_rows == (Datum) 0 && OidIsValid(visible_target(act->now));
}

/* Two source tables would go to one target: say which, as for a table that joins (snapshot_refuse_early). */
static void
refuse_taken(const ApplyAct *act, Oid relid)
{
	ListCell   *lc;

	foreach(lc, catalog_table_list(act->now->pipeline_id))
	{
		const CatalogTable *other = lfirst(lc);

		if (visible_target(other) != relid || other->table_id == act->now->table_id)
			continue;
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("target table \"%s.%s\" belongs to another source table", act->target_schema, act->target_table),
				 errdetail("Source table \"%s.%s\" of this pipeline goes there, and \"%s.%s\" would.",
						   other->source_schema, other->source_table, util_name_of_source(act->new_schema), util_name_of_source(act->new_table)),
				 errhint("Give one of them another target with the option \"routes\" and cdc_alter_pipeline(), then use cdc_resync_table().")));
	}
}

/* Give a relation another name, in another schema where need be. */
static void
rename_relation(ApplyAct *act, Oid relid, const char *schema, const char *name)
{
	Oid			namespace = get_namespace_oid(schema, true);
	Oid			taken = OidIsValid(namespace) ? get_relname_relid(name, namespace) : InvalidOid;

	if (OidIsValid(taken) && taken != relid && act->new_table != NULL)
		refuse_taken(act, taken);

	if (!OidIsValid(namespace))
	{
		char	   *sql = psprintf("CREATE SCHEMA %s", quote_identifier(schema));

		SPI_connect();
		util_spi_run(sql);
		SPI_finish();
		CommandCounterIncrement();
		act->commands = lappend(act->commands, sql);
		namespace = get_namespace_oid(schema, false);
	}
	if (get_rel_namespace(relid) != namespace)
	{
		/* under a name that nobody has: both schemas may have a table of either name */
		char	   *between = psprintf("cdc_rename_%u", relid);

		if (strcmp(get_rel_name(relid), between) != 0)
			run_as_owner(act, relid, psprintf("ALTER TABLE %s RENAME TO %s", qualified(relid), between));
		run_as_owner(act, relid, psprintf("ALTER TABLE %s SET SCHEMA %s", qualified(relid), quote_identifier(schema)));
	}
	if (strcmp(get_rel_name(relid), name) != 0)
		run_as_owner(act, relid, psprintf("ALTER TABLE %s RENAME TO %s", qualified(relid), quote_identifier(name)));
}

/* Names may change hands within a statement: with several, each first gets one that nobody has. */
static void
rename_targets(Try *try)
{
	int			count = 0;
	ListCell   *lc;

	foreach(lc, try->acts)
		count += wants_name(lfirst(lc)) ? 1 : 0;
	foreach(lc, try->acts)
	{
		ApplyAct   *act = lfirst(lc);

		if (count < 2 || !wants_name(act))
			continue;
		try->current = act;
		rename_relation(act, visible_target(act->now),
						get_namespace_name(get_rel_namespace(visible_target(act->now))),
						psprintf("cdc_rename_%u", visible_target(act->now)));
	}
	foreach(lc, try->acts)
	{
		ApplyAct   *act = lfirst(lc);

		if (!wants_name(act))
			continue;
		try->current = act;
		rename_relation(act, visible_target(act->now), act->target_schema, act->target_table);
	}
}

/* --------------------------------------------------------------------- catalog */

static void
leave(Apply *apply, const ApplyAct *act)
{
	int32		table_id = act->table->table_id;

	if (OidIsValid(act->now->swap_into))
		catalog_shadow_drop(act->now->target);
	catalog_table_leave(apply->pipeline_id, table_id);
	catalog_table_forget(apply->pipeline_id, table_id);
}

/* Names are unique: of several that change hands each first has one that no source table has. */
static void
write_names_between(const List *acts)
{
	int			count = 0;
	ListCell   *lc;

	foreach(lc, acts)
		count += ((ApplyAct *) lfirst(lc))->what == APPLY_ACT_RENAME ? 1 : 0;
	foreach(lc, count > 1 ? acts : NIL)
	{
		const ApplyAct *act = lfirst(lc);
		CatalogTable table;

		if (act->what != APPLY_ACT_RENAME)
			continue;
		table = *act->now;
		table.source_table = psprintf("cdc_rename_%d", table.table_id);
		table.source_schema = "";
		catalog_table_set_names(&table);
	}
}

/* The table's row and definition have its new name. */
static void
write_names(Apply *apply, const ApplyAct *act)
{
	CatalogTable table = *act->now;

	table.source_schema = util_name_of_source(act->new_schema);
	table.source_table = util_name_of_source(act->new_table);
	if (act->target_table != NULL && table.own_rows == (Datum) 0)
	{
		table.target_schema = act->target_schema;
		table.target_table = act->target_table;
	}
	catalog_table_set_names(&table);
	catalog_dead_letter_set_names(apply->pipeline_id, table.table_id, table.source_schema, table.source_table);
	if (act->table->def != NULL)
	{
		CdcTableDef def = *act->table->def;

		def.schema = act->new_schema;
		def.name = act->new_table;
		catalog_table_set_definition(apply->pipeline_id, act->table->table_id, schema_def_to_jsonb(&def));
	}
}

static void
write_catalog(Apply *apply, ApplyAct *act)
{
	switch (act->what)
	{
		case APPLY_ACT_TRUNCATE:
			catalog_table_restart_empty(apply->pipeline_id, act->table->table_id,
										act->table->def != NULL && act->table->def->nkey == 0);
			(void) catalog_dead_letter_supersede_table(apply->pipeline_id, act->table->table_id, "the table was truncated");
			catalog_table_set_keeps_rows(apply->pipeline_id, act->table->table_id, false);
			break;
		case APPLY_ACT_RENAME:
			write_names(apply, act);
			break;
		case APPLY_ACT_DROP:
		case APPLY_ACT_LEAVE:
		case APPLY_ACT_NOTHING:
		case APPLY_ACT_COPY:
		case APPLY_ACT_JOIN:
			break;
	}
}

static bool
is_for_now(const ApplyAct *act)
{
	return act->what == APPLY_ACT_TRUNCATE || act->what == APPLY_ACT_DROP || act->what == APPLY_ACT_LEAVE ||
		act->what == APPLY_ACT_RENAME;
}

/* ------------------------------------------------------------------ all of them */

/* One try, in a transaction that holds nothing else. */
static void
run_acts(Apply *apply, void *arg)
{
	Try		   *try = arg;
	ListCell   *lc;

	foreach(lc, try->acts)
	{
		ApplyAct   *act = lfirst(lc);

		act->commands = NIL;
		if (!is_for_now(act))
			continue;
		try->current = act;
		apply_table_lock_target(act->table);
		catalog_lock_table(apply->pipeline_id, act->table->table_id, RowExclusiveLock);
		act->now = catalog_table_by_id(apply->pipeline_id, act->table->table_id);
		if (act->now == NULL)
			act->what = APPLY_ACT_NOTHING;	/* somebody lets it leave just now */
	}
	foreach(lc, try->acts)
	{
		ApplyAct   *act = lfirst(lc);

		try->current = act;
		if (act->what == APPLY_ACT_TRUNCATE)
			truncate_target(try, apply, act);
		else if (act->what == APPLY_ACT_DROP)
			drop_target(try, apply, act);
	}
	rename_targets(try);
	foreach(lc, try->acts)
	{
		ApplyAct   *act = lfirst(lc);

		try->current = act;
		if (act->what == APPLY_ACT_DROP || act->what == APPLY_ACT_LEAVE)
			leave(apply, act);
	}
	write_names_between(try->acts);
	foreach(lc, try->acts)
	{
		try->current = lfirst(lc);
		write_catalog(apply, lfirst(lc));
	}
	try->current = NULL;
}

/* An act failed: its table stops, or goes on without it. */
static void
give_up(Apply *apply, ApplyAct *act, UtilErrorInfo *error, const CdcPosition *at)
{
	act->error = error;
	act->commands = NIL;
	if (act->mode == CATALOG_MODE_TRY_EVOLVE)
	{
		act->result = CATALOG_CHANGE_FAILED;
		/* it has gone from the source all the same; only its target stays as it is */
		act->what = act->what == APPLY_ACT_DROP ? APPLY_ACT_LEAVE : act->what == APPLY_ACT_RENAME ? APPLY_ACT_RENAME : APPLY_ACT_NOTHING;
		act->target_schema = act->target_table = NULL;
		return;
	}
	act->result = CATALOG_CHANGE_STOPPED;
	/* a new copy is read under the new name */
	act->what = act->what == APPLY_ACT_RENAME && act->target_table != NULL ? APPLY_ACT_RENAME : APPLY_ACT_NOTHING;
	act->target_schema = act->target_table = NULL;
	act->copy = false;
	if (error->hint == NULL)
		error->hint = pstrdup("Mend the cause. " APPLY_HINT_ANEW);
	(void) apply_stop(apply, list_make1(apply_stop_for(act->table, error)), at);
}

static TimestampTz
event_time(const CdcEvent *event)
{
	if (event->source_time_us == 0)
		return GetCurrentTimestamp();
	return event->source_time_us - (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;
}

static void
carry_out(Apply *apply, List *acts, const CdcPosition *at, TimestampTz time)
{
	Try			try = {.acts = acts,.time = time};
	List	   *tables = NIL;
	bool		any = true;
	ListCell   *lc;

	while (any)
	{
		UtilErrorInfo *error;

		any = false;
		tables = NIL;
		foreach(lc, acts)
		{
			const ApplyAct *act = lfirst(lc);

			if (is_for_now(act))
				tables = lappend(tables, act->table);
		}
		if (tables == NIL)
			return;
		error = apply_ddl_try(apply, tables, run_acts, &try);
		if (error == NULL)
			break;
		if (try.current == NULL)
			elog(ERROR, "change of tables failed: %s", error->message);
		give_up(apply, try.current, error, at);
		any = true;
	}
	apply->reload_wanted = true;
}

static void
note(Apply *apply, const CdcEvent *event, const ApplyAct *act)
{
	CatalogSchemaChange change = {
		.table_id = act->table != NULL ? act->table->table_id : 0,
		.source_schema = util_name_of_source(act->schema),
		.source_table = util_name_of_source(act->name),
		.kinds = CATALOG_CHANGE_BIT(act->kind),
		.statement = apply_schema_text(&event->statement),
		.commands = act->commands,
		.result = act->result,
		.error = act->error,
	};

	apply_history_add(apply, event, &change);
}

void
apply_acts_run(Apply *apply, const CdcEvent *event, List *acts, const CdcPosition *at)
{
	CdcPosition start = *at;	/* may lie in what a stop resets */
	ListCell   *lc;

	carry_out(apply, acts, &start, event_time(event));
	foreach(lc, acts)
	{
		ApplyAct   *act = lfirst(lc);

		if (act->what == APPLY_ACT_JOIN)
			apply_wish_tables(apply, false);
		else if (act->what == APPLY_ACT_COPY || (is_for_now(act) && act->copy))
			apply_wish_copy(apply, act->table);
		else if (act->what == APPLY_ACT_TRUNCATE && apply_table_is_copying(act->table))
			apply_wish_tables(apply, true);
		if (act->keeps_rows)
			apply_wish_kept_rows(apply, act->table);
		note(apply, event, act);
	}
	if (apply->tables_wanted || apply->history != NIL)
		apply_begin(apply);		/* so that it is committed with the position behind the statement */
}
