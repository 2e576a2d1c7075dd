/*-------------------------------------------------------------------------
 *
 * api_check_pipeline.c
 *	  cdc_check_pipeline: what one pipeline needs, and whether it is there.
 *
 * NOTES
 *	  For running and stopped pipelines alike; changes nothing. What its workers
 *	  would ask of this server, of the source and of the target tables is asked
 *	  here with the same code, as the pipeline's owner, each part in a
 *	  subtransaction that is undone. Locks on tables are only tried, so that the
 *	  check never waits for somebody else's work.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "foreign/foreign.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "api/api.h"
#include "api/api_check.h"
#include "catalog/catalog_export.h"
#include "catalog/catalog_export_copy.h"
#include "compat/pg_compat.h"
#include "decode/decode_reader.h"
#include "heap/heap_row.h"
#include "mysql/mysql_server.h"
#include "mysql/mysql_session.h"
#include "pipeline/budget.h"
#include "pipeline/shmem.h"
#include "schema/table.h"
#include "source/source_choose.h"
#include "transform/transform_kind.h"
#include "transform/transform_route.h"
#include "transform/transform_rule.h"
#include "util/util_name.h"
#include "util/util_pattern.h"

PG_FUNCTION_INFO_V1(cdc_check_pipeline);

typedef struct CheckPipeline
{
	ReturnSetInfo *rsinfo;
	const CatalogPipeline *pipeline;
	List	   *tables;			/* of CatalogTable */
	SchemaTypeOptions types;
	Oid			serverid;
	const CatalogTable *table;	/* the one that is looked at */
} CheckPipeline;

static void
put_lines(CheckPipeline *c, List *lines)
{
	ListCell   *lc;

	foreach(lc, lines)
		api_check_put_line(c->rsinfo, lfirst(lc));
}

/* ---- the pipeline itself, and this server ---- */

static void
check_state(CheckPipeline *c)
{
	const CatalogPipeline *pipeline = c->pipeline;
	const CatalogError *error = &pipeline->last_error;
	bool		in_trouble = pipeline->state == CATALOG_PIPELINE_FAILED || pipeline->state == CATALOG_PIPELINE_RETRYING;

	if (api_pipeline_is_waiting(pipeline))
		api_check_put(c->rsinfo, "state", "warning",
					  "The server was started with cdc_bridge.autostart off, and the pipeline waits.",
					  psprintf("SELECT cdc_start_pipeline(%s)", quote_literal_cstr(pipeline->name)));
	else if (in_trouble && error->message != NULL)
		api_check_put(c->rsinfo, "state", pipeline->state == CATALOG_PIPELINE_FAILED ? "error" : "warning",
					  psprintf("The pipeline is %s: %s%s%s", catalog_pipeline_state_name(pipeline->state), error->message,
							   error->detail != NULL ? ". " : ".", error->detail != NULL ? error->detail : ""),
					  error->hint);
	else
		api_check_put(c->rsinfo, "state", "ok",
					  psprintf("The pipeline is %s.", catalog_pipeline_state_name(pipeline->state)), NULL);
}

static void
check_budgets(CheckPipeline *c)
{
	int			tables;

	if (!shmem_is_available())
	{
		api_check_put(c->rsinfo, "shared_preload_libraries", "error",
					  "cdc_bridge is not loaded at server start, so pipelines cannot run.",
					  "Add cdc_bridge to shared_preload_libraries and restart the server.");
		return;
	}
	for (int kind = 0; kind < BUDGET_KINDS; kind++)
	{
		Budget		budget;
		bool		is_short;

		budget_read(kind, c->pipeline->id, &budget);
		if (budget.needed == 0)
			continue;			/* the pipeline has no use for it */
		is_short = budget_is_short(&budget);
		api_check_put(c->rsinfo, budget.setting, is_short ? "error" : "ok", budget_detail(&budget),
					  is_short ? budget_hint(&budget) : NULL);
	}
	tables = shmem_count_tables();
	api_check_put(c->rsinfo, "cdc_bridge.max_tables", tables < shmem_max_tables ? "ok" : "warning",
				  psprintf("cdc_bridge.max_tables is %d; %d tables have counters, this pipeline has %d tables.",
						   shmem_max_tables, tables, list_length(c->tables)),
				  tables < shmem_max_tables ? NULL :
				  psprintf("Tables beyond it are mirrored without counters. Run ALTER SYSTEM SET cdc_bridge.max_tables = %d and restart the server.",
						   shmem_max_tables * 2));
}

