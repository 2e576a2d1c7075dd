/*-------------------------------------------------------------------------
 *
 * util_lock.h
 *	  Who is in the way of a lock.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_UTIL_LOCK_H
#define CDC_UTIL_LOCK_H

#include "postgres.h"

/* PIDs of those who hold a lock on a relation of this database, "17, 4711"; NULL when nobody else does any more. */
extern char *util_lock_holders(Oid relid);

#endif							/* CDC_UTIL_LOCK_H */
