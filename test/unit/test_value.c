/*-------------------------------------------------------------------------
 *
 * test_value.c
 *	  Values: decimals, JSON, compressed columns, everything a cell can be.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "binlog/value.h"

#include <zlib.h>

#include "binlog/decimal.h"
#include "binlog/inflate.h"
#include "binlog/json.h"
#include "binlog/wire.h"
#include "event_build.h"
#include "event_dump.h"
#include "tap.h"

/* Decode the bytes of a column and compare the cell's text. */
static void
check(CdcColumnDef column, const char *hex, const char *want)
{
	CdcField field = {.state = CDC_FIELD_VALUE};
	CdcArena arena;
	CdcBuf in;
	CdcBuf out;
	CdcCell cell;
	CdcError err;

	cdc_arena_init(&arena, &cdc_malloc_allocator, 1 << 20);
	cdc_buf_init(&in, &cdc_malloc_allocator, 0);
	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	put_hex(&in, hex);
	cdc_buf_add(&in, "", 0);
	field.data = (const uint8_t *) in.data;
	field.len = (uint32_t) in.len;
	if (binlog_field_to_cell(&column, &field, &arena, &cell, &err) == CDC_OK)
		dump_cell(&cell, &out);
	else
		cdc_buf_add_str(&out, cdc_status_name(err.code));
	is_str(out.data, want, want);
	cdc_buf_free(&in);
	cdc_buf_free(&out);
	cdc_arena_free(&arena);
}

