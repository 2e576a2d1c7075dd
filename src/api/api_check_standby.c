/*-------------------------------------------------------------------------
 *
 * api_check_standby.c
 *	  cdc_check(): copies of replication slots on standbys, from PostgreSQL 17 on.
 *
 * NOTES
 *	  On a standby: what keeps it from getting copies. A slot of the same name
 *	  that it has of its own, of the time when it was the primary, stops the
 *	  copying of all slots. On a primary: what outgoing pipelines with option
 *	  failover wait for, or do not wait for although they should.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "replication/slot.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include "api/api_check.h"
#include "catalog/catalog_export.h"
#include "compat/pg_compat.h"
#include "decode/decode_reader.h"

/* Names of slots with failover that are no copies, quoted for SQL. */
static List *
own_failover_slots(void)
{
	List	   *names = NIL;
	char		name[NAMEDATALEN];

	for (int i = 0; i < max_replication_slots; i++)
	{
		ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];
		bool		is_own;

		LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
		is_own = slot->in_use && SlotIsLogical(slot) && cdc_slot_is_failover(slot) && !cdc_slot_is_synced(slot);
		if (is_own)
			snprintf(name, sizeof(name), "%s", NameStr(slot->data.name));
		LWLockRelease(ReplicationSlotControlLock);
		if (is_own)
			names = lappend(names, pstrdup(name));
	}
	return names;
}

static bool
is_set(const char *setting)
{
	const char *value = GetConfigOption(setting, true, false);

	return value != NULL && value[0] != '\0' && strcmp(value, "off") != 0;
}

static void
check_setting(ReturnSetInfo *rsinfo, const char *setting, const char *why, const char *hint)
{
	if (!is_set(setting))
		api_check_put(rsinfo, setting, "warning", psprintf("%s is not set: %s", setting, why), hint);
}

static void
check_standby(ReturnSetInfo *rsinfo)
{
	List	   *own = own_failover_slots();
	ListCell   *lc;

	foreach(lc, own)
	{
		const char *name = lfirst(lc);

		api_check_put(rsinfo, "failover slots", "error",
					  psprintf("Slot \"%s\" is this server's own, of the time before it was a standby. It stops the copying of all slots from the primary.", name),
					  psprintf("SELECT pg_drop_replication_slot(%s)", quote_literal_cstr(name)));
	}
	check_setting(rsinfo, "sync_replication_slots", "this standby gets no copies of slots, and an outgoing pipeline has lost its slot where it is promoted.",
				  "ALTER SYSTEM SET sync_replication_slots = on; then reload the configuration. \"primary_conninfo\" needs a dbname");
	check_setting(rsinfo, "hot_standby_feedback", "slots are not copied without it.", "ALTER SYSTEM SET hot_standby_feedback = on; then reload the configuration");
	check_setting(rsinfo, "primary_slot_name", "slots are not copied without it.",
				  "Make a physical slot on the primary, name it with ALTER SYSTEM SET primary_slot_name, and reload the configuration");
}

static void
check_primary(ReturnSetInfo *rsinfo)
{
	bool		any = false;
	TimeLineID	timeline;
	char	   *problem;
	char	   *hint;
	ListCell   *lc;

	foreach(lc, catalog_pipeline_list())
	{
		const CatalogPipeline *pipeline = lfirst(lc);

		any |= pipeline->sink != NULL && catalog_export_bool(pipeline, "failover");
	}
	if (!any)
		return;
	problem = decode_standby_waited_for(decode_log_end(&timeline), &hint);
	if (problem != NULL)
		api_check_put(rsinfo, "failover slots", "warning", psprintf("Outgoing pipelines with option \"failover\" ship nothing for now: %s.", problem), hint);
	check_setting(rsinfo, "synchronized_standby_slots",
				  "outgoing pipelines with option \"failover\" do not wait for standbys, and a sink may get what a promoted one does not have. The pipeline does not go on there then.",
				  "ALTER SYSTEM SET synchronized_standby_slots to the physical slots of the standbys that may be promoted; then reload the configuration");
}

void
api_check_standbys(ReturnSetInfo *rsinfo)
{
	if (!CDC_HAS_FAILOVER_SLOTS)
		return;
	if (RecoveryInProgress())
		check_standby(rsinfo);
	else
		check_primary(rsinfo);
}
