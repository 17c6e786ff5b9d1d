/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which cluster this is, so that another one behind the same URL is noticed: "uid:<uid of the
 * namespace kube-system>" when we may read it, else "server:<url> ca:<hash of the CA>". A server
 * that says neither yes nor no (unreachable, 5xx, 429) is an error: an identity is never guessed,
 * since a changed one discards the journal. A change from one kind of text to the other only means that
 * we may now read the namespace, or no longer: compare texts of the same kind.
 */
#ifndef REFLECTOR_IDENTITY_H
#define REFLECTOR_IDENTITY_H

#include "reflector/wire/http.h"

struct identity;

/* RESULT 0: TEXT is the identity, borrowed for the call; else an error with its sentence. The
 * identity is gone when it returns. */
typedef void identity_done_fn(void *arg, int result, const char *text);

/* CONFIG is borrowed until the end. */
int identity_start(struct http *http, const struct kubeconfig *config, identity_done_fn *done,
	void *arg, struct identity **ret_identity);
void identity_cancel(struct identity **identity);

#endif
