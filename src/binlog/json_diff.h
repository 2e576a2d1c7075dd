/*-------------------------------------------------------------------------
 *
 * json_diff.h
 *	  MySQL's differences of JSON documents (PARTIAL_JSON), applied to the text
 *	  of a document.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_BINLOG_JSON_DIFF_H
#define CDC_BINLOG_JSON_DIFF_H

#include "core/arena.h"
#include "core/buf.h"

/*
 * Append to out the document that text (UTF-8) becomes by the differences in
 * diff, written as the server prints it where they changed something and as it
 * stood elsewhere. Working memory comes from the arena. CDC_MALFORMED when the
 * differences are damaged or do not fit the document; out holds a part then.
 */
extern CdcStatus binlog_json_diff_apply(const uint8_t *diff, size_t len, const char *text,
                                        size_t textlen, CdcArena *arena, CdcBuf *out,
                                        CdcError *err);

/*
 * Append the differences themselves, as a JSON array:
 * [{"op": "replace", "path": "$.a", "value": 1}, {"op": "remove", "path": "$.b"}].
 */
extern CdcStatus binlog_json_diff_to_text(const uint8_t *diff, size_t len, CdcBuf *out,
                                          CdcError *err);

#endif /* CDC_BINLOG_JSON_DIFF_H */
