/*-------------------------------------------------------------------------
 *
 * schema_row.c
 *	  A source table's rows as a row type of their own, before anything is
 *	  made of them.
 *
 * NOTES
 *	  The types are those that a target of the table would be made with, so an
 *	  expression over a row reads the same values that a plain mirror has.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "miscadmin.h"

#include "schema/schema_private.h"
#include "schema/table.h"

/*
 * Row type of a source table, with room for some more attributes, which the
 * caller fills in. In CurrentMemoryContext.
 */
TupleDesc
schema_row_type(const CdcTableDef *def, const SchemaTypeOptions *options, int extra)
{
	TupleDesc desc = CreateTemplateTupleDesc((int) def->ncolumns + extra);

	for (uint32 i = 0; i < def->ncolumns; i++)
	{
		const CdcColumnDef *column = &def->columns[i];
		char *why;
		char *type = schema_target_type_sql(def, column, options, &why);
		int32 typmod = -1;
		Oid typid = type != NULL ? schema_read_type(type, &typmod) : InvalidOid;

		if (type == NULL)
			ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
			                errmsg("column \"%s\" has no type in PostgreSQL",
			                       schema_server_string(column->name)),
			                errdetail_internal("%s.", why)));
		if (!OidIsValid(typid))
			elog(ERROR, "type \"%s\" does not exist", type);
		TupleDescInitEntry(desc, (AttrNumber) (i + 1), schema_column_name(column->name), typid,
		                   typmod, 0);
	}
	return desc;
}

SchemaTable *
schema_row_open(const CdcTableDef *def, TupleDesc desc, const bool *used, const bool *not_null,
                const SchemaPolicies *policies, Oid run_as, MemoryContext cxt)
{
	MemoryContext old = MemoryContextSwitchTo(cxt);
	SchemaTable *table = palloc0(sizeof(SchemaTable));

	table->def = def;
	table->natts = desc->natts;
	table->ncolumns = (int) def->ncolumns;
	table->columns = palloc0(Max(def->ncolumns, 1) * sizeof(SchemaColumn));
	schema_collect_key(def, table);
	for (int i = 0; i < table->ncolumns; i++)
	{
		SchemaColumn *column = &table->columns[i];
		Form_pg_attribute att = TupleDescAttr(desc, i);

		column->def = &def->columns[i];
		if (!used[i])
			continue;
		schema_column_init(column, &def->columns[i], att, cxt);
		schema_column_set_policies(column, policies, not_null[i]);
		if (att->atttypid >= FirstNormalObjectId && run_as != GetUserId())
			column->run_as = run_as;
	}
	MemoryContextSwitchTo(old);
	return table;
}

char *
schema_column_fault(const CdcColumnDef *column, Form_pg_attribute attribute)
{
	SchemaColumn prepared;
	char *why;

	if (schema_column_prepare(&prepared, column, attribute, CurrentMemoryContext, &why) &&
	    (column->key_part == 0 || schema_column_is_exact(&prepared, attribute, &why)))
		return NULL;
	return why;
}
