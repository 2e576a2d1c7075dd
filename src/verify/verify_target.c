/*-------------------------------------------------------------------------
 *
 * verify_target.c
 *	  The target's side of a comparison: find a row by key, compare it, tell its
 *	  key.
 *
 * NOTES
 *	  The source's row becomes Datums by the code that snapshot and stream use
 *	  (mysql_text_to_cell, schema_cell_to_datum), so a value that a policy replaces
 *	  is replaced here too. Two values are equal when their bytes are: that finds
 *	  a trailing blank, the scale of a number, the last digit of a float, a key
 *	  in jsonb.
 *
 *	  A row of a partitioned target is looked for in one leaf after the other.
 *	  Targets that only SQL can read are in verify_sql.c.
 *
 *	  A target is open for one transaction; look-ups see what its active snapshot
 *	  sees. Rows are read below the executor, so rights are checked here.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/heapam.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_am.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "binlog/charset.h"
#include "compat/pg_compat.h"
#include "heap/heap_part.h"
#include "heap/heap_row.h"
#include "heap/heap_shard.h"
#include "mysql/mysql_text.h"
#include "transform/transform_kind.h"
#include "util/util_role.h"
#include "verify/verify_private.h"

static void
check_rights(Relation rel)
{
	if (pg_class_aclcheck(RelationGetRelid(rel), GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for table %s", RelationGetRelationName(rel)),
				 errhint("Run GRANT SELECT ON %s TO %s.",
						 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
													RelationGetRelationName(rel)),
						 quote_identifier(GetUserNameFromId(GetUserId(), false)))));
	if (check_enable_rls(RelationGetRelid(rel), InvalidOid, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("row-level security applies to table \"%s\"", RelationGetRelationName(rel)),
				 errdetail("Rows are compared without looking at policies."),
				 errhint("Use ALTER TABLE ... NO FORCE ROW LEVEL SECURITY, or a table that has none.")));
}

/* The valid primary key index of a plain table. */
static Relation
open_key_index(Relation rel)
{
	List	   *indexes = RelationGetIndexList(rel);
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);

		if (index->rd_index->indisprimary && index->rd_index->indisvalid && index->rd_rel->relam == BTREE_AM_OID)
			return index;
		index_close(index, AccessShareLock);
	}
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("table \"%s\" has no primary key", RelationGetRelationName(rel)),
			 errdetail("Rows are found by it.")));
	return NULL;				/* keep compiler quiet */
}

/* What is to be known of the key's columns: where they stand, and their equality. */
static void
prepare_key(VerifyTarget *target)
{
	Relation	index = target->index;

	target->nkey = IndexRelationGetNumberOfKeyAttributes(index);
	target->key_attnums = palloc(sizeof(AttrNumber) * target->nkey);
	target->key_columns = palloc(sizeof(int) * target->nkey);
	target->keys = palloc0(sizeof(ScanKeyData) * target->nkey);
	for (int i = 0; i < target->nkey; i++)
	{
		Oid			type = index->rd_opcintype[i];
		Oid			op = get_opfamily_member(index->rd_opfamily[i], type, type, BTEqualStrategyNumber);
		AttrNumber	attnum = index->rd_index->indkey.values[i];

		if (!OidIsValid(op))
			elog(ERROR, "missing equality operator for type %u in operator family %u", type, index->rd_opfamily[i]);
		ScanKeyEntryInitialize(&target->keys[i], 0, i + 1, BTEqualStrategyNumber, InvalidOid,
							   index->rd_indcollation[i], get_opcode(op), (Datum) 0);

		target->key_attnums[i] = attnum;
		target->key_columns[i] = -1;
		for (int j = 0; j < target->ncompared; j++)
		{
			if (target->compared[j].attnum == attnum)
				target->key_columns[i] = target->compared[j].column;
		}
		if (target->key_columns[i] < 0 && target->transform == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("column \"%s\" of the primary key of table \"%s\" is not one of the source's",
							NameStr(TupleDescAttr(RelationGetDescr(target->rel), attnum - 1)->attname),
							RelationGetRelationName(target->rel))));
	}
}

