/*-------------------------------------------------------------------------
 *
 * event_body.c
 *	  Event header, and the bodies of all events that are not rows.
 *
 * NOTES
 *	  Observed with MySQL 9.7, MariaDB 10.11 and 11.8; older servers write
 *	  shorter GTID events, whose missing parts count as not told. Checksums are
 *	  already cut off, but for the format description event, which says whether
 *	  there are any and keeps room for one in every case.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "binlog/event_body.h"

#include <stdio.h>
#include <string.h>

#include "binlog/charset.h"
#include "binlog/inflate.h"
#include "binlog/wire.h"
#include "core/utf8.h"

#define FORMAT_VERSION 4
#define SERVER_VERSION_LEN 50
#define CHECKSUM_ALGORITHM_OFF 0
#define CHECKSUM_ALGORITHM_CRC32 1
#define CHECKSUM_ALGORITHM_UNDEFINED 255

/* Flags of MySQL's GTID events. */
#define MYSQL_GTID_FLAG_MAY_HAVE_SBR 1

/* Flags of MariaDB's GTID event. */
#define MARIADB_GTID_STANDALONE 0x01
#define MARIADB_GTID_GROUP_COMMIT 0x02
#define MARIADB_GTID_TRANSACTIONAL 0x04
#define MARIADB_GTID_DDL 0x20
#define MARIADB_GTID_PREPARED_XA 0x40
#define MARIADB_GTID_COMPLETED_XA 0x80

/* XA: bytes of each part of an xid, at most */
#define XID_PART_MAX 64
#define MARIADB_GTID_EXTRA_START_ALTER 0x02
#define MARIADB_GTID_EXTRA_ROLLBACK_ALTER 0x08

static CdcStatus
truncated(CdcError *err, const char *event)
{
	return cdc_fail(err, CDC_TRUNCATED, 0, "%s event is too short", event);
}

void
binlog_parse_header(const uint8_t *data, BinlogHeader *header)
{
	CdcCursor c;

	cdc_cursor_init(&c, data, EVENT_HEADER_LEN);
	header->timestamp = cdc_cursor_u32(&c);
	header->type_code = cdc_cursor_u8(&c);
	header->server_id = cdc_cursor_u32(&c);
	header->length = cdc_cursor_u32(&c);
	header->next_pos = cdc_cursor_u32(&c);
	header->flags = cdc_cursor_u16(&c);
}

CdcStatus
binlog_parse_format(const uint8_t *body, size_t len, BinlogFormat *format, CdcError *err)
{
	CdcCursor c;
	uint16_t version;
	const uint8_t *server;
	const uint8_t *post_header;
	size_t ntypes;
	uint8_t algorithm;

	cdc_cursor_init(&c, body, len);
	version = cdc_cursor_u16(&c);
	server = cdc_cursor_bytes(&c, SERVER_VERSION_LEN);
	cdc_cursor_u32(&c);
	if (c.failed)
		return truncated(err, "format description");
	if (version != FORMAT_VERSION)
		return cdc_fail(err, CDC_UNSUPPORTED, 0, "binary log has format version %u",
		                (unsigned) version);
	if (cdc_cursor_u8(&c) != EVENT_HEADER_LEN)
		return cdc_fail(err, CDC_UNSUPPORTED, 0, "binary log has another event header length");
	if (cdc_cursor_left(&c) < 1 + EVENT_CHECKSUM_LEN + EV_ROWS_QUERY)
		return truncated(err, "format description");
	ntypes = cdc_cursor_left(&c) - 1 - EVENT_CHECKSUM_LEN;
	post_header = cdc_cursor_bytes(&c, ntypes);
	algorithm = cdc_cursor_u8(&c);
	switch (algorithm)
	{
		case CHECKSUM_ALGORITHM_OFF:
		case CHECKSUM_ALGORITHM_UNDEFINED:
			format->has_checksum = false;
			break;
		case CHECKSUM_ALGORITHM_CRC32:
			format->has_checksum = true;
			break;
		default:
			return cdc_fail(err, CDC_UNSUPPORTED, 0,
			                "binary log has the unknown checksum algorithm %u", algorithm);
	}
	memcpy(format->server_version, server, SERVER_VERSION_LEN);
	format->server_version[SERVER_VERSION_LEN] = '\0';
	format->is_mariadb =
	    strstr(format->server_version, "MariaDB") != NULL || ntypes >= EV_MARIADB_GTID;
	memset(format->table_id_len, 6, sizeof(format->table_id_len));
	for (size_t i = 0; i < ntypes && i < 255; i++)
	{
		if (post_header[i] == 6)
			format->table_id_len[i + 1] = 4;
	}
	format->known = true;
	return CDC_OK;
}

