/*-------------------------------------------------------------------------
 *
 * util_lock.h
 *	  Locks on targets: who is in the way of one, and how long it is waited for.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_UTIL_LOCK_H
#define CDC_UTIL_LOCK_H

#include "postgres.h"

/* PIDs of those who hold a lock on a relation of this database, "17, 4711"; NULL when nobody else does any more. */
extern char *util_lock_holders(Oid relid);

/*
 * From here to the end of the transaction, or to util_lock_wait_long(), a lock is waited for UTIL_LOCK_TRY_MS: whoever wants to
 * use the table meanwhile queues up behind us. Longer waits are many such tries with pauses between them.
 */
#define UTIL_LOCK_TRY_MS 300
extern void util_lock_wait_briefly(void);
extern void util_lock_wait_long(void);

/* Is that the error of a lock that was not to be had just now, so that another try may get it? */
extern bool util_lock_is_missed(int sqlstate);

#endif							/* CDC_UTIL_LOCK_H */
