/*-------------------------------------------------------------------------
 *
 * table_column.c
 *	  A column of CREATE TABLE or ALTER TABLE: its type, then attributes in
 *	  any order.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "ddl/table_draft.h"

/* Where the attributes of a column end. */
static bool
at_end_of_column(const DdlParser *p)
{
	static const char *const behind[] = {"FIRST", "AFTER", "PARTITION", "REMOVE", NULL};

	return ddl_at_end(p) || ddl_at_sign(p, ',') || ddl_at_sign(p, ')') || ddl_at_one_of(p, behind);
}

/* [GENERATED ALWAYS] AS (expression), or AS ROW START and AS ROW END of a system-versioned table. */
static void
read_generated(DdlDraft *d, DdlColumn *column)
{
	DdlParser  *p = &d->p;

	(void) ddl_accept_word(p, "ALWAYS");
	if (!ddl_accept_word(p, "AS"))
	{
		d->certain = false;
		return;
	}
	column->def.is_generated = true;
	if (ddl_accept_word(p, "ROW"))
	{
		if (ddl_accept_word(p, "END"))
			d->row_end = column->def.name;
		else if (!ddl_accept_word(p, "START"))
			d->certain = false;
		column->def.nullable = false;
	}
	else if (ddl_at_sign(p, '('))
		ddl_skip_parentheses(p);
	else
		d->certain = false;
}

static void
read_comment(DdlDraft *d, DdlColumn *column)
{
	size_t		len;
	const char *text;

	(void) ddl_accept_sign(&d->p, '=');
	text = ddl_read_text(d, &len);
	if (text == NULL)
		d->certain = false;
	column->def.comment = text != NULL && len > 0 ? text : NULL;
}

/* Attributes that belong to the type. */
static bool
read_type_attribute(DdlDraft *d, DdlColumn *column)
{
	static const char *const nothing[] = {"SIGNED", "BINARY", "ASCII", "UNICODE", NULL};
	DdlParser  *p = &d->p;

	if (ddl_accept_word(p, "UNSIGNED"))
		column->def.is_unsigned = true;
	else if (ddl_accept_word(p, "ZEROFILL"))
		column->zerofill = true;
	else if (ddl_accept_word(p, "CHARACTER") || ddl_accept_word(p, "CHAR"))
	{
		if (!ddl_accept_word(p, "SET"))
			d->certain = false;
		ddl_set_charset(d, column, ddl_read_name(d));
	}
	else if (ddl_accept_word(p, "CHARSET"))
		ddl_set_charset(d, column, ddl_read_name(d));
	else if (ddl_accept_word(p, "BYTE"))
		ddl_set_charset(d, column, "binary");
	else if (ddl_accept_word(p, "COLLATE"))
	{
		const char *collation;

		(void) ddl_accept_sign(p, '=');
		collation = ddl_read_name(d);
		if (collation != NULL && ddl_name_equals(collation, "binary"))
			ddl_set_charset(d, column, "binary");
		else if (collation != NULL)
			column->names_charset = true;
	}
	else if (ddl_accept_word(p, "COMPRESSED"))
	{
		if (ddl_accept_sign(p, '='))
			ddl_advance(p);
		column->compressed = true;
	}
	else if (ddl_at_one_of(p, nothing))
	{
		if (!ddl_at_word(p, "SIGNED") && !ddl_at_word(p, "BINARY"))
			column->names_charset = true;
		ddl_advance(p);
	}
	else
		return false;
	return true;
}

/* Keys, constraints and references in the column. */
static bool
read_constraint(DdlDraft *d, DdlColumn *column)
{
	DdlParser  *p = &d->p;

	if (ddl_accept_word(p, "PRIMARY"))
	{
		(void) ddl_accept_word(p, "KEY");
		column->is_primary = true;
	}
	else if (ddl_accept_word(p, "KEY"))
		column->is_primary = true;
	else if (ddl_accept_word(p, "UNIQUE"))
	{
		(void) ddl_accept_word(p, "KEY");
		column->is_unique = true;
	}
	else if (ddl_accept_word(p, "CONSTRAINT"))
	{
		if (!ddl_at_word(p, "CHECK") && ddl_at_name(p))
			ddl_advance(p);
	}
	else if (ddl_accept_word(p, "CHECK"))
	{
		if (ddl_at_sign(p, '('))
			ddl_skip_parentheses(p);
		else
			d->certain = false;
	}
	else if (ddl_accept_word(p, "REFERENCES"))
		ddl_read_column_references(d, column->def.name);
	else
		return false;
	return true;
}

/* NOT NULL, NOT SECONDARY, NOT ENFORCED. */
static void
read_not(DdlDraft *d, DdlColumn *column)
{
	DdlParser  *p = &d->p;

	if (ddl_accept_word(p, "NULL"))
		column->def.nullable = false;
	else if (!ddl_accept_word(p, "SECONDARY") && !ddl_accept_word(p, "ENFORCED"))
		d->certain = false;
}

