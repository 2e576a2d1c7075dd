/*-------------------------------------------------------------------------
 *
 * fdw_mysql.c
 *	  Validator of foreign data wrapper cdc_mysql.
 *
 * NOTES
 *	  The wrapper has no handler: its servers are sources of pipelines, not of
 *	  foreign tables. Connection facts belong on the SERVER, secrets on the USER
 *	  MAPPING; an option on the wrong one is told where it belongs. Options that
 *	  name files on the database server are for superusers: otherwise a role
 *	  with USAGE on the wrapper could have the server read files for it.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/reloptions.h"
#include "catalog/pg_foreign_data_wrapper.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_user_mapping.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "nodes/parsenodes.h"

#include "mysql/mysql_options.h"

PG_FUNCTION_INFO_V1(cdc_mysql_validator);

static bool
has_option(const UtilOptionTable *table, const char *name)
{
	for (int i = 0; i < table->count; i++)
	{
		if (strcmp(table->options[i].name, name) == 0)
			return true;
	}
	return false;
}

/* An option that the other kind of object has: say so, rather than list what this one has. */
static void
check_place(const UtilOptionTable *table, const UtilOptionTable *other, const char *name)
{
	if (!has_option(table, name) && has_option(other, name))
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
				 errmsg("option \"%s\" does not belong to a %s %s", name, table->subject, table->kind),
				 errhint("Set it on the %s.", other->kind)));
}

Datum
cdc_mysql_validator(PG_FUNCTION_ARGS)
{
	List	   *options = untransformRelOptions(PG_GETARG_DATUM(0));
	Oid			catalog = PG_GETARG_OID(1);
	const UtilOptionTable *table = NULL;
	const UtilOptionTable *other = NULL;
	ListCell   *lc;

	if (catalog == ForeignServerRelationId)
	{
		table = &mysql_server_options;
		other = &mysql_user_mapping_options;
	}
	else if (catalog == UserMappingRelationId)
	{
		table = &mysql_user_mapping_options;
		other = &mysql_server_options;
	}
	else if (catalog == ForeignTableRelationId)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("servers of cdc_mysql cannot have foreign tables"),
				 errhint("Use cdc_start_pipeline() to mirror tables of the server.")));

	foreach(lc, options)
	{
		DefElem    *def = lfirst_node(DefElem, lc);

		if (table == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
					 errmsg("unrecognized option \"%s\" for foreign data wrapper cdc_mysql", def->defname),
					 errhint("There are no valid options in this context.")));
		check_place(table, other, def->defname);
		(void) util_option_check(table, def->defname, defGetString(def));
	}
	if (table == &mysql_server_options)
		mysql_server_options_check(options);
	PG_RETURN_VOID();
}
