/*-------------------------------------------------------------------------
 *
 * format_changelog.c
 *	  changelog-json: rows with the kinds that Flink has for changes.
 *
 * NOTES
 *	  {"data", "op"}; op is +I (of a copied row, too), -U, +U or -D. An update is two
 *	  documents, -U with the old row and +U with the new one, when the log has all
 *	  of the old row (REPLICA IDENTITY FULL). When it has only the key, and the
 *	  update changed it, they are -D of the key and +I; else +U alone, which
 *	  readers with a primary key take. -D has what the log has of the row.
 *
 *	  The format has no words for TRUNCATE, schema changes, transactions and
 *	  messages. "_cdc_bridge" (format_place.c) says of which table a
 *	  change is, and where it stands.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "format/format.h"

typedef enum OldRow
{
	OLD_UNKNOWN,				/* or of no use: the key stays */
	OLD_KEY,
	OLD_WHOLE
} OldRow;

/* What is known of the row before an update. */
static OldRow
old_row(const CdcRecord *record)
{
	const CdcOutTable *table = record->table;

	if (record->kind != CDC_RECORD_CHANGE || record->op != CDC_OUT_UPDATE || record->before == NULL || record->after == NULL)
		return OLD_UNKNOWN;
	for (uint32_t i = 0; i < table->ncolumns; i++)
	{
		if (record->before[i].kind == CDC_CELL_ABSENT || record->before[i].kind == CDC_CELL_UNCHANGED)
			break;
		if (i + 1 == table->ncolumns)
			return OLD_WHOLE;
	}
	if (!format_has_key(table, record->before))
		return OLD_UNKNOWN;
	for (uint32_t i = 0; i < table->nkey; i++)
	{
		if (!format_same_cell(&record->before[table->key[i]], &record->after[table->key[i]]))
			return OLD_KEY;
	}
	return OLD_UNKNOWN;
}

static int
changelog_parts(const CdcFormat *format, const CdcRecord *record)
{
	(void) format;
	return old_row(record) == OLD_UNKNOWN ? 1 : 2;
}

static const char *
op_text(const CdcRecord *record, int part)
{
	OldRow		old;

	switch (record->op)
	{
		case CDC_OUT_INSERT:
		case CDC_OUT_READ:
			return "+I";
		case CDC_OUT_DELETE:
			return "-D";
		case CDC_OUT_UPDATE:
			break;
	}
	old = old_row(record);
	if (old == OLD_KEY)
		return part == 0 ? "-D" : "+I";
	return old == OLD_WHOLE && part == 0 ? "-U" : "+U";
}

/* The old row is the first of two documents. */
static const CdcCell *
row_of(const CdcRecord *record, int part)
{
	if (record->after == NULL || (part == 0 && old_row(record) != OLD_UNKNOWN))
		return record->before;
	return record->after;
}

static void
changelog_value(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out)
{
	const CdcCell *row;

	if (record->kind != CDC_RECORD_CHANGE)
	{
		format_plain_value(format, record, part, out);
		return;
	}
	row = row_of(record, part);
	cdc_buf_add_str(out, "{\"data\":");
	if (row != NULL)
		format_add_row(format, record->table, row, false, out);
	else
		cdc_buf_add_str(out, "{}");
	cdc_buf_add_str(out, ",\"op\":\"");
	cdc_buf_add_str(out, op_text(record, part));
	cdc_buf_add_char(out, '"');
	format_add_place(format, record, row, true, out);
	cdc_buf_add_char(out, '}');
}

static const CdcCell *
changelog_key_row(const CdcRecord *record, int part)
{
	if (part == 0 && old_row(record) != OLD_UNKNOWN)
		return format_has_key(record->table, record->before) ? record->before : NULL;
	return format_key_row(record);
}

static bool
changelog_key(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out)
{
	const CdcCell *row = changelog_key_row(record, part);

	if (row == NULL)
		return false;
	format_add_key(format, record->table, row, out);
	return true;
}

const CdcFormatOps cdc_format_changelog_json = {
	.name = "changelog-json",
	.description = "Flink's changelog: data and op, +I, -U, +U or -D",
	.numeric_as_number = true,
	.sql_times = true,
	.parts = changelog_parts,
	.value = changelog_value,
	.key_row = changelog_key_row,
	.key = changelog_key
};
