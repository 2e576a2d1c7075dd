/*-------------------------------------------------------------------------
 *
 * verify_private.h
 *	  What the files of verify/ share.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_VERIFY_PRIVATE_H
#define CDC_VERIFY_PRIVATE_H

#include "postgres.h"
#include "access/genam.h"
#include "access/relscan.h"
#include "access/tupconvert.h"
#include "executor/tuptable.h"
#include "storage/block.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

#include "catalog/catalog_verify.h"
#include "chunk/chunk.h"
#include "core/arena.h"
#include "mysql/mysql_server.h"
#include "schema/sum.h"
#include "schema/table.h"
#include "transform/transform_run.h"
#include "verify/verify.h"

/* ---- rows of the source, as text (verify_source.c) ---- */

typedef struct VerifyPage
{
	MysqlRow   *rows;			/* all columns, then the key's values for paging */
	int			nrows;
	int64		bytes;
	bool		is_last;		/* nothing behind it */
	ChunkKey   *last;			/* key of the last row; NULL: there is none */
} VerifyPage;

/* ---- the table that is being compared ---- */

typedef enum VerifyPhase
{
	VERIFY_PHASE_PAGES,			/* the source's rows, chunk by chunk: -> SCAN or END (full), COUNT (sample) */
	VERIFY_PHASE_SCAN,			/* the target's keys: -> PICK, END */
	VERIFY_PHASE_PICK,			/* target rows whose keys the source did not show: -> PICK, END */
	VERIFY_PHASE_COUNT,			/* both counted: -> END */
	VERIFY_PHASE_MULTISET,		/* of a table without a key, full: -> END */
	VERIFY_PHASE_END
} VerifyPhase;

/* How a table's chunks are compared: see verify_chunk.c. */
typedef enum VerifyMethod
{
	VERIFY_METHOD_OPEN,			/* to be chosen, when the target is first looked at */
	VERIFY_METHOD_COUNT,		/* no rows */
	VERIFY_METHOD_SUMS,			/* by sums; rows of chunks that differ */
	VERIFY_METHOD_COLUMNS,		/* by sums, and by columns that have none; rows of chunks that differ */
	VERIFY_METHOD_ROWS,			/* row by row */
	VERIFY_METHOD_MULTISET		/* no key: see verify_multiset.c */
} VerifyMethod;

/* Chunks that differ are cut into smaller ones, and those that differ then are read. */
typedef enum VerifyLevel
{
	VERIFY_LEVEL_CHUNK,			/* -> PART, ROWS */
	VERIFY_LEVEL_PART,			/* -> ROWS, CHUNK */
	VERIFY_LEVEL_ROWS,			/* -> PART, CHUNK */
	VERIFY_LEVELS
} VerifyLevel;

/* The range that a level works through. */
typedef struct VerifyRange
{
	MemoryContext cxt;			/* of end */
	ChunkKey   *end;			/* NULL: the table's */
	bool		is_final;		/* in the range of the level above nothing is behind it */
} VerifyRange;

/* Keys of the target in the range of a page that was just read: which did the page not have? Only method SUMS. */
typedef struct VerifyExtras
{
	MemoryContext cxt;			/* reset for each page; NULL: none is looked for */
	ChunkKey   *lower;
	ChunkKey   *upper;
	bool		is_final;		/* the page was the last of its range */
	uint64	   *shown;			/* hashes of the page's keys, sorted */
	int			nshown;
	Oid			leaf;			/* to go on with; InvalidOid: the first */
	Datum	   *from;			/* behind that key; NULL: lower */
} VerifyExtras;

/* A row that differs, for now. */
typedef struct VerifySuspect
{
	char	   *condition;		/* finds it at the source */
	Datum	   *key;			/* finds it here: the key index's columns */
	Size		row_bytes;		/* roughly, of its text at the source */
	bool		from_scan;		/* the source did not show it */
	bool		is_settled;
	int			rounds;
	int			confirmed;		/* rounds in a row that say it differs */

	/* the round before */
	bool		target_known;
	bool		target_found;
	TransactionId target_xmin;
	ItemPointerData target_tid;
	uint64		target_hash;	/* of a row that has no version */
	bool		source_known;
	uint64		source_hash;	/* of its text; 0: not there */

	bool		was_asked;		/* for, in this round */
} VerifySuspect;

/* A row that the source gave for one of the suspects first .. end - 1. */
typedef struct VerifyAnswer
{
	MysqlRow	row;
	int			first;
	int			end;
} VerifyAnswer;

typedef enum VerifySettleStep
{
	VERIFY_SETTLE_IDLE,			/* -> READ */
	VERIFY_SETTLE_READ,			/* read the rows at the source: -> WAIT */
	VERIFY_SETTLE_WAIT,			/* the stream has to pass what the read may have seen: -> LOOK */
	VERIFY_SETTLE_LOOK			/* compare with the rows here: -> READ, IDLE */
} VerifySettleStep;

