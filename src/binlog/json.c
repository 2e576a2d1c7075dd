/*-------------------------------------------------------------------------
 *
 * json.c
 *	  MySQL's binary JSON -> JSON text as the server prints it.
 *
 * NOTES
 *	  A document is a type byte and a value. Objects and arrays hold a count, a
 *	  size, tables of entries and then the values, with offsets counted from the
 *	  count; the "small" form has 2-byte numbers, the "large" one 4-byte numbers.
 *	  Small scalars stand in the entry itself.
 *
 *	  Offsets are free, so a damaged document can name the same bytes again and
 *	  again. No honest document becomes more than eight times longer as text, and
 *	  every step writes at least one character: that bounds time and memory.
 *
 *	  Numbers, escapes and opaque values (dates, decimals, others as base64 with
 *	  a type number) are printed as MySQL 9.7 does.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "binlog/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binlog/decimal.h"
#include "binlog/wire.h"
#include "core/cursor.h"

enum
{
	JSON_SMALL_OBJECT = 0,
	JSON_LARGE_OBJECT = 1,
	JSON_SMALL_ARRAY = 2,
	JSON_LARGE_ARRAY = 3,
	JSON_LITERAL = 4,
	JSON_INT16 = 5,
	JSON_UINT16 = 6,
	JSON_INT32 = 7,
	JSON_UINT32 = 8,
	JSON_INT64 = 9,
	JSON_UINT64 = 10,
	JSON_DOUBLE = 11,
	JSON_STRING = 12,
	JSON_OPAQUE = 15
};

/* Longest run of base64 before MySQL puts a line feed into it. */
#define BASE64_LINE 76

static CdcStatus print_value(uint8_t type, const uint8_t *data, size_t len, int depth, CdcBuf *out,
                             CdcError *err);

/* Text per byte of input that an honest document can need. */
#define TEXT_RATIO_MAX 8

static CdcStatus
damaged(CdcError *err)
{
	return cdc_fail(err, CDC_MALFORMED, 0, "JSON value is damaged");
}

/* A string in double quotes, escaped as MySQL does. */
void
binlog_json_add_string(const uint8_t *data, size_t len, CdcBuf *out)
{
	size_t done = 0;

	cdc_buf_add_char(out, '"');
	for (size_t i = 0; i < len; i++)
	{
		uint8_t c = data[i];
		char escape[8];

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		cdc_buf_add(out, data + done, i - done);
		done = i + 1;
		switch (c)
		{
			case '"':
			case '\\':
				escape[1] = (char) c;
				break;
			case '\b':
				escape[1] = 'b';
				break;
			case '\f':
				escape[1] = 'f';
				break;
			case '\n':
				escape[1] = 'n';
				break;
			case '\r':
				escape[1] = 'r';
				break;
			case '\t':
				escape[1] = 't';
				break;
			default:
				snprintf(escape, sizeof(escape), "\\u%04x", c);
				cdc_buf_add(out, escape, 6);
				continue;
		}
		escape[0] = '\\';
		cdc_buf_add(out, escape, 2);
	}
	cdc_buf_add(out, data + done, len - done);
	cdc_buf_add_char(out, '"');
}

/* Digits and place of the point of a positive number: 0.DIGITS * 10^point. */
typedef struct DoubleDigits
{
	char digits[20];
	int ndigits;
	int point;
} DoubleDigits;

static bool
reads_back(const DoubleDigits *d, double value)
{
	char text[40];

	snprintf(text, sizeof(text), "0.%.*se%d", d->ndigits, d->digits, d->point);
	return strtod(text, NULL) == value;
}

/* The nearest number of so many digits. */
static void
round_digits(double value, int ndigits, DoubleDigits *d)
{
	char text[40];
	char *exponent;

	snprintf(text, sizeof(text), "%.*e", ndigits - 1, value);
	exponent = strchr(text, 'e');
	d->point = atoi(exponent + 1) + 1;
	d->ndigits = 0;
	for (char *p = text; p < exponent; p++)
	{
		if (*p >= '0' && *p <= '9')
			d->digits[d->ndigits++] = *p;
	}
}

/* The next larger number of as many digits. */
static void
increment_digits(DoubleDigits *d)
{
	int i = d->ndigits - 1;

	while (i >= 0 && d->digits[i] == '9')
		d->digits[i--] = '0';
	if (i >= 0)
		d->digits[i]++;
	else
	{
		d->digits[0] = '1';
		d->point++;
	}
}

