/*-------------------------------------------------------------------------
 *
 * decode_options.c
 *	  Options of the output plugin.
 *
 * NOTES
 *	  A client gives them as texts. An option that is given without a value is
 *	  true.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/varlena.h"

#include "catalog/catalog_record_options.h"
#include "decode/decode_private.h"
#include "util/util_pattern.h"

static const UtilOption option_list[] = {
	{.name = "schema_changes",.type = UTIL_OPTION_BOOL,.default_text = "false",
	.description = "ship what statements do to the tables' definitions, while an outgoing pipeline of this database does, too"},
	{.name = "streaming",.type = UTIL_OPTION_BOOL,.default_text = "false",
	.description = "ship large transactions while they run, with marks of their blocks and of what is rolled back"},
	{.name = "tables",.type = UTIL_OPTION_TEXT,
	.description = "patterns schema.table, separated by commas; ! before one leaves tables out; default: all tables"},
};

const UtilOptionTable decode_options = {
	.kind = "output plugin",
	.subject = "cdc_bridge",
	.options = option_list,
	.count = lengthof(option_list),
	.base = &catalog_record_options
};

/* Text of an option, NULL when it is not given. */
static const char *
given_text(List *given, const char *name)
{
	const char *text = NULL;
	ListCell   *lc;

	foreach(lc, given)
	{
		DefElem    *def = lfirst(lc);

		if (strcmp(def->defname, name) == 0)
			text = def->arg == NULL ? "true" : strVal(def->arg);
	}
	return text;
}

static bool
get_bool(List *given, const char *name)
{
	return util_option_bool(&decode_options, name, given_text(given, name));
}

static bool
is_word(List *given, const char *name, const char *word)
{
	return strcmp(util_option_text(&decode_options, name, given_text(given, name)), word) == 0;
}

static _Noreturn void
throw_bad_list(const char *name, const char *value, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid value for option \"%s\" of %s %s: \"%s\"", name, decode_options.subject, decode_options.kind, value),
			 errhint("%s", hint)));
}

/* Parts between commas without blanks around them, as they are: a backslash and what follows it belong together. */
static List *
split(const char *text)
{
	List	   *parts = NIL;
	StringInfoData buf;

	initStringInfo(&buf);
	for (;; text++)
	{
		if (*text == '\0' || *text == ',')
		{
			while (buf.len > 0 && buf.data[buf.len - 1] == ' ' && !(buf.len > 1 && buf.data[buf.len - 2] == '\\'))
				buf.data[--buf.len] = '\0';
			parts = lappend(parts, pstrdup(buf.data));
			resetStringInfo(&buf);
			if (*text == '\0')
				return parts;
			continue;
		}
		if (*text == ' ' && buf.len == 0)
			continue;
		appendStringInfoChar(&buf, *text);
		if (*text == '\\' && text[1] != '\0')
			appendStringInfoChar(&buf, *++text);
	}
}

static List *
read_patterns(const char *text)
{
	List	   *patterns = NIL;
	bool		any = false;
	ListCell   *lc;

	if (text == NULL)
		return NIL;
	patterns = split(text);
	foreach(lc, patterns)
	{
		const char *pattern = lfirst(lc);

		if (!util_pattern_is_valid(pattern))
			throw_bad_list("tables", text, "Give patterns schema.table separated by commas, like \"shop.*,public.orders\"; * stands for any characters, ? for one.");
		any |= pattern[0] != '!';
	}
	/* only what is left out is said: of everything */
	return any ? patterns : lcons(pstrdup("*.*"), patterns);
}

static List *
read_names(const char *text)
{
	List	   *names;

	if (text == NULL)
		return NIL;
	if (!SplitIdentifierString(pstrdup(text), ',', &names) || names == NIL)
		throw_bad_list("publication_names", text, "Give names separated by commas, in double quotes where SQL wants them.");
	return names;
}

static int
read_actions(const char *text)
{
	int			actions = 0;
	ListCell   *lc;

	foreach(lc, split(text))
	{
		const char *word = lfirst(lc);

		if (strcmp(word, "insert") == 0)
			actions |= DECODE_INSERT;
		else if (strcmp(word, "update") == 0)
			actions |= DECODE_UPDATE;
		else if (strcmp(word, "delete") == 0)
			actions |= DECODE_DELETE;
		else if (strcmp(word, "truncate") == 0)
			actions |= DECODE_TRUNCATE;
		else
			throw_bad_list("actions", text, "Give one or more of insert, update, delete, truncate, separated by commas.");
	}
	return actions;
}

/* CatalogGivenOption */
static const char *
given_option(void *arg, const char *name)
{
	return given_text(arg, name);
}

/* Read what the client gave (List of DefElem), in the current memory context. */
void
decode_options_read(DecodeOptions *options, List *given)
{
	ListCell   *lc;

	foreach(lc, given)
	{
		DefElem    *def = lfirst(lc);

		(void) util_option_check(&decode_options, def->defname, def->arg == NULL ? "true" : strVal(def->arg));
	}
	memset(options, 0, sizeof(*options));
	options->format = catalog_record_format(given_option, given, &options->format_options);
	options->actions = read_actions(util_option_text(&decode_options, "actions", given_text(given, "actions")));
	options->arrays_as_text = options->format->arrays_as_text || is_word(given, "arrays", "text");
	options->generated_columns = get_bool(given, "generated_columns");
	options->messages = get_bool(given, "messages");
	options->foreign_origins = is_word(given, "origin", "any");
	options->via_root = get_bool(given, "publish_via_partition_root");
	options->schema_changes = get_bool(given, "schema_changes");
	options->streaming = get_bool(given, "streaming");
	transform_rules_check(given_text(given, TRANSFORM_OPTION), true);
	options->transforms = transform_rules_read(given_text(given, TRANSFORM_OPTION));
	options->tables = read_patterns(given_text(given, "tables"));
	if (given_text(given, "routes") != NULL)
		options->routes = transform_routes_parse(given_text(given, "routes"), NULL);
	options->publications = read_names(given_text(given, "publication_names"));
}

void
decode_options_check(List *options)
{
	DecodeOptions read;

	decode_options_read(&read, options);
}
