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

#include "common/shortest_dec.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/varlena.h"

#include "decode/decode_private.h"
#include "util/util_pattern.h"

#define VERSION "cdc_bridge 0.1"

static const char *const format_values[] = {"debezium-json", "json", NULL};
static const char *const arrays_values[] = {"json", "text", NULL};
static const char *const binary_values[] = {"base64", "hex", NULL};
static const char *const json_values[] = {"string", "embed", NULL};
static const char *const numeric_values[] = {"string", "number", NULL};
static const char *const origin_values[] = {"any", "none", NULL};

static const UtilOption option_list[] = {
	{.name = "actions",.type = UTIL_OPTION_TEXT,.default_text = "insert,update,delete,truncate",
	.description = "kinds of changes that are shipped, separated by commas"},
	{.name = "arrays",.type = UTIL_OPTION_ENUM,.default_text = "json",.values = arrays_values,
	.description = "arrays as JSON arrays, which do not tell lower bounds other than 1, or as PostgreSQL's text"},
	{.name = "binary",.type = UTIL_OPTION_ENUM,.default_text = "base64",.values = binary_values,
	.description = "how bytea is written"},
	{.name = "format",.type = UTIL_OPTION_ENUM,.default_text = "debezium-json",.values = format_values,
	.description = "what a record looks like"},
	{.name = "generated_columns",.type = UTIL_OPTION_BOOL,.default_text = "true",
	.description = "ship stored generated columns; with publication_names the publications decide"},
	{.name = "include_key",.type = UTIL_OPTION_BOOL,.default_text = "false",
	.description = "wrap each record as {\"value\": ..., \"key\": ...}"},
	{.name = "include_transaction",.type = UTIL_OPTION_BOOL,.default_text = "false",
	.description = "a record for each begin and commit, and each change's place in its transaction"},
	{.name = "include_types",.type = UTIL_OPTION_BOOL,.default_text = "false",
	.description = "format json: the type of each column"},
	{.name = "json",.type = UTIL_OPTION_ENUM,.default_text = "string",.values = json_values,
	.description = "json and jsonb as a string, or as part of the record, where null may be either null"},
	{.name = "messages",.type = UTIL_OPTION_BOOL,.default_text = "false",
	.description = "ship what pg_logical_emit_message writes"},
	{.name = "numeric",.type = UTIL_OPTION_ENUM,.default_text = "string",.values = numeric_values,
	.description = "numeric as a string, or as a JSON number with all its digits"},
	{.name = "origin",.type = UTIL_OPTION_ENUM,.default_text = "any",.values = origin_values,
	.description = "none leaves out what came by replication, also by a pipeline of cdc_bridge"},
	{.name = "publication_names",.type = UTIL_OPTION_TEXT,
	.description = "ship what these publications publish, separated by commas: their tables, columns, rows and actions"},
	{.name = "publish_via_partition_root",.type = UTIL_OPTION_BOOL,.default_text = "false",
	.description = "rows of partitions under the name of the root; with publication_names the publications decide"},
	{.name = "schema_changes",.type = UTIL_OPTION_BOOL,.default_text = "false",
	.description = "ship what statements do to the tables' definitions, while an outgoing pipeline of this database does, too"},
	{.name = "schemas",.type = UTIL_OPTION_BOOL,.default_text = "false",
	.description = "format debezium-json: each record carries its Kafka Connect schema"},
	{.name = "server_name",.type = UTIL_OPTION_TEXT,
	.description = "format debezium-json: name of the source in the records; default: the database"},
	{.name = "streaming",.type = UTIL_OPTION_BOOL,.default_text = "false",
	.description = "ship large transactions while they run, with marks of their blocks and of what is rolled back"},
	{.name = "tables",.type = UTIL_OPTION_TEXT,
	.description = "patterns schema.table, separated by commas; ! before one leaves tables out; default: all tables"},
	{.name = "unavailable_value",.type = UTIL_OPTION_TEXT,.default_text = CDC_FORMAT_UNAVAILABLE,
	.description = "format debezium-json: stands for a large value that the change did not touch"},
};

const UtilOptionTable decode_options = {
	.kind = "output plugin",
	.subject = "cdc_bridge",
	.options = option_list,
	.count = lengthof(option_list)
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

/* Options that say the opposite of each other. */
static void
check_together(const DecodeOptions *options)
{
	const char *other = options->format_options.numeric_as_number ? "numeric" : options->format_options.json_embedded ? "json" : NULL;

	if (options->format_options.schemas && other != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("options \"%s\" and \"%s\" do not go together", "schemas", other),
				 errdetail("Kafka Connect has no type for such values."),
				 errhint("Leave out \"%s\", or \"schemas\".", other)));
}

/* Read what the client gave (List of DefElem), in the current memory context. */
void
decode_options_read(DecodeOptions *options, List *given)
{
	CdcFormatOptions *format = &options->format_options;
	ListCell   *lc;

	foreach(lc, given)
	{
		DefElem    *def = lfirst(lc);

		(void) util_option_check(&decode_options, def->defname, def->arg == NULL ? "true" : strVal(def->arg));
	}
	memset(options, 0, sizeof(*options));
	options->format = cdc_format_find(util_option_text(&decode_options, "format", given_text(given, "format")));
	options->actions = read_actions(util_option_text(&decode_options, "actions", given_text(given, "actions")));
	options->arrays_as_text = is_word(given, "arrays", "text");
	options->generated_columns = get_bool(given, "generated_columns");
	options->include_key = get_bool(given, "include_key");
	options->include_transaction = get_bool(given, "include_transaction");
	options->messages = get_bool(given, "messages");
	options->foreign_origins = is_word(given, "origin", "any");
	options->via_root = get_bool(given, "publish_via_partition_root");
	options->schema_changes = get_bool(given, "schema_changes");
	options->streaming = get_bool(given, "streaming");
	options->tables = read_patterns(given_text(given, "tables"));
	options->publications = read_names(given_text(given, "publication_names"));

	format->schemas = get_bool(given, "schemas") && is_word(given, "format", "debezium-json");
	format->transaction = options->include_transaction;
	format->types = get_bool(given, "include_types");
	format->numeric_as_number = is_word(given, "numeric", "number");
	format->bytes_as_hex = is_word(given, "binary", "hex");
	format->json_embedded = is_word(given, "json", "embed");
	format->server_name = given_text(given, "server_name");
	format->version = VERSION;
	format->unavailable = util_option_text(&decode_options, "unavailable_value", given_text(given, "unavailable_value"));
	format->double_text = double_to_shortest_decimal_buf;
	format->float_text = float_to_shortest_decimal_buf;
	check_together(options);
}
