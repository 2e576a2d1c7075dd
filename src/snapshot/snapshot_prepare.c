/*-------------------------------------------------------------------------
 *
 * snapshot_prepare.c
 *	  First run of a pipeline: start mark, tables, targets.
 *
 * NOTES
 *	  Order matters: the start mark is read before the tables are looked at, so
 *	  that a change of shape after the mark comes again in the stream and stops
 *	  the table, instead of being missed. All talk with the source is done before
 *	  the transaction begins. In the transaction targets come first (they take
 *	  locks on relations), catalog rows last (they take the pipeline's state lock).
 *
 *	  A second mark is read when the talk with the source ends, before the commit
 *	  that lets the first chunk be read. It tells which XA transactions, prepared
 *	  before the start mark, every chunk has seen.
 *
 *	  Each target is made in a subtransaction of its own: one table that cannot
 *	  be mirrored comes out STOPPED with the reason and the others go on.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "executor/spi.h"
#include "nodes/value.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "catalog/catalog_lock.h"
#include "heap/heap_row.h"
#include "snapshot/snapshot_private.h"
#include "transform/transform_kind.h"
#include "transform/transform_table.h"
#include "util/util_name.h"
#include "util/util_pattern.h"
#include "util/util_spi.h"
#include "util/util_subtransaction.h"
#include "util/util_wait.h"

/* How long the start waits for XA transactions that were prepared before it, and how often it looks. */
#define PREPARED_WAIT_MS 2000
#define PREPARED_POLL_MS 20

/* So many locked tables are waited for in one go, 1 s each. */
#define LOCKED_AT_ONCE 2

/* New tables of a stream that runs are asked for so long in one go. */
#define JOIN_ASK_MS 1000

/* A transaction whose PREPARE is in the log is listed as prepared at the latest after this. */
#define PREPARED_LISTED_MS 100

/* ------------------------------------------------------- talk with the source */

/* Tables that join are not waited for: the stream stands still meanwhile, and it is the stream of all the others. */
static void
put_off(SnapshotPrepare *p, const char *schema, const char *name, const char *detail, SnapshotCandidate *c)
{
	c->put_off = true;
	c->error = util_error_info_make(ERRCODE_LOCK_NOT_AVAILABLE,
								   psprintf("source table \"%s.%s\" is locked", util_name_of_source(schema), util_name_of_source(name)),
								   psprintf("%s The table is tried again every %d s; the others go on.",
											detail, SNAPSHOT_RETRY_SECONDS),
								   pstrdup("End the statement or the LOCK TABLES that holds it on the source."));
}

void
snapshot_describe(SnapshotPrepare *p, MysqlSession *session, const char *schema, const char *name,
				  SnapshotCandidate *c)
{
	MemoryContext cxt = CurrentMemoryContext;

	if (!p->is_joining)
	{
		c->def = mysql_server_describe_soon(session, p->info, schema, name);
		if (c->def != NULL)
			transform_kind_use_key(c->def, &p->options);
		return;
	}
	if (p->locked >= LOCKED_AT_ONCE)
	{
		put_off(p, schema, name, "It was not asked for, because others were waited for in vain just now.", c);
		return;
	}

	PG_TRY();
	{
		c->def = mysql_server_describe_soon(session, p->info, schema, name);
		if (c->def != NULL)
			transform_kind_use_key(c->def, &p->options);
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(cxt);
		edata = CopyErrorData();
		if (edata->sqlerrcode != CDC_ERRCODE_SOURCE_SETTING && edata->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE)
			PG_RE_THROW();
		FlushErrorState();
		if (edata->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE)
		{
			p->locked++;
			put_off(p, schema, name, "Somebody has held it for more than a second.", c);
		}
		else
			c->error = util_error_info(edata);
		FreeErrorData(edata);
	}
	PG_END_TRY();
}

