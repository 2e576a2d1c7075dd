/*-------------------------------------------------------------------------
 *
 * snapshot.h
 *	  Initial copy of tables, and its hand-over to the stream.
 *
 * NOTES
 *	  The protocol (docs/internals.md tells why it is right):
 *	  1. The start mark L0 is read once, when the pipeline first runs; everything
 *	     below it is visible to any later SELECT. The stream starts there.
 *	  2. While a table is SNAPSHOT or CATCHUP the stream applies every change as
 *	     upsert or delete, and notes keys that it removed in snapshot_deleted
 *	     (apply/).
 *	  3. A chunk is read in one consistent SELECT into memory, then written with
 *	     its ledger row in one transaction under the table's ShareLock, leaving
 *	     out keys that are in the target or in snapshot_deleted.
 *	  4. When all chunks are read, a status position is the high mark: CATCHUP.
 *	     When the stream has passed it: STREAMING.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SNAPSHOT_H
#define CDC_SNAPSHOT_H

#include "postgres.h"

#include "catalog/catalog.h"
#include "mysql/mysql_options.h"
#include "schema/table.h"

/*
 * First run of a pipeline: read the start mark, find the tables, make the
 * targets, write pipeline_table, table_state and the first position, all in one
 * transaction of its own. Tables that cannot be mirrored come out STOPPED with the reason;
 * no table at all is an error. Call outside a transaction.
 */
extern void snapshot_prepare(const CatalogPipeline *pipeline, const MysqlEndpoint *endpoint,
							 CatalogPositionLog *log);

typedef struct SnapshotCopy SnapshotCopy;

/* Values of a table that a policy changed are told after each chunk that has some. */
typedef void (*SnapshotPublish) (void *arg, int32 table_id, int64 values_replaced);

/* The snapshot worker's state: opens its own session when first needed. identity: server the copy must come from. */
extern SnapshotCopy *snapshot_create(const CatalogPipeline *pipeline, const MysqlEndpoint *endpoint,
								 const char *identity, SnapshotPublish publish, void *publish_arg);

/*
 * Copy one more chunk of one table that is in SNAPSHOT, or finish a table
 * (-> CATCHUP), in a transaction of its own. An error that is the table's own
 * stops the table. False when no table is in SNAPSHOT. Call outside a transaction.
 */
extern bool snapshot_step(SnapshotCopy *copy);

extern void snapshot_destroy(SnapshotCopy *copy);

/*
 * For the ingest worker, outside a transaction: every table in CATCHUP whose high
 * mark the durable position has passed becomes STREAMING. Returns how many did;
 * *pending is the number of tables still in SNAPSHOT or CATCHUP.
 */
extern int	snapshot_hand_over(int32 pipeline_id, const CdcPosition *durable, int *pending);

/* ---- snapshot_index.c: unique and secondary indexes of targets ---- */

/*
 * Write down what becomes of each index of a source table, replacing what was
 * written before. made: the pipeline made the target. Within the transaction that
 * makes or takes the target, when the table has its number.
 */
extern void snapshot_index_plan(const CatalogPipeline *pipeline, const CatalogTable *table, const CdcTableDef *def,
								const SchemaTypeOptions *types, bool made);

/* Is there an index to be built now, of a table that streams? Call outside a transaction. */
extern bool snapshot_index_is_due(int32 pipeline_id);

typedef struct SnapshotIndexer SnapshotIndexer;

/* In CurrentMemoryContext; one process builds for a pipeline, in others every step says false. */
extern SnapshotIndexer *snapshot_index_create(const CatalogPipeline *pipeline);

/*
 * Build one index. An error that is the index's own makes it FAILED. False when
 * there is nothing to build. Call outside a transaction.
 */
extern bool snapshot_index_step(SnapshotIndexer *indexer);

/* For a pipeline that is being dropped, whose workers have left: remove what an interrupted build left behind. */
extern void snapshot_index_drop_unfinished(int32 pipeline_id);

#endif							/* CDC_SNAPSHOT_H */
