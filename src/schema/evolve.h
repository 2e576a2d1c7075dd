/*-------------------------------------------------------------------------
 *
 * evolve.h
 *	  A source table changes its shape: what the target has to do.
 *
 * NOTES
 *	  Two halves. schema_evolve_plan compares two definitions of a source table
 *	  and looks at the target as it is; it makes a list of steps and runs nothing.
 *	  schema_evolve_run carries them out, in the caller's transaction.
 *
 *	  A statement of the source changes the rows that are there without row
 *	  events. So a step has to do to the target's rows what the server did to its
 *	  own. Where that cannot be told exactly, the step brings the target into
 *	  shape and says that the rows have to be copied anew ("copy").
 *
 *	  What cannot be followed throws; the caller undoes its transaction and stops
 *	  the table.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SCHEMA_EVOLVE_H
#define CDC_SCHEMA_EVOLVE_H

#include "postgres.h"
#include "utils/rel.h"

#include "catalog/catalog_history.h"
#include "schema/table.h"

/* What is known of a change. */
typedef struct SchemaEvolve
{
	const CdcTableDef *before;
	CdcTableDef *after;			/* its columns get left_out */
	const int  *origin;			/* per column of "after": its index in "before"; -1: it is new */
	bool		is_strict;		/* the statement's sql_mode refused values that do not fit */
	bool		is_told;		/* a statement told the change; false: seen from the two definitions alone */
	bool		defaults_known; /* "after" has the defaults that came with the columns */
	bool		has_rows;		/* the target may hold rows */
	bool		key_may_wait;	/* they are going to be replaced: a key that they do not have is theirs to have */
	bool		is_projected;	/* a transform makes something else of what changes: the target is not altered */
	bool		computes_anew;	/* a generated column may have got another expression */
	bool		is_merged;		/* other source tables have the target too */
	const CatalogChangeRules *rules;
	const SchemaTypeOptions *types;
	Relation	rel;			/* the target, locked by the caller */
} SchemaEvolve;

/* One thing that changes. */
typedef struct SchemaStep
{
	CatalogChangeKind kind;
	int			column;			/* in "after"; -1: none */
	bool		ignored;		/* the options leave it out */
	List	   *commands;		/* of char *, to be run in order; NIL: nothing is to be done here */
	List	   *otherwise;		/* run instead when one of them fails because of a row's value; NIL: nothing stands in */
	List	   *passed_over;	/* run when it is passed over (TRY_EVOLVE), so that the table can go on without it */
	bool		copy_otherwise; /* then the rows have to be copied anew */
	bool		may_wait;		/* not done, and nobody's fault, when rows do not fit that are going to be replaced */
	char	   *copy;			/* why they have to be in any case; NULL: they have not */
} SchemaStep;

typedef struct SchemaPlan
{
	SchemaEvolve *evolve;
	Oid			owner;			/* of the target */
	const char *name;			/* of the target, for messages */
	const char *alter;			/* how its commands begin: "ALTER TABLE shop.item"; NULL: none is one of several clauses */
	List	   *steps;			/* of SchemaStep */
	uint32		kinds;			/* CATALOG_CHANGE_BIT of all steps */

	/* after schema_evolve_run */
	List	   *commands;		/* of char *: what was run */
	char	   *copy;			/* why the rows have to be copied anew; NULL: they have not */
	UtilErrorInfo *failed;		/* of the first step that could not be carried out and was passed over; NULL: none */
} SchemaPlan;

/* Results in CurrentMemoryContext. */
extern SchemaPlan *schema_evolve_plan(SchemaEvolve *evolve);

/* Is nothing to be done, and nothing to be told? And: is there anything to be run, for which the target must be locked? */
extern bool schema_evolve_is_empty(const SchemaPlan *plan);
extern bool schema_evolve_has_commands(const SchemaPlan *plan);

/*
 * Origins by name, for a change that no statement told; false when a column went and another came, so that it may
 * have got another name: they are taken for two then.
 */
extern bool schema_evolve_origins(const CdcTableDef *before, const CdcTableDef *after, int *origin);

/* Is the type of a column another one, with all that belongs to it? And: is the key made of other columns? */
extern bool schema_type_differs(const CdcColumnDef *a, const CdcColumnDef *b);
extern bool schema_key_differs(const SchemaEvolve *evolve);

/*
 * Why generated columns of the source may have other values in the rows that are there, which the target's own columns do not
 * follow; NULL when they have not, or nothing is to be done about it. In schema_recompute.c.
 */
extern char *schema_recomputes(const SchemaEvolve *evolve);

/*
 * Carry a plan out as the target's owner; the caller holds an AccessExclusiveLock on the target, and has closed it. With mode
 * TRY_EVOLVE a step that fails is passed over.
 */
extern void schema_evolve_run(SchemaPlan *plan);

/* "int unsigned" -> "bigint": how the target's rows follow; see schema_convert.c. */
typedef enum SchemaConversion
{
	SCHEMA_CONVERT_NONE,		/* values stay; PostgreSQL's assignment changes none */
	SCHEMA_CONVERT_BY,			/* by *expression, which gives what the server made of each value */
	SCHEMA_CONVERT_TRY,			/* the same, unless it fails for some value */
	SCHEMA_CONVERT_COPY			/* not known here */
} SchemaConversion;

/* column: the target's, quoted. type: what it becomes. */
extern SchemaConversion schema_conversion(const CdcColumnDef *before, const CdcColumnDef *after, bool is_strict,
										  const SchemaTypeOptions *types, const char *column, const char *type,
										  char **expression);

#endif							/* CDC_SCHEMA_EVOLVE_H */
