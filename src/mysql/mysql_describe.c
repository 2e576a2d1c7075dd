/*-------------------------------------------------------------------------
 *
 * mysql_describe.c
 *	  Declared definition of a source table, from information_schema.
 *
 * NOTES
 *	  Two families print the same things differently; what comes out here is
 *	  one form. MariaDB (10.2.7 and later) prints defaults as SQL text, with
 *	  quotes around strings; MySQL prints the bare value and marks expressions
 *	  by DEFAULT_GENERATED. A default of a binary column comes out as 0x6162, of a
 *	  bit column as b'101'. MariaDB's JSON is a longtext with a check
 *	  constraint, which is read from SHOW CREATE TABLE because the view of check
 *	  constraints hides it from a user who may only SELECT.
 *
 *	  information_schema leaves out columns that the user may not read, without a
 *	  word; so the server is asked for the whole table first.
 *
 *	  Names in a WHERE clause may be compared without regard to case, so rows
 *	  are compared again here.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "lib/stringinfo.h"

#include "mysql/mysql_server.h"
#include "util/util_error.h"

/* How often a definition is read that changes under the reader. */
#define DESCRIBE_TRIES 20

typedef struct TypeName
{
	const char *name;			/* information_schema.columns.data_type */
	CdcType		type;
} TypeName;

static const TypeName type_names[] = {
	{"tinyint", CDC_TYPE_TINYINT},
	{"smallint", CDC_TYPE_SMALLINT},
	{"mediumint", CDC_TYPE_MEDIUMINT},
	{"int", CDC_TYPE_INT},
	{"bigint", CDC_TYPE_BIGINT},
	{"float", CDC_TYPE_FLOAT},
	{"double", CDC_TYPE_DOUBLE},
	{"decimal", CDC_TYPE_DECIMAL},
	{"bit", CDC_TYPE_BIT},
	{"year", CDC_TYPE_YEAR},
	{"date", CDC_TYPE_DATE},
	{"time", CDC_TYPE_TIME},
	{"datetime", CDC_TYPE_DATETIME},
	{"timestamp", CDC_TYPE_TIMESTAMP},
	{"char", CDC_TYPE_CHAR},
	{"varchar", CDC_TYPE_VARCHAR},
	{"tinytext", CDC_TYPE_TEXT},
	{"text", CDC_TYPE_TEXT},
	{"mediumtext", CDC_TYPE_TEXT},
	{"longtext", CDC_TYPE_TEXT},
	{"binary", CDC_TYPE_BINARY},
	{"varbinary", CDC_TYPE_VARBINARY},
	{"tinyblob", CDC_TYPE_BLOB},
	{"blob", CDC_TYPE_BLOB},
	{"mediumblob", CDC_TYPE_BLOB},
	{"longblob", CDC_TYPE_BLOB},
	{"enum", CDC_TYPE_ENUM},
	{"set", CDC_TYPE_SET},
	{"json", CDC_TYPE_JSON},
	{"geometry", CDC_TYPE_GEOMETRY},
	{"point", CDC_TYPE_GEOMETRY},
	{"linestring", CDC_TYPE_GEOMETRY},
	{"polygon", CDC_TYPE_GEOMETRY},
	{"multipoint", CDC_TYPE_GEOMETRY},
	{"multilinestring", CDC_TYPE_GEOMETRY},
	{"multipolygon", CDC_TYPE_GEOMETRY},
	{"geomcollection", CDC_TYPE_GEOMETRY},
	{"geometrycollection", CDC_TYPE_GEOMETRY},
	{"vector", CDC_TYPE_VECTOR},
	{"uuid", CDC_TYPE_UUID},
	{"inet4", CDC_TYPE_INET4},
	{"inet6", CDC_TYPE_INET6},
};

