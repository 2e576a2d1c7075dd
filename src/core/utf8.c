/*-------------------------------------------------------------------------
 *
 * utf8.c
 *	  Is it UTF-8?
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "core/utf8.h"

#include <string.h>

size_t
cdc_utf8_char(const uint8_t *p, size_t left)
{
	uint32_t	c = p[0];
	size_t		n;

	if (c < 0x80)
		return 1;
	if (c < 0xc2 || c > 0xf4)
		return 0;
	n = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	if (left < n)
		return 0;
	c &= 0x7fu >> n;
	for (size_t i = 1; i < n; i++)
	{
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (n == 3 && (c < 0x800 || (c >= 0xd800 && c <= 0xdfff)))
		return 0;
	if (n == 4 && (c < 0x10000 || c > 0x10ffff))
		return 0;
	return n;
}

bool
cdc_utf8_is_valid(const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len;)
	{
		size_t		n = cdc_utf8_char(p + i, len - i);

		if (n == 0)
			return false;
		i += n;
	}
	return true;
}

void
cdc_utf8_repair(char *text)
{
	size_t		len = strlen(text);

	for (size_t i = 0; i < len;)
	{
		size_t		n = cdc_utf8_char((const uint8_t *) text + i, len - i);

		if (n == 0)
		{
			text[i] = '?';
			n = 1;
		}
		i += n;
	}
}
