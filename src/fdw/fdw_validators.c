/*-------------------------------------------------------------------------
 *
 * fdw_validators.c
 *	  Validators of our foreign data wrappers, by the tables of their options.
 *
 * NOTES
 *	  The wrappers have no handler: their servers are sources and sinks of
 *	  pipelines, not of foreign tables. Connection facts belong on the SERVER,
 *	  secrets on the USER MAPPING; an option on the wrong one is told where it
 *	  belongs. Options that name files on the database server are for superusers:
 *	  otherwise a role with USAGE on the wrapper could have the server read or
 *	  write files for it.
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
#include "miscadmin.h"
#include "nodes/parsenodes.h"

#include "catalog/catalog_export.h"
#include "kafka/kafka.h"
#include "mysql/mysql_options.h"

PG_FUNCTION_INFO_V1(cdc_mysql_validator);
PG_FUNCTION_INFO_V1(cdc_file_validator);
PG_FUNCTION_INFO_V1(cdc_kafka_validator);
PG_FUNCTION_INFO_V1(cdc_null_validator);

/* A foreign data wrapper and the options of its objects. Its servers have no foreign tables. */
typedef struct FdwWrapper
{
	const char *name;
	const char *instead_of_tables;	/* hint for who wants some */
	const UtilOptionTable *server;
	const UtilOptionTable *user_mapping;	/* NULL: its servers need none, and have none */
	void		(*check_server) (List *options);	/* what the options come to together; may be NULL */
	bool		(*check_other) (const char *name, const char *value, bool of_mapping);	/* one that the tables do not have; false: nor has this. May be NULL */
} FdwWrapper;

static bool
has_option(const UtilOptionTable *table, const char *name)
{
	return table != NULL && util_option_find(table, name) != NULL;
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

/* Body of a validator. */
static Datum
validate(FunctionCallInfo fcinfo, const FdwWrapper *wrapper)
{
	List	   *options = untransformRelOptions(PG_GETARG_DATUM(0));
	Oid			catalog = PG_GETARG_OID(1);
	const UtilOptionTable *table = NULL;
	const UtilOptionTable *other = NULL;
	ListCell   *lc;

	if (catalog == ForeignServerRelationId)
	{
		table = wrapper->server;
		other = wrapper->user_mapping;
	}
	else if (catalog == UserMappingRelationId)
	{
		table = wrapper->user_mapping;
		other = wrapper->server;
	}
	else if (catalog == ForeignTableRelationId)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("servers of %s cannot have foreign tables", wrapper->name),
				 errhint("%s", wrapper->instead_of_tables)));

	foreach(lc, options)
	{
		DefElem    *def = lfirst_node(DefElem, lc);

		if (table == NULL || table->count == 0)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
					 errmsg("unrecognized option \"%s\" for foreign data wrapper %s", def->defname, wrapper->name),
					 errhint("There are no valid options in this context.")));
		if (wrapper->check_other != NULL && !has_option(table, def->defname) && !has_option(other, def->defname) &&
			wrapper->check_other(def->defname, defGetString(def), catalog == UserMappingRelationId))
			continue;
		check_place(table, other, def->defname);
		(void) util_option_check(table, def->defname, defGetString(def));
	}
	if (catalog == ForeignServerRelationId && wrapper->check_server != NULL)
		wrapper->check_server(options);
	PG_RETURN_VOID();
}

Datum
cdc_mysql_validator(PG_FUNCTION_ARGS)
{
	static const FdwWrapper wrapper = {
		.name = "cdc_mysql",
		.instead_of_tables = "Use cdc_start_pipeline() to mirror tables of the server.",
		.server = &mysql_server_options,
		.user_mapping = &mysql_user_mapping_options,
		.check_server = mysql_server_options_check,
	};

	return validate(fcinfo, &wrapper);
}

/* Somewhere of its own: a relative path would be one in the data directory, which backups copy and others write to. */
static void
check_file_server(List *options)
{
	ListCell   *lc;
	char	   *directory = NULL;

	foreach(lc, options)
	{
		DefElem    *def = lfirst_node(DefElem, lc);

		if (strcmp(def->defname, "directory") == 0)
			directory = pstrdup(defGetString(def));
	}
	if (directory == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_OPTION_NAME_NOT_FOUND),
				 errmsg("a cdc_file server needs a directory"),
				 errhint("Use OPTIONS (directory '/...').")));
	canonicalize_path(directory);
	if (!is_absolute_path(directory) || path_is_prefix_of_path(DataDir, directory))
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("invalid value for option \"directory\" of cdc_file server: \"%s\"", directory),
				 errhint("Give an absolute path outside of the data directory.")));
}

Datum
cdc_file_validator(PG_FUNCTION_ARGS)
{
	static const FdwWrapper wrapper = {
		.name = "cdc_file",
		.instead_of_tables = "Use cdc_start_pipeline() to ship changes there.",
		.server = &catalog_file_server_options,
		.user_mapping = &catalog_registry_user_mapping_options,
		.check_server = check_file_server,
	};

	return validate(fcinfo, &wrapper);
}

static void
check_kafka_server(List *options)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *def = lfirst_node(DefElem, lc);

		if (strcmp(def->defname, "bootstrap_servers") == 0 && defGetString(def)[0] != '\0')
			return;
	}
	ereport(ERROR,
			(errcode(ERRCODE_FDW_OPTION_NAME_NOT_FOUND),
			 errmsg("a cdc_kafka server needs bootstrap servers"),
			 errhint("Use OPTIONS (bootstrap_servers 'host:port,...').")));
}

/* The client library's own properties, by their names. */
static bool
check_kafka_property(const char *name, const char *value, bool of_mapping)
{
	if (!kafka_is_property(name))
		return false;
	kafka_property_check(name, value, of_mapping);
	return true;
}

Datum
cdc_kafka_validator(PG_FUNCTION_ARGS)
{
	static const FdwWrapper wrapper = {
		.name = "cdc_kafka",
		.instead_of_tables = "Use cdc_start_pipeline() to ship changes there.",
		.server = &catalog_kafka_server_options,
		.user_mapping = &catalog_kafka_user_mapping_options,
		.check_server = check_kafka_server,
		.check_other = check_kafka_property,
	};

	return validate(fcinfo, &wrapper);
}

Datum
cdc_null_validator(PG_FUNCTION_ARGS)
{
	static const FdwWrapper wrapper = {
		.name = "cdc_null",
		.instead_of_tables = "Use cdc_start_pipeline() to ship changes there.",
		.server = &catalog_null_server_options,
		.user_mapping = &catalog_registry_user_mapping_options,
	};

	return validate(fcinfo, &wrapper);
}
