/*-------------------------------------------------------------------------
 *
 * reader.c
 *	  Pull reader over the events of a MySQL or MariaDB binary log.
 *
 * NOTES
 *	  feed checks an event's length and checksum; next takes it apart. An event
 *	  that holds others (rows, a transaction payload) keeps next busy until it is
 *	  empty, then next says CDC_END and wants the next feed.
 *
 *	  POSITIONS
 *	  The header tells only the low 32 bits of where an event ends, and nothing
 *	  for events that the dump thread makes, for those in a payload, and for those
 *	  inside a transaction of MariaDB 11.8. So the reader runs a 64-bit offset of
 *	  its own: a told end gives the low bits, a fall of more than 2 GiB is a wrap,
 *	  anything else that would lead backwards is not believed. A told end may be
 *	  ahead of the running offset (the server left out transactions that the
 *	  reader has, or MariaDB's ANNOTATE events), so that the start is counted back
 *	  from it. Artificial events never move the offset; a ROTATE, faked or not,
 *	  sets it.
 *
 *	  A position knows when its file was born from the file's format description
 *	  event on; a ROTATE leads to a file of which that is not known yet.
 *
 *	  CHECKSUMS
 *	  The format description event says whether events carry one. The faked
 *	  ROTATE comes before it, or between two files of different setting, and
 *	  heartbeats may; for these the last four bytes are a checksum if they match.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "binlog/reader.h"

#include <string.h>
#include <libdeflate.h>

#include "binlog/event_body.h"
#include "binlog/payload.h"
#include "binlog/rows.h"
#include "binlog/wire.h"

typedef enum ReaderState
{
	READER_EMPTY,   /* wants a feed */
	READER_FED,     /* an event waits to be taken apart */
	READER_PAYLOAD, /* inside a transaction payload */
	READER_FAILED   /* stays so until start */
} ReaderState;

struct BinlogReader
{
	const CdcAllocator *allocator;
	size_t memory_limit;
	ReaderState state;
	CdcError error;
	BinlogFormat format;
	BinlogTableCache tables;
	CdcArena arena; /* for the event at hand */

	/* Where the event at hand begins and ends. */
	CdcPosition start;
	CdcPosition end;

	/* The event that was fed. */
	const uint8_t *body;
	size_t body_len;
	BinlogHeader header;
	bool artificial;

	BinlogPayload payload;

	/* The rows event at hand, if in_rows; its header is kept for its rows. */
	bool in_rows;
	BinlogRowsState rows;
	BinlogHeader rows_header;
};

BinlogReader *
binlog_reader_create(const CdcAllocator *allocator, const BinlogReaderOptions *options)
{
	BinlogReader *reader = allocator->alloc(allocator->ctx, sizeof(BinlogReader));

	if (reader == NULL)
		return NULL;
	memset(reader, 0, sizeof(*reader));
	reader->allocator = allocator;
	reader->memory_limit = options->memory_limit;
	cdc_arena_init(&reader->arena, allocator, options->memory_limit);
	binlog_table_cache_init(&reader->tables, allocator, options->memory_limit);
	binlog_payload_init(&reader->payload, allocator, options->memory_limit);
	return reader;
}

void
binlog_reader_free(BinlogReader *reader)
{
	if (reader == NULL)
		return;
	binlog_table_cache_clear(&reader->tables);
	binlog_payload_free(&reader->payload);
	cdc_arena_free(&reader->arena);
	reader->allocator->free(reader->allocator->ctx, reader);
}

/* Copy a position without the unused part of its file name. */
static inline void
copy_position(CdcPosition *to, const CdcPosition *from)
{
	memcpy(to->file, from->file, strlen(from->file) + 1);
	to->offset = from->offset;
	to->born = from->born;
}

