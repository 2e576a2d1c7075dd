/*-------------------------------------------------------------------------
 *
 * catalog_origin.c
 *	  Dropping the replication origins of pipelines.
 *
 * NOTES
 *	  Every writing worker of a pipeline has an origin of its own. They are
 *	  shared by all databases of the server, so they outlive the database and the
 *	  extension unless somebody drops them.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_replication_origin.h"
#include "miscadmin.h"
#include "replication/origin.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include "catalog/catalog.h"
#include "compat/pg_compat.h"

/* Names of all origins that begin with prefix. */
static List *
origins_with_prefix(const char *prefix)
{
	Relation	rel = table_open(ReplicationOriginRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	List	   *names = NIL;
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;
		Datum		datum = heap_getattr(tuple, Anum_pg_replication_origin_roname, RelationGetDescr(rel), &isnull);
		char	   *name = TextDatumGetCString(datum);

		if (strncmp(name, prefix, strlen(prefix)) == 0)
			names = lappend(names, name);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return names;
}

void
catalog_origin_drop(Oid database, int32 pipeline_id)
{
	char	   *prefix = pipeline_id == 0 ? psprintf("cdc_%u_", database)
		: psprintf("cdc_%u_%d_", database, pipeline_id);
	ListCell   *lc;

	foreach(lc, origins_with_prefix(prefix))
		replorigin_drop_by_name(lfirst(lc), true, false);
	CommandCounterIncrement();
}

/* Running pipelines of this database whose first two origins do not exist yet: how many are to come? */
static int
origins_to_come(List *existing)
{
	int			n = 0;
	ListCell   *lc;

	foreach(lc, catalog_pipeline_list())
	{
		const CatalogPipeline *pipeline = lfirst(lc);

		for (int i = 1; pipeline->enabled && i <= 2; i++)
		{
			const char *wanted = psprintf("cdc_%u_%d_%d", MyDatabaseId, pipeline->id, i);
			ListCell   *lc2;
			bool		found = false;

			foreach(lc2, existing)
				found |= strcmp(lfirst(lc2), wanted) == 0;
			n += !found;
		}
	}
	return n;
}

bool
catalog_origin_has_room(const char *name)
{
	const char *limit = GetConfigOption(CDC_ORIGIN_LIMIT_SETTING, true, false);
	List	   *existing = origins_with_prefix("");
	ListCell   *lc;

	foreach(lc, existing)
	{
		if (strcmp(lfirst(lc), name) == 0)
			return true;
	}
	return limit != NULL && list_length(existing) + origins_to_come(existing) < atoi(limit);
}
