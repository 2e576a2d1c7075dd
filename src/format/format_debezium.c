/*-------------------------------------------------------------------------
 *
 * format_debezium.c
 *	  Debezium JSON: the envelope that Debezium's connectors put around a row.
 *
 * NOTES
 *	  What is written follows Debezium's documentation of its PostgreSQL
 *	  connector (change events, transaction metadata, data type mapping), in the
 *	  forms that lose nothing: decimal.handling.mode=string,
 *	  time.precision.mode=isostring, interval.handling.mode=string. source.connector
 *	  is "postgresql", because consumers look at it; source.version says
 *	  that it was cdc_bridge.
 *
 *	  change       {"before", "after", "source", "op", "ts_ms", "transaction"}, op c, u or d; r for a row of an initial copy
 *	  TRUNCATE     the same with op t, without rows
 *	  message      {"op": "m", "ts_ms", "source", "message": {"prefix", "content"}}, content in base64
 *	  schema change {"source", "ts_ms", "databaseName", "schemaName", "ddl", "tableChanges", "transaction"}, see format_table.c
 *	  transaction  {"status": "BEGIN" or "END", "id", "ts_ms", "event_count", "data_collections"}
 *
 *	  Keys: {columns of the key}, {"prefix"} of a message, {"databaseName"} of a schema change, {"id"} of a mark.
 *
 *	  On top of Debezium: before has the columns that the log has, and no others;
 *	  source.seq is the change's place in its transaction; transactions that are
 *	  prepared or streamed have marks of their own (STREAM_START, ..., which
 *	  Debezium does not ask a server for); a TRUNCATE has "cascade",
 *	  "restart_identity" and, for one partition alone, "partition_of".
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "format/format.h"

#include "format/json_text.h"

const char *
format_op_letter(const CdcRecord *record)
{
	if (record->kind == CDC_RECORD_TRUNCATE)
		return "t";
	if (record->kind == CDC_RECORD_MESSAGE)
		return "m";
	switch (record->op)
	{
		case CDC_OUT_INSERT:
			return "c";
		case CDC_OUT_UPDATE:
			return "u";
		case CDC_OUT_DELETE:
			return "d";
		case CDC_OUT_READ:
			return "r";
	}
	return "";
}

/*
 * Debezium's name of a transaction: its xid and where it ends. Where one is
 * told of before its end is known, its xid alone is its name in all records.
 */
void
format_add_txn_id(const CdcOutTxn *txn, CdcBuf *out)
{
	cdc_buf_add_char(out, '"');
	json_add_uint(out, txn->xid);
	if (txn->commit_lsn != 0 && txn->gid == NULL && !txn->is_streamed)
	{
		cdc_buf_add_char(out, ':');
		json_add_uint(out, txn->commit_lsn);
	}
	cdc_buf_add_char(out, '"');
}

static void
add_now(const CdcRecord *record, CdcBuf *out)
{
	json_add_moment(out, "\"ts_ms\":", ",\"ts_us\":", ",\"ts_ns\":", record->now_us);
}

/* With schemas a document is the payload of an object that has its schema too. */
static void
begin_payload(const CdcBuf *schema, CdcBuf *out)
{
	cdc_buf_add_str(out, "{\"schema\":");
	cdc_buf_add(out, schema->data, schema->len);
	if (schema->status != CDC_OK && out->status == CDC_OK)
		out->status = schema->status;
	cdc_buf_add_str(out, ",\"payload\":");
}

static void
add_transaction_block(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	cdc_buf_add_str(out, ",\"transaction\":");
	if (!format->options.transaction || record->txn == NULL)
	{
		cdc_buf_add_str(out, "null");
		return;
	}
	cdc_buf_add_str(out, "{\"id\":");
	format_add_txn_id(record->txn, out);
	cdc_buf_add_str(out, ",\"total_order\":");
	json_add_uint(out, record->order);
	cdc_buf_add_str(out, ",\"data_collection_order\":");
	if (record->table_order != 0)
		json_add_uint(out, record->table_order);
	else
		cdc_buf_add_str(out, "null");
	cdc_buf_add_char(out, '}');
}

