/*-------------------------------------------------------------------------
 *
 * change_store.c
 *	  Changes -> bytes that can be kept, and back.
 *
 * NOTES
 *	  record      kind u8, length of the body u32, body
 *	  'F' forget  no body: numbers of tables begin anew
 *	  'T' table   number u8, then the definition
 *	  'I' 'U' 'D' table's number u8, its highest bit set for a change of MariaDB's,
 *	              size on the wire u32, cascades_logged u8, then the images that the operation has, before first: for each column a state u8,
 *	              and for a value or a difference its length u32 and bytes
 *
 *	  Integers are little endian. A string is its length + 1 as u32 and its bytes,
 *	  0 for NULL.
 *
 *	  Within a transaction the server's table id stands for one definition: the
 *	  server gives a new one whenever it opens the table anew. Columns are
 *	  compared as well, so that a server that lies cannot mix tables up.
 *
 *	  The bytes come back from a table of ours; they are read with the same
 *	  distrust as those of a server all the same.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "binlog/change_store.h"

#include <string.h>

#include "binlog/decimal.h"
#include "binlog/value.h"
#include "binlog/wire.h"
#include "core/cursor.h"
#include "core/utf8.h"

#define HEADER_SIZE 5
#define MARIADB_BIT 0x80
#define RECORD_FORGET 'F'
#define RECORD_TABLE 'T'
#define RECORD_INSERT 'I'
#define RECORD_UPDATE 'U'
#define RECORD_DELETE 'D'

/* Columns of a table, at most (the servers allow 4096). */
#define COLUMNS_MAX 65535

enum
{
	COLUMN_UNSIGNED = 1 << 0,
	COLUMN_NULLABLE = 1 << 1,
	COLUMN_VISIBLE = 1 << 2
};

/* ---- writing ---- */

static void
put_uint(CdcBuf *out, uint64_t value, int nbytes)
{
	char bytes[8];

	for (int i = 0; i < nbytes; i++)
		bytes[i] = (char) (value >> (8 * i));
	cdc_buf_add(out, bytes, (size_t) nbytes);
}

static void
put_bytes(CdcBuf *out, const void *data, size_t len)
{
	put_uint(out, (uint64_t) len + 1, 4);
	cdc_buf_add(out, data, len);
}

static void
put_string(CdcBuf *out, const char *str)
{
	if (str == NULL)
		put_uint(out, 0, 4);
	else
		put_bytes(out, str, strlen(str));
}

/* Begin a record; its length is filled in by end_record. */
static size_t
begin_record(CdcBuf *out, char kind)
{
	cdc_buf_add_char(out, kind);
	put_uint(out, 0, 4);
	return out->len;
}

static void
end_record(CdcBuf *out, size_t body)
{
	size_t len = out->len - body;

	if (out->status != CDC_OK)
		return;
	if (len > UINT32_MAX)
	{
		out->status = CDC_LIMIT;
		return;
	}
	for (int i = 0; i < 4; i++)
		out->data[body - 4 + (size_t) i] = (char) (len >> (8 * i));
}

static void
put_column(CdcBuf *out, const CdcColumnDef *column)
{
	put_string(out, column->name);
	put_uint(out, column->type, 1);
	put_uint(out,
	         (column->is_unsigned ? COLUMN_UNSIGNED : 0) | (column->nullable ? COLUMN_NULLABLE : 0) |
	             (column->visible ? COLUMN_VISIBLE : 0),
	         1);
	put_uint(out, column->length, 4);
	put_uint(out, column->precision, 1);
	put_uint(out, column->scale, 1);
	put_uint(out, column->collation, 2);
	put_uint(out, column->key_part, 2);
	put_uint(out, column->key_prefix, 2);
	put_uint(out, column->wire_type, 1);
	put_uint(out, column->wire_meta, 2);
	put_uint(out, column->labels != NULL ? column->nlabels : 0, 4);
	for (uint32_t i = 0; column->labels != NULL && i < column->nlabels; i++)
		put_bytes(out, column->labels[i].data, column->labels[i].len);
}

static void
put_table(CdcBuf *out, uint32_t number, const CdcTableDef *def)
{
	size_t body = begin_record(out, RECORD_TABLE);

	put_uint(out, number, 1);
	put_string(out, def->schema);
	put_string(out, def->name);
	put_uint(out, def->known, 4);
	put_uint(out, def->table_id, 8);
	put_uint(out, def->nkey, 4);
	put_uint(out, def->ncolumns, 4);
	for (uint32_t i = 0; i < def->ncolumns; i++)
		put_column(out, &def->columns[i]);
	end_record(out, body);
}

