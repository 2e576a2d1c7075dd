/*-------------------------------------------------------------------------
 *
 * apply_table_statement.c
 *	  CREATE, DROP, TRUNCATE and RENAME of tables, and what moves rows without
 *	  events: what becomes of our tables.
 *
 * NOTES
 *	  CREATE	a name that the patterns mean joins; CREATE OR REPLACE of one of
 *				ours: it is copied anew
 *	  TRUNCATE	the target is truncated
 *	  DROP		the target is dropped if the pipeline made it, the table leaves
 *	  RENAME	the table follows its name, and the target with it as the routes
 *				say; out of the patterns: it leaves; into them: it joins
 *
 *	  Of a RENAME with several pairs only where each table ends up counts: names
 *	  that change hands do so at once. When a table of ours gives its name to one
 *	  that is not ours, that is the cut-over of a tool that changes tables while
 *	  they are used (gh-ost, pt-online-schema-change): the name goes on, with the
 *	  rows of the other table.
 *
 *	  Rows that come or go with partitions and tablespaces: the table is copied
 *	  anew.
 *
 *	  What is wanted of each kind is said by the options (CatalogChangeMode). With
 *	  "exception" nothing is done here, and the table stops as the caller does it.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "utils/formatting.h"
#include "utils/snapmgr.h"

#include "apply/apply_table_acts.h"
#include "ddl/statement.h"
#include "mysql/mysql_server.h"
#include "transform/transform_route.h"
#include "util/util_helper_table.h"
#include "util/util_name.h"
#include "util/util_pattern.h"

typedef struct Reading
{
	Apply	   *apply;
	const DdlStatement *statement;
	const CdcPosition *at;
	CatalogPipeline *pipeline;	/* as it is now: its patterns and routes may have been changed */
	TransformRoutes *routes;
	bool		refused;		/* the table stops, as the caller does it */
	List	   *acts;			/* of ApplyAct */
} Reading;

/* A table in a RENAME, and how it is called after the pairs so far. */
typedef struct Moved
{
	ApplyTable *table;			/* NULL: none of ours */
	const char *old_schema;
	const char *old_name;
	const char *schema;
	const char *name;
} Moved;

static bool
same_name(const Apply *apply, const char *a, const char *b)
{
	return (apply->fold_names ? pg_strcasecmp(a, b) : strcmp(a, b)) == 0;
}

/*
 * A name that a statement gives, as the server keeps it: one with lower_case_table_names 1 keeps it in lower case. None of our names says which
 * it is (see apply_table.c), so the server is asked, when it matters.
 */
static const char *
kept_name(Apply *apply, const char *name)
{
	bool		matters = false;

	for (const char *p = name; *p != '\0'; p++)
		matters |= (*p >= 'A' && *p <= 'Z') || IS_HIGHBIT_SET(*p);
	if (!matters || !apply->fold_names)
		return name;
	if (apply->server == NULL)
		apply_open_session(apply);
	return apply->server->lower_case_table_names == 1 ? str_tolower(name, strlen(name), DEFAULT_COLLATION_OID) : name;
}

static UtilErrorInfo *
reason(char *message, char *detail)
{
	return util_error_info_make(ERRCODE_SUCCESSFUL_COMPLETION, message, detail, NULL);
}

static void
read_pipeline(Reading *reading)
{
	Apply	   *apply = reading->apply;

	if (reading->pipeline != NULL)
		return;
	apply_begin(apply);
	PushActiveSnapshot(GetTransactionSnapshot());
	reading->pipeline = catalog_pipeline_by_id(apply->pipeline_id);
	PopActiveSnapshot();
	if (reading->pipeline == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("pipeline \"%s\" does not exist any more", apply->pipeline_name)));
	reading->routes = transform_routes_read(reading->pipeline);
}

/*
 * Has the table a place in the stream before the statement, or none yet because its copy is still to begin? Its changes do not
 * count then, but what happens to it as a whole does.
 */
static bool
is_there(const Reading *reading, const ApplyTable *table)
{
	return table->join_is_past || !apply_table_joined_after(table, reading->at);
}

