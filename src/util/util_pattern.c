/*-------------------------------------------------------------------------
 *
 * util_pattern.c
 *	  Patterns of table names: which tables a pipeline or a client wants.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "util/util_pattern.h"

/* Length of the character at p, several bytes in UTF-8. */
static size_t
character_length(const char *p)
{
	size_t		len = 1;

	while (((unsigned char) p[len] & 0xC0) == 0x80)
		len++;
	return len;
}

static void
note_capture(UtilPatternCaptures *captures, int number, const char *start, size_t length)
{
	if (captures == NULL || number >= UTIL_PATTERN_CAPTURES)
		return;
	captures->starts[number] = start;
	captures->lengths[number] = length;
}

/*
 * One part of a pattern (up to end) against a whole name. After a mismatch only
 * the last '*' has to take more, so the time is bounded by the product of both
 * lengths. What each wildcard took is added to captures, when that is not NULL.
 */
static bool
match_part(const char *pattern, const char *end, const char *name, UtilPatternCaptures *captures)
{
	const char *star = NULL;	/* behind the last '*' */
	const char *star_name = NULL;	/* what it has left for the rest */
	int			star_number = 0;	/* of its capture */
	int			number = captures != NULL ? captures->count : 0;

	for (;;)
	{
		if (pattern < end && *pattern == '*')
		{
			star = ++pattern;
			star_name = name;
			star_number = number;
			note_capture(captures, number++, name, 0);
			continue;
		}
		if (*name == '\0' && pattern == end)
		{
			if (captures != NULL)
				captures->count = number;
			return true;
		}
		if (*name != '\0' && pattern < end)
		{
			if (*pattern == '?')
			{
				note_capture(captures, number++, name, character_length(name));
				pattern++;
				name += character_length(name);
				continue;
			}
			if (*pattern == '\\' && pattern + 1 < end && pattern[1] == *name)
			{
				pattern += 2;
				name++;
				continue;
			}
			if (*pattern != '\\' && *pattern == *name)
			{
				pattern++;
				name++;
				continue;
			}
		}
		if (star == NULL || *star_name == '\0')
			return false;
		if (captures != NULL && star_number < UTIL_PATTERN_CAPTURES)
			captures->lengths[star_number] += character_length(star_name);
		star_name += character_length(star_name);
		pattern = star;
		name = star_name;
		number = star_number + 1;
	}
}

/* The dot between schema and table, or the end. */
static const char *
dot_of(const char *pattern)
{
	while (*pattern != '\0' && *pattern != '.')
	{
		if (*pattern == '\\' && pattern[1] != '\0')
			pattern++;
		pattern++;
	}
	return pattern;
}

/*
 * Does "schema.table" fit the pattern? '*' is any run of characters and '?' one
 * character of the same part, a backslash takes the next one as it is. Case
 * counts. A pattern without a dot fits nothing.
 */
bool
util_pattern_match(const char *pattern, const char *schema, const char *name)
{
	const char *dot = dot_of(pattern);

	if (*dot == '\0')
		return false;
	return match_part(pattern, dot, schema, NULL) && match_part(dot + 1, dot + 1 + strlen(dot + 1), name, NULL);
}

bool
util_pattern_capture(const char *pattern, const char *schema, const char *name, UtilPatternCaptures *captures)
{
	const char *dot = dot_of(pattern);

	captures->count = 0;
	if (*dot == '\0')
		return false;
	return match_part(pattern, dot, schema, captures) &&
		match_part(dot + 1, dot + 1 + strlen(dot + 1), name, captures);
}

int
util_pattern_wildcards(const char *pattern)
{
	int			count = 0;

	for (; *pattern != '\0'; pattern++)
	{
		if (*pattern == '\\' && pattern[1] != '\0')
			pattern++;
		else if (*pattern == '*' || *pattern == '?')
			count++;
	}
	return count;
}

/* One part of a pattern (up to end) without its backslashes; NULL when it has wildcards. */
static char *
part_name(const char *pattern, const char *end)
{
	StringInfoData buf;

	initStringInfo(&buf);
	for (; pattern < end; pattern++)
	{
		if (*pattern == '*' || *pattern == '?')
			return NULL;
		if (*pattern == '\\' && pattern + 1 < end)
			pattern++;
		appendStringInfoChar(&buf, *pattern);
	}
	return buf.data;
}

void
util_pattern_names(const char *pattern, char **schema, char **name)
{
	const char *dot = dot_of(pattern);

	*schema = part_name(pattern, dot);
	*name = *dot == '.' ? part_name(dot + 1, dot + strlen(dot)) : NULL;
}

/*
 * May it stand in a list of patterns? It has both parts, behind a '!' that leaves tables out.
 */
bool
util_pattern_is_valid(const char *pattern)
{
	const char *dot;

	if (*pattern == '!')
		pattern++;
	dot = dot_of(pattern);
	return dot > pattern && dot[0] == '.' && dot[1] != '\0';
}

bool
util_patterns_match(List *patterns, const char *schema, const char *name, const char **excluded_by)
{
	bool		matches = false;
	ListCell   *lc;

	if (excluded_by != NULL)
		*excluded_by = NULL;
	foreach(lc, patterns)
	{
		const char *pattern = lfirst(lc);

		if (pattern[0] != '!')
			matches |= util_pattern_match(pattern, schema, name);
		else if (util_pattern_match(pattern + 1, schema, name))
		{
			if (excluded_by != NULL)
				*excluded_by = pattern;
			return false;
		}
	}
	return matches;
}

bool
util_patterns_name(List *patterns, const char *schema, const char *name)
{
	ListCell   *lc;

	foreach(lc, patterns)
	{
		const char *pattern = lfirst(lc);
		char	   *schema_named;
		char	   *named;

		if (pattern[0] == '!')
			continue;
		util_pattern_names(pattern, &schema_named, &named);
		if (named != NULL && strcmp(named, name) == 0 && util_pattern_match(pattern, schema, name))
			return true;
	}
	return false;
}
