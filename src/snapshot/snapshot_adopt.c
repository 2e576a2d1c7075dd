/*-------------------------------------------------------------------------
 *
 * snapshot_adopt.c
 *	  First run of a pipeline that was restored from a dump and given a position:
 *	  its tables are taken as they are, those that were complete.
 *
 * NOTES
 *	  A dump has the names of a pipeline's tables and their rows. What the stream
 *	  needs besides is asked from the source now: its identity, and the tables'
 *	  definitions. Should a table have had another shape at the position, the
 *	  stream meets that shape in the log, as with every change of shape that no
 *	  statement told (apply_schema_event.c); no row is read by a wrong definition.
 *
 *	  A table that was stopped or being copied when the dump was taken lacks
 *	  rows, or has some that are newer than the position: it stays stopped, and
 *	  a new copy mends it (pipeline_table.complete).
 *
 *	  All talk with the source is done before the transaction begins. A table
 *	  that cannot be followed comes out STOPPED with the reason.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "heap/heap_row.h"
#include "heap/heap_shard.h"
#include "mysql/mysql_server.h"
#include "schema/table.h"
#include "snapshot/snapshot.h"
#include "transform/transform_kind.h"
#include "transform/transform_route.h"
#include "transform/transform_rule.h"
#include "util/util_name.h"
#include "util/util_subtransaction.h"
#include "util/util_wait.h"

typedef struct Adopt
{
	const CatalogPipeline *pipeline;
	const MysqlServerInfo *info;
	SchemaTypeOptions options;
	TransformRoutes *routes;
	CatalogPosition position;
	CdcGtidKind kind;			/* of the source's GTIDs */
	List	   *tables;			/* of CatalogTable */
	List	   *defs;			/* of CdcTableDef, beside tables; NULL: the source has no such table */
} Adopt;

/* GTIDs that somebody gave before the source was known. */
static void
check_family(const Adopt *adopt)
{
	bool		is_mysql = strchr(adopt->position.gtids, ':') != NULL;

	if (adopt->position.gtids[0] == '\0' || is_mysql == (adopt->kind == CDC_GTID_MYSQL))
		return;
	ereport(ERROR,
			(errcode(CDC_ERRCODE_SOURCE_REPLACED),
			 errmsg("source server \"%s\" does not write GTIDs like those of the position of pipeline \"%s\"",
					adopt->pipeline->source, adopt->pipeline->name),
			 errdetail("The position is %s.", adopt->position.gtids),
			 errhint("Stop the pipeline and set another position with cdc_set_position().")));
}

/* Tables that are restored, and the position that was set: copies that outlive the transaction. */
static void
read_catalog(Adopt *adopt, const CatalogPositionLog *log)
{
	MemoryContext cxt = CurrentMemoryContext;
	const CatalogPosition *current = catalog_position_log_current(log);

	adopt->position.position = current->position;
	adopt->position.gtids = pstrdup(current->gtids);
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	MemoryContextSwitchTo(cxt);
	adopt->tables = catalog_table_list(adopt->pipeline->id);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(cxt);
}

static void
ask_source(Adopt *adopt, const MysqlEndpoint *endpoint)
{
	MysqlSession *session = mysql_session_open(endpoint);
	ListCell   *lc;

	adopt->info = mysql_server_info(session);
	adopt->kind = adopt->info->flavor == MYSQL_FLAVOR_MARIADB ? CDC_GTID_MARIADB
		: adopt->info->gtid_on ? CDC_GTID_MYSQL : CDC_GTID_NONE;
	check_family(adopt);
	foreach(lc, adopt->tables)
	{
		const CatalogTable *table = lfirst(lc);

		CdcTableDef *def = mysql_server_describe(session, adopt->info, util_name_to_source(table->source_schema),
												 util_name_to_source(table->source_table));

		if (def != NULL)
			transform_kind_use_key(def, &adopt->options);
		adopt->defs = lappend(adopt->defs, def);
	}
	mysql_session_close(session);
}

/* Does a table of another pipeline go there too, and does not share it? */
static bool
belongs_to_another(const Adopt *adopt, Oid relid, bool is_merged)
{
	ListCell   *lc;

	foreach(lc, catalog_pipeline_list())
	{
		const CatalogPipeline *other = lfirst(lc);
		ListCell   *lc2;

		foreach(lc2, other->id == adopt->pipeline->id ? NIL : catalog_table_list(other->id))
		{
			const CatalogTable *table = lfirst(lc2);

			if (table->target == relid && table->state != CATALOG_TABLE_STOPPED && !(is_merged && table->own_rows != (Datum) 0))
				return true;
		}
	}
	return false;
}

