/*-------------------------------------------------------------------------
 *
 * mysql_connect.c
 *	  Options of a connection, and making it; called in the helper thread.
 *
 * NOTES
 *	  The two client libraries have different defaults and different names for
 *	  the same things. What comes out is one behaviour: no option files, TCP
 *	  unless a socket is named, TLS as asked for or no connection, no password
 *	  in the clear, no local files.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "mysql/mysql_connect.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/* A server answers a login at once; the library's own limit for one packet, both ways. */
#define CLIENT_MAX_PACKET (1024UL * 1024 * 1024)
#define WRITE_TIMEOUT 60		/* s; what we send is small */

/*
 * A file that can be opened and holds no key. libmariadb fetches the server's
 * RSA key unasked when caching_sha2_password runs without TLS; naming an
 * unusable file is the only way to stop it.
 */
#define NO_KEY_FILE "/dev/null"

/*
 * Ways to log in that never show the password itself to the server. The library
 * would load others (mysql_clear_password, dialog) whenever a server asks.
 */
#define AUTH_PLUGINS "mysql_native_password,caching_sha2_password,sha256_password,client_ed25519,parsec,auth_gssapi_client"

int
mysql_connect_socket(MYSQL *mysql)
{
#ifdef MYSQL_CLIENT_IS_MARIADB
	return (int) mysql_get_socket(mysql);
#else
	return (int) mysql->net.fd;
#endif
}

/* TLS and key options, which the two libraries spell differently. */
static void
set_security_options(MYSQL *mysql, const MysqlThreadConnect *connect)
{
	if (connect->use_tls)
		mysql_ssl_set(mysql, connect->ssl_key, connect->ssl_cert, connect->ssl_ca, NULL, NULL);
#ifdef MYSQL_CLIENT_IS_MARIADB
	{
		my_bool		enforce = connect->use_tls;
		my_bool		verify = connect->verify_host;

		mysql_optionsv(mysql, MYSQL_OPT_SSL_ENFORCE, &enforce);
		mysql_optionsv(mysql, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
	}

	/* also with TLS, which somebody on the way may have struck from the greeting */
	if (connect->server_public_key != NULL)
		mysql_optionsv(mysql, MYSQL_SERVER_PUBLIC_KEY, connect->server_public_key);
	else if (!connect->fetch_public_key)
		mysql_optionsv(mysql, MYSQL_SERVER_PUBLIC_KEY, NO_KEY_FILE);
	mysql_optionsv(mysql, MARIADB_OPT_RESTRICTED_AUTH, AUTH_PLUGINS);
#else
	{
		unsigned int mode = SSL_MODE_DISABLED;
		bool		fetch = !connect->use_tls && connect->fetch_public_key;

		if (connect->use_tls)
			mode = connect->verify_host ? SSL_MODE_VERIFY_IDENTITY
				: connect->verify_chain ? SSL_MODE_VERIFY_CA : SSL_MODE_REQUIRED;
		mysql_options(mysql, MYSQL_OPT_SSL_MODE, &mode);
		if (connect->server_public_key != NULL)
			mysql_options(mysql, MYSQL_SERVER_PUBLIC_KEY, connect->server_public_key);
		mysql_options(mysql, MYSQL_OPT_GET_SERVER_PUBLIC_KEY, &fetch);
	}
#endif
}

/*
 * No read time-out: a query or an idle log may be silent for long, and with TLS
 * libmariadb 3.3.20 takes the seconds of MYSQL_OPT_READ_TIMEOUT for
 * milliseconds. The backend bounds the login; later, dead peers are found by
 * keep-alive probes and by missing heartbeats.
 */
static void
set_keepalive(MYSQL *mysql)
{
	int			fd = mysql_connect_socket(mysql);
	int			on = 1;
	int			idle = 30;
	int			interval = 10;
	int			count = 3;

	if (fd < 0)
		return;
	/* these fail on a Unix-domain socket, where they are not needed */
	(void) setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	(void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

MysqlConnectResult
mysql_connect_open(MYSQL *mysql, const MysqlThreadConnect *connect)
{
	unsigned int protocol = connect->socket ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;
	unsigned int local_infile = 0;
	unsigned int write_timeout = WRITE_TIMEOUT;
	unsigned long max_packet = CLIENT_MAX_PACKET;

	mysql_options(mysql, MYSQL_OPT_PROTOCOL, &protocol);
	mysql_options(mysql, MYSQL_OPT_LOCAL_INFILE, &local_infile);
	mysql_options(mysql, MYSQL_OPT_CONNECT_TIMEOUT, &connect->connect_timeout);
	mysql_options(mysql, MYSQL_OPT_WRITE_TIMEOUT, &write_timeout);
	mysql_options(mysql, MYSQL_OPT_MAX_ALLOWED_PACKET, &max_packet);
	mysql_options(mysql, MYSQL_SET_CHARSET_NAME, "utf8mb4");
	mysql_options4(mysql, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "cdc_bridge");
	set_security_options(mysql, connect);

	if (mysql_real_connect(mysql, connect->socket ? NULL : connect->host, connect->username,
						   connect->password ? connect->password : "", NULL,
						   (unsigned int) connect->port, connect->socket, 0) == NULL)
	{
#ifdef MYSQL_CLIENT_IS_MARIADB
		/* going on without TLS it may have been refused for how it then had to log in; what counts is why it had to */
		if (connect->use_tls && mysql->server_capabilities != 0 && !(mysql->server_capabilities & CLIENT_SSL))
			return MYSQL_CONNECT_NO_TLS;
#endif
		return MYSQL_CONNECT_FAILED;
	}

	/* libmariadb goes on without TLS when the server has none, MYSQL_OPT_SSL_ENFORCE or not (3.3.20) */
	if (connect->use_tls && mysql_get_ssl_cipher(mysql) == NULL)
		return MYSQL_CONNECT_NO_TLS;
	set_keepalive(mysql);
	return MYSQL_CONNECT_OK;
}
