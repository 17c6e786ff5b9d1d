/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/limit.h"

void limit_heard(struct limit *limit, uint64_t now_ns, uint64_t size)
{
	limit->bytes += size;
	if (limit->answered && limit->bytes < limit->idle_ns / 1000000000 * LIMIT_RATE)
		return;
	limit->heard_ns = now_ns;
	limit->bytes = 0;
}

uint64_t limit_deadline(const struct limit *limit, uint64_t *ret_limit_ns, const char **ret_words)
{
	uint64_t silence = limit->answered ? limit->idle_ns : limit->first_byte_ns;
	uint64_t from = limit->answered ? limit->heard_ns : limit->start_ns;
	uint64_t at = silence ? from + silence : UINT64_MAX;

	*ret_limit_ns = silence;
	*ret_words = !limit->answered ? "no answer"
		     : limit->bytes   ? "too little heard"
				      : "nothing more heard";
	if (limit->total_ns && limit->start_ns + limit->total_ns < at) {
		at = limit->start_ns + limit->total_ns;
		*ret_limit_ns = limit->total_ns;
		*ret_words = "not finished";
	}
	return at;
}

void limit_refusal(struct limit *limit)
{
	uint64_t total = limit->heard_ns - limit->start_ns + limit->first_byte_ns;

	if (limit->first_byte_ns && (!limit->total_ns || total < limit->total_ns))
		limit->total_ns = total;
}
