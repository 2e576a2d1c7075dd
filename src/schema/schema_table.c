/*-------------------------------------------------------------------------
 *
 * schema_table.c
 *	  Can a source table be mirrored, and how its columns map to a target
 *	  relation.
 *
 * NOTES
 *	  Both functions look at everything before they complain, so that a user
 *	  mends a table once and not column by column.
 *
 *	  Columns are matched by name. Names of MySQL are kept as they are, case
 *	  included; the target's names are compared exactly.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/transam.h"
#include "catalog/heap.h"
#include "catalog/pg_index.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/syscache.h"

#include "schema/schema_private.h"
#include "schema/table.h"
#include "util/util_error.h"
#include "util/util_name.h"

/* Add a sentence to a list of reasons. */
static void pg_attribute_printf(2, 3) add_reason(StringInfo reasons, const char *fmt, ...)
{
	if (reasons->len > 0)
		appendStringInfoChar(reasons, '\n');
	for (;;)
	{
		va_list args;
		int needed;

		va_start(args, fmt);
		needed = appendStringInfoVA(reasons, fmt, args);
		va_end(args);
		if (needed == 0)
			break;
		enlargeStringInfo(reasons, needed);
	}
}

/* Can a column of that type be part of the key that rows are found by? */
static bool
is_key_type(CdcType type)
{
	switch (type)
	{
		case CDC_TYPE_TEXT:
		case CDC_TYPE_BLOB:
		case CDC_TYPE_JSON:
		case CDC_TYPE_GEOMETRY:
		case CDC_TYPE_VECTOR:
		case CDC_TYPE_UNKNOWN:
			return false;
		default:
			return true;
	}
}

bool
schema_has_transactions(const CdcTableDef *def)
{
	return def->engine == NULL || pg_strcasecmp(def->engine, "InnoDB") == 0 ||
		pg_strcasecmp(def->engine, "RocksDB") == 0;
}

static void
check_key(const CdcTableDef *def, StringInfo reasons)
{
	if (def->nkey == 0)
	{
		/* without a key the copy needs a snapshot that shows an exact place in the log */
		if (def->engine == NULL || !schema_has_transactions(def))
			add_reason(reasons,
			           "Table \"%s.%s\" has neither a primary key nor a unique key of NOT NULL "
			           "columns, and its engine %s has no transactions.",
			           schema_server_string(def->schema), schema_server_string(def->name),
			           def->engine ? def->engine : "?");
		return;
	}
	for (uint32 i = 0; i < def->ncolumns; i++)
	{
		const CdcColumnDef *column = &def->columns[i];

		if (column->key_part == 0)
			continue;
		if (column->key_prefix != 0)
			add_reason(reasons, "The key holds only the first %u characters of column \"%s\".",
			           column->key_prefix, schema_server_string(column->name));
		else if (!is_key_type(column->type))
			add_reason(reasons,
			           "Key column \"%s\" has the type %s, which cannot be compared as a key.",
			           schema_server_string(column->name), schema_source_type(column));
		else if (column->nullable)
			add_reason(reasons, "Key column \"%s\" can be NULL.",
			           schema_server_string(column->name));
	}
}

char *
schema_column_name(const char *source_name)
{
	char *name = schema_server_string(source_name);

	return util_name_is_long(name) ? util_name_with_hash(name, name) : name;
}

/* Of two columns that would have one name here, one at least has a name that is cut. */
static void
check_cut_name(const CdcTableDef *def, uint32 column, StringInfo reasons)
{
	char *name;

	if (!util_name_is_long(schema_server_string(def->columns[column].name)))
		return;
	name = schema_column_name(def->columns[column].name);
	for (uint32 i = 0; i < def->ncolumns; i++)
	{
		if (i != column && strcmp(schema_column_name(def->columns[i].name), name) == 0)
			add_reason(reasons, "Columns \"%s\" and \"%s\" would both be called \"%s\".",
			           schema_server_string(def->columns[column].name), schema_server_string(def->columns[i].name), name);
	}
}

static void
check_names(const CdcTableDef *def, StringInfo reasons)
{
	for (uint32 i = 0; i < def->ncolumns; i++)
	{
		if (SystemAttributeByName(schema_column_name(def->columns[i].name)) != NULL)
			add_reason(reasons, "Column \"%s\" has the name of a system column of PostgreSQL.",
			           schema_server_string(def->columns[i].name));
		check_cut_name(def, i, reasons);
	}
	if (def->ncolumns > MaxHeapAttributeNumber)
		add_reason(reasons, "The table has %u columns; PostgreSQL allows %d.", def->ncolumns,
		           MaxHeapAttributeNumber);
}

