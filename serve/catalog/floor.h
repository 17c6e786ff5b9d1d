/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor of a feed: later reads without a resourceVersion must show forwarded requests.
 *
 *	a write's answer with an RV        reads wait until the feed has come to it
 *	a deletion, eviction or binding    reads wait until it shows in the object, a second at most
 *	the end of an object at its RV     reads wait until it is gone or replaced, a second at most
 *	a read's answer                    reads are forwarded until the feed has come to its RV:
 *	                                   nothing need change in the feed, waiting is no help
 *	a refused write (404, 409)         gets are forwarded for a second: the client knows of a
 *	                                   newer state, of unknown RV
 *
 * A feed may never come to an RV (with selectors, or a server without bookmarks), so an RV counts
 * for two minutes: a live feed has all changes up to it by then. While the feed is not live it
 * counts on.
 */
#ifndef SERVE_CATALOG_FLOOR_H
#define SERVE_CATALOG_FLOOR_H

#include <pthread.h>

#include "serve/catalog/timeline.h"

#define FLOOR_KEYS_MAX 32
#define FLOOR_KEY_NS   UINT64_C(1000000000)
#define FLOOR_RV_NS    UINT64_C(120000000000) /* twice the pause between bookmarks */

/* A change of an object without an RV in the write's answer. */
struct floor_change {
	uint64_t before;  /* seq of the object's version before the write; 0: none */
	uint64_t uid;     /* hash of the object's; 0: unknown */
	bool deleted;     /* it is to go, or to begin to; else it gets a node */
	timeline_rv last; /* the object's last RV; 0: unknown */
};

struct floor_key {
	char *key;
	struct floor_change change;
	uint64_t until_ns; /* monotonic */
};

struct floor {
	pthread_mutex_t lock;
	unsigned any; /* atomic: something below is set */
	timeline_rv written, read;
	uint64_t written_until_ns, read_until_ns; /* monotonic */
	struct floor_key keys[FLOOR_KEYS_MAX];
	size_t n_keys;
	uint64_t all_ns;     /* reads wait until then: more keys than are kept, or unknown ones */
	uint64_t refused_ns; /* gets are forwarded until then */
};

void floor_init(struct floor *floor);
void floor_release(struct floor *floor);

/* From any thread. RVs other than numbers are ignored: they have no order. */
void floor_raise(struct floor *floor, const char *rv, bool written, uint64_t now_ns);
/* KEY "": unknown objects. */
void floor_touch(
	struct floor *floor, const char *key, const struct floor_change *change, uint64_t now_ns);

/* A write met a state that the feed may not show yet. */
void floor_refuse(struct floor *floor, uint64_t now_ns);

/* Returns whether nothing is set. */
bool floor_is_clear(const struct floor *floor);
/* Holds FLOOR for a reader, which clears what it has seen: `written`, `read`, and keys by
 * floor_drop_key(). Forgets what is too old. LIVE: the feed is. */
void floor_lock(struct floor *floor, uint64_t now_ns, bool live);
void floor_drop_key(struct floor *floor, size_t i);
void floor_unlock(struct floor *floor);

#endif
