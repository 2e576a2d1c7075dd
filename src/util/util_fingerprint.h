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

/* "system identifier/timeline/host:data directory", palloc'd. */
extern char *util_fingerprint(void);

#endif							/* CDC_UTIL_FINGERPRINT_H */
