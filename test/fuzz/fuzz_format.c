/*-------------------------------------------------------------------------
 *
 * fuzz_format.c
 *	  libFuzzer target: records as documents.
 *
 * NOTES
 *	  The input makes a table, options and a record of any kind with values of any
 *	  type. What comes out has to be JSON on one line in every format; base64 and
 *	  hexadecimal digits give their bytes again; a smaller limit is kept.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"
#include "fuzz_grammar.h"

#include "core/arena.h"
#include "core/utf8.h"
#include "format/format.h"
#include "format/json_text.h"
#include "number_text.h"

#define COLUMNS_MAX 8
#define DEPTH_MAX 32

/* A text of the input, with what is no UTF-8 put right. */
static char *
take_text(CdcCursor *c, CdcArena *arena)
{
	size_t len = cdc_cursor_uint(c, 1) % 40;
	const uint8_t *p = cdc_cursor_bytes(c, len < cdc_cursor_left(c) ? len : cdc_cursor_left(c));
	char *text = cdc_arena_strndup(arena, p, (size_t) (c->pos - p));

	cdc_utf8_repair(text);
	return text;
}

static CdcCell
take_cell(CdcCursor *c, const CdcOutColumn *column, int depth, CdcArena *arena)
{
	CdcCell cell = {.kind = CDC_CELL_NULL};
	uint64_t choice = cdc_cursor_uint(c, 1);
	char *text;

	if (depth == 0 && choice < 20)
		cell.kind = CDC_CELL_UNCHANGED;
	else if (depth == 0 && choice < 40)
		cell.kind = CDC_CELL_ABSENT;
	else if (choice < 60)
		cell.kind = CDC_CELL_NULL;
	else if (column->is_list && (depth == 0 || choice < 100))
	{
		CdcCellList *list = cdc_arena_alloc(arena, sizeof(CdcCellList));
		CdcCell *cells = cdc_arena_alloc(arena, 4 * sizeof(CdcCell));

		cell.kind = CDC_CELL_LIST;
		list->count = depth > DEPTH_MAX ? 0 : (uint32_t) cdc_cursor_uint(c, 1) % 4;
		for (uint32_t i = 0; i < list->count; i++)
			cells[i] = take_cell(c, column, depth + 1, arena);
		list->cells = cells;
		cell.v.list = list;
	}
	else
	{
		switch (column->type)
		{
			case CDC_OUT_BOOL:
				cell.kind = CDC_CELL_BOOL;
				cell.v.i = choice & 1;
				break;
			case CDC_OUT_INT2:
			case CDC_OUT_INT4:
			case CDC_OUT_INT8:
				cell.kind = CDC_CELL_INT;
				cell.v.u = cdc_cursor_uint(c, 8);
				break;
			case CDC_OUT_OID:
				cell.kind = CDC_CELL_UINT;
				cell.v.u = cdc_cursor_uint(c, 4);
				break;
			case CDC_OUT_FLOAT4:
			{
				uint32_t bits = (uint32_t) cdc_cursor_uint(c, 4);

				cell.kind = CDC_CELL_FLOAT;
				memcpy(&cell.v.f4, &bits, sizeof(bits));
				break;
			}
			case CDC_OUT_FLOAT8:
			{
				uint64_t bits = cdc_cursor_uint(c, 8);

				cell.kind = CDC_CELL_DOUBLE;
				memcpy(&cell.v.f8, &bits, sizeof(bits));
				break;
			}
			case CDC_OUT_DATE:
				cell.kind = CDC_CELL_DAYS;
				cell.v.i = (int32_t) cdc_cursor_uint(c, 4);
				break;
			case CDC_OUT_TIME:
			case CDC_OUT_TIMESTAMP:
			case CDC_OUT_TIMESTAMPTZ:
				cell.kind = CDC_CELL_MICROS;
				cell.v.u = cdc_cursor_uint(c, 8);
				break;
			default:
				text = take_text(c, arena);
				cell.kind = column->type == CDC_OUT_BYTES ? CDC_CELL_BYTES : CDC_CELL_TEXT;
				cell.len = (uint32_t) strlen(text);
				if (column->type == CDC_OUT_NUMERIC)
				{
					cdc_cursor_uint(c, 1);
					text = choice & 1 ? "-0.00120" : "NaN";
					cell.len = (uint32_t) strlen(text);
				}
				/* only what PostgreSQL took as JSON is embedded */
				else if (column->type == CDC_OUT_JSON && !json_is_valid_anyhow(text, cell.len, 64))
				{
					text = "{\n\"a\": [1e400,\tnull]}";
					cell.len = (uint32_t) strlen(text);
				}
				cell.v.data = text;
				break;
		}
	}
	return cell;
}

