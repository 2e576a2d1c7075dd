/*-------------------------------------------------------------------------
 *
 * apply_schema.c
 *	  A source table changes its shape: the target follows, in the stream's order.
 *
 * NOTES
 *	  statement (ALTER TABLE, CREATE INDEX, DROP INDEX)     apply_schema_statement
 *	  or a row event that shows another shape               apply_schema_event.c
 *	    -> definition after it, where each column comes from
 *	    -> steps (schema/evolve.h)
 *	    -> one PostgreSQL transaction: the target's DDL, the new definition, the
 *	       history, the position behind the statement
 *
 *	  The definition of a table that streams is that of the stream's place, so a
 *	  statement changes it exactly once; because the position is in the same
 *	  transaction it does not come again. While a table is copied, chunks show
 *	  the source's present shape instead; then nothing is altered here and the copy
 *	  begins anew (see docs/internals.md).
 *
 *	  A lock on the target is waited for in short tries with pauses between, and
 *	  nothing is held meanwhile; the table's row says who is in the way. What cannot be
 *	  carried out stops the table.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "executor/spi.h"
#include "mb/pg_wchar.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "apply/apply_private.h"
#include "catalog/catalog_lock.h"
#include "ddl/statement.h"
#include "ddl/table_change.h"
#include "heap/heap_hint.h"
#include "schema/evolve.h"
#include "transform/transform_index.h"
#include "transform/transform_kind.h"
#include "transform/transform_table.h"
#include "util/util_arena.h"
#include "util/util_lock.h"
#include "util/util_name.h"
#include "util/util_spi.h"
#include "util/util_wait.h"

/* ------------------------------------------------------------------- the target */

/* Does the target hold rows, as far as that can be had without running anybody's code? */
static bool
target_has_rows(Relation rel)
{
	bool		result;

	if (rel->rd_rel->relkind != RELKIND_RELATION && rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		return true;
	SPI_connect();
	util_spi_run(psprintf("SELECT FROM %s LIMIT 1",
						  quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)), RelationGetRelationName(rel))));
	result = SPI_processed > 0;
	SPI_finish();
	return result;
}

static SchemaPlan *
make_plan(Apply *apply, ApplySchemaChange *change, LOCKMODE mode)
{
	Relation	rel = try_relation_open(change->table->target, mode);
	SchemaPlan *plan;

	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("the target of source table \"%s.%s\" does not exist", change->table->schema, change->table->name),
				 errdetail("It was to follow a change of its source."),
				 errhint("Use cdc_resync_table() to make it again.")));
	change->evolve = (SchemaEvolve) {
		.before = change->table->def,
		.after = change->after,
		.origin = change->origin,
		.is_strict = change->is_strict,
		.is_told = change->is_told,
		.computes_anew = change->computes_anew,
		.defaults_known = change->defaults_known,
		.has_rows = target_has_rows(rel),
		.is_projected = !transform_lets_follow(change->table->def, change->after, change->origin, &apply->types),
		.is_merged = change->table->is_merged,
		.rules = &apply->rules,
		.types = &apply->types,
		.rel = rel,
	};
	plan = change->table->is_merged ? apply_schema_merge_plan(change, rel) : schema_evolve_plan(&change->evolve);
	transform_index_steps(apply->pipeline_id, change->table->table_id, &change->evolve, rel,
						  (change->kinds & CATALOG_CHANGE_BIT(CATALOG_CHANGE_INDEX)) != 0, plan);
	change->recomputed = schema_recomputes(&change->evolve);
	change->kinds |= plan->kinds | (change->recomputed != NULL ? CATALOG_CHANGE_BIT(CATALOG_CHANGE_ALTER_TYPE) : 0);
	relation_close(rel, NoLock);
	change->evolve.rel = NULL;
	return plan;
}

/* Does every step go by without anything being done, because the options leave it out? */
static bool
is_ignored(const SchemaPlan *plan)
{
	ListCell   *lc;

	foreach(lc, plan->steps)
	{
		if (!((const SchemaStep *) lfirst(lc))->ignored)
			return false;
	}
	return plan->steps != NIL;
}

/* ------------------------------------------------------------------- the history */

