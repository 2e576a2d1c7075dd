/*-------------------------------------------------------------------------
 *
 * api_check.c
 *	  cdc_check: what this server, or a source server, still needs.
 *
 * NOTES
 *	  Only reads. Without an argument it looks at this server's settings; with
 *	  the name of a SERVER it connects there with the caller's user mapping and
 *	  lets the source check itself. Each line says "ok", "warning" or "error",
 *	  what was found, and a statement to paste.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_user_mapping.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "foreign/foreign.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "api/api.h"
#include "api/api_check.h"
#include "compat/pg_compat.h"
#include "pipeline/budget.h"
#include "pipeline/shmem.h"
#include "source/source.h"
#include "util/util_subtransaction.h"

PG_FUNCTION_INFO_V1(cdc_check);

/* What pipelines need: each runs an ingest worker and at least one snapshot worker, each with an origin. */
typedef struct WorkerPlan
{
	int			pipelines;
	int			least;			/* workers without which tables are not copied */
	int			wanted;			/* with all snapshot workers that were asked for */
} WorkerPlan;

#define LEAST_WORKERS_PER_PIPELINE 2

/* The launcher, this database's manager, and core's own logical replication launcher. */
#define FIXED_WORKERS 3

/* ---- finding a server ---- */

Oid
api_source_server(const char *name, Oid role)
{
	ForeignServer *server = GetForeignServerByName(name, true);

	if (server == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("server \"%s\" does not exist", name),
				 errhint("Use CREATE SERVER %s FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host '...', port '...').",
						 quote_identifier(name))));
	if (strcmp(GetForeignDataWrapper(server->fdwid)->fdwname, "cdc_mysql") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("server \"%s\" is not a source of changes", name),
				 errdetail("Its foreign data wrapper is \"%s\".", GetForeignDataWrapper(server->fdwid)->fdwname),
				 errhint("Use a server of foreign data wrapper cdc_mysql.")));
	if (!cdc_foreign_server_usage(server->serverid, role))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for foreign server %s", name),
				 errhint("Run GRANT USAGE ON FOREIGN SERVER %s TO %s.", quote_identifier(name),
						 quote_identifier(GetUserNameFromId(role, false)))));
	return server->serverid;
}

void
api_check_user_mapping(Oid serverid, const char *server_name, Oid role)
{
	if (!SearchSysCacheExists2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(role), ObjectIdGetDatum(serverid)) &&
		!SearchSysCacheExists2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(InvalidOid), ObjectIdGetDatum(serverid)))
	{
		const char *role_name = GetUserNameFromId(role, false);

		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("user mapping not found for user \"%s\", server \"%s\"", role_name, server_name),
				 errhint("Use CREATE USER MAPPING FOR %s SERVER %s OPTIONS (username '...', password '...').",
						 quote_identifier(role_name), quote_identifier(server_name))));
	}
}

/* ---- lines ---- */

