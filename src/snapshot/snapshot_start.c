/*-------------------------------------------------------------------------
 *
 * snapshot_start.c
 *	  How a table of a pipeline begins: the options snapshot and on_existing.
 *
 * NOTES
 *	  Emptying a table fires its TRUNCATE triggers, as far as they fire for
 *	  replication, and these are code of the table's owner: so it is done as the
 *	  owner, in a security-restricted operation, like the writing of rows; opening
 *	  the table as a target has checked that we may. A table is dropped by an
 *	  ordinary DROP TABLE of ours, which wants us to own it, and never with
 *	  CASCADE: what depends on it is somebody's work.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "heap/heap_empty.h"
#include "heap/heap_shard.h"
#include "snapshot/snapshot.h"
#include "snapshot/snapshot_start.h"
#include "util/util_spi.h"

/* Place of an option's value in a list of words; catalog_options.c has let no other pass. */
static int
option_place(const CatalogPipeline *pipeline, const char *name, const char *const *words, int count)
{
	const char *text = util_option_text(&catalog_pipeline_options, name, catalog_pipeline_option(pipeline, name));

	for (int i = 0; i < count; i++)
	{
		if (strcmp(text, words[i]) == 0)
			return i;
	}
	elog(ERROR, "unknown value of option \"%s\"", name);
}

SnapshotStart
snapshot_start_read(const CatalogPipeline *pipeline)
{
	static const char *const modes[] = {
		[SNAPSHOT_INITIAL] = "initial",
		[SNAPSHOT_SCHEMA_ONLY] = "schema_only",
		[SNAPSHOT_NEVER] = "never",
		[SNAPSHOT_ONLY] = "only"
	};
	static const char *const existing[] = {
		[SNAPSHOT_EXISTING_ERROR] = "error",
		[SNAPSHOT_EXISTING_APPEND] = "append",
		[SNAPSHOT_EXISTING_TRUNCATE] = "truncate",
		[SNAPSHOT_EXISTING_REPLACE] = "replace"
	};
	SnapshotStart start;

	start.mode = option_place(pipeline, "snapshot", modes, lengthof(modes));
	start.existing = option_place(pipeline, "on_existing", existing, lengthof(existing));
	return start;
}

CatalogTableState
snapshot_start_state(const SnapshotStart *start)
{
	return start->mode == SNAPSHOT_INITIAL || start->mode == SNAPSHOT_ONLY
		? CATALOG_TABLE_SNAPSHOT : CATALOG_TABLE_STREAMING;
}

bool
snapshot_copies_only(const CatalogPipeline *pipeline)
{
	return snapshot_start_read(pipeline).mode == SNAPSHOT_ONLY;
}

void
snapshot_start_missing(const SnapshotStart *start, const CatalogTable *table)
{
	if (start->mode == SNAPSHOT_NEVER)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("target table \"%s.%s\" does not exist", table->target_schema, table->target_table),
				 errdetail("With snapshot \"never\" nothing is made and nothing is copied."),
				 errhint("Make the table, or set the option \"snapshot\" to \"schema_only\" with cdc_alter_pipeline(), then use cdc_resync_table(), which copies it.")));
}

static void
drop_target(const CatalogTable *table, const char *name)
{
	MemoryContext cxt = CurrentMemoryContext;

	PG_TRY();
	{
		SPI_connect();
		util_spi_run(psprintf("DROP TABLE %s", name));
		SPI_finish();
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(cxt);
		edata = CopyErrorData();
		if (edata->sqlerrcode != ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST)
			PG_RE_THROW();
		FlushErrorState();
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("target table \"%s.%s\" cannot be replaced because other objects depend on it",
						table->target_schema, table->target_table),
				 edata->detail ? errdetail("%s", edata->detail) : 0,
				 errhint("Drop what depends on it, or set the option \"on_existing\" to \"truncate\" with cdc_alter_pipeline(), then use cdc_resync_table().")));
	}
	PG_END_TRY();
}

bool
snapshot_start_existing(const SnapshotStart *start, const CatalogTable *table, Oid relid,
						const CdcTableDef *def, const SchemaTypeOptions *options)
{
	MemoryContext cxt = CurrentMemoryContext;
	const char *name = quote_qualified_identifier(table->target_schema, table->target_table);

	if (start->existing == SNAPSHOT_EXISTING_TRUNCATE)
		(void) heap_empty(relid, def, options);
	else if (start->existing == SNAPSHOT_EXISTING_REPLACE)
		drop_target(table, name);
	MemoryContextSwitchTo(cxt);
	return start->existing != SNAPSHOT_EXISTING_REPLACE;
}

bool
snapshot_start_keeps_rows(const SnapshotStart *start, const CatalogTable *table, HeapTarget *target)
{
	if (start->mode == SNAPSHOT_NEVER || !heap_target_has_rows(target))
		return false;
	if (start->existing != SNAPSHOT_EXISTING_APPEND)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("target table \"%s.%s\" exists and has rows", table->target_schema, table->target_table),
				 errhint("Drop or empty the table, or set the option \"on_existing\" with cdc_alter_pipeline(), then use cdc_resync_table().")));
	return snapshot_start_state(start) == CATALOG_TABLE_SNAPSHOT;
}

bool
snapshot_start_keeps_own(const SnapshotStart *start, const CatalogTable *table, Oid relid)
{
	if (start->mode == SNAPSHOT_NEVER)
		return false;
	if (start->existing == SNAPSHOT_EXISTING_TRUNCATE || start->existing == SNAPSHOT_EXISTING_REPLACE)
		(void) heap_shard_empty(relid, table->own_rows);
	else if (heap_shard_has_rows(relid, table->own_rows))
	{
		if (start->existing != SNAPSHOT_EXISTING_APPEND)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("target table \"%s.%s\" has rows of source table \"%s.%s\" already",
							table->target_schema, table->target_table, table->source_schema, table->source_table),
					 errhint("Delete them, or set the option \"on_existing\" with cdc_alter_pipeline(), then use cdc_resync_table().")));
		return snapshot_start_state(start) == CATALOG_TABLE_SNAPSHOT;
	}
	return false;
}
