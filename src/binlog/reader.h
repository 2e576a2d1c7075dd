/*-------------------------------------------------------------------------
 *
 * reader.h
 *	  Pull reader over the events of a MySQL or MariaDB binary log.
 *
 * NOTES
 *	  In: one event per feed (a network packet without its leading 0x00 byte, or
 *	  an event cut out of a file). Out: BinlogEvents, one at a time, until
 *	  CDC_END says "feed me". A TRANSACTION_PAYLOAD and the compressed events of
 *	  MariaDB come out as what they hold. Checksums are verified as the format
 *	  description event of the file announces. TABLE_MAPs are kept inside and
 *	  come out as the "table" of a ROWS event.
 *
 *	  Everything an event points to lives until the next call of feed or next,
 *	  table definitions until the next TABLE_MAP of the same table with another
 *	  content, the next format description event, or TABLE_MAPs of thousands of
 *	  other tables (the least recently used definition goes).
 *
 *	  After an error the reader stays in that error.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_BINLOG_READER_H
#define CDC_BINLOG_READER_H

#include "core/event.h"

typedef enum BinlogEventKind
{
	BINLOG_FORMAT = 1,			/* format description: a new log file begins, or the first event after a dump was opened */
	BINLOG_ROTATE,				/* the next events come from u.rotate */
	BINLOG_GTID,				/* a group begins: u.gtid (MySQL GTID, ANONYMOUS_GTID, GTID_TAGGED; MariaDB GTID) */
	BINLOG_QUERY,				/* u.query */
	BINLOG_ROWS,				/* a rows event begins: u.rows; then its rows, unless binlog_reader_skip_rows is called */
	BINLOG_ROW,					/* one row: u.row */
	BINLOG_XID,					/* commit of a transactional group */
	BINLOG_XA_PREPARE,			/* u.xa_prepare */
	BINLOG_HEARTBEAT,			/* u.rotate: where the sender stands; not in the file */
	BINLOG_INCIDENT,			/* the server lost events: LOST_EVENTS */
	BINLOG_OTHER				/* known and without meaning for us: only the position moves */
} BinlogEventKind;

/* Bits of BinlogGtid.flags. */
#define BINLOG_GTID_STANDALONE		(1 << 0)	/* MariaDB: one statement, no end event of its own */
#define BINLOG_GTID_DDL				(1 << 1)	/* MariaDB */
#define BINLOG_GTID_XA_PREPARE		(1 << 2)	/* MariaDB FL_PREPARED_XA */
#define BINLOG_GTID_XA_COMPLETE		(1 << 3)	/* MariaDB FL_COMPLETED_XA */
#define BINLOG_GTID_START_ALTER		(1 << 4)	/* MariaDB: the text comes again with COMMIT_ALTER: skip this one */
#define BINLOG_GTID_ROLLBACK_ALTER	(1 << 5)	/* MariaDB: the ALTER failed */
#define BINLOG_GTID_MAY_HAVE_SBR	(1 << 6)	/* MySQL */
#define BINLOG_GTID_TRANSACTIONAL	(1 << 7)	/* MariaDB FL_TRANSACTIONAL */

typedef struct BinlogGtid
{
	CdcGtid		gtid;			/* kind CDC_GTID_NONE for anonymous ones */
	uint32_t	flags;
	uint64_t	transaction_length; /* MySQL: bytes with this event; 0 not told */
	int64_t		commit_time_us; /* MySQL: original commit time; 0 not told */
} BinlogGtid;

typedef struct BinlogQuery
{
	const char *schema;			/* NUL-terminated, "" when none */
	const char *text;			/* trailing NUL bytes cut; not NUL-terminated */
	size_t		len;
	uint64_t	sql_mode;		/* status variable 1; 0 when absent */
	uint16_t	error_code;
	bool		is_load_data;	/* EXECUTE_LOAD_QUERY */
	bool		of_session;		/* it uses what only its session has, as temporary tables */
} BinlogQuery;

typedef struct BinlogRows
{
	CdcTableDef *table;			/* NULL for the dummy event that only ends a statement */
	CdcChangeOp op;
	bool		partial;		/* MySQL PARTIAL_UPDATE_ROWS */
	bool		statement_end;	/* STMT_END_F */
	bool		full_before;	/* every column is in the before image, resp. there is none */
	bool		full_after;
} BinlogRows;

typedef struct BinlogEvent
{
	BinlogEventKind kind;
	uint8_t		type_code;		/* event type byte */
	uint16_t	flags;			/* header flags */
	uint32_t	server_id;
	uint32_t	timestamp;		/* seconds since 1970 */
	bool		artificial;		/* made by the dump, not in the file */
	CdcPosition start;			/* where this event begins (for events in a payload: where the payload begins) */
	CdcPosition end;			/* where the next one begins */
	union
	{
		BinlogGtid	gtid;
		BinlogQuery query;
		BinlogRows	rows;
		CdcChange	row;
		CdcPosition rotate;
		struct
		{
			bool		one_phase;
			char		xid[CDC_XID_TEXT_MAX];
		}			xa_prepare;
		struct
		{
			uint64_t	xid;
		}			xid;
		struct
		{
			char		server_version[51];
			bool		is_mariadb;
			bool		has_checksum;
		}			format;
	}			u;
} BinlogEvent;

typedef struct BinlogReader BinlogReader;

typedef struct BinlogReaderOptions
{
	size_t		memory_limit;	/* bytes that one event and its decoded values may take, decompression included; 0: no limit */
} BinlogReaderOptions;

/* NULL when out of memory. */
extern BinlogReader *binlog_reader_create(const CdcAllocator *allocator, const BinlogReaderOptions *options);
extern void binlog_reader_free(BinlogReader *reader);

/* Say where the first event that is fed begins. Forgets everything of before, also an error. */
extern void binlog_reader_start(BinlogReader *reader, const CdcPosition *position);

/* Hand over one event, header included. The bytes must stay until the next feed. */
extern CdcStatus binlog_reader_feed(BinlogReader *reader, const uint8_t *event, size_t len);

/* CDC_OK: *event is filled. CDC_END: feed. Anything else: binlog_reader_error. */
extern CdcStatus binlog_reader_next(BinlogReader *reader, BinlogEvent *event);

/* Do not decode the rest of the rows event that was just returned as BINLOG_ROWS. */
extern void binlog_reader_skip_rows(BinlogReader *reader);

extern const CdcError *binlog_reader_error(const BinlogReader *reader);

/* Name of an event type byte: "TABLE_MAP", "WRITE_ROWS_V1", ... */
extern const char *binlog_event_type_name(uint8_t type_code);

#endif							/* CDC_BINLOG_READER_H */
