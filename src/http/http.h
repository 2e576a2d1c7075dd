/*-------------------------------------------------------------------------
 *
 * http.h
 *	  One HTTP request at a time, by libcurl.
 *
 * NOTES
 *	  http_request waits for the answer, at most timeout_ms, and is ended within
 *	  a second when the process is asked to leave. It throws when there is no
 *	  answer; which answers are good ones is a matter of who asks. Redirects are
 *	  not followed, and nothing but http and https is spoken.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_HTTP_H
#define CDC_HTTP_H

#include "postgres.h"

typedef struct HttpRequest
{
	const char *url;
	const char *what;			/* words for messages: "schema registry" */
	const char *username;		/* basic authentication; NULL: none */
	const char *password;
	const char *content_type;
	const char *body;			/* POST; NULL: GET */
	int			timeout_ms;
} HttpRequest;

typedef struct HttpResponse
{
	int			status;			/* 200, 404, ... */
	char	   *body;			/* NUL-terminated, in CurrentMemoryContext */
} HttpResponse;

extern HttpResponse http_request(const HttpRequest *request);

#endif							/* CDC_HTTP_H */
