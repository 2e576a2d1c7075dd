/*-------------------------------------------------------------------------
 *
 * decode_private.h
 *	  What the files of decode/ share.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_DECODE_PRIVATE_H
#define CDC_DECODE_PRIVATE_H

#include "postgres.h"

#include "access/genam.h"
#include "access/htup.h"
#include "nodes/bitmapset.h"
#include "nodes/execnodes.h"
#include "nodes/pg_list.h"
#include "replication/logical.h"
#include "replication/output_plugin.h"
#include "utils/hsearch.h"
#include "utils/relcache.h"

#include "compat/pg_compat.h"
#include "core/schema_message.h"
#include "decode/decode.h"
#include "decode/decode_copy.h"
#include "format/format.h"
#include "transform/transform_route.h"
#include "transform/transform_rule.h"
#include "util/util_subtransaction.h"

/* A set of kinds of changes, in bits. */
typedef enum DecodeAction
{
	DECODE_INSERT = 1 << 0,
	DECODE_UPDATE = 1 << 1,
	DECODE_DELETE = 1 << 2,
	DECODE_TRUNCATE = 1 << 3,
	DECODE_ALL = (1 << 4) - 1
} DecodeAction;

typedef struct DecodeOptions
{
	const CdcFormatOps *format;
	CdcFormatOptions format_options;
	int			actions;		/* DecodeAction bits */
	bool		arrays_as_text;
	bool		generated_columns;
	bool		messages;
	bool		foreign_origins;	/* also what came by replication */
	bool		via_root;		/* partitions under their root's name, when no publication decides */
	bool		schema_changes;
	bool		streaming;
	List	   *tables;			/* patterns, List of char *; NIL: all */
	TransformRoutes *routes;	/* NULL: everything under its own name */
	List	   *transforms;		/* TransformRule *; NIL: rows as they are */
	List	   *publications;	/* names, List of char *; NIL: not by publications */
} DecodeOptions;

/* How one shipped column gets its cells. */
typedef struct DecodeColumn
{
	int			attno;			/* 0-based place in the tuples of the log */
	CdcOutType	type;			/* of the elements of a list */
	Oid			typid;			/* the same as a type of PostgreSQL, domains looked through */
	bool		is_list;
	int16		typlen;			/* of the elements */
	bool		typbyval;
	char		typalign;
	FmgrInfo	output;			/* when no fast way is known */
} DecodeColumn;

/* A column of a key that the initial copy goes along. */
typedef struct DecodeKeyColumn
{
	int			attno;			/* 0-based place in the tuples of the log */
	Oid			typid;
	int16		typlen;
	bool		typbyval;
	bool		descending;		/* in the index */
	Oid			collation;
	Oid			opfamily;
	Oid			opcintype;
	FmgrInfo	compare;
} DecodeKeyColumn;

typedef struct DecodeKey
{
	Oid			indexid;		/* InvalidOid: none, and no columns */
	int			n;
	DecodeKeyColumn *columns;
	char	   *signature;		/* the same text: the same names, columns and order */
} DecodeKey;

/* What becomes of a relation's rows, by option transforms. */
typedef struct DecodeTransform DecodeTransform;

/* A relation as it is shipped; built anew when anything of it may have changed. */
typedef struct DecodeRelation
{
	Oid			relid;			/* hash key */
	bool		valid;
	bool		warned;			/* told already that changes do not say which row they mean */
	uint64		generation;		/* of the cache, when this was built */
	MemoryContext context;		/* of all below */
	int			actions;		/* DecodeAction bits that are shipped; 0: nothing */
	Oid			publish_as;		/* the relation under whose name it is shipped */
	CdcOutTable *table;
	DecodeColumn *columns;		/* as many as table->ncolumns */
	Bitmapset  *shipped;		/* attribute numbers of publish_as */
	int			natts;			/* of the tuples in the log */
	bool	   *in_identity;	/* natts: is it in old rows? */
	bool		has_identity;	/* are there old rows at all? */
	DecodeTransform *transform; /* NULL: rows are shipped as they are; else columns have their places in what it makes */
	bool	   *cell_in_identity;	/* by place of a column (attno): is it in old rows? */

	/* row filters: NULL when all rows pass */
	EState	   *estate;
	ExprState  *filter_insert;
	ExprState  *filter_update;
	ExprState  *filter_delete;
	TupleTableSlot *slot;		/* in the layout of publish_as */
	AttrNumber *slot_attnos;	/* for each of its columns the place in the tuples of the log, 0-based; -1: dropped */

	DecodeKey  *key;			/* for copies and letters; NULL: nobody asked yet */
	bool		name_is_free;	/* no other table is being copied under its name */

	/* the last transaction that changed it, and where it stands in that one's counts */
	int			count_index;
} DecodeRelation;

