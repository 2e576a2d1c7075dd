/*-------------------------------------------------------------------------
 *
 * transform_index.c
 *	  What becomes of the source's indexes on a target.
 *
 * NOTES
 *	  An index that goes, goes here at once: a unique one would keep rows out that
 *	  the source takes. One that comes is written down and built like those of a new
 *	  table, by the snapshot worker, while the stream goes on
 *	  (snapshot/snapshot_index.c). One that stays keeps its row, whatever happens to it:
 *	  it may be in the middle of being built.
 *
 *	  Only indexes with names that we give are dropped. An index of a user's own that
 *	  served as the source's is left to the user.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "transform/transform_index.h"
#include "util/util_name.h"

/* So many names of ours are known, see snapshot_index.c. */
#define MAX_NAME_ATTEMPTS 100

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
	CdcIndexDef *def_here = palloc(sizeof(CdcIndexDef));
	CatalogIndex *row = palloc0(sizeof(CatalogIndex));
	const char *table = RelationGetRelationName(rel);
	SchemaIndex *index;

	/* rows that the source has no more keep their values, which others may have now */
	*def_here = *from;
	def_here->is_unique &= transform_table_kind(def, types) == TRANSFORM_MIRROR;
	from = def_here;
	index = transform_index_translate(def, from, types);

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

/* ------------------------------------------------------- indexes that come and go */

static const CdcIndexDef *
find_index(const CdcTableDef *def, const char *name)
{
	for (uint32 i = 0; i < def->nindexes; i++)
	{
		if (strcmp(def->indexes[i].name, name) == 0)
			return &def->indexes[i];
	}
	return NULL;
}

static int
find_column(const CdcTableDef *def, const char *name)
{
	return name != NULL ? cdc_table_def_column(def, name) : -1;
}

/* Is it the same index before and after, its columns maybe with other names? */
static bool
same_index(const SchemaEvolve *evolve, const CdcIndexDef *a, const CdcIndexDef *b)
{
	if (a->is_unique != b->is_unique || a->nparts != b->nparts || strcmp(a->type_text, b->type_text) != 0)
		return false;
	for (uint32 i = 0; i < a->nparts; i++)
	{
		const CdcIndexPart *pa = &a->parts[i];
		const CdcIndexPart *pb = &b->parts[i];
		int			to = find_column(evolve->after, pb->column);

		if (pa->prefix != pb->prefix || pa->descending != pb->descending)
			return false;
		if (pa->column == NULL || pb->column == NULL)
		{
			if (pa->column != pb->column || strcmp(pa->expression ? pa->expression : "", pb->expression ? pb->expression : "") != 0)
				return false;
		}
		else if (to < 0 || evolve->origin[to] < 0 || evolve->origin[to] != find_column(evolve->before, pa->column))
			return false;
	}
	return true;
}

static char *
source_name(const CatalogIndex *row)
{
	return util_name_to_source(row->source_index);
}

static bool
stays(const SchemaEvolve *evolve, const CatalogIndex *row)
{
	const char *name = source_name(row);
	const CdcIndexDef *before = find_index(evolve->before, name);
	const CdcIndexDef *after = find_index(evolve->after, name);

	return before != NULL && after != NULL && same_index(evolve, before, after);
}

/* Is the index's name one that we gave it? */
static bool
is_ours(const CatalogIndex *row, const char *table)
{
	for (int attempt = 0; attempt < MAX_NAME_ATTEMPTS; attempt++)
	{
		if (strcmp(schema_index_name(table, row->source_index, attempt), row->target_index) == 0)
			return true;
	}
	return false;
}

void
transform_index_steps(int32 pipeline_id, int32 table_id, const SchemaEvolve *evolve, Relation rel, bool changes_indexes,
					  SchemaPlan *plan)
{
	bool		ignored = catalog_change_mode(evolve->rules, CATALOG_CHANGE_INDEX) == CATALOG_MODE_IGNORE;
	ListCell   *lc;

	if (!changes_indexes && plan->steps == NIL)
		return;
	foreach(lc, catalog_index_list_of(pipeline_id, table_id))
	{
		const CatalogIndex *row = lfirst(lc);
		SchemaStep *step;

		if (stays(evolve, row))
			continue;
		step = palloc0(sizeof(SchemaStep));
		step->kind = CATALOG_CHANGE_INDEX;
		step->column = -1;
		step->ignored = ignored;
		/* others that share the target may have it still */
		if (!ignored && !evolve->is_merged && row->target_index != NULL && is_ours(row, RelationGetRelationName(rel)))
			step->commands = list_make1(psprintf("DROP INDEX IF EXISTS %s",
												 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)), row->target_index)));
		plan->steps = lappend(plan->steps, step);
		plan->kinds |= CATALOG_CHANGE_BIT(CATALOG_CHANGE_INDEX);
	}
}

bool
transform_index_write(int32 pipeline_id, int32 table_id, const SchemaEvolve *evolve, Oid target)
{
	List	   *rows = catalog_index_list_of(pipeline_id, table_id);
	CatalogPipeline *pipeline = catalog_pipeline_by_id(pipeline_id);
	Relation	rel = try_relation_open(target, AccessShareLock);
	ListCell   *lc;
	int32		last = 0;
	bool		made = true;
	bool		wanted = false;

	foreach(lc, rows)
	{
		const CatalogIndex *row = lfirst(lc);

		made &= !transform_index_is_foreign(row);
		last = Max(last, row->index_no);
		if (stays(evolve, row))
			continue;
		if (catalog_change_mode(evolve->rules, CATALOG_CHANGE_INDEX) == CATALOG_MODE_IGNORE)
			continue;
		catalog_index_delete_one(row);
		rows = foreach_delete_current(rows, lc);
	}

	for (uint32 i = 0; pipeline != NULL && rel != NULL && i < evolve->after->nindexes; i++)
	{
		CdcIndexDef index = evolve->after->indexes[i];
		CatalogIndex *row;
		bool		found = catalog_change_mode(evolve->rules, CATALOG_CHANGE_INDEX) == CATALOG_MODE_IGNORE;

		foreach(lc, rows)
			found |= strcmp(source_name(lfirst(lc)), evolve->after->indexes[i].name) == 0;
		if (found)
			continue;
		/* what is unique in one table need not be in all */
		index.is_unique &= !evolve->is_merged;
		row = transform_index_row(evolve->after, &index, evolve->types, rel, made,
								  transform_index_is_none(pipeline));
		row->pipeline_id = pipeline_id;
		row->table_id = table_id;
		row->index_no = ++last;
		catalog_index_insert(row);
		wanted |= row->state == CATALOG_INDEX_WANTED;
	}
	if (rel != NULL)
		relation_close(rel, NoLock);
	return wanted;
}
