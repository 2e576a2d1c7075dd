/*-------------------------------------------------------------------------
 *
 * statement.c
 *	  What a statement in the binary log does, and to which tables.
 *
 * NOTES
 *	  One function per verb, called from read_statement after its first words.
 *	  Each reads as far as it needs for the tables and sets "certain" when it
 *	  has them all. ALTER TABLE is cut into clauses at its commas, and the first
 *	  words of a clause say whether it can touch columns, key or rows; the list
 *	  of those that cannot is closed, everything else can.
 *
 *	  A DML statement counts as certain when it names one table. What triggers
 *	  and foreign keys of that table do elsewhere no text tells.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "ddl/statement.h"

#include <string.h>

#include "ddl/lexer.h"

/* Words of modifiers between CREATE and what it creates, at most. */
#define MODIFIER_WORDS 64

/* SET STATEMENT ... FOR SET STATEMENT ... FOR ..., at most. */
#define MAX_NESTING 8

typedef struct Parser
{
	DdlLexer	lexer;
	const char *default_schema;
	CdcArena   *arena;
	DdlStatement *out;
	DdlTableName *tables;
	uint32_t	allocated;
	int			nesting;
	bool		nomem;
} Parser;

static void read_statement(Parser *p);

/* ---- tokens ---- */

static const DdlToken *
current(const Parser *p)
{
	return &p->lexer.token;
}

static void
advance(Parser *p)
{
	ddl_lexer_next(&p->lexer);
}

static bool
at_end(const Parser *p)
{
	return current(p)->kind == DDL_TOKEN_END || ddl_token_is_sign(current(p), ';');
}

static bool
at_word(const Parser *p, const char *keyword)
{
	return ddl_token_is(current(p), keyword);
}

static bool
at_sign(const Parser *p, char sign)
{
	return ddl_token_is_sign(current(p), sign);
}

/* Is it there? Then go on behind it. */
static bool
accept_word(Parser *p, const char *keyword)
{
	if (!at_word(p, keyword))
		return false;
	advance(p);
	return true;
}

static bool
accept_sign(Parser *p, char sign)
{
	if (!at_sign(p, sign))
		return false;
	advance(p);
	return true;
}

static bool
at_one_of(const Parser *p, const char *const *keywords)
{
	for (; *keywords != NULL; keywords++)
	{
		if (at_word(p, *keywords))
			return true;
	}
	return false;
}

static bool
at_name(const Parser *p)
{
	return current(p)->kind == DDL_TOKEN_WORD || current(p)->kind == DDL_TOKEN_NAME;
}

static void
accept_if_exists(Parser *p)
{
	if (accept_word(p, "IF"))
	{
		(void) accept_word(p, "NOT");
		(void) accept_word(p, "EXISTS");
	}
}

/* MariaDB: WAIT n or NOWAIT behind a table's name. */
static void
accept_wait(Parser *p)
{
	if (accept_word(p, "WAIT"))
		advance(p);
	else
		(void) accept_word(p, "NOWAIT");
}

/* Skip a parenthesised part; the current token is its opening one. */
static void
skip_parentheses(Parser *p)
{
	int			depth = 0;

	do
	{
		if (at_sign(p, '('))
			depth++;
		else if (at_sign(p, ')'))
			depth--;
		advance(p);
	} while (depth > 0 && current(p)->kind != DDL_TOKEN_END);
}

/* ---- results ---- */

static void
set_kind(Parser *p, DdlKind kind, const char *verb)
{
	p->out->kind = kind;
	p->out->verb = verb;
}

static void
set_harmless(Parser *p, const char *verb)
{
	set_kind(p, DDL_HARMLESS, verb);
	p->out->certain = true;
}

static void
add_table(Parser *p, const char *schema, const char *name)
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
static bool
read_table(Parser *p)
{
	const char *schema = p->default_schema;
	const char *name;

	(void) accept_sign(p, '.'); /* ".t" is an old form of "in the default schema" */
	if (!at_name(p))
	{
		p->out->certain = false;
		return false;
	}
	name = ddl_token_copy(current(p), p->arena);
	advance(p);
	if (at_sign(p, '.'))
	{
		advance(p);
		if (!at_name(p))
		{
			p->out->certain = false;
			return false;
		}
		schema = name;
		name = ddl_token_copy(current(p), p->arena);
		advance(p);
	}
	add_table(p, schema, name);
	return true;
}

