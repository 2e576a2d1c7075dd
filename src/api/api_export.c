/*-------------------------------------------------------------------------
 *
 * api_export.c
 *	  Checks of outgoing pipelines, and the function behind pg_stat_cdc_export.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "fmgr.h"
#include "foreign/foreign.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/pg_lsn.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "api/api.h"
#include "api/api_row.h"
#include "catalog/catalog_export.h"
#include "catalog/catalog_export_copy.h"
#include "compat/pg_compat.h"
#include "decode/decode.h"
#include "decode/decode_reader.h"
#include "pipeline/export_plugin.h"
#include "pipeline/export_rights.h"
#include "pipeline/export_tables.h"
#include "pipeline/shmem.h"
#include "sink/sink_message.h"
#include "util/util_error.h"

PG_FUNCTION_INFO_V1(cdc_stat_export);

/* Names of topics are looked at when they are given, and mean nothing elsewhere. */
static void
check_kafka_options(const CatalogPipeline *pipeline, const char *wrapper)
{
	const char *option = catalog_export_kafka_option(pipeline);

	if (strcmp(wrapper, "cdc_kafka") == 0)
	{
		kafka_require();
		sink_shape_check(pipeline);
	}
	else if (option != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"%s\" is for sinks of foreign data wrapper cdc_kafka", option),
				 errdetail("Server \"%s\" is one of %s.", pipeline->sink, wrapper)));
}

void
api_check_sink(const CatalogPipeline *pipeline)
{
	const char *name = pipeline->sink;
	ForeignServer *server = GetForeignServerByName(name, true);
	const char *wrapper;

	if (server == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("server \"%s\" does not exist", name),
				 errhint("Use CREATE SERVER %s FOREIGN DATA WRAPPER cdc_file OPTIONS (directory '/...').", quote_identifier(name))));
	wrapper = GetForeignDataWrapper(server->fdwid)->fdwname;
	if (catalog_sink_options(wrapper) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("server \"%s\" is not a sink of changes", name),
				 errdetail("Its foreign data wrapper is \"%s\".", wrapper),
				 errhint("Use a server of foreign data wrapper cdc_file or cdc_kafka.")));
	check_kafka_options(pipeline, wrapper);
	if (!cdc_foreign_server_usage(server->serverid, pipeline->owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for foreign server %s", name),
				 errhint("Run GRANT USAGE ON FOREIGN SERVER %s TO %s.", quote_identifier(name),
						 quote_identifier(GetUserNameFromId(pipeline->owner, false)))));
}

/* Does a change of a row tell which row that is? */
static void
check_identity(const CatalogPipeline *pipeline, Relation rel, const char *table)
{
	char		identity = rel->rd_rel->relreplident;

	if (identity == REPLICA_IDENTITY_FULL || OidIsValid(RelationGetReplicaIndex(rel)))
		return;
	ereport(ERROR,
			(errcode(CDC_ERRCODE_NO_KEY),
			 errmsg("table %s has no replica identity", table),
			 identity == REPLICA_IDENTITY_NOTHING ? errdetail("Its replica identity is NOTHING: updates and deletes do not tell which row they mean.") :
			 identity == REPLICA_IDENTITY_INDEX ? errdetail("The index of its replica identity is gone: updates and deletes do not tell which row they mean.") :
			 errdetail("It has no primary key: updates and deletes do not tell which row they mean."),
			 identity == REPLICA_IDENTITY_DEFAULT ?
			 errhint("Add a primary key, or run ALTER TABLE %s REPLICA IDENTITY FULL.", table) :
			 errhint("Run ALTER TABLE %s REPLICA IDENTITY FULL.", table)));
}

/* DecodeMeet */
static void
check_rights(void *pipeline, Relation relation, const Bitmapset *columns)
{
	export_rights_check(NULL, InvalidXLogRecPtr, pipeline, relation, columns);
}

static void
check_table(const CatalogPipeline *pipeline, Oid relid)
{
	Relation	rel = table_open(relid, AccessShareLock);

	check_identity(pipeline, rel, quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)), RelationGetRelationName(rel)));
	table_close(rel, AccessShareLock);
}

void
api_check_export_tables(const CatalogPipeline *pipeline)
{
	List	   *relids;
	ListCell   *lc;

	/* a publication chooses among tables and columns, and lets no change pass that does not tell its row; the worker looks at rights */
	if (catalog_pipeline_option(pipeline, "publication_names") != NULL)
		return;
	relids = export_tables(pipeline);
	foreach(lc, relids)
		check_table(pipeline, lfirst_oid(lc));
	decode_tables_check(export_plugin_options(pipeline), check_rights, unconstify(CatalogPipeline *, pipeline), relids);
}

/* ---- the view ---- */

static int
count_stopped(int32 pipeline_id)
{
	int			count = 0;
	ListCell   *lc;

	foreach(lc, catalog_export_table_list(pipeline_id))
		count += ((CatalogExportTable *) lfirst(lc))->state == CATALOG_EXPORT_STOPPED;
	return count;
}

static void
put_export(ReturnSetInfo *rsinfo, const CatalogPipeline *pipeline)
{
	const CatalogExport *state = catalog_export_load(pipeline->id);
	ShmemPipelineStat stat;
	DecodeSlot	slot = {0};
	TimeLineID	timeline;
	XLogRecPtr	now = decode_log_end(&timeline);
	char	   *waits_for = NULL;
	char	   *hint;
	Row			row = {0};

	if (pipeline->sink == NULL)
		return;
	(void) shmem_pipeline_stat(pipeline->id, &stat);
	if (state != NULL)
		decode_slot_look(state->slot_name, &slot);
	if (slot.is_failover)
		waits_for = decode_standby_waited_for(now, &hint);

	put_text(&row, pipeline->name);
	put_int32(&row, pipeline->id);
	put_datum(&row, ObjectIdGetDatum(pipeline->owner), false);
	put_text(&row, pipeline->sink);
	put_text(&row, api_pipeline_is_waiting(pipeline) ? API_STATE_WAITING : catalog_pipeline_state_name(pipeline->state));
	put_pid(&row, stat.ingest_pid);
	put_text(&row, state != NULL ? state->slot_name : NULL);
	put_lsn(&row, stat.export.decoded_lsn);
	put_lsn(&row, stat.export.durable_lsn);
	put_lsn(&row, slot.confirmed_lsn);
	put_lsn(&row, slot.restart_lsn);
	put_datum(&row, Int64GetDatum((int64) (now - Min(now, stat.export.decoded_lsn))), XLogRecPtrIsInvalid(stat.export.decoded_lsn));
	put_datum(&row, Int64GetDatum((int64) (now - Min(now, slot.restart_lsn))), XLogRecPtrIsInvalid(slot.restart_lsn));
	put_text(&row, api_export_held_by(&slot, &hint));
	put_text(&row, waits_for);
	put_int64(&row, stat.transactions);
	put_int64(&row, stat.changes);
	put_int64(&row, stat.bytes);
	put_int64(&row, stat.flushes);
	put_int64(&row, stat.export.parallel_chunks);
	put_int32(&row, count_stopped(pipeline->id));
	put_time(&row, stat.stats_reset);
	put_int32(&row, stat.failures);
	put_time(&row, stat.retry_at);
	put_time(&row, stat.started_at);
	put_error(&row, &pipeline->last_error);
	put_time(&row, pipeline->last_error.at);
	put_row(rsinfo, &row);
}

Datum
cdc_stat_export(PG_FUNCTION_ARGS)
{
	return put_pipelines(fcinfo, put_export);
}
