/*-------------------------------------------------------------------------
 *
 * source_mysql.c
 *	  Source over the binary log of a MySQL-family server.
 *
 * NOTES
 *	  Packets of the session go into the binary log reader; its events become
 *	  the neutral events of core/event.h. How groups begin and end:
 *
 *	  family    begins with                          ends with
 *	  MySQL     GTID, QUERY "BEGIN" or "XA START"    XID, QUERY "COMMIT", XA_PREPARE
 *	  MariaDB   GTID without STANDALONE              the same
 *	  either    GTID, then any other QUERY           with it: a definition statement
 *
 *	  MySQL says BEGIN only when a group has rows to come; MariaDB does not say
 *	  it at all, so there the flags of the GTID decide. Positions that leave this
 *	  file always stand between groups: a dump that starts inside one lacks the
 *	  TABLE_MAPs and is refused or misread by the servers. One that was set by hand
 *	  may stand anywhere: the first group that comes must begin with its GTID, as
 *	  all of these servers write it, or half of a transaction would be applied.
 *
 *	  When a server dies while it writes, a group has no end; the next file's
 *	  first event shows it. The open transaction is then rolled back, and that
 *	  event waits in "held" for the following call.
 *
 *	  MariaDB leaves such a file as it is, and when its end is half an event it
 *	  refuses to read on; see step_over_torn_end. MySQL cuts its file (9.7).
 *
 *	  A log that was reset has the same file names again. A position carries when
 *	  its file was born, and the file's first event must say the same. Where that
 *	  is not known, a server that cannot read what stands at the position shows it
 *	  (check_log, lost_the_log).
 *
 *	  After a start from GTIDs the server leaves out what we have, but positions
 *	  before the end of the log at that moment do not stand for that: below
 *	  "quiet_below" no HEARTBEAT is passed on.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "binlog/reader.h"
#include "ddl/statement.h"
#include "mysql/mysql_server.h"
#include "source/source.h"
#include "source/source_check.h"
#include "source/source_start.h"
#include "util/util_arena.h"
#include "util/util_error.h"

/* One event and what is decoded from it may take this much. */
#define EVENT_MEMORY_LIMIT ((size_t) 3 * 1024 * 1024 * 1024)
#define STATEMENT_MEMORY_LIMIT ((size_t) 256 * 1024 * 1024)

/* At most one HEARTBEAT in this time, unless the file changes. */
#define HEARTBEAT_PAUSE 200		/* ms */

/* "Could not read the binary log", whatever the reason. */
#define SERVER_ERROR_BINLOG 1236

/* The clock is read once per so many events that give nothing to the caller. */
#define SILENT_EVENTS 256

typedef struct SourceMysql
{
	CdcSource	base;
	const MysqlEndpoint *endpoint;
	int32		pipeline_id;
	CdcSourceWant want;
	void	   *arg;
	MemoryContext cxt;			/* lives as the source does */
	MemoryContext stream_cxt;	/* lives from open to close */

	MysqlSession *session;
	MysqlServerInfo *info;
	BinlogReader *reader;
	CdcArena	arena;			/* for reading statements */

	/* the group that is open */
	bool		in_transaction; /* BEGIN was passed on */
	bool		have_gtid;		/* a GTID came and its group has neither begun nor ended */
	bool		ignore_group;	/* half of a two-phase ALTER that does not count */
	BinlogGtid	gtid;
	CdcPosition group_start;

	bool		has_held;
	BinlogEvent held;

	/* since the stream was opened */
	char		log_file[CDC_FILE_NAME_MAX + 1];	/* the events come from; "" not known yet */
	bool		any_group;		/* a group of that server's was read */
	bool		same_log;		/* the file is the one of the position, as its first event says */
	bool		unproven;		/* opened by position, and nothing was read from there yet */
	CdcPosition opened_at;
	CdcPosition log_end;		/* where the log ended then */
	bool		at_end;			/* has reading come there? */

	/* what was passed on last */
	CdcPosition last_position;
	TimestampTz last_heartbeat;
	CdcPosition quiet_below;	/* unknown: no limit */
	CdcPosition skip_to;		/* events of that file before it were applied; unknown: none that come */
} SourceMysql;

