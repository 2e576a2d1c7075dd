/*-------------------------------------------------------------------------
 *
 * catalog_heap.c
 *	  Reading and writing the cdc_bridge.* tables at heap level.
 *
 * NOTES
 *	  Workers and SQL functions run as roles that have no rights on these
 *	  tables; nothing here checks any. Whoever calls has decided already that
 *	  the current role may do it.
 *
 *	  The functions that core has for its own catalogs serve our tables too:
 *	  systable scans take a snapshot and an index, CatalogTuple* maintain
 *	  indexes without expressions and predicates, which ours do not have.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "commands/sequence.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "catalog/catalog_heap.h"
#include "compat/pg_compat.h"

/* Longest prefix of integers in one of our primary keys. */
#define MAX_INT_KEYS 4

typedef struct RelationName
{
	const char *table;
	const char *index;
} RelationName;

static const RelationName relation_names[CATALOG_RELATIONS] = {
	[CATALOG_REL_PIPELINE] = {"pipeline", "pipeline_pkey"},
	[CATALOG_REL_PIPELINE_STATE] = {"pipeline_state", "pipeline_state_pkey"},
	[CATALOG_REL_PIPELINE_TABLE] = {"pipeline_table", "pipeline_table_pkey"},
	[CATALOG_REL_TABLE_STATE] = {"table_state", "table_state_pkey"},
	[CATALOG_REL_SNAPSHOT_CHUNK] = {"snapshot_chunk", "snapshot_chunk_pkey"},
	[CATALOG_REL_SNAPSHOT_DELETED] = {"snapshot_deleted", "snapshot_deleted_pkey"},
	[CATALOG_REL_SNAPSHOT_REREAD] = {"snapshot_reread", "snapshot_reread_pkey"},
	[CATALOG_REL_PREPARED_TRANSACTION] = {"prepared_transaction", "prepared_transaction_pkey"},
	[CATALOG_REL_PREPARED_CHANGE] = {"prepared_change", "prepared_change_pkey"},
	[CATALOG_REL_DEAD_LETTER] = {"dead_letter", "dead_letter_pkey"},
	[CATALOG_REL_SCHEMA_HISTORY] = {"schema_history", "schema_history_pkey"},
	[CATALOG_REL_DEAD_LETTER_REQUEST] = {"dead_letter_request", "dead_letter_request_pkey"},
	[CATALOG_REL_TARGET_INDEX] = {"target_index", "target_index_pkey"},
	[CATALOG_REL_SKIPPED_TRANSACTION] = {"skipped_transaction", "skipped_transaction_pkey"},
	[CATALOG_REL_VERIFY_REQUEST] = {"verify_request", "verify_request_pkey"},
	[CATALOG_REL_VERIFY_TABLE] = {"verify_table", "verify_table_pkey"},
	[CATALOG_REL_VERIFY_DIFFERENCE] = {"verify_difference", "verify_difference_pkey"},
	[CATALOG_REL_EXPORT_STATE] = {"export_state", "export_state_pkey"},
	[CATALOG_REL_EXPORT_TABLE] = {"export_table", "export_table_pkey"},
	[CATALOG_REL_EXPORT_CHUNK] = {"export_chunk", "export_chunk_pkey"},
};

/* What this process knows; valid until a relcache invalidation hits one of the tables. */
static struct
{
	bool		valid;
	Oid			namespace_oid;
	Oid			extension_oid;
	Oid			table[CATALOG_RELATIONS];
	Oid			index[CATALOG_RELATIONS];
}			known;

static bool callback_registered = false;

/* DROP EXTENSION, REINDEX CONCURRENTLY and the like: look again. */
static void
forget_oids_cb(Datum arg, Oid relid)
{
	if (!known.valid)
		return;
	if (OidIsValid(relid))
	{
		int			i;

		for (i = 0; i < CATALOG_RELATIONS && known.table[i] != relid; i++)
			;
		if (i == CATALOG_RELATIONS)
			return;
	}
	known.valid = false;
}

/*
 * Look everything up once. Throws when the extension is not here, or when the
 * schema is somebody else's: then its tables are not to be trusted either.
 */
