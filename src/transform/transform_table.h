/*-------------------------------------------------------------------------
 *
 * transform_table.h
 *	  The transform of one source table: its row type, the columns and key of
 *	  its target.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_TRANSFORM_TABLE_H
#define CDC_TRANSFORM_TABLE_H

#include "postgres.h"
#include "utils/rel.h"

#include "schema/table.h"
#include "transform/transform_row.h"

typedef struct TransformTable
{
	const CdcTableDef *def;
	Transform  *transform;
	int			nkey;
	int		   *key;			/* columns of the projection that make the target's key, in its order */
	bool	   *used;			/* per column of the source: something is made of it */
	AttrNumber *attnums;		/* per column of the projection: attribute of the target that takes it; 0: none */
	int			nprojected;		/* columns of the projection; those behind them are of the rule's kind */
	int			sequence;		/* column that numbers the changes of a transaction; -1: none */
	int			version;		/* column that has the version of a row; -1: none */
	int			parts;			/* column that says whose parts a row has; -1: none */
	int			deleted;		/* columns that mark a deleted row, behind those of the projection; -1: none */
	int			deleted_at;
	AttrNumber *held;			/* per column of the source: attribute of the target that has it as it is; 0: none */
} TransformTable;

/* The rule that does something to a table's rows; NULL: they go as they are. */
extern const TransformRule *transform_table_rule(const CdcTableDef *def, const SchemaTypeOptions *options);

/* What kind of target the table's rows go into. */
extern TransformKind transform_table_kind(const CdcTableDef *def, const SchemaTypeOptions *options);

/* Compile a rule for a table, in CurrentMemoryContext; throws what cannot be. def has to outlive the result. */
extern TransformTable *transform_table_make(const CdcTableDef *def, const TransformRule *rule,
											const SchemaTypeOptions *options);

/* Find the target's attributes for it, and take on their types; throws all that does not fit at once. */
extern void transform_table_bind(TransformTable *table, Relation rel);

/* Statements that make the target of a table, with or without a transform: List of char *. */
extern List *transform_create_statements(const CdcTableDef *def, const char *target_schema, const char *target_table,
										 const SchemaTypeOptions *options);

/* Can a column of the source, once the row is in its target, be had back from there for every row? */
extern bool transform_keeps_column(const TransformTable *table, int column);

/*
 * A source table changes its shape (origin: per column of "after" its index in "before", -1: it is new). May its target
 * be changed in the same way? True when each column that changes goes there as it is, under its own name, and nothing
 * else is made of it. Throws when the rule does not fit the table as it is after the change.
 */
extern bool transform_lets_follow(const CdcTableDef *before, const CdcTableDef *after, const int *origin,
								  const SchemaTypeOptions *options);

/* schema_index_translate, for a target that may have other columns. */
extern SchemaIndex *transform_index_translate(const CdcTableDef *def, const CdcIndexDef *index,
											  const SchemaTypeOptions *options);

/*
 * Do names in the rule of a table mean something else after a change of its columns: one of the source where metadata was
 * meant, or the other way?
 */
extern bool transform_names_move(const CdcTableDef *before, const CdcTableDef *after, const SchemaTypeOptions *options);

/* Does a column of the projection, or the filter (column -1), say something of the change and not of the row? */
extern bool transform_tells_change(const Transform *transform, int column);

#endif							/* CDC_TRANSFORM_TABLE_H */
