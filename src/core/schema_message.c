/*-------------------------------------------------------------------------
 *
 * schema_message.c
 *	  What the event triggers leave in the log about a statement that changed
 *	  tables.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "core/schema_message.h"

#include <stdio.h>
#include <string.h>

#include "core/utf8.h"

#define VERSION "1"

/* Names are shorter than this everywhere in PostgreSQL, and so are command tags. */
#define NAME_MAX_LEN 64

/* Fields of an item. */
enum
{
	FIELD_KIND,
	FIELD_RELID,
	FIELD_COMMAND,
	FIELD_SCHEMA,
	FIELD_NAME,
	FIELD_OLD_SCHEMA,
	FIELD_OLD_NAME,
	FIELD_OLD_COLUMN,
	FIELD_NEW_NAME,
	FIELD_FLAGS,
	FIELDS
};

static void
add_field(CdcBuf *message, const char *text)
{
	if (text == NULL)
		text = "";
	cdc_buf_printf(message, "%zu:", strlen(text));
	cdc_buf_add_str(message, text);
	cdc_buf_add_char(message, ',');
}

void
cdc_schema_message_begin(CdcBuf *message)
{
	cdc_buf_reset(message);
	add_field(message, VERSION);
}

void
cdc_schema_message_add(CdcBuf *message, const CdcSchemaItem *item)
{
	char		kind[2] = {(char) item->kind, '\0'};
	char		relid[16];
	char		flags[8 + CDC_SCHEMA_KINDS_MAX];
	int			n = snprintf(flags, sizeof(flags), "%s%s%s", item->rewritten ? "r" : "", item->is_partitioned ? "p" : "", item->is_partition ? "l" : "");

	/* a kind is a capital letter */
	for (int i = 0; i < CDC_SCHEMA_KINDS_MAX; i++)
	{
		if (item->kinds & (UINT32_C(1) << i))
			flags[n++] = (char) ('A' + i);
	}
	flags[n] = '\0';
	snprintf(relid, sizeof(relid), "%u", (unsigned) item->relid);
	add_field(message, kind);
	add_field(message, relid);
	add_field(message, item->command);
	add_field(message, item->schema);
	add_field(message, item->name);
	add_field(message, item->old_schema);
	add_field(message, item->old_name);
	add_field(message, item->old_column);
	add_field(message, item->new_name);
	add_field(message, flags);
}

/* Digits of a number below 2^32; false when there is none. */
static bool
read_number(CdcCursor *message, uint64_t *value)
{
	bool		any = false;

	*value = 0;
	while (cdc_cursor_left(message) > 0 && *message->pos >= '0' && *message->pos <= '9' && *value <= UINT32_MAX)
	{
		*value = *value * 10 + (uint64_t) (*message->pos++ - '0');
		any = true;
	}
	return any && *value <= UINT32_MAX;
}

static bool
read_byte(CdcCursor *message, char expected)
{
	const uint8_t *p = cdc_cursor_bytes(message, 1);

	return p != NULL && *p == (uint8_t) expected;
}

/* One field: NULL in *text when it is empty. */
static CdcStatus
read_field(CdcCursor *message, CdcArena *arena, const char **text)
{
	uint64_t	len;
	const uint8_t *bytes;

	*text = NULL;
	if (!read_number(message, &len) || len >= NAME_MAX_LEN || !read_byte(message, ':'))
		return CDC_MALFORMED;
	bytes = cdc_cursor_bytes(message, len);
	if (bytes == NULL || !read_byte(message, ','))
		return CDC_MALFORMED;
	if (len == 0)
		return CDC_OK;
	if (memchr(bytes, '\0', len) != NULL || !cdc_utf8_is_valid(bytes, len))
		return CDC_MALFORMED;
	*text = cdc_arena_strndup(arena, bytes, len);
	return *text != NULL ? CDC_OK : CDC_NOMEM;
}

CdcStatus
cdc_schema_message_open(CdcCursor *message, const void *data, size_t len)
{
	static const char head[] = "1:" VERSION ",";
	const uint8_t *bytes;

	cdc_cursor_init(message, data, len);
	bytes = cdc_cursor_bytes(message, sizeof(head) - 1);
	return bytes != NULL && memcmp(bytes, head, sizeof(head) - 1) == 0 ? CDC_OK : CDC_MALFORMED;
}

static bool
read_relid(const char *text, uint32_t *relid)
{
	CdcCursor	digits;
	uint64_t	value;

	if (text == NULL)
		return false;
	cdc_cursor_init(&digits, text, strlen(text));
	if (!read_number(&digits, &value) || cdc_cursor_left(&digits) > 0)
		return false;
	*relid = (uint32_t) value;
	return true;
}

/* Is what belongs to the kind of an item there? */
static bool
is_complete(const CdcSchemaItem *item)
{
	if (item->command == NULL || item->schema == NULL || (item->name == NULL && item->kind != CDC_SCHEMA_UNPUBLISHED) ||
		(item->old_schema == NULL) != (item->old_name == NULL))
		return false;
	switch (item->kind)
	{
		case CDC_SCHEMA_TABLE:
			return (item->old_column == NULL) == (item->new_name == NULL);
		case CDC_SCHEMA_GONE:
			return true;
		case CDC_SCHEMA_UNPUBLISHED:
			return item->new_name != NULL;
	}
	return false;
}

static bool
has_flag(const char *flags, char flag)
{
	return flags != NULL && strchr(flags, flag) != NULL;
}

CdcStatus
cdc_schema_message_next(CdcCursor *message, CdcArena *arena, CdcSchemaItem *item)
{
	const char *fields[FIELDS];

	if (cdc_cursor_left(message) == 0)
		return CDC_END;
	memset(item, 0, sizeof(*item));
	for (int i = 0; i < FIELDS; i++)
	{
		CdcStatus	status = read_field(message, arena, &fields[i]);

		if (status != CDC_OK)
			return status;
	}
	if (fields[FIELD_KIND] == NULL || strlen(fields[FIELD_KIND]) != 1 || !read_relid(fields[FIELD_RELID], &item->relid))
		return CDC_MALFORMED;
	item->kind = (CdcSchemaItemKind) fields[FIELD_KIND][0];
	item->command = fields[FIELD_COMMAND];
	item->schema = fields[FIELD_SCHEMA];
	item->name = fields[FIELD_NAME];
	item->old_schema = fields[FIELD_OLD_SCHEMA];
	item->old_name = fields[FIELD_OLD_NAME];
	item->old_column = fields[FIELD_OLD_COLUMN];
	item->new_name = fields[FIELD_NEW_NAME];
	item->rewritten = has_flag(fields[FIELD_FLAGS], 'r');
	item->is_partitioned = has_flag(fields[FIELD_FLAGS], 'p');
	item->is_partition = has_flag(fields[FIELD_FLAGS], 'l');
	for (int i = 0; i < CDC_SCHEMA_KINDS_MAX; i++)
	{
		if (has_flag(fields[FIELD_FLAGS], (char) ('A' + i)))
			item->kinds |= UINT32_C(1) << i;
	}
	return is_complete(item) ? CDC_OK : CDC_MALFORMED;
}
