/*-------------------------------------------------------------------------
 *
 * mysql_session.c
 *	  One connection to a MySQL-family server, driven by a helper thread.
 *
 * NOTES
 *	  The backend's half: it hands requests to the thread (mysql_thread.c),
 *	  waits for records in the ring, and turns the thread's errors into
 *	  ereport. A session has a memory context of its own under the current one;
 *	  deleting it, directly or with its parent, ends the thread.
 *
 *	  States: IDLE -> QUERY -> IDLE ..., IDLE -> DUMP, any -> BROKEN.
 *
 *	  At process exit the threads are ended before the C library's exit
 *	  handlers run: a thread that is still inside OpenSSL while OpenSSL cleans
 *	  up would crash, and take the cluster through a restart. If one cannot be
 *	  ended in time, the process leaves by _exit.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "lib/ilist.h"
#include "lib/stringinfo.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "mysql/mysql_error.h"
#include "mysql/mysql_session.h"
#include "mysql/mysql_thread.h"
#include "util/util_error.h"
#include "util/util_wait.h"

#define RING_SIZE (8 * 1024 * 1024)
#define MAX_ANSWER_BYTES (128 * 1024 * 1024) /* rows of one query that are kept; the definitions of a million columns take less */
#define STOP_TIMEOUT 500		/* ms that closing waits for the thread */
#define EXTERNAL_FDS 3		/* socket, its duplicate, eventfd */

/* A server may walk through old files before the first event of a dump. */
#define FIRST_PACKET_TIMEOUT 60000	/* ms */
#define MISSED_HEARTBEATS 5
#define LONGEST_RETRANSMIT 120000	/* ms: TCP doubles its pause between two attempts up to that */
#define SILENCE_PAUSE 1000		/* ms between two looks at how long an answer has been awaited */
#define SERVER_WRITE_TIMEOUT 31536000	/* s: we may stop reading for as long as PostgreSQL makes us wait */

/* Flags of the dump commands. */
#define DUMP_FLAG_NONE 0

typedef enum SessionState
{
	SESSION_IDLE,
	SESSION_QUERY,
	SESSION_DUMP,
	SESSION_BROKEN
} SessionState;

struct MysqlSession
{
	dlist_node	node;			/* in open_sessions, while thread is set */
	MemoryContext cxt;
	MemoryContextCallback callback;
	MysqlThread *thread;
	MysqlRing  *ring;
	SessionState state;
	MysqlErrorSite site;
	char	   *version;
	unsigned int last_errno;

	/* the row that was fetched last */
	const char **values;
	uint32	   *lengths;
	int			fields_allocated;
	uint64		answer_bytes;	/* rows of the query so far, but for what was drained */

	int			query_timeout;	/* s; 0: none */

	/* dump: when did something come last */
	TimestampTz last_data;
	bool		data_since;		/* something came after last_data */
	bool		got_packet;
	int			heartbeat_interval;
	uint64		held_seen;		/* ms that the thread was held up for want of room, at the last look */
	TimestampTz excused_until;	/* a silence before that may be of our own making */
};

static dlist_head open_sessions = DLIST_STATIC_INIT(open_sessions);
static bool library_ready = false;

static void session_release(MysqlSession *session);

/* End all threads before exit handlers of libraries run. */
static void
end_threads_at_exit(int code, Datum arg)
{
	while (!dlist_is_empty(&open_sessions))
		session_release(dlist_head_element(MysqlSession, node, &open_sessions));
	if (mysql_thread_any_abandoned())
		_exit(code);
}

static void
init_library(void)
{
	if (library_ready)
		return;
	if (!mysql_thread_init_library())
		ereport(ERROR,
				(errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
				 errmsg("could not initialize the MySQL client library")));
	on_proc_exit(end_threads_at_exit, (Datum) 0);
	library_ready = true;
}

