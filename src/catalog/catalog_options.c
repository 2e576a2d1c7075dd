/*-------------------------------------------------------------------------
 *
 * catalog_options.c
 *	  Options of a pipeline: the descriptor table, and reading the jsonb.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"

#include "catalog/catalog.h"
#include "compat/pg_compat.h"

static const char *const collapse_values[] = {"auto", "off", NULL};
static const char *const on_error_values[] = {"stop_table", "dead_letter", NULL};
static const char *const zero_date_values[] = {"error", "null", "epoch", "infinity", NULL};
static const char *const nul_bytes_values[] = {"error", "strip", "replace", NULL};
static const char *const secondary_indexes_values[] = {"after_snapshot", "none", NULL};
static const char *const invalid_bytes_values[] = {"error", "replace", NULL};

static const UtilOption option_list[] = {
	{.name = "batch_max_kb",.type = UTIL_OPTION_INT,.default_text = "16384",.min = 64,.max = 1048576,.unit = "kB",
	.description = "commit when the changes applied since the last commit have this size in the binary log"},
	{.name = "batch_max_ms",.type = UTIL_OPTION_INT,.default_text = "200",.min = 0,.max = 60000,.unit = "ms",
	.description = "commit at the latest after this time; 0 commits every source transaction by itself"},
	{.name = "batch_max_rows",.type = UTIL_OPTION_INT,.default_text = "10000",.min = 1,.max = 1000000,.unit = "rows",
	.description = "commit when so many changes have been applied; a source transaction is never split"},
	{.name = "collapse",.type = UTIL_OPTION_ENUM,.default_text = "auto",.values = collapse_values,
	.description = "write only what the changes of a batch come to for each key; off writes each change, in order, by itself"},
	{.name = "invalid_bytes",.type = UTIL_OPTION_ENUM,.default_text = "error",.values = invalid_bytes_values,
	.description = "bytes that are not valid in their column's character set: stop the table, or put U+FFFD for them"},
	{.name = "nul_bytes",.type = UTIL_OPTION_ENUM,.default_text = "error",.values = nul_bytes_values,
	.description = "NUL characters in text and in JSON for jsonb: stop the table, leave them out, or put U+FFFD for them"},
	{.name = "on_error",.type = UTIL_OPTION_ENUM,.default_text = "stop_table",.values = on_error_values,
	.description = "a change that cannot be applied: stop its table, or keep it in cdc_dead_letters and go on"},
	{.name = "secondary_indexes",.type = UTIL_OPTION_ENUM,.default_text = "after_snapshot",.values = secondary_indexes_values,
	.description = "unique and secondary indexes of tables that the pipeline makes: built when a table streams, or none"},
	{.name = "snapshot_chunk_rows",.type = UTIL_OPTION_INT,.default_text = "20000",.min = 1,.max = 1000000,.unit = "rows",
	.description = "rows that the initial copy, and a comparison, reads at a time"},
	{.name = "tinyint1_as_boolean",.type = UTIL_OPTION_BOOL,.default_text = "false",
	.description = "make tinyint(1) columns boolean instead of smallint"},
	{.name = "verify_sample_percent",.type = UTIL_OPTION_INT,.default_text = "10",.min = 1,.max = 100,.unit = "%",
	.description = "share of a table's chunks that cdc_verify() compares with mode \"sample\""},
	{.name = "zero_date",.type = UTIL_OPTION_ENUM,.default_text = "error",.values = zero_date_values,
	.description = "0000-00-00 and other dates that the calendar does not have: stop the table, or NULL, 1970-01-01, -infinity"},
};

const UtilOptionTable catalog_pipeline_options = {
	.kind = "pipeline",
	.subject = "pipeline",
	.options = option_list,
	.count = lengthof(option_list)
};

/* Is "null" one of an option's words? Then JSON's null means it too. */
static bool
takes_null(const char *name)
{
	for (size_t i = 0; i < lengthof(option_list); i++)
	{
		const UtilOption *option = &option_list[i];

		if (strcmp(option->name, name) != 0 || option->type != UTIL_OPTION_ENUM)
			continue;
		for (const char *const *word = option->values; *word != NULL; word++)
		{
			if (strcmp(*word, "null") == 0)
				return true;
		}
	}
	return false;
}

/* The value of an option, a jsonb scalar, as text; NULL for everything else. */
static char *
scalar_to_text(const char *name, const JsonbValue *value)
{
	switch (value->type)
	{
		case jbvString:
			return pnstrdup(value->val.string.val, value->val.string.len);
		case jbvNumeric:
			return DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(value->val.numeric)));
		case jbvBool:
			return pstrdup(value->val.boolean ? "true" : "false");
		case jbvNull:
			return takes_null(name) ? pstrdup("null") : NULL;
		default:
			return NULL;
	}
}

void
catalog_pipeline_options_check(Datum options)
{
	Jsonb	   *jsonb;
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	value;

	if (options == (Datum) 0)
		return;

	jsonb = DatumGetJsonbP(options);
	if (!JB_ROOT_IS_OBJECT(jsonb))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("options must be a JSON object"),
				 errhint("For example: options => '{\"%s\": 5000}'.", "snapshot_chunk_rows")));

	it = JsonbIteratorInit(&jsonb->root);
	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		char	   *name;
		char	   *text;

		if (token != WJB_KEY)
			continue;
		name = pnstrdup(value.val.string.val, value.val.string.len);
		(void) JsonbIteratorNext(&it, &value, true);
		text = scalar_to_text(name, &value);
		(void) util_option_check(&catalog_pipeline_options, name, text);
	}
}

char *
catalog_pipeline_option(const CatalogPipeline *pipeline, const char *name)
{
	JsonbValue *value;

	if (pipeline->options == (Datum) 0)
		return NULL;
	value = getKeyJsonValueFromContainer(&DatumGetJsonbP(pipeline->options)->root, name, strlen(name), NULL);
	return value == NULL ? NULL : scalar_to_text(name, value);
}