/* Fields of the query on information_schema.columns. */
enum
{
	COL_SCHEMA,
	COL_TABLE,
	COL_NAME,
	COL_DEFAULT,
	COL_NULLABLE,
	COL_DATA_TYPE,
	COL_CHAR_LENGTH,
	COL_PRECISION,
	COL_SCALE,
	COL_FRACTION,
	COL_COLLATION,
	COL_COLUMN_TYPE,
	COL_EXTRA,
	COL_COMMENT,
	COL_GENERATION
};

#define COLUMN_QUERY \
	"SELECT table_schema, table_name, column_name, column_default, is_nullable, data_type, " \
	"character_maximum_length, numeric_precision, numeric_scale, datetime_precision, " \
	"collation_name, column_type, extra, column_comment, generation_expression " \
	"FROM information_schema.columns WHERE table_schema = %s AND table_name = %s " \
	"ORDER BY ordinal_position"

/* Column as read, with what is needed only until the definition is complete. */
typedef struct RawColumn
{
	CdcColumnDef def;
	char	   *collation_name;	/* or NULL */
} RawColumn;

static const char *
row_text(const MysqlRow *row, int field)
{
	return row->values[field] ? row->values[field] : "";
}

static uint32
row_uint(const MysqlRow *row, int field)
{
	return (uint32) Min(strtoull(row_text(row, field), NULL, 10), PG_UINT32_MAX);
}

static CdcType
type_from_name(const char *name)
{
	for (int i = 0; i < (int) lengthof(type_names); i++)
	{
		if (pg_strcasecmp(type_names[i].name, name) == 0)
			return type_names[i].type;
	}
	return CDC_TYPE_UNKNOWN;
}

/* Number in the first parentheses of "vector(16)"; 0 when there are none. */
static uint32
number_in_parentheses(const char *type_text)
{
	const char *open = strchr(type_text, '(');

	return open ? (uint32) strtoul(open + 1, NULL, 10) : 0;
}

/*
 * Read a quoted string ('it''s', backslash escapes as both servers print them)
 * that starts at *p; *p moves behind it. palloc'd.
 */
static char *
read_quoted(const char **p, uint32 *len)
{
	StringInfoData buf;
	const char *s = *p + 1;

	initStringInfo(&buf);
	while (*s != '\0')
	{
		if (*s == '\'')
		{
			if (s[1] != '\'')
			{
				s++;
				break;
			}
			s++;
		}
		else if (*s == '\\' && s[1] != '\0')
		{
			s++;
			switch (*s)
			{
				case '0':
					appendStringInfoChar(&buf, '\0');
					break;
				case 'n':
					appendStringInfoChar(&buf, '\n');
					break;
				case 'r':
					appendStringInfoChar(&buf, '\r');
					break;
				case 't':
					appendStringInfoChar(&buf, '\t');
					break;
				case 'Z':
					appendStringInfoChar(&buf, '\032');
					break;
				default:
					appendStringInfoChar(&buf, *s);
					break;
			}
			s++;
			continue;
		}
		appendStringInfoChar(&buf, *s++);
	}
	*p = s;
	*len = (uint32) buf.len;
	return buf.data;
}

/* Labels of "enum('a','b''c')" or "set(...)". */
static void
read_labels(CdcColumnDef *column, const char *type_text)
{
	const char *p = strchr(type_text, '(');
	uint32		allocated = 8;
	CdcLabel   *labels;

	if (p == NULL)
		return;
	labels = palloc(sizeof(CdcLabel) * allocated);
	for (p++; *p == '\'';)
	{
		if (column->nlabels == allocated)
		{
			allocated *= 2;
			labels = repalloc(labels, sizeof(CdcLabel) * allocated);
		}
		labels[column->nlabels].data = read_quoted(&p, &labels[column->nlabels].len);
		column->nlabels++;
		if (*p == ',')
			p++;
	}
	column->labels = labels;
}