/* Let go of the thread; never throws. */
static void
session_release(MysqlSession *session)
{
	if (session->thread == NULL)
		return;
	dlist_delete(&session->node);
	(void) mysql_thread_stop(session->thread, STOP_TIMEOUT);
	session->thread = NULL;
	session->ring = NULL;
	session->state = SESSION_BROKEN;
	for (int i = 0; i < EXTERNAL_FDS; i++)
		ReleaseExternalFD();
}

static void
session_context_cb(void *arg)
{
	session_release((MysqlSession *) arg);
}

void
mysql_session_close(MysqlSession *session)
{
	if (session != NULL)
		MemoryContextDelete(session->cxt);
}

/* Throw an error of the thread's; the session is broken unless the connection still stands. */
static void
session_throw(MysqlSession *session, const uint8 *data, size_t len)
{
	MysqlThreadError error;

	Assert(len == sizeof(error));
	memcpy(&error, data, sizeof(error));
	session->last_errno = error.code;
	if (session->site.stage != MYSQL_STAGE_QUERY || mysql_error_is_connection_loss(error.code))
		session->state = SESSION_BROKEN;
	else
		session->state = SESSION_IDLE;
	mysql_error_throw(&session->site, &error);
}

/*
 * Next record of the thread. Waits at most timeout_ms (-1: for ever) and may
 * come back earlier when the latch was set; false when there is none.
 */
static inline bool
next_record(MysqlSession *session, int timeout_ms, UtilWaitEvent why,
			uint32 *kind, const uint8 **data, size_t *len)
{
	util_check_interrupts();
	if (mysql_ring_next(session->ring, kind, data, len))
		return true;
	if (timeout_ms == 0)
		return false;
	if (mysql_ring_prepare_wait(session->ring))
		(void) util_wait(mysql_ring_eventfd(session->ring), timeout_ms, why);
	mysql_ring_finish_wait(session->ring);
	return mysql_ring_next(session->ring, kind, data, len);
}

/* An answer that does not come: for how long has nothing at all come? Throws when it is too long. */
static void
check_query_silence(MysqlSession *session, TimestampTz *since, unsigned int *reads)
{
	TimestampTz now = GetCurrentTimestamp();
	unsigned int reads_now = mysql_thread_reads(session->thread);

	if (*since == 0 || reads_now != *reads)
	{
		*since = now;
		*reads = reads_now;
		return;
	}
	if (session->query_timeout == 0 || !TimestampDifferenceExceeds(*since, now, session->query_timeout * 1000))
		return;
	session->state = SESSION_BROKEN;
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("lost connection to source server \"%s\"", session->site.server_name),
			 errdetail("The server has not answered for %d s.", session->query_timeout),
			 errhint("If it needs longer than that, use ALTER SERVER %s OPTIONS (query_timeout '...'), with ADD or SET; 0 waits for ever.",
					 quote_identifier(session->site.server_name))));
}

/*
 * Wait for a record of the request that runs. The ring is empty while we wait,
 * so that the silence is the server's and never our own slowness.
 */
static uint32
wait_record(MysqlSession *session, UtilWaitEvent why, const uint8 **data, size_t *len)
{
	uint32		kind;
	TimestampTz since = 0;
	unsigned int reads = 0;

	for (;;)
	{
		if (next_record(session, since == 0 ? 0 : SILENCE_PAUSE, why, &kind, data, len))
			return kind;
		check_query_silence(session, &since, &reads);
	}
}

static void
fill_thread_connect(const MysqlEndpoint *endpoint, const MysqlHost *host, MysqlThreadConnect *connect)
{
	bool		use_tls = host->sslmode != MYSQL_SSL_DISABLE;

	memset(connect, 0, sizeof(*connect));
	connect->host = unconstify(char *, host->name);
	connect->socket = unconstify(char *, endpoint->socket);
	connect->username = unconstify(char *, endpoint->username);
	connect->password = unconstify(char *, endpoint->password);
	connect->ssl_ca = unconstify(char *, endpoint->ssl_ca);
	connect->ssl_cert = unconstify(char *, endpoint->ssl_cert);
	connect->ssl_key = unconstify(char *, endpoint->ssl_key);
	connect->server_public_key = unconstify(char *, endpoint->server_public_key);
	connect->port = host->port;
	connect->connect_timeout = endpoint->connect_timeout;
	connect->use_tls = use_tls;
	connect->verify_chain = host->sslmode >= MYSQL_SSL_VERIFY_CA;
	connect->verify_host = host->sslmode == MYSQL_SSL_VERIFY_FULL;
	connect->fetch_public_key = endpoint->get_server_public_key || host->is_local;
}

