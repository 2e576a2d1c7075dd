/*-------------------------------------------------------------------------
 *
 * test_format.c
 *	  Records in all formats; ISO times; JSON's pieces.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "format/format.h"

#include <math.h>

#include "format/iso_time.h"
#include "format/json_text.h"
#include "number_text.h"
#include "tap.h"

#define LEN(array) ((uint32_t) (sizeof(array) / sizeof((array)[0])))

static const CdcFormatOptions usual = {
	.server_name = "pg",
	.database = "db",
	.version = "0",
	.unavailable = CDC_FORMAT_UNAVAILABLE,
	.double_text = double_text,
	.float_text = float_text
};

static CdcCell
text_cell(const char *text)
{
	return (CdcCell) {.kind = CDC_CELL_TEXT,.len = (uint32_t) strlen(text),.v.data = text};
}

static CdcCell
int_cell(CdcCellKind kind, int64_t i)
{
	return (CdcCell) {.kind = kind,.v.i = i};
}

/* Which of a record's documents is written. */
static int part = 0;

/* The value (or key) of a record in a format, malloc'ed; "(status)" when it has none. */
static char *
write_record(const char *format_name, const CdcFormatOptions *options, const CdcRecord *record, bool key)
{
	CdcFormat format;
	CdcBuf out;
	CdcError err;
	CdcStatus status;
	char *text;

	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	cdc_format_init(&format, cdc_format_find(format_name), options, &cdc_malloc_allocator);
	status = key ? cdc_format_key(&format, record, part, &out, &err) : cdc_format_value(&format, record, part, &out, &err);
	if (status == CDC_OK)
		text = strdup(out.data);
	else
	{
		text = malloc(64);
		snprintf(text, 64, "(%s)", cdc_status_name(status));
	}
	cdc_format_free(&format);
	cdc_buf_free(&out);
	return text;
}

static void
is_record(const char *format_name, const CdcFormatOptions *options, const CdcRecord *record, const char *want, const char *name)
{
	char *got = write_record(format_name, options, record, false);

	is_str(got, want, name);
	free(got);
}

static void
is_key(const char *format_name, const CdcFormatOptions *options, const CdcRecord *record, const char *want, const char *name)
{
	char *got = write_record(format_name, options, record, true);

	is_str(got, want, name);
	free(got);
}

/* One value of a column in a format. */
static void
is_value_in(const char *format_name, CdcOutType type, CdcCell cell, const CdcFormatOptions *options, const char *want, const char *name)
{
	CdcFormat format;
	CdcOutColumn column = {.name = "a",.type = type};
	CdcBuf out;

	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	cdc_format_init(&format, cdc_format_find(format_name), options, &cdc_malloc_allocator);
	format_add_cell(&format, &column, &cell, &out);
	is_str(out.data, want, name);
	cdc_format_free(&format);
	cdc_buf_free(&out);
}

static void
is_value(CdcOutType type, CdcCell cell, const CdcFormatOptions *options, const char *want, const char *name)
{
	is_value_in("json", type, cell, options, want, name);
}

static void
is_date(int32_t days, const char *want)
{
	char text[ISO_TIME_MAX];

	is_int(iso_date(days, text), strlen(want), "length of a date");
	is_str(text, want, want);
}

static void
is_timestamp(int64_t micros, bool utc, const char *want)
{
	char text[ISO_TIME_MAX];

	is_int(iso_timestamp(micros, utc, text), strlen(want), "length of a timestamp");
	is_str(text, want, want);
}

static void
test_times(void)
{
	char text[ISO_TIME_MAX];

	is_date(0, "2000-01-01");
	is_date(-1, "1999-12-31");
	is_date(59, "2000-02-29");
	is_date(60, "2000-03-01");
	is_date(-36466, "1900-02-28");
	is_date(-36465, "1900-03-01");
	is_date(36583, "2100-02-28");
	is_date(36584, "2100-03-01");
	is_date(-730119, "0001-01-01");
	is_date(-730120, "0001-12-31 BC");
	is_date(-730485, "0001-01-01 BC");
	is_date(-2451545, "4714-11-24 BC");
	is_date(2921940, "10000-01-01");
	is_date(2145031948, "5874897-12-31");
	is_date(INT32_MAX, "infinity");
	is_date(INT32_MIN, "-infinity");
	is_timestamp(0, false, "2000-01-01T00:00:00");
	is_timestamp(-1, false, "1999-12-31T23:59:59.999999");
	is_timestamp(1500000, true, "2000-01-01T00:00:01.5Z");
	is_timestamp(INT64_MAX, true, "infinity");
	is_timestamp(INT64_MIN, true, "-infinity");
	is_timestamp(INT64_C(9223371331199999999), false, "294276-12-31T23:59:59.999999");
	is_timestamp(INT64_C(-211813488000000000), true, "4714-11-24T00:00:00Z BC");
	is_int(iso_time(INT64_C(86400000000), text), 8, "length of a time");
	is_str(text, "24:00:00", "P27: midnight at the end of a day");
	iso_time(INT64_C(43200000100), text);
	is_str(text, "12:00:00.0001", "a fraction without trailing zeros");
	iso_time(-1, text);
	is_str(text, "23:59:59.999999", "a time that is none has the form of one");
	iso_unix_time(0, text);
	is_str(text, "1970-01-01T00:00:00Z", "the beginning of Unix");
	iso_unix_time(INT64_C(1709208000000000), text);
	is_str(text, "2024-02-29T12:00:00Z", "a leap day");
}

/* Every day of some 4,000 years follows the one before. */
static void
test_calendar(void)
{
	static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int year = 1;
	int month = 1;
	int day = 1;
	int wrong = 0;

	for (int32_t days = -730119; days < 800000; days++)
	{
		char got[ISO_TIME_MAX];
		char want[ISO_TIME_MAX];
		bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

		iso_date(days, got);
		snprintf(want, sizeof(want), "%04d-%02d-%02d", year, month, day);
		wrong += strcmp(got, want) != 0;
		if (++day > lengths[month - 1] + (month == 2 && leap))
		{
			day = 1;
			if (++month > 12)
			{
				month = 1;
				year++;
			}
		}
	}
	is_int(wrong, 0, "every day follows the one before");
}

