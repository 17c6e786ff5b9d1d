/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the http group; other modules include http.h. Each file of the group does one
 * thing:
 *
 *	http.c          life of client and calls, libcurl's sockets, and the loop
 *	http_setup.c    the server's URL, the proxy, and the libcurl options of a call
 *	http_call.c     the clock of limits, the lists of calls, an answer's bytes, failures
 *
 * libcurl's header is included here and nowhere else.
 */
#ifndef REFLECTOR_NET_HTTP_INTERNAL_H
#define REFLECTOR_NET_HTTP_INTERNAL_H

#include <curl/curl.h>

#include "reflector/net/certificates.h"
#include "reflector/net/connection.h"
#include "reflector/net/credential.h"
#include "reflector/net/http.h"
#include "reflector/net/proxy.h"

#define HTTP_MAGIC 0x48545450u
#define CALL_MAGIC 0x48434c4cu

#define NS_PER_MS 1000000ull

/* The time limits of one call, in nanoseconds on the clock of limits (http.h). */
struct limit {
	uint64_t first_byte_ns, idle_ns, total_ns; /* durations; 0: no limit */
	uint64_t silence_ns;                       /* of a renewable call; 0: no limit */
	uint64_t start_ns;
	uint64_t heard_ns; /* when LIMIT_RATE times idle_ns had last come since the time before, or
			      the head */
	uint64_t bytes;    /* since then */
	bool answered;
};

/* Bytes a second. A slower answer counts as silent: a server could otherwise hold a list for ever
 * with a byte a minute. */
#define LIMIT_RATE 1024

enum call_state {
	CALL_WAITING, /* started, not yet handed to libcurl */
	CALL_RUNNING, /* libcurl has it */
	CALL_ENDED,   /* libcurl is done with it; on_done is still to be called */
	CALL_STATE_MAX
};

struct http_call {
	uint32_t magic;
	enum call_state state;
	struct http *http;
	struct http_call *next, **link; /* list of the client's calls in this state */
	struct http_request request;    /* path, accept and etag are NULL: libcurl has copies */
	CURL *easy;
	struct curl_slist *headers; /* hold credentials: wiped when freed */
	/* since it was handed to libcurl; NULL over plain http */
	struct certificate_set *certificates;
	unsigned credential_version; /* of the credentials in `headers` */
	bool cancelled; /* cancelled inside a callback of libcurl; http_poll frees it */

	struct limit limit; /* on the clock of limits */
	uint16_t port;      /* local port of its connection; 0 before the answer began */

	int status; /* of the answer, or of an interim one before it */
	size_t header_bytes;

	int result;                   /* when CALL_ENDED */
	int stop;                     /* on_body's result, if it ended the call; else 0 */
	char *sentence;               /* error sentence of result or stop; NULL: none */
	char reason[CURL_ERROR_SIZE]; /* libcurl's own words */
};

struct http {
	uint32_t magic;
	const struct kubeconfig *config;
	struct credential *credential;
	struct certificates *certificates;
	CURLM *multi;
	bool global_init, performing;
	bool http1; /* the server speaks HTTP/1: a connection carries one call at a time */
	struct call_list {
		struct http_call *first, **end; /* the oldest in this state, and the end's link */
	} calls[CALL_STATE_MAX];
	struct http_call *opener; /* running, opened the newest connection; NULL: none */
	size_t cancelled;         /* calls */
	uint64_t deadline_ns;     /* no limit is reached before this, on the clock of limits */
	int epoll;                /* set of libcurl's sockets; -1: none */
	int epoll_errno;          /* why a socket could not be added to it; 0: all were */
	uint64_t timer_ns;        /* monotonic time of libcurl's timer; UINT64_MAX: none */
	struct connections connections;
	struct stats *stats; /* NULL: nothing is counted */
	uint64_t bulk_bytes; /* of bulk answers, received in the last turn */

	uint64_t connect_limit_ns, silence_ns; /* of http_set_limits() */
	uint64_t clock_ns; /* the clock of limits: time spent listening or working, not stopped */
	uint64_t last_ns;  /* monotonic time of clock_ns's last move */

	char *base;        /* URL before the paths */
	char *host_header; /* "Host: ..." when it differs from BASE's; NULL: as in base */
	/* real host, when BASE holds tls-server-name; NULL: BASE's */
	struct curl_slist *connect_to;
	struct proxy proxy;
	char *name; /* of the server, and of the proxy if any, for sentences */
};

/* ---- http_setup.c ------------------------------------------------------- */

/* Fills base, host_header, connect_to, proxy and name from the kubeconfig and the environment.
 * Returns: 0, ERR_CONFIG, -ENOMEM. */
int http_parse_server(struct http *http);
/* Sets libcurl's options for CALL, credentials excepted. Returns: 0, ERR_UNSUPPORTED, -ENOMEM. */
int http_call_set_up(struct http_call *call, const struct http_request *request);
/* Adds headers and certificates with our credentials, just before libcurl gets CALL: they may have
 * been rotated since http_start. Returns: 0, an error of credential_headers, ERR_UNSUPPORTED,
 * -ENOMEM. */
int http_call_set_credentials(struct http_call *call);

/* Adds N to a counter of http_set_stats(). */
void http_count(const struct http *http, enum counter counter, uint64_t n);

/* ---- http_call.c -------------------------------------------------------- */

/* Counts SIZE bytes of the answer, received at NOW. */
void limit_heard(struct limit *limit, uint64_t now_ns, uint64_t size);

/* Returns: when the call ends unless something comes before, UINT64_MAX: never. *RET_LIMIT_NS is
 * the limit, *RET_WORDS its words: "no answer", "nothing more heard", "too little heard", "not
 * finished"; NULL: it is the silence of a renewable call. */
uint64_t limit_deadline(const struct limit *limit, uint64_t *ret_limit_ns, const char **ret_words);

/* Moves the clock of limits by the time since the last move, by at most WAITED_MS and one second:
 * more was not spent listening. */
void http_move_clock(struct http *http, uint64_t waited_ms);
/* Moves the deadline forward for CALL. */
void http_call_note_deadline(struct http_call *call);
/* Returns: milliseconds until the next limit is reached, at most TIMEOUT_MS (-1: INT_MAX). */
int http_wait_ms(const struct http *http, int timeout_ms);

void http_call_link(struct http_call *call);
void http_call_unlink(struct http_call *call);
/* Moves CALL to the end of the list of STATE. */
void http_call_set_state(struct http_call *call, enum call_state state);
/* Returns: the oldest call not yet given to libcurl; NULL: none. */
struct http_call *http_oldest_waiting(const struct http *http);

/* Takes one header line or trailer, or a piece of the body. Returns: false to make libcurl end the
 * call; call->stop and call->sentence say why, unless the call was cancelled. */
bool http_call_take_header(struct http_call *call, struct bytes line);
bool http_call_take_body(struct http_call *call, struct bytes bytes);

/* Converts libcurl's result of CALL to an error code and sets its sentence. Returns: 0 for a
 * complete answer, ERR_NETWORK, ERR_TLS, ERR_TIMEOUT, ERR_PROTOCOL, -ENOMEM. */
int http_call_failure(const struct http_call *call, CURLcode code);

#endif
