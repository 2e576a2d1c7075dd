/*-------------------------------------------------------------------------
 *
 * decode_reader.c
 *	  Logical decoding inside this process.
 *
 * NOTES
 *	  What PostgreSQL's own functions for a page of WAL do when they come to its
 *	  end does not fit: one sleeps and looks again each millisecond, the other one
 *	  writes to reader->private_data, which is the decoding context here. So
 *	  read_page is our own. It gives what is flushed and says at the end that
 *	  there is no more; reading goes on there later.
 *
 *	  A slot that standbys have a copy of is read only as far as the standbys
 *	  have the log that synchronized_standby_slots names: else a sink could hold
 *	  what no server has after one of them was promoted.
 *
 *	  Waiting is for the condition variable that a flush of WAL broadcasts, where
 *	  there is one (PostgreSQL 16 and later), else by looking every few
 *	  milliseconds.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlogreader.h"
#include "access/xlogrecovery.h"
#include "access/xlogutils.h"
#include "miscadmin.h"
#include "replication/decode.h"
#include "replication/logical.h"
#include "replication/slot.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/varlena.h"

#include "compat/pg_compat.h"
#include "decode/decode_reader.h"
#include "util/util_wait.h"

#define PLUGIN "cdc_bridge"

/* Where only looking helps: how long between two looks, and how long when the log has not grown for so many of them. */
#define LOOK_MS 5
#define QUIET_LOOK_MS 50
#define QUIET_LOOKS 200

struct DecodeReader
{
	LogicalDecodingContext *context;
	MemoryContext cxt;
	ResourceOwner owner;
};

XLogRecPtr
decode_log_end(TimeLineID *timeline)
{
	return RecoveryInProgress() ? GetXLogReplayRecPtr(timeline) : GetFlushRecPtr(timeline);
}

/* Where the log ended when it was last read: there may be half a record behind the last whole one. One reader per process. */
static XLogRecPtr log_end_read = InvalidXLogRecPtr;

/*
 * A slot with failover: standbys are asked whether they have the log up to standby_goal, and until they do nothing beyond standby_end is
 * read. The goal stays until it is reached, or it would run away from them.
 */
static bool waits_for_standbys;
static XLogRecPtr standby_goal;
static XLogRecPtr standby_end;

/* Up to where the log may be read now. */
static XLogRecPtr
readable_end(TimeLineID *timeline)
{
	XLogRecPtr	end = decode_log_end(timeline);

	if (!waits_for_standbys)
		return end;
	if (standby_goal <= standby_end)
		standby_goal = end;
	if (standby_goal > standby_end && cdc_standbys_have(standby_goal))
		standby_end = standby_goal;
	return Min(end, standby_end);
}

/* ---- settings ---- */

/* Is our plugin in the list of those that the administrator lets run, where there is such a list? */
static bool
plugin_is_allowed(char **list)
{
	List	   *names;
	ListCell   *lc;
	const char *value = GetConfigOption("output_plugin_libraries", true, false);

	*list = NULL;
	if (value == NULL)
		return true;
	*list = pstrdup(value);
	if (!SplitIdentifierString(pstrdup(value), ',', &names))
		return false;
	foreach(lc, names)
	{
		if (strcmp(lfirst(lc), PLUGIN) == 0)
			return true;
	}
	return false;
}

void
decode_require_settings(void)
{
	char	   *list;

	if (wal_level < WAL_LEVEL_LOGICAL)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("logical decoding needs \"wal_level\" to be \"logical\""),
				 errhint("Run ALTER SYSTEM SET wal_level = 'logical' and restart the server.")));
	if (max_replication_slots == 0)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("logical decoding needs replication slots"),
				 errdetail("\"max_replication_slots\" is 0."),
				 errhint("Run ALTER SYSTEM SET max_replication_slots = 10 and restart the server.")));
	if (!plugin_is_allowed(&list))
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("\"%s\" is not among the output plugins that this server lets run", PLUGIN),
				 errdetail("\"output_plugin_libraries\" is \"%s\".", list),
				 errhint("Run ALTER SYSTEM SET output_plugin_libraries = %s, %s and reload the configuration.",
						 list[0] != '\0' ? list : "pgoutput", PLUGIN)));
}

/* ---- slots ---- */

