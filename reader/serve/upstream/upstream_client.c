/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/serve/upstream/upstream_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base64.h"
#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/yaml.h"

#define CLIENT_MAGIC       0x75706372u
#define ANSWER_MAX         ((size_t)256 << 10)
#define TIMEOUT_MS         10000L
#define CONNECT_TIMEOUT_MS 5000L
#define CONNECTIONS_MAX    4L

struct upstream_server {
	char *url, *proxy, *name; /* NULL: none */
	char *ca;                 /* PEM */
	size_t ca_size;
	bool insecure;
};

struct upstream_client {
	uint32_t magic;
	int runtime_fd;
	CURLM *multi;
	struct upstream_server server;
	struct stat file; /* that SERVER is from */
	bool doubted;     /* the server did not answer: it may have moved */
	struct upstream_request *requests;
};

struct upstream_request {
	struct upstream_request *previous, *next;
	CURL *easy;
	struct curl_slist *headers, *connect_to;
	struct buf body, answer;
	upstream_answer_fn *fn;
	void *context;
	char error[CURL_ERROR_SIZE];
};

/* ---- the file upstream ----------------------------------------------------------------------------- */

static void upstream_server_release(struct upstream_server *server)
{
	free(server->url);
	free(server->proxy);
	free(server->name);
	free(server->ca);
	*server = (struct upstream_server){0};
}

static int upstream_copy(const struct yaml_node *root, const char *key, char **ret_text)
{
	const char *text = yaml_text(root, key);

	*ret_text = text ? strdup(text) : NULL;
	return text && !*ret_text ? err_set(-ENOMEM, "reading where the API server is") : 0;
}

static int upstream_parse(const struct yaml_node *root, struct upstream_server *ret_server)
{
	CLEANUP(upstream_server_release) struct upstream_server server = {0};
	const char *ca = yaml_text(root, "certificateAuthorityData"),
		   *insecure = yaml_text(root, "insecure");
	int r = upstream_copy(root, "server", &server.url);

	if (r == 0)
		r = upstream_copy(root, "proxyURL", &server.proxy);
	if (r == 0)
		r = upstream_copy(root, "tlsServerName", &server.name);
	if (r == 0 && ca)
		r = base64_decode(bytes_str(ca), &server.ca, &server.ca_size);
	if (r == 0 && !server.url)
		r = err_say(ERR_FORMAT, "the file 'upstream' names no server");
	if (r < 0)
		return r;
	server.insecure = insecure && strcmp(insecure, "true") == 0;
	*ret_server = server;
	server = (struct upstream_server){0};
	return 0;
}

/* Reads the file if it is another one than before. */
static int upstream_refresh(struct upstream_client *c)
{
	CLEANUP(yaml_free) struct yaml *yaml = NULL;
	struct upstream_server server = {0};
	struct stat st;
	AUTO_FD int fd = openat(c->runtime_fd, "upstream", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(-errno, "the API server's address is not known (the file 'upstream' "
				       "of kinf-reflector)");
	if (c->server.url && !c->doubted && st.st_ino == c->file.st_ino &&
		st.st_size == c->file.st_size &&
		memcmp(&st.st_mtim, &c->file.st_mtim, sizeof(st.st_mtim)) == 0)
		return 0;
	int r = yaml_load_fd(fd, "upstream", &yaml);
	if (r == 0)
		r = upstream_parse(yaml_root(yaml), &server);
	if (r < 0)
		return r;
	upstream_server_release(&c->server);
	c->server = server;
	c->file = st;
	c->doubted = false;
	return 0;
}

/* ---- requests ---------------------------------------------------------------------------------------- */

static void upstream_request_free(struct upstream_client *c, struct upstream_request *request)
{
	if (request->easy) {
		(void)curl_multi_remove_handle(
			c->multi, request->easy); /* it may not have been added */
		curl_easy_cleanup(request->easy);
	}
	curl_slist_free_all(request->headers);
	curl_slist_free_all(request->connect_to);
	buf_release(&request->body);
	buf_release(&request->answer);
	if (request->previous)
		request->previous->next = request->next;
	else if (c->requests == request)
		c->requests = request->next;
	if (request->next)
		request->next->previous = request->previous;
	free(request);
}

static size_t upstream_on_body(char *data, size_t size, size_t n, void *arg)
{
	struct upstream_request *request = arg;

	buf_put(&request->answer, data, size * n);
	return buf_error(&request->answer) < 0 ? 0 : size * n;
}

static bool upstream_add_line(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*list, line);

	if (longer)
		*list = longer;
	return longer;
}

