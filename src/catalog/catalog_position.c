/*-------------------------------------------------------------------------
 *
 * catalog_position.c
 *	  The position log of a pipeline: cdc_bridge.position_<id>_1 and _2.
 *
 * NOTES
 *	  Each PostgreSQL transaction of the ingest worker appends one row with the
 *	  position reached and the GTIDs it added; nothing is ever updated, so no
 *	  chain of dead versions can grow while somebody holds an old snapshot. A
 *	  base row carries the whole GTID set. The position is the newest base row
 *	  and all rows with a higher number, from both tables together.
 *
 *	  After BASE_INTERVAL rows the other table is emptied and gets a base row,
 *	  and becomes the one that is appended to:
 *
 *	    _1: B d d d ... d                     (1000 rows)
 *	    _2: (old)              -> truncated, B d d d ...
 *	    _1:                       kept until _2 has 1000 rows, then truncated
 *
 *	  The table that is emptied holds nothing that is still needed: the other
 *	  one begins with a newer base row. So it is truncated in place, at once and
 *	  whether or not the transaction commits; that leaves no dead rows in pg_class.
 *	  Our transactions commit asynchronously, so WAL is flushed first: the base
 *	  row that makes the table superfluous must not be lost in a crash after it
 *	  was emptied. Readers lock both tables before they take their snapshot; the
 *	  writer never waits for them, it goes on with the table it has and tries
 *	  again later.
 *
 *	  The tables are made by C code, owned by the extension's owner, and members
 *	  of the extension: pg_dump leaves them out, pg_upgrade takes them along.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/dependency.h"
#include "catalog/heap.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_type.h"
#include "catalog/toasting.h"
#include "commands/comment.h"
#include "commands/tablecmds.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "catalog/catalog_heap.h"
#include "compat/pg_compat.h"
#include "util/util_arena.h"
#include "util/util_gtid.h"

/* Rows between two base rows, and between two attempts when the other table is in use. */
#define BASE_INTERVAL 1000
#define RETRY_INTERVAL 50

enum
{
	Anum_position_seq = 1,
	Anum_position_is_base,
	Anum_position_identity,
	Anum_position_file,
	Anum_position_offset,
	Anum_position_gtids,
	Anum_position_committed_at,
	Anum_position_file_created,
	Natts_position = Anum_position_file_created
};

struct CatalogPositionLog
{
	MemoryContext cxt;			/* the log and what it holds */
	MemoryContext scratch;		/* one call */
	const CdcAllocator *allocator;	/* of cxt */
	int32		pipeline_id;
	Oid			tables[2];
	int			newest;			/* table that is appended to */
	int64		seq;			/* of the newest row */
	int			rows;			/* since the newest base row */
	int			next_base;		/* write one when rows has come to this */
	CdcGtidSet *set;			/* NULL while there are none */
	CdcGtidKind kind;
	bool		exists;			/* there is a position */
	bool		gtids_are_stale;	/* current.gtids lacks what was added to set */
	CatalogPosition current;
};

/* One row, as read. */
typedef struct PositionRow
{
	int64		seq;
	bool		is_base;
	char	   *identity;
	CdcPosition position;
	char	   *gtids;
	TimestampTz committed_at;
	int			table;
} PositionRow;

static void append_row(CatalogPositionLog *log, bool is_base, const char *gtids);

/* ---- the tables ---- */

static void
table_name(int32 pipeline_id, int n, char *out)
{
	snprintf(out, NAMEDATALEN, "position_%d_%d", pipeline_id, n + 1);
}

static Oid
table_oid(int32 pipeline_id, int n)
{
	char		name[NAMEDATALEN];

	table_name(pipeline_id, n, name);
	return get_relname_relid(name, catalog_namespace_oid());
}

