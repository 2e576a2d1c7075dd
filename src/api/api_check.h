/*-------------------------------------------------------------------------
 *
 * api_check.h
 *	  What cdc_check and cdc_check_pipeline share.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_API_CHECK_H
#define CDC_API_CHECK_H

#include "postgres.h"
#include "funcapi.h"
#include "nodes/execnodes.h"

#include "schema/type_map.h"
#include "source/source.h"

/* Add a line to a result of columns check, status, detail, hint. */
extern void api_check_put_line(ReturnSetInfo *rsinfo, const CdcCheckLine *line);
extern void api_check_put(ReturnSetInfo *rsinfo, const char *check, const char *status,
						  const char *detail, const char *hint);

/* One part of a check: a List of CdcCheckLine. It may throw. */
typedef List *(*ApiCheckStep) (void *arg);

/*
 * Run a step in a subtransaction that is undone afterwards; an error becomes a
 * line, under the name of "check", unless it was a wish to stop.
 */
extern List *api_check_try(const char *check, ApiCheckStep step, void *arg);

/* A step: what the source says of itself. */
typedef struct ApiCheckSource
{
	Oid			serverid;
	Oid			role;			/* whose user mapping */
	int32		pipeline_id;	/* 0: none yet */
	CdcSourceWant want;			/* NULL: all tables */
	void	   *want_arg;
} ApiCheckSource;

extern List *api_check_ask_source(void *arg);

/* What keeps the pipeline's owner from writing the target of a table: a List of CdcCheckLine, NIL when nothing does. */
extern List *api_check_target(const CatalogPipeline *pipeline, const CatalogTable *table);

/* Can workers connect as that role? */
extern void api_check_role(ReturnSetInfo *rsinfo, Oid role);

/* In api_check_transforms.c: lines on the option transforms of an incoming pipeline; NIL when it has none. */
extern List *api_check_transforms(const CatalogPipeline *pipeline, Oid serverid, const SchemaTypeOptions *options);

/* In api_check_standby.c: copies of slots on standbys. */
extern void api_check_standbys(ReturnSetInfo *rsinfo);

#endif							/* CDC_API_CHECK_H */
