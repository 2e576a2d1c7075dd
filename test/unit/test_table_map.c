/*-------------------------------------------------------------------------
 *
 * test_table_map.c
 *	  TABLE_MAP: optional fields, damaged ones, the cache.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "binlog/table_map.h"

#include "binlog/wire.h"
#include "event_build.h"
#include "tap.h"

static BinlogTableCache cache;

static CdcStatus
put(uint64_t id, const char *types, const char *meta, const char *optional, bool is_mariadb)
{
	CdcBuf body;
	uint8_t *copy;
	CdcStatus status;
	CdcError err;

	cdc_buf_init(&body, &cdc_malloc_allocator, 0);
	build_table_map_body(&body, id, types, meta, optional);
	copy = malloc(body.len);
	memcpy(copy, body.data, body.len);
	status = binlog_table_cache_put(&cache, copy, body.len, 6, is_mariadb, &err);
	free(copy);
	cdc_buf_free(&body);
	return status;
}

static const CdcColumnDef *
column(uint64_t id, int number)
{
	return &binlog_table_cache_get(&cache, id)->def.columns[number];
}

static void
test_types(void)
{
	is_int(put(1, "fefefefefef61010fc11f2", "fe0aee90cefcf701f808411e01020008020604", "", false),
	       CDC_OK, "types");
	ok(column(1, 0)->wire_type == WIRE_STRING && column(1, 0)->length == 10, "CHAR of 10 bytes");
	ok(column(1, 1)->wire_type == WIRE_STRING && column(1, 1)->length == 400, "CHAR of 400 bytes");
	is_int(column(1, 2)->length, 1020, "CHAR of 1020 bytes");
	ok(column(1, 3)->type == CDC_TYPE_ENUM && column(1, 3)->wire_meta == 1, "ENUM");
	ok(column(1, 4)->type == CDC_TYPE_SET && column(1, 4)->wire_meta == 8, "SET");
	ok(column(1, 5)->precision == 65 && column(1, 5)->scale == 30, "DECIMAL(65,30)");
	ok(column(1, 6)->length == 17 && column(1, 7)->length == 64, "BIT(17), BIT(64)");
	ok(column(1, 8)->type == CDC_TYPE_TEXT && column(1, 9)->type == CDC_TYPE_TIMESTAMP &&
	       column(1, 9)->scale == 6 && column(1, 10)->type == CDC_TYPE_VECTOR,
	   "TEXT, TIMESTAMP(6), VECTOR");
	is_int(put(1, "fefe", "fe0a", "", false), CDC_MALFORMED, "metadata that ends early");
	is_int(put(1, "10", "0708", "", false), CDC_MALFORMED, "BIT(71)");
	is_int(put(1, "f6", "0506", "", false), CDC_MALFORMED, "scale above precision");
	is_int(put(1, "11", "07", "", false), CDC_MALFORMED, "seven fraction digits");
	is_int(put(1, "fc", "05", "", false), CDC_MALFORMED, "length of five bytes");
	is_int(put(1, "fe", "f703", "", false), CDC_MALFORMED, "ENUM of three bytes");
	is_int(put(1, "fe", "0001", "", false), CDC_MALFORMED, "no string type");
}

static void
test_optional(void)
{
	/* geometry, varchar, blob: MySQL counts two character columns, MariaDB three. */
	is_int(put(2, "ff0ffc", "04140002", "0203 08 01 3f", false), CDC_OK,
	       "MySQL default character set with an exception");
	ok(column(2, 1)->collation == 8 && column(2, 2)->type == CDC_TYPE_BLOB &&
	       column(2, 0)->collation == 0,
	   "geometry is not counted");
	is_int(put(3, "ff0ffc", "04140002", "0203 08 02 3f", true), CDC_OK, "MariaDB");
	ok(column(3, 1)->collation == 8 && column(3, 2)->type == CDC_TYPE_BLOB &&
	       column(3, 0)->collation == 0,
	   "geometry is counted");
	is_int(put(3, "0f0f", "14001400", "0305 fc0009 fc1000", true), CDC_MALFORMED,
	       "field longer than the event");
	is_int(put(3, "0f0f", "14001400", "0306 fc0009 fcff00", true), CDC_OK,
	       "one character set each");
	ok(column(3, 0)->collation == 2304 && column(3, 1)->collation == 255, "two-byte collations");
	is_int(put(3, "0f0f", "14001400", "0301 08", true), CDC_MALFORMED, "one is missing");
	is_int(put(4, "0103100d09", "0100", "0101 50", false), CDC_OK, "signedness");
	ok(!column(4, 0)->is_unsigned && column(4, 1)->is_unsigned && !column(4, 2)->is_unsigned &&
	       !column(4, 3)->is_unsigned && column(4, 4)->is_unsigned,
	   "BIT is not counted, YEAR is");
	is_int(put(4, "010101010101010101", "", "0101 ff", false), CDC_MALFORMED,
	       "signedness too short");
	is_int(put(5, "030303", "", "0408 0269 64 0161 02c3a9 0802 02 00 0c01 a0", false), CDC_OK,
	       "names, key, visibility");
	is_str(column(5, 2)->name, "é", "name");
	is_int(put(5, "03", "", "0402 01e9", false), CDC_MALFORMED, "a name that is no UTF-8");
	is_int(put(5, "030303", "", "0408 0269 64 0161 02c3a9 0802 02 00 0c01 a0", false), CDC_OK,
	       "the former again");
	ok(column(5, 2)->key_part == 1 && column(5, 0)->key_part == 2 && column(5, 1)->key_part == 0,
	   "key order");
	ok(column(5, 0)->visible && !column(5, 1)->visible && column(5, 2)->visible, "visibility");
	is_int(put(5, "030303", "", "0801 03", false), CDC_MALFORMED, "key column that does not exist");
	is_int(put(5, "030303", "", "0802 01 01", false), CDC_MALFORMED, "key column named twice");
	is_int(put(5, "030f", "1400", "0904 0105 0000", false), CDC_OK, "key with prefixes");
	ok(column(5, 1)->key_prefix == 5 && column(5, 0)->key_prefix == 0 &&
	       column(5, 0)->key_part == 2,
	   "prefix");

	/* labels before their character set, set and enum mixed */
	is_int(put(6, "fefe", "f701f801", "0604 01 02 c3a9", false), CDC_OK, "SET without labels");
	ok((binlog_table_cache_get(&cache, 6)->def.known & CDC_KNOWS_LABELS) == 0,
	   "labels are not known");
	is_int(put(6, "fefe", "f701f801", "0604 01 02c3a9 0505 02 01e9 0178 0a03 08 00 21", false),
	       CDC_OK, "labels in their own character sets");
	is_strn(column(6, 0)->labels[0].data, column(6, 0)->labels[0].len, "é", "ENUM label in UTF-8");
	is_strn(column(6, 1)->labels[0].data, column(6, 1)->labels[0].len, "é", "SET label in latin1");
	is_int(put(6, "fe", "f701", "0605 01 0178 ffff", false), CDC_OK,
	       "bytes behind the labels are left");
	is_int(put(6, "fe", "f701", "0602 fa 00", false), CDC_MALFORMED, "more labels than bytes");
	is_int(put(7, "03", "", "6303 010203", false), CDC_OK, "an unknown field is skipped");
	is_int(put(7, "03", "", "63fc", false), CDC_MALFORMED, "half a field");
	is_int(put(8, "f2", "04", "0d03 fc0004", false), CDC_OK, "vector dimension");
	is_int(column(8, 0)->length, 1024, "dimension");
}