static bool
is_in_list(List *tables, const char *schema, const char *name)
{
	ListCell   *lc;

	foreach(lc, tables)
	{
		const CatalogTable *table = lfirst(lc);

		if (strcmp(table->source_schema, schema) == 0 && strcmp(table->source_table, name) == 0)
			return true;
	}
	return false;
}

void
snapshot_find_place(const SnapshotPrepare *p, SnapshotCandidate *c)
{
	CatalogTable *table = &c->table;
	bool		is_cut;

	c->has_no_place = !transform_route_target(p->routes, table->source_schema, table->source_table,
											  &table->target_schema, &table->target_table, &is_cut);
	c->is_merged = transform_kind_shares(p->routes, &p->options, table->source_schema, table->source_table);
	table->own_rows = (Datum) 0;
	if (is_cut)
		ereport(LOG,
				(errmsg("target of source table \"%s.%s\" of pipeline \"%s\" is called \"%s.%s\"",
						table->source_schema, table->source_table, p->pipeline->name,
						table->target_schema, table->target_table),
				 errdetail("Names of more than %d bytes are cut, and end with a hash of the whole.", NAMEDATALEN - 1)));
}

void
snapshot_read_tables(SnapshotPrepare *p, MysqlSession *session, List *known)
{
	List	   *names = mysql_server_list_tables(session, p->pipeline->tables);
	TimestampTz start = GetCurrentTimestamp();
	ListCell   *lc;

	foreach(lc, names)
	{
		CdcTableDef *name = lfirst(lc);
		SnapshotCandidate *c;

		if (is_in_list(known, util_name_of_source(name->schema), util_name_of_source(name->name)))
			continue;
		if (p->is_joining && !util_patterns_name(p->pipeline->tables, util_name_of_source(name->schema), util_name_of_source(name->name)) &&
			snapshot_join_is_early(p, session, util_name_of_source(name->schema), util_name_of_source(name->name)))
			continue;
		if (p->is_joining && p->candidates != NIL && TimestampDifferenceExceeds(start, GetCurrentTimestamp(), JOIN_ASK_MS))
		{
			p->more = true;
			break;
		}
		c = palloc0(sizeof(SnapshotCandidate));
		snapshot_describe(p, session, name->schema, name->name, c);
		if (c->def == NULL && c->error == NULL)
			continue;			/* dropped meanwhile */

		c->table.pipeline_id = p->pipeline->id;
		c->table.source_schema = util_name_of_source(name->schema);
		c->table.source_table = util_name_of_source(name->name);
		snapshot_find_place(p, c);
		c->table.state = snapshot_start_state(&p->start);
		c->table.generation = 1;
		if (c->def != NULL)
			c->table.row_estimate = c->def->row_estimate > PG_INT64_MAX ? PG_INT64_MAX : (int64) c->def->row_estimate;
		p->candidates = lappend(p->candidates, c);
	}
}

/* A pipeline that begins without any table is a mistake. */
static void
require_tables(const SnapshotPrepare *p)
{
	StringInfoData patterns;
	ListCell   *lc;

	if (p->candidates != NIL)
		return;
	initStringInfo(&patterns);
	foreach(lc, p->pipeline->tables)
		appendStringInfo(&patterns, "%s\"%s\"", patterns.len > 0 ? ", " : "", (char *) lfirst(lc));
	ereport(ERROR,
			(errcode(ERRCODE_FDW_TABLE_NOT_FOUND),
			 errmsg("source server \"%s\" has no table for pipeline \"%s\"",
					p->pipeline->source, p->pipeline->name),
			 errdetail("No base table that the user may see matches %s.", patterns.data),
			 errhint("Check the patterns, and that the user has SELECT on the tables.")));
}

/* Part of a name, as the log has it: X'6731' */
static void
append_hex(StringInfo text, const char *bytes, int len)
{
	appendStringInfoString(text, "X'");
	for (int i = 0; i < len; i++)
		appendStringInfo(text, "%02x", (unsigned char) bytes[i]);
	appendStringInfoChar(text, '\'');
}

