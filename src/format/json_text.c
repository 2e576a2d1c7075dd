/*-------------------------------------------------------------------------
 *
 * json_text.c
 *	  JSON, written piece by piece into a buffer.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "format/json_text.h"

#include <string.h>

/* Bytes are turned into digits in pieces of this size, which three and two divide. */
#define PIECE 1536

static bool
needs_escape(uint8_t c)
{
	return c < 0x20 || c == '"' || c == '\\';
}

static void
add_escape(CdcBuf *out, uint8_t c)
{
	switch (c)
	{
		case '"':
			cdc_buf_add(out, "\\\"", 2);
			break;
		case '\\':
			cdc_buf_add(out, "\\\\", 2);
			break;
		case '\n':
			cdc_buf_add(out, "\\n", 2);
			break;
		case '\r':
			cdc_buf_add(out, "\\r", 2);
			break;
		case '\t':
			cdc_buf_add(out, "\\t", 2);
			break;
		case '\b':
			cdc_buf_add(out, "\\b", 2);
			break;
		case '\f':
			cdc_buf_add(out, "\\f", 2);
			break;
		default:
			cdc_buf_printf(out, "\\u%04x", c);
			break;
	}
}

/* Without the quotes. */
static void
add_escaped(CdcBuf *out, const char *text, size_t len)
{
	size_t		start = 0;

	for (size_t i = 0; i < len; i++)
	{
		if (!needs_escape((uint8_t) text[i]))
			continue;
		cdc_buf_add(out, text + start, i - start);
		add_escape(out, (uint8_t) text[i]);
		start = i + 1;
	}
	cdc_buf_add(out, text + start, len - start);
}

void
json_add_string(CdcBuf *out, const char *text, size_t len)
{
	cdc_buf_add_char(out, '"');
	add_escaped(out, text, len);
	cdc_buf_add_char(out, '"');
}

void
json_add_dotted(CdcBuf *out, const char *first, const char *second)
{
	cdc_buf_add_char(out, '"');
	add_escaped(out, first, strlen(first));
	cdc_buf_add_char(out, '.');
	add_escaped(out, second, strlen(second));
	cdc_buf_add_char(out, '"');
}

void
json_add_cstring(CdcBuf *out, const char *text)
{
	json_add_string(out, text, strlen(text));
}

void
json_add_cstring_or_null(CdcBuf *out, const char *text)
{
	if (text == NULL)
		cdc_buf_add(out, "null", 4);
	else
		json_add_cstring(out, text);
}

void
json_add_name(CdcBuf *out, const char *name)
{
	json_add_cstring(out, name);
	cdc_buf_add_char(out, ':');
}

/* Two digits at a time, from the end; returns where they begin. */
static char *
digits_before(char *end, uint64_t value)
{
	static const char pairs[] =
		"00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748"
		"4950515253545556575859606162636465666768697071727374757677787980818283848586878889909192939495969798"
		"99";

	while (value >= 100)
	{
		end -= 2;
		memcpy(end, pairs + value % 100 * 2, 2);
		value /= 100;
	}
	if (value >= 10)
	{
		end -= 2;
		memcpy(end, pairs + value * 2, 2);
	}
	else
		*--end = (char) ('0' + value);
	return end;
}

void
json_add_uint(CdcBuf *out, uint64_t value)
{
	char		digits[20];
	char	   *start = digits_before(digits + sizeof(digits), value);

	cdc_buf_add(out, start, (size_t) (digits + sizeof(digits) - start));
}

void
json_add_int(CdcBuf *out, int64_t value)
{
	if (value < 0)
	{
		cdc_buf_add_char(out, '-');
		json_add_uint(out, 0 - (uint64_t) value);
	}
	else
		json_add_uint(out, (uint64_t) value);
}

void
json_add_nanos(CdcBuf *out, int64_t micros)
{
	json_add_int(out, micros);
	if (micros != 0)
		cdc_buf_add(out, "000", 3);
}

