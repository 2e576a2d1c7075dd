/*-------------------------------------------------------------------------
 *
 * value.c
 *	  Column values of a row event -> cells.
 *
 * NOTES
 *	  A row is split into fields by lengths only (binlog_field_shape); a value is
 *	  decoded when somebody asks for it. Strings stay where they are unless they
 *	  have to be transcoded, padded or unpacked, and then live in the caller's
 *	  arena.
 *
 *	  The newer temporal types (TIME2, DATETIME2, TIMESTAMP2) are big-endian
 *	  packed integers followed by 0 to 3 bytes of fraction, offset so that they
 *	  sort as bytes; a negative TIME complements the whole, fraction included.
 *	  The old ones (without "2") occur for MariaDB tables made under
 *	  mysql56_temporal_format=OFF. With fraction digits their width is not in the
 *	  log at all; without, they are read here.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "binlog/value.h"

#include <arpa/inet.h>
#include <string.h>

#include "binlog/charset.h"
#include "binlog/decimal.h"
#include "binlog/inflate.h"
#include "binlog/json.h"
#include "binlog/wire.h"

#define MICROS_PER_SECOND 1000000

BinlogFieldShape
binlog_field_shape(uint8_t wire_type, uint16_t wire_meta)
{
	BinlogFieldShape shape = {0, 0, true};

	switch (wire_type)
	{
		case WIRE_NULL:
			break;
		case WIRE_TINY:
		case WIRE_YEAR:
			shape.fixed = 1;
			break;
		case WIRE_SHORT:
			shape.fixed = 2;
			break;
		case WIRE_INT24:
		case WIRE_DATE:
		case WIRE_NEWDATE:
		case WIRE_TIME:
			shape.fixed = 3;
			break;
		case WIRE_LONG:
		case WIRE_FLOAT:
		case WIRE_TIMESTAMP:
			shape.fixed = 4;
			break;
		case WIRE_LONGLONG:
		case WIRE_DOUBLE:
		case WIRE_DATETIME:
			shape.fixed = 8;
			break;
		case WIRE_TIMESTAMP2:
			shape.fixed = (uint16_t) (4 + (wire_meta + 1) / 2);
			break;
		case WIRE_DATETIME2:
			shape.fixed = (uint16_t) (5 + (wire_meta + 1) / 2);
			break;
		case WIRE_TIME2:
			shape.fixed = (uint16_t) (3 + (wire_meta + 1) / 2);
			break;
		case WIRE_NEWDECIMAL:
			shape.fixed = (uint16_t) binlog_decimal_size(wire_meta >> 8, wire_meta & 0xff);
			break;
		case WIRE_BIT:
			shape.fixed = (uint16_t) ((wire_meta + 7) / 8);
			break;
		case WIRE_ENUM:
		case WIRE_SET:
			shape.fixed = wire_meta;
			break;
		case WIRE_STRING:
		case WIRE_VARCHAR:
		case WIRE_VAR_STRING:
		case WIRE_VARCHAR_COMPRESSED:
			shape.prefix = wire_meta > 255 ? 2 : 1;
			break;
		case WIRE_TINY_BLOB:
		case WIRE_BLOB:
		case WIRE_MEDIUM_BLOB:
		case WIRE_LONG_BLOB:
		case WIRE_BLOB_COMPRESSED:
		case WIRE_JSON:
		case WIRE_GEOMETRY:
		case WIRE_VECTOR:
			shape.prefix = (uint8_t) wire_meta;
			break;
		case WIRE_TYPED_ARRAY:
			shape.prefix = 4;
			break;
		default:
			shape.known = false;
			break;
	}
	return shape;
}

static inline uint64_t
read_le(const uint8_t *p, uint32_t n)
{
	uint64_t v = 0;

	for (uint32_t i = n; i > 0; i--)
		v = v << 8 | p[i - 1];
	return v;
}

static inline uint64_t
read_be(const uint8_t *p, uint32_t n)
{
	uint64_t v = 0;

	for (uint32_t i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

/* One line for every value that contradicts its type; the value itself is never told. */
static CdcStatus
invalid_value(const CdcColumnDef *column, CdcError *err)
{
	return cdc_fail(err, CDC_MALFORMED, 0, "invalid value of type %s in column \"%.64s\"",
	                cdc_type_name(column->type), column->name != NULL ? column->name : "");
}

