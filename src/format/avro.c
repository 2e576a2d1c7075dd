/*-------------------------------------------------------------------------
 *
 * avro.c
 *	  Avro's binary encoding, written piece by piece into a buffer.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "format/avro.h"

#include <string.h>

/* Digits that a decimal may have: as many as numeric(p, s) takes. */
#define DECIMAL_DIGITS_MAX 1000

/* Bytes of so many digits, with a sign. */
#define DECIMAL_BYTES_MAX (DECIMAL_DIGITS_MAX * 5 / 12 + 2)

void
avro_add_long(CdcBuf *out, int64_t value)
{
	uint64_t	bits = (uint64_t) value << 1 ^ (value < 0 ? UINT64_MAX : 0);
	uint8_t		bytes[10];
	size_t		n = 0;

	while (bits >= 0x80)
	{
		bytes[n++] = (uint8_t) (bits | 0x80);
		bits >>= 7;
	}
	bytes[n++] = (uint8_t) bits;
	cdc_buf_add(out, bytes, n);
}

void
avro_add_bytes(CdcBuf *out, const void *data, size_t len)
{
	avro_add_long(out, (int64_t) len);
	cdc_buf_add(out, data, len);
}

void
avro_add_cstring(CdcBuf *out, const char *text)
{
	avro_add_bytes(out, text, strlen(text));
}

void
avro_add_bool(CdcBuf *out, bool value)
{
	cdc_buf_add_char(out, value ? 1 : 0);
}

static void
add_little_endian(CdcBuf *out, uint64_t bits, size_t len)
{
	uint8_t		bytes[8];

	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t) (bits >> (8 * i));
	cdc_buf_add(out, bytes, len);
}

void
avro_add_float(CdcBuf *out, float value)
{
	uint32_t	bits;

	memcpy(&bits, &value, sizeof(bits));
	add_little_endian(out, bits, sizeof(bits));
}

void
avro_add_double(CdcBuf *out, double value)
{
	uint64_t	bits;

	memcpy(&bits, &value, sizeof(bits));
	add_little_endian(out, bits, sizeof(bits));
}

void
avro_add_branch(CdcBuf *out, bool is_there)
{
	avro_add_long(out, is_there ? 1 : 0);
}

/* bytes = bytes * 10 + digit; bytes are little-endian. False: too many. */
static bool
push_digit(uint8_t *bytes, size_t *n, unsigned digit)
{
	unsigned	carry = digit;

	for (size_t i = 0; i < *n; i++)
	{
		carry += bytes[i] * 10u;
		bytes[i] = (uint8_t) carry;
		carry >>= 8;
	}
	if (carry != 0)
	{
		if (*n >= DECIMAL_BYTES_MAX - 1)
			return false;
		bytes[(*n)++] = (uint8_t) carry;
	}
	return true;
}

/* The number without its sign and its point; false when it is none. */
static bool
read_digits(const char *text, size_t len, int scale, uint8_t *bytes, size_t *n)
{
	bool		behind = false;
	bool		any = false;
	int			places = 0;

	for (size_t i = 0; i < len; i++)
	{
		if (text[i] == '.' && !behind)
		{
			behind = true;
			continue;
		}
		if (text[i] < '0' || text[i] > '9')
			return false;
		any = true;
		if (behind && places >= scale)
		{
			if (text[i] != '0')
				return false;
			continue;
		}
		places += behind;
		if (!push_digit(bytes, n, (unsigned) (text[i] - '0')))
			return false;
	}
	for (; places < scale; places++)
	{
		if (!push_digit(bytes, n, 0))
			return false;
	}
	return any;
}

bool
avro_add_decimal(CdcBuf *out, const char *text, size_t len, int scale)
{
	uint8_t		bytes[DECIMAL_BYTES_MAX];
	uint8_t		big_endian[DECIMAL_BYTES_MAX];
	size_t		n = 0;
	bool		negative = len > 0 && text[0] == '-';
	unsigned	carry = 1;

	if (!read_digits(text + negative, len - negative, scale, bytes, &n))
		return false;
	negative = negative && n > 0;
	if (n == 0 || bytes[n - 1] & 0x80)
		bytes[n++] = 0;			/* room for the sign */
	for (size_t i = 0; negative && i < n; i++)
	{
		carry += (uint8_t) ~bytes[i];
		bytes[i] = (uint8_t) carry;
		carry >>= 8;
	}
	/* of -128 the room for the sign was not needed */
	if (negative && n > 1 && bytes[n - 1] == 0xff && bytes[n - 2] & 0x80)
		n--;
	for (size_t i = 0; i < n; i++)
		big_endian[i] = bytes[n - 1 - i];
	avro_add_bytes(out, big_endian, n);
	return true;
}

/* The character at *p, which is UTF-8, and *p moves behind it. */
static uint32_t
next_character(const uint8_t **p)
{
	const uint8_t *s = *p;
	int			more = s[0] >= 0xf0 ? 3 : s[0] >= 0xe0 ? 2 : s[0] >= 0xc0 ? 1 : 0;
	uint32_t	c = more == 0 ? s[0] : s[0] & (0x3fu >> more);
	int			i;

	for (i = 1; i <= more && (s[i] & 0xc0) == 0x80; i++)
		c = c << 6 | (s[i] & 0x3f);
	*p = s + i;
	return c;
}

void
avro_add_name(CdcBuf *out, const char *name)
{
	const uint8_t *p = (const uint8_t *) name;
	bool		first = true;

	if (*name == '\0')
		cdc_buf_add_char(out, '_');
	while (*p != '\0')
	{
		uint32_t	c = next_character(&p);

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9' && !first))
			cdc_buf_add_char(out, (char) c);
		else
			cdc_buf_printf(out, "_u%04x", (unsigned) c);
		first = false;
	}
}
