/*-------------------------------------------------------------------------
 *
 * format_table.c
 *	  What a statement did to a table's definition, as formats write it.
 *
 * NOTES
 *	  Plain JSON has a form of its own. Debezium JSON has the tableChanges of
 *	  Debezium's schema change topics, which its connectors for other databases
 *	  write; the one for PostgreSQL has no such topic. A column's jdbcType is one
 *	  of the numbers of java.sql.Types.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "format/format.h"

#include <string.h>

#include "format/json_text.h"

void
format_add_key_names(const CdcOutTable *table, CdcBuf *out)
{
	cdc_buf_add_char(out, '[');
	for (uint32_t i = 0; i < table->nkey; i++)
	{
		if (i > 0)
			cdc_buf_add_char(out, ',');
		json_add_cstring(out, table->columns[table->key[i]].name);
	}
	cdc_buf_add_char(out, ']');
}

static void
add_labels(const CdcOutColumnInfo *info, CdcBuf *out)
{
	cdc_buf_add_char(out, '[');
	for (uint32_t i = 0; i < info->nlabels; i++)
	{
		if (i > 0)
			cdc_buf_add_char(out, ',');
		json_add_cstring(out, info->labels[i]);
	}
	cdc_buf_add_char(out, ']');
}

static const char *
identity_name(char identity)
{
	switch (identity)
	{
		case 'd':
			return "default";
		case 'i':
			return "index";
		case 'f':
			return "full";
		default:
			return "nothing";
	}
}

/* What both formats say of columns that were there before; renamed: the member's name. */
static void
add_column_change(const char *renamed, const CdcOutSchemaChange *change, CdcBuf *out)
{
	if (change->old_column != NULL)
	{
		cdc_buf_add_char(out, ',');
		json_add_name(out, renamed);
		cdc_buf_add_str(out, "{\"from\":");
		json_add_cstring(out, change->old_column);
		cdc_buf_add_str(out, ",\"to\":");
		json_add_cstring(out, change->new_column);
		cdc_buf_add_char(out, '}');
	}
	if (change->rewritten)
		cdc_buf_add_str(out, ",\"rewritten\":true");
}

/* ---- plain JSON ---- */

static void
add_other_name(const char *member, const char *schema, const char *name, CdcBuf *out)
{
	if (name == NULL)
		return;
	cdc_buf_add_char(out, ',');
	json_add_name(out, member);
	cdc_buf_add_str(out, "{\"schema\":");
	json_add_cstring(out, schema);
	cdc_buf_add_str(out, ",\"table\":");
	json_add_cstring(out, name);
	cdc_buf_add_char(out, '}');
}

static void
add_column(CdcFormat *format, const CdcOutColumn *column, const CdcOutColumnInfo *info, CdcBuf *out)
{
	cdc_buf_add_str(out, "{\"name\":");
	json_add_cstring(out, column->name);
	cdc_buf_add_str(out, ",\"type\":");
	json_add_cstring(out, column->type_text);
	cdc_buf_add_str(out, column->nullable ? ",\"nullable\":true" : ",\"nullable\":false");
	if (info->default_text != NULL)
	{
		cdc_buf_add_str(out, ",\"default\":");
		json_add_cstring(out, info->default_text);
	}
	if (info->existing.kind != CDC_CELL_ABSENT)
	{
		cdc_buf_add_str(out, ",\"existing\":");
		format_add_cell(format, column, &info->existing, out);
	}
	if (info->is_generated)
		cdc_buf_add_str(out, ",\"generated\":true");
	if (info->identity != '\0')
		cdc_buf_add_str(out, info->identity == 'a' ? ",\"as_identity\":\"always\"" : ",\"as_identity\":\"by default\"");
	if (info->nlabels > 0)
	{
		cdc_buf_add_str(out, ",\"labels\":");
		add_labels(info, out);
	}
	cdc_buf_add_char(out, '}');
}

