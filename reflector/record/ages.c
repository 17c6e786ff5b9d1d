/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/record/ages.h"

#include <string.h>

void ages_begin(struct ages *ages, uint64_t now_ns)
{
	ages->n = 0;
	ages->newest_ns = 0;
	ages->began_ns = (int64_t)now_ns;
}

void ages_add_old(struct ages *ages, uint64_t seq, uint64_t time_ns)
{
	const struct ages_sample *next = ages->samples;

	if (ages->n == AGES_STEPS)
		return;
	if (!ages->n)
		ages->newest_ns = time_ns;
	uint64_t age = time_ns < ages->newest_ns ? ages->newest_ns - time_ns : 0;
	int64_t at = age < INT64_MAX / 2 ? ages->began_ns - (int64_t)age : INT64_MIN / 2;
	if (ages->n && at > next->time_ns)
		at = next->time_ns;
	memmove(&ages->samples[1], ages->samples, ages->n * sizeof(*ages->samples));
	ages->samples[0] = (struct ages_sample){seq, at};
	ages->n++;
}

bool ages_is_due(const struct ages *ages, uint64_t now_ns, uint64_t kept_ns)
{
	return !ages->n ||
	       now_ns - (uint64_t)ages->samples[ages->n - 1].time_ns >= kept_ns / AGES_STEPS;
}

void ages_add(struct ages *ages, uint64_t seq, uint64_t now_ns, uint64_t kept_ns)
{
	if (!ages_is_due(ages, now_ns, kept_ns) ||
		(ages->n && ages->samples[ages->n - 1].seq >= seq))
		return;
	if (ages->n == AGES_MAX) {
		/* Drops every second sample but the oldest and the newest: the others are still
		 * true. */
		ages->n = 0;
		for (size_t i = 0; i < AGES_MAX; i++)
			if (i % 2 == 0 || i == AGES_MAX - 1)
				ages->samples[ages->n++] = ages->samples[i];
	}
	ages->samples[ages->n++] = (struct ages_sample){seq, (int64_t)now_ns};
}

uint64_t ages_reached(struct ages *ages, uint64_t now_ns, uint64_t kept_ns)
{
	size_t n = 0;

	while (n < ages->n && now_ns - (uint64_t)ages->samples[n].time_ns >= kept_ns)
		n++;
	if (!n)
		return 0;
	/* The last old one stays: it is the answer until the next one is old enough. */
	memmove(ages->samples, &ages->samples[n - 1], (ages->n - n + 1) * sizeof(*ages->samples));
	ages->n -= n - 1;
	return ages->samples[0].seq;
}
