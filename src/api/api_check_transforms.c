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
#include "heap/heap_shard.h"
#include "mysql/mysql_server.h"
#include "source/source_check.h"
#include "transform/transform_kind.h"
#include "transform/transform_route.h"
#include "transform/transform_table.h"
#include "util/util_name.h"

typedef struct CheckTransforms
{
	const CatalogPipeline *pipeline;
	Oid			serverid;
	const SchemaTypeOptions *options;
	TransformRoutes *routes;

	List	   *defs;			/* of CdcTableDef: tables of the source that a rule is for, or that share their target */
	List	   *used;			/* of int: numbers of the rules that are for some table */
	char	   *row_image;		/* the source's binlog_row_image */
	const CdcTableDef *def;		/* that is being looked at */
	StringInfoData in_part;		/* tables for which an image in part does not do */
	List	   *shards;			/* of CheckShard: those that share their target */
	List	   *parts;			/* of CheckPart: those that fill a part of its rows */
	int			well;
} CheckTransforms;

/* A table that shares its target, and what its key says of where a row is from. */
typedef struct CheckShard
{
	const char *source;
	char	   *told;			/* target, rule, and the metadata that the key is made of: of two tables with the same, rows cannot be told apart */
} CheckShard;

/* A table that fills a part of its target's rows. */
typedef struct CheckPart
{
	const char *source;
	char	   *target;
	const char *part;
	List	   *columns;		/* of char *: that it fills */
} CheckPart;

static char *
name_of(const CdcTableDef *def)
{
	return psprintf("%s.%s", util_name_of_source(def->schema), util_name_of_source(def->name));
}

static bool
is_merged(const CheckTransforms *c, const CdcTableDef *def)
{
	return transform_kind_shares(c->routes, c->options, util_name_of_source(def->schema), util_name_of_source(def->name));
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

		if (rule != NULL)
			c->used = list_append_unique_int(c->used, rule->number);
		def = transform_table_rule(name, c->options) == NULL && !is_merged(c, name) ? NULL
			: mysql_server_describe(session, info, name->schema, name->name);
		if (def != NULL)
		{
			transform_kind_use_key(def, c->options);
			c->defs = lappend(c->defs, def);
		}
	}
	mysql_session_close(session);
	return NIL;
}

static char *
target_of(const CheckTransforms *c)
{
	char	   *target_schema;
	char	   *target_table;

	(void) transform_route_target(c->routes, util_name_of_source(c->def->schema), util_name_of_source(c->def->name), &target_schema, &target_table, NULL);
	return quote_qualified_identifier(target_schema, target_table);
}

static CheckShard *
make_shard(const CheckTransforms *c, const TransformTable *table)
{
	const char *const values[] = {[TRANSFORM_SERVER] = "",[TRANSFORM_SCHEMA] = c->def->schema,[TRANSFORM_TABLE] = c->def->name};
	const Transform *transform = table->transform;
	CheckShard *shard = palloc0(sizeof(CheckShard));
	StringInfoData told;

	initStringInfo(&told);
	appendStringInfo(&told, "%s %d", target_of(c), transform->rule->number);
	for (int i = 0; i < table->nkey; i++)
	{
		for (int meta = 0; heap_shard_tells(transform, table->key[i]) && meta < (int) lengthof(values); meta++)
		{
			if (bms_is_member(transform_meta_attnum(transform, (TransformMeta) meta), transform->columns[table->key[i]].uses))
				appendStringInfo(&told, " %d %s", meta, quote_identifier(values[meta]));
		}
	}
	shard->source = name_of(c->def);
	shard->told = told.data;
	return shard;
}

static CheckPart *
make_part(const CheckTransforms *c, const TransformTable *table)
{
	CheckPart  *part = palloc0(sizeof(CheckPart));

	part->source = name_of(c->def);
	part->target = target_of(c);
	part->part = transform_kind_part(table);
	for (int i = 0; i < table->nprojected; i++)
	{
		bool		is_key = false;

		for (int k = 0; k < table->nkey; k++)
			is_key |= table->key[k] == i;
		if (!is_key)
			part->columns = lappend(part->columns, table->transform->columns[i].name);
	}
	return part;
}

/* Why two of them cannot fill the same rows; NULL: they can. */
static char *
parts_clash(const CheckPart *a, const CheckPart *b)
{
	ListCell   *lc;
	ListCell   *lc2;

	if (strcmp(a->part, b->part) == 0)
		return psprintf("the part of both is called \"%s\"", a->part);
	foreach(lc, a->columns)
	{
		foreach(lc2, b->columns)
		{
			if (strcmp(lfirst(lc), lfirst(lc2)) == 0)
				return psprintf("both fill column \"%s\"", (char *) lfirst(lc));
		}
	}
	return NULL;
}

