/*-------------------------------------------------------------------------
 *
 * test_reader.c
 *	  The reader over made events: positions, checksums, every kind of event.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "binlog/reader.h"

#include <zstd.h>

#include "binlog/wire.h"
#include "event_build.h"
#include "tap.h"

static BinlogReader *reader;
static BinlogEvent event;
static CdcBuf packet;
static bool with_checksum;

static void
start(uint64_t offset)
{
	CdcPosition position = {.file = "bl.000001", .offset = offset};

	binlog_reader_start(reader, &position);
}

/* Feed what is in packet and take the first event out of it. */
static CdcStatus
feed_packet(void)
{
	static uint8_t *copy;
	CdcStatus status;

	/* A copy of exact size, so that the sanitizer sees a read past the end. */
	free(copy);
	copy = malloc(packet.len);
	memcpy(copy, packet.data, packet.len);
	status = binlog_reader_feed(reader, copy, packet.len);
	if (packet.len == 0)
	{
		free(copy);
		copy = NULL;
	}
	return status == CDC_OK ? binlog_reader_next(reader, &event) : status;
}

static CdcStatus
feed(uint8_t type, uint16_t flags, uint32_t next_pos, const void *body, size_t len)
{
	build_event(&packet, type, flags, next_pos, body, len, with_checksum);
	return feed_packet();
}

static CdcStatus
feed_hex(uint8_t type, uint16_t flags, uint32_t next_pos, const char *hex)
{
	CdcBuf body;
	CdcStatus status;

	cdc_buf_init(&body, &cdc_malloc_allocator, 0);
	put_hex(&body, hex);
	cdc_buf_add(&body, "", 0);
	status = feed(type, flags, next_pos, body.data, body.len);
	cdc_buf_free(&body);
	return status;
}

static CdcStatus
feed_format(bool mariadb, uint32_t next_pos)
{
	build_format(&packet, mariadb, with_checksum, next_pos);
	return feed_packet();
}

#define ROTATE_BODY(file) "\x04\0\0\0\0\0\0\0" file

