/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wishes for progress: what kinf-serve sends to the reflector while a client waits for a
 * resourceVersion that a quiet feed has not come to. The reflector then has the API server say
 * how far the feed is (reflector/feed/progress.h).
 *
 * A wish is only a hint, because every member of the group may send one: the reflector reads a
 * bounded number, and asks the server at most twice a second and feed. A wish may be lost: who
 * still waits sends another.
 */
#ifndef STORE_RING_WISH_H
#define STORE_RING_WISH_H

#include "store/env/home.h"

#define WISHES_MAX 64 /* read in one turn */

struct wish {
	uint8_t journal[16]; /* uuid */
	uint64_t rv;         /* that is waited for */
	uint32_t feed;
};

/* Makes and guards the reflector's socket, unless *FD is it already. A socket that can't be made
 * now comes later: to be called each second. *FD below 0: there is none. */
void wish_keep(struct home *home, int *fd);
/* Receives a wish. Returns: FOUND; AGAIN: there is none. */
int wish_receive(int fd, struct wish *ret_wish);
/* Sends a wish, if there is a reflector that can receive it now. */
void wish_send(const struct home *home, const struct wish *wish);

#endif