static _Noreturn void
refuse_kind(Relation rel)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("table \"%s\" cannot be compared", RelationGetRelationName(rel)),
			 errdetail("A table can be, a partitioned one, and, when the source table has a key, a foreign table or a view.")));
}

Relation
verify_target_open_relation(Verify *verify)
{
	Oid			relid = verify->work->target;
	Relation	rel = OidIsValid(relid) ? try_relation_open(relid, AccessShareLock) : NULL;

	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("target table does not exist"),
				 errdetail("It was dropped or made anew after the pipeline had started with it.")));
	if (rel->rd_rel->relkind != RELKIND_RELATION && rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE &&
		rel->rd_rel->relkind != RELKIND_FOREIGN_TABLE && rel->rd_rel->relkind != RELKIND_VIEW)
		refuse_kind(rel);
	check_rights(rel);
	if (transform_table_kind(verify->work->def, &verify->types) == TRANSFORM_APPEND)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" cannot be compared", RelationGetRelationName(rel)),
				 errdetail("Option \"transforms\" makes it have a row for each change, and the source has only what they came to.")));
	return rel;
}

List *
verify_target_open_leaves(Relation rel)
{
	List	   *result = NIL;
	List	   *oids = find_all_inheritors(RelationGetRelid(rel), AccessShareLock, NULL);
	ListCell   *lc;

	/* tables that merely inherit are not the target */
	if (rel->rd_rel->relkind == RELKIND_RELATION)
		oids = list_make1_oid(RelationGetRelid(rel));
	list_sort(oids, list_oid_cmp);
	foreach(lc, oids)
	{
		Relation	leaf = relation_open(lfirst_oid(lc), AccessShareLock);

		if (leaf->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		{
			relation_close(leaf, AccessShareLock);
			continue;
		}
		if (leaf->rd_rel->relkind != RELKIND_RELATION || leaf->rd_tableam != GetHeapamTableAmRoutine())
			refuse_kind(leaf);
		result = lappend(result, leaf);
	}
	return result;
}

/* Open the tables that rows are in, ready for look-ups. */
static void
open_leaves(VerifyTarget *target)
{
	List	   *rels = verify_target_open_leaves(target->rel);
	ListCell   *lc;

	target->leaves = palloc0(sizeof(VerifyLeaf) * Max(list_length(rels), 1));
	foreach(lc, rels)
	{
		VerifyLeaf *leaf = &target->leaves[target->nleaves++];

		leaf->rel = lfirst(lc);
		if (target->index != NULL)
		{
			leaf->index = open_key_index(leaf->rel);
			leaf->scan = cdc_index_beginscan(leaf->rel, leaf->index, GetActiveSnapshot(), target->nkey);
		}
		leaf->slot = table_slot_create(leaf->rel, NULL);
		if (leaf->rel != target->rel)
			leaf->map = convert_tuples_by_name(RelationGetDescr(leaf->rel), RelationGetDescr(target->rel));
	}
	target->converted = MakeSingleTupleTableSlot(RelationGetDescr(target->rel), &TTSOpsVirtual);
	target->slot = target->stored = target->converted;
}

/* Rows as they are: the source's columns, each in an attribute of its name. */
static void
open_plain(Verify *verify, VerifyTarget *target)
{
	SchemaTable *table;

	target->table = table = schema_table_open(verify->work->def, target->rel, &verify->types.policies, CurrentMemoryContext);
	target->sum = schema_sum_begin(table);
	target->values = palloc0(sizeof(Datum) * table->natts);
	target->nulls = palloc0(sizeof(bool) * table->natts);
	target->compared = palloc0(sizeof(VerifyColumn) * Max(table->ncolumns, 1));
	for (int i = 0; i < table->ncolumns; i++)
	{
		VerifyColumn *column = &target->compared[target->ncompared];

		if (table->columns[i].attnum <= 0)
			continue;
		column->attnum = table->columns[i].attnum;
		column->column = i;
		column->name = table->def->columns[i].name;
		target->ncompared++;
	}
}

/*
 * Rows under a transform are computed once more and compared with those here: no sum of the source's tells anything of
 * them. What is true of a change only, or may come out differently each time, is not compared. Rows that only the target
 * has are asked for at the source by its key, which has to be there.
 */
static void
open_transformed(Verify *verify, VerifyTarget *target, const TransformRule *rule)
{
	const VerifyWork *work = verify->work;
	Oid			owner = target->rel->rd_rel->relowner;
	const TransformTable *table;

	if (verify_sql_is_needed(target->rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" cannot be compared", RelationGetRelationName(target->rel)),
				 errdetail("It is read by SQL, and option \"transforms\" makes other rows of its source table.")));
	target->estate = CreateExecutorState();
	target->transform = transform_run_open(target->rel, target->estate, work->def, rule, &verify->types,
										   owner != GetUserId() ? owner : InvalidOid);
	table = target->transform->table;
	if (table->deleted >= 0)
		target->deleted = table->attnums[table->deleted];
	if (table->parts >= 0)
	{
		target->parts = table->attnums[table->parts];
		target->part = transform_kind_part(table);
	}
	target->table = target->transform->source;
	target->fresh = MakeSingleTupleTableSlot(table->transform->desc, &TTSOpsVirtual);
	target->made = MakeSingleTupleTableSlot(RelationGetDescr(target->rel), &TTSOpsVirtual);
	target->values = target->made->tts_values;
	target->nulls = target->made->tts_isnull;
	target->compared = palloc0(sizeof(VerifyColumn) * Max(table->transform->ncolumns, 1));
	for (int i = 0; i < table->transform->ncolumns; i++)
	{
		const TransformColumn *from = &table->transform->columns[i];
		VerifyColumn *column = &target->compared[target->ncompared];

		if (i == table->parts || table->attnums[i] <= 0 || from->is_mutable || transform_tells_change(table->transform, i))
			continue;
		column->attnum = table->attnums[i];
		column->column = from->from > 0 && from->from <= table->transform->nsource ? from->from - 1 : -1;
		column->name = from->name;
		target->ncompared++;
	}
	for (int i = 0; i < work->nkey; i++)
	{
		if (table->held[work->key[i]] <= 0)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("table \"%s\" cannot be compared", RelationGetRelationName(target->rel)),
					 errdetail("Option \"transforms\" makes something else of column \"%s\" of the source's key, so which of the source's rows one of the target's is cannot be told.",
							   work->def->columns[work->key[i]].name)));
	}
}

