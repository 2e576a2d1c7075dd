/*-------------------------------------------------------------------------
 *
 * api_pipeline.c
 *	  cdc_create_pipeline, cdc_start_pipeline, cdc_stop_pipeline,
 *	  cdc_drop_pipeline.
 *
 * NOTES
 *	  They change rows of cdc_bridge.* and ask for a wake-up at commit; nothing
 *	  outside this database, so ROLLBACK undoes all of it. The one thing that
 *	  happens at once is that drop makes the pipeline's workers leave: a
 *	  rolled-back drop has only restarted them.
 *
 *	  Whoever creates a pipeline owns it, and its workers run as him. So he needs
 *	  what they will need: USAGE on the server, a user mapping, CREATE where the
 *	  tables go. Starting, stopping and dropping need the privileges of the
 *	  owner. EXECUTE on the functions is not for PUBLIC.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/catalog.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "api/api.h"
#include "catalog/catalog_export.h"
#include "catalog/catalog_lock.h"
#include "compat/pg_compat.h"
#include "decode/decode.h"
#include "pipeline/budget.h"
#include "pipeline/export_plugin.h"
#include "pipeline/shmem.h"
#include "schema/type_map.h"
#include "snapshot/snapshot.h"
#include "transform/transform_route.h"
#include "transform/transform_rule.h"
#include "util/util_fingerprint.h"
#include "util/util_pattern.h"

PG_FUNCTION_INFO_V1(cdc_create_pipeline);
PG_FUNCTION_INFO_V1(cdc_start_pipeline);
PG_FUNCTION_INFO_V1(cdc_stop_pipeline);
PG_FUNCTION_INFO_V1(cdc_drop_pipeline);

bool
api_may_see(const CatalogPipeline *pipeline)
{
	return has_privs_of_role(GetUserId(), pipeline->owner) ||
		has_privs_of_role(GetUserId(), ROLE_PG_MONITOR);
}

void
api_no_pipeline(const char *name, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT),
			 errmsg("pipeline \"%s\" does not exist", name),
			 hint != NULL ? errhint("%s", hint) : 0));
}

bool
api_pipeline_is_waiting(const CatalogPipeline *pipeline)
{
	return pipeline->enabled && pipeline->state != CATALOG_PIPELINE_FAILED && !shmem_may_run(pipeline->server_start);
}

/* ---- arguments ---- */

char *
api_text_arg(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(n));
}

/* The pipeline's name, argument 0 of every function here. */
char *
api_name_arg(FunctionCallInfo fcinfo)
{
	char	   *name = api_text_arg(fcinfo, 0);

	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("pipeline name must not be null")));
	return name;
}

/* The elements of an array argument that is not null, as text; NULL for one that is null. */
static List *
array_elements(FunctionCallInfo fcinfo, int n, Oid type)
{
	List	   *result = NIL;
	Datum	   *elems;
	bool	   *nulls;
	int			count;

	if (type == TEXTOID)
		deconstruct_array(PG_GETARG_ARRAYTYPE_P(n), TEXTOID, -1, false, TYPALIGN_INT, &elems, &nulls, &count);
	else
		deconstruct_array(PG_GETARG_ARRAYTYPE_P(n), INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &elems, &nulls, &count);
	for (int i = 0; i < count; i++)
		result = lappend(result, nulls[i] ? NULL :
						 type == TEXTOID ? TextDatumGetCString(elems[i]) : psprintf(INT64_FORMAT, DatumGetInt64(elems[i])));
	return result;
}

List *
api_list_arg(FunctionCallInfo fcinfo, int n, Oid type, const char *what)
{
	List	   *result;

	if (PG_ARGISNULL(n))
		return NIL;
	result = array_elements(fcinfo, n, type);
	if (result == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("no %s are given", what),
				 errhint("Leave \"%s\" out for all of them.", what)));
	if (list_member_ptr(result, NULL))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("\"%s\" must not contain nulls", what)));
	return result;
}

/* The definition as given; id, owner and state are the caller's to fill. */
static CatalogPipeline *
definition_args(FunctionCallInfo fcinfo, char *name)
{
	CatalogPipeline *def = palloc0(sizeof(CatalogPipeline));

	def->name = name;
	def->source = api_text_arg(fcinfo, 1);
	def->tables = PG_ARGISNULL(2) ? NIL : array_elements(fcinfo, 2, TEXTOID);
	def->target_schema = api_text_arg(fcinfo, 3);
	def->sink = api_text_arg(fcinfo, 4);
	def->options = PG_ARGISNULL(5) ? (Datum) 0 : PG_GETARG_DATUM(5);
	def->owner = GetUserId();
	return def;
}

