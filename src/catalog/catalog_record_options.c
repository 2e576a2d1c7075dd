/*-------------------------------------------------------------------------
 *
 * catalog_record_options.c
 *	  Options that say what is shipped and what a record looks like: the output
 *	  plugin has them, and so has every outgoing pipeline.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/shortest_dec.h"

#include "catalog/catalog_record_options.h"

#define VERSION "cdc_bridge 0.1"

static const char *const format_values[] = {
	"canal-json", "changelog-json", "debezium-avro", "debezium-json", "debezium-unwrapped-json", "json", "maxwell-json", NULL
};
static const char *const arrays_values[] = {"json", "text", NULL};
static const char *const binary_values[] = {"base64", "hex", "latin1", NULL};
static const char *const json_values[] = {"string", "embed", NULL};
static const char *const numeric_values[] = {"string", "number", NULL};
static const char *const origin_values[] = {"any", "none", NULL};
static const char *const unwrap_deletes_values[] = {"rewrite", "tombstone", "drop", NULL};

static const UtilOption option_list[] = {
	{.name = "actions",.type = UTIL_OPTION_TEXT,.default_text = "insert,update,delete,truncate",
	.description = "kinds of changes that are shipped, separated by commas"},
	{.name = "arrays",.type = UTIL_OPTION_ENUM,.default_text = "json",.values = arrays_values,
	.description = "arrays as JSON arrays, which do not tell lower bounds other than 1, or as PostgreSQL's text"},
	{.name = "binary",.type = UTIL_OPTION_ENUM,.values = binary_values,
	.description = "how bytea is written; default: latin1, a character for each byte, for canal-json, else base64"},
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
	{.name = "json",.type = UTIL_OPTION_ENUM,.values = json_values,
	.description = "json and jsonb as a string, or as part of the record, where null may be either null; default: embed for maxwell-json, else string"},
	{.name = "logical_types",.type = UTIL_OPTION_BOOL,.default_text = "false",
	.description = "format debezium-avro: dates, times, uuid and numeric(p,s) with logical types, which have no infinity and no NaN; else as strings"},
	{.name = "messages",.type = UTIL_OPTION_BOOL,.default_text = "false",
	.description = "ship what pg_logical_emit_message writes"},
	{.name = "numeric",.type = UTIL_OPTION_ENUM,.values = numeric_values,
	.description = "numeric as a string, or as a JSON number with all its digits; default: number for changelog-json and maxwell-json, else string"},
	{.name = "origin",.type = UTIL_OPTION_ENUM,.default_text = "any",.values = origin_values,
	.description = "none leaves out what came by replication, also by a pipeline of cdc_bridge"},
	{.name = "publication_names",.type = UTIL_OPTION_TEXT,
	.description = "ship what these publications publish, separated by commas: their tables, columns, rows and actions"},
	{.name = "publish_via_partition_root",.type = UTIL_OPTION_BOOL,.default_text = "false",
	.description = "rows of partitions under the name of the root; with publication_names the publications decide"},
	{.name = "routes",.type = UTIL_OPTION_ARRAY,
	.description = "under which schema and table a table is shipped: objects with a pattern, or a regular expression, and the names; the first that fits decides"},
	{.name = "schemas",.type = UTIL_OPTION_BOOL,.default_text = "false",
	.description = "Debezium's formats: each record carries its Kafka Connect schema"},
	{.name = "server_name",.type = UTIL_OPTION_TEXT,
	.description = "Debezium's formats: name of the source in the records; default: the database"},
	{.name = "transforms",.type = UTIL_OPTION_ARRAY,
	.description = "what becomes of rows: objects with the tables' patterns, a projection, a filter and a key; the first that fits decides"},
	{.name = "unavailable_value",.type = UTIL_OPTION_TEXT,.default_text = CDC_FORMAT_UNAVAILABLE,
	.description = "Debezium's formats: stands for a large value that the change did not touch"},
	{.name = "unwrap_deletes",.type = UTIL_OPTION_ENUM,.default_text = "rewrite",.values = unwrap_deletes_values,
	.description = "format debezium-unwrapped-json: a deleted row is the old row with __deleted, or null, or nothing at all"},
	{.name = "unwrap_fields",.type = UTIL_OPTION_TEXT,
	.description = "format debezium-unwrapped-json: members of the envelope that a row gets too, as op,source.ts_ms"},
};

const UtilOptionTable catalog_record_options = {
	.kind = "record",
	.subject = "record",
	.options = option_list,
	.count = lengthof(option_list)
};

static const char *
text_of(CatalogGivenOption given, void *arg, const char *name)
{
	return util_option_text(&catalog_record_options, name, given(arg, name));
}

static bool
is_true(CatalogGivenOption given, void *arg, const char *name)
{
	return util_option_bool(&catalog_record_options, name, given(arg, name));
}

static bool
is_word(CatalogGivenOption given, void *arg, const char *name, const char *word)
{
	return strcmp(text_of(given, arg, name), word) == 0;
}

/* A word that was given, or NULL: the format has a default of its own. */
static bool
is_word_or(CatalogGivenOption given, void *arg, const char *name, const char *word, bool default_value)
{
	const char *value = given(arg, name);

	return value == NULL ? default_value : is_word(given, arg, name, word);
}

