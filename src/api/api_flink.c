/*-------------------------------------------------------------------------
 *
 * api_flink.c
 *	  cdc_import_flink_pipeline.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"

#include "api/api.h"
#include "api/api_row.h"
#include "flink/flink.h"

PG_FUNCTION_INFO_V1(cdc_import_flink_pipeline);

/* Text in, rows out: nothing is looked up or made, so it needs no rights of the caller but to be called. */
Datum
cdc_import_flink_pipeline(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	char	   *yaml = api_text_arg(fcinfo, 0);
	ListCell   *lc;

	if (yaml == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the YAML text must not be null")));
	InitMaterializedSRF(fcinfo, 0);
	foreach(lc, flink_import(yaml, api_text_arg(fcinfo, 1), api_text_arg(fcinfo, 2)))
	{
		const FlinkItem *item = lfirst(lc);
		Row			row = {0};

		put_text(&row, item->kind);
		put_text(&row, item->item);
		put_text(&row, flink_status_name(item->status));
		put_text(&row, item->detail);
		put_text(&row, item->sql);
		put_row(rsinfo, &row);
	}
	return (Datum) 0;
}
