/*-------------------------------------------------------------------------
 *
 * change_store.h
 *	  Changes -> bytes that can be kept, and back.
 *
 * NOTES
 *	  For changes that are to be applied later: those of a prepared XA
 *	  transaction. A stream of records: a table's definition before the first
 *	  change that needs it, then changes, each with the bytes of its fields as
 *	  they stood in the log. The stream may be cut anywhere into pieces; the
 *	  reader is fed one piece after the other.
 *
 *	  What is kept is what the binary log says of a table; declared facts
 *	  (defaults, indexes, ...) are left out.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_BINLOG_CHANGE_STORE_H
#define CDC_BINLOG_CHANGE_STORE_H

#include "core/buf.h"
#include "core/event.h"

/* Tables that a stream holds definitions of at the same time. */
#define BINLOG_STORE_TABLES 64

typedef struct BinlogChangeWriter
{
	uint32_t ntables;
	uint64_t ids[BINLOG_STORE_TABLES];
	uint32_t columns[BINLOG_STORE_TABLES];
} BinlogChangeWriter;

/* Begin a stream. */
extern void binlog_change_writer_init(BinlogChangeWriter *writer);

/* Append a change; out->status tells when memory or a limit did not allow it. */
extern void binlog_change_write(BinlogChangeWriter *writer, const CdcChange *change, CdcBuf *out);

typedef struct BinlogChangeReader BinlogChangeReader;

/* NULL when out of memory. limit: bytes that one change, its definition or all definitions together may take; 0: none. */
extern BinlogChangeReader *binlog_change_reader_create(const CdcAllocator *allocator, size_t limit);
extern void binlog_change_reader_free(BinlogChangeReader *reader);

/* Hand over the next piece; it is copied. */
extern CdcStatus binlog_change_reader_feed(BinlogChangeReader *reader, const void *data, size_t len);

/*
 * CDC_OK: *change is filled and lives until the next call of either function.
 * CDC_END: feed. Anything else: damaged, or too large, and *err says so.
 */
extern CdcStatus binlog_change_reader_next(BinlogChangeReader *reader, CdcChange *change, CdcError *err);

/* Bytes that were fed and are no whole record: at the end of a stream there are none. */
extern size_t binlog_change_reader_left(const BinlogChangeReader *reader);

#endif /* CDC_BINLOG_CHANGE_STORE_H */
