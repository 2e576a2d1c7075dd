/*-------------------------------------------------------------------------
 *
 * mysql_thread.h
 *	  The helper thread that makes all calls of the client library.
 *
 * NOTES
 *	  Plain C: no PostgreSQL call, malloc'd memory only. The state is shared by
 *	  the backend and the thread and freed by whoever lets go last, so a thread
 *	  stuck in name resolution can be left behind without harm.
 *
 *	  The thread connects at once and answers with MYSQL_RECORD_DONE (payload:
 *	  the server's version text) or MYSQL_RECORD_ERROR. Then it takes one
 *	  request after the other; each is answered by records that end with DONE or
 *	  ERROR, a dump by PACKETs until an ERROR.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_MYSQL_THREAD_H
#define CDC_MYSQL_THREAD_H

#include "mysql/mysql_ring.h"

enum
{
	MYSQL_RECORD_DONE = 1,
	MYSQL_RECORD_ROW,			/* uint32 count, uint32 lengths[count], the values, each with a NUL behind it */
	MYSQL_RECORD_PACKET,
	MYSQL_RECORD_ERROR			/* MysqlThreadError */
};

#define MYSQL_ROW_NULL UINT32_MAX

typedef struct MysqlThreadError
{
	unsigned int code;			/* the client library's or the server's number */
	char		sqlstate[6];
	char		text[512];
} MysqlThreadError;

/* The log ended although it should go on for ever; not a number of the library's. */
#define MYSQL_THREAD_END_OF_STREAM 1
#define MYSQL_THREAD_OUT_OF_MEMORY 2
#define MYSQL_THREAD_GAVE_UP 3	/* its reader took nothing for longer than the ring's patience */

/* What the thread needs to connect; strings may be NULL and are copied. */
typedef struct MysqlThreadConnect
{
	char	   *host;
	char	   *socket;
	char	   *username;
	char	   *password;
	char	   *ssl_ca;
	char	   *ssl_cert;
	char	   *ssl_key;
	char	   *server_public_key;
	int			port;
	unsigned int connect_timeout;	/* s */
	bool		use_tls;
	bool		verify_chain;
	bool		verify_host;
	bool		fetch_public_key;	/* without TLS: take the RSA key that the server sends */
} MysqlThreadConnect;

typedef struct MysqlThreadDump
{
	char	   *file;
	uint64_t	offset;
	uint32_t	server_id;
	unsigned int flags;			/* on the wire */
	bool		by_gtid;		/* COM_BINLOG_DUMP_GTID with gtid_set */
	unsigned char *gtid_set;
	size_t		gtid_set_len;
} MysqlThreadDump;

typedef struct MysqlThread MysqlThread;

/* Load and set up the client library; once per process, before any thread. */
extern bool mysql_thread_init_library(void);

/* NULL with errno set when memory, descriptors or threads are out. */
extern MysqlThread *mysql_thread_start(const MysqlThreadConnect *connect, size_t ring_size);

extern MysqlRing *mysql_thread_ring(MysqlThread *thread);

/* Grows whenever bytes come from the server, where the library tells. */
extern unsigned int mysql_thread_reads(MysqlThread *thread);

/* Requests; false when memory is out. The request before must have ended. */
extern bool mysql_thread_query(MysqlThread *thread, const char *sql);
extern bool mysql_thread_dump(MysqlThread *thread, const MysqlThreadDump *dump);

/*
 * End the thread and let go of it. Waits for it at most timeout_ms; true when it
 * ended in time, false when it was left behind (it ends by itself and touches
 * nothing of ours).
 */
extern bool mysql_thread_stop(MysqlThread *thread, int timeout_ms);

/* Were threads ever left behind in this process? */
extern bool mysql_thread_any_abandoned(void);

#endif							/* CDC_MYSQL_THREAD_H */