void
decode_slot_look(const char *name, DecodeSlot *result)
{
	ReplicationSlot *slot;

	memset(result, 0, sizeof(*result));
	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	slot = SearchNamedReplicationSlot(name, false);
	if (slot != NULL)
	{
		SpinLockAcquire(&slot->mutex);
		result->exists = true;
		result->is_ours = slot->data.database == MyDatabaseId && strcmp(NameStr(slot->data.plugin), PLUGIN) == 0;
		result->active_pid = slot->active_pid;
		result->confirmed_lsn = slot->data.confirmed_flush;
		result->restart_lsn = slot->data.restart_lsn;
		result->is_invalidated = cdc_slot_is_invalidated(slot);
		result->is_failover = cdc_slot_is_failover(slot);
		result->is_synced = cdc_slot_is_synced(slot);
		SpinLockRelease(&slot->mutex);
	}
	LWLockRelease(ReplicationSlotControlLock);
}

bool
decode_slot_drop(const char *name)
{
	DecodeSlot	slot;

	decode_slot_look(name, &slot);
	if (!slot.exists)
		return true;
	if (slot.active_pid != 0)
		return false;
	ReplicationSlotDrop(name, true);
	return true;
}

/*
 * Pages for a decoding context. Returns how many bytes of the page there are, or
 * -1 when the log does not reach so far yet.
 */
static int
read_page(XLogReaderState *reader, XLogRecPtr page, int wanted, XLogRecPtr target, char *data)
{
	TimeLineID	now;
	XLogRecPtr	end = readable_end(&now);
	WALReadError error;

	log_end_read = end;
	/* also finds the timeline that the page is on: it may be one that the server has left since */
	XLogReadDetermineTimeline(reader, page, wanted, now);
	if (reader->currTLI != now)
		end = reader->currTLIValidUntil;
	if (page + wanted > end)
		return -1;
	if (!WALRead(reader, data, page, XLOG_BLCKSZ, reader->currTLI, &error))
		WALReadRaiseError(&error);
	return (int) Min(end - page, XLOG_BLCKSZ);
}

/* The same while a slot is made: then the log has to grow until all transactions that run have ended. */
static int
read_page_waiting(XLogReaderState *reader, XLogRecPtr page, int wanted, XLogRecPtr target, char *data)
{
	for (;;)
	{
		int			got = read_page(reader, page, wanted, target, data);

		if (got >= 0)
			return got;
		(void) util_wait(PGINVALID_SOCKET, LOOK_MS, UTIL_WAIT_WAL);
	}
}

static XLogReaderRoutine reading = {
	.page_read = read_page,
	.segment_open = wal_segment_open,
	.segment_close = wal_segment_close
};

static XLogReaderRoutine reading_and_waiting = {
	.page_read = read_page_waiting,
	.segment_open = wal_segment_open,
	.segment_close = wal_segment_close
};

/* Snapshots and relations of a decoding need an owner although no transaction is open. */
static ResourceOwner
take_resources(void)
{
	ResourceOwner owner = ResourceOwnerCreate(NULL, "cdc decoding");

	CurrentResourceOwner = owner;
	return owner;
}

static void
ignore_record(void *arg, const CdcRecord *record)
{
}

XLogRecPtr
decode_slot_create(const char *name, bool failover)
{
	LogicalDecodingContext *context;
	XLogRecPtr	start;
	ResourceOwner saved = CurrentResourceOwner;
	ResourceOwner owner;

	decode_require_settings();
	CheckLogicalDecodingRequirements();

	/* until it is complete it goes with this process */
	cdc_replication_slot_create(name, RS_EPHEMERAL, failover);
	waits_for_standbys = false;
	owner = take_resources();
	decode_take(ignore_record, NULL, NULL);
	context = CreateInitDecodingContext(PLUGIN, NIL, false, InvalidXLogRecPtr, &reading_and_waiting, NULL, NULL, NULL);
	DecodingContextFindStartpoint(context);
	start = MyReplicationSlot->data.confirmed_flush;
	FreeDecodingContext(context);
	ReplicationSlotPersist();
	ReplicationSlotRelease();

	CurrentResourceOwner = saved;
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_BEFORE_LOCKS, true, true);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_LOCKS, true, true);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_AFTER_LOCKS, true, true);
	ResourceOwnerDelete(owner);
	return start;
}

void
decode_slot_set_failover(const char *name, bool failover)
{
	cdc_slot_set_failover(name, failover);
}

/* ---- reading ---- */

/*
 * A process that only decodes is passed over when the server looks which dead rows somebody may still see. Chunks of the initial copy are read
 * here too, with snapshots of now: what these see has to stay.
 */
