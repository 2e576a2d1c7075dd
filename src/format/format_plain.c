/*-------------------------------------------------------------------------
 *
 * format_plain.c
 *	  Plain JSON: one flat document for each record, a definition of our own.
 *
 * NOTES
 *	  insert, update, delete
 *	    {"op", "schema", "table", "lsn", "commit_lsn", "xid", "time", "seq", "key", "row", "old", "unchanged", "types"}
 *	    row is the new row (not in a delete), old what the log has of the old one,
 *	    key the key's columns; unchanged names the columns that the change did not
 *	    touch and that stand in row for that reason not. What is empty is left out.
 *	  read: a row of an initial copy
 *	    {"op", "schema", "table", "lsn", "key", "row", "types"}
 *	  truncate; "of_copy" where nobody did that, but the copy of the table begins anew
 *	    {"op", "schema", "table", "lsn", "commit_lsn", "xid", "time", "seq", "cascade", "restart_identity", "partition_of"}
 *	  message
 *	    {"op", "lsn", "commit_lsn", "xid", "time", "seq", "transactional", "prefix", "content" or "content_base64"}
 *	  schema
 *	    {"op", "schema", "table", "lsn", "commit_lsn", "xid", "time", "seq", "change", "command", "previous", "renamed_to", "renamed_column",
 *	    "rewritten", "identity", "key", "columns"}; change is create, alter or drop, see format_table.c
 *	  begin, commit, begin_prepare, prepare, commit_prepared, rollback_prepared,
 *	  stream_start, stream_stop, stream_abort, stream_commit, stream_prepare
 *	    {"op", "lsn", "xid", "time", "changes", "tables", "gid"}; tables: how many changes of which
 *
 *	  What is shipped of a transaction is told apart, and ordered, by commit_lsn
 *	  and seq. lsn of a mark is where the transaction's commit or prepare record begins.
 *	  In a streamed transaction xid is the top level's, and subxid tells the
 *	  subtransaction that a stream_abort may take back.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "format/format.h"

#include "core/utf8.h"
#include "format/iso_time.h"
#include "format/json_text.h"

static const char *
change_text(CdcOutOp op)
{
	switch (op)
	{
		case CDC_OUT_INSERT:
			return "insert";
		case CDC_OUT_UPDATE:
			return "update";
		case CDC_OUT_DELETE:
			return "delete";
		case CDC_OUT_READ:
			return "read";
	}
	return "";
}

static const char *
op_text(const CdcRecord *record)
{
	switch (record->kind)
	{
		case CDC_RECORD_CHANGE:
			return change_text(record->op);
		case CDC_RECORD_TRUNCATE:
			return "truncate";
		case CDC_RECORD_MESSAGE:
			return "message";
		case CDC_RECORD_SCHEMA:
			return "schema";
		case CDC_RECORD_BEGIN:
			return "begin";
		case CDC_RECORD_COMMIT:
			return "commit";
		case CDC_RECORD_BEGIN_PREPARE:
			return "begin_prepare";
		case CDC_RECORD_PREPARE:
			return "prepare";
		case CDC_RECORD_COMMIT_PREPARED:
			return "commit_prepared";
		case CDC_RECORD_ROLLBACK_PREPARED:
			return "rollback_prepared";
		case CDC_RECORD_STREAM_START:
			return "stream_start";
		case CDC_RECORD_STREAM_STOP:
			return "stream_stop";
		case CDC_RECORD_STREAM_ABORT:
			return "stream_abort";
		case CDC_RECORD_STREAM_COMMIT:
			return "stream_commit";
		case CDC_RECORD_STREAM_PREPARE:
			return "stream_prepare";
	}
	return "";
}

static void
add_table_name(const char *schema, const char *name, CdcBuf *out)
{
	cdc_buf_add_str(out, "\"schema\":");
	json_add_cstring(out, schema);
	cdc_buf_add_str(out, ",\"table\":");
	json_add_cstring(out, name);
}

static void
add_head(const CdcRecord *record, CdcBuf *out)
{
	const CdcOutTxn *txn = record->txn;

	cdc_buf_add_str(out, "{\"op\":");
	json_add_cstring(out, op_text(record));
	if (record->table != NULL)
	{
		cdc_buf_add_char(out, ',');
		add_table_name(record->table->schema, record->table->name, out);
	}
	cdc_buf_add_str(out, ",\"lsn\":\"");
	format_add_lsn(out, record->lsn);
	cdc_buf_add_char(out, '"');
	if (txn == NULL)
		return;
	if (txn->commit_lsn != 0 && record->order != 0)
	{
		cdc_buf_add_str(out, ",\"commit_lsn\":\"");
		format_add_lsn(out, txn->commit_lsn);
		cdc_buf_add_char(out, '"');
	}
	cdc_buf_add_str(out, ",\"xid\":");
	json_add_uint(out, txn->xid);
	if (txn->is_streamed && record->xid != 0 && record->xid != txn->xid)
	{
		cdc_buf_add_str(out, ",\"subxid\":");
		json_add_uint(out, record->xid);
	}
	if (txn->time_us != 0)
	{
		char		text[ISO_TIME_MAX];
		size_t		len = iso_unix_time(txn->time_us, text);

		cdc_buf_add_str(out, ",\"time\":");
		json_add_string(out, text, len);
	}
	if (txn->origin != NULL)
	{
		cdc_buf_add_str(out, ",\"origin\":");
		json_add_cstring(out, txn->origin);
	}
	if (record->order != 0)
	{
		cdc_buf_add_str(out, ",\"seq\":");
		json_add_uint(out, record->order);
	}
}

static void
add_types(const CdcOutTable *table, CdcBuf *out)
{
	cdc_buf_add_str(out, ",\"types\":{");
	for (uint32_t i = 0; i < table->ncolumns; i++)
	{
		if (i > 0)
			cdc_buf_add_char(out, ',');
		json_add_name(out, table->columns[i].name);
		json_add_cstring(out, table->columns[i].type_text);
	}
	cdc_buf_add_char(out, '}');
}

static void
add_change(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	const CdcCell *key = format_key_row(record);

	if (key != NULL)
	{
		cdc_buf_add_str(out, ",\"key\":");
		format_add_key(format, record->table, key, out);
	}
	if (record->after != NULL)
	{
		cdc_buf_add_str(out, ",\"row\":");
		format_add_row(format, record->table, record->after, false, out);
	}
	if (record->before != NULL)
	{
		cdc_buf_add_str(out, ",\"old\":");
		format_add_row(format, record->table, record->before, false, out);
	}
	if (record->after != NULL)
		format_add_unchanged(record->table, record->after, out);
	if (format->options.types)
		add_types(record->table, out);
}

static void
add_truncate(const CdcRecord *record, CdcBuf *out)
{
	if (record->of_copy)
		cdc_buf_add_str(out, ",\"of_copy\":true");
	cdc_buf_add_str(out, record->cascade ? ",\"cascade\":true" : ",\"cascade\":false");
	cdc_buf_add_str(out, record->restart_identity ? ",\"restart_identity\":true" : ",\"restart_identity\":false");
	if (record->root_name != NULL)
	{
		cdc_buf_add_str(out, ",\"partition_of\":{");
		add_table_name(record->root_schema, record->root_name, out);
		cdc_buf_add_char(out, '}');
	}
}

static void
add_message(const CdcRecord *record, CdcBuf *out)
{
	cdc_buf_add_str(out, record->transactional ? ",\"transactional\":true,\"prefix\":" : ",\"transactional\":false,\"prefix\":");
	json_add_cstring(out, record->prefix);
	if (cdc_utf8_is_valid(record->content, record->content_len))
	{
		cdc_buf_add_str(out, ",\"content\":");
		json_add_string(out, record->content, record->content_len);
	}
	else
	{
		cdc_buf_add_str(out, ",\"content_base64\":");
		json_add_base64(out, record->content, record->content_len);
	}
}

/* How many changes of which table; a streamed transaction does not know. */
static void
add_counts(const CdcOutTxn *txn, CdcBuf *out)
{
	if (txn->ncounts == 0)
		return;
	cdc_buf_add_str(out, ",\"tables\":[");
	for (uint32_t i = 0; i < txn->ncounts; i++)
	{
		cdc_buf_add_str(out, i > 0 ? ",{" : "{");
		add_table_name(txn->counts[i].schema, txn->counts[i].name, out);
		cdc_buf_add_str(out, ",\"changes\":");
		json_add_uint(out, txn->counts[i].count);
		cdc_buf_add_char(out, '}');
	}
	cdc_buf_add_char(out, ']');
}