static void
look_up_oids(void)
{
	Oid			extension;
	Oid			nsp;
	Oid			table[CATALOG_RELATIONS];
	Oid			index[CATALOG_RELATIONS];

	if (known.valid)
		return;
	if (!callback_registered)
	{
		CacheRegisterRelcacheCallback(forget_oids_cb, (Datum) 0);
		callback_registered = true;
	}

	extension = get_extension_oid("cdc_bridge", true);
	nsp = get_namespace_oid("cdc_bridge", true);
	if (!OidIsValid(extension) || !OidIsValid(nsp) ||
		getExtensionOfObject(NamespaceRelationId, nsp) != extension)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("extension \"%s\" is not installed in this database", "cdc_bridge"),
				 errhint("Use CREATE EXTENSION cdc_bridge.")));

	for (int i = 0; i < CATALOG_RELATIONS; i++)
	{
		table[i] = get_relname_relid(relation_names[i].table, nsp);
		index[i] = get_relname_relid(relation_names[i].index, nsp);
		if (!OidIsValid(table[i]) || !OidIsValid(index[i]))
			elog(ERROR, "table or primary key of cdc_bridge.%s is missing", relation_names[i].table);
	}

	known.extension_oid = extension;
	known.namespace_oid = nsp;
	memcpy(known.table, table, sizeof(table));
	memcpy(known.index, index, sizeof(index));
	known.valid = true;
}

Oid
catalog_relation_oid(CatalogRelation which)
{
	look_up_oids();
	return known.table[which];
}

Oid
catalog_namespace_oid(void)
{
	look_up_oids();
	return known.namespace_oid;
}

Oid
catalog_extension_oid(void)
{
	look_up_oids();
	return known.extension_oid;
}

/* In a parallel query no newer snapshot can be had than the query's. */
Snapshot
catalog_latest_snapshot(void)
{
	return IsInParallelMode() ? GetActiveSnapshot() : GetLatestSnapshot();
}

static void
scan_open(CatalogScan *scan, CatalogRelation which, LOCKMODE mode)
{
	scan->rel = table_open(catalog_relation_oid(which), mode);
	look_up_oids();				/* the lock may have brought news of another index */
	scan->index = NULL;
	scan->mode = mode;
	scan->snapshot = RegisterSnapshot(catalog_latest_snapshot());
}

static void
fill_int_keys(ScanKeyData *entries, int nkeys, const int32 *keys)
{
	Assert(nkeys <= MAX_INT_KEYS);
	for (int i = 0; i < nkeys; i++)
		ScanKeyInit(&entries[i], i + 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(keys[i]));
}

void
catalog_scan_begin(CatalogScan *scan, CatalogRelation which, LOCKMODE mode, int nkeys, const int32 *keys)
{
	ScanKeyData entries[MAX_INT_KEYS];

	fill_int_keys(entries, nkeys, keys);
	scan_open(scan, which, mode);
	scan->scan = systable_beginscan(scan->rel, known.index[which], true, scan->snapshot, nkeys, entries);
}

void
catalog_scan_begin_keys(CatalogScan *scan, CatalogRelation which, LOCKMODE mode,
						const char *index_name, int nkeys, ScanKey keys)
{
	scan_open(scan, which, mode);
	scan->scan = systable_beginscan(scan->rel,
									index_name ? get_relname_relid(index_name, known.namespace_oid) : known.index[which],
									true, scan->snapshot, nkeys, keys);
}

void
catalog_scan_begin_ordered(CatalogScan *scan, CatalogRelation which, LOCKMODE mode,
						   int nkeys, const int32 *keys)
{
	ScanKeyData entries[MAX_INT_KEYS];

	fill_int_keys(entries, nkeys, keys);
	catalog_scan_begin_ordered_keys(scan, which, mode, nkeys, entries);
}

void
catalog_scan_begin_ordered_keys(CatalogScan *scan, CatalogRelation which, LOCKMODE mode, int nkeys, ScanKey keys)
{
	scan_open(scan, which, mode);
	scan->index = index_open(known.index[which], AccessShareLock);
	scan->scan = systable_beginscan_ordered(scan->rel, scan->index, scan->snapshot, nkeys, keys);
}

