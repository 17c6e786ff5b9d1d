/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/kubeconfig_entry.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text/base64.h"
#include "common/cleanup.h"
#include "common/text/decimal.h"
#include "common/err.h"
#include "reflector/net/kubeconfig_member.h"
#include "reflector/net/small_file.h"

/* ---- PEM ---------------------------------------------------------------- */

int kubeconfig_pem_text(const struct kubeconfig_pem *pem, char **owned, struct bytes *ret_text)
{
	*ret_text = BYTES(pem->data ? pem->data : "", pem->data ? pem->size : 0);
	if (pem->data || !pem->file)
		return 0;
	int r = small_file_read(pem->file, KUBECONFIG_PEM_MAX, owned, &ret_text->size);
	ret_text->data = *owned;
	return r;
}

static bool pem_is_valid(const char *text)
{
	return strstr(text, "-----BEGIN ") != NULL;
}

/* Reads KEY, a file, or KEY-data, the PEM itself, which wins. */
static int pem_read(
	const struct kubeconfig_entry *entry, const char *key, struct kubeconfig_pem *pem)
{
	char data_key[64], *text;
	const struct yaml_node *node;
	size_t size;
	int r;

	(void)snprintf(data_key, sizeof(data_key), "%s-data", key);
	node = yaml_get(entry->body, data_key);
	if (node && node->type != YAML_SCALAR)
		return kubeconfig_bad(entry, data_key, "not a text");
	if (node && *node->text) {
		r = base64_decode(bytes_str(node->text), &pem->data, &pem->size);
		if (r == ERR_SYNTAX)
			return kubeconfig_bad(entry, data_key, "%s", err_text(r));
		if (r < 0)
			return r;
		if (!pem_is_valid(pem->data))
			return kubeconfig_bad(entry, data_key, "not PEM");
	}
	r = kubeconfig_path(entry, key, &pem->file);
	if (r || !pem->file)
		return r;
	if (pem->data) {
		free(pem->file);
		pem->file = NULL;
		return 0;
	}
	r = small_file_read(pem->file, KUBECONFIG_PEM_MAX, &text, &size);
	if (r < 0)
		return kubeconfig_bad(entry, key, "%s", err_text(r));
	r = pem_is_valid(text) ? 0 : kubeconfig_bad(entry, key, "'%s' is not PEM", pem->file);
	small_file_wipe(&text, size);
	return r;
}

static bool pem_given(const struct kubeconfig_pem *pem)
{
	return pem->data || pem->file;
}

/* ---- clusters ----------------------------------------------------------- */

static bool server_has_scheme(const char *url, const char *scheme)
{
	size_t n = strlen(scheme);

	return !strncasecmp(url, scheme, n) && !strncmp(url + n, "://", 3);
}

int kubeconfig_read_cluster(const struct kubeconfig_entry *entry, struct kubeconfig *config)
{
	int r = kubeconfig_text(entry, "server", &config->server);

	if (!r && !config->server)
		return kubeconfig_bad(entry, "server", "missing");
	if (!r)
		r = pem_read(entry, "certificate-authority", &config->ca);
	if (!r)
		r = kubeconfig_bool(entry, "insecure-skip-tls-verify", &config->insecure);
	if (!r)
		r = kubeconfig_text(entry, "tls-server-name", &config->tls_server_name);
	if (!r)
		r = kubeconfig_text(entry, "proxy-url", &config->proxy_url);
	if (!r)
		r = kubeconfig_bool(entry, "disable-compression", &config->disable_compression);
	if (!r && config->proxy_url && !server_has_scheme(config->proxy_url, "http") &&
		!server_has_scheme(config->proxy_url, "https") &&
		!server_has_scheme(config->proxy_url, "socks5") &&
		!server_has_scheme(config->proxy_url, "socks5h"))
		r = kubeconfig_bad(entry, "proxy-url", "not http://, https:// or socks5://");
	return r ? r : kubeconfig_read_exec_config(entry, config);
}

/* ---- users -------------------------------------------------------------- */

/* Checks texts that become headers. */
static int user_check_lines(
	const struct kubeconfig_entry *entry, const char *key, char *const *texts, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count && !r; i++)
		r = kubeconfig_one_line(entry, key, texts[i]);
	return r;
}