static CdcStatus
no_memory(CdcError *err)
{
	return cdc_fail(err, CDC_NOMEM, 0, "value does not fit the memory limit");
}

static void
set_data(CdcCell *cell, CdcCellKind kind, const void *data, uint32_t len)
{
	cell->kind = kind;
	cell->len = len;
	cell->v.data = data;
}

/* Integers of n bytes (a constant where this is called), sign extended as their width says. */
static inline CdcStatus
integer_cell(const CdcColumnDef *column, const CdcField *field, uint32_t n, CdcCell *cell, CdcError *err)
{
	unsigned shift = 64 - 8 * n;
	uint64_t v;

	if (field->len != n)
		return invalid_value(column, err);
	v = read_le(field->data, n);
	if (column->is_unsigned)
	{
		cell->kind = CDC_CELL_UINT;
		cell->v.u = v;
	}
	else
	{
		cell->kind = CDC_CELL_INT;
		cell->v.i = (int64_t) (v << shift) >> shift;
	}
	return CDC_OK;
}

/* The fraction bytes hold digits in pairs: scale 1 and 2 hundredths, and so on. */
static uint32_t
fraction_to_micro(uint64_t fraction, uint32_t nbytes)
{
	static const uint32_t unit[] = {0, 10000, 100, 1};

	return (uint32_t) (fraction * unit[nbytes]);
}

static CdcStatus
time_cell(const CdcColumnDef *column, const CdcField *field, CdcCell *cell, CdcError *err)
{
	uint32_t nfraction = field->len - 3;
	int64_t packed =
	    (int64_t) read_be(field->data, field->len) - ((int64_t) 0x800000 << (8 * nfraction));
	uint64_t whole;
	uint64_t value;
	uint32_t micro;

	memset(&cell->v.time, 0, sizeof(cell->v.time));
	cell->kind = CDC_CELL_TIME;
	cell->v.time.negative = packed < 0;
	value = packed < 0 ? (uint64_t) -packed : (uint64_t) packed;
	whole = value >> (8 * nfraction);
	micro = fraction_to_micro(value & (((uint64_t) 1 << (8 * nfraction)) - 1), nfraction);
	cell->v.time.hour = (uint16_t) (whole >> 12 & 0x3ff);
	cell->v.time.minute = (uint8_t) (whole >> 6 & 63);
	cell->v.time.second = (uint8_t) (whole & 63);
	cell->v.time.micro = micro;
	if (whole >> 22 != 0 || cell->v.time.hour > 838 || cell->v.time.minute > 59 ||
	    cell->v.time.second > 59 || micro >= MICROS_PER_SECOND)
		return invalid_value(column, err);
	return CDC_OK;
}

/* Are the parts ones that the server could have stored, zero parts included? */
static bool
datetime_is_valid(const CdcTimeParts *t)
{
	return t->year <= 9999 && t->month <= 12 && t->day <= 31 && t->hour <= 23 && t->minute <= 59 &&
	       t->second <= 59 && t->micro < MICROS_PER_SECOND;
}

static CdcStatus
datetime_cell(const CdcColumnDef *column, const CdcField *field, CdcCell *cell, CdcError *err)
{
	uint32_t nfraction = field->len - 5;
	uint64_t packed = read_be(field->data, 5);
	CdcTimeParts *t = &cell->v.time;
	uint64_t months;

	memset(t, 0, sizeof(*t));
	cell->kind = CDC_CELL_DATETIME;
	if (packed < UINT64_C(0x8000000000))
		return invalid_value(column, err);
	packed -= UINT64_C(0x8000000000);
	months = packed >> 22;
	t->year = (uint16_t) (months / 13);
	t->month = (uint8_t) (months % 13);
	t->day = (uint8_t) (packed >> 17 & 31);
	t->hour = (uint16_t) (packed >> 12 & 31);
	t->minute = (uint8_t) (packed >> 6 & 63);
	t->second = (uint8_t) (packed & 63);
	t->micro = fraction_to_micro(read_be(field->data + 5, nfraction), nfraction);
	return datetime_is_valid(t) ? CDC_OK : invalid_value(column, err);
}