typedef struct VerifyKeys VerifyKeys;
typedef struct VerifyMultiset VerifyMultiset;

typedef struct VerifyWork
{
	MemoryContext cxt;
	bool		is_merged;		/* the target has rows of other source tables too */
	CatalogVerifyTable result;
	bool		is_sample;
	int64		listed;			/* rows in verify_difference */
	TimestampTz saved_at;

	int32		generation;
	Oid			target;
	CdcTableDef *def;
	Datum		definition;		/* the same, as it is stored */
	int		   *key;			/* columns of the key, in its order */
	int			nkey;
	char	   *source_name;	/* quoted */

	VerifyPhase phase;
	ChunkKey   *after;			/* NULL: from the start */
	MemoryContext after_cxt;
	uint64		limit;			/* of the next page */
	Size		row_bytes;		/* average of the newest page */

	VerifyMethod method;
	bool	   *in_sum;			/* by source column: it is in the sums */
	bool	   *in_page;		/* COLUMNS: it is read beside the sums */
	char	   *number;			/* expression of the source for the number of a row */
	uint64		sum_rows[VERIFY_LEVELS];	/* rows of a chunk, resp. part */
	VerifyLevel level;
	VerifyRange ranges[VERIFY_LEVELS];
	VerifyExtras extras;
	VerifyMultiset *multiset;	/* NULL: not begun */

	VerifyKeys *keys;			/* hashes of both sides' keys; NULL: the target is not scanned for more */
	Oid			scan_leaf;		/* the table that is being scanned; InvalidOid: the first */
	BlockNumber next_block;		/* in it */
	MemoryContext scan_cxt;
	Datum	   *scan_after;		/* by SQL: the key to go on behind; NULL: from the start */
	uint64	   *candidates;		/* hashes of keys that only the target has, sorted */
	int			ncandidates;

	/* count */
	bool		count_waits;
	int			count_rounds;
	int			count_same;
	int64		count_source;
	int64		count_source_before;	/* -1: none */
	int64		count_target;

	/* rows to be settled */
	MemoryContext suspect_cxt;
	MemoryContext round_cxt;
	VerifyAnswer *answers;		/* of this round, in round_cxt */
	int			nanswers;
	VerifySuspect *suspects;
	int			nsuspects;
	int			max_suspects;	/* room in the array */
	Size		suspect_bytes;
	VerifySettleStep settle;
	CdcPosition mark;			/* the stream has to pass it */
	CatalogPosition *looked_at; /* what was applied when the target was last looked at; NULL: not yet */
	bool		is_sure;		/* the source has shown everything up to looked_at */
	int			tries;
} VerifyWork;

struct Verify
{
	MemoryContext cxt;
	MemoryContext step_cxt;		/* reset at each step */
	MemoryContext session_cxt;	/* the session's; a failed one goes with it */
	int32		pipeline_id;
	char	   *pipeline_name;
	const MysqlEndpoint *endpoint;
	char	   *identity;
	uint64		max_rows;
	int			sample_percent;
	SchemaTypeOptions types;
	MysqlSession *session;
	MysqlServerInfo *info;
	CdcArena	arena;
	int64		request;		/* that is being worked on; 0: none */
	const CdcColumnDef *current;	/* column whose value is being turned, for error contexts; else NULL */
	VerifyWork *work;			/* NULL: the next table is to be chosen */
};

/* ---- verify_source.c ---- */

extern void verify_source_open(Verify *verify);

/*
 * Next page of the table in key order, behind work->after and not behind upper (NULL:
 * to the end), at most so many rows. wanted: as in chunk_range_query. Memory: the current context.
 */
extern VerifyPage *verify_source_page(Verify *verify, const ChunkKey *upper, const bool *wanted, uint64 rows);

/* The key that ends a range of so many rows behind work->after, in the current context; NULL when upper comes first. */
extern ChunkKey *verify_source_bound(Verify *verify, const ChunkKey *upper, uint64 rows);

/* Rows behind work->after and not behind upper: how many, and the sum of their numbers. */
extern void verify_source_sum(Verify *verify, const ChunkKey *upper, int64 *rows, uint64 *sum);

/* All rows of a table without a key: the query, then pages of about so many bytes, until one is the last. */
extern void verify_source_all_begin(Verify *verify);
extern VerifyPage *verify_source_all_page(Verify *verify, int64 bytes);

extern ChunkKey *verify_copy_key(MemoryContext cxt, const ChunkKey *key);

/* Read the rows of the suspects that are not settled into work->answers, as far as memory allows. */
extern void verify_source_suspects(Verify *verify);
extern uint64 verify_source_row_hash(const VerifyWork *work, const MysqlRow *row);	/* never 0 */

