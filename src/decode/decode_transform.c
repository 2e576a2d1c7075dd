/*-------------------------------------------------------------------------
 *
 * decode_transform.c
 *	  Option transforms: what is made of a relation's rows before they become
 *	  cells.
 *
 * NOTES
 *	  The expressions are compiled and run by transform/, as for rows that come
 *	  in. Here is what is special about the log:
 *
 *	  - It is read again after a crash, and rows of a copy and of the stream have
 *		to be alike. So an expression may not call what is volatile, nor, beyond
 *		what the server brings, what is only stable: that may look into tables,
 *		which a decoding cannot do.
 *	  - An old row has the replica identity only. A column that is made of other
 *		columns is not in "before"; a filter over them would not know of an update
 *		or delete whether the row was let through, and is refused.
 *	  - Large values that an update did not touch are not there. A column that
 *		passes such a value through is as untouched as that; one that has to be
 *		computed from it cannot be.
 *
 *	  What a user's function looks up it sees as the catalogs were at that change.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tupdesc.h"
#include "access/transam.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "decode/decode_private.h"
#include "transform/transform_table.h"
#include "util/util_error.h"

#define UNIX_TO_POSTGRES_US ((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

/* Which of the two rows of a TransformState. */
enum
{
	NEW_ROW,
	OLD_ROW
};

struct DecodeTransform
{
	Transform  *transform;
	TransformState *state;
	TupleTableSlot *slots[2];
	int		   *sources;		/* per column of the row type: its 0-based place in the tuples of the log */
	bool	   *in_identity;	/* per column that is shipped: can it be had from an old row? */
	bool		needs_snapshot;	/* functions are called that may want one */
	bool		is_parallel_safe;
	char	   *schema;			/* what the table is called here */
	char	   *name;
	char	   *server;
};

/* ---------------------------------------------------------------------- compiling */

static char *
table_text(const DecodeTransform *t)
{
	return quote_qualified_identifier(t->schema, t->name);
}

static _Noreturn void
throw_refused(const DecodeTransform *t, char *detail, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("member %d of option \"%s\" cannot be used for table %s", t->transform->rule->number, TRANSFORM_OPTION, table_text(t)),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
}

typedef struct FunctionLook
{
	DecodeTransform *t;
	Oid			refused;
} FunctionLook;

/* check_function_callback */
static bool
look_at_function(Oid funcid, void *arg)
{
	FunctionLook *look = arg;
	char		volatility = func_volatile(funcid);

	if (funcid >= FirstNormalObjectId)
		look->t->needs_snapshot = true;
	if (func_parallel(funcid) != PROPARALLEL_SAFE)
		look->t->is_parallel_safe = false;
	if (volatility == PROVOLATILE_VOLATILE || (volatility == PROVOLATILE_STABLE && funcid >= FirstNormalObjectId))
		look->refused = funcid;
	return OidIsValid(look->refused);
}

static bool
look_at_functions(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	return check_functions_in_node(node, look_at_function, arg) || expression_tree_walker(node, look_at_functions, arg);
}

static void
check_functions(DecodeTransform *t, Node *expr, const char *what)
{
	FunctionLook look = {.t = t};

	(void) look_at_functions(expr, &look);
	if (OidIsValid(look.refused))
		throw_refused(t, psprintf("%s calls %s, which is %s: the log is read again after a crash, and has to give the same.", what,
								  format_procedure(look.refused), func_volatile(look.refused) == PROVOLATILE_VOLATILE ? "volatile" : "not immutable"),
					  "Use immutable functions.");
}

/* The row type that expressions are over: the columns that are shipped without a transform, then metadata. */
static TupleDesc
make_row_type(DecodeTransform *t, const DecodeRelation *entry, Relation publish_as, Relation relation)
{
	int			n = (int) entry->table->ncolumns;
	TupleDesc	desc = CreateTemplateTupleDesc(n + TRANSFORM_METAS);

	t->sources = palloc(sizeof(int) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		t->sources[i] = entry->columns[i].attno;
		TupleDescCopyEntry(desc, (AttrNumber) (i + 1), RelationGetDescr(relation), (AttrNumber) (t->sources[i] + 1));
	}
	transform_add_metadata(desc, n);
	return desc;
}

