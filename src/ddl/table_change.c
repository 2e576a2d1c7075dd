/*-------------------------------------------------------------------------
 *
 * table_change.c
 *	  ALTER TABLE, CREATE INDEX and DROP INDEX: what they make of a
 *	  table's definition.
 *
 * NOTES
 *	  One function per first word of a clause; each leaves the token at the comma
 *	  behind it, or at the end. Where it does not, the clause was not understood.
 *	  What clauses are about is collected in the draft, see table_draft.h.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "ddl/table_change.h"

#include <string.h>

#include "ddl/table_draft.h"

/* Verbs on partitions. Each is alone in its statement: what follows are partitions. */
static const char *const partition_verbs[] = {
	"ANALYZE", "CHECK", "COALESCE", "OPTIMIZE", "REBUILD", "REORGANIZE", "REPAIR", "TRUNCATE", "EXCHANGE",
	"DISCARD", "IMPORT", NULL
};

/* Those behind which the table has other rows. */
static const char *const moving_verbs[] = {"TRUNCATE", "EXCHANGE", "DISCARD", "IMPORT", NULL};

static void
skip_rest(DdlParser *p)
{
	while (!ddl_at_end(p))
		ddl_advance(p);
}

static DdlAction *
add_action(DdlDraft *d, DdlActionKind kind, const char *name, bool if_exists)
{
	DdlAction  *action;

	if (name == NULL || d->nactions >= DDL_MAX_COLUMNS ||
		!ddl_grow(d, (void **) &d->actions, d->nactions, &d->actions_allocated, sizeof(DdlAction)))
	{
		d->certain = false;
		return NULL;
	}
	action = &d->actions[d->nactions++];
	memset(action, 0, sizeof(*action));
	action->kind = kind;
	action->name = name;
	action->if_exists = if_exists;
	return action;
}

/* IF EXISTS or IF NOT EXISTS */
static bool
accept_condition(DdlParser *p)
{
	bool		is_there = ddl_at_word(p, "IF");

	ddl_accept_if_exists(p);
	return is_there;
}

/* ---- ADD ---- */

static void
read_add_column(DdlDraft *d)
{
	DdlParser  *p = &d->p;
	bool		conditional = accept_condition(p);
	const char *name;

	if (ddl_accept_sign(p, '('))
	{
		uint32_t	first = d->ncolumns;

		do
			ddl_read_element(d);
		while (ddl_accept_sign(p, ','));
		for (uint32_t i = first; i < d->ncolumns; i++)
			d->columns[i].conditional = conditional;
		if (!ddl_accept_sign(p, ')'))
			d->certain = false;
		return;
	}
	name = ddl_read_column_name(d);
	if (name == NULL)
		d->certain = false;
	else
		ddl_read_column(d, name, NULL, conditional);
}

static void
read_add(DdlDraft *d)
{
	DdlParser  *p = &d->p;

	if (ddl_accept_word(p, "COLUMN"))
		read_add_column(d);
	else if (ddl_at_word(p, "PARTITION"))
		skip_rest(p);
	else if (ddl_at_word(p, "SYSTEM") && ddl_next_is(d, "VERSIONING"))
	{
		ddl_advance(p);
		ddl_advance(p);
		d->adds_versioning = true;
	}
	else if (ddl_at_index(d))
		ddl_read_element(d);
	else
		read_add_column(d);
}

/* ---- DROP ---- */

static void
drop_primary(DdlDraft *d)
{
	DdlIndex   *primary = ddl_find_primary(d);

	if (primary == NULL || primary->is_new)
		d->certain = false;
	else
		primary->is_gone = true;
}

static bool
drop_index(DdlDraft *d, const char *name)
{
	for (uint32_t i = 0; i < d->nindexes; i++)
	{
		DdlIndex   *index = &d->indexes[i];

		if (!index->is_new && !index->is_gone && !index->is_primary && ddl_name_equals(index->def.name, name))
		{
			index->is_gone = true;
			d->changes_indexes = true;
			return true;
		}
	}
	return false;
}

/* Behind DROP INDEX */
static void
read_drop_index(DdlDraft *d)
{
	bool		conditional = accept_condition(&d->p);
	const char *name = ddl_read_name(d);

	if (name != NULL && ddl_name_equals(name, "PRIMARY"))
		drop_primary(d);
	else if (name == NULL || (!drop_index(d, name) && !conditional))
		d->certain = false;
}

static bool
drop_foreign(DdlDraft *d, const char *name)
{
	DdlForeign *foreign = ddl_find_foreign(d, name);

	if (foreign == NULL || foreign->is_new)
		return false;
	foreign->is_gone = true;
	return true;
}

