/*-------------------------------------------------------------------------
 *
 * heap_partition.c
 *	  Partitioned targets: which leaf a row belongs to.
 *
 * NOTES
 *	  Routing is the executor's own (ExecFindPartition), which walks any depth of
 *	  partitioning. It wants the node of an INSERT; like core's apply worker we
 *	  give it one without a plan.
 *
 *	  Leaves have to belong to the owner of the partitioned table: rows of all of
 *	  them are written in one go, under one role.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "access/tupconvert.h"
#include "catalog/pg_inherits.h"
#include "executor/execPartition.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "heap/heap_key.h"
#include "heap/heap_partition.h"

typedef struct Leaf
{
	Oid			relid;			/* hash key */
	HeapTarget *target;
	TupleConversionMap *map;	/* parent -> leaf; NULL: the same order */
} Leaf;

struct HeapPartitions
{
	ModifyTableState *node;
	PartitionTupleRouting *routing;
	HTAB	   *by_relid;
	List	   *leaves;			/* of HeapTarget */
	Leaf	   *last;
};

HeapPartitions *
heap_partition_open(HeapTargetState *parent)
{
	HeapTarget *target = &parent->base;
	EState	   *estate = target->estate;
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	HeapPartitions *partitions = palloc0(sizeof(HeapPartitions));
	HASHCTL		ctl = {
		.keysize = sizeof(Oid),
		.entrysize = sizeof(Leaf),
		.hcxt = estate->es_query_cxt,
	};

	partitions->node = makeNode(ModifyTableState);
	partitions->node->ps.plan = NULL;
	partitions->node->ps.state = estate;
	partitions->node->operation = CMD_INSERT;
	partitions->node->mt_nrels = 1;
	partitions->node->resultRelInfo = target->result_rel;
	partitions->node->rootResultRelInfo = target->result_rel;
	partitions->routing = ExecSetupPartitionTupleRouting(estate, target->rel);
	partitions->by_relid = hash_create("cdc leaves", 16, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	MemoryContextSwitchTo(old);
	return partitions;
}

void
heap_partition_close(HeapPartitions *partitions)
{
	ListCell   *lc;

	foreach(lc, partitions->leaves)
		heap_target_close(lfirst(lc));
	ExecCleanupTupleRouting(partitions->node, partitions->routing);
}

/* Which attributes of the leaf the caller gives. */
static void
pass_on_given(const HeapTarget *parent, HeapTarget *leaf)
{
	TupleDesc	desc = RelationGetDescr(leaf->rel);
	bool	   *given;

	if (parent->given == NULL)
		return;
	given = palloc0(sizeof(bool) * desc->natts);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		AttrNumber	attnum;

		if (att->attisdropped)
			continue;
		attnum = get_attnum(RelationGetRelid(parent->rel), NameStr(att->attname));
		given[i] = attnum > 0 && parent->given[attnum - 1];
	}
	heap_target_set_given(leaf, given);
	pfree(given);
}

static void
open_leaf(HeapTargetState *parent, Leaf *leaf)
{
	HeapTarget *target = &parent->base;
	MemoryContext old;

	leaf->target = NULL;
	leaf->target = heap_target_open_leaf(leaf->relid, target);
	pass_on_given(target, leaf->target);

	old = MemoryContextSwitchTo(target->estate->es_query_cxt);
	leaf->map = convert_tuples_by_name(RelationGetDescr(target->rel), RelationGetDescr(leaf->target->rel));
	parent->partitions->leaves = lappend(parent->partitions->leaves, leaf->target);
	MemoryContextSwitchTo(old);
}

HeapTarget *
heap_partition_of_slot(HeapTargetState *parent, TupleTableSlot *slot)
{
	HeapPartitions *partitions = parent->partitions;
	EState	   *estate = parent->base.estate;
	MemoryContext old = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));
	UtilRoleSwitch sw;
	ResultRelInfo *info;
	Oid			relid;
	bool		found;

	util_role_switch_begin(parent->base.write_as, &sw); /* a leaf that is met first has its indexes opened */
	info = ExecFindPartition(partitions->node, parent->base.result_rel, partitions->routing, slot, estate);
	util_role_switch_end(&sw);
	relid = RelationGetRelid(info->ri_RelationDesc);
	MemoryContextSwitchTo(old);
	if (partitions->last == NULL || partitions->last->relid != relid)
	{
		partitions->last = hash_search(partitions->by_relid, &relid, HASH_ENTER, &found);
		if (!found)
			open_leaf(parent, partitions->last);
	}
	return partitions->last->target;
}

HeapTarget *
heap_partition_of_key(HeapTargetState *parent, const Datum *key)
{
	heap_key_search(&parent->base, key);
	return heap_partition_of_slot(parent, parent->base.search);
}

HeapTarget *
heap_partition_last(const HeapTargetState *parent)
{
	return parent->partitions->last->target;
}

void
heap_partition_convert_slot(const HeapTargetState *parent, TupleTableSlot *from, TupleTableSlot *to)
{
	const TupleConversionMap *map = parent->partitions->last->map;
	int			natts = to->tts_tupleDescriptor->natts;

	if (map != NULL)
	{
		execute_attr_map_slot(map->attrMap, from, to);
		return;
	}
	ExecClearTuple(to);
	memcpy(to->tts_values, from->tts_values, sizeof(Datum) * natts);
	memcpy(to->tts_isnull, from->tts_isnull, sizeof(bool) * natts);
	ExecStoreVirtualTuple(to);
}

HeapTuple
heap_partition_convert_tuple(const HeapTargetState *parent, HeapTuple tuple)
{
	TupleConversionMap *map = parent->partitions->last->map;
	HeapTuple	converted;

	if (map == NULL)
		return tuple;
	converted = execute_attr_map_tuple(tuple, map);
	heap_freetuple(tuple);
	return converted;
}

List *
heap_partition_leaves(const HeapTargetState *parent)
{
	return parent->partitions->leaves;
}

/* Does a plain table hold any row? */
static bool
leaf_has_rows(Oid relid)
{
	Relation	rel = table_open(relid, AccessShareLock);
	TupleTableSlot *slot;
	TableScanDesc scan;
	bool		found = false;

	if (rel->rd_rel->relkind == RELKIND_RELATION)
	{
		slot = table_slot_create(rel, NULL);
		scan = table_beginscan(rel, GetActiveSnapshot(), 0, NULL);
		found = table_scan_getnextslot(scan, ForwardScanDirection, slot);
		table_endscan(scan);
		ExecDropSingleTupleTableSlot(slot);
	}
	table_close(rel, NoLock);
	return found;
}

bool
heap_partition_has_rows(const HeapTarget *target)
{
	List	   *relids = find_all_inheritors(RelationGetRelid(target->rel), AccessShareLock, NULL);
	ListCell   *lc;
	bool		found = false;

	PushActiveSnapshot(GetLatestSnapshot());
	foreach(lc, relids)
	{
		if ((found = leaf_has_rows(lfirst_oid(lc))))
			break;
	}
	PopActiveSnapshot();
	return found;
}
