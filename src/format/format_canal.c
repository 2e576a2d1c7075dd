/*-------------------------------------------------------------------------
 *
 * format_canal.c
 *	  Canal JSON: Canal's flat message.
 *
 * NOTES
 *	  {"data", "database", "es", "id", "isDdl", "mysqlType", "old", "pkNames", "sql",
 *	  "sqlType", "table", "ts", "type"}: data and old are arrays of one row, values
 *	  are strings or null. database is the schema, which is to PostgreSQL what a
 *	  database is to MySQL. mysqlType has PostgreSQL's types, sqlType numbers of
 *	  java.sql.Types. es is when it was committed, ts when it was decoded, id the
 *	  place of the change in the log.
 *
 *	  type		INSERT (of a copied row, too), UPDATE, DELETE; of DDL TRUNCATE, CREATE, ALTER, RENAME, ERASE
 *	  old		of an UPDATE: the columns that changed, as far as the log has the old row; {} when it has none
 *	  data		of a DELETE: what the log has of the old row. What the log does not have is left out,
 *				and named in "_cdc_bridge" (format_place.c)
 *
 *	  DDL has no data, and tells the definition by mysqlType, sqlType and pkNames;
 *	  sql is empty, as the statement's text is not shipped. Canal has no
 *	  words for transactions and messages.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "format/format.h"

#include "format/json_text.h"

static void
make_types(const CdcOutTable *table, CdcBuf *out)
{
	cdc_buf_add_str(out, ",\"mysqlType\":{");
	for (uint32_t i = 0; i < table->ncolumns; i++)
	{
		if (i > 0)
			cdc_buf_add_char(out, ',');
		json_add_name(out, table->columns[i].name);
		json_add_cstring(out, table->columns[i].type_text);
	}
	cdc_buf_add_str(out, "},\"sqlType\":{");
	for (uint32_t i = 0; i < table->ncolumns; i++)
	{
		if (i > 0)
			cdc_buf_add_char(out, ',');
		json_add_name(out, table->columns[i].name);
		json_add_int(out, format_jdbc_type(&table->columns[i]));
	}
	cdc_buf_add_str(out, "},\"pkNames\":");
	if (table->nkey > 0)
		format_add_key_names(table, out);
	else
		cdc_buf_add_str(out, "null");
}

/* mysqlType, sqlType and pkNames are the same for all changes of a table. */
static void
add_types(CdcFormat *format, const CdcOutTable *table, CdcBuf *out)
{
	CdcFormatCached *entry = &format->cache[table->version % CDC_FORMAT_CACHE_SIZE];

	if (entry->version != table->version)
	{
		cdc_buf_reset(&entry->value_schema);
		make_types(table, &entry->value_schema);
		entry->version = entry->value_schema.status == CDC_OK ? table->version : 0;
	}
	if (entry->value_schema.status != CDC_OK && out->status == CDC_OK)
		out->status = entry->value_schema.status;
	cdc_buf_add(out, entry->value_schema.data, entry->value_schema.len);
}

static const char *
type_text(const CdcRecord *record)
{
	if (record->kind == CDC_RECORD_TRUNCATE)
		return "TRUNCATE";
	if (record->kind == CDC_RECORD_SCHEMA)
	{
		switch (record->schema_change->op)
		{
			case CDC_OUT_CREATE:
				return record->schema_change->old_name != NULL ? "RENAME" : "CREATE";
			case CDC_OUT_ALTER:
				return record->schema_change->old_name != NULL ? "RENAME" : "ALTER";
			case CDC_OUT_DROP:
				return record->schema_change->new_name != NULL ? "RENAME" : "ERASE";
		}
	}
	switch (record->op)
	{
		case CDC_OUT_INSERT:
		case CDC_OUT_READ:
			return "INSERT";
		case CDC_OUT_UPDATE:
			return "UPDATE";
		case CDC_OUT_DELETE:
			return "DELETE";
	}
	return "";
}

static void
add_rows(CdcFormat *format, const CdcRecord *record, const CdcCell *row, CdcBuf *out)
{
	cdc_buf_add_str(out, "{\"data\":[");
	if (row != NULL)
		format_add_row(format, record->table, row, false, out);
	else
		cdc_buf_add_str(out, "{}");
	cdc_buf_add_str(out, "],\"old\":");
	if (record->op == CDC_OUT_UPDATE && record->after != NULL)
	{
		cdc_buf_add_char(out, '[');
		format_add_difference(format, record->table, record->before, record->after, out);
		cdc_buf_add_char(out, ']');
	}
	else
		cdc_buf_add_str(out, "null");
}

static void
canal_value(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out)
{
	bool		is_change = record->kind == CDC_RECORD_CHANGE;
	const CdcCell *row = !is_change ? NULL : record->after != NULL ? record->after : record->before;

	if (!is_change && record->kind != CDC_RECORD_TRUNCATE && record->kind != CDC_RECORD_SCHEMA)
	{
		format_plain_value(format, record, part, out);
		return;
	}
	if (is_change)
		add_rows(format, record, row, out);
	else
		cdc_buf_add_str(out, "{\"data\":null,\"old\":null");
	cdc_buf_add_str(out, ",\"database\":");
	json_add_cstring(out, record->table->schema);
	cdc_buf_add_str(out, ",\"table\":");
	json_add_cstring(out, record->table->name);
	cdc_buf_add_str(out, ",\"es\":");
	json_add_int(out, format_time(record) / 1000);
	cdc_buf_add_str(out, ",\"ts\":");
	json_add_int(out, record->now_us / 1000);
	cdc_buf_add_str(out, ",\"id\":");
	json_add_uint(out, record->lsn);
	cdc_buf_add_str(out, is_change ? ",\"isDdl\":false,\"sql\":\"\",\"type\":\"" : ",\"isDdl\":true,\"sql\":\"\",\"type\":\"");
	cdc_buf_add_str(out, type_text(record));
	cdc_buf_add_char(out, '"');
	/* the definition that a schema change makes is none that changes come with */
	if (record->kind == CDC_RECORD_SCHEMA)
		make_types(record->table, out);
	else
		add_types(format, record->table, out);
	format_add_place(format, record, row, false, out);
	cdc_buf_add_char(out, '}');
}

static bool
canal_key(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out)
{
	(void) part;
	return format_add_change_key(format, record, out);
}

const CdcFormatOps cdc_format_canal_json = {
	.name = "canal-json",
	.description = "Canal's flat message: data, old, type, database, table, mysqlType, pkNames",
	.bytes_as_latin1 = true,
	.all_text = true,
	.sql_times = true,
	.value = canal_value,
	.key = canal_key
};
