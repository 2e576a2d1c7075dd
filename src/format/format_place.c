/*-------------------------------------------------------------------------
 *
 * format_place.c
 *	  Where a record stands, for formats that have no members for that.
 *
 * NOTES
 *	  Canal JSON, Maxwell JSON and changelog-json do not say where in the log of
 *	  PostgreSQL something was, which who reads it exactly once has to know. Their
 *	  readers pass over members that they do not know, so each record has one
 *	  more: "_cdc_bridge", with "db", "schema" and "table" where the format does
 *	  not say which table it is, "lsn", "commit_lsn", "xid", "seq" and
 *	  "origin" as plain JSON has them, "snapshot" for what belongs to a copy, and
 *	  "unchanged" with the names of columns whose values are not known.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "format/format.h"

#include "format/json_text.h"

int64_t
format_time(const CdcRecord *record)
{
	return record->txn != NULL && record->txn->time_us != 0 ? record->txn->time_us : record->now_us;
}

void
format_add_unchanged(const CdcOutTable *table, const CdcCell *row, CdcBuf *out)
{
	bool		any = false;

	for (uint32_t i = 0; i < table->ncolumns; i++)
	{
		if (row[i].kind != CDC_CELL_UNCHANGED)
			continue;
		cdc_buf_add_str(out, any ? "," : ",\"unchanged\":[");
		json_add_cstring(out, table->columns[i].name);
		any = true;
	}
	if (any)
		cdc_buf_add_char(out, ']');
}

void
format_add_place(CdcFormat *format, const CdcRecord *record, const CdcCell *row, bool names, CdcBuf *out)
{
	const CdcOutTxn *txn = record->txn;

	cdc_buf_add_str(out, ",\"_cdc_bridge\":{\"db\":");
	json_add_cstring(out, format->options.database);
	if (names)
	{
		cdc_buf_add_str(out, ",\"schema\":");
		json_add_cstring(out, record->table->schema);
		cdc_buf_add_str(out, ",\"table\":");
		json_add_cstring(out, record->table->name);
	}
	cdc_buf_add_str(out, ",\"lsn\":\"");
	format_add_lsn(out, record->lsn);
	cdc_buf_add_char(out, '"');
	if (txn != NULL)
	{
		if (txn->commit_lsn != 0)
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
		if (txn->origin != NULL)
		{
			cdc_buf_add_str(out, ",\"origin\":");
			json_add_cstring(out, txn->origin);
		}
		cdc_buf_add_str(out, ",\"seq\":");
		json_add_uint(out, record->order);
	}
	if (record->of_copy)
		cdc_buf_add_str(out, ",\"snapshot\":true");
	if (row != NULL)
		format_add_unchanged(record->table, row, out);
	cdc_buf_add_char(out, '}');
}
