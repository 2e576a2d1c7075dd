/*-------------------------------------------------------------------------
 *
 * heap_image.c
 *	  Row images as jsonb, as dead letters keep them: written, and read back.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <arpa/inet.h>

#include "common/cryptohash.h"
#include "common/sha2.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/uuid.h"

#include "binlog/json_diff.h"
#include "heap/heap_image.h"
#include "mysql/mysql_text.h"
#include "schema/type_map.h"
#include "util/util_arena.h"
#include "util/util_error.h"
#include "util/util_name.h"

/* Longest value that jsonb may hold, with room for what is around it. */
#define TEXT_MAX (JENTRY_OFFLENMASK / 2)
#define HEX_MAX (JENTRY_OFFLENMASK / 4)

/* ------------------------------------------------------------------------ writing */

static JsonbValue
json_string(const char *data, Size len)
{
	JsonbValue	value = {.type = jbvString};

	value.val.string.val = unconstify(char *, data);
	value.val.string.len = (int) len;
	return value;
}

static void
push_member(HeapImage *image, const char *name, const char *data, Size len)
{
	JsonbValue	key = json_string(name, strlen(name));
	JsonbValue	value = json_string(data, len);

	pushJsonbValue(&image->state, WJB_KEY, &key);
	pushJsonbValue(&image->state, WJB_VALUE, &value);
}

static void
push_hex_member(HeapImage *image, const char *name, const char *data, Size len)
{
	char	   *hex = palloc(len * 2 + 1);

	push_member(image, name, hex, hex_encode(data, len, hex));
}

/* An object with the bytes as its member; "cut" when there are too many. */
static void
push_bytes(HeapImage *image, const char *name, const char *data, Size len)
{
	pushJsonbValue(&image->state, WJB_BEGIN_OBJECT, NULL);
	if (len <= HEX_MAX)
		push_hex_member(image, name, data, len);
	else
	{
		JsonbValue	key = json_string("bytes", 5);
		JsonbValue	value = {.type = jbvNumeric};

		push_hex_member(image, "cut", data, HEX_MAX);
		value.val.numeric = int64_to_numeric((int64) len);
		pushJsonbValue(&image->state, WJB_KEY, &key);
		pushJsonbValue(&image->state, WJB_VALUE, &value);
	}
	pushJsonbValue(&image->state, WJB_END_OBJECT, NULL);
}

static void
push_text(HeapImage *image, const char *data, Size len)
{
	JsonbValue	value = json_string(data, len);

	if (len > TEXT_MAX)
		push_bytes(image, "hex", data, len);
	else
		pushJsonbValue(&image->state, WJB_VALUE, &value);
}

static void
push_name(HeapImage *image, const CdcColumnDef *column)
{
	JsonbValue	key = json_string(column->name, strlen(column->name));

	pushJsonbValue(&image->state, WJB_KEY, &key);
}

void
heap_image_begin(HeapImage *image)
{
	image->state = NULL;
	pushJsonbValue(&image->state, WJB_BEGIN_OBJECT, NULL);
}

Datum
heap_image_end(HeapImage *image)
{
	return JsonbPGetDatum(JsonbValueToJsonb(pushJsonbValue(&image->state, WJB_END_OBJECT, NULL)));
}

void
heap_image_cell(HeapImage *image, const CdcColumnDef *column, const CdcCell *cell)
{
	JsonbValue	null = {.type = jbvNull};
	uint32		len;
	const char *text;

	push_name(image, column);
	switch (cell->kind)
	{
		case CDC_CELL_NULL:
			pushJsonbValue(&image->state, WJB_VALUE, &null);
			break;
		case CDC_CELL_TEXT:
			if (cell->invalid == 0 && pg_verify_mbstr(PG_UTF8, cell->v.data, (int) cell->len, true))
				push_text(image, cell->v.data, cell->len);
			else
				push_bytes(image, "hex", cell->v.data, cell->len);
			break;
		case CDC_CELL_BYTES:
		case CDC_CELL_BIT:
		case CDC_CELL_GEOMETRY:
		case CDC_CELL_VECTOR:
			push_bytes(image, "hex", cell->v.data, cell->len);
			break;
		default:
			text = schema_cell_text(column, cell, &len);
			push_text(image, text, len);
	}
}