/* What is asked as the owner is asked only when there is one. */
static bool
check_owner(CheckPipeline *c)
{
	Oid			owner = c->pipeline->owner;
	bool		exists = SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(owner));

	if (exists)
		api_check_role(c->rsinfo, owner);
	else
		api_check_put(c->rsinfo, "role", "error",
					  psprintf("The owner of the pipeline does not exist any more; its role had the OID %u.", owner),
					  psprintf("SELECT cdc_alter_pipeline(%s, owner => '...')", quote_literal_cstr(c->pipeline->name)));
	return exists;
}

/* ---- the source ---- */

/* A step: server and user mapping are there and may be used by the owner. */
static List *
check_server(void *arg)
{
	CheckPipeline *c = arg;
	Oid			serverid;

	serverid = api_source_server(c->pipeline->source, c->pipeline->owner);
	api_check_user_mapping(serverid, c->pipeline->source, c->pipeline->owner);
	c->serverid = serverid;
	return list_make1(source_check_line("server", "ok",
										psprintf("The owner may use server \"%s\" and has a user mapping.", c->pipeline->source), NULL));
}

/* Is a table of the source one of the pipeline's? */
static bool
is_mirrored(const CheckPipeline *c, const char *schema, const char *name)
{
	ListCell   *lc;

	foreach(lc, c->tables)
	{
		const CatalogTable *table = lfirst(lc);

		if (strcmp(util_name_of_source(schema), table->source_schema) == 0 &&
			strcmp(util_name_of_source(name), table->source_table) == 0)
			return true;
	}
	return false;
}

/* CdcSourceWant: the tables that the pipeline has, else all that its patterns name. */
static bool
want_table(void *arg, const char *schema, const char *name)
{
	const CheckPipeline *c = arg;
	ListCell   *lc;

	if (is_mirrored(c, schema, name))
		return true;
	foreach(lc, c->tables == NIL ? c->pipeline->tables : NIL)
	{
		if (util_pattern_match(lfirst(lc), schema, name))
			return true;
	}
	return false;
}

/* A step: is the durable position still in the source's log? */
static List *
check_position(void *arg)
{
	CheckPipeline *c = arg;
	CatalogPosition *position = catalog_position_load(c->pipeline->id, false);

	if (position == NULL)
		return list_make1(source_check_line("position", "ok", "There is none yet: the first start copies the tables.", NULL));
	return source_choose_check(mysql_endpoint_load(c->serverid, c->pipeline->owner), c->pipeline, position);
}

/* Names of new tables, and places of tables, that are told one by one. */
#define PLACES_TOLD 100
#define NEW_TABLES_TOLD 10

/* One table of the source and where it goes. */
typedef struct CheckPlace
{
	char	   *source;			/* "schema.table" */
	char	   *target;
	bool		is_merged;		/* and others may go there too */
} CheckPlace;

static int
compare_places(const ListCell *a, const ListCell *b)
{
	const CheckPlace *pa = lfirst(a);
	const CheckPlace *pb = lfirst(b);
	int			order = strcmp(pa->target, pb->target);

	return order != 0 ? order : strcmp(pa->source, pb->source);
}

