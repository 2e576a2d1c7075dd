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

#include "catalog/catalog_history.h"
#include "schema/evolve.h"
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

/*
 * The source's indexes come and go with a change of the table's shape. _steps adds to a plan what takes those off the
 * target that go; changes_indexes: there may be some. _write puts down what becomes of all of them, and tells whether one
 * is to be built; takes the state's lock. Both go by the names of indexes, and by origin as SchemaEvolve has it.
 */
extern void transform_index_steps(int32 pipeline_id, int32 table_id, const SchemaEvolve *evolve, Relation rel,
								  bool changes_indexes, SchemaPlan *plan);
extern bool transform_index_write(int32 pipeline_id, int32 table_id, const SchemaEvolve *evolve, Oid target);

#endif							/* CDC_TRANSFORM_INDEX_H */
