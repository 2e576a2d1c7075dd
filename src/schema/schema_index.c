/*-------------------------------------------------------------------------
 *
 * schema_index.c
 *	  Indexes of a source table -> indexes of its target.
 *
 * NOTES
 *	  The target's rows come from the stream alone, so an index here is for
 *	  reading; none may ever keep a row of the source out. Two things could:
 *
 *	  A unique index may be built only when values that the source takes for
 *	  different are different here too. The other way round does no harm: where
 *	  the source's collation is blind to case, accents or blanks at the end, its
 *	  unique index is the narrower one. What can make two values one are the
 *	  policies for values without a form, a prefix (the rest of the value
 *	  counts here, so the index would be another), and an enum or set with an
 *	  empty label (also the form of no label at all).
 *
 *	  A row of a b-tree has at most a third of a page. So the longest values
 *	  that the columns can have must fit; an index over longer ones is left
 *	  out, whatever lengths the present values have. A part that is a prefix is
 *	  indexed as a whole, if the column is short enough for that.
 *
 *	  Everything that is not a plain list of columns has no counterpart:
 *	  expressions mean something else here, a full-text index here needs a
 *	  language. Indexes that the source's planner does not use are not made
 *	  either. A spatial index becomes a GiST index when the target's type is
 *	  PostGIS's.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "binlog/charset.h"
#include "schema/schema_private.h"
#include "schema/table.h"
#include "util/util_name.h"

/*
 * Bytes of values that a row of a b-tree takes in any case: 2704 less the row's
 * header with its null bits. Each value may need a length word and alignment.
 */
#define MAX_ROW_BYTES 2688
#define VALUE_OVERHEAD 11

/* Stands for columns without a bound. */
#define UNBOUNDED PG_UINT32_MAX

static const CdcColumnDef *
find_column(const CdcTableDef *def, const char *name)
{
	for (uint32 i = 0; name != NULL && i < def->ncolumns; i++)
	{
		if (pg_strcasecmp(def->columns[i].name, name) == 0)
			return &def->columns[i];
	}
	return NULL;
}

/* Most bytes of one character of the column once it is UTF-8. */
static uint32
character_bytes(const CdcColumnDef *column)
{
	static const char *const four[] = {"utf8mb4", "utf16", "utf16le", "utf32", "gb18030"};
	const char *name = binlog_charset_name(column->collation);

	for (size_t i = 0; i < lengthof(four); i++)
	{
		if (name == NULL || strcmp(name, four[i]) == 0)
			return 4;
	}
	return 3;
}

/* Bytes of the longest label of an enum, of all labels of a set. */
static uint32
label_bytes(const CdcColumnDef *column)
{
	uint64 sum = 0;
	uint32 longest = 0;

	for (uint32 i = 0; i < column->nlabels; i++)
	{
		longest = Max(longest, column->labels[i].len);
		sum += column->labels[i].len + 1;
	}
	return column->type == CDC_TYPE_SET ? (uint32) Min(sum, UNBOUNDED) : longest;
}

/* Most bytes of a value of the column in the target's type; UNBOUNDED when there is no useful bound. */
static uint32
value_bytes(const CdcColumnDef *column)
{
	switch (column->type)
	{
		case CDC_TYPE_TINYINT:
		case CDC_TYPE_SMALLINT:
		case CDC_TYPE_MEDIUMINT:
		case CDC_TYPE_INT:
		case CDC_TYPE_FLOAT:
		case CDC_TYPE_DOUBLE:
		case CDC_TYPE_YEAR:
		case CDC_TYPE_DATE:
		case CDC_TYPE_DATETIME:
		case CDC_TYPE_TIMESTAMP:
			return 8;
		case CDC_TYPE_BIGINT:
		case CDC_TYPE_TIME:
		case CDC_TYPE_BIT:
		case CDC_TYPE_UUID:
			return 24;
		case CDC_TYPE_INET4:
		case CDC_TYPE_INET6:
			return 24;
		case CDC_TYPE_DECIMAL:
			return 16 + column->precision;
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
			return column->length <= MAX_ROW_BYTES ? column->length * character_bytes(column)
			                                       : UNBOUNDED;
		case CDC_TYPE_BINARY:
		case CDC_TYPE_VARBINARY:
			return column->length;
		case CDC_TYPE_TEXT:
		case CDC_TYPE_BLOB:
			if (column->type_text != NULL && pg_strncasecmp(column->type_text, "tiny", 4) == 0)
				return column->type == CDC_TYPE_TEXT ? 255 * 3 : 255;
			return UNBOUNDED;
		case CDC_TYPE_ENUM:
		case CDC_TYPE_SET:
			return label_bytes(column);
		default:
			return UNBOUNDED;
	}
}

