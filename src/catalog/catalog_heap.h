/*-------------------------------------------------------------------------
 *
 * catalog_heap.h
 *	  Reading and writing the cdc_bridge.* tables at heap level.
 *
 * NOTES
 *	  For the files of catalog/ alone. OIDs of tables and indexes are looked up
 *	  once per process and forgotten when one of the tables is changed or
 *	  dropped. A scan opens the table, takes a snapshot afterwards, and walks the
 *	  named index: so it sees what was committed before the table (and whatever
 *	  the caller locked earlier) was locked.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CATALOG_HEAP_H
#define CDC_CATALOG_HEAP_H

#include "postgres.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/skey.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

#include "catalog/catalog.h"

typedef enum CatalogRelation
{
	CATALOG_REL_PIPELINE,
	CATALOG_REL_PIPELINE_STATE,
	CATALOG_REL_PIPELINE_TABLE,
	CATALOG_REL_TABLE_STATE,
	CATALOG_REL_SNAPSHOT_CHUNK,
	CATALOG_REL_SNAPSHOT_DELETED,
	CATALOG_REL_SNAPSHOT_REREAD,
	CATALOG_REL_PREPARED_TRANSACTION,
	CATALOG_REL_PREPARED_CHANGE,
	CATALOG_REL_DEAD_LETTER,
	CATALOG_REL_SCHEMA_HISTORY,
	CATALOG_REL_DEAD_LETTER_REQUEST,
	CATALOG_REL_TARGET_INDEX,
	CATALOG_REL_SKIPPED_TRANSACTION,
	CATALOG_REL_VERIFY_REQUEST,
	CATALOG_REL_VERIFY_TABLE,
	CATALOG_REL_VERIFY_DIFFERENCE,
	CATALOG_REL_EXPORT_STATE,
	CATALOG_REL_EXPORT_TABLE,
	CATALOG_REL_EXPORT_CHUNK
} CatalogRelation;

#define CATALOG_RELATIONS 20

/* Column numbers, as in the install script. */
enum
{
	Anum_pipeline_id = 1,
	Anum_pipeline_name,
	Anum_pipeline_owner,
	Anum_pipeline_source,
	Anum_pipeline_sink,
	Anum_pipeline_tables,
	Anum_pipeline_target_schema,
	Anum_pipeline_options,
	Anum_pipeline_created_at,
	Natts_pipeline = Anum_pipeline_created_at
};

enum
{
	Anum_pipeline_state_id = 1,
	Anum_pipeline_state_database,
	Anum_pipeline_state_enabled,
	Anum_pipeline_state_state,
	Anum_pipeline_state_last_error,
	Anum_pipeline_state_last_error_sqlstate,
	Anum_pipeline_state_last_error_detail,
	Anum_pipeline_state_last_error_hint,
	Anum_pipeline_state_last_error_position,
	Anum_pipeline_state_last_error_at,
	Anum_pipeline_state_failed_transaction,
	Anum_pipeline_state_snapshot_mark_file,
	Anum_pipeline_state_snapshot_mark_offset,
	Anum_pipeline_state_snapshot_mark_gtids,
	Anum_pipeline_state_tables_asked,
	Anum_pipeline_state_tables_done,
	Anum_pipeline_state_last_left,
	Anum_pipeline_state_server_start,
	Anum_pipeline_state_fingerprint,
	Natts_pipeline_state = Anum_pipeline_state_fingerprint
};

enum
{
	Anum_pipeline_table_pipeline_id = 1,
	Anum_pipeline_table_table_id,
	Anum_pipeline_table_source_schema,
	Anum_pipeline_table_source_table,
	Anum_pipeline_table_target_schema,
	Anum_pipeline_table_target_table,
	Anum_pipeline_table_complete,
	Anum_pipeline_table_made,
	Natts_pipeline_table = Anum_pipeline_table_made
};

