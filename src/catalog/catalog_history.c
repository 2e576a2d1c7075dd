/*-------------------------------------------------------------------------
 *
 * catalog_history.c
 *	  Kinds of schema changes, the options that concern them, and rows of
 *	  cdc_bridge.schema_history.
 *
 * NOTES
 *	  Changes are numbered for each pipeline, by its one writer under the state's
 *	  lock. The newest so many stay: each row that is written removes those that
 *	  are too old, so a source that changes its tables for years costs a bounded
 *	  table here.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/pg_lsn.h"

#include "catalog/catalog_heap.h"
#include "catalog/catalog_history.h"
#include "util/util_name.h"

/* So much of a statement is kept. */
#define STATEMENT_MAX_BYTES 65536

static const char *const kind_names[] = {
	[CATALOG_CHANGE_ADD_COLUMN] = "add_column",
	[CATALOG_CHANGE_DROP_COLUMN] = "drop_column",
	[CATALOG_CHANGE_RENAME_COLUMN] = "rename_column",
	[CATALOG_CHANGE_ALTER_TYPE] = "alter_type",
	[CATALOG_CHANGE_ALTER_DEFAULT] = "alter_default",
	[CATALOG_CHANGE_ALTER_NULLABILITY] = "alter_nullability",
	[CATALOG_CHANGE_ALTER_KEY] = "alter_key",
	[CATALOG_CHANGE_ALTER_COMMENT] = "alter_comment",
	[CATALOG_CHANGE_INDEX] = "index",
	[CATALOG_CHANGE_CREATE_TABLE] = "create_table",
	[CATALOG_CHANGE_DROP_TABLE] = "drop_table",
	[CATALOG_CHANGE_RENAME_TABLE] = "rename_table",
	[CATALOG_CHANGE_TRUNCATE_TABLE] = "truncate_table"
};

/* The order is that of the option's words. */
static const char *const mode_names[] = {
	[CATALOG_MODE_EVOLVE] = "evolve",
	[CATALOG_MODE_TRY_EVOLVE] = "try_evolve",
	[CATALOG_MODE_LENIENT] = "lenient",
	[CATALOG_MODE_IGNORE] = "ignore",
	[CATALOG_MODE_EXCEPTION] = "exception"
};

static const char *const result_names[] = {
	[CATALOG_CHANGE_APPLIED] = "applied",
	[CATALOG_CHANGE_IGNORED] = "ignored",
	[CATALOG_CHANGE_FAILED] = "failed",
	[CATALOG_CHANGE_STOPPED] = "stopped"
};

/* -------------------------------------------------------------------- options */

/* The kind of that name; -1 when there is none. */
static int
find_kind(const char *name)
{
	for (int kind = 0; kind < CATALOG_CHANGE_KINDS; kind++)
	{
		if (strcmp(kind_names[kind], name) == 0)
			return kind;
	}
	return -1;
}

static uint32
kinds_of(List *words)
{
	uint32		kinds = 0;
	ListCell   *lc;

	foreach(lc, words)
	{
		int			kind = find_kind(lfirst(lc));

		if (kind >= 0)
			kinds |= CATALOG_CHANGE_BIT(kind);
	}
	return kinds;
}

void
catalog_change_kinds_check(const char *option, List *words)
{
	ListCell   *lc;

	foreach(lc, words)
	{
		StringInfoData valid;

		if (find_kind(lfirst(lc)) >= 0)
			continue;
		initStringInfo(&valid);
		for (int kind = 0; kind < CATALOG_CHANGE_KINDS; kind++)
			appendStringInfo(&valid, "%s%s", kind > 0 ? ", " : "", kind_names[kind]);
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"%s\" has \"%s\", which is no kind of schema change", option, (char *) lfirst(lc)),
				 errhint("Valid kinds are: %s.", valid.data)));
	}
}

