/*-------------------------------------------------------------------------
 *
 * export_history.h
 *	  What statements did to the tables of an outgoing pipeline, and what became
 *	  of it: rows of cdc_bridge.schema_history.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_EXPORT_HISTORY_H
#define CDC_EXPORT_HISTORY_H

#include "postgres.h"
#include "access/xlogdefs.h"

#include "catalog/catalog_history.h"
#include "decode/decode.h"
#include "pipeline/worker.h"

typedef struct ExportHistory ExportHistory;

/*
 * start: the log is read from there on, so rows of what commits later are removed, and come again. rules live on. Outside of a transaction; in
 * worker->cxt.
 */
extern ExportHistory *export_history_open(const Worker *worker, XLogRecPtr start, TimeLineID timeline, const CatalogChangeRules *rules);

/* Keep one in memory, until it is written. */
extern void export_history_keep(ExportHistory *history, const DecodeStatement *statement);

/*
 * Write down, for good, what was kept; outside of a transaction, before anything is confirmed that lies behind. Returns the end of that
 * transaction in the log; Invalid: there was nothing.
 */
extern XLogRecPtr export_history_write(ExportHistory *history);

/* One that stops its table: the row, in CurrentMemoryContext; and to write it, in the transaction that stops the table. */
extern CatalogSchemaChange *export_history_make(const ExportHistory *history, const DecodeStatement *statement);
extern void export_history_write_stop(const ExportHistory *history, CatalogSchemaChange *change, const UtilErrorInfo *error);

#endif							/* CDC_EXPORT_HISTORY_H */
