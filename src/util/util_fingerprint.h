/*-------------------------------------------------------------------------
 *
 * util_fingerprint.h
 *	  What tells this server from a copy of it.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_UTIL_FINGERPRINT_H
#define CDC_UTIL_FINGERPRINT_H

#include "postgres.h"

/* "system identifier/timeline/host:data directory", palloc'd. */
extern char *util_fingerprint(void);

/* Is the second one of the same cluster, promoted after it was the first? A copy that was only started elsewhere is not. */
extern bool util_fingerprint_was_promoted(const char *before, const char *now);

#endif							/* CDC_UTIL_FINGERPRINT_H */