static bool
is_number(const char *text)
{
	char	   *end;

	if (*text == '+' || *text == '-')
		text++;
	if (!isdigit((unsigned char) *text) && *text != '.')
		return false;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return false;
	(void) strtod(text, &end);
	return *end == '\0';
}

/* b'101' and x'4A' of MariaDB, which are literals too. */
static bool
is_bit_or_hex_literal(const char *text)
{
	return (text[0] == 'b' || text[0] == 'x' || text[0] == 'X') && text[1] == '\'' &&
		strchr(text + 2, '\'') == text + strlen(text) - 1;
}

/* Bytes as "0x6162", the form in which MySQL prints the default of a binary column. */
static char *
hex_literal(const char *data, uint32 len)
{
	StringInfoData buf;

	initStringInfo(&buf);
	appendStringInfoString(&buf, "0x");
	for (uint32 i = 0; i < len; i++)
		appendStringInfo(&buf, "%02X", (unsigned char) data[i]);
	return buf.data;
}

static void
set_default_mariadb(CdcColumnDef *column, const char *text)
{
	const char *p = text;
	char	   *literal;
	uint32		len;

	if (text == NULL || strcmp(text, "NULL") == 0)
		return;
	if (text[0] == '\'')
	{
		literal = read_quoted(&p, &len);
		if (*p == '\0')
		{
			column->default_text = cdc_type_is_binary(column->type) ? hex_literal(literal, len) : literal;
			return;
		}
	}
	column->default_text = pstrdup(text);
	column->default_is_expr = !is_number(text) && !is_bit_or_hex_literal(text);
}

static void
set_default_mysql(CdcColumnDef *column, const char *text, const char *extra)
{
	if (text == NULL)
		return;
	column->default_text = pstrdup(text);
	/* 5.7 does not mark its only expression */
	column->default_is_expr = strstr(extra, "DEFAULT_GENERATED") != NULL ||
		((column->type == CDC_TYPE_TIMESTAMP || column->type == CDC_TYPE_DATETIME) &&
		 pg_strncasecmp(text, "CURRENT_TIMESTAMP", strlen("CURRENT_TIMESTAMP")) == 0);
}

/*
 * information_schema is in utf8mb3: a default with a character beyond U+FFFF is
 * shown with a question mark in its place. What it really is cannot be told, so
 * it becomes an expression that nobody can translate.
 */
static void
doubt_default(CdcColumnDef *column, const char *collation)
{
	static const char *const wide[] = {"utf8mb4", "utf16", "utf32", "gb18030"};

	if (column->default_text == NULL || collation == NULL || strchr(column->default_text, '?') == NULL)
		return;
	for (int i = 0; i < (int) lengthof(wide); i++)
	{
		if (pg_strncasecmp(collation, wide[i], strlen(wide[i])) == 0)
		{
			column->default_text = "?";
			column->default_is_expr = true;
		}
	}
}

/* Sizes by type; see CdcColumnDef. */
static void
set_sizes(CdcColumnDef *column, const MysqlRow *row)
{
	switch (column->type)
	{
		case CDC_TYPE_DECIMAL:
			column->precision = (uint8) row_uint(row, COL_PRECISION);
			column->scale = (uint8) row_uint(row, COL_SCALE);
			break;
		case CDC_TYPE_BIT:
			column->length = row_uint(row, COL_PRECISION);
			break;
		case CDC_TYPE_TIME:
		case CDC_TYPE_DATETIME:
		case CDC_TYPE_TIMESTAMP:
			column->scale = (uint8) row_uint(row, COL_FRACTION);
			break;
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
		case CDC_TYPE_BINARY:
		case CDC_TYPE_VARBINARY:
			column->length = row_uint(row, COL_CHAR_LENGTH);
			break;
		case CDC_TYPE_ENUM:
		case CDC_TYPE_SET:
			read_labels(column, column->type_text);
			break;
		case CDC_TYPE_VECTOR:
			column->length = number_in_parentheses(column->type_text);
			break;
		default:
			break;
	}
}