/* Name of a prepared transaction as it stands behind XA COMMIT in the log; NULL when the server's row makes no sense. */
static char *
prepared_name(const MysqlRow *row)
{
	StringInfoData name;
	int			lengths[2];

	if (row->nfields < 4 || row->values[0] == NULL || row->values[1] == NULL || row->values[2] == NULL || row->values[3] == NULL)
		return NULL;
	for (int i = 0; i < 2; i++)
	{
		lengths[i] = atoi(row->values[i + 1]);
		if (lengths[i] < 0 || lengths[i] > 64)
			return NULL;
	}
	if ((Size) (lengths[0] + lengths[1]) > row->lengths[3])
		return NULL;
	initStringInfo(&name);
	append_hex(&name, row->values[3], lengths[0]);
	appendStringInfoChar(&name, ',');
	append_hex(&name, row->values[3] + lengths[0], lengths[1]);
	appendStringInfo(&name, ",%d", atoi(row->values[0]));
	return name.data;
}

/* Names of the prepared XA transactions into *names (List of String); false when the user may not ask. */
static bool
read_prepared(MysqlSession *session, List **names)
{
	MemoryContext cxt = CurrentMemoryContext;
	List	   *volatile found = NIL;
	volatile bool done = true;
	MysqlRow	row;

	PG_TRY();
	{
		mysql_session_query(session, "XA RECOVER");
		while (mysql_session_fetch(session, &row))
		{
			char	   *name = prepared_name(&row);

			if (name != NULL)
				found = lappend(found, makeString(name));
		}
	}
	PG_CATCH();
	{
		unsigned int code = mysql_session_last_errno(session);

		/* MySQL words a missing XA_RECOVER_ADMIN as 1401, an error of the resource manager */
		if (code != 1401 && code != 1227)
			PG_RE_THROW();
		MemoryContextSwitchTo(cxt);
		FlushErrorState();
		done = false;
	}
	PG_END_TRY();
	*names = found;
	return done;
}

/*
 * Wait until the XA transactions that were prepared before the start mark have
 * ended, and are visible if they were committed: both servers list one until the
 * engine has committed it. False when that cannot be told, or takes too long: then
 * *left, if wanted, becomes the names of those that are left (List of String).
 */
bool
snapshot_await_prepared(MysqlSession *session, List **left)
{
	TimestampTz start = GetCurrentTimestamp();
	List	   *open = NIL;
	List	   *now;

	/* one may be in the log a moment before it is listed: all that are listed in this time count */
	do
	{
		if (!read_prepared(session, &now))
			return false;
		open = list_union(open, now);
		util_wait(PGINVALID_SOCKET, PREPARED_POLL_MS, UTIL_WAIT_SOURCE_READ);
	} while (!TimestampDifferenceExceeds(start, GetCurrentTimestamp(), PREPARED_LISTED_MS));

	for (;;)
	{
		if (!read_prepared(session, &now))
			return false;
		open = list_intersection(open, now);
		if (open == NIL)
			return true;
		if (TimestampDifferenceExceeds(start, GetCurrentTimestamp(), PREPARED_WAIT_MS))
		{
			if (left != NULL)
				*left = open;
			return false;
		}
		util_wait(PGINVALID_SOCKET, PREPARED_POLL_MS, UTIL_WAIT_SOURCE_READ);
	}
}

/* -------------------------------------------------------------------- targets */