static void
write_history(Apply *apply, const ApplySchemaChange *change, uint32 kinds, List *commands, CatalogChangeResult result,
			  const UtilErrorInfo *error)
{
	CatalogSchemaChange row = {
		.pipeline_id = apply->pipeline_id,
		.table_id = change->table->table_id,
		.source_schema = util_name_of_source(change->table->schema),
		.source_table = util_name_of_source(change->table->name),
		.position = change->at,
		.gtid = change->gtid,
		.source_time_us = change->source_time_us,
		.kinds = kinds,
		.statement = change->statement,
		.commands = commands,
		.result = result,
		.error = error,
	};

	catalog_history_insert(&row, apply->rules.max_rows);
}

/* A statement as it may be shown, in the database's encoding; NULL when it has no form there. */
char *
apply_schema_text(const CdcStatement *text)
{
	MemoryContext cxt = CurrentMemoryContext;
	char	   *volatile result = NULL;
	char	   *utf8;
	size_t		len = text->len;

	while (len > 0 && (text->text[len - 1] == '\0' || text->text[len - 1] == ' '))
		len--;
	if (!pg_verify_mbstr(PG_UTF8, text->text, (int) len, true))
		return NULL;
	/* the address of a FEDERATED table holds a password */
	if (ddl_statement_mentions(text->text, text->len, text->sql_mode, "connection", true))
		return NULL;
	utf8 = pnstrdup(text->text, len);
	PG_TRY();
	{
		result = pg_any_to_server(utf8, (int) strlen(utf8), PG_UTF8);
	}
	PG_CATCH();
	{
		/* a character that the database's encoding does not have */
		MemoryContextSwitchTo(cxt);
		FlushErrorState();
	}
	PG_END_TRY();
	return result;
}

/* ----------------------------------------------------------------- carrying it out */

/* Is an error of the target's DDL the table's own? What depends on a column (views) is, too. */
static bool
is_own(int sqlstate)
{
	return heap_error_is_tables_own(sqlstate) || sqlstate == ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST;
}

/* Rows of a table without a key cannot be copied anew beside themselves. */
#define KEYLESS_HINT "Empty the target with TRUNCATE, then use cdc_resync_table()."

static char *
keyless_detail(const char *why)
{
	return psprintf("%c%s, and a table without a key cannot be copied anew beside its rows.", pg_toupper((unsigned char) why[0]), why + 1);
}

static void
tell_copy(const Apply *apply, const ApplyTable *table, const char *why)
{
	ereport(LOG,
			(errmsg("source table \"%s.%s\" of pipeline \"%s\" is copied anew because of a change of its shape",
					table->schema, table->name, apply->pipeline_name),
			 errdetail("%c%s.", pg_toupper((unsigned char) why[0]), why + 1)));
}

/* What the rows of a table lack is copied, beside them. In the open transaction. */
static void
ask_for_copy(Apply *apply, const ApplySchemaChange *change, const char *why)
{
	catalog_pipeline_ask_tables(apply->pipeline_id);
	(void) catalog_table_ask_resync(apply->pipeline_id, change->table->table_id);
	apply->join_wanted = true;
	tell_copy(apply, change->table, why);
}

