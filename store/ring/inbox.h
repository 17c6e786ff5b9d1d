/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon's inbox in the runtime directory: a datagram socket to which every member of the
 * store's group may send small messages of one size. A message is only a hint: the daemon checks
 * what it says, and decides how many it reads. Nobody waits: a message that finds no room is
 * lost.
 */
#ifndef STORE_RING_INBOX_H
#define STORE_RING_INBOX_H

#include "store/env/home.h"

#define INBOX_MESSAGE 32 /* bytes; the first four say what it is */

/* Makes the socket NAME, in place of the one that an earlier daemon left, and guards it
 * (home_guard_file()), unless *FD is it already. A daemon calls this each second, so a socket
 * that can't be made now comes later. *FD: below 0, none. */
void inbox_keep(struct home *home, const char *name, int *fd);
/* Reads at most MOST messages, for the first that begins with MAGIC. Returns: FOUND; AGAIN:
 * there is none. */
int inbox_receive(int fd, uint32_t magic, unsigned most, uint8_t ret_message[INBOX_MESSAGE]);
/* Sends a message, if there is a daemon that can receive it now. */
void inbox_send(const struct home *home, const char *name, const uint8_t message[INBOX_MESSAGE]);

#endif
