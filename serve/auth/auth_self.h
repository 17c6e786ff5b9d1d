/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modes `self` and `review`: the API server decides. With `self` by one SelfSubjectAccessReview
 * with the client's own token, or, if the client impersonates, by a request like the client's
 * (question.h, probe); with `review` kinf-serve has an account of its own (serve.review), and asks
 * by a SubjectAccessReview for the name and organizations of the client's certificate, or for the
 * user of its token by a TokenReview.
 *
 * A thread of its own asks, and requests for the same decision wait for one question. Decisions are
 * kept for 10 s; while the API server is silent or away, an allowed one counts for
 * `serve.offlineGrace`, with its implications, but not for Secrets. A kept decision is found by all
 * bytes of its question, the token included, and never by a hash alone.
 */
#ifndef SERVE_AUTH_AUTH_SELF_H
#define SERVE_AUTH_AUTH_SELF_H

#include "common/config/config.h"
#include "serve/auth/auth.h"

struct auth_self;
struct auth_options;

int auth_self_new(const struct auth_options *options, struct auth_self **ret_self);
void auth_self_reload(struct auth_self *self, const struct config *config);
/* After all pending decisions were delivered or cancelled. */
void auth_self_free(struct auth_self **self);

/* As auth_decide(); auth_cancel() is here also. */
void auth_self_decide(struct auth_self *self, struct exchange *x,
	const struct auth_attributes *attributes, auth_decided_fn *fn, void *context,
	struct auth_pending **ret_pending);
/* Calls the functions of WORKER's finished decisions. On the worker's thread. */
void auth_self_deliver(struct auth_self *self, struct serve_worker *worker);

/* ---- token.c ------------------------------------------------------------ */

/* The claims of a bearer token in JWT form. Its signature is not checked: use them only after the
 * API server has accepted the token. */
struct token_facts {
	char user[256];     /* the claim `sub`, "" if there is none */
	uint64_t expires_s; /* the claim `exp`, seconds since 1970; 0: none */
};

/* Reads the token in HEADERS, lines with a NUL each and an empty one at the end. */
void token_read(const void *headers, struct token_facts *ret_facts);
bool token_expired(const struct token_facts *facts);
/* Returns KEEP_NS, or less if the token expires before. */
uint64_t token_cap_ns(const struct token_facts *facts, uint64_t keep_ns);

#endif
