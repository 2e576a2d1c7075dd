/*-------------------------------------------------------------------------
 *
 * catalog.h
 *	  Rows of the cdc_bridge.* tables: read, written, nothing decided.
 *
 * NOTES
 *	  Written at heap level (no SPI, no rights needed: the tables belong to the
 *	  extension's owner and nobody else may write them). All functions need a
 *	  transaction and use a snapshot taken inside the call, so they see what was
 *	  committed until then. Results live in CurrentMemoryContext.
 *
 *	  pipeline_state and table_state have several writers (SQL functions, ingest
 *	  and snapshot worker). Whoever changes a row there first gets the
 *	  pipeline's state lock, to the end of its transaction; these functions do it
 *	  themselves. Take it last.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CATALOG_H
#define CDC_CATALOG_H

#include "postgres.h"
#include "nodes/pg_list.h"
#include "utils/timestamp.h"

#include "core/gtid.h"
#include "core/position.h"
#include "util/util_error.h"
#include "util/util_options.h"

/* ---- pipelines ---- */

/* Options of a pipeline (the jsonb): see catalog_options.c. */
extern const UtilOptionTable catalog_pipeline_options;

typedef enum CatalogPipelineState
{
	CATALOG_PIPELINE_STOPPED,	/* -> STARTING, by cdc_start_pipeline */
	CATALOG_PIPELINE_STARTING,	/* -> SNAPSHOT, STREAMING, RETRYING, FAILED */
	CATALOG_PIPELINE_SNAPSHOT,	/* -> STREAMING, RETRYING, FAILED */
	CATALOG_PIPELINE_STREAMING, /* -> RETRYING, FAILED */
	CATALOG_PIPELINE_RETRYING,	/* an error that may pass: -> STARTING by itself */
	CATALOG_PIPELINE_FAILED		/* an error that stays: -> STARTING by cdc_start_pipeline */
} CatalogPipelineState;				/* each -> STOPPED by cdc_stop_pipeline */

extern const char *catalog_pipeline_state_name(CatalogPipelineState state);

/* Last error of a pipeline or table, as stored; message is NULL when there is none. */
typedef struct CatalogError
{
	char	   *message;
	char	   *sqlstate;		/* five characters */
	char	   *detail;
	char	   *hint;
	char	   *position;		/* "file:offset"; pipelines only */
	TimestampTz at;
} CatalogError;

typedef struct CatalogPipeline
{
	int32		id;
	char	   *name;
	Oid			owner;
	char	   *source;			/* name of the SERVER; NULL: this database */
	char	   *sink;			/* the same; exactly one of the two is NULL */
	List	   *tables;			/* patterns, List of char * */
	char	   *target_schema;	/* NULL: the source's schema name */
	Datum		options;		/* jsonb; 0 when NULL */

	/* from pipeline_state */
	bool		enabled;		/* should run, and was started in this database */
	CatalogPipelineState state;
	CatalogError last_error;
	int32		tables_asked;	/* grows with each wish that concerns its tables, see catalog_pipeline_ask_tables */
	int32		tables_done;	/* up to which of them they are taken up */
	char	   *failed_transaction; /* "file:offset": start of the source transaction that it fell in; NULL: in none */
	TimestampTz server_start;	/* start of the server under which it was last allowed to run; 0: never */
	char	   *fingerprint;	/* of that server; NULL: never ran */

	/* another number whenever a worker has to read the definition, or what was asked of it, anew; never 0 */
	uint64		stamp;
} CatalogPipeline;

/* Owner of the extension, who owns its tables too. */
extern Oid	catalog_extension_owner(void);

/* NULL when there is none. */
extern CatalogPipeline *catalog_pipeline_by_id(int32 pipeline_id);
extern CatalogPipeline *catalog_pipeline_by_name(const char *name);
extern List *catalog_pipeline_list(void);

extern int32 catalog_pipeline_insert(const CatalogPipeline *pipeline);	/* makes the position tables and the state row (stopped) too */
extern void catalog_pipeline_delete(const CatalogPipeline *pipeline);	/* with everything that belongs to it, position tables included */

/* Most snapshot workers of a pipeline. */
#define CATALOG_MAX_SNAPSHOT_WORKERS 16

