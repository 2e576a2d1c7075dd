/*-------------------------------------------------------------------------
 *
 * format_maxwell.c
 *	  Maxwell JSON.
 *
 * NOTES
 *	  insert (of a copied row, too), update, delete
 *	    {"database", "table", "type", "ts", "xid", "xoffset", "position", "data", "old"}
 *	    database is the schema; ts are seconds; old, of an update, the columns that
 *	    changed, as far as the log has the old row; data of a delete what the log has
 *	    of the old row.
 *	  table-create, table-alter, table-drop
 *	    {"type", "database", "table", "old", "def", "ts", "sql", "position"}
 *	    ts are milliseconds here; old only names a table that was renamed; sql is empty.
 *	  Keys are as Maxwell's producer for Kafka makes them: {"database", "table", "pk.column"}.
 *
 *	  Maxwell marks the last row of a transaction ("commit"), which is not known
 *	  when the row is written, so none has that: seq and commit_lsn of "_cdc_bridge"
 *	  (format_place.c) tell transactions apart. It has no words for TRUNCATE,
 *	  transactions and messages.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "format/format.h"

#include "format/json_text.h"

static void
add_names(const CdcOutTable *table, CdcBuf *out)
{
	cdc_buf_add_str(out, "{\"database\":");
	json_add_cstring(out, table->schema);
	cdc_buf_add_str(out, ",\"table\":");
	json_add_cstring(out, table->name);
}

static void
add_position(const CdcRecord *record, CdcBuf *out)
{
	cdc_buf_add_str(out, ",\"position\":\"");
	format_add_lsn(out, record->lsn);
	cdc_buf_add_char(out, '"');
}

static const char *
change_text(CdcOutOp op)
{
	switch (op)
	{
		case CDC_OUT_INSERT:
		case CDC_OUT_READ:
			return "insert";
		case CDC_OUT_UPDATE:
			return "update";
		case CDC_OUT_DELETE:
			return "delete";
	}
	return "";
}

static void
add_change(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	const CdcCell *row = record->after != NULL ? record->after : record->before;

	add_names(record->table, out);
	cdc_buf_add_str(out, ",\"type\":\"");
	cdc_buf_add_str(out, change_text(record->op));
	cdc_buf_add_str(out, "\",\"ts\":");
	json_add_int(out, format_time(record) / 1000000);
	if (record->txn != NULL)
	{
		cdc_buf_add_str(out, ",\"xid\":");
		json_add_uint(out, record->txn->xid);
		cdc_buf_add_str(out, ",\"xoffset\":");
		json_add_uint(out, record->order > 0 ? record->order - 1 : 0);
	}
	add_position(record, out);
	cdc_buf_add_str(out, ",\"data\":");
	if (row != NULL)
		format_add_row(format, record->table, row, false, out);
	else
		cdc_buf_add_str(out, "{}");
	if (record->op == CDC_OUT_UPDATE && record->after != NULL)
	{
		cdc_buf_add_str(out, ",\"old\":");
		format_add_difference(format, record->table, record->before, record->after, out);
	}
	format_add_place(format, record, row, false, out);
	cdc_buf_add_char(out, '}');
}

static void
add_definition(const CdcOutTable *table, CdcBuf *out)
{
	add_names(table, out);
	cdc_buf_add_str(out, ",\"charset\":\"utf8mb4\",\"columns\":[");
	for (uint32_t i = 0; i < table->ncolumns; i++)
	{
		cdc_buf_add_str(out, i > 0 ? ",{\"type\":" : "{\"type\":");
		json_add_cstring(out, table->columns[i].type_text);
		cdc_buf_add_str(out, ",\"name\":");
		json_add_cstring(out, table->columns[i].name);
		cdc_buf_add_char(out, '}');
	}
	cdc_buf_add_str(out, "],\"primary-key\":");
	format_add_key_names(table, out);
	cdc_buf_add_char(out, '}');
}

static void
add_schema_change(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	static const char *const types[] = {
		[CDC_OUT_CREATE] = "table-create",
		[CDC_OUT_ALTER] = "table-alter",
		[CDC_OUT_DROP] = "table-drop"
	};
	const CdcOutSchemaChange *change = record->schema_change;

	add_names(record->table, out);
	cdc_buf_add_str(out, ",\"type\":\"");
	cdc_buf_add_str(out, types[change->op]);
	cdc_buf_add_char(out, '"');
	if (change->old_name != NULL)
	{
		cdc_buf_add_str(out, ",\"old\":{\"database\":");
		json_add_cstring(out, change->old_schema);
		cdc_buf_add_str(out, ",\"table\":");
		json_add_cstring(out, change->old_name);
		cdc_buf_add_char(out, '}');
	}
	if (change->columns != NULL)
	{
		cdc_buf_add_str(out, ",\"def\":");
		add_definition(record->table, out);
	}
	cdc_buf_add_str(out, ",\"ts\":");
	json_add_int(out, format_time(record) / 1000);
	cdc_buf_add_str(out, ",\"sql\":\"\"");
	add_position(record, out);
	format_add_place(format, record, NULL, false, out);
	cdc_buf_add_char(out, '}');
}

static void
maxwell_value(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out)
{
	if (record->kind == CDC_RECORD_CHANGE)
		add_change(format, record, out);
	else if (record->kind == CDC_RECORD_SCHEMA)
		add_schema_change(format, record, out);
	else
		format_plain_value(format, record, part, out);
}

static bool
maxwell_key(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out)
{
	const CdcCell *row = format_key_row(record);
	const CdcOutTable *table = record->table;

	(void) part;
	if (row == NULL)
		return false;
	add_names(table, out);
	for (uint32_t i = 0; i < table->nkey; i++)
	{
		const CdcOutColumn *column = &table->columns[table->key[i]];

		cdc_buf_add_char(out, ',');
		json_add_dotted(out, "pk", column->name);
		cdc_buf_add_char(out, ':');
		format_add_cell(format, column, &row[table->key[i]], out);
	}
	cdc_buf_add_char(out, '}');
	return true;
}

const CdcFormatOps cdc_format_maxwell_json = {
	.name = "maxwell-json",
	.description = "Maxwell's form: database, table, type, ts, xid, data, old",
	.numeric_as_number = true,
	.json_embedded = true,
	.sql_times = true,
	.value = maxwell_value,
	.key = maxwell_key
};
