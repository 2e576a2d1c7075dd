/*-------------------------------------------------------------------------
 *
 * mysql_client.h
 *	  The one place that includes the client library's header.
 *
 * NOTES
 *	  libmariadb by default, libmysqlclient (8.0 and later) behind the same
 *	  functions; MARIADB_PACKAGE_VERSION tells them apart. libmariadb's header
 *	  declares list functions whose names PostgreSQL's pg_list.h has too; they
 *	  are renamed around the include, nobody here calls them.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_MYSQL_CLIENT_H
#define CDC_MYSQL_CLIENT_H

#define list_delete mysql_client_list_delete
#define list_free mysql_client_list_free
#define list_length mysql_client_list_length
#include <mysql.h>
#include <errmsg.h>
#undef list_delete
#undef list_free
#undef list_length

#ifdef MARIADB_PACKAGE_VERSION
#define MYSQL_CLIENT_IS_MARIADB 1
#elif MYSQL_VERSION_ID < 80000
#error "libmysqlclient 8.0 or later, or libmariadb, is needed"
#endif

#endif							/* CDC_MYSQL_CLIENT_H */
