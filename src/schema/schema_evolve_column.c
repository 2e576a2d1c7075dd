/*-------------------------------------------------------------------------
 *
 * schema_evolve_column.c
 *	  Steps for what a column holds: its type, the values of rows that are there,
 *	  NOT NULL, its default. See schema_evolve.c, which asks for them in order.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "parser/parse_type.h"
#include "utils/lsyscache.h"

#include "compat/pg_compat.h"
#include "schema/schema_evolve_private.h"
#include "util/util_arena.h"
#include "util/util_spi.h"

/* ------------------------------------------------------------------ target types */

/* A type's SQL text as the target's columns have it. */
static void
read_type(const char *sql, Oid *typid, int32 *typmod)
{
	typenameTypeIdAndMod(NULL, cdc_type_name_from_string(sql), typid, typmod);
}

/* The type that a column of the target gets; throws when there is none. */
char *
schema_plan_type(const SchemaPlanner *p, const CdcTableDef *def, const CdcColumnDef *column)
{
	char	   *why;
	char	   *sql = schema_target_type_sql(def, column, p->evolve->types, &why);

	if (sql == NULL)
		schema_plan_refuse(p, column->name, psprintf("%c%s.", pg_toupper((unsigned char) why[0]), why + 1),
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
wants_not_null(const SchemaPlanner *p, const CdcColumnDef *column)
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
literal(const SchemaPlanner *p, const CdcColumnDef *column, const char *type, const CdcCell *cell)
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
		schema_plan_refuse(p, column->name, why, HINT_BY_HAND);
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
value_of_rows(const SchemaPlanner *p, const CdcColumnDef *column, const char *type, char **sql)
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
implicit_value(const SchemaPlanner *p, const CdcColumnDef *column, const char *type)
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
placeholder(const SchemaPlanner *p, const CdcColumnDef *column, const char *type)
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

/* ----------------------------------------------------------------------- types */

bool
schema_type_differs(const CdcColumnDef *a, const CdcColumnDef *b)
{
	if (a->type != b->type || a->is_unsigned != b->is_unsigned || a->length != b->length ||
		a->precision != b->precision || a->scale != b->scale || a->is_boolean != b->is_boolean ||
		a->is_generated != b->is_generated || a->nlabels != b->nlabels || !cdc_labels_only_come(a, b))
		return true;
	return a->collation != b->collation && a->collation != 0 && b->collation != 0;
}

/* ALTER TYPE and what has to go before it. */
static void
add_alter_type(SchemaPlanner *p, SchemaStep *step, Form_pg_attribute att, const char *name, const char *type, const char *expression)
{
	if (att->attidentity != '\0' && !is_identity_type(type))
		schema_plan_command(step, "%s ALTER COLUMN %s DROP IDENTITY", p->alter, name);
	else if (att->atthasdef && att->attgenerated == '\0')
		schema_plan_command(step, "%s ALTER COLUMN %s DROP DEFAULT", p->alter, name);
	if (att->attgenerated != '\0')
		schema_plan_command(step, "%s ALTER COLUMN %s DROP EXPRESSION", p->alter, name);
	schema_plan_command(step, "%s ALTER COLUMN %s TYPE %s%s%s", p->alter, name, type, expression ? " USING " : "", expression ? expression : "");
}

/* Rows that are there are copied anew: any value of the new type will do until then. */
static List *
stand_in(SchemaPlanner *p, Form_pg_attribute att, const CdcColumnDef *column, const char *name, const char *type)
{
	SchemaStep	step = {0};
	char	   *value = wants_not_null(p, column) ? placeholder(p, column, type) : NULL;

	/* also when the source's column may be NULL now: the target's may not be yet */
	if (value == NULL && att->attnotnull)
		schema_plan_command(&step, "%s ALTER COLUMN %s DROP NOT NULL", p->alter, name);
	add_alter_type(p, &step, att, name, type, value ? value : psprintf("NULL::%s", type));
	return step.commands;
}

void
schema_plan_alter_type(SchemaPlanner *p, int i)
{
	const SchemaEvolve *evolve = p->evolve;
	CdcColumnDef *column = &evolve->after->columns[i];
	const CdcColumnDef *before = &evolve->before->columns[evolve->origin[i]];
	Form_pg_attribute att = p->att[i];
	char	   *name = quoted(column->name);
	CatalogChangeMode mode = mode_of(p, CATALOG_CHANGE_ALTER_TYPE);
	SchemaStep *step = schema_plan_step(p, CATALOG_CHANGE_ALTER_TYPE, i);
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
			schema_plan_refuse(p, column->name, "Its values do not fit into the target's column any more, and the change is to be ignored.", HINT_BY_HAND);
		return;
	}

	old_type = schema_target_type_sql(evolve->before, before, evolve->types, &why);
	is_ours = false;
	if (old_type != NULL)
	{
		read_type(old_type, &typid, &typmod);
		is_ours = typid == att->atttypid && typmod == att->atttypmod;
	}
	type = schema_plan_type(p, evolve->after, column);
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
				schema_plan_refuse(p, column->name, "Its new type cannot hold all that the target's column may hold, and nothing is to be lost.",
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
default_of(const SchemaPlanner *p, const CdcColumnDef *column)
{
	if (column->auto_increment || schema_column_is_overridden(p->evolve->after, column, p->evolve->types))
		return NULL;
	return schema_default_clause(column, p->evolve->types);
}

/* Does that column hold something in rows that are there? Asked only where it is not the source's any more, or not yet. */
static bool
holds_values(const SchemaPlanner *p, Form_pg_attribute att)
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
plan_found(SchemaPlanner *p, SchemaStep *step, int i, Form_pg_attribute att, CatalogChangeMode mode)
{
	const SchemaEvolve *evolve = p->evolve;
	const CdcColumnDef *column = &evolve->after->columns[i];
	char	   *name = quoted(column->name);
	char	   *value;

	p->att[i] = att;
	if (att->attgenerated != '\0' ? !column->is_generated : !fits(column, att))
		schema_plan_refuse(p, column->name, "The target has a column of that name, into which its values do not go.",
			   "Rename or drop the target's column, then use cdc_resync_table().");
	if (att->attgenerated != '\0' || !evolve->has_rows)
		return;
	if (mode == CATALOG_MODE_LENIENT && holds_values(p, att))
		schema_plan_refuse(p, column->name, "The target has a column of that name, which holds values that the source has no more, and nothing is to be lost.",
			   "Rename the target's column with ALTER TABLE to keep it, then use cdc_resync_table().");
	if (!evolve->defaults_known || !value_of_rows(p, column, format_type_with_typemod(att->atttypid, att->atttypmod), &value))
		step->copy = psprintf("what rows have in column \"%s\" is known at the source only", schema_server_string(column->name));
	else
		schema_plan_command(step, "UPDATE %s SET %s = %s WHERE %s IS DISTINCT FROM %s", p->target, name, value ? value : "NULL",
					name, value ? value : "NULL");
}

void
schema_plan_add_column(SchemaPlanner *p, int i)
{
	SchemaEvolve *evolve = p->evolve;
	CdcColumnDef *column = &evolve->after->columns[i];
	bool		is_renamed = p->is_renamed[i];
	CatalogChangeKind kind = is_renamed ? CATALOG_CHANGE_RENAME_COLUMN : CATALOG_CHANGE_ADD_COLUMN;
	CatalogChangeMode mode = mode_of(p, kind);
	Form_pg_attribute att = schema_plan_attribute(p, column->name);
	char	   *name = quoted(column->name);
	SchemaStep *step = schema_plan_step(p, kind, i);
	StringInfoData sql;
	char	   *type;
	char	   *clause;
	char	   *value = NULL;
	bool		not_null = wants_not_null(p, column);
	bool		is_identity;

	/* a column that goes in the same statement is not the one that comes */
	if (att != NULL && mode != CATALOG_MODE_LENIENT && mode != CATALOG_MODE_IGNORE && !schema_plan_is_in_the_way(p, column->name))
		att = NULL;
	if (is_renamed && att != NULL)
		schema_plan_refuse(p, column->name, "The target has a column of that name.", "Rename or drop the target's column, then use cdc_resync_table().");
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

	type = schema_plan_type(p, evolve->after, column);
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
	schema_plan_command(step, "%s", sql.data);
	if (is_renamed)
	{
		Form_pg_attribute kept = p->att[i];

		schema_plan_command(step, "UPDATE %s SET %s = %s", p->target, name, quote_identifier(NameStr(kept->attname)));
		step->commands = list_concat(step->commands, schema_plan_keep(p, kept));
		if (not_null)
			schema_plan_command(step, "%s ALTER COLUMN %s SET NOT NULL", p->alter, name);
	}
	if (clause != NULL)
		schema_plan_command(step, "%s ALTER COLUMN %s SET %s", p->alter, name, clause);
	else if (value != NULL)
		schema_plan_command(step, "%s ALTER COLUMN %s DROP DEFAULT", p->alter, name);
	p->att[i] = NULL;
}

/* ------------------------------------------------------ NOT NULL, defaults, identity */

/*
 * Rows that had none have a date now that is no value here, or, in a TIMESTAMP, the time of the statement. Where there is no such
 * row nothing is to be done; else any date stands in until the rows are copied anew.
 */
static void
set_date_not_null(SchemaPlanner *p, SchemaStep *step, int i)
{
	const CdcColumnDef *column = &p->evolve->after->columns[i];
	char	   *name = quoted(column->name);
	SchemaStep	filled = {0};

	schema_plan_command(step, "%s ALTER COLUMN %s SET NOT NULL", p->alter, name);
	schema_plan_command(&filled, "UPDATE %s SET %s = %s WHERE %s IS NULL", p->target, name, placeholder(p, column, schema_plan_type(p, p->evolve->after, column)), name);
	schema_plan_command(&filled, "%s ALTER COLUMN %s SET NOT NULL", p->alter, name);
	step->otherwise = filled.commands;
	step->copy_otherwise = true;
}

void
schema_plan_nullability(SchemaPlanner *p, int i)
{
	const SchemaEvolve *evolve = p->evolve;
	const CdcColumnDef *column = &evolve->after->columns[i];
	char	   *name = quoted(column->name);
	CatalogChangeMode mode = mode_of(p, CATALOG_CHANGE_ALTER_NULLABILITY);
	SchemaStep *step = schema_plan_step(p, CATALOG_CHANGE_ALTER_NULLABILITY, i);
	bool		not_null = wants_not_null(p, column);
	char	   *value;

	step->ignored = mode == CATALOG_MODE_IGNORE;
	if (step->ignored || column->left_out || p->att[i] == NULL || p->att[i]->attgenerated != '\0')
		return;
	if (!not_null)
	{
		if (p->att[i]->attidentity != '\0')
			schema_plan_command(step, "%s ALTER COLUMN %s DROP IDENTITY", p->alter, name);
		schema_plan_command(step, "%s ALTER COLUMN %s DROP NOT NULL", p->alter, name);
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
		value = implicit_value(p, column, schema_plan_type(p, evolve->after, column));
		if (value == NULL || !evolve->is_told || evolve->before->columns[evolve->origin[i]].default_text != NULL)
			step->copy = psprintf("what rows without a value have in column \"%s\" is known at the source only", schema_server_string(column->name));
		if (value == NULL)
			return;
		schema_plan_command(step, "UPDATE %s SET %s = %s WHERE %s IS NULL", p->target, name, value, name);
	}
	schema_plan_command(step, "%s ALTER COLUMN %s SET NOT NULL", p->alter, name);
}

/* The default of a column; also when only its type became another one (not differs), for which the old default was taken off. */
void
schema_plan_default(SchemaPlanner *p, int i, bool differs)
{
	const SchemaEvolve *evolve = p->evolve;
	const CdcColumnDef *column = &evolve->after->columns[i];
	char	   *name = quoted(column->name);
	Form_pg_attribute att = p->att[i];
	SchemaStep *step;
	char	   *clause;

	if (!differs && (att == NULL || !att->atthasdef || !p->is_retyped[i]))
		return;
	step = schema_plan_step(p, differs ? CATALOG_CHANGE_ALTER_DEFAULT : CATALOG_CHANGE_ALTER_TYPE, i);
	step->ignored = mode_of(p, step->kind) == CATALOG_MODE_IGNORE;
	if (step->ignored || column->left_out || att == NULL || att->attgenerated != '\0')
		return;
	clause = default_of(p, column);
	if (column->auto_increment)
	{
		if (att->attidentity != '\0' || !is_identity_type(schema_plan_type(p, evolve->after, column)) || att->atttypid == NUMERICOID)
			return;
		if (att->atthasdef)
			schema_plan_command(step, "%s ALTER COLUMN %s DROP DEFAULT", p->alter, name);
		if (!att->attnotnull)
			schema_plan_command(step, "%s ALTER COLUMN %s SET NOT NULL", p->alter, name);
		schema_plan_command(step, "%s ALTER COLUMN %s ADD GENERATED BY DEFAULT AS IDENTITY", p->alter, name);
		return;
	}
	if (att->attidentity != '\0')
		schema_plan_command(step, "%s ALTER COLUMN %s DROP IDENTITY IF EXISTS", p->alter, name);
	if (clause != NULL)
		schema_plan_command(step, "%s ALTER COLUMN %s SET %s", p->alter, name, clause);
	else if (att->atthasdef)
		schema_plan_command(step, "%s ALTER COLUMN %s DROP DEFAULT", p->alter, name);
}