#define COL(t, w, m, ...)                                                                          \
	((CdcColumnDef){.type = CDC_TYPE_##t, .wire_type = WIRE_##w, .wire_meta = (m), ##__VA_ARGS__})

static void
test_numbers(void)
{
	check(COL(TINYINT, TINY, 0), "80", "-128");
	check(COL(TINYINT, TINY, 0, .is_unsigned = true), "ff", "255u");
	check(COL(SMALLINT, SHORT, 0), "0080", "-32768");
	check(COL(MEDIUMINT, INT24, 0), "000080", "-8388608");
	check(COL(MEDIUMINT, INT24, 0), "ffff7f", "8388607");
	check(COL(MEDIUMINT, INT24, 0, .is_unsigned = true), "ffffff", "16777215u");
	check(COL(INT, LONG, 0), "ffffffff", "-1");
	check(COL(BIGINT, LONGLONG, 0), "0000000000000080", "-9223372036854775808");
	check(COL(BIGINT, LONGLONG, 0, .is_unsigned = true), "ffffffffffffffff",
	      "18446744073709551615u");
	check(COL(INT, LONG, 0), "ffffff", "malformed");
	check(COL(FLOAT, FLOAT, 4), "0000c03f", "1.5f");
	check(COL(DOUBLE, DOUBLE, 8), "00000000000002c0", "-2.25d");
	check(COL(YEAR, YEAR, 0), "00", "0u");
	check(COL(YEAR, YEAR, 0), "7e", "2026u");
	check(COL(YEAR, YEAR, 0), "ff", "2155u");
	check(COL(BIT, BIT, 17), "010001", "bit:010001");
	check(COL(BIT, BIT, 64), "ffffffffffffffff", "bit:ffffffffffffffff");
}

static void
test_decimals(void)
{
	char text[BINLOG_DECIMAL_TEXT_MAX];
	static const uint8_t bad[] = {0x80 | 0x7f, 0xff, 0xff, 0xff};

	check(COL(DECIMAL, NEWDECIMAL, 10 << 8 | 3), "7fed2978fc84", "'-1234567.891'");
	check(COL(DECIMAL, NEWDECIMAL, 10 << 8 | 3), "7fed2978fc84ff", "malformed");
	check(COL(DECIMAL, NEWDECIMAL, 65 << 8 | 30),
	      "80000000000000000000000000000000000000000000000000000000 0001",
	      "'0.000000000000000000000000000001'");
	check(COL(DECIMAL, NEWDECIMAL, 1 << 8 | 0), "89", "'9'");
	check(COL(DECIMAL, NEWDECIMAL, 1 << 8 | 0), "76", "'-9'");
	check(COL(DECIMAL, NEWDECIMAL, 1 << 8 | 0), "8a", "malformed");
	check(COL(DECIMAL, NEWDECIMAL, 4 << 8 | 2), "8c32", "'12.50'");
	check(COL(DECIMAL, NEWDECIMAL, 4 << 8 | 2), "73cd", "'-12.50'");
	check(COL(DECIMAL, NEWDECIMAL, 4 << 8 | 2), "8000", "'0.00'");
	check(COL(DECIMAL, NEWDECIMAL, 4 << 8 | 2), "7fff", "'0.00'");
	check(COL(DECIMAL, NEWDECIMAL, 9 << 8 | 9), "875bcd15", "'0.123456789'");
	check(COL(DECIMAL, NEWDECIMAL, 9 << 8 | 9), "7ffffffe", "'-0.000000001'");
	is_int(binlog_decimal_size(65, 30), 30, "size of (65,30)");
	is_int(binlog_decimal_to_text(bad, 9, 0, text), 0, "a group above its digits is refused");
	ok(!binlog_decimal_is_valid(0, 0) && !binlog_decimal_is_valid(5, 6) &&
	       !binlog_decimal_is_valid(255, 0),
	   "invalid definitions");
}

static void
test_temporals(void)
{
	check(COL(DATE, DATE, 0), "7dd50f", "2026-11-29");
	check(COL(DATE, DATE, 0), "000000", "0000-00-00");
	check(COL(DATE, DATE, 0), "00d40f", "2026-00-00");
	check(COL(DATE, DATE, 0), "ffffff", "malformed");
	check(COL(TIME, TIME2, 0), "4b9105", "-838:59:59.000000");
	check(COL(TIME, TIME2, 0), "800000", "00:00:00.000000");
	check(COL(TIME, TIME2, 1), "7f3747ba", "-12:34:56.700000");
	check(COL(TIME, TIME2, 2), "7fffffe7", "-00:00:00.250000");
	check(COL(TIME, TIME2, 3), "7ffffffff6", "-00:00:00.001000");
	check(COL(TIME, TIME2, 6), "7ffffeffffff", "-00:00:01.000001");
	check(COL(TIME, TIME2, 6), "800000000001", "00:00:00.000001");
	check(COL(TIME, TIME2, 0), "ffffff", "malformed");
	check(COL(DATETIME, DATETIME2, 0), "99bb7ac8b8", "2026-11-29 12:34:56.000000");
	check(COL(DATETIME, DATETIME2, 2), "99bb7ac8b84e", "2026-11-29 12:34:56.780000");
	check(COL(DATETIME, DATETIME2, 4), "fef3ff7efb270f", "9999-12-31 23:59:59.999900");
	check(COL(DATETIME, DATETIME2, 6), "fef3ff7efb0f423f", "9999-12-31 23:59:59.999999");
	check(COL(DATETIME, DATETIME2, 6), "fef3ff7efb0f4240", "malformed");
	check(COL(DATETIME, DATETIME2, 0), "8000000000", "0000-00-00 00:00:00.000000");
	check(COL(DATETIME, DATETIME2, 0), "99b9000000", "2026-02-00 00:00:00.000000");
	check(COL(DATETIME, DATETIME2, 0), "7fffffffff", "malformed");
	check(COL(TIMESTAMP, TIMESTAMP2, 0), "00000000", "epoch:zero");
	check(COL(TIMESTAMP, TIMESTAMP2, 0), "00000001", "epoch:1000000");
	check(COL(TIMESTAMP, TIMESTAMP2, 3), "00000001000a", "epoch:1001000");
	check(COL(TIMESTAMP, TIMESTAMP2, 6), "7fffffff0f423f", "epoch:2147483647999999");
	check(COL(TIMESTAMP, TIMESTAMP2, 0), "ffffffff", "epoch:4294967295000000");
	check(COL(TIMESTAMP, TIMESTAMP, 0), "6b0c1bf0", "epoch:4028304491000000");
	check(COL(TIME, TIME, 0), "c01dfe", "-12:34:56.000000");
	check(COL(TIME, TIME, 0), "41e200", "malformed");
	check(COL(DATETIME, DATETIME, 0), "807667696d120000", "2026-11-29 12:34:56.000000");
	check(COL(DATETIME, DATETIME, 0), "ffffffffffffffff", "malformed");
}

static void
test_strings(void)
{
	static const CdcLabel labels[] = {{"a", 1}, {"b,c", 3}, {"\xc3\xa9", 2}};

	check(COL(CHAR, STRING, 10, .collation = 8), "616263ff", "'abcÿ'");
	check(COL(CHAR, STRING, 20, .collation = 35), "00e900200020", "'é'");
	check(COL(CHAR, STRING, 20, .collation = 255), "612020", "'a'");
	check(COL(VARCHAR, VARCHAR, 20, .collation = 255), "612020", "'a  '");
	check(COL(VARCHAR, VARCHAR, 20), "61", "unsupported");
	check(COL(VARCHAR, VARCHAR, 20, .collation = 46), "61", "'a'");
	check(COL(BINARY, STRING, 4, .collation = 63), "01", "x:01000000");
	check(COL(BINARY, STRING, 4, .collation = 63), "", "x:00000000");
	check(COL(VARBINARY, VARCHAR, 4, .collation = 63), "0100", "x:0100");
	check(COL(BLOB, BLOB, 2, .collation = 63), "00ff", "x:00ff");
	check(COL(TEXT, BLOB, 2, .collation = 8), "e980", "'é€'");
	check(COL(JSON, BLOB, 4, .collation = 46), "7b7d", "'{}'");
	check(COL(ENUM, ENUM, 1, .labels = labels, .nlabels = 3), "00", "''");
	check(COL(ENUM, ENUM, 1, .labels = labels, .nlabels = 3), "03", "'é'");
	check(COL(ENUM, ENUM, 2, .labels = labels, .nlabels = 3), "0400", "malformed");
	check(COL(ENUM, ENUM, 1), "01", "unsupported");
	check(COL(SET, SET, 1, .labels = labels, .nlabels = 3), "05", "'a,é'");
	check(COL(SET, SET, 1, .labels = labels, .nlabels = 3), "07", "'a,b,c,é'");
	check(COL(SET, SET, 1, .labels = labels, .nlabels = 3), "00", "''");
	check(COL(SET, SET, 1, .labels = labels, .nlabels = 3), "08", "malformed");
	check(COL(UUID, STRING, 16, .collation = 63), "123e4567e89b12d3a4564266554400",
	      "'123e4567-e89b-12d3-a456-426655440000'");
	check(COL(INET4, STRING, 4, .collation = 63), "0a010203", "'10.1.2.3'");
	check(COL(INET4, STRING, 4, .collation = 63), "0a", "'10.0.0.0'");
	check(COL(INET6, STRING, 16, .collation = 63), "20010db8000000000000000000000001",
	      "'2001:db8::1'");
	check(COL(INET6, STRING, 16, .collation = 63), "", "'::'");
	check(COL(INET6, STRING, 16, .collation = 63), "00000000000000000000ffff01020304",
	      "'::ffff:1.2.3.4'");
	check(COL(INET6, STRING, 16, .collation = 63), "20010db80000000000010000",
	      "'2001:db8:0:0:1::'");
	check(COL(INET6, STRING, 16, .collation = 63), "000000000001", "'0:0:1::'");
	check(COL(UUID, STRING, 16, .collation = 63), "0000000000000000000000000000000000",
	      "malformed");
	check(COL(VECTOR, VARCHAR, 12, .collation = 63), "0000803f", "vector:0000803f");
	check(COL(VECTOR, VECTOR, 4), "0000803f", "vector:0000803f");
	check(COL(GEOMETRY, GEOMETRY, 4), "e6100000", "geometry:e6100000");
	check(COL(UNKNOWN, TYPED_ARRAY, 0), "00", "unsupported");
}

static void
test_states(void)
{
	CdcColumnDef column = COL(INT, LONG, 0);
	CdcField field = {.state = CDC_FIELD_NULL};
	CdcCell cell;
	CdcError err;

	is_int(binlog_field_to_cell(&column, &field, NULL, &cell, &err), CDC_OK, "NULL");
	is_int(cell.kind, CDC_CELL_NULL, "NULL gives a NULL cell");
	field.state = CDC_FIELD_PARTIAL;
	is_int(binlog_field_to_cell(&column, &field, NULL, &cell, &err), CDC_UNSUPPORTED,
	       "a difference is no value");
	field.state = CDC_FIELD_ABSENT;
	is_int(binlog_field_to_cell(&column, &field, NULL, &cell, &err), CDC_UNSUPPORTED,
	       "an absent field is no value");
}

static void
test_compressed(void)
{
	uint8_t plain[300];
	uint8_t packed[400];
	uLongf len = sizeof(packed) - 3;
	CdcArena arena;
	CdcError err;
	const uint8_t *out;
	uint32_t outlen;
	size_t size;

	memset(plain, 'x', sizeof(plain));
	compress(packed + 3, &len, plain, sizeof(plain));
	packed[0] = 0x82;
	packed[1] = 1;
	packed[2] = 44;
	cdc_arena_init(&arena, &cdc_malloc_allocator, 1 << 20);
	is_int(binlog_inflate_event(packed, len + 3, &arena, &out, &size, &err), CDC_OK, "event");
	ok(size == sizeof(plain) && memcmp(out, plain, size) == 0, "event's bytes");
	is_int(binlog_inflate_column(packed, (uint32_t) len + 3, &arena, &out, &outlen, &err), CDC_OK,
	       "column with zlib header");
	is_int(outlen, sizeof(plain), "column's length");
	packed[2] = 45;
	is_int(binlog_inflate_event(packed, len + 3, &arena, &out, &size, &err), CDC_MALFORMED,
	       "wrong size");
	packed[1] = 255;
	is_int(binlog_inflate_event(packed, len + 3, &arena, &out, &size, &err), CDC_MALFORMED,
	       "impossible size");
	packed[0] = 0x92;
	is_int(binlog_inflate_event(packed, len + 3, &arena, &out, &size, &err), CDC_UNSUPPORTED,
	       "unknown algorithm");
	is_int(binlog_inflate_event(packed, 2, &arena, &out, &size, &err), CDC_TRUNCATED,
	       "ends in its header");
	is_int(binlog_inflate_column((const uint8_t *) "\0ab", 3, &arena, &out, &outlen, &err), CDC_OK,
	       "stored plain");
	is_strn((const char *) out, outlen, "ab", "stored plain bytes");
	is_int(binlog_inflate_column(out, 0, &arena, &out, &outlen, &err), CDC_OK, "empty");
	cdc_arena_free(&arena);
	check(COL(VARCHAR, VARCHAR_COMPRESSED, 201, .collation = 8), "89954b4c1c8c000008", "malformed");
}

static void
check_json(const char *hex, int depth, const char *want)
{
	CdcBuf in;
	CdcBuf out;
	CdcError err;
	CdcStatus status;

	cdc_buf_init(&in, &cdc_malloc_allocator, 0);
	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	put_hex(&in, hex);
	cdc_buf_add(&in, "", 0);
	status = binlog_json_to_text((const uint8_t *) in.data, in.len, depth, &out, &err);
	if (status != CDC_OK)
	{
		cdc_buf_reset(&out);
		cdc_buf_add_str(&out, cdc_status_name(status));
	}
	is_str(out.data, want, want);
	cdc_buf_free(&in);
	cdc_buf_free(&out);
}

static void
test_json(void)
{
	CdcBuf bomb;
	CdcBuf out;
	CdcError err = {0};

	cdc_buf_init(&out, &cdc_malloc_allocator, 3);
	ok(binlog_json_to_text((const uint8_t *) "", 0, 10, &out, &err) == CDC_LIMIT &&
	       err.code == CDC_LIMIT,
	   "no room for an empty document: the error is filled");
	cdc_buf_free(&out);
	check_json("", 10, "null");
	check_json("0400", 10, "null");
	check_json("0401", 10, "true");
	check_json("0403", 10, "malformed");
	check_json("05feff", 10, "-2");
	check_json("0affffffffffffffff", 10, "18446744073709551615");
	check_json("0b000000000000f83f", 10, "1.5");
	check_json("0b0000000000000080", 10, "-0.0");
	check_json("0b0100000000000000", 10, "5e-324");
	check_json("0b000000000000303d", 10, "0.00000000000005684341886080802");
	check_json("0b9c75008871e44b46", 10, "4.419720441984673e30");
	check_json("0b000000000000f07f", 10, "malformed");
	check_json("0c03616222", 10, "\"ab\\\"\"");
	check_json("0c04011f7f0a", 10, "\"\\u0001\\u001f\x7f\\n\"");
	check_json("0c05616222", 10, "malformed");
	check_json("0200000400", 10, "[]");
	check_json("0000000400", 10, "{}");
	check_json("0ff60404028c32", 10, "12.50");
	check_json("0f0a080000000000ba99", 10, "malformed");
	check_json("0f0f0300ff41", 10, "\"base64:type15:AP9B\"");
	check_json("02020009000504000401", 10, "malformed");
	check_json("02 0100 0700 05 0400", 10, "[4]");
	check_json("02 0100 0b00 02 0700 0000 0400", 1, "limit");
	check_json("02 0100 0b00 02 0700 0000 0400", 2, "[[]]");
	check_json("02ffff0400", 10, "malformed");
	check_json("01ffffffffffffffff", 10, "malformed");
	check_json("10", 10, "malformed");

	/* Ten levels of arrays whose fifty elements are all the same next level. */
	cdc_buf_init(&bomb, &cdc_malloc_allocator, 0);
	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	put_hex(&bomb, "02");
	for (int level = 0; level < 10; level++)
	{
		size_t left = (size_t) (10 - level) * 154 + 4;

		put_int(&bomb, 50, 2);
		put_int(&bomb, left, 2);
		for (int i = 0; i < 50; i++)
		{
			put_int(&bomb, 2, 1);
			put_int(&bomb, 154, 2);
		}
	}
	put_int(&bomb, 0, 2);
	put_int(&bomb, 4, 2);
	is_int(binlog_json_to_text((const uint8_t *) bomb.data, bomb.len, 100, &out, &err),
	       CDC_MALFORMED, "a bomb is refused");
	ok(out.len < 8 * bomb.len + 65, "before it grows");
	cdc_buf_free(&bomb);
	cdc_buf_free(&out);
}

int
main(void)
{
	test_numbers();
	test_decimals();
	test_temporals();
	test_strings();
	test_states();
	test_compressed();
	test_json();
	return done_testing();
}
