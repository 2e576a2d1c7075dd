/*-------------------------------------------------------------------------
 *
 * charset.c
 *	  Character sets of the MySQL family: bytes -> UTF-8.
 *
 * NOTES
 *	  Row events hold text in the column's own character set. Nearly all of it
 *	  is UTF-8 or ASCII and is handed on in place. Single-byte and Unicode sets
 *	  are converted by own code, so that they do not depend on what the C library
 *	  has installed; the East Asian sets go through iconv, with a table of the
 *	  characters that the servers map otherwise (charset_tables.c).
 *
 *	  Bytes that are no character of their set become U+FFFD and are counted;
 *	  whoever asked decides whether that is an error.
 *
 *	  A descriptor of iconv lives for one value: there is no place to keep it
 *	  without a global, and the C library keeps the loaded tables.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "binlog/charset.h"

#include <errno.h>
#include <iconv.h>
#include <string.h>

#include "binlog/charset_tables.h"

/* What stands for bytes that are no character. */
#define REPLACEMENT 0xfffd

const char *
binlog_charset_name(uint16_t collation)
{
	const BinlogCharset *set = binlog_collation_charset(collation);

	return set != NULL ? set->name : NULL;
}

int
binlog_charset_max_length(uint16_t collation)
{
	const BinlogCharset *set = binlog_collation_charset(collation);

	return set != NULL ? set->max_length : 1;
}

bool
binlog_charset_is_supported(uint16_t collation)
{
	const BinlogCharset *set = binlog_collation_charset(collation);
	iconv_t cd;

	if (set == NULL)
		return false;
	if (set->kind != CHARSET_ICONV)
		return true;
	cd = iconv_open("UTF-8", set->iconv_name);
	if (cd == (iconv_t) -1)
		return false;
	iconv_close(cd);
	return true;
}

static bool
is_ascii(const uint8_t *data, uint32_t len)
{
	uint32_t i = 0;
	uint64_t word;

	for (; len - i >= 8; i += 8)
	{
		memcpy(&word, data + i, 8);
		if (word & UINT64_C(0x8080808080808080))
			return false;
	}
	for (; i < len; i++)
	{
		if (data[i] & 0x80)
			return false;
	}
	return true;
}

