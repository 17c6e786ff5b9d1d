/* SPDX-License-Identifier: Apache-2.0 */
/* The inbox for wishes for progress (store/ring/wish.h): reads a bounded number, and passes them
 * to the feeds. */
#ifndef REFLECTOR_WISHES_H
#define REFLECTOR_WISHES_H

#include "reflector/feed/feeds.h"
#include "store/env/home.h"

struct wishes {
	int fd; /* -1: the socket could not be made yet */
	/* nothing is read before this (monotonic): a flood of wishes costs little */
	uint64_t next_ns;
};

/* Makes the socket, if it is not made. Without it reads wait for the next bookmark. */
void wishes_make(struct wishes *wishes, struct home *home);
void wishes_close(struct wishes *wishes);

/* Returns the descriptor to be polled for POLLIN; -1: nothing is to be read now. */
int wishes_fd(const struct wishes *wishes, uint64_t now_ns);
/* Returns when wishes_fd() is another one; UINT64_MAX: not by time. */
uint64_t wishes_until(const struct wishes *wishes, uint64_t now_ns);
/* The descriptor is readable: passes on the wishes about the journal of UUID. */
void wishes_receive(struct wishes *wishes, struct feeds *feeds, const uint8_t uuid[16]);

#endif