enum
{
	Anum_table_state_pipeline_id = 1,
	Anum_table_state_table_id,
	Anum_table_state_state,
	Anum_table_state_generation,
	Anum_table_state_target,
	Anum_table_state_definition,
	Anum_table_state_high_file,
	Anum_table_state_high_offset,
	Anum_table_state_stop_file,
	Anum_table_state_stop_offset,
	Anum_table_state_row_estimate,
	Anum_table_state_rows_copied,
	Anum_table_state_chunks,
	Anum_table_state_last_error,
	Anum_table_state_last_error_sqlstate,
	Anum_table_state_last_error_detail,
	Anum_table_state_last_error_hint,
	Anum_table_state_last_error_at,
	Anum_table_state_snapshot_started_at,
	Anum_table_state_snapshot_finished_at,
	Anum_table_state_resync_wanted,
	Anum_table_state_swap_into,
	Anum_table_state_join_file,
	Anum_table_state_join_offset,
	Anum_table_state_join_gtids,
	Anum_table_state_chunks_allowed,
	Anum_table_state_mark_file,
	Anum_table_state_mark_offset,
	Anum_table_state_mark_gtids,
	Anum_table_state_own_rows,
	Anum_table_state_keeps_rows,
	Natts_table_state = Anum_table_state_keeps_rows
};

enum
{
	Anum_snapshot_chunk_pipeline_id = 1,
	Anum_snapshot_chunk_table_id,
	Anum_snapshot_chunk_generation,
	Anum_snapshot_chunk_chunk_no,
	Anum_snapshot_chunk_lower_key,
	Anum_snapshot_chunk_upper_key,
	Anum_snapshot_chunk_state,
	Anum_snapshot_chunk_worker,
	Anum_snapshot_chunk_rows,
	Anum_snapshot_chunk_bytes,
	Anum_snapshot_chunk_chunks,
	Natts_snapshot_chunk = Anum_snapshot_chunk_chunks
};

enum
{
	Anum_snapshot_deleted_pipeline_id = 1,
	Anum_snapshot_deleted_table_id,
	Anum_snapshot_deleted_key,
	Natts_snapshot_deleted = Anum_snapshot_deleted_key
};

enum
{
	Anum_snapshot_reread_pipeline_id = 1,
	Anum_snapshot_reread_table_id,
	Anum_snapshot_reread_key,
	Anum_snapshot_reread_condition,
	Anum_snapshot_reread_is_read,
	Anum_snapshot_reread_file,
	Anum_snapshot_reread_offset,
	Anum_snapshot_reread_gtid,
	Natts_snapshot_reread = Anum_snapshot_reread_gtid
};

enum
{
	Anum_prepared_transaction_pipeline_id = 1,
	Anum_prepared_transaction_prepared_id,
	Anum_prepared_transaction_xid,
	Anum_prepared_transaction_position,
	Anum_prepared_transaction_prepared_at,
	Anum_prepared_transaction_source_tables,
	Anum_prepared_transaction_last_table_id,
	Anum_prepared_transaction_changes,
	Anum_prepared_transaction_bytes,
	Anum_prepared_transaction_pieces,
	Natts_prepared_transaction = Anum_prepared_transaction_pieces
};

enum
{
	Anum_prepared_change_pipeline_id = 1,
	Anum_prepared_change_prepared_id,
	Anum_prepared_change_piece_no,
	Anum_prepared_change_data,
	Natts_prepared_change = Anum_prepared_change_data
};

enum
{
	Anum_skipped_transaction_pipeline_id = 1,
	Anum_skipped_transaction_skip_id,
	Anum_skipped_transaction_position,
	Anum_skipped_transaction_gtid,
	Anum_skipped_transaction_requested_by,
	Anum_skipped_transaction_requested_at,
	Anum_skipped_transaction_skipped_at,
	Anum_skipped_transaction_skipped_position,
	Anum_skipped_transaction_skipped_changes,
	Natts_skipped_transaction = Anum_skipped_transaction_skipped_changes
};

