/*-------------------------------------------------------------------------
 *
 * format_source.c
 *	  Debezium's source block: its members, their values, their schema.
 *
 * NOTES
 *	  Members are those of Debezium's connector for PostgreSQL,
 *	  then what is ours: origin where a change came by replication, xid where it
 *	  is streamed, seq always. One list says it for the block itself, for its Kafka
 *	  Connect schema, and for what an unwrapped row takes of it.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "format/format.h"

#include <string.h>

#include "format/json_text.h"

typedef enum SourceMember
{
	SOURCE_VERSION,
	SOURCE_CONNECTOR,
	SOURCE_NAME,
	SOURCE_TS_MS,
	SOURCE_SNAPSHOT,
	SOURCE_DB,
	SOURCE_SEQUENCE,
	SOURCE_TS_US,
	SOURCE_TS_NS,
	SOURCE_SCHEMA,
	SOURCE_TABLE,
	SOURCE_TXID,
	SOURCE_LSN,
	SOURCE_XMIN,
	SOURCE_ORIGIN,
	SOURCE_XID,
	SOURCE_SEQ
} SourceMember;

typedef struct Member
{
	const char *name;
	const char *type;			/* of Kafka Connect */
	bool		optional;
} Member;

static const Member members[] = {
	[SOURCE_VERSION] = {"version", "string", false},
	[SOURCE_CONNECTOR] = {"connector", "string", false},
	[SOURCE_NAME] = {"name", "string", false},
	[SOURCE_TS_MS] = {"ts_ms", "int64", false},
	[SOURCE_SNAPSHOT] = {"snapshot", "string", true},
	[SOURCE_DB] = {"db", "string", false},
	[SOURCE_SEQUENCE] = {"sequence", "string", true},
	[SOURCE_TS_US] = {"ts_us", "int64", true},
	[SOURCE_TS_NS] = {"ts_ns", "int64", true},
	[SOURCE_SCHEMA] = {"schema", "string", false},
	[SOURCE_TABLE] = {"table", "string", false},
	[SOURCE_TXID] = {"txId", "int64", true},
	[SOURCE_LSN] = {"lsn", "int64", true},
	[SOURCE_XMIN] = {"xmin", "int64", true},
	[SOURCE_ORIGIN] = {"origin", "string", true},
	[SOURCE_XID] = {"xid", "int64", true},
	[SOURCE_SEQ] = {"seq", "int64", true},
};

#define NMEMBERS ((int) (sizeof(members) / sizeof(members[0])))

/* What Debezium's snapshot may be; a row of a copy is "true", everything else "false". */
static const char snapshot_parameters[] =
	",\"name\":\"io.debezium.data.Enum\",\"version\":1,\"parameters\":"
	"{\"allowed\":\"true,first,first_in_data_collection,last_in_data_collection,last,false,incremental\"},\"default\":\"false\"";

void
format_add_sequence(const CdcRecord *record, CdcBuf *out)
{
	cdc_buf_add_str(out, "[\"");
	json_add_uint(out, record->txn != NULL ? record->txn->commit_lsn : 0);
	cdc_buf_add_str(out, "\",\"");
	json_add_uint(out, record->lsn);
	cdc_buf_add_str(out, "\"]");
}

int
format_source_count(void)
{
	return NMEMBERS;
}

const char *
format_source_name(int member)
{
	return members[member].name;
}

bool
format_source_is_there(const CdcRecord *record, int member)
{
	if (member == SOURCE_ORIGIN)
		return record->txn != NULL && record->txn->origin != NULL;
	if (member == SOURCE_XID)
		return record->txn != NULL && record->txn->is_streamed;
	return true;
}

/* Where the transaction's commit begins, then the change itself, as an array in a string. */
static void
add_sequence(const CdcRecord *record, CdcBuf *out)
{
	cdc_buf_add_str(out, "\"[\\\"");
	json_add_uint(out, record->txn != NULL ? record->txn->commit_lsn : 0);
	cdc_buf_add_str(out, "\\\",\\\"");
	json_add_uint(out, record->lsn);
	cdc_buf_add_str(out, "\\\"]\"");
}