void
heap_image_raw(HeapImage *image, const CdcColumnDef *column, const void *data, Size len)
{
	push_name(image, column);
	push_bytes(image, "raw", data, len);
}

void
heap_image_diff(HeapImage *image, const CdcColumnDef *column, const CdcField *field)
{
	CdcError	err;
	CdcBuf		text;

	cdc_buf_init(&text, util_context_allocator(CurrentMemoryContext), TEXT_MAX);
	if (field->len > HEX_MAX || binlog_json_diff_to_text(field->data, field->len, &text, &err) != CDC_OK ||
		!pg_verify_mbstr(PG_UTF8, text.data, (int) text.len, true))
	{
		heap_image_raw(image, column, field->data, field->len);
		return;
	}
	push_name(image, column);
	pushJsonbValue(&image->state, WJB_BEGIN_OBJECT, NULL);
	push_member(image, "json_diff", text.data, text.len);
	push_hex_member(image, "hex", (const char *) field->data, field->len);
	pushJsonbValue(&image->state, WJB_END_OBJECT, NULL);
}

/* --------------------------------------------------------------------- reading back */

/* What a field's bytes are, told by the first of them. */
#define FORM_TEXT 't'
#define FORM_BYTES 'b'

static _Noreturn void
throw_unreadable(const char *column, const char *why)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("column \"%s\" of the dead letter cannot be turned back into a value", column),
			 errdetail("%s", why),
			 errhint("Use cdc_discard_dead_letters() to give it up, and cdc_resync_table() to copy the table anew.")));
}

static void
set_field(CdcField *field, char form, const char *data, Size len)
{
	char	   *bytes = palloc(len + 1);

	bytes[0] = form;
	memcpy(bytes + 1, data, len);
	field->data = (const uint8_t *) bytes;
	field->len = (uint32_t) (len + 1);
	field->state = CDC_FIELD_VALUE;
}

static char *
unhex(const char *column, const JsonbValue *value, Size *len)
{
	char	   *bytes = palloc(value->val.string.len / 2 + 1);

	if (value->type != jbvString || value->val.string.len % 2 != 0)
		throw_unreadable(column, "It is not in hexadecimal digits.");
	*len = hex_decode(value->val.string.val, value->val.string.len, bytes);
	return bytes;
}

static bool
has_member(const JsonbValue *value, const char *name)
{
	return value->type == jbvBinary && JsonContainerIsObject(value->val.binary.data) &&
		getKeyJsonValueFromContainer(value->val.binary.data, name, (int) strlen(name), NULL) != NULL;
}

/* {"hex": ...}, {"json_diff": ..., "hex": ...}; all else cannot be read. */
static void
read_object(const char *column, const JsonbValue *object, CdcField *field)
{
	JsonbContainer *container = object->val.binary.data;
	JsonbValue *hex = getKeyJsonValueFromContainer(container, "hex", 3, NULL);
	char	   *bytes;
	Size		len;

	if (hex == NULL && getKeyJsonValueFromContainer(container, "raw", 3, NULL) != NULL)
		throw_unreadable(column, "Its bytes could not be decoded when they came.");
	if (hex == NULL && getKeyJsonValueFromContainer(container, "cut", 3, NULL) != NULL)
		throw_unreadable(column, "The letter holds only its beginning.");
	if (hex == NULL)
		throw_unreadable(column, "Its form is not known.");
	bytes = unhex(column, hex, &len);
	if (getKeyJsonValueFromContainer(container, "json_diff", 9, NULL) == NULL)
	{
		set_field(field, FORM_BYTES, bytes, len);
		return;
	}
	field->data = (const uint8_t *) bytes;
	field->len = (uint32_t) len;
	field->state = CDC_FIELD_PARTIAL;
}

static int
find_column(const CdcTableDef *def, const JsonbValue *name)
{
	for (uint32 i = 0; i < def->ncolumns; i++)
	{
		if (strlen(def->columns[i].name) == (size_t) name->val.string.len &&
			memcmp(def->columns[i].name, name->val.string.val, name->val.string.len) == 0)
			return (int) i;
	}
	return -1;
}

