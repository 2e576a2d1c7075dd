/*-------------------------------------------------------------------------
 *
 * verify_sql.c
 *	  Targets that only SQL can read: foreign tables, views, partitioned tables
 *	  with foreign leaves.
 *
 * NOTES
 *	  Rows are not looked up one by one, which would be a round trip each. Before
 *	  some rows are compared, those with their keys are fetched by one SELECT that joins
 *	  the keys with the target; joins other than nested loops are off while it is
 *	  planned (as in heap_sql.c), so a foreign server is asked for the keys and not
 *	  for the whole table. verify_sql_find then looks among what was fetched.
 *
 *	  All keys of the target are read in pages in its own order of the key, each with a
 *	  snapshot of its own.
 *
 *	  Such a target need not have a primary key. Several rows with one key are told as extra, and a
 *	  null in the key is an error of the table.
 *
 *	  What stands behind a view belongs to its owner: as for writing, statements
 *	  run as the target's owner, in a security-restricted operation.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_inherits.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/queryenvironment.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"
#include "utils/typcache.h"

#include "compat/pg_compat.h"
#include "util/util_wait.h"
#include "verify/verify_private.h"

/* Name of the keys in the statement that fetches rows, and their memory before they go to disk. */
#define KEYS "cdc_keys"
#define KEYS_KB 16384

/* Keys that one step reads. */
#define SCAN_ROWS 20000

typedef struct SqlRow
{
	uint64		hash;			/* of its key */
	HeapTuple	tuple;
} SqlRow;

struct VerifySql
{
	Oid			read_as;
	char	   *name;			/* of the target, qualified */
	int			ncolumns;		/* that the source has too */
	AttrNumber *attnums;
	char	   *columns;		/* "t.a, t.b" */
	TupleDesc	keys;			/* of the key */

	/* fetched */
	MemoryContext rows_cxt;
	TupleDesc	desc;
	SqlRow	   *rows;			/* by hash */
	int			nrows;
};

bool
verify_sql_is_needed(Relation rel)
{
	ListCell   *lc;

	if (rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		return rel->rd_rel->relkind == RELKIND_FOREIGN_TABLE || rel->rd_rel->relkind == RELKIND_VIEW;
	foreach(lc, find_all_inheritors(RelationGetRelid(rel), AccessShareLock, NULL))
	{
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_FOREIGN_TABLE)
			return true;
	}
	return false;
}

static const char *
column_name(const VerifyTarget *target, AttrNumber attnum)
{
	return quote_identifier(NameStr(TupleDescAttr(RelationGetDescr(target->rel), attnum - 1)->attname));
}

static char *
target_name(Relation rel)
{
	return quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)), RelationGetRelationName(rel));
}

/* The columns of the source's key are that of the target. */
static void
open_key(const VerifyWork *work, VerifyTarget *target)
{
	TupleDesc	desc = RelationGetDescr(target->rel);

	target->nkey = work->nkey;
	target->key_attnums = palloc(sizeof(AttrNumber) * target->nkey);
	target->key_columns = palloc(sizeof(int) * target->nkey);
	target->keys = palloc0(sizeof(ScanKeyData) * target->nkey);
	target->sql->keys = CreateTemplateTupleDesc(target->nkey);
	for (int i = 0; i < target->nkey; i++)
	{
		AttrNumber	attnum = target->table->columns[work->key[i]].attnum;
		Form_pg_attribute attr;
		TypeCacheEntry *type;

		if (attnum <= 0)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("table \"%s\" lacks a column of the source's key", RelationGetRelationName(target->rel))));
		attr = TupleDescAttr(desc, attnum - 1);
		type = lookup_type_cache(attr->atttypid, TYPECACHE_EQ_OPR);
		if (!OidIsValid(type->eq_opr))
			elog(ERROR, "type %u has no equality operator", attr->atttypid);
		target->key_attnums[i] = attnum;
		target->key_columns[i] = work->key[i];
		ScanKeyEntryInitialize(&target->keys[i], 0, i + 1, BTEqualStrategyNumber, InvalidOid, attr->attcollation,
							   get_opcode(type->eq_opr), (Datum) 0);
		TupleDescInitEntry(target->sql->keys, i + 1, psprintf("k%d", i + 1), attr->atttypid, attr->atttypmod, 0);
		TupleDescInitEntryCollation(target->sql->keys, i + 1, attr->attcollation);
	}
}

/* The role to read as: the owner, whom we may become. */
static Oid
reader_of(Relation rel)
{
	Oid			owner = rel->rd_rel->relowner;

	if (owner != GetUserId() && !cdc_role_can_set_role(GetUserId(), owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("role \"%s\" cannot SET ROLE to \"%s\"",
						GetUserNameFromId(GetUserId(), false), GetUserNameFromId(owner, false)),
				 errdetail("Rows of \"%s\" are read as its owner, because what stands behind it belongs to that role.",
						   RelationGetRelationName(rel)),
				 errhint("Run GRANT %s TO %s.", quote_identifier(GetUserNameFromId(owner, false)),
						 quote_identifier(GetUserNameFromId(GetUserId(), false)))));
	return owner;
}