/* Is everything that an expression uses in old rows? */
static bool
is_in_old_rows(const DecodeTransform *t, const DecodeRelation *entry, const Bitmapset *uses)
{
	int			attnum = -1;

	while ((attnum = bms_next_member(uses, attnum)) >= 0)
	{
		if (attnum <= t->transform->nsource && !entry->in_identity[t->sources[attnum - 1]])
			return false;
	}
	return true;
}

static void
check_filter(DecodeTransform *t, const DecodeRelation *entry, int actions)
{
	const char *hint = "Use only columns of the replica identity in it, run ALTER TABLE ... REPLICA IDENTITY FULL, or ship inserts only (option \"actions\").";

	if (t->transform->filter == NULL)
		return;
	check_functions(t, t->transform->filter, "Its filter");
	if (transform_tells_change(t->transform, -1))
		throw_refused(t, pstrdup("Its filter is over what is known of a change, so whether a row is shipped would depend on the way it came."),
					  "Use columns of the row.");
	if ((actions & (DECODE_UPDATE | DECODE_DELETE)) != 0 &&
		(!entry->has_identity || !is_in_old_rows(t, entry, t->transform->filter_uses)))
		throw_refused(t, pstrdup("Its filter is over columns that old rows do not have in the log, so an update or delete does not tell whether the row was shipped."),
					  hint);
}

static bool
is_in_list(const List *key, int attnum)
{
	return list_member_int(key, attnum);
}

/* Column of the projection that stands for a column of the key: that one itself, else what is made of it under its name; -1: none. */
static int
column_for(const DecodeTransform *t, int attnum, const char *name)
{
	const Transform *transform = t->transform;

	for (int i = 0; i < transform->ncolumns; i++)
	{
		if (transform->columns[i].from > 0 && transform->columns[i].from <= transform->nsource &&
			t->sources[transform->columns[i].from - 1] == attnum - 1)
			return i;
	}
	return transform_column(transform, name);
}

/* Does a column come out the same for each change of a row, of which a delete has the key only? */
static bool
is_made_of_key(const DecodeTransform *t, const List *key, int column)
{
	const TransformColumn *made = &t->transform->columns[column];
	bool		fits = !made->is_mutable && !transform_tells_change(t->transform, column);
	int			attnum = -1;

	while (fits && (attnum = bms_next_member(made->uses, attnum)) >= 0)
		fits = attnum > t->transform->nsource || is_in_list(key, t->sources[attnum - 1] + 1);
	return fits;
}

static void
check_key_column(const DecodeTransform *t, const List *key, int column)
{
	if (!is_made_of_key(t, key, column))
		throw_refused(t, psprintf("Column \"%s\" of its key is not made of the table's key alone, so a deleted row would not be found.", t->transform->columns[column].name),
					  "Make it of columns of the table's key, cdc_server, cdc_schema and cdc_table, with immutable functions.");
}

/* Each part of the table's key goes into that of the records: else different rows would be one. */
static void
check_whole_key(const DecodeTransform *t, const List *key, const List *made, Relation relation)
{
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, key)
	{
		bool		is_used = false;

		foreach(lc2, made)
		{
			int			attnum = -1;

			while ((attnum = bms_next_member(t->transform->columns[lfirst_int(lc2)].uses, attnum)) >= 0)
				is_used |= attnum <= t->transform->nsource && t->sources[attnum - 1] == lfirst_int(lc) - 1;
		}
		if (!is_used)
			throw_refused(t, psprintf("Column \"%s\" of the table's key is in no column of its key, so different rows would be one.",
									  NameStr(TupleDescAttr(RelationGetDescr(relation), lfirst_int(lc) - 1)->attname)),
						  "Give the column to the key too.");
	}
}

