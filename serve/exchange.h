/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request and the place for its answer, whichever HTTP version carried it. It is the interface
 * between the transport (http/: sockets, TLS, HTTP/1.1, HTTP/2) and the answers (answer.h: paths,
 * objects, watches). Neither includes headers of the other.
 *
 *	void serve_answer(struct answer_worker *worker, struct exchange *x)
 *	{
 *		static const struct exchange_header headers[] = {
 *			{BYTES_LIT("content-type"), BYTES_LIT("application/json")}};
 *
 *		exchange_begin(x, 200, headers, 1);
 *		exchange_send(x, body);			a whole body, or
 *		exchange_stream(x, &source);		a body that is made piece by piece
 *	}
 *
 * An answer need not begin within serve_answer(). The answerer then calls exchange_park(), with a
 * function for a client's end before exchange_begin().
 *
 * A stream is pulled: the transport calls source.read() only when the connection has room, so a
 * slow client costs at most EXCHANGE_ROOM bytes of memory; the rest is the source's business. A
 * source without bytes returns -EAGAIN, and later calls exchange_wake().
 *
 * Threads: an exchange belongs to one connection, and only the thread of its worker uses it,
 * exchange_wake() included. Other threads wake the worker (serve_worker_wake()).
 *
 * Life: the exchange is valid from serve_answer() until
 *	exchange_send() returns, or
 *	source.end() is called (always once for each exchange_stream()), or
 *	the function of exchange_park() is called.
 * Request texts live as long as the exchange.
 */
#ifndef SERVE_EXCHANGE_H
#define SERVE_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/bytes.h"

/* A connection's answers beyond its socket, in bytes, at most. */
#define EXCHANGE_ROOM ((size_t)64 << 10)

/* The longest head of a request. */
#define EXCHANGE_HEAD_MAX ((size_t)64 << 10)

enum exchange_version { EXCHANGE_HTTP_1_0, EXCHANGE_HTTP_1_1, EXCHANGE_HTTP_2 };

struct exchange_header {
	struct bytes name; /* in lower case */
	struct bytes value;
};

/* The transport's facts about the client; one for each connection. */
struct exchange_peer {
	bool local; /* connected through the Unix socket; uid and groups are set */
	uid_t uid;
	const gid_t *groups; /* the primary group first */
	size_t n_groups;
	/* From a client certificate signed by tls.clientCA; "" and 0 without one. */
	const char *common_name;
	const char *const *organizations;
	size_t n_organizations;
	struct tls_session *certificate; /* NULL: none */
	int64_t until_s;                 /* the certificate's end, in seconds since 1970 */
	char address[64];                /* for logs: "10.0.0.7:41234", "unix:uid=1000,pid=4711" */
	bool loopback;                   /* local, or from 127.0.0.0/8 or ::1 */
	unsigned auth; /* enum config_auth: how the listener's clients are decided on */
};

struct serve_worker;

/* Why a source ends. */
enum exchange_end {
	EXCHANGE_DONE,   /* the whole body was given to the connection */
	EXCHANGE_CUT,    /* read() returned an error, so the body was cut */
	EXCHANGE_CLOSED, /* the client closed the connection or reset the stream */
	EXCHANGE_SLOW,   /* the client took nothing for a minute */
	EXCHANGE_STOPPED /* this process ends */
};

struct exchange_source {
	/* Writes at most ROOM bytes, at least 1, of the body into OUT. Does at most about a
	 * millisecond of work. ROOM is at least 4096 unless the client limits it (HTTP/2 windows).
	 * Returns: the number of bytes
	 *	0: the body has ended
	 *	-EAGAIN: nothing now; exchange_wake() is called later (also from within read())
	 *	another negative code: the body is cut, so that the client notices that it is
	 *	incomplete (HTTP/1.1: the connection closes without the last chunk; HTTP/2:
	 *	RST_STREAM) */
	ssize_t (*read)(void *context, uint8_t *out, size_t room);
	/* Releases CONTEXT; called exactly once, never from within exchange_stream(). */
	void (*end)(void *context, enum exchange_end why);
	/* May be NULL. Asks a long-running source to come to its end, because this process ends:
	 * the following read() calls may give a last bookmark, then 0. Called at most once, at a
	 * random instant within 2.5 s. Without it the source is read on and cut at the end. */
	void (*finish)(void *context);
	void *context;
	int64_t size; /* of the whole body, for content-length; -1: unknown */
};

