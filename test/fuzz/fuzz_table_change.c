/*-------------------------------------------------------------------------
 *
 * fuzz_table_change.c
 *	  libFuzzer target: what statements make of a table's definition.
 *
 * NOTES
 *	  One byte gives dialect and sql_mode, the rest is the statement; a byte 1 in it
 *	  parts CREATE TABLE, which makes the table, from the statement that changes
 *	  it. Whatever the text is, the definition is one that could be: names are UTF-8, the
 *	  key has each part once, indexes are over columns that there are, columns come
 *	  from different ones; memory is bounded; the table before stays as it was.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include "ddl/statement.h"
#include "ddl/table_change.h"

#define MEMORY_LIMIT (64 * 1024 * 1024)
#define MEMORY_BASE (256 * 1024)
#define MEMORY_FACTOR 4096

static const char base[] =
	"CREATE TABLE t (id INT NOT NULL, a INT UNSIGNED DEFAULT 5, b VARCHAR(20) DEFAULT 'x', e ENUM('x','y') COMMENT 'c', d DATETIME(3), "
	"PRIMARY KEY (id), KEY k (a, b(5)), UNIQUE u (b), CONSTRAINT f FOREIGN KEY (a) REFERENCES p (x) ON DELETE CASCADE) ENGINE=InnoDB";

static void
check_string(const char *text)
{
	if (text != NULL)
		require(utf8_is_valid(text, strlen(text)));
}

static void
check_column(const CdcTableDef *def, const CdcColumnDef *column)
{
	require(column->name != NULL && column->type_text != NULL);
	check_string(column->name);
	check_string(column->type_text);
	check_string(column->default_text);
	check_string(column->comment);
	require(column->default_text != NULL || !column->default_is_expr);
	require(column->key_part <= def->nkey);
	require(column->nlabels == 0 || column->type == CDC_TYPE_ENUM || column->type == CDC_TYPE_SET);
	for (uint32_t i = 0; i < column->nlabels; i++)
		require(utf8_is_valid(column->labels[i].data, column->labels[i].len));
}

static bool
has_column(const CdcTableDef *def, const char *name)
{
	for (uint32_t i = 0; i < def->ncolumns; i++)
	{
		if (strcmp(def->columns[i].name, name) == 0)
			return true;
	}
	return false;
}

static void
check_def(const CdcTableDef *def)
{
	for (uint32_t i = 0; i < def->ncolumns; i++)
		check_column(def, &def->columns[i]);
	for (uint32_t part = 1; part <= def->nkey; part++)
	{
		uint32_t found = 0;

		for (uint32_t i = 0; i < def->ncolumns; i++)
		{
			if (def->columns[i].key_part == part)
			{
				require(!def->columns[i].nullable);
				found++;
			}
		}
		require(found == 1);
	}
	for (uint32_t i = 0; i < def->nindexes; i++)
	{
		const CdcIndexDef *index = &def->indexes[i];

		require(index->name != NULL && index->type_text != NULL && index->nparts > 0);
		check_string(index->name);
		for (uint32_t k = 0; k < index->nparts; k++)
		{
			require((index->parts[k].column == NULL) != (index->parts[k].expression == NULL));
			if (index->parts[k].column != NULL)
				require(has_column(def, index->parts[k].column));
		}
	}
	for (uint32_t i = 0; i < def->nforeign; i++)
	{
		const CdcForeignKeyDef *key = &def->foreign_keys[i];

		require(key->name != NULL && key->parent_table != NULL && key->parent_columns != NULL && key->ncolumns > 0);
		for (uint32_t k = 0; k < key->ncolumns; k++)
			require(has_column(def, key->columns[k]));
	}
	check_string(def->comment);
	check_string(def->engine);
}

static void
check_origin(const CdcTableDef *before, const CdcTableDef *after, const int *origin)
{
	for (uint32_t i = 0; i < after->ncolumns; i++)
	{
		require(origin[i] >= -1 && origin[i] < (int) before->ncolumns);
		for (uint32_t k = 0; k < i; k++)
			require(origin[i] < 0 || origin[i] != origin[k]);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text;
	const char *create = base;
	size_t create_len = sizeof(base) - 1;
	const char *parted;
	uint64_t sql_mode;
	DdlDialect dialect;
	CdcArena arena;
	DdlTableCreate made;
	DdlTableChange changed;
	size_t held;

	if (size < 1 || size > 8192)
		return 0;
	dialect = data[0] & 1 ? DDL_DIALECT_MARIADB : DDL_DIALECT_MYSQL;
	sql_mode = (data[0] & 2 ? DDL_MODE_ANSI_QUOTES : 0) | (data[0] & 4 ? DDL_MODE_NO_BACKSLASH_ESCAPES : 0) |
	           (data[0] & 8 ? 0x201 : 0);
	text = (const char *) data + 1;
	size--;
	parted = memchr(text, 1, size);
	if (parted != NULL)
	{
		create = text;
		create_len = (size_t) (parted - text);
		size -= create_len + 1;
		text = parted + 1;
	}
	cdc_arena_init(&arena, &cdc_malloc_allocator, MEMORY_LIMIT);
	require(ddl_table_create(create, create_len, "d", sql_mode, dialect, &arena, &made) == CDC_OK);
	require(!made.certain || made.def != NULL || made.as_select || made.like_table != NULL);
	require(create != base || (made.certain && made.def != NULL));
	if (made.def != NULL)
	{
		CdcTableDef *before;

		check_def(made.def);
		before = cdc_table_def_copy(made.def, &arena);
		held = arena.total;
		require(ddl_table_change(text, size, "d", sql_mode, dialect, made.def, &arena, &changed) == CDC_OK);
		require(arena.total <= held + MEMORY_BASE + (size + create_len) * MEMORY_FACTOR);
		check_def(changed.after);
		check_origin(made.def, changed.after, changed.origin);
		check_string(changed.rename_table);
		check_string(changed.convert_charset);
		require(before->ncolumns == made.def->ncolumns && before->nkey == made.def->nkey);
		for (uint32_t i = 0; i < before->ncolumns; i++)
			require(strcmp(before->columns[i].name, made.def->columns[i].name) == 0 &&
			        before->columns[i].key_part == made.def->columns[i].key_part);
	}
	cdc_arena_free(&arena);
	return 0;
}
