/*-------------------------------------------------------------------------
 *
 * chunk_page.c
 *	  The SELECT that reads the next page of a table in key order.
 *
 * NOTES
 *	  Keyset paging: the server orders and compares, so only it has to know its
 *	  collations. "Behind (a, b)" is written out as a > A OR (a = A AND b > B):
 *	  both servers' range optimizers read that as two ranges of the key's index,
 *	  whereas they compare a row constructor row by row.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "chunk/chunk.h"
#include "mysql/mysql_text.h"

/* Append the condition "key is behind the one in after". */
static void
append_behind(StringInfo sql, const CdcTableDef *def, const int *key, int nkey,
			  MysqlFlavor flavor, const ChunkKey *after)
{
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
							 j < i ? "=" : ">",
							 mysql_key_literal(column, flavor, after->values[j], after->lengths[j]));
		}
		appendStringInfoChar(sql, ')');
	}
}

char *
chunk_page_query(const CdcTableDef *def, const int *key, int nkey, MysqlFlavor flavor,
				 const ChunkKey *after, uint64 limit)
{
	StringInfoData sql;

	Assert(after == NULL || after->nkey == nkey);

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	for (uint32 i = 0; i < def->ncolumns; i++)
		appendStringInfo(&sql, "%s%s", i > 0 ? ", " : "", mysql_text_expression(&def->columns[i], flavor));
	for (int i = 0; i < nkey; i++)
		appendStringInfo(&sql, ", %s", mysql_key_value_expression(&def->columns[key[i]], flavor));

	appendStringInfo(&sql, " FROM %s.%s", mysql_quote_identifier(def->schema), mysql_quote_identifier(def->name));
	if (after != NULL)
	{
		appendStringInfoString(&sql, " WHERE ");
		append_behind(&sql, def, key, nkey, flavor, after);
	}

	appendStringInfoString(&sql, " ORDER BY ");
	for (int i = 0; i < nkey; i++)
		appendStringInfo(&sql, "%s%s", i > 0 ? ", " : "",
						 mysql_key_order_expression(&def->columns[key[i]], flavor));
	appendStringInfo(&sql, " LIMIT " UINT64_FORMAT, limit);
	return sql.data;
}

char *
chunk_skip_query(const CdcTableDef *def, const int *key, int nkey, MysqlFlavor flavor,
				 const ChunkKey *after, uint64 rows)
{
	StringInfoData sql;

	Assert(rows > 0);

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	for (int i = 0; i < nkey; i++)
		appendStringInfo(&sql, "%s%s", i > 0 ? ", " : "", mysql_key_value_expression(&def->columns[key[i]], flavor));
	appendStringInfo(&sql, " FROM %s.%s", mysql_quote_identifier(def->schema), mysql_quote_identifier(def->name));
	if (after != NULL)
	{
		appendStringInfoString(&sql, " WHERE ");
		append_behind(&sql, def, key, nkey, flavor, after);
	}
	appendStringInfoString(&sql, " ORDER BY ");
	for (int i = 0; i < nkey; i++)
		appendStringInfo(&sql, "%s%s", i > 0 ? ", " : "",
						 mysql_key_order_expression(&def->columns[key[i]], flavor));
	appendStringInfo(&sql, " LIMIT 1 OFFSET " UINT64_FORMAT, rows - 1);
	return sql.data;
}
