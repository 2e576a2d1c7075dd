/*-------------------------------------------------------------------------
 *
 * table_foreign.c
 *	  Foreign keys of a table, of which those are kept that do something to
 *	  its rows.
 *
 * NOTES
 *	  A name that the server makes up counts all foreign keys of the table; here
 *	  only those are known that do something, so it may be another number. Which
 *	  collation a text column has the text rarely tells: a key over such columns
 *	  counts as one that compares in ways of its own.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ddl/table_draft.h"

static DdlForeign *
add_foreign(DdlDraft *d)
{
	DdlForeign *foreign;

	if (d->nforeign >= DDL_MAX_COLUMNS)
	{
		d->certain = false;
		return NULL;
	}
	if (!ddl_grow(d, (void **) &d->foreign, d->nforeign, &d->foreign_allocated, sizeof(DdlForeign)))
		return NULL;
	foreign = &d->foreign[d->nforeign++];
	memset(foreign, 0, sizeof(*foreign));
	foreign->is_new = true;
	return foreign;
}

DdlForeign *
ddl_find_foreign(const DdlDraft *d, const char *name)
{
	for (uint32_t i = 0; i < d->nforeign; i++)
	{
		if (!d->foreign[i].is_gone && d->foreign[i].def.name != NULL && ddl_name_equals(d->foreign[i].def.name, name))
			return &d->foreign[i];
	}
	return NULL;
}

/* (a, b) */
static const char **
read_columns(DdlDraft *d, uint32_t *ncolumns)
{
	DdlParser  *p = &d->p;
	const char **columns = NULL;
	uint32_t	allocated = 0;

	*ncolumns = 0;
	if (!ddl_accept_sign(p, '('))
		return NULL;
	do
	{
		const char *name = ddl_read_name(d);

		if (name == NULL || !ddl_grow(d, (void **) &columns, *ncolumns, &allocated, sizeof(char *)))
			break;
		columns[(*ncolumns)++] = name;
	} while (ddl_accept_sign(p, ','));
	if (!ddl_accept_sign(p, ')'))
		d->certain = false;
	return columns;
}

static CdcForeignAction
read_action(DdlParser *p)
{
	if (ddl_accept_word(p, "CASCADE"))
		return CDC_FOREIGN_CASCADE;
	if (ddl_accept_word(p, "SET"))
	{
		if (ddl_accept_word(p, "NULL"))
			return CDC_FOREIGN_SET_NULL;
		(void) ddl_accept_word(p, "DEFAULT");
	}
	else if (ddl_accept_word(p, "NO"))
		(void) ddl_accept_word(p, "ACTION");
	else
		(void) ddl_accept_word(p, "RESTRICT");
	return CDC_FOREIGN_NOTHING;
}

/* Behind the word REFERENCES. */
static void
read_references(DdlDraft *d, DdlForeign *foreign)
{
	DdlParser  *p = &d->p;
	CdcForeignKeyDef *def = &foreign->def;
	uint32_t	ntables = p->out->ntables;
	uint32_t	nparents;

	if (!ddl_read_table(p) || p->out->ntables == ntables)
	{
		d->certain = false;
		return;
	}
	def->parent_schema = p->tables[ntables].schema;
	def->parent_table = p->tables[ntables].name;
	def->parent_columns = read_columns(d, &nparents);
	if (def->parent_columns == NULL || nparents != def->ncolumns)
		def->parent_columns = NULL;
	if (ddl_accept_word(p, "MATCH"))
		ddl_advance(p);
	while (ddl_at_word(p, "ON"))
	{
		DdlLexer	start = p->lexer;

		ddl_advance(p);
		if (ddl_accept_word(p, "DELETE"))
			def->on_delete = read_action(p);
		else if (ddl_accept_word(p, "UPDATE") && !ddl_at_word(p, "CURRENT_TIMESTAMP") && !ddl_at_word(p, "NOW"))
			def->on_update = read_action(p);
		else
		{
			p->lexer = start;
			break;
		}
	}
}

/* At FOREIGN: FOREIGN KEY [IF NOT EXISTS] [name] (columns) REFERENCES ... */
void
ddl_read_foreign(DdlDraft *d, const char *constraint)
{
	DdlParser  *p = &d->p;
	DdlForeign *foreign = add_foreign(d);
	const char *index_name = NULL;
	bool		if_not_exists;

	if (foreign == NULL)
		return;
	(void) ddl_accept_word(p, "FOREIGN");
	(void) ddl_accept_word(p, "KEY");
	if_not_exists = ddl_at_word(p, "IF");
	ddl_accept_if_exists(p);
	if (ddl_at_name(p))
		index_name = ddl_read_name(d);
	foreign->columns = read_columns(d, &foreign->def.ncolumns);
	if (foreign->columns == NULL || foreign->def.ncolumns == 0 || !ddl_accept_word(p, "REFERENCES"))
	{
		foreign->is_gone = true;
		d->certain = false;
		return;
	}
	read_references(d, foreign);
	if (if_not_exists && constraint != NULL && ddl_find_foreign(d, constraint) != NULL)
	{
		foreign->is_gone = true;
		return;
	}
	/* MariaDB gives the index's name to the key */
	foreign->def.name = constraint == NULL && d->dialect == DDL_DIALECT_MARIADB ? index_name : constraint;
	ddl_add_foreign_index(d, constraint != NULL ? constraint : index_name, foreign->columns, foreign->def.ncolumns);
}

