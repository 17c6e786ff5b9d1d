/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of `self` and `review`: auth_self.c (decisions that are kept, and requests
 * that wait for one), auth_ask.c (the thread that asks the API server).
 */
#ifndef SERVE_AUTH_AUTH_SELF_INTERNAL_H
#define SERVE_AUTH_AUTH_SELF_INTERNAL_H

#include <pthread.h>

#include "common/hashtable.h"
#include "serve/auth/auth_self.h"
#include "serve/auth/question.h"
#include "serve/http/upstream_client.h"

#define SECOND_NS UINT64_C(1000000000)
#define USER_SIZE 256

/* One question and, if it was answered, its decision. */
struct decision_entry {
	struct auth_self *self;
	struct decision_entry *queue_next;
	struct question question;
	bool secrets, asking, decided;
	bool refused; /* by the last answer of the API server */
	enum auth_answer answer;
	char user[USER_SIZE], reason[200];
	uint64_t until_ns;   /* monotonic: how long the decision is good */
	uint64_t allowed_ns; /* monotonic: when it was last allowed; 0: never */
	uint64_t asked_ns;   /* monotonic: since when ASKING is set */
	struct auth_pending *waiting;
};

/* A request that waits. It is on the list of its entry, and after the decision on that of the
 * self. */
struct auth_pending {
	struct auth_self *self;
	struct decision_entry *entry; /* NULL: decided */
	struct auth_pending *next;
	struct serve_worker *worker;
	auth_decided_fn *fn;
	void *context;
	bool has_second;
	struct question second; /* with the name: to be asked if the first is denied */
	bool secrets, discovery;
	enum auth_answer answer;
	char user[USER_SIZE], reason[200];
};

struct self_item {
	uint32_t hash;
	struct decision_entry *entry;
};

struct auth_self {
	uint32_t magic;
	pthread_mutex_t lock; /* of everything below but CLIENT */
	struct hashtable table;
	uint64_t seed;
	struct decision_entry *queue_first, **queue_last;
	struct auth_pending *decided;
	unsigned n_asking;
	uint64_t keep_ns, grace_ns;
	bool silent; /* the last question was not answered in time */
	/* the last question was given up after a silence: others are not waited for as long */
	bool away;
	bool stop;
	struct metrics *metrics;
	const char *mode;               /* for metrics */
	struct upstream_client *client; /* of the thread; upstream_client_wake() from all */
	pthread_t thread;
	bool started;
};

/* Notes the answer to ENTRY's question, and passes it on. The lock is held. */
void auth_self_settle(struct auth_self *self, struct decision_entry *entry, enum auth_answer answer,
	const char *reason);
/* Allows the requests that wait for a question without an answer, if they were allowed before;
 * refuses the others if the question before had no answer either. Returns whether requests wait.
 * The lock is held. */
bool auth_self_relieve(struct auth_self *self);

/* The thread that asks, until self->stop. */
void *auth_ask_run(void *self);

#endif
