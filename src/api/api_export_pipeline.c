/*-------------------------------------------------------------------------
 *
 * api_export_pipeline.c
 *	  cdc_export_pipeline: a pipeline's definition as one SQL script.
 *
 * NOTES
 *	  In the order in which things need each other: server, user mapping,
 *	  publications, pipeline. What exists already is left as it is, so the script
 *	  can be run again. It runs as a superuser, and becomes the pipeline's owner to
 *	  make it, because whoever makes a pipeline owns it.
 *
 *	  Secrets are never in it: '********' stands for them. What a role could not
 *	  read elsewhere (the options of somebody's user mapping) it does not
 *	  read here either.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_type.h"
#include "catalog/pg_user_mapping.h"
#include "commands/comment.h"
#include "commands/defrem.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "api/api.h"
#include "mysql/mysql_options.h"
#include "util/util_name.h"

PG_FUNCTION_INFO_V1(cdc_export_pipeline);

#define SECRET "********"

/* The options of a server or a user mapping; with hide, secrets and what is not known to be none are left out. */
static void
append_options(StringInfo sql, List *options, const UtilOptionTable *hide, bool all_hidden)
{
	ListCell   *lc;

	if (options == NIL)
		return;
	appendStringInfoString(sql, " OPTIONS (");
	foreach(lc, options)
	{
		const DefElem *def = lfirst_node(DefElem, lc);
		const UtilOption *known = hide != NULL ? util_option_find(hide, def->defname) : NULL;
		bool		is_hidden = hide != NULL && (all_hidden || known == NULL || known->secret);

		appendStringInfo(sql, "%s%s %s", lc == list_head(options) ? "" : ", ", quote_identifier(def->defname),
						 quote_literal_cstr(is_hidden ? SECRET : defGetString(unconstify(DefElem *, def))));
	}
	appendStringInfoChar(sql, ')');
}

/* A name in a comment, which ends with its line whatever is in the name. */
static char *
in_comment(const char *name)
{
	char	   *text = pstrdup(name);

	for (char *p = text; *p != '\0'; p++)
	{
		if ((unsigned char) *p < ' ')
			*p = ' ';
	}
	return text;
}

static void
append_server(StringInfo sql, const ForeignServer *server)
{
	const ForeignDataWrapper *wrapper = GetForeignDataWrapper(server->fdwid);
	char	   *comment = GetComment(server->serverid, ForeignServerRelationId, 0);

	appendStringInfo(sql, "CREATE SERVER IF NOT EXISTS %s", quote_identifier(server->servername));
	if (server->servertype != NULL)
		appendStringInfo(sql, " TYPE %s", quote_literal_cstr(server->servertype));
	if (server->serverversion != NULL)
		appendStringInfo(sql, " VERSION %s", quote_literal_cstr(server->serverversion));
	appendStringInfo(sql, " FOREIGN DATA WRAPPER %s", quote_identifier(wrapper->fdwname));
	append_options(sql, server->options, NULL, false);
	appendStringInfoString(sql, ";\n");
	if (comment != NULL)
		appendStringInfo(sql, "COMMENT ON SERVER %s IS %s;\n", quote_identifier(server->servername), quote_literal_cstr(comment));
}

/* The user mapping that the owner has there, his own or PUBLIC's; none: nothing. */
static void
append_mapping(StringInfo sql, const ForeignServer *server, Oid owner, const char *role, bool may_read)
{
	UserMapping *mapping;
	bool		is_public = !SearchSysCacheExists2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(owner), ObjectIdGetDatum(server->serverid));

	if (is_public && !SearchSysCacheExists2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(InvalidOid), ObjectIdGetDatum(server->serverid)))
		return;
	mapping = GetUserMapping(owner, server->serverid);
	appendStringInfo(sql, "CREATE USER MAPPING IF NOT EXISTS FOR %s SERVER %s", is_public ? "PUBLIC" : role, quote_identifier(server->servername));
	append_options(sql, mapping->options, &mysql_user_mapping_options, !may_read);
	appendStringInfoString(sql, ";\n");
}

/* ---- publications of an outgoing pipeline ---- */

static const char publication_query[] =
	"SELECT p.pubname, format('CREATE PUBLICATION %I%s%s WITH (%s)', p.pubname,"
	" CASE WHEN p.puballtables THEN ' FOR ALL TABLES' ELSE"
	"  coalesce((SELECT ' FOR TABLE ' || string_agg(format('%s%s%s', r.prrelid::regclass,"
	"    (SELECT ' (' || string_agg(quote_ident(a.attname), ', ' ORDER BY x.n) || ')'"
	"     FROM unnest(r.prattrs::int2[]) WITH ORDINALITY x(attnum, n) JOIN pg_attribute a ON a.attrelid = r.prrelid AND a.attnum = x.attnum),"
	"    ' WHERE (' || pg_get_expr(r.prqual, r.prrelid) || ')'), ', ' ORDER BY r.prrelid::regclass::text)"
	"   FROM pg_publication_rel r WHERE r.prpubid = p.oid), '') END,"
	" (SELECT CASE WHEN EXISTS (SELECT FROM pg_publication_rel r WHERE r.prpubid = p.oid) THEN ', ' ELSE ' FOR ' END"
	"   || 'TABLES IN SCHEMA ' || string_agg(quote_ident(n.nspname), ', ' ORDER BY n.nspname)"
	"  FROM pg_publication_namespace pn JOIN pg_namespace n ON n.oid = pn.pnnspid WHERE pn.pnpubid = p.oid),"
	" format('publish = %L, publish_via_partition_root = %s%s',"
	"  concat_ws(', ', CASE WHEN p.pubinsert THEN 'insert' END, CASE WHEN p.pubupdate THEN 'update' END,"
	"   CASE WHEN p.pubdelete THEN 'delete' END, CASE WHEN p.pubtruncate THEN 'truncate' END), p.pubviaroot::text,"
	"  CASE to_jsonb(p) ->> 'pubgencols' WHEN 's' THEN ', publish_generated_columns = stored' ELSE '' END))"
	" FROM pg_publication p WHERE p.pubname = ANY ($1) ORDER BY 1";

