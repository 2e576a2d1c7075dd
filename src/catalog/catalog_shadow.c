/*-------------------------------------------------------------------------
 *
 * catalog_shadow.c
 *	  Relations that a new copy of a table goes into.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "storage/lmgr.h"
#include "utils/syscache.h"

#include "catalog/catalog_shadow.h"

void
catalog_shadow_depend(Oid shadow, Oid table)
{
	ObjectAddress dependent;
	ObjectAddress referenced;

	ObjectAddressSet(dependent, RelationRelationId, shadow);
	ObjectAddressSet(referenced, RelationRelationId, table);
	recordDependencyOn(&dependent, &referenced, DEPENDENCY_AUTO);
	CommandCounterIncrement();
}

void
catalog_shadow_drop(Oid shadow)
{
	ObjectAddress table;

	LockRelationOid(shadow, AccessExclusiveLock);
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(shadow)))
	{
		UnlockRelationOid(shadow, AccessExclusiveLock);
		return;
	}
	ObjectAddressSet(table, RelationRelationId, shadow);
	performDeletion(&table, DROP_RESTRICT, PERFORM_DELETION_INTERNAL);
	CommandCounterIncrement();
}
