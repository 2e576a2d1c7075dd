/*-------------------------------------------------------------------------
 *
 * apply_reread.c
 *	  Rows that a change in part cannot make while their table is being copied:
 *	  the copy reads them again.
 *
 * NOTES
 *	  While chunks are open a row that a change names may not be there yet, and a
 *	  part of it does not make it. Its key is listed, in snapshot_deleted, so that
 *	  a chunk that was read before the change leaves it out, and in snapshot_reread
 *	  with the last such change. A snapshot worker reads the row again when the
 *	  source shows that change (snapshot_reread.c).
 *
 *	  A part of a row may come to a row that has it already, because chunks show
 *	  what the stream has not come to yet: setting a column to what it is does no
 *	  harm, and the stream's last change of it wins. Applying a difference of a
 *	  document twice does. So a difference is applied to a document of the target
 *	  only when the row was read before it: all chunks were when the table is in
 *	  CATCHUP and the stream behind its high mark, and a row that was read again was
 *	  when the stream is behind the mark that its entry has then. Else the row is
 *	  taken away and listed too. So is a row of a target that had rows of its own
 *	  (on_existing "append"): it may be an older one. Where the log has the document before, nothing of
 *	  this is needed.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/snapmgr.h"

#include "apply/apply_private.h"
#include "heap/heap_image.h"
#include "chunk/chunk.h"
#include "mysql/mysql_text.h"

/* Is the stream, in this source transaction, at that position or behind it? */
static bool
is_behind(const Apply *apply, const CdcPosition *position)
{
	int			order;

	return cdc_position_is_known(position) && cdc_position_is_known(&apply->txn_start) &&
		cdc_position_compare(&apply->txn_start, position, &order) && order >= 0;
}

bool
apply_reread_is_exact(Apply *apply, const ApplyTable *table)
{
	HeapTarget *target = table->row->target;
	const CatalogReread *entry = NULL;
	const CatalogTable *now;
	bool		exact;

	PushActiveSnapshot(GetTransactionSnapshot());
	if (table->any_reread)
		entry = catalog_reread_find(apply->pipeline_id, table->table_id, chunk_key_bytes(target, target->search));
	if (entry != NULL)
		exact = entry->is_read && is_behind(apply, &entry->at);
	else
	{
		/* under the table's lock: who completes the copy sets the mark without it, but never another one */
		now = catalog_table_by_id(apply->pipeline_id, table->table_id);
		exact = now != NULL && now->state == CATALOG_TABLE_CATCHUP && is_behind(apply, &now->high_mark);
	}
	PopActiveSnapshot();
	return exact;
}

bool
apply_reread_is_done(Apply *apply, const ApplyTable *table)
{
	HeapTarget *target = table->row->target;
	const CatalogReread *entry = NULL;

	if (!table->any_reread)
		return false;
	PushActiveSnapshot(GetTransactionSnapshot());
	entry = catalog_reread_find(apply->pipeline_id, table->table_id, chunk_key_bytes(target, target->search));
	PopActiveSnapshot();
	return entry != NULL && entry->is_read;
}

/* --------------------------------------------------------- how the source finds the row */

static char *
hex_text(const char *data, uint32 len)
{
	static const char digits[] = "0123456789ABCDEF";
	char	   *text = palloc(2 * len + 1);

	for (uint32 i = 0; i < len; i++)
	{
		text[2 * i] = digits[(unsigned char) data[i] >> 4];
		text[2 * i + 1] = digits[data[i] & 15];
	}
	text[2 * len] = '\0';
	return text;
}

static char *
number_text(const char *data, uint32 len, bool little_endian)
{
	uint64		value = 0;

	for (uint32 i = 0; i < len; i++)
		value = value << 8 | (unsigned char) data[little_endian ? len - 1 - i : i];
	return psprintf(UINT64_FORMAT, value);
}

