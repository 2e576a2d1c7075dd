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

/* nkey values as mysql_key_value_expression gave them. */
typedef struct ChunkKey
{
	int			nkey;
	char	  **values;
	uint32	   *lengths;
} ChunkKey;

/*
 * SELECT of a range of keys: all source columns that the target takes
 * (mysql_text_expression; NULL for those that wanted leaves out, unless that is
 * NULL), then the key's value expressions, ordered by the server; keys behind
 * "lower" (NULL: from the beginning) up to "upper", itself included (NULL: to the
 * end), at most limit rows. palloc'd.
 */
extern char *chunk_range_query(const CdcTableDef *def, const int *key, int nkey, MysqlFlavor flavor,
							   const bool *wanted, const ChunkKey *lower, const ChunkKey *upper, uint64 limit);

/*
 * SELECT of the key, as its value expressions, that ends a range of so many rows
 * behind "lower" (NULL: from the beginning) up to "upper", itself included (NULL: to the end); no row when
 * there are fewer. palloc'd.
 */
extern char *chunk_bound_query(const CdcTableDef *def, const int *key, int nkey, MysqlFlavor flavor,
							   const ChunkKey *lower, const ChunkKey *upper, uint64 rows);

/* SELECT of the last key of the table, as its value expressions; no row when the table is empty. palloc'd. */
extern char *chunk_last_query(const CdcTableDef *def, const int *key, int nkey, MysqlFlavor flavor);

/* SELECT of how many rows there are in a range, and of the sum of a number of each of them. palloc'd. */
extern char *chunk_sum_query(const CdcTableDef *def, const int *key, int nkey, MysqlFlavor flavor,
							 const char *number, const ChunkKey *lower, const ChunkKey *upper);

/* SELECT of all rows of a table without a key, with the columns of chunk_range_query and no key. palloc'd. */
extern char *chunk_all_query(const CdcTableDef *def, MysqlFlavor flavor);

/*
 * Bytes of a target row's key, palloc'd bytea: equal keys of one table have
 * equal bytes, different keys different ones. slot holds the key columns. In a
 * keyless target the whole row is the key, nulls included.
 */
extern bytea *chunk_key_bytes(HeapTarget *target, TupleTableSlot *slot);

/*
 * The bytes with something behind them that tells equal rows apart (a transaction and a number in it), resp. without
 * that again.
 */
extern bytea *chunk_key_number(const bytea *key, uint64 transaction, uint32 number);
extern bytea *chunk_key_unnumber(const bytea *numbered);

#endif							/* CDC_CHUNK_H */
