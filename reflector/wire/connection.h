/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets that are open to the API server, and when something was last heard on each. An answer
 * is told by its local port which connection it came over. A connection is condemned when a call got
 * nothing for its limit and nobody else got anything on it either: a quiet watch beside a talking
 * one is healthy, a socket that a firewall forgot is not, and only closing it keeps the next calls
 * from being put on it again.
 *
 * A connection that only carries quiet calls can't be told from a dead one by listening. So when
 * nothing was heard on it for `silence_ns`, one of its calls is to ask again: the new request's answer
 * shows that it lives, or the lack of one that it does not, and the other calls stay as they are.
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
	uint64_t ask_ns;   /* when one of its calls is to ask again */
};

struct connections {
	struct connection *at;
	size_t count, capacity;
	uint64_t silence_ns; /* 0: nobody is asked again */
	uint64_t opened; /* ever */
};

void connections_release(struct connections *connections);

/* A socket that is about to connect. 0 or -ENOMEM. Who had FD before has been closed without a word: so
 * libcurl 7.88 does with those that are not connected, of a call that ends or of the address that lost. */
int connections_add(struct connections *connections, int fd, uint64_t now_ns);
void connections_remove(struct connections *connections, int fd);

void connections_heard(struct connections *connections, uint16_t port, uint64_t now_ns);

/* When connections_ask has something to say, UINT64_MAX: never. */
uint64_t connections_ask_at(const struct connections *connections);
/* The local port of a connection on which a call is to ask again; 0: none. The next of its calls is
 * due after a sixteenth of the silence: where the answer came over another connection, this one is
 * still in doubt. */
uint16_t connections_ask(struct connections *connections, uint64_t now_ns);

/* Shuts the socket down when nothing was heard on it since SINCE_NS: its users see an error at once.
 * The owner closes it. True when it did. */
bool connections_condemn(struct connections *connections, uint16_t port, uint64_t since_ns);

#endif
