/*-------------------------------------------------------------------------
 *
 * test_json_diff.c
 *	  Differences of JSON documents: what MySQL logs, applied to what it or
 *	  PostgreSQL prints.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "binlog/json_diff.h"

#include "event_build.h"
#include "tap.h"

enum
{
	REPLACE,
	INSERT,
	REMOVE
};

static CdcBuf diff;

/* Add one difference; hex is its value in binary JSON. */
static void
add(int op, const char *path, const char *hex)
{
	CdcBuf value;

	put_int(&diff, op, 1);
	put_int(&diff, strlen(path), 1);
	cdc_buf_add_str(&diff, path);
	if (op == REMOVE)
		return;
	cdc_buf_init(&value, &cdc_malloc_allocator, 0);
	put_hex(&value, hex);
	put_int(&diff, value.len, 1);
	cdc_buf_add(&diff, value.data, value.len);
	cdc_buf_free(&value);
}

/* Apply what was added to a document; want is the new one, or the name of the error. */
static void
check(const char *document, const char *want, const char *name)
{
	CdcArena arena;
	CdcBuf out;
	CdcError err = {0};
	CdcStatus status;

	cdc_arena_init(&arena, &cdc_malloc_allocator, 1 << 20);
	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	status = binlog_json_diff_apply((const uint8_t *) diff.data, diff.len, document, strlen(document), &arena,
	                                &out, &err);
	if (status == CDC_OK)
		is_strn(out.data, out.len, want, name);
	else
		is_str(cdc_status_name(status), want, name);
	cdc_buf_free(&out);
	cdc_arena_free(&arena);
	cdc_buf_reset(&diff);
}

/* Values */
#define FIVE "050500"
#define STR_X "0c0178"
#define EMPTY_OBJECT "0000000400"
#define TRUE_ "0401"

static void
test_replace(void)
{
	add(REPLACE, "$.a", FIVE);
	check("{\"a\": 1, \"bb\": 1.50}", "{\"a\": 5, \"bb\": 1.50}", "a member; others stay as written");
	add(REPLACE, "$.o.x[1]", STR_X);
	check("{\"o\": {\"x\": [1, [2, 3], 4e300]}}", "{\"o\": {\"x\": [1, \"x\", 4e300]}}", "deeper");
	add(REPLACE, "$[last]", STR_X);
	add(REPLACE, "$[last-2]", FIVE);
	check("[1, 2, 3]", "[5, 2, \"x\"]", "places from the end");
	add(REPLACE, "$.a[0]", FIVE);
	check("{\"a\": {\"b\": 1}}", "{\"a\": 5}", "the first place in what is no array");
	add(REPLACE, "$", FIVE);
	check("{\"a\": {\"b\": 1}}", "5", "all of it");
	add(REPLACE, "$.a", EMPTY_OBJECT);
	add(INSERT, "$.a.n", FIVE);
	add(REPLACE, "$.a.n", TRUE_);
	check("{\"a\": 1}", "{\"a\": {\"n\": true}}", "each counts for what the one before left");
	check("{\"a\":1,  \"b\" : [ ]}", "{\"a\":1,  \"b\" : [ ]}", "without differences the text stays");
	add(REPLACE, "$.b", FIVE);
	check(" {\"a\":1,  \"b\" : [ ], \"c\":[1,2]}\n", "{\"a\": 1, \"b\": 5, \"c\": [1,2]}", "any blanks are read");
	add(REPLACE, "$.b", FIVE);
	check("{\"a\": 1}", "malformed", "a member that is not there");
	add(REPLACE, "$[3]", FIVE);
	check("[1, 2, 3]", "malformed", "a place that is not there");
	add(REPLACE, "$.a.b", FIVE);
	check("{\"a\": 1}", "malformed", "a member of a number");
}

