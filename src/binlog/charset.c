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
 *	  A descriptor of iconv lives for one value: there is no place to keep it
 *	  without a global, and the C library keeps the loaded tables.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "binlog/charset.h"

#include <iconv.h>
#include <string.h>

#include "binlog/charset_tables.h"

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

/* One-byte sets. Returns false at a byte that is no character of the set. */
static bool
convert_single(const BinlogCharset *set, const uint8_t *data, uint32_t len, char *out,
               size_t *outlen)
{
	char *o = out;

	for (uint32_t i = 0; i < len; i++)
	{
		uint8_t b = data[i];
		uint32_t c;

		if (set->kind == CHARSET_SWE7)
			c = swe7_char(b);
		else
			c = b < 0x80 ? b : set->half[b - 0x80];
		if (c == 0 && b != 0)
			return false;
		o += put_utf8(o, c);
	}
	*outlen = (size_t) (o - out);
	return true;
}

/* UCS-2, UTF-16 in both byte orders, UTF-32. False on lone surrogates and odd lengths. */
static bool
convert_wide(const BinlogCharset *set, const uint8_t *data, uint32_t len, char *out, size_t *outlen)
{
	uint32_t unit = set->kind == CHARSET_UTF32 ? 4 : 2;
	int low = set->kind == CHARSET_UTF16LE ? 0 : 1;
	char *o = out;

	if (len % unit != 0)
		return false;
	for (uint32_t i = 0; i < len; i += unit)
	{
		const uint8_t *p = data + i;
		uint32_t c;

		if (unit == 4)
			c = (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
		else
			c = (uint32_t) p[1 - low] << 8 | p[low];
		if (c >= 0xd800 && c <= 0xdfff)
		{
			uint32_t trail;

			if (unit == 4 || set->kind == CHARSET_UCS2 || c >= 0xdc00 || len - i < 4)
				return false;
			trail = (uint32_t) p[3 - low] << 8 | p[2 + low];
			if (trail < 0xdc00 || trail > 0xdfff)
				return false;
			c = 0x10000 + ((c - 0xd800) << 10) + (trail - 0xdc00);
			i += 2;
		}
		if (c > 0x10ffff)
			return false;
		o += put_utf8(o, c);
	}
	*outlen = (size_t) (o - out);
	return true;
}

/* Bytes of the character at p in one of the sets with exceptions; never more than left. */
static uint32_t
multibyte_length(const BinlogCharset *set, const uint8_t *p, uint32_t left)
{
	uint32_t len = 2;

	if (p[0] < 0x80)
		return 1;
	if (set->name[0] == 's' && p[0] >= 0xa1 && p[0] <= 0xdf)
		len = 1; /* sjis: half-width katakana */
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

/*
 * Sets that iconv knows. With exceptions, the text is cut into runs: ASCII and
 * exceptions are mapped here (sjis must keep 0x5c and 0x7e as ASCII, as the
 * servers do), the rest by iconv.
 */
static bool
convert_iconv(iconv_t cd, const BinlogCharset *set, const uint8_t *data, uint32_t len, char *out,
              size_t cap, size_t *outlen)
{
	char *o = out;
	size_t room = cap;
	bool ok = true;

	for (uint32_t i = 0; ok && i < len;)
	{
		uint32_t run = len - i;
		uint32_t mapped = 0;
		char *in = (char *) (data + i);
		size_t left;

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
		left = run;
		if (iconv(cd, &in, &left, &o, &room) == (size_t) -1 || left != 0)
			ok = false;
		i += run;
	}
	*outlen = (size_t) (o - out);
	return ok;
}

CdcStatus
binlog_charset_to_utf8(uint16_t collation, const uint8_t *data, uint32_t len, CdcArena *arena,
                       const char **out, uint32_t *outlen, CdcError *err)
{
	const BinlogCharset *set = binlog_collation_charset(collation);
	size_t cap;
	size_t used = 0;
	char *text;
	iconv_t cd;
	bool ok;

	if (set == NULL)
		return cdc_fail(err, CDC_UNSUPPORTED, 0, "collation %u is not known", (unsigned) collation);
	*out = (const char *) data;
	*outlen = len;
	if (set->kind == CHARSET_UTF8 || len == 0)
		return CDC_OK;
	if (set->kind == CHARSET_ASCII || set->kind == CHARSET_SINGLE || set->kind == CHARSET_ICONV)
	{
		if (is_ascii(data, len))
			return CDC_OK;
		if (set->kind == CHARSET_ASCII)
			return cdc_fail(err, CDC_MALFORMED, 0, "value is not valid in character set \"%s\"",
			                set->name);
	}
	/* No set takes more than three bytes of UTF-8 per byte, plus one character's slack. */
	cap = (size_t) len * 3 + 8;
	if (cap > UINT32_MAX)
		return cdc_fail(err, CDC_LIMIT, 0, "value is too long to be converted to UTF-8");
	text = cdc_arena_alloc(arena, cap);
	if (text == NULL)
		return cdc_fail(err, CDC_NOMEM, 0, "out of memory");
	switch ((BinlogCharsetKind) set->kind)
	{
		case CHARSET_SWE7:
		case CHARSET_SINGLE:
			ok = convert_single(set, data, len, text, &used);
			break;
		case CHARSET_UCS2:
		case CHARSET_UTF16:
		case CHARSET_UTF16LE:
		case CHARSET_UTF32:
			ok = convert_wide(set, data, len, text, &used);
			break;
		case CHARSET_ICONV:
			cd = iconv_open("UTF-8", set->iconv_name);
			if (cd == (iconv_t) -1)
				return cdc_fail(err, CDC_UNSUPPORTED, 0,
				                "character set \"%s\" is not known to the C library", set->name);
			ok = convert_iconv(cd, set, data, len, text, cap, &used);
			iconv_close(cd);
			break;
		default:
			ok = false;
			break;
	}
	if (!ok)
		return cdc_fail(err, CDC_MALFORMED, 0, "value is not valid in character set \"%s\"",
		                set->name);
	*out = text;
	*outlen = (uint32_t) used;
	return CDC_OK;
}
