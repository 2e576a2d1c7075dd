/*-------------------------------------------------------------------------
 *
 * rows.c
 *	  Rows events: header, then one row at a time.
 *
 * NOTES
 *	  An event holds rows of one table, all with the same columns in their
 *	  images. A row is its image (INSERT, DELETE) or two images (UPDATE); an
 *	  image is a NULL bitmap with one bit per present column, then the values.
 *	  Bits beyond the columns are padding of either value (MySQL pads column
 *	  bitmaps with 1 and NULL bitmaps with 0, MariaDB the other way round) and are
 *	  never looked at.
 *
 *	  The after images of a PARTIAL_UPDATE_ROWS start with options; if the first
 *	  bit is set, one bit per JSON column of the table tells which values are
 *	  differences.
 *
 *	  The two arrays of fields are made once per event and filled again for each
 *	  row: a row costs no allocation.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "binlog/rows.h"

#include <string.h>

#include "binlog/inflate.h"
#include "binlog/wire.h"

#define PARTIAL_JSON_OPTION 1

/* What a rows event's type byte tells. */
typedef struct RowsType
{
	uint8_t op; /* CdcChangeOp; 0 for no rows event */
	bool extra; /* version 2: extra data before the column count */
	bool partial;
	bool compressed;
} RowsType;

static RowsType
rows_type(uint8_t type_code)
{
	switch (type_code)
	{
		case EV_WRITE_ROWS_V1:
			return (RowsType){CDC_INSERT, false, false, false};
		case EV_UPDATE_ROWS_V1:
			return (RowsType){CDC_UPDATE, false, false, false};
		case EV_DELETE_ROWS_V1:
			return (RowsType){CDC_DELETE, false, false, false};
		case EV_WRITE_ROWS:
			return (RowsType){CDC_INSERT, true, false, false};
		case EV_UPDATE_ROWS:
			return (RowsType){CDC_UPDATE, true, false, false};
		case EV_DELETE_ROWS:
			return (RowsType){CDC_DELETE, true, false, false};
		case EV_PARTIAL_UPDATE_ROWS:
			return (RowsType){CDC_UPDATE, true, true, false};
		case EV_MARIADB_WRITE_ROWS_COMPRESSED_V1:
			return (RowsType){CDC_INSERT, false, false, true};
		case EV_MARIADB_UPDATE_ROWS_COMPRESSED_V1:
			return (RowsType){CDC_UPDATE, false, false, true};
		case EV_MARIADB_DELETE_ROWS_COMPRESSED_V1:
			return (RowsType){CDC_DELETE, false, false, true};
		case EV_MARIADB_WRITE_ROWS_COMPRESSED:
			return (RowsType){CDC_INSERT, true, false, true};
		case EV_MARIADB_UPDATE_ROWS_COMPRESSED:
			return (RowsType){CDC_UPDATE, true, false, true};
		case EV_MARIADB_DELETE_ROWS_COMPRESSED:
			return (RowsType){CDC_DELETE, true, false, true};
		default:
			return (RowsType){0, false, false, false};
	}
}

bool
binlog_is_rows_event(uint8_t type_code)
{
	return rows_type(type_code).op != 0;
}

static inline bool
bit_is_set(const uint8_t *bits, uint32_t i)
{
	return (bits[i / 8] >> (i % 8) & 1) != 0;
}

/* Set bits below n: the padding does not count. */
static uint32_t
count_bits(const uint8_t *bits, uint32_t n)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < n; i++)
		count += bit_is_set(bits, i);
	return count;
}

/* An array of fields, all absent, for an image. */
static CdcField *
make_fields(CdcArena *arena, uint32_t ncolumns)
{
	return cdc_arena_zalloc(arena, ((size_t) ncolumns + 1) * sizeof(CdcField));
}

