/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modes `self` and `review`. With `review` kinf-serve asks with an account of its own
 * (serve.review): a SubjectAccessReview for the name and organizations of the client's certificate,
 * or for the user of its token by a TokenReview. The rest is the same for both.
 *
 * With `self` the API server decides, by one SelfSubjectAccessReview with the client's own token
 * and impersonation headers. kinf-serve needs no right of its own for it. Decisions are kept for 10
 * s; while the API server is silent for half a second or away, an allowed one counts for
 * `serve.offlineGrace`, with its implications, but not for Secrets.
 *
 * A thread of its own asks. Requests for the same decision wait for one question. A request with a
 * name is first asked without the name, because a right to all objects of the kind is the usual
 * case and one decision then serves every name.
 *
 * A kept decision is found by all bytes of its question, the token included, and never by a hash
 * alone: two clients must not share one by a collision.
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

/* As auth_decide(). */
void auth_self_decide(struct auth_self *self, struct exchange *x,
	const struct auth_attributes *attributes, auth_decided_fn *fn, void *context,
	struct auth_pending **ret_pending);
void auth_self_cancel(struct auth_pending **pending);
/* Calls the functions of WORKER's finished decisions. On the worker's thread. */
void auth_self_deliver(struct auth_self *self, struct serve_worker *worker);

#endif
