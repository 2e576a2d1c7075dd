/*-------------------------------------------------------------------------
 *
 * schema_type_map.c
 *	  The one table of types: what a source type becomes in PostgreSQL, and
 *	  into which target types its values can go.
 *
 * NOTES
 *	  Two tables. type_map says which type a target gets that we make;
 *	  target_rules says, for a target that may have been made by somebody
 *	  else, which converter (schema_datum.c) brings a cell into it. The first
 *	  is a subset of the second.
 *
 *	  A numeric or temporal target that cannot hold every value of the source's
 *	  type is refused when the table is opened, not at the first value that
 *	  does not fit: there is always a wider type to choose. Where being
 *	  narrower is the very purpose of the target's type (boolean for tinyint,
 *	  time for a span, varchar(n)), it is taken, and a value that does not fit
 *	  throws.
 *
 *	  Types that stand in neither table are served through their input
 *	  function from the value's text form, but only when the source's type is a
 *	  text and the function is immutable (its result must not depend on
 *	  settings such as DateStyle), or the target is an enum.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "binlog/charset.h"
#include "schema/schema_private.h"

/* ------------------------------------------------------------------ the map */

typedef enum TypeSuffix
{
	SUFFIX_NONE,
	SUFFIX_LENGTH,  /* (length) */
	SUFFIX_DECIMAL, /* (precision,scale) */
	SUFFIX_FRACTION /* (fraction digits) */
} TypeSuffix;

typedef struct TypeMapEntry
{
	CdcType type;
	const char *sql;
	const char *sql_unsigned; /* NULL: the same */
	TypeSuffix suffix;
} TypeMapEntry;

/* docs/types.md shows this table to users. Special cases: schema_type_sql. */
static const TypeMapEntry type_map[] = {
    {CDC_TYPE_TINYINT, "smallint", NULL, SUFFIX_NONE},
    {CDC_TYPE_SMALLINT, "smallint", "integer", SUFFIX_NONE},
    {CDC_TYPE_MEDIUMINT, "integer", NULL, SUFFIX_NONE},
    {CDC_TYPE_INT, "integer", "bigint", SUFFIX_NONE},
    {CDC_TYPE_BIGINT, "bigint", "numeric(20)", SUFFIX_NONE},
    {CDC_TYPE_FLOAT, "real", NULL, SUFFIX_NONE},
    {CDC_TYPE_DOUBLE, "double precision", NULL, SUFFIX_NONE},
    {CDC_TYPE_DECIMAL, "numeric", NULL, SUFFIX_DECIMAL},
    {CDC_TYPE_BIT, "bit", NULL, SUFFIX_LENGTH},
    {CDC_TYPE_YEAR, "smallint", NULL, SUFFIX_NONE},
    {CDC_TYPE_DATE, "date", NULL, SUFFIX_NONE},
    {CDC_TYPE_TIME, "interval", NULL, SUFFIX_FRACTION},
    {CDC_TYPE_DATETIME, "timestamp", NULL, SUFFIX_FRACTION},
    {CDC_TYPE_TIMESTAMP, "timestamptz", NULL, SUFFIX_FRACTION},
    {CDC_TYPE_CHAR, "varchar", NULL, SUFFIX_LENGTH},
    {CDC_TYPE_VARCHAR, "varchar", NULL, SUFFIX_LENGTH},
    {CDC_TYPE_TEXT, "text", NULL, SUFFIX_NONE},
    {CDC_TYPE_BINARY, "bytea", NULL, SUFFIX_NONE},
    {CDC_TYPE_VARBINARY, "bytea", NULL, SUFFIX_NONE},
    {CDC_TYPE_BLOB, "bytea", NULL, SUFFIX_NONE},
    {CDC_TYPE_ENUM, "text", NULL, SUFFIX_NONE},
    {CDC_TYPE_SET, "text", NULL, SUFFIX_NONE},
    {CDC_TYPE_JSON, "jsonb", NULL, SUFFIX_NONE},
    {CDC_TYPE_GEOMETRY, "bytea", NULL, SUFFIX_NONE},
    {CDC_TYPE_VECTOR, "real[]", NULL, SUFFIX_NONE},
    {CDC_TYPE_UUID, "uuid", NULL, SUFFIX_NONE},
    {CDC_TYPE_INET4, "inet", NULL, SUFFIX_NONE},
    {CDC_TYPE_INET6, "inet", NULL, SUFFIX_NONE},
};

