/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answers: everything that knows paths, objects and feeds. The process (serve.h) calls these
 * in this order:
 *
 *	answer_open()			once, on the main thread, before the workers start
 *	answer_worker_open()		on each worker's thread
 *	serve_answer()			for each request that is neither health nor metrics
 *	answer_worker_woken()		after serve_worker_wake()
 *	answer_reload()			after SIGHUP, on the main thread
 *	answer_worker_close()		on each worker's thread, after its last exchange has ended
 *	answer_close()			on the main thread, after the workers have ended
 */
#ifndef SERVE_ANSWER_ANSWER_H
#define SERVE_ANSWER_ANSWER_H

#include "common/config/config.h"
#include "serve/exchange.h"
#include "serve/worker.h"

struct answer;        /* of the process */
struct answer_worker; /* of one worker */
struct auth;
struct metrics;

struct answer_options {
	const struct config *config; /* valid until answer_close() or the next answer_reload() */
	struct serve_worker *const *workers; /* as long as the answers */
	unsigned n_workers;
	struct auth *auth;       /* auth.h: asked before anything is answered */
	struct metrics *metrics; /* metrics.h */
};

/* Checks the past that CONFIG wants served: its form, and against the other keys. Returns 0,
 * ERR_CONFIG or ERR_SYNTAX. */
int answer_check(const struct config *config);

int answer_open(const struct answer_options *options, struct answer **ret_answer);
void answer_reload(struct answer *answer, const struct config *config);
/* Does a command of replay_command(). */
int answer_replay(struct answer *answer, const char *command, char *text, size_t size);
void answer_close(struct answer **answer);

int answer_worker_open(
	struct answer *answer, struct serve_worker *worker, struct answer_worker **ret_worker);
void answer_worker_woken(struct answer_worker *worker);
void answer_worker_close(struct answer_worker **worker);

/* Answers the request, now or later. */
void serve_answer(struct answer_worker *worker, struct exchange *x);

/* One line of /readyz for each check, from any thread: "index ok", "feeds failed: pods is not
 * listed". Returns whether all checks succeed. */
struct answer_check {
	const char *name; /* static */
	bool ok;
	char reason[200];
};
#define ANSWER_CHECKS_MAX 8
size_t answer_ready(struct answer *answer, struct answer_check ret_checks[ANSWER_CHECKS_MAX]);

/* Returns the handle of the store. Any thread may take snapshots of it. */
struct kinf *answer_kinf(struct answer *answer);

#endif
