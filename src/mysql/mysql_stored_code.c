/*-------------------------------------------------------------------------
 *
 * mysql_stored_code.c
 *	  Triggers and stored routines of the source.
 *
 * NOTES
 *	  What they do is in a log of rows like everything else. A log of statements
 *	  has only the statement that ran them (seen on MariaDB 10.11 and MySQL 9), so
 *	  whoever finds one has to know what stands behind it.
 *
 *	  information_schema shows triggers to who has TRIGGER on their table, and
 *	  bodies of routines to who may see their definition; the rest it leaves out
 *	  without a word.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "mysql/mysql_server.h"

/* Definition of the server's own schemas is not asked for. */
#define NOT_OF_SYSTEM "NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')"

/* So much text of bodies is kept; those that do not fit count as not seen. */
#define BODIES_MAX (32 * 1024 * 1024)

static List *
read_code(MysqlSession *session, const char *sql, bool is_trigger, List *codes, Size *size)
{
	MysqlRow	row;

	mysql_session_query(session, sql);
	while (mysql_session_fetch(session, &row))
	{
		MysqlStoredCode *code;

		if (row.nfields < 3 || row.values[0] == NULL || row.values[1] == NULL)
			continue;
		code = palloc0(sizeof(MysqlStoredCode));
		code->is_trigger = is_trigger;
		code->schema = pnstrdup(row.values[0], row.lengths[0]);
		code->name = pnstrdup(row.values[1], row.lengths[1]);
		if (row.values[2] != NULL && *size + row.lengths[2] <= BODIES_MAX)
		{
			*size += row.lengths[2];
			code->body = pnstrdup(row.values[2], row.lengths[2]);
			code->len = row.lengths[2];
		}
		codes = lappend(codes, code);
	}
	return codes;
}

List *
mysql_server_stored_code(MysqlSession *session)
{
	Size		size = 0;
	List	   *codes = read_code(session,
								  "SELECT event_object_schema, event_object_table, action_statement FROM information_schema.triggers "
								  "WHERE event_object_schema " NOT_OF_SYSTEM, true, NIL, &size);

	return read_code(session,
					 "SELECT routine_schema, routine_name, routine_definition FROM information_schema.routines "
					 "WHERE routine_schema " NOT_OF_SYSTEM, false, codes, &size);
}