static void
test_json_text(void)
{
	CdcBuf out;
	char bytes[4000];

	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	json_add_string(&out, "a\"b\\c\n\r\t\b\f\x01\x1f/\x7f\xc3\xa4", 16);
	is_str(out.data, "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u001f/\x7f\xc3\xa4\"", "escapes");
	cdc_buf_reset(&out);
	json_add_int(&out, INT64_MIN);
	json_add_uint(&out, UINT64_MAX);
	is_str(out.data, "-922337203685477580818446744073709551615", "the ends of integers");
	cdc_buf_reset(&out);
	json_add_dotted(&out, "a\"", ".b");
	is_str(out.data, "\"a\\\"..b\"", "two names");
	cdc_buf_reset(&out);
	json_add_base64(&out, "", 0);
	json_add_base64(&out, "f", 1);
	json_add_base64(&out, "fo", 2);
	json_add_base64(&out, "foo", 3);
	json_add_base64(&out, "\xff\xfe\xfd\xfc", 4);
	is_str(out.data, "\"\"\"Zg==\"\"Zm8=\"\"Zm9v\"\"//79/A==\"", "base64, the examples of RFC 4648");
	cdc_buf_reset(&out);
	json_add_hex(&out, "\x00\xab\xff", 3);
	is_str(out.data, "\"00abff\"", "hexadecimal digits");
	cdc_buf_reset(&out);
	memset(bytes, 'A', sizeof(bytes));
	json_add_base64(&out, bytes, sizeof(bytes));
	is_int(out.len, 2 + (4000 + 2) / 3 * 4, "base64 in several pieces");
	ok(strncmp(out.data + 1, "QUFBQUFB", 8) == 0 && strcmp(out.data + out.len - 9, "QUFBQQ==\"") == 0,
	   "... that fit together");
	cdc_buf_reset(&out);
	json_add_document(&out, "{\n\t\"a\\n\":\r1}", 12);
	is_str(out.data, "{  \"a\\n\": 1}", "a document on one line");
	cdc_buf_free(&out);
}

static void
test_values(void)
{
	CdcFormatOptions other = usual;
	CdcCell inner[] = {int_cell(CDC_CELL_INT, 1), {.kind = CDC_CELL_NULL}};
	CdcCellList dimension = {2, inner};
	CdcCell outer[] = {{.kind = CDC_CELL_LIST,.v.list = &dimension}, {.kind = CDC_CELL_LIST,.v.list = &dimension}};
	CdcCellList list = {2, outer};
	CdcCellList none = {0, NULL};

	other.numeric_as_number = true;
	other.bytes_as_hex = true;
	other.json_embedded = true;
	is_value(CDC_OUT_INT8, int_cell(CDC_CELL_INT, INT64_C(9007199254740993)), &usual, "9007199254740993", "an integer keeps its digits");
	is_value(CDC_OUT_OID, (CdcCell) {.kind = CDC_CELL_UINT,.v.u = 4294967295}, &usual, "4294967295", "an oid");
	is_value(CDC_OUT_BOOL, int_cell(CDC_CELL_BOOL, 1), &usual, "true", "true");
	is_value(CDC_OUT_BOOL, int_cell(CDC_CELL_BOOL, 0), &usual, "false", "false");
	is_value(CDC_OUT_TEXT, (CdcCell) {.kind = CDC_CELL_NULL}, &usual, "null", "null");
	is_value(CDC_OUT_FLOAT8, (CdcCell) {.kind = CDC_CELL_DOUBLE,.v.f8 = 0.5}, &usual, "0.5", "a double");
	is_value(CDC_OUT_FLOAT8, (CdcCell) {.kind = CDC_CELL_DOUBLE,.v.f8 = (double) NAN}, &usual, "\"NaN\"", "P24: NaN");
	is_value(CDC_OUT_FLOAT8, (CdcCell) {.kind = CDC_CELL_DOUBLE,.v.f8 = -(double) INFINITY}, &usual, "\"-Infinity\"", "P24: -Infinity");
	is_value(CDC_OUT_FLOAT4, (CdcCell) {.kind = CDC_CELL_FLOAT,.v.f4 = 1.5f}, &usual, "1.5", "a float");
	is_value(CDC_OUT_FLOAT4, (CdcCell) {.kind = CDC_CELL_FLOAT,.v.f4 = INFINITY}, &usual, "\"Infinity\"", "P24: Infinity of a float");
	is_value(CDC_OUT_NUMERIC, text_cell("-12.500"), &usual, "\"-12.500\"", "a numeric as text");
	is_value(CDC_OUT_NUMERIC, text_cell("-12.500"), &other, "-12.500", "a numeric as a number, with its zeros");
	is_value(CDC_OUT_NUMERIC, text_cell("NaN"), &other, "\"NaN\"", "P24: a numeric that is no number");
	is_value(CDC_OUT_NUMERIC, text_cell("-Infinity"), &other, "\"-Infinity\"", "P24: an infinite numeric");
	is_value(CDC_OUT_TEXT, text_cell("12"), &other, "\"12\"", "a text stays one");
	is_value(CDC_OUT_JSON, text_cell("{\"a\": 1}"), &usual, "\"{\\\"a\\\": 1}\"", "JSON as a string");
	is_value(CDC_OUT_JSON, text_cell("{\"a\": 1e400}"), &other, "{\"a\": 1e400}", "JSON as part of the document");
	is_value(CDC_OUT_BYTES, (CdcCell) {.kind = CDC_CELL_BYTES,.len = 2,.v.data = "\x01\xff"}, &usual, "\"Af8=\"", "bytes as base64");
	is_value(CDC_OUT_BYTES, (CdcCell) {.kind = CDC_CELL_BYTES,.len = 2,.v.data = "\x01\xff"}, &other, "\"01ff\"", "bytes as digits");
	is_value(CDC_OUT_DATE, int_cell(CDC_CELL_DAYS, 59), &usual, "\"2000-02-29\"", "a date");
	is_value(CDC_OUT_TIME, int_cell(CDC_CELL_MICROS, 1), &usual, "\"00:00:00.000001\"", "a time");
	is_value(CDC_OUT_TIMESTAMP, int_cell(CDC_CELL_MICROS, 1), &usual, "\"2000-01-01T00:00:00.000001\"", "a timestamp");
	is_value(CDC_OUT_TIMESTAMPTZ, int_cell(CDC_CELL_MICROS, 1), &usual, "\"2000-01-01T00:00:00.000001Z\"", "a timestamp in UTC");
	is_value(CDC_OUT_INT4, (CdcCell) {.kind = CDC_CELL_LIST,.v.list = &list}, &usual, "[[1,null],[1,null]]", "an array of two dimensions");
	is_value(CDC_OUT_INT4, (CdcCell) {.kind = CDC_CELL_LIST,.v.list = &none}, &usual, "[]", "an empty array");
	is_value(CDC_OUT_BYTES, (CdcCell) {.kind = CDC_CELL_UNCHANGED}, &other,
	         "\"5f5f646562657a69756d5f756e617661696c61626c655f76616c7565\"", "P2: an untouched value of bytes has the form of bytes");
}

