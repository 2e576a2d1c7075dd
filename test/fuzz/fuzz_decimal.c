/*-------------------------------------------------------------------------
 *
 * fuzz_decimal.c
 *	  libFuzzer target: binary DECIMAL.
 *
 * NOTES
 *	  Two bytes give precision and scale, the rest is the value. The text is turned
 *	  back into bytes by an encoder written from the format's description, and has
 *	  to give the bytes it came from.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include "binlog/decimal.h"

static const int group_bytes[] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 4};

/* Put "digits" digits into so many bytes as the format gives them. */
static uint8_t *
put_group(uint8_t *out, const char **digits, int n)
{
	uint32_t value = 0;

	for (int i = 0; i < n; i++)
		value = value * 10 + (uint32_t) (*(*digits)++ - '0');
	for (int i = group_bytes[n] - 1; i >= 0; i--)
		*out++ = (uint8_t) (value >> (8 * i));
	return out;
}

/* The bytes of a text with all its digits. */
static void
encode(const char *digits, bool negative, int whole, int scale, uint8_t *out)
{
	uint8_t *p = out;

	p = put_group(p, &digits, whole % 9);
	for (int i = 0; i < whole / 9; i++)
		p = put_group(p, &digits, 9);
	for (int i = 0; i < scale / 9; i++)
		p = put_group(p, &digits, 9);
	p = put_group(p, &digits, scale % 9);
	if (negative)
	{
		for (uint8_t *b = out; b < p; b++)
			*b = (uint8_t) ~*b;
	}
	out[0] ^= 0x80;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int precision;
	int scale;
	uint32_t want;
	uint32_t len;
	uint8_t *value;
	char *text;

	if (size < 2)
		return 0;
	/* mostly valid ones */
	precision = data[0] < 200 ? data[0] % (BINLOG_DECIMAL_DIGITS_MAX + 1) : data[0];
	scale = data[1] < 200 && precision > 0 ? data[1] % (precision + 1) : data[1];
	if (!binlog_decimal_is_valid(precision, scale))
	{
		require(precision < 1 || precision > BINLOG_DECIMAL_DIGITS_MAX || scale > precision);
		return 0;
	}
	want = binlog_decimal_size(precision, scale);
	require(want >= 1 && want <= (BINLOG_DECIMAL_DIGITS_MAX + 8) / 9 * 4 + 4);
	if (size - 2 < want)
		return 0;
	value = exact_copy(data + 2, want);
	text = malloc(BINLOG_DECIMAL_TEXT_MAX);
	len = binlog_decimal_to_text(value, precision, scale, text);
	if (len > 0)
	{
		char digits[BINLOG_DECIMAL_DIGITS_MAX + 1];
		uint8_t again[64];
		bool negative = text[0] == '-';
		const char *p = text + negative;
		const char *end = text + len;
		const char *point = memchr(text, '.', len);
		int nwhole = (int) ((point != NULL ? point : end) - p);
		int whole = precision - scale;
		bool zero = true;

		require(len <= BINLOG_DECIMAL_TEXT_MAX);
		require((point != NULL) == (scale > 0));
		require(nwhole >= 1 && (p[0] != '0' || nwhole == 1));
		require(point == NULL || end - point - 1 == scale);
		require(nwhole <= whole || (whole == 0 && p[0] == '0'));
		memset(digits, '0', sizeof(digits));
		if (whole > 0)
			memcpy(digits + whole - nwhole, p, (size_t) nwhole);
		if (point != NULL)
			memcpy(digits + whole, point + 1, (size_t) scale);
		for (int i = 0; i < precision; i++)
		{
			require(digits[i] >= '0' && digits[i] <= '9');
			zero &= digits[i] == '0';
		}
		require(!(zero && negative));
		encode(digits, zero ? (value[0] & 0x80) == 0 : negative, whole, scale, again);
		require(memcmp(again, value, want) == 0);
	}
	free(text);
	free(value);
	return 0;
}