/* Which rows of a target that others share are the table's own: by key columns that are the same for all of them. */
static void
find_own(VerifyTarget *target)
{
	TransformRun *run = target->transform;
	const TransformTable *table = run->table;
	UtilRoleSwitch sw;
	MemoryContext old;

	if (target->parts > 0)
		return;
	old = MemoryContextSwitchTo(target->estate->es_query_cxt);
	target->own_attnums = palloc(sizeof(AttrNumber) * Max(table->nkey, 1));
	target->own_values = palloc(sizeof(Datum) * Max(table->nkey, 1));
	transform_run_begin(run, 0, target->fresh);
	util_role_switch_begin(run->run_as, &sw);
	for (int i = 0; i < table->nkey; i++)
	{
		AttrNumber	attnum = table->attnums[table->key[i]];
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(target->rel), attnum - 1);
		bool		isnull;
		Datum		value;

		if (!heap_shard_tells(table->transform, table->key[i]))
			continue;
		value = transform_value(run->state, 0, table->key[i], &isnull);
		if (isnull)
			ereport(ERROR,
					(errcode(ERRCODE_NOT_NULL_VIOLATION),
					 errmsg("null value in the key of table \"%s\"", RelationGetRelationName(target->rel))));
		target->own_attnums[target->nown] = attnum;
		target->own_values[target->nown++] = datumCopy(value, att->attbyval, att->attlen);
	}
	util_role_switch_end(&sw);
	MemoryContextSwitchTo(old);
	/* the transform was taken away meanwhile: nothing tells them, so nothing can be said of them */
	if (target->nown == 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" cannot be compared", RelationGetRelationName(target->rel)),
				 errdetail("Other source tables go there too, and its key does not say any more which rows are whose.")));
}

