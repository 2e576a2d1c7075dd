/*-------------------------------------------------------------------------
 *
 * payload.c
 *	  TRANSACTION_PAYLOAD: a compressed transaction, read event by event.
 *
 * NOTES
 *	  The body is a list of fields (type, length, value, all length-encoded) up
 *	  to an end mark, then a zstd stream of events without checksums. The sizes
 *	  that the fields announce are not needed and not believed: the stream is
 *	  decompressed piece by piece, and only the event at hand and zstd's window
 *	  are in memory, however large the transaction is.
 *
 *	  libzstd allocates its window itself; its size is bounded by the limit, and
 *	  binlog_payload_free gives it back.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "binlog/payload.h"

#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "binlog/wire.h"
#include "core/cursor.h"

enum
{
	PAYLOAD_END = 0,
	PAYLOAD_SIZE = 1,
	PAYLOAD_ALGORITHM = 2
};

#define ALGORITHM_ZSTD 0
#define ALGORITHM_NONE 255

#define WINDOW_LOG_MIN 10
#define WINDOW_LOG_MAX 27

/* First size of the event buffer; and how much of an announced size is believed at once. */
#define EVENT_STEP ((size_t) 64 * 1024)

/* A larger buffer is given back before the next payload. */
#define EVENT_KEEP ((size_t) 1024 * 1024)

void
binlog_payload_init(BinlogPayload *payload, const CdcAllocator *allocator, size_t limit)
{
	memset(payload, 0, sizeof(*payload));
	payload->allocator = allocator;
	payload->limit = limit;
}

void
binlog_payload_free(BinlogPayload *payload)
{
	ZSTD_freeDCtx(payload->stream);
	if (payload->event != NULL)
		payload->allocator->free(payload->allocator->ctx, payload->event);
	payload->stream = NULL;
	payload->event = NULL;
	payload->event_cap = 0;
}

/* Largest power of two for zstd's window that the limit allows. */
static int
window_log(size_t limit)
{
	int log = WINDOW_LOG_MIN;

	if (limit == 0)
		return WINDOW_LOG_MAX;
	while (log < WINDOW_LOG_MAX && ((size_t) 2 << log) <= limit)
		log++;
	return log;
}

CdcStatus
binlog_payload_begin(BinlogPayload *payload, const uint8_t *body, size_t len, CdcError *err)
{
	CdcCursor c;
	uint64_t algorithm = ALGORITHM_NONE;

	cdc_cursor_init(&c, body, len);
	for (;;)
	{
		uint64_t type = cdc_cursor_lenenc(&c);
		uint64_t field_len;
		CdcCursor value;
		const uint8_t *data;

		if (c.failed)
			return cdc_fail(err, CDC_TRUNCATED, 0,
			                "TRANSACTION_PAYLOAD event ends inside its header");
		if (type == PAYLOAD_END)
			break;
		field_len = cdc_cursor_lenenc(&c);
		data = cdc_cursor_bytes(&c, field_len);
		if (data == NULL)
			return cdc_fail(err, CDC_TRUNCATED, 0,
			                "TRANSACTION_PAYLOAD event ends inside its header");
		cdc_cursor_init(&value, data, (size_t) field_len);
		if (type == PAYLOAD_ALGORITHM)
			algorithm = cdc_cursor_lenenc(&value);
		if (value.failed)
			return cdc_fail(err, CDC_MALFORMED, 0,
			                "TRANSACTION_PAYLOAD event has an invalid header field");
	}
	if (algorithm != ALGORITHM_ZSTD && algorithm != ALGORITHM_NONE)
		return cdc_fail(err, CDC_UNSUPPORTED, 0,
		                "TRANSACTION_PAYLOAD event is compressed with the unknown algorithm %llu",
		                (unsigned long long) algorithm);
	payload->is_compressed = algorithm == ALGORITHM_ZSTD;
	payload->input = c.pos;
	payload->input_len = cdc_cursor_left(&c);
	payload->input_pos = 0;
	payload->frame_open = false;
	if (payload->event_cap > EVENT_KEEP)
	{
		payload->allocator->free(payload->allocator->ctx, payload->event);
		payload->event = NULL;
		payload->event_cap = 0;
	}
	if (!payload->is_compressed)
		return CDC_OK;
	if (payload->stream == NULL)
	{
		payload->stream = ZSTD_createDCtx();
		if (payload->stream == NULL)
			return cdc_fail(err, CDC_NOMEM, 0, "out of memory");
	}
	ZSTD_DCtx_reset(payload->stream, ZSTD_reset_session_and_parameters);
	ZSTD_DCtx_setParameter(payload->stream, ZSTD_d_windowLogMax, window_log(payload->limit));
	return CDC_OK;
}