/* Foreign keys whose doings are not logged. */
static void
check_foreign_keys(const CdcTableDef *def, const SchemaTypeOptions *options, StringInfo reasons)
{
	for (uint32 i = 0; (def->known & CDC_FOREIGN_UNLOGGED) && i < def->nforeign; i++)
	{
		const CdcForeignKeyDef *key = &def->foreign_keys[i];

		if (options->refuse_cascades)
			add_reason(reasons, "Foreign key \"%s\" changes rows of the table, and the source does not log that.",
			           schema_server_string(key->name));
		else if (options->make_cascades && !key->is_exact)
			add_reason(reasons,
			           "Foreign key \"%s\" changes rows of the table, the source does not log that, and its "
			           "columns are texts that are equal in more ways than one.",
			           schema_server_string(key->name));
		else if (options->make_cascades && key->ncolumns > INDEX_MAX_KEYS)
			add_reason(reasons, "Foreign key \"%s\" has %u columns.", schema_server_string(key->name), key->ncolumns);
	}
}

/*
 * See table.h. When several things are wrong, the SQLSTATE and the hint are
 * those of the first kind in the order: key, types, names; the detail lists
 * all.
 */
bool
schema_def_is_supported(const CdcTableDef *def, const SchemaTypeOptions *options, int *sqlstate,
                        char **detail, char **hint)
{
	StringInfoData reasons;

	initStringInfo(&reasons);
	*sqlstate = 0;
	*hint = NULL;

	check_key(def, &reasons);
	if (reasons.len > 0)
	{
		*sqlstate = CDC_ERRCODE_NO_KEY;
		*hint = "Give the table a primary key over whole columns, or leave it out of the pipeline.";
	}

	check_foreign_keys(def, options, &reasons);
	if (reasons.len > 0 && *sqlstate == 0)
	{
		*sqlstate = CDC_ERRCODE_UNSUPPORTED_EVENT;
		*hint = "See option \"cascades\"; or give the columns a collation that ends in _bin, or drop the "
		        "foreign key on the source.";
	}

	for (uint32 i = 0; i < def->ncolumns; i++)
	{
		char *why;

		if (schema_target_type_sql(def, &def->columns[i], options, &why) == NULL)
			add_reason(&reasons, "Column \"%s\": %s.", schema_server_string(def->columns[i].name),
			           why);
	}
	if (reasons.len > 0 && *sqlstate == 0)
	{
		*sqlstate = ERRCODE_DATATYPE_MISMATCH;
		*hint = options->overrides != NIL
		            ? "Change option \"column_types\", or the column's type or character set on the "
		              "source, or leave the table out of the pipeline."
		            : "Change the column's type or character set on the source, or leave the table out "
		              "of the pipeline.";
	}

	check_names(def, &reasons);
	if (reasons.len > 0 && *sqlstate == 0)
	{
		*sqlstate = ERRCODE_INVALID_NAME;
		*hint = "Rename the column or table on the source, or leave the table out of the pipeline.";
	}

	*detail = reasons.len > 0 ? reasons.data : NULL;
	if (*hint != NULL)
		*hint = pstrdup(*hint);
	return reasons.len == 0;
}

Form_pg_attribute
schema_find_attribute(TupleDesc desc, const char *name)
{
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped && strcmp(NameStr(att->attname), name) == 0)
			return att;
	}
	return NULL;
}

/* Attributes that the source lacks must get along without a value. */
void
schema_check_other_attributes(TupleDesc desc, const bool *given, StringInfo reasons)
{
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped || given[i] || !att->attnotnull || att->atthasdef ||
		    att->attidentity != '\0')
			continue;
		add_reason(
		    reasons,
		    "Column \"%s\" is NOT NULL without a default, and the source has no such column.",
		    NameStr(att->attname));
	}
}

/* The target's primary key, when it has one, must be the source's key: rows are found by it. */
void
schema_check_primary_key(Relation rel, int nkey, const AttrNumber *key, StringInfo reasons)
{
	HeapTuple tuple;
	Form_pg_index index;
	bool same;

	list_free(RelationGetIndexList(rel));
	if (!OidIsValid(rel->rd_pkindex))
		return;
	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(rel->rd_pkindex));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for index %u", rel->rd_pkindex);
	index = (Form_pg_index) GETSTRUCT(tuple);

	same = index->indnkeyatts == nkey;
	for (int i = 0; i < nkey && same; i++)
	{
		bool found = false;

		for (int j = 0; j < index->indnkeyatts && !found; j++)
			found = index->indkey.values[j] == key[i];
		same = found && key[i] != 0;
	}
	if (!same)
		add_reason(reasons, "The primary key \"%s\" does not have the columns of the source's key.",
		           get_rel_name(rel->rd_pkindex));
	ReleaseSysCache(tuple);
}