/* Where tables go that the source has; those that the pipeline has are where they are. *lines gets one for each that can go nowhere. */
static List *
read_places(const CheckPipeline *c, List **lines)
{
	TransformRoutes *routes = transform_routes_read(c->pipeline);
	MysqlSession *session = mysql_session_open(mysql_endpoint_load(c->serverid, c->pipeline->owner));
	List	   *places = NIL;
	ListCell   *lc;

	foreach(lc, c->tables)
	{
		const CatalogTable *table = lfirst(lc);
		CheckPlace *place = palloc(sizeof(CheckPlace));

		place->source = psprintf("%s.%s", table->source_schema, table->source_table);
		place->target = psprintf("%s.%s", table->target_schema, table->target_table);
		place->is_merged = table->own_rows != (Datum) 0;
		places = lappend(places, place);
	}
	foreach(lc, mysql_server_list_tables(session, c->pipeline->tables))
	{
		const CdcTableDef *table = lfirst(lc);
		CheckPlace *place = palloc(sizeof(CheckPlace));
		char	   *schema = util_name_of_source(table->schema);
		char	   *name = util_name_of_source(table->name);
		char	   *target_schema;
		char	   *target_table;
		bool		has_place = transform_route_target(routes, schema, name, &target_schema, &target_table, NULL);

		if (is_mirrored(c, table->schema, table->name))
			continue;
		place->source = psprintf("%s.%s", schema, name);
		place->target = psprintf("%s.%s", target_schema, target_table);
		place->is_merged = transform_kind_shares(routes, &c->types, schema, name);
		if (has_place)
			places = lappend(places, place);
		else
			*lines = lappend(*lines, source_check_line(psprintf("table %s", place->source), "error",
													   psprintf("It cannot go to \"%s\": the name is empty, or the schema belongs to the system.",
																place->target),
													   "Set the option \"routes\" with cdc_alter_pipeline()."));
	}
	mysql_session_close(session);
	list_sort(places, compare_places);
	return places;
}

/* A step: where tables go, and which of them would go to the same place. Only told of a pipeline with routes. */
static List *
check_routes(void *arg)
{
	CheckPipeline *c = arg;
	List	   *lines = NIL;
	List	   *places = read_places(c, &lines);
	const CheckPlace *before = NULL;
	StringInfoData names;
	ListCell   *lc;

	initStringInfo(&names);
	foreach(lc, places)
	{
		const CheckPlace *place = lfirst(lc);

		if (before != NULL && strcmp(before->target, place->target) == 0 &&
			!(before->is_merged && place->is_merged))
			lines = lappend(lines, source_check_line("routes", "error",
													 psprintf("Source tables \"%s\" and \"%s\" both go to \"%s\"; the one that comes later stops.",
															  before->source, place->source, place->target),
													 "Leave one of them out with cdc_remove_table(), or give it another target with the option \"routes\"."));
		before = place;
		if (foreach_current_index(lc) < PLACES_TOLD)
			appendStringInfo(&names, "%s%s -> %s", names.len > 0 ? ", " : "", place->source, place->target);
	}
	if (catalog_pipeline_option(c->pipeline, "routes") != NULL && places != NIL)
		lines = lappend(lines, source_check_line("routes", "ok",
												 psprintf("Where tables go: %s%s.", names.data,
														  list_length(places) > PLACES_TOLD
														  ? psprintf(", and %d more", list_length(places) - PLACES_TOLD) : ""), NULL));
	return lines;
}

/* A step: does the source have tables that fit the patterns and are not mirrored? Only those join by themselves that are made while the stream follows. */
static List *
check_new_tables(void *arg)
{
	CheckPipeline *c = arg;
	MysqlSession *session;
	StringInfoData names;
	const char *first = NULL;
	int			count = 0;
	ListCell   *lc;

	if (c->tables == NIL)
		return NIL;
	session = mysql_session_open(mysql_endpoint_load(c->serverid, c->pipeline->owner));
	initStringInfo(&names);
	foreach(lc, mysql_server_list_tables(session, c->pipeline->tables))
	{
		const CdcTableDef *table = lfirst(lc);
		char	   *name;

		if (is_mirrored(c, table->schema, table->name))
			continue;
		name = psprintf("%s.%s", util_name_of_source(table->schema),
						util_name_of_source(table->name));
		if (++count <= NEW_TABLES_TOLD)
			appendStringInfo(&names, "%s\"%s\"", count > 1 ? ", " : "", name);
		if (first == NULL)
			first = name;
	}
	mysql_session_close(session);
	if (count == 0)
		return list_make1(source_check_line("new tables", "ok", "Every table of the source that fits the patterns is mirrored.", NULL));
	return list_make1(source_check_line("new tables", "warning",
										psprintf("The source has %d tables that fit the patterns and are not mirrored: %s%s.",
												 count, names.data, count > NEW_TABLES_TOLD ? ", ..." : ""),
										psprintf("To let them join: SELECT cdc_add_table(%s, %s), which matches the whole list again; to leave one out: SELECT cdc_remove_table(%s, %s).",
												 quote_literal_cstr(c->pipeline->name), quote_literal_cstr(first),
												 quote_literal_cstr(c->pipeline->name), quote_literal_cstr(first))));
}

