/*-------------------------------------------------------------------------
 *
 * fuzz_reader.c
 *	  libFuzzer target: a binary log file through the reader, every value decoded.
 *
 * NOTES
 *	  The input is cut into events by their own lengths. Checksums are put right
 *	  before an event is fed, or nothing behind them would ever be reached. The
 *	  columns of string types are also decoded as the types that only the catalog
 *	  of a server knows. Positions are ones that the catalog can keep, names and
 *	  errors are text.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include <zlib.h>

#include "binlog/reader.h"

#define HEADER_LEN 19
#define MEMORY_LIMIT (16 * 1024 * 1024)

static void
decode_image(const CdcChange *change, const CdcField *fields, CdcArena *arena)
{
	static const CdcType disguised[] = {CDC_TYPE_UUID, CDC_TYPE_INET4, CDC_TYPE_INET6,
	                                    CDC_TYPE_JSON, CDC_TYPE_VECTOR};

	if (fields == NULL)
		return;
	for (uint32_t i = 0; i < change->table->ncolumns; i++)
	{
		CdcColumnDef column = change->table->columns[i];
		CdcError err;
		CdcCell cell;

		if (fields[i].state == CDC_FIELD_ABSENT)
			continue;
		change->cell(&column, &fields[i], arena, &cell, &err);
		column.type = disguised[i % 5];
		change->cell(&column, &fields[i], arena, &cell, &err);
		cdc_arena_reset(arena);
	}
}

static void
check_position(const CdcPosition *pos)
{
	require(cdc_position_is_known(pos) && pos->offset <= INT64_MAX);
	require(utf8_is_valid(pos->file, strlen(pos->file)));
}

static void
check_event(const BinlogEvent *event)
{
	check_position(&event->start);
	check_position(&event->end);
	/* only a ROTATE leads elsewhere */
	if (event->kind != BINLOG_ROTATE)
		require(strcmp(event->start.file, event->end.file) == 0 &&
		        event->start.offset <= event->end.offset);
	if (event->kind == BINLOG_ROWS && event->u.rows.table != NULL)
	{
		const CdcTableDef *table = event->u.rows.table;

		require(utf8_is_valid(table->schema, strlen(table->schema)));
		require(utf8_is_valid(table->name, strlen(table->name)));
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	BinlogReaderOptions options = {.memory_limit = MEMORY_LIMIT};
	BinlogReader *reader = binlog_reader_create(&cdc_malloc_allocator, &options);
	CdcPosition start = {.file = "log.000001", .offset = 4};
	CdcStatus status = CDC_OK;
	CdcArena arena;
	BinlogEvent event;

	cdc_arena_init(&arena, &cdc_malloc_allocator, MEMORY_LIMIT);
	binlog_reader_start(reader, &start);
	if (size >= 4 && memcmp(data,
	                        "\xfe"
	                        "bin",
	                        4) == 0)
	{
		data += 4;
		size -= 4;
	}
	while (size > 0 && (status == CDC_OK || status == CDC_END))
	{
		size_t len = size;
		uint8_t *copy;

		if (size >= HEADER_LEN)
		{
			len = data[9] | data[10] << 8 | data[11] << 16 | (size_t) data[12] << 24;
			if (len < HEADER_LEN || len > size)
				len = size;
		}
		copy = malloc(len);
		memcpy(copy, data, len);
		if (len >= HEADER_LEN + 4)
		{
			uint32_t crc = (uint32_t) crc32_z(crc32(0, NULL, 0), copy, len - 4);

			for (int i = 0; i < 4; i++)
				copy[len - 4 + (size_t) i] = (uint8_t) (crc >> (8 * i));
		}
		status = binlog_reader_feed(reader, copy, len);
		while (status == CDC_OK && (status = binlog_reader_next(reader, &event)) == CDC_OK)
		{
			check_event(&event);
			if (event.kind != BINLOG_ROW)
				continue;
			decode_image(&event.u.row, event.u.row.before, &arena);
			decode_image(&event.u.row, event.u.row.after, &arena);
		}
		free(copy);
		data += len;
		size -= len;
	}
	if (status != CDC_OK && status != CDC_END)
		check_error(status, binlog_reader_error(reader));
	binlog_reader_free(reader);
	cdc_arena_free(&arena);
	return 0;
}
