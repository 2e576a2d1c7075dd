/*-------------------------------------------------------------------------
 *
 * fuzz_values.c
 *	  libFuzzer target: rows events of a well-formed table, and every value in them.
 *
 * NOTES
 *	  The input gives the number of columns, for each a type with its metadata, the
 *	  kind of rows event, and then the event's bytes; the TABLE_MAP is made so that it
 *	  is always valid, and compressed events are compressed here, so that nothing of
 *	  an input is spent on what other targets do. Temporal values and integers are
 *	  put into bytes again by code written here.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include <zlib.h>

#include "binlog/charset.h"
#include "binlog/decimal.h"
#include "binlog/rows.h"
#include "binlog/wire.h"

#define MEMORY_LIMIT (1024 * 1024)
#define COLUMNS_MAX 12

static void
put_int(CdcBuf *buf, uint64_t value, int n)
{
	for (int i = 0; i < n; i++)
		cdc_buf_add_char(buf, (char) (value >> (8 * i)));
}

/* One column's type and metadata from two bytes. */
static void
put_column(uint8_t type, uint8_t more, CdcBuf *types, CdcBuf *meta)
{
	static const uint8_t wire[] = {WIRE_TINY,
	                               WIRE_SHORT,
	                               WIRE_INT24,
	                               WIRE_LONG,
	                               WIRE_LONGLONG,
	                               WIRE_FLOAT,
	                               WIRE_DOUBLE,
	                               WIRE_NEWDECIMAL,
	                               WIRE_BIT,
	                               WIRE_YEAR,
	                               WIRE_DATE,
	                               WIRE_TIME,
	                               WIRE_DATETIME,
	                               WIRE_TIMESTAMP,
	                               WIRE_TIME2,
	                               WIRE_DATETIME2,
	                               WIRE_TIMESTAMP2,
	                               WIRE_VARCHAR,
	                               WIRE_STRING,
	                               WIRE_ENUM,
	                               WIRE_SET,
	                               WIRE_TINY_BLOB,
	                               WIRE_BLOB,
	                               WIRE_MEDIUM_BLOB,
	                               WIRE_LONG_BLOB,
	                               WIRE_JSON,
	                               WIRE_GEOMETRY,
	                               WIRE_VECTOR,
	                               WIRE_NEWDATE,
	                               WIRE_VAR_STRING,
	                               WIRE_BLOB_COMPRESSED,
	                               WIRE_VARCHAR_COMPRESSED,
	                               WIRE_TYPED_ARRAY,
	                               WIRE_NULL};
	uint8_t t = wire[type % sizeof(wire)];
	int precision = 1 + more % 65;
	int length = more * 5; /* strings up to 1275 bytes */

	cdc_buf_add_char(types, (char) (t == WIRE_ENUM || t == WIRE_SET ? WIRE_STRING : t));
	switch (t)
	{
		case WIRE_FLOAT:
			put_int(meta, 4, 1);
			break;
		case WIRE_DOUBLE:
			put_int(meta, 8, 1);
			break;
		case WIRE_NEWDECIMAL:
			put_int(meta, (uint64_t) precision, 1);
			put_int(meta, (uint64_t) (precision * (more >> 6) / 4), 1);
			break;
		case WIRE_BIT:
			put_int(meta, (uint64_t) (1 + more % 64) % 8, 1);
			put_int(meta, (uint64_t) (1 + more % 64) / 8, 1);
			break;
		case WIRE_TIME2:
		case WIRE_DATETIME2:
		case WIRE_TIMESTAMP2:
			put_int(meta, more % 7, 1);
			break;
		case WIRE_VARCHAR:
		case WIRE_VAR_STRING:
		case WIRE_VARCHAR_COMPRESSED:
			put_int(meta, (uint64_t) length, 2);
			break;
		case WIRE_STRING:
			length %= 1024;
			put_int(meta, WIRE_STRING ^ (length & 0x300) >> 4, 1);
			put_int(meta, (uint64_t) length & 0xff, 1);
			break;
		case WIRE_ENUM:
		case WIRE_SET:
			put_int(meta, t, 1);
			put_int(meta, 1 + (uint64_t) more % (t == WIRE_ENUM ? 2 : 8), 1);
			break;
		case WIRE_TINY_BLOB:
		case WIRE_BLOB:
		case WIRE_MEDIUM_BLOB:
		case WIRE_LONG_BLOB:
		case WIRE_BLOB_COMPRESSED:
		case WIRE_JSON:
		case WIRE_GEOMETRY:
		case WIRE_VECTOR:
			put_int(meta, 1 + (uint64_t) more % 4, 1);
			break;
		case WIRE_TYPED_ARRAY:
			put_int(meta, WIRE_LONG, 1);
			break;
		default:
			break;
	}
}

