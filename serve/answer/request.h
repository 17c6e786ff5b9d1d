/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request, from its head to the head of its answer. The files of this directory are stages, in
 * the order of serve/README.md; each includes only headers of those below it.
 *
 * A request lives from serve_answer() until the transport lets go of its exchange, and is used by
 * its worker's thread only.
 */
#ifndef SERVE_ANSWER_REQUEST_H
#define SERVE_ANSWER_REQUEST_H

#include "print/table/printer.h"
#include "serve/api/api_accept.h"
#include "serve/api/api_options.h"
#include "serve/api/api_path.h"
#include "serve/api/api_status.h"
#include "serve/auth/auth.h"
#include "serve/catalog/catalog.h"
#include "serve/exchange.h"
#include "serve/metrics.h"
#include "serve/worker.h"

#define ANSWER_MAGIC         0x616e7377u
#define ANSWER_REQUEST_MAGIC 0x61727173u
#define ANSWER_WAIT_NS       UINT64_C(3000000000) /* for an RV to come */
#define ANSWER_RETRY_NS      UINT64_C(3000000)    /* the index has mostly caught up after it */
#define ANSWER_SLICE_NS      UINT64_C(1000000)    /* of work, before other clients' turn */
#define ANSWER_GZIP_BYTES    ((size_t)128 << 10)  /* smaller answers are not compressed */

struct answer {
	uint32_t magic;
	struct catalog *catalog;
	struct auth *auth;
	struct metrics *metrics;
	struct serve_worker *const *workers;
	unsigned n_workers;
	uint64_t max_staleness_ns; /* atomic; 0: any */
	bool forward;
	bool quorum;           /* atomic: the API server answers reads without an RV */
	struct mcp_calls *mcp; /* mcp.c; NULL: serve.mcp is off */
};

struct answer_worker {
	struct answer *answer;
	struct serve_worker *worker;
	struct snapshot *snapshot; /* NULL: none could be taken yet */
	struct answer_groups *groups;
	struct answer_request *waiting;
	struct gzip *gzip; /* of all its watches; NULL: none has needed it */
};

enum answer_verb { ANSWER_GET, ANSWER_LIST, ANSWER_WATCH };

struct answer_request {
	uint32_t magic;
	struct answer_worker *worker;
	struct exchange *x;
	enum answer_verb verb;
	struct api_path path;
	struct api_options options;
	struct api_accept accept;
	struct api_status status;
	bool gzip; /* the client accepts it */
	bool pretty;
	bool is_message; /* a POST that only reads: mcp, access */
	bool is_leaf;    /* another machine's kinf: bookmarks tell it how old the data is */
	char *user;      /* the decided one; NULL: none, or no memory for it */
	struct auth_pending *pending; /* the decision; NULL: none is awaited */
	/* The answering feed. */
	struct catalog_feed *feed;
	enum coverage_answer coverage;
	struct buf key;          /* GET: of the object; else the prefix of keys */
	struct printer *printer; /* of tables */
	struct buf deprecation;  /* the warning about a version of a custom resource */
	/* The route: answers from the cache. */
	void (*dispatch)(struct answer_request *request);
	/* The body, of answer_take_body(). */
	struct buf body;
	size_t body_max;
	/* The answering stage: its state, freed with the request. */
	void *stage;
	void (*free_stage)(void *stage);
	/* Waiting: `resume` is called after news and every few milliseconds. */
	void (*resume)(struct answer_request *request);
	uint64_t wait_until_ns; /* 0: it does not wait */
	uint64_t ahead;         /* the RV waited for; 0: something else */
	struct serve_timer timer;
	bool is_waiting, is_parked;
	struct answer_request *next, **at; /* of the waiting ones */
	/* Forwarding. */
	bool is_label_unknown; /* of a field selector */
	bool must_forward;     /* waiting would not help */
	bool unreachable;      /* the API server did not answer: nothing can be forwarded */
	bool cache_answers;    /* if the API server does not */
};

/* Reads the head. Returns: 0; HTTP statuses with the Status; errors. */
int answer_parse(struct answer_request *request);
void answer_request_free(struct answer_request **request);
/* Frees the state of the stage before, and sets STAGE in its place; NULL: none. */
void answer_set_stage(struct answer_request *request, void *stage, void (*free_stage)(void *stage));

/* Takes the worker's snapshot for this turn of its loop; answer_release_snapshot() gives it back
 * before the turn ends. Returns: 0; AGAIN: there is no index yet; errors. */
int answer_take_snapshot(struct answer_worker *worker);
/* Takes a snapshot of the journal alone. */
int answer_take_log(struct answer_worker *worker);
void answer_release_snapshot(struct answer_worker *worker);

/* ---- waiting ------------------------------------------------------------ */

/* Lets the request wait: the transport frees it if the client goes away. */
void answer_park(struct answer_request *request);
/* Calls request->resume after news or a few milliseconds, with SOON in the next turn of the loop.
 * Refuses the request without memory. */
void answer_wait(struct answer_request *request, bool soon);
/* Takes the whole body, of at most MAX bytes, into request->body; then calls request->resume. */
void answer_take_body(struct answer_request *request, size_t max);
/* Makes the request's timer, once. */
int answer_timer_init(struct answer_request *request);

/* ---- questions about it ------------------------------------------------- */

/* Returns the verb of the request as RBAC names it. */
const char *answer_verb_name(const struct answer_request *request);
/* Returns true for GET and HEAD. */
bool answer_is_read(const struct answer_request *request);
/* Returns true if the document is made of the feeds. */
bool answer_is_of_feeds(const struct answer_request *request);
/* Returns true for a watch over a WebSocket, if the cache can answer it. */
bool answer_takes_messages(const struct answer_request *request);
/* Returns true if the request could go to the API server; can: it has credentials for it. */
bool answer_may_forward(const struct answer_request *request);
bool answer_can_forward(const struct answer_request *request);
/* Returns whether BODY matches the selectors: 1, 0, ERR_CORRUPT. */
int answer_matches(const struct answer_request *request, struct bytes body);
/* Returns true if the request's feed is not live. Sets its age in seconds, negative if unknown, and
 * the reason. */
bool answer_is_stale(const struct answer_request *request, double *ret_age, char why[200]);
/* Returns the cell of METRIC for the feed's group and resource. */
struct metric_cell *answer_cell(const struct answer_request *request, enum metric metric);

/* ---- its answer --------------------------------------------------------- */

/* Answers with the Status, or with 500 if R is an error of ours. Frees the request. */
void answer_refuse(struct answer_request *request, int r);
/* Answers with JSON, a compact document, indented if the client likes, or with protobuf. Changes
 * JSON and frees the request. */
void answer_send(struct answer_request *request, struct buf *json);
/* Returns true if the client wants indented JSON. */
bool answer_is_pretty(const struct answer_request *request);
/* Returns the content type of objects, lists and watches. */
const char *answer_type(const struct answer_request *request);

struct answer_head {
	struct exchange_header headers[8];
	size_t n;
	char age[24], warning[512], deprecation[640], retry[16];
};
/* Puts the headers of all answers, refusals too, with those of answer_head_stale(). */
void answer_head(const struct answer_request *request, const char *type, bool gzip,
	struct answer_head *ret_head);
void answer_head_put(struct answer_head *head, const char *name, const char *value);
/* Puts Age and Warning if the request's feed is not live. */
void answer_head_stale(const struct answer_request *request, struct answer_head *head);

#endif
