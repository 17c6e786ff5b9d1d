/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/kubeconfig_entry.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/base64.h"
#include "common/value/json.h"
#include "common/value/number.h"
#include "reflector/net/small_file.h"

#define EXEC_GROUP     "client.authentication.k8s.io/"
#define EXEC_EXTENSION "client.authentication.k8s.io/exec"
#define DEPTH_MAX      64

/* ---- members ------------------------------------------------------------ */

#define MEMBER(entry, key, type, member, flags) \
	{ \
		entry, key, KUBECONFIG_##type, offsetof(struct kubeconfig, member), flags \
	}

const struct kubeconfig_member kubeconfig_members[] = {
	MEMBER("", NULL, TEXT, source, 0),
	MEMBER("", NULL, TEXT, context, KUBECONFIG_IDENTITY),
	MEMBER("", NULL, TEXT, name_space, 0),
	MEMBER("", NULL, TEXT, exec_config, KUBECONFIG_IDENTITY),
	MEMBER("", NULL, TEXTS, exec.variables, KUBECONFIG_IDENTITY),
	MEMBER("", NULL, TEXTS, impersonate.extras, KUBECONFIG_IDENTITY),

	MEMBER("cluster", "server", TEXT, server, KUBECONFIG_IDENTITY),
	MEMBER("cluster", "certificate-authority", PEM, ca, KUBECONFIG_IDENTITY | KUBECONFIG_TLS),
	MEMBER("cluster", "insecure-skip-tls-verify", BOOL, insecure, KUBECONFIG_IDENTITY),
	MEMBER("cluster", "tls-server-name", TEXT, tls_server_name,
		KUBECONFIG_IDENTITY | KUBECONFIG_TLS),
	MEMBER("cluster", "proxy-url", TEXT, proxy_url, KUBECONFIG_IDENTITY),
	MEMBER("cluster", "disable-compression", BOOL, disable_compression, KUBECONFIG_IDENTITY),

	MEMBER("user", "token", LINE, token, KUBECONFIG_IDENTITY | KUBECONFIG_TLS),
	MEMBER("user", "tokenFile", PATH, token_file, KUBECONFIG_IDENTITY | KUBECONFIG_TLS),
	MEMBER("user", "username", TEXT, username, KUBECONFIG_IDENTITY | KUBECONFIG_TLS),
	MEMBER("user", "password", TEXT, password, KUBECONFIG_IDENTITY | KUBECONFIG_TLS),
	MEMBER("user", "client-certificate", PEM, client_certificate,
		KUBECONFIG_IDENTITY | KUBECONFIG_TLS),
	MEMBER("user", "client-key", PEM, client_key, KUBECONFIG_IDENTITY | KUBECONFIG_TLS),
	MEMBER("user", "as", LINE, impersonate.user, KUBECONFIG_IDENTITY),
	MEMBER("user", "as-uid", LINE, impersonate.uid, KUBECONFIG_IDENTITY),
	MEMBER("user", "as-groups", LINES, impersonate.groups, KUBECONFIG_IDENTITY),

	MEMBER("exec", "command", PROGRAM, exec.command, KUBECONFIG_IDENTITY),
	MEMBER("exec", "apiVersion", TEXT, exec.api_version, KUBECONFIG_IDENTITY),
	MEMBER("exec", "args", TEXTS, exec.args, KUBECONFIG_IDENTITY),
	MEMBER("exec", "installHint", TEXT, exec.install_hint, 0),
	MEMBER("exec", "provideClusterInfo", BOOL, exec.provide_cluster_info, KUBECONFIG_IDENTITY),
};
const size_t kubeconfig_n_members = ARRAY_SIZE(kubeconfig_members);

void kubeconfig_member_release(struct kubeconfig *config, const struct kubeconfig_member *member)
{
	void *at = kubeconfig_at(config, member);
	struct kubeconfig_texts *texts = at;
	struct kubeconfig_pem *pem = at;

	switch (member->type) {
	case KUBECONFIG_BOOL:
		break;
	case KUBECONFIG_PEM:
		small_file_wipe(&pem->data, pem->size);
		small_file_wipe_text(&pem->file);
		break;
	case KUBECONFIG_TEXTS:
	case KUBECONFIG_LINES:
		for (size_t i = 0; i < texts->n; i++)
			small_file_wipe_text(&texts->at[i]);
		free(texts->at);
		*texts = (struct kubeconfig_texts){NULL};
		break;
	default:
		small_file_wipe_text(at);
	}
}

