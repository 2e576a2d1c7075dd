/*-------------------------------------------------------------------------
 *
 * util_wait.c
 *	  Waiting for the latch, optionally with a file descriptor, interruptible.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/latch.h"

#include "compat/pg_compat.h"
#include "util/util_wait.h"

/* It is registered when it is first waited for. */
uint32
util_wait_event(UtilWaitEvent why)
{
	static const char *const names[] = {
		[UTIL_WAIT_MAIN] = "CdcBridgeMain",
		[UTIL_WAIT_SOURCE_CONNECT] = "CdcBridgeSourceConnect",
		[UTIL_WAIT_SOURCE_READ] = "CdcBridgeSourceRead",
		[UTIL_WAIT_SNAPSHOT] = "CdcBridgeSnapshot",
		[UTIL_WAIT_PIPELINE] = "CdcBridgePipeline",
		[UTIL_WAIT_VERIFY] = "CdcBridgeVerify",
		[UTIL_WAIT_WAL] = "CdcBridgeWal",
		[UTIL_WAIT_TARGET] = "CdcBridgeTarget",
		[UTIL_WAIT_KAFKA] = "CdcBridgeKafka",
	};
	static uint32 events[lengthof(names)];

	if (events[why] == 0)
		events[why] = cdc_wait_event(names[why]);
	return events[why];
}

bool
util_wait(pgsocket fd, long timeout_ms, UtilWaitEvent why)
{
	int			wake = WL_LATCH_SET | WL_EXIT_ON_PM_DEATH;
	int			rc;

	CHECK_FOR_INTERRUPTS();

	if (timeout_ms >= 0)
		wake |= WL_TIMEOUT;
	if (fd != PGINVALID_SOCKET)
		wake |= WL_SOCKET_READABLE;

	rc = WaitLatchOrSocket(MyLatch, wake, fd, timeout_ms, util_wait_event(why));
	if (rc & WL_LATCH_SET)
		ResetLatch(MyLatch);

	CHECK_FOR_INTERRUPTS();
	return (rc & WL_SOCKET_READABLE) != 0;
}
