/*-------------------------------------------------------------------------
 *
 * decimal.h
 *	  Binary DECIMAL of the MySQL family -> text.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_BINLOG_DECIMAL_H
#define CDC_BINLOG_DECIMAL_H

#include "core/status.h"

/*
 * Most digits of a value, and room for its text. A column has 65 at most, but
 * MySQL writes the decimals inside JSON with up to nine groups of nine.
 */
#define BINLOG_DECIMAL_DIGITS_MAX 81
#define BINLOG_DECIMAL_TEXT_MAX (BINLOG_DECIMAL_DIGITS_MAX + 4)

extern bool binlog_decimal_is_valid(int precision, int scale);

/* Bytes that a value takes; precision and scale must be valid. */
extern uint32_t binlog_decimal_size(int precision, int scale);

/*
 * Write the text of a value of binlog_decimal_size bytes into out
 * (BINLOG_DECIMAL_TEXT_MAX bytes). Returns its length, or 0 when the bytes are
 * no decimal.
 */
extern uint32_t binlog_decimal_to_text(const uint8_t *data, int precision, int scale, char *out);

#endif /* CDC_BINLOG_DECIMAL_H */
