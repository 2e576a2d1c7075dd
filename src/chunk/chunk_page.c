/*-------------------------------------------------------------------------
 *
 * chunk_page.c
 *	  The SELECTs of keyset paging: a range of keys, and where a range of so many rows ends.
 *
 * NOTES
 *	  Keyset paging: the server orders and compares, so only it has to know its
 *	  collations. "Behind (a, b)" is written out as a > A OR (a = A AND b > B), "up
 *	  to (a, b)" as a < A OR (a = A AND b <= B): both servers' range optimizers
 *	  read that as ranges of the key's index and intersect them, whereas they
 *	  compare a row constructor row by row.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "chunk/chunk.h"
#include "mysql/mysql_text.h"

/*
 * Append the condition that the key is behind "bound", or (is_upper) that it is
 * not behind it.
 */
static void
append_bound(StringInfo sql, const CdcTableDef *def, const int *key, int nkey,
			 MysqlFlavor flavor, const ChunkKey *bound, bool is_upper)
{
	Assert(bound->nkey == nkey);
	appendStringInfoChar(sql, '(');
	for (int i = 0; i < nkey; i++)
	{
		if (i > 0)
			appendStringInfoString(sql, " OR ");
		appendStringInfoChar(sql, '(');
		for (int j = 0; j <= i; j++)
		{
			const CdcColumnDef *column = &def->columns[key[j]];

			appendStringInfo(sql, "%s%s %s %s",
							 j > 0 ? " AND " : "",
							 mysql_key_order_expression(column, flavor),
							 j < i ? "=" : !is_upper ? ">" : i == nkey - 1 ? "<=" : "<",
							 mysql_key_literal(column, flavor, bound->values[j], bound->lengths[j]));
		}
		appendStringInfoChar(sql, ')');
	}
	appendStringInfoChar(sql, ')');
}

/* Append the key's value expressions to a select list. */
static void
append_key_values(StringInfo sql, const CdcTableDef *def, const int *key, int nkey, MysqlFlavor flavor)
{
	for (int i = 0; i < nkey; i++)
		appendStringInfo(sql, "%s%s", i > 0 ? ", " : "",
						 mysql_key_value_expression(&def->columns[key[i]], flavor));
}

static void
append_table(StringInfo sql, const CdcTableDef *def)
{
	appendStringInfo(sql, " FROM %s.%s", mysql_quote_identifier(def->schema), mysql_quote_identifier(def->name));
}

/* Append the order of the key, or the opposite one. */
static void
append_order(StringInfo sql, const CdcTableDef *def, const int *key, int nkey, MysqlFlavor flavor, bool backwards)
{
	appendStringInfoString(sql, " ORDER BY ");
	for (int i = 0; i < nkey; i++)
		appendStringInfo(sql, "%s%s%s", i > 0 ? ", " : "",
						 mysql_key_order_expression(&def->columns[key[i]], flavor), backwards ? " DESC" : "");
}

/* Append the columns of rows to a select list. */
static void
append_columns(StringInfo sql, const CdcTableDef *def, MysqlFlavor flavor, const bool *wanted)
{
	for (uint32 i = 0; i < def->ncolumns; i++)
		appendStringInfo(sql, "%s%s", i > 0 ? ", " : "",
						 wanted == NULL || wanted[i] ? mysql_text_expression(&def->columns[i], flavor) : "NULL");
}

/* Append what comes after the select list, without an order. */
static void
append_range(StringInfo sql, const CdcTableDef *def, const int *key, int nkey, MysqlFlavor flavor,
			 const ChunkKey *lower, const ChunkKey *upper)
{
	append_table(sql, def);
	if (lower != NULL || upper != NULL)
		appendStringInfoString(sql, " WHERE ");
	if (lower != NULL)
		append_bound(sql, def, key, nkey, flavor, lower, false);
	if (lower != NULL && upper != NULL)
		appendStringInfoString(sql, " AND ");
	if (upper != NULL)
		append_bound(sql, def, key, nkey, flavor, upper, true);
}

char *
chunk_range_query(const CdcTableDef *def, const int *key, int nkey, MysqlFlavor flavor,
				  const bool *wanted, const ChunkKey *lower, const ChunkKey *upper, uint64 limit)
{
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	append_columns(&sql, def, flavor, wanted);
	appendStringInfoString(&sql, ", ");
	append_key_values(&sql, def, key, nkey, flavor);
	append_range(&sql, def, key, nkey, flavor, lower, upper);
	append_order(&sql, def, key, nkey, flavor, false);
	appendStringInfo(&sql, " LIMIT " UINT64_FORMAT, limit);
	return sql.data;
}

char *
chunk_bound_query(const CdcTableDef *def, const int *key, int nkey, MysqlFlavor flavor,
				  const ChunkKey *lower, const ChunkKey *upper, uint64 rows)
{
	StringInfoData sql;

	Assert(rows > 0);
	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	append_key_values(&sql, def, key, nkey, flavor);
	append_range(&sql, def, key, nkey, flavor, lower, upper);
	append_order(&sql, def, key, nkey, flavor, false);
	appendStringInfo(&sql, " LIMIT 1 OFFSET " UINT64_FORMAT, rows - 1);
	return sql.data;
}

char *
chunk_sum_query(const CdcTableDef *def, const int *key, int nkey, MysqlFlavor flavor,
				const char *number, const ChunkKey *lower, const ChunkKey *upper)
{
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT COUNT(*), SUM(%s)", number);
	append_range(&sql, def, key, nkey, flavor, lower, upper);
	return sql.data;
}

char *
chunk_last_query(const CdcTableDef *def, const int *key, int nkey, MysqlFlavor flavor)
{
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	append_key_values(&sql, def, key, nkey, flavor);
	append_table(&sql, def);
	append_order(&sql, def, key, nkey, flavor, true);
	appendStringInfoString(&sql, " LIMIT 1");
	return sql.data;
}

char *
chunk_all_query(const CdcTableDef *def, MysqlFlavor flavor)
{
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	append_columns(&sql, def, flavor, NULL);
	append_table(&sql, def);
	return sql.data;
}
