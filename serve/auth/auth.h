/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether a client may make a request. The answerer decodes the request into attributes,
 * asks once for each request, and for a running watch again each minute.
 *
 *	auth_decide(auth, x, &attributes, decided, watch, &watch->pending);
 *
 * The modes are those of `serve.auth`: peers, self, review, allow, open, token. Each listener has
 * one.
 */
#ifndef SERVE_AUTH_AUTH_H
#define SERVE_AUTH_AUTH_H

#include "common/config/config.h"
#include "serve/auth/question.h"

struct auth;
struct auth_pending;
struct metrics;

struct auth_decision {
	enum auth_answer answer;
	const char *user;   /* for Status messages and the access log; "" if unknown */
	const char *reason; /* a sentence for the Status message, may be "" */
};

/* Called on the worker's thread. The texts of DECISION are valid during the call. */
typedef void auth_decided_fn(void *context, const struct auth_decision *decision);

/*
 * Decides for the client of X. Calls FN before it returns if the decision is known already; then
 * *RET_PENDING is NULL. Else FN is called later, unless auth_cancel() comes first; then
 * *RET_PENDING is set before FN can be called. Never fails: without memory the decision is
 * AUTH_UNAVAILABLE.
 */
void auth_decide(struct auth *auth, struct exchange *x, const struct auth_attributes *attributes,
	auth_decided_fn *fn, void *context, struct auth_pending **ret_pending);
/* The caller no longer wants the decision. Accepts NULL; sets *PENDING to NULL. */
void auth_cancel(struct auth_pending **pending);

/* ---- for the process ---------------------------------------------------- */

struct auth_options {
	const struct config *config;
	struct metrics *metrics;
	int runtime_fd; /* the runtime directory, for the file `upstream` */
	uid_t owner;    /* of the store */
	bool has_group; /* members of GROUP may read the store */
	gid_t group;
	bool self;        /* a listener has the mode self or review */
	bool review;      /* it is review */
	bool allow;       /* a listener has the mode allow */
	bool token;       /* a listener has the mode token */
	uint64_t keep_ns; /* how long decisions are good; 0: 10 s */
};

int auth_open(const struct auth_options *options, struct auth **ret_auth);
/* From the main thread, while workers ask. */
void auth_reload(struct auth *auth, const struct config *config);
void auth_close(struct auth **auth);
/* Calls the functions of WORKER's finished decisions. On its thread, after serve_worker_wake(). */
void auth_deliver(struct auth *auth, struct serve_worker *worker);

/* Returns true if the request is for another user: only the API server can allow it. */
bool auth_impersonates(const struct exchange *x);
#define AUTH_NO_IMPERSONATION \
	"impersonation is not possible with serve.auth peers, open, review, allow and token; use " \
	"self, " \
	"or the API server"

const char *auth_mode_name(enum config_auth mode);

/* Counts a decision of MODE in kinf_serve_decisions_total. SOURCE is "local", "cache", "server" or
 * "grace". */
void auth_count(
	struct metrics *metrics, const char *mode, enum auth_answer answer, const char *source);

#endif