static void
take_table(CdcCursor *c, CdcArena *arena, CdcOutTable *table, CdcOutColumn *columns, uint32_t *key)
{
	memset(table, 0, sizeof(*table));
	table->schema = take_text(c, arena);
	table->name = take_text(c, arena);
	table->version = 1 + cdc_cursor_uint(c, 1);
	table->ncolumns = (uint32_t) cdc_cursor_uint(c, 1) % (COLUMNS_MAX + 1);
	table->columns = columns;
	table->key = key;
	memset(columns, 0, COLUMNS_MAX * sizeof(*columns));
	for (uint32_t i = 0; i < table->ncolumns; i++)
	{
		columns[i].name = take_text(c, arena);
		columns[i].type_text = take_text(c, arena);
		columns[i].type = (CdcOutType) (cdc_cursor_uint(c, 1) % (CDC_OUT_ENUM + 1));
		columns[i].is_list = cdc_cursor_uint(c, 1) % 4 == 0;
		if (cdc_cursor_uint(c, 1) % 3 == 0)
		{
			key[table->nkey++] = i;
			columns[i].key_part = (uint16_t) table->nkey;
		}
	}
}

/* What a statement did to the table; the columns' existing values are those of a row. */
static void
take_schema_change(CdcCursor *c, CdcArena *arena, CdcOutTable *table, const CdcCell *row, CdcOutColumnInfo *infos, CdcOutSchemaChange *change)
{
	static const char *const labels[] = {"low", "h\"igh\n"};
	uint64_t flags = cdc_cursor_uint(c, 1);

	memset(change, 0, sizeof(*change));
	change->op = (CdcOutSchemaOp) (1 + flags % 3);
	change->command = take_text(c, arena);
	change->rewritten = flags & 4;
	if (change->op == CDC_OUT_DROP)
	{
		table->ncolumns = table->nkey = 0;
		change->new_schema = flags & 8 ? take_text(c, arena) : NULL;
		change->new_name = flags & 8 ? take_text(c, arena) : NULL;
		return;
	}
	change->columns = infos;
	change->old_schema = flags & 8 ? take_text(c, arena) : NULL;
	change->old_name = flags & 8 ? take_text(c, arena) : NULL;
	change->old_column = flags & 16 ? take_text(c, arena) : NULL;
	change->new_column = flags & 16 ? take_text(c, arena) : NULL;
	for (uint32_t i = 0; i < table->ncolumns; i++)
	{
		uint64_t choice = cdc_cursor_uint(c, 1);

		memset(&infos[i], 0, sizeof(infos[i]));
		infos[i].default_text = choice & 1 ? take_text(c, arena) : NULL;
		infos[i].is_generated = choice & 2;
		infos[i].identity = choice & 4 ? 'a' : choice & 8 ? 'd' : '\0';
		infos[i].nlabels = choice & 16 ? 2 : 0;
		infos[i].labels = labels;
		infos[i].existing = row[i];
	}
}

static void
check_document(const CdcBuf *out)
{
	require(out->status == CDC_OK);
	require(json_is_valid_anyhow(out->data, out->len, 100));
	require(memchr(out->data, '\n', out->len) == NULL);
	require(utf8_is_valid(out->data, out->len));
}