/* Our table of that name, if it is not stopped; NULL when there is none. */
static ApplyTable *
find_ours(const Reading *reading, const char *schema, const char *name)
{
	List	   *found = apply_table_find_named(reading->apply, schema, name);
	ListCell   *lc;

	foreach(lc, found)
	{
		ApplyTable *table = lfirst(lc);

		if (table->def != NULL && table->def->nkey == 0 && apply_table_is_copying(table) && !reading->apply->in_txn)
			apply_table_check_mark(reading->apply, table);
		if (!apply_table_is_stopped(table, reading->at) && is_there(reading, table))
			return table;
	}
	return NULL;
}

/* Our table of that name, stopped or not: it follows its name all the same. One that joins later has the name that it gets. */
static ApplyTable *
find_with_name(const Reading *reading, const char *schema, const char *name)
{
	ListCell   *lc;

	foreach(lc, apply_table_find_named(reading->apply, schema, name))
	{
		ApplyTable *table = lfirst(lc);

		if (is_there(reading, table))
			return table;
	}
	return NULL;
}

/* A table that a tool makes for the time of its work, of one that we have? Unless the list names it. */
static bool
is_helper(const Reading *reading, const char *schema, const char *name)
{
	ListCell   *lc;

	foreach(lc, util_helper_table_bases(name))
	{
		if (apply_table_find_named(reading->apply, schema, lfirst(lc)) != NIL)
			return !util_patterns_name(reading->pipeline->tables, util_name_of_source(schema), util_name_of_source(name));
	}
	return false;
}

/* Is it a table for this pipeline? */
static bool
is_meant(Reading *reading, const char *schema, const char *name)
{
	read_pipeline(reading);
	return !mysql_schema_is_system(schema) &&
		util_patterns_match(reading->pipeline->tables, util_name_of_source(schema), util_name_of_source(name), NULL) &&
		!is_helper(reading, schema, name);
}

static ApplyAct *
add_act(Reading *reading, ApplyActWhat what, ApplyTable *table, const char *schema, const char *name, CatalogChangeKind kind)
{
	ApplyAct   *act = palloc0(sizeof(ApplyAct));

	act->what = what;
	act->table = table;
	act->schema = schema;
	act->name = name;
	act->kind = kind;
	act->mode = catalog_change_mode(&reading->apply->rules, kind);
	act->result = CATALOG_CHANGE_APPLIED;
	reading->acts = lappend(reading->acts, act);
	return act;
}

/* The options leave it out. */
static void
ignore(ApplyAct *act, ApplyActWhat what)
{
	act->keeps_rows = act->what == APPLY_ACT_TRUNCATE || act->what == APPLY_ACT_COPY;
	act->what = what;
	act->result = CATALOG_CHANGE_IGNORED;
}

static ApplyAct *
add_for(Reading *reading, ApplyActWhat what, ApplyTable *table, CatalogChangeKind kind)
{
	return add_act(reading, what, table, table->schema, table->name, kind);
}

void
apply_tell_new_table(const Apply *apply, const char *schema, const char *name, const DdlStatement *statement, const char *position)
{
	ereport(LOG,
			(errmsg("source table \"%s.%s\" fits the patterns of pipeline \"%s\" and is not mirrored",
					schema, name, apply->pipeline_name),
			 errdetail("It is new there, or has a new name, by %s at %s. With the option \"schema_changes\" as it is, tables do not join by themselves.",
					   statement->verb, position),
			 errhint("Let it join with cdc_add_table(), or leave it out with cdc_remove_table().")));
}

/* A table that is not ours is there under a name that may be meant for us. */
static void
add_new(Reading *reading, const char *schema, const char *name)
{
	ApplyAct   *act;
	char		position[CDC_POSITION_TEXT_MAX];

	if (!is_meant(reading, schema, name))
		return;
	act = add_act(reading, APPLY_ACT_JOIN, NULL, schema, name, CATALOG_CHANGE_CREATE_TABLE);
	if (act->mode != CATALOG_MODE_IGNORE && act->mode != CATALOG_MODE_EXCEPTION)
		return;
	ignore(act, APPLY_ACT_NOTHING);
	cdc_position_format(reading->at, position);
	apply_tell_new_table(reading->apply, schema, name, reading->statement, position);
}

