/*-------------------------------------------------------------------------
 *
 * api_schema_change.c
 *	  The function of the event triggers: it leaves a message in the log about
 *	  a statement that changed tables.
 *
 * NOTES
 *	  The message stands in the log between the rows of before and behind the
 *	  statement, and is decoded with them (core/schema_message.h). It is written
 *	  about every table whose changes are logged: which of them are shipped is
 *	  for the decoding to say, so that the user's statement reads none of our
 *	  tables.
 *
 *	  It cannot fail the statement. What it reads, it reads in a subtransaction,
 *	  as the owner of the extension and with a search_path of its own; an error
 *	  becomes a warning. Only a cancel goes on to the user, who asked for it.
 *
 *	  What a statement did is told by the server's own lists of an event trigger.
 *	  These leave out three things. A statement on a table goes down to its
 *	  partitions and heirs, which are not listed. A type that changes does so in
 *	  all columns that have it. And the old name of a table is in none of them: it
 *	  is read from the row of pg_class that this transaction has replaced.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_publication_namespace.h"
#include "catalog/pg_publication_rel.h"
#include "catalog/pg_type.h"
#include "commands/event_trigger.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "api/api_change_kinds.h"
#include "catalog/catalog.h"
#include "catalog/catalog_history.h"
#include "compat/pg_compat.h"
#include "core/schema_message.h"
#include "util/util_arena.h"
#include "util/util_role.h"
#include "util/util_subtransaction.h"

PG_FUNCTION_INFO_V1(cdc_schema_change);

/* The schema of our own tables. */
#define OWN_SCHEMA "cdc_bridge"

/* A message of that size is written, and another one begun; of drops one is better, as what was published with a table is looked up in it. */
#define MESSAGE_SIZE (64 * 1024)
#define DROP_MESSAGE_SIZE (32 * 1024 * 1024)

/* One row of the server's lists. */
typedef struct Listed
{
	Oid			classid;
	Oid			objid;
	int32		objsubid;
	const char *command;
	const char *schema;
	const char *name;
	const char *publication;
} Listed;

typedef struct Told
{
	EventTriggerData *data;
	List	   *rewritten;		/* OIDs of tables */
	List	   *seen;			/* the same: those that have an item */
	CdcBuf		message;
	size_t		message_size;	/* beyond which another one is begun */
	List	   *messages;		/* StringInfo: complete ones */
} Told;

/* Tables that the statement which runs now has rewritten. */
static struct
{
	TransactionId xid;
	SubTransactionId subid;
	List	   *relids;			/* in the transaction's context */
}			rewrites;

/* ---- the message ---- */

static void
finish_message(Told *told)
{
	StringInfo	copy = makeStringInfo();

	if (told->message.status != CDC_OK)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	appendBinaryStringInfo(copy, told->message.data, (int) told->message.len);
	told->messages = lappend(told->messages, copy);
	cdc_buf_reset(&told->message);
}

static void
add_item(Told *told, const CdcSchemaItem *item)
{
	if (told->message.len == 0)
		cdc_schema_message_begin(&told->message);
	cdc_schema_message_add(&told->message, item);
	if (told->message.len >= told->message_size)
		finish_message(told);
}

/* ---- tables ---- */

/* May the changes of a table be in the log, and be of interest to others? */
static bool
is_logged(Form_pg_class form)
{
	return (form->relkind == RELKIND_RELATION || form->relkind == RELKIND_PARTITIONED_TABLE) &&
		form->relpersistence == RELPERSISTENCE_PERMANENT && form->oid >= FirstNormalObjectId;
}

static bool
is_own(const char *schema)
{
	return strcmp(schema, OWN_SCHEMA) == 0;
}