void
api_check_put_line(ReturnSetInfo *rsinfo, const CdcCheckLine *line)
{
	const char *texts[] = {line->check, line->status, line->detail, line->hint};
	Datum		values[lengthof(texts)] = {0};
	bool		nulls[lengthof(texts)];

	for (int i = 0; i < (int) lengthof(texts); i++)
	{
		nulls[i] = texts[i] == NULL;
		if (!nulls[i])
			values[i] = CStringGetTextDatum(texts[i]);
	}
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

void
api_check_put(ReturnSetInfo *rsinfo, const char *check, const char *status, const char *detail, const char *hint)
{
	CdcCheckLine line = {.check = check,.status = status,.detail = detail,.hint = hint};

	api_check_put_line(rsinfo, &line);
}

/* ---- this server ---- */

/* The list that shared_preload_libraries should be, each name quoted. */
static char *
preload_list(void)
{
	StringInfoData buf;
	List	   *names = NIL;
	ListCell   *lc;

	initStringInfo(&buf);
	if (SplitDirectoriesString(pstrdup(shared_preload_libraries_string ? shared_preload_libraries_string : ""),
							   ',', &names))
	{
		foreach(lc, names)
			appendStringInfo(&buf, "%s, ", quote_literal_cstr((char *) lfirst(lc)));
	}
	appendStringInfoString(&buf, "'cdc_bridge'");
	return buf.data;
}

static void
check_preload(ReturnSetInfo *rsinfo)
{
	if (shmem_is_available())
		api_check_put(rsinfo, "shared_preload_libraries", "ok", "cdc_bridge is loaded at server start.", NULL);
	else
		api_check_put(rsinfo, "shared_preload_libraries", "error",
			"cdc_bridge is not loaded at server start, so pipelines cannot run.",
			psprintf("ALTER SYSTEM SET shared_preload_libraries = %s; then restart the server", preload_list()));
}

/* Pipelines that should run in this database, and at least one: the one that is about to be made. */
static WorkerPlan
plan_workers(void)
{
	const CatalogPipeline next = {0};
	WorkerPlan	plan = {0};
	ListCell   *lc;

	foreach(lc, catalog_pipeline_list())
	{
		const CatalogPipeline *pipeline = lfirst(lc);

		if (!pipeline->enabled)
			continue;
		plan.pipelines++;
		plan.wanted += budget_workers_of(pipeline);
	}
	if (plan.pipelines == 0)
	{
		plan.pipelines = 1;
		plan.wanted = budget_workers_of(&next);
	}
	plan.least = plan.pipelines * LEAST_WORKERS_PER_PIPELINE;
	return plan;
}

static void
check_workers(ReturnSetInfo *rsinfo, const WorkerPlan *plan)
{
	int			wanted = FIXED_WORKERS + plan->wanted;
	int			available = max_worker_processes - max_parallel_workers;
	char	   *detail = psprintf("max_worker_processes is %d, of which parallel queries may take %d; "
								  "pipelines to run in this database: %d, which with what goes with them need %d.",
								  max_worker_processes, Min(max_parallel_workers, max_worker_processes),
								  plan->pipelines, wanted);

	if (max_worker_processes < FIXED_WORKERS + plan->least)
		api_check_put(rsinfo, "max_worker_processes", "error", detail,
			psprintf("ALTER SYSTEM SET max_worker_processes = %d; then restart the server",
					 max_parallel_workers + wanted));
	else if (available < wanted)
		api_check_put(rsinfo, "max_worker_processes", "warning", detail,
			psprintf("ALTER SYSTEM SET max_worker_processes = %d; then restart the server",
					 max_parallel_workers + wanted));
	else
		api_check_put(rsinfo, "max_worker_processes", "ok", detail, NULL);
}

static void
check_origins(ReturnSetInfo *rsinfo, const WorkerPlan *plan)
{
	const char *text = GetConfigOption(CDC_ORIGIN_LIMIT_SETTING, true, false);
	int			limit = text != NULL ? atoi(text) : 0;
	int			wanted = plan->wanted;
	char	   *detail = psprintf("%s is %d; pipelines to run in this database: %d, which need %d replication origins.",
								  CDC_ORIGIN_LIMIT_SETTING, limit, plan->pipelines, wanted);

	if (limit >= wanted)
		api_check_put(rsinfo, CDC_ORIGIN_LIMIT_SETTING, "ok", detail, NULL);
	else
		api_check_put(rsinfo, CDC_ORIGIN_LIMIT_SETTING, limit < plan->least ? "error" : "warning", detail,
			psprintf("ALTER SYSTEM SET %s = %d; then restart the server", CDC_ORIGIN_LIMIT_SETTING, wanted + 8));
}

static void
check_encoding(ReturnSetInfo *rsinfo)
{
	char	   *detail = psprintf("The encoding of this database is %s.", GetDatabaseEncodingName());

	if (GetDatabaseEncoding() == PG_UTF8)
		api_check_put(rsinfo, "encoding", "ok", detail, NULL);
	else
		api_check_put(rsinfo, "encoding", "error", detail, "CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0");
}

static void
check_wal_level(ReturnSetInfo *rsinfo)
{
	api_check_put(rsinfo, "wal_level", "ok",
		psprintf("wal_level is %s; bringing changes in works with any.",
				 GetConfigOption("wal_level", false, false)), NULL);
}

/* Can workers connect as that role? Says so in one line. */
void
api_check_role(ReturnSetInfo *rsinfo, Oid role)
{
	const char *name = GetUserNameFromId(role, false);
	HeapTuple	tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(role));
	bool		can_login = HeapTupleIsValid(tuple) && ((Form_pg_authid) GETSTRUCT(tuple))->rolcanlogin;

	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);

	if (CDC_NEEDS_ROLE_LOGIN && !can_login)
		api_check_put(rsinfo, "role", "error",
			psprintf("Workers connect as the owner of the pipeline, and role %s may not log in.", name),
			psprintf("ALTER ROLE %s LOGIN", quote_identifier(name)));
	else if (!cdc_database_connect(MyDatabaseId, role))
		api_check_put(rsinfo, "role", "error",
			psprintf("Workers connect as the owner of the pipeline, and role %s may not connect to this database.", name),
			psprintf("GRANT CONNECT ON DATABASE ... TO %s", quote_identifier(name)));
	else
		api_check_put(rsinfo, "role", "ok", psprintf("Workers of pipelines that belong to role %s can connect.", name), NULL);
}