static const uint32_t key_columns[] = {1, 0};
static const CdcOutColumn columns[] = {
	{.name = "b",.type = CDC_OUT_TEXT,.type_text = "text",.key_part = 2},
	{.name = "a",.type = CDC_OUT_INT4,.type_text = "integer",.key_part = 1},
	{.name = "doc",.type = CDC_OUT_JSON,.type_text = "jsonb",.nullable = true},
	{.name = "tags",.type = CDC_OUT_TEXT,.is_list = true,.type_text = "text[]",.nullable = true},
};
static const CdcOutTable table = {
	.schema = "shop",.name = "t\"x",.relid = 1,.version = 7,.ncolumns = LEN(columns),.columns = columns,.nkey = 2,.key = key_columns,.identity = 'd'
};

static CdcOutTxn txn = {.xid = 740,.commit_lsn = UINT64_C(0x116B3748),.end_lsn = UINT64_C(0x116B3800),.time_us = INT64_C(1709208000000000)};

#define SOURCE(schema, table, rest)                                                                                     \
	"\"source\":{\"version\":\"0\",\"connector\":\"postgresql\",\"name\":\"pg\",\"db\":\"db\",\"snapshot\":\"false\","       \
	"\"sequence\":\"[\\\"292239176\\\",\\\"292239000\\\"]\",\"ts_ms\":1709208000000,\"ts_us\":1709208000000000,"                \
	"\"ts_ns\":1709208000000000000,\"schema\":\"" schema "\",\"table\":\"" table                                          \
	"\",\"txId\":740,\"lsn\":292239000,\"xmin\":null," rest "}"

