/*-------------------------------------------------------------------------
 *
 * mysql_sum.c
 *	  A number for each row that the source computes: see mysql_sum.h.
 *
 * NOTES
 *	  Relies on the session's settings, as mysql_text.c does: time_zone '+00:00',
 *	  connection in utf8mb4.
 *
 *	  A text in another character set than UTF-8 is converted by the server, which
 *	  writes a question mark for what it cannot convert. So it is converted back
 *	  and compared: what was lost on the way makes the field an X.
 *
 *	  A row whose text is longer than the server's max_allowed_packet has a NULL
 *	  for a number and adds nothing to the sum: that comes out different too.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "binlog/charset.h"
#include "mysql/mysql_session.h"
#include "mysql/mysql_sum.h"

MysqlSumForm
mysql_sum_form(const CdcColumnDef *column)
{
	switch (column->type)
	{
		case CDC_TYPE_TINYINT:
		case CDC_TYPE_SMALLINT:
		case CDC_TYPE_MEDIUMINT:
		case CDC_TYPE_INT:
		case CDC_TYPE_BIGINT:
		case CDC_TYPE_DECIMAL:
		case CDC_TYPE_BIT:
		case CDC_TYPE_YEAR:
		case CDC_TYPE_DATE:
		case CDC_TYPE_TIME:
		case CDC_TYPE_DATETIME:
		case CDC_TYPE_TIMESTAMP:
		case CDC_TYPE_UUID:
			return MYSQL_SUM_HEAD;
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
		case CDC_TYPE_TEXT:
		case CDC_TYPE_ENUM:
		case CDC_TYPE_SET:
			return binlog_charset_name(column->collation) != NULL ? MYSQL_SUM_BODY : MYSQL_SUM_NONE;
		case CDC_TYPE_BINARY:
		case CDC_TYPE_VARBINARY:
		case CDC_TYPE_BLOB:
			return MYSQL_SUM_BODY;
		case CDC_TYPE_FLOAT:
		case CDC_TYPE_DOUBLE:
		case CDC_TYPE_JSON:
		case CDC_TYPE_GEOMETRY:
		case CDC_TYPE_VECTOR:
		case CDC_TYPE_INET4:
		case CDC_TYPE_INET6:
		case CDC_TYPE_UNKNOWN:
			break;
	}
	return MYSQL_SUM_NONE;
}

/* Are the bytes of a text column UTF-8 as they are? Those of a binary string are what they are. */
static bool
is_read_as_stored(const CdcColumnDef *column)
{
	const char *charset;

	if (column->type == CDC_TYPE_BINARY || column->type == CDC_TYPE_VARBINARY || column->type == CDC_TYPE_BLOB)
		return true;
	charset = binlog_charset_name(column->collation);
	return strcmp(charset, "utf8mb4") == 0 || strcmp(charset, "utf8mb3") == 0 || strcmp(charset, "ascii") == 0 ||
		strcmp(charset, "binary") == 0;
}

/* The field of a column in the head. */
static void
append_head(StringInfo sql, const CdcColumnDef *column)
{
	const char *name = mysql_quote_identifier(column->name);

	switch (column->type)
	{
		case CDC_TYPE_TINYINT:
		case CDC_TYPE_SMALLINT:
		case CDC_TYPE_MEDIUMINT:
		case CDC_TYPE_INT:
		case CDC_TYPE_BIGINT:
			/* unsigned ones may be ZEROFILL, and would print their zeros */
			appendStringInfo(sql, column->is_unsigned ? "IFNULL(CAST(%s AS UNSIGNED), 'N')" : "IFNULL(%s, 'N')", name);
			break;
		case CDC_TYPE_DECIMAL:
			if (column->is_unsigned)
				appendStringInfo(sql, "IFNULL(CAST(%s AS DECIMAL(%u,%u)), 'N')", name, column->precision, column->scale);
			else
				appendStringInfo(sql, "IFNULL(%s, 'N')", name);
			break;
		case CDC_TYPE_BIT:
			appendStringInfo(sql, "IFNULL(CAST(%s AS UNSIGNED), 'N')", name);
			break;
		case CDC_TYPE_YEAR:
			appendStringInfo(sql, "IFNULL(%s + 0, 'N')", name);
			break;
		case CDC_TYPE_UUID:
			appendStringInfo(sql, "IFNULL(CAST(%s AS CHAR), 'N')", name);
			break;
		case CDC_TYPE_DATE:
		case CDC_TYPE_TIME:
		case CDC_TYPE_DATETIME:
		case CDC_TYPE_TIMESTAMP:
			appendStringInfo(sql, "IFNULL(%s, 'N')", name);
			break;
		default:
			if (is_read_as_stored(column))
				appendStringInfo(sql, "IFNULL(LENGTH(%s), 'N')", name);
			else
				appendStringInfo(sql, "IF(%s IS NULL, 'N', IF(CAST(CONVERT(CONVERT(%s USING utf8mb4) USING %s) AS BINARY) = CAST(%s AS BINARY), "
								 "LENGTH(CONVERT(%s USING utf8mb4)), 'X'))",
								 name, name, binlog_charset_name(column->collation), name, name);
			break;
	}
}

static void
append_body(StringInfo sql, const CdcColumnDef *column)
{
	const char *name = mysql_quote_identifier(column->name);

	if (is_read_as_stored(column))
		appendStringInfo(sql, ", IFNULL(CAST(%s AS BINARY), '')", name);
	else
		appendStringInfo(sql, ", IFNULL(CAST(CONVERT(%s USING utf8mb4) AS BINARY), '')", name);
}

char *
mysql_sum_expression(const CdcTableDef *def, const bool *wanted)
{
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "CAST(CONV(LEFT(SHA2(CONCAT(CONCAT_WS(','");
	for (uint32 i = 0; i < def->ncolumns; i++)
	{
		if (!wanted[i])
			continue;
		appendStringInfoString(&sql, ", ");
		append_head(&sql, &def->columns[i]);
	}
	appendStringInfoString(&sql, "), ':'");
	for (uint32 i = 0; i < def->ncolumns; i++)
	{
		if (wanted[i] && mysql_sum_form(&def->columns[i]) == MYSQL_SUM_BODY)
			append_body(&sql, &def->columns[i]);
	}
	appendStringInfoString(&sql, "), 256), 16), 16, 10) AS UNSIGNED)");
	return sql.data;
}

bool
mysql_sum_parse(const char *text, uint64 *sum)
{
	*sum = 0;
	if (text == NULL)
		return true;
	if (text[0] == '\0')
		return false;
	for (; *text != '\0'; text++)
	{
		if (*text < '0' || *text > '9')
			return false;
		*sum = *sum * 10 + (uint64) (*text - '0');
	}
	return true;
}
