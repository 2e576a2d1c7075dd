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

	if (state->options.format->is_binary && state->emit == decode_text_emit)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("format \"%s\" needs a schema registry", state->options.format->name),
				 errdetail("Who reads a slot has none."),
				 errhint("Choose another format, or have a pipeline with a sink.")));
	cdc_format_init(&state->format, state->options.format, &state->options.format_options, allocator);
	cdc_buf_init(&state->buf, allocator, RECORD_MAX);
}

void
decode_text_emit(void *arg, const CdcRecord *record)
{
	DecodeState *state = arg;
	LogicalDecodingContext *ctx = state->ctx;
	CdcError	err;
	CdcStatus	status;

	cdc_buf_reset(&state->buf);
	status = cdc_format_record(&state->format, record, &state->buf, &err);
	if (status == CDC_END)
		return;
	if (status != CDC_OK)
		util_throw(&err, "could not write a change as text");
	OutputPluginPrepareWrite(ctx, true);
	appendBinaryStringInfo(ctx->out, state->buf.data, (int) state->buf.len);
	if (state->buf.cap > KEEP_MAX)
		cdc_buf_free(&state->buf);
	OutputPluginWrite(ctx, true);
}
