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
#include "catalog/pg_collation.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "nodes/bitmapset.h"
#include "parser/parse_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "compat/pg_compat.h"
#include "schema/evolve.h"
#include "schema/schema_private.h"
#include "util/util_arena.h"
#include "util/util_error.h"
#include "util/util_spi.h"

/* A column while names are exchanged. */
#define TEMPORARY_NAME "cdc_renamed_%d"

typedef struct Planner
{
	SchemaEvolve *evolve;
	SchemaPlan *plan;
	const char *target;			/* quoted and qualified */
	const char *alter;			/* "ALTER TABLE s.t" */
	bool		can_alter;		/* false: a view */
	bool		has_key;		/* a primary key of its own: no view, no foreign table */
	bool		key_changes;
	Form_pg_attribute *att;		/* per column of "after": the target's column, as it is before the plan; NULL: none */
	bool	   *is_renamed;		/* its rows are those of a column that keeps its old name (LENIENT) */
	bool	   *is_retyped;		/* its default was taken off because of another type */
} Planner;

static CatalogChangeMode
mode_of(const Planner *p, CatalogChangeKind kind)
{
	return catalog_change_mode(p->evolve->rules, kind);
}

static char *
quoted(const char *source_name)
{
	return pstrdup(quote_identifier(schema_column_name(source_name)));
}

static SchemaStep *
add_step(Planner *p, CatalogChangeKind kind, int column)
{
	SchemaStep *step = palloc0(sizeof(SchemaStep));

	step->kind = kind;
	step->column = column;
	p->plan->steps = lappend(p->plan->steps, step);
	p->plan->kinds |= CATALOG_CHANGE_BIT(kind);
	return step;
}

static void
ignore(Planner *p, CatalogChangeKind kind, int column)
{
	add_step(p, kind, column)->ignored = true;
}

