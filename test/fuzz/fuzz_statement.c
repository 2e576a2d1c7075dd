/*-------------------------------------------------------------------------
 *
 * fuzz_statement.c
 *	  libFuzzer target: the lexer and the reader of statements.
 *
 * NOTES
 *	  One byte gives sql_mode, the rest is the statement. Tokens lie inside the text
 *	  and follow each other; every table that is found is also mentioned, by the
 *	  search that is the last resort where the reader is not certain; comments and
 *	  blanks before a statement change nothing.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include "ddl/lexer.h"
#include "ddl/statement.h"

#define MEMORY_LIMIT (8 * 1024 * 1024)

static void
check_tokens(const char *text, size_t len, uint64_t sql_mode)
{
	DdlLexer lexer;
	const char *last = text;
	CdcArena arena;

	cdc_arena_init(&arena, &cdc_malloc_allocator, MEMORY_LIMIT);
	ddl_lexer_init(&lexer, text, len, sql_mode);
	while (lexer.token.kind != DDL_TOKEN_END)
	{
		const DdlToken *token = &lexer.token;

		require(token->text >= last && token->text + token->len <= text + len);
		require(token->kind != DDL_TOKEN_WORD || token->len > 0);
		require(token->kind != DDL_TOKEN_SIGN || token->len == 1);
		if (token->kind == DDL_TOKEN_NAME || token->kind == DDL_TOKEN_WORD)
		{
			char *copy = ddl_token_copy(token, &arena);

			require(copy != NULL && strlen(copy) <= token->len);
			if (memchr(token->text, '\0', token->len) == NULL)
				require(ddl_token_names(token, copy, false) && ddl_token_names(token, copy, true));
			cdc_arena_reset(&arena);
		}
		last = token->text + token->len;
		ddl_lexer_next(&lexer);
		require(lexer.token.text > token->text - 1 && lexer.pos >= last);
	}
	require(lexer.pos == text + len);
	cdc_arena_free(&arena);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char before[] = "/* c */ -- x\n ; ";
	const char *text;
	uint64_t sql_mode;
	CdcArena arena;
	DdlStatement out;
	DdlStatement again;
	char *longer;

	if (size < 1 || size > 8192)
		return 0;
	sql_mode = (data[0] & 1 ? DDL_MODE_ANSI_QUOTES : 0) |
	           (data[0] & 2 ? DDL_MODE_NO_BACKSLASH_ESCAPES : 0);
	text = (const char *) data + 1;
	size--;
	check_tokens(text, size, sql_mode);
	cdc_arena_init(&arena, &cdc_malloc_allocator, MEMORY_LIMIT);
	require(ddl_statement_read(text, size, "d", sql_mode, &arena, &out) == CDC_OK);
	require(out.kind <= DDL_UNKNOWN && out.verb != NULL && out.xid != NULL);
	/* both are told in messages, the second is kept in the catalog */
	require(utf8_is_valid(out.verb, strlen(out.verb)));
	require(utf8_is_valid(out.xid, strlen(out.xid)));
	for (uint32_t i = 0; i < out.ntables; i++)
	{
		const DdlTableName *table = &out.tables[i];

		if (memchr(text, '\0', size) != NULL)
			break;
		if (table->name[0] != '\0')
			require(ddl_statement_mentions(text, size, sql_mode, table->name, false));
		if (strcmp(table->schema, "d") != 0 && table->schema[0] != '\0')
			require(ddl_statement_mentions(text, size, sql_mode, table->schema, false));
	}
	/* what acts on a table names one, or says that it is not certain */
	if (out.certain && out.kind >= DDL_CREATE_TABLE && out.kind <= DDL_DML)
		require(out.ntables > 0);

	longer = malloc(sizeof(before) - 1 + size);
	memcpy(longer, before, sizeof(before) - 1);
	memcpy(longer + sizeof(before) - 1, text, size);
	require(ddl_statement_read(longer, sizeof(before) - 1 + size, "d", sql_mode, &arena, &again) ==
	        CDC_OK);
	require(again.kind == out.kind && again.certain == out.certain &&
	        again.ntables == out.ntables && again.changes_shape == out.changes_shape &&
	        strcmp(again.verb, out.verb) == 0 && strcmp(again.xid, out.xid) == 0);
	free(longer);
	cdc_arena_free(&arena);
	return 0;
}
