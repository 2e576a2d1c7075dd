/*-------------------------------------------------------------------------
 *
 * schema_override.c
 *	  Option column_types: types that the user chose for columns of targets
 *	  that are made.
 *
 * NOTES
 *	  A member of the option is a pattern schema.table.column and a type. Of
 *	  several that match, the one with more parts without wildcards counts, then
 *	  the one with more characters that are no wildcards, then the first in byte
 *	  order: so it does not matter in which order they were written, which jsonb
 *	  does not keep.
 *
 *	  A type is looked up with search_path as workers have it, when the option is
 *	  given and when a table is made, so both mean the same. (Options are read outside
 *	  transactions too; names are not looked up then.) It has to be one into which
 *	  a converter brings the source's values, as for a target made by somebody
 *	  else.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "parser/parse_type.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "catalog/catalog.h"
#include "compat/pg_compat.h"
#include "mysql/mysql_server.h"
#include "schema/schema_private.h"
#include "util/util_pattern.h"

#define OPTION_NAME "column_types"

struct SchemaOverride
{
	char *pattern;
	char *table_pattern;  /* its first two parts */
	char *column_pattern; /* the third, behind a schema part that matches "" */
	int plain_parts;      /* parts without wildcards */
	int plain_chars;      /* characters that are no wildcards */
	char *type;
};

/* ----------------------------------------------------------------- reading */

Oid
schema_read_type(const char *text, int32 *typmod)
{
	int level = NewGUCNestLevel();
	TypeName *name;
	Type tuple;
	Oid result = InvalidOid;

	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
	                         GUC_ACTION_SAVE, true, 0, false);
	name = cdc_type_name_from_string(text);
	tuple = LookupTypeName(NULL, name, typmod, true);
	if (tuple != NULL)
	{
		Form_pg_type form = (Form_pg_type) GETSTRUCT(tuple);

		if (form->typisdefined && form->typtype != TYPTYPE_PSEUDO)
			result = form->oid;
		ReleaseSysCache(tuple);
	}
	AtEOXact_GUC(true, level);
	return result;
}

/*
 * Split schema.table.column at the dots that no backslash stands before, and
 * count what tells how specific it is. False when it has not three parts.
 */
static bool
read_pattern(SchemaOverride *override)
{
	const char *dots[2] = {NULL, NULL};
	int ndots = 0;
	bool is_wild = false;
	bool is_empty = true;

	for (const char *p = override->pattern;; p++)
	{
		if (*p == '.' || *p == '\0')
		{
			if (is_empty || (*p == '.' && ndots == 2))
				return false;
			override->plain_parts += is_wild ? 0 : 1;
			is_wild = false;
			is_empty = true;
			if (*p == '\0')
				break;
			dots[ndots++] = p;
			continue;
		}
		is_empty = false;
		if (*p == '*' || *p == '?')
		{
			is_wild = true;
			continue;
		}
		if (*p == '\\' && p[1] != '\0')
			p++;
		override->plain_chars++;
	}
	if (ndots != 2)
		return false;
	override->table_pattern = pnstrdup(override->pattern, dots[1] - override->pattern);
	override->column_pattern = psprintf("*%s", dots[1]);
	return true;
}

static _Noreturn void
throw_bad(const char *pattern, const char *detail, const char *hint)
{
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
	                errmsg("invalid member \"%s\" of option \"%s\"", pattern, OPTION_NAME),
	                errdetail_internal("%s", detail), errhint("%s", hint)));
}

static SchemaOverride *
read_member(const JsonbValue *key, const JsonbValue *value)
{
	SchemaOverride *override = palloc0(sizeof(SchemaOverride));

	override->pattern = pnstrdup(key->val.string.val, key->val.string.len);
	if (!read_pattern(override))
		throw_bad(override->pattern, "It is not of the form schema.table.column.",
		          "* stands for any characters, ? for one: \"shop.*.is_*\".");
	if (value->type != jbvString)
		throw_bad(override->pattern, "Its value is not a string.",
		          "Give the name of a type, like \"numeric(20,4)\".");
	override->type = pnstrdup(value->val.string.val, value->val.string.len);
	return override;
}

