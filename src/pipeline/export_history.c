/*-------------------------------------------------------------------------
 *
 * export_history.c
 *	  What statements did to the tables of an outgoing pipeline, and what became
 *	  of it: rows of cdc_bridge.schema_history.
 *
 * NOTES
 *	  As dead letters (export_letter.c), rows wait in memory while the log is
 *	  decoded, and are written, durable, before the sink is flushed or the slot
 *	  hears of anything behind them; rows of transactions that come again are removed
 *	  at the start. A statement that stops its table is written together with that
 *	  stop, and does not come again.
 *
 *	  What is in a row that the history would not keep anyway need not wait.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "pipeline/export_history.h"
#include "pipeline/export_place.h"
#include "pipeline/export_transaction.h"
#include "util/util_error.h"

/* So many wait at most: the last ones of a transaction that changes more tables. */
#define WAITING_MAX 100000

/* One that waits; its texts are behind it. */
typedef struct Waiting
{
	slist_node	node;
	CatalogSchemaChange change;
} Waiting;

struct ExportHistory
{
	const Worker *worker;
	const CatalogChangeRules *rules;
	TimeLineID	timeline;
	MemoryContext context;		/* of those that wait */
	slist_head	waiting;
	slist_node *last;			/* NULL: none waits */
	int			count;
	int64		left_out;		/* more came than may wait */
};

ExportHistory *
export_history_open(const Worker *worker, XLogRecPtr start, TimeLineID timeline, const CatalogChangeRules *rules)
{
	ExportHistory *history = palloc0(sizeof(ExportHistory));

	history->worker = worker;
	history->rules = rules;
	history->timeline = timeline;
	history->context = AllocSetContextCreate(CurrentMemoryContext, "cdc schema history", ALLOCSET_DEFAULT_SIZES);
	slist_init(&history->waiting);
	export_transaction_begin(true);
	catalog_history_delete_from(worker->pipeline_id, start);
	export_transaction_end(true, worker->cxt);
	return history;
}

static void
set_change(const ExportHistory *history, const DecodeStatement *statement, CatalogSchemaChange *change)
{
	change->pipeline_id = history->worker->pipeline_id;
	change->source_schema = pstrdup(statement->schema);
	change->source_table = pstrdup(statement->name);
	export_log_place(statement->lsn, history->timeline, &change->position);
	change->gtid_text = psprintf("%X/%X", LSN_FORMAT_ARGS(statement->commit_lsn));
	change->source_time_us = statement->time_us;
	change->kinds = statement->kinds;
	change->statement = pstrdup(statement->command);
	change->result = statement->is_shipped ? CATALOG_CHANGE_APPLIED : CATALOG_CHANGE_IGNORED;
}

CatalogSchemaChange *
export_history_make(const ExportHistory *history, const DecodeStatement *statement)
{
	CatalogSchemaChange *change = palloc0(sizeof(CatalogSchemaChange));

	set_change(history, statement, change);
	return change;
}

static void
forget_first(ExportHistory *history)
{
	Waiting    *waiting = slist_container(Waiting, node, slist_pop_head_node(&history->waiting));

	pfree(waiting->change.source_schema);
	pfree(waiting->change.source_table);
	pfree(waiting->change.gtid_text);
	pfree(unconstify(char *, waiting->change.statement));
	pfree(waiting);
	if (--history->count == 0)
		history->last = NULL;
}

void
export_history_keep(ExportHistory *history, const DecodeStatement *statement)
{
	MemoryContext old_context = MemoryContextSwitchTo(history->context);
	Waiting    *waiting = palloc0(sizeof(Waiting));

	set_change(history, statement, &waiting->change);
	if (history->last == NULL)
		slist_push_head(&history->waiting, &waiting->node);
	else
		slist_insert_after(history->last, &waiting->node);
	history->last = &waiting->node;
	history->count++;
	MemoryContextSwitchTo(old_context);
	if (history->count > history->rules->max_rows)
		forget_first(history);
	else if (history->count > WAITING_MAX)
	{
		forget_first(history);
		history->left_out++;
	}
}

XLogRecPtr
export_history_write(ExportHistory *history)
{
	slist_iter	iter;

	if (history->count == 0)
		return InvalidXLogRecPtr;
	export_transaction_begin(true);
	slist_foreach(iter, &history->waiting)
	{
		CHECK_FOR_INTERRUPTS();
		catalog_history_insert(&slist_container(Waiting, node, iter.cur)->change, history->rules->max_rows);
	}
	export_transaction_end(true, history->worker->cxt);
	if (history->left_out > 0)
		ereport(LOG,
				(errmsg("pipeline \"%s\" has not written down " INT64_FORMAT " schema changes", history->worker->pipeline->name, history->left_out),
				 errdetail("One transaction made more than %d. All of them were shipped as the options want it.", WAITING_MAX)));
	slist_init(&history->waiting);
	history->last = NULL;
	history->count = 0;
	history->left_out = 0;
	MemoryContextReset(history->context);
	return XactLastCommitEnd;
}

void
export_history_write_stop(const ExportHistory *history, CatalogSchemaChange *change, const UtilErrorInfo *error)
{
	change->result = CATALOG_CHANGE_STOPPED;
	change->error = error;
	catalog_history_insert(change, history->rules->max_rows);
}