static bool
is_generated(const char *extra)
{
	/* "DEFAULT_GENERATED" is something else */
	return strstr(extra, "VIRTUAL GENERATED") != NULL || strstr(extra, "STORED GENERATED") != NULL ||
		strstr(extra, "PERSISTENT") != NULL;
}

static void
read_column(RawColumn *raw, const MysqlRow *row, MysqlFlavor flavor)
{
	CdcColumnDef *column = &raw->def;
	const char *extra = row_text(row, COL_EXTRA);

	memset(raw, 0, sizeof(*raw));
	column->name = pstrdup(row_text(row, COL_NAME));
	column->type_text = pstrdup(row_text(row, COL_COLUMN_TYPE));
	column->type = type_from_name(row_text(row, COL_DATA_TYPE));
	column->is_unsigned = strstr(column->type_text, " unsigned") != NULL || column->type == CDC_TYPE_YEAR;
	if (column->type == CDC_TYPE_ENUM || column->type == CDC_TYPE_SET)
		column->is_unsigned = false;	/* a label may hold the word */
	column->nullable = pg_strcasecmp(row_text(row, COL_NULLABLE), "YES") == 0;
	column->visible = strstr(extra, "INVISIBLE") == NULL;
	column->is_boolean = strncmp(column->type_text, "tinyint(1)", strlen("tinyint(1)")) == 0 && !column->is_unsigned;
	column->is_generated = is_generated(extra) || row_text(row, COL_GENERATION)[0] != '\0';
	column->auto_increment = strstr(extra, "auto_increment") != NULL;
	if (row_text(row, COL_COMMENT)[0] != '\0')
		column->comment = pstrdup(row_text(row, COL_COMMENT));
	set_sizes(column, row);
	if (!column->is_generated)
	{
		if (flavor == MYSQL_FLAVOR_MARIADB)
			set_default_mariadb(column, row->values[COL_DEFAULT]);
		else
			set_default_mysql(column, row->values[COL_DEFAULT], extra);
	}

	switch (column->type)
	{
		case CDC_TYPE_BINARY:
		case CDC_TYPE_VARBINARY:
		case CDC_TYPE_BLOB:
			column->collation = 63;
			break;
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
		case CDC_TYPE_TEXT:
		case CDC_TYPE_ENUM:
		case CDC_TYPE_SET:
			if (row->values[COL_COLLATION] != NULL)
				raw->collation_name = pstrdup(row->values[COL_COLLATION]);
			doubt_default(column, raw->collation_name);
			break;
		default:
			break;
	}
}

/* Read the columns; def->ncolumns is 0 when there is no such table. */
static RawColumn *
read_columns(MysqlSession *session, MysqlFlavor flavor, CdcTableDef *def)
{
	RawColumn  *columns;
	uint32		allocated = 32;
	MysqlRow	row;

	def->ncolumns = 0;
	columns = palloc(sizeof(RawColumn) * allocated);
	mysql_session_query(session, psprintf(COLUMN_QUERY,
										  mysql_quote_literal(def->schema, strlen(def->schema)),
										  mysql_quote_literal(def->name, strlen(def->name))));
	while (mysql_session_fetch(session, &row))
	{
		if (strcmp(row_text(&row, COL_SCHEMA), def->schema) != 0 || strcmp(row_text(&row, COL_TABLE), def->name) != 0)
			continue;
		if (def->ncolumns == allocated)
		{
			allocated *= 2;
			columns = repalloc(columns, sizeof(RawColumn) * allocated);
		}
		read_column(&columns[def->ncolumns++], &row, flavor);
		if (def->row_end != NULL && pg_strcasecmp(row_text(&row, COL_GENERATION), "ROW END") == 0)
			def->row_end = pstrdup(row_text(&row, COL_NAME));
	}
	return columns;
}

