/*-------------------------------------------------------------------------
 *
 * fuzz_inflate.c
 *	  libFuzzer target: zlib data of compressed events and columns.
 *
 * NOTES
 *	  The first byte chooses between the two forms, and between the input as
 *	  compressed data and the input as plain data, which is then compressed here and
 *	  has to come back.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include <zlib.h>

#include "binlog/inflate.h"

#define MEMORY_LIMIT (1024 * 1024)

/* Memory in blocks of the arena: the limit holds whatever the data announces. */
static void
check_arena(const CdcArena *arena)
{
	require(arena->total <= MEMORY_LIMIT);
}

static void
round_trip(const uint8_t *data, size_t size, bool raw, bool column, CdcArena *arena)
{
	z_stream stream;
	size_t cap = size + size / 100 + 128;
	uint8_t *packed = malloc(cap + 5);
	const uint8_t *out;
	CdcError err;
	size_t len;

	raw &= column;
	memset(&stream, 0, sizeof(stream));
	require(deflateInit2(&stream, 1, Z_DEFLATED, raw ? -MAX_WBITS : MAX_WBITS, 8,
	                     Z_DEFAULT_STRATEGY) == Z_OK);
	packed[0] = (uint8_t) (0x80 | (raw ? 0x08 : 0) | 4);
	for (int i = 0; i < 4; i++)
		packed[1 + i] = (uint8_t) (size >> (8 * (3 - i)));
	stream.next_in = (Bytef *) data;
	stream.avail_in = (uInt) size;
	stream.next_out = packed + 5;
	stream.avail_out = (uInt) cap;
	require(deflate(&stream, Z_FINISH) == Z_STREAM_END);
	len = 5 + stream.total_out;
	deflateEnd(&stream);
	if (column)
	{
		uint32_t outlen;

		require(binlog_inflate_column(packed, (uint32_t) len, arena, &out, &outlen, &err) ==
		        CDC_OK);
		require(outlen == size && memcmp(out, data, size) == 0);
	}
	else
	{
		size_t outlen;

		require(binlog_inflate_event(packed, len, arena, &out, &outlen, &err) == CDC_OK);
		require(outlen == size && memcmp(out, data, size) == 0);
	}
	free(packed);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CdcArena arena;
	CdcError err = {0};
	CdcStatus status;
	const uint8_t *out;
	uint8_t mode;

	if (size < 1 || size > 65536)
		return 0;
	mode = data[0];
	data++;
	size--;
	cdc_arena_init(&arena, &cdc_malloc_allocator, MEMORY_LIMIT);
	if (mode & 2)
		round_trip(data, size, (mode & 4) != 0, (mode & 1) != 0, &arena);
	else if (mode & 1)
	{
		uint32_t len;

		status = binlog_inflate_column(data, (uint32_t) size, &arena, &out, &len, &err);
		if (status == CDC_OK)
			touch(out, len);
		else
			check_error(status, &err);
	}
	else
	{
		size_t len;

		status = binlog_inflate_event(data, size, &arena, &out, &len, &err);
		if (status == CDC_OK)
			touch(out, len);
		else
			check_error(status, &err);
	}
	check_arena(&arena);
	cdc_arena_free(&arena);
	return 0;
}
