/*-------------------------------------------------------------------------
 *
 * api_position.c
 *	  cdc_set_position, cdc_skip_transaction: by hand past what a pipeline
 *	  cannot pass by itself.
 *
 * NOTES
 *	  Both give up what the pipeline promises otherwise, so both say what it
 *	  means, in a NOTICE and in the server's log. Setting a position has the
 *	  pipeline's workers leave, as dropping it does, and takes its lock. It writes
 *	  a base row of the position log in the caller's transaction.
 *
 *	  A skipped transaction is one request in a table, which the ingest worker
 *	  carries out when the transaction comes; see apply_skip.c.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/builtins.h"

#include "api/api.h"
#include "catalog/catalog_lock.h"
#include "core/gtid.h"
#include "pipeline/shmem.h"
#include "schema/table.h"
#include "snapshot/snapshot.h"
#include "util/util_arena.h"
#include "util/util_gtid.h"

PG_FUNCTION_INFO_V1(cdc_set_position);
PG_FUNCTION_INFO_V1(cdc_skip_transaction);

/* The first event of a file stands behind its magic number. */
#define FIRST_OFFSET 4

/* ---- what both read ---- */

static void
read_position(const char *text, CdcPosition *position)
{
	if (!cdc_position_parse(text, position) || position->offset < FIRST_OFFSET ||
		position->offset > PG_INT64_MAX || strpbrk(position->file, "/\\ \t\r\n") != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid position \"%s\"", text),
				 errhint("A position has the form file:offset, as in 'binlog.000042:4'.")));
}

/* MySQL's GTIDs have colons, MariaDB's have none. */
static CdcGtidKind
kind_of_gtids(const char *text)
{
	return strchr(text, ':') != NULL ? CDC_GTID_MYSQL : CDC_GTID_MARIADB;
}

/* Canonical text of a set of GTIDs; throws when it is none. */
static char *
read_gtids(const char *text, CdcGtidKind kind, const char *what)
{
	const CdcAllocator *allocator = util_context_allocator(CurrentMemoryContext);
	CdcGtidSet *set = util_gtid_set_create(kind, allocator);
	CdcError	err = {0};
	CdcBuf		buf;

	if (cdc_gtid_set_add_text(set, text, strlen(text), &err) != CDC_OK || cdc_gtid_set_is_empty(set))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid %s \"%s\"", what, text),
				 errhint("MySQL writes uuid:1-5, MariaDB domain-server-sequence, as in '0-1-42'.")));
	cdc_buf_init(&buf, allocator, 0);
	cdc_gtid_set_format(set, &buf);
	if (buf.status != CDC_OK)
		util_throw_out_of_memory();
	return pstrdup(buf.data);
}

/* GTIDs of the other family than those that the pipeline has applied cannot be meant. */
static void
check_family(const CatalogPosition *current, CdcGtidKind kind, const char *text)
{
	CdcGtidKind known = CDC_GTID_NONE;

	if (current == NULL)
		return;
	if (current->gtids[0] != '\0')
		known = kind_of_gtids(current->gtids);
	else if (strncmp(current->identity, "mariadb:", 8) == 0)
		known = CDC_GTID_MARIADB;
	else if (current->identity[0] != '\0' && strcmp(current->identity, CATALOG_ANY_SERVER) != 0)
		known = CDC_GTID_MYSQL;
	if (known == CDC_GTID_NONE || known == kind)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("\"%s\" is not a GTID of the pipeline's source", text),
			 errdetail("The source is a %s server.", known == CDC_GTID_MYSQL ? "MySQL" : "MariaDB"),
			 errhint(known == CDC_GTID_MYSQL ? "MySQL writes uuid:1-5." : "MariaDB writes domain-server-sequence, as in '0-1-42'.")));
}

/* "binlog.000042:4" or the GTIDs, for messages. */
static const char *
position_text(const CatalogPosition *at)
{
	static char text[CDC_POSITION_TEXT_MAX];

	if (!cdc_position_is_known(&at->position))
		return at->gtids[0] != '\0' ? at->gtids : "the beginning";
	cdc_position_format(&at->position, text);
	return text;
}

/* ---- cdc_set_position ---- */