static void
put_image(CdcBuf *out, const CdcField *fields, uint32_t ncolumns)
{
	for (uint32_t i = 0; i < ncolumns; i++)
	{
		const CdcField *field = &fields[i];

		put_uint(out, field->state, 1);
		if (field->state != CDC_FIELD_VALUE && field->state != CDC_FIELD_PARTIAL)
			continue;
		put_uint(out, field->len, 4);
		cdc_buf_add(out, field->data, field->len);
	}
}

void
binlog_change_writer_init(BinlogChangeWriter *writer)
{
	writer->ntables = 0;
}

/* Number of the change's table in the stream, which has its definition from then on. */
static uint32_t
number_of_table(BinlogChangeWriter *writer, const CdcTableDef *def, CdcBuf *out)
{
	uint32_t number;

	for (number = writer->ntables; number > 0; number--)
	{
		if (writer->ids[number - 1] == def->table_id &&
		    writer->columns[number - 1] == def->ncolumns)
			return number - 1;
	}
	if (writer->ntables == BINLOG_STORE_TABLES)
	{
		end_record(out, begin_record(out, RECORD_FORGET));
		writer->ntables = 0;
	}
	number = writer->ntables++;
	writer->ids[number] = def->table_id;
	writer->columns[number] = def->ncolumns;
	put_table(out, number, def);
	return number;
}

void
binlog_change_write(BinlogChangeWriter *writer, const CdcChange *change, CdcBuf *out)
{
	static const char kinds[] = {
	    [CDC_INSERT] = RECORD_INSERT, [CDC_UPDATE] = RECORD_UPDATE, [CDC_DELETE] = RECORD_DELETE};
	uint32_t number = number_of_table(writer, change->table, out);
	size_t body = begin_record(out, kinds[change->op]);

	put_uint(out, number | (change->by_mariadb ? MARIADB_BIT : 0), 1);
	put_uint(out, change->bytes, 4);
	put_uint(out, change->cascades_logged, 1);
	if (change->op != CDC_INSERT)
		put_image(out, change->before, change->table->ncolumns);
	if (change->op != CDC_DELETE)
		put_image(out, change->after, change->table->ncolumns);
	end_record(out, body);
}

/* ---- reading ---- */

struct BinlogChangeReader
{
	const CdcAllocator *allocator;
	CdcBuf bytes; /* what was fed and is not read yet, from "pos" on */
	size_t pos;
	CdcArena tables; /* definitions, until they are forgotten */
	CdcTableDef *table[BINLOG_STORE_TABLES];
	CdcArena fields; /* of the current change */
};

BinlogChangeReader *
binlog_change_reader_create(const CdcAllocator *allocator, size_t limit)
{
	BinlogChangeReader *reader = allocator->alloc(allocator->ctx, sizeof(BinlogChangeReader));

	if (reader == NULL)
		return NULL;
	memset(reader, 0, sizeof(*reader));
	reader->allocator = allocator;
	cdc_buf_init(&reader->bytes, allocator, limit);
	cdc_arena_init(&reader->tables, allocator, limit);
	cdc_arena_init(&reader->fields, allocator, limit);
	return reader;
}

void
binlog_change_reader_free(BinlogChangeReader *reader)
{
	cdc_buf_free(&reader->bytes);
	cdc_arena_free(&reader->tables);
	cdc_arena_free(&reader->fields);
	reader->allocator->free(reader->allocator->ctx, reader);
}

CdcStatus
binlog_change_reader_feed(BinlogChangeReader *reader, const void *data, size_t len)
{
	CdcBuf *bytes = &reader->bytes;

	if (reader->pos > 0)
	{
		memmove(bytes->data, bytes->data + reader->pos, bytes->len - reader->pos);
		bytes->len -= reader->pos;
		reader->pos = 0;
	}
	cdc_buf_add(bytes, data, len);
	return bytes->status;
}

size_t
binlog_change_reader_left(const BinlogChangeReader *reader)
{
	return reader->bytes.len - reader->pos;
}

static CdcStatus
damaged(const BinlogChangeReader *reader, CdcError *err, const char *what)
{
	return cdc_fail(err, CDC_MALFORMED, reader->pos, "kept changes are damaged: %s", what);
}

static CdcStatus
too_large(const BinlogChangeReader *reader, CdcError *err)
{
	return cdc_fail(err, CDC_LIMIT, reader->pos, "a kept change does not fit the memory limit");
}

