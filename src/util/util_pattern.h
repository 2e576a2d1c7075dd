/*-------------------------------------------------------------------------
 *
 * util_pattern.h
 *	  Patterns of table names: which tables a pipeline or a client wants.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_UTIL_PATTERN_H
#define CDC_UTIL_PATTERN_H

#include "postgres.h"

#include "nodes/pg_list.h"

/*
 * Does "schema.name" fit the pattern? '*' is any run of characters and '?' one
 * character of the same part, a backslash takes the next one as it is.
 */
extern bool util_pattern_match(const char *pattern, const char *schema, const char *name);

/* What wildcards took, in the order in which they stand; pointers into the names. */
#define UTIL_PATTERN_CAPTURES 32

typedef struct UtilPatternCaptures
{
	int			count;
	const char *starts[UTIL_PATTERN_CAPTURES];
	size_t		lengths[UTIL_PATTERN_CAPTURES];
} UtilPatternCaptures;

/*
 * The same, and what each wildcard took: '?' its character, '*' as little as lets what stands behind it fit. The pattern has at
 * most UTIL_PATTERN_CAPTURES wildcards (util_pattern_wildcards tells).
 */
extern bool util_pattern_capture(const char *pattern, const char *schema, const char *name, UtilPatternCaptures *captures);
extern int	util_pattern_wildcards(const char *pattern);

/*
 * Does a list of patterns mean that table? One of the patterns fits it, and none of those that begin with '!'
 * (and leave tables out). excluded_by, when not NULL, gets the pattern that left it out, or NULL.
 */
extern bool util_patterns_match(List *patterns, const char *schema, const char *name, const char **excluded_by);

/* Does one of the patterns mean that table, and name it without a wildcard? */
extern bool util_patterns_name(List *patterns, const char *schema, const char *name);

/*
 * The two parts of a pattern without their backslashes, palloc'd: the names that it means. Each is NULL when it has
 * wildcards, or is not there.
 */
extern void util_pattern_names(const char *pattern, char **schema, char **name);

/* Has it the form schema.table, with or without the '!' of patterns that leave tables out? */
extern bool util_pattern_is_valid(const char *pattern);

#endif							/* CDC_UTIL_PATTERN_H */
