/*-------------------------------------------------------------------------
 *
 * transform_kind.c
 *	  Kinds of targets other than mirrors: the columns that they add to a
 *	  projection.
 *
 * NOTES
 *	  A column that a kind adds is a constant of the projection: so whoever makes
 *	  a target, checks one that is there, or writes a row knows it without being
 *	  told. What becomes of a row that goes is the writer's business
 *	  (apply_soft.c).
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"

#include "transform/transform_kind.h"

static char *
server_text(const char *utf8)
{
	return pg_any_to_server(pstrdup(utf8), (int) strlen(utf8), PG_UTF8);
}

const char *
transform_kind_name(TransformKind kind)
{
	switch (kind)
	{
		case TRANSFORM_MIRROR:
			return "mirror";
		case TRANSFORM_SOFT_DELETE:
			return "soft_delete";
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
					server_text(table->def->schema), server_text(table->def->name), transform_kind_name(rule->kind), rule->number,
					TRANSFORM_OPTION),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
}

/* Its number. The array has room for it. */
static int
add_constant(TransformTable *table, char *name, Const *value)
{
	Transform  *transform = table->transform;
	TransformColumn *column = &transform->columns[transform->ncolumns];

	for (int i = 0; i < transform->ncolumns; i++)
	{
		if (strcmp(transform->columns[i].name, name) == 0)
			throw_kind(table, psprintf("Its rows have a column \"%s\", and so would be called what tells that a row was deleted.", name),
					   "Give one of them another name, with AS in the projection, or with \"deleted_column\" and \"deleted_at_column\".");
	}
	memset(column, 0, sizeof(TransformColumn));
	column->name = name;
	column->expr = (Node *) value;
	column->typid = value->consttype;
	column->typmod = -1;
	return transform->ncolumns++;
}

void
transform_kind_add(TransformTable *table)
{
	Transform  *transform = table->transform;
	const TransformRule *rule = transform->rule;

	table->deleted = table->deleted_at = -1;
	if (rule->kind != TRANSFORM_SOFT_DELETE)
		return;
	if (table->nkey == 0)
		throw_kind(table, pstrdup("The source's table has no key, so nothing says which row is the one that was deleted."),
				   "Give the source's table a primary key, or leave it out of the member.");
	transform->columns = repalloc(transform->columns, sizeof(TransformColumn) * (transform->ncolumns + 2));
	table->deleted = add_constant(table, rule->deleted_column, (Const *) makeBoolConst(false, false));
	table->deleted_at = add_constant(table, rule->deleted_at_column, makeNullConst(TIMESTAMPTZOID, -1, InvalidOid));
}