/* What is kept for a transaction while it is decoded: output_plugin_private. */
typedef struct DecodeTxn
{
	CdcOutTxn	out;
	bool		begun;			/* something of it was handed on */
	bool		is_prepared;	/* it is decoded at its PREPARE */
	uint64		kept;			/* changes of it that became letters */
	CdcOutCount *counts;
	Oid		   *count_relids;
	uint32		counts_max;
} DecodeTxn;

/* One row of the log, taken apart. */
typedef struct DecodeRow
{
	Datum	   *values;			/* natts */
	bool	   *nulls;
	bool	   *unchanged;		/* not touched, and nowhere else; NULL for an old row */
} DecodeRow;

typedef struct DecodeState
{
	LogicalDecodingContext *ctx;
	MemoryContext context;		/* of all this */
	MemoryContext change_context;	/* emptied after each change */
	MemoryContextCallback reset_callback;
	DecodeOptions options;
	DecodeEmit	emit;
	void	   *emit_arg;
	DecodeMeet	meet;			/* with emit_arg; NULL: nobody asks */
	DecodeKeep	keep;			/* with emit_arg; NULL: what throws throws */
	const DecodeFollow *follow; /* the same; NULL: nobody does */
	DecodeNote	note;			/* with emit_arg; NULL: nobody writes statements down */
	int64		now_us;			/* when the transaction, or the block of one, began to be decoded */
	bool		in_block;		/* between STREAM_START and STREAM_STOP */
	bool		block_begun;	/* STREAM_START was handed on */
	uint32		skipped;		/* changes that were not shipped since the last sign of life */

	/* relations */
	HTAB	   *relations;		/* DecodeRelation */
	long		purge_at;		/* so many of them, and those that are not valid are forgotten */
	uint64		generation;		/* raised when any of them may have changed */
	uint32	   *type_hashes;	/* of types that are not built in, and are in use */
	int			ntype_hashes;

	/* publications as they are at the point that is decoded */
	MemoryContext publication_context;
	List	   *publications;	/* Publication */
	bool		publications_valid;

	HTAB	   *claims;			/* names that are shipped, and whose they may be: decode_route.c; NULL: nobody looks */

	DecodeStops *stops;			/* NULL: no table is stopped */
	const struct CatalogChangeRules *change_rules;	/* NULL: statements are told as they come */
	DecodeCopy *copy;			/* NULL: everything is shipped */

	/* the default emit */
	CdcFormat	format;
	CdcBuf		buf;
} DecodeState;

/* The initial copy; all of it in one memory context. */
struct DecodeCopy
{
	MemoryContext context;
	HTAB	   *tables;			/* DecodeCopyTable */
	XLogRecPtr	skip_until;
	List	   *pending;		/* TransactionIds, as a list of Oids, that were decoded, and that others did not see yet */
	DecodeState *state;			/* of the decoding that heeds it */
};

/* in decode_plugin.c */

/* Settings of the session decide how output functions write values: pin them until the transaction ends. */
extern void decode_pin_settings(void);

/* Microseconds since 1970. */
extern int64 decode_now_us(void);

/* in decode_options.c */
extern void decode_options_read(DecodeOptions *options, List *given);

/* in decode_relation.c */
extern void decode_relations_init(DecodeState *state);
extern DecodeRelation *decode_relation_get(DecodeState *state, Relation relation);

/* May a table of that name be shipped, by what options say of names? */
extern bool decode_name_is_wanted(const DecodeState *state, const char *schema, const char *name);