/* ---- ALTER TABLE ---- */

/* First words of clauses that leave columns, key and rows alone, with anything behind them. */
static const char *const harmless_options[] = {
	"COMMENT", "AUTO_INCREMENT", "AVG_ROW_LENGTH", "CHECKSUM", "COMPRESSION", "CONNECTION", "DATA",
	"DELAY_KEY_WRITE", "ENCRYPTED", "ENCRYPTION", "ENCRYPTION_KEY_ID", "ENGINE_ATTRIBUTE", "IETF_QUOTES",
	"INSERT_METHOD", "ITEF_QUOTES", "KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "PAGE_CHECKSUM",
	"PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL", "PASSWORD", "ROW_FORMAT", "SECONDARY_ENGINE",
	"SECONDARY_ENGINE_ATTRIBUTE", "SECONDARY_LOAD", "SECONDARY_UNLOAD", "STATS_AUTO_RECALC",
	"STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "TABLE_CHECKSUM", "TABLESPACE", "TRANSACTIONAL",
	"ALGORITHM", "LOCK", "FORCE", "ENABLE", "DISABLE", "ORDER", "CHARACTER", "CHARSET", "COLLATE", "DEFAULT",
	"COALESCE", "REORGANIZE", "REBUILD", "OPTIMIZE", "ANALYZE", "CHECK", "REPAIR", "REMOVE", "PARTITION", NULL
};

/* Behind ADD: indexes and constraints that are no key. */
static const char *const harmless_additions[] = {
	"INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK", "PARTITION", NULL
};

/* Is it one of ADD's clauses that cannot matter? Behind the word ADD. */
static bool
addition_is_harmless(Parser *p)
{
	if (accept_word(p, "CONSTRAINT"))
	{
		accept_if_exists(p);
		if (!at_word(p, "FOREIGN") && !at_word(p, "CHECK") && !at_word(p, "UNIQUE") && !at_word(p, "PRIMARY"))
			advance(p);			/* its name */
		return at_word(p, "FOREIGN") || at_word(p, "CHECK");
	}
	if (accept_word(p, "VECTOR"))	/* not reserved: it may be a column's name */
		return at_word(p, "INDEX") || at_word(p, "KEY");
	return at_one_of(p, harmless_additions);
}

/* Behind the word ALTER of a clause. */
static bool
alteration_is_harmless(Parser *p)
{
	static const char *const not_columns[] = {"INDEX", "KEY", "CHECK", "CONSTRAINT", NULL};

	if (at_one_of(p, not_columns))
		return true;			/* visible or not, enforced or not */
	(void) accept_word(p, "COLUMN");
	accept_if_exists(p);
	advance(p);					/* the column */
	if (accept_word(p, "SET"))
		return at_word(p, "DEFAULT");
	return accept_word(p, "DROP") && at_word(p, "DEFAULT");
}

/*
 * Read the first words of a clause: can it touch columns, key or rows? Other
 * tables that it names are added.
 */
static bool
clause_is_harmless(Parser *p)
{
	if (accept_word(p, "ADD"))
		return addition_is_harmless(p);
	if (accept_word(p, "ALTER"))
		return alteration_is_harmless(p);
	if (accept_word(p, "DROP"))
		return at_word(p, "FOREIGN") || at_word(p, "CHECK");
	if (accept_word(p, "ENGINE") || accept_word(p, "TYPE"))
	{
		(void) accept_sign(p, '=');
		return !at_word(p, "BLACKHOLE");	/* which forgets all rows */
	}
	if (accept_word(p, "RENAME"))
	{
		if (at_word(p, "INDEX") || at_word(p, "KEY"))
			return true;
		if (at_word(p, "COLUMN"))
			return false;
		if (!accept_word(p, "TO") && !accept_word(p, "AS"))
			(void) accept_sign(p, '=');
		(void) read_table(p);
		return false;
	}
	if (accept_word(p, "EXCHANGE"))
	{
		/* EXCHANGE PARTITION p WITH TABLE t */
		while (!at_end(p) && !at_word(p, "TABLE"))
			advance(p);
		if (accept_word(p, "TABLE"))
			(void) read_table(p);
		return false;
	}
	if (accept_word(p, "CONVERT"))
	{
		/* MariaDB: CONVERT PARTITION p TO TABLE t, CONVERT TABLE t TO PARTITION p; else TO CHARACTER SET */
		if (accept_word(p, "PARTITION"))
		{
			while (!at_end(p) && !at_word(p, "TABLE"))
				advance(p);
		}
		if (accept_word(p, "TABLE"))
			(void) read_table(p);
		return false;
	}
	if (at_word(p, "WITH") || at_word(p, "WITHOUT"))
	{
		/* WITH or WITHOUT VALIDATION; but WITH SYSTEM VERSIONING adds columns */
		advance(p);
		return at_word(p, "VALIDATION");
	}
	return at_one_of(p, harmless_options);
}

