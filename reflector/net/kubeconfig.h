/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API server's address and our credentials, from kubeconfig files by kubectl's rules or from
 * the pod's service account.
 *
 *	struct kubeconfig *config;
 *	r = kubeconfig_load(NULL, NULL, &config);	(errors name the file and the key)
 *	http_new(config, &http); ...			(config must outlive it)
 *	kubeconfig_free(&config);			(after http_free)
 *
 * Loading checks everything before the first connection: unknown contexts, certificates without
 * keys, bad base64, unreadable files. Resulting paths are absolute or relative to the working
 * directory, never to the file. Fields are wiped when freed; secrets never enter a sentence.
 *
 * As in kubectl, a server reached over plain http gets no credentials: token, basic, certificate
 * and exec fields are NULL then.
 */
#ifndef REFLECTOR_NET_KUBECONFIG_H
#define REFLECTOR_NET_KUBECONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"

/* PEM given as data or as a file, or neither; data wins. certificates.h reads files again after a
 * rotation. */
struct kubeconfig_pem {
	char *data; /* NUL-terminated; secret in `client_key` */
	size_t size;
	char *file;
};

struct kubeconfig_texts {
	char **at;
	size_t n;
};

struct kubeconfig_impersonation {
	char *user; /* NULL: no impersonation */
	char *uid;
	struct kubeconfig_texts groups;
	struct kubeconfig_texts extras; /* a key and a value in turn */
};

/* An exec plugin: a program to print credentials (client.authentication.k8s.io). */
struct kubeconfig_exec {
	char *command; /* NULL: none. With a slash: a path; without: looked up in PATH */
	char *api_version;
	struct kubeconfig_texts args;
	struct kubeconfig_texts variables; /* "NAME=value", for the reflector's environment */
	char *install_hint;                /* advice for a missing command; NULL: not given */
	bool provide_cluster_info;
};

struct kubeconfig {
	char *source;     /* the context's file, or "in-cluster" */
	char *context;    /* "" in-cluster */
	char *server;     /* scheme://host[:port][/prefix], no slash at the end */
	bool tls;         /* https */
	bool withheld;    /* the user's credentials are not sent: the server is http */
	char *name_space; /* of the context, else "default" */

	struct kubeconfig_pem ca; /* none: the system's roots */
	bool insecure;            /* insecure-skip-tls-verify */
	char *tls_server_name;    /* NULL: the host of `server` */
	char *proxy_url;          /* NULL: by environment; secret: may hold a password */
	bool disable_compression;

	struct kubeconfig_pem client_certificate;
	struct kubeconfig_pem client_key;
	char *token;      /* secret */
	char *token_file; /* used instead of `token` */
	char *username;
	char *password;              /* secret */
	struct kubeconfig_exec exec; /* only when nothing above is given */
	char *exec_config;           /* JSON: the cluster's extension for plugins; NULL: none */
	struct kubeconfig_impersonation impersonate;
};

/*
 * Loads FILE alone; it must exist ("~/" is the home directory). With NULL it merges the files of
 * $KUBECONFIG, else reads ~/.kube/config, else the pod's service account. CONTEXT NULL is the
 * current-context. Returns: 0; ERR_CONFIG, naming file and key; -ENOENT without any configuration;
 * -errno.
 */
int kubeconfig_load(const char *file, const char *context, struct kubeconfig **ret_config);

/* Returns whether A and B lead to the same server as the same user. */
bool kubeconfig_same(const struct kubeconfig *a, const struct kubeconfig *b);
/* Loads FILE and CONTEXT again. Returns true, with a phrase in TEXT, if they differ from LOADED or
 * are no good. */
bool kubeconfig_has_changed(const struct kubeconfig *loaded, const char *file, const char *context,
	char *text, size_t size);

/* Loads the service account of a pod, from $KUBERNETES_SERVICE_HOST and _PORT and the three files
 * in DIRECTORY. Returns: 0, -ENOENT outside of a pod, -ENOMEM. */
int kubeconfig_in_cluster(const char *directory, struct kubeconfig **ret_config);
#define KUBECONFIG_SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

void kubeconfig_free(struct kubeconfig **config);

#define KUBECONFIG_PEM_MAX ((size_t)1 << 20)
/* Reads PEM into the empty TEXT: its data, or its file as it is now, or nothing. Returns: 0, an
 * error of small_file_read(). */
int kubeconfig_pem_text(const struct kubeconfig_pem *pem, struct buf *text);

#endif
