/*-------------------------------------------------------------------------
 *
 * mysql_connect.h
 *	  Options of a connection, and making it; called in the helper thread.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_MYSQL_CONNECT_H
#define CDC_MYSQL_CONNECT_H

#include "mysql/mysql_client.h"
#include "mysql/mysql_thread.h"

typedef enum MysqlConnectResult
{
	MYSQL_CONNECT_OK,
	MYSQL_CONNECT_FAILED,		/* mysql_error says why */
	MYSQL_CONNECT_NO_TLS		/* TLS is wanted, the server has none */
} MysqlConnectResult;

/* Set the options and connect; blocks. */
extern MysqlConnectResult mysql_connect_open(MYSQL *mysql, const MysqlThreadConnect *connect);

/* The library's own descriptor, below 0 when there is none. */
extern int	mysql_connect_socket(MYSQL *mysql);

#endif							/* CDC_MYSQL_CONNECT_H */