/* One try, in the open transaction, which the caller commits. */
static void
attempt(Apply *apply, MemoryContext cxt, ApplySchemaChange *change)
{
	ApplyTable *table = change->table;
	SchemaPlan *plan;
	HeapRow    *row;
	Datum		own_rows;
	const char *copy;

	apply_begin(apply);
	MemoryContextSwitchTo(cxt);
	util_lock_wait_briefly();
	apply_table_lock_target(table);
	catalog_lock_table(apply->pipeline_id, table->table_id, RowExclusiveLock);
	PushActiveSnapshot(GetTransactionSnapshot());
	plan = make_plan(apply, change, AccessShareLock);
	if (schema_evolve_has_commands(plan))
	{
		LockRelationOid(table->target, AccessExclusiveLock);
		plan = make_plan(apply, change, NoLock);
		pgstat_report_activity(STATE_RUNNING,
							   psprintf("pipeline %s alters table %s", apply->pipeline_name, plan->name));
		schema_evolve_run(plan);
	}
	else
		schema_evolve_run(plan);	/* only what it comes to */
	if (table->is_merged)
		apply_schema_merge_fit(apply, change, plan);
	util_lock_wait_long();

	/* does it fit now, rights and key included? */
	row = heap_row_open(table->target, change->after, &apply->types);
	copy = change->evolve.has_rows ? (change->copy != NULL ? change->copy : plan->copy) : NULL;
	if (copy == NULL)
		copy = change->recomputed;
	if (copy == NULL)
		copy = apply_letters_want_copy(apply, change);
	if (copy == NULL && change->evolve.has_rows && transform_table_kind(change->after, &apply->types) != TRANSFORM_APPEND &&
		transform_names_move(table->def, change->after, &apply->types))
		copy = "a column is called like metadata that an expression uses, which means another thing with it than without";
	own_rows = table->is_part ? apply_schema_merge_own(apply, change, row, copy != NULL) : (Datum) 0;
	heap_row_close(row);
	if (copy != NULL && change->after->nkey == 0)
		ereport(ERROR,
				(errcode(CDC_ERRCODE_TABLE_CHANGED),
				 errmsg("source table \"%s.%s\" changed its shape", table->schema, table->name),
				 errdetail("%s", keyless_detail(copy)),
				 errhint(KEYLESS_HINT)));

	/* the pipeline's state lock from here on */
	if (copy != NULL)
		ask_for_copy(apply, change, copy);
	else
		apply_letters_reshape(apply, change);
	catalog_table_set_definition(apply->pipeline_id, table->table_id, schema_def_to_jsonb(change->after));
	if (own_rows != (Datum) 0)
		catalog_table_set_own_rows(apply->pipeline_id, table->table_id, own_rows);
	apply_ddl_got_locks(apply, change->wait);
	apply->index_wanted |= transform_index_write(apply->pipeline_id, table->table_id, &change->evolve, table->target);
	if (change->kinds != 0 || copy != NULL)
		write_history(apply, change, change->kinds, plan->commands,
					  plan->failed != NULL ? CATALOG_CHANGE_FAILED : is_ignored(plan) ? CATALOG_CHANGE_IGNORED : CATALOG_CHANGE_APPLIED,
					  plan->failed);
	PopActiveSnapshot();

	apply_table_set_def(apply, table, change->after);
	if (own_rows != (Datum) 0)
		apply_table_set_own(table, own_rows);
	apply_cascades_load(apply);
}

/* The table stops where the statement stands, and the history says why. */
static ApplyResult
stop_table(Apply *apply, const ApplySchemaChange *change, ApplyStop *stop)
{
	CdcPosition at = change->at;
	ApplyResult result = apply_stop(apply, list_make1(stop), &at);

	heap_transaction_begin();
	MemoryContextSwitchTo(apply->change_cxt);
	PushActiveSnapshot(GetTransactionSnapshot());
	write_history(apply, change, change->kinds, NIL, CATALOG_CHANGE_STOPPED, stop->error);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(apply->change_cxt);
	return result;
}

/* What helps when a statement on the target failed, and PostgreSQL does not say it. */
static char *
ddl_hint(Apply *apply, const ApplyTable *table, int sqlstate)
{
	char	   *hint;

	heap_transaction_begin();
	MemoryContextSwitchTo(apply->change_cxt);
	hint = heap_ddl_hint(table->target, sqlstate);
	CommitTransactionCommand();
	MemoryContextSwitchTo(apply->change_cxt);
	return hint != NULL ? hint : pstrdup("Mend the cause. " APPLY_HINT_ANEW);
}

/* Because of an error that was caught. */
static ApplyResult
stop_for(Apply *apply, const ApplySchemaChange *change, const ErrorData *edata)
{
	UtilErrorInfo *error = util_error_info(edata);

	if (error->hint == NULL)
		error->hint = ddl_hint(apply, change->table, error->sqlstate);
	return stop_table(apply, change, apply_stop_for(change->table, error));
}

/*
 * The target's rows cannot have the new shape: two have one key when what the source made of a column of it is not known here, or
 * somebody wrote to them. A copy has what the source has. Columns that are to be kept ("lenient") would lack what comes until it begins.
 */