static void pg_attribute_printf(2, 3)
add_command(SchemaStep *step, const char *fmt, ...)
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
static _Noreturn void
refuse(const Planner *p, const char *column, const char *detail, const char *hint)
{
	ereport(ERROR,
			(errcode(CDC_ERRCODE_TABLE_CHANGED),
			 column != NULL
			 ? errmsg("table %s cannot follow the change of column \"%s\"", p->target, schema_server_string(column))
			 : errmsg("table %s cannot follow the change of its source", p->target),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
}

#define HINT_BY_HAND "Alter the target as the source was, then use cdc_resync_table()."

/* ------------------------------------------------------------------ the target */

static Form_pg_attribute
find_attribute(const Planner *p, const char *source_name)
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

/* A type's SQL text as the target's columns have it. */
static void
read_type(const char *sql, Oid *typid, int32 *typmod)
{
	typenameTypeIdAndMod(NULL, cdc_type_name_from_string(sql), typid, typmod);
}

/* The type that a column of the target gets; throws when there is none. */
static char *
type_of(const Planner *p, const CdcTableDef *def, const CdcColumnDef *column)
{
	char	   *why;
	char	   *sql = schema_target_type_sql(def, column, p->evolve->types, &why);

	if (sql == NULL)
		refuse(p, column->name, psprintf("%c%s.", pg_toupper((unsigned char) why[0]), why + 1),
			   "Change the column's type or character set on the source, or leave the column out with option \"schema_changes_exclude\".");
	return sql;
}

/* Can that attribute take every value of a source column? */
static bool
fits(const CdcColumnDef *column, Form_pg_attribute att)
{
	SchemaColumn ignored;
	char	   *why;

	return schema_column_prepare(&ignored, column, att, CurrentMemoryContext, &why);
}

/* The same, with a length that would only be noticed at a value. */
static bool
is_wide_enough(const CdcColumnDef *column, Form_pg_attribute att)
{
	if (!fits(column, att))
		return false;
	if (att->atttypid != VARCHAROID || att->atttypmod < (int32) VARHDRSZ)
		return true;
	return (column->type == CDC_TYPE_CHAR || column->type == CDC_TYPE_VARCHAR) &&
		column->length <= (uint32) (att->atttypmod - VARHDRSZ);
}

/* Must a column of a target that we make be NOT NULL? */
static bool
wants_not_null(const Planner *p, const CdcColumnDef *column)
{
	return (!column->nullable || column->key_part != 0) &&
		!schema_zero_date_is_null(column, &p->evolve->types->policies);
}

static bool
is_identity_type(const char *sql)
{
	Oid			typid;
	int32		typmod;

	read_type(sql, &typid, &typmod);
	return typid == INT2OID || typid == INT4OID || typid == INT8OID;
}

/* ---------------------------------------------------------------------- values */

/* A value of a column as SQL; NULL when it is NULL. Throws when it has no form in the type. */
static char *
literal(const Planner *p, const CdcColumnDef *column, const char *type, const CdcCell *cell)
{
	FormData_pg_attribute att;
	SchemaColumn prepared;
	Datum		value;
	bool		isnull;
	Oid			output;
	bool		is_varlena;
	char	   *why;

	memset(&att, 0, sizeof(att));
	namestrcpy(&att.attname, "value");
	att.attnum = 1;
	read_type(type, &att.atttypid, &att.atttypmod);
	att.attcollation = get_typcollation(att.atttypid);
	if (!schema_column_prepare(&prepared, column, &att, CurrentMemoryContext, &why))
		refuse(p, column->name, why, HINT_BY_HAND);
	schema_column_set_policies(&prepared, &p->evolve->types->policies, wants_not_null(p, column));
	value = schema_cell_to_datum(&prepared, cell, &isnull);
	if (isnull)
		return NULL;
	getTypeOutputInfo(att.atttypid, &output, &is_varlena);
	return psprintf("%s::%s", quote_literal_cstr(OidOutputFunctionCall(output, value)), type);
}

/*
 * What rows that are there get in a column that comes: SQL, or NULL for NULL.
 * False when only the source knows.
 */
static bool
value_of_rows(const Planner *p, const CdcColumnDef *column, const char *type, char **sql)
{
	CdcArena	arena;
	CdcCell		cell;

	*sql = NULL;
	cdc_arena_init(&arena, util_context_allocator(CurrentMemoryContext), 0);
	if (!schema_default_cell(column, &arena, &cell))
		return false;
	if (cell.kind != CDC_CELL_NULL)
		*sql = literal(p, column, type, &cell);
	return true;
}

/* The zero of a column's type, for rows that may not have NULL; NULL when there is none. */
static char *
implicit_value(const Planner *p, const CdcColumnDef *column, const char *type)
{
	CdcColumnDef plain = *column;
	char	   *sql;

	plain.default_text = NULL;
	plain.default_is_expr = plain.is_generated = plain.auto_increment = plain.nullable = false;
	if (!value_of_rows(p, &plain, type, &sql))
		return NULL;
	return sql;
}

/* The same for rows whose values are going to be copied: anything that the type takes. */
static char *
placeholder(const Planner *p, const CdcColumnDef *column, const char *type)
{
	static const struct
	{
		CdcType		type;
		const char *text;
	}			texts[] = {
		{CDC_TYPE_DATE, "1970-01-01"}, {CDC_TYPE_DATETIME, "1970-01-01"}, {CDC_TYPE_TIMESTAMP, "1970-01-01"},
		{CDC_TYPE_ENUM, ""}, {CDC_TYPE_JSON, "{}"}, {CDC_TYPE_UUID, "00000000-0000-0000-0000-000000000000"},
		{CDC_TYPE_INET4, "0.0.0.0"}, {CDC_TYPE_INET6, "::"}, {CDC_TYPE_VECTOR, "{}"}
	};

	for (int i = 0; i < (int) lengthof(texts); i++)
	{
		if (column->type == texts[i].type)
			return psprintf("'%s'::%s", texts[i].text, type);
	}
	return column->type == CDC_TYPE_GEOMETRY ? NULL : implicit_value(p, column, type);
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
target_has_key(const Planner *p, const CdcTableDef *def)
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
		Form_pg_attribute att = column < 0 ? NULL : find_attribute(p, def->columns[column].name);

		same = att != NULL && index->rd_index->indkey.values[part - 1] == att->attnum;
	}
	relation_close(index, AccessShareLock);
	return same;
}

/* May values of the key become others here than they are at the source, perhaps one and the same, until rows are replaced? */
static bool
key_values_may_clash(const Planner *p)
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
							  type_of(p, evolve->after, column), &expression) != SCHEMA_CONVERT_NONE)
			return true;
	}
	return false;
}

