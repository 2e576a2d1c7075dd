/*-------------------------------------------------------------------------
 *
 * fuzz_json.c
 *	  libFuzzer target: MySQL's binary JSON.
 *
 * NOTES
 *	  The input is a document. The text is JSON as servers print it, is never longer than the bound that json.c promises, and a smaller limit
 *	  of the buffer is kept. A double reads back as the same double.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "fuzz_grammar.h"

#include <math.h>

#include "binlog/json.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CdcBuf text;
	CdcError err = {0};
	CdcStatus status;
	size_t limit;

	if (size > 32768)
		return 0;
	cdc_buf_init(&text, &cdc_malloc_allocator, 0);
	status = binlog_json_to_text(data, size, BINLOG_JSON_DEPTH_MAX, &text, &err);
	require(text.len <= size * 8 + 64);
	require(text.limit == 0);
	if (status == CDC_OK)
	{
		require(json_is_valid(text.data, text.len, BINLOG_JSON_DEPTH_MAX));
		if (size >= 9 && data[0] == 11)
		{
			double want;
			double got = strtod(text.data, NULL);

			memcpy(&want, data + 1, sizeof(want));
			require(isfinite(want) && got == want && signbit(got) == signbit(want));
		}
	}
	else
		check_error(status, &err);

	/* again with less room, behind what the buffer already holds */
	limit = text.len > 0 ? text.len / 2 + 3 : 3;
	cdc_buf_free(&text);
	cdc_buf_init(&text, &cdc_malloc_allocator, limit);
	cdc_buf_add(&text, "abc", 3);
	err.code = CDC_OK;
	status = binlog_json_to_text(data, size, 3, &text, &err);
	require(text.len >= 3 && text.len <= limit && text.limit == limit);
	if (status != CDC_OK)
		check_error(status, &err);
	cdc_buf_free(&text);
	return 0;
}