void
snapshot_make_target(const SnapshotPrepare *p, SnapshotCandidate *c)
{
	CatalogTable *table = &c->table;
	Oid			namespace = get_namespace_oid(table->target_schema, true);
	Oid			relid = OidIsValid(namespace) ? get_relname_relid(table->target_table, namespace) : InvalidOid;
	bool		existed = OidIsValid(relid);
	HeapRow    *row;

	if (existed && c->is_merged)
		snapshot_merge_fit(p, c, relid);
	else if (existed)
		existed = snapshot_start_existing(&p->start, table, relid, c->def, &p->options);
	else
		snapshot_start_missing(&p->start, table);
	if (!existed)
	{
		MemoryContext cxt = CurrentMemoryContext;
		List	   *statements = transform_create_statements(c->def, table->target_schema,
															 table->target_table, &p->options);
		ListCell   *lc;

		SPI_connect();
		if (!OidIsValid(namespace))
		{
			util_spi_run(psprintf("CREATE SCHEMA %s", quote_identifier(table->target_schema)));
			namespace = get_namespace_oid(table->target_schema, false);
		}
		foreach(lc, statements)
			util_spi_run(lfirst(lc));
		SPI_finish();
		MemoryContextSwitchTo(cxt);

		relid = get_relname_relid(table->target_table, namespace);
	}

	/* opening checks rights, key and columns */
	row = heap_row_open(relid, c->def, &p->options);
	if (c->is_merged)
		table->own_rows = snapshot_merge_own(p, c, row, relid);
	c->keeps_rows = c->is_merged ? snapshot_start_keeps_own(&p->start, table, relid)
		: snapshot_start_keeps_rows(&p->start, table, row->target);
	if (c->keeps_rows && c->def->nkey == 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("target table \"%s.%s\" exists and has rows", table->target_schema, table->target_table),
				 errdetail("The source table has no key, so rows that are there already cannot be told from those of the source."),
				 errhint("Drop or empty the table, then use cdc_resync_table().")));
	heap_row_close(row);
	table->target = relid;
	c->made = table->made = !existed;
}

UtilErrorInfo *
snapshot_refuse_early(const SnapshotPrepare *p, SnapshotCandidate *c, List *taken)
{
	int			sqlstate;
	char	   *detail;
	char	   *hint;
	ListCell   *lc;

	if (!schema_def_is_supported(c->def, &p->options, &sqlstate, &detail, &hint))
		return util_error_info_make(sqlstate,
						  psprintf("source table \"%s.%s\" cannot be mirrored",
								   c->table.source_schema, c->table.source_table),
						  detail, hint);

	if (c->has_no_place)
		return util_error_info_make(ERRCODE_INVALID_NAME,
						  psprintf("source table \"%s.%s\" cannot go to \"%s.%s\"",
								   c->table.source_schema, c->table.source_table,
								   c->table.target_schema, c->table.target_table),
						  pstrdup("The name is empty, or the schema belongs to the system."),
						  pstrdup("Set the option \"routes\" with cdc_alter_pipeline(), then use cdc_resync_table()."));

	foreach(lc, taken)
	{
		CatalogTable *other = lfirst(lc);

		if (strcmp(other->target_schema, c->table.target_schema) != 0 ||
			strcmp(other->target_table, c->table.target_table) != 0)
			continue;
		if (c->is_merged && (other->own_rows != (Datum) 0 || !OidIsValid(other->target)))
		{
			if (OidIsValid(other->target))
				c->sharers = lappend(c->sharers, other);
		}
		else
			return util_error_info_make(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
							  psprintf("target table \"%s.%s\" belongs to another source table",
									   c->table.target_schema, c->table.target_table),
							  other->pipeline_id == c->table.pipeline_id
							  ? psprintf("Source table \"%s.%s\" of this pipeline goes there, and \"%s.%s\" would.",
										 other->source_schema, other->source_table,
										 c->table.source_schema, c->table.source_table)
							  : psprintf("Source table \"%s.%s\" of another pipeline goes there, and \"%s.%s\" would.",
										 other->source_schema, other->source_table,
										 c->table.source_schema, c->table.source_table),
							  pstrdup("Leave one of them out, or give it another target with the option \"routes\" and cdc_alter_pipeline(), then use cdc_resync_table(). Tables that are to share a target need a route with \"merge\", or each the kind \"partial\" in the option \"transforms\"."));
	}
	return NULL;
}

