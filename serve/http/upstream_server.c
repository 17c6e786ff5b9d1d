/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the reflector's file `upstream`, the address of the API server, for libcurl. */
#include "serve/http/upstream_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/base64.h"
#include "common/value/yaml.h"

/* ---- the file ----------------------------------------------------------- */

void upstream_server_release(struct upstream_server *server)
{
	free(server->url);
	free(server->proxy);
	free(server->name);
	free(server->ca);
	*server = (struct upstream_server){.generation = server->generation};
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
	if (r == 0 && (!server.url || !strstr(server.url, "://")))
		r = err_say(ERR_FORMAT, "the file 'upstream' names no server");
	if (r < 0)
		return r;
	server.insecure = insecure && strcmp(insecure, "true") == 0;
	*ret_server = server;
	server = (struct upstream_server){0};
	return 0;
}

int upstream_server_refresh(struct upstream_server *s, int runtime_fd)
{
	CLEANUP(yaml_free) struct yaml *yaml = NULL;
	struct upstream_server server = {0};
	struct stat st;
	AUTO_FD int fd = openat(runtime_fd, "upstream", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(-errno, "the API server's address is not known (the file 'upstream' "
				       "of kinf-reflector)");
	if (s->url && !s->stale && st.st_ino == s->file.st_ino && st.st_size == s->file.st_size &&
		memcmp(&st.st_mtim, &s->file.st_mtim, sizeof(st.st_mtim)) == 0)
		return 0;
	int r = yaml_load_fd(fd, "upstream", &yaml);
	if (r == 0)
		r = upstream_parse(yaml_root(yaml), &server);
	if (r < 0)
		return r;
	server.generation = s->generation + 1;
	server.file = st;
	upstream_server_release(s);
	*s = server;
	return 0;
}

/* ---- libcurl ------------------------------------------------------------ */

void upstream_lists_release(struct upstream_lists *lists)
{
	curl_slist_free_all(lists->headers);
	curl_slist_free_all(lists->connect_to);
	*lists = (struct upstream_lists){0};
}

bool upstream_add_line(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*list, line);

	if (longer)
		*list = longer;
	return longer;
}

void upstream_server_split(
	const struct upstream_server *server, struct bytes *ret_host, struct bytes *ret_base)
{
	const char *host = strstr(server->url, "://") + 3, *path = host + strcspn(host, "/?#");
	size_t size = strcspn(path, "?#");

	while (size && path[size - 1] == '/')
		size--;
	*ret_host = BYTES(host, (size_t)(path - host));
	*ret_base = BYTES(path, size);
}

/* Appends the URL of PATH. With tlsServerName the URL has that name, and the connection goes to the
 * server's host. */
static int upstream_put_url(const struct upstream_server *server, struct upstream_lists *lists,
	const char *path, struct buf *url)
{
	struct bytes host, base;
	char to[600];

	upstream_server_split(server, &host, &base);
	const char *p = host.data, *colon = memrchr(p, ':', host.size);
	bool has_port = colon && !memchr(colon, ']', (size_t)(p + host.size - colon));
	if (!server->name) {
		buf_printf(url, "%.*s%.*s%s", (int)(p + host.size - server->url), server->url,
			BYTES_ARG(base), path);
		return buf_error(url);
	}
	buf_printf(url, "%.*s%s%.*s%.*s%s", (int)(p - server->url), server->url, server->name,
		has_port ? (int)(p + host.size - colon) : 0, has_port ? colon : "", BYTES_ARG(base),
		path);
	(void)snprintf(to, sizeof(to), "%s::%.*s%s", server->name, BYTES_ARG(host),
		has_port ? "" : ":443");
	if (!upstream_add_line(&lists->connect_to, to))
		return err_set(-ENOMEM, "asking the API server");
	(void)snprintf(to, sizeof(to), "Host: %.*s", BYTES_ARG(host));
	return upstream_add_line(&lists->headers, to) ? buf_error(url)
						      : err_set(-ENOMEM, "asking the API server");
}

int upstream_server_apply(const struct upstream_server *server, CURL *easy, const char *path,
	struct upstream_lists *lists)
{
	CLEANUP(buf_release) struct buf url = BUF_INIT;
	struct curl_blob ca = {.data = server->ca, .len = server->ca_size, .flags = CURL_BLOB_COPY};
	CURLcode code = CURLE_OK;
	int r = upstream_put_url(server, lists, path, &url);

	if (r < 0)
		return r;
#define SET(option, value) (code = code ? code : curl_easy_setopt(easy, option, value))
	SET(CURLOPT_URL, buf_cstr(&url));
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_DNS_CACHE_TIMEOUT, 1L); /* as the reflector (net/http_setup.c) */
	SET(CURLOPT_QUICK_EXIT, 1L);
	if (lists->connect_to)
		SET(CURLOPT_CONNECT_TO, lists->connect_to);
	if (server->proxy)
		SET(CURLOPT_PROXY, server->proxy);
	if (server->ca)
		SET(CURLOPT_CAINFO_BLOB, &ca);
	SET(CURLOPT_SSL_VERIFYPEER, server->insecure ? 0L : 1L);
	SET(CURLOPT_SSL_VERIFYHOST, server->insecure ? 0L : 2L);
#undef SET
	return code ? err_say(ERR_NETWORK, "asking the API server: %s", curl_easy_strerror(code))
		    : 0;
}
