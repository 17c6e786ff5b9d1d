/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets for clients: serve.sock in the runtime directory, TCP addresses, and a service
 * manager's sockets (LISTEN_FDS). The main thread accepts. Also the facts about a client: its
 * address, the credentials of a Unix socket.
 */
#ifndef SERVE_HTTP_LISTENER_H
#define SERVE_HTTP_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/config/config.h"
#include "serve/exchange.h"

#define LISTENER_SOCKET "serve.sock" /* in the runtime directory */
#define LISTENERS_MAX   32

struct tls;

enum listener_kind { LISTENER_API, LISTENER_METRICS };

struct listener {
	int fd;
	enum listener_kind kind;
	bool local;        /* a Unix socket */
	bool any_loopback; /* bound to a loopback address, or local */
	enum config_auth auth;
	struct tls *tls; /* NULL: plain; owned by the process */
	char path[112];  /* of a service manager's Unix socket; else "" */
	char name[96];   /* "unix", "127.0.0.1:6445", "[::1]:6445" */
};

struct listeners {
	bool trial; /* TCP sockets are bound, nobody can connect to them, and a used address counts
		       if there is no other error */
	struct listener items[LISTENERS_MAX];
	size_t n;
};

/* Opens the sockets of WORDS, addresses with blanks between them ("unix 127.0.0.1:6445
 * [::1]:6445"), or the service manager's. RUNTIME_FD is the runtime directory, MODE the Unix
 * socket's. Returns: 0; ERR_CONFIG, -EADDRINUSE, ... with the address in the sentence. */
int listeners_open(struct listeners *listeners, enum listener_kind kind, const char *words,
	int runtime_fd, unsigned mode);
void listeners_close(struct listeners *listeners);

/* Accepts one connection and sets its options. Returns the descriptor; -EAGAIN: none is waiting;
 * another negative code: the caller waits before it tries again. */
int listener_accept(const struct listener *listener);

/* ---- the facts about a client ------------------------------------------- */

/* RET_GROUPS: of a Unix socket; the caller frees them after the peer's last use. */
int peer_of_socket(int fd, const struct listener *listener, struct exchange_peer *ret_peer,
	gid_t **ret_groups);
#endif