/*
 * Ids of the collations in use. MariaDB's newer collations belong to several
 * character sets and have their ids beside their full names (10.10 and later).
 */
static void
resolve_collations(MysqlSession *session, const MysqlServerInfo *info, RawColumn *columns, uint32 ncolumns)
{
	bool		full_names = info->flavor == MYSQL_FLAVOR_MARIADB && info->version >= 101001;
	StringInfoData sql;
	bool		any = false;
	MysqlRow	row;

	initStringInfo(&sql);
	if (full_names)
		appendStringInfoString(&sql,
							   "SELECT full_collation_name, id "
							   "FROM information_schema.collation_character_set_applicability "
							   "WHERE full_collation_name IN (");
	else
		appendStringInfoString(&sql,
							   "SELECT collation_name, id FROM information_schema.collations "
							   "WHERE collation_name IN (");
	for (uint32 i = 0; i < ncolumns; i++)
	{
		const char *collation = columns[i].collation_name;

		if (collation == NULL)
			continue;
		appendStringInfo(&sql, "%s%s", any ? ", " : "", mysql_quote_literal(collation, strlen(collation)));
		any = true;
	}
	if (!any)
		return;
	appendStringInfoChar(&sql, ')');
	mysql_session_query(session, sql.data);
	while (mysql_session_fetch(session, &row))
	{
		for (uint32 i = 0; i < ncolumns; i++)
		{
			if (columns[i].collation_name != NULL &&
				pg_strcasecmp(columns[i].collation_name, row_text(&row, 0)) == 0)
				columns[i].def.collation = (uint16) row_uint(&row, 1);
		}
	}
}

/* Does the line of SHOW CREATE TABLE that begins with the column hold CHECK (json_valid(`column`))? */
static bool
is_json_in_text(const char *create_text, const char *column)
{
	char	   *quoted = mysql_quote_identifier(column);
	char	   *start = psprintf("\n  %s ", quoted);
	char	   *check = psprintf("CHECK (json_valid(%s))", quoted);
	const char *line = strstr(create_text, start);
	const char *end = line ? strchr(line + 1, '\n') : NULL;
	const char *found = line ? strstr(line, check) : NULL;

	return found != NULL && (end == NULL || found < end);
}

/* MariaDB's JSON: longtext utf8mb4_bin with the check that the type's name stands for. */
static void
find_mariadb_json(MysqlSession *session, const char *schema, const char *name, RawColumn *columns, uint32 ncolumns)
{
	char	   *create_text = NULL;
	MysqlRow	row;

	for (uint32 i = 0; i < ncolumns; i++)
	{
		CdcColumnDef *column = &columns[i].def;

		if (column->type != CDC_TYPE_TEXT || strcmp(column->type_text, "longtext") != 0 ||
			columns[i].collation_name == NULL || strcmp(columns[i].collation_name, "utf8mb4_bin") != 0)
			continue;
		if (create_text == NULL)
		{
			mysql_session_query(session, psprintf("SHOW CREATE TABLE %s.%s",
												  mysql_quote_identifier(schema), mysql_quote_identifier(name)));
			if (!mysql_session_fetch(session, &row) || row.nfields < 2 || row.values[1] == NULL)
				return;
			create_text = pnstrdup(row.values[1], row.lengths[1]);
			mysql_session_drain(session);
		}
		if (is_json_in_text(create_text, column->name))
			column->type = CDC_TYPE_JSON;
	}
}

