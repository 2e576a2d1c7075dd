/*-------------------------------------------------------------------------
 *
 * decode.c
 *	  Read a server's binary log from a file to its end: packets only, or with
 *	  every column of every row turned into a cell by the extension's decoder.
 *
 * NOTES
 *	  decode raw|decode|ring SOCKET USER FILE
 *
 *	  raw     read packets and drop them: how fast the server and the client
 *	          library can be
 *	  decode  the same loop, each packet decoded at once in the same thread
 *	  ring    as the extension does it: one thread reads packets and puts them
 *	          into the ring, the other one decodes
 *
 *	  The dump is asked for without waiting (BINLOG_DUMP_NON_BLOCK), so that the
 *	  server says when its log ends. Prints one line: seconds, CPU seconds of
 *	  this process, packets, bytes, rows, sum over the values (so that nothing
 *	  can be optimised away, and both ways of decoding can be compared).
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include <mysql.h>

#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "binlog/reader.h"
#include "core/arena.h"
#include "mysql/mysql_ring.h"

#define COM_BINLOG_DUMP_BYTE 0x12
#define DUMP_NON_BLOCK 1
#define RECORD_PACKET 1
#define RECORD_END 2
#define RING_SIZE (8 * 1024 * 1024)

typedef struct Decoder
{
	BinlogReader *reader;
	CdcArena	arena;
	uint64_t	rows;
	uint64_t	sum;
} Decoder;

typedef struct Counts
{
	uint64_t	packets;
	uint64_t	bytes;
} Counts;

typedef struct Reading
{
	MYSQL	   *mysql;
	MysqlRing  *ring;
	Counts		counts;
} Reading;

static void
fail(const char *what, const char *why)
{
	fprintf(stderr, "decode: %s: %s\n", what, why);
	exit(1);
}

static double
seconds_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static void
run_sql(MYSQL *mysql, const char *sql)
{
	if (mysql_query(mysql, sql) != 0)
		fail(sql, mysql_error(mysql));
}

/* Log in and ask for the log from the file's first event on. */
static MYSQL *
open_dump(const char *socket, const char *user, const char *file)
{
	MYSQL	   *mysql = mysql_init(NULL);
	size_t		file_len = strlen(file);
	unsigned char command[10 + 512] = {4, 0, 0, 0, DUMP_NON_BLOCK, 0, 77, 0, 0, 0};

	if (mysql == NULL || file_len > 512)
		fail("connecting", "out of memory, or the file's name is too long");
	if (mysql_real_connect(mysql, NULL, user, "", NULL, 0, socket, 0) == NULL)
		fail("connecting", mysql_error(mysql));
	if (strstr(mysql_get_server_info(mysql), "MariaDB") != NULL)
	{
		run_sql(mysql, "set @mariadb_slave_capability = 4");
		run_sql(mysql, "set @master_binlog_checksum = @@global.binlog_checksum");
	}
	else
	{
		run_sql(mysql, "set @source_binlog_checksum = @@global.binlog_checksum");
		run_sql(mysql, "set @slave_uuid = '5bd2d9d6-0000-4000-8000-000000000077'");
	}
	memcpy(command + 10, file, file_len);
	if (mysql->methods->db_command(mysql, (enum enum_server_command) COM_BINLOG_DUMP_BYTE,
								   (const char *) command, 10 + file_len, 1, NULL) != 0)
		fail("binary log dump", mysql_error(mysql));
	return mysql;
}

/* The next event, without the byte before it; false at the end of the log. */
static bool
next_packet(MYSQL *mysql, Counts *counts, const uint8_t **event, size_t *len)
{
	unsigned long size = mysql_net_read_packet(mysql);

	if (size == packet_error)
		fail("reading the log", mysql_error(mysql));
	if (mysql->net.read_pos[0] == 0xfe && size < 9)
		return false;
	if (size == 0 || mysql->net.read_pos[0] != 0)
		fail("reading the log", "the server sent something else");
	counts->packets++;
	counts->bytes += size - 1;
	*event = mysql->net.read_pos + 1;
	*len = size - 1;
	return true;
}

static void
decoder_open(Decoder *decoder, const char *file)
{
	CdcPosition start = {.offset = 4};
	BinlogReaderOptions options = {.memory_limit = 0};

	snprintf(start.file, sizeof(start.file), "%s", file);
	decoder->reader = binlog_reader_create(&cdc_malloc_allocator, &options);
	if (decoder->reader == NULL)
		fail("decoder", "out of memory");
	binlog_reader_start(decoder->reader, &start);
	cdc_arena_init(&decoder->arena, &cdc_malloc_allocator, 0);
	decoder->rows = 0;
	decoder->sum = 0;
}

