/*-------------------------------------------------------------------------
 *
 * export_worker.c
 *	  One per outgoing pipeline: decodes this server's log and hands what it
 *	  says to the sink.
 *
 * NOTES
 *	  decode step -> record -> sink write, in one loop, and now and then a flush
 *	  of the sink. The slot hears only of what a flush has made durable.
 *
 *	  Exactly once: the sink keeps its own position beside its data. After a
 *	  restart the slot gives again what was not confirmed to it, and transactions
 *	  that the sink has already are left out by their end in the log.
 *
 *	  Where nothing that is shipped happens the log must not be held back either.
 *	  Then the slot is confirmed beyond the sink's position, and a row of
 *	  cdc_bridge.export_state says so first. So at each start three positions have
 *	  to fit: the slot never stands behind both the sink's and the row's, and the
 *	  sink never before the one that the row remembers. Anything else means that
 *	  somebody moved the slot, made another one of the same name, or took the sink
 *	  back to an older state. Changes are missing then, or would come twice, and the
 *	  pipeline stops and says which.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/timeline.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "catalog/catalog_dead_letter.h"
#include "catalog/catalog_export.h"
#include "catalog/catalog_history.h"
#include "compat/pg_compat.h"
#include "decode/decode_reader.h"
#include "pipeline/export_copy.h"
#include "pipeline/export_history.h"
#include "pipeline/export_letter.h"
#include "pipeline/export_plugin.h"
#include "pipeline/export_replay.h"
#include "pipeline/export_rights.h"
#include "pipeline/export_stop.h"
#include "pipeline/export_transaction.h"
#include "pipeline/export_watch.h"
#include "pipeline/worker.h"
#include "sink/sink.h"
#include "util/util_error.h"
#include "util/util_wait.h"

/* How long one wait for the log lasts: how soon a wish that this process may leave is seen. */
#define IDLE_WAIT_MS 100

/* After so many records of the log, or of a transaction, without a pause: look at clock and wishes. */
#define LOOK_RECORDS 256

/* How much of the log may be held back by a slot that nothing was shipped from. */
#define QUIET_BYTES (1024 * 1024)

typedef struct Export
{
	Worker	   *worker;
	CatalogExport *state;
	ExportRights *rights;
	CdcSink    *sink;
	DecodeReader *reader;
	ExportCopy *copy;
	CatalogChangeRules change_rules;
	ExportLetters *letters;
	ExportReplay *replay;
	ExportHistory *history;
	CdcSinkPosition durable;	/* the sink has it */
	XLogRecPtr	handed;			/* end of the last transaction or message that the sink got */
	bool		skipping;		/* the transaction that is coming is there already */
	bool		told_state;
	bool		told_streaming;
	int			flush_max_ms;
	uint64		flush_max_bytes;
	TimestampTz handed_at;		/* when the first one came that is not flushed; 0: there is none */
	uint64		flushed_bytes;	/* of sink->bytes */
	uint64		shown_bytes;	/* the same */
	uint64		records;		/* received */
	int64		transactions;
	int64		changes;
	int64		flushes;
	int64		source_time_us; /* of the last transaction that came */
	TimestampTz idle_at;
} Export;

/* ---- what is kept in the catalog ---- */

static void
load_state(Export *export)
{
	MemoryContext old;

	export_transaction_begin(true);
	old = MemoryContextSwitchTo(export->worker->cxt);
	export->state = catalog_export_load(export->worker->pipeline_id);
	export->rights = export_rights_load(export->worker->pipeline);
	MemoryContextSwitchTo(old);
	export_transaction_end(false, export->worker->cxt);
}

static void
say_state(Export *export)
{
	bool		streaming = export_copy_is_done(export->copy);
	char		activity[NAMEDATALEN + 64];

	if (export->told_state && export->told_streaming == streaming && !export->worker->slot->state_wanted)
		return;
	export->worker->slot->state_wanted = false;
	export_transaction_begin(true);
	catalog_pipeline_set_state(export->worker->pipeline_id, streaming ? CATALOG_PIPELINE_STREAMING : CATALOG_PIPELINE_SNAPSHOT, NULL, NULL);
	export_transaction_end(false, export->worker->cxt);
	export->told_state = true;
	export->told_streaming = streaming;
	snprintf(activity, sizeof(activity), streaming ? "streaming pipeline %s" : "pipeline %s copies its tables and streams",
			 export->worker->pipeline->name);
	pgstat_report_activity(STATE_RUNNING, activity);
}