static void
test_changes(void)
{
	CdcCell after[] = {text_cell("x"), int_cell(CDC_CELL_INT, 5), {.kind = CDC_CELL_UNCHANGED}, {.kind = CDC_CELL_UNCHANGED}};
	CdcCell before[] = {text_cell("w"), int_cell(CDC_CELL_INT, 5), {.kind = CDC_CELL_ABSENT}, {.kind = CDC_CELL_ABSENT}};
	CdcCell lost[] = {{.kind = CDC_CELL_UNCHANGED}, int_cell(CDC_CELL_INT, 6), {.kind = CDC_CELL_NULL}, {.kind = CDC_CELL_NULL}};
	CdcRecord record = {
		.kind = CDC_RECORD_CHANGE,.txn = &txn,.lsn = 292239000,.now_us = INT64_C(1709208001000000),.xid = 740,.order = 3,.table_order = 2,
		.table = &table,.op = CDC_OUT_UPDATE,.before = before,.after = after
	};
	CdcFormatOptions with = usual;
	CdcOutTable keyless = table;

	with.transaction = true;
	with.types = true;
	is_record("debezium-json", &usual, &record,
	          "{\"before\":{\"b\":\"w\",\"a\":5},\"after\":{\"b\":\"x\",\"a\":5,\"doc\":\"__debezium_unavailable_value\","
	          "\"tags\":[\"__debezium_unavailable_value\"]}," SOURCE("shop", "t\\\"x", "\"seq\":3") ",\"op\":\"u\",\"ts_ms\":1709208001000,\"ts_us\":1709208001000000,\"ts_ns\":1709208001000000000,"
	          "\"transaction\":null}", "P1, P2: an update in Debezium's envelope");
	is_record("json", &usual, &record,
	          "{\"op\":\"update\",\"schema\":\"shop\",\"table\":\"t\\\"x\",\"lsn\":\"0/116B3698\",\"commit_lsn\":\"0/116B3748\",\"xid\":740,\"time\":\"2024-02-29T12:00:00Z\","
	          "\"seq\":3,\"key\":{\"a\":5,\"b\":\"x\"},\"row\":{\"b\":\"x\",\"a\":5},\"old\":{\"b\":\"w\",\"a\":5},\"unchanged\":[\"doc\",\"tags\"]}",
	          "P1: the same as plain JSON");
	is_key("json", &usual, &record, "{\"a\":5,\"b\":\"x\"}", "its key, in the key's order");
	is_key("debezium-json", &usual, &record, "{\"a\":5,\"b\":\"x\"}", "the same in Debezium's form");
	record.after = lost;
	is_key("json", &usual, &record, "{\"a\":5,\"b\":\"w\"}", "a key that was not touched comes from the old row");
	record.before = NULL;
	is_key("json", &usual, &record, "(end)", "... and nobody makes one up");
	record.op = CDC_OUT_DELETE;
	record.before = before;
	record.after = NULL;
	is_record("debezium-json", &with, &record,
	          "{\"before\":{\"b\":\"w\",\"a\":5},\"after\":null," SOURCE("shop", "t\\\"x", "\"seq\":3") ",\"op\":\"d\",\"ts_ms\":1709208001000,\"ts_us\":1709208001000000,\"ts_ns\":1709208001000000000,"
	          "\"transaction\":{\"id\":\"740:292239176\",\"total_order\":3,\"data_collection_order\":2}}", "a delete, with its place in the transaction");
	is_key("json", &usual, &record, "{\"a\":5,\"b\":\"w\"}", "the key of what was deleted");
	keyless.nkey = 0;
	record.table = &keyless;
	is_key("json", &usual, &record, "(end)", "no key");
	record.before = NULL;
	is_record("json", &with, &record,
	          "{\"op\":\"delete\",\"schema\":\"shop\",\"table\":\"t\\\"x\",\"lsn\":\"0/116B3698\",\"commit_lsn\":\"0/116B3748\",\"xid\":740,\"time\":\"2024-02-29T12:00:00Z\",\"seq\":3,"
	          "\"types\":{\"b\":\"text\",\"a\":\"integer\",\"doc\":\"jsonb\",\"tags\":\"text[]\"}}", "types of the columns");
	is_record("json", &usual, &record,
	          "{\"op\":\"delete\",\"schema\":\"shop\",\"table\":\"t\\\"x\",\"lsn\":\"0/116B3698\",\"commit_lsn\":\"0/116B3748\",\"xid\":740,\"time\":\"2024-02-29T12:00:00Z\",\"seq\":3}",
	          "P4: a delete of which the log has no row");
	record.kind = CDC_RECORD_TRUNCATE;
	record.cascade = true;
	record.root_schema = "shop";
	record.root_name = "root";
	is_record("json", &usual, &record,
	          "{\"op\":\"truncate\",\"schema\":\"shop\",\"table\":\"t\\\"x\",\"lsn\":\"0/116B3698\",\"commit_lsn\":\"0/116B3748\",\"xid\":740,\"time\":\"2024-02-29T12:00:00Z\",\"seq\":3,"
	          "\"cascade\":true,\"restart_identity\":false,\"partition_of\":{\"schema\":\"shop\",\"table\":\"root\"}}", "P23: TRUNCATE");
	is_record("debezium-json", &usual, &record,
	          "{\"before\":null,\"after\":null," SOURCE("shop", "t\\\"x", "\"seq\":3") ",\"op\":\"t\",\"ts_ms\":1709208001000,\"ts_us\":1709208001000000,\"ts_ns\":1709208001000000000,\"transaction\":null,"
	          "\"cascade\":true,\"restart_identity\":false,\"partition_of\":{\"schema\":\"shop\",\"table\":\"root\"}}", "P23: the same in Debezium's envelope");
	is_key("json", &usual, &record, "(end)", "TRUNCATE has no key");

	/* of an initial copy, in no transaction */
	record = (CdcRecord) {.kind = CDC_RECORD_CHANGE,.op = CDC_OUT_READ,.of_copy = true,.lsn = 292239000,.now_us = INT64_C(1709208001000000),.table = &table,.after = before};
	is_record("json", &usual, &record,
	          "{\"op\":\"read\",\"schema\":\"shop\",\"table\":\"t\\\"x\",\"lsn\":\"0/116B3698\",\"key\":{\"a\":5,\"b\":\"w\"},\"row\":{\"b\":\"w\",\"a\":5}}", "a row that is copied");
	is_record("debezium-json", &usual, &record,
	          "{\"before\":null,\"after\":{\"b\":\"w\",\"a\":5},\"source\":{\"version\":\"0\",\"connector\":\"postgresql\",\"name\":\"pg\",\"db\":\"db\",\"snapshot\":\"true\","
	          "\"sequence\":\"[\\\"0\\\",\\\"292239000\\\"]\",\"ts_ms\":1709208001000,\"ts_us\":1709208001000000,\"ts_ns\":1709208001000000000,\"schema\":\"shop\",\"table\":\"t\\\"x\",\"txId\":null,\"lsn\":292239000,\"xmin\":null,\"seq\":0},"
	          "\"op\":\"r\",\"ts_ms\":1709208001000,\"ts_us\":1709208001000000,\"ts_ns\":1709208001000000000,\"transaction\":null}", "the same in Debezium's envelope");
	is_key("json", &usual, &record, "{\"a\":5,\"b\":\"w\"}", "its key");
	record.kind = CDC_RECORD_TRUNCATE;
	record.after = NULL;
	is_record("json", &usual, &record,
	          "{\"op\":\"truncate\",\"schema\":\"shop\",\"table\":\"t\\\"x\",\"lsn\":\"0/116B3698\",\"of_copy\":true,\"cascade\":false,\"restart_identity\":false}", "a copy that begins anew");
}

#define PLAIN_HEAD                                                                                                                          \
	"{\"op\":\"schema\",\"schema\":\"shop\",\"table\":\"t\",\"lsn\":\"0/116B3698\",\"commit_lsn\":\"0/116B3748\",\"xid\":740,"               \
	"\"time\":\"2024-02-29T12:00:00Z\",\"seq\":3,"

#define COLUMN(name, jdbc, type, expression, length, scale, position, optional, counts, generated, has_default, expr)                        \
	"{\"name\":\"" name "\",\"jdbcType\":" jdbc ",\"nativeType\":null,\"typeName\":\"" type "\",\"typeExpression\":\"" expression             \
	"\",\"charsetName\":null,\"length\":" length ",\"scale\":" scale ",\"position\":" position ",\"optional\":" optional                      \
	",\"autoIncremented\":" counts ",\"generated\":" generated ",\"comment\":null,\"hasDefaultValue\":" has_default                           \
	",\"defaultValueExpression\":" expr ",\"enumValues\":null"