/* Attributes that change nothing here. */
static bool
skip_attribute(DdlDraft *d)
{
	static const char *const alone[] = {"VISIBLE", "ENFORCED", "VIRTUAL", "STORED", "PERSISTENT", NULL};
	static const char *const with_word[] = {
		"COLUMN_FORMAT", "STORAGE", "SRID", "REF_SYSTEM_ID", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", NULL
	};
	DdlParser  *p = &d->p;

	if (ddl_at_one_of(p, alone))
		ddl_advance(p);
	else if (ddl_at_one_of(p, with_word))
	{
		ddl_advance(p);
		(void) ddl_accept_sign(p, '=');
		ddl_advance(p);
	}
	else if (ddl_accept_word(p, "WITH") || ddl_accept_word(p, "WITHOUT"))
	{
		if (!ddl_accept_word(p, "SYSTEM") || !ddl_accept_word(p, "VERSIONING"))
			d->certain = false;
	}
	else
		return false;
	return true;
}

/* What nobody knows: MariaDB's engines take options of any name, with a value behind "=". */
static void
skip_unknown(DdlDraft *d)
{
	DdlParser  *p = &d->p;

	if (ddl_at_sign(p, '('))
		ddl_skip_parentheses(p);
	else
		ddl_advance(p);
	if (ddl_accept_sign(p, '='))
		ddl_advance(p);
	else
		d->certain = false;
}

static void
read_attributes(DdlDraft *d, DdlColumn *column)
{
	DdlParser  *p = &d->p;
	int			digits;

	while (!at_end_of_column(p))
	{
		if (read_type_attribute(d, column) || read_constraint(d, column))
			continue;
		if (ddl_accept_word(p, "NOT"))
			read_not(d, column);
		else if (ddl_accept_word(p, "NULL"))
			column->def.nullable = true;
		else if (ddl_accept_word(p, "DEFAULT"))
			ddl_read_default(d, &column->value);
		else if (ddl_accept_word(p, "ON"))
		{
			if (!ddl_accept_word(p, "UPDATE") || !ddl_read_now(d, &digits))
				d->certain = false;
		}
		else if (ddl_accept_word(p, "AUTO_INCREMENT"))
		{
			column->def.auto_increment = true;
			column->def.nullable = false;
		}
		else if (ddl_accept_word(p, "SERIAL"))
		{
			/* SERIAL DEFAULT VALUE */
			if (!ddl_accept_word(p, "DEFAULT") || !ddl_accept_word(p, "VALUE"))
				d->certain = false;
			column->def.auto_increment = true;
			column->def.nullable = false;
			column->is_unique = true;
		}
		else if (ddl_accept_word(p, "COMMENT"))
			read_comment(d, column);
		else if (ddl_accept_word(p, "INVISIBLE"))
			column->def.visible = false;
		else if (ddl_at_word(p, "GENERATED") || ddl_at_word(p, "AS"))
		{
			(void) ddl_accept_word(p, "GENERATED");
			read_generated(d, column);
		}
		else if (!skip_attribute(d))
			skip_unknown(d);
	}
}

static void
read_place(DdlDraft *d, DdlColumn *column)
{
	DdlParser  *p = &d->p;

	if (ddl_accept_word(p, "FIRST"))
		column->place = DDL_PLACE_FIRST;
	else if (ddl_accept_word(p, "AFTER"))
	{
		column->after = ddl_read_column_name(d);
		if (column->after == NULL)
			d->certain = false;
		else
			column->place = DDL_PLACE_AFTER;
	}
}

/*
 * Read a column behind its name and put it down. "old_name" is the column that it
 * takes the place of (MODIFY, CHANGE), or NULL; "conditional" is IF [NOT] EXISTS.
 */
void
ddl_read_column(DdlDraft *d, const char *name, const char *old_name, bool conditional)
{
	DdlColumn  *column;

	if (name == NULL || d->ncolumns >= DDL_MAX_COLUMNS ||
		!ddl_grow(d, (void **) &d->columns, d->ncolumns, &d->columns_allocated, sizeof(DdlColumn)))
	{
		d->certain = false;
		return;
	}
	column = &d->columns[d->ncolumns++];
	memset(column, 0, sizeof(*column));
	column->def.name = name;
	column->def.nullable = true;
	column->def.visible = true;
	column->origin = -1;
	column->old_name = old_name;
	column->conditional = conditional;
	column->first_index = d->nindexes;
	if (!ddl_read_type(d, column))
	{
		/* MariaDB lets generated columns of versioned tables go without: GENERATED ALWAYS AS ROW START */
		if (!ddl_at_word(&d->p, "GENERATED"))
		{
			d->certain = false;
			ddl_advance(&d->p);
		}
		column->def.type_text = "";
	}
	read_attributes(d, column);
	if (column->is_primary)
		ddl_add_column_index(d, name, true);
	/* MariaDB takes the one as both */
	if (column->is_unique && !(column->is_primary && d->dialect == DDL_DIALECT_MARIADB))
		ddl_add_column_index(d, name, false);
	read_place(d, column);
	d->computes_anew |= old_name != NULL && column->def.is_generated;
	column->last_index = d->nindexes;
	ddl_finish_type(d, column);
	if (!column->def.is_generated && !column->def.auto_increment)
		ddl_set_default(d, &column->def, &column->value);
}