void
binlog_reader_start(BinlogReader *reader, const CdcPosition *position)
{
	binlog_table_cache_clear(&reader->tables);
	cdc_arena_reset(&reader->arena);
	memset(&reader->error, 0, sizeof(reader->error));
	memset(&reader->format, 0, sizeof(reader->format));
	copy_position(&reader->start, position);
	copy_position(&reader->end, position);
	reader->state = READER_EMPTY;
	reader->in_rows = false;
}

const CdcError *
binlog_reader_error(const BinlogReader *reader)
{
	return &reader->error;
}

/* Remember that the reader failed; the offset of the error becomes the event's start. */
static CdcStatus
fail_reader(BinlogReader *reader, CdcStatus status)
{
	reader->error.code = status;
	reader->error.offset = reader->start.offset;
	reader->state = READER_FAILED;
	reader->in_rows = false;
	return status;
}

static bool
checksum_matches(const uint8_t *event, size_t len, bool clear_in_use)
{
	const uint8_t *sum = event + len - EVENT_CHECKSUM_LEN;
	uint32_t stored = (uint32_t) sum[0] | (uint32_t) sum[1] << 8 | (uint32_t) sum[2] << 16 |
	                  (uint32_t) sum[3] << 24;
	uint32_t crc = 0;

	if (clear_in_use)
	{
		/* A file that is being written has a flag set that the checksum leaves out. */
		uint8_t header[EVENT_HEADER_LEN];

		memcpy(header, event, EVENT_HEADER_LEN);
		header[17] &= (uint8_t) ~EVENT_FLAG_IN_USE;
		crc = libdeflate_crc32(crc, header, EVENT_HEADER_LEN);
		crc = libdeflate_crc32(crc, event + EVENT_HEADER_LEN,
		                       len - EVENT_HEADER_LEN - EVENT_CHECKSUM_LEN);
	}
	else
		crc = libdeflate_crc32(crc, event, len - EVENT_CHECKSUM_LEN);
	return crc == stored;
}

/* Find the body of the event and verify the checksum, if there is one. */
static CdcStatus
check_checksum(BinlogReader *reader, const uint8_t *event, size_t len)
{
	const BinlogHeader *header = &reader->header;
	bool may_have = header->type_code == EV_ROTATE || header->type_code == EV_HEARTBEAT ||
	                header->type_code == EV_HEARTBEAT_V2;
	bool is_format = header->type_code == EV_FORMAT_DESCRIPTION;

	reader->body = event + EVENT_HEADER_LEN;
	reader->body_len = len - EVENT_HEADER_LEN;
	if (is_format)
	{
		CdcStatus status =
		    binlog_parse_format(reader->body, reader->body_len, &reader->format, &reader->error);

		if (status != CDC_OK)
			return status;
		if (reader->format.has_checksum && !checksum_matches(event, len, true))
			return cdc_fail(&reader->error, CDC_CHECKSUM, 0,
			                "checksum of a format description event does not match");
		return CDC_OK;
	}
	if (may_have && (reader->artificial || !reader->format.known))
	{
		if (reader->body_len > EVENT_CHECKSUM_LEN && checksum_matches(event, len, false))
			reader->body_len -= EVENT_CHECKSUM_LEN;
		return CDC_OK;
	}
	if (!reader->format.known)
		return cdc_fail(&reader->error, CDC_MALFORMED, 0,
		                "%s event without a format description event before it",
		                binlog_event_type_name(header->type_code));
	if (!reader->format.has_checksum)
		return CDC_OK;
	if (reader->body_len < EVENT_CHECKSUM_LEN)
		return cdc_fail(&reader->error, CDC_TRUNCATED, 0, "%s event is too short for its checksum",
		                binlog_event_type_name(header->type_code));
	if (!checksum_matches(event, len, false))
		return cdc_fail(&reader->error, CDC_CHECKSUM, 0, "checksum of a %s event does not match",
		                binlog_event_type_name(header->type_code));
	reader->body_len -= EVENT_CHECKSUM_LEN;
	return CDC_OK;
}

