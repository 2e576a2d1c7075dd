/*-------------------------------------------------------------------------
 *
 * export_watch.h
 *	  Is what an export worker began with still there?
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_EXPORT_WATCH_H
#define CDC_EXPORT_WATCH_H

#include "pipeline/worker.h"

extern void export_watch_begin(void);

/*
 * Has the sink's server other options or another name, may the owner not use it any more, or is a publication gone? Only looks
 * when catalogs have changed since the last time. Outside of a transaction.
 */
extern bool export_watch_is_changed(const Worker *worker);

#endif							/* CDC_EXPORT_WATCH_H */