/*
 * For who is going to change a pipeline: lock its state to the end of the transaction, then read it; NULL when there is
 * none. The lock of the pipeline itself comes first, see catalog_lock.h.
 */
extern CatalogPipeline *catalog_pipeline_for_update(int32 pipeline_id);

/* Write owner, source, target_schema and options as they stand in *pipeline. */
extern void catalog_pipeline_update(const CatalogPipeline *pipeline);

/* Give a pipeline that came from a dump what it lacks: a state row (stopped) and position tables. No-op else. */
extern void catalog_pipeline_complete(int32 pipeline_id);

/* Text of an option as given, or NULL; read it with util_option_int(&catalog_pipeline_options, name, that), resp. catalog_export_int(). */
extern char *catalog_pipeline_option(const CatalogPipeline *pipeline, const char *name);

/* The strings of an option that is an array of them; NIL when it is not given. */
extern List *catalog_pipeline_option_words(const CatalogPipeline *pipeline, const char *name);

/* Option on_error of a pipeline of either direction, whose words are these. */
typedef enum CatalogOnError
{
	CATALOG_ON_ERROR_STOP_TABLE,
	CATALOG_ON_ERROR_DEAD_LETTER,
	CATALOG_ON_ERROR_STOP
} CatalogOnError;

extern const char *const catalog_on_error_words[];
extern CatalogOnError catalog_pipeline_on_error(const CatalogPipeline *pipeline);

/* Check the options of a pipeline to be made; throws at the first bad one. Only options (may be 0) and sink are looked at. */
extern void catalog_pipeline_options_check(const CatalogPipeline *pipeline);

/* The options that a pipeline of its direction has. */
extern const UtilOptionTable *catalog_pipeline_option_table(const CatalogPipeline *pipeline);

extern void catalog_pipeline_set_enabled(int32 pipeline_id, bool enabled);	/* state becomes starting resp. stopped; enabling clears the last error */

/*
 * State reached by a worker; error may be NULL (then the last error stays as it is). Does nothing when the pipeline was
 * stopped meanwhile.
 */
extern void catalog_pipeline_set_state(int32 pipeline_id, CatalogPipelineState state,
									   const UtilErrorInfo *error, const CdcPosition *error_position);

/* Note the source transaction that the last error fell in; NULL or unknown: in none. */
extern void catalog_pipeline_set_failed_transaction(int32 pipeline_id, const CdcPosition *start);

/* Note under which server a pipeline runs: its start and its fingerprint (NULL: leave that as it is). */
extern void catalog_pipeline_set_server(int32 pipeline_id, TimestampTz server_start, const char *fingerprint);

/*
 * A wish that concerns the pipeline's tables: what follows in this transaction
 * (a new list, a table that leaves, one that is to be copied anew) is taken up by
 * the ingest worker, which then notes up to which wish it came. A pipeline that
 * streams is in SNAPSHOT until then. Locks the state.
 */
extern void catalog_pipeline_ask_tables(int32 pipeline_id);
extern void catalog_pipeline_set_tables_done(int32 pipeline_id, int32 asked);
extern void catalog_pipeline_set_tables(int32 pipeline_id, List *tables);

/*
 * The snapshot mark: all that the source had committed up to it is visible to every chunk. Read it as the whole GTID set
 * when the position is unknown. _get returns false when the pipeline has none.
 */
extern void catalog_pipeline_set_snapshot_mark(int32 pipeline_id, const CdcPosition *position, const char *gtids);
extern bool catalog_pipeline_get_snapshot_mark(int32 pipeline_id, CdcPosition *position, char **gtids);

/*
 * Drop the replication origins "cdc_<database>_<pipeline>_<n>" of a pipeline, or (pipeline_id 0) of all pipelines of a
 * database. Their workers must have left.
 */
extern void catalog_origin_drop(Oid database, int32 pipeline_id);

/*
 * Is there room for a replication origin that can be done without, besides those that exist and the first two of each
 * running pipeline of this database?
 */
extern bool catalog_origin_has_room(const char *name);

/* ---- tables of a pipeline ---- */

