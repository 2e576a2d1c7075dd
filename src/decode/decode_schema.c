/*-------------------------------------------------------------------------
 *
 * decode_schema.c
 *	  Messages that the event triggers left about statements -> definitions of
 *	  tables, at their place in the transaction.
 *
 * NOTES
 *	  The message names tables; their definitions are read here, from the catalogs
 *	  as they were behind the statement. So what is told is what rows that follow
 *	  look like, with the columns that are shipped.
 *
 *	  Anybody may have written the message (core/schema_message.h). What it says
 *	  counts only as far as these catalogs agree: a table is gone when there is
 *	  none of that name, it had another name when nobody has that name now.
 *
 *	  No relation is locked here: whoever holds a table for long must not stop the
 *	  decoding. That is why the expression of a generated column is not told, to
 *	  write it down takes a lock on its table.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/tupdesc_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_enum.h"
#include "nodes/nodes.h"
#include "tcop/cmdtag.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"

#include "catalog/catalog_history.h"
#include "decode/decode_private.h"
#include "util/util_arena.h"
#include "util/util_error.h"

/* More is not read of one message; the writer begins another one long before. */
#define MESSAGE_MAX (64 * 1024 * 1024)

bool
decode_schema_open(const char *content, Size size, List **items)
{
	CdcCursor	cursor;
	CdcArena	arena;
	CdcSchemaItem item;
	CdcStatus	status = CDC_MALFORMED;

	*items = NIL;
	cdc_arena_init(&arena, util_context_allocator(CurrentMemoryContext), 0);
	if (size <= MESSAGE_MAX)
		status = cdc_schema_message_open(&cursor, content, size);
	while (status == CDC_OK)
	{
		status = cdc_schema_message_next(&cursor, &arena, &item);
		if (status == CDC_OK && GetCommandTagEnum(item.command) == CMDTAG_UNKNOWN)
			status = CDC_MALFORMED;
		if (status == CDC_OK)
			*items = lappend(*items, memcpy(palloc(sizeof(item)), &item, sizeof(item)));
	}
	return status == CDC_END;
}

/* Is there a table of that name whose changes are logged? */
static bool
name_is_taken(const char *schema, const char *name)
{
	Oid			nsp = get_namespace_oid(schema, true);
	Oid			relid = OidIsValid(nsp) ? get_relname_relid(name, nsp) : InvalidOid;
	char		kind = OidIsValid(relid) ? get_rel_relkind(relid) : '\0';

	return (kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE) &&
		get_rel_persistence(relid) == RELPERSISTENCE_PERMANENT;
}

/* ---- columns ---- */

static const char *
default_text(TupleDesc desc, AttrNumber attnum)
{
	for (int i = 0; desc->constr != NULL && i < desc->constr->num_defval; i++)
	{
		if (desc->constr->defval[i].adnum == attnum)
			return deparse_expression(stringToNode(desc->constr->defval[i].adbin), NIL, false, false);
	}
	return NULL;
}

static void
set_labels(CdcOutColumnInfo *info, Oid typid)
{
	Relation	rel = table_open(EnumRelationId, AccessShareLock);
	Relation	index = index_open(EnumTypIdSortOrderIndexId, AccessShareLock);
	List	   *labels = NIL;
	const char **array;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	ListCell   *lc;

	ScanKeyInit(&key, Anum_pg_enum_enumtypid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(typid));
	scan = systable_beginscan_ordered(rel, index, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext_ordered(scan, ForwardScanDirection)))
		labels = lappend(labels, pstrdup(NameStr(((Form_pg_enum) GETSTRUCT(tuple))->enumlabel)));
	systable_endscan_ordered(scan);
	index_close(index, AccessShareLock);
	table_close(rel, AccessShareLock);

	array = palloc(sizeof(char *) * Max(list_length(labels), 1));
	foreach(lc, labels)
		array[info->nlabels++] = lfirst(lc);
	info->labels = array;
}

/* Cells of what is passed through as it is; what is computed is not known here. */
static CdcCell *
passed_cells(const DecodeRelation *entry, const DecodeRow *row)
{
	uint32		n = entry->table->ncolumns;
	DecodeRow	passed = {
		.values = palloc0(sizeof(Datum) * Max(n, 1)),
		.nulls = palloc0(sizeof(bool) * Max(n, 1))
	};

	for (uint32 i = 0; i < n; i++)
	{
		int			source = decode_transform_source(entry, (int) i);

		passed.nulls[i] = source < 0 || row->nulls[source];
		passed.values[i] = passed.nulls[i] ? (Datum) 0 : row->values[source];
	}
	return decode_row_cells(entry, &passed, false);
}

/* P18: what a row that is older than a column reads in it, in the form that rows have. */
static CdcCell *
existing_values(const DecodeRelation *entry, TupleDesc desc, bool *is_present)
{
	DecodeRow	row = {
		.values = palloc0(sizeof(Datum) * Max(desc->natts, 1)),
		.nulls = palloc0(sizeof(bool) * Max(desc->natts, 1))
	};

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		is_present[i] = desc->constr != NULL && desc->constr->missing != NULL && att->atthasmissing && !att->attisdropped &&
			desc->constr->missing[i].am_present;
		row.nulls[i] = !is_present[i];
		if (is_present[i])
			row.values[i] = datumCopy(desc->constr->missing[i].am_value, att->attbyval, att->attlen);
	}
	return entry->transform == NULL ? decode_row_cells(entry, &row, false) : passed_cells(entry, &row);
}