Oid
catalog_extension_owner(void)
{
	Relation	rel = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			owner = InvalidOid;

	ScanKeyInit(&key, Anum_pg_extension_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(catalog_extension_oid()));
	scan = systable_beginscan(rel, ExtensionOidIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		owner = ((Form_pg_extension) GETSTRUCT(tuple))->extowner;
	systable_endscan(scan);
	table_close(rel, AccessShareLock);

	if (!OidIsValid(owner))
		elog(ERROR, "extension %u has no owner", catalog_extension_oid());
	return owner;
}

static TupleDesc
table_desc(void)
{
	TupleDesc	desc = CreateTemplateTupleDesc(Natts_position);

	TupleDescInitEntry(desc, Anum_position_seq, "seq", INT8OID, -1, 0);
	TupleDescInitEntry(desc, Anum_position_is_base, "is_base", BOOLOID, -1, 0);
	TupleDescInitEntry(desc, Anum_position_identity, "identity", TEXTOID, -1, 0);
	TupleDescInitEntry(desc, Anum_position_file, "file", TEXTOID, -1, 0);
	TupleDescInitEntry(desc, Anum_position_offset, "offset", INT8OID, -1, 0);
	TupleDescInitEntry(desc, Anum_position_gtids, "gtids", TEXTOID, -1, 0);
	TupleDescInitEntry(desc, Anum_position_committed_at, "committed_at", TIMESTAMPTZOID, -1, 0);
	TupleDescInitEntry(desc, Anum_position_file_created, "file_created", TIMESTAMPTZOID, -1, 0);
	return desc;
}

/*
 * Make one table. Not by CREATE TABLE: the caller may lack the right to create
 * in our schema, and no event trigger has to hear of it.
 */
static void
create_table(int32 pipeline_id, int n)
{
	char		name[NAMEDATALEN];
	Oid			relid;
	ObjectAddress table;
	ObjectAddress extension;

	table_name(pipeline_id, n, name);
	relid = heap_create_with_catalog(name, catalog_namespace_oid(), InvalidOid, InvalidOid, InvalidOid, InvalidOid,
									 catalog_extension_owner(), HEAP_TABLE_AM_OID, table_desc(), NIL,
									 RELKIND_RELATION, RELPERSISTENCE_PERMANENT, false, false,
									 ONCOMMIT_NOOP, (Datum) 0, false, false, true, InvalidOid, NULL);
	CommandCounterIncrement();
	NewRelationCreateToastTable(relid, (Datum) 0);

	ObjectAddressSet(table, RelationRelationId, relid);
	ObjectAddressSet(extension, ExtensionRelationId, catalog_extension_oid());
	recordDependencyOn(&table, &extension, DEPENDENCY_EXTENSION);
	CreateComments(relid, RelationRelationId, 0, psprintf("position log of pipeline %d", pipeline_id));
	CommandCounterIncrement();
}

void
catalog_position_create(int32 pipeline_id)
{
	for (int n = 0; n < 2; n++)
	{
		if (!OidIsValid(table_oid(pipeline_id, n)))
			create_table(pipeline_id, n);
	}
}

void
catalog_position_drop(int32 pipeline_id)
{
	for (int n = 0; n < 2; n++)
	{
		ObjectAddress table;

		ObjectAddressSet(table, RelationRelationId, table_oid(pipeline_id, n));
		if (!OidIsValid(table.objectId))
			continue;
		/* a member could only be dropped with its extension */
		(void) deleteDependencyRecordsForClass(RelationRelationId, table.objectId,
											   ExtensionRelationId, DEPENDENCY_EXTENSION);
		CommandCounterIncrement();
		performDeletion(&table, DROP_RESTRICT, PERFORM_DELETION_INTERNAL);
		CommandCounterIncrement();
	}
}

/* ---- reading ---- */

/* When a file was born: seconds since 1970, 0 not known, and what stands in the table (0: NULL). */
static TimestampTz
time_from_born(uint32 born)
{
	return born == 0 ? 0 : time_t_to_timestamptz((pg_time_t) born);
}

static uint32
born_from_time(TimestampTz time)
{
	return time == 0 ? 0 : (uint32) timestamptz_to_time_t(time);
}

static void
read_table(Relation rel, int n, Snapshot snapshot, List **rows)
{
	TupleDesc	desc = RelationGetDescr(rel);
	TableScanDesc scan = table_beginscan(rel, snapshot, 0, NULL);
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = heap_getnext(scan, ForwardScanDirection)))
	{
		PositionRow *row = palloc0(sizeof(PositionRow));

		row->seq = catalog_get_int64(tuple, desc, Anum_position_seq);
		row->is_base = catalog_get_bool(tuple, desc, Anum_position_is_base);
		row->identity = catalog_get_text(tuple, desc, Anum_position_identity);
		catalog_get_position(tuple, desc, Anum_position_file, &row->position);
		row->position.born = born_from_time(catalog_get_time(tuple, desc, Anum_position_file_created));
		row->gtids = catalog_get_text(tuple, desc, Anum_position_gtids);
		row->committed_at = catalog_get_time(tuple, desc, Anum_position_committed_at);
		row->table = n;
		*rows = lappend(*rows, row);
	}
	table_endscan(scan);
}