/*
 * Find the shortest digits that read back as value. Fifteen always suffice for
 * what was written with no more, except among the smallest numbers. Above a
 * power of two the neighbours are farther than below, so that there the next
 * larger decimal may be right where the nearest one is not.
 */
static void
shortest_digits(double value, DoubleDigits *d)
{
	for (int ndigits = value < 2.2250738585072014e-308 ? 1 : 15; ndigits <= 17; ndigits++)
	{
		round_digits(value, ndigits, d);
		if (reads_back(d, value))
			break;
		if (ndigits == 17)
			break;
		increment_digits(d);
		if (reads_back(d, value))
			break;
	}
	while (d->ndigits > 1 && d->digits[d->ndigits - 1] == '0')
		d->ndigits--;
}

/*
 * A double. MySQL writes its shortest digits plainly when the point falls
 * within 15 places, else with an exponent, and makes sure that an integral one
 * still looks like a double.
 */
static CdcStatus
print_double(double value, CdcBuf *out, CdcError *err)
{
	DoubleDigits d;
	int point;

	if (!isfinite(value))
		return damaged(err);
	if (signbit(value))
		cdc_buf_add_char(out, '-');
	shortest_digits(fabs(value), &d);
	point = d.point;
	if (value == 0)
		cdc_buf_add_str(out, "0.0");
	else if (point < -14 || point > 15)
	{
		cdc_buf_add(out, d.digits, 1);
		if (d.ndigits > 1)
		{
			cdc_buf_add_char(out, '.');
			cdc_buf_add(out, d.digits + 1, (size_t) d.ndigits - 1);
		}
		cdc_buf_printf(out, "e%d", point - 1);
	}
	else if (point <= 0)
	{
		cdc_buf_add_str(out, "0.");
		for (int i = point; i < 0; i++)
			cdc_buf_add_char(out, '0');
		cdc_buf_add(out, d.digits, (size_t) d.ndigits);
	}
	else
	{
		for (int i = 0; i < point; i++)
			cdc_buf_add_char(out, i < d.ndigits ? d.digits[i] : '0');
		cdc_buf_add_char(out, '.');
		if (d.ndigits > point)
			cdc_buf_add(out, d.digits + point, (size_t) (d.ndigits - point));
		else
			cdc_buf_add_char(out, '0');
	}
	return CDC_OK;
}

/* A number of seven bits per byte, least significant first, at most 32 bits. */
static uint64_t
read_varlen(CdcCursor *c)
{
	uint64_t value = 0;

	for (int i = 0; i < 5; i++)
	{
		uint8_t b = cdc_cursor_u8(c);

		value |= (uint64_t) (b & 0x7f) << (7 * i);
		if ((b & 0x80) == 0)
			return value;
	}
	c->failed = true;
	return 0;
}

/* DATE, DATETIME and TIMESTAMP inside JSON: one packed 8-byte integer. */
static CdcStatus
print_temporal(uint8_t type, const uint8_t *data, size_t len, CdcBuf *out, CdcError *err)
{
	CdcCursor c;
	int64_t packed;
	uint64_t value;
	uint64_t days;
	unsigned micro;
	unsigned hms;

	cdc_cursor_init(&c, data, len);
	packed = (int64_t) cdc_cursor_u64(&c);
	if (c.failed)
		return damaged(err);
	value = packed < 0 ? (uint64_t) 0 - (uint64_t) packed : (uint64_t) packed;
	micro = (unsigned) (value & 0xffffff);
	if (micro > 999999)
		return damaged(err);
	if (type == WIRE_TIME)
	{
		hms = (unsigned) (value >> 24 & 0x3fffff);
		cdc_buf_printf(out, "\"%s%02u:%02u:%02u.%06u\"", packed < 0 ? "-" : "", hms >> 12,
		               hms >> 6 & 63, hms & 63, micro);
		return CDC_OK;
	}
	hms = (unsigned) (value >> 24 & 0x1ffff);
	days = value >> 41;
	if (days >> 5 > 9999 * 13 + 12)
		return damaged(err);
	cdc_buf_printf(out, "\"%04u-%02u-%02u", (unsigned) ((days >> 5) / 13),
	               (unsigned) ((days >> 5) % 13), (unsigned) (days & 31));
	if (type != WIRE_DATE)
		cdc_buf_printf(out, " %02u:%02u:%02u.%06u", hms >> 12, hms >> 6 & 63, hms & 63, micro);
	cdc_buf_add_char(out, '"');
	return CDC_OK;
}

