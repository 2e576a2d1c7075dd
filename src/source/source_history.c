/*-------------------------------------------------------------------------
 *
 * source_history.c
 *	  Does a server's log go on where a set of applied GTIDs ends?
 *
 * NOTES
 *	  Two questions, for a server that is not the one that was followed, and for
 *	  the one that was when its file is gone: does it have all that is applied
 *	  here, and does its log still have all that is not?
 *
 *	  MySQL answers by sets: gtid_executed, gtid_purged. MariaDB knows the last
 *	  sequence of each domain and server that it has logged (gtid_binlog_state),
 *	  and each file begins with that state as it was (Gtid_list): what lies before
 *	  the oldest file is what that file's list has. Sequences rise within a domain
 *	  (gtid_strict_mode), whichever server they came from. Our own set may lack
 *	  servers of a domain whose last transaction lies before our start mark; so
 *	  what is applied is compared by domain and server, what was purged by domain.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "source/source_history.h"
#include "util/util_error.h"

/* Columns of SHOW BINLOG EVENTS. */
enum
{
	COLUMN_EVENT_TYPE = 2,
	COLUMN_INFO = 5
};

/* Where SHOW SLAVE STATUS and its later names tell whether transactions are applied; SHOW ALL SLAVES STATUS has two more before. */
#define COLUMN_SQL_RUNNING 11
#define COLUMN_SQL_RUNNING_ALL 13

/* The Gtid_list is among the first events of a file. */
#define EVENTS_BEFORE_LIST 10

/* ---- MariaDB ---- */

typedef struct DomainGtid
{
	uint32		domain;
	uint32		server;
	uint64		sequence;
} DomainGtid;

/* Text of GTIDs, with commas and, around a Gtid_list, brackets -> List of DomainGtid. */
static List *
parse_gtids(const char *text)
{
	List	   *result = NIL;

	for (const char *p = text + strspn(text, ", []\r\n\t"); *p != '\0'; p += strspn(p, ", []\r\n\t"))
	{
		DomainGtid *gtid = palloc(sizeof(DomainGtid));
		unsigned long long sequence;
		int			used = 0;

		if (sscanf(p, "%u-%u-%llu%n", &gtid->domain, &gtid->server, &sequence, &used) != 3)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("could not read a set of global transaction ids")));
		gtid->sequence = sequence;
		result = lappend(result, gtid);
		p += used;
	}
	return result;
}

/* The one of that domain, and server unless any will do, with the highest sequence; NULL when there is none. */
static const DomainGtid *
find_last(List *gtids, const DomainGtid *like, bool any_server)
{
	const DomainGtid *result = NULL;
	ListCell   *lc;

	foreach(lc, gtids)
	{
		const DomainGtid *gtid = lfirst(lc);

		if (gtid->domain == like->domain && (any_server || gtid->server == like->server) &&
			(result == NULL || gtid->sequence > result->sequence))
			result = gtid;
	}
	return result;
}

/* Those of "from" that are the last ones of their domains. */
static List *
last_of_domains(List *from)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, from)
	{
		if (find_last(from, lfirst(lc), true) == lfirst(lc))
			result = lappend(result, lfirst(lc));
	}
	return result;
}

char *
source_history_domains(const char *gtids)
{
	StringInfoData buf;
	ListCell   *lc;

	initStringInfo(&buf);
	foreach(lc, last_of_domains(parse_gtids(gtids)))
	{
		const DomainGtid *gtid = lfirst(lc);

		appendStringInfo(&buf, "%s%u-%u-" UINT64_FORMAT, buf.len > 0 ? "," : "", gtid->domain, gtid->server, gtid->sequence);
	}
	return buf.data;
}

/* What "wanted" has behind the ends of "present": "0-1-96 to 0-1-100, 1-1-1 to 1-1-7"; NULL when that is nothing. */
static char *
difference(List *wanted, List *present, bool by_domain)
{
	StringInfoData buf;
	ListCell   *lc;

	initStringInfo(&buf);
	foreach(lc, wanted)
	{
		const DomainGtid *gtid = lfirst(lc);
		const DomainGtid *has = find_last(present, gtid, by_domain);

		if (has != NULL && has->sequence >= gtid->sequence)
			continue;
		appendStringInfoString(&buf, buf.len > 0 ? ", " : "");
		if (has == NULL || has->sequence + 1 < gtid->sequence)
			appendStringInfo(&buf, "%u-%u-" UINT64_FORMAT " to ", gtid->domain, gtid->server,
							 has != NULL ? has->sequence + 1 : 1);
		appendStringInfo(&buf, "%u-%u-" UINT64_FORMAT, gtid->domain, gtid->server, gtid->sequence);
	}
	return buf.len > 0 ? buf.data : NULL;
}

