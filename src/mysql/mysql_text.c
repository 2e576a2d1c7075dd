/*-------------------------------------------------------------------------
 *
 * mysql_text.c
 *	  Reading a column by SELECT so that it gives the same cell as the binary
 *	  log.
 *
 * NOTES
 *	  The session is set up with utf8mb4, time_zone '+00:00' and an empty
 *	  sql_mode (mysql_session_open); what stands here relies on that.
 *
 *	  Character columns in another set than utf8mb4 are read as the bytes that
 *	  are stored (CAST AS BINARY) and go through binlog/charset.h, the same
 *	  code that the stream's values take. The server's own conversion would
 *	  turn what it cannot convert into question marks.
 *
 *	  Real numbers are read as DOUBLE without a declared number of decimals: a
 *	  FLOAT's own text is rounded to six digits, that of FLOAT(7,3) to three
 *	  decimals. BIT is read as a number.
 *
 *	  Keys. The bare column is what the index is ordered by, so it is what pages
 *	  are ordered by and compared with; an expression around it would make
 *	  the server sort the whole table for each page. ENUM and SET columns are
 *	  ordered by their number, and compared by it when the other side is a
 *	  number (seen on MariaDB 10.11 and MySQL 9.7: the index gives the order,
 *	  the condition filters). All other types use a range of the index.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "lib/stringinfo.h"
#include "utils/datetime.h"
#include "utils/timestamp.h"

#include "binlog/charset.h"
#include "mysql/mysql_text.h"

/*
 * Is a character set by its collation another one than utf8mb4? Asked for each
 * value, so the answer is kept.
 */
static bool
is_other_charset(uint32 collation)
{
	enum { UNKNOWN, UTF8MB4, OTHER };
	static uint8 known[1024];
	const char *charset;
	bool is_other;

	if (collation < lengthof(known) && known[collation] != UNKNOWN)
		return known[collation] == OTHER;
	charset = binlog_charset_name(collation);
	is_other = charset != NULL && strcmp(charset, "utf8mb4") != 0;
	if (collation < lengthof(known))
		known[collation] = is_other ? OTHER : UTF8MB4;
	return is_other;
}

/*
 * Is the column read as stored bytes, to be transcoded here? That the set is
 * supported was checked when the table was taken in.
 */
static bool
is_transcoded(const CdcColumnDef *column)
{
	return cdc_type_is_text(column->type) && is_other_charset(column->collation);
}

char *
mysql_text_expression(const CdcColumnDef *column, MysqlFlavor flavor)
{
	char *name = mysql_quote_identifier(column->name);

	switch (column->type)
	{
		case CDC_TYPE_FLOAT:
		case CDC_TYPE_DOUBLE:
			return psprintf("CAST(%s AS DOUBLE)", name);
		case CDC_TYPE_BIT:
			return psprintf("CAST(%s AS UNSIGNED)", name);
		default:
			return is_transcoded(column) ? psprintf("CAST(%s AS BINARY)", name) : name;
	}
}

/* ------------------------------------------------------------ text -> cell */

static CdcStatus
fail_text(const CdcColumnDef *column, CdcError *err)
{
	return cdc_fail(err, CDC_MALFORMED, 0, "unexpected text for column \"%s\" of type %s",
	                column->name, cdc_type_name(column->type));
}

/* Digits that fit into 64 bits whatever they are. */
#define SAFE_DIGITS 19

/* Digits up to the end or the first other character; false when there are none or too many. */
static inline bool
parse_digits(const char **pos, const char *end, uint64 *value)
{
	const char *p = *pos;
	const char *safe = end - p > SAFE_DIGITS ? p + SAFE_DIGITS : end;
	uint64 sum = 0;

	for (; p < safe && *p >= '0' && *p <= '9'; p++)
		sum = sum * 10 + (uint64) (*p - '0');
	for (; p < end && *p >= '0' && *p <= '9'; p++)
	{
		uint64 digit = (uint64) (*p - '0');

		if (sum > (PG_UINT64_MAX - digit) / 10)
			return false;
		sum = sum * 10 + digit;
	}
	*value = sum;
	if (p == *pos)
		return false;
	*pos = p;
	return true;
}

/* One number of a date or a clock, then the given separator (0: none). */
static bool
parse_part(const char **pos, const char *end, uint64 max, char separator, uint64 *value)
{
	if (!parse_digits(pos, end, value) || *value > max)
		return false;
	if (separator == '\0')
		return true;
	if (*pos == end || **pos != separator)
		return false;
	(*pos)++;
	return true;
}

