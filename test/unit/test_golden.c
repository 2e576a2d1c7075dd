/*-------------------------------------------------------------------------
 *
 * test_golden.c
 *	  Recorded binary logs against what they are known to hold.
 *
 * NOTES
 *	  Every test/golden/<server>/<name>.bin is decoded and compared with its
 *	  .expect; events must begin and end where they stand in the file. A few
 *	  values are asserted here once more, and the columns that the log cannot
 *	  tell are read as what they are.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include <glob.h>

#include "event_dump.h"
#include "tap.h"

/* Where two texts differ first: print both lines. */
static void
show_difference(const char *got, const char *want)
{
	const char *g = got;
	const char *w = want;
	int line = 1;

	while (*g != '\0' && *g == *w)
	{
		if (*g == '\n')
		{
			line++;
			got = g + 1;
			want = w + 1;
		}
		g++;
		w++;
	}
	printf("#  line %d\n#     got: %.*s\n#  wanted: %.*s\n", line, (int) strcspn(got, "\n"), got,
	       (int) strcspn(want, "\n"), want);
}

static void
check_expectation(const Recording *recording, const char *path)
{
	char expect_path[512];
	char *want;
	size_t len;
	CdcBuf out;

	snprintf(expect_path, sizeof(expect_path), "%.*s.expect", (int) (strlen(path) - 4), path);
	want = read_whole_file(expect_path, &len);
	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	is_int(dump_recording(recording, &out), CDC_OK, path);
	if (want == NULL)
		ok(false, expect_path);
	else if (!ok(strcmp(out.data, want) == 0, expect_path))
		show_difference(out.data, want);
	cdc_buf_free(&out);
	free(want);
}

/* Each event stands in the file where the reader says, whatever the header told. */
static void
check_positions(const Recording *recording, const char *path)
{
	BinlogReaderOptions options = {.memory_limit = 0};
	BinlogReader *reader = binlog_reader_create(&cdc_malloc_allocator, &options);
	CdcPosition start = {.file = "log.000001", .offset = 4};
	uint64_t offset = 4;
	bool right = true;
	BinlogEvent event;

	binlog_reader_start(reader, &start);
	for (size_t i = 0; i < recording->nevents; i++)
	{
		uint64_t end = offset + recording->events[i].len;

		right &= binlog_reader_feed(reader, recording->events[i].data, recording->events[i].len) ==
		         CDC_OK;
		while (binlog_reader_next(reader, &event) == CDC_OK)
		{
			right &= event.start.offset == offset;
			right &= event.kind == BINLOG_ROTATE ? event.end.offset == 4 : event.end.offset == end;
			if (event.kind == BINLOG_ROWS)
				binlog_reader_skip_rows(reader);
		}
		offset = end;
	}
	ok(right, path);
	binlog_reader_free(reader);
}

/* Does the recording hold this text in its decoded form? */
static void
check_holds(const char *path, const char *const *texts)
{
	Recording recording;
	CdcBuf out;

	if (!ok(recording_open(&recording, path), path))
		return;
	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	dump_recording(&recording, &out);
	for (; *texts != NULL; texts++)
		ok(strstr(out.data, *texts) != NULL, *texts);
	cdc_buf_free(&out);
	recording_close(&recording);
}

