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
#include "miscadmin.h"

#include "catalog/catalog_record_options.h"
#include "sink/sink.h"
#include "sink/sink_registry.h"
#include "util/util_arena.h"
#include "util/util_error.h"

/* A buffer that one large document made larger than this is given back. */
#define KEEP_SIZE (4 * 1024 * 1024)

static const CdcSinkOps *const sinks[] = {
	&sink_file_ops,
	&sink_kafka_ops,
	&sink_null_ops,
};

static const CdcSinkOps *
find_sink(const char *wrapper, const CdcSinkTarget *target)
{
	for (size_t i = 0; i < lengthof(sinks); i++)
	{
		if (strcmp(sinks[i]->wrapper, wrapper) == 0)
			return sinks[i];
	}
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("server \"%s\" is not a sink of changes", target->server_name),
			 errdetail("Its foreign data wrapper is \"%s\".", wrapper)));
}

CdcSink *
cdc_sink_open(const char *wrapper, const CdcSinkTarget *target, bool *found, CdcSinkPosition *position)
{
	return find_sink(wrapper, target)->open(target, found, position);
}

CdcSinkPreparer *
cdc_sink_preparer(const char *wrapper, const CdcSinkTarget *target)
{
	CdcSinkPreparer *preparer = palloc0(sizeof(CdcSinkPreparer));

	preparer->ops = find_sink(wrapper, target);
	preparer->ops->prepare_open(preparer, target);
	return preparer;
}

/* CatalogGivenOption */
static const char *
given_option(void *arg, const char *name)
{
	return catalog_pipeline_option(arg, name);
}

/* A format, and where its schemas get their numbers. */
typedef struct SinkFormat
{
	CdcFormat	base;
	SinkRegistry *registry;		/* NULL: they need none */
} SinkFormat;

CdcFormat *
sink_format(const CdcSinkTarget *target)
{
	SinkFormat *format = palloc0(sizeof(SinkFormat));
	CdcFormatOptions options;
	const CdcFormatOps *ops = catalog_record_format(given_option, unconstify(CatalogPipeline *, target->pipeline), &options);

	options.database = get_database_name(MyDatabaseId);
	if (options.server_name == NULL)
		options.server_name = options.database;
	cdc_format_init(&format->base, ops, &options, util_context_allocator(CurrentMemoryContext));
	if (ops->is_binary)
		format->registry = sink_registry_open(target);
	return &format->base;
}

void
sink_complete_schemas(CdcFormat *format, const CdcRecord *record, const char *topic)
{
	const SinkRegistry *registry = ((const SinkFormat *) format)->registry;

	if (registry != NULL)
		sink_registry_complete(registry, format, record, topic);
}

bool
sink_add_document(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	CdcError	error;
	CdcStatus	status;

	sink_complete_schemas(format, record, NULL);
	status = cdc_format_record(format, record, out, &error);

	if (status != CDC_OK && status != CDC_END)
		util_throw(&error, "could not write a change in the pipeline's format");
	return status == CDC_OK;
}

void
sink_empty_buffer(CdcBuf *out)
{
	if (out->cap > KEEP_SIZE)
		cdc_buf_free(out);
	else
		cdc_buf_reset(out);
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
