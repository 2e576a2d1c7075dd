/*-------------------------------------------------------------------------
 *
 * apply_statement.c
 *	  A statement in the stream: who follows it, and what it stops.
 *
 * NOTES
 *	  What a statement does to whole tables, and to a table's shape, is followed
 *	  (apply_table_statement.c, apply_schema.c), unless option schema_changes is
 *	  "exception" or the statement is not one to follow for certain. Rows that a statement
 *	  changed without logging them as rows never can be. What is not followed
 *	  stops its table at the start of that transaction, with everything before it
 *	  applied.
 *
 *	  statement text -> kind and names (ddl/)
 *	    names certain      -> our tables among them stop, others do not matter;
 *	                          but see makes_what_we_know
 *	    names not certain  -> our tables named anywhere in the text stop too
 *	    rows changed       -> also the children, by foreign keys, of what is named,
 *	                          and what triggers and functions behind it name
 *	    rows changed, not certain, none of ours named -> all tables stop: which
 *	                          one misses rows now cannot be told
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/snapmgr.h"

#include "apply/apply_private.h"
#include "ddl/statement.h"
#include "mysql/mysql_server.h"
#include "util/util_arena.h"
#include "util/util_gtid.h"
#include "util/util_pattern.h"

/* Our tables that the statement names. first_only: only the first name is acted on. */
static List *
named_tables(Apply *apply, const DdlStatement *statement, bool first_only)
{
	List	   *result = NIL;

	for (uint32 i = 0; i < statement->ntables && !(first_only && i > 0); i++)
		result = list_concat_unique_ptr(result,
										apply_table_find_named(apply, statement->tables[i].schema,
															   statement->tables[i].name));
	return result;
}

/* Tables, and those that foreign keys change with them, down to the last. */
static List *
with_descendants(Apply *apply, List *tables)
{
	/* the list grows while it is walked */
	for (int i = 0; i < list_length(tables); i++)
	{
		const ApplyTable *parent = list_nth(tables, i);

		tables = list_concat_unique_ptr(tables, apply_children_of(apply, parent->schema, parent->name));
	}
	return tables;
}

/*
 * Tables whose foreign keys refer to one that the statement changes the rows of
 * (what the foreign keys do is in no log then), or gives another name: the
 * source's foreign key follows it, ours does not know the new name.
 */
static List *
children_of_named(Apply *apply, const DdlStatement *statement)
{
	List	   *result = NIL;

	if (statement->kind != DDL_DML && statement->kind != DDL_RENAME_TABLE &&
		!(statement->kind == DDL_ALTER_TABLE && statement->ntables > 1))
		return NIL;
	for (uint32 i = 0; i < statement->ntables; i++)
		result = list_concat_unique_ptr(result,
										apply_children_of(apply, statement->tables[i].schema, statement->tables[i].name));
	return statement->kind == DDL_DML ? with_descendants(apply, result) : result;
}

/* Is it only foreign keys that an ALTER TABLE changes, and the server logs what they do, or there is none that does anything? */
static bool
leaves_cascades(const DdlStatement *statement, const ApplyTable *table)
{
	return statement->kind == DDL_ALTER_TABLE && !statement->changes_shape && !statement->renames && !statement->moves_rows &&
		(table->def == NULL || !(table->def->known & CDC_FOREIGN_UNLOGGED));
}

/* Our tables in a schema. */
static List *
tables_of_schema(Apply *apply, const char *schema)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, apply->tables)
	{
		ApplyTable *table = lfirst(lc);

		if ((apply->fold_names ? pg_strcasecmp : strcmp) (table->schema, schema) == 0)
			result = lappend(result, table);
	}
	return result;
}

/* Our tables whose name occurs anywhere in the text. */
static List *
mentioned_tables(Apply *apply, const CdcStatement *text)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, apply->tables)
	{
		ApplyTable *table = lfirst(lc);

		if (ddl_statement_mentions(text->text, text->len, text->sql_mode, table->name, apply->fold_names))
			result = lappend(result, table);
	}
	return result;
}

