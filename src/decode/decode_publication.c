/*-------------------------------------------------------------------------
 *
 * decode_publication.c
 *	  What publications publish of a relation, as they were when it was changed.
 *
 * NOTES
 *	  The rules are those of CREATE PUBLICATION. A partition is published with
 *	  its table or any partitioned table above it; under its own name, or, when
 *	  the publication says publish_via_partition_root, under that of the topmost
 *	  table above it that the publication names. With several publications the
 *	  topmost name counts, and columns and rows are those of the publications that
 *	  use it. A publication of all tables or of the table's schema has all its
 *	  rows and columns.
 *
 *	  Decoding sees the catalogs as they were. A publication that was made later
 *	  did not publish yet; a name that no publication has even now is an error at
 *	  the start.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_publication.h"
#include "catalog/pg_publication_rel.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "decode/decode_private.h"

void
decode_publications_check(List *names)
{
	ListCell   *lc;

	foreach(lc, names)
	{
		const char *name = lfirst(lc);

		if (!OidIsValid(GetSysCacheOid1(PUBLICATIONNAME, Anum_pg_publication_oid, CStringGetDatum(name))))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("publication \"%s\" does not exist", name),
					 errhint("Use CREATE PUBLICATION %s FOR ALL TABLES, or another name in \"publication_names\".", quote_identifier(name))));
	}
}

static void
load_publications(DecodeState *state)
{
	MemoryContext old_context;
	ListCell   *lc;

	if (state->publications_valid)
		return;
	MemoryContextReset(state->publication_context);
	state->publications = NIL;
	old_context = MemoryContextSwitchTo(state->publication_context);
	foreach(lc, state->options.publications)
	{
		Publication *publication = GetPublicationByName(lfirst(lc), true);

		if (publication != NULL)
			state->publications = lappend(state->publications, publication);
	}
	MemoryContextSwitchTo(old_context);
	state->publications_valid = true;
}

/*
 * Under which relation's name does that publication ship the relation? Invalid when it does not. *level is how far
 * above the relation that one stands.
 */
static Oid
published_as(const Publication *publication, Relation relation, int *level)
{
	Oid			relid = RelationGetRelid(relation);
	bool		is_partition = relation->rd_rel->relispartition;
	List	   *ancestors = is_partition ? get_partition_ancestors(relid) : NIL;
	Oid			ancestor = InvalidOid;
	int			ancestor_level = 0;

	*level = 0;
	if (publication->alltables)
	{
		if (!publication->pubviaroot || ancestors == NIL)
			return relid;
		*level = list_length(ancestors);
		return llast_oid(ancestors);
	}
	if (is_partition)
		ancestor = GetTopMostAncestorInPublication(publication->oid, ancestors, &ancestor_level);
	if (OidIsValid(ancestor) && publication->pubviaroot)
	{
		*level = ancestor_level;
		return ancestor;
	}
	if (OidIsValid(ancestor) || list_member_oid(GetRelationPublications(relid), publication->oid) ||
		list_member_oid(GetSchemaPublications(RelationGetNamespace(relation)), publication->oid))
		return relid;
	return InvalidOid;
}

bool
decode_publications_have_schema(DecodeState *state, const char *schema)
{
	Oid			nsp = get_namespace_oid(schema, true);
	ListCell   *lc;

	load_publications(state);
	foreach(lc, state->publications)
	{
		const Publication *publication = lfirst(lc);

		if (publication->alltables || (OidIsValid(nsp) && list_member_oid(GetSchemaPublications(nsp), publication->oid)))
			return true;
	}
	return false;
}

static int
publication_actions(const Publication *publication)
{
	return (publication->pubactions.pubinsert ? DECODE_INSERT : 0) | (publication->pubactions.pubupdate ? DECODE_UPDATE : 0) |
		(publication->pubactions.pubdelete ? DECODE_DELETE : 0) | (publication->pubactions.pubtruncate ? DECODE_TRUNCATE : 0);
}

