/*-------------------------------------------------------------------------
 *
 * export_tables.c
 *	  Which tables an outgoing pipeline ships.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "catalog/catalog_export.h"
#include "pipeline/export_tables.h"
#include "util/util_pattern.h"

/* The schema of our own tables, which are nobody's business. */
#define OWN_SCHEMA "cdc_bridge"

/* Only what is logged can be decoded; a partitioned table has no rows of its own. */
static bool
is_logged_table(Form_pg_class form)
{
	return form->relkind == RELKIND_RELATION && form->relpersistence == RELPERSISTENCE_PERMANENT && form->oid >= FirstNormalObjectId;
}

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
	Relation	classes = table_open(RelationRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(classes, InvalidOid, false, NULL, 0, NULL);
	List	   *relids = NIL;
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		if (is_logged_table(form) && is_meant(pipeline, export_name_of(form->oid, via_root)))
			relids = lappend_oid(relids, form->oid);
	}
	systable_endscan(scan);
	table_close(classes, AccessShareLock);
	list_sort(relids, list_oid_cmp);
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