/* Columns of the projection that make the key, a List of int; NIL: none. key: attribute numbers of the relation's. */
static List *
find_key(const DecodeTransform *t, const List *key, Relation relation)
{
	List	   *made = NIL;
	ListCell   *lc;

	foreach(lc, t->transform->rule->key)
	{
		int			column = transform_column(t->transform, lfirst(lc));

		if (key == NIL)
			throw_refused(t, pstrdup("The table has no key that changes are told by, so nothing says which rows they mean."),
						  "Leave out \"key\", or give the table a primary key.");
		if (column < 0 || list_member_int(made, column))
			throw_refused(t, psprintf("Its \"key\" has a column \"%s\", and the projection has %s.", (char *) lfirst(lc), column < 0 ? "none" : "it once"),
						  "Name columns that the projection makes, each once.");
		made = lappend_int(made, column);
	}
	foreach(lc, made == NIL ? key : NIL)
	{
		char	   *name = NameStr(TupleDescAttr(RelationGetDescr(relation), lfirst_int(lc) - 1)->attname);
		int			column = column_for(t, lfirst_int(lc), name);

		if (column < 0)
			throw_refused(t, psprintf("Column \"%s\" of the table's key is not in its projection.", name),
						  "Add the column to the projection, or say with \"key\" which columns tell rows apart.");
		made = lappend_int(made, column);
	}
	foreach(lc, made)
		check_key_column(t, key, lfirst_int(lc));
	check_whole_key(t, key, made, relation);
	return made;
}

/* Columns of the projection that say where a sink puts a row, a List of int; NIL: its key does. */
static List *
find_partition_key(const DecodeTransform *t, const List *key)
{
	List	   *made = NIL;
	ListCell   *lc;

	foreach(lc, t->transform->rule->partition_key)
	{
		const char *name = lfirst(lc);
		int			column = transform_column(t->transform, name);

		if (column < 0 || list_member_int(made, column))
			throw_refused(t, psprintf("Its \"partition_key\" has a column \"%s\", and the projection has %s.", name, column < 0 ? "none" : "it once"),
						  "Name columns that the projection makes, each once.");
		if (key == NIL || !is_made_of_key(t, key, column))
			throw_refused(t, psprintf("Column \"%s\" of its \"partition_key\" is not made of the table's key alone, so changes of one row could come to different places, in no order.", name),
						  "Make it of columns of the table's key, cdc_server, cdc_schema and cdc_table, with immutable functions. With REPLICA IDENTITY USING INDEX another unique index is the key.");
		made = lappend_int(made, column);
	}
	return made;
}

/* Without a key a row is told by all that it has. */
static void
check_same_for_row(const DecodeTransform *t)
{
	for (int i = 0; i < t->transform->ncolumns; i++)
	{
		if (transform_tells_change(t->transform, i))
			throw_refused(t, psprintf("The table has no key, so a row is told by all it holds, and column \"%s\" comes out differently for the same row.",
									  t->transform->columns[i].name),
						  "Leave the column out, or give the table a primary key.");
	}
}

/* Columns behind those of the projection, where deleted rows are shipped with a mark. */
typedef enum SoftColumn
{
	SOFT_DELETED,
	SOFT_DELETED_AT,
	SOFT_COLUMNS
} SoftColumn;

static const struct
{
	const char *name;
	Oid			type;
} soft_columns[SOFT_COLUMNS] = {
	[SOFT_DELETED] = {TRANSFORM_DELETED, BOOLOID},
	[SOFT_DELETED_AT] = {TRANSFORM_DELETED_AT, TIMESTAMPTZOID},
};

static int
count_columns(const DecodeTransform *t)
{
	return t->transform->ncolumns + (t->transform->rule->soft_delete ? SOFT_COLUMNS : 0);
}

/* The whole row is needed to ship it once more, and a key for the receiver to find it. */
static void
check_soft_delete(const DecodeTransform *t, const List *key, int actions)
{
	const Transform *transform = t->transform;

	if (!transform->rule->soft_delete)
		return;
	if (key == NIL)
		throw_refused(t, pstrdup("It has \"soft_delete\", and the table has no key that a row is found by."), "Give the table a primary key.");
	for (int i = 0; i < transform->ncolumns; i++)
	{
		if (!t->in_identity[i] && (actions & DECODE_DELETE) != 0)
			throw_refused(t, psprintf("It has \"soft_delete\", and the log does not have what column \"%s\" is made of when a row is deleted.", transform->columns[i].name),
						  "Run ALTER TABLE ... REPLICA IDENTITY FULL.");
		for (int k = 0; k < SOFT_COLUMNS; k++)
		{
			if (strcmp(transform->columns[i].name, soft_columns[k].name) == 0)
				throw_refused(t, psprintf("Its projection has a column \"%s\", which \"soft_delete\" adds.", soft_columns[k].name), "Give it another name with AS.");
		}
	}
}

