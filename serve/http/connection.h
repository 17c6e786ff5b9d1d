/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One socket of a client with its protocol and its exchanges, of one worker and its thread:
 * connection.c (reading, writing, time limits), stream.c (one exchange of it: exchange.h), http1.c
 * and http2.c (the protocols).
 *
 * A turn of a connection reads, lets the protocol make output, and writes it. Nothing in this group
 * calls a turn from within another: exchange_begin() and its sisters only note their output, and
 * put the connection on the worker's list of ready connections.
 */
#ifndef SERVE_HTTP_CONNECTION_H
#define SERVE_HTTP_CONNECTION_H

#include "common/buf.h"
#include "serve/http/chunks.h"
#include "serve/http/head.h"
#include "serve/http/tls.h"
#include "serve/worker_internal.h"

/* ---- streams: stream.c -------------------------------------------------- */

enum stream_state {
	STREAM_REQUEST, /* the request is not complete */
	STREAM_ASKED,   /* serve_answer() was called */
	STREAM_BEGUN,   /* exchange_begin() was called */
	STREAM_WHOLE,   /* the body is in `whole` */
	STREAM_SOURCE   /* the body is pulled */
};

struct stream {
	struct exchange x; /* first: an exchange is a stream */
	struct http_connection *connection;
	struct stream *next, **at; /* of the connection */
	enum stream_state state;
	int status;
	struct buf answer; /* the answer's header lines, each with CR LF */
	struct buf whole;
	size_t whole_sent;
	struct exchange_source source;
	bool waiting; /* read() returned -EAGAIN, and exchange_wake() has not been called since */
	bool woken;
	bool finish_asked;
	bool counted; /* in the gauge of long-running requests */
	/* Chosen by the labels at exchange_begin(); NULL before. */
	struct metric_cell *requests, *seconds, *running;
	char *user; /* for the access log; NULL: "" */
	void (*gone)(void *context);
	void *gone_context;
	struct buf body; /* of the request, not yet taken */
	bool body_ended;
	void (*on_body)(void *context);
	void *body_context;
	uint64_t sent; /* bytes of the answer's body */
	/* when the client last took a byte of the answer's body, or gave one of the request's */
	uint64_t progress_ns;
	int32_t id;       /* HTTP/2 */
	bool submitted;   /* HTTP/2: the answer's head is on its way */
	bool resume_owed; /* HTTP/2: woken within read() */
	uint8_t *text;    /* the request's texts, after the headers */
	size_t text_size;
	struct exchange_header headers[];
};

/* Makes a stream of CONNECTION with a copy of TEXT and room for N_HEADERS. Returns NULL without
 * memory. */
struct stream *stream_new(struct http_connection *connection, struct bytes text, size_t n_headers);
/* Passes the request, now complete, to the answers. */
void stream_ask(struct stream *stream);
/* Reports new bytes of the request's body, or its end. */
void stream_body_came(struct stream *stream);
/* Pulls the body: as exchange_source.read(). */
ssize_t stream_pull(struct stream *stream, uint8_t *out, size_t room);
/* Releases the source, writes the access log, removes the stream from its connection and frees
 * it. */
void stream_end(struct stream *stream, enum exchange_end why);
/* Asks a source to finish; the protocol ends a stream without an answer. */
void stream_finish(struct stream *stream);
/* Returns the phrase of a status, "Unknown" if it has none. */
const char *stream_phrase(int status);

/* ---- protocols ---------------------------------------------------------- */

struct protocol {
	const char *name; /* label of kinf_serve_connections */
	/* Takes the bytes read; those without room stay in c->in. Returns 0, or a negative error:
	 * the connection is closed after its output. */
	int (*input)(struct http_connection *c, const uint8_t *bytes, size_t size);
	/* Appends output to OUT, up to about EXCHANGE_ROOM bytes. */
	int (*output)(struct http_connection *c, struct buf *out);
	/* Whether more bytes may be read now, and whether nothing is left to be done. */
	bool (*hungry)(const struct http_connection *c);
	bool (*over)(const struct http_connection *c);
	/* A source has more, or an answer has begun. NULL: the connection's turn sees it. */
	void (*wake)(struct http_connection *c, struct stream *stream);
	/* The client has ended its sending side. */
	void (*hear_end)(struct http_connection *c);
	/* The process ends: no new requests. */
	void (*drain)(struct http_connection *c);
	/* SIZE bytes of the request's body were taken. NULL: as above. */
	void (*body_taken)(struct http_connection *c, struct stream *stream, size_t size);
	/* HTTP/2: for a minute the client took nothing of the answer's body, or gave nothing of
	 * the request's. */
	void (*cut_slow)(struct http_connection *c, struct stream *stream);
	void (*release)(struct http_connection *c);
};
extern const struct protocol http1_protocol;
extern const struct protocol http2_protocol;
/* Switches C to the protocol. */
int http2_start(struct http_connection *c);

enum http1_state { HTTP1_HEAD, HTTP1_ANSWER, HTTP1_LAST };

struct http1 {
	enum http1_state state;
	struct stream *stream; /* NULL in HTTP1_HEAD and HTTP1_LAST */
	size_t searched;       /* of c->in, for the end of the head */
	struct chunks chunks;
	uint64_t body_left;
	bool body_chunked, continue_owed;
	bool body_open; /* while the answer is made: the body has not ended */
	bool tunnel;    /* after status 101 */
	bool close;     /* the connection ends after this answer */
	bool head_written, answer_chunked, answer_bodiless;
};

/* ---- connections -------------------------------------------------------- */

struct http2;
struct metric_cell;

/* A handshake needs some 60 KiB until it is complete. Thousands of returning clients would take
 * that each, and fragment the heap. So a worker makes this many at once, and takes no other
 * connection with TLS meanwhile. A stalled handshake goes on without a slot, and a silent client
 * has none. */
#define HANDSHAKES_MAX 128

struct http_connection {
	uint32_t magic;
	struct serve_worker *worker;
	const struct listener *listener;
	struct http_connection *next, **at; /* of the worker */
	struct http_connection *ready_next;
	bool ready;
	int fd;
	struct tls_session *tls;         /* NULL: plain, or the handshake has not begun */
	bool in_handshake;               /* the TLS handshake is not complete */
	bool has_slot;                   /* for its handshake */
	const struct protocol *protocol; /* NULL: not known yet */
	struct http1 http1;
	struct http2 *http2;
	struct exchange_peer peer;
	gid_t *groups; /* of the peer */
	struct stream *streams;
	size_t heads; /* bytes of the heads of all streams */
	struct buf in;
	struct buf out;
	size_t out_sent;
	struct serve_timer timer;
	uint64_t began_ns;    /* of the awaited head or handshake; 0: none */
	uint64_t progress_ns; /* when the socket last took or gave a byte */
	uint64_t checked_ns;  /* when the streams of HTTP/2 were looked at last */
	uint64_t finish_ns;   /* when the streams are asked to finish; UINT64_MAX: not */
	uint64_t pause_ns; /* no turns until then: the client opens its windows in bits; 0: none */
	bool readable, writable, read_ended, dead, lingering, draining;
};

/* Lets C rest for NS after this turn, to read what comes in one go. */
void connection_pause(struct http_connection *c, uint64_t ns);
/* Puts C on the worker's list of ready connections. */
void connection_ready(struct http_connection *c);

/* ---- for the loop ------------------------------------------------------- */

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
