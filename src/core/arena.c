/*-------------------------------------------------------------------------
 *
 * arena.c
 *	  Bump arena over a CdcAllocator.
 *
 * NOTES
 *	  Blocks double in size up to BLOCK_MAX, so that a small arena (one table
 *	  definition) stays small and a busy one asks its allocator rarely. A piece
 *	  that does not fit gets a block of its own size.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "core/arena.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_MIN ((size_t) 1024)
#define BLOCK_MAX ((size_t) 256 * 1024)
#define ALIGN8(n) (((n) + 7) & ~(size_t) 7)

struct CdcArenaBlock
{
	CdcArenaBlock *next;
	size_t size; /* bytes after this header */
};

static void *
malloc_cb(void *ctx, size_t size)
{
	(void) ctx;
	return malloc(size);
}

static void
free_cb(void *ctx, void *ptr)
{
	(void) ctx;
	free(ptr);
}

const CdcAllocator cdc_malloc_allocator = {malloc_cb, free_cb, NULL};

void
cdc_arena_init(CdcArena *arena, const CdcAllocator *allocator, size_t limit)
{
	arena->allocator = allocator;
	arena->blocks = NULL;
	arena->used = 0;
	arena->total = 0;
	arena->limit = limit;
}

/*
 * Make room for size bytes (already aligned) in a new newest block. Returns
 * false when the limit or the allocator says no.
 */
static bool
add_block(CdcArena *arena, size_t size)
{
	size_t want = arena->total;
	CdcArenaBlock *block;

	if (want < BLOCK_MIN)
		want = BLOCK_MIN;
	if (want > BLOCK_MAX)
		want = BLOCK_MAX;
	if (want < size)
		want = size;
	if (arena->limit != 0)
	{
		if (arena->total > arena->limit || size > arena->limit - arena->total)
			return false;
		if (want > arena->limit - arena->total)
			want = size;
	}
	block = arena->allocator->alloc(arena->allocator->ctx, sizeof(CdcArenaBlock) + want);
	if (block == NULL)
		return false;
	block->next = arena->blocks;
	block->size = want;
	arena->blocks = block;
	arena->used = 0;
	arena->total += want;
	return true;
}

void *
cdc_arena_alloc(CdcArena *arena, size_t size)
{
	char *piece;

	if (size > SIZE_MAX - 64)
		return NULL;
	size = size == 0 ? 8 : ALIGN8(size);
	if (arena->blocks == NULL || size > arena->blocks->size - arena->used)
	{
		if (!add_block(arena, size))
			return NULL;
	}
	piece = (char *) (arena->blocks + 1) + arena->used;
	arena->used += size;
	return piece;
}

void *
cdc_arena_zalloc(CdcArena *arena, size_t size)
{
	void *piece = cdc_arena_alloc(arena, size);

	if (piece != NULL)
		memset(piece, 0, size);
	return piece;
}

char *
cdc_arena_strndup(CdcArena *arena, const void *data, size_t len)
{
	char *copy;

	if (len == SIZE_MAX)
		return NULL;
	copy = cdc_arena_alloc(arena, len + 1);
	if (copy == NULL)
		return NULL;
	if (len > 0)
		memcpy(copy, data, len);
	copy[len] = '\0';
	return copy;
}

void
cdc_arena_reset(CdcArena *arena)
{
	CdcArenaBlock *keep = arena->blocks;
	CdcArenaBlock *block;

	if (keep == NULL)
		return;
	if (keep->size > BLOCK_MAX)
	{
		cdc_arena_free(arena);
		return;
	}
	for (block = keep->next; block != NULL;)
	{
		CdcArenaBlock *next = block->next;

		arena->allocator->free(arena->allocator->ctx, block);
		block = next;
	}
	keep->next = NULL;
	arena->used = 0;
	arena->total = keep->size;
}

void
cdc_arena_free(CdcArena *arena)
{
	CdcArenaBlock *block;

	for (block = arena->blocks; block != NULL;)
	{
		CdcArenaBlock *next = block->next;

		arena->allocator->free(arena->allocator->ctx, block);
		block = next;
	}
	arena->blocks = NULL;
	arena->used = 0;
	arena->total = 0;
}
