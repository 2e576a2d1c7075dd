/*-------------------------------------------------------------------------
 *
 * schema_definition.c
 *	  A source table's declared definition as jsonb, and back.
 *
 * NOTES
 *	  The stored form is what a worker starts from, so it has to say all that
 *	  information_schema said. Members that are false, zero or missing are left
 *	  out. Labels that no JSON string can hold (bytes that are not UTF-8, a NUL)
 *	  stand as an object with their bytes in hex digits.
 *
 *	  { "schema": s, "name": s, "known": n, "nkey": n, "engine": s,
 *	    "comment": s, "row_end": s, "rows": n, "row_length": n,
 *	    "columns": [ { "name": s, "type": s, "unsigned": b, ... } ],
 *	    "indexes": [ { "name": s, "type": s, "unique": b, "visible": b,
 *	        "parts": [ { "column": s, "prefix": n, "descending": b } ] } ] }
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"

#include "schema/schema_private.h"
#include "schema/table.h"

/* ----------------------------------------------------------------- writing */

static void
add_member(StringInfo json, const char *name)
{
	char last = json->len > 0 ? json->data[json->len - 1] : '{';

	if (last != '{' && last != '[')
		appendStringInfoChar(json, ',');
	escape_json(json, name);
	appendStringInfoChar(json, ':');
}

static void
add_string(StringInfo json, const char *name, const char *value)
{
	if (value == NULL)
		return;
	add_member(json, name);
	escape_json(json, schema_server_string(value));
}

static void
add_number(StringInfo json, const char *name, uint64 value)
{
	if (value == 0)
		return;
	add_member(json, name);
	appendStringInfo(json, UINT64_FORMAT, value);
}

static void
add_flag(StringInfo json, const char *name, bool value)
{
	if (!value)
		return;
	add_member(json, name);
	appendStringInfoString(json, "true");
}

static void
add_labels(StringInfo json, const CdcColumnDef *column)
{
	if (column->nlabels == 0)
		return;
	add_member(json, "labels");
	appendStringInfoChar(json, '[');
	for (uint32 i = 0; i < column->nlabels; i++)
	{
		const CdcLabel *label = &column->labels[i];

		if (i > 0)
			appendStringInfoChar(json, ',');
		if (pg_verify_mbstr(PG_UTF8, label->data, (int) label->len, true))
			escape_json(json, schema_server_string(pnstrdup(label->data, label->len)));
		else
		{
			char *hex = palloc0((Size) label->len * 2 + 1);

			hex_encode(label->data, label->len, hex);
			appendStringInfo(json, "{\"hex\":\"%s\"}", hex);
		}
	}
	appendStringInfoChar(json, ']');
}

static void
add_column(StringInfo json, const CdcColumnDef *column)
{
	appendStringInfoChar(json, '{');
	add_string(json, "name", column->name);
	add_string(json, "type", cdc_type_name(column->type));
	add_flag(json, "unsigned", column->is_unsigned);
	add_flag(json, "nullable", column->nullable);
	add_flag(json, "visible", column->visible);
	add_flag(json, "boolean", column->is_boolean);
	add_flag(json, "generated", column->is_generated);
	add_flag(json, "auto_increment", column->auto_increment);
	add_number(json, "length", column->length);
	add_number(json, "precision", column->precision);
	add_number(json, "scale", column->scale);
	add_number(json, "collation", column->collation);
	add_labels(json, column);
	add_number(json, "key_part", column->key_part);
	add_number(json, "key_prefix", column->key_prefix);
	add_string(json, "type_text", column->type_text);
	add_string(json, "default", column->default_text);
	add_flag(json, "default_is_expr", column->default_is_expr);
	add_string(json, "comment", column->comment);
	add_flag(json, "left_out", column->left_out);
	appendStringInfoChar(json, '}');
}

static void
add_index(StringInfo json, const CdcIndexDef *index)
{
	appendStringInfoChar(json, '{');
	add_string(json, "name", index->name);
	add_string(json, "type", index->type_text);
	add_flag(json, "unique", index->is_unique);
	add_flag(json, "visible", index->visible);
	add_member(json, "parts");
	appendStringInfoChar(json, '[');
	for (uint32 i = 0; i < index->nparts; i++)
	{
		const CdcIndexPart *part = &index->parts[i];

		if (i > 0)
			appendStringInfoChar(json, ',');
		appendStringInfoChar(json, '{');
		add_string(json, "column", part->column);
		add_string(json, "expression", part->expression);
		add_number(json, "prefix", part->prefix);
		add_flag(json, "descending", part->descending);
		appendStringInfoChar(json, '}');
	}
	appendStringInfoString(json, "]}");
}