bool
verify_target_is_own(const VerifyTarget *target)
{
	bool		no_mark;
	bool		no_parts;

	if (target->parts > 0)
	{
		Datum		parts = slot_getattr(target->slot, target->parts, &no_parts);

		if (no_parts || !heap_part_is_in(parts, target->part))
			return false;		/* only others have parts of it */
	}
	if (target->deleted > 0 && DatumGetBool(slot_getattr(target->slot, target->deleted, &no_mark)) && !no_mark)
		return false;			/* the source has deleted it */
	for (int i = 0; i < target->nown; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(target->rel), target->own_attnums[i] - 1);
		bool		isnull;
		Datum		value = slot_getattr(target->slot, target->own_attnums[i], &isnull);

		if (isnull || !datum_image_eq(value, target->own_values[i], att->attbyval, att->attlen))
			return false;
	}
	return true;
}

VerifyTarget *
verify_target_open(Verify *verify)
{
	VerifyWork *work = verify->work;
	VerifyTarget *target = palloc0(sizeof(VerifyTarget));
	const TransformRule *rule = transform_table_rule(work->def, &verify->types);

	target->cxt = CurrentMemoryContext;
	target->rel = verify_target_open_relation(verify);
	if (rule != NULL)
		open_transformed(verify, target, rule);
	else if (work->is_merged)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" cannot be compared", RelationGetRelationName(target->rel)),
				 errdetail("Other source tables go there too, and option \"transforms\" does not say any more which rows are whose.")));
	else
		open_plain(verify, target);
	if (work->is_merged)
		find_own(target);
	if (work->nkey > 0 && verify_sql_is_needed(target->rel))
		verify_sql_open(work, target);
	else
	{
		if (work->nkey > 0)
		{
			target->index = open_key_index(target->rel);
			prepare_key(target);
		}
		open_leaves(target);
	}
	return target;
}

/* Not called after an error: then the end of the transaction closes it all. */
void
verify_target_close(VerifyTarget *target)
{
	for (int i = 0; i < target->nleaves; i++)
	{
		VerifyLeaf *leaf = &target->leaves[i];

		ExecDropSingleTupleTableSlot(leaf->slot);
		if (leaf->index != NULL)
		{
			index_endscan(leaf->scan);
			index_close(leaf->index, AccessShareLock);
		}
		relation_close(leaf->rel, AccessShareLock);
	}
	if (target->sum != NULL)
		schema_sum_end(target->sum);
	if (target->transform != NULL)
	{
		ExecDropSingleTupleTableSlot(target->fresh);
		ExecDropSingleTupleTableSlot(target->made);
		FreeExecutorState(target->estate);
	}
	ExecDropSingleTupleTableSlot(target->converted);
	if (target->index != NULL)
		index_close(target->index, AccessShareLock);
	relation_close(target->rel, AccessShareLock);
}