/* DROP CONSTRAINT: a key of any kind, or a check */
static void
read_drop_constraint(DdlDraft *d)
{
	const char *name;

	(void) accept_condition(&d->p);
	name = ddl_read_name(d);
	if (name == NULL)
		d->certain = false;
	else if (ddl_name_equals(name, "PRIMARY"))
		drop_primary(d);
	else if (!drop_foreign(d, name))
	{
		DdlIndex   *index = ddl_find_index(d, name);

		if (index != NULL && index->def.is_unique)
			(void) drop_index(d, name);
	}
}

static void
read_drop(DdlDraft *d)
{
	DdlParser  *p = &d->p;
	bool		conditional;

	if (ddl_at_word(p, "PARTITION"))
	{
		d->moves_rows = true;
		skip_rest(p);
	}
	else if (ddl_accept_word(p, "PRIMARY"))
	{
		(void) ddl_accept_word(p, "KEY");
		drop_primary(d);
	}
	else if (ddl_accept_word(p, "INDEX") || ddl_accept_word(p, "KEY"))
		read_drop_index(d);
	else if (ddl_accept_word(p, "FOREIGN"))
	{
		const char *name;

		(void) ddl_accept_word(p, "KEY");
		(void) accept_condition(p);
		name = ddl_read_name(d);
		if (name == NULL)
			d->certain = false;
		else
			(void) drop_foreign(d, name);	/* most do nothing, and are not known */
	}
	else if (ddl_accept_word(p, "CHECK"))
		(void) ddl_read_name(d);
	else if (ddl_accept_word(p, "CONSTRAINT"))
		read_drop_constraint(d);
	else if (ddl_at_word(p, "SYSTEM") && ddl_next_is(d, "VERSIONING"))
	{
		ddl_advance(p);
		ddl_advance(p);
		d->drops_versioning = true;
	}
	else if (ddl_at_word(p, "PERIOD") && ddl_next_is(d, "FOR"))
	{
		ddl_advance(p);
		ddl_advance(p);
		ddl_advance(p);
	}
	else
	{
		(void) ddl_accept_word(p, "COLUMN");
		conditional = accept_condition(p);
		(void) add_action(d, DDL_ACTION_DROP, ddl_read_column_name(d), conditional);
		if (!ddl_accept_word(p, "RESTRICT"))
			(void) ddl_accept_word(p, "CASCADE");
	}
}

/* ---- other clauses ---- */

static void
read_change(DdlDraft *d, bool renames)
{
	DdlParser  *p = &d->p;
	const char *old_name;
	const char *name;
	bool		conditional;

	(void) ddl_accept_word(p, "COLUMN");
	conditional = accept_condition(p);
	name = old_name = ddl_read_column_name(d);
	if (renames)
		name = ddl_read_column_name(d);
	if (name == NULL || old_name == NULL)
		d->certain = false;
	else
		ddl_read_column(d, name, old_name, conditional);
}

/* ALTER INDEX i VISIBLE, INVISIBLE, IGNORED, NOT IGNORED */
static void
read_alter_index(DdlDraft *d)
{
	DdlParser  *p = &d->p;
	const char *name;
	DdlIndex   *index;
	bool		visible;

	(void) accept_condition(p);
	name = ddl_read_name(d);
	index = name != NULL ? ddl_find_index(d, name) : NULL;
	visible = ddl_accept_word(p, "NOT");
	if (ddl_accept_word(p, "VISIBLE"))
		visible = true;
	else if (!ddl_accept_word(p, "INVISIBLE") && !ddl_accept_word(p, "IGNORED"))
		d->certain = false;
	d->changes_indexes = true;
	if (index != NULL)
		index->def.visible = visible;
}

static void
read_alter_column(DdlDraft *d)
{
	DdlParser  *p = &d->p;
	const char *name;
	DdlAction  *action;
	bool		conditional;

	(void) ddl_accept_word(p, "COLUMN");
	conditional = accept_condition(p);
	name = ddl_read_column_name(d);
	if (ddl_accept_word(p, "DROP") && ddl_accept_word(p, "DEFAULT"))
		(void) add_action(d, DDL_ACTION_DEFAULT, name, conditional);
	else if (ddl_accept_word(p, "SET"))
	{
		if (ddl_accept_word(p, "DEFAULT"))
		{
			DdlValue	value;

			ddl_read_default(d, &value);
			action = add_action(d, DDL_ACTION_DEFAULT, name, conditional);
			if (action != NULL)
				action->value = value;
		}
		else
		{
			action = add_action(d, DDL_ACTION_VISIBLE, name, conditional);
			if (action != NULL)
				action->visible = ddl_at_word(p, "VISIBLE");
			if (!ddl_accept_word(p, "VISIBLE") && !ddl_accept_word(p, "INVISIBLE"))
				d->certain = false;
		}
	}
	else
		d->certain = false;
}

