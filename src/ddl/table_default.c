/*-------------------------------------------------------------------------
 *
 * table_default.c
 *	  A column's default: from how it is written to how the server prints it.
 *
 * NOTES
 *	  The servers store the value of a literal and print that: 1e3 of a DECIMAL(10,2) is
 *	  1000.00, 'A' of an ENUM is the label 'a', x'41' of a VARCHAR is A. An expression
 *	  stays one; MySQL takes everything in parentheses for an expression, MariaDB
 *	  a literal in parentheses for the literal. Seen on MySQL 9.7 and MariaDB
 *	  10.11; the forms are those that mysql_describe.c makes of them.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"
#include "ddl/table_draft.h"

/* Nested parentheses around a literal, at most. */
#define MAX_PARENTHESES 8

/* Digits of a literal that are looked at, and its exponent, at most. */
#define MAX_DIGITS 400

/* ---- literals ---- */

static bool
is_ascii(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
	{
		if ((unsigned char) text[i] >= 0x80 || text[i] == '\0')
			return false;
	}
	return true;
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
		return (c | 0x20) - 'a' + 10;
	return -1;
}

/* Digits of x'..' or b'..' as bytes; an odd half stands in the first one. */
static void
set_bytes(DdlDraft *d, DdlValue *value, const char *digits, size_t ndigits, bool is_hex)
{
	int			bits = is_hex ? 4 : 1;
	size_t		nbytes = (ndigits * (size_t) bits + 7) / 8;
	size_t		bit = nbytes * 8 - ndigits * (size_t) bits;
	char	   *bytes = cdc_arena_zalloc(d->p.arena, nbytes + 1);

	value->kind = DDL_VALUE_UNKNOWN;
	if (bytes == NULL)
	{
		d->p.nomem = true;
		return;
	}
	for (size_t i = 0; i < ndigits; i++, bit += (size_t) bits)
	{
		int			digit = hex_digit(digits[i]);

		if (digit < 0 || (!is_hex && digit > 1))
			return;
		bytes[bit / 8] = (char) ((unsigned char) bytes[bit / 8] | digit << (8 - bits - (int) (bit % 8)));
	}
	value->kind = DDL_VALUE_BYTES;
	value->text = bytes;
	value->len = nbytes;
}

/* 'a' 'b': at the first one. */
static void
read_strings(DdlDraft *d, DdlValue *value)
{
	DdlParser  *p = &d->p;

	value->kind = DDL_VALUE_STRING;
	value->text = "";
	value->len = 0;
	while (ddl_current(p)->kind == DDL_TOKEN_STRING)
	{
		size_t		len;
		char	   *piece = ddl_token_string(&p->lexer, ddl_current(p), p->arena, &len);
		char	   *whole = value->len == 0 ? piece : cdc_arena_alloc(p->arena, value->len + len + 1);

		if (piece == NULL || whole == NULL)
		{
			p->nomem = true;
			return;
		}
		if (value->len > 0)
		{
			memcpy(whole, value->text, value->len);
			memcpy(whole + value->len, piece, len + 1);
		}
		value->text = whole;
		value->len += len;
		ddl_advance(p);
	}
}

/* x'41', b'101', n'text': the word stands right before the quote. */
static bool
read_marked_string(DdlDraft *d, DdlValue *value)
{
	DdlParser  *p = &d->p;
	bool		is_hex = ddl_at_word(p, "X");
	bool		is_bits = ddl_at_word(p, "B");

	if ((!is_hex && !is_bits && !ddl_at_word(p, "N")) || !ddl_lexer_touches(&p->lexer, '\''))
		return false;
	ddl_advance(p);
	if (is_hex || is_bits)
	{
		set_bytes(d, value, ddl_current(p)->text, ddl_current(p)->len, is_hex);
		ddl_advance(p);
	}
	else
		read_strings(d, value);
	return true;
}

/* 0x41 and 0b101, whose letter is a small one. */
static bool
read_zero_literal(DdlDraft *d, DdlValue *value)
{
	const DdlToken *token = ddl_current(&d->p);

	if (token->kind != DDL_TOKEN_WORD || token->len < 3 || token->text[0] != '0' ||
		(token->text[1] != 'x' && token->text[1] != 'b'))
		return false;
	set_bytes(d, value, token->text + 2, token->len - 2, token->text[1] == 'x');
	ddl_advance(&d->p);
	return true;
}

