/*-------------------------------------------------------------------------
 *
 * export_copy.h
 *	  The initial copy of an outgoing pipeline's tables, as a part of its export
 *	  worker.
 *
 * NOTES
 *	  Calls arrive as open (step | before_flush flush after_flush)* , all between
 *	  two transactions of the stream.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_EXPORT_COPY_H
#define CDC_EXPORT_COPY_H

#include "postgres.h"

#include "catalog/catalog_export.h"
#include "pipeline/export_letter.h"
#include "pipeline/worker.h"
#include "sink/sink.h"

typedef struct ExportCopy ExportCopy;

/*
 * Find out which tables are to be copied and how far they are, given what the sink has; then let the decoding that starts
 * next heed it. Lives in CurrentMemoryContext.
 */
extern ExportCopy *export_copy_open(Worker *worker, const CatalogExport *state, CdcSink *sink, const CdcSinkPosition *durable);

/* Letters of rows that throw are written with their chunk, and a copy that begins anew makes letters moot. */
extern void export_copy_use_letters(ExportCopy *copy, ExportLetters *letters);

/* Are there tables to be copied, or chunks that the stream has not passed? */
extern bool export_copy_is_busy(const ExportCopy *copy);

/* Dead letters are shipped again, in a chunk with the number that this returns. In the open transaction; position: the stream is there. */
extern int32 export_copy_add_letters(ExportCopy *copy, XLogRecPtr position);

/* Is a table neither being copied nor stopped? In a transaction. */
extern bool export_copy_streams(const ExportCopy *copy, Oid relid);
extern struct DecodeCopy *export_copy_decode(ExportCopy *copy);

/* Are all tables copied and their chunks passed? */
extern bool export_copy_is_done(const ExportCopy *copy);

/*
 * Copy the next chunk, if it is its turn; the stream has been decoded up to position, and has_more says whether there is
 * more to decode. True when something was handed to the sink.
 */
extern bool export_copy_step(ExportCopy *copy, XLogRecPtr position, bool has_more);

/* Would a flush at that position tell that the stream has passed a chunk? */
extern bool export_copy_wants_flush(const ExportCopy *copy, XLogRecPtr position);

/* Make durable what has to be so before the sink is flushed; fills position->chunk. False: not now, go on decoding. */
extern bool export_copy_before_flush(ExportCopy *copy, XLogRecPtr decoded, CdcSinkPosition *position);

/* Something else was written that has to be where standbys may take over before the sink is flushed; end: of that transaction. */
extern void export_copy_wrote(ExportCopy *copy, XLogRecPtr end);
extern void export_copy_after_flush(ExportCopy *copy, const CdcSinkPosition *durable);

#endif							/* CDC_EXPORT_COPY_H */