static void
test_positions(void)
{
	start(4);
	with_checksum = false;
	is_int(feed(EV_XID, 0, 0, "12345678", 8), CDC_MALFORMED,
	       "an event needs a format description before it");
	is_int(binlog_reader_feed(reader, NULL, 0), CDC_MALFORMED, "an error stays");
	start(4);
	with_checksum = true;
	is_int(feed(EV_ROTATE, EVENT_FLAG_ARTIFICIAL, 0, ROTATE_BODY("bl.000007"), 17), CDC_OK,
	       "faked ROTATE with checksum before the format is known");
	is_str(event.u.rotate.file, "bl.000007", "its file");
	ok(event.kind == BINLOG_ROTATE && event.artificial && event.u.rotate.offset == 4, "its offset");
	is_int(feed_format(false, 127), CDC_OK, "format description");
	ok(event.kind == BINLOG_FORMAT && !event.artificial && event.u.format.has_checksum &&
	       !event.u.format.is_mariadb,
	   "its facts");
	is_str(event.u.format.server_version, "9.7.4", "server version");
	ok(event.start.offset == 4 && event.end.offset == 127 &&
	       strcmp(event.end.file, "bl.000007") == 0,
	   "its position");
	is_int(feed(EV_XID, 0, 158, "12345678", 8), CDC_OK, "XID");
	ok(event.start.offset == 127 && event.end.offset == 158, "position told");
	is_int(event.u.xid.xid, INT64_C(0x3837363534333231), "its number");
	feed(EV_XID, 0, 0, "12345678", 8);
	ok(event.start.offset == 158 && event.end.offset == 189, "position not told: counted");
	feed(EV_XID, 0, 1000, "12345678", 8);
	ok(event.start.offset == 969 && event.end.offset == 1000, "events in front were left out");
	feed(EV_XID, 0, 900, "12345678", 8);
	ok(event.start.offset == 1000 && event.end.offset == 1031, "never backwards");
	feed(EV_STOP, EVENT_FLAG_ARTIFICIAL, 5000, "", 0);
	ok(event.artificial && event.start.offset == 1031 && event.end.offset == 1031,
	   "an artificial event does not move");
	feed(EV_ROTATE, 0, 1071, ROTATE_BODY("bl.000008"), 17);
	ok(!event.artificial && event.start.offset == 1031 && event.end.offset == 4, "real ROTATE");
	is_str(event.end.file, "bl.000008", "leads to the next file");
	with_checksum = false;
	is_int(feed(EV_ROTATE, EVENT_FLAG_ARTIFICIAL, 0, ROTATE_BODY("bl.000008"), 17), CDC_OK,
	       "faked ROTATE without checksum while events have one");
	is_str(event.u.rotate.file, "bl.000008", "its file is whole");
	is_int(feed_format(false, 127), CDC_OK, "checksums switched off with the file");
	ok(!event.u.format.has_checksum, "is told");
	is_int(feed(EV_XID, 0, 154, "12345678", 8), CDC_OK, "event without checksum");
	feed_format(false, 0);
	ok(event.artificial && event.start.offset == 154 && event.end.offset == 154,
	   "format description of the dump does not move");

	/* When a file was born: the time in its format description, also in one of the dump. */
	start(500);
	build_format(&packet, false, false, 0);
	memcpy(packet.data, "\x01\x02\x03\x04", 4);
	feed_packet();
	ok(event.start.born == 0x04030201 && event.end.born == 0x04030201 && event.end.offset == 500, "the file's time");
	feed(EV_XID, 0, 531, "12345678", 8);
	ok(event.start.born == 0x04030201 && event.end.born == 0x04030201, "stays with the positions of the file");
	feed(EV_HEARTBEAT, 0, 531, "bl.000001", 9);
	ok(event.u.rotate.born == 0x04030201, "and a heartbeat's");
	feed(EV_ROTATE, 0, 571, ROTATE_BODY("bl.000002"), 17);
	ok(event.u.rotate.born == 0 && event.end.born == 0, "the next file's is not known yet");
	with_checksum = false;

	/* Over 4 GiB. */
	start(UINT64_C(4294967000));
	feed_format(true, 0);
	feed(EV_XID, 0, 4294967027u, "12345678", 8);
	ok(event.end.offset == UINT64_C(4294967027), "below 4 GiB");
	feed(EV_XID, 0, 100, "12345678", 8);
	ok(event.start.offset == UINT64_C(4294967396) - 27 && event.end.offset == UINT64_C(4294967396),
	   "the low part wrapped");
	feed(EV_XID, 0, 0, "12345678", 8);
	ok(event.end.offset == UINT64_C(4294967423), "counted on above 4 GiB");
	feed(EV_XID, 0, 154, "12345678", 8);
	ok(event.end.offset == UINT64_C(4294967450), "told again above 4 GiB");
}

static void
test_heartbeats(void)
{
	/* Recorded from MySQL 9.7 and MariaDB 10.11. */
	static const char *const v1 =
	    "000000001b3e00000020000000c600000000 00626c2e303030303034a13154fe";
	static const char *const v2 =
	    "00000000293e00000026000000c600000000 000109626c2e3030303030340201c600032bdcad";
	static const char *const maria =
	    "000000001b3d00000020000000b50b05000000626c2e30303030303138c4edbd";
	const char *const packets[] = {v1, v2, maria};
	CdcPosition position = {.file = "bl.000004", .offset = 150};

	with_checksum = true;
	for (int i = 0; i < 3; i++)
	{
		if (i == 2)
			strcpy(position.file, "bl.000001");
		binlog_reader_start(reader, &position);
		feed_format(i == 2, 0);
		cdc_buf_reset(&packet);
		put_hex(&packet, packets[i]);
		is_int(feed_packet(), CDC_OK, "heartbeat");
		is_str(event.u.rotate.file, position.file, "its file");
		is_int(event.u.rotate.offset, i == 2 ? 330677 : 198, "its offset");
		ok(event.kind == BINLOG_HEARTBEAT && event.artificial &&
		       event.end.offset == event.u.rotate.offset,
		   "moves the end");
	}
	binlog_reader_start(reader, &(CdcPosition){.file = "bl.000009", .offset = 150});
	feed_format(false, 0);
	cdc_buf_reset(&packet);
	put_hex(&packet, v1);
	feed_packet();
	ok(event.end.offset == 150, "a heartbeat of another file does not");
	binlog_reader_start(reader,
	                    &(CdcPosition){.file = "bl.000004", .offset = UINT64_C(0x200000100)});
	feed_format(false, 0);
	feed_packet();
	cdc_buf_reset(&packet);
	put_hex(&packet, v1);
	feed_packet();
	ok(event.end.offset == UINT64_C(0x200000100), "nor one that would lead backwards");
}

