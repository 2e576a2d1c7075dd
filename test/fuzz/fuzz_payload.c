/*-------------------------------------------------------------------------
 *
 * fuzz_payload.c
 *	  libFuzzer target: TRANSACTION_PAYLOAD, a zstd stream of events.
 *
 * NOTES
 *	  The first byte chooses: the input is the body of the event; or it is cut into
 *	  events, compressed here (one frame or several), and they have to come back; or
 *	  the same without compression, where the events' lengths are left to the input.
 *	  All memory of the reader is counted; zstd's own window is bounded by the limit.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include <zstd.h>

#include "binlog/payload.h"
#include "binlog/wire.h"

#define MEMORY_LIMIT (256 * 1024)
#define EVENTS_MAX 300

static size_t allocated;

static void *
counting_alloc(void *ctx, size_t size)
{
	size_t *p = malloc(size + 16);

	(void) ctx;
	*p = size;
	allocated += size;
	return (char *) p + 16;
}

static void
counting_free(void *ctx, void *ptr)
{
	size_t *p = (size_t *) ((char *) ptr - 16);

	(void) ctx;
	allocated -= *p;
	free(p);
}

static const CdcAllocator counting = {counting_alloc, counting_free, NULL};

/* Read events to the end; returns the last status and adds what came to "all". */
static CdcStatus
drain(const uint8_t *body, size_t len, CdcBuf *all)
{
	BinlogPayload payload;
	CdcError err = {0};
	CdcStatus status;
	const uint8_t *event;
	size_t event_len;
	int n = 0;

	binlog_payload_init(&payload, &counting, MEMORY_LIMIT);
	status = binlog_payload_begin(&payload, body, len, &err);
	while (status == CDC_OK && n++ < EVENTS_MAX)
	{
		status = binlog_payload_next(&payload, &event, &event_len, &err);
		if (status != CDC_OK)
			break;
		require(event_len >= EVENT_HEADER_LEN && event_len <= MEMORY_LIMIT);
		require(event_len == ((size_t) event[9] | (size_t) event[10] << 8 |
		                      (size_t) event[11] << 16 | (size_t) event[12] << 24));
		touch(event, event_len);
		/* twice what it needs while it grows, rounded up */
		require(allocated <= 4 * MEMORY_LIMIT);
		if (all != NULL)
			cdc_buf_add(all, event, event_len);
	}
	if (status != CDC_OK && status != CDC_END)
		check_error(status, &err);
	binlog_payload_free(&payload);
	require(allocated == 0);
	return status;
}

/* The one field that counts: the algorithm, a length-encoded number. */
static void
put_header(CdcBuf *body, bool plain)
{
	if (plain)
		cdc_buf_add(body, "\2\3\374\377\0\0", 6);
	else
		cdc_buf_add(body, "\2\1\0\0", 4);
}

/* Cut the input into events of lengths that it gives itself. */
static void
make_events(const uint8_t *data, size_t size, CdcBuf *events)
{
	while (size > 0)
	{
		uint8_t header[EVENT_HEADER_LEN] = {0};
		size_t len = data[0];

		data++;
		size--;
		if (len > size)
			len = size;
		header[4] = EV_QUERY;
		header[9] = (uint8_t) (EVENT_HEADER_LEN + len);
		header[10] = (uint8_t) ((EVENT_HEADER_LEN + len) >> 8);
		cdc_buf_add(events, header, sizeof(header));
		cdc_buf_add(events, data, len);
		data += len;
		size -= len;
	}
}

static void
add_frame(CdcBuf *body, const char *data, size_t len)
{
	size_t cap = ZSTD_compressBound(len);
	char *frame = malloc(cap);
	size_t size = ZSTD_compress(frame, cap, data, len, 1);

	require(!ZSTD_isError(size));
	cdc_buf_add(body, frame, size);
	free(frame);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CdcBuf body;
	CdcBuf events;
	CdcBuf all;
	uint8_t mode;

	if (size < 1 || size > 16384)
		return 0;
	mode = data[0];
	data++;
	size--;
	if ((mode & 1) == 0)
	{
		drain(data, size, NULL);
		return 0;
	}
	cdc_buf_init(&body, &cdc_malloc_allocator, 0);
	cdc_buf_init(&events, &cdc_malloc_allocator, 0);
	cdc_buf_init(&all, &cdc_malloc_allocator, 0);
	if (mode & 2)
	{
		size_t half;

		make_events(data, size, &events);
		half = mode & 4 ? events.len / 2 : events.len;
		put_header(&body, (mode & 8) != 0);
		if (mode & 8)
			cdc_buf_add(&body, events.len > 0 ? events.data : "", events.len);
		else
		{
			add_frame(&body, events.len > 0 ? events.data : "", half);
			if (half < events.len)
				add_frame(&body, events.data + half, events.len - half);
		}
		if (drain((const uint8_t *) body.data, body.len, &all) == CDC_END)
			require(all.len == events.len &&
			        (all.len == 0 || memcmp(all.data, events.data, all.len) == 0));
		else
			require(all.len > EVENTS_MAX * EVENT_HEADER_LEN - 1);
	}
	else
	{
		put_header(&body, false);
		add_frame(&body, (const char *) data, size);
		drain((const uint8_t *) body.data, body.len, NULL);
	}
	cdc_buf_free(&body);
	cdc_buf_free(&events);
	cdc_buf_free(&all);
	return 0;
}
