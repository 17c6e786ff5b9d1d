/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor of a feed: what was forwarded to the API server, and which later reads without a
 * resourceVersion must therefore not show less than.
 *
 *	a write that was answered with an RV    reads wait until the feed has come to it: it is a change of this feed
 *	a deletion, an eviction, a binding      reads wait, for a second at most, until the object has changed
 *	the end of an object at its last RV     reads wait, for a second at most, until it is gone, or a later one has its name
 *	a read that the API server answered     reads are forwarded until the feed has come to its RV: nothing in the feed
 *	                                        need change, so waiting would not help
 *
 * An RV that the feed never comes to (a feed with selectors, a server without bookmarks) counts
 * for two minutes: a feed that is live has by then been given all changes up to it. While the
 * feed is not live it counts on.
 */
#ifndef SERVE_CATALOG_FLOOR_H
#define SERVE_CATALOG_FLOOR_H

#include <pthread.h>

#include "serve/catalog/timeline.h"

#define FLOOR_KEYS_MAX 32
#define FLOOR_KEY_NS   UINT64_C(1000000000)
#define FLOOR_RV_NS    UINT64_C(120000000000) /* twice the pause between bookmarks */

struct floor_key {
	char *key;
	uint64_t before;   /* seq of the object's version before the write; 0: none */
	bool deleted;      /* it is to go, or to begin to */
	timeline_rv last;  /* the RV after which the object is no more; 0: not known */
	uint64_t until_ns; /* monotonic */
};

struct floor {
	pthread_mutex_t lock;
	unsigned any; /* atomic: something below is set */
	timeline_rv written, read;
	uint64_t written_until_ns, read_until_ns; /* monotonic */
	struct floor_key keys[FLOOR_KEYS_MAX];
	size_t n_keys;
	uint64_t all_ns; /* reads wait until then: more keys than are kept, or unknown ones */
};

void floor_init(struct floor *floor);
void floor_release(struct floor *floor);

/* From any thread. RVs that are no numbers are ignored: nothing is later than they. */
void floor_raise(struct floor *floor, const char *rv, bool written, uint64_t now_ns);
/* KEY "": objects that are not known. */
void floor_touch(struct floor *floor, const char *key, uint64_t before, bool deleted,
	timeline_rv last, uint64_t now_ns);

/* Returns whether nothing is set. */
bool floor_is_clear(const struct floor *floor);
/* Copies the two RVs, 0: none, and the keys that are still waited for, which the caller frees.
 * LIVE: the feed is. */
struct floor_view {
	timeline_rv written, read;
	struct floor_key keys[FLOOR_KEYS_MAX];
	size_t n_keys;
	bool all;
};
void floor_view(struct floor *floor, uint64_t now_ns, bool live, struct floor_view *ret_view);
void floor_view_release(struct floor_view *view);
/* Forgets what a reader has seen: everything in VIEW. */
void floor_seen(struct floor *floor, const struct floor_view *view);

#endif