/* PostgreSQL's longest varchar(n), and pgvector's widest vector. */
#define MAX_VARCHAR_LENGTH 10485760
#define MAX_VECTOR_DIMENSIONS 16000

static const TypeMapEntry *
map_entry(CdcType type)
{
	for (size_t i = 0; i < lengthof(type_map); i++)
	{
		if (type_map[i].type == type)
			return &type_map[i];
	}
	return NULL;
}

/*
 * Say with which PostgreSQL type a target column is made. See type_map.h.
 */
char *
schema_type_sql(const CdcColumnDef *column, const SchemaTypeOptions *options, char **why)
{
	const TypeMapEntry *entry = map_entry(column->type);
	const char *sql;
	Oid type = InvalidOid;

	*why = NULL;
	if (entry == NULL)
	{
		*why = psprintf("type %s is not known", schema_source_type(column));
		return NULL;
	}

	switch (column->type)
	{
		case CDC_TYPE_TINYINT:
			if (column->is_boolean && options->tinyint1_as_boolean)
				return pstrdup("boolean");
			break;
		case CDC_TYPE_BIT:
			if (column->length == 1)
				return pstrdup("boolean");
			break;
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
		case CDC_TYPE_TEXT:
		case CDC_TYPE_ENUM:
		case CDC_TYPE_SET:
			/* 0: a statement told the column, and no event its character set yet */
			if (column->collation != 0 && !binlog_charset_is_supported(column->collation))
			{
				const char *name = binlog_charset_name(column->collation);

				*why = name != NULL
				           ? psprintf("character set %s is not supported", name)
				           : psprintf("the character set of collation number %u is not known",
				                      column->collation);
				return NULL;
			}
			/* varchar(0) is no type here. */
			if (entry->suffix == SUFFIX_LENGTH &&
			    (column->length == 0 || column->length > MAX_VARCHAR_LENGTH))
				return pstrdup("text");
			break;
		case CDC_TYPE_GEOMETRY:
			type = schema_extension_type("postgis", "geometry");
			break;
		case CDC_TYPE_VECTOR:
			if (column->length > 0 && column->length <= MAX_VECTOR_DIMENSIONS)
				type = schema_extension_type("vector", "vector");
			break;
		default:
			break;
	}

	if (OidIsValid(type))
	{
		char *name = format_type_extended(type, -1, FORMAT_TYPE_FORCE_QUALIFY);

		return column->type == CDC_TYPE_VECTOR ? psprintf("%s(%u)", name, column->length) : name;
	}

	sql = column->is_unsigned && entry->sql_unsigned != NULL ? entry->sql_unsigned : entry->sql;
	switch (entry->suffix)
	{
		case SUFFIX_LENGTH:
			return psprintf("%s(%u)", sql, column->length);
		case SUFFIX_DECIMAL:
			return psprintf("%s(%u,%u)", sql, column->precision, column->scale);
		case SUFFIX_FRACTION:
			return psprintf("%s(%u)", sql, column->scale);
		case SUFFIX_NONE:
			break;
	}
	return pstrdup(sql);
}

const char *
schema_source_type(const CdcColumnDef *def)
{
	if (def->type_text != NULL)
		return schema_server_string(def->type_text);
	return psprintf("%s%s", cdc_type_name(def->type), def->is_unsigned ? " unsigned" : "");
}

/*
 * Find a type by the extension that owns it, whichever schema that put it in:
 * the name alone could be anybody's.
 */
