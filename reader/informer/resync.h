/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes when handlers get every object again, by the rules of client-go (docs/informer.md). It
 * reads no clock: callers pass the time. An informer checks its handlers every `check_ns`, and a
 * handler is due at the first check after its time has come. So its period is a multiple of
 * `check_ns`. A handler added before the start can make the checks more frequent; a later one
 * can't.
 *
 * There are two differences from client-go. An informer without a period takes the first period
 * asked for by a handler; client-go gives the handler no resync. And the default may change while
 * the informer runs (kinf.yaml); then all periods are computed again, as if every handler had been
 * added before the start.
 */
#ifndef READER_RESYNC_H
#define READER_RESYNC_H

#include <stdbool.h>
#include <stdint.h>

#define RESYNC_MIN_NS  UINT64_C(1000000000)
#define RESYNC_MAX_NS  (UINT64_C(1) << 61) /* 73 years */
#define RESYNC_DEFAULT UINT64_MAX          /* a handler asks for the informer's */

/* The informer's part. Times are monotonic nanoseconds. */
struct resync {
	uint64_t default_ns; /* for handlers without a period of their own */
	uint64_t check_ns;   /* 0: no handler is ever due */
	uint64_t next_ns;    /* the next check; 0: not started */
	uint32_t jitter_percent;
	uint32_t random; /* state of the jitter */
	bool started;
};

/* A handler's part. */
struct resync_handler {
	uint64_t asked_ns;  /* 0: none; RESYNC_DEFAULT */
	uint64_t wanted_ns; /* the asked period, or the default, within the limits; 0: none */
	uint64_t period_ns; /* the one it gets */
	uint64_t next_ns;
};

/* Adds a handler asking for ASKED_NS (0: none; RESYNC_DEFAULT). Returns whether the check has
 * changed: then call resync_adjust for the other handlers. */
bool resync_add(
	struct resync *resync, struct resync_handler *handler, uint64_t asked_ns, uint64_t now);

/* Sets the default. Returns whether it has changed: then call resync_ask_again for each handler,
 * then resync_adjust for each, then resync_check_sooner. */
bool resync_set_default(struct resync *resync, uint64_t default_ns);
void resync_ask_again(struct resync *resync, struct resync_handler *handler);
/* Sets the handler's period after the check has changed. If it differs, it begins now. */
void resync_adjust(const struct resync *resync, struct resync_handler *handler, uint64_t now);
void resync_check_sooner(struct resync *resync, uint64_t now);

void resync_start(struct resync *resync, uint64_t now);
/* Returns whether it is time to check the handlers, and sets the time of the next check. */
bool resync_is_time(struct resync *resync, uint64_t now);
bool resync_due(struct resync_handler *handler, uint64_t now);
/* Returns the time of the next check; UINT64_MAX: never. */
uint64_t resync_next(const struct resync *resync);

#endif
