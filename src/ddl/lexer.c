/*-------------------------------------------------------------------------
 *
 * lexer.c
 *	  Words, names and strings of a statement of the MySQL family.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "ddl/lexer.h"

#include <string.h>

#include "ddl/statement.h"

/* Digits of the version in an executable comment, at most. */
#define VERSION_DIGITS 6

/* Versions of MySQL that MariaDB takes for foreign, from 5.7 on, and those that no MySQL has. */
#define FIRST_FOREIGN 50700
#define FIRST_MARIADB 100000
#define NO_MYSQL 99999

static bool
is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r') || c == '\0';
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Characters of a plain name; all bytes of multi-byte characters count. */
static bool
is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) ||
		c == '_' || c == '$' || ((unsigned char) c & 0x80) != 0;
}

static char
to_upper(char c)
{
	return (c >= 'a' && c <= 'z') ? (char) (c - 'a' + 'A') : c;
}

static size_t
left(const DdlLexer *lexer)
{
	return (size_t) (lexer->end - lexer->pos);
}

static bool
starts_with(const DdlLexer *lexer, const char *what)
{
	size_t		len = strlen(what);

	return left(lexer) >= len && memcmp(lexer->pos, what, len) == 0;
}

static void
skip_line(DdlLexer *lexer)
{
	while (lexer->pos < lexer->end && *lexer->pos != '\n')
		lexer->pos++;
}

static void
skip_block_comment(DdlLexer *lexer)
{
	lexer->pos += 2;
	while (lexer->pos < lexer->end && !starts_with(lexer, "*/"))
		lexer->pos++;
	if (lexer->pos < lexer->end)
		lexer->pos += 2;
}

/*
 * MariaDB leaves alone what is written for a MySQL that it does not descend from;
 * MySQL what is written for MariaDB.
 */
static bool
is_for_other_server(const DdlLexer *lexer, bool for_mariadb, int version)
{
	switch (lexer->dialect)
	{
		case DDL_DIALECT_MYSQL:
			return for_mariadb || version >= NO_MYSQL;
		case DDL_DIALECT_MARIADB:
			return !for_mariadb && version >= FIRST_FOREIGN && version < FIRST_MARIADB;
		default:
			return false;
	}
}

/* At the opening of an executable comment: its content is text, or it is a comment after all. */
static void
enter_executable(DdlLexer *lexer, bool for_mariadb)
{
	const char *p = lexer->pos + (for_mariadb ? 4 : 3);
	int			version = 0;

	for (int i = 0; i < VERSION_DIGITS && p < lexer->end && is_digit(*p); i++, p++)
		version = version * 10 + (*p - '0');
	if (is_for_other_server(lexer, for_mariadb, version))
		skip_block_comment(lexer);
	else
	{
		lexer->pos = p;
		lexer->executable_depth++;
	}
}

/* "--" begins a comment only when white space or the end follows. */
static bool
at_dash_comment(const DdlLexer *lexer)
{
	return starts_with(lexer, "--") && (left(lexer) == 2 || is_space(lexer->pos[2]));
}

static void
skip_blanks(DdlLexer *lexer)
{
	while (lexer->pos < lexer->end)
	{
		if (is_space(*lexer->pos))
			lexer->pos++;
		else if (*lexer->pos == '#' || at_dash_comment(lexer))
			skip_line(lexer);
		else if (starts_with(lexer, "/*!"))
			enter_executable(lexer, false);
		else if (starts_with(lexer, "/*M!"))
			enter_executable(lexer, true);
		else if (starts_with(lexer, "/*"))
			skip_block_comment(lexer);
		else if (lexer->executable_depth > 0 && starts_with(lexer, "*/"))
		{
			lexer->executable_depth--;
			lexer->pos += 2;
		}
		else
			break;
	}
}

/* Read a quoted name or string; the position is at the opening quote. */
static void
read_quoted(DdlLexer *lexer, DdlTokenKind kind)
{
	char		quote = *lexer->pos++;
	bool		escapes = kind == DDL_TOKEN_STRING && !lexer->no_backslash;

	lexer->token.kind = kind;
	lexer->token.quote = quote;
	lexer->token.text = lexer->pos;
	while (lexer->pos < lexer->end)
	{
		if (escapes && *lexer->pos == '\\' && left(lexer) > 1)
		{
			lexer->pos += 2;
			continue;
		}
		if (*lexer->pos == quote)
		{
			if (left(lexer) > 1 && lexer->pos[1] == quote)
			{
				lexer->pos += 2;
				continue;
			}
			break;
		}
		lexer->pos++;
	}
	lexer->token.len = (size_t) (lexer->pos - lexer->token.text);
	if (lexer->pos < lexer->end)
		lexer->pos++;
}

void
ddl_lexer_next(DdlLexer *lexer)
{
	DdlToken   *token = &lexer->token;

	skip_blanks(lexer);
	token->text = lexer->pos;
	token->len = 0;
	token->quote = '\0';
	if (lexer->pos >= lexer->end)
	{
		token->kind = DDL_TOKEN_END;
		return;
	}
	switch (*lexer->pos)
	{
		case '`':
			read_quoted(lexer, DDL_TOKEN_NAME);
			return;
		case '\'':
			read_quoted(lexer, DDL_TOKEN_STRING);
			return;
		case '"':
			read_quoted(lexer, lexer->ansi_quotes ? DDL_TOKEN_NAME : DDL_TOKEN_STRING);
			return;
		default:
			break;
	}
	if (is_word_char(*lexer->pos))
	{
		token->kind = DDL_TOKEN_WORD;
		while (lexer->pos < lexer->end && is_word_char(*lexer->pos))
			lexer->pos++;
	}
	else
	{
		token->kind = DDL_TOKEN_SIGN;
		lexer->pos++;
	}
	token->len = (size_t) (lexer->pos - token->text);
}