/* A told end with the high part that the running offset implies; 0 when it leads backwards. */
static uint64_t
extend_offset(uint64_t running, uint32_t low)
{
	uint64_t offset = (running & ~(uint64_t) UINT32_MAX) | low;

	if (offset >= running)
		return offset;
	if (running - offset > UINT64_C(0x80000000))
		return offset + (UINT64_C(1) << 32);
	return 0;
}

/* Work out where the event that was just fed begins and ends. */
static void
move_position(BinlogReader *reader, size_t len)
{
	uint64_t running = reader->end.offset;
	uint64_t told = 0;

	copy_position(&reader->start, &reader->end);
	if (reader->artificial)
		return;
	if (reader->header.next_pos != 0)
		told = extend_offset(running, reader->header.next_pos);
	if (told < running + len)
	{
		reader->end.offset = running + len;
		return;
	}
	reader->start.offset = told - len;
	reader->end.offset = told;
}

CdcStatus
binlog_reader_feed(BinlogReader *reader, const uint8_t *event, size_t len)
{
	BinlogHeader *header = &reader->header;
	CdcStatus status;

	if (reader->state == READER_FAILED)
		return reader->error.code;
	reader->in_rows = false;
	if (len < EVENT_HEADER_LEN)
		return fail_reader(reader, cdc_fail(&reader->error, CDC_TRUNCATED, 0,
		                                    "event of %zu bytes is too short for its header", len));
	binlog_parse_header(event, header);
	if (len < header->length)
		return fail_reader(reader, cdc_fail(&reader->error, CDC_TRUNCATED, 0,
		                                    "event of %zu bytes says it has %lu", len,
		                                    (unsigned long) header->length));
	if (len > header->length)
		return fail_reader(reader, cdc_fail(&reader->error, CDC_MALFORMED, 0,
		                                    "event of %zu bytes says it has %lu", len,
		                                    (unsigned long) header->length));
	if (reader->memory_limit != 0 && len > reader->memory_limit)
		return fail_reader(reader, cdc_fail(&reader->error, CDC_LIMIT, 0,
		                                    "event of %zu bytes passes the memory limit", len));

	reader->artificial =
	    (header->flags & EVENT_FLAG_ARTIFICIAL) != 0 || header->type_code == EV_HEARTBEAT ||
	    header->type_code == EV_HEARTBEAT_V2 ||
	    (header->next_pos == 0 &&
	     (header->type_code == EV_FORMAT_DESCRIPTION || header->type_code == EV_ROTATE));
	move_position(reader, len);
	status = check_checksum(reader, event, len);
	if (status != CDC_OK)
		return fail_reader(reader, status);
	if (header->type_code == EV_FORMAT_DESCRIPTION)
	{
		reader->start.born = header->timestamp;
		reader->end.born = header->timestamp;
	}
	reader->state = READER_FED;
	return CDC_OK;
}

/* Fill what all events have. */
static void
fill_common(const BinlogReader *reader, const BinlogHeader *header, BinlogEventKind kind,
            BinlogEvent *event)
{
	event->kind = kind;
	event->type_code = header->type_code;
	event->flags = header->flags;
	event->server_id = header->server_id;
	event->timestamp = header->timestamp;
	event->artificial = reader->artificial;
	copy_position(&event->start, &reader->start);
	copy_position(&event->end, &reader->end);
}

/* A ROTATE leads to its position, a heartbeat to the sender's when that is ahead in the same file. */
static CdcStatus
read_rotate(BinlogReader *reader, BinlogEvent *event)
{
	CdcStatus status = binlog_parse_rotate(reader->body, reader->body_len, event, &reader->error);

	if (status != CDC_OK)
		return status;
	copy_position(&reader->end, &event->u.rotate);
	copy_position(&event->end, &reader->end);
	return CDC_OK;
}

