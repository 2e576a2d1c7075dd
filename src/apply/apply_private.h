/*-------------------------------------------------------------------------
 *
 * apply_private.h
 *	  What the files of apply/ share.
 *
 * NOTES
 *	  Memory: "cxt" lives as long as the worker; "change_cxt" and the arena are
 *	  reset at each event; what belongs to the PostgreSQL transaction (open
 *	  targets) lives in the transaction's own memory and dies with it, whichever
 *	  way it ends.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_APPLY_PRIVATE_H
#define CDC_APPLY_PRIVATE_H

#include "postgres.h"
#include "utils/hsearch.h"

#include "apply/apply.h"
#include "catalog/catalog_history.h"
#include "heap/heap_row.h"
#include "mysql/mysql_server.h"
#include "schema/evolve.h"

struct DdlStatement;
typedef struct ApplyBatch ApplyBatch;
typedef struct ApplyHold ApplyHold;
typedef struct ApplyUndone ApplyUndone;

/* One table of the pipeline. */
typedef struct ApplyTable
{
	MemoryContext cxt;
	int32		table_id;
	int32		generation;
	char	   *schema;			/* as the source names it, UTF-8 */
	char	   *name;
	char	   *shown_schema;	/* the same in this database's encoding */
	char	   *shown_name;
	CatalogTableState state;
	Oid			target;
	bool		is_merged;		/* the target has rows of other source tables too */
	Datum		own_rows;		/* which are its own, see heap_shard.h; in cxt; 0: all */
	bool		is_part;		/* other source tables fill the same rows, see heap_part.h */
	CdcTableDef *def;			/* declared; NULL when the table stopped before it had one */
	MemoryContext def_cxt;		/* it lives there */
	bool		def_learned;	/* an event told what a statement had left open: to be written with the next commit */
	bool		was_replaced;	/* another table got its name, and is taken to have the same rows; until its shape is known */
	bool		begins_anew;	/* its copy is to begin anew, and nothing counts until it has */
	CdcPosition stop_position;	/* STOPPED: unknown means "nothing more at all" */
	CdcPosition join_position;	/* changes of transactions that start before it are not applied; unknown: all are */
	bool		join_is_past;	/* the durable position is at or behind it, so these cannot come any more */

	/* how columns of the source's current description map to def's */
	MemoryContext match_cxt;
	int		   *match;			/* per column of def: column of the event */
	int			row_end;		/* column of the event that tells where a row's version ends; -1 when there are no versions */
	uintptr_t	match_stamp;	/* value of CdcTableDef.user that match belongs to; 0: none */

	/* in the open PostgreSQL transaction */
	HeapRow    *row;			/* NULL: not opened yet */
	ApplyBatch *batch;			/* NULL: changes are written one by one */
	ApplyBatch *inserts;		/* careful mode, a table without a key: for rows that are inserted one by one */
	uint32		debts;			/* number of the next one, see note_debt; it need not begin anew */
	bool		any_deleted;	/* snapshot_deleted may have rows */
	bool		any_reread;		/* snapshot_reread may have rows */
	bool		keeps_rows;		/* the target had rows of its own when the copy began, which are not the source's */
	bool		noted_defaults; /* it is noted that a row was filled with defaults while the table is copied */

	bool		lasting;		/* its engine has no transactions: the source's ROLLBACK leaves its rows */
	/* open dead letters, apply_superseded.c */
	bool		has_letters;	/* there may be some; never reset */
	bool		letters_known;	/* nobody else writes any now, and their keys are in Apply.letter_bits */
	int64		last_letter;	/* number of the newest one that was looked at */

	bool		look_first;		/* an insert found a row once: batches look before they insert */
	uint64		mark_checked;	/* open_no of the transaction in which the mark was looked up, see apply_table_check_mark */
	uint64		touched;		/* number of the source transaction that last changed it here */
	ApplyTableStats delta;		/* since the last flush */
	bool		in_dirty;		/* is in Apply.dirty */
	bool		awaits_copy;	/* it is to be copied anew, from a place that the stream has not come to: its changes are in that copy */
	bool		seen;			/* was in the catalog when the tables were last read */
} ApplyTable;

