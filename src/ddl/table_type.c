/*-------------------------------------------------------------------------
 *
 * table_type.c
 *	  The type of a column: its many names, its sizes, and how the server
 *	  prints it.
 *
 * NOTES
 *	  MySQL prints no display width of integers but for tinyint(1) and ZEROFILL (8.0.19
 *	  and later); MariaDB prints it always. Seen on MySQL 9.7 and MariaDB 10.11.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>

#include "core/buf.h"
#include "ddl/table_draft.h"

/* Collation ids that a type decides. */
#define COLLATION_BINARY 63
#define COLLATION_UTF8MB4_BIN 46

typedef struct TypeWord
{
	const char *word;
	CdcType		type;
	const char *name;			/* as the server prints it */
} TypeWord;

static const TypeWord type_words[] = {
	{"TINYINT", CDC_TYPE_TINYINT, "tinyint"},
	{"INT1", CDC_TYPE_TINYINT, "tinyint"},
	{"SMALLINT", CDC_TYPE_SMALLINT, "smallint"},
	{"INT2", CDC_TYPE_SMALLINT, "smallint"},
	{"MEDIUMINT", CDC_TYPE_MEDIUMINT, "mediumint"},
	{"MIDDLEINT", CDC_TYPE_MEDIUMINT, "mediumint"},
	{"INT3", CDC_TYPE_MEDIUMINT, "mediumint"},
	{"INT", CDC_TYPE_INT, "int"},
	{"INTEGER", CDC_TYPE_INT, "int"},
	{"INT4", CDC_TYPE_INT, "int"},
	{"BIGINT", CDC_TYPE_BIGINT, "bigint"},
	{"INT8", CDC_TYPE_BIGINT, "bigint"},
	{"FLOAT", CDC_TYPE_FLOAT, "float"},
	{"FLOAT4", CDC_TYPE_FLOAT, "float"},
	{"DOUBLE", CDC_TYPE_DOUBLE, "double"},
	{"FLOAT8", CDC_TYPE_DOUBLE, "double"},
	{"REAL", CDC_TYPE_DOUBLE, "double"},
	{"DECIMAL", CDC_TYPE_DECIMAL, "decimal"},
	{"DEC", CDC_TYPE_DECIMAL, "decimal"},
	{"NUMERIC", CDC_TYPE_DECIMAL, "decimal"},
	{"FIXED", CDC_TYPE_DECIMAL, "decimal"},
	{"BIT", CDC_TYPE_BIT, "bit"},
	{"YEAR", CDC_TYPE_YEAR, "year"},
	{"DATE", CDC_TYPE_DATE, "date"},
	{"TIME", CDC_TYPE_TIME, "time"},
	{"DATETIME", CDC_TYPE_DATETIME, "datetime"},
	{"TIMESTAMP", CDC_TYPE_TIMESTAMP, "timestamp"},
	{"CHAR", CDC_TYPE_CHAR, "char"},
	{"CHARACTER", CDC_TYPE_CHAR, "char"},
	{"NCHAR", CDC_TYPE_CHAR, "char"},
	{"VARCHAR", CDC_TYPE_VARCHAR, "varchar"},
	{"VARCHARACTER", CDC_TYPE_VARCHAR, "varchar"},
	{"NVARCHAR", CDC_TYPE_VARCHAR, "varchar"},
	{"TINYTEXT", CDC_TYPE_TEXT, "tinytext"},
	{"TEXT", CDC_TYPE_TEXT, "text"},
	{"MEDIUMTEXT", CDC_TYPE_TEXT, "mediumtext"},
	{"LONGTEXT", CDC_TYPE_TEXT, "longtext"},
	{"BINARY", CDC_TYPE_BINARY, "binary"},
	{"VARBINARY", CDC_TYPE_VARBINARY, "varbinary"},
	{"TINYBLOB", CDC_TYPE_BLOB, "tinyblob"},
	{"BLOB", CDC_TYPE_BLOB, "blob"},
	{"MEDIUMBLOB", CDC_TYPE_BLOB, "mediumblob"},
	{"LONGBLOB", CDC_TYPE_BLOB, "longblob"},
	{"ENUM", CDC_TYPE_ENUM, "enum"},
	{"SET", CDC_TYPE_SET, "set"},
	{"JSON", CDC_TYPE_JSON, "json"},
	{"GEOMETRY", CDC_TYPE_GEOMETRY, "geometry"},
	{"POINT", CDC_TYPE_GEOMETRY, "point"},
	{"LINESTRING", CDC_TYPE_GEOMETRY, "linestring"},
	{"POLYGON", CDC_TYPE_GEOMETRY, "polygon"},
	{"MULTIPOINT", CDC_TYPE_GEOMETRY, "multipoint"},
	{"MULTILINESTRING", CDC_TYPE_GEOMETRY, "multilinestring"},
	{"MULTIPOLYGON", CDC_TYPE_GEOMETRY, "multipolygon"},
	{"GEOMETRYCOLLECTION", CDC_TYPE_GEOMETRY, "geometrycollection"},
	{"GEOMCOLLECTION", CDC_TYPE_GEOMETRY, "geometrycollection"},
	{"VECTOR", CDC_TYPE_VECTOR, "vector"},
	{"UUID", CDC_TYPE_UUID, "uuid"},
	{"INET4", CDC_TYPE_INET4, "inet4"},
	{"INET6", CDC_TYPE_INET6, "inet6"},
};

