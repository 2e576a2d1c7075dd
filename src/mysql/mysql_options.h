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
#include "nodes/pg_list.h"

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

/* One of the hosts of a SERVER. */
typedef struct MysqlHost
{
	const char *name;			/* NULL: the endpoint's socket */
	int			port;
	bool		is_local;		/* loopback address or socket: nobody can listen on the way */
	MysqlSslMode sslmode;		/* default: require; disable for loopback and sockets */
} MysqlHost;

/* Where to connect and as whom; all strings live in the context it was made in. */
typedef struct MysqlEndpoint
{
	const char *server_name;	/* name of the SERVER, for messages */
	MysqlHost  *hosts;			/* in the order of the option "host"; one for a socket */
	int			nhosts;
	int			first;			/* number of the host that is tried first: where the followed server was found last */
	const char *socket;			/* or NULL */
	const char *username;
	const char *password;		/* or NULL */
	const char *ssl_ca;
	const char *ssl_cert;
	const char *ssl_key;
	const char *server_public_key;	/* file with the server's RSA key, or NULL */
	bool		get_server_public_key;	/* accept the key that the server sends without TLS */
	int			connect_timeout;	/* s */
	int			query_timeout;	/* s; 0: none */
	int			heartbeat_interval; /* ms */
	int			failover_delay; /* s that the followed server may be gone before another one is followed */
	uint32		server_id;		/* 0: derive from the fingerprint */
} MysqlEndpoint;

/*
 * Endpoint of SERVER serverid for role userid (mapping of the role, else of
 * PUBLIC). Reads catalogs: needs a transaction. Errors: user mapping missing,
 * unreadable password_file.
 */
extern MysqlEndpoint *mysql_endpoint_load(Oid serverid, Oid userid);

/* Throw when the options of a SERVER, each of them valid, do not fit together: the lists "host" and "port". */
extern void mysql_server_options_check(List *options);

/* 'host "db1", port 3306', or 'socket "/path"': how a host is named in messages; palloc'd. */
extern char *mysql_host_text(const MysqlEndpoint *endpoint, int host);

#endif							/* CDC_MYSQL_OPTIONS_H */
