/*-------------------------------------------------------------------------
 *
 * pg_compat.h
 *	  Differences between the supported major versions, and nothing else.
 *
 * NOTES
 *	  Code is written against the newest API; older versions get that name here,
 *	  under a cdc_ prefix where core has the same name with another signature.
 *	  The only file that may look at PG_VERSION_NUM.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_PG_COMPAT_H
#define CDC_PG_COMPAT_H

#include "postgres.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_database.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_publication.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "executor/executor.h"
#include "fmgr.h"
#if PG_VERSION_NUM >= 160000
#include "parser/parse_relation.h"
#endif
#include "parser/parse_type.h"
#include "postmaster/bgworker.h"
#include "replication/message.h"
#include "replication/origin.h"
#include "replication/reorderbuffer.h"
#include "replication/slot.h"
#include "replication/walsender_private.h"
#if PG_VERSION_NUM >= 180000
#include "rewrite/rewriteHandler.h"
#endif
#include "utils/acl.h"
#include "utils/backend_status.h"
#include "utils/pg_locale.h"
#include "utils/rel.h"
#include "utils/snapshot.h"
#include "utils/wait_event.h"

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 190000
#error "cdc_bridge supports PostgreSQL 15 to 18"
#endif

/* 16: varlena macros moved to a header of their own */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* 18: the module can say its name and version */
#if PG_VERSION_NUM >= 180000
#define CDC_MODULE_MAGIC(n, v) PG_MODULE_MAGIC_EXT(.name = n, .version = v)
#else
#define CDC_MODULE_MAGIC(n, v) PG_MODULE_MAGIC
#endif

/* 17: extensions name their wait events */
static inline uint32
cdc_wait_event(const char *name)
{
#if PG_VERSION_NUM >= 170000
	return WaitEventExtensionNew(name);
#else
	return PG_WAIT_EXTENSION;
#endif
}

/* 17: a worker may connect as a role without LOGIN; transaction_timeout */
#if PG_VERSION_NUM >= 170000
#define CDC_BYPASS_ROLELOGINCHECK BGWORKER_BYPASS_ROLELOGINCHECK
#define CDC_NEEDS_ROLE_LOGIN false
#define CDC_HAS_TRANSACTION_TIMEOUT
#else
#define CDC_BYPASS_ROLELOGINCHECK 0
#define CDC_NEEDS_ROLE_LOGIN true
#endif

/* 16: several processes may share an origin; we never do */
static inline void
cdc_replorigin_session_setup(RepOriginId origin)
{
#if PG_VERSION_NUM >= 160000
	replorigin_session_setup(origin, 0);
#else
	replorigin_session_setup(origin);
#endif
}

/* 16: SET ROLE became a right of its own */
static inline bool
cdc_role_can_set_role(Oid member, Oid role)
{
#if PG_VERSION_NUM >= 160000
	return member_can_set_role(member, role);
#else
	return is_member_of_role(member, role);
#endif
}

/* 16: one ownership check for all kinds of objects */
static inline bool
cdc_database_ownercheck(Oid database, Oid role)
{
#if PG_VERSION_NUM >= 160000
	return object_ownercheck(DatabaseRelationId, database, role);
#else
	return pg_database_ownercheck(database, role);
#endif
}

static inline bool
cdc_extension_ownercheck(Oid extension, Oid role)
{
#if PG_VERSION_NUM >= 160000
	return object_ownercheck(ExtensionRelationId, extension, role);
#else
	return pg_extension_ownercheck(extension, role);
#endif
}

/* 16: one privilege check for all kinds of objects */
static inline bool
cdc_foreign_server_usage(Oid server, Oid role)
{
#if PG_VERSION_NUM >= 160000
	return object_aclcheck(ForeignServerRelationId, server, role, ACL_USAGE) == ACLCHECK_OK;
#else
	return pg_foreign_server_aclcheck(server, role, ACL_USAGE) == ACLCHECK_OK;
#endif
}

static inline bool
cdc_database_connect(Oid database, Oid role)
{
#if PG_VERSION_NUM >= 160000
	return object_aclcheck(DatabaseRelationId, database, role, ACL_CONNECT) == ACLCHECK_OK;
#else
	return pg_database_aclcheck(database, role, ACL_CONNECT) == ACLCHECK_OK;
#endif
}