/* MariaDB under sql_mode = ORACLE. */
static const TypeWord oracle_words[] = {
	{"VARCHAR2", CDC_TYPE_VARCHAR, "varchar"},
	{"CLOB", CDC_TYPE_TEXT, "longtext"},
	{"BLOB", CDC_TYPE_BLOB, "longblob"},
	{"RAW", CDC_TYPE_VARBINARY, "varbinary"},
	{"NUMBER", CDC_TYPE_DECIMAL, "decimal"},
	{"DATE", CDC_TYPE_DATETIME, "datetime"},
};

/* Bytes of a character at most, where it is more than one. */
static const struct
{
	const char *charset;
	uint32_t	bytes;
} wide_charsets[] = {
	{"utf8mb4", 4}, {"utf16", 4}, {"utf16le", 4}, {"utf32", 4}, {"gb18030", 4},
	{"utf8mb3", 3}, {"utf8", 3}, {"ujis", 3}, {"eucjpms", 3},
	{"ucs2", 2}, {"gbk", 2}, {"big5", 2}, {"sjis", 2}, {"cp932", 2}, {"euckr", 2}, {"gb2312", 2},
};

static const TypeWord *
find_word(const DdlDraft *d)
{
	if (d->dialect == DDL_DIALECT_MARIADB && (d->sql_mode & DDL_MODE_MARIADB_ORACLE) != 0)
	{
		for (size_t i = 0; i < sizeof(oracle_words) / sizeof(oracle_words[0]); i++)
		{
			if (ddl_at_word(&d->p, oracle_words[i].word))
				return &oracle_words[i];
		}
	}
	for (size_t i = 0; i < sizeof(type_words) / sizeof(type_words[0]); i++)
	{
		if (ddl_at_word(&d->p, type_words[i].word))
			return &type_words[i];
	}
	return NULL;
}

/* What stands in the type's parentheses. */
typedef struct Sizes
{
	bool		has_first;
	bool		has_second;
	uint32_t	first;
	uint32_t	second;
} Sizes;

static void
read_sizes(DdlDraft *d, Sizes *sizes)
{
	DdlParser  *p = &d->p;

	memset(sizes, 0, sizeof(*sizes));
	if (!ddl_accept_sign(p, '('))
		return;
	sizes->first = ddl_read_size(d, &sizes->has_first);
	if (ddl_accept_sign(p, ','))
		sizes->second = ddl_read_size(d, &sizes->has_second);
	if (!ddl_accept_sign(p, ')'))
	{
		d->certain = false;
		while (!ddl_at_end(p) && !ddl_accept_sign(p, ')'))
			ddl_advance(p);
	}
}