/* ---- opening ---- */

static void
source_mysql_close(CdcSource *base)
{
	SourceMysql *source = (SourceMysql *) base;

	/* the session and the reader's memory live in the context */
	if (source->stream_cxt != NULL)
		MemoryContextDelete(source->stream_cxt);
	source->stream_cxt = NULL;
	source->session = NULL;
	source->reader = NULL;
	source->info = NULL;
}

/* What source_check.c has to know of this source; needs the session and info. */
static SourceCheck
check_of(const SourceMysql *source, MysqlSession *session, const MysqlServerInfo *info)
{
	SourceCheck check = {
		.session = session,
		.info = info,
		.our_server_id = source_start_server_id(source->endpoint, source->pipeline_id, info->server_id),
		.want = source->want,
		.arg = source->arg,
		.one_of_several = source->endpoint->nhosts > 1,
	};

	return check;
}

/* The log has been read up to there. */
static void
note_read(SourceMysql *source, const CdcPosition *position)
{
	int			order;

	if (!source->at_end && cdc_position_is_known(position) &&
		cdc_position_compare(position, &source->log_end, &order))
		source->at_end = order >= 0;
}

static void
open_stream(SourceMysql *source, const CdcSourceStart *start)
{
	const CdcAllocator *allocator = util_context_allocator(source->stream_cxt);
	BinlogReaderOptions options = {.memory_limit = EVENT_MEMORY_LIMIT};
	SourceCheck check;
	MysqlDump	dump = {0};

	source->session = mysql_server_open(source->endpoint, start->identity, &source->info);
	check = check_of(source, source->session, source->info);
	source_check_require(&check);

	dump.server_id = check.our_server_id;
	dump.replica_uuid = source_start_replica_uuid(source->pipeline_id);
	dump.heartbeat_interval = source->endpoint->heartbeat_interval;
	source_start_plan(source->session, source->info, start, &dump, &source->quiet_below, &source->skip_to);
	source->reader = binlog_reader_create(allocator, &options);
	if (source->reader == NULL)
		util_throw_out_of_memory();
	binlog_reader_start(source->reader, &dump.from);
	cdc_arena_init(&source->arena, allocator, STATEMENT_MEMORY_LIMIT);
	source->last_position = start->position;
	source->unproven = cdc_position_is_known(&dump.from) && dump.from.offset > SOURCE_FIRST_OFFSET;
	source->opened_at = dump.from;
	source->log_end = source->quiet_below;
	if (!cdc_position_is_known(&source->log_end))
		mysql_server_log_position(source->session, source->info, &source->log_end);
	note_read(source, &start->position);
	mysql_session_start_dump(source->session, &dump);
}

