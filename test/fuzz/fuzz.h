/*-------------------------------------------------------------------------
 *
 * fuzz.h
 *	  What the libFuzzer targets share: checks, and bytes taken off the input.
 *
 * NOTES
 *	  A target does more than not crash: it states with "require" what must hold
 *	  of every result. A broken requirement aborts, and libFuzzer keeps the input.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_TEST_FUZZ_H
#define CDC_TEST_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/cursor.h"

extern int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define require(cond)                                                                              \
	do                                                                                             \
	{                                                                                              \
		if (!(cond))                                                                               \
		{                                                                                          \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #cond);              \
			abort();                                                                               \
		}                                                                                          \
	} while (0)

/* UTF-8 as PostgreSQL wants it: shortest form, no surrogates, up to U+10FFFF. */
static inline bool
utf8_is_valid(const char *text, size_t len)
{
	const uint8_t *p = (const uint8_t *) text;

	for (size_t i = 0; i < len;)
	{
		uint32_t c = p[i];
		size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

		if (n == 0 || len - i < n)
			return false;
		if (n > 1)
			c &= 0x7fu >> n;
		for (size_t k = 1; k < n; k++)
		{
			if ((p[i + k] & 0xc0) != 0x80)
				return false;
			c = c << 6 | (p[i + k] & 0x3f);
		}
		if ((n == 3 && (c < 0x800 || (c >= 0xd800 && c <= 0xdfff))) ||
		    (n == 4 && (c < 0x10000 || c > 0x10ffff)))
			return false;
		i += n;
	}
	return true;
}

/* An error that is reported has a code, and a text that can be shown to a client. */
static inline void
check_error(CdcStatus status, const CdcError *err)
{
	require(status == err->code);
	require(memchr(err->text, '\0', sizeof(err->text)) != NULL);
	require(err->text[0] != '\0');
	require(utf8_is_valid(err->text, strlen(err->text)));
}

/* Read every byte, so that the sanitizer looks at it. */
static inline void
touch(const void *data, size_t len)
{
	const uint8_t *bytes = data;
	uint8_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum ^= bytes[i];
	__asm__ volatile("" : : "r"(sum));
}

/* A copy in memory of exactly that size; the caller frees it. */
static inline uint8_t *
exact_copy(const void *data, size_t len)
{
	uint8_t *copy = malloc(len > 0 ? len : 1);

	if (len > 0)
		memcpy(copy, data, len);
	return copy;
}

#endif /* CDC_TEST_FUZZ_H */