/* A string in the arena; *str is NULL for NULL. False: memory. What is too long fails the cursor. */
static bool
get_string(CdcCursor *c, CdcArena *arena, const char **str, uint32_t *len)
{
	uint32_t n = cdc_cursor_u32(c);
	const uint8_t *data;

	*str = NULL;
	if (n == 0)
		return true;
	data = cdc_cursor_bytes(c, n - 1);
	if (data == NULL)
		return true;
	if (!cdc_utf8_is_valid((const char *) data, n - 1))
	{
		c->failed = true;
		return true;
	}
	*str = cdc_arena_strndup(arena, data, n - 1);
	if (len != NULL)
		*len = n - 1;
	return *str != NULL;
}

static bool
get_labels(CdcCursor *c, CdcArena *arena, CdcColumnDef *column)
{
	CdcLabel *labels;
	uint32_t n = cdc_cursor_u32(c);

	if (n == 0 || c->failed)
		return true;
	if (n > cdc_cursor_left(c) / 4)
	{
		c->failed = true;
		return true;
	}
	labels = cdc_arena_alloc(arena, (size_t) n * sizeof(CdcLabel));
	if (labels == NULL)
		return false;
	for (uint32_t i = 0; i < n; i++)
	{
		labels[i].len = 0;
		if (!get_string(c, arena, &labels[i].data, &labels[i].len))
			return false;
		if (labels[i].data == NULL)
			c->failed = true;
	}
	column->labels = labels;
	column->nlabels = n;
	return true;
}

/* Is that how table_map.c describes a column? What decodes values relies on it. */
static bool
column_is_sound(const CdcColumnDef *column)
{
	switch (column->wire_type)
	{
		case WIRE_NEWDECIMAL:
			return binlog_decimal_is_valid(column->precision, column->scale) &&
			       column->wire_meta == (column->precision << 8 | column->scale);
		case WIRE_BIT:
			return column->length >= 1 && column->length <= 64 && column->wire_meta == column->length;
		case WIRE_TIME2:
		case WIRE_DATETIME2:
		case WIRE_TIMESTAMP2:
			return column->scale <= 6 && column->wire_meta == column->scale;
		default:
			return true;
	}
}

static bool
get_column(CdcCursor *c, CdcArena *arena, CdcColumnDef *column)
{
	uint8_t flags;

	memset(column, 0, sizeof(*column));
	if (!get_string(c, arena, &column->name, NULL))
		return false;
	column->type = (CdcType) cdc_cursor_u8(c);
	flags = cdc_cursor_u8(c);
	column->is_unsigned = (flags & COLUMN_UNSIGNED) != 0;
	column->nullable = (flags & COLUMN_NULLABLE) != 0;
	column->visible = (flags & COLUMN_VISIBLE) != 0;
	column->length = cdc_cursor_u32(c);
	column->precision = cdc_cursor_u8(c);
	column->scale = cdc_cursor_u8(c);
	column->collation = cdc_cursor_u16(c);
	column->key_part = cdc_cursor_u16(c);
	column->key_prefix = cdc_cursor_u16(c);
	column->wire_type = cdc_cursor_u8(c);
	column->wire_meta = cdc_cursor_u16(c);
	if (!get_labels(c, arena, column))
		return false;
	if (!c->failed && (column->type > CDC_TYPE_INET6 || !column_is_sound(column)))
		c->failed = true;
	return true;
}

static CdcStatus
read_table(BinlogChangeReader *reader, CdcCursor *c, CdcError *err)
{
	uint32_t number = cdc_cursor_u8(c);
	CdcTableDef *def = cdc_arena_zalloc(&reader->tables, sizeof(CdcTableDef));

	if (def == NULL)
		return too_large(reader, err);
	if (!get_string(c, &reader->tables, &def->schema, NULL) ||
	    !get_string(c, &reader->tables, &def->name, NULL))
		return too_large(reader, err);
	def->known = cdc_cursor_u32(c);
	def->table_id = cdc_cursor_u64(c);
	def->nkey = cdc_cursor_u32(c);
	def->ncolumns = cdc_cursor_u32(c);
	if (c->failed || number >= BINLOG_STORE_TABLES || def->schema == NULL || def->name == NULL ||
	    def->ncolumns > COLUMNS_MAX || def->nkey > def->ncolumns ||
	    def->ncolumns > cdc_cursor_left(c))
		return damaged(reader, err, "a table");
	def->columns = cdc_arena_alloc(&reader->tables, (size_t) def->ncolumns * sizeof(CdcColumnDef));
	if (def->columns == NULL)
		return too_large(reader, err);
	for (uint32_t i = 0; i < def->ncolumns && !c->failed; i++)
	{
		if (!get_column(c, &reader->tables, &def->columns[i]))
			return too_large(reader, err);
		if (def->columns[i].key_part > def->nkey)
			c->failed = true;
	}
	if (c->failed || cdc_cursor_left(c) != 0)
		return damaged(reader, err, "a table's columns");
	reader->table[number] = def;
	return CDC_OK;
}

