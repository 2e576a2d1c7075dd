/*-------------------------------------------------------------------------
 *
 * statement.c
 *	  What a statement in the binary log does, and to which tables.
 *
 * NOTES
 *	  One function per verb, called from read_statement after its first words.
 *	  Each reads as far as it needs for the tables and sets "certain" when it
 *	  has them all. ALTER TABLE is in statement_alter.c.
 *
 *	  A DML statement counts as certain when it names one table. What triggers
 *	  and foreign keys of that table do elsewhere no text tells.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "ddl/statement.h"

#include <string.h>

#include "core/event.h"
#include "core/utf8.h"
#include "ddl/parser.h"

/* Words of modifiers between CREATE and what it creates, at most. */
#define MODIFIER_WORDS 64

/* SET STATEMENT ... FOR SET STATEMENT ... FOR ..., at most. */
#define MAX_NESTING 8

/* Longest verb that is told in messages. */
#define VERB_MAX 32

static void read_statement(DdlParser *p);

/* ---- CREATE ---- */

/*
 * Does the rest hold SELECT? Then the statement fills the table with rows that
 * were not logged as rows. Nested parentheses are looked into as well.
 */
static bool
rest_has_select(DdlParser *p)
{
	while (!ddl_at_end(p))
	{
		if (ddl_at_word(p, "SELECT"))
			return true;
		ddl_advance(p);
	}
	return false;
}

static void
read_create_table(DdlParser *p)
{
	DdlStatement *out = p->out;

	ddl_set_kind(p, DDL_CREATE_TABLE, "CREATE TABLE");
	out->certain = true;
	out->changes_shape = true;
	if (ddl_at_word(p, "IF"))
	{
		out->if_not_exists = true;
		ddl_accept_if_exists(p);
	}
	if (!ddl_read_table(p))
		return;
	if (rest_has_select(p))
		ddl_set_kind(p, DDL_DML, "CREATE TABLE ... SELECT");
}

static void
read_index(DdlParser *p, const char *verb, bool changes_shape)
{
	ddl_set_kind(p, DDL_INDEX, verb);
	p->out->changes_shape = changes_shape;
	p->out->certain = true;
	ddl_accept_if_exists(p);
	/* the index's name cannot be the word ON, which is reserved */
	while (!ddl_at_end(p) && !ddl_at_word(p, "ON"))
		ddl_advance(p);
	(void) ddl_accept_word(p, "ON");
	(void) ddl_read_table(p);
}

static void
read_drop_schema(DdlParser *p, const char *verb)
{
	const char *schema;

	ddl_set_kind(p, DDL_DROP_SCHEMA, verb);
	p->out->certain = true;
	p->out->changes_shape = true;
	ddl_accept_if_exists(p);
	if (!ddl_at_name(p))
	{
		p->out->certain = false;
		return;
	}
	schema = ddl_token_copy(ddl_current(p), p->arena);
	ddl_advance(p);
	ddl_add_table(p, schema, "");
}

static void
read_create(DdlParser *p)
{
	bool		is_unique = false;

	if (ddl_accept_word(p, "OR"))
		p->out->or_replace = ddl_accept_word(p, "REPLACE");

	/* DEFINER = ..., ALGORITHM = ..., SQL SECURITY ..., ONLINE, AGGREGATE may come first */
	for (int i = 0; i < MODIFIER_WORDS && !ddl_at_end(p); i++)
	{
		if (ddl_accept_word(p, "TABLE"))
		{
			read_create_table(p);
			return;
		}
		if (ddl_accept_word(p, "INDEX"))
		{
			read_index(p, "CREATE INDEX", is_unique);
			return;
		}
		if (ddl_at_word(p, "DATABASE") || ddl_at_word(p, "SCHEMA"))
		{
			ddl_advance(p);
			if (p->out->or_replace)
				read_drop_schema(p, "CREATE OR REPLACE DATABASE");
			else
				ddl_set_harmless(p, "CREATE DATABASE");
			return;
		}
		if (ddl_at_word(p, "TEMPORARY"))
			p->out->is_temporary = true;
		else if (ddl_at_word(p, "UNIQUE"))
			is_unique = true;
		else
		{
			static const char *const harmless[] = {
				"CATALOG", "EVENT", "FUNCTION", "LIBRARY", "LOGFILE", "PACKAGE", "PROCEDURE", "REFERENCE",
				"RESOURCE", "ROLE", "SEQUENCE", "SERVER", "TABLESPACE", "TRIGGER", "USER", "VIEW", NULL
			};

			if (ddl_at_one_of(p, harmless))
			{
				p->out->is_temporary = false;
				p->out->or_replace = false;
				ddl_set_harmless(p, "CREATE");
				return;
			}
		}
		ddl_advance(p);
	}
	ddl_set_kind(p, DDL_UNKNOWN, "CREATE");
}