CdcStatus
binlog_rows_begin(BinlogRowsState *state, uint8_t type_code, const uint8_t *body, size_t len,
                  int id_len, BinlogTableCache *tables, CdcArena *arena, BinlogRows *rows,
                  CdcError *err)
{
	RowsType type = rows_type(type_code);
	CdcCursor c;
	uint64_t table_id;
	uint64_t ncolumns;
	uint16_t flags;
	const uint8_t *columns[2];
	uint32_t present[2];

	memset(state, 0, sizeof(*state));
	cdc_cursor_init(&c, body, len);
	table_id = cdc_cursor_uint(&c, id_len);
	flags = cdc_cursor_u16(&c);
	if (type.extra)
	{
		uint16_t extra = cdc_cursor_u16(&c);

		/* The length counts itself. */
		if (extra < 2)
			return cdc_fail(err, CDC_MALFORMED, 0, "rows event has an invalid extra data length");
		cdc_cursor_bytes(&c, extra - 2u);
	}
	if (c.failed)
		return cdc_fail(err, CDC_TRUNCATED, 0, "rows event ends inside its header");
	rows->table = NULL;
	rows->op = (CdcChangeOp) type.op;
	rows->partial = type.partial;
	rows->statement_end = (flags & ROWS_FLAG_STATEMENT_END) != 0;
	rows->full_before = rows->full_after = true;
	state->cascades_logged = (flags & (ROWS_FLAG_NO_FOREIGN_KEY_CHECKS | ROWS_FLAG_SQL_FOREIGN_KEYS)) != 0;

	state->table = binlog_table_cache_get(tables, table_id);
	if (state->table == NULL)
	{
		if (table_id == BINLOG_DUMMY_TABLE_ID)
			return CDC_OK;
		return cdc_fail(err, CDC_MALFORMED, 0,
		                "rows event for table id %llu without a TABLE_MAP event before it",
		                (unsigned long long) table_id);
	}
	rows->table = &state->table->def;
	ncolumns = cdc_cursor_lenenc(&c);
	columns[0] = columns[1] = cdc_cursor_bytes(&c, (ncolumns + 7) / 8);
	if (type.op == CDC_UPDATE)
		columns[1] = cdc_cursor_bytes(&c, (ncolumns + 7) / 8);
	if (c.failed)
		return cdc_fail(err, CDC_TRUNCATED, 0, "rows event ends inside its column bitmaps");
	if (ncolumns != state->table->def.ncolumns)
		return cdc_fail(err, CDC_MALFORMED, 0, "rows event has %llu columns, its table %u",
		                (unsigned long long) ncolumns, (unsigned) state->table->def.ncolumns);
	for (int i = 0; i < 2; i++)
		present[i] = count_bits(columns[i], (uint32_t) ncolumns);

	state->op = (CdcChangeOp) type.op;
	state->partial = type.partial;
	if (type.op != CDC_INSERT)
	{
		state->before_columns = columns[0];
		state->nbefore = present[0];
		state->before = make_fields(arena, (uint32_t) ncolumns);
		rows->full_before = present[0] == ncolumns;
	}
	if (type.op != CDC_DELETE)
	{
		state->after_columns = columns[1];
		state->nafter = present[1];
		state->after = make_fields(arena, (uint32_t) ncolumns);
		rows->full_after = present[1] == ncolumns;
	}
	if ((type.op != CDC_INSERT && state->before == NULL) ||
	    (type.op != CDC_DELETE && state->after == NULL))
		return cdc_fail(err, CDC_LIMIT, 0, "rows event does not fit the memory limit");
	if (type.compressed)
	{
		const uint8_t *plain;
		size_t plain_len;
		CdcStatus status =
		    binlog_inflate_event(c.pos, cdc_cursor_left(&c), arena, &plain, &plain_len, err);

		if (status != CDC_OK)
			return status;
		cdc_cursor_init(&state->rows, plain, plain_len);
	}
	else
		cdc_cursor_init(&state->rows, c.pos, cdc_cursor_left(&c));
	return CDC_OK;
}

/*
 * Split one image into fields. partial_bits is NULL but for partial updates;
 * it counts all JSON columns of the table, in the image or not. False when the
 * image does not fit what is left.
 */