struct Apply
{
	MemoryContext cxt;
	MemoryContext change_cxt;
	CdcArena	arena;
	int32		pipeline_id;
	char	   *pipeline_name;
	CatalogPositionLog *log;
	const MysqlEndpoint *endpoint;	/* for questions to the source */
	ApplyPublish publish;
	ApplyTell	tell;
	void	   *caller;			/* argument of both */

	/* options */
	int64		max_rows;
	int64		max_bytes;
	int			max_ms;
	bool		collapse;
	bool		keep_dead_letters;	/* a change that cannot be applied is kept; else it stops its table */
	bool		stop_pipeline;	/* what would stop a table ends the worker instead */
	SchemaTypeOptions types;
	CatalogChangeRules rules;
	bool		online_change_follows;	/* a table that takes the name of another has the same rows */

	/* what is written by the next commit: apply_history.c */
	MemoryContext wishes_cxt;
	List	   *history;		/* of CatalogSchemaChange */
	List	   *copies_wanted;	/* of int: tables that are to be copied anew */
	List	   *keepers;		/* of int: tables whose targets keep rows that the source has no more */
	bool		tables_wanted;	/* tables want to join, or are to be copied anew */
	bool		tables_wanted_soon; /* before the stream goes on */
	TimestampTz gathered_since; /* tables that are made one after the other are to join together; 0: none are */

	/* tables */
	List	   *tables;			/* of ApplyTable */
	HTAB	   *by_name;
	bool		fold_names;		/* names in statements may differ in case */
	bool		reload_wanted;	/* asked for while a transaction was open */
	uint64		stop_count;		/* of tables that became stopped since the start */
	bool		make_cascades;	/* option cascades is "synthesise" */
	MemoryContext cascade_cxt;
	List	   *cascades;		/* of ApplyCascade: foreign keys that do something to rows */
	bool		any_cascade_made;	/* of some it is not logged, and done here */
	MemoryContext code_cxt;
	List	   *code;			/* of MysqlStoredCode: the source's triggers and routines, when they were read */
	TimestampTz code_read_at;	/* 0: they were not */
	List	   *awaited;		/* numbers of tables whose copy has to be there before the stream can go on */
	const CdcTableDef *last_def;	/* the last change's table, to save a look-up */
	ApplyTable *last_table;

	/* the stream */
	CdcPosition streamed;		/* end of the newest source transaction that was taken in whole */
	CdcGtid    *gtids;			/* of source transactions since the last flush */
	int			ngtids;
	int			maxgtids;
	bool		moved;			/* streamed or gtids are ahead of what is durable */
	List	   *skips;			/* of CatalogSkip: transactions to pass over because somebody asked for it */
	ApplyUndone *undone;		/* changes to pass over, found to be rolled back */

	/* the source, where it is asked for what its log leaves out: apply_generated.c */
	MysqlSession *session;		/* NULL: nobody has asked yet */
	MysqlServerInfo *server;
	CdcPosition shown;			/* its tables show what is before */

	/* an event that did not fit, in the middle of a source transaction: apply_schema_event.c */
	MemoryContext shape_cxt;
	CdcTableDef *shape;			/* as the event described it; NULL: none */
	CdcPosition shape_at;		/* where its transaction starts */

	/* the source transaction that is coming in */
	bool		in_txn;
	bool		passing_over;
	CatalogSkip *skipping;		/* it is passed over because somebody asked for it */
	bool		holding;		/* it is an XA transaction, its changes are held */
	ApplyHold  *hold;
	bool		writing;		/* batches are being written */
	bool		in_statement;	/* no transaction, but a statement by itself */
	bool		commit_due;		/* what a statement did is to be committed with its position at once */
	bool		index_wanted;	/* indexes are to be built: the same */
	bool		join_wanted;	/* tables are to be copied anew: for the caller to have them begin */
	CdcPosition failed_at;		/* source transaction that the pipeline stops before; unknown: none */
	uint64		txn_no;
	CdcPosition txn_start;
	CdcGtid		txn_gtid;
	TimestampTz txn_time;		/* when it was committed there; 0: not known */
	bool		txn_is_xa;		/* it is an XA COMMIT */
	int64		txn_action;		/* number of its current change */
	int64		txn_changes;	/* changes of it that were applied */
	ApplyProgress progress;
	ApplyProgress told;			/* as it was when it was told last */

