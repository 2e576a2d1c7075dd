/*-------------------------------------------------------------------------
 *
 * export_stop.c
 *	  Tables of an outgoing pipeline that stop alone.
 *
 * NOTES
 *	  What throws while a change becomes a record - a right that is missing, an
 *	  expression, a name that is taken - is the trouble of its table (option
 *	  on_error). The stop is written down with the change's place in the log,
 *	  durable, and the worker leaves without a flush. The next one reads the log
 *	  again from where the sink is, ships what the table had before that place, and
 *	  leaves out the rest. So a crash at any moment changes nothing: either the
 *	  stop is there before anything is flushed that lies behind it, or the same
 *	  change throws once more, unless it was mended.
 *
 *	  Each stop takes a table out, or moves its place back: that ends.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"

#include "catalog/catalog_export.h"
#include "catalog/catalog_export_copy.h"
#include "decode/decode.h"
#include "pipeline/export_stop.h"
#include "pipeline/export_transaction.h"
#include "util/util_error.h"

/* Is the name of a stopped table taken over by another one that has begun anew under it? */
static bool
has_successor(const List *tables, const CatalogExportTable *stopped)
{
	const ListCell *lc;

	foreach(lc, tables)
	{
		const CatalogExportTable *table = lfirst(lc);

		if (table->relid != stopped->relid && (table->state == CATALOG_EXPORT_SNAPSHOT || table->state == CATALOG_EXPORT_STREAMING) &&
			strcmp(table->schema, stopped->schema) == 0 && strcmp(table->name, stopped->name) == 0)
			return true;
	}
	return false;
}

void
export_stops_use(const Worker *worker, XLogRecPtr durable)
{
	DecodeStops *stops = NULL;
	List	   *tables;
	ListCell   *lc;

	export_transaction_begin(true);
	tables = catalog_export_table_list(worker->pipeline_id);
	MemoryContextSwitchTo(worker->cxt);
	foreach(lc, tables)
	{
		const CatalogExportTable *table = lfirst(lc);
		bool		has_name;

		if (table->state != CATALOG_EXPORT_STOPPED)
			continue;
		if (stops == NULL)
			stops = decode_stops_create(durable);
		has_name = !has_successor(tables, table);
		decode_stops_add(stops, table->relid, table->stop_end_lsn, table->stop_lsn, has_name ? table->schema : NULL,
						 has_name ? table->name : NULL);
	}
	export_transaction_end(false, worker->cxt);
	decode_stops_use(stops);
}

/* Is an error of that kind about the table and its rows, and not about the server, the sink or a moment? */
static bool
is_of_table(const DecodePlace *place, int sqlstate)
{
	if (!OidIsValid(place->relid))
		return false;
	switch (ERRCODE_TO_CATEGORY(sqlstate))
	{
		case ERRCODE_DATA_EXCEPTION:
		case ERRCODE_PROGRAM_LIMIT_EXCEEDED:
			return true;
		case ERRCODE_CARDINALITY_VIOLATION:
		case ERRCODE_FEATURE_NOT_SUPPORTED:
		case ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION:
		case ERRCODE_SQL_ROUTINE_EXCEPTION:
		case ERRCODE_EXTERNAL_ROUTINE_EXCEPTION:
		case ERRCODE_EXTERNAL_ROUTINE_INVOCATION_EXCEPTION:
		case ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION:
		case ERRCODE_PLPGSQL_ERROR:
			/* a publication that is gone is not */
			return !place->in_receiver && sqlstate != ERRCODE_UNDEFINED_OBJECT;
		default:
			return !place->in_receiver && (sqlstate == CDC_ERRCODE_TABLE_CHANGED || sqlstate == CDC_ERRCODE_NO_KEY);
	}
}

bool
export_stop_table(const Worker *worker, XLogRecPtr durable, const ExportHistory *history)
{
	DecodePlace place = decode_place_now;
	ErrorData  *edata;
	UtilErrorInfo *info;
	CatalogSchemaChange *change;

	MemoryContextSwitchTo(worker->cxt);
	edata = CopyErrorData();
	if (!is_of_table(&place, edata->sqlerrcode) || catalog_pipeline_on_error(worker->pipeline) == CATALOG_ON_ERROR_STOP)
		return false;
	change = place.statement != NULL ? export_history_make(history, place.statement) : NULL;
	FlushErrorState();
	HOLD_INTERRUPTS();
	AbortOutOfAnyTransaction();
	RESUME_INTERRUPTS();

	MemoryContextSwitchTo(worker->cxt);
	info = place.in_others ? util_error_info_with_values(edata) : util_error_info(edata);
	/* a row of a copy, or what the sink has already: everything from here on */
	if (place.txn_end <= durable)
	{
		place.txn_end = durable;
		place.lsn = InvalidXLogRecPtr;
	}
	export_transaction_begin(true);
	/* a commit is in the log a moment before others see it, and a table that it made has no name for us until then */
	if (TransactionIdIsValid(place.xid))
		XactLockTableWait(place.xid, NULL, NULL, XLTW_None);
	catalog_export_table_stop(worker->pipeline_id, place.relid, place.txn_end, place.lsn, info);
	if (change != NULL)
		export_history_write_stop(history, change, info);
	export_transaction_end(true, worker->cxt);
	ereport(LOG,
			(errcode(info->sqlstate),
			 errmsg("pipeline \"%s\" stops table %u at %X/%X: %s", worker->pipeline->name, place.relid,
					LSN_FORMAT_ARGS(XLogRecPtrIsInvalid(place.lsn) ? place.txn_end : place.lsn), info->message),
			 info->detail ? errdetail("%s", info->detail) : 0,
			 info->hint ? errhint("%s", info->hint) : 0));
	return true;
}