/* ---- values ------------------------------------------------------------- */

/* An absent member leaves the target as it is. No sentence repeats a value: it may be secret. */

/* Says "'/x/config': user 'u': KEY: TEXT". Returns: ERR_CONFIG. */
static __attribute__((format(printf, 3, 4), cold)) int kubeconfig_bad(
	const struct kubeconfig_entry *entry, const char *key, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return err_say(ERR_CONFIG, "'%s': %s '%s': %s: %s", entry->file->path, entry->kind,
		entry->name, key, text);
}

static int kubeconfig_no_memory(const struct kubeconfig_entry *entry)
{
	return err_set(-ENOMEM, "'%s'", entry->file->path);
}

/* Copies a text; an empty text counts as absent. */
static int kubeconfig_text(const struct kubeconfig_entry *entry, const char *key, char **ret_text)
{
	const struct yaml_node *node = yaml_get(entry->body, key);

	if (!node)
		return 0;
	if (node->type != YAML_SCALAR)
		return kubeconfig_bad(entry, key, "not a text");
	if (!*node->text)
		return 0;
	*ret_text = strdup(node->text);
	return *ret_text ? 0 : kubeconfig_no_memory(entry);
}

static int kubeconfig_bool(const struct kubeconfig_entry *entry, const char *key, bool *ret_bool)
{
	const char *text = yaml_text(entry->body, key);

	if (!yaml_get(entry->body, key))
		return 0;
	if (!text || (strcmp(text, "true") && strcmp(text, "false")))
		return kubeconfig_bad(entry, key, "neither true nor false");
	*ret_bool = !strcmp(text, "true");
	return 0;
}

/* Makes TEXT relative to the directory of the entry's file, unless it is absolute. */
static int kubeconfig_resolve(const struct kubeconfig_entry *entry, char **text)
{
	const char *slash = strrchr(entry->file->path, '/');
	char *path;

	if (!*text || **text == '/' || !slash)
		return 0;
	if (asprintf(&path, "%.*s/%s", (int)(slash - entry->file->path), entry->file->path, *text) <
		0)
		return kubeconfig_no_memory(entry);
	free(*text);
	*text = path;
	return 0;
}

/* Checks that TEXT, a part of a header, has no control characters. */
static int kubeconfig_one_line(
	const struct kubeconfig_entry *entry, const char *key, const char *text)
{
	for (; text && *text; text++)
		if (iscntrl((unsigned char)*text))
			return kubeconfig_bad(entry, key, "control characters in it");
	return 0;
}

static int kubeconfig_add(
	const struct kubeconfig_entry *entry, struct kubeconfig_texts *texts, const char *text)
{
	char **at = reallocarray(texts->at, texts->n + 1, sizeof(*at));

	if (!at)
		return kubeconfig_no_memory(entry);
	texts->at = at;
	at[texts->n] = strdup(text);
	return at[texts->n++] ? 0 : kubeconfig_no_memory(entry);
}

/* Adds the texts of LIST, the value of KEY or a part of it, each after BEFORE unless NULL. */
static int kubeconfig_texts(const struct kubeconfig_entry *entry, const char *key,
	const struct yaml_node *list, const char *before, bool lines,
	struct kubeconfig_texts *ret_texts)
{
	int r = 0;

	if (list && list->type != YAML_LIST)
		return kubeconfig_bad(entry, key, "not a list");
	for (size_t i = 0; list && !r && i < list->count; i++) {
		const char *text = list->items[i].text;

		if (list->items[i].type != YAML_SCALAR)
			return kubeconfig_bad(entry, key, "item %zu is not a text", i);
		r = lines ? kubeconfig_one_line(entry, key, text) : 0;
		if (!r && before)
			r = kubeconfig_add(entry, ret_texts, before);
		if (!r)
			r = kubeconfig_add(entry, ret_texts, text);
	}
	return r;
}

/* ---- PEM ---------------------------------------------------------------- */

