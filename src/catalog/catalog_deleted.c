/*-------------------------------------------------------------------------
 *
 * catalog_deleted.c
 *	  Rows of cdc_bridge.snapshot_deleted: what the stream notes for a copy.
 *
 * NOTES
 *	  Called per row while a table is being copied, so nothing is looked up by
 *	  name and nothing but the one index entry is touched.
 *
 *	  Keys are bytes to us. Whoever makes them keeps them short enough for an
 *	  index row (chunk_key_bytes: at most 1000 bytes) and begins none with a zero
 *	  byte. Three notes about the table as a whole stand among them, under keys that
 *	  no row has. They stand here and not in table_state because the stream writes
 *	  them in the middle of its transaction, where the pipeline's state lock, which
 *	  is the last to be taken, is not to be had.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"

#include "catalog/catalog_heap.h"

/* The keys of the notes. */
static const char note_stream[] = {0};
static const char note_keep_all[] = {0};
static const char note_defaults[] = {0, 0};

#define NOTE_STREAM_LEN 1
#define NOTE_KEEP_ALL_LEN 0
#define NOTE_DEFAULTS_LEN 2

/* Is it a note and no row's key? */
static bool
is_note(const bytea *key)
{
	return VARSIZE_ANY_EXHDR(key) == NOTE_KEEP_ALL_LEN || *VARDATA_ANY(key) == 0;
}

static bytea *
note_key(const char *data, int len)
{
	return (bytea *) cstring_to_text_with_len(data, len);
}

/* Begin a scan for the one row; returns it or NULL. The caller ends the scan. */
static HeapTuple
find(CatalogScan *scan, LOCKMODE mode, int32 pipeline_id, int32 table_id, bytea *key)
{
	ScanKeyData keys[3];

	ScanKeyInit(&keys[0], Anum_snapshot_deleted_pipeline_id, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(pipeline_id));
	ScanKeyInit(&keys[1], Anum_snapshot_deleted_table_id, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(table_id));
	ScanKeyInit(&keys[2], Anum_snapshot_deleted_key, BTEqualStrategyNumber, F_BYTEAEQ,
				PointerGetDatum(key));
	catalog_scan_begin_keys(scan, CATALOG_REL_SNAPSHOT_DELETED, mode, NULL, 3, keys);
	return catalog_scan_next(scan);
}

bool
catalog_deleted_exists(int32 pipeline_id, int32 table_id, bytea *key)
{
	CatalogScan scan;
	bool		found;

	found = HeapTupleIsValid(find(&scan, AccessShareLock, pipeline_id, table_id, key));
	catalog_scan_end(&scan);
	return found;
}

/* Look at both notes at once: they come before all keys. */
void
catalog_deleted_notes(int32 pipeline_id, int32 table_id, bool *stream, bool *keep_all)
{
	*stream = catalog_deleted_exists(pipeline_id, table_id, note_key(note_stream, NOTE_STREAM_LEN));
	*keep_all = catalog_deleted_exists(pipeline_id, table_id, note_key(note_keep_all, NOTE_KEEP_ALL_LEN));
}

void
catalog_deleted_note_stream(int32 pipeline_id, int32 table_id)
{
	catalog_deleted_add(pipeline_id, table_id, note_key(note_stream, NOTE_STREAM_LEN));
}

void
catalog_deleted_note_defaults(int32 pipeline_id, int32 table_id)
{
	catalog_deleted_add(pipeline_id, table_id, note_key(note_defaults, NOTE_DEFAULTS_LEN));
}

bool
catalog_deleted_used_defaults(int32 pipeline_id, int32 table_id)
{
	return catalog_deleted_exists(pipeline_id, table_id, note_key(note_defaults, NOTE_DEFAULTS_LEN));
}

void
catalog_deleted_keep_all(int32 pipeline_id, int32 table_id)
{
	catalog_deleted_add(pipeline_id, table_id, note_key(note_keep_all, NOTE_KEEP_ALL_LEN));
}

void
catalog_deleted_add(int32 pipeline_id, int32 table_id, bytea *key)
{
	CatalogScan scan;
	Datum		values[Natts_snapshot_deleted];
	bool		nulls[Natts_snapshot_deleted] = {0};

	if (!HeapTupleIsValid(find(&scan, RowExclusiveLock, pipeline_id, table_id, key)))
	{
		values[Anum_snapshot_deleted_pipeline_id - 1] = Int32GetDatum(pipeline_id);
		values[Anum_snapshot_deleted_table_id - 1] = Int32GetDatum(table_id);
		values[Anum_snapshot_deleted_key - 1] = PointerGetDatum(key);
		catalog_tuple_insert(scan.rel, values, nulls);
	}
	catalog_scan_end(&scan);
}

void
catalog_deleted_remove(int32 pipeline_id, int32 table_id, bytea *key)
{
	CatalogScan scan;
	HeapTuple	tuple;

	if (catalog_deleted_exists(pipeline_id, table_id, note_key(note_keep_all, NOTE_KEEP_ALL_LEN)))
	{
		catalog_deleted_add(pipeline_id, table_id, key);
		return;
	}
	tuple = find(&scan, RowExclusiveLock, pipeline_id, table_id, key);
	if (HeapTupleIsValid(tuple))
		catalog_tuple_delete(scan.rel, tuple);
	catalog_scan_end(&scan);
}

/* Every row counts, except the notes on what the stream has done. */
bool
catalog_deleted_any(int32 pipeline_id, int32 table_id)
{
	int32		keys[] = {pipeline_id, table_id};
	CatalogScan scan;
	HeapTuple	tuple;
	bool		found = false;

	catalog_scan_begin(&scan, CATALOG_REL_SNAPSHOT_DELETED, AccessShareLock, 2, keys);
	while (!found && HeapTupleIsValid(tuple = catalog_scan_next(&scan)))
	{
		bytea	   *key = (bytea *) DatumGetPointer(catalog_get_varlena(tuple, RelationGetDescr(scan.rel),
																		 Anum_snapshot_deleted_key));

		found = VARSIZE_ANY_EXHDR(key) == NOTE_KEEP_ALL_LEN || !is_note(key);
		pfree(key);
	}
	catalog_scan_end(&scan);
	return found;
}

List *
catalog_deleted_take(int32 pipeline_id, int32 table_id, int max)
{
	int32		keys[] = {pipeline_id, table_id};
	CatalogScan scan;
	HeapTuple	tuple;
	List	   *result = NIL;

	catalog_scan_begin(&scan, CATALOG_REL_SNAPSHOT_DELETED, RowExclusiveLock, 2, keys);
	while (list_length(result) < max && HeapTupleIsValid(tuple = catalog_scan_next(&scan)))
	{
		bytea	   *key = (bytea *) DatumGetPointer(catalog_get_varlena(tuple, RelationGetDescr(scan.rel),
																		 Anum_snapshot_deleted_key));

		if (is_note(key))
			continue;
		catalog_tuple_delete(scan.rel, tuple);
		result = lappend(result, key);
	}
	catalog_scan_end(&scan);
	return result;
}
