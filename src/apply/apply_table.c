/*-------------------------------------------------------------------------
 *
 * apply_table.c
 *	  The tables of a pipeline: found by name, mapped to their targets.
 *
 * NOTES
 *	  Names are compared as the source writes them, byte by byte. A source with
 *	  lower_case_table_names set writes lower case into its row events, so rows
 *	  need no folding; only the text of a statement may then differ in case. When
 *	  any of our names has an upper-case letter the source does not fold; when
 *	  none has we cannot tell, and read statements without regard to case, which
 *	  at worst stops a table for the sake of one that is named like it.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "apply/apply_private.h"
#include "catalog/catalog_lock.h"
#include "heap/heap_part.h"
#include "util/util_name.h"

/* "schema", byte 1, "table": names have at most 64 characters of at most 4 bytes */
#define NAME_KEY_MAX 528

typedef struct NameEntry
{
	char		key[NAME_KEY_MAX];
	ApplyTable *table;
} NameEntry;

/* false when a name is too long to be one of ours */
static bool
make_key(char *key, const char *schema, const char *name)
{
	return snprintf(key, NAME_KEY_MAX, "%s\x01%s", schema, name) < NAME_KEY_MAX;
}

void
apply_tables_init(Apply *apply)
{
	HASHCTL		ctl = {
		.keysize = NAME_KEY_MAX,
		.entrysize = sizeof(NameEntry),
		.hcxt = apply->cxt,
	};

	apply->by_name = hash_create("cdc apply tables", 64, &ctl, HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
}

ApplyTable *
apply_table_find(Apply *apply, const char *schema, const char *name)
{
	char		key[NAME_KEY_MAX];
	NameEntry  *entry;

	if (!make_key(key, schema, name))
		return NULL;
	entry = hash_search(apply->by_name, key, HASH_FIND, NULL);
	return entry != NULL ? entry->table : NULL;
}

static bool
has_upper(const char *text)
{
	for (; *text; text++)
	{
		if (*text >= 'A' && *text <= 'Z')
			return true;
	}
	return false;
}

static void
take_definition(ApplyTable *table, Datum definition)
{
	MemoryContext before = table->def_cxt;
	MemoryContext old;

	table->def_cxt = AllocSetContextCreate(table->cxt, "cdc apply definition", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(table->def_cxt);
	table->def = schema_def_from_jsonb(definition);
	MemoryContextSwitchTo(old);
	table->match_stamp = 0;
	table->def_learned = false;
	table->lasting = !schema_has_transactions(table->def);
	if (before != NULL)
		MemoryContextDelete(before);
}

void
apply_table_set_def(Apply *apply, ApplyTable *table, const CdcTableDef *def)
{
	Assert(table->row == NULL);
	/* as it will be read after a restart */
	take_definition(table, schema_def_to_jsonb(def));
	apply->last_def = NULL;
	apply->last_table = NULL;
}

/* A table that waits for its copy, by its number: it may have another name when it is read again. */
typedef struct AwaitingTable
{
	int32		table_id;
	int32		generation;
} AwaitingTable;

static List *
tables_awaiting(const Apply *apply)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, apply->tables)
	{
		const ApplyTable *table = lfirst(lc);
		AwaitingTable *awaiting;

		if (!table->awaits_copy)
			continue;
		awaiting = palloc(sizeof(AwaitingTable));
		awaiting->table_id = table->table_id;
		awaiting->generation = table->generation;
		result = lappend(result, awaiting);
	}
	return result;
}

/* Has its copy not begun since? */
static bool
still_awaits(const List *awaiting, const CatalogTable *from)
{
	const ListCell *lc;

	foreach(lc, awaiting)
	{
		const AwaitingTable *table = lfirst(lc);

		if (table->table_id == from->table_id)
			return table->generation == from->generation;
	}
	return false;
}

