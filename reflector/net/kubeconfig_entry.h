/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one entry of a kubeconfig, a cluster or a user, into struct kubeconfig. kubeconfig.c finds
 * the entries. On an error the fields read so far stay set; kubeconfig_free() frees them. All
 * functions return 0, ERR_CONFIG (naming file, entry and key), or -ENOMEM.
 */
#ifndef REFLECTOR_NET_KUBECONFIG_ENTRY_H
#define REFLECTOR_NET_KUBECONFIG_ENTRY_H

#include "common/value/yaml.h"
#include "reflector/net/kubeconfig.h"

struct kubeconfig_file {
	char *path; /* paths in the file are relative to its directory */
	struct yaml *yaml;
};

struct kubeconfig_entry {
	const struct kubeconfig_file *file;
	const char *kind; /* "cluster", "user", "context" */
	const char *name;
	const struct yaml_node *body; /* NULL: empty */
};

int kubeconfig_read_cluster(const struct kubeconfig_entry *entry, struct kubeconfig *config);
int kubeconfig_read_user(const struct kubeconfig_entry *entry, struct kubeconfig *config);

/* Gives `server` its scheme, drops the credentials if that is http, and checks the needs of TLS. To
 * be called after cluster and user were read. */
int kubeconfig_settle_server(const struct kubeconfig_entry *cluster, struct kubeconfig *config);

/* Reads the user's exec plugin or auth-provider, if the server is https and the user has no token,
 * password or certificate: those win, as in kubectl. To be called after
 * kubeconfig_settle_server(). */
int kubeconfig_read_plugin(const struct kubeconfig_entry *user, struct kubeconfig *config);

/* Copies $POD_NAMESPACE, else the file `namespace` in DIRECTORY, else "default". */
int kubeconfig_pod_namespace(const char *directory, char **ret_name);

/* ---- the members of struct kubeconfig ----------------------------------- */

enum kubeconfig_type {
	KUBECONFIG_TEXT,    /* char *; the types up to KUBECONFIG_PROGRAM are read differently */
	KUBECONFIG_LINE,    /* without control characters: it becomes a header */
	KUBECONFIG_PATH,    /* relative to the file's directory */
	KUBECONFIG_PROGRAM, /* a path if it has a slash */
	KUBECONFIG_TEXTS,
	KUBECONFIG_LINES,
	KUBECONFIG_PEM, /* a file, or KEY-data with the PEM itself */
	KUBECONFIG_BOOL
};

/* Flags. */
#define KUBECONFIG_IDENTITY 1u /* of the server, or of the user there */
#define KUBECONFIG_TLS      2u /* of use over https only */

struct kubeconfig_member {
	const char *entry; /* "cluster", "user", "exec", or "": made otherwise */
	const char *key;
	enum kubeconfig_type type;
	size_t offset;
	unsigned flags;
};
extern const struct kubeconfig_member kubeconfig_members[];
extern const size_t kubeconfig_n_members;

static inline void *kubeconfig_at(
	const struct kubeconfig *config, const struct kubeconfig_member *member)
{
	return (char *)config + member->offset;
}

void kubeconfig_member_release(struct kubeconfig *config, const struct kubeconfig_member *member);

#endif
