/*-------------------------------------------------------------------------
 *
 * snapshot_copy.h
 *	  What the files of the copy share: a worker's state, its chunks, its pages.
 *
 * NOTES
 *	  snapshot_plan.c gets chunks and finishes tables, snapshot_fold.c keeps the
 *	  plan small, snapshot_put_off.c knows the tables that cannot be had just now,
 *	  snapshot_read.c reads a chunk's rows into pages, snapshot_copy.c writes pages and decides what an
 *	  error means.
 *
 *	  At any time a worker has at most two chunks: one whose page is in memory, to
 *	  be written, and one that the source is sending. Both stand in the ledger as
 *	  open under the worker's number, so a worker that dies, or gives up what it
 *	  has in memory after an error, finds them there again.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SNAPSHOT_COPY_H
#define CDC_SNAPSHOT_COPY_H

#include "postgres.h"

#include "catalog/catalog.h"
#include "chunk/chunk.h"
#include "core/arena.h"
#include "heap/heap_row.h"
#include "mysql/mysql_session.h"
#include "snapshot/snapshot.h"

/* A table that is being copied. */
typedef struct CopyTable
{
	MemoryContext cxt;
	int32		table_id;
	int32		generation;
	Oid			target;
	Datum		own_rows;		/* see heap_shard.h; 0: all of the target's */
	char	   *source_schema;
	char	   *source_table;
	CdcTableDef *def;
	int		   *key;			/* columns of the key, in its order */
	int			nkey;
	uint64		limit;			/* rows to plan for the next chunk */
	bool		has_letters;	/* rows of it became dead letters: chunks stay small */
	bool		careful;		/* look each row up, whatever the notes say */
} CopyTable;

/* A chunk of ours: keys behind lower up to upper, itself included. */
typedef struct CopyChunk
{
	MemoryContext cxt;			/* holds it and its keys */
	CopyTable  *table;
	int32		chunk_no;
	ChunkKey   *lower;			/* NULL: from the beginning */
	ChunkKey   *upper;			/* NULL: to the end */
} CopyChunk;

/* What is known of the rows that a page may meet in its target. */
typedef struct CopyNotes
{
	bool		look_up;		/* there may be some */
	bool		overwrite;		/* those that the stream has not touched are older than the copy */
	bool		one_by_one;		/* each goes into the row that is there, if there is one */
	bool		any_deleted;
} CopyNotes;

/* How a page is written; when a row does not fit it is tried again in the next way (option on_error "dead_letter"). */
typedef enum CopyWay
{
	COPY_PLAIN,					/* all at once */
	COPY_FIND,					/* find the rows that do not fit, in subtransactions that are undone; then the others at once */
	COPY_KEEP					/* rows do not fit together: keep what fits, subtransaction by subtransaction */
} CopyWay;

/* The rows of a chunk, all of them. */
typedef struct CopyPage
{
	CopyWay		way;
	MemoryContext cxt;
	CopyChunk  *chunk;
	MysqlRow   *rows;
	int64		nrows;
	int64		allocated;
	int64		bytes;
} CopyPage;

struct SnapshotCopy
{
	MemoryContext cxt;
	MemoryContext step_cxt;		/* reset at each step */
	MemoryContext session_cxt;	/* the session's; a failed one goes with it */
	int32		pipeline_id;
	char	   *pipeline_name;
	int			worker;			/* our number: 1, 2, ... */
	const MysqlEndpoint *endpoint;
	char	   *identity;
	uint64		max_rows;		/* of a chunk */
	bool		stop_pipeline;	/* option on_error: a table's error is the pipeline's */
	bool		keep_dead_letters;	/* rows that do not fit are kept, and the others written */
	SchemaTypeOptions types;
	SnapshotHooks hooks;
	MysqlSession *session;
	MysqlServerInfo *info;

	List	   *tables;			/* of CopyTable: those that are in use */
	List	   *queue;			/* of QueueEntry: tables to look at, see snapshot_plan.c */
	CopyTable  *current;		/* where the newest chunk was cut; NULL: none */
	CopyTable  *at;				/* whose work is being done: an error may be its own */
	CopyTable  *planning;		/* whose plan we have locked */

	CopyChunk  *reading;		/* its rows are to come; NULL: none */
	bool		sent;			/* the source was asked for them */
	uint64		rows_asked;		/* LIMIT of the query */
	uint64		rows_seen;		/* of the query's answer */
	CopyPage   *page;			/* to be written; NULL: none */

	bool		asking;			/* the source is being asked */
	bool		changed;		/* it said that the table has another shape now */
	List	   *put_offs;		/* tables that could not be had, see snapshot_put_off.c */
	bool		in_snapshot;	/* a transaction is open on the session (a table without a key) */
	bool		rereading;		/* rows are read again, maybe of a table in CATCHUP */
	bool		holding;		/* the ingest worker holds still for us */
	bool		writing;		/* rows are being written */
	bool		opening;		/* what is wrong with the target is no row's fault */
	bool		unchecked;		/* without looking them up */
	int64		row_no;			/* in the page, for error contexts; 0: none */
	HeapRow    *row;			/* open while a page is written */
	CdcArena	arena;
};