static void
test_schema_changes(void)
{
	static const char *const labels[] = {"low", "h\"igh"};
	static const uint32_t key[] = {0};
	static const CdcOutColumn own[] = {
		{.name = "id",.type = CDC_OUT_INT8,.type_text = "bigint",.key_part = 1,.precision = -1,.scale = -1},
		{.name = "n",.type = CDC_OUT_NUMERIC,.type_text = "numeric(10,2)",.nullable = true,.precision = 10,.scale = 2},
		{.name = "m",.type = CDC_OUT_ENUM,.type_text = "shop.mood",.nullable = true,.precision = -1,.scale = -1},
		{.name = "ts",.type = CDC_OUT_TIMESTAMP,.is_list = true,.type_text = "timestamp(3) without time zone[]",.nullable = true,.precision = -1,.scale = -1},
	};
	CdcOutColumnInfo infos[] = {
		{.identity = 'a',.existing.kind = CDC_CELL_ABSENT},
		{.default_text = "1.5",.existing = text_cell("1.50")},
		{.nlabels = 2,.labels = labels,.existing.kind = CDC_CELL_ABSENT},
		{.is_generated = true,.existing.kind = CDC_CELL_ABSENT},
	};
	CdcOutTable def = {.schema = "shop",.name = "t",.relid = 1,.version = 8,.ncolumns = LEN(own),.columns = own,.nkey = 1,.key = key,.identity = 'f'};
	CdcOutSchemaChange change = {
		.op = CDC_OUT_ALTER,.command = "ALTER TABLE",.columns = infos,.old_schema = "shop",.old_name = "o\"ld",.old_column = "x",.new_column = "n",.rewritten = true
	};
	CdcRecord record = {
		.kind = CDC_RECORD_SCHEMA,.txn = &txn,.lsn = 292239000,.now_us = INT64_C(1709208001000000),.xid = 740,.order = 3,.table = &def,.schema_change = &change
	};

	is_record("json", &usual, &record,
	          PLAIN_HEAD "\"change\":\"alter\",\"command\":\"ALTER TABLE\",\"previous\":{\"schema\":\"shop\",\"table\":\"o\\\"ld\"},\"renamed_column\":{\"from\":\"x\",\"to\":\"n\"},"
	          "\"rewritten\":true,\"identity\":\"full\",\"key\":[\"id\"],\"columns\":[{\"name\":\"id\",\"type\":\"bigint\",\"nullable\":false,\"as_identity\":\"always\"},"
	          "{\"name\":\"n\",\"type\":\"numeric(10,2)\",\"nullable\":true,\"default\":\"1.5\",\"existing\":\"1.50\"},"
	          "{\"name\":\"m\",\"type\":\"shop.mood\",\"nullable\":true,\"labels\":[\"low\",\"h\\\"igh\"]},"
	          "{\"name\":\"ts\",\"type\":\"timestamp(3) without time zone[]\",\"nullable\":true,\"generated\":true}]}", "P18, P19, P21: ALTER TABLE as plain JSON");
	is_record("debezium-json", &usual, &record,
	          "{" SOURCE("shop", "t", "\"seq\":3") ",\"ts_ms\":1709208001000,\"databaseName\":\"db\",\"schemaName\":\"shop\",\"ddl\":null,\"command\":\"ALTER TABLE\","
	          "\"tableChanges\":[{\"type\":\"ALTER\",\"id\":\"\\\"db\\\".\\\"shop\\\".\\\"t\\\"\",\"previousId\":\"\\\"db\\\".\\\"shop\\\".\\\"o\\\"\\\"ld\\\"\","
	          "\"renamedColumn\":{\"from\":\"x\",\"to\":\"n\"},\"rewritten\":true,\"table\":{\"defaultCharsetName\":null,\"primaryKeyColumnNames\":[\"id\"],\"columns\":["
	          COLUMN("id", "-5", "bigint", "bigint", "null", "null", "1", "false", "true", "false", "false", "null") "},"
	          COLUMN("n", "2", "numeric", "numeric(10,2)", "10", "2", "2", "true", "false", "false", "true", "\"1.5\"") ",\"existing\":\"1.50\"},"
	          "{\"name\":\"m\",\"jdbcType\":1111,\"nativeType\":null,\"typeName\":\"shop.mood\",\"typeExpression\":\"shop.mood\",\"charsetName\":null,\"length\":null,\"scale\":null,\"position\":3,"
	          "\"optional\":true,\"autoIncremented\":false,\"generated\":false,\"comment\":null,\"hasDefaultValue\":false,\"defaultValueExpression\":null,\"enumValues\":[\"low\",\"h\\\"igh\"]},"
	          COLUMN("ts", "2003", "timestamp without time zone[]", "timestamp(3) without time zone[]", "null", "null", "4", "true", "false", "true", "false", "null") "}"
	          "],\"comment\":null,\"replicaIdentity\":\"full\"}}],\"transaction\":null}", "the same in Debezium's form");
	change = (CdcOutSchemaChange) {.op = CDC_OUT_DROP,.command = "ALTER TABLE",.new_schema = "x",.new_name = "y"};
	def.ncolumns = def.nkey = 0;
	is_record("json", &usual, &record, PLAIN_HEAD "\"change\":\"drop\",\"command\":\"ALTER TABLE\",\"renamed_to\":{\"schema\":\"x\",\"table\":\"y\"}}", "a table that leaves");
	is_key("json", &usual, &record, "(end)", "it has no key");
}

