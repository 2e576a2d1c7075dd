/*-------------------------------------------------------------------------
 *
 * schema_evolve.c
 *	  Two definitions of a source table -> the steps that bring the target from
 *	  the one to the other.
 *
 * NOTES
 *	  A step is made by looking at the target as well: what it has already needs
 *	  no command, so a plan that is made again after it was carried out is empty,
 *	  and a user may have altered the target beforehand. A target's type that the
 *	  user chose (option column_types, a table made by hand) stays as long as the
 *	  source's new type fits into it.
 *
 *	  The order: the key goes, columns go, columns get their names, types, columns
 *	  come, what each may hold, the key comes, comments. Names that are
 *	  exchanged go by way of names of ours.
 *
 *	  Options say for each kind what is wanted (CatalogChangeMode). A column of
 *	  the source that the target lacks because of that is marked left_out in the
 *	  definition.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_class.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "compat/pg_compat.h"
#include "schema/schema_evolve_private.h"
#include "util/util_error.h"

/* A column while names are exchanged. */
#define TEMPORARY_NAME "cdc_renamed_%d"

SchemaStep *
schema_plan_step(SchemaPlanner *p, CatalogChangeKind kind, int column)
{
	SchemaStep *step = palloc0(sizeof(SchemaStep));

	step->kind = kind;
	step->column = column;
	p->plan->steps = lappend(p->plan->steps, step);
	p->plan->kinds |= CATALOG_CHANGE_BIT(kind);
	return step;
}

static void
ignore(SchemaPlanner *p, CatalogChangeKind kind, int column)
{
	schema_plan_step(p, kind, column)->ignored = true;
}

void
schema_plan_command(SchemaStep *step, const char *fmt, ...)
{
	StringInfoData sql;

	initStringInfo(&sql);
	for (;;)
	{
		va_list		args;
		int			needed;

		va_start(args, fmt);
		needed = appendStringInfoVA(&sql, fmt, args);
		va_end(args);
		if (needed == 0)
			break;
		enlargeStringInfo(&sql, needed);
	}
	step->commands = lappend(step->commands, sql.data);
}

/* The change cannot be followed; the table stops. */
void
schema_plan_refuse(const SchemaPlanner *p, const char *column, const char *detail, const char *hint)
{
	ereport(ERROR,
			(errcode(CDC_ERRCODE_TABLE_CHANGED),
			 column != NULL
			 ? errmsg("table %s cannot follow the change of column \"%s\"", p->target, schema_server_string(column))
			 : errmsg("table %s cannot follow the change of its source", p->target),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
}

/* ------------------------------------------------------------------ the target */

Form_pg_attribute
schema_plan_attribute(const SchemaPlanner *p, const char *source_name)
{
	TupleDesc	desc = RelationGetDescr(p->evolve->rel);
	const char *name = schema_column_name(source_name);

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped && strcmp(NameStr(att->attname), name) == 0)
			return att;
	}
	return NULL;
}

/* ------------------------------------------------------------------------- key */

bool
schema_key_differs(const SchemaEvolve *evolve)
{
	if (evolve->before->nkey != evolve->after->nkey)
		return true;
	for (uint32 part = 1; part <= evolve->after->nkey; part++)
	{
		int			now = cdc_table_def_key_column(evolve->after, part);

		if (now < 0 || evolve->origin[now] < 0 || evolve->origin[now] != cdc_table_def_key_column(evolve->before, part))
			return true;
	}
	return false;
}

/* Has a relation's primary key the columns of a definition's key, in that order? */
static bool
target_has_key(const SchemaPlanner *p, const CdcTableDef *def)
{
	Relation	rel = p->evolve->rel;
	Relation	index;
	bool		same;

	list_free(RelationGetIndexList(rel));
	if (!OidIsValid(rel->rd_pkindex))
		return def->nkey == 0;
	index = relation_open(rel->rd_pkindex, AccessShareLock);
	same = (uint32) index->rd_index->indnkeyatts == def->nkey;
	for (uint32 part = 1; part <= def->nkey && same; part++)
	{
		int			column = cdc_table_def_key_column(def, part);
		Form_pg_attribute att = column < 0 ? NULL : schema_plan_attribute(p, def->columns[column].name);

		same = att != NULL && index->rd_index->indkey.values[part - 1] == att->attnum;
	}
	relation_close(index, AccessShareLock);
	return same;
}

