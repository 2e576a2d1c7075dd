/*-------------------------------------------------------------------------
 *
 * schema_convert.c
 *	  What becomes of the values of a column whose type the source changed.
 *
 * NOTES
 *	  ALTER TABLE converts the rows that are there, and no row event tells of it.
 *	  Here is what is known of how both servers do that, as SQL over the target's
 *	  column; tested against them (test/t/505_evolve_types.pl). What is not known
 *	  for certain, or differs between the servers or by session variables (time
 *	  zones, floating point to text, binary to text), is not guessed: the rows are
 *	  copied anew.
 *
 *	  With a strict sql_mode the statement fails at the source when a value does
 *	  not fit, so all that were there did. Without it integers and decimals are
 *	  clamped and texts are cut, which is done here in both cases.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "binlog/charset.h"
#include "schema/evolve.h"
#include "schema/schema_private.h"

static bool
is_label(const CdcColumnDef *def)
{
	return def->type == CDC_TYPE_ENUM || def->type == CDC_TYPE_SET;
}

static bool
is_zerofill(const CdcColumnDef *def)
{
	return def->type_text != NULL && strstr(def->type_text, "zerofill") != NULL;
}

/* Limits of an integer type as SQL. */
static void
integer_limits(const CdcColumnDef *def, const char **low, const char **high)
{
	static const char *const limits[][3] = {
		[CDC_TYPE_TINYINT] = {"-128", "127", "255"},
		[CDC_TYPE_SMALLINT] = {"-32768", "32767", "65535"},
		[CDC_TYPE_MEDIUMINT] = {"-8388608", "8388607", "16777215"},
		[CDC_TYPE_INT] = {"-2147483648", "2147483647", "4294967295"},
		[CDC_TYPE_BIGINT] = {"-9223372036854775808", "9223372036854775807", "18446744073709551615"}
	};

	*low = def->is_unsigned ? "0" : limits[def->type][0];
	*high = limits[def->type][def->is_unsigned ? 2 : 1];
}

/* Does every value of the one integer type have a place in the other? */
static bool
integer_fits(const CdcColumnDef *from, const CdcColumnDef *to)
{
	if (from->is_unsigned == to->is_unsigned)
		return to->type >= from->type;
	return from->is_unsigned && to->type > from->type;
}

/* A number between two limits, and NULL where it is, which LEAST and GREATEST pass over. */
static char *
clamped(const char *column, const char *number, const char *low, const char *high, const char *type)
{
	return psprintf("CASE WHEN %s IS NOT NULL THEN LEAST(GREATEST(%s, %s), %s)::%s END", column, number, low, high, type);
}

static SchemaConversion
to_integer(const CdcColumnDef *from, const CdcColumnDef *to, bool is_strict, const char *column, const char *type, char **expression)
{
	const char *low,
			   *high;

	if (cdc_type_is_integer(from->type) && integer_fits(from, to))
		return SCHEMA_CONVERT_NONE;
	integer_limits(to, &low, &high);
	if (cdc_type_is_integer(from->type) || from->type == CDC_TYPE_DECIMAL)
	{
		/* both servers round half away from zero, as numeric does here */
		*expression = clamped(column, psprintf("round(%s::numeric)", column), low, high, type);
		return SCHEMA_CONVERT_BY;
	}
	if (from->type == CDC_TYPE_YEAR)
	{
		*expression = clamped(column, column, low, high, type);
		return SCHEMA_CONVERT_BY;
	}
	if (cdc_type_is_character(from->type) && is_strict)
	{
		/* what is no plain integer only the server can tell: a cast that fails, without the value in its error */
		*expression = psprintf("CASE WHEN %s ~ '^[-+]?[0-9]{1,20}$' THEN %s::numeric::%s WHEN %s IS NOT NULL THEN ('no integer' || left(%s, 0))::numeric::%s END",
							   column, column, type, column, column, type);
		return SCHEMA_CONVERT_TRY;
	}
	return SCHEMA_CONVERT_COPY;
}