/* 'a', _utf8mb4'b', x'63': in parentheses. */
static void
read_labels(DdlDraft *d, CdcColumnDef *column)
{
	DdlParser  *p = &d->p;
	CdcLabel   *labels = NULL;
	uint32_t	allocated = 0;

	if (!ddl_accept_sign(p, '('))
	{
		d->certain = false;
		return;
	}
	do
	{
		size_t		len;
		const char *text = ddl_read_text(d, &len);

		if (text == NULL)
		{
			d->certain = false;
			break;
		}
		while (len > 0 && text[len - 1] == ' ')
			len--;				/* neither server keeps blanks at a label's end */
		if (!ddl_grow(d, (void **) &labels, column->nlabels, &allocated, sizeof(CdcLabel)))
			return;
		labels[column->nlabels].data = text;
		labels[column->nlabels++].len = (uint32_t) len;
	} while (ddl_accept_sign(p, ','));
	column->labels = labels;
	while (!ddl_at_end(p) && !ddl_accept_sign(p, ')'))
	{
		d->certain = false;
		ddl_advance(p);
	}
}

/* Words behind the first one of a type: NATIONAL CHARACTER VARYING, LONG VARBINARY, DOUBLE PRECISION. */
static const TypeWord *
read_words(DdlDraft *d, DdlColumn *column)
{
	static const TypeWord varchar = {"VARCHAR", CDC_TYPE_VARCHAR, "varchar"};
	static const TypeWord mediumtext = {"MEDIUMTEXT", CDC_TYPE_TEXT, "mediumtext"};
	static const TypeWord mediumblob = {"MEDIUMBLOB", CDC_TYPE_BLOB, "mediumblob"};
	DdlParser  *p = &d->p;
	const TypeWord *word;
	bool		national = ddl_at_word(p, "NCHAR") || ddl_at_word(p, "NVARCHAR");

	if (ddl_accept_word(p, "LONG"))
	{
		if (ddl_accept_word(p, "VARBINARY"))
			return &mediumblob;
		if (ddl_accept_word(p, "CHAR") || ddl_accept_word(p, "CHARACTER"))
		{
			if (!ddl_at_word(p, "SET"))
				(void) ddl_accept_word(p, "VARYING");
			else
			{
				ddl_advance(p);	/* LONG CHARACTER SET x: the type has no second word */
				ddl_set_charset(d, column, ddl_read_name(d));
			}
		}
		else if (!ddl_accept_word(p, "VARCHAR"))
			(void) ddl_accept_word(p, "VARCHARACTER");
		return &mediumtext;
	}
	if (ddl_accept_word(p, "NATIONAL"))
		national = true;
	word = find_word(d);
	if (word == NULL)
		return NULL;
	ddl_advance(p);
	if (word->type == CDC_TYPE_CHAR &&
		(ddl_accept_word(p, "VARYING") || (national && (ddl_accept_word(p, "VARCHAR") || ddl_accept_word(p, "VARCHARACTER")))))
		word = &varchar;
	if (word->type == CDC_TYPE_DOUBLE)
		(void) ddl_accept_word(p, "PRECISION");
	if (national)
		column->names_charset = true;	/* utf8mb3, whatever the table's */
	return word;
}

static void
set_integer(CdcColumnDef *def, const Sizes *sizes, DdlColumn *column)
{
	column->width = sizes->has_first ? sizes->first : 0;
	def->is_boolean = def->type == CDC_TYPE_TINYINT && sizes->has_first && sizes->first == 1;
}

/* Name of the smallest of the four sizes that holds so many bytes. */
static const char *
size_name(bool is_text, uint64_t bytes)
{
	if (bytes < 256)
		return is_text ? "tinytext" : "tinyblob";
	if (bytes < 65536)
		return is_text ? "text" : "blob";
	if (bytes < 16777216)
		return is_text ? "mediumtext" : "mediumblob";
	return is_text ? "longtext" : "longblob";
}

/*
 * Read a type. False when there is none that is known. Sizes and names are complete
 * only after ddl_finish_type, because SIGNED, ZEROFILL and character sets follow.
 */
