/*-------------------------------------------------------------------------
 *
 * catalog_export_copy.h
 *	  What is kept of the copies that an outgoing pipeline makes of its tables.
 *
 * NOTES
 *	  export_table says how far each table is, export_chunk what came on top of
 *	  that: a chunk's row is written before the sink may have the chunk for good,
 *	  and goes into the table's row when the sink has it and the stream has passed
 *	  the point of the log where it was read. Chunks are numbered in the order in
 *	  which the sink gets them, over all tables of a pipeline.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CATALOG_EXPORT_COPY_H
#define CDC_CATALOG_EXPORT_COPY_H

#include "postgres.h"
#include "access/xlogdefs.h"
#include "nodes/pg_list.h"
#include "utils/timestamp.h"

#include "catalog/catalog.h"

typedef enum CatalogExportTableState
{
	CATALOG_EXPORT_SNAPSHOT,
	CATALOG_EXPORT_STREAMING,
	CATALOG_EXPORT_STOPPED,		/* its changes are left out; until a copy of it is asked for */
	CATALOG_EXPORT_REMOVED		/* no longer meant by the pipeline's patterns */
} CatalogExportTableState;

extern const char *catalog_export_table_state_name(CatalogExportTableState state);

typedef struct CatalogExportTable
{
	int32		pipeline_id;
	int32		table_id;
	Oid			relid;
	char	   *schema;			/* names when it was last looked at */
	char	   *name;
	CatalogExportTableState state;
	char	   *signature;		/* of the key that last_key is of; NULL: nothing was copied */
	List	   *last_key;		/* char *, by the types' output functions; NIL: nothing was copied, or all */
	int64		rows_copied;
	int32		chunks;
	int32		copies_asked;
	int32		copies_begun;
	TimestampTz started_at;
	TimestampTz finished_at;	/* 0: not yet */
	XLogRecPtr	stop_end_lsn;	/* end of the transaction that it stopped in; changes from stop_lsn on are left out of that, and all of later ones */
	XLogRecPtr	stop_lsn;
	CatalogError stop_error;	/* when read */
	TimestampTz stopped_at;		/* 0: not stopped */
} CatalogExportTable;

extern List *catalog_export_table_list(int32 pipeline_id);

/* Fills table_id. */
extern void catalog_export_table_insert(CatalogExportTable *table);
extern void catalog_export_table_update(const CatalogExportTable *table);
extern void catalog_export_table_delete(int32 pipeline_id, int32 table_id);

/*
 * A table stops at that place in the log: its row is written, or made. A copy that was asked for before is no longer.
 */
extern void catalog_export_table_stop(int32 pipeline_id, Oid relid, XLogRecPtr end_lsn, XLogRecPtr lsn, const UtilErrorInfo *error);

/* A copy of a table is to be made, again when it was made before; the row may not be there yet. */
extern void catalog_export_table_ask(int32 pipeline_id, Oid relid);

/*
 * The same for all outgoing pipelines that ship what comes in to the table: its
 * rows became others by what the log does not have as changes of rows.
 */
extern void catalog_export_table_ask_all(Oid relid);

typedef enum CatalogExportChunkKind
{
	CATALOG_EXPORT_RANGE,		/* from where the one before it ended up to last_key; NIL: to the end */
	CATALOG_EXPORT_ROW,			/* the row with the key last_key, once more */
	CATALOG_EXPORT_ANEW,		/* the copy begins anew */
	CATALOG_EXPORT_GONE,		/* the table is no more, or no more one to be shipped */
	CATALOG_EXPORT_LETTERS		/* dead letters that are shipped again; of no table */
} CatalogExportChunkKind;

typedef struct CatalogExportChunk
{
	int32		pipeline_id;
	int32		chunk_no;
	int32		table_id;
	CatalogExportChunkKind kind;
	char	   *signature;
	List	   *last_key;
	char	   *snapshot;		/* text of a pg_snapshot; NULL: it saw nothing */
	XLogRecPtr	lsn;			/* transactions that it saw and that come later end before it */
	int64		rows;
	int32		copies_begun;	/* ANEW: of the table, from then on */
} CatalogExportChunk;

extern List *catalog_export_chunk_list(int32 pipeline_id);	/* by number */
extern void catalog_export_chunk_insert(const CatalogExportChunk *chunk);
extern void catalog_export_chunk_delete(int32 pipeline_id, int32 chunk_no);

/* Do the patterns mean a table, or one that it is a partition of: a partition may be shipped under either name. */
extern bool catalog_export_means(List *patterns, Oid relid);

/* Tables whose changes can be decoded, as they are logged and have rows of their own: their OIDs, ascending. */
extern List *catalog_export_candidates(void);

/* Those of them that the patterns mean, by the catalogs of this moment. */
extern List *catalog_export_relations(List *patterns);

#endif							/* CDC_CATALOG_EXPORT_COPY_H */
