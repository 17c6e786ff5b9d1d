/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf kubeconfig: prints a kubeconfig for kinf-serve, with its addresses in the store, its
 * certificates, and the credentials of the store's own kubeconfig: they work as at the API server.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/output.h"
#include "common/text/base64.h"
#include "common/value/json.h"
#include "common/value/yaml.h"
#include "store/env/home.h"
#include "store/env/text_file.h"

#define KUBECONFIG_TEXT_MAX ((size_t)64 << 10)

struct kubeconfig_server {
	char url[160];         /* "https://127.0.0.1:6445" */
	char auth[16];         /* "self" */
	char socket[PATH_MAX]; /* "" if kinf-serve does not listen on it */
};

/* ---- the server --------------------------------------------------------- */

/* Replaces a wildcard address by a loopback one, named by certificates. */
static void kubeconfig_set_url(
	struct kubeconfig_server *server, const char *scheme, const char *address)
{
	const char *colon = strrchr(address, ':');
	bool every = strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;

	if (every && colon)
		(void)snprintf(server->url, sizeof(server->url), "%s://%s%s", scheme,
			address[0] == '[' ? "[::1]" : "127.0.0.1", colon);
	else
		(void)snprintf(server->url, sizeof(server->url), "%s://%s", scheme, address);
}

/* Reads the addresses of kinf-serve: "api https 127.0.0.1:6445 self", "api unix PATH". The first
 * TCP one counts. */
static int kubeconfig_find_server(
	const struct home *home, int directory_fd, struct kubeconfig_server *ret_server)
{
	AUTO_FREE char *text = malloc(KUBECONFIG_TEXT_MAX);
	struct kubeconfig_server *server = ret_server;
	char scheme[8], address[120], auth[16], *rest = text;

	*server = (struct kubeconfig_server){.url = ""};
	if (!text)
		return err_set(-ENOMEM, "reading the addresses of kinf-serve");
	int r = directory_fd < 0 ? 0
				 : text_file_read(directory_fd, "addresses", text,
					   KUBECONFIG_TEXT_MAX, NULL);
	if (directory_fd < 0 || r == -ENOENT)
		return err_say(-ENOENT,
			"kinf-serve does not listen for store '%s' yet; start it with 'kinf run "
			"--serve 127.0.0.1:6445', or with a section 'serve' in kinf.yaml, and wait "
			"a moment",
			home_path(home));
	if (r < 0)
		return err_add(r, "reading the addresses of kinf-serve");
	for (char *line; (line = strsep(&rest, "\n"));) {
		if (strncmp(line, "api unix ", 9) == 0)
			(void)snprintf(server->socket, sizeof(server->socket), "%s", line + 9);
		else if (!*server->url &&
			 sscanf(line, "api %7s %119s %15s", scheme, address, auth) == 3) {
			kubeconfig_set_url(server, scheme, address);
			(void)snprintf(server->auth, sizeof(server->auth), "%s", auth);
		}
	}
	if (!*server->url)
		return err_say(-EPROTONOSUPPORT,
			"kubectl can't connect to a Unix socket, and kinf-serve listens on no TCP "
			"address; add one in kinf.yaml, for instance 'serve: {listen: [unix, "
			"127.0.0.1:6445]}', and start kinf run again (without it: curl "
			"--unix-socket '%s' http://localhost/api)",
			server->socket);
	return 0;
}

/* Appends the CA of the server's certificate, as base64. The configured file may be a link, as in a
 * mounted Secret. */
static int kubeconfig_put_ca(const struct config *config, int directory_fd, struct buf *out)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	const char *own = config->serve.certificate;
	AUTO_FD int fd = own ? open(own, O_RDONLY | O_CLOEXEC)
			     : openat(directory_fd, "ca.crt", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	text.limit = KUBECONFIG_TEXT_MAX;
	int r = fd < 0 ? err_set(-errno, "opening it") : buf_read_file(&text, fd, "it");
	if (r < 0)
		return err_add(r, "reading the server's CA '%s'", own ? own : "serve/ca.crt");
	base64_put(buf_bytes(&text), out);
	return 0;
}

/* ---- the user ----------------------------------------------------------- */