static void
check_this_server(ReturnSetInfo *rsinfo)
{
	WorkerPlan	plan = plan_workers();

	check_preload(rsinfo);
	check_wal_level(rsinfo);
	check_workers(rsinfo, &plan);
	check_origins(rsinfo, &plan);
	check_encoding(rsinfo);
	api_check_standbys(rsinfo);
	api_check_role(rsinfo, GetUserId());	/* who will own the pipelines that he makes */
}

/* ---- steps that may fail ---- */

/* An error that ends a step is its last line. */
static CdcCheckLine *
line_of_error(const char *check, const ErrorData *edata)
{
	return source_check_line(check, "error",
							 edata->detail != NULL ? psprintf("%s. %s", edata->message, edata->detail) : pstrdup(edata->message),
							 edata->hint != NULL ? pstrdup(edata->hint) : NULL);
}

typedef struct TryCheck
{
	ApiCheckStep step;
	void	   *arg;
	List	   *lines;
} TryCheck;

static void
try_step(void *arg)
{
	TryCheck   *try = arg;

	try->lines = try->step(try->arg);
}

List *
api_check_try(const char *check, ApiCheckStep step, void *arg)
{
	TryCheck	try = {step, arg, NIL};
	/* a check leaves nothing behind, locks neither */
	ErrorData  *edata = util_subtransaction(try_step, &try, false);

	if (edata == NULL)
		return try.lines;
	/* somebody wants us to stop */
	if (edata->sqlerrcode == ERRCODE_QUERY_CANCELED ||
		ERRCODE_TO_CATEGORY(edata->sqlerrcode) == ERRCODE_OPERATOR_INTERVENTION)
		ReThrowError(edata);
	return list_make1(line_of_error(check, edata));
}

/* ---- a source server ---- */

List *
api_check_ask_source(void *arg)
{
	const ApiCheckSource *ask = arg;
	MysqlEndpoint *endpoint = mysql_endpoint_load(ask->serverid, ask->role);
	CdcSource  *source = source_mysql_create(endpoint, ask->pipeline_id, ask->want, ask->want_arg);
	List	   *volatile lines = NIL;

	PG_TRY();
	{
		lines = cdc_source_check(source);
	}
	PG_FINALLY();
	{
		cdc_source_close(source);
	}
	PG_END_TRY();
	return lines;
}

/* In a step of its own, so that a server that cannot be reached is a line of the result rather than the end of it. */
static void
check_source(ReturnSetInfo *rsinfo, const char *name)
{
	ApiCheckSource ask = {.serverid = api_source_server(name, GetUserId()),.role = GetUserId()};
	ListCell   *lc;

	api_check_user_mapping(ask.serverid, name, GetUserId());
	foreach(lc, api_check_try("connection", api_check_ask_source, &ask))
		api_check_put_line(rsinfo, lfirst(lc));
}

Datum
cdc_check(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	if (PG_ARGISNULL(0))
		check_this_server(rsinfo);
	else
		check_source(rsinfo, text_to_cstring(PG_GETARG_TEXT_PP(0)));
	return (Datum) 0;
}
