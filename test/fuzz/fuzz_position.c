/*-------------------------------------------------------------------------
 *
 * fuzz_position.c
 *	  libFuzzer target: the text of log positions, and their order.
 *
 * NOTES
 *	  The input is two or three texts with a zero byte between them. What is read
 *	  and printed reads the same again, and the order is one.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include "core/position.h"

static int
sign(int n)
{
	return n < 0 ? -1 : n > 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CdcPosition positions[3];
	int n = 0;
	char *text = malloc(size + 1);

	memcpy(text, data, size);
	text[size] = '\0';
	for (size_t at = 0; at <= size && n < 3; at += strlen(text + at) + 1)
	{
		CdcPosition *pos = &positions[n];
		CdcPosition again;
		char out[CDC_POSITION_TEXT_MAX];
		int result;

		memset(pos, 0, sizeof(*pos));
		if (!cdc_position_parse(text + at, pos))
			continue;
		require(cdc_position_is_known(pos));
		cdc_position_format(pos, out);
		require(strlen(out) < sizeof(out) - 1);
		require(cdc_position_parse(out, &again));
		require(strcmp(again.file, pos->file) == 0 && again.offset == pos->offset);
		require(cdc_position_compare(pos, &again, &result) && result == 0);
		n++;
	}
	for (int i = 0; i < n; i++)
	{
		for (int k = 0; k < n; k++)
		{
			int ab = 0;
			int ba = 0;

			require(cdc_position_compare(&positions[i], &positions[k], &ab) ==
			        cdc_position_compare(&positions[k], &positions[i], &ba));
			require(sign(ab) == -sign(ba));
		}
	}
	if (n == 3)
	{
		int ab, bc, ac;

		if (cdc_position_compare(&positions[0], &positions[1], &ab) &&
		    cdc_position_compare(&positions[1], &positions[2], &bc))
		{
			require(cdc_position_compare(&positions[0], &positions[2], &ac));
			if (ab <= 0 && bc <= 0)
				require(ac <= 0 && (ac < 0) == (ab < 0 || bc < 0));
		}
	}
	free(text);
	return 0;
}
