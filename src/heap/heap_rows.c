/*-------------------------------------------------------------------------
 *
 * heap_rows.c
 *	  Rows of a target found by other columns than its key.
 *
 * NOTES
 *	  By a SELECT, so that whatever index serves is used, and any kind of target
 *	  can be asked. Equality is that of pg_catalog, for the types' own default
 *	  collation: byte by byte for texts.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "heap/heap_private.h"
#include "heap/heap_rows.h"
#include "util/util_wait.h"

/* Rows that are fetched at a time; memory of the store before it goes to disk. */
#define FETCH_ROWS 1000
#define STORE_KB 4096

static const char *
column_name(TupleDesc desc, int i)
{
	return quote_identifier(NameStr(TupleDescAttr(desc, i)->attname));
}

/* All columns in their places; dropped ones are NULL. */
static char *
make_query(const HeapTarget *target, int n, const AttrNumber *attnums, Oid *types)
{
	TupleDesc	desc = RelationGetDescr(target->rel);
	StringInfoData query;

	initStringInfo(&query);
	appendStringInfoString(&query, "SELECT ");
	for (int i = 0; i < desc->natts; i++)
		appendStringInfo(&query, "%s%s", i > 0 ? ", " : "",
						 TupleDescAttr(desc, i)->attisdropped ? "NULL" : column_name(desc, i));
	appendStringInfo(&query, " FROM %s WHERE ",
					 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(target->rel)),
												RelationGetRelationName(target->rel)));
	for (int i = 0; i < n; i++)
	{
		types[i] = TupleDescAttr(desc, attnums[i] - 1)->atttypid;
		appendStringInfo(&query, "%s%s OPERATOR(pg_catalog.=) $%d", i > 0 ? " AND " : "",
						 column_name(desc, attnums[i] - 1), i + 1);
	}
	return query.data;
}

static void
put_rows(Tuplestorestate *store, TupleDesc desc, SPITupleTable *rows, uint64 n)
{
	Datum	   *values = palloc(sizeof(Datum) * desc->natts);
	bool	   *nulls = palloc(sizeof(bool) * desc->natts);

	for (uint64 i = 0; i < n; i++)
	{
		util_check_interrupts();
		heap_deform_tuple(rows->vals[i], rows->tupdesc, values, nulls);
		tuplestore_putvalues(store, desc, values, nulls);
	}
	pfree(values);
	pfree(nulls);
}

Tuplestorestate *
heap_rows_equal(HeapTarget *target, int n, const AttrNumber *attnums, const Datum *values)
{
	Tuplestorestate *store = tuplestore_begin_heap(false, false, STORE_KB);
	Oid		   *types = palloc(sizeof(Oid) * n);
	char	   *query = make_query(target, n, attnums, types);
	UtilRoleSwitch sw;
	Portal		portal;

	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	util_role_switch_begin(target->write_as, &sw);
	SPI_connect();
	portal = SPI_cursor_open_with_args(NULL, query, n, types, unconstify(Datum *, values), NULL, true, 0);
	do
	{
		SPI_cursor_fetch(portal, true, FETCH_ROWS);
		put_rows(store, RelationGetDescr(target->rel), SPI_tuptable, SPI_processed);
		SPI_freetuptable(SPI_tuptable);
	} while (SPI_processed > 0);
	SPI_cursor_close(portal);
	SPI_finish();
	util_role_switch_end(&sw);
	PopActiveSnapshot();
	return store;
}
