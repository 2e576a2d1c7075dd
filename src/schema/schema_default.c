/*-------------------------------------------------------------------------
 *
 * schema_default.c
 *	  The value that a source column gets in a row that is inserted without it.
 *
 * NOTES
 *	  Row images of binlog_row_image = MINIMAL leave out what a statement did not
 *	  give and the server filled in with a constant. What the server computed (an
 *	  expression, CURRENT_TIMESTAMP, AUTO_INCREMENT, generated columns) it logs; seen
 *	  from MySQL 9.7 and MariaDB 10.11. So a column that is left out has its
 *	  declared literal; without a default NULL, or, when it cannot be NULL and
 *	  the session was not strict, the zero of its type.
 *
 *	  Not every default can be had from how information_schema prints it: binary
 *	  strings are cut at a zero byte, FLOAT is rounded to six digits.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "mysql/mysql_text.h"
#include "schema/schema_private.h"
#include "schema/type_map.h"

/* Most digits of a FLOAT default that cannot have been rounded. */
#define FLOAT_EXACT_DIGITS 5

static int
count_digits(const char *text)
{
	int digits = 0;

	for (; *text != '\0' && *text != 'e' && *text != 'E'; text++)
	{
		/* zeros at the end may stand for digits that were rounded away */
		if (isdigit((unsigned char) *text) && (digits > 0 || *text != '0'))
			digits++;
	}
	return digits;
}

static bool
text_cell(const CdcColumnDef *column, const char *text, CdcCell *cell)
{
	/* as UTF-8, whatever the column's character set: the server has converted it */
	cell->kind = CDC_CELL_TEXT;
	cell->len = (uint32) strlen(text);
	cell->v.data = text;
	while (column->type == CDC_TYPE_CHAR && cell->len > 0 && text[cell->len - 1] == ' ')
		cell->len--;
	return true;
}

/* Text that the server sends for a value of such a column. */
static bool
read_text(const CdcColumnDef *column, const char *text, CdcArena *arena, CdcCell *cell)
{
	CdcError err;

	return mysql_text_to_cell(column, text, (uint32) strlen(text), arena, cell, &err) == CDC_OK;
}

/* The declared default; false when it cannot be had. */
static bool
declared_cell(const CdcColumnDef *column, CdcArena *arena, CdcCell *cell)
{
	const char *text = column->default_text;
	uint64 bits;

	if (column->default_is_expr)
		return false;
	switch (column->type)
	{
		case CDC_TYPE_TINYINT:
		case CDC_TYPE_SMALLINT:
		case CDC_TYPE_MEDIUMINT:
		case CDC_TYPE_INT:
		case CDC_TYPE_BIGINT:
		case CDC_TYPE_YEAR:
		case CDC_TYPE_BIT:
			if (schema_bits_literal(text, &bits))
				text = psprintf(UINT64_FORMAT, bits);
			return read_text(column, text, arena, cell);
		case CDC_TYPE_FLOAT:
			return count_digits(text) <= FLOAT_EXACT_DIGITS && read_text(column, text, arena, cell);
		case CDC_TYPE_DOUBLE:
		case CDC_TYPE_DATE:
		case CDC_TYPE_TIME:
		case CDC_TYPE_DATETIME:
		case CDC_TYPE_TIMESTAMP:
		case CDC_TYPE_UUID:
		case CDC_TYPE_INET4:
		case CDC_TYPE_INET6:
			return read_text(column, text, arena, cell);
		case CDC_TYPE_DECIMAL:
		{
			const char *point = strchr(text, '.');
			int scale = point != NULL ? (int) strlen(point + 1) : 0;

			/* MariaDB prints it as it was declared: the value has all digits of the column's scale */
			if (scale > column->scale)
				return false;
			if (scale < column->scale)
				text = psprintf("%s%s%0*d", text, point != NULL ? "" : ".", column->scale - scale, 0);
			return read_text(column, text, arena, cell);
		}
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
		case CDC_TYPE_TEXT:
		case CDC_TYPE_ENUM:
		case CDC_TYPE_SET:
			return text_cell(column, text, cell);
		default:
			return false;
	}
}

/* What a column that cannot be NULL gets when nobody says anything; false when there is no such thing. */
static bool
implicit_cell(const CdcColumnDef *column, CdcArena *arena, CdcCell *cell)
{
	switch (column->type)
	{
		case CDC_TYPE_TINYINT:
		case CDC_TYPE_SMALLINT:
		case CDC_TYPE_MEDIUMINT:
		case CDC_TYPE_INT:
		case CDC_TYPE_BIGINT:
		case CDC_TYPE_YEAR:
		case CDC_TYPE_BIT:
		case CDC_TYPE_FLOAT:
		case CDC_TYPE_DOUBLE:
			return read_text(column, "0", arena, cell);
		case CDC_TYPE_DECIMAL:
			return read_text(column, column->scale == 0 ? "0" : psprintf("0.%0*d", column->scale, 0), arena, cell);
		case CDC_TYPE_DATE:
			return read_text(column, "0000-00-00", arena, cell);
		case CDC_TYPE_TIME:
			return read_text(column, "00:00:00", arena, cell);
		case CDC_TYPE_DATETIME:
		case CDC_TYPE_TIMESTAMP:
			return read_text(column, "0000-00-00 00:00:00", arena, cell);
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
		case CDC_TYPE_TEXT:
		case CDC_TYPE_SET:
		case CDC_TYPE_BINARY:
		case CDC_TYPE_VARBINARY:
		case CDC_TYPE_BLOB:
			return read_text(column, "", arena, cell);
		case CDC_TYPE_ENUM:
			/* a question mark may stand for a character that information_schema cannot show */
			if (column->nlabels == 0 || memchr(column->labels[0].data, '?', column->labels[0].len) != NULL)
				return false;
			cell->kind = CDC_CELL_TEXT;
			cell->len = column->labels[0].len;
			cell->v.data = column->labels[0].data;
			return true;
		default:
			return false;
	}
}

bool
schema_default_cell(const CdcColumnDef *column, CdcArena *arena, CdcCell *cell)
{
	memset(cell, 0, sizeof(*cell));
	cell->kind = CDC_CELL_NULL;
	if (column->is_generated || column->auto_increment)
		return false;
	if (column->default_text != NULL)
		return declared_cell(column, arena, cell);
	return column->nullable || implicit_cell(column, arena, cell);
}
