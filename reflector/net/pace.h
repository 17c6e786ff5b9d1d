/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spreads simultaneous requests: of one reflector's feeds when their connection breaks, of a
 * thousand machines' reflectors when the API server comes back.
 *
 * The first few requests of a second go out at once: one feed without its watch loses no time.
 * Later ones wait a random part of a span. The span grows with the number of feeds: a hundred feeds
 * come back over two seconds, not in one burst.
 */
#ifndef REFLECTOR_NET_PACE_H
#define REFLECTOR_NET_PACE_H

#include <stddef.h>
#include <stdint.h>

#define PACE_BURST 10 /* requests a second without a wait */
/* of the span, for each feed: 50 requests a second */
#define PACE_FEED_NS UINT64_C(20000000)

struct pace {
	size_t n_feeds;     /* set by the owner */
	uint64_t window_ns; /* begin of the current second */
	uint32_t turns;     /* requests in it */
};

/* Counts a request at NOW_NS. Returns: the span, 0: none. The caller waits a random part of it. */
uint64_t pace_span(struct pace *pace, uint64_t now_ns);

/* Returns: a random number. State machines must not call it: they get randomness with their
 * input. */
uint64_t pace_random(void);
/* Returns: a random time in [LEAST_NS, 2 * LEAST_NS). */
uint64_t pace_jitter(uint64_t least_ns);

#endif