/* 16: one privilege check for all kinds of objects (rights that a pipeline's creator needs) */
static inline bool
cdc_database_create(Oid database, Oid role)
{
#if PG_VERSION_NUM >= 160000
	return object_aclcheck(DatabaseRelationId, database, role, ACL_CREATE) == ACLCHECK_OK;
#else
	return pg_database_aclcheck(database, role, ACL_CREATE) == ACLCHECK_OK;
#endif
}

static inline bool
cdc_namespace_create(Oid nsp, Oid role)
{
#if PG_VERSION_NUM >= 160000
	return object_aclcheck(NamespaceRelationId, nsp, role, ACL_CREATE) == ACLCHECK_OK;
#else
	return pg_namespace_aclcheck(nsp, role, ACL_CREATE) == ACLCHECK_OK;
#endif
}

/* 16: run_as_table_owner */
static inline void
cdc_truncate_relation(Relation rel)
{
	List	   *rels = list_make1(rel);
	List	   *relids = list_make1_oid(RelationGetRelid(rel));

#if PG_VERSION_NUM >= 160000
	ExecuteTruncateGuts(rels, relids, NIL, DROP_RESTRICT, false, false);
#else
	ExecuteTruncateGuts(rels, relids, NIL, DROP_RESTRICT, false);
#endif
}

/* 18: no mode for a column that is being added */
static inline void
cdc_store_attr_default(Relation rel, AttrNumber attnum, Node *expr)
{
#if PG_VERSION_NUM >= 180000
	(void) StoreAttrDefault(rel, attnum, expr, true);
#else
	(void) StoreAttrDefault(rel, attnum, expr, true, false);
#endif
}

/* 16: number of partitions; without asking for rights, quietly */
static inline void
cdc_define_index(Oid relid, IndexStmt *stmt)
{
#if PG_VERSION_NUM >= 160000
	(void) DefineIndex(relid, stmt, InvalidOid, InvalidOid, InvalidOid, -1, true, false, false, false, true);
#else
	(void) DefineIndex(relid, stmt, InvalidOid, InvalidOid, InvalidOid, true, false, false, false, true);
#endif
}

/* 18: instrumentation argument */
static inline IndexScanDesc
cdc_index_beginscan(Relation heap, Relation index, Snapshot snapshot, int nkeys)
{
#if PG_VERSION_NUM >= 180000
	return index_beginscan(heap, index, snapshot, NULL, nkeys, 0);
#else
	return index_beginscan(heap, index, snapshot, nkeys, 0);
#endif
}

/* 16: errors may be returned; we want them thrown */
static inline TypeName *
cdc_type_name_from_string(const char *text)
{
#if PG_VERSION_NUM >= 160000
	return typeStringToTypeName(text, NULL);
#else
	return typeStringToTypeName(text);
#endif
}

/* 16: another name. Background workers of all kinds that are there now. */
static inline int
cdc_count_background_workers(void)
{
	int			n = pgstat_fetch_stat_numbackends();
	int			count = 0;

	for (int i = 1; i <= n; i++)
	{
#if PG_VERSION_NUM >= 160000
		const LocalPgBackendStatus *entry = pgstat_get_local_beentry_by_index(i);
#else
		const LocalPgBackendStatus *entry = pgstat_fetch_stat_local_beentry(i);
#endif

		count += entry != NULL && entry->backendStatus.st_backendType == B_BG_WORKER;
	}
	return count;
}

/* 16: another name. When the transaction of that process began; 0: there is none. */
static inline TimestampTz
cdc_transaction_start(int pid)
{
	int			n = pgstat_fetch_stat_numbackends();

	for (int i = 1; i <= n; i++)
	{
#if PG_VERSION_NUM >= 160000
		const LocalPgBackendStatus *entry = pgstat_get_local_beentry_by_index(i);
#else
		const LocalPgBackendStatus *entry = pgstat_fetch_stat_local_beentry(i);
#endif

		if (entry != NULL && entry->backendStatus.st_procpid == pid)
			return entry->backendStatus.st_xact_start_timestamp;
	}
	return 0;
}

