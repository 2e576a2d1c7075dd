/*-------------------------------------------------------------------------
 *
 * catalog_verify.h
 *	  Rows of cdc_bridge.verify_request, verify_table and verify_difference.
 *
 * NOTES
 *	  A request is written by a SQL function and worked on by the pipeline's
 *	  maintenance worker, which alone writes the rows of verify_table and
 *	  verify_difference. A request may be cancelled meanwhile, so its row has
 *	  two writers: whoever changes it gets the pipeline's state lock first, as
 *	  for pipeline_state.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CATALOG_VERIFY_H
#define CDC_CATALOG_VERIFY_H

#include "postgres.h"

#include "catalog/catalog.h"

typedef enum CatalogVerifyState
{
	CATALOG_VERIFY_QUEUED,		/* -> RUNNING, CANCELLED; a table also -> SKIPPED */
	CATALOG_VERIFY_RUNNING,		/* -> DONE, FAILED, CANCELLED; a table also -> SKIPPED */
	CATALOG_VERIFY_DONE,
	CATALOG_VERIFY_SKIPPED,		/* tables only: it could not be compared, see reason */
	CATALOG_VERIFY_FAILED,
	CATALOG_VERIFY_CANCELLED
} CatalogVerifyState;

extern const char *catalog_verify_state_name(CatalogVerifyState state);

/* Finished requests of a pipeline that are kept. */
#define CATALOG_VERIFY_KEPT 20

typedef struct CatalogVerify
{
	int32		pipeline_id;
	int64		request;
	List	   *tables;			/* patterns, List of char *; NIL: all tables */
	char	   *mode;			/* count, sample, full */
	CatalogVerifyState state;
	Oid			requested_by;
	TimestampTz requested_at;
	TimestampTz started_at;		/* 0: not yet */
	TimestampTz finished_at;	/* 0: not yet */
	int32		attempts;		/* how often a worker has begun with it since a table was finished */
	CatalogError last_error;
} CatalogVerify;

typedef struct CatalogVerifyTable
{
	int32		pipeline_id;
	int64		request;
	int32		table_id;
	char	   *source_schema;
	char	   *source_table;
	char	   *target_schema;
	char	   *target_table;
	CatalogVerifyState state;
	char	   *reason;			/* SKIPPED, FAILED: why */
	int64		rows_source;
	int64		rows_target;
	int64		missing;
	int64		extra;
	int64		different;
	int64		unsettled;
	int32		chunks;
	int32		chunks_by_sum;	/* of these: equal by their sums */
	int64		rows_read;		/* at the source, with all columns */
	const char *method;			/* how it is compared; NULL: not known yet */
	CdcPosition position;		/* DONE: the applied position at which it was all compared */
	TimestampTz started_at;
	TimestampTz finished_at;
} CatalogVerifyTable;

typedef struct CatalogVerifyDifference
{
	int32		pipeline_id;
	int64		request;
	int32		table_id;
	int64		number;			/* 1, 2, ... in the table */
	const char *kind;			/* missing, extra, different */
	List	   *key;			/* texts of the key's columns; without a key: a hash, and where a row is */
	List	   *columns;		/* names of the columns that differ; NIL for missing and extra */
	int64		rows;			/* how many such rows: 1 unless the source table has no key */
} CatalogVerifyDifference;

/* Queue a request; fills in its number. */
extern void catalog_verify_insert(CatalogVerify *verify);

/* Requests of a pipeline, oldest first. */
extern List *catalog_verify_list(int32 pipeline_id);
extern CatalogVerify *catalog_verify_by_number(int64 request);	/* of any pipeline; NULL when there is none */

/* Oldest request that is not finished; NULL when there is none. */
extern CatalogVerify *catalog_verify_open(int32 pipeline_id);

/*
 * State of a request, unless it is finished already (then false). RUNNING counts
 * an attempt; attempts are forgotten with forget_attempts. error may be NULL.
 */
extern bool catalog_verify_set_state(int32 pipeline_id, int64 request, CatalogVerifyState state,
									 const UtilErrorInfo *error);
extern void catalog_verify_forget_attempts(int32 pipeline_id, int64 request);

/* Remove finished requests beyond the newest CATALOG_VERIFY_KEPT, with their results. */
extern void catalog_verify_prune(int32 pipeline_id);

/* Everything of a pipeline. */
extern void catalog_verify_delete(int32 pipeline_id);

/* Tables of a request, by table_id. */
extern List *catalog_verify_tables(int32 pipeline_id, int64 request);
extern void catalog_verify_table_insert(const CatalogVerifyTable *table);
extern void catalog_verify_table_update(const CatalogVerifyTable *table);	/* names stay as they are */

extern void catalog_verify_difference_insert(const CatalogVerifyDifference *difference);
extern List *catalog_verify_differences(int32 pipeline_id, int64 request);	/* by table_id and number */

/* Forget the differences of a table, because it is compared anew. */
extern void catalog_verify_differences_delete(int32 pipeline_id, int64 request, int32 table_id);

#endif							/* CDC_CATALOG_VERIFY_H */
