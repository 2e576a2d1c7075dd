/*-------------------------------------------------------------------------
 *
 * inflate.h
 *	  zlib data of a known size, as MariaDB's compressed events and columns hold it.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_BINLOG_INFLATE_H
#define CDC_BINLOG_INFLATE_H

#include "core/arena.h"

/*
 * A compressed event's part: a byte 0x80 | n, n bytes of the size (big endian),
 * a zlib stream. Gives the plain bytes, in the arena.
 */
extern CdcStatus binlog_inflate_event(const uint8_t *data, size_t len, CdcArena *arena,
                                      const uint8_t **out, size_t *outlen, CdcError *err);

/* A value of a COMPRESSED column; a value that is stored plain comes back in place. */
extern CdcStatus binlog_inflate_column(const uint8_t *data, uint32_t len, CdcArena *arena,
                                       const uint8_t **out, uint32_t *outlen, CdcError *err);

#endif /* CDC_BINLOG_INFLATE_H */
