/*-------------------------------------------------------------------------
 *
 * lexer.h
 *	  Words, names and strings of a statement of the MySQL family.
 *
 * NOTES
 *	  Knows the servers' comments, quotes and the two bits of sql_mode that
 *	  change how text is read. Executable comments, whatever version they name,
 *	  are read as part of the text unless the dialect is told: the servers differ
 *	  in which they execute, and too much is the safe side for a reader that looks
 *	  for tables. With a dialect, those are comments that only the other server executes.
 *
 *	  Never fails; an unterminated string or comment ends with the text.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_DDL_LEXER_H
#define CDC_DDL_LEXER_H

#include "core/arena.h"

/* Which server's executable comments are text. */
typedef enum DdlDialect
{
	DDL_DIALECT_ANY = 0,
	DDL_DIALECT_MYSQL,
	DDL_DIALECT_MARIADB
} DdlDialect;

typedef enum DdlTokenKind
{
	DDL_TOKEN_END,
	DDL_TOKEN_WORD,				/* keyword, plain name or number */
	DDL_TOKEN_NAME,				/* quoted name; text without the quotes, doubled ones still doubled */
	DDL_TOKEN_STRING,			/* text without the quotes, escapes as they are */
	DDL_TOKEN_SIGN				/* one character */
} DdlTokenKind;

typedef struct DdlToken
{
	DdlTokenKind kind;
	const char *text;
	size_t		len;
	char		quote;			/* NAME and STRING */
} DdlToken;

typedef struct DdlLexer
{
	const char *pos;
	const char *end;
	bool		ansi_quotes;
	bool		no_backslash;
	DdlDialect	dialect;
	int			executable_depth;	/* open executable comments */
	DdlToken	token;			/* the current one */
} DdlLexer;

/* Begin; the current token is the first one. */
extern void ddl_lexer_init(DdlLexer *lexer, const char *text, size_t len, uint64_t sql_mode);
extern void ddl_lexer_init_dialect(DdlLexer *lexer, const char *text, size_t len, uint64_t sql_mode,
								   DdlDialect dialect);

/* Go to the next token. */
extern void ddl_lexer_next(DdlLexer *lexer);

/* Is the token that keyword (ASCII upper case)? Quoted names never are. */
extern bool ddl_token_is(const DdlToken *token, const char *keyword);
extern bool ddl_token_is_sign(const DdlToken *token, char sign);

/* Is the token a name, plain or quoted, equal to "name"? */
extern bool ddl_token_names(const DdlToken *token, const char *name, bool fold);

/*
 * Widen the current token to the whole number that begins there: 12, 1.5, .5, 1e-3.
 * Its text is in the token. False, and nothing changes, when there is none.
 */
extern bool ddl_lexer_number(DdlLexer *lexer);

/* Does the character behind the current token stand right behind it, without a blank? */
extern bool ddl_lexer_touches(const DdlLexer *lexer, char c);

/* The value of a STRING, quotes and escapes undone; a NUL is added. NULL when out of memory. */
extern char *ddl_token_string(const DdlLexer *lexer, const DdlToken *token, CdcArena *arena, size_t *len);

/* Copy of a WORD or NAME with doubled quotes undone; NULL when out of memory. */
extern char *ddl_token_copy(const DdlToken *token, CdcArena *arena);

#endif							/* CDC_DDL_LEXER_H */
