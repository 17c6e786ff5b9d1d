/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to libkinf of all kinds, about a feed of the simulator's pods. A sound store always
 * answers them alike. */
#ifndef TORTURE_QUESTIONS_H
#define TORTURE_QUESTIONS_H

#include <stdbool.h>

#include "reader/kinf.h"

#define ANSWERS_MAX 64

struct answer {
	const char *question;
	uint64_t hash, n; /* of all objects, in their order; their number */
	int result;       /* 0; why the answer is not complete: an error, or "not yet" */
	bool is_mute;     /* an error without a sentence */
};

/* The feed has indexes `node` of spec.nodeName and `account` of spec.serviceAccountName. */
struct asked {
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
	const char *feed;
	uint64_t event;          /* from before some changes */
	const char *const *keys; /* of all objects */
	size_t n_keys;
};

/* Asks each question. Returns how many answers there are: always as many. */
size_t questions_ask(const struct asked *asked, struct answer ret_answers[ANSWERS_MAX]);

#endif
