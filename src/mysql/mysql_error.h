/*-------------------------------------------------------------------------
 *
 * mysql_error.h
 *	  Errors of server and client library -> ereport.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_MYSQL_ERROR_H
#define CDC_MYSQL_ERROR_H

#include "postgres.h"

#include "mysql/mysql_thread.h"

/* The server's and the library's error numbers that something here depends on. */
#define MYSQL_ERR_ACCESS_DENIED			1045
#define MYSQL_ERR_BINLOG				1236	/* "fatal error ... when reading data from binary log" */
#define MYSQL_ERR_NO_PLUGIN				2059	/* the client library cannot load it */
#define MYSQL_ERR_PLUGIN_NOT_ALLOWED	5010	/* MARIADB_OPT_RESTRICTED_AUTH leaves it out */

typedef enum MysqlErrorStage
{
	MYSQL_STAGE_CONNECT,
	MYSQL_STAGE_QUERY,
	MYSQL_STAGE_DUMP
} MysqlErrorStage;

/* Whose error it is, for the texts. */
typedef struct MysqlErrorSite
{
	MysqlErrorStage stage;
	const char *server_name;
	const char *target;			/* "host \"db1\", port 3306" */
	const char *username;
	const char *account;		/* 'repl'@'%', quoted for GRANT; NULL before login */
	const char *position;		/* what a dump asked for, or NULL */
	bool		position_is_unproven;	/* nothing was read from there yet */
	bool		key_was_refused;	/* no TLS, and fetching the server's RSA key is not allowed */
} MysqlErrorSite;

/* Throw; the server's own text and number stand in the detail. */
extern _Noreturn void mysql_error_throw(const MysqlErrorSite *site, const MysqlThreadError *error);

/* Is the connection gone after such an error, so that the session can only be closed? */
extern bool mysql_error_is_connection_loss(unsigned int code);

#endif							/* CDC_MYSQL_ERROR_H */
