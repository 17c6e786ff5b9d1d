/* SPDX-License-Identifier: Apache-2.0 */
/* The time limits of one call, in nanoseconds on the clock of limits (http.h). */
#ifndef REFLECTOR_NET_LIMIT_H
#define REFLECTOR_NET_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct limit {
	uint64_t first_byte_ns, idle_ns, total_ns; /* durations; 0: no limit */
	uint64_t start_ns;
	uint64_t heard_ns; /* when LIMIT_RATE times idle_ns had last come since the time before, or
			      the head */
	uint64_t bytes;    /* since then */
	bool answered;
};

/* Bytes a second. A slower answer counts as silent: a server could otherwise hold a list for ever
 * with a byte a minute. */
#define LIMIT_RATE 1024

/* Counts SIZE bytes of the answer, received at NOW. */
void limit_heard(struct limit *limit, uint64_t now_ns, uint64_t size);

/* Returns: when the call ends unless something comes before, UINT64_MAX: never. *RET_LIMIT_NS is
 * the limit, *RET_WORDS its words: "no answer", "nothing more heard", "too little heard", "not
 * finished". */
uint64_t limit_deadline(const struct limit *limit, uint64_t *ret_limit_ns, const char **ret_words);

/* Allows first_byte_ns for the rest of the answer, because its status is not 200: a watch may be
 * silent and a list may take long, but a refusal may not. */
void limit_refusal(struct limit *limit);

#endif