static CdcStatus
read_heartbeat(BinlogReader *reader, BinlogEvent *event)
{
	bool full;
	CdcStatus status = binlog_parse_heartbeat(
	    reader->body, reader->body_len, reader->header.next_pos, event, &full, &reader->error);

	if (status != CDC_OK)
		return status;
	if (strcmp(event->u.rotate.file, reader->end.file) != 0)
		return CDC_OK;
	event->u.rotate.born = reader->end.born;
	if (!full)
	{
		uint64_t offset = extend_offset(reader->end.offset, (uint32_t) event->u.rotate.offset);

		event->u.rotate.offset = offset != 0 ? offset : reader->end.offset;
	}
	if (event->u.rotate.offset > reader->end.offset)
		reader->end.offset = event->u.rotate.offset;
	copy_position(&event->end, &reader->end);
	return CDC_OK;
}

static CdcStatus
begin_rows(BinlogReader *reader, const BinlogHeader *header, const uint8_t *body, size_t len,
           BinlogEvent *event)
{
	CdcStatus status = binlog_rows_begin(
	    &reader->rows, header->type_code, body, len, reader->format.table_id_len[header->type_code],
	    &reader->tables, &reader->arena, &event->u.rows, &reader->error);

	if (status != CDC_OK)
		return status;
	reader->in_rows = true;
	reader->rows_header = *header;
	return CDC_OK;
}

/*
 * Take apart one event, fed or from a payload. Returns CDC_END when it gives
 * nothing to the caller.
 */
static CdcStatus
dispatch(BinlogReader *reader, const BinlogHeader *header, const uint8_t *body, size_t len,
         bool in_payload, BinlogEvent *event)
{
	BinlogEventKind kind = BINLOG_OTHER;
	CdcStatus status = CDC_OK;

	cdc_arena_reset(&reader->arena);
	event->type_code = header->type_code;
	event->server_id = header->server_id;
	switch (header->type_code)
	{
		case EV_TABLE_MAP:
			status = binlog_table_cache_put(&reader->tables, body, len,
			                                reader->format.table_id_len[EV_TABLE_MAP],
			                                reader->format.is_mariadb, &reader->error);
			return status == CDC_OK ? CDC_END : status;
		case EV_QUERY:
		case EV_EXECUTE_LOAD_QUERY:
		case EV_MARIADB_QUERY_COMPRESSED:
			kind = BINLOG_QUERY;
			status = binlog_parse_query(body, len, &reader->arena, event, &reader->error);
			event->u.query.of_session = (header->flags & EVENT_FLAG_THREAD_SPECIFIC) != 0;
			break;
		case EV_XID:
			kind = BINLOG_XID;
			status = binlog_parse_xid(body, len, event, &reader->error);
			break;
		case EV_XA_PREPARE:
			kind = BINLOG_XA_PREPARE;
			status = binlog_parse_xa_prepare(body, len, event, &reader->error);
			break;
		case EV_GTID:
		case EV_ANONYMOUS_GTID:
		case EV_GTID_TAGGED:
		case EV_MARIADB_GTID:
			kind = BINLOG_GTID;
			status = binlog_parse_gtid(body, len, event, &reader->error);
			break;
		case EV_INCIDENT:
			kind = BINLOG_INCIDENT;
			break;
		case EV_STOP:
		case EV_INTVAR:
		case EV_APPEND_BLOCK:
		case EV_DELETE_FILE:
		case EV_RAND:
		case EV_USER_VAR:
		case EV_BEGIN_LOAD_QUERY:
		case EV_IGNORABLE:
		case EV_ROWS_QUERY:
		case EV_PREVIOUS_GTIDS:
		case EV_TRANSACTION_CONTEXT:
		case EV_VIEW_CHANGE:
		case EV_MARIADB_ANNOTATE_ROWS:
		case EV_MARIADB_CHECKPOINT:
		case EV_MARIADB_GTID_LIST:
		case EV_MARIADB_START_ENCRYPTION:
			break;
		case EV_FORMAT_DESCRIPTION:
		case EV_ROTATE:
		case EV_HEARTBEAT:
		case EV_HEARTBEAT_V2:
		case EV_TRANSACTION_PAYLOAD:
			if (in_payload)
				return cdc_fail(&reader->error, CDC_MALFORMED, 0,
				                "%s event inside a TRANSACTION_PAYLOAD event",
				                binlog_event_type_name(header->type_code));
			if (header->type_code == EV_TRANSACTION_PAYLOAD)
			{
				status = binlog_payload_begin(&reader->payload, body, len, &reader->error);
				if (status == CDC_OK)
					reader->state = READER_PAYLOAD;
				return status == CDC_OK ? CDC_END : status;
			}
			kind = header->type_code == EV_ROTATE ? BINLOG_ROTATE : BINLOG_HEARTBEAT;
			if (header->type_code == EV_FORMAT_DESCRIPTION)
				kind = BINLOG_FORMAT;
			break;
		default:
			if (binlog_is_rows_event(header->type_code))
			{
				kind = BINLOG_ROWS;
				status = begin_rows(reader, header, body, len, event);
			}
			else if ((header->flags & EVENT_FLAG_IGNORABLE) == 0)
				return cdc_fail(&reader->error, CDC_UNSUPPORTED, 0, "event type %u is not known",
				                (unsigned) header->type_code);
			break;
	}
	if (status != CDC_OK)
		return status;
	fill_common(reader, header, kind, event);
	switch (kind)
	{
		case BINLOG_ROTATE:
			return read_rotate(reader, event);
		case BINLOG_HEARTBEAT:
			return read_heartbeat(reader, event);
		case BINLOG_FORMAT:
			binlog_table_cache_clear(&reader->tables);
			memcpy(event->u.format.server_version, reader->format.server_version,
			       sizeof(event->u.format.server_version));
			event->u.format.is_mariadb = reader->format.is_mariadb;
			event->u.format.has_checksum = reader->format.has_checksum;
			break;
		default:
			break;
	}
	return CDC_OK;
}

