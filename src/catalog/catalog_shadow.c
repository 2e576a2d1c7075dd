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
#include "lib/stringinfo.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "catalog/catalog.h"
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

/* Copy of text with each "from" replaced by "to"; NULL stays NULL. */
static char *
replace(const char *text, const char *from, const char *to)
{
	StringInfoData buf;
	const char *found;

	if (text == NULL)
		return NULL;
	initStringInfo(&buf);
	while ((found = strstr(text, from)) != NULL)
	{
		appendBinaryStringInfo(&buf, text, (int) (found - text));
		appendStringInfoString(&buf, to);
		text = found + strlen(from);
	}
	appendStringInfoString(&buf, text);
	return buf.data;
}

void
catalog_shadow_name_table(int32 pipeline_id, int32 table_id, UtilErrorInfo *error)
{
	const CatalogTable *table = catalog_table_by_id(pipeline_id, table_id);
	char	   *shadow;
	char	   *name;

	if (table == NULL || !OidIsValid(table->swap_into))
		return;
	shadow = get_rel_name(table->target);
	name = get_rel_name(table->swap_into);
	if (shadow == NULL || name == NULL)
		return;
	error->message = replace(error->message, shadow, name);
	error->detail = replace(error->detail, shadow, name);
	error->hint = replace(error->hint, shadow, quote_identifier(name));
}