static void
source_mysql_open(CdcSource *base, const CdcSourceStart *start)
{
	SourceMysql *source = (SourceMysql *) base;
	MemoryContext old;

	source_mysql_close(base);
	source->in_transaction = false;
	source->have_gtid = false;
	source->ignore_group = false;
	source->has_held = false;
	source->log_file[0] = '\0';
	source->any_group = false;
	source->same_log = false;
	source->unproven = false;
	source->at_end = false;
	source->last_heartbeat = 0;
	memset(&source->quiet_below, 0, sizeof(source->quiet_below));
	memset(&source->skip_to, 0, sizeof(source->skip_to));

	source->stream_cxt = AllocSetContextCreate(source->cxt, "cdc source stream", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(source->stream_cxt);
	PG_TRY();
	{
		open_stream(source, start);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(old);
		source_mysql_close(base);
		PG_RE_THROW();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old);
}

/* ---- events ---- */

static void
start_event(CdcEvent *event, CdcEventKind kind, const BinlogEvent *from)
{
	event->kind = kind;
	event->position.file[0] = '\0';
	event->position.offset = 0;
	event->position.born = 0;
	event->gtid.kind = CDC_GTID_NONE;
	event->is_xa = false;
	event->source_time_us = (int64) from->timestamp * 1000000;
}

/* When the group was committed, as exactly as the server tells. */
static void
set_commit_time(const SourceMysql *source, CdcEvent *event)
{
	if (source->gtid.commit_time_us != 0)
		event->source_time_us = source->gtid.commit_time_us;
}

static void
forget_group(SourceMysql *source)
{
	source->in_transaction = false;
	source->have_gtid = false;
	source->ignore_group = false;
	source->gtid.gtid.kind = CDC_GTID_NONE;
	source->gtid.flags = 0;
	source->gtid.commit_time_us = 0;
}

static bool
emit_begin(SourceMysql *source, const BinlogEvent *from, bool is_xa, CdcEvent *event)
{
	if (!source->have_gtid)
	{
		/* no GTID event before it: a server without GTIDs, or one that is switched off */
		forget_group(source);
		source->group_start = from->start;
	}
	source->in_transaction = true;
	source->have_gtid = false;
	start_event(event, CDC_EVENT_BEGIN, from);
	event->position = source->group_start;
	event->gtid = source->gtid.gtid;
	event->is_xa = is_xa;
	set_commit_time(source, event);
	return true;
}

/* The group ends here, one way or the other. */
static bool
emit_end(SourceMysql *source, CdcEventKind kind, const BinlogEvent *from, CdcEvent *event)
{
	start_event(event, kind, from);
	set_commit_time(source, event);
	event->position = from->end;
	source->last_position = from->end;
	forget_group(source);
	return true;
}

/*
 * A position between groups was reached. Not each one is worth an event; the
 * server's next heartbeat repeats what was left out here.
 */
static bool
emit_heartbeat(SourceMysql *source, const CdcPosition *position, const BinlogEvent *from, CdcEvent *event)
{
	TimestampTz now;
	int			order;
	bool		learns_born;

	if (!cdc_position_is_known(position))
		return false;
	if (cdc_position_is_known(&source->quiet_below) &&
		cdc_position_compare(position, &source->quiet_below, &order) && order < 0)
		return false;
	learns_born = source->last_position.born == 0 && position->born != 0;
	if (cdc_position_is_known(&source->last_position) &&
		cdc_position_compare(position, &source->last_position, &order) &&
		(order < 0 || (order == 0 && !learns_born)))
		return false;
	now = GetCurrentTimestamp();
	if (strcmp(position->file, source->last_position.file) == 0 && !learns_born &&
		!TimestampDifferenceExceeds(source->last_heartbeat, now, HEARTBEAT_PAUSE))
		return false;
	source->last_heartbeat = now;
	source->last_position = *position;
	start_event(event, CDC_EVENT_HEARTBEAT, from);
	event->position = *position;
	return true;
}

/*
 * The open transaction has no end: the server died while it wrote it. The event
 * that shows it is kept for the next call.
 */
static bool
emit_broken_off(SourceMysql *source, const BinlogEvent *from, CdcEvent *event)
{
	const CdcPosition *go_on = from->kind == BINLOG_ROTATE ? &from->u.rotate : &from->start;

	source->held = *from;
	source->has_held = true;
	start_event(event, CDC_EVENT_ROLLBACK, from);
	event->position = *go_on;
	source->last_position = *go_on;
	forget_group(source);
	return true;
}

static bool
emit_statement(SourceMysql *source, const BinlogEvent *from, CdcEvent *event)
{
	const BinlogQuery *query = &from->u.query;
	bool		inside = source->in_transaction;

	start_event(event, CDC_EVENT_STATEMENT, from);
	set_commit_time(source, event);
	event->statement.schema = query->schema;
	event->statement.text = query->text;
	event->statement.len = query->len;
	event->statement.sql_mode = query->sql_mode;
	event->statement.in_transaction = inside;
	event->statement.of_session = query->of_session;
	event->statement.by_mariadb = source->info->flavor == MYSQL_FLAVOR_MARIADB;
	if (!inside)
	{
		event->start = source->have_gtid ? source->group_start : from->start;
		event->position = from->end;
		if (source->have_gtid)
			event->gtid = source->gtid.gtid;
		source->last_position = from->end;
		forget_group(source);
	}
	return true;
}

static bool
text_is(const BinlogQuery *query, const char *word)
{
	return query->len == strlen(word) && pg_strncasecmp(query->text, word, query->len) == 0;
}

/* What kind of statement; the servers write the two frequent ones in one form. */
static DdlKind
statement_kind(SourceMysql *source, const BinlogQuery *query)
{
	DdlStatement statement;

	if (text_is(query, "BEGIN"))
		return DDL_BEGIN;
	if (text_is(query, "COMMIT"))
		return DDL_COMMIT;
	if (query->is_load_data)
		return DDL_DML;
	cdc_arena_reset(&source->arena);
	if (ddl_statement_read(query->text, query->len, query->schema, query->sql_mode,
						   &source->arena, &statement) != CDC_OK)
		util_throw_out_of_memory();
	return statement.kind;
}

static bool
handle_query(SourceMysql *source, const BinlogEvent *from, CdcEvent *event)
{
	DdlKind		kind;

	if (source->ignore_group)
	{
		forget_group(source);
		return emit_heartbeat(source, &from->end, from, event);
	}
	kind = statement_kind(source, &from->u.query);
	switch (kind)
	{
		case DDL_BEGIN:
		case DDL_XA_START:
			if (!source->in_transaction)
				return emit_begin(source, from, kind == DDL_XA_START, event);
			if (source->gtid.gtid.kind == CDC_GTID_MARIADB)
				return false;	/* an old MariaDB says both */
			return emit_broken_off(source, from, event);

		case DDL_COMMIT:
			if (source->in_transaction)
				return emit_end(source, CDC_EVENT_COMMIT, from, event);
			break;

		case DDL_ROLLBACK:
			if (source->in_transaction)
				return emit_end(source, CDC_EVENT_ROLLBACK, from, event);
			break;

		case DDL_SAVEPOINT:
			if (source->in_transaction)
				return emit_statement(source, from, event);
			break;

		case DDL_EMPTY:
		case DDL_RELEASE_SAVEPOINT:
		case DDL_XA_END:
		case DDL_XA_PREPARE:	/* the event of that name follows */
			if (source->in_transaction)
				return false;
			break;

		default:
			return emit_statement(source, from, event);
	}

	/* outside a transaction and without effect */
	forget_group(source);
	return emit_heartbeat(source, &from->end, from, event);
}

static bool
handle_gtid(SourceMysql *source, const BinlogEvent *from, CdcEvent *event)
{
	uint32		flags = from->u.gtid.flags;

	if (source->in_transaction)
		return emit_broken_off(source, from, event);
	forget_group(source);
	source->gtid = from->u.gtid;
	source->group_start = from->start;
	source->have_gtid = true;
	source->any_group = true;
	if (source->info->flavor != MYSQL_FLAVOR_MARIADB)
		return false;
	if (flags & (BINLOG_GTID_START_ALTER | BINLOG_GTID_ROLLBACK_ALTER))
	{
		source->ignore_group = true;
		return false;
	}
	if (flags & (BINLOG_GTID_STANDALONE | BINLOG_GTID_XA_COMPLETE))
		return false;
	return emit_begin(source, from, (flags & BINLOG_GTID_XA_PREPARE) != 0, event);
}

static bool
handle_rows(SourceMysql *source, const BinlogEvent *from, CdcEvent *event)
{
	CdcTableDef *table = from->u.rows.table;

	if (!source->in_transaction)
	{
		/* rows without a BEGIN: seen nowhere, but nothing may be lost */
		source->held = *from;
		source->has_held = true;
		return emit_begin(source, from, false, event);
	}
	if (table != NULL && source->want != NULL && !source->want(source->arg, table->schema, table->name))
		binlog_reader_skip_rows(source->reader);
	return false;
}

static void
throw_incident(const SourceMysql *source, const BinlogEvent *from)
{
	char		text[CDC_POSITION_TEXT_MAX];

	cdc_position_format(&from->start, text);
	ereport(ERROR,
			(errcode(CDC_ERRCODE_UNSUPPORTED_EVENT),
			 errmsg("source server \"%s\" lost events of its binary log", source->endpoint->server_name),
			 errdetail("The log has an incident event at %s.", text),
			 errhint("Drop the pipeline with cdc_drop_pipeline() and start it anew.")));
}

static const char *
born_text(uint32 born)
{
	return pstrdup(timestamptz_to_str(time_t_to_timestamptz((pg_time_t) born)));
}

/* What follows is read from the right place: errors are no longer its fault. */
static void
prove_position(SourceMysql *source)
{
	source->unproven = false;
	mysql_session_proved_position(source->session);
}

/*
 * A file begins, or reading does inside one. Is it the file that the last
 * position belongs to, and not one of the same name after a reset of the log?
 */
static void
check_log(SourceMysql *source, const BinlogEvent *from)
{
	const CdcPosition *last = &source->last_position;

	if (last->born == 0 || from->end.born == 0 || strcmp(last->file, from->end.file) != 0)
		return;
	if (last->born == from->end.born)
	{
		source->same_log = true;
		prove_position(source);
		return;
	}
	ereport(ERROR,
			(errcode(CDC_ERRCODE_SOURCE_REPLACED),
			 errmsg("binary log file \"%s\" of source server \"%s\" is not the one that was read before",
					last->file, source->endpoint->server_name),
			 errdetail("The file that was read began at %s, this one at %s.",
					   born_text(last->born), born_text(from->end.born)),
			 errhint("The log was reset, or another server answers: let the address lead to the former server again. "
					 "Else stop the pipeline and use cdc_set_position() with anew => true: all tables are copied anew beside their rows.")));
}

/* An event cannot be decoded. When it is the first one, the position stood in another log. */
static void
throw_undecodable(SourceMysql *source)
{
	const CdcError *error = binlog_reader_error(source->reader);
	char		text[CDC_POSITION_TEXT_MAX];

	if (!source->unproven && error->code == CDC_UNSUPPORTED)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("binary log of source server \"%s\" holds what is not supported", source->endpoint->server_name),
				 errdetail("%s (at byte " UINT64_FORMAT " of the file).", error->text, error->offset),
				 errhint("The server is newer than this version of cdc_bridge, or has something switched on that it does not know. "
						 "With that mended, stop the pipeline and use cdc_set_position() with anew => true: all tables are copied anew beside their rows.")));
	if (!source->unproven || error->code == CDC_NOMEM || error->code == CDC_LIMIT)
		util_throw(error, "could not decode the binary log");
	cdc_position_format(&source->opened_at, text);
	ereport(ERROR,
			(errcode(CDC_ERRCODE_SOURCE_REPLACED),
			 errmsg("source server \"%s\" does not have the log that was followed", source->endpoint->server_name),
			 errdetail("No event begins at %s: %s.", text, error->text),
			 errhint("If the position was set with cdc_set_position(), set another one. "
					 "Else the server was replaced, reset or restored from an older copy: stop the pipeline and use cdc_set_position() with "
					 "anew => true, and all tables are copied anew beside their rows.")));
}