/* May values of the key become others here than they are at the source, perhaps one and the same, until rows are replaced? */
static bool
key_values_may_clash(const SchemaPlanner *p)
{
	const SchemaEvolve *evolve = p->evolve;
	char	   *expression;

	if (!evolve->key_may_wait || mode_of(p, CATALOG_CHANGE_ALTER_KEY) == CATALOG_MODE_IGNORE ||
		mode_of(p, CATALOG_CHANGE_ALTER_TYPE) == CATALOG_MODE_IGNORE)
		return false;
	for (uint32 i = 0; i < evolve->after->ncolumns; i++)
	{
		const CdcColumnDef *column = &evolve->after->columns[i];
		const CdcColumnDef *before = evolve->origin[i] >= 0 ? &evolve->before->columns[evolve->origin[i]] : NULL;

		if (column->key_part != 0 && before != NULL && schema_type_differs(before, column) &&
			schema_conversion(before, column, evolve->is_strict, evolve->types, quoted(column->name),
							  schema_plan_type(p, evolve->after, column), &expression) != SCHEMA_CONVERT_NONE)
			return true;
	}
	return false;
}

/* The key goes before its columns do. */
static void
plan_old_key(SchemaPlanner *p)
{
	const SchemaEvolve *evolve = p->evolve;
	SchemaStep *step;

	p->key_changes = schema_key_differs(evolve) || key_values_may_clash(p);
	for (uint32 i = 0; i < evolve->after->ncolumns && !p->key_changes; i++)
	{
		const CdcColumnDef *column = &evolve->after->columns[i];

		/* what is kept under its old name cannot be the key any more */
		p->key_changes = column->key_part != 0 && p->is_renamed[i];
	}
	if (!p->key_changes)
		return;
	if (mode_of(p, CATALOG_CHANGE_ALTER_KEY) == CATALOG_MODE_IGNORE)
		schema_plan_refuse(p, NULL, "The source's key is another one, and rows of the target are found by the key.",
			   "Let the pipeline follow changes of kind alter_key, then use cdc_resync_table().");
	step = schema_plan_step(p, CATALOG_CHANGE_ALTER_KEY, -1);
	if (!p->has_key || (target_has_key(p, evolve->after) && !target_has_key(p, evolve->before)))
		return;
	if (OidIsValid(evolve->rel->rd_pkindex))
		schema_plan_command(step, "%s DROP CONSTRAINT %s", p->alter, quote_identifier(get_rel_name(evolve->rel->rd_pkindex)));
}

static void
plan_new_key(SchemaPlanner *p)
{
	const CdcTableDef *after = p->evolve->after;
	StringInfoData columns;
	SchemaStep *step;

	if (!p->key_changes || !p->has_key || after->nkey == 0 ||
		(target_has_key(p, after) && !target_has_key(p, p->evolve->before)))
		return;
	initStringInfo(&columns);
	for (uint32 part = 1; part <= after->nkey; part++)
	{
		int			column = cdc_table_def_key_column(after, part);

		if (column < 0 || after->columns[column].left_out)
			schema_plan_refuse(p, column < 0 ? NULL : after->columns[column].name, "It is a column of the source's key, which the target lacks.",
				   "Let the pipeline follow changes of kind add_column, then use cdc_resync_table().");
		appendStringInfo(&columns, "%s%s", part > 1 ? ", " : "", quoted(after->columns[column].name));
	}
	step = schema_plan_step(p, CATALOG_CHANGE_ALTER_KEY, -1);
	step->may_wait = p->evolve->key_may_wait;
	schema_plan_command(step, "%s ADD PRIMARY KEY (%s)", p->alter, columns.data);
}

/* ----------------------------------------------------------- columns that go */

static bool
is_gone(const SchemaEvolve *evolve, uint32 before)
{
	for (uint32 i = 0; i < evolve->after->ncolumns; i++)
	{
		if (evolve->origin[i] == (int) before)
			return false;
	}
	return true;
}