static void
test_marks(void)
{
	CdcOutCount counts[] = {{"shop", "a", 2}, {"shop", "b\"", 1}};
	CdcOutTxn many = txn;
	CdcRecord record = {.kind = CDC_RECORD_BEGIN,.txn = &txn,.lsn = txn.commit_lsn,.now_us = 1};
	CdcRecord message = {
		.kind = CDC_RECORD_MESSAGE,.txn = &txn,.lsn = 292239000,.now_us = 5000,.xid = 740,.order = 1,.transactional = true,.prefix = "p",.content = "a\n",.content_len = 2
	};

	is_record("debezium-json", &usual, &record,
	          "{\"status\":\"BEGIN\",\"id\":\"740:292239176\",\"ts_ms\":1709208000000,\"event_count\":null,\"data_collections\":null}", "BEGIN");
	is_record("json", &usual, &record, "{\"op\":\"begin\",\"lsn\":\"0/116B3748\",\"xid\":740,\"time\":\"2024-02-29T12:00:00Z\"}", "begin");
	many.nchanges = 3;
	many.ncounts = LEN(counts);
	many.counts = counts;
	many.origin = "elsewhere";
	record.txn = &many;
	record.kind = CDC_RECORD_COMMIT;
	is_record("debezium-json", &usual, &record,
	          "{\"status\":\"END\",\"id\":\"740:292239176\",\"ts_ms\":1709208000000,\"event_count\":3,\"data_collections\":["
	          "{\"data_collection\":\"shop.a\",\"event_count\":2},{\"data_collection\":\"shop.b\\\"\",\"event_count\":1}]}", "END");
	is_record("json", &usual, &record,
	          "{\"op\":\"commit\",\"lsn\":\"0/116B3748\",\"xid\":740,\"time\":\"2024-02-29T12:00:00Z\",\"origin\":\"elsewhere\",\"changes\":3,"
	          "\"tables\":[{\"schema\":\"shop\",\"table\":\"a\",\"changes\":2},{\"schema\":\"shop\",\"table\":\"b\\\"\",\"changes\":1}]}", "commit");
	is_key("debezium-json", &usual, &record, "{\"id\":\"740:292239176\"}", "the key of a mark");
	many.gid = "g'1";
	record.kind = CDC_RECORD_COMMIT_PREPARED;
	is_record("debezium-json", &usual, &record,
	          "{\"status\":\"COMMIT_PREPARED\",\"id\":\"740\",\"ts_ms\":1709208000000,\"event_count\":null,\"data_collections\":null,\"gid\":\"g'1\"}",
	          "a prepared transaction has one name in all its records");
	many = (CdcOutTxn) {.xid = 740,.is_streamed = true};
	record.kind = CDC_RECORD_STREAM_ABORT;
	record.xid = 742;
	record.lsn = 16;
	is_record("json", &usual, &record, "{\"op\":\"stream_abort\",\"lsn\":\"0/10\",\"xid\":740,\"subxid\":742}", "a subtransaction of a stream is taken back");
	is_record("debezium-json", &usual, &record,
	          "{\"status\":\"STREAM_ABORT\",\"id\":\"740\",\"ts_ms\":0,\"event_count\":null,\"data_collections\":null,\"xid\":742}", "... in Debezium's form");

	is_record("json", &usual, &message,
	          "{\"op\":\"message\",\"lsn\":\"0/116B3698\",\"commit_lsn\":\"0/116B3748\",\"xid\":740,\"time\":\"2024-02-29T12:00:00Z\",\"seq\":1,\"transactional\":true,\"prefix\":\"p\",\"content\":\"a\\n\"}",
	          "a message");
	is_record("debezium-json", &usual, &message,
	          "{\"op\":\"m\",\"ts_ms\":5,\"ts_us\":5000,\"ts_ns\":5000000," SOURCE("", "", "\"seq\":1") ",\"transaction\":null,\"message\":{\"prefix\":\"p\",\"content\":\"YQo=\"}}",
	          "a message in Debezium's form");
	is_key("debezium-json", &usual, &message, "{\"prefix\":\"p\"}", "its key is its prefix");
	is_key("json", &usual, &message, "(end)", "... in plain JSON it has none");
	message.txn = NULL;
	message.transactional = false;
	message.order = 0;
	message.content = "\xff";
	message.content_len = 1;
	is_record("json", &usual, &message, "{\"op\":\"message\",\"lsn\":\"0/116B3698\",\"transactional\":false,\"prefix\":\"p\",\"content_base64\":\"/w==\"}",
	          "a message outside transactions, that is no text");
}

static void
test_schemas(void)
{
	CdcCell after[] = {text_cell("x"), int_cell(CDC_CELL_INT, 5), text_cell("{}"), {.kind = CDC_CELL_NULL}};
	CdcRecord record = {
		.kind = CDC_RECORD_CHANGE,.txn = &txn,.lsn = 292239000,.now_us = 5000,.xid = 740,.order = 1,.table = &table,.op = CDC_OUT_INSERT,.after = after
	};
	CdcFormatOptions with = usual;
	char *got;

	with.schemas = true;
	is_key("debezium-json", &with, &record,
	       "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"int32\",\"optional\":false,\"field\":\"a\"},{\"type\":\"string\",\"optional\":false,\"field\":\"b\"}],"
	       "\"optional\":false,\"name\":\"pg.shop.t_x.Key\"},\"payload\":{\"a\":5,\"b\":\"x\"}}", "a key with its schema");
	got = write_record("debezium-json", &with, &record, false);
	ok(strstr(got, "{\"type\":\"string\",\"optional\":true,\"name\":\"io.debezium.data.Json\",\"version\":1,\"field\":\"doc\"}") != NULL, "a JSON column in the schema");
	ok(strstr(got, "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"optional\":true},\"optional\":true,\"field\":\"tags\"}") != NULL, "an array in the schema");
	ok(strstr(got, "\"name\":\"pg.shop.t_x.Envelope\",\"version\":1},\"payload\":{\"before\":null,\"after\":{\"b\":\"x\",\"a\":5,\"doc\":\"{}\",\"tags\":null}") != NULL,
	   "the payload after its schema");
	free(got);
}

