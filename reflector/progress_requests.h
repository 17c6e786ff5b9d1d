/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a bounded number of progress requests (store/ring/progress_request.h), and passes them to
 * the feeds. */
#ifndef REFLECTOR_PROGRESS_REQUESTS_H
#define REFLECTOR_PROGRESS_REQUESTS_H

#include "reflector/feed/feeds.h"
#include "store/env/home.h"

struct progress_requests {
	int fd; /* -1: the socket could not be made yet */
	/* nothing is read before this (monotonic): a flood costs little */
	uint64_t next_ns;
};

/* Makes the socket, if it is not made. Without it reads wait for the next bookmark. */
void progress_requests_make(struct progress_requests *requests, struct home *home);
void progress_requests_close(struct progress_requests *requests);

/* Returns the descriptor to be polled for POLLIN; -1: nothing is to be read now. */
int progress_requests_fd(const struct progress_requests *requests, uint64_t now_ns);
/* Returns when progress_requests_fd() is another one; UINT64_MAX: not by time. */
uint64_t progress_requests_until(const struct progress_requests *requests, uint64_t now_ns);
/* The descriptor is readable: passes on the requests about the journal of UUID. */
void progress_requests_receive(
	struct progress_requests *requests, struct feeds *feeds, const uint8_t uuid[16]);

#endif
