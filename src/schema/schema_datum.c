/*-------------------------------------------------------------------------
 *
 * schema_datum.c
 *	  Cells -> Datums.
 *
 * NOTES
 *	  One converter per target type (or family of them). Cheap forms are built
 *	  directly; the others go through the value's text form and the type's
 *	  input function, schema_to_input. Everything is made in
 *	  CurrentMemoryContext.
 *
 *	  No message of this file contains a value: a row's contents must not reach
 *	  the server log. Input functions quote what they could not read, so their
 *	  errors are caught and replaced by one of ours with the same SQLSTATE. No
 *	  subtransaction is involved: the error goes on, the transaction is lost
 *	  either way.
 *
 *	  Text form of a value, for text targets and input functions: as the source
 *	  server shows it with time_zone '+00:00', except that real numbers have
 *	  the fewest digits that read back exactly, binary strings are \x and hex
 *	  digits, bits are 0 and 1, geometries are EWKB in hex digits and vectors
 *	  [1,2,3].
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "common/shortest_dec.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"
#include "utils/varbit.h"

#include "schema/schema_private.h"
#include "util/util_role.h"

#define UNIX_TO_POSTGRES_US ((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

/* EWKB: the bit of the type word that says that an SRID follows. */
#define EWKB_HAS_SRID 0x20000000

/* ------------------------------------------------------------------- errors */

static const char *
column_name(const SchemaColumn *column)
{
	return schema_server_string(column->def->name);
}

static _Noreturn void
throw_range(const SchemaColumn *column)
{
	ereport(ERROR,
	        (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
	         errmsg("value of column \"%s\" is out of range for type %s", column_name(column),
	                format_type_with_typemod(column->typid, column->typmod))));
}

static _Noreturn void
throw_size(const SchemaColumn *column)
{
	ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
	                errmsg("value of column \"%s\" is too large", column_name(column)),
	                errdetail("A value can have at most 1 GB, in whichever form it is stored.")));
}

/* The decoder broke its contract, or the source's bytes contradict themselves. */
static _Noreturn void
throw_form(const SchemaColumn *column, const CdcCell *cell)
{
	ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
	                errmsg("value of column \"%s\" cannot be read", column_name(column)),
	                errdetail("The source's type is %s; what came is of kind %d and has %u bytes.",
	                          schema_source_type(column->def), (int) cell->kind, cell->len)));
}

/* ------------------------------------------------------------------- texts */

/*
 * Check the UTF-8 text of a cell, mend it as the policies say, and bring it into
 * the database's encoding. The result may be the cell's own data and is then not
 * terminated by a NUL.
 */
static const char *
server_text(SchemaColumn *column, const CdcCell *cell, uint32 *len)
{
	const char *data = cell->v.data;
	char *result;
	int done;

	*len = cell->len;
	if (*len > MaxAllocSize - VARHDRSZ - 1)
		throw_size(column);
	if (cell->invalid > 0 || !pg_verify_mbstr(PG_UTF8, data, (int) *len, true))
		data = schema_mend_text(column, cell, len);
	if (!OidIsValid(column->encoding))
		return data;

	if (*len > (MaxAllocSize - 1) / MAX_CONVERSION_GROWTH)
		throw_size(column);
	result = palloc((Size) *len * MAX_CONVERSION_GROWTH + 1);
	done = pg_do_encoding_conversion_buf(column->encoding, PG_UTF8, GetDatabaseEncoding(),
	                                     (unsigned char *) unconstify(char *, data), (int) *len,
	                                     (unsigned char *) result,
	                                     (int) (*len * MAX_CONVERSION_GROWTH + 1), true);
	if (done != (int) *len)
		ereport(ERROR, (errcode(ERRCODE_UNTRANSLATABLE_CHARACTER),
		                errmsg("text of column \"%s\" contains a character that the database's "
		                       "encoding %s does not have",
		                       column_name(column), GetDatabaseEncodingName()),
		                errhint("Use a database with the encoding UTF8.")));
	*len = strlen(result);
	return result;
}