static uint32 *
to_indexes(const List *columns)
{
	uint32	   *indexes = palloc(sizeof(uint32) * Max(list_length(columns), 1));
	ListCell   *lc;

	foreach(lc, columns)
		indexes[foreach_current_index(lc)] = (uint32) lfirst_int(lc);
	return indexes;
}

/* The entry's columns become those of the projection. */
static void
set_columns(DecodeState *state, DecodeRelation *entry, DecodeTransform *t, Relation relation, const List *key, const List *partition)
{
	const Transform *transform = t->transform;
	int			n = count_columns(t);
	TupleDesc	desc = CreateTemplateTupleDesc(n);
	CdcOutColumn *out = palloc0(sizeof(CdcOutColumn) * Max(n, 1));
	ListCell   *lc;

	entry->columns = palloc0(sizeof(DecodeColumn) * Max(n, 1));
	t->in_identity = palloc0(sizeof(bool) * Max(n, 1));
	for (int i = 0; i < transform->ncolumns; i++)
	{
		const TransformColumn *column = &transform->columns[i];
		Form_pg_attribute att;

		if (get_typtype(column->typid) == TYPTYPE_PSEUDO)
			throw_refused(t, psprintf("Column \"%s\" of its projection is of type %s.", column->name, format_type_be(column->typid)),
						  "Cast it to another type.");
		TupleDescInitEntry(desc, (AttrNumber) (i + 1), column->name, column->typid, column->typmod, 0);
		att = TupleDescAttr(desc, i);
		att->attnotnull = list_member_int(key, i) ||
			(column->from > 0 && column->from <= transform->nsource &&
			 TupleDescAttr(RelationGetDescr(relation), t->sources[column->from - 1])->attnotnull);
		decode_column_init(state, entry->context, att, &entry->columns[i], &out[i]);
		t->in_identity[i] = is_in_old_rows(t, entry, column->uses);
	}
	for (int i = transform->ncolumns; i < n; i++)
	{
		int			k = i - transform->ncolumns;

		TupleDescInitEntry(desc, (AttrNumber) (i + 1), soft_columns[k].name, soft_columns[k].type, -1, 0);
		TupleDescAttr(desc, i)->attnotnull = k == SOFT_DELETED;
		decode_column_init(state, entry->context, TupleDescAttr(desc, i), &entry->columns[i], &out[i]);
		t->in_identity[i] = true;
	}
	foreach(lc, key)
		out[lfirst_int(lc)].key_part = (uint16_t) (foreach_current_index(lc) + 1);
	entry->table->ncolumns = (uint32) n;
	entry->table->columns = out;
	entry->table->key = to_indexes(key);
	entry->table->nkey = (uint32) list_length(key);
	entry->table->partition = to_indexes(partition);
	entry->table->npartition = (uint32) list_length(partition);
	entry->cell_in_identity = t->in_identity;
}

/* Attribute numbers of what is read at all: nobody needs a right to the rest. */
static Bitmapset *
used_attributes(const DecodeTransform *t, Relation publish_as, Relation relation)
{
	const Transform *transform = t->transform;
	Bitmapset  *uses = bms_copy(transform->filter_uses);
	Bitmapset  *result = NULL;

	for (int i = 0; i < transform->ncolumns; i++)
		uses = bms_add_members(uses, transform->columns[i].uses);
	for (int i = 0; i < transform->nsource; i++)
	{
		if (bms_is_member(i + 1, uses))
			result = bms_add_member(result, publish_as == relation ? t->sources[i] + 1
									: get_attnum(RelationGetRelid(publish_as), NameStr(TupleDescAttr(transform->desc, i)->attname)));
	}
	return result;
}