static bool
read_number(DdlDraft *d, DdlValue *value)
{
	DdlParser  *p = &d->p;
	bool		negative = ddl_at_sign(p, '-');
	const DdlToken *token;
	char	   *text;

	if (negative || ddl_at_sign(p, '+'))
		ddl_advance(p);
	if (!ddl_lexer_number(&p->lexer))
		return false;
	token = ddl_current(p);
	text = cdc_arena_alloc(p->arena, token->len + 2);
	if (text == NULL)
	{
		p->nomem = true;
		return false;
	}
	text[0] = '-';
	memcpy(text + negative, token->text, token->len);
	text[token->len + negative] = '\0';
	value->kind = DDL_VALUE_NUMBER;
	value->text = text;
	value->len = token->len + negative;
	ddl_advance(p);
	return true;
}

/* A literal at the current token; false, and the token is where it was, when there is none. */
static bool
read_literal(DdlDraft *d, DdlValue *value)
{
	DdlParser  *p = &d->p;
	DdlLexer	start = p->lexer;
	const DdlToken *token = ddl_current(p);

	if (token->kind == DDL_TOKEN_STRING)
		read_strings(d, value);
	else if (ddl_accept_word(p, "NULL"))
		value->kind = DDL_VALUE_NULL;
	else if (ddl_at_word(p, "TRUE") || ddl_at_word(p, "FALSE"))
	{
		value->kind = DDL_VALUE_BOOLEAN;
		value->text = ddl_at_word(p, "TRUE") ? "1" : "0";
		value->len = 1;
		ddl_advance(p);
	}
	else if (read_marked_string(d, value) || read_zero_literal(d, value))
		;
	else if (ddl_at_word(p, "DATE") || ddl_at_word(p, "TIME") || ddl_at_word(p, "TIMESTAMP"))
	{
		ddl_advance(p);
		if (ddl_current(p)->kind == DDL_TOKEN_STRING)
			read_strings(d, value);
		else
			p->lexer = start;
	}
	else if (token->kind == DDL_TOKEN_WORD && token->text[0] == '_')
	{
		bool		is_utf8 = ddl_at_word(p, "_UTF8MB4") || ddl_at_word(p, "_UTF8MB3") || ddl_at_word(p, "_UTF8");

		ddl_advance(p);
		if (ddl_current(p)->kind == DDL_TOKEN_STRING)
			read_strings(d, value);
		else if (!read_marked_string(d, value) && !read_zero_literal(d, value))
			p->lexer = start;
		else if (is_utf8 && value->kind == DDL_VALUE_BYTES && cdc_utf8_is_valid(value->text, value->len))
			value->kind = DDL_VALUE_STRING;
		/* other bytes mean what that character set says */
		if (!is_utf8 && value->text != NULL && !is_ascii(value->text, value->len))
			value->kind = DDL_VALUE_UNKNOWN;
	}
	else if (!read_number(d, value))
		p->lexer = start;
	return value->kind != DDL_VALUE_NONE;
}

const char *
ddl_read_text(DdlDraft *d, size_t *len)
{
	DdlValue	value;

	memset(&value, 0, sizeof(value));
	(void) read_literal(d, &value);
	*len = value.len;
	if (value.kind == DDL_VALUE_BYTES && !is_ascii(value.text, value.len))
		return NULL;			/* in the column's character set */
	return value.kind == DDL_VALUE_STRING || value.kind == DDL_VALUE_BYTES ? value.text : NULL;
}

/* ---- DEFAULT ---- */

