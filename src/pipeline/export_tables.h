/*-------------------------------------------------------------------------
 *
 * export_tables.h
 *	  Which tables an outgoing pipeline ships.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_EXPORT_TABLES_H
#define CDC_EXPORT_TABLES_H

#include "postgres.h"
#include "nodes/pg_list.h"

#include "catalog/catalog.h"

/*
 * Tables, and leaves of partitioned ones, whose changes are logged and shipped by the pipeline's patterns: their OIDs,
 * ascending. Publications that it names are not looked at. In a transaction.
 */
extern List *export_tables(const CatalogPipeline *pipeline);

/* Are rows of partitions shipped under the name of their root? */
extern bool export_via_root(const CatalogPipeline *pipeline);

/* The table under whose name the changes of one are shipped. */
extern Oid	export_name_of(Oid relid, bool via_root);

#endif							/* CDC_EXPORT_TABLES_H */
