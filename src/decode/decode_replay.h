/*-------------------------------------------------------------------------
 *
 * decode_replay.h
 *	  Dead letters of an outgoing pipeline -> records, once more.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_DECODE_REPLAY_H
#define CDC_DECODE_REPLAY_H

#include "postgres.h"
#include "access/xlogdefs.h"
#include "nodes/pg_list.h"

#include "decode/decode_copy.h"

typedef struct DecodeOldLetter
{
	Oid			relid;
	CdcOutOp	op;
	Datum		before;			/* jsonb; 0: none */
	Datum		after;
	const List *newer;			/* columns of "after" that are out of date, List of char * */
	const bytea *old_key;		/* NULL: no key is to be removed (any more) */
	const bytea *new_key;
	const bytea *shape;			/* as in a DecodeLetter; NULL: not known */
	XLogRecPtr	lsn;			/* of the change */
	XLogRecPtr	commit_lsn;		/* Invalid: a row of a copy */
	int64		time_us;		/* of the commit, since 1970; 0: not known */
} DecodeOldLetter;

typedef enum DecodeReplayResult
{
	DECODE_REPLAY_MADE,			/* there is a record */
	DECODE_REPLAY_NOTHING,		/* the options ship nothing of it */
	DECODE_REPLAY_BUSY,			/* somebody has the table locked: later */
	DECODE_REPLAY_GONE			/* there is no such table, or it is not shipped */
} DecodeReplayResult;

/*
 * Make a record of a letter, by how its table is shipped now: of a change with that op (an UPDATE where columns are out of date), of_copy and in no
 * transaction. It lives in CurrentMemoryContext. Throws what keeps the letter from being shipped. Inside a transaction of the caller, with a
 * snapshot, whose settings this changes.
 */
extern DecodeReplayResult decode_replay(DecodeCopy *copy, const DecodeOldLetter *letter, CdcRecord *record);

#endif							/* CDC_DECODE_REPLAY_H */