	/* careful mode, apply_careful.c */
	bool		careful;
	int64		careful_left;	/* source transactions that are still read in it */
	List	   *suspects;		/* of ApplySuspect: changes that failed */
	bool		all_suspect;	/* too many failed: each is guarded */
	int			guard_left;		/* changes that are guarded before careful mode may end */

	/* dead letters */
	int			letters_open;	/* written in the open PostgreSQL transaction */
	uint8	   *letter_bits;	/* keys that open ones have; NULL: there are none */
	int64		letters_max_days;	/* options; 0: no limit */
	int64		letters_max_rows;
	int64		letters_counted;	/* how many there were when they were last counted, and have come since; -1: not counted */
	int64		replaying;		/* request that this process works on; 0: none */

	/* the open PostgreSQL transaction */
	bool		open;
	uint64		open_no;		/* grows with each */
	int64		txns_open;		/* source transactions that began since the last commit */
	int64		unwritten_rows; /* changes in batches */
	int64		unwritten_bytes;
	TimestampTz opened_at;
	int64		rows;
	int64		bytes;
	List	   *open_tables;	/* of ApplyTable, in cxt */
	List	   *dirty;			/* of ApplyTable with a delta, in cxt */
	TimestampTz flushed_at;
	ApplyStats	pending;		/* not durable yet */
	ApplyStats	stats;

	/* for error contexts */
	const ApplyTable *current;
};

/* A table that is to stop, and why. */
typedef struct ApplyStop
{
	ApplyTable *table;
	UtilErrorInfo *error;
} ApplyStop;

/* What can be done about a stopped table today. */
#define APPLY_HINT_ANEW \
	"Use cdc_resync_table() to copy the table anew."

/* About a generated column that the log does not have. */
#define APPLY_HINT_GENERATED \
	"Make the target's column GENERATED ALWAYS AS (...) STORED. " APPLY_HINT_ANEW

/* ---- apply.c ---- */

/* Open a PostgreSQL transaction if none is. */
extern void apply_begin(Apply *apply);

/* Commit what is open, with the position of the last whole source transaction. */
extern void apply_commit(Apply *apply);

/*
 * Stop tables (List of ApplyStop) at a position: the start of the current source
 * transaction, resp. where the stream stands. Rewinds when the transaction has
 * been applied in part.
 */
extern ApplyResult apply_stop(Apply *apply, List *stops, const CdcPosition *position);
extern ApplyStop *apply_stop_make(ApplyTable *table, int sqlstate, char *message,
								  const char *detail, const char *hint);

/* A sentence on what the target of a table that is going to stop holds. */
extern const char *apply_what_target_holds(const ApplyTable *table);

/* Write what batches hold into the open transaction. */
extern ApplyResult apply_write_batches(Apply *apply);

/* A source transaction begins resp. ends that is not told by events of these names. */
extern ApplyResult apply_txn_begin(Apply *apply, const CdcPosition *start, const CdcGtid *gtid, int64 source_time_us);
extern void apply_txn_end(Apply *apply);

/* The changes of the source transaction come from their beginning. */
extern void apply_count_anew(Apply *apply);

/* A change of the source transaction has come, whatever becomes of it. */
extern void apply_count_read(Apply *apply, const CdcChange *change);

/* A stop for an error that was caught. */
extern ApplyStop *apply_stop_for(ApplyTable *table, UtilErrorInfo *error);

/* Apply one change of the source transaction that is open, if its table wants it. */
extern ApplyResult apply_change(Apply *apply, const CdcChange *change);

/* Undo everything and let it come again. */
extern ApplyResult apply_rewind(Apply *apply);

/* Undo what is open, nothing of which came from the stream since the last commit. */
extern void apply_abandon(Apply *apply);

/* ---- apply_schema.c ---- */