int kubeconfig_pem_text(const struct kubeconfig_pem *pem, struct buf *text)
{
	if (!pem->data && pem->file)
		return small_file_read(pem->file, KUBECONFIG_PEM_MAX, text);
	buf_put(text, pem->data, pem->data ? pem->size : 0);
	return buf_error(text);
}

static bool pem_is_valid(const char *text)
{
	return strstr(text, "-----BEGIN ") != NULL;
}

/* Reads KEY, a file, or KEY-data, the PEM itself, if it is given. */
static int pem_read(
	const struct kubeconfig_entry *entry, const char *key, struct kubeconfig_pem *pem)
{
	char data_key[64];
	CLEANUP(buf_release) struct buf text = BUF_SECRET;
	const struct yaml_node *node;
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
	if (pem->data)
		return 0;
	r = kubeconfig_text(entry, key, &pem->file);
	if (!r)
		r = kubeconfig_resolve(entry, &pem->file);
	if (r || !pem->file)
		return r;
	r = kubeconfig_pem_text(pem, &text);
	if (r < 0)
		return kubeconfig_bad(entry, key, "%s", err_text(r));
	return pem_is_valid(buf_cstr(&text))
		       ? 0
		       : kubeconfig_bad(entry, key, "'%s' is not PEM", pem->file);
}

static bool pem_given(const struct kubeconfig_pem *pem)
{
	return pem->data || pem->file;
}

/* ---- an entry ----------------------------------------------------------- */

static int kubeconfig_read_member(const struct kubeconfig_entry *entry,
	const struct kubeconfig_member *member, struct kubeconfig *config)
{
	const char *key = member->key;
	void *at = kubeconfig_at(config, member);
	char **text = at;
	int r;

	switch (member->type) {
	case KUBECONFIG_BOOL:
		return kubeconfig_bool(entry, key, at);
	case KUBECONFIG_PEM:
		return pem_read(entry, key, at);
	case KUBECONFIG_TEXTS:
	case KUBECONFIG_LINES:
		return kubeconfig_texts(entry, key, yaml_get(entry->body, key), NULL,
			member->type == KUBECONFIG_LINES, at);
	default:
		r = kubeconfig_text(entry, key, text);
	}
	if (!r && member->type == KUBECONFIG_LINE)
		r = kubeconfig_one_line(entry, key, *text);
	if (!r && (member->type == KUBECONFIG_PATH ||
			  (member->type == KUBECONFIG_PROGRAM && *text && strchr(*text, '/'))))
		r = kubeconfig_resolve(entry, text);
	return r;
}

/* Reads all members of the entries called NAME. */
static int kubeconfig_read_members(
	const struct kubeconfig_entry *entry, const char *name, struct kubeconfig *config)
{
	int r = 0;

	for (size_t i = 0; i < kubeconfig_n_members && !r; i++)
		if (!strcmp(kubeconfig_members[i].entry, name))
			r = kubeconfig_read_member(entry, &kubeconfig_members[i], config);
	return r;
}

/* ---- the cluster's extension for plugins -------------------------------- */

static void plugin_put_json(const struct yaml_node *node, unsigned depth, struct buf *out)
{
	bool map = node->type == YAML_MAP;

	if (depth > DEPTH_MAX || yaml_is_null(node)) {
		buf_str(out, "null");
		return;
	}
	if (node->type == YAML_SCALAR) {
		/* A scalar without quotes may be a boolean or a number. */
		if (!node->quoted && (!strcmp(node->text, "true") || !strcmp(node->text, "false") ||
					     number_is_valid(bytes_str(node->text))))
			buf_str(out, node->text);
		else
			json_write_string(bytes_str(node->text), out);
		return;
	}
	buf_byte(out, map ? '{' : '[');
	for (size_t i = 0; i < node->count; i++) {
		if (i)
			buf_byte(out, ',');
		if (map) {
			json_write_string(bytes_str(node->keys[i]), out);
			buf_byte(out, ':');
		}
		plugin_put_json(&node->items[i], depth + 1, out);
	}
	buf_byte(out, map ? '}' : ']');
}