/* The key goes before its columns do. */
static void
plan_old_key(Planner *p)
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
		refuse(p, NULL, "The source's key is another one, and rows of the target are found by the key.",
			   "Let the pipeline follow changes of kind alter_key, then use cdc_resync_table().");
	step = add_step(p, CATALOG_CHANGE_ALTER_KEY, -1);
	if (!p->has_key || (target_has_key(p, evolve->after) && !target_has_key(p, evolve->before)))
		return;
	if (OidIsValid(evolve->rel->rd_pkindex))
		add_command(step, "%s DROP CONSTRAINT %s", p->alter, quote_identifier(get_rel_name(evolve->rel->rd_pkindex)));
}

static void
plan_new_key(Planner *p)
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
			refuse(p, column < 0 ? NULL : after->columns[column].name, "It is a column of the source's key, which the target lacks.",
				   "Let the pipeline follow changes of kind add_column, then use cdc_resync_table().");
		appendStringInfo(&columns, "%s%s", part > 1 ? ", " : "", quoted(after->columns[column].name));
	}
	step = add_step(p, CATALOG_CHANGE_ALTER_KEY, -1);
	step->may_wait = p->evolve->key_may_wait;
	add_command(step, "%s ADD PRIMARY KEY (%s)", p->alter, columns.data);
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
static List *
keep_column(const Planner *p, Form_pg_attribute att)
{
	const char *name = quote_identifier(NameStr(att->attname));
	SchemaStep	step = {0};

	if (att->attidentity != '\0')
		add_command(&step, "%s ALTER COLUMN %s DROP IDENTITY", p->alter, name);
	if (att->attnotnull)
		add_command(&step, "%s ALTER COLUMN %s DROP NOT NULL", p->alter, name);
	return step.commands;
}

/* The same for one that stays as it is, unless that would keep rows out. */
static List *
leave_column(const Planner *p, Form_pg_attribute att)
{
	return att->atthasdef || att->attidentity != '\0' ? NIL : keep_column(p, att);
}

