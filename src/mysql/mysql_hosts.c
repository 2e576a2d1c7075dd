/*-------------------------------------------------------------------------
 *
 * mysql_hosts.c
 *	  Connecting to one of the several hosts of a SERVER.
 *
 * NOTES
 *	  As with PostgreSQL's own client, hosts are tried in the order in which they
 *	  are listed, and one that cannot be reached, or does not let us in, is passed
 *	  over. Most of what we ask has to be asked of one certain server, on which a
 *	  position stands: that one is told by its identity (mysql_server_open), and
 *	  which other one may take its place is decided in source_choose.c.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "mysql/mysql_server.h"
#include "util/util_error.h"

/* Is it an error of connecting, or of the connection, that another host may not have? */
static bool
is_of_connection(int sqlstate)
{
	return sqlstate == ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION ||
		sqlstate == ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION ||
		sqlstate == ERRCODE_TOO_MANY_CONNECTIONS ||
		sqlstate == ERRCODE_CONNECTION_FAILURE;
}

MysqlSession *
mysql_session_try_host(const MysqlEndpoint *endpoint, int host, ErrorData **error)
{
	MemoryContext cxt = CurrentMemoryContext;
	MysqlSession *volatile session = NULL;
	ErrorData  *volatile edata = NULL;

	PG_TRY();
	{
		session = mysql_session_open_host(endpoint, host);
	}
	PG_CATCH();
	{
		if (!is_of_connection(geterrcode()))
			PG_RE_THROW();
		MemoryContextSwitchTo(cxt);
		edata = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	*error = edata;
	return session;
}

void
mysql_hosts_throw(const MysqlEndpoint *endpoint, List *errors)
{
	ErrorData  *first = linitial(errors);
	int			sqlstate = first->sqlerrcode;
	StringInfoData detail;
	ListCell   *lc;

	if (list_length(errors) == 1)
		ReThrowError(first);
	initStringInfo(&detail);
	foreach(lc, errors)
	{
		const ErrorData *edata = lfirst(lc);

		appendStringInfo(&detail, "%s%s", detail.len > 0 ? " " : "", edata->detail ? edata->detail : edata->message);
		/* as long as one of them may come back, so may we */
		if (util_error_class(edata->sqlerrcode) == UTIL_ERROR_TRANSIENT)
			sqlstate = edata->sqlerrcode;
	}
	ereport(ERROR,
			(errcode(sqlstate),
			 errmsg("could not connect to any host of source server \"%s\"", endpoint->server_name),
			 errdetail_internal("%s", detail.data),
			 errhint("Check the options \"host\" and \"port\" of the server, that the sources run, and what they listen on.")));
}

MysqlSession *
mysql_session_open(const MysqlEndpoint *endpoint)
{
	List	   *errors = NIL;

	for (int i = 0; i < endpoint->nhosts; i++)
	{
		ErrorData  *error;
		MysqlSession *session = mysql_session_try_host(endpoint, (endpoint->first + i) % endpoint->nhosts, &error);

		if (session != NULL)
			return session;
		errors = lappend(errors, error);
	}
	mysql_hosts_throw(endpoint, errors);
	return NULL;				/* not reached */
}

MysqlSession *
mysql_server_open(const MysqlEndpoint *endpoint, const char *identity, MysqlServerInfo **info)
{
	List	   *errors = NIL;
	const char *others = NULL;

	for (int i = 0; i < endpoint->nhosts; i++)
	{
		ErrorData  *error;
		MysqlSession *session = mysql_session_try_host(endpoint, (endpoint->first + i) % endpoint->nhosts, &error);

		if (session == NULL)
		{
			errors = lappend(errors, error);
			continue;
		}
		*info = mysql_server_info(session);
		if (strcmp((*info)->identity, identity) == 0)
			return session;
		others = psprintf("%s%s\"%s\"", others ? others : "", others ? ", " : "", (*info)->identity);
		mysql_session_close(session);
	}
	if (others == NULL)
		mysql_hosts_throw(endpoint, errors);

	/* which server is followed from now on is for the ingest worker to find out; until then this may pass */
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("source server \"%s\" is not the server that is followed", endpoint->server_name),
			 errdetail("The pipeline follows server \"%s\"; what answers is %s.", identity, others)));
	return NULL;				/* not reached */
}
