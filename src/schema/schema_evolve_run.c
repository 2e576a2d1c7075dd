/*-------------------------------------------------------------------------
 *
 * schema_evolve_run.c
 *	  Carry out the steps that schema_evolve.c has planned.
 *
 * NOTES
 *	  As the target's owner, in a security-restricted operation: default
 *	  expressions, checks and index expressions of the table are that role's code
 *	  and run when a table is rewritten.
 *
 *	  A step that may fail without harm runs in a subtransaction: one that has
 *	  something to stand in for it, or may wait, when a row's value was at fault; with
 *	  TRY_EVOLVE each. Locks and resources are nobody's fault and are thrown.
 *
 *	  Columns that get other types do so in one ALTER TABLE, which rewrites the table
 *	  once; only when that fails is each tried by itself.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "compat/pg_compat.h"
#include "schema/evolve.h"
#include "util/util_error.h"
#include "util/util_role.h"
#include "util/util_spi.h"
#include "util/util_subtransaction.h"

static void
run_commands(void *arg)
{
	ListCell   *lc;

	SPI_connect();
	foreach(lc, (List *) arg)
		util_spi_run(lfirst(lc));
	SPI_finish();
	CommandCounterIncrement();
}

static void
note_commands(SchemaPlan *plan, List *commands)
{
	plan->commands = list_concat(plan->commands, commands);
}

/* Is an error one that another try would meet again? */
static bool
will_fail_again(int sqlstate)
{
	switch (util_error_class(sqlstate))
	{
		case UTIL_ERROR_TRANSIENT:
			return false;
		default:
			return sqlstate != ERRCODE_LOCK_NOT_AVAILABLE && sqlstate != ERRCODE_QUERY_CANCELED;
	}
}

/* A step is passed over: the table goes on without it. */
static void
pass_over(SchemaPlan *plan, const SchemaStep *step, const ErrorData *edata)
{
	CdcTableDef *after = plan->evolve->after;

	if (plan->failed == NULL)
		plan->failed = util_error_info(edata);
	run_commands(step->passed_over);
	note_commands(plan, step->passed_over);
	if (step->column >= 0 && (step->kind == CATALOG_CHANGE_ADD_COLUMN || step->kind == CATALOG_CHANGE_RENAME_COLUMN))
		after->columns[step->column].left_out = true;
}

/* The first reason for a copy is the one that is told. */
static void
note_copy(SchemaPlan *plan, char *why)
{
	if (plan->copy == NULL)
		plan->copy = why;
}

static void
run_step(SchemaPlan *plan, const SchemaStep *step)
{
	bool		may_fail = plan->evolve->rules->mode == CATALOG_MODE_TRY_EVOLVE;
	ErrorData  *edata;

	note_copy(plan, step->copy);
	if (step->commands == NIL)
		return;
	if (!may_fail && !step->may_wait && step->otherwise == NIL)
	{
		run_commands(step->commands);
		note_commands(plan, step->commands);
		return;
	}

	edata = util_subtransaction(run_commands, step->commands, true);
	if (edata == NULL)
	{
		note_commands(plan, step->commands);
		return;
	}
	if (!will_fail_again(edata->sqlerrcode))
		ReThrowError(edata);
	if (step->may_wait && ERRCODE_TO_CATEGORY(edata->sqlerrcode) == ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION)
		return;
	if (step->otherwise != NIL && ERRCODE_TO_CATEGORY(edata->sqlerrcode) != ERRCODE_DEPENDENT_PRIVILEGE_DESCRIPTORS_STILL_EXIST &&
		edata->sqlerrcode != ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST && edata->sqlerrcode != ERRCODE_FEATURE_NOT_SUPPORTED &&
		edata->sqlerrcode != ERRCODE_INSUFFICIENT_PRIVILEGE)
	{
		ErrorData  *second = NULL;

		if (may_fail)
			second = util_subtransaction(run_commands, step->otherwise, true);
		else
			run_commands(step->otherwise);
		if (second == NULL)
		{
			note_commands(plan, step->otherwise);
			if (step->copy_otherwise)
				note_copy(plan, "values that the source converted cannot be converted here");
			return;
		}
		edata = second;
		if (!will_fail_again(edata->sqlerrcode))
			ReThrowError(edata);
	}
	if (!may_fail)
		ReThrowError(edata);
	pass_over(plan, step, edata);
}

/* ---- types of several columns: one statement, so that the table is rewritten once ---- */

/* The clauses of a step's commands, with what joins them to those before; false: they are not such. */
static bool
add_clauses(const SchemaPlan *plan, const SchemaStep *step, StringInfo sql)
{
	Size		len = strlen(plan->alter);
	ListCell   *lc;

	foreach(lc, step->commands)
	{
		const char *command = lfirst(lc);

		if (strncmp(command, plan->alter, len) != 0 || command[len] != ' ')
			return false;
		appendStringInfo(sql, "%s%s", sql->len > 0 ? "," : plan->alter, command + len);
	}
	return true;
}

/*
 * Steps from there on that change types, when there are several: carried out together. Returns how many these are; 0: there are not, or that cannot
 * be done, and each has to be tried by itself.
 */
static int
run_types(SchemaPlan *plan, int from)
{
	StringInfoData sql;
	ErrorData  *edata;
	int			n = 0;
	int			altered = 0;

	if (plan->alter == NULL)
		return 0;
	initStringInfo(&sql);
	for (; from + n < list_length(plan->steps); n++)
	{
		const SchemaStep *step = list_nth(plan->steps, from + n);

		if (step->kind != CATALOG_CHANGE_ALTER_TYPE)
			break;
		if (!add_clauses(plan, step, &sql))
			return 0;
		altered += step->commands != NIL;
	}
	if (altered < 2)
		return 0;
	edata = util_subtransaction(run_commands, list_make1(sql.data), true);
	if (edata != NULL)
	{
		if (!will_fail_again(edata->sqlerrcode))
			ReThrowError(edata);
		return 0;
	}
	note_commands(plan, list_make1(sql.data));
	for (int i = from; i < from + n; i++)
		note_copy(plan, ((const SchemaStep *) list_nth(plan->steps, i))->copy);
	return n;
}

static void
check_owner(const SchemaPlan *plan)
{
	Oid			me = GetUserId();

	if (plan->owner == me || cdc_role_can_set_role(me, plan->owner))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("role \"%s\" cannot SET ROLE to \"%s\"",
					GetUserNameFromId(me, false), GetUserNameFromId(plan->owner, false)),
			 errdetail("Table \"%s\" is altered as its owner.", plan->name),
			 errhint("Run GRANT %s TO %s, or make the pipeline's owner the owner of the table.",
					 quote_identifier(GetUserNameFromId(plan->owner, false)), quote_identifier(GetUserNameFromId(me, false)))));
}

void
schema_evolve_run(SchemaPlan *plan)
{
	UtilRoleSwitch sw;

	check_owner(plan);
	util_role_switch_begin(plan->owner != GetUserId() ? plan->owner : InvalidOid, &sw);
	for (int i = 0; i < list_length(plan->steps);)
	{
		int			done = run_types(plan, i);

		if (done == 0)
			run_step(plan, list_nth(plan->steps, i));
		i += Max(done, 1);
	}
	util_role_switch_end(&sw);
}