/* A change of a source table's shape. */
typedef struct ApplySchemaChange
{
	ApplyTable *table;
	CdcPosition at;				/* of the statement, or of the transaction that shows it */
	CdcGtid		gtid;
	int64		source_time_us;
	const char *statement;		/* in the database's encoding; NULL: none, or not to be kept */
	CdcTableDef *after;
	const int  *origin;			/* as SchemaEvolve has it, and the next three */
	bool		is_strict;
	bool		is_told;
	bool		computes_anew;
	bool		defaults_known;
	char	   *recomputed;		/* why generated columns may have other values; NULL: they have not */
	uint32		kinds;			/* CATALOG_CHANGE_BIT of what the steps do not show */
	const char *copy;			/* why the rows have to be copied anew, whatever the steps say; NULL: they have not */
	struct ApplyDdlWait *wait;	/* for locks, while it is carried out */
	SchemaEvolve evolve;
} ApplySchemaChange;

/* ALTER TABLE, CREATE INDEX, DROP INDEX: *followed are the tables (List of ApplyTable) that need no stop for it. */
extern ApplyResult apply_schema_statement(Apply *apply, const CdcEvent *event, const struct DdlStatement *statement,
										  const CdcPosition *at, List **followed);

/* ---- apply_schema_merge.c ---- */

/* What a change comes to for a table that shares its target; and make room for it there. */
extern SchemaPlan *apply_schema_merge_plan(ApplySchemaChange *change, Relation rel);
extern void apply_schema_merge_fit(Apply *apply, const ApplySchemaChange *change, SchemaPlan *plan);

/*
 * What is own to a table that fills a part of rows, after a change; and what was, when it is to be copied anew. Throws when that is
 * another table's.
 */
extern Datum apply_schema_merge_own(Apply *apply, const ApplySchemaChange *change, HeapRow *row, bool is_copied_anew);

/* ---- apply_schema_event.c ---- */

/*
 * A change of a table has come whose event describes another shape than the one that is known, or a new description of it.
 * *applies: the change can be applied now.
 */
extern ApplyResult apply_schema_event(Apply *apply, ApplyTable *table, CdcTableDef *event, bool *applies);

/* A source transaction begins, that did not fit when it came before. */
extern ApplyResult apply_schema_txn_begin(Apply *apply);

/* Does the pipeline follow changes of that table's shape there? */
extern bool apply_schema_is_followed(const Apply *apply, const ApplyTable *table, const CdcPosition *at);
extern ApplyResult apply_schema_carry_out(Apply *apply, ApplySchemaChange *change);
extern void apply_schema_copy_anew(Apply *apply, ApplySchemaChange *change, const char *why);
extern char *apply_schema_text(const CdcStatement *text);

/* ---- apply_cascade.c ---- */

extern void apply_cascades_load(Apply *apply);
extern bool apply_is_parent(const Apply *apply, const char *schema, const char *name);
extern List *apply_children_of(Apply *apply, const char *schema, const char *name);	/* of ApplyTable */
extern ApplyResult apply_cascade(Apply *apply, const CdcChange *change);

/* ---- apply_cascade_letter.c ---- */

/* What a foreign key does to rows of a child that name a value. */
typedef struct ApplyCascadeLetters
{
	CdcForeignAction action;
	bool		has_new_values; /* they name another value then */
	uint32		ncolumns;
	const int  *columns;		/* of the child's definition */
	const Datum *values;		/* that they name, as the child's target has them */
} ApplyCascadeLetters;

/*
 * The same for rows that are in dead letters of the open child. Returns the images (List of jsonb) of those that it changed, as they were,
 * when other tables refer to the child; NIL: none.
 */
extern List *apply_cascade_letters(Apply *apply, ApplyTable *child, const ApplyCascadeLetters *what);

/* ---- apply_stored_code.c ---- */

/*
 * Our tables (List of ApplyTable) that triggers and routines behind a statement may have changed; *any: it cannot be told
 * which. Asks the source.
 */
extern List *apply_tables_behind(Apply *apply, const CdcStatement *text, const struct DdlStatement *statement, bool *any);

/* Triggers or routines may be others from here on. */
extern void apply_forget_code(Apply *apply);

/* ---- apply_undone.c ---- */

extern void apply_undone_init(Apply *apply);
extern bool apply_undone_begin(Apply *apply);
extern void apply_undone_reset(Apply *apply);
extern bool apply_undone_passes_over(const Apply *apply);