/*
 * A key file that cannot be read would make libmariadb fetch the key from the
 * server instead, without a word.
 */
static void
check_key_file(const MysqlEndpoint *endpoint)
{
	struct stat st;

	if (endpoint->server_public_key == NULL)
		return;
	if (stat(endpoint->server_public_key, &st) != 0 || access(endpoint->server_public_key, R_OK) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read public key file \"%s\" of server \"%s\": %m",
						endpoint->server_public_key, endpoint->server_name)));
	if (!S_ISREG(st.st_mode))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("public key file \"%s\" of server \"%s\" is not a regular file",
						endpoint->server_public_key, endpoint->server_name)));
}

static MysqlSession *
session_create(const MysqlEndpoint *endpoint, int host)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc mysql session", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	MysqlSession *session = palloc0(sizeof(MysqlSession));
	MysqlThreadConnect connect;

	session->cxt = cxt;
	session->query_timeout = endpoint->query_timeout;
	session->site.stage = MYSQL_STAGE_CONNECT;
	session->site.server_name = pstrdup(endpoint->server_name);
	session->site.username = pstrdup(endpoint->username);
	session->site.target = mysql_host_text(endpoint, host);
	session->callback.func = session_context_cb;
	session->callback.arg = session;
	MemoryContextRegisterResetCallback(cxt, &session->callback);

	fill_thread_connect(endpoint, &endpoint->hosts[host], &connect);
	session->site.key_was_refused = !connect.use_tls && !connect.fetch_public_key &&
		connect.server_public_key == NULL;
	session->thread = mysql_thread_start(&connect, RING_SIZE);
	if (session->thread == NULL)
	{
		int			save_errno = errno;

		MemoryContextSwitchTo(old);
		MemoryContextDelete(cxt);
		errno = save_errno;
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not start the thread for source server \"%s\": %m", endpoint->server_name)));
	}
	for (int i = 0; i < EXTERNAL_FDS; i++)
		ReserveExternalFD();
	session->ring = mysql_thread_ring(session->thread);
	dlist_push_tail(&open_sessions, &session->node);
	MemoryContextSwitchTo(old);
	return session;
}

/*
 * Wait until the thread is logged in. The thread's own time-outs cover each
 * step; this one covers their sum, name resolution included.
 */
static void
wait_connected(MysqlSession *session, const MysqlEndpoint *endpoint)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), endpoint->connect_timeout * 1000L);
	uint32		kind;
	const uint8 *data;
	size_t		len;

	for (;;)
	{
		long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);

		/* a little longer than the library, whose message says more */
		if (next_record(session, (int) left + 1000, UTIL_WAIT_SOURCE_CONNECT, &kind, &data, &len))
			break;
		if (GetCurrentTimestamp() > TimestampTzPlusMilliseconds(deadline, 1000))
			ereport(ERROR,
					(errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
					 errmsg("could not connect to source server \"%s\"", endpoint->server_name),
					 errdetail("No answer from %s within %d s.", session->site.target, endpoint->connect_timeout),
					 errhint("Check host and port of the server's options, that the source runs, and what it listens on.")));
	}
	if (kind == MYSQL_RECORD_ERROR)
		session_throw(session, data, len);
	session->version = MemoryContextStrdup(session->cxt, (const char *) data);
	session->site.stage = MYSQL_STAGE_QUERY;
}

/* "repl@%" -> 'repl'@'%', as GRANT wants it. */
static char *
quote_account(const char *account)
{
	const char *at = strrchr(account, '@');

	if (at == NULL)
		return mysql_quote_literal(account, strlen(account));
	return psprintf("%s@%s", mysql_quote_literal(account, at - account),
					mysql_quote_literal(at + 1, strlen(at + 1)));
}

