/*-------------------------------------------------------------------------
 *
 * transform_table.c
 *	  The transform of one source table: its row type, the columns and key of
 *	  its target.
 *
 * NOTES
 *	  What a mirror rests on has to hold for a transformed table too, so this is
 *	  refused:
 *
 *	  - a key of the target that is not a function of the source's key: the
 *		log's deletes have the key only, and a copied row and a streamed one must
 *		meet under the same key. A part of the source's key that goes nowhere
 *		would make two rows one.
 *	  - a filter over what is true of a change and not of the row (operation,
 *		time, position): whether a row is here would depend on the way it came.
 *	  - without a key, anything that may come out differently for the same row:
 *		a row that leaves is found by all it holds.
 *	  - rows that foreign keys change without a word in the log: they are read
 *		from the target, which has other columns.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "transform/transform_kind.h"
#include "transform/transform_table.h"
#include "util/util_name.h"

const TransformRule *
transform_table_rule(const CdcTableDef *def, const SchemaTypeOptions *options)
{
	const TransformRule *rule = options->transforms == NIL ? NULL
		: transform_rule_find(options->transforms, def->schema, def->name);

	return rule == NULL || (rule->projection == NULL && rule->filter == NULL && rule->key == NIL && rule->kind == TRANSFORM_MIRROR) ? NULL
		: rule;
}

bool
transform_names_move(const CdcTableDef *before, const CdcTableDef *after, const SchemaTypeOptions *options)
{
	const TransformRule *rule = transform_table_rule(before, options);

	if (rule == NULL)
		return false;
	for (int i = 0; i < TRANSFORM_METAS; i++)
	{
		const char *name = transform_meta_name((TransformMeta) i);

		if ((cdc_table_def_column(before, name) < 0) != (cdc_table_def_column(after, name) < 0) &&
			((rule->projection != NULL && strstr(rule->projection, name) != NULL) ||
			 (rule->filter != NULL && strstr(rule->filter, name) != NULL)))
			return true;
	}
	return false;
}

TransformKind
transform_table_kind(const CdcTableDef *def, const SchemaTypeOptions *options)
{
	const TransformRule *rule = transform_table_rule(def, options);

	return rule != NULL ? rule->kind : TRANSFORM_MIRROR;
}

static const Bitmapset *
uses_of(const Transform *transform, int column)
{
	return column < 0 ? transform->filter_uses : transform->columns[column].uses;
}

bool
transform_tells_change(const Transform *transform, int column)
{
	static const TransformMeta of_change[] = {TRANSFORM_OPERATION, TRANSFORM_COMMIT_TIME, TRANSFORM_POSITION};

	for (size_t i = 0; i < lengthof(of_change); i++)
	{
		if (bms_is_member(transform_meta_attnum(transform, of_change[i]), uses_of(transform, column)))
			return true;
	}
	return false;
}

/* ----------------------------------------------------------------------------- the key */

static _Noreturn void pg_attribute_printf(3, 4)
throw_key(const TransformTable *table, const char *hint, const char *fmt,...)
{
	char		detail[1024];
	va_list		args;

	va_start(args, fmt);
	vsnprintf(detail, sizeof(detail), fmt, args);
	va_end(args);
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("member %d of option \"%s\" gives source table \"%s.%s\" no key that rows can be found by",
					table->transform->rule->number, TRANSFORM_OPTION, util_name_of_source(table->def->schema),
					util_name_of_source(table->def->name)),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
}

/* Is it a function of the source's key, the same for a row however it changes? */
static bool
is_of_key(const TransformTable *table, int column)
{
	const Transform *transform = table->transform;
	int			attnum = -1;

	if (transform->columns[column].is_mutable || transform_tells_change(transform, column))
		return false;
	while ((attnum = bms_next_member(transform->columns[column].uses, attnum)) >= 0)
	{
		if (attnum <= transform->nsource && table->def->columns[attnum - 1].key_part == 0)
			return false;
	}
	return true;
}

/* The column of the projection that stands for a part of the source's key: the part itself, else what is made of it under its name. */
static int
column_for_part(const TransformTable *table, int part)
{
	const Transform *transform = table->transform;

	for (int i = 0; i < transform->ncolumns; i++)
	{
		if (transform->columns[i].from == part + 1)
			return i;
	}
	return transform_column(transform, schema_column_name(table->def->columns[part].name));
}

