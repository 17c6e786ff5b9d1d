/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets that are open to the API server, and when something was last heard on each. An answer
 * is told by its local port which connection it came over. A connection is condemned when a call got
 * nothing for its limit and nobody else got anything on it either: a quiet watch beside a talking
 * one is healthy, a socket that a firewall forgot is not, and only closing it keeps the next calls
 * from being put on it again.
 */
#ifndef REFLECTOR_CONNECTION_H
#define REFLECTOR_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct connection {
	int fd;
	uint16_t port;     /* local; 0: not known yet */
	uint64_t heard_ns; /* on the owner's clock */
};

struct connections {
	struct connection *at;
	size_t count, capacity;
	uint64_t opened; /* ever */
};

void connections_release(struct connections *connections);

/* A socket that is about to connect. 0 or -ENOMEM. */
int connections_add(struct connections *connections, int fd, uint64_t now_ns);
void connections_remove(struct connections *connections, int fd);

void connections_heard(struct connections *connections, uint16_t port, uint64_t now_ns);

/* Shuts the socket down when nothing was heard on it since SINCE_NS: its users see an error at once.
 * The owner closes it. True when it did. */
bool connections_condemn(struct connections *connections, uint16_t port, uint64_t since_ns);

#endif