struct exchange {
	uint32_t magic;
	enum exchange_version version;
	struct serve_worker *worker;
	const struct exchange_peer *peer;

	/* The request; read-only. */
	struct bytes method;                   /* "GET" */
	struct bytes path;                     /* as sent, without the query; begins with / */
	struct bytes query;                    /* as sent, after the ?; size 0 if there is none */
	struct bytes host;                     /* Host or :authority */
	const struct exchange_header *headers; /* without Host; an entry for each line */
	size_t n_headers;
	bool has_body; /* exchange_body() */
	bool upgrade;  /* the client asks for another protocol, and may get it (status 101) */
	bool head;     /* HEAD: the answerer answers as for GET, the transport sends no body */

	/* For the answerer. */
	bool relayed;      /* set before exchange_begin(): the headers are the API server's, and no
			      usual ones are added */
	bool long_running; /* set for watches before exchange_begin(): the end of the client's
			      sending side ends the answer; counted in
			      apiserver_longrunning_requests */
	/* Labels for metrics and the access log, set by the answerer before exchange_begin(), as
	 * long_running is; nothing reads them after it. NULL: unknown. */
	struct exchange_labels {  /* NULL after exchange_begin() */
		const char *verb; /* LIST, WATCH, GET */
		const char *group, *version, *resource, *subresource;
		const char *scope; /* cluster, namespace, resource */
		const char *user;  /* the decided user, for the access log */
	} * labels;

	uint64_t began_ns; /* monotonic: the request's head was complete */
};

/*
 * The request's body. The transport keeps at most EXCHANGE_ROOM bytes of it, and reads on after
 * exchange_body_take(). A body without a reader is dropped once the answer has begun. After
 * exchange_begin() with status 101 it is the client's side of the tunnel, and its end the
 * connection's.
 */
/* Returns the bytes so far. RET_END: no others will come. */
struct bytes exchange_body(const struct exchange *x, bool *ret_end);
void exchange_body_take(struct exchange *x, size_t size);
/* Calls FN when more has come; NULL: no longer. FN may begin the answer. */
void exchange_on_body(struct exchange *x, void (*fn)(void *context), void *context);

/* Returns whether the client's certificate, if it has one, still counts: it has not expired, and
 * tls.clientCA as it was read last has signed it. A connection may last for months. */
bool exchange_peer_counts(const struct exchange_peer *peer);

/* Returns the value of the first header of NAME (lower case), BYTES_NONE if there is none. */
struct bytes exchange_header(const struct exchange *x, const char *name);

/* Begins the answer. The headers are copied; names are in lower case. The transport adds date,
 * cache-control (`no-cache, private`, unless it is among HEADERS), neither if X is relayed, and
 * the framing (content-length, transfer-encoding, connection). Status 101 makes a tunnel of the
 * source's bytes and exchange_body(). Without memory the connection is closed later; no error is
 * reported here. */
void exchange_begin(
	struct exchange *x, int status, const struct exchange_header *headers, size_t n);

/* Sends a copy of BODY as the whole body. The exchange is invalid afterwards. */
void exchange_send(struct exchange *x, struct bytes body);

/* Makes a copy of SOURCE the body. The head is sent at once, also before any body. The transport
 * first calls read() after the caller has returned to the worker's loop. */
void exchange_stream(struct exchange *x, const struct exchange_source *source);

/* Reports that a waiting source may have more bytes. Cheap; may be called at any time between
 * exchange_stream() and end(). */
void exchange_wake(struct exchange *x);

/* Lets serve_answer() return before the answer has begun. GONE is called if the client goes away,
 * or the process ends, before exchange_begin(); the exchange is invalid then. */
void exchange_park(struct exchange *x, void (*gone)(void *context), void *context);

/* Answers with a Status object: exchange_begin(), exchange_send() of
 * {"kind":"Status",...,"message":MESSAGE,"reason":REASON,"code":STATUS}. RETRY_AFTER 0: none; else
 * seconds, as header and in details. */
void exchange_refuse(struct exchange *x, int status, const char *reason, const char *message,
	unsigned retry_after);

#endif