/* Between two lives of its workers, and with no copy under way that relies on what the stream brings. */
static void
check_can_be_set(const CatalogPipeline *pipeline, const CatalogPosition *current, bool anew)
{
	List	   *tables = catalog_table_list(pipeline->id);
	ListCell   *lc;

	if (pipeline->enabled)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pipeline \"%s\" is not stopped", pipeline->name),
				 errhint("Run SELECT cdc_stop_pipeline(%s) first.", quote_literal_cstr(pipeline->name))));
	if (current == NULL && (tables == NIL || anew))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg(anew ? "pipeline \"%s\" has no position yet" : "pipeline \"%s\" has no tables yet", pipeline->name),
				 errdetail("Its first start copies them and finds a position by itself."),
				 errhint("Run SELECT cdc_start_pipeline(%s).", quote_literal_cstr(pipeline->name))));
	foreach(lc, current != NULL && !anew ? tables : NIL)
	{
		const CatalogTable *table = lfirst(lc);

		if (table->state == CATALOG_TABLE_STREAMING && table->definition != (Datum) 0 &&
			schema_def_is_keyless(table->definition))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("table \"%s.%s\" of pipeline \"%s\" has no key",
							table->source_schema, table->source_table, pipeline->name),
					 errdetail("Changes that came twice would double its rows, changes that were left out would be missing for good."),
					 errhint("Take it out with cdc_remove_table(), empty its target, and let it join again with cdc_add_table().")));
		if (table->state != CATALOG_TABLE_SNAPSHOT && table->state != CATALOG_TABLE_CATCHUP)
			continue;
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("tables of pipeline \"%s\" are still being copied", pipeline->name),
				 errdetail("The copy of \"%s.%s\" is complete only with all changes from its start on.",
						   table->source_schema, table->source_table),
				 errhint("Let the copy finish, or drop the pipeline with cdc_drop_pipeline() and start it anew.")));
	}
}

static void
say_what_it_means(const CatalogPipeline *pipeline, const CatalogPosition *from, const CatalogPosition *to)
{
	const char *meaning;
	const char *old = from != NULL ? pstrdup(position_text(from)) : NULL;
	int			order;

	if (strcmp(to->identity, CATALOG_ANY_SERVER) == 0)
	{
		ereport(NOTICE,
				(errmsg("pipeline \"%s\" copies all its tables anew when it is started", pipeline->name),
				 errdetail("Its position was %s. Targets keep their rows until the new copies take their place; a table without a key has to be emptied before.",
						   old)));
		ereport(LOG,
				(errmsg("position of pipeline \"%s\" is given up by role \"%s\"", pipeline->name,
						GetUserNameFromId(GetUserId(), false)),
				 errdetail("It was %s. All tables are to be copied anew.", old)));
		return;
	}
	if (from == NULL)
		meaning = "Its tables are taken to hold what the source had at that position; differences stay.";
	else if (!cdc_position_is_known(&from->position) || !cdc_position_is_known(&to->position) ||
			 strcmp(from->identity, to->identity) != 0 ||
			 !cdc_position_compare(&to->position, &from->position, &order))
		meaning = "Changes between the former position and this one are left out or applied again, whichever way it lies.";
	else if (order > 0)
		meaning = "Changes between the former position and this one are not applied.";
	else
		meaning = "Changes between this position and the former one are applied again: inserts become updates, and are counted as conflicts.";

	ereport(NOTICE,
			(errmsg("pipeline \"%s\" goes on at %s", pipeline->name, position_text(to)),
			 old != NULL ? errdetail("Its position was %s. %s", old, meaning) : errdetail("%s", meaning)));
	ereport(LOG,
			(errmsg("position of pipeline \"%s\" is set to %s by role \"%s\"", pipeline->name, position_text(to),
					GetUserNameFromId(GetUserId(), false)),
			 old != NULL ? errdetail("It was %s.", old) : 0));
}

/* The arguments of cdc_set_position, before anything is known of the pipeline. */
static void
check_arguments(const char *name, const char *position, const char *gtids, const char *server, bool anew)
{
	if ((position != NULL) + (gtids != NULL) + anew != 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("exactly one of \"at\", \"gtids\" and \"anew\" must be given"),
				 errhint("For example: SELECT cdc_set_position(%s, at => 'binlog.000042:4').", quote_literal_cstr(name))));
	if (server != NULL && position == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"server\" goes with \"at\" only"),
				 errdetail("GTIDs mean the same on all servers of a replication.")));
	if (server != NULL && (server[0] == '\0' || strcmp(server, CATALOG_ANY_SERVER) == 0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid server \"%s\"", server),
				 errhint("Give its identity, as the pipeline's last error or cdc_check_pipeline() names it: the server_uuid of MySQL, \"mariadb:server_id:gtid_domain_id\" of MariaDB.")));
}