bool
decode_transform_init(DecodeState *state, DecodeRelation *entry, Relation publish_as, Relation relation, List *key, int actions)
{
	char	   *schema;
	const TransformRule *rule;
	DecodeTransform *t;
	TupleDesc	desc;
	List	   *made;

	if (state->options.transforms == NIL)
		return false;
	schema = get_namespace_name(RelationGetNamespace(publish_as));
	rule = transform_rule_find(state->options.transforms, schema, RelationGetRelationName(publish_as));
	if (rule == NULL || (rule->projection == NULL && rule->filter == NULL && rule->key == NIL && rule->partition_key == NIL && !rule->soft_delete))
		return false;

	t = palloc0(sizeof(DecodeTransform));
	t->schema = schema;
	t->name = pstrdup(RelationGetRelationName(publish_as));
	t->server = state->options.format_options.server_name != NULL ? pstrdup(state->options.format_options.server_name)
		: get_database_name(MyDatabaseId);
	t->is_parallel_safe = true;
	desc = make_row_type(t, entry, publish_as, relation);
	t->transform = transform_compile(rule, desc, (int) entry->table->ncolumns);
	for (int i = 0; i < t->transform->ncolumns; i++)
	{
		const TransformColumn *column = &t->transform->columns[i];

		/* to what it is: collations are assigned, and a literal gets a type */
		if (!transform_coerce(t->transform, i, column->typid, column->typmod))
			elog(ERROR, "type %u cannot be coerced to itself", column->typid);
		check_functions(t, column->expr, psprintf("Column \"%s\" of its projection", column->name));
	}
	check_filter(t, entry, actions);
	made = find_key(t, key, relation);
	if (key == NIL && entry->has_identity)
		check_same_for_row(t);
	set_columns(state, entry, t, relation, made, find_partition_key(t, key));
	check_soft_delete(t, made, actions);
	entry->shipped = used_attributes(t, publish_as, relation);
	if (entry->estate == NULL)
		entry->estate = CreateExecutorState();
	t->state = transform_start(t->transform, entry->estate);
	for (int i = 0; i < 2; i++)
		t->slots[i] = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	entry->transform = t;
	return true;
}

bool
decode_transform_is_parallel_safe(const DecodeRelation *entry)
{
	return entry->transform == NULL || entry->transform->is_parallel_safe;
}

int
decode_transform_source(const DecodeRelation *entry, int column)
{
	const DecodeTransform *t = entry->transform;
	int			from = column < t->transform->ncolumns ? t->transform->columns[column].from : 0;

	return from > 0 && from <= t->transform->nsource ? t->sources[from - 1] : -1;
}

/* ------------------------------------------------------------------------ running */

static bool
is_unknown(const DecodeTransform *t, const DecodeRow *row, int source)
{
	return row->unchanged != NULL && row->unchanged[t->sources[source]];
}

/* A source column that an expression uses and that nobody knows, as an update did not touch it; -1: none. */
static int
unknown_of(const DecodeTransform *t, const DecodeRow *row, const Bitmapset *uses)
{
	int			attnum = -1;

	while (row->unchanged != NULL && (attnum = bms_next_member(uses, attnum)) >= 0)
	{
		if (attnum <= t->transform->nsource && is_unknown(t, row, attnum - 1))
			return attnum - 1;
	}
	return -1;
}

bool
decode_transform_lacks(const DecodeRelation *entry, const DecodeRow *row)
{
	const DecodeTransform *t = entry->transform;

	for (int i = 0; i < t->transform->ncolumns; i++)
	{
		if (unknown_of(t, row, t->transform->columns[i].uses) >= 0)
			return true;
	}
	return false;
}

static void
set_row(DecodeTransform *t, int which, const DecodeRow *row)
{
	TupleTableSlot *slot = t->slots[which];

	ExecClearTuple(slot);
	for (int i = 0; i < t->transform->nsource; i++)
	{
		slot->tts_isnull[i] = row->nulls[t->sources[i]] || is_unknown(t, row, i);
		slot->tts_values[i] = slot->tts_isnull[i] ? (Datum) 0 : row->values[t->sources[i]];
	}
	for (int i = 0; i < TRANSFORM_METAS; i++)
		slot->tts_isnull[t->transform->nsource + i] = true;
	ExecStoreVirtualTuple(slot);
	transform_begin(t->state, which, slot);
}

