/*-------------------------------------------------------------------------
 *
 * dump_tables.c
 *	  Reads statements and tells what they make of tables, for tests that
 *	  compare that with a server.
 *
 * NOTES
 *	  On standard input come cases: a line "dialect sql_mode length length", then so many
 *	  bytes of CREATE TABLE, then so many of the statement that changes the table (0:
 *	  none). The dialect is mysql or mariadb; sql_mode is the second statement's. On
 *	  standard output the definitions stand as in table_text.h, each
 *	  behind a line that begins with "===".
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ddl/table_change.h"
#include "table_text.h"

static char *
read_bytes(size_t len)
{
	char	   *text = malloc(len + 1);

	if (fread(text, 1, len, stdin) != len)
		exit(1);
	return text;
}

static void
print(const CdcTableDef *def)
{
	CdcBuf		out;

	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	table_text_add(&out, def, NULL);
	fwrite(out.data, 1, out.len, stdout);
	cdc_buf_free(&out);
}

int
main(void)
{
	char		name[16];
	uint64_t	sql_mode;
	size_t		create_len;
	size_t		change_len;

	while (scanf("%15s %" SCNu64 " %zu %zu%*c", name, &sql_mode, &create_len, &change_len) == 4)
	{
		DdlDialect	dialect = strcmp(name, "mysql") == 0 ? DDL_DIALECT_MYSQL : DDL_DIALECT_MARIADB;
		char	   *create = read_bytes(create_len);
		char	   *change = read_bytes(change_len);
		CdcArena	arena;
		DdlTableCreate made;
		DdlTableChange changed;

		cdc_arena_init(&arena, &cdc_malloc_allocator, 0);
		if (ddl_table_create(create, create_len, "db", 0, dialect, &arena, &made) != CDC_OK || made.def == NULL)
		{
			fprintf(stderr, "not read: %.*s\n", (int) create_len, create);
			return 1;
		}
		printf("=== created%s\n", made.certain ? "" : " uncertain");
		print(made.def);
		if (change_len > 0 &&
			ddl_table_change(change, change_len, "db", sql_mode, dialect, made.def, &arena, &changed) == CDC_OK)
		{
			printf("=== changed%s%s%s\n", changed.certain ? "" : " uncertain", changed.moves_rows ? " moves" : "",
				   changed.changes_key ? " key" : "");
			print(changed.after);
		}
		cdc_arena_free(&arena);
		free(create);
		free(change);
	}
	return 0;
}
