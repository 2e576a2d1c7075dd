/*-------------------------------------------------------------------------
 *
 * utility_hook.c
 *	  Workers leave a database before somebody drops, renames, moves or copies
 *	  it, or drops the extension.
 *
 * NOTES
 *	  DROP DATABASE and its sisters fail while other processes are connected.
 *	  Before such a statement runs, the database's workers are stopped and kept
 *	  out until the transaction ends; then the launcher looks what is left. Only
 *	  somebody who may carry the statement out can make workers leave: others get
 *	  their error from the server untouched.
 *
 *	  The extension also goes with its schema, or its owner (DROP SCHEMA ... CASCADE,
 *	  DROP OWNED): that is seen when it is deleted.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_database.h"
#include "catalog/pg_extension.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
#include "utils/acl.h"

#include "catalog/catalog.h"
#include "compat/pg_compat.h"
#include "pipeline/shmem_slots.h"
#include "pipeline/worker.h"

static ProcessUtility_hook_type prev_process_utility_hook = NULL;
static object_access_hook_type prev_object_access_hook = NULL;

/* Name of the database that CREATE DATABASE copies. */
static const char *
template_of(CreatedbStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, stmt->options)
	{
		DefElem    *option = lfirst(lc);

		if (strcmp(option->defname, "template") == 0 && option->arg != NULL)
			return defGetString(option);
	}
	return "template1";
}

/*
 * Database that must have no workers while the statement runs; InvalidOid:
 * none. *drops tells that its pipelines go for good.
 */
static Oid
database_of(Node *stmt, bool *drops)
{
	const char *name = NULL;
	Oid			database;

	*drops = false;

	switch (nodeTag(stmt))
	{
		case T_DropdbStmt:
			name = ((DropdbStmt *) stmt)->dbname;
			*drops = true;
			break;
		case T_CreatedbStmt:
			name = template_of((CreatedbStmt *) stmt);
			break;
		case T_RenameStmt:
			if (((RenameStmt *) stmt)->renameType == OBJECT_DATABASE)
				name = ((RenameStmt *) stmt)->subname;
			break;
		case T_AlterDatabaseStmt:
			{
				AlterDatabaseStmt *alter = (AlterDatabaseStmt *) stmt;
				ListCell   *lc;

				foreach(lc, alter->options)
				{
					if (strcmp(((DefElem *) lfirst(lc))->defname, "tablespace") == 0)
						name = alter->dbname;
				}
				break;
			}
		case T_DropStmt:
			{
				DropStmt   *drop = (DropStmt *) stmt;
				ListCell   *lc;

				if (drop->removeType != OBJECT_EXTENSION)
					break;
				foreach(lc, drop->objects)
				{
					if (strcmp(strVal(lfirst(lc)), "cdc_bridge") == 0)
					{
						Oid			extension = get_extension_oid("cdc_bridge", true);

						if (OidIsValid(extension) && cdc_extension_ownercheck(extension, GetUserId()))
						{
							*drops = true;
							return MyDatabaseId;
						}
					}
				}
				break;
			}
		default:
			break;
	}

	if (name == NULL)
		return InvalidOid;
	database = get_database_oid(name, true);
	if (!OidIsValid(database) || !cdc_database_ownercheck(database, GetUserId()))
		return InvalidOid;
	return database;
}

/* Have the workers of a database leave; drops: for good. */
static void
clear_database(Oid database, bool drops)
{
	shmem_block_database(database);
	if (drops)
		catalog_origin_drop(database, 0);	/* shared objects that nothing else would remove */
}

static void
process_utility(PlannedStmt *pstmt, const char *query, bool read_only_tree,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *env, DestReceiver *dest, QueryCompletion *qc)
{
	if (shmem_is_available() && IsTransactionState() && !XactReadOnly)
	{
		bool		drops;
		Oid			database = database_of(pstmt->utilityStmt, &drops);

		if (OidIsValid(database))
			clear_database(database, drops);
	}

	if (prev_process_utility_hook)
		prev_process_utility_hook(pstmt, query, read_only_tree, context, params, env, dest, qc);
	else
		standard_ProcessUtility(pstmt, query, read_only_tree, context, params, env, dest, qc);
}

static void
object_access(ObjectAccessType access, Oid class_id, Oid object_id, int sub_id, void *arg)
{
	if (prev_object_access_hook)
		prev_object_access_hook(access, class_id, object_id, sub_id, arg);
	if (access == OAT_DROP && class_id == ExtensionRelationId && shmem_is_available() &&
		object_id == get_extension_oid("cdc_bridge", true))
		clear_database(MyDatabaseId, true);
}

void
utility_hook_install(void)
{
	prev_object_access_hook = object_access_hook;
	object_access_hook = object_access;
	prev_process_utility_hook = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}