void
format_add_schema_change(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	static const char *const changes[] = {
		[CDC_OUT_CREATE] = "create",
		[CDC_OUT_ALTER] = "alter",
		[CDC_OUT_DROP] = "drop"
	};
	const CdcOutSchemaChange *change = record->schema_change;
	const CdcOutTable *table = record->table;

	cdc_buf_add_str(out, ",\"change\":");
	json_add_cstring(out, changes[change->op]);
	cdc_buf_add_str(out, ",\"command\":");
	json_add_cstring(out, change->command);
	add_other_name("previous", change->old_schema, change->old_name, out);
	add_other_name("renamed_to", change->new_schema, change->new_name, out);
	add_column_change("renamed_column", change, out);
	if (change->columns == NULL)
		return;
	cdc_buf_add_str(out, ",\"identity\":");
	json_add_cstring(out, identity_name(table->identity));
	cdc_buf_add_str(out, ",\"key\":");
	format_add_key_names(table, out);
	cdc_buf_add_str(out, ",\"columns\":[");
	for (uint32_t i = 0; i < table->ncolumns; i++)
	{
		if (i > 0)
			cdc_buf_add_char(out, ',');
		add_column(format, &table->columns[i], &change->columns[i], out);
	}
	cdc_buf_add_char(out, ']');
}

/* ---- Debezium JSON ---- */

int
format_jdbc_type(const CdcOutColumn *column)
{
	if (column->is_list)
		return 2003;
	switch (column->type)
	{
		case CDC_OUT_BOOL:
			return 16;
		case CDC_OUT_INT2:
			return 5;
		case CDC_OUT_INT4:
			return 4;
		case CDC_OUT_INT8:
		case CDC_OUT_OID:
			return -5;
		case CDC_OUT_FLOAT4:
			return 7;
		case CDC_OUT_FLOAT8:
			return 8;
		case CDC_OUT_NUMERIC:
			return 2;
		case CDC_OUT_TEXT:
			return 12;
		case CDC_OUT_BYTES:
			return -2;
		case CDC_OUT_BIT:
			return -7;
		case CDC_OUT_DATE:
			return 91;
		case CDC_OUT_TIME:
			return 92;
		case CDC_OUT_TIMETZ:
			return 2013;
		case CDC_OUT_TIMESTAMP:
			return 93;
		case CDC_OUT_TIMESTAMPTZ:
			return 2014;
		case CDC_OUT_XML:
			return 2009;
		case CDC_OUT_INTERVAL:
		case CDC_OUT_UUID:
		case CDC_OUT_JSON:
		case CDC_OUT_ENUM:
		case CDC_OUT_OTHER:
			break;
	}
	return 1111;
}

/* The type without what stands in parentheses: "timestamp without time zone" for "timestamp(3) without time zone". */
static void
add_type_name(const char *type, CdcBuf *out)
{
	const char *open = type[0] == '"' ? NULL : strchr(type, '(');
	const char *close = open != NULL ? strchr(open, ')') : NULL;
	CdcBuf		name;

	if (close == NULL)
	{
		json_add_cstring(out, type);
		return;
	}
	cdc_buf_init(&name, out->allocator, 0);
	cdc_buf_add(&name, type, (size_t) (open - type));
	cdc_buf_add_str(&name, close + 1);
	if (name.status == CDC_OK)
		json_add_string(out, name.data, name.len);
	else
		out->status = name.status;
	cdc_buf_free(&name);
}

static void
add_number_or_null(CdcBuf *out, const char *member, int value)
{
	cdc_buf_add_char(out, ',');
	json_add_name(out, member);
	if (value >= 0)
		json_add_int(out, value);
	else
		cdc_buf_add_str(out, "null");
}