typedef enum CatalogTableState
{
	CATALOG_TABLE_SNAPSHOT,		/* chunks are being copied while the stream is applied: -> CATCHUP, STOPPED */
	CATALOG_TABLE_CATCHUP,		/* all chunks are there, the stream has to pass the high mark: -> STREAMING, STOPPED */
	CATALOG_TABLE_STREAMING,	/* -> STOPPED */
	CATALOG_TABLE_STOPPED		/* with error and position: -> SNAPSHOT by cdc_resync_table */
} CatalogTableState;

extern const char *catalog_table_state_name(CatalogTableState state);

typedef struct CatalogTable
{
	int32		pipeline_id;
	int32		table_id;
	char	   *source_schema;
	char	   *source_table;
	char	   *target_schema;
	char	   *target_table;
	bool		complete;		/* its rows are those of the pipeline's position: as long as it is STREAMING; all that a dump says of that */

	bool		made;			/* the pipeline made the target */

	/* from table_state */
	CatalogTableState state;
	int32		generation;		/* grows with each new snapshot of the table */
	Oid			target;			/* InvalidOid when the table stopped before it had one */
	Datum		definition;		/* jsonb of the declared definition; 0 when there is none */
	CdcPosition high_mark;		/* CATCHUP; before that unknown, or where the stream has to come to before the copy begins anew */
	CdcPosition stop_position;	/* STOPPED: changes of transactions that start at or after it are not applied; unknown: none are */
	int64		row_estimate;
	int64		rows_copied;	/* set when the snapshot is complete; before that the ledger knows */
	int32		chunks;			/* the same */
	CatalogError last_error;
	TimestampTz snapshot_started_at;	/* 0: never */
	TimestampTz snapshot_finished_at;	/* 0: not yet */
	bool		resync_wanted;	/* a new copy was asked for and has not begun */
	Oid			swap_into;		/* the table that target, a shadow, will take the place of; InvalidOid: target is no shadow */
	CdcPosition join_position;	/* changes of transactions that start before it are not applied; unknown: all are */
	char	   *join_gtids;		/* all that is applied there; NULL or "" when the source has none */
	bool		chunks_allowed; /* what lies before the join position is visible to every SELECT; never without a key */
	CdcPosition mark;			/* what every chunk has seen, see catalog_pipeline_set_snapshot_mark; only once chunks are allowed */
	char	   *mark_gtids;
	bool		keeps_rows;		/* the target has rows that a statement of the source removed and the options kept */
	Datum		own_rows;		/* which rows of a target that it shares are its own, see heap/heap_shard.h; 0: the target is its own */
} CatalogTable;

extern List *catalog_table_list(int32 pipeline_id);	/* by table_id */
extern CatalogTable *catalog_table_by_id(int32 pipeline_id, int32 table_id);

/*
 * Tables that have left the pipeline and of which the worker has not yet removed
 * what belonged to them (only table_id, target and swap_into are filled).
 */
extern List *catalog_table_list_left(int32 pipeline_id);

/* Fills table_id. error: why a table in state STOPPED never began. */
extern void catalog_table_insert(CatalogTable *table, const UtilErrorInfo *error);

/* The state, for a table that came from a dump without it. */
extern void catalog_table_insert_state(const CatalogTable *table, const UtilErrorInfo *error);

/* SNAPSHOT -> CATCHUP; false when the table is no longer in that state or generation. */
extern bool catalog_table_set_catchup(int32 pipeline_id, int32 table_id, int32 generation,
									  const CdcPosition *high_mark);

/* SNAPSHOT: where the stream has to come to before the copy begins anew, see snapshot_fit.c. */
extern void catalog_table_set_high_mark(int32 pipeline_id, int32 table_id, const CdcPosition *high_mark);

/* CATCHUP -> STREAMING, removing its snapshot_deleted and ledger rows; false when not in CATCHUP. */
extern bool catalog_table_set_streaming(int32 pipeline_id, int32 table_id);

/*
 * any -> STOPPED, at a position (may be NULL: at once), removing its snapshot_deleted and ledger rows; a table that is
 * stopped keeps its first error and position, which gives false. The caller holds the table's lock (catalog_lock_table).
 */
extern bool catalog_table_set_stopped(int32 pipeline_id, int32 table_id, const CdcPosition *at,
									  const UtilErrorInfo *error);