static int
compare_specificity(const ListCell *a, const ListCell *b)
{
	const SchemaOverride *oa = lfirst(a);
	const SchemaOverride *ob = lfirst(b);

	if (oa->plain_parts != ob->plain_parts)
		return ob->plain_parts - oa->plain_parts;
	if (oa->plain_chars != ob->plain_chars)
		return ob->plain_chars - oa->plain_chars;
	return strcmp(oa->pattern, ob->pattern);
}

List *
schema_overrides_read(const char *json)
{
	List *result = NIL;
	Jsonb *jsonb;
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue key, value;

	if (json == NULL)
		return NIL;
	jsonb = DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(json)));
	it = JsonbIteratorInit(&jsonb->root);
	while ((token = JsonbIteratorNext(&it, &key, true)) != WJB_DONE)
	{
		if (token != WJB_KEY)
			continue;
		(void) JsonbIteratorNext(&it, &value, true);
		result = lappend(result, read_member(&key, &value));
	}
	list_sort(result, compare_specificity);
	return result;
}

void
schema_overrides_check(const char *json)
{
	ListCell *lc;

	foreach (lc, schema_overrides_read(json))
	{
		const SchemaOverride *override = lfirst(lc);
		int32 typmod;

		if (!OidIsValid(schema_read_type(override->type, &typmod)))
			throw_bad(override->pattern, psprintf("Type \"%s\" does not exist.", override->type),
			          "Types that are not PostgreSQL's own are written with their schema.");
	}
}

/* ------------------------------------------------------------------- using */

static const SchemaOverride *
find(const CdcTableDef *def, const CdcColumnDef *column, const List *overrides)
{
	ListCell *lc;

	foreach (lc, overrides)
	{
		const SchemaOverride *override = lfirst(lc);

		if (util_pattern_match(override->table_pattern, def->schema, def->name) &&
		    util_pattern_match(override->column_pattern, "", column->name))
			return override;
	}
	return NULL;
}

bool
schema_column_is_overridden(const CdcTableDef *def, const CdcColumnDef *column,
                            const SchemaTypeOptions *options)
{
	return options->overrides != NIL && find(def, column, options->overrides) != NULL;
}

/*
 * Type of a column of a target to be made: the user's choice, else the map's.
 * NULL with *why set when nothing, or not the type that was chosen, can hold it.
 */
char *
schema_target_type_sql(const CdcTableDef *def, const CdcColumnDef *column,
                       const SchemaTypeOptions *options, char **why)
{
	const SchemaOverride *override =
	    options->overrides != NIL ? find(def, column, options->overrides) : NULL;
	FormData_pg_attribute attribute = {0};
	SchemaColumn prepared;
	char *name;
	char *reason;

	/* A column without a type of ours has no values that can be read, whatever the target is. */
	name = schema_type_sql(column, options, why);
	if (override == NULL || name == NULL)
		return name;

	attribute.attnum = 1;
	attribute.atttypid = schema_read_type(override->type, &attribute.atttypmod);
	if (!OidIsValid(attribute.atttypid))
	{
		*why = psprintf("option \"%s\" (\"%s\") gives it the type %s, which does not exist",
		                OPTION_NAME, override->pattern, override->type);
		return NULL;
	}
	attribute.attcollation = get_typcollation(attribute.atttypid);
	name = format_type_extended(attribute.atttypid, attribute.atttypmod,
	                            FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY);
	if (!schema_column_prepare(&prepared, column, &attribute, CurrentMemoryContext, &reason))
	{
		*why = psprintf("option \"%s\" (\"%s\") gives it the type %s, which cannot hold every value "
		                "of %s",
		                OPTION_NAME, override->pattern, name, schema_source_type(column));
		return NULL;
	}
	if (column->key_part != 0 && !schema_column_is_exact(&prepared, &attribute, &reason))
	{
		*why = psprintf("option \"%s\" (\"%s\") gives it the type %s, which may take two different "
		                "values of the key for the same",
		                OPTION_NAME, override->pattern, name);
		return NULL;
	}
	return name;
}