static void
check_source(CheckPipeline *c)
{
	ApiCheckSource ask = {
		.role = c->pipeline->owner,
		.pipeline_id = c->pipeline->id,
		.want = want_table,
		.want_arg = c,
	};
	List	   *lines;

	put_lines(c, api_check_try("server", check_server, c));
	if (!OidIsValid(c->serverid))
		return;
	ask.serverid = c->serverid;
	lines = api_check_try("connection", api_check_ask_source, &ask);
	put_lines(c, lines);
	put_lines(c, api_check_try("position", check_position, c));
	put_lines(c, api_check_try("new tables", check_new_tables, c));
	put_lines(c, api_check_transforms(c->pipeline, c->serverid, &c->types));
	if (lines == NIL || strcmp(((CdcCheckLine *) linitial(lines))->status, "error") != 0)
		put_lines(c, api_check_try("routes", check_routes, c));
}

/* ---- tables ---- */

/* A table of a pipeline that came from a dump and has not run since: what its first start is going to do with it. */
static CdcCheckLine *
restored_line(const CatalogPipeline *pipeline, const CatalogTable *table, const char *check)
{
	const char *how = "Its definition is not known here: the pipeline came from a dump and has not run since";
	char	   *start = psprintf("SELECT cdc_start_pipeline(%s)", quote_literal_cstr(pipeline->name));

	if (catalog_position_load(pipeline->id, false) == NULL)
		return source_check_line(check, "warning", psprintf("%s.", how),
								 "Say where its rows stand with cdc_set_position(), then start the pipeline. "
								 "Or drop or empty the target table, and start the pipeline, which then copies it anew.");
	if (!table->complete)
		return source_check_line(check, "error",
								 psprintf("%s, and its target table was not complete when the dump was taken, so the start will stop it.", how),
								 "Start the pipeline, then use cdc_resync_table() to copy the table anew.");
	return source_check_line(check, "warning",
							 psprintf("%s. Its rows are taken to be those of the position that was set.", how), start);
}

/* A step: open the target as the stream would, as the owner. NIL when all is well. */
static List *
check_target(void *arg)
{
	CheckPipeline *c = arg;
	const CatalogTable *table = c->table;
	const char *check = psprintf("table %s.%s", table->source_schema, table->source_table);
	Oid			user;
	int			sec_context;

	if (table->definition == (Datum) 0)
		return list_make1(restored_line(c->pipeline, table, check));
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(table->target)))
		return list_make1(source_check_line(check, "error",
											psprintf("Its target table \"%s.%s\" does not exist any more.",
													 table->target_schema, table->target_table),
											"Use cdc_resync_table() to make and copy it anew."));
	if (!ConditionalLockRelationOid(table->target, RowExclusiveLock))
		return list_make1(source_check_line(check, "warning",
											psprintf("Its target table \"%s.%s\" is locked by somebody, who holds up the pipeline.",
													 table->target_schema, table->target_table),
											"pg_locks shows who holds a lock on it."));

	GetUserIdAndSecContext(&user, &sec_context);
	SetUserIdAndSecContext(c->pipeline->owner, sec_context | SECURITY_LOCAL_USERID_CHANGE);
	heap_row_close(heap_row_open(table->target, schema_def_from_jsonb(table->definition), &c->types));
	SetUserIdAndSecContext(user, sec_context);
	return NIL;
}

List *
api_check_target(const CatalogPipeline *pipeline, const CatalogTable *table)
{
	CheckPipeline c = {.pipeline = pipeline,.table = table};

	transform_options_read(pipeline, &c.types);
	return api_check_try("table", check_target, &c);
}

static void
check_tables(CheckPipeline *c)
{
	int			well = 0;
	ListCell   *lc;

	foreach(lc, c->tables)
	{
		const CatalogTable *table = lfirst(lc);
		const CatalogError *error = &table->last_error;
		char	   *check = psprintf("table %s.%s", table->source_schema, table->source_table);
		List	   *lines;

		CHECK_FOR_INTERRUPTS();
		if (table->state == CATALOG_TABLE_STOPPED && error->message != NULL)
		{
			api_check_put(c->rsinfo, check, "error",
						  psprintf("The table is stopped: %s%s%s", error->message, error->detail != NULL ? ". " : ".",
								   error->detail != NULL ? error->detail : ""), error->hint);
			continue;
		}
		c->table = table;
		lines = api_check_try(check, check_target, c);
		put_lines(c, lines);
		well += lines == NIL ? 1 : 0;
	}
	if (well == list_length(c->tables))
		api_check_put(c->rsinfo, "tables", "ok",
					  c->tables == NIL ? "There are none yet: the first start finds them."
					  : psprintf("Target, rights and columns of all %d tables are as they should be.", well), NULL);
}