typedef struct TryTarget
{
	const SnapshotPrepare *prepare;
	SnapshotCandidate *candidate;
	SnapshotTargetStep step;
} TryTarget;

static void
try_step(void *arg)
{
	const TryTarget *try = arg;

	try->step(try->prepare, try->candidate);
}

bool
snapshot_try_target(const SnapshotPrepare *p, SnapshotCandidate *c, SnapshotTargetStep step)
{
	TryTarget	try = {p, c, step};
	ErrorData  *edata = util_subtransaction(try_step, &try, true);

	if (edata == NULL)
		return true;
	if (edata->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE && p->is_joining)
		return false;
	/* a view that depends on a column that goes */
	if (!heap_error_is_tables_own(edata->sqlerrcode) && edata->sqlerrcode != ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST)
		ReThrowError(edata);
	c->error = util_error_info(edata);
	c->table.target = InvalidOid;
	FreeErrorData(edata);
	return true;
}

void
snapshot_lock_merge(const SnapshotPrepare *p)
{
	ListCell   *lc;

	foreach(lc, p->candidates)
	{
		const SnapshotCandidate *c = lfirst(lc);

		if (c->is_merged || c->table.own_rows != (Datum) 0 ||
			(!OidIsValid(c->table.target) && transform_kind_shares(p->routes, &p->options, c->table.source_schema, c->table.source_table)))
		{
			catalog_lock_merge();
			return;
		}
	}
}

/* Targets that tables of other pipelines write to: List of CatalogTable. */
List *
snapshot_targets_of_others(const CatalogPipeline *pipeline)
{
	List	   *taken = NIL;
	ListCell   *lc;

	foreach(lc, catalog_pipeline_list())
	{
		const CatalogPipeline *other = lfirst(lc);

		if (other->id != pipeline->id)
		{
			ListCell   *lc2;

			foreach(lc2, catalog_table_list(other->id))
			{
				CatalogTable *table = lfirst(lc2);

				if (OidIsValid(table->target) && table->state != CATALOG_TABLE_STOPPED)
					taken = lappend(taken, table);
			}
		}
	}
	return taken;
}

void
snapshot_log_stopped(const SnapshotPrepare *p, const SnapshotCandidate *c)
{
	ereport(LOG,
			(errcode(c->error->sqlstate),
			 errmsg("source table \"%s.%s\" of pipeline \"%s\" is stopped: %s",
					c->table.source_schema, c->table.source_table, p->pipeline->name, c->error->message),
			 c->error->detail ? errdetail("%s", c->error->detail) : 0,
			 c->error->hint ? errhint("%s", c->error->hint) : 0));
}

/* Names that are told one by one. */
#define PREPARED_TOLD 10

/*
 * XA transactions that were prepared before the start and go on: none of what they changed is known here. They are noted,
 * so that everybody can see what is coming. One that was prepared behind the start mark after all comes again in the stream,
 * and its note with it.
 */
static void
note_prepared(const SnapshotPrepare *p)
{
	int32		next = catalog_prepared_next_id(p->pipeline->id);
	StringInfoData names;
	ListCell   *lc;

	if (p->prepared == NIL)
		return;
	initStringInfo(&names);
	foreach(lc, p->prepared)
	{
		const char *xid = strVal(lfirst(lc));
		CatalogPrepared prepared = {
			.pipeline_id = p->pipeline->id,
			.prepared_id = next++,
			.xid = xid,
		};

		catalog_prepared_insert(&prepared);
		if (foreach_current_index(lc) < PREPARED_TOLD)
			appendStringInfo(&names, "%s%s", names.len > 0 ? "; " : "", xid);
	}
	ereport(LOG,
			(errmsg("XA transactions of source server \"%s\" were prepared before pipeline \"%s\" began, and go on",
					p->pipeline->source, p->pipeline->name),
			 errdetail("There are %d: %s%s. Which tables they change is not known; the commit of one stops all tables.",
					   list_length(p->prepared), names.data, list_length(p->prepared) > PREPARED_TOLD ? "; ..." : ""),
			 errhint("End them now with XA COMMIT or XA ROLLBACK and begin the pipeline anew, or use cdc_resync_table() when they are committed.")));
}

