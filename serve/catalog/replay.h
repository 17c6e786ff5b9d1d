/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A replay: the past that is served goes on. Its clock says up to which moment of the log records
 * are shown: it stands still, runs N times as fast as time, or makes steps of one visible change.
 *
 *	the feeder (catalog.c)                       the main thread
 *	replay_until()                               replay_command(replay, "run 10x", text, size)
 *	replay_came_to()
 *	replay_wait()
 */
#ifndef SERVE_CATALOG_REPLAY_H
#define SERVE_CATALOG_REPLAY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct replay {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* the clock, or the steps */
	uint64_t speed;         /* 0: it stands still */
	uint64_t moment_ns;     /* CLOCK_REALTIME, as of since_ns */
	uint64_t since_ns;      /* monotonic */
	uint64_t steps;         /* to be made */
	uint64_t event, newest; /* shown, and in the log */
};

/* Reads "10x", a whole number; "" is 1x, "0x" stands still. Returns 0 or ERR_SYNTAX. */
int replay_parse_speed(const char *text, uint64_t *ret_speed);

/* Begins at MOMENT_NS. */
void replay_init(struct replay *replay, uint64_t moment_ns, uint64_t speed);
void replay_release(struct replay *replay);

/* Returns the moment that is shown. */
uint64_t replay_moment(struct replay *replay);
/* Returns the time up to which later events are to be shown: 0 while the clock stands still. ONE: a
 * step is to be made. */
uint64_t replay_until(struct replay *replay, bool *ret_one);
/* The log is shown up to EVENT, recorded at TIME_NS; NEWEST is its last. MADE: a step was made;
 * without a later event all are. */
void replay_came_to(
	struct replay *replay, uint64_t event, uint64_t time_ns, uint64_t newest, bool made);
/* Sleeps until the moment NEXT_NS comes, 500 ms pass (50 ms at the end of the log, UINT64_MAX), or
 * a command comes. */
void replay_wait(struct replay *replay, uint64_t next_ns);
/* Ends a wait. */
void replay_wake(struct replay *replay);

/* Does "step [N]", "run [Nx]", "stop", or nothing, "", and writes where the replay is. Waits for
 * steps, a second at most. Returns 0 or ERR_SYNTAX. */
int replay_command(struct replay *replay, const char *command, char *text, size_t size);

#endif
