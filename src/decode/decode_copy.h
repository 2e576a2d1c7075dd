/*-------------------------------------------------------------------------
 *
 * decode_copy.h
 *	  The initial copy of tables beside the stream: which changes the stream
 *	  leaves to the copy, and chunks of rows.
 *
 * NOTES
 *	  A table is copied in the order of its key, chunk by chunk. Each chunk is
 *	  read with a snapshot of its own, between two transactions of the stream, so
 *	  that it holds no old snapshot and can stop after any chunk.
 *
 *	  A key counts as copied when a chunk came as far as that. Of a change in the
 *	  stream, and of each of its two sides when it changes the key,
 *
 *	  1. what means a key that is not copied yet is dropped: the chunk to come sees it;
 *	  2. what means a copied key is dropped when the snapshot of the chunk that
 *		 has the key saw its transaction, and shipped when not.
 *
 *	  So every change is in the chunk or comes after it, and never both. What was
 *	  dropped by 1 must be seen by the chunk: before a snapshot is taken all
 *	  transactions that were decoded must have ended for everybody
 *	  (decode_copy_is_settled). A commit stands in the log before others see it,
 *	  for long when it waits for a synchronous standby.
 *
 *	  A row that moves from a key that is not copied to one that is may come
 *	  without its large values that were not touched, and nobody has them: that
 *	  key then counts as not copied, and the row is read once more before anything
 *	  is flushed.
 *
 *	  A TRUNCATE that some chunks of a table saw and others did not makes its copy
 *	  begin anew, and so does another key or name.
 *
 *	  A table that is dropped or renamed before all of it is passed may have a
 *	  successor of the same name, whose changes come by the stream. What the
 *	  receiver has of the former one is taken back before the first of them.
 *
 *	  Partitions are tables of their own here, whatever name they are shipped under.
 *	  A table without a key that old rows have is copied in one chunk.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_DECODE_COPY_H
#define CDC_DECODE_COPY_H

#include "postgres.h"
#include "access/xlogdefs.h"
#include "nodes/pg_list.h"

#include "decode/decode.h"

typedef struct DecodeCopy DecodeCopy;

/* A table that is copied, or was and whose chunks the stream has not passed. */
typedef struct DecodeCopyTable
{
	Oid			relid;			/* hash key */
	int			table_id;		/* the caller's number of it */
	char	   *schema;			/* its own names, by which it was copied */
	char	   *name;
	bool		complete;		/* all keys are copied */
	bool		gone;			/* nothing of it is shipped any more */
	bool		begins_anew;	/* the stream has made its copy begin anew; for the caller to note, who sets it false */
	bool		to_tell;		/* it begins anew, and the receiver has not been told yet */
	char	   *signature;		/* of its key and names, when something was copied; else NULL */
	Datum	   *bound;			/* copied up to that key; NULL: nothing is, or all */
	List	   *chunks;			/* DecodeCopied *, those that the stream has not passed */
	bool		has_passed;		/* it has passed others */
	List	   *again;			/* Datum *, copied keys whose rows are to be read once more */
} DecodeCopyTable;

/* Lives in CurrentMemoryContext. Changes of transactions that end at or before skip_until are somebody else's business. */
extern DecodeCopy *decode_copy_create(XLogRecPtr skip_until);

/* The decoding context that this process starts next heeds it. */
extern void decode_copy_use(DecodeCopy *copy);

extern DecodeCopyTable *decode_copy_add_table(DecodeCopy *copy, Oid relid, int table_id, const char *schema, const char *name);
extern void decode_copy_forget_table(DecodeCopy *copy, DecodeCopyTable *table);

/* Its copy begins anew: nothing of it is copied. */
extern void decode_copy_begin_anew(DecodeCopy *copy, DecodeCopyTable *table);

/* Chunks read before lsn are of no interest any more: transactions that they saw have been decoded. */
extern void decode_copy_passed(DecodeCopy *copy, DecodeCopyTable *table, XLogRecPtr lsn);

/* Take note of transactions whose commit may have been decoded before, and that others do not see yet. */
extern void decode_copy_note_running(DecodeCopy *copy);

/* Is all that was decoded visible to a snapshot that is taken now? Waits up to wait_ms for it. */
extern bool decode_copy_is_settled(DecodeCopy *copy, long wait_ms);

/* ---- chunks ---- */

typedef enum DecodeChunkResult
{
	DECODE_CHUNK_READ,
	DECODE_CHUNK_BUSY,			/* somebody has the table locked, or its index is too new: later */
	DECODE_CHUNK_CHANGED,		/* another key or name than that of its chunks */
	DECODE_CHUNK_GONE			/* there is no such table, or it is not to be shipped */
} DecodeChunkResult;

/* What a chunk came to; in the memory context that it was read in. */
typedef struct DecodeChunk
{
	char	   *signature;
	List	   *last_key;		/* texts; NIL: to the end */
	char	   *snapshot;		/* text of a pg_snapshot */
	XLogRecPtr	lsn;			/* end of the log when it was taken */
	uint64		rows;
} DecodeChunk;

/* Takes a row; false: that was the last one that fits. */
typedef bool (*DecodeChunkRow) (void *arg, const CdcRecord *record);

/*
 * Lets other processes read a chunk, in the same snapshot. bounds: keys, List of texts each, in their order; between each and the next one
 * (which belongs to it) there is a range; the first may be NIL (from the beginning), and the last (to the end). entries: how many the index has
 * there. Returns how many of the ranges, from the first on, were read whole, and *rows in them; 0: none, and nothing of them was handed on.
 */
typedef int (*DecodeChunkSpread) (void *arg, Oid relid, const DecodeChunk *chunk, const List *bounds, uint64 entries, uint64 *rows);

typedef struct DecodeChunkShare
{
	uint64		entries;		/* of the index, at most */
	int			ranges;			/* to cut them into */
	DecodeChunkSpread spread;
	void	   *arg;
} DecodeChunkShare;

/*
 * Read the next chunk of a table, or the row of the first key in table->again. With share: by other processes, when its key and types allow it
 * and they can be had. Inside a transaction of the caller that
 * has taken no snapshot, whose settings this changes, and that has to commit. The table is not changed.
 */
extern DecodeChunkResult decode_chunk_read(DecodeCopy *copy, DecodeCopyTable *table, DecodeChunkRow row, void *arg,
										   const DecodeChunkShare *share, DecodeChunk *chunk);

/* In such a process: a table whose ranges are read. */
typedef struct DecodeRanges DecodeRanges;

/*
 * options: DefElems of the plugin; meet as for decode_take. Inside a transaction with the chunk's snapshot and settings. chunk has signature and
 * lsn; its rows are counted. Lives in CurrentMemoryContext.
 */
extern DecodeRanges *decode_ranges_open(List *options, DecodeMeet meet, void *meet_arg, Oid relid, DecodeChunk *chunk, DecodeChunkRow row, void *arg);
extern void decode_ranges_read(DecodeRanges *ranges, List *lower, List *upper);
extern void decode_ranges_close(DecodeRanges *ranges);

/* The rows of a chunk are handed on and will be there: take it into account. In the transaction that it was read in, or any later one. */
extern bool decode_chunk_take(DecodeCopy *copy, DecodeCopyTable *table, const DecodeChunk *chunk, bool is_row);

/* The record that says now that the copy of a table begins anew. In a transaction of the caller, whose memory it lives in. */
extern void decode_copy_anew_now(DecodeCopy *copy, DecodeCopyTable *table, CdcRecord *record);

#endif							/* CDC_DECODE_COPY_H */