/* Seconds are unsigned: MariaDB 11.5 and later go on to 2106. */
static CdcStatus
timestamp_cell(const CdcColumnDef *column, const CdcField *field, bool big_endian, CdcCell *cell,
               CdcError *err)
{
	uint32_t nfraction = field->len - 4;
	uint64_t seconds = big_endian ? read_be(field->data, 4) : read_le(field->data, 4);
	uint32_t micro = fraction_to_micro(read_be(field->data + 4, nfraction), nfraction);

	cell->kind = CDC_CELL_TIMESTAMP;
	if (micro >= MICROS_PER_SECOND)
		return invalid_value(column, err);
	if (seconds == 0 && micro == 0)
		cell->v.epoch_us = CDC_ZERO_TIMESTAMP;
	else
		cell->v.epoch_us = (int64_t) seconds * MICROS_PER_SECOND + micro;
	return CDC_OK;
}

static CdcStatus
date_cell(const CdcColumnDef *column, const CdcField *field, CdcCell *cell, CdcError *err)
{
	uint32_t packed = (uint32_t) read_le(field->data, 3);
	CdcTimeParts *t = &cell->v.time;

	memset(t, 0, sizeof(*t));
	cell->kind = CDC_CELL_DATE;
	t->day = (uint8_t) (packed & 31);
	t->month = (uint8_t) (packed >> 5 & 15);
	t->year = (uint16_t) (packed >> 9);
	return datetime_is_valid(t) ? CDC_OK : invalid_value(column, err);
}

/* The old TIME: a signed decimal number hhmmss. */
static CdcStatus
old_time_cell(const CdcColumnDef *column, const CdcField *field, CdcCell *cell, CdcError *err)
{
	int32_t v = (int32_t) ((uint32_t) read_le(field->data, 3) << 8) >> 8;
	CdcTimeParts *t = &cell->v.time;

	memset(t, 0, sizeof(*t));
	cell->kind = CDC_CELL_TIME;
	t->negative = v < 0;
	v = v < 0 ? -v : v;
	t->hour = (uint16_t) (v / 10000);
	t->minute = (uint8_t) (v / 100 % 100);
	t->second = (uint8_t) (v % 100);
	if (t->hour > 838 || t->minute > 59 || t->second > 59)
		return invalid_value(column, err);
	return CDC_OK;
}

/* The old DATETIME: a decimal number yyyymmddhhmmss. */
static CdcStatus
old_datetime_cell(const CdcColumnDef *column, const CdcField *field, CdcCell *cell, CdcError *err)
{
	uint64_t v = read_le(field->data, 8);
	CdcTimeParts *t = &cell->v.time;

	memset(t, 0, sizeof(*t));
	cell->kind = CDC_CELL_DATETIME;
	if (v > UINT64_C(99991231235959))
		return invalid_value(column, err);
	t->year = (uint16_t) (v / UINT64_C(10000000000));
	t->month = (uint8_t) (v / 100000000 % 100);
	t->day = (uint8_t) (v / 1000000 % 100);
	t->hour = (uint16_t) (v / 10000 % 100);
	t->minute = (uint8_t) (v / 100 % 100);
	t->second = (uint8_t) (v % 100);
	return datetime_is_valid(t) ? CDC_OK : invalid_value(column, err);
}