static bool
parse_date(const char **pos, const char *end, CdcTimeParts *t)
{
	uint64 year, month, day;

	if (!parse_part(pos, end, 9999, '-', &year) || !parse_part(pos, end, 12, '-', &month) ||
	    !parse_part(pos, end, 31, '\0', &day))
		return false;
	t->year = (uint16_t) year;
	t->month = (uint8_t) month;
	t->day = (uint8_t) day;
	return true;
}

/* HH:MM:SS[.fraction] up to the end. */
static bool
parse_clock(const char *p, const char *end, uint64 max_hour, CdcTimeParts *t)
{
	uint64 hour, minute, second;
	uint32 unit = 100000;

	if (!parse_part(&p, end, max_hour, ':', &hour) || !parse_part(&p, end, 59, ':', &minute) ||
	    !parse_part(&p, end, 59, '\0', &second))
		return false;
	t->hour = (uint16_t) hour;
	t->minute = (uint8_t) minute;
	t->second = (uint8_t) second;
	if (p == end)
		return true;
	if (*p++ != '.')
		return false;
	for (; p < end; p++, unit /= 10)
	{
		if (*p < '0' || *p > '9')
			return false;
		t->micro += (uint32) (*p - '0') * unit;
	}
	return true;
}

/* DATE, TIME, DATETIME and TIMESTAMP (which is shown in UTC). */
static CdcStatus
parse_temporal(const CdcColumnDef *column, const char *p, const char *end, CdcCell *cell,
               CdcError *err)
{
	CdcTimeParts t = {0};

	if (column->type == CDC_TYPE_TIME)
	{
		t.negative = p < end && *p == '-';
		if (!parse_clock(p + t.negative, end, 838, &t))
			return fail_text(column, err);
		/* The log has no negative zero. */
		if (t.hour == 0 && t.minute == 0 && t.second == 0 && t.micro == 0)
			t.negative = false;
		cell->kind = CDC_CELL_TIME;
		cell->v.time = t;
		return CDC_OK;
	}

	if (!parse_date(&p, end, &t))
		return fail_text(column, err);
	if (column->type == CDC_TYPE_DATE)
	{
		if (p != end)
			return fail_text(column, err);
		cell->kind = CDC_CELL_DATE;
		cell->v.time = t;
		return CDC_OK;
	}
	if (p == end || *p != ' ' || !parse_clock(p + 1, end, 23, &t))
		return fail_text(column, err);
	if (column->type == CDC_TYPE_DATETIME)
	{
		cell->kind = CDC_CELL_DATETIME;
		cell->v.time = t;
		return CDC_OK;
	}

	cell->kind = CDC_CELL_TIMESTAMP;
	if (t.month == 0 || t.day == 0)
		cell->v.epoch_us = CDC_ZERO_TIMESTAMP;
	else
		cell->v.epoch_us =
		    (int64) (date2j(t.year, t.month, t.day) - UNIX_EPOCH_JDATE) * USECS_PER_DAY +
		    ((int64) t.hour * 3600 + t.minute * 60 + t.second) * USECS_PER_SEC + t.micro;
	return CDC_OK;
}

static CdcStatus
parse_integer(const CdcColumnDef *column, const char *p, const char *end, CdcCell *cell,
              CdcError *err)
{
	bool negative = p < end && *p == '-';
	uint64 magnitude;

	p += negative;
	if (!parse_digits(&p, end, &magnitude) || p != end)
		return fail_text(column, err);
	if (column->is_unsigned || column->type == CDC_TYPE_YEAR)
	{
		if (negative)
			return fail_text(column, err);
		cell->kind = CDC_CELL_UINT;
		cell->v.u = magnitude;
		return CDC_OK;
	}
	if (magnitude > (uint64) PG_INT64_MAX + negative)
		return fail_text(column, err);
	cell->kind = CDC_CELL_INT;
	cell->v.i = negative ? (int64) (-magnitude) : (int64) magnitude;
	return CDC_OK;
}

/* DECIMAL: drop ZEROFILL's zeros and the sign of a zero. */
static CdcStatus
parse_decimal(const CdcColumnDef *column, const char *p, const char *end, CdcArena *arena,
              CdcCell *cell, CdcError *err)
{
	bool negative = p < end && *p == '-';
	bool is_zero = true;
	char *text;

	p += negative;
	if (p == end)
		return fail_text(column, err);
	for (const char *q = p; q < end; q++)
	{
		if ((*q < '0' || *q > '9') && *q != '.')
			return fail_text(column, err);
		if (*q >= '1' && *q <= '9')
			is_zero = false;
	}
	while (end - p > 1 && p[0] == '0' && p[1] != '.')
		p++;

	cell->kind = CDC_CELL_TEXT;
	cell->len = (uint32_t) (end - p);
	cell->v.data = p;
	if ((!negative || is_zero) && *p != '.')
		return CDC_OK;

	text = cdc_arena_alloc(arena, (size_t) (end - p) + 2);
	if (text == NULL)
		return cdc_fail(err, CDC_NOMEM, 0, "out of memory");
	cell->v.data = text;
	if (negative && !is_zero)
		*text++ = '-';
	if (*p == '.')
		*text++ = '0';
	memcpy(text, p, (size_t) (end - p));
	cell->len = (uint32_t) (text - cell->v.data) + (uint32_t) (end - p);
	return CDC_OK;
}