/* Engine, comment and estimates; false when it is no base table. */
static bool
read_table(MysqlSession *session, CdcTableDef *def)
{
	bool		found = false;
	MysqlRow	row;

	mysql_session_query(session,
						psprintf("SELECT table_schema, table_name, engine, table_comment, table_rows, avg_row_length, table_type "
								 "FROM information_schema.tables WHERE table_schema = %s AND table_name = %s "
								 "AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')",
								 mysql_quote_literal(def->schema, strlen(def->schema)),
								 mysql_quote_literal(def->name, strlen(def->name))));
	while (mysql_session_fetch(session, &row))
	{
		if (strcmp(row_text(&row, 0), def->schema) != 0 || strcmp(row_text(&row, 1), def->name) != 0)
			continue;
		found = true;
		def->engine = pstrdup(row_text(&row, 2));
		if (row_text(&row, 3)[0] != '\0')
			def->comment = pstrdup(row_text(&row, 3));
		def->row_estimate = strtoull(row_text(&row, 4), NULL, 10);
		def->avg_row_length = strtoull(row_text(&row, 5), NULL, 10);
		if (strcmp(row_text(&row, 6), "SYSTEM VERSIONED") == 0)
			def->row_end = "row_end";	/* where the table does not declare it */
	}
	return found;
}

/* What the server answers to a statement about a table. */
static MysqlReadable
try_table(MysqlSession *session, const char *sql, char **why)
{
	MemoryContext cxt = CurrentMemoryContext;
	volatile MysqlReadable result = MYSQL_READABLE;

	PG_TRY();
	{
		mysql_session_execute(session, sql);
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		if (geterrcode() != CDC_ERRCODE_SOURCE_SETTING && geterrcode() != ERRCODE_FDW_TABLE_NOT_FOUND &&
			geterrcode() != ERRCODE_FDW_SCHEMA_NOT_FOUND && geterrcode() != ERRCODE_LOCK_NOT_AVAILABLE)
			PG_RE_THROW();
		MemoryContextSwitchTo(cxt);
		edata = CopyErrorData();
		FlushErrorState();
		result = edata->sqlerrcode == CDC_ERRCODE_SOURCE_SETTING ? MYSQL_NOT_READABLE
			: edata->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE ? MYSQL_TABLE_LOCKED : MYSQL_NO_TABLE;
		*why = edata->detail;
	}
	PG_END_TRY();
	return result;
}

MysqlReadable
mysql_server_table_readable(MysqlSession *session, const char *schema, const char *name, char **why)
{
	char	   *table = psprintf("%s.%s", mysql_quote_identifier(schema), mysql_quote_identifier(name));
	MysqlReadable result = try_table(session, psprintf("SELECT * FROM %s LIMIT 0", table), why);

	/* the star leaves out invisible columns; this wants a privilege on the table, not on columns of it */
	if (result == MYSQL_READABLE)
		result = try_table(session, psprintf("SHOW CREATE TABLE %s", table), why);
	return result;
}

char *
mysql_server_grant_select(MysqlSession *session, const char *schema, const char *name)
{
	return psprintf("GRANT SELECT ON %s.%s TO %s;", mysql_quote_identifier(schema), mysql_quote_identifier(name),
					mysql_session_account(session));
}

void
mysql_server_limit_lock_wait(MysqlSession *session, bool limit)
{
	mysql_session_execute(session, limit
						  ? "SET SESSION lock_wait_timeout = 1"
						  : "SET SESSION lock_wait_timeout = DEFAULT");
}

CdcTableDef *
mysql_server_describe_soon(MysqlSession *session, const MysqlServerInfo *info, const char *schema, const char *name)
{
	CdcTableDef *volatile def = NULL;

	mysql_server_limit_lock_wait(session, true);
	PG_TRY();
	{
		def = mysql_server_describe(session, info, schema, name);
	}
	PG_CATCH();
	{
		if (geterrcode() == ERRCODE_LOCK_NOT_AVAILABLE || geterrcode() == CDC_ERRCODE_SOURCE_SETTING)
			mysql_server_limit_lock_wait(session, false);	/* the session goes on */
		PG_RE_THROW();
	}
	PG_END_TRY();
	mysql_server_limit_lock_wait(session, false);
	return def;
}