bool
ddl_read_type(DdlDraft *d, DdlColumn *column)
{
	DdlParser  *p = &d->p;
	CdcColumnDef *def = &column->def;
	const TypeWord *word;
	Sizes		sizes;

	if (ddl_at_word(p, "BOOL") || ddl_at_word(p, "BOOLEAN"))
	{
		ddl_advance(p);
		def->type = CDC_TYPE_TINYINT;
		def->type_text = "tinyint";
		def->is_boolean = true;
		column->width = 1;
		return true;
	}
	if (ddl_accept_word(p, "SERIAL"))
	{
		def->type = CDC_TYPE_BIGINT;
		def->type_text = "bigint";
		def->is_unsigned = true;
		def->nullable = false;
		def->auto_increment = true;
		column->is_unique = true;
		return true;
	}
	word = read_words(d, column);
	if (word == NULL)
		return false;
	def->type = word->type;
	def->type_text = word->name;
	if (strcmp(word->word, "REAL") == 0 && (d->sql_mode & DDL_MODE_REAL_AS_FLOAT) != 0)
	{
		def->type = CDC_TYPE_FLOAT;
		def->type_text = "float";
	}
	if (def->type == CDC_TYPE_ENUM || def->type == CDC_TYPE_SET)
	{
		read_labels(d, def);
		return true;
	}
	read_sizes(d, &sizes);
	switch (def->type)
	{
		case CDC_TYPE_TINYINT:
		case CDC_TYPE_SMALLINT:
		case CDC_TYPE_MEDIUMINT:
		case CDC_TYPE_INT:
		case CDC_TYPE_BIGINT:
			set_integer(def, &sizes, column);
			break;
		case CDC_TYPE_FLOAT:
			if (sizes.has_first && !sizes.has_second && sizes.first > 24)
			{
				def->type = CDC_TYPE_DOUBLE;
				def->type_text = "double";
			}
			/* FALLTHROUGH */
		case CDC_TYPE_DOUBLE:
			if (sizes.has_second)
			{
				column->width = sizes.first;
				column->decimals = sizes.second;
			}
			break;
		case CDC_TYPE_DECIMAL:
			if (strcmp(word->word, "NUMBER") == 0 && !sizes.has_first)
			{
				def->type = CDC_TYPE_DOUBLE;
				def->type_text = "double";
				break;
			}
			def->precision = (uint8_t) (sizes.first == 0 && sizes.second == 0 ? 10 : sizes.first > 65 ? 65 : sizes.first);
			def->scale = (uint8_t) (sizes.second > 38 ? 38 : sizes.second);
			break;
		case CDC_TYPE_BIT:
			def->length = sizes.has_first && sizes.first > 0 ? sizes.first : 1;
			break;
		case CDC_TYPE_YEAR:
			def->is_unsigned = true;
			column->width = sizes.has_first ? sizes.first : 4;
			break;
		case CDC_TYPE_TIME:
		case CDC_TYPE_DATETIME:
		case CDC_TYPE_TIMESTAMP:
			def->scale = (uint8_t) (sizes.first > 6 ? 6 : sizes.first);
			break;
		case CDC_TYPE_CHAR:
		case CDC_TYPE_BINARY:
			def->length = sizes.has_first ? sizes.first : 1;
			break;
		case CDC_TYPE_VARCHAR:
		case CDC_TYPE_VARBINARY:
		case CDC_TYPE_TEXT:
		case CDC_TYPE_BLOB:
			def->length = sizes.first;
			break;
		case CDC_TYPE_VECTOR:
			def->length = sizes.has_first ? sizes.first : d->dialect == DDL_DIALECT_MYSQL ? 2048 : 1;
			break;
		default:
			break;
	}
	return true;
}