/* ------------------------------------------------------------------ statements */

/*
 * Does a CREATE TABLE make a table that we know as it made it? The stream was
 * behind when the table's definition was read. Had it been read before the
 * statement, the table would have been there already, and would have had to be
 * dropped or renamed first, where it would have left; see also what
 * snapshot_join.c says on definitions. A drop that was kept out of the log shows
 * by changes that came before.
 */
static bool
makes_what_we_know(const Reading *reading, const ApplyTable *table)
{
	return !reading->statement->or_replace && !table->awaits_copy && apply_table_is_unchanged(reading->apply, table);
}

static void
read_create(Reading *reading)
{
	const DdlTableName *name = &reading->statement->tables[0];
	ApplyTable *table;
	ApplyAct   *act;

	if (apply_table_find_named(reading->apply, name->schema, name->name) == NIL)
	{
		add_new(reading, kept_name(reading->apply, name->schema), kept_name(reading->apply, name->name));
		return;
	}
	table = find_ours(reading, name->schema, name->name);
	if (table == NULL || (reading->statement->if_not_exists && !reading->statement->or_replace))
		return;
	if (makes_what_we_know(reading, table))
		return;
	act = add_for(reading, APPLY_ACT_COPY, table, CATALOG_CHANGE_DROP_TABLE);
	if (act->mode == CATALOG_MODE_EXCEPTION)
		reading->refused = true;
	else if (act->mode == CATALOG_MODE_LENIENT || act->mode == CATALOG_MODE_IGNORE)
		ignore(act, APPLY_ACT_NOTHING);
	else
		act->error = reason(pstrdup("another table has the name: it is copied anew"), NULL);
}

static void
read_truncate(Reading *reading)
{
	for (uint32 i = 0; i < reading->statement->ntables; i++)
	{
		ApplyTable *table = find_ours(reading, reading->statement->tables[i].schema, reading->statement->tables[i].name);
		ApplyAct   *act;

		if (table == NULL)
			continue;
		act = add_for(reading, APPLY_ACT_TRUNCATE, table, CATALOG_CHANGE_TRUNCATE_TABLE);
		if (act->mode == CATALOG_MODE_LENIENT || act->mode == CATALOG_MODE_IGNORE)
			ignore(act, APPLY_ACT_NOTHING);
	}
}

static void
drop_table(Reading *reading, ApplyTable *table)
{
	ApplyAct   *act = add_for(reading, APPLY_ACT_DROP, table, CATALOG_CHANGE_DROP_TABLE);
	CatalogTable *now;

	if (act->mode != CATALOG_MODE_EVOLVE)
	{
		ignore(act, APPLY_ACT_LEAVE);
		return;
	}
	apply_begin(reading->apply);
	PushActiveSnapshot(GetTransactionSnapshot());
	now = catalog_table_by_id(reading->apply->pipeline_id, table->table_id);
	PopActiveSnapshot();
	if (now != NULL && now->own_rows != (Datum) 0)
	{
		/* the others' rows stay in any case; its own go only when that was asked for */
		if (reading->apply->rules.is_default)
			ignore(act, APPLY_ACT_LEAVE);
		return;
	}
	if (now == NULL || now->made)
		return;
	act->what = APPLY_ACT_LEAVE;
	act->error = reason(pstrdup("the target was there before the pipeline, and stays"), NULL);
}

static void
read_drop(Reading *reading)
{
	const DdlStatement *statement = reading->statement;
	ListCell   *lc;

	for (uint32 i = 0; statement->kind == DDL_DROP_TABLE && i < statement->ntables; i++)
	{
		ApplyTable *table = find_with_name(reading, statement->tables[i].schema, statement->tables[i].name);

		if (table != NULL)
			drop_table(reading, table);
	}
	foreach(lc, statement->kind == DDL_DROP_SCHEMA && statement->ntables > 0 ? reading->apply->tables : NIL)
	{
		ApplyTable *table = lfirst(lc);

		if (same_name(reading->apply, table->schema, statement->tables[0].schema) &&
			find_with_name(reading, table->schema, table->name) == table)
			drop_table(reading, table);
	}
}

/* ---- rename ---- */