static void
test_checksums(void)
{
	start(4);
	with_checksum = true;
	feed_format(false, 127);
	build_event(&packet, EV_XID, 0, 158, "12345678", 8, true);
	packet.data[20] ^= 1;
	is_int(feed_packet(), CDC_CHECKSUM, "a flipped bit is noticed");
	is_int(binlog_reader_error(reader)->offset, 127, "the error tells the event's start");
	start(4);
	build_format(&packet, false, true, 127);
	packet.data[17] = EVENT_FLAG_IN_USE;
	is_int(feed_packet(), CDC_OK, "the in-use flag is not part of the checksum");
	start(4);
	build_format(&packet, false, true, 127);
	packet.data[30] ^= 1;
	is_int(feed_packet(), CDC_CHECKSUM, "damaged format description");
	start(4);
	build_format(&packet, false, true, 127);
	packet.data[9]++;
	is_int(feed_packet(), CDC_TRUNCATED, "length above the bytes");
	start(4);
	build_format(&packet, false, true, 127);
	packet.data[9]--;
	is_int(feed_packet(), CDC_MALFORMED, "length below the bytes");
	start(4);
	build_format(&packet, false, false, 127);
	packet.data[packet.len - 5] = 2;
	is_int(feed_packet(), CDC_UNSUPPORTED, "unknown checksum algorithm");
}

static void
test_unknown_types(void)
{
	start(4);
	with_checksum = false;
	feed_format(false, 127);
	is_int(feed(200, EVENT_FLAG_IGNORABLE, 0, "x", 1), CDC_OK, "unknown type that may be ignored");
	is_int(event.kind, BINLOG_OTHER, "is OTHER");
	is_int(feed(EV_INCIDENT, 0, 0, "\1\0\0", 3), CDC_OK, "INCIDENT");
	is_int(event.kind, BINLOG_INCIDENT, "its kind");
	is_int(feed(200, 0, 0, "x", 1), CDC_UNSUPPORTED, "unknown type that may not");
	is_str(binlog_event_type_name(19), "TABLE_MAP", "name");
	is_str(binlog_event_type_name(23), "WRITE_ROWS_V1", "name of v1 rows");
	is_str(binlog_event_type_name(250), "UNKNOWN", "name of no type");
}

