/*-------------------------------------------------------------------------
 *
 * table_map.c
 *	  TABLE_MAP events -> table definitions.
 *
 * NOTES
 *	  A statement's rows come after TABLE_MAPs that give each table a number and
 *	  describe its columns: types and type metadata always, the rest (signedness,
 *	  character sets, names, labels, key, visibility) in optional fields as
 *	  binlog_row_metadata says. The fields may come in any order and are
 *	  collected first.
 *
 *	  wire_meta of a column, after normalisation:
 *	  STRING, VARCHAR, VAR_STRING	most bytes of a value
 *	  BLOB family, JSON, GEOMETRY, VECTOR	bytes of the length in front of a value
 *	  NEWDECIMAL	precision << 8 | scale
 *	  BIT			number of bits
 *	  TIME2, DATETIME2, TIMESTAMP2	fraction digits
 *	  ENUM, SET		bytes of a value
 *	  FLOAT, DOUBLE	bytes of a value
 *	  Others have none.
 *
 *	  Which columns count as character columns differs (observed with MySQL 9.7
 *	  and MariaDB 10.11): both count strings, blobs and vectors; MariaDB also
 *	  counts geometry columns; ENUM and SET have fields of their own.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "binlog/table_map.h"

#include <string.h>

#include "binlog/charset.h"
#include "binlog/decimal.h"
#include "binlog/wire.h"
#include "core/cursor.h"
#include "core/utf8.h"

#define COLUMNS_MAX 8192

/* Optional metadata fields. */
enum
{
	FIELD_SIGNEDNESS = 1,
	FIELD_DEFAULT_CHARSET = 2,
	FIELD_COLUMN_CHARSET = 3,
	FIELD_COLUMN_NAME = 4,
	FIELD_SET_STR_VALUE = 5,
	FIELD_ENUM_STR_VALUE = 6,
	FIELD_GEOMETRY_TYPE = 7,
	FIELD_SIMPLE_PRIMARY_KEY = 8,
	FIELD_PRIMARY_KEY_WITH_PREFIX = 9,
	FIELD_ENUM_SET_DEFAULT_CHARSET = 10,
	FIELD_ENUM_SET_COLUMN_CHARSET = 11,
	FIELD_COLUMN_VISIBILITY = 12,
	FIELD_VECTOR_DIMENSION = 13,
	FIELD_MAX = 13
};

typedef struct OptionalFields
{
	const uint8_t *data[FIELD_MAX + 1]; /* NULL when the field is not there */
	size_t len[FIELD_MAX + 1];
} OptionalFields;

static CdcStatus
malformed(CdcError *err, const char *what)
{
	return cdc_fail(err, CDC_MALFORMED, 0, "TABLE_MAP event has an invalid %s", what);
}

static CdcStatus
no_memory(CdcError *err)
{
	return cdc_fail(err, CDC_LIMIT, 0, "table definition does not fit the memory limit");
}

static bool
is_numeric(const CdcColumnDef *column)
{
	switch (column->wire_type)
	{
		case WIRE_TINY:
		case WIRE_SHORT:
		case WIRE_INT24:
		case WIRE_LONG:
		case WIRE_LONGLONG:
		case WIRE_YEAR:
		case WIRE_FLOAT:
		case WIRE_DOUBLE:
		case WIRE_DECIMAL:
		case WIRE_NEWDECIMAL:
			return true;
		default:
			return false;
	}
}

static bool
is_character(const CdcColumnDef *column, bool is_mariadb)
{
	switch (column->wire_type)
	{
		case WIRE_STRING:
		case WIRE_VAR_STRING:
		case WIRE_VARCHAR:
		case WIRE_TINY_BLOB:
		case WIRE_BLOB:
		case WIRE_MEDIUM_BLOB:
		case WIRE_LONG_BLOB:
		case WIRE_VARCHAR_COMPRESSED:
		case WIRE_BLOB_COMPRESSED:
		case WIRE_VECTOR:
			return true;
		case WIRE_GEOMETRY:
			return is_mariadb;
		default:
			return false;
	}
}

static bool
is_enum_or_set(const CdcColumnDef *column)
{
	return column->wire_type == WIRE_ENUM || column->wire_type == WIRE_SET;
}

