/*-------------------------------------------------------------------------
 *
 * api_row.h
 *	  Rows that set-returning functions return, filled column by column.
 *
 * NOTES
 *	  Begin with Row row = {0}, put each column in its order, then put_row.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_API_ROW_H
#define CDC_API_ROW_H

#include "postgres.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"

#include "catalog/catalog.h"

#define ROW_MAX 40

/* Puts the rows of one pipeline. */
typedef void (*RowsOfPipeline) (ReturnSetInfo *rsinfo, const CatalogPipeline *pipeline);

/* In api_stat.c: makes the result of a set-returning function of the rows of each pipeline that the caller may see, with or without a sink. */
extern Datum put_pipelines(FunctionCallInfo fcinfo, RowsOfPipeline put);

/* A result row, filled from left to right. */
typedef struct Row
{
	int			n;
	Datum		values[ROW_MAX];
	bool		nulls[ROW_MAX];
} Row;

static inline void
put_datum(Row *row, Datum value, bool isnull)
{
	Assert(row->n < ROW_MAX);
	row->values[row->n] = value;
	row->nulls[row->n] = isnull;
	row->n++;
}

static inline void
put_null(Row *row)
{
	put_datum(row, (Datum) 0, true);
}

static inline void
put_text(Row *row, const char *text)
{
	put_datum(row, text == NULL ? (Datum) 0 : CStringGetTextDatum(text), text == NULL);
}

static inline void
put_int32(Row *row, int32 value)
{
	put_datum(row, Int32GetDatum(value), false);
}

static inline void
put_int64(Row *row, int64 value)
{
	put_datum(row, Int64GetDatum(value), false);
}

static inline void
put_pid(Row *row, int pid)
{
	put_datum(row, Int32GetDatum(pid), pid == 0);
}

static inline void
put_time(Row *row, TimestampTz time)
{
	put_datum(row, TimestampTzGetDatum(time), time == 0);
}

static inline void
put_lsn(Row *row, XLogRecPtr lsn)
{
	put_datum(row, LSNGetDatum(lsn), XLogRecPtrIsInvalid(lsn));
}

static inline void
put_position(Row *row, const CdcPosition *position)
{
	bool		is_known = position != NULL && cdc_position_is_known(position);

	put_text(row, is_known ? position->file : NULL);
	put_datum(row, is_known ? Int64GetDatum((int64) position->offset) : (Datum) 0, !is_known);
}

/* A text[]; NULL when it is not known. */
static inline void
put_list(Row *row, const List *list, bool known)
{
	ArrayBuildState *array = initArrayResult(TEXTOID, CurrentMemoryContext, false);
	ListCell   *lc;

	foreach(lc, list)
		array = accumArrayResult(array, CStringGetTextDatum(lfirst(lc)), false, TEXTOID, CurrentMemoryContext);
	put_datum(row, known ? makeArrayResult(array, CurrentMemoryContext) : (Datum) 0, !known);
}

static inline void
put_error(Row *row, const CatalogError *error)
{
	put_text(row, error->message);
	put_text(row, error->sqlstate);
	put_text(row, error->detail);
	put_text(row, error->hint);
}

static inline void
put_row(ReturnSetInfo *rsinfo, Row *row)
{
	if (row->n != rsinfo->setDesc->natts)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the library and the SQL objects of cdc_bridge are of different versions"),
				 errhint("Restart the server, or run ALTER EXTENSION cdc_bridge UPDATE.")));
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, row->values, row->nulls);
}

#endif							/* CDC_API_ROW_H */
