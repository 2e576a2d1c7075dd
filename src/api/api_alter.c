/*-------------------------------------------------------------------------
 *
 * api_alter.c
 *	  cdc_alter_pipeline.
 *
 * NOTES
 *	  It writes the new definition and wakes the manager at commit, which sees
 *	  that running workers began with another one and sends them away; those that
 *	  follow read the new one. Nothing is lost on the way: a worker that leaves is
 *	  one that is stopped and started.
 *
 *	  Options are merged. A JSON null takes one out, so that its default counts
 *	  again; the word "null" is a value like any other.
 *
 *	  Tables that exist stay as they are: where they go and which types their
 *	  columns have was decided when they were made.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/syscache.h"

#include "api/api.h"
#include "api/api_check.h"
#include "compat/pg_compat.h"
#include "pipeline/shmem.h"
#include "transform/transform_rule.h"

PG_FUNCTION_INFO_V1(cdc_alter_pipeline);

/* Options that only tables to be made look at. */
static const char *const later_options[] = {"column_types", "tinyint1_as_boolean", "secondary_indexes", "routes"};

/* Names of the members that are JSON's null, List of char *. */
static List *
null_members(Datum options)
{
	List	   *result = NIL;
	JsonbIterator *it = JsonbIteratorInit(&DatumGetJsonbP(options)->root);
	JsonbIteratorToken token;
	JsonbValue	value;

	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		char	   *name;

		if (token != WJB_KEY)
			continue;
		name = pnstrdup(value.val.string.val, value.val.string.len);
		(void) JsonbIteratorNext(&it, &value, true);
		if (value.type == jbvNull)
			result = lappend(result, name);
	}
	return result;
}

static Datum
without(Datum options, List *names)
{
	ListCell   *lc;

	foreach(lc, names)
		options = DirectFunctionCall2(jsonb_delete, options, CStringGetTextDatum(lfirst(lc)));
	return options;
}

/* Old options with the changes of the new ones; 0 when none are left. */
static Datum
merge_options(const CatalogPipeline *pipeline, Datum changes)
{
	CatalogPipeline changed = *pipeline;
	Datum		old = pipeline->options;
	Datum		set;
	List	   *taken_out;
	ListCell   *lc;

	changed.options = changes;
	if (!JB_ROOT_IS_OBJECT(DatumGetJsonbP(changes)))
		catalog_pipeline_options_check(&changed);	/* throws */
	taken_out = null_members(changes);
	foreach(lc, taken_out)
		(void) util_option_name_check(catalog_pipeline_option_table(pipeline), lfirst(lc));
	set = changed.options = without(changes, taken_out);
	api_check_options(&changed);
	if (old != (Datum) 0)
		set = DirectFunctionCall2(jsonb_concat, without(old, taken_out), set);
	changed.options = set;
	api_check_options(&changed);	/* what they come to together */
	return JB_ROOT_COUNT(DatumGetJsonbP(set)) == 0 ? (Datum) 0 : set;
}

static bool
has_member(Datum options, const char *name)
{
	return options != (Datum) 0 &&
		getKeyJsonValueFromContainer(&DatumGetJsonbP(options)->root, name, (int) strlen(name), NULL) != NULL;
}

/* Say what a change does not do to tables that are there. */
static void
notice_later_only(const CatalogPipeline *pipeline, const char *target_schema, Datum options)
{
	int			tables = list_length(catalog_table_list(pipeline->id));

	if (tables == 0)
		return;
	if (target_schema != NULL)
		ereport(NOTICE,
				(errmsg("target_schema of pipeline \"%s\" counts for tables that are made later", pipeline->name),
				 errdetail_plural("The %d table that it has stays where it is.",
								  "The %d tables that it has stay where they are.", tables, tables)));
	if (has_member(options, TRANSFORM_OPTION))
		ereport(NOTICE,
				(errmsg("option \"%s\" of pipeline \"%s\" counts for rows that are written from now on", TRANSFORM_OPTION,
						pipeline->name),
				 errdetail("Rows that are there already stay as they are."),
				 errhint("Use cdc_resync_table() for tables whose rows are to be made anew.")));
	for (int i = 0; i < (int) lengthof(later_options); i++)
	{
		const char *name = later_options[i];

		if (has_member(options, name))
			ereport(NOTICE,
					(errmsg("option \"%s\" of pipeline \"%s\" counts for tables that are made later", name, pipeline->name),
					 errdetail_plural("The %d table that it has stays as it is.",
									  "The %d tables that it has stay as they are.", tables, tables)));
	}
}