static int
compare_rows(const ListCell *a, const ListCell *b)
{
	int64		sa = ((const PositionRow *) lfirst(a))->seq;
	int64		sb = ((const PositionRow *) lfirst(b))->seq;

	return sa < sb ? -1 : (sa > sb ? 1 : 0);
}

/* The newest base row and what follows it, in order; NIL when there is none. */
static List *
read_rows(const Oid *tables, bool wait)
{
	Relation	rels[2];
	Snapshot	snapshot;
	List	   *all = NIL;
	List	   *result = NIL;
	ListCell   *lc;

	/* both locks first, then the snapshot: see NOTES */
	for (int n = 0; n < 2; n++)
	{
		rels[n] = wait || ConditionalLockRelationOid(tables[n], AccessShareLock)
			? try_table_open(tables[n], wait ? AccessShareLock : NoLock) : NULL;
		if (rels[n] == NULL)	/* dropped just now, or about to be */
		{
			if (n == 1)
				table_close(rels[0], AccessShareLock);
			return NIL;
		}
	}
	snapshot = RegisterSnapshot(catalog_latest_snapshot());
	for (int n = 0; n < 2; n++)
		read_table(rels[n], n, snapshot, &all);
	UnregisterSnapshot(snapshot);
	for (int n = 0; n < 2; n++)
		table_close(rels[n], AccessShareLock);

	list_sort(all, compare_rows);
	foreach(lc, all)
	{
		PositionRow *row = lfirst(lc);

		if (row->is_base)
			result = list_make1(row);
		else if (result != NIL)
			result = lappend(result, row);
	}
	return result;
}

/* MySQL's sets have colons, MariaDB's have none. */
static CdcGtidKind
kind_of_text(const char *gtids)
{
	if (gtids == NULL || gtids[0] == '\0')
		return CDC_GTID_NONE;
	return strchr(gtids, ':') != NULL ? CDC_GTID_MYSQL : CDC_GTID_MARIADB;
}

/* Add a set's text; makes *set when it is NULL and there is something to add. */
static void
add_text(CdcGtidSet **set, CdcGtidKind *kind, const char *gtids, const CdcAllocator *allocator)
{
	if (gtids == NULL || gtids[0] == '\0')
		return;
	if (*set == NULL)
	{
		*kind = kind_of_text(gtids);
		*set = util_gtid_set_create(*kind, allocator);
	}
	util_gtid_set_add_text(*set, gtids);
}

/* Canonical text, palloc'd in CurrentMemoryContext. */
static char *
format_set(const CdcGtidSet *set)
{
	CdcBuf		buf;
	char	   *text;

	if (set == NULL)
		return pstrdup("");
	cdc_buf_init(&buf, util_context_allocator(CurrentMemoryContext), 0);
	cdc_gtid_set_format(set, &buf);
	if (buf.status != CDC_OK)
		util_throw_out_of_memory();
	text = pstrdup(buf.data != NULL ? buf.data : "");
	cdc_buf_free(&buf);
	return text;
}

/*
 * Newest position of a pipeline, or NULL when it never had one. Checks no
 * rights: the caller has decided that the current role may see the pipeline.
 */
