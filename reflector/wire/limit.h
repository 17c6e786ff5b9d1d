/* SPDX-License-Identifier: Apache-2.0 */
/* The time limits of one call, in nanoseconds on the clock of limits (http.h). */
#ifndef REFLECTOR_WIRE_LIMIT_H
#define REFLECTOR_WIRE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct limit {
	uint64_t first_byte_ns, idle_ns, total_ns; /* durations; 0: no limit */
	uint64_t start_ns;
	uint64_t heard_ns; /* when a byte last came, if `answered` */
	bool answered;
};

/* Returns: when the call ends unless something comes before, UINT64_MAX: never. *RET_LIMIT_NS is
 * the limit that ends it, *RET_WORDS says so: "no answer", "nothing more heard", "not finished". */
uint64_t limit_deadline(const struct limit *limit, uint64_t *ret_limit_ns, const char **ret_words);

/* Allows first_byte_ns for the rest of the answer, because its status is not 200: a watch may be
 * silent and a list may take long, but a refusal may not. */
void limit_refusal(struct limit *limit);

#endif
