/*-------------------------------------------------------------------------
 *
 * format_avro.c
 *	  Debezium's envelope in Avro, in the form that readers with a schema
 *	  registry expect.
 *
 * NOTES
 *	  A document is a zero byte, the number of its schema as four bytes, the first
 *	  the most significant, and one value in Avro's binary encoding. Numbers of
 *	  schemas come from a registry, which only who writes the documents knows: it
 *	  asks cdc_format_missing_schema before each record, and tells the number by
 *	  cdc_format_schema_id. Schemas themselves are made in format_avro_schema.c;
 *	  fields are written here in their order.
 *
 *	  Every column may be null, and has null as its default, in the row's record:
 *	  so a table may get columns, lose some, and have another key, and who has the
 *	  newer schema reads what was written with the older one. Columns that the log
 *	  does not have of an old row are null there, which is not told apart from
 *	  NULL.
 *
 *	  Values that PostgreSQL writes as text are strings, which lose nothing. With
 *	  logical types dates, times, timestamps, uuid and numeric(p, s) are typed, and
 *	  what such a type has not (infinity, NaN) is refused: CDC_UNSUPPORTED.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "format/format_avro.h"

#include <string.h>

#include "format/avro.h"
#include "format/iso_time.h"

#define DAYS_1970_TO_2000 10957
#define MICROS_PER_DAY (INT64_C(86400) * 1000000)

static void
refuse(CdcBuf *out)
{
	if (out->status == CDC_OK)
		out->status = CDC_UNSUPPORTED;
}

static void
add_iso(const CdcOutColumn *column, const CdcCell *cell, CdcBuf *out)
{
	char		text[ISO_TIME_MAX];
	size_t		len;

	if (cell->kind == CDC_CELL_DAYS)
		len = iso_date((int32_t) cell->v.i, text);
	else if (column->type == CDC_OUT_TIME)
		len = iso_time(cell->v.i, text);
	else
		len = iso_timestamp(cell->v.i, column->type == CDC_OUT_TIMESTAMPTZ, text);
	avro_add_bytes(out, text, len);
}

static void
add_days(const CdcCell *cell, CdcBuf *out)
{
	if (cell->v.i == INT32_MIN || cell->v.i == INT32_MAX)
		refuse(out);
	else
		avro_add_long(out, cell->v.i + DAYS_1970_TO_2000);
}

static void
add_micros(const CdcOutColumn *column, const CdcCell *cell, CdcBuf *out)
{
	const int64_t shift = DAYS_1970_TO_2000 * MICROS_PER_DAY;

	if (column->type == CDC_OUT_TIME)
	{
		/* the end of a day is none of its moments */
		if (cell->v.i < 0 || cell->v.i >= MICROS_PER_DAY)
			refuse(out);
		else
			avro_add_long(out, cell->v.i);
	}
	else if (cell->v.i == INT64_MIN || cell->v.i > INT64_MAX - shift)
		refuse(out);			/* infinite */
	else
		avro_add_long(out, cell->v.i + shift);
}

static void
add_text(const CdcFormat *format, const CdcOutColumn *column, const char *text, size_t len, CdcBuf *out)
{
	if (!format_avro_is_decimal(format, column))
		avro_add_bytes(out, text, len);
	else if (!avro_add_decimal(out, text, len, column->scale))
		refuse(out);
}

/* A value that is not null. */
static void
add_value(const CdcFormat *format, const CdcOutColumn *column, const CdcCell *cell, CdcBuf *out)
{
	bool		logical = format->options.logical_types;

	switch (cell->kind)
	{
		case CDC_CELL_BOOL:
			avro_add_bool(out, cell->v.i != 0);
			return;
		case CDC_CELL_INT:
			avro_add_long(out, cell->v.i);
			return;
		case CDC_CELL_UINT:
			avro_add_long(out, (int64_t) cell->v.u);
			return;
		case CDC_CELL_FLOAT:
			avro_add_float(out, cell->v.f4);
			return;
		case CDC_CELL_DOUBLE:
			avro_add_double(out, cell->v.f8);
			return;
		case CDC_CELL_TEXT:
			add_text(format, column, cell->v.data, cell->len, out);
			return;
		case CDC_CELL_BYTES:
			avro_add_bytes(out, cell->v.data, cell->len);
			return;
		case CDC_CELL_DAYS:
			if (logical)
				add_days(cell, out);
			else
				add_iso(column, cell, out);
			return;
		case CDC_CELL_MICROS:
			if (logical)
				add_micros(column, cell, out);
			else
				add_iso(column, cell, out);
			return;
		case CDC_CELL_UNCHANGED:
			/* of types with a fixed length, which have no such values, it cannot be */
			if (format_avro_is_text(format, column))
				avro_add_cstring(out, format->options.unavailable);
			else
				refuse(out);
			return;
		default:
			refuse(out);
			return;
	}
}

