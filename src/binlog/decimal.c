/*-------------------------------------------------------------------------
 *
 * decimal.c
 *	  Binary DECIMAL of the MySQL family -> text.
 *
 * NOTES
 *	  Digits are stored in groups of nine, four bytes big endian each; the group
 *	  at the outer end of either side of the point may have fewer digits and
 *	  then takes fewer bytes. The top bit of the first byte is inverted so that
 *	  values sort as bytes, and all bytes of a negative value are complemented.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "binlog/decimal.h"

#include <string.h>

/* Bytes of a group of 0 to 9 digits. */
static const uint8_t group_bytes[] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 4};
static const uint32_t power10[] = {1,      10,      100,      1000,      10000,
                                   100000, 1000000, 10000000, 100000000, 1000000000};

bool
binlog_decimal_is_valid(int precision, int scale)
{
	return precision >= 1 && precision <= BINLOG_DECIMAL_DIGITS_MAX && scale >= 0 &&
	       scale <= precision;
}

uint32_t
binlog_decimal_size(int precision, int scale)
{
	int whole = precision - scale;

	return (uint32_t) (whole / 9 * 4 + group_bytes[whole % 9] + scale / 9 * 4 +
	                   group_bytes[scale % 9]);
}

/* The group of n bytes at p, as it was before the value was made to sort as bytes. */
static inline uint32_t
read_group(const uint8_t *p, int n, bool is_first, bool negative)
{
	uint32_t value = 0;

	for (int i = 0; i < n; i++)
		value = value << 8 | p[i];
	if (is_first)
		value ^= (uint32_t) 0x80 << 8 * (n - 1);
	if (negative)
		value ^= UINT32_MAX >> (32 - 8 * n);
	return value;
}

/* Write a number with n digits, leading zeros included. */
static inline void
put_digits(char *out, uint32_t value, int n)
{
	static const char pairs[] = "00010203040506070809"
	                            "10111213141516171819"
	                            "20212223242526272829"
	                            "30313233343536373839"
	                            "40414243444546474849"
	                            "50515253545556575859"
	                            "60616263646566676869"
	                            "70717273747576777879"
	                            "80818283848586878889"
	                            "90919293949596979899";

	for (; n >= 2; n -= 2)
	{
		memcpy(out + n - 2, pairs + 2 * (value % 100), 2);
		value /= 100;
	}
	if (n == 1)
		out[0] = (char) ('0' + value % 10);
}

static inline int
count_digits(uint32_t value)
{
	int n = 1;

	while (n < 9 && value >= power10[n])
		n++;
	return n;
}

uint32_t
binlog_decimal_to_text(const uint8_t *data, int precision, int scale, char *out)
{
	bool negative = (data[0] & 0x80) == 0;
	int whole = precision - scale;
	const uint8_t *p = data;
	char *o = out;
	char *begin;
	bool zero = true;

	if (negative)
		*o++ = '-';
	begin = o;
	for (int digits = whole % 9 != 0 ? whole % 9 : 9, left = whole; left > 0; left -= digits, digits = 9)
	{
		uint32_t value = read_group(p, group_bytes[digits], p == data, negative);
		int n = o > begin ? digits : count_digits(value);

		if (value >= power10[digits])
			return 0;
		p += group_bytes[digits];
		if (o == begin && value == 0)
			continue;			/* leading zeros */
		put_digits(o, value, n);
		o += n;
		zero = false;
	}
	if (o == begin)
		*o++ = '0';
	if (scale > 0)
		*o++ = '.';
	for (int left = scale; left > 0;)
	{
		int digits = left < 9 ? left : 9;
		uint32_t value = read_group(p, group_bytes[digits], p == data, negative);

		if (value >= power10[digits])
			return 0;
		p += group_bytes[digits];
		put_digits(o, value, digits);
		o += digits;
		left -= digits;
		zero = zero && value == 0;
	}
	if (negative && zero)
		memmove(out, begin, (size_t) (o-- - begin));
	return (uint32_t) (o - out);
}