/* Tables whose rows foreign keys change without a word in the log, and what is done about it. */
static void
check_cascades(CheckPipeline *c)
{
	StringInfoData names;
	ListCell   *lc;

	initStringInfo(&names);
	foreach(lc, c->tables)
	{
		const CatalogTable *table = lfirst(lc);

		if (table->definition != (Datum) 0 && schema_def_has_unlogged(table->definition))
			appendStringInfo(&names, "%s%s.%s", names.len > 0 ? ", " : "", table->source_schema, table->source_table);
	}
	if (names.len == 0)
		return;
	if (c->types.make_cascades)
		api_check_put(c->rsinfo, "cascades", "ok",
					  psprintf("What the source does not log of foreign keys is done here too, for: %s.", names.data), NULL);
	else if (c->types.refuse_cascades)
		api_check_put(c->rsinfo, "cascades", "warning",
					  psprintf("Tables that foreign keys change without a log are refused: %s.", names.data),
					  "Set option \"cascades\" with cdc_alter_pipeline() to have it done here too.");
	else
		api_check_put(c->rsinfo, "cascades", "warning",
					  psprintf("What the source does not log of foreign keys is left to foreign keys of the targets, for: %s.", names.data),
					  "They have to have the same actions, and fire here: ALTER TABLE ... ENABLE ALWAYS TRIGGER for their triggers on both tables.");
}

/* A name that the source does not have, or had not when the list was last matched, shows nowhere else. */
static void
check_patterns(CheckPipeline *c)
{
	ListCell   *lc;

	foreach(lc, c->tables == NIL ? NIL : c->pipeline->tables)
	{
		const char *pattern = lfirst(lc);
		const char *pipeline = quote_literal_cstr(c->pipeline->name);
		bool		fits = pattern[0] == '!';
		ListCell   *lc2;

		foreach(lc2, fits ? NIL : c->tables)
		{
			const CatalogTable *table = lfirst(lc2);

			fits |= util_pattern_match(pattern, table->source_schema, table->source_table);
		}
		if (fits)
			continue;
		api_check_put(c->rsinfo, psprintf("pattern %s", pattern), "warning",
					  "The pipeline has no table that fits it: none was taken up yet, or the source had none when the list was last matched.",
					  psprintf("When the source has one: SELECT cdc_add_table(%s, %s); else SELECT cdc_remove_table(%s, %s).",
							   pipeline, quote_literal_cstr(pattern), pipeline, quote_literal_cstr(pattern)));
	}
}

/* ---- outgoing pipelines ---- */

/* Steps: each throws what is missing. */

static List *
check_sink(void *arg)
{
	const CheckPipeline *c = arg;

	api_check_sink(c->pipeline);
	return list_make1(source_check_line("sink", "ok", psprintf("The owner may use server \"%s\".", c->pipeline->sink), NULL));
}

static List *
check_decoding(void *arg)
{
	decode_require_settings();
	return list_make1(source_check_line("logical decoding", "ok", "The settings of this server allow it.", NULL));
}

static List *
check_export_tables(void *arg)
{
	const CheckPipeline *c = arg;

	api_check_export_tables(c->pipeline);
	return list_make1(source_check_line("tables", "ok", "The owner may read all tables, and each change tells which row it means.", NULL));
}

static List *
check_schema_changes(void *arg)
{
	const CheckPipeline *c = arg;
	const char *silent;

	if (!catalog_export_hears_statements(c->pipeline))
		return list_make1(source_check_line("schema changes", "ok", "They are not shipped: option \"schema_changes\" is \"ignore\".", NULL));
	silent = catalog_schema_trigger_silent();
	if (silent != NULL)
		return list_make1(source_check_line("schema changes", "warning",
											psprintf("Event trigger \"%s\" does not fire: statements that change tables are not shipped.", silent),
											psprintf("Run ALTER EVENT TRIGGER %s ENABLE ALWAYS as a superuser.", quote_identifier(silent))));
	return list_make1(source_check_line("schema changes", "ok", "The event triggers that tell of them fire.", NULL));
}

