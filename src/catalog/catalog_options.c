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
#include "catalog/catalog_export.h"
#include "catalog/catalog_history.h"
#include "compat/pg_compat.h"

/* in the order of CatalogOnError */
const char *const catalog_on_error_words[] = {"stop_table", "dead_letter", "stop", NULL};

static const char *const collapse_values[] = {"auto", "off", NULL};
static const char *const cascades_values[] = {"synthesise", "refuse", "target", NULL};
static const char *const on_position_lost_values[] = {"fail", "resync", NULL};
static const char *const online_change_values[] = {"resync", "follow", NULL};
static const char *const zero_date_values[] = {"error", "null", "epoch", "infinity", NULL};
static const char *const nul_bytes_values[] = {"error", "strip", "replace", NULL};
static const char *const schema_changes_values[] = {"evolve", "try_evolve", "lenient", "ignore", "exception", NULL};
static const char *const secondary_indexes_values[] = {"after_snapshot", "none", NULL};
static const char *const invalid_bytes_values[] = {"error", "replace", NULL};

static const char *const snapshot_values[] = {"initial", "schema_only", "never", "only", NULL};
static const char *const on_existing_values[] = {"error", "append", "truncate", "replace", NULL};

static const UtilOption option_list[] = {
	{.name = "batch_max_kb",.type = UTIL_OPTION_INT,.default_text = "16384",.min = 64,.max = 1048576,.unit = "kB",
	.description = "commit when the changes applied since the last commit have this size in the binary log"},
	{.name = "batch_max_ms",.type = UTIL_OPTION_INT,.default_text = "200",.min = 0,.max = 60000,.unit = "ms",
	.description = "commit at the latest after this time; 0 commits every source transaction by itself"},
	{.name = "batch_max_rows",.type = UTIL_OPTION_INT,.default_text = "10000",.min = 1,.max = 1000000,.unit = "rows",
	.description = "commit when so many changes have been applied; a source transaction is never split"},
	{.name = "cascades",.type = UTIL_OPTION_ENUM,.default_text = "synthesise",.values = cascades_values,
	.description = "what ON DELETE and ON UPDATE do to child rows, where the source does not log it: do the same here, stop the table, or leave it to a foreign key of the target"},
	{.name = "collapse",.type = UTIL_OPTION_ENUM,.default_text = "auto",.values = collapse_values,
	.description = "write only what the changes of a batch come to for each key; off writes each change, in order, by itself"},
	{.name = "column_types",.type = UTIL_OPTION_OBJECT,
	.description = "types of columns of tables to be made: patterns schema.table.column and PostgreSQL types"},
	{.name = "dead_letter_max_days",.type = UTIL_OPTION_INT,.default_text = "30",.min = 0,.max = 100000,.unit = "days",
	.description = "dead letters that are older are removed; 0 keeps them"},
	{.name = "dead_letter_max_rows",.type = UTIL_OPTION_INT,.default_text = "1000000",.min = 0,.max = 2000000000,.unit = "rows",
	.description = "most dead letters: beyond that the oldest are removed, those that are settled first; 0: no limit"},
	{.name = "invalid_bytes",.type = UTIL_OPTION_ENUM,.default_text = "error",.values = invalid_bytes_values,
	.description = "bytes that are not valid in their column's character set: stop the table, or put U+FFFD for them"},
	{.name = "max_rows_per_second",.type = UTIL_OPTION_INT,.default_text = "0",.min = 0,.max = 1000000000,.unit = "rows",
	.description = "most rows that the initial copy writes in a second, over all its workers; 0: no limit"},
	{.name = "nul_bytes",.type = UTIL_OPTION_ENUM,.default_text = "error",.values = nul_bytes_values,
	.description = "NUL characters in text and in JSON for jsonb: stop the table, leave them out, or put U+FFFD for them"},
	{.name = "on_error",.type = UTIL_OPTION_ENUM,.default_text = "stop_table",.values = catalog_on_error_words,
	.description = "a change that cannot be applied: stop its table, keep it in cdc_dead_letters and go on, or stop the pipeline before it"},
	{.name = "on_existing",.type = UTIL_OPTION_ENUM,.default_text = "error",.values = on_existing_values,
	.description = "a target that has rows when the pipeline first runs: stop the table, keep the rows, or begin with an empty or a new table"},
	{.name = "on_position_lost",.type = UTIL_OPTION_ENUM,.default_text = "fail",.values = on_position_lost_values,
	.description = "the source no longer has what is not applied, or another server lacks what is: fail, or copy all tables anew beside their rows"},
	{.name = "online_schema_change",.type = UTIL_OPTION_ENUM,.default_text = "resync",.values = online_change_values,
	.description = "a table takes the name of a mirrored one, as tools for online schema changes do it: copy it anew, or trust that it has the same rows and only follow its shape"},
	{.name = "routes",.type = UTIL_OPTION_ARRAY,
	.description = "which schema and table a source table goes to: objects with a pattern, or a regular expression, and the names; the first that fits decides"},
	{.name = "schema_changes",.type = UTIL_OPTION_ENUM,.default_text = "evolve",.values = schema_changes_values,
	.description = "a source table changes its shape: follow, follow as far as it goes, follow without losing anything here, leave the target as it is, or stop the table"},
	{.name = "schema_changes_exclude",.type = UTIL_OPTION_ARRAY,
	.description = "kinds of schema changes that are ignored: add_column, drop_column, ..."},
	{.name = "schema_changes_include",.type = UTIL_OPTION_ARRAY,
	.description = "kinds of schema changes that are not ignored; all others are"},
	{.name = "schema_history_max_rows",.type = UTIL_OPTION_INT,.default_text = "10000",.min = 1,.max = 10000000,.unit = "rows",
	.description = "most schema changes of the pipeline that cdc_schema_history remembers; older ones are removed"},
	{.name = "secondary_indexes",.type = UTIL_OPTION_ENUM,.default_text = "after_snapshot",.values = secondary_indexes_values,
	.description = "unique and secondary indexes of tables that the pipeline makes: built when a table streams, or none"},
	{.name = "snapshot",.type = UTIL_OPTION_ENUM,.default_text = "initial",.values = snapshot_values,
	.description = "copy the tables and follow; only make the targets and follow; follow into what is there; or copy and then stop"},
	{.name = "snapshot_chunk_rows",.type = UTIL_OPTION_INT,.default_text = "20000",.min = 1,.max = 1000000,.unit = "rows",
	.description = "most rows that the initial copy, and a comparison, reads at a time; fewer when rows are large"},
	{.name = "snapshot_workers",.type = UTIL_OPTION_INT,.default_text = "2",.min = 1,.max = CATALOG_MAX_SNAPSHOT_WORKERS,.unit = "processes",
	.description = "workers that copy tables, and parts of one table, at the same time"},
	{.name = "tinyint1_as_boolean",.type = UTIL_OPTION_BOOL,.default_text = "false",
	.description = "make tinyint(1) columns boolean instead of smallint"},
	{.name = "transforms",.type = UTIL_OPTION_ARRAY,
	.description = "what becomes of rows before they are written: objects with tables, projection, filter and key, the first that names a table counts"},
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

const UtilOptionTable *
catalog_pipeline_option_table(const CatalogPipeline *pipeline)
{
	return pipeline->sink != NULL ? &catalog_export_options : &catalog_pipeline_options;
}

/* Is "null" one of an option's words? Then JSON's null means it too. */
static bool
takes_null(const UtilOption *option)
{
	if (option == NULL || option->type != UTIL_OPTION_ENUM)
		return false;
	for (const char *const *word = option->values; *word != NULL; word++)
	{
		if (strcmp(*word, "null") == 0)
			return true;
	}
	return false;
}

/* The value of an option as text: a scalar, or an object or array where the option is one; NULL for everything else. */
static char *
value_to_text(const UtilOption *option, const JsonbValue *value)
{
	if (option != NULL && (option->type == UTIL_OPTION_OBJECT || option->type == UTIL_OPTION_ARRAY))
		return value->type == jbvBinary &&
			(option->type == UTIL_OPTION_OBJECT ? JsonContainerIsObject(value->val.binary.data)
			 : JsonContainerIsArray(value->val.binary.data))
			? JsonbToCString(NULL, value->val.binary.data, value->val.binary.len) : NULL;
	switch (value->type)
	{
		case jbvString:
			return pnstrdup(value->val.string.val, value->val.string.len);
		case jbvNumeric:
			return DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(value->val.numeric)));
		case jbvBool:
			return pstrdup(value->val.boolean ? "true" : "false");
		case jbvNull:
			return takes_null(option) ? pstrdup("null") : NULL;
		default:
			return NULL;
	}
}