CdcStatus
binlog_reader_next(BinlogReader *reader, BinlogEvent *event)
{
	for (;;)
	{
		CdcStatus status;

		if (reader->in_rows)
		{
			status = binlog_rows_next(&reader->rows, &event->u.row, &reader->error);
			if (status == CDC_OK)
			{
				event->u.row.by_mariadb = reader->format.is_mariadb;
				fill_common(reader, &reader->rows_header, BINLOG_ROW, event);
				return CDC_OK;
			}
			if (status != CDC_END)
				return fail_reader(reader, status);
			reader->in_rows = false;
		}
		switch (reader->state)
		{
			case READER_EMPTY:
				return CDC_END;
			case READER_FED:
				reader->state = READER_EMPTY;
				status =
				    dispatch(reader, &reader->header, reader->body, reader->body_len, false, event);
				break;
			case READER_PAYLOAD:
			{
				const uint8_t *inner;
				size_t len;
				BinlogHeader header;

				status = binlog_payload_next(&reader->payload, &inner, &len, &reader->error);
				if (status == CDC_END)
					reader->state = READER_EMPTY;
				if (status != CDC_OK)
					break;
				binlog_parse_header(inner, &header);
				status = dispatch(reader, &header, inner + EVENT_HEADER_LEN, len - EVENT_HEADER_LEN,
				                  true, event);
			}
			break;
			default:
				return reader->error.code;
		}
		if (status == CDC_OK)
			return CDC_OK;
		if (status != CDC_END)
			return fail_reader(reader, status);
	}
}

void
binlog_reader_skip_rows(BinlogReader *reader)
{
	reader->in_rows = false;
}