static void
set_meta(DecodeTransform *t, int which, TransformMeta meta, Datum value)
{
	TupleTableSlot *slot = t->slots[which];
	int			at = t->transform->nsource + (int) meta;

	slot->tts_values[at] = value;
	slot->tts_isnull[at] = false;
}

/* What is known of the row and its change. */
static void
set_metadata(DecodeTransform *t, int which, CdcOutOp op, const CdcOutTxn *txn)
{
	static const char *const words[] = {[CDC_OUT_INSERT] = "insert",[CDC_OUT_UPDATE] = "update",[CDC_OUT_DELETE] = "delete",[CDC_OUT_READ] = "copy"};

	set_meta(t, which, TRANSFORM_SERVER, CStringGetTextDatum(t->server));
	set_meta(t, which, TRANSFORM_SCHEMA, CStringGetTextDatum(t->schema));
	set_meta(t, which, TRANSFORM_TABLE, CStringGetTextDatum(t->name));
	set_meta(t, which, TRANSFORM_OPERATION, CStringGetTextDatum(words[op]));
	if (txn == NULL || txn->commit_lsn == 0)
		return;
	set_meta(t, which, TRANSFORM_COMMIT_TIME, TimestampTzGetDatum(txn->time_us - UNIX_TO_POSTGRES_US));
	set_meta(t, which, TRANSFORM_POSITION, CStringGetTextDatum(psprintf("%X/%X", LSN_FORMAT_ARGS(txn->commit_lsn))));
}

/*
 * An expression threw. What PostgreSQL says of it may have values in it, which are for no log; what is not about values goes on
 * as it is. column: -1 for the filter.
 */
static _Noreturn void
throw_of_expression(const DecodeTransform *t, int column, MemoryContext context)
{
	UtilErrorInfo *info = util_error_info_of_data(context);

	ereport(ERROR,
			(errcode(info->sqlstate),
			 column < 0 ? errmsg("the filter of table %s cannot be evaluated: %s", table_text(t), info->message)
			 : errmsg("column \"%s\" of the projection of table %s cannot be computed: %s", t->transform->columns[column].name, table_text(t), info->message),
			 info->detail ? errdetail_internal("%s", info->detail) : 0,
			 errhint("Correct member %d of option \"%s\", or the row.", t->transform->rule->number, TRANSFORM_OPTION)));
}

/* DecodeHolds */
bool
decode_transform_holds(DecodeRelation *entry, CdcOutOp op, const DecodeRow *row)
{
	DecodeTransform *t = entry->transform;
	MemoryContext context = CurrentMemoryContext;
	volatile bool result = true;

	if (t->transform->filter == NULL)
		return true;
	set_row(t, NEW_ROW, row);
	set_metadata(t, NEW_ROW, op, NULL);
	if (t->needs_snapshot)
		PushActiveSnapshot(GetTransactionSnapshot());
	PG_TRY();
	{
		result = transform_passes(t->state, NEW_ROW);
	}
	PG_CATCH();
	{
		throw_of_expression(t, -1, context);
	}
	PG_END_TRY();
	if (t->needs_snapshot)
		PopActiveSnapshot();
	return result;
}

static _Noreturn void
throw_unknown(const DecodeTransform *t, int column, int source)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("column \"%s\" of the projection of table %s cannot be computed", t->transform->columns[column].name, table_text(t)),
			 errdetail("It is made of column \"%s\", and its large value was not touched by the update and is not in the log.",
					   NameStr(TupleDescAttr(t->transform->desc, source)->attname)),
			 errhint("Run ALTER TABLE %s REPLICA IDENTITY FULL, or let the projection pass the column through.", table_text(t))));
}

