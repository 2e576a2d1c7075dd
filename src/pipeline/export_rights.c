/*-------------------------------------------------------------------------
 *
 * export_rights.c
 *	  May a pipeline's owner read what it ships?
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"

#include "pipeline/export_rights.h"

struct ExportRights
{
	XLogRecPtr	lsn;			/* the log's end when it was looked at */
	bool		all;			/* everything may be read */
	HTAB	   *tables;			/* Readable */
};

typedef struct Readable
{
	Oid			relid;			/* hash key */
	bool		whole;
	Bitmapset  *columns;		/* attribute numbers, unless it is the whole table */
} Readable;

static bool
is_hidden(Oid relid, Oid role)
{
	return check_enable_rls(relid, role, true) == RLS_ENABLED;
}

/* Attribute numbers that the role may read of a table of which it may not read all. */
static Bitmapset *
readable_columns(Oid relid, Oid role, int natts)
{
	Bitmapset  *columns = NULL;

	if (pg_attribute_aclcheck_all(relid, role, ACL_SELECT, ACLMASK_ANY) != ACLCHECK_OK)
		return NULL;
	for (int attno = 1; attno <= natts; attno++)
	{
		if (get_attname(relid, (AttrNumber) attno, true) != NULL &&
			pg_attribute_aclcheck(relid, (AttrNumber) attno, role, ACL_SELECT) == ACLCHECK_OK)
			columns = bms_add_member(columns, attno);
	}
	return columns;
}

static void
note(ExportRights *rights, Oid relid, Oid role, int natts)
{
	bool		whole = pg_class_aclcheck(relid, role, ACL_SELECT) == ACLCHECK_OK;
	Bitmapset  *columns = whole ? NULL : readable_columns(relid, role, natts);
	Readable   *entry;

	if ((!whole && columns == NULL) || is_hidden(relid, role))
		return;
	entry = hash_search(rights->tables, &relid, HASH_ENTER, NULL);
	entry->whole = whole;
	entry->columns = columns;
}

ExportRights *
export_rights_load(const CatalogPipeline *pipeline)
{
	ExportRights *rights = palloc0(sizeof(ExportRights));
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(Readable),.hcxt = CurrentMemoryContext};
	Relation	classes;
	SysScanDesc scan;
	HeapTuple	tuple;

	rights->lsn = GetXLogInsertRecPtr();
	rights->all = superuser_arg(pipeline->owner);
	if (rights->all)
		return rights;
	rights->tables = hash_create("cdc readable tables", 128, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	classes = table_open(RelationRelationId, AccessShareLock);
	scan = systable_beginscan(classes, InvalidOid, false, NULL, 0, NULL);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		if (form->relkind == RELKIND_RELATION || form->relkind == RELKIND_PARTITIONED_TABLE)
			note(rights, form->oid, pipeline->owner, form->relnatts);
	}
	systable_endscan(scan);
	table_close(classes, AccessShareLock);
	return rights;
}

/* Names of the columns that may not be read, as in GRANT SELECT (...); NIL: all of them may. */
static List *
missing_columns(const Readable *now, Oid role, Relation relation, const Bitmapset *columns)
{
	Oid			relid = RelationGetRelid(relation);
	List	   *missing = NIL;
	int			attno = -1;

	if (pg_class_aclcheck(relid, role, ACL_SELECT) == ACLCHECK_OK)
		return NIL;
	while ((attno = bms_next_member(columns, attno)) >= 0)
	{
		if (pg_attribute_aclcheck(relid, (AttrNumber) attno, role, ACL_SELECT) == ACLCHECK_OK ||
			(now != NULL && bms_is_member(attno, now->columns)))
			continue;
		missing = lappend(missing, unconstify(char *, quote_identifier(NameStr(TupleDescAttr(RelationGetDescr(relation), attno - 1)->attname))));
	}
	return missing;
}

static char *
table_text(Relation relation)
{
	return quote_qualified_identifier(get_namespace_name(RelationGetNamespace(relation)), RelationGetRelationName(relation));
}

static _Noreturn void
throw_hidden(const CatalogPipeline *pipeline, Relation relation)
{
	const char *role = quote_identifier(GetUserNameFromId(pipeline->owner, false));

	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("row-level security of table %s applies to the owner of pipeline \"%s\"", table_text(relation), pipeline->name),
			 errdetail("The pipeline would ship rows that %s may not read.", role),
			 errhint("Run ALTER ROLE %s BYPASSRLS, or leave the table out with cdc_remove_table().", role)));
}

static _Noreturn void
throw_missing(const CatalogPipeline *pipeline, Relation relation, const List *missing, bool whole)
{
	const char *table = table_text(relation);
	StringInfoData names;
	ListCell   *lc;

	initStringInfo(&names);
	foreach(lc, missing)
		appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", (const char *) lfirst(lc));
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for table %s", table),
			 errdetail("The owner of pipeline \"%s\" needs SELECT on every column that it ships; missing: %s.", pipeline->name, names.data),
			 errhint("Run GRANT SELECT%s ON %s TO %s, or leave the table out with cdc_remove_table().",
					 whole ? "" : psprintf(" (%s)", names.data), table, quote_identifier(GetUserNameFromId(pipeline->owner, false)))));
}

void
export_rights_check(const ExportRights *rights, XLogRecPtr lsn, const CatalogPipeline *pipeline, Relation relation,
					const Bitmapset *columns)
{
	Oid			relid = RelationGetRelid(relation);
	const Readable *now = NULL;
	List	   *missing;

	if (rights != NULL && lsn < rights->lsn)
	{
		if (rights->all)
			return;
		now = hash_search(rights->tables, &relid, HASH_FIND, NULL);
	}
	if (now != NULL && now->whole)
		return;
	missing = missing_columns(now, pipeline->owner, relation, columns);
	if (missing != NIL)
		throw_missing(pipeline, relation, missing, list_length(missing) == bms_num_members(columns));
	if (now == NULL && is_hidden(relid, pipeline->owner))
		throw_hidden(pipeline, relation);
}