CdcField *
heap_image_fields(Datum image, const CdcTableDef *def, const List *without)
{
	CdcField   *fields = palloc0(sizeof(CdcField) * Max(def->ncolumns, 1));
	JsonbIterator *it = JsonbIteratorInit(&DatumGetJsonbP(image)->root);
	JsonbIteratorToken token;
	JsonbValue	name;

	while ((token = JsonbIteratorNext(&it, &name, true)) != WJB_DONE)
	{
		JsonbValue	value;
		int			column;

		if (token != WJB_KEY)
			continue;
		(void) JsonbIteratorNext(&it, &value, true);
		if (has_member(&value, "dropped"))
			continue;
		if (has_member(&value, "kept"))
			throw_unreadable(pnstrdup(name.val.string.val, name.val.string.len),
							 "The source has dropped the column since, and the target keeps it.");
		column = find_column(def, &name);
		if (column < 0)
			throw_unreadable(pnstrdup(name.val.string.val, name.val.string.len), "The table no longer has a column of that name.");
		if (util_name_in(without, def->columns[column].name))
			continue;
		switch (value.type)
		{
			case jbvNull:
				fields[column].state = CDC_FIELD_NULL;
				break;
			case jbvString:
				set_field(&fields[column], FORM_TEXT, value.val.string.val, value.val.string.len);
				break;
			case jbvBinary:
				read_object(def->columns[column].name, &value, &fields[column]);
				break;
			default:
				throw_unreadable(def->columns[column].name, "Its form is not known.");
		}
	}
	return fields;
}

bool
heap_image_field(Datum image, const CdcColumnDef *column, const List *without, CdcField *field)
{
	JsonbValue *value = getKeyJsonValueFromContainer(&DatumGetJsonbP(image)->root, column->name, (int) strlen(column->name), NULL);

	memset(field, 0, sizeof(*field));
	if (value == NULL || util_name_in(without, column->name))
		return false;
	if (value->type == jbvNull)
		field->state = CDC_FIELD_NULL;
	else if (value->type == jbvString)
		set_field(field, FORM_TEXT, value->val.string.val, value->val.string.len);
	else if (has_member(value, "hex") && !has_member(value, "json_diff"))
		read_object(column->name, value, field);
	else
		return false;
	return true;
}

Datum
heap_image_with_nulls(Datum source, const CdcTableDef *def, uint32 ncolumns, const int *columns)
{
	JsonbIterator *it = JsonbIteratorInit(&DatumGetJsonbP(source)->root);
	JsonbIteratorToken token;
	JsonbValue	name;
	JsonbValue	value;
	HeapImage	image;
	CdcCell		null = {.kind = CDC_CELL_NULL};

	heap_image_begin(&image);
	while ((token = JsonbIteratorNext(&it, &name, true)) != WJB_DONE)
	{
		if (token != WJB_KEY)
			continue;
		(void) JsonbIteratorNext(&it, &value, true);
		pushJsonbValue(&image.state, WJB_KEY, &name);
		pushJsonbValue(&image.state, WJB_VALUE, &value);
	}
	/* of members with one name the last stands */
	for (uint32 i = 0; i < ncolumns; i++)
		heap_image_cell(&image, &def->columns[columns[i]], &null);
	return heap_image_end(&image);
}

/* ------------------------------------------------------------- columns that change */

static void
push_wrapped(HeapImage *image, JsonbValue *name, const char *form, JsonbValue *value)
{
	JsonbValue	key = json_string(form, strlen(form));

	pushJsonbValue(&image->state, WJB_KEY, name);
	pushJsonbValue(&image->state, WJB_BEGIN_OBJECT, NULL);
	pushJsonbValue(&image->state, WJB_KEY, &key);
	pushJsonbValue(&image->state, WJB_VALUE, value);
	pushJsonbValue(&image->state, WJB_END_OBJECT, NULL);
}

static int
column_from(const CdcTableDef *after, const int *origin, int column)
{
	for (uint32 i = 0; i < after->ncolumns; i++)
	{
		if (origin[i] == column)
			return (int) i;
	}
	return -1;
}

typedef enum Pass
{
	PASS_DROPPED,				/* of members with one name the last stands: one that is dropped gives way */
	PASS_STAYING,
	PASS_KEPT					/* ... and one that nobody can write any more is not forgotten over another column of its name */
} Pass;