/* Skip to the comma that ends the clause, or to the end. */
static void
skip_clause(Parser *p)
{
	while (!at_end(p) && !at_sign(p, ','))
	{
		if (at_sign(p, '('))
			skip_parentheses(p);
		else
			advance(p);
	}
}

/* Behind ORDER BY's first column come others after commas, which are no clauses. */
static void
skip_order_columns(Parser *p)
{
	skip_clause(p);
	while (at_sign(p, ','))
	{
		DdlLexer	before = p->lexer;

		advance(p);
		if (!at_name(p))
			break;
		advance(p);
		if (at_sign(p, '.'))
		{
			advance(p);
			advance(p);
		}
		if (!accept_word(p, "ASC"))
			(void) accept_word(p, "DESC");
		if (!at_end(p) && !at_sign(p, ','))
		{
			/* more than a column: it is a clause */
			p->lexer = before;
			break;
		}
	}
}

static void
read_alter_table(Parser *p)
{
	set_kind(p, DDL_ALTER_TABLE, "ALTER TABLE");
	p->out->certain = true;
	accept_if_exists(p);
	if (!read_table(p))
	{
		p->out->changes_shape = true;
		return;
	}
	accept_wait(p);
	while (!at_end(p))
	{
		bool		is_order = at_word(p, "ORDER");

		if (!clause_is_harmless(p))
			p->out->changes_shape = true;
		if (is_order)
			skip_order_columns(p);
		else
			skip_clause(p);
		if (!accept_sign(p, ','))
			break;
	}
}

static void
read_alter(Parser *p)
{
	/* old forms: ALTER ONLINE TABLE, ALTER OFFLINE TABLE, ALTER IGNORE TABLE */
	while (accept_word(p, "ONLINE") || accept_word(p, "OFFLINE") || accept_word(p, "IGNORE"))
		;
	if (accept_word(p, "TABLE"))
		read_alter_table(p);
	else
		set_harmless(p, "ALTER");	/* DATABASE, EVENT, FUNCTION, INSTANCE, SEQUENCE, SERVER, USER, VIEW, ... */
}

/* ---- CREATE ---- */

/*
 * Does the rest hold SELECT? Then the statement fills the table with rows that
 * were not logged as rows. Nested parentheses are looked into as well.
 */
static bool
rest_has_select(Parser *p)
{
	while (!at_end(p))
	{
		if (at_word(p, "SELECT"))
			return true;
		advance(p);
	}
	return false;
}

static void
read_create_table(Parser *p)
{
	DdlStatement *out = p->out;

	set_kind(p, DDL_CREATE_TABLE, "CREATE TABLE");
	out->certain = true;
	out->changes_shape = true;
	if (at_word(p, "IF"))
	{
		out->if_not_exists = true;
		accept_if_exists(p);
	}
	if (!read_table(p))
		return;
	if (rest_has_select(p))
		set_kind(p, DDL_DML, "CREATE TABLE ... SELECT");
}

static void
read_index(Parser *p, const char *verb, bool changes_shape)
{
	set_kind(p, DDL_INDEX, verb);
	p->out->changes_shape = changes_shape;
	p->out->certain = true;
	accept_if_exists(p);
	/* the index's name cannot be the word ON, which is reserved */
	while (!at_end(p) && !at_word(p, "ON"))
		advance(p);
	(void) accept_word(p, "ON");
	(void) read_table(p);
}

static void
read_drop_schema(Parser *p, const char *verb)
{
	const char *schema;

	set_kind(p, DDL_DROP_SCHEMA, verb);
	p->out->certain = true;
	p->out->changes_shape = true;
	accept_if_exists(p);
	if (!at_name(p))
	{
		p->out->certain = false;
		return;
	}
	schema = ddl_token_copy(current(p), p->arena);
	advance(p);
	add_table(p, schema, "");
}

