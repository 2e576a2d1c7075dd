/*-------------------------------------------------------------------------
 *
 * fuzz_grammar.h
 *	  A reader of JSON's grammar, as servers print it, for targets that make text.
 *
 * NOTES
 *	  It shares no code with what it checks. ", " and ": " separate, and there is
 *	  no other blank outside of strings.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_TEST_FUZZ_GRAMMAR_H
#define CDC_TEST_FUZZ_GRAMMAR_H

#include "fuzz.h"

typedef struct Reader
{
	const char *p;
	const char *end;
	bool any_blanks; /* between tokens, and a plus before exponents; else as MySQL writes: one behind each comma and colon */
} Reader;

static bool read_value(Reader *r, int depth);

static char
peek(const Reader *r)
{
	return r->p < r->end ? *r->p : '\0';
}

static bool
expect(Reader *r, const char *what)
{
	size_t len = strlen(what);

	if ((size_t) (r->end - r->p) < len || memcmp(r->p, what, len) != 0)
		return false;
	r->p += len;
	return true;
}

/* A comma or a colon, and the blanks that may or must stand there. */
static bool
expect_separator(Reader *r, const char *with_blank)
{
	if (!r->any_blanks)
		return expect(r, with_blank);
	while (peek(r) == ' ')
		r->p++;
	if (peek(r) != with_blank[0])
		return false;
	r->p++;
	while (peek(r) == ' ')
		r->p++;
	return true;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
read_digits(Reader *r)
{
	const char *start = r->p;

	while (is_digit(peek(r)))
		r->p++;
	return r->p > start;
}

static bool
read_number(Reader *r)
{
	if (peek(r) == '-')
		r->p++;
	if (peek(r) == '0')
		r->p++;
	else if (!read_digits(r))
		return false;
	if (peek(r) == '.')
	{
		r->p++;
		if (!read_digits(r))
			return false;
	}
	if (peek(r) == 'e')
	{
		r->p++;
		if (peek(r) == '-' || (r->any_blanks && peek(r) == '+'))
			r->p++;
		return read_digits(r);
	}
	return true;
}

static bool
read_string(Reader *r)
{
	if (!expect(r, "\""))
		return false;
	while (peek(r) != '"')
	{
		if (r->p == r->end || (unsigned char) *r->p < 0x20)
			return false;
		if (*r->p++ != '\\')
			continue;
		if (r->p == r->end || memchr("\"\\bfnrtu", *r->p, 8) == NULL)
			return false;
		if (*r->p++ == 'u')
		{
			for (int i = 0; i < 4; i++, r->p++)
			{
				if (!is_digit(peek(r)) && (peek(r) < 'a' || peek(r) > 'f'))
					return false;
			}
		}
	}
	r->p++;
	return true;
}

static bool
read_container(Reader *r, bool is_object, int depth)
{
	char close = is_object ? '}' : ']';

	r->p++;
	while (r->any_blanks && peek(r) == ' ')
		r->p++;
	for (bool first = true; peek(r) != close; first = false)
	{
		if (!first && !expect_separator(r, ", "))
			return false;
		if (is_object && !(read_string(r) && expect_separator(r, ": ")))
			return false;
		if (!read_value(r, depth - 1))
			return false;
		while (r->any_blanks && peek(r) == ' ')
			r->p++;
	}
	r->p++;
	return true;
}

static bool
read_value(Reader *r, int depth)
{
	if (depth < 0)
		return false;
	switch (peek(r))
	{
		case '{':
		case '[':
			return read_container(r, peek(r) == '{', depth);
		case '"':
			return read_string(r);
		case 'n':
			return expect(r, "null");
		case 't':
			return expect(r, "true");
		case 'f':
			return expect(r, "false");
		default:
			return read_number(r);
	}
}

/* As MySQL prints documents. */
static inline bool
json_is_valid(const char *text, size_t len, int depth)
{
	Reader r = {text, text + len, false};

	return read_value(&r, depth) && r.p == r.end;
}

/* With blanks between tokens wherever they may be. */
static inline bool
json_is_valid_anyhow(const char *text, size_t len, int depth)
{
	Reader r = {text, text + len, true};

	return read_value(&r, depth) && r.p == r.end;
}

#endif /* CDC_TEST_FUZZ_GRAMMAR_H */