static void
push_reshaped(HeapImage *image, Pass pass, JsonbValue *name, JsonbValue *value, const CdcTableDef *before,
			  const CdcTableDef *after, const int *origin, const bool *keeps)
{
	int			from = has_member(value, "dropped") || has_member(value, "kept") ? -1 : find_column(before, name);
	int			to = from < 0 ? -1 : column_from(after, origin, from);
	JsonbValue	new_name;

	if (from < 0)
	{
		if (pass == (has_member(value, "kept") ? PASS_KEPT : PASS_DROPPED))
		{
			pushJsonbValue(&image->state, WJB_KEY, name);
			pushJsonbValue(&image->state, WJB_VALUE, value);
		}
		return;
	}
	if (to < 0)
	{
		if (pass == (keeps[from] ? PASS_KEPT : PASS_DROPPED))
			push_wrapped(image, name, keeps[from] ? "kept" : "dropped", value);
		return;
	}
	if (pass != PASS_STAYING)
		return;
	new_name = json_string(after->columns[to].name, strlen(after->columns[to].name));
	pushJsonbValue(&image->state, WJB_KEY, &new_name);
	pushJsonbValue(&image->state, WJB_VALUE, value);
}

/* Members of an image, in one pass. */
static void
push_pass(HeapImage *image, Pass pass, Datum source, const CdcTableDef *before, const CdcTableDef *after, const int *origin,
		  const bool *keeps)
{
	JsonbIterator *it = JsonbIteratorInit(&DatumGetJsonbP(source)->root);
	JsonbIteratorToken token;
	JsonbValue	name;
	JsonbValue	value;

	while ((token = JsonbIteratorNext(&it, &name, true)) != WJB_DONE)
	{
		if (token != WJB_KEY)
			continue;
		(void) JsonbIteratorNext(&it, &value, true);
		push_reshaped(image, pass, &name, &value, before, after, origin, keeps);
	}
}

Datum
heap_image_reshape(Datum source, const CdcTableDef *before, const CdcTableDef *after, const int *origin, const bool *keeps,
				   bool fills, CdcArena *arena)
{
	HeapImage	image;
	CdcCell		cell;

	heap_image_begin(&image);
	push_pass(&image, PASS_DROPPED, source, before, after, origin, keeps);
	push_pass(&image, PASS_STAYING, source, before, after, origin, keeps);
	for (uint32 i = 0; fills && i < after->ncolumns; i++)
	{
		if (origin[i] < 0 && !after->columns[i].is_generated && (after->known & CDC_KNOWS_DEFAULTS) != 0 &&
			schema_default_cell(&after->columns[i], arena, &cell))
			heap_image_cell(&image, &after->columns[i], &cell);
	}
	push_pass(&image, PASS_KEPT, source, before, after, origin, keeps);
	return heap_image_end(&image);
}

/* ------------------------------------------------------------------ fields -> cells */

static CdcStatus
text_to_cell(const CdcColumnDef *column, const char *text, uint32 len, CdcArena *arena, CdcCell *cell, CdcError *err)
{
	char	   *end;

	switch (column->type)
	{
		case CDC_TYPE_FLOAT:
			/* by way of a double it could be rounded twice */
			cell->kind = CDC_CELL_FLOAT;
			cell->v.f4 = strtof(text, &end);
			if (len == 0 || end != text + len)
				return cdc_fail(err, CDC_MALFORMED, 0, "unexpected text for a column of type float");
			return CDC_OK;
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
		case CDC_TYPE_TEXT:
		case CDC_TYPE_ENUM:
		case CDC_TYPE_SET:
			/* in UTF-8 already, whatever the column's character set is */
			cell->kind = CDC_CELL_TEXT;
			cell->v.data = text;
			cell->len = len;
			return CDC_OK;
		default:
			return mysql_text_to_cell(column, text, len, arena, cell, err);
	}
}

static void
bytes_to_cell(const CdcColumnDef *column, const char *data, uint32 len, CdcCell *cell)
{
	cell->v.data = data;
	cell->len = len;
	switch (column->type)
	{
		case CDC_TYPE_BIT:
			cell->kind = CDC_CELL_BIT;
			break;
		case CDC_TYPE_GEOMETRY:
			cell->kind = CDC_CELL_GEOMETRY;
			break;
		case CDC_TYPE_VECTOR:
			cell->kind = CDC_CELL_VECTOR;
			break;
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
		case CDC_TYPE_TEXT:
		case CDC_TYPE_ENUM:
		case CDC_TYPE_SET:
		case CDC_TYPE_DECIMAL:
		case CDC_TYPE_JSON:
			cell->kind = CDC_CELL_TEXT;
			/* valid, and yet not kept as text: it had bytes that are no characters, which the policy has to see again */
			cell->invalid = memchr(data, '\0', len) == NULL && pg_verify_mbstr(PG_UTF8, data, (int) len, true);
			break;
		default:
			cell->kind = CDC_CELL_BYTES;
	}
}

