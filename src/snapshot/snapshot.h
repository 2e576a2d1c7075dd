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

/*
 * First run of a pipeline: read the start mark, find the tables, make the
 * targets, write pipeline_table, table_state and the first position, all in one
 * transaction of its own. Tables that cannot be mirrored come out STOPPED with the reason;
 * no table at all is an error. Call outside a transaction.
 */
extern void snapshot_prepare(const CatalogPipeline *pipeline, const MysqlEndpoint *endpoint,
							 CatalogPositionLog *log);

/*
 * First run of a pipeline that was restored from a dump and given a position, whose identity is "" so far: its tables
 * are followed as they are, by the definitions that the source has now. Call outside a transaction.
 */
extern void snapshot_adopt(const CatalogPipeline *pipeline, const MysqlEndpoint *endpoint,
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

#endif							/* CDC_SNAPSHOT_H */