static CdcStatus
parse_real(const CdcColumnDef *column, const char *p, const char *end, CdcCell *cell, CdcError *err)
{
	char *stop;
	double value = strtod(p, &stop);

	if (p == end || stop != end || isnan(value) || isinf(value))
		return fail_text(column, err);
	if (column->type == CDC_TYPE_FLOAT)
	{
		cell->kind = CDC_CELL_FLOAT;
		cell->v.f4 = (float) value;
	}
	else
	{
		cell->kind = CDC_CELL_DOUBLE;
		cell->v.f8 = value;
	}
	return CDC_OK;
}

static CdcStatus
parse_bit(const CdcColumnDef *column, const char *p, const char *end, CdcArena *arena,
          CdcCell *cell, CdcError *err)
{
	uint64 value;
	uint32 nbytes = (column->length + 7) / 8;
	char *bytes;

	if (!parse_digits(&p, end, &value) || p != end || nbytes < 1 || nbytes > 8)
		return fail_text(column, err);
	bytes = cdc_arena_alloc(arena, nbytes);
	if (bytes == NULL)
		return cdc_fail(err, CDC_NOMEM, 0, "out of memory");
	for (uint32 i = 0; i < nbytes; i++)
		bytes[i] = (char) (value >> 8 * (nbytes - 1 - i));
	cell->kind = CDC_CELL_BIT;
	cell->len = nbytes;
	cell->v.data = bytes;
	return CDC_OK;
}

static CdcStatus
parse_character(const CdcColumnDef *column, const char *value, uint32 len, CdcArena *arena,
                CdcCell *cell, CdcError *err)
{
	cell->kind = CDC_CELL_TEXT;
	cell->len = len;
	cell->v.data = value;
	if (is_transcoded(column))
	{
		CdcStatus status =
		    binlog_charset_mend(column->collation, (const uint8_t *) value, len, arena,
		                        &cell->v.data, &cell->len, &cell->invalid, err);

		if (status != CDC_OK)
			return status;
	}
	if (column->type == CDC_TYPE_CHAR)
	{
		while (cell->len > 0 && cell->v.data[cell->len - 1] == ' ')
			cell->len--;
	}
	return CDC_OK;
}

/* BINARY(n): the server sends all n bytes; make sure of it. */
static CdcStatus
parse_binary(const CdcColumnDef *column, const char *value, uint32 len, CdcArena *arena,
             CdcCell *cell, CdcError *err)
{
	cell->kind = CDC_CELL_BYTES;
	cell->len = len;
	cell->v.data = value;
	if (column->type == CDC_TYPE_BINARY && len < column->length)
	{
		char *padded = cdc_arena_zalloc(arena, column->length);

		if (padded == NULL)
			return cdc_fail(err, CDC_NOMEM, 0, "out of memory");
		memcpy(padded, value, len);
		cell->len = column->length;
		cell->v.data = padded;
	}
	return CDC_OK;
}

/*
 * Turn the text of mysql_text_expression into a cell. Pointers in the cell lead
 * into value or the arena.
 */
CdcStatus
mysql_text_to_cell(const CdcColumnDef *column, const char *value, uint32 len, CdcArena *arena,
                   CdcCell *cell, CdcError *err)
{
	const char *end = value + len;

	memset(cell, 0, sizeof(*cell));
	cell->kind = CDC_CELL_NULL;
	if (value == NULL)
		return CDC_OK;

	switch (column->type)
	{
		case CDC_TYPE_TINYINT:
		case CDC_TYPE_SMALLINT:
		case CDC_TYPE_MEDIUMINT:
		case CDC_TYPE_INT:
		case CDC_TYPE_BIGINT:
		case CDC_TYPE_YEAR:
			return parse_integer(column, value, end, cell, err);
		case CDC_TYPE_FLOAT:
		case CDC_TYPE_DOUBLE:
			return parse_real(column, value, end, cell, err);
		case CDC_TYPE_DECIMAL:
			return parse_decimal(column, value, end, arena, cell, err);
		case CDC_TYPE_BIT:
			return parse_bit(column, value, end, arena, cell, err);
		case CDC_TYPE_DATE:
		case CDC_TYPE_TIME:
		case CDC_TYPE_DATETIME:
		case CDC_TYPE_TIMESTAMP:
			return parse_temporal(column, value, end, cell, err);
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
		case CDC_TYPE_TEXT:
		case CDC_TYPE_ENUM:
		case CDC_TYPE_SET:
			return parse_character(column, value, len, arena, cell, err);
		case CDC_TYPE_BINARY:
		case CDC_TYPE_VARBINARY:
		case CDC_TYPE_BLOB:
			return parse_binary(column, value, len, arena, cell, err);
		case CDC_TYPE_JSON:
		case CDC_TYPE_UUID:
		case CDC_TYPE_INET4:
		case CDC_TYPE_INET6:
			cell->kind = CDC_CELL_TEXT;
			break;
		case CDC_TYPE_GEOMETRY:
			cell->kind = CDC_CELL_GEOMETRY;
			break;
		case CDC_TYPE_VECTOR:
			cell->kind = CDC_CELL_VECTOR;
			break;
		case CDC_TYPE_UNKNOWN:
			return cdc_fail(err, CDC_UNSUPPORTED, 0, "column \"%s\" has an unknown type",
			                column->name);
	}
	cell->len = len;
	cell->v.data = value;
	return CDC_OK;
}

