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

/* "server.schema.table.Value" */
static void
add_struct_name(const CdcFormat *format, const CdcOutTable *table, const char *what, CdcBuf *out)
{
	CdcBuf		name;

	cdc_buf_init(&name, out->allocator, 0);
	cdc_buf_printf(&name, "%s.%s.%s.%s", format->options.server_name, table->schema, table->name, what);
	if (name.status == CDC_OK)
		json_add_string(out, name.data, name.len);
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

#define FIELD(type, optional, field) "{\"type\":\"" type "\",\"optional\":" optional ",\"field\":\"" field "\"}"

/* The rest of the envelope is the same for every table. */
static const char source_field[] =
	"{\"type\":\"struct\",\"fields\":["
	FIELD("string", "false", "version") ","
	FIELD("string", "false", "connector") ","
	FIELD("string", "false", "name") ","
	FIELD("int64", "false", "ts_ms") ","
	FIELD("string", "true", "snapshot") ","
	FIELD("string", "false", "db") ","
	FIELD("string", "true", "sequence") ","
	FIELD("string", "false", "schema") ","
	FIELD("string", "false", "table") ","
	FIELD("int64", "true", "txId") ","
	FIELD("int64", "true", "lsn") ","
	FIELD("int64", "true", "xmin") ","
	FIELD("string", "true", "origin") ","
	FIELD("int64", "true", "xid") ","
	FIELD("int64", "true", "seq")
	"],\"optional\":false,\"name\":\"io.debezium.connector.postgresql.Source\",\"field\":\"source\"}";

static const char rest_of_envelope[] =
	FIELD("string", "false", "op") ","
	FIELD("int64", "true", "ts_ms") ","
	"{\"type\":\"struct\",\"fields\":["
	FIELD("string", "false", "id") ","
	FIELD("int64", "false", "total_order") ","
	FIELD("int64", "true", "data_collection_order")
	"],\"optional\":true,\"name\":\"event.block\",\"version\":1,\"field\":\"transaction\"},"
	FIELD("boolean", "true", "cascade") ","
	FIELD("boolean", "true", "restart_identity") ","
	"{\"type\":\"struct\",\"fields\":["
	FIELD("string", "false", "schema") ","
	FIELD("string", "false", "table")
	"],\"optional\":true,\"field\":\"partition_of\"}";

static void
make_value_schema(const CdcFormat *format, const CdcOutTable *table, CdcBuf *out)
{
	cdc_buf_add_str(out, "{\"type\":\"struct\",\"fields\":[");
	add_row_field(format, table, "before", out);
	cdc_buf_add_char(out, ',');
	add_row_field(format, table, "after", out);
	cdc_buf_add_char(out, ',');
	cdc_buf_add_str(out, source_field);
	cdc_buf_add_char(out, ',');
	cdc_buf_add_str(out, rest_of_envelope);
	cdc_buf_add_str(out, "],\"optional\":false,\"name\":");
	add_struct_name(format, table, "Envelope", out);
	cdc_buf_add_str(out, ",\"version\":1}");
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
