/*-------------------------------------------------------------------------
 *
 * util_options.c
 *	  Checking and reading options by descriptor tables.
 *
 * NOTES
 *	  Values come as text, from CREATE SERVER or from a pipeline's jsonb. They
 *	  are checked once, when they are set; reading a checked value cannot fail,
 *	  but does so cleanly when a dump or an older version left a bad one.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <errno.h>
#include <limits.h>

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/varlena.h"

#include "util/util_options.h"

/* varstr_levenshtein refuses longer strings. */
#define LEVENSHTEIN_MAX 255

/* Options of servers and user mappings have the SQL/MED error codes. */
static bool
is_fdw(const UtilOptionTable *table)
{
	return strcmp(table->kind, "server") == 0 || strcmp(table->kind, "user mapping") == 0;
}

/* "cdc_mysql server", "pipeline": the owner of the options in messages, palloc'd. */
static char *
owner_text(const UtilOptionTable *table)
{
	if (strcmp(table->kind, table->subject) == 0)
		return pstrdup(table->kind);
	return psprintf("%s %s", table->subject, table->kind);
}

int
util_option_count(const UtilOptionTable *table)
{
	return table->count + (table->base != NULL ? util_option_count(table->base) : 0);
}

const UtilOption *
util_option_nth(const UtilOptionTable *table, int i)
{
	return i < table->count ? &table->options[i] : util_option_nth(table->base, i - table->count);
}

const UtilOption *
util_option_find(const UtilOptionTable *table, const char *name)
{
	for (int i = 0; i < util_option_count(table); i++)
	{
		const UtilOption *option = util_option_nth(table, i);

		if (strcmp(option->name, name) == 0)
			return option;
	}
	return NULL;
}

/* All names, the one most like the given name first. */
static char *
names_nearest_first(const UtilOptionTable *table, const char *name)
{
	StringInfoData buf;
	int			len = (int) strlen(name);
	int			count = util_option_count(table);
	int		   *distance = palloc0(sizeof(int) * count);
	bool	   *used = palloc0(sizeof(bool) * count);

	for (int i = 0; i < count; i++)
	{
		if (len > 0 && len <= LEVENSHTEIN_MAX)
		{
			const char *other = util_option_nth(table, i)->name;

			distance[i] = varstr_levenshtein(name, len, other, (int) strlen(other), 1, 1, 1, true);
		}
	}

	initStringInfo(&buf);
	for (int n = 0; n < count; n++)
	{
		int			best = -1;

		for (int i = 0; i < count; i++)
		{
			if (!used[i] && (best < 0 || distance[i] < distance[best]))
				best = i;
		}
		used[best] = true;
		appendStringInfo(&buf, "%s%s", n > 0 ? ", " : "", util_option_nth(table, best)->name);
	}
	return buf.data;
}

static bool
parse_int_strict(const char *value, int *result)
{
	char	   *end;
	long		l;

	errno = 0;
	l = strtol(value, &end, 10);
	if (end == value || *end != '\0' || errno != 0 || l < INT_MIN || l > INT_MAX)
		return false;
	*result = (int) l;
	return true;
}

static bool
is_one_of(const char *const *values, const char *value)
{
	for (; *values != NULL; values++)
	{
		if (strcmp(*values, value) == 0)
			return true;
	}
	return false;
}

/* What a value of that option may be, as a sentence for a hint. */
static char *
allowed_text(const UtilOption *option)
{
	StringInfoData buf;

	initStringInfo(&buf);
	switch (option->type)
	{
		case UTIL_OPTION_BOOL:
			appendStringInfoString(&buf, "Valid values are: true, false.");
			break;
		case UTIL_OPTION_INT:
			appendStringInfo(&buf, "Valid values are whole numbers from %d to %d", option->min, option->max);
			if (option->unit != NULL)
				appendStringInfo(&buf, " (%s)", option->unit);
			appendStringInfoChar(&buf, '.');
			break;
		case UTIL_OPTION_ENUM:
			appendStringInfoString(&buf, "Valid values are: ");
			for (int i = 0; option->values[i] != NULL; i++)
				appendStringInfo(&buf, "%s%s", i > 0 ? ", " : "", option->values[i]);
			appendStringInfoChar(&buf, '.');
			break;
		case UTIL_OPTION_TEXT:
			appendStringInfoString(&buf, "The value must be a text.");
			break;
		case UTIL_OPTION_OBJECT:
			appendStringInfoString(&buf, "The value must be a JSON object.");
			break;
		case UTIL_OPTION_ARRAY:
			appendStringInfoString(&buf, "The value must be a JSON array.");
			break;
	}
	return buf.data;
}

