/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of the API server's cluster, to notice another cluster at the same URL: "uid:<uid of
 * the namespace kube-system>" if the reflector may read it, else "server:<url> ca:<hash of the
 * CA>". Any other answer (unreachable, 5xx, 429) is an error: an identity is never guessed, since
 * another one discards the journal.
 *
 * A uid is a proof, an address only a hint: after a rotated CA or under a new host name it is the
 * same cluster. So two different "server:" texts leave a doubt for witness.h. So do a uid and an
 * address: the right to read the namespace may have come or gone, or the cluster may be another.
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

enum identity_relation {
	IDENTITY_SAME,
	IDENTITY_OTHER,
	IDENTITY_RENAMED,    /* another address: another cluster, unless known objects are found */
	IDENTITY_CA_CHANGED, /* the same address, another CA: the same, unless other objects are
				found */
	IDENTITY_INCOMPARABLE, /* a uid and an address: as CA_CHANGED */
	IDENTITY_FIRST,        /* WAS is "" */
};
/* Compares the journal's identity WAS with IS. */
enum identity_relation identity_compare(const char *was, const char *is);

/* Returns: whether the journal is to keep IS instead of WAS, both of one cluster: an address never
 * replaces a uid. */
bool identity_is_better(const char *was, const char *is);

#endif