/*
 * What a global default, init_connect or a default of the user may have set and
 * what would change an answer. The values stand here, because DEFAULT would be
 * the global one. The server runs init_connect before it takes our first statement.
 *
 * completion_type comes first, so that ROLLBACK ends what init_connect may have
 * begun and begins nothing; max_join_size before sql_big_selects, which it resets.
 * The size for sorting holds any key of a table.
 */
#define SESSION_PINS \
	"sql_mode = '', time_zone = '+00:00', autocommit = 1, sql_select_limit = 18446744073709551615, " \
	"max_join_size = 18446744073709551615, sql_auto_is_null = 0, sql_quote_show_create = 1, " \
	"lc_messages = 'en_US', max_sort_length = 16384, sort_buffer_size = 4194304"

/* Session variables that every use wants; the version decides what exists. */
static void
set_up_session(MysqlSession *session)
{
	bool		is_mariadb = strstr(session->version, "MariaDB") != NULL;
	StringInfoData sql;
	char	   *account;
	int			major = 0;
	int			minor = 0;
	int			patch = 0;
	MemoryContext old;

	(void) sscanf(session->version, "%d.%d.%d", &major, &minor, &patch);
	mysql_session_execute(session, "SET completion_type = 0");
	mysql_session_execute(session, "ROLLBACK");
	mysql_session_execute(session, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
	initStringInfo(&sql);
	appendStringInfo(&sql,
					 "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci, " SESSION_PINS ", "
					 "net_write_timeout = %d, net_read_timeout = 600, wait_timeout = %d",
					 SERVER_WRITE_TIMEOUT, SERVER_WRITE_TIMEOUT);
	if (is_mariadb)
		appendStringInfoString(&sql, ", max_statement_time = 0, old_mode = '', idle_transaction_timeout = 0, "
							   "idle_readonly_transaction_timeout = 0, idle_write_transaction_timeout = 0");
	else
		appendStringInfoString(&sql, ", max_execution_time = 0");
	/* since 8.0.30: information_schema may hide generated primary keys, which the log does not */
	if (!is_mariadb && (major > 8 || (major == 8 && (minor > 0 || patch >= 30))))
		appendStringInfoString(&sql, ", show_gipk_in_create_table_and_information_schema = ON");
	mysql_session_execute(session, sql.data);
	mysql_session_execute(session, "SET sql_big_selects = 1");
	/* the one whose DEFAULT is not the global value; since 10.3.4, older ones are refused later */
	if (is_mariadb && (major > 10 || (major == 10 && minor >= 4)))
		mysql_session_execute(session, "SET system_versioning_asof = DEFAULT");

	account = mysql_session_scalar(session, "SELECT CURRENT_USER()");
	old = MemoryContextSwitchTo(session->cxt);
	session->site.account = account ? quote_account(account) : NULL;
	MemoryContextSwitchTo(old);
	pfree(sql.data);
}

MysqlSession *
mysql_session_open_host(const MysqlEndpoint *endpoint, int host)
{
	MysqlSession *session;

	init_library();
	check_key_file(endpoint);
	session = session_create(endpoint, host);
	PG_TRY();
	{
		wait_connected(session, endpoint);
		set_up_session(session);
	}
	PG_CATCH();
	{
		mysql_session_close(session);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return session;
}

const char *
mysql_session_version(const MysqlSession *session)
{
	return session->version;
}

const char *
mysql_session_account(const MysqlSession *session)
{
	return session->site.account ? session->site.account : session->site.username;
}

const char *
mysql_session_server_name(const MysqlSession *session)
{
	return session->site.server_name;
}

const char *
mysql_session_target(const MysqlSession *session)
{
	return session->site.target;
}

unsigned int
mysql_session_last_errno(const MysqlSession *session)
{
	return session->last_errno >= 1000 ? session->last_errno : 0;
}

static void
check_usable(MysqlSession *session)
{
	if (session->state == SESSION_QUERY)
		mysql_session_drain(session);
	session->last_errno = 0;
	if (session->state == SESSION_BROKEN)
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("lost connection to source server \"%s\"", session->site.server_name)));
	if (session->state != SESSION_IDLE)
		elog(ERROR, "session to a source server is used for a dump");
}

