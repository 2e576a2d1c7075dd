/*-------------------------------------------------------------------------
 *
 * format_avro_schema.c
 *	  The schemas of what is written in Avro.
 *
 * NOTES
 *	  Names of records are Debezium's: Envelope, Value and Key in the namespace
 *	  server.schema.table, Source and others under io.debezium. A name that Avro
 *	  does not take has its odd characters as _u and four hexadecimal digits
 *	  (avro.c), always in the same way, whatever other columns there are; should
 *	  that be the name of another column, an underscore is put behind. "doc" has
 *	  the name as it is then.
 *
 *	  What a string means is told as Kafka Connect's Avro converter does, by
 *	  "connect.name"; with logical types it is Avro's "logicalType".
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "format/format_avro.h"

#include <string.h>

#include "format/avro.h"
#include "format/json_text.h"

bool
format_avro_is_decimal(const CdcFormat *format, const CdcOutColumn *column)
{
	return format->options.logical_types && column->type == CDC_OUT_NUMERIC && column->precision > 0 &&
		column->scale >= 0 && column->scale <= column->precision;
}

static bool
is_typed_time(const CdcFormat *format, CdcOutType type)
{
	return format->options.logical_types &&
		(type == CDC_OUT_DATE || type == CDC_OUT_TIME || type == CDC_OUT_TIMESTAMP || type == CDC_OUT_TIMESTAMPTZ);
}

bool
format_avro_is_text(const CdcFormat *format, const CdcOutColumn *column)
{
	switch (column->type)
	{
		case CDC_OUT_BOOL:
		case CDC_OUT_INT2:
		case CDC_OUT_INT4:
		case CDC_OUT_INT8:
		case CDC_OUT_OID:
		case CDC_OUT_FLOAT4:
		case CDC_OUT_FLOAT8:
			return false;
		default:
			return !format_avro_is_decimal(format, column) && !is_typed_time(format, column->type);
	}
}

#define NAMED_STRING(name) "{\"type\":\"string\",\"connect.version\":1,\"connect.name\":\"io.debezium." name "\"}"
#define LOGICAL(type, name) "{\"type\":\"" type "\",\"logicalType\":\"" name "\"}"

static const char *
type_text(bool logical, CdcOutType type)
{
	switch (type)
	{
		case CDC_OUT_BOOL:
			return "\"boolean\"";
		case CDC_OUT_INT2:
			return "{\"type\":\"int\",\"connect.type\":\"int16\"}";
		case CDC_OUT_INT4:
			return "\"int\"";
		case CDC_OUT_INT8:
		case CDC_OUT_OID:
			return "\"long\"";
		case CDC_OUT_FLOAT4:
			return "\"float\"";
		case CDC_OUT_FLOAT8:
			return "\"double\"";
		case CDC_OUT_BYTES:
			return "\"bytes\"";
		case CDC_OUT_DATE:
			return logical ? LOGICAL("int", "date") : NAMED_STRING("time.IsoDate");
		case CDC_OUT_TIME:
			return logical ? LOGICAL("long", "time-micros") : NAMED_STRING("time.IsoTime");
		case CDC_OUT_TIMETZ:
			return NAMED_STRING("time.ZonedTime");
		case CDC_OUT_TIMESTAMP:
			return logical ? LOGICAL("long", "local-timestamp-micros") : NAMED_STRING("time.IsoTimestamp");
		case CDC_OUT_TIMESTAMPTZ:
			return logical ? LOGICAL("long", "timestamp-micros") : NAMED_STRING("time.ZonedTimestamp");
		case CDC_OUT_INTERVAL:
			return NAMED_STRING("time.Interval");
		case CDC_OUT_UUID:
			return logical ? LOGICAL("string", "uuid") : NAMED_STRING("data.Uuid");
		case CDC_OUT_JSON:
			return NAMED_STRING("data.Json");
		case CDC_OUT_XML:
			return NAMED_STRING("data.Xml");
		case CDC_OUT_ENUM:
			return NAMED_STRING("data.Enum");
		case CDC_OUT_OTHER:
		case CDC_OUT_NUMERIC:
		case CDC_OUT_TEXT:
		case CDC_OUT_BIT:
			break;
	}
	return "\"string\"";
}

static void
add_type(const CdcFormat *format, const CdcOutColumn *column, CdcBuf *out)
{
	if (format_avro_is_decimal(format, column))
		cdc_buf_printf(out, "{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":%d,\"scale\":%d}", column->precision, column->scale);
	else
		cdc_buf_add_str(out, type_text(format->options.logical_types, column->type));
}

/* Is that text the name of a column before this one, or of any that needs no change? */
static bool
is_taken(const CdcOutTable *table, uint32_t column, const CdcBuf *name, CdcBuf *scratch)
{
	for (uint32_t i = 0; i < table->ncolumns; i++)
	{
		if (i == column)
			continue;
		cdc_buf_reset(scratch);
		avro_add_name(scratch, table->columns[i].name);
		if (scratch->status == CDC_OK && scratch->len == name->len && memcmp(scratch->data, name->data, name->len) == 0 &&
			(i < column || strcmp(scratch->data, table->columns[i].name) == 0))
			return true;
	}
	return false;
}

