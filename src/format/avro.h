/*-------------------------------------------------------------------------
 *
 * avro.h
 *	  Avro's binary encoding, written piece by piece into a buffer, and names
 *	  that Avro takes.
 *
 * NOTES
 *	  Avro 1.11: numbers are zigzag varints, bytes and strings have their length
 *	  in front, a union the number of its branch. Records are their fields, one
 *	  after the other; nothing here knows about schemas.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_FORMAT_AVRO_H
#define CDC_FORMAT_AVRO_H

#include "core/buf.h"

extern void avro_add_long(CdcBuf *out, int64_t value);	/* int, too */
extern void avro_add_bytes(CdcBuf *out, const void *data, size_t len);	/* string, too */
extern void avro_add_cstring(CdcBuf *out, const char *text);
extern void avro_add_bool(CdcBuf *out, bool value);
extern void avro_add_float(CdcBuf *out, float value);
extern void avro_add_double(CdcBuf *out, double value);

/* The second branch of a union whose first is null, or null; the value follows when it is not. */
extern void avro_add_branch(CdcBuf *out, bool is_there);

/*
 * Digits as PostgreSQL writes a numeric, as a decimal of that scale: two's
 * complement, big-endian, no longer than it has to be. False, and nothing is
 * written, for NaN, the infinities, and digits behind the scale that are not
 * zero.
 */
extern bool avro_add_decimal(CdcBuf *out, const char *text, size_t len, int scale);

/* A name as Avro takes it: letters, digits and underscores; other characters as _u and their number in hexadecimal digits. */
extern void avro_add_name(CdcBuf *out, const char *name);

#endif							/* CDC_FORMAT_AVRO_H */