void
verify_sql_open(const VerifyWork *work, VerifyTarget *target)
{
	VerifySql  *sql = palloc0(sizeof(VerifySql));
	StringInfoData columns;

	target->sql = sql;
	sql->read_as = reader_of(target->rel);
	sql->name = target_name(target->rel);
	open_key(work, target);

	initStringInfo(&columns);
	sql->attnums = palloc(sizeof(AttrNumber) * Max(target->table->ncolumns, 1));
	for (int i = 0; i < target->table->ncolumns; i++)
	{
		AttrNumber	attnum = target->table->columns[i].attnum;

		if (attnum <= 0)
			continue;
		appendStringInfo(&columns, "%st.%s", columns.len > 0 ? ", " : "", column_name(target, attnum));
		sql->attnums[sql->ncolumns++] = attnum;
	}
	sql->columns = columns.data;
	sql->rows_cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc verify rows", ALLOCSET_DEFAULT_SIZES);
	target->converted = MakeSingleTupleTableSlot(RelationGetDescr(target->rel), &TTSOpsVirtual);
	target->slot = target->stored = target->converted;
}

/* ------------------------------------------------------------------- statements */

typedef struct SqlState
{
	Oid			userid;
	int			sec_context;
	int			guc_level;
} SqlState;

/* Become the role that reads, connect to SPI, and keep the planner to nested loops. */
static void
enter(Oid read_as, SqlState *state)
{
	GetUserIdAndSecContext(&state->userid, &state->sec_context);
	if (read_as != state->userid)
		SetUserIdAndSecContext(read_as, state->sec_context | SECURITY_RESTRICTED_OPERATION);
	state->guc_level = NewGUCNestLevel();
	(void) set_config_option("enable_hashjoin", "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("enable_mergejoin", "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	SPI_connect();
}

/* Not called after an error: ending the transaction restores role and settings. */
static void
leave(const SqlState *state)
{
	SPI_finish();
	AtEOXact_GUC(false, state->guc_level);
	SetUserIdAndSecContext(state->userid, state->sec_context);
}

/* With the active snapshot. */
static void
run_select(const char *query, int nargs, Oid *types, Datum *values)
{
	int			rc = SPI_execute_with_args(query, nargs, types, values, NULL, true, 0);

	if (rc != SPI_OK_SELECT)
		elog(ERROR, "SPI_execute_with_args failed: %s", SPI_result_code_string(rc));
}

static int
compare_rows(const void *a, const void *b)
{
	uint64		x = ((const SqlRow *) a)->hash;
	uint64		y = ((const SqlRow *) b)->hash;

	return x < y ? -1 : x > y ? 1 : 0;
}

/* Values of a tuple with that list of attributes become the target's row. */
static void
show_tuple(VerifyTarget *target, HeapTuple tuple, TupleDesc desc, const AttrNumber *attnums, int n)
{
	TupleTableSlot *slot = target->converted;

	ExecClearTuple(slot);
	memset(slot->tts_isnull, true, sizeof(bool) * slot->tts_tupleDescriptor->natts);
	memset(slot->tts_values, 0, sizeof(Datum) * slot->tts_tupleDescriptor->natts);
	for (int i = 0; i < n; i++)
		slot->tts_values[attnums[i] - 1] = heap_getattr(tuple, i + 1, desc, &slot->tts_isnull[attnums[i] - 1]);
	ExecStoreVirtualTuple(slot);
	target->slot = target->stored = slot;
}

static char *
fetch_statement(const VerifyTarget *target)
{
	StringInfoData query;

	initStringInfo(&query);
	appendStringInfo(&query, "SELECT %s FROM " KEYS " k, %s t WHERE ", target->sql->columns, target->sql->name);
	for (int i = 0; i < target->nkey; i++)
		appendStringInfo(&query, "%st.%s = k.k%d", i > 0 ? " AND " : "", column_name(target, target->key_attnums[i]), i + 1);
	return query.data;
}

void
verify_sql_fetch(VerifyTarget *target, Datum *const *keys, int nkeys)
{
	VerifySql  *sql = target->sql;
	MemoryContext old = MemoryContextSwitchTo(target->cxt);
	Tuplestorestate *store = tuplestore_begin_heap(false, false, KEYS_KB);
	EphemeralNamedRelation enr = palloc0(sizeof(EphemeralNamedRelationData));
	bool	   *nulls = palloc0(sizeof(bool) * target->nkey);
	char	   *query = fetch_statement(target);
	SqlState	state;
	int			rc;

	for (int i = 0; i < nkeys; i++)
		tuplestore_putvalues(store, sql->keys, keys[i], nulls);
	MemoryContextReset(sql->rows_cxt);
	sql->nrows = 0;

	enter(sql->read_as, &state);
	enr->md.name = pstrdup(KEYS);
	enr->md.reliddesc = InvalidOid;
	enr->md.tupdesc = sql->keys;
	enr->md.enrtype = ENR_NAMED_TUPLESTORE;
	enr->md.enrtuples = nkeys;
	enr->reldata = store;
	rc = SPI_register_relation(enr);
	if (rc != SPI_OK_REL_REGISTER)
		elog(ERROR, "SPI_register_relation failed: %s", SPI_result_code_string(rc));
	run_select(query, 0, NULL, NULL);

	MemoryContextSwitchTo(sql->rows_cxt);
	sql->desc = CreateTupleDescCopy(SPI_tuptable->tupdesc);
	sql->rows = MemoryContextAllocHuge(sql->rows_cxt, sizeof(SqlRow) * Max(SPI_processed, 1));
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		SqlRow	   *row = &sql->rows[sql->nrows++];

		row->tuple = heap_copytuple(SPI_tuptable->vals[i]);
		show_tuple(target, row->tuple, sql->desc, sql->attnums, sql->ncolumns);
		row->hash = verify_target_hash_slot(target);
	}
	leave(&state);
	qsort(sql->rows, sql->nrows, sizeof(SqlRow), compare_rows);
	MemoryContextSwitchTo(old);
	tuplestore_end(store);
}

