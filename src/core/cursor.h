/*-------------------------------------------------------------------------
 *
 * cursor.h
 *	  Bounded reader over bytes with a sticky error.
 *
 * NOTES
 *	  A read past the end returns 0 (or NULL), sets "failed" and leaves the
 *	  cursor at its end, so callers check once per structure and not per read.
 *	  All integers are little endian unless the name says otherwise.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CORE_CURSOR_H
#define CDC_CORE_CURSOR_H

#include "core/status.h"

typedef struct CdcCursor
{
	const uint8_t *start;
	const uint8_t *pos;
	const uint8_t *end;
	bool		failed;
} CdcCursor;

static inline void
cdc_cursor_init(CdcCursor *c, const void *data, size_t len)
{
	c->start = c->pos = (const uint8_t *) data;
	c->end = c->start + len;
	c->failed = false;
}

static inline size_t
cdc_cursor_left(const CdcCursor *c)
{
	return (size_t) (c->end - c->pos);
}

static inline uint64_t
cdc_cursor_offset(const CdcCursor *c)
{
	return (uint64_t) (c->pos - c->start);
}

/* The next len bytes in place, or NULL. */
static inline const uint8_t *
cdc_cursor_bytes(CdcCursor *c, uint64_t len)
{
	const uint8_t *p = c->pos;

	if (len > (uint64_t) cdc_cursor_left(c))
	{
		c->failed = true;
		c->pos = c->end;
		return NULL;
	}
	c->pos += len;
	return p;
}

/* nbytes (1 to 8) as a little-endian unsigned integer. */
static inline uint64_t
cdc_cursor_uint(CdcCursor *c, int nbytes)
{
	const uint8_t *p = cdc_cursor_bytes(c, (uint64_t) nbytes);
	uint64_t	v = 0;

	if (p == NULL)
		return 0;
	for (int i = nbytes - 1; i >= 0; i--)
		v = (v << 8) | p[i];
	return v;
}

/* nbytes (1 to 8) as a big-endian unsigned integer. */
static inline uint64_t
cdc_cursor_uint_be(CdcCursor *c, int nbytes)
{
	const uint8_t *p = cdc_cursor_bytes(c, (uint64_t) nbytes);
	uint64_t	v = 0;

	if (p == NULL)
		return 0;
	for (int i = 0; i < nbytes; i++)
		v = (v << 8) | p[i];
	return v;
}

static inline uint8_t
cdc_cursor_u8(CdcCursor *c)
{
	return (uint8_t) cdc_cursor_uint(c, 1);
}

static inline uint16_t
cdc_cursor_u16(CdcCursor *c)
{
	return (uint16_t) cdc_cursor_uint(c, 2);
}

static inline uint32_t
cdc_cursor_u32(CdcCursor *c)
{
	return (uint32_t) cdc_cursor_uint(c, 4);
}

static inline uint64_t
cdc_cursor_u64(CdcCursor *c)
{
	return cdc_cursor_uint(c, 8);
}

/*
 * MySQL length-encoded integer: one byte below 251, else 252, 253 or 254 and
 * 2, 3 or 8 bytes. 251 and 255 fail.
 */
static inline uint64_t
cdc_cursor_lenenc(CdcCursor *c)
{
	uint8_t		b = cdc_cursor_u8(c);

	switch (b)
	{
		case 252:
			return cdc_cursor_uint(c, 2);
		case 253:
			return cdc_cursor_uint(c, 3);
		case 254:
			return cdc_cursor_uint(c, 8);
		case 251:
		case 255:
			c->failed = true;
			c->pos = c->end;
			return 0;
		default:
			return b;
	}
}

#endif							/* CDC_CORE_CURSOR_H */