/* An update of which the old row is known, wholly or by its key, in the formats of others. */
static void
test_other_formats(void)
{
	CdcCell after[] = {text_cell("x"), int_cell(CDC_CELL_INT, 5), {.kind = CDC_CELL_UNCHANGED}, {.kind = CDC_CELL_NULL}};
	CdcCell whole[] = {text_cell("x"), int_cell(CDC_CELL_INT, 4), text_cell("{}"), {.kind = CDC_CELL_NULL}};
	CdcCell by_key[] = {text_cell("x"), int_cell(CDC_CELL_INT, 4), {.kind = CDC_CELL_ABSENT}, {.kind = CDC_CELL_ABSENT}};
	CdcRecord record = {
		.kind = CDC_RECORD_CHANGE,.txn = &txn,.lsn = 292239000,.now_us = INT64_C(1709208001000000),.xid = 740,.order = 3,.table_order = 2,
		.table = &table,.op = CDC_OUT_UPDATE,.before = whole,.after = after
	};
	CdcFormatOptions other = usual;
	const char *unknown;
	size_t len;

#define PLACE "\"_cdc_bridge\":{\"db\":\"db\",\"lsn\":\"0/116B3698\",\"commit_lsn\":\"0/116B3748\",\"xid\":740,\"seq\":3"
#define NAMED "\"_cdc_bridge\":{\"db\":\"db\",\"schema\":\"shop\",\"table\":\"t\\\"x\",\"lsn\":\"0/116B3698\",\"commit_lsn\":\"0/116B3748\",\"xid\":740,\"seq\":3"
#define CANAL_TABLE "\"database\":\"shop\",\"table\":\"t\\\"x\",\"es\":1709208000000,\"ts\":1709208001000,\"id\":292239000,"
#define CANAL_TYPES                                                                                                     \
	"\"mysqlType\":{\"b\":\"text\",\"a\":\"integer\",\"doc\":\"jsonb\",\"tags\":\"text[]\"},"                           \
	"\"sqlType\":{\"b\":12,\"a\":4,\"doc\":1111,\"tags\":2003},\"pkNames\":[\"a\",\"b\"],"

	is_record("canal-json", &usual, &record,
	          "{\"data\":[{\"b\":\"x\",\"a\":\"5\",\"tags\":null}],\"old\":[{\"a\":\"4\",\"doc\":\"{}\"}]," CANAL_TABLE
	          "\"isDdl\":false,\"sql\":\"\",\"type\":\"UPDATE\"," CANAL_TYPES PLACE ",\"unchanged\":[\"doc\"]}}",
	          "P1: Canal JSON: values are strings, old has what changed, and nobody takes what is not known for NULL");
	is_key("canal-json", &usual, &record, "{\"a\":\"5\",\"b\":\"x\"}", "its key");
	is_record("maxwell-json", &usual, &record,
	          "{\"database\":\"shop\",\"table\":\"t\\\"x\",\"type\":\"update\",\"ts\":1709208000,\"xid\":740,\"xoffset\":2,\"position\":\"0/116B3698\","
	          "\"data\":{\"b\":\"x\",\"a\":5,\"tags\":null},\"old\":{\"a\":4,\"doc\":\"{}\"}," PLACE ",\"unchanged\":[\"doc\"]}}", "P1: the same as Maxwell JSON");
	is_key("maxwell-json", &usual, &record, "{\"database\":\"shop\",\"table\":\"t\\\"x\",\"pk.a\":5,\"pk.b\":\"x\"}", "its key");
	is_record("changelog-json", &usual, &record, "{\"data\":{\"b\":\"x\",\"a\":4,\"doc\":\"{}\",\"tags\":null},\"op\":\"-U\"," NAMED "}}", "changelog-json: first the old row");
	is_key("changelog-json", &usual, &record, "{\"a\":4,\"b\":\"x\"}", "... under its own key");
	part = 1;
	is_record("changelog-json", &usual, &record, "{\"data\":{\"b\":\"x\",\"a\":5,\"tags\":null},\"op\":\"+U\"," NAMED ",\"unchanged\":[\"doc\"]}}", "... then the new one");
	is_key("changelog-json", &usual, &record, "{\"a\":5,\"b\":\"x\"}", "... under its own");
	record.before = by_key;
	is_record("changelog-json", &usual, &record, "{\"data\":{\"b\":\"x\",\"a\":5,\"tags\":null},\"op\":\"+I\"," NAMED ",\"unchanged\":[\"doc\"]}}", "a key that changed: a new row");
	part = 0;
	is_record("changelog-json", &usual, &record, "{\"data\":{\"b\":\"x\",\"a\":4},\"op\":\"-D\"," NAMED "}}", "... after the old one is gone");
	record.before = NULL;
	is_record("changelog-json", &usual, &record, "{\"data\":{\"b\":\"x\",\"a\":5,\"tags\":null},\"op\":\"+U\"," NAMED ",\"unchanged\":[\"doc\"]}}", "no old row: the new one alone");
	is_record("debezium-unwrapped-json", &usual, &record,
	          "{\"b\":\"x\",\"a\":5,\"doc\":\"__debezium_unavailable_value\",\"tags\":null,\"__deleted\":\"false\"}", "the row alone");
	record.op = CDC_OUT_DELETE;
	record.before = by_key;
	record.after = NULL;
	is_record("debezium-unwrapped-json", &usual, &record, "{\"b\":\"x\",\"a\":4,\"__deleted\":\"true\"}", "a deleted one");
	is_record("canal-json", &usual, &record,
	          "{\"data\":[{\"b\":\"x\",\"a\":\"4\"}],\"old\":null," CANAL_TABLE "\"isDdl\":false,\"sql\":\"\",\"type\":\"DELETE\"," CANAL_TYPES PLACE "}}", "Canal JSON: a delete");
	other.unwrap_deletes = CDC_FORMAT_DELETES_TOMBSTONE;
	other.unwrap_fields = "op, source.lsn:AT,transaction.id";
	is_record("debezium-unwrapped-json", &other, &record, "null", "P36: a deleted one that is null");
	record.op = CDC_OUT_READ;
	record.of_copy = true;
	record.txn = NULL;
	record.after = by_key;
	record.before = NULL;
	is_record("debezium-unwrapped-json", &other, &record, "{\"b\":\"x\",\"a\":4,\"__op\":\"r\",\"__AT\":292239000,\"__transaction_id\":null}", "members of the envelope");
	ok(cdc_format_unknown_field("op,source.ts_ms:x", &len) == NULL, "these are known");
	unknown = cdc_format_unknown_field("op, nothing ,lsn", &len);
	ok(unknown != NULL && len == 7 && strncmp(unknown, "nothing", 7) == 0, "this is not");
	unknown = cdc_format_unknown_field("op:", &len);
	ok(unknown != NULL && len == 2, "nor is one without a new name");
	is_record("maxwell-json", &usual, &record,
	          "{\"database\":\"shop\",\"table\":\"t\\\"x\",\"type\":\"insert\",\"ts\":1709208001,\"position\":\"0/116B3698\",\"data\":{\"b\":\"x\",\"a\":4},"
	          "\"_cdc_bridge\":{\"db\":\"db\",\"lsn\":\"0/116B3698\",\"snapshot\":true}}", "a copied row");
	record.kind = CDC_RECORD_TRUNCATE;
	record.after = NULL;
	is_record("canal-json", &usual, &record,
	          "{\"data\":null,\"old\":null,\"database\":\"shop\",\"table\":\"t\\\"x\",\"es\":1709208001000,\"ts\":1709208001000,\"id\":292239000,\"isDdl\":true,\"sql\":\"\","
	          "\"type\":\"TRUNCATE\"," CANAL_TYPES "\"_cdc_bridge\":{\"db\":\"db\",\"lsn\":\"0/116B3698\",\"snapshot\":true}}", "P23: TRUNCATE as Canal JSON");
	for (int i = 0; i < 2; i++)
		is_record(i == 0 ? "maxwell-json" : "changelog-json", &usual, &record,
		          "{\"op\":\"truncate\",\"schema\":\"shop\",\"table\":\"t\\\"x\",\"lsn\":\"0/116B3698\",\"of_copy\":true,\"cascade\":false,\"restart_identity\":false}",
		          "P23: formats that have no word for it say it in ours");
}

