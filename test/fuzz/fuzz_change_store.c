/*-------------------------------------------------------------------------
 *
 * fuzz_change_store.c
 *	  libFuzzer target: kept changes -> changes.
 *
 * NOTES
 *	  The first byte says how long the pieces are that the rest is fed in. Every
 *	  value is decoded; memory is bounded. What was read is written again and read
 *	  again, and is the same.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include "binlog/change_store.h"

#define MEMORY_LIMIT (1024 * 1024)

static void
decode(const CdcChange *change, const CdcField *fields, CdcArena *arena)
{
	for (uint32_t i = 0; fields != NULL && i < change->table->ncolumns; i++)
	{
		CdcError err = {0};
		CdcCell cell;
		CdcStatus status;

		if (fields[i].state != CDC_FIELD_VALUE)
			continue;
		touch(fields[i].data, fields[i].len);
		status = change->cell(&change->table->columns[i], &fields[i], arena, &cell, &err);
		if (status != CDC_OK)
			check_error(status, &err);
		cdc_arena_reset(arena);
	}
}

static void
require_same(const CdcField *a, const CdcField *b, uint32_t n)
{
	require((a == NULL) == (b == NULL));
	for (uint32_t i = 0; a != NULL && i < n; i++)
	{
		require(a[i].state == b[i].state && a[i].len == b[i].len);
		require(a[i].len == 0 || memcmp(a[i].data, b[i].data, a[i].len) == 0);
	}
}

/* Write a change in a stream of its own and read it. */
static void
repeat(const CdcChange *change)
{
	BinlogChangeReader *reader = binlog_change_reader_create(&cdc_malloc_allocator, 0);
	BinlogChangeWriter writer;
	CdcError err = {0};
	CdcChange again;
	CdcBuf out;

	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	binlog_change_writer_init(&writer);
	binlog_change_write(&writer, change, &out);
	require(out.status == CDC_OK);
	require(binlog_change_reader_feed(reader, out.data, out.len) == CDC_OK);
	require(binlog_change_reader_next(reader, &again, &err) == CDC_OK);
	require(again.op == change->op && again.bytes == change->bytes);
	require(again.table->ncolumns == change->table->ncolumns && strcmp(again.table->name, change->table->name) == 0);
	require_same(change->before, again.before, change->table->ncolumns);
	require_same(change->after, again.after, change->table->ncolumns);
	require(binlog_change_reader_next(reader, &again, &err) == CDC_END);
	cdc_buf_free(&out);
	binlog_change_reader_free(reader);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	BinlogChangeReader *reader = binlog_change_reader_create(&cdc_malloc_allocator, MEMORY_LIMIT);
	CdcStatus status = CDC_OK;
	CdcArena arena;

	cdc_arena_init(&arena, &cdc_malloc_allocator, MEMORY_LIMIT);
	for (size_t at = 1; at < size && (status == CDC_OK || status == CDC_END);)
	{
		size_t len = size - at < (size_t) data[0] + 1 ? size - at : (size_t) data[0] + 1;
		uint8_t *piece = exact_copy(data + at, len);
		CdcError err = {0};
		CdcChange change;

		status = binlog_change_reader_feed(reader, piece, len);
		free(piece);
		at += len;
		while (status == CDC_OK && (status = binlog_change_reader_next(reader, &change, &err)) == CDC_OK)
		{
			decode(&change, change.before, &arena);
			decode(&change, change.after, &arena);
			repeat(&change);
		}
		if (status != CDC_OK && status != CDC_END && err.code != CDC_OK)
			check_error(status, &err);
	}
	cdc_arena_free(&arena);
	binlog_change_reader_free(reader);
	return 0;
}
