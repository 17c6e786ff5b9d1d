/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open sockets to the API server, and the time at which something was last heard on each. The
 * local port of an answer says over which connection it came.
 *
 * A connection is condemned (shut down) if a call got nothing within its limit, nor any other call
 * on the same connection. A quiet watch beside a busy one is healthy. A socket forgotten by a
 * firewall is dead, but libcurl would go on using it.
 */
#ifndef REFLECTOR_NET_CONNECTION_H
#define REFLECTOR_NET_CONNECTION_H

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
	size_t count, room;
};

void connections_release(struct connections *connections);

/* Adds a socket before it connects. A connection with the same FD is removed first: libcurl 7.88
 * closes unconnected sockets silently. Returns: 0, -ENOMEM. */
int connections_add(struct connections *connections, int fd, uint64_t now_ns);
void connections_remove(struct connections *connections, int fd);

/* Notes that something was heard on the connection with local PORT. */
void connections_heard(struct connections *connections, uint16_t port, uint64_t now_ns);

/* Shuts the connection's socket down if nothing was heard on it since SINCE_NS; its calls fail at
 * once and the owner closes it. */
void connections_condemn(struct connections *connections, uint16_t port, uint64_t since_ns);

#endif
