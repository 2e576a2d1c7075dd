/*-------------------------------------------------------------------------
 *
 * schema_evolve_private.h
 *	  What the files that plan a change of shape share: schema_evolve.c (names, key,
 *	  order) and schema_evolve_column.c (what a column holds).
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SCHEMA_EVOLVE_PRIVATE_H
#define CDC_SCHEMA_EVOLVE_PRIVATE_H

#include "postgres.h"
#include "catalog/pg_attribute.h"
#include "utils/builtins.h"

#include "schema/evolve.h"
#include "schema/schema_private.h"

typedef struct SchemaPlanner
{
	SchemaEvolve *evolve;
	SchemaPlan *plan;
	const char *target;			/* quoted and qualified */
	const char *alter;			/* "ALTER TABLE s.t" */
	bool		can_alter;		/* false: a view */
	bool		has_key;		/* a primary key of its own: no view, no foreign table */
	bool		key_changes;
	Form_pg_attribute *att;		/* per column of "after": the target's column, as it is before the plan; NULL: none */
	bool	   *is_renamed;		/* its rows are those of a column that keeps its old name (LENIENT) */
	bool	   *is_retyped;		/* its default was taken off because of another type */
} SchemaPlanner;

#define HINT_BY_HAND "Alter the target as the source was, then use cdc_resync_table()."

static inline CatalogChangeMode
mode_of(const SchemaPlanner *p, CatalogChangeKind kind)
{
	return catalog_change_mode(p->evolve->rules, kind);
}

static inline char *
quoted(const char *source_name)
{
	return pstrdup(quote_identifier(schema_column_name(source_name)));
}

/* ---- schema_evolve.c ---- */

/* One step more; column: in "after", or -1. And: one command more of a step. */
extern SchemaStep *schema_plan_step(SchemaPlanner *p, CatalogChangeKind kind, int column);
extern void schema_plan_command(SchemaStep *step, const char *fmt, ...) pg_attribute_printf(2, 3);

/* The change cannot be followed; the table stops. column: of the source, or NULL. */
extern _Noreturn void schema_plan_refuse(const SchemaPlanner *p, const char *column, const char *detail, const char *hint);

/* The target's column for a source column of that name; NULL when there is none. */
extern Form_pg_attribute schema_plan_attribute(const SchemaPlanner *p, const char *source_name);

/* Does the target have a column of that name that stays? */
extern bool schema_plan_is_in_the_way(const SchemaPlanner *p, const char *source_name);

/* Commands for a column that stays without the source's: rows to come have NULL there. */
extern List *schema_plan_keep(const SchemaPlanner *p, Form_pg_attribute att);

/* ---- schema_evolve_column.c ---- */

/* The type that a column of the target gets, as SQL; throws when there is none. */
extern char *schema_plan_type(const SchemaPlanner *p, const CdcTableDef *def, const CdcColumnDef *column);

/* Column i of "after": another type; it comes; NOT NULL comes or goes; its default (not differs: only its type became another one). */
extern void schema_plan_alter_type(SchemaPlanner *p, int i);
extern void schema_plan_add_column(SchemaPlanner *p, int i);
extern void schema_plan_nullability(SchemaPlanner *p, int i);
extern void schema_plan_default(SchemaPlanner *p, int i, bool differs);

#endif							/* CDC_SCHEMA_EVOLVE_PRIVATE_H */
