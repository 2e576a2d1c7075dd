/*-------------------------------------------------------------------------
 *
 * arena.h
 *	  Allocator interface and a bump arena on top of it.
 *
 * NOTES
 *	  The plain-C rungs never call malloc themselves; the caller hands them a
 *	  CdcAllocator. In the backend it is a MemoryContext with NO_OOM
 *	  (util/util_arena.c), in tests and fuzzers malloc with a limit
 *	  (cdc_malloc_allocator). An arena hands out pieces that live until
 *	  cdc_arena_reset; it never moves what it gave out.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CORE_ARENA_H
#define CDC_CORE_ARENA_H

#include "core/status.h"

typedef struct CdcAllocator
{
	void	   *(*alloc) (void *ctx, size_t size);	/* NULL when out of memory; never throws */
	void		(*free) (void *ctx, void *ptr);
	void	   *ctx;
} CdcAllocator;

/* malloc and free, for tests, fuzzers and threads. */
extern const CdcAllocator cdc_malloc_allocator;

typedef struct CdcArenaBlock CdcArenaBlock;

typedef struct CdcArena
{
	const CdcAllocator *allocator;
	CdcArenaBlock *blocks;		/* newest first */
	size_t		used;			/* bytes used in the newest block */
	size_t		total;			/* bytes held in all blocks */
	size_t		limit;			/* total never passes this; 0 means no limit */
} CdcArena;

extern void cdc_arena_init(CdcArena *arena, const CdcAllocator *allocator, size_t limit);

/* 8-byte aligned, not zeroed; NULL when the allocator or the limit says no. */
extern void *cdc_arena_alloc(CdcArena *arena, size_t size);
extern void *cdc_arena_zalloc(CdcArena *arena, size_t size);

/* Copy len bytes and add a NUL after them. */
extern char *cdc_arena_strndup(CdcArena *arena, const void *data, size_t len);

/* Forget all pieces; keeps one block of moderate size for the next round. */
extern void cdc_arena_reset(CdcArena *arena);

/* Give everything back to the allocator. */
extern void cdc_arena_free(CdcArena *arena);

#endif							/* CDC_CORE_ARENA_H */
