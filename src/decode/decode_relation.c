/*-------------------------------------------------------------------------
 *
 * decode_relation.c
 *	  Cache of relations as they are shipped.
 *
 * NOTES
 *	  An entry is built when a change of the relation is met, from the catalogs
 *	  as they were at that change, and again after anything changed that it was
 *	  built from: the relation itself (its own invalidation), or publications,
 *	  schemas' names, roles and types (which raise the generation of the whole cache).
 *	  Invalidations come at the right places of the log by themselves.
 *
 *	  Which row a change means is told by the columns of the replica identity.
 *	  The key is these in the order of their index; under REPLICA IDENTITY FULL
 *	  it is the primary key, if there is one. Without an identity there is no key.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "decode/decode_private.h"
#include "util/util_pattern.h"

/* The schema of our own tables, which are nobody's business. */
#define OWN_SCHEMA "cdc_bridge"

/* Callbacks cannot be taken back: they look here for the cache there is now, if any. */
static DecodeState *current;
static bool callbacks_registered;

static uint64 last_version;

/* When so many relations are known for the first time, those that changed since, or are gone, are forgotten. */
#define PURGE_AT 1024

static void
relation_changed(Datum arg, Oid relid)
{
	if (current == NULL)
		return;
	if (OidIsValid(relid))
	{
		DecodeRelation *entry = hash_search(current->relations, &relid, HASH_FIND, NULL);

		if (entry != NULL)
			entry->valid = false;
	}
	else
		current->generation++;
}

static void
catalog_changed(Datum arg, int cacheid, uint32 hash)
{
	if (current == NULL)
		return;
	if (cacheid == TYPEOID && hash != 0)
	{
		bool		is_used = false;

		for (int i = 0; i < current->ntype_hashes; i++)
			is_used |= current->type_hashes[i] == hash;
		if (!is_used)
			return;
	}
	/* a compiled expression has functions as they were */
	if (cacheid == PROCOID && current->options.transforms == NIL)
		return;
	if (cacheid == PUBLICATIONOID)
		current->publications_valid = false;
	current->generation++;
}

static void
forget_state(void *arg)
{
	if (current == arg)
		current = NULL;
}

void
decode_relations_init(DecodeState *state)
{
	HASHCTL		ctl = {
		.keysize = sizeof(Oid),
		.entrysize = sizeof(DecodeRelation),
		.hcxt = state->context
	};

	state->relations = hash_create("cdc decoded relations", 128, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	state->publication_context = AllocSetContextCreate(state->context, "cdc publications", ALLOCSET_SMALL_SIZES);
	state->generation = 1;
	state->purge_at = PURGE_AT;
	state->reset_callback.func = forget_state;
	state->reset_callback.arg = state;
	MemoryContextRegisterResetCallback(state->context, &state->reset_callback);
	current = state;
	if (callbacks_registered)
		return;
	CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
	CacheRegisterSyscacheCallback(PUBLICATIONOID, catalog_changed, (Datum) 0);
	CacheRegisterSyscacheCallback(PUBLICATIONRELMAP, catalog_changed, (Datum) 0);
	CacheRegisterSyscacheCallback(PUBLICATIONNAMESPACEMAP, catalog_changed, (Datum) 0);
	CacheRegisterSyscacheCallback(NAMESPACEOID, catalog_changed, (Datum) 0);
	CacheRegisterSyscacheCallback(TYPEOID, catalog_changed, (Datum) 0);
	CacheRegisterSyscacheCallback(AUTHOID, catalog_changed, (Datum) 0);
	CacheRegisterSyscacheCallback(PROCOID, catalog_changed, (Datum) 0);
	CacheRegisterSyscacheCallback(AUTHMEMROLEMEM, catalog_changed, (Datum) 0);
	callbacks_registered = true;
}

/* The topmost table above a partition, or the relation itself. */
static Oid
root_of(Relation relation)
{
	return relation->rd_rel->relispartition ? llast_oid(get_partition_ancestors(RelationGetRelid(relation)))
		: RelationGetRelid(relation);
}

/* Which actions of the relation are shipped, under whose name, which columns and rows. In the current memory context. */
static void
look_up(DecodeState *state, Relation relation, DecodePublished *published)
{
	const DecodeOptions *options = &state->options;
	char		kind = relation->rd_rel->relkind;

	memset(published, 0, sizeof(*published));
	published->publish_as = RelationGetRelid(relation);
	if (kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE)
		return;
	if (options->publications != NIL)
		decode_publications_look_up(state, relation, published);
	else if (kind != RELKIND_PARTITIONED_TABLE || options->via_root)
	{
		published->actions = DECODE_ALL;
		published->generated_columns = options->generated_columns;
		if (options->via_root)
			published->publish_as = root_of(relation);
	}
	published->actions &= options->actions;
}

bool
decode_name_is_wanted(const DecodeState *state, const char *schema, const char *name)
{
	return strcmp(schema, OWN_SCHEMA) != 0 &&
		(state->options.tables == NIL || util_patterns_match(state->options.tables, schema, name, NULL));
}

/* Columns of an index in its order, as a list of attribute numbers; NIL when it cannot be had. */
static List *
index_columns(Oid indexid)
{
	List	   *columns = NIL;
	Relation	index = OidIsValid(indexid) ? RelationIdGetRelation(indexid) : NULL;

	if (!RelationIsValid(index))
		return NIL;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		columns = lappend_int(columns, index->rd_index->indkey.values[i]);
	RelationClose(index);
	return columns;
}

/* What old rows have, and the key. Returns the key's attribute numbers. */
static List *
find_identity(DecodeRelation *entry, Relation relation)
{
	char		identity = relation->rd_rel->relreplident;
	List	   *columns;
	ListCell   *lc;

	entry->natts = RelationGetNumberOfAttributes(relation);
	entry->in_identity = palloc0(sizeof(bool) * Max(entry->natts, 1));
	entry->cell_in_identity = entry->in_identity;
	entry->table->identity = identity;
	entry->has_identity = true;
	if (identity == REPLICA_IDENTITY_FULL)
	{
		memset(entry->in_identity, true, sizeof(bool) * entry->natts);
		return index_columns(cdc_primary_key_index(relation));
	}
	columns = identity == REPLICA_IDENTITY_NOTHING ? NIL : index_columns(RelationGetReplicaIndex(relation));
	if (columns == NIL)
	{
		entry->table->identity = REPLICA_IDENTITY_NOTHING;
		entry->has_identity = false;
	}
	foreach(lc, columns)
		entry->in_identity[lfirst_int(lc) - 1] = true;
	return columns;
}

/* The relation's own column of that name, NULL when it has none. */
static Form_pg_attribute
own_column(Relation relation, const char *name)
{
	TupleDesc	desc = RelationGetDescr(relation);

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped && strcmp(NameStr(att->attname), name) == 0)
			return att;
	}
	return NULL;
}

