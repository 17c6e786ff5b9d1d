/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When handlers are given everything once more: client-go's rules (docs/informer.md 5.5), without
 * its clock. An informer looks at its handlers every `check`; a handler whose time has come is due, so its
 * period is its own rounded up to looks. Handlers that are there before the start can make the check
 * shorter, later ones have to take it as it is.
 *
 * Two differences: an informer without a period of its own takes that of the first handler that asks,
 * where client-go lets none of them have any; and the default may change while it runs, since the feed's
 * operator says it (kinf.yaml). Then all is as if every handler had been there before a start.
 */
#ifndef READER_RESYNC_H
#define READER_RESYNC_H

#include <stdbool.h>
#include <stdint.h>

#define RESYNC_MIN_NS  UINT64_C(1000000000)
#define RESYNC_MAX_NS  (UINT64_C(1) << 61) /* 73 years */
#define RESYNC_DEFAULT UINT64_MAX          /* a handler asks for the informer's */

/* Of the informer. Times are monotonic nanoseconds. */
struct resync {
	uint64_t default_ns; /* of handlers that do not ask */
	uint64_t check_ns;   /* 0: nobody is ever due */
	uint64_t next_ns;    /* look; 0: not started */
	uint32_t jitter_percent;
	uint32_t random; /* state of the jitter */
	bool started;
};

/* Of a handler. */
struct resync_handler {
	uint64_t asked_ns;  /* as it was said */
	uint64_t wanted_ns; /* what counts of it; 0: none */
	uint64_t period_ns; /* what it gets */
	uint64_t next_ns;
};

/* ASKED_NS: 0: none; RESYNC_DEFAULT. True: the check has changed, call resync_adjust for the other
 * handlers. */
bool resync_add(struct resync *resync, struct resync_handler *handler, uint64_t asked_ns, uint64_t now);

/* True: it is another one now. Then call resync_ask_again for each handler, then resync_adjust for each,
 * then resync_check_sooner. */
bool resync_set_default(struct resync *resync, uint64_t default_ns);
void resync_ask_again(struct resync *resync, struct resync_handler *handler);
/* A handler whose period changes begins it now. */
void resync_adjust(const struct resync *resync, struct resync_handler *handler, uint64_t now);
void resync_check_sooner(struct resync *resync, uint64_t now);

void resync_start(struct resync *resync, uint64_t now);
/* It is time to look at the handlers; the next look is a check later. */
bool resync_is_time(struct resync *resync, uint64_t now);
bool resync_due(struct resync_handler *handler, uint64_t now);
/* When to look next; UINT64_MAX: never. */
uint64_t resync_next(const struct resync *resync);

#endif