HeapTuple
catalog_scan_next(CatalogScan *scan)
{
	return systable_getnext(scan->scan);
}

HeapTuple
catalog_scan_next_ordered(CatalogScan *scan, ScanDirection direction)
{
	return systable_getnext_ordered(scan->scan, direction);
}

void
catalog_scan_end(CatalogScan *scan)
{
	if (scan->index != NULL)
	{
		systable_endscan_ordered(scan->scan);
		index_close(scan->index, AccessShareLock);
	}
	else
		systable_endscan(scan->scan);
	UnregisterSnapshot(scan->snapshot);
	table_close(scan->rel, scan->mode == AccessShareLock ? AccessShareLock : NoLock);
}

int32
catalog_last_id(CatalogRelation which, AttrNumber id, int32 pipeline_id)
{
	CatalogScan scan;
	HeapTuple	tuple;
	int32		last = 0;

	catalog_scan_begin_ordered(&scan, which, AccessShareLock, 1, &pipeline_id);
	tuple = catalog_scan_next_ordered(&scan, BackwardScanDirection);
	if (HeapTupleIsValid(tuple))
		last = catalog_get_int32(tuple, RelationGetDescr(scan.rel), id);
	catalog_scan_end(&scan);
	return last;
}

void
catalog_tuple_insert(Relation rel, Datum *values, bool *nulls)
{
	HeapTuple	tuple = heap_form_tuple(RelationGetDescr(rel), values, nulls);

	CatalogTupleInsert(rel, tuple);
	heap_freetuple(tuple);
	CommandCounterIncrement();
}

void
catalog_tuple_update(Relation rel, HeapTuple old, Datum *values, bool *nulls, bool *replaces)
{
	HeapTuple	tuple = heap_modify_tuple(old, RelationGetDescr(rel), values, nulls, replaces);

	CatalogTupleUpdate(rel, &tuple->t_self, tuple);
	heap_freetuple(tuple);
	CommandCounterIncrement();
}

void
catalog_tuple_delete(Relation rel, HeapTuple tuple)
{
	CatalogTupleDelete(rel, &tuple->t_self);
	CommandCounterIncrement();
}

void
catalog_delete_rows(CatalogRelation which, int nkeys, const int32 *keys)
{
	CatalogScan scan;
	HeapTuple	tuple;

	catalog_scan_begin(&scan, which, RowExclusiveLock, nkeys, keys);
	while (HeapTupleIsValid(tuple = catalog_scan_next(&scan)))
	{
		CHECK_FOR_INTERRUPTS();
		CatalogTupleDelete(scan.rel, &tuple->t_self);
	}
	catalog_scan_end(&scan);
	CommandCounterIncrement();
}

char *
catalog_get_text(HeapTuple tuple, TupleDesc desc, int attnum)
{
	bool		isnull;
	Datum		value = heap_getattr(tuple, attnum, desc, &isnull);

	return isnull ? NULL : TextDatumGetCString(value);
}

int
catalog_get_word(HeapTuple tuple, TupleDesc desc, int attnum, const char *const *words, int nwords)
{
	char	   *text = catalog_get_text(tuple, desc, attnum);
	int			result = 0;

	while (result < nwords && (text == NULL || strcmp(words[result], text) != 0))
		result++;
	if (result == nwords)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("unknown %s \"%s\" in cdc_bridge.%s", NameStr(TupleDescAttr(desc, attnum - 1)->attname),
						text != NULL ? text : "", get_rel_name(TupleDescAttr(desc, attnum - 1)->attrelid))));
	pfree(text);
	return result;
}

List *
catalog_get_list(HeapTuple tuple, TupleDesc desc, int attnum)
{
	Datum		array = catalog_get_varlena(tuple, desc, attnum);
	List	   *result = NIL;
	Datum	   *elems;
	bool	   *nulls;
	int			n;

	if (array == (Datum) 0)
		return NIL;
	deconstruct_array(DatumGetArrayTypeP(array), TEXTOID, -1, false, TYPALIGN_INT, &elems, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		if (!nulls[i])
			result = lappend(result, TextDatumGetCString(elems[i]));
	}
	return result;
}

