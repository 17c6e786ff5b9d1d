/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request headers that say who we are: Authorization and Impersonate-*. A token file is read
 * again when what we know of it is a minute old or the server refused it; if that fails the old
 * token stays in use (docs/protocol.md 15.3). Where an exec plugin gives the credentials a request
 * waits for it (exec.h); the client certificate it may give goes to certificates.h, since it belongs to the
 * connection.
 */
#ifndef REFLECTOR_CREDENTIAL_H
#define REFLECTOR_CREDENTIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "reflector/access/certificates.h"
#include "reflector/access/kubeconfig.h"

struct credential;

/* Borrows CONFIG, and CERTIFICATES, which may be NULL when there is no exec plugin. Reads the token
 * file: unreadable or empty is an error here, and only here. */
int credential_new(const struct kubeconfig *config, struct certificates *certificates,
	struct credential **ret_credential);
void credential_free(struct credential **credential);

/* Before credential_headers(): 0 when there is what to show; AGAIN while a plugin runs for it; negative
 * when it can't be had now. */
int credential_ready(struct credential *credential, uint64_t now_ns);
/* A plugin runs: credential_ready() wants to be called when credential_fd() is readable (-1: there is
 * nothing to poll), and every PLUGIN_POLL_MS. */
bool credential_is_running(const struct credential *credential);
int credential_fd(const struct credential *credential);

/* One header, "Name: value"; the text is the caller's only during the call. Negative stops. */
typedef int credential_header_fn(void *arg, const char *line);

/* Calls PUT for each header of a request that is made at NOW_NS (monotonic). 0, what PUT answered,
 * or -ENOMEM. */
int credential_headers(struct credential *credential, uint64_t now_ns, credential_header_fn *put,
	void *arg);

/* Counts what was shown: headers that were made between two changes have the same version. */
unsigned credential_version(const struct credential *credential);

/* The server answered 401 to a request with headers of VERSION: when nothing newer was shown since,
 * the next request needs something newer. */
void credential_refused(struct credential *credential, unsigned version);

#endif