/* Was the stream opened inside a file, and has no group begun since? */
static bool
awaits_first_group(const SourceMysql *source)
{
	return !source->any_group && !source->in_transaction &&
		cdc_position_is_known(&source->opened_at) && source->opened_at.offset > SOURCE_FIRST_OFFSET;
}

/* An event of a group whose beginning lies before the position that the stream was opened at. */
static void
throw_inside_group(const SourceMysql *source)
{
	char		text[CDC_POSITION_TEXT_MAX];

	cdc_position_format(&source->opened_at, text);
	ereport(ERROR,
			(errcode(CDC_ERRCODE_SOURCE_REPLACED),
			 errmsg("position %s is inside a transaction of source server \"%s\"", text, source->endpoint->server_name),
			 errdetail("Half of the transaction would not be applied."),
			 errhint("If the position was set with cdc_set_position(), set it to where a transaction begins: "
					 "to a Gtid event in SHOW BINLOG EVENTS. "
					 "Else the server was replaced, reset or restored from an older copy: stop the pipeline and use cdc_set_position() with "
					 "anew => true, and all tables are copied anew beside their rows.")));
}

/* Does the event lie before the place in its file that could not be asked for? */
static bool
is_skipped(SourceMysql *source, const BinlogEvent *from)
{
	if (from->artificial || from->kind == BINLOG_FORMAT || from->kind == BINLOG_ROTATE ||
		strcmp(from->start.file, source->skip_to.file) != 0 || from->start.offset >= source->skip_to.offset)
		return false;
	if (from->kind == BINLOG_ROWS)
		binlog_reader_skip_rows(source->reader);
	return true;
}