static Moved *
find_moved(const Reading *reading, List *moved, const char *schema, const char *name)
{
	ListCell   *lc;

	foreach(lc, moved)
	{
		Moved	   *m = lfirst(lc);

		if (same_name(reading->apply, m->schema, schema) && same_name(reading->apply, m->name, name))
			return m;
	}
	return NULL;
}

/* Where tables end up, pair by pair. */
static List *
follow_pairs(Reading *reading)
{
	const DdlStatement *statement = reading->statement;
	List	   *moved = NIL;

	for (uint32 i = 0; i + 1 < statement->ntables; i += 2)
	{
		const DdlTableName *from = &statement->tables[i];
		const DdlTableName *to = &statement->tables[i + 1];
		Moved	   *m = find_moved(reading, moved, from->schema, from->name);

		if (m == NULL)
		{
			m = palloc0(sizeof(Moved));
			m->table = find_with_name(reading, from->schema, from->name);
			m->old_schema = from->schema;
			m->old_name = from->name;
			moved = lappend(moved, m);
		}
		m->schema = kept_name(reading->apply, to->schema);
		m->name = kept_name(reading->apply, to->name);
	}
	return moved;
}

/* The same routes lead from its new name. */
static void
find_place(const Reading *reading, ApplyAct *act, const Moved *m)
{
	char	   *before_schema;
	char	   *before_table;
	bool		is_cut;

	(void) transform_route_target(reading->routes, util_name_of_source(m->table->schema), util_name_of_source(m->table->name),
								  &before_schema, &before_table, NULL);
	if (!transform_route_target(reading->routes, util_name_of_source(m->schema), util_name_of_source(m->name),
								&act->target_schema, &act->target_table, &is_cut) ||
		(strcmp(before_schema, act->target_schema) == 0 && strcmp(before_table, act->target_table) == 0))
		act->target_schema = act->target_table = NULL;
}

/* The routes lead to the same target under its new name, which another table gets: a name that nothing goes to. */
static void
find_way_out(const Reading *reading, ApplyAct *act, const Moved *m)
{
	char	   *name;

	(void) transform_route_target(reading->routes, util_name_of_source(m->table->schema), util_name_of_source(m->table->name),
								  &act->target_schema, &act->target_table, NULL);
	name = psprintf("%s_left_%d", act->target_table, m->table->table_id);
	act->target_table = util_name_is_long(name) ? util_name_with_hash(name, name) : name;
}

/* Our other table that has the new name already, and does not lose it in the same statement; NULL when there is none. */
static ApplyTable *
find_holder(const Reading *reading, List *moved, const Moved *m)
{
	ListCell   *lc;

	foreach(lc, apply_table_find_named(reading->apply, m->schema, m->name))
	{
		ApplyTable *holder = lfirst(lc);
		bool		moves = holder == m->table;
		ListCell   *lc2;

		foreach(lc2, moved)
			moves |= ((Moved *) lfirst(lc2))->table == holder;
		if (!moves)
			return holder;
	}
	return NULL;
}

/* One of ours has another name, which is meant for us. */
static void
rename_ours(Reading *reading, List *moved, const Moved *m)
{
	ApplyTable *holder = find_holder(reading, moved, m);
	ApplyAct   *act;

	if (holder != NULL)
	{
		/*
		 * The stream was behind when that one joined: it is this table, under the name that it got. Its copy was read after
		 * the source had given it that name, so it has all that came before.
		 */
		drop_table(reading, m->table);
		act = llast(reading->acts);
		act->error = reason(psprintf("its new name \"%s.%s\" is followed already", util_name_of_source(m->schema), util_name_of_source(m->name)), NULL);
		if (!apply_table_is_copying(holder))
			add_for(reading, APPLY_ACT_COPY, holder, CATALOG_CHANGE_RENAME_TABLE);
		return;
	}
	act = add_for(reading, APPLY_ACT_RENAME, m->table, CATALOG_CHANGE_RENAME_TABLE);
	act->new_schema = m->schema;
	act->new_table = m->name;
	/* what is copied is read by its name; a copy also follows a shape that changes in the same statement */
	/* the name may be what tells the rows of a merged table */
	act->copy = apply_table_is_copying(m->table) || m->table->is_merged || (reading->statement->kind == DDL_ALTER_TABLE && reading->statement->changes_shape);
	if (act->mode == CATALOG_MODE_IGNORE)
		ignore(act, APPLY_ACT_RENAME);
	else
		find_place(reading, act, m);
}