/* An option's value in a jsonb object as text; NULL when it is not there. */
static char *
option_text(const UtilOptionTable *table, Datum options, const char *name)
{
	JsonbValue *value = getKeyJsonValueFromContainer(&DatumGetJsonbP(options)->root, name, strlen(name), NULL);

	return value == NULL ? NULL : value_to_text(util_option_find(table, name), value);
}

/* The strings of an option that is an array of them; throws when one is none. NIL when it is not given. */
static List *
option_words(Datum options, const char *name)
{
	JsonbValue *value = getKeyJsonValueFromContainer(&DatumGetJsonbP(options)->root, name, strlen(name), NULL);
	List	   *words = NIL;

	if (value == NULL || value->type != jbvBinary || !JsonContainerIsArray(value->val.binary.data))
		return NIL;
	for (uint32 i = 0; i < JsonContainerSize(value->val.binary.data); i++)
	{
		const JsonbValue *word = getIthJsonbValueFromContainer(value->val.binary.data, i);

		if (word->type != jbvString)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("option \"%s\" has an element that is no string", name)));
		words = lappend(words, pnstrdup(word->val.string.val, word->val.string.len));
	}
	return words;
}

List *
catalog_pipeline_option_words(const CatalogPipeline *pipeline, const char *name)
{
	return pipeline->options == (Datum) 0 ? NIL : option_words(pipeline->options, name);
}