/* ---- DROP, RENAME, TRUNCATE ---- */

static void
read_drop(DdlParser *p)
{
	p->out->is_temporary = ddl_accept_word(p, "TEMPORARY");
	if (ddl_accept_word(p, "TABLE") || ddl_accept_word(p, "TABLES"))
	{
		ddl_set_kind(p, DDL_DROP_TABLE, "DROP TABLE");
		p->out->certain = true;
		p->out->changes_shape = true;
		ddl_accept_if_exists(p);
		do
		{
			if (!ddl_read_table(p))
				break;
		} while (ddl_accept_sign(p, ','));
	}
	else if (ddl_accept_word(p, "INDEX"))
		read_index(p, "DROP INDEX", true);	/* it may be the unique key */
	else if (ddl_accept_word(p, "DATABASE") || ddl_accept_word(p, "SCHEMA"))
		read_drop_schema(p, "DROP DATABASE");
	else
	{
		p->out->is_temporary = false;
		ddl_set_harmless(p, "DROP");
	}
}

static void
read_rename(DdlParser *p)
{
	if (!ddl_accept_word(p, "TABLE") && !ddl_accept_word(p, "TABLES"))
	{
		ddl_set_harmless(p, "RENAME");	/* USER */
		return;
	}
	ddl_set_kind(p, DDL_RENAME_TABLE, "RENAME TABLE");
	p->out->certain = true;
	p->out->changes_shape = true;
	ddl_accept_if_exists(p);
	do
	{
		if (!ddl_read_table(p))
			return;
		ddl_accept_wait(p);
		if (!ddl_accept_word(p, "TO"))
		{
			p->out->certain = false;
			return;
		}
		if (!ddl_read_table(p))
			return;
	} while (ddl_accept_sign(p, ','));
}

static void
read_truncate(DdlParser *p)
{
	(void) ddl_accept_word(p, "TABLE");
	ddl_set_kind(p, DDL_TRUNCATE_TABLE, "TRUNCATE TABLE");
	p->out->certain = true;
	p->out->changes_shape = true;
	(void) ddl_read_table(p);
}

/* ---- rows that were not logged as rows ---- */

static void
set_dml(DdlParser *p, const char *verb, bool certain)
{
	ddl_set_kind(p, DDL_DML, verb);
	p->out->certain = certain;
}

static void
accept_dml_modifiers(DdlParser *p)
{
	static const char *const modifiers[] = {
		"LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "IGNORE", "QUICK", "CONCURRENT", "LOCAL", NULL
	};

	while (ddl_at_one_of(p, modifiers))
		ddl_advance(p);
}

static void
read_insert(DdlParser *p, const char *verb)
{
	set_dml(p, verb, true);
	accept_dml_modifiers(p);
	(void) ddl_accept_word(p, "INTO");
	(void) ddl_read_table(p);
}

/* One table, perhaps with an alias, before SET; anything else may be more tables. */
static void
read_update(DdlParser *p)
{
	set_dml(p, "UPDATE", true);
	accept_dml_modifiers(p);
	if (!ddl_read_table(p))
		return;
	if (ddl_accept_word(p, "PARTITION") && ddl_at_sign(p, '('))
		ddl_skip_parentheses(p);
	if (ddl_at_word(p, "FOR"))		/* MariaDB: FOR PORTION OF */
		return;
	(void) ddl_accept_word(p, "AS");
	if (!ddl_at_word(p, "SET") && ddl_at_name(p))
		ddl_advance(p);				/* alias */
	if (!ddl_at_word(p, "SET"))
		p->out->certain = false;
}