static int user_read_impersonation(const struct kubeconfig_entry *entry, struct kubeconfig *config)
{
	static const char key[] = "as-user-extra";
	struct kubeconfig_impersonation *as = &config->impersonate;
	const struct yaml_node *map = yaml_get(entry->body, key);
	int r = kubeconfig_text(entry, "as", &as->user);

	if (!r)
		r = kubeconfig_text(entry, "as-uid", &as->uid);
	if (!r)
		r = kubeconfig_one_line(entry, "as", as->user);
	if (!r)
		r = kubeconfig_one_line(entry, "as-uid", as->uid);
	if (!r)
		r = kubeconfig_texts(entry, "as-groups", yaml_get(entry->body, "as-groups"),
			&as->groups, &as->n_groups);
	if (!r)
		r = user_check_lines(entry, "as-groups", as->groups, as->n_groups);
	if (r)
		return r;
	if (map && map->type != YAML_MAP)
		return kubeconfig_bad(entry, key, "not a map");
	if (map) {
		as->extras = calloc(map->count ? map->count : 1, sizeof(*as->extras));
		if (!as->extras)
			return kubeconfig_no_memory(entry);
	}
	for (size_t i = 0; map && i < map->count; i++) {
		struct kubeconfig_extra *extra = &as->extras[as->n_extras++];

		extra->key = strdup(map->keys[i]);
		if (!extra->key)
			return kubeconfig_no_memory(entry);
		r = kubeconfig_texts(entry, key, &map->items[i], &extra->values, &extra->n_values);
		if (!r)
			r = user_check_lines(entry, key, extra->values, extra->n_values);
		if (r)
			return r;
	}
	if (!as->user && (as->uid || as->n_groups || as->n_extras))
		return kubeconfig_bad(entry, "as", "missing, but other as-* keys are given");
	return 0;
}

int kubeconfig_read_user(const struct kubeconfig_entry *entry, struct kubeconfig *config)
{
	int r = kubeconfig_text(entry, "token", &config->token);

	if (!r)
		r = kubeconfig_one_line(entry, "token", config->token);
	if (!r)
		r = kubeconfig_path(entry, "tokenFile", &config->token_file);
	if (!r)
		r = kubeconfig_text(entry, "username", &config->username);
	if (!r)
		r = kubeconfig_text(entry, "password", &config->password);
	if (!r)
		r = pem_read(entry, "client-certificate", &config->client_certificate);
	if (!r)
		r = pem_read(entry, "client-key", &config->client_key);
	if (r)
		return r;
	if (pem_given(&config->client_certificate) && !pem_given(&config->client_key))
		return kubeconfig_bad(
			entry, "client-key", "missing, but client-certificate is given");
	if (!pem_given(&config->client_certificate) && pem_given(&config->client_key))
		return kubeconfig_bad(
			entry, "client-certificate", "missing, but client-key is given");
	r = user_read_impersonation(entry, config);
	if (!r && (config->token || config->token_file) && config->username)
		return kubeconfig_bad(
			entry, "username", "more than one authentication method: token and basic");
	return r;
}

/* ---- the server --------------------------------------------------------- */

/* Returns what is wrong with the host and port at the beginning of TEXT; NULL: nothing. */
static const char *server_find_fault(const char *text)
{
	size_t size = strcspn(text, "/"), host;
	char address[INET6_ADDRSTRLEN];
	struct in6_addr in6;
	uint64_t port;

	if (!size || *text == ':')
		return "no host";
	if (memchr(text, '@', size))
		return "credentials in the URL; give the user a token";
	if (*text == '[') {
		const char *end = memchr(text, ']', size);
		size_t n = end ? (size_t)(end - text) - 1 : 0;

		/* A zone may follow the address. */
		(void)snprintf(address, sizeof(address), "%.*s", (int)(n < sizeof(address) ? n : 0),
			text + 1);
		address[strcspn(address, "%")] = '\0';
		if (!end || inet_pton(AF_INET6, address, &in6) != 1)
			return "no IPv6 address in the brackets";
		host = n + 2;
	} else {
		const char *colon = memchr(text, ':', size);

		host = colon ? (size_t)(colon - text) : size;
		if (colon && memchr(colon + 1, ':', size - host - 1))
			return "an IPv6 address must be in brackets";
	}
	if (host == size || (text[host] == ':' && host + 1 == size))
		return NULL;
	int r = decimal_parse(BYTES(text + host + 1, size - host - 1), UINT16_MAX, &port);
	bool good = text[host] == ':' && r == 0 && port;
	err_ignore(r, "it is said below");
	return good ? NULL : "the port is no number from 1 to 65535";
}

