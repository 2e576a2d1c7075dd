/*-------------------------------------------------------------------------
 *
 * decode_failover.c
 *	  Which standby keeps a slot with failover from being read.
 *
 * NOTES
 *	  The setting synchronized_standby_slots names physical slots of standbys. The
 *	  server itself only says yes or no; who waits wants to know for whom.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "replication/slot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/varlena.h"

#include "compat/pg_compat.h"
#include "decode/decode_reader.h"

/* One that is connected is always a little behind. */
#define USUAL_LAG (1024 * 1024)

/* What is wrong with one of them; NULL: it has the log up to about lsn. */
static char *
problem_of(const char *name, XLogRecPtr lsn)
{
	const ReplicationSlot *slot;
	char	   *problem = NULL;

	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	slot = SearchNamedReplicationSlot(name, false);
	if (slot == NULL)
		problem = psprintf("slot \"%s\" of a standby does not exist", name);
	else if (SlotIsLogical(slot))
		problem = psprintf("slot \"%s\" is none of a standby", name);
	else if (slot->data.restart_lsn + (slot->active_pid != 0 ? USUAL_LAG : 0) < lsn)
		problem = slot->active_pid == 0 ? psprintf("the standby of slot \"%s\" is not connected", name)
			: psprintf("the standby of slot \"%s\" has the log up to %X/%X only", name, LSN_FORMAT_ARGS(slot->data.restart_lsn));
	LWLockRelease(ReplicationSlotControlLock);
	return problem;
}

char *
decode_standby_waited_for(XLogRecPtr lsn, char **hint)
{
	const char *setting = GetConfigOption("synchronized_standby_slots", true, false);
	List	   *names;
	ListCell   *lc;

	if (setting == NULL || cdc_standbys_have(lsn) || !SplitIdentifierString(pstrdup(setting), ',', &names))
		return NULL;
	foreach(lc, names)
	{
		char	   *problem = problem_of(lfirst(lc), lsn);

		if (problem == NULL)
			continue;
		*hint = psprintf("Start that standby, or take \"%s\" out of \"synchronized_standby_slots\" with ALTER SYSTEM and reload the configuration: then the sink may get what a promoted standby does not have.",
						 (const char *) lfirst(lc));
		return problem;
	}
	return NULL;
}