bool
verify_target_take(Verify *verify, VerifyTarget *target, const MysqlRow *row, const bool *wanted)
{
	const CdcTableDef *def = verify->work->def;
	Datum	   *values = target->transform != NULL ? target->fresh->tts_values : target->values;
	bool	   *nulls = target->transform != NULL ? target->fresh->tts_isnull : target->nulls;

	target->taken = wanted;
	cdc_arena_reset(&verify->arena);
	if (target->transform != NULL)
		transform_run_begin(target->transform, 0, target->fresh);
	for (int i = 0; i < target->table->ncolumns; i++)
	{
		SchemaColumn *column = &target->table->columns[i];
		CdcCell		cell;
		CdcError	err = {0};

		if (column->attnum <= 0 || (wanted != NULL && !wanted[i]))
			continue;
		if (mysql_text_to_cell(&def->columns[i], row->values[i], row->lengths[i], &verify->arena, &cell, &err) != CDC_OK)
			heap_row_bad_cell(&def->columns[i], &err);
		verify->current = &def->columns[i];
		values[column->attnum - 1] = schema_cell_to_datum(column, &cell, &nulls[column->attnum - 1]);
		verify->current = NULL;
	}
	return target->transform == NULL || transform_run_make(target->transform, 0, target->made);
}

void
verify_target_show(VerifyTarget *target, VerifyLeaf *leaf)
{
	target->stored = target->slot = leaf->slot;
	if (leaf->map != NULL)
		target->slot = execute_attr_map_slot(leaf->map->attrMap, leaf->slot, target->converted);
}

int
verify_target_find(VerifyTarget *target, const Datum *key)
{
	bool		found = false;

	if (target->sql != NULL)
		return verify_sql_find(target, key);
	for (int i = 0; i < target->nkey; i++)
		target->keys[i].sk_argument = key[i];

	for (int i = 0; i < target->nleaves && !found; i++)
	{
		VerifyLeaf *leaf = &target->leaves[i];
		/* the scan keeps things of its own between two rows */
		MemoryContext old = MemoryContextSwitchTo(target->cxt);

		index_rescan(leaf->scan, target->keys, target->nkey, NULL, 0);
		found = index_getnext_slot(leaf->scan, ForwardScanDirection, leaf->slot);
		MemoryContextSwitchTo(old);
		if (found)
			verify_target_show(target, leaf);
		if (found && (target->deleted > 0 || target->parts > 0))
			found = verify_target_is_own(target);
	}
	return found ? 1 : 0;
}

/* The key columns of the taken row, in index order, not copied. */
static void
taken_key(const VerifyTarget *target, Datum *key)
{
	for (int i = 0; i < target->nkey; i++)
	{
		int			att = target->key_attnums[i] - 1;

		if (target->nulls[att])
			ereport(ERROR,
					(errcode(ERRCODE_NOT_NULL_VIOLATION),
					 errmsg("null value in the key of table \"%s\"", RelationGetRelationName(target->rel))));
		key[i] = target->values[att];
	}
}

int
verify_target_find_taken(VerifyTarget *target)
{
	Datum		key[INDEX_MAX_KEYS];

	taken_key(target, key);
	return verify_target_find(target, key);
}

/* Are the values of one attribute equal, byte by byte? */
static bool
column_is_equal(VerifyTarget *target, const VerifyColumn *column)
{
	int			att = column->attnum - 1;
	Form_pg_attribute attr;

	if (target->taken != NULL && column->column >= 0 && !target->taken[column->column])
		return true;
	attr = TupleDescAttr(RelationGetDescr(target->rel), att);
	if (target->slot->tts_isnull[att] || target->nulls[att])
		return target->slot->tts_isnull[att] && target->nulls[att];
	return datum_image_eq(target->slot->tts_values[att], target->values[att], attr->attbyval, attr->attlen);
}

bool
verify_target_is_equal(VerifyTarget *target)
{
	slot_getallattrs(target->slot);
	for (int i = 0; i < target->ncompared; i++)
	{
		if (!column_is_equal(target, &target->compared[i]))
			return false;
	}
	return true;
}

List *
verify_target_differing(VerifyTarget *target)
{
	List	   *result = NIL;

	slot_getallattrs(target->slot);
	for (int i = 0; i < target->ncompared; i++)
	{
		if (!column_is_equal(target, &target->compared[i]))
			result = lappend(result, pstrdup(target->compared[i].name));
	}
	return result;
}

