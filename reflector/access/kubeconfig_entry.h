/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One entry of a kubeconfig, a cluster or a user, read into struct kubeconfig. kubeconfig.c finds the
 * entries; this checks and takes what is in them. Fields are filled as far as it came, also on error:
 * kubeconfig_free takes them.
 */
#ifndef REFLECTOR_KUBECONFIG_ENTRY_H
#define REFLECTOR_KUBECONFIG_ENTRY_H

#include "common/value/yaml.h"
#include "reflector/access/kubeconfig.h"

struct kubeconfig_file {
	char *path; /* relative paths in it are relative to its directory */
	struct yaml *yaml;
};

struct kubeconfig_entry {
	const struct kubeconfig_file *file;
	const char *kind; /* "cluster", "user", "context" */
	const char *name;
	const struct yaml_node *body; /* NULL: empty */
};

int kubeconfig_take_cluster(const struct kubeconfig_entry *entry, struct kubeconfig *config);
int kubeconfig_take_user(const struct kubeconfig_entry *entry, struct kubeconfig *config);

/* Last, when cluster and user are known: gives `server` its scheme, and takes credentials away when
 * that is http. Then checks what TLS needs. */
int kubeconfig_settle_server(const struct kubeconfig_entry *cluster, struct kubeconfig *config);

/* After the server is settled: a user who has nothing else to show over https is looked at for an exec
 * plugin or an auth-provider (kubeconfig_plugin.c). A token, basic or a certificate wins, as in kubectl. */
int kubeconfig_take_plugin(const struct kubeconfig_entry *user, struct kubeconfig *config);
/* The cluster's extension for plugins. */
int kubeconfig_take_exec_config(const struct kubeconfig_entry *cluster, struct kubeconfig *config);
void kubeconfig_exec_release(struct kubeconfig_exec *exec);

/* $POD_NAMESPACE, else the file `namespace` in DIRECTORY, else "default". */
int kubeconfig_pod_namespace(const char *directory, char **ret_name);

#endif
