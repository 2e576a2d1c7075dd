/*-------------------------------------------------------------------------
 *
 * heap_hint.c
 *	  What helps when a target cannot be altered.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "compat/pg_compat.h"
#include "heap/heap_hint.h"

/* Targets are altered as their owner, who may have fewer rights than the pipeline's. */
static char *
rights_hint(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Form_pg_class rel;
	char	   *hint = NULL;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	rel = (Form_pg_class) GETSTRUCT(tuple);
	if (!cdc_namespace_create(rel->relnamespace, rel->relowner))
		hint = psprintf("The target belongs to role \"%s\", as whom it is altered: run GRANT CREATE ON SCHEMA %s TO %s, then use cdc_resync_table().",
						GetUserNameFromId(rel->relowner, false), quote_identifier(get_namespace_name(rel->relnamespace)),
						quote_identifier(GetUserNameFromId(rel->relowner, false)));
	ReleaseSysCache(tuple);
	return hint;
}

char *
heap_ddl_hint(Oid relid, int sqlstate)
{
	switch (sqlstate)
	{
		case ERRCODE_TOO_MANY_COLUMNS:
			return pstrdup("Columns that were dropped count for ever, also after a new copy. Drop the target, with what depends on it, then use cdc_resync_table(), which makes it anew.");
		case ERRCODE_INSUFFICIENT_PRIVILEGE:
			return rights_hint(relid);
		default:
			return NULL;
	}
}