static uint64
hash_value(uint64 hash, Form_pg_attribute attr, Datum value)
{
	if (attr->attbyval)
		return hash_bytes_extended((const unsigned char *) &value, sizeof(value), hash);
	if (attr->attlen == -1)
	{
		struct varlena *bytes = pg_detoast_datum_packed((struct varlena *) DatumGetPointer(value));

		hash = hash_bytes_extended((const unsigned char *) VARDATA_ANY(bytes), (int) VARSIZE_ANY_EXHDR(bytes), hash);
		if (bytes != (struct varlena *) DatumGetPointer(value))
			pfree(bytes);
		return hash;
	}
	return hash_bytes_extended((const unsigned char *) DatumGetPointer(value),
							   attr->attlen > 0 ? attr->attlen : (int) strlen(DatumGetCString(value)), hash);
}

static uint64
hash_key(VerifyTarget *target, const Datum *values)
{
	uint64		hash = 0x636463;

	for (int i = 0; i < target->nkey; i++)
	{
		int			att = target->key_attnums[i] - 1;

		hash = hash_value(hash, TupleDescAttr(RelationGetDescr(target->rel), att), values[att]);
	}
	return hash;
}

uint64
verify_target_hash_key(VerifyTarget *target, const Datum *key)
{
	uint64		hash = 0x636463;

	for (int i = 0; i < target->nkey; i++)
		hash = hash_value(hash, TupleDescAttr(RelationGetDescr(target->rel), target->key_attnums[i] - 1), key[i]);
	return hash;
}

uint64
verify_target_hash_taken(VerifyTarget *target)
{
	return hash_key(target, target->values);
}

uint64
verify_target_hash_slot(VerifyTarget *target)
{
	slot_getallattrs(target->slot);
	return hash_key(target, target->slot->tts_values);
}

/* Of all columns that are compared, NULLs included. */
static uint64
hash_row(VerifyTarget *target, const Datum *values, const bool *nulls)
{
	uint64		hash = 0x636463;

	for (int i = 0; i < target->ncompared; i++)
	{
		int			att = target->compared[i].attnum - 1;
		Form_pg_attribute attr;

		attr = TupleDescAttr(RelationGetDescr(target->rel), att);
		hash = nulls[att] ? hash * 31 + 7 : hash_value(hash, attr, values[att]);
	}
	return hash;
}

uint64
verify_target_hash_taken_row(VerifyTarget *target)
{
	return hash_row(target, target->values, target->nulls);
}

uint64
verify_target_hash_slot_row(VerifyTarget *target)
{
	slot_getallattrs(target->slot);
	return hash_row(target, target->slot->tts_values, target->slot->tts_isnull);
}

static Datum *
copy_key(VerifyTarget *target, const Datum *values)
{
	Datum	   *key = palloc(sizeof(Datum) * target->nkey);

	for (int i = 0; i < target->nkey; i++)
	{
		int			att = target->key_attnums[i] - 1;
		Form_pg_attribute attr = TupleDescAttr(RelationGetDescr(target->rel), att);

		key[i] = attr->attlen == -1
			? PointerGetDatum(PG_DETOAST_DATUM_COPY(values[att]))
			: datumCopy(values[att], attr->attbyval, attr->attlen);
	}
	return key;
}

Datum *
verify_target_key_taken(VerifyTarget *target)
{
	return copy_key(target, target->values);
}

Datum *
verify_target_key_slot(VerifyTarget *target)
{
	slot_getallattrs(target->slot);
	return copy_key(target, target->slot->tts_values);
}

bool
verify_target_same_key(VerifyTarget *target, const Datum *key)
{
	for (int i = 0; i < target->nkey; i++)
	{
		ScanKey		entry = &target->keys[i];
		int			att = target->key_attnums[i] - 1;

		if (target->nulls[att] ||
			!DatumGetBool(FunctionCall2Coll(&entry->sk_func, entry->sk_collation, target->values[att], key[i])))
			return false;
	}
	return true;
}