/* Our tables that the source transaction has changed so far. */
static List *
touched_tables(Apply *apply)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, apply->tables)
	{
		ApplyTable *table = lfirst(lc);

		if (apply->in_txn && apply->txn_changes > 0 && table->touched == apply->txn_no)
			result = lappend(result, table);
	}
	return result;
}

/* Does the statement leave rows, shape and being of every table as they are? */
static bool
is_of_no_consequence(const DdlStatement *statement)
{
	switch (statement->kind)
	{
		case DDL_EMPTY:
		case DDL_BEGIN:
		case DDL_COMMIT:
		case DDL_ROLLBACK:
		case DDL_RELEASE_SAVEPOINT:
		case DDL_XA_START:
		case DDL_XA_END:
		case DDL_XA_PREPARE:
		case DDL_HARMLESS:
			return true;

		case DDL_CREATE_TABLE:
			return statement->is_temporary || (statement->if_not_exists && !statement->or_replace);
		case DDL_DROP_TABLE:
			return statement->is_temporary;
		case DDL_ALTER_TABLE:
		case DDL_INDEX:
			return !statement->changes_shape && !statement->changes_cascades && !statement->renames && !statement->moves_rows;

		case DDL_XA_COMMIT:
		case DDL_XA_ROLLBACK:
		case DDL_SAVEPOINT:
		case DDL_ROLLBACK_TO:
		case DDL_RENAME_TABLE:
		case DDL_TRUNCATE_TABLE:
		case DDL_DROP_SCHEMA:
		case DDL_DML:
		case DDL_UNKNOWN:
			break;
	}
	return false;
}

typedef enum StopReason
{
	STOP_NAMED,					/* the statement names the table */
	STOP_CHILD,					/* it names one that a foreign key of the table refers to */
	STOP_BEHIND,				/* a trigger or routine that it may have run names the table */
	STOP_ANY					/* it may have changed any table */
} StopReason;

/* Why a statement about tables is not followed. */
static const char *
why_not_followed(const Apply *apply, const DdlStatement *statement, StopReason how)
{
	if (!statement->certain)
		return "The statement does not tell for certain which tables it changes; the name of this table occurs in it.";
	if (apply->rules.mode == CATALOG_MODE_EXCEPTION)
		return "Such changes are not followed: option \"schema_changes\" is \"exception\".";
	if (how == STOP_CHILD)
		return "A foreign key of this table refers to what it names.";
	return "What it does to the table cannot be followed here.";
}

/* Why a table stops. */
static ApplyStop *
make_stop(const Apply *apply, ApplyTable *table, const DdlStatement *statement, const char *position, StopReason how)
{
	if (statement->kind == DDL_ROLLBACK_TO)
		return apply_stop_make(table, CDC_ERRCODE_UNSUPPORTED_EVENT,
							   psprintf("changes of source table \"%s.%s\" are followed by ROLLBACK TO SAVEPOINT at %s",
										table->schema, table->name, position),
							   "Which of the transaction's changes still count cannot be told: its log does not show where the savepoint is.",
							   NULL);

	if (statement->kind == DDL_DML || statement->kind == DDL_UNKNOWN)
		return apply_stop_make(table, CDC_ERRCODE_UNSUPPORTED_EVENT,
							   psprintf(how == STOP_ANY
										? "source table \"%s.%s\" may be changed by a statement (%s) at %s"
										: "source table \"%s.%s\" is changed by a statement (%s) at %s",
										table->schema, table->name, statement->verb, position),
							   how == STOP_CHILD
							   ? "The binary log holds the statement instead of the rows that it changed; a foreign key of this table refers to what it names."
							   : how == STOP_BEHIND
							   ? "The binary log holds the statement instead of the rows that it changed; a trigger or stored routine of the source that it may have run names this table."
							   : how == STOP_ANY
							   ? "The binary log holds a statement instead of rows, and it does not tell for certain which tables it changes."
							   : statement->certain && statement->kind == DDL_DML
							   ? "The binary log holds the statement instead of the rows that it changed."
							   : "The binary log holds a statement that does not tell for certain which tables it changes; the name of this table occurs in it.",
							   "Run SET GLOBAL binlog_format = 'ROW' on the source and reconnect its clients. " APPLY_HINT_ANEW);

	return apply_stop_make(table, CDC_ERRCODE_TABLE_CHANGED,
						   psprintf("source table \"%s.%s\" was changed by %s at %s",
									table->schema, table->name, statement->verb, position),
						   psprintf("%s %s", why_not_followed(apply, statement, how), apply_what_target_holds(table)),
						   NULL);
}