void
mysql_session_query(MysqlSession *session, const char *sql)
{
	check_usable(session);
	if (!mysql_thread_query(session->thread, sql))
		util_throw_out_of_memory();
	session->state = SESSION_QUERY;
	session->answer_bytes = 0;
}

/* Make the arrays of the row large enough. */
static void
reserve_fields(MysqlSession *session, int nfields)
{
	if (nfields <= session->fields_allocated)
		return;
	if (session->values != NULL)
	{
		pfree(session->values);
		pfree(session->lengths);
	}
	session->values = MemoryContextAlloc(session->cxt, sizeof(char *) * nfields);
	session->lengths = MemoryContextAlloc(session->cxt, sizeof(uint32) * nfields);
	session->fields_allocated = nfields;
}

bool
mysql_session_fetch(MysqlSession *session, MysqlRow *row)
{
	const uint8 *data;
	size_t		len;
	uint32		kind;
	uint32		nfields;
	const uint32 *lengths;
	const char *value;

	if (session->state != SESSION_QUERY)
		return false;
	kind = wait_record(session, UTIL_WAIT_SOURCE_READ, &data, &len);
	if (kind == MYSQL_RECORD_ERROR)
		session_throw(session, data, len);
	if (kind == MYSQL_RECORD_DONE)
	{
		session->state = SESSION_IDLE;
		return false;
	}

	Assert(kind == MYSQL_RECORD_ROW);

	/* callers keep what they read; one row may have any length, as with large objects */
	if (session->answer_bytes > MAX_ANSWER_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("source server \"%s\" answers a query with more than %d MB",
						session->site.server_name, MAX_ANSWER_BYTES / 1024 / 1024)));
	session->answer_bytes += len;
	lengths = (const uint32 *) data;
	nfields = *lengths++;
	reserve_fields(session, (int) nfields);
	value = (const char *) (lengths + nfields);
	for (uint32 i = 0; i < nfields; i++)
	{
		if (lengths[i] == MYSQL_ROW_NULL)
		{
			session->values[i] = NULL;
			session->lengths[i] = 0;
			continue;
		}
		session->values[i] = value;
		session->lengths[i] = lengths[i];
		value += lengths[i] + 1;
	}
	row->nfields = (int) nfields;
	row->values = session->values;
	row->lengths = session->lengths;
	return true;
}

void
mysql_session_set_patience(MysqlSession *session, int ms)
{
	mysql_ring_set_patience(session->ring, ms);
}

bool
mysql_session_gave_up(const MysqlSession *session)
{
	return session->last_errno == MYSQL_THREAD_GAVE_UP;
}

void
mysql_session_let_go(MysqlSession *session)
{
	session->answer_bytes = 0;
}

Size
mysql_row_copy(MemoryContext cxt, const MysqlRow *from, MysqlRow *to)
{
	Size		size = (sizeof(char *) + sizeof(uint32)) * from->nfields;
	uint32	   *lengths;
	char	   *p;

	for (int i = 0; i < from->nfields; i++)
	{
		if (from->values[i] != NULL)
			size += from->lengths[i] + 1;
	}

	p = MemoryContextAllocHuge(cxt, size);
	to->nfields = from->nfields;
	to->values = (const char **) p;
	p += sizeof(char *) * from->nfields;
	to->lengths = lengths = (uint32 *) p;
	p += sizeof(uint32) * from->nfields;
	for (int i = 0; i < from->nfields; i++)
	{
		to->values[i] = NULL;
		lengths[i] = from->lengths[i];
		if (from->values[i] != NULL)
		{
			memcpy(p, from->values[i], lengths[i]);
			p[lengths[i]] = '\0';
			to->values[i] = p;
			p += lengths[i] + 1;
		}
	}
	return size;
}

