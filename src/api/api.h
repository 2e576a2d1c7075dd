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

#include "catalog/catalog.h"

/* in api_pipeline.c */

/* May the current role see that pipeline (it has the owner's privileges, or is in pg_monitor)? */
extern bool api_may_see(const CatalogPipeline *pipeline);

/* ereport(ERROR) that there is no such pipeline; hint may be NULL. */
extern _Noreturn void api_no_pipeline(const char *name, const char *hint);

/* in api_check.c */

/* OID of a cdc_mysql server that the current role may use; throws otherwise. */
extern Oid	api_source_server(const char *name);

/* Throws when the role has no user mapping for the server, nor PUBLIC. */
extern void api_check_user_mapping(Oid serverid, const char *server_name, Oid role);

#endif							/* CDC_API_H */