static _Noreturn void
throw_bad_value(const UtilOptionTable *table, const UtilOption *option, const char *value)
{
	int			code = is_fdw(table) ? ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE : ERRCODE_INVALID_PARAMETER_VALUE;

	if (value == NULL || option->secret)
		ereport(ERROR,
				(errcode(code),
				 errmsg("invalid value for option \"%s\" of %s", option->name, owner_text(table)),
				 errhint("%s", allowed_text(option))));
	ereport(ERROR,
			(errcode(code),
			 errmsg("invalid value for option \"%s\" of %s: \"%s\"", option->name, owner_text(table), value),
			 errhint("%s", allowed_text(option))));
}

static bool
value_is_valid(const UtilOption *option, const char *value)
{
	bool		b;
	int			n;

	switch (option->type)
	{
		case UTIL_OPTION_BOOL:
			return parse_bool(value, &b);
		case UTIL_OPTION_INT:
			return parse_int_strict(value, &n) && n >= option->min && n <= option->max;
		case UTIL_OPTION_ENUM:
			return is_one_of(option->values, value);
		case UTIL_OPTION_TEXT:
			return true;
		case UTIL_OPTION_OBJECT:
			return value[0] == '{';
		case UTIL_OPTION_ARRAY:
			return value[0] == '[';
	}
	return false;
}

const UtilOption *
util_option_name_check(const UtilOptionTable *table, const char *name)
{
	const UtilOption *option = util_option_find(table, name);

	if (option == NULL)
		ereport(ERROR,
				(errcode(is_fdw(table) ? ERRCODE_FDW_INVALID_OPTION_NAME : ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unrecognized option \"%s\" for %s", name, owner_text(table)),
				 errhint("Valid options are: %s.", names_nearest_first(table, name))));
	return option;
}

/*
 * Check one option and its value (NULL: not a scalar). Throws for an unknown
 * name, a bad value, and a file-naming option that a non-superuser sets.
 */
const UtilOption *
util_option_check(const UtilOptionTable *table, const char *name, const char *value)
{
	const UtilOption *option = util_option_name_check(table, name);

	if (value == NULL || !value_is_valid(option, value))
		throw_bad_value(table, option, value);
	if (option->superuser_only && !superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to set option \"%s\" of %s", name, owner_text(table)),
				 errdetail("It names a file on the database server, so only superusers may set it.")));
	return option;
}

/* Descriptor of an option that the code itself asks for, and the text to read. */
static const UtilOption *
find_for_reading(const UtilOptionTable *table, const char *name, UtilOptionType type, const char **value)
{
	const UtilOption *option = util_option_find(table, name);

	if (option == NULL)
		elog(ERROR, "no option \"%s\" for %s", name, owner_text(table));
	if (option->type != type &&
		!(type == UTIL_OPTION_TEXT &&
		  (option->type == UTIL_OPTION_ENUM || option->type == UTIL_OPTION_OBJECT || option->type == UTIL_OPTION_ARRAY)))
		elog(ERROR, "option \"%s\" for %s is read as another type", name, owner_text(table));
	if (*value == NULL)
		*value = option->default_text;
	else if (!value_is_valid(option, *value))
		throw_bad_value(table, option, *value);
	return option;
}

bool
util_option_bool(const UtilOptionTable *table, const char *name, const char *value)
{
	bool		result = false;

	(void) find_for_reading(table, name, UTIL_OPTION_BOOL, &value);
	if (value != NULL)
		(void) parse_bool(value, &result);
	return result;
}

int
util_option_int(const UtilOptionTable *table, const char *name, const char *value)
{
	int			result = 0;

	(void) find_for_reading(table, name, UTIL_OPTION_INT, &value);
	if (value != NULL)
		(void) parse_int_strict(value, &result);
	return result;
}

/* Also for enumerations and objects. Returns the value itself or the default, which may be NULL. */
const char *
util_option_text(const UtilOptionTable *table, const char *name, const char *value)
{
	(void) find_for_reading(table, name, UTIL_OPTION_TEXT, &value);
	return value;
}