/*
 * Produce exactly want bytes at out. *got tells how many there were; fewer
 * only at the end of the payload.
 */
static CdcStatus
read_bytes(BinlogPayload *payload, uint8_t *out, size_t want, size_t *got, CdcError *err)
{
	ZSTD_inBuffer in = {payload->input, payload->input_len, payload->input_pos};
	ZSTD_outBuffer plain = {out, want, 0};

	if (!payload->is_compressed)
	{
		*got = payload->input_len - payload->input_pos;
		if (*got > want)
			*got = want;
		memcpy(out, payload->input + payload->input_pos, *got);
		payload->input_pos += *got;
		return CDC_OK;
	}
	while (plain.pos < want && (in.pos < in.size || payload->frame_open))
	{
		size_t in_before = in.pos;
		size_t out_before = plain.pos;
		size_t rc = ZSTD_decompressStream(payload->stream, &plain, &in);

		if (ZSTD_isError(rc))
			return cdc_fail(err,
			                ZSTD_getErrorCode(rc) == ZSTD_error_frameParameter_windowTooLarge
			                    ? CDC_LIMIT
			                    : CDC_MALFORMED,
			                in.pos, "could not decompress TRANSACTION_PAYLOAD event: %s",
			                ZSTD_getErrorName(rc));
		payload->frame_open = rc != 0;
		if (in.pos == in_before && plain.pos == out_before)
			break; /* the stream ends inside a frame */
	}
	payload->input_pos = in.pos;
	*got = plain.pos;
	return CDC_OK;
}

/* Make the event buffer hold cap bytes, keeping what it has. */
static CdcStatus
grow_event(BinlogPayload *payload, size_t used, size_t cap, CdcError *err)
{
	uint8_t *moved;

	if (cap <= payload->event_cap)
		return CDC_OK;
	if (cap < payload->event_cap * 2)
		cap = payload->event_cap * 2;
	if (cap < EVENT_STEP)
		cap = EVENT_STEP;
	moved = payload->allocator->alloc(payload->allocator->ctx, cap);
	if (moved == NULL)
		return cdc_fail(err, CDC_NOMEM, 0, "out of memory");
	if (payload->event != NULL)
	{
		memcpy(moved, payload->event, used);
		payload->allocator->free(payload->allocator->ctx, payload->event);
	}
	payload->event = moved;
	payload->event_cap = cap;
	return CDC_OK;
}

CdcStatus
binlog_payload_next(BinlogPayload *payload, const uint8_t **event, size_t *len, CdcError *err)
{
	CdcStatus status;
	CdcCursor c;
	size_t used;
	size_t size;

	if ((status = grow_event(payload, 0, EVENT_HEADER_LEN, err)) != CDC_OK ||
	    (status = read_bytes(payload, payload->event, EVENT_HEADER_LEN, &used, err)) != CDC_OK)
		return status;
	if (used == 0 && !payload->frame_open)
		return CDC_END;
	if (used < EVENT_HEADER_LEN)
		return cdc_fail(err, CDC_TRUNCATED, payload->input_pos,
		                "TRANSACTION_PAYLOAD event ends inside an event");
	cdc_cursor_init(&c, payload->event + 9, 4);
	size = cdc_cursor_u32(&c);
	if (size < EVENT_HEADER_LEN)
		return cdc_fail(err, CDC_MALFORMED, payload->input_pos,
		                "event in a TRANSACTION_PAYLOAD event has an invalid length");
	if (payload->limit != 0 && size > payload->limit)
		return cdc_fail(err, CDC_LIMIT, payload->input_pos,
		                "event of %zu bytes in a TRANSACTION_PAYLOAD event passes the memory limit",
		                size);
	while (used < size)
	{
		size_t step = size - used < EVENT_STEP ? size - used : EVENT_STEP;
		size_t got;

		if ((status = grow_event(payload, used, used + step, err)) != CDC_OK ||
		    (status = read_bytes(payload, payload->event + used, step, &got, err)) != CDC_OK)
			return status;
		used += got;
		if (got < step)
			return cdc_fail(err, CDC_TRUNCATED, payload->input_pos,
			                "TRANSACTION_PAYLOAD event ends inside an event");
	}
	*event = payload->event;
	*len = size;
	return CDC_OK;
}
