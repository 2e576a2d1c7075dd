/*-------------------------------------------------------------------------
 *
 * apply_stored_code.c
 *	  What triggers and stored routines do behind a statement in the log.
 *
 * NOTES
 *	  A statement that was logged instead of rows may have run triggers of the
 *	  tables that it names and functions that it calls, and these others. The log
 *	  has nothing of it. So the source is asked what there is, when such a
 *	  statement comes; a table of ours that is named in the body of anything that
 *	  may have run is taken to be changed.
 *
 *	  That is what the source has now. What was dropped since the statement ran
 *	  is not seen, nor what the user may not see (mysql_stored_code.c).
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "apply/apply_private.h"
#include "ddl/statement.h"
#include "mysql/mysql_server.h"
#include "util/util_wait.h"

/* What was read counts for so long: many such statements may come one after the other. */
#define KNOWN_MS 5000

/* The source's triggers and routines; List of MysqlStoredCode. */
static List *
stored_code(Apply *apply)
{
	MemoryContext caller = CurrentMemoryContext;
	MysqlServerInfo *info;
	MysqlSession *session;

	if (apply->code_read_at != 0 && !TimestampDifferenceExceeds(apply->code_read_at, GetCurrentTimestamp(), KNOWN_MS))
		return apply->code;
	/* nothing of ours waits for the source; but what is half way through cannot be committed */
	if (apply->open && !(apply->in_txn && apply->txn_changes > 0))
		apply_commit(apply);
	apply_forget_code(apply);
	MemoryContextSwitchTo(apply->code_cxt);
	session = mysql_server_open(apply->endpoint, apply_durable(apply)->identity, &info);
	apply->code = mysql_server_stored_code(session);
	mysql_session_close(session);
	apply->code_read_at = GetCurrentTimestamp();
	MemoryContextSwitchTo(caller);
	return apply->code;
}

void
apply_forget_code(Apply *apply)
{
	apply->code = NIL;
	apply->code_read_at = 0;
	MemoryContextReset(apply->code_cxt);
}

/* Does the statement name the trigger's table? */
static bool
acts_on(const Apply *apply, const DdlStatement *statement, const MysqlStoredCode *trigger)
{
	int			(*compare) (const char *, const char *) = apply->fold_names ? pg_strcasecmp : strcmp;

	for (uint32 i = 0; i < statement->ntables; i++)
	{
		if (compare(statement->tables[i].schema, trigger->schema) == 0 &&
			compare(statement->tables[i].name, trigger->name) == 0)
			return true;
	}
	return false;
}

/* What stands in double quotes may be a name: under which sql_mode the body was made is not asked for. */
static bool
body_names(const MysqlStoredCode *code, const char *name, bool fold)
{
	return ddl_statement_names(code->body, code->len, DDL_MODE_ANSI_QUOTES, name, fold);
}

/* May the statement itself run that code? */
static bool
may_run(const Apply *apply, const CdcStatement *text, const DdlStatement *statement, const MysqlStoredCode *code)
{
	if (code->is_trigger && statement->certain && statement->kind == DDL_DML)
		return acts_on(apply, statement, code);
	return ddl_statement_names(text->text, text->len, text->sql_mode, code->name, code->is_trigger ? apply->fold_names : true);
}

/* May the body of a trigger or routine run that code? */
static bool
may_run_from(const Apply *apply, const MysqlStoredCode *from, const MysqlStoredCode *code)
{
	return body_names(from, code->name, code->is_trigger ? apply->fold_names : true);
}

/* Does the body name the table, or one that a foreign key of it refers to and that changes its rows? */
static bool
names_table(const Apply *apply, const MysqlStoredCode *code, const ApplyTable *table)
{
	bool		found = body_names(code, table->name, apply->fold_names);

	for (uint32 i = 0; !found && table->def != NULL && i < table->def->nforeign; i++)
		found = body_names(code, table->def->foreign_keys[i].parent_table, apply->fold_names);
	return found;
}

List *
apply_tables_behind(Apply *apply, const CdcStatement *text, const DdlStatement *statement, bool *any)
{
	List	   *left = list_copy(stored_code(apply));
	List	   *runs = NIL;
	List	   *tables = NIL;
	ListCell   *lc;

	*any = false;
	foreach(lc, left)
	{
		if (may_run(apply, text, statement, lfirst(lc)))
		{
			runs = lappend(runs, lfirst(lc));
			left = foreach_delete_current(left, lc);
		}
	}
	/* runs grows while it is walked */
	for (int i = 0; i < list_length(runs); i++)
	{
		const MysqlStoredCode *code = list_nth(runs, i);

		util_check_interrupts();
		if (code->body == NULL)
		{
			*any = true;
			continue;
		}
		foreach(lc, apply->tables)
		{
			ApplyTable *table = lfirst(lc);

			if (names_table(apply, code, table))
				tables = list_append_unique_ptr(tables, table);
		}
		foreach(lc, left)
		{
			if (may_run_from(apply, code, lfirst(lc)))
			{
				runs = lappend(runs, lfirst(lc));
				left = foreach_delete_current(left, lc);
			}
		}
	}
	return tables;
}