static void
read_alter(DdlDraft *d)
{
	DdlParser  *p = &d->p;

	if (ddl_accept_word(p, "INDEX") || ddl_accept_word(p, "KEY"))
		read_alter_index(d);
	else if (ddl_accept_word(p, "CHECK") || ddl_accept_word(p, "CONSTRAINT"))
	{
		(void) ddl_read_name(d);
		(void) ddl_accept_word(p, "NOT");
		(void) ddl_accept_word(p, "ENFORCED");
	}
	else
		read_alter_column(d);
}

static void
read_rename(DdlDraft *d, DdlTableChange *out)
{
	DdlParser  *p = &d->p;
	const char *from;
	const char *to;
	uint32_t	ntables;

	if (ddl_at_word(p, "COLUMN") || ddl_at_word(p, "INDEX") || ddl_at_word(p, "KEY"))
	{
		bool		is_column = ddl_accept_word(p, "COLUMN");
		bool		conditional;

		if (!is_column)
			ddl_advance(p);
		conditional = accept_condition(p);
		from = ddl_read_column_name(d);
		(void) ddl_accept_word(p, "TO");
		to = ddl_read_column_name(d);
		if (from == NULL || to == NULL)
			d->certain = false;
		else if (is_column)
		{
			DdlAction  *action = add_action(d, DDL_ACTION_RENAME, from, conditional);

			if (action != NULL)
				action->new_name = to;
		}
		else
		{
			DdlIndex   *index = ddl_find_index(d, from);

			d->changes_indexes = true;
			if (index != NULL)
				index->def.name = to;
			else
				d->certain = d->certain && conditional;
		}
		return;
	}
	if (!ddl_accept_word(p, "TO") && !ddl_accept_word(p, "AS"))
		(void) ddl_accept_sign(p, '=');
	ntables = d->statement.ntables;
	if (ddl_read_table(p) && d->statement.ntables > ntables)
	{
		out->rename_schema = p->tables[ntables].schema;
		out->rename_table = p->tables[ntables].name;
	}
}

/* CONVERT TO CHARACTER SET; MariaDB: CONVERT PARTITION p TO TABLE t, CONVERT TABLE t TO PARTITION p */
static void
read_convert(DdlDraft *d)
{
	DdlParser  *p = &d->p;

	if (!ddl_accept_word(p, "TO"))
	{
		d->moves_rows = true;
		skip_rest(p);
		return;
	}
	d->converts = true;
	while (!ddl_at_end(p) && !ddl_at_sign(p, ','))
	{
		if (!ddl_read_table_option(d))
		{
			d->certain = false;
			ddl_advance(p);
		}
	}
	if (d->convert_charset == NULL)
		d->convert_charset = "";
	if (d->default_is_binary)
		d->convert_charset = "binary";
}

/* Options of the table, with or without commas between them. */
static void
read_options(DdlDraft *d)
{
	DdlParser  *p = &d->p;

	while (!ddl_at_end(p) && !ddl_at_sign(p, ','))
	{
		if (ddl_at_word(p, "PARTITION") || ddl_at_word(p, "REMOVE"))
		{
			skip_rest(p);		/* PARTITION BY ends the statement */
			return;
		}
		if (!ddl_read_table_option(d))
		{
			d->certain = false;
			ddl_advance(p);
		}
	}
}

static void
read_clause(DdlDraft *d, DdlTableChange *out)
{
	DdlParser  *p = &d->p;

	if (ddl_accept_word(p, "ADD"))
		read_add(d);
	else if (ddl_accept_word(p, "DROP"))
		read_drop(d);
	else if (ddl_accept_word(p, "CHANGE"))
		read_change(d, true);
	else if (ddl_accept_word(p, "MODIFY"))
		read_change(d, false);
	else if (ddl_accept_word(p, "ALTER"))
		read_alter(d);
	else if (ddl_accept_word(p, "RENAME"))
		read_rename(d, out);
	else if (ddl_accept_word(p, "CONVERT"))
		read_convert(d);
	else if (ddl_at_word(p, "ORDER"))
		ddl_skip_order_columns(p);
	else if (ddl_accept_word(p, "FORCE") || ddl_accept_word(p, "WITHOUT"))
		(void) ddl_accept_word(p, "VALIDATION");
	else if (ddl_accept_word(p, "ENABLE") || ddl_accept_word(p, "DISABLE"))
		(void) ddl_accept_word(p, "KEYS");
	else if (ddl_accept_word(p, "WITH"))
	{
		if (!ddl_accept_word(p, "VALIDATION"))
			d->certain = false;
	}
	else
	{
		if (!ddl_at_harmless_option(p) && !ddl_at_word(p, "ENGINE") && !ddl_at_word(p, "TYPE") && !ddl_at_word(p, "UNION"))
			d->certain = false;
		read_options(d);
	}
}

