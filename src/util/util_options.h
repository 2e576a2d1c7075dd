/*-------------------------------------------------------------------------
 *
 * util_options.h
 *	  Descriptor tables for options of servers, user mappings and pipelines.
 *
 * NOTES
 *	  One table per owner of options is the single source of truth: it drives
 *	  validation, the "Valid options are" hint, defaults and cdc_list_options.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_UTIL_OPTIONS_H
#define CDC_UTIL_OPTIONS_H

#include "postgres.h"

typedef enum UtilOptionType
{
	UTIL_OPTION_BOOL,
	UTIL_OPTION_INT,			/* min and max are inclusive */
	UTIL_OPTION_TEXT,
	UTIL_OPTION_ENUM,			/* one of "values" */
	UTIL_OPTION_OBJECT,			/* text of a JSON object; who reads it checks its members */
	UTIL_OPTION_ARRAY			/* the same of a JSON array */
} UtilOptionType;

typedef struct UtilOption
{
	const char *name;
	UtilOptionType type;
	const char *default_text;	/* NULL: no default */
	int			min;
	int			max;
	const char *const *values;	/* ENUM: NULL-terminated */
	const char *unit;			/* "ms", "rows", ... or NULL */
	bool		superuser_only; /* names a file on the database server */
	bool		secret;			/* never printed */
	const char *description;	/* one line */
} UtilOption;

typedef struct UtilOptionTable
{
	const char *kind;			/* "server", "user mapping", "pipeline", "output plugin": the words of messages and cdc_list_options */
	const char *subject;		/* what has them: "cdc_mysql", "pipeline" */
	const UtilOption *options;
	int			count;
	const struct UtilOptionTable *base; /* its options too, which others share; NULL: no more */
} UtilOptionTable;

/* How many options there are, those of the base too, and the i-th of them. */
extern int	util_option_count(const UtilOptionTable *table);
extern const UtilOption *util_option_nth(const UtilOptionTable *table, int i);

/* The option of that name, or NULL. */
extern const UtilOption *util_option_find(const UtilOptionTable *table, const char *name);

/*
 * Check one option and its value; ereport(ERROR) with the valid names (nearest
 * first), the valid values or the range in the hint. Never prints a secret value.
 */
extern const UtilOption *util_option_check(const UtilOptionTable *table, const char *name, const char *value);

/* The name alone: throws when there is no such option. */
extern const UtilOption *util_option_name_check(const UtilOptionTable *table, const char *name);

/* Typed reading of a value that was checked; value NULL gives the default. */
extern bool util_option_bool(const UtilOptionTable *table, const char *name, const char *value);
extern int	util_option_int(const UtilOptionTable *table, const char *name, const char *value);
extern const char *util_option_text(const UtilOptionTable *table, const char *name, const char *value);

#endif							/* CDC_UTIL_OPTIONS_H */