/* Tables that cannot fill the rows of one target: each with the first before it. */
static List *
check_parts(const CheckTransforms *c)
{
	List	   *lines = NIL;

	for (int i = 1; i < list_length(c->parts); i++)
	{
		const CheckPart *part = list_nth(c->parts, i);
		char	   *clash = NULL;

		CHECK_FOR_INTERRUPTS();
		for (int k = 0; k < i && clash == NULL; k++)
		{
			const CheckPart *before = list_nth(c->parts, k);

			if (strcmp(before->target, part->target) != 0)
				continue;
			clash = parts_clash(before, part);
			if (clash != NULL)
				lines = lappend(lines, source_check_line("transforms", "error",
														 psprintf("Source tables \"%s\" and \"%s\" cannot fill the same rows of their target: %s. The one that comes later stops.",
																  before->source, part->source, clash),
														 "Give each of them a \"part\" and names of columns of its own (AS in the projection) with the option \"transforms\"."));
		}
	}
	return lines;
}

static int
compare_shards(const ListCell *a, const ListCell *b)
{
	const CheckShard *sa = lfirst(a);
	const CheckShard *sb = lfirst(b);
	int			order = strcmp(sa->told, sb->told);

	return order != 0 ? order : strcmp(sa->source, sb->source);
}

/* Tables of one target whose keys say the same of where their rows are from. */
static List *
check_shards(CheckTransforms *c)
{
	const CheckShard *before = NULL;
	List	   *lines = NIL;
	ListCell   *lc;

	list_sort(c->shards, compare_shards);
	foreach(lc, c->shards)
	{
		const CheckShard *shard = lfirst(lc);

		if (before != NULL && strcmp(before->told, shard->told) == 0)
			lines = lappend(lines, source_check_line("routes", "error",
											 psprintf("Rows of source tables \"%s\" and \"%s\" could not be told apart in the target that they share; the one that comes later stops.",
													  before->source, shard->source),
											 "Give cdc_schema or cdc_table to the key, as far as they differ, with the option \"transforms\"."));
		before = shard;
	}
	return lines;
}

/* A step: the rule of one table, as its owner would use it. NIL when all is well. */
static List *
check_table(void *arg)
{
	CheckTransforms *c = arg;
	const TransformRule *rule = transform_table_rule(c->def, c->options);
	TransformTable *table = NULL;
	bool		in_part = false;
	Oid			user;
	int			sec_context;

	GetUserIdAndSecContext(&user, &sec_context);
	SetUserIdAndSecContext(c->pipeline->owner, sec_context | SECURITY_LOCAL_USERID_CHANGE);
	if (rule != NULL)
		table = transform_table_make(c->def, rule, c->options);
	SetUserIdAndSecContext(user, sec_context);

	if (table != NULL && table->parts >= 0)
		c->parts = lappend(c->parts, make_part(c, table));
	else if (is_merged(c, c->def))
	{
		heap_shard_check_key(c->def, table);
		c->shards = lappend(c->shards, make_shard(c, table));
	}
	for (uint32 i = 0; table != NULL && i < c->def->ncolumns; i++)
		in_part |= !transform_keeps_column(table, (int) i);
	if (in_part)
		appendStringInfo(&c->in_part, "%s%s", c->in_part.len > 0 ? ", " : "", name_of(c->def));
	c->well++;
	return NIL;
}

List *
api_check_transforms(const CatalogPipeline *pipeline, Oid serverid, const SchemaTypeOptions *options)
{
	CheckTransforms c = {.pipeline = pipeline,.serverid = serverid,.options = options,.routes = transform_routes_read(pipeline)};
	List	   *lines;
	ListCell   *lc;

	if (options->transforms == NIL && !transform_has_routes(c.routes))
		return NIL;
	initStringInfo(&c.in_part);
	lines = api_check_try("transforms", read_source, &c);
	if (lines != NIL)
		return lines;
	foreach(lc, c.defs)
	{
		char	   *check = psprintf(transform_table_rule(lfirst(lc), options) != NULL ? "transform of %s" : "table %s", name_of(lfirst(lc)));

		CHECK_FOR_INTERRUPTS();
		c.def = lfirst(lc);
		lines = list_concat(lines, api_check_try(check, check_table, &c));
	}
	lines = list_concat(lines, check_shards(&c));
	lines = list_concat(lines, check_parts(&c));
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
	if (options->transforms != NIL && c.well == list_length(c.defs))
		lines = lappend(lines, source_check_line("transforms", "ok",
												 psprintf("What they say of %d tables of the source can be done.", c.well), NULL));
	return lines;
}
