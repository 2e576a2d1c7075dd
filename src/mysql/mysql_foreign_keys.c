/*-------------------------------------------------------------------------
 *
 * mysql_foreign_keys.c
 *	  Foreign keys of a source table that change its rows unseen.
 *
 * NOTES
 *	  ON DELETE and ON UPDATE CASCADE and SET NULL are done by InnoDB below the
 *	  binary log: the log has the change of the parent and nothing of the child
 *	  (seen on MariaDB 10.11 and 11.8). MySQL does it above the log from 9.6 on,
 *	  unless innodb_native_foreign_keys is on (seen on 9.7). A foreign key that
 *	  only refuses is of no interest.
 *
 *	  SET DEFAULT is no action in either server. What stands in information_schema
 *	  about foreign keys MariaDB hides from users who may only read the table, so
 *	  SHOW CREATE TABLE is asked.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "mysql/mysql_server.h"

/* First version of MySQL that logs what foreign keys do. */
#define LOGS_CASCADES 90600

static const char *
field_text(const MysqlRow *row, int field)
{
	return row->values[field] ? row->values[field] : "";
}

bool
mysql_server_logs_cascades(MysqlSession *session, const MysqlServerInfo *info)
{
	bool		native = false;
	MysqlRow	row;

	if (info->flavor == MYSQL_FLAVOR_MARIADB || info->version < LOGS_CASCADES)
		return false;
	mysql_session_query(session, "SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'");
	while (mysql_session_fetch(session, &row))
		native = pg_strcasecmp(field_text(&row, 1), "OFF") != 0 && strcmp(field_text(&row, 1), "0") != 0;
	return !native;
}

/* ------------------------------------------------------------------ SHOW CREATE TABLE */

/* A text that stands at *p is passed over. */
static bool
accept(const char **p, const char *text)
{
	size_t		len = strlen(text);

	if (strncmp(*p, text, len) != 0)
		return false;
	*p += len;
	return true;
}

/* A quoted name at *p; NULL when there is none. */
static char *
read_name(const char **p)
{
	StringInfoData name;
	const char *c = *p;

	if (*c != '`')
		return NULL;
	initStringInfo(&name);
	for (c++; *c != '\0'; c++)
	{
		if (*c == '`' && *++c != '`')
		{
			*p = c;
			return name.data;
		}
		appendStringInfoChar(&name, *c);
	}
	return NULL;
}

/* (`a`, `b`) */
static const char **
read_names(const char **p, uint32 *n)
{
	const char **names = NULL;

	*n = 0;
	if (!accept(p, "("))
		return NULL;
	do
	{
		char	   *name = read_name(p);

		if (name == NULL)
			return NULL;
		names = *n == 0 ? palloc(sizeof(char *)) : repalloc(names, sizeof(char *) * (*n + 1));
		names[(*n)++] = name;
	} while (accept(p, ",") && (accept(p, " ") || true));
	return accept(p, ")") ? names : NULL;
}

static CdcForeignAction
read_action(const char **p)
{
	if (accept(p, "CASCADE"))
		return CDC_FOREIGN_CASCADE;
	if (accept(p, "SET NULL"))
		return CDC_FOREIGN_SET_NULL;
	while (*p[0] != '\0' && *p[0] != '\n' && *p[0] != ',' && strncmp(*p, " ON ", 4) != 0)
		(*p)++;					/* NO ACTION, RESTRICT, SET DEFAULT */
	return CDC_FOREIGN_NOTHING;
}

/*
 * A line behind "CONSTRAINT ", as both servers print it:
 * `name` FOREIGN KEY (`a`, `b`) REFERENCES `schema`.`t` (`x`, `y`) ON DELETE ... ON UPDATE ...
 * The schema stands there when it is another one.
 */
