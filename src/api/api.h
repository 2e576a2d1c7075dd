/*-------------------------------------------------------------------------
 *
 * api.h
 *	  What the SQL functions share: who may do what, and finding by name.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_API_H
#define CDC_API_H

#include "postgres.h"
#include "fmgr.h"

#include "catalog/catalog.h"
#include "decode/decode_reader.h"

/* in api_pipeline.c */

/* May the current role see that pipeline (it has the owner's privileges, or is in pg_monitor)? */
extern bool api_may_see(const CatalogPipeline *pipeline);

/* ereport(ERROR) that there is no such pipeline; hint may be NULL. */
extern _Noreturn void api_no_pipeline(const char *name, const char *hint);

/*
 * The pipeline that argument 0 names, which the caller must own: locked against being dropped, and as it is then.
 * Throws when there is none.
 */
extern CatalogPipeline *api_lock_pipeline(FunctionCallInfo fcinfo);

/* Throws when it is no pattern "schema.table", or one that leaves tables out ('!') where that makes no sense. */
extern void api_check_table_pattern(const char *pattern, bool may_exclude);

/* Throws when the owner could not make tables where those of that pattern go, as far as that is known. */
extern void api_check_pattern_target(const CatalogPipeline *pipeline, const char *pattern);

/*
 * Should it run, and waits for cdc_start_pipeline() because the server was started with cdc_bridge.autostart off? Shown as
 * a state of its own.
 */
extern bool api_pipeline_is_waiting(const CatalogPipeline *pipeline);
#define API_STATE_WAITING "waiting"

/* ereport(ERROR) unless the current role has the privileges of the pipeline's owner. */
extern void api_check_owner(const CatalogPipeline *pipeline);

/*
 * Lock an existing pipeline against being dropped, check that the current role may change it, and read it as it is then;
 * NULL when there is none of that name. Workers hold the same kind of lock.
 */
extern CatalogPipeline *api_lock_for_change(const char *name);

/* Arguments of SQL functions: text, NULL for SQL NULL; the pipeline's name (argument 0), never NULL. */
extern char *api_text_arg(FunctionCallInfo fcinfo, int n);
extern char *api_name_arg(FunctionCallInfo fcinfo);

/*
 * ... and arrays, of text or of bigint (type: TEXTOID or INT8OID), where NULL stands for all there are: List of char *, NIL for SQL NULL.
 * Throws when the array is empty or has an element that is null; what is the argument's name, for the message.
 */
extern List *api_list_arg(FunctionCallInfo fcinfo, int n, Oid type, const char *what);

/* Throws when the pipeline's owner could not make tables where they go. */
extern void api_check_targets(const CatalogPipeline *pipeline);

/* Throws for the first option that is unknown or has a bad value; only options (may be 0) and sink are looked at. */
extern void api_check_options(const CatalogPipeline *pipeline);

/* Throws unless there is a source or a sink, and it is one server. */
extern void api_check_sides(const CatalogPipeline *pipeline);

/* Throws for an outgoing pipeline: function is for those that have a source. */
extern void api_check_incoming(const CatalogPipeline *pipeline, const char *function);

/* in api_export.c */

/* Throws unless the sink is a server of a kind that is one, and the pipeline's owner may use it. */
extern void api_check_sink(const CatalogPipeline *pipeline);

/* Throws when a table that an outgoing pipeline would ship now cannot be, or may not be read by its owner. */
extern void api_check_export_tables(const CatalogPipeline *pipeline);

/* In api_export_hold.c: the transaction that keeps the slot from letting the log go, and what to do; NULL when none does for long. */
extern char *api_export_held_by(const DecodeSlot *slot, char **hint);

/*
 * In api_wait.c, for procedures that wait. api_wait_begin throws inside a transaction block, for a procedure of that name;
 * what is allocated after it outlives the transactions that end while it waits. api_wait_until looks until look returns
 * true, which throws when that cannot come any more, or when the deadline has passed (argument timeout_arg; 0: none), and
 * holds neither a snapshot nor a lock between two looks.
 */
typedef bool (*ApiLook) (const void *what, TimestampTz deadline);
extern void api_wait_begin(FunctionCallInfo fcinfo, const char *procedure);
extern void api_wait_until(FunctionCallInfo fcinfo, int timeout_arg, ApiLook look, const void *what);

/* in api_check.c */

/* OID of a cdc_mysql server that the role may use; throws otherwise. */
extern Oid	api_source_server(const char *name, Oid role);

/* Throws when the role has no user mapping for the server, nor PUBLIC. */
extern void api_check_user_mapping(Oid serverid, const char *server_name, Oid role);

#endif							/* CDC_API_H */
