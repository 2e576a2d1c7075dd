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
#include "access/xlogdefs.h"
#include "nodes/bitmapset.h"
#include "nodes/pg_list.h"
#include "utils/relcache.h"

#include "core/outgoing.h"
#include "util/util_options.h"

typedef void (*DecodeEmit) (void *arg, const CdcRecord *record);

/*
 * Called before the first change of a relation, and again when the relation,
 * roles or rights may have changed: with the relation under whose name it is
 * shipped and the attribute numbers that are. It sees the catalogs as they were
 * at that change, and throws when they must not be shipped.
 */
typedef void (*DecodeMeet) (void *arg, Relation relation, const Bitmapset *columns);

/* Let the decoding context that this process starts next hand its records to emit. */
extern void decode_take(DecodeEmit emit, DecodeMeet meet, void *arg);

/* What a statement did to a table that is shipped. Good until the function returns, or the transaction of the decoding is undone. */
typedef struct DecodeStatement
{
	const char *schema;			/* of the table, its own, before the statement */
	const char *name;
	const char *command;		/* command tag */
	uint32		kinds;			/* CATALOG_CHANGE_BIT; 0: none that has a name */
	XLogRecPtr	commit_lsn;
	XLogRecPtr	txn_end;
	XLogRecPtr	lsn;
	int64		time_us;		/* of the commit, since 1970 */
	bool		is_shipped;		/* false: the rules leave it out */
} DecodeStatement;

/* What is being made into a record: after something was thrown, what it was about. */
typedef struct DecodePlace
{
	Oid			relid;			/* the table; InvalidOid: nothing of one table */
	TransactionId xid;			/* of the transaction, which may not have ended for others yet; Invalid: a row of a copy */
	XLogRecPtr	txn_end;		/* end of the transaction; Invalid: a row of a copy */
	XLogRecPtr	lsn;			/* of the change */
	bool		in_receiver;	/* emit was called with it */
	bool		in_others;		/* other processes read rows, and throw nothing that has values in it */
	const DecodeStatement *statement;	/* it is about what that did; else NULL */
} DecodePlace;

extern DecodePlace decode_place_now;

/*
 * Tables whose changes are left out from a place on: in the transaction that ends at txn_end those from lsn on, and all that come later. Lives in
 * CurrentMemoryContext. Transactions that end at or before skip_until are somebody else's business. With names: no other table may be shipped
 * under them.
 */
typedef struct DecodeStops DecodeStops;

extern DecodeStops *decode_stops_create(XLogRecPtr skip_until);
extern void decode_stops_add(DecodeStops *stops, Oid relid, XLogRecPtr txn_end, XLogRecPtr lsn, const char *schema, const char *name);

/* The decoding context that this process starts next heeds it. */
extern void decode_stops_use(DecodeStops *stops);

/* What the decoding context that this process starts next does about statements that it hears of, when it ships them. Lives on. */
struct CatalogChangeRules;
extern void decode_change_rules_use(const struct CatalogChangeRules *rules);

/* ... and hands what they did to note, with the arg of decode_take, when it is shipped or left out. Such a function writes nothing. */
typedef void (*DecodeNote) (void *arg, const DecodeStatement *statement);

extern void decode_statements_use(DecodeNote note);

/* A change, or a row of a copy, of which no record could be made, as an expression threw: for who keeps it. Good until the function returns. */
typedef struct DecodeLetter
{
	Oid			relid;
	const char *schema;			/* of the table, its own */
	const char *name;
	XLogRecPtr	commit_lsn;		/* READ: Invalid, and txn_end too */
	XLogRecPtr	txn_end;
	XLogRecPtr	lsn;			/* of the change; READ: end of the log when the chunk was read */
	int64		action;			/* place in the transaction among what is shipped or kept, from 1 */
	int64		time_us;		/* of the commit, since 1970 */
	CdcOutOp	op;
	Datum		before;			/* jsonb of the columns that the log has; 0: no such row */
	Datum		after;
	bytea	   *old_key;		/* SHA-256 of the key of the row that it removes, resp. writes; NULL: none, or not known */
	bytea	   *new_key;
	bytea	   *shape;			/* tells whether columns were renamed or dropped since */
	const ErrorData *error;
} DecodeLetter;

/* False, of a row of a copy: its chunk is to end with it. */
typedef bool (*DecodeKeep) (void *arg, const DecodeLetter *letter);

/* The decoding context that this process starts next hands such changes to keep, with the arg of decode_take, and goes on. */
extern void decode_letters_use(DecodeKeep keep);

/* What was shipped of a table that somebody follows. */
typedef struct DecodeShipped
{
	Oid			relid;
	bool		all;			/* the table was emptied, or its copy begins anew */
	bool		has_key;		/* else keys are of whole rows, of which there may be several */
	bytea	   *old_key;		/* as in a letter */
	bytea	   *new_key;
	List	   *told;			/* columns that it tells of the new row, List of char *; NIL: all */
	XLogRecPtr	txn_end;		/* Invalid: a row of a copy */
} DecodeShipped;

/*
 * Who keeps letters has to know what is shipped later of the same rows. wants is asked for each change that is; all with the arg of
 * decode_take. shipped follows the record; it is good until the function returns.
 */
typedef struct DecodeFollow
{
	bool		(*wants) (void *arg, Oid relid);
	void		(*shipped) (void *arg, const DecodeShipped *shipped);
} DecodeFollow;

/* The decoding context that this process starts next does so; follow has to live as long. */
extern void decode_shipped_use(const DecodeFollow *follow);

/* Throws for options (List of DefElem) that the plugin does not take. */
extern void decode_options_check(List *options);

/*
 * Look at tables as a decoding with those options would meet them now: throws what keeps one from being shipped. Each is locked against being
 * changed, and meet is called as for decode_take.
 */
extern void decode_tables_check(List *options, DecodeMeet meet, void *meet_arg, const List *relids);

/* The plugin's options. */
extern const UtilOptionTable decode_options;

#endif							/* CDC_DECODE_H */
