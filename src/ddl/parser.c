/*-------------------------------------------------------------------------
 *
 * parser.c
 *	  What the readers of statements share: tokens, names, results.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "ddl/parser.h"

#include <string.h>

const DdlToken *
ddl_current(const DdlParser *p)
{
	return &p->lexer.token;
}

void
ddl_advance(DdlParser *p)
{
	ddl_lexer_next(&p->lexer);
}

bool
ddl_at_end(const DdlParser *p)
{
	return ddl_current(p)->kind == DDL_TOKEN_END || ddl_token_is_sign(ddl_current(p), ';');
}

bool
ddl_at_word(const DdlParser *p, const char *keyword)
{
	return ddl_token_is(ddl_current(p), keyword);
}

bool
ddl_at_sign(const DdlParser *p, char sign)
{
	return ddl_token_is_sign(ddl_current(p), sign);
}

/* Is it there? Then go on behind it. */
bool
ddl_accept_word(DdlParser *p, const char *keyword)
{
	if (!ddl_at_word(p, keyword))
		return false;
	ddl_advance(p);
	return true;
}

bool
ddl_accept_sign(DdlParser *p, char sign)
{
	if (!ddl_at_sign(p, sign))
		return false;
	ddl_advance(p);
	return true;
}

bool
ddl_at_one_of(const DdlParser *p, const char *const *keywords)
{
	for (; *keywords != NULL; keywords++)
	{
		if (ddl_at_word(p, *keywords))
			return true;
	}
	return false;
}

bool
ddl_at_name(const DdlParser *p)
{
	return ddl_current(p)->kind == DDL_TOKEN_WORD || ddl_current(p)->kind == DDL_TOKEN_NAME;
}

void
ddl_accept_if_exists(DdlParser *p)
{
	if (ddl_accept_word(p, "IF"))
	{
		(void) ddl_accept_word(p, "NOT");
		(void) ddl_accept_word(p, "EXISTS");
	}
}

/* MariaDB: WAIT n or NOWAIT behind a table's name. */
void
ddl_accept_wait(DdlParser *p)
{
	if (ddl_accept_word(p, "WAIT"))
		ddl_advance(p);
	else
		(void) ddl_accept_word(p, "NOWAIT");
}

/* Skip a parenthesised part; the current token is its opening one. */
void
ddl_skip_parentheses(DdlParser *p)
{
	int			depth = 0;

	do
	{
		if (ddl_at_sign(p, '('))
			depth++;
		else if (ddl_at_sign(p, ')'))
			depth--;
		ddl_advance(p);
	} while (depth > 0 && ddl_current(p)->kind != DDL_TOKEN_END);
}

/* Skip to the comma that ends the clause, or to the end. The words of ON DELETE and ON UPDATE stand in no other clause. */
void
ddl_skip_clause(DdlParser *p)
{
	while (!ddl_at_end(p) && !ddl_at_sign(p, ','))
	{
		if (ddl_accept_word(p, "ON"))
		{
			if (!ddl_accept_word(p, "DELETE") && !ddl_accept_word(p, "UPDATE"))
				continue;
			if (ddl_at_word(p, "CASCADE") || ddl_at_word(p, "SET"))
				p->out->changes_cascades = true;
			continue;
		}
		if (ddl_at_sign(p, '('))
			ddl_skip_parentheses(p);
		else
			ddl_advance(p);
	}
}

/* Behind ORDER BY's first column come others after commas, which are no clauses. */
void
ddl_skip_order_columns(DdlParser *p)
{
	ddl_skip_clause(p);
	while (ddl_at_sign(p, ','))
	{
		DdlLexer	before = p->lexer;

		ddl_advance(p);
		if (!ddl_at_name(p))
			break;
		ddl_advance(p);
		if (ddl_at_sign(p, '.'))
		{
			ddl_advance(p);
			ddl_advance(p);
		}
		if (!ddl_accept_word(p, "ASC"))
			(void) ddl_accept_word(p, "DESC");
		if (!ddl_at_end(p) && !ddl_at_sign(p, ','))
		{
			/* more than a column: it is a clause */
			p->lexer = before;
			break;
		}
	}
}