/* As below, by one query after the other. */
static CdcTableDef *
describe_once(MysqlSession *session, const MysqlServerInfo *info, const char *schema, const char *name)
{
	CdcTableDef *def = palloc0(sizeof(CdcTableDef));
	RawColumn  *columns;
	MysqlReadable readable;
	bool		found;
	char	   *why = NULL;

	def->schema = pstrdup(schema);
	def->name = pstrdup(name);
	def->known = CDC_KNOWS_SIGN | CDC_KNOWS_CHARSET | CDC_KNOWS_NAMES | CDC_KNOWS_LABELS |
		CDC_KNOWS_KEY | CDC_KNOWS_DECLARED | CDC_KNOWS_DEFAULTS;
	found = read_table(session, def);
	readable = mysql_server_table_readable(session, schema, name, &why);
	/* information_schema may leave out what it would have to wait for: a table just being altered */
	if (!found && readable == MYSQL_READABLE)
		found = read_table(session, def);
	if (!found && readable != MYSQL_TABLE_LOCKED)
		return NULL;
	switch (readable)
	{
		case MYSQL_READABLE:
			break;
		case MYSQL_NO_TABLE:
			return NULL;
		case MYSQL_TABLE_LOCKED:
			ereport(ERROR,
					(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
					 errmsg("table \"%s.%s\" of source server \"%s\" is locked",
							schema, name, mysql_session_server_name(session)),
					 errdetail_internal("%s", why ? why : ""),
					 errhint("End the statement or the LOCK TABLES that holds it on the source.")));
			break;
		case MYSQL_NOT_READABLE:
			ereport(ERROR,
					(errcode(CDC_ERRCODE_SOURCE_SETTING),
					 errmsg("source server \"%s\" does not let the user read table \"%s.%s\"",
							mysql_session_server_name(session), schema, name),
					 errdetail_internal("%s", why ? why : ""),
					 errhint("Run on the source: %s", mysql_server_grant_select(session, schema, name))));
	}
	columns = read_columns(session, info->flavor, def);
	if (def->ncolumns == 0)
		return NULL;
	resolve_collations(session, info, columns, def->ncolumns);
	if (info->flavor == MYSQL_FLAVOR_MARIADB)
		find_mariadb_json(session, schema, name, columns, def->ncolumns);

	def->columns = palloc(sizeof(CdcColumnDef) * def->ncolumns);
	for (uint32 i = 0; i < def->ncolumns; i++)
		def->columns[i] = columns[i].def;
	mysql_server_read_indexes(session, info, def);
	mysql_server_read_foreign_keys(session, info, def);
	return def;
}

static bool
same_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

/* Are the columns still those of the definition? */
static bool
is_unchanged(MysqlSession *session, const MysqlServerInfo *info, const CdcTableDef *def)
{
	CdcTableDef now = {.schema = def->schema,.name = def->name,.row_end = def->row_end};
	RawColumn  *columns = read_columns(session, info->flavor, &now);

	if (now.ncolumns != def->ncolumns)
		return false;
	for (uint32 i = 0; i < now.ncolumns; i++)
	{
		const CdcColumnDef *a = &columns[i].def;
		const CdcColumnDef *b = &def->columns[i];

		if (!same_text(a->name, b->name) || !same_text(a->type_text, b->type_text) || a->nullable != b->nullable ||
			!same_text(a->default_text, b->default_text))
			return false;
	}
	return true;
}

CdcTableDef *
mysql_server_describe(MysqlSession *session, const MysqlServerInfo *info, const char *schema, const char *name)
{
	for (int tries = 0; tries < DESCRIBE_TRIES; tries++)
	{
		CdcTableDef *def = describe_once(session, info, schema, name);

		/* columns and indexes are asked for separately, and the table may be altered between the two */
		if (def == NULL || is_unchanged(session, info, def))
			return def;
	}
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("table \"%s.%s\" of source server \"%s\" is altered all the time",
					schema, name, mysql_session_server_name(session)),
			 errdetail("Its definition was another one each time that it was read.")));
}