void
catalog_change_rules_read(const CatalogPipeline *pipeline, CatalogChangeRules *rules)
{
	const UtilOptionTable *table = &catalog_pipeline_options;
	const char *mode = util_option_text(table, "schema_changes", catalog_pipeline_option(pipeline, "schema_changes"));
	List	   *included = catalog_pipeline_option_words(pipeline, "schema_changes_include");

	memset(rules, 0, sizeof(*rules));
	rules->is_default = catalog_pipeline_option(pipeline, "schema_changes") == NULL;
	for (int i = 0; i < (int) lengthof(mode_names); i++)
	{
		if (strcmp(mode, mode_names[i]) == 0)
			rules->mode = (CatalogChangeMode) i;
	}
	rules->ignored = kinds_of(catalog_pipeline_option_words(pipeline, "schema_changes_exclude"));
	if (included != NIL)
		rules->ignored |= ~kinds_of(included);
	rules->max_rows = util_option_int(table, "schema_history_max_rows",
									  catalog_pipeline_option(pipeline, "schema_history_max_rows"));
}

CatalogChangeMode
catalog_change_mode(const CatalogChangeRules *rules, CatalogChangeKind kind)
{
	return rules->ignored & CATALOG_CHANGE_BIT(kind) ? CATALOG_MODE_IGNORE : rules->mode;
}

/* -------------------------------------------------------------------- history */

/* Remove the oldest, up to and with that number. */
static void
prune(int32 pipeline_id, int32 last)
{
	CatalogScan scan;
	HeapTuple	tuple;

	if (last <= 0)
		return;
	catalog_scan_begin_ordered(&scan, CATALOG_REL_SCHEMA_HISTORY, RowExclusiveLock, 1, &pipeline_id);
	while (HeapTupleIsValid(tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection)) &&
		   catalog_get_int32(tuple, RelationGetDescr(scan.rel), Anum_schema_history_change_no) <= last)
		catalog_tuple_delete(scan.rel, tuple);
	catalog_scan_end(&scan);
}

static Datum
kinds_datum(uint32 kinds)
{
	List	   *names = NIL;

	for (int kind = 0; kind < CATALOG_CHANGE_KINDS; kind++)
	{
		if (kinds & CATALOG_CHANGE_BIT(kind))
			names = lappend(names, pstrdup(kind_names[kind]));
	}
	return util_text_array(names);
}

/* A statement as it is kept: whole, or its beginning. */
static char *
kept_statement(const char *statement)
{
	int			len = (int) strlen(statement);

	if (len <= STATEMENT_MAX_BYTES)
		return pstrdup(statement);
	return psprintf("%.*s ...", pg_mbcliplen(statement, len, STATEMENT_MAX_BYTES), statement);
}