static void
plan_drops(Planner *p)
{
	const SchemaEvolve *evolve = p->evolve;

	for (uint32 i = 0; i < evolve->before->ncolumns; i++)
	{
		Form_pg_attribute att = find_attribute(p, evolve->before->columns[i].name);
		CatalogChangeMode mode = mode_of(p, CATALOG_CHANGE_DROP_COLUMN);
		SchemaStep *step;

		if (!is_gone(evolve, i))
			continue;
		step = add_step(p, CATALOG_CHANGE_DROP_COLUMN, -1);
		step->ignored = mode == CATALOG_MODE_IGNORE;
		if (att == NULL)
			continue;
		if (mode == CATALOG_MODE_LENIENT)
			step->commands = keep_column(p, att);
		else if (step->ignored)
			step->commands = leave_column(p, att);
		else
		{
			add_command(step, "%s DROP COLUMN %s", p->alter, quote_identifier(NameStr(att->attname)));
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
choose_renames(Planner *p)
{
	SchemaEvolve *evolve = p->evolve;

	for (uint32 i = 0; i < evolve->after->ncolumns; i++)
	{
		CdcColumnDef *column = &evolve->after->columns[i];
		const CdcColumnDef *before = evolve->origin[i] >= 0 ? &evolve->before->columns[evolve->origin[i]] : NULL;

		column->left_out = before != NULL && before->left_out;
		if (before == NULL)
			continue;
		p->att[i] = find_attribute(p, before->name);
		if (!has_new_name(evolve, i))
			continue;
		switch (mode_of(p, CATALOG_CHANGE_RENAME_COLUMN))
		{
			case CATALOG_MODE_IGNORE:
				if (column->key_part != 0)
					refuse(p, column->name, "It is a column of the key, by which rows of the target are found.",
						   "Rename it here with ALTER TABLE, then use cdc_resync_table().");
				p->att[i] = find_attribute(p, column->name);
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
is_taken(const Planner *p, const char *source_name, const bool *done)
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
static bool
is_in_the_way(const Planner *p, const char *source_name)
{
	const SchemaEvolve *evolve = p->evolve;

	if (find_attribute(p, source_name) == NULL)
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
add_rename(Planner *p, SchemaStep *step, const char *from, const char *to)
{
	add_command(step, "%s RENAME COLUMN %s TO %s", p->alter, from, to);
}

static void
plan_renames(Planner *p)
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
		step = add_step(p, CATALOG_CHANGE_RENAME_COLUMN, (int) i);
		step->ignored = mode == CATALOG_MODE_IGNORE;
		done[i] = true;
		if (find_attribute(p, old_name) != NULL && column->key_part == 0)
			*(step->ignored ? &step->commands : &step->passed_over) = leave_column(p, find_attribute(p, old_name));
		if (step->ignored || p->att[i] == NULL)
			continue;
		if (is_in_the_way(p, column->name))
			refuse(p, old_name, psprintf("It is called \"%s\" now, and the target has such a column.", schema_server_string(column->name)),
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
			add_rename(p, add_step(p, CATALOG_CHANGE_RENAME_COLUMN, (int) i), by_way_of[i], quoted(evolve->after->columns[i].name));
	}
}

/* ----------------------------------------------------------------------- types */

bool
schema_type_differs(const CdcColumnDef *a, const CdcColumnDef *b)
{
	if (a->type != b->type || a->is_unsigned != b->is_unsigned || a->length != b->length ||
		a->precision != b->precision || a->scale != b->scale || a->is_boolean != b->is_boolean ||
		a->is_generated != b->is_generated || a->nlabels != b->nlabels)
		return true;
	for (uint32 i = 0; i < a->nlabels; i++)
	{
		if (a->labels[i].len != b->labels[i].len || memcmp(a->labels[i].data, b->labels[i].data, a->labels[i].len) != 0)
			return true;
	}
	return a->collation != b->collation && a->collation != 0 && b->collation != 0;
}

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

/* ALTER TYPE and what has to go before it. */
static void
add_alter_type(Planner *p, SchemaStep *step, Form_pg_attribute att, const char *name, const char *type, const char *expression)
{
	if (att->attidentity != '\0' && !is_identity_type(type))
		add_command(step, "%s ALTER COLUMN %s DROP IDENTITY", p->alter, name);
	else if (att->atthasdef && att->attgenerated == '\0')
		add_command(step, "%s ALTER COLUMN %s DROP DEFAULT", p->alter, name);
	if (att->attgenerated != '\0')
		add_command(step, "%s ALTER COLUMN %s DROP EXPRESSION", p->alter, name);
	add_command(step, "%s ALTER COLUMN %s TYPE %s%s%s", p->alter, name, type, expression ? " USING " : "", expression ? expression : "");
}

/* Rows that are there are copied anew: any value of the new type will do until then. */
static List *
stand_in(Planner *p, Form_pg_attribute att, const CdcColumnDef *column, const char *name, const char *type)
{
	SchemaStep	step = {0};
	char	   *value = wants_not_null(p, column) ? placeholder(p, column, type) : NULL;

	/* also when the source's column may be NULL now: the target's may not be yet */
	if (value == NULL && att->attnotnull)
		add_command(&step, "%s ALTER COLUMN %s DROP NOT NULL", p->alter, name);
	add_alter_type(p, &step, att, name, type, value ? value : psprintf("NULL::%s", type));
	return step.commands;
}

static void
plan_type(Planner *p, int i)
{
	const SchemaEvolve *evolve = p->evolve;
	CdcColumnDef *column = &evolve->after->columns[i];
	const CdcColumnDef *before = &evolve->before->columns[evolve->origin[i]];
	Form_pg_attribute att = p->att[i];
	char	   *name = quoted(column->name);
	CatalogChangeMode mode = mode_of(p, CATALOG_CHANGE_ALTER_TYPE);
	SchemaStep *step = add_step(p, CATALOG_CHANGE_ALTER_TYPE, i);
	SchemaConversion conversion;
	char	   *type;
	char	   *old_type;
	char	   *why;
	char	   *expression;
	Oid			typid;
	int32		typmod;
	bool		is_ours;
	bool		stays;

	if (column->left_out || att == NULL)
		return;
	if (mode == CATALOG_MODE_IGNORE)
	{
		step->ignored = true;
		if (att->attgenerated == '\0' && !fits(column, att))
			refuse(p, column->name, "Its values do not fit into the target's column any more, and the change is to be ignored.", HINT_BY_HAND);
		return;
	}

	old_type = schema_target_type_sql(evolve->before, before, evolve->types, &why);
	is_ours = false;
	if (old_type != NULL)
	{
		read_type(old_type, &typid, &typmod);
		is_ours = typid == att->atttypid && typmod == att->atttypmod;
	}
	type = type_of(p, evolve->after, column);
	read_type(type, &typid, &typmod);
	conversion = schema_conversion(before, column, evolve->is_strict, evolve->types, name, type, &expression);
	if (!evolve->has_rows)
		conversion = SCHEMA_CONVERT_NONE;
	else if (!evolve->is_told && conversion != SCHEMA_CONVERT_NONE)
		conversion = SCHEMA_CONVERT_COPY;
	if (att->attgenerated != '\0' && column->is_generated)
		conversion = SCHEMA_CONVERT_NONE;

	stays = (typid == att->atttypid && typmod == att->atttypmod) ||
		((mode == CATALOG_MODE_LENIENT || !is_ours) && is_wide_enough(column, att));
	if (att->attgenerated != '\0' && !column->is_generated)
		stays = false;
	if (mode == CATALOG_MODE_LENIENT)
	{
		if (stays)
			return;
		if (conversion != SCHEMA_CONVERT_NONE && !(conversion == SCHEMA_CONVERT_BY && strcmp(type, "text") == 0))
		{
			/* another kind of value: what is there would be lost */
			if (!(conversion == SCHEMA_CONVERT_BY && (column->type == CDC_TYPE_VARCHAR || column->type == CDC_TYPE_CHAR)))
				refuse(p, column->name, "Its new type cannot hold all that the target's column may hold, and nothing is to be lost.",
					   "Rename the target's column with ALTER TABLE to keep it, then use cdc_resync_table().");
		}
	}
	if (stays && conversion == SCHEMA_CONVERT_NONE)
		return;
	if (!is_ours && !stays && conversion != SCHEMA_CONVERT_NONE)
		conversion = SCHEMA_CONVERT_COPY;
	if (!is_ours && stays)
	{
		/* which values the user's type has for those of the source is not known here */
		if (conversion != SCHEMA_CONVERT_NONE)
			step->copy = "the source converted the values of a column whose type here was chosen by hand";
		return;
	}

	p->is_retyped[i] = true;
	switch (conversion)
	{
		case SCHEMA_CONVERT_NONE:
			if (!evolve->has_rows)
				expression = psprintf("NULL::%s", type);
			add_alter_type(p, step, att, name, type, expression);
			break;
		case SCHEMA_CONVERT_BY:
		case SCHEMA_CONVERT_TRY:
			add_alter_type(p, step, att, name, type, expression);
			step->otherwise = stand_in(p, att, column, name, type);
			step->copy_otherwise = true;
			break;
		case SCHEMA_CONVERT_COPY:
			if (stays)
				step->commands = NIL;
			else
			{
				add_alter_type(p, step, att, name, type, psprintf("%s::text::%s", name, type));
				step->otherwise = stand_in(p, att, column, name, type);
			}
			step->copy = psprintf("how the source converted column \"%s\" from %s to %s cannot be told", schema_server_string(column->name),
								  schema_source_type(before), schema_source_type(column));
			break;
	}
}

/* --------------------------------------------------------------- columns that come */

/* The default that a column of ours is to have from now on; NULL: none. */
static char *
default_of(const Planner *p, const CdcColumnDef *column)
{
	if (column->auto_increment || schema_column_is_overridden(p->evolve->after, column, p->evolve->types))
		return NULL;
	return schema_default_clause(column, p->evolve->types);
}

/* Does that column hold something in rows that are there? Asked only where it is not the source's any more, or not yet. */
static bool
holds_values(const Planner *p, Form_pg_attribute att)
{
	bool		result;

	SPI_connect();
	util_spi_run(psprintf("SELECT FROM %s WHERE %s IS NOT NULL LIMIT 1", p->target, quote_identifier(NameStr(att->attname))));
	result = SPI_processed > 0;
	SPI_finish();
	return result;
}

/* The target has a column of that name. */
static void
plan_found(Planner *p, SchemaStep *step, int i, Form_pg_attribute att, CatalogChangeMode mode)
{
	const SchemaEvolve *evolve = p->evolve;
	const CdcColumnDef *column = &evolve->after->columns[i];
	char	   *name = quoted(column->name);
	char	   *value;

	p->att[i] = att;
	if (att->attgenerated != '\0' ? !column->is_generated : !fits(column, att))
		refuse(p, column->name, "The target has a column of that name, into which its values do not go.",
			   "Rename or drop the target's column, then use cdc_resync_table().");
	if (att->attgenerated != '\0' || !evolve->has_rows)
		return;
	if (mode == CATALOG_MODE_LENIENT && holds_values(p, att))
		refuse(p, column->name, "The target has a column of that name, which holds values that the source has no more, and nothing is to be lost.",
			   "Rename the target's column with ALTER TABLE to keep it, then use cdc_resync_table().");
	if (!evolve->defaults_known || !value_of_rows(p, column, format_type_with_typemod(att->atttypid, att->atttypmod), &value))
		step->copy = psprintf("what rows have in column \"%s\" is known at the source only", schema_server_string(column->name));
	else
		add_command(step, "UPDATE %s SET %s = %s WHERE %s IS DISTINCT FROM %s", p->target, name, value ? value : "NULL",
					name, value ? value : "NULL");
}

static void
plan_add(Planner *p, int i)
{
	SchemaEvolve *evolve = p->evolve;
	CdcColumnDef *column = &evolve->after->columns[i];
	bool		is_renamed = p->is_renamed[i];
	CatalogChangeKind kind = is_renamed ? CATALOG_CHANGE_RENAME_COLUMN : CATALOG_CHANGE_ADD_COLUMN;
	CatalogChangeMode mode = mode_of(p, kind);
	Form_pg_attribute att = find_attribute(p, column->name);
	char	   *name = quoted(column->name);
	SchemaStep *step = add_step(p, kind, i);
	StringInfoData sql;
	char	   *type;
	char	   *clause;
	char	   *value = NULL;
	bool		not_null = wants_not_null(p, column);
	bool		is_identity;

	/* a column that goes in the same statement is not the one that comes */
	if (att != NULL && mode != CATALOG_MODE_LENIENT && mode != CATALOG_MODE_IGNORE && !is_in_the_way(p, column->name))
		att = NULL;
	if (is_renamed && att != NULL)
		refuse(p, column->name, "The target has a column of that name.", "Rename or drop the target's column, then use cdc_resync_table().");
	if (mode == CATALOG_MODE_IGNORE)
	{
		step->ignored = true;
		column->left_out = att == NULL;
		return;
	}
	if (att != NULL)
	{
		plan_found(p, step, i, att, mode);
		return;
	}

	type = type_of(p, evolve->after, column);
	is_identity = column->auto_increment && is_identity_type(type);
	clause = default_of(p, column);
	if (is_renamed || !evolve->has_rows)
		value = NULL;
	else if (!evolve->defaults_known || !value_of_rows(p, column, type, &value))
	{
		step->copy = psprintf("what rows have in column \"%s\" is known at the source only", schema_server_string(column->name));
		value = not_null && !is_identity ? placeholder(p, column, type) : NULL;
		if (value == NULL && !is_identity)
			not_null = false;
	}
	/* a policy may have made NULL of it */
	if (evolve->has_rows && !is_renamed && value == NULL && !is_identity)
		not_null = false;

	initStringInfo(&sql);
	appendStringInfo(&sql, "%s ADD COLUMN %s %s", p->alter, name, type);
	if (is_identity && !is_renamed)
		appendStringInfoString(&sql, " GENERATED BY DEFAULT AS IDENTITY");
	else if (value != NULL)
		appendStringInfo(&sql, " DEFAULT %s", value);
	if (not_null && !is_renamed)
		appendStringInfoString(&sql, " NOT NULL");
	add_command(step, "%s", sql.data);
	if (is_renamed)
	{
		Form_pg_attribute kept = p->att[i];

		add_command(step, "UPDATE %s SET %s = %s", p->target, name, quote_identifier(NameStr(kept->attname)));
		step->commands = list_concat(step->commands, keep_column(p, kept));
		if (not_null)
			add_command(step, "%s ALTER COLUMN %s SET NOT NULL", p->alter, name);
	}
	if (clause != NULL)
		add_command(step, "%s ALTER COLUMN %s SET %s", p->alter, name, clause);
	else if (value != NULL)
		add_command(step, "%s ALTER COLUMN %s DROP DEFAULT", p->alter, name);
	p->att[i] = NULL;
}

/* ------------------------------------------------------ NOT NULL, defaults, identity */

/*
 * Rows that had none have a date now that is no value here, or, in a TIMESTAMP, the time of the statement. Where there is no such
 * row nothing is to be done; else any date stands in until the rows are copied anew.
 */
static void
set_date_not_null(Planner *p, SchemaStep *step, int i)
{
	const CdcColumnDef *column = &p->evolve->after->columns[i];
	char	   *name = quoted(column->name);
	SchemaStep	filled = {0};

	add_command(step, "%s ALTER COLUMN %s SET NOT NULL", p->alter, name);
	add_command(&filled, "UPDATE %s SET %s = %s WHERE %s IS NULL", p->target, name, placeholder(p, column, type_of(p, p->evolve->after, column)), name);
	add_command(&filled, "%s ALTER COLUMN %s SET NOT NULL", p->alter, name);
	step->otherwise = filled.commands;
	step->copy_otherwise = true;
}

static void
plan_nullability(Planner *p, int i)
{
	const SchemaEvolve *evolve = p->evolve;
	const CdcColumnDef *column = &evolve->after->columns[i];
	char	   *name = quoted(column->name);
	CatalogChangeMode mode = mode_of(p, CATALOG_CHANGE_ALTER_NULLABILITY);
	SchemaStep *step = add_step(p, CATALOG_CHANGE_ALTER_NULLABILITY, i);
	bool		not_null = wants_not_null(p, column);
	char	   *value;

	step->ignored = mode == CATALOG_MODE_IGNORE;
	if (step->ignored || column->left_out || p->att[i] == NULL || p->att[i]->attgenerated != '\0')
		return;
	if (!not_null)
	{
		if (p->att[i]->attidentity != '\0')
			add_command(step, "%s ALTER COLUMN %s DROP IDENTITY", p->alter, name);
		add_command(step, "%s ALTER COLUMN %s DROP NOT NULL", p->alter, name);
		return;
	}
	if (mode == CATALOG_MODE_LENIENT || p->att[i]->attnotnull)
		return;
	/* without a strict sql_mode the server gave a value to rows that had none */
	if (evolve->has_rows && !(evolve->is_strict && evolve->is_told))
	{
		if (column->type == CDC_TYPE_DATE || column->type == CDC_TYPE_DATETIME || column->type == CDC_TYPE_TIMESTAMP)
		{
			set_date_not_null(p, step, i);
			return;
		}
		/* MariaDB takes the zero of the type, or, when it need not write the table anew, the default that the column had */
		value = implicit_value(p, column, type_of(p, evolve->after, column));
		if (value == NULL || !evolve->is_told || evolve->before->columns[evolve->origin[i]].default_text != NULL)
			step->copy = psprintf("what rows without a value have in column \"%s\" is known at the source only", schema_server_string(column->name));
		if (value == NULL)
			return;
		add_command(step, "UPDATE %s SET %s = %s WHERE %s IS NULL", p->target, name, value, name);
	}
	add_command(step, "%s ALTER COLUMN %s SET NOT NULL", p->alter, name);
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

/* The default of a column; also when only its type became another one (not differs), for which the old default was taken off. */
static void
plan_default(Planner *p, int i, bool differs)
{
	const SchemaEvolve *evolve = p->evolve;
	const CdcColumnDef *column = &evolve->after->columns[i];
	char	   *name = quoted(column->name);
	Form_pg_attribute att = p->att[i];
	SchemaStep *step;
	char	   *clause;

	if (!differs && (att == NULL || !att->atthasdef || !p->is_retyped[i]))
		return;
	step = add_step(p, differs ? CATALOG_CHANGE_ALTER_DEFAULT : CATALOG_CHANGE_ALTER_TYPE, i);
	step->ignored = mode_of(p, step->kind) == CATALOG_MODE_IGNORE;
	if (step->ignored || column->left_out || att == NULL || att->attgenerated != '\0')
		return;
	clause = default_of(p, column);
	if (column->auto_increment)
	{
		if (att->attidentity != '\0' || !is_identity_type(type_of(p, evolve->after, column)) || att->atttypid == NUMERICOID)
			return;
		if (att->atthasdef)
			add_command(step, "%s ALTER COLUMN %s DROP DEFAULT", p->alter, name);
		if (!att->attnotnull)
			add_command(step, "%s ALTER COLUMN %s SET NOT NULL", p->alter, name);
		add_command(step, "%s ALTER COLUMN %s ADD GENERATED BY DEFAULT AS IDENTITY", p->alter, name);
		return;
	}
	if (att->attidentity != '\0')
		add_command(step, "%s ALTER COLUMN %s DROP IDENTITY IF EXISTS", p->alter, name);
	if (clause != NULL)
		add_command(step, "%s ALTER COLUMN %s SET %s", p->alter, name, clause);
	else if (att->atthasdef)
		add_command(step, "%s ALTER COLUMN %s DROP DEFAULT", p->alter, name);
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
comment_kind(const Planner *p)
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
plan_comments(Planner *p)
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
			step = add_step(p, CATALOG_CHANGE_ALTER_COMMENT, (int) i);
			if (!column->left_out)
				add_command(step, "COMMENT ON COLUMN %s.%s IS %s", p->target, quoted(column->name), comment_literal(column->comment));
		}
	}
	if (!comment_differs(evolve->before->comment, evolve->after->comment))
		return;
	if (ignored)
		ignore(p, CATALOG_CHANGE_ALTER_COMMENT, -1);
	else
		add_command(add_step(p, CATALOG_CHANGE_ALTER_COMMENT, -1), "COMMENT ON %s %s IS %s", comment_kind(p), p->target,
					comment_literal(evolve->after->comment));
}

/* ------------------------------------------------------------------------ all of it */

/* Only plain tables can be altered; others must have been brought into shape before. */
static void
check_alterable(const Planner *p)
{
	ListCell   *lc;

	if (p->can_alter)
		return;
	foreach(lc, p->plan->steps)
	{
		const SchemaStep *step = lfirst(lc);

		if (step->commands != NIL && step->kind != CATALOG_CHANGE_ALTER_COMMENT && step->kind != CATALOG_CHANGE_ALTER_DEFAULT &&
			step->kind != CATALOG_CHANGE_ALTER_NULLABILITY)
			refuse(p, step->column >= 0 ? p->evolve->after->columns[step->column].name : NULL,
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
leave_alone(const Planner *p)
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
check_supported(const Planner *p)
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
	Planner		p = {0};

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
			plan_type(&p, (int) i);
		else if (evolve->origin[i] >= 0 && !p.is_renamed[i] &&
				 may_have_lost_characters(evolve, &evolve->before->columns[evolve->origin[i]], &evolve->after->columns[i]))
			add_step(&p, CATALOG_CHANGE_ALTER_TYPE, (int) i)->copy = "characters of a text may have been lost in another character set";
	}
	for (uint32 i = 0; i < n; i++)
	{
		if (evolve->origin[i] < 0 || p.is_renamed[i])
			plan_add(&p, (int) i);
	}
	for (uint32 i = 0; i < n; i++)
	{
		const CdcColumnDef *before = evolve->origin[i] >= 0 ? &evolve->before->columns[evolve->origin[i]] : NULL;
		const CdcColumnDef *column = &evolve->after->columns[i];

		if (before == NULL || p.is_renamed[i])
			continue;
		if (before->nullable != column->nullable)
			plan_nullability(&p, (int) i);
		if (default_differs(before, column) || p.is_retyped[i])
			plan_default(&p, (int) i, default_differs(before, column));
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
