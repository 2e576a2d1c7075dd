/*-------------------------------------------------------------------------
 *
 * transform_json.c
 *	  Reading options that are arrays of objects.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

#include "transform/transform_json.h"
#include "util/util_pattern.h"

void
transform_json_throw(const char *option, int number, const char *detail, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid member %d of option \"%s\"", number, option),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
}

static _Noreturn void
throw_bad(const TransformJson *json, const char *detail, const char *hint)
{
	transform_json_throw(json->option, json->number, detail, hint);
}

/* Is a name one of "a, b, c"? */
static bool
is_known(const char *names, const JsonbValue *name)
{
	int			len = name->val.string.len;

	for (const char *p = names; p != NULL; p = strchr(p, ',') != NULL ? strchr(p, ',') + 2 : NULL)
	{
		if (strncmp(p, name->val.string.val, len) == 0 && (p[len] == ',' || p[len] == '\0'))
			return true;
	}
	return false;
}

static void
check_names(const TransformJson *json, const char *names)
{
	JsonbIterator *it = JsonbIteratorInit(json->object);
	JsonbIteratorToken token;
	JsonbValue	name;

	while ((token = JsonbIteratorNext(&it, &name, true)) != WJB_DONE)
	{
		if (token == WJB_KEY && !is_known(names, &name))
			throw_bad(json, psprintf("It has a member \"%s\", which means nothing.", pnstrdup(name.val.string.val, name.val.string.len)),
					  psprintf("Valid members are: %s.", names));
	}
}

List *
transform_json_read(const char *option, const char *json, const char *names, const char *example)
{
	List	   *result = NIL;
	Jsonb	   *array;

	if (json == NULL)
		return NIL;
	array = DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(json)));
	for (uint32 i = 0; i < JB_ROOT_COUNT(array); i++)
	{
		const JsonbValue *value = getIthJsonbValueFromContainer(&array->root, i);
		TransformJson *member = palloc0(sizeof(TransformJson));

		member->option = option;
		member->number = (int) i + 1;
		if (value->type != jbvBinary || !JsonContainerIsObject(value->val.binary.data))
			throw_bad(member, "It is not an object.", psprintf("For example: %s.", example));
		member->object = value->val.binary.data;
		check_names(member, names);
		result = lappend(result, member);
	}
	return result;
}

static JsonbValue *
find(const TransformJson *json, const char *name)
{
	return getKeyJsonValueFromContainer(json->object, name, (int) strlen(name), NULL);
}

char *
transform_json_text(const TransformJson *json, const char *name, const char *hint)
{
	const JsonbValue *value = find(json, name);

	if (value == NULL)
		return NULL;
	if (value->type != jbvString)
		throw_bad(json, psprintf("\"%s\" is not a text.", name), hint);
	return pnstrdup(value->val.string.val, value->val.string.len);
}

bool
transform_json_bool(const TransformJson *json, const char *name, const char *hint)
{
	const JsonbValue *value = find(json, name);

	if (value != NULL && value->type != jbvBool)
		throw_bad(json, psprintf("\"%s\" is neither true nor false.", name), hint);
	return value != NULL && value->val.boolean;
}

List *
transform_json_texts(const TransformJson *json, const char *name, bool or_text, const char *hint)
{
	const JsonbValue *value = find(json, name);
	List	   *result = NIL;
	bool		is_good;

	if (value == NULL)
		return NIL;
	if (or_text && value->type == jbvString)
		return list_make1(pnstrdup(value->val.string.val, value->val.string.len));
	is_good = value->type == jbvBinary && JsonContainerIsArray(value->val.binary.data);
	if (is_good && JsonContainerSize(value->val.binary.data) == 0)
		throw_bad(json, psprintf("\"%s\" is empty.", name), hint);
	for (uint32 i = 0; is_good && i < JsonContainerSize(value->val.binary.data); i++)
	{
		const JsonbValue *element = getIthJsonbValueFromContainer(value->val.binary.data, i);

		is_good = element->type == jbvString && element->val.string.len > 0;
		if (is_good)
			result = lappend(result, pnstrdup(element->val.string.val, element->val.string.len));
	}
	if (!is_good)
		throw_bad(json, psprintf(or_text ? "\"%s\" is neither a text nor an array of texts." : "\"%s\" is not an array of texts.", name), hint);
	return result;
}

List *
transform_json_patterns(const TransformJson *json, const char *name)
{
	List	   *patterns = transform_json_texts(json, name, true, "Give a pattern like \"shop.orders_*\", or several.");
	bool		any = false;
	ListCell   *lc;

	foreach(lc, patterns)
	{
		const char *pattern = lfirst(lc);

		if (!util_pattern_is_valid(pattern))
			throw_bad(json, psprintf("\"%s\" is not of the form schema.table.", pattern),
					  "* stands for any characters, ? for one; a pattern that begins with ! leaves tables out.");
		any |= pattern[0] != '!';
	}
	if (patterns != NIL && !any)
		throw_bad(json, "All its patterns leave tables out.", "Give one that takes some in, as \"*.*\".");
	return patterns;
}