static void
test_insert(void)
{
	add(INSERT, "$.new", FIVE);
	check("{\"a\": 1, \"long\": 2}", "{\"a\": 1, \"new\": 5, \"long\": 2}", "shorter names stand first");
	add(INSERT, "$.bb", FIVE);
	add(INSERT, "$.ba", TRUE_);
	check("{\"aa\": 1, \"bc\": 2}", "{\"aa\": 1, \"ba\": true, \"bb\": 5, \"bc\": 2}", "then by bytes");
	add(INSERT, "$.a", FIVE);
	check("{}", "{\"a\": 5}", "into an empty object");
	add(INSERT, "$[0]", FIVE);
	add(INSERT, "$[2]", STR_X);
	add(INSERT, "$[99]", TRUE_);
	check("[1, 2]", "[5, 1, \"x\", 2, true]", "into an array, and behind its end");
	add(INSERT, "$[99999999999999999999]", TRUE_);
	check("[]", "[true]", "however far");
	add(INSERT, "$.\"a.b[0]\"", FIVE);
	add(INSERT, "$.\"tab\\tx\"", FIVE);
	add(REPLACE, "$.\"tab\\u0009x\"", TRUE_);
	check("{}", "{\"tab\\tx\": true, \"a.b[0]\": 5}", "names in quotes");
	add(REPLACE, "$.\"\\u20ac\\ud83d\\ude00\"", FIVE);
	check("{\"\xe2\x82\xac\xf0\x9f\x98\x80\": 1}", "{\"\xe2\x82\xac\xf0\x9f\x98\x80\": 5}", "escapes and characters are the same");
	add(INSERT, "$.\xc3\xa9", FIVE);
	check("{\"z\": 1}", "{\"z\": 1, \"\xc3\xa9\": 5}", "a name of two bytes");
	add(INSERT, "$.c", FIVE);
	check("{\"zz\": 1, \"b\": 2}", "{\"zz\": 1, \"b\": 2, \"c\": 5}", "an object out of order");
	add(INSERT, "$.a", FIVE);
	check("{\"a\": 1}", "malformed", "a member that is there already");
	add(INSERT, "$.a", FIVE);
	check("[1]", "malformed", "a member of an array");
	add(INSERT, "$[0]", FIVE);
	check("1", "malformed", "a place in a number");
	add(INSERT, "$", FIVE);
	check("1", "malformed", "no place at all");
}

static void
test_remove(void)
{
	add(REMOVE, "$.a", NULL);
	add(REMOVE, "$.b[0]", NULL);
	add(REMOVE, "$.b[0]", NULL);
	check("{\"a\": \"}]\\\"\", \"b\": [1, 2, 3]}", "{\"b\": [3]}", "members and elements");
	add(REMOVE, "$[last]", NULL);
	check("[1]", "[]", "the last one");
	add(REMOVE, "$.b", NULL);
	check("{\"a\": 1}", "malformed", "what is not there");
	add(REMOVE, "$", NULL);
	check("{\"a\": 1}", "malformed", "all of it");
}

static void
test_damage(void)
{
	static const char *const paths[] = {"", "a", "$.", "$..a", "$[", "$[x]", "$[1", "$[last-]", "$[last+1]", "$.\"a",
	                                    "$.\"\\x\"", "$.\"\\ud800\"", "$.\"\\u12\"", "$a", "$[*]", "$**.a", NULL};
	static const char *const documents[] = {"", " ", "{", "{\"a\"}", "{\"a\": }", "{\"a\": 1,}", "{\"a\": 1 2}", "{\"a\": 1]",
	                                        "{\"a\": 1} x", "{a: 1}", "{\"a: 1}", "{\"\\q\": 1}", NULL};
	CdcBuf path;

	for (int i = 0; paths[i] != NULL; i++)
	{
		add(REPLACE, paths[i], FIVE);
		check("{\"a\": 1}", "malformed", paths[i]);
	}
	for (int i = 0; documents[i] != NULL; i++)
	{
		add(REPLACE, "$.a", FIVE);
		check(documents[i], "malformed", documents[i]);
	}
	put_hex(&diff, "0303242e61");
	check("{\"a\": 1}", "malformed", "an unknown operation");
	put_hex(&diff, "0009242e61");
	check("{\"a\": 1}", "malformed", "a path beyond the end");
	put_hex(&diff, "0003242e6109");
	check("{\"a\": 1}", "malformed", "a value beyond the end");
	add(REPLACE, "$.a", "0403");
	check("{\"a\": 1}", "malformed", "a damaged value");

	cdc_buf_init(&path, &cdc_malloc_allocator, 0);
	cdc_buf_add_char(&path, '$');
	for (int i = 0; i < 60; i++)
		cdc_buf_add_str(&path, ".a");
	put_int(&diff, REMOVE, 1);
	put_int(&diff, 252, 1);
	put_int(&diff, 1 + 3 * (path.len - 1), 2);
	cdc_buf_add(&diff, path.data, path.len);
	cdc_buf_add(&diff, path.data + 1, path.len - 1);
	cdc_buf_add(&diff, path.data + 1, path.len - 1);
	check("{\"a\": 1}", "limit", "a path that is too long");
	cdc_buf_free(&path);
}

