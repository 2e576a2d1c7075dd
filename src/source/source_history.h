/*-------------------------------------------------------------------------
 *
 * source_history.h
 *	  Does a server's log go on where a set of applied GTIDs ends?
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SOURCE_HISTORY_H
#define CDC_SOURCE_HISTORY_H

#include "postgres.h"

#include "mysql/mysql_server.h"

/*
 * Applied transactions that the server has not: their exact range as text, palloc'd; NULL when it has them all. Then it was
 * not a part of the same replication, was reset, or has lost what the former server had sent us.
 */
extern char *source_history_lacks(MysqlSession *session, const MysqlServerInfo *info, const char *gtids);

/* Transactions that are not applied and no longer in the server's log, in the same form; NULL when there are none. */
extern char *source_history_purged(MysqlSession *session, const MysqlServerInfo *info, const char *gtids);

typedef enum SourceApplying
{
	SOURCE_APPLYING_NO,
	SOURCE_APPLYING_YES,
	SOURCE_APPLYING_UNKNOWN		/* the user may not ask */
} SourceApplying;

/* Is the server applying what another one sends it, so that it may come to have what it lacks? */
extern SourceApplying source_history_applying(MysqlSession *session, const MysqlServerInfo *info);

/* MariaDB: the last GTID of each domain of a set, as a server wants it of a replica. */
extern char *source_history_domains(const char *gtids);

#endif							/* CDC_SOURCE_HISTORY_H */
