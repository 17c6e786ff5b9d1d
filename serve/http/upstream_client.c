/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/upstream_client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "serve/chain.h"
#include "serve/http/upstream_internal.h"

#define CLIENT_MAGIC       0x75706372u
#define ANSWER_MAX         ((size_t)256 << 10)
#define TIMEOUT_MS         10000L
#define CONNECT_TIMEOUT_MS 5000L
#define CONNECTIONS_MAX    4L

struct upstream_client {
	uint32_t magic;
	int runtime_fd;
	CURLM *multi;
	struct upstream_server server;
	struct upstream_request *requests;
	char *token_file, *certificate, *key; /* of our own account; NULL: none */
};

struct upstream_request {
	struct upstream_request *next, **at;
	CURL *easy;
	struct upstream_lists lists;
	struct buf body, answer; /* no body: a GET */
	upstream_answer_fn *fn;
	void *context;
	char error[CURL_ERROR_SIZE];
};

/* ---- requests ----------------------------------------------------------- */

static void upstream_request_free(struct upstream_client *c, struct upstream_request *request)
{
	if (request->easy) {
		(void)curl_multi_remove_handle(
			c->multi, request->easy); /* it may not have been added */
		curl_easy_cleanup(request->easy);
	}
	upstream_lists_release(&request->lists);
	buf_release(&request->body);
	buf_release(&request->answer);
	if (request->at)
		CHAIN_REMOVE(request);
	free(request);
}

static size_t upstream_on_body(char *data, size_t size, size_t n, void *arg)
{
	struct upstream_request *request = arg;

	if (!request->body.size && request->answer.size + size * n > ANSWER_MAX)
		return size * n;
	buf_put(&request->answer, data, size * n);
	return buf_error(&request->answer) < 0 ? 0 : size * n;
}

static int upstream_set_up(
	struct upstream_client *c, struct upstream_request *request, const char *path)
{
	CURL *easy = request->easy;
	CURLcode code = CURLE_OK;
	int r = upstream_server_apply(&c->server, easy, path, &request->lists);