static CdcStatus
decimal_cell(const CdcColumnDef *column, const CdcField *field, CdcArena *arena, CdcCell *cell,
             CdcError *err)
{
	char *text = cdc_arena_alloc(arena, BINLOG_DECIMAL_TEXT_MAX);
	uint32_t len;

	if (text == NULL)
		return no_memory(err);
	len =
	    binlog_decimal_to_text(field->data, column->wire_meta >> 8, column->wire_meta & 0xff, text);
	if (len == 0)
		return invalid_value(column, err);
	set_data(cell, CDC_CELL_TEXT, text, len);
	return CDC_OK;
}

/* ENUM: the label of an index from 1; 0 is the empty string of an invalid value. */
static CdcStatus
enum_cell(const CdcColumnDef *column, const CdcField *field, CdcCell *cell, CdcError *err)
{
	uint64_t index = read_le(field->data, field->len);

	if (index == 0)
		set_data(cell, CDC_CELL_TEXT, "", 0);
	else if (column->nlabels == 0)
		return cdc_fail(err, CDC_UNSUPPORTED, 0, "labels of column \"%.64s\" are not known",
		                column->name != NULL ? column->name : "");
	else if (index > column->nlabels)
		return invalid_value(column, err);
	else
		set_data(cell, CDC_CELL_TEXT, column->labels[index - 1].data,
		         column->labels[index - 1].len);
	return CDC_OK;
}

/* SET: one bit per label, the labels joined by commas. */
static CdcStatus
set_cell(const CdcColumnDef *column, const CdcField *field, CdcArena *arena, CdcCell *cell,
         CdcError *err)
{
	uint64_t bits = read_le(field->data, field->len);
	size_t len = 0;
	char *text;
	char *p;

	if (bits == 0)
	{
		set_data(cell, CDC_CELL_TEXT, "", 0);
		return CDC_OK;
	}
	if (column->nlabels == 0)
		return cdc_fail(err, CDC_UNSUPPORTED, 0, "labels of column \"%.64s\" are not known",
		                column->name != NULL ? column->name : "");
	if (column->nlabels < 64 && bits >> column->nlabels != 0)
		return invalid_value(column, err);
	for (uint32_t i = 0; i < column->nlabels && i < 64; i++)
	{
		if (bits >> i & 1)
			len += (size_t) column->labels[i].len + 1;
	}
	if (len > UINT32_MAX)
		return invalid_value(column, err);
	text = p = cdc_arena_alloc(arena, len);
	if (text == NULL)
		return no_memory(err);
	for (uint32_t i = 0; i < column->nlabels && i < 64; i++)
	{
		if ((bits >> i & 1) == 0)
			continue;
		if (p > text)
			*p++ = ',';
		memcpy(p, column->labels[i].data, column->labels[i].len);
		p += column->labels[i].len;
	}
	set_data(cell, CDC_CELL_TEXT, text, (uint32_t) (p - text));
	return CDC_OK;
}

static void *
arena_alloc_cb(void *ctx, size_t size)
{
	return cdc_arena_alloc(ctx, size);
}

static void
arena_free_cb(void *ctx, void *ptr)
{
	(void) ctx;
	(void) ptr;
}

static CdcStatus
json_cell(const CdcField *field, CdcArena *arena, CdcCell *cell, CdcError *err)
{
	CdcAllocator allocator = {arena_alloc_cb, arena_free_cb, arena};
	CdcBuf text;
	CdcStatus status;

	cdc_buf_init(&text, &allocator, UINT32_MAX - 1);
	status = binlog_json_to_text(field->data, field->len, BINLOG_JSON_DEPTH_MAX, &text, err);
	if (status == CDC_OK)
		set_data(cell, CDC_CELL_TEXT, text.data, (uint32_t) text.len);
	return status;
}

/* The value with the zero bytes that the server cut off put back. */
static const uint8_t *
pad_zero(const uint8_t *data, uint32_t len, uint32_t want, CdcArena *arena)
{
	uint8_t *padded;

	if (len >= want)
		return data;
	padded = cdc_arena_alloc(arena, want);
	if (padded != NULL)
	{
		memcpy(padded, data, len);
		memset(padded + len, 0, want - len);
	}
	return padded;
}

