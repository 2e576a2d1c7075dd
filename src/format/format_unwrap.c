/*-------------------------------------------------------------------------
 *
 * format_unwrap.c
 *	  Debezium JSON, unwrapped: the row alone.
 *
 * NOTES
 *	  What Debezium's ExtractNewRecordState makes of an envelope: the new row's
 *	  columns as members of the document. The option unwrap_deletes says what a
 *	  deleted row becomes, as delete.tombstone.handling.mode does; unwrap_fields
 *	  adds members of the envelope, as add.fields does: "op,source.ts_ms" gives
 *	  __op and __source_ts_ms, "lsn:POSITION" gives __POSITION.
 *
 *	  A name without a struct in front means the envelope's own member, else
 *	  that of source. What is no change of a row keeps its form; TRUNCATE too,
 *	  which the original drops.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "format/format.h"

#include <string.h>

#include "format/json_text.h"

typedef enum FieldKind
{
	FIELD_UNKNOWN,
	FIELD_OP,
	FIELD_TS_MS,
	FIELD_TS_US,
	FIELD_TS_NS,
	FIELD_TXN_ID,
	FIELD_TXN_ORDER,
	FIELD_TXN_TABLE_ORDER,
	FIELD_SOURCE				/* and a member of it */
} FieldKind;

static const struct
{
	const char *name;
	FieldKind	kind;
	const char *type;			/* of Kafka Connect */
} own_fields[] = {
	{"op", FIELD_OP, "string"},
	{"ts_ms", FIELD_TS_MS, "int64"},
	{"ts_us", FIELD_TS_US, "int64"},
	{"ts_ns", FIELD_TS_NS, "int64"},
	{"transaction.id", FIELD_TXN_ID, "string"},
	{"transaction.total_order", FIELD_TXN_ORDER, "int64"},
	{"transaction.data_collection_order", FIELD_TXN_TABLE_ORDER, "int64"},
};

#define NOWN ((int) (sizeof(own_fields) / sizeof(own_fields[0])))

/* One entry of the option's list. */
typedef struct Field
{
	FieldKind	kind;
	int			which;			/* in own_fields, or among the members of source */
	const char *name;			/* as the list has it */
	size_t		name_len;
	const char *shown;			/* what it is called in the row, without the underscores in front */
	size_t		shown_len;
} Field;

static bool
is_same(const char *text, size_t len, const char *name)
{
	return strlen(name) == len && memcmp(text, name, len) == 0;
}

static void
find_field(Field *field)
{
	const char *name = field->name;
	size_t		len = field->name_len;

	field->kind = FIELD_UNKNOWN;
	field->which = 0;
	for (int i = 0; i < NOWN; i++)
	{
		if (is_same(name, len, own_fields[i].name))
		{
			field->kind = own_fields[i].kind;
			field->which = i;
			return;
		}
	}
	if (len > 7 && memcmp(name, "source.", 7) == 0)
	{
		name += 7;
		len -= 7;
	}
	for (int i = 0; i < format_source_count(); i++)
	{
		if (is_same(name, len, format_source_name(i)))
		{
			field->kind = FIELD_SOURCE;
			field->which = i;
			return;
		}
	}
}

/* The next entry of the list, which *list then stands behind; false at its end. */
static bool
next_field(const char **list, Field *field)
{
	const char *start = *list;
	const char *end;
	const char *colon;

	if (start == NULL || *start == '\0')
		return false;
	while (*start == ' ')
		start++;
	end = start + strcspn(start, ",");
	*list = *end == ',' ? end + 1 : end;
	while (end > start && end[-1] == ' ')
		end--;
	colon = memchr(start, ':', (size_t) (end - start));
	field->name = start;
	field->name_len = (size_t) ((colon != NULL ? colon : end) - start);
	field->shown = colon != NULL ? colon + 1 : start;
	field->shown_len = (size_t) (end - field->shown);
	find_field(field);
	return true;
}

const char *
cdc_format_unknown_field(const char *fields, size_t *len)
{
	Field		field;

	while (next_field(&fields, &field))
	{
		*len = field.name_len;
		if (field.kind == FIELD_UNKNOWN || field.shown_len == 0)
			return field.name;
	}
	return NULL;
}

/* "__name", with an underscore for the point behind a struct. */
static void
add_shown(const Field *field, CdcBuf *out)
{
	cdc_buf_add_str(out, "\"__");
	for (size_t i = 0; i < field->shown_len; i++)
	{
		char		c = field->shown[i];

		if (c == '"' || c == '\\')
			cdc_buf_add_char(out, '\\');
		cdc_buf_add_char(out, c == '.' || (unsigned char) c < ' ' ? '_' : c);
	}
	cdc_buf_add_char(out, '"');
}

