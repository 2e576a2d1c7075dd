/*-------------------------------------------------------------------------
 *
 * test_charset.c
 *	  Collation ids and conversion to UTF-8.
 *
 * NOTES
 *	  What is expected here is what MySQL 9.7 and MariaDB 10.11 answer.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "binlog/charset.h"
#include "event_build.h"
#include "tap.h"

static void
check(uint16_t collation, const char *hex, const char *want)
{
	CdcArena arena;
	CdcBuf in;
	CdcError err;
	const char *out;
	uint32_t len;
	char name[64];

	snprintf(name, sizeof(name), "%s %.40s", binlog_charset_name(collation), hex);
	cdc_arena_init(&arena, &cdc_malloc_allocator, 0);
	cdc_buf_init(&in, &cdc_malloc_allocator, 0);
	put_hex(&in, hex);
	if (binlog_charset_to_utf8(collation, (const uint8_t *) in.data, (uint32_t) in.len, &arena,
	                           &out, &len, &err) == CDC_OK)
		is_strn(out, len, want, name);
	else
		is_str(cdc_status_name(err.code), want, name);
	cdc_buf_free(&in);
	cdc_arena_free(&arena);
}

/* The same for a value that may be broken: what becomes of it, and how many replacements it has. */
static void
check_mend(uint16_t collation, const char *hex, const char *want, uint32_t want_invalid)
{
	CdcArena arena;
	CdcBuf in;
	CdcError err = {0};
	const char *out;
	uint32_t len;
	uint32_t invalid;
	char name[200];

	snprintf(name, sizeof(name), "mended: collation %u, %s", collation, hex);
	cdc_arena_init(&arena, &cdc_malloc_allocator, 0);
	cdc_buf_init(&in, &cdc_malloc_allocator, 0);
	put_hex(&in, hex);
	is_int(binlog_charset_mend(collation, (const uint8_t *) in.data, (uint32_t) in.len, &arena,
	                           &out, &len, &invalid, &err),
	       CDC_OK, name);
	is_strn(out, len, want, name);
	is_int(invalid, want_invalid, name);
	cdc_buf_free(&in);
	cdc_arena_free(&arena);
}

int
main(void)
{
	is_str(binlog_charset_name(8), "latin1", "8");
	is_str(binlog_charset_name(45), "utf8mb4", "45");
	is_str(binlog_charset_name(63), "binary", "63");
	is_str(binlog_charset_name(255), "utf8mb4", "255");
	is_str(binlog_charset_name(33), "utf8mb3", "33");
	is_str(binlog_charset_name(1032), "latin1", "MariaDB nopad");
	is_str(binlog_charset_name(2048), "utf8mb3", "MariaDB uca1400 utf8mb3");
	is_str(binlog_charset_name(2304), "utf8mb4", "MariaDB uca1400 utf8mb4");
	is_str(binlog_charset_name(3271), "utf32", "MariaDB uca1400 utf32");
	ok(binlog_charset_name(0) == NULL && binlog_charset_name(17) == NULL &&
	       binlog_charset_name(65535) == NULL && binlog_charset_name(3328) == NULL,
	   "unknown ids");
	is_int(binlog_charset_max_length(255), 4, "max length of utf8mb4");
	is_int(binlog_charset_max_length(12), 3, "max length of ujis");
	is_int(binlog_charset_max_length(0), 1, "max length of no set");
	ok(binlog_charset_is_supported(8) && binlog_charset_is_supported(63) &&
	       binlog_charset_is_supported(28),
	   "supported");
	ok(!binlog_charset_is_supported(0), "not supported");

	check(8, "61 e9 80 81 8d 9f ff", "aé€\xc2\x81\xc2\x8dŸÿ");
	check(47, "414243", "ABC");
	check(45, "f09f9880 ff", "😀\xff");
	check(63, "ff", "\xff");
	check(11, "6162", "ab");
	check(11, "61e9", "malformed");
	check(10, "40 5b 61 7e", "ÉÄaü");
	check(51, "c6f3ea", "Жук");
	check(51, "98", "malformed");
	check(7, "f6d5cb", "Жук");
	check(9, "a1", "Ą");
	check(35, "00e9 65e5", "é日");
	check(35, "d83dde00", "malformed");
	check(35, "00e900", "malformed");
	check(54, "00e9 d83dde00", "é😀");
	check(54, "de00d83d", "malformed");
	check(54, "d83d", "malformed");
	check(54, "d83d0041", "malformed");
	check(56, "e900 3dd800de", "é😀");
	check(60, "000000e9 0001f600", "é😀");
	check(60, "00110000", "malformed");
	check(28, "d6d0 ce c4", "中文");
	check(28, "d6", "malformed");
	check(24, "d6d0a1a4", "中・");
	check(13, "93fa967b 5c 7e 815f b0", "日本\\~\\ｰ");
	check(95, "815f 8160", "＼～");
	check(12, "c6fccbdc a1c0 a1c1 8fa2b7 8eb1", "日本\\〜~ｱ");
	check(97, "c6fccbdc a1c0", "日本＼");
	check(1, "a4a4a4e5 a145 c6a1", "中文•ヾ");
	check(19, "c7d1b1db 8141", "한글갂");
	check(248, "d6d0 9439fc36 a6d9 84318236 82359037", "中😀\xee\x9e\x8d︐龴");
	check(4711, "61", "unsupported");

	check_mend(45, "ff", "\xff", 0); /* UTF-8 is not looked at here */
	check_mend(47, "ff80", "ÿ€", 0);
	check_mend(11, "61e9e962", "a\ufffd\ufffdb", 2);
	check_mend(10, "7f", "\ufffd", 1);
	check_mend(51, "c6 98 ea", "Ж\ufffdк", 1);
	check_mend(35, "0061 d83d de00 0062", "a\ufffd\ufffdb", 2);
	check_mend(35, "006100", "a\ufffd", 1);
	check_mend(54, "d83d 0041", "\ufffdA", 1);
	check_mend(54, "de00 d83dde00 d83d", "\ufffd😀\ufffd", 2);
	check_mend(56, "3dd8 6100", "\ufffda", 1);
	check_mend(60, "0000d800 00110000 00000061 00", "\ufffd\ufffda\ufffd", 3);
	check_mend(28, "d6d0 ff ce", "中\ufffd\ufffd", 2);
	check_mend(28, "d6d0 ce", "中\ufffd", 1);
	check_mend(28, "d6d0 8120 41", "中\ufffd A", 1);
	check_mend(19, "c7d1 fefe b1db", "한\ufffd\ufffd글", 2);
	check_mend(24, "d6d0 fefe d6d0", "中\ufffd中", 1);
	check_mend(13, "93fa a0 967b", "日\ufffd本", 1);
	check_mend(248, "d6d0 ff 61", "中\ufffda", 1);
	return done_testing();
}