/* Take over what the catalog says of one table. */
static void
take_table(Apply *apply, const List *awaiting, const CatalogTable *from)
{
	const CdcPosition *durable = &catalog_position_log_current(apply->log)->position;
	char	   *schema = util_name_to_source(from->source_schema);
	char	   *name = util_name_to_source(from->source_table);
	char		key[NAME_KEY_MAX];
	ApplyTable *table = apply_table_find(apply, schema, name);
	MemoryContext old;

	if (table == NULL)
	{
		NameEntry  *entry;
		MemoryContext cxt;

		if (!make_key(key, schema, name))
			elog(ERROR, "name of source table is too long");
		cxt = AllocSetContextCreate(apply->cxt, "cdc apply table", ALLOCSET_SMALL_SIZES);
		old = MemoryContextSwitchTo(cxt);
		table = palloc0(sizeof(ApplyTable));
		table->cxt = cxt;
		table->schema = pstrdup(schema);
		table->name = pstrdup(name);
		table->shown_schema = pstrdup(from->source_schema);
		table->shown_name = pstrdup(from->source_table);
		table->match_cxt = AllocSetContextCreate(cxt, "cdc apply match", ALLOCSET_SMALL_SIZES);
		MemoryContextSwitchTo(apply->cxt);
		apply->tables = lappend(apply->tables, table);
		MemoryContextSwitchTo(old);
		entry = hash_search(apply->by_name, key, HASH_ENTER, NULL);
		entry->table = table;
	}

	if ((table->def == NULL || table->generation != from->generation) && from->definition != (Datum) 0)
		take_definition(table, from->definition);

	/* a stop that was found earlier in the stream than the recorded one stays, see record_stops */
	if (!(table->state == CATALOG_TABLE_STOPPED && from->state == CATALOG_TABLE_STOPPED &&
		  table->table_id == from->table_id))
		table->stop_position = from->stop_position;
	if (from->state == CATALOG_TABLE_STOPPED &&
		(table->state != CATALOG_TABLE_STOPPED || table->table_id != from->table_id))
		apply->stop_count++;
	if (table->table_id != from->table_id)
		table->last_letter = 0;
	if (table->table_id != from->table_id || from->state == CATALOG_TABLE_SNAPSHOT || from->state == CATALOG_TABLE_CATCHUP)
		table->letters_known = false;
	if (!table->letters_known)
		apply->letters_counted = -1;	/* chunks may have brought some */
	/* rows of a shared target are told by the name that is in the definition: under a new one none are written before the copy has begun */
	table->awaits_copy = still_awaits(awaiting, from) || (from->own_rows != (Datum) 0 && from->resync_wanted);
	table->table_id = from->table_id;
	table->generation = from->generation;
	table->state = from->state;
	table->target = from->target;
	apply_table_set_own(table, from->own_rows);
	table->join_position = from->join_position;
	table->join_is_past = cdc_position_is_known(durable) && !apply_table_joined_after(table, durable);
	table->begins_anew = from->state == CATALOG_TABLE_SNAPSHOT && from->resync_wanted && !from->chunks_allowed;
	table->seen = true;

	if (has_upper(table->schema) || has_upper(table->name))
		apply->fold_names = false;
}

void
apply_table_set_own(ApplyTable *table, Datum own_rows)
{
	MemoryContext old = MemoryContextSwitchTo(table->cxt);

	if (table->own_rows != (Datum) 0)
		pfree(DatumGetPointer(table->own_rows));
	table->own_rows = own_rows == (Datum) 0 ? (Datum) 0 : PointerGetDatum(PG_DETOAST_DATUM_COPY(own_rows));
	MemoryContextSwitchTo(old);
	table->is_merged = own_rows != (Datum) 0;
	table->is_part = heap_part_is(own_rows);
}

/* Forget tables that have left the pipeline. */
static void
forget_left(Apply *apply)
{
	ListCell   *lc;

	foreach(lc, apply->tables)
	{
		ApplyTable *table = lfirst(lc);
		char		key[NAME_KEY_MAX];

		if (table->seen)
			continue;
		(void) make_key(key, table->schema, table->name);
		(void) hash_search(apply->by_name, key, HASH_REMOVE, NULL);
		apply->tables = foreach_delete_current(apply->tables, lc);
		MemoryContextDelete(table->cxt);
	}
	apply->last_def = NULL;
	apply->last_table = NULL;
}

void
apply_tables_load(Apply *apply)
{
	MemoryContext caller = CurrentMemoryContext;
	List	   *awaiting;
	ListCell   *lc;

	Assert(!apply->open);
	heap_transaction_begin();
	PushActiveSnapshot(GetTransactionSnapshot());
	apply->fold_names = true;
	awaiting = tables_awaiting(apply);
	foreach(lc, apply->tables)
		((ApplyTable *) lfirst(lc))->seen = false;
	foreach(lc, catalog_table_list(apply->pipeline_id))
		take_table(apply, awaiting, lfirst(lc));
	forget_left(apply);
	apply_cascades_load(apply);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(caller);
	apply->reload_wanted = false;
}