/*
 * Something of the open source transaction is rolled back. Our tables that it
 * changed and whose engine has no transactions keep their rows at the source;
 * which of its changes count would have to be told table by table.
 */
List *
apply_stop_lasting(Apply *apply)
{
	List	   *stops = NIL;
	ListCell   *lc;
	char		position[CDC_POSITION_TEXT_MAX];

	cdc_position_format(&apply->txn_start, position);
	foreach(lc, touched_tables(apply))
	{
		ApplyTable *table = lfirst(lc);

		if (table->lasting)
			stops = lappend(stops,
							apply_stop_make(table, CDC_ERRCODE_UNSUPPORTED_EVENT,
											psprintf("changes of source table \"%s.%s\" were rolled back at %s",
													 table->schema, table->name, position),
											psprintf("Its engine %s has no transactions, so the source keeps them.",
													 table->def->engine),
											NULL));
	}
	return stops;
}

/* Had the source committed that statement when the mark was read? There is no mark when it is unknown and gtids is NULL. */
static bool
is_in_mark(const CdcEvent *event, const CdcPosition *mark, const char *gtids)
{
	CdcGtidSet *set;
	int			order;

	if (cdc_position_is_known(mark))
		return cdc_position_is_known(&event->position) &&
			cdc_position_compare(&event->position, mark, &order) && order <= 0;
	if (gtids == NULL)
		return false;

	set = util_gtid_set_create(CDC_GTID_MYSQL, util_context_allocator(CurrentMemoryContext));
	util_gtid_set_add_text(set, gtids);
	return cdc_gtid_set_contains(set, &event->gtid);
}

/* The same for the pipeline's snapshot mark and a statement that is no part of a transaction. */
static bool
is_in_snapshot(Apply *apply, const CdcEvent *event)
{
	CdcPosition mark;
	char	   *gtids;

	return !apply->in_txn &&
		catalog_pipeline_get_snapshot_mark(apply->pipeline_id, &mark, &gtids) &&
		is_in_mark(event, &mark, gtids);
}

/* Must a table stop because of an XA COMMIT of what was prepared before it joined? */
static bool
misses_prepared(Apply *apply, const ApplyTable *table, const CdcEvent *event)
{
	CatalogTable *now = catalog_table_by_id(apply->pipeline_id, table->table_id);

	if (now == NULL || now->state == CATALOG_TABLE_STOPPED ||
		catalog_table_pass_xa(apply->pipeline_id, table->table_id, &event->position))
		return false;
	/* read again: chunks may have been allowed just now */
	now = catalog_table_by_id(apply->pipeline_id, table->table_id);
	return now != NULL && !is_in_mark(event, &now->mark, now->mark_gtids);
}

/*
 * An XA transaction is committed, and tables have not got all that it changed:
 * those that joined after its PREPARE, all when that lies before the pipeline's
 * beginning (prepared is NULL). Either every chunk of a table has seen it, or
 * nobody brings its rows, and the table stops. Runs in a transaction of its own:
 * it takes the state's lock.
 */
