/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether a client may have what it asks for. The answerer decodes the request into
 * attributes, asks once for each request (for a list of names without one first, then with each
 * name if it wants), and answers nothing without AUTH_ALLOWED. A running watch is asked again each
 * minute with the same attributes.
 *
 *	r = auth_decide(auth, x, &attributes, decided, watch, &watch->pending);
 *
 * The modes are those of `serve.auth`: peers, self, review, allow, open. Each listener has one.
 */
#ifndef SERVE_AUTH_H
#define SERVE_AUTH_H

#include "serve/exchange.h"

struct auth;
struct auth_pending;

/* As in a SubjectAccessReview. Texts are borrowed for the duration of the call; "" where absent. */
struct auth_attributes {
	const char *verb; /* get, list, watch */
	const char *group, *version, *resource, *subresource, *namespace_, *name;
	const char
		*path;  /* set for requests of no resource (/api, /version); resource is "" then */
	bool discovery; /* the path names a document about the resources that there are */
	const char *label_selector, *field_selector; /* as sent, decoded */
};

enum auth_answer {
	AUTH_ALLOWED,
	AUTH_DENIED,          /* 403 */
	AUTH_UNAUTHENTICATED, /* 401 */
	AUTH_UNAVAILABLE      /* 503: the API server can't be asked, and nothing is remembered */
};

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

#endif
