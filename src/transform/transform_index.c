/*-------------------------------------------------------------------------
 *
 * transform_index.c
 *	  What becomes of the source's indexes on a target.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/lsyscache.h"

#include "transform/transform_index.h"

#define REASON_FOREIGN "the target table was there before the pipeline, and is left as it is"

bool
transform_index_is_none(const CatalogPipeline *pipeline)
{
	return strcmp(util_option_text(&catalog_pipeline_options, "secondary_indexes",
								   catalog_pipeline_option(pipeline, "secondary_indexes")), "none") == 0;
}

bool
transform_index_is_foreign(const CatalogIndex *row)
{
	return row->reason != NULL && strcmp(row->reason, REASON_FOREIGN) == 0;
}

/* Is a column of it one that the target does not have? */
static bool
has_left_out(const SchemaIndex *index)
{
	for (uint32 i = 0; i < index->def->nparts; i++)
	{
		if (index->columns[i] != NULL && index->columns[i]->left_out)
			return true;
	}
	return false;
}

CatalogIndex *
transform_index_row(const CdcTableDef *def, const CdcIndexDef *from, const SchemaTypeOptions *types, Relation rel, bool made, bool none)
{
	SchemaIndex *index = transform_index_translate(def, from, types);
	CatalogIndex *row = palloc0(sizeof(CatalogIndex));
	const char *table = RelationGetRelationName(rel);

	row->source_index = index->name;
	row->is_unique = from->is_unique;
	row->state = CATALOG_INDEX_WANTED;
	row->reason = index->reason;
	if (row->reason == NULL && has_left_out(index))
		row->reason = "a column of it is left out";
	if (row->reason == NULL)
	{
		row->statement = schema_index_statement(index, get_namespace_name(RelationGetNamespace(rel)), table,
												schema_index_name(table, index->name, 0));
		row->target_index = schema_index_find(index, rel);
		if (row->target_index != NULL)
			row->state = CATALOG_INDEX_BUILT;
		else if (!made)
			row->reason = REASON_FOREIGN;
		else if (none)
			row->reason = "option \"secondary_indexes\" is \"none\"";
	}
	if (row->reason != NULL)
		row->state = CATALOG_INDEX_LEFT_OUT;
	return row;
}
