/*-------------------------------------------------------------------------
 *
 * table_def.c
 *	  Copies and names of table definitions.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "core/table_def.h"

#include <string.h>

/* Copy a string that may be NULL. Returns false when out of memory. */
static bool
copy_string(CdcArena *arena, const char **str)
{
	if (*str == NULL)
		return true;
	*str = cdc_arena_strndup(arena, *str, strlen(*str));
	return *str != NULL;
}

static bool
copy_column(CdcArena *arena, CdcColumnDef *column)
{
	const CdcLabel *from = column->labels;
	CdcLabel *to;

	if (!copy_string(arena, &column->name) || !copy_string(arena, &column->type_text) ||
	    !copy_string(arena, &column->default_text) || !copy_string(arena, &column->comment))
		return false;
	if (from == NULL || column->nlabels == 0)
	{
		column->labels = NULL;
		column->nlabels = 0;
		return true;
	}
	to = cdc_arena_alloc(arena, column->nlabels * sizeof(CdcLabel));
	if (to == NULL)
		return false;
	for (uint32_t i = 0; i < column->nlabels; i++)
	{
		to[i].len = from[i].len;
		to[i].data = cdc_arena_strndup(arena, from[i].data, from[i].len);
		if (to[i].data == NULL)
			return false;
	}
	column->labels = to;
	return true;
}

static bool
copy_index(CdcArena *arena, CdcIndexDef *index)
{
	CdcIndexPart *parts;

	if (!copy_string(arena, &index->name) || !copy_string(arena, &index->type_text))
		return false;
	parts = cdc_arena_alloc(arena, index->nparts * sizeof(CdcIndexPart));
	if (parts == NULL)
		return false;
	for (uint32_t i = 0; i < index->nparts; i++)
	{
		parts[i] = index->parts[i];
		if (!copy_string(arena, &parts[i].column) || !copy_string(arena, &parts[i].expression))
			return false;
	}
	index->parts = parts;
	return true;
}

static bool
copy_indexes(CdcArena *arena, CdcTableDef *def)
{
	CdcIndexDef *indexes;

	if (def->nindexes == 0)
	{
		def->indexes = NULL;
		return true;
	}
	indexes = cdc_arena_alloc(arena, def->nindexes * sizeof(CdcIndexDef));
	if (indexes == NULL)
		return false;
	for (uint32_t i = 0; i < def->nindexes; i++)
	{
		indexes[i] = def->indexes[i];
		if (!copy_index(arena, &indexes[i]))
			return false;
	}
	def->indexes = indexes;
	return true;
}

static bool
copy_names(CdcArena *arena, const char ***names, uint32_t n)
{
	const char **copy = cdc_arena_alloc(arena, (size_t) n * sizeof(char *));

	if (copy == NULL)
		return false;
	for (uint32_t i = 0; i < n; i++)
	{
		copy[i] = (*names)[i];
		if (!copy_string(arena, &copy[i]))
			return false;
	}
	*names = copy;
	return true;
}

static bool
copy_foreign_keys(CdcArena *arena, CdcTableDef *def)
{
	CdcForeignKeyDef *keys;

	if (def->nforeign == 0)
	{
		def->foreign_keys = NULL;
		return true;
	}
	keys = cdc_arena_alloc(arena, def->nforeign * sizeof(CdcForeignKeyDef));
	if (keys == NULL)
		return false;
	for (uint32_t i = 0; i < def->nforeign; i++)
	{
		keys[i] = def->foreign_keys[i];
		if (!copy_string(arena, &keys[i].name) || !copy_string(arena, &keys[i].parent_schema) ||
		    !copy_string(arena, &keys[i].parent_table) ||
		    !copy_names(arena, &keys[i].columns, keys[i].ncolumns) ||
		    !copy_names(arena, &keys[i].parent_columns, keys[i].ncolumns))
			return false;
	}
	def->foreign_keys = keys;
	return true;
}

