/*-------------------------------------------------------------------------
 *
 * decode_stop.c
 *	  Tables that are stopped: from which place in the log on their changes are
 *	  left out; and the place of what is being made into a record, for whoever
 *	  stops a table when that throws.
 *
 * NOTES
 *	  A place is the end of a transaction's commit record, and in that transaction
 *	  the place of the change. So what came before an error is shipped, as often as
 *	  the log is read, and nothing from there on.
 *
 *	  A table that gets the name of a stopped one is not shipped either: the
 *	  receiver has rows of the other under that name.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "decode/decode_private.h"
#include "util/util_error.h"

typedef struct Stop
{
	Oid			relid;			/* hash key */
	XLogRecPtr	txn_end;
	XLogRecPtr	lsn;
	char	   *schema;			/* names that another table must not have; NULL: that does not matter */
	char	   *name;
} Stop;

struct DecodeStops
{
	HTAB	   *tables;			/* Stop */
	XLogRecPtr	skip_until;
};

DecodePlace decode_place_now;

static DecodeStops *next_stops;

DecodeStops *
decode_stops_create(XLogRecPtr skip_until)
{
	DecodeStops *stops = palloc0(sizeof(DecodeStops));
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(Stop),.hcxt = CurrentMemoryContext};

	stops->tables = hash_create("cdc stopped tables", 16, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	stops->skip_until = skip_until;
	return stops;
}

void
decode_stops_add(DecodeStops *stops, Oid relid, XLogRecPtr txn_end, XLogRecPtr lsn, const char *schema, const char *name)
{
	Stop	   *stop = hash_search(stops->tables, &relid, HASH_ENTER, NULL);

	stop->txn_end = txn_end;
	stop->lsn = lsn;
	stop->schema = schema == NULL ? NULL : pstrdup(schema);
	stop->name = schema == NULL ? NULL : pstrdup(name);
}

void
decode_stops_use(DecodeStops *stops)
{
	next_stops = stops;
}

void
decode_stops_attach(DecodeState *state)
{
	state->stops = next_stops;
	next_stops = NULL;
}

bool
decode_stops_cover(const DecodeState *state, Oid relid, XLogRecPtr txn_end, XLogRecPtr lsn)
{
	const Stop *stop = state->stops == NULL ? NULL : hash_search(state->stops->tables, &relid, HASH_FIND, NULL);

	if (stop == NULL)
		return false;
	/* what the receiver has already needs no look at the table, which may be the trouble */
	return txn_end <= state->stops->skip_until || txn_end > stop->txn_end || (txn_end == stop->txn_end && lsn >= stop->lsn);
}

void
decode_stops_check_name(const DecodeState *state, Oid relid, const char *schema, const char *name)
{
	HASH_SEQ_STATUS scan;
	const Stop *stop;

	if (state->stops == NULL)
		return;
	hash_seq_init(&scan, state->stops->tables);
	while ((stop = hash_seq_search(&scan)) != NULL)
	{
		const char *stopped_schema;
		const char *stopped_name;

		if (stop->relid == relid || stop->schema == NULL ||
			!decode_route_find(state, stop->schema, stop->name, &stopped_schema, &stopped_name) ||
			strcmp(stopped_schema, schema) != 0 || strcmp(stopped_name, name) != 0)
			continue;
		hash_seq_term(&scan);
		ereport(ERROR,
				(errcode(CDC_ERRCODE_TABLE_CHANGED),
				 errmsg("another table was shipped as %s, and is stopped", quote_qualified_identifier(schema, name)),
				 errdetail("The receiver has rows of that one under the name."),
				 errhint("Use cdc_resync_table() to have it begin anew with the rows of this one.")));
	}
}
