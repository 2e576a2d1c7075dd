/*-------------------------------------------------------------------------
 *
 * transform_route.c
 *	  Option routes: which schema and table a source table goes to.
 *
 * NOTES
 *	  An array of objects; the first whose "source" (patterns, as in a pipeline's
 *	  list) or "source_regex" fits the table decides, and no later one is looked
 *	  at. What it does not say is as without routes: the pipeline's target schema,
 *	  else the source's names.
 *
 *	  In "schema" and "table" $1, $2, ... stand for what the wildcards, or the
 *	  groups of the regular expression, took; $schema and $table for the source's
 *	  names. "case" changes these, and not what is written beside them.
 *
 *	  A regular expression has to fit all of "schema.table". It is compiled each
 *	  time that it is asked (PostgreSQL keeps the compiled ones): tables are
 *	  looked up when they join, not for each row.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "regex/regex.h"
#include "utils/builtins.h"
#include "utils/formatting.h"

#include "transform/transform_json.h"
#include "transform/transform_route.h"
#include "util/util_name.h"
#include "util/util_pattern.h"

#define OPTION_NAME "routes"

typedef enum RouteCase
{
	CASE_KEEP,
	CASE_LOWER,
	CASE_UPPER
} RouteCase;

typedef struct Route
{
	int			number;			/* 1, 2, ... as they stand */
	List	   *patterns;		/* of char *; NIL: by regular expression */
	char	   *regex;			/* as given */
	text	   *compiled;		/* for the whole of "schema.table" */
	int			ngroups;		/* that each way to fit has */
	char	   *schema;			/* templates; NULL: as without routes */
	char	   *table;
	RouteCase	name_case;
	char	   *prefix;			/* of the table's name */
	char	   *suffix;
	bool		merge;			/* several tables may go to one target */
} Route;

struct TransformRoutes
{
	char	   *target_schema;	/* of the pipeline; NULL: the source's */
	List	   *routes;			/* of Route */
};

/* What a name gave to a route that fits. */
typedef struct Fit
{
	const char *source_schema;
	const char *source_table;
	char	   *groups[UTIL_PATTERN_CAPTURES];	/* NULL: the group took no part */
} Fit;

/* ----------------------------------------------------------------- reading */

#define MEMBERS "source, source_regex, schema, table, case, prefix, suffix, merge"
#define EXAMPLE "{\"source\": \"shop_*.orders_*\", \"schema\": \"shop\", \"table\": \"orders\"}"

static _Noreturn void
throw_bad(int number, const char *detail, const char *hint)
{
	transform_json_throw(OPTION_NAME, number, detail, hint);
}

static char *
read_text(const TransformJson *json, const char *name)
{
	return transform_json_text(json, name, "For example: " EXAMPLE ".");
}

/* What routes want of their patterns beyond their form. */
static void
check_pattern(Route *route, const char *pattern)
{
	const char *positive = pattern[0] == '!' ? pattern + 1 : pattern;
	Size		len = strlen(pattern);

	/* the source has no such names */
	if (pattern[len - 1] == ' ' && !(len > 1 && pattern[len - 2] == '\\'))
		throw_bad(route->number, psprintf("\"%s\" ends with a space, so no table fits it.", pattern),
				  "Leave the space out.");
	if (util_pattern_wildcards(positive) > UTIL_PATTERN_CAPTURES)
		throw_bad(route->number, psprintf("\"%s\" has more than %d wildcards.", pattern, UTIL_PATTERN_CAPTURES),
				  "Write several routes.");
	if (positive == pattern)
		route->ngroups = Min(route->ngroups, util_pattern_wildcards(positive));
}

/* Compile a regular expression for all of a name; options in front of it, as (?i), stay in front. */
static text *
compile_regex(const char *regex, int *ngroups)
{
	const char *rest = regex;
	text	   *whole;

	if (strncmp(rest, "(?i)", 4) == 0 || strncmp(rest, "(?c)", 4) == 0)
		rest += 4;
	whole = cstring_to_text(psprintf("%.*s^(?:%s)$", (int) (rest - regex), regex, rest));
	*ngroups = (int) RE_compile_and_cache(whole, REG_ADVANCED, DEFAULT_COLLATION_OID)->re_nsub;
	return whole;
}

