/*-------------------------------------------------------------------------
 *
 * catalog_dead_letter.h
 *	  Rows of cdc_bridge.dead_letter, changes that could not be applied, and of
 *	  cdc_bridge.dead_letter_request, what is to become of them.
 *
 * NOTES
 *	  Letters are written by the ingest worker, those of copied rows by snapshot
 *	  workers under their table's lock. After that the ingest worker alone changes
 *	  them, so nobody waits for another one here: SQL functions only write requests.
 *
 *	  A letter that is open (WAITING, FAILED) names the keys that it would remove
 *	  and write, as SHA-256. When a later change of such a key is applied that half
 *	  of the letter is moot, and the letter is SUPERSEDED when no half is left.
 *
 *	  Of an outgoing pipeline the export worker does all this, and the OID of the
 *	  table stands where others have their number of it. A letter that is shipped again is open, with the
 *	  number of its chunk, until the sink has that; nobody else touches it meanwhile.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CATALOG_DEAD_LETTER_H
#define CDC_CATALOG_DEAD_LETTER_H

#include "postgres.h"
#include "access/xlogdefs.h"

#include "catalog/catalog.h"

typedef enum CatalogLetterState
{
	CATALOG_LETTER_WAITING,		/* -> all others */
	CATALOG_LETTER_FAILED,		/* a replay could not apply it either: -> all others but WAITING */
	CATALOG_LETTER_REPLAYED,
	CATALOG_LETTER_SUPERSEDED,	/* with the reason */
	CATALOG_LETTER_DISCARDED	/* somebody gave it up */
} CatalogLetterState;

extern const char *catalog_letter_state_name(CatalogLetterState state);

#define CATALOG_LETTER_KEY_LEN 32

typedef struct CatalogDeadLetter
{
	int32		pipeline_id;
	int64		id;				/* given by _insert; grows in the order of the changes of a table, but for rows of a copy */
	int32		table_id;
	char	   *source_schema;
	char	   *source_table;
	CatalogLetterState state;
	CdcPosition position;		/* start of its source transaction; unknown: a row of a copy */
	char	   *gtid;			/* NULL: none */
	int64		action;			/* number of the change in its transaction: 1, 2, ...; 0: a row of a copy, on the way out its chunk's number */
	const char *operation;		/* "insert", "update", "delete", "snapshot" */
	Datum		before;			/* jsonb, see heap_image.h, columns as the table names them now; 0: none */
	Datum		after;
	UtilErrorInfo error;		/* for _insert */
	CatalogError shown_error;	/* when read */
	TimestampTz changed_at;		/* at the source; 0: not known */
	TimestampTz created_at;
	int32		attempts;
	TimestampTz last_attempt_at;
	TimestampTz settled_at;		/* 0: open */
	char	   *reason;
	int64		request;		/* newest that took it up; 0: none */
	List	   *newer;			/* columns of "after" that are out of date, List of char * */
	bytea	   *old_key;		/* to be removed; NULL: none */
	bytea	   *new_key;		/* to be written */
	int32		chunk_no;		/* outgoing: the chunk that it is shipped again in, until the sink has that; 0: none */
	bytea	   *shape;			/* outgoing: of the columns that its table had; NULL: not known */
} CatalogDeadLetter;

extern void catalog_dead_letter_insert(const CatalogDeadLetter *letter);

/* The open letter of the lowest number above that; NULL when there is none. */
extern CatalogDeadLetter *catalog_dead_letter_next(int32 pipeline_id, int64 after_id);

/* All letters by number; each lives until the next call. */
typedef void (*CatalogLetterLook) (void *arg, const CatalogDeadLetter *letter);
extern void catalog_dead_letter_each(int32 pipeline_id, CatalogLetterLook look, void *arg);

/*
 * Hand over the keys of a table's open letters whose number is above *last, and set that to the highest number seen; 0:
 * those of all. Returns how many letters these are. And: are there any?
 */
typedef void (*CatalogLetterKey) (void *arg, int32 table_id, const bytea *key);
extern bool catalog_dead_letter_is_any_open(int32 pipeline_id, int32 table_id);
extern int64 catalog_dead_letter_keys(int32 pipeline_id, int32 table_id, int64 *last, CatalogLetterKey look, void *arg);

/* Write what became of a letter: its state, with reason and request; error: why it failed (NULL: leave the last one). */
extern void catalog_dead_letter_settle(const CatalogDeadLetter *letter, CatalogLetterState state, const char *reason,
									   int64 request, const UtilErrorInfo *error);

/*
 * A change of the row with that key was applied: letters below before_id (rows of a copy whatever their number is) have
 * nothing more to say of it. columns: the change told only these (List of char *); NIL: all, or that the row is gone.
 * Returns how many letters are superseded by that.
 */
extern int	catalog_dead_letter_supersede(int32 pipeline_id, int32 table_id, const bytea *key, const List *columns,
										  int64 before_id, const char *reason);

/* A bitmap of keys that may have open letters, in CurrentMemoryContext. */
extern uint8 *catalog_letter_bits_make(void);
extern void catalog_letter_bits_add(uint8 *bits, int32 table_id, const bytea *key);
extern bool catalog_letter_bits_may_have(const uint8 *bits, int32 table_id, const bytea *key);