/* Put another definition in the place of a table's; no-op when it has no state. */
extern void catalog_table_set_definition(int32 pipeline_id, int32 table_id, Datum definition);

/* Other rows of its target are a table's own from now on; no-op when it has no state. */
extern void catalog_table_set_own_rows(int32 pipeline_id, int32 table_id, Datum own_rows);

/* The table has the names that stand in *table, at the source and here, and its target was made by us or not. No-op for one that has left. */
extern void catalog_table_set_names(const CatalogTable *table);

/* A table leaves its pipeline; what belonged to it goes with catalog_table_forget, by the ingest worker. Call catalog_pipeline_ask_tables before. */
extern void catalog_table_leave(int32 pipeline_id, int32 table_id);
extern void catalog_table_forget(int32 pipeline_id, int32 table_id);

/* Ask for a new copy; false when the table has no state yet (it begins anew anyway). Call catalog_pipeline_ask_tables before. */
extern bool catalog_table_ask_resync(int32 pipeline_id, int32 table_id);

/* See keeps_rows; a new copy, and who asks for one by hand, does away with it. */
extern void catalog_table_set_keeps_rows(int32 pipeline_id, int32 table_id, bool keeps_rows);

/*
 * What was copied of a table, or streamed into it, does not count any more: it is in SNAPSHOT, no chunk of it may be read, and
 * none of its changes is applied, until a new copy begins. Nothing for a stopped one. The caller holds the table's lock
 * and has called catalog_pipeline_ask_tables.
 */
extern void catalog_table_copy_anew(int32 pipeline_id, int32 table_id);

/*
 * A new copy begins (state SNAPSHOT, error NULL), or could not (STOPPED, with the reason): state,
 * generation, target, swap_into, definition, join position and estimate are taken over,
 * the rest is as for a new table. The caller holds the table's lock (catalog_lock_table).
 */
extern void catalog_table_begin_anew(const CatalogTable *table, const UtilErrorInfo *error);

/*
 * From now on chunks may be read; mark as for catalog_pipeline_set_snapshot_mark. It may be
 * missing (unknown, gtids NULL): then not when an XA COMMIT was passed over (*xa_passed). False
 * when no longer due.
 */
extern bool catalog_table_allow_chunks(int32 pipeline_id, int32 table_id, int32 generation,
									   const CdcPosition *mark, const char *mark_gtids, bool *xa_passed);

/*
 * The stream has met the XA COMMIT of a transaction that was prepared before the table joined. While chunks are
 * not allowed yet that is noted, and true: the mark to come will tell whether every chunk sees it.
 */
extern bool catalog_table_pass_xa(int32 pipeline_id, int32 table_id, const CdcPosition *at);

/*
 * The source's table was emptied, and so was the target. A copy that is under way begins anew, with another generation. The
 * caller holds the table's lock.
 */
extern void catalog_table_restart_empty(int32 pipeline_id, int32 table_id, bool keyless);

/*
 * A table without a key: its copy begins, or begins anew, with that generation, and has no join position until
 * catalog_table_set_join (false when it is no longer being copied). The caller holds the table's lock.
 */
extern void catalog_table_restart_copy(int32 pipeline_id, int32 table_id, int32 generation);
extern bool catalog_table_set_join(int32 pipeline_id, int32 table_id, int32 generation, const CdcPosition *join);

/* The table is written to again where it was before its new copy, or the copy took its place: target becomes swap_into. */
extern void catalog_table_end_shadow(int32 pipeline_id, int32 table_id);

/* Say why a table that is well waits (error), or that it does so no longer (NULL). Does nothing when it is stopped. */
extern void catalog_table_set_notice(int32 pipeline_id, int32 table_id, const UtilErrorInfo *error);

/* A table that is to begin, or to be copied anew, cannot do so now: the reason, whatever its state, and that it still wants to. */
extern void catalog_table_put_off(int32 pipeline_id, int32 table_id, const UtilErrorInfo *error);

/*
 * The stream goes on at another server: forget positions in the log of the former one, so that all changes that come are
 * applied to a table that streams, and none to one that is stopped. anew: its copy is to begin anew; what is written of a
 * copy that is under way is refused by its generation from now on. The caller holds the locks of tables that are being copied.
 */