/*
 * Offsets above this are nonsense: the catalog keeps them in signed numbers of
 * 64 bits, and what is added to them on the way must not pass those.
 */
#define OFFSET_MAX (UINT64_C(1) << 62)

/* Put a file name from the wire into pos. */
static bool
set_file(CdcPosition *pos, const uint8_t *name, size_t len)
{
	while (len > 0 && name[len - 1] == '\0')
		len--;
	if (len == 0 || len > CDC_FILE_NAME_MAX || memchr(name, '\0', len) != NULL ||
	    !cdc_utf8_is_valid(name, len))
		return false;
	memcpy(pos->file, name, len);
	pos->file[len] = '\0';
	pos->born = 0;
	return true;
}

CdcStatus
binlog_parse_rotate(const uint8_t *body, size_t len, BinlogEvent *event, CdcError *err)
{
	CdcCursor c;
	size_t name_len;

	cdc_cursor_init(&c, body, len);
	event->u.rotate.offset = cdc_cursor_u64(&c);
	if (c.failed)
		return truncated(err, "ROTATE");
	name_len = cdc_cursor_left(&c);
	if (!set_file(&event->u.rotate, c.pos, name_len))
		return cdc_fail(err, CDC_MALFORMED, 0, "ROTATE event has an invalid file name");
	if (event->u.rotate.offset > OFFSET_MAX)
		return cdc_fail(err, CDC_MALFORMED, 0, "ROTATE event has an impossible offset");
	return CDC_OK;
}

CdcStatus
binlog_parse_heartbeat(const uint8_t *body, size_t len, uint32_t offset_low, BinlogEvent *event,
                       bool *full, CdcError *err)
{
	CdcCursor c;
	const uint8_t *name = body;
	size_t name_len = len;

	event->u.rotate.offset = offset_low;
	*full = false;
	if (event->type_code == EV_HEARTBEAT_V2)
	{
		name_len = 0;
		cdc_cursor_init(&c, body, len);
		while (cdc_cursor_left(&c) > 0)
		{
			uint64_t type = cdc_cursor_lenenc(&c);
			uint64_t field_len;
			const uint8_t *data;

			if (type == 0)
				break;
			field_len = cdc_cursor_lenenc(&c);
			data = cdc_cursor_bytes(&c, field_len);
			if (data == NULL)
				break;
			if (type == 1)
			{
				name = data;
				name_len = (size_t) field_len;
			}
			else if (type == 2)
			{
				CdcCursor value;

				cdc_cursor_init(&value, data, (size_t) field_len);
				event->u.rotate.offset = cdc_cursor_lenenc(&value);
				*full = true;
				c.failed |= value.failed;
			}
		}
		if (c.failed)
			return truncated(err, "HEARTBEAT");
	}
	if (!set_file(&event->u.rotate, name, name_len))
		return cdc_fail(err, CDC_MALFORMED, 0, "HEARTBEAT event has an invalid file name");
	if (event->u.rotate.offset > OFFSET_MAX)
		return cdc_fail(err, CDC_MALFORMED, 0, "HEARTBEAT event has an impossible offset");
	return CDC_OK;
}

/*
 * Walk through a query's status variables for sql_mode and the client's
 * character set. They come first in practice; at a variable that is not known
 * here the walk ends, which loses nothing else, as the area's length is told.
 */
static void
read_status_vars(const uint8_t *data, size_t len, uint64_t *sql_mode, uint16_t *client_collation)
{
	CdcCursor c;

	cdc_cursor_init(&c, data, len);
	while (cdc_cursor_left(&c) > 0)
	{
		uint64_t value;

		switch (cdc_cursor_u8(&c))
		{
			case 0: /* session options */
				cdc_cursor_u32(&c);
				break;
			case 1:
				value = cdc_cursor_u64(&c);
				if (!c.failed)
					*sql_mode = value;
				break;
			case 2: /* catalog with a final zero byte */
				cdc_cursor_bytes(&c, (uint64_t) cdc_cursor_u8(&c) + 1);
				break;
			case 3:  /* auto_increment settings */
			case 10: /* length at the origin */
				cdc_cursor_u32(&c);
				break;
			case 4: /* client, connection and server collation */
				value = cdc_cursor_u16(&c);
				cdc_cursor_u32(&c);
				if (!c.failed)
					*client_collation = (uint16_t) value;
				break;
			case 5: /* time zone */
			case 6: /* catalog */
				cdc_cursor_bytes(&c, cdc_cursor_u8(&c));
				break;
			case 7: /* lc_time_names */
			case 8: /* collation of the schema */
				cdc_cursor_u16(&c);
				break;
			case 9: /* tables of a multi-table update */
				cdc_cursor_u64(&c);
				break;
			default:
				return;
		}
	}
}

