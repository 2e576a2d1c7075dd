/*-------------------------------------------------------------------------
 *
 * snapshot_private.h
 *	  What the files of snapshot/ share.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SNAPSHOT_PRIVATE_H
#define CDC_SNAPSHOT_PRIVATE_H

#include "postgres.h"

#include "catalog/catalog_history.h"
#include "heap/heap_row.h"
#include "mysql/mysql_server.h"
#include "schema/evolve.h"
#include "schema/table.h"
#include "snapshot/snapshot.h"
#include "snapshot/snapshot_start.h"
#include "transform/transform_route.h"

/* A source table on its way into the catalog. */
typedef struct SnapshotCandidate
{
	CdcTableDef *def;			/* NULL: it could not be had, and error tells why */
	CatalogTable table;
	bool		is_known;		/* it has its rows in the catalog, and is to be copied anew */
	bool		is_first;		/* it joins only now */
	bool		lost_shadow;	/* the copy that was under way is given up */
	bool		was_copying;	/* the target held a copy that was not complete */
	UtilErrorInfo *error;		/* why it is stopped; NULL: it is not */
	bool		put_off;		/* it is locked at the source, says error: to be tried again */
	bool		is_merged;		/* others may share its target */
	List	   *sharers;		/* of CatalogTable: who does */
	bool		had_turn;		/* its target was looked for */
	List	   *took_from;		/* of CatalogTable: tables of the same round whose rows in the target had what tells its own now */
	Datum		own_before;		/* what told its own rows until now; 0: nothing */
	bool		has_no_place;	/* no target can have the names that the routes give */
	Datum		before;			/* the definition that its target was made for, 0: none */
	SchemaEvolve *fit;			/* how the target was brought into the table's present shape; NULL: it was not there */
	SchemaPlan *plan;			/* what brought the target into the table's present shape; NULL: nothing */
	bool		key_waits;		/* the rows that are there cannot have the source's key; those that are copied get it */
	bool		made;			/* the target is ours, it did not exist */
	bool		keeps_rows;		/* see snapshot_start_keeps_rows */
} SnapshotCandidate;

typedef struct SnapshotPrepare
{
	const CatalogPipeline *pipeline;
	MysqlServerInfo *info;
	SchemaTypeOptions options;
	CatalogChangeRules rules;
	SnapshotStart start;
	TransformRoutes *routes;
	CdcPosition position;		/* start mark */
	char	   *gtids;
	bool		has_snapshot_mark;
	CdcPosition snapshot_mark;	/* see catalog_pipeline_set_snapshot_mark */
	char	   *snapshot_mark_gtids;
	List	   *prepared;		/* of String: XA transactions from before the start that have not ended */
	bool		is_joining;		/* the pipeline runs: a table that may not be read stops alone, none is waited for */
	List	   *marked;			/* of CatalogTable: their place in the stream is to be behind their high mark, which is new */
	int			locked;			/* how many tables were found locked */
	bool		more;			/* not all tables were asked for: the stream stands still meanwhile */
	bool		more_later;		/* some are new and join when the stream has come further */
	const CatalogPosition *durable; /* while joining: where the stream is */
	CdcPosition *awaited;		/* ... and where it shall have come to before the next look */
	CdcPosition log_end;		/* where the source's log ends, as asked for in this look; or not known */
	List	   *candidates;		/* of SnapshotCandidate */
	List	   *moving;			/* of CatalogTable: merged ones that are copied anew in this round, and have not had their turn */
} SnapshotPrepare;

/* ---- snapshot_prepare.c ---- */

/* Give a candidate the target that the pipeline's options say. */
extern void snapshot_find_place(const SnapshotPrepare *p, SnapshotCandidate *c);

/* Add the tables that the pipeline's patterns mean to the candidates, without those of "known" (List of CatalogTable). */
extern void snapshot_read_tables(SnapshotPrepare *p, MysqlSession *session, List *known);

/* In snapshot_join.c: has the stream still to come to where the log ended when that table was first seen? That is awaited then. */
extern bool snapshot_join_is_early(SnapshotPrepare *p, MysqlSession *session, const char *schema, const char *name);

/*
 * A table's definition into c->def: NULL when it is not there, or (while joining) when the user may not read it or it is
 * locked: then c->error tells why, and c->put_off which of the two it is. Else a locked table is an error: the first run
 * is tried again, and says meanwhile what it waits for.
 */
extern void snapshot_describe(SnapshotPrepare *p, MysqlSession *session, const char *schema, const char *name,
							  SnapshotCandidate *c);

/*
 * Wait until the XA transactions that are prepared now have ended and are visible, if they were
 * committed. False when that cannot be told, or takes too long: then *left, if not NULL, becomes the names of those that
 * are left (List of String).
 */