static void
read_regex(Route *route, const TransformJson *json)
{
	MemoryContext cxt = CurrentMemoryContext;

	route->regex = read_text(json, "source_regex");
	if (route->regex == NULL)
		return;
	PG_TRY();
	{
		route->compiled = compile_regex(route->regex, &route->ngroups);
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(cxt);
		edata = CopyErrorData();
		if (edata->sqlerrcode != ERRCODE_INVALID_REGULAR_EXPRESSION)
			PG_RE_THROW();
		FlushErrorState();
		throw_bad(route->number, psprintf("\"%s\": %s.", route->regex, edata->message),
				  "It is a regular expression of PostgreSQL for the whole of schema.table, like \"shop_([0-9]+)\\\\.orders\" in JSON.");
	}
	PG_END_TRY();
	if (route->ngroups >= UTIL_PATTERN_CAPTURES)
		throw_bad(route->number, psprintf("\"%s\" has more than %d groups.", route->regex, UTIL_PATTERN_CAPTURES - 1),
				  "Write groups that are not needed as (?:...).");
}

static RouteCase
read_case(const Route *route, const TransformJson *json)
{
	char	   *word = read_text(json, "case");

	if (word == NULL || strcmp(word, "keep") == 0)
		return CASE_KEEP;
	if (strcmp(word, "lower") == 0)
		return CASE_LOWER;
	if (strcmp(word, "upper") == 0)
		return CASE_UPPER;
	throw_bad(route->number, psprintf("\"case\" is \"%s\".", word), "Valid values are: keep, lower, upper.");
}

/* What a '$' in a template stands for. */
typedef struct Reference
{
	int			group;			/* 1, 2, ...; 0: none of them */
	bool		is_schema;
	bool		is_table;
	bool		is_dollar;
} Reference;

/* Read what stands behind a '$'; returns what comes after it, or NULL when it means nothing. */
static const char *
read_reference(const char *p, Reference *reference)
{
	bool		has_brace = *p == '{';
	const char *start;

	memset(reference, 0, sizeof(*reference));
	if (*p == '$')
	{
		reference->is_dollar = true;
		return p + 1;
	}
	start = p += has_brace ? 1 : 0;
	if (strncmp(p, "schema", 6) == 0)
	{
		reference->is_schema = true;
		p += 6;
	}
	else if (strncmp(p, "table", 5) == 0)
	{
		reference->is_table = true;
		p += 5;
	}
	else
	{
		while (*p >= '0' && *p <= '9' && reference->group <= UTIL_PATTERN_CAPTURES)
			reference->group = reference->group * 10 + (*p++ - '0');
		if (p == start || reference->group == 0)
			return NULL;
	}
	if (!has_brace)
		return p;
	return *p == '}' ? p + 1 : NULL;
}

static void
check_template(const Route *route, const char *name, const char *template)
{
	if (template == NULL)
		return;
	if (template[0] == '\0')
		throw_bad(route->number, psprintf("\"%s\" is empty.", name), "Leave it out for the name that the table has without a route.");
	for (const char *p = template; (p = strchr(p, '$')) != NULL;)
	{
		Reference	reference;
		const char *after = read_reference(p + 1, &reference);

		if (after == NULL)
			throw_bad(route->number, psprintf("In \"%s\", \"%s\" stands for nothing.", template, p),
					  "Write $1, $2, ... (or ${1}, before a digit), $schema or $table; $$ for a dollar sign.");
		if (reference.group > route->ngroups)
			throw_bad(route->number,
					  psprintf("\"%s\" has $%d, and \"%s\" has %d.", template, reference.group,
							   route->patterns != NIL ? "source" : "source_regex", route->ngroups),
					  route->patterns != NIL ? "Each wildcard of the pattern counts, from the left; where there are several patterns, the one with the fewest."
					  : "Each group in parentheses counts, but not (?:...).");
		p = after;
	}
}

