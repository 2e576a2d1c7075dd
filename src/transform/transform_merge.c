/*-------------------------------------------------------------------------
 *
 * transform_merge.c
 *	  A target that several source tables share: the layout that has room for
 *	  all of them.
 *
 * NOTES
 *	  Types are only ever widened, to the least type that holds all values of
 *	  both without loss; so it does not matter in which order tables come. A
 *	  column that a table does not have is NULL in its rows, or has the target's
 *	  default. A column is never dropped: other tables' rows may have it.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/relcache.h"

#include "transform/transform_merge.h"

typedef struct Type
{
	Oid			typid;
	int32		typmod;
} Type;

/* Decimal digits before and behind the point that a type needs; false: it is no number with a fixed point. */
static bool
read_digits(Type type, int *before, int *behind, bool *is_unlimited)
{
	*behind = 0;
	*is_unlimited = false;
	switch (type.typid)
	{
		case INT2OID:
			*before = 5;
			return true;
		case INT4OID:
			*before = 10;
			return true;
		case INT8OID:
			*before = 19;
			return true;
		case NUMERICOID:
			*is_unlimited = type.typmod < (int32) VARHDRSZ;
			if (!*is_unlimited)
			{
				/* as numeric.c packs them, where a scale may also be negative */
				*behind = (((type.typmod - VARHDRSZ) & 0x7ff) ^ 1024) - 1024;
				*before = (((type.typmod - VARHDRSZ) >> 16) & 0xffff) - *behind;
				*behind = Max(*behind, 0);
			}
			return true;
		default:
			return false;
	}
}

static bool
is_float(Oid typid)
{
	return typid == FLOAT4OID || typid == FLOAT8OID;
}

static bool
is_number(Oid typid)
{
	return typid == INT2OID || typid == INT4OID || typid == INT8OID || typid == NUMERICOID || is_float(typid);
}

static bool
is_text(Oid typid)
{
	return typid == TEXTOID || typid == VARCHAROID || typid == BPCHAROID;
}

/* Of two numbers; false when no number holds both. */
static bool
common_number(Type a, Type b, Type *out)
{
	int			before[2];
	int			behind[2];
	bool		unlimited[2];

	if (is_float(a.typid) || is_float(b.typid))
	{
		Type		other = is_float(a.typid) ? b : a;
		Type		real = is_float(a.typid) ? a : b;

		/* a double holds 53 bits exactly, a float 24 */
		if (!is_float(other.typid) && other.typid != INT2OID && other.typid != INT4OID)
			return false;
		out->typid = (a.typid == b.typid || other.typid == INT2OID) ? real.typid : FLOAT8OID;
		out->typmod = -1;
		return true;
	}
	(void) read_digits(a, &before[0], &behind[0], &unlimited[0]);
	(void) read_digits(b, &before[1], &behind[1], &unlimited[1]);
	out->typmod = -1;
	if (a.typid != NUMERICOID && b.typid != NUMERICOID)
		out->typid = before[0] > before[1] ? a.typid : b.typid;
	else
	{
		int			scale = Max(behind[0], behind[1]);
		int			precision = Max(before[0], before[1]) + scale;

		out->typid = NUMERICOID;
		if (!unlimited[0] && !unlimited[1] && precision <= NUMERIC_MAX_PRECISION)
			out->typmod = (int32) (((precision << 16) | (scale & 0x7ff)) + VARHDRSZ);
	}
	return true;
}

static Type
common_text(Type a, Type b)
{
	Type		out = {TEXTOID, -1};

	if (a.typid != TEXTOID && b.typid != TEXTOID && a.typmod >= (int32) VARHDRSZ && b.typmod >= (int32) VARHDRSZ)
	{
		out.typid = a.typid == b.typid ? a.typid : VARCHAROID;
		out.typmod = Max(a.typmod, b.typmod);
	}
	else if (a.typid != TEXTOID && b.typid != TEXTOID)
		out.typid = VARCHAROID;
	return out;
}

/* The least type that holds all values of both; false: there is none but text. */
static bool
common_type(Type a, Type b, Type *out)
{
	*out = a;
	if (a.typid == b.typid && a.typmod == b.typmod)
		return true;
	if (is_number(a.typid) && is_number(b.typid))
		return common_number(a, b, out);
	if (is_text(a.typid) && is_text(b.typid))
	{
		*out = common_text(a, b);
		return true;
	}
	if (a.typid == b.typid)
	{
		/* fractions of seconds; of bit(n) the length belongs to the value */
		if (a.typid == BITOID)
			return false;
		out->typmod = a.typmod < 0 || b.typmod < 0 ? -1 : Max(a.typmod, b.typmod);
		return true;
	}
	if (is_number(a.typid) || is_number(b.typid) || is_text(a.typid) || is_text(b.typid))
		return false;
	if (can_coerce_type(1, &b.typid, &a.typid, COERCION_IMPLICIT))
		return true;
	if (!can_coerce_type(1, &a.typid, &b.typid, COERCION_IMPLICIT))
		return false;
	*out = b;
	return true;
}