static int kubeconfig_read_exec_config(
	const struct kubeconfig_entry *cluster, struct kubeconfig *config)
{
	const struct yaml_node *list = yaml_get(cluster->body, "extensions");
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	int r;

	for (size_t i = 0; list && list->type == YAML_LIST && i < list->count; i++) {
		const char *name = yaml_text(&list->items[i], "name");
		const struct yaml_node *extension = yaml_get(&list->items[i], "extension");

		if (!name || strcmp(name, EXEC_EXTENSION) || !extension)
			continue;
		buf_reset(&text);
		plugin_put_json(extension, 0, &text);
	}
	r = buf_error(&text);
	if (r || !text.size)
		return r;
	config->exec_config = strdup(buf_cstr(&text));
	return config->exec_config ? 0 : kubeconfig_no_memory(cluster);
}

/* ---- exec --------------------------------------------------------------- */

/* Refuses unsupported versions, and plugins in need of a terminal: a daemon has none. */
static int plugin_check(const struct kubeconfig_entry *user, const struct kubeconfig_entry *exec,
	const char *api_version)
{
	const char *version = api_version + strlen(EXEC_GROUP);
	const char *mode = yaml_text(exec->body, "interactiveMode");

	if (strncmp(api_version, EXEC_GROUP, strlen(EXEC_GROUP)) ||
		(strcmp(version, "v1") && strcmp(version, "v1beta1")))
		return kubeconfig_bad(user, "exec",
			"apiVersion '%s' is not supported; " EXEC_GROUP "v1 is", api_version);
	if ((!mode || !*mode) && !strcmp(version, "v1"))
		return kubeconfig_bad(user, "exec",
			"interactiveMode must be specified for %s to use exec authentication "
			"plugin",
			user->name);
	if (!mode || !*mode || !strcmp(mode, "Never") || !strcmp(mode, "IfAvailable"))
		return 0;
	if (!strcmp(mode, "Always"))
		return kubeconfig_bad(user, "exec",
			"interactiveMode is Always, but a daemon has no terminal; use another "
			"user");
	return kubeconfig_bad(
		user, "exec", "interactiveMode is '%s', not Never, IfAvailable or Always", mode);
}

static int plugin_read_exec(const struct kubeconfig_entry *user, struct kubeconfig *config)
{
	struct kubeconfig_entry exec = *user;
	struct kubeconfig_exec *plugin = &config->exec;
	CLEANUP(buf_release) struct buf variable = BUF_SECRET;

	exec.body = yaml_get(user->body, "exec");
	int r = kubeconfig_read_members(&exec, "exec", config);
	if (r)
		return r;
	if (!plugin->command || !plugin->api_version)
		return kubeconfig_bad(
			user, "exec", "%s missing", plugin->command ? "apiVersion" : "command");
	r = plugin_check(user, &exec, plugin->api_version);

	const struct yaml_node *list = yaml_get(exec.body, "env");

	if (!r && list && list->type != YAML_LIST)
		return kubeconfig_bad(&exec, "env", "not a list");
	for (size_t i = 0; list && !r && i < list->count; i++) {
		const char *name = yaml_text(&list->items[i], "name");
		const char *value = yaml_text(&list->items[i], "value");

		if (!name || !*name || strchr(name, '='))
			return kubeconfig_bad(&exec, "env", "item %zu: no name of a variable", i);
		buf_reset(&variable);
		buf_printf(&variable, "%s=%s", name, value ? value : "");
		r = buf_error(&variable);
		if (!r)
			r = kubeconfig_add(&exec, &plugin->variables, buf_cstr(&variable));
	}
	return r;
}

/* ---- auth-provider ------------------------------------------------------ */

/* Reads an auth-provider. Only oidc still exists; its token is used as it is, and not refreshed. */
static int plugin_read_provider(const struct kubeconfig_entry *user, struct kubeconfig *config)
{
	const struct yaml_node *provider = yaml_get(user->body, "auth-provider");
	const char *name = yaml_text(provider, "name");
	struct kubeconfig_entry oidc = *user;

	if (!name)
		return kubeconfig_bad(user, "auth-provider", "no name");
	if (!strcmp(name, "gcp"))
		return kubeconfig_bad(
			user, "auth-provider", "gcp was removed; use gke-gcloud-auth-plugin");
	if (!strcmp(name, "azure"))
		return kubeconfig_bad(user, "auth-provider", "azure was removed; use kubelogin");
	if (strcmp(name, "oidc"))
		return kubeconfig_bad(user, "auth-provider", "'%s' is unknown", name);
	oidc.body = yaml_get(provider, "config");
	int r = kubeconfig_text(&oidc, "id-token", &config->token);

	if (!r)
		r = kubeconfig_one_line(&oidc, "id-token", config->token);
	return r || config->token ? r : kubeconfig_bad(user, "auth-provider", "oidc: no id-token");
}