void
mysql_session_drain(MysqlSession *session)
{
	MysqlRow	row;

	while (mysql_session_fetch(session, &row))
		session->answer_bytes = 0;
}

void
mysql_session_execute(MysqlSession *session, const char *sql)
{
	mysql_session_query(session, sql);
	mysql_session_drain(session);
}

char *
mysql_session_scalar(MysqlSession *session, const char *sql)
{
	MysqlRow	row;
	char	   *result = NULL;

	mysql_session_query(session, sql);
	if (mysql_session_fetch(session, &row))
	{
		if (row.nfields > 0 && row.values[0] != NULL)
			result = pnstrdup(row.values[0], row.lengths[0]);
		mysql_session_drain(session);
	}
	return result;
}

char *
mysql_quote_literal(const char *str, size_t len)
{
	StringInfoData buf;

	initStringInfo(&buf);
	appendStringInfoChar(&buf, '\'');
	for (size_t i = 0; i < len; i++)
	{
		switch (str[i])
		{
			case '\0':
				appendStringInfoString(&buf, "\\0");	/* a NUL would end the statement's text */
				break;
			case '\'':
			case '\\':
				appendStringInfoChar(&buf, str[i]);
				/* FALLTHROUGH */
			default:
				appendStringInfoChar(&buf, str[i]);
				break;
		}
	}
	appendStringInfoChar(&buf, '\'');
	return buf.data;
}

char *
mysql_quote_identifier(const char *name)
{
	StringInfoData buf;

	initStringInfo(&buf);
	appendStringInfoChar(&buf, '`');
	for (const char *p = name; *p; p++)
	{
		if (*p == '`')
			appendStringInfoChar(&buf, '`');
		appendStringInfoChar(&buf, *p);
	}
	appendStringInfoChar(&buf, '`');
	return buf.data;
}

/*
 * Tell the server what kind of replica this is. The checksum variables take the
 * server's own setting, so that the log comes as it was written; without them
 * it refuses a replica that it believes too old for checksums.
 */
static void
announce_replica(MysqlSession *session, const MysqlDump *dump)
{
	StringInfoData sql;
	int64		period = (int64) dump->heartbeat_interval * 1000000;

	initStringInfo(&sql);
	appendStringInfo(&sql,
					 "SET @master_binlog_checksum = @@global.binlog_checksum, "
					 "@source_binlog_checksum = @@global.binlog_checksum, "
					 "@master_heartbeat_period = " INT64_FORMAT ", "
					 "@source_heartbeat_period = " INT64_FORMAT, period, period);
	if (dump->is_mariadb)
	{
		appendStringInfoString(&sql, ", @mariadb_slave_capability = 4");
		if (!cdc_position_is_known(&dump->from))
		{
			const char *state = dump->gtid_state ? dump->gtid_state : "";

			appendStringInfo(&sql,
							 ", @slave_connect_state = %s, @slave_gtid_strict_mode = 1, "
							 "@slave_gtid_ignore_duplicates = 0",
							 mysql_quote_literal(state, strlen(state)));
		}
	}
	else if (dump->replica_uuid != NULL)
	{
		char	   *uuid = mysql_quote_literal(dump->replica_uuid, strlen(dump->replica_uuid));

		appendStringInfo(&sql, ", @slave_uuid = %s, @replica_uuid = %s", uuid, uuid);
	}
	mysql_session_execute(session, sql.data);
	pfree(sql.data);
}