/* A table that is not ours has the name of one that is: its rows are the table's from now on. */
static void
take_over(Reading *reading, ApplyTable *table)
{
	ApplyAct   *act = add_for(reading, APPLY_ACT_COPY, table, CATALOG_CHANGE_RENAME_TABLE);

	if (act->mode == CATALOG_MODE_IGNORE)
		ignore(act, APPLY_ACT_NOTHING);
	else if (reading->apply->online_change_follows)
	{
		act->what = APPLY_ACT_NOTHING;
		table->was_replaced = true;
		act->error = reason(pstrdup("another table has the name, and is taken to have the same rows: option \"online_schema_change\" is \"follow\""), NULL);
	}
	else
		act->error = reason(pstrdup("another table has the name: it is copied anew"), NULL);
}

/* One of ours has a name that is not meant for us. */
static void
lose_ours(Reading *reading, List *moved, const Moved *m)
{
	const Moved *successor = find_moved(reading, moved, m->old_schema, m->old_name);
	ApplyAct   *act;
	ListCell   *lc;

	if (successor == NULL)
	{
		act = add_for(reading, APPLY_ACT_LEAVE, m->table, CATALOG_CHANGE_RENAME_TABLE);
		act->error = reason(psprintf("its new name \"%s.%s\" is not one of the pipeline's", util_name_of_source(m->schema), util_name_of_source(m->name)), NULL);
		/* the first half of a cut-over in two statements: the name comes back */
		foreach(lc, same_name(reading->apply, m->schema, m->old_schema) ? util_helper_table_bases(m->name) : NIL)
		{
			if (!same_name(reading->apply, lfirst(lc), m->old_name))
				continue;
			ignore(act, APPLY_ACT_NOTHING);
			act->error->detail = psprintf("It looks like one that a tool gives to a table that it is about to replace. The pipeline waits for the name \"%s.%s\" to come back.",
										  util_name_of_source(m->old_schema), util_name_of_source(m->old_name));
			break;
		}
	}
	else if (successor->table == NULL)
	{
		if (!apply_table_is_stopped(m->table, reading->at))
			take_over(reading, m->table);
	}
	else
	{
		act = add_for(reading, APPLY_ACT_LEAVE, m->table, CATALOG_CHANGE_RENAME_TABLE);
		act->error = reason(psprintf("its new name \"%s.%s\" is not one of the pipeline's", util_name_of_source(m->schema), util_name_of_source(m->name)), NULL);
		/* its target makes room for that of the one that has its name now */
		act->target_moves = act->mode != CATALOG_MODE_IGNORE;
		if (act->target_moves)
			find_place(reading, act, m);
		if (act->target_moves && act->target_table == NULL)
			find_way_out(reading, act, m);
	}
}

/* Tables whose foreign keys follow a name: what they refer to is in the definition, which is read when a copy begins. */
static void
copy_children(Reading *reading, const Moved *m)
{
	ListCell   *lc;

	foreach(lc, apply_children_of(reading->apply, m->old_schema, m->old_name))
	{
		ApplyTable *child = lfirst(lc);

		if (child->def == NULL || !(child->def->known & CDC_FOREIGN_UNLOGGED) || child == m->table ||
			find_ours(reading, child->schema, child->name) != child)
			continue;
		add_for(reading, APPLY_ACT_COPY, child, CATALOG_CHANGE_RENAME_TABLE)->error =
			reason(pstrdup("a table that a foreign key refers to has another name: it is copied anew"), NULL);
	}
}

/* A table that is not ours has another name: it may be new to us, or take the name of one of ours. */
static void
move_other(Reading *reading, List *moved, const Moved *m)
{
	const Moved *origin = NULL;
	ApplyTable *ours;
	ListCell   *lc;

	foreach(lc, moved)
	{
		const Moved *other = lfirst(lc);

		if (same_name(reading->apply, other->old_schema, m->schema) && same_name(reading->apply, other->old_name, m->name))
			origin = other;
	}
	if (apply_table_find_named(reading->apply, m->schema, m->name) == NIL ||
		(origin != NULL && origin->table != NULL && is_meant(reading, origin->schema, origin->name)))
		add_new(reading, m->schema, m->name);
	else if (origin == NULL && (ours = find_ours(reading, m->schema, m->name)) != NULL)
		take_over(reading, ours);
}