/* MariaDB's UUID, INET4 and INET6, which the log shows as BINARY(16) and BINARY(4). */
static CdcStatus
address_cell(const CdcColumnDef *column, const uint8_t *data, uint32_t len, CdcArena *arena,
             CdcCell *cell, CdcError *err)
{
	static const char hex[] = "0123456789abcdef";
	uint32_t want = column->type == CDC_TYPE_INET4 ? 4 : 16;
	char *text = cdc_arena_alloc(arena, 64);
	const uint8_t *bytes = pad_zero(data, len, want, arena);
	char *p = text;

	if (text == NULL || bytes == NULL)
		return no_memory(err);
	if (len > want)
		return invalid_value(column, err);
	if (column->type == CDC_TYPE_UUID)
	{
		for (int i = 0; i < 16; i++)
		{
			if (i == 4 || i == 6 || i == 8 || i == 10)
				*p++ = '-';
			*p++ = hex[bytes[i] >> 4];
			*p++ = hex[bytes[i] & 15];
		}
		set_data(cell, CDC_CELL_TEXT, text, 36);
		return CDC_OK;
	}
	if (inet_ntop(want == 4 ? AF_INET : AF_INET6, bytes, text, 64) == NULL)
		return invalid_value(column, err);
	set_data(cell, CDC_CELL_TEXT, text, (uint32_t) strlen(text));
	return CDC_OK;
}

/* Everything that is a string of bytes in the log; "type" tells what it means. */
static CdcStatus
string_cell(const CdcColumnDef *column, const uint8_t *data, uint32_t len, CdcArena *arena,
            CdcCell *cell, CdcError *err)
{
	const char *text;
	uint32_t textlen;
	CdcStatus status;

	switch (column->type)
	{
		case CDC_TYPE_BINARY:
			data = pad_zero(data, len, column->wire_meta, arena);
			if (data == NULL)
				return no_memory(err);
			set_data(cell, CDC_CELL_BYTES, data, len > column->wire_meta ? len : column->wire_meta);
			return CDC_OK;
		case CDC_TYPE_VARBINARY:
		case CDC_TYPE_BLOB:
			set_data(cell, CDC_CELL_BYTES, data, len);
			return CDC_OK;
		case CDC_TYPE_VECTOR:
			set_data(cell, CDC_CELL_VECTOR, data, len);
			return CDC_OK;
		case CDC_TYPE_GEOMETRY:
			set_data(cell, CDC_CELL_GEOMETRY, data, len);
			return CDC_OK;
		case CDC_TYPE_UUID:
		case CDC_TYPE_INET4:
		case CDC_TYPE_INET6:
			return address_cell(column, data, len, arena, cell, err);
		default:
			break;
	}
	status = binlog_charset_mend(column->collation, data, len, arena, &text, &textlen,
	                             &cell->invalid, err);
	if (status != CDC_OK)
		return status;
	if (column->type == CDC_TYPE_CHAR)
	{
		while (textlen > 0 && text[textlen - 1] == ' ')
			textlen--;
	}
	set_data(cell, CDC_CELL_TEXT, text, textlen);
	return CDC_OK;
}