/* NULL when memory does not allow it; what is damaged fails the cursor. */
static CdcField *
get_image(BinlogChangeReader *reader, CdcCursor *c, uint32_t ncolumns)
{
	CdcField *fields = cdc_arena_zalloc(&reader->fields, (size_t) ncolumns * sizeof(CdcField) + 1);

	for (uint32_t i = 0; fields != NULL && i < ncolumns; i++)
	{
		CdcField *field = &fields[i];
		uint8_t state = cdc_cursor_u8(c);

		if (state > CDC_FIELD_PARTIAL)
			c->failed = true;
		if (c->failed)
			break;
		field->state = (CdcFieldState) state;
		if (state != CDC_FIELD_VALUE && state != CDC_FIELD_PARTIAL)
			continue;
		field->len = cdc_cursor_u32(c);
		field->data = cdc_cursor_bytes(c, field->len);
	}
	return fields;
}

static CdcStatus
read_change(BinlogChangeReader *reader, CdcChangeOp op, CdcCursor *c, CdcChange *change, CdcError *err)
{
	uint32_t number = cdc_cursor_u8(c);

	change->by_mariadb = (number & MARIADB_BIT) != 0;
	number &= ~(uint32_t) MARIADB_BIT;
	change->bytes = cdc_cursor_u32(c);
	change->cascades_logged = cdc_cursor_u8(c) != 0;
	if (c->failed || number >= BINLOG_STORE_TABLES || reader->table[number] == NULL)
		return damaged(reader, err, "a change without its table");
	change->op = op;
	change->table = reader->table[number];
	change->before = change->after = NULL;
	change->cell = binlog_field_to_cell;
	if (op != CDC_INSERT && (change->before = get_image(reader, c, change->table->ncolumns)) == NULL)
		return too_large(reader, err);
	if (op != CDC_DELETE && (change->after = get_image(reader, c, change->table->ncolumns)) == NULL)
		return too_large(reader, err);
	if (c->failed || cdc_cursor_left(c) != 0)
		return damaged(reader, err, "a change");
	return CDC_OK;
}

static void
forget_tables(BinlogChangeReader *reader)
{
	memset(reader->table, 0, sizeof(reader->table));
	cdc_arena_reset(&reader->tables);
}

CdcStatus
binlog_change_reader_next(BinlogChangeReader *reader, CdcChange *change, CdcError *err)
{
	cdc_arena_reset(&reader->fields);
	for (;;)
	{
		size_t left = binlog_change_reader_left(reader);
		CdcStatus status = CDC_OK;
		CdcCursor c;
		uint32_t len;
		uint8_t kind;

		if (left < HEADER_SIZE)
			return CDC_END;
		cdc_cursor_init(&c, reader->bytes.data + reader->pos, left);
		kind = cdc_cursor_u8(&c);
		len = cdc_cursor_u32(&c);
		if (len > left - HEADER_SIZE)
			return CDC_END;
		cdc_cursor_init(&c, reader->bytes.data + reader->pos + HEADER_SIZE, len);
		switch (kind)
		{
			case RECORD_FORGET:
				forget_tables(reader);
				break;
			case RECORD_TABLE:
				status = read_table(reader, &c, err);
				break;
			case RECORD_INSERT:
				status = read_change(reader, CDC_INSERT, &c, change, err);
				break;
			case RECORD_UPDATE:
				status = read_change(reader, CDC_UPDATE, &c, change, err);
				break;
			case RECORD_DELETE:
				status = read_change(reader, CDC_DELETE, &c, change, err);
				break;
			default:
				return damaged(reader, err, "a record of no kind");
		}
		if (status != CDC_OK)
			return status;
		reader->pos += (size_t) HEADER_SIZE + len;
		if (kind != RECORD_FORGET && kind != RECORD_TABLE)
			return CDC_OK;
	}
}
