/*-------------------------------------------------------------------------
 *
 * heap_row.c
 *	  Rows of one source table on their way into its target: cells -> slots.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "replication/origin.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "heap/heap_row.h"
#include "transform/transform_kind.h"
#include "util/util_error.h"
#include "util/util_name.h"
#include "util/util_role.h"

/* The target has no index to tell its key. */
static void
set_key(HeapRow *row, int nkey, const AttrNumber *attnums)
{
	if (nkey > INDEX_MAX_KEYS)
		ereport(ERROR,
				(errcode(ERRCODE_TOO_MANY_COLUMNS),
				 errmsg("key of table \"%s\" has more than %d columns",
						RelationGetRelationName(row->target->rel), INDEX_MAX_KEYS)));
	heap_target_set_key(row->target, nkey, attnums);
}

/* Map the source's columns to the target's. */
static void
open_plain(HeapRow *row, const CdcTableDef *def, const SchemaPolicies *policies)
{
	HeapTarget *target = row->target;
	MemoryContext cxt = target->estate->es_query_cxt;
	bool	   *given;

	row->fresh = target->slot;
	row->old = target->search;
	row->table = schema_table_open(def, target->rel, policies, cxt);

	given = MemoryContextAllocZero(cxt, sizeof(bool) * row->table->natts);
	for (int i = 0; i < row->table->ncolumns; i++)
	{
		const SchemaColumn *column = &row->table->columns[i];

		if (column->attnum <= 0)
			continue;
		given[column->attnum - 1] = true;
		row->needs_snapshot |= OidIsValid(column->domain) || column->typid >= FirstNormalObjectId;
	}
	heap_target_set_given(target, given);
	if (target->tier == HEAP_TIER_SQL)
	{
		AttrNumber *key = palloc(sizeof(AttrNumber) * Max(row->table->nkey, 1));

		for (int i = 0; i < row->table->nkey; i++)
			key[i] = row->table->columns[row->table->key[i]].attnum;
		set_key(row, row->table->nkey, key);
	}
}

/* Put a rule between the source's columns and the target's. */
static void
open_transformed(HeapRow *row, const CdcTableDef *def, const TransformRule *rule, const SchemaTypeOptions *options)
{
	HeapTarget *target = row->target;
	TransformRun *run = transform_run_open(target->rel, target->estate, def, rule, options, target->write_as);
	const TransformTable *table = run->table;
	bool	   *given = palloc0(sizeof(bool) * Max(RelationGetDescr(target->rel)->natts, 1));
	MemoryContext old;

	row->transform = run;
	if ((rule->kind == TRANSFORM_LAST_WRITER || rule->kind == TRANSFORM_PARTIAL) && target->tier == HEAP_TIER_SQL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("target \"%s\" cannot be of kind \"%s\"", RelationGetRelationName(target->rel), transform_kind_name(rule->kind)),
				 errdetail("It is written by SQL, which does not keep others from writing between the look at a row and the write."),
				 errhint("Use a table as the target.")));
	row->table = run->source;
	row->has_filter = table->transform->filter != NULL;
	row->needs_snapshot = true;
	old = MemoryContextSwitchTo(target->estate->es_query_cxt);
	row->fresh = ExecInitExtraTupleSlot(target->estate, table->transform->desc, &TTSOpsVirtual);
	row->old = ExecInitExtraTupleSlot(target->estate, table->transform->desc, &TTSOpsVirtual);
	MemoryContextSwitchTo(old);

	for (int i = 0; i < table->transform->ncolumns; i++)
	{
		if (table->attnums[i] > 0)
			given[table->attnums[i] - 1] = true;
	}
	heap_target_set_given(target, given);
	pfree(given);
	if (target->tier == HEAP_TIER_SQL)
	{
		AttrNumber *key = palloc(sizeof(AttrNumber) * Max(table->nkey, 1));

		for (int i = 0; i < table->nkey; i++)
			key[i] = table->attnums[table->key[i]];
		set_key(row, table->nkey, key);
	}
}

/* A table that was copied for a row of each change is known as one without a key: as a mirror its changes would find no rows. */
static void
check_key_is_used(const CdcTableDef *def, const SchemaTypeOptions *options)
{
	if (def->nkey > 0 || transform_kind_source_nkey(def) == 0 || transform_table_kind(def, options) == TRANSFORM_APPEND)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("source table \"%s.%s\" was copied for a target of kind \"%s\"", util_name_of_source(def->schema),
					util_name_of_source(def->name), transform_kind_name(TRANSFORM_APPEND)),
			 errdetail("Option \"transforms\" asks for another kind now, which the rows that are there do not fit."),
			 errhint("Drop the target or give it another name, then use cdc_resync_table().")));
}

