/*-------------------------------------------------------------------------
 *
 * test_damage.c
 *	  Recorded events cut short and with flipped bits.
 *
 * NOTES
 *	  Nothing may crash, hang or read past an end; whether an error comes does
 *	  not matter. Checksums are switched off, so that the damage gets in. An
 *	  event is fed after the undamaged ones of its transaction. CDC_TEST_ROUNDS
 *	  raises the number of random rounds, CDC_TEST_SEED repeats them. The
 *	  undamaged recordings are also read with an allocator that gives up after
 *	  0, 1, 2, ... pieces.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include <glob.h>

#include "binlog/wire.h"
#include "event_dump.h"
#include "tap.h"

#define MEMORY_LIMIT (16 * 1024 * 1024)

/* Events above this are cut at random places only. */
#define EVERY_LENGTH_BELOW 1200

static BinlogReader *reader;
static CdcArena arena;
static CdcBuf text;
static long fed;

/* Feed one event and decode all that comes out. */
static void
drain(const uint8_t *data, size_t len)
{
	BinlogEvent event;

	fed++;
	if (binlog_reader_feed(reader, data, len) != CDC_OK)
		return;
	while (binlog_reader_next(reader, &event) == CDC_OK)
	{
		cdc_buf_reset(&text);
		dump_event(&event, &arena, &text);
	}
}

/* A copy of an event without its checksum, of len bytes, in memory of exactly that size. */
static uint8_t *
copy_event(const RecordedEvent *event, size_t len, bool is_format)
{
	uint8_t *copy = malloc(len);

	memcpy(copy, event->data, len);
	if (len >= EVENT_HEADER_LEN)
	{
		for (int i = 0; i < 4; i++)
			copy[9 + i] = (uint8_t) (len >> (8 * i));
	}
	if (is_format && len == event->len)
		copy[len - 5] = 0;
	return copy;
}

/* Start over with the format description and the events of the transaction up to "at". */
static void
prepare(const Recording *recording, size_t at)
{
	static uint8_t *format;
	CdcPosition start = {.file = "log.000001", .offset = 4};
	size_t first = at;

	binlog_reader_start(reader, &start);
	free(format);
	format = copy_event(&recording->events[0], recording->events[0].len, true);
	drain(format, recording->events[0].len);
	while (first > 1 && recording->events[first - 1].data[4] == EV_TABLE_MAP)
		first--;
	for (; first < at; first++)
	{
		uint8_t *copy =
		    copy_event(&recording->events[first], recording->events[first].len - 4, false);

		drain(copy, recording->events[first].len - 4);
		free(copy);
	}
}

static void
damage_event(const Recording *recording, size_t at, long rounds, uint64_t *random)
{
	const RecordedEvent *event = &recording->events[at];
	bool is_format = event->data[4] == EV_FORMAT_DESCRIPTION;
	size_t len = is_format ? event->len : event->len - 4;
	long cuts = len < EVERY_LENGTH_BELOW ? (long) len : 50;

	for (long i = 0; i < cuts; i++)
	{
		size_t cut = len < EVERY_LENGTH_BELOW ? (size_t) i : tap_random(random) % len;
		uint8_t *copy = copy_event(event, cut, is_format);

		prepare(recording, at);
		drain(copy, cut);
		free(copy);
	}
	for (long i = 0; i < rounds * 4; i++)
	{
		uint8_t *copy = copy_event(event, len, is_format);

		for (uint64_t flips = tap_random(random) % 4 + 1; flips > 0; flips--)
		{
			size_t byte = EVENT_HEADER_LEN + tap_random(random) % (len - EVENT_HEADER_LEN + 1);

			if (byte < len)
				copy[byte] ^= (uint8_t) (1 << tap_random(random) % 8);
		}
		prepare(recording, at);
		drain(copy, len);
		free(copy);
	}
}

/* An allocator that says no after a number of pieces. */
static long pieces_left;

static void *
limited_alloc_cb(void *ctx, size_t size)
{
	(void) ctx;
	return pieces_left-- > 0 ? malloc(size) : NULL;
}

static void
limited_free_cb(void *ctx, void *ptr)
{
	(void) ctx;
	free(ptr);
}

/* Read a recording with less and less memory missing, until there is enough. */
static void
starve(const Recording *recording)
{
	const CdcAllocator allocator = {limited_alloc_cb, limited_free_cb, NULL};
	BinlogReaderOptions options = {.memory_limit = 0};
	CdcPosition start = {.file = "log.000001", .offset = 4};
	CdcStatus status = CDC_NOMEM;

	for (long pieces = 0; status != CDC_END && pieces < 2000; pieces++)
	{
		BinlogReader *starved;
		CdcArena cells;
		BinlogEvent event;

		pieces_left = pieces;
		starved = binlog_reader_create(&allocator, &options);
		if (starved == NULL)
			continue;
		cdc_arena_init(&cells, &allocator, 0);
		binlog_reader_start(starved, &start);
		status = CDC_END;
		for (size_t i = 0; i < recording->nevents && status == CDC_END; i++)
		{
			status =
			    binlog_reader_feed(starved, recording->events[i].data, recording->events[i].len);
			while (status == CDC_OK && (status = binlog_reader_next(starved, &event)) == CDC_OK)
			{
				cdc_buf_reset(&text);
				dump_event(&event, &cells, &text);
				if (event.kind == BINLOG_ROWS && strcmp(event.u.rows.table->name, "oldtime") == 0)
					binlog_reader_skip_rows(starved);
			}
		}
		binlog_reader_free(starved);
		cdc_arena_free(&cells);
	}
	is_int(status, CDC_END, "enough memory in the end");
}

int
main(void)
{
	BinlogReaderOptions options = {.memory_limit = MEMORY_LIMIT};
	uint64_t random = tap_seed();
	long rounds = tap_rounds(2);
	glob_t paths;

	reader = binlog_reader_create(&cdc_malloc_allocator, &options);
	cdc_arena_init(&arena, &cdc_malloc_allocator, MEMORY_LIMIT);
	cdc_buf_init(&text, &cdc_malloc_allocator, MEMORY_LIMIT);
	if (!ok(glob("test/golden/*/*.bin", 0, NULL, &paths) == 0, "recordings are there"))
		return done_testing();
	for (size_t i = 0; i < paths.gl_pathc; i++)
	{
		Recording recording;

		if (!recording_open(&recording, paths.gl_pathv[i]))
			continue;
		for (size_t at = 0; at < recording.nevents; at++)
			damage_event(&recording, at, rounds, &random);
		starve(&recording);
		ok(true, paths.gl_pathv[i]);
		recording_close(&recording);
	}
	printf("# %ld events fed\n", fed);
	globfree(&paths);
	binlog_reader_free(reader);
	cdc_arena_free(&arena);
	cdc_buf_free(&text);
	return done_testing();
}
