/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to the API server as streams of bytes, for forwarded requests. libcurl resolves,
 * connects (through a proxy also) and does TLS; the caller speaks HTTP, because libcurl can't relay
 * upgrades.
 *
 *	upstream_link_open(links, false, turn, forward, &link)
 *	turn(): upstream_link_state(), upstream_link_write(), upstream_link_read()
 *	upstream_link_close(&link, true)	the next request may use the connection
 *
 * Links belong to one worker and its thread. They wait in an epoll set of their own, one descriptor
 * for the worker's loop.
 */
#ifndef SERVE_HTTP_UPSTREAM_LINK_H
#define SERVE_HTTP_UPSTREAM_LINK_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/bytes.h"

struct serve_worker;
struct upstream_link;
struct upstream_links;

int upstream_links_new(
	struct serve_worker *worker, int runtime_fd, struct upstream_links **ret_links);
/* After the last link was closed. */
void upstream_links_free(struct upstream_links **links);
/* Becomes readable when upstream_links_run() has work. */
int upstream_links_fd(const struct upstream_links *links);
/* Serves ready sockets, and calls the functions of their links. By the loop, from no turn. */
void upstream_links_run(struct upstream_links *links);
/* The host and the base path of the server's URL, borrowed until the next upstream_link_open(). */
void upstream_links_server(
	const struct upstream_links *links, struct bytes *ret_host, struct bytes *ret_base);

/* Results of reading and writing, without a sentence. */
#define UPSTREAM_AGAIN  (-EAGAIN)
#define UPSTREAM_BROKEN (-EPIPE)

enum upstream_link_state { UPSTREAM_CONNECTING, UPSTREAM_OPEN, UPSTREAM_FAILED };

/* Opens a connection, or takes an idle one unless FRESH. *RET_LINK stays where it is until the link
 * is closed: it becomes another link, an open one, if some request is done with that first. READY
 * is called when the state has changed, or when bytes can be read or written again; it may close
 * the link. */
int upstream_link_open(struct upstream_links *links, bool fresh, void (*ready)(void *context),
	void *context, struct upstream_link **ret_link);
enum upstream_link_state upstream_link_state(const struct upstream_link *link);
/* Returns true if another request used the connection before. */
bool upstream_link_was_idle(const struct upstream_link *link);
/* Why it failed. */
const char *upstream_link_error(const struct upstream_link *link);

/* Returns the number of bytes; 0: the server has ended; UPSTREAM_AGAIN; UPSTREAM_BROKEN. */
ssize_t upstream_link_read(struct upstream_link *link, void *out, size_t room);
/* Sends BYTES. Returns how many the connection took, or UPSTREAM_BROKEN. The next call has to give
 * the others again: TLS may have begun a record of them. */
ssize_t upstream_link_write(struct upstream_link *link, struct bytes bytes);

/* REUSABLE: request and answer are complete. Accepts NULL. */
void upstream_link_close(struct upstream_link **link, bool reusable);

#endif
