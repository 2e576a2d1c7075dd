/*-------------------------------------------------------------------------
 *
 * table_text.c
 *	  Definition of a table as text.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "table_text.h"

#include <string.h>

/* In quotes; what would break a line stands as its hex digits. */
static void
add_quoted(CdcBuf *out, const char *text, size_t len)
{
	cdc_buf_add_char(out, '\'');
	for (size_t i = 0; i < len; i++)
	{
		unsigned char c = (unsigned char) text[i];

		if (c < ' ')
			cdc_buf_printf(out, "<%02x>", c);
		else
			cdc_buf_add_char(out, (char) c);
	}
	cdc_buf_add_char(out, '\'');
}

static void
add_string(CdcBuf *out, const char *name, const char *text)
{
	if (text == NULL)
		return;
	cdc_buf_printf(out, " %s", name);
	add_quoted(out, text, strlen(text));
}

static void
add_flag(CdcBuf *out, bool flag, const char *name)
{
	if (flag)
		cdc_buf_printf(out, " %s", name);
}

static void
add_number(CdcBuf *out, const char *name, uint32_t number)
{
	if (number != 0)
		cdc_buf_printf(out, " %s=%u", name, number);
}

static void
add_column(CdcBuf *out, const CdcColumnDef *column, const int *origin)
{
	cdc_buf_printf(out, "column %s %s %s", column->name, column->type_text ? column->type_text : "-",
				   cdc_type_name(column->type));
	add_flag(out, column->is_unsigned, "unsigned");
	add_flag(out, !column->nullable, "not-null");
	add_flag(out, !column->visible, "hidden");
	add_flag(out, column->is_boolean, "boolean");
	add_flag(out, column->is_generated, "generated");
	add_flag(out, column->auto_increment, "auto_increment");
	add_number(out, "length", column->length);
	add_number(out, "precision", column->precision);
	add_number(out, "scale", column->scale);
	add_number(out, "collation", column->collation);
	for (uint32_t i = 0; i < column->nlabels; i++)
	{
		cdc_buf_add_str(out, i == 0 ? " labels " : ",");
		add_quoted(out, column->labels[i].data, column->labels[i].len);
	}
	add_number(out, "key", column->key_part);
	add_number(out, "prefix", column->key_prefix);
	add_string(out, column->default_is_expr ? "expression " : "default ", column->default_text);
	add_string(out, "comment ", column->comment);
	if (origin != NULL && *origin >= 0)
		cdc_buf_printf(out, " from=%d", *origin);
	else
		add_flag(out, origin != NULL, "new");
	cdc_buf_add_char(out, '\n');
}

static void
add_index(CdcBuf *out, const CdcIndexDef *index)
{
	cdc_buf_printf(out, "index %s %s", index->name, index->type_text ? index->type_text : "-");
	add_flag(out, index->is_unique, "unique");
	add_flag(out, !index->visible, "hidden");
	cdc_buf_add_str(out, " (");
	for (uint32_t i = 0; i < index->nparts; i++)
	{
		const CdcIndexPart *part = &index->parts[i];

		cdc_buf_printf(out, "%s%s%s", i > 0 ? ", " : "", part->descending ? "desc " : "",
					   part->column ? part->column : "<expression>");
		if (part->prefix > 0)
			cdc_buf_printf(out, "(%u)", part->prefix);
	}
	cdc_buf_add_str(out, ")\n");
}

static void
add_names(CdcBuf *out, const char *const *names, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		cdc_buf_printf(out, "%s%s", i > 0 ? ", " : "", names[i]);
}

void
table_text_add(CdcBuf *out, const CdcTableDef *def, const int *origin)
{
	for (uint32_t i = 0; i < def->ncolumns; i++)
		add_column(out, &def->columns[i], origin != NULL ? &origin[i] : NULL);
	for (uint32_t i = 0; i < def->nindexes; i++)
		add_index(out, &def->indexes[i]);
	for (uint32_t i = 0; i < def->nforeign; i++)
	{
		const CdcForeignKeyDef *key = &def->foreign_keys[i];

		cdc_buf_printf(out, "foreign %s (", key->name);
		add_names(out, key->columns, key->ncolumns);
		cdc_buf_printf(out, ") parent %s.%s (", key->parent_schema, key->parent_table);
		add_names(out, key->parent_columns, key->ncolumns);
		cdc_buf_printf(out, ") delete=%d update=%d%s\n", key->on_delete, key->on_update, key->is_exact ? "" : " inexact");
	}
	cdc_buf_add_str(out, "table");
	if (def->engine != NULL)
		cdc_buf_printf(out, " engine=%s", def->engine);
	add_string(out, "comment=", def->comment);
	add_number(out, "key", def->nkey);
	add_flag(out, (def->known & CDC_KEY_IS_PRIMARY) != 0, "primary");
	add_string(out, "row_end=", def->row_end);
	cdc_buf_add_char(out, '\n');
}
