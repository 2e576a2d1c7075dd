/*-------------------------------------------------------------------------
 *
 * apply_ddl.c
 *	  Change targets in stream order: a step that needs them for itself.
 *
 * NOTES
 *	  The stream stands still until the step is done, since what comes after it
 *	  may depend on it. So it waits for its locks only a moment at a time: whoever
 *	  wants to use the table meanwhile would wait behind us. Between two tries the
 *	  tables' rows say who is in the way.
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
#include "utils/guc.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "apply/apply_private.h"
#include "util/util_lock.h"
#include "util/util_wait.h"

/* How long a try waits for others to leave a table, and the pause after it, doubling up to a limit. */
#define DDL_LOCK_TIMEOUT "200"
#define DDL_RETRY_MS 250
#define DDL_RETRY_MAX_MS 10000

/* Write a notice at tables, or (NULL) take it away. */
static void
set_notices(Apply *apply, List *tables, const UtilErrorInfo *info)
{
	ListCell   *lc;

	foreach(lc, tables)
		catalog_table_set_notice(apply->pipeline_id, ((ApplyTable *) lfirst(lc))->table_id, info);
}

/* Say who is in the way: at the tables, and once in the log. */
static void
tell_holders(Apply *apply, List *tables, bool is_first)
{
	UtilErrorInfo info = {.sqlstate = ERRCODE_LOCK_NOT_AVAILABLE};
	StringInfoData names;
	StringInfoData pids;
	ListCell   *lc;

	heap_transaction_begin();
	MemoryContextSwitchTo(apply->change_cxt);
	PushActiveSnapshot(GetTransactionSnapshot());
	initStringInfo(&names);
	initStringInfo(&pids);
	foreach(lc, tables)
	{
		const ApplyTable *table = lfirst(lc);
		char	   *holders = util_lock_holders(table->target);

		appendStringInfo(&names, "%s\"%s.%s\"", names.len > 0 ? ", " : "", table->schema, table->name);
		if (holders != NULL)
			appendStringInfo(&pids, "%s%s", pids.len > 0 ? ", " : "", holders);
	}
	info.message = psprintf("a change of table %s waits for a lock", names.data);
	info.detail = psprintf("Sessions that use the target: %s. The pipeline goes on when they are done with it.",
						   pids.len > 0 ? pids.data : "gone by now");
	info.hint = pstrdup("Look at these in pg_stat_activity, and end transactions that are left open.");
	set_notices(apply, tables, &info);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(apply->change_cxt);
	if (is_first)
		ereport(LOG,
				(errcode(info.sqlstate),
				 errmsg("%s", info.message),
				 errdetail("%s", info.detail),
				 errhint("%s", info.hint)));
}

/* One try. Locks that the step does not get in time are an error; so are those of the catalog afterwards not. */
static void
run_step(Apply *apply, ApplyDdlStep step, void *arg)
{
	int			level;

	apply_begin(apply);
	level = NewGUCNestLevel();
	(void) set_config_option("lock_timeout", DDL_LOCK_TIMEOUT, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	PushActiveSnapshot(GetTransactionSnapshot());
	step(apply, arg);
	PopActiveSnapshot();
	AtEOXact_GUC(true, level);
	MemoryContextSwitchTo(apply->change_cxt);
}

UtilErrorInfo *
apply_ddl_try(Apply *apply, List *tables, ApplyDdlStep step, void *arg)
{
	volatile int failures = 0;
	ErrorData  *volatile edata;

	Assert(!apply->in_txn);
	if (apply->open || apply->moved)
		apply_commit(apply);	/* only whole transactions are in it, and batches were written */
	for (;;)
	{
		edata = NULL;
		PG_TRY();
		{
			run_step(apply, step, arg);
			if (failures > 0)
				set_notices(apply, tables, NULL);
			apply->commit_due = true;
		}
		PG_CATCH();
		{
			MemoryContextSwitchTo(apply->change_cxt);
			edata = CopyErrorData();
			if (edata->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE && edata->sqlerrcode != ERRCODE_T_R_DEADLOCK_DETECTED &&
				!heap_error_is_tables_own(edata->sqlerrcode) &&
				ERRCODE_TO_CATEGORY(edata->sqlerrcode) != ERRCODE_DEPENDENT_PRIVILEGE_DESCRIPTORS_STILL_EXIST)
				PG_RE_THROW();
			FlushErrorState();
			apply_abandon(apply);
		}
		PG_END_TRY();
		if (edata == NULL)
			return NULL;
		if (edata->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE && edata->sqlerrcode != ERRCODE_T_R_DEADLOCK_DETECTED)
			return util_error_info(edata);
		tell_holders(apply, tables, failures == 0);
		util_wait(PGINVALID_SOCKET, Min(DDL_RETRY_MS << Min(failures, 10), DDL_RETRY_MAX_MS), UTIL_WAIT_TARGET);
		failures++;
	}
}