enum
{
	Anum_dead_letter_pipeline_id = 1,
	Anum_dead_letter_id,
	Anum_dead_letter_table_id,
	Anum_dead_letter_source_schema,
	Anum_dead_letter_source_table,
	Anum_dead_letter_state,
	Anum_dead_letter_file,
	Anum_dead_letter_offset,
	Anum_dead_letter_gtid,
	Anum_dead_letter_action,
	Anum_dead_letter_operation,
	Anum_dead_letter_before,
	Anum_dead_letter_after,
	Anum_dead_letter_error,
	Anum_dead_letter_error_sqlstate,
	Anum_dead_letter_error_detail,
	Anum_dead_letter_error_hint,
	Anum_dead_letter_changed_at,
	Anum_dead_letter_created_at,
	Anum_dead_letter_attempts,
	Anum_dead_letter_last_attempt_at,
	Anum_dead_letter_settled_at,
	Anum_dead_letter_reason,
	Anum_dead_letter_request,
	Anum_dead_letter_newer,
	Anum_dead_letter_old_key,
	Anum_dead_letter_new_key,
	Anum_dead_letter_chunk_no,
	Anum_dead_letter_shape,
	Natts_dead_letter = Anum_dead_letter_shape
};

enum
{
	Anum_dead_letter_request_pipeline_id = 1,
	Anum_dead_letter_request_request,
	Anum_dead_letter_request_kind,
	Anum_dead_letter_request_tables,
	Anum_dead_letter_request_ids,
	Anum_dead_letter_request_reason,
	Anum_dead_letter_request_state,
	Anum_dead_letter_request_requested_by,
	Anum_dead_letter_request_requested_at,
	Anum_dead_letter_request_started_at,
	Anum_dead_letter_request_finished_at,
	Anum_dead_letter_request_last_id,
	Anum_dead_letter_request_attempts,
	Anum_dead_letter_request_settled,
	Anum_dead_letter_request_failed,
	Anum_dead_letter_request_left_alone,
	Natts_dead_letter_request = Anum_dead_letter_request_left_alone
};

enum
{
	Anum_schema_history_pipeline_id = 1,
	Anum_schema_history_change_no,
	Anum_schema_history_table_id,
	Anum_schema_history_source_schema,
	Anum_schema_history_source_table,
	Anum_schema_history_file,
	Anum_schema_history_offset,
	Anum_schema_history_gtid,
	Anum_schema_history_source_time,
	Anum_schema_history_kinds,
	Anum_schema_history_statement,
	Anum_schema_history_commands,
	Anum_schema_history_result,
	Anum_schema_history_error,
	Anum_schema_history_error_sqlstate,
	Anum_schema_history_error_detail,
	Anum_schema_history_error_hint,
	Anum_schema_history_created_at,
	Natts_schema_history = Anum_schema_history_created_at
};

enum
{
	Anum_verify_request_pipeline_id = 1,
	Anum_verify_request_request,
	Anum_verify_request_tables,
	Anum_verify_request_mode,
	Anum_verify_request_state,
	Anum_verify_request_requested_by,
	Anum_verify_request_requested_at,
	Anum_verify_request_started_at,
	Anum_verify_request_finished_at,
	Anum_verify_request_attempts,
	Anum_verify_request_last_error,
	Anum_verify_request_last_error_sqlstate,
	Anum_verify_request_last_error_detail,
	Anum_verify_request_last_error_hint,
	Natts_verify_request = Anum_verify_request_last_error_hint
};

enum
{
	Anum_verify_table_pipeline_id = 1,
	Anum_verify_table_request,
	Anum_verify_table_table_id,
	Anum_verify_table_source_schema,
	Anum_verify_table_source_table,
	Anum_verify_table_target_schema,
	Anum_verify_table_target_table,
	Anum_verify_table_state,
	Anum_verify_table_reason,
	Anum_verify_table_rows_source,
	Anum_verify_table_rows_target,
	Anum_verify_table_missing,
	Anum_verify_table_extra,
	Anum_verify_table_different,
	Anum_verify_table_unsettled,
	Anum_verify_table_chunks,
	Anum_verify_table_chunks_by_sum,
	Anum_verify_table_rows_read,
	Anum_verify_table_method,
	Anum_verify_table_position_file,
	Anum_verify_table_position_offset,
	Anum_verify_table_started_at,
	Anum_verify_table_finished_at,
	Natts_verify_table = Anum_verify_table_finished_at
};

