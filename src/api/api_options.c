/*-------------------------------------------------------------------------
 *
 * api_options.c
 *	  cdc_list_options: every option there is, from the descriptor tables.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"

#include "catalog/catalog.h"
#include "catalog/catalog_export.h"
#include "decode/decode.h"
#include "mysql/mysql_options.h"
#include "util/util_options.h"

PG_FUNCTION_INFO_V1(cdc_list_options);

#define LIST_OPTIONS_COLUMNS 8

static const char *
type_name(const UtilOption *option)
{
	switch (option->type)
	{
		case UTIL_OPTION_BOOL:
			return "boolean";
		case UTIL_OPTION_INT:
			return "integer";
		case UTIL_OPTION_TEXT:
			return "text";
		case UTIL_OPTION_ENUM:
			return "enum";
		case UTIL_OPTION_OBJECT:
			return "object";
		case UTIL_OPTION_ARRAY:
			return "array";
	}
	return NULL;
}

/* Range or list of values; NULL when anything goes. */
static char *
allowed(const UtilOption *option)
{
	StringInfoData buf;

	if (option->type == UTIL_OPTION_INT)
		return psprintf("%d..%d", option->min, option->max);
	if (option->type == UTIL_OPTION_BOOL)
		return pstrdup("true, false");
	if (option->type != UTIL_OPTION_ENUM)
		return NULL;

	initStringInfo(&buf);
	for (int i = 0; option->values[i] != NULL; i++)
		appendStringInfo(&buf, "%s%s", i > 0 ? ", " : "", option->values[i]);
	return buf.data;
}

static void
put_table(ReturnSetInfo *rsinfo, const UtilOptionTable *table)
{
	for (int i = 0; i < util_option_count(table); i++)
	{
		const UtilOption *option = util_option_nth(table, i);
		const char *texts[LIST_OPTIONS_COLUMNS];
		Datum		values[LIST_OPTIONS_COLUMNS] = {0};
		bool		nulls[LIST_OPTIONS_COLUMNS];

		texts[0] = table->kind;
		texts[1] = table->subject;
		texts[2] = option->name;
		texts[3] = type_name(option);
		texts[4] = option->default_text;
		texts[5] = allowed(option);
		texts[6] = option->unit;
		texts[7] = option->superuser_only ? psprintf("%s (superusers only)", option->description)
			: option->description;
		for (int c = 0; c < LIST_OPTIONS_COLUMNS; c++)
		{
			nulls[c] = texts[c] == NULL;
			if (!nulls[c])
				values[c] = CStringGetTextDatum(texts[c]);
		}
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
}

Datum
cdc_list_options(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	put_table(rsinfo, &mysql_server_options);
	put_table(rsinfo, &mysql_user_mapping_options);
	put_table(rsinfo, &catalog_pipeline_options);
	put_table(rsinfo, &catalog_file_server_options);
	put_table(rsinfo, &catalog_kafka_server_options);
	put_table(rsinfo, &catalog_kafka_user_mapping_options);
	put_table(rsinfo, &catalog_null_server_options);
	put_table(rsinfo, &catalog_registry_user_mapping_options);
	put_table(rsinfo, &catalog_export_options);
	put_table(rsinfo, &decode_options);
	return (Datum) 0;
}