static void
test_to_text(void)
{
	CdcBuf out;
	CdcError err = {0};

	add(REPLACE, "$.a", FIVE);
	add(INSERT, "$.\"b c\"", STR_X);
	add(REMOVE, "$[3]", NULL);
	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	is_int(binlog_json_diff_to_text((const uint8_t *) diff.data, diff.len, &out, &err), CDC_OK, "differences can be shown");
	is_strn(out.data, out.len,
	        "[{\"op\": \"replace\", \"path\": \"$.a\", \"value\": 5}, {\"op\": \"insert\", \"path\": \"$.\\\"b c\\\"\", "
	        "\"value\": \"x\"}, {\"op\": \"remove\", \"path\": \"$[3]\"}]",
	        "as JSON");
	cdc_buf_reset(&out);
	is_int(binlog_json_diff_to_text((const uint8_t *) diff.data, diff.len - 2, &out, &err), CDC_MALFORMED, "damaged ones cannot");
	cdc_buf_free(&out);
	cdc_buf_reset(&diff);
}

/* A large array takes many differences in time and memory that grow with their number. */
static void
test_many(void)
{
	CdcArena arena;
	CdcBuf document;
	CdcBuf out;
	CdcError err = {0};
	char path[32];

	cdc_buf_init(&document, &cdc_malloc_allocator, 0);
	cdc_buf_add_char(&document, '{');
	for (int i = 0; i < 20000; i++)
		cdc_buf_printf(&document, "%s\"k%05d\": [%d]", i > 0 ? ", " : "", i, i);
	cdc_buf_add_char(&document, '}');
	for (int i = 0; i < 20000; i += 2)
	{
		snprintf(path, sizeof(path), "$.k%05d[0]", i);
		add(REPLACE, path, FIVE);
	}
	cdc_arena_init(&arena, &cdc_malloc_allocator, 32 << 20);
	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	is_int(binlog_json_diff_apply((const uint8_t *) diff.data, diff.len, document.data, document.len, &arena, &out, &err),
	       CDC_OK, "ten thousand differences");
	ok(out.data != NULL && strstr(out.data, "\"k19998\": [5], \"k19999\": [19999]}") != NULL, "are all applied");
	cdc_arena_free(&arena);

	cdc_arena_init(&arena, &cdc_malloc_allocator, 64 << 10);
	cdc_buf_reset(&out);
	is_int(binlog_json_diff_apply((const uint8_t *) diff.data, diff.len, document.data, document.len, &arena, &out, &err),
	       CDC_LIMIT, "the memory limit is kept");
	cdc_arena_free(&arena);
	cdc_buf_free(&out);
	cdc_buf_free(&document);
	cdc_buf_reset(&diff);
}

int
main(void)
{
	cdc_buf_init(&diff, &cdc_malloc_allocator, 0);
	test_replace();
	test_insert();
	test_remove();
	test_damage();
	test_to_text();
	test_many();
	cdc_buf_free(&diff);
	return done_testing();
}