/* CHARACTER SET: bytes as text are another type. NULL: it is not told, the table's counts. */
void
ddl_set_charset(DdlDraft *d, DdlColumn *column, const char *charset)
{
	CdcColumnDef *def = &column->def;

	if (charset == NULL)
		return;
	column->names_charset = true;
	column->charset = charset;
	if (!ddl_name_equals(charset, "binary"))
		return;
	switch (def->type)
	{
		case CDC_TYPE_CHAR:
			def->type = CDC_TYPE_BINARY;
			def->type_text = "binary";
			break;
		case CDC_TYPE_VARCHAR:
			def->type = CDC_TYPE_VARBINARY;
			def->type_text = "varbinary";
			break;
		case CDC_TYPE_TEXT:
			def->type = CDC_TYPE_BLOB;
			def->type_text = strcmp(def->type_text, "text") == 0 ? "blob"
				: strcmp(def->type_text, "tinytext") == 0 ? "tinyblob"
				: strcmp(def->type_text, "mediumtext") == 0 ? "mediumblob" : "longblob";
			break;
		case CDC_TYPE_ENUM:
		case CDC_TYPE_SET:
			def->collation = d->dialect == DDL_DIALECT_MARIADB ? COLLATION_BINARY : 0;	/* MySQL shows none */
			break;
		default:
			break;
	}
}

/* As the servers print labels. */
static void
add_label(CdcBuf *out, const CdcLabel *label)
{
	cdc_buf_add_char(out, '\'');
	for (uint32_t i = 0; i < label->len; i++)
	{
		switch (label->data[i])
		{
			case '\0':
				cdc_buf_add_str(out, "\\0");
				break;
			case '\n':
				cdc_buf_add_str(out, "\\n");
				break;
			case '\r':
				cdc_buf_add_str(out, "\\r");
				break;
			case '\\':
				cdc_buf_add_str(out, "\\\\");
				break;
			case '\'':
				cdc_buf_add_str(out, "''");
				break;
			default:
				cdc_buf_add_char(out, label->data[i]);
				break;
		}
	}
	cdc_buf_add_char(out, '\'');
}

/* Digits that an integer without a width of its own is shown with. */
static uint32_t
default_width(const CdcColumnDef *def)
{
	switch (def->type)
	{
		case CDC_TYPE_TINYINT:
			return def->is_unsigned ? 3 : 4;
		case CDC_TYPE_SMALLINT:
			return def->is_unsigned ? 5 : 6;
		case CDC_TYPE_MEDIUMINT:
			return def->is_unsigned ? 8 : 9;
		case CDC_TYPE_INT:
			return def->is_unsigned ? 10 : 11;
		default:
			return 20;
	}
}

static void
print_integer(DdlDraft *d, DdlColumn *column, CdcBuf *out)
{
	uint32_t	width = column->width > 0 ? column->width : default_width(&column->def);

	if (d->dialect != DDL_DIALECT_MYSQL || column->zerofill ||
		(column->def.is_boolean && !column->def.is_unsigned))
		cdc_buf_printf(out, "(%u)", width);
}

static void
print_size(DdlDraft *d, DdlColumn *column, CdcBuf *out)
{
	const CdcColumnDef *def = &column->def;

	switch (def->type)
	{
		case CDC_TYPE_TINYINT:
		case CDC_TYPE_SMALLINT:
		case CDC_TYPE_MEDIUMINT:
		case CDC_TYPE_INT:
		case CDC_TYPE_BIGINT:
			print_integer(d, column, out);
			break;
		case CDC_TYPE_FLOAT:
		case CDC_TYPE_DOUBLE:
			if (column->width > 0)
				cdc_buf_printf(out, "(%u,%u)", column->width, column->decimals);
			break;
		case CDC_TYPE_DECIMAL:
			cdc_buf_printf(out, "(%u,%u)", def->precision, def->scale);
			break;
		case CDC_TYPE_YEAR:
			if (d->dialect == DDL_DIALECT_MARIADB)
				cdc_buf_printf(out, "(%u)", column->width == 2 ? 2 : 4);
			break;
		case CDC_TYPE_TIME:
		case CDC_TYPE_DATETIME:
		case CDC_TYPE_TIMESTAMP:
			if (def->scale > 0)
				cdc_buf_printf(out, "(%u)", def->scale);
			break;
		case CDC_TYPE_BIT:
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
		case CDC_TYPE_BINARY:
		case CDC_TYPE_VARBINARY:
		case CDC_TYPE_VECTOR:
			cdc_buf_printf(out, "(%u)", def->length);
			break;
		case CDC_TYPE_ENUM:
		case CDC_TYPE_SET:
			cdc_buf_add_char(out, '(');
			for (uint32_t i = 0; i < def->nlabels; i++)
			{
				if (i > 0)
					cdc_buf_add_char(out, ',');
				add_label(out, &def->labels[i]);
			}
			cdc_buf_add_char(out, ')');
			break;
		default:
			break;
	}
}