/* Options that say the opposite of each other. */
static void
check_together(const CdcFormatOptions *options)
{
	const char *other = options->numeric_as_number ? "numeric" : options->json_embedded ? "json" : options->bytes_as_latin1 ? "binary" : NULL;

	if (options->schemas && other != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("options \"%s\" and \"%s\" do not go together", "schemas", other),
				 errdetail("Kafka Connect has no type for such values."),
				 errhint("Leave out \"%s\", or \"schemas\".", other)));
}

static CdcFormatDeletes
unwrap_deletes(CatalogGivenOption given, void *arg)
{
	if (is_word(given, arg, "unwrap_deletes", "tombstone"))
		return CDC_FORMAT_DELETES_TOMBSTONE;
	return is_word(given, arg, "unwrap_deletes", "drop") ? CDC_FORMAT_DELETES_DROP : CDC_FORMAT_DELETES_REWRITE;
}

static const char *
unwrap_fields(CatalogGivenOption given, void *arg)
{
	const char *fields = given(arg, "unwrap_fields");
	size_t		len;
	const char *unknown;

	if (fields == NULL)
		return NULL;
	unknown = cdc_format_unknown_field(fields, &len);
	if (unknown != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"%s\": \"%s\"", "unwrap_fields", fields),
				 errdetail("\"%.*s\" is no member of Debezium's envelope.", (int) len, unknown),
				 errhint("Give names separated by commas, like \"op,table,source.ts_ms,transaction.id\", each with \":new_name\" behind it if it shall have another one.")));
	return fields;
}

const CdcFormatOps *
catalog_record_format(CatalogGivenOption given, void *arg, CdcFormatOptions *options)
{
	const CdcFormatOps *format = cdc_format_find(text_of(given, arg, "format"));
	bool		is_debezium = format == &cdc_format_debezium_json || format == &cdc_format_debezium_unwrapped_json;

	*options = (CdcFormatOptions) {
		.schemas = is_true(given, arg, "schemas") && is_debezium,
		.transaction = is_true(given, arg, "include_transaction"),
		.key = is_true(given, arg, "include_key"),
		.types = is_true(given, arg, "include_types"),
		.numeric_as_number = is_word_or(given, arg, "numeric", "number", format->numeric_as_number),
		.bytes_as_hex = is_word_or(given, arg, "binary", "hex", false),
		.bytes_as_latin1 = is_word_or(given, arg, "binary", "latin1", format->bytes_as_latin1),
		.logical_types = is_true(given, arg, "logical_types"),
		.json_embedded = is_word_or(given, arg, "json", "embed", format->json_embedded),
		.server_name = given(arg, "server_name"),
		.version = VERSION,
		.unavailable = text_of(given, arg, "unavailable_value"),
		.unwrap_deletes = unwrap_deletes(given, arg),
		.unwrap_fields = unwrap_fields(given, arg),
		.double_text = double_to_shortest_decimal_buf,
		.float_text = float_to_shortest_decimal_buf
	};
	check_together(options);
	return format;
}