/* Why two values that differ at the source could be one here; NULL: they cannot. */
static char *
why_not_exact(const CdcColumnDef *column, const SchemaPolicies *policies)
{
	bool is_text = false;
	const char *option = NULL;

	switch (column->type)
	{
		case CDC_TYPE_ENUM:
		case CDC_TYPE_SET:
			for (uint32 i = 0; i < column->nlabels; i++)
			{
				if (column->labels[i].len == 0)
					return psprintf("column \"%s\" has an empty label, and no label reads the same",
					                schema_server_string(column->name));
			}
			is_text = true;
			break;
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
		case CDC_TYPE_TEXT:
			is_text = true;
			break;
		default:
			break;
	}
	if (column->key_part != 0)
		return NULL; /* has no policies */
	if (is_text && policies->nul_bytes != SCHEMA_POLICY_ERROR)
		option = "nul_bytes";
	else if (is_text && policies->invalid_bytes != SCHEMA_POLICY_ERROR)
		option = "invalid_bytes";
	else if ((column->type == CDC_TYPE_DATE || column->type == CDC_TYPE_DATETIME ||
	          column->type == CDC_TYPE_TIMESTAMP) &&
	         policies->zero_date != SCHEMA_POLICY_ERROR &&
	         policies->zero_date != SCHEMA_POLICY_NULL)
		option = "zero_date";
	return option == NULL ? NULL
	                      : psprintf("option \"%s\" can make two values of column \"%s\" one",
	                                 option, schema_server_string(column->name));
}

/* Is the source's index one that keeps its columns in order, or for equality? */
static bool
is_plain_kind(const CdcIndexDef *index)
{
	return pg_strcasecmp(index->type_text, "BTREE") == 0 ||
	       pg_strcasecmp(index->type_text, "HASH") == 0;
}

static bool
is_spatial_kind(const CdcIndexDef *index)
{
	return pg_strcasecmp(index->type_text, "SPATIAL") == 0 ||
	       pg_strcasecmp(index->type_text, "RTREE") == 0;
}

/* Take over the columns; sets reason when one of the parts is not a column. */
static void
take_columns(SchemaIndex *result, const CdcTableDef *def)
{
	const CdcIndexDef *index = result->def;

	result->columns = palloc0(sizeof(CdcColumnDef *) * Max(index->nparts, 1));
	for (uint32 i = 0; i < index->nparts; i++)
	{
		const CdcIndexPart *part = &index->parts[i];

		result->columns[i] = find_column(def, part->column);
		if (result->columns[i] == NULL)
		{
			result->reason = part->column == NULL
			                     ? pstrdup("it is over an expression of the source")
			                     : psprintf("column \"%s\" is not in the table's definition",
			                                schema_server_string(part->column));
			return;
		}
	}
}

/* A b-tree: see NOTES. */
static void
check_ordered(SchemaIndex *result, const SchemaTypeOptions *options)
{
	const CdcIndexDef *index = result->def;
	uint64 bytes = 0;

	if (index->nparts > INDEX_MAX_KEYS)
	{
		result->reason = psprintf("it has %u columns, and PostgreSQL allows %d", index->nparts,
		                          INDEX_MAX_KEYS);
		return;
	}
	for (uint32 i = 0; i < index->nparts; i++)
	{
		const CdcColumnDef *column = result->columns[i];
		uint32 value = value_bytes(column);

		if (index->is_unique && index->parts[i].prefix > 0)
			result->reason = psprintf("it is unique over the first %u characters of column \"%s\"",
			                          index->parts[i].prefix, schema_server_string(column->name));
		else if (index->is_unique)
			result->reason = why_not_exact(column, &options->policies);
		if (result->reason == NULL && value == UNBOUNDED)
			result->reason = psprintf(
			    "values of column \"%s\" can be longer than an index of PostgreSQL takes",
			    schema_server_string(column->name));
		if (result->reason != NULL)
			return;
		bytes += (uint64) value + VALUE_OVERHEAD;
	}
	if (bytes > MAX_ROW_BYTES)
		result->reason = psprintf("values of its columns can have " UINT64_FORMAT
		                          " bytes together, more than an index of PostgreSQL takes",
		                          bytes - index->nparts * VALUE_OVERHEAD);
}