/* What the oldest file of the log says that there was before it; NULL when the log is empty. */
static char *
oldest_list(MysqlSession *session)
{
	char	   *file = NULL;
	char	   *list = NULL;
	MysqlRow	row;

	mysql_session_query(session, "SHOW BINARY LOGS");
	while (mysql_session_fetch(session, &row))
	{
		if (file == NULL && row.values[0] != NULL)
			file = pnstrdup(row.values[0], row.lengths[0]);
	}
	if (file == NULL)
		return NULL;
	mysql_session_query(session, psprintf("SHOW BINLOG EVENTS IN %s LIMIT %d",
										  mysql_quote_literal(file, strlen(file)), EVENTS_BEFORE_LIST));
	while (mysql_session_fetch(session, &row))
	{
		if (list == NULL && row.nfields > COLUMN_INFO && row.values[COLUMN_EVENT_TYPE] != NULL &&
			row.values[COLUMN_INFO] != NULL && strcmp(row.values[COLUMN_EVENT_TYPE], "Gtid_list") == 0)
			list = pnstrdup(row.values[COLUMN_INFO], row.lengths[COLUMN_INFO]);
	}
	return list;
}

/* ---- both ---- */

/* GTID_SUBTRACT of the server; NULL when nothing is left. */
static char *
subtract(MysqlSession *session, const char *minuend, const char *subtrahend)
{
	char	   *result = mysql_session_scalar(session, psprintf("SELECT GTID_SUBTRACT(%s, %s)", minuend, subtrahend));
	char	   *out = result;

	if (result == NULL || result[0] == '\0')
		return NULL;
	for (const char *p = result; *p != '\0'; p++)
	{
		if (*p != '\n' && *p != '\r')
			*out++ = *p;
	}
	*out = '\0';
	return result;
}

char *
source_history_lacks(MysqlSession *session, const MysqlServerInfo *info, const char *gtids)
{
	char	   *state;

	if (info->flavor == MYSQL_FLAVOR_MYSQL)
		return subtract(session, mysql_quote_literal(gtids, strlen(gtids)), "@@global.gtid_executed");
	state = mysql_session_scalar(session, "SELECT @@global.gtid_binlog_state");
	return difference(parse_gtids(gtids), parse_gtids(state ? state : ""), false);
}

char *
source_history_purged(MysqlSession *session, const MysqlServerInfo *info, const char *gtids)
{
	char	   *list;

	if (info->flavor == MYSQL_FLAVOR_MYSQL)
		return subtract(session, "@@global.gtid_purged", mysql_quote_literal(gtids, strlen(gtids)));
	list = oldest_list(session);
	return difference(last_of_domains(parse_gtids(list ? list : "")), parse_gtids(gtids), true);
}

SourceApplying
source_history_applying(MysqlSession *session, const MysqlServerInfo *info)
{
	MemoryContext cxt = CurrentMemoryContext;
	bool		is_mariadb = info->flavor == MYSQL_FLAVOR_MARIADB;
	int			column = is_mariadb ? COLUMN_SQL_RUNNING_ALL : COLUMN_SQL_RUNNING;
	volatile SourceApplying result = SOURCE_APPLYING_NO;
	MysqlRow	row;

	PG_TRY();
	{
		mysql_session_query(session, is_mariadb ? "SHOW ALL SLAVES STATUS"
							: info->version >= 80022 ? "SHOW REPLICA STATUS" : "SHOW SLAVE STATUS");
		while (mysql_session_fetch(session, &row))
		{
			if (row.nfields > column && row.values[column] != NULL && strcmp(row.values[column], "Yes") == 0)
				result = SOURCE_APPLYING_YES;
		}
	}
	PG_CATCH();
	{
		if (geterrcode() != CDC_ERRCODE_SOURCE_SETTING)
			PG_RE_THROW();
		MemoryContextSwitchTo(cxt);
		FlushErrorState();
		result = SOURCE_APPLYING_UNKNOWN;
	}
	PG_END_TRY();
	return result;
}