extern void catalog_table_leave_server(int32 pipeline_id, int32 table_id, bool anew, bool keyless);

/* ---- snapshot ledger: the chunks of a table, which together are all of its keys ---- */

typedef enum CatalogChunkState
{
	CATALOG_CHUNK_REST,			/* number 0: what is not cut into chunks yet; shrinks, then goes */
	CATALOG_CHUNK_OPEN,			/* a worker's: -> DONE */
	CATALOG_CHUNK_DONE
} CatalogChunkState;

typedef struct CatalogChunk
{
	int32		pipeline_id;
	int32		table_id;
	int32		generation;
	int32		chunk_no;		/* 1, 2, ... as they were made */
	int			nkey;
	char	  **lower;			/* keys behind it, as text (mysql_key_value_expression); NULL: from the beginning */
	char	  **upper;			/* up to it, itself included; NULL: to the end */
	CatalogChunkState state;
	int32		worker;			/* number of the snapshot worker whose it is, or was */
	int64		rows;			/* rows read */
	int64		bytes;
	int32		chunks;			/* how many done ones it stands for */
} CatalogChunk;

extern void catalog_chunk_insert(const CatalogChunk *chunk);
extern void catalog_chunk_update(const CatalogChunk *chunk);	/* the row of its number */
extern void catalog_chunk_delete(const CatalogChunk *chunk);

/* NULL when there is none. */
extern CatalogChunk *catalog_chunk_by_no(int32 pipeline_id, int32 table_id, int32 generation, int32 chunk_no);

/* Highest number in use; -1 when nothing is planned yet. */
extern int32 catalog_chunk_last_no(int32 pipeline_id, int32 table_id, int32 generation);

/* Chunks in a state, List of CatalogChunk. */
extern List *catalog_chunk_list(int32 pipeline_id, int32 table_id, int32 generation, CatalogChunkState state);

/* How many are done, and the sum of their rows. */
extern void catalog_chunk_sum(int32 pipeline_id, int32 table_id, int32 generation, int32 *chunks, int64 *rows);

/* ---- snapshot_deleted: what the stream notes for the copy of a table ---- */

extern bool catalog_deleted_exists(int32 pipeline_id, int32 table_id, bytea *key);
extern void catalog_deleted_add(int32 pipeline_id, int32 table_id, bytea *key);	/* no-op when there */
extern void catalog_deleted_remove(int32 pipeline_id, int32 table_id, bytea *key);	/* no-op when not there */
extern bool catalog_deleted_any(int32 pipeline_id, int32 table_id);	/* is "remove" worth calling? */

/* Remove up to max keys, notes left alone, and return them (List of bytea). */
extern List *catalog_deleted_take(int32 pipeline_id, int32 table_id, int max);

/* The stream has written to the table, in whatever way; no-op when noted. */
extern void catalog_deleted_note_stream(int32 pipeline_id, int32 table_id);

/*
 * The target had rows of its own when the copy began: from here on "remove" adds the key, so that the list has all keys
 * that the stream touched, and the copy can tell its rows from the older ones.
 */
extern void catalog_deleted_keep_all(int32 pipeline_id, int32 table_id);

/* What is noted of the two. */
extern void catalog_deleted_notes(int32 pipeline_id, int32 table_id, bool *stream, bool *keep_all);

/* The stream has filled columns of inserted rows with their defaults by the definition; no-op when noted. And whether it has. */
extern void catalog_deleted_note_defaults(int32 pipeline_id, int32 table_id);
extern bool catalog_deleted_used_defaults(int32 pipeline_id, int32 table_id);

/* ---- snapshot_reread: keys of which a copy has to read the row again ---- */

typedef struct CatalogReread
{
	int32		pipeline_id;
	int32		table_id;
	bytea	   *key;
	char	   *condition;		/* finds the row at the source */
	bool		is_read;		/* it has been read again, and written */
	CdcPosition at;				/* before: start of the last change in part; after: end of the log when it was read */
	char	   *gtid;			/* of that change; NULL or "": none */
} CatalogReread;