static void
test_gtids(void)
{
	char text[CDC_GTID_TEXT_MAX];

	start(4);
	with_checksum = false;
	feed_format(false, 127);
	is_int(feed_hex(EV_GTID, 0, 0,
	                "01 96f39396ec0211f1ae4b02fc00000001 a3420f0000000000 02 0000000000000000 "
	                "0100000000000000 adeae6889d6106 b0 50620100"),
	       CDC_OK, "GTID");
	cdc_gtid_format(&event.u.gtid.gtid, text);
	is_str(text, "96f39396-ec02-11f1-ae4b-02fc00000001:1000099", "its text");
	ok(event.u.gtid.flags == BINLOG_GTID_MAY_HAVE_SBR && event.u.gtid.transaction_length == 176,
	   "flags and length");
	is_int(feed_hex(EV_GTID, 0, 0, "00 96f39396ec0211f1ae4b02fc00000001 a3420f0000000000"), CDC_OK,
	       "GTID of an old server");
	is_int(feed_hex(EV_GTID, 0, 0,
	                "00 96f39396ec0211f1ae4b02fc00000001 a3420f0000000000 02 0000000000000000 "
	                "0100000000000000 000000000000 80 01000000000000 05"),
	       CDC_OK, "GTID with an original time");
	ok(event.u.gtid.commit_time_us == 1 && event.u.gtid.transaction_length == 5, "original time");
	is_int(
	    feed_hex(EV_ANONYMOUS_GTID, 0, 0, "00 00000000000000000000000000000000 0000000000000000"),
	    CDC_OK, "ANONYMOUS_GTID");
	is_int(event.u.gtid.gtid.kind, CDC_GTID_NONE, "has no GTID");
	is_int(feed_hex(EV_GTID_TAGGED, 0, 0,
	                "0276000000025902cd034d025902b1030422c503b9029604f103000000020404060a6d79746167"
	                "08040a0c0c7f77a6f19c6b61061071041283120b"),
	       CDC_OK, "GTID_TAGGED");
	cdc_gtid_format(&event.u.gtid.gtid, text);
	is_str(text, "96f39396-ec02-11f1-ae4b-02fc00000001:mytag:1", "its text");
	ok(event.u.gtid.transaction_length == 284 &&
	       event.u.gtid.commit_time_us == INT64_C(1795964682741367),
	   "its length and time");

	start(4);
	feed_format(true, 127);
	is_int(feed_hex(EV_MARIADB_GTID, 0, 0, "84420f0000000000 05000000 29 000000000000"), CDC_OK,
	       "MariaDB GTID");
	cdc_gtid_format(&event.u.gtid.gtid, text);
	is_str(text, "5-7-1000068", "its text, server id from the header");
	is_int(event.u.gtid.flags, BINLOG_GTID_STANDALONE | BINLOG_GTID_DDL, "flags");
	feed_hex(EV_MARIADB_GTID, 0, 0,
	         "0100000000000000 00000000 46 0000000000000001 01000000 02 02 67316231 00");
	is_int(event.u.gtid.flags, BINLOG_GTID_TRANSACTIONAL | BINLOG_GTID_XA_PREPARE,
	       "XA with group commit id");
	feed_hex(EV_MARIADB_GTID, 0, 0, "0100000000000000 00000000 29 02");
	is_int(event.u.gtid.flags, BINLOG_GTID_STANDALONE | BINLOG_GTID_DDL | BINLOG_GTID_START_ALTER,
	       "START_ALTER");
	feed_hex(EV_MARIADB_GTID, 0, 0, "0100000000000000 00000000 29 08 0000000000000001");
	is_int(event.u.gtid.flags,
	       BINLOG_GTID_STANDALONE | BINLOG_GTID_DDL | BINLOG_GTID_ROLLBACK_ALTER, "ROLLBACK_ALTER");
	is_int(feed_hex(EV_MARIADB_GTID, 0, 0, "0100000000000000 00000000"), CDC_TRUNCATED,
	       "short MariaDB GTID");

	/* "my:ag", which would read as another set when it comes back from the catalog */
	start(4);
	feed_format(false, 127);
	is_int(feed_hex(EV_GTID_TAGGED, 0, 0,
	                "0276000000025902cd034d025902b1030422c503b9029604f103000000020404060a6d793a6167"
	                "08040a0c0c7f77a6f19c6b61061071041283120b"),
	       CDC_MALFORMED, "a tag that is no tag");
}

