/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/kubeconfig_entry.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/base64.h"
#include "reflector/small_file.h"

#define PEM_MAX ((size_t)1 << 20)

/* ---- members of an entry ---- */

/* "'/x/config': user 'u': token: WHAT". WHAT never holds a value that may be secret. */
static int bad(const struct kubeconfig_entry *entry, const char *key, const char *what, ...)
	__attribute__((format(printf, 3, 4), cold));
static int bad(const struct kubeconfig_entry *entry, const char *key, const char *what, ...)
{
	char text[512];
	va_list args;

	va_start(args, what);
	(void)vsnprintf(text, sizeof(text), what, args);
	va_end(args);
	return err_say(ERR_CONFIG, "'%s': %s '%s': %s: %s", entry->file->path, entry->kind,
		entry->name, key, text);
}

static int no_memory(const struct kubeconfig_entry *entry)
{
	return err_set(-ENOMEM, "'%s'", entry->file->path);
}

/* An absent and an empty text are the same thing: NULL. */
static int take_text(const struct kubeconfig_entry *entry, const char *key, char **ret_text)
{
	const struct yaml_node *node = yaml_get(entry->body, key);

	if (!node)
		return 0;
	if (node->type != YAML_SCALAR)
		return bad(entry, key, "not a text");
	if (!*node->text)
		return 0;
	*ret_text = strdup(node->text);
	return *ret_text ? 0 : no_memory(entry);
}

static int take_bool(const struct kubeconfig_entry *entry, const char *key, bool *ret_bool)
{
	const char *text = yaml_text(entry->body, key);

	if (!yaml_get(entry->body, key))
		return 0;
	if (!text || (strcmp(text, "true") && strcmp(text, "false")))
		return bad(entry, key, "neither true nor false");
	*ret_bool = !strcmp(text, "true");
	return 0;
}

/* Relative to the directory of the file that holds the entry. */
static int take_path(const struct kubeconfig_entry *entry, const char *key, char **ret_path)
{
	AUTO_FREE char *text = NULL;
	const char *slash = strrchr(entry->file->path, '/');
	int r = take_text(entry, key, &text);

	if (r || !text)
		return r;
	if (*text == '/' || !slash) {
		*ret_path = TAKE(text);
		return 0;
	}
	if (asprintf(ret_path, "%.*s/%s", (int)(slash - entry->file->path), entry->file->path,
		    text) < 0) {
		*ret_path = NULL;
		return no_memory(entry);
	}
	return 0;
}

/* A header line is made of these. */
static int check_one_line(const struct kubeconfig_entry *entry, const char *key, const char *text)
{
	for (; text && *text; text++)
		if (iscntrl((unsigned char)*text))
			return bad(entry, key, "control characters in it");
	return 0;
}

static int take_texts(const struct kubeconfig_entry *entry, const char *key,
	const struct yaml_node *list, char ***ret_texts, size_t *ret_count)
{
	if (!list)
		return 0;
	if (list->type != YAML_LIST)
		return bad(entry, key, "not a list");
	*ret_texts = calloc(list->count ? list->count : 1, sizeof(**ret_texts));
	if (!*ret_texts)
		return no_memory(entry);
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].type != YAML_SCALAR)
			return bad(entry, key, "item %zu is not a text", i);
		(*ret_texts)[i] = strdup(list->items[i].text);
		if (!(*ret_texts)[i])
			return no_memory(entry);
		(*ret_count)++;
		int r = check_one_line(entry, key, list->items[i].text);

		if (r)
			return r;
	}
	return 0;
}

/* ---- PEM ---- */

static bool looks_like_pem(const char *text)
{
	return strstr(text, "-----BEGIN ") != NULL;
}

static int take_pem_data(const struct kubeconfig_entry *entry, const char *key,
	struct kubeconfig_pem *pem)
{
	const struct yaml_node *node = yaml_get(entry->body, key);
	int r;