/* Names that differ between the servers. */
static const char *
printed_name(const DdlDraft *d, const CdcColumnDef *def)
{
	if (def->type == CDC_TYPE_JSON && d->dialect == DDL_DIALECT_MARIADB)
		return "longtext";
	if (def->type == CDC_TYPE_GEOMETRY && d->dialect == DDL_DIALECT_MYSQL &&
		strcmp(def->type_text, "geometrycollection") == 0)
		return "geomcollection";
	return def->type_text;
}

/* Does the type count in some bytes that a number behind it asked for? TEXT(300), BLOB(70000). */
static void
choose_size(DdlColumn *column, const char *charset)
{
	CdcColumnDef *def = &column->def;
	uint64_t	bytes = def->length;

	if (def->type == CDC_TYPE_TEXT && bytes > 0)
	{
		uint32_t	unit = charset != NULL ? 1 : 4;	/* most tables are utf8mb4 */

		for (size_t i = 0; charset != NULL && i < sizeof(wide_charsets) / sizeof(wide_charsets[0]); i++)
		{
			if (ddl_name_equals(charset, wide_charsets[i].charset))
				unit = wide_charsets[i].bytes;
		}
		bytes *= unit;
	}
	if (bytes > 0 && (strcmp(def->type_text, "text") == 0 || strcmp(def->type_text, "blob") == 0))
		def->type_text = size_name(def->type == CDC_TYPE_TEXT, bytes);
	def->length = 0;
}

/*
 * All that belongs to the type has been read: names of sizes, collation, and the text
 * of the type.
 */
void
ddl_finish_type(DdlDraft *d, DdlColumn *column)
{
	CdcColumnDef *def = &column->def;
	CdcAllocator allocator = *d->p.arena->allocator;
	CdcBuf		out;

	if (def->type == CDC_TYPE_TEXT || def->type == CDC_TYPE_BLOB)
		choose_size(column, column->charset);
	if (cdc_type_is_binary(def->type))
		def->collation = COLLATION_BINARY;
	else if (def->type == CDC_TYPE_JSON && d->dialect == DDL_DIALECT_MARIADB)
		def->collation = COLLATION_UTF8MB4_BIN;
	if (column->zerofill)
		def->is_unsigned = true;

	cdc_buf_init(&out, &allocator, 0);
	cdc_buf_add_str(&out, printed_name(d, def));
	print_size(d, column, &out);
	if (def->is_unsigned && def->type != CDC_TYPE_YEAR)
		cdc_buf_add_str(&out, " unsigned");
	if (column->zerofill)
		cdc_buf_add_str(&out, " zerofill");
	if (column->compressed)
		cdc_buf_add_str(&out, " /*M!100301 COMPRESSED*/");
	def->type_text = out.status == CDC_OK ? cdc_arena_strndup(d->p.arena, out.data, out.len) : NULL;
	if (def->type_text == NULL)
		d->p.nomem = true;
	cdc_buf_free(&out);
	def->is_boolean = def->is_boolean && !def->is_unsigned;
}

/* The character set of a column that was complete turns out to be binary. */
void
ddl_become_binary(DdlDraft *d, DdlColumn *column)
{
	CdcType		type = column->def.type;

	ddl_set_charset(d, column, "binary");
	if (column->def.type == type)
		return;
	ddl_finish_type(d, column);
	if (column->value.kind != DDL_VALUE_NONE)
		ddl_set_default(d, &column->def, &column->value);
}