static const char *
type_text(Type type)
{
	return format_type_extended(type.typid, type.typmod, FORMAT_TYPE_TYPEMOD_GIVEN);
}

/* Begin another part of the ALTER TABLE. */
static StringInfo
next_part(StringInfo parts)
{
	if (parts->len > 0)
		appendStringInfoString(parts, ", ");
	return parts;
}

static bool
is_in_key(const Bitmapset *key, AttrNumber attnum)
{
	return bms_is_member(attnum - FirstLowInvalidHeapAttributeNumber, key);
}

/* May a column of the projection be NULL? */
static bool
may_be_null(const TransformTable *table, int column, const SchemaTypeOptions *options)
{
	AttrNumber	from = table->transform->columns[column].from;

	if (table->parts >= 0)
		return column != table->parts;
	return from <= 0 || from > table->transform->nsource || !schema_column_is_not_null(&table->def->columns[from - 1], options);
}

/* Does the pipeline's option keep the target from getting what a column of the source has? */
static bool
is_left_out(const TransformTable *table, int column)
{
	AttrNumber	from = table->transform->columns[column].from;

	return from > 0 && from <= table->transform->nsource && table->def->columns[from - 1].left_out;
}

static void
fit_column(const TransformTable *table, int column, TupleDesc desc, const Bitmapset *key, int how,
		   const SchemaTypeOptions *options, StringInfo parts, bool *changes_key)
{
	const TransformColumn *from = &table->transform->columns[column];
	const Form_pg_attribute att = schema_find_attribute(desc, from->name);
	const char *name = quote_identifier(from->name);
	Type		mine = {from->typid, from->typmod};
	Type		wide;

	if (att == NULL && is_left_out(table, column))
		return;
	if (att == NULL)
	{
		appendStringInfo(next_part(parts), "ADD COLUMN %s %s%s", name, type_text(mine), column == table->parts ? " NOT NULL DEFAULT '{}'" : "");
		return;
	}
	if (att->attgenerated != '\0')
		return;
	if (!common_type((Type) {att->atttypid, att->atttypmod}, mine, &wide))
	{
		wide = (Type) {TEXTOID, -1};
		if ((how & TRANSFORM_MERGE_OR_TEXT) == 0)
			return;
	}
	if ((how & TRANSFORM_MERGE_KEEP_TYPES) == 0 && (wide.typid != att->atttypid || wide.typmod != att->atttypmod))
	{
		appendStringInfo(next_part(parts), "ALTER COLUMN %s TYPE %s USING %s::%s", name, type_text(wide), name, type_text(wide));
		*changes_key |= is_in_key(key, att->attnum);
	}
	if ((how & TRANSFORM_MERGE_KEEP_NOT_NULL) == 0 && att->attnotnull && !is_in_key(key, att->attnum) && may_be_null(table, column, options))
		appendStringInfo(next_part(parts), "ALTER COLUMN %s DROP NOT NULL", name);
}

char *
transform_merge_statement(const TransformTable *table, Relation rel, int how, const SchemaTypeOptions *options, bool *changes_key)
{
	TupleDesc	desc = RelationGetDescr(rel);
	Bitmapset  *key;
	StringInfoData parts;

	*changes_key = false;
	if (rel->rd_rel->relkind != RELKIND_RELATION && rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		return NULL;
	key = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_PRIMARY_KEY);
	initStringInfo(&parts);
	for (int i = 0; i < table->transform->ncolumns; i++)
		fit_column(table, i, desc, key, how, options, &parts, changes_key);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped && att->attnotnull && !att->atthasdef && att->attidentity == '\0' &&
			!is_in_key(key, att->attnum) && transform_column(table->transform, NameStr(att->attname)) < 0)
			appendStringInfo(next_part(&parts), "ALTER COLUMN %s DROP NOT NULL", quote_identifier(NameStr(att->attname)));
	}
	if (parts.len == 0)
		return NULL;
	return psprintf("ALTER TABLE %s %s",
					quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)), RelationGetRelationName(rel)), parts.data);
}
