/*-------------------------------------------------------------------------
 *
 * snapshot_fold.c
 *	  Keeps the plan of a table small, however large the table is.
 *
 * NOTES
 *	  Of a chunk that is done nobody asks any more where it begins and ends; only
 *	  how much there is of them is told. So two done chunks, of which one begins
 *	  where the other ends, become one row that stands for both. Chunks are cut in
 *	  the order of the key, so between two rows that are left there is always an
 *	  open chunk: a plan has about as many rows as workers have chunks.
 *
 *	  It is done whenever a chunk is cut, under the plan's lock. Chunks become done
 *	  without that lock, but none that is done changes any more except here.
 *
 *	  The row that stays has the higher number of the two, so that the highest
 *	  number of a plan never falls and no number comes twice.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "snapshot/snapshot_copy.h"

/* A done chunk, and what becomes of its row. */
typedef struct FoldChunk
{
	CatalogChunk *chunk;
	bool		gone;
	bool		changed;
} FoldChunk;

/* Does b begin where a ends? */
static bool
is_next(const CatalogChunk *a, const CatalogChunk *b)
{
	if (a->upper == NULL || b->lower == NULL || a->nkey != b->nkey)
		return false;
	for (int i = 0; i < a->nkey; i++)
	{
		if (a->upper[i] == NULL || b->lower[i] == NULL || strcmp(a->upper[i], b->lower[i]) != 0)
			return false;
	}
	return true;
}

/* Make one of a and its neighbour b. */
static void
fold(FoldChunk *a, FoldChunk *b)
{
	FoldChunk  *stays = a->chunk->chunk_no > b->chunk->chunk_no ? a : b;
	FoldChunk  *goes = stays == a ? b : a;

	stays->chunk->lower = a->chunk->lower;
	stays->chunk->upper = b->chunk->upper;
	stays->chunk->rows += goes->chunk->rows;
	stays->chunk->bytes += goes->chunk->bytes;
	stays->chunk->chunks += goes->chunk->chunks;
	stays->changed = true;
	goes->gone = true;
}

void
snapshot_fold_done(SnapshotCopy *copy, const CopyTable *table)
{
	List	   *done = catalog_chunk_list(copy->pipeline_id, table->table_id, table->generation, CATALOG_CHUNK_DONE);
	int			n = list_length(done);
	FoldChunk  *chunks = palloc0(sizeof(FoldChunk) * Max(n, 1));
	bool		again = n > 1;

	for (int i = 0; i < n; i++)
		chunks[i].chunk = list_nth(done, i);
	while (again)
	{
		again = false;
		for (int i = 0; i < n; i++)
		{
			for (int j = 0; j < n && !chunks[i].gone; j++)
			{
				if (i == j || chunks[j].gone || !is_next(chunks[i].chunk, chunks[j].chunk))
					continue;
				fold(&chunks[i], &chunks[j]);
				again = true;
			}
		}
	}
	for (int i = 0; i < n; i++)
	{
		if (chunks[i].gone)
			catalog_chunk_delete(chunks[i].chunk);
		else if (chunks[i].changed)
			catalog_chunk_update(chunks[i].chunk);
	}
}