/* 16: indexes of which only summaries change; 18: where a locale says that it compares bytes */
static inline TM_Result
cdc_table_tuple_update(Relation rel, ItemPointer tid, TupleTableSlot *slot, CommandId cid, Snapshot snapshot,
					   bool *update_indexes, bool *only_summarizing)
{
	TM_FailureData failure;
	LockTupleMode mode;
	TM_Result	result;
#if PG_VERSION_NUM >= 160000
	TU_UpdateIndexes which;

	result = table_tuple_update(rel, tid, slot, cid, snapshot, InvalidSnapshot, true, &failure, &mode, &which);
	*update_indexes = which != TU_None;
	*only_summarizing = which == TU_Summarizing;
#else
	result = table_tuple_update(rel, tid, slot, cid, snapshot, InvalidSnapshot, true, &failure, &mode, update_indexes);
	*only_summarizing = false;
#endif
	return result;
}

static inline void
cdc_insert_index_tuples(ResultRelInfo *result_rel, TupleTableSlot *slot, EState *estate, bool update,
						bool only_summarizing)
{
#if PG_VERSION_NUM >= 160000
	list_free(ExecInsertIndexTuples(result_rel, slot, estate, update, false, NULL, NIL, only_summarizing));
#else
	list_free(ExecInsertIndexTuples(result_rel, slot, estate, update, false, NULL, NIL));
#endif
}

static inline bool
cdc_collation_is_c(Oid collation)
{
#if PG_VERSION_NUM >= 180000
	return pg_newlocale_from_collation(collation)->collate_is_c;
#else
	return lc_collate_is_c(collation);
#endif
}

/* 18: max_replication_slots no longer limits origins */
#if PG_VERSION_NUM >= 180000
#define CDC_ORIGIN_LIMIT_SETTING "max_active_replication_origins"
#else
#define CDC_ORIGIN_LIMIT_SETTING "max_replication_slots"
#endif

/* ---- executor state of one result relation (heap/) ---- */

/* 16: permissions left the range table entry; 18: which relations are pruned. Sets are offset as in RTEs. */
static inline void
cdc_init_range_table(EState *estate, RangeTblEntry *rte, Bitmapset *updated, Bitmapset *generated)
{
#if PG_VERSION_NUM >= 160000
	List	   *perminfos = NIL;
	RTEPermissionInfo *perminfo = addRTEPermissionInfo(&perminfos, rte);

	perminfo->updatedCols = updated;
#if PG_VERSION_NUM >= 180000
	ExecInitRangeTable(estate, list_make1(rte), perminfos, bms_make_singleton(1));
#else
	ExecInitRangeTable(estate, list_make1(rte), perminfos);
#endif
#else
	rte->updatedCols = updated;
	rte->extraUpdatedCols = generated;
	ExecInitRangeTable(estate, list_make1(rte));
#endif
}

/* 16: result relations argument */
static inline void
cdc_epq_init(EPQState *epq, EState *estate)
{
#if PG_VERSION_NUM >= 160000
	EvalPlanQualInit(epq, estate, NULL, NIL, -1, NIL);
#else
	EvalPlanQualInit(epq, estate, NULL, NIL, -1);
#endif
}

/* ---- logical decoding (decode/) ---- */

/* 17: tuples stand in changes as they are */
static inline HeapTuple
cdc_change_old_tuple(const ReorderBufferChange *change)
{
#if PG_VERSION_NUM >= 170000
	return change->data.tp.oldtuple;
#else
	return change->data.tp.oldtuple == NULL ? NULL : &change->data.tp.oldtuple->tuple;
#endif
}

static inline HeapTuple
cdc_change_new_tuple(const ReorderBufferChange *change)
{
#if PG_VERSION_NUM >= 170000
	return change->data.tp.newtuple;
#else
	return change->data.tp.newtuple == NULL ? NULL : &change->data.tp.newtuple->tuple;
#endif
}

/* 18: deferrable ones on demand; one that identifies rows is not */
static inline Oid
cdc_primary_key_index(Relation rel)
{
#if PG_VERSION_NUM >= 180000
	return RelationGetPrimaryKeyIndex(rel, false);
#else
	return RelationGetPrimaryKeyIndex(rel);
#endif
}