SchemaIndex *
schema_index_translate(const CdcTableDef *def, const CdcIndexDef *index,
                       const SchemaTypeOptions *options)
{
	SchemaIndex *result = palloc0(sizeof(SchemaIndex));
	char *why;

	result->def = index;
	result->name = schema_server_string(index->name);
	if (!index->visible)
		result->reason = pstrdup("the source's planner does not use it (invisible or ignored)");
	else if (pg_strcasecmp(index->type_text, "FULLTEXT") == 0)
		result->reason = pstrdup("it is a full-text index, which needs a language here: make a GIN "
		                         "index over to_tsvector() yourself");
	else if (!is_plain_kind(index) && !is_spatial_kind(index))
		result->reason = psprintf("nothing here is like an index of type %s",
		                          schema_server_string(index->type_text));
	if (result->reason == NULL)
		take_columns(result, def);
	if (result->reason != NULL)
		return result;

	if (is_plain_kind(index))
		check_ordered(result, options);
	else
	{
		result->is_spatial = true;
		if (index->nparts != 1 || result->columns[0]->type != CDC_TYPE_GEOMETRY ||
		    strcmp(schema_type_sql(result->columns[0], options, &why), "bytea") == 0)
			result->reason = pstrdup("it is a spatial index, and PostGIS is not in this database");
	}
	return result;
}

char *
schema_index_statement(const SchemaIndex *index, const char *schema, const char *table,
                       const char *name)
{
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfo(&sql, "CREATE %sINDEX CONCURRENTLY %s ON %s%s (",
	                 index->def->is_unique ? "UNIQUE " : "", quote_identifier(name),
	                 quote_qualified_identifier(schema, table),
	                 index->is_spatial ? " USING gist" : "");
	for (uint32 i = 0; i < index->def->nparts; i++)
		appendStringInfo(&sql, "%s%s%s", i > 0 ? ", " : "",
		                 quote_identifier(schema_column_name(index->columns[i]->name)),
		                 index->def->parts[i].descending && !index->is_spatial ? " DESC" : "");
	appendStringInfoChar(&sql, ')');
	return sql.data;
}

/*
 * Name of an index: table and source index, which in PostgreSQL share their
 * names with everything else in the schema. When that is too long, or (attempt
 * above 0) taken, it is cut and ends with a hash.
 */
char *
schema_index_name(const char *table, const char *index, int attempt)
{
	char *full = psprintf("%s_%s", table, index);

	if (attempt == 0 && !util_name_is_long(full))
		return full;
	return util_name_with_hash(full, psprintf("%s/%s/%d", table, index, attempt));
}

/* Are the columns of a relation's index those that are wanted, in the same order and direction? */
static bool
has_same_columns(const SchemaIndex *index, Relation rel, Relation candidate)
{
	TupleDesc desc = RelationGetDescr(rel);
	int n = IndexRelationGetNumberOfKeyAttributes(candidate);

	if (n != (int) index->def->nparts)
		return false;
	for (int i = 0; i < n; i++)
	{
		AttrNumber attnum = candidate->rd_index->indkey.values[i];
		Form_pg_attribute att;
		bool descending = (candidate->rd_indoption[i] & INDOPTION_DESC) != 0;

		if (attnum <= 0)
			return false;
		att = TupleDescAttr(desc, attnum - 1);
		if (strcmp(NameStr(att->attname), schema_column_name(index->columns[i]->name)) != 0)
			return false;
		/* an index over one column is as good from either end */
		if (n > 1 && !index->is_spatial && descending != index->def->parts[i].descending)
			return false;
		if (candidate->rd_indcollation[i] != InvalidOid &&
		    candidate->rd_indcollation[i] != att->attcollation)
			return false;
	}
	return true;
}

/*
 * Find an index of the relation that serves as the wanted one: valid, over all
 * rows, with the same columns, and unique if that is wanted. The caller has
 * locked the relation.
 */
char *
schema_index_find(const SchemaIndex *index, Relation rel)
{
	List *oids = RelationGetIndexList(rel);
	char *found = NULL;
	ListCell *lc;

	foreach (lc, oids)
	{
		Relation candidate = index_open(lfirst_oid(lc), AccessShareLock);
		Form_pg_index form = candidate->rd_index;

		if (form->indisvalid && form->indisready &&
		    candidate->rd_rel->relam == (index->is_spatial ? GIST_AM_OID : BTREE_AM_OID) &&
		    heap_attisnull(candidate->rd_indextuple, Anum_pg_index_indpred, NULL) &&
		    (!index->def->is_unique || (form->indisunique && form->indimmediate)) &&
		    has_same_columns(index, rel, candidate))
			found = pstrdup(RelationGetRelationName(candidate));
		index_close(candidate, AccessShareLock);
		if (found != NULL)
			break;
	}
	list_free(oids);
	return found;
}