static void
stop_tables_without(Apply *apply, const CdcEvent *event, const DdlStatement *statement, const char *position,
					const CatalogPrepared *prepared, List *tables)
{
	const CdcPosition *at = cdc_position_is_known(&apply->streamed) ? &apply->streamed : &event->position;
	List	   *stops = NIL;
	ListCell   *lc;

	heap_transaction_begin();
	MemoryContextSwitchTo(apply->change_cxt);
	PushActiveSnapshot(GetTransactionSnapshot());
	foreach(lc, tables)
	{
		ApplyTable *table = lfirst(lc);
		bool		joined = cdc_position_is_known(&table->join_position);

		if (joined ? !misses_prepared(apply, table, event) : is_in_snapshot(apply, event))
			continue;
		stops = lappend(stops,
						apply_stop_make(table, CDC_ERRCODE_UNSUPPORTED_EVENT,
										psprintf("XA transaction %s was prepared before source table \"%s.%s\" joined",
												 statement->xid, table->schema, table->name),
										psprintf("It was committed at %s; rows that it changed may be missing here.%s", position,
												 prepared == NULL || !prepared->has_tables ? " Which tables it changed is not known." : ""),
										NULL));
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(apply->change_cxt);
	if (stops != NIL)
		(void) apply_stop(apply, stops, at);
}

/* Tables whose changes count now, and whose changes by that transaction are not kept. */
static List *
tables_without(Apply *apply, const CdcEvent *event, const CatalogPrepared *prepared)
{
	const CdcPosition *at = cdc_position_is_known(&apply->streamed) ? &apply->streamed : &event->position;
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, apply->tables)
	{
		ApplyTable *table = lfirst(lc);

		if (!(prepared != NULL && apply_prepared_covers(prepared, table)) &&
			!apply_table_is_stopped(table, at) && !apply_table_joins_later(table, at))
			result = lappend(result, table);
	}
	return result;
}

/* A prepared XA transaction ends. */
static ApplyResult
finish_prepared(Apply *apply, const CdcEvent *event, const DdlStatement *statement, const char *position)
{
	CatalogPrepared *prepared;
	List	   *without;

	apply_begin(apply);
	PushActiveSnapshot(GetTransactionSnapshot());
	prepared = catalog_prepared_find(apply->pipeline_id, statement->xid);
	if (statement->kind == DDL_XA_ROLLBACK && prepared != NULL)
		catalog_prepared_delete(prepared);
	PopActiveSnapshot();
	if (statement->kind == DDL_XA_ROLLBACK)
		return APPLY_OK;

	if (tables_without(apply, event, prepared) != NIL)
	{
		apply_commit(apply);
		/* again: the list of tables may have been read anew */
		without = tables_without(apply, event, prepared);
		stop_tables_without(apply, event, statement, position, prepared, without);
	}
	return prepared != NULL ? apply_prepared_commit(apply, event, prepared) : APPLY_OK;
}

/* Has the stream brought no change of a table whose copy is under way? */
bool
apply_table_is_unchanged(Apply *apply, const ApplyTable *table)
{
	bool		changed;
	bool		keeps_rows;

	if (!apply_table_is_copying(table) || (apply->in_txn && table->touched == apply->txn_no))
		return false;
	apply_begin(apply);
	PushActiveSnapshot(GetTransactionSnapshot());
	catalog_deleted_notes(apply->pipeline_id, table->table_id, &changed, &keeps_rows);
	PopActiveSnapshot();
	return !changed;
}

/* The same for the table of a CREATE TABLE: see makes_what_we_know in apply_table_statement.c. */
static bool
makes_what_we_know(Apply *apply, const DdlStatement *statement, const ApplyTable *table)
{
	return statement->kind == DDL_CREATE_TABLE && statement->certain && !statement->or_replace &&
		apply_table_is_unchanged(apply, table);
}

static void
read_statement(Apply *apply, const CdcStatement *text, DdlStatement *statement)
{
	if (ddl_statement_read(text->text, text->len, text->schema ? text->schema : "", text->sql_mode,
						   &apply->arena, statement) != CDC_OK)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("A statement of %zu bytes could not be read.", text->len)));
}

/* What was kept for an XA COMMIT that is passed over is not going to be applied. */
int64
apply_statement_passed_over(Apply *apply, const CdcEvent *event)
{
	CatalogPrepared *prepared;
	DdlStatement statement;

	read_statement(apply, &event->statement, &statement);
	if (statement.kind != DDL_XA_COMMIT && statement.kind != DDL_XA_ROLLBACK)
		return 0;
	apply_begin(apply);
	PushActiveSnapshot(GetTransactionSnapshot());
	prepared = catalog_prepared_find(apply->pipeline_id, statement.xid);
	if (prepared != NULL)
		catalog_prepared_delete(prepared);
	PopActiveSnapshot();
	return prepared != NULL && statement.kind == DDL_XA_COMMIT ? prepared->changes : 0;
}