CatalogPosition *
catalog_position_load(int32 pipeline_id, bool wait)
{
	Oid			tables[2] = {table_oid(pipeline_id, 0), table_oid(pipeline_id, 1)};
	CatalogPosition *result;
	MemoryContext scratch;
	MemoryContext old;
	CdcGtidSet *set = NULL;
	CdcGtidKind kind;
	const CdcAllocator *allocator;
	PositionRow *last = NULL;
	List	   *rows;
	ListCell   *lc;

	if (!OidIsValid(tables[0]) || !OidIsValid(tables[1]))
		return NULL;			/* restored from a dump, never started */

	result = palloc0(sizeof(CatalogPosition));
	scratch = AllocSetContextCreate(CurrentMemoryContext, "cdc position", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(scratch);
	allocator = util_context_allocator(scratch);
	rows = read_rows(tables, wait);
	foreach(lc, rows)
	{
		last = lfirst(lc);
		add_text(&set, &kind, last->gtids, allocator);
	}
	MemoryContextSwitchTo(old);

	if (last != NULL)
	{
		result->identity = pstrdup(last->identity != NULL ? last->identity : "");
		result->position = last->position;
		result->gtids = format_set(set);
		result->committed_at = last->committed_at;
	}
	MemoryContextDelete(scratch);
	return last != NULL ? result : NULL;
}

/* ---- the writer ---- */

CatalogPositionLog *
catalog_position_log_open(int32 pipeline_id, MemoryContext cxt)
{
	MemoryContext own = AllocSetContextCreate(cxt, "cdc position log", ALLOCSET_DEFAULT_SIZES);
	CatalogPositionLog *log = MemoryContextAllocZero(own, sizeof(CatalogPositionLog));

	log->cxt = own;
	log->scratch = AllocSetContextCreate(own, "cdc position log call", ALLOCSET_SMALL_SIZES);
	log->allocator = util_context_allocator(own);
	log->pipeline_id = pipeline_id;
	for (int n = 0; n < 2; n++)
	{
		log->tables[n] = table_oid(pipeline_id, n);
		if (!OidIsValid(log->tables[n]))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_TABLE),
					 errmsg("position table %d of pipeline %d is missing", n + 1, pipeline_id),
					 errhint("Drop the pipeline and create it anew.")));
	}
	catalog_position_log_reload(log);
	return log;
}

static void
set_current(CatalogPositionLog *log, const char *identity, const CdcPosition *position)
{
	if (log->current.identity == NULL || strcmp(log->current.identity, identity) != 0)
	{
		if (log->current.identity != NULL)
			pfree(log->current.identity);
		log->current.identity = MemoryContextStrdup(log->cxt, identity);
	}
	log->current.position = *position;
	log->exists = true;
	log->gtids_are_stale = true;
}

/* Make the log's memory equal to what the tables hold. */
void
catalog_position_log_reload(CatalogPositionLog *log)
{
	MemoryContext old;
	List	   *rows;
	ListCell   *lc;

	MemoryContextReset(log->scratch);
	if (log->set != NULL)
		cdc_gtid_set_free(log->set);
	log->set = NULL;
	log->kind = CDC_GTID_NONE;
	log->exists = false;
	log->seq = 0;
	log->rows = 0;
	log->next_base = BASE_INTERVAL;
	log->newest = 0;

	old = MemoryContextSwitchTo(log->scratch);
	rows = read_rows(log->tables, true);
	foreach(lc, rows)
	{
		PositionRow *row = lfirst(lc);

		add_text(&log->set, &log->kind, row->gtids, log->allocator);
		log->seq = row->seq;
		log->newest = row->table;
		set_current(log, row->identity != NULL ? row->identity : "", &row->position);
		log->current.committed_at = row->committed_at;
	}
	log->rows = list_length(rows);
	MemoryContextSwitchTo(old);
	MemoryContextReset(log->scratch);
}

/* Where the log stands, or NULL. Valid until the next call for this log. */
const CatalogPosition *
catalog_position_log_current(const CatalogPositionLog *log)
{
	CatalogPositionLog *mutable = unconstify(CatalogPositionLog *, log);

	if (!log->exists)
		return NULL;
	if (log->gtids_are_stale)
	{
		/* the whole set can be long: its text is made only when somebody asks */
		MemoryContext old = MemoryContextSwitchTo(log->scratch);
		char	   *text = MemoryContextStrdup(log->cxt, format_set(log->set));

		if (log->current.gtids != NULL)
			pfree(log->current.gtids);
		mutable->current.gtids = text;
		mutable->gtids_are_stale = false;
		MemoryContextSwitchTo(old);
		MemoryContextReset(log->scratch);
	}
	return &log->current;
}

/* Write the log's current position as a row of its newest table. Scratch context is current. */
static void
append_row(CatalogPositionLog *log, bool is_base, const char *gtids)
{
	Relation	rel = table_open(log->tables[log->newest], RowExclusiveLock);
	Datum		values[Natts_position] = {0};
	bool		nulls[Natts_position] = {0};

	log->seq++;
	log->current.committed_at = GetCurrentTimestamp();
	values[Anum_position_seq - 1] = Int64GetDatum(log->seq);
	values[Anum_position_is_base - 1] = BoolGetDatum(is_base);
	catalog_set_text(values, nulls, Anum_position_identity, log->current.identity);
	catalog_set_position(values, nulls, Anum_position_file, &log->current.position);
	catalog_set_text(values, nulls, Anum_position_gtids, gtids);
	values[Anum_position_committed_at - 1] = TimestampTzGetDatum(log->current.committed_at);
	values[Anum_position_file_created - 1] = TimestampTzGetDatum(time_from_born(log->current.position.born));
	nulls[Anum_position_file_created - 1] = log->current.position.born == 0;

	/* no indexes, and the worker's own commands need not see it */
	simple_heap_insert(rel, heap_form_tuple(RelationGetDescr(rel), values, nulls));
	table_close(rel, NoLock);

	if (is_base)
	{
		log->rows = 0;
		log->next_base = BASE_INTERVAL;
	}
	log->rows++;
}

