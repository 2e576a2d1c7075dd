/*-------------------------------------------------------------------------
 *
 * budget.h
 *	  What a pipeline takes of the server's limited numbers, and what is left.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_BUDGET_H
#define CDC_BUDGET_H

#include "postgres.h"

#include "catalog/catalog.h"

typedef enum BudgetKind
{
	BUDGET_WORKERS,				/* max_worker_processes */
	BUDGET_ORIGINS,				/* max_replication_slots, from PostgreSQL 18 on max_active_replication_origins */
	BUDGET_PIPELINES,			/* cdc_bridge.max_pipelines */
	BUDGET_SLOTS				/* max_replication_slots */
} BudgetKind;

#define BUDGET_KINDS 4

typedef struct Budget
{
	const char *setting;
	int			limit;
	int			used;			/* by others than this pipeline */
	int			needed;			/* by this pipeline, running ones included; 0: it has no use for it */
	int			planned;		/* by all pipelines of this database that should run, when all copy; 0: not told */
} Budget;

/* Workers that write, each with an origin, of a pipeline that copies with as many as it may. */
extern int	budget_workers_of(const CatalogPipeline *pipeline);

/*
 * How it stands now, in a transaction and with the library preloaded. What
 * others use may change at any time: exact is only what happens when a worker starts.
 */
extern void budget_read(BudgetKind kind, int32 pipeline_id, Budget *budget);

static inline bool
budget_is_short(const Budget *budget)
{
	return budget->used + budget->needed > budget->limit;
}

/* Sentences for users, palloc'd: how it stands, and the statement that helps. */
extern char *budget_detail(const Budget *budget);
extern char *budget_hint(const Budget *budget);

#endif							/* CDC_BUDGET_H */