/* The current time: NOW(), CURRENT_TIMESTAMP(6), LOCALTIME, ... */
bool
ddl_read_now(DdlDraft *d, int *digits)
{
	static const char *const names[] = {"CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "NOW", NULL};
	DdlParser  *p = &d->p;
	DdlLexer	start = p->lexer;

	*digits = 0;
	if (!ddl_at_one_of(p, names))
		return false;
	ddl_advance(p);
	if (ddl_accept_sign(p, '('))
	{
		bool		given;

		if (!ddl_at_sign(p, ')'))
			*digits = (int) ddl_read_size(d, &given);
		if (!ddl_accept_sign(p, ')') || *digits > 6)
		{
			p->lexer = start;
			return false;
		}
	}
	return true;
}

static bool
read_curdate(DdlDraft *d, DdlValue *value)
{
	DdlParser  *p = &d->p;
	DdlLexer	start = p->lexer;

	if (!ddl_accept_word(p, "CURDATE") && !ddl_accept_word(p, "CURRENT_DATE"))
		return false;
	if (ddl_accept_sign(p, '(') && !ddl_accept_sign(p, ')'))
	{
		p->lexer = start;
		return false;
	}
	value->kind = DDL_VALUE_EXPRESSION;
	value->text = "curdate()";
	return true;
}

static void
set_expression(DdlDraft *d, DdlValue *value, const char *begin, const char *end)
{
	while (begin < end && (unsigned char) end[-1] <= ' ')
		end--;
	value->kind = DDL_VALUE_EXPRESSION;
	value->len = (size_t) (end - begin);
	value->text = cdc_arena_strndup(d->p.arena, begin, value->len);
	if (value->text == NULL)
		d->p.nomem = true;
}

/* What can stand with or without parentheses and has one form only. */
static bool
read_simple(DdlDraft *d, DdlValue *value)
{
	if (ddl_read_now(d, &value->digits))
	{
		value->kind = DDL_VALUE_NOW;
		return true;
	}
	return read_curdate(d, value) || read_literal(d, value);
}

/* (expression): at its opening. A literal in it is told apart. */
static void
read_parenthesised(DdlDraft *d, DdlValue *value)
{
	DdlParser  *p = &d->p;
	DdlLexer	start = p->lexer;
	DdlValue	simple;
	const char *begin;
	int			depth = 0;
	bool		closed = false;

	while (depth < MAX_PARENTHESES && ddl_accept_sign(p, '('))
		depth++;
	memset(&simple, 0, sizeof(simple));
	if (read_simple(d, &simple))
	{
		while (depth > 0 && ddl_accept_sign(p, ')'))
			depth--;
		closed = depth == 0;
	}
	if (closed)
		*value = simple;
	else
	{
		p->lexer = start;
		begin = p->lexer.pos;
		ddl_skip_parentheses(p);
		/* the token behind it has been read: the closing one is the last before that */
		for (const char *end = ddl_current(p)->text; end > begin; end--)
		{
			if (end[-1] == ')')
			{
				set_expression(d, value, begin, end - 1);
				break;
			}
		}
		if (value->kind == DDL_VALUE_NONE)
			value->kind = DDL_VALUE_UNKNOWN;
	}
	value->in_parentheses = true;
}

/* MariaDB: NEXT VALUE FOR s, or a function without parentheses around it. */
static void
read_function(DdlDraft *d, DdlValue *value)
{
	DdlParser  *p = &d->p;
	const char *begin = ddl_current(p)->text;
	const char *end = begin;

	if (ddl_accept_word(p, "NEXT"))
	{
		(void) ddl_accept_word(p, "VALUE");
		(void) ddl_accept_word(p, "FOR");
	}
	if (!ddl_at_name(p))
	{
		d->certain = false;
		value->kind = DDL_VALUE_UNKNOWN;
		return;
	}
	end = p->lexer.pos;
	ddl_advance(p);
	while (ddl_accept_sign(p, '.'))
	{
		end = p->lexer.pos;
		ddl_advance(p);
	}
	if (ddl_at_sign(p, '('))
	{
		ddl_skip_parentheses(p);
		for (end = ddl_current(p)->text; end > begin && end[-1] != ')';)
			end--;
	}
	set_expression(d, value, begin, end);
}

/* Behind the word DEFAULT. */
void
ddl_read_default(DdlDraft *d, DdlValue *value)
{
	memset(value, 0, sizeof(*value));
	if (ddl_at_sign(&d->p, '('))
		read_parenthesised(d, value);
	else if (!read_simple(d, value))
		read_function(d, value);
}

/* ---- numbers ---- */

/* A number as its digits: 0.d1d2d3... times ten to the power of "point". */
typedef struct Decimal
{
	bool		negative;
	int			ndigits;
	int			point;
	int			scale;			/* digits behind the point, as it was written */
	bool		has_exponent;
	char		digits[MAX_DIGITS];
} Decimal;

/* Blanks around it do not matter. False when it is no number. */
static bool
parse_decimal(const char *text, Decimal *out)
{
	bool		any = false;
	bool		behind = false;
	long		exponent = 0;
	char	   *end;

	memset(out, 0, sizeof(*out));
	while (*text == ' ')
		text++;
	if (*text == '-' || *text == '+')
		out->negative = *text++ == '-';
	for (; (*text >= '0' && *text <= '9') || (*text == '.' && !behind); text++)
	{
		if (*text == '.')
		{
			behind = true;
			continue;
		}
		any = true;
		if (behind)
			out->scale++;
		if (out->ndigits == 0 && *text == '0')
		{
			out->point -= behind;
			continue;
		}
		if (out->ndigits == MAX_DIGITS)
			return false;
		out->digits[out->ndigits++] = *text;
		out->point += !behind;
	}
	if (any && (*text == 'e' || *text == 'E'))
	{
		exponent = strtol(text + 1, &end, 10);
		if (end == text + 1 || exponent > MAX_DIGITS || exponent < -MAX_DIGITS)
			return false;
		out->has_exponent = true;
		text = end;
	}
	while (*text == ' ')
		text++;
	out->point += (int) exponent;
	return any && *text == '\0';
}

/* Round half away from zero, to so many digits behind the point. */
static void
round_decimal(Decimal *number, int scale)
{
	int			keep = number->point + scale;
	bool		up;

	if (keep >= number->ndigits)
		return;
	up = keep >= 0 && number->digits[keep] >= '5';
	number->ndigits = keep > 0 ? keep : 0;
	for (int i = number->ndigits - 1; up && i >= 0; i--)
	{
		up = number->digits[i] == '9';
		number->digits[i] = up ? '0' : (char) (number->digits[i] + 1);
	}
	if (up)
	{
		/* all nines, or nothing kept at all */
		memmove(number->digits + 1, number->digits, (size_t) number->ndigits);
		number->digits[0] = '1';
		number->ndigits++;
		number->point++;
	}
	if (number->ndigits == 0)
		number->point = 0;
}

/* With exactly "scale" digits behind the point, and at least "width" before it. */
static char *
format_decimal(DdlDraft *d, Decimal *number, int scale, int width)
{
	int			before;
	bool		is_zero = true;
	char	   *text;
	char	   *out;

	if (scale < 0 || scale > 2 * MAX_DIGITS || width > 2 * MAX_DIGITS)
		return NULL;
	round_decimal(number, scale);
	for (int i = 0; i < number->ndigits; i++)
		is_zero = is_zero && number->digits[i] == '0';
	before = number->point > 0 ? number->point : 0;
	if (before < width)
		before = width;
	if (before == 0)
		before = 1;
	out = text = cdc_arena_alloc(d->p.arena, (size_t) before + (size_t) scale + 3);
	if (text == NULL)
	{
		d->p.nomem = true;
		return NULL;
	}
	if (number->negative && !is_zero)
		*out++ = '-';
	for (int i = number->point - before; i < number->point + scale; i++)
	{
		if (i == number->point)
			*out++ = '.';
		*out++ = i >= 0 && i < number->ndigits ? number->digits[i] : '0';
	}
	*out = '\0';
	return text;
}

/* As the servers print FLOAT and DOUBLE without a number of digits: six digits, or as many as it takes. */
static char *
format_double(DdlDraft *d, double number, bool is_float)
{
	char		buf[64];
	char	   *e;
	Decimal		digits;
	int			exponent;

	if (number == 0)
		return cdc_arena_strndup(d->p.arena, "0", 1);
	if (is_float)
		snprintf(buf, sizeof(buf), "%.*e", FLT_DIG - 1, (double) (float) number);
	else
	{
		for (int precision = 0; precision < 17; precision++)
		{
			snprintf(buf, sizeof(buf), "%.*e", precision, number);
			if (strtod(buf, NULL) == number)
				break;
		}
	}
	e = strchr(buf, 'e');
	if (e == NULL || !parse_decimal(buf, &digits))
		return NULL;
	while (digits.ndigits > 1 && digits.digits[digits.ndigits - 1] == '0')
		digits.ndigits--;
	if (digits.point <= DBL_DIG && digits.point >= -(DBL_DIG - 1))
		return format_decimal(d, &digits, digits.ndigits > digits.point ? digits.ndigits - digits.point : 0, 0);
	exponent = digits.point - 1;
	snprintf(buf, sizeof(buf), "%s%.1s%s%.*se%d", digits.negative ? "-" : "", digits.digits,
			 digits.ndigits > 1 ? "." : "", digits.ndigits - 1, digits.digits + 1, exponent);
	return cdc_arena_strndup(d->p.arena, buf, strlen(buf));
}

/* First bytes as a number; false when there are more than eight. */
static bool
bytes_value(const DdlValue *value, uint64_t *number)
{
	*number = 0;
	if (value->len > 8)
		return false;
	for (size_t i = 0; i < value->len; i++)
		*number = *number << 8 | (unsigned char) value->text[i];
	return true;
}

/* The literal's number as text; NULL when it has none. */
static const char *
number_text(DdlDraft *d, const DdlValue *value)
{
	uint64_t	number;
	char		buf[24];

	if (value->kind != DDL_VALUE_BYTES)
		return value->text;
	if (!bytes_value(value, &number))
		return NULL;
	snprintf(buf, sizeof(buf), "%llu", (unsigned long long) number);
	return cdc_arena_strndup(d->p.arena, buf, strlen(buf));
}

/* The number in the parentheses of the type, the first or the second one; -1 when there is none. */
static int
type_number(const CdcColumnDef *column, bool second)
{
	const char *p = strchr(column->type_text, '(');
	long		number;

	if (p != NULL && second)
		p = strchr(p, ',');
	if (p == NULL)
		return -1;
	number = strtol(p + 1, NULL, 10);
	return number > 4 * MAX_DIGITS ? 4 * MAX_DIGITS : (int) number;
}

static char *
number_default(DdlDraft *d, const CdcColumnDef *column, const DdlValue *value)
{
	const char *text = number_text(d, value);
	bool		zerofill = strstr(column->type_text, " zerofill") != NULL;
	Decimal		number;
	int			scale;
	double		real;

	if (text == NULL || !parse_decimal(text, &number))
		return NULL;
	switch (column->type)
	{
		case CDC_TYPE_DECIMAL:
			return format_decimal(d, &number, column->scale, zerofill ? column->precision - column->scale : 0);
		case CDC_TYPE_FLOAT:
		case CDC_TYPE_DOUBLE:
			scale = type_number(column, true);
			if (scale >= 0)
				return format_decimal(d, &number, scale, 0);
			real = strtod(text, NULL);
			if (real > DBL_MAX || real < -DBL_MAX)
				return NULL;
			return format_double(d, real, column->type == CDC_TYPE_FLOAT);
		default:
			return format_decimal(d, &number, 0, zerofill ? type_number(column, false) : 0);
	}
}

/* b'101' without zeros in front. */
static char *
bit_default(DdlDraft *d, const DdlValue *value)
{
	uint64_t	number;
	char		buf[72];
	size_t		len = 0;
	Decimal		decimal;
	char	   *text;

	if (value->kind == DDL_VALUE_NUMBER || value->kind == DDL_VALUE_BOOLEAN)
	{
		if (!parse_decimal(value->text, &decimal) || decimal.negative ||
			(text = format_decimal(d, &decimal, 0, 0)) == NULL || strlen(text) > 20)
			return NULL;
		number = strtoull(text, NULL, 10);
	}
	else if (!bytes_value(value, &number))
		return NULL;
	buf[len++] = 'b';
	buf[len++] = '\'';
	for (int i = 63; i >= 0; i--)
	{
		if (number >> i != 0 || i == 0)
			buf[len++] = (char) ('0' + (number >> i & 1));
	}
	buf[len++] = '\'';
	return cdc_arena_strndup(d->p.arena, buf, len);
}

/* ---- texts ---- */

/* The literal as text; NULL when that is not decided. */
static const char *
literal_text(DdlDraft *d, const DdlValue *value, size_t *len)
{
	Decimal		number;
	const char *text = value->text;

	*len = value->len;
	switch (value->kind)
	{
		case DDL_VALUE_STRING:
			return text;
		case DDL_VALUE_BYTES:
			return is_ascii(text, *len) ? text : NULL;
		case DDL_VALUE_BOOLEAN:
			return text;
		case DDL_VALUE_NUMBER:
			if (!parse_decimal(text, &number))
				return NULL;
			text = number.has_exponent ? format_double(d, strtod(text, NULL), false)
				: format_decimal(d, &number, number.scale, 0);
			*len = text != NULL ? strlen(text) : 0;
			return text;
		default:
			return NULL;
	}
}

static char
fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (char) (c | 0x20) : c;
}

