/*-------------------------------------------------------------------------
 *
 * util_arena.h
 *	  A CdcAllocator over a MemoryContext that returns NULL instead of throwing.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_UTIL_ARENA_H
#define CDC_UTIL_ARENA_H

#include "postgres.h"

#include "core/arena.h"

/* The allocator lives in the context it serves. */
extern const CdcAllocator *util_context_allocator(MemoryContext cxt);

#endif							/* CDC_UTIL_ARENA_H */
