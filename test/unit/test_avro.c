/*-------------------------------------------------------------------------
 *
 * test_avro.c
 *	  Avro's encoding, its names, and the schemas that documents are written by.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "format/avro.h"

#include "format/format.h"
#include "number_text.h"
#include "tap.h"

/* What was added since, as hexadecimal digits; the buffer is empty then. */
static void
is_bytes(CdcBuf *out, const char *want, const char *name)
{
	char got[256] = "";

	for (size_t i = 0; i < out->len && i < 120; i++)
		snprintf(got + 2 * i, 3, "%02x", (unsigned char) out->data[i]);
	is_str(got, want, name);
	cdc_buf_reset(out);
}

static void
test_numbers(CdcBuf *out)
{
	/* the examples of Avro's specification */
	static const struct
	{
		int64_t value;
		const char *bytes;
	} longs[] = {{0, "00"}, {-1, "01"}, {1, "02"}, {-2, "03"}, {2, "04"}, {-64, "7f"}, {64, "8001"}, {INT64_MAX, "feffffffffffffffff01"}, {INT64_MIN, "ffffffffffffffffff01"}};

	for (size_t i = 0; i < sizeof(longs) / sizeof(longs[0]); i++)
	{
		avro_add_long(out, longs[i].value);
		is_bytes(out, longs[i].bytes, "a long");
	}
	avro_add_cstring(out, "foo");
	is_bytes(out, "06666f6f", "a string, the specification's example");
	avro_add_bool(out, true);
	avro_add_bool(out, false);
	is_bytes(out, "0100", "booleans");
	avro_add_float(out, 1.5f);
	avro_add_double(out, -2.0);
	is_bytes(out, "0000c03f00000000000000c0", "floats are little-endian");
	avro_add_branch(out, false);
	avro_add_branch(out, true);
	is_bytes(out, "0002", "branches of a union with null");
}

static void
is_decimal(CdcBuf *out, const char *text, int scale, const char *want)
{
	bool taken = avro_add_decimal(out, text, strlen(text), scale);

	if (want == NULL)
		ok(!taken && out->len == 0, text);
	else
		is_bytes(out, want, text);
}

static void
test_decimals(CdcBuf *out)
{
	char many[1200];

	is_decimal(out, "0", 0, "0200");
	is_decimal(out, "-0.00", 2, "0200");
	is_decimal(out, "1", 0, "0201");
	is_decimal(out, "127", 0, "027f");
	is_decimal(out, "128", 0, "040080");
	is_decimal(out, "-128", 0, "0280");
	is_decimal(out, "-129", 0, "04ff7f");
	is_decimal(out, "-1", 0, "02ff");
	is_decimal(out, "255", 0, "0400ff");
	is_decimal(out, "-256", 0, "04ff00");
	is_decimal(out, "-32768", 0, "048000");
	is_decimal(out, "12.34", 2, "0404d2");
	is_decimal(out, "12.3", 3, "04300c");
	is_decimal(out, "12.300", 1, "027b");
	is_decimal(out, "18446744073709551616", 0, "12010000000000000000");
	is_decimal(out, "12.34", 1, NULL);
	is_decimal(out, "NaN", 1, NULL);
	is_decimal(out, "-Infinity", 1, NULL);
	is_decimal(out, "", 1, NULL);
	is_decimal(out, "-", 1, NULL);
	is_decimal(out, "1.2.3", 2, NULL);
	memset(many, '9', sizeof(many));
	ok(avro_add_decimal(out, many, 1000, 0), "as many digits as numeric(1000) has");
	cdc_buf_reset(out);
	ok(!avro_add_decimal(out, many, 1200, 0) && out->len == 0, "more are refused");
}

static void
is_name(CdcBuf *out, const char *name, const char *want)
{
	avro_add_name(out, name);
	is_str(out->data, want, name);
	cdc_buf_reset(out);
}

static void
test_names(CdcBuf *out)
{
	is_name(out, "plain_Name9", "plain_Name9");
	is_name(out, "9lives", "_u0039lives");
	is_name(out, "x$1", "x_u00241");
	is_name(out, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "_u00e4_u20ac_u1f600");
	is_name(out, "a.b c", "a_u002eb_u0020c");
	is_name(out, "", "_");
}