/* The body of a TABLE_MAP for n columns; three bytes of the input each. */
static void
put_table_map(CdcBuf *body, const uint8_t *columns, uint32_t n, bool is_mariadb)
{
	static const uint16_t collations[] = {45, 63, 8, 35, 255, 13, 28, 248, 54, 10, 60, 0};
	CdcBuf types, meta, strings, enums, sets, charsets, enum_charsets;
	CdcBuf *const all[] = {&types, &meta, &strings, &enums, &sets, &charsets, &enum_charsets};
	CdcBuf *const optional[] = {&charsets, &sets, &enums, &enum_charsets};
	static const uint8_t fields[] = {3, 5, 6, 11};

	for (int i = 0; i < 7; i++)
		cdc_buf_init(all[i], &cdc_malloc_allocator, 0);
	for (uint32_t i = 0; i < n; i++)
	{
		const uint8_t *c = columns + 3 * i;
		uint16_t collation = collations[c[2] % (sizeof(collations) / sizeof(collations[0]))];
		uint8_t type;
		CdcBuf *labels;
		CdcBuf *set;

		put_column(c[0], c[1], &types, &meta);
		type = (uint8_t) types.data[types.len - 1];
		if (type == WIRE_STRING && (uint8_t) meta.data[meta.len - 2] != WIRE_ENUM &&
		    (uint8_t) meta.data[meta.len - 2] != WIRE_SET)
			type = WIRE_VARCHAR;
		switch (type)
		{
			case WIRE_STRING:
				labels = (uint8_t) meta.data[meta.len - 2] == WIRE_SET ? &sets : &enums;
				cdc_buf_add(labels, "\3\1a\2bc\0", 7);
				set = &enum_charsets;
				break;
			case WIRE_VARCHAR:
			case WIRE_VAR_STRING:
			case WIRE_VARCHAR_COMPRESSED:
			case WIRE_TINY_BLOB:
			case WIRE_BLOB:
			case WIRE_MEDIUM_BLOB:
			case WIRE_LONG_BLOB:
			case WIRE_BLOB_COMPRESSED:
			case WIRE_VECTOR:
				set = &charsets;
				break;
			case WIRE_GEOMETRY:
				set = is_mariadb ? &charsets : NULL;
				break;
			default:
				set = NULL;
				break;
		}
		if (set != NULL)
		{
			put_int(set, 252, 1);
			put_int(set, collation, 2);
		}
	}
	put_int(body, 5, 6);
	put_int(body, 0, 2);
	cdc_buf_add(body, "\1s\0\1t\0", 6);
	put_int(body, n, 1);
	cdc_buf_add(body, types.data, types.len);
	put_int(body, meta.len, 1);
	cdc_buf_add(body, meta.len > 0 ? meta.data : "", meta.len);
	put_int(body, 0xffffff, (int) (n + 7) / 8);
	put_int(body, 1, 1); /* signedness: every other column */
	put_int(body, 2, 1);
	put_int(body, 0x5555, 2);
	for (int i = 0; i < 4; i++)
	{
		put_int(body, fields[i], 1);
		put_int(body, optional[i]->len, 1);
		cdc_buf_add(body, optional[i]->len > 0 ? optional[i]->data : "", optional[i]->len);
	}
	for (int i = 0; i < 7; i++)
		cdc_buf_free(all[i]);
}