static void
read_create(Parser *p)
{
	bool		is_unique = false;

	if (accept_word(p, "OR"))
		p->out->or_replace = accept_word(p, "REPLACE");

	/* DEFINER = ..., ALGORITHM = ..., SQL SECURITY ..., ONLINE, AGGREGATE may come first */
	for (int i = 0; i < MODIFIER_WORDS && !at_end(p); i++)
	{
		if (accept_word(p, "TABLE"))
		{
			read_create_table(p);
			return;
		}
		if (accept_word(p, "INDEX"))
		{
			read_index(p, "CREATE INDEX", is_unique);
			return;
		}
		if (at_word(p, "DATABASE") || at_word(p, "SCHEMA"))
		{
			advance(p);
			if (p->out->or_replace)
				read_drop_schema(p, "CREATE OR REPLACE DATABASE");
			else
				set_harmless(p, "CREATE DATABASE");
			return;
		}
		if (at_word(p, "TEMPORARY"))
			p->out->is_temporary = true;
		else if (at_word(p, "UNIQUE"))
			is_unique = true;
		else
		{
			static const char *const harmless[] = {
				"CATALOG", "EVENT", "FUNCTION", "LIBRARY", "LOGFILE", "PACKAGE", "PROCEDURE", "REFERENCE",
				"RESOURCE", "ROLE", "SEQUENCE", "SERVER", "TABLESPACE", "TRIGGER", "USER", "VIEW", NULL
			};

			if (at_one_of(p, harmless))
			{
				p->out->is_temporary = false;
				set_harmless(p, "CREATE");
				return;
			}
		}
		advance(p);
	}
	set_kind(p, DDL_UNKNOWN, "CREATE");
}

/* ---- DROP, RENAME, TRUNCATE ---- */

static void
read_drop(Parser *p)
{
	p->out->is_temporary = accept_word(p, "TEMPORARY");
	if (accept_word(p, "TABLE") || accept_word(p, "TABLES"))
	{
		set_kind(p, DDL_DROP_TABLE, "DROP TABLE");
		p->out->certain = true;
		p->out->changes_shape = true;
		accept_if_exists(p);
		do
		{
			if (!read_table(p))
				break;
		} while (accept_sign(p, ','));
	}
	else if (accept_word(p, "INDEX"))
		read_index(p, "DROP INDEX", true);	/* it may be the unique key */
	else if (accept_word(p, "DATABASE") || accept_word(p, "SCHEMA"))
		read_drop_schema(p, "DROP DATABASE");
	else
	{
		p->out->is_temporary = false;
		set_harmless(p, "DROP");
	}
}

static void
read_rename(Parser *p)
{
	if (!accept_word(p, "TABLE") && !accept_word(p, "TABLES"))
	{
		set_harmless(p, "RENAME");	/* USER */
		return;
	}
	set_kind(p, DDL_RENAME_TABLE, "RENAME TABLE");
	p->out->certain = true;
	p->out->changes_shape = true;
	accept_if_exists(p);
	do
	{
		if (!read_table(p))
			return;
		accept_wait(p);
		if (!accept_word(p, "TO"))
		{
			p->out->certain = false;
			return;
		}
		if (!read_table(p))
			return;
	} while (accept_sign(p, ','));
}

static void
read_truncate(Parser *p)
{
	(void) accept_word(p, "TABLE");
	set_kind(p, DDL_TRUNCATE_TABLE, "TRUNCATE TABLE");
	p->out->certain = true;
	p->out->changes_shape = true;
	(void) read_table(p);
}

/* ---- rows that were not logged as rows ---- */

static void
set_dml(Parser *p, const char *verb, bool certain)
{
	set_kind(p, DDL_DML, verb);
	p->out->certain = certain;
}

static void
accept_dml_modifiers(Parser *p)
{
	static const char *const modifiers[] = {
		"LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "IGNORE", "QUICK", "CONCURRENT", "LOCAL", NULL
	};

	while (at_one_of(p, modifiers))
		advance(p);
}

static void
read_insert(Parser *p, const char *verb)
{
	set_dml(p, verb, true);
	accept_dml_modifiers(p);
	(void) accept_word(p, "INTO");
	(void) read_table(p);
}