enum
{
	Anum_verify_difference_pipeline_id = 1,
	Anum_verify_difference_request,
	Anum_verify_difference_table_id,
	Anum_verify_difference_number,
	Anum_verify_difference_kind,
	Anum_verify_difference_key,
	Anum_verify_difference_columns,
	Anum_verify_difference_rows,
	Natts_verify_difference = Anum_verify_difference_rows
};

enum
{
	Anum_export_state_pipeline_id = 1,
	Anum_export_state_slot_name,
	Anum_export_state_system_identifier,
	Anum_export_state_timeline,
	Anum_export_state_start_lsn,
	Anum_export_state_confirmed_lsn,
	Anum_export_state_sink_lsn,
	Anum_export_state_is_begun,
	Anum_export_state_created_at,
	Anum_export_state_tables,
	Anum_export_state_last_chunk,
	Natts_export_state = Anum_export_state_last_chunk
};

enum
{
	Anum_export_table_pipeline_id = 1,
	Anum_export_table_table_id,
	Anum_export_table_relid,
	Anum_export_table_table_schema,
	Anum_export_table_table_name,
	Anum_export_table_state,
	Anum_export_table_signature,
	Anum_export_table_last_key,
	Anum_export_table_rows_copied,
	Anum_export_table_chunks,
	Anum_export_table_copies_asked,
	Anum_export_table_copies_begun,
	Anum_export_table_started_at,
	Anum_export_table_finished_at,
	Anum_export_table_stop_end_lsn,
	Anum_export_table_stop_lsn,
	Anum_export_table_last_error,	/* and its SQLSTATE, detail and hint */
	Anum_export_table_stopped_at = Anum_export_table_last_error + 4,
	Natts_export_table = Anum_export_table_stopped_at
};

enum
{
	Anum_export_chunk_pipeline_id = 1,
	Anum_export_chunk_chunk_no,
	Anum_export_chunk_table_id,
	Anum_export_chunk_kind,
	Anum_export_chunk_signature,
	Anum_export_chunk_last_key,
	Anum_export_chunk_snapshot,
	Anum_export_chunk_lsn,
	Anum_export_chunk_row_count,
	Anum_export_chunk_copies_begun,
	Natts_export_chunk = Anum_export_chunk_copies_begun
};

/* Next number of a sequence in schema cdc_bridge. */
extern int64 catalog_next_id(const char *sequence);

enum
{
	Anum_target_index_pipeline_id = 1,
	Anum_target_index_table_id,
	Anum_target_index_index_no,
	Anum_target_index_source_index,
	Anum_target_index_is_unique,
	Anum_target_index_target_index,
	Anum_target_index_statement,
	Anum_target_index_state,
	Anum_target_index_reason,
	Anum_target_index_last_error,
	Anum_target_index_last_error_sqlstate,
	Anum_target_index_last_error_detail,
	Anum_target_index_last_error_hint,
	Anum_target_index_started_at,
	Anum_target_index_finished_at,
	Natts_target_index = Anum_target_index_finished_at
};

/* OID of the table; throws when the extension is not in this database. */
extern Oid	catalog_relation_oid(CatalogRelation which);
extern Oid	catalog_namespace_oid(void);
extern Oid	catalog_extension_oid(void);

/* A scan by index. Results of catalog_scan_next live until the following call. */
typedef struct CatalogScan
{
	Relation	rel;
	Relation	index;			/* only when ordered */
	LOCKMODE	mode;
	Snapshot	snapshot;
	SysScanDesc scan;
} CatalogScan;

/* The first nkeys columns of the primary key equal keys (integers). Locks the table in mode. */
extern void catalog_scan_begin(CatalogScan *scan, CatalogRelation which, LOCKMODE mode,
							   int nkeys, const int32 *keys);

