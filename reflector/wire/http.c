/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/wire/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "reflector/access/plugin.h"
#include "reflector/wire/http_parts.h"

#define CONNECT_LIMIT_NS   10000000000ull
#define KEEPALIVE_IDLE_S   20L
#define KEEPALIVE_EVERY_S  10L
/* Bytes that we sent and nobody acknowledged for this long: the path is dead. */
#define UNACKNOWLEDGED_MS  30000u
/* Fewer reads over HTTP/1; over HTTP/2 libcurl 7.88 reads 32 KiB at a time, whatever is said here. */
#define BULK_BUFFER        (64L * 1024)
/* A turn reads up to 32 KiB of an answer over HTTP/2. */
#define GATHER_BYTES       (24u * 1024)
#define GATHER_NS          1000000

_Static_assert(HTTP_REASON_SIZE >= CURL_ERROR_SIZE, "libcurl writes that much");

/* ---- the server's name ---- */

static void cleanup_url(CURLU **url)
{
	curl_url_cleanup(*url);
}

static void cleanup_curl(char **text)
{
	curl_free(*text);
}

/* libcurl takes SNI and the name to verify from the URL alone, so a tls-server-name goes there, and
 * the real host into CONNECT_TO and the Host header. */
static int rename_server(struct http *http, CURLU *url, const char *host, const char *port)
{
	CLEANUP(cleanup_curl) char *given = NULL;
	AUTO_FREE char *connect_to = NULL;

	if (asprintf(&connect_to, "::%s:%s", host, port) < 0) {
		connect_to = NULL;
		return -ENOMEM;
	}
	http->connect_to = curl_slist_append(NULL, connect_to);
	/* The port stands there only when the URL has one, as everywhere. */
	(void)curl_url_get(url, CURLUPART_PORT, &given, 0);
	if (asprintf(&http->host_header, "Host: %s%s%s", host, given ? ":" : "", given ? given : "") < 0)
		http->host_header = NULL;
	if (!http->connect_to || !http->host_header)
		return -ENOMEM;
	if (curl_url_set(url, CURLUPART_HOST, http->config->tls_server_name, 0))
		return err_say(ERR_CONFIG, "tls-server-name: '%s' is no host name",
			http->config->tls_server_name);
	return 0;
}

/* libcurl repeats what it can't read, and there may be a password in it: so it is tried before. */
static int check_proxy(const struct proxy *proxy)
{
	CLEANUP(cleanup_url) CURLU *url = curl_url();

	if (!url)
		return -ENOMEM;
	return curl_url_set(url, CURLUPART_URL, proxy->url, CURLU_NON_SUPPORT_SCHEME)
		? err_say(ERR_CONFIG, "%s: no proxy's URL", proxy->source) : 0;
}

/* HOST as in a URL: IPv6 in brackets. */
static int choose_proxy(struct http *http, const char *host, const char *port)
{
	const char *server = http->config->server;
	bool bracket = *host == '[';
	AUTO_FREE char *bare = strndup(host + bracket, strlen(host) - 2 * bracket);
	int r = bare ? proxy_choose(http->config, bare, port, &http->proxy) : -ENOMEM;

	if (!r && http->proxy.url)
		r = check_proxy(&http->proxy);
	if (r < 0)
		return r;
	if (!http->proxy.url)
		http->name = strdup(server);
	else if (asprintf(&http->name, "%s through proxy %s", server, http->proxy.name) < 0)
		http->name = NULL;
	return http->name ? 0 : -ENOMEM;
}

