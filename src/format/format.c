/*-------------------------------------------------------------------------
 *
 * format.c
 *	  The formats there are, and what calls them.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "format/format.h"

#include <string.h>

#include "format/json_text.h"

static const CdcFormatOps *const formats[] = {
	&cdc_format_canal_json,
	&cdc_format_changelog_json,
	&cdc_format_debezium_avro,
	&cdc_format_debezium_json,
	&cdc_format_debezium_unwrapped_json,
	&cdc_format_maxwell_json,
	&cdc_format_plain_json,
};

#define NFORMATS ((int) (sizeof(formats) / sizeof(formats[0])))

const CdcFormatOps *
cdc_format_nth(int n)
{
	return n >= 0 && n < NFORMATS ? formats[n] : NULL;
}

const CdcFormatOps *
cdc_format_find(const char *name)
{
	for (int i = 0; i < NFORMATS; i++)
	{
		if (strcmp(formats[i]->name, name) == 0)
			return formats[i];
	}
	return NULL;
}

static void
init_cached(CdcFormatCached *entries, int n, const CdcAllocator *allocator)
{
	for (int i = 0; i < n; i++)
	{
		entries[i] = (CdcFormatCached) {.version = 0};
		cdc_buf_init(&entries[i].value_schema, allocator, 0);
		cdc_buf_init(&entries[i].key_schema, allocator, 0);
	}
}

static void
free_cached(CdcFormatCached *entries, int n)
{
	for (int i = 0; i < n; i++)
	{
		entries[i].version = 0;
		cdc_buf_free(&entries[i].value_schema);
		cdc_buf_free(&entries[i].key_schema);
	}
}

#define NDOCUMENTS ((int) (sizeof(((CdcFormat *) 0)->documents) / sizeof(CdcFormatCached)))

void
cdc_format_init(CdcFormat *format, const CdcFormatOps *ops, const CdcFormatOptions *options, const CdcAllocator *allocator)
{
	format->ops = ops;
	format->options = *options;
	cdc_buf_init(&format->scratch, allocator, 0);
	cdc_buf_init(&format->head, allocator, 0);
	init_cached(format->cache, CDC_FORMAT_CACHE_SIZE, allocator);
	init_cached(format->documents, NDOCUMENTS, allocator);
}

void
cdc_format_free(CdcFormat *format)
{
	cdc_buf_free(&format->scratch);
	cdc_buf_free(&format->head);
	free_cached(format->cache, CDC_FORMAT_CACHE_SIZE);
	free_cached(format->documents, NDOCUMENTS);
}

static CdcStatus
result(const CdcBuf *out, const CdcRecord *record, CdcError *err)
{
	const char *schema = record->table != NULL ? record->table->schema : "";
	const char *name = record->table != NULL ? record->table->name : "";

	switch (out->status)
	{
		case CDC_OK:
			return CDC_OK;
		case CDC_LIMIT:
			return cdc_fail(err, CDC_LIMIT, out->len, "a record of table \"%s.%s\" would be longer than %zu bytes", schema, name, out->limit);
		case CDC_NOMEM:
			return cdc_fail(err, CDC_NOMEM, out->len, "no memory for a record of table \"%s.%s\"", schema, name);
		default:
			return cdc_fail(err, out->status, out->len, "a value of table \"%s.%s\" has no form in this format", schema, name);
	}
}

/* Does the document say something that the options ask for? */
static bool
is_wanted(const CdcFormat *format, const CdcRecord *record)
{
	return format->options.transaction || (record->kind != CDC_RECORD_BEGIN && record->kind != CDC_RECORD_COMMIT);
}

int
cdc_format_parts(const CdcFormat *format, const CdcRecord *record)
{
	if (!is_wanted(format, record))
		return 0;
	return format->ops->parts != NULL ? format->ops->parts(format, record) : 1;
}

CdcStatus
cdc_format_value(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out, CdcError *err)
{
	format->ops->value(format, record, part, out);
	return result(out, record, err);
}

CdcStatus
cdc_format_key(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out, CdcError *err)
{
	if (!format->ops->key(format, record, part, out))
		return CDC_END;
	return result(out, record, err);
}

CdcStatus
cdc_format_partition_key(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out, CdcError *err)
{
	const CdcCell *row;

	if (record->kind != CDC_RECORD_CHANGE || record->table->npartition == 0)
		return cdc_format_key(format, record, part, out, err);
	row = format->ops->key_row != NULL ? format->ops->key_row(record, part) : format_key_row(record);
	if (row == NULL)
		return CDC_END;
	format_add_partition_key(format, record->table, row, out);
	return result(out, record, err);
}

typedef CdcStatus (*WriteDocument) (CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out, CdcError *err);

/* A document, or its key, in a line of text: bytes in base64; null for what there is not. */
static CdcStatus
add_document(CdcFormat *format, WriteDocument write, const CdcRecord *record, int part, CdcBuf *out, CdcError *err)
{
	CdcBuf		bytes;
	CdcStatus	status;

	if (!format->ops->is_binary)
		status = write(format, record, part, out, err);
	else
	{
		cdc_buf_init(&bytes, out->allocator, out->limit);
		status = write(format, record, part, &bytes, err);
		if (status == CDC_OK)
			json_add_base64(out, bytes.data, bytes.len);
		cdc_buf_free(&bytes);
	}
	if (status != CDC_END)
		return status;
	cdc_buf_add_str(out, "null");
	return CDC_OK;
}

static CdcStatus
add_part(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out, CdcError *err)
{
	CdcStatus	status;

	if (!format->options.key)
	{
		status = add_document(format, cdc_format_value, record, part, out, err);
		return status != CDC_OK ? status : result(out, record, err);
	}
	cdc_buf_add_str(out, "{\"value\":");
	status = add_document(format, cdc_format_value, record, part, out, err);
	if (status != CDC_OK)
		return status;
	cdc_buf_add_str(out, ",\"key\":");
	status = add_document(format, cdc_format_key, record, part, out, err);
	if (status == CDC_OK && record->kind == CDC_RECORD_CHANGE && record->table->npartition > 0)
	{
		cdc_buf_add_str(out, ",\"partition_key\":");
		status = add_document(format, cdc_format_partition_key, record, part, out, err);
	}
	if (status != CDC_OK)
		return status;
	cdc_buf_add_char(out, '}');
	return result(out, record, err);
}

CdcStatus
cdc_format_record(CdcFormat *format, const CdcRecord *record, CdcBuf *out, CdcError *err)
{
	int			parts = cdc_format_parts(format, record);

	if (parts == 0)
		return CDC_END;
	for (int part = 0; part < parts; part++)
	{
		CdcStatus	status;

		if (part > 0)
			cdc_buf_add_char(out, '\n');
		status = add_part(format, record, part, out, err);
		if (status != CDC_OK)
			return status;
	}
	return CDC_OK;
}