static bool
copy_mends(const Apply *apply, const ApplySchemaChange *change, int sqlstate)
{
	return ERRCODE_TO_CATEGORY(sqlstate) == ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION && apply->rules.mode == CATALOG_MODE_EVOLVE &&
		change->after->nkey > 0 && change->table->def->nkey > 0 && !change->table->is_merged;
}

/*
 * Have the target follow. On APPLY_OK either the open transaction has it all, for the caller to commit, or the table is
 * stopped. Nothing of the source transaction that is coming in may be applied yet.
 */
ApplyResult
apply_schema_carry_out(Apply *apply, ApplySchemaChange *change)
{
	const char *activity = pgstat_get_backend_current_activity(MyProcPid, false);
	char	   *before = pstrdup(activity ? activity : "");
	ErrorData  *volatile edata = NULL;
	volatile bool done = false;
	CdcTableDef *after = change->after;
	ApplyDdlWait wait = {.tables = list_make1(change->table)};

	change->wait = &wait;
	if (apply->unwritten_rows > 0)
		elog(ERROR, "changes before a change of shape are not written");
	if (apply->open)
		apply_commit(apply);	/* only whole transactions are in it */
	while (!done)
	{
		MemoryContext cxt = apply_ddl_try_context(apply);
		CdcArena	arena;

		/* the plan marks columns in it */
		cdc_arena_init(&arena, util_context_allocator(cxt), 0);
		change->after = cdc_table_def_copy(after, &arena);
		if (change->after == NULL)
			util_throw_out_of_memory();
		transform_kind_use_key(change->after, &apply->types);
		edata = NULL;
		PG_TRY();
		{
			attempt(apply, cxt, change);
			done = true;
		}
		PG_CATCH();
		{
			MemoryContextSwitchTo(apply->change_cxt);
			edata = CopyErrorData();
			if (!util_lock_is_missed(edata->sqlerrcode) && !is_own(edata->sqlerrcode))
				PG_RE_THROW();
			FlushErrorState();
		}
		PG_END_TRY();
		if (edata == NULL)
			break;
		apply_abandon(apply);
		change->after = after;
		MemoryContextDelete(cxt);
		if (copy_mends(apply, change, edata->sqlerrcode))
		{
			apply_schema_copy_anew(apply, change, psprintf("its rows do not fit (%s)", edata->message));
			pgstat_report_activity(STATE_RUNNING, before);
			return APPLY_OK;
		}
		if (!util_lock_is_missed(edata->sqlerrcode))
		{
			ApplyResult result = stop_for(apply, change, edata);

			pgstat_report_activity(STATE_RUNNING, before);
			return result;
		}
		FreeErrorData(edata);
		apply_ddl_await(apply, &wait);
	}
	pgstat_report_activity(STATE_RUNNING, before);
	return APPLY_OK;
}

/* ----------------------------------------------------------------- copies under way */

/*
 * The shape changes while the table is copied: chunks may have seen either shape, so the copy begins anew, from a place of
 * the stream at which it is the one or the other. Nothing open of the source transaction. In a transaction of its own.
 */
void
apply_schema_copy_anew(Apply *apply, ApplySchemaChange *change, const char *why)
{
	ApplyTable *table = change->table;

	if (apply->unwritten_rows > 0)
		elog(ERROR, "changes before a change of shape are not written");
	if (apply->open)
		apply_commit(apply);
	if (!apply_table_is_copying(table) && table->def->nkey == 0)
	{
		(void) stop_table(apply, change, apply_stop_make(table, CDC_ERRCODE_TABLE_CHANGED,
														 psprintf("source table \"%s.%s\" changed its shape", table->schema, table->name),
														 keyless_detail(why), KEYLESS_HINT));
		return;
	}
	heap_transaction_begin();
	MemoryContextSwitchTo(apply->change_cxt);
	/* keeps a chunk from being written while the plan goes that it belongs to */
	catalog_lock_table(apply->pipeline_id, table->table_id, RowExclusiveLock);
	PushActiveSnapshot(GetTransactionSnapshot());
	catalog_pipeline_ask_tables(apply->pipeline_id);
	catalog_table_copy_anew(apply->pipeline_id, table->table_id);
	write_history(apply, change, change->kinds, NIL, CATALOG_CHANGE_APPLIED, NULL);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(apply->change_cxt);

	table->state = CATALOG_TABLE_SNAPSHOT;
	table->begins_anew = true;
	apply->join_wanted = true;
	tell_copy(apply, table, why);
}

