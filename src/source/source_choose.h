/*-------------------------------------------------------------------------
 *
 * source_choose.h
 *	  Which of the servers behind a SERVER a pipeline goes on with, and where.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SOURCE_CHOOSE_H
#define CDC_SOURCE_CHOOSE_H

#include "postgres.h"
#include "nodes/pg_list.h"

#include "catalog/catalog.h"
#include "mysql/mysql_options.h"

/*
 * Find the server that the durable position belongs to among the hosts, or another one that goes on where it ends, and have
 * endpoint->first say which host that is. False: the position holds as it is. True: *move, in CurrentMemoryContext. Throws when
 * no host can be followed: of class 08 when that may pass, else CDC_ERRCODE_SOURCE_REPLACED or _POSITION_LOST. Waits
 * for the followed server as long as endpoint->failover_delay says. Call outside a transaction.
 */
extern bool source_choose(MysqlEndpoint *endpoint, const CatalogPipeline *pipeline, const CatalogPosition *durable,
						  CatalogMove *move);

/* For a check: a line for each host (List of CdcCheckLine) that says whether the pipeline could go on there from that position. */
extern List *source_choose_check(const MysqlEndpoint *endpoint, const CatalogPipeline *pipeline, const CatalogPosition *durable);

#endif							/* CDC_SOURCE_CHOOSE_H */
