/*-------------------------------------------------------------------------
 *
 * fuzz_charset.c
 *	  libFuzzer target: bytes of a collation -> UTF-8.
 *
 * NOTES
 *	  Two bytes give the collation, the rest is the value. What was converted is
 *	  valid UTF-8 of bounded length; what came back in place is the input itself, and
 *	  then either the collation's set is UTF-8, which the backend checks, or it is
 *	  ASCII. A text of one-byte or fixed-width characters may be cut anywhere between
 *	  two characters, and the parts give the same as the whole.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include "binlog/charset.h"

/* Bytes of every character of the set; 0 when they differ. */
static size_t
fixed_width(const char *name)
{
	static const char *const varying[] = {"big5",    "ujis",    "sjis",    "cp932", "gb18030",
	                                      "eucjpms", "euckr",   "gb2312",  "gbk",   "utf16",
	                                      "utf16le", "utf8mb3", "utf8mb4", "utf8"};

	for (size_t i = 0; i < sizeof(varying) / sizeof(varying[0]); i++)
	{
		if (strcmp(name, varying[i]) == 0)
			return 0;
	}
	return strcmp(name, "ucs2") == 0 ? 2 : strcmp(name, "utf32") == 0 ? 4 : 1;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint16_t collation;
	const char *name;
	const char *out;
	uint32_t outlen;
	CdcError err = {0};
	CdcStatus status;
	CdcArena arena;
	size_t width;

	if (size < 2 || size > 4096)
		return 0;
	/* mostly ids that exist */
	collation = (uint16_t) (data[0] | (data[1] & 7) << 8);
	if (data[1] & 0x80)
		collation = (uint16_t) (data[0] | data[1] << 8);
	data += 2;
	size -= 2;
	cdc_arena_init(&arena, &cdc_malloc_allocator, 1 << 20);
	name = binlog_charset_name(collation);
	require(binlog_charset_max_length(collation) >= 1 && binlog_charset_max_length(collation) <= 4);
	require(name != NULL || !binlog_charset_is_supported(collation));
	status = binlog_charset_to_utf8(collation, data, (uint32_t) size, &arena, &out, &outlen, &err);
	if (status != CDC_OK)
		check_error(status, &err);
	else if (out == (const char *) data)
	{
		require(outlen == size);
		if (strncmp(name, "utf8", 4) != 0 && strcmp(name, "binary") != 0)
		{
			for (size_t i = 0; i < size; i++)
				require(data[i] < 0x80);
		}
	}
	else
	{
		require(outlen <= size * 3);
		require(utf8_is_valid(out, outlen));
	}
	width = name != NULL ? fixed_width(name) : 0;
	if (status == CDC_OK && width > 0 && size / width >= 2)
	{
		uint32_t cut = (uint32_t) (size / width / 2 * width);
		const char *part[2];
		uint32_t len[2];

		require(binlog_charset_to_utf8(collation, data, cut, &arena, &part[0], &len[0], &err) ==
		        CDC_OK);
		require(binlog_charset_to_utf8(collation, data + cut, (uint32_t) size - cut, &arena,
		                               &part[1], &len[1], &err) == CDC_OK);
		require(len[0] + len[1] == outlen);
		require(memcmp(out, part[0], len[0]) == 0 && memcmp(out + len[0], part[1], len[1]) == 0);
	}
	cdc_arena_free(&arena);
	return 0;
}