/* The new owner: the caller must be able to act as him. */
static void
check_new_owner(Oid owner)
{
	char	   *name;

	if (!SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(owner)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("role with OID %u does not exist", owner)));
	if (cdc_role_can_set_role(GetUserId(), owner))
		return;
	name = GetUserNameFromId(owner, false);
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("must be able to SET ROLE \"%s\"", name),
			 errhint("A superuser, or a member of role \"%s\", can make it the owner.", name)));
}

/* Each table that the new owner cannot write to stops at its next change: say so while the former owner is still known. */
static void
warn_of_targets(const CatalogPipeline *pipeline)
{
	CdcCheckLine *first = NULL;
	int			count = 0;
	ListCell   *lc;

	foreach(lc, catalog_table_list(pipeline->id))
	{
		const CatalogTable *table = lfirst(lc);
		List	   *lines;

		CHECK_FOR_INTERRUPTS();
		/* no stream writes to the others */
		if (table->state == CATALOG_TABLE_STOPPED || table->definition == (Datum) 0)
			continue;
		lines = api_check_target(pipeline, table);
		if (lines != NIL && strcmp(((CdcCheckLine *) linitial(lines))->status, "error") == 0 && count++ == 0)
			first = linitial(lines);
	}
	if (first == NULL)
		return;
	ereport(WARNING,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg_plural("role \"%s\" cannot write %d target table of pipeline \"%s\"",
						   "role \"%s\" cannot write %d target tables of pipeline \"%s\"",
						   count, GetUserNameFromId(pipeline->owner, false), count, pipeline->name),
			 count == 1 ? errdetail("%s", first->detail) : errdetail("The first: %s. cdc_check_pipeline() shows all.", first->detail),
			 first->hint != NULL ? errhint("%s", first->hint) : 0));
}

Datum
cdc_alter_pipeline(PG_FUNCTION_ARGS)
{
	char	   *name = api_name_arg(fcinfo);
	char	   *target_schema = api_text_arg(fcinfo, 1);
	Datum		options = PG_ARGISNULL(2) ? (Datum) 0 : PG_GETARG_DATUM(2);
	char	   *source = api_text_arg(fcinfo, 3);
	Oid			owner = PG_ARGISNULL(4) ? InvalidOid : PG_GETARG_OID(4);
	CatalogPipeline *pipeline;

	PreventCommandIfReadOnly("cdc_alter_pipeline()");

	pipeline = api_lock_for_change(name);
	if (pipeline != NULL)
		pipeline = catalog_pipeline_for_update(pipeline->id);
	if (pipeline == NULL)
		api_no_pipeline(name, NULL);
	api_check_owner(pipeline);	/* it may have got another one while we waited */

	if (!PG_ARGISNULL(4))
	{
		check_new_owner(owner);
		pipeline->owner = owner;
	}
	if (source != NULL)
	{
		api_check_incoming(pipeline, "Argument \"source\"");
		pipeline->source = source;
	}
	if (source != NULL || OidIsValid(owner))
	{
		api_check_sides(pipeline);
		if (pipeline->sink != NULL)
		{
			api_check_sink(pipeline);
			api_check_export_tables(pipeline);
		}
		else
			api_check_user_mapping(api_source_server(pipeline->source, pipeline->owner), pipeline->source, pipeline->owner);
	}
	if (target_schema != NULL)
		api_check_incoming(pipeline, "Argument \"target_schema\"");
	if (target_schema != NULL)
		pipeline->target_schema = target_schema;
	if (options != (Datum) 0)
		pipeline->options = merge_options(pipeline, options);
	if (target_schema != NULL || (pipeline->sink == NULL && has_member(options, "routes")))
		api_check_targets(pipeline);
	if (pipeline->sink != NULL && (has_member(options, "routes") || has_member(options, "transforms")))
		api_check_export_tables(pipeline);

	catalog_pipeline_update(pipeline);
	notice_later_only(pipeline, target_schema, options);
	if (OidIsValid(owner))
		warn_of_targets(pipeline);
	shmem_wake_at_commit();
	PG_RETURN_VOID();
}