List *
apply_table_find_named(Apply *apply, const char *schema, const char *name)
{
	int			(*compare) (const char *, const char *) = apply->fold_names ? pg_strcasecmp : strcmp;
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, apply->tables)
	{
		ApplyTable *table = lfirst(lc);

		if ((schema[0] == '\0' || compare(table->schema, schema) == 0) &&
			compare(table->name, name) == 0)
			result = lappend(result, table);
	}
	return result;
}

bool
apply_table_is_stopped(const ApplyTable *table, const CdcPosition *position)
{
	int			order;

	if (table->state != CATALOG_TABLE_STOPPED)
		return false;
	if (!cdc_position_is_known(&table->stop_position))
		return true;
	if (!cdc_position_is_known(position))
		return false;
	/* without an order the log was renamed since, so this comes later */
	return !cdc_position_compare(position, &table->stop_position, &order) || order >= 0;
}

bool
apply_table_joined_after(const ApplyTable *table, const CdcPosition *position)
{
	int			order;

	/* without an order the log was renamed since, so this comes later */
	return cdc_position_is_known(&table->join_position) && cdc_position_is_known(position) &&
		cdc_position_compare(position, &table->join_position, &order) && order < 0;
}

bool
apply_table_joins_later(const ApplyTable *table, const CdcPosition *position)
{
	if (table->begins_anew || table->awaits_copy)
		return true;
	/* one without a key joins at the mark of its copy, which is not known yet: all of this will be in it */
	if (table->def != NULL && table->def->nkey == 0 && apply_table_is_copying(table) &&
		!cdc_position_is_known(&table->join_position))
		return true;
	return !table->join_is_past && apply_table_joined_after(table, position);
}

bool
apply_want_table(void *arg, const char *schema, const char *name)
{
	Apply	   *apply = arg;
	ApplyTable *table = apply_table_find(apply, schema, name);
	const CdcPosition *at = apply->in_txn ? &apply->txn_start : &apply->streamed;

	/* when its changes will count its table may be in another state */
	if (apply->holding)
	{
		apply_hold_note_table(apply, schema, name);
		return table != NULL || apply_is_parent(apply, schema, name);
	}
	if (apply_is_parent(apply, schema, name))
		return true;
	return table != NULL && !apply_table_is_stopped(table, at) && !apply_table_joins_later(table, at);
}

bool
apply_table_matches(const ApplyTable *table, const CdcTableDef *event)
{
	return table->match_stamp != 0 && (uintptr_t) event->user == table->match_stamp;
}

bool
apply_table_try_match(ApplyTable *table, CdcTableDef *event, char **why, bool *lacks_metadata)
{
	static uintptr_t last_stamp = 0;
	MemoryContext old;

	*why = NULL;
	*lacks_metadata = false;
	if (apply_table_matches(table, event))
		return true;

	if (table->def == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("definition of source table \"%s.%s\" is missing", table->schema, table->name),
				 errdetail("The table's row in cdc_bridge.table_state has none."),
				 errhint(APPLY_HINT_ANEW)));

	table->match_stamp = 0;
	MemoryContextReset(table->match_cxt);
	table->def_learned |= schema_learn_collations(table->def, event);
	old = MemoryContextSwitchTo(table->match_cxt);
	table->match = schema_match_event(table->def, event, why, lacks_metadata);
	MemoryContextSwitchTo(old);

	if (*why != NULL)
		(*why)[0] = pg_toupper((unsigned char) (*why)[0]);
	if (table->match == NULL)
		return false;

	table->row_end = schema_event_row_end(table->def, event);

	/* the next description of the table has "user" unset, wherever it lies in memory */
	table->match_stamp = ++last_stamp;
	event->user = (void *) table->match_stamp;
	return true;
}

void
apply_table_match(ApplyTable *table, CdcTableDef *event)
{
	char	   *why;
	bool		lacks_metadata;

	if (apply_table_try_match(table, event, &why, &lacks_metadata))
		return;
	if (lacks_metadata)
		ereport(ERROR,
				(errcode(CDC_ERRCODE_UNSUPPORTED_EVENT),
				 errmsg("row event of source table \"%s.%s\" lacks metadata", table->schema, table->name),
				 errdetail("%s.", why ? why : "Names of columns are missing"),
				 errhint("Run SET GLOBAL binlog_row_metadata = FULL on the source. " APPLY_HINT_ANEW)));
	ereport(ERROR,
			(errcode(CDC_ERRCODE_TABLE_CHANGED),
			 errmsg("source table \"%s.%s\" changed its shape", table->schema, table->name),
			 errdetail("%s.", why ? why : "Its definition differs"),
			 errhint(APPLY_HINT_ANEW)));
}

