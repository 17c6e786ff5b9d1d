/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the journal have what the server had? One check of one feed: the heads of one committed state
 * are reduced to a digest of key, uid and resourceVersion; then the server lists, metadata only and in
 * pages, exactly the resourceVersion of that state's checkpoint, and the same is done with its items.
 * Equal digests and counts mean equal sets. Nothing is kept of either side but the sums, and events may
 * come in meanwhile.
 *
 *	consistency_start(request, &check)
 *	while (consistency_work(check) == AGAIN) ...	(the heads, in slices between other work)
 *	the answer's pages come inside http_poll; request->done tells the outcome, and the check is gone
 *
 * The journal's read transaction lives while heads are read, never while the network is waited for.
 */
#ifndef REFLECTOR_FEED_CONSISTENCY_H
#define REFLECTOR_FEED_CONSISTENCY_H

#include "reflector/wire/http.h"
#include "store/journal/journal.h"

struct consistency;

enum consistency_outcome {
	CONSISTENCY_SAME,
	CONSISTENCY_DIFFERS,
	CONSISTENCY_UNKNOWN, /* the server could not be held to that resourceVersion */
};

struct consistency_result {
	enum consistency_outcome outcome;
	const char *rv;        /* compared at */
	uint64_t ours, theirs; /* objects */
	const char *why;       /* UNKNOWN: what stood in the way */
};

struct consistency_request {
	struct http *http;
	struct journal *journal;
	const struct feed_definition *definition;
	uint32_t page_size;
	uint64_t answer_ns;
	void *arg;
	/* RESULT and its texts are borrowed; the check is gone when it returns. */
	void (*done)(void *arg, const struct consistency_result *result);
};

/* REQUEST is copied; what it points to must outlive the check. 0, NOT_FOUND: the feed's committed
 * state is no whole one (a list is open); an error of the journal's, -ENOMEM. */
int consistency_start(const struct consistency_request *request, struct consistency **ret_check);
/* No call of `done` after it; NULL is fine. */
void consistency_cancel(struct consistency **check);
/* A slice of the heads: AGAIN while there are more. `done` may be called in here. */
int consistency_work(struct consistency *check);
/* Heads are left to be read. */
bool consistency_has_work(const struct consistency *check);

/* The sum that stands for a set of objects, whatever their order. */
struct consistency_digest {
	uint64_t sum, count;
};
/* NAME_SPACE is empty for a key that is whole in NAME. */
void consistency_add(struct consistency_digest *digest, struct bytes name_space, struct bytes name,
	struct bytes uid, struct bytes rv);

#endif