static void
publish(Export *export)
{
	ShmemPipeline *slot = export->worker->slot;

	LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
	slot->transactions += export->transactions;
	slot->changes += export->changes;
	slot->bytes += (int64) (export->sink->bytes - export->shown_bytes);
	slot->flushes += export->flushes;
	slot->source_time_us = export->source_time_us;
	slot->last_event_at = GetCurrentTimestamp();
	slot->caught_up_at = export->idle_at;
	/* who waits for it means what is in the sink; in the middle of a transaction the log is read up to its end */
	if (export->handed_at == 0 && !export->sink->in_transaction)
		slot->export.decoded_lsn = decode_reader_position(export->reader);
	slot->export.durable_lsn = export->durable.lsn;
	slot->export.confirmed_lsn = export->state->confirmed_lsn;
	slot->workers[SHMEM_INGEST].failures = 0;
	LWLockRelease(shmem->lock);
	export->transactions = export->changes = export->flushes = 0;
	export->shown_bytes = export->sink->bytes;
}

/* ---- the slot ---- */

static char *
system_identifier(void)
{
	return psprintf(UINT64_FORMAT, GetSystemIdentifier());
}

/* Letters that came with a dump are of tables of another database. In the open transaction. */
static void
give_up_letters(Export *export)
{
	ListCell   *lc;

	foreach(lc, catalog_dead_letter_in_chunks(export->worker->pipeline_id))
		catalog_dead_letter_set_chunk(export->worker->pipeline_id, ((CatalogDeadLetter *) lfirst(lc))->id, 0, 0);
	CommandCounterIncrement();
	foreach(lc, catalog_dead_letter_tables(export->worker->pipeline_id))
		(void) catalog_dead_letter_supersede_table(export->worker->pipeline_id, (int32) lfirst_oid(lc), "the pipeline began anew");
}

/* First run: nobody has seen anything of a slot that may be there from an attempt before. */
static void
create_slot(Export *export)
{
	CatalogExport state = {.pipeline_id = export->worker->pipeline_id};
	TimeLineID	timeline;
	DecodeSlot	slot;

	state.slot_name = catalog_export_slot_name(MyDatabaseId, state.pipeline_id);
	decode_slot_look(state.slot_name, &slot);
	if (slot.exists && !decode_slot_drop(state.slot_name))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("replication slot \"%s\" is in use", state.slot_name),
				 errdetail("Process %d reads it, and pipeline \"%s\" needs it for itself.", slot.active_pid,
						   export->worker->pipeline->name),
				 errhint("End that process; the slot's name is reserved for the pipeline.")));

	pgstat_report_activity(STATE_RUNNING, psprintf("pipeline %s makes its slot, which waits for transactions that run now",
												   export->worker->pipeline->name));
	state.start_lsn = state.confirmed_lsn = state.sink_lsn = decode_slot_create(state.slot_name, catalog_export_bool(export->worker->pipeline, "failover"));
	(void) decode_log_end(&timeline);
	state.timeline = timeline;
	state.system_identifier = system_identifier();
	state.created_at = GetCurrentTimestamp();
	export_transaction_begin(true);
	catalog_export_insert(&state);
	give_up_letters(export);
	export_transaction_end(true, export->worker->cxt);
	ereport(LOG,
			(errmsg("pipeline \"%s\" ships what commits after %X/%X", export->worker->pipeline->name,
					LSN_FORMAT_ARGS(state.start_lsn)),
			 errdetail("Its replication slot is \"%s\".", state.slot_name)));
	load_state(export);
}

static _Noreturn void
throw_lost(const Export *export, const char *detail)
{
	ereport(ERROR,
			(errcode(CDC_ERRCODE_POSITION_LOST),
			 errmsg("the replication slot of pipeline \"%s\" is lost", export->worker->pipeline->name),
			 errdetail_internal("%s", detail),
			 errhint("What was committed since then is not in the sink. Drop the pipeline and make it anew, and begin with an empty sink or another name.")));
}

