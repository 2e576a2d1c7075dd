/*-------------------------------------------------------------------------
 *
 * decode_route.c
 *	  Option routes: the name under which a table is shipped.
 *
 * NOTES
 *	  Two tables under one name would be one table for the receiver, in which a
 *	  row of the one overwrites that of the other with the same key. So a table
 *	  whose name another one has is not shipped: decode_route_claim throws. Whose
 *	  a name may be is kept by what all tables were called when the decoding
 *	  began, and those that were met since were called then. That is only a hint:
 *	  whether the other one is there, and is shipped, is looked up at the place of
 *	  the log that is decoded.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "decode/decode_private.h"

typedef struct ClaimName
{
	NameData	schema;
	NameData	name;
} ClaimName;

typedef struct Claim
{
	ClaimName	name;			/* hash key */
	List	   *relids;			/* that may be shipped under it */
} Claim;

bool
decode_route_find(const DecodeState *state, const char *schema, const char *name, const char **out_schema, const char **out_name)
{
	if (state->options.routes != NULL)
		return transform_route_target(state->options.routes, schema, name, unconstify(char **, out_schema), unconstify(char **, out_name), NULL);
	*out_schema = pstrdup(schema);
	*out_name = pstrdup(name);
	return true;
}

void
decode_route_name(const DecodeState *state, const char *schema, const char *name, const char **out_schema, const char **out_name)
{
	if (!decode_route_find(state, schema, name, out_schema, out_name))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("table %s cannot be shipped as %s", quote_qualified_identifier(schema, name),
						quote_qualified_identifier(*out_schema, *out_name)),
				 errdetail("The name is empty, or the schema is one of the system's."),
				 errhint("Give it another name with the option \"routes\".")));
}

static Claim *
claim_of(HTAB *claims, const char *schema, const char *name, HASHACTION action)
{
	ClaimName	key;
	bool		found;
	Claim	   *claim;

	memset(&key, 0, sizeof(key));
	namestrcpy(&key.schema, schema);
	namestrcpy(&key.name, name);
	claim = hash_search(claims, &key, action, &found);
	if (action == HASH_ENTER && !found)
		claim->relids = NIL;
	return claim;
}

static void
add(HTAB *claims, Oid relid, const char *schema, const char *name)
{
	MemoryContext old_context = MemoryContextSwitchTo(GetMemoryChunkContext(claims));
	Claim	   *claim = claim_of(claims, schema, name, HASH_ENTER);

	claim->relids = list_append_unique_oid(claim->relids, relid);
	MemoryContextSwitchTo(old_context);
}

void
decode_route_init(DecodeState *state)
{
	HASHCTL		ctl = {.keysize = sizeof(ClaimName),.entrysize = sizeof(Claim),.hcxt = state->context};
	Relation	classes;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (state->options.routes == NULL)
		return;
	state->claims = hash_create("cdc shipped names", 128, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	classes = table_open(RelationRelationId, AccessShareLock);
	scan = systable_beginscan(classes, InvalidOid, false, NULL, 0, NULL);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);
		const char *schema;
		const char *name;

		if ((form->relkind != RELKIND_RELATION && form->relkind != RELKIND_PARTITIONED_TABLE) ||
			form->relpersistence != RELPERSISTENCE_PERMANENT)
			continue;
		schema = get_namespace_name(form->relnamespace);
		if (schema != NULL && decode_name_is_wanted(state, schema, NameStr(form->relname)) &&
			decode_route_find(state, schema, NameStr(form->relname), &schema, &name))
			add(state->claims, form->oid, schema, name);
	}
	systable_endscan(scan);
	table_close(classes, AccessShareLock);
}

static void
check_other(const DecodeState *state, Oid relid, Oid other, const char *schema, const char *name)
{
	char	   *own = get_rel_name(other);
	char	   *own_schema = own == NULL ? NULL : get_namespace_name(get_rel_namespace(other));
	const char *other_schema;
	const char *other_name;

	if (own_schema == NULL || !decode_relation_is_shipped(state, other) ||
		!decode_route_find(state, own_schema, own, &other_schema, &other_name) || strcmp(other_schema, schema) != 0 || strcmp(other_name, name) != 0)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_DUPLICATE_TABLE),
			 errmsg("tables %s and %s would both be shipped as %s",
					quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)), get_rel_name(relid)),
					quote_qualified_identifier(own_schema, own), quote_qualified_identifier(schema, name)),
			 errhint("Leave one of them out with cdc_remove_table(), or give it another name with the option \"routes\".")));
}

void
decode_route_claim(const DecodeState *state, Oid relid, const char *schema, const char *name)
{
	ListCell   *lc;

	if (state->claims == NULL)
		return;
	add(state->claims, relid, schema, name);
	foreach(lc, claim_of(state->claims, schema, name, HASH_FIND)->relids)
	{
		if (lfirst_oid(lc) != relid)
			check_other(state, relid, lfirst_oid(lc), schema, name);
	}
}

void
decode_tables_check(List *options, DecodeMeet meet, void *meet_arg, const List *relids)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "cdc checked tables", ALLOCSET_DEFAULT_SIZES);
	MemoryContext table_context = AllocSetContextCreate(context, "cdc checked table", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	DecodeState state = {.context = context,.meet = meet,.emit_arg = meet_arg};
	const ListCell *lc;

	decode_options_read(&state.options, options);
	decode_route_init(&state);
	MemoryContextSwitchTo(table_context);
	foreach(lc, relids)
	{
		Relation	relation = table_open(lfirst_oid(lc), AccessShareLock);

		(void) decode_relation_look(&state, relation);
		table_close(relation, AccessShareLock);
		MemoryContextReset(table_context);
	}
	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(context);
}
