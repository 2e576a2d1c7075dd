/*-------------------------------------------------------------------------
 *
 * export_copy_parallel.h
 *	  A chunk of the initial copy of an outgoing pipeline that several processes
 *	  read.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_EXPORT_COPY_PARALLEL_H
#define CDC_EXPORT_COPY_PARALLEL_H

#include "postgres.h"
#include "storage/dsm.h"
#include "storage/shm_toc.h"

#include "decode/decode_copy.h"
#include "pipeline/worker.h"
#include "sink/sink.h"

/* What a table's last chunk came to: the next one is made as large as that lets hope for. */
typedef struct ExportCopyRate
{
	uint64		rows;			/* 0: there was none */
	uint64		bytes;
	int64		took_us;
} ExportCopyRate;

typedef struct ExportCopyParallel
{
	Worker	   *worker;
	CdcSink    *sink;
	int			workers;		/* at most; 1: chunks are read by this process alone */
	uint64		max_rows;		/* that one process alone reads at a time */
	uint64		max_bytes;
	int			max_ms;			/* of a chunk */
	ExportCopyRate rate;		/* of the table that is read next */
} ExportCopyParallel;

/* Is it worth while to have the next chunk of a table of that rate read by several? Fills *share then. */
extern bool export_copy_parallel_plan(ExportCopyParallel *parallel, const ExportCopyRate *rate, DecodeChunkShare *share);

/* Entry of those who read, started by the server by name. */
extern PGDLLEXPORT void cdc_export_copy_main(dsm_segment *segment, shm_toc *toc);

#endif							/* CDC_EXPORT_COPY_PARALLEL_H */