/* What goes into the catalog of the target must be text, and numbers that it can hold. */
static void
test_names_and_offsets(void)
{
	with_checksum = false;
	start(4);
	is_int(feed_hex(EV_ROTATE, EVENT_FLAG_ARTIFICIAL, 0, "0400000000000000 626c2e303031"), CDC_OK,
	       "ROTATE");
	start(4);
	is_int(feed_hex(EV_ROTATE, EVENT_FLAG_ARTIFICIAL, 0, "0400000000000000 626cff2e303031"),
	       CDC_MALFORMED, "ROTATE to a file whose name is no text");
	start(4);
	is_int(feed_hex(EV_ROTATE, EVENT_FLAG_ARTIFICIAL, 0, "00000000000000f0 626c2e303031"),
	       CDC_MALFORMED, "ROTATE to an offset beyond the catalog's numbers");
	start(4);
	is_int(feed_hex(EV_HEARTBEAT_V2, 0, 0, "0106626c2e303031 0209fe00000000000000f0 00"),
	       CDC_MALFORMED, "heartbeat with an offset beyond the catalog's numbers");
	start(4);
	feed_format(false, 127);
	is_int(feed_hex(EV_QUERY, 0, 0, "01000000 00000000 02 0000 0000 74ff00 42"), CDC_MALFORMED,
	       "QUERY with a schema whose name is no text");
}

static void
test_queries(void)
{
	start(4);
	with_checksum = false;
	feed_format(false, 127);
	is_int(feed_hex(EV_QUERY, 0, 0, "01000000 00000000 02 0000 0000 747900 42454749 4e 00"), CDC_OK,
	       "QUERY without status variables");
	is_str(event.u.query.schema, "ty", "schema");
	is_strn(event.u.query.text, event.u.query.len, "BEGIN", "trailing zero bytes are cut");
	is_int(event.u.query.sql_mode, 0, "no sql_mode");
	is_int(feed_hex(
	           EV_QUERY, 0, 0,
	           "01000000 00000000 00 4600 1500 0000000000 010400000000000000 04080008000800 00 e9"),
	       CDC_OK, "QUERY of a latin1 client");
	is_strn(event.u.query.text, event.u.query.len, "é", "text is converted");
	ok(event.u.query.sql_mode == 4 && event.u.query.error_code == 0x46 &&
	       event.u.query.schema[0] == '\0',
	   "sql_mode, error code, no schema");
	is_int(feed_hex(EV_QUERY, 0, 0, "01000000 00000000 00 0000 0b00 010400000000000000 fd09 00 61"),
	       CDC_OK, "QUERY with an unknown status variable");
	is_strn(event.u.query.text, event.u.query.len, "a", "is not lost");
	is_int(event.u.query.sql_mode, 4, "nor is what came before it");
	is_int(feed_hex(EV_QUERY, 0, 0, "01000000 00000000 00 0000 0300 0501ff 00 61"), CDC_OK,
	       "status variable longer than the area");
	is_int(feed_hex(EV_EXECUTE_LOAD_QUERY, 0, 0,
	                "01000000 00000000 00 0000 0000 01000000 09000000 12000000 00 00 4c4f4144"),
	       CDC_OK, "EXECUTE_LOAD_QUERY");
	ok(event.u.query.is_load_data, "is told");
	is_strn(event.u.query.text, event.u.query.len, "LOAD", "its text");
	is_int(feed_hex(EV_XA_PREPARE, 0, 0, "01 01000000 01000000 00000000 61"), CDC_OK, "XA_PREPARE");
	ok(event.u.xa_prepare.one_phase, "one phase");
	is_str(event.u.xa_prepare.xid, "X'61',X'',1", "its xid");
	is_int(feed_hex(EV_XA_PREPARE, 0, 0, "00 ffffffff 02000000 01000000 00fa 5c"), CDC_OK,
	       "XA_PREPARE of two phases");
	ok(!event.u.xa_prepare.one_phase, "is told");
	is_str(event.u.xa_prepare.xid, "X'00fa',X'5c',4294967295", "any bytes, largest format");
	is_int(feed_hex(EV_QUERY, 0, 0, "01000000 00000000 05 0000 0000 7479"), CDC_TRUNCATED,
	       "schema longer than the event");

	start(4);
	feed_format(false, 0);
	is_int(feed_hex(EV_XA_PREPARE, 0, 0, "00 01000000 41000000 00000000 61"), CDC_MALFORMED,
	       "XA_PREPARE with too long an xid");
	start(4);
	feed_format(false, 0);
	is_int(feed_hex(EV_XA_PREPARE, 0, 0, "00 01000000 02000000 01000000 6161"), CDC_TRUNCATED,
	       "XA_PREPARE that ends within its xid");
}

