/*-------------------------------------------------------------------------
 *
 * decode_text.c
 *	  What a foreign client gets: each record as text.
 *
 * NOTES
 *	  Marks of transactions are written when the client asked for them, and
 *	  always for those that are prepared or streamed: without the marks nobody
 *	  could tell what was rolled back.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "decode/decode_private.h"
#include "util/util_arena.h"
#include "util/util_error.h"

/* The server sends a record in one piece with something in front of it; no piece of memory is larger than 1 GB. */
#define RECORD_MAX (MaxAllocSize - 1024)

/* A buffer that grew beyond this for one record is given back. */
#define KEEP_MAX (1024 * 1024)

void
decode_text_init(DecodeState *state)
{
	const CdcAllocator *allocator = util_context_allocator(state->context);

	cdc_format_init(&state->format, state->options.format, &state->options.format_options, allocator);
	cdc_buf_init(&state->buf, allocator, RECORD_MAX);
}

static bool
is_wanted(const DecodeState *state, const CdcRecord *record)
{
	switch (record->kind)
	{
		case CDC_RECORD_BEGIN:
		case CDC_RECORD_COMMIT:
			return state->options.include_transaction;
		default:
			return true;
	}
}

/* The document, or {"key": ..., "value": ...}. */
static CdcStatus
add_record(DecodeState *state, const CdcRecord *record, CdcError *err)
{
	CdcStatus	status;

	if (!state->options.include_key)
		return cdc_format_value(&state->format, record, &state->buf, err);
	cdc_buf_add_str(&state->buf, "{\"value\":");
	status = cdc_format_value(&state->format, record, &state->buf, err);
	if (status != CDC_OK)
		return status;
	cdc_buf_add_str(&state->buf, ",\"key\":");
	status = cdc_format_key(&state->format, record, &state->buf, err);
	if (status == CDC_END)
		cdc_buf_add_str(&state->buf, "null");
	else if (status != CDC_OK)
		return status;
	cdc_buf_add_char(&state->buf, '}');
	return state->buf.status == CDC_OK ? CDC_OK : cdc_fail(err, state->buf.status, state->buf.len, "no room for the end of a record");
}

void
decode_text_emit(void *arg, const CdcRecord *record)
{
	DecodeState *state = arg;
	LogicalDecodingContext *ctx = state->ctx;
	CdcError	err;

	if (!is_wanted(state, record))
		return;
	cdc_buf_reset(&state->buf);
	if (add_record(state, record, &err) != CDC_OK)
		util_throw(&err, "could not write a change as text");
	OutputPluginPrepareWrite(ctx, true);
	appendBinaryStringInfo(ctx->out, state->buf.data, (int) state->buf.len);
	if (state->buf.cap > KEEP_MAX)
		cdc_buf_free(&state->buf);
	OutputPluginWrite(ctx, true);
}