/* Turn one event of the log into one of ours; false when there is nothing to pass on. */
static bool
handle_event(SourceMysql *source, const BinlogEvent *from, CdcEvent *event)
{
	if (unlikely(cdc_position_is_known(&source->skip_to)) && is_skipped(source, from))
		return false;
	if (unlikely(awaits_first_group(source)) &&
		(from->kind == BINLOG_QUERY || from->kind == BINLOG_ROWS || from->kind == BINLOG_XID || from->kind == BINLOG_XA_PREPARE))
		throw_inside_group(source);

	switch (from->kind)
	{
		case BINLOG_ROW:
			start_event(event, CDC_EVENT_CHANGE, from);
			event->change = from->u.row;
			return true;

		case BINLOG_ROWS:
			return handle_rows(source, from, event);

		case BINLOG_GTID:
			return handle_gtid(source, from, event);

		case BINLOG_QUERY:
			return handle_query(source, from, event);

		case BINLOG_XID:
			if (!source->in_transaction)
				return false;
			return emit_end(source, CDC_EVENT_COMMIT, from, event);

		case BINLOG_XA_PREPARE:
			if (!source->in_transaction)
				return false;
			if (from->u.xa_prepare.one_phase)
				return emit_end(source, CDC_EVENT_COMMIT, from, event);
			strcpy(event->xid, from->u.xa_prepare.xid); /* both have CDC_XID_TEXT_MAX bytes */
			return emit_end(source, CDC_EVENT_PREPARE, from, event);

		case BINLOG_ROTATE:
		case BINLOG_FORMAT:
			if (from->kind == BINLOG_ROTATE)
				strcpy(source->log_file, from->u.rotate.file);
			else
				check_log(source, from);
			if (source->in_transaction)
				return emit_broken_off(source, from, event);
			forget_group(source);
			if (from->artificial)
				return false;
			return emit_heartbeat(source, from->kind == BINLOG_ROTATE ? &from->u.rotate : &from->end,
								  from, event);

		case BINLOG_HEARTBEAT:
			if (source->in_transaction || source->have_gtid)
				return false;
			return emit_heartbeat(source, &from->u.rotate, from, event);

		case BINLOG_INCIDENT:
			throw_incident(source, from);
			break;

		case BINLOG_OTHER:
			/* before the first group it may be one inside a group, where no position may come to lie */
			if (source->in_transaction || source->have_gtid || from->artificial || awaits_first_group(source))
				return false;
			return emit_heartbeat(source, &from->end, from, event);
	}
	return false;
}

