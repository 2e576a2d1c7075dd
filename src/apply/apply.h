/*-------------------------------------------------------------------------
 *
 * apply.h
 *	  Source transactions -> rows of local tables, with the position in the same
 *	  PostgreSQL transaction.
 *
 * NOTES
 *	  The caller hands over events in stream order. Several source transactions
 *	  share one PostgreSQL transaction; one source transaction is never split. A
 *	  PostgreSQL transaction is opened at the first event that needs it and
 *	  closed by apply_flush, which the caller calls when apply_flush_due says so
 *	  or when the source has nothing more right now.
 *
 *	  Changes of a table are collected and written together (apply_batch.c), at
 *	  the latest before the commit. When writing fails the PostgreSQL transaction
 *	  is undone and the same stretch comes again in careful mode, change by change,
 *	  which finds the change that is to blame (apply_careful.c).
 *
 *	  What cannot be applied becomes a dead letter, if the pipeline wants that. Else it stops its table at the start of the source
 *	  transaction in question: the whole PostgreSQL transaction is undone, the
 *	  stop is recorded in a transaction of its own, and apply_event returns
 *	  APPLY_REWIND: the caller opens the source again at apply_durable. The next
 *	  time round the table's changes from that transaction on are passed over,
 *	  so no source transaction is applied by half. The same way a transaction
 *	  that turns out to be rolled back is undone and passed over.
 *
 *	  Changes of an XA transaction are not applied but kept, until its XA COMMIT comes (apply_prepared.c).
 *
 *	  Errors that are not a table's own (connection, locks, resources, shutdown) are thrown.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_APPLY_H
#define CDC_APPLY_H

#include "postgres.h"

#include "catalog/catalog.h"
#include "core/event.h"
#include "heap/heap_target.h"
#include "mysql/mysql_options.h"

typedef struct Apply Apply;

typedef struct ApplyTableStats
{
	int64		inserts;
	int64		updates;
	int64		deletes;
	int64		conflicts;		/* insert found a row, update or delete found none (only counted when streaming) */
	int64		values_replaced;	/* by a policy */
	int64		dead_letters;	/* changes that could not be applied and were kept */
	int64		letters_lost;	/* of these: removed by age or number while they were still to be applied */
	bool		tier_is_known;	/* of the two below */
	HeapTier	tier;			/* how rows are written */
	bool		is_collapsed;
} ApplyTableStats;

typedef struct ApplyStats
{
	int64		transactions;	/* source transactions */
	int64		changes;
	int64		bytes;
	int64		flushes;		/* PostgreSQL transactions */
	int64		source_time_us; /* commit time of the newest source transaction that is durable; 0 none yet */
} ApplyStats;

/* The source transaction that is coming in. */
typedef struct ApplyProgress
{
	CdcPosition start;			/* not known: between two */
	TimestampTz since;			/* when it began to come in */
	int64		changes;		/* of our tables, that have come so far */
	int64		bytes;			/* of their row images */
} ApplyProgress;

typedef enum ApplyResult
{
	APPLY_OK,
	APPLY_REWIND				/* open the source again at apply_durable */
} ApplyResult;

/* Counters of one table since the last flush are handed over after each flush. */
typedef void (*ApplyPublish) (void *arg, int32 table_id, const ApplyTableStats *delta);

/* A source transaction is long: called now and then while its changes come. Takes no transaction and throws nothing. */
typedef void (*ApplyTell) (void *arg);

/* Call outside a transaction; log is open and has a position. Reads the pipeline's tables. */
extern Apply *apply_create(const CatalogPipeline *pipeline, CatalogPositionLog *log,
						   const MysqlEndpoint *endpoint, ApplyPublish publish, ApplyTell tell, void *arg);

/* Is that source table one whose rows are wanted now? CdcSourceWant. */
extern bool apply_want_table(void *apply, const char *schema, const char *table);

extern ApplyResult apply_event(Apply *apply, CdcEvent *event);

/* Time, rows or bytes say that it is enough (never inside a source transaction). */
extern bool apply_flush_due(Apply *apply);

/*
 * Commit what is open, with the position row; nothing when nothing is open or
 * inside a source transaction. A position that moved without changes is written
 * once a second, at once when it moved into another file of the log, or when force is set (hand-over waits for it, shutdown).
 */
extern ApplyResult apply_flush(Apply *apply, bool force);

/* Position that is durable; where the stream has come to, durable or not. */
extern const CatalogPosition *apply_durable(const Apply *apply);
extern const CdcPosition *apply_streamed(const Apply *apply);

/* Read table states again (a table was handed over or stopped by somebody else). Call outside a transaction. */
extern void apply_reload_tables(Apply *apply);

/*
 * Do tables want to join, or to be copied anew, because of what the stream brought? is_idle: the source has nothing more for
 * the moment; else tables that are made one after the other are gathered. And: snapshot_join has looked.
 */
extern bool apply_gathering_is_over(const Apply *apply, bool is_idle);
extern void apply_gathered(Apply *apply);

/* Tables by state, for the pipeline's own state. */
extern void apply_count_tables(const Apply *apply, int *total, int *pending, int *stopped);

/* Grows with each table that is stopped, here or found so when tables are read. */
extern uint64 apply_stop_count(const Apply *apply);

/* Option cascades is "refuse": stop tables that foreign keys change unseen. Call when nothing is open. */
extern void apply_refuse_cascades(Apply *apply);

/*
 * After APPLY_REWIND: must the source not be opened yet, because the copy of a table has to be complete first? Reads
 * the tables; call outside a transaction.
 */
extern bool apply_awaits_copy(Apply *apply);

/* Since the last call: is a table to be copied anew because its shape changed? */
extern bool apply_take_join_wish(Apply *apply);

/* The same: is there an index to be built? */
extern bool apply_take_index_wish(Apply *apply);

/* Inside a source transaction: nothing is flushed until it ends. */
extern bool apply_in_transaction(const Apply *apply);

/* Start of the source transaction that is being taken in; NULL between two. For reports of errors. */
extern const CdcPosition *apply_open_transaction(const Apply *apply);

extern void apply_progress(const Apply *apply, ApplyProgress *progress);

extern const ApplyStats *apply_stats(const Apply *apply);

/*
 * Work on the oldest open request that concerns dead letters, for the ingest worker between two source transactions, after
 * a flush: some letters, in a transaction of its own. True when there is more to do.
 */
extern bool apply_replay_step(Apply *apply);

/* Remove dead letters that are too old or too many, as the options say, likewise. True when there may be more to remove. */
extern bool apply_letters_prune(Apply *apply);

#endif							/* CDC_APPLY_H */