static bool
definition_is_given(FunctionCallInfo fcinfo)
{
	for (int i = 1; i <= 5; i++)
	{
		if (!PG_ARGISNULL(i))
			return true;
	}
	return false;
}

/* ---- checks of a definition ---- */

static void
check_name(const char *name)
{
	if (name[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("pipeline name must not be empty")));
	if (strlen(name) >= NAMEDATALEN)
		ereport(ERROR,
				(errcode(ERRCODE_NAME_TOO_LONG),
				 errmsg("pipeline name \"%s\" is too long", name),
				 errdetail("A name has at most %d bytes.", NAMEDATALEN - 1)));
}

void
api_check_sides(const CatalogPipeline *def)
{
	if (def->source != NULL && def->sink != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("pipeline \"%s\" cannot have both a source and a sink", def->name),
				 errdetail("One side of every pipeline is this database."),
				 errhint("Make two: one with the source, which brings changes into tables of this database, and one with the sink, which ships the changes of these tables.")));
	if (def->source == NULL && def->sink == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("pipeline \"%s\" has neither a source nor a sink", def->name),
				 errhint("Give \"source\", the name of a cdc_mysql server, or \"sink\", the name of a cdc_file server.")));
	if (def->source != NULL && def->source[0] == '{')
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("pipelines with several sources are not built yet"),
				 errhint("Make one pipeline per source server: cdc_start_pipeline(..., source => 's1', ...), cdc_start_pipeline(..., source => 's2', ...). Tables of both go to one target with routes that have \"merge\".")));
	if (def->sink != NULL && def->target_schema != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("pipeline \"%s\" cannot have a target schema", def->name),
				 errdetail("It ships changes out of this database, under the names of their tables."),
				 errhint("Leave \"target_schema\" out.")));
}

void
api_check_incoming(const CatalogPipeline *pipeline, const char *function)
{
	if (pipeline->sink != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("pipeline \"%s\" ships changes out of this database", pipeline->name),
				 errdetail("%s is for pipelines that have a source.", function)));
}

void
api_check_table_pattern(const char *pattern, bool may_exclude)
{
	bool		excludes = pattern != NULL && pattern[0] == '!';

	if (pattern == NULL || !util_pattern_is_valid(pattern))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 pattern != NULL ? errmsg("invalid table pattern \"%s\"", pattern)
				 : errmsg("table pattern must not be null"),
				 errdetail("A pattern has the form schema.table; * stands for any characters, ? for one."),
				 errhint("For all tables of schema shop use '{shop.*}'.")));
	if (excludes && !may_exclude)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("pattern \"%s\" leaves tables out", pattern),
				 errhint("To leave a table out, use cdc_remove_table() with its name.")));
}

static void
check_tables(const CatalogPipeline *def)
{
	bool		any = false;
	ListCell   *lc;

	foreach(lc, def->tables)
	{
		const char *pattern = lfirst(lc);

		api_check_table_pattern(pattern, true);
		any |= pattern[0] != '!';
	}
	if (!any)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("pipeline \"%s\" has no tables", def->name),
				 errhint("Give \"tables\", a list of patterns like '{shop.*}' or '{shop.orders,shop.items}'.")));
}

/* Could the owner make tables in that schema, or make the schema? */
static void
check_target(const CatalogPipeline *def, const char *schema)
{
	Oid			nsp;

	if (schema[0] == '\0' || strlen(schema) >= NAMEDATALEN)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_SCHEMA_NAME),
				 errmsg("invalid target schema \"%s\"", schema),
				 errdetail("A name has between 1 and %d bytes.", NAMEDATALEN - 1)));
	if (strcmp(schema, "cdc_bridge") == 0 || strcmp(schema, "information_schema") == 0 ||
		strncmp(schema, "pg_", 3) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_RESERVED_NAME),
				 errmsg("schema \"%s\" cannot be the target of pipeline \"%s\"", schema, def->name),
				 errdetail("It belongs to the system."),
				 errhint("Give another \"target_schema\", or another schema with the option \"routes\".")));

	nsp = get_namespace_oid(schema, true);
	if (OidIsValid(nsp) ? cdc_namespace_create(nsp, def->owner) : cdc_database_create(MyDatabaseId, def->owner))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 OidIsValid(nsp) ? errmsg("permission denied for schema %s", schema)
			 : errmsg("permission denied for database %s", get_database_name(MyDatabaseId)),
			 errdetail("The owner of pipeline \"%s\" needs CREATE there, because its tables are made in schema \"%s\".",
					   def->name, schema),
			 OidIsValid(nsp) ? errhint("Run GRANT CREATE ON SCHEMA %s TO %s.", quote_identifier(schema),
									   quote_identifier(GetUserNameFromId(def->owner, false)))
			 : errhint("Run CREATE SCHEMA %s AUTHORIZATION %s.", quote_identifier(schema),
					   quote_identifier(GetUserNameFromId(def->owner, false)))));
}