/* Is it in the log, and shipped? A virtual generated column is in no row. */
static bool
is_shipped(Form_pg_attribute att, const DecodePublished *published)
{
	if (att->attisdropped || (att->attgenerated != '\0' && att->attgenerated != ATTRIBUTE_GENERATED_STORED))
		return false;
	if (published->columns != NULL)
		return bms_is_member(att->attnum, published->columns);
	return att->attgenerated == '\0' || published->generated_columns;
}

/* The columns in the order of the relation under whose name they are shipped. */
static void
add_columns(DecodeState *state, DecodeRelation *entry, Relation publish_as, Relation relation, const DecodePublished *published)
{
	TupleDesc	desc = RelationGetDescr(publish_as);
	CdcOutColumn *out = palloc0(sizeof(CdcOutColumn) * Max(desc->natts, 1));

	entry->columns = palloc0(sizeof(DecodeColumn) * Max(desc->natts, 1));
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		Form_pg_attribute own = att;

		if (!is_shipped(att, published))
			continue;
		if (publish_as != relation)
			own = own_column(relation, NameStr(att->attname));
		if (own == NULL)
			continue;
		entry->shipped = bms_add_member(entry->shipped, att->attnum);
		decode_column_init(state, entry->context, own, &entry->columns[entry->table->ncolumns], &out[entry->table->ncolumns]);
		entry->table->ncolumns++;
	}
	entry->table->columns = out;
}

/* A key of which not all columns are shipped is none. */
static void
set_key(DecodeRelation *entry, List *key)
{
	uint32	   *indexes = palloc(sizeof(uint32) * Max(list_length(key), 1));
	uint32		n = 0;
	ListCell   *lc;

	foreach(lc, key)
	{
		for (uint32 i = 0; i < entry->table->ncolumns; i++)
		{
			if (entry->columns[i].attno == lfirst_int(lc) - 1)
				indexes[n++] = i;
		}
	}
	if (n != (uint32) list_length(key))
		return;
	for (uint32 i = 0; i < n; i++)
		unconstify(CdcOutColumn *, entry->table->columns)[indexes[i]].key_part = (uint16_t) (i + 1);
	entry->table->key = indexes;
	entry->table->nkey = n;
}

static bool
is_wanted(const DecodeState *state, Relation relation)
{
	return decode_name_is_wanted(state, get_namespace_name(RelationGetNamespace(relation)), RelationGetRelationName(relation));
}