/* ---- a log that ends inside an event ---- */

/* Did the server refuse to read on because a file that we have read from ends inside an event? */
static bool
is_torn_end(const SourceMysql *source, const ErrorData *edata)
{
	return source->info->flavor == MYSQL_FLAVOR_MARIADB && (source->any_group || source->same_log) && source->log_file[0] != '\0' &&
		mysql_session_last_errno(source->session) == SERVER_ERROR_BINLOG &&
		edata->detail != NULL && strstr(edata->detail, "truncated in the middle of event") != NULL;
}

/*
 * MariaDB died while it wrote the end of its file, and will never read behind
 * it; a replica would have to be sent to the next file by hand. What was being
 * written was not committed, so the open group is rolled back and the next file
 * opened.
 *
 * That is certain only if the log was synced at each commit: otherwise a crash of
 * the whole machine may have taken groups from the log that the engine kept, and
 * the half event is the one trace of it. Then the error is thrown.
 */
static void
step_over_torn_end(SourceMysql *source, ErrorData *edata, CdcEvent *event)
{
	MysqlServerInfo *info;
	MysqlSession *session = mysql_server_open(source->endpoint, source->info->identity, &info);
	const char *sync = mysql_session_scalar(session, "SELECT @@global.sync_binlog");
	char	   *next = source_start_next_file(session, source->log_file);
	char	   *file = pstrdup(source->log_file);
	CdcSourceStart start = {.identity = pstrdup(source->info->identity)};
	const BinlogEvent nothing = {0};
	bool		inside = source->in_transaction;

	mysql_session_close(session);
	if (next == NULL)
		ReThrowError(edata);
	if (sync == NULL || strcmp(sync, "1") != 0)
		ereport(ERROR,
				(errcode(CDC_ERRCODE_POSITION_LOST),
				 errmsg("binary log of source server \"%s\" breaks off in the middle of an event",
						source->endpoint->server_name),
				 errdetail("Its file \"%s\" ends so since the server crashed. With sync_binlog = %s the log may lack transactions that the tables have.",
						   file, sync ? sync : "unknown"),
				 errhint("Run SET GLOBAL sync_binlog = 1 on the source, and set it in its configuration. Then stop the pipeline and use cdc_set_position() with anew => true: all tables are copied anew beside their rows.")));

	snprintf(start.position.file, sizeof(start.position.file), "%s", next);
	start.position.offset = SOURCE_FIRST_OFFSET;
	source_mysql_open(&source->base, &start);
	ereport(LOG,
			(errmsg("binary log of source server \"%s\" breaks off in the middle of an event",
					source->endpoint->server_name),
			 errdetail("The server crashed while it wrote the end of \"%s\"; reading goes on in \"%s\".", file, next)));

	start_event(event, inside ? CDC_EVENT_ROLLBACK : CDC_EVENT_HEARTBEAT, &nothing);
	event->position = start.position;
}