HeapRow *
heap_row_open(Oid relid, const CdcTableDef *def, const SchemaTypeOptions *options)
{
	HeapTarget *target;
	HeapRow    *row;
	const TransformRule *rule = transform_table_rule(def, options);

	check_key_is_used(def, options);
	target = heap_target_open(relid, def->nkey == 0);
	row = MemoryContextAllocZero(target->estate->es_query_cxt, sizeof(HeapRow));
	row->target = target;
	if (rule == NULL)
		open_plain(row, def, &options->policies);
	else
		open_transformed(row, def, rule, options);
	return row;
}

void
heap_row_close(HeapRow *row)
{
	heap_target_close(row->target);		/* frees row too */
}

static void
set_cell(HeapRow *row, TupleTableSlot *slot, int column, const CdcCell *cell)
{
	SchemaColumn *to = &row->table->columns[column];

	if (to->attnum <= 0)
		return;
	row->current = to->def;
	slot->tts_values[to->attnum - 1] =
		schema_cell_to_datum(to, cell, &slot->tts_isnull[to->attnum - 1]);
	row->replaced += to->replaced;
	row->current = NULL;
}

void
heap_row_set(HeapRow *row, int column, const CdcCell *cell)
{
	set_cell(row, row->fresh, column, cell);
}

void
heap_row_set_old(HeapRow *row, int column, const CdcCell *cell)
{
	set_cell(row, row->old, column, cell);
}

bool
heap_row_wants_origin(const HeapRow *row)
{
	return row->transform != NULL && row->transform->tells_change;
}

void
heap_row_set_origin(HeapRow *row, const TransformOrigin *origin)
{
	transform_run_set_origin(row->transform, origin);
}

void
heap_row_begin(HeapRow *row)
{
	if (row->transform != NULL)
		transform_run_begin(row->transform, 0, row->fresh);
	else
		heap_target_clear(row->fresh);
}

void
heap_row_begin_old(HeapRow *row)
{
	if (row->transform != NULL)
		transform_run_begin(row->transform, 1, row->old);
	else
		heap_target_clear(row->old);
}

bool
heap_row_make(HeapRow *row)
{
	return row->transform == NULL || transform_run_make(row->transform, 0, row->target->slot);
}

bool
heap_row_make_old(HeapRow *row)
{
	return row->transform == NULL || transform_run_make(row->transform, 1, row->target->search);
}

void
heap_row_make_key(HeapRow *row)
{
	if (row->transform != NULL)
		transform_run_make_key(row->transform, 0, row->target->slot);
}

void
heap_row_make_old_key(HeapRow *row)
{
	if (row->transform != NULL)
		transform_run_make_key(row->transform, 1, row->target->search);
}

AttrNumber
heap_row_held(const HeapRow *row, int column)
{
	return row->transform == NULL ? row->table->columns[column].attnum : row->transform->table->held[column];
}

bool
heap_row_wants_version(const HeapRow *row)
{
	return row->transform != NULL && row->transform->table->version >= 0;
}

bool
heap_row_is_outrun(HeapRow *row, const TupleTableSlot *than)
{
	HeapTarget *target = row->target;
	UtilRoleSwitch sw;
	TypeCacheEntry *type;
	Form_pg_attribute attr;
	int			att;
	int			order;

	if (!heap_row_wants_version(row) || !heap_target_read(target))
		return false;
	att = row->transform->table->attnums[row->transform->table->version] - 1;
	if (target->stored->tts_isnull[att])
		return false;
	if (than->tts_isnull[att])
		return true;
	attr = TupleDescAttr(RelationGetDescr(target->rel), att);
	type = lookup_type_cache(attr->atttypid, TYPECACHE_CMP_PROC_FINFO);
	if (!OidIsValid(type->cmp_proc))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("column \"%s\" cannot be a version", NameStr(attr->attname)),
				 errdetail("Type %s has no order.", format_type_be(attr->atttypid))));
	/* a type's order may be somebody's code */
	util_role_switch_begin(target->write_as, &sw);
	order = DatumGetInt32(FunctionCall2Coll(&type->cmp_proc_finfo, attr->attcollation, target->stored->tts_values[att],
											than->tts_values[att]));
	util_role_switch_end(&sw);
	return order > 0;
}