static void
read_delete(DdlParser *p)
{
	set_dml(p, "DELETE", true);
	accept_dml_modifiers(p);
	if (!ddl_accept_word(p, "FROM"))
	{
		p->out->certain = false;	/* DELETE a, b FROM ... */
		return;
	}
	if (!ddl_read_table(p))
		return;
	if (ddl_at_sign(p, ',') || ddl_at_sign(p, '.') || ddl_at_word(p, "USING"))
		p->out->certain = false;	/* DELETE FROM a, b.* USING ... */
}

static void
read_load(DdlParser *p)
{
	if (!ddl_at_word(p, "DATA") && !ddl_at_word(p, "XML"))
	{
		ddl_set_harmless(p, "LOAD");	/* INDEX INTO CACHE */
		return;
	}
	set_dml(p, "LOAD DATA", true);
	while (!ddl_at_end(p))
	{
		if (ddl_accept_word(p, "INTO") && ddl_accept_word(p, "TABLE"))
		{
			(void) ddl_read_table(p);
			return;
		}
		ddl_advance(p);
	}
	p->out->certain = false;
}

/* ---- the rest ---- */

static void
set_control(DdlParser *p, DdlKind kind, const char *verb)
{
	ddl_set_kind(p, kind, verb);
	p->out->certain = true;
}

/* All that follows, as it stands there; more than a name can be, or no text, is not understood. */
static void
read_xid(DdlParser *p)
{
	const char *from = ddl_current(p)->text;
	const char *end = p->lexer.end;

	if (ddl_at_end(p))
		return;
	while (end > from && (end[-1] == ' ' || end[-1] == ';'))
		end--;
	if (end - from >= CDC_XID_TEXT_MAX || !cdc_utf8_is_valid(from, (size_t) (end - from)))
	{
		p->out->certain = false;
		ddl_set_kind(p, DDL_UNKNOWN, "XA");
		return;
	}
	p->out->xid = cdc_arena_strndup(p->arena, from, (size_t) (end - from));
	if (p->out->xid == NULL)
	{
		p->out->xid = "";
		p->nomem = true;
	}
}

static void
read_xa(DdlParser *p)
{
	if (ddl_accept_word(p, "START") || ddl_accept_word(p, "BEGIN"))
		set_control(p, DDL_XA_START, "XA START");
	else if (ddl_accept_word(p, "END"))
		set_control(p, DDL_XA_END, "XA END");
	else if (ddl_accept_word(p, "PREPARE"))
		set_control(p, DDL_XA_PREPARE, "XA PREPARE");
	else if (ddl_accept_word(p, "COMMIT"))
	{
		set_control(p, DDL_XA_COMMIT, "XA COMMIT");
		read_xid(p);
	}
	else if (ddl_accept_word(p, "ROLLBACK"))
	{
		set_control(p, DDL_XA_ROLLBACK, "XA ROLLBACK");
		read_xid(p);
	}
	else if (ddl_at_word(p, "RECOVER"))
		ddl_set_harmless(p, "XA RECOVER");
	else
		ddl_set_kind(p, DDL_UNKNOWN, "XA");
}

static void
read_savepoint_name(DdlParser *p)
{
	if (!ddl_at_name(p))
		return;
	p->out->savepoint = ddl_token_copy(ddl_current(p), p->arena);
	if (p->out->savepoint == NULL)
	{
		p->out->savepoint = "";
		p->nomem = true;
	}
}

static void
read_rollback(DdlParser *p)
{
	(void) ddl_accept_word(p, "WORK");
	if (ddl_accept_word(p, "TO"))
	{
		set_control(p, DDL_ROLLBACK_TO, "ROLLBACK TO SAVEPOINT");
		(void) ddl_accept_word(p, "SAVEPOINT");
		read_savepoint_name(p);
	}
	else
		set_control(p, DDL_ROLLBACK, "ROLLBACK");
}