/* Appends NODE as JSON, valid YAML too. Relative paths, relative to their file, become absolute. */
static void kubeconfig_put_node(
	struct buf *out, const struct yaml_node *node, const char *key, const char *directory)
{
	static const char *const paths[] = {
		"tokenFile", "client-certificate", "client-key", "command"};
	bool is_path = false;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		is_path |= strcmp(key, paths[i]) == 0;
	if (node->type == YAML_SCALAR) {
		/* A command without a slash is searched in PATH. */
		bool relative = is_path && *node->text && *node->text != '/' &&
				(strcmp(key, "command") != 0 || strchr(node->text, '/'));
		CLEANUP(buf_release) struct buf whole = BUF_INIT;

		if (yaml_is_null(node)) {
			buf_str(out, "null");
		} else if (!node->quoted &&
			   (!strcmp(node->text, "true") || !strcmp(node->text, "false"))) {
			buf_str(out, node->text);
		} else if (relative) {
			buf_printf(&whole, "%s/%s", directory, node->text);
			json_write_string(buf_bytes(&whole), out);
		} else {
			json_write_string(bytes_str(node->text), out);
		}
		return;
	}
	buf_byte(out, node->type == YAML_MAP ? '{' : '[');
	for (size_t i = 0; i < node->count; i++) {
		if (i)
			buf_str(out, ", ");
		if (node->type == YAML_MAP) {
			json_write_string(bytes_str(node->keys[i]), out);
			buf_str(out, ": ");
		}
		kubeconfig_put_node(out, &node->items[i],
			node->type == YAML_MAP ? node->keys[i] : "", directory);
	}
	buf_byte(out, node->type == YAML_MAP ? '}' : ']');
}

/* Returns the member FIELD of the entry NAME in the list LIST of a kubeconfig; NULL if there is
 * none. */
static const struct yaml_node *kubeconfig_entry(
	const struct yaml_node *root, const char *list, const char *name, const char *field)
{
	const struct yaml_node *entries = yaml_get(root, list);

	for (size_t i = 0; entries && name && entries->type == YAML_LIST && i < entries->count;
		i++) {
		const char *entry = yaml_text(&entries->items[i], "name");

		if (entry && strcmp(entry, name) == 0)
			return yaml_get(&entries->items[i], field);
	}
	return NULL;
}

/* Calls yaml_load_first() for the next file of $KUBECONFIG or of the default. */
static int kubeconfig_load(const struct config *config, char **ret_path, struct yaml **ret_yaml)
{
	const char *list = getenv("KUBECONFIG"), *home = getenv("HOME");
	AUTO_FREE char *copy = NULL;

	if (config->kubeconfig)
		copy = strdup(config->kubeconfig);
	else if (list && *list)
		copy = strdup(list);
	else if (asprintf(&copy, "%s/.kube/config", home ? home : "") < 0)
		copy = NULL;
	if (!copy)
		return err_set(-ENOMEM, "finding the kubeconfig");
	char *rest = config->kubeconfig ? NULL : copy,
	     *path = config->kubeconfig ? copy : strsep(&rest, ":");
	for (; path; path = strsep(&rest, ":")) {
		if (!*path)
			continue;
		int r = yaml_load_first(path, ret_yaml);
		if (r == -ENOENT && !config->kubeconfig)
			continue;
		if (r < 0)
			return r;
		*ret_path = realpath(path, NULL);
		return *ret_path ? 0 : err_set(-errno, "'%s'", path);
	}
	return NOT_FOUND;
}

/* Appends the user of the kubeconfig's context, and sets RET_NAMESPACE to the context's. */
static int kubeconfig_put_user(const struct config *config, struct buf *out, char *namespace_,
	size_t namespace_size, bool *ret_token)
{
	CLEANUP(yaml_free) struct yaml *yaml = NULL;
	AUTO_FREE char *path = NULL;
	int r = kubeconfig_load(config, &path, &yaml);

	*ret_token = false;
	if (r < 0)
		return r;
	const struct yaml_node *root = r == NOT_FOUND ? NULL : yaml_root(yaml);
	const char *name = config->context ? config->context : yaml_text(root, "current-context");
	const struct yaml_node *context = kubeconfig_entry(root, "contexts", name, "context");
	const struct yaml_node *user =
		kubeconfig_entry(root, "users", yaml_text(context, "user"), "user");
	const char *chosen = yaml_text(context, "namespace");

	(void)snprintf(namespace_, namespace_size, "%s", chosen ? chosen : "");
	if (!user) {
		buf_str(out, "{}");
		return 0;
	}
	*ret_token =
		yaml_get(user, "token") || yaml_get(user, "tokenFile") || yaml_get(user, "exec");
	*strrchr(path, '/') = '\0';
	kubeconfig_put_node(out, user, "", path);
	return 0;
}

