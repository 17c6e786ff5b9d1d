/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the server's objects are those that the journal knows, by their uids, which no two clusters
 * share: asked when all else that was known of the cluster (address, CA) has changed and the namespace
 * kube-system can't be read. The first objects of one feed after the other are listed as metadata, until
 * one is found that is known; that takes the right to list, which whoever mirrors has.
 */
#ifndef REFLECTOR_CLUSTER_WITNESS_H
#define REFLECTOR_CLUSTER_WITNESS_H

#include "reflector/wire/http.h"
#include "store/journal/journal.h"

struct witness;

enum witness_outcome {
	WITNESS_SAME,  /* one of them is known */
	WITNESS_OTHER, /* there are some, and none is known */
	WITNESS_NONE,  /* there was nothing to compare */
};

/* RESULT 0, or an error with its sentence: ask later. The witness is gone when it returns. */
typedef void witness_done_fn(void *arg, int result, enum witness_outcome outcome);

/* JOURNAL: opened for writing, read as committed. 0; NOT_FOUND when it holds no objects; or an error. */
int witness_start(struct http *http, struct journal *journal, witness_done_fn *done, void *arg,
	struct witness **ret_witness);
void witness_cancel(struct witness **witness);

#endif