/* A key column's value as mysql_key_value_expression gives it. */
static char *
key_text(const CdcColumnDef *column, const CdcField *field, const CdcCell *cell)
{
	uint32		len;
	const char *text;

	switch (column->type)
	{
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
			return hex_text((const char *) field->data, field->len);	/* in the column's own character set */
		case CDC_TYPE_ENUM:
		case CDC_TYPE_SET:
			return number_text((const char *) field->data, field->len, true);
		case CDC_TYPE_BIT:
			return number_text(cell->v.data, cell->len, false);
		case CDC_TYPE_FLOAT:
			return psprintf("%.17g", (double) cell->v.f4);
		case CDC_TYPE_DOUBLE:
			return psprintf("%.17g", cell->v.f8);
		case CDC_TYPE_BINARY:
		case CDC_TYPE_VARBINARY:
			return hex_text(cell->v.data, cell->len);
		default:
			if (cell->kind == CDC_CELL_TEXT)
				return pnstrdup(cell->v.data, cell->len);
			text = schema_cell_text(column, cell, &len);
			return pnstrdup(text, len);
	}
}

char *
apply_row_condition(Apply *apply, const ApplyTable *table, const CdcChange *change)
{
	MysqlFlavor flavor = change->by_mariadb ? MYSQL_FLAVOR_MARIADB : MYSQL_FLAVOR_MYSQL;
	StringInfoData sql;

	/* its fields are not as the log has them; and what the source has now may be newer than the letter */
	if (change->cell == heap_image_to_cell)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("the dead letter lacks a column that only the source could tell"),
				 errhint(APPLY_HINT_ANEW)));
	initStringInfo(&sql);
	for (uint32 i = 0; i < table->def->ncolumns; i++)
	{
		const CdcColumnDef *column = &table->def->columns[i];
		int			from = table->match[i];
		const CdcField *field = &change->after[from];
		CdcCell		cell;
		CdcError	err;
		char	   *text;

		if (column->key_part == 0)
			continue;
		if (field->state == CDC_FIELD_ABSENT && change->before == NULL)
			apply_image_throw_absent(table, (int) i);
		if (field->state == CDC_FIELD_ABSENT)
			field = &change->before[from];
		if (change->cell(&change->table->columns[from], field, &apply->arena, &cell, &err) != CDC_OK)
			heap_row_bad_cell(column, &err);
		text = key_text(column, field, &cell);
		appendStringInfo(&sql, "%s%s = %s", sql.len > 0 ? " AND " : "",
						 mysql_key_order_expression(column, flavor),
						 mysql_key_literal(column, flavor, text, (uint32) strlen(text)));
	}
	return sql.data;
}

CatalogReread *
apply_reread_make(Apply *apply, const ApplyTable *table, const CdcChange *change)
{
	CatalogReread *entry = palloc0(sizeof(CatalogReread));
	char		gtid[CDC_GTID_TEXT_MAX];

	/* MariaDB's marks contain an XA COMMIT before its rows can be seen */
	if (apply->txn_is_xa && change->by_mariadb)
		ereport(ERROR,
				(errcode(CDC_ERRCODE_UNSUPPORTED_EVENT),
				 errmsg("an XA transaction changes a row of source table \"%s.%s\" in part while the table is copied",
						table->schema, table->name),
				 errdetail("When MariaDB shows the row that an XA COMMIT left cannot be told."),
				 errhint(APPLY_HINT_ANEW)));
	entry->pipeline_id = apply->pipeline_id;
	entry->table_id = table->table_id;
	entry->condition = apply_row_condition(apply, table, change);
	entry->at = apply->txn_start;
	if (apply->txn_gtid.kind != CDC_GTID_NONE)
	{
		cdc_gtid_format(&apply->txn_gtid, gtid);
		entry->gtid = pstrdup(gtid);
	}
	return entry;
}

void
apply_reread_note(ApplyTable *table, CatalogReread *entry, bytea *key)
{
	entry->key = key;
	catalog_reread_put(entry);
	table->any_reread = true;
}
