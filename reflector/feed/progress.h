/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress on demand: how far a quiet feed is. A watch gets a bookmark once a minute, so a feed
 * that does not change stays at an RV that the server left long ago (docs/protocol.md 7.4).
 * Asked in two steps:
 *
 *	1. a GET of an object that need not exist, at least as new as the RV that is wanted. The server's watch cache
 *	   asks etcd how far it is, and the answer says that the cache has come to that RV;
 *	2. a second watch, from the RV that the feed has (FROM), which ends so soon that its bookmark comes at once.
 *
 * A bookmark that is the first thing on that watch proves that nothing of the feed has changed
 * after FROM up to the bookmark's RV: a stream shows what it has in order. Anything else proves
 * nothing. The feed's own watch is left
 * alone: no bookmark of another stream says how much of it has arrived.
 *
 *	progress_start(request, &progress)	request->done is called once, inside http_poll, unless it is cancelled
 */
#ifndef REFLECTOR_FEED_PROGRESS_H
#define REFLECTOR_FEED_PROGRESS_H

#include "reflector/net/http.h"
#include "store/journal/journal.h"

struct feed_progress;

struct progress_request {
	struct http *http;
	const struct feed_definition *definition;
	const char *from; /* the state of this RV is whole, */
	uint64_t wanted;  /* and a client waits for this one */
	/* How long each of the two may take: as long as other calls, because a call that nothing
	 * is heard for closes its connection, and others use that. */
	uint64_t answer_ns;
	void *arg;
	/* Nothing of the feed changed after FROM up to RV; an empty RV: that is not known. Both
	 * are borrowed; the progress is freed when it returns. */
	void (*done)(void *arg, struct bytes from, struct bytes rv);
};

/* Copies REQUEST; its HTTP and definition must outlive the progress. Returns: 0; -ENOMEM,
 * ERR_UNSUPPORTED. */
int progress_start(const struct progress_request *request, struct feed_progress **ret_progress);
/* Ends it without a call of `done`. NULL is fine. */
void progress_cancel(struct feed_progress **progress);
/* Returns whether the server still has to say that it has come to the wanted RV. */
bool progress_asks(const struct feed_progress *progress);

#endif
