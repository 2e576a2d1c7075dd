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

/* The buffer for texts does not stay larger than this. */
#define SCRATCH_KEEP (64 * 1024)

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
	else if (format->options.bytes_as_latin1)
		json_add_latin1(out, data, len);
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

/* SQL has a blank where ISO 8601 has a T. */
static void
use_blank(char *text, size_t len)
{
	char	   *t = memchr(text, 'T', len);

	if (t != NULL)
		*t = ' ';
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
			if (format->ops->sql_times)
				use_blank(text, len);
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
format_add_cell_text(CdcFormat *format, const CdcOutColumn *column, const CdcCell *cell, CdcBuf *out)
{
	CdcBuf	   *scratch = &format->scratch;

	cdc_buf_reset(scratch);
	scratch->limit = out->limit;
	add_cell(format, column, cell, 0, scratch);
	if (scratch->status != CDC_OK)
	{
		if (out->status == CDC_OK)
			out->status = scratch->status;
	}
	else if (cell->kind == CDC_CELL_NULL || scratch->data[0] == '"')
		cdc_buf_add(out, scratch->data, scratch->len);
	else
		json_add_string(out, scratch->data, scratch->len);
	if (scratch->cap > SCRATCH_KEEP)
		cdc_buf_free(scratch);
}

void
format_add_cell(CdcFormat *format, const CdcOutColumn *column, const CdcCell *cell, CdcBuf *out)
{
	if (format->ops->all_text && cell->kind == CDC_CELL_TEXT)
		json_add_string(out, cell->v.data, cell->len);
	else if (format->ops->all_text)
		format_add_cell_text(format, column, cell, out);
	else
		add_cell(format, column, cell, 0, out);
}

static bool
same_list(const CdcCellList *a, const CdcCellList *b)
{
	if (a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
	{
		if (!format_same_cell(&a->cells[i], &b->cells[i]))
			return false;
	}
	return true;
}

bool
format_same_cell(const CdcCell *a, const CdcCell *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind)
	{
		case CDC_CELL_NULL:
			return true;
		case CDC_CELL_INT:
		case CDC_CELL_UINT:
		case CDC_CELL_BOOL:
		case CDC_CELL_DAYS:
		case CDC_CELL_MICROS:
			return a->v.i == b->v.i;
		case CDC_CELL_FLOAT:
			/* by their bits: NaN is the same as itself, and zero is not minus zero */
			return memcmp(&a->v.f4, &b->v.f4, sizeof(float)) == 0;
		case CDC_CELL_DOUBLE:
			return memcmp(&a->v.f8, &b->v.f8, sizeof(double)) == 0;
		case CDC_CELL_TEXT:
		case CDC_CELL_BYTES:
			return a->len == b->len && memcmp(a->v.data, b->v.data, a->len) == 0;
		case CDC_CELL_LIST:
			return same_list(a->v.list, b->v.list);
		default:
			return false;
	}
}

void
format_add_difference(CdcFormat *format, const CdcOutTable *table, const CdcCell *before, const CdcCell *after, CdcBuf *out)
{
	bool		first = true;

	cdc_buf_add_char(out, '{');
	for (uint32_t i = 0; i < table->ncolumns && before != NULL; i++)
	{
		if (before[i].kind == CDC_CELL_ABSENT || before[i].kind == CDC_CELL_UNCHANGED || format_same_cell(&before[i], &after[i]))
			continue;
		if (!first)
			cdc_buf_add_char(out, ',');
		first = false;
		json_add_name(out, table->columns[i].name);
		format_add_cell(format, &table->columns[i], &before[i], out);
	}
	cdc_buf_add_char(out, '}');
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
		format_add_cell(format, &table->columns[i], &row[i], out);
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
		format_add_cell(format, &table->columns[columns[i]], &row[columns[i]], out);
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

bool
format_has_key(const CdcOutTable *table, const CdcCell *row)
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
	if (record->kind != CDC_RECORD_CHANGE)
		return NULL;
	if (format_has_key(record->table, record->after))
		return record->after;
	return format_has_key(record->table, record->before) ? record->before : NULL;
}

bool
format_add_change_key(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	const CdcCell *row = format_key_row(record);

	if (row == NULL)
		return false;
	format_add_key(format, record->table, row, out);
	return true;
}

void
format_add_lsn(CdcBuf *out, uint64_t lsn)
{
	static const char digits[] = "0123456789ABCDEF";
	char		text[17];
	char	   *p = text + sizeof(text);
	uint32_t	low = (uint32_t) lsn;
	uint32_t	high = (uint32_t) (lsn >> 32);

	do
		*--p = digits[low & 15];
	while ((low >>= 4) != 0);
	*--p = '/';
	do
		*--p = digits[high & 15];
	while ((high >>= 4) != 0);
	cdc_buf_add(out, p, (size_t) (text + sizeof(text) - p));
}
