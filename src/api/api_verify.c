/*-------------------------------------------------------------------------
 *
 * api_verify.c
 *	  cdc_verify, cdc_cancel_verify, cdc_wait_for_verify, cdc_verify_differences
 *	  and the function behind pg_stat_cdc_verify.
 *
 * NOTES
 *	  cdc_verify only writes a request; the pipeline's maintenance worker does it
 *	  after the commit. Who asks, cancels, or reads keys of rows needs the
 *	  privileges of the pipeline's owner; the view shows counts to whoever may see
 *	  the pipeline.
 *
 *	  cdc_wait_for_verify is a procedure for the same reason as
 *	  cdc_wait_for_pipeline: it ends its transaction between two looks.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "api/api.h"
#include "catalog/catalog_lock.h"
#include "catalog/catalog_verify.h"
#include "mysql/mysql_server.h"
#include "pipeline/shmem.h"
#include "util/util_name.h"
#include "util/util_pattern.h"

PG_FUNCTION_INFO_V1(cdc_verify);
PG_FUNCTION_INFO_V1(cdc_cancel_verify);
PG_FUNCTION_INFO_V1(cdc_wait_for_verify);
PG_FUNCTION_INFO_V1(cdc_verify_differences);
PG_FUNCTION_INFO_V1(cdc_stat_verify);

static void
check_owner(const CatalogPipeline *pipeline)
{
	if (!has_privs_of_role(GetUserId(), pipeline->owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of pipeline %s", pipeline->name)));
}

static bool
is_open(const CatalogVerify *verify)
{
	return verify->state == CATALOG_VERIFY_QUEUED || verify->state == CATALOG_VERIFY_RUNNING;
}

static _Noreturn void
no_request(int64 request)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT),
			 errmsg("verification " INT64_FORMAT " does not exist", request),
			 errhint("cdc_verify() returns its number; of each pipeline the newest %d that have ended are kept.",
					 CATALOG_VERIFY_KEPT)));
}

/* Throws when there is no such request. */
static CatalogVerify *
request_arg(FunctionCallInfo fcinfo)
{
	CatalogVerify *verify;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("number of the verification must not be null")));
	verify = catalog_verify_by_number(PG_GETARG_INT64(0));
	if (verify == NULL)
		no_request(PG_GETARG_INT64(0));
	return verify;
}

/* ---- asking ---- */

static char *
mode_arg(FunctionCallInfo fcinfo, int n)
{
	char	   *mode = PG_ARGISNULL(n) ? pstrdup("full") : text_to_cstring(PG_GETARG_TEXT_PP(n));

	if (strcmp(mode, "count") != 0 && strcmp(mode, "sample") != 0 && strcmp(mode, "full") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unrecognized mode \"%s\"", mode),
				 errhint("Valid modes are: count, sample, full.")));
	return mode;
}

/* The patterns as given; each has to fit some table of the pipeline. */
static List *
tables_arg(FunctionCallInfo fcinfo, int n, const CatalogPipeline *pipeline)
{
	List	   *tables = catalog_table_list(pipeline->id);
	List	   *result = api_list_arg(fcinfo, n, TEXTOID, "tables");
	ListCell   *lc;

	foreach(lc, result)
	{
		const char *pattern = lfirst(lc);
		bool		fits = false;
		ListCell   *lc2;

		foreach(lc2, tables)
		{
			const CatalogTable *table = lfirst(lc2);

			fits |= util_pattern_match(pattern, table->source_schema, table->source_table);
		}
		if (!fits)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_TABLE),
					 errmsg("no table of pipeline \"%s\" fits \"%s\"", pipeline->name, pattern),
					 errdetail("A pattern has the form schema.table, with the names that the table has at the source; * stands for any characters, ? for one."),
					 errhint("pg_stat_cdc_table shows the pipeline's tables.")));
	}
	return result;
}

Datum
cdc_verify(PG_FUNCTION_ARGS)
{
	CatalogVerify verify = {0};
	CatalogPipeline *pipeline;
	char	   *name;

	PreventCommandIfReadOnly("cdc_verify()");
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("pipeline name must not be null")));
	name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	pipeline = catalog_pipeline_by_name(name);
	if (pipeline == NULL)
		api_no_pipeline(name, NULL);
	check_owner(pipeline);
	api_check_incoming(pipeline, "cdc_verify()");

	/* so that it is not dropped under the request */
	catalog_lock_pipeline(pipeline->id, ShareLock, false);
	pipeline = catalog_pipeline_by_id(pipeline->id);
	if (pipeline == NULL)
		api_no_pipeline(name, NULL);

	verify.pipeline_id = pipeline->id;
	verify.mode = mode_arg(fcinfo, 2);
	verify.tables = tables_arg(fcinfo, 1, pipeline);
	verify.requested_by = GetUserId();
	catalog_verify_insert(&verify);
	if (!pipeline->enabled || pipeline->state == CATALOG_PIPELINE_FAILED)
		ereport(NOTICE,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("verification " INT64_FORMAT " waits until pipeline \"%s\" runs", verify.request, name),
				 errhint("Start it with cdc_start_pipeline().")));
	if (shmem_is_available())
		shmem_wake_at_commit();
	PG_RETURN_INT64(verify.request);
}