static bool
same_text(const char *a, size_t alen, const char *b, size_t blen, bool folded)
{
	if (alen != blen)
		return false;
	for (size_t i = 0; i < alen; i++)
	{
		if (folded ? fold(a[i]) != fold(b[i]) : a[i] != b[i])
			return false;
	}
	return true;
}

/* The label that a text stands for, by its number; -1 when there is none. */
static int
find_label(const CdcColumnDef *column, const char *text, size_t len)
{
	for (int folded = 0; folded <= 1; folded++)
	{
		for (uint32_t i = 0; i < column->nlabels; i++)
		{
			if (same_text(column->labels[i].data, column->labels[i].len, text, len, folded))
				return (int) i;
		}
	}
	return -1;
}

/* The labels of a SET in their own order; NULL when one is unknown. */
static char *
set_default(DdlDraft *d, const CdcColumnDef *column, const char *text, size_t len)
{
	uint64_t	members = 0;
	const char *end = text + len;
	size_t		size = 1;
	char	   *out;
	char	   *at;

	for (const char *p = text; len > 0 && p <= end;)
	{
		const char *comma = memchr(p, ',', (size_t) (end - p));
		size_t		n = (size_t) ((comma ? comma : end) - p);
		int			label = find_label(column, p, n);

		if (label < 0 || label > 63)
			return NULL;
		members |= UINT64_C(1) << label;
		size += column->labels[label].len + 1;
		p += n + 1;
	}
	out = at = cdc_arena_alloc(d->p.arena, size);
	if (out == NULL)
		return NULL;
	for (uint32_t i = 0; i < column->nlabels && i < 64; i++)
	{
		if ((members >> i & 1) == 0)
			continue;
		if (at > out)
			*at++ = ',';
		memcpy(at, column->labels[i].data, column->labels[i].len);
		at += column->labels[i].len;
	}
	*at = '\0';
	return out;
}