/* Options that say the opposite of each other. */
static void
check_together(Datum options)
{
	char	   *snapshot = option_text(&catalog_pipeline_options, options, "snapshot");
	char	   *existing = option_text(&catalog_pipeline_options, options, "on_existing");

	if (snapshot != NULL && strcmp(snapshot, "never") == 0 && existing != NULL &&
		(strcmp(existing, "truncate") == 0 || strcmp(existing, "replace") == 0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("options \"%s\" and \"%s\" do not go together", "snapshot", "on_existing"),
				 errdetail("With snapshot \"never\" the targets are taken as they are."),
				 errhint("Leave out \"on_existing\", or use snapshot \"schema_only\" to begin with empty tables.")));
}

/* On the way out TRUNCATE is a change like those of rows. */
static void
check_told_by_statements(const char *name, List *words)
{
	ListCell   *lc;

	foreach(lc, words)
	{
		if (strcmp(lfirst(lc), "truncate_table") == 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("option \"%s\" of an outgoing pipeline cannot have \"truncate_table\"", name),
					 errhint("Use option \"actions\", which says whether TRUNCATE is shipped.")));
	}
}

/* Words of schema_changes that say what becomes of a target's table: a sink of records has none. */
static void
refuse_modes_of_tables(const char *mode)
{
	if (mode == NULL || (strcmp(mode, "lenient") != 0 && strcmp(mode, "try_evolve") != 0))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("option \"schema_changes\" of an outgoing pipeline cannot be \"%s\"", mode),
			 errdetail("Its sink gets records, each with the columns that the table has at that place in the log. Nothing remembers for it columns that were dropped or renamed, or types that were wider."),
			 errhint("Use \"evolve\", and let the receiver keep what a schema change takes away; or \"exception\", to make the receiver fit before anything else of the table comes.")));
}

void
catalog_pipeline_options_check(const CatalogPipeline *pipeline)
{
	const UtilOptionTable *table = catalog_pipeline_option_table(pipeline);
	Datum		options = pipeline->options;
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
				 errhint("For example: options => '{\"%s\": 5000}'.",
						 pipeline->sink != NULL ? "flush_max_ms" : "snapshot_chunk_rows")));

	it = JsonbIteratorInit(&jsonb->root);
	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		char	   *name;
		char	   *text;

		if (token != WJB_KEY)
			continue;
		name = pnstrdup(value.val.string.val, value.val.string.len);
		(void) JsonbIteratorNext(&it, &value, true);
		text = value_to_text(util_option_find(table, name), &value);
		if (table == &catalog_export_options && strcmp(name, "schema_changes") == 0)
			refuse_modes_of_tables(text);
		(void) util_option_check(table, name, text);
	}
	if (table == &catalog_pipeline_options)
		check_together(options);
	else
	{
		check_told_by_statements("schema_changes_include", option_words(options, "schema_changes_include"));
		check_told_by_statements("schema_changes_exclude", option_words(options, "schema_changes_exclude"));
	}
	catalog_change_kinds_check("schema_changes_include", option_words(options, "schema_changes_include"));
	catalog_change_kinds_check("schema_changes_exclude", option_words(options, "schema_changes_exclude"));
}

char *
catalog_pipeline_option(const CatalogPipeline *pipeline, const char *name)
{
	return pipeline->options == (Datum) 0 ? NULL
		: option_text(catalog_pipeline_option_table(pipeline), pipeline->options, name);
}

CatalogOnError
catalog_pipeline_on_error(const CatalogPipeline *pipeline)
{
	const char *word = util_option_text(catalog_pipeline_option_table(pipeline), "on_error", catalog_pipeline_option(pipeline, "on_error"));
	int			i = 0;

	while (strcmp(catalog_on_error_words[i], word) != 0)
		i++;
	return (CatalogOnError) i;
}