/* A document is JSON, or its own bytes. */
static void
check_value(const CdcFormatOps *ops, const CdcBuf *out)
{
	if (!ops->is_binary)
		check_document(out);
	else
		require(out->status == CDC_OK && out->len > 5 && out->data[0] == '\0');
}

/* Each schema is JSON; their numbers are told. */
static void
check_schemas(CdcFormat *format, const CdcRecord *record)
{
	CdcFormatSchema schema;
	uint32_t id = 1;

	while (cdc_format_missing_schema(format, record, &schema) == CDC_OK)
	{
		require(json_is_valid_anyhow(schema.text, schema.len, 100));
		require(id <= 2);
		cdc_format_schema_id(format, record, &schema, id++);
	}
}

static void
check_format(const CdcFormatOps *ops, const CdcFormatOptions *options, const CdcRecord *record)
{
	CdcFormat format;
	int parts;

	cdc_format_init(&format, ops, options, &cdc_malloc_allocator);
	if (ops->is_binary)
		check_schemas(&format, record);
	parts = cdc_format_parts(&format, record);
	require(parts >= 0 && parts <= 2);
	for (int part = 0; part < parts; part++)
	{
		CdcBuf out;
		CdcError err = {0};
		CdcStatus status;
		size_t limit;

		cdc_buf_init(&out, &cdc_malloc_allocator, 0);
		status = cdc_format_value(&format, record, part, &out, &err);
		if (status == CDC_OK)
			check_value(ops, &out);
		else
		{
			/* lists that are deeper than PostgreSQL's */
			require(status == CDC_UNSUPPORTED);
			check_error(status, &err);
		}
		limit = out.len / 2;
		cdc_buf_free(&out);

		cdc_buf_init(&out, &cdc_malloc_allocator, limit + 1);
		status = cdc_format_value(&format, record, part, &out, &err);
		/* an empty object is no longer than its half and one more */
		require(status == CDC_LIMIT || status == CDC_UNSUPPORTED || limit == 1);
		require(out.len <= limit + 1);
		cdc_buf_free(&out);

		cdc_buf_init(&out, &cdc_malloc_allocator, 0);
		status = cdc_format_key(&format, record, part, &out, &err);
		if (status == CDC_OK)
			check_value(ops, &out);
		require(status != CDC_END || out.len == 0);
		cdc_buf_free(&out);
	}
	cdc_format_free(&format);
}

static void
check_formats(const CdcFormatOptions *options, const CdcRecord *record)
{
	for (int i = 0; cdc_format_nth(i) != NULL; i++)
		check_format(cdc_format_nth(i), options, record);
}