static bool
read_foreign_key(const CdcTableDef *def, const char *line, CdcForeignKeyDef *key)
{
	const char *p = line;
	char	   *name;
	uint32		nparents;

	memset(key, 0, sizeof(*key));
	key->is_exact = true;
	key->name = read_name(&p);
	if (key->name == NULL || !accept(&p, " FOREIGN KEY "))
		return false;
	key->columns = read_names(&p, &key->ncolumns);
	if (key->columns == NULL || !accept(&p, " REFERENCES ") || (name = read_name(&p)) == NULL)
		return false;
	key->parent_schema = def->schema;
	key->parent_table = name;
	if (accept(&p, "."))
	{
		key->parent_schema = name;
		key->parent_table = read_name(&p);
	}
	if (key->parent_table == NULL || !accept(&p, " "))
		return false;
	key->parent_columns = read_names(&p, &nparents);
	if (key->parent_columns == NULL || nparents != key->ncolumns)
		return false;
	if (accept(&p, " ON DELETE "))
		key->on_delete = read_action(&p);
	if (accept(&p, " ON UPDATE "))
		key->on_update = read_action(&p);
	return true;
}

/* Foreign keys that do something; List of CdcForeignKeyDef. */
static List *
read_keys(MysqlSession *session, const CdcTableDef *def)
{
	static const char begin[] = "\n  CONSTRAINT ";
	List	   *keys = NIL;
	MysqlRow	row;
	char	   *text;

	mysql_session_query(session, psprintf("SHOW CREATE TABLE %s.%s",
										  mysql_quote_identifier(def->schema), mysql_quote_identifier(def->name)));
	if (!mysql_session_fetch(session, &row) || row.nfields < 2 || row.values[1] == NULL)
		return NIL;
	text = pnstrdup(row.values[1], row.lengths[1]);
	mysql_session_drain(session);
	for (const char *line = strstr(text, begin); line != NULL; line = strstr(line + 1, begin))
	{
		CdcForeignKeyDef *key = palloc(sizeof(CdcForeignKeyDef));

		if (read_foreign_key(def, line + strlen(begin), key) &&
			(key->on_delete != CDC_FOREIGN_NOTHING || key->on_update != CDC_FOREIGN_NOTHING))
			keys = lappend(keys, key);
	}
	return keys;
}

/* ----------------------------------------------------------------------- collations */

static char *
quoted(const char *text)
{
	return mysql_quote_literal(text, strlen(text));
}

/* Columns whose collation takes different texts for equal. */
static void
find_inexact(MysqlSession *session, const CdcTableDef *def, List *keys)
{
	MysqlRow	row;

	mysql_session_query(session,
						psprintf("SELECT column_name, collation_name, table_schema, table_name FROM information_schema.columns "
								 "WHERE table_schema = %s AND table_name = %s AND collation_name IS NOT NULL",
								 quoted(def->schema), quoted(def->name)));
	while (mysql_session_fetch(session, &row))
	{
		const char *collation = field_text(&row, 1);
		size_t		len = strlen(collation);
		ListCell   *lc;

		if ((len > 4 && strcmp(collation + len - 4, "_bin") == 0) || strcmp(collation, "binary") == 0 ||
			strcmp(field_text(&row, 2), def->schema) != 0 || strcmp(field_text(&row, 3), def->name) != 0)
			continue;
		foreach(lc, keys)
		{
			CdcForeignKeyDef *key = lfirst(lc);

			for (uint32 i = 0; i < key->ncolumns; i++)
				key->is_exact = key->is_exact && pg_strcasecmp(key->columns[i], field_text(&row, 0)) != 0;
		}
	}
}

void
mysql_server_read_foreign_keys(MysqlSession *session, const MysqlServerInfo *info, CdcTableDef *def)
{
	CdcForeignKeyDef *result;
	List	   *keys;
	ListCell   *lc;

	if (!mysql_server_logs_cascades(session, info))
		def->known |= CDC_FOREIGN_UNLOGGED;
	keys = read_keys(session, def);
	if (keys == NIL)
		return;
	find_inexact(session, def, keys);
	result = palloc(sizeof(CdcForeignKeyDef) * list_length(keys));
	foreach(lc, keys)
		result[def->nforeign++] = *(const CdcForeignKeyDef *) lfirst(lc);
	def->foreign_keys = result;
}