/*
 * A standby that was promoted goes on from where it had come to. What the sink got after that from the former primary never happened
 * here, and other transactions have its places in the log now.
 */
static void
check_timeline(Export *export, TimeLineID now)
{
	CatalogExport *state = export->state;
	List	   *history;
	XLogRecPtr	left;

	if (now == state->timeline)
		return;
	history = readTimeLineHistory(now);
	if (!tliInHistory(state->timeline, history))
		throw_lost(export, psprintf("It was on timeline %u, which is not in the history of timeline %u of this server.", state->timeline, now));
	left = tliSwitchPoint(state->timeline, history, NULL);
	if (export->durable.lsn > left)
		throw_lost(export, psprintf("This server was promoted at %X/%X, and the sink has everything up to %X/%X of the former primary.",
									LSN_FORMAT_ARGS(left), LSN_FORMAT_ARGS(export->durable.lsn)));
	export_transaction_begin(true);
	catalog_export_confirm(export->worker->pipeline_id, state->confirmed_lsn, state->sink_lsn, now);
	export_transaction_end(true, export->worker->cxt);
	state->timeline = now;
}

/* Does what is there under the slot's name still hold what the sink has not got? */
static void
check_slot(Export *export)
{
	const CatalogExport *state = export->state;
	DecodeSlot	slot;
	TimeLineID	now;
	bool		failover = catalog_export_bool(export->worker->pipeline, "failover");
	XLogRecPtr	end = decode_log_end(&now);

	if (strcmp(state->system_identifier, system_identifier()) != 0)
		throw_lost(export, psprintf("It belongs to the server with system identifier %s, and this one has %s.",
									state->system_identifier, system_identifier()));
	decode_slot_look(state->slot_name, &slot);
	if (!slot.exists)
		throw_lost(export, psprintf("There is no slot \"%s\" any more; the sink has everything up to %X/%X.%s",
									state->slot_name, LSN_FORMAT_ARGS(export->durable.lsn),
									now == state->timeline ? "" :
									CDC_HAS_FAILOVER_SLOTS ? " This server was promoted, and had no copy of it: option \"failover\" gives standbys one." :
									" This server was promoted; standbys have copies of slots from PostgreSQL 17 on."));
	if (!slot.is_ours)
		throw_lost(export, psprintf("Slot \"%s\" is of another kind, plugin or database than the one that the pipeline made.", state->slot_name));
	if (slot.is_invalidated || XLogRecPtrIsInvalid(slot.restart_lsn))
		throw_lost(export, psprintf("The server has given up slot \"%s\", as the log that it held back became too long or too old; "
									"the sink has everything up to %X/%X.", state->slot_name, LSN_FORMAT_ARGS(export->durable.lsn)));
	if (slot.confirmed_lsn > Max(export->durable.lsn, state->confirmed_lsn))
		throw_lost(export, psprintf("Slot \"%s\" stands at %X/%X, and the pipeline has only come to %X/%X: it was moved on, or made anew.",
									state->slot_name, LSN_FORMAT_ARGS(slot.confirmed_lsn),
									LSN_FORMAT_ARGS(Max(export->durable.lsn, state->confirmed_lsn))));
	check_timeline(export, now);
	if (export->durable.lsn > end)
		throw_lost(export, psprintf("The sink has everything up to %X/%X, and the log of this server ends at %X/%X: it is an older copy of the one that shipped.",
									LSN_FORMAT_ARGS(export->durable.lsn), LSN_FORMAT_ARGS(end)));
	if (slot.is_failover != failover && CDC_HAS_FAILOVER_SLOTS)
		decode_slot_set_failover(state->slot_name, failover);
}

/* ---- the sink ---- */

