/*-------------------------------------------------------------------------
 *
 * json.h
 *	  MySQL's binary JSON -> JSON text as the server prints it.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_BINLOG_JSON_H
#define CDC_BINLOG_JSON_H

#include "core/buf.h"

/* MySQL itself stops at 100 levels. */
#define BINLOG_JSON_DEPTH_MAX 128

/*
 * Append the text of a document to out. Nesting deeper than max_depth gives
 * CDC_LIMIT. On an error out holds a part.
 */
extern CdcStatus binlog_json_to_text(const uint8_t *data, size_t len, int max_depth, CdcBuf *out,
                                     CdcError *err);

/* Append a string (UTF-8) in double quotes, escaped as MySQL does. */
extern void binlog_json_add_string(const uint8_t *data, size_t len, CdcBuf *out);

#endif /* CDC_BINLOG_JSON_H */