static void
read_alter_table(DdlDraft *d, DdlTableChange *out)
{
	DdlParser  *p = &d->p;

	ddl_accept_if_exists(p);
	if (!ddl_read_table(p))
	{
		d->certain = false;
		return;
	}
	ddl_accept_wait(p);
	if (ddl_at_one_of(p, partition_verbs))
	{
		d->moves_rows = ddl_at_one_of(p, moving_verbs);
		skip_rest(p);
	}
	while (!ddl_at_end(p))
	{
		read_clause(d, out);
		if (ddl_at_word(p, "PARTITION") || ddl_at_word(p, "REMOVE"))
			skip_rest(p);		/* how the rows are spread ends the statement, without a comma */
		if (!ddl_at_end(p) && !ddl_at_sign(p, ','))
		{
			d->certain = false;
			ddl_skip_clause(p);
		}
		(void) ddl_accept_sign(p, ',');
	}
}

/* ---- CREATE INDEX, DROP INDEX ---- */

static void
read_create_index(DdlDraft *d)
{
	DdlParser  *p = &d->p;
	bool		or_replace = false;
	DdlIndex   *index;
	DdlLexer	start;
	const char *name;

	if (ddl_accept_word(p, "OR"))
		or_replace = ddl_accept_word(p, "REPLACE");
	while (ddl_accept_word(p, "ONLINE") || ddl_accept_word(p, "OFFLINE"))
		;
	start = p->lexer;
	/* the name that OR REPLACE takes away */
	while (or_replace && !ddl_at_end(p) && !ddl_accept_word(p, "INDEX"))
		ddl_advance(p);
	if (or_replace && (name = ddl_read_name(d)) != NULL)
		(void) drop_index(d, name);
	p->lexer = start;
	ddl_read_index(d, NULL, true);
	index = d->nindexes > 0 ? &d->indexes[d->nindexes - 1] : NULL;
	if (index == NULL || index->def.nparts == 0)
		d->certain = false;
}

static void
read_drop_index_statement(DdlDraft *d)
{
	DdlParser  *p = &d->p;

	read_drop_index(d);
	(void) ddl_accept_word(p, "ON");
	(void) ddl_read_table(p);
	skip_rest(p);				/* ALGORITHM, LOCK, WAIT */
}

static void
read_statement(DdlDraft *d, DdlTableChange *out)
{
	DdlParser  *p = &d->p;

	while (ddl_accept_sign(p, ';'))
		;
	while (ddl_accept_word(p, "SET") && ddl_skip_settings(p))
		;
	if (ddl_accept_word(p, "ALTER"))
	{
		while (ddl_at_word(p, "ONLINE") || ddl_at_word(p, "OFFLINE") || ddl_at_word(p, "IGNORE"))
		{
			/* IGNORE removes rows that violate a new key */
			d->moves_rows = d->moves_rows || ddl_at_word(p, "IGNORE");
			ddl_advance(p);
		}
		if (ddl_accept_word(p, "TABLE"))
			read_alter_table(d, out);
		else
			d->certain = false;
	}
	else if (ddl_accept_word(p, "CREATE"))
		read_create_index(d);
	else if (ddl_accept_word(p, "DROP") && ddl_accept_word(p, "INDEX"))
		read_drop_index_statement(d);
	else
		d->certain = false;
}

/* Other columns in the key, another order, or a primary key instead of a unique index. */
static bool
key_changed(const CdcTableDef *before, const CdcTableDef *after, const int *origin)
{
	if (before->nkey != after->nkey || ((before->known ^ after->known) & CDC_KEY_IS_PRIMARY) != 0)
		return true;
	for (uint32_t i = 0; i < after->ncolumns; i++)
	{
		if (after->columns[i].key_part == 0)
			continue;
		if (origin[i] < 0 || before->columns[origin[i]].key_part != after->columns[i].key_part ||
			before->columns[origin[i]].key_prefix != after->columns[i].key_prefix)
			return true;
	}
	return false;
}

CdcStatus
ddl_table_change(const char *text, size_t len, const char *default_schema, uint64_t sql_mode, DdlDialect dialect,
				 const CdcTableDef *before, CdcArena *arena, DdlTableChange *out)
{
	DdlDraft	d;

	memset(out, 0, sizeof(*out));
	if (!ddl_draft_begin(&d, text, len, default_schema, sql_mode, dialect, before, arena))
		return CDC_NOMEM;
	read_statement(&d, out);
	out->after = ddl_draft_finish(&d, d.before->schema, d.before->name, &out->origin);
	if (out->after == NULL)
		return CDC_NOMEM;
	out->certain = d.certain;
	out->moves_rows = d.moves_rows;
	out->computes_anew = d.computes_anew;
	out->changes_indexes = d.changes_indexes;
	out->changes_comment = d.changes_comment;
	out->changes_key = key_changed(d.before, out->after, out->origin);
	out->convert_charset = d.convert_charset;
	return CDC_OK;
}
