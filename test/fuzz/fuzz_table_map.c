/*-------------------------------------------------------------------------
 *
 * fuzz_table_map.c
 *	  libFuzzer target: TABLE_MAP content -> table definition.
 *
 * NOTES
 *	  One byte chooses the family, the rest is the event's body after id and flags.
 *	  What a definition says of itself fits: names are text, key parts count up, the
 *	  labels are UTF-8, its memory is bounded. The copy that the apply side keeps is
 *	  equal.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include "binlog/charset.h"
#include "binlog/decimal.h"
#include "binlog/table_map.h"
#include "binlog/wire.h"

#define MEMORY_LIMIT (1024 * 1024)

static void
check_column(const CdcTableDef *def, const CdcColumnDef *column)
{
	if (def->known & CDC_KNOWS_NAMES)
		require(column->name != NULL);
	if (column->name != NULL)
		require(utf8_is_valid(column->name, strlen(column->name)));
	require(column->key_part <= def->nkey);
	for (uint32_t i = 0; i < column->nlabels; i++)
		touch(column->labels[i].data, column->labels[i].len);
	switch (column->wire_type)
	{
		case WIRE_NEWDECIMAL:
			require(binlog_decimal_is_valid(column->precision, column->scale));
			break;
		case WIRE_BIT:
			require(column->length >= 1 && column->length <= 64);
			break;
		case WIRE_TIME2:
		case WIRE_DATETIME2:
		case WIRE_TIMESTAMP2:
			require(column->scale <= 6);
			break;
		default:
			break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	BinlogTableCache cache;
	uint8_t *body;
	CdcError err = {0};
	CdcStatus status;

	if (size < 1)
		return 0;
	binlog_table_cache_init(&cache, &cdc_malloc_allocator, MEMORY_LIMIT);
	body = malloc(size + 7);
	memset(body, 0, 8);
	body[0] = 5;
	memcpy(body + 8, data + 1, size - 1);
	status = binlog_table_cache_put(&cache, body, size + 7, 6, (data[0] & 1) != 0, &err);
	require(cache.bytes <= MEMORY_LIMIT);
	if (status == CDC_OK)
	{
		BinlogTable *table = binlog_table_cache_get(&cache, 5);
		CdcTableDef *copy;
		CdcArena arena;
		uint32_t nkey = 0;

		require(table != NULL && cache.count == 1);
		require(utf8_is_valid(table->def.schema, strlen(table->def.schema)));
		require(utf8_is_valid(table->def.name, strlen(table->def.name)));
		for (uint32_t i = 0; i < table->def.ncolumns; i++)
		{
			check_column(&table->def, &table->def.columns[i]);
			nkey += table->def.columns[i].key_part != 0;
		}
		require(nkey == table->def.nkey);
		cdc_arena_init(&arena, &cdc_malloc_allocator, 0);
		copy = cdc_table_def_copy(&table->def, &arena);
		require(copy != NULL && copy->ncolumns == table->def.ncolumns && copy->nkey == nkey);
		/* the same event again changes nothing */
		require(binlog_table_cache_put(&cache, body, size + 7, 6, (data[0] & 1) != 0, &err) ==
		        CDC_OK);
		require(binlog_table_cache_get(&cache, 5) == table);
		binlog_table_cache_clear(&cache);
		for (uint32_t i = 0; i < copy->ncolumns; i++)
			check_column(copy, &copy->columns[i]);
		cdc_arena_free(&arena);
	}
	else
	{
		check_error(status, &err);
		require(binlog_table_cache_get(&cache, 5) == NULL);
	}
	binlog_table_cache_clear(&cache);
	require(cache.bytes == 0 && cache.count == 0);
	free(body);
	return 0;
}