static void
add_field_value(CdcFormat *format, const CdcRecord *record, const Field *field, CdcBuf *out)
{
	const CdcOutTxn *txn = record->txn;

	switch (field->kind)
	{
		case FIELD_OP:
			json_add_cstring(out, format_op_letter(record));
			return;
		case FIELD_TS_MS:
			json_add_int(out, record->now_us / 1000);
			return;
		case FIELD_TS_US:
			json_add_int(out, record->now_us);
			return;
		case FIELD_TS_NS:
			json_add_nanos(out, record->now_us);
			return;
		case FIELD_TXN_ID:
			if (txn != NULL)
			{
				format_add_txn_id(txn, out);
				return;
			}
			break;
		case FIELD_TXN_ORDER:
			if (txn != NULL)
			{
				json_add_uint(out, record->order);
				return;
			}
			break;
		case FIELD_TXN_TABLE_ORDER:
			if (txn != NULL && record->table_order != 0)
			{
				json_add_uint(out, record->table_order);
				return;
			}
			break;
		case FIELD_SOURCE:
			if (format_source_is_there(record, field->which))
			{
				format_add_source_value(format, record, field->which, out);
				return;
			}
			break;
		case FIELD_UNKNOWN:
			break;
	}
	cdc_buf_add_str(out, "null");
}

static void
add_fields(CdcFormat *format, const CdcRecord *record, bool comma, CdcBuf *out)
{
	const char *list = format->options.unwrap_fields;
	Field		field;

	if (format->options.unwrap_deletes == CDC_FORMAT_DELETES_REWRITE)
	{
		cdc_buf_add_str(out, comma ? ",\"__deleted\":" : "\"__deleted\":");
		cdc_buf_add_str(out, record->op == CDC_OUT_DELETE ? "\"true\"" : "\"false\"");
		comma = true;
	}
	while (next_field(&list, &field))
	{
		if (comma)
			cdc_buf_add_char(out, ',');
		comma = true;
		add_shown(&field, out);
		cdc_buf_add_char(out, ':');
		add_field_value(format, record, &field, out);
	}
}

void
format_add_unwrap_schema(const CdcFormat *format, bool comma, CdcBuf *out)
{
	const char *list = format->options.unwrap_fields;
	Field		field;

	if (format->options.unwrap_deletes == CDC_FORMAT_DELETES_REWRITE)
	{
		if (comma)
			cdc_buf_add_char(out, ',');
		format_add_field_schema("string", true, "__deleted", out);
		comma = true;
	}
	while (next_field(&list, &field))
	{
		CdcBuf		name;

		if (comma)
			cdc_buf_add_char(out, ',');
		comma = true;
		cdc_buf_init(&name, out->allocator, 0);
		cdc_buf_add_str(&name, "__");
		for (size_t i = 0; i < field.shown_len; i++)
			cdc_buf_add_char(&name, field.shown[i] == '.' || (unsigned char) field.shown[i] < ' ' ? '_' : field.shown[i]);
		if (name.status != CDC_OK)
			out->status = name.status;
		else if (field.kind == FIELD_SOURCE)
			format_add_source_member_schema(field.which, true, name.data, out);
		else
			format_add_field_schema(own_fields[field.which].type, true, name.data, out);
		cdc_buf_free(&name);
	}
}

static bool
is_null(const CdcFormat *format, const CdcRecord *record)
{
	return record->kind == CDC_RECORD_CHANGE && record->op == CDC_OUT_DELETE && format->options.unwrap_deletes == CDC_FORMAT_DELETES_TOMBSTONE;
}

bool
cdc_format_is_tombstone(const CdcFormat *format, const CdcRecord *record, int part)
{
	(void) part;
	return format->ops == &cdc_format_debezium_unwrapped_json && is_null(format, record);
}

static int
unwrapped_parts(const CdcFormat *format, const CdcRecord *record)
{
	return record->kind == CDC_RECORD_CHANGE && record->op == CDC_OUT_DELETE && format->options.unwrap_deletes == CDC_FORMAT_DELETES_DROP ? 0 : 1;
}

static void
unwrapped_value(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out)
{
	const CdcCell *row = record->after != NULL ? record->after : record->before;
	bool		any;

	if (record->kind != CDC_RECORD_CHANGE)
	{
		format_debezium_value(format, record, part, out);
		return;
	}
	if (is_null(format, record))
	{
		cdc_buf_add_str(out, format->options.schemas ? "{\"schema\":null,\"payload\":null}" : "null");
		return;
	}
	if (format->options.schemas)
	{
		const CdcBuf *schema = format_value_schema(format, record->table);

		cdc_buf_add_str(out, "{\"schema\":");
		cdc_buf_add(out, schema->data, schema->len);
		if (schema->status != CDC_OK && out->status == CDC_OK)
			out->status = schema->status;
		cdc_buf_add_str(out, ",\"payload\":");
	}
	any = false;
	if (row == NULL)
		cdc_buf_add_char(out, '{');
	else
	{
		format_add_row(format, record->table, row, true, out);
		/* go on in the same object */
		if (out->status == CDC_OK)
		{
			out->data[--out->len] = '\0';
			any = out->data[out->len - 1] != '{';
		}
	}
	add_fields(format, record, any, out);
	cdc_buf_add_str(out, format->options.schemas ? "}}" : "}");
}

const CdcFormatOps cdc_format_debezium_unwrapped_json = {
	.name = "debezium-unwrapped-json",
	.description = "the new row alone, as Debezium's ExtractNewRecordState gives it",
	.parts = unwrapped_parts,
	.value = unwrapped_value,
	.key = format_debezium_key
};