bool
decode_relation_is_shipped(const DecodeState *decoding, Oid relid)
{
	DecodeState state = {.options = decoding->options,.context = CurrentMemoryContext};
	Relation	relation = RelationIdGetRelation(relid);
	DecodePublished published;
	bool		result = false;

	if (!RelationIsValid(relation))
		return false;
	if (RelationIsPermanent(relation) && is_wanted(&state, relation))
	{
		state.publication_context = AllocSetContextCreate(CurrentMemoryContext, "cdc publications", ALLOCSET_SMALL_SIZES);
		look_up(&state, relation, &published);
		result = published.actions != 0 && published.publish_as == relid;
	}
	RelationClose(relation);
	return result;
}

static void
build(DecodeState *state, DecodeRelation *entry, Relation relation)
{
	MemoryContext old_context = MemoryContextSwitchTo(entry->context);
	DecodePublished published;
	Relation	publish_as = relation;

	look_up(state, relation, &published);
	if (published.actions != 0)
	{
		if (published.publish_as != RelationGetRelid(relation))
			publish_as = RelationIdGetRelation(published.publish_as);
		if (!RelationIsValid(publish_as))
			elog(ERROR, "could not open relation with OID %u", published.publish_as);
		entry->table = palloc0(sizeof(CdcOutTable));
		entry->table->relid = published.publish_as;
		entry->table->version = ++last_version;
		if (is_wanted(state, publish_as))
		{
			List	   *key = find_identity(entry, relation);

			decode_route_name(state, get_namespace_name(RelationGetNamespace(publish_as)), RelationGetRelationName(publish_as),
							  &entry->table->schema, &entry->table->name);
			decode_route_claim(state, published.publish_as, entry->table->schema, entry->table->name);
			decode_stops_check_name(state, RelationGetRelid(relation), entry->table->schema, entry->table->name);
			add_columns(state, entry, publish_as, relation, &published);
			decode_filter_init(entry, publish_as, relation, &published);
			if (!decode_transform_init(state, entry, publish_as, relation, key, published.actions))
				set_key(entry, key);
			if (state->meet != NULL)
				state->meet(state->emit_arg, publish_as, entry->shipped);
			entry->actions = published.actions;
			entry->publish_as = published.publish_as;
		}
		if (publish_as != relation)
			RelationClose(publish_as);
	}
	MemoryContextSwitchTo(old_context);
}

uint64
decode_relation_new_version(void)
{
	return ++last_version;
}

DecodeRelation *
decode_relation_look(const DecodeState *decoding, Relation relation)
{
	DecodeState state = {.options = decoding->options,.context = CurrentMemoryContext,.meet = decoding->meet,.emit_arg = decoding->emit_arg,
	.claims = decoding->claims};
	DecodeRelation *entry = palloc0(sizeof(DecodeRelation));

	state.publication_context = AllocSetContextCreate(CurrentMemoryContext, "cdc publications", ALLOCSET_SMALL_SIZES);
	entry->relid = RelationGetRelid(relation);
	entry->context = CurrentMemoryContext;
	build(&state, entry, relation);
	return entry;
}

/* Relations come and go: what is not valid any more is built anew when it is met again, if ever. */
static void
purge(DecodeState *state)
{
	HASH_SEQ_STATUS scan;
	DecodeRelation *entry;

	hash_seq_init(&scan, state->relations);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		if (entry->valid && entry->generation == state->generation)
			continue;
		if (entry->context != NULL)
			MemoryContextDelete(entry->context);
		(void) hash_search(state->relations, &entry->relid, HASH_REMOVE, NULL);
	}
	state->purge_at = Max(PURGE_AT, 2 * hash_get_num_entries(state->relations));
}

/* The relation as it is shipped now. It stays until the next call. */
DecodeRelation *
decode_relation_get(DecodeState *state, Relation relation)
{
	Oid			relid = RelationGetRelid(relation);
	bool		found;
	DecodeRelation *entry;

	if (hash_get_num_entries(state->relations) >= state->purge_at)
		purge(state);
	entry = hash_search(state->relations, &relid, HASH_ENTER, &found);
	if (!found)
	{
		memset(entry, 0, sizeof(*entry));
		entry->relid = relid;
		entry->count_index = -1;
	}
	if (entry->valid && entry->generation == state->generation)
		return entry;

	if (entry->context != NULL)
		MemoryContextDelete(entry->context);
	*entry = (DecodeRelation) {.relid = relid,.warned = entry->warned,.count_index = entry->count_index};
	entry->context = AllocSetContextCreate(state->context, "cdc decoded relation", ALLOCSET_SMALL_SIZES);

	/* before it is built: what comes in while catalogs are read makes it invalid again */
	entry->valid = true;
	entry->generation = state->generation;
	PG_TRY();
	{
		build(state, entry, relation);
	}
	PG_CATCH();
	{
		entry->valid = false;
		PG_RE_THROW();
	}
	PG_END_TRY();
	return entry;
}
