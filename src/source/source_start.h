/*-------------------------------------------------------------------------
 *
 * source_start.h
 *	  Where and as whom a binary log dump of the MySQL family begins.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SOURCE_START_H
#define CDC_SOURCE_START_H

#include "postgres.h"

#include "mysql/mysql_server.h"
#include "source/source.h"

/* Where the first event of a file stands. */
#define SOURCE_FIRST_OFFSET 4

/* server_id and uuid of our connection, from the fingerprint of this cluster, database and pipeline. */
extern uint32 source_start_server_id(const MysqlEndpoint *endpoint, int32 pipeline_id, uint32 source_server_id);
extern char *source_start_replica_uuid(int32 pipeline_id);

/* Fill in where the dump begins. */
extern void source_start_plan(MysqlSession *session, const MysqlServerInfo *info, const CdcSourceStart *start,
							  MysqlDump *dump, CdcPosition *quiet_below, CdcPosition *skip_to);

/* Is the file of the position in the server's log? *oldest becomes the name of the oldest one, or NULL. */
extern bool source_start_has_file(MysqlSession *session, const CdcPosition *position, char **oldest);

extern char *source_start_next_file(MysqlSession *session, const char *file);

#endif							/* CDC_SOURCE_START_H */