static void
append_fraction(StringInfo buf, uint32 micro, int digits)
{
	char text[8];

	if (digits <= 0)
		return;
	snprintf(text, sizeof(text), "%06u", micro % 1000000);
	appendStringInfoChar(buf, '.');
	appendBinaryStringInfo(buf, text, Min(digits, 6));
}

static void
append_hex(StringInfo buf, const char *data, uint32 len)
{
	enlargeStringInfo(buf, (int) len * 2);
	hex_encode(data, len, buf->data + buf->len);
	buf->len += (int) len * 2;
	buf->data[buf->len] = '\0';
}

/* Bits of a BIT cell as a number. */
static uint64
bit_value(const SchemaColumn *column, const CdcCell *cell)
{
	uint64 value = 0;

	if (cell->len > 8)
		throw_form(column, cell);
	for (uint32 i = 0; i < cell->len; i++)
		value = value << 8 | (uint8) cell->v.data[i];
	return value;
}

static uint32
read_uint32(const char *data, bool little_endian)
{
	const uint8 *p = (const uint8 *) data;

	return little_endian ? (uint32) p[3] << 24 | (uint32) p[2] << 16 | (uint32) p[1] << 8 | p[0]
	                     : (uint32) p[0] << 24 | (uint32) p[1] << 16 | (uint32) p[2] << 8 | p[3];
}

static void
write_uint32(char *data, uint32 value, bool little_endian)
{
	for (int i = 0; i < 4; i++)
		data[i] = (char) (value >> 8 * (little_endian ? i : 3 - i));
}

/*
 * Make EWKB of a geometry (SRID, then WKB): the SRID, when it is not zero, goes
 * behind the outermost type word, as PostGIS stores and reads it.
 */
static char *
geometry_ewkb(const SchemaColumn *column, const CdcCell *cell, uint32 *len)
{
	uint32 srid;
	bool little_endian;
	char *ewkb;

	if (cell->len < 9 || (uint8) cell->v.data[4] > 1)
		throw_form(column, cell);
	if (cell->len > (MaxAllocSize - VARHDRSZ) / 2 - 8)
		throw_size(column);

	srid = read_uint32(cell->v.data, true);
	little_endian = cell->v.data[4] == 1;
	*len = cell->len - 4 + (srid != 0 ? 4 : 0);
	ewkb = palloc(*len);
	if (srid == 0)
	{
		memcpy(ewkb, cell->v.data + 4, *len);
		return ewkb;
	}
	ewkb[0] = cell->v.data[4];
	write_uint32(ewkb + 1, read_uint32(cell->v.data + 5, little_endian) | EWKB_HAS_SRID,
	             little_endian);
	write_uint32(ewkb + 5, srid, little_endian);
	memcpy(ewkb + 9, cell->v.data + 9, cell->len - 9);
	return ewkb;
}