/* A letter is shipped again in that chunk; 0: it is not, after all. */
extern void catalog_dead_letter_set_chunk(int32 pipeline_id, int64 id, int32 chunk_no, int64 request);

/* Those that are, by number. */
extern List *catalog_dead_letter_in_chunks(int32 pipeline_id);

/* Tables that have open letters, List of Oid. */
extern List *catalog_dead_letter_tables(int32 pipeline_id);

/* So many open letters that would write the row with that key have nothing more to say; returns for how many that was so. */
extern int64 catalog_dead_letter_take_rows(int32 pipeline_id, int32 table_id, const bytea *key, int64 count, const char *reason);

/*
 * Have somebody change before, after and newer of each open letter of a table, or set it to SUPERSEDED with a reason; false: it stays
 * as it is. Each letter lives until the next call.
 */
typedef bool (*CatalogLetterEdit) (void *arg, CatalogDeadLetter *letter);
extern void catalog_dead_letter_edit_table(int32 pipeline_id, int32 table_id, CatalogLetterEdit edit, void *arg);

/* The table has another name: its open letters are found by it. */
extern void catalog_dead_letter_set_names(int32 pipeline_id, int32 table_id, const char *schema, const char *name);

/* All open letters of a table have nothing more to say. */
extern int64 catalog_dead_letter_supersede_table(int32 pipeline_id, int32 table_id, const char *reason);

/* What pruning removed. */
typedef struct CatalogLetterLoss
{
	int32		table_id;
	char	   *source_schema;
	char	   *source_table;
	int64		count;
} CatalogLetterLoss;

typedef struct CatalogLetterPrune
{
	int64		settled;		/* nothing was left to be done for them */
	int64		open;			/* these are lost */
	List	   *losses;			/* of CatalogLetterLoss: open ones by table */
	bool		more;			/* at_most were removed, and there may be others */
} CatalogLetterPrune;

/* Remove letters of an outgoing pipeline whose transactions commit at or after a place in the log, as these are decoded again. */
extern void catalog_dead_letter_delete_from(int32 pipeline_id, XLogRecPtr commit_lsn);

/* Of an outgoing pipeline: remove those of rows of chunks behind that one, which are read again. */
extern void catalog_dead_letter_delete_copied(int32 pipeline_id, int32 chunk_no);

extern int64 catalog_dead_letter_count(int32 pipeline_id);

/*
 * Remove letters that were made before a time (0: none), and so many more of the oldest, those that are settled before those that
 * are open. Adds to *prune; not more than at_most in one call.
 */
extern void catalog_dead_letter_prune(int32 pipeline_id, TimestampTz before, int64 excess, int64 at_most, CatalogLetterPrune *prune);

/* ---- requests ---- */

typedef enum CatalogLetterRequestState
{
	CATALOG_LETTER_REQUEST_QUEUED,	/* -> RUNNING */
	CATALOG_LETTER_REQUEST_RUNNING, /* -> DONE, FAILED */
	CATALOG_LETTER_REQUEST_DONE,
	CATALOG_LETTER_REQUEST_FAILED	/* worker after worker ended with it */
} CatalogLetterRequestState;

extern const char *catalog_letter_request_state_name(CatalogLetterRequestState state);

typedef struct CatalogLetterRequest
{
	int32		pipeline_id;
	int64		request;		/* given by _insert */
	bool		discards;		/* else replays */
	List	   *tables;			/* patterns; NIL: all */
	List	   *ids;			/* numbers as text, List of char *; NIL: all */
	char	   *reason;
	CatalogLetterRequestState state;
	Oid			requested_by;
	TimestampTz requested_at;
	TimestampTz started_at;		/* 0: not yet */
	TimestampTz finished_at;
	int64		last_id;		/* letters up to this one are done with */
	int32		attempts;
	int64		settled;
	int64		failed;
	int64		left_alone;
} CatalogLetterRequest;

/* So many that have ended are kept of each pipeline. */
#define CATALOG_LETTER_REQUESTS_KEPT 20

extern void catalog_letter_request_insert(CatalogLetterRequest *request);
extern List *catalog_letter_request_list(int32 pipeline_id);	/* by number */
extern CatalogLetterRequest *catalog_letter_request_open(int32 pipeline_id);	/* the oldest one that is open, or NULL */

/* Write state, times, last_id, attempts and counts as they stand there; one that ended makes room among those that are kept. */
extern void catalog_letter_request_update(const CatalogLetterRequest *request);

/* Does it mean that letter? */
extern bool catalog_letter_request_means(const CatalogLetterRequest *request, const CatalogDeadLetter *letter);

/* A worker begins with it, in a step of its own: it is given up when workers ended with it at one place again and again. */
extern void catalog_letter_request_take_up(CatalogLetterRequest *request);

/* A step of the work is done: note it, and the end in the server's log. */
extern void catalog_letter_request_worked(CatalogLetterRequest *request, const char *pipeline);

#endif							/* CDC_CATALOG_DEAD_LETTER_H */
