/*-------------------------------------------------------------------------
 *
 * util_arena.c
 *	  A CdcAllocator over a MemoryContext that returns NULL instead of throwing.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "util/util_arena.h"

/* Huge pieces are allowed: the arena's own limit bounds them. */
static void *
context_alloc(void *ctx, size_t size)
{
	return MemoryContextAllocExtended((MemoryContext) ctx, size,
									  MCXT_ALLOC_NO_OOM | MCXT_ALLOC_HUGE);
}

static void
context_free(void *ctx, void *ptr)
{
	if (ptr != NULL)
		pfree(ptr);
}

const CdcAllocator *
util_context_allocator(MemoryContext cxt)
{
	CdcAllocator *allocator = MemoryContextAlloc(cxt, sizeof(CdcAllocator));

	allocator->alloc = context_alloc;
	allocator->free = context_free;
	allocator->ctx = cxt;
	return allocator;
}