/*
 * QUERY, EXECUTE_LOAD_QUERY and QUERY_COMPRESSED. The text is in the client's
 * character set and comes out as UTF-8; when it cannot be converted, as it is.
 */
CdcStatus
binlog_parse_query(const uint8_t *body, size_t len, CdcArena *arena, BinlogEvent *event,
                   CdcError *err)
{
	CdcCursor c;
	BinlogQuery *query = &event->u.query;
	size_t schema_len;
	size_t status_len;
	const uint8_t *status_vars;
	const uint8_t *schema;
	const uint8_t *text;
	size_t text_len;
	uint16_t collation = 0;
	const char *utf8;
	uint32_t utf8_len;

	cdc_cursor_init(&c, body, len);
	cdc_cursor_u32(&c); /* thread id */
	cdc_cursor_u32(&c); /* execution time */
	schema_len = cdc_cursor_u8(&c);
	query->error_code = cdc_cursor_u16(&c);
	status_len = cdc_cursor_u16(&c);
	query->is_load_data = event->type_code == EV_EXECUTE_LOAD_QUERY;
	if (query->is_load_data)
		cdc_cursor_bytes(&c, 13); /* file id, start and end of its name, duplicate handling */
	status_vars = cdc_cursor_bytes(&c, status_len);
	schema = cdc_cursor_bytes(&c, schema_len + 1);
	if (c.failed)
		return truncated(err, "QUERY");
	if (!cdc_utf8_is_valid(schema, schema_len))
		return cdc_fail(err, CDC_MALFORMED, 0, "QUERY event has an invalid schema name");
	query->sql_mode = 0;
	read_status_vars(status_vars, status_len, &query->sql_mode, &collation);
	query->schema = cdc_arena_strndup(arena, schema, schema_len);
	if (query->schema == NULL)
		return cdc_fail(err, CDC_LIMIT, 0, "QUERY event does not fit the memory limit");
	text = c.pos;
	text_len = cdc_cursor_left(&c);
	if (event->type_code == EV_MARIADB_QUERY_COMPRESSED)
	{
		CdcStatus status = binlog_inflate_event(text, text_len, arena, &text, &text_len, err);

		if (status != CDC_OK)
			return status;
	}
	while (text_len > 0 && text[text_len - 1] == '\0')
		text_len--;
	query->text = (const char *) text;
	query->len = text_len;
	if (collation != 0 && text_len <= UINT32_MAX / 4 &&
	    binlog_charset_to_utf8(collation, text, (uint32_t) text_len, arena, &utf8, &utf8_len,
	                           NULL) == CDC_OK)
	{
		query->text = utf8;
		query->len = utf8_len;
	}
	return CDC_OK;
}

/* GTID and ANONYMOUS_GTID of MySQL. */
static CdcStatus
parse_mysql_gtid(CdcCursor *c, BinlogEvent *event, CdcError *err)
{
	BinlogGtid *gtid = &event->u.gtid;
	uint8_t flags = cdc_cursor_u8(c);
	const uint8_t *uuid = cdc_cursor_bytes(c, 16);
	uint64_t immediate;

	gtid->gtid.sequence = cdc_cursor_u64(c);
	if (c->failed)
		return truncated(err, "GTID");
	if (event->type_code == EV_GTID)
	{
		gtid->gtid.kind = CDC_GTID_MYSQL;
		memcpy(gtid->gtid.uuid, uuid, sizeof(gtid->gtid.uuid));
	}
	if (flags & MYSQL_GTID_FLAG_MAY_HAVE_SBR)
		gtid->flags |= BINLOG_GTID_MAY_HAVE_SBR;

	/* From here on parts that an older server does not write. */
	if (cdc_cursor_left(c) < 17 + 7 || *c->pos != 2)
		return CDC_OK;
	cdc_cursor_bytes(c, 17); /* logical clock */
	immediate = cdc_cursor_uint(c, 7);
	gtid->commit_time_us = (int64_t) (immediate & ((UINT64_C(1) << 55) - 1));
	if (immediate >> 55)
		gtid->commit_time_us = (int64_t) cdc_cursor_uint(c, 7);
	if (cdc_cursor_left(c) > 0)
		gtid->transaction_length = cdc_cursor_lenenc(c);
	return c->failed ? truncated(err, "GTID") : CDC_OK;
}

