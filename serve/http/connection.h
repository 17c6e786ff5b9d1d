/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One socket of a client with its protocol and its exchanges. It belongs to one worker and its
 * thread. The connection group: connection_internal.h lists its files.
 */
#ifndef SERVE_HTTP_CONNECTION_H
#define SERVE_HTTP_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

struct http_connection;
struct listener;
struct serve_worker;

/* Takes over the accepted socket FD; closes it on failure. */
int connection_new(struct serve_worker *worker, const struct listener *listener, int fd);

/* The socket reported EVENTS (epoll). */
void connection_events(struct http_connection *c, uint32_t events);

/* Does all work possible without waiting. May free C. */
void connection_turn(struct http_connection *c);

/* No more requests; running streams are asked to finish at FINISH_NS, idle connections close. */
void connection_drain(struct http_connection *c, uint64_t finish_ns);

/* Ends all exchanges and closes the socket. */
void connection_close(struct http_connection **connection);

#endif
