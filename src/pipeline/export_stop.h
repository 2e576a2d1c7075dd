/*-------------------------------------------------------------------------
 *
 * export_stop.h
 *	  Tables of an outgoing pipeline that stop alone.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_EXPORT_STOP_H
#define CDC_EXPORT_STOP_H

#include "postgres.h"
#include "access/xlogdefs.h"

#include "pipeline/export_history.h"
#include "pipeline/worker.h"

/* Let the decoding that starts next leave out what is stopped. durable: the sink has everything up to there. Outside of a transaction. */
extern void export_stops_use(const Worker *worker, XLogRecPtr durable);

/*
 * In PG_CATCH, with what was thrown while the log was followed: is that one table's trouble, which is to stop alone? Then it is written down, no
 * transaction is open any more, and this process has to leave without a flush. False: nothing was done.
 */
extern bool export_stop_table(const Worker *worker, XLogRecPtr durable, const ExportHistory *history);

#endif							/* CDC_EXPORT_STOP_H */
