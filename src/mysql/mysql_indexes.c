/*-------------------------------------------------------------------------
 *
 * mysql_indexes.c
 *	  Indexes of a source table, and which of them is its key.
 *
 * NOTES
 *	  SHOW INDEX says the same as information_schema.statistics, and says it in
 *	  the server's own order: the primary key, then unique indexes, then the
 *	  others. Its first columns are the same in both families; the last ones differ:
 *	  MySQL 8.0 has Visible and Expression, MariaDB 10.6 has Ignored. So these are
 *	  told apart by family, and may be missing.
 *
 *	  Names of indexes are compared as they are: one statement lists the parts of
 *	  an index one after the other.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "mysql/mysql_server.h"

/* Fields of SHOW INDEX. */
enum
{
	IDX_NON_UNIQUE = 1,
	IDX_NAME = 2,
	IDX_COLUMN_NAME = 4,		/* NULL for an expression */
	IDX_COLLATION = 5,			/* A, D or NULL */
	IDX_SUB_PART = 7,
	IDX_TYPE = 10,
	IDX_SEEN = 13,				/* MySQL: Visible; MariaDB: Ignored */
	IDX_EXPRESSION = 14			/* MySQL */
};

static const char *
field_text(const MysqlRow *row, int field)
{
	return field < row->nfields && row->values[field] ? row->values[field] : "";
}

static CdcIndexDef *
begin_index(const MysqlRow *row, MysqlFlavor flavor)
{
	CdcIndexDef *index = palloc0(sizeof(CdcIndexDef));
	const char *seen = field_text(row, IDX_SEEN);

	index->name = pstrdup(field_text(row, IDX_NAME));
	index->type_text = pstrdup(field_text(row, IDX_TYPE));
	index->is_unique = strcmp(field_text(row, IDX_NON_UNIQUE), "0") == 0;
	index->visible = pg_strcasecmp(seen, flavor == MYSQL_FLAVOR_MARIADB ? "YES" : "NO") != 0;
	return index;
}

static void
add_part(CdcIndexDef *index, const MysqlRow *row, MysqlFlavor flavor)
{
	CdcIndexPart *parts;
	CdcIndexPart *part;

	parts = palloc(sizeof(CdcIndexPart) * (index->nparts + 1));
	if (index->nparts > 0)
		memcpy(parts, index->parts, sizeof(CdcIndexPart) * index->nparts);
	part = &parts[index->nparts++];
	memset(part, 0, sizeof(*part));
	if (row->values[IDX_COLUMN_NAME] != NULL)
		part->column = pstrdup(row->values[IDX_COLUMN_NAME]);
	else
		part->expression = pstrdup(flavor == MYSQL_FLAVOR_MARIADB ? "" : field_text(row, IDX_EXPRESSION));
	part->prefix = (uint32) Min(strtoull(field_text(row, IDX_SUB_PART), NULL, 10), PG_UINT32_MAX);
	part->descending = strcmp(field_text(row, IDX_COLLATION), "D") == 0;
	index->parts = parts;
}

/* All indexes in the server's order, as a List of CdcIndexDef. */
static List *
read_indexes(MysqlSession *session, MysqlFlavor flavor, const CdcTableDef *def)
{
	List	   *indexes = NIL;
	CdcIndexDef *index = NULL;
	MysqlRow	row;

	mysql_session_query(session, psprintf("SHOW INDEX FROM %s.%s",
										  mysql_quote_identifier(def->schema), mysql_quote_identifier(def->name)));
	while (mysql_session_fetch(session, &row))
	{
		if (row.nfields <= IDX_TYPE)
			continue;
		if (index == NULL || strcmp(index->name, field_text(&row, IDX_NAME)) != 0)
		{
			index = begin_index(&row, flavor);
			indexes = lappend(indexes, index);
		}
		/* what the server adds to the keys of a system-versioned table is no part of the current rows' */
		if (def->row_end != NULL && index->is_unique && index->nparts > 0 &&
			pg_strcasecmp(field_text(&row, IDX_COLUMN_NAME), def->row_end) == 0)
			continue;
		add_part(index, &row, flavor);
	}
	return indexes;
}

static bool
is_primary(const CdcIndexDef *index)
{
	return strcmp(index->name, "PRIMARY") == 0;
}

static CdcColumnDef *
find_column(const CdcTableDef *def, const char *name)
{
	for (uint32 i = 0; name != NULL && i < def->ncolumns; i++)
	{
		if (pg_strcasecmp(def->columns[i].name, name) == 0)
			return &def->columns[i];
	}
	return NULL;
}

/*
 * The servers take a unique key in place of a primary one only when it has
 * whole NOT NULL columns. MariaDB's HASH is a unique key over long values
 * that exists for the check only.
 */
static bool
can_be_key(const CdcTableDef *def, const CdcIndexDef *index)
{
	if (!index->is_unique || index->nparts > PG_UINT16_MAX)
		return false;
	if (strcmp(index->type_text, "HASH") == 0 &&
		def->engine != NULL && pg_strcasecmp(def->engine, "MEMORY") != 0)
		return false;
	for (uint32 i = 0; i < index->nparts; i++)
	{
		const CdcColumnDef *column = find_column(def, index->parts[i].column);

		if (column == NULL || column->nullable || (index->parts[i].prefix > 0 && !is_primary(index)))
			return false;
	}
	return true;
}

static void
take_key(CdcTableDef *def, const CdcIndexDef *key)
{
	for (uint32 i = 0; i < key->nparts; i++)
	{
		CdcColumnDef *column = find_column(def, key->parts[i].column);

		column->key_part = (uint16) (i + 1);
		column->key_prefix = (uint16) Min(key->parts[i].prefix, PG_UINT16_MAX);
	}
	def->nkey = key->nparts;
	if (is_primary(key))
		def->known |= CDC_KEY_IS_PRIMARY;
}

void
mysql_server_read_indexes(MysqlSession *session, const MysqlServerInfo *info, CdcTableDef *def)
{
	List	   *indexes = read_indexes(session, info->flavor, def);
	CdcIndexDef *kept = palloc0(sizeof(CdcIndexDef) * Max(list_length(indexes), 1));
	ListCell   *lc;

	foreach(lc, indexes)
	{
		const CdcIndexDef *index = lfirst(lc);

		if (def->nkey == 0 && can_be_key(def, index))
			take_key(def, index);
		if (!is_primary(index))
			kept[def->nindexes++] = *index;
	}
	def->indexes = kept;
}
