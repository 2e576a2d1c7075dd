/*-------------------------------------------------------------------------
 *
 * ingest_worker.c
 *	  One per incoming pipeline: follows the source and applies what it says.
 *
 * NOTES
 *	  source next -> apply event -> flush, in one loop. The source is opened at
 *	  the position that is durable, and opened again there whenever the apply
 *	  side undid what was open (APPLY_REWIND). When the source has nothing more
 *	  to say for the moment, what is open is committed at once, so an idle stream
 *	  is visible within milliseconds; under load the apply side's bounds decide.
 *	  Between flushes the worker looks whether tables can be handed over from the
 *	  snapshot to the stream, and whether others want to join: these do so between
 *	  two source transactions, with everything before durable.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "apply/apply.h"
#include "pipeline/worker.h"
#include "snapshot/snapshot.h"
#include "source/source.h"
#include "source/source_choose.h"
#include "util/util_wait.h"

/* How long one wait for the source lasts; shorter while a hand-over is near. */
#define IDLE_WAIT_MS 1000
#define HAND_OVER_WAIT_MS 50

/* How often it is shown how far a long source transaction is. */
#define TELL_MS 500

/* How often it is looked whether dead letters are too old or too many. */
#define PRUNE_MS 60000

typedef struct Ingest
{
	Worker	   *worker;
	CatalogPositionLog *log;
	Apply	   *apply;
	CdcSource  *source;
	int			pending;		/* tables not handed over yet */
	bool		left_over;		/* stopped tables may have something to clear away */
	bool		join_due;		/* look whether tables want to join */
	bool		letters_due;	/* a request that concerns dead letters may be open */
	TimestampTz pruned_at;		/* dead letters were last looked at for their age; 0: there is more to remove */
	bool		put_off;		/* some want to, but are locked at the source */
	TimestampTz put_off_at;		/* when they were last tried */
	CdcPosition join_at;		/* known: some want to when the stream has come there */
	uint64		stops_seen;		/* of apply_stop_count, when tables were last counted */
	bool		healthy;		/* failures were forgotten */
	CdcPosition started_at;		/* durable position that the worker began with */
	bool		copy_only;		/* stop when all tables have been handed over (snapshot "only") */
	ApplyStats	shown;			/* counters as they were added to the slot's last */
	bool		said_state;		/* the pipeline's state was written since the source was opened */
	TimestampTz handed_over_at; /* last look */
	TimestampTz event_at;		/* last word of the source */
	TimestampTz idle_at;		/* the source last had nothing more */
	TimestampTz told_at;		/* it was last shown how far a source transaction is */
} Ingest;

static void
publish_table(void *arg, int32 table_id, const ApplyTableStats *delta)
{
	Ingest	   *ingest = arg;
	ShmemTableStat stat = {
		.inserts = delta->inserts,
		.updates = delta->updates,
		.deletes = delta->deletes,
		.conflicts = delta->conflicts,
		.values_replaced = delta->values_replaced,
		.dead_letters = delta->dead_letters,
		.letters_lost = delta->letters_lost,
		.tier_is_known = delta->tier_is_known,
		.tier = delta->tier,
		.collapsed = delta->is_collapsed,
		.last_change_at = GetCurrentTimestamp(),
	};

	shmem_table_stat_add(ingest->worker->pipeline_id, table_id, &stat);
}

/* Has anything become durable that was not when the worker began? */
static bool
has_advanced(const Ingest *ingest)
{
	const CdcPosition *durable = &apply_durable(ingest->apply)->position;
	int			order = 1;

	if (!cdc_position_is_known(durable))
		return false;
	return !cdc_position_is_known(&ingest->started_at) ||
		!cdc_position_compare(durable, &ingest->started_at, &order) || order > 0;
}

