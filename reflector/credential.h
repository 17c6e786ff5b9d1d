/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request headers that say who we are: Authorization and Impersonate-*. A token file is read
 * again when what we know of it is a minute old or the server refused it; if that fails the old
 * token stays in use (spec/api.md 15.3). Client certificates are http.c's, they belong to the
 * connection.
 */
#ifndef REFLECTOR_CREDENTIAL_H
#define REFLECTOR_CREDENTIAL_H

#include <stdint.h>

#include "reflector/kubeconfig.h"

struct credential;

/* Borrows CONFIG. Reads the token file: unreadable or empty is an error here, and only here. */
int credential_new(const struct kubeconfig *config, struct credential **ret_credential);
void credential_free(struct credential **credential);

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