static int parse_server(struct http *http)
{
	CLEANUP(cleanup_url) CURLU *url = curl_url();
	CLEANUP(cleanup_curl) char *host = NULL, *port = NULL, *whole = NULL;
	size_t size;
	int r;

	if (!url)
		return err_set(-ENOMEM, "http");
	if (curl_url_set(url, CURLUPART_URL, http->config->server, 0) ||
		curl_url_get(url, CURLUPART_HOST, &host, 0) ||
		curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT))
		return err_say(ERR_CONFIG, "server: '%s' is no URL", http->config->server);
	r = choose_proxy(http, host, port);
	if (!r && http->config->tls_server_name)
		r = rename_server(http, url, host, port);
	if (r < 0)
		return r == -ENOMEM ? err_set(r, "http") : r;
	if (curl_url_get(url, CURLUPART_URL, &whole, 0))
		return err_set(-ENOMEM, "http");
	size = strlen(whole);
	http->base = strndup(whole, size - (whole[size - 1] == '/'));
	return http->base ? 0 : err_set(-ENOMEM, "http");
}

/* ---- what comes in ---- */

static void heard(struct http_call *call)
{
	struct http *http = call->http;
	long port = 0;

	call->limit.heard_ns = http->clock_ns;
	if (!call->port && !curl_easy_getinfo(call->easy, CURLINFO_LOCAL_PORT, &port))
		call->port = (uint16_t)port;
	connections_heard(&http->connections, call->port, http->clock_ns);
}

static size_t take_header(char *data, size_t size, size_t count, void *arg)
{
	struct http_call *call = arg;

	if (call->cancelled || call->stop)
		return 0;
	heard(call);
	return call_take_header(call, BYTES(data, size * count)) ? size * count : 0;
}

static size_t take_body(char *data, size_t size, size_t count, void *arg)
{
	struct http_call *call = arg;

	if (call->cancelled || call->stop)
		return 0;
	heard(call);
	return call_take_body(call, BYTES(data, size * count)) ? size * count : 0;
}

/* ---- sockets ---- */

