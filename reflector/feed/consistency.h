/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the journal with the server, for one feed at one resourceVersion. The heads of a
 * committed state are reduced to a digest of key, uid and resourceVersion; then the server is asked
 * to list, metadata only and in pages, exactly the resourceVersion of that state's checkpoint, and
 * its items are reduced in the same way. Equal digests and counts mean equal sets. Both sides cost
 * no memory but the sums, and events may come in meanwhile.
 *
 * The newest state can be listed instead. If the sets are equal, the journal has the state of the
 * list's resourceVersion, too.
 *
 *	consistency_start(request, &check)
 *	while (consistency_work(check) == AGAIN) ...	(the heads, in slices between other work)
 *	the pages come inside http_poll; request->done gets the outcome, and the check is freed
 *
 * The journal's read transaction lives while heads are read, never across a wait for the network.
 */
#ifndef REFLECTOR_FEED_CONSISTENCY_H
#define REFLECTOR_FEED_CONSISTENCY_H

#include "common/moment.h"
#include "reflector/net/http.h"
#include "store/journal/journal.h"

struct consistency;

enum consistency_outcome {
	CONSISTENCY_SAME,
	CONSISTENCY_DIFFERS,
	CONSISTENCY_UNKNOWN, /* the server could not be held to that resourceVersion */
};

struct consistency_result {
	enum consistency_outcome outcome;
	const char *rv;        /* of the journal's state */
	const char *list_rv;   /* SAME: of the server's, the same unless `newest` */
	struct moment at;      /* when the server's first page came */
	uint64_t ours, theirs; /* objects */
	const char *why;       /* UNKNOWN: the reason */
};

struct consistency_request {
	struct http *http;
	struct journal *journal;
	const struct feed_definition *definition;
	uint32_t page_size;
	bool newest; /* list the newest state */
	uint64_t answer_ns;
	void *arg;
	/* RESULT and its texts are borrowed; the check is freed when it returns. */
	void (*done)(void *arg, const struct consistency_result *result);
};

/* Copies REQUEST; its pointers must outlive the check. Returns: 0; NOT_FOUND while a list of the
 * feed is open (its state has no one resourceVersion); an error of the journal, -ENOMEM. */
int consistency_start(const struct consistency_request *request, struct consistency **ret_check);
/* Ends the check without a call of `done`. NULL is fine. */
void consistency_cancel(struct consistency **check);
/* Reads a slice of the heads; may call `done`. Returns: 0, AGAIN while there are more. */
int consistency_work(struct consistency *check);
/* Returns whether consistency_work() has heads left to read. */
bool consistency_has_work(const struct consistency *check);

/* The sum of a set of objects, in any order. */
struct consistency_digest {
	uint64_t sum, count;
};
/* Adds one object. NAME may be a whole key, "namespace/name", if NAME_SPACE is empty. */
void consistency_add(struct consistency_digest *digest, struct bytes name_space, struct bytes name,
	struct bytes uid, struct bytes rv);

#endif
