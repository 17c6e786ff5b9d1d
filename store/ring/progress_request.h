/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress requests: kinf-serve sends one to the reflector while a client waits for an RV newer
 * than a quiet feed's. The reflector then asks the API server for the feed's newest RV
 * (reflector/feed/session_progress.c).
 *
 * A request is only a hint, because every member of the group may send one: the reflector reads a
 * bounded number, and asks the server at most twice a second and feed. It may be lost: a waiting
 * client sends another.
 */
#ifndef STORE_RING_PROGRESS_REQUEST_H
#define STORE_RING_PROGRESS_REQUEST_H

#include "store/env/home.h"

#define PROGRESS_REQUESTS_MAX 64 /* read in one turn */

struct progress_request {
	uint8_t journal[16]; /* uuid */
	uint64_t rv;         /* awaited */
	uint32_t feed;
};

/* Makes the reflector's socket, unless *FD is it already. Called each second: a failed attempt is
 * repeated. *FD below 0: there is none. */
void progress_request_keep(struct home *home, int *fd);
/* Receives a request. Returns: FOUND; AGAIN: there is none. */
int progress_request_receive(int fd, struct progress_request *ret_request);
/* Sends a request, if a reflector can receive it now. */
void progress_request_send(const struct home *home, const struct progress_request *request);

#endif
