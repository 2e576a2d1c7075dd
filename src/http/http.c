/*-------------------------------------------------------------------------
 *
 * http.c
 *	  One HTTP request at a time, by libcurl.
 *
 * NOTES
 *	  libcurl may look up a name in a thread of its own, which must not be given
 *	  our signals: all are blocked while it works, and it is asked several times
 *	  a second whether one has come that ends the process. What it calls back must
 *	  not throw, so an answer is kept in memory of malloc until it is whole.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "http/http.h"

#ifndef CDC_WITHOUT_CURL

#include <curl/curl.h>
#include <signal.h>

#include "miscadmin.h"

/* An answer that is longer is none that we asked for. */
#define ANSWER_MAX (1024 * 1024)

typedef struct Answer
{
	char	   *data;
	size_t		len;
	bool		too_long;
} Answer;

static size_t
take_data(char *data, size_t size, size_t count, void *arg)
{
	Answer	   *answer = arg;
	size_t		len = size * count;
	char	   *grown;

	if (len > ANSWER_MAX - answer->len)
	{
		answer->too_long = true;
		return 0;
	}
	grown = realloc(answer->data, answer->len + len + 1);
	if (grown == NULL)
		return 0;
	memcpy(grown + answer->len, data, len);
	answer->data = grown;
	answer->len += len;
	grown[answer->len] = '\0';
	return len;
}

/* Has a signal come that ends what we do? It is blocked, and will be handled when it is not. */
static int
is_asked_to_leave(void *arg, curl_off_t dltotal, curl_off_t dlnow, curl_off_t ultotal, curl_off_t ulnow)
{
	sigset_t	pending;

	if (InterruptPending)
		return 1;
	return sigpending(&pending) == 0 &&
		(sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT) || sigismember(&pending, SIGQUIT));
}

static CURLcode
perform(CURL *curl, const HttpRequest *request, struct curl_slist *headers, Answer *answer, char *error)
{
	sigset_t	all;
	sigset_t	before;
	CURLcode	code;

	curl_easy_setopt(curl, CURLOPT_URL, request->url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long) request->timeout_ms);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_data);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, is_asked_to_leave);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	if (request->username != NULL)
	{
		curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long) CURLAUTH_BASIC);
		curl_easy_setopt(curl, CURLOPT_USERNAME, request->username);
		curl_easy_setopt(curl, CURLOPT_PASSWORD, request->password != NULL ? request->password : "");
	}
	if (request->body != NULL)
	{
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) strlen(request->body));
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body);
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	code = curl_easy_perform(curl);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code;
}

HttpResponse
http_request(const HttpRequest *request)
{
	static bool initialized = false;
	HttpResponse response = {0};
	Answer		answer = {0};
	char		error[CURL_ERROR_SIZE] = "";
	struct curl_slist *headers = NULL;
	CURLcode	code = CURLE_FAILED_INIT;
	long		status = 0;
	CURL	   *curl;

	if (!initialized)
	{
		if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
			ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("could not initialize libcurl")));
		initialized = true;
	}
	curl = curl_easy_init();
	if (curl != NULL && request->content_type != NULL)
		headers = curl_slist_append(NULL, psprintf("Content-Type: %s", request->content_type));
	if (curl != NULL)
	{
		code = perform(curl, request, headers, &answer, error);
		curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	}
	curl_slist_free_all(headers);
	curl_easy_cleanup(curl);
	if (code != CURLE_OK)
	{
		free(answer.data);
		CHECK_FOR_INTERRUPTS();
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("could not get an answer of the %s", request->what),
				 errdetail("%s: %s", request->url, answer.too_long ? "the answer is too long" : error[0] != '\0' ? error : curl_easy_strerror(code))));
	}
	response.status = (int) status;
	response.body = palloc_extended(answer.len + 1, MCXT_ALLOC_NO_OOM);
	if (response.body != NULL)
		memcpy(response.body, answer.data != NULL ? answer.data : "", answer.len + 1);
	free(answer.data);
	if (response.body == NULL)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	return response;
}

#else							/* CDC_WITHOUT_CURL */

HttpResponse
http_request(const HttpRequest *request)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("could not get an answer of the %s", request->what),
			 errdetail("The extension was built without libcurl."),
			 errhint("Build it with CURL=yes.")));
}

#endif							/* CDC_WITHOUT_CURL */