/* STRING's two bytes: the real type, and a length whose high bits hide in the type byte. */
static bool
read_string_meta(CdcCursor *meta, CdcColumnDef *column)
{
	uint8_t b0 = cdc_cursor_u8(meta);
	uint8_t b1 = cdc_cursor_u8(meta);

	column->wire_type = b0 | 0x30;
	column->wire_meta = (uint16_t) (b1 | ((b0 & 0x30) ^ 0x30) << 4);
	switch (column->wire_type)
	{
		case WIRE_STRING:
			return true;
		case WIRE_ENUM:
			return column->wire_meta == 1 || column->wire_meta == 2;
		case WIRE_SET:
			return column->wire_meta >= 1 && column->wire_meta <= 8;
		default:
			return false;
	}
}

/* Read a column's type metadata; false when it contradicts the type. */
static bool
read_type_meta(CdcCursor *meta, CdcColumnDef *column)
{
	uint8_t b0;
	uint8_t b1;

	switch (column->wire_type)
	{
		case WIRE_FLOAT:
		case WIRE_DOUBLE:
			column->wire_meta = cdc_cursor_u8(meta);
			return true;
		case WIRE_TINY_BLOB:
		case WIRE_BLOB:
		case WIRE_MEDIUM_BLOB:
		case WIRE_LONG_BLOB:
		case WIRE_BLOB_COMPRESSED:
		case WIRE_JSON:
		case WIRE_GEOMETRY:
		case WIRE_VECTOR:
			column->wire_meta = cdc_cursor_u8(meta);
			return column->wire_meta >= 1 && column->wire_meta <= 4;
		case WIRE_TIMESTAMP2:
		case WIRE_DATETIME2:
		case WIRE_TIME2:
			column->wire_meta = cdc_cursor_u8(meta);
			return column->wire_meta <= 6;
		case WIRE_STRING:
		case WIRE_ENUM:
		case WIRE_SET:
			return read_string_meta(meta, column);
		case WIRE_VARCHAR:
		case WIRE_VAR_STRING:
		case WIRE_VARCHAR_COMPRESSED:
			column->wire_meta = cdc_cursor_u16(meta);
			return true;
		case WIRE_NEWDECIMAL:
			b0 = cdc_cursor_u8(meta);
			b1 = cdc_cursor_u8(meta);
			column->wire_meta = (uint16_t) (b0 << 8 | b1);
			return binlog_decimal_is_valid(b0, b1);
		case WIRE_BIT:
			b0 = cdc_cursor_u8(meta);
			b1 = cdc_cursor_u8(meta);
			column->wire_meta = (uint16_t) (b1 * 8 + b0);
			return b0 < 8 && column->wire_meta >= 1 && column->wire_meta <= 64;
		case WIRE_TYPED_ARRAY:

			/*
			 * The hidden column of a multi-valued index: the element's type and
			 * its metadata, three bytes for a string's length.
			 */
			{
				CdcColumnDef element = *column;

				element.wire_type = cdc_cursor_u8(meta);
				if (element.wire_type == WIRE_VARCHAR || element.wire_type == WIRE_VAR_STRING)
				{
					cdc_cursor_bytes(meta, 3);
					return true;
				}
				return element.wire_type != WIRE_TYPED_ARRAY && read_type_meta(meta, &element);
			}
		default:
			return true;
	}
}

