/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which cluster this is, so that another one behind the same URL is noticed: "uid:<uid of the
 * namespace kube-system>" when we may read it, else "server:<url> ca:<hash of the CA>". A server
 * that says neither yes nor no (unreachable, 5xx, 429) is an error: an identity is never guessed,
 * since another one discards the journal.
 *
 * Uids prove, addresses only hint: a CA is rotated, a server gets another name, and it is the same
 * cluster still. So two "server:" texts that differ are a doubt, which witness.h resolves, and so are two
 * of different kinds: we may now read the namespace, or no longer, or are somewhere else.
 */
#ifndef REFLECTOR_CLUSTER_IDENTITY_H
#define REFLECTOR_CLUSTER_IDENTITY_H

#include "reflector/wire/http.h"

struct identity;

/* RESULT 0: TEXT is the identity, borrowed for the call; else an error with its sentence. The
 * identity is gone when it returns. */
typedef void identity_done_fn(void *arg, int result, const char *text);

/* CONFIG is borrowed until the end. */
int identity_start(struct http *http, const struct kubeconfig *config, identity_done_fn *done,
	void *arg, struct identity **ret_identity);
void identity_cancel(struct identity **identity);

enum identity_relation {
	IDENTITY_SAME,
	IDENTITY_OTHER,
	IDENTITY_RENAMED,      /* another address: same or other */
	IDENTITY_CA_CHANGED,   /* the same address, another CA: same or other, rather same */
	IDENTITY_INCOMPARABLE, /* of different kinds: same or other, rather same */
	IDENTITY_FIRST,        /* WAS is "" */
};
enum identity_relation identity_compare(const char *was, const char *is);

/* IS, of the same cluster, is to be kept instead of WAS: a uid is not given up for an address. */
bool identity_is_better(const char *was, const char *is);

#endif
