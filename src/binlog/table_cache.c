/*-------------------------------------------------------------------------
 *
 * table_cache.c
 *	  The table definitions of the TABLE_MAP events seen so far.
 *
 * NOTES
 *	  Servers repeat the TABLE_MAP for every statement, so a definition is made
 *	  once and found again by id and content. The least recently used ones go
 *	  when there are too many; the bounds are far above what one statement needs.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "binlog/table_map.h"

#include <string.h>

#include "core/cursor.h"

#define TABLE_CACHE_TABLES 4096
#define TABLE_CACHE_BYTES ((size_t) 128 * 1024 * 1024)

void
binlog_table_cache_init(BinlogTableCache *cache, const CdcAllocator *allocator, size_t limit)
{
	memset(cache, 0, sizeof(*cache));
	cache->allocator = allocator;
	cache->limit = limit;
}

static void
free_table(BinlogTableCache *cache, BinlogTable *table)
{
	cdc_arena_free(&table->arena);
	cache->allocator->free(cache->allocator->ctx, table);
}

/* Take a table out of the list by last use. */
static void
unlink_table(BinlogTableCache *cache, BinlogTable *table)
{
	if (table->newer != NULL)
		table->newer->older = table->older;
	else
		cache->newest = table->older;
	if (table->older != NULL)
		table->older->newer = table->newer;
	else
		cache->oldest = table->newer;
}

static void
link_newest(BinlogTableCache *cache, BinlogTable *table)
{
	table->newer = NULL;
	table->older = cache->newest;
	if (cache->newest != NULL)
		cache->newest->newer = table;
	else
		cache->oldest = table;
	cache->newest = table;
}

static BinlogTable **
find_slot(BinlogTableCache *cache, uint64_t table_id)
{
	BinlogTable **slot = &cache->buckets[table_id % TABLE_CACHE_BUCKETS];

	while (*slot != NULL && (*slot)->def.table_id != table_id)
		slot = &(*slot)->hash_next;
	return slot;
}

static void
remove_table(BinlogTableCache *cache, BinlogTable *table)
{
	BinlogTable **slot = find_slot(cache, table->def.table_id);

	*slot = table->hash_next;
	unlink_table(cache, table);
	cache->count--;
	cache->bytes -= table->arena.total;
	free_table(cache, table);
}

void
binlog_table_cache_clear(BinlogTableCache *cache)
{
	while (cache->newest != NULL)
		remove_table(cache, cache->newest);
}

BinlogTable *
binlog_table_cache_get(BinlogTableCache *cache, uint64_t table_id)
{
	return *find_slot(cache, table_id);
}

CdcStatus
binlog_table_cache_put(BinlogTableCache *cache, const uint8_t *body, size_t len, int id_len,
                       bool is_mariadb, CdcError *err)
{
	CdcCursor c;
	uint64_t table_id;
	BinlogTable *table;
	BinlogTable **slot;
	CdcStatus status;

	cdc_cursor_init(&c, body, len);
	table_id = cdc_cursor_uint(&c, id_len);
	cdc_cursor_u16(&c);
	if (c.failed)
		return cdc_fail(err, CDC_TRUNCATED, 0, "TABLE_MAP event ends inside its header");
	len = cdc_cursor_left(&c);

	table = binlog_table_cache_get(cache, table_id);
	if (table != NULL && table->content_len == len && memcmp(table->content, c.pos, len) == 0)
	{
		if (cache->newest != table)
		{
			unlink_table(cache, table);
			link_newest(cache, table);
		}
		return CDC_OK;
	}
	if (table != NULL)
		remove_table(cache, table);

	table = cache->allocator->alloc(cache->allocator->ctx, sizeof(BinlogTable));
	if (table == NULL)
		return cdc_fail(err, CDC_NOMEM, 0, "out of memory");
	memset(table, 0, sizeof(*table));
	cdc_arena_init(&table->arena, cache->allocator, cache->limit);
	table->def.table_id = table_id;
	table->content = (uint8_t *) cdc_arena_strndup(&table->arena, c.pos, len);
	table->content_len = len;
	status = table->content == NULL
	             ? cdc_fail(err, CDC_LIMIT, 0, "table definition does not fit the memory limit")
	             : binlog_table_parse(table, is_mariadb, err);
	if (status != CDC_OK)
	{
		free_table(cache, table);
		return status;
	}
	slot = &cache->buckets[table_id % TABLE_CACHE_BUCKETS];
	table->hash_next = *slot;
	*slot = table;
	link_newest(cache, table);
	cache->count++;
	cache->bytes += table->arena.total;
	while (cache->oldest != table &&
	       (cache->count > TABLE_CACHE_TABLES || cache->bytes > TABLE_CACHE_BYTES))
		remove_table(cache, cache->oldest);
	return CDC_OK;
}
