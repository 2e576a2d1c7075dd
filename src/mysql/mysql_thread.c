/*-------------------------------------------------------------------------
 *
 * mysql_thread.c
 *	  The helper thread that makes all calls of the client library.
 *
 * NOTES
 *	  Stopping: an idle thread waits for a request and leaves at once. A busy
 *	  one sits in a read or write of its socket, which shutdown() ends within
 *	  milliseconds, TLS or not; or in the ring, which is stopped. Until the TCP
 *	  connection stands there is no descriptor that we could shut down: then it
 *	  is left behind and ends when name resolution or the connect time-out does.
 *	  We keep a duplicate of the descriptor, because the library closes its own
 *	  when a login fails, and the number may be somebody else's a moment later.
 *
 *	  The dump is read packet by packet with the library's public raw reader,
 *	  never with mariadb_rpl_fetch: that one stops at log rotation and refuses
 *	  compressed transactions of MySQL (seen in libmariadb 3.3.20 and 3.4.10).
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "core/utf8.h"
#include "mysql/mysql_client.h"
#include "mysql/mysql_connect.h"
#include "mysql/mysql_thread.h"

#ifdef MYSQL_CLIENT_IS_MARIADB
#include <ma_pvio.h>
#endif

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define THREAD_STACK (2 * 1024 * 1024)

#define COM_BINLOG_DUMP_BYTE 0x12
#define COM_BINLOG_DUMP_GTID_BYTE 0x1e

typedef enum RequestKind
{
	REQUEST_NONE = 0,
	REQUEST_QUERY,
	REQUEST_DUMP
} RequestKind;

struct MysqlThread
{
	atomic_int	refs;
	atomic_uint reads;			/* times that bytes came */
	pthread_t	id;
	MysqlRing  *ring;

	pthread_mutex_t lock;		/* guards what follows */
	pthread_cond_t changed;
	bool		stopping;
	bool		busy;			/* inside a library call that may block */
	bool		finished;
	int			fd;				/* our duplicate of the socket, -1: none yet */
	RequestKind request;
	char	   *sql;
	MysqlThreadDump dump;

	/* thread only */
	bool		socket_noted;
	MysqlThreadConnect connect;
	MYSQL	   *mysql;
};

static atomic_bool any_abandoned;

/* What runs in this thread; set only in ours. */
static _Thread_local MysqlThread *current_thread;

static void *thread_main(void *arg);

#ifdef MYSQL_CLIENT_IS_MARIADB
/* exported since libmariadb 3.0, but in no installed header */
extern int	ma_pvio_register_callback(my_bool on, void (*callback) (int mode, MYSQL *mysql,
																	 const unsigned char *buffer, size_t length));
static void io_cb(int mode, MYSQL *mysql, const unsigned char *buffer, size_t length);
#endif

bool
mysql_thread_init_library(void)
{
	if (mysql_library_init(0, NULL, NULL) != 0)
		return false;
#ifdef MYSQL_CLIENT_IS_MARIADB
	(void) ma_pvio_register_callback(1, io_cb);
#endif
	return true;
}

bool
mysql_thread_any_abandoned(void)
{
	return atomic_load(&any_abandoned);
}

/* Wipe and free a string that may be a secret. */
static void
free_secret(char *str)
{
	if (str != NULL)
		explicit_bzero(str, strlen(str));
	free(str);
}

static void
free_connect(MysqlThreadConnect *connect)
{
	free(connect->host);
	free(connect->socket);
	free(connect->username);
	free_secret(connect->password);
	free(connect->ssl_ca);
	free(connect->ssl_cert);
	free(connect->ssl_key);
	free(connect->server_public_key);
	memset(connect, 0, sizeof(*connect));
}

static bool
copy_string(char **dst, const char *src)
{
	*dst = NULL;
	if (src == NULL)
		return true;
	*dst = strdup(src);
	return *dst != NULL;
}

static bool
copy_connect(MysqlThreadConnect *dst, const MysqlThreadConnect *src)
{
	bool		ok = true;

	*dst = *src;
	ok &= copy_string(&dst->host, src->host);
	ok &= copy_string(&dst->socket, src->socket);
	ok &= copy_string(&dst->username, src->username);
	ok &= copy_string(&dst->password, src->password);
	ok &= copy_string(&dst->ssl_ca, src->ssl_ca);
	ok &= copy_string(&dst->ssl_cert, src->ssl_cert);
	ok &= copy_string(&dst->ssl_key, src->ssl_key);
	ok &= copy_string(&dst->server_public_key, src->server_public_key);
	return ok;
}