/* MySQL breaks base64 after 76 characters, and the line feed is then escaped. */
static void
print_base64(uint8_t type, const uint8_t *data, size_t len, CdcBuf *out)
{
	static const char alphabet[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	int column = 0;

	cdc_buf_printf(out, "\"base64:type%u:", type);
	for (size_t i = 0; i < len; i += 3)
	{
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t word = (uint32_t) data[i] << 16;
		char quad[4];

		if (n > 1)
			word |= (uint32_t) data[i + 1] << 8;
		if (n > 2)
			word |= data[i + 2];
		quad[0] = alphabet[word >> 18];
		quad[1] = alphabet[word >> 12 & 63];
		quad[2] = n > 1 ? alphabet[word >> 6 & 63] : '=';
		quad[3] = n > 2 ? alphabet[word & 63] : '=';
		if (column == BASE64_LINE)
		{
			cdc_buf_add_str(out, "\\n");
			column = 0;
		}
		cdc_buf_add(out, quad, 4);
		column += 4;
	}
	cdc_buf_add_char(out, '"');
}

/* A value of a type that JSON does not have: type byte, length, the server's own bytes. */
static CdcStatus
print_opaque(CdcCursor *c, CdcBuf *out, CdcError *err)
{
	uint8_t type = cdc_cursor_u8(c);
	uint64_t len = read_varlen(c);
	const uint8_t *data = cdc_cursor_bytes(c, len);

	if (c->failed)
		return damaged(err);
	switch (type)
	{
		case WIRE_NEWDECIMAL:
		{
			char text[BINLOG_DECIMAL_TEXT_MAX];
			uint32_t textlen;

			if (len < 2 || !binlog_decimal_is_valid(data[0], data[1]) ||
			    len - 2 < binlog_decimal_size(data[0], data[1]))
				return damaged(err);
			textlen = binlog_decimal_to_text(data + 2, data[0], data[1], text);
			if (textlen == 0)
				return damaged(err);
			cdc_buf_add(out, text, textlen);
			return CDC_OK;
		}
		case WIRE_DATE:
		case WIRE_TIME:
		case WIRE_DATETIME:
		case WIRE_TIMESTAMP:
			return print_temporal(type, data, (size_t) len, out, err);
		default:
			print_base64(type, data, (size_t) len, out);
			return CDC_OK;
	}
}

static CdcStatus
print_scalar(uint8_t type, CdcCursor *c, CdcBuf *out, CdcError *err)
{
	uint64_t bits;
	double value;
	const uint8_t *data;

	switch (type)
	{
		case JSON_LITERAL:
			bits = cdc_cursor_u8(c);
			if (c->failed || bits > 2)
				return damaged(err);
			cdc_buf_add_str(out, bits == 0 ? "null" : bits == 1 ? "true" : "false");
			break;
		case JSON_INT16:
			cdc_buf_printf(out, "%d", (int) (int16_t) cdc_cursor_u16(c));
			break;
		case JSON_UINT16:
			cdc_buf_printf(out, "%u", (unsigned) cdc_cursor_u16(c));
			break;
		case JSON_INT32:
			cdc_buf_printf(out, "%ld", (long) (int32_t) cdc_cursor_u32(c));
			break;
		case JSON_UINT32:
			cdc_buf_printf(out, "%lu", (unsigned long) cdc_cursor_u32(c));
			break;
		case JSON_INT64:
			cdc_buf_printf(out, "%lld", (long long) cdc_cursor_u64(c));
			break;
		case JSON_UINT64:
			cdc_buf_printf(out, "%llu", (unsigned long long) cdc_cursor_u64(c));
			break;
		case JSON_DOUBLE:
			bits = cdc_cursor_u64(c);
			memcpy(&value, &bits, sizeof(value));
			if (c->failed)
				return damaged(err);
			return print_double(value, out, err);
		case JSON_STRING:
			bits = read_varlen(c);
			data = cdc_cursor_bytes(c, bits);
			if (c->failed)
				return damaged(err);
			binlog_json_add_string(data, (size_t) bits, out);
			break;
		case JSON_OPAQUE:
			return print_opaque(c, out, err);
		default:
			return damaged(err);
	}
	return c->failed ? damaged(err) : CDC_OK;
}

/* Does a value of this type stand in its entry? Small scalars do. */
static bool
is_inline(uint8_t type, int width)
{
	return type == JSON_LITERAL || type == JSON_INT16 || type == JSON_UINT16 ||
	       (width == 4 && (type == JSON_INT32 || type == JSON_UINT32));
}

/* An object or array. data starts at its element count. */
static CdcStatus
print_container(uint8_t type, const uint8_t *data, size_t len, int depth, CdcBuf *out,
                CdcError *err)
{
	bool is_object = type == JSON_SMALL_OBJECT || type == JSON_LARGE_OBJECT;
	int width = type == JSON_LARGE_OBJECT || type == JSON_LARGE_ARRAY ? 4 : 2;
	CdcCursor keys;
	CdcCursor values;
	uint64_t count;
	uint64_t size;

	if (depth <= 0)
		return cdc_fail(err, CDC_LIMIT, 0, "JSON value is nested too deeply");
	cdc_cursor_init(&keys, data, len);
	count = cdc_cursor_uint(&keys, width);
	size = cdc_cursor_uint(&keys, width);
	if (keys.failed || size > len)
		return damaged(err);
	values = keys;
	values.end = keys.end = data + size;
	if (keys.pos > keys.end)
		return damaged(err);
	if (is_object)
		cdc_cursor_bytes(&values, count * (uint64_t) (width + 2));
	cdc_buf_add_char(out, is_object ? '{' : '[');
	for (uint64_t i = 0; i < count; i++)
	{
		uint8_t value_type;
		const uint8_t *entry;
		CdcStatus status;

		if (i > 0)
			cdc_buf_add(out, ", ", 2);
		if (is_object)
		{
			uint64_t offset = cdc_cursor_uint(&keys, width);
			uint64_t keylen = cdc_cursor_u16(&keys);

			if (keys.failed || offset > size || keylen > size - offset)
				return damaged(err);
			binlog_json_add_string(data + offset, (size_t) keylen, out);
			cdc_buf_add(out, ": ", 2);
		}
		value_type = cdc_cursor_u8(&values);
		entry = cdc_cursor_bytes(&values, (uint64_t) width);
		if (values.failed)
			return damaged(err);
		if (is_inline(value_type, width))
			status = print_value(value_type, entry, (size_t) width, depth - 1, out, err);
		else
		{
			uint64_t offset = 0;

			for (int k = width - 1; k >= 0; k--)
				offset = offset << 8 | entry[k];
			if (offset > size)
				return damaged(err);
			status = print_value(value_type, data + offset, (size_t) (size - offset), depth - 1,
			                     out, err);
		}
		if (status != CDC_OK)
			return status;
		if (out->status != CDC_OK)
			return out->status;
	}
	cdc_buf_add_char(out, is_object ? '}' : ']');
	return CDC_OK;
}

static CdcStatus
print_value(uint8_t type, const uint8_t *data, size_t len, int depth, CdcBuf *out, CdcError *err)
{
	CdcCursor c;

	if (type <= JSON_LARGE_ARRAY)
		return print_container(type, data, len, depth, out, err);
	cdc_cursor_init(&c, data, len);
	return print_scalar(type, &c, out, err);
}

/*
 * Append the text of a document. An empty value is what MySQL stores for a NULL
 * forced into a NOT NULL column, and reads as the JSON null.
 */
CdcStatus
binlog_json_to_text(const uint8_t *data, size_t len, int max_depth, CdcBuf *out, CdcError *err)
{
	size_t limit = out->limit;
	size_t most;
	CdcStatus status;

	if (len == 0)
	{
		cdc_buf_add_str(out, "null");
		if (out->status != CDC_OK)
			return cdc_fail(err, out->status, 0, "JSON value does not fit the memory limit");
		return CDC_OK;
	}
	if (len > SIZE_MAX / 4 / TEXT_RATIO_MAX)
		return cdc_fail(err, CDC_LIMIT, 0, "JSON value is too long");
	most = out->len + len * TEXT_RATIO_MAX + 64;
	if (limit == 0 || limit > most)
		out->limit = most;
	status = print_value(data[0], data + 1, len - 1, max_depth, out, err);
	if (status == CDC_OK || out->status != CDC_OK)
	{
		status = out->status;
		if (status == CDC_LIMIT && out->limit == most)
			status = damaged(err);
		else if (status != CDC_OK)
			cdc_fail(err, status, 0, "JSON value does not fit the memory limit");
	}
	out->limit = limit;
	return status;
}
