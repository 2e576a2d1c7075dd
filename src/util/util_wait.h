/*-------------------------------------------------------------------------
 *
 * util_wait.h
 *	  Waiting for the latch, optionally with a file descriptor, interruptible; interrupts and the end of the postmaster.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_UTIL_WAIT_H
#define CDC_UTIL_WAIT_H

#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/pmsignal.h"

/* What a worker of ours waits for; shown as wait event from PostgreSQL 17 on ("CdcBridgeSourceRead", ...). */
typedef enum UtilWaitEvent
{
	UTIL_WAIT_MAIN,				/* launcher and managers: nothing to do */
	UTIL_WAIT_SOURCE_CONNECT,
	UTIL_WAIT_SOURCE_READ,
	UTIL_WAIT_SNAPSHOT,			/* snapshot worker: nothing to copy */
	UTIL_WAIT_PIPELINE,			/* a SQL function waits for a worker */
	UTIL_WAIT_VERIFY,			/* maintenance worker: the stream has to pass what was read */
	UTIL_WAIT_WAL,				/* export worker: nothing to decode */
	UTIL_WAIT_TARGET,			/* ingest worker: others use a target that is to be altered */
	UTIL_WAIT_KAFKA				/* export worker: Kafka has to take or to commit messages */
} UtilWaitEvent;

/* The wait event itself, for other ways of waiting. */
extern uint32 util_wait_event(UtilWaitEvent why);

/*
 * Wait until fd is readable, the latch is set or timeout_ms have passed (-1: no
 * time-out); fd may be PGINVALID_SOCKET. Resets the latch, processes interrupts
 * (so it may throw) and exits when the postmaster dies. Returns true when fd is
 * readable.
 */
extern bool util_wait(pgsocket fd, long timeout_ms, UtilWaitEvent why);

/*
 * Process interrupts (so it may throw), and exit when the postmaster is gone. For loops of workers: one that always has
 * something to do never waits, and a wait is the only other place where it would notice. While it lives no new postmaster can
 * start. Costs next to nothing: the kernel tells the death by a signal, where it can.
 */
static inline void
util_check_interrupts(void)
{
	CHECK_FOR_INTERRUPTS();
	if (unlikely(!PostmasterIsAlive()))
		proc_exit(1);
}

#endif							/* CDC_UTIL_WAIT_H */
