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
#include "reflector/net/exec.h"
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
/* Returns the exec plugin, NULL: none. While it runs the caller calls credential_ready() when its
 * output is readable, and every EXEC_POLL_MS. */
struct exec *credential_exec(const struct credential *credential);

/* Appends the headers of a request sent at NOW_NS (monotonic), "Name: value", each with a NUL after
 * it. Returns: 0, -ENOMEM. */
int credential_headers(struct credential *credential, uint64_t now_ns, struct buf *lines);

/* Returns: the version of the credentials; it changes with them. */
unsigned credential_version(const struct credential *credential);

/* Notes a 401 to a request with credentials of VERSION: if they are still in use, the next request
 * needs newer ones. */
void credential_refused(struct credential *credential, unsigned version);

#endif
