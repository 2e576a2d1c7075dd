/*-------------------------------------------------------------------------
 *
 * transform_rule.c
 *	  Option transforms: what the user wants to become of rows.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"

#include "catalog/catalog.h"
#include "transform/transform_parse.h"
#include "transform/transform_rule.h"
#include "util/util_pattern.h"

static _Noreturn void
throw_bad(int number, const char *detail, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid member %d of option \"%s\"", number, TRANSFORM_OPTION),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
}

static JsonbValue *
member(const JsonbValue *object, const char *name)
{
	return getKeyJsonValueFromContainer(object->val.binary.data, name, (int) strlen(name), NULL);
}

/* A string that is not empty; NULL when the member is not there. */
static char *
text_member(int number, const JsonbValue *object, const char *name)
{
	JsonbValue *value = member(object, name);

	if (value == NULL)
		return NULL;
	if (value->type != jbvString || value->val.string.len == 0)
		throw_bad(number, psprintf("Its \"%s\" is not a text.", name),
				  strcmp(name, "filter") == 0 ? "For example: \"filter\": \"status <> 'new'\"."
				  : strstr(name, "_column") != NULL ? "Give the name of a column."
				  : "For example: \"projection\": \"*, price * quantity AS total\".");
	return pnstrdup(value->val.string.val, value->val.string.len);
}

/* A string, or an array of strings, as a List of char *. */
static List *
texts_member(int number, const JsonbValue *object, const char *name, bool or_text)
{
	JsonbValue *value = member(object, name);
	List	   *result = NIL;
	uint32		count;

	if (value == NULL)
		return NIL;
	if (or_text && value->type == jbvString && value->val.string.len > 0)
		return list_make1(pnstrdup(value->val.string.val, value->val.string.len));
	count = value->type == jbvBinary && JsonContainerIsArray(value->val.binary.data)
		? JsonContainerSize(value->val.binary.data) : 0;
	for (uint32 i = 0; i < count; i++)
	{
		JsonbValue *element = getIthJsonbValueFromContainer(value->val.binary.data, i);

		if (element->type != jbvString || element->val.string.len == 0)
			count = 0;
		else
			result = lappend(result, pnstrdup(element->val.string.val, element->val.string.len));
	}
	if (count == 0)
		throw_bad(number, psprintf("Its \"%s\" is not an array of texts%s.", name, or_text ? ", nor one text" : ""),
				  or_text ? "For example: \"tables\": [\"shop.*\", \"!shop.log\"]." : "For example: \"key\": [\"id\", \"shard\"].");
	return result;
}

/* true or false; false when the member is not there. */
static bool
bool_member(int number, const JsonbValue *object, const char *name)
{
	JsonbValue *value = member(object, name);

	if (value != NULL && value->type != jbvBool)
		throw_bad(number, psprintf("Its \"%s\" is neither true nor false.", name), "Write it without quotes.");
	return value != NULL && value->val.boolean;
}

/* Names of members that mean nothing. */
static void
check_names(int number, const JsonbValue *object)
{
	static const char *const names[] = {"tables", "projection", "filter", "key", "partition_key", "target", "deleted_column",
	"deleted_at_column", "version_column", "soft_delete", "description"};
	JsonbIterator *it = JsonbIteratorInit(object->val.binary.data);
	JsonbIteratorToken token;
	JsonbValue	key;

	while ((token = JsonbIteratorNext(&it, &key, true)) != WJB_DONE)
	{
		bool		known = false;
		char	   *name;

		if (token != WJB_KEY)
			continue;
		name = pnstrdup(key.val.string.val, key.val.string.len);
		for (size_t i = 0; i < lengthof(names); i++)
			known |= strcmp(names[i], name) == 0;
		if (!known)
			throw_bad(number, psprintf("It has a member \"%s\", which means nothing.", name),
					  "Members are: tables, projection, filter, key, partition_key, target, deleted_column, deleted_at_column, version_column, soft_delete, description.");
	}
}

