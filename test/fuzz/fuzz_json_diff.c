/*-------------------------------------------------------------------------
 *
 * fuzz_json_diff.c
 *	  libFuzzer target: differences of JSON documents.
 *
 * NOTES
 *	  The input is a document's length in two bytes, its text, and differences.
 *	  What comes out of a valid document is a valid one and no longer than what
 *	  went in can make it; a damaged document or difference is an error. No
 *	  differences leave a document as it was. The memory limit is kept.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "fuzz_grammar.h"

#include "binlog/json.h"
#include "binlog/json_diff.h"

#define MEMORY (4 * 1024 * 1024)

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CdcArena arena;
	CdcBuf out;
	CdcBuf text;
	CdcError err = {0};
	CdcStatus status;
	size_t doclen;
	size_t len;
	uint8_t *doc;
	uint8_t *diff;
	bool valid;

	if (size < 2 || size > 32768)
		return 0;
	doclen = (size_t) data[0] | (size_t) data[1] << 8;
	doclen = doclen < size - 2 ? doclen : size - 2;
	len = size - 2 - doclen;
	doc = exact_copy(data + 2, doclen);
	diff = exact_copy(data + 2 + doclen, len);
	valid = json_is_valid((const char *) doc, doclen, BINLOG_JSON_DEPTH_MAX);

	cdc_arena_init(&arena, &cdc_malloc_allocator, MEMORY);
	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	status = binlog_json_diff_apply(diff, len, (const char *) doc, doclen, &arena, &out, &err);
	require(arena.total <= MEMORY);
	require(out.len <= 2 * doclen + 40 * len + 64);
	if (status == CDC_OK)
	{
		/* replaced values nest inside of what was there */
		require(!valid || json_is_valid(out.data, out.len, 3 * BINLOG_JSON_DEPTH_MAX));
		require(len > 0 || !valid || (out.len == doclen && memcmp(out.data, doc, doclen) == 0));
	}
	else
		check_error(status, &err);

	/* what could be applied can be shown, as JSON unless a path is no UTF-8 or so */
	cdc_buf_init(&text, &cdc_malloc_allocator, 0);
	err.code = CDC_OK;
	if (binlog_json_diff_to_text(diff, len, &text, &err) != CDC_OK)
	{
		require(status != CDC_OK);
		check_error(err.code, &err);
	}
	else
		require(json_is_valid(text.data, text.len, BINLOG_JSON_DEPTH_MAX + 3));

	cdc_buf_free(&text);
	cdc_buf_free(&out);
	cdc_arena_free(&arena);
	free(doc);
	free(diff);
	return 0;
}