void
api_check_pattern_target(const CatalogPipeline *pipeline, const char *pattern)
{
	TransformRoutes *routes = transform_routes_read(pipeline);
	char	   *schema;
	char	   *table;
	char	   *target_table;

	if (pipeline->target_schema != NULL && !transform_has_routes(routes))
	{
		check_target(pipeline, pipeline->target_schema);
		return;
	}
	util_pattern_names(pattern, &schema, &table);
	/* with routes only whole names tell where they go; without, all tables of a schema go to the same */
	if (schema == NULL || (table == NULL && transform_has_routes(routes)))
		return;
	(void) transform_route_target(routes, schema, table != NULL ? table : "", &schema, &target_table, NULL);
	check_target(pipeline, schema);
}

/* Where the tables will go, as far as that is known before anybody has asked the source. */
void
api_check_targets(const CatalogPipeline *def)
{
	TransformRoutes *routes = transform_routes_read(def);
	ListCell   *lc;

	foreach(lc, transform_route_schemas(routes))
		check_target(def, lfirst(lc));
	foreach(lc, def->tables)
	{
		const char *pattern = lfirst(lc);

		if (pattern[0] != '!')
			api_check_pattern_target(def, pattern);
	}
}

void
api_check_options(const CatalogPipeline *pipeline)
{
	catalog_pipeline_options_check(pipeline);
	if (pipeline->sink != NULL && !CDC_HAS_FAILOVER_SLOTS && catalog_export_bool(pipeline, "failover"))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("option \"failover\" of pipeline \"%s\" needs PostgreSQL 17 or later", pipeline->name),
				 errdetail("This server gives its standbys no copies of logical replication slots."),
				 errhint("Leave it out: where a standby is promoted the pipeline has lost its slot, and says so.")));
	if (pipeline->sink != NULL)
		decode_options_check(export_plugin_options(pipeline));
	else
	{
		schema_overrides_check(catalog_pipeline_option(pipeline, "column_types"));
		(void) transform_routes_read(pipeline);
		transform_rules_check(catalog_pipeline_option(pipeline, TRANSFORM_OPTION), false);
	}
}

/* Values come in UTF-8 and are not converted. */
static void
check_encoding(void)
{
	if (GetDatabaseEncoding() != PG_UTF8)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("pipelines need a database with encoding UTF8"),
				 errdetail("The encoding of this database is %s.", GetDatabaseEncodingName()),
				 errhint("Make one with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0.")));
}

/* Check a definition and write it, stopped. Returns the pipeline's number. */
static int32
create(const CatalogPipeline *def)
{
	int32		id;

	check_encoding();
	check_name(def->name);
	api_check_sides(def);
	check_tables(def);
	api_check_options(def);
	if (catalog_pipeline_by_name(def->name) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("pipeline \"%s\" already exists", def->name),
				 errhint("To start it, call cdc_start_pipeline() with its name alone.")));
	if (def->sink != NULL)
	{
		api_check_sink(def);
		api_check_export_tables(def);
	}
	else
	{
		api_check_user_mapping(api_source_server(def->source, def->owner), def->source, def->owner);
		api_check_targets(def);
	}

	id = catalog_pipeline_insert(def);
	catalog_lock_pipeline(id, AccessExclusiveLock, false);
	return id;
}

/* ---- finding ---- */

void
api_check_owner(const CatalogPipeline *pipeline)
{
	if (!has_privs_of_role(GetUserId(), pipeline->owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of pipeline %s", pipeline->name)));
}

CatalogPipeline *
api_lock_for_change(const char *name)
{
	CatalogPipeline *pipeline = catalog_pipeline_by_name(name);

	if (pipeline == NULL)
		return NULL;
	api_check_owner(pipeline);
	catalog_lock_pipeline(pipeline->id, ShareLock, false);
	return catalog_pipeline_by_id(pipeline->id);
}

CatalogPipeline *
api_lock_pipeline(FunctionCallInfo fcinfo)
{
	char	   *name = api_name_arg(fcinfo);
	CatalogPipeline *pipeline = api_lock_for_change(name);

	if (pipeline == NULL)
		api_no_pipeline(name, NULL);
	return pipeline;
}

static void
check_preloaded(void)
{
	if (!shmem_is_available())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cdc_bridge is not loaded at server start"),
				 errhint("Add cdc_bridge to \"shared_preload_libraries\" and restart the server.")));
}