/* Logical type of a column, once its collation is known. */
static CdcType
logical_type(const CdcColumnDef *column)
{
	bool binary = column->collation == BINLOG_COLLATION_BINARY;

	switch (column->wire_type)
	{
		case WIRE_TINY:
			return CDC_TYPE_TINYINT;
		case WIRE_SHORT:
			return CDC_TYPE_SMALLINT;
		case WIRE_INT24:
			return CDC_TYPE_MEDIUMINT;
		case WIRE_LONG:
			return CDC_TYPE_INT;
		case WIRE_LONGLONG:
			return CDC_TYPE_BIGINT;
		case WIRE_FLOAT:
			return CDC_TYPE_FLOAT;
		case WIRE_DOUBLE:
			return CDC_TYPE_DOUBLE;
		case WIRE_NEWDECIMAL:
			return CDC_TYPE_DECIMAL;
		case WIRE_BIT:
			return CDC_TYPE_BIT;
		case WIRE_YEAR:
			return CDC_TYPE_YEAR;
		case WIRE_DATE:
		case WIRE_NEWDATE:
			return CDC_TYPE_DATE;
		case WIRE_TIME:
		case WIRE_TIME2:
			return CDC_TYPE_TIME;
		case WIRE_DATETIME:
		case WIRE_DATETIME2:
			return CDC_TYPE_DATETIME;
		case WIRE_TIMESTAMP:
		case WIRE_TIMESTAMP2:
			return CDC_TYPE_TIMESTAMP;
		case WIRE_STRING:
			return binary ? CDC_TYPE_BINARY : CDC_TYPE_CHAR;
		case WIRE_VARCHAR:
		case WIRE_VAR_STRING:
		case WIRE_VARCHAR_COMPRESSED:
			return binary ? CDC_TYPE_VARBINARY : CDC_TYPE_VARCHAR;
		case WIRE_TINY_BLOB:
		case WIRE_BLOB:
		case WIRE_MEDIUM_BLOB:
		case WIRE_LONG_BLOB:
		case WIRE_BLOB_COMPRESSED:
			return binary ? CDC_TYPE_BLOB : CDC_TYPE_TEXT;
		case WIRE_ENUM:
			return CDC_TYPE_ENUM;
		case WIRE_SET:
			return CDC_TYPE_SET;
		case WIRE_JSON:
			return CDC_TYPE_JSON;
		case WIRE_GEOMETRY:
			return CDC_TYPE_GEOMETRY;
		case WIRE_VECTOR:
			return CDC_TYPE_VECTOR;
		default:
			return CDC_TYPE_UNKNOWN;
	}
}

/* Put the normalised metadata where CdcColumnDef tells it by meaning. */
static void
fill_dimensions(CdcColumnDef *column)
{
	switch (column->type)
	{
		case CDC_TYPE_DECIMAL:
			column->precision = (uint8_t) (column->wire_meta >> 8);
			column->scale = (uint8_t) (column->wire_meta & 0xff);
			break;
		case CDC_TYPE_BIT:
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
		case CDC_TYPE_BINARY:
		case CDC_TYPE_VARBINARY:
			column->length = column->wire_meta;
			/* A compressed value has a header byte of its own. */
			if (column->wire_type == WIRE_VARCHAR_COMPRESSED && column->length > 0)
				column->length--;
			break;
		case CDC_TYPE_TIME:
		case CDC_TYPE_DATETIME:
		case CDC_TYPE_TIMESTAMP:
			column->scale = (uint8_t) column->wire_meta;
			break;
		default:
			break;
	}
}

/* One bit per numeric column, most significant first. */
static CdcStatus
read_signedness(CdcTableDef *def, const OptionalFields *fields, CdcError *err)
{
	const uint8_t *bits = fields->data[FIELD_SIGNEDNESS];
	size_t n = 0;

	for (uint32_t i = 0; i < def->ncolumns; i++)
	{
		if (!is_numeric(&def->columns[i]))
			continue;
		if (bits != NULL)
		{
			if (n / 8 >= fields->len[FIELD_SIGNEDNESS])
				return malformed(err, "signedness field");
			def->columns[i].is_unsigned = (bits[n / 8] >> (7 - n % 8) & 1) != 0;
		}
		n++;
	}
	if (bits != NULL || n == 0)
		def->known |= CDC_KNOWS_SIGN;
	return CDC_OK;
}

/*
 * Character sets of either the character columns or the ENUM and SET ones:
 * a default with exceptions, or one for each. *found tells whether there was a
 * field or nothing that would need one.
 */
