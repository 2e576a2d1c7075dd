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

/* in api_check.c */

/* OID of a cdc_mysql server that the current role may use; throws otherwise. */
extern Oid	api_source_server(const char *name);

/* Throws when the role has no user mapping for the server, nor PUBLIC. */
extern void api_check_user_mapping(Oid serverid, const char *server_name, Oid role);

#endif							/* CDC_API_H */
