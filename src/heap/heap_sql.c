/*-------------------------------------------------------------------------
 *
 * heap_sql.c
 *	  Targets that only SQL can write to.
 *
 * NOTES
 *	  The statements join a tuplestore of some thousand rows with a target of any
 *	  size. The planner knows nothing of a foreign table and would rather fetch
 *	  all of it and hash; so joins other than nested loops are off while it plans,
 *	  and each row of the tuplestore asks for its key.
 *
 *	  Statements are planned anew for each batch: a plan costs as much as a few
 *	  rows, and what it was made for may have changed.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/queryenvironment.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "heap/heap_private.h"
#include "heap/heap_sql.h"
#include "util/util_spi.h"

/* Names of the tuplestores in the statements. */
#define GONE "cdc_gone"
#define ROWS "cdc_rows"

/* Memory of each tuplestore before it goes to disk. */
#define STORE_KB 16384

struct HeapSql
{
	TupleDesc	desc;			/* of the tuplestores: the target's */
	Tuplestorestate *gone;
	Tuplestorestate *rows;
	int64		ngone;
	int64		nrows;
};

static HeapSql *
sql_of(HeapTarget *target)
{
	HeapTargetState *state = (HeapTargetState *) target;
	MemoryContext old;

	if (state->sql == NULL)
	{
		old = MemoryContextSwitchTo(target->estate->es_query_cxt);
		state->sql = palloc0(sizeof(HeapSql));
		state->sql->desc = CreateTupleDescCopy(RelationGetDescr(target->rel));
		MemoryContextSwitchTo(old);
	}
	return state->sql;
}

void
heap_sql_begin(HeapTarget *target)
{
	HeapSql    *sql = sql_of(target);
	MemoryContext old = MemoryContextSwitchTo(target->estate->es_query_cxt);

	sql->gone = tuplestore_begin_heap(false, false, STORE_KB);
	sql->rows = tuplestore_begin_heap(false, false, STORE_KB);
	sql->ngone = sql->nrows = 0;
	MemoryContextSwitchTo(old);
}

void
heap_sql_gone(HeapTarget *target)
{
	HeapSql    *sql = sql_of(target);

	tuplestore_putvalues(sql->gone, sql->desc, target->search->tts_values, target->search->tts_isnull);
	sql->ngone++;
}

void
heap_sql_put(HeapTarget *target)
{
	HeapSql    *sql = sql_of(target);

	tuplestore_putvalues(sql->rows, sql->desc, target->slot->tts_values, target->slot->tts_isnull);
	sql->nrows++;
}

void
heap_sql_put_tuple(HeapTarget *target, HeapTuple tuple)
{
	HeapSql    *sql = sql_of(target);

	tuplestore_puttuple(sql->rows, tuple);
	sql->nrows++;
}

/* --------------------------------------------------------------------------- statements */

static char *
target_name(const HeapTarget *target)
{
	return quote_qualified_identifier(get_namespace_name(RelationGetNamespace(target->rel)),
									  RelationGetRelationName(target->rel));
}

static const char *
column_name(const HeapTarget *target, int i)
{
	return quote_identifier(NameStr(TupleDescAttr(RelationGetDescr(target->rel), i)->attname));
}

static bool
is_key(const HeapTarget *target, int i)
{
	for (int j = 0; j < target->nkey; j++)
	{
		if (target->key_attnums[j] == i + 1)
			return true;
	}
	return false;
}

static bool
is_given(const HeapTarget *target, int i)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(target->rel), i);

	return !att->attisdropped && !att->attgenerated && (target->given == NULL || target->given[i]);
}

/* "t.k = s.k AND ..." */
static void
append_same_key(StringInfo query, const HeapTarget *target)
{
	for (int i = 0; i < target->nkey; i++)
	{
		const char *name = column_name(target, target->key_attnums[i] - 1);

		appendStringInfo(query, "%st.%s = s.%s", i > 0 ? " AND " : "", name, name);
	}
}

static char *
delete_statement(const HeapTarget *target)
{
	StringInfoData query;

	initStringInfo(&query);
	appendStringInfo(&query, "DELETE FROM %s t USING " GONE " s WHERE ", target_name(target));
	append_same_key(&query, target);
	return query.data;
}

/* NULL when the target has nothing but its key. */
static char *
update_statement(const HeapTarget *target)
{
	StringInfoData query;
	bool		any = false;

	initStringInfo(&query);
	appendStringInfo(&query, "UPDATE %s t SET ", target_name(target));
	for (int i = 0; i < RelationGetDescr(target->rel)->natts; i++)
	{
		if (!is_given(target, i) || is_key(target, i))
			continue;
		appendStringInfo(&query, "%s%s = s.%s", any ? ", " : "", column_name(target, i), column_name(target, i));
		any = true;
	}
	appendStringInfoString(&query, " FROM " ROWS " s WHERE ");
	append_same_key(&query, target);
	return any ? query.data : NULL;
}

static char *
insert_statement(const HeapTarget *target)
{
	StringInfoData query;
	StringInfoData columns;

	initStringInfo(&columns);
	for (int i = 0; i < RelationGetDescr(target->rel)->natts; i++)
	{
		if (is_given(target, i))
			appendStringInfo(&columns, "%s%s", columns.len > 0 ? ", " : "", column_name(target, i));
	}
	initStringInfo(&query);
	appendStringInfo(&query, "INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM " ROWS " s WHERE NOT EXISTS (SELECT FROM %s t WHERE ",
					 target_name(target), columns.data, columns.data, target_name(target));
	append_same_key(&query, target);
	appendStringInfoChar(&query, ')');
	return query.data;
}

