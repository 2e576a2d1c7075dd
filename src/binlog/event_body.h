/*-------------------------------------------------------------------------
 *
 * event_body.h
 *	  Event header, and the bodies of all events that are not rows.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_BINLOG_EVENT_BODY_H
#define CDC_BINLOG_EVENT_BODY_H

#include "binlog/reader.h"
#include "core/cursor.h"

typedef struct BinlogHeader
{
	uint32_t timestamp;
	uint8_t type_code;
	uint32_t server_id;
	uint32_t length;
	uint32_t next_pos; /* low 32 bits of the event's end in the file; 0 when not told */
	uint16_t flags;
} BinlogHeader;

/* What the format description event says. */
typedef struct BinlogFormat
{
	bool known;
	bool is_mariadb;
	bool has_checksum;
	char server_version[51];
	uint8_t table_id_len[256]; /* bytes of the table id by event type */
} BinlogFormat;

extern void binlog_parse_header(const uint8_t *data, BinlogHeader *header);

/* Body of a format description event, with its algorithm byte and checksum field. */
extern CdcStatus binlog_parse_format(const uint8_t *body, size_t len, BinlogFormat *format,
                                     CdcError *err);

/* Each fills its part of event->u. */
extern CdcStatus binlog_parse_rotate(const uint8_t *body, size_t len, BinlogEvent *event,
                                     CdcError *err);
extern CdcStatus binlog_parse_query(const uint8_t *body, size_t len, CdcArena *arena,
                                    BinlogEvent *event, CdcError *err);
extern CdcStatus binlog_parse_gtid(const uint8_t *body, size_t len, BinlogEvent *event,
                                   CdcError *err);
extern CdcStatus binlog_parse_xid(const uint8_t *body, size_t len, BinlogEvent *event,
                                  CdcError *err);
extern CdcStatus binlog_parse_xa_prepare(const uint8_t *body, size_t len, BinlogEvent *event,
                                         CdcError *err);

/* HEARTBEAT and HEARTBEAT_V2. offset_low is the header's position; *full tells that the offset has 64 bits. */
extern CdcStatus binlog_parse_heartbeat(const uint8_t *body, size_t len, uint32_t offset_low,
                                        BinlogEvent *event, bool *full, CdcError *err);

#endif /* CDC_BINLOG_EVENT_BODY_H */