static char *
value_text(Form_pg_attribute attr, Datum value)
{
	Oid			output;
	bool		is_varlena;

	getTypeOutputInfo(attr->atttypid, &output, &is_varlena);
	return OidOutputFunctionCall(output, value);
}

List *
verify_target_key_text(VerifyTarget *target, const Datum *key)
{
	List	   *result = NIL;

	for (int i = 0; i < target->nkey; i++)
		result = lappend(result, value_text(TupleDescAttr(RelationGetDescr(target->rel), target->key_attnums[i] - 1), key[i]));
	return result;
}

/* ---------------------------------------------------- a target's key at the source */

/* '...' when text has only these characters, else NULL: the source has no such value. */
static char *
plain_literal(const char *text, const char *allowed, bool quoted)
{
	if (text[0] == '\0' || strspn(text, allowed) != strlen(text))
		return NULL;
	return psprintf(quoted ? "'%s'" : "%s", text);
}

/* x'...' of bytes. */
static char *
hex_literal(const char *introducer, const char *bytes, int len)
{
	StringInfoData buf;

	initStringInfo(&buf);
	appendStringInfo(&buf, "%s x'", introducer);
	for (int i = 0; i < len; i++)
		appendStringInfo(&buf, "%02X", (unsigned char) bytes[i]);
	appendStringInfoChar(&buf, '\'');
	return buf.data;
}

/* Only an exponent makes a DOUBLE at the source; 1.5 alone would be a DECIMAL. */
static char *
real_literal(Oid type, Datum value, const char *text)
{
	double		real;

	if (type == FLOAT4OID)
		real = DatumGetFloat4(value);
	else if (type == FLOAT8OID)
		real = DatumGetFloat8(value);
	else
	{
		char	   *end;

		real = strtod(text, &end);
		if (*text == '\0' || *end != '\0')
			return NULL;
	}
	return isfinite(real) ? psprintf("%.17e", real) : NULL;
}

/* A TIME of the source, from an interval. */
static char *
time_literal(const Interval *interval)
{
	int64		us = interval->time;
	bool		is_negative = us < 0;
	uint64		abs = is_negative ? -(uint64) us : (uint64) us;

	if (interval->month != 0 || interval->day != 0 || abs >= (uint64) 839 * USECS_PER_HOUR)
		return NULL;
	return psprintf("'%s%02d:%02d:%02d.%06d'", is_negative ? "-" : "", (int) (abs / USECS_PER_HOUR),
					(int) (abs / USECS_PER_MINUTE % 60), (int) (abs / USECS_PER_SEC % 60), (int) (abs % USECS_PER_SEC));
}

/* Dates the source may hold: a year of four digits; the worker prints them in ISO style and UTC. */
static char *
date_literal(const CdcColumnDef *column, char *text)
{
	size_t		len = strlen(text);

	if (len > 3 && strcmp(text + len - 3, "+00") == 0)
		text[len - 3] = '\0';
	if (strlen(text) < 10 || text[4] != '-')
		return NULL;
	if (column->type == CDC_TYPE_TIMESTAMP && (strncmp(text, "1970", 4) < 0 || strncmp(text, "2107", 4) >= 0))
		return NULL;
	return plain_literal(text, "0123456789-: .", true);
}

/*
 * A character string in the column's own character set, because only then does
 * the column's collation decide and its index serve. The server converts: what
 * the set lacks becomes a question mark, and the row that has one, if any, is
 * told from ours by its key's bytes.
 */