/*
 * An integer of MySQL's serialization library: the number of trailing one bits
 * of the first byte is the number of bytes that follow.
 */
static uint64_t
read_serialized(CdcCursor *c)
{
	uint8_t first = cdc_cursor_u8(c);
	int extra = 0;
	uint64_t rest;

	while (extra < 8 && (first >> extra & 1))
		extra++;
	if (extra == 0)
		return first >> 1;
	rest = cdc_cursor_uint(c, extra);
	if (extra >= 7)
		return rest; /* seven or eight bits of the first byte are marks */
	return rest << (7 - extra) | first >> (extra + 1);
}

/* GTID_TAGGED of MySQL 8.3 and later: numbered fields in rising order. */
static CdcStatus
parse_tagged_gtid(CdcCursor *c, BinlogEvent *event, CdcError *err)
{
	BinlogGtid *gtid = &event->u.gtid;
	uint64_t value;

	read_serialized(c); /* version */
	read_serialized(c); /* size */
	read_serialized(c); /* last field that must be understood */
	gtid->gtid.kind = CDC_GTID_MYSQL;
	while (cdc_cursor_left(c) > 0)
	{
		uint64_t field = read_serialized(c);

		switch (field)
		{
			case 0:
				if (read_serialized(c) & MYSQL_GTID_FLAG_MAY_HAVE_SBR)
					gtid->flags |= BINLOG_GTID_MAY_HAVE_SBR;
				break;
			case 1:
				for (int i = 0; i < 16; i++)
					gtid->gtid.uuid[i] = (uint8_t) read_serialized(c);
				break;
			case 2: /* signed: zigzag */
				value = read_serialized(c);
				gtid->gtid.sequence = value >> 1;
				if (value & 1)
					return cdc_fail(err, CDC_MALFORMED, 0,
					                "GTID event has an invalid sequence number");
				break;
			case 3:
			{
				uint64_t len = read_serialized(c);
				const uint8_t *tag = cdc_cursor_bytes(c, len);

				if (tag == NULL || !cdc_gtid_tag_is_valid((const char *) tag, (size_t) len))
					return cdc_fail(err, CDC_MALFORMED, 0, "GTID event has an invalid tag");
				memcpy(gtid->gtid.tag, tag, (size_t) len);
				gtid->gtid.tag[len] = '\0';
			}
			break;
			case 4: /* logical clock */
			case 5:
			case 9: /* server versions */
			case 10:
			case 11: /* commit ticket */
				read_serialized(c);
				break;
			case 6:
			case 7: /* the original time, when another one */
				gtid->commit_time_us = (int64_t) read_serialized(c);
				break;
			case 8:
				gtid->transaction_length = read_serialized(c);
				break;
			default:
				/* A field of a later version has no length to skip it by; the ones before it are enough. */
				c->pos = c->end;
				break;
		}
	}
	if (c->failed)
		return truncated(err, "GTID");
	if (gtid->gtid.sequence == 0)
		return cdc_fail(err, CDC_MALFORMED, 0, "GTID event has no sequence number");
	return CDC_OK;
}

