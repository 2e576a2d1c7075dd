/*-------------------------------------------------------------------------
 *
 * test_gtid.c
 *	  GTIDs and sets of them.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "core/gtid.h"
#include "tap.h"

#define U1 "3e11fa47-71ca-11e1-9e33-c80aa9429562"
#define U2 "96f39396-ec02-11f1-ae4b-02fc00000001"

/* Canonical text of a set made from text; "error" when it is refused. */
static void
check(CdcGtidKind kind, const char *text, const char *want, const char *name)
{
	CdcGtidSet *set = cdc_gtid_set_create(kind, &cdc_malloc_allocator);
	CdcBuf out;
	CdcError err;

	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	if (cdc_gtid_set_add_text(set, text, strlen(text), &err) == CDC_OK)
		cdc_gtid_set_format(set, &out);
	else
		cdc_buf_add_str(&out, "error");
	is_str(out.data, want, name);
	cdc_buf_free(&out);
	cdc_gtid_set_free(set);
}

static void
test_text(void)
{
	check(CDC_GTID_MYSQL, "", "", "empty");
	check(CDC_GTID_MYSQL, U1 ":1-5:7," U2 ":3", U1 ":1-5:7," U2 ":3", "canonical stays");
	check(CDC_GTID_MYSQL, " " U2 ":3 ,\n" U1 ":7:1-5,", U1 ":1-5:7," U2 ":3",
	      "sorted, white space dropped");
	check(CDC_GTID_MYSQL, "3E11FA47-71CA-11E1-9E33-C80AA9429562:1", U1 ":1", "upper case");
	check(CDC_GTID_MYSQL, U1 ":1-3:4-6:8:7", U1 ":1-8", "touching intervals merge");
	check(CDC_GTID_MYSQL, U1 ":5-9:1-20:3", U1 ":1-20", "overlapping intervals merge");
	check(CDC_GTID_MYSQL, U1 ":1:3:5:7:9:2-8", U1 ":1-9", "one interval swallows many");
	check(CDC_GTID_MYSQL, U1 ":1-2:MyTag:5:b_2:1-3," U2 ":t:1",
	      U1 ":1-2:b_2:1-3:mytag:5," U2 ":t:1", "tags");
	check(CDC_GTID_MYSQL, U1 ":9223372036854775806", U1 ":9223372036854775806", "largest sequence");
	check(CDC_GTID_MYSQL, U1 ":9223372036854775807", "error", "sequence out of range");
	check(CDC_GTID_MYSQL, U1 ":0", "error", "sequence 0");
	check(CDC_GTID_MYSQL, U1 ":5-3", "error", "backward interval");
	check(CDC_GTID_MYSQL, U1, "error", "no interval");
	check(CDC_GTID_MYSQL, U1 ":tag", "error", "tag without interval");
	check(CDC_GTID_MYSQL, U1 ":1-", "error", "half an interval");
	check(CDC_GTID_MYSQL, U1 ":1x", "error", "garbage");
	check(CDC_GTID_MYSQL, U1 ":a23456789012345678901234567890123:1", "error", "tag too long");
	check(CDC_GTID_MYSQL, "3e11fa47:1", "error", "short uuid");
	check(CDC_GTID_MARIADB, "1-1-7, 0-1-5\n", "0-1-5,1-1-7", "MariaDB sorted");
	check(CDC_GTID_MARIADB, "0-2-9,0-1-5,0-1-8,0-1-3", "0-1-8,0-2-9",
	      "MariaDB keeps the last of each server");
	check(CDC_GTID_MARIADB, "4294967295-4294967295-18446744073709551615",
	      "4294967295-4294967295-18446744073709551615", "MariaDB largest");
	check(CDC_GTID_MARIADB, "4294967296-1-1", "error", "MariaDB domain out of range");
	check(CDC_GTID_MARIADB, "0-1", "error", "MariaDB two parts");
	check(CDC_GTID_MARIADB, "0-1-5-6", "error", "MariaDB four parts");
}