/* The newest row of pg_class for that table that this transaction has replaced or deleted, NULL when there is none. */
static HeapTuple
replaced_row(Oid relid, bool other_name)
{
	Relation	rel = table_open(RelationRelationId, AccessShareLock);
	HeapTuple	now = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	HeapTuple	best = NULL;
	CommandId	best_cmax = 0;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, ClassOidIndexId, true, SnapshotAny, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);
		CommandId	cmax;

		if ((tuple->t_data->t_infomask & HEAP_XMAX_INVALID) != 0 || HEAP_XMAX_IS_LOCKED_ONLY(tuple->t_data->t_infomask) ||
			!TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetUpdateXid(tuple->t_data)))
			continue;
		if (other_name && (!HeapTupleIsValid(now) ||
						   (form->relnamespace == ((Form_pg_class) GETSTRUCT(now))->relnamespace &&
							strcmp(NameStr(form->relname), NameStr(((Form_pg_class) GETSTRUCT(now))->relname)) == 0)))
			continue;
		cmax = HeapTupleHeaderGetCmax(tuple->t_data);
		if (best != NULL && cmax < best_cmax)
			continue;
		best = heap_copytuple(tuple);
		best_cmax = cmax;
	}
	systable_endscan(scan);
	if (HeapTupleIsValid(now))
		ReleaseSysCache(now);
	table_close(rel, AccessShareLock);
	return best;
}

static bool
is_renaming(const Node *statement)
{
	if (IsA(statement, AlterObjectSchemaStmt))
		return true;
	if (!IsA(statement, RenameStmt))
		return false;
	switch (((const RenameStmt *) statement)->renameType)
	{
		case OBJECT_TABLE:
		case OBJECT_VIEW:
		case OBJECT_MATVIEW:
		case OBJECT_INDEX:
		case OBJECT_SEQUENCE:
		case OBJECT_FOREIGN_TABLE:
			return true;		/* ALTER INDEX and the like take tables too */
		default:
			return false;
	}
}

static bool
has_command(const Node *statement, AlterTableType type)
{
	ListCell   *lc;

	if (!IsA(statement, AlterTableStmt))
		return false;
	foreach(lc, ((const AlterTableStmt *) statement)->cmds)
	{
		if (((const AlterTableCmd *) lfirst(lc))->subtype == type)
			return true;
	}
	return false;
}

/* Names of before the statement. */
static void
set_old_names(const Told *told, CdcSchemaItem *item)
{
	const Node *statement = told->data->parsetree;
	const RenameStmt *rename = (const RenameStmt *) statement;
	HeapTuple	tuple;
	Form_pg_class form;
	char	   *schema;

	if (IsA(statement, RenameStmt) && rename->renameType == OBJECT_COLUMN)
	{
		item->old_column = rename->subname;
		item->new_name = rename->newname;
		return;
	}
	if (IsA(statement, RenameStmt) && rename->renameType == OBJECT_SCHEMA)
	{
		item->old_schema = rename->subname;
		item->old_name = item->name;
		return;
	}
	if (!is_renaming(statement))
		return;
	tuple = replaced_row(item->relid, true);
	if (tuple == NULL)
		return;
	form = (Form_pg_class) GETSTRUCT(tuple);
	schema = get_namespace_name(form->relnamespace);
	if (schema == NULL)
		return;
	item->old_schema = schema;
	item->old_name = NameStr(form->relname);
}

static void
add_table(Told *told, Oid relid, const char *command)
{
	HeapTuple	tuple;
	Form_pg_class form;
	CdcSchemaItem item = {.kind = CDC_SCHEMA_TABLE,.relid = relid,.command = command,.kinds = api_change_kinds(told->data->parsetree)};
	char	   *schema;

	CHECK_FOR_INTERRUPTS();
	if (list_member_oid(told->seen, relid))
		return;
	tuple = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tuple))
		return;
	form = (Form_pg_class) GETSTRUCT(tuple);
	schema = get_namespace_name(form->relnamespace);
	if (schema == NULL || is_own(schema))
		return;
	item.schema = schema;
	item.name = NameStr(form->relname);
	if (is_logged(form))
	{
		item.rewritten = list_member_oid(told->rewritten, relid);
		set_old_names(told, &item);
	}
	else if (form->relpersistence == RELPERSISTENCE_UNLOGGED && has_command(told->data->parsetree, AT_SetUnLogged))
	{
		item.kind = CDC_SCHEMA_GONE;
		item.is_partition = form->relispartition;
	}
	else
		return;
	told->seen = lappend_oid(told->seen, relid);
	add_item(told, &item);
}

