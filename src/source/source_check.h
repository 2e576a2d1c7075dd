/*-------------------------------------------------------------------------
 *
 * source_check.h
 *	  Can a MySQL-family server be followed? Serves cdc_check and the refusal
 *	  when a stream is opened.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SOURCE_CHECK_H
#define CDC_SOURCE_CHECK_H

#include "postgres.h"
#include "nodes/pg_list.h"

#include "mysql/mysql_server.h"
#include "source/source.h"

/* What is looked at: one session, and whose tables matter. */
typedef struct SourceCheck
{
	MysqlSession *session;
	const MysqlServerInfo *info;
	uint32		our_server_id;
	CdcSourceWant want;			/* NULL: all tables */
	void	   *arg;
	bool		one_of_several; /* the SERVER has more hosts */
} SourceCheck;

/* List of CdcCheckLine, in CurrentMemoryContext. */
extern List *source_check_run(const SourceCheck *check);

/*
 * Throw CDC_ERRCODE_SOURCE_SETTING for the first line with status "error".
 * Leaves out what only warns and takes long on servers with many tables.
 */
extern void source_check_require(const SourceCheck *check);

#endif							/* CDC_SOURCE_CHECK_H */