/* Gives the URL a scheme if it has none, lowers the scheme, cuts query, fragment and slashes at the
 * end, and checks the host. A path stays: the API may be served below it. */
static int server_normalize(const struct kubeconfig_entry *cluster, struct kubeconfig *config)
{
	bool https = config->insecure || pem_given(&config->ca) ||
		     pem_given(&config->client_certificate);
	char *url;

	if (!server_has_scheme(config->server, "https") &&
		!server_has_scheme(config->server, "http")) {
		const char *slash = strchr(config->server, '/');

		if (strstr(config->server, "://") || (slash && slash[1] == '/' && slash[2]))
			return kubeconfig_bad(cluster, "server", "neither http:// nor https://");
		if (asprintf(&url, "%s://%s", https ? "https" : "http", config->server) < 0)
			return kubeconfig_no_memory(cluster);
		free(config->server);
		config->server = url;
	}
	url = config->server;

	char *host = strstr(url, "://") + 3;

	for (char *p = url; p < host; p++)
		*p = (char)tolower((unsigned char)*p);
	for (const char *p = url; *p; p++)
		if (iscntrl((unsigned char)*p) || *p == ' ')
			return kubeconfig_bad(
				cluster, "server", "blanks or control characters in it");
	url[strcspn(url, "?#")] = '\0';
	for (size_t n = strlen(url); n && url + n > host && url[n - 1] == '/'; n--)
		url[n - 1] = '\0';
	const char *fault = server_find_fault(host);
	return fault ? kubeconfig_bad(cluster, "server", "%s", fault) : 0;
}

int kubeconfig_settle_server(const struct kubeconfig_entry *cluster, struct kubeconfig *config)
{
	int r = server_normalize(cluster, config);

	if (r)
		return r;
	config->tls = server_has_scheme(config->server, "https");
	if (!config->tls) {
		/* All secrets: others can read a plain http connection (docs/protocol.md 0.8). */
		char **texts[] = {&config->token, &config->token_file, &config->username,
			&config->password, &config->tls_server_name};
		struct kubeconfig_pem *pems[] = {
			&config->client_certificate, &config->client_key, &config->ca};

		config->withheld = config->token || config->token_file || config->username ||
				   pem_given(&config->client_certificate);
		for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
			small_file_wipe_text(texts[i]);
		for (size_t i = 0; i < sizeof(pems) / sizeof(pems[0]); i++) {
			small_file_wipe(&pems[i]->data, pems[i]->size);
			free(pems[i]->file);
			*pems[i] = (struct kubeconfig_pem){NULL};
		}
		config->insecure = false;
	}
	if (config->insecure && pem_given(&config->ca))
		return kubeconfig_bad(cluster, "insecure-skip-tls-verify",
			"given together with a certificate-authority");
	return 0;
}

int kubeconfig_pod_namespace(const char *directory, char **ret_name)
{
	const char *name = getenv("POD_NAMESPACE");
	AUTO_FREE char *path = NULL, *text = NULL;
	size_t size;
	int r;

	if (!name || !*name) {
		name = "default";
		if (asprintf(&path, "%s/namespace", directory) < 0) {
			path = NULL;
			return err_set(-ENOMEM, "in-cluster configuration");
		}
		r = small_file_read(path, 4096, &text, &size);
		if (r < 0)
			err_ignore(r,
				"without the file the namespace is \"default\", as in client-go");
		else if (*small_file_trim(text))
			name = small_file_trim(text);
	}
	*ret_name = strdup(name);
	return *ret_name ? 0 : err_set(-ENOMEM, "in-cluster configuration");
}