static void
test_schemas(CdcBuf *out)
{
	static const uint32_t key[] = {0};
	static const CdcOutColumn columns[] = {
		{.name = "id",.type = CDC_OUT_INT4,.key_part = 1,.precision = -1},
		{.name = "x$",.type = CDC_OUT_NUMERIC,.precision = 5,.scale = 2},
		{.name = "x_u0024",.type = CDC_OUT_DATE},
	};
	CdcOutTable table = {.schema = "s",.name = "t",.version = 3,.ncolumns = 3,.columns = columns,.nkey = 1,.key = key};
	CdcCell row[] = {{.kind = CDC_CELL_INT,.v.i = 5}, {.kind = CDC_CELL_TEXT,.len = 4,.v.data = "1.50"}, {.kind = CDC_CELL_DAYS,.v.i = INT32_MAX}};
	CdcRecord record = {.kind = CDC_RECORD_CHANGE,.op = CDC_OUT_READ,.of_copy = true,.table = &table,.after = row};
	CdcFormatOptions options = {
		.server_name = "pg",.database = "d",.version = "0",.unavailable = "?",.logical_types = true,.double_text = double_text,.float_text = float_text
	};
	CdcFormat format;
	CdcFormatSchema schema;
	CdcError err;

	cdc_format_init(&format, cdc_format_find("debezium-avro"), &options, &cdc_malloc_allocator);
	is_int(cdc_format_value(&format, &record, 0, out, &err), CDC_UNSUPPORTED, "without the number of its schema nothing is written");
	cdc_buf_reset(out);
	is_int(cdc_format_missing_schema(&format, &record, &schema), CDC_OK, "a schema is missing");
	ok(!schema.is_key && strstr(schema.text, "{\"name\":\"x_u0024_\",\"doc\":\"x$\",\"type\":[\"null\",{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":5,\"scale\":2}],"
	                            "\"default\":null},{\"name\":\"x_u0024\",\"type\":[\"null\",{\"type\":\"int\",\"logicalType\":\"date\"}],\"default\":null}") != NULL,
	   "P34: a name that is made another one does not become that of another column");
	cdc_format_schema_id(&format, &record, &schema, 0x01020304);
	is_int(cdc_format_missing_schema(&format, &record, &schema), CDC_OK, "the key's is, too");
	is_str(schema.text, "{\"type\":\"record\",\"name\":\"Key\",\"namespace\":\"pg.s.t\",\"fields\":[{\"name\":\"id\",\"type\":\"int\"}]}", "the schema of a key");
	cdc_format_schema_id(&format, &record, &schema, 7);
	is_int(cdc_format_missing_schema(&format, &record, &schema), CDC_END, "now none is");
	is_int(cdc_format_key(&format, &record, 0, out, &err), CDC_OK, "a key");
	is_bytes(out, "00000000070a", "a zero byte, the number of its schema, the value");
	is_int(cdc_format_value(&format, &record, 0, out, &err), CDC_UNSUPPORTED, "P24: an infinite date has no logical type");
	cdc_buf_reset(out);
	row[2].v.i = 0;
	is_int(cdc_format_value(&format, &record, 0, out, &err), CDC_OK, "a value");
	ok(out->len > 20 && memcmp(out->data, "\0\1\2\3\4\0\2\2\x0a\2\4\0\x96\2\x9a\xab\1", 17) == 0, "null before, then each column as a branch and its value");
	cdc_buf_reset(out);
	table.version = 3 + CDC_FORMAT_CACHE_SIZE;
	is_int(cdc_format_missing_schema(&format, &record, &schema), CDC_OK, "another definition has another schema");
	cdc_format_free(&format);
}

int
main(void)
{
	CdcBuf out;

	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	test_numbers(&out);
	test_decimals(&out);
	test_names(&out);
	test_schemas(&out);
	cdc_buf_free(&out);
	return done_testing();
}