/* The target keeps a column that the source has no more: rows to come have NULL there. */
List *
schema_plan_keep(const SchemaPlanner *p, Form_pg_attribute att)
{
	const char *name = quote_identifier(NameStr(att->attname));
	SchemaStep	step = {0};

	if (att->attidentity != '\0')
		schema_plan_command(&step, "%s ALTER COLUMN %s DROP IDENTITY", p->alter, name);
	if (att->attnotnull)
		schema_plan_command(&step, "%s ALTER COLUMN %s DROP NOT NULL", p->alter, name);
	return step.commands;
}

/* The same for one that stays as it is, unless that would keep rows out. */
static List *
leave_column(const SchemaPlanner *p, Form_pg_attribute att)
{
	return att->atthasdef || att->attidentity != '\0' ? NIL : schema_plan_keep(p, att);
}

static void
plan_drops(SchemaPlanner *p)
{
	const SchemaEvolve *evolve = p->evolve;

	for (uint32 i = 0; i < evolve->before->ncolumns; i++)
	{
		Form_pg_attribute att = schema_plan_attribute(p, evolve->before->columns[i].name);
		CatalogChangeMode mode = mode_of(p, CATALOG_CHANGE_DROP_COLUMN);
		SchemaStep *step;

		if (!is_gone(evolve, i))
			continue;
		step = schema_plan_step(p, CATALOG_CHANGE_DROP_COLUMN, -1);
		step->ignored = mode == CATALOG_MODE_IGNORE;
		if (att == NULL)
			continue;
		if (mode == CATALOG_MODE_LENIENT)
			step->commands = schema_plan_keep(p, att);
		else if (step->ignored)
			step->commands = leave_column(p, att);
		else
		{
			schema_plan_command(step, "%s DROP COLUMN %s", p->alter, quote_identifier(NameStr(att->attname)));
			if (evolve->before->columns[i].key_part == 0)
				step->passed_over = leave_column(p, att);
		}
	}
}

/* ----------------------------------------------------- columns that are renamed */

static bool
has_new_name(const SchemaEvolve *evolve, uint32 i)
{
	return evolve->origin[i] >= 0 &&
		strcmp(evolve->before->columns[evolve->origin[i]].name, evolve->after->columns[i].name) != 0;
}

/* What is to become of columns with a new name; before everything else. */
static void
choose_renames(SchemaPlanner *p)
{
	SchemaEvolve *evolve = p->evolve;

	for (uint32 i = 0; i < evolve->after->ncolumns; i++)
	{
		CdcColumnDef *column = &evolve->after->columns[i];
		const CdcColumnDef *before = evolve->origin[i] >= 0 ? &evolve->before->columns[evolve->origin[i]] : NULL;

		column->left_out = before != NULL && before->left_out;
		if (before == NULL)
			continue;
		p->att[i] = schema_plan_attribute(p, before->name);
		if (!has_new_name(evolve, i))
			continue;
		switch (mode_of(p, CATALOG_CHANGE_RENAME_COLUMN))
		{
			case CATALOG_MODE_IGNORE:
				if (column->key_part != 0)
					schema_plan_refuse(p, column->name, "It is a column of the key, by which rows of the target are found.",
						   "Rename it here with ALTER TABLE, then use cdc_resync_table().");
				p->att[i] = schema_plan_attribute(p, column->name);
				column->left_out = p->att[i] == NULL;
				break;
			case CATALOG_MODE_LENIENT:
				p->is_renamed[i] = p->att[i] != NULL;
				break;
			default:
				break;
		}
	}
}

/* Is the name one of a column that gets another one in the same plan, or goes, and has not yet? */
static bool
is_taken(const SchemaPlanner *p, const char *source_name, const bool *done)
{
	const SchemaEvolve *evolve = p->evolve;

	for (uint32 i = 0; i < evolve->after->ncolumns; i++)
	{
		if (has_new_name(evolve, i) && !done[i] && strcmp(evolve->before->columns[evolve->origin[i]].name, source_name) == 0)
			return true;
	}
	return false;
}