extern int64 verify_source_count(Verify *verify);

/* Is everything that was applied here visible at the source? The log moves before the engine. */
extern bool verify_source_shows(Verify *verify, const CatalogPosition *applied);

/* "`a` = 1 AND `b` = 2" for the key values at the end of a row. */
extern char *verify_source_condition(const Verify *verify, const MysqlRow *row);

/* ---- verify_chunk.c ---- */

/* One step of PAGES; sets the next phase at the end. */
extern void verify_chunk_step(Verify *verify);

/* "sums", ...; NULL while it is open. */
extern const char *verify_method_name(VerifyMethod method);

/* ---- verify_multiset.c ---- */

extern void verify_multiset_step(Verify *verify);

/* Is the session in the middle of a query? Then only closing it ends that. */
extern bool verify_multiset_is_reading(const VerifyWork *work);

/* ---- verify_target.c ---- */

/* A plain table that rows are in: the target itself, or a partition. */
typedef struct VerifyLeaf
{
	Relation	rel;
	Relation	index;			/* NULL: the source has no key */
	IndexScanDesc scan;
	TupleTableSlot *slot;
	TupleConversionMap *map;	/* to the target's columns; NULL: they are the same */
} VerifyLeaf;

typedef struct VerifySql VerifySql;

/* An attribute of the target that is compared. */
typedef struct VerifyColumn
{
	AttrNumber	attnum;
	int			column;			/* the source's column that goes there as it is; -1: computed */
	const char *name;			/* for people */
} VerifyColumn;

typedef struct VerifyTarget
{
	MemoryContext cxt;			/* that it was opened in */
	Relation	rel;
	Relation	index;			/* NULL: the source has no key, or it is read by SQL */
	VerifyLeaf *leaves;			/* by OID; none: read by SQL */
	int			nleaves;
	VerifySql  *sql;			/* NULL: not by SQL */
	SchemaTable *table;
	int			nkey;
	AttrNumber *key_attnums;	/* in index order */
	int		   *key_columns;	/* source columns of these; -1: computed from several, or under a transform */
	VerifyColumn *compared;
	int			ncompared;
	EState	   *estate;			/* of the transform; NULL: rows go as they are */
	TransformRun *transform;	/* NULL: none */
	AttrNumber	parts;			/* says which source tables have a part of a row; 0: rows are whole */
	const char *part;			/* that is compared: a row without it counts as none */
	AttrNumber	deleted;		/* marks rows that the source has deleted, which count as none; 0: no such attribute */
	TupleTableSlot *fresh;		/* the source's row before it */
	TupleTableSlot *made;		/* and after it */
	ScanKey		keys;
	TupleTableSlot *converted;	/* for rows of partitions with other columns */
	TupleTableSlot *slot;		/* the target's row, in the target's columns */
	TupleTableSlot *stored;		/* the same as it is stored */
	Datum	   *values;			/* the source's row, by attribute */
	bool	   *nulls;
	const bool *taken;			/* source columns that it has; NULL: all */
	SchemaSum  *sum;

	/* of a target that others share: which attributes tell the table's own rows, and with which values */
	int			nown;			/* 0: all are */
	AttrNumber *own_attnums;
	Datum	   *own_values;
} VerifyTarget;

/* Open the target of the work for reading, to the end of the transaction. Throws when it cannot be read. */
extern VerifyTarget *verify_target_open(Verify *verify);
extern void verify_target_close(VerifyTarget *target);

/* Only the relation, with rights and kind checked, resp. the plain tables that its rows are in, by OID. */
extern Relation verify_target_open_relation(Verify *verify);
extern List *verify_target_open_leaves(Relation rel);

/* A row was fetched into a leaf's slot: make it the target's row. */
extern void verify_target_show(VerifyTarget *target, VerifyLeaf *leaf);

/* Is the row that is shown one of the table's own? */
extern bool verify_target_is_own(const VerifyTarget *target);

/*
 * Turn a row of the source into values, in the current context; only the wanted columns are compared then (NULL: all).
 * False: a filter leaves it out, only its key is there, and the target should have no such row.
 */
extern bool verify_target_take(Verify *verify, VerifyTarget *target, const MysqlRow *row, const bool *wanted);

/*
 * Find the row with that key (index order), resp. with the key of the taken row, by the active snapshot. How many
 * there are: more than one only where SQL reads them.
 */
extern int verify_target_find(VerifyTarget *target, const Datum *key);
extern int verify_target_find_taken(VerifyTarget *target);

/* Names of the columns in which the found row and the taken one differ; NIL: none. */
extern bool verify_target_is_equal(VerifyTarget *target);
extern List *verify_target_differing(VerifyTarget *target);

/* Hash of a key: of the taken row, resp. of the row in the slot. */
extern uint64 verify_target_hash_taken(VerifyTarget *target);
extern uint64 verify_target_hash_slot(VerifyTarget *target);