/*
 * A column's default is another one from here on, which matters to rows that are
 * inserted without the column. The definition that we have may be older or newer than
 * the statement. Newer only while the table is copied, because the copy reads it
 * after that: rows that were filled by it before cannot be trusted then.
 */
static ApplyResult
on_changed_default(Apply *apply, const DdlStatement *statement, List *followed, const CdcPosition *at, const char *position)
{
	List	   *stops = NIL;
	ListCell   *lc;

	foreach(lc, named_tables(apply, statement, false))
	{
		ApplyTable *table = lfirst(lc);

		if (table->def == NULL || (table->def->known & CDC_KNOWS_DEFAULTS) == 0 || list_member_ptr(followed, table) ||
			apply_table_is_stopped(table, at) || apply_table_joins_later(table, at))
			continue;
		if (apply->open)
			apply_commit(apply);
		heap_transaction_begin();
		MemoryContextSwitchTo(apply->change_cxt);
		PushActiveSnapshot(GetTransactionSnapshot());
		if (apply_table_is_copying(table) && catalog_deleted_used_defaults(apply->pipeline_id, table->table_id))
			stops = lappend(stops, make_stop(apply, table, statement, position, STOP_NAMED));
		else
		{
			table->def->known &= ~(uint32) CDC_KNOWS_DEFAULTS;
			catalog_table_set_definition(apply->pipeline_id, table->table_id, schema_def_to_jsonb(table->def));
		}
		PopActiveSnapshot();
		CommitTransactionCommand();
		MemoryContextSwitchTo(apply->change_cxt);
	}
	return stops != NIL ? apply_stop(apply, stops, at) : APPLY_OK;
}

/* Is a table of the statement one that is there only since then? */
static bool
is_new_name(const DdlStatement *statement, uint32 i)
{
	switch (statement->kind)
	{
		case DDL_CREATE_TABLE:
			return i == 0;
		case DDL_ALTER_TABLE:	/* the others are what RENAME TO, or a partition, becomes */
			return i > 0;
		case DDL_RENAME_TABLE:	/* old, new, old, new, ... */
			return i % 2 == 1;
		default:
			return false;
	}
}

/*
 * A table is made, or gets another name, that fits the pipeline's patterns and is none of its tables. As the statement is not
 * followed the table does not join; but that must not pass in silence.
 */
static void
tell_new_tables(Apply *apply, const DdlStatement *statement, const char *position)
{
	CatalogPipeline *pipeline = NULL;

	for (uint32 i = 0; i < statement->ntables && statement->certain && !statement->is_temporary; i++)
	{
		const char *schema = statement->tables[i].schema;
		const char *name = statement->tables[i].name;

		if (!is_new_name(statement, i) || mysql_schema_is_system(schema) ||
			apply_table_find_named(apply, schema, name) != NIL)
			continue;
		if (pipeline == NULL)
		{
			apply_begin(apply);
			PushActiveSnapshot(GetTransactionSnapshot());
			pipeline = catalog_pipeline_by_id(apply->pipeline_id);
			PopActiveSnapshot();
		}
		if (pipeline == NULL || !util_patterns_match(pipeline->tables, schema, name, NULL))
			continue;
		apply_tell_new_table(apply, schema, name, statement, position);
	}
}

/*
 * Is it about a temporary table, which may hide one of ours? Where rows are logged as statements such statements are logged too,
 * by the plain name, with a mark that a statement about a lasting table has for other reasons only when it makes or fills one.
 */
static bool
is_of_temporary_table(const CdcStatement *text, const DdlStatement *statement)
{
	switch (statement->kind)
	{
		case DDL_ALTER_TABLE:
		case DDL_TRUNCATE_TABLE:
		case DDL_RENAME_TABLE:
		case DDL_INDEX:
			return text->of_session;
		default:
			return false;
	}
}

