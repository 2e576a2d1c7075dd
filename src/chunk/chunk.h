/*-------------------------------------------------------------------------
 *
 * chunk.h
 *	  Key ranges of a table: paging over them, and the bytes of a key.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CHUNK_H
#define CDC_CHUNK_H

#include "postgres.h"
#include "executor/tuptable.h"
#include "utils/rel.h"

#include "core/table_def.h"
#include "heap/heap_target.h"
#include "mysql/mysql_server.h"

/*
 * SELECT for the next page of a table: all source columns that the target takes
 * (mysql_text_expression), then the key's value expressions, ordered by the
 * server, after the key "after" (nkey values as mysql_key_value_expression gave
 * them; NULL for the first page), at most limit rows. palloc'd.
 */
typedef struct ChunkKey
{
	int			nkey;
	char	  **values;
	uint32	   *lengths;
} ChunkKey;

extern char *chunk_page_query(const CdcTableDef *def, const int *key, int nkey, MysqlFlavor flavor,
							  const ChunkKey *after, uint64 limit);

/*
 * SELECT for the key (value expressions only) of the row that is "rows" rows
 * behind the key "after": to pass over a page without reading it. palloc'd.
 */
extern char *chunk_skip_query(const CdcTableDef *def, const int *key, int nkey, MysqlFlavor flavor,
							  const ChunkKey *after, uint64 rows);

/*
 * Bytes of a target row's key, palloc'd bytea: equal keys of one table have
 * equal bytes, different keys different ones. slot holds the key columns. In a
 * keyless target the whole row is the key, nulls included.
 */
extern bytea *chunk_key_bytes(HeapTarget *target, TupleTableSlot *slot);

/* The bytes with a number behind them, resp. without it again (*number receives it): to count equal rows. */
extern bytea *chunk_key_number(const bytea *key, uint32 number);
extern bytea *chunk_key_unnumber(const bytea *numbered, uint32 *number);

#endif							/* CDC_CHUNK_H */