static void
feed_table(uint64_t id, const char *types, const char *meta, const char *optional)
{
	CdcBuf body;

	cdc_buf_init(&body, &cdc_malloc_allocator, 0);
	build_table_map_body(&body, id, types, meta, optional);
	is_int(feed(EV_TABLE_MAP, 0, 0, body.data, body.len), CDC_END, "TABLE_MAP gives no event");
	cdc_buf_free(&body);
}

static void
test_rows(void)
{
	CdcTableDef *table;
	int mark;

	start(4);
	with_checksum = false;
	feed_format(false, 127);
	feed_table(9, "030f", "1400", "0101 80 0201 08");
	is_int(
	    feed_hex(EV_WRITE_ROWS, 0, 0, "090000000000 0100 0200 02 ff 00 01000000 0161 02 02000000"),
	    CDC_OK, "WRITE_ROWS");
	table = event.u.rows.table;
	ok(event.kind == BINLOG_ROWS && event.u.rows.op == CDC_INSERT && event.u.rows.statement_end &&
	       event.u.rows.full_after && event.u.rows.full_before && !event.u.rows.partial,
	   "its facts");
	ok(table->columns[0].is_unsigned && table->columns[1].type == CDC_TYPE_VARCHAR &&
	       table->columns[1].collation == 8 &&
	       table->known == (CDC_KNOWS_SIGN | CDC_KNOWS_CHARSET | CDC_KNOWS_LABELS),
	   "its table");
	is_int(binlog_reader_next(reader, &event), CDC_OK, "first row");
	ok(event.kind == BINLOG_ROW && event.u.row.before == NULL && event.u.row.after[1].len == 1 &&
	       event.u.row.after[1].data[0] == 'a' && event.u.row.bytes == 7,
	   "its fields");
	is_int(binlog_reader_next(reader, &event), CDC_OK, "second row");
	ok(event.u.row.after[1].state == CDC_FIELD_NULL &&
	       event.u.row.after[0].state == CDC_FIELD_VALUE,
	   "NULL");
	is_int(binlog_reader_next(reader, &event), CDC_END, "no more");
	is_int(binlog_reader_next(reader, &event), CDC_END, "still no more");

	table->user = &mark;
	feed_table(9, "030f", "1400", "0101 80 0201 08");
	is_int(feed_hex(EV_UPDATE_ROWS, 0, 0,
	                "090000000000 0000 0700 00 0102 0304 02 fd 02 00 01000000 01"),
	       CDC_OK, "UPDATE_ROWS with extra data and partial images");
	ok(event.u.rows.table == table && table->user == &mark, "the same definition is found again");
	ok(!event.u.rows.full_before && !event.u.rows.full_after && !event.u.rows.statement_end,
	   "images are not full");
	is_int(binlog_reader_next(reader, &event), CDC_OK, "its row");
	ok(event.u.row.before[0].state == CDC_FIELD_VALUE &&
	       event.u.row.before[1].state == CDC_FIELD_ABSENT &&
	       event.u.row.after[0].state == CDC_FIELD_ABSENT &&
	       event.u.row.after[1].state == CDC_FIELD_NULL,
	   "absent columns");

	feed_table(9, "0303", "", "");
	feed_hex(EV_DELETE_ROWS_V1, 0, 0,
	         "090000000000 0000 02 ff fc 01000000 02000000 fc 03000000 04000000");
	ok(event.u.rows.op == CDC_DELETE && event.u.rows.table->ncolumns == 2 &&
	       event.u.rows.table->user == NULL && (event.u.rows.table->known & CDC_KNOWS_SIGN) == 0,
	   "changed content is a new definition");
	binlog_reader_skip_rows(reader);
	is_int(binlog_reader_next(reader, &event), CDC_END, "rows are skipped");
	is_int(feed_hex(EV_WRITE_ROWS_V1, 0, 0, "ffffff000000 0100 00"), CDC_OK,
	       "event that only ends a statement");
	ok(event.u.rows.table == NULL && event.u.rows.statement_end, "has no table");

	/* MySQL before 9 shows the hidden column of a multi-valued index. */
	feed_table(10, "03140f14", "081e000f1e0000", "");
	is_int(feed_hex(EV_WRITE_ROWS, 0, 0,
	                "0a0000000000 0100 0200 04 ff 00 01000000 02000000 0000 0161 01000000 00"),
	       CDC_OK, "TYPED_ARRAY");
	ok(event.u.rows.table->columns[1].type == CDC_TYPE_UNKNOWN, "has no type of its own");
	is_int(binlog_reader_next(reader, &event), CDC_OK, "and can be skipped over");
	is_int(event.u.row.after[2].len, 1, "column behind it");

	is_int(feed_hex(EV_WRITE_ROWS, 0, 0, "0a0000000000 0100 0200 03 ff 00"), CDC_MALFORMED,
	       "another number of columns");
	start(4);
	feed_format(false, 127);
	is_int(feed_hex(EV_WRITE_ROWS, 0, 0, "0a0000000000 0100 0200 04 ff 00"), CDC_MALFORMED,
	       "rows without their TABLE_MAP");
	start(4);
	feed_format(false, 127);
	feed_table(9, "0103", "", "");
	feed_hex(EV_WRITE_ROWS, 0, 0, "090000000000 0100 0200 02 ff 00 01 020000");
	is_int(binlog_reader_next(reader, &event), CDC_MALFORMED, "row longer than the event");
	start(4);
	feed_format(true, 127);
	feed_table(9, "030b", "", "");
	feed_hex(EV_WRITE_ROWS_V1, 0, 0, "090000000000 0100 02 ff 00 01000000 00b6bad215");
	is_int(binlog_reader_next(reader, &event), CDC_OK,
	       "old TIME with a fraction: the first part looks like a row");
	is_int(binlog_reader_next(reader, &event), CDC_UNSUPPORTED, "the rest says so");
	start(4);
	feed_format(true, 127);
	feed_table(9, "0300", "", "");
	is_int(feed_hex(EV_WRITE_ROWS_V1, 0, 0, "090000000000 0100 02 ff 00 01000000"), CDC_OK,
	       "unknown type: the event comes");
	is_int(binlog_reader_next(reader, &event), CDC_UNSUPPORTED, "its rows do not");
}

