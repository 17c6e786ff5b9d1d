/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's URL and proxy, parsed once, and the libcurl options of each call. curl_easy_setopt
 * fails only without memory, and for options left out of this libcurl; the first failure sticks, so
 * a list of options has one check at its end.
 */
#include "reflector/net/http_internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"

#define KEEPALIVE_IDLE_S  20L
#define KEEPALIVE_EVERY_S 10L
/* libcurl keeps addresses for a minute, also those that refuse; each new attempt asks again. */
#define ADDRESS_KEPT_S 1L
/* A connection is dead if our bytes stay unacknowledged for this long. */
#define UNACKNOWLEDGED_MS 30000u
/*
 * Saves reads over HTTP/1, and lists over HTTP/2: if a watch's turn reads more of a list than fits
 * into this, libcurl 7.88 keeps the rest, and sees the list's end only once something else arrives
 * on the connection. This is its maximum; unused parts cost no memory.
 */
#define BULK_BUFFER (512L * 1024)

struct setup {
	CURL *easy;
	CURLcode code;
};
#define SET(setup, option, value) \
	do { \
		if (!(setup)->code) \
			(setup)->code = curl_easy_setopt((setup)->easy, option, value); \
	} while (0)

static int setup_result(const struct setup *setup)
{
	if (setup->code == CURLE_OUT_OF_MEMORY)
		return err_set(-ENOMEM, "request");
	if (setup->code)
		return err_say(ERR_UNSUPPORTED, "libcurl: %s", curl_easy_strerror(setup->code));
	return 0;
}

/* ---- the server --------------------------------------------------------- */

static void cleanup_url(CURLU **url)
{
	curl_url_cleanup(*url);
}

static void cleanup_curl(char **text)
{
	curl_free(*text);
}

/* Chooses the proxy for HOST, an IPv6 address in brackets, and composes the name for sentences. */
static int setup_proxy(struct http *http, const char *host, const char *port)
{
	const char *server = http->config->server;
	bool bracket = *host == '[';
	AUTO_FREE char *bare = strndup(host + bracket, strlen(host) - 2 * bracket);
	CLEANUP(cleanup_url) CURLU *url = curl_url();
	int r;

	if (!bare || !url)
		return err_set(-ENOMEM, "proxy");
	r = proxy_choose(http->config, bare, port, &http->proxy);
	if (r < 0)
		return r;
	if (!http->proxy.url) {
		http->name = strdup(server);
	} else {
		/* libcurl's error would repeat the URL, password included, so check it here. */
		if (curl_url_set(url, CURLUPART_URL, http->proxy.url, CURLU_NON_SUPPORT_SCHEME))
			return err_say(
				ERR_CONFIG, "%s: not the URL of a proxy", http->proxy.source);
		if (asprintf(&http->name, "%s through proxy %s", server, http->proxy.name) < 0)
			http->name = NULL;
	}
	return http->name ? 0 : err_set(-ENOMEM, "proxy");
}

int http_parse_server(struct http *http)
{
	CLEANUP(cleanup_url) CURLU *url = curl_url();
	CLEANUP(cleanup_curl) char *host = NULL, *port = NULL, *given = NULL, *whole = NULL;
	AUTO_FREE char *connect_to = NULL;
	CURLUcode code;
	int r;

	if (!url)
		return err_set(-ENOMEM, "server");
	code = curl_url_set(url, CURLUPART_URL, http->config->server, 0);
	if (!code)
		code = curl_url_get(url, CURLUPART_HOST, &host, 0);
	if (!code)
		code = curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
	if (code)
		return err_say(ERR_CONFIG, "server: '%s' is not a URL: %s", http->config->server,
			curl_url_strerror(code));
	r = setup_proxy(http, host, port);
	if (r < 0)
		return r;
	if (http->config->tls_server_name) {
		/* libcurl takes SNI and the name to verify from the URL alone. The real host goes
		 * into connect_to and the Host header, with a port only when the URL gives one. */
		if (asprintf(&connect_to, "::%s:%s", host, port) < 0) {
			connect_to = NULL;
			return err_set(-ENOMEM, "server");
		}
		http->connect_to = curl_slist_append(NULL, connect_to);
		(void)curl_url_get(url, CURLUPART_PORT, &given, 0);
		if (asprintf(&http->host_header, "Host: %s%s%s", host, given ? ":" : "",
			    given ? given : "") < 0)
			http->host_header = NULL;
		if (!http->connect_to || !http->host_header)
			return err_set(-ENOMEM, "server");
		if (curl_url_set(url, CURLUPART_HOST, http->config->tls_server_name, 0))
			return err_say(ERR_CONFIG, "tls-server-name: '%s' is not a host name",
				http->config->tls_server_name);
	}
	if (curl_url_get(url, CURLUPART_URL, &whole, 0))
		return err_set(-ENOMEM, "server");

	size_t size = strlen(whole);

	http->base = strndup(whole, size - (whole[size - 1] == '/'));
	return http->base ? 0 : err_set(-ENOMEM, "server");
}

