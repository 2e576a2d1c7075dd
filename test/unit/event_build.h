/*-------------------------------------------------------------------------
 *
 * event_build.h
 *	  Events made by the tests.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_TEST_EVENT_BUILD_H
#define CDC_TEST_EVENT_BUILD_H

#include "core/buf.h"

/* Little-endian integer of n bytes. */
extern void put_int(CdcBuf *buf, uint64_t value, int n);

/* Bytes written as hex digits; blanks are skipped. */
extern void put_hex(CdcBuf *buf, const char *hex);

/* Replace *out by an event with the given body; with a checksum if wanted. */
extern void build_event(CdcBuf *out, uint8_t type, uint16_t flags, uint32_t next_pos,
                        const void *body, size_t len, bool checksum);

/* A format description event of either family. */
extern void build_format(CdcBuf *out, bool mariadb, bool checksum, uint32_t next_pos);

/* The body of a TABLE_MAP: schema "s", table "t", raw types, metadata and optional fields as hex. */
extern void build_table_map_body(CdcBuf *out, uint64_t table_id, const char *types,
                                 const char *meta, const char *optional);

#endif /* CDC_TEST_EVENT_BUILD_H */