static void
publish(Ingest *ingest)
{
	ShmemPipeline *slot = ingest->worker->slot;
	const ApplyStats *stats = apply_stats(ingest->apply);
	ApplyProgress progress;

	apply_progress(ingest->apply, &progress);
	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	slot->transactions += stats->transactions - ingest->shown.transactions;
	slot->changes += stats->changes - ingest->shown.changes;
	slot->bytes += stats->bytes - ingest->shown.bytes;
	slot->flushes += stats->flushes - ingest->shown.flushes;
	ingest->shown = *stats;
	if (stats->source_time_us != 0)
		slot->source_time_us = stats->source_time_us;
	/* what the worker before this one saw is true until this one has seen something */
	if (ingest->event_at != 0)
		slot->last_event_at = ingest->event_at;
	if (ingest->idle_at != 0)
		slot->caught_up_at = ingest->idle_at;
	slot->durable = apply_durable(ingest->apply)->position;
	slot->streamed = *apply_streamed(ingest->apply);
	slot->progress = progress;
	if (!ingest->healthy)
	{
		/* an error that comes again at the same place is one in a row, however often the connection is made */
		ingest->healthy = ingest->idle_at != 0 || has_advanced(ingest);
		if (ingest->healthy)
			slot->workers[SHMEM_INGEST].failures = 0;
	}
	LWLockRelease(shmem->lock);
}

static void
tell_progress(void *arg)
{
	Ingest	   *ingest = arg;
	TimestampTz now = GetCurrentTimestamp();

	if (!TimestampDifferenceExceeds(ingest->told_at, now, TELL_MS))
		return;
	ingest->told_at = now;
	ingest->event_at = now;
	publish(ingest);
}

/* Ask the manager for the snapshot workers. */
static void
want_snapshot_worker(Ingest *ingest)
{
	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	ingest->worker->slot->snapshot_wishes++;
	LWLockRelease(shmem->lock);
	shmem_wake_database(MyDatabaseId);
}

/* Has the first of them done all that was asked for? */
static bool
snapshot_worker_is_idle(const Ingest *ingest)
{
	ShmemPipeline *slot = ingest->worker->slot;
	bool		idle;

	LWLockAcquire(shmem->lock, LW_SHARED);
	idle = slot->workers[SHMEM_SNAPSHOT].wishes_done == slot->snapshot_wishes;
	LWLockRelease(shmem->lock);
	return idle;
}

static void
say_state(Ingest *ingest)
{
	ingest->worker->slot->state_wanted = false;	/* before the writing: a later wish counts */
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	catalog_pipeline_set_state(ingest->worker->pipeline_id,
							   ingest->pending > 0 || ingest->copy_only ? CATALOG_PIPELINE_SNAPSHOT : CATALOG_PIPELINE_STREAMING,
							   NULL, NULL);
	PopActiveSnapshot();
	CommitTransactionCommand();
	ingest->said_state = true;

	pgstat_report_activity(STATE_RUNNING,
						   psprintf("%s pipeline %s",
									ingest->pending > 0 ? "snapshot of" : "streaming",
									ingest->worker->pipeline->name));
}

/* A pipeline whose tables are all stopped has nothing left to do. */
static void
check_tables_left(Ingest *ingest)
{
	int			total;
	int			pending;
	int			stopped;

	ingest->stops_seen = apply_stop_count(ingest->apply);
	apply_count_tables(ingest->apply, &total, &pending, &stopped);
	/* whoever looks may be the first to see that a snapshot worker has stopped the last table that was still to come */
	if ((pending > 0) != (ingest->pending > 0))
		ingest->said_state = false;
	ingest->pending = pending;
	ingest->left_over |= stopped > 0;
	/* before they are all stopped for good, some may begin anew */
	if (stopped < total || total == 0 || ingest->join_due || ingest->put_off)
		return;
	/* so that a table that begins anew does not meet again what stopped it */
	if (!IsTransactionState())
		apply_flush(ingest->apply, true);
	ereport(ERROR,
			(errcode(CDC_ERRCODE_TABLE_CHANGED),
			 errmsg("all tables of pipeline \"%s\" are stopped", ingest->worker->pipeline->name),
			 errdetail_plural("It has %d table.", "It has %d tables.", total, total),
			 errhint("pg_stat_cdc_table shows the reason of each.")));
}

/* With snapshot "only", when nothing is left to be copied or indexed: the pipeline stops itself. Outside a transaction. */
static void
stop_when_copied(Ingest *ingest)
{
	const CatalogPipeline *pipeline = ingest->worker->pipeline;

	if (!ingest->copy_only || ingest->pending > 0 || ingest->put_off || snapshot_index_is_due(pipeline->id))
		return;
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	catalog_pipeline_set_enabled(pipeline->id, false);
	PopActiveSnapshot();
	CommitTransactionCommand();
	ereport(LOG,
			(errmsg("pipeline \"%s\" has copied its tables and stops", pipeline->name),
			 errdetail("Its option \"snapshot\" is \"only\"."),
			 errhint("cdc_start_pipeline() lets it go on from here.")));
	shmem_wake_database(MyDatabaseId);
	proc_exit(0);
}