static float
vector_element(const CdcCell *cell, uint32 i)
{
	uint32 bits = read_uint32(cell->v.data + (Size) i * 4, true);
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void
append_date(StringInfo buf, const CdcTimeParts *t)
{
	appendStringInfo(buf, "%04u-%02u-%02u", t->year, t->month, t->day);
}

static void
append_clock(StringInfo buf, const CdcTimeParts *t, int digits)
{
	appendStringInfo(buf, "%02u:%02u:%02u", t->hour, t->minute, t->second);
	append_fraction(buf, t->micro, digits);
}

static void
append_timestamp(StringInfo buf, int64 epoch_us, int digits)
{
	CdcTimeParts t = {0};

	if (epoch_us != CDC_ZERO_TIMESTAMP)
	{
		int64 days = epoch_us / USECS_PER_DAY;
		int64 rest = epoch_us % USECS_PER_DAY;
		int year, month, day;

		if (rest < 0)
		{
			rest += USECS_PER_DAY;
			days--;
		}
		j2date((int) days + UNIX_EPOCH_JDATE, &year, &month, &day);
		t.year = year;
		t.month = month;
		t.day = day;
		t.hour = rest / USECS_PER_HOUR;
		t.minute = rest / USECS_PER_MINUTE % 60;
		t.second = rest / USECS_PER_SEC % 60;
		t.micro = rest % USECS_PER_SEC;
	}
	append_date(buf, &t);
	appendStringInfoChar(buf, ' ');
	append_clock(buf, &t, digits);
}

/*
 * Text form of any value (see NOTES), in the database's encoding; *len bytes,
 * a NUL behind them only when "terminated" asks for it.
 */
static const char *
cell_text(SchemaColumn *column, const CdcCell *cell, uint32 *len, bool terminated)
{
	StringInfoData buf;
	int digits = column->def->scale;

	if (cell->kind == CDC_CELL_TEXT)
	{
		const char *text;

		text = server_text(column, cell, len);
		return terminated ? pnstrdup(text, *len) : text;
	}

	initStringInfo(&buf);
	switch (cell->kind)
	{
		case CDC_CELL_INT:
			appendStringInfo(&buf, INT64_FORMAT, cell->v.i);
			break;
		case CDC_CELL_UINT:
			if (column->def->type == CDC_TYPE_YEAR)
				appendStringInfo(&buf, "%04u", (unsigned) cell->v.u);
			else
				appendStringInfo(&buf, UINT64_FORMAT, cell->v.u);
			break;
		case CDC_CELL_FLOAT:
			enlargeStringInfo(&buf, FLOAT_SHORTEST_DECIMAL_LEN);
			buf.len = float_to_shortest_decimal_buf(cell->v.f4, buf.data);
			break;
		case CDC_CELL_DOUBLE:
			enlargeStringInfo(&buf, DOUBLE_SHORTEST_DECIMAL_LEN);
			buf.len = double_to_shortest_decimal_buf(cell->v.f8, buf.data);
			break;
		case CDC_CELL_BYTES:
			if (cell->len > (MaxAllocSize - VARHDRSZ) / 2 - 8)
				throw_size(column);
			appendStringInfoString(&buf, "\\x");
			append_hex(&buf, cell->v.data, cell->len);
			break;
		case CDC_CELL_BIT:
		{
			uint64 value = bit_value(column, cell);

			for (int i = (int) column->def->length - 1; i >= 0; i--)
				appendStringInfoChar(&buf, value >> i & 1 ? '1' : '0');
			break;
		}
		case CDC_CELL_GEOMETRY:
		{
			uint32 ewkb_len;
			char *ewkb = geometry_ewkb(column, cell, &ewkb_len);

			append_hex(&buf, ewkb, ewkb_len);
			break;
		}
		case CDC_CELL_VECTOR:
			if (cell->len % 4 != 0)
				throw_form(column, cell);
			for (uint32 i = 0; i < cell->len / 4; i++)
			{
				char number[FLOAT_SHORTEST_DECIMAL_LEN];

				float_to_shortest_decimal_buf(vector_element(cell, i), number);
				appendStringInfo(&buf, "%c%s", i == 0 ? '[' : ',', number);
			}
			appendStringInfoString(&buf, cell->len == 0 ? "[]" : "]");
			break;
		case CDC_CELL_DATE:
			append_date(&buf, &cell->v.time);
			break;
		case CDC_CELL_TIME:
			if (cell->v.time.negative)
				appendStringInfoChar(&buf, '-');
			append_clock(&buf, &cell->v.time, digits);
			break;
		case CDC_CELL_DATETIME:
			append_date(&buf, &cell->v.time);
			appendStringInfoChar(&buf, ' ');
			append_clock(&buf, &cell->v.time, digits);
			break;
		case CDC_CELL_TIMESTAMP:
			append_timestamp(&buf, cell->v.epoch_us, digits);
			break;
		default:
			throw_form(column, cell);
	}
	*len = buf.len;
	return buf.data;
}

/* text and varchar(n); a varchar counts characters, and never cuts here. */
Datum
schema_to_text(SchemaColumn *column, const CdcCell *cell)
{
	uint32 len;
	const char *text = cell_text(column, cell, &len, false);

	if (column->typid == VARCHAROID && column->typmod >= (int32) VARHDRSZ)
	{
		uint32 limit = column->typmod - VARHDRSZ;

		if (len > limit && pg_mbstrlen_with_len(text, (int) len) > (int) limit)
			ereport(ERROR,
			        (errcode(ERRCODE_STRING_DATA_RIGHT_TRUNCATION),
			         errmsg("value of column \"%s\" is too long for type %s", column_name(column),
			                format_type_with_typemod(column->typid, column->typmod))));
	}
	return PointerGetDatum(cstring_to_text_with_len(text, (int) len));
}

/*
 * Bring a value into a type through its input function. The error of the
 * function is replaced by one without the value; out of memory, cancellation
 * and limits pass as they are.
 */
Datum
schema_to_input(SchemaColumn *column, const CdcCell *cell)
{
	MemoryContext caller = CurrentMemoryContext;
	uint32 len;
	char *text = unconstify(char *, cell_text(column, cell, &len, true));
	volatile Datum result = (Datum) 0;

	if (column->typid == JSONBOID)
		schema_mend_json(column, text);

	PG_TRY();
	{
		result = InputFunctionCall(&column->input, text, column->typioparam, column->typmod);
	}
	PG_CATCH();
	{
		int sqlstate = geterrcode();
		int category = ERRCODE_TO_CATEGORY(sqlstate);

		if (category == ERRCODE_INSUFFICIENT_RESOURCES ||
		    category == ERRCODE_PROGRAM_LIMIT_EXCEEDED ||
		    category == ERRCODE_OPERATOR_INTERVENTION || category == ERRCODE_SYSTEM_ERROR)
			PG_RE_THROW();

		MemoryContextSwitchTo(caller);
		FlushErrorState();
		if (sqlstate == ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE)
			throw_range(column);
		ereport(
		    ERROR,
		    (errcode(sqlstate),
		     errmsg("value of column \"%s\" is not valid for type %s", column_name(column),
		            format_type_with_typemod(column->typid, column->typmod)),
		     sqlstate == ERRCODE_UNTRANSLATABLE_CHARACTER
		         ? errdetail("\\u0000 in a JSON string, and escapes of characters that the "
		                     "database's encoding does not have, have no form in jsonb.")
		         : 0,
		     sqlstate == ERRCODE_UNTRANSLATABLE_CHARACTER
		         ? errhint("Correct the value on the source, give the target column the type json "
		                   "or text, or set the option \"nul_bytes\" with cdc_alter_pipeline(), "
		                   "then use cdc_resync_table().")
		         : errhint("Correct the value on the source, or give the target column the type "
		                   "text.")));
	}
	PG_END_TRY();
	pfree(text);
	return result;
}

/* ------------------------------------------------------------------ numbers */

/*
 * Value of an integer, year, bit or whole decimal cell; throws when it does not
 * fit into 64 bits.
 */
static int64
cell_int64(SchemaColumn *column, const CdcCell *cell)
{
	uint64 magnitude = 0;
	bool negative = false;

	switch (cell->kind)
	{
		case CDC_CELL_INT:
			return cell->v.i;
		case CDC_CELL_UINT:
			magnitude = cell->v.u;
			break;
		case CDC_CELL_BIT:
			magnitude = bit_value(column, cell);
			break;
		case CDC_CELL_TEXT:
			negative = cell->len > 0 && cell->v.data[0] == '-';
			if (cell->len > 18 + (uint32) negative || cell->len == (uint32) negative)
				throw_range(column);
			for (uint32 i = negative; i < cell->len; i++)
			{
				char c = cell->v.data[i];

				if (c < '0' || c > '9')
					throw_form(column, cell);
				magnitude = magnitude * 10 + (c - '0');
			}
			break;
		default:
			throw_form(column, cell);
	}
	if (magnitude > (uint64) PG_INT64_MAX)
		throw_range(column);
	return negative ? -(int64) magnitude : (int64) magnitude;
}

Datum
schema_to_int2(SchemaColumn *column, const CdcCell *cell)
{
	int64 value = cell_int64(column, cell);

	if (value < PG_INT16_MIN || value > PG_INT16_MAX)
		throw_range(column);
	return Int16GetDatum((int16) value);
}

Datum
schema_to_int4(SchemaColumn *column, const CdcCell *cell)
{
	int64 value = cell_int64(column, cell);

	if (value < PG_INT32_MIN || value > PG_INT32_MAX)
		throw_range(column);
	return Int32GetDatum((int32) value);
}

Datum
schema_to_int8(SchemaColumn *column, const CdcCell *cell)
{
	return Int64GetDatum(cell_int64(column, cell));
}

Datum
schema_to_bool(SchemaColumn *column, const CdcCell *cell)
{
	int64 value = cell_int64(column, cell);

	if (value != 0 && value != 1)
		ereport(
		    ERROR,
		    (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
		     errmsg("value of column \"%s\" is neither 0 nor 1", column_name(column)),
		     errhint(
		         "Give the target column the type smallint, or correct the value on the source.")));
	return BoolGetDatum(value == 1);
}

Datum
schema_to_float4(SchemaColumn *column, const CdcCell *cell)
{
	if (cell->kind != CDC_CELL_FLOAT)
		throw_form(column, cell);
	return Float4GetDatum(cell->v.f4);
}

Datum
schema_to_float8(SchemaColumn *column, const CdcCell *cell)
{
	if (cell->kind == CDC_CELL_DOUBLE)
		return Float8GetDatum(cell->v.f8);
	if (cell->kind == CDC_CELL_FLOAT)
		return Float8GetDatum((double) cell->v.f4);
	return Float8GetDatum((double) cell_int64(column, cell));
}

/* Scale of a numeric's type modifier; -1 when there is none. */
static int
typmod_scale(int32 typmod)
{
	if (typmod < (int32) VARHDRSZ)
		return -1;
	return (((typmod - VARHDRSZ) & 0x7ff) ^ 1024) - 1024;
}

/*
 * A decimal of at most 18 digits is an integer divided by a power of ten, which
 * numeric.c makes faster than anything else. False when the text is longer, or
 * its scale is not the wanted one.
 */
static bool
short_decimal(const SchemaColumn *column, const CdcCell *cell, int64 *value, int *scale)
{
	const char *p = cell->v.data;
	const char *end = p + cell->len;
	bool negative = p < end && *p == '-';
	int digits = 0;
	int64 result = 0;

	*scale = -1;
	for (p += negative; p < end; p++)
	{
		if (*p == '.' && *scale < 0)
			*scale = 0;
		else if (*p >= '0' && *p <= '9')
		{
			if (++digits > 18)
				return false;
			result = result * 10 + (*p - '0');
			if (*scale >= 0)
				(*scale)++;
		}
		else
			throw_form(column, cell);
	}
	if (digits == 0)
		throw_form(column, cell);
	if (*scale < 0)
		*scale = 0;
	*value = negative ? -result : result;
	return true;
}

Datum
schema_to_numeric(SchemaColumn *column, const CdcCell *cell)
{
	int want = typmod_scale(column->typmod);
	int scale;
	int64 value;

	switch (cell->kind)
	{
		case CDC_CELL_INT:
			if (want <= 0)
				return NumericGetDatum(int64_to_numeric(cell->v.i));
			break;
		case CDC_CELL_UINT:
			if (want <= 0 && cell->v.u <= (uint64) PG_INT64_MAX)
				return NumericGetDatum(int64_to_numeric((int64) cell->v.u));
			break;
		case CDC_CELL_TEXT:
			if (short_decimal(column, cell, &value, &scale) && (want < 0 || want == scale))
				return NumericGetDatum(scale == 0 ? int64_to_numeric(value)
				                                  : int64_div_fast_to_numeric(value, scale));
			break;
		default:
			break;
	}
	return schema_to_input(column, cell);
}

/* bit(n) and varbit: the cell is aligned to its last bit, PostgreSQL's to the first. */
Datum
schema_to_bits(SchemaColumn *column, const CdcCell *cell)
{
	int nbits = (int) column->def->length;
	uint64 value = bit_value(column, cell);
	int size = VARBITTOTALLEN(nbits);
	VarBit *bits;

	if (nbits < 1 || nbits > 64 || (nbits < 64 && value >> nbits != 0))
		throw_form(column, cell);
	bits = palloc0(size);
	SET_VARSIZE(bits, size);
	VARBITLEN(bits) = nbits;
	value <<= 64 - nbits;
	for (int i = 0; i < (int) VARBITBYTES(bits); i++)
		VARBITS(bits)[i] = (bits8) (value >> (56 - 8 * i));
	return VarBitPGetDatum(bits);
}

/* ----------------------------------------------------------- dates and times */

bool
schema_is_real_date(int year, int month, int day)
{
	return year >= 0 && month >= 1 && month <= 12 && day >= 1 &&
	       day <= day_tab[isleap(year)][month - 1];
}

/* Days since 2000-01-01; false when the calendar does not have the date. */
static bool
cell_days(const CdcTimeParts *t, int *days)
{
	if (!schema_is_real_date(t->year, t->month, t->day))
		return false;
	*days = date2j(t->year, t->month, t->day) - POSTGRES_EPOCH_JDATE;
	return true;
}

static int64
clock_us(const CdcTimeParts *t)
{
	return ((int64) t->hour * 3600 + t->minute * 60 + t->second) * USECS_PER_SEC + t->micro;
}

Datum
schema_to_date(SchemaColumn *column, const CdcCell *cell)
{
	int days;

	if (cell->kind != CDC_CELL_DATE)
		throw_form(column, cell);
	return cell_days(&cell->v.time, &days) ? DateADTGetDatum(days) : schema_replace_date(column);
}

Datum
schema_to_interval(SchemaColumn *column, const CdcCell *cell)
{
	Interval *span;

	if (cell->kind != CDC_CELL_TIME)
		throw_form(column, cell);
	span = palloc0(sizeof(Interval));
	span->time = clock_us(&cell->v.time);
	if (cell->v.time.negative)
		span->time = -span->time;
	return IntervalPGetDatum(span);
}

Datum
schema_to_time(SchemaColumn *column, const CdcCell *cell)
{
	int64 us;

	if (cell->kind != CDC_CELL_TIME)
		throw_form(column, cell);
	us = clock_us(&cell->v.time);
	if ((cell->v.time.negative && us != 0) || us > USECS_PER_DAY)
		ereport(ERROR, (errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
		                errmsg("value of column \"%s\" is not a time of day", column_name(column)),
		                errhint("Give the target column the type interval: the source's type holds "
		                        "spans of up to 838 hours.")));
	return TimeADTGetDatum(us);
}

/*
 * timestamp and timestamptz, the same numbers: a source timestamp is a point in
 * time and is shown in UTC by a timestamp; a source datetime has no zone and is
 * taken as UTC by a timestamptz.
 */
Datum
schema_to_timestamp(SchemaColumn *column, const CdcCell *cell)
{
	int days;

	switch (cell->kind)
	{
		case CDC_CELL_DATE:
		case CDC_CELL_DATETIME:
			if (!cell_days(&cell->v.time, &days))
				return schema_replace_date(column);
			return TimestampGetDatum((int64) days * USECS_PER_DAY + clock_us(&cell->v.time));
		case CDC_CELL_TIMESTAMP:
			if (cell->v.epoch_us == CDC_ZERO_TIMESTAMP)
				return schema_replace_date(column);
			return TimestampGetDatum(cell->v.epoch_us - UNIX_TO_POSTGRES_US);
		default:
			throw_form(column, cell);
	}
}

/* --------------------------------------------------------------------- rest */

Datum
schema_to_bytea(SchemaColumn *column, const CdcCell *cell)
{
	const char *data = cell->v.data;
	uint32 len = cell->len;

	if (cell->kind == CDC_CELL_GEOMETRY)
		data = geometry_ewkb(column, cell, &len);
	else if (cell->kind != CDC_CELL_BYTES)
		throw_form(column, cell);
	if (len > MaxAllocSize - VARHDRSZ)
		throw_size(column);
	return PointerGetDatum(cstring_to_text_with_len(len > 0 ? data : "", (int) len));
}

static int
hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	                              : -1;
}