bool
heap_row_may_collapse(const HeapRow *row)
{
	return row->transform == NULL || row->transform->table->transform->rule->kind == TRANSFORM_MIRROR;
}

int64
heap_row_take_replaced(HeapRow *row)
{
	int64		replaced = row->replaced;

	row->replaced = 0;
	return replaced;
}

void
heap_row_search_new(HeapRow *row)
{
	HeapTarget *target = row->target;

	heap_target_clear(target->search);
	for (int i = 0; i < target->nkey; i++)
	{
		int			att = target->key_attnums[i] - 1;

		target->search->tts_values[att] = target->slot->tts_values[att];
		target->search->tts_isnull[att] = target->slot->tts_isnull[att];
	}
}

bool
heap_row_same_key(const HeapRow *row)
{
	const HeapTarget *target = row->target;
	TupleDesc	desc = RelationGetDescr(target->rel);

	for (int i = 0; i < target->nkey; i++)
	{
		int			att = target->key_attnums[i] - 1;
		Form_pg_attribute attr = TupleDescAttr(desc, att);

		if (target->search->tts_isnull[att] || target->slot->tts_isnull[att])
			return false;
		if (!datum_image_eq(target->search->tts_values[att], target->slot->tts_values[att],
							attr->attbyval, attr->attlen))
			return false;
	}
	return true;
}

void
heap_row_bad_cell(const CdcColumnDef *column, const CdcError *err)
{
	int			sqlstate = util_sqlstate(err->code);

	/* in the stream's framing this would be a broken connection; in one value it is that row's data */
	if (err->code == CDC_TRUNCATED || err->code == CDC_MALFORMED)
		sqlstate = ERRCODE_INVALID_BINARY_REPRESENTATION;

	ereport(ERROR,
			(errcode(sqlstate),
			 errmsg("could not read the value of column \"%s\"", column->name ? column->name : "?"),
			 errdetail("%s (%s).", err->text, cdc_status_name(err->code))));
}

bool
heap_error_is_tables_own(int sqlstate)
{
	if (sqlstate == CDC_ERRCODE_TABLE_CHANGED || sqlstate == CDC_ERRCODE_UNSUPPORTED_EVENT ||
		sqlstate == CDC_ERRCODE_NO_KEY || sqlstate == CDC_ERRCODE_ROW_MISSING)
		return true;
	if (sqlstate == ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE)
		return true;

	switch (ERRCODE_TO_CATEGORY(sqlstate))
	{
		case ERRCODE_FEATURE_NOT_SUPPORTED:
		case ERRCODE_CARDINALITY_VIOLATION:
		case ERRCODE_DATA_EXCEPTION:
		case ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION:
		case ERRCODE_INVALID_TRANSACTION_TERMINATION:	/* in a trigger */
		case ERRCODE_SQL_ROUTINE_EXCEPTION:
		case ERRCODE_EXTERNAL_ROUTINE_EXCEPTION:
		case ERRCODE_EXTERNAL_ROUTINE_INVOCATION_EXCEPTION:
		case ERRCODE_INVALID_SCHEMA_NAME:
		case ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION:
		case ERRCODE_WITH_CHECK_OPTION_VIOLATION:
		case ERRCODE_PROGRAM_LIMIT_EXCEEDED:	/* an index row too large */
		case ERRCODE_PLPGSQL_ERROR:
			return true;
		default:
			return false;
	}
}

/*
 * A role can be dropped while it is connected. What it does then fails with an
 * error that looks like the fault of the table at hand; but no table is to blame,
 * and none may be stopped for it.
 */
static void
check_owner_exists(void)
{
	if (!SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(GetUserId())))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION),
				 errmsg("the owner of the pipeline does not exist any more"),
				 errdetail("Its role had the OID %u.", GetUserId()),
				 errhint("Give it another owner with cdc_alter_pipeline(), as a superuser.")));
}

void
heap_transaction_begin(void)
{
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	XactIsoLevel = XACT_READ_COMMITTED;
	if (!RecoveryInProgress())
		XactReadOnly = false;

	/* at 0 a commit puts in its own time, and would leave it there for the next one */
	replorigin_session_origin_timestamp = 0;

	check_owner_exists();
}
