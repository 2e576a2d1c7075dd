/*-------------------------------------------------------------------------
 *
 * fuzz_schema_message.c
 *	  libFuzzer target: messages about schema changes, which anybody may write.
 *
 * NOTES
 *	  What is read and written again reads the same.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include "core/schema_message.h"

static bool
same(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CdcCursor cursor;
	CdcArena arena;
	CdcBuf out;
	CdcSchemaItem item;

	cdc_arena_init(&arena, &cdc_malloc_allocator, 0);
	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	if (cdc_schema_message_open(&cursor, data, size) == CDC_OK)
	{
		while (cdc_schema_message_next(&cursor, &arena, &item) == CDC_OK)
		{
			CdcCursor second;
			CdcSchemaItem again;

			require(item.command != NULL && item.schema != NULL && strlen(item.schema) < 64);
			cdc_schema_message_begin(&out);
			cdc_schema_message_add(&out, &item);
			require(cdc_schema_message_open(&second, out.data, out.len) == CDC_OK);
			require(cdc_schema_message_next(&second, &arena, &again) == CDC_OK);
			require(again.kind == item.kind && again.relid == item.relid && again.rewritten == item.rewritten);
			require(same(again.command, item.command) && same(again.schema, item.schema) && same(again.name, item.name) &&
			        same(again.old_schema, item.old_schema) && same(again.old_name, item.old_name) &&
			        same(again.old_column, item.old_column) && same(again.new_name, item.new_name));
		}
	}
	cdc_buf_free(&out);
	cdc_arena_free(&arena);
	return 0;
}