static void
decode_image(Decoder *decoder, const CdcChange *change, const CdcField *fields)
{
	CdcCell		cell;
	CdcError	error;

	for (uint32_t i = 0; fields != NULL && i < change->table->ncolumns; i++)
	{
		if (fields[i].state == CDC_FIELD_ABSENT)
			continue;
		if (change->cell(&change->table->columns[i], &fields[i], &decoder->arena, &cell, &error) != CDC_OK)
			fail("decoding a value", error.text);
		decoder->sum += (uint64_t) cell.kind + cell.len;
		if (cell.kind == CDC_CELL_INT)
			decoder->sum += (uint64_t) cell.v.i;
		else if (cell.kind == CDC_CELL_TEXT && cell.len > 0)
			decoder->sum += (uint8_t) cell.v.data[cell.len - 1];
	}
}

static void
decode_event(Decoder *decoder, const uint8_t *data, size_t len)
{
	BinlogEvent event;
	CdcStatus	status = binlog_reader_feed(decoder->reader, data, len);

	while (status == CDC_OK && (status = binlog_reader_next(decoder->reader, &event)) == CDC_OK)
	{
		if (event.kind != BINLOG_ROW)
			continue;
		decoder->rows++;
		cdc_arena_reset(&decoder->arena);
		decode_image(decoder, &event.u.row, event.u.row.before);
		decode_image(decoder, &event.u.row, event.u.row.after);
	}
	if (status != CDC_END)
		fail("decoding", binlog_reader_error(decoder->reader)->text);
}

static void *
reading_thread(void *arg)
{
	Reading    *reading = arg;
	const uint8_t *event;
	size_t		len;
	void	   *record;

	while (next_packet(reading->mysql, &reading->counts, &event, &len))
	{
		if ((record = mysql_ring_reserve(reading->ring, RECORD_PACKET, len)) == NULL)
			fail("ring", "out of memory");
		memcpy(record, event, len);
		mysql_ring_publish(reading->ring);
	}
	if (mysql_ring_reserve(reading->ring, RECORD_END, 1) == NULL)
		fail("ring", "out of memory");
	mysql_ring_publish(reading->ring);
	return NULL;
}

static void
decode_by_ring(MYSQL *mysql, Decoder *decoder, Counts *counts)
{
	Reading		reading = {.mysql = mysql, .ring = mysql_ring_create(RING_SIZE)};
	pthread_t	thread;
	uint32_t	kind = 0;
	const uint8_t *event;
	size_t		len;

	if (reading.ring == NULL || pthread_create(&thread, NULL, reading_thread, &reading) != 0)
		fail("ring", "out of memory");
	while (kind != RECORD_END)
	{
		if (mysql_ring_next(reading.ring, &kind, &event, &len))
		{
			if (kind == RECORD_PACKET)
				decode_event(decoder, event, len);
			continue;
		}
		if (mysql_ring_prepare_wait(reading.ring))
		{
			struct pollfd wait = {.fd = mysql_ring_eventfd(reading.ring), .events = POLLIN};

			(void) poll(&wait, 1, -1);
		}
		mysql_ring_finish_wait(reading.ring);
	}
	pthread_join(thread, NULL);
	*counts = reading.counts;
	mysql_ring_free(reading.ring);
}

int
main(int argc, char **argv)
{
	Counts		counts = {0};
	Decoder		decoder = {0};
	MYSQL	   *mysql;
	const uint8_t *event;
	size_t		len;
	double		start;
	double		cpu;
	bool		raw;

	if (argc != 5)
		fail("usage", "decode raw|decode|ring SOCKET USER FILE");
	mysql_library_init(0, NULL, NULL);
	raw = strcmp(argv[1], "raw") == 0;
	if (!raw)
		decoder_open(&decoder, argv[4]);
	mysql = open_dump(argv[2], argv[3], argv[4]);
	start = seconds_of(CLOCK_MONOTONIC);
	cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
	if (strcmp(argv[1], "ring") == 0)
		decode_by_ring(mysql, &decoder, &counts);
	else
	{
		while (next_packet(mysql, &counts, &event, &len))
		{
			if (!raw)
				decode_event(&decoder, event, len);
		}
	}
	printf("%.6f %.6f %llu %llu %llu %llu\n", seconds_of(CLOCK_MONOTONIC) - start,
		   seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu, (unsigned long long) counts.packets,
		   (unsigned long long) counts.bytes, (unsigned long long) decoder.rows, (unsigned long long) decoder.sum);
	mysql_close(mysql);
	return 0;
}
