/*-------------------------------------------------------------------------
 *
 * api_change_kinds.c
 *	  Which kinds of changes of tables a statement makes, by its parse tree.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/parsenodes.h"

#include "api/api_change_kinds.h"
#include "catalog/catalog_history.h"

static uint32
kinds_of_command(const AlterTableCmd *command)
{
	switch (command->subtype)
	{
		case AT_AddColumn:
			return CATALOG_CHANGE_BIT(CATALOG_CHANGE_ADD_COLUMN);
		case AT_DropColumn:
			return CATALOG_CHANGE_BIT(CATALOG_CHANGE_DROP_COLUMN);
		case AT_AlterColumnType:
			return CATALOG_CHANGE_BIT(CATALOG_CHANGE_ALTER_TYPE);
		case AT_ColumnDefault:
		case AT_AddIdentity:
		case AT_SetIdentity:
		case AT_DropIdentity:
		case AT_DropExpression:
			return CATALOG_CHANGE_BIT(CATALOG_CHANGE_ALTER_DEFAULT);
		case AT_SetNotNull:
		case AT_DropNotNull:
			return CATALOG_CHANGE_BIT(CATALOG_CHANGE_ALTER_NULLABILITY);
		case AT_AddConstraint:
		case AT_AddIndex:
		case AT_AddIndexConstraint:
		case AT_DropConstraint:
		case AT_ReplicaIdentity:
			return CATALOG_CHANGE_BIT(CATALOG_CHANGE_ALTER_KEY);
		case AT_SetLogged:
			return CATALOG_CHANGE_BIT(CATALOG_CHANGE_CREATE_TABLE);
		case AT_SetUnLogged:
			return CATALOG_CHANGE_BIT(CATALOG_CHANGE_DROP_TABLE);
		default:
			return 0;
	}
}

static uint32
kinds_of_renaming(const RenameStmt *statement)
{
	switch (statement->renameType)
	{
		case OBJECT_COLUMN:
		case OBJECT_ATTRIBUTE:
			return CATALOG_CHANGE_BIT(CATALOG_CHANGE_RENAME_COLUMN);
		case OBJECT_TYPE:
		case OBJECT_DOMAIN:
			return CATALOG_CHANGE_BIT(CATALOG_CHANGE_ALTER_TYPE);
		case OBJECT_TABCONSTRAINT:
			return 0;
		default:
			return CATALOG_CHANGE_BIT(CATALOG_CHANGE_RENAME_TABLE);
	}
}

uint32
api_change_kinds(const Node *statement)
{
	uint32		kinds = 0;
	ListCell   *lc;

	if (statement == NULL)
		return 0;
	switch (nodeTag(statement))
	{
		case T_AlterTableStmt:
			foreach(lc, ((const AlterTableStmt *) statement)->cmds)
				kinds |= kinds_of_command(lfirst(lc));
			return kinds;
		case T_RenameStmt:
			return kinds_of_renaming((const RenameStmt *) statement);
		case T_AlterObjectSchemaStmt:
			return CATALOG_CHANGE_BIT(CATALOG_CHANGE_RENAME_TABLE);
		case T_CreateStmt:
		case T_CreateTableAsStmt:
		case T_CreateSchemaStmt:
			return CATALOG_CHANGE_BIT(CATALOG_CHANGE_CREATE_TABLE);
		case T_IndexStmt:
			return CATALOG_CHANGE_BIT(CATALOG_CHANGE_INDEX);
		case T_AlterEnumStmt:
		case T_AlterTypeStmt:
			return CATALOG_CHANGE_BIT(CATALOG_CHANGE_ALTER_TYPE);
		case T_DropStmt:
		case T_DropOwnedStmt:
			/* of tables that are still there it took columns away: DROP TYPE ... CASCADE */
			return CATALOG_CHANGE_BIT(CATALOG_CHANGE_DROP_COLUMN);
		default:
			return 0;
	}
}