void
mysql_session_start_dump(MysqlSession *session, const MysqlDump *dump)
{
	MysqlThreadDump request = {0};
	bool		by_position = cdc_position_is_known(&dump->from);
	char		text[CDC_POSITION_TEXT_MAX];
	static unsigned char empty_set[8];	/* an encoded set without members */

	check_usable(session);
	if (by_position && dump->from.offset > PG_UINT32_MAX)
		elog(ERROR, "dump by position above 4 GiB");
	announce_replica(session, dump);

	request.file = "";
	request.offset = 4;
	request.server_id = dump->server_id;
	request.flags = DUMP_FLAG_NONE;
	if (by_position)
	{
		request.file = (char *) dump->from.file;
		request.offset = Max(dump->from.offset, 4);
		cdc_position_format(&dump->from, text);
		session->site.position = MemoryContextStrdup(session->cxt, text);
		session->site.position_is_unproven = request.offset > 4;
	}
	else
	{
		session->site.position = "what follows a set of GTIDs";
		if (!dump->is_mariadb)
		{
			request.by_gtid = true;
			request.gtid_set = dump->gtid_set ? unconstify(uint8 *, dump->gtid_set) : empty_set;
			request.gtid_set_len = dump->gtid_set ? dump->gtid_set_len : sizeof(empty_set);
		}
	}
	if (!mysql_thread_dump(session->thread, &request))
		util_throw_out_of_memory();
	session->state = SESSION_DUMP;
	session->site.stage = MYSQL_STAGE_DUMP;
	session->heartbeat_interval = dump->heartbeat_interval;
	session->last_data = GetCurrentTimestamp();
	session->data_since = false;
	session->got_packet = false;
	session->held_seen = mysql_ring_waited(session->ring);
	session->excused_until = 0;
}

/*
 * Was the socket not read for a while, because we did not take what had come? Then its buffers were full, and the
 * server's TCP tries again after pauses that double: after being held up for t, the next attempt may be t away.
 * A silence that long tells nothing of the server; and to connect anew would read a large source transaction from its
 * beginning again, each time that the target makes us wait in it.
 */
static void
excuse_silence(MysqlSession *session, TimestampTz now)
{
	uint64		held = mysql_ring_waited(session->ring);
	TimestampTz until;

	if (held == session->held_seen)
		return;
	until = TimestampTzPlusMilliseconds(now, (int64) Min(held - session->held_seen, LONGEST_RETRANSMIT));
	session->held_seen = held;
	session->excused_until = Max(session->excused_until, until);
}

/*
 * Nothing came: has the server been silent for too long? The clock is read only
 * here, never per packet, so the limit may be passed by one more waiting time.
 */
static void
check_silence(MysqlSession *session)
{
	TimestampTz now = GetCurrentTimestamp();
	long		limit = (long) MISSED_HEARTBEATS * session->heartbeat_interval;

	excuse_silence(session, now);
	if (session->data_since)
	{
		session->last_data = now;
		session->data_since = false;
		return;
	}
	if (!session->got_packet)
		limit = Max(limit, FIRST_PACKET_TIMEOUT);
	if (!TimestampDifferenceExceeds(Max(session->last_data, session->excused_until), now, (int) limit))
		return;
	session->state = SESSION_BROKEN;
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("lost connection to source server \"%s\"", session->site.server_name),
			 errdetail("Nothing came for %ld ms, although the server should send a heartbeat every %d ms.",
					   limit, session->heartbeat_interval)));
}

void
mysql_session_proved_position(MysqlSession *session)
{
	session->site.position_is_unproven = false;
}

MysqlPacketResult
mysql_session_packet(MysqlSession *session, int timeout_ms, const uint8 **data, size_t *len)
{
	uint32		kind;

	if (unlikely(session->state != SESSION_DUMP))
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("lost connection to source server \"%s\"", session->site.server_name)));
	/* look for a silent server at least that often */
	timeout_ms = Min(timeout_ms, MISSED_HEARTBEATS * session->heartbeat_interval);
	if (!next_record(session, timeout_ms, UTIL_WAIT_SOURCE_READ, &kind, data, len))
	{
		check_silence(session);
		return MYSQL_PACKET_TIMEOUT;
	}
	if (unlikely(kind == MYSQL_RECORD_ERROR))
		session_throw(session, *data, *len);
	Assert(kind == MYSQL_RECORD_PACKET);
	session->data_since = true;
	session->got_packet = true;
	return MYSQL_PACKET_DATA;
}