void
ddl_lexer_init(DdlLexer *lexer, const char *text, size_t len, uint64_t sql_mode)
{
	ddl_lexer_init_dialect(lexer, text, len, sql_mode, DDL_DIALECT_ANY);
}

void
ddl_lexer_init_dialect(DdlLexer *lexer, const char *text, size_t len, uint64_t sql_mode, DdlDialect dialect)
{
	lexer->dialect = dialect;
	lexer->pos = text;
	lexer->end = text + len;
	lexer->ansi_quotes = (sql_mode & DDL_MODE_ANSI_QUOTES) != 0;
	lexer->no_backslash = (sql_mode & DDL_MODE_NO_BACKSLASH_ESCAPES) != 0;
	lexer->executable_depth = 0;
	ddl_lexer_next(lexer);
}

bool
ddl_token_is(const DdlToken *token, const char *keyword)
{
	if (token->kind != DDL_TOKEN_WORD || strlen(keyword) != token->len)
		return false;
	for (size_t i = 0; i < token->len; i++)
	{
		if (to_upper(token->text[i]) != keyword[i])
			return false;
	}
	return true;
}

bool
ddl_token_is_sign(const DdlToken *token, char sign)
{
	return token->kind == DDL_TOKEN_SIGN && *token->text == sign;
}

bool
ddl_token_names(const DdlToken *token, const char *name, bool fold)
{
	size_t		i = 0;

	if (token->kind != DDL_TOKEN_WORD && token->kind != DDL_TOKEN_NAME)
		return false;
	for (; *name != '\0'; name++, i++)
	{
		if (i >= token->len)
			return false;
		if (fold ? to_upper(token->text[i]) != to_upper(*name) : token->text[i] != *name)
			return false;
		if (token->kind == DDL_TOKEN_NAME && token->text[i] == token->quote)
			i++;				/* doubled */
	}
	return i == token->len;
}

char *
ddl_token_copy(const DdlToken *token, CdcArena *arena)
{
	char	   *copy = cdc_arena_strndup(arena, token->text, token->len);
	char	   *out = copy;

	if (copy == NULL || token->kind != DDL_TOKEN_NAME)
		return copy;
	for (size_t i = 0; i < token->len; i++)
	{
		*out++ = token->text[i];
		if (token->text[i] == token->quote)
			i++;
	}
	*out = '\0';
	return copy;
}

bool
ddl_lexer_number(DdlLexer *lexer)
{
	const char *p = lexer->token.text;
	const char *e;
	int			digits = 0;

	if (lexer->token.kind != DDL_TOKEN_WORD && !ddl_token_is_sign(&lexer->token, '.'))
		return false;
	for (; p < lexer->end && is_digit(*p); p++)
		digits++;
	if (p < lexer->end && *p == '.')
	{
		for (p++; p < lexer->end && is_digit(*p); p++)
			digits++;
	}
	if (digits == 0)
		return false;
	if (p < lexer->end && (*p == 'e' || *p == 'E'))
	{
		e = p + 1;
		if (e < lexer->end && (*e == '+' || *e == '-'))
			e++;
		if (e < lexer->end && is_digit(*e))
		{
			for (p = e; p < lexer->end && is_digit(*p);)
				p++;
		}
	}
	if (p < lexer->end && is_word_char(*p))
		return false;			/* 0x41, or a name that begins with a digit */
	lexer->token.kind = DDL_TOKEN_WORD;
	lexer->token.len = (size_t) (p - lexer->token.text);
	lexer->pos = p;
	return true;
}

bool
ddl_lexer_touches(const DdlLexer *lexer, char c)
{
	return lexer->pos < lexer->end && *lexer->pos == c;
}

/* What a backslash and the character behind it stand for. */
static char
unescape(char c)
{
	switch (c)
	{
		case '0':
			return '\0';
		case 'n':
			return '\n';
		case 'r':
			return '\r';
		case 't':
			return '\t';
		case 'b':
			return '\b';
		case 'Z':
			return '\032';
		default:
			return c;
	}
}

char *
ddl_token_string(const DdlLexer *lexer, const DdlToken *token, CdcArena *arena, size_t *len)
{
	char	   *copy = cdc_arena_strndup(arena, token->text, token->len);
	char	   *out = copy;

	if (copy == NULL)
		return NULL;
	for (size_t i = 0; i < token->len; i++)
	{
		char		c = token->text[i];

		if (c == '\\' && !lexer->no_backslash && i + 1 < token->len)
		{
			c = token->text[++i];
			if (c == '%' || c == '_')
				*out++ = '\\';	/* kept for patterns */
			*out++ = unescape(c);
			continue;
		}
		*out++ = c;
		if (c == token->quote)
			i++;
	}
	*out = '\0';
	*len = (size_t) (out - copy);
	return copy;
}
