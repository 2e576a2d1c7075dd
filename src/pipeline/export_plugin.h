/*-------------------------------------------------------------------------
 *
 * export_plugin.h
 *	  What an outgoing pipeline asks of the output plugin.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_EXPORT_PLUGIN_H
#define CDC_EXPORT_PLUGIN_H

#include "postgres.h"
#include "nodes/pg_list.h"

#include "catalog/catalog.h"

/* The plugin's options (DefElem) in CurrentMemoryContext: the pipeline's tables, and what it was given of the options that both have. */
extern List *export_plugin_options(const CatalogPipeline *pipeline);

#endif							/* CDC_EXPORT_PLUGIN_H */
