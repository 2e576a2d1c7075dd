/*-------------------------------------------------------------------------
 *
 * verify.h
 *	  Compares mirrored tables with their source, while the stream runs.
 *
 * NOTES
 *	  A request (cdc_verify) names tables and a mode; the maintenance worker calls
 *	  verify_step until nothing is left. One step is one chunk, one range of the
 *	  target's pages, or one look at rows that wait for the stream, so a worker
 *	  can leave between any two. What is right and what is not is told by the
 *	  protocol in verify_settle.c.
 *
 *	  full: every row of both sides, in the order of the source's key, chunk by
 *	  chunk. Where both servers print values alike, each computes a sum of its rows,
 *	  and only chunks whose sums differ are read. A row that is read goes through the
 *	  same type map as in snapshot and stream, and is compared with the target's row
 *	  byte by byte. Keys that only the target has are looked for too.
 *	  sample: the same for a random share of the chunks, then both sides' rows
 *	  are counted.
 *	  count: only counted.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_VERIFY_H
#define CDC_VERIFY_H

#include "postgres.h"

#include "catalog/catalog.h"
#include "mysql/mysql_options.h"

/* Rows of a table whose keys are kept; the counters go on. */
#define VERIFY_DIFFERENCES_KEPT 10000

typedef struct Verify Verify;

/* Opens its own session when first needed. identity: server that the stream reads from. */
extern Verify *verify_create(const CatalogPipeline *pipeline, const MysqlEndpoint *endpoint, const char *identity);

/*
 * Do a bit more of the oldest open request, in transactions of its own; may wait
 * for a moment. False when no request is open. Call outside a transaction.
 */
extern bool verify_step(Verify *verify);

extern void verify_destroy(Verify *verify);

#endif							/* CDC_VERIFY_H */