/* The kind of target, and what belongs to it. */
static void
read_kind(TransformRule *rule, const JsonbValue *object)
{
	JsonbValue *value = member(object, "target");
	const char *name = value == NULL ? "mirror"
		: value->type == jbvString ? pnstrdup(value->val.string.val, value->val.string.len) : "";

	rule->deleted_column = text_member(rule->number, object, "deleted_column");
	rule->deleted_at_column = text_member(rule->number, object, "deleted_at_column");
	rule->version_column = text_member(rule->number, object, "version_column");
	if (strcmp(name, "soft_delete") == 0)
		rule->kind = TRANSFORM_SOFT_DELETE;
	else if (strcmp(name, "append") == 0)
		rule->kind = TRANSFORM_APPEND;
	else if (strcmp(name, "last_writer") == 0)
		rule->kind = TRANSFORM_LAST_WRITER;
	else if (strcmp(name, "mirror") != 0)
		throw_bad(rule->number, "Its \"target\" is no kind of target.", "Valid values are: mirror, soft_delete, append, last_writer.");
	if (rule->kind != TRANSFORM_SOFT_DELETE && (rule->deleted_column != NULL || rule->deleted_at_column != NULL))
		throw_bad(rule->number, "It names a column for deleted rows, and deletes rows.", "Add \"target\": \"soft_delete\", or leave the name out.");
	if ((rule->kind == TRANSFORM_LAST_WRITER) != (rule->version_column != NULL))
		throw_bad(rule->number, rule->version_column != NULL ? "It names a \"version_column\", and looks at no version."
				  : "It does not say which column has the version that the last writer is known by.",
				  "\"target\": \"last_writer\" and \"version_column\" go together.");
	if (rule->kind == TRANSFORM_APPEND && rule->key != NIL)
		throw_bad(rule->number, "It has a \"key\", and its target has a row for each change: no key tells one from another.",
				  "Leave out \"key\".");
	if (rule->kind != TRANSFORM_SOFT_DELETE)
		return;
	if (rule->deleted_column == NULL)
		rule->deleted_column = pstrdup(TRANSFORM_DELETED);
	if (rule->deleted_at_column == NULL)
		rule->deleted_at_column = pstrdup(TRANSFORM_DELETED_AT);
	if (strlen(rule->deleted_column) >= NAMEDATALEN || strlen(rule->deleted_at_column) >= NAMEDATALEN ||
		strcmp(rule->deleted_column, rule->deleted_at_column) == 0)
		throw_bad(rule->number, "Its \"deleted_column\" and \"deleted_at_column\" are not two names of columns.",
				  psprintf("Give two names of less than %d bytes.", NAMEDATALEN));
}

static TransformRule *
read_rule(int number, const JsonbValue *value)
{
	TransformRule *rule = palloc0(sizeof(TransformRule));
	ListCell   *lc;

	if (value->type != jbvBinary || !JsonContainerIsObject(value->val.binary.data))
		throw_bad(number, "It is not an object.",
				  "For example: {\"tables\": \"shop.orders\", \"filter\": \"status <> 'new'\"}.");
	check_names(number, value);
	rule->number = number;
	rule->tables = texts_member(number, value, "tables", true);
	rule->projection = text_member(number, value, "projection");
	rule->filter = text_member(number, value, "filter");
	rule->key = texts_member(number, value, "key", false);
	rule->partition_key = texts_member(number, value, "partition_key", false);
	read_kind(rule, value);
	rule->soft_delete = bool_member(number, value, "soft_delete");
	(void) text_member(number, value, "description");	/* for people */
	if (rule->tables == NIL)
		throw_bad(number, "It does not say which tables it is for.",
				  "Give \"tables\": a pattern schema.table, or an array of them.");
	foreach(lc, rule->tables)
	{
		if (!util_pattern_is_valid(lfirst(lc)))
			throw_bad(number, psprintf("\"%s\" is not of the form schema.table.", (char *) lfirst(lc)),
					  "* stands for any characters, ? for one; a pattern that begins with ! leaves tables out.");
	}
	return rule;
}

List *
transform_rules_read(const char *json)
{
	List	   *result = NIL;
	Jsonb	   *jsonb;
	uint32		count;

	if (json == NULL)
		return NIL;
	jsonb = DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(json)));
	count = JB_ROOT_COUNT(jsonb);
	for (uint32 i = 0; i < count; i++)
		result = lappend(result, read_rule((int) i + 1, getIthJsonbValueFromContainer(&jsonb->root, i)));
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
			throw_bad(rule->number, "\"partition_key\" says where a sink puts a record, and this pipeline writes to tables.",
					  "Leave it out. A target that is partitioned routes its rows by itself.");
		if (rule->soft_delete && !is_outgoing)
			throw_bad(rule->number, "\"soft_delete\" says how deletes are shipped, and this pipeline writes to tables.",
					  "Say \"target\": \"soft_delete\" instead.");
		if (rule->kind != TRANSFORM_MIRROR && is_outgoing)
			throw_bad(rule->number, "\"target\" says how rows are written to tables, and this pipeline writes to none.",
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