/* What keeps its slot from moving on. */
static List *
check_export_slot(void *arg)
{
	const CheckPipeline *c = arg;
	const CatalogExport *state = catalog_export_load(c->pipeline->id);
	DecodeSlot	slot = {0};
	TimeLineID	timeline;
	char	   *problem;
	char	   *hint;
	List	   *lines = NIL;

	if (state == NULL)
		return NIL;				/* it did not run yet */
	decode_slot_look(state->slot_name, &slot);
	if (!slot.exists)
		return list_make1(source_check_line("slot", "error", psprintf("There is no replication slot \"%s\" any more.", state->slot_name),
											"What was committed since the sink last got something is not in it. Drop the pipeline and make it anew."));
	problem = api_export_held_by(&slot, &hint);
	if (problem != NULL)
		lines = lappend(lines, source_check_line("slot", "warning", psprintf("The log is held back by %s.", problem), hint));
	problem = slot.is_failover ? decode_standby_waited_for(decode_log_end(&timeline), &hint) : NULL;
	if (problem != NULL)
		lines = lappend(lines, source_check_line("standbys", "warning", psprintf("Nothing is shipped for now: %s.", problem), hint));
	return lines != NIL ? lines : list_make1(source_check_line("slot", "ok", psprintf("Nothing keeps slot \"%s\" from moving on.", state->slot_name), NULL));
}

/* A step: tables that are not shipped any more. */
static List *
check_stopped_tables(void *arg)
{
	const CheckPipeline *c = arg;
	List	   *lines = NIL;
	ListCell   *lc;

	foreach(lc, catalog_export_table_list(c->pipeline->id))
	{
		const CatalogExportTable *table = lfirst(lc);
		XLogRecPtr	lsn = table->stop_lsn != 0 ? table->stop_lsn : table->stop_end_lsn;

		if (table->state != CATALOG_EXPORT_STOPPED)
			continue;
		lines = lappend(lines, source_check_line(psprintf("table %s", quote_qualified_identifier(table->schema, table->name)), "error",
												 psprintf("It is stopped at %X/%X: %s", LSN_FORMAT_ARGS(lsn), table->stop_error.message),
												 psprintf("Mend the cause%s%s Then use cdc_resync_table(), or leave the table out with cdc_remove_table().",
														  table->stop_error.hint != NULL ? ": " : ".", table->stop_error.hint != NULL ? table->stop_error.hint : "")));
	}
	return lines;
}

static void
check_export(CheckPipeline *c)
{
	put_lines(c, api_check_try("sink", check_sink, c));
	put_lines(c, api_check_try("logical decoding", check_decoding, c));
	put_lines(c, api_check_try("tables", check_export_tables, c));
	put_lines(c, api_check_try("stopped tables", check_stopped_tables, c));
	put_lines(c, api_check_try("schema changes", check_schema_changes, c));
	put_lines(c, api_check_try("slot", check_export_slot, c));
}

Datum
cdc_check_pipeline(PG_FUNCTION_ARGS)
{
	char	   *name = api_name_arg(fcinfo);
	CheckPipeline c = {.rsinfo = (ReturnSetInfo *) fcinfo->resultinfo};
	CatalogPipeline *pipeline = catalog_pipeline_by_name(name);
	bool		has_owner;

	if (pipeline == NULL)
		api_no_pipeline(name, NULL);
	api_check_owner(pipeline);
	InitMaterializedSRF(fcinfo, 0);
	c.pipeline = pipeline;
	if (pipeline->sink != NULL)
	{
		check_state(&c);
		check_budgets(&c);
		if (check_owner(&c))
			check_export(&c);
		return (Datum) 0;
	}
	c.tables = catalog_table_list(pipeline->id);
	transform_options_read(pipeline, &c.types);

	check_state(&c);
	has_owner = check_owner(&c);
	check_budgets(&c);
	if (has_owner)
	{
		check_source(&c);
		check_tables(&c);
	}
	check_cascades(&c);
	check_patterns(&c);
	return (Datum) 0;
}