static CdcStatus
parse_mariadb_gtid(CdcCursor *c, BinlogEvent *event, CdcError *err)
{
	BinlogGtid *gtid = &event->u.gtid;
	uint8_t flags;

	gtid->gtid.kind = CDC_GTID_MARIADB;
	gtid->gtid.server_id = event->server_id;
	gtid->gtid.sequence = cdc_cursor_u64(c);
	gtid->gtid.domain = cdc_cursor_u32(c);
	flags = cdc_cursor_u8(c);
	if (flags & MARIADB_GTID_GROUP_COMMIT)
		cdc_cursor_u64(c);
	if (flags & (MARIADB_GTID_PREPARED_XA | MARIADB_GTID_COMPLETED_XA))
	{
		uint64_t xid_len;

		cdc_cursor_u32(c); /* format id */
		xid_len = cdc_cursor_u8(c);
		xid_len += cdc_cursor_u8(c);
		cdc_cursor_bytes(c, xid_len);
	}
	if (c->failed)
		return truncated(err, "GTID");
	if (flags & MARIADB_GTID_STANDALONE)
		gtid->flags |= BINLOG_GTID_STANDALONE;
	if (flags & MARIADB_GTID_TRANSACTIONAL)
		gtid->flags |= BINLOG_GTID_TRANSACTIONAL;
	if (flags & MARIADB_GTID_DDL)
		gtid->flags |= BINLOG_GTID_DDL;
	if (flags & MARIADB_GTID_PREPARED_XA)
		gtid->flags |= BINLOG_GTID_XA_PREPARE;
	if (flags & MARIADB_GTID_COMPLETED_XA)
		gtid->flags |= BINLOG_GTID_XA_COMPLETE;

	/* Extra flags are there when something is; padding reads as none. */
	if (cdc_cursor_left(c) > 0)
	{
		uint8_t extra = cdc_cursor_u8(c);

		if (extra & MARIADB_GTID_EXTRA_START_ALTER)
			gtid->flags |= BINLOG_GTID_START_ALTER;
		if (extra & MARIADB_GTID_EXTRA_ROLLBACK_ALTER)
			gtid->flags |= BINLOG_GTID_ROLLBACK_ALTER;
	}
	return CDC_OK;
}

CdcStatus
binlog_parse_gtid(const uint8_t *body, size_t len, BinlogEvent *event, CdcError *err)
{
	CdcCursor c;

	memset(&event->u.gtid, 0, sizeof(event->u.gtid));
	cdc_cursor_init(&c, body, len);
	switch (event->type_code)
	{
		case EV_MARIADB_GTID:
			return parse_mariadb_gtid(&c, event, err);
		case EV_GTID_TAGGED:
			return parse_tagged_gtid(&c, event, err);
		default:
			return parse_mysql_gtid(&c, event, err);
	}
}

CdcStatus
binlog_parse_xid(const uint8_t *body, size_t len, BinlogEvent *event, CdcError *err)
{
	CdcCursor c;

	cdc_cursor_init(&c, body, len);
	event->u.xid.xid = cdc_cursor_u64(&c);
	return c.failed ? truncated(err, "XID") : CDC_OK;
}

static char *
put_hex(char *out, const uint8_t *data, uint32_t len)
{
	static const char digits[] = "0123456789abcdef";

	*out++ = 'X';
	*out++ = '\'';
	for (uint32_t i = 0; i < len; i++)
	{
		*out++ = digits[data[i] >> 4];
		*out++ = digits[data[i] & 15];
	}
	*out++ = '\'';
	*out++ = ',';
	return out;
}

/* The xid comes out as both servers write it behind "XA COMMIT" (seen on MySQL 9.7 and MariaDB 10.11). */
CdcStatus
binlog_parse_xa_prepare(const uint8_t *body, size_t len, BinlogEvent *event, CdcError *err)
{
	CdcCursor c;
	uint32_t format;
	uint32_t gtrid_len;
	uint32_t bqual_len;
	const uint8_t *data;
	char *out = event->u.xa_prepare.xid;

	cdc_cursor_init(&c, body, len);
	event->u.xa_prepare.one_phase = cdc_cursor_u8(&c) != 0;
	format = cdc_cursor_u32(&c);
	gtrid_len = cdc_cursor_u32(&c);
	bqual_len = cdc_cursor_u32(&c);
	if (gtrid_len > XID_PART_MAX || bqual_len > XID_PART_MAX)
		return cdc_fail(err, CDC_MALFORMED, 0, "XA_PREPARE event has an xid of %u and %u bytes",
		                (unsigned) gtrid_len, (unsigned) bqual_len);
	data = cdc_cursor_bytes(&c, (uint64_t) gtrid_len + bqual_len);
	if (data == NULL)
		return truncated(err, "XA_PREPARE");
	out = put_hex(out, data, gtrid_len);
	out = put_hex(out, data + gtrid_len, bqual_len);
	snprintf(out, CDC_XID_TEXT_MAX - (size_t) (out - event->u.xa_prepare.xid), "%u",
	         (unsigned) format);
	return CDC_OK;
}