/* 18: publications ship stored generated columns when they are told to */
static inline bool
cdc_publication_has_generated_columns(const Publication *publication)
{
#if PG_VERSION_NUM >= 180000
	return publication->pubgencols_type == PUBLISH_GENCOLS_STORED;
#else
	return false;
#endif
}

/* 18: row filters may name virtual generated columns */
static inline Node *
cdc_expand_generated_columns(Node *node, Relation rel)
{
#if PG_VERSION_NUM >= 180000
	return expand_generated_columns_in_expr(node, rel, 1);
#else
	return node;
#endif
}

/* 17: may be flushed at once; it comes with its transaction here */
static inline void
cdc_log_message(const char *prefix, const char *content, size_t len)
{
#if PG_VERSION_NUM >= 170000
	(void) LogLogicalMessage(prefix, content, len, true, false);
#else
	(void) LogLogicalMessage(prefix, content, len, true);
#endif
}

/* ---- replication slots and the log (decode/) ---- */

/* 17: failover slots */
#if PG_VERSION_NUM >= 170000
#define CDC_HAS_FAILOVER_SLOTS true
#else
#define CDC_HAS_FAILOVER_SLOTS false
#endif

static inline void
cdc_replication_slot_create(const char *name, ReplicationSlotPersistency persistency, bool failover)
{
#if PG_VERSION_NUM >= 170000
	ReplicationSlotCreate(name, true, persistency, false, failover, false);
#else
	ReplicationSlotCreate(name, true, persistency, false);
#endif
}

/* 17: shall standbys have a copy of it, and is it one? The caller holds the slot's spinlock. */
static inline bool
cdc_slot_is_failover(const ReplicationSlot *slot)
{
#if PG_VERSION_NUM >= 170000
	return slot->data.failover;
#else
	return false;
#endif
}

static inline bool
cdc_slot_is_synced(const ReplicationSlot *slot)
{
#if PG_VERSION_NUM >= 170000
	return slot->data.synced;
#else
	return false;
#endif
}

/* 17; 18: two-phase too */
static inline void
cdc_slot_set_failover(const char *name, bool failover)
{
#if PG_VERSION_NUM >= 180000
	ReplicationSlotAlter(name, &failover, NULL);
#elif PG_VERSION_NUM >= 170000
	ReplicationSlotAlter(name, failover);
#endif
}

/* 17: do the standbys that synchronized_standby_slots names have the log up to there? */
static inline bool
cdc_standbys_have(XLogRecPtr lsn)
{
#if PG_VERSION_NUM >= 170000
	return StandbySlotsHaveCaughtup(lsn, DEBUG2);
#else
	return true;
#endif
}

/* 17: what wakes those who wait for that; NULL: nothing does */
static inline ConditionVariable *
cdc_standbys_confirmed(void)
{
#if PG_VERSION_NUM >= 170000
	return &WalSndCtl->wal_confirm_rcv_cv;
#else
	return NULL;
#endif
}

/* 18: may refuse a slot that is invalid */
static inline void
cdc_replication_slot_acquire(const char *name)
{
#if PG_VERSION_NUM >= 180000
	ReplicationSlotAcquire(name, true, true);
#else
	ReplicationSlotAcquire(name, true);
#endif
}

/* 16: reasons for giving up a slot. The caller holds the slot's spinlock. */
static inline bool
cdc_slot_is_invalidated(const ReplicationSlot *slot)
{
#if PG_VERSION_NUM >= 160000
	return slot->data.invalidated != RS_INVAL_NONE;
#else
	return !XLogRecPtrIsInvalid(slot->data.invalidated_at);
#endif
}

/* 16: what a flush of the log, or its replay on a standby, wakes; NULL: nothing does */
static inline ConditionVariable *
cdc_wal_flushed(void)
{
#if PG_VERSION_NUM >= 160000
	return RecoveryInProgress() ? &WalSndCtl->wal_replay_cv : &WalSndCtl->wal_flush_cv;
#else
	return NULL;
#endif
}

#endif							/* CDC_PG_COMPAT_H */