static const CdcOutColumnInfo *
column_infos(const DecodeRelation *entry, Relation relation)
{
	TupleDesc	desc = RelationGetDescr(relation);
	CdcOutColumnInfo *infos = palloc0(sizeof(CdcOutColumnInfo) * Max(entry->table->ncolumns, 1));
	bool	   *is_present = palloc0(sizeof(bool) * Max(desc->natts, 1));
	const CdcCell *existing = existing_values(entry, desc, is_present);

	for (uint32 i = 0; i < entry->table->ncolumns; i++)
	{
		int			attno = entry->transform == NULL ? entry->columns[i].attno : decode_transform_source(entry, (int) i);
		Form_pg_attribute att = attno < 0 ? NULL : TupleDescAttr(desc, attno);
		CdcOutColumnInfo *info = &infos[i];

		info->existing.kind = CDC_CELL_ABSENT;
		if (entry->columns[i].type == CDC_OUT_ENUM)
			set_labels(info, entry->columns[i].typid);
		if (att == NULL)
			continue;
		info->is_generated = att->attgenerated != '\0';
		if (!info->is_generated && att->atthasdef)
			info->default_text = default_text(desc, att->attnum);
		info->identity = att->attidentity;
		if (is_present[attno])
			info->existing = existing[i];
	}
	return infos;
}

static bool
has_column(const CdcOutTable *table, const char *name)
{
	for (uint32 i = 0; i < table->ncolumns; i++)
	{
		if (strcmp(table->columns[i].name, name) == 0)
			return true;
	}
	return false;
}

/* ---- tables ---- */

static CdcOutTable *
name_only(uint32 relid, const char *schema, const char *name)
{
	CdcOutTable *table = palloc0(sizeof(CdcOutTable));

	table->relid = relid;
	table->schema = schema;
	table->name = name;
	return table;
}

/* A table's name as the receiver knows it, and nothing else of it; NULL: it knows none. */
static CdcOutTable *
routed_name_only(const DecodeState *state, uint32 relid, const char *schema, const char *name)
{
	const char *out_schema;
	const char *out_name;

	return decode_route_find(state, schema, name, &out_schema, &out_name) ? name_only(relid, out_schema, out_name) : NULL;
}

/* Do rows come under the name of such a table, whatever that is? */
static bool
has_own_name(const DecodeState *state, bool is_partitioned, bool is_partition)
{
	if (state->options.publications != NIL)
		return true;
	return state->options.via_root ? !is_partition : !is_partitioned;
}

static void
set_definition(const CdcSchemaItem *item, const DecodeRelation *entry, Relation relation, CdcOutSchemaChange *change)
{
	change->columns = column_infos(entry, relation);
	change->rewritten = item->rewritten;
	if (item->old_column != NULL && has_column(entry->table, item->new_name) && !has_column(entry->table, item->old_column))
	{
		change->old_column = item->old_column;
		change->new_column = item->new_name;
	}
}

/* Nobody has the name that it says a table had. */
static bool
has_former_name(const CdcSchemaItem *item)
{
	return item->old_name != NULL && !name_is_taken(item->old_schema, item->old_name);
}

/* A table that is there: what it is called, was called, and which of both is shipped. */
static bool
describe(DecodeState *state, const CdcSchemaItem *item, Relation relation, CdcRecord *record)
{
	const DecodeRelation *entry = decode_relation_get(state, relation);
	bool		is_shipped = entry->actions != 0 && entry->publish_as == RelationGetRelid(relation);
	bool		is_renamed = has_former_name(item);
	bool		was_shipped = is_shipped;
	const CdcOutTable *old = NULL;
	CdcOutSchemaChange *change;

	if (is_renamed && state->options.publications == NIL)
		was_shipped = has_own_name(state, relation->rd_rel->relkind == RELKIND_PARTITIONED_TABLE, relation->rd_rel->relispartition) &&
			decode_name_is_wanted(state, item->old_schema, item->old_name);
	if (is_renamed)
		old = routed_name_only(state, RelationGetRelid(relation), item->old_schema, item->old_name);
	if (!is_shipped && (!was_shipped || old == NULL))
		return false;

	record->schema_change = change = palloc0(sizeof(CdcOutSchemaChange));
	change->command = item->command;
	if (!is_shipped)
	{
		change->op = CDC_OUT_DROP;
		record->table = old;
		change->new_schema = get_namespace_name(RelationGetNamespace(relation));
		change->new_name = pstrdup(RelationGetRelationName(relation));
		return true;
	}
	change->op = was_shipped && strncmp(item->command, "CREATE", 6) != 0 && strcmp(item->command, "SELECT INTO") != 0 ? CDC_OUT_ALTER : CDC_OUT_CREATE;
	record->table = entry->table;
	if (old != NULL && (strcmp(old->schema, entry->table->schema) != 0 || strcmp(old->name, entry->table->name) != 0))
	{
		change->old_schema = old->schema;
		change->old_name = old->name;
	}
	set_definition(item, entry, relation, change);
	return true;
}