Datum
cdc_set_position(PG_FUNCTION_ARGS)
{
	char	   *name = api_name_arg(fcinfo);
	char	   *position = api_text_arg(fcinfo, 1);
	char	   *gtids = api_text_arg(fcinfo, 2);
	char	   *server = api_text_arg(fcinfo, 3);
	bool		anew = !PG_ARGISNULL(4) && PG_GETARG_BOOL(4);
	CdcGtidKind kind = CDC_GTID_NONE;
	CatalogPosition to = {.gtids = ""};
	CatalogPosition *current;
	CatalogPositionLog *log;
	CatalogPipeline *pipeline;

	PreventCommandIfReadOnly("cdc_set_position()");
	check_arguments(name, position, gtids, server, anew);

	pipeline = catalog_pipeline_by_name(name);
	if (pipeline == NULL)
		api_no_pipeline(name, NULL);
	api_check_owner(pipeline);
	api_check_incoming(pipeline, "cdc_set_position()");
	if (!pipeline->enabled)
	{
		/* the stop may be this transaction's own, which no worker has seen */
		shmem_stop_pipeline(pipeline->id);
		catalog_lock_pipeline(pipeline->id, AccessExclusiveLock, false);
	}
	pipeline = catalog_pipeline_for_update(pipeline->id);
	if (pipeline == NULL)
		api_no_pipeline(name, NULL);
	api_check_owner(pipeline);

	current = catalog_position_load(pipeline->id, true);
	check_can_be_set(pipeline, current, anew);
	to.identity = anew ? CATALOG_ANY_SERVER : server != NULL ? server : current != NULL ? current->identity : "";
	if (position != NULL)
		read_position(position, &to.position);
	else if (gtids != NULL)
	{
		kind = kind_of_gtids(gtids);
		check_family(current, kind, gtids);
		to.gtids = read_gtids(gtids, kind, "set of GTIDs");
	}

	catalog_pipeline_complete(pipeline->id);
	log = catalog_position_log_open(pipeline->id, CurrentMemoryContext);
	if (current != NULL && server != NULL && strcmp(server, current->identity) != 0)
	{
		CatalogMove move = {.identity = server,.position = to.position,.gtids = ""};

		/* what was noted of the former log goes */
		(void) snapshot_move_write(pipeline, log, &move);
	}
	else
		catalog_position_log_start(log, to.identity, kind, &to.position, to.gtids);
	say_what_it_means(pipeline, current, &to);
	PG_RETURN_VOID();
}

/* ---- cdc_skip_transaction ---- */

/* Is it the name of one transaction: a number at the end, and nothing that joins several? */
static bool
is_one_gtid(const char *canonical, CdcGtidKind kind)
{
	const char *number = strrchr(canonical, kind == CDC_GTID_MYSQL ? ':' : '-');

	return strchr(canonical, ',') == NULL && number != NULL && number[1] != '\0' &&
		strspn(number + 1, "0123456789") == strlen(number + 1);
}

static void
read_gtid(const char *text, const CatalogPosition *current, CatalogSkip *skip)
{
	CdcGtidKind kind = kind_of_gtids(text);

	check_family(current, kind, text);
	skip->gtid = read_gtids(text, kind, "GTID");
	if (!is_one_gtid(skip->gtid, kind))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" is more than one GTID", text),
				 errhint("Call cdc_skip_transaction() once for each transaction.")));
}

/* Another file name than those of the log that is followed is a slip of the pen: the request would stay for ever. */
static void
check_is_of_this_log(const CatalogPipeline *pipeline, const CatalogPosition *current, const CatalogSkip *skip)
{
	int			order;

	if (current == NULL || skip->gtid != NULL || !cdc_position_is_known(&current->position) ||
		cdc_position_compare(&skip->position, &current->position, &order))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("\"%s\" is not a file of the log that pipeline \"%s\" follows", skip->position.file, pipeline->name),
			 errdetail("Its position is %s.", position_text(current)),
			 errhint("Give the position as SHOW BINARY LOGS and SHOW BINLOG EVENTS at the source name it.")));
}