static void
add_indexes(StringInfo json, const CdcTableDef *def)
{
	if (def->nindexes == 0)
		return;
	add_member(json, "indexes");
	appendStringInfoChar(json, '[');
	for (uint32 i = 0; i < def->nindexes; i++)
	{
		if (i > 0)
			appendStringInfoChar(json, ',');
		add_index(json, &def->indexes[i]);
	}
	appendStringInfoChar(json, ']');
}

static const char *const action_words[] = {
	[CDC_FOREIGN_NOTHING] = "nothing",
	[CDC_FOREIGN_CASCADE] = "cascade",
	[CDC_FOREIGN_SET_NULL] = "set null"
};

static void
add_names(StringInfo json, const char *member, const char **names, uint32 n)
{
	add_member(json, member);
	appendStringInfoChar(json, '[');
	for (uint32 i = 0; i < n; i++)
	{
		if (i > 0)
			appendStringInfoChar(json, ',');
		escape_json(json, schema_server_string(names[i]));
	}
	appendStringInfoChar(json, ']');
}

static void
add_foreign_keys(StringInfo json, const CdcTableDef *def)
{
	if (def->nforeign == 0)
		return;
	add_member(json, "foreign_keys");
	appendStringInfoChar(json, '[');
	for (uint32 i = 0; i < def->nforeign; i++)
	{
		const CdcForeignKeyDef *key = &def->foreign_keys[i];

		if (i > 0)
			appendStringInfoChar(json, ',');
		appendStringInfoChar(json, '{');
		add_string(json, "name", key->name);
		add_string(json, "parent_schema", key->parent_schema);
		add_string(json, "parent_table", key->parent_table);
		add_string(json, "on_delete", action_words[key->on_delete]);
		add_string(json, "on_update", action_words[key->on_update]);
		add_flag(json, "exact", key->is_exact);
		add_names(json, "columns", key->columns, key->ncolumns);
		add_names(json, "parent_columns", key->parent_columns, key->ncolumns);
		appendStringInfoChar(json, '}');
	}
	appendStringInfoChar(json, ']');
}

Datum
schema_def_to_jsonb(const CdcTableDef *def)
{
	StringInfoData json;

	initStringInfo(&json);
	appendStringInfoChar(&json, '{');
	add_string(&json, "schema", def->schema);
	add_string(&json, "name", def->name);
	add_number(&json, "known", def->known);
	add_number(&json, "nkey", def->nkey);
	add_string(&json, "engine", def->engine);
	add_string(&json, "comment", def->comment);
	add_string(&json, "row_end", def->row_end);
	add_number(&json, "rows", def->row_estimate);
	add_number(&json, "row_length", def->avg_row_length);
	add_member(&json, "columns");
	appendStringInfoChar(&json, '[');
	for (uint32 i = 0; i < def->ncolumns; i++)
	{
		if (i > 0)
			appendStringInfoChar(&json, ',');
		add_column(&json, &def->columns[i]);
	}
	appendStringInfoChar(&json, ']');
	add_indexes(&json, def);
	add_foreign_keys(&json, def);
	appendStringInfoChar(&json, '}');
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(json.data));
}

/* ----------------------------------------------------------------- reading */

static _Noreturn void
throw_stored(const char *member)
{
	ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
	                errmsg("stored table definition is damaged at member \"%s\"", member)));
}

/* Member of an object; NULL when it is not there. */
static JsonbValue *
get_member(JsonbContainer *object, const char *name, int type)
{
	JsonbValue *value = getKeyJsonValueFromContainer(object, name, (int) strlen(name), NULL);

	if (value != NULL && (int) value->type != type)
		throw_stored(name);
	return value;
}

static char *
json_string(const JsonbValue *value)
{
	char *str = pnstrdup(value->val.string.val, value->val.string.len);

	return pg_server_to_any(str, (int) strlen(str), PG_UTF8);
}

static char *
get_string(JsonbContainer *object, const char *name)
{
	JsonbValue *value = get_member(object, name, jbvString);

	return value != NULL ? json_string(value) : NULL;
}

static uint64
get_number(JsonbContainer *object, const char *name, uint64 max)
{
	JsonbValue *value = get_member(object, name, jbvNumeric);
	char *text;
	uint64 result;

	if (value == NULL)
		return 0;
	text = DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(value->val.numeric)));
	errno = 0;
	result = strtoull(text, NULL, 10);
	if (errno != 0 || result > max)
		throw_stored(name);
	return result;
}

static bool
get_flag(JsonbContainer *object, const char *name)
{
	JsonbValue *value = get_member(object, name, jbvBool);

	return value != NULL && value->val.boolean;
}

