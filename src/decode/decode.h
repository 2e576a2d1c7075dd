/*-------------------------------------------------------------------------
 *
 * decode.h
 *	  The output plugin cdc_bridge: WAL -> records.
 *
 * NOTES
 *	  The library is an output plugin for every client of logical decoding
 *	  (pg_recvlogical, pg_logical_slot_get_changes, ...): such a client gets each
 *	  record as text, in the format that its options name.
 *
 *	  A process that decodes for itself takes the records instead: it calls
 *	  decode_take, then CreateDecodingContext with the same options, and its
 *	  function is called with each record from within
 *	  LogicalDecodingProcessRecord. Options that only say how text looks do
 *	  nothing then; marks of transactions always come.
 *
 *	  A record is only good until the function returns (core/outgoing.h). The
 *	  function runs in a memory context that is emptied after each record, inside
 *	  a transaction of the decoding with a historic snapshot: it must not
 *	  read tables, wait, or let interrupts be served late. What it throws ends
 *	  the decoding.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_DECODE_H
#define CDC_DECODE_H

#include "postgres.h"

#include "core/outgoing.h"
#include "util/util_options.h"

typedef void (*DecodeEmit) (void *arg, const CdcRecord *record);

/* Let the decoding context that this process starts next hand its records to emit. */
extern void decode_take(DecodeEmit emit, void *arg);

/* The plugin's options. */
extern const UtilOptionTable decode_options;

#endif							/* CDC_DECODE_H */