static void
add_field_name(const CdcOutTable *table, uint32_t column, CdcBuf *out)
{
	const char *own = table->columns[column].name;
	CdcBuf		name;
	CdcBuf		scratch;

	cdc_buf_init(&name, out->allocator, 0);
	cdc_buf_init(&scratch, out->allocator, 0);
	avro_add_name(&name, own);
	while (name.status == CDC_OK && strcmp(name.data, own) != 0 && is_taken(table, column, &name, &scratch))
		cdc_buf_add_char(&name, '_');
	if (name.status == CDC_OK && scratch.status == CDC_OK)
	{
		cdc_buf_add_str(out, "{\"name\":");
		json_add_string(out, name.data, name.len);
		if (strcmp(name.data, own) != 0)
		{
			cdc_buf_add_str(out, ",\"doc\":");
			json_add_cstring(out, own);
		}
	}
	else if (out->status == CDC_OK)
		out->status = name.status != CDC_OK ? name.status : scratch.status;
	cdc_buf_free(&name);
	cdc_buf_free(&scratch);
}

/* "server.schema.table" */
static void
add_namespace(const CdcFormat *format, const CdcOutTable *table, CdcBuf *out)
{
	avro_add_name(out, format->options.server_name);
	cdc_buf_add_char(out, '.');
	avro_add_name(out, table->schema);
	cdc_buf_add_char(out, '.');
	avro_add_name(out, table->name);
}

#define FIELD(name, type) "{\"name\":\"" name "\",\"type\":" type "}"
#define OPTIONAL(name, type) "{\"name\":\"" name "\",\"type\":[\"null\"," type "],\"default\":null}"
#define STRING "\"string\""
#define LONG "\"long\""

static const char source[] =
	FIELD("source", "{\"type\":\"record\",\"name\":\"Source\",\"namespace\":\"io.debezium.connector.postgresql\",\"fields\":["
		  FIELD("version", STRING) "," FIELD("connector", STRING) "," FIELD("name", STRING) "," FIELD("ts_ms", LONG) ","
		  OPTIONAL("snapshot", STRING) "," FIELD("db", STRING) "," OPTIONAL("sequence", STRING) "," OPTIONAL("ts_us", LONG) ","
		  OPTIONAL("ts_ns", LONG) "," FIELD("schema", STRING) "," FIELD("table", STRING) "," OPTIONAL("txId", LONG) ","
		  OPTIONAL("lsn", LONG) "," OPTIONAL("xmin", LONG) "," OPTIONAL("origin", STRING) "," OPTIONAL("xid", LONG) ","
		  OPTIONAL("seq", LONG) "],\"connect.name\":\"io.debezium.connector.postgresql.Source\"}");

static const char op_and_times[] =
	FIELD("op", STRING) "," OPTIONAL("ts_ms", LONG) "," OPTIONAL("ts_us", LONG) "," OPTIONAL("ts_ns", LONG);

static const char transaction[] =
	OPTIONAL("transaction", "{\"type\":\"record\",\"name\":\"block\",\"namespace\":\"event\",\"fields\":["
			 FIELD("id", STRING) "," FIELD("total_order", LONG) "," OPTIONAL("data_collection_order", LONG)
			 "],\"connect.version\":1,\"connect.name\":\"event.block\"}");

