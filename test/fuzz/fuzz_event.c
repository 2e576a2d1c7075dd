/*-------------------------------------------------------------------------
 *
 * fuzz_event.c
 *	  libFuzzer target: bodies of the events that are not rows.
 *
 * NOTES
 *	  One byte chooses the event: GTIDs of every kind (tagged ones too), ROTATE,
 *	  heartbeats, QUERY, XA_PREPARE, XID, format description. What comes out goes
 *	  into the catalog of the target, so names and tags must be text, and offsets
 *	  must fit its 64-bit signed numbers.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include "binlog/event_body.h"
#include "binlog/wire.h"

#define MEMORY_LIMIT (4 * 1024 * 1024)

/* A GTID that was read must mean the same after it went through a set and its text. */
static void
check_gtid(const CdcGtid *gtid)
{
	CdcGtidSet *set;
	CdcGtidSet *again;
	CdcError err = {0};
	CdcStatus status;
	CdcBuf text;
	char one[CDC_GTID_TEXT_MAX];

	if (gtid->kind == CDC_GTID_NONE)
		return;
	cdc_gtid_format(gtid, one);
	require(utf8_is_valid(one, strlen(one)));
	set = cdc_gtid_set_create(gtid->kind, &cdc_malloc_allocator);
	again = cdc_gtid_set_create(gtid->kind, &cdc_malloc_allocator);
	status = cdc_gtid_set_add(set, gtid, &err);
	if (status == CDC_OK)
	{
		cdc_buf_init(&text, &cdc_malloc_allocator, 0);
		cdc_gtid_set_format(set, &text);
		require(strcmp(text.data, one) == 0);
		require(cdc_gtid_set_add_text(again, text.data, text.len, &err) == CDC_OK);
		require(cdc_gtid_set_contains(again, gtid));
		cdc_buf_free(&text);
	}
	else
		check_error(status, &err);
	cdc_gtid_set_free(set);
	cdc_gtid_set_free(again);
}

static void
check_position(const CdcPosition *pos)
{
	require(cdc_position_is_known(pos));
	require(utf8_is_valid(pos->file, strlen(pos->file)));
	require(pos->offset <= INT64_MAX);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t types[] = {EV_GTID,
	                                EV_ANONYMOUS_GTID,
	                                EV_GTID_TAGGED,
	                                EV_MARIADB_GTID,
	                                EV_ROTATE,
	                                EV_HEARTBEAT,
	                                EV_HEARTBEAT_V2,
	                                EV_QUERY,
	                                EV_XID,
	                                EV_XA_PREPARE,
	                                EV_FORMAT_DESCRIPTION,
	                                EV_EXECUTE_LOAD_QUERY,
	                                EV_MARIADB_QUERY_COMPRESSED};
	BinlogEvent event;
	BinlogFormat format;
	CdcError err = {0};
	CdcStatus status = CDC_OK;
	CdcArena arena;
	bool full;

	if (size < 1)
		return 0;
	memset(&event, 0xa5, sizeof(event));
	event.type_code = types[data[0] % sizeof(types)];
	event.server_id = 7;
	data++;
	size--;
	cdc_arena_init(&arena, &cdc_malloc_allocator, MEMORY_LIMIT);
	switch (event.type_code)
	{
		case EV_ROTATE:
			status = binlog_parse_rotate(data, size, &event, &err);
			if (status == CDC_OK)
				check_position(&event.u.rotate);
			break;
		case EV_HEARTBEAT:
		case EV_HEARTBEAT_V2:
			status = binlog_parse_heartbeat(data, size, 4, &event, &full, &err);
			if (status == CDC_OK)
				check_position(&event.u.rotate);
			break;
		case EV_QUERY:
		case EV_EXECUTE_LOAD_QUERY:
		case EV_MARIADB_QUERY_COMPRESSED:
			status = binlog_parse_query(data, size, &arena, &event, &err);
			if (status == CDC_OK)
			{
				touch(event.u.query.text, event.u.query.len);
				require(utf8_is_valid(event.u.query.schema, strlen(event.u.query.schema)));
			}
			break;
		case EV_XID:
			status = binlog_parse_xid(data, size, &event, &err);
			break;
		case EV_XA_PREPARE:
			status = binlog_parse_xa_prepare(data, size, &event, &err);
			if (status == CDC_OK)
			{
				const char *end = memchr(event.u.xa_prepare.xid, '\0', CDC_XID_TEXT_MAX);

				require(end != NULL && end < event.u.xa_prepare.xid + CDC_XID_TEXT_MAX);
			}
			break;
		case EV_FORMAT_DESCRIPTION:
			memset(&format, 0, sizeof(format));
			status = binlog_parse_format(data, size, &format, &err);
			if (status == CDC_OK)
			{
				require(format.known && strlen(format.server_version) <= 50);
				for (int i = 0; i < 256; i++)
					require(format.table_id_len[i] == 4 || format.table_id_len[i] == 6);
			}
			break;
		default:
			status = binlog_parse_gtid(data, size, &event, &err);
			if (status == CDC_OK)
				check_gtid(&event.u.gtid.gtid);
			break;
	}
	if (status != CDC_OK)
		check_error(status, &err);
	cdc_arena_free(&arena);
	return 0;
}
