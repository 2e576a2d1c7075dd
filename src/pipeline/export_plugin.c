/*-------------------------------------------------------------------------
 *
 * export_plugin.c
 *	  What an outgoing pipeline asks of the output plugin.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"

#include "catalog/catalog_export.h"
#include "catalog/catalog_record_options.h"
#include "pipeline/export_plugin.h"

static DefElem *
make_option(const char *name, char *value)
{
	return makeDefElem(pstrdup(name), (Node *) makeString(value), -1);
}

/* The plugin splits at commas, and takes blanks around them away. */
static void
add_pattern(StringInfo buf, const char *pattern)
{
	if (buf->len > 0)
		appendStringInfoChar(buf, ',');
	for (const char *p = pattern; *p != '\0'; p++)
	{
		if (*p == ',' || *p == ' ')
			appendStringInfoChar(buf, '\\');
		appendStringInfoChar(buf, *p);
		if (*p == '\\' && p[1] != '\0')
			appendStringInfoChar(buf, *++p);
	}
}

List *
export_plugin_options(const CatalogPipeline *pipeline)
{
	StringInfoData tables;
	List	   *options;
	ListCell   *lc;

	initStringInfo(&tables);
	foreach(lc, pipeline->tables)
		add_pattern(&tables, lfirst(lc));
	options = list_make2(make_option("tables", tables.data),
						 make_option("schema_changes", pstrdup(catalog_export_hears_statements(pipeline) ? "true" : "false")));
	for (int i = 0; i < util_option_count(&catalog_record_options); i++)
	{
		const char *name = util_option_nth(&catalog_record_options, i)->name;
		char	   *value = catalog_pipeline_option(pipeline, name);

		if (value != NULL)
			options = lappend(options, make_option(name, value));
	}
	return options;
}
