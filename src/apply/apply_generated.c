/*-------------------------------------------------------------------------
 *
 * apply_generated.c
 *	  Generated columns that the log leaves out: the source is asked for them.
 *
 * NOTES
 *	  MariaDB 11.8 leaves generated columns out of the images of rows that are
 *	  updated and deleted, with any binlog_row_image (seen on 11.8.9); 10.11 leaves
 *	  out VIRTUAL ones with MINIMAL. Its replicas compute them. Where the target's
 *	  column is generated too, it is the same here and nothing is missing. Else
 *	  they are read from the row at the source, by its key, as soon as the source
 *	  shows the change.
 *
 *	  What is read may be newer than the change. Then the change that made it so
 *	  is still to come, and reads again; a row that is gone by then has NULL. So
 *	  with the last change of a row its generated columns are right, and before
 *	  that they may be ahead of the other columns by what the stream is behind.
 *
 *	  While the table is being copied, nothing is read here: the copy reads such
 *	  rows again (apply_reread.c).
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "apply/apply_private.h"
#include "mysql/mysql_text.h"
#include "util/util_error.h"
#include "util/util_wait.h"

/* The log shows a change some milliseconds before the tables do. */
#define SHOWN_PAUSE 5			/* ms */

bool
apply_generated_is_left_out(const ApplyTable *table, const CdcChange *change, int column)
{
	return change->by_mariadb && table->def->columns[column].is_generated &&
		table->row->table->columns[column].attnum > 0 &&
		change->after[table->match[column]].state == CDC_FIELD_ABSENT;
}

static int
first_left_out(const ApplyTable *table, const CdcChange *change)
{
	int			column = 0;

	while (!apply_generated_is_left_out(table, change, column))
		column++;
	return column;
}

static _Noreturn void
throw_left_out(const ApplyTable *table, const CdcChange *change, const char *why)
{
	ereport(ERROR,
			(errcode(CDC_ERRCODE_UNSUPPORTED_EVENT),
			 errmsg("row event of source table \"%s.%s\" is not complete", table->schema, table->name),
			 errdetail("Generated column \"%s\" is not in the row image, and the source cannot be asked for it: %s.",
					   table->def->columns[first_left_out(table, change)].name, why),
			 errhint(APPLY_HINT_GENERATED)));
}

void
apply_open_session(Apply *apply)
{
	MemoryContext old;

	if (apply->session != NULL)
		return;
	old = MemoryContextSwitchTo(apply->cxt);
	apply->session = mysql_server_open(apply->endpoint, apply_durable(apply)->identity, &apply->server);
	MemoryContextSwitchTo(old);
	mysql_server_limit_lock_wait(apply->session, true);
}

/* Wait until the source's tables show the source transaction that is coming in. */
static void
await_shown(Apply *apply)
{
	CdcPosition wanted = apply->txn_start;
	int			order;
	char	   *gtids;

	/* it is where the transaction starts; what is shown has to be behind that */
	wanted.offset++;
	if (cdc_position_is_known(&apply->shown) && cdc_position_compare(&apply->shown, &wanted, &order) && order >= 0)
		return;
	while (!mysql_server_shows(apply->session, apply->server, &wanted, "", &apply->shown, &gtids))
		(void) util_wait(PGINVALID_SOCKET, SHOWN_PAUSE, UTIL_WAIT_SOURCE_READ);
}

static char *
make_query(Apply *apply, const ApplyTable *table, const CdcChange *change)
{
	const CdcTableDef *def = table->def;
	StringInfoData sql;

	initStringInfo(&sql);
	for (int i = 0; i < (int) def->ncolumns; i++)
	{
		if (apply_generated_is_left_out(table, change, i))
			appendStringInfo(&sql, "%s %s", sql.len > 0 ? "," : "SELECT",
							 mysql_text_expression(&def->columns[i], MYSQL_FLAVOR_MARIADB));
	}
	appendStringInfo(&sql, " FROM %s.%s WHERE %s", mysql_quote_identifier(def->schema),
					 mysql_quote_identifier(def->name), apply_row_condition(apply, table, change));
	return sql.data;
}