static int socket_opened(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	struct http_call *call = arg;
	struct http *http = call->http;
	unsigned timeout_ms = UNACKNOWLEDGED_MS;

	(void)purpose;
	/* Not every kind of socket has it; keepalive is there beside it. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
	if (connections_add(&http->connections, fd, http->clock_ns) < 0)
		return CURL_SOCKOPT_ERROR;
	call->connecting = true;
	call->connecting_ns = proc_monotonic_ns();
	return CURL_SOCKOPT_OK;
}

static int socket_closing(void *arg, curl_socket_t fd)
{
	struct http *http = arg;

	connections_remove(&http->connections, fd);
	return close(fd);
}

/* ---- options of a call ---- */

/* curl_easy_setopt fails only for memory and for what this libcurl was built without; the first
 * failure sticks. */
struct setup {
	CURL *easy;
	CURLcode code;
};
#define SET(setup, option, value)                                                                  \
	do {                                                                                       \
		if (!(setup)->code)                                                                \
			(setup)->code = curl_easy_setopt((setup)->easy, option, value);            \
	} while (0)

/* The set lives as long as the call. */
static void set_pem(struct setup *setup, const struct certificate_text *text, CURLoption option)
{
	struct curl_blob blob = {.data = text->data, .len = text->size, .flags = CURL_BLOB_NOCOPY};

	if (text->data)
		SET(setup, option, &blob);
}

/* libcurl uses a connection again only for the same CA and certificate, byte by byte. */
static void set_certificates(struct setup *setup, const struct certificate_set *certificates, bool proxy)
{
	if (certificates->ca.data) {
		/* A proxy may be known to the cluster's CA (to Go it must) or to the system's. */
		if (proxy)
			set_pem(setup, &certificates->ca, CURLOPT_PROXY_CAINFO_BLOB);
		/* A CA of the cluster's own replaces the system's; libcurl would add them. */
		SET(setup, CURLOPT_CAPATH, NULL);
		set_pem(setup, &certificates->ca, CURLOPT_CAINFO_BLOB);
	}
	set_pem(setup, &certificates->certificate, CURLOPT_SSLCERT_BLOB);
	set_pem(setup, &certificates->key, CURLOPT_SSLKEY_BLOB);
}

static void set_tls(struct setup *setup, const struct kubeconfig *config)
{
	/* Rotated roots of the system count from the next connection on. */
	SET(setup, CURLOPT_CA_CACHE_TIMEOUT, 0L);
	SET(setup, CURLOPT_SSL_VERIFYPEER, config->insecure ? 0L : 1L);
	SET(setup, CURLOPT_SSL_VERIFYHOST, config->insecure ? 0L : 2L);
	/* Wait for a connection that may carry us too rather than open another. */
	SET(setup, CURLOPT_PIPEWAIT, 1L);
	SET(setup, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
}

/* libcurl 7.88 reads what a proxy says in answer to CONNECT for as long as there is more, and looks at no
 * limit meanwhile: one that does not end would hold up everything else. 1: enough. */
static int look_at_tunnel(void *arg, curl_off_t download, curl_off_t downloaded, curl_off_t upload,
	curl_off_t uploaded)
{
	const struct http_call *call = arg;
	curl_off_t done_us = 0;

	(void)download, (void)downloaded, (void)upload, (void)uploaded;
	if (call->limit.answered || !call->connecting ||
		proc_monotonic_ns() - call->connecting_ns < call->http->connect_ns)
		return 0;
	(void)curl_easy_getinfo(call->easy, CURLINFO_APPCONNECT_TIME_T, &done_us);
	return done_us == 0;
}

/* It was chosen already: libcurl is not to look into the environment, not for exceptions either. */
static void set_proxy(struct setup *setup, struct http_call *call)
{
	const struct http *http = call->http;

	SET(setup, CURLOPT_PROXY, http->proxy.url ? http->proxy.url : "");
	SET(setup, CURLOPT_NOPROXY, "");
	/* Who we are to the server is none of the proxy's business. */
	SET(setup, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
	if (http->proxy.url && http->config->tls) {
		SET(setup, CURLOPT_NOPROGRESS, 0L);
		SET(setup, CURLOPT_XFERINFOFUNCTION, look_at_tunnel);
		SET(setup, CURLOPT_XFERINFODATA, call);
	}
	if (!http->proxy.tls)
		return;
	SET(setup, CURLOPT_PROXY_SSL_VERIFYPEER, http->config->insecure ? 0L : 1L);
	SET(setup, CURLOPT_PROXY_SSL_VERIFYHOST, http->config->insecure ? 0L : 2L);
}

static void set_connection(struct setup *setup, struct http_call *call)
{
	struct http *http = call->http;
	const struct kubeconfig *config = http->config;

	SET(setup, CURLOPT_PROTOCOLS_STR, "http,https");
	SET(setup, CURLOPT_NOSIGNAL, 1L);
	SET(setup, CURLOPT_CONNECTTIMEOUT_MS, (long)(http->connect_ns / NS_PER_MS));
	SET(setup, CURLOPT_TCP_KEEPALIVE, 1L);
	SET(setup, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
	SET(setup, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_EVERY_S);
	SET(setup, CURLOPT_SOCKOPTFUNCTION, socket_opened);
	SET(setup, CURLOPT_SOCKOPTDATA, call);
	SET(setup, CURLOPT_CLOSESOCKETFUNCTION, socket_closing);
	SET(setup, CURLOPT_CLOSESOCKETDATA, http);
	SET(setup, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	set_proxy(setup, call);
	if (http->connect_to)
		SET(setup, CURLOPT_CONNECT_TO, http->connect_to);
	if (config->tls)
		set_tls(setup, config);
}

static void set_callbacks(struct setup *setup, struct http_call *call)
{
	SET(setup, CURLOPT_PRIVATE, call);
	SET(setup, CURLOPT_ERRORBUFFER, call->reason);
	SET(setup, CURLOPT_HEADERFUNCTION, take_header);
	SET(setup, CURLOPT_HEADERDATA, call);
	SET(setup, CURLOPT_WRITEFUNCTION, take_body);
	SET(setup, CURLOPT_WRITEDATA, call);
	SET(setup, CURLOPT_USERAGENT, "kinf-reflector/" KINF_VERSION);
	if (call->request.bulk)
		SET(setup, CURLOPT_BUFFERSIZE, BULK_BUFFER);
	if (call->request.gzip && !call->http->config->disable_compression)
		SET(setup, CURLOPT_ACCEPT_ENCODING, "gzip");
}

static int add_header(void *arg, const char *line)
{
	struct http_call *call = arg;
	struct curl_slist *list = curl_slist_append(call->headers, line);

	if (!list)
		return err_set(-ENOMEM, "request headers");
	call->headers = list;
	return 0;
}

static int add_headers(struct http_call *call, const struct http_request *request)
{
	const char *accept = request->accept;
	struct http *http = call->http;
	AUTO_FREE char *line = NULL;
	int r;

	if (asprintf(&line, "Accept: %s", accept ? accept : "application/json") < 0) {
		line = NULL;
		return err_set(-ENOMEM, "request headers");
	}
	r = add_header(call, line);
	if (!r && request->etag && *request->etag) {
		AUTO_FREE char *known = NULL;

		if (asprintf(&known, "If-None-Match: %s", request->etag) < 0) {
			known = NULL;
			return err_set(-ENOMEM, "request headers");
		}
		r = add_header(call, known);
	}
	return r || !http->host_header ? r : add_header(call, http->host_header);
}

static int setup_result(const struct setup *setup)
{
	if (setup->code == CURLE_OUT_OF_MEMORY)
		return err_set(-ENOMEM, "request");
	if (setup->code)
		return err_say(ERR_UNSUPPORTED, "libcurl: %s", curl_easy_strerror(setup->code));
	return 0;
}

static int set_up(struct http_call *call, const struct http_request *request)
{
	AUTO_FREE char *url = NULL;
	struct setup setup = {.easy = call->easy};
	int r = add_headers(call, request);

	if (r < 0)
		return r;
	if (asprintf(&url, "%s%s", call->http->base, request->path) < 0) {
		url = NULL;
		return err_set(-ENOMEM, "request");
	}
	SET(&setup, CURLOPT_URL, url);
	set_connection(&setup, call);
	set_callbacks(&setup, call);
	return setup_result(&setup);
}

/* Who we are is decided when the call is on its way, not when somebody thinks of it: between the two
 * may lie a rotation. */
static int show_credentials(struct http_call *call)
{
	struct http *http = call->http;
	struct setup setup = {.easy = call->easy};
	uint64_t now = proc_monotonic_ns();
	int r = credential_headers(http->credential, now, add_header, call);

	if (r)
		return r;
	call->shown = credential_version(http->credential);
	SET(&setup, CURLOPT_HTTPHEADER, call->headers);
	if (http->config->tls) {
		call->certificates = certificates_take(http->certificates, now);
		set_certificates(&setup, call->certificates, http->proxy.tls);
	}
	return setup_result(&setup);
}

/* ---- a call's life ---- */

static void call_free(struct http_call **call)
{
	struct http_call *c = *call;

	*call = NULL;
	if (!c)
		return;
	CHECK_OBJ(c, CALL_MAGIC);
	call_unlink(c);
	if (c->state == CALL_RUNNING)
		(void)curl_multi_remove_handle(c->http->multi, c->easy);
	curl_easy_cleanup(c->easy);
	for (struct curl_slist *item = c->headers; item; item = item->next)
		explicit_bzero(item->data, strlen(item->data));
	curl_slist_free_all(c->headers);
	certificate_set_release(&c->certificates);
	free(c->sentence);
	c->magic = 0;
	free(c);
}

int http_start(struct http *http, const struct http_request *request, struct http_call **ret_call)
{
	CLEANUP(call_free) struct http_call *call = calloc(1, sizeof(*call));
	int r;

	CHECK_OBJ(http, HTTP_MAGIC);
	REQUIRE(request->path && *request->path == '/' && request->on_done);
	if (!call)
		return err_set(-ENOMEM, "request");
	call->magic = CALL_MAGIC;
	call->http = http;
	call->request = *request;
	call->request.path = call->request.accept = call->request.etag = NULL;
	http_move_clock(http, 0); /* what the caller did before is not the server's time */
	call->limit = (struct limit){
		.first_byte_ns = request->first_byte_ns,
		.idle_ns = request->idle_ns,
		.total_ns = request->total_ns,
		.start_ns = http->clock_ns,
	};
	call->easy = curl_easy_init();
	if (!call->easy)
		return err_set(-ENOMEM, "request");
	r = set_up(call, request);
	if (r < 0)
		return r;
	call_link(http, call);
	http->counts.requests++;
	if (ret_call)
		*ret_call = call;
	call = NULL;
	return 0;
}

void http_cancel(struct http_call **call)
{
	struct http_call *c = *call;

	*call = NULL;
	if (!c)
		return;
	CHECK_OBJ(c, CALL_MAGIC);
	if (c->http->performing)
		c->cancelled = true; /* curl is not to be called here; http_poll frees it */
	else
		call_free(&c);
}

/* ---- how a call ended ---- */

static bool is_tls_error(CURLcode code)
{
	switch (code) {
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CIPHER:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CRL_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_INVALIDCERTSTATUS:
	case CURLE_SSL_ENGINE_INITFAILED:
	case CURLE_SSL_CLIENTCERT:
		return true;
	default:
		return false;
	}
}

static int error_code(CURLcode code)
{
	if (is_tls_error(code))
		return ERR_TLS;
	switch (code) {
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	case CURLE_OPERATION_TIMEDOUT:
	case CURLE_ABORTED_BY_CALLBACK: /* look_at_tunnel */
		return ERR_TIMEOUT;
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_BAD_CONTENT_ENCODING:
	case CURLE_UNSUPPORTED_PROTOCOL:
		return ERR_PROTOCOL;
	default:
		return ERR_NETWORK;
	}
}

static const char *what_failed(CURLcode code, bool answered)
{
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		return "name not found";
	case CURLE_COULDNT_CONNECT:
		return "no connection";
	case CURLE_OPERATION_TIMEDOUT:
	case CURLE_ABORTED_BY_CALLBACK:
		return "connecting took too long";
	default:
		return answered ? "answer cut off" : "no answer";
	}
}

/* curl's text, or the system's where curl only says that it could not connect. */
static const char *reason_of(const struct http_call *call, CURLcode code)
{
	long os_error = 0;

	(void)curl_easy_getinfo(call->easy, CURLINFO_OS_ERRNO, &os_error); /* 0 when unknown */
	if (code == CURLE_COULDNT_CONNECT && os_error)
		return err_name(-(int)os_error);
	return call->reason[0] ? call->reason : curl_easy_strerror(code);
}

static const char wants_user[] = "the proxy wants a user and a password, or other ones";

/* What went wrong on the way to the server; NULL: nothing, or not there. */
static const char *proxy_trouble(const struct http_call *call, CURLcode code)
{
	const struct http *http = call->http;
	long status = 0, proxy_error = 0;

	if (!http->proxy.url || call->limit.answered)
		return NULL;
	/* Both 0 when there is no such answer. */
	(void)curl_easy_getinfo(call->easy, CURLINFO_HTTP_CONNECTCODE, &status);
	(void)curl_easy_getinfo(call->easy, CURLINFO_PROXY_ERROR, &proxy_error);
	if (status == 407 || proxy_error == CURLPX_USER_REJECTED || proxy_error == CURLPX_NO_AUTH)
		return wants_user;
	if (status >= 300)
		return "the proxy does not let us through";
	if (proxy_error == CURLPX_CLOSED)
		return "the proxy closed the connection";
	switch (code) {
	case CURLE_COULDNT_RESOLVE_PROXY:
		return "the proxy's name was not found";
	case CURLE_COULDNT_CONNECT:
		return "no connection to the proxy";
	case CURLE_PROXY:
		return "the proxy could not lead to the server";
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_GOT_NOTHING:
		return status || !call->connecting ? NULL : "the proxy closed the connection";
	default:
		return status || !is_tls_error(code) || !http->proxy.tls ? NULL : "TLS to the proxy";
	}
}

static void end_with(struct http_call *call, int result)
{
	call->result = result;
	call->state = CALL_ENDED;
	(void)curl_multi_remove_handle(call->http->multi, call->easy);
}

static void end_by_curl(struct http_call *call, CURLcode code)
{
	int result = call->stop;

	if (!result && !code && call->head.status == 407) {
		/* Over plain http the proxy's answer looks like the server's, who never gives this one. */
		result = err_say(ERR_NETWORK, "%s: %s (HTTP 407)", call->http->name, wants_user);
		call->sentence = strdup(err_text(result));
	}
	if (!result && code) {
		const char *reason = reason_of(call, code), *trouble = proxy_trouble(call, code);

		result = trouble ? ERR_NETWORK : error_code(code);
		(void)err_say(result, "%s: %s: %s", call->http->name,
			trouble             ? trouble
			: result == ERR_TLS ? "TLS"
					    : what_failed(code, call->limit.answered),
			reason);
		call->sentence = strdup(err_text(result));
		if (result == ERR_TLS)
			certificates_doubt(call->http->certificates);
	}
	end_with(call, result);
}

/* Before curl had it: RESULT and the sentence that was set for it. */
static void end_by_error(struct http_call *call, int result)
{
	call->sentence = strdup(err_text(result));
	end_with(call, result);
}

static void end_by_timeout(struct http_call *call, const char *what, uint64_t limit_ns)
{
	(void)err_say(ERR_TIMEOUT, "%s: %s within %g s", call->http->name, what,
		(double)limit_ns / 1e9);
	call->sentence = strdup(err_text(ERR_TIMEOUT));
	end_with(call, ERR_TIMEOUT);
}

/* ---- limits ---- */

static void check_deadline(struct http_call *call)
{
	struct http *http = call->http;
	const char *what;
	uint64_t limit_ns;
	uint64_t at = limit_deadline(&call->limit, &limit_ns, &what);
	long port = call->port;

	if (http->clock_ns < at)
		return;
	if (!port)
		(void)curl_easy_getinfo(call->easy, CURLINFO_LOCAL_PORT, &port); /* 0: none yet */
	end_by_timeout(call, what, limit_ns);
	(void)connections_condemn(&http->connections, (uint16_t)port, http->clock_ns - limit_ns);
}

/* The oldest of the calls that may, on a connection that was silent for long. */
static void end_silent(struct http *http)
{
	struct http_call *oldest = NULL;
	uint16_t port = connections_ask(&http->connections, http->clock_ns);

	for (struct http_call *call = http->calls; port && call; call = call->next)
		if (call->state == CALL_RUNNING && call->request.renewable &&
			call->limit.answered && call->port == port)
			oldest = call; /* new calls stand in front */
	if (oldest)
		end_with(oldest, HTTP_SILENT);
}

/* ---- the loop ---- */

static int machinery_error(CURLMcode code)
{
	int r = code == CURLM_OUT_OF_MEMORY ? -ENOMEM : ERR_NETWORK;

	return err_say(r, "libcurl: %s", curl_multi_strerror(code));
}

/* Runs what can run now. */
static int perform(struct http *http)
{
	int running, left;
	CURLMcode code;

	http->performing = true;
	code = curl_multi_perform(http->multi, &running);
	http->performing = false;
	for (CURLMsg *msg; (msg = curl_multi_info_read(http->multi, &left));) {
		char *private;

		if (msg->msg != CURLMSG_DONE ||
			curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &private))
			continue;
		end_by_curl((struct http_call *)(void *)private, msg->data.result);
	}
	return code ? machinery_error(code) : 0;
}

/* A TLS handshake is under way, after which the connection may carry many calls. */
static bool is_connecting(const struct http *http)
{
	for (const struct http_call *call = http->calls; call; call = call->next) {
		curl_off_t done_us = 0;

		if (call->state != CALL_RUNNING || !call->connecting)
			continue;
		(void)curl_easy_getinfo(call->easy, CURLINFO_APPCONNECT_TIME_T, &done_us);
		if (!done_us)
			return true;
	}
	return false;
}

/* All get the same sentence: there is one set of credentials. */
static void fail_waiting(struct http *http, int result)
{
	for (struct http_call *call; (call = http_last_waiting(http));)
		end_by_error(call, result);
}

/* Calls that wait may be handed on. */
static bool may_add(struct http *http)
{
	int r;

	if (!http_last_waiting(http) && !credential_is_running(http->credential))
		return false;
	r = credential_ready(http->credential, proc_monotonic_ns());
	if (r == AGAIN)
		http_hold_waiting(http);
	else if (r < 0)
		fail_waiting(http, r);
	return r == 0;
}

/*
 * Hands waiting calls to curl, the oldest first. Over HTTP/2 one connection is opened at a time:
 * when all streams are taken, libcurl 7.88 opens one for every further call, although the first of
 * them could carry the others.
 */
static int add_waiting(struct http *http)
{
	bool one_by_one = http->config->tls && !http->single;
	int r = 0;

	if (!may_add(http))
		return 0;
	for (struct http_call *call; !r && (call = http_last_waiting(http));) {
		CURLMcode code;

		if (one_by_one && is_connecting(http))
			break;
		r = show_credentials(call);
		if (r < 0) {
			end_by_error(call, r);
			r = 0;
			continue;
		}
		code = curl_multi_add_handle(http->multi, call->easy);
		if (code)
			return machinery_error(code);
		call->state = CALL_RUNNING;
		if (one_by_one)
			r = perform(http); /* shows whether it needs a connection of its own */
	}
	return r;
}

/*
 * A server writes a list in pieces of a few kB: awake for each, half of the time goes into waking up.
 * A moment's sleep lets them gather in the kernel; not when the last turn may have left some there.
 */
static void gather(struct http *http)
{
	if (http->bulk_bytes && http->bulk_bytes < GATHER_BYTES)
		(void)nanosleep(&(struct timespec){0, GATHER_NS}, NULL);
	http->bulk_bytes = 0;
}

static int wait_for_any(struct http *http, int timeout_ms, struct pollfd *fds, size_t n_fds)
{
	struct curl_waitfd extra[HTTP_FDS_MAX + 1];
	int plugin = credential_fd(http->credential);
	int wait = http_next_ended(http) ? 0 : http_wait_ms(http, timeout_ms);
	CURLMcode code;

	for (size_t i = 0; i < n_fds; i++)
		extra[i] = (struct curl_waitfd){
			.fd = fds[i].fd,
			.events = (short)((fds[i].events & POLLIN ? CURL_WAIT_POLLIN : 0) |
					  (fds[i].events & POLLPRI ? CURL_WAIT_POLLPRI : 0) |
					  (fds[i].events & POLLOUT ? CURL_WAIT_POLLOUT : 0)),
		};
	if (plugin >= 0)
		extra[n_fds] = (struct curl_waitfd){.fd = plugin, .events = CURL_WAIT_POLLIN};
	if (credential_is_running(http->credential) && wait > PLUGIN_POLL_MS)
		wait = PLUGIN_POLL_MS; /* its end can't be polled */
	gather(http);
	code = curl_multi_poll(http->multi, extra, (unsigned)n_fds + (plugin >= 0), wait, NULL);
	http_move_clock(http, (uint64_t)wait);
	if (code)
		return machinery_error(code);
	for (size_t i = 0; i < n_fds; i++)
		fds[i].revents = (short)((extra[i].revents & CURL_WAIT_POLLIN ? POLLIN : 0) |
					 (extra[i].revents & CURL_WAIT_POLLPRI ? POLLPRI : 0) |
					 (extra[i].revents & CURL_WAIT_POLLOUT ? POLLOUT : 0));
	return 0;
}

static void free_cancelled(struct http *http)
{
	for (struct http_call *call = http->calls, *next; call; call = next) {
		next = call->next;
		if (call->cancelled)
			call_free(&call);
	}
}

/* on_done may start and cancel calls, so the search begins anew after each. */
static void deliver(struct http *http)
{
	for (struct http_call *call; (call = http_next_ended(http));) {
		struct http_request request = call->request;
		int result = call->result, status = call->limit.answered ? call->head.status : 0;

		if (result < 0)
			(void)err_say(result, "%s",
				call->sentence ? call->sentence : err_name(result));
		call_free(&call);
		request.on_done(request.arg, result, status);
	}
}

int http_poll(struct http *http, int timeout_ms, struct pollfd *fds, size_t n_fds)
{
	int r;

	CHECK_OBJ(http, HTTP_MAGIC);
	REQUIRE(n_fds <= HTTP_FDS_MAX && !http->performing);
	http_move_clock(http, 0);
	r = add_waiting(http);
	if (!r)
		r = wait_for_any(http, timeout_ms, fds, n_fds);
	if (!r)
		r = perform(http);
	free_cancelled(http);
	/* After what came in was taken: bytes that waited for us are no silence. */
	for (struct http_call *call = http->calls; call && !r; call = call->next)
		if (call->state != CALL_ENDED)
			check_deadline(call);
	if (!r)
		end_silent(http);
	deliver(http);
	return r;
}

/* ---- the whole ---- */

static int open_multi(struct http *http)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return err_set(-ENOMEM, "libcurl");
	http->global = true;
	http->multi = curl_multi_init();
	if (!http->multi ||
		curl_multi_setopt(http->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX))
		return err_set(-ENOMEM, "libcurl");
	return 0;
}

int http_new(const struct kubeconfig *config, struct http **ret_http)
{
	CLEANUP(http_free) struct http *http = calloc(1, sizeof(*http));
	int r;

	if (!http)
		return err_set(-ENOMEM, "http");
	http->magic = HTTP_MAGIC;
	http->config = config;
	http->connect_ns = CONNECT_LIMIT_NS;
	http->last_ns = proc_monotonic_ns();
	r = open_multi(http);
	if (!r)
		r = parse_server(http);
	if (!r)
		r = certificates_new(config, &http->certificates);
	if (!r)
		r = credential_new(config, http->certificates, &http->credential);
	if (r < 0)
		return r;
	*ret_http = TAKE(http);
	return 0;
}

void http_set_limits(struct http *http, uint64_t connect_ns, uint64_t silence_ns)
{
	CHECK_OBJ(http, HTTP_MAGIC);
	http->connect_ns = connect_ns;
	http->connections.silence_ns = silence_ns; /* of each from what is heard next on */
}

void http_free(struct http **http)
{
	struct http *h = *http;

	*http = NULL;
	if (!h)
		return;
	CHECK_OBJ(h, HTTP_MAGIC);
	REQUIRE(!h->performing);
	while (h->calls) {
		struct http_call *call = h->calls;

		call_free(&call);
	}
	(void)curl_multi_cleanup(h->multi); /* closes the sockets; NULL is an error it survives */
	if (h->global)
		curl_global_cleanup();
	credential_free(&h->credential);
	certificates_free(&h->certificates);
	connections_release(&h->connections);
	curl_slist_free_all(h->connect_to);
	proxy_release(&h->proxy);
	free(h->name);
	free(h->host_header);
	free(h->base);
	h->magic = 0;
	free(h);
}