static const char truncate[] =
	OPTIONAL("cascade", "\"boolean\"") "," OPTIONAL("restart_identity", "\"boolean\"") ","
	OPTIONAL("partition_of", "{\"type\":\"record\",\"name\":\"partition_of\",\"fields\":["
			 FIELD("schema", STRING) "," FIELD("table", STRING) "]}");

#define RECORD(namespace, name) "{\"type\":\"record\",\"name\":\"" name "\",\"namespace\":\"" namespace "\",\"fields\":["
#define END_RECORD(namespace, name) "],\"connect.version\":1,\"connect.name\":\"" namespace "." name "\"}"
#define POSTGRESQL "io.debezium.connector.postgresql"
#define COMMON "io.debezium.connector.common"

static void
make_row(const CdcFormat *format, const CdcOutTable *table, CdcBuf *out)
{
	cdc_buf_add_str(out, "{\"type\":\"record\",\"name\":\"Value\",\"fields\":[");
	for (uint32_t i = 0; i < table->ncolumns; i++)
	{
		if (i > 0)
			cdc_buf_add_char(out, ',');
		add_field_name(table, i, out);
		cdc_buf_add_str(out, ",\"type\":[\"null\",");
		add_type(format, &table->columns[i], out);
		cdc_buf_add_str(out, "],\"default\":null}");
	}
	cdc_buf_add_str(out, "]}");
}

static void
make_envelope(const CdcFormat *format, const CdcOutTable *table, CdcBuf *out)
{
	cdc_buf_add_str(out, "{\"type\":\"record\",\"name\":\"Envelope\",\"namespace\":\"");
	add_namespace(format, table, out);
	cdc_buf_add_str(out, "\",\"fields\":[{\"name\":\"before\",\"type\":[\"null\",");
	make_row(format, table, out);
	cdc_buf_add_str(out, "],\"default\":null}," OPTIONAL("after", "\"Value\"") ",");
	cdc_buf_add_str(out, source);
	cdc_buf_add_char(out, ',');
	cdc_buf_add_str(out, op_and_times);
	cdc_buf_add_char(out, ',');
	cdc_buf_add_str(out, transaction);
	cdc_buf_add_char(out, ',');
	cdc_buf_add_str(out, truncate);
	cdc_buf_add_str(out, "]}");
}

static void
make_key(const CdcFormat *format, const CdcOutTable *table, CdcBuf *out)
{
	cdc_buf_add_str(out, "{\"type\":\"record\",\"name\":\"Key\",\"namespace\":\"");
	add_namespace(format, table, out);
	cdc_buf_add_str(out, "\",\"fields\":[");
	for (uint32_t i = 0; i < table->nkey; i++)
	{
		const CdcOutColumn *column = &table->columns[table->key[i]];

		if (i > 0)
			cdc_buf_add_char(out, ',');
		add_field_name(table, table->key[i], out);
		cdc_buf_add_str(out, column->nullable ? ",\"type\":[\"null\"," : ",\"type\":");
		add_type(format, column, out);
		cdc_buf_add_str(out, column->nullable ? "],\"default\":null}" : "}");
	}
	cdc_buf_add_str(out, "]}");
}