extern bool catalog_reread_any(int32 pipeline_id, int32 table_id);	/* is "find" worth calling? */
extern CatalogReread *catalog_reread_find(int32 pipeline_id, int32 table_id, bytea *key);	/* NULL when there is none */
extern void catalog_reread_put(const CatalogReread *entry);	/* in place of the one that is there */

/* Remove it, or (unread_only) only when its row has not been read again; no-op when not there. */
extern void catalog_reread_remove(int32 pipeline_id, int32 table_id, bytea *key, bool unread_only);

/* Up to max that are still to be read, List of CatalogReread. */
extern List *catalog_reread_list(int32 pipeline_id, int32 table_id, int max);

/* Has every one been read, and the stream passed what was seen then? */
extern bool catalog_reread_is_settled(int32 pipeline_id, int32 table_id, const CdcPosition *durable);

/* ---- indexes of targets ---- */

typedef enum CatalogTargetIndexState
{
	CATALOG_INDEX_WANTED,		/* -> BUILDING, BUILT (there is one already), FAILED */
	CATALOG_INDEX_BUILDING,		/* -> BUILT, FAILED, WANTED; after a crash its name tells what is left of it */
	CATALOG_INDEX_BUILT,
	CATALOG_INDEX_LEFT_OUT,		/* with the reason; never built */
	CATALOG_INDEX_FAILED		/* with the error: -> WANTED by cdc_start_pipeline */
} CatalogTargetIndexState;

extern const char *catalog_index_state_name(CatalogTargetIndexState state);

/* What becomes of one index of a source table on its target. */
typedef struct CatalogIndex
{
	int32		pipeline_id;
	int32		table_id;
	int32		index_no;		/* 1, 2, ... as they came */
	char	   *source_index;
	bool		is_unique;
	char	   *target_index;	/* NULL until it has one */
	char	   *statement;		/* to be read by people; NULL when there is none */
	CatalogTargetIndexState state;
	char	   *reason;			/* LEFT_OUT */
	CatalogError last_error;	/* FAILED; without time */
	TimestampTz started_at;		/* 0: never */
	TimestampTz finished_at;	/* 0: not yet */
} CatalogIndex;

extern List *catalog_index_list(int32 pipeline_id);	/* by table_id and index_no */
extern List *catalog_index_list_of(int32 pipeline_id, int32 table_id);	/* by index_no */
extern CatalogIndex *catalog_index_by_no(int32 pipeline_id, int32 table_id, int32 index_no);
extern void catalog_index_insert(const CatalogIndex *index);
extern void catalog_index_delete(int32 pipeline_id, int32 table_id);	/* all of a table */
extern void catalog_index_delete_one(const CatalogIndex *index);

/*
 * Write state, target_index and statement of *index, with the times that go with the state; error may be NULL. False when
 * the row is gone.
 */
extern bool catalog_index_set_state(const CatalogIndex *index, const UtilErrorInfo *error);

/* FAILED -> WANTED, for all indexes of a pipeline. */
extern void catalog_index_retry(int32 pipeline_id);

/* ---- prepared XA transactions ---- */

/* One that waits for its XA COMMIT or XA ROLLBACK. What it changed is kept in pieces, see binlog/change_store.h. */
typedef struct CatalogPrepared
{
	int32		pipeline_id;
	int32		prepared_id;	/* of its pieces */
	const char *xid;			/* as the log has it behind XA COMMIT */
	CdcPosition position;		/* where it starts; unknown: before the pipeline's beginning, so nothing of it is known */
	TimestampTz prepared_at;	/* by the source's clock; 0: not told */
	List	   *source_tables;	/* "schema.table" of all that it changed, ours or not */
	bool		has_tables;		/* false: too many to be listed, or not known */
	int32		last_table_id;	/* tables with a higher number joined after it: what it changed in them is not kept */
	int64		changes;		/* kept */
	int64		bytes;
	int32		pieces;
} CatalogPrepared;

/* A number for the pieces of a transaction that is being read; nobody but the ingest worker makes them. */
extern int32 catalog_prepared_next_id(int32 pipeline_id);

