/*-------------------------------------------------------------------------
 *
 * transform_rule.c
 *	  Option transforms: what the user wants to become of rows.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/catalog.h"
#include "transform/transform_json.h"
#include "transform/transform_parse.h"
#include "transform/transform_rule.h"
#include "util/util_pattern.h"

#define MEMBERS \
	"tables, projection, filter, key, partition_key, target, deleted_column, deleted_at_column, version_column, part, soft_delete, description"

static _Noreturn void
throw_bad(const TransformRule *rule, const char *detail, const char *hint)
{
	transform_json_throw(TRANSFORM_OPTION, rule->number, detail, hint);
}

/* A text that is not empty. */
static char *
read_text(const TransformJson *json, const char *name, const char *hint)
{
	char	   *text = transform_json_text(json, name, hint);

	if (text != NULL && text[0] == '\0')
		transform_json_throw(TRANSFORM_OPTION, json->number, psprintf("\"%s\" is empty.", name), hint);
	return text;
}

/* The kind of target, and what belongs to it. */
static void
read_kind(TransformRule *rule, const TransformJson *json)
{
	static const char *const kinds = "Valid values are: mirror, soft_delete, append, last_writer, partial.";
	static const char *const column = "Give the name of a column.";
	const char *name = transform_json_text(json, "target", kinds);

	rule->deleted_column = read_text(json, "deleted_column", column);
	rule->deleted_at_column = read_text(json, "deleted_at_column", column);
	rule->version_column = read_text(json, "version_column", column);
	rule->part = read_text(json, "part", "Give the part a name.");
	if (name == NULL || strcmp(name, "mirror") == 0)
		rule->kind = TRANSFORM_MIRROR;
	else if (strcmp(name, "soft_delete") == 0)
		rule->kind = TRANSFORM_SOFT_DELETE;
	else if (strcmp(name, "append") == 0)
		rule->kind = TRANSFORM_APPEND;
	else if (strcmp(name, "last_writer") == 0)
		rule->kind = TRANSFORM_LAST_WRITER;
	else if (strcmp(name, "partial") == 0)
		rule->kind = TRANSFORM_PARTIAL;
	else
		throw_bad(rule, "Its \"target\" is no kind of target.", kinds);
	if (rule->kind != TRANSFORM_SOFT_DELETE && (rule->deleted_column != NULL || rule->deleted_at_column != NULL))
		throw_bad(rule, "It names a column for deleted rows, and deletes rows.", "Add \"target\": \"soft_delete\", or leave the name out.");
	if ((rule->kind == TRANSFORM_LAST_WRITER) != (rule->version_column != NULL))
		throw_bad(rule, rule->version_column != NULL ? "It names a \"version_column\", and looks at no version."
				  : "It does not say which column has the version that the last writer is known by.",
				  "\"target\": \"last_writer\" and \"version_column\" go together.");
	if (rule->kind != TRANSFORM_PARTIAL && rule->part != NULL)
		throw_bad(rule, "It names a \"part\" of rows, and its rows are whole.", "Add \"target\": \"partial\", or leave the name out.");
	if (rule->kind == TRANSFORM_APPEND && rule->key != NIL)
		throw_bad(rule, "It has a \"key\", and its target has a row for each change: no key tells one from another.",
				  "Leave out \"key\".");
	if (rule->kind != TRANSFORM_SOFT_DELETE)
		return;
	if (rule->deleted_column == NULL)
		rule->deleted_column = pstrdup(TRANSFORM_DELETED);
	if (rule->deleted_at_column == NULL)
		rule->deleted_at_column = pstrdup(TRANSFORM_DELETED_AT);
	if (strlen(rule->deleted_column) >= NAMEDATALEN || strlen(rule->deleted_at_column) >= NAMEDATALEN ||
		strcmp(rule->deleted_column, rule->deleted_at_column) == 0)
		throw_bad(rule, "Its \"deleted_column\" and \"deleted_at_column\" are not two names of columns.",
				  psprintf("Give two names of less than %d bytes.", NAMEDATALEN));
}

static TransformRule *
read_rule(const TransformJson *json)
{
	TransformRule *rule = palloc0(sizeof(TransformRule));

	rule->number = json->number;
	rule->tables = transform_json_patterns(json, "tables");
	rule->projection = read_text(json, "projection", "For example: \"projection\": \"*, price * quantity AS total\".");
	rule->filter = read_text(json, "filter", "For example: \"filter\": \"status <> 'new'\".");
	rule->key = transform_json_texts(json, "key", false, "For example: \"key\": [\"id\", \"shard\"].");
	rule->partition_key = transform_json_texts(json, "partition_key", false, "For example: \"partition_key\": [\"customer\"].");
	read_kind(rule, json);
	rule->soft_delete = transform_json_bool(json, "soft_delete", "Write it without quotes.");
	(void) transform_json_text(json, "description", "It is for people, who read a text.");
	if (rule->tables == NIL)
		throw_bad(rule, "It does not say which tables it is for.",
				  "Give \"tables\": a pattern schema.table, or an array of them.");
	return rule;
}

List *
transform_rules_read(const char *json)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, transform_json_read(TRANSFORM_OPTION, json, MEMBERS, "{\"tables\": \"shop.orders\", \"filter\": \"status <> 'new'\"}"))
		result = lappend(result, read_rule(lfirst(lc)));
	return result;
}

void
transform_rules_check(const char *json, bool is_outgoing)
{
	ListCell   *lc;

	foreach(lc, transform_rules_read(json))
	{
		const TransformRule *rule = lfirst(lc);

		(void) transform_parse_projection(rule);
		(void) transform_parse_filter(rule);
		if (rule->partition_key != NIL && !is_outgoing)
			throw_bad(rule, "\"partition_key\" says where a sink puts a record, and this pipeline writes to tables.",
					  "Leave it out. A target that is partitioned routes its rows by itself.");
		if (rule->soft_delete && !is_outgoing)
			throw_bad(rule, "\"soft_delete\" says how deletes are shipped, and this pipeline writes to tables.",
					  "Say \"target\": \"soft_delete\" instead.");
		if (rule->kind != TRANSFORM_MIRROR && is_outgoing)
			throw_bad(rule, "\"target\" says how rows are written to tables, and this pipeline writes to none.",
					  "Say \"soft_delete\": true instead.");
	}
}

const TransformRule *
transform_rule_find(List *rules, const char *schema, const char *name)
{
	ListCell   *lc;

	foreach(lc, rules)
	{
		const TransformRule *rule = lfirst(lc);

		if (util_patterns_match(rule->tables, schema, name, NULL))
			return rule;
	}
	return NULL;
}

void
transform_options_read(const struct CatalogPipeline *pipeline, SchemaTypeOptions *options)
{
	schema_options_read(pipeline, options);
	options->transforms = transform_rules_read(catalog_pipeline_option(pipeline, TRANSFORM_OPTION));
	options->server = pipeline->source != NULL ? pstrdup(pipeline->source) : "";
}
