/*-------------------------------------------------------------------------
 *
 * format_schema.c
 *	  Kafka Connect's schemas of values and keys, as JSON.
 *
 * NOTES
 *	  What Kafka Connect's JsonConverter writes with schemas.enable=true, with the
 *	  names that Debezium gives to what a string means (io.debezium.time.IsoDate,
 *	  io.debezium.data.Uuid, ...). The text for a table is made once for each
 *	  version of its definition and kept in the format's cache.
 *
 *	  before and after are optional, and so is every column that is not in the
 *	  key: an old row may have the key alone.
 *
 *	  What is no change of a row (messages, marks of transactions, schema changes)
 *	  has one schema each, with Debezium's names and what we say beyond it.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "format/format.h"

#include "format/json_text.h"

typedef struct ConnectType
{
	const char *type;
	const char *name;			/* what it means, or NULL */
} ConnectType;

static ConnectType
connect_type(const CdcFormat *format, CdcOutType type)
{
	switch (type)
	{
		case CDC_OUT_BOOL:
			return (ConnectType) {"boolean", NULL};
		case CDC_OUT_INT2:
			return (ConnectType) {"int16", NULL};
		case CDC_OUT_INT4:
			return (ConnectType) {"int32", NULL};
		case CDC_OUT_INT8:
		case CDC_OUT_OID:
			return (ConnectType) {"int64", NULL};
		case CDC_OUT_FLOAT4:
			return (ConnectType) {"float", NULL};
		case CDC_OUT_FLOAT8:
			return (ConnectType) {"double", NULL};
		case CDC_OUT_BYTES:
			return (ConnectType) {format->options.bytes_as_hex ? "string" : "bytes", NULL};
		case CDC_OUT_DATE:
			return (ConnectType) {"string", "io.debezium.time.IsoDate"};
		case CDC_OUT_TIME:
			return (ConnectType) {"string", "io.debezium.time.IsoTime"};
		case CDC_OUT_TIMETZ:
			return (ConnectType) {"string", "io.debezium.time.ZonedTime"};
		case CDC_OUT_TIMESTAMP:
			return (ConnectType) {"string", "io.debezium.time.IsoTimestamp"};
		case CDC_OUT_TIMESTAMPTZ:
			return (ConnectType) {"string", "io.debezium.time.ZonedTimestamp"};
		case CDC_OUT_INTERVAL:
			return (ConnectType) {"string", "io.debezium.time.Interval"};
		case CDC_OUT_UUID:
			return (ConnectType) {"string", "io.debezium.data.Uuid"};
		case CDC_OUT_JSON:
			return (ConnectType) {"string", "io.debezium.data.Json"};
		case CDC_OUT_XML:
			return (ConnectType) {"string", "io.debezium.data.Xml"};
		case CDC_OUT_ENUM:
			return (ConnectType) {"string", "io.debezium.data.Enum"};
		case CDC_OUT_OTHER:
		case CDC_OUT_NUMERIC:
		case CDC_OUT_TEXT:
		case CDC_OUT_BIT:
			break;
	}
	return (ConnectType) {"string", NULL};
}

static void
add_type(ConnectType type, bool optional, CdcBuf *out)
{
	cdc_buf_add_str(out, "{\"type\":");
	json_add_cstring(out, type.type);
	cdc_buf_add_str(out, optional ? ",\"optional\":true" : ",\"optional\":false");
	if (type.name != NULL)
	{
		cdc_buf_add_str(out, ",\"name\":");
		json_add_cstring(out, type.name);
		cdc_buf_add_str(out, ",\"version\":1");
	}
}

static void
add_column(const CdcFormat *format, const CdcOutColumn *column, CdcBuf *out)
{
	bool		optional = column->nullable || column->key_part == 0;
	ConnectType type = connect_type(format, column->type);

	if (column->is_list)
	{
		cdc_buf_add_str(out, "{\"type\":\"array\",\"items\":");
		add_type(type, true, out);
		cdc_buf_add_str(out, optional ? "},\"optional\":true" : "},\"optional\":false");
	}
	else
		add_type(type, optional, out);
	cdc_buf_add_str(out, ",\"field\":");
	json_add_cstring(out, column->name);
	cdc_buf_add_char(out, '}');
}

