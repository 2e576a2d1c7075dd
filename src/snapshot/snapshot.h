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
 *	  3. Chunks of a table are copied by several workers at once. Each is read in
 *	     one consistent SELECT into memory, then written with its ledger row in one
 *	     transaction under the table's ShareLock, leaving out keys that are in the
 *	     target or in snapshot_deleted.
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
#include "mysql/mysql_server.h"
#include "schema/table.h"

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

/* Write down that a pipeline goes on elsewhere, for the ingest worker before it opens the stream, outside a transaction; copies that are under way begin anew. */
extern void snapshot_move(const CatalogPipeline *pipeline, CatalogPositionLog *log, const CatalogMove *move);

/* The same in the caller's transaction, for who has had the workers leave; returns how many tables begin anew. */
extern int	snapshot_move_write(const CatalogPipeline *pipeline, CatalogPositionLog *log, const CatalogMove *move);

/* Is a pipeline to stop when its tables have been copied (option snapshot "only")? */
extern bool snapshot_copies_only(const CatalogPipeline *pipeline);

/*
 * For the ingest worker, outside a transaction and between two source transactions, with everything durable:
 * take up what was asked for since the last time (tables that join, leave or are copied anew), and when again is set
 * also what was put off because it was locked at the source. True when there was something: table states are to be
 * read again. *put_off: some are locked, so look again in a while. *awaited, if known: so again when the stream has come
 * there. *more: there are so many new ones that the stream shall not wait for all of them; call it again soon. The durable position must be known.
 */
extern bool snapshot_join(int32 pipeline_id, const MysqlEndpoint *endpoint, const CatalogPosition *durable,
						  bool again, bool *put_off, CdcPosition *awaited, bool *more);

/*
 * For a snapshot worker, outside a transaction: tables that joined and of which no chunk may be read yet; and
 * allow it for those of which the source shows what lies before their join positions. False when there are none
 * of these. *anew: a table changed meanwhile and is to join once more.
 */
extern List *snapshot_join_waiting(int32 pipeline_id);
extern bool snapshot_join_allow(int32 pipeline_id, List *waiting, MysqlSession *session, const MysqlServerInfo *info, bool *anew);

/* How often a table is tried again that was locked at the source when it was to join or to be copied anew. */
#define SNAPSHOT_RETRY_SECONDS 10

typedef struct SnapshotCopy SnapshotCopy;

/* What the worker's process does for the copy. */
typedef struct SnapshotHooks
{
	void	   *arg;
	void		(*publish) (void *arg, int32 table_id, int64 values_replaced, int64 dead_letters);	/* values that a policy changed; rows that were kept */
	void		(*throttle) (void *arg, int64 rows);	/* waits until so many rows may be written */
	void		(*fail) (void *arg);	/* the error that is thrown next is the whole pipeline's */

	/*
	 * Have the ingest worker hold still between two source transactions, everything
	 * durable, and tell where; false when it does not come to that soon. And let
	 * it go on, after it has read the tables' states anew.
	 */
	bool		(*hold) (void *arg, CdcPosition *at);
	bool		(*still_held) (void *arg);	/* by the same process */
	void		(*release) (void *arg);
	void		(*join) (void *arg);	/* a table is to join once more: for the ingest worker */
} SnapshotHooks;

/*
 * The state of snapshot worker number "worker" (1, 2, ...): opens its own session when first needed. identity: server the
 * copy must come from. max_rows: of a chunk.
 */
extern SnapshotCopy *snapshot_create(const CatalogPipeline *pipeline, const MysqlEndpoint *endpoint, int worker,
									 const char *identity, uint64 max_rows, const SnapshotHooks *hooks);

typedef enum SnapshotProgress
{
	SNAPSHOT_DID_SOMETHING,
	SNAPSHOT_WAITS,				/* there is something to do for this worker, but not now */
	SNAPSHOT_HAS_NOTHING
} SnapshotProgress;

/*
 * Copy one more chunk, or a page of it, in a transaction of its own; finish tables
 * whose chunks are all there (-> CATCHUP). An error that is a table's own stops the
 * table; one that cannot be had now is put off. Call outside a transaction.
 */
extern SnapshotProgress snapshot_step(SnapshotCopy *copy);

extern void snapshot_destroy(SnapshotCopy *copy);

/*
 * For the ingest worker, outside a transaction: every table in CATCHUP whose high
 * mark the durable position has passed becomes STREAMING, unless rows of it are still to be read again; a new copy of a table is put in
 * its place, if nobody uses it just then. Returns how many tables changed; *pending is the number of
 * tables still in SNAPSHOT or CATCHUP, *left_over that a stopped table still has a shadow, *reread that rows are to be read again.
 */
extern int	snapshot_hand_over(int32 pipeline_id, const CdcPosition *durable, int *pending, bool *left_over, bool *reread);

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