static void
add_mark(const CdcRecord *record, CdcBuf *out)
{
	if (record->kind == CDC_RECORD_COMMIT || record->kind == CDC_RECORD_PREPARE)
	{
		cdc_buf_add_str(out, ",\"changes\":");
		json_add_uint(out, record->txn->nchanges);
		add_counts(record->txn, out);
	}
	if (record->txn->gid != NULL)
	{
		cdc_buf_add_str(out, ",\"gid\":");
		json_add_cstring(out, record->txn->gid);
	}
}

void
format_plain_value(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out)
{
	(void) part;
	add_head(record, out);
	switch (record->kind)
	{
		case CDC_RECORD_CHANGE:
			add_change(format, record, out);
			break;
		case CDC_RECORD_TRUNCATE:
			add_truncate(record, out);
			break;
		case CDC_RECORD_MESSAGE:
			add_message(record, out);
			break;
		case CDC_RECORD_SCHEMA:
			format_add_schema_change(format, record, out);
			break;
		default:
			add_mark(record, out);
			break;
	}
	cdc_buf_add_char(out, '}');
}

static bool
plain_key(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out)
{
	(void) part;
	return format_add_change_key(format, record, out);
}

const CdcFormatOps cdc_format_plain_json = {
	.name = "json",
	.description = "plain JSON: op, schema, table, key, row, old",
	.value = format_plain_value,
	.key = plain_key
};