static CdcStatus
read_collations(CdcTableDef *def, const OptionalFields *fields, bool enums, bool is_mariadb,
                bool *found, CdcError *err)
{
	int with_default = enums ? FIELD_ENUM_SET_DEFAULT_CHARSET : FIELD_DEFAULT_CHARSET;
	int each = enums ? FIELD_ENUM_SET_COLUMN_CHARSET : FIELD_COLUMN_CHARSET;
	int field = fields->data[with_default] != NULL ? with_default : each;
	CdcCursor c;
	uint64_t fallback = 0;
	uint64_t next = UINT64_MAX;
	uint64_t n = 0;

	*found = fields->data[field] != NULL;
	cdc_cursor_init(&c, *found ? (const void *) fields->data[field] : "",
	                *found ? fields->len[field] : 0);
	if (*found && field == with_default)
	{
		fallback = cdc_cursor_lenenc(&c);
		if (cdc_cursor_left(&c) > 0)
			next = cdc_cursor_lenenc(&c);
	}
	for (uint32_t i = 0; i < def->ncolumns; i++)
	{
		CdcColumnDef *column = &def->columns[i];
		uint64_t collation = fallback;

		if (enums ? !is_enum_or_set(column) : !is_character(column, is_mariadb))
			continue;
		if (*found && field == each)
			collation = cdc_cursor_lenenc(&c);
		else if (*found && n == next)
		{
			collation = cdc_cursor_lenenc(&c);
			next = cdc_cursor_left(&c) > 0 ? cdc_cursor_lenenc(&c) : UINT64_MAX;
		}
		if (c.failed || collation > UINT16_MAX)
			return malformed(err, "character set field");
		column->collation = (uint16_t) collation;
		n++;
	}
	*found |= n == 0;
	return CDC_OK;
}

static CdcStatus
read_names(CdcTableDef *def, const OptionalFields *fields, CdcArena *arena, CdcError *err)
{
	CdcCursor c;

	if (fields->data[FIELD_COLUMN_NAME] == NULL)
		return CDC_OK;
	cdc_cursor_init(&c, fields->data[FIELD_COLUMN_NAME], fields->len[FIELD_COLUMN_NAME]);
	for (uint32_t i = 0; i < def->ncolumns; i++)
	{
		uint64_t len = cdc_cursor_lenenc(&c);
		const uint8_t *name = cdc_cursor_bytes(&c, len);

		if (c.failed || !cdc_utf8_is_valid(name, (size_t) len))
			return malformed(err, "column name field");
		def->columns[i].name = cdc_arena_strndup(arena, name, (size_t) len);
		if (def->columns[i].name == NULL)
			return no_memory(err);
	}
	def->known |= CDC_KNOWS_NAMES;
	return CDC_OK;
}

/*
 * Labels of one ENUM or SET column, turned into UTF-8. *usable becomes false
 * when a label cannot be; the column then has none.
 */
static CdcStatus
read_column_labels(CdcColumnDef *column, CdcCursor *c, CdcArena *arena, bool *usable, CdcError *err)
{
	uint64_t count = cdc_cursor_lenenc(c);
	CdcLabel *labels;
	bool converted = true;

	/* Each label takes at least its length byte. */
	if (c->failed || count > cdc_cursor_left(c))
		return malformed(err, "label field");
	labels = cdc_arena_alloc(arena, (size_t) count * sizeof(CdcLabel));
	if (labels == NULL)
		return no_memory(err);
	for (uint64_t i = 0; i < count; i++)
	{
		uint64_t len = cdc_cursor_lenenc(c);
		const uint8_t *data = cdc_cursor_bytes(c, len);
		char *copy;

		if (c->failed || len > UINT32_MAX / 4)
			return malformed(err, "label field");
		copy = cdc_arena_strndup(arena, data, (size_t) len);
		if (copy == NULL)
			return no_memory(err);
		if (binlog_charset_to_utf8(column->collation, (const uint8_t *) copy, (uint32_t) len, arena,
		                           &labels[i].data, &labels[i].len, NULL) != CDC_OK)
			converted = false;
	}
	if (converted)
	{
		column->labels = labels;
		column->nlabels = (uint32_t) count;
	}
	else
		*usable = false;
	return CDC_OK;
}