/* Does a statement on a table mean the tables below it too? */
static bool
goes_down(const Node *statement)
{
	ListCell   *lc;

	if (IsA(statement, RenameStmt))
		return ((const RenameStmt *) statement)->renameType == OBJECT_COLUMN;
	if (!IsA(statement, AlterTableStmt))
		return false;
	foreach(lc, ((const AlterTableStmt *) statement)->cmds)
	{
		switch (((const AlterTableCmd *) lfirst(lc))->subtype)
		{
			case AT_AttachPartition:
			case AT_DetachPartition:
			case AT_DetachPartitionFinalize:
			case AT_ReplicaIdentity:
			case AT_ChangeOwner:
			case AT_SetRelOptions:
			case AT_ResetRelOptions:
			case AT_SetTableSpace:
				break;
			default:
				return true;
		}
	}
	return false;
}

static void
add_table_and_below(Told *told, Oid relid, const char *command)
{
	List	   *relids = goes_down(told->data->parsetree) ? find_all_inheritors(relid, NoLock, NULL) : list_make1_oid(relid);
	ListCell   *lc;

	/* rows of a partition that was rewritten are rows of the tables above it */
	foreach(lc, relids)
	{
		if (list_member_oid(told->rewritten, lfirst_oid(lc)))
			told->rewritten = list_append_unique_oid(told->rewritten, relid);
	}
	foreach(lc, relids)
		add_table(told, lfirst_oid(lc), command);
}

/* Tables with columns of a type, of arrays of it, of domains over it, or of composites that have it. */
static void
add_tables_of_type(Told *told, Oid first, const char *command)
{
	List	   *types = list_make1_oid(first);
	Relation	rel = table_open(DependRelationId, AccessShareLock);

	for (int i = 0; i < list_length(types); i++)
	{
		Oid			typid = list_nth_oid(types, i);
		Oid			array = get_array_type(typid);
		ScanKeyData keys[2];
		SysScanDesc scan;
		HeapTuple	tuple;

		if (OidIsValid(array))
			types = list_append_unique_oid(types, array);
		ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(TypeRelationId));
		ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(typid));
		scan = systable_beginscan(rel, DependReferenceIndexId, true, NULL, 2, keys);
		while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		{
			Form_pg_depend depend = (Form_pg_depend) GETSTRUCT(tuple);

			if (depend->classid == TypeRelationId && get_typtype(depend->objid) == TYPTYPE_DOMAIN)
				types = list_append_unique_oid(types, depend->objid);
			if (depend->classid != RelationRelationId || depend->objsubid == 0)
				continue;
			if (get_rel_relkind(depend->objid) == RELKIND_COMPOSITE_TYPE)
				types = list_append_unique_oid(types, get_rel_type_id(depend->objid));
			else
				add_table(told, depend->objid, command);
		}
		systable_endscan(scan);
	}
	table_close(rel, AccessShareLock);
}

