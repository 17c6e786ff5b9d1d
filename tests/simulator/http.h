/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 with libmicrohttpd. Each connection has a thread: handlers and streams may block. Only
 * http.c includes microhttpd.h.
 *
 * A handler fills in an answer. Its body is text, or a stream. The server calls the stream's read()
 * until it ends; each read is sent as one chunk. A waiting stream calls http_alive() at least once
 * a second: nothing else reports a connection closed by the client.
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

/* Returns the decoded value of the first query parameter NAME; "" if it has no value, NULL if it is
 * absent. Values and headers are valid as long as the request. */
const char *http_query(const struct http_request *request, const char *name);
const char *http_header(const struct http_request *request, const char *name);

/* Returns true while the client of a request's FD keeps the connection open. */
bool http_alive(int fd);

/* read() returns the number of bytes written to OUT; 0: the body is complete; negative: cut the
 * connection here. */
struct http_stream {
	ssize_t (*read)(void *arg, char *out, size_t room);
	void (*free)(void *arg);
	void *arg;
};

#define HTTP_HEADERS_MAX 16

struct http_answer {
	unsigned status;
	struct buf body;           /* if there is no stream */
	struct http_stream stream; /* read NULL: none */
	char *headers[HTTP_HEADERS_MAX][2];
	size_t n_headers;
	int64_t length; /* Content-Length to claim; -1: the true one, or chunks */
	bool hang_up;   /* close without an answer */
	bool reset;     /* with hang_up: RST instead of FIN */
};

/* Sets a header; replaces one of the same name. */
void http_answer_header(struct http_answer *answer, const char *name, const char *value);

/* Turns the text body into a stream, if there is none yet. */
void http_answer_to_stream(struct http_answer *answer);

typedef void http_handler_fn(
	void *arg, const struct http_request *request, struct http_answer *answer);

struct http_config {
	uint16_t port;                 /* 0: any */
	const char *certificate, *key; /* PEM text; NULL: plain HTTP */
	http_handler_fn *handler;
	void (*dropped)(
		void *arg); /* called after connections were cut, to wake streams; or NULL */
	void *arg;
};

struct http_server;

/* Listens on 127.0.0.1. CONFIG's texts must outlive the server. */
int http_server_open(const struct http_config *config, struct http_server **ret_server);
void http_server_close(struct http_server **server);
uint16_t http_server_port(const struct http_server *server);

/* Cuts every connection. */
void http_server_drop(struct http_server *server);

/* http_server_pause cuts every connection and refuses new ones; the port stays reserved.
 * http_server_resume accepts connections again. Both may be called repeatedly. */
void http_server_pause(struct http_server *server);
int http_server_resume(struct http_server *server);

#endif
