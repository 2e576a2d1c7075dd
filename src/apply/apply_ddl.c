/*-------------------------------------------------------------------------
 *
 * apply_ddl.c
 *	  Change targets in stream order: a step that needs them for itself.
 *
 * NOTES
 *	  The stream stands still until the step is done, since what comes after it
 *	  may depend on it. So it waits for its locks only a moment at a time: whoever
 *	  wants to use the table meanwhile would wait behind us. Between two tries the
 *	  tables' rows say who is in the way. apply_schema.c, which has more to do about
 *	  a try, waits by the same functions.
 *
 *	  What was open is committed before, so that the transaction holds the step
 *	  alone and can be undone without a rewind. It stays open afterwards: the
 *	  position behind the statement is committed with it, at once (commit_due).
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "apply/apply_private.h"
#include "util/util_lock.h"
#include "util/util_wait.h"

/* The pause after a try, doubling up to a limit. */
#define PAUSE_MS 200
#define PAUSE_MAX_MS 5000

/* Say at a table, and in the log, who uses its target; pids NULL: that is not known any more. */
static void
tell_of_table(Apply *apply, const ApplyTable *table, const char *pids)
{
	UtilErrorInfo info = {.sqlstate = ERRCODE_LOCK_NOT_AVAILABLE};

	info.message = psprintf("target of source table \"%s.%s\" waits to be altered", table->schema, table->name);
	info.detail = psprintf("%s%s. The stream of the whole pipeline waits for them.",
						   pids != NULL ? "Sessions that use it: " : "Other sessions use it", pids != NULL ? pids : "");
	info.hint = pstrdup("It is tried again by itself. Look at these in pg_stat_activity, and end transactions that are left open.");
	catalog_table_set_notice(apply->pipeline_id, table->table_id, &info);
	ereport(LOG,
			(errcode(info.sqlstate),
			 errmsg("%s", info.message),
			 errdetail("%s", info.detail),
			 errhint("%s", info.hint)));
}

/* Say who is in the way, unless that has been said. In a transaction of its own. */
static void
tell_holders(Apply *apply, ApplyDdlWait *wait)
{
	List	   *holders = NIL;
	StringInfoData all;
	ListCell   *lc;
	ListCell   *lp;

	heap_transaction_begin();
	MemoryContextSwitchTo(apply->change_cxt);
	PushActiveSnapshot(GetTransactionSnapshot());
	initStringInfo(&all);
	foreach(lc, wait->tables)
	{
		const ApplyTable *table = lfirst(lc);
		char	   *pids = util_lock_holders(table->target);

		holders = lappend(holders, pids);
		if (pids != NULL)
			appendStringInfo(&all, "%d: %s; ", table->table_id, pids);
	}
	if (wait->told == NULL || strcmp(wait->told, all.data) != 0)
	{
		forboth(lc, wait->tables, lp, holders)
		{
			if (lfirst(lp) != NULL || all.len == 0)
				tell_of_table(apply, lfirst(lc), lfirst(lp));
		}
		wait->told = all.data;
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(apply->change_cxt);
}

void
apply_ddl_await(Apply *apply, ApplyDdlWait *wait)
{
	const ApplyTable *table = linitial(wait->tables);
	const char *activity = pgstat_get_backend_current_activity(MyProcPid, false);
	char	   *before = pstrdup(activity ? activity : "");

	tell_holders(apply, wait);
	pgstat_report_activity(STATE_RUNNING, psprintf("pipeline %s waits to alter the target of table %s.%s", apply->pipeline_name,
												   table->schema, table->name));
	(void) util_wait(PGINVALID_SOCKET, Min(PAUSE_MS << Min(wait->tries, 10), PAUSE_MAX_MS), UTIL_WAIT_TARGET);
	wait->tries++;
	pgstat_report_activity(STATE_RUNNING, before);
}

/* Has another worker said that of the table, and ended before it got the lock? Only then has one that streams such a notice. */
static bool
has_old_notice(Apply *apply, const ApplyTable *table)
{
	const CatalogTable *now = catalog_table_by_id(apply->pipeline_id, table->table_id);

	return now != NULL && now->state == CATALOG_TABLE_STREAMING && !OidIsValid(now->swap_into) && !now->resync_wanted &&
		now->last_error.sqlstate != NULL && strcmp(now->last_error.sqlstate, unpack_sql_state(ERRCODE_LOCK_NOT_AVAILABLE)) == 0;
}

void
apply_ddl_got_locks(Apply *apply, const ApplyDdlWait *wait)
{
	ListCell   *lc;

	PushActiveSnapshot(GetTransactionSnapshot());
	foreach(lc, wait->tables)
	{
		const ApplyTable *table = lfirst(lc);

		if (wait->tries > 0 || has_old_notice(apply, table))
			catalog_table_set_notice(apply->pipeline_id, table->table_id, NULL);
	}
	PopActiveSnapshot();
}

MemoryContext
apply_ddl_try_context(Apply *apply)
{
	return AllocSetContextCreate(apply->change_cxt, "cdc apply try", ALLOCSET_DEFAULT_SIZES);
}

/* One try. Locks that the step does not get in time are an error; those of the catalog afterwards are waited for. */
static void
run_step(Apply *apply, MemoryContext cxt, ApplyDdlStep step, void *arg)
{
	apply_begin(apply);
	MemoryContextSwitchTo(cxt);
	util_lock_wait_briefly();
	PushActiveSnapshot(GetTransactionSnapshot());
	step(apply, arg);
	PopActiveSnapshot();
	util_lock_wait_long();
	MemoryContextSwitchTo(apply->change_cxt);
}

UtilErrorInfo *
apply_ddl_try(Apply *apply, List *tables, ApplyDdlStep step, void *arg)
{
	ApplyDdlWait wait = {.tables = tables};
	ErrorData  *volatile edata;

	Assert(!apply->in_txn);
	if (apply->open || apply->moved)
		apply_commit(apply);	/* only whole transactions are in it, and batches were written */
	for (;;)
	{
		MemoryContext cxt = apply_ddl_try_context(apply);

		edata = NULL;
		PG_TRY();
		{
			run_step(apply, cxt, step, arg);
			apply_ddl_got_locks(apply, &wait);
			apply->commit_due = true;
		}
		PG_CATCH();
		{
			MemoryContextSwitchTo(apply->change_cxt);
			edata = CopyErrorData();
			if (!util_lock_is_missed(edata->sqlerrcode) && !heap_error_is_tables_own(edata->sqlerrcode) &&
				ERRCODE_TO_CATEGORY(edata->sqlerrcode) != ERRCODE_DEPENDENT_PRIVILEGE_DESCRIPTORS_STILL_EXIST)
				PG_RE_THROW();
			FlushErrorState();
			apply_abandon(apply);
		}
		PG_END_TRY();
		if (edata == NULL)
			return NULL;
		MemoryContextDelete(cxt);
		if (!util_lock_is_missed(edata->sqlerrcode))
			return util_error_info(edata);
		FreeErrorData(edata);
		apply_ddl_await(apply, &wait);
	}
}