/* Publications that exist, made when they do not. Names of tables are qualified: search_path is empty while they are read. */
static void
append_publications(StringInfo sql, Datum names)
{
	Oid			types[] = {TEXTARRAYOID};
	MemoryContext caller = CurrentMemoryContext;
	int			level = NewGUCNestLevel();

	(void) set_config_option("search_path", "", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	SPI_connect();
	SPI_execute_with_args(publication_query, 1, types, &names, NULL, true, 0);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		char	   *name = SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1);
		char	   *statement = SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 2);
		MemoryContext old = MemoryContextSwitchTo(caller);

		/* names and filters are whoever's: nothing in them may end the literal */
		appendStringInfo(sql, "DO %s;\n",
						 quote_literal_cstr(psprintf("BEGIN IF NOT EXISTS (SELECT FROM pg_catalog.pg_publication WHERE pubname = %s) THEN\n\t%s;\nEND IF; END",
													 quote_literal_cstr(name), statement)));
		MemoryContextSwitchTo(old);
	}
	SPI_finish();
	AtEOXact_GUC(true, level);
}

/* Names as the option "publication_names" has them, which was checked when it was given. */
static Datum
names_array(const char *list)
{
	List	   *names = NIL;

	(void) SplitIdentifierString(pstrdup(list), ',', &names);
	return util_text_array(names);
}

/* ---- the pipeline ---- */

static char *
patterns_text(const List *patterns)
{
	Oid			output;
	bool		varlena;

	getTypeOutputInfo(TEXTARRAYOID, &output, &varlena);
	return OidOutputFunctionCall(output, util_text_array(patterns));
}

static void
append_pipeline(StringInfo sql, const CatalogPipeline *pipeline)
{
	appendStringInfo(sql, "SELECT cdc_create_pipeline(%s,\n\t%s => %s,\n\ttables => %s",
					 quote_literal_cstr(pipeline->name), pipeline->sink != NULL ? "sink" : "source",
					 quote_literal_cstr(pipeline->sink != NULL ? pipeline->sink : pipeline->source),
					 quote_literal_cstr(patterns_text(pipeline->tables)));
	if (pipeline->target_schema != NULL)
		appendStringInfo(sql, ",\n\ttarget_schema => %s", quote_literal_cstr(pipeline->target_schema));
	if (pipeline->options != (Datum) 0)
	{
		Jsonb	   *options = DatumGetJsonbP(pipeline->options);

		appendStringInfo(sql, ",\n\toptions => %s", quote_literal_cstr(JsonbToCString(NULL, &options->root, VARSIZE(options))));
	}
	appendStringInfo(sql, ")\nWHERE NOT EXISTS (SELECT FROM pg_stat_cdc_pipeline WHERE pipeline = %s);\n", quote_literal_cstr(pipeline->name));
}

static char *
script(const CatalogPipeline *pipeline)
{
	const char *server_name = pipeline->sink != NULL ? pipeline->sink : pipeline->source;
	const char *owner_name = GetUserNameFromId(pipeline->owner, true);
	const char *role = owner_name != NULL ? quote_identifier(owner_name) : "CURRENT_USER";
	ForeignServer *server = GetForeignServerByName(server_name, true);
	bool		becomes = owner_name != NULL && !superuser_arg(pipeline->owner);
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfo(&sql, "-- Pipeline %s of cdc_bridge. Run it as a superuser, in a database with the extension; what is there already stays as it is.\n"
					 "-- Put each secret in the place of '" SECRET "', then start it: SELECT cdc_start_pipeline(%s);\n",
					 in_comment(pipeline->name), in_comment(quote_literal_cstr(pipeline->name)));
	if (server == NULL)
		appendStringInfo(&sql, "-- Its server %s does not exist any more: make it first.\n", in_comment(server_name));
	else
	{
		append_server(&sql, server);
		append_mapping(&sql, server, pipeline->owner, role, has_privs_of_role(GetUserId(), pipeline->owner));
		if (becomes)
			appendStringInfo(&sql, "GRANT USAGE ON FOREIGN SERVER %s TO %s;\n", quote_identifier(server_name), role);
	}
	if (pipeline->sink != NULL && catalog_pipeline_option(pipeline, "publication_names") != NULL)
		append_publications(&sql, names_array(catalog_pipeline_option(pipeline, "publication_names")));
	if (becomes)
		appendStringInfo(&sql, "GRANT EXECUTE ON FUNCTION cdc_create_pipeline TO %s;\n", role);
	if (owner_name != NULL)
		appendStringInfo(&sql, "SET ROLE %s;\n", role);
	append_pipeline(&sql, pipeline);
	if (owner_name != NULL)
		appendStringInfoString(&sql, "RESET ROLE;\n");
	return sql.data;
}

Datum
cdc_export_pipeline(PG_FUNCTION_ARGS)
{
	char	   *name = api_name_arg(fcinfo);
	CatalogPipeline *pipeline = catalog_pipeline_by_name(name);

	if (pipeline == NULL || !api_may_see(pipeline))
		api_no_pipeline(name, NULL);
	PG_RETURN_TEXT_P(cstring_to_text(script(pipeline)));
}