	if (node && node->type != YAML_SCALAR)
		return bad(entry, key, "not a text");
	if (!node || !*node->text)
		return 0;
	r = base64_decode(bytes_str(node->text), &pem->data, &pem->size);
	if (r == ERR_SYNTAX)
		return bad(entry, key, "%s", err_text(r));
	if (r < 0)
		return r;
	return looks_like_pem(pem->data) ? 0 : bad(entry, key, "not PEM");
}

static int check_pem_file(const struct kubeconfig_entry *entry, const char *key, const char *path)
{
	char *text;
	size_t size;
	int r = small_file_read(path, PEM_MAX, &text, &size);

	if (r < 0)
		return bad(entry, key, "%s", err_text(r));
	r = looks_like_pem(text) ? 0 : bad(entry, key, "'%s' is not PEM", path);
	small_file_wipe(&text, size);
	return r;
}

/* KEY names a file, KEY-data holds the PEM itself and wins. */
static int take_pem(const struct kubeconfig_entry *entry, const char *key,
	struct kubeconfig_pem *pem)
{
	char data_key[64];
	int r;

	(void)snprintf(data_key, sizeof(data_key), "%s-data", key);
	r = take_pem_data(entry, data_key, pem);
	if (!r)
		r = take_path(entry, key, &pem->file);
	if (r || !pem->file)
		return r;
	if (!pem->data)
		return check_pem_file(entry, key, pem->file);
	free(pem->file);
	pem->file = NULL;
	return 0;
}

static bool pem_given(const struct kubeconfig_pem *pem)
{
	return pem->data || pem->file;
}

/* ---- clusters ---- */

static bool has_scheme(const char *url, const char *scheme)
{
	size_t n = strlen(scheme);

	return !strncasecmp(url, scheme, n) && !strncmp(url + n, "://", 3);
}

static int check_proxy(const struct kubeconfig_entry *entry, const char *url)
{
	if (!url || has_scheme(url, "http") || has_scheme(url, "https") ||
		has_scheme(url, "socks5") || has_scheme(url, "socks5h"))
		return 0;
	return bad(entry, "proxy-url", "not http://, https:// or socks5://");
}

int kubeconfig_take_cluster(const struct kubeconfig_entry *entry, struct kubeconfig *config)
{
	int r = take_text(entry, "server", &config->server);

	if (!r && !config->server)
		return bad(entry, "server", "missing");
	if (!r)
		r = take_pem(entry, "certificate-authority", &config->ca);
	if (!r)
		r = take_bool(entry, "insecure-skip-tls-verify", &config->insecure);
	if (!r)
		r = take_text(entry, "tls-server-name", &config->tls_server_name);
	if (!r)
		r = take_text(entry, "proxy-url", &config->proxy_url);
	if (!r)
		r = take_bool(entry, "disable-compression", &config->disable_compression);
	if (!r)
		r = check_proxy(entry, config->proxy_url);
	return r;
}

/* ---- users ---- */

static int take_extras(const struct kubeconfig_entry *entry,
	struct kubeconfig_impersonation *impersonate)
{
	static const char key[] = "as-user-extra";
	const struct yaml_node *map = yaml_get(entry->body, key);

	if (!map)
		return 0;
	if (map->type != YAML_MAP)
		return bad(entry, key, "not a map");
	impersonate->extras = calloc(map->count ? map->count : 1, sizeof(*impersonate->extras));
	if (!impersonate->extras)
		return no_memory(entry);
	for (size_t i = 0; i < map->count; i++) {
		struct kubeconfig_extra *extra = &impersonate->extras[impersonate->n_extras++];
		int r;

		extra->key = strdup(map->keys[i]);
		if (!extra->key)
			return no_memory(entry);
		r = take_texts(entry, key, &map->items[i], &extra->values, &extra->n_values);
		if (r)
			return r;
	}
	return 0;
}