Datum
cdc_cancel_verify(PG_FUNCTION_ARGS)
{
	CatalogVerify *verify = request_arg(fcinfo);
	CatalogPipeline *pipeline = catalog_pipeline_by_id(verify->pipeline_id);

	PreventCommandIfReadOnly("cdc_cancel_verify()");
	if (pipeline == NULL)
		no_request(verify->request);
	check_owner(pipeline);
	if (!catalog_verify_set_state(verify->pipeline_id, verify->request, CATALOG_VERIFY_CANCELLED, NULL))
		ereport(NOTICE,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("verification " INT64_FORMAT " has already ended", verify->request)));
	PG_RETURN_VOID();
}

/* ---- waiting ---- */

/* One look: true when it has ended well; throws when it cannot any more, or deadline has passed. */
static bool
look(const void *what, TimestampTz deadline)
{
	int64		number = *(const int64 *) what;
	CatalogVerify *verify = catalog_verify_by_number(number);
	CatalogPipeline *pipeline = verify == NULL ? NULL : catalog_pipeline_by_id(verify->pipeline_id);

	if (pipeline == NULL || !api_may_see(pipeline))
		no_request(number);
	switch (verify->state)
	{
		case CATALOG_VERIFY_DONE:
			return true;
		case CATALOG_VERIFY_FAILED:
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("verification " INT64_FORMAT " has failed", number),
					 verify->last_error.message == NULL ? 0 : errdetail("%s", verify->last_error.message),
					 verify->last_error.hint == NULL ? 0 : errhint("%s", verify->last_error.hint)));
			break;
		case CATALOG_VERIFY_CANCELLED:
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("verification " INT64_FORMAT " was cancelled", number)));
			break;
		default:
			break;
	}
	if (!pipeline->enabled || pipeline->state == CATALOG_PIPELINE_FAILED)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 pipeline->enabled ? errmsg("pipeline \"%s\" has failed", pipeline->name)
				 : errmsg("pipeline \"%s\" is stopped", pipeline->name),
				 errdetail("Verification " INT64_FORMAT " waits until it runs.", number),
				 errhint("Start it with cdc_start_pipeline().")));
	if (deadline != 0 && GetCurrentTimestamp() >= deadline)
		ereport(ERROR,
				(errcode(ERRCODE_QUERY_CANCELED),
				 errmsg("verification " INT64_FORMAT " did not end in time", number),
				 errdetail("Its state is \"%s\".", catalog_verify_state_name(verify->state)),
				 errhint("pg_stat_cdc_verify shows how far it is.")));
	return false;
}

Datum
cdc_wait_for_verify(PG_FUNCTION_ARGS)
{
	int64		number;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("number of the verification must not be null")));
	api_wait_begin(fcinfo, "cdc_wait_for_verify");
	number = PG_GETARG_INT64(0);
	api_wait_until(fcinfo, 1, look, &number);
	PG_RETURN_VOID();
}

/* ---- results ---- */

static Datum
text_datum(const char *text, bool *isnull)
{
	*isnull = text == NULL;
	return text == NULL ? (Datum) 0 : CStringGetTextDatum(text);
}

static Datum
time_datum(TimestampTz time, bool *isnull)
{
	*isnull = time == 0;
	return TimestampTzGetDatum(time);
}

static Datum
array_datum(List *list, bool *isnull)
{
	*isnull = list == NIL;
	return util_text_array(list);
}

static void
put(ReturnSetInfo *rsinfo, int n, Datum *values, bool *nulls)
{
	if (n != rsinfo->setDesc->natts)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the library and the SQL objects of cdc_bridge are of different versions"),
				 errhint("Restart the server, or run ALTER EXTENSION cdc_bridge UPDATE.")));
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

Datum
cdc_verify_differences(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	CatalogVerify *verify = request_arg(fcinfo);
	CatalogPipeline *pipeline = catalog_pipeline_by_id(verify->pipeline_id);
	List	   *tables;
	ListCell   *lc;

	if (pipeline == NULL)
		no_request(verify->request);
	check_owner(pipeline);

	InitMaterializedSRF(fcinfo, 0);
	tables = catalog_verify_tables(verify->pipeline_id, verify->request);
	foreach(lc, catalog_verify_differences(verify->pipeline_id, verify->request))
	{
		const CatalogVerifyDifference *difference = lfirst(lc);
		const CatalogVerifyTable *table = NULL;
		Datum		values[8];
		bool		nulls[8];
		int			n = 0;
		ListCell   *lc2;

		CHECK_FOR_INTERRUPTS();
		foreach(lc2, tables)
		{
			if (((CatalogVerifyTable *) lfirst(lc2))->table_id == difference->table_id)
				table = lfirst(lc2);
		}
		if (table == NULL)
			continue;
#define PUT_TEXT(text) (values[n] = text_datum(text, &nulls[n]), n++)
		PUT_TEXT(table->source_schema);
		PUT_TEXT(table->source_table);
		PUT_TEXT(table->target_schema);
		PUT_TEXT(table->target_table);
		PUT_TEXT(difference->kind);
		values[n] = array_datum(difference->key, &nulls[n]);
		n++;
		values[n] = array_datum(difference->columns, &nulls[n]);
		n++;
		values[n] = Int64GetDatum(difference->rows);
		nulls[n++] = false;
		put(rsinfo, n, values, nulls);
	}
	return (Datum) 0;
}

