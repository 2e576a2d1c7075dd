/*-------------------------------------------------------------------------
 *
 * iso_time.h
 *	  Dates and times as ISO 8601 text.
 *
 * NOTES
 *	  As PostgreSQL writes them into JSON: 2024-02-29, 2024-02-29T12:30:00.5,
 *	  with Z behind moments in UTC, infinity and -infinity, years of more than
 *	  four digits as they are, and " BC" behind years before 1 (for which ISO
 *	  8601 has a year zero that PostgreSQL does not read). Fractions have no
 *	  trailing zeros. PostgreSQL reads all of it back.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_FORMAT_ISO_TIME_H
#define CDC_FORMAT_ISO_TIME_H

#include "core/status.h"

/* Bytes that any of these texts takes at most, with its NUL. */
#define ISO_TIME_MAX 64

/* Each returns the length of the text. Days and microseconds as in cell.h, CDC_CELL_DAYS and CDC_CELL_MICROS. */
extern size_t iso_date(int32_t days, char *text);
extern size_t iso_timestamp(int64_t micros, bool utc, char *text);
extern size_t iso_time(int64_t micros, char *text);

/* Microseconds since 1970, never infinite. */
extern size_t iso_unix_time(int64_t micros, char *text);

#endif							/* CDC_FORMAT_ISO_TIME_H */