/* Digits give their bytes again. */
static void
check_bytes(const uint8_t *data, size_t size)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	CdcBuf out;
	uint32_t bits = 0;
	int nbits = 0;
	size_t n = 0;

	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	json_add_base64(&out, data, size);
	require(out.len == 2 + (size + 2) / 3 * 4);
	for (size_t i = 1; i + 1 < out.len && out.data[i] != '='; i++)
	{
		bits = bits << 6 | (uint32_t) (strchr(letters, out.data[i]) - letters);
		nbits += 6;
		if (nbits >= 8)
		{
			nbits -= 8;
			require(n < size && data[n] == (uint8_t) (bits >> nbits));
			n++;
		}
	}
	require(n == size);
	cdc_buf_reset(&out);
	json_add_hex(&out, data, size);
	require(out.len == 2 + 2 * size);
	for (size_t i = 0; i < size; i++)
	{
		unsigned byte;

		require(sscanf(out.data + 1 + 2 * i, "%2x", &byte) == 1 && byte == data[i]);
	}
	cdc_buf_free(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CdcFormatOptions options = {.double_text = double_text,.float_text = float_text,.version = "0",.database = "d"};
	CdcOutColumn columns[COLUMNS_MAX];
	uint32_t key[COLUMNS_MAX];
	CdcCell before[COLUMNS_MAX];
	CdcCell after[COLUMNS_MAX];
	CdcOutCount counts[2] = {{"a", "b", 1}, {"c", "d", 2}};
	CdcOutColumnInfo infos[COLUMNS_MAX];
	CdcOutSchemaChange change;
	CdcOutTable table;
	CdcOutTxn txn = {0};
	CdcRecord record = {0};
	CdcArena arena;
	CdcCursor c;
	uint64_t flags;

	check_bytes(data, size < 5000 ? size : 5000);
	cdc_arena_init(&arena, &cdc_malloc_allocator, 0);
	cdc_cursor_init(&c, data, size);
	flags = cdc_cursor_uint(&c, 2);
	options.schemas = flags & 1;
	options.transaction = flags & 2;
	options.numeric_as_number = flags & 4;
	options.bytes_as_hex = flags & 8;
	options.json_embedded = flags & 16;
	options.types = flags & 16384;
	options.bytes_as_latin1 = flags & 32768;
	options.logical_types = flags & 8192;
	options.unwrap_deletes = (CdcFormatDeletes) (cdc_cursor_uint(&c, 1) % 3);
	if (options.unwrap_deletes != CDC_FORMAT_DELETES_DROP)
		options.unwrap_fields = cdc_cursor_uint(&c, 1) & 1 ? "op,source.ts_ms,txId , origin:a\"b.c,transaction.id,ts_ns" : take_text(&c, &arena);
	options.server_name = take_text(&c, &arena);
	options.unavailable = take_text(&c, &arena);
	record.kind = (CdcRecordKind) (1 + cdc_cursor_uint(&c, 1) % CDC_RECORD_STREAM_PREPARE);
	if (flags & 32)
		record.kind = CDC_RECORD_CHANGE;
	record.op = (CdcOutOp) (1 + cdc_cursor_uint(&c, 1) % 3);
	txn.xid = (uint32_t) cdc_cursor_uint(&c, 2);
	txn.commit_lsn = cdc_cursor_uint(&c, 8);
	txn.time_us = (int64_t) cdc_cursor_uint(&c, 8);
	txn.is_streamed = flags & 64;
	txn.gid = flags & 128 ? take_text(&c, &arena) : NULL;
	txn.origin = flags & 256 ? take_text(&c, &arena) : NULL;
	txn.ncounts = (uint32_t) (flags >> 9 & 1) * 2;
	txn.counts = counts;
	record.txn = &txn;
	record.lsn = cdc_cursor_uint(&c, 8);
	record.order = cdc_cursor_uint(&c, 1);
	record.xid = (uint32_t) cdc_cursor_uint(&c, 2);
	if (record.kind == CDC_RECORD_MESSAGE)
	{
		record.prefix = take_text(&c, &arena);
		record.content = (const char *) c.pos;
		record.content_len = cdc_cursor_left(&c);
		if (flags & 1024)
			record.txn = NULL;
	}
	else if (record.kind == CDC_RECORD_CHANGE || record.kind == CDC_RECORD_TRUNCATE || record.kind == CDC_RECORD_SCHEMA)
	{
		take_table(&c, &arena, &table, columns, key);
		record.table = &table;
		for (uint32_t i = 0; i < table.ncolumns; i++)
		{
			before[i] = take_cell(&c, &columns[i], 0, &arena);
			after[i] = take_cell(&c, &columns[i], 0, &arena);
		}
		if (record.kind == CDC_RECORD_SCHEMA)
		{
			take_schema_change(&c, &arena, &table, after, infos, &change);
			record.schema_change = &change;
		}
		record.before = flags & 2048 ? before : NULL;
		record.after = flags & 4096 ? after : NULL;
		if (flags & 8192)
		{
			record.root_schema = take_text(&c, &arena);
			record.root_name = take_text(&c, &arena);
		}
	}
	check_formats(&options, &record);
	cdc_arena_free(&arena);
	return 0;
}
