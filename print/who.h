/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer of kinf who: the pods that kinf_who() gives, for people or one JSON object a line.
 *
 *	struct who_answer answer = {.snapshot = s, .out = &out};
 *	r = kinf_who(s, what, KINF_WHO_LAST, who_answer_put, &answer);
 *	who_answer_note(&answer, text);
 */
#ifndef PRINT_WHO_H
#define PRINT_WHO_H

#include "common/buf.h"
#include "reader/kinf.h"

enum who_form {
	WHO_TEXT, /* lines for people */
	WHO_JSON, /* an object a line */
	WHO_LIST  /* objects with commas between them */
};

struct who_answer {
	struct kinf_snapshot *snapshot;
	struct buf *out;
	enum who_form form;
	size_t n, former; /* FORMER: had it */
	size_t on_node;   /* on the network of their node */
	size_t finished;
};

/* A kinf_who_fn; ANSWER is a struct who_answer. */
int who_answer_put(void *answer, const struct kinf_object *pod, uint64_t until_ns);

/* Writes why several pods were given; "" if one was. */
#define WHO_NOTE_SIZE 240
void who_answer_note(const struct who_answer *answer, char text[WHO_NOTE_SIZE]);

#endif
