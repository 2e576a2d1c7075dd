/*-------------------------------------------------------------------------
 *
 * apply_schema_index.c
 *	  Indexes of a source table come and go.
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
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "apply/apply_private.h"
#include "transform/transform_index.h"

/* So many names of ours are known, see snapshot_index.c. */
#define MAX_NAME_ATTEMPTS 100

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
	for (uint32 i = 0; name != NULL && i < def->ncolumns; i++)
	{
		if (strcmp(def->columns[i].name, name) == 0)
			return (int) i;
	}
	return -1;
}

/* Is it the same index before and after, its columns maybe with other names? */
static bool
same_index(const ApplySchemaChange *change, const CdcIndexDef *a, const CdcIndexDef *b)
{
	if (a->is_unique != b->is_unique || a->nparts != b->nparts || strcmp(a->type_text, b->type_text) != 0)
		return false;
	for (uint32 i = 0; i < a->nparts; i++)
	{
		const CdcIndexPart *pa = &a->parts[i];
		const CdcIndexPart *pb = &b->parts[i];
		int			to = find_column(change->after, pb->column);

		if (pa->prefix != pb->prefix || pa->descending != pb->descending)
			return false;
		if (pa->column == NULL || pb->column == NULL)
		{
			if (pa->column != pb->column || strcmp(pa->expression ? pa->expression : "", pb->expression ? pb->expression : "") != 0)
				return false;
		}
		else if (to < 0 || change->origin[to] < 0 || change->origin[to] != find_column(change->table->def, pa->column))
			return false;
	}
	return true;
}

static char *
source_name(const CatalogIndex *row)
{
	return pg_server_to_any(pstrdup(row->source_index), (int) strlen(row->source_index), PG_UTF8);
}

static bool
stays(const ApplySchemaChange *change, const CatalogIndex *row)
{
	const char *name = source_name(row);
	const CdcIndexDef *before = find_index(change->table->def, name);
	const CdcIndexDef *after = find_index(change->after, name);

	return before != NULL && after != NULL && same_index(change, before, after);
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
apply_schema_index_steps(Apply *apply, ApplySchemaChange *change, SchemaPlan *plan, Relation rel)
{
	bool		ignored = catalog_change_mode(&apply->rules, CATALOG_CHANGE_INDEX) == CATALOG_MODE_IGNORE;
	ListCell   *lc;

	if ((change->kinds & CATALOG_CHANGE_BIT(CATALOG_CHANGE_INDEX)) == 0 && plan->steps == NIL)
		return;
	foreach(lc, catalog_index_list_of(apply->pipeline_id, change->table->table_id))
	{
		const CatalogIndex *row = lfirst(lc);
		SchemaStep *step;

		if (stays(change, row))
			continue;
		step = palloc0(sizeof(SchemaStep));
		step->kind = CATALOG_CHANGE_INDEX;
		step->column = -1;
		step->ignored = ignored;
		if (!ignored && row->target_index != NULL && is_ours(row, RelationGetRelationName(rel)))
			step->commands = list_make1(psprintf("DROP INDEX IF EXISTS %s",
												 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)), row->target_index)));
		plan->steps = lappend(plan->steps, step);
		plan->kinds |= CATALOG_CHANGE_BIT(CATALOG_CHANGE_INDEX);
	}
}

void
apply_schema_index_write(Apply *apply, const ApplySchemaChange *change)
{
	List	   *rows = catalog_index_list_of(apply->pipeline_id, change->table->table_id);
	CatalogPipeline *pipeline;
	Relation	rel;
	ListCell   *lc;
	int32		last = 0;
	bool		made = true;

	if (catalog_change_mode(&apply->rules, CATALOG_CHANGE_INDEX) == CATALOG_MODE_IGNORE)
		return;
	foreach(lc, rows)
	{
		const CatalogIndex *row = lfirst(lc);

		made &= !transform_index_is_foreign(row);
		last = Max(last, row->index_no);
		if (stays(change, row))
			continue;
		catalog_index_delete_one(row);
		rows = foreach_delete_current(rows, lc);
	}

	pipeline = catalog_pipeline_by_id(apply->pipeline_id);
	rel = try_relation_open(change->table->target, AccessShareLock);
	for (uint32 i = 0; pipeline != NULL && rel != NULL && i < change->after->nindexes; i++)
	{
		CatalogIndex *row;
		bool		found = false;

		foreach(lc, rows)
			found |= strcmp(source_name(lfirst(lc)), change->after->indexes[i].name) == 0;
		if (found)
			continue;
		row = transform_index_row(change->after, &change->after->indexes[i], &apply->types, rel, made,
								  transform_index_is_none(pipeline));
		row->pipeline_id = apply->pipeline_id;
		row->table_id = change->table->table_id;
		row->index_no = ++last;
		catalog_index_insert(row);
		apply->index_wanted |= row->state == CATALOG_INDEX_WANTED;
	}
	if (rel != NULL)
		relation_close(rel, NoLock);
}