/* MariaDB's own types, as a caller reads them who has looked into the catalog. */
static void
check_disguised(void)
{
	static const char *const want[] = {
	    "'123e4567-e89b-12d3-a456-426655440000' '0.0.0.0' '::'",
	    "'00000000-0000-0000-0000-000000000000' '255.255.255.255' '::1'",
	    "'ffffffff-ffff-ffff-ffff-ffffffffff00' '10.0.0.0' '::ffff:1.2.3.4'",
	    NULL, /* a random uuid */
	    "'017f22e2-79b0-7cc3-98c4-dc0c0c07398f' '127.0.0.1' 'fe80::1:0:0:1'",
	    "NULL NULL '2001:db8:0:0:1::'",
	    "'0a0b0c0d-0000-4000-8000-000000000000' '1.0.0.0' '1:2:3:4:5:6:7:8'",
	    "'11111111-1111-1111-1111-111111111100' '0.0.0.1' '::2'",
	    "'6ccd780c-baba-1026-9564-5b8c656024db' '9.9.9.9' '0:0:1::'",
	};
	static const CdcType types[] = {CDC_TYPE_INT, CDC_TYPE_UUID, CDC_TYPE_INET4, CDC_TYPE_INET6};
	BinlogReaderOptions options = {.memory_limit = 1 << 20};
	BinlogReader *reader = binlog_reader_create(&cdc_malloc_allocator, &options);
	CdcPosition start = {.file = "log.000001", .offset = 4};
	Recording recording;
	BinlogEvent event;
	CdcArena arena;
	size_t row = 0;

	recording_open(&recording, "test/golden/mariadb-10.11/values.bin");
	cdc_arena_init(&arena, &cdc_malloc_allocator, 0);
	binlog_reader_start(reader, &start);
	for (size_t i = 0; i < recording.nevents; i++)
	{
		binlog_reader_feed(reader, recording.events[i].data, recording.events[i].len);
		while (binlog_reader_next(reader, &event) == CDC_OK)
		{
			CdcBuf out;

			if (event.kind != BINLOG_ROW || strcmp(event.u.row.table->name, "u") != 0)
				continue;
			cdc_buf_init(&out, &cdc_malloc_allocator, 0);
			for (uint32_t c = 1; c < 4; c++)
			{
				CdcColumnDef column = event.u.row.table->columns[c];
				CdcCell cell;

				column.type = types[c];
				event.u.row.cell(&column, &event.u.row.after[c], &arena, &cell, NULL);
				if (c > 1)
					cdc_buf_add_char(&out, ' ');
				dump_cell(&cell, &out);
			}
			if (row < 9 && want[row] != NULL)
				is_str(out.data, want[row], "uuid, inet4, inet6 as the server prints them");
			row++;
			cdc_buf_free(&out);
		}
	}
	is_int(row, 9, "rows of the table of addresses");
	binlog_reader_free(reader);
	cdc_arena_free(&arena);
	recording_close(&recording);
}

int
main(void)
{
	static const char *const full[] = {
	    "j=18446744073709551615u",
	    "i=-9223372036854775808",
	    "b=-838:59:59.000000",
	    "e=-00:00:01.000001",
	    "b='-12345678901234567890123456789012345.123456789012345678901234567890'",
	    "j=epoch:zero",
	    "a int invisible",
	    "v vector(3)",
	    "b varchar(400) not-null utf8mb4/255 key:2 prefix:10",
	    NULL};
	static const char *const labels[] = {
	    "labels:'é','日本'", "b='日本', c='é,x', d='é', e='v299', f='a,i', g='s0,s63'", NULL};
	static const char *const misc[] = {
	    ":mytag:1",    "XA_PREPARE two-phase", "XA_PREPARE one-phase",
	    "277-626 XID", "'truncate ctas'",      NULL};
	static const char *const maria[] = {"start-alter", "xa-complete", "UPDATE_ROWS_COMPRESSED_V1",
	                                    "QUERY_COMPRESSED", NULL};
	static const char *const partial[] = {"partial[9]", "partial[0]", "k='{\"z\": 9}'", NULL};
	glob_t paths;

	if (!ok(glob("test/golden/*/*.bin", 0, NULL, &paths) == 0 && paths.gl_pathc >= 15,
	        "recordings are there"))
		return done_testing();
	for (size_t i = 0; i < paths.gl_pathc; i++)
	{
		Recording recording;

		if (!ok(recording_open(&recording, paths.gl_pathv[i]), "recording can be read"))
			continue;
		check_expectation(&recording, paths.gl_pathv[i]);
		check_positions(&recording, paths.gl_pathv[i]);
		recording_close(&recording);
	}
	globfree(&paths);
	check_holds("test/golden/mysql-9.7/full.bin", full);
	check_holds("test/golden/mysql-9.7/enum.bin", labels);
	check_holds("test/golden/mariadb-10.11/enum.bin", labels);
	check_holds("test/golden/mysql-9.7/misc.bin", misc);
	check_holds("test/golden/mariadb-10.11/misc.bin", maria);
	check_holds("test/golden/mysql-9.7/pj.bin", partial);
	check_disguised();
	return done_testing();
}