/* Like mysql_session_packet; true when *event is filled instead, because a torn end was stepped over. */
static bool
next_packet(SourceMysql *source, int timeout_ms, const uint8 **data, size_t *len,
			MysqlPacketResult *result, CdcEvent *event)
{
	MemoryContext cxt = CurrentMemoryContext;
	ErrorData  *volatile torn = NULL;

	PG_TRY();
	{
		*result = mysql_session_packet(source->session, timeout_ms, data, len);
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(cxt);
		edata = CopyErrorData();
		if (!is_torn_end(source, edata))
			PG_RE_THROW();
		FlushErrorState();
		torn = edata;
	}
	PG_END_TRY();
	if (torn == NULL)
		return false;
	step_over_torn_end(source, torn, event);
	return true;
}

/* Did the server read this event from where the dump was opened? It makes others for each dump. */
static bool
is_from_the_log(const BinlogEvent *from)
{
	return !from->artificial && from->kind != BINLOG_FORMAT;
}

static CdcSourceResult
source_mysql_next(CdcSource *base, int timeout_ms, CdcEvent *event)
{
	SourceMysql *source = (SourceMysql *) base;
	TimestampTz started = timeout_ms > 0 ? GetCurrentTimestamp() : 0;
	int			wait_ms = timeout_ms;
	int			silent = 0;

	Assert(source->reader != NULL);
	for (;;)
	{
		BinlogEvent from;
		CdcStatus	status;
		const uint8 *data;
		size_t		len;
		MysqlPacketResult packet;

		if (source->has_held)
		{
			source->has_held = false;
			from = source->held;
			if (handle_event(source, &from, event))
				return CDC_SOURCE_EVENT;
		}
		status = binlog_reader_next(source->reader, &from);
		if (status == CDC_OK)
		{
			if (unlikely(source->unproven) && is_from_the_log(&from))
				prove_position(source);
			if (unlikely(!source->at_end) && (from.kind == BINLOG_HEARTBEAT || !from.artificial))
				note_read(source, from.kind == BINLOG_HEARTBEAT ? &from.u.rotate : &from.end);
			if (handle_event(source, &from, event))
				return CDC_SOURCE_EVENT;
			continue;
		}
		if (status != CDC_END)
			throw_undecodable(source);

		/* neither heartbeats nor a long run of unwanted events may keep the caller for longer than it said */
		if (++silent % SILENT_EVENTS == 0 || (timeout_ms > 0 && silent > 1))
		{
			TimestampTz now = GetCurrentTimestamp();

			if (started == 0)
				started = now;
			wait_ms = timeout_ms - (int) TimestampDifferenceMilliseconds(started, now);
			if (wait_ms < 0 || (wait_ms == 0 && timeout_ms > 0))
				return CDC_SOURCE_TIMEOUT;
		}
		if (next_packet(source, wait_ms, &data, &len, &packet, event))
			return CDC_SOURCE_EVENT;
		if (packet == MYSQL_PACKET_TIMEOUT)
			return source->at_end ? CDC_SOURCE_AT_END : CDC_SOURCE_TIMEOUT;
		if (binlog_reader_feed(source->reader, data, len) != CDC_OK)
			throw_undecodable(source);
	}
}

