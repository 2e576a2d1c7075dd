/*-------------------------------------------------------------------------
 *
 * flink.h
 *	  Pipelines of Flink CDC, as their YAML files define them: what of them has a
 *	  counterpart here, and the statements that make it.
 *
 * NOTES
 *	  flink_yaml.c reads the text into a tree, the only file that sees libyaml;
 *	  flink_pattern.c and flink_expression.c translate names of tables and SQL
 *	  expressions; flink_import.c goes through the sections. Nothing is looked up or
 *	  changed anywhere: text in, rows out.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_FLINK_H
#define CDC_FLINK_H

#include "postgres.h"
#include "lib/stringinfo.h"
#include "nodes/pg_list.h"

/* ---- flink_yaml.c ---- */

typedef enum FlinkNodeKind
{
	FLINK_SCALAR,
	FLINK_LIST,
	FLINK_MAP
} FlinkNodeKind;

typedef struct FlinkNode
{
	FlinkNodeKind kind;
	int			line;			/* 1, 2, ... */
	char	   *text;			/* SCALAR */
	bool		is_null;		/* SCALAR: plain and empty, "null" or "~" */
	List	   *keys;			/* MAP: of char *, each once */
	List	   *items;			/* MAP and LIST: of FlinkNode */
} FlinkNode;

/*
 * Read a text that is one document, a mapping. Throws for what is no YAML, for aliases, for the same key twice, and for what
 * is too large or too deep.
 */
extern FlinkNode *flink_read_yaml(const char *text);

/* Value of a key; NULL when there is none. */
extern const FlinkNode *flink_member(const FlinkNode *map, const char *key);

/* ---- flink_pattern.c ---- */

typedef struct FlinkPattern
{
	char	   *text;			/* as given */
	char	   *glob;			/* our pattern for it, "schema.table" */
	bool		is_exact;		/* it fits the same tables, not more */
	char	   *regex;			/* the regular expression over "schema.table" */
} FlinkPattern;

/* Patterns of a list that commas separate, List of FlinkPattern; throws for one that is no "database.table". */
extern List *flink_patterns(const char *text, int line);

/* ---- flink_expression.c ---- */

/*
 * A projection or filter in PostgreSQL's words. Adds to *unsure what may mean something else there, or nothing at all (List of
 * char *, each once).
 */
extern char *flink_expression(const char *text, List **unsure);

/* ---- flink_import.c ---- */

typedef enum FlinkStatus
{
	FLINK_TRANSLATED,			/* means the same here */
	FLINK_DIFFERS,				/* has a counterpart that is not quite the same: the detail says how */
	FLINK_NONE					/* has none */
} FlinkStatus;

typedef struct FlinkItem
{
	const char *kind;			/* "source", "sink", "transform", "route", "pipeline"; "script": a statement */
	char	   *item;
	FlinkStatus status;
	char	   *detail;
	char	   *sql;			/* NULL: none */
} FlinkItem;

extern const char *flink_status_name(FlinkStatus status);

/* Translate a pipeline: items in the order of the text, then the statements. name, schema may be NULL. */
extern List *flink_import(const char *yaml, const char *name, const char *target_schema);

#endif							/* CDC_FLINK_H */