static void
add_table_column(CdcFormat *format, const CdcOutColumn *column, const CdcOutColumnInfo *info, uint32_t position, CdcBuf *out)
{
	bool		counts = info->identity != '\0' || (info->default_text != NULL && strncmp(info->default_text, "nextval(", 8) == 0);

	cdc_buf_add_str(out, "{\"name\":");
	json_add_cstring(out, column->name);
	cdc_buf_add_str(out, ",\"jdbcType\":");
	json_add_int(out, format_jdbc_type(column));
	cdc_buf_add_str(out, ",\"nativeType\":null,\"typeName\":");
	add_type_name(column->type_text, out);
	cdc_buf_add_str(out, ",\"typeExpression\":");
	json_add_cstring(out, column->type_text);
	cdc_buf_add_str(out, ",\"charsetName\":null");
	add_number_or_null(out, "length", column->precision);
	add_number_or_null(out, "scale", column->precision >= 0 ? column->scale : -1);
	cdc_buf_add_str(out, ",\"position\":");
	json_add_uint(out, position);
	cdc_buf_add_str(out, column->nullable ? ",\"optional\":true" : ",\"optional\":false");
	cdc_buf_add_str(out, counts ? ",\"autoIncremented\":true" : ",\"autoIncremented\":false");
	cdc_buf_add_str(out, info->is_generated ? ",\"generated\":true" : ",\"generated\":false");
	cdc_buf_add_str(out, ",\"comment\":null,\"hasDefaultValue\":");
	cdc_buf_add_str(out, info->default_text != NULL ? "true" : "false");
	cdc_buf_add_str(out, ",\"defaultValueExpression\":");
	json_add_cstring_or_null(out, info->default_text);
	cdc_buf_add_str(out, ",\"enumValues\":");
	if (info->nlabels > 0)
		add_labels(info, out);
	else
		cdc_buf_add_str(out, "null");
	if (info->existing.kind != CDC_CELL_ABSENT)
	{
		cdc_buf_add_str(out, ",\"existing\":");
		/* in a schema a member has one type, whatever the column's is */
		if (format->options.schemas)
			format_add_cell_text(format, column, &info->existing, out);
		else
			format_add_cell(format, column, &info->existing, out);
	}
	cdc_buf_add_char(out, '}');
}

/* "\"db\".\"shop\".\"t\"", the way Debezium names a table. */
static void
add_table_id(const CdcFormat *format, const char *schema, const char *name, CdcBuf *out)
{
	const char *parts[] = {format->options.database, schema, name};
	CdcBuf		id;

	cdc_buf_init(&id, out->allocator, 0);
	for (int i = 0; i < 3; i++)
	{
		cdc_buf_add_str(&id, i > 0 ? ".\"" : "\"");
		for (const char *p = parts[i]; *p != '\0'; p++)
		{
			if (*p == '"')
				cdc_buf_add_char(&id, '"');
			cdc_buf_add_char(&id, *p);
		}
		cdc_buf_add_char(&id, '"');
	}
	if (id.status == CDC_OK)
		json_add_string(out, id.data, id.len);
	else
		out->status = id.status;
	cdc_buf_free(&id);
}

static void
add_definition(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	const CdcOutTable *table = record->table;

	cdc_buf_add_str(out, "{\"defaultCharsetName\":null,\"primaryKeyColumnNames\":");
	format_add_key_names(table, out);
	cdc_buf_add_str(out, ",\"columns\":[");
	for (uint32_t i = 0; i < table->ncolumns; i++)
	{
		if (i > 0)
			cdc_buf_add_char(out, ',');
		add_table_column(format, &table->columns[i], &record->schema_change->columns[i], i + 1, out);
	}
	cdc_buf_add_str(out, "],\"comment\":null,\"replicaIdentity\":");
	json_add_cstring(out, identity_name(table->identity));
	cdc_buf_add_char(out, '}');
}

void
format_add_table_changes(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	static const char *const types[] = {
		[CDC_OUT_CREATE] = "CREATE",
		[CDC_OUT_ALTER] = "ALTER",
		[CDC_OUT_DROP] = "DROP"
	};
	const CdcOutSchemaChange *change = record->schema_change;

	cdc_buf_add_str(out, "\"databaseName\":");
	json_add_cstring(out, format->options.database);
	cdc_buf_add_str(out, ",\"schemaName\":");
	json_add_cstring(out, record->table->schema);
	cdc_buf_add_str(out, ",\"ddl\":null,\"command\":");
	json_add_cstring(out, change->command);
	cdc_buf_add_str(out, ",\"tableChanges\":[{\"type\":");
	json_add_cstring(out, types[change->op]);
	cdc_buf_add_str(out, ",\"id\":");
	add_table_id(format, record->table->schema, record->table->name, out);
	if (change->old_name != NULL)
	{
		cdc_buf_add_str(out, ",\"previousId\":");
		add_table_id(format, change->old_schema, change->old_name, out);
	}
	if (change->new_name != NULL)
	{
		cdc_buf_add_str(out, ",\"renamedTo\":");
		add_table_id(format, change->new_schema, change->new_name, out);
	}
	add_column_change("renamedColumn", change, out);
	cdc_buf_add_str(out, ",\"table\":");
	if (change->columns != NULL)
		add_definition(format, record, out);
	else
		cdc_buf_add_str(out, "null");
	cdc_buf_add_str(out, "}]");
}