/* Every part of the source's key has to go into the target's. */
static void
check_whole(const TransformTable *table)
{
	for (uint32 part = 0; part < table->def->ncolumns; part++)
	{
		bool		is_used = table->def->columns[part].key_part == 0;

		for (int i = 0; i < table->nkey; i++)
			is_used |= bms_is_member((int) part + 1, table->transform->columns[table->key[i]].uses);
		if (!is_used)
			throw_key(table, "Give the column to the key too.",
					  "Column \"%s\" of the source's key is in no column of the target's key, so different rows would be one.",
					  util_name_of_source(table->def->columns[part].name));
	}
}

static void
set_key(TransformTable *table)
{
	const TransformRule *rule = table->transform->rule;
	const CdcTableDef *def = table->def;
	ListCell   *lc;

	if (def->nkey == 0)
	{
		if (rule->key != NIL)
			throw_key(table, "Leave out \"key\", or give the source's table a primary key.",
					  "The source's table has no key, so nothing says which rows a change means.");
		return;
	}
	table->key = palloc0(sizeof(int) * Max(def->nkey, list_length(rule->key)));
	foreach(lc, rule->key)
	{
		int			column = transform_column(table->transform, lfirst(lc));

		if (column < 0)
			throw_key(table, "Name columns that the projection makes.",
					  "Its \"key\" has a column \"%s\", and the projection has none.", (char *) lfirst(lc));
		for (int i = 0; i < table->nkey; i++)
		{
			if (table->key[i] == column)
				throw_key(table, "Name each column once.", "Its \"key\" has column \"%s\" twice.", (char *) lfirst(lc));
		}
		table->key[table->nkey++] = column;
	}
	for (uint32 part = 1; rule->key == NIL && part <= def->nkey; part++)
	{
		for (uint32 i = 0; i < def->ncolumns; i++)
		{
			int			column = def->columns[i].key_part == part ? column_for_part(table, (int) i) : -1;

			if (def->columns[i].key_part != part)
				continue;
			if (column < 0)
				throw_key(table, "Add the column to the projection, or say with \"key\" which columns tell rows apart.",
						  "Column \"%s\" of the source's key is not in the projection.", util_name_of_source(def->columns[i].name));
			table->key[table->nkey++] = column;
		}
	}
	for (int i = 0; i < table->nkey; i++)
	{
		if (!is_of_key(table, table->key[i]))
			throw_key(table, "Make it of columns of the source's key, cdc_server, cdc_schema and cdc_table, with immutable functions.",
					  "Column \"%s\" is not made of the source's key alone, so a deleted row would not be found.",
					  table->transform->columns[table->key[i]].name);
	}
	check_whole(table);
}

/* ------------------------------------------------------------------------------ making */

static _Noreturn void
throw_refused(const TransformTable *table, char *detail, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("member %d of option \"%s\" cannot be used for source table \"%s.%s\"",
					table->transform->rule->number, TRANSFORM_OPTION, util_name_of_source(table->def->schema),
					util_name_of_source(table->def->name)),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
}

static void
check_same_for_row(const TransformTable *table)
{
	const Transform *transform = table->transform;

	if (transform_tells_change(transform, -1))
		throw_refused(table, "Its filter looks at cdc_operation, cdc_commit_time or cdc_position, which say something of a change and not of the row.",
					  "Filter by columns of the row.");
	if (table->def->nkey > 0 || transform->rule->kind == TRANSFORM_APPEND)
		return;
	if (transform->filter_is_mutable)
		throw_refused(table, "The source's table has no key, and the filter may say something else of the same row later.",
					  "Use immutable functions, or give the source's table a primary key.");
	for (int i = 0; i < transform->ncolumns; i++)
	{
		if (transform->columns[i].is_mutable || transform_tells_change(transform, i))
			throw_refused(table, psprintf("The source's table has no key, so rows are found by all they hold, and column \"%s\" may come out differently for the same row.",
										  transform->columns[i].name),
						  "Use immutable functions, or give the source's table a primary key.");
	}
}

static void
check_cascades(const TransformTable *table, const SchemaTypeOptions *options)
{
	const CdcTableDef *def = table->def;

	for (uint32 i = 0; options->make_cascades && (def->known & CDC_FOREIGN_UNLOGGED) && i < def->nforeign; i++)
		throw_refused(table, psprintf("Foreign key \"%s\" changes rows of the table, and the source does not log that; it is made good from the target's rows, which are others here.",
									  util_name_of_source(def->foreign_keys[i].name)),
					  "See option \"cascades\", or leave the table out of the transform.");
}