/* First words of clauses that leave columns, key and rows alone, with anything behind them. */
static const char *const harmless_options[] = {
	"COMMENT", "AUTO_INCREMENT", "AVG_ROW_LENGTH", "CHECKSUM", "COMPRESSION", "CONNECTION", "DATA",
	"DELAY_KEY_WRITE", "ENCRYPTED", "ENCRYPTION", "ENCRYPTION_KEY_ID", "ENGINE_ATTRIBUTE", "IETF_QUOTES",
	"INSERT_METHOD", "ITEF_QUOTES", "KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "PAGE_CHECKSUM",
	"PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL", "PASSWORD", "ROW_FORMAT", "SECONDARY_ENGINE",
	"SECONDARY_ENGINE_ATTRIBUTE", "SECONDARY_LOAD", "SECONDARY_UNLOAD", "STATS_AUTO_RECALC",
	"STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "TABLE_CHECKSUM", "TABLESPACE", "TRANSACTIONAL",
	"ALGORITHM", "LOCK", "FORCE", "ENABLE", "DISABLE", "ORDER", "CHARACTER", "CHARSET", "COLLATE", "DEFAULT",
	"REMOVE", "PARTITION", NULL
};

bool
ddl_at_harmless_option(const DdlParser *p)
{
	return ddl_at_one_of(p, harmless_options);
}

/* MariaDB: SET STATEMENT ... FOR, behind the word SET. False when no statement follows. */
bool
ddl_skip_settings(DdlParser *p)
{
	while (!ddl_at_end(p) && !ddl_at_word(p, "FOR"))
	{
		if (ddl_at_sign(p, '('))
			ddl_skip_parentheses(p);
		else
			ddl_advance(p);
	}
	return ddl_accept_word(p, "FOR");
}

/* ---- results ---- */

void
ddl_set_kind(DdlParser *p, DdlKind kind, const char *verb)
{
	p->out->kind = kind;
	p->out->verb = verb;
}

void
ddl_set_harmless(DdlParser *p, const char *verb)
{
	ddl_set_kind(p, DDL_HARMLESS, verb);
	p->out->certain = true;
}

void
ddl_add_table(DdlParser *p, const char *schema, const char *name)
{
	if (schema == NULL || name == NULL)
	{
		p->nomem = true;
		return;
	}
	if (p->out->ntables == p->allocated)
	{
		uint32_t	allocated = p->allocated == 0 ? 4 : p->allocated * 2;
		DdlTableName *tables = cdc_arena_alloc(p->arena, sizeof(DdlTableName) * allocated);

		if (tables == NULL)
		{
			p->nomem = true;
			return;
		}
		if (p->out->ntables > 0)
			memcpy(tables, p->tables, sizeof(DdlTableName) * p->out->ntables);
		p->tables = tables;
		p->allocated = allocated;
	}
	p->tables[p->out->ntables].schema = schema;
	p->tables[p->out->ntables].name = name;
	p->out->ntables++;
}

/*
 * Read a table's name: t, .t, s.t, each part quoted or not. False when there is
 * none, and then nothing is certain any more.
 */
bool
ddl_read_table(DdlParser *p)
{
	const char *schema = p->default_schema;
	const char *name;

	(void) ddl_accept_sign(p, '.'); /* ".t" is an old form of "in the default schema" */
	if (!ddl_at_name(p))
	{
		p->out->certain = false;
		return false;
	}
	name = ddl_token_copy(ddl_current(p), p->arena);
	ddl_advance(p);
	if (ddl_at_sign(p, '.'))
	{
		ddl_advance(p);
		if (!ddl_at_name(p))
		{
			p->out->certain = false;
			return false;
		}
		schema = name;
		name = ddl_token_copy(ddl_current(p), p->arena);
		ddl_advance(p);
	}
	ddl_add_table(p, schema, name);
	return true;
}