/* Append one character as UTF-8; returns how many bytes it took. */
static int
put_utf8(char *out, uint32_t c)
{
	if (c < 0x80)
	{
		out[0] = (char) c;
		return 1;
	}
	if (c < 0x800)
	{
		out[0] = (char) (0xc0 | c >> 6);
		out[1] = (char) (0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000)
	{
		out[0] = (char) (0xe0 | c >> 12);
		out[1] = (char) (0x80 | (c >> 6 & 0x3f));
		out[2] = (char) (0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char) (0xf0 | c >> 18);
	out[1] = (char) (0x80 | (c >> 12 & 0x3f));
	out[2] = (char) (0x80 | (c >> 6 & 0x3f));
	out[3] = (char) (0x80 | (c & 0x3f));
	return 4;
}

/* SWE7 puts Swedish letters in place of some ASCII ones. */
static uint32_t
swe7_char(uint8_t b)
{
	switch (b)
	{
		case 0x40:
			return 0xc9;
		case 0x5b:
			return 0xc4;
		case 0x5c:
			return 0xd6;
		case 0x5d:
			return 0xc5;
		case 0x5e:
			return 0xdc;
		case 0x60:
			return 0xe9;
		case 0x7b:
			return 0xe4;
		case 0x7c:
			return 0xf6;
		case 0x7d:
			return 0xe5;
		case 0x7e:
			return 0xfc;
		case 0x7f:
			return 0;
		default:
			return b < 0x80 ? b : 0;
	}
}

/* ASCII and the one-byte sets. Returns how many bytes are no character of the set. */
static uint32_t
convert_single(const BinlogCharset *set, const uint8_t *data, uint32_t len, char *out,
               size_t *outlen)
{
	char *o = out;
	uint32_t invalid = 0;

	for (uint32_t i = 0; i < len; i++)
	{
		uint8_t b = data[i];
		uint32_t c;

		if (set->kind == CHARSET_SWE7)
			c = swe7_char(b);
		else if (set->kind == CHARSET_ASCII)
			c = b < 0x80 ? b : 0;
		else
			c = b < 0x80 ? b : set->half[b - 0x80];
		if (c == 0 && b != 0)
		{
			c = REPLACEMENT;
			invalid++;
		}
		o += put_utf8(o, c);
	}
	*outlen = (size_t) (o - out);
	return invalid;
}

/* UCS-2, UTF-16 in both byte orders, UTF-32. Returns how many units are no character: lone surrogates, half units. */
static uint32_t
convert_wide(const BinlogCharset *set, const uint8_t *data, uint32_t len, char *out, size_t *outlen)
{
	uint32_t unit = set->kind == CHARSET_UTF32 ? 4 : 2;
	int low = set->kind == CHARSET_UTF16LE ? 0 : 1;
	char *o = out;
	uint32_t invalid = 0;

	for (uint32_t i = 0; i < len; i += unit)
	{
		const uint8_t *p = data + i;
		uint32_t c;

		if (len - i < unit)
			c = UINT32_MAX;
		else if (unit == 4)
			c = (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
		else
			c = (uint32_t) p[1 - low] << 8 | p[low];
		if (c >= 0xd800 && c <= 0xdfff)
		{
			uint32_t trail = 0;

			if (unit == 2 && set->kind != CHARSET_UCS2 && c < 0xdc00 && len - i >= 4)
				trail = (uint32_t) p[3 - low] << 8 | p[2 + low];
			if (trail >= 0xdc00 && trail <= 0xdfff)
			{
				c = 0x10000 + ((c - 0xd800) << 10) + (trail - 0xdc00);
				i += 2;
			}
			else
				c = UINT32_MAX;
		}
		if (c > 0x10ffff)
		{
			c = REPLACEMENT;
			invalid++;
		}
		o += put_utf8(o, c);
	}
	*outlen = (size_t) (o - out);
	return invalid;
}

/* Bytes of the character at p in one of the sets with exceptions; never more than left. */
static uint32_t
multibyte_length(const BinlogCharset *set, const uint8_t *p, uint32_t left)
{
	uint32_t len = 2;

	if (p[0] < 0x80)
		return 1;
	if (set->name[0] == 's' && (p[0] == 0x80 || (p[0] >= 0xa0 && p[0] <= 0xdf) || p[0] >= 0xfd))
		len = 1; /* sjis: half-width katakana, and what begins no character */
	else if (set->name[0] == 'u' && p[0] == 0x8f)
		len = 3; /* ujis: JIS X 0212 */
	else if (set->name[0] == 'g' && left > 1 && p[1] >= 0x30 && p[1] <= 0x39)
		len = 4; /* gb18030 */
	return len < left ? len : left;
}

/* Unicode of a character in the table of exceptions, or 0. */
static uint32_t
find_exception(const BinlogCharset *set, const uint8_t *p, uint32_t len)
{
	uint32_t code = 0;
	uint32_t low = 0;
	uint32_t high = set->nexceptions;

	for (uint32_t i = 0; i < len; i++)
		code = code << 8 | p[i];
	while (low < high)
	{
		uint32_t mid = (low + high) / 2;

		if (set->exceptions[mid].code == code)
			return set->exceptions[mid].unicode;
		if (set->exceptions[mid].code < code)
			low = mid + 1;
		else
			high = mid;
	}
	return 0;
}

/* Does a character of more than one byte begin with that byte? */
static bool
is_lead(iconv_t cd, uint8_t byte)
{
	char buf[8];
	char *in = (char *) &byte;
	char *out = buf;
	size_t left = 1;
	size_t room = sizeof(buf);

	return iconv(cd, &in, &left, &out, &room) == (size_t) -1 && errno == EINVAL;
}

/*
 * A run of bytes through iconv; returns how many sequences of it are no
 * character. Such a sequence is the byte where iconv stopped, with the next one
 * when together they look like a character; ASCII is never taken along.
 */
static uint32_t
convert_run(iconv_t cd, const uint8_t *data, uint32_t len, char **out, size_t *room)
{
	char *in = (char *) data;
	size_t left = len;
	uint32_t invalid = 0;

	while (left > 0 && iconv(cd, &in, &left, out, room) == (size_t) -1)
	{
		uint32_t skip = 1;
		int size;

		/* never short: there are three bytes of room for each byte, and some more */
		if (*room < 4)
			return invalid + 1;
		/* an incomplete character ends the run */
		if (errno == EINVAL)
			skip = (uint32_t) left;
		else if (left > 1 && (uint8_t) in[1] >= 0x80 && is_lead(cd, (uint8_t) in[0]))
			skip = 2;
		size = put_utf8(*out, REPLACEMENT);
		*out += size;
		*room -= (size_t) size;
		in += skip;
		left -= skip;
		invalid++;
	}
	return invalid;
}

/*
 * Sets that iconv knows. Returns how many sequences are no character. With exceptions, the text is cut into runs: ASCII and
 * exceptions are mapped here (sjis must keep 0x5c and 0x7e as ASCII, as the
 * servers do), the rest by iconv.
 */
static uint32_t
convert_iconv(iconv_t cd, const BinlogCharset *set, const uint8_t *data, uint32_t len, char *out,
              size_t cap, size_t *outlen)
{
	char *o = out;
	size_t room = cap;
	uint32_t invalid = 0;

	for (uint32_t i = 0; i < len;)
	{
		uint32_t run = len - i;
		uint32_t mapped = 0;

		if (set->nexceptions > 0)
		{
			run = 0;
			while (i + run < len)
			{
				uint32_t n = multibyte_length(set, data + i + run, len - i - run);

				mapped = n == 1 && data[i + run] < 0x80 ? data[i + run]
				                                        : find_exception(set, data + i + run, n);
				if (mapped != 0 || data[i + run] == 0)
				{
					if (run == 0)
					{
						int size = put_utf8(o, mapped);

						o += size;
						room -= (size_t) size;
						i += n;
						n = 0;
					}
					break;
				}
				run += n;
			}
			if (run == 0)
				continue;
		}
		invalid += convert_run(cd, data + i, run, &o, &room);
		i += run;
	}
	*outlen = (size_t) (o - out);
	return invalid;
}

CdcStatus
binlog_charset_mend(uint16_t collation, const uint8_t *data, uint32_t len, CdcArena *arena,
                    const char **out, uint32_t *outlen, uint32_t *invalid, CdcError *err)
{
	const BinlogCharset *set = binlog_collation_charset(collation);
	size_t cap;
	size_t used = 0;
	char *text;
	iconv_t cd;

	*invalid = 0;
	if (set == NULL)
		return cdc_fail(err, CDC_UNSUPPORTED, 0, "collation %u is not known", (unsigned) collation);
	*out = (const char *) data;
	*outlen = len;
	if (set->kind == CHARSET_UTF8 || len == 0)
		return CDC_OK;
	if ((set->kind == CHARSET_ASCII || set->kind == CHARSET_SINGLE || set->kind == CHARSET_ICONV) &&
	    is_ascii(data, len))
		return CDC_OK;
	/* No set takes more than three bytes of UTF-8 per byte, plus one character's slack. */
	cap = (size_t) len * 3 + 8;
	if (cap > UINT32_MAX)
		return cdc_fail(err, CDC_LIMIT, 0, "value is too long to be converted to UTF-8");
	text = cdc_arena_alloc(arena, cap);
	if (text == NULL)
		return cdc_fail(err, CDC_NOMEM, 0, "out of memory");
	switch ((BinlogCharsetKind) set->kind)
	{
		case CHARSET_ASCII:
		case CHARSET_SWE7:
		case CHARSET_SINGLE:
			*invalid = convert_single(set, data, len, text, &used);
			break;
		case CHARSET_UCS2:
		case CHARSET_UTF16:
		case CHARSET_UTF16LE:
		case CHARSET_UTF32:
			*invalid = convert_wide(set, data, len, text, &used);
			break;
		case CHARSET_ICONV:
			cd = iconv_open("UTF-8", set->iconv_name);
			if (cd == (iconv_t) -1)
				return cdc_fail(err, CDC_UNSUPPORTED, 0,
				                "character set \"%s\" is not known to the C library", set->name);
			*invalid = convert_iconv(cd, set, data, len, text, cap, &used);
			iconv_close(cd);
			break;
		case CHARSET_UTF8:
			break;
	}
	*out = text;
	*outlen = (uint32_t) used;
	return CDC_OK;
}

CdcStatus
binlog_charset_to_utf8(uint16_t collation, const uint8_t *data, uint32_t len, CdcArena *arena,
                       const char **out, uint32_t *outlen, CdcError *err)
{
	uint32_t invalid;
	CdcStatus status = binlog_charset_mend(collation, data, len, arena, out, outlen, &invalid, err);

	if (status == CDC_OK && invalid > 0)
		return cdc_fail(err, CDC_MALFORMED, 0, "value is not valid in character set \"%s\"",
		                binlog_charset_name(collation));
	return status;
}
