/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open sockets to the API server, and the time at which something was last heard on each. The
 * local port of an answer says over which connection it came.
 *
 * A connection is condemned (shut down) if a call got nothing within its limit, nor any other call
 * on the same connection. A quiet watch beside a busy one is healthy. A socket forgotten by a
 * firewall is dead, but libcurl would go on using it.
 *
 * A connection of quiet calls looks like a dead one. So after `silence_ns` without a byte
 * the owner renews one of its calls: an answer proves the connection alive, silence proves it dead,
 * and the other calls stay as they are.
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
	uint64_t ask_ns;   /* when the owner is to renew one of its calls */
};

struct connections {
	struct connection *at;
	size_t count, room;
	uint64_t silence_ns; /* 0: no call is renewed */
};

void connections_release(struct connections *connections);

/* Adds a socket before it connects. A connection with the same FD is removed first: libcurl 7.88
 * closes unconnected sockets silently. Returns: 0, -ENOMEM. */
int connections_add(struct connections *connections, int fd, uint64_t now_ns);
void connections_remove(struct connections *connections, int fd);

/* Notes that something was heard on the connection with local PORT. */
void connections_heard(struct connections *connections, uint16_t port, uint64_t now_ns);

/* Returns: when connections_ask will have a port to return; UINT64_MAX: never. */
uint64_t connections_ask_at(const struct connections *connections);
/* Returns: the local port of a silent connection, to renew its oldest call; 0: none. The
 * next call is due after a sixteenth of the silence: the renewal's answer may come over another
 * connection. */
uint16_t connections_ask(struct connections *connections, uint64_t now_ns);

/* Shuts the connection's socket down if nothing was heard on it since SINCE_NS; its calls fail at
 * once and the owner closes it. */
void connections_condemn(struct connections *connections, uint16_t port, uint64_t since_ns);

#endif
