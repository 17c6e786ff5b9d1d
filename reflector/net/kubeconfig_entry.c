/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/kubeconfig_entry.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/base64.h"
#include "common/text/decimal.h"
#include "common/value/json.h"
#include "common/value/number.h"
#include "reflector/net/small_file.h"

#define EXEC_GROUP     "client.authentication.k8s.io/"
#define EXEC_EXTENSION "client.authentication.k8s.io/exec"
#define DEPTH_MAX      64

/* ---- members ------------------------------------------------------------ */

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

/* Copies a path; a relative path is relative to the directory of the entry's file. */
static int kubeconfig_path(const struct kubeconfig_entry *entry, const char *key, char **ret_path)
{
	AUTO_FREE char *text = NULL;
	const char *slash = strrchr(entry->file->path, '/');
	int r = kubeconfig_text(entry, key, &text);

	if (r || !text)
		return r;
	if (*text == '/' || !slash) {
		*ret_path = TAKE(text);
		return 0;
	}
	if (asprintf(ret_path, "%.*s/%s", (int)(slash - entry->file->path), entry->file->path,
		    text) < 0) {
		*ret_path = NULL;
		return kubeconfig_no_memory(entry);
	}
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

/* Copies the texts of LIST, the value of KEY or a part of it. */
static int kubeconfig_texts(const struct kubeconfig_entry *entry, const char *key,
	const struct yaml_node *list, char ***ret_texts, size_t *ret_count)
{
	if (!list)
		return 0;
	if (list->type != YAML_LIST)
		return kubeconfig_bad(entry, key, "not a list");
	*ret_texts = calloc(list->count ? list->count : 1, sizeof(**ret_texts));
	if (!*ret_texts)
		return kubeconfig_no_memory(entry);
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].type != YAML_SCALAR)
			return kubeconfig_bad(entry, key, "item %zu is not a text", i);
		(*ret_texts)[i] = strdup(list->items[i].text);
		if (!(*ret_texts)[i])
			return kubeconfig_no_memory(entry);
		(*ret_count)++;
	}
	return 0;
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

static int plugin_read_exec(const struct kubeconfig_entry *user, struct kubeconfig_exec *ret_exec)
{
	struct kubeconfig_entry exec = *user;
	const struct yaml_node *list;
	const char *command;
	int r;

	exec.body = yaml_get(user->body, "exec");
	/* A bare name is searched in PATH; anything with a slash is a path. */
	command = yaml_text(exec.body, "command");
	r = command && strchr(command, '/') ? kubeconfig_path(&exec, "command", &ret_exec->command)
					    : kubeconfig_text(&exec, "command", &ret_exec->command);
	if (!r)
		r = kubeconfig_text(&exec, "apiVersion", &ret_exec->api_version);
	if (r)
		return r;
	if (!ret_exec->command || !ret_exec->api_version)
		return kubeconfig_bad(
			user, "exec", "%s missing", ret_exec->command ? "apiVersion" : "command");
	r = plugin_check(user, &exec, ret_exec->api_version);
	if (!r)
		r = kubeconfig_texts(&exec, "args", yaml_get(exec.body, "args"), &ret_exec->args,
			&ret_exec->n_args);
	if (r)
		return r;
	list = yaml_get(exec.body, "env");
	if (list && list->type != YAML_LIST)
		return kubeconfig_bad(&exec, "env", "not a list");
	if (list) {
		ret_exec->variables =
			calloc(list->count ? list->count : 1, sizeof(*ret_exec->variables));
		if (!ret_exec->variables)
			return kubeconfig_no_memory(&exec);
	}
	for (size_t i = 0; list && i < list->count; i++) {
		struct kubeconfig_variable *variable =
			&ret_exec->variables[ret_exec->n_variables++];
		const char *name = yaml_text(&list->items[i], "name");
		const char *value = yaml_text(&list->items[i], "value");

		if (!name || !*name || strchr(name, '='))
			return kubeconfig_bad(&exec, "env", "item %zu: no name of a variable", i);
		variable->name = strdup(name);
		variable->value = strdup(value ? value : "");
		if (!variable->name || !variable->value)
			return kubeconfig_no_memory(&exec);
	}
	r = kubeconfig_text(&exec, "installHint", &ret_exec->install_hint);
	return r ? r
		 : kubeconfig_bool(&exec, "provideClusterInfo", &ret_exec->provide_cluster_info);
}

void kubeconfig_exec_release(struct kubeconfig_exec *exec)
{
	for (size_t i = 0; i < exec->n_args; i++)
		free(exec->args[i]);
	for (size_t i = 0; i < exec->n_variables; i++) {
		struct kubeconfig_variable *variable = &exec->variables[i];

		small_file_wipe_text(&variable->value);
		free(variable->name);
	}
	free(exec->args);
	free(exec->variables);
	free(exec->command);
	free(exec->api_version);
	free(exec->install_hint);
	*exec = (struct kubeconfig_exec){NULL};
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
		return plugin_read_exec(user, &config->exec);
	return yaml_get(user->body, "auth-provider") ? plugin_read_provider(user, config) : 0;
}

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

/* Reads KEY, a file, or KEY-data, the PEM itself, if both are given. */
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

/* Checks texts of headers. */
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

/* Checks the host and port at the beginning of TEXT. Returns: the fault, NULL: none. */
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
		for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
			small_file_wipe_text(texts[i]);
		for (size_t i = 0; i < ARRAY_SIZE(pems); i++) {
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
