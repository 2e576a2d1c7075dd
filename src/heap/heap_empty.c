/*-------------------------------------------------------------------------
 *
 * heap_empty.c
 *	  Empty a target.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "heap/heap_empty.h"
#include "util/util_role.h"
#include "util/util_spi.h"

/* Run a statement as the role that rows are written as. */
static void
run_as(Oid role, const char *sql)
{
	UtilRoleSwitch sw;

	util_role_switch_begin(role, &sw);
	SPI_connect();
	util_spi_run(sql);
	SPI_finish();
	util_role_switch_end(&sw);
}

char *
heap_empty(Oid relid, const CdcTableDef *def, const SchemaTypeOptions *options)
{
	MemoryContext cxt = CurrentMemoryContext;
	HeapRow    *row = heap_row_open(relid, def, options);	/* checks kind, rights and columns */
	Oid			write_as = row->target->write_as;
	char		relkind = row->target->rel->rd_rel->relkind;
	const char *name = quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)), get_rel_name(relid));
	char	   *sql;

	heap_row_close(row);

	/* a partitioned table has no rows of its own; children that merely inherit are other tables; a view only has rows to delete */
	sql = psprintf(relkind == RELKIND_VIEW ? "DELETE FROM %s" : relkind == RELKIND_PARTITIONED_TABLE ? "TRUNCATE %s" : "TRUNCATE ONLY %s",
				   name);
	run_as(write_as, sql);
	MemoryContextSwitchTo(cxt);
	return sql;
}

char *
heap_empty_marking(Oid relid, const CdcTableDef *def, const SchemaTypeOptions *options, TimestampTz time)
{
	MemoryContext cxt = CurrentMemoryContext;
	HeapRow    *row = heap_row_open(relid, def, options);	/* checks kind, rights and columns */
	const TransformRule *rule = transform_table_rule(def, options);
	Oid			write_as = row->target->write_as;
	bool		is_plain = row->target->rel->rd_rel->relkind == RELKIND_RELATION;
	char	   *sql;

	heap_row_close(row);
	sql = psprintf("UPDATE %s%s SET %s = true, %s = %s WHERE %s IS NOT TRUE", is_plain ? "ONLY " : "",
				   quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)), get_rel_name(relid)),
				   quote_identifier(rule->deleted_column), quote_identifier(rule->deleted_at_column),
				   quote_literal_cstr(DatumGetCString(DirectFunctionCall1(timestamptz_out, TimestampTzGetDatum(time)))),
				   quote_identifier(rule->deleted_column));
	run_as(write_as, sql);
	CommandCounterIncrement();
	MemoryContextSwitchTo(cxt);
	return sql;
}
