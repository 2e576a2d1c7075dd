/*-------------------------------------------------------------------------
 *
 * table_create.c
 *	  CREATE TABLE, and what ALTER TABLE shares with it: elements in
 *	  parentheses, options of the table.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "ddl/table_change.h"

#include <string.h>

#include "ddl/table_draft.h"

/* Engines as the servers print them. */
static const char *const engines[] = {
	"InnoDB", "MyISAM", "MEMORY", "CSV", "ARCHIVE", "BLACKHOLE", "MRG_MyISAM", "FEDERATED", "Aria", "SEQUENCE",
	"CONNECT", "ROCKSDB", "SPIDER", "ColumnStore", "Mroonga", "OQGRAPH", "S3", "ndbcluster", NULL
};

/* ---- elements ---- */

/* PERIOD FOR name (a, b); behind the word. */
static void
read_period(DdlDraft *d)
{
	DdlParser  *p = &d->p;
	bool		is_system;

	ddl_advance(p);				/* FOR */
	is_system = ddl_at_word(p, "SYSTEM_TIME");
	ddl_advance(p);
	if (is_system && ddl_at_sign(p, '('))
	{
		ddl_skip_parentheses(p);
		return;
	}
	if (!ddl_accept_sign(p, '('))
	{
		d->certain = false;
		return;
	}
	d->period[0] = ddl_read_name(d);
	(void) ddl_accept_sign(p, ',');
	d->period[1] = ddl_read_name(d);
	if (!ddl_accept_sign(p, ')'))
		d->certain = false;
}

static void
read_check(DdlDraft *d)
{
	DdlParser  *p = &d->p;

	ddl_advance(p);
	if (ddl_at_sign(p, '('))
		ddl_skip_parentheses(p);
	else
		d->certain = false;
	(void) ddl_accept_word(p, "NOT");
	(void) ddl_accept_word(p, "ENFORCED");
}

static void
read_constraint(DdlDraft *d)
{
	DdlParser  *p = &d->p;
	const char *name = NULL;

	if (ddl_accept_word(p, "CONSTRAINT"))
	{
		ddl_accept_if_exists(p);
		if (!ddl_at_word(p, "PRIMARY") && !ddl_at_word(p, "UNIQUE") && !ddl_at_word(p, "FOREIGN") && !ddl_at_word(p, "CHECK"))
			name = ddl_read_name(d);
	}
	if (ddl_at_word(p, "CHECK"))
		read_check(d);
	else if (ddl_at_word(p, "FOREIGN"))
		ddl_read_foreign(d, name);
	else if (ddl_at_word(p, "PERIOD"))
	{
		ddl_advance(p);
		read_period(d);
	}
	else
		ddl_read_index(d, name, false);
}

/* A column, an index or a constraint of CREATE TABLE's list, or behind ADD. */
void
ddl_read_element(DdlDraft *d)
{
	const char *name;

	if (ddl_at_index(d))
	{
		read_constraint(d);
		return;
	}
	name = ddl_read_column_name(d);
	if (name == NULL)
		d->certain = false;
	else
		ddl_read_column(d, name, NULL, false);
}

/* ---- options ---- */

static void
read_engine(DdlDraft *d)
{
	const char *name = ddl_read_name(d);

	d->engine = name;
	for (int i = 0; name != NULL && engines[i] != NULL; i++)
	{
		if (ddl_name_equals(name, engines[i]))
			d->engine = engines[i];
	}
	if (name != NULL && ddl_name_equals(name, "BLACKHOLE") && d->before != NULL)
		d->moves_rows = true;	/* it forgets them */
}

/* Behind CHARACTER SET, CHARSET: a name, or DEFAULT. */
static void
read_charset(DdlDraft *d)
{
	const char *charset = ddl_read_name(d);

	if (charset == NULL)
	{
		d->certain = false;
		return;
	}
	d->convert_charset = ddl_name_equals(charset, "default") ? "" : charset;
	d->default_is_binary = ddl_name_equals(charset, "binary");
}

/*
 * One option of a table at the current token; false when there is none. What is of no
 * interest is passed over with its value.
 */
bool
ddl_read_table_option(DdlDraft *d)
{
	DdlParser  *p = &d->p;
	size_t		len;

	if (!ddl_at_name(p))
		return false;
	if (ddl_accept_word(p, "ENGINE") || ddl_accept_word(p, "TYPE"))
		read_engine(d);
	else if (ddl_accept_word(p, "COMMENT"))
	{
		(void) ddl_accept_sign(p, '=');
		d->comment = ddl_read_text(d, &len);
		d->changes_comment = true;
		if (d->comment == NULL)
			d->certain = false;
	}
	else if (ddl_accept_word(p, "DEFAULT"))
		;						/* CHARACTER SET or COLLATE follow */
	else if (ddl_accept_word(p, "CHARSET"))
		read_charset(d);
	else if (ddl_at_word(p, "CHARACTER") || ddl_at_word(p, "CHAR"))
	{
		ddl_advance(p);
		(void) ddl_accept_word(p, "SET");
		read_charset(d);
	}
	else if (ddl_accept_word(p, "COLLATE"))
	{
		const char *collation = ddl_read_name(d);

		if (collation != NULL && ddl_name_equals(collation, "binary"))
			d->default_is_binary = true;
		if (d->convert_charset == NULL)
			d->convert_charset = "";
	}
	else if (ddl_accept_word(p, "WITH"))
	{
		if (ddl_accept_word(p, "SYSTEM") && ddl_accept_word(p, "VERSIONING"))
			d->adds_versioning = true;
	}
	else
	{
		/* DATA DIRECTORY = 'x', UNION = (a, b), PAGE_COMPRESSED = 1, STATS_PERSISTENT 1, START TRANSACTION */
		bool		is_long = ddl_at_word(p, "DATA") || ddl_at_word(p, "INDEX");

		ddl_advance(p);
		if (is_long)
			(void) ddl_accept_word(p, "DIRECTORY");
		(void) ddl_accept_sign(p, '=');
		if (ddl_at_sign(p, '('))
			ddl_skip_parentheses(p);
		else if (!ddl_at_end(p) && !ddl_at_sign(p, ',') && !ddl_at_word(p, "PARTITION"))
		{
			ddl_advance(p);
			while (ddl_accept_sign(p, '.'))
				ddl_advance(p); /* a number with a point, or a qualified name */
		}
	}
	return true;
}

