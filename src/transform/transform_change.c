/*-------------------------------------------------------------------------
 *
 * transform_change.c
 *	  A source table with a transform changes its shape: may its target follow
 *	  as that of any other table does?
 *
 * NOTES
 *	  Who follows knows the source's columns and looks for them in the target by
 *	  name. That is right for those that pass through under their names ("*"),
 *	  and for nothing else: a mask has the name of a column and is another one, a
 *	  computed column would need its rows computed anew.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "transform/transform_table.h"

static bool
same_text(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool
is_retyped(const CdcColumnDef *a, const CdcColumnDef *b)
{
	return a->type != b->type || a->collation != b->collation || !same_text(a->type_text, b->type_text);
}

/* Does it stay as it is, in all that its target's column has of it? */
static bool
is_same(const CdcColumnDef *a, const CdcColumnDef *b)
{
	return strcmp(a->name, b->name) == 0 && !is_retyped(a, b) && a->nullable == b->nullable && a->key_part == b->key_part &&
		a->auto_increment == b->auto_increment && a->is_generated == b->is_generated &&
		a->default_is_expr == b->default_is_expr && same_text(a->default_text, b->default_text) &&
		same_text(a->comment, b->comment);
}

/* Does a column of the source go into the target's of its name, as it is? */
static bool
passes_by_name(const TransformTable *table, int column)
{
	int			to = transform_column(table->transform, NameStr(TupleDescAttr(table->transform->desc, column)->attname));

	return to >= 0 && table->transform->columns[to].from == column + 1;
}

/* Is something else made of it too, or do rows pass by it? */
static bool
is_used_otherwise(const TransformTable *table, int column)
{
	const Transform *transform = table->transform;

	if (bms_is_member(column + 1, transform->filter_uses))
		return true;
	for (int i = 0; i < transform->ncolumns; i++)
	{
		const TransformColumn *to = &transform->columns[i];

		if (bms_is_member(column + 1, to->uses) &&
			(to->from != column + 1 || strcmp(to->name, NameStr(TupleDescAttr(transform->desc, column)->attname)) != 0))
			return true;
	}
	return false;
}

bool
transform_lets_follow(const CdcTableDef *before, const CdcTableDef *after, const int *origin,
					  const SchemaTypeOptions *options)
{
	const TransformRule *rule = transform_table_rule(after, options);
	TransformTable *was;
	TransformTable *is;
	bool	   *stays = palloc0(sizeof(bool) * Max(before->ncolumns, 1));

	if (rule == NULL)
		return true;
	was = transform_table_make(before, rule, options);
	is = transform_table_make(after, rule, options);
	for (uint32 i = 0; i < after->ncolumns; i++)
	{
		int			from = origin[i];

		if (from >= 0)
			stays[from] = true;
		if (from >= 0 && is_same(&before->columns[from], &after->columns[i]))
			continue;
		/* the key that the rule gives is not the source's */
		if (rule->key != NIL && after->columns[i].key_part != (from >= 0 ? before->columns[from].key_part : 0))
			return false;
		if (!passes_by_name(is, (int) i) || (from >= 0 && !passes_by_name(was, from)))
			return false;
		if (from >= 0 && is_retyped(&before->columns[from], &after->columns[i]) && is_used_otherwise(is, (int) i))
			return false;
	}
	for (uint32 k = 0; k < before->ncolumns; k++)
	{
		if (!stays[k] && !passes_by_name(was, (int) k))
			return false;
	}
	return true;
}
