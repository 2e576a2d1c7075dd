/*-------------------------------------------------------------------------
 *
 * inflate.c
 *	  zlib data of a known size, as MariaDB's compressed events and columns hold it.
 *
 * NOTES
 *	  The size is believed only as far as deflate can reach it (at most 1032
 *	  times the input) and as the arena's limit lets it; the stream then has to
 *	  fill it exactly.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "binlog/inflate.h"

#include <libdeflate.h>

#define DEFLATE_RATIO_MAX 1032

/* The library's tables (about 12 kB), which serve every stream: one for each thread that decodes, kept till it ends. */
static _Thread_local struct libdeflate_decompressor *decompressor;

/* Inflate len bytes into exactly outlen bytes. */
static CdcStatus
inflate_exactly(const uint8_t *data, size_t len, bool raw, CdcArena *arena, uint64_t outlen,
                const uint8_t **out, CdcError *err)
{
	uint8_t *plain;
	enum libdeflate_result result;

	if (outlen > (uint64_t) len * DEFLATE_RATIO_MAX + 64 || outlen > UINT32_MAX)
		return cdc_fail(err, CDC_MALFORMED, 0, "compressed data announces an impossible size");
	plain = cdc_arena_alloc(arena, (size_t) outlen + 1);
	if (plain == NULL)
		return cdc_fail(err, CDC_LIMIT, 0, "compressed data of %llu bytes passes the memory limit",
		                (unsigned long long) outlen);
	if (decompressor == NULL && (decompressor = libdeflate_alloc_decompressor()) == NULL)
		return cdc_fail(err, CDC_NOMEM, 0, "out of memory");
	if (raw)
		result = libdeflate_deflate_decompress(decompressor, data, len, plain, (size_t) outlen, NULL);
	else
		result = libdeflate_zlib_decompress(decompressor, data, len, plain, (size_t) outlen, NULL);
	if (result != LIBDEFLATE_SUCCESS)
		return cdc_fail(err, CDC_MALFORMED, 0, "compressed data is damaged");
	*out = plain;
	return CDC_OK;
}

/* The big-endian size of n bytes at data. */
static uint64_t
read_size(const uint8_t *data, int n)
{
	uint64_t size = 0;

	for (int i = 0; i < n; i++)
		size = size << 8 | data[i];
	return size;
}

CdcStatus
binlog_inflate_event(const uint8_t *data, size_t len, CdcArena *arena, const uint8_t **out,
                     size_t *outlen, CdcError *err)
{
	int n = len > 0 ? data[0] & 7 : 0;
	uint64_t size;
	CdcStatus status;

	if (len == 0 || (size_t) n + 1 > len)
		return cdc_fail(err, CDC_TRUNCATED, 0, "compressed event ends inside its header");
	if ((data[0] & 0xf8) != 0x80 || n < 1 || n > 4)
		return cdc_fail(err, CDC_UNSUPPORTED, 0, "compressed event has the unknown header 0x%02x",
		                data[0]);
	size = read_size(data + 1, n);
	status = inflate_exactly(data + 1 + n, len - 1 - (size_t) n, false, arena, size, out, err);
	*outlen = (size_t) size;
	return status;
}

/*
 * The header byte of a column: 0 for plain data, else 0x80 (zlib), 0x08 when
 * the stream has no zlib header, and the number of size bytes in the low bits.
 */
CdcStatus
binlog_inflate_column(const uint8_t *data, uint32_t len, CdcArena *arena, const uint8_t **out,
                      uint32_t *outlen, CdcError *err)
{
	uint32_t n;
	uint64_t size;
	CdcStatus status;

	*out = data;
	*outlen = 0;
	if (len == 0)
		return CDC_OK;
	if (data[0] == 0)
	{
		*out = data + 1;
		*outlen = len - 1;
		return CDC_OK;
	}
	n = data[0] & 7;
	if ((data[0] & 0xf0) != 0x80 || n < 1 || n > 4)
		return cdc_fail(err, CDC_UNSUPPORTED, 0, "compressed column has the unknown header 0x%02x",
		                data[0]);
	if (n + 1 > len)
		return cdc_fail(err, CDC_TRUNCATED, 0, "compressed column ends inside its header");
	size = read_size(data + 1, (int) n);
	status =
	    inflate_exactly(data + 1 + n, len - 1 - n, (data[0] & 0x08) != 0, arena, size, out, err);
	*outlen = (uint32_t) size;
	return status;
}
