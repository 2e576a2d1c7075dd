/*-------------------------------------------------------------------------
 *
 * apply_dead_letter.c
 *	  A change that cannot be applied, kept with everything it said.
 *
 * NOTES
 *	  Its row images are stored as heap_image.h says. The error keeps its message; the detail
 *	  of a violated constraint would show values of other rows too, and is left out
 *	  as everywhere else.
 *
 *	  The keys that it would remove and write are noted with it, and a later change
 *	  of one of these makes that part of it moot (apply_superseded.c).
 *
 *	  The stream's worker also removes letters that are too old, or too many; it
 *	  tells how many of these were still to be applied, which are lost.
 *
 *	  Each of the first few in a PostgreSQL transaction is told to the log; of a
 *	  flood only the number.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "lib/stringinfo.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "apply/apply_private.h"
#include "catalog/catalog_dead_letter.h"
#include "heap/heap_image.h"

/* So many are told one by one before the next commit. */
#define TOLD_MAX 10

static Datum
image_to_jsonb(Apply *apply, const CdcChange *change, const CdcField *fields)
{
	HeapImage	image;

	if (fields == NULL)
		return (Datum) 0;
	heap_image_begin(&image);
	for (uint32 i = 0; i < change->table->ncolumns; i++)
	{
		const CdcColumnDef *column = &change->table->columns[i];
		const CdcField *field = &fields[i];
		CdcCell		cell;
		CdcError	err = {0};

		if (field->state == CDC_FIELD_ABSENT || column->name == NULL)
			continue;
		if (field->state == CDC_FIELD_PARTIAL)
			heap_image_diff(&image, column, field);
		else if (change->cell(column, field, &apply->arena, &cell, &err) != CDC_OK)
			heap_image_raw(&image, column, field->data, field->len);
		else
			heap_image_cell(&image, column, &cell);
	}
	return heap_image_end(&image);
}

void
apply_dead_letter(Apply *apply, ApplyTable *table, const CdcChange *change, const ErrorData *edata)
{
	static const char *const operations[] = {
		[CDC_INSERT] = "insert",[CDC_UPDATE] = "update",[CDC_DELETE] = "delete"
	};
	/* who sees dead letters sees rows */
	const UtilErrorInfo *error = util_error_info(edata);
	char		gtid[CDC_GTID_TEXT_MAX];
	CatalogDeadLetter letter = {
		.pipeline_id = apply->pipeline_id,
		.table_id = table->table_id,
		.source_schema = table->shown_schema,
		.source_table = table->shown_name,
		.position = apply->txn_start,
		.action = apply->txn_action,
		.operation = operations[change->op],
		.error = *util_error_info_with_values(edata),
		.changed_at = apply->txn_time,
	};
	char		position[CDC_POSITION_TEXT_MAX];

	cdc_gtid_format(&apply->txn_gtid, gtid);
	letter.gtid = gtid[0] != '\0' ? gtid : NULL;
	letter.before = image_to_jsonb(apply, change, change->before);
	letter.after = image_to_jsonb(apply, change, change->after);
	if (table->row->target->nkey > 0)
		apply_letter_keys(apply, table, change, &letter.old_key, &letter.new_key);
	else if (change->op == CDC_INSERT)
		letter.new_key = apply_letter_row(apply, table, change);
	PushActiveSnapshot(GetTransactionSnapshot());
	catalog_dead_letter_insert(&letter);
	PopActiveSnapshot();

	apply_letter_added(apply, table, letter.old_key, letter.new_key);
	if (apply->letters_counted >= 0)
		apply->letters_counted++;
	apply_table_count_dead_letter(apply, table);
	if (++apply->letters_open > TOLD_MAX)
		return;
	cdc_position_format(&apply->txn_start, position);
	ereport(LOG,
			(errcode(error->sqlstate),
			 errmsg("change of source table \"%s.%s\" of pipeline \"%s\" became a dead letter: %s",
					table->schema, table->name, apply->pipeline_name, error->message),
			 errdetail("It is change " INT64_FORMAT " of the source transaction at %s.",
					   apply->txn_action, position),
			 errhint("See the view cdc_dead_letters.")));
}

void
apply_dead_letters_committed(Apply *apply)
{
	if (apply->letters_open > TOLD_MAX)
		ereport(LOG,
				(errmsg("%d more changes of pipeline \"%s\" became dead letters", apply->letters_open - TOLD_MAX, apply->pipeline_name),
				 errhint("See the view cdc_dead_letters.")));
	apply->letters_open = 0;
}

/* ------------------------------------------------------------------------ pruning */

/* Most letters removed in one transaction. */
#define PRUNE_MAX 5000

static void
say_pruned(const Apply *apply, const CatalogLetterPrune *prune)
{
	StringInfoData tables;
	ListCell   *lc;

	initStringInfo(&tables);
	foreach(lc, prune->losses)
	{
		const CatalogLetterLoss *loss = lfirst(lc);

		if (foreach_current_index(lc) == TOLD_MAX)
		{
			appendStringInfoString(&tables, ", ...");
			break;
		}
		appendStringInfo(&tables, "%s\"%s.%s\" (" INT64_FORMAT ")", tables.len > 0 ? ", " : "",
						 loss->source_schema, loss->source_table, loss->count);
	}
	ereport(LOG,
			(errmsg(INT64_FORMAT " dead letters of pipeline \"%s\" were removed by age or number", prune->settled + prune->open, apply->pipeline_name),
			 prune->open == 0 ? errdetail("All of them were settled.")
			 : errdetail(INT64_FORMAT " of them were still to be applied, and are lost: tables %s.", prune->open, tables.data),
			 errhint("Options \"dead_letter_max_days\" and \"dead_letter_max_rows\" say how long they are kept.")));
}

/* Count what is lost, for tables that are still there. */
static void
publish_losses(const Apply *apply, const CatalogLetterPrune *prune)
{
	ListCell   *lc;

	foreach(lc, prune->losses)
	{
		const CatalogLetterLoss *loss = lfirst(lc);
		ApplyTableStats stats = {.letters_lost = loss->count};

		if (apply->publish != NULL)
			apply->publish(apply->caller, loss->table_id, &stats);
	}
}

bool
apply_letters_prune(Apply *apply)
{
	MemoryContext caller = MemoryContextSwitchTo(apply->change_cxt);
	CatalogLetterPrune prune = {0};
	TimestampTz before = apply->letters_max_days == 0 ? 0 :
		GetCurrentTimestamp() - apply->letters_max_days * USECS_PER_DAY;

	Assert(!apply->open && !apply->in_txn);
	MemoryContextReset(apply->change_cxt);
	heap_transaction_begin();
	MemoryContextSwitchTo(apply->change_cxt);
	PushActiveSnapshot(GetTransactionSnapshot());
	if (apply->letters_max_rows > 0 && (apply->letters_counted < 0 || apply->letters_counted > apply->letters_max_rows))
		apply->letters_counted = catalog_dead_letter_count(apply->pipeline_id);
	catalog_dead_letter_prune(apply->pipeline_id, before,
							  apply->letters_max_rows == 0 ? 0 : apply->letters_counted - apply->letters_max_rows,
							  PRUNE_MAX, &prune);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(apply->change_cxt);
	if (apply->letters_counted > 0)
		apply->letters_counted = Max(apply->letters_counted - prune.settled - prune.open, 0);
	if (prune.settled + prune.open > 0)
	{
		say_pruned(apply, &prune);
		publish_losses(apply, &prune);
	}
	MemoryContextSwitchTo(caller);
	return prune.more;
}