/* Tell at once what its workers would run into. */
static void
warn_of_short_budgets(const char *name, int32 id)
{
	for (int kind = 0; kind < BUDGET_KINDS; kind++)
	{
		Budget		budget;

		budget_read(kind, id, &budget);
		if (budget.needed > 0 && budget_is_short(&budget))
			ereport(WARNING,
					(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
					 errmsg("%s may be too low for pipeline \"%s\"", budget.setting, name),
					 errdetail_internal("%s", budget_detail(&budget)),
					 errhint("%s", budget_hint(&budget))));
	}
}

/* ---- functions ---- */

Datum
cdc_create_pipeline(PG_FUNCTION_ARGS)
{
	PreventCommandIfReadOnly("cdc_create_pipeline()");
	(void) create(definition_args(fcinfo, api_name_arg(fcinfo)));
	PG_RETURN_VOID();
}

Datum
cdc_start_pipeline(PG_FUNCTION_ARGS)
{
	char	   *name = api_name_arg(fcinfo);
	int32		id;

	PreventCommandIfReadOnly("cdc_start_pipeline()");
	check_preloaded();

	if (definition_is_given(fcinfo))
		id = create(definition_args(fcinfo, name));
	else
	{
		CatalogPipeline *pipeline = api_lock_for_change(name);

		if (pipeline == NULL)
			api_no_pipeline(name, "To create and start it, give its \"source\" and \"tables\" too.");
		if (pipeline->enabled && pipeline->state != CATALOG_PIPELINE_FAILED && !api_pipeline_is_waiting(pipeline))
		{
			ereport(NOTICE,
					(errcode(ERRCODE_DUPLICATE_OBJECT),
					 errmsg("pipeline \"%s\" is already running", name),
					 errdetail("Its state is \"%s\".", catalog_pipeline_state_name(pipeline->state))));
			shmem_wake_at_commit();
			PG_RETURN_VOID();
		}
		id = pipeline->id;
		/* an incoming one goes on anyway, and its worker says so */
		if (!PG_ARGISNULL(6) && PG_GETARG_BOOL(6) && pipeline->fingerprint != NULL && pipeline->sink != NULL)
			catalog_pipeline_set_server(id, PgStartTime, util_fingerprint());
	}
	warn_of_short_budgets(name, id);
	catalog_pipeline_set_enabled(id, true);
	shmem_wake_at_commit();
	PG_RETURN_VOID();
}

Datum
cdc_stop_pipeline(PG_FUNCTION_ARGS)
{
	char	   *name = api_name_arg(fcinfo);
	CatalogPipeline *pipeline;

	PreventCommandIfReadOnly("cdc_stop_pipeline()");

	pipeline = api_lock_for_change(name);
	if (pipeline == NULL)
		api_no_pipeline(name, NULL);
	if (!pipeline->enabled)
	{
		ereport(NOTICE,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pipeline \"%s\" is already stopped", name)));
		PG_RETURN_VOID();
	}
	catalog_pipeline_set_enabled(pipeline->id, false);
	shmem_wake_at_commit();
	PG_RETURN_VOID();
}

Datum
cdc_drop_pipeline(PG_FUNCTION_ARGS)
{
	char	   *name = api_name_arg(fcinfo);
	CatalogPipeline *pipeline;

	PreventCommandIfReadOnly("cdc_drop_pipeline()");

	pipeline = catalog_pipeline_by_name(name);
	if (pipeline == NULL)
		api_no_pipeline(name, NULL);
	api_check_owner(pipeline);

	shmem_stop_pipeline(pipeline->id);
	catalog_lock_pipeline(pipeline->id, AccessExclusiveLock, false);
	pipeline = catalog_pipeline_by_id(pipeline->id);
	if (pipeline == NULL)
		api_no_pipeline(name, NULL);

	snapshot_index_drop_unfinished(pipeline->id);
	catalog_origin_drop(MyDatabaseId, pipeline->id);
	catalog_pipeline_delete(pipeline);
	shmem_wake_at_commit();
	PG_RETURN_VOID();
}
