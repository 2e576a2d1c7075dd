/*-------------------------------------------------------------------------
 *
 * transform_rule.h
 *	  Option transforms: what the user wants to become of rows.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_TRANSFORM_RULE_H
#define CDC_TRANSFORM_RULE_H

#include "postgres.h"
#include "nodes/pg_list.h"

#include "schema/type_map.h"

#define TRANSFORM_OPTION "transforms"

/* What kind of target a table's rows go into. */
typedef enum TransformKind
{
	TRANSFORM_MIRROR,			/* has the rows that the source has */
	TRANSFORM_SOFT_DELETE,		/* keeps those that the source deletes, with a mark */
	TRANSFORM_APPEND,			/* has a row for each change */
	TRANSFORM_LAST_WRITER,		/* has the row of the higher version, the source's or another one */
	TRANSFORM_PARTIAL			/* has rows of which each of several source tables fills its own columns */
} TransformKind;

/* What the columns are called that tell a deleted row, incoming and outgoing, unless the rule says otherwise. */
#define TRANSFORM_DELETED "cdc_deleted"
#define TRANSFORM_DELETED_AT "cdc_deleted_at"

/* The column that says which source tables have a part of a row. */
#define TRANSFORM_PARTS "cdc_parts"

/* One member of the option. Strings are in the database's encoding. */
typedef struct TransformRule
{
	int			number;			/* its place in the option, from 1 */
	List	   *tables;			/* patterns, List of char * */
	char	   *projection;		/* as in SELECT; NULL: all columns */
	char	   *filter;			/* as in WHERE; NULL: all rows */
	List	   *key;			/* names of the target's columns; NIL: the source's key */
	List	   *partition_key;	/* outgoing: names of columns that say where a sink puts a record; NIL: the key does */
	TransformKind kind;			/* incoming */
	char	   *deleted_column; /* of a soft delete */
	char	   *deleted_at_column;
	char	   *version_column; /* of the last writer */
	char	   *part;			/* of partial rows: what the table's part is called; NULL: as the table */
	bool		soft_delete;	/* outgoing: a deleted row is shipped as one that has a mark */
} TransformRule;

/*
 * The option's text (NULL: not given) -> List of TransformRule, in CurrentMemoryContext. Throws at the first member that
 * is not of the right form; needs no transaction.
 */
extern List *transform_rules_read(const char *json);

/* The same, for who gives the option: looks at the syntax of projections and filters too. */
extern void transform_rules_check(const char *json, bool is_outgoing);

/* The first that means that table; NULL when none does. */
extern const TransformRule *transform_rule_find(List *rules, const char *schema, const char *name);

struct CatalogPipeline;

/* The options of a pipeline that concern types, values and rows. */
extern void transform_options_read(const struct CatalogPipeline *pipeline, SchemaTypeOptions *options);

#endif							/* CDC_TRANSFORM_RULE_H */