void
apply_table_lock_target(const ApplyTable *table)
{
	if (table->is_part)
		catalog_lock_target(table->target);
}

void
apply_table_check_mark(Apply *apply, ApplyTable *table)
{
	CatalogTable *now;

	apply_begin(apply);
	if (table->mark_checked == apply->open_no)
		return;
	table->mark_checked = apply->open_no;
	catalog_lock_table(apply->pipeline_id, table->table_id, RowExclusiveLock);
	PushActiveSnapshot(GetTransactionSnapshot());
	now = catalog_table_by_id(apply->pipeline_id, table->table_id);
	PopActiveSnapshot();
	if (now == NULL)
		return;					/* it leaves; the next look at the list tells */
	table->generation = now->generation;
	table->join_position = now->join_position;
	table->join_is_past = false;
	if (now->state != table->state)
	{
		table->state = now->state;
		table->stop_position = now->stop_position;
		apply->reload_wanted = true;
	}
}

void
apply_table_open(Apply *apply, ApplyTable *table)
{
	MemoryContext old;
	bool		written;

	if (table->row != NULL)
		return;

	apply_table_lock_target(table);
	if (table->state == CATALOG_TABLE_SNAPSHOT || table->state == CATALOG_TABLE_CATCHUP)
	{
		/* every look-up from here on uses a snapshot taken after the lock */
		catalog_lock_table(apply->pipeline_id, table->table_id, RowExclusiveLock);
		table->any_deleted = catalog_deleted_any(apply->pipeline_id, table->table_id);
		catalog_deleted_notes(apply->pipeline_id, table->table_id, &written, &table->keeps_rows);
		table->any_reread = table->any_deleted && catalog_reread_any(apply->pipeline_id, table->table_id);
		/* from now on whoever writes a chunk looks each key up */
		catalog_deleted_note_stream(apply->pipeline_id, table->table_id);
	}

	PushActiveSnapshot(GetTransactionSnapshot());
	apply_letters_look(apply, table);
	table->row = heap_row_open(table->target, table->def, &apply->types);
	heap_part_check(table->row, table->own_rows);
	if (table->row->target->nkey == 0 ||
		(!apply->careful && apply->collapse && heap_row_may_collapse(table->row) && table->row->target->tier != HEAP_TIER_EXECUTOR))
		table->batch = apply_batch_create(table->row->target);
	PopActiveSnapshot();

	old = MemoryContextSwitchTo(apply->cxt);
	apply->open_tables = lappend(apply->open_tables, table);
	MemoryContextSwitchTo(old);
}

/* The table has something to tell after the next flush. */
static void
mark_dirty(Apply *apply, ApplyTable *table)
{
	MemoryContext old;

	if (table->in_dirty)
		return;
	old = MemoryContextSwitchTo(apply->cxt);
	apply->dirty = lappend(apply->dirty, table);
	MemoryContextSwitchTo(old);
	table->in_dirty = true;
	table->delta.tier_is_known = true;
	table->delta.tier = table->row->target->tier;
	table->delta.is_collapsed = apply->collapse && heap_row_may_collapse(table->row) && table->delta.tier != HEAP_TIER_EXECUTOR;
}

void
apply_table_count(Apply *apply, ApplyTable *table, CdcChangeOp op)
{
	switch (op)
	{
		case CDC_INSERT:
			table->delta.inserts++;
			break;
		case CDC_UPDATE:
			table->delta.updates++;
			break;
		case CDC_DELETE:
			table->delta.deletes++;
			break;
	}
	table->delta.values_replaced += heap_row_take_replaced(table->row);
	mark_dirty(apply, table);
}

void
apply_table_count_dead_letter(Apply *apply, ApplyTable *table)
{
	table->delta.dead_letters++;
	mark_dirty(apply, table);
}

void
apply_count_tables(const Apply *apply, int *total, int *pending, int *stopped)
{
	ListCell   *lc;

	*total = *pending = *stopped = 0;
	foreach(lc, apply->tables)
	{
		const ApplyTable *table = lfirst(lc);

		(*total)++;
		if (table->state == CATALOG_TABLE_STOPPED)
			(*stopped)++;
		else if (table->state != CATALOG_TABLE_STREAMING)
			(*pending)++;
	}
}

uint64
apply_stop_count(const Apply *apply)
{
	return apply->stop_count;
}
