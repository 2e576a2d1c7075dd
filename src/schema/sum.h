/*-------------------------------------------------------------------------
 *
 * sum.h
 *	  The number of a row here, equal to the one that the source computes of an
 *	  equal row (mysql/mysql_sum.h).
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SCHEMA_SUM_H
#define CDC_SCHEMA_SUM_H

#include "postgres.h"

#include "schema/table.h"

typedef struct SchemaSum SchemaSum;

/* For rows of an open table; lives in the current context, to the end of the transaction at most. */
extern SchemaSum *schema_sum_begin(const SchemaTable *table);
extern void schema_sum_end(SchemaSum *sum);

/* Do both servers print the values of that source column alike, given the type that it has here? */
extern bool schema_sum_has(const SchemaSum *sum, int column);

/* May ranges of the column's values be taken here by the source's bounds: are they in the same order on both sides? */
extern bool schema_sum_is_ordered(const SchemaSum *sum, int column);

/* Number of a row over the wanted source columns; values by attribute of the target. Memory is left in the current context. */
extern uint64 schema_sum_row(SchemaSum *sum, const bool *wanted, const Datum *values, const bool *nulls);

#endif							/* CDC_SCHEMA_SUM_H */