/* uuid of 16 bytes or of the usual 36 characters; other spellings through the input function. */
Datum
schema_to_uuid(SchemaColumn *column, const CdcCell *cell)
{
	pg_uuid_t *uuid;
	const char *p = cell->v.data;

	if (cell->kind == CDC_CELL_BYTES)
	{
		if (cell->len != UUID_LEN)
			ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			                errmsg("value of column \"%s\" is not valid for type uuid",
			                       column_name(column)),
			                errdetail("It has %u bytes instead of %d.", cell->len, UUID_LEN)));
		uuid = palloc(sizeof(pg_uuid_t));
		memcpy(uuid->data, cell->v.data, UUID_LEN);
		return UUIDPGetDatum(uuid);
	}
	if (cell->kind != CDC_CELL_TEXT)
		throw_form(column, cell);
	if (cell->len != 36)
		return schema_to_input(column, cell);

	uuid = palloc(sizeof(pg_uuid_t));
	for (int i = 0; i < UUID_LEN; i++, p += 2)
	{
		if (i == 4 || i == 6 || i == 8 || i == 10)
		{
			if (*p != '-')
				return schema_to_input(column, cell);
			p++;
		}
		if (hex_digit(p[0]) < 0 || hex_digit(p[1]) < 0)
			return schema_to_input(column, cell);
		uuid->data[i] = (unsigned char) (hex_digit(p[0]) << 4 | hex_digit(p[1]));
	}
	return UUIDPGetDatum(uuid);
}