/* ---- CREATE TABLE ---- */

static void
read_like(DdlDraft *d, DdlTableCreate *out)
{
	uint32_t	ntables = d->statement.ntables;

	if (!ddl_read_table(&d->p) || d->statement.ntables == ntables)
	{
		d->certain = false;
		return;
	}
	out->like_schema = d->p.tables[ntables].schema;
	out->like_table = d->p.tables[ntables].name;
}

/* Behind the table's name. */
static void
read_body(DdlDraft *d, DdlTableCreate *out)
{
	DdlParser  *p = &d->p;
	DdlLexer	start = p->lexer;

	if (ddl_accept_word(p, "LIKE"))
	{
		read_like(d, out);
		return;
	}
	if (ddl_accept_sign(p, '('))
	{
		if (ddl_accept_word(p, "LIKE"))
		{
			read_like(d, out);
			return;
		}
		if (ddl_at_word(p, "SELECT") || ddl_at_word(p, "WITH") || ddl_at_word(p, "VALUES"))
		{
			out->as_select = true;
			return;
		}
		do
		{
			ddl_read_element(d);
			if (!ddl_at_sign(p, ',') && !ddl_at_sign(p, ')'))
			{
				d->certain = false;
				while (!ddl_at_end(p) && !ddl_at_sign(p, ',') && !ddl_at_sign(p, ')'))
				{
					if (ddl_at_sign(p, '('))
						ddl_skip_parentheses(p);
					else
						ddl_advance(p);
				}
			}
		} while (ddl_accept_sign(p, ','));
		if (!ddl_accept_sign(p, ')'))
			d->certain = false;
	}
	while (!ddl_at_end(p))
	{
		static const char *const select[] = {"SELECT", "AS", "TABLE", "VALUES", NULL};

		if (ddl_at_one_of(p, select) || ddl_at_sign(p, '(') ||
			((ddl_at_word(p, "REPLACE") || ddl_at_word(p, "IGNORE")) && !ddl_at_sign(p, '=')) ||
			(ddl_at_word(p, "WITH") && !ddl_next_is(d, "SYSTEM")))
		{
			out->as_select = true;
			return;
		}
		if (ddl_at_word(p, "PARTITION"))
		{
			/* up to a SELECT behind it; none stands in a partition's clauses */
			while (!ddl_at_end(p) && !ddl_at_word(p, "SELECT"))
				ddl_advance(p);
			continue;
		}
		if (ddl_accept_sign(p, ','))
			continue;
		if (!ddl_read_table_option(d))
		{
			d->certain = false;
			ddl_advance(p);
		}
	}
	if (start.pos == p->lexer.pos)
		d->certain = false;
}

/* A table whose character set is binary has no text: its columns were read before that was known. */
static void
finish_binary(DdlDraft *d)
{
	for (uint32_t i = 0; d->default_is_binary && i < d->ncolumns; i++)
	{
		if (!d->columns[i].names_charset)
			ddl_become_binary(d, &d->columns[i]);
	}
}

CdcStatus
ddl_table_create(const char *text, size_t len, const char *default_schema, uint64_t sql_mode, DdlDialect dialect,
				 CdcArena *arena, DdlTableCreate *out)
{
	DdlDraft	d;
	DdlParser  *p = &d.p;
	const int  *origin;

	memset(out, 0, sizeof(*out));
	if (!ddl_draft_begin(&d, text, len, default_schema, sql_mode, dialect, NULL, arena))
		return CDC_NOMEM;
	while (ddl_accept_sign(p, ';'))
		;
	while (ddl_accept_word(p, "SET") && ddl_skip_settings(p))
		;
	if (ddl_accept_word(p, "CREATE"))
	{
		if (ddl_accept_word(p, "OR"))
			out->or_replace = ddl_accept_word(p, "REPLACE");
		out->temporary = ddl_accept_word(p, "TEMPORARY");
		if (ddl_accept_word(p, "TABLE"))
		{
			out->if_not_exists = ddl_at_word(p, "IF");
			ddl_accept_if_exists(p);
			if (ddl_read_table(p) && d.statement.ntables > 0)
			{
				read_body(&d, out);
				finish_binary(&d);
				if (!out->as_select && out->like_table == NULL)
					out->def = ddl_draft_finish(&d, p->tables[0].schema, p->tables[0].name, &origin);
				out->certain = d.certain && (out->def != NULL || out->as_select || out->like_table != NULL);
			}
		}
	}
	return p->nomem ? CDC_NOMEM : CDC_OK;
}
