/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks for the journal's objects on the server, by their uids: no two clusters share one. Needed
 * if the address or the CA has changed and the reflector may not read the namespace kube-system. It
 * lists the metadata of the first objects of one feed after the other until it finds a known one.
 * For that, a feed's right to list is enough.
 */
#ifndef REFLECTOR_CLUSTER_WITNESS_H
#define REFLECTOR_CLUSTER_WITNESS_H

#include "reflector/net/http.h"
#include "store/journal/journal.h"

struct witness;

enum witness_outcome {
	WITNESS_SAME,  /* an object is known */
	WITNESS_OTHER, /* there are objects, and none is known */
	WITNESS_NONE,  /* there was no object to compare */
};

/* Gets RESULT 0 and the outcome, or an error with its sentence. The witness is freed when it
 * returns. */
typedef void witness_done_fn(void *arg, int result, enum witness_outcome outcome);

/* Starts. Reads the committed state of JOURNAL, open for writing. Returns: 0; NOT_FOUND without
 * objects; an error. */
int witness_start(struct http *http, struct journal *journal, witness_done_fn *done, void *arg,
	struct witness **ret_witness);
void witness_cancel(struct witness **witness);

#endif
