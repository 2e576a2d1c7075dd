/*-------------------------------------------------------------------------
 *
 * transform_merge.h
 *	  A target that several source tables share: the layout that has room for
 *	  all of them.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_TRANSFORM_MERGE_H
#define CDC_TRANSFORM_MERGE_H

#include "postgres.h"
#include "utils/rel.h"

#include "transform/transform_table.h"

#define TRANSFORM_MERGE_OR_TEXT			1	/* a column whose types have nothing else in common becomes text */
#define TRANSFORM_MERGE_KEEP_TYPES		2	/* types that are there stay */
#define TRANSFORM_MERGE_KEEP_NOT_NULL	4	/* so does NOT NULL of columns that the table has */

/*
 * The statement that makes room in a target for the rows of one more source table: columns that it lacks, types that are
 * too narrow, NOT NULL where the table has no such column. NULL when there is room. how: bits of the above. *changes_key: the type of a key
 * column changes.
 */
extern char *transform_merge_statement(const TransformTable *table, Relation rel, int how, const SchemaTypeOptions *options,
									   bool *changes_key);

#endif							/* CDC_TRANSFORM_MERGE_H */