static const char *
text_default(DdlDraft *d, const CdcColumnDef *column, const DdlValue *value)
{
	size_t		len;
	const char *text = literal_text(d, value, &len);
	int			label;

	if (text == NULL || memchr(text, '\0', len) != NULL)
		return NULL;
	if (column->type == CDC_TYPE_CHAR || column->type == CDC_TYPE_ENUM)
	{
		while (len > 0 && text[len - 1] == ' ')
			len--;
	}
	if (column->type == CDC_TYPE_SET)
		return set_default(d, column, text, len);
	if (column->type == CDC_TYPE_ENUM)
	{
		label = find_label(column, text, len);
		if (label < 0)
			return NULL;
		text = column->labels[label].data;
		len = column->labels[label].len;
	}
	return cdc_arena_strndup(d->p.arena, text, len);
}

static char *
lower_text(DdlDraft *d, const DdlValue *value)
{
	char	   *copy;

	if (value->kind != DDL_VALUE_STRING)
		return NULL;
	copy = cdc_arena_strndup(d->p.arena, value->text, value->len);
	for (char *p = copy; p != NULL && *p != '\0'; p++)
		*p = fold(*p);
	return copy;
}

/* 0x6162; MariaDB prints all bytes of a BINARY. */
static char *
binary_default(DdlDraft *d, const CdcColumnDef *column, const DdlValue *value)
{
	size_t		len;
	const char *bytes = value->kind == DDL_VALUE_BYTES ? value->text : literal_text(d, value, &len);
	size_t		size;
	char	   *out;

	if (bytes == NULL)
		return NULL;
	if (value->kind == DDL_VALUE_BYTES)
		len = value->len;
	size = len;
	if (d->dialect == DDL_DIALECT_MARIADB && column->type == CDC_TYPE_BINARY && size < column->length && column->length <= 255)
		size = column->length;
	out = cdc_arena_alloc(d->p.arena, 2 * size + 3);
	if (out == NULL)
		return NULL;
	out[0] = '0';
	out[1] = 'x';
	out[2] = '\0';
	for (size_t i = 0; i < size; i++)
		snprintf(out + 2 + 2 * i, 3, "%02X", i < len ? (unsigned char) bytes[i] : 0);
	return out;
}

