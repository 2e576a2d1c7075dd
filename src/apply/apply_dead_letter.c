/*-------------------------------------------------------------------------
 *
 * apply_dead_letter.c
 *	  A change that cannot be applied, kept with everything it said.
 *
 * NOTES
 *	  Its row images are stored as jsonb, source column name -> value. A value
 *	  stands as text in the form that docs/types.md calls the text form; null is
 *	  null; a column that the image leaves out is left out. What has no text (binary
 *	  strings, geometries, vectors, text with NULs or bytes that are no characters,
 *	  and what could not be decoded at all) stands as {"hex": "..."}: the bytes of
 *	  the value, for the latter as they were in the log. A document that the log
 *	  gives as differences stands as {"json_diff": "[...]"}: their JSON as text.
 *
 *	  The error keeps its message; the detail of a violated constraint would show
 *	  values of other rows too, and is left out as everywhere else.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/snapmgr.h"

#include "apply/apply_private.h"
#include "binlog/json_diff.h"
#include "util/util_arena.h"

static JsonbValue
json_string(const char *data, Size len)
{
	JsonbValue	value = {.type = jbvString};

	value.val.string.val = unconstify(char *, data);
	value.val.string.len = (int) len;
	return value;
}

/* A member with one member {"hex": ...} as its value. */
static void
push_hex(JsonbParseState **state, const char *data, Size len)
{
	JsonbValue	key = json_string("hex", 3);
	JsonbValue	value;
	char	   *hex;

	/* what is too long to be written in hex digits is cut: its length still tells */
	len = Min(len, JENTRY_OFFLENMASK / 4);
	hex = palloc(len * 2 + 1);
	value = json_string(hex, hex_encode(data, len, hex));
	pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
	pushJsonbValue(state, WJB_KEY, &key);
	pushJsonbValue(state, WJB_VALUE, &value);
	pushJsonbValue(state, WJB_END_OBJECT, NULL);
}

/* A document in parts: a member with one member {"json_diff": ...}, whose text is JSON, as its value. */
static void
push_diff(JsonbParseState **state, const CdcField *field)
{
	JsonbValue	key = json_string("json_diff", 9);
	JsonbValue	value;
	CdcError	err;
	CdcBuf		text;

	cdc_buf_init(&text, util_context_allocator(CurrentMemoryContext), JENTRY_OFFLENMASK / 2);
	if (binlog_json_diff_to_text(field->data, field->len, &text, &err) != CDC_OK ||
		!pg_verify_mbstr(PG_UTF8, text.data, (int) text.len, true))
	{
		push_hex(state, (const char *) field->data, field->len);
		return;
	}
	value = json_string(text.data, text.len);
	pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
	pushJsonbValue(state, WJB_KEY, &key);
	pushJsonbValue(state, WJB_VALUE, &value);
	pushJsonbValue(state, WJB_END_OBJECT, NULL);
}

static void
push_text(JsonbParseState **state, const char *data, Size len)
{
	JsonbValue	value = json_string(data, len);

	if (len > JENTRY_OFFLENMASK / 2)
		push_hex(state, data, len);
	else
		pushJsonbValue(state, WJB_VALUE, &value);
}

static void
push_cell(JsonbParseState **state, const CdcColumnDef *column, const CdcCell *cell)
{
	JsonbValue	null = {.type = jbvNull};
	uint32		len;
	const char *text;

	switch (cell->kind)
	{
		case CDC_CELL_NULL:
			pushJsonbValue(state, WJB_VALUE, &null);
			break;
		case CDC_CELL_TEXT:
			if (cell->invalid == 0 && pg_verify_mbstr(PG_UTF8, cell->v.data, (int) cell->len, true))
				push_text(state, cell->v.data, cell->len);
			else
				push_hex(state, cell->v.data, cell->len);
			break;
		case CDC_CELL_BYTES:
		case CDC_CELL_BIT:
		case CDC_CELL_GEOMETRY:
		case CDC_CELL_VECTOR:
			push_hex(state, cell->v.data, cell->len);
			break;
		default:
			text = schema_cell_text(column, cell, &len);
			push_text(state, text, len);
	}
}

static Datum
image_to_jsonb(Apply *apply, const CdcChange *change, const CdcField *image)
{
	JsonbParseState *state = NULL;
	JsonbValue *result;

	if (image == NULL)
		return (Datum) 0;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	for (uint32 i = 0; i < change->table->ncolumns; i++)
	{
		const CdcColumnDef *column = &change->table->columns[i];
		const CdcField *field = &image[i];
		JsonbValue	key;
		CdcCell		cell;
		CdcError	err = {0};

		if (field->state == CDC_FIELD_ABSENT || column->name == NULL)
			continue;
		key = json_string(column->name, strlen(column->name));
		pushJsonbValue(&state, WJB_KEY, &key);
		if (field->state == CDC_FIELD_PARTIAL)
			push_diff(&state, field);
		else if (change->cell(column, field, &apply->arena, &cell, &err) != CDC_OK)
			push_hex(&state, (const char *) field->data, field->len);
		else
			push_cell(&state, column, &cell);
	}
	result = pushJsonbValue(&state, WJB_END_OBJECT, NULL);
	return JsonbPGetDatum(JsonbValueToJsonb(result));
}

void
apply_dead_letter(Apply *apply, ApplyTable *table, const CdcChange *change, const ErrorData *edata)
{
	static const char *const operations[] = {
		[CDC_INSERT] = "insert",[CDC_UPDATE] = "update",[CDC_DELETE] = "delete"
	};
	/* who sees dead letters sees rows */
	const UtilErrorInfo *error = util_error_info(edata);
	CatalogDeadLetter letter = {
		.pipeline_id = apply->pipeline_id,
		.table_id = table->table_id,
		.position = apply->txn_start,
		.gtid = apply->txn_gtid,
		.action = apply->txn_action,
		.operation = operations[change->op],
		.error = *util_error_info_with_values(edata),
	};
	char		position[CDC_POSITION_TEXT_MAX];

	letter.before = image_to_jsonb(apply, change, change->before);
	letter.after = image_to_jsonb(apply, change, change->after);
	PushActiveSnapshot(GetTransactionSnapshot());
	catalog_dead_letter_insert(&letter);
	PopActiveSnapshot();

	apply_table_count_dead_letter(apply, table);
	cdc_position_format(&apply->txn_start, position);
	ereport(LOG,
			(errcode(error->sqlstate),
			 errmsg("change of source table \"%s.%s\" of pipeline \"%s\" became a dead letter: %s",
					table->schema, table->name, apply->pipeline_name, error->message),
			 errdetail("It is change " INT64_FORMAT " of the source transaction at %s.",
					   apply->txn_action, position),
			 errhint("See the view cdc_dead_letters.")));
}