/* A change of the transaction that comes in was applied, or held. */
extern void apply_undone_applied(Apply *apply);

/* The transaction that comes in was applied in parts that do not count: its end rewinds. */
extern bool apply_undone_comes_again(const Apply *apply);

/* All of it was rolled back. */
extern void apply_undone_whole(Apply *apply);
extern void apply_savepoint(Apply *apply, const char *name);
extern bool apply_rollback_to(Apply *apply, const char *name);
extern void apply_undone_prune(Apply *apply);
extern void apply_undone_forget(Apply *apply);

/* ---- apply_prepared.c ---- */

extern void apply_hold_init(Apply *apply);
extern void apply_hold_begin(Apply *apply);
extern void apply_hold_nothing(Apply *apply);
extern void apply_hold_note_table(Apply *apply, const char *schema, const char *name);
extern void apply_hold_change(Apply *apply, const CdcChange *change);

/* The transaction ends: it is prepared; in one phase; not at all. */
extern void apply_hold_prepared(Apply *apply, const CdcEvent *event);
extern ApplyResult apply_hold_release(Apply *apply);
extern void apply_hold_forget(Apply *apply);
extern void apply_hold_end(Apply *apply);

/* XA COMMIT, a statement by itself: apply what was kept, and forget it. */
extern ApplyResult apply_prepared_commit(Apply *apply, const CdcEvent *event, const CatalogPrepared *prepared);

/* Are all of its changes of that table kept, or are there none? */
extern bool apply_prepared_covers(const CatalogPrepared *prepared, const ApplyTable *table);

/* ---- apply_skip.c ---- */

extern void apply_skips_load(Apply *apply); /* outside a transaction */

/* The request to pass over the source transaction that starts there; NULL when there is none. */
extern CatalogSkip *apply_skip_find(Apply *apply, const CdcPosition *start, const CdcGtid *gtid);

/* It was passed over: note that in the transaction that will carry the position behind it. */
extern void apply_skip_done(Apply *apply, CatalogSkip *skip, const CdcPosition *start, int64 changes);

/* ---- apply_table.c ---- */

/* Are chunks of the table still being copied, or may they be? */
static inline bool
apply_table_is_copying(const ApplyTable *table)
{
	return table->state == CATALOG_TABLE_SNAPSHOT || table->state == CATALOG_TABLE_CATCHUP;
}

extern void apply_tables_init(Apply *apply);
extern void apply_tables_load(Apply *apply);	/* outside a transaction */
extern ApplyTable *apply_table_find(Apply *apply, const char *schema, const char *name);

/* Tables that a name in a statement means; schema "" means any. */
extern List *apply_table_find_named(Apply *apply, const char *schema, const char *name);

/* Do changes at that position (of the transaction's start) no longer count for the table? */
extern bool apply_table_is_stopped(const ApplyTable *table, const CdcPosition *position);

/* Put another definition in the place of the table's. */
extern void apply_table_set_def(Apply *apply, ApplyTable *table, const CdcTableDef *def);

/* Does that position lie before the one where the table joined? */
extern bool apply_table_joined_after(const ApplyTable *table, const CdcPosition *position);

/* Do changes at that position of the stream not count yet, because the table joins later? */
extern bool apply_table_joins_later(const ApplyTable *table, const CdcPosition *position);

/* Map the columns of an event's table description; throws when it differs from the declared one. */
extern void apply_table_match(ApplyTable *table, CdcTableDef *event);

/* Was it mapped already? Cheap. */
extern bool apply_table_matches(const ApplyTable *table, const CdcTableDef *event);

/* Map them if they are the same; else false and why, and whether the event tells too little to say so. */
extern bool apply_table_try_match(ApplyTable *table, CdcTableDef *event, char **why, bool *lacks_metadata);

/*
 * A table without a key that is being copied: look up, under its lock and once in each PostgreSQL transaction, from
 * which position on its changes count. The mark of its copy is written by another process.
 */
extern void apply_table_check_mark(Apply *apply, ApplyTable *table);

/* Which rows of its target are a table's own (0: all). Copied. */
extern void apply_table_set_own(ApplyTable *table, Datum own_rows);