Datum
schema_to_real_array(SchemaColumn *column, const CdcCell *cell)
{
	int n = (int) (cell->len / 4);
	Datum *elements;

	if (cell->kind != CDC_CELL_VECTOR || cell->len % 4 != 0)
		throw_form(column, cell);
	elements = palloc(Max(n, 1) * sizeof(Datum));
	for (int i = 0; i < n; i++)
		elements[i] = Float4GetDatum(vector_element(cell, (uint32) i));
	return PointerGetDatum(
	    construct_array(elements, n, FLOAT4OID, sizeof(float4), true, TYPALIGN_INT));
}

static Datum
cell_to_datum(SchemaColumn *column, const CdcCell *cell, bool *isnull)
{
	Datum value = (Datum) 0;

	column->replaced = false;
	column->made_null = false;
	*isnull = cell->kind == CDC_CELL_NULL;
	if (!*isnull)
	{
		value = column->convert(column, cell);
		*isnull = column->made_null;
	}
	if (OidIsValid(column->domain))
		domain_check(value, *isnull, column->domain, &column->domain_cache, column->cxt);
	return value;
}

/*
 * Value of a cell, see type_map.h. A domain's constraints are checked here
 * because nothing behind us would. They are code of whoever made the domain, and
 * run as the table's owner, who may not get at anything of ours (heap_target.c).
 */
Datum
schema_cell_to_datum(SchemaColumn *column, const CdcCell *cell, bool *isnull)
{
	UtilRoleSwitch sw;
	Datum value;

	if (likely(!OidIsValid(column->run_as)))
		return cell_to_datum(column, cell, isnull);

	util_role_switch_begin(column->run_as, &sw);
	value = cell_to_datum(column, cell, isnull);
	util_role_switch_end(&sw);
	return value;
}

const char *
schema_cell_text(const CdcColumnDef *def, const CdcCell *cell, uint32 *len)
{
	SchemaColumn column = {.def = def};

	return cell_text(&column, cell, len, false);
}
