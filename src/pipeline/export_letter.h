/*-------------------------------------------------------------------------
 *
 * export_letter.h
 *	  Dead letters of an outgoing pipeline: changes that could not be shipped,
 *	  and are kept.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_EXPORT_LETTER_H
#define CDC_EXPORT_LETTER_H

#include "postgres.h"
#include "access/xlogdefs.h"

#include "decode/decode.h"
#include "pipeline/worker.h"

typedef struct ExportLetters ExportLetters;

/*
 * start: the log is read from there on, so letters of what commits later are removed, and come
 * again. Outside of a transaction; in worker->cxt.
 */
extern ExportLetters *export_letters_open(const Worker *worker, XLogRecPtr start, TimeLineID timeline);

/* Keep one, in memory until it is written. Throws when they are too many. False: the chunk that it is of is to end. */
extern bool export_letters_keep(ExportLetters *letters, const DecodeLetter *letter);

/*
 * Write down, for good, what was kept; outside of a transaction, before anything is confirmed that lies behind. Returns the end of that
 * transaction in the log; Invalid: there was nothing.
 */
extern XLogRecPtr export_letters_write(ExportLetters *letters);

/* Has a table letters that later changes may make moot? And: such a change was shipped. */
extern bool export_letters_follow(const ExportLetters *letters, Oid relid);
extern void export_letters_shipped(ExportLetters *letters, const DecodeShipped *shipped);

/* The same as export_letters_write in the open transaction. */
extern void export_letters_write_waiting(ExportLetters *letters);

/* Write down those of the chunk that was read, in the transaction that its row of the ledger is written in. */
extern void export_letters_write_copied(ExportLetters *letters, int32 chunk_no);

#endif							/* CDC_EXPORT_LETTER_H */