/* Of which columns of the source something is made. */
static void
set_used(TransformTable *table)
{
	const Transform *transform = table->transform;

	for (int i = 0; i < transform->nsource; i++)
	{
		table->used[i] = table->def->columns[i].key_part != 0 || bms_is_member(i + 1, transform->filter_uses);
		for (int j = 0; j < transform->ncolumns; j++)
			table->used[i] |= bms_is_member(i + 1, transform->columns[j].uses);
	}
}

static void
set_uses(TransformTable *table)
{
	const Transform *transform = table->transform;

	table->used = palloc0(sizeof(bool) * Max(transform->nsource, 1));
	table->held = palloc0(sizeof(AttrNumber) * Max(transform->nsource, 1));
	table->attnums = palloc0(sizeof(AttrNumber) * Max(transform->ncolumns, 1));
	set_used(table);
}

TransformTable *
transform_table_make(const CdcTableDef *def, const TransformRule *rule, const SchemaTypeOptions *options)
{
	TransformTable *table = palloc0(sizeof(TransformTable));
	TupleDesc	desc = schema_row_type(def, options, TRANSFORM_METAS);

	transform_add_metadata(desc, (int) def->ncolumns);
	table->def = def;
	table->transform = transform_compile(rule, desc, (int) def->ncolumns);
	set_key(table);
	transform_kind_add(table);
	check_same_for_row(table);
	check_cascades(table, options);
	set_uses(table);
	return table;
}

/* ----------------------------------------------------------------------- its target */

/* Begin another sentence. */
static StringInfo
next_reason(StringInfo reasons)
{
	if (reasons->len > 0)
		appendStringInfoChar(reasons, '\n');
	return reasons;
}

/* Which attribute of the target takes a column; adds a sentence when none can. */
static void
bind_column(TransformTable *table, int column, TupleDesc desc, StringInfo reasons)
{
	TransformColumn *from = &table->transform->columns[column];
	Form_pg_attribute att = schema_find_attribute(desc, from->name);
	char	   *type = format_type_be(from->typid);
	AttrNumber	attnum = from->from;
	bool		is_source = attnum > 0 && attnum <= table->transform->nsource;
	char	   *fault;

	/* the options keep the target from getting it, see schema_evolve.c: "*" does not mean it */
	if (att == NULL && is_source && table->def->columns[attnum - 1].left_out && table->def->columns[attnum - 1].key_part == 0)
		from->uses = NULL;
	else if (att == NULL)
		appendStringInfo(next_reason(reasons), "The target has no column \"%s\".", from->name);
	else if (att->attgenerated != '\0')
	{
		/* the source generates it too, and what it has is what the target computes */
		if (!is_source || !table->def->columns[attnum - 1].is_generated)
			appendStringInfo(next_reason(reasons), "Column \"%s\" is generated in the target.", from->name);
	}
	else if ((column >= table->nprojected && att->atttypid != from->typid) ||
			 !transform_coerce(table->transform, column, att->atttypid, att->atttypmod))
		appendStringInfo(next_reason(reasons), "Column \"%s\" is of type %s in the target, and %s gives %s.",
						 from->name, format_type_with_typemod(att->atttypid, att->atttypmod),
						 column >= table->nprojected ? "its kind" : "the projection", type);
	else
	{
		table->attnums[column] = att->attnum;
		if (from->from > 0 && is_source)
			table->held[from->from - 1] = att->attnum;
		/* as it is means whole: who wants it cut says so with a cast in the projection */
		fault = is_source ? schema_column_fault(&table->def->columns[attnum - 1], att) : NULL;
		if (fault != NULL)
			appendStringInfoString(next_reason(reasons), fault);
	}
}

void
transform_table_bind(TransformTable *table, Relation rel)
{
	Transform  *transform = table->transform;
	TupleDesc	desc = RelationGetDescr(rel);
	AttrNumber *key = palloc(sizeof(AttrNumber) * Max(table->nkey, 1));
	bool	   *given = palloc0(sizeof(bool) * Max(desc->natts, 1));
	StringInfoData reasons;

	initStringInfo(&reasons);
	for (int i = 0; i < transform->ncolumns; i++)
	{
		bind_column(table, i, desc, &reasons);
		if (table->attnums[i] > 0)
			given[table->attnums[i] - 1] = true;
	}
	set_used(table);
	for (int i = 0; i < table->nkey; i++)
		key[i] = table->attnums[table->key[i]];
	if (reasons.len == 0)
		schema_check_primary_key(rel, table->nkey, key, &reasons);
	schema_check_other_attributes(desc, given, &reasons);
	if (reasons.len > 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("table \"%s.%s\" does not fit source table \"%s.%s\" and member %d of option \"%s\"",
						get_namespace_name(RelationGetNamespace(rel)), RelationGetRelationName(rel),
						util_name_of_source(table->def->schema), util_name_of_source(table->def->name), transform->rule->number,
						TRANSFORM_OPTION),
				 errdetail_internal("%s", reasons.data),
				 errhint("Change the target with ALTER TABLE, or drop it and let cdc_bridge create it, then use cdc_resync_table()."),
				 errtable(rel)));
}

