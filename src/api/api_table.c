/*-------------------------------------------------------------------------
 *
 * api_table.c
 *	  cdc_add_table, cdc_remove_table, cdc_resync_table.
 *
 * NOTES
 *	  They change the pipeline's list of patterns and rows of its tables, and
 *	  leave a wish (catalog_pipeline_ask_tables) that the ingest worker takes up
 *	  between two source transactions: at once when it runs, else when it is
 *	  started. Nothing else happens here, so ROLLBACK undoes all of it.
 *
 *	  A pattern that begins with '!' leaves tables out; it wins over the others,
 *	  wherever it stands. Removing one table below a wildcard adds such a pattern
 *	  with its name, adding the table takes it away again.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/builtins.h"

#include "api/api.h"
#include "catalog/catalog_export_copy.h"
#include "mysql/mysql_server.h"
#include "pipeline/shmem.h"
#include "util/util_helper_table.h"
#include "util/util_pattern.h"

PG_FUNCTION_INFO_V1(cdc_add_table);
PG_FUNCTION_INFO_V1(cdc_remove_table);
PG_FUNCTION_INFO_V1(cdc_resync_table);

/* ---- patterns ---- */

/* Parts of a pattern without wildcards; false when it has some. */
static bool
exact_name(const char *pattern, char **schema, char **table)
{
	util_pattern_names(pattern, schema, table);
	return *schema != NULL && *table != NULL;
}

static bool
list_has(List *patterns, const char *pattern)
{
	ListCell   *lc;

	foreach(lc, patterns)
	{
		if (strcmp(lfirst(lc), pattern) == 0)
			return true;
	}
	return false;
}

static List *
list_without(List *patterns, const char *pattern)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, patterns)
	{
		if (strcmp(lfirst(lc), pattern) != 0)
			result = lappend(result, lfirst(lc));
	}
	return result;
}

static char *
list_text(List *patterns)
{
	StringInfoData buf;
	ListCell   *lc;

	initStringInfo(&buf);
	foreach(lc, patterns)
		appendStringInfo(&buf, "%s\"%s\"", buf.len > 0 ? ", " : "", (char *) lfirst(lc));
	return buf.data;
}

/* Tables of the pipeline that a pattern fits. */
static List *
tables_that_fit(const CatalogPipeline *pipeline, const char *pattern)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, catalog_table_list(pipeline->id))
	{
		CatalogTable *table = lfirst(lc);

		if (util_pattern_match(pattern, table->source_schema, table->source_table))
			result = lappend(result, table);
	}
	return result;
}

/* ---- what the functions have in common ---- */

/* The pattern, argument 1. */
static char *
table_arg(FunctionCallInfo fcinfo)
{
	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("table must not be null")));
	return text_to_cstring(PG_GETARG_TEXT_PP(1));
}

/*
 * The pipeline, locked against being dropped and against others who change its
 * tables, as it is then. What the caller writes afterwards is taken up.
 */
static CatalogPipeline *
begin_change(FunctionCallInfo fcinfo)
{
	CatalogPipeline *pipeline = api_lock_pipeline(fcinfo);

	catalog_pipeline_ask_tables(pipeline->id);
	return catalog_pipeline_by_id(pipeline->id);
}

static void
end_change(const CatalogPipeline *pipeline)
{
	if (!pipeline->enabled || pipeline->state == CATALOG_PIPELINE_FAILED)
		ereport(NOTICE,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pipeline \"%s\" is not running", pipeline->name),
				 errdetail("Its state is \"%s\"; this takes effect when it is started with cdc_start_pipeline().",
						   catalog_pipeline_state_name(pipeline->state))));
	shmem_wake_at_commit();
}

/* ---- functions ---- */

Datum
cdc_add_table(PG_FUNCTION_ARGS)
{
	CatalogPipeline *pipeline;
	char	   *pattern;
	char	   *exclusion;
	char	   *schema;
	char	   *table;
	const char *excluded_by;
	List	   *patterns;

	PreventCommandIfReadOnly("cdc_add_table()");
	pipeline = begin_change(fcinfo);
	pattern = table_arg(fcinfo);
	api_check_table_pattern(pattern, false);
	if (pipeline->sink == NULL)
		api_check_pattern_target(pipeline, pattern);

	exclusion = psprintf("!%s", pattern);
	patterns = list_without(pipeline->tables, exclusion);
	if (exact_name(pattern, &schema, &table))
	{
		bool		matches = util_patterns_match(patterns, schema, table, &excluded_by);

		if (excluded_by != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("table \"%s\" is left out of pipeline \"%s\" by pattern \"%s\"",
							pattern, pipeline->name, excluded_by),
					 errhint("Remove that pattern first, with cdc_remove_table() and the pattern as it stands there.")));
		if (matches && (pipeline->sink != NULL || tables_that_fit(pipeline, pattern) != NIL))
			ereport(NOTICE,
					(errcode(ERRCODE_DUPLICATE_OBJECT),
					 errmsg("table \"%s\" is in pipeline \"%s\" already", pattern, pipeline->name),
					 errhint("To copy it anew, use cdc_resync_table().")));
		/* a wildcard does not mean tables that tools make for a while */
		if (!matches || (pipeline->sink == NULL && util_helper_table_bases(table) != NIL && !util_patterns_name(patterns, schema, table)))
			patterns = lappend(patterns, pattern);
	}
	else if (!list_has(patterns, pattern))
		patterns = lappend(patterns, pattern);

	if (pipeline->sink != NULL)
	{
		pipeline->tables = patterns;
		api_check_export_tables(pipeline);
	}
	catalog_pipeline_set_tables(pipeline->id, patterns);
	end_change(pipeline);
	PG_RETURN_VOID();
}

