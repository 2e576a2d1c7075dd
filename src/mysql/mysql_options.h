/*-------------------------------------------------------------------------
 *
 * mysql_options.h
 *	  Options of a cdc_mysql SERVER and USER MAPPING, and the connection facts
 *	  that they make.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_MYSQL_OPTIONS_H
#define CDC_MYSQL_OPTIONS_H

#include "postgres.h"

#include "util/util_options.h"

extern const UtilOptionTable mysql_server_options;
extern const UtilOptionTable mysql_user_mapping_options;

typedef enum MysqlSslMode
{
	MYSQL_SSL_DISABLE,
	MYSQL_SSL_REQUIRE,
	MYSQL_SSL_VERIFY_CA,
	MYSQL_SSL_VERIFY_FULL
} MysqlSslMode;

/* Where to connect and as whom; all strings live in the context it was made in. */
typedef struct MysqlEndpoint
{
	const char *server_name;	/* name of the SERVER, for messages */
	const char *host;
	int			port;
	const char *socket;			/* or NULL */
	bool		is_local;		/* loopback address or socket: nobody can listen on the way */
	const char *username;
	const char *password;		/* or NULL */
	MysqlSslMode sslmode;		/* default: require; disable for loopback and sockets */
	const char *ssl_ca;
	const char *ssl_cert;
	const char *ssl_key;
	const char *server_public_key;	/* file with the server's RSA key, or NULL */
	bool		get_server_public_key;	/* accept the key that the server sends without TLS */
	int			connect_timeout;	/* s */
	int			query_timeout;	/* s; 0: none */
	int			heartbeat_interval; /* ms */
	uint32		server_id;		/* 0: derive from the fingerprint */
} MysqlEndpoint;

/*
 * Endpoint of SERVER serverid for role userid (mapping of the role, else of
 * PUBLIC). Reads catalogs: needs a transaction. Errors: user mapping missing,
 * unreadable password_file.
 */
extern MysqlEndpoint *mysql_endpoint_load(Oid serverid, Oid userid);

#endif							/* CDC_MYSQL_OPTIONS_H */