/* ------------------------------------------------------------------- paging */

char *
mysql_key_order_expression(const CdcColumnDef *column, MysqlFlavor flavor)
{
	return mysql_quote_identifier(column->name);
}

char *
mysql_key_value_expression(const CdcColumnDef *column, MysqlFlavor flavor)
{
	char *name = mysql_quote_identifier(column->name);

	switch (column->type)
	{
		case CDC_TYPE_FLOAT:
		case CDC_TYPE_DOUBLE:
			return psprintf("CAST(%s AS DOUBLE)", name);
		case CDC_TYPE_BIT:
			return psprintf("CAST(%s AS UNSIGNED)", name);
		case CDC_TYPE_ENUM:
		case CDC_TYPE_SET:
			return psprintf("%s + 0", name);
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
		case CDC_TYPE_TEXT:
		case CDC_TYPE_BINARY:
		case CDC_TYPE_VARBINARY:
		case CDC_TYPE_BLOB:
			return psprintf("HEX(%s)", name);
		default:
			return name;
	}
}

/* What goes into a statement unquoted has only these characters, whatever the server sent. */
static const char *
checked_value(const CdcColumnDef *column, const char *value, uint32 len, const char *allowed)
{
	char *copy = pnstrdup(value, len);

	if (len == 0 || strlen(copy) != len || strspn(copy, allowed) != len)
		ereport(ERROR, (errcode(ERRCODE_FDW_INVALID_DATA_TYPE),
		                errmsg("unexpected form of a key value in column \"%s\"", column->name)));
	return copy;
}

char *
mysql_key_literal(const CdcColumnDef *column, MysqlFlavor flavor, const char *value, uint32 len)
{
	const char *text;

	switch (column->type)
	{
		case CDC_TYPE_FLOAT:
		case CDC_TYPE_DOUBLE:
			/* Only an exponent makes a DOUBLE; 1.5 alone would be a DECIMAL. */
			text = checked_value(column, value, len, "0123456789+-.e");
			return psprintf("%s%s", text, strchr(text, 'e') == NULL ? "e0" : "");

		case CDC_TYPE_TINYINT:
		case CDC_TYPE_SMALLINT:
		case CDC_TYPE_MEDIUMINT:
		case CDC_TYPE_INT:
		case CDC_TYPE_BIGINT:
		case CDC_TYPE_YEAR:
		case CDC_TYPE_DECIMAL:
		case CDC_TYPE_BIT:
		case CDC_TYPE_ENUM:
		case CDC_TYPE_SET:
			return pstrdup(checked_value(column, value, len, "0123456789-."));

		case CDC_TYPE_BINARY:
		case CDC_TYPE_VARBINARY:
		case CDC_TYPE_BLOB:
			text = len == 0 ? "" : checked_value(column, value, len, "0123456789ABCDEF");
			return psprintf("_binary x'%s'", text);

		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
		case CDC_TYPE_TEXT:
		{
			const char *charset = binlog_charset_name(column->collation);

			if (charset == NULL)
				ereport(ERROR,
				        (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				         errmsg("character set of key column \"%s\" is not known", column->name)));
			/* The column's collation decides the comparison: a literal's is weaker. */
			text = len == 0 ? "" : checked_value(column, value, len, "0123456789ABCDEF");
			return psprintf("_%s x'%s'", charset, text);
		}

		default:
			/* Dates and times (a typed literal would refuse zero dates), UUID, INET. */
			text = checked_value(column, value, len, "0123456789abcdefABCDEF-:. ");
			return psprintf("'%s'", text);
	}
}
