/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/kubeconfig_entry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/json.h"
#include "common/value/number.h"
#include "reflector/net/kubeconfig_member.h"
#include "reflector/net/small_file.h"

#define EXEC_GROUP     "client.authentication.k8s.io/"
#define EXEC_EXTENSION "client.authentication.k8s.io/exec"
#define DEPTH_MAX      64

/* ---- the cluster's extension, which a plugin gets ----------------------- */

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

int kubeconfig_read_exec_config(const struct kubeconfig_entry *cluster, struct kubeconfig *config)
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

/* Refuses a version other than those that are supported, and a plugin that needs a terminal: a
 * daemon has none. */
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