/*
 * A relation as that decoding would ship it now, by the catalogs of now, outside of its cache; in the current memory context.
 */
extern DecodeRelation *decode_relation_look(const DecodeState *state, Relation relation);

/* Is the relation with that OID one that rows are shipped under its own, or its routed, name of? By the catalogs that are seen now. */
extern bool decode_relation_is_shipped(const DecodeState *state, Oid relid);

/* A version that no other definition has. */
extern uint64 decode_relation_new_version(void);

/* in decode_route.c */

/* Take note of all tables there are now, so that two that would be shipped under one name are noticed. In a transaction. */
extern void decode_route_init(DecodeState *state);

/* Under which name a table is shipped, in the current memory context; false: under none. */
extern bool decode_route_find(const DecodeState *state, const char *schema, const char *name, const char **out_schema, const char **out_name);

/* The same; throws where that is none. */
extern void decode_route_name(const DecodeState *state, const char *schema, const char *name, const char **out_schema, const char **out_name);

/* The relation that a name belongs to, after routes; throws when another one has it. */
extern void decode_route_claim(const DecodeState *state, Oid relid, const char *schema, const char *name);

/* in decode_stop.c */
extern void decode_stops_attach(DecodeState *state);

/* Is a change of a table left out? */
extern bool decode_stops_cover(const DecodeState *state, Oid relid, XLogRecPtr txn_end, XLogRecPtr lsn);

/* Throws when another table, which is stopped, was shipped under the name. */
extern void decode_stops_check_name(const DecodeState *state, Oid relid, const char *schema, const char *name);

/* From here on it is about that change, or row of a copy, of a table. */
static inline void
decode_place_set(Oid relid, TransactionId xid, XLogRecPtr txn_end, XLogRecPtr lsn)
{
	decode_place_now = (DecodePlace) {.relid = relid,.xid = xid,.txn_end = txn_end,.lsn = lsn};
}

static inline void
decode_place_leave(void)
{
	decode_place_now.relid = InvalidOid;
	decode_place_now.statement = NULL;
}

/* in decode_letter.c */

/* Is a change of a relation, or a row of it, kept when its expressions throw? */
static inline bool
decode_letter_is_wanted(const DecodeState *state, const DecodeRelation *entry)
{
	return state != NULL && state->keep != NULL && entry->transform != NULL;
}

/*
 * Run a step of a change. Returns what it threw about the row, when such changes are kept; NULL: it went well. Everything else is thrown.
 */
extern ErrorData *decode_letter_try(const DecodeState *state, const DecodeRelation *entry, UtilStep step, void *arg);

/* Hand such a change on, with its rows as the expressions got them; returns what who keeps it says. */
extern bool decode_letter_keep(const DecodeState *state, DecodeRelation *entry, Relation relation, const DecodeRow *old, const DecodeRow *new,
							   DecodeLetter *letter);

/*
 * The names of a relation's first n columns (0: of all), and which of them are dropped: SHA-256, and n. Images have columns by name, so they mean the
 * same as long as this is the same, whatever columns came since.
 */
extern bytea *decode_letter_shape(Relation relation, int n);
extern int	decode_letter_shape_columns(const bytea *shape);

/* Does somebody want to know what is shipped of a table? */
static inline bool
decode_letter_follows(const DecodeState *state, Oid relid)
{
	return state != NULL && state->follow != NULL && state->follow->wants(state->emit_arg, relid);
}

/* Tell it: of a change, whose op is that of the record, or that the table was emptied. */
extern void decode_letter_shipped(const DecodeState *state, DecodeRelation *entry, Relation relation, CdcOutOp op, const DecodeRow *old,
								  const DecodeRow *new, XLogRecPtr txn_end);
extern void decode_letter_emptied(const DecodeState *state, Oid relid, XLogRecPtr txn_end);

/* Keys of the row that a change removes (only when it is another one), and of the one that it writes; NULL: none, or not known. */
extern void decode_letter_keys(const DecodeKey *key, Relation relation, CdcOutOp op, const DecodeRow *old, const DecodeRow *new,
							   bytea **old_key, bytea **new_key);