Oid
schema_extension_type(const char *extension, const char *type_name)
{
	Oid extension_oid = get_extension_oid(extension, true);
	Oid result = InvalidOid;
	CatCList *list;

	if (!OidIsValid(extension_oid))
		return InvalidOid;

	list = SearchSysCacheList1(TYPENAMENSP, CStringGetDatum(type_name));
	for (int i = 0; i < list->n_members && !OidIsValid(result); i++)
	{
		Form_pg_type form = (Form_pg_type) GETSTRUCT(&list->members[i]->tuple);

		if (getExtensionOfObject(TypeRelationId, form->oid) == extension_oid)
			result = form->oid;
	}
	ReleaseCatCacheList(list);
	return result;
}

/* --------------------------------------------------------------- the targets */

#define T(name) (UINT64CONST(1) << CDC_TYPE_##name)
#define T_INTEGERS (T(TINYINT) | T(SMALLINT) | T(MEDIUMINT) | T(INT) | T(BIGINT) | T(YEAR))
#define T_STRINGS (T(CHAR) | T(VARCHAR) | T(TEXT))
#define T_LABELS (T(ENUM) | T(SET))
#define T_NETWORK (T(INET4) | T(INET6))
#define T_TEXTUAL (T_STRINGS | T_LABELS | T_NETWORK | T(JSON) | T(UUID))
#define T_BINARY (T(BINARY) | T(VARBINARY) | T(BLOB))
#define T_ALL (~UINT64CONST(0))

/* Can every value of the source's type go into the target's type with that modifier? */
typedef bool (*SchemaFits)(const CdcColumnDef *def, Oid typid, int32 typmod);

typedef struct TargetRule
{
	uint64 sources; /* T() bits */
	Oid target;
	SchemaConvert convert;
	SchemaFits fits; /* NULL: always */
} TargetRule;

/* Decimal digits that the integers, decimals and bits of a column need before the point. */
static int
whole_digits(const CdcColumnDef *def)
{
	switch (def->type)
	{
		case CDC_TYPE_TINYINT:
			return 3;
		case CDC_TYPE_YEAR:
			return 4;
		case CDC_TYPE_SMALLINT:
			return 5;
		case CDC_TYPE_MEDIUMINT:
			return def->is_unsigned ? 8 : 7;
		case CDC_TYPE_INT:
			return 10;
		case CDC_TYPE_BIGINT:
			return def->is_unsigned ? 20 : 19;
		case CDC_TYPE_DECIMAL:
			return def->precision - def->scale;
		default:
			return 1000;
	}
}

static bool
fits_integer(const CdcColumnDef *def, Oid typid, int32 typmod)
{
	int bits = typid == INT2OID ? 15 : typid == INT4OID ? 31 : 63;

	switch (def->type)
	{
		case CDC_TYPE_TINYINT:
		case CDC_TYPE_YEAR:
			return true;
		case CDC_TYPE_SMALLINT:
			return bits >= (def->is_unsigned ? 16 : 15);
		case CDC_TYPE_MEDIUMINT:
			return bits >= 24;
		case CDC_TYPE_INT:
			return bits >= (def->is_unsigned ? 32 : 31);
		case CDC_TYPE_BIGINT:
			return bits >= (def->is_unsigned ? 64 : 63);
		case CDC_TYPE_BIT:
			return def->length <= (uint32) bits;
		case CDC_TYPE_DECIMAL:
			return def->scale == 0 && def->precision <= (bits == 15 ? 4 : bits == 31 ? 9 : 18);
		default:
			return false;
	}
}

/* The modifier of numeric(p,s) is ((p << 16) | s) + VARHDRSZ; s has 11 bits and a sign since PostgreSQL 15. */
static bool
fits_numeric(const CdcColumnDef *def, Oid typid, int32 typmod)
{
	int precision, scale, need_scale;

	if (typmod < (int32) VARHDRSZ)
		return true;
	precision = ((typmod - VARHDRSZ) >> 16) & 0xffff;
	scale = (((typmod - VARHDRSZ) & 0x7ff) ^ 1024) - 1024;
	need_scale = def->type == CDC_TYPE_DECIMAL ? def->scale : 0;
	return scale >= need_scale && precision - scale >= whole_digits(def);
}