static void
test_cache(void)
{
	BinlogTable *table;
	uint64_t n = 0;

	binlog_table_cache_clear(&cache);
	is_int(cache.count + cache.bytes, 0, "clear");
	for (uint64_t id = 0; id < 6000; id++)
	{
		n += put(id, "030303", "", "", false) == CDC_OK;
		n += put(0, "030303", "", "", false) == CDC_OK;
	}
	is_int(n, 12000, "many tables");
	ok(cache.count <= 4096, "the number is bounded");
	ok(binlog_table_cache_get(&cache, 1) == NULL && binlog_table_cache_get(&cache, 5999) != NULL,
	   "the oldest went");
	table = binlog_table_cache_get(&cache, 0);
	ok(table != NULL, "one that was used all the time stayed");
	put(0, "030303", "", "", false);
	ok(binlog_table_cache_get(&cache, 0) == table, "the same content is the same definition");
	put(0, "030302", "", "", false);
	ok(cache.count <= 4096 && column(0, 2)->type == CDC_TYPE_SMALLINT,
	   "another content replaces it");
	binlog_table_cache_clear(&cache);
}

int
main(void)
{
	binlog_table_cache_init(&cache, &cdc_malloc_allocator, 1 << 20);
	test_types();
	test_optional();
	test_cache();
	return done_testing();
}