static void
add_before_or_after(CdcFormat *format, const char *name, const CdcRecord *record, const CdcCell *row, CdcBuf *out)
{
	json_add_name(out, name);
	if (row == NULL)
		cdc_buf_add_str(out, "null");
	else
		format_add_row(format, record->table, row, true, out);
	cdc_buf_add_char(out, ',');
}

static void
add_change(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	bool		is_truncate = record->kind == CDC_RECORD_TRUNCATE;

	if (format->options.schemas)
		begin_payload(format_value_schema(format, record->table), out);
	cdc_buf_add_char(out, '{');
	add_before_or_after(format, "before", record, is_truncate ? NULL : record->before, out);
	add_before_or_after(format, "after", record, is_truncate ? NULL : record->after, out);
	format_add_source(format, record, out);
	cdc_buf_add_str(out, ",\"op\":");
	json_add_cstring(out, format_op_letter(record));
	cdc_buf_add_char(out, ',');
	add_now(record, out);
	add_transaction_block(format, record, out);
	if (is_truncate)
	{
		cdc_buf_add_str(out, record->cascade ? ",\"cascade\":true" : ",\"cascade\":false");
		cdc_buf_add_str(out, record->restart_identity ? ",\"restart_identity\":true" : ",\"restart_identity\":false");
		if (record->root_name != NULL)
		{
			cdc_buf_add_str(out, ",\"partition_of\":{\"schema\":");
			json_add_cstring(out, record->root_schema);
			cdc_buf_add_str(out, ",\"table\":");
			json_add_cstring(out, record->root_name);
			cdc_buf_add_char(out, '}');
		}
	}
	cdc_buf_add_char(out, '}');
	if (format->options.schemas)
		cdc_buf_add_char(out, '}');
}

static void
add_message(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	cdc_buf_add_str(out, "{\"op\":\"m\",");
	add_now(record, out);
	cdc_buf_add_char(out, ',');
	format_add_source(format, record, out);
	add_transaction_block(format, record, out);
	cdc_buf_add_str(out, ",\"message\":{\"prefix\":");
	json_add_cstring(out, record->prefix);
	cdc_buf_add_str(out, ",\"content\":");
	json_add_base64(out, record->content, record->content_len);
	cdc_buf_add_str(out, "}}");
}

static void
add_schema_change(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	cdc_buf_add_char(out, '{');
	format_add_source(format, record, out);
	cdc_buf_add_str(out, ",\"ts_ms\":");
	json_add_int(out, record->now_us / 1000);
	cdc_buf_add_char(out, ',');
	format_add_table_changes(format, record, out);
	add_transaction_block(format, record, out);
	cdc_buf_add_char(out, '}');
}

const char *
format_status_text(CdcRecordKind kind)
{
	switch (kind)
	{
		case CDC_RECORD_BEGIN:
			return "BEGIN";
		case CDC_RECORD_COMMIT:
			return "END";
		case CDC_RECORD_BEGIN_PREPARE:
			return "BEGIN_PREPARE";
		case CDC_RECORD_PREPARE:
			return "PREPARE";
		case CDC_RECORD_COMMIT_PREPARED:
			return "COMMIT_PREPARED";
		case CDC_RECORD_ROLLBACK_PREPARED:
			return "ROLLBACK_PREPARED";
		case CDC_RECORD_STREAM_START:
			return "STREAM_START";
		case CDC_RECORD_STREAM_STOP:
			return "STREAM_STOP";
		case CDC_RECORD_STREAM_ABORT:
			return "STREAM_ABORT";
		case CDC_RECORD_STREAM_COMMIT:
			return "STREAM_COMMIT";
		case CDC_RECORD_STREAM_PREPARE:
			return "STREAM_PREPARE";
		case CDC_RECORD_CHANGE:
		case CDC_RECORD_TRUNCATE:
		case CDC_RECORD_MESSAGE:
		case CDC_RECORD_SCHEMA:
			break;
	}
	return "";
}

static void
add_counts(const CdcOutTxn *txn, CdcBuf *out)
{
	cdc_buf_add_char(out, '[');
	for (uint32_t i = 0; i < txn->ncounts; i++)
	{
		cdc_buf_add_str(out, i > 0 ? ",{\"data_collection\":" : "{\"data_collection\":");
		json_add_dotted(out, txn->counts[i].schema, txn->counts[i].name);
		cdc_buf_add_str(out, ",\"event_count\":");
		json_add_uint(out, txn->counts[i].count);
		cdc_buf_add_char(out, '}');
	}
	cdc_buf_add_char(out, ']');
}