/* SET STATEMENT a = 1, b = 2 FOR statement (MariaDB) is that statement. */
static void
read_set(DdlParser *p)
{
	if (!ddl_at_word(p, "STATEMENT"))
		ddl_set_harmless(p, "SET");
	else if (ddl_skip_settings(p) && ++p->nesting <= MAX_NESTING)
		read_statement(p);
	else
		ddl_set_kind(p, DDL_UNKNOWN, "SET STATEMENT");
}

/* ANALYZE TABLE; but MariaDB's ANALYZE UPDATE runs the statement behind it. */
static void
read_analyze(DdlParser *p)
{
	static const char *const tables[] = {"TABLE", "TABLES", "LOCAL", "NO_WRITE_TO_BINLOG", NULL};

	if (ddl_at_one_of(p, tables))
		ddl_set_harmless(p, "ANALYZE TABLE");
	else
		ddl_set_kind(p, DDL_UNKNOWN, "ANALYZE");
}

static void
read_begin(DdlParser *p)
{
	(void) ddl_accept_word(p, "WORK");
	if (ddl_at_end(p))
		set_control(p, DDL_BEGIN, "BEGIN");
	else
		ddl_set_kind(p, DDL_UNKNOWN, "BEGIN");	/* MariaDB: BEGIN NOT ATOMIC ... END */
}

static void
read_start(DdlParser *p)
{
	if (ddl_at_word(p, "TRANSACTION"))
		set_control(p, DDL_BEGIN, "START TRANSACTION");
	else
		ddl_set_harmless(p, "START");	/* REPLICA, SLAVE, GROUP_REPLICATION */
}

/* Verbs that neither change rows nor the shape of a table, whatever follows. */
static const char *const harmless_verbs[] = {
	"BACKUP", "BINLOG", "CACHE", "CHANGE", "CHECK", "CHECKSUM", "CLONE", "DEALLOCATE", "DESC", "DESCRIBE",
	"EXPLAIN", "FLUSH", "GET", "GRANT", "HANDLER", "HELP", "INSTALL", "KILL", "LOCK", "OPTIMIZE", "PREPARE",
	"PURGE", "REPAIR", "RESET", "RESIGNAL", "RESTART", "REVOKE", "SHOW", "SHUTDOWN", "SIGNAL", "STOP",
	"UNINSTALL", "UNLOCK", "USE", NULL
};

/* Upper-case copy of the current word, for messages; what looks like no word of SQL is not told. */
static const char *
word_for_message(DdlParser *p)
{
	const DdlToken *token = ddl_current(p);
	char	   *word;

	if (token->len > VERB_MAX)
		return "statement";
	for (size_t i = 0; i < token->len; i++)
	{
		if ((unsigned char) token->text[i] & 0x80)
			return "statement";
	}
	word = ddl_token_copy(token, p->arena);
	if (word == NULL)
	{
		p->nomem = true;
		return "";
	}
	for (char *c = word; *c; c++)
	{
		if (*c >= 'a' && *c <= 'z')
			*c = (char) (*c - 'a' + 'A');
	}
	return word;
}