/* What a table was called before the statement, as far as that can be true. */
static void
set_former_name(const CdcSchemaItem *item, Relation relation, DecodeStatement *statement)
{
	if (has_former_name(item))
	{
		statement->schema = item->old_schema;
		statement->name = item->old_name;
		return;
	}
	statement->schema = get_namespace_name(RelationGetNamespace(relation));
	statement->name = pstrdup(RelationGetRelationName(relation));
}

static bool
table_record(DecodeState *state, const CdcSchemaItem *item, CdcRecord *record, DecodeStatement *statement)
{
	Relation	relation;
	char		kind;
	bool		result = false;

	/* no statement says so of the server's own tables, and rights to them are nobody's question */
	if (item->relid < FirstNormalObjectId)
		return false;
	relation = RelationIdGetRelation(item->relid);
	if (!RelationIsValid(relation))
		return false;
	kind = relation->rd_rel->relkind;
	if ((kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE) &&
		relation->rd_rel->relpersistence == RELPERSISTENCE_PERMANENT)
	{
		set_former_name(item, relation, statement);
		result = describe(state, item, relation, record);
	}
	RelationClose(relation);
	return result;
}

/* Was a table that is gone published? Its own entries in the catalog of publications went with it, and the message has them. */
static bool
was_published(DecodeState *state, const CdcSchemaItem *item, const List *items)
{
	const List *names = state->options.publications;
	ListCell   *lc;
	ListCell   *lc2;

	if (names == NIL || decode_publications_have_schema(state, item->schema))
		return true;
	foreach(lc, items)
	{
		const CdcSchemaItem *other = lfirst(lc);

		if (other->kind != CDC_SCHEMA_UNPUBLISHED || strcmp(other->schema, item->schema) != 0 ||
			(other->name != NULL && strcmp(other->name, item->name) != 0))
			continue;
		foreach(lc2, names)
		{
			if (strcmp(lfirst(lc2), other->new_name) == 0)
				return true;
		}
	}
	return false;
}

static bool
gone_record(DecodeState *state, const CdcSchemaItem *item, const List *items, CdcRecord *record)
{
	CdcOutSchemaChange *change;

	if (!decode_name_is_wanted(state, item->schema, item->name) || !has_own_name(state, item->is_partitioned, item->is_partition) ||
		name_is_taken(item->schema, item->name) || !was_published(state, item, items))
		return false;
	record->table = routed_name_only(state, item->relid, item->schema, item->name);
	if (record->table == NULL)
		return false;
	record->schema_change = change = palloc0(sizeof(CdcOutSchemaChange));
	change->op = CDC_OUT_DROP;
	change->command = item->command;
	return true;
}

/* ---- what the rules say ---- */

static const CatalogChangeRules *next_rules;

void
decode_change_rules_use(const CatalogChangeRules *rules)
{
	next_rules = rules;
}

void
decode_change_rules_attach(DecodeState *state)
{
	state->change_rules = next_rules;
	next_rules = NULL;
}

/* A statement is left out when everything that it did is. */
static CatalogChangeMode
mode_of(const CatalogChangeRules *rules, uint32 kinds)
{
	CatalogChangeMode mode = kinds == 0 ? rules->mode : CATALOG_MODE_IGNORE;

	for (int kind = 0; kind < CATALOG_CHANGE_KINDS; kind++)
	{
		if ((kinds & CATALOG_CHANGE_BIT(kind)) != 0 && catalog_change_mode(rules, (CatalogChangeKind) kind) != CATALOG_MODE_IGNORE)
			mode = rules->mode;
	}
	return mode;
}

/* A table that is new has nothing that could change. */
bool
decode_schema_is_wanted(const DecodeState *state, const CdcSchemaItem *item, const CdcRecord *record)
{
	CatalogChangeMode mode = state->change_rules == NULL ? CATALOG_MODE_EVOLVE : mode_of(state->change_rules, item->kinds);

	if (mode == CATALOG_MODE_EXCEPTION && record->schema_change->op != CDC_OUT_CREATE)
		ereport(ERROR,
				(errcode(CDC_ERRCODE_TABLE_CHANGED),
				 errmsg("table %s was changed by %s", quote_qualified_identifier(item->schema, item->name), item->command),
				 errdetail("Option \"schema_changes\" is \"exception\"."),
				 errhint("Make the receiver fit, then use cdc_resync_table(); or set the option to \"evolve\".")));
	return mode != CATALOG_MODE_IGNORE;
}

bool
decode_schema_record(DecodeState *state, const CdcSchemaItem *item, const List *items, CdcRecord *record, DecodeStatement *statement)
{
	switch (item->kind)
	{
		case CDC_SCHEMA_TABLE:
			return table_record(state, item, record, statement);
		case CDC_SCHEMA_GONE:
			return gone_record(state, item, items, record);
		case CDC_SCHEMA_UNPUBLISHED:
			break;
	}
	return false;
}