/* Has the pipeline passed it already? Then nothing would ever come of the request. */
static void
check_is_to_come(const CatalogPipeline *pipeline, const CatalogPosition *current, const CatalogSkip *skip)
{
	int			order = 0;
	bool		passed;

	if (current == NULL)
		return;
	if (skip->gtid == NULL)
		passed = cdc_position_is_known(&current->position) &&
			cdc_position_compare(&skip->position, &current->position, &order) && order < 0;
	else
	{
		CdcGtidKind kind = kind_of_gtids(skip->gtid);
		CdcGtidSet *set = util_gtid_set_create(kind, util_context_allocator(CurrentMemoryContext));
		CdcBuf		before;
		CdcBuf		after;

		/* it is in the set when adding it changes nothing */
		cdc_buf_init(&before, util_context_allocator(CurrentMemoryContext), 0);
		cdc_buf_init(&after, util_context_allocator(CurrentMemoryContext), 0);
		util_gtid_set_add_text(set, current->gtids);
		cdc_gtid_set_format(set, &before);
		util_gtid_set_add_text(set, skip->gtid);
		cdc_gtid_set_format(set, &after);
		if (before.status != CDC_OK || after.status != CDC_OK)
			util_throw_out_of_memory();
		passed = before.data != NULL && strcmp(before.data, after.data) == 0;
	}
	if (passed)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pipeline \"%s\" has passed that transaction already", pipeline->name),
				 errdetail("Its position is %s.", position_text(current))));
}

Datum
cdc_skip_transaction(PG_FUNCTION_ARGS)
{
	char	   *name = api_name_arg(fcinfo);
	char	   *position = api_text_arg(fcinfo, 1);
	char	   *gtid = api_text_arg(fcinfo, 2);
	CatalogPosition *current;
	CatalogPipeline *pipeline;
	CatalogSkip skip = {0};
	char		text[CDC_POSITION_TEXT_MAX];

	PreventCommandIfReadOnly("cdc_skip_transaction()");
	if (position != NULL && gtid != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("at most one of \"at\" and \"gtid\" must be given")));

	pipeline = api_lock_for_change(name);
	if (pipeline == NULL)
		api_no_pipeline(name, NULL);
	api_check_incoming(pipeline, "cdc_skip_transaction()");
	current = catalog_position_load(pipeline->id, true);
	skip.pipeline_id = pipeline->id;
	if (position == NULL && gtid == NULL)
	{
		position = pipeline->failed_transaction;
		if (position == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("pipeline \"%s\" has not failed inside a source transaction", pipeline->name),
					 errdetail("So which transaction is meant cannot be told."),
					 errhint("Give \"at\", where the transaction starts in the source's log, or \"gtid\".")));
	}
	if (gtid != NULL)
		read_gtid(gtid, current, &skip);
	else
		read_position(position, &skip.position);
	/* where it failed is in the log for sure, be it in a file that was renamed at the source */
	if (position != NULL && (pipeline->failed_transaction == NULL || strcmp(position, pipeline->failed_transaction) != 0))
		check_is_of_this_log(pipeline, current, &skip);
	check_is_to_come(pipeline, current, &skip);
	cdc_position_format(&skip.position, text);

	if (!catalog_skip_add(&skip))
	{
		ereport(NOTICE,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("pipeline \"%s\" is going to pass over that transaction already", name)));
		PG_RETURN_VOID();
	}
	ereport(NOTICE,
			(errmsg("pipeline \"%s\" will pass over the source transaction %s %s", name,
					gtid != NULL ? "with GTID" : "that starts at", gtid != NULL ? skip.gtid : text),
			 errdetail("What it changes will be missing in the target tables."),
			 !pipeline->enabled || pipeline->state == CATALOG_PIPELINE_FAILED
			 ? errhint("Start the pipeline with cdc_start_pipeline().") : 0));
	ereport(LOG,
			(errmsg("role \"%s\" asks pipeline \"%s\" to pass over the source transaction %s %s",
					GetUserNameFromId(GetUserId(), false), name,
					gtid != NULL ? "with GTID" : "that starts at", gtid != NULL ? skip.gtid : text)));
	shmem_wake_at_commit();
	PG_RETURN_VOID();
}
