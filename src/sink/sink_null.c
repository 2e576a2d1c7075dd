/*-------------------------------------------------------------------------
 *
 * sink_null.c
 *	  Servers of cdc_null: everything is thrown away, after it was formatted or
 *	  before, to measure what comes earlier. It holds nothing, so its position is
 *	  where it began.
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
	CdcFormat  *format;			/* NULL: records are thrown away as they are */
	CdcBuf		out;
} NullSink;

static CdcFormat *
wanted_format(const CdcSinkTarget *target)
{
	if (!util_option_bool(&catalog_null_server_options, "write_format", sink_option(target, "write_format")))
		return NULL;
	return sink_format(target);
}

static CdcSink *
null_open(const CdcSinkTarget *target, bool *found, CdcSinkPosition *position)
{
	NullSink   *sink = palloc0(sizeof(NullSink));

	sink->base.ops = &sink_null_ops;
	sink->format = wanted_format(target);
	cdc_buf_init(&sink->out, util_context_allocator(CurrentMemoryContext), MaxAllocSize);
	*found = true;
	*position = target->start;
	return &sink->base;
}

static void
null_take(CdcSink *base)
{
}

static void
null_write(CdcSink *base, const CdcRecord *record)
{
	NullSink   *sink = (NullSink *) base;

	if (sink->format == NULL)
		return;
	sink_empty_buffer(&sink->out);
	if (sink_add_document(sink->format, record, &sink->out))
		base->bytes += sink->out.len;
}

static void
null_flush(CdcSink *base, const CdcSinkPosition *position)
{
}

static void
null_close(CdcSink *base)
{
}

static void
null_prepare_open(CdcSinkPreparer *preparer, const CdcSinkTarget *target)
{
	preparer->format = wanted_format(target);
}

static void
null_prepare(CdcSinkPreparer *preparer, const CdcRecord *record, CdcBuf *out)
{
	if (preparer->format != NULL)
		(void) sink_add_document(preparer->format, record, out);
}

static void
null_write_prepared(CdcSink *base, const char *data, size_t len)
{
	base->bytes += len;
}

const CdcSinkOps sink_null_ops = {
	.wrapper = "cdc_null",
	.open = null_open,
	.take = null_take,
	.begin = null_write,
	.write = null_write,
	.schema_change = null_write,
	.commit = null_write,
	.flush = null_flush,
	.close = null_close,
	.prepare_open = null_prepare_open,
	.prepare = null_prepare,
	.write_prepared = null_write_prepared
};
