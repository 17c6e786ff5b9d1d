/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of the API server's cluster, to notice another cluster at the same URL: "uid:<uid of
 * the namespace kube-system>" if the reflector may read it, else "server:<url> ca:<hash of the
 * CA>". Any other answer (unreachable, 5xx, 429) is an error: an identity is never guessed, since
 * another one discards the journal.
 *
 * Two uids tell two clusters apart, and so do two addresses or CAs: of an account without the right
 * to read the namespace, a rotated CA begins a new journal. A uid and an address can't be compared.
 * They count as one cluster, since a starting API server refuses the namespace for a moment.
 */
#ifndef REFLECTOR_CLUSTER_IDENTITY_H
#define REFLECTOR_CLUSTER_IDENTITY_H

#include "reflector/net/http.h"

struct identity;

/* Gets the identity in TEXT, borrowed for the call, with RESULT 0; else an error with its sentence.
 * The request is freed when it returns. */
typedef void identity_done_fn(void *arg, int result, const char *text);

/* Asks the server. Borrows CONFIG until DONE is called. Returns: 0, -ENOMEM, ERR_UNSUPPORTED. */
int identity_start(struct http *http, const struct kubeconfig *config, identity_done_fn *done,
	void *arg, struct identity **ret_identity);
void identity_cancel(struct identity **identity);

/* Returns: whether IS is of another cluster than the journal's identity WAS; "": there is none. */
bool identity_is_other(const char *was, const char *is);

/* Returns: whether the journal is to keep IS instead of WAS, both of one cluster: an address never
 * replaces a uid. */
bool identity_is_better(const char *was, const char *is);

#endif
