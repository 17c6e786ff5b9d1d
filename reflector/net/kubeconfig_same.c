/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two loaded kubeconfigs. Certificates and tokens in files of their own count by their
 * paths: those files are read again when they change. */
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "reflector/net/kubeconfig.h"

static bool text_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool texts_same(char *const *a, size_t n_a, char *const *b, size_t n_b)
{
	bool same = n_a == n_b;

	for (size_t i = 0; same && i < n_a; i++)
		same = text_same(a[i], b[i]);
	return same;
}

static bool pem_same(const struct kubeconfig_pem *a, const struct kubeconfig_pem *b)
{
	return text_same(a->data, b->data) && text_same(a->file, b->file);
}

static bool exec_same(const struct kubeconfig_exec *a, const struct kubeconfig_exec *b)
{
	bool same = text_same(a->command, b->command) &&
		    text_same(a->api_version, b->api_version) &&
		    texts_same(a->args, a->n_args, b->args, b->n_args) &&
		    a->n_variables == b->n_variables &&
		    a->provide_cluster_info == b->provide_cluster_info;

	for (size_t i = 0; same && i < a->n_variables; i++)
		same = text_same(a->variables[i].name, b->variables[i].name) &&
		       text_same(a->variables[i].value, b->variables[i].value);
	return same;
}

static bool impersonation_same(
	const struct kubeconfig_impersonation *a, const struct kubeconfig_impersonation *b)
{
	bool same = text_same(a->user, b->user) && text_same(a->uid, b->uid) &&
		    texts_same(a->groups, a->n_groups, b->groups, b->n_groups) &&
		    a->n_extras == b->n_extras;

	for (size_t i = 0; same && i < a->n_extras; i++)
		same = text_same(a->extras[i].key, b->extras[i].key) &&
		       texts_same(a->extras[i].values, a->extras[i].n_values, b->extras[i].values,
			       b->extras[i].n_values);
	return same;
}

bool kubeconfig_same(const struct kubeconfig *a, const struct kubeconfig *b)
{
	return text_same(a->context, b->context) && text_same(a->server, b->server) &&
	       pem_same(&a->ca, &b->ca) && a->insecure == b->insecure &&
	       text_same(a->tls_server_name, b->tls_server_name) &&
	       text_same(a->proxy_url, b->proxy_url) &&
	       a->disable_compression == b->disable_compression &&
	       pem_same(&a->client_certificate, &b->client_certificate) &&
	       pem_same(&a->client_key, &b->client_key) && text_same(a->token, b->token) &&
	       text_same(a->token_file, b->token_file) && text_same(a->username, b->username) &&
	       text_same(a->password, b->password) && exec_same(&a->exec, &b->exec) &&
	       text_same(a->exec_config, b->exec_config) &&
	       impersonation_same(&a->impersonate, &b->impersonate);
}

bool kubeconfig_has_changed(const struct kubeconfig *loaded, const char *file, const char *context,
	char *text, size_t size)
{
	CLEANUP(kubeconfig_free) struct kubeconfig *now = NULL;
	int r = kubeconfig_load(file, context, &now);

	if (r < 0)
		(void)snprintf(text, size, "the kubeconfig, which is no good now: %s", err_text(r));
	else if (!kubeconfig_same(now, loaded))
		(void)snprintf(text, size, "the changed kubeconfig '%s'", now->source);
	err_ignore(r, "what was loaded is good");
	return r < 0 || !kubeconfig_same(now, loaded);
}