/* Keep others away from a target whose rows the table fills in part. Before the table's own lock. */
extern void apply_table_lock_target(const ApplyTable *table);

/* Open the target in the open transaction, with the locks that its state asks for. */
extern void apply_table_open(Apply *apply, ApplyTable *table);
extern void apply_table_count(Apply *apply, ApplyTable *table, CdcChangeOp op);
extern void apply_table_count_dead_letter(Apply *apply, ApplyTable *table);

/* ---- apply_versioned.c ---- */

extern bool apply_versioned_change(Apply *apply, const ApplyTable *table, CdcChange *change);

/* ---- apply_row.c ---- */

extern void apply_row(Apply *apply, ApplyTable *table, const CdcChange *change);

/* Only make the row that a change inserts, in target->slot; false: a filter leaves it out. */
extern bool apply_row_make(Apply *apply, ApplyTable *table, const CdcChange *change);

/*
 * The same as apply_row for a row of a copy, in a table that streams: it counts only when none has its key, or one with the mark
 * of a deleted one; false when another has.
 */
extern bool apply_row_if_absent(Apply *apply, ApplyTable *table, const CdcChange *change);

/*
 * A row was there or not, and ought to be (expected) or not: did somebody else write to the target? Where a filter
 * leaves rows out, one that is changed or removed need not be there.
 */
static inline bool
apply_is_conflict(const ApplyTable *table, bool expected, bool found)
{
	return found != expected && !(expected && table->row->has_filter);
}

/* Note what became of a key while chunks are open: a row has it, or none, or (entry) one that is to be read again. */
extern void apply_note_key(Apply *apply, ApplyTable *table, bytea *key, bool exists, CatalogReread *entry);

/* Parts of that: a cell out of an image; where rows come from ("insert", ...); all columns of the row after a change. */
extern void apply_row_read_cell(Apply *apply, const ApplyTable *table, const CdcChange *change, const CdcField *image, int column,
								CdcCell *cell);
extern void apply_row_set_origin(Apply *apply, const ApplyTable *table, const char *operation);
extern void apply_row_fill(Apply *apply, ApplyTable *table, const CdcChange *change);

/* ---- apply_append.c ---- */

/* Does the open target have a row for each change? */
extern bool apply_append_is_used(const ApplyTable *table);

/* Take in what a change comes to there: one row, two, or none. */
extern void apply_append(Apply *apply, ApplyTable *table, const CdcChange *change);

/* ---- apply_soft.c ---- */

/* Does the open target keep rows that the source deletes? */
extern bool apply_soft_is_used(const ApplyTable *table);

/* Is there a row with search's key that has the mark of a deleted one? */
extern bool apply_soft_is_marked(ApplyTable *table);

/* Mark the row with search's key; false when there is none without the mark. */
extern bool apply_soft_mark(Apply *apply, ApplyTable *table);

/* ---- apply_image.c ---- */

/* Fill a column of the new row that the image after does not give as a value; false: only the row that is there tells it. */
extern bool apply_image_fill(Apply *apply, ApplyTable *table, const CdcChange *change, int column);

/* Throw for a change whose image after leaves something out that went another way. */
extern void apply_image_check(const ApplyTable *table, const CdcChange *change);

/*
 * Fill all of these from the row that is there, whose key stands in target->search. False when the copy of the table has
 * to read the row again.
 */
extern bool apply_image_complete(Apply *apply, ApplyTable *table, const CdcChange *change);

/* Throw for a column that is not in an image and cannot be known. */
extern void apply_image_throw_absent(const ApplyTable *table, int column);

/* ---- apply_generated.c ---- */

/* Does MariaDB compute a column of the row after the change that its log leaves out, and the target does not? */
extern bool apply_generated_is_left_out(const ApplyTable *table, const CdcChange *change, int column);

/* Have a connection for questions to the source: apply->session. */
extern void apply_open_session(Apply *apply);

/* Read such columns from the source into target->slot. */
extern void apply_generated_read(Apply *apply, ApplyTable *table, const CdcChange *change);

/* ---- apply_reread.c: while a table is being copied ---- */