/* -------------------------------------------------------------------------------- DDL */

static SchemaOutput *
make_output(const TransformTable *table, int i, const SchemaTypeOptions *options)
{
	const TransformColumn *column = &table->transform->columns[i];
	SchemaOutput *output = palloc0(sizeof(SchemaOutput));

	output->name = column->name;
	output->type = format_type_extended(column->typid, column->typmod, FORMAT_TYPE_TYPEMOD_GIVEN);
	if (column->from > 0 && column->from <= table->transform->nsource)
		output->from = &table->def->columns[column->from - 1];
	/* where others have parts of a row, it may be there without this one */
	output->not_null = output->from != NULL && table->parts < 0 && schema_column_is_not_null(output->from, options);
	for (int j = 0; j < table->nkey; j++)
		output->not_null |= table->key[j] == i;
	output->not_null |= i == table->deleted || i == table->parts || (i == table->nprojected && table->transform->rule->kind == TRANSFORM_APPEND);
	return output;
}

List *
transform_create_statements(const CdcTableDef *def, const char *target_schema, const char *target_table,
							const SchemaTypeOptions *options)
{
	const TransformRule *rule = transform_table_rule(def, options);
	TransformTable *table;
	List	   *outputs = NIL;
	List	   *key = NIL;

	if (rule == NULL)
		return schema_create_statements(def, target_schema, target_table, options);
	table = transform_table_make(def, rule, options);
	for (int i = 0; i < table->transform->ncolumns; i++)
		outputs = lappend(outputs, make_output(table, i, options));
	for (int i = 0; i < table->nkey; i++)
		key = lappend(key, table->transform->columns[table->key[i]].name);
	outputs = schema_create_statements_for(def, outputs, key, target_schema, target_table, options);
	/* for rows that somebody else inserts */
	if (table->parts >= 0)
		outputs = lappend(outputs, psprintf("ALTER TABLE %s ALTER COLUMN %s SET DEFAULT '{}'",
											quote_qualified_identifier(target_schema, target_table), TRANSFORM_PARTS));
	return outputs;
}

/* --------------------------------------------------------------------- what passes through */

/* The column of the projection that is that column of the source, unchanged; -1: none. */
static int
passed_through(const TransformTable *table, int column)
{
	for (int i = 0; i < table->transform->ncolumns; i++)
	{
		if (table->transform->columns[i].from == column + 1)
			return i;
	}
	return -1;
}

bool
transform_keeps_column(const TransformTable *table, int column)
{
	/* what a row was before is needed, and in no row that could be told from others, or that others leave alone */
	if (table->transform->rule->kind == TRANSFORM_APPEND || table->transform->rule->kind == TRANSFORM_LAST_WRITER)
		return !table->used[column];
	return !table->used[column] || (table->transform->filter == NULL && passed_through(table, column) >= 0);
}

SchemaIndex *
transform_index_translate(const CdcTableDef *def, const CdcIndexDef *index, const SchemaTypeOptions *options)
{
	SchemaIndex *result = schema_index_translate(def, index, options);
	const TransformRule *rule = transform_table_rule(def, options);
	TransformTable *table;

	if (rule == NULL || result->reason != NULL)
		return result;
	table = transform_table_make(def, rule, options);
	for (uint32 i = 0; i < index->nparts; i++)
	{
		CdcColumnDef *column = palloc(sizeof(CdcColumnDef));
		int			to = passed_through(table, (int) (result->columns[i] - def->columns));

		if (to < 0)
		{
			result->reason = psprintf("option \"%s\" leaves column \"%s\" out, or makes something else of it", TRANSFORM_OPTION,
									  util_name_of_source(result->columns[i]->name));
			return result;
		}
		*column = *result->columns[i];
		column->name = pg_server_to_any(table->transform->columns[to].name, (int) strlen(table->transform->columns[to].name),
										PG_UTF8);
		result->columns[i] = column;
	}
	return result;
}
