/*-------------------------------------------------------------------------
 *
 * transform_kind.h
 *	  Kinds of targets other than mirrors: the columns that they add to a
 *	  projection.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_TRANSFORM_KIND_H
#define CDC_TRANSFORM_KIND_H

#include "postgres.h"

#include "transform/transform_route.h"
#include "transform/transform_table.h"

/*
 * Add the columns of the rule's kind behind those of the projection, with the values that a row has which is there. Throws
 * when a table cannot be of that kind.
 */
extern void transform_kind_add(TransformTable *table);

/* A definition that the source gave: a target that has a row for each change has no use for the key. Column.key_part stays. */
extern void transform_kind_use_key(CdcTableDef *def, const SchemaTypeOptions *options);

/* The number of its key columns at the source, which that took away. */
extern uint32 transform_kind_source_nkey(const CdcTableDef *def);

/* What the part of a row that the table fills is called, where rows are partial. */
extern const char *transform_kind_part(const TransformTable *table);

/*
 * May other tables go to the same target? By the table's route, or because each fills its part of a row there. Names in the
 * database's encoding.
 */
extern bool transform_kind_shares(const TransformRoutes *routes, const SchemaTypeOptions *options, const char *source_schema,
								  const char *source_table);

/* "soft_delete", ... */
extern const char *transform_kind_name(TransformKind kind);

#endif							/* CDC_TRANSFORM_KIND_H */