static void
check_route(Route *route)
{
	ListCell   *lc;

	if ((route->patterns != NIL) == (route->compiled != NULL))
		throw_bad(route->number,
				  route->compiled != NULL ? "It has both \"source\" and \"source_regex\"." : "It has neither \"source\" nor \"source_regex\".",
				  "One of them says which tables it is for.");
	foreach(lc, route->patterns)
		check_pattern(route, lfirst(lc));
	check_template(route, "schema", route->schema);
	check_template(route, "table", route->table);
}

static Route *
read_route(const TransformJson *json)
{
	Route	   *route = palloc0(sizeof(Route));

	route->number = json->number;
	route->ngroups = UTIL_PATTERN_CAPTURES;
	route->patterns = transform_json_patterns(json, "source");
	read_regex(route, json);
	route->schema = read_text(json, "schema");
	route->table = read_text(json, "table");
	route->name_case = read_case(route, json);
	route->prefix = read_text(json, "prefix");
	route->suffix = read_text(json, "suffix");
	route->merge = transform_json_bool(json, "merge", "With \"merge\": true several source tables may go to the same target.");
	check_route(route);
	return route;
}

TransformRoutes *
transform_routes_parse(const char *json, const char *target_schema)
{
	TransformRoutes *routes = palloc0(sizeof(TransformRoutes));
	ListCell   *lc;

	routes->target_schema = target_schema != NULL ? pstrdup(target_schema) : NULL;
	foreach(lc, transform_json_read(OPTION_NAME, json, MEMBERS, EXAMPLE))
		routes->routes = lappend(routes->routes, read_route(lfirst(lc)));
	return routes;
}

TransformRoutes *
transform_routes_read(const CatalogPipeline *pipeline)
{
	return transform_routes_parse(catalog_pipeline_option(pipeline, OPTION_NAME), pipeline->target_schema);
}

bool
transform_has_routes(const TransformRoutes *routes)
{
	return routes->routes != NIL;
}

List *
transform_route_schemas(const TransformRoutes *routes)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, routes->routes)
	{
		const Route *route = lfirst(lc);

		if (route->schema != NULL && strchr(route->schema, '$') == NULL)
			result = lappend(result, route->schema);
	}
	return result;
}

/* ------------------------------------------------------------------- using */

/* The text of a group, which the regular expression tells in characters. */
static char *
group_text(const pg_wchar *wide, const regmatch_t *match)
{
	int			length = (int) (match->rm_eo - match->rm_so);
	char	   *result;

	if (match->rm_so < 0)
		return NULL;
	result = palloc(length * MAX_MULTIBYTE_CHAR_LEN + 1);
	(void) pg_wchar2mb_with_len(wide + match->rm_so, result, length);
	return result;
}

static bool
fits_regex(const Route *route, Fit *fit)
{
	char	   *name = psprintf("%s.%s", fit->source_schema, fit->source_table);
	int			bytes = (int) strlen(name);
	pg_wchar   *wide = palloc((bytes + 1) * sizeof(pg_wchar));
	int			length = pg_mb2wchar_with_len(name, wide, bytes);
	regmatch_t	matches[UTIL_PATTERN_CAPTURES];
	regex_t    *re = RE_compile_and_cache(route->compiled, REG_ADVANCED, DEFAULT_COLLATION_OID);
	int			result = pg_regexec(re, wide, length, 0, NULL, route->ngroups + 1, matches, 0);

	if (result == REG_NOMATCH)
		return false;
	if (result != REG_OKAY)
	{
		char		message[100];

		pg_regerror(result, re, message, sizeof(message));
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_REGULAR_EXPRESSION),
				 errmsg("regular expression failed: %s", message),
				 errdetail("It is \"%s\", in member %d of option \"%s\".", route->regex, route->number, OPTION_NAME)));
	}
	for (int i = 1; i <= route->ngroups; i++)
		fit->groups[i - 1] = group_text(wide, &matches[i]);
	return true;
}

static bool
fits_patterns(const Route *route, Fit *fit)
{
	ListCell   *lc;

	if (!util_patterns_match(route->patterns, fit->source_schema, fit->source_table, NULL))
		return false;
	foreach(lc, route->patterns)
	{
		const char *pattern = lfirst(lc);
		UtilPatternCaptures captures;

		if (pattern[0] == '!' || !util_pattern_capture(pattern, fit->source_schema, fit->source_table, &captures))
			continue;
		for (int i = 0; i < captures.count && i < UTIL_PATTERN_CAPTURES; i++)
			fit->groups[i] = pnstrdup(captures.starts[i], captures.lengths[i]);
		return true;
	}
	return false;
}

