/*-------------------------------------------------------------------------
 *
 * export_replay.h
 *	  Dead letters of an outgoing pipeline that are shipped again, or given up,
 *	  because somebody asked for it.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_EXPORT_REPLAY_H
#define CDC_EXPORT_REPLAY_H

#include "postgres.h"

#include "pipeline/export_copy.h"
#include "pipeline/export_letter.h"
#include "pipeline/worker.h"
#include "sink/sink.h"

typedef struct ExportReplay ExportReplay;

/* Settle what the sink has got, and open again what it has not. Outside of a transaction; lives in worker->cxt, which is current. */
extern ExportReplay *export_replay_open(Worker *worker, ExportCopy *copy, ExportLetters *letters, CdcSink *sink, int32 durable_chunk);

/*
 * Work on what was asked for, if anything was, between two transactions of the stream, which has been decoded up to position.
 * True when something was handed to the sink.
 */
extern bool export_replay_step(ExportReplay *replay, XLogRecPtr position);

/* Is there more to do now? */
extern bool export_replay_is_due(const ExportReplay *replay);

/* The sink has everything up to that chunk. */
extern void export_replay_after_flush(ExportReplay *replay, int32 durable_chunk);

#endif							/* CDC_EXPORT_REPLAY_H */