static int take_impersonation(const struct kubeconfig_entry *entry, struct kubeconfig *config)
{
	struct kubeconfig_impersonation *as = &config->impersonate;
	int r = take_text(entry, "as", &as->user);

	if (!r)
		r = take_text(entry, "as-uid", &as->uid);
	if (!r)
		r = check_one_line(entry, "as", as->user);
	if (!r)
		r = check_one_line(entry, "as-uid", as->uid);
	if (!r)
		r = take_texts(entry, "as-groups", yaml_get(entry->body, "as-groups"), &as->groups,
			&as->n_groups);
	if (!r)
		r = take_extras(entry, as);
	if (!r && !as->user && (as->uid || as->n_groups || as->n_extras))
		return bad(entry, "as", "missing, but other as-* keys are given");
	return r;
}

static int take_client_certificate(const struct kubeconfig_entry *entry, struct kubeconfig *config)
{
	int r = take_pem(entry, "client-certificate", &config->client_certificate);

	if (!r)
		r = take_pem(entry, "client-key", &config->client_key);
	if (r)
		return r;
	if (pem_given(&config->client_certificate) && !pem_given(&config->client_key))
		return bad(entry, "client-key", "missing, but client-certificate is given");
	if (!pem_given(&config->client_certificate) && pem_given(&config->client_key))
		return bad(entry, "client-certificate", "missing, but client-key is given");
	return 0;
}

int kubeconfig_take_user(const struct kubeconfig_entry *entry, struct kubeconfig *config)
{
	int r = take_text(entry, "token", &config->token);

	if (!r)
		r = check_one_line(entry, "token", config->token);
	if (!r)
		r = take_path(entry, "tokenFile", &config->token_file);
	if (!r)
		r = take_text(entry, "username", &config->username);
	if (!r)
		r = take_text(entry, "password", &config->password);
	if (!r)
		r = take_client_certificate(entry, config);
	if (!r)
		r = take_impersonation(entry, config);
	if (!r && (config->token || config->token_file) && config->username)
		return bad(entry, "username", "more than one authentication method: token and basic");
	return r;
}

/* ---- exec and auth-provider ---- */

static int exec_is_missing(const struct kubeconfig_entry *user)
{
	struct kubeconfig_entry exec = *user;
	AUTO_FREE char *command = NULL, *version = NULL;
	int r;

	exec.body = yaml_get(user->body, "exec");
	r = take_text(&exec, "command", &command);
	if (!r)
		r = take_text(&exec, "apiVersion", &version);
	if (r)
		return r;
	if (!command || !version)
		return bad(user, "exec", "%s missing", command ? "apiVersion" : "command");
	return err_say(ERR_UNSUPPORTED,
		"'%s': user '%s': exec: plugins ('%s') are not supported yet; use a token, a tokenFile "
		"or a client certificate",
		user->file->path, user->name, command);
}

/* Of the providers that once were only oidc still is; its token is used while it is valid. */
static int take_provider(const struct kubeconfig_entry *user, struct kubeconfig *config)
{
	const struct yaml_node *provider = yaml_get(user->body, "auth-provider");
	const char *name = yaml_text(provider, "name");
	struct kubeconfig_entry oidc = *user;

	if (!name)
		return bad(user, "auth-provider", "no name");
	if (!strcmp(name, "gcp"))
		return bad(user, "auth-provider", "gcp was removed; use gke-gcloud-auth-plugin");
	if (!strcmp(name, "azure"))
		return bad(user, "auth-provider", "azure was removed; use kubelogin");
	if (strcmp(name, "oidc"))
		return bad(user, "auth-provider", "'%s' is unknown", name);
	oidc.body = yaml_get(provider, "config");
	int r = take_text(&oidc, "id-token", &config->token);

	if (!r)
		r = check_one_line(&oidc, "id-token", config->token);
	return r || config->token ? r : bad(user, "auth-provider", "oidc: no id-token");
}

