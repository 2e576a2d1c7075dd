/*-------------------------------------------------------------------------
 *
 * export_place.h
 *	  Places in this server's log, in the form of positions in a source's.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_EXPORT_PLACE_H
#define CDC_EXPORT_PLACE_H

#include "postgres.h"
#include "access/xlogdefs.h"
#include "datatype/timestamp.h"

#include "core/position.h"

#define EXPORT_UNIX_TO_POSTGRES_US ((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

/* The file of the log, and the place in it. */
extern XLogRecPtr export_log_lsn(const CdcPosition *position);
extern void export_log_place(XLogRecPtr lsn, TimeLineID timeline, CdcPosition *position);

#endif							/* CDC_EXPORT_PLACE_H */
