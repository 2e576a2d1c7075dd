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