static CdcStatus
read_labels(CdcTableDef *def, const OptionalFields *fields, CdcArena *arena, bool charset_known,
            CdcError *err)
{
	CdcCursor cursors[2];
	bool usable = charset_known;

	for (int k = 0; k < 2; k++)
	{
		int field = k == 0 ? FIELD_SET_STR_VALUE : FIELD_ENUM_STR_VALUE;

		cdc_cursor_init(&cursors[k],
		                fields->data[field] != NULL ? (const void *) fields->data[field] : "",
		                fields->data[field] != NULL ? fields->len[field] : 0);
	}
	for (uint32_t i = 0; i < def->ncolumns; i++)
	{
		CdcColumnDef *column = &def->columns[i];
		int field = column->wire_type == WIRE_SET ? FIELD_SET_STR_VALUE : FIELD_ENUM_STR_VALUE;
		CdcStatus status;

		if (!is_enum_or_set(column))
			continue;
		if (fields->data[field] == NULL)
		{
			usable = false;
			continue;
		}
		status = read_column_labels(column, &cursors[field == FIELD_ENUM_STR_VALUE], arena, &usable,
		                            err);
		if (status != CDC_OK)
			return status;
	}
	if (usable)
		def->known |= CDC_KNOWS_LABELS;
	return CDC_OK;
}

/* Column numbers of the key, with the length of each part when some are prefixes. */
static CdcStatus
read_key(CdcTableDef *def, const OptionalFields *fields, CdcError *err)
{
	bool prefixes = fields->data[FIELD_PRIMARY_KEY_WITH_PREFIX] != NULL;
	int field = prefixes ? FIELD_PRIMARY_KEY_WITH_PREFIX : FIELD_SIMPLE_PRIMARY_KEY;
	CdcCursor c;

	if (fields->data[field] == NULL)
	{
		/* Under FULL metadata the field is missing only when there is no key. */
		if (def->known & CDC_KNOWS_NAMES)
			def->known |= CDC_KNOWS_KEY;
		return CDC_OK;
	}
	cdc_cursor_init(&c, fields->data[field], fields->len[field]);
	while (cdc_cursor_left(&c) > 0)
	{
		uint64_t number = cdc_cursor_lenenc(&c);
		uint64_t prefix = prefixes ? cdc_cursor_lenenc(&c) : 0;

		if (c.failed || number >= def->ncolumns || prefix > UINT16_MAX ||
		    def->columns[number].key_part != 0)
			return malformed(err, "key field");
		def->columns[number].key_part = (uint16_t) ++def->nkey;
		def->columns[number].key_prefix = (uint16_t) prefix;
	}
	def->known |= CDC_KNOWS_KEY;
	return CDC_OK;
}

static CdcStatus
read_visibility_and_dimensions(CdcTableDef *def, const OptionalFields *fields, CdcError *err)
{
	const uint8_t *bits = fields->data[FIELD_COLUMN_VISIBILITY];
	CdcCursor c;

	if (bits != NULL)
	{
		if (fields->len[FIELD_COLUMN_VISIBILITY] < (def->ncolumns + 7) / 8)
			return malformed(err, "visibility field");
		for (uint32_t i = 0; i < def->ncolumns; i++)
			def->columns[i].visible = (bits[i / 8] >> (7 - i % 8) & 1) != 0;
	}
	if (fields->data[FIELD_VECTOR_DIMENSION] != NULL)
	{
		cdc_cursor_init(&c, fields->data[FIELD_VECTOR_DIMENSION],
		                fields->len[FIELD_VECTOR_DIMENSION]);
		for (uint32_t i = 0; i < def->ncolumns; i++)
		{
			if (def->columns[i].wire_type == WIRE_VECTOR)
				def->columns[i].length = (uint32_t) cdc_cursor_lenenc(&c);
		}
		if (c.failed)
			return malformed(err, "vector dimension field");
	}
	return CDC_OK;
}