/* All that is written, in one transaction. */
static void
write_down(SnapshotPrepare *p, CatalogPositionLog *log)
{
	MemoryContext caller = CurrentMemoryContext;
	List	   *taken;
	ListCell   *lc;
	int			stopped = 0;
	CdcGtidKind kind = p->info->flavor == MYSQL_FLAVOR_MARIADB ? CDC_GTID_MARIADB
		: p->info->gtid_on ? CDC_GTID_MYSQL : CDC_GTID_NONE;

	heap_transaction_begin();
	snapshot_lock_merge(p);
	PushActiveSnapshot(GetTransactionSnapshot());

	taken = snapshot_targets_of_others(p->pipeline);
	foreach(lc, p->candidates)
	{
		SnapshotCandidate *c = lfirst(lc);

		util_check_interrupts();
		c->error = snapshot_refuse_early(p, c, taken);
		if (c->error == NULL)
		{
			snapshot_try_target(p, c, snapshot_make_target);
			taken = lappend(taken, &c->table);
		}
		if (c->error != NULL)
		{
			c->table.state = CATALOG_TABLE_STOPPED;
			stopped++;
		}
	}

	foreach(lc, p->candidates)
	{
		SnapshotCandidate *c = lfirst(lc);

		c->table.definition = schema_def_to_jsonb(c->def);
		/* one without a key has a copy of its own, see snapshot_keyless.c */
		c->table.chunks_allowed = c->def != NULL && c->def->nkey > 0;
		catalog_table_insert(&c->table, c->error);
		if (c->error == NULL)
			snapshot_index_plan(p->pipeline, &c->table, c->def, &p->options, c->made);
		if (c->error == NULL && c->keeps_rows)
			catalog_deleted_keep_all(c->table.pipeline_id, c->table.table_id);
		if (c->error != NULL)
			snapshot_log_stopped(p, c);
	}
	if (p->has_snapshot_mark)
		catalog_pipeline_set_snapshot_mark(p->pipeline->id, &p->snapshot_mark, p->snapshot_mark_gtids);
	note_prepared(p);
	catalog_position_log_start(log, p->info->identity, kind, &p->position, p->gtids ? p->gtids : "");

	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(caller);

	ereport(LOG,
			(errmsg("pipeline \"%s\" starts with %d tables, %d of them stopped",
					p->pipeline->name, list_length(p->candidates), stopped)));
}

void
snapshot_prepare(const CatalogPipeline *pipeline, const MysqlEndpoint *endpoint,
				 CatalogPositionLog *log)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext cxt = AllocSetContextCreate(caller, "cdc snapshot prepare", ALLOCSET_DEFAULT_SIZES);
	MysqlSession *session;
	SnapshotPrepare p = {.pipeline = pipeline};

	MemoryContextSwitchTo(cxt);
	transform_options_read(pipeline, &p.options);
	p.start = snapshot_start_read(pipeline);
	p.routes = transform_routes_read(pipeline);

	session = mysql_session_open(endpoint); /* closed with cxt when something throws */
	p.info = mysql_server_info(session);
	mysql_server_start_mark(session, p.info, &p.position, &p.gtids);
	snapshot_read_tables(&p, session, NIL);
	require_tables(&p);
	/* without a copy no mark says that one was seen */
	p.has_snapshot_mark = snapshot_await_prepared(session, &p.prepared) && snapshot_start_state(&p.start) == CATALOG_TABLE_SNAPSHOT;
	if (p.has_snapshot_mark)
		mysql_server_start_mark(session, p.info, &p.snapshot_mark, &p.snapshot_mark_gtids);
	mysql_session_close(session);

	write_down(&p, log);

	MemoryContextSwitchTo(caller);
	MemoryContextDelete(cxt);
}
