/*-------------------------------------------------------------------------
 *
 * catalog_schema_trigger.c
 *	  The event triggers that tell outgoing pipelines of schema changes.
 *
 * NOTES
 *	  They are made with the extension, disabled: only a superuser may make one,
 *	  and as members of it no dump carries them. While an outgoing pipeline of this
 *	  database wants to hear of schema changes they fire always, also where
 *	  session_replication_role is replica; else statements do not even notice them.
 *
 *	  A slot is made after its pipeline was committed, and only once all
 *	  transactions of before have ended. So each statement that the slot gives was
 *	  carried out with the triggers on.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_event_trigger.h"
#include "commands/event_trigger.h"
#include "commands/trigger.h"
#include "storage/lmgr.h"
#include "utils/syscache.h"

#include "catalog/catalog_export.h"
#include "catalog/catalog_heap.h"

static const char *const trigger_names[] = {
	"cdc_bridge_schema_change",
	"cdc_bridge_schema_drop",
	"cdc_bridge_schema_rewrite"
};

/* OID of a trigger of ours, InvalidOid when there is none of that name. */
static Oid
trigger_oid(const char *name)
{
	Oid			oid = get_event_trigger_oid(name, true);

	return OidIsValid(oid) && getExtensionOfObject(EventTriggerRelationId, oid) == catalog_extension_oid() ? oid : InvalidOid;
}

static bool
is_wanted(void)
{
	ListCell   *lc;

	foreach(lc, catalog_pipeline_list())
	{
		const CatalogPipeline *pipeline = lfirst(lc);

		if (pipeline->sink != NULL && catalog_export_hears_statements(pipeline))
			return true;
	}
	return false;
}

static void
set_fires(Oid oid, char fires)
{
	Relation	rel = table_open(EventTriggerRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopy1(EVENTTRIGGEROID, ObjectIdGetDatum(oid));

	if (HeapTupleIsValid(tuple) && ((Form_pg_event_trigger) GETSTRUCT(tuple))->evtenabled != fires)
	{
		((Form_pg_event_trigger) GETSTRUCT(tuple))->evtenabled = fires;
		CatalogTupleUpdate(rel, &tuple->t_self, tuple);
	}
	table_close(rel, RowExclusiveLock);
}

void
catalog_schema_triggers_set(void)
{
	Oid			first = trigger_oid(trigger_names[0]);
	char		fires;

	if (!OidIsValid(first))
		return;
	/* one after the other: whoever drops the last pipeline that wants them has to see one that is just made */
	LockDatabaseObject(EventTriggerRelationId, first, 0, ShareUpdateExclusiveLock);
	CommandCounterIncrement();
	fires = is_wanted() ? TRIGGER_FIRES_ALWAYS : TRIGGER_DISABLED;
	for (int i = 0; i < (int) lengthof(trigger_names); i++)
	{
		Oid			oid = trigger_oid(trigger_names[i]);

		if (OidIsValid(oid))
			set_fires(oid, fires);
	}
	CommandCounterIncrement();
}

const char *
catalog_schema_trigger_silent(void)
{
	for (int i = 0; i < (int) lengthof(trigger_names); i++)
	{
		Oid			oid = trigger_oid(trigger_names[i]);
		HeapTuple	tuple = OidIsValid(oid) ? SearchSysCache1(EVENTTRIGGEROID, ObjectIdGetDatum(oid)) : NULL;
		bool		fires = HeapTupleIsValid(tuple) && ((Form_pg_event_trigger) GETSTRUCT(tuple))->evtenabled == TRIGGER_FIRES_ALWAYS;

		if (HeapTupleIsValid(tuple))
			ReleaseSysCache(tuple);
		if (!fires)
			return trigger_names[i];
	}
	return NULL;
}