int kubeconfig_read_plugin(const struct kubeconfig_entry *user, struct kubeconfig *config)
{
	if (!config->tls || config->token || config->token_file || config->username ||
		config->client_certificate.data || config->client_certificate.file)
		return 0;
	if (yaml_get(user->body, "exec"))
		return plugin_read_exec(user, config);
	return yaml_get(user->body, "auth-provider") ? plugin_read_provider(user, config) : 0;
}

/* ---- clusters ----------------------------------------------------------- */

static bool server_has_scheme(const char *url, const char *scheme)
{
	size_t n = strlen(scheme);

	return !strncasecmp(url, scheme, n) && !strncmp(url + n, "://", 3);
}

int kubeconfig_read_cluster(const struct kubeconfig_entry *entry, struct kubeconfig *config)
{
	int r = kubeconfig_read_members(entry, "cluster", config);

	if (!r && !config->server)
		return kubeconfig_bad(entry, "server", "missing");
	return r ? r : kubeconfig_read_exec_config(entry, config);
}

/* ---- users -------------------------------------------------------------- */

int kubeconfig_read_user(const struct kubeconfig_entry *entry, struct kubeconfig *config)
{
	static const char key[] = "as-user-extra";
	struct kubeconfig_impersonation *as = &config->impersonate;
	const struct yaml_node *map = yaml_get(entry->body, key);
	int r = kubeconfig_read_members(entry, "user", config);

	if (!r && map && map->type != YAML_MAP)
		return kubeconfig_bad(entry, key, "not a map");
	for (size_t i = 0; map && !r && i < map->count; i++)
		r = kubeconfig_texts(entry, key, &map->items[i], map->keys[i], true, &as->extras);
	if (r)
		return r;
	if (pem_given(&config->client_certificate) != pem_given(&config->client_key))
		return kubeconfig_bad(
			entry, "client-certificate and client-key", "only one of them is given");
	if (!as->user && (as->uid || as->groups.n || as->extras.n))
		return kubeconfig_bad(entry, "as", "missing, but other as-* keys are given");
	if ((config->token || config->token_file) && config->username)
		return kubeconfig_bad(
			entry, "username", "more than one authentication method: token and basic");
	return 0;
}

/* ---- the server --------------------------------------------------------- */

/* Gives the URL a scheme if it has none, lowers the scheme, and cuts query, fragment and slashes at
 * the end. A path stays: the API may be served below it. http_new() checks the rest. */
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
	url[strcspn(url, "?#")] = '\0';
	for (size_t n = strlen(url); n && url + n > host && url[n - 1] == '/'; n--)
		url[n - 1] = '\0';
	return memchr(host, '@', strcspn(host, "/"))
		       ? kubeconfig_bad(
				 cluster, "server", "credentials in the URL; give the user a token")
		       : 0;
}

int kubeconfig_settle_server(const struct kubeconfig_entry *cluster, struct kubeconfig *config)
{
	int r = server_normalize(cluster, config);

	if (r)
		return r;
	config->tls = server_has_scheme(config->server, "https");
	if (!config->tls) {
		/* Others can read a plain http connection (docs/protocol.md 0.8). */
		config->withheld = config->token || config->token_file || config->username ||
				   pem_given(&config->client_certificate);
		for (size_t i = 0; i < kubeconfig_n_members; i++)
			if (kubeconfig_members[i].flags & KUBECONFIG_TLS)
				kubeconfig_member_release(config, &kubeconfig_members[i]);
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
	CLEANUP(buf_release) struct buf text = BUF_INIT, path = BUF_INIT;
	int r;

	if (!name || !*name) {
		buf_printf(&path, "%s/namespace", directory);
		r = small_file_read(buf_cstr(&path), 4096, &text);
		if (r < 0)
			err_ignore(r,
				"without the file the namespace is \"default\", as in client-go");
		else
			name = small_file_trim(&text);
	}
	*ret_name = strdup(name && *name ? name : "default");
	return *ret_name ? 0 : err_set(-ENOMEM, "in-cluster configuration");
}