/* Does the target have a column of that name that stays? */
bool
schema_plan_is_in_the_way(const SchemaPlanner *p, const char *source_name)
{
	const SchemaEvolve *evolve = p->evolve;

	if (schema_plan_attribute(p, source_name) == NULL)
		return false;
	for (uint32 i = 0; i < evolve->before->ncolumns; i++)
	{
		if (strcmp(evolve->before->columns[i].name, source_name) == 0)
		{
			if (is_gone(evolve, i))
				return mode_of(p, CATALOG_CHANGE_DROP_COLUMN) == CATALOG_MODE_LENIENT ||
					mode_of(p, CATALOG_CHANGE_DROP_COLUMN) == CATALOG_MODE_IGNORE;
			return false;		/* it has another name by then */
		}
	}
	return true;
}

static void
add_rename(SchemaPlanner *p, SchemaStep *step, const char *from, const char *to)
{
	schema_plan_command(step, "%s RENAME COLUMN %s TO %s", p->alter, from, to);
}

static void
plan_renames(SchemaPlanner *p)
{
	SchemaEvolve *evolve = p->evolve;
	uint32		n = evolve->after->ncolumns;
	bool	   *done = palloc0(Max(n, 1) * sizeof(bool));
	const char **by_way_of = palloc0(Max(n, 1) * sizeof(char *));
	CatalogChangeMode mode = mode_of(p, CATALOG_CHANGE_RENAME_COLUMN);

	for (uint32 i = 0; i < n; i++)
	{
		const CdcColumnDef *column = &evolve->after->columns[i];
		const char *old_name;
		SchemaStep *step;

		if (!has_new_name(evolve, i) || p->is_renamed[i])
			continue;
		old_name = evolve->before->columns[evolve->origin[i]].name;
		step = schema_plan_step(p, CATALOG_CHANGE_RENAME_COLUMN, (int) i);
		step->ignored = mode == CATALOG_MODE_IGNORE;
		done[i] = true;
		if (schema_plan_attribute(p, old_name) != NULL && column->key_part == 0)
			*(step->ignored ? &step->commands : &step->passed_over) = leave_column(p, schema_plan_attribute(p, old_name));
		if (step->ignored || p->att[i] == NULL)
			continue;
		if (schema_plan_is_in_the_way(p, column->name))
			schema_plan_refuse(p, old_name, psprintf("It is called \"%s\" now, and the target has such a column.", schema_server_string(column->name)),
				   "Rename or drop the target's column, then use cdc_resync_table().");
		if (is_taken(p, column->name, done))
		{
			by_way_of[i] = psprintf(TEMPORARY_NAME, (int) i);
			add_rename(p, step, quoted(old_name), by_way_of[i]);
		}
		else
			add_rename(p, step, quoted(old_name), quoted(column->name));
	}
	for (uint32 i = 0; i < n; i++)
	{
		if (by_way_of[i] != NULL)
			add_rename(p, schema_plan_step(p, CATALOG_CHANGE_RENAME_COLUMN, (int) i), by_way_of[i], quoted(evolve->after->columns[i].name));
	}
}

/* -------------------------------------------------------------------- comments */

static const char *
comment_literal(const char *comment)
{
	if (comment == NULL || comment[0] == '\0' || !pg_verify_mbstr(PG_UTF8, comment, (int) strlen(comment), true))
		return "NULL";
	return quote_literal_cstr(schema_server_string(comment));
}

static bool
comment_differs(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") != 0;
}

static const char *
comment_kind(const SchemaPlanner *p)
{
	switch (p->evolve->rel->rd_rel->relkind)
	{
		case RELKIND_VIEW:
			return "VIEW";
		case RELKIND_FOREIGN_TABLE:
			return "FOREIGN TABLE";
		default:
			return "TABLE";
	}
}

