/*-------------------------------------------------------------------------
 *
 * export_server.h
 *	  Is the server of the sink still what the worker began with?
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_EXPORT_SERVER_H
#define CDC_EXPORT_SERVER_H

#include "pipeline/worker.h"

extern void export_server_watch(void);

/*
 * Has it other options or another name, or may the owner not use it any more? Only looks when catalogs have changed since the
 * last time. Outside of a transaction.
 */
extern bool export_server_is_changed(const Worker *worker);

#endif							/* CDC_EXPORT_SERVER_H */