	if (r < 0)
		return r;
#define SET(option, value) (code = code ? code : curl_easy_setopt(easy, option, value))
	if (request->body.size) {
		SET(CURLOPT_POSTFIELDSIZE, (long)request->body.size);
		SET(CURLOPT_POSTFIELDS, buf_cstr(&request->body));
	}
	SET(CURLOPT_HTTPHEADER, request->lists.headers);
	SET(CURLOPT_ACCEPT_ENCODING, "identity"); /* other codings are decoded */
	SET(CURLOPT_WRITEFUNCTION, upstream_on_body);
	SET(CURLOPT_WRITEDATA, request);
	SET(CURLOPT_PRIVATE, request);
	SET(CURLOPT_ERRORBUFFER, request->error);
	SET(CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
	SET(CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	SET(CURLOPT_PIPEWAIT, 1L);
#undef SET
	return code ? err_say(ERR_NETWORK, "asking the API server: %s", curl_easy_strerror(code))
		    : 0;
}

/* OWN: with the certificate of our own account. */
static int upstream_ask(struct upstream_client *c, const char *path, const char *headers, bool own,
	struct bytes body, upstream_answer_fn *fn, void *context)
{
	CHECK_OBJ(c, CLIENT_MAGIC);
	int r = upstream_server_refresh(&c->server, c->runtime_fd);
	if (r < 0)
		return r;
	struct upstream_request *request = calloc(1, sizeof(*request));
	if (!request)
		return err_set(-ENOMEM, "asking the API server");
	request->fn = fn;
	request->context = context;
	request->answer.limit = ANSWER_MAX;
	buf_bytes_put(&request->body, body);
	request->easy = curl_easy_init();
	bool good = request->easy &&
		    upstream_add_line(&request->lists.headers, "Content-Type: application/json") &&
		    upstream_add_line(&request->lists.headers, "Accept: application/json") &&
		    upstream_add_line(&request->lists.headers, "Expect:");
	for (; good && *headers; headers += strlen(headers) + 1)
		good = upstream_add_line(&request->lists.headers, headers);
	r = good && buf_error(&request->body) == 0 ? upstream_set_up(c, request, path)
						   : err_set(-ENOMEM, "asking the API server");
	if (r == 0 && own && c->certificate &&
		(curl_easy_setopt(request->easy, CURLOPT_SSLCERT, c->certificate) ||
			curl_easy_setopt(request->easy, CURLOPT_SSLKEY, c->key)))
		r = err_set(-ENOMEM, "asking the API server");
	if (r == 0 && curl_multi_add_handle(c->multi, request->easy) != CURLM_OK)
		r = err_set(-ENOMEM, "asking the API server");
	if (r < 0) {
		upstream_request_free(c, request);
		return r;
	}
	CHAIN_ADD(&c->requests, request);
	return 0;
}

/* Appends the header line with the token of our own account. */
static int upstream_put_token(const struct upstream_client *c, struct buf *out)
{
	char token[8192];
	AUTO_FD int fd = open(c->token_file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, token, sizeof(token));

	if (n < 0)
		return err_set(
			-errno, "reading the token '%s' (serve.review.tokenFile)", c->token_file);
	while (n && (unsigned char)token[n - 1] <= ' ')
		n--;
	buf_str(out, "Authorization: Bearer ");
	buf_put(out, token, (size_t)n);
	buf_byte(out, '\0');
	explicit_bzero(token, sizeof(token));
	return buf_error(out);
}

int upstream_client_ask(struct upstream_client *c, const char *target, const char *headers,
	struct bytes body, upstream_answer_fn *fn, void *context)
{
	CLEANUP(buf_release) struct buf own = BUF_SECRET;
	int r = !headers && c->token_file ? upstream_put_token(c, &own) : 0;

	if (r < 0)
		return r;
	buf_byte(&own, '\0');
	return upstream_ask(
		c, target, headers ? headers : buf_cstr(&own), !headers, body, fn, context);
}

int upstream_client_set_own(
	struct upstream_client *c, const char *token_file, const char *certificate, const char *key)
{
	c->token_file = token_file ? strdup(token_file) : NULL;
	c->certificate = certificate ? strdup(certificate) : NULL;
	c->key = key ? strdup(key) : NULL;
	return (token_file && !c->token_file) || (certificate && !c->certificate) ||
			       (key && !c->key)
		       ? err_set(-ENOMEM, "setting up requests to the API server")
		       : 0;
}

static void upstream_complete(struct upstream_client *c, CURL *easy, CURLcode code)
{
	struct upstream_request *request = NULL;
	long status = 0;

	(void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&request);
	(void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	c->server.stale |= code != CURLE_OK;
	/* A server may cut the answer of a refusal before reading the request (libcurl 7.88 takes
	 * the end of such a stream for one): the status counts, however its body ends. */
	if (code && status < 400)
		request->fn(request->context, 0,
			bytes_str(*request->error ? request->error : curl_easy_strerror(code)));
	else
		request->fn(request->context, (int)status, buf_bytes(&request->answer));
	upstream_request_free(c, request);
}

void upstream_client_run(struct upstream_client *c, int timeout_ms)
{
	int running, left;

	CHECK_OBJ(c, CLIENT_MAGIC);
	(void)curl_multi_perform(c->multi, &running);
	for (CURLMsg *message; (message = curl_multi_info_read(c->multi, &left));)
		if (message->msg == CURLMSG_DONE)
			upstream_complete(c, message->easy_handle, message->data.result);
	(void)curl_multi_poll(
		c->multi, NULL, 0, timeout_ms, NULL); /* a failure is one turn without a pause */
}

void upstream_client_wake(struct upstream_client *c)
{
	(void)curl_multi_wakeup(c->multi);
}

/* ---- begin and end ------------------------------------------------------ */

int upstream_client_new(int runtime_fd, struct upstream_client **ret_client)
{
	CLEANUP(upstream_client_free) struct upstream_client *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(-ENOMEM, "setting up requests to the API server");
	c->magic = CLIENT_MAGIC;
	c->runtime_fd = runtime_fd;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) || !(c->multi = curl_multi_init()))
		return err_set(-ENOMEM, "setting up requests to the API server");
	(void)curl_multi_setopt(c->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, CONNECTIONS_MAX);
	*ret_client = TAKE(c);
	return 0;
}

void upstream_client_free(struct upstream_client **client)
{
	struct upstream_client *c = TAKE(*client);

	if (!c)
		return;
	CHECK_OBJ(c, CLIENT_MAGIC);
	while (c->requests)
		upstream_request_free(c, c->requests);
	(void)curl_multi_cleanup(c->multi);
	upstream_server_release(&c->server);
	free(c->token_file);
	free(c->certificate);
	free(c->key);
	c->magic = 0;
	free(c);
}