/* Take in the optional fields that c has left. */
static CdcStatus
read_optional_fields(CdcTableDef *def, CdcCursor *c, CdcArena *arena, bool is_mariadb,
                     CdcError *err)
{
	OptionalFields fields;
	bool found;
	CdcStatus status;

	memset(&fields, 0, sizeof(fields));
	while (cdc_cursor_left(c) > 0)
	{
		uint8_t field = cdc_cursor_u8(c);
		uint64_t len = cdc_cursor_lenenc(c);
		const uint8_t *data = cdc_cursor_bytes(c, len);

		if (c->failed)
			return malformed(err, "optional field");
		if (field >= 1 && field <= FIELD_MAX)
		{
			fields.data[field] = data;
			fields.len[field] = (size_t) len;
		}
	}
	if ((status = read_signedness(def, &fields, err)) != CDC_OK ||
	    (status = read_collations(def, &fields, false, is_mariadb, &found, err)) != CDC_OK)
		return status;
	if (found)
		def->known |= CDC_KNOWS_CHARSET;
	if ((status = read_collations(def, &fields, true, is_mariadb, &found, err)) != CDC_OK ||
	    (status = read_names(def, &fields, arena, err)) != CDC_OK ||
	    (status = read_labels(def, &fields, arena, found, err)) != CDC_OK ||
	    (status = read_key(def, &fields, err)) != CDC_OK)
		return status;
	for (uint32_t i = 0; i < def->ncolumns; i++)
	{
		CdcColumnDef *column = &def->columns[i];

		column->type = logical_type(column);
		if (column->wire_type == WIRE_VECTOR || column->wire_type == WIRE_GEOMETRY)
			column->collation = 0;
		fill_dimensions(column);
	}
	return read_visibility_and_dimensions(def, &fields, err);
}

/* Parse "content" (everything after id and flags) into table, all memory from its arena. */
CdcStatus
binlog_table_parse(BinlogTable *table, bool is_mariadb, CdcError *err)
{
	CdcTableDef *def = &table->def;
	CdcCursor c;
	CdcCursor meta;
	uint64_t len;
	uint64_t ncolumns;
	const uint8_t *bytes;
	const uint8_t *types;
	const uint8_t *nulls;

	cdc_cursor_init(&c, table->content, table->content_len);
	len = cdc_cursor_u8(&c);
	bytes = cdc_cursor_bytes(&c, len + 1);
	if (c.failed || !cdc_utf8_is_valid(bytes, (size_t) len))
		return malformed(err, "schema name");
	def->schema = cdc_arena_strndup(&table->arena, bytes, (size_t) len);
	len = cdc_cursor_u8(&c);
	bytes = cdc_cursor_bytes(&c, len + 1);
	if (c.failed || !cdc_utf8_is_valid(bytes, (size_t) len))
		return malformed(err, "table name");
	def->name = cdc_arena_strndup(&table->arena, bytes, (size_t) len);
	ncolumns = cdc_cursor_lenenc(&c);
	types = cdc_cursor_bytes(&c, ncolumns);
	if (c.failed || ncolumns > COLUMNS_MAX)
		return malformed(err, "column count");
	def->ncolumns = (uint32_t) ncolumns;
	def->columns = cdc_arena_zalloc(&table->arena, (size_t) ncolumns * sizeof(CdcColumnDef));
	table->shapes = cdc_arena_alloc(&table->arena, (size_t) ncolumns * sizeof(BinlogFieldShape));
	if (def->schema == NULL || def->name == NULL || def->columns == NULL || table->shapes == NULL)
		return no_memory(err);

	len = cdc_cursor_lenenc(&c);
	bytes = cdc_cursor_bytes(&c, len);
	nulls = cdc_cursor_bytes(&c, (ncolumns + 7) / 8);
	if (c.failed)
		return malformed(err, "column metadata");
	cdc_cursor_init(&meta, bytes, (size_t) len);
	table->can_split = true;
	for (uint32_t i = 0; i < ncolumns; i++)
	{
		CdcColumnDef *column = &def->columns[i];

		column->wire_type = types[i];
		column->nullable = (nulls[i / 8] >> (i % 8) & 1) != 0;
		column->visible = true;
		if (!read_type_meta(&meta, column) || meta.failed)
			return malformed(err, "column metadata");
		table->shapes[i] = binlog_field_shape(column->wire_type, column->wire_meta);
		table->can_split &= table->shapes[i].known;
		table->has_old_temporal |= column->wire_type == WIRE_TIME ||
		                           column->wire_type == WIRE_DATETIME ||
		                           column->wire_type == WIRE_TIMESTAMP;
		table->njson += column->wire_type == WIRE_JSON;
	}
	return read_optional_fields(def, &c, &table->arena, is_mariadb, err);
}
