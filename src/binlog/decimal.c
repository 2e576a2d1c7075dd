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

/*
 * Read a group of "digits" digits at *p and write them at *out. The first byte
 * of the value comes with its top bit already put right in "first".
 */
static bool
put_group(const uint8_t **p, const uint8_t *start, uint8_t first, uint8_t mask, int digits,
          char **out)
{
	uint32_t value = 0;

	for (int i = 0; i < group_bytes[digits]; i++)
	{
		uint8_t b = (*p == start ? first : **p) ^ mask;

		value = value << 8 | b;
		(*p)++;
	}
	if (value >= power10[digits])
		return false;
	for (int i = digits - 1; i >= 0; i--)
	{
		(*out)[i] = (char) ('0' + value % 10);
		value /= 10;
	}
	*out += digits;
	return true;
}

uint32_t
binlog_decimal_to_text(const uint8_t *data, int precision, int scale, char *out)
{
	char digits[BINLOG_DECIMAL_DIGITS_MAX + 1];
	char *d = digits;
	char *o = out;
	const uint8_t *p = data;
	uint8_t first = data[0] ^ 0x80;
	bool negative = (data[0] & 0x80) == 0;
	uint8_t mask = negative ? 0xff : 0;
	int whole = precision - scale;
	int i;
	bool zero = true;

	if (whole % 9 != 0 && !put_group(&p, data, first, mask, whole % 9, &d))
		return 0;
	for (i = 0; i < whole / 9; i++)
	{
		if (!put_group(&p, data, first, mask, 9, &d))
			return 0;
	}
	for (i = 0; i < scale / 9; i++)
	{
		if (!put_group(&p, data, first, mask, 9, &d))
			return 0;
	}
	if (scale % 9 != 0 && !put_group(&p, data, first, mask, scale % 9, &d))
		return 0;

	for (i = 0; i < precision && zero; i++)
		zero = digits[i] == '0';
	if (negative && !zero)
		*o++ = '-';
	for (i = 0; i < whole - 1 && digits[i] == '0'; i++)
		;
	if (whole == 0)
		*o++ = '0';
	for (; i < whole; i++)
		*o++ = digits[i];
	if (scale > 0)
	{
		*o++ = '.';
		for (i = whole; i < precision; i++)
			*o++ = digits[i];
	}
	return (uint32_t) (o - out);
}
