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

/*
 * The statement that makes room in a target for the rows of one more source table: columns that it lacks, types that are
 * too narrow, NOT NULL where the table has no such column. NULL when there is room. or_text: a column whose types have
 * nothing else in common becomes text. *changes_key: the type of a key column changes.
 */
extern char *transform_merge_statement(const TransformTable *table, Relation rel, bool or_text, const SchemaTypeOptions *options,
									   bool *changes_key);

#endif							/* CDC_TRANSFORM_MERGE_H */