static CdcType
type_by_name(const char *name)
{
	for (int type = CDC_TYPE_TINYINT; type <= CDC_TYPE_INET6; type++)
	{
		if (name != NULL && strcmp(name, cdc_type_name((CdcType) type)) == 0)
			return (CdcType) type;
	}
	return CDC_TYPE_UNKNOWN;
}

static void
get_label(const JsonbValue *value, CdcLabel *label)
{
	char *bytes;

	if (value->type == jbvString)
	{
		char *str = json_string(value);

		label->data = str;
		label->len = (uint32_t) strlen(str);
		return;
	}
	if (value->type != jbvBinary)
		throw_stored("labels");
	bytes = get_string(value->val.binary.data, "hex");
	if (bytes == NULL)
		throw_stored("labels");
	label->len = (uint32_t) hex_decode(bytes, strlen(bytes), bytes);
	bytes[label->len] = '\0';
	label->data = bytes;
}

static void
get_labels(JsonbContainer *object, CdcColumnDef *column)
{
	JsonbValue *value = get_member(object, "labels", jbvBinary);
	CdcLabel *labels;

	if (value == NULL)
		return;
	column->nlabels = JsonContainerSize(value->val.binary.data);
	labels = palloc0(Max(column->nlabels, 1) * sizeof(CdcLabel));
	for (uint32 i = 0; i < column->nlabels; i++)
		get_label(getIthJsonbValueFromContainer(value->val.binary.data, i), &labels[i]);
	column->labels = labels;
}

static void
get_column(JsonbContainer *object, CdcColumnDef *column)
{
	column->name = get_string(object, "name");
	column->type = type_by_name(get_string(object, "type"));
	column->is_unsigned = get_flag(object, "unsigned");
	column->nullable = get_flag(object, "nullable");
	column->visible = get_flag(object, "visible");
	column->is_boolean = get_flag(object, "boolean");
	column->is_generated = get_flag(object, "generated");
	column->auto_increment = get_flag(object, "auto_increment");
	column->length = (uint32_t) get_number(object, "length", PG_UINT32_MAX);
	column->precision = (uint8_t) get_number(object, "precision", PG_UINT8_MAX);
	column->scale = (uint8_t) get_number(object, "scale", PG_UINT8_MAX);
	column->collation = (uint16_t) get_number(object, "collation", PG_UINT16_MAX);
	get_labels(object, column);
	column->key_part = (uint16_t) get_number(object, "key_part", PG_UINT16_MAX);
	column->key_prefix = (uint16_t) get_number(object, "key_prefix", PG_UINT16_MAX);
	column->type_text = get_string(object, "type_text");
	column->default_text = get_string(object, "default");
	column->default_is_expr = get_flag(object, "default_is_expr");
	column->comment = get_string(object, "comment");
	column->left_out = get_flag(object, "left_out");
	if (column->name == NULL)
		throw_stored("name");
}

/* Element of an array that has to be an object. */
static JsonbContainer *
get_object(JsonbContainer *array, uint32 i, const char *member)
{
	JsonbValue *value = getIthJsonbValueFromContainer(array, i);

	if (value == NULL || value->type != jbvBinary || !JsonContainerIsObject(value->val.binary.data))
		throw_stored(member);
	return value->val.binary.data;
}

static void
get_index(JsonbContainer *object, CdcIndexDef *index)
{
	JsonbValue *value = get_member(object, "parts", jbvBinary);
	CdcIndexPart *parts;

	if (value == NULL)
		throw_stored("parts");
	index->name = get_string(object, "name");
	index->type_text = get_string(object, "type");
	if (index->name == NULL || index->type_text == NULL)
		throw_stored("indexes");
	index->is_unique = get_flag(object, "unique");
	index->visible = get_flag(object, "visible");
	index->nparts = JsonContainerSize(value->val.binary.data);
	parts = palloc0(Max(index->nparts, 1) * sizeof(CdcIndexPart));
	for (uint32 i = 0; i < index->nparts; i++)
	{
		JsonbContainer *part = get_object(value->val.binary.data, i, "parts");

		parts[i].column = get_string(part, "column");
		parts[i].expression = get_string(part, "expression");
		parts[i].prefix = (uint32_t) get_number(part, "prefix", PG_UINT32_MAX);
		parts[i].descending = get_flag(part, "descending");
	}
	index->parts = parts;
}

static void
get_indexes(JsonbContainer *object, CdcTableDef *def)
{
	JsonbValue *value = get_member(object, "indexes", jbvBinary);
	CdcIndexDef *indexes;

	if (value == NULL)
		return;
	def->nindexes = JsonContainerSize(value->val.binary.data);
	indexes = palloc0(Max(def->nindexes, 1) * sizeof(CdcIndexDef));
	for (uint32 i = 0; i < def->nindexes; i++)
		get_index(get_object(value->val.binary.data, i, "indexes"), &indexes[i]);
	def->indexes = indexes;
}