/* snapshot_copy.c */
extern void snapshot_check_server(SnapshotCopy *copy);
extern void snapshot_open_session(SnapshotCopy *copy);
extern void snapshot_close_session(SnapshotCopy *copy); /* what it was sending is lost */
extern bool snapshot_table_is_due(const SnapshotCopy *copy, const CopyTable *table);	/* in a transaction */


/* Is there a row with search's key (or its part of one, where rows are filled in parts)? */
extern bool snapshot_row_is_there(HeapRow *row);

/* Write rows of the page, but for those whose bit is set in left_out (NULL: none). Returns how many values a policy changed. */
extern int64 snapshot_insert_rows(SnapshotCopy *copy, const CopyNotes *notes, int64 from, int64 to, const uint8 *left_out);

/* snapshot_letters.c: the same for all rows of a page of which some do not fit; *letters: how many became dead letters. */
extern int64 snapshot_insert_fitting(SnapshotCopy *copy, const CopyNotes *notes, int64 *letters);

/* Make the key of a row the one to search for; false: it cannot be read. And: keep the row as a dead letter. */
extern bool snapshot_letter_search(SnapshotCopy *copy, const CopyTable *table, HeapRow *row, const MysqlRow *values);
extern void snapshot_letter_write(SnapshotCopy *copy, const CopyTable *table, const MysqlRow *row, const ErrorData *edata);

/* Tell the log of the first one of several. */
extern void snapshot_letter_say(const SnapshotCopy *copy, const CopyTable *table, const ErrorData *edata, char *detail);

/* Turn a row's text into the target's slot. False: a filter leaves it out, and only its key is there. */
extern bool snapshot_fill_row(SnapshotCopy *copy, const CopyTable *table, HeapRow *row,
							  const char *const *values, const uint32 *lengths);

/* snapshot_keyless.c: copy a table without a key, or find that it cannot be had now. False when there is none. */
extern bool snapshot_keyless_step(SnapshotCopy *copy);

/* snapshot_put_off.c */

/* It cannot be had now: not before some seconds. error: why, for its row and the log; NULL: nothing worth telling. */
extern void snapshot_put_off(SnapshotCopy *copy, const CopyTable *table, const UtilErrorInfo *error);
extern bool snapshot_is_put_off(const SnapshotCopy *copy, int32 table_id);
extern void snapshot_forget_put_off(SnapshotCopy *copy, int32 table_id);	/* it could be had, or is no longer to be */
extern bool snapshot_any_put_off(SnapshotCopy *copy);	/* that is still to be copied */

/* What the files of the copy know a table by, in CurrentMemoryContext; paging is not prepared. */
extern CopyTable *snapshot_make_table(const CatalogTable *from);

/*
 * snapshot_reread.c: read rows again that the stream changed in part before they were there. False when that was not
 * possible now; *waiting: there are some.
 */
extern bool snapshot_reread_step(SnapshotCopy *copy, bool *waiting);

/* snapshot_plan.c */

/*
 * Get a chunk to read into copy->reading: of the table that the newest one came
 * from, else (same_table false) of any; finishes tables that it finds complete.
 * False when there is none.
 */
extern bool snapshot_plan_next(SnapshotCopy *copy, bool same_table);

/* Is nothing of the table left to be read or written? Then take it to CATCHUP. */
extern void snapshot_plan_finish(SnapshotCopy *copy, CopyTable *table);

/* End our chunk behind that key and make the rest of it another one, which is ours too; returns that. */
extern CopyChunk *snapshot_plan_cut(SnapshotCopy *copy, CopyChunk *chunk, const char *const *values,
									const uint32 *lengths);
extern void snapshot_chunk_free(CopyChunk *chunk);

/* Give up the plan's lock, after an error. */
extern void snapshot_plan_unlock(SnapshotCopy *copy);

/* snapshot_fold.c: make one row of done chunks that are neighbours. In a transaction that changes the plan. */
extern void snapshot_fold_done(SnapshotCopy *copy, const CopyTable *table);

/* snapshot_read.c */
extern void snapshot_read_send(SnapshotCopy *copy);

/* Read copy->reading into a page. When it is too large for one, copy->reading is the rest of it afterwards, else NULL. */
extern CopyPage *snapshot_read_page(SnapshotCopy *copy);
extern void snapshot_page_free(CopyPage *page);

/* The source refused a query about a table: throw a better error when the table has changed. */
extern void snapshot_explain_refusal(SnapshotCopy *copy, const CopyTable *table);

/* All chunks were read: throws when the table is another one than in the beginning. */
extern bool snapshot_has_changed(SnapshotCopy *copy, const CopyTable *table);
extern void snapshot_check_unchanged(SnapshotCopy *copy, const CopyTable *table);

#endif							/* CDC_SNAPSHOT_COPY_H */
