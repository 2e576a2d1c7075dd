/*-------------------------------------------------------------------------
 *
 * event_dump.h
 *	  Recorded binary logs: cut into events, decoded to text.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_TEST_EVENT_DUMP_H
#define CDC_TEST_EVENT_DUMP_H

#include "binlog/reader.h"
#include "core/buf.h"

typedef struct RecordedEvent
{
	const uint8_t *data;
	size_t len;
} RecordedEvent;

typedef struct Recording
{
	uint8_t *bytes;
	size_t len;
	RecordedEvent *events;
	size_t nevents;
} Recording;

/* Read a binary log file and cut it into events. False, with a line on stderr, when it is none. */
extern bool recording_open(Recording *recording, const char *path);
extern void recording_close(Recording *recording);

/* Whole file into malloc'd memory with a final zero byte; NULL when it cannot be read. */
extern char *read_whole_file(const char *path, size_t *len);

/* A cell as one word of text. */
extern void dump_cell(const CdcCell *cell, CdcBuf *out);

/* One event as a line; ROWS also describe their table when it is new. */
extern void dump_event(const BinlogEvent *event, CdcArena *arena, CdcBuf *out);

/* All events of a recording; an error of the reader is the last line. */
extern CdcStatus dump_recording(const Recording *recording, CdcBuf *out);

#endif /* CDC_TEST_EVENT_DUMP_H */
