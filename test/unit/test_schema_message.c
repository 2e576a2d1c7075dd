/*-------------------------------------------------------------------------
 *
 * test_schema_message.c
 *	  Messages about schema changes: written and read again, and what is no
 *	  such message.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "core/schema_message.h"

#include "tap.h"

static CdcArena arena;

/* Items of a text, or a negative status. */
static int
count_items(const char *text, size_t len)
{
	CdcCursor cursor;
	CdcSchemaItem item;
	int n = 0;
	CdcStatus status = cdc_schema_message_open(&cursor, text, len);

	while (status == CDC_OK)
	{
		status = cdc_schema_message_next(&cursor, &arena, &item);
		n += status == CDC_OK;
	}
	return status == CDC_END ? n : -(int) status;
}

static void
test_round_trip(void)
{
	CdcSchemaItem table = {
		.kind = CDC_SCHEMA_TABLE,.relid = 4294967295u,.command = "ALTER TABLE",.schema = "shop",.name = "ta,ble 1:x",
		.old_schema = "other",.old_name = "t",.old_column = "a",.new_name = "\xc3\xa4",.rewritten = true,
		.kinds = (UINT32_C(1) << CDC_SCHEMA_KINDS_MAX) - 1
	};
	CdcSchemaItem gone = {.kind = CDC_SCHEMA_GONE,.relid = 7,.command = "DROP TABLE",.schema = "s",.name = "n",.is_partition = true,.kinds = 1 << 10};
	CdcSchemaItem unpublished = {.kind = CDC_SCHEMA_UNPUBLISHED,.command = "DROP SCHEMA",.schema = "s",.new_name = "p"};
	CdcBuf message;
	CdcCursor cursor;
	CdcSchemaItem item;

	cdc_buf_init(&message, &cdc_malloc_allocator, 0);
	cdc_schema_message_begin(&message);
	is_int(count_items(message.data, message.len), 0, "a message without items");
	cdc_schema_message_add(&message, &table);
	cdc_schema_message_add(&message, &gone);
	cdc_schema_message_add(&message, &unpublished);
	is_int(count_items(message.data, message.len), 3, "three items");
	ok(cdc_schema_message_open(&cursor, message.data, message.len) == CDC_OK, "it opens");
	ok(cdc_schema_message_next(&cursor, &arena, &item) == CDC_OK && item.kind == CDC_SCHEMA_TABLE && item.relid == 4294967295u, "a table");
	is_str(item.name, "ta,ble 1:x", "its name, with what stands between fields in it");
	is_str(item.old_schema, "other", "its old schema");
	is_str(item.old_column, "a", "a column's old name");
	is_str(item.new_name, "\xc3\xa4", "and its new one");
	ok(item.rewritten && !item.is_partition && !item.is_partitioned, "flags");
	is_int((int) item.kinds, (1 << CDC_SCHEMA_KINDS_MAX) - 1, "all kinds there can be");
	ok(cdc_schema_message_next(&cursor, &arena, &item) == CDC_OK && item.kind == CDC_SCHEMA_GONE && item.is_partition && item.kinds == 1 << 10 && item.old_name == NULL,
	   "one that is gone");
	ok(cdc_schema_message_next(&cursor, &arena, &item) == CDC_OK && item.kind == CDC_SCHEMA_UNPUBLISHED && item.name == NULL, "a schema of a publication");
	ok(cdc_schema_message_next(&cursor, &arena, &item) == CDC_END, "and the end");

	/* no beginning of it is a message that says something else */
	for (size_t len = 0; len < message.len; len++)
	{
		int n = count_items(message.data, len);

		if (n > 2 || (n >= 0 && len < 4))
			ok(false, "a cut message is noticed");
	}
	cdc_buf_free(&message);
}

static void
is_malformed(const char *text, const char *name)
{
	is_int(count_items(text, strlen(text)), -(int) CDC_MALFORMED, name);
}

static void
test_malformed(void)
{
	is_malformed("", "nothing");
	is_malformed("1:2,", "another version");
	is_malformed("1:1,x", "no length");
	is_malformed("1:1,64:", "a length beyond that of names");
	is_malformed("1:1,99999999999999999999999:", "a length beyond all numbers");
	is_malformed("1:1,1:t,10:4294967296,1:c,1:s,1:n,0:,0:,0:,0:,0:,", "a number of a table that is none");
	is_malformed("1:1,1:t,2:1x,1:c,1:s,1:n,0:,0:,0:,0:,0:,", "and no number at all");
	is_malformed("1:1,1:t,1:1,0:,1:s,1:n,0:,0:,0:,0:,0:,", "no command");
	is_malformed("1:1,1:t,1:1,1:c,0:,1:n,0:,0:,0:,0:,0:,", "no schema");
	is_malformed("1:1,1:d,1:1,1:c,1:s,0:,0:,0:,0:,0:,0:,", "no name");
	is_malformed("1:1,1:t,1:1,1:c,1:s,1:n,1:o,0:,0:,0:,0:,", "half of an old name");
	is_malformed("1:1,1:t,1:1,1:c,1:s,1:n,0:,0:,1:a,0:,0:,", "half of a renamed column");
	is_malformed("1:1,1:p,1:0,1:c,1:s,1:n,0:,0:,0:,0:,0:,", "no publication");
	is_malformed("1:1,1:z,1:1,1:c,1:s,1:n,0:,0:,0:,0:,0:,", "another kind");
	is_malformed("1:1,1:t,1:1,1:c,1:s,1:\xff,0:,0:,0:,0:,0:,", "a name that is not UTF-8");
	is_int(count_items("1:1,1:t,1:1,1:c,1:s,2:n\0,0:,0:,0:,0:,0:,", sizeof("1:1,1:t,1:1,1:c,1:s,2:n\0,0:,0:,0:,0:,0:,") - 1), -(int) CDC_MALFORMED,
	       "a name with a zero byte");
	is_int(count_items("1:1,1:t,1:1,1:c,1:s,1:n,0:,0:,0:,0:,0:,", strlen("1:1,1:t,1:1,1:c,1:s,1:n,0:,0:,0:,0:,0:,")), 1, "while this is one");
}

int
main(void)
{
	cdc_arena_init(&arena, &cdc_malloc_allocator, 0);
	test_round_trip();
	test_malformed();
	cdc_arena_free(&arena);
	return done_testing();
}
