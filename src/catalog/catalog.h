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
	char	   *source;			/* name of the SERVER */
	char	   *sink;			/* NULL: this database */
	List	   *tables;			/* patterns, List of char * */
	char	   *target_schema;	/* NULL: the source's schema name */
	Datum		options;		/* jsonb; 0 when NULL */

	/* from pipeline_state */
	bool		enabled;		/* should run, and was started in this database */
	CatalogPipelineState state;
	CatalogError last_error;
} CatalogPipeline;

/* NULL when there is none. */
extern CatalogPipeline *catalog_pipeline_by_id(int32 pipeline_id);
extern CatalogPipeline *catalog_pipeline_by_name(const char *name);
extern List *catalog_pipeline_list(void);

extern int32 catalog_pipeline_insert(const CatalogPipeline *pipeline);	/* makes the position tables and the state row (stopped) too */
extern void catalog_pipeline_delete(const CatalogPipeline *pipeline);	/* with everything that belongs to it, position tables included */

/* Text of an option as given, or NULL; read it with util_option_int(&catalog_pipeline_options, name, that). */
extern char *catalog_pipeline_option(const CatalogPipeline *pipeline, const char *name);

/* Check the options of a pipeline to be made; throws at the first bad one. options may be 0. */
extern void catalog_pipeline_options_check(Datum options);

extern void catalog_pipeline_set_enabled(int32 pipeline_id, bool enabled);	/* state becomes starting resp. stopped; enabling clears the last error */

/*
 * State reached by a worker; error may be NULL (then the last error stays as it is). Does nothing when the pipeline was
 * stopped meanwhile.
 */
extern void catalog_pipeline_set_state(int32 pipeline_id, CatalogPipelineState state,
									   const UtilErrorInfo *error, const CdcPosition *error_position);

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

/* ---- tables of a pipeline ---- */

typedef enum CatalogTableState
{
	CATALOG_TABLE_SNAPSHOT,		/* chunks are being copied while the stream is applied: -> CATCHUP, STOPPED */
	CATALOG_TABLE_CATCHUP,		/* all chunks are there, the stream has to pass the high mark: -> STREAMING, STOPPED */
	CATALOG_TABLE_STREAMING,	/* -> STOPPED */
	CATALOG_TABLE_STOPPED		/* with error and position; final until the pipeline is made anew */
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

	/* from table_state */
	CatalogTableState state;
	int32		generation;		/* grows with each new snapshot of the table */
	Oid			target;			/* InvalidOid when the table stopped before it had one */
	Datum		definition;		/* jsonb of the declared definition; 0 when there is none */
	CdcPosition high_mark;		/* CATCHUP: unknown before */
	CdcPosition stop_position;	/* STOPPED: changes of transactions that start at or after it are not applied; unknown: none are */
	int64		row_estimate;
	int64		rows_copied;	/* set when the snapshot is complete; before that the ledger knows */
	int32		chunks;			/* the same */
	CatalogError last_error;
	TimestampTz snapshot_started_at;	/* 0: never */
	TimestampTz snapshot_finished_at;	/* 0: not yet */
} CatalogTable;

extern List *catalog_table_list(int32 pipeline_id);	/* by table_id */
extern CatalogTable *catalog_table_by_id(int32 pipeline_id, int32 table_id);

/* Fills table_id. error: why a table in state STOPPED never began. */
extern void catalog_table_insert(CatalogTable *table, const UtilErrorInfo *error);

/* SNAPSHOT -> CATCHUP; false when the table is no longer in that state or generation. */
extern bool catalog_table_set_catchup(int32 pipeline_id, int32 table_id, int32 generation,
									  const CdcPosition *high_mark, int64 rows_copied);

/* CATCHUP -> STREAMING, removing its snapshot_deleted and ledger rows; false when not in CATCHUP. */
extern bool catalog_table_set_streaming(int32 pipeline_id, int32 table_id);

/*
 * any -> STOPPED, at a position (may be NULL: at once), removing its snapshot_deleted and ledger rows; a table that is
 * stopped keeps its first error and position. The caller holds the table's lock (catalog_lock_table).
 */
extern void catalog_table_set_stopped(int32 pipeline_id, int32 table_id, const CdcPosition *at,
									  const UtilErrorInfo *error);

/* ---- snapshot ledger ---- */

typedef struct CatalogChunk
{
	int32		pipeline_id;
	int32		table_id;
	int32		generation;
	int32		chunk_no;		/* 1, 2, ... in key order */
	int			nkey;
	char	  **upper;			/* key of its last row, as text (mysql_key_value_expression) */
	int64		rows;			/* rows read */
	int64		bytes;
} CatalogChunk;

extern void catalog_chunk_insert(const CatalogChunk *chunk);

/* Newest chunk of that generation and the sum of rows so far; NULL when there is none. */
extern CatalogChunk *catalog_chunk_last(int32 pipeline_id, int32 table_id, int32 generation, int64 *rows_total);

/* ---- snapshot_deleted ---- */

extern bool catalog_deleted_exists(int32 pipeline_id, int32 table_id, bytea *key);
extern void catalog_deleted_add(int32 pipeline_id, int32 table_id, bytea *key);	/* no-op when there */
extern void catalog_deleted_remove(int32 pipeline_id, int32 table_id, bytea *key);	/* no-op when not there */
extern bool catalog_deleted_any(int32 pipeline_id, int32 table_id);

/* ---- dead letters ---- */

/* A change that could not be applied. */
typedef struct CatalogDeadLetter
{
	int32		pipeline_id;
	int64		id;				/* given by _insert */
	int32		table_id;
	CdcPosition position;		/* start of its source transaction */
	CdcGtid		gtid;			/* for _insert */
	char	   *gtid_text;		/* from _list; NULL: none */
	int64		action;			/* number of the change in its transaction: 1, 2, ... */
	const char *operation;		/* "insert", "update", "delete" */
	Datum		before;			/* jsonb: column -> value; 0: none */
	Datum		after;
	UtilErrorInfo error;		/* for _insert */
	CatalogError shown_error;	/* from _list */
	TimestampTz created_at;
} CatalogDeadLetter;

extern void catalog_dead_letter_insert(const CatalogDeadLetter *letter);
extern List *catalog_dead_letter_list(int32 pipeline_id);	/* by id */

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
	int32		index_no;		/* 1, 2, ... in the order of the declared definition */
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
extern CatalogIndex *catalog_index_by_no(int32 pipeline_id, int32 table_id, int32 index_no);
extern void catalog_index_insert(const CatalogIndex *index);
extern void catalog_index_delete(int32 pipeline_id, int32 table_id);	/* all of a table */

/*
 * Write state, target_index and statement of *index, with the times that go with the state; error may be NULL. False when
 * the row is gone.
 */
extern bool catalog_index_set_state(const CatalogIndex *index, const UtilErrorInfo *error);

/* FAILED -> WANTED, for all indexes of a pipeline. */
extern void catalog_index_retry(int32 pipeline_id);

/* ---- prepared XA transactions ---- */

extern void catalog_prepared_add(int32 pipeline_id, const char *xid, const CdcPosition *position);
extern bool catalog_prepared_remove(int32 pipeline_id, const char *xid);	/* was it there? */

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