/* How values look where that is a matter of the format. */
static void
test_other_values(void)
{
	static const uint8_t bytes[] = {0, 'a', '"', 0x7f, 0x80, 0xff};
	char many[4000];
	CdcBuf out;
	CdcFormatOptions latin = usual;

	latin.bytes_as_latin1 = true;
	is_value_in("canal-json", CDC_OUT_BYTES, (CdcCell) {.kind = CDC_CELL_BYTES,.len = sizeof(bytes),.v.data = (const char *) bytes}, &latin,
	            "\"\\u0000a\\\"\x7f\xc2\x80\xc3\xbf\"", "bytes as characters");
	is_value_in("canal-json", CDC_OUT_BOOL, int_cell(CDC_CELL_BOOL, 1), &usual, "\"true\"", "Canal JSON: a boolean");
	is_value_in("canal-json", CDC_OUT_FLOAT8, (CdcCell) {.kind = CDC_CELL_DOUBLE,.v.f8 = (double) NAN}, &usual, "\"NaN\"", "P24: NaN is a string already");
	is_value_in("canal-json", CDC_OUT_TIMESTAMPTZ, int_cell(CDC_CELL_MICROS, 1), &usual, "\"2000-01-01 00:00:00.000001Z\"", "a timestamp as SQL writes it");
	is_value_in("canal-json", CDC_OUT_TIMESTAMP, int_cell(CDC_CELL_MICROS, INT64_MAX), &usual, "\"infinity\"", "infinity stays");
	is_value_in("canal-json", CDC_OUT_TEXT, (CdcCell) {.kind = CDC_CELL_NULL}, &usual, "null", "null is no string");
	latin.numeric_as_number = latin.json_embedded = true;
	is_value_in("canal-json", CDC_OUT_NUMERIC, text_cell("1.50"), &latin, "\"1.50\"", "Canal JSON: a numeric is a string whatever options say");
	is_value_in("canal-json", CDC_OUT_JSON, text_cell("{}"), &latin, "\"{}\"", "... and so is JSON");
	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	memset(many, 0xe4, sizeof(many));
	json_add_latin1(&out, many, sizeof(many));
	is_int(out.len, 2 + 2 * sizeof(many), "many bytes in several pieces");
	cdc_buf_reset(&out);
	json_add_moment(&out, "", ",", ",", 0);
	json_add_moment(&out, ";", ",", ",", -1500);
	json_add_moment(&out, ";", ",", ",", 1000);
	json_add_moment(&out, ";", ",", ",", INT64_MAX);
	is_str(out.data, "0,0,0;-1,-1500,-1500000;1,1000,1000000;9223372036854775,9223372036854775807,9223372036854775807000", "moments, any of them");
	cdc_buf_reset(&out);
	for (uint64_t value = 1; value < UINT64_MAX / 11; value *= 11)
	{
		char want[32];

		cdc_buf_reset(&out);
		json_add_uint(&out, value);
		snprintf(want, sizeof(want), "%llu", (unsigned long long) value);
		is_str(out.data, want, "digits of a number");
	}
	cdc_buf_free(&out);
}

/* Formats that share a slot of the cache get their own schema each time. */
static void
test_cache(void)
{
	CdcFormat format;
	CdcOutTable other = table;

	other.name = "other";
	other.version = table.version + CDC_FORMAT_CACHE_SIZE;
	cdc_format_init(&format, cdc_format_find("debezium-json"), &usual, &cdc_malloc_allocator);
	for (int i = 0; i < 3; i++)
	{
		ok(strstr(format_value_schema(&format, &table)->data, "t_x.Value") != NULL, "one table's schema");
		ok(strstr(format_value_schema(&format, &other)->data, "other.Value") != NULL, "another one's");
	}
	cdc_format_free(&format);
}

static void *
no_memory(void *ctx, size_t size)
{
	(void) ctx;
	(void) size;
	return NULL;
}

static void
test_errors(void)
{
	static const CdcAllocator nothing = {.alloc = no_memory};
	CdcCell after[] = {text_cell("x"), int_cell(CDC_CELL_INT, 5), {.kind = CDC_CELL_VECTOR}, {.kind = CDC_CELL_NULL}};
	CdcRecord record = {.kind = CDC_RECORD_CHANGE,.txn = &txn,.table = &table,.op = CDC_OUT_INSERT,.after = after};
	CdcFormatOptions with = usual;
	CdcFormat format;
	CdcBuf out;
	CdcError err;

	with.schemas = true;
	ok(cdc_format_find("xml") == NULL, "there is no such format");
	ok(cdc_format_nth(6) != NULL && cdc_format_nth(7) == NULL, "there are seven");
	cdc_format_init(&format, cdc_format_find("json"), &usual, &cdc_malloc_allocator);
	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	is_int(cdc_format_value(&format, &record, 0, &out, &err), CDC_UNSUPPORTED, "a cell that does not come out of PostgreSQL");
	cdc_buf_free(&out);
	after[2] = text_cell("{}");
	cdc_buf_init(&out, &cdc_malloc_allocator, 50);
	is_int(cdc_format_value(&format, &record, 0, &out, &err), CDC_LIMIT, "P37: a record that is too long");
	is_str(err.text, "a record of table \"shop.t\"x\" would be longer than 50 bytes", "... is told by its table, without a value");
	cdc_buf_free(&out);
	cdc_format_free(&format);
	cdc_format_init(&format, cdc_format_find("debezium-json"), &with, &nothing);
	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	is_int(cdc_format_value(&format, &record, 0, &out, &err), CDC_NOMEM, "no memory for a schema");
	is_int(cdc_format_value(&format, &record, 0, &out, &err), CDC_NOMEM, "... nor the second time");
	cdc_buf_free(&out);
}

int
main(void)
{
	test_times();
	test_calendar();
	test_json_text();
	test_values();
	test_changes();
	test_schema_changes();
	test_marks();
	test_schemas();
	test_other_formats();
	test_other_values();
	test_cache();
	test_errors();
	return done_testing();
}
