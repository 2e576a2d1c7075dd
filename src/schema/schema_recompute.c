/*-------------------------------------------------------------------------
 *
 * schema_recompute.c
 *	  May a change of the source's table have given other values to its generated
 *	  columns?
 *
 * NOTES
 *	  The server computes them anew for the rows that are there, and logs none of
 *	  them: where an expression is another one, and where a column that it may use
 *	  has other values, or the same in another form ("1.5" as decimal(10,4) is
 *	  "1.5000" in a text). The definition does not hold expressions (the binary log
 *	  has none, and the server prints them in another form than the statement), so
 *	  each generated column may use each other column.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/lsyscache.h"

#include "schema/evolve.h"
#include "schema/schema_private.h"

/* Is there a generated column whose values the target holds, instead of computing them itself? */
static bool
holds_generated(const SchemaEvolve *evolve)
{
	Oid			relid = RelationGetRelid(evolve->rel);

	for (uint32 i = 0; i < evolve->after->ncolumns; i++)
	{
		const CdcColumnDef *column = &evolve->after->columns[i];
		AttrNumber	attnum;

		if (!column->is_generated || column->left_out || evolve->origin[i] < 0)
			continue;
		/* under the name that it had until now */
		attnum = get_attnum(relid, schema_column_name(evolve->before->columns[evolve->origin[i]].name));
		if (evolve->is_projected || attnum == InvalidAttrNumber || get_attgenerated(relid, attnum) == '\0')
			return true;
	}
	return false;
}

/* Is every value the same afterwards, to whatever expression? */
static bool
is_seen_alike(const CdcColumnDef *before, const CdcColumnDef *after)
{
	if (!schema_type_differs(before, after) && (before->collation == after->collation || !cdc_type_is_character(after->type)))
		return true;
	if (before->is_unsigned != after->is_unsigned || before->is_boolean != after->is_boolean || before->collation != after->collation)
		return false;
	if (cdc_type_is_integer(before->type) && cdc_type_is_integer(after->type))
		return after->type >= before->type;
	if (before->type != after->type)
		return false;
	if (after->type == CDC_TYPE_VARCHAR)
		return after->length >= before->length;
	return (after->type == CDC_TYPE_ENUM || after->type == CDC_TYPE_SET) && cdc_labels_only_come(before, after);
}

char *
schema_recomputes(const SchemaEvolve *evolve)
{
	if (!evolve->has_rows || catalog_change_mode(evolve->rules, CATALOG_CHANGE_ALTER_TYPE) == CATALOG_MODE_IGNORE ||
		!holds_generated(evolve))
		return NULL;
	if (evolve->computes_anew)
		return pstrdup("a generated column may have other values now");
	for (uint32 i = 0; i < evolve->after->ncolumns; i++)
	{
		const CdcColumnDef *after = &evolve->after->columns[i];
		const CdcColumnDef *before = evolve->origin[i] >= 0 ? &evolve->before->columns[evolve->origin[i]] : NULL;

		if (after->is_generated)
			continue;
		if (before == NULL ? cdc_table_def_column(evolve->before, after->name) >= 0 /* DROP and ADD of one name */
			: !is_seen_alike(before, after) || (before->nullable && !after->nullable && !(evolve->is_strict && evolve->is_told)))
			return psprintf("column \"%s\" may have other values now, and generated columns with it", schema_server_string(after->name));
	}
	return NULL;
}