/* One table, perhaps with an alias, before SET; anything else may be more tables. */
static void
read_update(Parser *p)
{
	set_dml(p, "UPDATE", true);
	accept_dml_modifiers(p);
	if (!read_table(p))
		return;
	if (accept_word(p, "PARTITION") && at_sign(p, '('))
		skip_parentheses(p);
	if (at_word(p, "FOR"))		/* MariaDB: FOR PORTION OF */
		return;
	(void) accept_word(p, "AS");
	if (!at_word(p, "SET") && at_name(p))
		advance(p);				/* alias */
	if (!at_word(p, "SET"))
		p->out->certain = false;
}

static void
read_delete(Parser *p)
{
	set_dml(p, "DELETE", true);
	accept_dml_modifiers(p);
	if (!accept_word(p, "FROM"))
	{
		p->out->certain = false;	/* DELETE a, b FROM ... */
		return;
	}
	if (!read_table(p))
		return;
	if (at_sign(p, ',') || at_sign(p, '.') || at_word(p, "USING"))
		p->out->certain = false;	/* DELETE FROM a, b.* USING ... */
}

static void
read_load(Parser *p)
{
	if (!at_word(p, "DATA") && !at_word(p, "XML"))
	{
		set_harmless(p, "LOAD");	/* INDEX INTO CACHE */
		return;
	}
	set_dml(p, "LOAD DATA", true);
	while (!at_end(p))
	{
		if (accept_word(p, "INTO") && accept_word(p, "TABLE"))
		{
			(void) read_table(p);
			return;
		}
		advance(p);
	}
	p->out->certain = false;
}

/* ---- the rest ---- */

static void
set_control(Parser *p, DdlKind kind, const char *verb)
{
	set_kind(p, kind, verb);
	p->out->certain = true;
}

static void
read_xa(Parser *p)
{
	if (accept_word(p, "START") || accept_word(p, "BEGIN"))
		set_control(p, DDL_XA_START, "XA START");
	else if (accept_word(p, "END"))
		set_control(p, DDL_XA_END, "XA END");
	else if (accept_word(p, "PREPARE"))
		set_control(p, DDL_XA_PREPARE, "XA PREPARE");
	else if (accept_word(p, "COMMIT"))
		set_control(p, DDL_XA_COMMIT, "XA COMMIT");
	else if (accept_word(p, "ROLLBACK"))
		set_control(p, DDL_XA_ROLLBACK, "XA ROLLBACK");
	else if (at_word(p, "RECOVER"))
		set_harmless(p, "XA RECOVER");
	else
		set_kind(p, DDL_UNKNOWN, "XA");
}

static void
read_rollback(Parser *p)
{
	(void) accept_word(p, "WORK");
	if (at_word(p, "TO"))
		set_control(p, DDL_ROLLBACK_TO, "ROLLBACK TO SAVEPOINT");
	else
		set_control(p, DDL_ROLLBACK, "ROLLBACK");
}

/* SET STATEMENT a = 1, b = 2 FOR statement (MariaDB) is that statement. */
static void
read_set(Parser *p)
{
	if (!accept_word(p, "STATEMENT"))
	{
		set_harmless(p, "SET");
		return;
	}
	while (!at_end(p) && !at_word(p, "FOR"))
	{
		if (at_sign(p, '('))
			skip_parentheses(p);
		else
			advance(p);
	}
	if (accept_word(p, "FOR") && ++p->nesting <= MAX_NESTING)
		read_statement(p);
	else
		set_kind(p, DDL_UNKNOWN, "SET STATEMENT");
}

/* ANALYZE TABLE; but MariaDB's ANALYZE UPDATE runs the statement behind it. */
static void
read_analyze(Parser *p)
{
	static const char *const tables[] = {"TABLE", "TABLES", "LOCAL", "NO_WRITE_TO_BINLOG", NULL};

	if (at_one_of(p, tables))
		set_harmless(p, "ANALYZE TABLE");
	else
		set_kind(p, DDL_UNKNOWN, "ANALYZE");
}

static void
read_begin(Parser *p)
{
	(void) accept_word(p, "WORK");
	if (at_end(p))
		set_control(p, DDL_BEGIN, "BEGIN");
	else
		set_kind(p, DDL_UNKNOWN, "BEGIN");	/* MariaDB: BEGIN NOT ATOMIC ... END */
}

static void
read_start(Parser *p)
{
	if (at_word(p, "TRANSACTION"))
		set_control(p, DDL_BEGIN, "START TRANSACTION");
	else
		set_harmless(p, "START");	/* REPLICA, SLAVE, GROUP_REPLICATION */
}