const char *
binlog_event_type_name(uint8_t type_code)
{
	static const char *const names[256] = {
	    [EV_QUERY] = "QUERY",
	    [EV_STOP] = "STOP",
	    [EV_ROTATE] = "ROTATE",
	    [EV_INTVAR] = "INTVAR",
	    [EV_APPEND_BLOCK] = "APPEND_BLOCK",
	    [EV_DELETE_FILE] = "DELETE_FILE",
	    [EV_RAND] = "RAND",
	    [EV_USER_VAR] = "USER_VAR",
	    [EV_FORMAT_DESCRIPTION] = "FORMAT_DESCRIPTION",
	    [EV_XID] = "XID",
	    [EV_BEGIN_LOAD_QUERY] = "BEGIN_LOAD_QUERY",
	    [EV_EXECUTE_LOAD_QUERY] = "EXECUTE_LOAD_QUERY",
	    [EV_TABLE_MAP] = "TABLE_MAP",
	    [EV_WRITE_ROWS_V1] = "WRITE_ROWS_V1",
	    [EV_UPDATE_ROWS_V1] = "UPDATE_ROWS_V1",
	    [EV_DELETE_ROWS_V1] = "DELETE_ROWS_V1",
	    [EV_INCIDENT] = "INCIDENT",
	    [EV_HEARTBEAT] = "HEARTBEAT",
	    [EV_IGNORABLE] = "IGNORABLE",
	    [EV_ROWS_QUERY] = "ROWS_QUERY",
	    [EV_WRITE_ROWS] = "WRITE_ROWS",
	    [EV_UPDATE_ROWS] = "UPDATE_ROWS",
	    [EV_DELETE_ROWS] = "DELETE_ROWS",
	    [EV_GTID] = "GTID",
	    [EV_ANONYMOUS_GTID] = "ANONYMOUS_GTID",
	    [EV_PREVIOUS_GTIDS] = "PREVIOUS_GTIDS",
	    [EV_TRANSACTION_CONTEXT] = "TRANSACTION_CONTEXT",
	    [EV_VIEW_CHANGE] = "VIEW_CHANGE",
	    [EV_XA_PREPARE] = "XA_PREPARE",
	    [EV_PARTIAL_UPDATE_ROWS] = "PARTIAL_UPDATE_ROWS",
	    [EV_TRANSACTION_PAYLOAD] = "TRANSACTION_PAYLOAD",
	    [EV_HEARTBEAT_V2] = "HEARTBEAT_V2",
	    [EV_GTID_TAGGED] = "GTID_TAGGED",
	    [EV_MARIADB_ANNOTATE_ROWS] = "ANNOTATE_ROWS",
	    [EV_MARIADB_CHECKPOINT] = "BINLOG_CHECKPOINT",
	    [EV_MARIADB_GTID] = "MARIADB_GTID",
	    [EV_MARIADB_GTID_LIST] = "GTID_LIST",
	    [EV_MARIADB_START_ENCRYPTION] = "START_ENCRYPTION",
	    [EV_MARIADB_QUERY_COMPRESSED] = "QUERY_COMPRESSED",
	    [EV_MARIADB_WRITE_ROWS_COMPRESSED_V1] = "WRITE_ROWS_COMPRESSED_V1",
	    [EV_MARIADB_UPDATE_ROWS_COMPRESSED_V1] = "UPDATE_ROWS_COMPRESSED_V1",
	    [EV_MARIADB_DELETE_ROWS_COMPRESSED_V1] = "DELETE_ROWS_COMPRESSED_V1",
	    [EV_MARIADB_WRITE_ROWS_COMPRESSED] = "WRITE_ROWS_COMPRESSED",
	    [EV_MARIADB_UPDATE_ROWS_COMPRESSED] = "UPDATE_ROWS_COMPRESSED",
	    [EV_MARIADB_DELETE_ROWS_COMPRESSED] = "DELETE_ROWS_COMPRESSED",
	};

	return names[type_code] != NULL ? names[type_code] : "UNKNOWN";
}