/* Of the owner, or of PUBLIC; sinks can do without. In the open transaction. */
static List *
load_secrets(const Worker *worker)
{
	Oid			serverid = worker->server->serverid;

	if (!SearchSysCacheExists2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(worker->owner), ObjectIdGetDatum(serverid)) &&
		!SearchSysCacheExists2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(InvalidOid), ObjectIdGetDatum(serverid)))
		return NIL;
	return GetUserMapping(worker->owner, serverid)->options;
}

static void
open_sink(Export *export)
{
	Worker	   *worker = export->worker;
	const CatalogExport *state = export->state;
	const CatalogPipeline *pipeline = worker->pipeline;
	CdcSinkTarget *target = palloc0(sizeof(CdcSinkTarget));
	const char *wrapper;
	bool		found;

	target->pipeline = pipeline;
	target->server_name = worker->server->servername;
	target->options = worker->server->options;
	target->start.lsn = state->confirmed_lsn;
	snprintf(target->start.system_identifier, sizeof(target->start.system_identifier), "%s", state->system_identifier);
	snprintf(target->start.slot, sizeof(target->start.slot), "%s", state->slot_name);

	export_transaction_begin(true);
	wrapper = MemoryContextStrdup(worker->cxt, GetForeignDataWrapper(worker->server->fdwid)->fdwname);
	MemoryContextSwitchTo(worker->cxt);
	target->secrets = load_secrets(worker);
	export->sink = cdc_sink_open(wrapper, target, &found, &export->durable);
	export_transaction_end(false, export->worker->cxt);

	if (!found && state->is_begun)
		ereport(ERROR,
				(errcode(CDC_ERRCODE_POSITION_LOST),
				 errmsg("the sink of pipeline \"%s\" is empty", pipeline->name),
				 errdetail("It had everything up to %X/%X at least.", LSN_FORMAT_ARGS(state->sink_lsn)),
				 errhint("Put back what was there; of files, the newest has to stay where it is. Or drop the pipeline and make it anew.")));
	/* after DROP EXTENSION, or in a copy that went back in time, names of slots come again: of us there can be a beginning at most */
	if (strcmp(export->durable.slot, state->slot_name) != 0 ||
		strcmp(export->durable.system_identifier, state->system_identifier) != 0 ||
		(!state->is_begun && export->durable.lsn != state->confirmed_lsn))
		ereport(ERROR,
				(errcode(CDC_ERRCODE_POSITION_LOST),
				 errmsg("the sink of pipeline \"%s\" holds what another pipeline has written", pipeline->name),
				 errdetail("That came by slot \"%s\" of the server with system identifier %s.", export->durable.slot,
						   export->durable.system_identifier),
				 errhint("Take away what is there, or give this pipeline another name or another sink.")));
	if (export->durable.lsn < state->sink_lsn)
		ereport(ERROR,
				(errcode(CDC_ERRCODE_POSITION_LOST),
				 errmsg("the sink of pipeline \"%s\" is older than it was", pipeline->name),
				 errdetail("It has everything up to %X/%X, and had it up to %X/%X.", LSN_FORMAT_ARGS(export->durable.lsn),
						   LSN_FORMAT_ARGS(state->sink_lsn)),
				 errhint("Put back what was there. Or drop the pipeline and make it anew.")));
	export->handed = export->durable.lsn;
}

/* DecodeMeet */
static void
meet(void *arg, Relation relation, const Bitmapset *columns)
{
	const Export *export = arg;

	/* a chunk of a copy has rows of now, however far back the stream is */
	export_rights_check(HistoricSnapshotActive() ? export->rights : NULL, decode_reader_position(export->reader), export->worker->pipeline,
						relation, columns);
}

/* DecodeKeep */
static bool
keep(void *arg, const DecodeLetter *letter)
{
	Export	   *export = arg;

	worker_check_interrupts();
	if (letter->op != CDC_OUT_READ && letter->txn_end <= export->durable.lsn)
		return true;
	return export_letters_keep(export->letters, letter);
}

/* DecodeFollow.wants */
static bool
follows(void *arg, Oid relid)
{
	return export_letters_follow(((const Export *) arg)->letters, relid);
}

/* DecodeFollow.shipped */
static void
note_shipped(void *arg, const DecodeShipped *shipped)
{
	Export	   *export = arg;

	if (XLogRecPtrIsInvalid(shipped->txn_end) || shipped->txn_end > export->durable.lsn)
		export_letters_shipped(export->letters, shipped);
}