static void
plan_comments(SchemaPlanner *p)
{
	const SchemaEvolve *evolve = p->evolve;
	bool		ignored = mode_of(p, CATALOG_CHANGE_ALTER_COMMENT) == CATALOG_MODE_IGNORE;

	for (uint32 i = 0; i < evolve->after->ncolumns; i++)
	{
		const CdcColumnDef *column = &evolve->after->columns[i];
		const char *before = evolve->origin[i] >= 0 ? evolve->before->columns[evolve->origin[i]].comment : NULL;
		SchemaStep *step;

		if (!comment_differs(before, column->comment) || (evolve->origin[i] < 0 && column->left_out))
			continue;
		if (ignored)
			ignore(p, CATALOG_CHANGE_ALTER_COMMENT, (int) i);
		else
		{
			step = schema_plan_step(p, CATALOG_CHANGE_ALTER_COMMENT, (int) i);
			if (!column->left_out)
				schema_plan_command(step, "COMMENT ON COLUMN %s.%s IS %s", p->target, quoted(column->name), comment_literal(column->comment));
		}
	}
	if (!comment_differs(evolve->before->comment, evolve->after->comment))
		return;
	if (ignored)
		ignore(p, CATALOG_CHANGE_ALTER_COMMENT, -1);
	else
		schema_plan_command(schema_plan_step(p, CATALOG_CHANGE_ALTER_COMMENT, -1), "COMMENT ON %s %s IS %s", comment_kind(p), p->target,
					comment_literal(evolve->after->comment));
}

/* ------------------------------------------------------------------------ all of it */

/*
 * May the statement have put a text into a character set that lacks some of its characters? It does not say which one the
 * column has now; and only without a strict sql_mode it can have gone through, with question marks for them.
 */
static bool
may_have_lost_characters(const SchemaEvolve *evolve, const CdcColumnDef *a, const CdcColumnDef *b)
{
	return evolve->is_told && !evolve->is_strict && evolve->has_rows && a->collation != 0 && b->collation == 0 &&
		(b->type == CDC_TYPE_CHAR || b->type == CDC_TYPE_VARCHAR || b->type == CDC_TYPE_TEXT);
}

static bool
same_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0 && (a == NULL) == (b == NULL);
}

static bool
default_differs(const CdcColumnDef *a, const CdcColumnDef *b)
{
	return !same_text(a->default_text, b->default_text) || a->default_is_expr != b->default_is_expr ||
		a->auto_increment != b->auto_increment;
}

/* Only plain tables can be altered; others must have been brought into shape before. */
static void
check_alterable(const SchemaPlanner *p)
{
	ListCell   *lc;

	if (p->can_alter)
		return;
	foreach(lc, p->plan->steps)
	{
		const SchemaStep *step = lfirst(lc);

		if (step->commands != NIL && step->kind != CATALOG_CHANGE_ALTER_COMMENT && step->kind != CATALOG_CHANGE_ALTER_DEFAULT &&
			step->kind != CATALOG_CHANGE_ALTER_NULLABILITY)
			schema_plan_refuse(p, step->column >= 0 ? p->evolve->after->columns[step->column].name : NULL,
				   p->evolve->rel->rd_rel->relkind == RELKIND_VIEW
				   ? "It is a view, which is not altered by the pipeline."
				   : "It is a foreign table: what it stands for is not altered by the pipeline.",
				   "Alter it and what is behind it as the source was, then use cdc_resync_table(), or leave the change out with option \"schema_changes_exclude\".");
	}
	foreach(lc, p->plan->steps)
	{
		SchemaStep *step = lfirst(lc);

		if (step->kind != CATALOG_CHANGE_ALTER_COMMENT)
			step->commands = step->otherwise = NIL;
	}
}

/* What a projection makes of the columns fits the target or does not; whoever opens it sees. Values that were converted are computed anew. */
static void
leave_alone(const SchemaPlanner *p)
{
	ListCell   *lc;

	foreach(lc, p->plan->steps)
	{
		SchemaStep *step = lfirst(lc);

		step->commands = step->otherwise = NIL;
		if (step->kind == CATALOG_CHANGE_ALTER_TYPE || step->kind == CATALOG_CHANGE_ALTER_KEY)
			step->copy = "columns changed that a projection may use";
	}
}

