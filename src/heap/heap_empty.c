/*-------------------------------------------------------------------------
 *
 * heap_empty.c
 *	  Empty a target.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "heap/heap_empty.h"
#include "util/util_role.h"
#include "util/util_spi.h"

char *
heap_empty(Oid relid, const CdcTableDef *def, const SchemaTypeOptions *options)
{
	MemoryContext cxt = CurrentMemoryContext;
	HeapRow    *row = heap_row_open(relid, def, options);	/* checks kind, rights and columns */
	Oid			write_as = row->target->write_as;
	char		relkind = row->target->rel->rd_rel->relkind;
	const char *name = quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)), get_rel_name(relid));
	UtilRoleSwitch sw;
	char	   *sql;

	heap_row_close(row);

	/* a partitioned table has no rows of its own; children that merely inherit are other tables; a view only has rows to delete */
	sql = psprintf(relkind == RELKIND_VIEW ? "DELETE FROM %s" : relkind == RELKIND_PARTITIONED_TABLE ? "TRUNCATE %s" : "TRUNCATE ONLY %s",
				   name);
	util_role_switch_begin(write_as, &sw);
	SPI_connect();
	util_spi_run(sql);
	SPI_finish();
	util_role_switch_end(&sw);
	MemoryContextSwitchTo(cxt);
	return sql;
}
