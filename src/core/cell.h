/*-------------------------------------------------------------------------
 *
 * cell.h
 *	  One column's value, neutral between every source and PostgreSQL.
 *
 * NOTES
 *	  Whichever way a value came (binary log, text protocol of a SELECT, a
 *	  Kafka message), it is turned into the same cell, and schema/ turns the
 *	  cell into a Datum by one piece of code. Pointers lead into the packet or
 *	  the arena that the decoding function was given.
 *
 *	  Canonical forms, which each decoder has to keep to:
 *	  TEXT      UTF-8, already transcoded from the column's character set.
 *	            ENUM gives its label, SET its labels joined by ','. CHAR comes
 *	            without trailing blanks. DECIMAL comes as digits
 *	            ("-12.50", scale kept, no leading zeros but the one before the
 *	            point, never "-0.00"). JSON comes as JSON text.
 *	            UUID, INET4 and INET6 come in the server's own text form.
 *	            Bytes that are no character of the column's set stand as U+FFFD,
 *	            "invalid" says how many times; text that came as UTF-8 is
 *	            not checked.
 *	  BYTES     raw; BINARY(n) padded to n with zero bytes.
 *	  BIT       big-endian bytes, most significant first, (nbits + 7) / 8 long.
 *	  GEOMETRY  SRID as 4 bytes little endian, then WKB, as the servers store it.
 *	  VECTOR    little-endian float4 values.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CORE_CELL_H
#define CDC_CORE_CELL_H

#include "core/status.h"

typedef enum CdcCellKind
{
	CDC_CELL_NULL,
	CDC_CELL_INT,				/* i */
	CDC_CELL_UINT,				/* u; YEAR too */
	CDC_CELL_FLOAT,				/* f4 */
	CDC_CELL_DOUBLE,			/* f8 */
	CDC_CELL_TEXT,				/* data, len: character types, ENUM, SET, DECIMAL, JSON, UUID, INET */
	CDC_CELL_BYTES,				/* data, len */
	CDC_CELL_BIT,				/* data, len */
	CDC_CELL_GEOMETRY,			/* data, len */
	CDC_CELL_VECTOR,			/* data, len */
	CDC_CELL_DATE,				/* time: year, month, day; zero parts possible */
	CDC_CELL_TIME,				/* time: negative, hour up to 838, minute, second, micro */
	CDC_CELL_DATETIME,			/* time: all parts; zero parts possible */
	CDC_CELL_TIMESTAMP,			/* epoch_us: microseconds since 1970 UTC; INT64_MIN is the zero timestamp */

	/* what leaves PostgreSQL only, see outgoing.h */
	CDC_CELL_BOOL,				/* i: 0 or 1 */
	CDC_CELL_DAYS,				/* i: days since 2000-01-01; INT32_MIN and INT32_MAX are the infinities */
	CDC_CELL_MICROS,			/* i: microseconds since 2000-01-01 (UTC for timestamptz), INT64_MIN and _MAX the infinities; time: since midnight */
	CDC_CELL_LIST,				/* list: an array, or one dimension of it */
	CDC_CELL_UNCHANGED,			/* the change did not touch the value, and nobody knows it */
	CDC_CELL_ABSENT				/* not part of this row image */
} CdcCellKind;

#define CDC_ZERO_TIMESTAMP INT64_MIN

typedef struct CdcTimeParts
{
	bool		negative;
	uint16_t	year;
	uint8_t		month;
	uint8_t		day;
	uint16_t	hour;
	uint8_t		minute;
	uint8_t		second;
	uint32_t	micro;
} CdcTimeParts;

typedef struct CdcCell CdcCell;

typedef struct CdcCellList
{
	uint32_t	count;
	const CdcCell *cells;
} CdcCellList;

struct CdcCell
{
	CdcCellKind kind;
	uint32_t	len;
	uint32_t	invalid;		/* TEXT: see above */
	union
	{
		int64_t		i;
		uint64_t	u;
		float		f4;
		double		f8;
		int64_t		epoch_us;
		const char *data;
		CdcTimeParts time;
		const CdcCellList *list;
	}			v;
};

#endif							/* CDC_CORE_CELL_H */
