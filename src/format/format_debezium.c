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

static const char *
op_letter(const CdcRecord *record)
{
	if (record->kind == CDC_RECORD_TRUNCATE)
		return "t";
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
static void
add_txn_id(const CdcOutTxn *txn, CdcBuf *out)
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
add_millis(CdcBuf *out, const char *name, int64_t micros)
{
	json_add_name(out, name);
	json_add_int(out, micros / 1000);
}

static void
add_source(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	const CdcFormatOptions *options = &format->options;
	const CdcOutTxn *txn = record->txn;
	bool		is_placed = record->table != NULL;

	cdc_buf_add_str(out, "\"source\":{\"version\":");
	json_add_cstring(out, options->version);
	cdc_buf_add_str(out, ",\"connector\":\"postgresql\",\"name\":");
	json_add_cstring(out, options->server_name);
	cdc_buf_add_char(out, ',');
	add_millis(out, "ts_ms", txn != NULL && txn->time_us != 0 ? txn->time_us : record->now_us);
	cdc_buf_add_str(out, record->of_copy ? ",\"snapshot\":\"true\",\"db\":" : ",\"snapshot\":\"false\",\"db\":");
	json_add_cstring(out, options->database);
	cdc_buf_add_str(out, ",\"sequence\":\"[\\\"");
	json_add_uint(out, txn != NULL ? txn->commit_lsn : 0);
	cdc_buf_add_str(out, "\\\",\\\"");
	json_add_uint(out, record->lsn);
	cdc_buf_add_str(out, "\\\"]\",\"schema\":");
	json_add_cstring(out, is_placed ? record->table->schema : "");
	cdc_buf_add_str(out, ",\"table\":");
	json_add_cstring(out, is_placed ? record->table->name : "");
	cdc_buf_add_str(out, ",\"txId\":");
	if (txn != NULL)
		json_add_uint(out, txn->xid);
	else
		cdc_buf_add_str(out, "null");
	cdc_buf_add_str(out, ",\"lsn\":");
	json_add_uint(out, record->lsn);
	cdc_buf_add_str(out, ",\"xmin\":null");
	if (txn != NULL && txn->origin != NULL)
	{
		cdc_buf_add_str(out, ",\"origin\":");
		json_add_cstring(out, txn->origin);
	}
	if (txn != NULL && txn->is_streamed)
	{
		cdc_buf_add_str(out, ",\"xid\":");
		json_add_uint(out, record->xid);
	}
	cdc_buf_add_str(out, ",\"seq\":");
	json_add_uint(out, record->order);
	cdc_buf_add_char(out, '}');
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
	add_txn_id(record->txn, out);
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
	{
		const CdcBuf *schema = format_value_schema(format, record->table);

		cdc_buf_add_str(out, "{\"schema\":");
		cdc_buf_add(out, schema->data, schema->len);
		if (schema->status != CDC_OK && out->status == CDC_OK)
			out->status = schema->status;
		cdc_buf_add_str(out, ",\"payload\":");
	}
	cdc_buf_add_char(out, '{');
	add_before_or_after(format, "before", record, is_truncate ? NULL : record->before, out);
	add_before_or_after(format, "after", record, is_truncate ? NULL : record->after, out);
	add_source(format, record, out);
	cdc_buf_add_str(out, ",\"op\":");
	json_add_cstring(out, op_letter(record));
	cdc_buf_add_char(out, ',');
	add_millis(out, "ts_ms", record->now_us);
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
	add_millis(out, "ts_ms", record->now_us);
	cdc_buf_add_char(out, ',');
	add_source(format, record, out);
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
	add_source(format, record, out);
	cdc_buf_add_char(out, ',');
	add_millis(out, "ts_ms", record->now_us);
	cdc_buf_add_char(out, ',');
	format_add_table_changes(format, record, out);
	add_transaction_block(format, record, out);
	cdc_buf_add_char(out, '}');
}

static const char *
status_text(CdcRecordKind kind)
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
	json_add_cstring(out, status_text(record->kind));
	cdc_buf_add_str(out, ",\"id\":");
	add_txn_id(txn, out);
	cdc_buf_add_char(out, ',');
	add_millis(out, "ts_ms", txn->time_us != 0 ? txn->time_us : record->now_us);
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

static void
debezium_value(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
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
}

static void
debezium_key(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	if (format->options.schemas)
	{
		const CdcBuf *schema = format_key_schema(format, record->table);

		cdc_buf_add_str(out, "{\"schema\":");
		cdc_buf_add(out, schema->data, schema->len);
		if (schema->status != CDC_OK && out->status == CDC_OK)
			out->status = schema->status;
		cdc_buf_add_str(out, ",\"payload\":");
	}
	format_add_key(format, record->table, format_key_row(record), out);
	if (format->options.schemas)
		cdc_buf_add_char(out, '}');
}

const CdcFormatOps cdc_format_debezium_json = {
	.name = "debezium-json",
	.description = "Debezium's envelope: before, after, source, op, ts_ms, transaction",
	.value = debezium_value,
	.key = debezium_key
};