/* ---- the default of a column ---- */

static const char *
literal_default(DdlDraft *d, const CdcColumnDef *column, const DdlValue *value)
{
	char		buf[40];

	switch (column->type)
	{
		case CDC_TYPE_TINYINT:
		case CDC_TYPE_SMALLINT:
		case CDC_TYPE_MEDIUMINT:
		case CDC_TYPE_INT:
		case CDC_TYPE_BIGINT:
		case CDC_TYPE_FLOAT:
		case CDC_TYPE_DOUBLE:
		case CDC_TYPE_DECIMAL:
			return number_default(d, column, value);
		case CDC_TYPE_BIT:
			return bit_default(d, value);
		case CDC_TYPE_YEAR:
		case CDC_TYPE_DATE:
		case CDC_TYPE_TIME:
		case CDC_TYPE_DATETIME:
		case CDC_TYPE_TIMESTAMP:
			if (!ddl_format_time(d, column, value, buf, sizeof(buf)))
				return NULL;
			return cdc_arena_strndup(d->p.arena, buf, strlen(buf));
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
		case CDC_TYPE_TEXT:
		case CDC_TYPE_ENUM:
		case CDC_TYPE_SET:
		case CDC_TYPE_JSON:
			return text_default(d, column, value);
		case CDC_TYPE_BINARY:
		case CDC_TYPE_VARBINARY:
		case CDC_TYPE_BLOB:
			return binary_default(d, column, value);
		case CDC_TYPE_UUID:
		case CDC_TYPE_INET4:
		case CDC_TYPE_INET6:
			return lower_text(d, value);
		default:
			return NULL;
	}
}

