/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/pace.h"

#include "common/proc.h"

#define WINDOW_NS UINT64_C(1000000000)

uint64_t pace_span(struct pace *pace, uint64_t now_ns)
{
	if (now_ns - pace->window_ns >= WINDOW_NS) {
		pace->window_ns = now_ns;
		pace->turns = 0;
	}
	return pace->turns++ < PACE_BURST ? 0 : pace->n_feeds * PACE_FEED_NS;
}

uint64_t pace_random(void)
{
	uint64_t bits = proc_monotonic_ns();

	(void)proc_random(&bits, sizeof(bits)); /* may fail: the time spreads the load as well */
	return bits;
}

uint64_t pace_jitter(uint64_t least_ns)
{
	return least_ns ? least_ns + pace_random() % least_ns : 0;
}