/* "`id` = 5 AND ...": the row after the change, for a query to the source. */
extern char *apply_row_condition(Apply *apply, const ApplyTable *table, const CdcChange *change);

/* Does the row with search's key show nothing that the stream has not come to yet? */
extern bool apply_reread_is_exact(Apply *apply, const ApplyTable *table);

/* Was the row with search's key read again already? */
extern bool apply_reread_is_done(Apply *apply, const ApplyTable *table);

/* An entry for the row after the change, without its key, in CurrentMemoryContext; and write it down. */
extern CatalogReread *apply_reread_make(Apply *apply, const ApplyTable *table, const CdcChange *change);
extern void apply_reread_note(ApplyTable *table, CatalogReread *entry, bytea *key);
/* The same for a change that stands in the target's slots. */
extern void apply_row_in_slots(Apply *apply, ApplyTable *table, CdcChangeOp op);

/* ---- apply_batch.c ---- */

/* The new row's key, in target->slot, has a row that is to be read again; the old one's, in target->search, has none. */
extern void apply_batch_reread(ApplyTable *table, const CatalogReread *entry);

/* What a batch knows of a key. */
typedef enum ApplyBatchKey
{
	APPLY_BATCH_UNKNOWN,		/* nothing: what the target has counts */
	APPLY_BATCH_GONE,			/* no row has it */
	APPLY_BATCH_ROW				/* a row has it */
} ApplyBatchKey;

/* Look for the key in target->search; a row is put into target->stored, in the memory of the caller. */
extern ApplyBatchKey apply_batch_look(const ApplyTable *table);

/* A batch for an open target of the lean tier; lives as long as that. */
extern ApplyBatch *apply_batch_create(HeapTarget *target);

/* Take in the change that stands in the target's slots. */
extern void apply_batch_add(ApplyTable *table, CdcChangeOp op);

/* The batch's memory is that of the target; apply_batch_write for one inserted row by itself, in a table without a key. */
extern void apply_batch_insert_now(Apply *apply, ApplyTable *table, const CdcChange *change);

/* Write all of it, and leave it empty. */
extern void apply_batch_write(Apply *apply, ApplyTable *table);

/* ---- apply_careful.c ---- */

/* Go through what is not committed again, change by change. The caller undoes and rewinds. */
extern void apply_careful_begin(Apply *apply);

/* A source transaction ended; everything up to here was committed. */
extern void apply_careful_txn_done(Apply *apply);
extern void apply_careful_committed(Apply *apply);

/* Note that the current change failed; is it noted? */
extern void apply_suspect_add(Apply *apply);
extern bool apply_is_suspect(const Apply *apply);

/* Apply a change in a subtransaction; when it fails by its table's own fault it becomes a dead letter, and false. */
extern bool apply_guarded(Apply *apply, ApplyTable *table, const CdcChange *change);

/* ---- apply_keyless.c ---- */

/* Is a change of an open table, which has no key, to be taken in so that the part that does not fit is found? Then do it. */
extern bool apply_keyless_is_careful(const Apply *apply, const ApplyTable *table);
extern void apply_keyless_change(Apply *apply, ApplyTable *table, const CdcChange *change);

/* ---- apply_dead_letter.c ---- */

extern void apply_dead_letter(Apply *apply, ApplyTable *table, const CdcChange *change,
							  const ErrorData *edata);
extern void apply_dead_letters_committed(Apply *apply);

/* ---- apply_superseded.c ---- */

/* The table was opened: read which keys have dead letters, if that is not known. A snapshot is active. */
extern void apply_letters_look(Apply *apply, ApplyTable *table);

/* A dead letter was written. */
extern void apply_letter_added(Apply *apply, ApplyTable *table, const bytea *old_key, const bytea *new_key);

/* SHA-256 of the key that a change removes, and of the one that it writes (an update that leaves the key: only that); NULL: none. */
extern void apply_letter_keys(Apply *apply, const ApplyTable *table, const CdcChange *change, bytea **old_key, bytea **new_key);

/*
 * In a table without a key: rows that should go were not there, so many times. Letters that would bring them have nothing
 * more to say; returns for how many that is so.
 */
extern int64 apply_letters_take_rows(Apply *apply, ApplyTable *table, HeapTuple tuple, int64 count);

