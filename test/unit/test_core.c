/*-------------------------------------------------------------------------
 *
 * test_core.c
 *	  Status, arena, buffer, cursor, position and table definition.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "core/buf.h"
#include "core/cursor.h"
#include "core/position.h"
#include "core/table_def.h"
#include "core/utf8.h"
#include "tap.h"

static void
test_status(void)
{
	CdcError err = {0};

	is_int(cdc_fail(&err, CDC_MALFORMED, 12, "bad %s", "thing"), CDC_MALFORMED,
	       "cdc_fail returns its code");
	is_str(err.text, "bad thing", "cdc_fail formats");
	is_int(err.offset, 12, "cdc_fail keeps the offset");
	is_int(cdc_fail(NULL, CDC_LIMIT, 0, "x"), CDC_LIMIT, "cdc_fail takes no error");
	is_str(cdc_status_name(CDC_CHECKSUM), "checksum", "cdc_status_name");
	cdc_fail(&err, CDC_MALFORMED, 0, "column \"%.4s\" \xff", "\xe2\x82\xac\xe2\x82\xac");
	is_str(err.text, "column \"\xe2\x82\xac?\" ?", "what is no UTF-8 in a message becomes a question mark");
}

static void
test_utf8(void)
{
	static const char *const valid[] = {"", "a\x7f", "\xc2\x80\xdf\xbf", "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80",
	                                    "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"};
	static const char *const invalid[] = {"\x80", "a\xff", "\xc1\xbf", "\xc3", "\xe0\x9f\xbf", "\xed\xa0\x80",
	                                      "\xe2\x82", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xc3(", "\xf8\x88\x80\x80\x80"};
	char text[] = "a\xc3\xa4\xc3\xff\xe2\x82";

	for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++)
		ok(cdc_utf8_is_valid(valid[i], strlen(valid[i])), "valid UTF-8");
	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
		ok(!cdc_utf8_is_valid(invalid[i], strlen(invalid[i])), "invalid UTF-8");
	cdc_utf8_repair(text);
	is_str(text, "a\xc3\xa4????", "repaired, character by character");
}

static void
test_arena(void)
{
	CdcArena arena;
	char *a;
	char *b;

	cdc_arena_init(&arena, &cdc_malloc_allocator, 100000);
	a = cdc_arena_alloc(&arena, 3);
	b = cdc_arena_strndup(&arena, "hello", 4);
	ok((uintptr_t) a % 8 == 0 && (uintptr_t) b % 8 == 0, "pieces are aligned");
	is_str(b, "hell", "strndup ends its copy");
	ok(cdc_arena_alloc(&arena, 200000) == NULL, "the limit holds for one piece");
	ok(cdc_arena_alloc(&arena, SIZE_MAX) == NULL, "an absurd size is refused");
	ok(cdc_arena_alloc(&arena, 60000) != NULL, "a large piece fits");
	ok(cdc_arena_alloc(&arena, 60000) == NULL, "the limit holds for the sum");
	ok(arena.total <= 100000, "total stays within the limit");
	is_str(b, "hell", "pieces do not move");
	cdc_arena_reset(&arena);
	ok(cdc_arena_zalloc(&arena, 60000) != NULL, "reset makes room");
	cdc_arena_free(&arena);
	is_int(arena.total, 0, "free gives all back");
}

static void
test_buf(void)
{
	CdcBuf buf;

	cdc_buf_init(&buf, &cdc_malloc_allocator, 10);
	cdc_buf_add_str(&buf, "abc");
	cdc_buf_printf(&buf, "%d", 42);
	cdc_buf_add_char(&buf, '!');
	is_str(buf.data, "abc42!", "additions");
	cdc_buf_add_str(&buf, "12345");
	is_int(buf.status, CDC_LIMIT, "limit is noticed");
	cdc_buf_add_str(&buf, "1");
	is_int(buf.len, 6, "error is sticky");
	cdc_buf_reset(&buf);
	is_int(buf.status, CDC_OK, "reset clears the error");
	for (int i = 0; i < 10; i++)
		cdc_buf_add_char(&buf, 'x');
	is_int(buf.status, CDC_OK, "exactly the limit fits");
	cdc_buf_add_char(&buf, 'x');
	is_int(buf.status, CDC_LIMIT, "one more does not");
	cdc_buf_free(&buf);
}

static void
test_cursor(void)
{
	static const uint8_t bytes[] = {1,   2, 3, 252, 1, 1, 253, 1, 0, 1,
	                                254, 1, 0, 0,   0, 0, 0,   0, 0, 251};
	CdcCursor c;

	cdc_cursor_init(&c, bytes, sizeof(bytes));
	is_int(cdc_cursor_uint_be(&c, 2), 0x0102, "big endian");
	is_int(cdc_cursor_lenenc(&c), 3, "lenenc 1");
	is_int(cdc_cursor_lenenc(&c), 257, "lenenc 3");
	is_int(cdc_cursor_lenenc(&c), 65537, "lenenc 4");
	is_int(cdc_cursor_lenenc(&c), 1, "lenenc 9");
	ok(!c.failed, "not failed so far");
	cdc_cursor_lenenc(&c);
	ok(c.failed && cdc_cursor_left(&c) == 0, "251 is no length");
	cdc_cursor_init(&c, bytes, 3);
	is_int(cdc_cursor_u32(&c), 0, "a read past the end gives 0");
	ok(c.failed, "and fails");
	cdc_cursor_init(&c, bytes, 3);
	ok(cdc_cursor_bytes(&c, UINT64_MAX) == NULL, "an absurd length fails");
}

static int
compare(const char *a, const char *b)
{
	CdcPosition pa;
	CdcPosition pb;
	int result;

	if (!cdc_position_parse(a, &pa) || !cdc_position_parse(b, &pb))
		return 98;
	return cdc_position_compare(&pa, &pb, &result) ? result : 99;
}

static void
test_position(void)
{
	CdcPosition pos;
	char text[CDC_POSITION_TEXT_MAX];

	is_int(compare("bl.999999:4", "bl.1000000:4"), -1, "file numbers are compared as numbers");
	is_int(compare("bl.000010:4", "bl.000009:400"), 1, "file before offset");
	is_int(compare("bl.000010:400", "bl.000010:5000000000"), -1, "offsets");
	is_int(compare("bl.000010:400", "bl.000010:400"), 0, "equal");
	is_int(compare("bl.000010:400", "bin.000010:400"), 99, "other bases have no order");
	is_int(compare("a:b.000001:4", "a:b.000001:5"), -1, "colon in a file name");
	ok(cdc_position_parse("bl.000001:18446744073709551615", &pos) && pos.offset == UINT64_MAX,
	   "largest offset");
	ok(!cdc_position_parse("bl.000001:18446744073709551616", &pos), "too large an offset");
	ok(!cdc_position_parse("bl.000001", &pos) && !cdc_position_parse(":4", &pos) &&
	       !cdc_position_parse("x:", &pos) && !cdc_position_parse("x:4a", &pos),
	   "not of the form");
	cdc_position_parse("bl.000001:123", &pos);
	cdc_position_format(&pos, text);
	is_str(text, "bl.000001:123", "format");
	pos.file[0] = '\0';
	cdc_position_format(&pos, text);
	is_str(text, "", "format of an unknown one");
}

static void
test_table_def(void)
{
	CdcLabel labels[] = {{"x", 1}, {"yy", 2}};
	CdcColumnDef columns[] = {{.name = "a", .type = CDC_TYPE_ENUM, .labels = labels, .nlabels = 2},
	                          {.name = NULL, .type = CDC_TYPE_INT, .type_text = "int"}};
	CdcIndexPart parts[] = {{.column = "a", .prefix = 3, .descending = true},
	                        {.expression = "lower(`a`)"}};
	CdcIndexDef indexes[] = {
	    {.name = "i", .type_text = "BTREE", .is_unique = true, .nparts = 2, .parts = parts}};
	CdcTableDef def = {.schema = "s",
	                   .name = "t",
	                   .ncolumns = 2,
	                   .columns = columns,
	                   .nindexes = 1,
	                   .indexes = indexes,
	                   .user = &def};
	CdcTableDef *copy;
	CdcArena arena;

	cdc_arena_init(&arena, &cdc_malloc_allocator, 0);
	copy = cdc_table_def_copy(&def, &arena);
	ok(copy != NULL && copy->user == NULL && copy->columns != columns,
	   "copy is deep and has no user");
	is_str(copy->name, "t", "table name");
	is_strn(copy->columns[0].labels[1].data, copy->columns[0].labels[1].len, "yy", "label");
	ok(copy->columns[1].name == NULL, "an unknown name stays unknown");
	is_str(copy->columns[1].type_text, "int", "type text");
	ok(copy->nindexes == 1 && copy->indexes != indexes && copy->indexes[0].parts != parts &&
	       copy->indexes[0].is_unique && copy->indexes[0].nparts == 2,
	   "indexes are copied deep");
	is_str(copy->indexes[0].name, "i", "index name");
	ok(strcmp(copy->indexes[0].parts[0].column, "a") == 0 &&
	       copy->indexes[0].parts[0].column != parts[0].column &&
	       copy->indexes[0].parts[0].prefix == 3 && copy->indexes[0].parts[0].descending,
	   "index part that is a column");
	ok(copy->indexes[0].parts[1].column == NULL &&
	       strcmp(copy->indexes[0].parts[1].expression, "lower(`a`)") == 0,
	   "index part that is an expression");
	cdc_arena_free(&arena);
	cdc_arena_init(&arena, &cdc_malloc_allocator, 64);
	ok(cdc_table_def_copy(&def, &arena) == NULL, "copy without memory");
	cdc_arena_free(&arena);
	is_str(cdc_type_name(CDC_TYPE_MEDIUMINT), "mediumint", "type name");
	is_str(cdc_type_name(CDC_TYPE_INET6), "inet6", "last type name");
	is_str(cdc_type_name((CdcType) 99), "unknown", "name of no type");
}

int
main(void)
{
	test_status();
	test_utf8();
	test_arena();
	test_buf();
	test_cursor();
	test_position();
	test_table_def();
	return done_testing();
}