/* The same with keys of the caller's, on the index with that name. */
extern void catalog_scan_begin_keys(CatalogScan *scan, CatalogRelation which, LOCKMODE mode,
									const char *index_name, int nkeys, ScanKey keys);

/* In the order of the primary key; catalog_scan_next walks it in that direction. */
extern void catalog_scan_begin_ordered(CatalogScan *scan, CatalogRelation which, LOCKMODE mode,
									   int nkeys, const int32 *keys);

/* In that order with keys of the caller's, on the primary key. */
extern void catalog_scan_begin_ordered_keys(CatalogScan *scan, CatalogRelation which, LOCKMODE mode, int nkeys, ScanKey keys);
extern HeapTuple catalog_scan_next(CatalogScan *scan);
extern HeapTuple catalog_scan_next_ordered(CatalogScan *scan, ScanDirection direction);

/* Gives up an AccessShareLock at once, keeps stronger ones to the end of the transaction. */
extern void catalog_scan_end(CatalogScan *scan);

/* The highest id that a pipeline's rows have, where the primary key is (pipeline, id); 0 when there are none. */
extern int32 catalog_last_id(CatalogRelation which, AttrNumber id, int32 pipeline_id);

/* Write through an open table, maintain its indexes, make it visible to the commands that follow. */
extern void catalog_tuple_insert(Relation rel, Datum *values, bool *nulls);
extern void catalog_tuple_update(Relation rel, HeapTuple old, Datum *values, bool *nulls, bool *replaces);
extern void catalog_tuple_delete(Relation rel, HeapTuple tuple);

/* Delete all rows whose primary key begins with those integers. */
extern void catalog_delete_rows(CatalogRelation which, int nkeys, const int32 *keys);

/* Snapshot for a look at what is committed now; register it before use. */
extern Snapshot catalog_latest_snapshot(void);

/* Columns of a tuple; strings are palloc'd, NULL for SQL NULL. */
extern char *catalog_get_text(HeapTuple tuple, TupleDesc desc, int attnum);
extern int	catalog_get_word(HeapTuple tuple, TupleDesc desc, int attnum,
							 const char *const *words, int nwords);	/* number of the word; throws when it is none */
extern List *catalog_get_list(HeapTuple tuple, TupleDesc desc, int attnum);	/* of strings, from text[] without NULLs; NIL when NULL */
extern int64 catalog_get_int64(HeapTuple tuple, TupleDesc desc, int attnum);
extern int32 catalog_get_int32(HeapTuple tuple, TupleDesc desc, int attnum);
extern bool catalog_get_bool(HeapTuple tuple, TupleDesc desc, int attnum);
extern Oid	catalog_get_oid(HeapTuple tuple, TupleDesc desc, int attnum);
extern Datum catalog_get_varlena(HeapTuple tuple, TupleDesc desc, int attnum);	/* detoasted copy; 0 when NULL */
extern TimestampTz catalog_get_time(HeapTuple tuple, TupleDesc desc, int attnum);	/* 0 when NULL */
extern void catalog_get_position(HeapTuple tuple, TupleDesc desc, int file_attnum, CdcPosition *position);	/* offset follows file */

/* Fill values and nulls (indexed by attnum - 1) for a tuple to be written. */
extern void catalog_set_text(Datum *values, bool *nulls, int attnum, const char *text);
extern void catalog_set_position(Datum *values, bool *nulls, int file_attnum, const CdcPosition *position);

/* message, sqlstate, detail, hint stand in that order from first_attnum on. */
extern void catalog_set_error(Datum *values, bool *nulls, int first_attnum, const UtilErrorInfo *error);
extern void catalog_get_error(HeapTuple tuple, TupleDesc desc, int first_attnum, CatalogError *error);

/* catalog_position.c, for the rows of pipelines. */
extern void catalog_position_create(int32 pipeline_id);	/* the two tables, when they are not there */
extern void catalog_position_drop(int32 pipeline_id);

/* catalog_lock.c: lock the state of a pipeline to the end of the transaction. */
extern void catalog_lock_state(int32 pipeline_id);

#endif							/* CDC_CATALOG_HEAP_H */