/* The publication's own columns and filter for a relation: NULL when it has all of them. */
static void
table_clauses(const Publication *publication, Oid relid, Bitmapset **columns, Node **filter)
{
	HeapTuple	tuple;
	Datum		value;
	bool		is_null;

	*columns = NULL;
	*filter = NULL;
	if (publication->alltables ||
		SearchSysCacheExists2(PUBLICATIONNAMESPACEMAP, ObjectIdGetDatum(get_rel_namespace(relid)), ObjectIdGetDatum(publication->oid)))
		return;
	tuple = SearchSysCache2(PUBLICATIONRELMAP, ObjectIdGetDatum(relid), ObjectIdGetDatum(publication->oid));
	if (!HeapTupleIsValid(tuple))
		return;
	value = SysCacheGetAttr(PUBLICATIONRELMAP, tuple, Anum_pg_publication_rel_prattrs, &is_null);
	if (!is_null)
		*columns = pub_collist_to_bitmapset(NULL, value, CurrentMemoryContext);
	value = SysCacheGetAttr(PUBLICATIONRELMAP, tuple, Anum_pg_publication_rel_prqual, &is_null);
	if (!is_null)
		*filter = stringToNode(TextDatumGetCString(value));
	ReleaseSysCache(tuple);
}

static _Noreturn void
throw_different_columns(Oid relid)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot use different column lists for table \"%s.%s\" in different publications",
					get_namespace_name(get_rel_namespace(relid)), get_rel_name(relid)),
			 errhint("Give the table the same columns in each of the publications, or read them with one slot each.")));
}

/* Add what one publication says to the columns and filters of all. */
static void
add_clauses(const Publication *publication, Relation publish_as, bool is_first, bool *no_filter, DecodePublished *published)
{
	Oid			relid = RelationGetRelid(publish_as);
	int			actions = publication_actions(publication);
	bool		generated = cdc_publication_has_generated_columns(publication);
	Bitmapset  *columns;
	Node	   *filter;

	table_clauses(publication, relid, &columns, &filter);
	if (is_first)
	{
		published->columns = columns;
		published->generated_columns = generated;
	}
	else if (!bms_equal(published->columns, columns) || (columns == NULL && published->generated_columns != generated))
		throw_different_columns(relid);
	if (filter != NULL)
		filter = cdc_expand_generated_columns(filter, publish_as);
	for (int i = 0; i < 3; i++)
	{
		if ((actions & 1 << i) == 0)
			continue;
		if (filter == NULL)
			no_filter[i] = true;
		else
			published->filters[i] = lappend(published->filters[i], copyObject(filter));
	}
}

/* In the current memory context. */
void
decode_publications_look_up(DecodeState *state, Relation relation, DecodePublished *published)
{
	bool		is_partitioned = relation->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
	List	   *sharing = NIL;	/* those that use the topmost name */
	int			top_level = -1;
	bool		no_filter[3] = {false, false, false};
	Relation	publish_as;
	ListCell   *lc;

	load_publications(state);
	published->publish_as = RelationGetRelid(relation);
	foreach(lc, state->publications)
	{
		Publication *publication = lfirst(lc);
		int			level;
		Oid			as = published_as(publication, relation, &level);

		/* the log of a partitioned table has its TRUNCATE alone, which means something only under its name */
		if (!OidIsValid(as) || (is_partitioned && !publication->pubviaroot))
			continue;
		published->actions |= publication_actions(publication);
		if (level < top_level)
			continue;
		if (level > top_level)
			sharing = NIL;
		top_level = level;
		published->publish_as = as;
		sharing = lappend(sharing, publication);
	}
	if (published->actions == 0)
		return;

	publish_as = RelationIdGetRelation(published->publish_as);
	if (!RelationIsValid(publish_as))
		elog(ERROR, "could not open relation with OID %u", published->publish_as);
	foreach(lc, sharing)
		add_clauses(lfirst(lc), publish_as, lc == list_head(sharing), no_filter, published);
	RelationClose(publish_as);
	for (int i = 0; i < 3; i++)
	{
		if (no_filter[i])
			published->filters[i] = NIL;
	}
}
