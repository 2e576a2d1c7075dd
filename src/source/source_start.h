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

/* server_id and uuid of our connection, from the fingerprint of this cluster, database and pipeline. */
extern uint32 source_start_server_id(const MysqlEndpoint *endpoint, int32 pipeline_id, uint32 source_server_id);
extern char *source_start_replica_uuid(int32 pipeline_id);

/* Throw CDC_ERRCODE_SOURCE_REPLACED when the start belongs to another server. */
extern void source_start_check_identity(const MysqlEndpoint *endpoint, const MysqlServerInfo *info,
										const CdcSourceStart *start);

/* Fill in where the dump begins. */
extern void source_start_plan(MysqlSession *session, const MysqlServerInfo *info, const CdcSourceStart *start,
							  MysqlDump *dump, CdcPosition *quiet_below);

extern char *source_start_next_file(MysqlSession *session, const char *file);

#endif							/* CDC_SOURCE_START_H */
