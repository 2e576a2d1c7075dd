/*-------------------------------------------------------------------------
 *
 * charset.h
 *	  Character sets of the MySQL family: collation id -> set, bytes -> UTF-8.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_BINLOG_CHARSET_H
#define CDC_BINLOG_CHARSET_H

#include "core/arena.h"

#define BINLOG_COLLATION_BINARY 63

/* "latin1", "utf8mb4", "binary", ...: NULL when the id is not known. */
extern const char *binlog_charset_name(uint16_t collation);

/* Most bytes that one character of the set takes; 1 when the id is not known. */
extern int	binlog_charset_max_length(uint16_t collation);

/* Can values of this collation be turned into UTF-8 here? */
extern bool binlog_charset_is_supported(uint16_t collation);

/*
 * Turn len bytes of the collation's set into UTF-8. When nothing has to change
 * (ASCII, UTF-8 of at most four bytes) *out is data itself, which is then not
 * checked for being valid UTF-8: the backend does that. MySQL's latin1 is
 * Windows-1252 with the five undefined bytes mapped to the C1 controls.
 * Invalid input in another set gives CDC_MALFORMED.
 */
extern CdcStatus binlog_charset_to_utf8(uint16_t collation, const uint8_t *data, uint32_t len,
										CdcArena *arena, const char **out, uint32_t *outlen, CdcError *err);

/*
 * The same for a value, which is not lost for some bad bytes: what is no
 * character of the set becomes U+FFFD, and *invalid counts how many times.
 */
extern CdcStatus binlog_charset_mend(uint16_t collation, const uint8_t *data, uint32_t len,
									 CdcArena *arena, const char **out, uint32_t *outlen,
									 uint32_t *invalid, CdcError *err);

#endif							/* CDC_BINLOG_CHARSET_H */