static const DecodeFollow letter_follow = {.wants = follows,.shipped = note_shipped};

/* DecodeNote */
static void
note(void *arg, const DecodeStatement *statement)
{
	Export	   *export = arg;

	if (statement->txn_end > export->durable.lsn)
		export_history_keep(export->history, statement);
}

/* DecodeEmit */
static void
receive(void *arg, const CdcRecord *record)
{
	Export	   *export = arg;

	/* one transaction may take long */
	if (++export->records % LOOK_RECORDS == 0)
	{
		worker_check_interrupts();
		publish(export);
	}
	switch (record->kind)
	{
		case CDC_RECORD_BEGIN:
			export->skipping = record->txn->end_lsn <= export->durable.lsn;
			if (!export->skipping)
				cdc_sink_begin(export->sink, record);
			return;
		case CDC_RECORD_COMMIT:
			if (export->skipping)
				return;
			cdc_sink_commit(export->sink, record);
			export->handed = record->txn->end_lsn;
			export->transactions++;
			export->source_time_us = record->txn->time_us;
			break;
		case CDC_RECORD_MESSAGE:
			if (record->txn == NULL)
			{
				if (record->lsn <= export->durable.lsn)
					return;
				cdc_sink_write(export->sink, record);
				export->handed = record->lsn;
				break;
			}
			/* fall through */
		default:
			if (export->skipping)
				return;
			if (record->kind == CDC_RECORD_SCHEMA)
				cdc_sink_schema_change(export->sink, record);
			else
				cdc_sink_write(export->sink, record);
			export->changes++;
			return;
	}
	if (export->handed_at == 0)
		export->handed_at = GetCurrentTimestamp();
}

/* What was noted while the log was decoded has to be there before anything behind it counts. */
static void
write_notes(Export *export)
{
	export_copy_wrote(export->copy, export_letters_write(export->letters));
	export_copy_wrote(export->copy, export_history_write(export->history));
}

static void
flush(Export *export)
{
	CdcSinkPosition position = export->durable;

	write_notes(export);
	if (export->handed_at == 0 || !export_copy_before_flush(export->copy, decode_reader_position(export->reader), &position))
		return;
	/* while tables are copied it also counts what the stream has left to the chunks */
	position.lsn = Max(export->handed, position.lsn);
	if (export_copy_is_busy(export->copy))
		position.lsn = Max(position.lsn, decode_reader_position(export->reader));
	cdc_sink_flush(export->sink, &position);
	export->durable = position;
	export->handed_at = 0;
	export->flushed_bytes = export->sink->bytes;
	export->flushes++;
	if (export->sink->keeps_position)
		decode_reader_confirm(export->reader, position.lsn);
	export_copy_after_flush(export->copy, &position);
	export_replay_after_flush(export->replay, position.chunk);
}

static bool
flush_is_due(const Export *export)
{
	return export->handed_at != 0 &&
		(export->sink->bytes - export->flushed_bytes >= export->flush_max_bytes ||
		 TimestampDifferenceExceeds(export->handed_at, GetCurrentTimestamp(), export->flush_max_ms));
}

/* With everything flushed: let the slot forget what was read and is not shipped, or what a sink without a position has got. */
static void
confirm_quiet(Export *export)
{
	XLogRecPtr	read = decode_reader_position(export->reader);
	XLogRecPtr	known = export->state->confirmed_lsn;
	TimeLineID	timeline;

	write_notes(export);
	if (export->sink->keeps_position)
		known = Max(known, export->durable.lsn);
	if (export->handed_at != 0 || (read < known + QUIET_BYTES && decode_reader_held_back(export->reader) < QUIET_BYTES))
		return;
	(void) decode_log_end(&timeline);
	export_transaction_begin(true);
	catalog_export_confirm(export->worker->pipeline_id, read, export->durable.lsn, timeline);
	export_transaction_end(true, export->worker->cxt);
	export->state->confirmed_lsn = read;
	export->state->sink_lsn = export->durable.lsn;
	decode_reader_confirm(export->reader, read);
}