/* State of a table for people: what its request's state says about one that has not ended. */
static const char *
table_state_text(const CatalogVerify *verify, const CatalogVerifyTable *table, bool has_worker)
{
	if (table->state != CATALOG_VERIFY_QUEUED && table->state != CATALOG_VERIFY_RUNNING)
		return catalog_verify_state_name(table->state);
	if (!is_open(verify))
		return catalog_verify_state_name(verify->state);
	return catalog_verify_state_name(has_worker ? table->state : CATALOG_VERIFY_QUEUED);
}

/* One row; table is NULL while the request has none. */
static void
put_verify(ReturnSetInfo *rsinfo, const CatalogPipeline *pipeline, const CatalogVerify *verify,
		   const CatalogVerifyTable *table, int pid)
{
	const bool	has_worker = pid != 0 && verify->state == CATALOG_VERIFY_RUNNING;
	const CatalogVerifyState state = verify->state == CATALOG_VERIFY_RUNNING && !has_worker
		? CATALOG_VERIFY_QUEUED : verify->state;
	Datum		values[31];
	bool		nulls[31] = {0};
	int			n = 0;
	const int64 counts[] = {
		table ? table->rows_source : 0, table ? table->rows_target : 0, table ? table->missing : 0,
		table ? table->extra : 0, table ? table->different : 0, table ? table->unsettled : 0
	};

	values[n++] = Int64GetDatum(verify->request);
	PUT_TEXT(pipeline->name);
	PUT_TEXT(verify->mode);
	PUT_TEXT(catalog_verify_state_name(state));
	PUT_TEXT(table ? table->source_schema : NULL);
	PUT_TEXT(table ? table->source_table : NULL);
	PUT_TEXT(table ? table->target_schema : NULL);
	PUT_TEXT(table ? table->target_table : NULL);
	PUT_TEXT(table ? table_state_text(verify, table, has_worker) : catalog_verify_state_name(state));
	PUT_TEXT(table ? table->reason : NULL);
	for (int i = 0; i < (int) lengthof(counts); i++)
		values[n++] = Int64GetDatum(counts[i]);
	values[n++] = Int32GetDatum(table ? table->chunks : 0);
	values[n++] = Int32GetDatum(table ? table->chunks_by_sum : 0);
	values[n++] = Int64GetDatum(table ? table->rows_read : 0);
	PUT_TEXT(table ? table->method : NULL);
	nulls[n] = nulls[n + 1] = table == NULL || !cdc_position_is_known(&table->position);
	values[n] = nulls[n] ? (Datum) 0 : CStringGetTextDatum(table->position.file);
	values[n + 1] = nulls[n] ? (Datum) 0 : Int64GetDatum((int64) table->position.offset);
	n += 2;
	values[n++] = ObjectIdGetDatum(verify->requested_by);
	values[n++] = TimestampTzGetDatum(verify->requested_at);
	values[n] = time_datum(table ? table->started_at : verify->started_at, &nulls[n]);
	n++;
	values[n] = time_datum(table ? table->finished_at : verify->finished_at, &nulls[n]);
	n++;
	values[n] = Int32GetDatum(pid);
	nulls[n] = !has_worker || (table != NULL && table->state != CATALOG_VERIFY_RUNNING);
	n++;
	PUT_TEXT(verify->last_error.message);
	PUT_TEXT(verify->last_error.sqlstate);
	PUT_TEXT(verify->last_error.detail);
	PUT_TEXT(verify->last_error.hint);
	put(rsinfo, n, values, nulls);
}

Datum
cdc_stat_verify(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);
	foreach(lc, catalog_pipeline_list())
	{
		const CatalogPipeline *pipeline = lfirst(lc);
		ShmemPipelineStat stat;
		ListCell   *lc2;

		if (!api_may_see(pipeline))
			continue;
		(void) shmem_pipeline_stat(pipeline->id, &stat);
		foreach(lc2, catalog_verify_list(pipeline->id))
		{
			const CatalogVerify *verify = lfirst(lc2);
			List	   *tables = catalog_verify_tables(pipeline->id, verify->request);
			ListCell   *lc3;

			if (tables == NIL)
				put_verify(rsinfo, pipeline, verify, NULL, stat.maintenance_pid);
			foreach(lc3, tables)
			{
				CHECK_FOR_INTERRUPTS();
				put_verify(rsinfo, pipeline, verify, lfirst(lc3), stat.maintenance_pid);
			}
		}
	}
	return (Datum) 0;
}
