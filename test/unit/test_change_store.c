/*-------------------------------------------------------------------------
 *
 * test_change_store.c
 *	  Changes -> bytes that are kept, and back, cut anywhere; damaged ones.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "binlog/change_store.h"

#include "binlog/wire.h"
#include "event_dump.h"
#include "tap.h"

#define TABLES (BINLOG_STORE_TABLES + 6)

static const CdcLabel labels[] = {{"red", 3}, {"gr\xc3\xbcn", 5}, {"", 0}};

/* Definition number "number": three columns, of which the first is the key. */
static CdcTableDef
make_table(CdcColumnDef *columns, int number)
{
	static char names[TABLES][16];
	CdcTableDef def = {.schema = "shop", .ncolumns = 3, .nkey = 1, .known = CDC_KNOWS_NAMES | CDC_KNOWS_KEY};

	snprintf(names[number], sizeof(names[number]), "t%d", number);
	def.name = names[number];
	def.table_id = 1000 + (uint64_t) number;
	def.columns = columns;
	columns[0] = (CdcColumnDef){.name = "id", .type = CDC_TYPE_BIGINT, .is_unsigned = true, .key_part = 1, .wire_type = WIRE_LONGLONG};
	columns[1] = (CdcColumnDef){.name = "colour", .type = CDC_TYPE_ENUM, .nullable = true, .visible = true,
	    .nlabels = 3, .labels = labels, .wire_type = WIRE_ENUM, .wire_meta = 1};
	columns[2] = (CdcColumnDef){.name = "note", .type = CDC_TYPE_VARCHAR, .nullable = true, .length = 400, .collation = 46,
	    .wire_type = WIRE_VARCHAR, .wire_meta = 400};
	return def;
}

static bool
same_fields(const CdcField *a, const CdcField *b, uint32_t n)
{
	if (a == NULL || b == NULL)
		return a == b;
	for (uint32_t i = 0; i < n; i++)
	{
		if (a[i].state != b[i].state || a[i].len != b[i].len ||
		    (a[i].len > 0 && memcmp(a[i].data, b[i].data, a[i].len) != 0))
			return false;
	}
	return true;
}

static bool
same_table(const CdcTableDef *a, const CdcTableDef *b)
{
	if (strcmp(a->schema, b->schema) != 0 || strcmp(a->name, b->name) != 0 || a->known != b->known ||
	    a->table_id != b->table_id || a->nkey != b->nkey || a->ncolumns != b->ncolumns || b->user != NULL)
		return false;
	for (uint32_t i = 0; i < a->ncolumns; i++)
	{
		const CdcColumnDef *x = &a->columns[i];
		const CdcColumnDef *y = &b->columns[i];

		if (strcmp(x->name, y->name) != 0 || x->type != y->type || x->is_unsigned != y->is_unsigned ||
		    x->nullable != y->nullable || x->visible != y->visible || x->length != y->length ||
		    x->collation != y->collation || x->key_part != y->key_part || x->wire_type != y->wire_type ||
		    x->wire_meta != y->wire_meta || x->nlabels != y->nlabels)
			return false;
		for (uint32_t k = 0; k < x->nlabels; k++)
		{
			if (x->labels[k].len != y->labels[k].len || memcmp(x->labels[k].data, y->labels[k].data, x->labels[k].len) != 0)
				return false;
		}
	}
	return true;
}

/* Changes of more tables than a stream holds, each met twice; the number of them is returned. */
static int
write_all(CdcBuf *out, CdcTableDef *tables, CdcColumnDef (*columns)[3], CdcField *before, CdcField *after)
{
	BinlogChangeWriter writer;
	int n = 0;

	binlog_change_writer_init(&writer);
	for (int round = 0; round < 2; round++)
	{
		for (int i = 0; i < TABLES; i++)
		{
			CdcChange change = {.op = (CdcChangeOp) (1 + n % 3), .table = &tables[i], .bytes = (uint32_t) n, .by_mariadb = n % 5 == 0};

			tables[i] = make_table(columns[i], i);
			if (change.op != CDC_INSERT)
				change.before = before;
			if (change.op != CDC_DELETE)
				change.after = after;
			binlog_change_write(&writer, &change, out);
			n++;
		}
	}
	return n;
}

