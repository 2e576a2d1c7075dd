/*-------------------------------------------------------------------------
 *
 * parser.h
 *	  What the readers of statements share; used inside ddl/ only.
 *
 * NOTES
 *	  "at" looks at the current token, "accept" goes on behind it when it is
 *	  there. A reader that loses its way clears "certain" in the result.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_DDL_PARSER_H
#define CDC_DDL_PARSER_H

#include "ddl/lexer.h"
#include "ddl/statement.h"

typedef struct DdlParser
{
	DdlLexer	lexer;
	const char *default_schema;
	CdcArena   *arena;
	DdlStatement *out;
	DdlTableName *tables;
	uint32_t	allocated;
	int			nesting;
	bool		nomem;
} DdlParser;

/* in parser.c */
extern const DdlToken *ddl_current(const DdlParser *p);
extern void ddl_advance(DdlParser *p);
extern bool ddl_at_end(const DdlParser *p);
extern bool ddl_at_word(const DdlParser *p, const char *keyword);
extern bool ddl_at_sign(const DdlParser *p, char sign);
extern bool ddl_accept_word(DdlParser *p, const char *keyword);
extern bool ddl_accept_sign(DdlParser *p, char sign);
extern bool ddl_at_one_of(const DdlParser *p, const char *const *keywords);
extern bool ddl_at_name(const DdlParser *p);
extern void ddl_accept_if_exists(DdlParser *p);
extern void ddl_accept_wait(DdlParser *p);
extern void ddl_skip_parentheses(DdlParser *p);
extern void ddl_skip_clause(DdlParser *p);
extern void ddl_skip_order_columns(DdlParser *p);
extern bool ddl_at_harmless_option(const DdlParser *p);
extern bool ddl_skip_settings(DdlParser *p);
extern void ddl_set_kind(DdlParser *p, DdlKind kind, const char *verb);
extern void ddl_set_harmless(DdlParser *p, const char *verb);
extern void ddl_add_table(DdlParser *p, const char *schema, const char *name);
extern bool ddl_read_table(DdlParser *p);

/* in statement_alter.c: what follows the word ALTER */
extern void ddl_read_alter(DdlParser *p);

#endif							/* CDC_DDL_PARSER_H */
