/*-------------------------------------------------------------------------
 *
 * mysql_session.h
 *	  One connection to a MySQL-family server, driven by a helper thread.
 *
 * NOTES
 *	  The client library blocks; a backend must not. So every session has a
 *	  thread that does all calls of the library (name resolution, TLS, login,
 *	  queries, the binary log dump) and hands rows or packets over through a
 *	  bounded ring in malloc'd memory. The thread blocks all signals and calls
 *	  nothing of PostgreSQL. The worker waits on its latch and an eventfd, so
 *	  CHECK_FOR_INTERRUPTS works at any time; closing shuts the socket down,
 *	  which ends any call the thread is in.
 *
 *	  A session lives until mysql_session_close, or until the memory context it
 *	  was opened in is reset or deleted, or the process exits. One request at a
 *	  time: a query's rows are read to the end (or mysql_session_drain) before
 *	  the next one. Errors are thrown with the server's message and number in
 *	  the detail; after a thrown error the session can only be closed, except
 *	  after a failed query, which leaves it usable.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_MYSQL_SESSION_H
#define CDC_MYSQL_SESSION_H

#include "postgres.h"

#include "core/position.h"
#include "mysql/mysql_options.h"

typedef struct MysqlSession MysqlSession;

/*
 * Connect, log in and set the session up (utf8mb4, time_zone '+00:00', sql_mode
 * '' so that zero dates read as they are, autocommit, REPEATABLE READ, long net
 * time-outs, and all else that could change an answer). Waits for it; throws 08001 when the server cannot be reached, 28000
 * when it refuses the login. Of several hosts the first that takes us, beginning with endpoint->first; all of them are
 * told when none does. Who needs one certain server calls mysql_server_open.
 */
extern MysqlSession *mysql_session_open(const MysqlEndpoint *endpoint);

/* The same with the host of that number; and with an error of the connection returned in *error (else NULL) and not thrown. */
extern MysqlSession *mysql_session_open_host(const MysqlEndpoint *endpoint, int host);
extern MysqlSession *mysql_session_try_host(const MysqlEndpoint *endpoint, int host, ErrorData **error);

/* "host "db1", port 3306": the server that was connected to. Lives as the session does. */
extern const char *mysql_session_target(const MysqlSession *session);

/* Throw the errors (ErrorData, at least one) that the hosts of an endpoint gave, as one; with several: what each of them said. */
extern _Noreturn void mysql_hosts_throw(const MysqlEndpoint *endpoint, List *errors);

/* Never throws; NULL is allowed. */
extern void mysql_session_close(MysqlSession *session);

/* A row of text values: NULL pointers are SQL NULLs. */
typedef struct MysqlRow
{
	int			nfields;
	const char **values;		/* NUL-terminated, may hold NULs inside */
	const uint32 *lengths;
} MysqlRow;

/* Start a query or another statement; throws when the server refuses it (SQLSTATE of ours by the server's number). */
extern void mysql_session_query(MysqlSession *session, const char *sql);

/* Next row of the query, which lives until the next call on the session; false at its end. */
extern bool mysql_session_fetch(MysqlSession *session, MysqlRow *row);

/* Keep a row, in one piece of memory in cxt; returns its size in bytes. */
extern Size mysql_row_copy(MemoryContext cxt, const MysqlRow *from, MysqlRow *to);

/*
 * From now on an answer is given up when we have taken nothing of it for so long while more of it waits: the statement
 * at the source ends, and the connection with it. Fetch then throws, and mysql_session_gave_up tells why.
 */
extern void mysql_session_set_patience(MysqlSession *session, int ms);
extern bool mysql_session_gave_up(const MysqlSession *session);

/* What was read so far is not kept any longer: the bound for one answer counts from here on. */
extern void mysql_session_let_go(MysqlSession *session);

/* Read the rest of the query's rows and drop them. */
extern void mysql_session_drain(MysqlSession *session);

/* Run a statement that returns no rows that matter. */
extern void mysql_session_execute(MysqlSession *session, const char *sql);

/* First column of the first row, palloc'd; NULL when there is no row or it is NULL. */
extern char *mysql_session_scalar(MysqlSession *session, const char *sql);

/* The server's version text; the account as GRANT wants it ('repl'@'%'); the SERVER's name. Live as the session does. */
extern const char *mysql_session_version(const MysqlSession *session);
extern const char *mysql_session_account(const MysqlSession *session);
extern const char *mysql_session_server_name(const MysqlSession *session);

/* Number of the server's error in the last thrown error; 0 when it was not the server's. */
extern unsigned int mysql_session_last_errno(const MysqlSession *session);

/* Literal of a string for a statement, quoted, palloc'd ('it''s', backslashes doubled). */
extern char *mysql_quote_literal(const char *str, size_t len);

/* Quoted identifier, palloc'd (`a``b`). */
extern char *mysql_quote_identifier(const char *name);

typedef struct MysqlDump
{
	CdcPosition from;			/* known: dump by file and offset (below 4 GiB) */
	const uint8 *gtid_set;		/* else MySQL: encoded set for COM_BINLOG_DUMP_GTID */
	size_t		gtid_set_len;
	const char *gtid_state;		/* else MariaDB: text for @slave_connect_state */
	bool		is_mariadb;
	uint32		server_id;
	const char *replica_uuid;	/* MySQL: @slave_uuid, text */
	int			heartbeat_interval; /* ms */
} MysqlDump;

/* Turn the session into a binary log dump; from here on only mysql_session_packet and close are allowed. */
extern void mysql_session_start_dump(MysqlSession *session, const MysqlDump *dump);

/* An event that stands in the log after the position of the dump was read: errors that follow are of another kind. */
extern void mysql_session_proved_position(MysqlSession *session);

typedef enum MysqlPacketResult
{
	MYSQL_PACKET_DATA,			/* *data, *len: one event with its header, without the leading 0x00 */
	MYSQL_PACKET_TIMEOUT
} MysqlPacketResult;

/*
 * Next packet of the dump, waiting at most timeout_ms (0: do not wait). The
 * bytes live until the next call. Throws 08006 when the connection ends or
 * nothing (not even a heartbeat) came for five heartbeat intervals,
 * CDC_ERRCODE_POSITION_LOST when the server no longer has the position.
 */
extern MysqlPacketResult mysql_session_packet(MysqlSession *session, int timeout_ms,
											  const uint8 **data, size_t *len);

#endif							/* CDC_MYSQL_SESSION_H */
