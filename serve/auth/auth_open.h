/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process's side of auth; auth.h is the side of the answers. The auth group: auth.c chooses by
 * the listener's mode and has `peers` and `open`; auth_self.c is `self`.
 */
#ifndef SERVE_AUTH_AUTH_OPEN_H
#define SERVE_AUTH_AUTH_OPEN_H

#include "common/config/config.h"
#include "serve/auth.h"

struct metrics;

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
	uint64_t keep_ns; /* how long decisions are good; 0: 10 s */
};

int auth_open(const struct auth_options *options, struct auth **ret_auth);
/* From the main thread, while workers ask. */
void auth_reload(struct auth *auth, const struct config *config);
void auth_close(struct auth **auth);
/* Calls the functions of WORKER's decisions that have come; on its thread, after
 * serve_worker_wake(). */
void auth_deliver(struct auth *auth, struct serve_worker *worker);

/* Whether a request asks to be decided for another user, which only the API server can allow. */
bool auth_impersonates(const struct exchange *x);
#define AUTH_NO_IMPERSONATION \
	"impersonation is not possible with serve.auth peers, open, review and allow; use self, " \
	"or the API server"

/* Counts a decision of MODE in kinf_serve_decisions_total. SOURCE is "local", "cache", "server" or
 * "grace". */
void auth_count(
	struct metrics *metrics, const char *mode, enum auth_answer answer, const char *source);

#endif