int64
catalog_get_int64(HeapTuple tuple, TupleDesc desc, int attnum)
{
	bool		isnull;
	Datum		value = heap_getattr(tuple, attnum, desc, &isnull);

	return isnull ? 0 : DatumGetInt64(value);
}

int32
catalog_get_int32(HeapTuple tuple, TupleDesc desc, int attnum)
{
	bool		isnull;
	Datum		value = heap_getattr(tuple, attnum, desc, &isnull);

	return isnull ? 0 : DatumGetInt32(value);
}

bool
catalog_get_bool(HeapTuple tuple, TupleDesc desc, int attnum)
{
	bool		isnull;
	Datum		value = heap_getattr(tuple, attnum, desc, &isnull);

	return !isnull && DatumGetBool(value);
}

Oid
catalog_get_oid(HeapTuple tuple, TupleDesc desc, int attnum)
{
	bool		isnull;
	Datum		value = heap_getattr(tuple, attnum, desc, &isnull);

	return isnull ? InvalidOid : DatumGetObjectId(value);
}

Datum
catalog_get_varlena(HeapTuple tuple, TupleDesc desc, int attnum)
{
	bool		isnull;
	Datum		value = heap_getattr(tuple, attnum, desc, &isnull);

	return isnull ? (Datum) 0 : PointerGetDatum(PG_DETOAST_DATUM_COPY(value));
}

TimestampTz
catalog_get_time(HeapTuple tuple, TupleDesc desc, int attnum)
{
	bool		isnull;
	Datum		value = heap_getattr(tuple, attnum, desc, &isnull);

	return isnull ? 0 : DatumGetTimestampTz(value);
}

void
catalog_get_position(HeapTuple tuple, TupleDesc desc, int file_attnum, CdcPosition *position)
{
	char	   *file = catalog_get_text(tuple, desc, file_attnum);

	memset(position, 0, sizeof(*position));
	if (file != NULL)
	{
		snprintf(position->file, sizeof(position->file), "%s", file);
		position->offset = (uint64_t) catalog_get_int64(tuple, desc, file_attnum + 1);
	}
}

void
catalog_set_text(Datum *values, bool *nulls, int attnum, const char *text)
{
	nulls[attnum - 1] = text == NULL;
	values[attnum - 1] = text == NULL ? (Datum) 0 : CStringGetTextDatum(text);
}

void
catalog_set_position(Datum *values, bool *nulls, int file_attnum, const CdcPosition *position)
{
	bool		is_known = position != NULL && cdc_position_is_known(position);

	catalog_set_text(values, nulls, file_attnum, is_known ? position->file : NULL);
	nulls[file_attnum] = !is_known;
	values[file_attnum] = is_known ? Int64GetDatum((int64) position->offset) : (Datum) 0;
}

void
catalog_set_error(Datum *values, bool *nulls, int first_attnum, const UtilErrorInfo *error)
{
	catalog_set_text(values, nulls, first_attnum, error != NULL ? error->message : NULL);
	catalog_set_text(values, nulls, first_attnum + 1, error != NULL ? unpack_sql_state(error->sqlstate) : NULL);
	catalog_set_text(values, nulls, first_attnum + 2, error != NULL ? error->detail : NULL);
	catalog_set_text(values, nulls, first_attnum + 3, error != NULL ? error->hint : NULL);
}

void
catalog_get_error(HeapTuple tuple, TupleDesc desc, int first_attnum, CatalogError *error)
{
	memset(error, 0, sizeof(*error));
	error->message = catalog_get_text(tuple, desc, first_attnum);
	error->sqlstate = catalog_get_text(tuple, desc, first_attnum + 1);
	error->detail = catalog_get_text(tuple, desc, first_attnum + 2);
	error->hint = catalog_get_text(tuple, desc, first_attnum + 3);
}

/*
 * Take the next number of one of our sequences. The worker of nextval() that
 * checks no rights, since the caller has none on the sequence.
 */
int64
catalog_next_id(const char *sequence)
{
	Oid			relid = get_relname_relid(sequence, catalog_namespace_oid());

	if (!OidIsValid(relid))
		elog(ERROR, "sequence cdc_bridge.%s is missing", sequence);
	return nextval_internal(relid, false);
}
