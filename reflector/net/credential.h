/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request headers with our credentials: Authorization and Impersonate-*. A token file is read
 * again after 50 s, or when the server refused its token; on failure the old token stays in use
 * (docs/protocol.md 15.3). With an exec plugin, requests wait until the plugin has given
 * credentials (exec.h); its client certificate goes to certificates.h, since it belongs to the
 * connection.
 */
#ifndef REFLECTOR_NET_CREDENTIAL_H
#define REFLECTOR_NET_CREDENTIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "reflector/net/certificates.h"
#include "reflector/net/kubeconfig.h"

struct credential;

/* Borrows CONFIG, and CERTIFICATES, which may be NULL without an exec plugin. Reads the token
 * file; an unreadable or empty one is an error here only. Returns: 0, ERR_CONFIG, ERR_TOO_LARGE,
 * -errno. */
int credential_new(const struct kubeconfig *config, struct certificates *certificates,
	struct credential **ret_credential);
void credential_free(struct credential **credential);

/* Checks whether there are credentials; starts the exec plugin if it is needed. Call it before
 * credential_headers(). Returns: 0; AGAIN while the plugin runs; ERR_CREDENTIALS, -ENOMEM. */
int credential_ready(struct credential *credential, uint64_t now_ns);
/* Returns: whether the plugin runs. Then the caller calls credential_ready() when credential_fd()
 * is readable (-1: nothing to poll), and every PLUGIN_POLL_MS. */
bool credential_is_running(const struct credential *credential);
int credential_fd(const struct credential *credential);
/* Returns the exec plugin's command while requests wait for it, and since when (monotonic);
 * NULL: none do. */
const char *credential_awaited(const struct credential *credential, uint64_t *ret_since_ns);

/* Takes one header, "Name: value"; LINE is borrowed. A negative result stops. */
typedef int credential_header_fn(void *arg, const char *line);

/* Calls PUT for each header of a request sent at NOW_NS (monotonic). Returns: 0, a negative result
 * of PUT, -ENOMEM. */
int credential_headers(
	struct credential *credential, uint64_t now_ns, credential_header_fn *put, void *arg);

/* Returns: the version of the credentials; it changes with them. */
unsigned credential_version(const struct credential *credential);

/* Notes a 401 to a request with credentials of VERSION: if they are still in use, the next request
 * needs newer ones. */
void credential_refused(struct credential *credential, unsigned version);

#endif