static void
test_round_trip(void)
{
	static CdcColumnDef columns[TABLES][3];
	static CdcTableDef tables[TABLES];
	CdcField before[] = {{(const uint8_t *) "\1\0\0\0\0\0\0\0", 8, CDC_FIELD_VALUE}, {NULL, 0, CDC_FIELD_NULL}, {NULL, 0, CDC_FIELD_ABSENT}};
	CdcField after[] = {{(const uint8_t *) "\2\0\0\0\0\0\0\0", 8, CDC_FIELD_VALUE}, {(const uint8_t *) "\2", 1, CDC_FIELD_VALUE},
	    {(const uint8_t *) "difference", 10, CDC_FIELD_PARTIAL}};
	CdcBuf out;
	int total;

	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	total = write_all(&out, tables, columns, before, after);
	is_int(out.status, CDC_OK, "changes are written");

	for (size_t piece = 1; piece <= out.len; piece = piece * 7 + 3)
	{
		BinlogChangeReader *reader = binlog_change_reader_create(&cdc_malloc_allocator, 1 << 20);
		CdcError err = {0};
		char name[64];
		int n = 0;
		bool same = true;

		for (size_t at = 0; at < out.len; at += piece)
		{
			/* memory of exactly that size, gone right after */
			size_t len = out.len - at < piece ? out.len - at : piece;
			uint8_t *copy = malloc(len);
			CdcChange change;

			memcpy(copy, out.data + at, len);
			same = same && binlog_change_reader_feed(reader, copy, len) == CDC_OK;
			free(copy);
			while (binlog_change_reader_next(reader, &change, &err) == CDC_OK)
			{
				same = same && change.op == (CdcChangeOp) (1 + n % 3) && change.bytes == (uint32_t) n && change.by_mariadb == (n % 5 == 0) &&
				    same_table(&tables[n % TABLES], change.table) &&
				    same_fields(change.op != CDC_INSERT ? before : NULL, change.before, 3) &&
				    same_fields(change.op != CDC_DELETE ? after : NULL, change.after, 3);
				n++;
			}
		}
		snprintf(name, sizeof(name), "they come back from pieces of %zu bytes", piece);
		ok(same && n == total && err.code == CDC_OK, name);
		is_int((long long) binlog_change_reader_left(reader), 0, "and nothing is left");
		binlog_change_reader_free(reader);
	}
	cdc_buf_free(&out);
}

/* A value of a change that was kept decodes as it did before. */
static void
test_cell(void)
{
	static CdcColumnDef columns[1][3];
	CdcTableDef def = make_table(columns[0], 0);
	CdcField after[] = {{(const uint8_t *) "\2\0\0\0\0\0\0\0", 8, CDC_FIELD_VALUE}, {(const uint8_t *) "\2", 1, CDC_FIELD_VALUE}, {NULL, 0, CDC_FIELD_NULL}};
	CdcChange change = {.op = CDC_INSERT, .table = &def, .after = after};
	BinlogChangeWriter writer;
	BinlogChangeReader *reader = binlog_change_reader_create(&cdc_malloc_allocator, 0);
	CdcArena arena;
	CdcBuf out;
	CdcBuf text;
	CdcCell cell;
	CdcError err;

	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	cdc_buf_init(&text, &cdc_malloc_allocator, 0);
	cdc_arena_init(&arena, &cdc_malloc_allocator, 0);
	binlog_change_writer_init(&writer);
	binlog_change_write(&writer, &change, &out);
	is_int(binlog_change_reader_feed(reader, out.data, out.len), CDC_OK, "fed");
	is_int(binlog_change_reader_next(reader, &change, &err), CDC_OK, "read");
	is_int(change.cell(&change.table->columns[1], &change.after[1], &arena, &cell, &err), CDC_OK, "a value is decoded");
	dump_cell(&cell, &text);
	is_str(text.data, "'gr\xc3\xbcn'", "a label");
	is_int(binlog_change_reader_next(reader, &change, &err), CDC_END, "the end");
	cdc_buf_free(&out);
	cdc_buf_free(&text);
	cdc_arena_free(&arena);
	binlog_change_reader_free(reader);
}

static CdcStatus
read_bytes(const void *data, size_t len, size_t limit)
{
	BinlogChangeReader *reader = binlog_change_reader_create(&cdc_malloc_allocator, limit);
	CdcStatus status = binlog_change_reader_feed(reader, data, len);
	CdcError err;
	CdcChange change;

	while (status == CDC_OK)
		status = binlog_change_reader_next(reader, &change, &err);
	binlog_change_reader_free(reader);
	return status;
}

static void
test_damage(void)
{
	static CdcColumnDef columns[TABLES][3];
	static CdcTableDef tables[TABLES];
	CdcField fields[] = {{(const uint8_t *) "\1\0\0\0\0\0\0\0", 8, CDC_FIELD_VALUE}, {NULL, 0, CDC_FIELD_NULL}, {NULL, 0, CDC_FIELD_ABSENT}};
	CdcBuf out;
	bool bounded = true;

	is_int(read_bytes("I\0\0\0\0", 5, 0), CDC_MALFORMED, "a change without a table");
	is_int(read_bytes("?\0\0\0\0", 5, 0), CDC_MALFORMED, "a record of no kind");
	is_int(read_bytes("T\1\0\0\0\0", 6, 0), CDC_MALFORMED, "a definition that ends");
	is_int(read_bytes("T\xff\xff\xff\xff", 5, 0), CDC_END, "a record that is not complete");
	is_int(read_bytes("T\xff\xff\xff\xffxxxxxxxxxx", 15, 8), CDC_LIMIT, "more than the limit allows");

	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	(void) write_all(&out, tables, columns, fields, fields);
	out.len = 1500;				/* several records, the last one cut */
	for (size_t i = 0; i < out.len; i++)
	{
		for (int bit = 0; bit < 8; bit += 3)
		{
			out.data[i] = (char) (out.data[i] ^ (1 << bit));
			bounded = bounded && read_bytes(out.data, out.len, 1 << 20) != CDC_OK;
			out.data[i] = (char) (out.data[i] ^ (1 << bit));
		}
	}
	ok(bounded, "flipped bits end in an error or in the end");
	cdc_buf_free(&out);
}

int
main(void)
{
	test_round_trip();
	test_cell();
	test_damage();
	return done_testing();
}
