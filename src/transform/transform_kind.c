/*-------------------------------------------------------------------------
 *
 * transform_kind.c
 *	  Kinds of targets other than mirrors: the columns that they add to a
 *	  projection.
 *
 * NOTES
 *	  A column that a kind adds is one more column of the projection, a constant
 *	  or metadata: so whoever makes a target, checks one that is there, or writes a
 *	  row knows it without being told. What becomes of a row that changes is the
 *	  writer's business (apply_soft.c, apply_append.c), who also puts values into
 *	  constants: so the target has to have just their types.
 *
 *	  A target that has a row for each change needs a copy that does not overlap
 *	  with the stream by one change, which is what a table without a key gets
 *	  (snapshot_keyless.c). So its definition says that there is no key, from when
 *	  the source told it on; which columns were in it stays known.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/typcache.h"

#include "transform/transform_kind.h"
#include "util/util_name.h"

const char *
transform_kind_name(TransformKind kind)
{
	switch (kind)
	{
		case TRANSFORM_MIRROR:
			return "mirror";
		case TRANSFORM_SOFT_DELETE:
			return "soft_delete";
		case TRANSFORM_APPEND:
			return "append";
		case TRANSFORM_LAST_WRITER:
			return "last_writer";
		case TRANSFORM_PARTIAL:
			return "partial";
	}
	return "?";
}

static _Noreturn void
throw_kind(const TransformTable *table, char *detail, const char *hint)
{
	const TransformRule *rule = table->transform->rule;

	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("source table \"%s.%s\" cannot have a target of kind \"%s\", which member %d of option \"%s\" asks for",
					util_name_of_source(table->def->schema), util_name_of_source(table->def->name), transform_kind_name(rule->kind), rule->number,
					TRANSFORM_OPTION),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
}

/* A column behind the others, of which the array has room; its number. */
static int
add_column(TransformTable *table, char *name, Node *expr, Oid typid)
{
	Transform  *transform = table->transform;
	TransformColumn *column = &transform->columns[transform->ncolumns];

	for (int i = 0; i < transform->ncolumns; i++)
	{
		if (strcmp(transform->columns[i].name, name) == 0)
			throw_kind(table, psprintf("Its rows have a column \"%s\", and a target of that kind adds one of that name.", name),
					   transform->rule->kind == TRANSFORM_SOFT_DELETE
					   ? "Give one of them another name, with AS in the projection, or with \"deleted_column\" and \"deleted_at_column\"."
					   : "Give the column another name with AS in the projection, or leave it out.");
	}
	memset(column, 0, sizeof(TransformColumn));
	column->name = name;
	column->expr = expr;
	column->typid = typid;
	column->typmod = -1;
	return transform->ncolumns++;
}

static void
add_metadata(TransformTable *table, TransformMeta meta)
{
	Transform  *transform = table->transform;
	AttrNumber	attnum = transform_meta_attnum(transform, meta);
	Form_pg_attribute att = TupleDescAttr(transform->desc, attnum - 1);
	Var		   *var = makeVar(1, attnum, att->atttypid, att->atttypmod, att->attcollation, 0);
	int			column = add_column(table, pstrdup(transform_meta_name(meta)), (Node *) var, att->atttypid);

	transform->columns[column].collation = att->attcollation;
	transform->columns[column].from = attnum;
	transform->columns[column].uses = bms_make_singleton(attnum);
}

static void
add_soft_delete(TransformTable *table)
{
	const TransformRule *rule = table->transform->rule;

	if (table->nkey == 0)
		throw_kind(table, pstrdup("The source's table has no key, so nothing says which row is the one that was deleted."),
				   "Give the source's table a primary key, or leave it out of the member.");
	table->deleted = add_column(table, rule->deleted_column, makeBoolConst(false, false), BOOLOID);
	table->deleted_at = add_column(table, rule->deleted_at_column, (Node *) makeNullConst(TIMESTAMPTZOID, -1, InvalidOid),
								   TIMESTAMPTZOID);
}