extern bool snapshot_await_prepared(MysqlSession *session, List **left);

/*
 * Reasons that need no look at the target: definition, names, another table with the same target; NULL when there is none.
 * Fills c->sharers, of a table that may share its target.
 */
extern UtilErrorInfo *snapshot_refuse_early(const SnapshotPrepare *p, SnapshotCandidate *c, List *taken);

/* Make the target of a candidate, or take the one that is there, as the pipeline's options say. Throws. */
extern void snapshot_make_target(const SnapshotPrepare *p, SnapshotCandidate *c);

/*
 * Do that (or another step) in a subtransaction. What is the table's own fault is noted in
 * c->error; false when others use a target that is to be altered; other errors are thrown.
 */
typedef void (*SnapshotTargetStep) (const SnapshotPrepare *p, SnapshotCandidate *c);
extern bool snapshot_try_target(const SnapshotPrepare *p, SnapshotCandidate *c, SnapshotTargetStep step);

/* Wait until no other pipeline looks for a place in a shared target, if one of the candidates may. Before targets are looked at. */
extern void snapshot_lock_merge(const SnapshotPrepare *p);

/* Targets that tables of other pipelines write to: List of CatalogTable. */
extern List *snapshot_targets_of_others(const CatalogPipeline *pipeline);

/* Tell the log why a candidate is stopped. */
extern void snapshot_log_stopped(const SnapshotPrepare *p, const SnapshotCandidate *c);

/* ---- snapshot_join.c ---- */

/* Is the source's table still as it was when its definition was read? */
extern bool snapshot_looks_the_same(MysqlSession *session, const MysqlServerInfo *info, const CatalogTable *table);

/* ---- snapshot_fit.c ---- */

/*
 * The source's table may have another shape than when its target was made: bring the target, which keeps its rows until the
 * new copy takes their place, into the present one. Fills c->plan. Throws ERRCODE_LOCK_NOT_AVAILABLE when others use the
 * target just now.
 */
extern void snapshot_fit_target(const SnapshotPrepare *p, SnapshotCandidate *c, Oid relid);

/* Write that down. Takes the state's lock. */
extern void snapshot_fit_note(const SnapshotPrepare *p, const SnapshotCandidate *c, const CdcPosition *at);

/*
 * A table that is being copied changed its shape: its copy begins anew by itself, if the pipeline follows such changes; false
 * when it does not, or the table is not being copied any more. The caller holds the table's lock.
 */
extern bool snapshot_begin_anew(int32 pipeline_id, const CatalogTable *table);

/* ---- snapshot_merge.c ---- */

/* Make room in the target that is there for a table that shares it. Throws ERRCODE_LOCK_NOT_AVAILABLE when others use it just now. */
extern void snapshot_merge_fit(const SnapshotPrepare *p, SnapshotCandidate *c, Oid relid);

/* Which rows are its own. Throws when they cannot be told from those of the others. */
extern Datum snapshot_merge_own(const SnapshotPrepare *p, SnapshotCandidate *c, HeapRow *row, Oid relid);

/* A table that shares its target is copied anew: its own rows go first. */
extern void snapshot_merge_anew(const SnapshotPrepare *p, SnapshotCandidate *c, Oid relid);

/*
 * Tables of one round may pass what tells their rows on to each other, as names do in one RENAME. Known ones (List of CatalogTable) of
 * these; a candidate had its turn; and, when all had: those that took from one that is stopped are stopped too.
 */
extern void snapshot_merge_begin_round(SnapshotPrepare *p, List *known);
extern void snapshot_merge_had_turn(SnapshotPrepare *p, const SnapshotCandidate *c, List *known);
extern void snapshot_merge_end_round(SnapshotPrepare *p);

/* ---- snapshot_swap.c ---- */

/* Make the shadow of the candidate's table.swap_into: it becomes table.target. Throws when there can be none. */
extern void snapshot_make_shadow(const SnapshotPrepare *p, SnapshotCandidate *c);

typedef enum SnapshotSwapResult
{
	SNAPSHOT_SWAP_DONE,			/* the table streams, or is stopped */
	SNAPSHOT_SWAP_BLOCKED,		/* others use the table, which its row in the catalog tells */
	SNAPSHOT_SWAP_AGAIN			/* the table was altered: a new copy was asked for */
} SnapshotSwapResult;

/*
 * Put the shadow of a table, whose high mark the stream has passed, in the place of the table it was made
 * for: the table streams. In a transaction of its own; waits for others only a moment.
 */
extern SnapshotSwapResult snapshot_swap(const CatalogTable *table);

#endif							/* CDC_SNAPSHOT_PRIVATE_H */