static void
test_membership(void)
{
	CdcGtidSet *set = cdc_gtid_set_create(CDC_GTID_MYSQL, &cdc_malloc_allocator);
	CdcGtid gtid = {.kind = CDC_GTID_MYSQL, .sequence = 1};
	CdcGtid maria = {.kind = CDC_GTID_MARIADB, .domain = 1, .server_id = 2, .sequence = 5};
	char text[CDC_GTID_TEXT_MAX];
	CdcError err;
	bool right = true;

	ok(cdc_gtid_set_is_empty(set), "empty");
	for (uint64_t i = 2; i <= 2000; i += 2)
	{
		gtid.sequence = i;
		cdc_gtid_set_add(set, &gtid, &err);
	}
	for (uint64_t i = 1; i <= 2002; i++)
	{
		gtid.sequence = i;
		right &= cdc_gtid_set_contains(set, &gtid) == (i % 2 == 0 && i <= 2000);
	}
	ok(right, "membership with holes");
	strcpy(gtid.tag, "t");
	gtid.sequence = 2;
	ok(!cdc_gtid_set_contains(set, &gtid), "a tag is another source");
	cdc_gtid_format(&gtid, text);
	is_str(text, "00000000-0000-0000-0000-000000000000:t:2", "format of a tagged one");
	is_int(cdc_gtid_set_add(set, &maria, &err), CDC_MALFORMED, "another kind is refused");
	cdc_gtid_set_free(set);

	set = cdc_gtid_set_create(CDC_GTID_MARIADB, &cdc_malloc_allocator);
	cdc_gtid_set_add(set, &maria, &err);
	cdc_gtid_format(&maria, text);
	is_str(text, "1-2-5", "format of MariaDB's");
	ok(cdc_gtid_set_contains(set, &maria), "MariaDB equal");
	maria.sequence = 4;
	ok(cdc_gtid_set_contains(set, &maria), "MariaDB below");
	maria.sequence = 6;
	ok(!cdc_gtid_set_contains(set, &maria), "MariaDB above");
	maria.sequence = 1;
	maria.server_id = 3;
	ok(!cdc_gtid_set_contains(set, &maria), "MariaDB other server");
	cdc_gtid_set_free(set);
}

static void
test_encode(void)
{
	static const char plain[] = U1 ":1-5:7";
	static const char tagged[] = U1 ":1-5:ab:2";
	CdcGtidSet *set = cdc_gtid_set_create(CDC_GTID_MYSQL, &cdc_malloc_allocator);
	CdcBuf out;

	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	cdc_gtid_set_add_text(set, plain, strlen(plain), NULL);
	cdc_gtid_set_encode(set, &out);
	is_int(out.len, 8 + 16 + 8 + 2 * 16, "length without tags");
	ok(out.data[0] == 1 && out.data[24] == 2 && out.data[32] == 1 && out.data[40] == 6 &&
	       out.data[48] == 7 && out.data[56] == 8,
	   "ends are exclusive");
	cdc_gtid_set_free(set);
	set = cdc_gtid_set_create(CDC_GTID_MYSQL, &cdc_malloc_allocator);
	cdc_buf_reset(&out);
	cdc_gtid_set_add_text(set, tagged, strlen(tagged), NULL);
	cdc_gtid_set_encode(set, &out);
	is_int(out.len, 8 + (16 + 1 + 8 + 16) + (16 + 3 + 8 + 16), "length with tags");
	ok(out.data[0] == 1 && out.data[1] == 2 && out.data[7] == 1, "first word with tags");
	ok(out.data[24] == 0, "no tag");
	ok(out.data[8 + 41 + 16] == 4 && memcmp(out.data + 8 + 41 + 17, "ab", 2) == 0, "tag");
	cdc_gtid_set_free(set);
	cdc_buf_free(&out);
}

int
main(void)
{
	test_text();
	test_membership();
	test_encode();
	return done_testing();
}