/*
 * Shall the pipeline stop after the copy? Not when it was started again afterwards;
 * its state tells that from a crash between hand-over and stop.
 */
static bool
is_copy_only(const Ingest *ingest)
{
	const CatalogPipeline *pipeline = ingest->worker->pipeline;

	return snapshot_copies_only(pipeline) &&
		(ingest->pending > 0 || pipeline->state == CATALOG_PIPELINE_SNAPSHOT);
}

/* Hand over what can be; outside a transaction. */
static void
hand_over(Ingest *ingest, TimestampTz now)
{
	int			before = ingest->pending;
	int			pending;
	int			n;
	bool		reread;

	ingest->handed_over_at = now;
	n = snapshot_hand_over(ingest->worker->pipeline_id,
						   &apply_durable(ingest->apply)->position, &pending, &ingest->left_over, &reread);
	if (reread && snapshot_worker_is_idle(ingest))
		want_snapshot_worker(ingest);
	if (n == 0 && pending == before)
		return;

	apply_reload_tables(ingest->apply);
	ingest->join_due = true;	/* a swap may have asked for it */
	if (n > 0)
		shmem_wake_database(MyDatabaseId);	/* and outgoing pipelines for a copy of the table */
	check_tables_left(ingest);
	if (ingest->pending == 0)
		say_state(ingest);
	if (n > 0 && snapshot_index_is_due(ingest->worker->pipeline_id))
		want_snapshot_worker(ingest);
}

/*
 * Let tables join or leave, or begin anew: between two source transactions,
 * with all that was read durable, so that the durable position is where they
 * join. A position that is not known yet comes with the first event. again: also
 * those that were locked at the source when they wanted to. APPLY_REWIND: what was
 * read could not be made durable, and comes again first.
 */
static ApplyResult
join(Ingest *ingest, bool again)
{
	const CatalogPosition *durable = apply_durable(ingest->apply);
	bool		taken;

	if (apply_in_transaction(ingest->apply))
		return APPLY_OK;
	if (apply_flush(ingest->apply, true) == APPLY_REWIND)
		return APPLY_REWIND;
	if (!cdc_position_is_known(&durable->position))
		return APPLY_OK;

	/* before the look: a later wish counts */
	ingest->worker->slot->join_wanted = false;
	ingest->join_due = false;
	apply_gathered(ingest->apply);
	/* tables that left must be forgotten before others come that may be called like them */
	apply_reload_tables(ingest->apply);
	taken = snapshot_join(ingest->worker->pipeline_id, ingest->worker->endpoint, durable, again, &ingest->put_off,
						  &ingest->join_at, &ingest->join_due);
	if (taken)
	{
		ingest->put_off_at = GetCurrentTimestamp();
		apply_reload_tables(ingest->apply);
		ingest->said_state = false;
	}
	check_tables_left(ingest);
	if (!ingest->said_state && ingest->pending > 0)
		want_snapshot_worker(ingest);
	return APPLY_OK;
}

/* Work on what was asked for concerning dead letters; between two source transactions. */
static ApplyResult
work_on_letters(Ingest *ingest)
{
	if (apply_in_transaction(ingest->apply))
		return APPLY_OK;
	if (apply_flush(ingest->apply, true) == APPLY_REWIND)
		return APPLY_REWIND;
	ingest->worker->slot->letters_wanted = false;	/* before the look: a later wish counts */
	ingest->letters_due = apply_replay_step(ingest->apply);
	return APPLY_OK;
}

/* Remove dead letters, now and then; between two source transactions. */
static ApplyResult
prune_letters(Ingest *ingest, TimestampTz now)
{
	if (apply_in_transaction(ingest->apply))
		return APPLY_OK;
	if (apply_flush(ingest->apply, true) == APPLY_REWIND)
		return APPLY_REWIND;
	ingest->pruned_at = apply_letters_prune(ingest->apply) ? 0 : now;
	return APPLY_OK;
}

/* Has the stream come to where tables that are put off want to join? */
static bool
is_join_place(const Ingest *ingest)
{
	int			order;

	return cdc_position_is_known(&ingest->join_at) &&
		(!cdc_position_compare(&apply_durable(ingest->apply)->position, &ingest->join_at, &order) || order >= 0);
}

