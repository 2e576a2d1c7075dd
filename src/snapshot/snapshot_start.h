/*-------------------------------------------------------------------------
 *
 * snapshot_start.h
 *	  How a table of a pipeline begins: the options snapshot and on_existing.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SNAPSHOT_START_H
#define CDC_SNAPSHOT_START_H

#include "postgres.h"

#include "catalog/catalog.h"
#include "heap/heap_row.h"

/* Option snapshot. */
typedef enum SnapshotMode
{
	SNAPSHOT_INITIAL,			/* make the target, copy, follow */
	SNAPSHOT_SCHEMA_ONLY,		/* make the target, follow */
	SNAPSHOT_NEVER,				/* follow into the target that is there */
	SNAPSHOT_ONLY				/* make the target, copy, stop */
} SnapshotMode;

/* Option on_existing: what to do with a target that is there. */
typedef enum SnapshotExisting
{
	SNAPSHOT_EXISTING_ERROR,	/* rows are an error */
	SNAPSHOT_EXISTING_APPEND,	/* rows stay */
	SNAPSHOT_EXISTING_TRUNCATE,	/* rows go */
	SNAPSHOT_EXISTING_REPLACE	/* the table goes, and is made anew */
} SnapshotExisting;

typedef struct SnapshotStart
{
	SnapshotMode mode;
	SnapshotExisting existing;
} SnapshotStart;

extern SnapshotStart snapshot_start_read(const CatalogPipeline *pipeline);

/* The state that a table begins in. */
extern CatalogTableState snapshot_start_state(const SnapshotStart *start);

/*
 * The target is not there: may it be made? Throws when not.
 */
extern void snapshot_start_missing(const SnapshotStart *start, const CatalogTable *table);

/*
 * The target is there: empty or drop it when that was asked for. False when it has
 * to be made now. In a transaction with an active snapshot. Throws.
 */
extern bool snapshot_start_existing(const SnapshotStart *start, const CatalogTable *table, Oid relid,
									const CdcTableDef *def, const SchemaTypeOptions *options);

/*
 * May the target, which is open, have the rows that it has? Throws when not.
 * Returns whether it keeps rows that the copy has to reckon with
 * (catalog_deleted_keep_all, once the table has its number).
 */
extern bool snapshot_start_keeps_rows(const SnapshotStart *start, const CatalogTable *table, HeapTarget *target);

/* The same for a table that shares its target, of its own rows, which are emptied or replaced without those of others. */
extern bool snapshot_start_keeps_own(const SnapshotStart *start, const CatalogTable *table, Oid relid);

#endif							/* CDC_SNAPSHOT_START_H */