/* in decode_publication.c */

/* What the publications say of a relation. */
typedef struct DecodePublished
{
	int			actions;		/* DecodeAction bits */
	Oid			publish_as;
	bool		generated_columns;	/* stored generated columns, where no list of columns says it */
	Bitmapset  *columns;		/* attribute numbers of publish_as; NULL: all */
	List	   *filters[3];		/* expressions for insert, update, delete of which one has to hold; NIL: no filter */
} DecodePublished;

/* Throws for a name that no publication has now. */
extern void decode_publications_check(List *names);
extern void decode_publications_look_up(DecodeState *state, Relation relation, DecodePublished *published);

/* Is one of them for all tables, or for those of that schema? */
extern bool decode_publications_have_schema(DecodeState *state, const char *schema);

/* in decode_filter.c */
extern void decode_filter_init(DecodeRelation *entry, Relation publish_as, Relation relation, const DecodePublished *published);

/*
 * Is a change shipped, and as what? op may become another one: an update that brings a row in among those that are
 * shipped is an insert for the receiver. old or new is NULL when the change has none.
 */
extern bool decode_filter_passes(DecodeRelation *entry, const DecodeRow *old, const DecodeRow *new, CdcOutOp *op);

/*
 * What becomes of a change by a condition on rows; op may become another one. holds: does it hold for a row of such a change?
 */
typedef bool (*DecodeHolds) (DecodeRelation *entry, CdcOutOp op, const DecodeRow *row);

/* in decode_transform.c */

/*
 * Compile the transform of a relation, and let the entry's columns and key become what it makes; false: there is none. In the entry's memory
 * context. key: attribute numbers of the relation's key; actions: those that are shipped.
 */
extern bool decode_transform_init(DecodeState *state, DecodeRelation *entry, Relation publish_as, Relation relation, List *key, int actions);

extern bool decode_transform_holds(DecodeRelation *entry, CdcOutOp op, const DecodeRow *row);
extern CdcCell *decode_transform_cells(const DecodeRelation *entry, const DecodeRow *row, bool is_old, CdcOutOp op, const CdcOutTxn *txn);

/* Are there columns that are made of large values which nobody knows? */
extern bool decode_transform_lacks(const DecodeRelation *entry, const DecodeRow *row);
extern bool decode_transform_is_parallel_safe(const DecodeRelation *entry);

/* Is a deleted row shipped as one that has a mark? Its cells then, made of those of the old row. */
extern bool decode_transform_marks_deletes(const DecodeRelation *entry);
extern CdcCell *decode_transform_mark_deleted(const DecodeRelation *entry, const CdcCell *row, const CdcOutTxn *txn);

/* The row as the expressions got it, as jsonb: names and texts, without what is not known. */
extern Datum decode_transform_image(const DecodeRelation *entry, const DecodeRow *row, bool is_old);
extern void decode_transform_name(const DecodeRelation *entry, const char **schema, const char **name);

/* The place in the log's tuples of what a column passes through; -1: it is computed. */
extern int	decode_transform_source(const DecodeRelation *entry, int column);

/* in decode_row.c */

/* How to ship a column of that type; everything that is found out is put into column and out. */
extern void decode_column_init(DecodeState *state, MemoryContext context, Form_pg_attribute att, DecodeColumn *column, CdcOutColumn *out);

/* Take a tuple of the log apart, in the current memory context. */
extern DecodeRow *decode_row_open(Relation relation, HeapTuple tuple);

/* Mark what the new row does not have, and take from the old one what that has. */
extern void decode_row_complete(const DecodeRelation *entry, Relation relation, DecodeRow *new, const DecodeRow *old);

/* Are there columns that are shipped and have large values which nobody knows? */
extern bool decode_row_lacks(const DecodeRelation *entry, const DecodeRow *row);

/* Cells of what is shipped of a row; is_old: of an old row, of which the log has only the identity. txn: NULL for a copy. */
static inline CdcCell *decode_change_cells(const DecodeRelation *entry, const DecodeRow *row, bool is_old, CdcOutOp op, const CdcOutTxn *txn);