/* Types that are neither integers nor plain strings, in the order of their numbers. */
static CdcStatus
other_cell(const CdcColumnDef *column, const CdcField *field, CdcArena *arena, CdcCell *cell,
           CdcError *err)
{
	const uint8_t *data;
	uint32_t len;
	uint32_t bits32;
	uint64_t bits;
	BinlogFieldShape shape = binlog_field_shape(column->wire_type, column->wire_meta);
	CdcStatus status;

	if (shape.known && shape.prefix == 0 && field->len != shape.fixed)
		return invalid_value(column, err);
	switch (column->wire_type)
	{
		case WIRE_FLOAT:
			bits32 = (uint32_t) read_le(field->data, 4);
			memcpy(&cell->v.f4, &bits32, sizeof(float));
			cell->kind = CDC_CELL_FLOAT;
			return CDC_OK;
		case WIRE_DOUBLE:
			bits = read_le(field->data, 8);
			memcpy(&cell->v.f8, &bits, sizeof(double));
			cell->kind = CDC_CELL_DOUBLE;
			return CDC_OK;
		case WIRE_NULL:
			cell->kind = CDC_CELL_NULL;
			return CDC_OK;
		case WIRE_TIMESTAMP:
			return timestamp_cell(column, field, false, cell, err);
		case WIRE_DATE:
		case WIRE_NEWDATE:
			return date_cell(column, field, cell, err);
		case WIRE_TIME:
			return old_time_cell(column, field, cell, err);
		case WIRE_DATETIME:
			return old_datetime_cell(column, field, cell, err);
		case WIRE_YEAR:
			bits = field->data[0];
			cell->kind = CDC_CELL_UINT;
			cell->v.u = bits == 0 ? 0 : 1900 + bits;
			return CDC_OK;
		case WIRE_BIT:
			set_data(cell, CDC_CELL_BIT, field->data, field->len);
			return CDC_OK;
		case WIRE_TIMESTAMP2:
			return timestamp_cell(column, field, true, cell, err);
		case WIRE_DATETIME2:
			return datetime_cell(column, field, cell, err);
		case WIRE_TIME2:
			return time_cell(column, field, cell, err);
		case WIRE_BLOB_COMPRESSED:
		case WIRE_VARCHAR_COMPRESSED:
			status = binlog_inflate_column(field->data, field->len, arena, &data, &len, err);
			if (status != CDC_OK)
				return status;
			return string_cell(column, data, len, arena, cell, err);
		case WIRE_VECTOR:
			set_data(cell, CDC_CELL_VECTOR, field->data, field->len);
			return CDC_OK;
		case WIRE_JSON:
			return json_cell(field, arena, cell, err);
		case WIRE_NEWDECIMAL:
			return decimal_cell(column, field, arena, cell, err);
		case WIRE_ENUM:
			return enum_cell(column, field, cell, err);
		case WIRE_SET:
			return set_cell(column, field, arena, cell, err);
		case WIRE_GEOMETRY:
			set_data(cell, CDC_CELL_GEOMETRY, field->data, field->len);
			return CDC_OK;
		default:
			return cdc_fail(err, CDC_UNSUPPORTED, 0, "column \"%.64s\" has the unknown type %u",
			                column->name != NULL ? column->name : "", (unsigned) column->wire_type);
	}
}

CdcStatus
binlog_field_to_cell(const CdcColumnDef *column, const CdcField *field, CdcArena *arena,
                     CdcCell *cell, CdcError *err)
{
	cell->kind = CDC_CELL_NULL;
	cell->len = 0;
	cell->invalid = 0;
	cell->v.u = 0;
	if (field->state == CDC_FIELD_NULL)
		return CDC_OK;
	if (field->state != CDC_FIELD_VALUE)
		return cdc_fail(err, CDC_UNSUPPORTED, 0,
		                "column \"%.64s\" has no whole value in the row image",
		                column->name != NULL ? column->name : "");
	switch (column->wire_type)
	{
		case WIRE_TINY:
			return integer_cell(column, field, 1, cell, err);
		case WIRE_SHORT:
			return integer_cell(column, field, 2, cell, err);
		case WIRE_INT24:
			return integer_cell(column, field, 3, cell, err);
		case WIRE_LONG:
			return integer_cell(column, field, 4, cell, err);
		case WIRE_LONGLONG:
			return integer_cell(column, field, 8, cell, err);
		case WIRE_VARCHAR:
		case WIRE_TINY_BLOB:
		case WIRE_MEDIUM_BLOB:
		case WIRE_LONG_BLOB:
		case WIRE_BLOB:
		case WIRE_VAR_STRING:
		case WIRE_STRING:
			return string_cell(column, field->data, field->len, arena, cell, err);
		default:
			return other_cell(column, field, arena, cell, err);
	}
}