static char *
text_literal(Verify *verify, const CdcColumnDef *column, const char *text)
{
	const char *charset = binlog_charset_name(column->collation);
	char	   *literal = hex_literal("_utf8mb4", text, strlen(text));
	char	   *hex;

	if (charset == NULL || strcmp(charset, "utf8mb4") == 0)
		return literal;
	hex = mysql_session_scalar(verify->session, psprintf("SELECT HEX(CONVERT(%s USING %s))", literal, charset));
	if (hex == NULL || strspn(hex, "0123456789ABCDEF") != strlen(hex))
		return NULL;
	return psprintf("_%s x'%s'", charset, hex);
}

/* What stands for a target's value in a comparison with the source's column; NULL when the source cannot have it. */
static char *
source_literal(Verify *verify, const CdcColumnDef *column, Form_pg_attribute attr, Datum value)
{
	Oid			type = getBaseType(attr->atttypid);
	char	   *text = value_text(attr, value);

	switch (column->type)
	{
		case CDC_TYPE_TINYINT:
		case CDC_TYPE_SMALLINT:
		case CDC_TYPE_MEDIUMINT:
		case CDC_TYPE_INT:
		case CDC_TYPE_BIGINT:
		case CDC_TYPE_DECIMAL:
		case CDC_TYPE_YEAR:
			if (type == BOOLOID)
				return pstrdup(DatumGetBool(value) ? "1" : "0");
			return plain_literal(text, "0123456789-.", false);
		case CDC_TYPE_BIT:
			if (type == BOOLOID)
				return pstrdup(DatumGetBool(value) ? "1" : "0");
			text = plain_literal(text, "01", true);
			return text == NULL ? NULL : psprintf("(b%s + 0)", text);
		case CDC_TYPE_FLOAT:
		case CDC_TYPE_DOUBLE:
			return real_literal(type, value, text);
		case CDC_TYPE_DATE:
		case CDC_TYPE_DATETIME:
		case CDC_TYPE_TIMESTAMP:
			return date_literal(column, text);
		case CDC_TYPE_TIME:
			if (type == INTERVALOID)
				return time_literal(DatumGetIntervalP(value));
			return plain_literal(text, "0123456789-:.", true);
		case CDC_TYPE_BINARY:
		case CDC_TYPE_VARBINARY:
		case CDC_TYPE_BLOB:
			if (type == BYTEAOID)
			{
				bytea	   *bytes = DatumGetByteaPP(value);

				return hex_literal("_binary", VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
			}
			return hex_literal("_binary", text, strlen(text));
		case CDC_TYPE_UUID:
		case CDC_TYPE_INET4:
		case CDC_TYPE_INET6:
			return plain_literal(text, "0123456789abcdefABCDEF-:.", true);
		case CDC_TYPE_CHAR:
			/* not every collation passes over the blanks that character(n) is filled up with */
			for (size_t len = strlen(text); len > 0 && text[len - 1] == ' '; len--)
				text[len - 1] = '\0';
			return text_literal(verify, column, text);
		default:
			return text_literal(verify, column, text);
	}
}

/* Attribute of the target that has a part of the source's key as it is. */
static AttrNumber
attribute_of_part(const VerifyTarget *target, int column)
{
	return target->transform != NULL ? target->transform->table->held[column] : target->table->columns[column].attnum;
}

char *
verify_target_condition(Verify *verify, VerifyTarget *target)
{
	const VerifyWork *work = verify->work;
	StringInfoData sql;

	initStringInfo(&sql);
	slot_getallattrs(target->slot);
	for (int i = 0; i < work->nkey; i++)
	{
		const CdcColumnDef *column = &work->def->columns[work->key[i]];
		int			att = attribute_of_part(target, work->key[i]) - 1;
		char	   *literal = target->slot->tts_isnull[att] ? NULL
			: source_literal(verify, column, TupleDescAttr(RelationGetDescr(target->rel), att), target->slot->tts_values[att]);

		if (literal == NULL)
			return pstrdup("FALSE");
		appendStringInfo(&sql, "%s%s = %s", i > 0 ? " AND " : "", mysql_quote_identifier(column->name), literal);
	}
	return sql.data;
}