static bool
split_image(BinlogRowsState *state, const uint8_t *columns, uint32_t npresent, CdcField *fields,
            const uint8_t *partial_bits)
{
	const CdcTableDef *def = &state->table->def;
	const BinlogFieldShape *shapes = state->table->shapes;
	const uint8_t *nulls = cdc_cursor_bytes(&state->rows, (npresent + 7) / 8);
	const uint8_t *pos;
	const uint8_t *end;
	uint32_t k = 0;
	uint32_t json = 0;

	if (nulls == NULL)
		return false;
	pos = state->rows.pos;
	end = state->rows.end;
	for (uint32_t i = 0; i < def->ncolumns; i++)
	{
		CdcField *field = &fields[i];
		bool is_partial = false;
		uint32_t len;

		if (partial_bits != NULL && def->columns[i].wire_type == WIRE_JSON)
			is_partial = bit_is_set(partial_bits, json++);
		if (!bit_is_set(columns, i))
			continue;
		if (bit_is_set(nulls, k++))
		{
			field->data = NULL;
			field->len = 0;
			field->state = CDC_FIELD_NULL;
			continue;
		}
		len = shapes[i].fixed;
		if (shapes[i].prefix != 0)
		{
			if (end - pos < shapes[i].prefix)
				return false;
			len = 0;
			for (int b = shapes[i].prefix - 1; b >= 0; b--)
				len = len << 8 | pos[b];
			pos += shapes[i].prefix;
		}
		if ((size_t) (end - pos) < len)
			return false;
		field->data = pos;
		field->len = len;
		field->state = is_partial ? CDC_FIELD_PARTIAL : CDC_FIELD_VALUE;
		pos += len;
	}
	state->rows.pos = pos;
	return true;
}

/* The options in front of a partial update's after image; false when damaged. */
static bool
read_partial_options(BinlogRowsState *state, const uint8_t **bits)
{
	uint64_t options = cdc_cursor_lenenc(&state->rows);

	*bits = NULL;
	if (options & ~(uint64_t) PARTIAL_JSON_OPTION)
		return false;
	if (options & PARTIAL_JSON_OPTION)
		*bits = cdc_cursor_bytes(&state->rows, (state->table->njson + 7) / 8);
	return !state->rows.failed;
}

CdcStatus
binlog_rows_next(BinlogRowsState *state, CdcChange *change, CdcError *err)
{
	const uint8_t *start = state->rows.pos;
	const uint8_t *partial_bits = NULL;
	bool ok = true;

	if (state->table == NULL || cdc_cursor_left(&state->rows) == 0)
		return CDC_END;
	if (!state->table->can_split)
		return cdc_fail(err, CDC_UNSUPPORTED, 0,
		                "table \"%.64s.%.64s\" has a column of an unknown type",
		                state->table->def.schema, state->table->def.name);
	if (state->before != NULL)
		ok = split_image(state, state->before_columns, state->nbefore, state->before, NULL);
	if (ok && state->after != NULL)
	{
		if (state->partial)
			ok = read_partial_options(state, &partial_bits);
		ok = ok &&
		     split_image(state, state->after_columns, state->nafter, state->after, partial_bits);
	}
	if (!ok || state->rows.pos == start)
	{
		if (state->table->has_old_temporal)
			return cdc_fail(err, CDC_UNSUPPORTED, (uint64_t) (start - state->rows.start),
			                "table \"%.64s.%.64s\" has temporal columns of the old format with "
			                "fraction digits, whose width the log does not tell",
			                state->table->def.schema, state->table->def.name);
		return cdc_fail(err, CDC_MALFORMED, (uint64_t) (start - state->rows.start),
		                "row of table \"%.64s.%.64s\" does not fit its definition",
		                state->table->def.schema, state->table->def.name);
	}
	change->op = state->op;
	change->table = &state->table->def;
	change->before = state->before;
	change->after = state->after;
	change->cell = binlog_field_to_cell;
	change->cascades_logged = state->cascades_logged;
	change->bytes = (uint32_t) (state->rows.pos - start);
	return CDC_OK;
}
