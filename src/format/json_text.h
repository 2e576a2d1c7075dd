/*-------------------------------------------------------------------------
 *
 * json_text.h
 *	  JSON, written piece by piece into a buffer.
 *
 * NOTES
 *	  RFC 8259. Strings are given in UTF-8 and stay so: only the quote, the
 *	  backslash and what lies below U+0020 are escaped. Nothing here knows about
 *	  commas and nesting; what writes a document sees to them.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_FORMAT_JSON_TEXT_H
#define CDC_FORMAT_JSON_TEXT_H

#include "core/buf.h"

/* "text", with quotes and escapes. */
extern void json_add_string(CdcBuf *out, const char *text, size_t len);
extern void json_add_cstring(CdcBuf *out, const char *text);

/* The same, or null for NULL. */
extern void json_add_cstring_or_null(CdcBuf *out, const char *text);

/* "first.second" */
extern void json_add_dotted(CdcBuf *out, const char *first, const char *second);

/* "name": */
extern void json_add_name(CdcBuf *out, const char *name);

extern void json_add_int(CdcBuf *out, int64_t value);
extern void json_add_uint(CdcBuf *out, uint64_t value);

/* Microseconds as nanoseconds; any number of them. */
extern void json_add_nanos(CdcBuf *out, int64_t micros);

/* The same moment as milliseconds, microseconds and nanoseconds, each with something in front of it. */
extern void json_add_moment(CdcBuf *out, const char *before_ms, const char *before_us, const char *before_ns, int64_t micros);

/* A string of base64 (RFC 4648, padded), or of two lower-case hexadecimal digits for each byte. */
extern void json_add_base64(CdcBuf *out, const void *data, size_t len);
extern void json_add_hex(CdcBuf *out, const void *data, size_t len);

/* A string with a character for each byte: U+0000 to U+00FF. */
extern void json_add_latin1(CdcBuf *out, const void *data, size_t len);

/* A JSON document as it is, on one line: line breaks and tabs, which can only stand between its tokens, become blanks. */
extern void json_add_document(CdcBuf *out, const char *text, size_t len);

#endif							/* CDC_FORMAT_JSON_TEXT_H */