/* Appends the URL of PATH. With another name for TLS, the URL has that name, and the connection is made to the
 * server's host. */
static int upstream_put_url(const struct upstream_client *c, struct upstream_request *request,
	const char *path, struct buf *url)
{
	const char *host = strstr(c->server.url, "://");
	char to[600];

	if (!host || !c->server.name) {
		buf_printf(url, "%s%s", c->server.url, path);
		return buf_error(url);
	}
	host += 3;
	size_t size = strcspn(host, "/");
	const char *end = host + size, *colon = memrchr(host, ':', size);
	bool has_port = colon && !memchr(colon, ']', (size_t)(end - colon));
	buf_printf(url, "%.*s%s%.*s%s", (int)(host - c->server.url), c->server.url, c->server.name,
		has_port ? (int)(host + strlen(host) - colon) : (int)strlen(end),
		has_port ? colon : end, path);
	(void)snprintf(to, sizeof(to), "%s::%.*s%s", c->server.name, (int)size, host,
		has_port ? "" : ":443");
	if (!upstream_add_line(&request->connect_to, to))
		return err_set(-ENOMEM, "asking the API server");
	(void)snprintf(to, sizeof(to), "Host: %.*s", (int)size, host);
	return upstream_add_line(&request->headers, to) ? buf_error(url)
							: err_set(-ENOMEM, "asking the API server");
}

static int upstream_set_up(
	struct upstream_client *c, struct upstream_request *request, const char *path)
{
	CLEANUP(buf_release) struct buf url = BUF_INIT;
	CURL *easy = request->easy;
	struct curl_blob ca = {
		.data = c->server.ca, .len = c->server.ca_size, .flags = CURL_BLOB_COPY};
	CURLcode code = CURLE_OK;
	int r = upstream_put_url(c, request, path, &url);

	if (r < 0)
		return r;
#define SET(option, value) (code = code ? code : curl_easy_setopt(easy, option, value))
	SET(CURLOPT_URL, buf_cstr(&url));
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_POSTFIELDSIZE, (long)request->body.size);
	SET(CURLOPT_POSTFIELDS, buf_cstr(&request->body));
	SET(CURLOPT_HTTPHEADER, request->headers);
	SET(CURLOPT_WRITEFUNCTION, upstream_on_body);
	SET(CURLOPT_WRITEDATA, request);
	SET(CURLOPT_PRIVATE, request);
	SET(CURLOPT_ERRORBUFFER, request->error);
	SET(CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
	SET(CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	SET(CURLOPT_PIPEWAIT, 1L);
	if (request->connect_to)
		SET(CURLOPT_CONNECT_TO, request->connect_to);
	if (c->server.proxy)
		SET(CURLOPT_PROXY, c->server.proxy);
	if (c->server.ca)
		SET(CURLOPT_CAINFO_BLOB, &ca);
	SET(CURLOPT_SSL_VERIFYPEER, c->server.insecure ? 0L : 1L);
	SET(CURLOPT_SSL_VERIFYHOST, c->server.insecure ? 0L : 2L);
#undef SET
	return code ? err_say(ERR_NETWORK, "asking the API server: %s", curl_easy_strerror(code))
		    : 0;
}

int upstream_client_post(struct upstream_client *c, const char *path, const char *headers,
	struct bytes body, upstream_answer_fn *fn, void *context)
{
	CHECK_OBJ(c, CLIENT_MAGIC);
	int r = upstream_refresh(c);
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
		    upstream_add_line(&request->headers, "Content-Type: application/json") &&
		    upstream_add_line(&request->headers, "Accept: application/json") &&
		    upstream_add_line(&request->headers, "Expect:");
	for (; good && *headers; headers += strlen(headers) + 1)
		good = upstream_add_line(&request->headers, headers);
	r = good && buf_error(&request->body) == 0 ? upstream_set_up(c, request, path) :
						     err_set(-ENOMEM, "asking the API server");
	if (r == 0 && curl_multi_add_handle(c->multi, request->easy) != CURLM_OK)
		r = err_set(-ENOMEM, "asking the API server");
	if (r < 0) {
		upstream_request_free(c, request);
		return r;
	}
	request->next = c->requests;
	if (request->next)
		request->next->previous = request;
	c->requests = request;
	return 0;
}

static void upstream_complete(struct upstream_client *c, CURL *easy, CURLcode code)
{
	struct upstream_request *request = NULL;
	long status = 0;

	(void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&request);
	(void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	c->doubted |= code != CURLE_OK;
	if (code)
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

/* ---- begin and end ----------------------------------------------------------------------------------- */

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
	c->magic = 0;
	free(c);
}
