/*-------------------------------------------------------------------------
 *
 * table_map.h
 *	  TABLE_MAP events -> table definitions, and the cache of them.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_BINLOG_TABLE_MAP_H
#define CDC_BINLOG_TABLE_MAP_H

#include "binlog/value.h"

/* The id of the event without a table that only ends a statement. */
#define BINLOG_DUMMY_TABLE_ID 0xffffff

typedef struct BinlogTable
{
	CdcTableDef def;          /* first, so that a CdcTableDef * is a BinlogTable * */
	BinlogFieldShape *shapes; /* one per column */
	bool can_split;           /* every column's length is known */
	bool has_old_temporal;    /* types whose width the log does not tell */
	uint32_t njson;           /* JSON columns, for partial updates */
	CdcArena arena;           /* holds all of it */
	uint8_t *content;         /* the event's bytes after id and flags */
	size_t content_len;
	struct BinlogTable *hash_next;
	struct BinlogTable *newer; /* list by last use */
	struct BinlogTable *older;
} BinlogTable;

#define TABLE_CACHE_BUCKETS 256

typedef struct BinlogTableCache
{
	const CdcAllocator *allocator;
	BinlogTable *buckets[TABLE_CACHE_BUCKETS];
	BinlogTable *newest;
	BinlogTable *oldest;
	size_t count;
	size_t bytes;
	size_t limit; /* bytes one definition may take; 0 no limit */
} BinlogTableCache;

/* Parse table->content; all memory comes from the table's arena. */
extern CdcStatus binlog_table_parse(BinlogTable *table, bool is_mariadb, CdcError *err);

extern void binlog_table_cache_init(BinlogTableCache *cache, const CdcAllocator *allocator,
                                    size_t limit);
extern void binlog_table_cache_clear(BinlogTableCache *cache);

/* Take in the body of a TABLE_MAP event; id_len is the size of the table id, 4 or 6. */
extern CdcStatus binlog_table_cache_put(BinlogTableCache *cache, const uint8_t *body, size_t len,
                                        int id_len, bool is_mariadb, CdcError *err);
extern BinlogTable *binlog_table_cache_get(BinlogTableCache *cache, uint64_t table_id);

#endif /* CDC_BINLOG_TABLE_MAP_H */