static void
add_tables_of_schema(Told *told, Oid nsp, const char *command)
{
	Relation	rel = table_open(RelationRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_class_relnamespace, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(nsp));
	scan = systable_beginscan(rel, InvalidOid, false, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		add_table(told, ((Form_pg_class) GETSTRUCT(tuple))->oid, command);
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
}

/* ---- what the server lists ---- */

/* Rows (Listed) of a query with the columns of it, in the caller's memory context. */
static List *
read_list(const char *query)
{
	MemoryContext cxt = CurrentMemoryContext;
	List	   *list = NIL;

	if (SPI_connect() != SPI_OK_CONNECT || SPI_execute(query, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read what the statement did");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple	tuple = SPI_tuptable->vals[i];
		TupleDesc	desc = SPI_tuptable->tupdesc;
		MemoryContext spi_cxt = MemoryContextSwitchTo(cxt);
		Listed	   *listed = palloc0(sizeof(Listed));
		const char **texts[] = {&listed->command, &listed->schema, &listed->name, &listed->publication};
		bool		isnull;

		listed->classid = DatumGetObjectId(SPI_getbinval(tuple, desc, 1, &isnull));
		listed->objid = DatumGetObjectId(SPI_getbinval(tuple, desc, 2, &isnull));
		listed->objsubid = DatumGetInt32(SPI_getbinval(tuple, desc, 3, &isnull));
		for (int n = 0; n < (int) lengthof(texts); n++)
		{
			Datum		value = SPI_getbinval(tuple, desc, n + 4, &isnull);

			*texts[n] = isnull ? NULL : TextDatumGetCString(value);
		}
		list = lappend(list, listed);
		MemoryContextSwitchTo(spi_cxt);
	}
	SPI_finish();
	MemoryContextSwitchTo(cxt);
	return list;
}

/* ddl_command_end */
static void
tell_commands(Told *told)
{
	List	   *list = read_list("SELECT classid, objid, objsubid, command_tag, NULL::pg_catalog.text, NULL::pg_catalog.text, NULL::pg_catalog.text"
								 " FROM pg_catalog.pg_event_trigger_ddl_commands() WHERE classid IS NOT NULL");
	ListCell   *lc;

	foreach(lc, list)
	{
		const Listed *listed = lfirst(lc);

		if (strcmp(listed->command, "COMMENT") == 0 || strcmp(listed->command, "SECURITY LABEL") == 0)
			continue;
		if (listed->classid == RelationRelationId && get_rel_relkind(listed->objid) == RELKIND_COMPOSITE_TYPE)
			add_tables_of_type(told, get_rel_type_id(listed->objid), listed->command);
		else if (listed->classid == RelationRelationId)
			add_table_and_below(told, listed->objid, listed->command);
		else if (listed->classid == TypeRelationId && strcmp(listed->command, "ALTER TYPE") == 0)
			add_tables_of_type(told, listed->objid, listed->command);
		else if (listed->classid == NamespaceRelationId && strcmp(listed->command, "ALTER SCHEMA") == 0 &&
				 IsA(told->data->parsetree, RenameStmt))
			add_tables_of_schema(told, listed->objid, listed->command);
	}
}

static void
tell_dropped_table(Told *told, const Listed *listed)
{
	HeapTuple	tuple = replaced_row(listed->objid, false);
	Form_pg_class form = tuple != NULL ? (Form_pg_class) GETSTRUCT(tuple) : NULL;

	if (listed->schema == NULL || listed->name == NULL || is_own(listed->schema) || (form != NULL && !is_logged(form)))
		return;
	add_item(told, &(CdcSchemaItem) {
		.kind = CDC_SCHEMA_GONE,.relid = listed->objid,.command = listed->command,.schema = listed->schema,.name = listed->name,
			.is_partitioned = form != NULL && form->relkind == RELKIND_PARTITIONED_TABLE,
			.is_partition = form != NULL && form->relispartition,
			.kinds = CATALOG_CHANGE_BIT(CATALOG_CHANGE_DROP_TABLE)
	});
}

/* sql_drop; which publications had a table comes first, so that it stands in the same message */
static void
tell_drops(Told *told)
{
	const char *command = GetCommandTagName(told->data->tag);
	List	   *list = read_list("SELECT classid, objid, objsubid, NULL::pg_catalog.text,"
								 " CASE object_type WHEN 'table' THEN schema_name ELSE address_names[1] END,"
								 " CASE object_type WHEN 'table' THEN object_name ELSE address_names[2] END, address_args[1]"
								 " FROM pg_catalog.pg_event_trigger_dropped_objects() WHERE NOT is_temporary"
								 " AND object_type IN ('table', 'table column', 'publication relation', 'publication namespace')"
								 " ORDER BY object_type");
	ListCell   *lc;

	foreach(lc, list)
	{
		Listed	   *listed = lfirst(lc);

		listed->command = command;
		if (listed->classid == PublicationRelRelationId || listed->classid == PublicationNamespaceRelationId)
		{
			if (listed->schema != NULL && listed->publication != NULL)
				add_item(told, &(CdcSchemaItem) {
					.kind = CDC_SCHEMA_UNPUBLISHED,.command = command,.schema = listed->schema,.name = listed->name,
						.new_name = listed->publication
				});
		}
		else if (listed->classid == RelationRelationId && listed->objsubid == 0)
			tell_dropped_table(told, listed);
		else if (listed->classid == RelationRelationId && told->data->tag != CMDTAG_ALTER_TABLE)
			add_table(told, listed->objid, command);	/* DROP TYPE ... CASCADE; ALTER TABLE is listed at its end */
	}
}

/* UtilStep */
static void
tell(void *arg)
{
	Told	   *told = arg;
	UtilRoleSwitch sw;

	util_role_switch_begin(catalog_extension_owner(), &sw);
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	if (strcmp(told->data->event, "sql_drop") == 0)
	{
		told->message_size = DROP_MESSAGE_SIZE;
		tell_drops(told);
	}
	else
	{
		told->message_size = MESSAGE_SIZE;
		tell_commands(told);
	}
	if (told->message.len > 0)
		finish_message(told);
	util_role_switch_end(&sw);
}

/* ---- the function ---- */

/* UtilStep. table_rewrite comes before the statement's end, which is when it is told. */
static void
note_rewrite(void *arg)
{
	Oid			relid = DatumGetObjectId(DirectFunctionCall1(pg_event_trigger_table_rewrite_oid, (Datum) 0));
	MemoryContext old_context = MemoryContextSwitchTo(TopTransactionContext);

	rewrites.relids = lappend_oid(rewrites.relids, relid);
	MemoryContextSwitchTo(old_context);
}

/* Tables that were rewritten in this very subtransaction, since the last statement in it. */
static void
keep_rewrites_of_now(void)
{
	TransactionId xid = GetTopTransactionIdIfAny();
	SubTransactionId subid = GetCurrentSubTransactionId();

	if (rewrites.xid == xid && rewrites.subid == subid)
		return;
	/* one that failed left some: they are gone with its transaction, or do not count */
	rewrites.relids = NIL;
	rewrites.xid = xid;
	rewrites.subid = subid;
}

static void
warn(ErrorData *edata, const char *tag)
{
	if (edata->sqlerrcode == ERRCODE_QUERY_CANCELED)
		ReThrowError(edata);
	ereport(WARNING,
			(errcode(edata->sqlerrcode),
			 errmsg("outgoing pipelines do not hear what %s did to tables", tag),
			 errdetail("%s", edata->message),
			 errhint("The statement itself is carried out, and rows are shipped with the columns that they have. Repeat an ALTER TABLE that changes nothing, to have the definition shipped.")));
}

Datum
cdc_schema_change(PG_FUNCTION_ARGS)
{
	EventTriggerData *data = (EventTriggerData *) fcinfo->context;
	Told		told = {0};
	ErrorData  *edata;
	ListCell   *lc;

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" can only be called as an event trigger", "cdc_bridge.schema_change")));
	keep_rewrites_of_now();
	told.data = data;
	if (strcmp(data->event, "table_rewrite") == 0)
		edata = util_subtransaction(note_rewrite, NULL, true);
	else
	{
		told.rewritten = list_copy(rewrites.relids);
		cdc_buf_init(&told.message, util_context_allocator(CurrentMemoryContext), 0);
		edata = util_subtransaction(tell, &told, true);
	}
	if (edata != NULL)
		warn(edata, GetCommandTagName(data->tag));
	/* outside of the subtransaction, which has needed no transaction number of its own so far */
	foreach(lc, edata == NULL ? told.messages : NIL)
	{
		StringInfo	message = lfirst(lc);

		cdc_log_message(CDC_SCHEMA_MESSAGE_PREFIX, message->data, message->len);
	}
	if (strcmp(data->event, "ddl_command_end") == 0)
		rewrites.relids = NIL;
	PG_RETURN_NULL();
}
