/* SPDX-License-Identifier: Apache-2.0 */
/* The time limits of one call. All times are points on one clock, in nanoseconds. */
#ifndef REFLECTOR_LIMIT_H
#define REFLECTOR_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct limit {
	uint64_t first_byte_ns, idle_ns, total_ns; /* how long; 0: no limit */
	uint64_t start_ns;
	uint64_t heard_ns; /* when something last came; once answered */
	bool answered;
};

/* When the call is over unless something comes, UINT64_MAX: never; and which limit that is, with the
 * words for it ("no answer", "nothing more heard", "not finished"). */
uint64_t limit_deadline(const struct limit *limit, uint64_t *ret_limit_ns, const char **ret_what);

/* The answer that has begun is a refusal. A watch may be silent and a list go on for long, that may not:
 * what is left of it has to come within first_byte_ns. */
void limit_refusal(struct limit *limit);

#endif