static void
read_rename(Reading *reading)
{
	List	   *moved = follow_pairs(reading);
	ListCell   *lc;

	read_pipeline(reading);
	foreach(lc, moved)
	{
		const Moved *m = lfirst(lc);

		if (same_name(reading->apply, m->schema, m->old_schema) && same_name(reading->apply, m->name, m->old_name))
			continue;
		if (m->table == NULL)
		{
			move_other(reading, moved, m);
			continue;
		}
		if (is_meant(reading, m->schema, m->name))
			rename_ours(reading, moved, m);
		else
			lose_ours(reading, moved, m);
		copy_children(reading, m);
	}
}

/* ---- rows that move without events ---- */

static void
read_moved_rows(Reading *reading)
{
	for (uint32 i = 0; i < reading->statement->ntables; i++)
	{
		ApplyTable *table = find_ours(reading, reading->statement->tables[i].schema, reading->statement->tables[i].name);
		ApplyAct   *act;

		if (table == NULL)
			continue;
		act = add_for(reading, APPLY_ACT_COPY, table, CATALOG_CHANGE_TRUNCATE_TABLE);
		if (act->mode == CATALOG_MODE_IGNORE || (act->mode == CATALOG_MODE_LENIENT && reading->statement->removes_rows))
			ignore(act, APPLY_ACT_NOTHING);
		else
			act->error = reason(pstrdup("rows came or went without events: it is copied anew"), NULL);
	}
}

/* ------------------------------------------------------------------ all of them */

/* The kind by which the options say what is wanted; false: the statement is none of these. */
static bool
kind_of(const DdlStatement *statement, CatalogChangeKind *kind)
{
	switch (statement->kind)
	{
		case DDL_CREATE_TABLE:
			*kind = CATALOG_CHANGE_CREATE_TABLE;
			return !statement->is_temporary && statement->ntables > 0;
		case DDL_DROP_TABLE:
		case DDL_DROP_SCHEMA:
			*kind = CATALOG_CHANGE_DROP_TABLE;
			return !statement->is_temporary;
		case DDL_TRUNCATE_TABLE:
			*kind = CATALOG_CHANGE_TRUNCATE_TABLE;
			return true;
		case DDL_RENAME_TABLE:
			*kind = CATALOG_CHANGE_RENAME_TABLE;
			return true;
		case DDL_ALTER_TABLE:
			*kind = statement->renames ? CATALOG_CHANGE_RENAME_TABLE : CATALOG_CHANGE_TRUNCATE_TABLE;
			return statement->renames || (statement->moves_rows && !statement->changes_shape);
		default:
			return false;
	}
}

bool
apply_table_statement(Apply *apply, const CdcEvent *event, const DdlStatement *statement, const CdcPosition *at)
{
	Reading		reading = {.apply = apply,.statement = statement,.at = at};
	CatalogChangeKind kind;

	if (!statement->certain || !kind_of(statement, &kind) ||
		catalog_change_mode(&apply->rules, kind) == CATALOG_MODE_EXCEPTION ||
		(apply->in_txn && statement->kind != DDL_CREATE_TABLE))
		return false;
	switch (statement->kind)
	{
		case DDL_CREATE_TABLE:
			read_create(&reading);
			break;
		case DDL_DROP_TABLE:
		case DDL_DROP_SCHEMA:
			read_drop(&reading);
			break;
		case DDL_TRUNCATE_TABLE:
			read_truncate(&reading);
			break;
		case DDL_RENAME_TABLE:
			read_rename(&reading);
			break;
		default:
			if (statement->renames)
				read_rename(&reading);
			else
				read_moved_rows(&reading);
			break;
	}
	if (reading.refused)
		return false;
	if (reading.acts != NIL)
		apply_acts_run(apply, event, reading.acts, at);
	return true;
}
