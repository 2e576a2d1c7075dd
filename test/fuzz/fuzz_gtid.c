/*-------------------------------------------------------------------------
 *
 * fuzz_gtid.c
 *	  libFuzzer target: sets of GTIDs: text, membership, binary form.
 *
 * NOTES
 *	  One byte chooses the family, the rest is text. A set's text gives the same set
 *	  again, whatever the text it was read from looked like; so does the binary form,
 *	  which is taken apart here as MySQL's server does it.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include "core/gtid.h"

static CdcGtidSet *
set_of(CdcGtidKind kind, const char *text, size_t len)
{
	CdcGtidSet *set = cdc_gtid_set_create(kind, &cdc_malloc_allocator);
	CdcError err;

	require(cdc_gtid_set_add_text(set, text, len, &err) == CDC_OK);
	return set;
}

/* Read the binary form into text that no source of ours has printed: every interval on its own. */
static void
decode(const CdcBuf *bytes, CdcBuf *text, CdcGtidSet *set)
{
	CdcCursor c;
	uint64_t word;
	uint64_t nsources;
	bool tagged;

	cdc_cursor_init(&c, bytes->data, bytes->len);
	word = cdc_cursor_u64(&c);
	tagged = word >> 56 != 0;
	require(!tagged || (word >> 56 == 1 && (word & 0xff) == 1));
	nsources = tagged ? word << 8 >> 16 : word;
	for (uint64_t i = 0; i < nsources; i++)
	{
		const uint8_t *uuid = cdc_cursor_bytes(&c, 16);
		CdcGtid gtid = {.kind = CDC_GTID_MYSQL};
		uint64_t last = 0;
		uint64_t n;

		require(uuid != NULL);
		memcpy(gtid.uuid, uuid, 16);
		if (tagged)
		{
			uint8_t len = cdc_cursor_u8(&c);

			require((len & 1) == 0 && len / 2 <= CDC_GTID_TAG_MAX);
			memcpy(gtid.tag, cdc_cursor_bytes(&c, len / 2), len / 2);
		}
		n = cdc_cursor_u64(&c);
		require(n > 0);
		for (uint64_t k = 0; k < n; k++)
		{
			uint64_t first = cdc_cursor_u64(&c);
			uint64_t end = cdc_cursor_u64(&c);
			char one[CDC_GTID_TEXT_MAX];

			/* sorted, disjoint, with a gap between */
			require(!c.failed && first > last && end > first && end <= INT64_MAX);
			last = end;
			gtid.sequence = first;
			cdc_gtid_format(&gtid, one);
			require(strlen(one) < CDC_GTID_TEXT_MAX - 1);
			cdc_buf_printf(text, "\n , %s - %llu,", one, (unsigned long long) end - 1);
			require(cdc_gtid_set_contains(set, &gtid));
			gtid.sequence = end - 1;
			require(cdc_gtid_set_contains(set, &gtid));
			gtid.sequence = end;
			require(!cdc_gtid_set_contains(set, &gtid));
			gtid.sequence = first - 1;
			require(!cdc_gtid_set_contains(set, &gtid));
		}
	}
	require(!c.failed && cdc_cursor_left(&c) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CdcGtidKind kind;
	CdcGtidSet *set;
	CdcError err = {0};
	CdcStatus status;
	CdcBuf text;
	CdcBuf other;
	CdcGtidSet *again;

	if (size < 1)
		return 0;
	kind = data[0] & 1 ? CDC_GTID_MARIADB : CDC_GTID_MYSQL;
	set = cdc_gtid_set_create(kind, &cdc_malloc_allocator);
	status = cdc_gtid_set_add_text(set, (const char *) data + 1, size - 1, &err);
	if (status != CDC_OK)
	{
		check_error(status, &err);
		require(err.offset <= size);
	}

	/* what was taken in before an error is a set too */
	cdc_buf_init(&text, &cdc_malloc_allocator, 0);
	cdc_buf_init(&other, &cdc_malloc_allocator, 0);
	cdc_gtid_set_format(set, &text);
	require(cdc_gtid_set_is_empty(set) == (text.len == 0));
	again = set_of(kind, text.data, text.len);
	cdc_gtid_set_format(again, &other);
	require(text.len == other.len && memcmp(text.data, other.data, text.len) == 0);
	cdc_gtid_set_free(again);
	if (kind == CDC_GTID_MYSQL)
	{
		CdcBuf bytes;

		cdc_buf_init(&bytes, &cdc_malloc_allocator, 0);
		cdc_gtid_set_encode(set, &bytes);
		cdc_buf_reset(&other);
		decode(&bytes, &other, set);
		again = set_of(kind, other.data != NULL ? other.data : "", other.len);
		cdc_buf_reset(&other);
		cdc_gtid_set_format(again, &other);
		require(text.len == other.len && memcmp(text.data, other.data, text.len) == 0);
		cdc_gtid_set_free(again);
		cdc_buf_free(&bytes);
	}
	cdc_buf_free(&text);
	cdc_buf_free(&other);
	cdc_gtid_set_free(set);
	return 0;
}