/* ---- the loop ---- */

/* Between two transactions: is it the turn of the tables that are copied? */
static bool
copy_on(Export *export, bool more)
{
	XLogRecPtr	position = decode_reader_position(export->reader);
	bool		copied = export_copy_step(export->copy, position, more);

	if (export->handed_at == 0 && (copied || export_copy_wants_flush(export->copy, position)))
		export->handed_at = GetCurrentTimestamp();
	return copied;
}

/* Between two transactions: was anything asked for concerning dead letters? */
static bool
replay_on(Export *export)
{
	bool		shipped = export_replay_step(export->replay, decode_reader_position(export->reader));

	if (export->handed_at == 0 && shipped)
		export->handed_at = GetCurrentTimestamp();
	return export_replay_is_due(export->replay);
}

static void
follow(Export *export)
{
	for (;;)
	{
		bool		more = true;

		worker_check_interrupts();
		/* tables join, leave or are to be copied anew, or what is shipped or where to is another: that is for the next worker */
		if (export->worker->slot->join_wanted || export_watch_is_changed(export->worker))
			proc_exit(0);
		export->sink->may_split = export_copy_is_done(export->copy);
		for (int i = 0; i < LOOK_RECORDS && more && (i == 0 || !flush_is_due(export)); i++)
			more = decode_reader_step(export->reader);
		more |= copy_on(export, more);
		more |= replay_on(export);
		if (!more || flush_is_due(export))
			flush(export);
		confirm_quiet(export);
		say_state(export);
		if (!more)
			export->idle_at = GetCurrentTimestamp();
		publish(export);
		if (!more)
			decode_reader_wait(export->reader, IDLE_WAIT_MS);
	}
}

static void
run(Worker *worker)
{
	Export	   *export = palloc0(sizeof(Export));

	export->worker = worker;
	export->flush_max_ms = catalog_export_int(worker->pipeline, "flush_max_ms");
	export->flush_max_bytes = (uint64) catalog_export_int(worker->pipeline, "flush_max_kb") * 1024;

	load_state(export);
	if (export->state == NULL)
		create_slot(export);
	open_sink(export);
	check_slot(export);
	cdc_sink_take(export->sink);
	if (!export->state->is_begun)
	{
		export_transaction_begin(true);
		catalog_export_set_begun(worker->pipeline_id);
		export_transaction_end(true, export->worker->cxt);
		export->state->is_begun = true;
	}
	export_watch_begin();
	export->copy = export_copy_open(worker, export->state, export->sink, &export->durable);
	export->letters = export_letters_open(worker, Max(export->durable.lsn, export->state->confirmed_lsn), export->state->timeline);
	export_copy_use_letters(export->copy, export->letters);
	decode_letters_use(catalog_pipeline_on_error(worker->pipeline) == CATALOG_ON_ERROR_DEAD_LETTER ? keep : NULL);
	decode_shipped_use(&letter_follow);
	export->replay = export_replay_open(worker, export->copy, export->letters, export->sink, export->durable.chunk);
	export_stops_use(worker, export->durable.lsn);
	catalog_change_rules_read(worker->pipeline, &export->change_rules);
	decode_change_rules_use(&export->change_rules);
	export->history = export_history_open(worker, Max(export->durable.lsn, export->state->confirmed_lsn), export->state->timeline, &export->change_rules);
	decode_statements_use(note);
	decode_take(receive, meet, export);
	/* a crash takes the slot back; what was read and not shipped stays so, whatever the options are now */
	export->reader = decode_reader_open(export->state->slot_name, Max(export->durable.lsn, export->state->confirmed_lsn),
										export_plugin_options(worker->pipeline));
	PG_TRY();
	{
		follow(export);
	}
	PG_CATCH();
	{
		/* what was not flushed comes again to the next worker, which goes on without the table */
		if (!export_stop_table(worker, export->durable.lsn, export->history))
			PG_RE_THROW();
		proc_exit(0);
	}
	PG_END_TRY();
}

void
cdc_export_main(Datum arg)
{
	worker_main(SHMEM_INGEST, run);
}