static uint64_t
big_endian(const uint8_t *data, uint32_t len)
{
	uint64_t v = 0;

	for (uint32_t i = 0; i < len; i++)
		v = v << 8 | data[i];
	return v;
}

static uint64_t
little_endian(const uint8_t *data, uint32_t len)
{
	uint64_t v = 0;

	for (uint32_t i = len; i > 0; i--)
		v = v << 8 | data[i - 1];
	return v;
}

/* The fraction as the format stores it in n bytes. */
static uint64_t
fraction(uint32_t micro, uint32_t n)
{
	static const uint32_t unit[] = {1000000, 10000, 100, 1};

	require(micro % unit[n] == 0);
	return micro / unit[n];
}

static void
check_parts(const CdcTimeParts *t)
{
	require(t->year <= 9999 && t->month <= 12 && t->day <= 31 && t->hour <= 838);
	require(t->minute <= 59 && t->second <= 59 && t->micro <= 999999);
}

/* A cell that was made must be of the column's kind, and give the bytes that it came from. */
static void
check_cell(const CdcColumnDef *column, const CdcField *field, const CdcCell *cell)
{
	const uint8_t *d = field->data;
	uint32_t len = field->len;
	const CdcTimeParts *t = &cell->v.time;
	uint64_t packed;
	bool is_text = false;

	switch (column->wire_type)
	{
		case WIRE_TINY:
		case WIRE_SHORT:
		case WIRE_INT24:
		case WIRE_LONG:
		case WIRE_LONGLONG:
			require(cell->kind == (column->is_unsigned ? CDC_CELL_UINT : CDC_CELL_INT));
			require(((cell->v.u ^ little_endian(d, len)) << (64 - 8 * len)) == 0);
			if (len < 8 && column->is_unsigned)
				require(cell->v.u >> (8 * len) == 0);
			if (len < 8 && !column->is_unsigned)
				require(cell->v.i >> (8 * len - 1) == 0 || cell->v.i >> (8 * len - 1) == -1);
			break;
		case WIRE_YEAR:
			require(cell->kind == CDC_CELL_UINT &&
			        (cell->v.u == 0 || (cell->v.u >= 1901 && cell->v.u <= 2155)));
			break;
		case WIRE_DATE:
		case WIRE_NEWDATE:
			require(cell->kind == CDC_CELL_DATE);
			check_parts(t);
			require(little_endian(d, 3) ==
			        ((uint64_t) t->year << 9 | (uint64_t) t->month << 5 | t->day));
			break;
		case WIRE_TIME:
			require(cell->kind == CDC_CELL_TIME);
			check_parts(t);
			break;
		case WIRE_DATETIME:
			require(cell->kind == CDC_CELL_DATETIME);
			check_parts(t);
			require(little_endian(d, 8) ==
			        ((((t->year * UINT64_C(100) + t->month) * 100 + t->day) * 100 + t->hour) * 100 +
			         t->minute) *
			                100 +
			            t->second);
			break;
		case WIRE_TIME2:
			require(cell->kind == CDC_CELL_TIME);
			check_parts(t);
			packed = (uint64_t) t->hour << 12 | (uint64_t) t->minute << 6 | t->second;
			packed = packed << (8 * (len - 3)) | fraction(t->micro, len - 3);
			require(!(t->negative && packed == 0));
			packed = (UINT64_C(0x800000) << (8 * (len - 3))) + (t->negative ? -packed : packed);
			require(packed == big_endian(d, len));
			break;
		case WIRE_DATETIME2:
			require(cell->kind == CDC_CELL_DATETIME);
			check_parts(t);
			packed = ((uint64_t) t->year * 13 + t->month) << 22 | (uint64_t) t->day << 17 |
			         (uint64_t) t->hour << 12 | (uint64_t) t->minute << 6 | t->second;
			require(packed + UINT64_C(0x8000000000) == big_endian(d, 5));
			require(fraction(t->micro, len - 5) == big_endian(d + 5, len - 5));
			break;
		case WIRE_TIMESTAMP:
		case WIRE_TIMESTAMP2:
			require(cell->kind == CDC_CELL_TIMESTAMP);
			packed = column->wire_type == WIRE_TIMESTAMP ? little_endian(d, 4) : big_endian(d, 4);
			if (cell->v.epoch_us == CDC_ZERO_TIMESTAMP)
				require(packed == 0 && big_endian(d + 4, len - 4) == 0);
			else
			{
				require((uint64_t) cell->v.epoch_us / 1000000 == packed);
				require(fraction((uint32_t) (cell->v.epoch_us % 1000000), len - 4) ==
				        big_endian(d + 4, len - 4));
			}
			break;
		case WIRE_NEWDECIMAL:
			require(cell->kind == CDC_CELL_TEXT && cell->len <= BINLOG_DECIMAL_TEXT_MAX);
			is_text = true;
			break;
		case WIRE_ENUM:
		case WIRE_SET:
		case WIRE_JSON:
			require(cell->kind == CDC_CELL_TEXT);
			break;
		case WIRE_BIT:
			require(cell->kind == CDC_CELL_BIT && cell->len == (column->wire_meta + 7u) / 8);
			break;
		default:
			break;
	}
	/* texts made here; what a server wrote as UTF-8 is checked by the backend */
	if ((column->type == CDC_TYPE_UUID || column->type == CDC_TYPE_INET4 ||
	     column->type == CDC_TYPE_INET6) &&
	    cell->kind == CDC_CELL_TEXT && column->wire_type != WIRE_JSON)
		is_text = true;
	if (cell->kind == CDC_CELL_TEXT || cell->kind == CDC_CELL_BYTES || cell->kind == CDC_CELL_BIT ||
	    cell->kind == CDC_CELL_GEOMETRY || cell->kind == CDC_CELL_VECTOR)
		touch(cell->v.data, cell->len);
	if (is_text)
		require(utf8_is_valid(cell->v.data, cell->len));
	if (column->type == CDC_TYPE_CHAR && cell->kind == CDC_CELL_TEXT && cell->len > 0)
		require(cell->v.data[cell->len - 1] != ' ');
	if (column->type == CDC_TYPE_BINARY && cell->kind == CDC_CELL_BYTES)
		require(cell->len >= column->wire_meta);
}