/* The list without what is to be removed. */
static List *
patterns_after_removal(const CatalogPipeline *pipeline, const char *pattern)
{
	bool		stands = list_has(pipeline->tables, pattern);
	List	   *patterns = list_without(pipeline->tables, pattern);
	char	   *schema;
	char	   *table;

	if (pattern[0] == '!' && !stands)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("pattern \"%s\" is not in the list of pipeline \"%s\"", pattern, pipeline->name),
				 errdetail("The list has %s.", list_text(pipeline->tables))));
	if (pattern[0] == '!')
		return patterns;

	if (!exact_name(pattern, &schema, &table))
	{
		if (!stands)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("pattern \"%s\" is not in the list of pipeline \"%s\"", pattern, pipeline->name),
					 errdetail("The list has %s.", list_text(pipeline->tables)),
					 errhint("Give a pattern as it stands there, or the name of one table.")));
		return patterns;
	}
	if (util_patterns_match(patterns, schema, table, NULL))
		return lappend(patterns, psprintf("!%s", pattern));
	if (!stands && tables_that_fit(pipeline, pattern) == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("table \"%s\" is not in pipeline \"%s\"", pattern, pipeline->name),
				 errdetail("The list has %s.", list_text(pipeline->tables))));
	return patterns;
}

Datum
cdc_remove_table(PG_FUNCTION_ARGS)
{
	CatalogPipeline *pipeline;
	char	   *pattern;
	List	   *patterns;
	bool		any = false;
	ListCell   *lc;

	PreventCommandIfReadOnly("cdc_remove_table()");
	pipeline = begin_change(fcinfo);
	pattern = table_arg(fcinfo);
	api_check_table_pattern(pattern, true);

	patterns = patterns_after_removal(pipeline, pattern);
	foreach(lc, patterns)
		any |= ((char *) lfirst(lc))[0] != '!';
	if (!any)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("\"%s\" is all that pipeline \"%s\" has", pattern, pipeline->name),
				 errhint("Use cdc_drop_pipeline() to remove the pipeline; its target tables stay.")));

	catalog_pipeline_set_tables(pipeline->id, patterns);
	foreach(lc, catalog_table_list(pipeline->id))
	{
		const CatalogTable *table = lfirst(lc);

		if (!util_patterns_match(patterns, table->source_schema, table->source_table, NULL))
			catalog_table_leave(pipeline->id, table->table_id);
	}
	end_change(pipeline);
	PG_RETURN_VOID();
}

/* Why nothing can be copied anew. */
static _Noreturn void
no_table_fits(const CatalogPipeline *pipeline, const char *pattern)
{
	char	   *schema;
	char	   *table;
	bool		is_meant = list_has(pipeline->tables, pattern) ||
		(exact_name(pattern, &schema, &table) && util_patterns_match(pipeline->tables, schema, table, NULL));

	if (is_meant)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" has not joined pipeline \"%s\" yet", pattern, pipeline->name),
				 errdetail("It is meant by the list, which has %s; but the pipeline has not taken it up, or did not find it at the source.",
						   list_text(pipeline->tables)),
				 errhint("A table is copied when it joins. If the source got it after the list was last matched, call cdc_add_table().")));
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT),
			 errmsg("table \"%s\" is not in pipeline \"%s\"", pattern, pipeline->name),
			 errdetail("The list has %s.", list_text(pipeline->tables)),
			 errhint("Use cdc_add_table() to add one; pg_stat_cdc_table shows those that the pipeline has.")));
}

/* Ask for a new copy of the tables of an outgoing pipeline that fit; false when there are none. */
static bool
ask_export_copies(const CatalogPipeline *pipeline, const char *pattern)
{
	bool		any = false;
	ListCell   *lc;

	foreach(lc, catalog_export_relations(pipeline->tables))
	{
		if (!catalog_export_means(list_make1(unconstify(char *, pattern)), lfirst_oid(lc)))
			continue;
		catalog_export_table_ask(pipeline->id, lfirst_oid(lc));
		any = true;
	}
	return any;
}

Datum
cdc_resync_table(PG_FUNCTION_ARGS)
{
	CatalogPipeline *pipeline;
	char	   *pattern;
	List	   *tables;
	ListCell   *lc;

	PreventCommandIfReadOnly("cdc_resync_table()");
	pipeline = begin_change(fcinfo);
	pattern = table_arg(fcinfo);
	api_check_table_pattern(pattern, false);

	tables = tables_that_fit(pipeline, pattern);
	if (pipeline->sink != NULL ? !ask_export_copies(pipeline, pattern) : tables == NIL)
		no_table_fits(pipeline, pattern);
	foreach(lc, tables)
	{
		const CatalogTable *table = lfirst(lc);

		(void) catalog_table_ask_resync(pipeline->id, table->table_id);
		if (table->keeps_rows)
			catalog_table_set_keeps_rows(pipeline->id, table->table_id, false);
	}
	end_change(pipeline);
	PG_RETURN_VOID();
}