static bool
is_name_byte(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/* Names of structs are names of Avro too: Debezium puts an underscore where another character stands. */
static void
add_name(const CdcBuf *name, CdcBuf *out)
{
	cdc_buf_add_char(out, '"');
	for (size_t i = 0; i < name->len; i++)
	{
		uint8_t		c = (uint8_t) name->data[i];

		if ((c & 0xc0) == 0x80)
			continue;			/* the rest of a character that has its underscore */
		cdc_buf_add_char(out, is_name_byte(c) && (i > 0 || c > '9') ? (char) c : '_');
	}
	cdc_buf_add_char(out, '"');
}

/* "server.schema.table.Value" */
static void
add_struct_name(const CdcFormat *format, const CdcOutTable *table, const char *what, CdcBuf *out)
{
	CdcBuf		name;

	cdc_buf_init(&name, out->allocator, 0);
	cdc_buf_printf(&name, "%s.%s.%s.%s", format->options.server_name, table->schema, table->name, what);
	if (name.status == CDC_OK)
		add_name(&name, out);
	else
		out->status = name.status;
	cdc_buf_free(&name);
}

static void
add_row_field(const CdcFormat *format, const CdcOutTable *table, const char *field, CdcBuf *out)
{
	cdc_buf_add_str(out, "{\"type\":\"struct\",\"fields\":[");
	for (uint32_t i = 0; i < table->ncolumns; i++)
	{
		if (i > 0)
			cdc_buf_add_char(out, ',');
		add_column(format, &table->columns[i], out);
	}
	cdc_buf_add_str(out, "],\"optional\":true,\"name\":");
	add_struct_name(format, table, "Value", out);
	cdc_buf_add_str(out, ",\"field\":");
	json_add_cstring(out, field);
	cdc_buf_add_char(out, '}');
}

void
format_add_field_schema(const char *type, bool optional, const char *field, CdcBuf *out)
{
	cdc_buf_add_str(out, "{\"type\":");
	json_add_cstring(out, type);
	cdc_buf_add_str(out, optional ? ",\"optional\":true,\"field\":" : ",\"optional\":false,\"field\":");
	json_add_cstring(out, field);
	cdc_buf_add_char(out, '}');
}

#define FIELD(type, optional, field) "{\"type\":\"" type "\",\"optional\":" optional ",\"field\":\"" field "\"}"

/* The rest of the envelope is the same for every table. */
static const char transaction_field[] =
	"{\"type\":\"struct\",\"fields\":["
	FIELD("string", "false", "id") ","
	FIELD("int64", "false", "total_order") ","
	FIELD("int64", "true", "data_collection_order")
	"],\"optional\":true,\"name\":\"event.block\",\"version\":1,\"field\":\"transaction\"}";

static const char op_and_times[] =
	FIELD("string", "false", "op") ","
	FIELD("int64", "true", "ts_ms") ","
	FIELD("int64", "true", "ts_us") ","
	FIELD("int64", "true", "ts_ns");

static const char truncate_fields[] =
	FIELD("boolean", "true", "cascade") ","
	FIELD("boolean", "true", "restart_identity") ","
	"{\"type\":\"struct\",\"fields\":["
	FIELD("string", "false", "schema") ","
	FIELD("string", "false", "table")
	"],\"optional\":true,\"field\":\"partition_of\"}";

static const char message_field[] =
	"{\"type\":\"struct\",\"fields\":["
	FIELD("string", "true", "prefix") ","
	FIELD("bytes", "true", "content")
	"],\"optional\":false,\"name\":\"io.debezium.connector.postgresql.Message\",\"version\":1,\"field\":\"message\"}";

static const char message_key[] =
	"{\"type\":\"struct\",\"fields\":[" FIELD("string", "true", "prefix")
	"],\"optional\":false,\"name\":\"io.debezium.connector.postgresql.MessageKey\",\"version\":1}";

static const char mark_value[] =
	"{\"type\":\"struct\",\"fields\":["
	FIELD("string", "false", "status") ","
	FIELD("string", "false", "id") ","
	FIELD("int64", "false", "ts_ms") ","
	FIELD("int64", "true", "event_count") ","
	"{\"type\":\"array\",\"items\":{\"type\":\"struct\",\"fields\":["
	FIELD("string", "false", "data_collection") ","
	FIELD("int64", "false", "event_count")
	"],\"optional\":true,\"name\":\"event.collection\",\"version\":1},\"optional\":true,\"field\":\"data_collections\"},"
	FIELD("string", "true", "gid") ","
	FIELD("int64", "true", "xid")
	"],\"optional\":false,\"name\":\"io.debezium.connector.common.TransactionMetadataValue\",\"version\":1}";

static const char mark_key[] =
	"{\"type\":\"struct\",\"fields\":[" FIELD("string", "false", "id")
	"],\"optional\":false,\"name\":\"io.debezium.connector.common.TransactionMetadataKey\",\"version\":1}";

static const char schema_change_key[] =
	"{\"type\":\"struct\",\"fields\":[" FIELD("string", "false", "databaseName")
	"],\"optional\":false,\"name\":\"io.debezium.connector.postgresql.SchemaChangeKey\",\"version\":1}";

static const char schema_change_fields[] =
	FIELD("int64", "false", "ts_ms") ","
	FIELD("string", "true", "databaseName") ","
	FIELD("string", "true", "schemaName") ","
	FIELD("string", "true", "ddl") ","
	FIELD("string", "true", "command") ","
	"{\"type\":\"array\",\"items\":{\"type\":\"struct\",\"fields\":["
	FIELD("string", "false", "type") ","
	FIELD("string", "false", "id") ","
	FIELD("string", "true", "previousId") ","
	FIELD("string", "true", "renamedTo") ","
	"{\"type\":\"struct\",\"fields\":[" FIELD("string", "false", "from") "," FIELD("string", "false", "to")
	"],\"optional\":true,\"field\":\"renamedColumn\"},"
	FIELD("boolean", "true", "rewritten") ","
	"{\"type\":\"struct\",\"fields\":["
	FIELD("string", "true", "defaultCharsetName") ","
	"{\"type\":\"array\",\"items\":{\"type\":\"string\",\"optional\":false},\"optional\":true,\"field\":\"primaryKeyColumnNames\"},"
	"{\"type\":\"array\",\"items\":{\"type\":\"struct\",\"fields\":["
	FIELD("string", "false", "name") ","
	FIELD("int32", "false", "jdbcType") ","
	FIELD("int32", "true", "nativeType") ","
	FIELD("string", "false", "typeName") ","
	FIELD("string", "true", "typeExpression") ","
	FIELD("string", "true", "charsetName") ","
	FIELD("int32", "true", "length") ","
	FIELD("int32", "true", "scale") ","
	FIELD("int32", "false", "position") ","
	FIELD("boolean", "true", "optional") ","
	FIELD("boolean", "true", "autoIncremented") ","
	FIELD("boolean", "true", "generated") ","
	FIELD("string", "true", "comment") ","
	FIELD("boolean", "true", "hasDefaultValue") ","
	FIELD("string", "true", "defaultValueExpression") ","
	"{\"type\":\"array\",\"items\":{\"type\":\"string\",\"optional\":false},\"optional\":true,\"field\":\"enumValues\"},"
	FIELD("string", "true", "existing")
	"],\"optional\":false,\"name\":\"io.debezium.connector.schema.Column\",\"version\":1},\"optional\":false,\"field\":\"columns\"},"
	FIELD("string", "true", "comment") ","
	FIELD("string", "true", "replicaIdentity")
	"],\"optional\":true,\"name\":\"io.debezium.connector.schema.Table\",\"version\":1,\"field\":\"table\"}"
	"],\"optional\":false,\"name\":\"io.debezium.connector.schema.Change\",\"version\":1},\"optional\":false,\"field\":\"tableChanges\"}";

void
format_add_document_schema(CdcRecordKind kind, CdcBuf *out)
{
	if (kind == CDC_RECORD_MESSAGE)
	{
		cdc_buf_add_str(out, "{\"type\":\"struct\",\"fields\":[");
		cdc_buf_add_str(out, op_and_times);
		cdc_buf_add_char(out, ',');
		format_add_source_schema(out);
		cdc_buf_add_char(out, ',');
		cdc_buf_add_str(out, transaction_field);
		cdc_buf_add_char(out, ',');
		cdc_buf_add_str(out, message_field);
		cdc_buf_add_str(out, "],\"optional\":false,\"name\":\"io.debezium.connector.postgresql.MessageValue\",\"version\":1}");
	}
	else if (kind == CDC_RECORD_SCHEMA)
	{
		cdc_buf_add_str(out, "{\"type\":\"struct\",\"fields\":[");
		format_add_source_schema(out);
		cdc_buf_add_char(out, ',');
		cdc_buf_add_str(out, schema_change_fields);
		cdc_buf_add_char(out, ',');
		cdc_buf_add_str(out, transaction_field);
		cdc_buf_add_str(out, "],\"optional\":false,\"name\":\"io.debezium.connector.postgresql.SchemaChangeValue\",\"version\":1}");
	}
	else
		cdc_buf_add_str(out, mark_value);
}

void
format_add_document_key_schema(CdcRecordKind kind, CdcBuf *out)
{
	cdc_buf_add_str(out, kind == CDC_RECORD_MESSAGE ? message_key : kind == CDC_RECORD_SCHEMA ? schema_change_key : mark_key);
}

static void
make_value_schema(const CdcFormat *format, const CdcOutTable *table, CdcBuf *out)
{
	cdc_buf_add_str(out, "{\"type\":\"struct\",\"fields\":[");
	add_row_field(format, table, "before", out);
	cdc_buf_add_char(out, ',');
	add_row_field(format, table, "after", out);
	cdc_buf_add_char(out, ',');
	format_add_source_schema(out);
	cdc_buf_add_char(out, ',');
	cdc_buf_add_str(out, op_and_times);
	cdc_buf_add_char(out, ',');
	cdc_buf_add_str(out, transaction_field);
	cdc_buf_add_char(out, ',');
	cdc_buf_add_str(out, truncate_fields);
	cdc_buf_add_str(out, "],\"optional\":false,\"name\":");
	add_struct_name(format, table, "Envelope", out);
	cdc_buf_add_str(out, ",\"version\":1}");
}

/* The row itself, and what is added to it. */
static void
make_row_schema(const CdcFormat *format, const CdcOutTable *table, CdcBuf *out)
{
	cdc_buf_add_str(out, "{\"type\":\"struct\",\"fields\":[");
	for (uint32_t i = 0; i < table->ncolumns; i++)
	{
		if (i > 0)
			cdc_buf_add_char(out, ',');
		add_column(format, &table->columns[i], out);
	}
	format_add_unwrap_schema(format, table->ncolumns > 0, out);
	cdc_buf_add_str(out, "],\"optional\":false,\"name\":");
	add_struct_name(format, table, "Value", out);
	cdc_buf_add_char(out, '}');
}

static void
make_key_schema(const CdcFormat *format, const CdcOutTable *table, CdcBuf *out)
{
	cdc_buf_add_str(out, "{\"type\":\"struct\",\"fields\":[");
	for (uint32_t i = 0; i < table->nkey; i++)
	{
		if (i > 0)
			cdc_buf_add_char(out, ',');
		add_column(format, &table->columns[table->key[i]], out);
	}
	cdc_buf_add_str(out, "],\"optional\":false,\"name\":");
	add_struct_name(format, table, "Key", out);
	cdc_buf_add_char(out, '}');
}

static CdcFormatCached *
cached(CdcFormat *format, const CdcOutTable *table)
{
	CdcFormatCached *entry = &format->cache[table->version % CDC_FORMAT_CACHE_SIZE];

	if (entry->version != table->version)
	{
		cdc_buf_reset(&entry->value_schema);
		cdc_buf_reset(&entry->key_schema);
		if (format->ops == &cdc_format_debezium_unwrapped_json)
			make_row_schema(format, table, &entry->value_schema);
		else
			make_value_schema(format, table, &entry->value_schema);
		make_key_schema(format, table, &entry->key_schema);
		entry->version = entry->value_schema.status == CDC_OK && entry->key_schema.status == CDC_OK ? table->version : 0;
	}
	return entry;
}

const CdcBuf *
format_value_schema(CdcFormat *format, const CdcOutTable *table)
{
	return &cached(format, table)->value_schema;
}

const CdcBuf *
format_key_schema(CdcFormat *format, const CdcOutTable *table)
{
	return &cached(format, table)->key_schema;
}