static void
decode_image(const CdcChange *change, const CdcField *fields, CdcArena *arena)
{
	static const CdcType disguised[] = {CDC_TYPE_UUID, CDC_TYPE_INET4, CDC_TYPE_INET6,
	                                    CDC_TYPE_JSON, CDC_TYPE_VECTOR};

	if (fields == NULL)
		return;
	for (uint32_t i = 0; i < change->table->ncolumns; i++)
	{
		CdcColumnDef column = change->table->columns[i];
		CdcError err = {0};
		CdcStatus status;
		CdcCell cell;

		if (fields[i].state == CDC_FIELD_ABSENT)
			continue;
		for (int k = 0; k < 2; k++)
		{
			status = change->cell(&column, &fields[i], arena, &cell, &err);
			if (status != CDC_OK)
				check_error(status, &err);
			else if (fields[i].state == CDC_FIELD_NULL)
				require(cell.kind == CDC_CELL_NULL);
			else
				check_cell(&column, &fields[i], &cell);
			column.type = disguised[i % 5];
		}
		require(arena->total <= MEMORY_LIMIT);
		cdc_arena_reset(arena);
	}
}

/* The rows event's body: header, column bitmaps from the input, then the rows. */
static void
put_rows(CdcBuf *body, uint8_t type, uint32_t ncolumns, const uint8_t *data, size_t size)
{
	bool version2 = type == EV_WRITE_ROWS || type == EV_UPDATE_ROWS || type == EV_DELETE_ROWS ||
	                type == EV_PARTIAL_UPDATE_ROWS;
	size_t bitmaps = (ncolumns + 7) / 8;

	put_int(body, 5, 6);
	put_int(body, 1, 2);
	if (version2)
		put_int(body, 2, 2);
	put_int(body, ncolumns, 1);
	if (type < EV_MARIADB_WRITE_ROWS_COMPRESSED_V1)
	{
		cdc_buf_add(body, data, size);
		return;
	}
	if (type == EV_MARIADB_UPDATE_ROWS_COMPRESSED_V1)
		bitmaps *= 2;
	if (bitmaps > size)
		bitmaps = size;
	cdc_buf_add(body, data, bitmaps);
	{
		uLong len = compressBound((uLong) (size - bitmaps));
		Bytef *packed = malloc(len);

		require(compress2(packed, &len, data + bitmaps, (uLong) (size - bitmaps), 1) == Z_OK);
		put_int(body, 0x82, 1);
		put_int(body, (size - bitmaps) >> 8, 1);
		put_int(body, (size - bitmaps) & 0xff, 1);
		cdc_buf_add(body, packed, len);
		free(packed);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t types[] = {EV_WRITE_ROWS_V1,
	                                EV_UPDATE_ROWS_V1,
	                                EV_DELETE_ROWS,
	                                EV_UPDATE_ROWS,
	                                EV_PARTIAL_UPDATE_ROWS,
	                                EV_MARIADB_WRITE_ROWS_COMPRESSED_V1,
	                                EV_MARIADB_UPDATE_ROWS_COMPRESSED_V1};
	BinlogTableCache cache;
	BinlogRowsState state;
	BinlogRows rows;
	CdcChange change;
	CdcArena event_arena;
	CdcArena arena;
	CdcError err = {0};
	CdcStatus status;
	CdcBuf map;
	CdcBuf body;
	uint8_t *exact;
	uint8_t type;
	uint32_t ncolumns;
	bool is_mariadb;
	size_t total = 0;

	if (size < 2 || size > 16384)
		return 0;
	is_mariadb = (data[0] & 0x80) != 0;
	type = types[(data[0] & 0x7f) % sizeof(types)];
	ncolumns = 1 + data[1] % COLUMNS_MAX;
	if (size < 2 + 3 * ncolumns)
		return 0;
	cdc_buf_init(&map, &cdc_malloc_allocator, 0);
	cdc_buf_init(&body, &cdc_malloc_allocator, 0);
	cdc_arena_init(&event_arena, &cdc_malloc_allocator, MEMORY_LIMIT);
	cdc_arena_init(&arena, &cdc_malloc_allocator, MEMORY_LIMIT);
	binlog_table_cache_init(&cache, &cdc_malloc_allocator, MEMORY_LIMIT);
	put_table_map(&map, data + 2, ncolumns, is_mariadb);
	require(binlog_table_cache_put(&cache, (const uint8_t *) map.data, map.len, 6, is_mariadb,
	                               &err) == CDC_OK);
	put_rows(&body, type, ncolumns, data + 2 + 3 * ncolumns, size - 2 - 3 * ncolumns);
	exact = exact_copy(body.data, body.len);
	status = binlog_rows_begin(&state, type, exact, body.len, 6, &cache, &event_arena, &rows, &err);
	while (status == CDC_OK)
	{
		status = binlog_rows_next(&state, &change, &err);
		if (status != CDC_OK)
			break;
		require(change.bytes > 0);
		total += change.bytes;
		require((change.before == NULL) == (change.op == CDC_INSERT));
		require((change.after == NULL) == (change.op == CDC_DELETE));
		decode_image(&change, change.before, &arena);
		decode_image(&change, change.after, &arena);
	}
	if (status != CDC_END)
		check_error(status, &err);
	else if (state.table != NULL)
		require(total == cdc_cursor_offset(&state.rows));
	free(exact);
	binlog_table_cache_clear(&cache);
	cdc_arena_free(&event_arena);
	cdc_arena_free(&arena);
	cdc_buf_free(&map);
	cdc_buf_free(&body);
	return 0;
}
