/*-------------------------------------------------------------------------
 *
 * transform_index.h
 *	  What becomes of the source's indexes on a target: rows of
 *	  cdc_bridge.target_index.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_TRANSFORM_INDEX_H
#define CDC_TRANSFORM_INDEX_H

#include "postgres.h"
#include "utils/rel.h"

#include "catalog/catalog.h"
#include "transform/transform_table.h"

/* Does the pipeline want no secondary indexes? */
extern bool transform_index_is_none(const CatalogPipeline *pipeline);

/*
 * The row for one index, without the numbers of pipeline, table and index. made: the pipeline made the target; none: see
 * above.
 */
extern CatalogIndex *transform_index_row(const CdcTableDef *def, const CdcIndexDef *index, const SchemaTypeOptions *types,
										 Relation rel, bool made, bool none);

/* Does a row say that its target was there before the pipeline? */
extern bool transform_index_is_foreign(const CatalogIndex *row);

#endif							/* CDC_TRANSFORM_INDEX_H */