/* The server keeps its log by age, not for us. */
static void
source_mysql_ack(CdcSource *base, const CdcPosition *position)
{
}

/* ---- checking ---- */

/* A host that could take the place of another one: that they are of one family, and that both write GTIDs. */
static CdcCheckLine *
failover_line(const char *host, const MysqlServerInfo *first, const MysqlServerInfo *info)
{
	if (info->flavor != first->flavor)
		return source_check_line("host", "error", psprintf("%s is a server of another family than the first host.", host),
								 "Take it out of the list; positions of MySQL and MariaDB do not fit each other.");
	if (strcmp(info->identity, first->identity) == 0)
		return source_check_line("host", "warning", psprintf("%s leads to the same server as the first host, \"%s\".", host, info->identity),
								 info->flavor == MYSQL_FLAVOR_MARIADB
								 ? "If it is another server, give it a server_id of its own." : NULL);
	if (!info->gtid_on || !first->gtid_on)
		return source_check_line("host", "error", psprintf("%s is server \"%s\", and no pipeline can go over to it without GTIDs.", host, info->identity),
								 "Set enforce_gtid_consistency = ON and gtid_mode = ON on all of the hosts.");
	return source_check_line("host", "ok", psprintf("%s is server \"%s\".", host, info->identity), NULL);
}

/* Each host in turn; a connection that fails is a line of the report, not an end of it. With one host only what it says. */
static List *
source_mysql_check(CdcSource *base)
{
	SourceMysql *source = (SourceMysql *) base;
	const MysqlEndpoint *endpoint = source->endpoint;
	const MysqlServerInfo *first = NULL;
	List	   *lines = NIL;

	for (int host = 0; host < endpoint->nhosts; host++)
	{
		ErrorData  *error;
		MysqlSession *session = mysql_session_try_host(endpoint, host, &error);
		MysqlServerInfo *info;
		SourceCheck check;

		if (session == NULL)
		{
			lines = lappend(lines, source_check_line("connection", "error", error->detail ? error->detail : error->message, error->hint));
			continue;
		}
		info = mysql_server_info(session);
		if (endpoint->nhosts > 1)
			lines = lappend(lines, first != NULL ? failover_line(mysql_host_text(endpoint, host), first, info)
							: source_check_line("host", "ok", psprintf("%s is server \"%s\".", mysql_host_text(endpoint, host), info->identity), NULL));
		if (first == NULL)
			first = info;
		check = check_of(source, session, info);
		lines = list_concat(lines, source_check_run(&check));
		mysql_session_close(session);
	}
	return lines;
}

static void
source_mysql_require(CdcSource *base)
{
	const SourceMysql *source = (const SourceMysql *) base;
	MysqlSession *session = mysql_session_open(source->endpoint);
	SourceCheck check = check_of(source, session, mysql_server_info(session));

	source_check_require(&check);
	mysql_session_close(session);
}

static const CdcSourceOps source_mysql_ops = {
	.name = "mysql",
	.require = source_mysql_require,
	.open = source_mysql_open,
	.next = source_mysql_next,
	.ack = source_mysql_ack,
	.check = source_mysql_check,
	.close = source_mysql_close
};

CdcSource *
source_mysql_create(const MysqlEndpoint *endpoint, int32 pipeline_id, CdcSourceWant want, void *arg)
{
	SourceMysql *source = palloc0(sizeof(SourceMysql));

	source->base.ops = &source_mysql_ops;
	source->endpoint = endpoint;
	source->pipeline_id = pipeline_id;
	source->want = want;
	source->arg = arg;
	source->cxt = CurrentMemoryContext;
	return &source->base;
}