/* The same of a key in index order. */
extern uint64 verify_target_hash_key(VerifyTarget *target, const Datum *key);

/* The same of a whole row. */
extern uint64 verify_target_hash_taken_row(VerifyTarget *target);
extern uint64 verify_target_hash_slot_row(VerifyTarget *target);

/* The key of the taken row resp. of the slot, copied into the current context. */
extern Datum *verify_target_key_taken(VerifyTarget *target);
extern Datum *verify_target_key_slot(VerifyTarget *target);

/* Is the taken row's key the one? */
extern bool verify_target_same_key(VerifyTarget *target, const Datum *key);

/* The key as text, for people: List of char *. */
extern List *verify_target_key_text(VerifyTarget *target, const Datum *key);

/* Condition that finds the slot's key at the source; "FALSE" when the source cannot have such a key. */
extern char *verify_target_condition(Verify *verify, VerifyTarget *target);

/* ---- verify_range.c ---- */

/* Can ranges of the source's key be found here by the primary key's index? */
extern bool verify_range_is_ordered(const VerifyWork *work, const VerifyTarget *target);

/* Rows here behind lower and not behind upper: how many, and the sum of their numbers. Stops at most rows. */
extern void verify_range_sum(Verify *verify, VerifyTarget *target, const ChunkKey *lower, const ChunkKey *upper,
							 int64 most, int64 *rows, uint64 *sum);

/* Some more of the keys that work->extras asks for: those that were not shown become suspects. True at the end. */
extern bool verify_range_extras(Verify *verify, VerifyTarget *target);

/* ---- verify_sql.c ---- */

/* Is SQL the only way to the relation's rows? */
extern bool verify_sql_is_needed(Relation rel);

/* Part of verify_target_open. */
extern void verify_sql_open(const VerifyWork *work, VerifyTarget *target);

/* Fetch the rows with those keys; verify_sql_find looks among them, shows one and tells how many there are. */
extern void verify_sql_fetch(VerifyTarget *target, Datum *const *keys, int nkeys);
extern int verify_sql_find(VerifyTarget *target, const Datum *key);

/* Show some of the keys, in order, behind one (NULL: from the first); true when there are no more. */
extern bool verify_sql_scan(VerifyTarget *target, Datum *const after,
							void (*each) (VerifyTarget *target, void *arg), void *arg);

extern int64 verify_sql_count(Relation rel);

/* ---- verify_keys.c ---- */

typedef enum VerifySide
{
	VERIFY_SOURCE,
	VERIFY_TARGET
} VerifySide;

/* Outlives transactions; memory stays bounded, the rest is in temporary files. */
extern VerifyKeys *verify_keys_create(MemoryContext cxt);
extern void verify_keys_add(VerifyKeys *keys, VerifySide side, uint64 hash);

/*
 * Hashes that only the target has, sorted, in cxt: those of as many parts as fit
 * into memory. Call it until it returns false.
 */
extern bool verify_keys_only_target(VerifyKeys *keys, MemoryContext cxt, uint64 **hashes, int *nhashes);

/* The same for hashes that are not equally often on both sides. */
extern bool verify_keys_uneven(VerifyKeys *keys, MemoryContext cxt, uint64 **hashes, int *nhashes);
extern void verify_keys_destroy(VerifyKeys *keys);

/* ---- verify_settle.c ---- */

/* Note a row that differs. row: the source's; NULL when the row in target's slot came from a scan. */
extern void verify_suspect_add(Verify *verify, VerifyTarget *target, const MysqlRow *row);

/* Are there so many that they have to be settled before more are looked for? */
extern bool verify_suspects_full(const VerifyWork *work);

/* One step of settling all suspects; false when none is left. */
extern bool verify_settle_step(Verify *verify);

/*
 * Does the source show what was applied here at the last look? Naps when it does
 * not; after some time it is true nevertheless, and work->is_sure false.
 */
extern bool verify_source_is_shown(Verify *verify);

/* Has the stream passed a position that was read at the source? Naps when it has not. */
extern bool verify_stream_passed(Verify *verify, const CdcPosition *mark);

/* ---- verify.c ---- */

/* Begin a transaction for a step; false when the table must be left, which is done then. */
extern bool verify_begin_step(Verify *verify);

/* Commit a step; now and then the counters are written with it. */
extern void verify_end_step(Verify *verify);

/*
 * In a transaction: may the table still be compared? Otherwise *why says why not,
 * NULL when nobody wants to know any more.
 */
extern bool verify_still_valid(Verify *verify, char **why);

/* End the work on a table that verify_still_valid refused. Outside a transaction. */
extern void verify_leave_table(Verify *verify, const char *why);

#endif							/* CDC_VERIFY_PRIVATE_H */