void
format_add_source_value(CdcFormat *format, const CdcRecord *record, int member, CdcBuf *out)
{
	const CdcOutTable *table = record->table;
	const CdcOutTxn *txn = record->txn;

	switch ((SourceMember) member)
	{
		case SOURCE_VERSION:
			json_add_cstring(out, format->options.version);
			return;
		case SOURCE_CONNECTOR:
			cdc_buf_add_str(out, "\"postgresql\"");
			return;
		case SOURCE_NAME:
			json_add_cstring(out, format->options.server_name);
			return;
		case SOURCE_TS_MS:
			json_add_int(out, format_time(record) / 1000);
			return;
		case SOURCE_SNAPSHOT:
			cdc_buf_add_str(out, record->of_copy ? "\"true\"" : "\"false\"");
			return;
		case SOURCE_DB:
			json_add_cstring(out, format->options.database);
			return;
		case SOURCE_SEQUENCE:
			add_sequence(record, out);
			return;
		case SOURCE_TS_US:
			json_add_int(out, format_time(record));
			return;
		case SOURCE_TS_NS:
			json_add_nanos(out, format_time(record));
			return;
		case SOURCE_SCHEMA:
			json_add_cstring(out, table != NULL ? table->schema : "");
			return;
		case SOURCE_TABLE:
			json_add_cstring(out, table != NULL ? table->name : "");
			return;
		case SOURCE_TXID:
			if (txn != NULL)
				json_add_uint(out, txn->xid);
			else
				cdc_buf_add_str(out, "null");
			return;
		case SOURCE_LSN:
			json_add_uint(out, record->lsn);
			return;
		case SOURCE_XMIN:
			cdc_buf_add_str(out, "null");
			return;
		case SOURCE_ORIGIN:
			json_add_cstring_or_null(out, txn != NULL ? txn->origin : NULL);
			return;
		case SOURCE_XID:
			json_add_uint(out, record->xid);
			return;
		case SOURCE_SEQ:
			json_add_uint(out, record->order);
			return;
	}
}

/* What is the same in all blocks of a format, up to the times, is written once. */
static const CdcBuf *
block_head(CdcFormat *format)
{
	CdcBuf	   *head = &format->head;

	if (head->len == 0 || head->status != CDC_OK)
	{
		cdc_buf_reset(head);
		cdc_buf_add_str(head, "\"source\":{\"version\":");
		json_add_cstring(head, format->options.version);
		cdc_buf_add_str(head, ",\"connector\":\"postgresql\",\"name\":");
		json_add_cstring(head, format->options.server_name);
		cdc_buf_add_str(head, ",\"db\":");
		json_add_cstring(head, format->options.database);
	}
	return head;
}

/* Written out rather than by a loop over the members: each change has one. */
void
format_add_source(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	const CdcOutTxn *txn = record->txn;
	const CdcOutTable *table = record->table;
	const CdcBuf *head = block_head(format);

	if (head->status != CDC_OK && out->status == CDC_OK)
		out->status = head->status;
	cdc_buf_add(out, head->data, head->len);
	cdc_buf_add_str(out, record->of_copy ? ",\"snapshot\":\"true\",\"sequence\":" : ",\"snapshot\":\"false\",\"sequence\":");
	add_sequence(record, out);
	json_add_moment(out, ",\"ts_ms\":", ",\"ts_us\":", ",\"ts_ns\":", format_time(record));
	cdc_buf_add_str(out, ",\"schema\":");
	json_add_cstring(out, table != NULL ? table->schema : "");
	cdc_buf_add_str(out, ",\"table\":");
	json_add_cstring(out, table != NULL ? table->name : "");
	cdc_buf_add_str(out, ",\"txId\":");
	format_add_source_value(format, record, SOURCE_TXID, out);
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

void
format_add_source_member_schema(int member, bool optional, const char *field, CdcBuf *out)
{
	cdc_buf_add_str(out, "{\"type\":");
	json_add_cstring(out, members[member].type);
	cdc_buf_add_str(out, optional || members[member].optional ? ",\"optional\":true" : ",\"optional\":false");
	if (member == SOURCE_SNAPSHOT)
		cdc_buf_add_str(out, snapshot_parameters);
	cdc_buf_add_str(out, ",\"field\":");
	json_add_cstring(out, field);
	cdc_buf_add_char(out, '}');
}

void
format_add_source_schema(CdcBuf *out)
{
	cdc_buf_add_str(out, "{\"type\":\"struct\",\"fields\":[");
	for (int i = 0; i < NMEMBERS; i++)
	{
		if (i > 0)
			cdc_buf_add_char(out, ',');
		format_add_source_member_schema(i, false, members[i].name, out);
	}
	cdc_buf_add_str(out, "],\"optional\":false,\"name\":\"io.debezium.connector.postgresql.Source\",\"version\":1,\"field\":\"source\"}");
}