/* Note one; a noted one of the same name goes, with its pieces. */
extern void catalog_prepared_insert(const CatalogPrepared *prepared);
extern CatalogPrepared *catalog_prepared_find(int32 pipeline_id, const char *xid);	/* NULL when there is none */
extern List *catalog_prepared_list(int32 pipeline_id);
extern void catalog_prepared_delete(const CatalogPrepared *prepared);	/* with its pieces */

/* Pieces are numbered 1, 2, ... */
extern void catalog_prepared_add_piece(int32 pipeline_id, int32 prepared_id, int32 piece_no, const char *data, Size len);
extern bytea *catalog_prepared_piece(int32 pipeline_id, int32 prepared_id, int32 piece_no);	/* NULL when there is none */
extern void catalog_prepared_delete_pieces(int32 pipeline_id, int32 prepared_id);

/* ---- source transactions to pass over, catalog_skip.c ---- */

typedef struct CatalogSkip
{
	int32		pipeline_id;
	int32		skip_id;
	CdcPosition position;		/* start of the transaction; unknown: see gtid */
	char	   *gtid;			/* its name as cdc_gtid_format prints it, or NULL */
} CatalogSkip;

/* Requests that wait for their transaction. */
extern List *catalog_skip_list(int32 pipeline_id);

/* Write a request (its skip_id is filled in); false when the same one waits already. */
extern bool catalog_skip_add(CatalogSkip *skip);

/* The transaction has come, at that position, and its changes were passed over. */
extern void catalog_skip_set_done(int32 pipeline_id, int32 skip_id, const CdcPosition *position, int64 changes);

/* How many were passed over; number of the newest request, 0 when there is none. */
extern void catalog_skip_remove(int32 pipeline_id, int32 skip_id);
extern int64 catalog_skip_count(int32 pipeline_id);
extern int32 catalog_skip_last(int32 pipeline_id);

/* ---- positions ---- */

/*
 * The position log of a pipeline: two tables, used in turn. Each PostgreSQL
 * transaction of the ingest worker appends one row; every so many rows the
 * other table is truncated (or, when somebody reads it just then, later) and
 * gets a base row with the whole GTID set.
 */
typedef struct CatalogPositionLog CatalogPositionLog;

typedef struct CatalogPosition
{
	char	   *identity;		/* server that file and offset belong to */
	CdcPosition position;		/* may be unknown: only gtids */
	char	   *gtids;			/* whole set as text; "" when none */
	TimestampTz committed_at;	/* when its row was written */
} CatalogPosition;

/* Identity of a position that any server may continue, with a new copy of all tables. */
#define CATALOG_ANY_SERVER "*"

/* Where a pipeline goes on instead of its position: at another server, or anew. */
typedef struct CatalogMove
{
	char	   *identity;		/* of the server that is followed from now on */
	char	   *target;			/* 'host "db2", port 3306' */
	CdcGtidKind kind;			/* of its GTIDs */
	CdcPosition position;		/* unknown: by GTIDs */
	char	   *gtids;
	bool		copy_all;		/* what lies between is lost: all tables are to be copied anew */
	char	   *reason;			/* sentences for the server's log */
} CatalogMove;

/*
 * Newest position, or NULL. Can be called by anybody who may see the pipeline.
 * Without wait also NULL while the tables are locked, which a transaction that
 * drops the pipeline does to its end.
 */
extern CatalogPosition *catalog_position_load(int32 pipeline_id, bool wait);

/* For the one writer; lives in cxt. Reads what is there (log->current is NULL when there is none). */
extern CatalogPositionLog *catalog_position_log_open(int32 pipeline_id, MemoryContext cxt);
extern const CatalogPosition *catalog_position_log_current(const CatalogPositionLog *log);

/* First position of a pipeline, as a base row. */
extern void catalog_position_log_start(CatalogPositionLog *log, const char *identity, CdcGtidKind kind,
									   const CdcPosition *position, const char *gtids);

/*
 * Append the position of this transaction and the GTIDs of the source
 * transactions in it. The log's memory follows at once, so after an abort call
 * catalog_position_log_reload (in a new transaction).
 */
extern void catalog_position_log_append(CatalogPositionLog *log, const CdcPosition *position,
										const CdcGtid *gtids, int ngtids);
extern void catalog_position_log_reload(CatalogPositionLog *log);

#endif							/* CDC_CATALOG_H */