CdcStatus
heap_image_to_cell(const CdcColumnDef *column, const CdcField *field, CdcArena *arena, CdcCell *cell, CdcError *err)
{
	const char *data = (const char *) field->data;
	char	   *text;

	memset(cell, 0, sizeof(*cell));
	cell->kind = CDC_CELL_NULL;
	if (field->state != CDC_FIELD_VALUE)
		return CDC_OK;
	if (data[0] == FORM_BYTES)
	{
		bytes_to_cell(column, data + 1, field->len - 1, cell);
		return CDC_OK;
	}
	text = cdc_arena_alloc(arena, field->len);
	if (text == NULL)
		return cdc_fail(err, CDC_NOMEM, 0, "out of memory");
	memcpy(text, data + 1, field->len - 1);
	text[field->len - 1] = '\0';
	return text_to_cell(column, text, field->len - 1, arena, cell, err);
}

/* ---------------------------------------------------------------------------- keys */

struct HeapImageKey
{
	pg_cryptohash_ctx *hash;
};

static void
update(HeapImageKey *key, const void *data, size_t len)
{
	if (pg_cryptohash_update(key->hash, data, len) < 0)
		elog(ERROR, "could not compute SHA-256: %s", pg_cryptohash_error(key->hash));
}

HeapImageKey *
heap_image_key_begin(void)
{
	HeapImageKey *key = palloc(sizeof(HeapImageKey));

	key->hash = pg_cryptohash_create(PG_SHA256);
	if (key->hash == NULL || pg_cryptohash_init(key->hash) < 0)
		elog(ERROR, "could not compute SHA-256");
	return key;
}

/* MariaDB's UUID, INET4 and INET6 are bytes in the log and text in a SELECT: the text of the bytes, NULL for what is neither. */
static char *
text_of_bytes(const CdcColumnDef *column, const CdcCell *cell)
{
	char		text[INET6_ADDRSTRLEN];

	if (column->type == CDC_TYPE_UUID && cell->len == UUID_LEN)
		return DatumGetCString(DirectFunctionCall1(uuid_out, PointerGetDatum(cell->v.data)));
	if ((column->type == CDC_TYPE_INET4 && cell->len == 4 && inet_ntop(AF_INET, cell->v.data, text, sizeof(text)) != NULL) ||
		(column->type == CDC_TYPE_INET6 && cell->len == 16 && inet_ntop(AF_INET6, cell->v.data, text, sizeof(text)) != NULL))
		return pstrdup(text);
	return NULL;
}

void
heap_image_key_add(HeapImageKey *key, const CdcColumnDef *column, const CdcCell *cell)
{
	const char *data = cell->v.data;
	uint32		len = cell->len;
	char	   *text = cell->kind == CDC_CELL_BYTES ? text_of_bytes(column, cell) : NULL;

	if (text != NULL)
	{
		data = text;
		len = (uint32) strlen(text);
	}
	else if (cell->kind != CDC_CELL_TEXT && cell->kind != CDC_CELL_BYTES && cell->kind != CDC_CELL_BIT &&
			 cell->kind != CDC_CELL_GEOMETRY && cell->kind != CDC_CELL_VECTOR)
		data = schema_cell_text(column, cell, &len);
	update(key, &len, sizeof(len));
	update(key, data, len);
}

void
heap_image_key_add_bytes(HeapImageKey *key, const void *data, Size len)
{
	update(key, data, len);
}

bytea *
heap_image_key_end(HeapImageKey *key)
{
	bytea	   *result = palloc(VARHDRSZ + PG_SHA256_DIGEST_LENGTH);

	SET_VARSIZE(result, VARHDRSZ + PG_SHA256_DIGEST_LENGTH);
	if (pg_cryptohash_final(key->hash, (uint8 *) VARDATA(result), PG_SHA256_DIGEST_LENGTH) < 0)
		elog(ERROR, "could not compute SHA-256: %s", pg_cryptohash_error(key->hash));
	pg_cryptohash_free(key->hash);
	pfree(key);
	return result;
}
