/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress on demand moves on the RV of a quiet feed. A watch gets a bookmark once a minute, so a
 * quiet feed stays at an old RV (docs/protocol.md 7.4). Two requests:
 *
 *	1. a GET of any object, at least as new as the wanted RV: the server's watch cache asks etcd
 *	   for its newest RV, and the answer proves that the cache has reached the wanted one;
 *	2. a second watch from the feed's RV (FROM), so short that its bookmark comes at once.
 *
 * A bookmark first on that watch proves that nothing of the feed has changed after FROM up to the
 * bookmark's RV: a stream comes in order. Anything else proves nothing. The feed's own watch is
 * left alone: another stream's bookmark does not show how much of it has arrived.
 *
 *	progress_start(options, &progress)	calls options->done once, inside http_poll, unless
 *						cancelled
 */
#ifndef REFLECTOR_FEED_PROGRESS_H
#define REFLECTOR_FEED_PROGRESS_H

#include "reflector/net/http.h"
#include "store/journal/journal.h"

struct feed_progress;

struct progress_options {
	struct http *http;
	const struct feed_definition *definition;
	const char *from; /* the state of this RV is whole, */
	uint64_t wanted;  /* and a client waits for this one */
	/* Limit of each request: as long as other calls', because a silent call closes its
	 * connection, and others use that. */
	uint64_t answer_ns;
	void *arg;
	/* Nothing of the feed changed after FROM up to RV; an empty RV: unknown. Both are borrowed;
	 * the progress is freed when it returns. */
	void (*done)(void *arg, struct bytes from, struct bytes rv);
};

/* Copies REQUEST; its HTTP and definition must outlive the progress. Returns: 0; -ENOMEM,
 * ERR_UNSUPPORTED. */
int progress_start(const struct progress_options *options, struct feed_progress **ret_progress);
/* Ends it without a call of `done`. NULL is fine. */
void progress_cancel(struct feed_progress **progress);
/* Returns true until the server has confirmed the wanted RV. */
bool progress_asks(const struct feed_progress *progress);

#endif
