/*-------------------------------------------------------------------------
 *
 * sink.c
 *	  The sinks there are, and what those that write documents share.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "common/shortest_dec.h"
#include "miscadmin.h"

#include "sink/sink.h"
#include "util/util_arena.h"
#include "util/util_error.h"

static const CdcSinkOps *const sinks[] = {
	&sink_file_ops,
	&sink_null_ops,
};

CdcSink *
cdc_sink_open(const char *wrapper, const CdcSinkTarget *target, bool *found, CdcSinkPosition *position)
{
	for (size_t i = 0; i < lengthof(sinks); i++)
	{
		if (strcmp(sinks[i]->wrapper, wrapper) == 0)
			return sinks[i]->open(target, found, position);
	}
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("server \"%s\" is not a sink of changes", target->server_name),
			 errdetail("Its foreign data wrapper is \"%s\".", wrapper)));
}

CdcFormat *
sink_format(const CatalogPipeline *pipeline)
{
	CdcFormat  *format = palloc0(sizeof(CdcFormat));
	const CdcFormatOps *ops = cdc_format_find(catalog_export_text(pipeline, "format"));
	CdcFormatOptions options = {
		.server_name = pipeline->name,
		.database = get_database_name(MyDatabaseId),
		.version = "0.1",
		.unavailable = CDC_FORMAT_UNAVAILABLE,
		.double_text = double_to_shortest_decimal_buf,
		.float_text = float_to_shortest_decimal_buf,
	};

	cdc_format_init(format, ops, &options, util_context_allocator(CurrentMemoryContext));
	return format;
}

void
sink_add_document(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	CdcError	error;

	if (cdc_format_value(format, record, out, &error) != CDC_OK)
		util_throw(&error, "could not write a change in the pipeline's format");
}

const char *
sink_option(const CdcSinkTarget *target, const char *name)
{
	ListCell   *lc;

	foreach(lc, target->options)
	{
		DefElem    *def = lfirst_node(DefElem, lc);

		if (strcmp(def->defname, name) == 0)
			return defGetString(def);
	}
	return NULL;
}
