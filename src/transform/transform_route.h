/*-------------------------------------------------------------------------
 *
 * transform_route.h
 *	  Option routes: which schema and table a source table goes to.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_TRANSFORM_ROUTE_H
#define CDC_TRANSFORM_ROUTE_H

#include "postgres.h"

#include "nodes/pg_list.h"

#include "catalog/catalog.h"

/* The routes of a pipeline: its option, and its target schema for what the option says nothing of. */
typedef struct TransformRoutes TransformRoutes;

/* Read them, palloc'd. Throws for an option that is not valid. */
extern TransformRoutes *transform_routes_read(const CatalogPipeline *pipeline);

/* The same from the option's text (NULL: not given), for whoever has no pipeline; target_schema NULL: the source's. */
extern TransformRoutes *transform_routes_parse(const char *json, const char *target_schema);

/*
 * Where a source table goes (all names in the database's encoding, palloc'd). Names that PostgreSQL cannot hold are cut and
 * end with a hash of the whole; *is_cut tells (may be NULL). False when a name would be empty, or the schema is one of the
 * system's: nothing can go there. Needs no transaction.
 */
extern bool transform_route_target(const TransformRoutes *routes, const char *source_schema, const char *source_table,
								   char **target_schema, char **target_table, bool *is_cut);

/* May other tables go to the same target as this one, says its route? */
extern bool transform_route_merges(const TransformRoutes *routes, const char *source_schema, const char *source_table);

/* Schemas that are written in the routes without a "$", List of char *: they have to be there, or to be made. */
extern List *transform_route_schemas(const TransformRoutes *routes);

/* Has the pipeline any? */
extern bool transform_has_routes(const TransformRoutes *routes);

#endif							/* CDC_TRANSFORM_ROUTE_H */