static void
add_row(const CdcFormat *format, const CdcOutTable *table, const CdcCell *row, CdcBuf *out)
{
	avro_add_branch(out, row != NULL);
	for (uint32_t i = 0; row != NULL && i < table->ncolumns; i++)
	{
		bool		is_there = row[i].kind != CDC_CELL_NULL && row[i].kind != CDC_CELL_ABSENT;

		if (table->columns[i].is_list)
			refuse(out);
		avro_add_branch(out, is_there);
		if (is_there)
			add_value(format, &table->columns[i], &row[i], out);
	}
}

static void
add_optional_cstring(const char *text, CdcBuf *out)
{
	avro_add_branch(out, text != NULL);
	if (text != NULL)
		avro_add_cstring(out, text);
}

static void
add_optional_long(bool is_there, int64_t value, CdcBuf *out)
{
	avro_add_branch(out, is_there);
	if (is_there)
		avro_add_long(out, value);
}

static void
add_nanos(int64_t micros, CdcBuf *out)
{
	bool		fits = micros <= INT64_MAX / 1000 && micros >= INT64_MIN / 1000;

	add_optional_long(fits, fits ? micros * 1000 : 0, out);
}

static void
add_times(int64_t micros, CdcBuf *out)
{
	add_optional_long(true, micros / 1000, out);
	add_optional_long(true, micros, out);
	add_nanos(micros, out);
}

static void
add_source(const CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	const CdcOutTxn *txn = record->txn;
	const CdcOutTable *table = record->table;
	int64_t		micros = format_time(record);
	CdcBuf		text;

	avro_add_cstring(out, format->options.version);
	avro_add_cstring(out, "postgresql");
	avro_add_cstring(out, format->options.server_name);
	avro_add_long(out, micros / 1000);
	add_optional_cstring(record->of_copy ? "true" : "false", out);
	avro_add_cstring(out, format->options.database);
	cdc_buf_init(&text, out->allocator, 0);
	format_add_sequence(record, &text);
	avro_add_branch(out, true);
	avro_add_bytes(out, text.data, text.len);
	if (text.status != CDC_OK && out->status == CDC_OK)
		out->status = text.status;
	cdc_buf_free(&text);
	add_optional_long(true, micros, out);
	add_nanos(micros, out);
	avro_add_cstring(out, table != NULL ? table->schema : "");
	avro_add_cstring(out, table != NULL ? table->name : "");
	add_optional_long(txn != NULL, txn != NULL ? (int64_t) txn->xid : 0, out);
	add_optional_long(true, (int64_t) record->lsn, out);
	add_optional_long(false, 0, out);	/* xmin */
	add_optional_cstring(txn != NULL ? txn->origin : NULL, out);
	add_optional_long(txn != NULL && txn->is_streamed, record->xid, out);
	add_optional_long(true, (int64_t) record->order, out);
}

/* "740:27440072", without quotes. */
static void
add_txn_id(const CdcOutTxn *txn, CdcBuf *out)
{
	CdcBuf		text;

	cdc_buf_init(&text, out->allocator, 0);
	format_add_txn_id(txn, &text);
	if (text.status == CDC_OK)
		avro_add_bytes(out, text.data + 1, text.len - 2);
	else if (out->status == CDC_OK)
		out->status = text.status;
	cdc_buf_free(&text);
}

static void
add_transaction_block(const CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	bool		is_there = format->options.transaction && record->txn != NULL;

	avro_add_branch(out, is_there);
	if (!is_there)
		return;
	add_txn_id(record->txn, out);
	avro_add_long(out, (int64_t) record->order);
	add_optional_long(record->table_order != 0, (int64_t) record->table_order, out);
}

static void
add_change(const CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	bool		is_truncate = record->kind == CDC_RECORD_TRUNCATE;

	add_row(format, record->table, is_truncate ? NULL : record->before, out);
	add_row(format, record->table, is_truncate ? NULL : record->after, out);
	add_source(format, record, out);
	avro_add_cstring(out, format_op_letter(record));
	add_times(record->now_us, out);
	add_transaction_block(format, record, out);
	avro_add_branch(out, is_truncate);
	if (is_truncate)
		avro_add_bool(out, record->cascade);
	avro_add_branch(out, is_truncate);
	if (is_truncate)
		avro_add_bool(out, record->restart_identity);
	avro_add_branch(out, is_truncate && record->root_name != NULL);
	if (is_truncate && record->root_name != NULL)
	{
		avro_add_cstring(out, record->root_schema);
		avro_add_cstring(out, record->root_name);
	}
}

static void
add_message(const CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	avro_add_cstring(out, format_op_letter(record));
	add_times(record->now_us, out);
	add_source(format, record, out);
	add_transaction_block(format, record, out);
	add_optional_cstring(record->prefix, out);
	avro_add_branch(out, true);
	avro_add_bytes(out, record->content, record->content_len);
}