/* Somebody wants us to hold still: nothing is open, and all that came is durable. Then read the tables anew. */
static void
hold_still(Ingest *ingest)
{
	ShmemPipeline *slot = ingest->worker->slot;
	bool		wanted = true;

	publish(ingest);
	while (wanted)
	{
		LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
		wanted = slot->hold_pid != 0;
		slot->held_by = wanted ? MyProcPid : 0;
		if (slot->hold_latch != NULL)
			SetLatch(slot->hold_latch);
		LWLockRelease(shmem->lock);
		worker_check_interrupts();
		if (wanted)
			(void) util_wait(PGINVALID_SOCKET, IDLE_WAIT_MS, UTIL_WAIT_SNAPSHOT);
	}
	apply_reload_tables(ingest->apply);
	check_tables_left(ingest);
}

/*
 * The loop over events, until a rewind. Flushes whenever the source falls
 * silent or the apply side's bounds are reached.
 */
static void
follow(Ingest *ingest)
{
	bool		wait = false;
	bool		any = false;	/* has an event come? */

	for (;;)
	{
		CdcEvent	event;
		CdcSourceResult result;
		TimestampTz now;

		worker_check_interrupts();

		result = cdc_source_next(ingest->source,
								 !wait || ingest->letters_due ? 0 : ingest->pending > 0 ? HAND_OVER_WAIT_MS : IDLE_WAIT_MS,
								 &event);
		if (result == CDC_SOURCE_EVENT)
		{
			any = true;
			if (wait)
			{
				/* shown at once, for one source transaction may take long */
				ingest->event_at = GetCurrentTimestamp();
				publish(ingest);
				wait = false;
			}
			if (apply_event(ingest->apply, &event) == APPLY_REWIND)
				return;
			if (!apply_flush_due(ingest->apply))
				continue;
			if (apply_flush(ingest->apply, false) == APPLY_REWIND)
				return;
			now = GetCurrentTimestamp();
			ingest->event_at = now;
		}
		else
		{
			now = GetCurrentTimestamp();
			if (any && !wait)
				ingest->event_at = now;
			if (apply_flush(ingest->apply, ingest->pending > 0) == APPLY_REWIND)
				return;
			if (result == CDC_SOURCE_AT_END && !apply_in_transaction(ingest->apply))
				ingest->idle_at = now;
			if (wait && !IsTransactionState())
				(void) pgstat_report_stat(true);	/* what a commit shortly before had to keep back */
			wait = true;
		}

		cdc_source_ack(ingest->source, &apply_durable(ingest->apply)->position);
		if (apply_stop_count(ingest->apply) != ingest->stops_seen)
		{
			check_tables_left(ingest);
			ingest->said_state = false;
		}
		if (apply_take_join_wish(ingest->apply))
			ingest->join_due = true;
		if (!IsTransactionState())	/* else a source transaction is half way through */
		{
			bool		again = ingest->put_off &&
				TimestampDifferenceExceeds(ingest->put_off_at, now, SNAPSHOT_RETRY_SECONDS * 1000);

			if (apply_take_index_wish(ingest->apply))
				want_snapshot_worker(ingest);
			if (is_join_place(ingest) || ingest->join_due || ingest->worker->slot->join_wanted || again ||
				apply_gathering_is_over(ingest->apply, result != CDC_SOURCE_EVENT))
			{
				if (join(ingest, again || is_join_place(ingest)) == APPLY_REWIND)
					return;
			}
			if ((ingest->letters_due || ingest->worker->slot->letters_wanted) && work_on_letters(ingest) == APPLY_REWIND)
				return;
			if (TimestampDifferenceExceeds(ingest->pruned_at, now, PRUNE_MS) && prune_letters(ingest, now) == APPLY_REWIND)
				return;
			if (ingest->worker->slot->hold_pid != 0 && !apply_in_transaction(ingest->apply))
			{
				if (apply_flush(ingest->apply, true) == APPLY_REWIND)
					return;
				hold_still(ingest);
			}
			if (!ingest->said_state || ingest->worker->slot->state_wanted)
				say_state(ingest);
			if ((ingest->pending > 0 || ingest->left_over) &&
				TimestampDifferenceExceeds(ingest->handed_over_at, now, HAND_OVER_WAIT_MS))
				hand_over(ingest, now);
			stop_when_copied(ingest);
		}
		publish(ingest);
	}
}