static void
add_mark(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	const CdcOutTxn *txn = record->txn;
	bool		ends = record->kind == CDC_RECORD_COMMIT || record->kind == CDC_RECORD_PREPARE;

	(void) format;
	cdc_buf_add_str(out, "{\"status\":");
	json_add_cstring(out, format_status_text(record->kind));
	cdc_buf_add_str(out, ",\"id\":");
	format_add_txn_id(txn, out);
	cdc_buf_add_str(out, ",\"ts_ms\":");
	json_add_int(out, format_time(record) / 1000);
	cdc_buf_add_str(out, ",\"event_count\":");
	if (ends)
		json_add_uint(out, txn->nchanges);
	else
		cdc_buf_add_str(out, "null");
	cdc_buf_add_str(out, ",\"data_collections\":");
	if (ends)
		add_counts(txn, out);
	else
		cdc_buf_add_str(out, "null");
	if (txn->gid != NULL)
	{
		cdc_buf_add_str(out, ",\"gid\":");
		json_add_cstring(out, txn->gid);
	}
	if (record->kind == CDC_RECORD_STREAM_ABORT)
	{
		cdc_buf_add_str(out, ",\"xid\":");
		json_add_uint(out, record->xid);
	}
	cdc_buf_add_char(out, '}');
}

void
format_debezium_value(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out)
{
	bool		schema = format->options.schemas && record->kind != CDC_RECORD_CHANGE && record->kind != CDC_RECORD_TRUNCATE;

	(void) part;
	if (schema)
	{
		cdc_buf_add_str(out, "{\"schema\":");
		format_add_document_schema(record->kind, out);
		cdc_buf_add_str(out, ",\"payload\":");
	}
	switch (record->kind)
	{
		case CDC_RECORD_CHANGE:
		case CDC_RECORD_TRUNCATE:
			add_change(format, record, out);
			break;
		case CDC_RECORD_MESSAGE:
			add_message(format, record, out);
			break;
		case CDC_RECORD_SCHEMA:
			add_schema_change(format, record, out);
			break;
		default:
			add_mark(format, record, out);
			break;
	}
	if (schema)
		cdc_buf_add_char(out, '}');
}

/* Of what is no change: the prefix of a message, the database of a schema change, the transaction of a mark. */
static void
add_document_key(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	if (format->options.schemas)
	{
		cdc_buf_add_str(out, "{\"schema\":");
		format_add_document_key_schema(record->kind, out);
		cdc_buf_add_str(out, ",\"payload\":");
	}
	if (record->kind == CDC_RECORD_MESSAGE)
	{
		cdc_buf_add_str(out, "{\"prefix\":");
		json_add_cstring(out, record->prefix);
	}
	else if (record->kind == CDC_RECORD_SCHEMA)
	{
		cdc_buf_add_str(out, "{\"databaseName\":");
		json_add_cstring(out, format->options.database);
	}
	else
	{
		cdc_buf_add_str(out, "{\"id\":");
		format_add_txn_id(record->txn, out);
	}
	cdc_buf_add_str(out, format->options.schemas ? "}}" : "}");
}

bool
format_debezium_key(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out)
{
	const CdcCell *row;

	(void) part;
	if (record->kind == CDC_RECORD_TRUNCATE)
		return false;
	if (record->kind != CDC_RECORD_CHANGE)
	{
		add_document_key(format, record, out);
		return true;
	}
	row = format_key_row(record);
	if (row == NULL)
		return false;
	if (format->options.schemas)
		begin_payload(format_key_schema(format, record->table), out);
	format_add_key(format, record->table, row, out);
	if (format->options.schemas)
		cdc_buf_add_char(out, '}');
	return true;
}

const CdcFormatOps cdc_format_debezium_json = {
	.name = "debezium-json",
	.description = "Debezium's envelope: before, after, source, op, ts_ms, transaction",
	.value = format_debezium_value,
	.key = format_debezium_key
};