static void
add_append(TransformTable *table)
{
	/* it was copied as a mirror: only a copy anew reads it as one without a key */
	if (table->def->nkey > 0)
		throw_kind(table, pstrdup("The table was copied for a target of another kind."),
				   "Empty the target with TRUNCATE, or drop it, then use cdc_resync_table().");
	add_metadata(table, TRANSFORM_OPERATION);
	add_metadata(table, TRANSFORM_COMMIT_TIME);
	add_metadata(table, TRANSFORM_POSITION);
	table->sequence = add_column(table, pstrdup("cdc_sequence"), (Node *) makeNullConst(INT8OID, -1, InvalidOid), INT8OID);
}

/* It adds no column, but needs one that says what comes before what. */
static void
find_version(TransformTable *table)
{
	Transform  *transform = table->transform;
	const char *name = transform->rule->version_column;

	if (table->nkey == 0)
		throw_kind(table, pstrdup("The source's table has no key, so nothing says which two rows are versions of one."),
				   "Give the source's table a primary key, or leave it out of the member.");
	for (int i = 0; i < transform->ncolumns; i++)
	{
		if (strcmp(transform->columns[i].name, name) == 0)
			table->version = i;
	}
	if (table->version < 0)
		throw_kind(table, psprintf("Its \"version_column\" is \"%s\", and the projection has no column of that name.", name),
				   "Name a column that the projection makes.");
	if (!OidIsValid(lookup_type_cache(transform->columns[table->version].typid, TYPECACHE_CMP_PROC)->cmp_proc))
		throw_kind(table, psprintf("Its \"version_column\" is \"%s\", of type %s, which has no order.", name,
								   format_type_be(transform->columns[table->version].typid)),
				   "Name a column with a time or a number.");
}

const char *
transform_kind_part(const TransformTable *table)
{
	const char *part = table->transform->rule->part;

	return part != NULL ? part : util_name_of_source(table->def->name);
}

static void
add_parts(TransformTable *table)
{
	Datum		part;
	ArrayType  *parts;
	int			column;

	if (table->nkey == 0)
		throw_kind(table, pstrdup("The source's table has no key, so nothing says which row its part belongs to."),
				   "Give the source's table a primary key, or leave it out of the member.");
	part = CStringGetTextDatum(transform_kind_part(table));
	parts = construct_array(&part, 1, TEXTOID, -1, false, TYPALIGN_INT);
	column = add_column(table, pstrdup(TRANSFORM_PARTS),
						(Node *) makeConst(TEXTARRAYOID, -1, DEFAULT_COLLATION_OID, -1, PointerGetDatum(parts), false, false), TEXTARRAYOID);
	table->transform->columns[column].collation = DEFAULT_COLLATION_OID;
	table->parts = column;
}

/* Columns that a kind adds, at most. */
#define COLUMNS_MAX 4

void
transform_kind_add(TransformTable *table)
{
	Transform  *transform = table->transform;

	table->deleted = table->deleted_at = table->sequence = table->version = table->parts = -1;
	table->nprojected = transform->ncolumns;
	if (transform->rule->kind == TRANSFORM_MIRROR)
		return;
	transform->columns = repalloc(transform->columns, sizeof(TransformColumn) * (transform->ncolumns + COLUMNS_MAX));
	if (transform->rule->kind == TRANSFORM_SOFT_DELETE)
		add_soft_delete(table);
	else if (transform->rule->kind == TRANSFORM_APPEND)
		add_append(table);
	else if (transform->rule->kind == TRANSFORM_LAST_WRITER)
		find_version(table);
	else
		add_parts(table);
}

void
transform_kind_use_key(CdcTableDef *def, const SchemaTypeOptions *options)
{
	if (transform_table_kind(def, options) == TRANSFORM_APPEND)
		def->nkey = 0;
}

uint32
transform_kind_source_nkey(const CdcTableDef *def)
{
	uint32		nkey = 0;

	for (uint32 i = 0; i < def->ncolumns; i++)
		nkey = Max(nkey, def->columns[i].key_part);
	return nkey;
}

bool
transform_kind_shares(const TransformRoutes *routes, const SchemaTypeOptions *options, const char *source_schema, const char *source_table)
{
	const TransformRule *rule;

	if (transform_route_merges(routes, source_schema, source_table))
		return true;
	rule = options->transforms == NIL ? NULL
		: transform_rule_find(options->transforms, util_name_to_source(source_schema), util_name_to_source(source_table));
	return rule != NULL && rule->kind == TRANSFORM_PARTIAL;
}