ApplyResult
apply_statement(Apply *apply, const CdcEvent *event)
{
	const CdcStatement *text = &event->statement;
	const CdcPosition *at = apply->in_txn ? &apply->txn_start : &event->start;
	DdlStatement statement;
	List	   *tables;
	List	   *children;
	List	   *behind = NIL;
	List	   *named = NIL;
	List	   *stops = NIL;
	List	   *followed = NIL;
	ListCell   *lc;
	bool		is_any = false;
	char		position[CDC_POSITION_TEXT_MAX];

	read_statement(apply, text, &statement);
	if (is_of_temporary_table(text, &statement))
		return APPLY_OK;

	if (statement.kind == DDL_SAVEPOINT)
	{
		apply_savepoint(apply, statement.savepoint);
		return APPLY_OK;
	}
	if (statement.kind == DDL_ROLLBACK_TO && (stops = apply_stop_lasting(apply)) != NIL)
		return apply_stop(apply, stops, at);
	if (statement.kind == DDL_ROLLBACK_TO && apply_rollback_to(apply, statement.savepoint))
		return APPLY_OK;
	if (apply_undone_comes_again(apply))
		return APPLY_OK;

	/* what came before it is settled first */
	if (apply_write_batches(apply) == APPLY_REWIND)
		return APPLY_REWIND;
	cdc_position_format(at, position);
	if (apply_table_statement(apply, event, &statement, at))
		return APPLY_OK;
	tell_new_tables(apply, &statement, position);
	if (statement.kind == DDL_HARMLESS)
		apply_forget_code(apply);
	if ((statement.kind == DDL_ALTER_TABLE || statement.kind == DDL_INDEX) &&
		apply_schema_statement(apply, event, &statement, at, &followed) == APPLY_REWIND)
		return APPLY_REWIND;
	if (is_of_no_consequence(&statement))
		return statement.changes_default ? on_changed_default(apply, &statement, followed, at, position) : APPLY_OK;

	if (statement.kind == DDL_XA_COMMIT || statement.kind == DDL_XA_ROLLBACK)
		return finish_prepared(apply, event, &statement, position);

	if (statement.kind == DDL_DML || statement.kind == DDL_UNKNOWN)
		behind = with_descendants(apply, apply_tables_behind(apply, text, &statement, &is_any));
	if (statement.kind == DDL_ROLLBACK_TO)
		tables = touched_tables(apply);
	else if (statement.kind == DDL_DROP_SCHEMA && statement.ntables > 0)
		tables = tables_of_schema(apply, statement.tables[0].schema);
	else
		tables = named_tables(apply, &statement, statement.kind == DDL_CREATE_TABLE && statement.certain);
	children = list_difference_ptr(children_of_named(apply, &statement), tables);
	tables = list_concat(tables, children);
	if (statement.kind != DDL_ROLLBACK_TO && (!statement.certain || statement.kind == DDL_UNKNOWN))
		tables = list_concat_unique_ptr(tables, mentioned_tables(apply, text));

	is_any |= tables == NIL &&
		(statement.kind == DDL_UNKNOWN || (statement.kind == DDL_DML && !statement.certain));
	if (is_any)
		tables = list_copy(apply->tables);
	else
	{
		named = list_copy(tables);
		tables = list_concat_unique_ptr(tables, behind);
	}

	foreach(lc, tables)
	{
		ApplyTable *table = lfirst(lc);

		if (!apply_table_is_stopped(table, at) && !apply_table_joins_later(table, at) &&
			!leaves_cascades(&statement, table) && !makes_what_we_know(apply, &statement, table) &&
			!list_member_ptr(followed, table))
			stops = lappend(stops, make_stop(apply, table, &statement, position,
											is_any ? STOP_ANY : list_member_ptr(children, table) ? STOP_CHILD
											: list_member_ptr(named, table) ? STOP_NAMED : STOP_BEHIND));
	}
	if (stops != NIL)
		return apply_stop(apply, stops, at);
	return statement.changes_default && !statement.changes_shape
		? on_changed_default(apply, &statement, followed, at, position) : APPLY_OK;
}