static SchemaConversion
to_decimal(const CdcColumnDef *from, const CdcColumnDef *to, const char *column, const char *type, char **expression)
{
	int			whole = to->precision - to->scale;
	char	   *high;

	if (from->type != CDC_TYPE_DECIMAL && !cdc_type_is_integer(from->type))
		return SCHEMA_CONVERT_COPY;
	if (from->type == CDC_TYPE_DECIMAL && from->is_unsigned == to->is_unsigned &&
		whole >= from->precision - from->scale && to->scale >= from->scale)
		return SCHEMA_CONVERT_NONE;
	high = psprintf("(power(10::numeric, %d) - power(10::numeric, -%d))", whole, to->scale);
	*expression = clamped(column, psprintf("round(%s::numeric, %d)", column, to->scale),
						  to->is_unsigned ? "0" : psprintf("-%s", high), high, type);
	return SCHEMA_CONVERT_BY;
}

static SchemaConversion
to_floating(const CdcColumnDef *from, const CdcColumnDef *to, const char *column, const char *type, char **expression)
{
	bool		is_plain = to->type_text == NULL || strchr(to->type_text, '(') == NULL;

	if (!is_plain || to->is_unsigned)
		return SCHEMA_CONVERT_COPY;
	if (from->type == to->type || (from->type == CDC_TYPE_FLOAT && to->type == CDC_TYPE_DOUBLE))
		return SCHEMA_CONVERT_NONE;
	if (to->type == CDC_TYPE_DOUBLE && (cdc_type_is_integer(from->type) || from->type == CDC_TYPE_DECIMAL))
	{
		*expression = psprintf("%s::%s", column, type);
		return SCHEMA_CONVERT_BY;
	}
	return SCHEMA_CONVERT_COPY;
}

/* Text in the source's form -> as many characters as there is room for. */
static char *
cut(const CdcColumnDef *to, char *text)
{
	if (to->type == CDC_TYPE_TEXT)
		return text;
	text = psprintf("left(%s, %u)", text, to->length);
	/* CHAR is read without the blanks at its end */
	return to->type == CDC_TYPE_CHAR ? psprintf("rtrim(%s, ' ')", text) : text;
}

static bool
same_charset_or_unicode(const CdcColumnDef *from, const CdcColumnDef *to)
{
	const char *a = binlog_charset_name(from->collation);
	const char *b = binlog_charset_name(to->collation);

	/* the statement did not name one, and the table's counts: see schema_evolve.c */
	if (b == NULL || to->collation == 0)
		return from->collation == 0;
	return strncmp(b, "utf8", 4) == 0 || strncmp(b, "utf16", 5) == 0 || strcmp(b, "utf32") == 0 || (a != NULL && strcmp(a, b) == 0);
}

static SchemaConversion
to_text(const CdcColumnDef *from, const CdcColumnDef *to, bool is_strict, const SchemaTypeOptions *types,
		const char *column, char **expression)
{
	bool		has_room;

	if (cdc_type_is_character(from->type) || is_label(from))
	{
		if (!same_charset_or_unicode(from, to) && !is_strict)
			return SCHEMA_CONVERT_COPY; /* what has no place in it became a question mark */
		has_room = is_label(from) || to->type == CDC_TYPE_TEXT || (from->type != CDC_TYPE_TEXT && from->length <= to->length);
		if (has_room && !(to->type == CDC_TYPE_CHAR && from->type != CDC_TYPE_CHAR))
			return SCHEMA_CONVERT_NONE;
		*expression = cut(to, psprintf("%s", column));
		return SCHEMA_CONVERT_BY;
	}
	if ((cdc_type_is_integer(from->type) && !is_zerofill(from) && !(from->is_boolean && types->tinyint1_as_boolean)) ||
		(from->type == CDC_TYPE_DECIMAL && !is_zerofill(from)))
	{
		*expression = cut(to, psprintf("%s::text", column));
		return SCHEMA_CONVERT_BY;
	}
	if (from->type == CDC_TYPE_YEAR)
	{
		*expression = cut(to, psprintf("lpad(%s::text, 4, '0')", column));
		return SCHEMA_CONVERT_BY;
	}
	/* a policy stands for other dates than those that the source has */
	if (types->policies.zero_date != SCHEMA_POLICY_ERROR)
		return SCHEMA_CONVERT_COPY;
	if (from->type == CDC_TYPE_DATE)
	{
		*expression = cut(to, psprintf("to_char(%s, 'YYYY-MM-DD')", column));
		return SCHEMA_CONVERT_BY;
	}
	if (from->type == CDC_TYPE_DATETIME && (from->scale == 0 || from->scale == 3 || from->scale == 6))
	{
		*expression = cut(to, psprintf("to_char(%s, 'YYYY-MM-DD HH24:MI:SS%s')", column,
									   from->scale == 0 ? "" : from->scale == 3 ? ".MS" : ".US"));
		return SCHEMA_CONVERT_BY;
	}
	return SCHEMA_CONVERT_COPY;
}