/* What is told of the table is the JSON that debezium-json has. */
static void
add_schema_change(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	CdcBuf		text;

	add_source(format, record, out);
	avro_add_long(out, record->now_us / 1000);
	add_optional_cstring(format->options.database, out);
	add_optional_cstring(record->table->schema, out);
	add_optional_cstring(record->schema_change->command, out);
	cdc_buf_init(&text, out->allocator, 0);
	cdc_buf_add_char(&text, '{');
	format_add_table_changes(format, record, &text);
	cdc_buf_add_char(&text, '}');
	if (text.status != CDC_OK && out->status == CDC_OK)
		out->status = text.status;
	avro_add_bytes(out, text.data, text.len);
	cdc_buf_free(&text);
	add_transaction_block(format, record, out);
}

static void
add_counts(const CdcOutTxn *txn, CdcBuf *out)
{
	if (txn->ncounts > 0)
		avro_add_long(out, txn->ncounts);
	for (uint32_t i = 0; i < txn->ncounts; i++)
	{
		size_t		schema = strlen(txn->counts[i].schema);
		size_t		name = strlen(txn->counts[i].name);

		avro_add_long(out, (int64_t) (schema + 1 + name));
		cdc_buf_add(out, txn->counts[i].schema, schema);
		cdc_buf_add_char(out, '.');
		cdc_buf_add(out, txn->counts[i].name, name);
		avro_add_long(out, (int64_t) txn->counts[i].count);
	}
	avro_add_long(out, 0);
}

static void
add_mark(const CdcRecord *record, CdcBuf *out)
{
	const CdcOutTxn *txn = record->txn;
	bool		ends = record->kind == CDC_RECORD_COMMIT || record->kind == CDC_RECORD_PREPARE;

	avro_add_cstring(out, format_status_text(record->kind));
	add_txn_id(txn, out);
	avro_add_long(out, format_time(record) / 1000);
	add_optional_long(ends, (int64_t) txn->nchanges, out);
	avro_add_branch(out, ends);
	if (ends)
		add_counts(txn, out);
	add_optional_cstring(txn->gid, out);
	add_optional_long(record->kind == CDC_RECORD_STREAM_ABORT, record->xid, out);
}

/* The zero byte and the schema's number. */
static void
add_frame(uint32_t id, bool is_known, CdcBuf *out)
{
	uint8_t		frame[5] = {0, (uint8_t) (id >> 24), (uint8_t) (id >> 16), (uint8_t) (id >> 8), (uint8_t) id};

	if (is_known)
		cdc_buf_add(out, frame, sizeof(frame));
	else
		refuse(out);
}

static void
avro_value(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out)
{
	const CdcFormatCached *schemas = format_avro_schemas(format, record);

	(void) part;
	add_frame(schemas->value_id, schemas->value_id_known, out);
	switch (record->kind)
	{
		case CDC_RECORD_CHANGE:
		case CDC_RECORD_TRUNCATE:
			add_change(format, record, out);
			break;
		case CDC_RECORD_MESSAGE:
			add_message(format, record, out);
			break;
		case CDC_RECORD_SCHEMA:
			add_schema_change(format, record, out);
			break;
		default:
			add_mark(record, out);
			break;
	}
}

static bool
avro_key(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out)
{
	const CdcFormatCached *schemas;
	const CdcCell *row = format_key_row(record);

	(void) part;
	if (record->kind == CDC_RECORD_TRUNCATE || (record->kind == CDC_RECORD_CHANGE && row == NULL))
		return false;
	schemas = format_avro_schemas(format, record);
	add_frame(schemas->key_id, schemas->key_id_known, out);
	if (record->kind == CDC_RECORD_MESSAGE)
		add_optional_cstring(record->prefix, out);
	else if (record->kind == CDC_RECORD_SCHEMA)
		avro_add_cstring(out, format->options.database);
	else if (record->kind != CDC_RECORD_CHANGE)
		add_txn_id(record->txn, out);
	else
	{
		for (uint32_t i = 0; i < record->table->nkey; i++)
		{
			const CdcOutColumn *column = &record->table->columns[record->table->key[i]];
			const CdcCell *cell = &row[record->table->key[i]];

			if (column->nullable)
				avro_add_branch(out, cell->kind != CDC_CELL_NULL);
			if (!column->nullable || cell->kind != CDC_CELL_NULL)
				add_value(format, column, cell, out);
		}
	}
	return true;
}

const CdcFormatOps cdc_format_debezium_avro = {
	.name = "debezium-avro",
	.description = "Debezium's envelope in Avro, with the number of its schema in a registry",
	.is_binary = true,
	.arrays_as_text = true,
	.value = avro_value,
	.key = avro_key
};