/* The same of a row that has what is shipped at the columns' places. */
extern CdcCell *decode_row_cells(const DecodeRelation *entry, const DecodeRow *row, bool is_old);

static inline CdcCell *
decode_change_cells(const DecodeRelation *entry, const DecodeRow *row, bool is_old, CdcOutOp op, const CdcOutTxn *txn)
{
	return entry->transform == NULL ? decode_row_cells(entry, row, is_old) : decode_transform_cells(entry, row, is_old, op, txn);
}

/* in decode_schema.c */

/* Items (CdcSchemaItem) of a message that the event triggers left; false: it has not the form of one. */
extern bool decode_schema_open(const char *content, Size size, List **items);

extern void decode_change_rules_attach(DecodeState *state);

/*
 * What an item comes to for the receiver, in record->table and record->schema_change, and whose table it was; false: nothing. items: all of
 * the message.
 */
extern bool decode_schema_record(DecodeState *state, const CdcSchemaItem *item, const List *items, CdcRecord *record, DecodeStatement *statement);

/* Is such a record shipped? Throws for one that stops its table. */
extern bool decode_schema_is_wanted(const DecodeState *state, const CdcSchemaItem *item, const CdcRecord *record);

/* in decode_copy.c */
typedef enum DecodeCopyVerdict
{
	DECODE_COPY_PASS,
	DECODE_COPY_DROP,
	DECODE_COPY_ANEW,			/* the copy of its table begins anew */
	DECODE_COPY_SUCCEEDS		/* it is shipped, after the copy of another table of that name has begun anew */
} DecodeCopyVerdict;

extern void decode_copy_attach(DecodeState *state);
extern DecodeKey *decode_key_make(Relation relation);
extern const DecodeKey *decode_relation_key(DecodeRelation *entry, Relation relation);

/* In the order of the index. */
extern int	decode_key_compare(const DecodeKey *key, const Datum *a, const Datum *b);
extern Datum *decode_key_from_texts(const DecodeKey *key, List *texts);
extern DecodeCopyVerdict decode_copy_change(DecodeState *state, ReorderBufferTXN *txn, DecodeRelation *entry, Relation relation,
											const DecodeRow *old, const DecodeRow *new, CdcOutOp *op, DecodeCopyTable **found);
extern bool decode_copy_truncate(DecodeState *state, ReorderBufferTXN *txn, Relation relation, bool anyway);

/* The record that says that the copy of a table begins anew; published: how it is shipped, or NULL. In the current memory context. */
extern void decode_copy_anew_record(const DecodeState *state, const DecodeCopyTable *table, const CdcOutTable *published, XLogRecPtr lsn,
									CdcRecord *record);

/* A commit was decoded. */
extern void decode_copy_committed(DecodeState *state, TransactionId xid);

/* in decode_copy_read.c */

/* Rows of a table that is locked -> records, in the order of its key. */
typedef struct DecodeChunkReader
{
	const DecodeState *state;	/* of the decoding beside which it is read; NULL: in another process */
	Relation	relation;
	DecodeRelation *entry;
	DecodeKey  *key;
	DecodeChunkRow row;
	void	   *arg;
	DecodeChunk *chunk;
	MemoryContext row_context;
	TupleTableSlot *slot;
	const Datum *upper;			/* rows of greater keys are not read; NULL: all */
	bool		enough;
} DecodeChunkReader;

extern List *decode_key_texts(const DecodeKey *key, const Datum *values);
extern IndexScanDesc decode_chunk_scan(const DecodeChunkReader *reader, Relation index, const Datum *values, int equal, bool behind, bool keys_only);
extern void decode_chunk_read_by_key(DecodeChunkReader *reader, Relation index, const Datum *bound);

/* in decode_copy_range.c */

/* Have other processes read what comes behind the bound; false, and nothing was read, when that cannot be. */
extern bool decode_chunk_spread(DecodeChunkReader *reader, Relation index, const Datum *bound, const DecodeChunkShare *share);

/* in decode_text.c */
extern void decode_text_init(DecodeState *state);
extern void decode_text_emit(void *arg, const CdcRecord *record);

#endif							/* CDC_DECODE_PRIVATE_H */