/* REFERENCES among a column's attributes; behind the word. */
void
ddl_read_column_references(DdlDraft *d, const char *column)
{
	DdlForeign *foreign = add_foreign(d);

	if (foreign == NULL)
		return;
	foreign->columns = cdc_arena_alloc(d->p.arena, sizeof(char *));
	if (foreign->columns == NULL)
	{
		d->p.nomem = true;
		return;
	}
	foreign->columns[0] = column;
	foreign->def.ncolumns = 1;
	read_references(d, foreign);
	ddl_add_foreign_index(d, NULL, foreign->columns, 1);
}

/* Begin with the foreign keys of the table before. */
bool
ddl_take_foreign(DdlDraft *d)
{
	for (uint32_t i = 0; i < d->before->nforeign; i++)
	{
		DdlForeign *foreign = add_foreign(d);

		if (foreign == NULL)
			return !d->p.nomem;
		foreign->def = d->before->foreign_keys[i];
		foreign->is_new = false;
		foreign->columns = cdc_arena_alloc(d->p.arena, sizeof(char *) * (foreign->def.ncolumns + 1));
		if (foreign->columns == NULL)
		{
			d->p.nomem = true;
			return false;
		}
		for (uint32_t k = 0; k < foreign->def.ncolumns; k++)
			foreign->columns[k] = foreign->def.columns[k];
	}
	return true;
}

/* Let the key's columns follow those of the table. */
static void
follow_columns(DdlDraft *d, DdlForeign *foreign, const CdcTableDef *def, const int *origin)
{
	for (uint32_t i = 0; i < foreign->def.ncolumns; i++)
	{
		int			old = foreign->is_new ? -1
			: ddl_find_column(d->before->columns, d->before->ncolumns, foreign->columns[i]);
		int			now = -1;

		for (uint32_t k = 0; k < def->ncolumns && now < 0 && old >= 0; k++)
		{
			if (origin[k] == old)
				now = (int) k;
		}
		if (old < 0)
			now = ddl_find_column(def->columns, def->ncolumns, foreign->columns[i]);
		if (now < 0)
		{
			d->certain = false;
			foreign->is_gone = true;
			return;
		}
		foreign->columns[i] = def->columns[now].name;
	}
}

static bool
is_exact(const DdlForeign *foreign, const CdcTableDef *def)
{
	for (uint32_t i = 0; i < foreign->def.ncolumns; i++)
	{
		int			column = ddl_find_column(def->columns, def->ncolumns, foreign->columns[i]);

		switch (column < 0 ? CDC_TYPE_UNKNOWN : def->columns[column].type)
		{
			case CDC_TYPE_UNKNOWN:
			case CDC_TYPE_CHAR:
			case CDC_TYPE_VARCHAR:
			case CDC_TYPE_TEXT:
			case CDC_TYPE_ENUM:
			case CDC_TYPE_SET:
				return false;
			default:
				break;
		}
	}
	return true;
}

/* The next of table_ibfk_1, table_ibfk_2, ... */
static const char *
choose_name(DdlDraft *d, const char *table)
{
	static const char infix[] = "_ibfk_";
	size_t		len = strlen(table);
	size_t		size = len + sizeof(infix) + 16;
	char	   *name = cdc_arena_alloc(d->p.arena, size);
	unsigned	last = 0;

	if (name == NULL)
	{
		d->p.nomem = true;
		return "";
	}
	for (uint32_t i = 0; i < d->nforeign; i++)
	{
		const char *other = d->foreign[i].def.name;

		if (other != NULL && strncmp(other, table, len) == 0 && strncmp(other + len, infix, sizeof(infix) - 1) == 0)
		{
			unsigned	number = (unsigned) strtoul(other + len + sizeof(infix) - 1, NULL, 10);

			if (number > last)
				last = number;
		}
	}
	snprintf(name, size, "%s%s%u", table, infix, last + 1);
	return name;
}

/* Give the definition those foreign keys that do something; its columns are complete. */
void
ddl_finish_foreign(DdlDraft *d, CdcTableDef *def, const int *origin)
{
	CdcForeignKeyDef *keys = cdc_arena_alloc(d->p.arena, sizeof(CdcForeignKeyDef) * (d->nforeign + 1));

	if (keys == NULL)
	{
		d->p.nomem = true;
		return;
	}
	def->nforeign = 0;
	for (uint32_t i = 0; i < d->nforeign; i++)
	{
		DdlForeign *foreign = &d->foreign[i];

		if (foreign->is_gone)
			continue;
		follow_columns(d, foreign, def, origin);
		if (foreign->is_gone)
			continue;
		if (foreign->def.name == NULL)
			foreign->def.name = choose_name(d, def->name);
		if (foreign->is_new)
			foreign->def.is_exact = is_exact(foreign, def);
		foreign->def.columns = foreign->columns;
		if (foreign->def.on_delete == CDC_FOREIGN_NOTHING && foreign->def.on_update == CDC_FOREIGN_NOTHING)
			continue;
		if (foreign->def.parent_columns == NULL)
		{
			d->certain = false;
			continue;
		}
		keys[def->nforeign++] = foreign->def;
	}
	def->foreign_keys = keys;
}