CdcTableDef *
cdc_table_def_copy(const CdcTableDef *def, CdcArena *arena)
{
	CdcTableDef *copy = cdc_arena_alloc(arena, sizeof(CdcTableDef));

	if (copy == NULL)
		return NULL;
	*copy = *def;
	copy->user = NULL;
	if (!copy_string(arena, &copy->schema) || !copy_string(arena, &copy->name) ||
	    !copy_string(arena, &copy->engine) || !copy_string(arena, &copy->comment) ||
	    !copy_string(arena, &copy->row_end))
		return NULL;
	copy->columns = cdc_arena_alloc(arena, (size_t) def->ncolumns * sizeof(CdcColumnDef));
	if (copy->columns == NULL)
		return NULL;
	for (uint32_t i = 0; i < def->ncolumns; i++)
	{
		copy->columns[i] = def->columns[i];
		if (!copy_column(arena, &copy->columns[i]))
			return NULL;
	}
	if (!copy_indexes(arena, copy) || !copy_foreign_keys(arena, copy))
		return NULL;
	return copy;
}

int
cdc_table_def_column(const CdcTableDef *def, const char *name)
{
	for (uint32_t i = 0; i < def->ncolumns; i++)
	{
		if (strcmp(def->columns[i].name, name) == 0)
			return (int) i;
	}
	return -1;
}

int
cdc_table_def_key_column(const CdcTableDef *def, uint32_t part)
{
	for (uint32_t i = 0; i < def->ncolumns; i++)
	{
		if (def->columns[i].key_part == part)
			return (int) i;
	}
	return -1;
}

bool
cdc_type_is_text(CdcType type)
{
	switch (type)
	{
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
		case CDC_TYPE_TEXT:
		case CDC_TYPE_ENUM:
		case CDC_TYPE_SET:
			return true;
		default:
			return false;
	}
}

bool
cdc_type_is_integer(CdcType type)
{
	return type >= CDC_TYPE_TINYINT && type <= CDC_TYPE_BIGINT;
}

bool
cdc_type_is_character(CdcType type)
{
	return type == CDC_TYPE_CHAR || type == CDC_TYPE_VARCHAR || type == CDC_TYPE_TEXT;
}

bool
cdc_type_is_binary(CdcType type)
{
	return type == CDC_TYPE_BINARY || type == CDC_TYPE_VARBINARY || type == CDC_TYPE_BLOB;
}

bool
cdc_label_equal(const CdcLabel *a, const CdcLabel *b)
{
	return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

bool
cdc_labels_only_come(const CdcColumnDef *before, const CdcColumnDef *after)
{
	if (before->nlabels > after->nlabels)
		return false;
	for (uint32_t i = 0; i < before->nlabels; i++)
	{
		if (!cdc_label_equal(&before->labels[i], &after->labels[i]))
			return false;
	}
	return true;
}

const char *
cdc_type_name(CdcType type)
{
	static const char *const names[] = {
	    [CDC_TYPE_UNKNOWN] = "unknown",
	    [CDC_TYPE_TINYINT] = "tinyint",
	    [CDC_TYPE_SMALLINT] = "smallint",
	    [CDC_TYPE_MEDIUMINT] = "mediumint",
	    [CDC_TYPE_INT] = "int",
	    [CDC_TYPE_BIGINT] = "bigint",
	    [CDC_TYPE_FLOAT] = "float",
	    [CDC_TYPE_DOUBLE] = "double",
	    [CDC_TYPE_DECIMAL] = "decimal",
	    [CDC_TYPE_BIT] = "bit",
	    [CDC_TYPE_YEAR] = "year",
	    [CDC_TYPE_DATE] = "date",
	    [CDC_TYPE_TIME] = "time",
	    [CDC_TYPE_DATETIME] = "datetime",
	    [CDC_TYPE_TIMESTAMP] = "timestamp",
	    [CDC_TYPE_CHAR] = "char",
	    [CDC_TYPE_VARCHAR] = "varchar",
	    [CDC_TYPE_TEXT] = "text",
	    [CDC_TYPE_BINARY] = "binary",
	    [CDC_TYPE_VARBINARY] = "varbinary",
	    [CDC_TYPE_BLOB] = "blob",
	    [CDC_TYPE_ENUM] = "enum",
	    [CDC_TYPE_SET] = "set",
	    [CDC_TYPE_JSON] = "json",
	    [CDC_TYPE_GEOMETRY] = "geometry",
	    [CDC_TYPE_VECTOR] = "vector",
	    [CDC_TYPE_UUID] = "uuid",
	    [CDC_TYPE_INET4] = "inet4",
	    [CDC_TYPE_INET6] = "inet6",
	};

	if ((size_t) type >= sizeof(names) / sizeof(names[0]))
		return "unknown";
	return names[type];
}