static void
check_supported(const SchemaPlanner *p)
{
	int			sqlstate;
	char	   *detail;
	char	   *hint;

	if (p->evolve->rules->mode == CATALOG_MODE_IGNORE ||
		schema_def_is_supported(p->evolve->after, p->evolve->types, &sqlstate, &detail, &hint))
		return;
	ereport(ERROR,
			(errcode(sqlstate),
			 errmsg("source table \"%s.%s\" cannot be mirrored as it is now",
					schema_server_string(p->evolve->after->schema), schema_server_string(p->evolve->after->name)),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
}

SchemaPlan *
schema_evolve_plan(SchemaEvolve *evolve)
{
	Relation	rel = evolve->rel;
	char		kind = rel->rd_rel->relkind;
	uint32		n = evolve->after->ncolumns;
	SchemaPlanner		p = {0};

	p.evolve = evolve;
	p.plan = palloc0(sizeof(SchemaPlan));
	p.plan->evolve = evolve;
	p.target = pstrdup(quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)), RelationGetRelationName(rel)));
	p.alter = psprintf("ALTER TABLE %s", p.target);
	p.can_alter = kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE;
	p.has_key = p.can_alter;
	p.att = palloc0(Max(n, 1) * sizeof(Form_pg_attribute));
	p.is_renamed = palloc0(Max(n, 1) * sizeof(bool));
	p.is_retyped = palloc0(Max(n, 1) * sizeof(bool));
	p.plan->alter = p.alter;
	p.plan->owner = rel->rd_rel->relowner;
	p.plan->name = pstrdup(RelationGetRelationName(rel));

	check_supported(&p);
	choose_renames(&p);
	plan_old_key(&p);
	plan_drops(&p);
	plan_renames(&p);
	for (uint32 i = 0; i < n; i++)
	{
		if (evolve->origin[i] >= 0 && !p.is_renamed[i] &&
			schema_type_differs(&evolve->before->columns[evolve->origin[i]], &evolve->after->columns[i]))
			schema_plan_alter_type(&p, (int) i);
		else if (evolve->origin[i] >= 0 && !p.is_renamed[i] &&
				 may_have_lost_characters(evolve, &evolve->before->columns[evolve->origin[i]], &evolve->after->columns[i]))
			schema_plan_step(&p, CATALOG_CHANGE_ALTER_TYPE, (int) i)->copy = "characters of a text may have been lost in another character set";
	}
	for (uint32 i = 0; i < n; i++)
	{
		if (evolve->origin[i] < 0 || p.is_renamed[i])
			schema_plan_add_column(&p, (int) i);
	}
	for (uint32 i = 0; i < n; i++)
	{
		const CdcColumnDef *before = evolve->origin[i] >= 0 ? &evolve->before->columns[evolve->origin[i]] : NULL;
		const CdcColumnDef *column = &evolve->after->columns[i];

		if (before == NULL || p.is_renamed[i])
			continue;
		if (before->nullable != column->nullable)
			schema_plan_nullability(&p, (int) i);
		if (default_differs(before, column) || p.is_retyped[i])
			schema_plan_default(&p, (int) i, default_differs(before, column));
	}
	plan_new_key(&p);
	plan_comments(&p);
	if (evolve->is_projected)
		leave_alone(&p);
	else
		check_alterable(&p);
	return p.plan;
}

bool
schema_evolve_origins(const CdcTableDef *before, const CdcTableDef *after, int *origin)
{
	bool		came = false;
	bool		went = false;

	for (uint32 i = 0; i < after->ncolumns; i++)
	{
		origin[i] = -1;
		for (uint32 k = 0; k < before->ncolumns && origin[i] < 0; k++)
		{
			if (strcmp(before->columns[k].name, after->columns[i].name) == 0)
				origin[i] = (int) k;
		}
		came |= origin[i] < 0;
	}
	for (uint32 k = 0; k < before->ncolumns; k++)
	{
		bool		found = false;

		for (uint32 i = 0; i < after->ncolumns && !found; i++)
			found = origin[i] == (int) k;
		went |= !found;
	}
	return !(came && went);
}

bool
schema_evolve_is_empty(const SchemaPlan *plan)
{
	return plan->steps == NIL;
}

bool
schema_evolve_has_commands(const SchemaPlan *plan)
{
	ListCell   *lc;

	foreach(lc, plan->steps)
	{
		if (((const SchemaStep *) lfirst(lc))->commands != NIL)
			return true;
	}
	return false;
}