static void
read_statement(DdlParser *p)
{
	while (ddl_accept_sign(p, ';'))
		;
	if (ddl_current(p)->kind == DDL_TOKEN_END)
		set_control(p, DDL_EMPTY, "");
	else if (ddl_accept_word(p, "INSERT"))
		read_insert(p, "INSERT");
	else if (ddl_accept_word(p, "UPDATE"))
		read_update(p);
	else if (ddl_accept_word(p, "DELETE"))
		read_delete(p);
	else if (ddl_accept_word(p, "REPLACE"))
		read_insert(p, "REPLACE");
	else if (ddl_accept_word(p, "BEGIN"))
		read_begin(p);
	else if (ddl_accept_word(p, "START"))
		read_start(p);
	else if (ddl_accept_word(p, "COMMIT"))
		set_control(p, DDL_COMMIT, "COMMIT");
	else if (ddl_accept_word(p, "ROLLBACK"))
		read_rollback(p);
	else if (ddl_accept_word(p, "SAVEPOINT"))
	{
		set_control(p, DDL_SAVEPOINT, "SAVEPOINT");
		read_savepoint_name(p);
	}
	else if (ddl_accept_word(p, "RELEASE"))
		set_control(p, DDL_RELEASE_SAVEPOINT, "RELEASE SAVEPOINT");
	else if (ddl_accept_word(p, "XA"))
		read_xa(p);
	else if (ddl_accept_word(p, "CREATE"))
		read_create(p);
	else if (ddl_accept_word(p, "ALTER"))
		ddl_read_alter(p);
	else if (ddl_accept_word(p, "DROP"))
		read_drop(p);
	else if (ddl_accept_word(p, "RENAME"))
		read_rename(p);
	else if (ddl_accept_word(p, "TRUNCATE"))
		read_truncate(p);
	else if (ddl_accept_word(p, "LOAD"))
		read_load(p);
	else if (ddl_accept_word(p, "SET"))
		read_set(p);
	else if (ddl_accept_word(p, "ANALYZE"))
		read_analyze(p);
	else if (ddl_at_one_of(p, harmless_verbs))
		ddl_set_harmless(p, word_for_message(p));
	else if (ddl_at_word(p, "CALL") || ddl_at_word(p, "DO") || ddl_at_word(p, "SELECT") || ddl_at_word(p, "WITH"))
		set_dml(p, word_for_message(p), false);	/* logged only when it changed something */
	else if (ddl_current(p)->kind == DDL_TOKEN_WORD)
		ddl_set_kind(p, DDL_UNKNOWN, word_for_message(p));
	else
		ddl_set_kind(p, DDL_UNKNOWN, "statement");
}

CdcStatus
ddl_statement_read(const char *text, size_t len, const char *default_schema,
				   uint64_t sql_mode, CdcArena *arena, DdlStatement *out)
{
	DdlParser		p;

	memset(out, 0, sizeof(*out));
	memset(&p, 0, sizeof(p));
	p.arena = arena;
	p.out = out;
	p.default_schema = default_schema ? cdc_arena_strndup(arena, default_schema, strlen(default_schema)) : "";
	if (p.default_schema == NULL)
		return CDC_NOMEM;
	ddl_lexer_init(&p.lexer, text, len, sql_mode);
	out->verb = "";
	out->savepoint = "";
	out->xid = "";
	read_statement(&p);
	out->tables = p.tables;
	return p.nomem ? CDC_NOMEM : CDC_OK;
}

static char
fold_char(char c, bool fold)
{
	return fold && c >= 'A' && c <= 'Z' ? (char) (c - 'A' + 'a') : c;
}

/* Does a string literal hold the name anywhere? It may be a statement of its own. */
static bool
string_holds(const DdlToken *token, const char *name, bool fold)
{
	size_t		len = strlen(name);

	for (size_t i = 0; len > 0 && i + len <= token->len; i++)
	{
		size_t		j = 0;

		while (j < len && fold_char(token->text[i + j], fold) == fold_char(name[j], fold))
			j++;
		if (j == len)
			return true;
	}
	return false;
}

static bool
occurs(const char *text, size_t len, uint64_t sql_mode, const char *name, bool fold, bool in_strings)
{
	DdlLexer	lexer;

	ddl_lexer_init(&lexer, text, len, sql_mode);
	for (; lexer.token.kind != DDL_TOKEN_END; ddl_lexer_next(&lexer))
	{
		if (lexer.token.kind == DDL_TOKEN_STRING)
		{
			if (in_strings && string_holds(&lexer.token, name, fold))
				return true;
		}
		else if (ddl_token_names(&lexer.token, name, fold))
			return true;
	}
	return false;
}

bool
ddl_statement_mentions(const char *text, size_t len, uint64_t sql_mode, const char *name, bool fold)
{
	return occurs(text, len, sql_mode, name, fold, true);
}

bool
ddl_statement_names(const char *text, size_t len, uint64_t sql_mode, const char *name, bool fold)
{
	return occurs(text, len, sql_mode, name, fold, false);
}
