/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps many from doing the same thing at the same moment: the feeds of one reflector when their
 * connection breaks, the reflectors of a thousand machines when the API server comes back.
 *
 * The first few feeds that turn to the server within a second may do so at once, so that one that
 * lost its watch loses no time. Those behind them wait a random part of a span that grows with the
 * number of feeds: a hundred feeds come back over two seconds, not in one burst.
 */
#ifndef REFLECTOR_PACE_H
#define REFLECTOR_PACE_H

#include <stddef.h>
#include <stdint.h>

#define PACE_BURST   10                  /* that may turn to the server at once, a second */
#define PACE_FEED_NS UINT64_C(20000000)  /* of the span for each feed: 50 a second */

struct pace {
	size_t n_feeds;     /* the owner's */
	uint64_t window_ns; /* when the second began in which ... */
	uint32_t turns;     /* ... so many turned to the server */
};

/* Counts one more at NOW_NS, and says how long a span it is to wait a random part of; 0: none. */
uint64_t pace_span(struct pace *pace, uint64_t now_ns);

/* Random numbers of the process: for the loop, not for pure state machines. */
uint64_t pace_random(void);
/* Uniform in [LEAST_NS, 2 * LEAST_NS). */
uint64_t pace_jitter(uint64_t least_ns);

#endif
