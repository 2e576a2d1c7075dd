/*-------------------------------------------------------------------------
 *
 * sink_null.c
 *	  Servers of cdc_null: everything is formatted and thrown away, to measure
 *	  what comes before. It holds nothing, so its position is where it began.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "sink/sink.h"
#include "util/util_arena.h"

typedef struct NullSink
{
	CdcSink		base;
	CdcFormat  *format;
	CdcBuf		out;
} NullSink;

static CdcSink *
null_open(const CdcSinkTarget *target, bool *found, CdcSinkPosition *position)
{
	NullSink   *sink = palloc0(sizeof(NullSink));

	sink->base.ops = &sink_null_ops;
	sink->format = sink_format(target->pipeline);
	cdc_buf_init(&sink->out, util_context_allocator(CurrentMemoryContext), MaxAllocSize);
	*found = true;
	*position = target->start;
	return &sink->base;
}

static void
null_write(CdcSink *base, const CdcRecord *record)
{
	NullSink   *sink = (NullSink *) base;

	cdc_buf_reset(&sink->out);
	sink_add_document(sink->format, record, &sink->out);
	base->bytes += sink->out.len;
}

static void
null_nothing(CdcSink *base, const CdcRecord *record)
{
}

static void
null_flush(CdcSink *base, const CdcSinkPosition *position)
{
}

static void
null_close(CdcSink *base)
{
}

const CdcSinkOps sink_null_ops = {
	.wrapper = "cdc_null",
	.open = null_open,
	.begin = null_nothing,
	.write = null_write,
	.commit = null_nothing,
	.flush = null_flush,
	.close = null_close
};