/* A number with a point somewhere: only a numeric without modifier never rounds it. */
static bool
fits_plain_numeric(const CdcColumnDef *def, Oid typid, int32 typmod)
{
	return typmod < 0;
}

static bool
fits_double(const CdcColumnDef *def, Oid typid, int32 typmod)
{
	return def->type != CDC_TYPE_BIGINT;
}

static bool
fits_one_bit(const CdcColumnDef *def, Oid typid, int32 typmod)
{
	return def->length == 1;
}

static bool
fits_bits(const CdcColumnDef *def, Oid typid, int32 typmod)
{
	if (typid == BITOID)
		return def->length == (typmod > 0 ? (uint32) typmod : 1);
	return typmod < 0 || def->length <= (uint32) typmod;
}

static bool
fits_fraction(const CdcColumnDef *def, Oid typid, int32 typmod)
{
	return typmod < 0 || typmod >= def->scale;
}

static bool
fits_interval(const CdcColumnDef *def, Oid typid, int32 typmod)
{
	int precision;

	if (typmod < 0)
		return true;
	precision = INTERVAL_PRECISION(typmod);
	return INTERVAL_RANGE(typmod) == INTERVAL_FULL_RANGE &&
	       (precision == INTERVAL_FULL_PRECISION || precision >= def->scale);
}

static bool
fits_uuid_bytes(const CdcColumnDef *def, Oid typid, int32 typmod)
{
	return def->length == 16;
}

static bool
fits_uuid_text(const CdcColumnDef *def, Oid typid, int32 typmod)
{
	return def->type == CDC_TYPE_UUID || def->length >= 32;
}

/* char(n) drops trailing blanks: only for sources that have none. */
static bool
fits_blank_padded(const CdcColumnDef *def, Oid typid, int32 typmod)
{
	return typmod < 0 || def->type != CDC_TYPE_CHAR || def->length + VARHDRSZ <= (uint32) typmod;
}

static const TargetRule target_rules[] = {
    {T_INTEGERS | T(BIT) | T(DECIMAL), INT2OID, schema_to_int2, fits_integer},
    {T_INTEGERS | T(BIT) | T(DECIMAL), INT4OID, schema_to_int4, fits_integer},
    {T_INTEGERS | T(BIT) | T(DECIMAL), INT8OID, schema_to_int8, fits_integer},
    {T_INTEGERS | T(DECIMAL), NUMERICOID, schema_to_numeric, fits_numeric},
    {T(FLOAT) | T(DOUBLE), NUMERICOID, schema_to_numeric, fits_plain_numeric},
    {T(FLOAT), FLOAT4OID, schema_to_float4, NULL},
    {T(FLOAT) | T(DOUBLE), FLOAT8OID, schema_to_float8, NULL},
    {T_INTEGERS, FLOAT8OID, schema_to_float8, fits_double},
    {T(TINYINT), BOOLOID, schema_to_bool, NULL},
    {T(BIT), BOOLOID, schema_to_bool, fits_one_bit},
    {T(BIT), BITOID, schema_to_bits, fits_bits},
    {T(BIT), VARBITOID, schema_to_bits, fits_bits},
    {T(DATE), DATEOID, schema_to_date, NULL},
    {T(DATE), TIMESTAMPOID, schema_to_timestamp, NULL},
    {T(TIME), INTERVALOID, schema_to_interval, fits_interval},
    {T(TIME), TIMEOID, schema_to_time, fits_fraction},
    {T(DATETIME) | T(TIMESTAMP), TIMESTAMPOID, schema_to_timestamp, fits_fraction},
    {T(DATETIME) | T(TIMESTAMP), TIMESTAMPTZOID, schema_to_timestamp, fits_fraction},
    {T_ALL, TEXTOID, schema_to_text, NULL},
    {T_ALL, VARCHAROID, schema_to_text, NULL},
    {T(CHAR) | T_LABELS | T_NETWORK | T(UUID), BPCHAROID, schema_to_input, fits_blank_padded},
    {T_BINARY | T(GEOMETRY), BYTEAOID, schema_to_bytea, NULL},
    {T(JSON) | T_STRINGS, JSONBOID, schema_to_input, NULL},
    {T(JSON) | T_STRINGS, JSONOID, schema_to_input, NULL},
    {T(BINARY) | T(VARBINARY), UUIDOID, schema_to_uuid, fits_uuid_bytes},
    {T(UUID) | T(CHAR) | T(VARCHAR), UUIDOID, schema_to_uuid, fits_uuid_text},
    {T_NETWORK | T_STRINGS, INETOID, schema_to_input, NULL},
    {T(VECTOR), FLOAT4ARRAYOID, schema_to_real_array, NULL},
};

