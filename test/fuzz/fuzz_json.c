/*-------------------------------------------------------------------------
 *
 * fuzz_json.c
 *	  libFuzzer target: MySQL's binary JSON.
 *
 * NOTES
 *	  The input is a document. The text is JSON by a reader of the grammar written
 *	  here, is never longer than the bound that json.c promises, and a smaller limit
 *	  of the buffer is kept. A double reads back as the same double.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include <math.h>

#include "binlog/json.h"

typedef struct Reader
{
	const char *p;
	const char *end;
} Reader;

static void read_value(Reader *r, int depth);

static char
peek(const Reader *r)
{
	return r->p < r->end ? *r->p : '\0';
}

static void
expect(Reader *r, const char *what)
{
	size_t len = strlen(what);

	require((size_t) (r->end - r->p) >= len && memcmp(r->p, what, len) == 0);
	r->p += len;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static void
read_digits(Reader *r)
{
	require(is_digit(peek(r)));
	while (is_digit(peek(r)))
		r->p++;
}

static void
read_number(Reader *r)
{
	if (peek(r) == '-')
		r->p++;
	if (peek(r) == '0')
		r->p++;
	else
		read_digits(r);
	if (peek(r) == '.')
	{
		r->p++;
		read_digits(r);
	}
	if (peek(r) == 'e')
	{
		r->p++;
		if (peek(r) == '-')
			r->p++;
		read_digits(r);
	}
}

static void
read_string(Reader *r)
{
	expect(r, "\"");
	while (peek(r) != '"')
	{
		require(r->p < r->end && (unsigned char) *r->p >= 0x20);
		if (*r->p++ != '\\')
			continue;
		require(r->p < r->end && strchr("\"\\bfnrtu", *r->p) != NULL);
		if (*r->p++ == 'u')
		{
			for (int i = 0; i < 4; i++, r->p++)
				require(is_digit(peek(r)) || (peek(r) >= 'a' && peek(r) <= 'f'));
		}
	}
	r->p++;
}

static void
read_container(Reader *r, bool is_object, int depth)
{
	char close = is_object ? '}' : ']';

	r->p++;
	for (bool first = true; peek(r) != close; first = false)
	{
		if (!first)
			expect(r, ", ");
		if (is_object)
		{
			read_string(r);
			expect(r, ": ");
		}
		read_value(r, depth - 1);
	}
	r->p++;
}

static void
read_value(Reader *r, int depth)
{
	require(depth >= 0);
	switch (peek(r))
	{
		case '{':
		case '[':
			read_container(r, peek(r) == '{', depth);
			return;
		case '"':
			read_string(r);
			return;
		case 'n':
			expect(r, "null");
			return;
		case 't':
			expect(r, "true");
			return;
		case 'f':
			expect(r, "false");
			return;
		default:
			read_number(r);
			return;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CdcBuf text;
	CdcError err = {0};
	CdcStatus status;
	size_t limit;

	if (size > 32768)
		return 0;
	cdc_buf_init(&text, &cdc_malloc_allocator, 0);
	status = binlog_json_to_text(data, size, BINLOG_JSON_DEPTH_MAX, &text, &err);
	require(text.len <= size * 8 + 64);
	require(text.limit == 0);
	if (status == CDC_OK)
	{
		Reader r = {text.data, text.data + text.len};

		read_value(&r, BINLOG_JSON_DEPTH_MAX);
		require(r.p == r.end);
		if (size >= 9 && data[0] == 11)
		{
			double want;
			double got = strtod(text.data, NULL);

			memcpy(&want, data + 1, sizeof(want));
			require(isfinite(want) && got == want && signbit(got) == signbit(want));
		}
	}
	else
		check_error(status, &err);

	/* again with less room, behind what the buffer already holds */
	limit = text.len > 0 ? text.len / 2 + 3 : 3;
	cdc_buf_free(&text);
	cdc_buf_init(&text, &cdc_malloc_allocator, limit);
	cdc_buf_add(&text, "abc", 3);
	err.code = CDC_OK;
	status = binlog_json_to_text(data, size, 3, &text, &err);
	require(text.len >= 3 && text.len <= limit && text.limit == limit);
	if (status != CDC_OK)
		check_error(status, &err);
	cdc_buf_free(&text);
	return 0;
}
