/*-------------------------------------------------------------------------
 *
 * dump_events.c
 *	  Print a recorded binary log as the golden tests expect it.
 *
 * NOTES
 *	  build/plain-asan/dump_events FILE.bin > FILE.expect
 *	  makes or renews an expectation. Read the difference before committing it.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include <stdio.h>

#include "event_dump.h"

int
main(int argc, char **argv)
{
	Recording recording;
	CdcStatus status;
	CdcBuf out;

	if (argc != 2 || !recording_open(&recording, argv[1]))
		return 2;
	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	status = dump_recording(&recording, &out);
	fwrite(out.data, 1, out.len, stdout);
	cdc_buf_free(&out);
	recording_close(&recording);
	return status == CDC_OK ? 0 : 1;
}