static void
unref(MysqlThread *thread)
{
	if (atomic_fetch_sub(&thread->refs, 1) != 1)
		return;
	free_connect(&thread->connect);
	free(thread->sql);
	free(thread->dump.file);
	free(thread->dump.gtid_set);
	if (thread->fd >= 0)
		close(thread->fd);
	if (thread->ring != NULL)
		mysql_ring_free(thread->ring);
	pthread_cond_destroy(&thread->changed);
	pthread_mutex_destroy(&thread->lock);
	free(thread);
}

static void
init_condition(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

MysqlThread *
mysql_thread_start(const MysqlThreadConnect *connect, size_t ring_size)
{
	MysqlThread *thread = calloc(1, sizeof(MysqlThread));
	pthread_attr_t attr;
	sigset_t	all;
	sigset_t	old;
	int			rc;

	if (thread == NULL)
		return NULL;
	atomic_store(&thread->refs, 1);
	pthread_mutex_init(&thread->lock, NULL);
	init_condition(&thread->changed);
	thread->fd = -1;
	thread->busy = true;
	thread->ring = mysql_ring_create(ring_size);
	if (!copy_connect(&thread->connect, connect) || thread->ring == NULL)
	{
		unref(thread);
		errno = ENOMEM;
		return NULL;
	}

	/* The backend's handlers must never run in the thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	atomic_store(&thread->refs, 2);
	rc = pthread_create(&thread->id, &attr, thread_main, thread);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0)
	{
		atomic_store(&thread->refs, 1);
		unref(thread);
		errno = rc;
		return NULL;
	}
	return thread;
}

MysqlRing *
mysql_thread_ring(MysqlThread *thread)
{
	return thread->ring;
}

unsigned int
mysql_thread_reads(MysqlThread *thread)
{
	return atomic_load_explicit(&thread->reads, memory_order_relaxed);
}

bool
mysql_thread_query(MysqlThread *thread, const char *sql)
{
	char	   *copy = strdup(sql);

	if (copy == NULL)
		return false;
	pthread_mutex_lock(&thread->lock);
	free(thread->sql);
	thread->sql = copy;
	thread->request = REQUEST_QUERY;
	pthread_cond_broadcast(&thread->changed);
	pthread_mutex_unlock(&thread->lock);
	return true;
}

bool
mysql_thread_dump(MysqlThread *thread, const MysqlThreadDump *dump)
{
	MysqlThreadDump copy = *dump;

	copy.file = strdup(dump->file);
	copy.gtid_set = malloc(dump->gtid_set_len + 1);
	if (copy.file == NULL || copy.gtid_set == NULL)
	{
		free(copy.file);
		free(copy.gtid_set);
		return false;
	}
	if (dump->gtid_set_len > 0)
		memcpy(copy.gtid_set, dump->gtid_set, dump->gtid_set_len);
	pthread_mutex_lock(&thread->lock);
	thread->dump = copy;
	thread->request = REQUEST_DUMP;
	pthread_cond_broadcast(&thread->changed);
	pthread_mutex_unlock(&thread->lock);
	return true;
}

/* Wait for the end of the thread until timeout_ms from now; the lock is held. */
static void
wait_finished(MysqlThread *thread, int timeout_ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += (long) (timeout_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000)
	{
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	while (!thread->finished)
	{
		if (pthread_cond_timedwait(&thread->changed, &thread->lock, &until) == ETIMEDOUT)
			break;
	}
}

/*
 * End what a connection is doing. When it is closed the server is told at once that nobody takes what it is sending
 * (a reset). Otherwise it would learn that minutes later, as it only asks now and then whether there is room again, and
 * its statement would hold the table's lock until then.
 */
static void
cut_socket(int fd)
{
	struct linger at_once = {.l_onoff = 1,.l_linger = 0};

	(void) setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	shutdown(fd, SHUT_RDWR);
}

bool
mysql_thread_stop(MysqlThread *thread, int timeout_ms)
{
	bool		finished;

	mysql_ring_stop(thread->ring);
	pthread_mutex_lock(&thread->lock);
	thread->stopping = true;
	pthread_cond_broadcast(&thread->changed);

	/* An idle thread says goodbye to the server; one that is in a call does not come back by itself. */
	if (!thread->busy)
		wait_finished(thread, timeout_ms / 2);
	if (!thread->finished)
	{
		if (thread->fd >= 0)
			cut_socket(thread->fd);
		wait_finished(thread, thread->busy ? timeout_ms : timeout_ms / 2);
	}
	finished = thread->finished;
	pthread_mutex_unlock(&thread->lock);

	if (finished)
		pthread_join(thread->id, NULL);
	else
	{
		atomic_store(&any_abandoned, true);
		pthread_detach(thread->id);
	}
	unref(thread);
	return finished;
}

/* ---- from here on everything runs in the thread ---- */

static void
put_error(MysqlThread *thread, unsigned int code, const char *sqlstate, const char *text)
{
	MysqlThreadError *error = mysql_ring_reserve(thread->ring, MYSQL_RECORD_ERROR, sizeof(MysqlThreadError));

	if (error == NULL)
		return;					/* stopped: nobody reads any more */
	memset(error, 0, sizeof(*error));
	error->code = code;
	snprintf(error->sqlstate, sizeof(error->sqlstate), "%s", sqlstate);
	snprintf(error->text, sizeof(error->text), "%s", text);
	cdc_utf8_repair(error->text);	/* it goes into the catalog */
	mysql_ring_publish(thread->ring);
}

static void
put_library_error(MysqlThread *thread)
{
	put_error(thread, mysql_errno(thread->mysql), mysql_sqlstate(thread->mysql), mysql_error(thread->mysql));
}

/* reserve said no: because of a stop (then this does nothing), or of memory. */
static void
put_out_of_memory(MysqlThread *thread)
{
	if (!mysql_ring_is_stopped(thread->ring))
		put_error(thread, MYSQL_THREAD_OUT_OF_MEMORY, "HY001", "out of memory");
}

static void
put_done(MysqlThread *thread, const char *text)
{
	size_t		len = strlen(text) + 1;
	void	   *data = mysql_ring_reserve(thread->ring, MYSQL_RECORD_DONE, len);

	if (data == NULL)
		return;
	memcpy(data, text, len);
	cdc_utf8_repair(data);
	mysql_ring_publish(thread->ring);
}

/* Keep a duplicate of the socket, so that mysql_thread_stop can shut it down. */
static void
note_socket(MysqlThread *thread)
{
	int			fd = mysql_connect_socket(thread->mysql);

	if (fd < 0)
		return;
	pthread_mutex_lock(&thread->lock);
	if (thread->fd < 0)
		thread->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	/* the stop came before there was anything to shut down */
	if (thread->stopping && thread->fd >= 0)
		cut_socket(thread->fd);
	pthread_mutex_unlock(&thread->lock);
}

#ifdef MYSQL_CLIENT_IS_MARIADB

/*
 * The library calls this after every read and write. The first one, the
 * server's greeting, is the earliest moment to learn the descriptor, long
 * before mysql_real_connect returns.
 */
static void
io_cb(int mode, MYSQL *mysql, const unsigned char *buffer, size_t length)
{
	MysqlThread *thread = current_thread;

	(void) mode;
	(void) buffer;
	(void) length;
	if (thread != NULL)
		atomic_fetch_add_explicit(&thread->reads, 1, memory_order_relaxed);
	if (thread != NULL && !thread->socket_noted && thread->mysql == mysql)
	{
		thread->socket_noted = true;
		note_socket(thread);
	}
}

#endif

static bool
connect_server(MysqlThread *thread)
{
	thread->mysql = mysql_init(NULL);
	if (thread->mysql == NULL)
	{
		put_error(thread, MYSQL_THREAD_OUT_OF_MEMORY, "HY001", "out of memory");
		return false;
	}
	switch (mysql_connect_open(thread->mysql, &thread->connect))
	{
		case MYSQL_CONNECT_OK:
			break;
		case MYSQL_CONNECT_FAILED:
			put_library_error(thread);
			return false;
		case MYSQL_CONNECT_NO_TLS:
			put_error(thread, CR_SSL_CONNECTION_ERROR, "HY000", "the server does not offer TLS");
			return false;
	}
	free_connect(&thread->connect);
	note_socket(thread);
	return true;
}

/* Hand one row over. */
static bool
put_row(MysqlThread *thread, MYSQL_ROW row, const unsigned long *lengths, unsigned int nfields)
{
	size_t		size = sizeof(uint32_t) * (1 + (size_t) nfields);
	uint32_t   *out;
	char	   *data;

	for (unsigned int i = 0; i < nfields; i++)
	{
		if (row[i] != NULL)
			size += lengths[i] + 1;
	}
	out = mysql_ring_reserve(thread->ring, MYSQL_RECORD_ROW, size);
	if (out == NULL)
		return false;
	*out++ = nfields;
	data = (char *) (out + nfields);
	for (unsigned int i = 0; i < nfields; i++)
	{
		if (row[i] == NULL)
		{
			out[i] = MYSQL_ROW_NULL;
			continue;
		}
		out[i] = (uint32_t) lengths[i];
		memcpy(data, row[i], lengths[i]);
		data[lengths[i]] = '\0';
		data += lengths[i] + 1;
	}
	mysql_ring_publish(thread->ring);
	return true;
}

/* Close the connection, so that the server learns that nobody takes what it is sending. */
static void
close_connection(MysqlThread *thread)
{
	mysql_close(thread->mysql);
	thread->mysql = NULL;
	pthread_mutex_lock(&thread->lock);
	if (thread->fd >= 0)
		close(thread->fd);		/* the duplicate would keep it open */
	thread->fd = -1;
	pthread_mutex_unlock(&thread->lock);
}

/* False when the connection is gone afterwards. */
static bool
run_query(MysqlThread *thread, const char *sql)
{
	MYSQL	   *mysql = thread->mysql;
	MYSQL_RES  *result;
	MYSQL_ROW	row;
	unsigned int nfields;
	bool		stopped = false;
	bool		gave_up = false;

	if (mysql_real_query(mysql, sql, strlen(sql)) != 0)
	{
		put_library_error(thread);
		return true;
	}
	result = mysql_use_result(mysql);
	if (result == NULL)
	{
		if (mysql_errno(mysql) != 0)
			put_library_error(thread);
		else
			put_done(thread, "");
		return true;
	}
	nfields = mysql_num_fields(result);
	while (!stopped && (row = mysql_fetch_row(result)) != NULL)
	{
		const unsigned long *lengths = mysql_fetch_lengths(result);

		stopped = !put_row(thread, row, lengths, nfields);
	}
	if (stopped)
	{
		gave_up = mysql_ring_gave_up(thread->ring);
		if (!gave_up)
			put_out_of_memory(thread);

		/*
		 * mysql_free_result would read all the rest first. Nobody wants it: cut
		 * the connection.
		 */
		cut_socket(mysql_connect_socket(mysql));
	}
	else if (mysql_errno(mysql) != 0)
		put_library_error(thread);
	else
		put_done(thread, "");
	mysql_free_result(result);

	if (gave_up)
	{
		/* before the words, which wait for room */
		close_connection(thread);
		mysql_ring_set_patience(thread->ring, 0);
		put_error(thread, MYSQL_THREAD_GAVE_UP, "08006", "the answer was given up because it was not taken");
	}
	return !gave_up;
}

static bool
put_packet(MysqlThread *thread, const unsigned char *event, size_t len)
{
	void	   *data = mysql_ring_reserve(thread->ring, MYSQL_RECORD_PACKET, len);

	if (data == NULL)
	{
		put_out_of_memory(thread);
		return false;
	}
	memcpy(data, event, len);
	mysql_ring_publish(thread->ring);
	return true;
}

#ifdef MYSQL_CLIENT_IS_MARIADB

static unsigned char *
store_uint(unsigned char *p, uint64_t value, int nbytes)
{
	for (int i = 0; i < nbytes; i++)
		*p++ = (unsigned char) (value >> (8 * i));
	return p;
}

/* Send COM_BINLOG_DUMP or COM_BINLOG_DUMP_GTID. */
static bool
send_dump(MysqlThread *thread, const MysqlThreadDump *dump)
{
	size_t		file_len = strlen(dump->file);
	unsigned char *command = malloc(64 + file_len + dump->gtid_set_len);
	unsigned char *p = command;
	int			code = dump->by_gtid ? COM_BINLOG_DUMP_GTID_BYTE : COM_BINLOG_DUMP_BYTE;
	int			rc;

	if (command == NULL)
	{
		put_error(thread, MYSQL_THREAD_OUT_OF_MEMORY, "HY001", "out of memory");
		return false;
	}
	if (dump->by_gtid)
	{
		p = store_uint(p, dump->flags, 2);
		p = store_uint(p, dump->server_id, 4);
		p = store_uint(p, file_len, 4);
		memcpy(p, dump->file, file_len);
		p += file_len;
		p = store_uint(p, dump->offset, 8);
		p = store_uint(p, dump->gtid_set_len, 4);
		memcpy(p, dump->gtid_set, dump->gtid_set_len);
		p += dump->gtid_set_len;
	}
	else
	{
		p = store_uint(p, dump->offset, 4);
		p = store_uint(p, dump->flags, 2);
		p = store_uint(p, dump->server_id, 4);
		memcpy(p, dump->file, file_len);
		p += file_len;
	}
	rc = thread->mysql->methods->db_command(thread->mysql, (enum enum_server_command) code,
											(const char *) command, (size_t) (p - command), 1, NULL);
	free(command);
	if (rc != 0)
		put_library_error(thread);
	return rc == 0;
}

static void
run_dump(MysqlThread *thread, const MysqlThreadDump *dump)
{
	MYSQL	   *mysql = thread->mysql;

	if (!send_dump(thread, dump))
		return;
	for (;;)
	{
		unsigned long len = mysql_net_read_packet(mysql);
		const unsigned char *data = mysql->net.read_pos;

		if (len == packet_error)
		{
			put_library_error(thread);
			return;
		}
		if (len == 0 || data[0] != 0)
		{
			put_error(thread, MYSQL_THREAD_END_OF_STREAM, "08006", "the server ended the binary log dump");
			return;
		}
		if (!put_packet(thread, data + 1, len - 1))
			return;
	}
}

#else							/* libmysqlclient */

static void
run_dump(MysqlThread *thread, const MysqlThreadDump *dump)
{
	MYSQL	   *mysql = thread->mysql;
	MYSQL_RPL	rpl;

	memset(&rpl, 0, sizeof(rpl));
	rpl.file_name = dump->file;
	rpl.file_name_length = strlen(dump->file);
	rpl.start_position = dump->offset;
	rpl.server_id = dump->server_id;
	rpl.flags = dump->flags;
	if (dump->by_gtid)
	{
		rpl.flags |= MYSQL_RPL_GTID;
		rpl.gtid_set_encoded_size = dump->gtid_set_len;
		rpl.gtid_set_arg = dump->gtid_set;
	}
	if (mysql_binlog_open(mysql, &rpl) != 0)
	{
		put_library_error(thread);
		return;
	}
	for (;;)
	{
		if (mysql_binlog_fetch(mysql, &rpl) != 0)
		{
			put_library_error(thread);
			return;
		}
		if (rpl.size == 0)
		{
			put_error(thread, MYSQL_THREAD_END_OF_STREAM, "08006", "the server ended the binary log dump");
			return;
		}
		if (!put_packet(thread, rpl.buffer + 1, rpl.size - 1))
			return;
	}
}

#endif

/* Next request, or REQUEST_NONE when the thread shall end. Waiting counts as idle. */
static RequestKind
wait_for_request(MysqlThread *thread, char **sql, MysqlThreadDump *dump)
{
	RequestKind request;

	pthread_mutex_lock(&thread->lock);
	thread->busy = false;
	while (thread->request == REQUEST_NONE && !thread->stopping)
		pthread_cond_wait(&thread->changed, &thread->lock);
	request = thread->stopping ? REQUEST_NONE : thread->request;
	thread->request = REQUEST_NONE;
	if (request == REQUEST_QUERY)
	{
		*sql = thread->sql;
		thread->sql = NULL;
	}
	else if (request == REQUEST_DUMP)
		*dump = thread->dump;	/* stays with the state, which frees it */
	thread->busy = (request != REQUEST_NONE);
	pthread_mutex_unlock(&thread->lock);
	return request;
}

static void
serve_requests(MysqlThread *thread)
{
	RequestKind request;
	char	   *sql = NULL;
	MysqlThreadDump dump = {0};

	while ((request = wait_for_request(thread, &sql, &dump)) != REQUEST_NONE)
	{
		if (request == REQUEST_QUERY)
		{
			bool		connected = run_query(thread, sql);

			free(sql);
			if (!connected)
				break;
		}
		else
		{
			run_dump(thread, &dump);
			break;				/* the connection is of no use after a dump */
		}
	}
}

static void *
thread_main(void *arg)
{
	MysqlThread *thread = arg;

	current_thread = thread;
	mysql_thread_init();
	if (connect_server(thread))
	{
		put_done(thread, mysql_get_server_info(thread->mysql));
		serve_requests(thread);
	}
	current_thread = NULL;
	if (thread->mysql != NULL)
		mysql_close(thread->mysql);
	mysql_thread_end();

	pthread_mutex_lock(&thread->lock);
	thread->finished = true;
	pthread_cond_broadcast(&thread->changed);
	pthread_mutex_unlock(&thread->lock);
	unref(thread);
	return NULL;
}