int
verify_sql_find(VerifyTarget *target, const Datum *key)
{
	VerifySql  *sql = target->sql;
	SqlRow		wanted = {.hash = verify_target_hash_key(target, key)};
	SqlRow	   *row = sql->nrows == 0 ? NULL
		: bsearch(&wanted, sql->rows, sql->nrows, sizeof(SqlRow), compare_rows);
	int			found = 0;

	if (row == NULL)
		return 0;
	while (row > sql->rows && row[-1].hash == wanted.hash)
		row--;
	show_tuple(target, row->tuple, sql->desc, sql->attnums, sql->ncolumns);
	for (; row < sql->rows + sql->nrows && row->hash == wanted.hash; row++)
		found++;
	return found;
}

/* "a, b" */
static void
append_key(StringInfo query, const VerifyTarget *target)
{
	for (int i = 0; i < target->nkey; i++)
		appendStringInfo(query, "%s%s", i > 0 ? ", " : "", column_name(target, target->key_attnums[i]));
}

/* Rows with a null in the key are in no page. */
static void
check_nulls(const VerifyTarget *target)
{
	StringInfoData query;

	initStringInfo(&query);
	appendStringInfo(&query, "SELECT FROM %s WHERE ", target->sql->name);
	for (int i = 0; i < target->nkey; i++)
		appendStringInfo(&query, "%s%s IS NULL", i > 0 ? " OR " : "", column_name(target, target->key_attnums[i]));
	appendStringInfoString(&query, " LIMIT 1");
	run_select(query.data, 0, NULL, NULL);
	if (SPI_processed > 0)
		ereport(ERROR,
				(errcode(ERRCODE_NOT_NULL_VIOLATION),
				 errmsg("null value in the key of table \"%s\"", RelationGetRelationName(target->rel))));
}

bool
verify_sql_scan(VerifyTarget *target, Datum *const after, void (*each) (VerifyTarget *target, void *arg), void *arg)
{
	VerifySql  *sql = target->sql;
	MemoryContext old = MemoryContextSwitchTo(target->cxt);
	MemoryContext row_cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc verify row", ALLOCSET_DEFAULT_SIZES);
	Oid		   *types = palloc(sizeof(Oid) * target->nkey);
	StringInfoData query;
	SqlState	state;
	bool		at_end;

	initStringInfo(&query);
	appendStringInfoString(&query, "SELECT ");
	append_key(&query, target);
	appendStringInfo(&query, " FROM %s", sql->name);
	if (after != NULL)
	{
		appendStringInfoString(&query, " WHERE (");
		append_key(&query, target);
		appendStringInfoString(&query, ") > (");
		for (int i = 0; i < target->nkey; i++)
		{
			types[i] = TupleDescAttr(sql->keys, i)->atttypid;
			appendStringInfo(&query, "%s$%d", i > 0 ? ", " : "", i + 1);
		}
		appendStringInfoChar(&query, ')');
	}
	appendStringInfoString(&query, " ORDER BY ");
	append_key(&query, target);
	appendStringInfo(&query, " LIMIT %d", SCAN_ROWS);

	enter(sql->read_as, &state);
	if (after == NULL)
		check_nulls(target);
	run_select(query.data, after != NULL ? target->nkey : 0, types, after);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		util_check_interrupts();
		show_tuple(target, SPI_tuptable->vals[i], SPI_tuptable->tupdesc, target->key_attnums, target->nkey);
		MemoryContextReset(row_cxt);
		MemoryContextSwitchTo(row_cxt);
		each(target, arg);
	}
	at_end = SPI_processed < SCAN_ROWS;
	MemoryContextSwitchTo(old);
	ExecClearTuple(target->converted);
	leave(&state);
	MemoryContextDelete(row_cxt);
	return at_end;
}

int64
verify_sql_count(Relation rel)
{
	SqlState	state;
	bool		is_null;
	int64		count;

	enter(reader_of(rel), &state);
	run_select(psprintf("SELECT pg_catalog.count(*) FROM %s", target_name(rel)), 0, NULL, NULL);
	count = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null));
	leave(&state);
	return count;
}