static void
count_own_snapshots(void)
{
	LWLockAcquire(ProcArrayLock, LW_EXCLUSIVE);
	MyProc->statusFlags &= ~PROC_IN_LOGICAL_DECODING;
	ProcGlobal->statusFlags[MyProc->pgxactoff] = MyProc->statusFlags;
	LWLockRelease(ProcArrayLock);
}

DecodeReader *
decode_reader_open(const char *slot, XLogRecPtr from, List *options)
{
	DecodeReader *reader = palloc0(sizeof(DecodeReader));

	decode_require_settings();
	CheckLogicalDecodingRequirements();
	reader->cxt = CurrentMemoryContext;
	reader->owner = take_resources();
	cdc_replication_slot_acquire(slot);
	waits_for_standbys = cdc_slot_is_failover(MyReplicationSlot);
	standby_goal = standby_end = InvalidXLogRecPtr;
	reader->context = CreateDecodingContext(from, options, false, &reading, NULL, NULL, NULL);
	MemoryContextSwitchTo(reader->cxt);
	count_own_snapshots();

	/* what lies before it is read again, for transactions that were open then, and not handed on */
	XLogBeginRead(reader->context->reader, MyReplicationSlot->data.restart_lsn);
	return reader;
}

bool
decode_reader_step(DecodeReader *reader)
{
	LogicalDecodingContext *context = reader->context;
	char	   *error = NULL;
	XLogRecord *record;

	CurrentResourceOwner = reader->owner;
	record = XLogReadRecord(context->reader, &error);
	if (record == NULL && error != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("could not read the write-ahead log"),
				 errdetail("%s", error)));
	if (record == NULL)
		return false;
	LogicalDecodingProcessRecord(context, context->reader);
	MemoryContextSwitchTo(reader->cxt);
	return true;
}

XLogRecPtr
decode_reader_position(const DecodeReader *reader)
{
	XLogRecPtr	position = reader->context->reader->EndRecPtr;

	/* before the first record it is where reading began, which lies before what was confirmed */
	return Max(position, MyReplicationSlot->data.confirmed_flush);
}

void
decode_reader_confirm(DecodeReader *reader, XLogRecPtr lsn)
{
	if (lsn > MyReplicationSlot->data.confirmed_flush)
		LogicalConfirmReceivedLocation(lsn);
}

uint64
decode_reader_held_back(const DecodeReader *reader)
{
	const ReplicationSlot *slot = MyReplicationSlot;

	if (XLogRecPtrIsInvalid(slot->candidate_restart_valid) || slot->candidate_restart_valid > decode_reader_position(reader) ||
		slot->candidate_restart_lsn <= slot->data.restart_lsn)
		return 0;
	return slot->candidate_restart_lsn - slot->data.restart_lsn;
}

/* Time until the next look: a log that stands still is looked at less often. */
static long
look_ms(void)
{
	static XLogRecPtr seen = InvalidXLogRecPtr;
	static int	looks = 0;

	looks = log_end_read == seen ? looks + 1 : 0;
	seen = log_end_read;
	return looks < QUIET_LOOKS ? LOOK_MS : QUIET_LOOK_MS;
}

void
decode_reader_wait(DecodeReader *reader, long timeout_ms)
{
	ConditionVariable *flushed = cdc_wal_flushed();
	TimeLineID	timeline;

	if (waits_for_standbys && standby_goal > standby_end)
	{
		ConditionVariable *confirmed = cdc_standbys_confirmed();

		ConditionVariablePrepareToSleep(confirmed);
		if (!cdc_standbys_have(standby_goal))
			(void) ConditionVariableTimedSleep(confirmed, timeout_ms, util_wait_event(UTIL_WAIT_WAL));
		ConditionVariableCancelSleep();
		return;
	}
	if (flushed == NULL)
	{
		(void) util_wait(PGINVALID_SOCKET, Min(timeout_ms, look_ms()), UTIL_WAIT_WAL);
		return;
	}
	/* first get in line, then look: what is flushed in between is not missed */
	ConditionVariablePrepareToSleep(flushed);
	if (decode_log_end(&timeline) <= log_end_read)
		(void) ConditionVariableTimedSleep(flushed, timeout_ms, util_wait_event(UTIL_WAIT_WAL));
	ConditionVariableCancelSleep();
}

void
decode_reader_close(DecodeReader *reader)
{
	CurrentResourceOwner = reader->owner;
	FreeDecodingContext(reader->context);
	ReplicationSlotRelease();
}
