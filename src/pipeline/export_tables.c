/*-------------------------------------------------------------------------
 *
 * export_tables.c
 *	  Which tables an outgoing pipeline ships.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/partition.h"
#include "utils/lsyscache.h"

#include "catalog/catalog_export.h"
#include "catalog/catalog_export_copy.h"
#include "pipeline/export_tables.h"
#include "util/util_pattern.h"

/* The schema of our own tables, which are nobody's business. */
#define OWN_SCHEMA "cdc_bridge"

static bool
is_meant(const CatalogPipeline *pipeline, Oid publish_as)
{
	char	   *schema = get_namespace_name(get_rel_namespace(publish_as));
	char	   *name = get_rel_name(publish_as);

	return schema != NULL && name != NULL && strcmp(schema, OWN_SCHEMA) != 0 && util_patterns_match(pipeline->tables, schema, name, NULL);
}

List *
export_tables(const CatalogPipeline *pipeline)
{
	bool		via_root = export_via_root(pipeline);
	List	   *relids = NIL;
	ListCell   *lc;

	foreach(lc, catalog_export_candidates())
	{
		if (is_meant(pipeline, export_name_of(lfirst_oid(lc), via_root)))
			relids = lappend_oid(relids, lfirst_oid(lc));
	}
	return relids;
}

bool
export_via_root(const CatalogPipeline *pipeline)
{
	return catalog_export_bool(pipeline, "publish_via_partition_root");
}

Oid
export_name_of(Oid relid, bool via_root)
{
	return via_root && get_rel_relispartition(relid) ? llast_oid(get_partition_ancestors(relid)) : relid;
}