/* Which label of the other type it is; -1: none. */
static int
find_label(const CdcColumnDef *def, const CdcLabel *label)
{
	for (uint32 i = 0; i < def->nlabels; i++)
	{
		if (cdc_label_equal(&def->labels[i], label))
			return (int) i;
	}
	return -1;
}

/*
 * Do values keep their text? Labels that went took their values along, or were not used: then a strict statement went through.
 * The labels of a SET value stand in the order of the type.
 */
static bool
keeps_labels(const CdcColumnDef *from, const CdcColumnDef *to, bool is_strict)
{
	int			last = -1;

	for (uint32 i = 0; i < from->nlabels; i++)
	{
		int			now = find_label(to, &from->labels[i]);

		if (now < 0 ? !is_strict : to->type == CDC_TYPE_SET && now < last)
			return false;
		last = Max(last, now);
	}
	return true;
}

static SchemaConversion
to_temporal(const CdcColumnDef *from, const CdcColumnDef *to, const char *column, char **expression)
{
	/* how fractions are cut depends on server and sql_mode */
	if (from->type == to->type)
		return to->scale >= from->scale ? SCHEMA_CONVERT_NONE : SCHEMA_CONVERT_COPY;
	if (from->type == CDC_TYPE_DATE && to->type == CDC_TYPE_DATETIME)
		return SCHEMA_CONVERT_NONE;
	if (from->type == CDC_TYPE_DATETIME && to->type == CDC_TYPE_DATE && from->scale == 0)
	{
		*expression = psprintf("%s::date", column);
		return SCHEMA_CONVERT_BY;
	}
	return SCHEMA_CONVERT_COPY;
}

SchemaConversion
schema_conversion(const CdcColumnDef *before, const CdcColumnDef *after, bool is_strict, const SchemaTypeOptions *types,
				  const char *column, const char *type, char **expression)
{
	*expression = NULL;
	/* the server computes it anew */
	if (after->is_generated)
		return before->is_generated && before->type == after->type ? SCHEMA_CONVERT_NONE : SCHEMA_CONVERT_COPY;
	if (types->tinyint1_as_boolean && (before->is_boolean || after->is_boolean) && before->is_boolean != after->is_boolean)
		return SCHEMA_CONVERT_COPY;

	switch (after->type)
	{
		case CDC_TYPE_TINYINT:
		case CDC_TYPE_SMALLINT:
		case CDC_TYPE_MEDIUMINT:
		case CDC_TYPE_INT:
		case CDC_TYPE_BIGINT:
			return to_integer(before, after, is_strict, column, type, expression);
		case CDC_TYPE_DECIMAL:
			return to_decimal(before, after, column, type, expression);
		case CDC_TYPE_FLOAT:
		case CDC_TYPE_DOUBLE:
			return to_floating(before, after, column, type, expression);
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
		case CDC_TYPE_TEXT:
			return to_text(before, after, is_strict, types, column, expression);
		case CDC_TYPE_ENUM:
		case CDC_TYPE_SET:
			return before->type == after->type && keeps_labels(before, after, is_strict)
				? SCHEMA_CONVERT_NONE : SCHEMA_CONVERT_COPY;
		case CDC_TYPE_DATE:
		case CDC_TYPE_TIME:
		case CDC_TYPE_DATETIME:
		case CDC_TYPE_TIMESTAMP:
			return to_temporal(before, after, column, expression);
		case CDC_TYPE_BINARY:
			/* filled up with zero bytes, which both phases cut or keep alike only for the same length */
			return before->type == after->type && before->length == after->length ? SCHEMA_CONVERT_NONE : SCHEMA_CONVERT_COPY;
		case CDC_TYPE_VARBINARY:
		case CDC_TYPE_BLOB:
			return (before->type == CDC_TYPE_VARBINARY || before->type == CDC_TYPE_BLOB) &&
				(is_strict || after->type == CDC_TYPE_BLOB) ? SCHEMA_CONVERT_NONE : SCHEMA_CONVERT_COPY;
		default:
			return before->type == after->type && before->length == after->length ? SCHEMA_CONVERT_NONE : SCHEMA_CONVERT_COPY;
	}
}