/* MySQL's form of a literal in parentheses; NULL when it is none of the simple ones. */
static char *
expression_default(DdlDraft *d, const DdlValue *value)
{
	char	   *out;
	size_t		size = value->len + 16;

	if (value->kind == DDL_VALUE_STRING &&
		(!is_ascii(value->text, value->len) || memchr(value->text, '\\', value->len) != NULL ||
		 memchr(value->text, '\'', value->len) != NULL))
		return NULL;
	out = cdc_arena_alloc(d->p.arena, size);
	if (out == NULL)
		return NULL;
	switch (value->kind)
	{
		case DDL_VALUE_STRING:
			snprintf(out, size, "_utf8mb4\\'%s\\'", value->text);
			return out;
		case DDL_VALUE_NUMBER:
			snprintf(out, size, value->text[0] == '-' ? "-(%s)" : "%s", value->text + (value->text[0] == '-'));
			return out;
		case DDL_VALUE_BOOLEAN:
			snprintf(out, size, "%s", value->text[0] == '1' ? "true" : "false");
			return out;
		case DDL_VALUE_NULL:
			snprintf(out, size, "NULL");
			return out;
		default:
			return NULL;
	}
}

static char *
now_default(DdlDraft *d, const DdlValue *value)
{
	bool		mysql = d->dialect != DDL_DIALECT_MARIADB;
	const char *name = !mysql ? "current_timestamp" : value->in_parentheses ? "now" : "CURRENT_TIMESTAMP";
	char		buf[32];

	if (value->digits > 0)
		snprintf(buf, sizeof(buf), "%s(%d)", name, value->digits);
	else
		snprintf(buf, sizeof(buf), "%s%s", name, mysql && !value->in_parentheses ? "" : "()");
	return cdc_arena_strndup(d->p.arena, buf, strlen(buf));
}

/* Give the column that default; its type is complete. */
void
ddl_set_default(DdlDraft *d, CdcColumnDef *column, const DdlValue *value)
{
	bool		is_expression = value->in_parentheses && d->dialect != DDL_DIALECT_MARIADB;

	column->default_text = NULL;
	column->default_is_expr = true;
	switch (value->kind)
	{
		case DDL_VALUE_NONE:
			break;
		case DDL_VALUE_EXPRESSION:
			column->default_text = value->text;
			break;
		case DDL_VALUE_NOW:
			column->default_text = now_default(d, value);
			break;
		case DDL_VALUE_UNKNOWN:
			column->default_text = "?";
			break;
		case DDL_VALUE_NULL:
			if (!is_expression)
				break;
			/* FALLTHROUGH */
		default:
			if (is_expression)
				column->default_text = expression_default(d, value);
			else
			{
				column->default_text = literal_default(d, column, value);
				column->default_is_expr = column->default_text == NULL;
			}
			if (column->default_text == NULL)
				column->default_text = "?";
			break;
	}
	if (column->default_text == NULL)
		column->default_is_expr = false;
	/* as mysql_describe.c takes MariaDB's: b'101' is a literal */
}