/* Take one table; throws when it cannot be followed. */
static void
take_table(const Adopt *adopt, CatalogTable *table, const CdcTableDef *def)
{
	Oid			namespace = get_namespace_oid(table->target_schema, true);
	Oid			relid = OidIsValid(namespace) ? get_relname_relid(table->target_table, namespace) : InvalidOid;
	int			sqlstate;
	char	   *detail;
	char	   *hint;
	bool		is_merged = transform_kind_shares(adopt->routes, &adopt->options, table->source_schema, table->source_table);
	bool		is_anothers = OidIsValid(relid) && belongs_to_another(adopt, relid, is_merged);
	HeapRow    *row;

	/* known also when the table is stopped: a new copy takes this table's place, with whatever rows it has; but not others' */
	table->target = is_anothers || is_merged ? InvalidOid : relid;
	if (def == NULL)
		ereport(ERROR,
				(errcode(CDC_ERRCODE_TABLE_CHANGED),
				 errmsg("source table \"%s.%s\" does not exist any more", table->source_schema, table->source_table),
				 errhint("Let it leave the pipeline with cdc_remove_table(), or use cdc_resync_table() when it is there again.")));
	if (!table->complete)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("target table \"%s.%s\" was not complete when the dump was taken",
						table->target_schema, table->target_table),
				 errdetail("It was stopped, or its copy was under way, so its rows are not those of any position."),
				 errhint("Use cdc_resync_table() to copy it anew.")));
	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("target table \"%s.%s\" does not exist", table->target_schema, table->target_table),
				 errhint("Use cdc_resync_table() to make and copy it.")));
	if (!schema_def_is_supported(def, &adopt->options, &sqlstate, &detail, &hint))
		ereport(ERROR,
				(errcode(sqlstate),
				 errmsg("source table \"%s.%s\" cannot be mirrored", table->source_schema, table->source_table),
				 errdetail_internal("%s", detail),
				 hint != NULL ? errhint("%s", hint) : 0));
	if (is_anothers)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("target table \"%s.%s\" belongs to another source table", table->target_schema, table->target_table),
				 errdetail("A table of another pipeline goes there."),
				 errhint("Leave one of them out, or make a pipeline with another target schema for it.")));

	/* opening checks rights, key and columns */
	row = heap_row_open(relid, def, &adopt->options);
	if (is_merged)
	{
		table->own_rows = heap_shard_own_rows(row);
		table->target = relid;
	}
	heap_row_close(row);
}

typedef struct TryTable
{
	const Adopt *adopt;
	CatalogTable *table;
	const CdcTableDef *def;
} TryTable;

static void
try_step(void *arg)
{
	const TryTable *try = arg;

	take_table(try->adopt, try->table, try->def);
}

/* The same in a subtransaction; NULL, or why the table is stopped. */
static UtilErrorInfo *
try_table(const Adopt *adopt, CatalogTable *table, const CdcTableDef *def)
{
	TryTable	try = {adopt, table, def};
	ErrorData  *edata = util_subtransaction(try_step, &try, true);

	if (edata == NULL)
		return NULL;
	if (!heap_error_is_tables_own(edata->sqlerrcode))
		ReThrowError(edata);
	return util_error_info(edata);
}

static void
write_down(Adopt *adopt, CatalogPositionLog *log)
{
	MemoryContext caller = CurrentMemoryContext;
	List	   *errors = NIL;
	int			stopped = 0;
	ListCell   *lc;
	ListCell   *lc2;
	ListCell   *lc3;

	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());

	/* targets first, catalog rows last: see the order of locks */
	forboth(lc, adopt->tables, lc2, adopt->defs)
	{
		util_check_interrupts();
		errors = lappend(errors, try_table(adopt, lfirst(lc), lfirst(lc2)));
	}
	forthree(lc, adopt->tables, lc2, adopt->defs, lc3, errors)
	{
		CatalogTable *table = lfirst(lc);
		const UtilErrorInfo *error = lfirst(lc3);

		table->state = error != NULL ? CATALOG_TABLE_STOPPED : CATALOG_TABLE_STREAMING;
		table->generation = 1;
		table->definition = lfirst(lc2) != NULL ? schema_def_to_jsonb(lfirst(lc2)) : (Datum) 0;
		catalog_table_insert_state(table, error);
		if (error == NULL)
			continue;
		stopped++;
		ereport(LOG,
				(errcode(error->sqlstate),
				 errmsg("source table \"%s.%s\" of pipeline \"%s\" is stopped: %s",
						table->source_schema, table->source_table, adopt->pipeline->name, error->message),
				 error->detail ? errdetail("%s", error->detail) : 0,
				 error->hint ? errhint("%s", error->hint) : 0));
	}
	catalog_position_log_start(log, adopt->info->identity, adopt->kind, &adopt->position.position, adopt->position.gtids);

	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(caller);

	ereport(LOG,
			(errmsg("pipeline \"%s\" goes on with %d restored tables, %d of them stopped",
					adopt->pipeline->name, list_length(adopt->tables), stopped)));
}

void
snapshot_adopt(const CatalogPipeline *pipeline, const MysqlEndpoint *endpoint, CatalogPositionLog *log)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext cxt = AllocSetContextCreate(caller, "cdc snapshot adopt", ALLOCSET_DEFAULT_SIZES);
	Adopt		adopt = {.pipeline = pipeline};

	MemoryContextSwitchTo(cxt);
	transform_options_read(pipeline, &adopt.options);
	adopt.routes = transform_routes_read(pipeline);
	read_catalog(&adopt, log);
	ask_source(&adopt, endpoint);
	write_down(&adopt, log);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(cxt);
}