/* Appends the user of `auth: token`. */
static int kubeconfig_put_token(const struct config *config, struct buf *out)
{
	CLEANUP(buf_release) struct buf token = BUF_SECRET;
	const char *file = config->serve.token_file;
	AUTO_FD int fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		return err_set(file ? -errno : -ENOENT, "reading the token '%s'",
			file ? file : "serve.tokenFile");
	token.limit = KUBECONFIG_TEXT_MAX;
	int r = buf_read_file(&token, fd, file);
	while (r == 0 && token.size && token.data[token.size - 1] <= ' ')
		buf_truncate(&token, token.size - 1);
	buf_str(out, "{token: ");
	json_write_string(buf_bytes(&token), out);
	buf_str(out, "}");
	return r;
}

/* ---- the command -------------------------------------------------------- */

static int kubeconfig_put(const struct config *config, int directory_fd,
	const struct kubeconfig_server *server, struct buf *out)
{
	CLEANUP(buf_release) struct buf ca = BUF_INIT, user = BUF_SECRET;
	char namespace_[256] = "";
	bool open = strcmp(server->auth, "open") == 0, self = strcmp(server->auth, "self") == 0,
	     own = strcmp(server->auth, "token") == 0, token = false;
	int r = kubeconfig_put_ca(config, directory_fd, &ca);

	if (r == 0)
		r = own ? kubeconfig_put_token(config, &user)
			: kubeconfig_put_user(
				  config, &user, namespace_, sizeof(namespace_), &token);
	if (r < 0)
		return r;
	if (open) {
		buf_truncate(&user, 0);
		/* Without credentials kubectl asks for a user name. kinf-serve ignores this one. */
		buf_str(&user, "{token: anonymous}");
	}
	r = buf_error(&ca);
	if (r == 0)
		r = buf_error(&user);
	if (r < 0)
		return r;
	if (self && !token)
		(void)fprintf(stderr, "note: the kubeconfig's user has no token; with 'serve.auth: "
				      "self' kinf-serve recognizes clients by tokens only (kubectl "
				      "--token TOKEN)\n");
	buf_printf(out,
		"apiVersion: v1\nkind: Config\ncurrent-context: kinf\nclusters:\n- name: "
		"kinf\n  cluster:\n"
		"    server: %s\n    certificate-authority-data: %s\ncontexts:\n- name: "
		"kinf\n  context:\n"
		"    cluster: kinf\n    user: kinf\n",
		server->url, buf_cstr(&ca));
	if (*namespace_)
		buf_printf(out, "    namespace: %s\n", namespace_);
	buf_printf(out, "users:\n- name: kinf\n  user: %s\n", buf_cstr(&user));
	return buf_error(out);
}

int kubeconfig_write(const struct config *config, struct buf *out)
{
	CLEANUP(home_close) struct home *home = NULL;
	struct kubeconfig_server server;
	int r = home_open(config->store, &(struct home_options){0}, &home);

	if (r < 0)
		return r;
	AUTO_FD int directory = openat(home_fd(home), "serve", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0 && errno != ENOENT)
		return err_set(-errno, "opening '%s/serve'", home_path(home));
	r = kubeconfig_find_server(home, directory, &server);
	if (r == 0 && !proc_is_locked(directory, "serve.lock"))
		(void)fprintf(stderr, "note: kinf-serve does not run now\n");
	return r < 0 ? r : kubeconfig_put(config, directory, &server, out);
}

int command_kubeconfig(int argc, char **argv)
{
	CLEANUP(config_free) struct config *config = NULL;
	CLEANUP(buf_release) struct buf out = BUF_SECRET;
	struct command_line line = {
		.options = {"kinf kubeconfig", "",
			"Prints a kubeconfig for kinf-serve: kubectl --kubeconfig <(kinf "
			"kubeconfig) get pods."},
	};
	int r = command_parse(&line, argc, argv);

	if (r != 0)
		return command_usage(&line, r);
	r = config_load(&line.flags, &config);
	if (r == 0)
		command_note(config);
	if (r == 0)
		r = kubeconfig_write(config, &out);
	if (r == 0)
		r = output_text(&out);
	return r < 0 ? command_fail(r) : PROC_OK;
}