void
catalog_history_insert(CatalogSchemaChange *change, int max_rows)
{
	Datum		values[Natts_schema_history] = {0};
	bool		nulls[Natts_schema_history] = {0};
	char		gtid[CDC_GTID_TEXT_MAX];
	Relation	rel;

	catalog_lock_state(change->pipeline_id);
	change->change_no = catalog_last_id(CATALOG_REL_SCHEMA_HISTORY, Anum_schema_history_change_no, change->pipeline_id) + 1;

	if (change->gtid_text != NULL)
		snprintf(gtid, sizeof(gtid), "%s", change->gtid_text);
	else
		cdc_gtid_format(&change->gtid, gtid);
	values[Anum_schema_history_pipeline_id - 1] = Int32GetDatum(change->pipeline_id);
	values[Anum_schema_history_change_no - 1] = Int32GetDatum(change->change_no);
	values[Anum_schema_history_table_id - 1] = Int32GetDatum(change->table_id);
	catalog_set_text(values, nulls, Anum_schema_history_source_schema, change->source_schema);
	catalog_set_text(values, nulls, Anum_schema_history_source_table, change->source_table);
	catalog_set_position(values, nulls, Anum_schema_history_file, &change->position);
	catalog_set_text(values, nulls, Anum_schema_history_gtid, gtid[0] != '\0' ? gtid : NULL);
	nulls[Anum_schema_history_source_time - 1] = change->source_time_us == 0;
	values[Anum_schema_history_source_time - 1] =
		TimestampTzGetDatum(change->source_time_us -
							(int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY);
	values[Anum_schema_history_kinds - 1] = kinds_datum(change->kinds);
	catalog_set_text(values, nulls, Anum_schema_history_statement,
					 change->statement != NULL ? kept_statement(change->statement) : NULL);
	values[Anum_schema_history_commands - 1] = util_text_array(change->commands);
	catalog_set_text(values, nulls, Anum_schema_history_result, result_names[change->result]);
	catalog_set_error(values, nulls, Anum_schema_history_error, change->error);
	values[Anum_schema_history_created_at - 1] = TimestampTzGetDatum(GetCurrentTimestamp());

	rel = table_open(catalog_relation_oid(CATALOG_REL_SCHEMA_HISTORY), RowExclusiveLock);
	catalog_tuple_insert(rel, values, nulls);
	table_close(rel, NoLock);
	prune(change->pipeline_id, change->change_no - max_rows);
}

void
catalog_history_delete_from(int32 pipeline_id, XLogRecPtr commit_lsn)
{
	CatalogScan scan;
	HeapTuple	tuple;

	catalog_lock_state(pipeline_id);
	catalog_scan_begin_ordered(&scan, CATALOG_REL_SCHEMA_HISTORY, RowExclusiveLock, 1, &pipeline_id);
	while (HeapTupleIsValid(tuple = catalog_scan_next_ordered(&scan, BackwardScanDirection)))
	{
		TupleDesc	desc = RelationGetDescr(scan.rel);
		char	   *place = catalog_get_text(tuple, desc, Anum_schema_history_gtid);

		CHECK_FOR_INTERRUPTS();
		if (strcmp(catalog_get_text(tuple, desc, Anum_schema_history_result), result_names[CATALOG_CHANGE_STOPPED]) == 0)
			continue;
		/* all others are written in the order of the log */
		if (place == NULL || DatumGetLSN(DirectFunctionCall1(pg_lsn_in, CStringGetDatum(place))) < commit_lsn)
			break;
		catalog_tuple_delete(scan.rel, tuple);
	}
	catalog_scan_end(&scan);
}

List *
catalog_history_list(int32 pipeline_id)
{
	CatalogScan scan;
	HeapTuple	tuple;
	List	   *result = NIL;

	catalog_scan_begin_ordered(&scan, CATALOG_REL_SCHEMA_HISTORY, AccessShareLock, 1, &pipeline_id);
	while (HeapTupleIsValid(tuple = catalog_scan_next_ordered(&scan, ForwardScanDirection)))
	{
		TupleDesc	desc = RelationGetDescr(scan.rel);
		CatalogSchemaChange *change = palloc0(sizeof(CatalogSchemaChange));

		change->pipeline_id = pipeline_id;
		change->change_no = catalog_get_int32(tuple, desc, Anum_schema_history_change_no);
		change->table_id = catalog_get_int32(tuple, desc, Anum_schema_history_table_id);
		change->source_schema = catalog_get_text(tuple, desc, Anum_schema_history_source_schema);
		change->source_table = catalog_get_text(tuple, desc, Anum_schema_history_source_table);
		catalog_get_position(tuple, desc, Anum_schema_history_file, &change->position);
		change->gtid_text = catalog_get_text(tuple, desc, Anum_schema_history_gtid);
		change->source_time = catalog_get_time(tuple, desc, Anum_schema_history_source_time);
		change->kind_names = catalog_get_list(tuple, desc, Anum_schema_history_kinds);
		change->statement = catalog_get_text(tuple, desc, Anum_schema_history_statement);
		change->commands = catalog_get_list(tuple, desc, Anum_schema_history_commands);
		change->result_name = catalog_get_text(tuple, desc, Anum_schema_history_result);
		catalog_get_error(tuple, desc, Anum_schema_history_error, &change->shown_error);
		change->created_at = catalog_get_time(tuple, desc, Anum_schema_history_created_at);
		result = lappend(result, change);
	}
	catalog_scan_end(&scan);
	return result;
}
