/* SPDX-License-Identifier: Apache-2.0 */
/* The facts about a client: its address, the credentials of a Unix socket, its TLS certificate. */
#ifndef SERVE_HTTP_PEER_H
#define SERVE_HTTP_PEER_H

#include "serve/exchange.h"

struct listener;
struct peer_texts; /* what a peer points to */
struct tls_session;

int peer_of_socket(int fd, const struct listener *listener, struct exchange_peer *ret_peer,
	struct peer_texts **ret_texts);
/* Adds the names of the client's certificate, if it has sent one. After the handshake. */
int peer_of_certificate(
	struct tls_session *tls, struct exchange_peer *peer, struct peer_texts **texts);
void peer_release(struct peer_texts **texts);

#endif