/* A select list that gives a row of the target's type; what nobody can ask for is null. */
static char *
whole_row(const HeapTarget *target)
{
	TupleDesc	desc = RelationGetDescr(target->rel);
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < desc->natts; i++)
	{
		if (TupleDescAttr(desc, i)->attisdropped)
			appendStringInfo(&list, "%sNULL::integer", i > 0 ? ", " : "");
		else
			appendStringInfo(&list, "%st.%s", i > 0 ? ", " : "", column_name(target, i));
	}
	return list.data;
}

/* ---------------------------------------------------------------------------- execution */

static void
register_store(const HeapSql *sql, const char *name, Tuplestorestate *store, int64 rows)
{
	EphemeralNamedRelation enr = palloc0(sizeof(EphemeralNamedRelationData));
	int			rc;

	enr->md.name = pstrdup(name);
	enr->md.reliddesc = InvalidOid;
	enr->md.tupdesc = sql->desc;
	enr->md.enrtype = ENR_NAMED_TUPLESTORE;
	enr->md.enrtuples = (double) rows;
	enr->reldata = store;
	rc = SPI_register_relation(enr);
	if (rc != SPI_OK_REL_REGISTER)
		elog(ERROR, "SPI_register_relation failed: %s", SPI_result_code_string(rc));
}

/* Become the role that writes, connect to SPI, and keep the planner to nested loops. */
static int
enter(const HeapTarget *target, UtilRoleSwitch *sw)
{
	int			level;

	PushActiveSnapshot(GetTransactionSnapshot());
	util_role_switch_begin(target->write_as, sw);
	level = NewGUCNestLevel();
	(void) set_config_option("enable_hashjoin", "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("enable_mergejoin", "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	SPI_connect();
	return level;
}

static void
leave(UtilRoleSwitch *sw, int level)
{
	SPI_finish();
	AtEOXact_GUC(false, level);
	util_role_switch_end(sw);
	PopActiveSnapshot();
	CommandCounterIncrement();
}

void
heap_sql_end(HeapTarget *target, bool insert_only)
{
	HeapSql    *sql = sql_of(target);
	UtilRoleSwitch sw;
	int			level = enter(target, &sw);

	if (sql->ngone > 0)
	{
		register_store(sql, GONE, sql->gone, sql->ngone);
		util_spi_run(delete_statement(target));
	}
	if (sql->nrows > 0)
	{
		char	   *update = insert_only ? NULL : update_statement(target);

		register_store(sql, ROWS, sql->rows, sql->nrows);
		if (update != NULL)
			util_spi_run(update);
		util_spi_run(insert_statement(target));
	}
	leave(&sw, level);
	tuplestore_end(sql->gone);
	tuplestore_end(sql->rows);
	sql->gone = sql->rows = NULL;
}

/* Ask for the row with the key in target->search, between enter and leave. */
static bool
select_by_key(HeapTarget *target, const char *columns)
{
	HeapSql    *sql = sql_of(target);
	StringInfoData query;

	initStringInfo(&query);
	appendStringInfo(&query, "SELECT %s FROM %s t, " GONE " s WHERE ", columns, target_name(target));
	append_same_key(&query, target);
	register_store(sql, GONE, sql->gone, 1);
	util_spi_run(query.data);
	return SPI_processed > 0;
}

/* Begin and end of what asks for one key. */
static int
enter_key(HeapTarget *target, UtilRoleSwitch *sw)
{
	heap_sql_begin(target);
	heap_sql_gone(target);
	return enter(target, sw);
}

static void
leave_key(HeapTarget *target, UtilRoleSwitch *sw, int level)
{
	HeapSql    *sql = sql_of(target);

	leave(sw, level);
	tuplestore_end(sql->gone);
	tuplestore_end(sql->rows);
	sql->gone = sql->rows = NULL;
}

bool
heap_sql_exists(HeapTarget *target)
{
	UtilRoleSwitch sw;
	int			level = enter_key(target, &sw);
	bool		found = select_by_key(target, "");

	leave_key(target, &sw, level);
	return found;
}

bool
heap_sql_read(HeapTarget *target)
{
	MemoryContext caller = CurrentMemoryContext;
	TupleTableSlot *stored = heap_target_stored(target);
	UtilRoleSwitch sw;
	int			level = enter_key(target, &sw);
	bool		found = select_by_key(target, whole_row(target));

	if (found)
	{
		MemoryContext old = MemoryContextSwitchTo(caller);
		TupleTableSlot *row = MakeSingleTupleTableSlot(RelationGetDescr(target->rel), &TTSOpsVirtual);

		ExecClearTuple(row);
		heap_deform_tuple(SPI_tuptable->vals[0], RelationGetDescr(target->rel), row->tts_values, row->tts_isnull);
		ExecStoreVirtualTuple(row);
		heap_own_row(row, stored);
		ExecDropSingleTupleTableSlot(row);
		MemoryContextSwitchTo(old);
	}
	leave_key(target, &sw, level);
	return found;
}

bool
heap_sql_has_rows(HeapTarget *target)
{
	UtilRoleSwitch sw;
	bool		found;
	int			level = enter(target, &sw);

	util_spi_run(psprintf("SELECT FROM %s LIMIT 1", target_name(target)));
	found = SPI_processed > 0;
	leave(&sw, level);
	return found;
}