int kubeconfig_check_plugins(const struct kubeconfig_entry *user, struct kubeconfig *config)
{
	if (!config->tls || config->token || config->token_file || config->username ||
		pem_given(&config->client_certificate))
		return 0;
	if (yaml_get(user->body, "exec"))
		return exec_is_missing(user);
	return yaml_get(user->body, "auth-provider") ? take_provider(user, config) : 0;
}

/* ---- the server ---- */

static void drop_text(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

static void drop_pem(struct kubeconfig_pem *pem)
{
	if (pem->data)
		explicit_bzero(pem->data, pem->size);
	free(pem->data);
	free(pem->file);
	*pem = (struct kubeconfig_pem){NULL};
}

/* spec/api.md 0.8: nothing secret goes over a line that anybody can read. */
static void drop_credentials(struct kubeconfig *config)
{
	drop_text(&config->token);
	drop_text(&config->token_file);
	drop_text(&config->username);
	drop_text(&config->password);
	drop_text(&config->tls_server_name);
	drop_pem(&config->client_certificate);
	drop_pem(&config->client_key);
	drop_pem(&config->ca);
	config->insecure = false;
}

/* Gives the URL its scheme; false for another one. */
static int add_scheme(const struct kubeconfig_entry *cluster, struct kubeconfig *config)
{
	bool https = config->insecure || pem_given(&config->ca) ||
		     pem_given(&config->client_certificate);
	char *url;

	if (has_scheme(config->server, "https") || has_scheme(config->server, "http"))
		return 0;
	if (strstr(config->server, "://"))
		return bad(cluster, "server", "neither http:// nor https://");
	if (asprintf(&url, "%s://%s", https ? "https" : "http", config->server) < 0)
		return no_memory(cluster);
	free(config->server);
	config->server = url;
	return 0;
}

/* A query or fragment of the URL means nothing; a path in front of the API does. */
static int tidy_server(const struct kubeconfig_entry *cluster, char *url)
{
	char *host = strstr(url, "://") + 3;

	for (char *p = url; p < host; p++)
		*p = (char)tolower((unsigned char)*p);
	for (const char *p = url; *p; p++)
		if (iscntrl((unsigned char)*p) || *p == ' ')
			return bad(cluster, "server", "blanks or control characters in it");
	url[strcspn(url, "?#")] = '\0';
	for (size_t n = strlen(url); n && url + n > host && url[n - 1] == '/'; n--)
		url[n - 1] = '\0';
	if (!*host || *host == '/' || *host == ':')
		return bad(cluster, "server", "no host");
	if (memchr(host, '@', strcspn(host, "/")))
		return bad(cluster, "server", "credentials in the URL; give the user a token");
	return 0;
}

int kubeconfig_settle_server(const struct kubeconfig_entry *cluster, struct kubeconfig *config)
{
	int r = add_scheme(cluster, config);

	if (!r)
		r = tidy_server(cluster, config->server);
	if (r)
		return r;
	config->tls = has_scheme(config->server, "https");
	if (!config->tls)
		drop_credentials(config);
	if (config->insecure && pem_given(&config->ca))
		return bad(cluster, "insecure-skip-tls-verify",
			"given together with a certificate-authority");
	return 0;
}

int kubeconfig_pod_namespace(const char *directory, char **ret_name)
{
	const char *name = getenv("POD_NAMESPACE");
	AUTO_FREE char *path = NULL, *text = NULL;
	size_t size;

	if (!name || !*name) {
		name = "default";
		if (asprintf(&path, "%s/namespace", directory) < 0) {
			path = NULL;
			return err_set(-ENOMEM, "in-cluster configuration");
		}
		if (!small_file_read(path, 4096, &text, &size) && *small_file_trim(text))
			name = small_file_trim(text);
	}
	err_clear();
	*ret_name = strdup(name);
	return *ret_name ? 0 : err_set(-ENOMEM, "in-cluster configuration");
}
