/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a feed for a read, by the tables of RV rules in README.md, and its objects. */
#ifndef SERVE_ANSWER_STATE_H
#define SERVE_ANSWER_STATE_H

#include "serve/answer/request.h"

struct answer_state {
	uint64_t seq;              /* the state as of it is shown */
	char rv[TIMELINE_RV_SIZE]; /* its RV */
};

/* Returns true if the feed is not live: the API server may have more objects. */
bool answer_feed_may_lack(const struct answer_request *request);
/* Checks that the feed can be read. Returns: 0; 404, 429, 503 with the Status. */
int answer_check_feed(struct answer_request *request);
/* Chooses the state of the read. TOKEN_RV: of a continue token; 0: none. Needs
 * answer_take_snapshot(). Returns: 0; AGAIN: not here yet; 400, 410. */
int answer_find_state(
	struct answer_request *request, int64_t token_rv, struct answer_state *ret_state);
/* Returns true if RV has more than the API server's 64 bits, unless the feed's RVs have. */
bool answer_rv_is_too_long(const struct timeline *t, timeline_rv rv);
/* Refuses a resourceVersion foreign to the feed: 400. */
int answer_invalid_rv(struct answer_request *request);
/* Sets the Status of a read after a vain wait: 504. */
int answer_wait_is_over(struct answer_request *request);

struct answer_objects;

/* Begins with the objects of the request's keys as of SEQ. AFTER: the first key, less the keys'
 * prefix; "": all. */
int answer_objects_new(struct answer_request *request, uint64_t seq, struct bytes after,
	struct answer_objects **ret_objects);
void answer_objects_free(struct answer_objects **objects);
/* Reads from the worker's snapshot until answer_objects_release(). Returns: 0; AGAIN: the slice is
 * over; LAPPED, GONE: the state is not kept any more; errors. */
int answer_objects_renew(struct answer_objects *objects);
void answer_objects_release(struct answer_objects *objects);
/* Begins again. */
int answer_objects_restart(struct answer_objects *objects);
/* Reads the next matching object, borrowed until answer_objects_release(). Returns: FOUND; END;
 * AGAIN after UNTIL_NS; errors. */
int answer_objects_next(
	struct answer_objects *objects, uint64_t until_ns, struct record *ret_record);
/* Passes over the next object, whether or not the selectors match; only a restart can follow.
 * Returns: FOUND; END; AGAIN; errors. */
int answer_objects_skip(struct answer_objects *objects, uint64_t until_ns);
/* Returns the kind of index in use, "" for none. */
const char *answer_objects_index(const struct answer_objects *objects);

#endif