/* One compressed transaction of n XIDs and a big query, with or without zstd. */
static void
build_payload(CdcBuf *out, int n, size_t query_len, int algorithm, size_t cut)
{
	CdcBuf inner;
	CdcBuf one;
	CdcBuf body;

	cdc_buf_init(&inner, &cdc_malloc_allocator, 0);
	cdc_buf_init(&one, &cdc_malloc_allocator, 0);
	cdc_buf_init(&body, &cdc_malloc_allocator, 0);
	put_hex(&body, "00000000 00000000 00 0000 0000 00");
	for (size_t i = 0; i < query_len; i++)
		cdc_buf_add_char(&body, 'q');
	build_event(&one, EV_QUERY, 0, 0, body.data, body.len, false);
	cdc_buf_add(&inner, one.data, one.len);
	for (int i = 0; i < n; i++)
	{
		build_event(&one, EV_XID, 0, 0, "12345678", 8, false);
		cdc_buf_add(&inner, one.data, one.len);
	}
	cdc_buf_reset(&body);
	put_hex(&body, algorithm == 0 ? "020100" : "0203fcff00");
	put_hex(&body, "030101 010101 00");
	if (algorithm == 0)
	{
		size_t bound = ZSTD_compressBound(inner.len);
		char *packed = malloc(bound);
		size_t len = ZSTD_compress(packed, bound, inner.data, inner.len, 3);

		cdc_buf_add(&body, packed, len - cut);
		free(packed);
	}
	else
		cdc_buf_add(&body, inner.data, inner.len - cut);
	build_event(out, EV_TRANSACTION_PAYLOAD, 0, 0, body.data, body.len, with_checksum);
	cdc_buf_free(&inner);
	cdc_buf_free(&one);
	cdc_buf_free(&body);
}