/*
 * Choose a converter for a target type that the rules above do not have: types
 * of extensions and users. NULL when there is none.
 */
static SchemaConvert
other_target(const CdcColumnDef *def, Oid typid, Oid input)
{
	bool is_textual = (T_TEXTUAL & (UINT64CONST(1) << def->type)) != 0;
	char category;
	bool preferred;

	if (def->type == CDC_TYPE_GEOMETRY)
		return typid == schema_extension_type("postgis", "geometry") ||
		               typid == schema_extension_type("postgis", "geography")
		           ? schema_to_input
		           : NULL;
	if (def->type == CDC_TYPE_VECTOR && typid == schema_extension_type("vector", "vector"))
		return schema_to_input;

	/* Types of the system that are not in the rules: name and "char" cut, the rest has no fitting values. */
	if (typid < FirstNormalObjectId)
		return NULL;
	if (get_typtype(typid) == TYPTYPE_ENUM)
		return (T_LABELS | T_STRINGS) & (UINT64CONST(1) << def->type) ? schema_to_input : NULL;
	if (get_typtype(typid) != TYPTYPE_BASE || func_volatile(input) != PROVOLATILE_IMMUTABLE)
		return NULL;
	get_type_category_preferred(typid, &category, &preferred);
	return is_textual || category == TYPCATEGORY_STRING ? schema_to_input : NULL;
}

/*
 * Do two different values of a source column stay different in the target's
 * type, as its primary key compares them? A type that takes two for the same
 * would lose a row without an error. typid and collation are the target's.
 */
static bool
tells_values_apart(const CdcColumnDef *def, Oid typid, Oid collation)
{
	uint64 type = UINT64CONST(1) << def->type;

	switch (typid)
	{
		/* their rules are exact: "fits" holds, and what does not fit throws */
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case FLOAT4OID:
		case FLOAT8OID:
		case BOOLOID:
		case BITOID:
		case VARBITOID:
		case DATEOID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
		case INTERVALOID:
		case BYTEAOID:
			return true;
		case NUMERICOID:
			return (type & (T(FLOAT) | T(DOUBLE))) == 0;
		case TEXTOID:
		case VARCHAROID:
			return !OidIsValid(collation) || get_collation_isdeterministic(collation);
		/* texts can write the same value in two ways */
		case UUIDOID:
			return (type & (T(UUID) | T(BINARY) | T(VARBINARY))) != 0;
		case INETOID:
			return (type & T_NETWORK) != 0;
		default:
			return get_typtype(typid) == TYPTYPE_ENUM;
	}
}

/*
 * Can the column that was prepared for that attribute be a part of the key?
 * Sets *why when it cannot.
 */