/*
 * Write the first position of a pipeline. Anything the tables hold from before
 * is superseded.
 */
void
catalog_position_log_start(CatalogPositionLog *log, const char *identity, CdcGtidKind kind,
						   const CdcPosition *position, const char *gtids)
{
	MemoryContext old = MemoryContextSwitchTo(log->scratch);

	if (log->set != NULL)
		cdc_gtid_set_free(log->set);
	log->set = NULL;
	log->kind = kind;
	if (kind != CDC_GTID_NONE)
		log->set = util_gtid_set_create(kind, log->allocator);
	add_text(&log->set, &log->kind, gtids, log->allocator);

	set_current(log, identity, position);
	append_row(log, true, format_set(log->set));

	MemoryContextSwitchTo(old);
	MemoryContextReset(log->scratch);
}

/*
 * Turn to the other table, emptied; false when somebody uses it just now. Its
 * rows are all older than the newest base row: see NOTES.
 */
static bool
switch_table(CatalogPositionLog *log)
{
	int			other = 1 - log->newest;
	Relation	rel;

	/*
	 * What must be durable was committed before our last commit, by us or by
	 * the process before us. Without one yet, there is time until there is.
	 */
	if (XLogRecPtrIsInvalid(XactLastCommitEnd))
		return false;
	if (!ConditionalLockRelationOid(log->tables[other], AccessExclusiveLock))
		return false;
	rel = table_open(log->tables[other], NoLock);
	CheckTableNotInUse(rel, "TRUNCATE");
	if (RelationGetNumberOfBlocks(rel) > 0)
	{
		XLogFlush(XactLastCommitEnd);
		heap_truncate_one_rel(rel);
		pgstat_count_truncate(rel);
	}
	table_close(rel, NoLock);
	log->newest = other;
	return true;
}

/* GTIDs of one transaction as text, neighbours folded into intervals; NULL when there are none. */
static char *
add_gtids(CatalogPositionLog *log, const CdcGtid *gtids, int ngtids)
{
	CdcGtidSet *added = NULL;
	CdcError	err;
	char	   *text;

	for (int i = 0; i < ngtids; i++)
	{
		if (gtids[i].kind == CDC_GTID_NONE)
			continue;
		if (log->set == NULL)
		{
			log->kind = gtids[i].kind;
			log->set = util_gtid_set_create(log->kind, log->allocator);
		}
		if (gtids[i].kind != log->kind)
			elog(ERROR, "global transaction id of kind %d in a set of kind %d", gtids[i].kind, log->kind);
		if (added == NULL)
			added = util_gtid_set_create(log->kind, util_context_allocator(log->scratch));
		if (cdc_gtid_set_add(added, &gtids[i], &err) != CDC_OK ||
			cdc_gtid_set_add(log->set, &gtids[i], &err) != CDC_OK)
			util_throw(&err, "could not add global transaction id");
	}
	if (added == NULL)
		return NULL;
	text = format_set(added);
	cdc_gtid_set_free(added);
	return text;
}

void
catalog_position_log_append(CatalogPositionLog *log, const CdcPosition *position, const CdcGtid *gtids, int ngtids)
{
	MemoryContext old = MemoryContextSwitchTo(log->scratch);
	char	   *added;

	Assert(log->exists);

	added = add_gtids(log, gtids, ngtids);
	set_current(log, log->current.identity, position);
	if (log->rows >= log->next_base && switch_table(log))
		append_row(log, true, format_set(log->set));
	else
	{
		if (log->rows >= log->next_base)
			log->next_base = log->rows + RETRY_INTERVAL;
		append_row(log, false, added);
	}

	MemoryContextSwitchTo(old);
	MemoryContextReset(log->scratch);
}