CdcCell *
decode_transform_cells(const DecodeRelation *entry, const DecodeRow *row, bool is_old, CdcOutOp op, const CdcOutTxn *txn)
{
	DecodeTransform *t = entry->transform;
	MemoryContext context = CurrentMemoryContext;
	int			which = is_old ? OLD_ROW : NEW_ROW;
	int			n = t->transform->ncolumns;
	int			all = count_columns(t);
	DecodeRow	made = {
		.values = palloc0(sizeof(Datum) * Max(all, 1)),
		.nulls = palloc0(sizeof(bool) * Max(all, 1)),
		.unchanged = palloc0(sizeof(bool) * Max(all, 1))
	};
	volatile int at = 0;

	set_row(t, which, row);
	set_metadata(t, which, op, txn);
	if (t->needs_snapshot)
		PushActiveSnapshot(GetTransactionSnapshot());
	for (; at < n; at++)
	{
		const TransformColumn *column = &t->transform->columns[at];
		int			unknown;

		if (is_old && !t->in_identity[at])
			continue;
		unknown = unknown_of(t, row, column->uses);
		if (unknown >= 0 && column->from == 0)
			throw_unknown(t, at, unknown);
		made.unchanged[at] = unknown >= 0;
	}
	PG_TRY();
	{
		for (at = 0; at < n; at++)
		{
			if (!made.unchanged[at] && (!is_old || t->in_identity[at]))
				made.values[at] = transform_value(t->state, which, at, &made.nulls[at]);
		}
	}
	PG_CATCH();
	{
		throw_of_expression(t, at, context);
	}
	PG_END_TRY();
	if (t->needs_snapshot)
		PopActiveSnapshot();
	if (all > n)
		made.nulls[n + SOFT_DELETED_AT] = true; /* and it is not deleted: false */
	return decode_row_cells(entry, &made, is_old);
}

bool
decode_transform_marks_deletes(const DecodeRelation *entry)
{
	return entry->transform != NULL && entry->transform->transform->rule->soft_delete;
}

CdcCell *
decode_transform_mark_deleted(const DecodeRelation *entry, const CdcCell *row, const CdcOutTxn *txn)
{
	int			n = entry->transform->transform->ncolumns;
	CdcCell    *cells = palloc(sizeof(CdcCell) * (Size) entry->table->ncolumns);

	memcpy(cells, row, sizeof(CdcCell) * (Size) entry->table->ncolumns);
	cells[n + SOFT_DELETED].v.i = 1;
	if (txn->commit_lsn != 0)
	{
		cells[n + SOFT_DELETED_AT].kind = CDC_CELL_MICROS;
		cells[n + SOFT_DELETED_AT].v.i = txn->time_us - UNIX_TO_POSTGRES_US;
	}
	return cells;
}

/* ------------------------------------------------------------------------ letters */

static void
push_text(JsonbParseState **state, JsonbIteratorToken token, const char *text)
{
	JsonbValue	value = {.type = jbvString};

	value.val.string.val = unconstify(char *, text);
	value.val.string.len = (int) strlen(text);
	(void) pushJsonbValue(state, token, &value);
}

Datum
decode_transform_image(const DecodeRelation *entry, const DecodeRow *row, bool is_old)
{
	const DecodeTransform *t = entry->transform;
	JsonbParseState *state = NULL;

	(void) pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	for (int i = 0; i < t->transform->nsource; i++)
	{
		Form_pg_attribute att = TupleDescAttr(t->transform->desc, i);
		JsonbValue	null = {.type = jbvNull};
		Oid			output;
		bool		is_varlena;

		if (is_unknown(t, row, i) || (is_old && !entry->in_identity[t->sources[i]]))
			continue;
		push_text(&state, WJB_KEY, NameStr(att->attname));
		if (row->nulls[t->sources[i]])
		{
			(void) pushJsonbValue(&state, WJB_VALUE, &null);
			continue;
		}
		getTypeOutputInfo(att->atttypid, &output, &is_varlena);
		push_text(&state, WJB_VALUE, OidOutputFunctionCall(output, row->values[t->sources[i]]));
	}
	return JsonbPGetDatum(JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL)));
}

void
decode_transform_name(const DecodeRelation *entry, const char **schema, const char **name)
{
	*schema = entry->transform->schema;
	*name = entry->transform->name;
}
