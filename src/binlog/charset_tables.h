/*-------------------------------------------------------------------------
 *
 * charset_tables.h
 *	  Mapping tables of the character sets that need one.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_BINLOG_CHARSET_TABLES_H
#define CDC_BINLOG_CHARSET_TABLES_H

#include "core/status.h"

/* Unicode of the bytes 0x80 to 0xff; 0 where the set has no character. */
typedef uint16_t BinlogCharsetHalf[128];

/* A character that iconv maps otherwise than the servers do. */
typedef struct BinlogCharsetException
{
	uint32_t code; /* the character's bytes, first byte most significant */
	uint16_t unicode;
} BinlogCharsetException;

typedef enum BinlogCharsetKind
{
	CHARSET_UTF8, /* handed on as it is; binary too */
	CHARSET_ASCII,
	CHARSET_SWE7,   /* seven bits, some ASCII positions replaced */
	CHARSET_SINGLE, /* one byte each, "half" */
	CHARSET_UCS2,
	CHARSET_UTF16,
	CHARSET_UTF16LE,
	CHARSET_UTF32,
	CHARSET_ICONV /* through iconv, but for "exceptions" */
} BinlogCharsetKind;

typedef struct BinlogCharset
{
	const char *name;
	uint8_t max_length;
	uint8_t kind; /* BinlogCharsetKind */
	const uint16_t *half;
	const char *iconv_name;
	const BinlogCharsetException *exceptions; /* sorted by code */
	uint32_t nexceptions;
} BinlogCharset;

/* All sets; a collation's set is an index into it, see binlog_collation_charset. */
extern const BinlogCharset binlog_charsets[];

/* The set of a collation id, or NULL. */
extern const BinlogCharset *binlog_collation_charset(uint16_t collation);

#endif /* CDC_BINLOG_CHARSET_TABLES_H */