/* What a plain mapping comes to. */
static void
check_target(const SchemaTable *table, Relation rel, StringInfo reasons)
{
	AttrNumber *key = palloc(sizeof(AttrNumber) * Max(table->nkey, 1));

	for (int i = 0; i < table->nkey; i++)
		key[i] = table->columns[table->key[i]].attnum;
	schema_check_primary_key(rel, table->nkey, key, reasons);
	pfree(key);
}

static void
check_others(const SchemaTable *table, TupleDesc desc, StringInfo reasons)
{
	bool *given = palloc0(sizeof(bool) * Max(desc->natts, 1));

	for (int i = 0; i < table->ncolumns; i++)
	{
		if (table->columns[i].attnum > 0)
			given[table->columns[i].attnum - 1] = true;
	}
	schema_check_other_attributes(desc, given, reasons);
	pfree(given);
}

void
schema_collect_key(const CdcTableDef *def, SchemaTable *table)
{
	table->key = palloc0(Max(def->nkey, 1) * sizeof(int));
	table->nkey = (int) def->nkey;
	for (uint32 i = 0; i < def->ncolumns; i++)
	{
		uint16 part = def->columns[i].key_part;

		if (part >= 1 && part <= def->nkey)
			table->key[part - 1] = (int) i;
	}
}

/*
 * Map a source table to a relation, see table.h. A generated column of the
 * target takes no value; it is accepted only for a column that the source
 * generates too. When the target is an ordinary column, a generated column's
 * value is written like any other.
 */
SchemaTable *
schema_table_open(const CdcTableDef *def, Relation rel, const SchemaPolicies *policies,
                  MemoryContext cxt)
{
	MemoryContext old = MemoryContextSwitchTo(cxt);
	TupleDesc desc = RelationGetDescr(rel);
	SchemaTable *table = palloc0(sizeof(SchemaTable));
	StringInfoData missing, reasons;

	initStringInfo(&missing);
	initStringInfo(&reasons);
	table->def = def;
	table->relid = RelationGetRelid(rel);
	table->natts = desc->natts;
	table->ncolumns = (int) def->ncolumns;
	table->columns = palloc0(Max(def->ncolumns, 1) * sizeof(SchemaColumn));
	schema_collect_key(def, table);

	for (uint32 i = 0; i < def->ncolumns; i++)
	{
		const CdcColumnDef *column = &def->columns[i];
		char *name = schema_column_name(column->name);
		Form_pg_attribute att = schema_find_attribute(desc, name);
		char *why;

		table->columns[i].def = column;
		if (att == NULL && column->left_out && column->key_part == 0)
			continue;			/* the pipeline's options leave it out */
		if (att == NULL)
			appendStringInfo(&missing, "%s\"%s\"", missing.len > 0 ? ", " : "", name);
		else if (att->attgenerated == '\0')
		{
			if (!schema_column_prepare(&table->columns[i], column, att, cxt, &why) ||
			    (column->key_part != 0 &&
			     !schema_column_is_exact(&table->columns[i], att, &why)))
				add_reason(&reasons, "%s", why);
			else
				schema_column_set_policies(&table->columns[i], policies, att->attnotnull);
			if (att->atttypid >= FirstNormalObjectId && rel->rd_rel->relowner != GetUserId())
				table->columns[i].run_as = rel->rd_rel->relowner;
		}
		else if (!column->is_generated)
			add_reason(&reasons, "Column \"%s\" is generated in the target, but not in the source.",
			           name);
	}

	if (missing.len > 0)
		add_reason(&reasons, "Columns missing in the target: %s.", missing.data);
	else
		check_target(table, rel, &reasons);
	check_others(table, desc, &reasons);

	if (reasons.len > 0)
		ereport(
		    ERROR,
		    (errcode(ERRCODE_DATATYPE_MISMATCH),
		     errmsg("table \"%s.%s\" does not fit source table \"%s.%s\"",
		            get_namespace_name(RelationGetNamespace(rel)), RelationGetRelationName(rel),
		            schema_server_string(def->schema), schema_server_string(def->name)),
		     errdetail_internal("%s", reasons.data),
		     errhint(
		         "Change the target with ALTER TABLE, or drop it and let cdc_bridge create it."),
		     errtable(rel)));
	pfree(missing.data);
	pfree(reasons.data);
	MemoryContextSwitchTo(old);
	return table;
}