bool
schema_column_is_exact(const SchemaColumn *column, Form_pg_attribute attribute, char **why)
{
	char *ours, *ignored;

	if (tells_values_apart(column->def, column->typid, attribute->attcollation))
		return true;
	ours = schema_type_sql(column->def, &(SchemaTypeOptions){0}, &ignored);
	*why = psprintf("Key column \"%s\": type %s%s may take different values of the source's type %s for "
	                "the same; use type %s%s.",
	                schema_server_string(column->def->name),
	                format_type_with_typemod(attribute->atttypid, attribute->atttypmod),
	                column->typid == TEXTOID || column->typid == VARCHAROID
	                    ? " with a nondeterministic collation"
	                    : "",
	                schema_source_type(column->def), ours != NULL ? ours : "text",
	                column->typid == TEXTOID || column->typid == VARCHAROID
	                    ? " with a deterministic collation"
	                    : "");
	return false;
}

/*
 * Prepare a column, see schema_column_init; returns false and sets *why
 * instead of throwing, so that a table's columns can be reported all at once.
 */
bool
schema_column_prepare(SchemaColumn *column, const CdcColumnDef *def, Form_pg_attribute attribute,
                      MemoryContext cxt, char **why)
{
	Oid input;
	int32 typmod = attribute->atttypmod;
	char *ours;
	bool narrow = false;

	memset(column, 0, sizeof(*column));
	column->def = def;
	column->attnum = attribute->attnum;
	column->typid = getBaseTypeAndTypmod(attribute->atttypid, &typmod);
	column->typmod = typmod;
	column->domain = column->typid != attribute->atttypid ? attribute->atttypid : InvalidOid;
	column->cxt = cxt;
	getTypeInputInfo(column->typid, &input, &column->typioparam);
	fmgr_info_cxt(input, &column->input, cxt);

	if (GetDatabaseEncoding() != PG_UTF8 && GetDatabaseEncoding() != PG_SQL_ASCII)
		column->encoding = FindDefaultConversionProc(PG_UTF8, GetDatabaseEncoding());

	/* A column without a type of ours has no values that can be read, whatever the target is. */
	ours = schema_type_sql(def, &(SchemaTypeOptions){0}, why);
	if (ours == NULL)
	{
		*why = psprintf("Column \"%s\": %s.", schema_server_string(def->name), *why);
		return false;
	}

	for (size_t i = 0; i < lengthof(target_rules); i++)
	{
		const TargetRule *rule = &target_rules[i];

		if (rule->target != column->typid || (rule->sources & (UINT64CONST(1) << def->type)) == 0)
			continue;
		if (rule->fits == NULL || rule->fits(def, column->typid, typmod))
		{
			column->convert = rule->convert;
			return true;
		}
		narrow = true;
	}
	if (!narrow)
		column->convert = other_target(def, column->typid, input);
	if (column->convert != NULL)
		return true;

	if (narrow)
		*why = psprintf("Column \"%s\": not every value of the source's type %s fits into %s; type "
		                "%s holds them all.",
		                schema_server_string(def->name), schema_source_type(def),
		                format_type_with_typemod(attribute->atttypid, attribute->atttypmod), ours);
	else
		*why = psprintf(
		    "Column \"%s\": values of the source's type %s cannot go into %s; use type %s%s.",
		    schema_server_string(def->name), schema_source_type(def),
		    format_type_with_typemod(attribute->atttypid, attribute->atttypmod), ours,
		    strcmp(ours, "text") == 0 ? "" : " or text");
	return false;
}

void
schema_column_init(SchemaColumn *column, const CdcColumnDef *def, Form_pg_attribute attribute,
                   MemoryContext cxt)
{
	char *why;

	if (!schema_column_prepare(column, def, attribute, cxt, &why))
		ereport(
		    ERROR,
		    (errcode(ERRCODE_DATATYPE_MISMATCH),
		     errmsg("column \"%s\" does not fit the source's column", NameStr(attribute->attname)),
		     errdetail_internal("%s", why),
		     errhint("Change the column's type with ALTER TABLE ... ALTER COLUMN ... TYPE, or "
		             "leave the column's type to cdc_bridge by letting it create the table.")));
}