typedef enum AskResult
{
	ASK_ROW,
	ASK_GONE,
	ASK_LOCKED,
	ASK_REFUSED
} AskResult;

/*
 * Ask for the row, once. What the server says to the question (the table is locked; it or a column is gone) is the
 * result, with *why, what happens to the connection is thrown.
 */
static AskResult
try_ask(Apply *apply, const char *query, MysqlRow *answer, char **why)
{
	MemoryContext cxt = CurrentMemoryContext;
	volatile AskResult result = ASK_GONE;

	PG_TRY();
	{
		mysql_session_query(apply->session, query);
		if (mysql_session_fetch(apply->session, answer))
			result = ASK_ROW;
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		if (geterrcode() != ERRCODE_LOCK_NOT_AVAILABLE && ERRCODE_TO_CATEGORY(geterrcode()) != ERRCODE_FDW_ERROR)
			PG_RE_THROW();
		MemoryContextSwitchTo(cxt);
		edata = CopyErrorData();
		FlushErrorState();
		result = edata->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE ? ASK_LOCKED : ASK_REFUSED;
		*why = edata->detail ? edata->detail : edata->message;
	}
	PG_END_TRY();
	return result;
}

/* Ask for the row, for as long as its table is locked; false when it is gone. */
static bool
ask(Apply *apply, const ApplyTable *table, const CdcChange *change, MysqlRow *answer)
{
	char	   *query;
	char	   *why = NULL;
	AskResult	result;
	bool		told = false;

	apply_open_session(apply);
	await_shown(apply);
	query = make_query(apply, table, change);
	/* the server gives up after a second, so that we can be stopped */
	while ((result = try_ask(apply, query, answer, &why)) == ASK_LOCKED)
	{
		util_check_interrupts();
		if (!told)
			ereport(LOG,
					(errmsg("the stream waits for source table \"%s.%s\", which is locked there", table->schema, table->name),
					 errdetail("Its generated columns are not in the log, and are asked for."),
					 errhint("End the statement or the LOCK TABLES that holds it on the source.")));
		told = true;
	}
	if (result == ASK_REFUSED)
	{
		if (why[0] != '\0' && why[strlen(why) - 1] == '.')
			why[strlen(why) - 1] = '\0';
		throw_left_out(table, change, why);
	}
	return result == ASK_ROW;
}

static void
set_value(Apply *apply, ApplyTable *table, int column, const char *text, uint32 len)
{
	const CdcColumnDef *def = &table->def->columns[column];
	CdcCell		cell;
	CdcError	err;

	if (mysql_text_to_cell(def, text, len, &apply->arena, &cell, &err) != CDC_OK)
		heap_row_bad_cell(def, &err);
	heap_row_set(table->row, column, &cell);
	if (table->batch != NULL)
		apply->unwritten_bytes += len;
}

/* Read the left-out columns of the row after the change into target->slot. */
void
apply_generated_read(Apply *apply, ApplyTable *table, const CdcChange *change)
{
	MysqlRow	answer;
	int			field = 0;

	if (table->row->target->nkey == 0)
		throw_left_out(table, change, "the table has no key");
	/* MariaDB's marks contain an XA COMMIT before its rows can be seen */
	if (apply->txn_is_xa)
		throw_left_out(table, change, "when it shows what an XA COMMIT left cannot be told");
	if (!cdc_position_is_known(&apply->txn_start))
		throw_left_out(table, change, "where in its log the change stands is not known");
	if (!ask(apply, table, change, &answer))
		return;
	for (int i = 0; i < (int) table->def->ncolumns; i++)
	{
		if (!apply_generated_is_left_out(table, change, i))
			continue;
		if (field == answer.nfields)
			ereport(ERROR,
					(errcode(ERRCODE_PROTOCOL_VIOLATION),
					 errmsg("the source sent other columns of table \"%s.%s\" than were asked for",
							table->schema, table->name)));
		set_value(apply, table, i, answer.values[field], answer.lengths[field]);
		field++;
	}
	mysql_session_drain(apply->session);
}
