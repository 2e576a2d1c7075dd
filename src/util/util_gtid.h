/*-------------------------------------------------------------------------
 *
 * util_gtid.h
 *	  GTID sets for callers that throw instead of returning errors.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_UTIL_GTID_H
#define CDC_UTIL_GTID_H

#include "postgres.h"

#include "core/gtid.h"

/* An empty set; throws when out of memory. The allocator must outlive it. */
extern CdcGtidSet *util_gtid_set_create(CdcGtidKind kind, const CdcAllocator *allocator);

/* Add everything that the text holds; throws when it cannot be read. */
extern void util_gtid_set_add_text(CdcGtidSet *set, const char *gtids);

#endif							/* CDC_UTIL_GTID_H */