/* SHA-256 of the row that a change inserts into a table without a key; NULL when its values do not fit the columns. */
extern bytea *apply_letter_row(Apply *apply, ApplyTable *table, const CdcChange *change);

/* A change was applied: letters of its keys below that number (PG_INT64_MAX: it comes by the stream) have nothing more to say. */
extern void apply_letters_supersede(Apply *apply, ApplyTable *table, const CdcChange *change, int64 before_id);

/* ---- apply_letter_shape.c ---- */

/* Why a change of shape has a table with dead letters copied anew; NULL: it has not. And: have its letters follow. */
extern const char *apply_letters_want_copy(const Apply *apply, const ApplySchemaChange *change);
extern void apply_letters_reshape(Apply *apply, const ApplySchemaChange *change);

/* ---- apply_statement.c ---- */

extern ApplyResult apply_statement(Apply *apply, const CdcEvent *event);

/* Stops for tables without transactions that the transaction, which is being rolled back, has changed. */
extern List *apply_stop_lasting(Apply *apply);

/* A statement by itself is passed over because somebody asked for it. Returns the number of row changes that go with it. */
extern int64 apply_statement_passed_over(Apply *apply, const CdcEvent *event);

/* Has the stream brought no change of a table whose copy is under way? */
extern bool apply_table_is_unchanged(Apply *apply, const ApplyTable *table);

/* ---- apply_table_statement.c ---- */

/*
 * A statement that makes, drops, empties or renames tables, or moves rows without events: do what the options want. False
 * when it is none of these, or when its tables are to stop.
 */
extern bool apply_table_statement(Apply *apply, const CdcEvent *event, const struct DdlStatement *statement, const CdcPosition *at);

/* Log that a table fits the pipeline's patterns and does not join, as the options have it. */
extern void apply_tell_new_table(const Apply *apply, const char *schema, const char *name, const struct DdlStatement *statement,
								 const char *position);

/* ---- apply_ddl.c ---- */

/*
 * Run a step that needs the targets of tables (List of ApplyTable) for itself, in a transaction of its own, which stays open
 * and is committed with the position behind the event. Waits for its locks as long as it takes. Returns NULL, or the tables'
 * own error, with everything undone. Never inside a source transaction; batches have been written.
 */
typedef void (*ApplyDdlStep) (Apply *apply, void *arg);
extern UtilErrorInfo *apply_ddl_try(Apply *apply, List *tables, ApplyDdlStep step, void *arg);

/* Tries that did not get the targets' locks. Begins with tables alone. */
typedef struct ApplyDdlWait
{
	List	   *tables;			/* of ApplyTable */
	int			tries;			/* that were in vain */
	const char *told;			/* whom the tables' rows and the log name */
} ApplyDdlWait;

/*
 * A try was in vain, and is undone: say who is in the way, and wait a while; longer each time. And, in the transaction of a try that
 * came through: say nothing any more.
 */
extern void apply_ddl_await(Apply *apply, ApplyDdlWait *wait);

/* What a try needs, for the caller to delete when it was in vain: there may be as many tries as somebody else wants. */
extern MemoryContext apply_ddl_try_context(Apply *apply);
extern void apply_ddl_got_locks(Apply *apply, const ApplyDdlWait *wait);

/* ---- apply_history.c ---- */

/* A row of the history, written with the position behind the event. Position, times and GTID are filled in. */
extern void apply_history_add(Apply *apply, const CdcEvent *event, const CatalogSchemaChange *change);

/* Let tables join; soon: before the stream goes on. And: copy one anew, its changes being passed over until then. */
extern void apply_wish_tables(Apply *apply, bool soon);
extern void apply_wish_copy(Apply *apply, ApplyTable *table);
extern void apply_wish_kept_rows(Apply *apply, const ApplyTable *table);

/* Copy one anew, its changes being applied until then. */
extern void apply_wish_resync(Apply *apply, const ApplyTable *table);

extern void apply_wishes_write(Apply *apply);	/* into the transaction that is about to be committed */
extern void apply_wishes_forget(Apply *apply, bool committed);

#endif							/* CDC_APPLY_PRIVATE_H */