/* Add a part of the source's names, in the route's case. */
static void
append_source_name(StringInfo out, const Route *route, const char *name)
{
	size_t		len = name != NULL ? strlen(name) : 0;

	if (len == 0)
		return;
	switch (route->name_case)
	{
		case CASE_KEEP:
			appendStringInfoString(out, name);
			break;
		case CASE_LOWER:
			appendStringInfoString(out, str_tolower(name, len, DEFAULT_COLLATION_OID));
			break;
		case CASE_UPPER:
			appendStringInfoString(out, str_toupper(name, len, DEFAULT_COLLATION_OID));
			break;
	}
}

static void
append_template(StringInfo out, const Route *route, const Fit *fit, const char *template)
{
	for (const char *p = template; *p != '\0';)
	{
		Reference	reference;

		if (*p != '$')
		{
			appendStringInfoChar(out, *p++);
			continue;
		}
		p = read_reference(p + 1, &reference);
		Assert(p != NULL);		/* check_template */
		if (reference.is_dollar)
			appendStringInfoChar(out, '$');
		else
			append_source_name(out, route, reference.is_schema ? fit->source_schema
							   : reference.is_table ? fit->source_table : fit->groups[reference.group - 1]);
	}
}

static char *
cut(char *name, bool *is_cut)
{
	if (!util_name_is_long(name))
		return name;
	*is_cut = true;
	return util_name_with_hash(name, name);
}

static void
apply_route(const TransformRoutes *routes, const Route *route, const Fit *fit, char **schema, char **table)
{
	StringInfoData buf;

	initStringInfo(&buf);
	if (route->schema != NULL)
		append_template(&buf, route, fit, route->schema);
	else if (routes->target_schema != NULL)
		appendStringInfoString(&buf, routes->target_schema);
	else
		append_source_name(&buf, route, fit->source_schema);
	*schema = buf.data;

	initStringInfo(&buf);
	if (route->prefix != NULL)
		appendStringInfoString(&buf, route->prefix);
	if (route->table != NULL)
		append_template(&buf, route, fit, route->table);
	else
		append_source_name(&buf, route, fit->source_table);
	if (route->suffix != NULL)
		appendStringInfoString(&buf, route->suffix);
	*table = buf.data;
}

/* The first that fits; NULL: none. */
static const Route *
find_route(const TransformRoutes *routes, Fit *fit)
{
	ListCell   *lc;

	foreach(lc, routes->routes)
	{
		const Route *route = lfirst(lc);

		if (route->compiled != NULL ? fits_regex(route, fit) : fits_patterns(route, fit))
			return route;
	}
	return NULL;
}

bool
transform_route_merges(const TransformRoutes *routes, const char *source_schema, const char *source_table)
{
	Fit			fit = {.source_schema = source_schema,.source_table = source_table};
	const Route *route = find_route(routes, &fit);

	return route != NULL && route->merge;
}

bool
transform_route_target(const TransformRoutes *routes, const char *source_schema, const char *source_table,
					   char **target_schema, char **target_table, bool *is_cut)
{
	Fit			fit = {.source_schema = source_schema,.source_table = source_table};
	const Route *route;
	bool		ignored;

	if (is_cut == NULL)
		is_cut = &ignored;
	*is_cut = false;
	*target_schema = pstrdup(routes->target_schema != NULL ? routes->target_schema : source_schema);
	*target_table = pstrdup(source_table);
	route = find_route(routes, &fit);
	if (route != NULL)
		apply_route(routes, route, &fit, target_schema, target_table);
	*target_schema = cut(*target_schema, is_cut);
	*target_table = cut(*target_table, is_cut);
	return (*target_schema)[0] != '\0' && (*target_table)[0] != '\0' &&
		strcmp(*target_schema, "cdc_bridge") != 0 && strcmp(*target_schema, "information_schema") != 0 &&
		strncmp(*target_schema, "pg_", 3) != 0;
}
