/*-------------------------------------------------------------------------
 *
 * format_value.c
 *	  Cells and rows as JSON: what all formats that are JSON share.
 *
 * NOTES
 *	  Every value can be told back from its text: integers are numbers with all
 *	  their digits, also beyond 2^53; floats have the fewest digits that read back;
 *	  NaN and the infinities, for which JSON has no number, are strings; so are
 *	  numeric (unless numbers are wanted), dates, times and everything that only
 *	  its output function knows.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "format/format.h"

#include <math.h>
#include <string.h>

#include "format/iso_time.h"
#include "format/json_text.h"

/* Arrays have at most six dimensions. */
#define LIST_DEPTH_MAX 8

static void
add_double(CdcFormat *format, double value, bool is_float, CdcBuf *out)
{
	char		text[CDC_FORMAT_NUMBER_MAX];
	int			len;

	if (isnan(value))
		cdc_buf_add_str(out, "\"NaN\"");
	else if (isinf(value))
		cdc_buf_add_str(out, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
	else
	{
		len = is_float ? format->options.float_text((float) value, text) : format->options.double_text(value, text);
		cdc_buf_add(out, text, (size_t) len);
	}
}

/* Digits, and not NaN or an infinity? */
static bool
is_number(const char *text, size_t len)
{
	size_t		first = len > 0 && text[0] == '-';

	return first < len && text[first] >= '0' && text[first] <= '9';
}

static void
add_text(CdcFormat *format, const CdcOutColumn *column, const CdcCell *cell, CdcBuf *out)
{
	if (column->type == CDC_OUT_NUMERIC && format->options.numeric_as_number && is_number(cell->v.data, cell->len))
		cdc_buf_add(out, cell->v.data, cell->len);
	else if (column->type == CDC_OUT_JSON && format->options.json_embedded)
		json_add_document(out, cell->v.data, cell->len);
	else
		json_add_string(out, cell->v.data, cell->len);
}

static void
add_bytes(CdcFormat *format, const void *data, size_t len, CdcBuf *out)
{
	if (format->options.bytes_as_hex)
		json_add_hex(out, data, len);
	else
		json_add_base64(out, data, len);
}

static void
add_unavailable(CdcFormat *format, const CdcOutColumn *column, CdcBuf *out)
{
	const char *text = format->options.unavailable;

	if (column->is_list)
		cdc_buf_add_char(out, '[');
	if (column->type == CDC_OUT_BYTES)
		add_bytes(format, text, strlen(text), out);
	else
		json_add_cstring(out, text);
	if (column->is_list)
		cdc_buf_add_char(out, ']');
}

static void
add_cell(CdcFormat *format, const CdcOutColumn *column, const CdcCell *cell, int depth, CdcBuf *out)
{
	char		text[ISO_TIME_MAX];
	size_t		len;

	switch (cell->kind)
	{
		case CDC_CELL_NULL:
			cdc_buf_add(out, "null", 4);
			return;
		case CDC_CELL_BOOL:
			cdc_buf_add_str(out, cell->v.i ? "true" : "false");
			return;
		case CDC_CELL_INT:
			json_add_int(out, cell->v.i);
			return;
		case CDC_CELL_UINT:
			json_add_uint(out, cell->v.u);
			return;
		case CDC_CELL_FLOAT:
			add_double(format, (double) cell->v.f4, true, out);
			return;
		case CDC_CELL_DOUBLE:
			add_double(format, cell->v.f8, false, out);
			return;
		case CDC_CELL_TEXT:
			add_text(format, column, cell, out);
			return;
		case CDC_CELL_BYTES:
			add_bytes(format, cell->v.data, cell->len, out);
			return;
		case CDC_CELL_DAYS:
			len = iso_date((int32_t) cell->v.i, text);
			json_add_string(out, text, len);
			return;
		case CDC_CELL_MICROS:
			len = column->type == CDC_OUT_TIME ? iso_time(cell->v.i, text)
				: iso_timestamp(cell->v.i, column->type == CDC_OUT_TIMESTAMPTZ, text);
			json_add_string(out, text, len);
			return;
		case CDC_CELL_UNCHANGED:
			add_unavailable(format, column, out);
			return;
		case CDC_CELL_LIST:
			if (depth >= LIST_DEPTH_MAX)
				break;
			cdc_buf_add_char(out, '[');
			for (uint32_t i = 0; i < cell->v.list->count; i++)
			{
				if (i > 0)
					cdc_buf_add_char(out, ',');
				add_cell(format, column, &cell->v.list->cells[i], depth + 1, out);
			}
			cdc_buf_add_char(out, ']');
			return;
		default:
			break;
	}
	if (out->status == CDC_OK)
		out->status = CDC_UNSUPPORTED;
}

void
format_add_cell(CdcFormat *format, const CdcOutColumn *column, const CdcCell *cell, CdcBuf *out)
{
	add_cell(format, column, cell, 0, out);
}

void
format_add_row(CdcFormat *format, const CdcOutTable *table, const CdcCell *row, bool placeholders, CdcBuf *out)
{
	bool		first = true;

	cdc_buf_add_char(out, '{');
	for (uint32_t i = 0; i < table->ncolumns; i++)
	{
		if (row[i].kind == CDC_CELL_ABSENT || (row[i].kind == CDC_CELL_UNCHANGED && !placeholders))
			continue;
		if (!first)
			cdc_buf_add_char(out, ',');
		first = false;
		json_add_name(out, table->columns[i].name);
		add_cell(format, &table->columns[i], &row[i], 0, out);
	}
	cdc_buf_add_char(out, '}');
}

static void
add_columns(CdcFormat *format, const CdcOutTable *table, uint32_t n, const uint32_t *columns, const CdcCell *row, CdcBuf *out)
{
	cdc_buf_add_char(out, '{');
	for (uint32_t i = 0; i < n; i++)
	{
		if (i > 0)
			cdc_buf_add_char(out, ',');
		json_add_name(out, table->columns[columns[i]].name);
		add_cell(format, &table->columns[columns[i]], &row[columns[i]], 0, out);
	}
	cdc_buf_add_char(out, '}');
}

void
format_add_key(CdcFormat *format, const CdcOutTable *table, const CdcCell *row, CdcBuf *out)
{
	add_columns(format, table, table->nkey, table->key, row, out);
}

void
format_add_partition_key(CdcFormat *format, const CdcOutTable *table, const CdcCell *row, CdcBuf *out)
{
	add_columns(format, table, table->npartition, table->partition, row, out);
}

static bool
has_key(const CdcOutTable *table, const CdcCell *row)
{
	if (row == NULL || table->nkey == 0)
		return false;
	for (uint32_t i = 0; i < table->nkey; i++)
	{
		CdcCellKind kind = row[table->key[i]].kind;

		if (kind == CDC_CELL_ABSENT || kind == CDC_CELL_UNCHANGED)
			return false;
	}
	return true;
}

/* An update may leave a key's large value untouched: then the old row has it, if anything has. */
const CdcCell *
format_key_row(const CdcRecord *record)
{
	if (has_key(record->table, record->after))
		return record->after;
	return has_key(record->table, record->before) ? record->before : NULL;
}

void
format_add_lsn(CdcBuf *out, uint64_t lsn)
{
	cdc_buf_printf(out, "%X/%X", (unsigned) (lsn >> 32), (unsigned) lsn);
}