static CdcForeignAction
get_action(JsonbContainer *object, const char *member)
{
	const char *word = get_string(object, member);

	for (int i = 0; word != NULL && i < (int) lengthof(action_words); i++)
	{
		if (strcmp(word, action_words[i]) == 0)
			return (CdcForeignAction) i;
	}
	throw_stored(member);
}

static const char **
get_names(JsonbContainer *object, const char *member, uint32 *n)
{
	JsonbValue *value = get_member(object, member, jbvBinary);
	const char **names;

	if (value == NULL)
		throw_stored(member);
	*n = JsonContainerSize(value->val.binary.data);
	names = palloc(sizeof(char *) * Max(*n, 1));
	for (uint32 i = 0; i < *n; i++)
	{
		JsonbValue *name = getIthJsonbValueFromContainer(value->val.binary.data, i);

		if (name->type != jbvString)
			throw_stored(member);
		names[i] = json_string(name);
	}
	return names;
}

static void
get_foreign_keys(JsonbContainer *object, CdcTableDef *def)
{
	JsonbValue *value = get_member(object, "foreign_keys", jbvBinary);
	CdcForeignKeyDef *keys;

	if (value == NULL)
		return;
	def->nforeign = JsonContainerSize(value->val.binary.data);
	keys = palloc0(Max(def->nforeign, 1) * sizeof(CdcForeignKeyDef));
	for (uint32 i = 0; i < def->nforeign; i++)
	{
		JsonbContainer *part = get_object(value->val.binary.data, i, "foreign_keys");
		CdcForeignKeyDef *key = &keys[i];
		uint32		parents;

		key->name = get_string(part, "name");
		key->parent_schema = get_string(part, "parent_schema");
		key->parent_table = get_string(part, "parent_table");
		key->on_delete = get_action(part, "on_delete");
		key->on_update = get_action(part, "on_update");
		key->is_exact = get_flag(part, "exact");
		key->columns = get_names(part, "columns", &key->ncolumns);
		key->parent_columns = get_names(part, "parent_columns", &parents);
		if (key->name == NULL || key->parent_schema == NULL || key->parent_table == NULL || parents != key->ncolumns)
			throw_stored("foreign_keys");
	}
	def->foreign_keys = keys;
}

bool
schema_def_is_keyless(Datum value)
{
	return get_number(&DatumGetJsonbP(value)->root, "nkey", PG_UINT32_MAX) == 0;
}

bool
schema_def_has_unlogged(Datum value)
{
	JsonbContainer *object = &DatumGetJsonbP(value)->root;

	return JsonContainerIsObject(object) && (get_number(object, "known", PG_UINT32_MAX) & CDC_FOREIGN_UNLOGGED) && get_member(object, "foreign_keys", jbvBinary) != NULL;
}

CdcTableDef *
schema_def_from_jsonb(Datum value)
{
	JsonbContainer *object = &DatumGetJsonbP(value)->root;
	CdcTableDef *def = palloc0(sizeof(CdcTableDef));
	JsonbValue *columns;

	if (!JsonContainerIsObject(object) ||
	    (columns = get_member(object, "columns", jbvBinary)) == NULL)
		throw_stored("columns");
	def->schema = get_string(object, "schema");
	def->name = get_string(object, "name");
	if (def->schema == NULL || def->name == NULL)
		throw_stored("name");
	def->known = (uint32_t) get_number(object, "known", PG_UINT32_MAX);
	def->nkey = (uint32_t) get_number(object, "nkey", PG_UINT32_MAX);
	def->engine = get_string(object, "engine");
	def->comment = get_string(object, "comment");
	def->row_end = get_string(object, "row_end");
	def->row_estimate = get_number(object, "rows", PG_UINT64_MAX);
	def->avg_row_length = get_number(object, "row_length", PG_UINT64_MAX);
	def->ncolumns = JsonContainerSize(columns->val.binary.data);
	def->columns = palloc0(Max(def->ncolumns, 1) * sizeof(CdcColumnDef));
	for (uint32 i = 0; i < def->ncolumns; i++)
	{
		JsonbValue *column = getIthJsonbValueFromContainer(columns->val.binary.data, i);

		if (column->type != jbvBinary)
			throw_stored("columns");
		get_column(column->val.binary.data, &def->columns[i]);
	}
	get_indexes(object, def);
	get_foreign_keys(object, def);
	return def;
}
