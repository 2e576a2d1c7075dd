/*-------------------------------------------------------------------------
 *
 * api_check_transforms.c
 *	  cdc_check_pipeline(): does option transforms make sense for the tables of
 *	  the source?
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "api/api_check.h"
#include "mysql/mysql_server.h"
#include "transform/transform_table.h"
#include "util/util_name.h"

typedef struct CheckTransforms
{
	const CatalogPipeline *pipeline;
	Oid			serverid;
	const SchemaTypeOptions *options;

	List	   *defs;			/* of CdcTableDef: tables of the source that a rule is for */
	List	   *used;			/* of int: numbers of the rules that are for some table */
	char	   *row_image;		/* the source's binlog_row_image */
	const CdcTableDef *def;		/* that is being looked at */
	StringInfoData in_part;		/* tables for which an image in part does not do */
	int			well;
} CheckTransforms;

static char *
name_of(const CdcTableDef *def)
{
	return psprintf("%s.%s", util_name_of_source(def->schema),
					util_name_of_source(def->name));
}

/* A step: which tables of the source do the rules name, and what do they look like? */
static List *
read_source(void *arg)
{
	CheckTransforms *c = arg;
	MysqlSession *session = mysql_session_open(mysql_endpoint_load(c->serverid, c->pipeline->owner));
	MysqlServerInfo *info = mysql_server_info(session);
	ListCell   *lc;

	c->row_image = mysql_session_scalar(session, "SELECT @@GLOBAL.binlog_row_image");
	foreach(lc, mysql_server_list_tables(session, c->pipeline->tables))
	{
		const CdcTableDef *name = lfirst(lc);
		const TransformRule *rule = transform_rule_find(c->options->transforms, name->schema, name->name);
		CdcTableDef *def;

		if (rule == NULL)
			continue;
		c->used = list_append_unique_int(c->used, rule->number);
		def = transform_table_rule(name, c->options) == NULL ? NULL
			: mysql_server_describe(session, info, name->schema, name->name);
		if (def != NULL)
			c->defs = lappend(c->defs, def);
	}
	mysql_session_close(session);
	return NIL;
}

/* A step: the rule of one table, as its owner would use it. NIL when all is well. */
static List *
check_table(void *arg)
{
	CheckTransforms *c = arg;
	TransformTable *table;
	bool		in_part = false;
	Oid			user;
	int			sec_context;

	GetUserIdAndSecContext(&user, &sec_context);
	SetUserIdAndSecContext(c->pipeline->owner, sec_context | SECURITY_LOCAL_USERID_CHANGE);
	table = transform_table_make(c->def, transform_table_rule(c->def, c->options), c->options);
	SetUserIdAndSecContext(user, sec_context);

	for (uint32 i = 0; i < c->def->ncolumns; i++)
		in_part |= !transform_keeps_column(table, (int) i);
	if (in_part)
		appendStringInfo(&c->in_part, "%s%s", c->in_part.len > 0 ? ", " : "", name_of(c->def));
	c->well++;
	return NIL;
}

List *
api_check_transforms(const CatalogPipeline *pipeline, Oid serverid, const SchemaTypeOptions *options)
{
	CheckTransforms c = {.pipeline = pipeline,.serverid = serverid,.options = options};
	List	   *lines;
	ListCell   *lc;

	if (options->transforms == NIL)
		return NIL;
	initStringInfo(&c.in_part);
	lines = api_check_try("transforms", read_source, &c);
	if (lines != NIL)
		return lines;
	foreach(lc, c.defs)
	{
		char	   *check = psprintf("transform of %s", name_of(lfirst(lc)));

		CHECK_FOR_INTERRUPTS();
		c.def = lfirst(lc);
		lines = list_concat(lines, api_check_try(check, check_table, &c));
	}
	foreach(lc, options->transforms)
	{
		const TransformRule *rule = lfirst(lc);

		if (!list_member_int(c.used, rule->number))
			lines = lappend(lines, source_check_line("transforms", "warning",
													 psprintf("Member %d of option \"%s\" is for no table of the source that the pipeline has or would take up.",
															  rule->number, TRANSFORM_OPTION),
													 "Of several members that name a table the first counts."));
	}
	if (c.in_part.len > 0 && c.row_image != NULL && pg_strcasecmp(c.row_image, "FULL") != 0)
		lines = lappend(lines, source_check_line("transforms", "warning",
												 psprintf("The source's binlog_row_image is %s. A change that tells only a part of its row stops these tables, whose targets cannot tell the rest: %s.",
														  c.row_image, c.in_part.data),
												 "Run SET GLOBAL binlog_row_image = FULL on the source and reconnect its clients."));
	if (c.well == list_length(c.defs))
		lines = lappend(lines, source_check_line("transforms", "ok",
												 psprintf("What they say of %d tables of the source can be done.", c.well), NULL));
	return lines;
}