static void
make_document(CdcRecordKind kind, CdcBuf *value, CdcBuf *key)
{
	if (kind == CDC_RECORD_MESSAGE)
	{
		cdc_buf_add_str(value, RECORD(POSTGRESQL, "MessageValue"));
		cdc_buf_add_str(value, op_and_times);
		cdc_buf_add_char(value, ',');
		cdc_buf_add_str(value, source);
		cdc_buf_add_char(value, ',');
		cdc_buf_add_str(value, transaction);
		cdc_buf_add_str(value, "," FIELD("message", RECORD(POSTGRESQL, "Message") OPTIONAL("prefix", STRING) "," OPTIONAL("content", "\"bytes\"")
											 END_RECORD(POSTGRESQL, "Message")) END_RECORD(POSTGRESQL, "MessageValue"));
		cdc_buf_add_str(key, RECORD(POSTGRESQL, "MessageKey") OPTIONAL("prefix", STRING) END_RECORD(POSTGRESQL, "MessageKey"));
	}
	else if (kind == CDC_RECORD_SCHEMA)
	{
		cdc_buf_add_str(value, RECORD(POSTGRESQL, "SchemaChangeValue"));
		cdc_buf_add_str(value, source);
		cdc_buf_add_str(value, "," FIELD("ts_ms", LONG) "," OPTIONAL("databaseName", STRING) "," OPTIONAL("schemaName", STRING) ","
						OPTIONAL("command", STRING) "," FIELD("change", NAMED_STRING("data.Json")) ",");
		cdc_buf_add_str(value, transaction);
		cdc_buf_add_str(value, END_RECORD(POSTGRESQL, "SchemaChangeValue"));
		cdc_buf_add_str(key, RECORD(POSTGRESQL, "SchemaChangeKey") FIELD("databaseName", STRING) END_RECORD(POSTGRESQL, "SchemaChangeKey"));
	}
	else
	{
		cdc_buf_add_str(value, RECORD(COMMON, "TransactionMetadataValue") FIELD("status", STRING) "," FIELD("id", STRING) "," FIELD("ts_ms", LONG) ","
						OPTIONAL("event_count", LONG) ","
						OPTIONAL("data_collections", "{\"type\":\"array\",\"items\":" RECORD("event", "collection")
								 FIELD("data_collection", STRING) "," FIELD("event_count", LONG) END_RECORD("event", "collection") "}") ","
						OPTIONAL("gid", STRING) "," OPTIONAL("xid", LONG) END_RECORD(COMMON, "TransactionMetadataValue"));
		cdc_buf_add_str(key, RECORD(COMMON, "TransactionMetadataKey") FIELD("id", STRING) END_RECORD(COMMON, "TransactionMetadataKey"));
	}
}

/* Of a table by its version; of what is no change of a row one for each kind. */
CdcFormatCached *
format_avro_schemas(CdcFormat *format, const CdcRecord *record)
{
	bool		of_table = record->kind == CDC_RECORD_CHANGE || record->kind == CDC_RECORD_TRUNCATE;
	uint64_t	version = of_table ? record->table->version : 1;
	CdcFormatCached *entry = of_table ? &format->cache[version % CDC_FORMAT_CACHE_SIZE]
		: &format->documents[record->kind == CDC_RECORD_MESSAGE ? 0 : record->kind == CDC_RECORD_SCHEMA ? 1 : 2];

	if (entry->version == version)
		return entry;
	cdc_buf_reset(&entry->value_schema);
	cdc_buf_reset(&entry->key_schema);
	entry->value_id_known = entry->key_id_known = false;
	if (of_table)
	{
		make_envelope(format, record->table, &entry->value_schema);
		make_key(format, record->table, &entry->key_schema);
	}
	else
		make_document(record->kind, &entry->value_schema, &entry->key_schema);
	entry->version = entry->value_schema.status == CDC_OK && entry->key_schema.status == CDC_OK ? version : 0;
	return entry;
}

CdcStatus
cdc_format_missing_schema(CdcFormat *format, const CdcRecord *record, CdcFormatSchema *schema)
{
	CdcFormatCached *entry;
	bool		has_key = record->kind != CDC_RECORD_TRUNCATE && (record->kind != CDC_RECORD_CHANGE || format_key_row(record) != NULL);

	if (!format->ops->is_binary || cdc_format_parts(format, record) == 0)
		return CDC_END;
	entry = format_avro_schemas(format, record);
	if (entry->version == 0)
		return entry->value_schema.status != CDC_OK ? entry->value_schema.status : entry->key_schema.status;
	schema->is_key = entry->value_id_known;
	if (entry->value_id_known && (entry->key_id_known || !has_key))
		return CDC_END;
	schema->text = schema->is_key ? entry->key_schema.data : entry->value_schema.data;
	schema->len = schema->is_key ? entry->key_schema.len : entry->value_schema.len;
	return CDC_OK;
}

void
cdc_format_schema_id(CdcFormat *format, const CdcRecord *record, const CdcFormatSchema *schema, uint32_t id)
{
	CdcFormatCached *entry = format_avro_schemas(format, record);

	if (schema->is_key)
		entry->key_id = id;
	else
		entry->value_id = id;
	entry->key_id_known |= schema->is_key;
	entry->value_id_known |= !schema->is_key;
}