void
json_add_moment(CdcBuf *out, const char *before_ms, const char *before_us, const char *before_ns, int64_t micros)
{
	char		digits[20];
	char	   *end = digits + sizeof(digits);
	char	   *start;

	cdc_buf_add_str(out, before_ms);
	if (micros < 1000)
	{
		json_add_int(out, micros / 1000);
		cdc_buf_add_str(out, before_us);
		json_add_int(out, micros);
		cdc_buf_add_str(out, before_ns);
		json_add_nanos(out, micros);
		return;
	}
	start = digits_before(end, (uint64_t) micros);
	cdc_buf_add(out, start, (size_t) (end - start) - 3);
	cdc_buf_add_str(out, before_us);
	cdc_buf_add(out, start, (size_t) (end - start));
	cdc_buf_add_str(out, before_ns);
	cdc_buf_add(out, start, (size_t) (end - start));
	cdc_buf_add(out, "000", 3);
}

/* Up to PIECE bytes as base64; returns how many characters that makes. */
static size_t
base64_piece(const uint8_t *data, size_t len, char *text)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char	   *p = text;

	for (size_t i = 0; i < len; i += 3)
	{
		size_t		n = len - i < 3 ? len - i : 3;
		uint32_t	bits = (uint32_t) data[i] << 16;

		if (n > 1)
			bits |= (uint32_t) data[i + 1] << 8;
		if (n > 2)
			bits |= data[i + 2];
		*p++ = letters[bits >> 18];
		*p++ = letters[bits >> 12 & 63];
		*p++ = n > 1 ? letters[bits >> 6 & 63] : '=';
		*p++ = n > 2 ? letters[bits & 63] : '=';
	}
	return (size_t) (p - text);
}

void
json_add_base64(CdcBuf *out, const void *data, size_t len)
{
	char		text[PIECE / 3 * 4];

	cdc_buf_add_char(out, '"');
	for (size_t i = 0; i < len && out->status == CDC_OK; i += PIECE)
		cdc_buf_add(out, text, base64_piece((const uint8_t *) data + i, len - i < PIECE ? len - i : PIECE, text));
	cdc_buf_add_char(out, '"');
}

void
json_add_hex(CdcBuf *out, const void *data, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *bytes = data;
	char		text[PIECE * 2];

	cdc_buf_add_char(out, '"');
	for (size_t i = 0; i < len && out->status == CDC_OK; i += PIECE)
	{
		size_t		n = len - i < PIECE ? len - i : PIECE;

		for (size_t k = 0; k < n; k++)
		{
			text[2 * k] = digits[bytes[i + k] >> 4];
			text[2 * k + 1] = digits[bytes[i + k] & 15];
		}
		cdc_buf_add(out, text, 2 * n);
	}
	cdc_buf_add_char(out, '"');
}

void
json_add_latin1(CdcBuf *out, const void *data, size_t len)
{
	const uint8_t *bytes = data;
	char		text[PIECE * 2];
	size_t		n = 0;

	cdc_buf_add_char(out, '"');
	for (size_t i = 0; i < len && out->status == CDC_OK; i++)
	{
		if (bytes[i] >= 0x80)
		{
			text[n++] = (char) (0xc0 | bytes[i] >> 6);
			text[n++] = (char) (0x80 | (bytes[i] & 0x3f));
		}
		else
			text[n++] = (char) bytes[i];
		if (n >= sizeof(text) - 1 || i + 1 == len)
		{
			add_escaped(out, text, n);
			n = 0;
		}
	}
	cdc_buf_add_char(out, '"');
}

void
json_add_document(CdcBuf *out, const char *text, size_t len)
{
	size_t		start = 0;

	for (size_t i = 0; i < len; i++)
	{
		if (text[i] != '\n' && text[i] != '\r' && text[i] != '\t')
			continue;
		cdc_buf_add(out, text + start, i - start);
		cdc_buf_add_char(out, ' ');
		start = i + 1;
	}
	cdc_buf_add(out, text + start, len - start);
}
