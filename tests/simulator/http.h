/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 over libmicrohttpd, a thread per connection, so that handlers and streams may simply
 * block. The only file of the tree with microhttpd.h is http.c.
 *
 * A handler fills in an answer; its body is text, or a stream that is asked for more bytes until it
 * ends (sent in chunks, one per read). Streams that wait look at http_alive() at least once a
 * second: nothing else tells them that the client is gone or was dropped.
 */
#ifndef SIMULATOR_HTTP_H
#define SIMULATOR_HTTP_H

#include <sys/types.h>

#include "common/buf.h"

struct http_request {
	const char *method;
	const char *path;   /* decoded, without the query */
	const char *target; /* path and query as they were sent */
	struct bytes body;
	int fd;
	void *connection; /* http.c's */
};

/* Decoded value of a query parameter (the first of that name); "" when it has none, NULL when
 * absent. Borrowed from the request, as headers are. */
const char *http_query(const struct http_request *request, const char *name);
const char *http_header(const struct http_request *request, const char *name);

/* The client of a request's fd is still there. */
bool http_alive(int fd);

/* read: bytes put into OUT; 0: the body is complete; negative: cut the connection here. */
struct http_stream {
	ssize_t (*read)(void *arg, char *out, size_t room);
	void (*free)(void *arg);
	void *arg;
};

#define HTTP_HEADERS_MAX 16

struct http_answer {
	unsigned status;
	struct buf body;           /* when there is no stream */
	struct http_stream stream; /* read NULL: none */
	char *headers[HTTP_HEADERS_MAX][2];
	size_t n_headers;
	int64_t length; /* Content-Length to claim; -1: the true one, or chunks */
	bool hang_up;   /* close without an answer */
	bool reset;     /* with hang_up: RST instead of FIN */
};

/* Replaces a header of that name. */
void http_answer_header(struct http_answer *answer, const char *name, const char *value);

/* Turns the text body into a stream; does nothing when there is a stream. */
void http_answer_to_stream(struct http_answer *answer);

typedef void http_handler_fn(
	void *arg, const struct http_request *request, struct http_answer *answer);

struct http_config {
	uint16_t port;                 /* 0: any */
	const char *certificate, *key; /* PEM text; NULL: plain HTTP */
	http_handler_fn *handler;
	void (*dropped)(void *arg); /* connections were cut: wake the streams; or NULL */
	void *arg;
};

struct http_server;

/* Listens on 127.0.0.1. CONFIG's texts must outlive the server. */
int http_server_open(const struct http_config *config, struct http_server **ret_server);
void http_server_close(struct http_server **server);
uint16_t http_server_port(const struct http_server *server);

/* Cuts every connection. */
void http_server_drop(struct http_server *server);

/* Cuts every connection and refuses new ones until resumed. The port stays taken. Both may be
 * called again; 0 or a negative error. */
void http_server_pause(struct http_server *server);
int http_server_resume(struct http_server *server);

#endif