/* Verbs that neither change rows nor the shape of a table, whatever follows. */
static const char *const harmless_verbs[] = {
	"BACKUP", "BINLOG", "CACHE", "CHANGE", "CHECK", "CHECKSUM", "CLONE", "DEALLOCATE", "DESC", "DESCRIBE",
	"EXPLAIN", "FLUSH", "GET", "GRANT", "HANDLER", "HELP", "INSTALL", "KILL", "LOCK", "OPTIMIZE", "PREPARE",
	"PURGE", "REPAIR", "RESET", "RESIGNAL", "RESTART", "REVOKE", "SHOW", "SHUTDOWN", "SIGNAL", "STOP",
	"UNINSTALL", "UNLOCK", "USE", NULL
};

/* Upper-case copy of the current word, for messages. */
static const char *
word_for_message(Parser *p)
{
	char	   *word = ddl_token_copy(current(p), p->arena);

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
read_statement(Parser *p)
{
	while (accept_sign(p, ';'))
		;
	if (current(p)->kind == DDL_TOKEN_END)
		set_control(p, DDL_EMPTY, "");
	else if (accept_word(p, "INSERT"))
		read_insert(p, "INSERT");
	else if (accept_word(p, "UPDATE"))
		read_update(p);
	else if (accept_word(p, "DELETE"))
		read_delete(p);
	else if (accept_word(p, "REPLACE"))
		read_insert(p, "REPLACE");
	else if (accept_word(p, "BEGIN"))
		read_begin(p);
	else if (accept_word(p, "START"))
		read_start(p);
	else if (accept_word(p, "COMMIT"))
		set_control(p, DDL_COMMIT, "COMMIT");
	else if (accept_word(p, "ROLLBACK"))
		read_rollback(p);
	else if (accept_word(p, "SAVEPOINT"))
		set_control(p, DDL_SAVEPOINT, "SAVEPOINT");
	else if (accept_word(p, "RELEASE"))
		set_control(p, DDL_SAVEPOINT, "RELEASE SAVEPOINT");
	else if (accept_word(p, "XA"))
		read_xa(p);
	else if (accept_word(p, "CREATE"))
		read_create(p);
	else if (accept_word(p, "ALTER"))
		read_alter(p);
	else if (accept_word(p, "DROP"))
		read_drop(p);
	else if (accept_word(p, "RENAME"))
		read_rename(p);
	else if (accept_word(p, "TRUNCATE"))
		read_truncate(p);
	else if (accept_word(p, "LOAD"))
		read_load(p);
	else if (accept_word(p, "SET"))
		read_set(p);
	else if (accept_word(p, "ANALYZE"))
		read_analyze(p);
	else if (at_one_of(p, harmless_verbs))
		set_harmless(p, word_for_message(p));
	else if (at_word(p, "CALL") || at_word(p, "DO") || at_word(p, "SELECT") || at_word(p, "WITH"))
		set_dml(p, word_for_message(p), false);	/* logged only when it changed something */
	else if (current(p)->kind == DDL_TOKEN_WORD)
		set_kind(p, DDL_UNKNOWN, word_for_message(p));
	else
		set_kind(p, DDL_UNKNOWN, "statement");
}

CdcStatus
ddl_statement_read(const char *text, size_t len, const char *default_schema,
				   uint64_t sql_mode, CdcArena *arena, DdlStatement *out)
{
	Parser		p;

	memset(out, 0, sizeof(*out));
	memset(&p, 0, sizeof(p));
	p.arena = arena;
	p.out = out;
	p.default_schema = default_schema ? cdc_arena_strndup(arena, default_schema, strlen(default_schema)) : "";
	if (p.default_schema == NULL)
		return CDC_NOMEM;
	ddl_lexer_init(&p.lexer, text, len, sql_mode);
	out->verb = "";
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

bool
ddl_statement_mentions(const char *text, size_t len, uint64_t sql_mode, const char *name, bool fold)
{
	DdlLexer	lexer;

	ddl_lexer_init(&lexer, text, len, sql_mode);
	for (; lexer.token.kind != DDL_TOKEN_END; ddl_lexer_next(&lexer))
	{
		if (lexer.token.kind == DDL_TOKEN_STRING)
		{
			if (string_holds(&lexer.token, name, fold))
				return true;
		}
		else if (ddl_token_names(&lexer.token, name, fold))
			return true;
	}
	return false;
}