/* -------------------------------------------------------------------- statements */

/* What kinds of change the two definitions show, for the history of a change that is not planned. */
static uint32
kinds_of_statement(const DdlTableChange *read)
{
	uint32		kinds = 0;

	if (read->changes_indexes)
		kinds |= CATALOG_CHANGE_BIT(CATALOG_CHANGE_INDEX);
	if (read->changes_key)
		kinds |= CATALOG_CHANGE_BIT(CATALOG_CHANGE_ALTER_KEY);
	return kinds;
}

/* One table. */
static ApplyResult
follow(Apply *apply, const CdcEvent *event, const DdlStatement *statement, ApplyTable *table, const CdcPosition *at)
{
	const CdcStatement *text = &event->statement;
	DdlTableChange read;
	ApplySchemaChange change = {0};
	CdcTableDef whole = *table->def;	/* the statement is about the source's key, whether it is of use here or not */

	whole.nkey = transform_kind_source_nkey(&whole);
	if (ddl_table_change(text->text, text->len, text->schema ? text->schema : "", text->sql_mode,
						 text->by_mariadb ? DDL_DIALECT_MARIADB : DDL_DIALECT_MYSQL, &whole, &apply->arena, &read) != CDC_OK)
		util_throw_out_of_memory();

	transform_kind_use_key(read.after, &apply->types);
	change.table = table;
	change.at = *at;
	change.gtid = event->gtid;
	change.source_time_us = event->source_time_us;
	change.statement = apply_schema_text(text);
	change.after = read.after;
	change.origin = read.origin;
	change.is_strict = (text->sql_mode & DDL_MODE_STRICT) != 0;
	change.is_told = change.defaults_known = true;
	change.computes_anew = read.computes_anew;
	change.kinds = kinds_of_statement(&read);

	/* neither columns nor key: what chunks do not see is no matter for a copy */
	if (apply_table_is_copying(table) && !statement->changes_shape && !read.certain)
		return APPLY_OK;
	if (apply_table_is_copying(table) && (statement->changes_shape || read.moves_rows))
	{
		apply_schema_copy_anew(apply, &change, psprintf("it was changed by %s while it was copied", statement->verb));
		return APPLY_OK;
	}
	if (!read.certain)
	{
		apply_schema_copy_anew(apply, &change, psprintf("what %s made of it was not understood", statement->verb));
		return APPLY_OK;
	}
	if (read.moves_rows)
		change.copy = psprintf("%s moves rows without logging them", statement->verb);
	if (apply_schema_carry_out(apply, &change) == APPLY_REWIND)
		return APPLY_REWIND;
	apply->commit_due |= apply->open;
	return APPLY_OK;
}

bool
apply_schema_is_followed(const Apply *apply, const ApplyTable *table, const CdcPosition *at)
{
	return apply->rules.mode != CATALOG_MODE_EXCEPTION && !apply->in_txn && table->def != NULL &&
		!apply_table_is_stopped(table, at) && !apply_table_joins_later(table, at);
}

ApplyResult
apply_schema_statement(Apply *apply, const CdcEvent *event, const DdlStatement *statement, const CdcPosition *at, List **followed)
{
	CdcPosition where = *at;
	List	   *tables;
	ListCell   *lc;

	*followed = NIL;
	/* a second table is what it becomes, or what it exchanges a partition with */
	if (!statement->certain || statement->ntables != 1)
		return APPLY_OK;
	tables = apply_table_find_named(apply, statement->tables[0].schema, statement->tables[0].name);
	foreach(lc, tables)
	{
		ApplyTable *table = lfirst(lc);

		if (!apply_schema_is_followed(apply, table, &where) ||
			(statement->changes_cascades && (table->def->known & CDC_FOREIGN_UNLOGGED)))
			continue;
		/* defaults are another matter for a copy, see on_changed_default */
		if (apply_table_is_copying(table) && !statement->changes_shape && statement->changes_default)
			continue;
		*followed = lappend(*followed, table);
		if (follow(apply, event, statement, table, &where) == APPLY_REWIND)
			return APPLY_REWIND;
	}
	return APPLY_OK;
}