static void
test_payload(void)
{
	for (int algorithm = 0; algorithm < 256; algorithm += 255)
	{
		int count = 0;
		CdcStatus status;
		uint64_t end;

		start(4);
		with_checksum = true;
		feed_format(false, 127);
		build_payload(&packet, 1000, 200000, algorithm, 0);
		end = 127 + packet.len;
		is_int(feed_packet(), CDC_OK, "payload");
		ok(event.kind == BINLOG_QUERY && event.u.query.len == 200000, "first event in it");
		ok(event.start.offset == 127 && event.end.offset == end, "its position is the payload's");
		while ((status = binlog_reader_next(reader, &event)) == CDC_OK)
			count += event.kind == BINLOG_XID;
		ok(status == CDC_END && count == 1000, "all events come out");
		feed(EV_XID, 0, 0, "12345678", 8);
		is_int(event.start.offset, (int64_t) end, "what follows starts behind it");

		build_payload(&packet, 10, 10, algorithm, 3);
		status = feed_packet();
		while (status == CDC_OK)
			status = binlog_reader_next(reader, &event);
		is_int(status, CDC_TRUNCATED, "payload that is cut");
	}

	/* Memory does not depend on how much a payload holds: this one is 13 MB, the limit 4 MB. */
	start(4);
	feed_format(false, 127);
	build_payload(&packet, 500000, 10, 0, 0);
	{
		int count = 0;
		CdcStatus status = feed_packet();

		for (; status == CDC_OK; status = binlog_reader_next(reader, &event))
			count++;
		ok(status == CDC_END && count == 500001, "a payload above the limit, event by event");
	}
	start(4);
	feed_format(false, 127);
	build_payload(&packet, 0, 6 * 1024 * 1024, 0, 0);
	is_int(feed_packet(), CDC_LIMIT, "an event in it above the limit");
	start(4);
	feed_format(false, 127);
	is_int(feed_hex(EV_TRANSACTION_PAYLOAD, 0, 0, "020107 00"), CDC_UNSUPPORTED,
	       "unknown algorithm");
	start(4);
	feed_format(false, 127);
	is_int(feed_hex(EV_TRANSACTION_PAYLOAD, 0, 0, "020100 00 28b52ffd2000"), CDC_TRUNCATED,
	       "damaged zstd frame");
	start(4);
	feed_format(false, 127);
	is_int(feed_hex(EV_TRANSACTION_PAYLOAD, 0, 0, "020100 00 0011223344556677"), CDC_MALFORMED,
	       "no zstd frame");
}

static void
test_limits(void)
{
	char *big = calloc(1, 5 * 1024 * 1024);

	start(4);
	with_checksum = false;
	feed_format(false, 127);
	is_int(feed(EV_ROWS_QUERY, 0, 0, big, 5 * 1024 * 1024), CDC_LIMIT, "event above the limit");
	free(big);
	start(4);
	feed_format(true, 127);
	feed_table(9, "03", "", "");
	is_int(feed_hex(EV_MARIADB_WRITE_ROWS_COMPRESSED_V1, 0, 0,
	                "090000000000 0100 01 ff 84 7fffffff 789c"),
	       CDC_MALFORMED, "impossible size of compressed rows");
}

int
main(void)
{
	BinlogReaderOptions options = {.memory_limit = 4 * 1024 * 1024};

	reader = binlog_reader_create(&cdc_malloc_allocator, &options);
	cdc_buf_init(&packet, &cdc_malloc_allocator, 0);
	test_positions();
	test_heartbeats();
	test_checksums();
	test_unknown_types();
	test_gtids();
	test_names_and_offsets();
	test_queries();
	test_rows();
	test_payload();
	test_limits();
	binlog_reader_free(reader);
	cdc_buf_free(&packet);
	return done_testing();
}