/* ---- libcurl's callbacks ------------------------------------------------ */

/* Counts SIZE bytes on CALL's connection, which is alive. Returns: false when libcurl is to end the
 * call. */
static bool setup_heard(struct http_call *call, size_t size)
{
	struct http *http = call->http;
	long port = 0;

	if (call->cancelled || call->stop)
		return false;
	limit_heard(&call->limit, http->clock_ns, size);
	if (!call->port && !curl_easy_getinfo(call->easy, CURLINFO_LOCAL_PORT, &port))
		call->port = (uint16_t)port;
	connections_heard(&http->connections, call->port, http->clock_ns);
	return true;
}

static size_t setup_on_header(char *data, size_t size, size_t count, void *arg)
{
	struct http_call *call = arg;
	struct bytes line = BYTES(data, size * count);

	return setup_heard(call, line.size) && http_call_take_header(call, line) ? line.size : 0;
}

static size_t setup_on_body(char *data, size_t size, size_t count, void *arg)
{
	struct http_call *call = arg;
	struct bytes bytes = BYTES(data, size * count);

	return setup_heard(call, bytes.size) && http_call_take_body(call, bytes) ? bytes.size : 0;
}

static int setup_on_socket(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	struct http_call *call = arg;
	struct http *http = call->http;
	unsigned timeout_ms = UNACKNOWLEDGED_MS;

	(void)purpose;
	/* May fail: not every kind of socket has this option. Keepalive is set as well. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
	if (connections_add(&http->connections, fd, http->clock_ns) < 0)
		return CURL_SOCKOPT_ERROR;
	http->opener = call;
	return CURL_SOCKOPT_OK;
}

static int setup_on_close(void *arg, curl_socket_t fd)
{
	struct http *http = arg;

	connections_remove(&http->connections, fd);
	return close(fd);
}

/* ---- options of a call -------------------------------------------------- */

static int setup_add_header(struct http_call *call, const char *line)
{
	struct curl_slist *list = curl_slist_append(call->headers, line);

	if (!list)
		return err_set(-ENOMEM, "request headers");
	call->headers = list;
	return 0;
}

static void setup_connection(struct setup *setup, struct http_call *call)
{
	struct http *http = call->http;

	SET(setup, CURLOPT_PROTOCOLS_STR, "http,https");
	SET(setup, CURLOPT_NOSIGNAL, 1L);
	SET(setup, CURLOPT_DNS_CACHE_TIMEOUT, ADDRESS_KEPT_S);
	/* libcurl would wait for its resolver's thread, half a minute if the name servers are
	 * silent. */
	SET(setup, CURLOPT_QUICK_EXIT, 1L);
	SET(setup, CURLOPT_CONNECTTIMEOUT_MS, (long)(http->connect_limit_ns / NS_PER_MS));
	SET(setup, CURLOPT_TCP_KEEPALIVE, 1L);
	SET(setup, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
	SET(setup, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_EVERY_S);
	SET(setup, CURLOPT_SOCKOPTFUNCTION, setup_on_socket);
	SET(setup, CURLOPT_SOCKOPTDATA, call);
	SET(setup, CURLOPT_CLOSESOCKETFUNCTION, setup_on_close);
	SET(setup, CURLOPT_CLOSESOCKETDATA, http);
	if (http->connect_to)
		SET(setup, CURLOPT_CONNECT_TO, http->connect_to);
	/* proxy_choose() has read the environment; empty texts keep libcurl from reading it
	 * again. */
	SET(setup, CURLOPT_PROXY, http->proxy.url ? http->proxy.url : "");
	SET(setup, CURLOPT_NOPROXY, "");
	SET(setup, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	/* The proxy must not get the server's headers. */
	SET(setup, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
	if (http->proxy.tls) {
		SET(setup, CURLOPT_PROXY_SSL_VERIFYPEER, http->config->insecure ? 0L : 1L);
		SET(setup, CURLOPT_PROXY_SSL_VERIFYHOST, http->config->insecure ? 0L : 2L);
	}
	if (http->config->tls) {
		/* Zero: the system's roots are read again for each connection, since they may be
		 * rotated. */
		SET(setup, CURLOPT_CA_CACHE_TIMEOUT, 0L);
		SET(setup, CURLOPT_SSL_VERIFYPEER, http->config->insecure ? 0L : 1L);
		SET(setup, CURLOPT_SSL_VERIFYHOST, http->config->insecure ? 0L : 2L);
		/* A call waits for a connection to share instead of opening another. */
		SET(setup, CURLOPT_PIPEWAIT, 1L);
		SET(setup, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	}
}

int http_call_set_up(struct http_call *call, const struct http_request *request)
{
	CLEANUP(buf_release) struct buf accept = BUF_INIT, known = BUF_INIT, url = BUF_INIT;
	struct setup setup = {.easy = call->easy};

	buf_printf(&accept, "Accept: %s", request->accept ? request->accept : "application/json");
	buf_printf(&known, "If-None-Match: %s", request->etag ? request->etag : "");
	buf_printf(&url, "%s%s", call->http->base, request->path);
	if (buf_error(&accept) < 0 || buf_error(&known) < 0 || buf_error(&url) < 0)
		return err_set(-ENOMEM, "request");
	int r = setup_add_header(call, buf_cstr(&accept));
	if (!r && request->etag && *request->etag)
		r = setup_add_header(call, buf_cstr(&known));
	if (!r && call->http->host_header)
		r = setup_add_header(call, call->http->host_header);
	if (r < 0)
		return r;
	SET(&setup, CURLOPT_URL, buf_cstr(&url));
	setup_connection(&setup, call);
	SET(&setup, CURLOPT_PRIVATE, call);
	SET(&setup, CURLOPT_ERRORBUFFER, call->reason);
	SET(&setup, CURLOPT_HEADERFUNCTION, setup_on_header);
	SET(&setup, CURLOPT_HEADERDATA, call);
	SET(&setup, CURLOPT_WRITEFUNCTION, setup_on_body);
	SET(&setup, CURLOPT_WRITEDATA, call);
	SET(&setup, CURLOPT_USERAGENT, "kinf-reflector/" KINF_VERSION);
	if (request->bulk)
		SET(&setup, CURLOPT_BUFFERSIZE, BULK_BUFFER);
	/* Without the header a server may use any coding. With either, libcurl decodes all
	 * answers. */
	bool gzip = request->gzip && !call->http->config->disable_compression;
	SET(&setup, CURLOPT_ACCEPT_ENCODING, gzip ? "gzip" : "identity");
	return setup_result(&setup);
}

/* ---- credentials -------------------------------------------------------- */

/* TEXT is not copied: CALL holds its set of certificates until it is freed. */
static void setup_pem(struct setup *setup, const struct buf *text, CURLoption option)
{
	struct curl_blob blob = {.data = text->data, .len = text->size, .flags = CURL_BLOB_NOCOPY};

	if (text->size)
		SET(setup, option, &blob);
}

int http_call_set_credentials(struct http_call *call)
{
	struct http *http = call->http;
	struct setup setup = {.easy = call->easy};
	uint64_t now = proc_monotonic_ns();
	CLEANUP(buf_release) struct buf lines = BUF_SECRET;
	int r = credential_headers(http->credential, now, &lines);

	for (size_t at = 0; !r && at < lines.size; at += strlen((char *)lines.data + at) + 1)
		r = setup_add_header(call, (char *)lines.data + at);
	if (r)
		return r;
	call->credential_version = credential_version(http->credential);
	SET(&setup, CURLOPT_HTTPHEADER, call->headers);
	if (!http->config->tls)
		return setup_result(&setup);

	/* libcurl puts a call only on a connection opened with the same CA and certificate, byte by
	 * byte. */
	struct certificate_set *set = certificates_take(http->certificates, now);

	call->certificates = set;
	if (set->ca.size) {
		/* A proxy's certificate may be signed by the cluster's CA, as for Go, or by the
		 * system's. */
		if (http->proxy.tls)
			setup_pem(&setup, &set->ca, CURLOPT_PROXY_CAINFO_BLOB);
		/* The cluster's CA replaces the system's; without this line libcurl would add
		 * them. */
		SET(&setup, CURLOPT_CAPATH, NULL);
		setup_pem(&setup, &set->ca, CURLOPT_CAINFO_BLOB);
	}
	setup_pem(&setup, &set->certificate, CURLOPT_SSLCERT_BLOB);
	setup_pem(&setup, &set->key, CURLOPT_SSLKEY_BLOB);
	return setup_result(&setup);
}