/* The stream cannot go on before certain copies are complete: hold still for whom that helps, and look. */
static void
await_copies(Ingest *ingest)
{
	bool		waits = false;

	while (apply_awaits_copy(ingest->apply))
	{
		if (!waits)
			pgstat_report_activity(STATE_RUNNING, psprintf("pipeline %s waits for a copy", ingest->worker->pipeline->name));
		waits = true;
		worker_check_interrupts();
		if (ingest->worker->slot->hold_pid != 0)
			hold_still(ingest);
		if (!ingest->said_state && ingest->pending > 0)
			want_snapshot_worker(ingest);
		(void) util_wait(PGINVALID_SOCKET, HAND_OVER_WAIT_MS, UTIL_WAIT_SNAPSHOT);
	}
	ingest->said_state &= !waits;
}

/* First run: nothing is made here before the source is known to be one that can be followed. */
static void
prepare(Ingest *ingest)
{
	const Worker *worker = ingest->worker;

	cdc_source_require(source_mysql_create(worker->endpoint, worker->pipeline_id, NULL, NULL));
	snapshot_prepare(worker->pipeline, worker->endpoint, ingest->log);
}

/* First run after a dump was restored and a position given. */
static void
adopt(Ingest *ingest)
{
	const Worker *worker = ingest->worker;

	cdc_source_require(source_mysql_create(worker->endpoint, worker->pipeline_id, NULL, NULL));
	snapshot_adopt(worker->pipeline, worker->endpoint, ingest->log);
}

/* Find the server of the position, or another one that can take its place. */
static void
choose_server(Ingest *ingest)
{
	const Worker *worker = ingest->worker;
	MemoryContext cxt = AllocSetContextCreate(worker->cxt, "cdc choose server", ALLOCSET_DEFAULT_SIZES);
	CatalogMove move;

	MemoryContextSwitchTo(cxt);
	if (source_choose(worker->endpoint, worker->pipeline, catalog_position_log_current(ingest->log), &move))
		snapshot_move(worker->pipeline, ingest->log, &move);
	MemoryContextSwitchTo(worker->cxt);
	MemoryContextDelete(cxt);
}

static const CdcPosition *
open_transaction(void *arg)
{
	return apply_open_transaction(arg);
}

static void
ingest_run(Worker *worker)
{
	Ingest		ingest = {.worker = worker,.join_due = true,.left_over = true,.letters_due = true};
	const CatalogPosition *current;
	MemoryContext stream_cxt;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	ingest.log = catalog_position_log_open(worker->pipeline_id, worker->cxt);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(worker->cxt);

	pgstat_report_activity(STATE_RUNNING, psprintf("starting pipeline %s", worker->pipeline->name));

	current = catalog_position_log_current(ingest.log);
	if (current == NULL)
		prepare(&ingest);
	else if (current->identity[0] == '\0')
		adopt(&ingest);
	else
		choose_server(&ingest);
	source_complete_gtids(worker->endpoint, ingest.log);

	ingest.apply = apply_create(worker->pipeline, ingest.log, worker->endpoint, publish_table, tell_progress, &ingest);
	ingest.started_at = apply_durable(ingest.apply)->position;
	apply_refuse_cascades(ingest.apply);
	(void) join(&ingest, true);	/* nothing was read yet that could fail */
	worker->transaction_arg = ingest.apply;
	worker->transaction = open_transaction;
	check_tables_left(&ingest);
	ingest.copy_only = is_copy_only(&ingest);
	if (ingest.pending > 0 || snapshot_index_is_due(worker->pipeline_id))
		want_snapshot_worker(&ingest);

	stream_cxt = AllocSetContextCreate(worker->cxt, "cdc stream", ALLOCSET_DEFAULT_SIZES);
	for (;;)
	{
		const CatalogPosition *durable = apply_durable(ingest.apply);
		CdcSourceStart start = {
			.identity = durable->identity,
			.position = durable->position,
			.gtids = durable->gtids,
		};

		MemoryContextSwitchTo(stream_cxt);
		ingest.source = source_mysql_create(worker->endpoint, worker->pipeline_id,
											apply_want_table, ingest.apply);
		cdc_source_open(ingest.source, &start);
		publish(&ingest);
		follow(&ingest);
		cdc_source_close(ingest.source);
		MemoryContextSwitchTo(worker->cxt);
		MemoryContextReset(stream_cxt);
		check_tables_left(&ingest);
		await_copies(&ingest);
	}
}

void
cdc_ingest_main(Datum arg)
{
	worker_main(SHMEM_INGEST, ingest_run);
}
