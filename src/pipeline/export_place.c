/*-------------------------------------------------------------------------
 *
 * export_place.c
 *	  Places in this server's log, in the form of positions in a source's.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlog_internal.h"

#include "pipeline/export_place.h"

XLogRecPtr
export_log_lsn(const CdcPosition *position)
{
	TimeLineID	timeline;
	XLogSegNo	segment;
	XLogRecPtr	lsn;

	if (!IsXLogFileName(position->file))
		return InvalidXLogRecPtr;
	XLogFromFileName(position->file, &timeline, &segment, wal_segment_size);
	XLogSegNoOffsetToRecPtr(segment, position->offset, wal_segment_size, lsn);
	return lsn;
}

void
export_log_place(XLogRecPtr lsn, TimeLineID timeline, CdcPosition *position)
{
	char		file[MAXFNAMELEN];
	XLogSegNo	segment;

	XLByteToSeg(lsn, segment, wal_segment_size);
	XLogFileName(file, timeline, segment, wal_segment_size);
	snprintf(position->file, sizeof(position->file), "%s", file);
	position->offset = XLogSegmentOffset(lsn, wal_segment_size);
}
