/*-------------------------------------------------------------------------
 *
 * payload.h
 *	  TRANSACTION_PAYLOAD: a compressed transaction, read event by event.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_BINLOG_PAYLOAD_H
#define CDC_BINLOG_PAYLOAD_H

#include "core/buf.h"

typedef struct BinlogPayload
{
	const CdcAllocator *allocator;
	size_t limit; /* bytes one event of it may take; 0 no limit */
	void *stream; /* ZSTD_DCtx, made when first needed and kept */
	bool is_compressed;
	const uint8_t *input; /* the compressed bytes */
	size_t input_len;
	size_t input_pos;
	bool frame_open; /* inside a zstd frame */
	uint8_t *event;  /* the event that is being put together */
	size_t event_cap;
} BinlogPayload;

extern void binlog_payload_init(BinlogPayload *payload, const CdcAllocator *allocator,
                                size_t limit);
extern void binlog_payload_free(BinlogPayload *payload);

/* Begin with the body of a TRANSACTION_PAYLOAD event, which must stay. */
extern CdcStatus binlog_payload_begin(BinlogPayload *payload, const uint8_t *body, size_t len,
                                      CdcError *err);

/* The next event, header included, valid until the next call; CDC_END after the last one. */
extern CdcStatus binlog_payload_next(BinlogPayload *payload, const uint8_t **event, size_t *len,
                                     CdcError *err);

#endif /* CDC_BINLOG_PAYLOAD_H */
