/*-------------------------------------------------------------------------
 *
 * decode_reader.h
 *	  Logical decoding inside this process: a slot of our own, read record by
 *	  record without SQL and without a walsender.
 *
 * NOTES
 *	  Calls arrive as open (step | wait | confirm)* close, all outside of
 *	  transactions. What is decoded comes by the function that decode_take named
 *	  before, from within step. All may throw; after that only close may be called.
 *
 *	  A slot is never moved or made anew here by guess: look tells what it is.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_DECODE_READER_H
#define CDC_DECODE_READER_H

#include "postgres.h"
#include "access/xlogdefs.h"
#include "nodes/pg_list.h"

#include "decode/decode.h"

/* What there is under a slot's name. */
typedef struct DecodeSlot
{
	bool		exists;
	bool		is_ours;		/* a logical slot of this database and of our plugin */
	bool		is_invalidated; /* the server has given up what it held */
	bool		is_failover;	/* standbys shall have a copy of it */
	bool		is_synced;		/* it is such a copy, or was before this server was promoted */
	int			active_pid;		/* 0: nobody reads it */
	XLogRecPtr	confirmed_lsn;	/* up to where it was told that all has arrived */
	XLogRecPtr	restart_lsn;	/* from where the log is kept for it */
} DecodeSlot;

extern void decode_slot_look(const char *name, DecodeSlot *slot);

/* Throws what is missing in this server's settings, with what to set. */
extern void decode_require_settings(void);

/* Make the slot; returns where it begins. Waits for transactions that run now: what they do is not in it. failover: standbys get a copy of it. */
extern XLogRecPtr decode_slot_create(const char *name, bool failover);

/* Let standbys have a copy of it, or not. Nobody reads it meanwhile. */
extern void decode_slot_set_failover(const char *name, bool failover);

/* Drop it, when it is there and nobody reads it; false when it is still there. */
extern bool decode_slot_drop(const char *name);

typedef struct DecodeReader DecodeReader;

/*
 * options: DefElems of the plugin (decode_options). What committed before "from" is not handed on, also when the slot stands before it.
 * The reader lives in CurrentMemoryContext.
 */
extern DecodeReader *decode_reader_open(const char *slot, XLogRecPtr from, List *options);

/* Decode the next record of the log; false when there is none for now. */
extern bool decode_reader_step(DecodeReader *reader);

/* Everything before it has been decoded; transactions that ended before it have been handed on. */
extern XLogRecPtr decode_reader_position(const DecodeReader *reader);

/* The slot may forget what lies before lsn. */
extern void decode_reader_confirm(DecodeReader *reader, XLogRecPtr lsn);

/* How much less of the log the slot would hold back, were everything confirmed that was read: what waits for it in the slot. */
extern uint64 decode_reader_held_back(const DecodeReader *reader);

/* Wait until there is more to read, or timeout_ms have passed. Serves interrupts; ends the process when the postmaster dies. */
extern void decode_reader_wait(DecodeReader *reader, long timeout_ms);

extern void decode_reader_close(DecodeReader *reader);

/* Where the durable end of the log is now, and its timeline. */
extern XLogRecPtr decode_log_end(TimeLineID *timeline);

/*
 * Which standby has to have the log up to lsn before it is decoded for a failover slot, and has not? Says so in a sentence, with what to
 * do in *hint; NULL: there is none.
 */
extern char *decode_standby_waited_for(XLogRecPtr lsn, char **hint);

#endif							/* CDC_DECODE_READER_H */
